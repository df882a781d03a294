//! Linux's fbdev (linux/fb.h): its ioctls, and the structures of their arguments.

use super::screen::{COLOURS, Layout};
use crate::display::{Format, Rotation, format::Bits};
use abi::Errno;

/// Numbers of the ioctls.
pub mod ioctl {
    #![allow(missing_docs)]
    pub const GET_VSCREENINFO: u64 = 0x4600;
    pub const PUT_VSCREENINFO: u64 = 0x4601;
    pub const GET_FSCREENINFO: u64 = 0x4602;
    pub const GETCMAP: u64 = 0x4604;
    pub const PUTCMAP: u64 = 0x4605;
    pub const PAN_DISPLAY: u64 = 0x4606;
    pub const CURSOR: u64 = 0xc068_4608;
    pub const GET_CON2FBMAP: u64 = 0x460f;
    pub const BLANK: u64 = 0x4611;
    pub const GET_VBLANK: u64 = 0x8020_4612;
    pub const WAITFORVSYNC: u64 = 0x4004_4620;
}

/// Size of `struct fb_var_screeninfo`: forty words.
pub const VAR_BYTES: usize = 160;
/// Size of `struct fb_fix_screeninfo`.
pub const FIX_BYTES: usize = 80;
/// Size of `struct fb_vblank`.
pub const VBLANK_BYTES: usize = 32;
/// `fb_vblank`: there is a count of pictures.
const VBLANK_HAVE_COUNT: u32 = 8;
/// Consoles that may have a frame buffer.
const CONSOLES: u32 = 63;

/// Words of `struct fb_var_screeninfo`.
mod var {
    pub const XRES: usize = 0;
    pub const YRES: usize = 1;
    pub const XRES_VIRTUAL: usize = 2;
    pub const YRES_VIRTUAL: usize = 3;
    pub const XOFFSET: usize = 4;
    pub const YOFFSET: usize = 5;
    pub const BITS_PER_PIXEL: usize = 6;
    pub const GRAYSCALE: usize = 7;
    /// Red, green, blue, transparency: offset, length, whether the highest bit is right.
    pub const PRIMARIES: usize = 8;
    pub const ACTIVATE: usize = 21;
    pub const HEIGHT_MM: usize = 22;
    pub const WIDTH_MM: usize = 23;
    pub const ACCEL_FLAGS: usize = 24;
    pub const VMODE: usize = 33;
    pub const ROTATE: usize = 34;
}

/// `activate`: when it is to be done.
const ACTIVATE_MASK: u32 = 15;
const ACTIVATE_NOW: u32 = 0;
const ACTIVATE_TEST: u32 = 2;
/// `vmode`: the picture goes on at its beginning.
const VMODE_YWRAP: u32 = 0x100;
/// `accel_flags`: text may be drawn with help of the device.
const ACCEL_TEXT: u32 = 1;
/// Size of the picture in mm that nobody knows.
const UNKNOWN: u32 = u32::MAX;

/// `fix`: visual.
const TRUE_COLOUR: u32 = 2;
const PSEUDO_COLOUR: u32 = 3;

/// What a request to change the screen is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The layout.
    pub layout: Layout,
    /// Only to be looked at.
    pub is_test: bool,
}

/// `struct fb_var_screeninfo`.
#[derive(Clone, Copy)]
pub struct Var([u32; VAR_BYTES / 4]);

impl Var {
    /// What a screen of this size shows.
    pub fn of(layout: &Layout, size_mm: Option<(u16, u16)>) -> Var {
        let mut words = [0; VAR_BYTES / 4];
        words[var::XRES] = layout.width;
        words[var::YRES] = layout.height;
        words[var::XRES_VIRTUAL] = layout.virtual_width;
        words[var::YRES_VIRTUAL] = layout.virtual_height;
        words[var::XOFFSET] = layout.x;
        words[var::YOFFSET] = layout.y;
        words[var::BITS_PER_PIXEL] = layout.format.depth();
        for (index, Bits { offset, length }) in layout.format.primaries().into_iter().enumerate() {
            (words[var::PRIMARIES + 3 * index], words[var::PRIMARIES + 3 * index + 1]) = (offset, length);
        }
        let (width_mm, height_mm) = size_mm.map_or((UNKNOWN, UNKNOWN), |(width, height)| (width.into(), height.into()));
        (words[var::WIDTH_MM], words[var::HEIGHT_MM]) = (width_mm, height_mm);
        words[var::ACCEL_FLAGS] = ACCEL_TEXT;
        words[var::ROTATE] = layout.rotation.number();
        Var(words)
    }

    /// From the memory of a program.
    pub fn from_bytes(bytes: &[u8; VAR_BYTES]) -> Var {
        let mut words = [0; VAR_BYTES / 4];
        words.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
        Var(words)
    }

    /// For the memory of a program.
    pub fn to_bytes(self) -> [u8; VAR_BYTES] {
        let mut bytes = [0; VAR_BYTES];
        bytes.chunks_exact_mut(4).zip(self.0).for_each(|(slot, word)| slot.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// The part of the picture that is to be seen.
    ///
    /// # Errors
    /// `EINVAL`: it is to go on at its beginning.
    pub fn offsets(&self) -> Result<(u32, u32), Errno> {
        if self.0[var::VMODE] & VMODE_YWRAP != 0 {
            return Err(Errno::EINVAL);
        }
        Ok((self.0[var::XOFFSET], self.0[var::YOFFSET]))
    }

    /// What it asks for.
    ///
    /// # Errors
    /// `EINVAL`: no such format or rotation, a grey picture, or another time than now.
    pub fn wanted(&self) -> Result<Wanted, Errno> {
        let format = Format::with_depth(self.0[var::BITS_PER_PIXEL]).ok_or(Errno::EINVAL)?;
        let when = self.0[var::ACTIVATE] & ACTIVATE_MASK;
        let rotation = Rotation::with_number(self.0[var::ROTATE]).ok_or(Errno::EINVAL)?;
        if self.0[var::GRAYSCALE] != 0 || !matches!(when, ACTIVATE_NOW | ACTIVATE_TEST) {
            return Err(Errno::EINVAL);
        }
        let (x, y) = self.offsets()?;
        let layout = Layout {
            width: self.0[var::XRES],
            height: self.0[var::YRES],
            virtual_width: self.0[var::XRES_VIRTUAL],
            virtual_height: self.0[var::YRES_VIRTUAL],
            x,
            y,
            format,
            rotation,
        };
        Ok(Wanted { layout, is_test: when == ACTIVATE_TEST })
    }
}

/// `struct fb_fix_screeninfo`. The physical address is nobody's business, as with Linux's DRM.
pub fn fix(layout: &Layout, name: &str, can_pan: bool) -> [u8; FIX_BYTES] {
    let mut bytes = [0; FIX_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, name.as_bytes().get(..15).unwrap_or(name.as_bytes()));
    let memory_bytes = layout.bytes().next_multiple_of(abi::layout::PAGE_BYTES) as u32;
    put(24, &memory_bytes.to_le_bytes());
    let visual = if layout.format == Format::Mapped8 { PSEUDO_COLOUR } else { TRUE_COLOUR };
    put(36, &visual.to_le_bytes());
    let step = u16::from(can_pan).to_le_bytes();
    put(40, &step);
    put(42, &step);
    put(48, &(layout.stride() as u32).to_le_bytes());
    bytes
}

/// `struct fb_vblank`, with the count of pictures so far.
pub fn vblank(count: u64) -> [u8; VBLANK_BYTES] {
    let mut bytes = [0; VBLANK_BYTES];
    bytes[..4].copy_from_slice(&VBLANK_HAVE_COUNT.to_le_bytes());
    bytes[4..8].copy_from_slice(&(count as u32).to_le_bytes());
    bytes
}

/// `struct fb_con2fbmap`: the frame buffer of a console, which is the only one.
///
/// # Errors
/// `EINVAL`: no such console.
pub fn console_map(bytes: [u8; 8]) -> Result<[u8; 8], Errno> {
    let console = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if !(1..=CONSOLES).contains(&console) {
        return Err(Errno::EINVAL);
    }
    let mut reply = bytes;
    reply[4..].fill(0);
    Ok(reply)
}

/// `struct fb_cmap`: colours from number `first` on, and where the program has their red, green, blue and transparency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColourMap {
    /// First colour.
    pub first: usize,
    /// How many.
    pub count: usize,
    addresses: [u64; 4],
}

impl ColourMap {
    /// Size of the structure.
    pub const BYTES: usize = 40;

    /// From the memory of a program. As on Linux, what is beyond the map is left out.
    ///
    /// # Errors
    /// `EINVAL`: nothing is left.
    pub fn parse(bytes: &[u8; ColourMap::BYTES]) -> Result<ColourMap, Errno> {
        let (words, _) = bytes.as_chunks::<8>();
        let words: [u64; 5] = [0, 1, 2, 3, 4].map(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)));
        let (first, wanted) = (words[0] as u32 as usize, (words[0] >> 32) as usize);
        let count = COLOURS.saturating_sub(first).min(wanted);
        let addresses = [words[1], words[2], words[3], words[4]];
        if count == 0 { Err(Errno::EINVAL) } else { Ok(ColourMap { first, count, addresses }) }
    }

    /// Where the program has part `index` of the colours, and how many bytes. `None`: there is no such part.
    pub fn part(&self, index: u64) -> Option<(u64, u64)> {
        let address = *usize::try_from(index).ok().and_then(|index| self.addresses.get(index))?;
        // Only transparency may be left out.
        (index < 3 || address != 0).then_some((address, 2 * self.count as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout { virtual_height: 1600, y: 800, ..Layout::new(1280, 800, Format::Xrgb8888) }
    }

    #[test]
    fn what_is_told_can_be_asked_for() {
        let var = Var::from_bytes(&Var::of(&layout(), Some((300, 190))).to_bytes());
        assert_eq!(var.wanted(), Ok(Wanted { layout: layout(), is_test: false }));
        assert_eq!(var.0[8..20], [16, 8, 0, 8, 8, 0, 0, 8, 0, 0, 0, 0]);
        assert_eq!((var.0[22], var.0[23]), (190, 300));
        assert_eq!(Var::of(&layout(), None).0[22], u32::MAX);
        let turned = Layout { rotation: Rotation::ThreeQuarters, ..layout() };
        assert_eq!(Var::of(&turned, None).wanted().map(|wanted| wanted.layout), Ok(turned));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let with = |word: usize, value: u32| {
            let mut var = Var::of(&layout(), None);
            var.0[word] = value;
            var.wanted().map(|wanted| wanted.is_test)
        };
        assert_eq!(with(21, 2), Ok(true));
        assert_eq!(with(21, 128 | 16), Ok(false));
        for (word, value) in [(6, 0), (6, 33), (7, 1), (21, 1), (33, 0x100), (34, 4)] {
            assert_eq!(with(word, value), Err(Errno::EINVAL), "word {word}");
        }
    }

    #[test]
    fn fixed_information_lies_where_linux_has_it() {
        let bytes = fix(&layout(), "a very long name of it", true);
        assert_eq!(&bytes[..16], b"a very long nam\0");
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!((word(24), word(36), word(48)), (1280 * 4 * 1600, 2, 5120));
        assert_eq!(bytes[40..46], [1, 0, 1, 0, 0, 0]);
        let mapped = fix(&Layout::new(640, 480, Format::Mapped8), "x", false);
        assert_eq!((mapped[36], mapped[40]), (3, 0));
    }

    #[test]
    fn a_colour_map_is_cut_where_the_device_ends() {
        let map = |first: u32, count: u32, transparency: u64| {
            let mut bytes = [0; ColourMap::BYTES];
            bytes[..4].copy_from_slice(&first.to_le_bytes());
            bytes[4..8].copy_from_slice(&count.to_le_bytes());
            bytes[8..16].copy_from_slice(&0x1000_u64.to_le_bytes());
            bytes[32..].copy_from_slice(&transparency.to_le_bytes());
            ColourMap::parse(&bytes)
        };
        assert_eq!(
            map(250, 100, 0).map(|map| (map.count, map.part(0), map.part(3))),
            Ok((6, Some((0x1000, 12)), None))
        );
        assert_eq!(map(0, 256, 7).map(|map| (map.part(3), map.part(4))), Ok((Some((7, 512)), None)));
        for (first, count) in [(256, 1), (0, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(map(first, count, 0), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn consoles_are_numbered_from_one() {
        assert_eq!(console_map([1, 0, 0, 0, 9, 9, 9, 9]), Ok([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(console_map([0; 8]), Err(Errno::EINVAL));
        assert_eq!(console_map([64, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::EINVAL));
    }
}
