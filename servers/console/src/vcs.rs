//! Pictures of text: what /dev/vcs*, /dev/vcsa* and /dev/vcsu* of a terminal hold (vcs(4)).
//!
//! * vcs: a byte for each character; vcsu: four bytes, its Unicode number;
//! * vcsa: rows, columns, and the cursor's column and row; then for each character its byte and its attributes as in the memory of a VGA.

use crate::cell::Cell;
use crate::terminal::Screen;

/// Which of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Attributes,
    Unicode,
}

/// First minors of the three kinds; behind each those of terminals 1 and on, and itself the terminal that is shown.
const UNICODE: u64 = 64;
const ATTRIBUTES: u64 = 128;
const HEADER: usize = 4;

impl Kind {
    /// The kind and the terminal of a minor; 0: the one that is shown.
    pub fn of(minor: u64) -> (Kind, u64) {
        match minor {
            ATTRIBUTES.. => (Kind::Attributes, minor - ATTRIBUTES),
            UNICODE.. => (Kind::Unicode, minor - UNICODE),
            _ => (Kind::Text, minor),
        }
    }

    fn cell_bytes(self) -> usize {
        match self {
            Kind::Text => 1,
            Kind::Attributes => 2,
            Kind::Unicode => 4,
        }
    }

    /// Copies from `position` on. Returns how much; 0 at the end.
    pub fn read(self, screen: &Screen, position: u64, buffer: &mut [u8]) -> usize {
        let size = screen.size();
        let header = if self == Kind::Attributes { HEADER } else { 0 };
        let end = header + size.cells() * self.cell_bytes();
        let start = usize::try_from(position).unwrap_or(end).min(end);
        let count = buffer.len().min(end - start);
        for (at, slot) in (start..).zip(&mut buffer[..count]) {
            *slot = match at.checked_sub(header) {
                None => [size.rows, size.columns, screen.cursor.column, screen.cursor.row][at] as u8,
                Some(at) => {
                    let (index, byte) = (at / self.cell_bytes(), at % self.cell_bytes());
                    self.byte(screen.grid.row(index / size.columns)[index % size.columns], byte)
                }
            };
        }
        count
    }

    fn byte(self, cell: Cell, byte: usize) -> u8 {
        match (self, byte) {
            (Kind::Unicode, byte) => u32::from(cell.character()).to_le_bytes()[byte],
            (Kind::Attributes, 1) => cell.vga(),
            _ => glyph(cell.character()),
        }
    }
}

/// The place of a character in the font of a VGA, code page 437, which these devices show; what it does not have is a question mark.
fn glyph(character: char) -> u8 {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
    match character {
        ' '..='~' => character as u8,
        _ => UPPER.chars().position(|upper| upper == character).map_or(b'?', |index| 0x80 + index as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Size;
    use crate::terminal::Terminal;

    #[test]
    fn a_picture_is_read_from_any_position() {
        let mut terminal = Terminal::new(Size { rows: 2, columns: 3 }).expect("there is memory");
        terminal.write("a\x1b[31mé\r\n─x".as_bytes());
        let read = |kind: Kind, position| {
            let mut buffer = [0; 40];
            let count = kind.read(terminal.screen(), position, &mut buffer);
            buffer[..count].to_vec()
        };
        assert_eq!(read(Kind::Text, 0), b"a\x82 \xc4x ");
        assert_eq!(read(Kind::Text, 4), b"x ");
        assert_eq!(read(Kind::Attributes, 0)[..10], [2, 3, 2, 1, b'a', 7, 0x82, 4, b' ', 7]);
        assert_eq!(read(Kind::Unicode, 12)[..4], [0, 0x25, 0, 0]);
        assert_eq!((read(Kind::Unicode, 24), read(Kind::Text, u64::MAX)), (Vec::new(), Vec::new()));
        assert_eq!([0, 3, 66, 129].map(Kind::of).map(|(_, number)| number), [0, 3, 2, 1]);
    }
}
