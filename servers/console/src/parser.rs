//! Bytes into characters, controls and escape sequences: a state machine after Paul Williams', with UTF-8, as Linux's console reads them.
//!
//! Its state is small and can be compared with the beginning: a snapshot of a terminal is taken only there. Whatever comes, it returns there:
//! a sequence has at most 16 parameters of 16 bits, and a text command ends at its limit.

/// Parameters of a sequence.
const PARAMETERS: usize = 16;
/// Bytes of a text command (OSC, DCS), which is skipped, before it counts as forgotten.
const TEXT_LIMIT: u32 = 4096;

const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const BEL: u8 = 0x07;
const DEL: u8 = 0x7f;

/// An escape sequence that begins with `ESC [`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    parameters: [u16; PARAMETERS],
    count: usize,
    /// A sign before the parameters (`?`, `>`, `=`, `<`), or 0.
    pub mark: u8,
    /// A sign behind them (`!`, blank, `$` …), or 0.
    pub sign: u8,
    pub last: u8,
}

impl Sequence {
    const EMPTY: Sequence = Sequence { parameters: [0; PARAMETERS], count: 0, mark: 0, sign: 0, last: 0 };

    /// The parameters; at least one.
    pub fn parameters(&self) -> &[u16] {
        &self.parameters[..self.count.max(1)]
    }

    /// A parameter; 0 if it is absent.
    pub fn get(&self, index: usize) -> usize {
        self.parameters().get(index).copied().unwrap_or_default().into()
    }

    /// A parameter that is a count: 0 and absent are 1.
    pub fn count_of(&self, index: usize) -> usize {
        self.get(index).max(1)
    }

    fn digit(&mut self, digit: u8) {
        self.count = self.count.max(1);
        let last = &mut self.parameters[self.count - 1];
        *last = last.saturating_mul(10).saturating_add(digit.into());
    }

    /// Begins the next parameter. Those beyond the last are dropped.
    fn separator(&mut self) {
        self.count = (self.count.max(1) + 1).min(PARAMETERS);
        if self.count == PARAMETERS {
            self.parameters[PARAMETERS - 1] = 0;
        }
    }
}

/// What a terminal does.
pub trait Act {
    /// Shows a character.
    fn print(&mut self, character: char);
    /// Obeys a control character.
    fn control(&mut self, byte: u8);
    /// Obeys `ESC` and a byte, with a sign between them or 0.
    fn escape(&mut self, sign: u8, byte: u8);
    /// Obeys `ESC [`.
    fn sequence(&mut self, sequence: &Sequence);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    /// In a character of UTF-8: the bits so far, bytes to come, and the least value of this length.
    Utf8 {
        bits: u32,
        left: u8,
        least: u32,
    },
    Escape {
        sign: u8,
    },
    Sequence(Sequence),
    /// A sequence that makes no sense, up to its end.
    Skipped,
    /// A text command, up to BEL or `ESC \`.
    Text {
        bytes: u32,
    },
    /// `ESC ] P` and seven digits, which set a colour of the palette, as Linux has it.
    Palette {
        digits: u8,
    },
}

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parser(State);

impl Parser {
    /// At the beginning.
    pub fn new() -> Parser {
        Parser(State::Ground)
    }

    /// Whether it is in the middle of nothing.
    pub fn is_at_rest(&self) -> bool {
        self.0 == State::Ground
    }

    /// Takes bytes in.
    pub fn feed(&mut self, bytes: &[u8], to: &mut impl Act) {
        for byte in bytes {
            self.0 = step(self.0, *byte, to);
        }
    }
}

fn step(state: State, byte: u8, to: &mut impl Act) -> State {
    if let State::Utf8 { bits, left, least } = state {
        if byte & 0xc0 != 0x80 {
            // The character has ended too early.
            to.print(char::REPLACEMENT_CHARACTER);
            return step(State::Ground, byte, to);
        }
        return continuation(bits << 6 | u32::from(byte & 0x3f), left - 1, least, to);
    }
    if let State::Text { bytes } = state {
        return match byte {
            BEL | CAN | SUB => State::Ground,
            ESC => State::Escape { sign: 0 },
            b'P' if bytes == 0 => State::Palette { digits: 7 },
            // `ESC ] R` resets the palette.
            b'R' if bytes == 0 => State::Ground,
            _ if bytes == TEXT_LIMIT => State::Ground,
            _ => State::Text { bytes: bytes + 1 },
        };
    }
    match byte {
        CAN | SUB => State::Ground,
        ESC => State::Escape { sign: 0 },
        0..0x20 => {
            to.control(byte);
            state
        }
        DEL => state,
        _ => printable(state, byte, to),
    }
}

/// A byte that is no control.
fn printable(state: State, byte: u8, to: &mut impl Act) -> State {
    match state {
        State::Ground => ground(byte, to),
        State::Escape { sign } => escape(sign, byte, to),
        State::Sequence(sequence) => in_sequence(sequence, byte, to),
        State::Skipped if matches!(byte, 0x40..=0x7e) => State::Ground,
        State::Skipped => State::Skipped,
        State::Palette { digits } if byte.is_ascii_hexdigit() && digits > 1 => State::Palette { digits: digits - 1 },
        State::Palette { .. } | State::Utf8 { .. } | State::Text { .. } => State::Ground,
    }
}

fn ground(byte: u8, to: &mut impl Act) -> State {
    let (bits, left, least) = match byte {
        0..0x80 => {
            to.print(byte.into());
            return State::Ground;
        }
        0xc2..0xe0 => (byte & 0x1f, 1, 0x80),
        0xe0..0xf0 => (byte & 0x0f, 2, 0x800),
        0xf0..0xf5 => (byte & 0x07, 3, 0x1_0000),
        _ => {
            to.print(char::REPLACEMENT_CHARACTER);
            return State::Ground;
        }
    };
    State::Utf8 { bits: bits.into(), left, least }
}

fn continuation(bits: u32, left: u8, least: u32, to: &mut impl Act) -> State {
    if left > 0 {
        return State::Utf8 { bits, left, least };
    }
    let character = char::from_u32(bits).filter(|_| bits >= least);
    to.print(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    State::Ground
}

fn escape(sign: u8, byte: u8, to: &mut impl Act) -> State {
    match (sign, byte) {
        (0, b'[') => State::Sequence(Sequence::EMPTY),
        (0, b']' | b'P' | b'X' | b'^' | b'_') => State::Text { bytes: u32::from(byte != b']') },
        (_, 0x20..0x30) => State::Escape { sign: byte },
        _ => {
            to.escape(sign, byte);
            State::Ground
        }
    }
}

fn in_sequence(mut sequence: Sequence, byte: u8, to: &mut impl Act) -> State {
    match byte {
        b'0'..=b'9' if sequence.sign == 0 => sequence.digit(byte - b'0'),
        b';' | b':' if sequence.sign == 0 => sequence.separator(),
        b'<'..=b'?' if sequence.count == 0 && sequence.mark == 0 && sequence.sign == 0 => sequence.mark = byte,
        // Linux's function keys, `ESC [ [ A`, come from the keyboard and are skipped when they come back.
        b'[' if sequence == Sequence::EMPTY => return State::Skipped,
        0x20..0x30 if sequence.sign == 0 => sequence.sign = byte,
        0x40..=0x7e => {
            sequence.last = byte;
            to.sequence(&sequence);
            return State::Ground;
        }
        _ => return State::Skipped,
    }
    State::Sequence(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(String);

    impl Act for Log {
        fn print(&mut self, character: char) {
            self.0.push(character);
        }
        fn control(&mut self, byte: u8) {
            self.0 += &format!("<{byte}>");
        }
        fn escape(&mut self, sign: u8, byte: u8) {
            self.0 += &format!("({sign} {})", char::from(byte));
        }
        fn sequence(&mut self, sequence: &Sequence) {
            let (mark, last) = (sequence.mark, char::from(sequence.last));
            self.0 += &format!("[{mark} {:?} {last}]", sequence.parameters());
        }
    }

    fn parsed(bytes: &[u8]) -> String {
        let (mut parser, mut log) = (Parser::new(), Log::default());
        parser.feed(bytes, &mut log);
        assert!(parser.is_at_rest(), "{parser:?}");
        log.0
    }

    #[test]
    fn text_controls_and_sequences_are_told_apart() {
        assert_eq!(parsed(b"a\r\x1b[1;;31mb\x1b[?25l\x1b(0\x1b7"), "a<13>[0 [1, 0, 31] m]b[63 [25] l](40 0)(0 7)");
    }

    #[test]
    fn utf_8_is_read_and_what_is_none_is_replaced() {
        assert_eq!(parsed("ä中🦎".as_bytes()), "ä中🦎");
        assert_eq!(parsed(b"\xe4x\xc0\x80\xed\xa0\x80\xf0\x80\x80\x80."), "\u{fffd}x\u{fffd}\u{fffd}\u{fffd}\u{fffd}.");
    }

    #[test]
    fn controls_inside_a_sequence_are_obeyed_and_an_escape_begins_anew() {
        assert_eq!(parsed(b"\x1b[1\n2H"), "<10>[0 [12] H]");
        assert_eq!(parsed(b"\x1b[1\x1b[2H"), "[0 [2] H]");
        assert_eq!(parsed(b"\x1b[1\x18H"), "H");
    }

    #[test]
    fn text_commands_are_skipped_whatever_ends_them() {
        assert_eq!(parsed(b"\x1b]0;title\x07a\x1bPq\x1b\\b\x1b]P1aabbccc\x1b]Rd"), "a(0 \\)bcd");
        let endless: Vec<u8> = [b"\x1b]x".to_vec(), vec![b'y'; 2 * TEXT_LIMIT as usize]].concat();
        assert!(parsed(&endless).len() > 4000, "a command without end does not swallow the rest");
    }

    #[test]
    fn numbers_and_parameters_without_end_are_bounded() {
        assert_eq!(parsed(b"\x1b[99999999999A"), "[0 [65535] A]");
        let many = [&b"\x1b["[..], &b"1;".repeat(100), b"m"].concat();
        assert!(parsed(&many).starts_with("[0 [1, 1"));
    }
}
