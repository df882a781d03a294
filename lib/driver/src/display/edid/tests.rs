//! A display that QEMU plays, mutations of it, and nonsense.

use super::*;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The base block of QEMU's display at 1280×800, written by hand from the standard: RHT, product 0x1234, 2014, 325 × 203 mm.
fn block() -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    block[..8].copy_from_slice(&HEADER);
    block[8..10].copy_from_slice(&[0x49, 0x14]);
    block[10..12].copy_from_slice(&[0x34, 0x12]);
    block[16..20].copy_from_slice(&[42, 24, 1, 4]);
    block[21..23].copy_from_slice(&[32, 20]);
    block[35..38].copy_from_slice(&[0x21, 0x08, 0x00]);
    block[38..54].copy_from_slice(&[0xd1, 0xc0, 0x81, 0x80, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    // 1280×800 of 1700×840 at 107.1 MHz: 75 Hz; 325×203 mm.
    let timing = [0xd6, 0x29, 0x00, 0xa4, 0x51, 0x20, 0x28, 0x30, 0x30, 0x20, 0x36, 0x00, 0x45, 0xcb, 0x10, 0, 0, 0x18];
    block[54..72].copy_from_slice(&timing);
    block[72..90].copy_from_slice(b"\0\0\0\xfc\0QEMU Monitor\n");
    close(&mut block);
    block
}

fn close(block: &mut [u8; BLOCK_BYTES]) {
    block[127] = 0;
    block[127] = block.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
}

#[test]
fn a_display_says_who_made_it_how_large_it_is_and_what_it_shows() {
    let edid = Edid::parse(&block()).expect("an EDID");
    assert_eq!((&edid.manufacturer(), edid.product(), edid.serial()), (b"RHT", 0x1234, 0));
    assert_eq!((edid.week(), edid.year(), edid.version()), (Some(42), 2014, (1, 4)));
    assert_eq!((edid.size_mm(), edid.name()), (Some((325, 203)), Some("QEMU Monitor")));
    assert_eq!(edid.preferred(), Some(Mode::new(1280, 800, 75)));
    let timing = edid.timings().next().expect("has one");
    assert_eq!((timing.pixel_clock_hz, timing.total), (107_100_000, (1700, 840)));
    let established: Vec<Mode> = edid.established().collect();
    assert_eq!(established, [Mode::new(640, 480, 60), Mode::new(800, 600, 60), Mode::new(1024, 768, 60)]);
    let standard: Vec<Mode> = edid.standard().collect();
    assert_eq!(standard, [Mode::new(1920, 1080, 60), Mode::new(1280, 1024, 60)]);
}

#[test]
fn what_is_no_edid_is_refused() {
    let refusal = |bytes: &[u8]| Edid::parse(bytes).err();
    assert_eq!(refusal(&block()[..127]), Some(Refusal::Short));
    assert_eq!(refusal(&[0xff; 256]), Some(Refusal::Header));
    for at in 8..BLOCK_BYTES {
        let mut block = block();
        block[at] ^= 0x10;
        assert_eq!(refusal(&block), Some(Refusal::Checksum), "byte {at}");
    }
}

#[test]
fn before_revision_three_the_first_timing_is_preferred_only_if_that_is_said() {
    let mut block = block();
    block[19] = 3;
    close(&mut block);
    assert_eq!(Edid::parse(&block).map(|edid| edid.preferred()).ok(), Some(None));
    block[24] = 2;
    close(&mut block);
    assert_eq!(Edid::parse(&block).ok().and_then(|edid| edid.preferred()), Some(Mode::new(1280, 800, 75)));
}

#[test]
fn no_bytes_with_a_good_checksum_harm_anybody() {
    let mut seed = 1_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let rounds = if std::env::var_os("SKINK_DEEP").is_some() { 1_000_000 } else { 200_000 };
    for _ in 0..rounds {
        let mut block = block();
        for _ in 0..random() % 20 {
            block[8 + (random() % 119) as usize] = random() as u8;
        }
        close(&mut block);
        let edid = Edid::parse(&block).expect("the header and the sum are right");
        assert!(edid.modes().count() <= 4 + 8 + 17);
        assert!(edid.modes().all(|mode| mode.width > 0 && mode.height > 0));
        assert!(edid.size_mm().is_none_or(|(width, height)| width > 0 && height > 0));
        assert!(edid.name().is_none_or(|name| name.len() <= 13));
        let _ = (edid.manufacturer(), edid.preferred(), edid.week(), edid.extensions());
    }
}

/// Base blocks of real displays, and what Debian's `edid-decode` (0.1~git20220315) says of each: manufacturer, product, serial number, week, year,
/// version, size in mm, established, standard and detailed timings, name.
const DISPLAYS: &str = include_str!("displays.txt");

fn set_of(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_string).collect()
}

fn modes(modes: impl Iterator<Item = Mode>) -> BTreeSet<String> {
    modes.map(|mode| format!("{}x{}@{}", mode.width, mode.height, mode.refresh_hz)).collect()
}

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

#[test]
fn real_displays_are_read_as_edid_decode_reads_them() {
    let mut count = 0;
    for line in DISPLAYS.lines() {
        let [hex, maker, product, serial, week, year, version, size, established, standard, detailed, name] =
            line.split('|').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
        let edid = Edid::parse(&bytes).expect("an EDID");
        let said =
            (edid.product().to_string(), edid.serial().to_string(), or_none(edid.week()), edid.year().to_string());
        let expected = (product.into(), serial.into(), week.into(), year.into());
        assert_eq!((&edid.manufacturer()[..], said), (maker.as_bytes(), expected), "{name}");
        assert_eq!(format!("{}.{}", edid.version().0, edid.version().1), version, "{name}");
        assert_eq!(or_none(edid.size_mm().map(|(width, height)| format!("{width}x{height}"))), size, "{name}");
        assert_eq!(modes(edid.established()), set_of(established), "{name}");
        assert_eq!(modes(edid.standard()), set_of(standard), "{name}");
        let timings = edid.timings().map(|timing| {
            let (Mode { width, height, refresh_hz }, mark) = (timing.mode, if timing.is_interlaced { "i" } else { "" });
            format!("{width}x{height}{mark}@{refresh_hz}")
        });
        assert_eq!(timings.collect::<BTreeSet<_>>(), set_of(detailed), "{name}");
        assert_eq!(edid.name().unwrap_or("-").trim(), name.trim());
        count += 1;
    }
    assert!(count >= 40, "{count} displays");
}
