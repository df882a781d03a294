//! Draws a terminal: only cells that differ from what is on the screen, in any of four rotations.
//!
//! What has been drawn is remembered, so that a line that scrolls costs what differs between it and the one that was there.

use crate::cell::{Cell, Pen, attribute};
use crate::font::Font;
use crate::grid::Size;
use crate::terminal::{Screen, mode};
use alloc::vec::Vec;
use sys::Errno;
use sys::fallible;

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
        match number {
            "0" => Some(Rotation::None),
            "1" => Some(Rotation::Quarter),
            "2" => Some(Rotation::Half),
            "3" => Some(Rotation::ThreeQuarters),
            _ => None,
        }
    }
}

/// Default colours of text and background.
const FOREGROUND: u8 = 7;
const BACKGROUND: u8 = 0;
/// Palette entries of dim text.
const DIM: u8 = 8;
/// No cell is this: what is on the screen is not known.
const UNKNOWN: Cell = Cell(u64::MAX);
/// The bit of a drawn cell under the cursor.
const CURSOR: u64 = 1 << 63;

/// See the head of the file.
pub struct Renderer {
    font: Font,
    rotation: Rotation,
    /// Size of the screen in pixels, as it is turned.
    pixels: (usize, usize),
    size: Size,
    drawn: Vec<u64>,
    /// The row that has the cursor drawn in it.
    cursor_row: Option<usize>,
    /// A cell in pixels, and the same turned.
    glyph: Vec<u32>,
    turned: Vec<u32>,
}

impl Renderer {
    /// For a screen of this size, of which nothing is known.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(font: Font, canvas: &impl Canvas, rotation: Rotation) -> Result<Renderer, Errno> {
        let (width, height) = canvas.size();
        let upright = matches!(rotation, Rotation::None | Rotation::Half);
        let pixels = if upright { (width, height) } else { (height, width) };
        let size = Size { rows: pixels.1 / font.height, columns: pixels.0 / font.width }.limited();
        let cell = font.width * font.height;
        Ok(Renderer {
            drawn: fallible::filled(UNKNOWN.0, size.cells())?,
            glyph: fallible::filled(0, cell)?,
            turned: fallible::filled(0, cell)?,
            cursor_row: None,
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

    /// Draws what has changed.
    pub fn draw(&mut self, screen: &mut Screen, canvas: &mut impl Canvas) {
        let size = screen.size();
        let reversed = screen.has(mode::REVERSED);
        let cursor = screen.has(mode::CURSOR).then_some((screen.cursor.row, screen.cursor.column));
        let cursor_row = cursor.map(|(row, _)| row);
        let moved = [core::mem::replace(&mut self.cursor_row, cursor_row), cursor_row];
        for row in 0..size.rows.min(self.size.rows) {
            if !screen.grid.has_changed(row) && !moved.contains(&Some(row)) {
                continue;
            }
            for column in 0..size.columns.min(self.size.columns) {
                let cell = screen.grid.row(row)[column];
                let mark = if cursor == Some((row, column)) { CURSOR } else { 0 };
                let wanted = shown(cell, reversed).0 ^ mark;
                let place = &mut self.drawn[row * self.size.columns + column];
                if *place != wanted {
                    *place = wanted;
                    self.draw_cell(row, column, shown(cell, reversed), mark != 0, canvas);
                }
            }
        }
        screen.grid.drawn();
    }

    fn draw_cell(&mut self, row: usize, column: usize, cell: Cell, cursor: bool, canvas: &mut impl Canvas) {
        let (width, height) = (self.font.width, self.font.height);
        let (foreground, background) = colours(cell.pen());
        let row_bytes = width.div_ceil(8);
        let hidden = cell.pen().attributes & attribute::HIDDEN != 0;
        let glyph = self.font.glyph(if hidden { ' ' } else { cell.character() });
        for (y, line) in self.glyph.chunks_mut(width).enumerate() {
            let underlined = y + 2 == height && cell.pen().attributes & attribute::UNDERLINE != 0;
            let in_cursor = cursor && y + 2 >= height;
            for (x, pixel) in line.iter_mut().enumerate() {
                let is_set = match glyph {
                    Some(glyph) => glyph[y * row_bytes + x / 8] & 0x80 >> (x % 8) != 0,
                    // A frame for what the font does not have.
                    None => x == 0 || y == 1 || x + 2 == width || y + 2 == height,
                };
                *pixel = if is_set ^ in_cursor || underlined { foreground } else { background };
            }
        }
        self.put(column * width, row * height, canvas);
    }

    /// Puts the cell whose corner is there on the picture that is not turned.
    fn put(&mut self, x: usize, y: usize, canvas: &mut impl Canvas) {
        let (width, height) = (self.font.width, self.font.height);
        let (across, down) = self.pixels;
        let (left, top, turned_width) = match self.rotation {
            Rotation::None => (x, y, width),
            Rotation::Quarter => (down - y - height, x, height),
            Rotation::Half => (across - x - width, down - y - height, width),
            Rotation::ThreeQuarters => (y, across - x - width, height),
        };
        for (index, pixel) in self.glyph.iter().enumerate() {
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
        Renderer::new(font, picture, rotation).expect("there is memory")
    }

    fn drawn(rotation: Rotation) -> Picture {
        let upright = matches!(rotation, Rotation::None | Rotation::Half);
        let mut picture = if upright { picture(160, 64) } else { picture(64, 160) };
        let mut renderer = renderer(&picture, rotation);
        let mut terminal = Terminal::new(renderer.size()).expect("there is memory");
        terminal.write("Skink\r\n\x1b[1;31;44mred\x1b[m ─┐\x1b[4munder\x1b[7mreverse\x1b[38;2;1;200;3m中x".as_bytes());
        renderer.draw(terminal.screen_mut(), &mut picture);
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
        renderer.draw(terminal.screen_mut(), &mut picture);
        picture.puts = 0;
        terminal.write(b"a");
        renderer.draw(terminal.screen_mut(), &mut picture);
        assert_eq!(picture.puts, 2 * 16, "the letter, and the cursor behind it");
        picture.puts = 0;
        renderer.draw(terminal.screen_mut(), &mut picture);
        assert_eq!(picture.puts, 0);
    }

    #[test]
    fn any_size_of_screen_and_terminal_fits() {
        for (width, height) in [(16, 16), (17, 33), (2000, 1300)] {
            let mut picture = picture(width, height);
            let mut renderer = renderer(&picture, Rotation::None);
            let mut terminal = Terminal::new(Size { rows: 75, columns: 240 }).expect("there is memory");
            terminal.write(&b"x".repeat(20_000));
            renderer.draw(terminal.screen_mut(), &mut picture);
        }
    }
}
