//! What a screen shows: the layout of its memory, checked against what the device can do; and the trait of the devices.
//!
//! Invariant of a [`Layout`] that [`Layout::fitted`] has returned: the visible part lies within the virtual picture, and that within the
//! device's memory.

use crate::display::{Edid, Format, Pointer, Rotation};
use abi::Errno;

/// Intensities of red, green and blue, 16 bits each.
pub type Colour = [u16; 3];
/// Colours of a colour map.
pub const COLOURS: usize = 256;
/// Limits of a picture, in pixels and lines.
const MIN_SIZE: (u32, u32) = (64, 64);
const MAX_SIZE: (u32, u32) = (4096, 4096);
/// Pixels of a line come in groups of so many.
const WIDTH_STEP: u32 = 8;
/// Limit of the virtual picture, in pixels or lines: the device's registers have 16 bits.
const MAX_VIRTUAL: u32 = 0xffff;

/// How the memory is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Visible pixels of a line.
    pub width: u32,
    /// Visible lines.
    pub height: u32,
    /// Pixels of a line in memory.
    pub virtual_width: u32,
    /// Lines in memory.
    pub virtual_height: u32,
    /// First visible pixel of a line.
    pub x: u32,
    /// First visible line.
    pub y: u32,
    /// How a pixel lies in memory.
    pub format: Format,
    /// By how much the device shows it turned. Then all of it is visible, and it is shown from a copy.
    pub rotation: Rotation,
}

impl Layout {
    /// A picture that is all visible.
    pub const fn new(width: u32, height: u32, format: Format) -> Layout {
        Layout {
            width,
            height,
            virtual_width: width,
            virtual_height: height,
            x: 0,
            y: 0,
            format,
            rotation: Rotation::None,
        }
    }

    /// Bytes of a line.
    pub fn stride(&self) -> u64 {
        u64::from(self.virtual_width) * u64::from(self.format.bytes())
    }

    /// Bytes of the virtual picture.
    pub fn bytes(&self) -> u64 {
        self.stride() * u64::from(self.virtual_height)
    }

    /// Offset of the first visible byte.
    pub fn start(&self) -> u64 {
        u64::from(self.y) * self.stride() + u64::from(self.x) * u64::from(self.format.bytes())
    }

    /// This layout, with what may be more than was asked for raised to what the device can do with so many bytes of memory.
    ///
    /// # Errors
    /// `EINVAL`: it cannot do that.
    pub fn fitted(self, memory_bytes: u64) -> Result<Layout, Errno> {
        let is_picture =
            (MIN_SIZE.0..=MAX_SIZE.0).contains(&self.width) && (MIN_SIZE.1..=MAX_SIZE.1).contains(&self.height);
        if !is_picture {
            return Err(Errno::EINVAL);
        }
        let width = self.width.next_multiple_of(WIDTH_STEP);
        let fitted =
            if self.rotation == Rotation::None { self.fitted_upright(width)? } else { self.fitted_turned(width)? };
        let is_possible = fitted.virtual_width <= MAX_VIRTUAL && fitted.virtual_height <= MAX_VIRTUAL;
        if is_possible && fitted.memory_bytes() <= memory_bytes { Ok(fitted) } else { Err(Errno::EINVAL) }
    }

    fn fitted_upright(self, width: u32) -> Result<Layout, Errno> {
        let virtual_width = self.virtual_width.max(width).checked_next_multiple_of(WIDTH_STEP).ok_or(Errno::EINVAL)?;
        let virtual_height = self.virtual_height.max(self.height);
        Layout { width, virtual_width, virtual_height, ..self }.panned(self.x, self.y)
    }

    /// Its lines are the device's, or its columns are.
    fn fitted_turned(self, width: u32) -> Result<Layout, Errno> {
        let height = if self.rotation.is_sideways() { self.height.next_multiple_of(WIDTH_STEP) } else { self.height };
        let fitted = Layout { rotation: self.rotation, ..Layout::new(width, height, self.format) };
        let is_larger = self.virtual_width > fitted.width || self.virtual_height > fitted.height;
        if is_larger { Err(Errno::EINVAL) } else { fitted.panned(self.x, self.y) }
    }

    /// The layout that shows another part of the virtual picture.
    ///
    /// # Errors
    /// `EINVAL`: it is not all within.
    pub fn panned(self, x: u32, y: u32) -> Result<Layout, Errno> {
        let is_within = |start: u32, bytes: u32, end: u32| start.checked_add(bytes).is_some_and(|stop| stop <= end);
        if is_within(x, self.width, self.virtual_width) && is_within(y, self.height, self.virtual_height) {
            Ok(Layout { x, y, ..self })
        } else {
            Err(Errno::EINVAL)
        }
    }
}

/// A part of the virtual picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First pixel of each line.
    pub x: u32,
    /// First line.
    pub y: u32,
    /// Pixels of a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
}

impl Layout {
    /// The visible part.
    pub const fn visible(&self) -> Area {
        Area { x: self.x, y: self.y, width: self.width, height: self.height }
    }

    /// The lines of these bytes of the virtual picture, which has them all.
    pub fn lines(&self, position: u64, bytes: u64) -> Area {
        let stride = self.stride().max(1);
        let (first, end) = (position / stride, (position + bytes).div_ceil(stride));
        Area { x: 0, y: first as u32, width: self.virtual_width, height: (end - first) as u32 }
    }

    /// What of an area of the visible part lies within it.
    pub fn clipped(&self, x: u32, y: u32, width: u32, height: u32) -> Area {
        let (x, y) = (x.min(self.width), y.min(self.height));
        Area { x: self.x + x, y: self.y + y, width: width.min(self.width - x), height: height.min(self.height - y) }
    }
}

/// A device that shows its memory.
pub trait Device {
    /// What programs read as its name, at most 15 bytes.
    fn name(&self) -> &'static str;
    /// What the display says of itself.
    fn edid(&mut self) -> Option<Edid>;
    /// What the display says by another service, which may come up later than this device. Asked as long as nothing is known.
    fn late_edid(&mut self) -> Option<Edid> {
        None
    }
    /// The size of picture that it would have, if it has no EDID that says so.
    fn preferred_size(&mut self) -> Option<(u32, u32)> {
        None
    }
    /// Whether it shows pixels of this format.
    fn supports(&self, format: Format) -> bool;
    /// Whether it has other modes than the one that it shows.
    fn sets_modes(&self) -> bool;
    /// Shows its memory like this. The memory stays as it is.
    fn show(&mut self, layout: &Layout);
    /// Shows another part of its memory.
    fn pan(&mut self, x: u32, y: u32);
    /// Switches the picture off or on.
    fn blank(&mut self, is_blank: bool);
    /// Sets colours of the map from number `first` on.
    fn set_colours(&mut self, first: u8, colours: &[Colour]);
    /// Whether what was drawn is seen only after a [`flush`](Device::flush).
    fn needs_flush(&self) -> bool {
        false
    }
    /// Shows what was drawn in an area of the virtual picture. Its neighbours may be shown as well.
    fn flush(&mut self, area: Area) {
        let _ = area;
    }
    /// Shows its cursor with the image that is in the cursor's memory now, or none. Devices with a cursor need flushes.
    fn show_cursor(&mut self, pointer: Option<Pointer>) {
        let _ = pointer;
    }
    /// Shows its cursor elsewhere.
    fn move_cursor(&mut self, pointer: Pointer) {
        let _ = pointer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 16 << 20;

    fn layout() -> Layout {
        Layout::new(1280, 800, Format::Xrgb8888)
    }

    #[test]
    fn what_may_be_more_is_raised() {
        let odd = Layout { width: 1001, virtual_width: 10, virtual_height: 0, ..layout() };
        let fitted = odd.fitted(MEMORY).expect("fits");
        assert_eq!((fitted.width, fitted.virtual_width, fitted.virtual_height), (1008, 1008, 800));
        assert_eq!(fitted.fitted(MEMORY), Ok(fitted), "what fits stays");
    }

    #[test]
    fn pictures_without_room_are_refused() {
        let all = [
            Layout { width: 0, ..layout() },
            Layout { height: 5000, virtual_height: 5000, ..layout() },
            Layout { virtual_height: 4000, ..layout() },
            Layout { virtual_height: u32::MAX, ..layout() },
            Layout { virtual_width: u32::MAX, ..layout() },
            Layout { virtual_width: u32::MAX - 7, ..layout() },
            Layout { x: 1, ..layout() },
            Layout { y: u32::MAX, ..layout() },
        ];
        for layout in all {
            assert_eq!(layout.fitted(MEMORY), Err(Errno::EINVAL), "{layout:?}");
        }
        assert_eq!(layout().fitted(1280 * 800 * 4 - 1), Err(Errno::EINVAL));
        assert!(layout().fitted(1280 * 800 * 4).is_ok());
    }

    #[test]
    fn bytes_lie_in_lines_and_areas_within_the_visible_part() {
        let double = Layout { virtual_height: 1600, y: 800, ..layout() };
        let lines = |position, bytes| double.lines(position, bytes);
        assert_eq!(lines(5120, 5120), Area { x: 0, y: 1, width: 1280, height: 1 });
        assert_eq!((lines(5119, 2).y, lines(5119, 2).height), (0, 2));
        assert_eq!(double.clipped(0, 0, u32::MAX, u32::MAX), double.visible());
        assert_eq!(double.clipped(1270, 790, 20, 20), Area { x: 1270, y: 1590, width: 10, height: 10 });
        assert_eq!(double.clipped(u32::MAX, 0, 1, 1).width, 0);
    }

    #[test]
    fn a_turned_picture_is_all_visible_and_takes_its_memory_twice() {
        let sideways = Layout { rotation: Rotation::Quarter, ..Layout::new(1280, 796, Format::Xrgb8888) };
        let fitted = sideways.fitted(MEMORY).expect("fits");
        assert_eq!((fitted.width, fitted.height, fitted.virtual_height), (1280, 800, 800));
        assert_eq!((fitted.scanned().width, fitted.scanned().height), (800, 1280));
        assert_eq!(fitted.fitted(2 * 1280 * 800 * 4 - 1), Err(Errno::EINVAL));
        for larger in [Layout { virtual_height: 1600, ..sideways }, Layout { y: 1, ..sideways }] {
            assert_eq!(larger.fitted(MEMORY), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn panning_stays_within_the_virtual_picture() {
        let double = Layout { virtual_height: 1600, ..layout() };
        assert_eq!(double.panned(0, 800).map(|layout| layout.start()), Ok(800 * 1280 * 4));
        assert_eq!(double.panned(0, 801), Err(Errno::EINVAL));
        assert_eq!(double.panned(1, 0), Err(Errno::EINVAL));
        assert_eq!(double.panned(u32::MAX, 0), Err(Errno::EINVAL));
    }
}
