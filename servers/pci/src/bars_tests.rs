//! Tests of measuring and placing.

use crate::bars::{BARS, Range, Sizes, measure, place, read};
use crate::config::{Address, ConfigSpace, register};
use crate::simulated::Machine;

const DISK: Address = Address::new(0, 3, 0);

fn machine() -> Machine {
    let mut machine = Machine::default();
    machine.add(DISK, 0x1af4, 0x1042);
    machine.set(DISK, register::COMMAND, 7);
    machine
}

fn parts(range: Range) -> (u64, u64, bool) {
    (range.start, range.bytes, range.ports)
}

#[test]
fn ranges_of_every_kind_are_measured_and_left_as_they_were() {
    let mut machine = machine();
    machine.set_bar(DISK, 0, 0xc001, 0xffc0);
    machine.set_bar(DISK, 1, 0xfebd_1000, 0xffff_f000);
    machine.set_bar(DISK, 4, 0xfe00_000c, 0xffff_c000);
    machine.set_bar(DISK, 5, 1, 0xffff_ffff);
    let ranges = measure(&mut machine, DISK);
    assert_eq!(parts(ranges[0]), (0xc000, 64, true));
    assert_eq!(parts(ranges[1]), (0xfebd_1000, 4096, false));
    assert_eq!(parts(ranges[4]), (0x1_fe00_0000, 16384, false));
    assert_eq!([ranges[2], ranges[3], ranges[5]].map(|range| range.bytes), [0; 3]);
    assert_eq!(machine.read32(DISK, 16), 0xc001);
    assert_eq!(machine.read32(DISK, 36), 1);
    assert_eq!(machine.read(DISK, register::COMMAND, 2), 7);
    assert!(!machine.moved_while_decoding);
    machine.has_stopped_one = false;
    machine.writes_left = Some(0);
    assert_eq!(read(&mut machine, DISK, Sizes::of(&ranges)), ranges);
}

#[test]
fn lengths_pass_through_a_word() {
    let mut ranges = [Range::default(); BARS];
    for (range, bits) in ranges.iter_mut().zip([2, 12, 63, 0, 32]) {
        range.bytes = 1 << bits;
    }
    let sizes = Sizes::of(&ranges);
    assert_eq!(Sizes::from_word(sizes.word()), Some(sizes));
    let mut machine = machine();
    for bar in 0..BARS {
        machine.set_bar(DISK, bar, 0x1000, 0);
    }
    assert_eq!(read(&mut machine, DISK, sizes).map(|range| range.bytes), ranges.map(|range| range.bytes));
    assert_eq!(Sizes::from_word(0), None);
    let none = Sizes::from_word(Sizes::of(&[Range::default(); BARS]).word()).expect("was measured");
    assert_eq!(read(&mut machine, DISK, none), [Range::default(); BARS]);
    let nonsense = Sizes::from_word(u64::MAX).expect("a word from rs");
    assert_eq!(read(&mut machine, DISK, nonsense).map(|range| range.bytes), [0; BARS]);
}

#[test]
fn a_range_above_four_gigabytes_is_measured_whole() {
    let mut machine = machine();
    machine.set_bar(DISK, 0, 12, 0);
    machine.set_bar(DISK, 1, 0x80, 0xffff_fff0);
    assert_eq!(parts(measure(&mut machine, DISK)[0]), (0x80_0000_0000, 16 << 32, false));
}

#[test]
fn what_the_firmware_has_not_placed_gets_a_place_of_its_own() {
    let mut machine = machine();
    machine.set_bar(DISK, 0, 0, 0xffff_c000);
    machine.set_bar(DISK, 1, 0, 0xffff_f000);
    machine.set_bar(DISK, 2, 1, 0xffe0);
    let taken = [Range { start: 0xf000_0000, bytes: 0x1000, ..Range::default() }];
    let mut ranges = measure(&mut machine, DISK);
    machine.set(DISK, register::COMMAND, 0);
    place(&mut machine, DISK, &mut ranges, &taken);
    assert_eq!(parts(ranges[0]), (0xf000_4000, 0x4000, false));
    assert_eq!(parts(ranges[1]), (0xf000_1000, 0x1000, false));
    assert_eq!(parts(ranges[2]), (0xd000, 32, true));
    assert_eq!(machine.read32(DISK, 16), 0xf000_4000);
    assert_eq!(machine.read32(DISK, 24), 0xd001);
}

#[test]
fn a_range_too_long_for_the_window_is_dropped() {
    let mut machine = machine();
    machine.set_bar(DISK, 0, 0, 0x8000_0000);
    let mut ranges = measure(&mut machine, DISK);
    assert_eq!(ranges[0].bytes, 0x8000_0000);
    place(&mut machine, DISK, &mut ranges, &[]);
    assert_eq!(ranges, [Range::default(); BARS]);
}
