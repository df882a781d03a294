//! What bytes do to a terminal: cases of vttest, answers, snapshots, and random bytes beside two other emulators.

use crate::cell::{Colour, Pen, attribute};
use crate::grid::Size;
use crate::terminal::{Terminal, mode};
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
use recover::snapshot::{Reader, Writer};

const SIZE: Size = Size { rows: 6, columns: 20 };

fn terminal() -> Terminal {
    Terminal::new(SIZE).expect("there is memory")
}

fn shown(bytes: &[u8]) -> Terminal {
    let mut terminal = terminal();
    terminal.write(bytes);
    terminal
}

fn rows(terminal: &Terminal) -> Vec<String> {
    let grid = &terminal.screen().grid;
    let row = |row| {
        let cells = grid.row(row).iter().filter(|cell| !cell.is_second());
        cells.map(|cell| cell.character()).collect::<String>().trim_end().to_string()
    };
    (0..grid.size().rows).map(row).collect()
}

fn place(terminal: &Terminal) -> (usize, usize) {
    (terminal.screen().cursor.row, terminal.screen().cursor.column)
}

#[test]
fn what_is_erased_keeps_the_colours_that_programs_read() {
    let mut terminal = Terminal::new(Size { rows: 2, columns: 10 }).expect("there is memory");
    terminal.write(b"\x1b[30;46;1;4;7mab\x1b[K\x1b[m\x1b[2;1Hc\x1b[K");
    let attributes = |row: usize| terminal.screen().grid.row(row).iter().map(|cell| cell.vga()).collect::<Vec<_>>();
    // Black on cyan, as Linux has it; bold, underlined and reversed is the text alone.
    assert_eq!(attributes(0)[2..], [0x30; 8]);
    assert_eq!(attributes(1), [0x07; 10]);
}

#[test]
fn text_wraps_behind_the_last_column_only_when_more_comes() {
    let mut terminal = shown(b"12345678901234567890");
    assert_eq!(place(&terminal), (0, 19));
    terminal.write(b"x");
    assert_eq!((rows(&terminal)[1].as_str(), place(&terminal)), ("x", (1, 1)));
    assert_eq!(rows(&shown(b"\x1b[?7l12345678901234567890xy"))[0], "1234567890123456789y");
    assert_eq!(place(&shown(b"12345678901234567890\x08")), (0, 18));
}

#[test]
fn lines_scroll_within_the_region_only() {
    let text = b"a\r\nb\r\nc\r\nd\r\ne\r\nf\x1b[2;4r\x1b[4;1H\n\nX\x1b[2;1H\x1bMY";
    assert_eq!(rows(&shown(text)), ["a", "Y", "d", "", "e", "f"]);
}

#[test]
fn lines_and_characters_are_inserted_and_deleted_at_the_cursor() {
    assert_eq!(rows(&shown(b"a\r\nb\r\nc\x1b[2;1H\x1b[L"))[..4], ["a", "", "b", "c"]);
    assert_eq!(rows(&shown(b"a\r\nb\r\nc\x1b[1;1H\x1b[2M"))[..2], ["c", ""]);
    assert_eq!(rows(&shown(b"abcdef\x1b[1;2H\x1b[2@\x1b[1;7H\x1b[P"))[0], "a  bcdf");
    assert_eq!(rows(&shown(b"abcdef\x1b[1;2H\x1b[4hxy\x1b[4lZ"))[0], "axyZcdef");
    assert_eq!(rows(&shown(b"abcdef\x1b[1;3H\x1b[2X"))[0], "ab  ef");
}

#[test]
fn erasing_reaches_to_the_end_from_the_start_or_all() {
    let begin = b"aaa\r\nbbb\r\nccc\x1b[2;2H";
    let after = |end: &[u8]| rows(&shown(&[begin, end].concat()))[..3].join("/");
    assert_eq!([after(b"\x1b[J"), after(b"\x1b[1J"), after(b"\x1b[2J")], ["aaa/b/", "/  b/ccc", "//"]);
    assert_eq!([after(b"\x1b[K"), after(b"\x1b[1K"), after(b"\x1b[2K")], ["aaa/b/ccc", "aaa/  b/ccc", "aaa//ccc"]);
}

#[test]
fn origin_mode_counts_from_the_region() {
    let terminal = shown(b"\x1b[2;4r\x1b[?6h\x1b[1;1HX\x1b[9;1HY\x1b[6n");
    assert_eq!(rows(&terminal)[..4], ["", "X", "", "Y"]);
    assert_eq!(terminal.screen().answers, b"\x1b[3;2R");
}

#[test]
fn questions_are_answered_as_linux_does() {
    assert_eq!(shown(b"\x1b[c\x1b[5n\x1b[3;4H\x1b[6n\x1bZ").screen().answers, b"\x1b[?6c\x1b[0n\x1b[3;4R\x1b[?6c");
    let many = shown(&b"\x1b[c".repeat(1000));
    assert!(many.screen().answers.len() <= crate::terminal::ANSWER_BYTES, "nobody has read");
}

#[test]
fn tab_stops_are_set_and_cleared() {
    assert_eq!(place(&shown(b"\t")), (0, 8));
    assert_eq!(place(&shown(b"\x1b[3g\x1b[1;5H\x1bH\r\t")), (0, 4));
    assert_eq!(place(&shown(b"\x1b[3g\t")), (0, 19));
}

#[test]
fn lines_are_drawn_with_the_graphics_set() {
    assert_eq!(rows(&shown(b"\x1b(0lqk\x1b(Bq\x0eq\x0fq"))[0], "┌─┐q─q");
}

#[test]
fn colours_and_attributes_are_set_and_reset() {
    let pen = |bytes: &[u8]| shown(bytes).screen().cursor.pen;
    let (bold, plain) = (attribute::BOLD, Pen::PLAIN);
    assert_eq!(pen(b"\x1b[1;31m"), Pen { foreground: Colour::palette(1), attributes: bold, ..plain });
    assert_eq!(pen(b"\x1b[38;5;200;48;2;1;2;3m").background, Colour::rgb(1, 2, 3));
    assert_eq!(pen(b"\x1b[97;104m").foreground, Colour::palette(15));
    assert_eq!(pen(b"\x1b[1;7;31;44m\x1b[22;27;39;49m"), plain);
    assert_eq!(pen(b"\x1b[31m\x1b[38;9;1m\x1b[m"), plain);
}

#[test]
fn wide_characters_take_two_columns_and_never_the_last_alone() {
    let terminal = shown("\x1b[1;20H中a\u{301}b".as_bytes());
    assert_eq!(rows(&terminal)[..2], ["", "中ab"]);
    assert_eq!(place(&terminal), (1, 4));
}

#[test]
fn the_alternate_screen_leaves_the_main_one_as_it_was() {
    let mut terminal = shown(b"main\x1b[?1049h\x1b[31malt");
    assert_eq!(rows(&terminal)[0], "    alt");
    terminal.write(b"\x1b[?1049l!");
    assert_eq!((rows(&terminal)[0].as_str(), terminal.screen().has(mode::ALTERNATE)), ("main!", false));
}

#[test]
fn vttest_fills_the_screen_with_letters() {
    let terminal = shown(b"\x1b#8");
    assert!(rows(&terminal).iter().all(|row| row == &"E".repeat(20)));
}

#[test]
fn a_snapshot_at_rest_goes_on_as_the_terminal_itself() {
    let begin = "a\x1b[1;31mb\x1b[2;5r\x1b[?6h\x1b[?1049h中\x1b7\x1b)0\x0eq\x1b[c".as_bytes();
    let end = b"x\x1b8y\x1b[?1049lz\x0fq\n\n\n\n\x1b[6n";
    let mut first = shown(begin);
    assert!(first.is_at_rest());
    let mut writer = Writer::default();
    first.save(&mut writer);
    let mut second = Terminal::load(&mut Reader::new(writer.bytes())).expect("was saved");
    first.write(end);
    second.write(end);
    let saved = [&first, &second].map(|terminal| {
        let mut writer = Writer::default();
        terminal.save(&mut writer);
        writer.bytes().to_vec()
    });
    assert_eq!(saved[0], saved[1]);
}

#[test]
fn another_size_leaves_everything_inside() {
    let mut terminal = shown(b"a\r\nb\r\nc\x1b[6;20H\x1b7\x1b[2;6r\x1b[?1049h");
    for size in [Size { rows: 1, columns: 2 }, Size { rows: 75, columns: 240 }, Size { rows: 3, columns: 4 }] {
        terminal.screen_mut().resize(size).expect("there is memory");
        terminal.write(b"\x1b8\x1b[?1049l\x1b[?1049hhello\x1b[99;99H!\n\n\n\x1b[L\x1b[M\x1b[9@\x1b[9P");
        assert_eq!(terminal.screen().size(), size);
    }
}

/// A generator of numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Letters of one column.
const NARROW: &str = "äöéß";

/// Random text, controls and sequences that both emulators know and mean the same by. Behind a full row the other one moves as if the cursor
/// were right of it, so there the row is left;
/// in the middle of a wide character it inserts behind it, so rows have either wide characters or changes inside.
fn random_bytes(random: &mut Random, letters: &str) -> Vec<u8> {
    let (mut bytes, mut shown, mut ours) = (Vec::new(), 0, terminal());
    for _ in 0..random.below(40) + 1 {
        ours.write(&bytes[shown..]);
        shown = bytes.len();
        if ours.screen().cursor.wraps && random.below(3) > 0 {
            bytes.push(b'\r');
        } else if ours.screen().cursor.wraps {
            bytes.extend(b"wrapped ");
        }
        let (first, second) = (random.below(9), random.below(24));
        match random.below(17) {
            0..=6 => bytes.extend((0..random.below(9)).map(|_| b'a' + random.below(26) as u8)),
            7 => bytes.extend(letters.chars().nth(random.below(4) as usize).into_iter().collect::<String>().bytes()),
            8 => bytes.extend([&b"\r\n"[..], b"\n", b"\r", b"\x08", b"\t"][random.below(5) as usize]),
            9 => bytes.extend(format!("\x1b[{};{}H", first + 1, second + 1).bytes()),
            14 => bytes.extend(format!("\x1b[{}{}", first, ["C", "D"][random.below(2) as usize]).bytes()),
            // The third one leaves the first row when all above the second one is to be erased.
            11 if ours.screen().cursor.row < 2 => bytes.extend(format!("\x1b[{}K", random.below(3)).bytes()),
            11 => bytes.extend(format!("\x1b[{}{}", random.below(3), ["J", "K"][random.below(2) as usize]).bytes()),
            // Above the region lines are inserted by Linux, and not by the other one.
            12 => bytes
                .extend(format!("\x1b[r\x1b[{second}H\x1b[{first}{}", ["L", "M"][random.below(2) as usize]).bytes()),
            10 if !letters.contains('中') => {
                // The third one erases at the end of the row as many as are to be deleted, even if there are fewer behind the cursor.
                let first = first.min((SIZE.columns - ours.screen().cursor.column) as u64);
                bytes.extend(format!("\x1b[{first}{}", ["@", "P", "X"][random.below(3) as usize]).bytes())
            }
            13 => bytes.extend(format!("\x1b[{};{}r\x1b[H", first % 3 + 1, second % 3 + 4).bytes()),
            15 => bytes.extend(format!("\x1b[{}m", [0, 1, 4, 7, 31, 44, 39, 49][random.below(8) as usize]).bytes()),
            _ => bytes.extend([&b"\x1b7"[..], b"\x1b8"][random.below(2) as usize]),
        }
    }
    bytes
}

fn other_rows(parser: &vt100::Parser) -> Vec<String> {
    parser.screen().rows(0, SIZE.columns as u16).map(|row| row.trim_end().to_string()).collect()
}

#[test]
fn random_sequences_give_what_another_emulator_gives() {
    let rounds = if std::env::var_os("SKINK_DEEP").is_some() { 1_000_000 } else { 20_000 };
    let mut random = Random(1);
    for round in 0..rounds {
        let letters = ["ä中é국", NARROW][random.below(2) as usize];
        let bytes = random_bytes(&mut random, letters);
        let ours = shown(&bytes);
        let mut other = vt100::Parser::new(SIZE.rows as u16, SIZE.columns as u16, 0);
        other.process(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(rows(&ours), other_rows(&other), "round {round}: {text:?}");
    }
}

/// The size of the third emulator.
struct Lines;

impl Dimensions for Lines {
    fn total_lines(&self) -> usize {
        SIZE.rows
    }
    fn screen_lines(&self) -> usize {
        SIZE.rows
    }
    fn columns(&self) -> usize {
        SIZE.columns
    }
}

fn rows_of_alacritty(bytes: &[u8]) -> Vec<String> {
    let mut other = Term::new(Config::default(), &Lines, VoidListener);
    Processor::<StdSyncHandler>::new().advance(&mut other, bytes);
    let row = |line: usize| {
        let cells = &other.grid()[Line(line as i32)];
        let cells = (0..SIZE.columns).map(|column| &cells[Column(column)]);
        let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
        let cells = cells.filter(|cell| !cell.flags.intersects(spacers));
        // It keeps tabs in its cells.
        cells
            .map(|cell| cell.c)
            .map(|letter| if letter == '\t' { ' ' } else { letter })
            .collect::<String>()
            .trim_end()
            .to_string()
    };
    (0..SIZE.rows).map(row).collect()
}

#[test]
fn random_sequences_give_what_a_third_emulator_gives() {
    let rounds = if std::env::var_os("SKINK_DEEP").is_some() { 1_000_000 } else { 20_000 };
    let mut random = Random(3);
    for round in 0..rounds {
        // Of a wide character that is half erased, it keeps the other half.
        let bytes = random_bytes(&mut random, NARROW);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(rows(&shown(&bytes)), rows_of_alacritty(&bytes), "round {round}: {text:?}");
    }
}

#[test]
fn random_bytes_harm_nobody_and_leave_wide_characters_whole() {
    let rounds = if std::env::var_os("SKINK_DEEP").is_some() { 1_000_000 } else { 5_000 };
    let mut random = Random(2);
    let mut terminal = terminal();
    for _ in 0..rounds {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random_byte(&mut random)).collect();
        terminal.write(&bytes);
        let screen = terminal.screen();
        let size = screen.size();
        assert!(screen.cursor.row < size.rows && screen.cursor.column < size.columns);
        for row in 0..size.rows {
            let cells = screen.grid.row(row);
            for (column, cell) in cells.iter().enumerate() {
                let next = cells.get(column + 1);
                assert_eq!(cell.is_wide(), next.is_some_and(|next| next.is_second()), "{bytes:?}");
            }
        }
        if random.below(100) == 0 {
            let size = Size { rows: 1 + random.below(80) as usize, columns: 1 + random.below(300) as usize }.limited();
            terminal.screen_mut().resize(size).expect("there is memory");
        }
    }
}

/// Bytes that make sequences often.
fn random_byte(random: &mut Random) -> u8 {
    match random.below(8) {
        0 => 0x1b,
        1 => b'[',
        2 => b'0' + random.below(12) as u8,
        3 => 0x40 + random.below(0x3f) as u8,
        4 => [0xe4, 0xb8, 0xad, b'?'][random.below(4) as usize],
        _ => random.below(256) as u8,
    }
}
