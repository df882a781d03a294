//! The cursor of a device that shows a small image above its picture, and moves it without drawing (`FBIO_CURSOR` of linux/fb.h; ADR 104).
//!
//! ```text
//! memory   0            its image as programs see it, upright: 64 by 64 pixels, 0xAARRGGBB
//!          16 KiB       what the device takes: the same, turned as the picture is
//! ```
//! The image is complete in the first part before the cursor is committed (`state`); the second part is made of it whenever the device is told, and is
//! where a new image arrives. Neighbours: `server`, `rotation`.

use super::screen::Layout;
use crate::display::{Format, Rotation};
use crate::{Client, Region};
use abi::Errno;

/// Pixels of a line of the image, and its lines.
pub const CURSOR_SIZE: u32 = 64;
const LINE_BYTES: usize = 4 * CURSOR_SIZE as usize;
const IMAGE_BYTES: usize = LINE_BYTES * CURSOR_SIZE as usize;
/// Memory for a cursor.
pub const CURSOR_BYTES: usize = 2 * IMAGE_BYTES;
/// Offset in it of what the device takes.
pub const CURSOR_SHOWN: usize = IMAGE_BYTES;

/// Size of `struct fb_cursor`.
pub const REQUEST_BYTES: usize = 104;
/// `set`: the image, with its size.
const SET_IMAGE: u16 = 1;
/// `set`: where it is.
const SET_PLACE: u16 = 2;
/// `set`: the pixel that points.
const SET_HOT: u16 = 4;
/// The only depth: colours that each pixel has itself, and how opaque it is.
const DEPTH: u8 = 32;

/// A cursor, beside its image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    is_shown: bool,
    /// First pixel and line of the image in the virtual picture.
    place: (i16, i16),
    /// The pixel of the image that points.
    hot: (u8, u8),
}

/// Where the device shows a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// First pixel of the image, on the screen; it may be beyond its edges.
    pub x: i32,
    /// First line.
    pub y: i32,
    /// The pixel of the image that points.
    pub hot: (u32, u32),
}

impl Cursor {
    /// As one word.
    pub fn to_word(self) -> u64 {
        let half = |value: i16| u64::from(value as u16);
        let hot = u64::from(self.hot.0) << 32 | u64::from(self.hot.1) << 40;
        half(self.place.0) | half(self.place.1) << 16 | hot | u64::from(self.is_shown) << 48
    }

    /// From [`Cursor::to_word`]; fresh memory has one that is not shown.
    pub fn from_word(word: u64) -> Cursor {
        let last = CURSOR_SIZE as u8 - 1;
        let hot = ((word >> 32) as u8, (word >> 40) as u8);
        Cursor {
            is_shown: word >> 48 & 1 != 0,
            place: (word as u16 as i16, (word >> 16) as u16 as i16),
            hot: (hot.0.min(last), hot.1.min(last)),
        }
    }

    /// The same one, not to be seen.
    pub fn hidden(self) -> Cursor {
        Cursor { is_shown: false, ..self }
    }

    /// Whether it is to be seen.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Whether this one differs by its place alone.
    pub fn is_like(&self, other: Cursor) -> bool {
        (self.is_shown, self.hot) == (other.is_shown, other.hot)
    }

    /// Where the device shows it, above a picture of this layout. `None`: it does not.
    pub fn pointer(&self, layout: &Layout) -> Option<Pointer> {
        let (x, y) = (i32::from(self.place.0) - layout.x as i32, i32::from(self.place.1) - layout.y as i32);
        let (size, hot) = (CURSOR_SIZE as i32, (u32::from(self.hot.0), u32::from(self.hot.1)));
        let (right, below) = (layout.width as i32 - x - size, layout.height as i32 - y - size);
        let (left_hot, above_hot) = (CURSOR_SIZE - 1 - hot.0, CURSOR_SIZE - 1 - hot.1);
        let pointer = match layout.rotation {
            Rotation::None => Pointer { x, y, hot },
            Rotation::Quarter => Pointer { x: below, y: x, hot: (above_hot, hot.0) },
            Rotation::Half => Pointer { x: right, y: below, hot: (left_hot, above_hot) },
            Rotation::ThreeQuarters => Pointer { x: y, y: right, hot: (hot.1, left_hot) },
        };
        self.is_shown.then_some(pointer)
    }
}

/// `struct fb_cursor`: what is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    set: u16,
    is_shown: bool,
    place: (i16, i16),
    hot: (u8, u8),
    image: Option<Image>,
}

/// A new image in the memory of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    /// Where it is.
    pub address: u64,
}

impl Image {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        4 * (self.width * self.height) as u64
    }

    /// Copies it to the part of the memory that nobody relies on, transparent around it, and then to the other one.
    ///
    /// # Errors
    /// `EFAULT`: the program's memory ends before. The image is as before.
    pub fn fetch(&self, memory: &Region, from: &Client) -> Result<(), Errno> {
        let bytes = 4 * self.width;
        for line in 0..CURSOR_SIZE as usize {
            memory.copy_in(CURSOR_SHOWN + line * LINE_BYTES, &[0; LINE_BYTES]);
        }
        for line in 0..self.height {
            from.fetch_region((line * bytes) as u64, memory, CURSOR_SHOWN + line * LINE_BYTES, bytes)?;
        }
        copy(memory, CURSOR_SHOWN, 0);
        Ok(())
    }
}

impl Request {
    /// From the memory of a program.
    ///
    /// # Errors
    /// `EINVAL`: an image or a pixel of it that the device does not have.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Request, Errno> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let place = |at: usize| (word(at) as i32).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let set = half(0);
        let size = |at: usize| (1..=CURSOR_SIZE).contains(&word(at)).then_some(word(at) as usize).ok_or(Errno::EINVAL);
        let image = match set & SET_IMAGE != 0 {
            true if bytes[48] != DEPTH => return Err(Errno::EINVAL),
            true => {
                let address = u64::from(word(56)) | u64::from(word(60)) << 32;
                Some(Image { width: size(32)?, height: size(36)?, address })
            }
            false => None,
        };
        let (hot_x, hot_y) = (half(16), half(18));
        if set & SET_HOT != 0 && u32::from(hot_x.max(hot_y)) >= CURSOR_SIZE {
            return Err(Errno::EINVAL);
        }
        let hot = (hot_x as u8, hot_y as u8);
        Ok(Request { set, is_shown: half(2) != 0, place: (place(24), place(28)), hot, image })
    }

    /// The new image, if there is to be one.
    pub fn image(&self) -> Option<Image> {
        self.image
    }

    /// The cursor that is to be.
    pub fn applied_to(&self, old: Cursor) -> Cursor {
        let has = |flag: u16| self.set & flag != 0;
        Cursor {
            is_shown: self.is_shown,
            place: if has(SET_PLACE) { self.place } else { old.place },
            hot: if has(SET_HOT) { self.hot } else { old.hot },
        }
    }
}

/// Makes what the device takes of the image.
pub fn turn(memory: &Region, rotation: Rotation) {
    match rotation {
        Rotation::None => copy(memory, 0, CURSOR_SHOWN),
        rotation => {
            let layout = Layout { rotation, ..Layout::new(CURSOR_SIZE, CURSOR_SIZE, Format::Xrgb8888) };
            layout.copy_turned(memory, layout.visible());
        }
    }
}

/// Copies an image from one part of the memory to the other.
fn copy(memory: &Region, from: usize, to: usize) {
    let mut bytes = [0; LINE_BYTES];
    for at in (0..IMAGE_BYTES).step_by(LINE_BYTES) {
        memory.copy_out(from + at, &mut bytes);
        memory.copy_in(to + at, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec;

    fn request(set: u16, change: impl FnOnce(&mut [u8; REQUEST_BYTES])) -> Result<Request, Errno> {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..2].copy_from_slice(&set.to_le_bytes());
        (bytes[2], bytes[16], bytes[18]) = (1, 3, 5);
        (bytes[24], bytes[28], bytes[32], bytes[36], bytes[48], bytes[57]) = (100, 200, 16, 24, 32, 0x10);
        change(&mut bytes);
        Request::parse(&bytes)
    }

    #[test]
    fn only_what_is_named_changes() {
        let all = request(7, |_| ()).expect("is right");
        assert_eq!(all.image(), Some(Image { width: 16, height: 24, address: 0x1000 }));
        let cursor = all.applied_to(Cursor::default());
        assert_eq!(cursor, Cursor { is_shown: true, place: (100, 200), hot: (3, 5) });
        let hidden = request(0, |bytes| bytes[2] = 0).expect("is right");
        assert_eq!((hidden.image(), hidden.applied_to(cursor)), (None, cursor.hidden()));
        let moved = request(2, |bytes| bytes[24..28].copy_from_slice(&(-9_i32).to_le_bytes())).expect("is right");
        assert_eq!(moved.applied_to(cursor), Cursor { place: (-9, 200), ..cursor });
    }

    #[test]
    fn images_and_pixels_that_the_device_does_not_have_are_refused() {
        let far = request(2, |bytes| bytes[24..28].copy_from_slice(&i32::MAX.to_le_bytes()));
        assert_eq!(far.expect("is right").place.0, i16::MAX);
        for (at, value) in [(32, 0), (32, 65), (36, 0), (39, 1), (48, 1), (48, 24), (16, 64), (19, 1)] {
            let refused = request(7, |bytes| bytes[at] = value);
            assert_eq!(refused, Err(Errno::EINVAL), "byte {at}: {value}");
            assert!(request(2, |bytes| bytes[at] = value).is_ok(), "byte {at} is not asked for");
        }
    }

    #[test]
    fn a_cursor_is_one_word() {
        let cursor = Cursor { is_shown: true, place: (-64, 799), hot: (63, 1) };
        assert_eq!(Cursor::from_word(cursor.to_word()), cursor);
        assert_eq!(Cursor::from_word(0), Cursor::default());
        assert_eq!(Cursor::from_word(u64::MAX).hot, (63, 63));
    }

    #[test]
    fn the_pixel_that_points_is_the_same_on_every_turned_picture() {
        let layout = Layout { virtual_height: 960, y: 100, ..Layout::new(640, 480, Format::Xrgb8888) };
        let cursor = Cursor { is_shown: true, place: (-10, 300), hot: (20, 7) };
        // On the upright screen it points at column 10 of line 207.
        assert_eq!(cursor.pointer(&layout), Some(Pointer { x: -10, y: 200, hot: (20, 7) }));
        for (rotation, expected) in [
            (Rotation::Quarter, (480 - 1 - 207, 10)),
            (Rotation::Half, (640 - 1 - 10, 480 - 1 - 207)),
            (Rotation::ThreeQuarters, (207, 640 - 1 - 10)),
        ] {
            let pointer = cursor.pointer(&Layout { rotation, ..layout }).expect("is shown");
            assert_eq!((pointer.x + pointer.hot.0 as i32, pointer.y + pointer.hot.1 as i32), expected, "{rotation:?}");
        }
        assert_eq!(cursor.hidden().pointer(&layout), None);
    }

    #[test]
    fn the_image_is_turned_with_the_picture() {
        let memory = Region::simulated(Box::leak(vec![0_u64; CURSOR_BYTES / 8].into_boxed_slice()));
        memory.write(4 * (64 * 2 + 1), 0xff11_2233_u32);
        for (rotation, (x, y)) in [
            (Rotation::None, (1, 2)),
            (Rotation::Quarter, (61, 1)),
            (Rotation::Half, (62, 61)),
            (Rotation::ThreeQuarters, (2, 62)),
        ] {
            turn(&memory, rotation);
            assert_eq!(memory.read::<u32>(CURSOR_SHOWN + 4 * (64 * y + x)), 0xff11_2233, "{rotation:?}");
        }
    }
}
