//! One place of a screen: a character, its colours and its attributes, in one word.
//!
//! ```text
//! bits 0..21   the character      bit 21: it is wide     bit 22: the second half of the wide one before it
//! bits 23..30  attributes         bits 30..47: foreground     bits 47..64: background
//! ```

/// A colour: of the palette, the default, or true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(u32);

/// Marks a true colour: five, six and five bits of red, green and blue.
const TRUE: u32 = 1 << 16;
const COLOUR_BITS: u32 = 17;

impl Colour {
    /// What a screen has at first.
    pub const DEFAULT: Colour = Colour(256);

    /// A colour of the palette: 16 of the terminal, a cube of 216, and 24 grey ones.
    pub const fn palette(index: u8) -> Colour {
        Colour(index as u32)
    }

    /// A true colour.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Colour {
        Colour(TRUE | (red as u32 >> 3) << 11 | (green as u32 >> 2) << 5 | blue as u32 >> 3)
    }

    /// As 0x00RRGGBB; `default` stands for the default colour.
    pub fn to_rgb(self, default: u8) -> u32 {
        let widen = |value: u32, bits: u32| value << (8 - bits) | value >> (2 * bits - 8);
        match self.0 {
            true_colour if true_colour & TRUE != 0 => {
                widen(true_colour >> 11 & 31, 5) << 16
                    | widen(true_colour >> 5 & 63, 6) << 8
                    | widen(true_colour & 31, 5)
            }
            256 => Colour::palette(default).to_rgb(0),
            index @ 0..16 => VGA[index as usize],
            index @ 16..232 => {
                let level = |value: u32| if value == 0 { 0 } else { 55 + 40 * value };
                let index = index - 16;
                level(index / 36) << 16 | level(index / 6 % 6) << 8 | level(index % 6)
            }
            index => (8 + 10 * (index - 232)) * 0x01_0101,
        }
    }

    /// The nearest of Linux's sixteen, as the console of Linux chooses it: three bits by half of the strongest part, and the intensity.
    fn to_sixteen(self, default: u8) -> u8 {
        if self == Colour::DEFAULT {
            return default;
        }
        if self.0 < 16 {
            return TO_VGA[self.0 as usize & 7] | self.0 as u8 & 8;
        }
        let parts = [16, 8, 0].map(|shift| self.to_rgb(default) >> shift & 0xff);
        let most = parts.into_iter().max().unwrap_or_default();
        let bits = parts.into_iter().zip([4, 2, 1]).filter(|(part, _)| *part > most / 2).map(|(_, bit)| bit).sum();
        match (bits, most) {
            (7, ..=0x55) => 8,
            (bits, 0xab..) => bits | 8,
            (bits, _) => bits,
        }
    }
}

/// The palette of Linux's console, in the order of escape sequences: red is 1, blue 4.
const VGA: [u32; 16] = [
    0x00_0000, 0xaa_0000, 0x00_aa00, 0xaa_5500, 0x00_00aa, 0xaa_00aa, 0x00_aaaa, 0xaa_aaaa, //
    0x55_5555, 0xff_5555, 0x55_ff55, 0xff_ff55, 0x55_55ff, 0xff_55ff, 0x55_ffff, 0xff_ffff,
];
/// The numbers of these colours in the memory of a VGA, where blue is 1 and red 4.
const TO_VGA: [u8; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// The same in the order of the memory of a VGA, which the colour map of a screen with eight bits a pixel begins with.
pub const VGA_MEMORY: [u32; 16] = {
    let mut colours = [0; 16];
    let mut index = 0;
    while index < 16 {
        colours[TO_VGA[index & 7] as usize | index & 8] = VGA[index];
        index += 1;
    }
    colours
};

/// Attributes.
pub mod attribute {
    /// Bright.
    pub const BOLD: u8 = 1;
    /// Dim.
    pub const HALF: u8 = 2;
    /// Slanted.
    pub const ITALIC: u8 = 4;
    /// With a line below.
    pub const UNDERLINE: u8 = 8;
    /// Blinking.
    pub const BLINK: u8 = 16;
    /// Colours exchanged.
    pub const REVERSE: u8 = 32;
    /// Not shown.
    pub const HIDDEN: u8 = 64;
}

/// The colours and attributes that characters get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pen {
    pub foreground: Colour,
    pub background: Colour,
    /// `attribute::*`.
    pub attributes: u8,
}

impl Pen {
    /// That of a new screen.
    pub const PLAIN: Pen = Pen { foreground: Colour::DEFAULT, background: Colour::DEFAULT, attributes: 0 };

    /// For a snapshot.
    pub fn to_word(self) -> u64 {
        Cell::new(' ', self).0
    }

    /// From a snapshot.
    pub fn from_word(word: u64) -> Pen {
        Cell(word).pen()
    }
}

/// See the head of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(pub u64);

const WIDE: u64 = 1 << 21;
const SECOND: u64 = 1 << 22;
const ATTRIBUTES: u32 = 23;
const FOREGROUND: u32 = 30;
const BACKGROUND: u32 = FOREGROUND + COLOUR_BITS;
const COLOUR: u64 = (1 << COLOUR_BITS) - 1;
/// Linux's colours of default text, and of slanted, underlined and dim one.
const WHITE: u8 = 7;
const GREEN: u8 = 2;
const CYAN: u8 = 3;
const GREY: u8 = 8;

impl Cell {
    /// A character.
    pub fn new(character: char, pen: Pen) -> Cell {
        let colours = u64::from(pen.foreground.0) << FOREGROUND | u64::from(pen.background.0) << BACKGROUND;
        Cell(u64::from(u32::from(character)) | u64::from(pen.attributes & 0x7f) << ATTRIBUTES | colours)
    }

    /// An empty place: a blank with the pen's colours, of which the background alone is to be seen; programs read both.
    pub fn blank(pen: Pen) -> Cell {
        Cell::new(' ', Pen { attributes: pen.attributes & attribute::BLINK, ..pen })
    }

    /// The two halves of a wide character.
    pub fn wide(character: char, pen: Pen) -> [Cell; 2] {
        [Cell(Cell::new(character, pen).0 | WIDE), Cell(Cell::new(' ', pen).0 | SECOND)]
    }

    /// The character; a blank for the second half of a wide one.
    pub fn character(self) -> char {
        char::from_u32(self.0 as u32 & 0x1f_ffff).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Whether it is the first half of a wide character.
    pub fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    /// Whether it is the second half of a wide character.
    pub fn is_second(self) -> bool {
        self.0 & SECOND != 0
    }

    /// Colours and attributes.
    pub fn pen(self) -> Pen {
        Pen {
            foreground: Colour((self.0 >> FOREGROUND & COLOUR) as u32),
            background: Colour((self.0 >> BACKGROUND & COLOUR) as u32),
            attributes: (self.0 >> ATTRIBUTES) as u8 & 0x7f,
        }
    }

    /// The attribute byte in the memory of a VGA, as /dev/vcsa of Linux shows it.
    pub fn vga(self) -> u8 {
        use attribute::{BLINK, BOLD, HALF, ITALIC, REVERSE, UNDERLINE};
        let pen = self.pen();
        let has = |attribute: u8| pen.attributes & attribute != 0;
        let foreground = match () {
            () if has(ITALIC) => GREEN,
            () if has(UNDERLINE) => CYAN,
            () if has(HALF) => GREY,
            () => pen.foreground.to_sixteen(WHITE),
        };
        let mut byte = foreground | (pen.background.to_sixteen(0) & 7) << 4;
        if has(REVERSE) {
            byte = byte & 0x88 | byte.rotate_left(4) & 0x77;
        }
        if has(BLINK) {
            byte ^= 0x80;
        }
        if has(BOLD) { byte ^ 8 } else { byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_what_it_was_made_of() {
        let pen = Pen { foreground: Colour::rgb(255, 0, 8), background: Colour::palette(255), attributes: 0x7f };
        let cell = Cell::new('\u{10ffff}', pen);
        assert_eq!((cell.character(), cell.pen(), cell.is_wide()), ('\u{10ffff}', pen, false));
        let [first, second] = Cell::wide('中', Pen::PLAIN);
        assert!(first.is_wide() && second.is_second() && !second.is_wide());
    }

    #[test]
    fn colours_are_those_of_linux() {
        let rgb = |colour: Colour| colour.to_rgb(7);
        assert_eq!(
            [rgb(Colour::DEFAULT), rgb(Colour::palette(9)), rgb(Colour::palette(16))],
            [0xaa_aaaa, 0xff_5555, 0]
        );
        assert_eq!([rgb(Colour::palette(231)), rgb(Colour::palette(255))], [0xff_ffff, 0xee_eeee]);
        assert_eq!(rgb(Colour::rgb(255, 255, 255)), 0xff_ffff);
    }

    #[test]
    fn attributes_are_those_of_a_vga() {
        let vga = |foreground, background, attributes| Cell::new('x', Pen { foreground, background, attributes }).vga();
        let (red, blue) = (Colour::palette(1), Colour::palette(4));
        assert_eq!(vga(Colour::DEFAULT, Colour::DEFAULT, 0), 0x07);
        assert_eq!(vga(Colour::DEFAULT, Colour::DEFAULT, attribute::REVERSE), 0x70);
        assert_eq!(vga(red, blue, attribute::BOLD), 0x1c);
        assert_eq!(vga(Colour::DEFAULT, Colour::DEFAULT, attribute::UNDERLINE), 0x03);
    }
}
