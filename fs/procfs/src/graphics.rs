//! /sys/class/graphics: the screen, as its driver tells it, and text on it. A file that root may write changes one thing.

use crate::fixed::{Entry, Setting, folder, line, number, setting, text};
use crate::source::{Screen, Source};
use crate::text::Text;
use abi::Errno;
use abi::display::{CHANGE_BLANK, CHANGE_DEPTH, CHANGE_PLACE, CHANGE_ROTATION, CHANGE_WHOLE};
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The files of Linux's fbdev and of its console on one.
#[rustfmt::skip]
pub const GRAPHICS: &[Entry] = &[
    folder("class/graphics"),
    folder("class/graphics/fb0"),
    setting("class/graphics/fb0/bits_per_pixel", Setting::Screen(CHANGE_DEPTH)),
    setting("class/graphics/fb0/blank", Setting::Screen(CHANGE_BLANK)),
    text("class/graphics/fb0/console", nothing),
    text("class/graphics/fb0/cursor", nothing),
    line("class/graphics/fb0/dev", "29:0"),
    text("class/graphics/fb0/mode", nothing),
    text("class/graphics/fb0/modes", modes),
    text("class/graphics/fb0/name", name),
    setting("class/graphics/fb0/pan", Setting::Screen(CHANGE_PLACE)),
    setting("class/graphics/fb0/rotate", Setting::Screen(CHANGE_ROTATION)),
    number("class/graphics/fb0/state", 0),
    text("class/graphics/fb0/stride", stride),
    line("class/graphics/fb0/uevent", "MAJOR=29\nMINOR=0\nDEVNAME=fb0"),
    setting("class/graphics/fb0/virtual_size", Setting::Screen(CHANGE_WHOLE)),
    folder("class/graphics/fbcon"),
    number("class/graphics/fbcon/cursor_blink", 0),
    setting("class/graphics/fbcon/rotate", Setting::TextRotation),
    setting("class/graphics/fbcon/rotate_all", Setting::TextRotation),
];

fn of_screen(source: &mut dyn Source) -> Result<Screen, fmt::Error> {
    source.screen().map_err(|_| fmt::Error)
}

/// What Linux has a file for and says nothing in.
fn nothing(source: &mut dyn Source, _: &mut Text) -> fmt::Result {
    of_screen(source).map(drop)
}

fn modes(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let (width, height) = of_screen(source)?.size;
    writeln!(text, "U:{width}x{height}p-0")
}

fn name(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let name = of_screen(source)?.name;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    text.write_bytes(&name[..end])?;
    text.write_str("\n")
}

fn stride(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let Screen { whole: (width, _), depth, .. } = of_screen(source)?;
    writeln!(text, "{}", u64::from(width) * u64::from(depth / 8))
}

/// What a file says that changes this thing.
///
/// # Errors
/// `ENODEV`; `ENOMEM`.
pub fn content(source: &mut dyn Source, what: u64) -> Result<Vec<u8>, Errno> {
    let screen = source.screen()?;
    let pair = |(first, second): (u32, u32)| Text::of(|text| writeln!(text, "{first},{second}"));
    let number = |number: u32| Text::of(|text| writeln!(text, "{number}"));
    match what {
        CHANGE_PLACE => pair(screen.place),
        CHANGE_WHOLE => pair(screen.whole),
        CHANGE_DEPTH => number(screen.depth),
        CHANGE_ROTATION => number(screen.rotation),
        _ => Ok(Vec::new()),
    }
}

/// What a line that is written to such a file asks for.
///
/// # Errors
/// `EINVAL`: it is no number, or no two where two are wanted.
pub fn value(what: u64, line: &[u8]) -> Result<u64, Errno> {
    let line = core::str::from_utf8(line).map_err(|_| Errno::EINVAL)?.trim();
    let number = |text: &str| text.parse::<u32>().map(u64::from).map_err(|_| Errno::EINVAL);
    if !matches!(what, CHANGE_PLACE | CHANGE_WHOLE) {
        return number(line);
    }
    let (first, second) = line.split_once([',', ' ']).ok_or(Errno::EINVAL)?;
    Ok(number(first)? | number(second.trim_start())? << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_number_or_two() {
        assert_eq!(value(CHANGE_ROTATION, b"3"), Ok(3));
        assert_eq!(value(CHANGE_PLACE, b"0,800"), Ok(800 << 32));
        assert_eq!(value(CHANGE_WHOLE, b"1280 1600 "), Ok(1280 | 1600 << 32));
        for line in [&b""[..], b"x", b"-1", b"1,2", b"4294967296", b"\xff"] {
            assert_eq!(value(CHANGE_ROTATION, line), Err(Errno::EINVAL));
        }
        for line in [&b"1"[..], b",", b"1,", b"1,x", b"1,2,3"] {
            assert_eq!(value(CHANGE_PLACE, line), Err(Errno::EINVAL));
        }
    }
}
