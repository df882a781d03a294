//! A terminal: what characters and escape sequences do to its grids, as Linux's console does it (console_codes(4)), with an alternate screen.
//!
//! Neighbours: `parser` calls it, `grid` holds the cells, `sequences` has the sequences that begin with `ESC [`.

use crate::cell::{Cell, Pen};
use crate::grid::{Grid, Part, Size};
use crate::history::History;
use crate::parser::{Act, Parser, Sequence};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible;
use unicode_width::UnicodeWidthChar;

/// Tab stops in every eighth column.
const TABS: [u64; 4] = [0x0101_0101_0101_0101; 4];
/// Bytes that a terminal has to say and nobody has read: more are dropped, for nobody asks so often.
pub const ANSWER_BYTES: usize = 256;
/// Shapes of the cursor that Linux numbers (`ESC [ ? N c`), 1: none, 2: a line, 3 to 5: a third, a half, two thirds of the cell, 6 and more: a
/// block. Higher bits are about Linux's software cursor.
pub const CURSOR_SHAPE: u8 = 15;
pub const CURSOR_USUAL: u8 = 2;
pub const CURSOR_BLOCK: u8 = 6;

/// Modes of a terminal, one bit each.
pub mod mode {
    /// DECAWM: writing goes on in the next line.
    pub const WRAP: u32 = 1;
    /// IRM: characters are inserted.
    pub const INSERT: u32 = 2;
    /// DECOM: rows count from the top of the region.
    pub const ORIGIN: u32 = 4;
    /// DECTCEM: the cursor is shown.
    pub const CURSOR: u32 = 8;
    /// DECSCNM: colours of the whole screen are exchanged.
    pub const REVERSED: u32 = 16;
    /// LNM: a line feed returns, and Enter sends both.
    pub const NEW_LINE: u32 = 32;
    /// DECCKM: arrow keys send `ESC O`.
    pub const CURSOR_KEYS: u32 = 64;
    /// DECPAM, DECNKM: the keypad sends sequences.
    pub const KEYPAD: u32 = 128;
    /// Control characters are shown (`ESC [ 3 h`).
    pub const CONTROLS: u32 = 256;
    /// Pasted text is marked (2004).
    pub const PASTE: u32 = 512;
    /// The alternate screen is shown.
    pub const ALTERNATE: u32 = 1024;
}

/// Sets of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Unicode as it is.
    Latin,
    /// DEC's special characters: lines and corners.
    Graphics,
}

/// Where the cursor is, and how it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub row: usize,
    pub column: usize,
    /// The last column was written: the next character begins the next line.
    pub wraps: bool,
    pub pen: Pen,
    pub sets: [Charset; 2],
    /// Which of these is in use.
    pub set: usize,
}

impl Cursor {
    const HOME: Cursor =
        Cursor { row: 0, column: 0, wraps: false, pen: Pen::PLAIN, sets: [Charset::Latin, Charset::Graphics], set: 0 };

    fn save(&self, writer: &mut Writer) {
        let graphics = |set: Charset| u64::from(set == Charset::Graphics);
        let sets = graphics(self.sets[0]) | graphics(self.sets[1]) << 1 | (self.set as u64) << 2;
        let place = [self.row as u64, self.column as u64, self.wraps.into()];
        place.into_iter().chain([self.pen.to_word(), sets]).for_each(|number| writer.number(number));
    }

    fn load(reader: &mut Reader, size: Size) -> Option<Cursor> {
        let row = (reader.number()? as usize).min(size.rows - 1);
        let column = (reader.number()? as usize).min(size.columns - 1);
        let (wraps, pen, sets) = (reader.number()? != 0, Pen::from_word(reader.number()?), reader.number()?);
        let set = |bit: u64| if sets & bit != 0 { Charset::Graphics } else { Charset::Latin };
        Some(Cursor { row, column, wraps, pen, sets: [set(1), set(2)], set: (sets >> 2) as usize & 1 })
    }
}

/// See the head of the file.
pub struct Terminal {
    parser: Parser,
    screen: Screen,
}

/// The terminal without its parser.
pub struct Screen {
    pub grid: Grid,
    /// The other screen, while the alternate one is shown or has been.
    pub other: Option<Grid>,
    pub cursor: Cursor,
    /// Lines that have left the main screen.
    pub history: History,
    /// DECSC.
    pub saved: Cursor,
    /// The cursor of the main screen while the alternate one is shown.
    pub saved_main: Cursor,
    /// First row of the scroll region, and the row behind its last.
    pub region: (usize, usize),
    /// Columns with tab stops, one bit each.
    pub tabs: [u64; 4],
    /// `mode::*`.
    pub modes: u32,
    /// `ESC [ ? N c`.
    pub shape: u8,
    /// Lights (`ESC [ N q`), bits by number of Linux; `None`: those of the keyboard.
    pub lights: Option<u8>,
    /// What the terminal says to the program: answers to its questions.
    pub answers: Vec<u8>,
}

impl Terminal {
    /// An empty terminal.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(size: Size) -> Result<Terminal, Errno> {
        let grid = Grid::new(size)?;
        let screen = Screen {
            grid,
            other: None,
            history: History::default(),
            cursor: Cursor::HOME,
            saved: Cursor::HOME,
            saved_main: Cursor::HOME,
            region: (0, size.rows),
            tabs: [0; 4],
            modes: 0,
            shape: CURSOR_USUAL,
            lights: None,
            answers: fallible::with_capacity(ANSWER_BYTES)?,
        };
        let mut terminal = Terminal { parser: Parser::new(), screen };
        terminal.screen.reset();
        Ok(terminal)
    }

    /// Shows bytes and obeys them.
    pub fn write(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.screen);
    }

    /// Whether it is in the middle of no sequence: only then it can be saved.
    pub fn is_at_rest(&self) -> bool {
        self.parser.is_at_rest()
    }

    /// Grids, cursor and modes.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The same, for a change.
    pub fn screen_mut(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// Saves it into a snapshot, at rest.
    pub fn save(&self, writer: &mut Writer) {
        let screen = &self.screen;
        screen.grid.save(writer);
        writer.number(screen.other.is_some().into());
        screen.other.iter().for_each(|other| other.save(writer));
        [&screen.cursor, &screen.saved, &screen.saved_main].into_iter().for_each(|cursor| cursor.save(writer));
        screen.tabs.into_iter().for_each(|tabs| writer.number(tabs));
        let lights = screen.lights.map_or(u64::MAX, u64::from);
        let (top, bottom) = screen.region;
        let rest = [top as u64, bottom as u64, screen.modes.into(), screen.shape.into(), lights];
        rest.into_iter().for_each(|number| writer.number(number));
        writer.number(screen.history.count());
        writer.run((&screen.answers, &[]));
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Terminal> {
        let grid = Grid::load(reader)?;
        let size = grid.size();
        let mut terminal = Terminal::new(Size { rows: 1, columns: 2 }).ok()?;
        let screen = &mut terminal.screen;
        screen.grid = grid;
        if reader.number()? != 0 {
            screen.other = Some(Grid::load(reader)?).filter(|other| other.size() == size);
        }
        for cursor in [&mut screen.cursor, &mut screen.saved, &mut screen.saved_main] {
            *cursor = Cursor::load(reader, size)?;
        }
        for tabs in &mut screen.tabs {
            *tabs = reader.number()?;
        }
        screen.region = (reader.number()? as usize, reader.number()? as usize);
        if screen.region.0 >= screen.region.1 || screen.region.1 > size.rows {
            screen.region = (0, size.rows);
        }
        (screen.modes, screen.shape) = (reader.number()? as u32, reader.number()? as u8);
        screen.lights = u8::try_from(reader.number()?).ok();
        screen.history = History::after(reader.number()?);
        let answers = reader.run()?;
        answers.iter().take(ANSWER_BYTES).for_each(|byte| screen.answers.push_reserved(*byte));
        Some(terminal)
    }
}

use sys::fallible::TryVec;

impl Screen {
    /// Its size.
    pub fn size(&self) -> Size {
        self.grid.size()
    }

    /// Whether a mode is on.
    pub fn has(&self, mode: u32) -> bool {
        self.modes & mode != 0
    }

    /// RIS: everything as at first. The alternate screen is left.
    pub fn reset(&mut self) {
        self.show_alternate(false);
        self.other = None;
        (self.cursor, self.saved, self.saved_main) = (Cursor::HOME, Cursor::HOME, Cursor::HOME);
        self.region = (0, self.size().rows);
        self.modes = mode::WRAP | mode::CURSOR;
        self.tabs = TABS;
        (self.shape, self.lights) = (CURSOR_USUAL, None);
        self.erase(Part::All);
    }

    /// Takes another size. `ENOMEM`: it stays.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn resize(&mut self, size: Size) -> Result<(), Errno> {
        self.other = None;
        let dropped = self.grid.resize(size, self.cursor.row)?;
        for cursor in [&mut self.cursor, &mut self.saved, &mut self.saved_main] {
            cursor.row = cursor.row.saturating_sub(dropped).min(size.rows - 1);
            cursor.column = cursor.column.min(size.columns - 1);
            cursor.wraps = false;
        }
        self.region = (0, size.rows);
        Ok(())
    }

    /// Shows the alternate screen, or the main one again. Without memory for it everything goes on in the main one.
    pub fn show_alternate(&mut self, alternate: bool) {
        if alternate == self.has(mode::ALTERNATE) {
            return;
        }
        if self.other.is_none() {
            self.other = Grid::new(self.size()).ok();
        }
        if let Some(other) = &mut self.other {
            core::mem::swap(&mut self.grid, other);
            self.grid.change_all();
            self.modes ^= mode::ALTERNATE;
        }
    }

    /// Moves the cursor to a row and column of the screen, or with DECOM of the region.
    pub fn go_to(&mut self, row: usize, column: usize) {
        let size = self.size();
        let (top, bottom) = if self.has(mode::ORIGIN) { self.region } else { (0, size.rows) };
        self.cursor.row = (row + top).min(bottom - 1);
        self.cursor.column = column.min(size.columns - 1);
        self.cursor.wraps = false;
    }

    /// Moves the cursor up or down, without scrolling.
    pub fn go_by_rows(&mut self, rows: isize) {
        let row = self.cursor.row.saturating_add_signed(rows);
        let top = if self.has(mode::ORIGIN) { self.region.0 } else { 0 };
        let bottom = if self.has(mode::ORIGIN) { self.region.1 } else { self.size().rows };
        self.cursor.row = row.clamp(top, bottom - 1);
        self.cursor.wraps = false;
    }

    /// Moves the cursor left or right.
    pub fn go_by_columns(&mut self, columns: isize) {
        let column = self.cursor.column.saturating_add_signed(columns);
        self.cursor.column = column.min(self.size().columns - 1);
        self.cursor.wraps = false;
    }

    /// Moves down by one, and scrolls at the end of the region.
    pub fn line_feed(&mut self) {
        self.cursor.wraps = false;
        if self.cursor.row + 1 == self.region.1 {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.size().rows {
            self.cursor.row += 1;
        }
    }

    /// Scrolls the region up. Lines that leave the main screen at its top become history.
    pub fn scroll_up(&mut self, count: usize) {
        let (top, bottom) = self.region;
        if top == 0 && !self.has(mode::ALTERNATE) {
            (0..count.min(bottom)).for_each(|row| self.history.push(self.grid.row(row)));
        }
        self.grid.scroll_up(top, bottom, count, self.cursor.pen);
    }

    /// Moves up by one, and scrolls at the beginning of the region.
    pub fn reverse_line_feed(&mut self) {
        self.cursor.wraps = false;
        let (top, bottom) = self.region;
        if self.cursor.row == top {
            self.grid.scroll_down(top, bottom, 1, self.cursor.pen);
        } else if self.cursor.row > 0 {
            self.cursor.row -= 1;
        }
    }

    /// ED.
    pub fn erase(&mut self, part: Part) {
        let (row, rows, columns) = (self.cursor.row, self.size().rows, self.size().columns);
        self.erase_in_line(part);
        let others = match part {
            Part::ToEnd => row + 1..rows,
            Part::FromStart => 0..row,
            Part::All => 0..rows,
        };
        others.for_each(|row| self.grid.clear(row, 0, columns, self.cursor.pen));
    }

    /// EL.
    pub fn erase_in_line(&mut self, part: Part) {
        let Cursor { row, column, pen, .. } = self.cursor;
        let columns = self.size().columns;
        let (from, to) = match part {
            Part::ToEnd => (column, columns),
            Part::FromStart => (0, column + 1),
            Part::All => (0, columns),
        };
        self.grid.clear(row, from, to, pen);
        self.cursor.wraps = false;
    }

    /// Says something to the program.
    pub fn say(&mut self, bytes: &[u8]) {
        if self.answers.len() + bytes.len() <= ANSWER_BYTES {
            bytes.iter().for_each(|byte| self.answers.push_reserved(*byte));
        }
    }

    fn tab(&mut self) {
        let last = self.size().columns - 1;
        let is_stop = |column: &usize| self.tabs[column / 64] & 1 << (column % 64) != 0;
        let next = (self.cursor.column + 1..last).find(is_stop);
        self.cursor.column = next.unwrap_or(last);
        self.cursor.wraps = false;
    }

    /// The character that a letter stands for in the set that is in use.
    fn mapped(&self, character: char) -> char {
        const GRAPHICS: [char; 32] = [
            '\u{a0}', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼',
            '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
        ];
        match character {
            '_'..='~' if self.cursor.sets[self.cursor.set] == Charset::Graphics => {
                GRAPHICS[character as usize - '_' as usize]
            }
            other => other,
        }
    }
}

impl Act for Screen {
    fn print(&mut self, character: char) {
        let character = self.mapped(character);
        let width = if character < '\u{300}' { 1 } else { character.width().unwrap_or(0) };
        if width == 0 {
            // What is set over the character before it has no place of its own, and is not shown.
            return;
        }
        let columns = self.size().columns;
        if self.cursor.wraps || self.cursor.column + width > columns {
            if self.has(mode::WRAP) {
                self.cursor.column = 0;
                self.line_feed();
            } else {
                self.cursor.column = columns - width;
            }
        }
        let Cursor { row, column, pen, .. } = self.cursor;
        if self.has(mode::INSERT) {
            self.grid.insert(row, column, width, pen);
        }
        match width {
            1 => self.grid.put(row, column, Cell::new(character, pen)),
            _ => self.grid.put_wide(row, column, Cell::wide(character, pen)),
        }
        if column + width == columns {
            self.cursor.column = columns - 1;
            self.cursor.wraps = self.has(mode::WRAP);
        } else {
            self.cursor.column = column + width;
            self.cursor.wraps = false;
        }
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x08 => self.go_by_columns(-1),
            b'\t' => self.tab(),
            b'\n' | 0x0b | 0x0c => {
                self.line_feed();
                if self.has(mode::NEW_LINE) {
                    self.cursor.column = 0;
                }
            }
            b'\r' => {
                self.cursor.column = 0;
                self.cursor.wraps = false;
            }
            0x0e => self.cursor.set = 1,
            0x0f => self.cursor.set = 0,
            // The bell has no sound here.
            _ => {}
        }
    }

    fn escape(&mut self, sign: u8, byte: u8) {
        match (sign, byte) {
            (0, b'D') => self.line_feed(),
            (0, b'E') => {
                self.cursor.column = 0;
                self.line_feed();
            }
            (0, b'M') => self.reverse_line_feed(),
            (0, b'H') => self.tabs[self.cursor.column / 64] |= 1 << (self.cursor.column % 64),
            (0, b'7') => self.saved = self.cursor,
            (0, b'8') => self.cursor = self.saved,
            (0, b'c') => self.reset(),
            (0, b'Z') => self.say(b"\x1b[?6c"),
            (0, b'=') => self.modes |= mode::KEYPAD,
            (0, b'>') => self.modes &= !mode::KEYPAD,
            (b'#', b'8') => {
                let cell = Cell::new('E', Pen { ..self.cursor.pen });
                self.grid.fill(cell);
                self.go_to(0, 0);
            }
            (b'(' | b')', b'0' | b'B' | b'U' | b'K' | b'A') => {
                let set = if byte == b'0' { Charset::Graphics } else { Charset::Latin };
                self.cursor.sets[usize::from(sign == b')')] = set;
            }
            _ => {}
        }
    }

    fn sequence(&mut self, sequence: &Sequence) {
        self.obey(sequence);
    }
}
