//! What people see and programs read, for keys typed.

use super::*;
use crate::termios::Termios;

struct Typist {
    termios: Termios,
    output: Output,
    discipline: Discipline,
}

impl Typist {
    fn new() -> Self {
        Typist { termios: Termios::initial(), output: Output::new(), discipline: Discipline::new() }
    }

    fn types(&mut self, keys: &[u8]) -> Vec<KeySignal> {
        keys.iter().filter_map(|&key| self.discipline.receive(&self.termios, &mut self.output, key)).collect()
    }

    fn sees(&mut self) -> Vec<u8> {
        let mut screen = [0; 8192];
        let (position, count) = self.output.peek(&mut screen);
        self.output.taken(position + count as u64);
        screen[..count].to_vec()
    }

    fn reads(&mut self, wanted: usize) -> Option<Vec<u8>> {
        self.discipline.readable(&self.termios, wanted)?;
        let bytes = self.discipline.front(&self.termios, wanted).to_vec();
        self.discipline.take(&self.termios, bytes.len());
        Some(bytes)
    }

    fn set_raw(&mut self) {
        let old = self.termios;
        self.termios.local &= !(lflag::ICANON | lflag::ECHO);
        self.discipline.mode_changed(&old, &self.termios);
    }
}

#[test]
fn a_line_is_readable_only_when_it_is_complete() {
    let mut typist = Typist::new();
    typist.types(b"echo");
    assert_eq!(typist.reads(100), None);
    typist.types(b" hi\r");
    assert_eq!(typist.reads(100).unwrap(), b"echo hi\n");
    assert_eq!(typist.sees(), b"echo hi\r\n");
}

#[test]
fn a_short_read_leaves_the_rest_of_the_line() {
    let mut typist = Typist::new();
    typist.types(b"abc\rdef\r");
    assert_eq!(typist.reads(2).unwrap(), b"ab");
    assert_eq!(typist.reads(100).unwrap(), b"c\n");
    assert_eq!(typist.reads(100).unwrap(), b"def\n");
    assert_eq!(typist.reads(100), None);
}

#[test]
fn end_of_file_ends_the_line_without_a_newline_and_alone_reads_as_nothing() {
    let mut typist = Typist::new();
    typist.types(b"abc\x04");
    assert_eq!(typist.reads(100).unwrap(), b"abc");
    typist.types(b"\x04");
    assert_eq!(typist.reads(100).unwrap(), b"");
    assert_eq!(typist.reads(100), None);
}

#[test]
fn erase_removes_a_character_and_its_picture() {
    let mut typist = Typist::new();
    typist.types(b"ab\x7fc\r");
    assert_eq!(typist.reads(100).unwrap(), b"ac\n");
    assert_eq!(typist.sees(), b"ab\x08 \x08c\r\n");
}

#[test]
fn erase_removes_a_whole_utf8_character() {
    let mut typist = Typist::new();
    typist.types("aé".as_bytes());
    typist.types(b"\x7f\r");
    assert_eq!(typist.reads(100).unwrap(), b"a\n");
    assert_eq!(typist.sees(), "aé\x08 \x08\r\n".as_bytes());
}

#[test]
fn erasing_a_tab_goes_back_to_where_it_began() {
    let mut typist = Typist::new();
    typist.types(b"abc\t\x7f");
    assert_eq!(typist.sees(), b"abc\t\x08\x08\x08\x08\x08");
}

#[test]
fn kill_and_word_erase_edit_the_line() {
    let mut typist = Typist::new();
    typist.types(b"rm -rf /\x15ls one two\x17\r");
    assert_eq!(typist.reads(100).unwrap(), b"ls one \n");
}

#[test]
fn control_v_takes_the_next_key_as_it_is() {
    let mut typist = Typist::new();
    assert!(typist.types(b"\x16\x03\r").is_empty());
    assert_eq!(typist.reads(100).unwrap(), b"\x03\n");
    assert_eq!(typist.sees(), b"^\x08^C\r\n");
}

#[test]
fn interrupt_drops_the_line_and_asks_for_the_signal() {
    let mut typist = Typist::new();
    assert_eq!(typist.types(b"half\x03"), [KeySignal::Interrupt]);
    typist.types(b"x\r");
    assert_eq!(typist.reads(100).unwrap(), b"x\n");
}

#[test]
fn without_isig_the_keys_are_data() {
    let mut typist = Typist::new();
    typist.termios.local &= !lflag::ISIG;
    assert!(typist.types(b"\x03\x1a\x1c\r").is_empty());
    assert_eq!(typist.reads(100).unwrap(), b"\x03\x1a\x1c\n");
}

#[test]
fn stop_holds_output_back_and_start_lets_it_go() {
    let mut typist = Typist::new();
    typist.types(b"\x13a");
    assert_eq!(typist.sees(), b"");
    typist.types(b"\x11");
    assert_eq!(typist.sees(), b"a");
}

#[test]
fn raw_mode_gives_each_byte_at_once() {
    let mut typist = Typist::new();
    typist.set_raw();
    typist.types(b"a");
    assert_eq!(typist.reads(100).unwrap(), b"a");
    assert_eq!(typist.reads(100), None);
    assert_eq!(typist.sees(), b"");
}

#[test]
fn raw_mode_with_minimum_zero_never_waits() {
    let mut typist = Typist::new();
    typist.set_raw();
    typist.termios.characters[cc::VMIN] = 0;
    assert_eq!(typist.reads(100).unwrap(), b"");
}

#[test]
fn what_was_typed_before_raw_mode_is_not_lost() {
    let mut typist = Typist::new();
    typist.types(b"ab");
    typist.set_raw();
    assert_eq!(typist.reads(100).unwrap(), b"ab");
}

#[test]
fn a_line_longer_than_the_limit_is_cut_but_can_be_ended() {
    let mut typist = Typist::new();
    typist.types(&[b'x'; 5000]);
    typist.types(b"\r");
    let line = typist.reads(10_000).unwrap();
    assert_eq!((line.len(), line[4095]), (4096, b'\n'));
}

#[test]
fn termios_survives_its_way_through_a_program() {
    let termios = Termios::initial();
    assert_eq!(Termios::from_bytes(&termios.to_bytes()), termios);
}

#[test]
fn input_never_exceeds_its_limit_whatever_the_mode() {
    let mut typist = Typist::new();
    typist.set_raw();
    typist.types(&[b'x'; MAX_INPUT + 1]);
    let raw = typist.termios;
    typist.termios.local |= lflag::ICANON;
    typist.discipline.mode_changed(&raw, &typist.termios);
    typist.types(b"\r\ry\r");
    assert_eq!(typist.discipline.len(), MAX_INPUT);
}
