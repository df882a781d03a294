//! /sys/class/graphics: the screen, as its driver tells it, and text on it. A file that root may write changes one thing.

use crate::fixed::{Entry, Setting, folder, line, number, screen, setting};
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
    screen("class/graphics/fb0/console", nothing),
    screen("class/graphics/fb0/cursor", nothing),
    line("class/graphics/fb0/dev", "29:0"),
    screen("class/graphics/fb0/mode", nothing),
    screen("class/graphics/fb0/modes", modes),
    screen("class/graphics/fb0/name", name),
    setting("class/graphics/fb0/pan", Setting::Screen(CHANGE_PLACE)),
    setting("class/graphics/fb0/rotate", Setting::Screen(CHANGE_ROTATION)),
    number("class/graphics/fb0/state", 0),
    screen("class/graphics/fb0/stride", stride),
    line("class/graphics/fb0/uevent", "MAJOR=29\nMINOR=0\nDEVNAME=fb0"),
    setting("class/graphics/fb0/virtual_size", Setting::Screen(CHANGE_WHOLE)),
    folder("class/graphics/fbcon"),
    number("class/graphics/fbcon/cursor_blink", 0),
    setting("class/graphics/fbcon/rotate", Setting::TextRotation),
    setting("class/graphics/fbcon/rotate_all", Setting::TextRotation),
];

/// What Linux has a file for and says nothing in.
fn nothing(_: &Screen, _: &mut Text) -> fmt::Result {
    Ok(())
}

fn modes(screen: &Screen, text: &mut Text) -> fmt::Result {
    let (width, height) = screen.size;
    writeln!(text, "U:{width}x{height}p-0")
}

fn name(screen: &Screen, text: &mut Text) -> fmt::Result {
    let name = screen.name.split(|byte| *byte == 0).next().unwrap_or_default();
    text.write_bytes(name)?;
    text.write_str("\n")
}

fn stride(screen: &Screen, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", u64::from(screen.whole.0) * u64::from(screen.depth / 8))
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
