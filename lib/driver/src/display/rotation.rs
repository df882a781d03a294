//! Turned pictures: the memory that clients see is upright, and the driver copies it turned to where the device shows it.
//!
//! ```text
//! pixels   0            the picture as clients see it, `Layout::bytes`
//!          scanned.y    what the device shows: the same, turned
//! ```
//! A device needs nothing for it but a picture that is visible from a line on. Neighbours: `screen`, `server`.

use super::screen::{Area, Layout};
use crate::Region;

/// By how much a picture is turned, clockwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rotation {
    /// Not at all.
    #[default]
    None,
    /// By 90 degrees.
    Quarter,
    /// By 180 degrees.
    Half,
    /// By 270 degrees.
    ThreeQuarters,
}

impl Rotation {
    /// By its number in Linux (`FB_ROTATE_*`).
    pub const fn with_number(number: u32) -> Option<Rotation> {
        match number {
            0 => Some(Rotation::None),
            1 => Some(Rotation::Quarter),
            2 => Some(Rotation::Half),
            3 => Some(Rotation::ThreeQuarters),
            _ => None,
        }
    }

    /// Its number in Linux.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Whether width and height change places.
    pub const fn is_sideways(self) -> bool {
        matches!(self, Rotation::Quarter | Rotation::ThreeQuarters)
    }
}

/// Pixels and lines that are turned at a time.
const TILE: u32 = 32;

impl Layout {
    /// What the device shows.
    pub fn scanned(&self) -> Layout {
        if self.rotation == Rotation::None {
            return *self;
        }
        let (width, height) =
            if self.rotation.is_sideways() { (self.height, self.width) } else { (self.width, self.height) };
        let device = Layout::new(width, height, self.format);
        // Turned, a picture has as many bytes as upright.
        Layout { virtual_height: 2 * height, y: height, ..device }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.scanned().bytes()
    }

    /// Where an area is in what the device shows.
    pub fn turned(&self, area: Area) -> Area {
        let Area { x, y, width, height } = area;
        let (right, below) = (self.width.saturating_sub(x + width), self.height.saturating_sub(y + height));
        let turned = match self.rotation {
            Rotation::None => return area,
            Rotation::Quarter => Area { x: below, y: x, width: height, height: width },
            Rotation::Half => Area { x: right, y: below, width, height },
            Rotation::ThreeQuarters => Area { x: y, y: right, width: height, height: width },
        };
        Area { y: turned.y + self.scanned().y, ..turned }
    }

    /// Copies an area to where the device shows it.
    pub(super) fn copy_turned(&self, region: &Region, area: Area) {
        for y in (area.y..area.y + area.height).step_by(TILE as usize) {
            for x in (area.x..area.x + area.width).step_by(TILE as usize) {
                let (width, height) = ((area.x + area.width - x).min(TILE), (area.y + area.height - y).min(TILE));
                let tile = Area { x, y, width, height };
                match self.format.bytes() {
                    4 => self.copy_tile::<4>(region, tile),
                    2 => self.copy_tile::<2>(region, tile),
                    _ => self.copy_tile::<1>(region, tile),
                }
            }
        }
    }

    fn copy_tile<const BYTES: usize>(&self, region: &Region, tile: Area) {
        let place = |layout: &Layout, x: u32, y: u32| Layout { x, y, ..*layout }.start() as usize;
        let (width, height) = (tile.width as usize, tile.height as usize);
        let mut upright = [[0; BYTES]; (TILE * TILE) as usize];
        for (line, y) in upright.chunks_mut(width).take(height).zip(tile.y..) {
            region.copy_out(place(self, tile.x, y), line.as_flattened_mut());
        }
        let (device, to) = (self.scanned(), self.turned(tile));
        for down in 0..to.height as usize {
            let mut line = [[0; BYTES]; TILE as usize];
            let line = &mut line[..to.width as usize];
            for (across, pixel) in line.iter_mut().enumerate() {
                let (x, y) = match self.rotation {
                    Rotation::None => (across, down),
                    Rotation::Quarter => (down, height - 1 - across),
                    Rotation::Half => (width - 1 - across, height - 1 - down),
                    Rotation::ThreeQuarters => (width - 1 - down, across),
                };
                *pixel = upright[y * width + x];
            }
            region.copy_in(place(&device, to.x, to.y + down as u32), line.as_flattened());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::Format;

    fn layout(rotation: Rotation) -> Layout {
        Layout { rotation, ..Layout::new(72, 64, Format::Rgb565) }
    }

    /// A picture that differs everywhere, turned, as lines of the device.
    fn shown(rotation: Rotation) -> (usize, Vec<u16>) {
        let layout = layout(rotation);
        let region = Region::simulated(vec![0_u64; layout.memory_bytes() as usize / 8].leak());
        for at in 0..72 * 64_usize {
            region.write(2 * at, at as u16 + 1);
        }
        layout.copy_turned(&region, layout.visible());
        let device = layout.scanned();
        let (start, count) = (device.start() as usize, (device.width * device.height) as usize);
        (device.width as usize, (0..count).map(|at| region.read(start + 2 * at)).collect())
    }

    fn turned_back((width, pixels): &(usize, Vec<u16>)) -> (usize, Vec<u16>) {
        let height = pixels.len() / width;
        // A quarter against the clock: the last column becomes the first line.
        let line = |y: usize| (0..height).map(move |x| x * width + width - 1 - y);
        (height, (0..*width).flat_map(line).map(|at| pixels[at]).collect())
    }

    #[test]
    fn a_turned_picture_turned_back_is_the_upright_one() {
        let upright = (72, (1..=72 * 64).collect::<Vec<u16>>());
        for (turns, rotation) in [(1, Rotation::Quarter), (2, Rotation::Half), (3, Rotation::ThreeQuarters)] {
            let mut picture = shown(rotation);
            (0..turns).for_each(|_| picture = turned_back(&picture));
            assert_eq!(picture, upright, "{rotation:?}");
        }
    }

    #[test]
    fn an_area_is_where_its_pixels_are() {
        let area = Area { x: 8, y: 3, width: 20, height: 10 };
        let of = |rotation| layout(rotation).turned(area);
        assert_eq!(of(Rotation::None), area);
        assert_eq!(of(Rotation::Quarter), Area { x: 51, y: 72 + 8, width: 10, height: 20 });
        assert_eq!(of(Rotation::Half), Area { x: 44, y: 64 + 51, width: 20, height: 10 });
        assert_eq!(of(Rotation::ThreeQuarters), Area { x: 3, y: 72 + 44, width: 10, height: 20 });
    }

    #[test]
    fn what_the_device_shows_lies_behind_what_clients_see() {
        for number in 1..4 {
            let layout = layout(Rotation::with_number(number).expect("exists"));
            assert_eq!((layout.scanned().start(), layout.memory_bytes()), (layout.bytes(), 2 * layout.bytes()));
        }
        assert_eq!(Rotation::with_number(4), None);
    }
}
