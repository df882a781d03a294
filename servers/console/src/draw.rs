//! Draws a terminal: only cells that differ from what is on the screen, in any of four rotations.
//!
//! What has been drawn is remembered, so that a line that scrolls costs what differs between it and the one that was there.

use crate::cell::{Cell, Pen, attribute};
use crate::font::Font;
use crate::grid::{MAX_COLUMNS, Size};
use crate::terminal::{CURSOR_SHAPE, Screen, mode};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::Range;
use sys::Errno;
use sys::fallible;
use zerocopy::{FromBytes, IntoBytes};

/// What is drawn on.
pub trait Canvas {
    /// Width and height in pixels.
    fn size(&self) -> (usize, usize);
    /// Puts pixels, each 0x00RRGGBB, into a line from a column on.
    fn put(&mut self, x: usize, y: usize, pixels: &[u32]);
}

/// By how much the picture is turned, clockwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    None,
    Quarter,
    Half,
    ThreeQuarters,
}

impl Rotation {
    /// By number of quarters, as Linux's `fbcon=rotate:` counts them. `None`: there is no such.
    pub fn quarters(number: &str) -> Option<Rotation> {
        number.parse().ok().and_then(Rotation::with_number)
    }

    /// As [`Rotation::quarters`].
    pub const fn with_number(number: u64) -> Option<Rotation> {
        match number {
            0 => Some(Rotation::None),
            1 => Some(Rotation::Quarter),
            2 => Some(Rotation::Half),
            3 => Some(Rotation::ThreeQuarters),
            _ => None,
        }
    }

    /// The number of quarters.
    pub const fn number(self) -> u64 {
        self as u64
    }
}

/// Default colours of text and background.
const FOREGROUND: u8 = 7;
const BACKGROUND: u8 = 0;
/// Palette entries of dim text.
const DIM: u8 = 8;
/// No cell is this: what is on the screen is not known.
const UNKNOWN: Cell = Cell(u64::MAX);
/// The bit of a drawn cell that is the other way round under the cursor.
const CURSOR: u64 = 1 << 63;

/// See the head of the file.
pub struct Renderer {
    font: Rc<Font>,
    rotation: Rotation,
    /// Size of the screen in pixels, as it is turned.
    pixels: (usize, usize),
    size: Size,
    drawn: Vec<u64>,
    /// The row that has the cursor drawn in it.
    cursor_row: Option<usize>,
    /// How many lines of a cell the cursor takes.
    cursor_lines: usize,
    /// The font's space has no pixel of the foreground, as a program may load it with some.
    has_empty_space: bool,
    /// Cells side by side in pixels, two in each word: as many as a row has.
    run: Vec<u64>,
    /// A cell turned.
    turned: Vec<u32>,
}

impl Renderer {
    /// For a screen of this size, of which nothing is known.
    ///
    /// # Errors
    /// `EINVAL`: glyphs have an odd width; `ENOMEM`.
    pub fn new(font: Rc<Font>, canvas: &impl Canvas, rotation: Rotation) -> Result<Renderer, Errno> {
        let (width, height) = canvas.size();
        let upright = matches!(rotation, Rotation::None | Rotation::Half);
        let pixels = if upright { (width, height) } else { (height, width) };
        let size = Size { rows: pixels.1 / font.height, columns: pixels.0 / font.width }.limited();
        let cell = font.width * font.height;
        if !font.width.is_multiple_of(2) {
            return Err(Errno::EINVAL);
        }
        Ok(Renderer {
            drawn: fallible::filled(UNKNOWN.0, size.cells())?,
            run: fallible::filled(0, cell.div_ceil(2) * size.columns)?,
            turned: fallible::filled(0, cell)?,
            cursor_row: None,
            cursor_lines: 0,
            has_empty_space: font.glyph(' ').is_some_and(|glyph| glyph.iter().all(|bits| *bits == 0)),
            font,
            rotation,
            pixels,
            size,
        })
    }

    /// The size of a terminal on this screen.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Forgets what is on the screen: somebody else has drawn there.
    pub fn forget(&mut self, screen: &mut Screen) {
        self.drawn.fill(UNKNOWN.0);
        screen.grid.change_all();
    }

    /// Draws what has changed, with `back` lines of the past at the top.
    pub fn draw(&mut self, screen: &mut Screen, back: usize, canvas: &mut impl Canvas) {
        let size = screen.size();
        let reversed = screen.has(mode::REVERSED);
        let lines = cursor_lines(screen.shape, self.font.height);
        let is_shown = screen.has(mode::CURSOR) && back == 0 && lines > 0;
        let cursor = is_shown.then_some((screen.cursor.row, screen.cursor.column));
        if let Some((row, column)) = cursor
            && core::mem::replace(&mut self.cursor_lines, lines) != lines
            && row < self.size.rows
            && column < self.size.columns
        {
            self.drawn[row * self.size.columns + column] = UNKNOWN.0;
        }
        let cursor_row = cursor.map(|(row, _)| row);
        let moved = [core::mem::replace(&mut self.cursor_row, cursor_row), cursor_row];
        let mut past = [Cell::blank(Pen::PLAIN); MAX_COLUMNS];
        for row in 0..size.rows.min(self.size.rows) {
            if !screen.grid.has_changed(row) && !moved.contains(&Some(row)) {
                continue;
            }
            let columns = size.columns.min(self.size.columns);

            let cells = match row.checked_sub(back) {
                Some(row) => &screen.grid.row(row)[..columns],
                None => {
                    screen.history.copy(back - row, &mut past[..columns]);
                    &past[..columns]
                }
            };
            let column = cursor.filter(|(cursor_row, _)| *cursor_row == row).map(|(_, column)| column);
            self.draw_row(row, cells, reversed, column, canvas);
        }
        screen.grid.drawn();
    }

    /// Draws what has changed of a row, run by run.
    fn draw_row(
        &mut self,
        row: usize,
        cells: &[Cell],
        reversed: bool,
        cursor: Option<usize>,
        canvas: &mut impl Canvas,
    ) {
        let mut first = None;
        for (column, cell) in cells.iter().enumerate() {
            let mark = if cursor == Some(column) { CURSOR } else { 0 };
            let wanted = shown(*cell, reversed).0 ^ mark;
            let place = &mut self.drawn[row * self.size.columns + column];
            if core::mem::replace(place, wanted) != wanted {
                first.get_or_insert(column);
            } else if let Some(first) = first.take() {
                self.draw_run(row, first..column, cursor, canvas);
            }
        }
        if let Some(first) = first {
            self.draw_run(row, first..cells.len(), cursor, canvas);
        }
    }

    /// Draws cells of a row as they are in `drawn`.
    fn draw_run(&mut self, row: usize, columns: Range<usize>, cursor: Option<usize>, canvas: &mut impl Canvas) {
        let (width, height) = (self.font.width, self.font.height);
        let y = row * height;
        if self.rotation != Rotation::None {
            for column in columns {
                self.paint_run(row, column..column + 1, cursor);
                self.put_turned(column * width, y, canvas);
            }
            return;
        }
        let first_blank = columns.end - self.blanks_at_end(row, &columns);
        if columns.start < first_blank {
            let words = self.paint_run(row, columns.start..first_blank, cursor);
            let lines = self.run.chunks(words).take(height);
            lines.zip(y..).for_each(|(line, y)| canvas.put(columns.start * width, y, pixels_of(line)));
        }
        if first_blank < columns.end {
            let blank = Cell(self.drawn[row * self.size.columns + first_blank]);
            let background = u64::from(colours(blank.pen()).1);
            let line = &mut self.run[..(columns.end - first_blank) * width / 2];
            line.fill(background | background << 32);
            (y..y + height).for_each(|y| canvas.put(first_blank * width, y, pixels_of(line)));
        }
    }

    /// How many cells at the end of a run are blanks of one colour. All their lines of pixels are the same, and most cells of a screen are such.
    fn blanks_at_end(&self, row: usize, columns: &Range<usize>) -> usize {
        let start = row * self.size.columns;
        let cells = &self.drawn[start + columns.start..start + columns.end];
        let is_blank = |cell: u64| {
            let is_space = cell & CURSOR == 0 && Cell(cell).character() == ' ';
            is_space && Cell(cell).pen().attributes & attribute::UNDERLINE == 0
        };
        match cells.last() {
            Some(last) if self.has_empty_space && is_blank(*last) => {
                cells.iter().rev().take_while(|cell| *cell == last).count()
            }
            _ => 0,
        }
    }

    /// Paints cells of a row side by side into `run`. Returns how many words a line of theirs has.
    fn paint_run(&mut self, row: usize, columns: Range<usize>, cursor: Option<usize>) -> usize {
        let words_per_cell = self.font.width / 2;
        let words = columns.len() * words_per_cell;
        for (index, column) in columns.enumerate() {
            let drawn = self.drawn[row * self.size.columns + column];
            let is_cursor = cursor == Some(column);
            let cell = Cell(if is_cursor { drawn ^ CURSOR } else { drawn });
            let lines = if is_cursor { self.cursor_lines } else { 0 };
            paint(&self.font, cell, lines, &mut self.run, index * words_per_cell, words);
        }
        words
    }

    /// Puts the first cell of `run` on the screen, turned. Its corner is there on the picture that is not turned.
    fn put_turned(&mut self, x: usize, y: usize, canvas: &mut impl Canvas) {
        let (width, height) = (self.font.width, self.font.height);
        let (across, down) = self.pixels;
        let (left, top, turned_width) = match self.rotation {
            Rotation::None => (x, y, width),
            Rotation::Quarter => (down - y - height, x, height),
            Rotation::Half => (across - x - width, down - y - height, width),
            Rotation::ThreeQuarters => (y, across - x - width, height),
        };
        for (index, pixel) in pixels_of(&self.run)[..width * height].iter().enumerate() {
            let (x, y) = (index % width, index / width);
            let at = match self.rotation {
                Rotation::None => index,
                Rotation::Quarter => x * height + height - 1 - y,
                Rotation::Half => width * height - 1 - index,
                Rotation::ThreeQuarters => (width - 1 - x) * height + y,
            };
            self.turned[at] = *pixel;
        }
        self.turned.chunks(turned_width).zip(top..).for_each(|(line, y)| canvas.put(left, y, line));
    }
}

/// How many lines of a cell the cursor takes at its bottom, by Linux's number of its shape.
fn cursor_lines(shape: u8, height: usize) -> usize {
    match shape & CURSOR_SHAPE {
        1 => 0,
        2 if height < 10 => 1,
        2 => 2,
        3 => height / 3,
        4 => height / 2,
        5 => height * 2 / 3,
        _ => height,
    }
}

/// The pixels of words: the first is the lower half.
fn pixels_of(words: &[u64]) -> &[u32] {
    <[u32]>::ref_from_bytes(words.as_bytes()).expect("a word is two pixels")
}

/// Paints a cell into words of two pixels each, from `at` on; one line of it is `stride` words behind the one above.
fn paint(font: &Font, cell: Cell, cursor_lines: usize, words: &mut [u64], at: usize, stride: usize) {
    let (foreground, background) = colours(cell.pen());
    let (foreground, background) = (u64::from(foreground), u64::from(background));
    // Two bits of a glyph, the left one first, as two pixels.
    let pairs = [
        background | background << 32,
        background | foreground << 32,
        foreground | background << 32,
        foreground | foreground << 32,
    ];
    let has = |attribute: u8| cell.pen().attributes & attribute != 0;
    let (width, height) = (font.width, font.height);
    let (row_bytes, row_words) = (width.div_ceil(8), width / 2);
    let glyph = font.glyph(if has(attribute::HIDDEN) { ' ' } else { cell.character() });
    let is_underlined = has(attribute::UNDERLINE);
    for (y, line) in words[at..].chunks_mut(stride).take(height).enumerate() {
        let line = &mut line[..row_words];
        let flip = if y + cursor_lines >= height { 3 } else { 0 };
        match glyph {
            _ if is_underlined && y + 2 == height => line.fill(pairs[3 ^ flip]),
            Some(glyph) => {
                let bits = &glyph[y * row_bytes..][..row_bytes];
                for (four, byte) in line.chunks_mut(4).zip(bits) {
                    let byte = usize::from(*byte) ^ (flip * 0x55);
                    match four {
                        [first, second, third, fourth] => {
                            (*first, *second) = (pairs[byte >> 6 & 3], pairs[byte >> 4 & 3]);
                            (*third, *fourth) = (pairs[byte >> 2 & 3], pairs[byte & 3]);
                        }
                        // Glyphs may end within a byte.
                        rest => {
                            for (index, word) in rest.iter_mut().enumerate() {
                                *word = pairs[byte >> (6 - 2 * index) & 3];
                            }
                        }
                    }
                }
            }
            // A frame for what the font does not have.
            None if y == 1 || y + 2 == height => line.fill(pairs[3 ^ flip]),
            None => {
                line.fill(pairs[flip]);
                line[0] = pairs[2 ^ flip];
                line[row_words - 1] = pairs[2 ^ flip];
            }
        }
    }
}

/// The cell as it is drawn: colours are exchanged here.
fn shown(cell: Cell, reversed: bool) -> Cell {
    if !reversed {
        return cell;
    }
    let pen = cell.pen();
    Cell::new(cell.character(), Pen { attributes: pen.attributes ^ attribute::REVERSE, ..pen })
}

fn colours(pen: Pen) -> (u32, u32) {
    let has = |attribute: u8| pen.attributes & attribute != 0;
    let bright = |colour: u32| if has(attribute::BOLD) { (colour | 0x55_5555).min(0xff_ffff) } else { colour };
    let dim = |colour: u32| if has(attribute::HALF) { crate::cell::Colour::palette(DIM).to_rgb(DIM) } else { colour };
    let foreground = bright(dim(pen.foreground.to_rgb(FOREGROUND)));
    let background = pen.background.to_rgb(BACKGROUND);
    if has(attribute::REVERSE) { (background, foreground) } else { (foreground, background) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Terminal;

    struct Picture {
        size: (usize, usize),
        pixels: Vec<u32>,
        puts: usize,
    }

    impl Canvas for Picture {
        fn size(&self) -> (usize, usize) {
            self.size
        }
        fn put(&mut self, x: usize, y: usize, pixels: &[u32]) {
            assert!(x + pixels.len() <= self.size.0);
            let start = y * self.size.0 + x;
            self.pixels[start..start + pixels.len()].copy_from_slice(pixels);
            self.puts += 1;
        }
    }

    fn picture(width: usize, height: usize) -> Picture {
        Picture { size: (width, height), pixels: vec![0x12_3456; width * height], puts: 0 }
    }

    fn renderer(picture: &Picture, rotation: Rotation) -> Renderer {
        let font = Font::new(spleen_font::FONT_8X16).expect("is a font");
        Renderer::new(Rc::new(font), picture, rotation).expect("there is memory")
    }

    fn drawn(rotation: Rotation) -> Picture {
        let upright = matches!(rotation, Rotation::None | Rotation::Half);
        let mut picture = if upright { picture(160, 64) } else { picture(64, 160) };
        let mut renderer = renderer(&picture, rotation);
        let mut terminal = Terminal::new(renderer.size()).expect("there is memory");
        terminal.write("Skink\r\n\x1b[1;31;44mred\x1b[m ─┐\x1b[4munder\x1b[7mreverse\x1b[38;2;1;200;3m中x".as_bytes());
        // Rows that end with blanks of another colour, and with spaces that are not blank.
        terminal.write(b"\x1b[m\r\n\x1b[42mgreen\x1b[K\r\n\x1b[m0123456789abcdef\x1b[4m    \x1b[H");
        renderer.draw(terminal.screen_mut(), 0, &mut picture);
        picture
    }

    /// A picture turned by a quarter against the clock.
    fn turned_back(picture: &Picture) -> Picture {
        let (width, height) = picture.size;
        let pixel = |index: usize| {
            let (x, y) = (index % height, index / height);
            picture.pixels[x * width + width - 1 - y]
        };
        Picture { size: (height, width), pixels: (0..width * height).map(pixel).collect(), puts: 0 }
    }

    #[test]
    fn a_turned_picture_turned_back_is_the_one_that_is_not_turned() {
        let upright = drawn(Rotation::None);
        assert!(upright.pixels.iter().all(|pixel| *pixel != 0x12_3456), "all of it is drawn");
        for (turns, rotation) in [(1, Rotation::Quarter), (2, Rotation::Half), (3, Rotation::ThreeQuarters)] {
            let mut picture = drawn(rotation);
            (0..turns).for_each(|_| picture = turned_back(&picture));
            assert!(picture.pixels == upright.pixels, "{rotation:?}");
        }
    }

    #[test]
    fn only_what_has_changed_is_drawn() {
        let mut picture = picture(160, 64);
        let mut renderer = renderer(&picture, Rotation::None);
        let mut terminal = Terminal::new(renderer.size()).expect("there is memory");
        renderer.draw(terminal.screen_mut(), 0, &mut picture);
        picture.puts = 0;
        terminal.write(b"a");
        renderer.draw(terminal.screen_mut(), 0, &mut picture);
        assert_eq!(picture.puts, 16, "the letter, and the cursor behind it, line by line");
        picture.puts = 0;
        renderer.draw(terminal.screen_mut(), 0, &mut picture);
        assert_eq!(picture.puts, 0);
    }

    #[test]
    fn the_cursor_takes_as_much_of_its_cell_as_its_shape_says() {
        let mut picture = picture(160, 64);
        let mut renderer = renderer(&picture, Rotation::None);
        let mut terminal = Terminal::new(renderer.size()).expect("there is memory");
        let shapes = [
            "\x1b[?1c", "\x1b[?2c", "\x1b[?3c", "\x1b[?4c", "\x1b[?5c", "\x1b[?6c", "\x1b[?0c", "\x1b[2 q", "\x1b[4 q",
        ];
        let lit = shapes.map(|shape| {
            terminal.write(shape.as_bytes());
            renderer.draw(terminal.screen_mut(), 0, &mut picture);
            (0..16).filter(|y| picture.pixels[y * 160] != 0).count()
        });
        assert_eq!(lit, [0, 2, 5, 8, 10, 16, 2, 16, 2]);
    }

    #[test]
    fn any_size_of_screen_and_terminal_fits() {
        for (width, height) in [(16, 16), (17, 33), (2000, 1300)] {
            let mut picture = picture(width, height);
            let mut renderer = renderer(&picture, Rotation::None);
            let mut terminal = Terminal::new(Size { rows: 75, columns: 240 }).expect("there is memory");
            terminal.write(&b"x".repeat(20_000));
            renderer.draw(terminal.screen_mut(), 0, &mut picture);
        }
    }
}
