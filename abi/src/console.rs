//! The protocol between tty and console, beside `chardev::serial`: the terminals that are shown on a screen. Bytes go as over a serial line, each
//! exactly once.
//!
//! ioctls of Linux's consoles (ioctl_console(2)) pass through tty as they are; the memory at their argument is copied both ways in a grant of
//! tty's own, as [`argument`] says. Those of fonts have a structure there that points to further memory ([`font_memory`]): console gets both, one behind
//! the other.

use crate::Errno;

/// Terminals on the screen.
pub const TERMINALS: usize = 6;
/// `chardev`, tty to console: the minor of terminal 1.
pub const MINOR_TERMINAL: u64 = 0x8000;
/// `chardev`, vfs to tty: the minor of the terminal that is shown when it is opened (/dev/tty0). Those of terminals follow.
pub const MINOR_SHOWN: u64 = MINOR_TERMINAL - 1;
/// `Control`: returns the state of the screen as soon as it is not `argument`: rows in the low 16 bits, columns in the next, then the number of
/// the terminal that is shown, from 1.
pub const WAIT_FOR_CHANGE: u64 = 0x100;

/// `Control`: returns the next signal of a switch (`VT_SETMODE`) as soon as there is one: the process in the low half, the signal in the high
/// half. `argument`: how many tty has taken, so that each comes once.
pub const WAIT_FOR_SIGNAL: u64 = 0x101;
/// `Control`: the program that had the terminal for itself has ended. It shows text, takes keys as characters, and is left when another is to
/// be shown.
pub const TAKE_BACK: u64 = 0x102;

/// ioctls of consoles.
pub mod ioctl {
    #![allow(missing_docs)]
    pub const KDGETLED: u64 = 0x4b31;
    pub const KDSETLED: u64 = 0x4b32;
    pub const KDGKBTYPE: u64 = 0x4b33;
    pub const KDSETMODE: u64 = 0x4b3a;
    pub const KDGETMODE: u64 = 0x4b3b;
    pub const KDGKBMODE: u64 = 0x4b44;
    pub const KDSKBMODE: u64 = 0x4b45;
    pub const KDGKBENT: u64 = 0x4b46;
    pub const KDSKBENT: u64 = 0x4b47;
    pub const KDGKBSENT: u64 = 0x4b48;
    pub const KDSKBSENT: u64 = 0x4b49;
    pub const KDGKBDIACR: u64 = 0x4b4a;
    pub const KDSKBDIACR: u64 = 0x4b4b;
    pub const KDGKBMETA: u64 = 0x4b62;
    pub const KDSKBMETA: u64 = 0x4b63;
    pub const KDGKBLED: u64 = 0x4b64;
    pub const KDSKBLED: u64 = 0x4b65;
    pub const GIO_UNIMAP: u64 = 0x4b66;
    pub const PIO_UNIMAP: u64 = 0x4b67;
    pub const PIO_UNIMAPCLR: u64 = 0x4b68;
    pub const KDFONTOP: u64 = 0x4b72;
    pub const KDGKBDIACRUC: u64 = 0x4bfa;
    pub const KDSKBDIACRUC: u64 = 0x4bfb;
    /// The byte at its argument says what is meant; 6: which modifiers are held.
    pub const TIOCLINUX: u64 = 0x541c;
    pub const VT_OPENQRY: u64 = 0x5600;
    pub const VT_GETMODE: u64 = 0x5601;
    pub const VT_SETMODE: u64 = 0x5602;
    pub const VT_GETSTATE: u64 = 0x5603;
    pub const VT_RELDISP: u64 = 0x5605;
    pub const VT_ACTIVATE: u64 = 0x5606;
    pub const VT_WAITACTIVE: u64 = 0x5607;
    pub const VT_DISALLOCATE: u64 = 0x5608;
    pub const VT_LOCKSWITCH: u64 = 0x560b;
    pub const VT_UNLOCKSWITCH: u64 = 0x560c;
}

/// Bytes of the largest argument.
pub const MAX_ARGUMENT_BYTES: usize = 8;

/// How many bytes of the memory at its argument an ioctl reads and how many it writes. `None`: it is none of consoles.
pub const fn argument(request: u64) -> Option<(usize, usize)> {
    use ioctl::*;
    match request {
        KDGETLED | KDGKBTYPE | KDGKBLED => Some((0, 1)),
        KDGETMODE | KDGKBMODE | KDGKBMETA | VT_OPENQRY => Some((0, 4)),
        VT_GETMODE => Some((0, 8)),
        VT_GETSTATE => Some((0, 6)),
        KDSKBENT => Some((4, 0)),
        VT_SETMODE => Some((8, 0)),
        KDGKBENT => Some((4, 4)),
        TIOCLINUX => Some((1, 1)),
        KDSETLED | KDSETMODE | KDSKBMODE | KDSKBMETA | KDSKBLED | VT_RELDISP | VT_ACTIVATE | VT_WAITACTIVE
        | VT_DISALLOCATE | VT_LOCKSWITCH | VT_UNLOCKSWITCH => Some((0, 0)),
        _ => None,
    }
}

/// How many bytes at the argument an ioctl needs whose argument is longer than vfs grants, and whether it writes there. It gets them in a
/// further step (`chardev::Continue`).
pub const fn long_argument(request: u64) -> Option<(usize, bool)> {
    use ioctl::*;
    match request {
        // A number and a string.
        KDGKBSENT => Some((1 + 512, true)),
        KDSKBSENT => Some((1 + 512, false)),
        // A count and so many accents: three bytes each, or three words.
        KDGKBDIACR => Some((4 + 256 * 3, true)),
        KDSKBDIACR => Some((4 + 256 * 3, false)),
        KDGKBDIACRUC => Some((4 + 256 * 12, true)),
        KDSKBDIACRUC => Some((4 + 256 * 12, false)),
        _ => None,
    }
}

/// What `KDFONTOP` does, by the first word of `struct console_font_op`; then flags, width, height, the count of glyphs, and a pointer.
pub mod font {
    #![allow(missing_docs)]
    pub const SET: u32 = 0;
    pub const GET: u32 = 1;
    pub const SET_DEFAULT: u32 = 2;
    /// Largest glyph, and lines that each takes in memory.
    pub const MAX_SIDE: usize = 32;
    pub const MAX_GLYPHS: usize = 512;
}

/// Bytes of the structure at the argument of a font's ioctl: `struct console_font_op`, or `struct unimapdesc`, or nothing that matters. `None`: it is none
/// of fonts.
pub const fn font_argument(request: u64) -> Option<usize> {
    match request {
        ioctl::KDFONTOP => Some(MAX_FONT_ARGUMENT),
        ioctl::GIO_UNIMAP | ioctl::PIO_UNIMAP => Some(16),
        ioctl::PIO_UNIMAPCLR => Some(0),
        _ => None,
    }
}

/// Limit of [`font_argument`].
pub const MAX_FONT_ARGUMENT: usize = 32;

/// A word of a font's structure. `at`: its number.
pub const fn font_word(structure: &[u8; MAX_FONT_ARGUMENT], at: usize) -> u32 {
    let [one, two, three, four] =
        [structure[4 * at], structure[4 * at + 1], structure[4 * at + 2], structure[4 * at + 3]];
    u32::from_le_bytes([one, two, three, four])
}

/// Where the further memory of a font's ioctl is and how many bytes it has. `EINVAL`: more than any font has.
///
/// # Errors
/// `EINVAL`.
pub fn font_memory(request: u64, structure: &[u8; MAX_FONT_ARGUMENT]) -> Result<(u64, usize), Errno> {
    let word = |at| font_word(structure, at);
    let pointer = |at| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
    match request {
        ioctl::KDFONTOP if matches!(word(0), font::SET | font::GET) && pointer(6) != 0 => {
            let (width, count) = (word(2) as usize, word(4) as usize);
            match (width, count) {
                (1..=font::MAX_SIDE, 1..=font::MAX_GLYPHS) => {
                    Ok((pointer(6), width.div_ceil(8) * font::MAX_SIDE * count))
                }
                _ => Err(Errno::EINVAL),
            }
        }
        // The name of a font of the system's own: its first byte, for it is none in any case.
        ioctl::KDFONTOP if word(0) == font::SET_DEFAULT && pointer(6) != 0 => Ok((pointer(6), 1)),
        ioctl::GIO_UNIMAP | ioctl::PIO_UNIMAP => Ok((pointer(2), 4 * (word(0) & 0xffff) as usize)),
        _ => Ok((0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(words: [u32; 8]) -> [u8; MAX_FONT_ARGUMENT] {
        core::array::from_fn(|at| words[at / 4].to_le_bytes()[at % 4])
    }

    #[test]
    fn the_memory_of_a_font_follows_from_its_size() {
        let set =
            |width, count| font_memory(ioctl::KDFONTOP, &structure([font::SET, 0, width, 16, count, 0, 0x1000, 2]));
        assert_eq!(set(8, 256), Ok((0x2_0000_1000, 256 * 32)));
        assert_eq!(set(32, 512), Ok((0x2_0000_1000, 64 << 10)));
        for (width, count) in [(0, 256), (33, 256), (8, 0), (8, 513), (u32::MAX, u32::MAX)] {
            assert_eq!(set(width, count), Err(Errno::EINVAL));
        }
        let map = structure([3, 0, 0x2000, 1, 0, 0, 0, 0]);
        let named = |low, high| font_memory(ioctl::KDFONTOP, &structure([font::SET_DEFAULT, 0, 0, 0, 0, 0, low, high]));
        assert_eq!((named(0x1000, 2), named(0, 0)), (Ok((0x2_0000_1000, 1)), Ok((0, 0))));
        assert_eq!(font_memory(ioctl::PIO_UNIMAP, &map), Ok((0x1_0000_2000, 12)));
        assert_eq!(font_memory(ioctl::PIO_UNIMAPCLR, &map), Ok((0, 0)));
    }
}
