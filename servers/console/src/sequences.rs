//! The sequences that begin with `ESC [` (CSI): movement, erasing, colours, modes, questions.

use crate::cell::{Colour, Pen, attribute};
use crate::grid::Part;
use crate::parser::Sequence;
use crate::terminal::{CURSOR_BLOCK, CURSOR_USUAL, Screen, mode};

impl Screen {
    /// Obeys a sequence; unknown ones do nothing.
    pub fn obey(&mut self, sequence: &Sequence) {
        match (sequence.mark, sequence.sign, sequence.last) {
            (b'?', 0, b'h' | b'l') => {
                let on = sequence.last == b'h';
                sequence.parameters().iter().for_each(|number| self.set_private_mode(*number, on));
            }
            (b'?', 0, b'c') if sequence.get(0) == 0 => self.shape = CURSOR_USUAL,
            (b'?', 0, b'c') => self.shape = sequence.get(0) as u8,
            // DECSCUSR: a block, or a line below; a bar has to be one, too. Nothing blinks.
            (0, b' ', b'q') => self.shape = if matches!(sequence.get(0), 1 | 2) { CURSOR_BLOCK } else { CURSOR_USUAL },
            (0, 0, b'h' | b'l') => {
                let on = sequence.last == b'h';
                sequence.parameters().iter().for_each(|number| self.set_mode(*number, on));
            }
            (0, 0, b'm') => self.set_pen(sequence.parameters()),
            (0, b'!', b'p') => {
                self.modes = self.modes & mode::ALTERNATE | mode::WRAP | mode::CURSOR;
                self.cursor.pen = Pen::PLAIN;
                self.region = (0, self.size().rows);
            }
            (0, 0, _) => self.plain(sequence),
            _ => {}
        }
    }

    fn plain(&mut self, sequence: &Sequence) {
        let (count, other) = (sequence.count_of(0), sequence.count_of(1));
        let steps = count as isize;
        match sequence.last {
            b'A' => self.go_by_rows(-steps),
            b'B' | b'e' => self.go_by_rows(steps),
            b'C' | b'a' => self.go_by_columns(steps),
            b'D' => self.go_by_columns(-steps),
            b'E' => {
                self.go_by_rows(steps);
                self.cursor.column = 0;
            }
            b'F' => {
                self.go_by_rows(-steps);
                self.cursor.column = 0;
            }
            b'G' | b'`' => {
                let column = count - 1;
                self.cursor.column = column.min(self.size().columns - 1);
                self.cursor.wraps = false;
            }
            b'd' => self.go_to(count - 1, self.cursor.column),
            b'H' | b'f' => self.go_to(count - 1, other - 1),
            b'J' => self.erase_part(sequence.get(0), Screen::erase),
            b'K' => self.erase_part(sequence.get(0), Screen::erase_in_line),
            b'L' | b'M' => self.change_lines(sequence.last == b'L', count),
            b'@' | b'P' | b'X' => self.change_cells(sequence.last, count),
            b'S' => self.scroll_up(count),
            b'T' => self.grid.scroll_down(self.region.0, self.region.1, count, self.cursor.pen),
            b'r' => self.set_region(sequence.get(0), sequence.get(1)),
            b's' => self.saved = self.cursor,
            b'u' => self.cursor = self.saved,
            b'g' => self.clear_tabs(sequence.get(0)),
            b'n' => self.report(sequence.get(0)),
            b'c' if sequence.get(0) == 0 => self.say(b"\x1b[?6c"),
            b'q' => self.set_lights(sequence.get(0)),
            _ => {}
        }
    }

    fn erase_part(&mut self, number: usize, erase: impl Fn(&mut Screen, Part)) {
        match number {
            0 => erase(self, Part::ToEnd),
            1 => erase(self, Part::FromStart),
            2 | 3 => erase(self, Part::All),
            _ => {}
        }
    }

    /// IL, DL: at the cursor's line, inside the region.
    fn change_lines(&mut self, inserts: bool, count: usize) {
        let (row, (_, bottom)) = (self.cursor.row, self.region);
        match inserts {
            _ if row >= bottom => {}
            true => self.grid.scroll_down(row, bottom, count, self.cursor.pen),
            false => self.grid.scroll_up(row, bottom, count, self.cursor.pen),
        }
        self.cursor.wraps = false;
    }

    /// ICH, DCH, ECH.
    fn change_cells(&mut self, last: u8, count: usize) {
        let (row, column, pen) = (self.cursor.row, self.cursor.column, self.cursor.pen);
        match last {
            b'@' => self.grid.insert(row, column, count, pen),
            b'P' => self.grid.delete(row, column, count, pen),
            _ => self.grid.clear(row, column, column.saturating_add(count), pen),
        }
        self.cursor.wraps = false;
    }

    /// DECSTBM.
    fn set_region(&mut self, top: usize, bottom: usize) {
        let rows = self.size().rows;
        let (top, bottom) = (top.max(1), if bottom == 0 { rows } else { bottom });
        if top < bottom && bottom <= rows {
            self.region = (top - 1, bottom);
            self.go_to(0, 0);
        }
    }

    fn clear_tabs(&mut self, number: usize) {
        match number {
            0 => self.tabs[self.cursor.column / 64] &= !(1 << (self.cursor.column % 64)),
            3 => self.tabs = [0; 4],
            _ => {}
        }
    }

    /// DSR: that all is well, or where the cursor is.
    fn report(&mut self, number: usize) {
        match number {
            5 => self.say(b"\x1b[0n"),
            6 => {
                let top = if self.has(mode::ORIGIN) { self.region.0 } else { 0 };
                self.say(b"\x1b[");
                self.say_number(self.cursor.row - top + 1);
                self.say(b";");
                self.say_number(self.cursor.column + 1);
                self.say(b"R");
            }
            _ => {}
        }
    }

    fn say_number(&mut self, number: usize) {
        if number >= 10 {
            self.say_number(number / 10);
        }
        self.say(&[b'0' + (number % 10) as u8]);
    }

    /// DECLL: none, or scroll, num and caps lock.
    fn set_lights(&mut self, number: usize) {
        let old = self.lights.unwrap_or(0);
        self.lights = match number {
            0 => Some(0),
            1 => Some(old | 4),
            2 => Some(old | 1),
            3 => Some(old | 2),
            _ => self.lights,
        };
    }

    fn set_mode(&mut self, number: u16, on: bool) {
        let mode = match number {
            3 => mode::CONTROLS,
            4 => mode::INSERT,
            20 => mode::NEW_LINE,
            _ => return,
        };
        self.turn(mode, on);
    }

    fn set_private_mode(&mut self, number: u16, on: bool) {
        let mode = match number {
            1 => mode::CURSOR_KEYS,
            5 => {
                self.grid.change_all();
                mode::REVERSED
            }
            6 => {
                self.turn(mode::ORIGIN, on);
                return self.go_to(0, 0);
            }
            7 => {
                self.cursor.wraps &= on;
                mode::WRAP
            }
            25 => mode::CURSOR,
            66 => mode::KEYPAD,
            2004 => mode::PASTE,
            47 | 1047 => return self.show_alternate(on),
            1048 if on => return self.saved = self.cursor,
            1048 => return self.cursor = self.saved,
            1049 => return self.show_alternate_clear(on),
            _ => return,
        };
        self.turn(mode, on);
    }

    /// The alternate screen, empty, with the cursor of the main one kept.
    fn show_alternate_clear(&mut self, on: bool) {
        if on && !self.has(mode::ALTERNATE) {
            self.saved_main = self.cursor;
            self.show_alternate(true);
            self.erase(Part::All);
        } else if !on && self.has(mode::ALTERNATE) {
            self.show_alternate(false);
            self.cursor = self.saved_main;
        }
    }

    fn turn(&mut self, mode: u32, on: bool) {
        self.modes = if on { self.modes | mode } else { self.modes & !mode };
    }

    /// SGR.
    fn set_pen(&mut self, parameters: &[u16]) {
        let mut rest = parameters;
        while let [first, behind @ ..] = rest {
            rest = behind;
            let pen = &mut self.cursor.pen;
            match *first {
                0 => *pen = Pen::PLAIN,
                code @ (30..=37 | 90..=97) => pen.foreground = numbered(code % 10, code >= 90),
                code @ (40..=47 | 100..=107) => pen.background = numbered(code % 10, code >= 100),
                38 => rest = colour(behind, &mut pen.foreground),
                48 => rest = colour(behind, &mut pen.background),
                39 => pen.foreground = Colour::DEFAULT,
                49 => pen.background = Colour::DEFAULT,
                code => pen.attributes = attributes_after(pen.attributes, code),
            }
        }
    }
}

fn numbered(digit: u16, bright: bool) -> Colour {
    Colour::palette(digit as u8 + if bright { 8 } else { 0 })
}

/// A colour of 256, or a true one. Returns the parameters behind it.
fn colour<'a>(parameters: &'a [u16], colour: &mut Colour) -> &'a [u16] {
    let part = |value: u16| value.min(255) as u8;
    match parameters {
        [5, index, rest @ ..] => {
            *colour = Colour::palette(part(*index));
            rest
        }
        [2, red, green, blue, rest @ ..] => {
            *colour = Colour::rgb(part(*red), part(*green), part(*blue));
            rest
        }
        _ => &[],
    }
}

fn attributes_after(attributes: u8, code: u16) -> u8 {
    use attribute::{BLINK, BOLD, HALF, HIDDEN, ITALIC, REVERSE, UNDERLINE};
    match code {
        1 => attributes & !HALF | BOLD,
        2 => attributes & !BOLD | HALF,
        3 => attributes | ITALIC,
        4 | 21 => attributes | UNDERLINE,
        5 | 6 => attributes | BLINK,
        7 => attributes | REVERSE,
        8 => attributes | HIDDEN,
        22 => attributes & !(BOLD | HALF),
        23 => attributes & !ITALIC,
        24 => attributes & !UNDERLINE,
        25 => attributes & !BLINK,
        27 => attributes & !REVERSE,
        28 => attributes & !HIDDEN,
        _ => attributes,
    }
}
