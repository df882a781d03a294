//! Pixel formats, and colours in them. A colour is 0x00RRGGBB everywhere else.

/// How a pixel lies in memory, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 32 bits: 0x00RRGGBB.
    Xrgb8888,
    /// 16 bits: five of red, six of green, five of blue.
    Rgb565,
    /// 8 bits, the number of a colour of the colour map.
    Mapped8,
}

/// Where a primary colour lies in a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Lowest bit.
    pub offset: u32,
    /// How many.
    pub length: u32,
}

impl Bits {
    const fn new(offset: u32, length: u32) -> Bits {
        Bits { offset, length }
    }

    /// The pixel's bits of an 8-bit intensity.
    const fn encode(self, intensity: u32) -> u32 {
        (intensity & 0xff) >> (8 - self.length) << self.offset
    }

    /// The 8-bit intensity of a pixel's bits: the highest value is full intensity.
    const fn decode(self, pixel: u32) -> u32 {
        let value = pixel >> self.offset & ((1 << self.length) - 1);
        let wide = value << (8 - self.length);
        wide | wide >> self.length
    }
}

impl Format {
    /// The format with at least this many bits a pixel, at most 32. `None`: 0, or more.
    pub const fn with_depth(bits: u32) -> Option<Format> {
        match bits {
            1..=8 => Some(Format::Mapped8),
            9..=16 => Some(Format::Rgb565),
            17..=32 => Some(Format::Xrgb8888),
            _ => None,
        }
    }

    /// Bits of a pixel.
    pub const fn depth(self) -> u32 {
        match self {
            Format::Xrgb8888 => 32,
            Format::Rgb565 => 16,
            Format::Mapped8 => 8,
        }
    }

    /// Bytes of a pixel.
    pub const fn bytes(self) -> u32 {
        self.depth() / 8
    }

    /// Where red, green and blue lie. Of a mapped pixel all three are its number.
    pub const fn primaries(self) -> [Bits; 3] {
        match self {
            Format::Xrgb8888 => [Bits::new(16, 8), Bits::new(8, 8), Bits::new(0, 8)],
            Format::Rgb565 => [Bits::new(11, 5), Bits::new(5, 6), Bits::new(0, 5)],
            Format::Mapped8 => [Bits::new(0, 8); 3],
        }
    }

    /// The pixel of a colour. In `Mapped8` that is the entry of `map` nearest to it.
    pub fn encode(self, colour: u32, map: &[u32]) -> u32 {
        if self == Format::Mapped8 {
            let distance = |&(_, &entry): &(usize, &u32)| squared_distance(entry, colour);
            return map.iter().take(256).enumerate().min_by_key(distance).map_or(0, |(index, _)| index as u32);
        }
        let [red, green, blue] = self.primaries();
        red.encode(colour >> 16) | green.encode(colour >> 8) | blue.encode(colour)
    }

    /// The colour of a pixel. In `Mapped8` that is an entry of `map`, black beyond its end.
    pub fn decode(self, pixel: u32, map: &[u32]) -> u32 {
        if self == Format::Mapped8 {
            return map.get((pixel & 0xff) as usize).copied().unwrap_or(0);
        }
        let [red, green, blue] = self.primaries();
        red.decode(pixel) << 16 | green.decode(pixel) << 8 | blue.decode(pixel)
    }
}

fn squared_distance(one: u32, other: u32) -> u32 {
    let part = |shift: u32| (one >> shift & 0xff).abs_diff(other >> shift & 0xff).pow(2);
    part(0) + part(8) + part(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_what_its_colour_is_encoded_to() {
        for pixel in 0..=0xffff {
            assert_eq!(Format::Rgb565.encode(Format::Rgb565.decode(pixel, &[]), &[]), pixel);
        }
        for colour in (0..=0xff_ffff).step_by(997) {
            assert_eq!(Format::Xrgb8888.decode(Format::Xrgb8888.encode(colour, &[]), &[]), colour);
        }
    }

    #[test]
    fn black_and_white_are_black_and_white_in_every_format() {
        let map = [0x00ff_ffff, 0x0080_0000, 0];
        for (format, white) in [(Format::Xrgb8888, 0xff_ffff), (Format::Rgb565, 0xffff), (Format::Mapped8, 0)] {
            assert_eq!(format.encode(0xff_ffff, &map), white);
            assert_eq!(format.decode(white, &map), 0xff_ffff);
            assert_eq!(format.decode(format.encode(0, &map), &map), 0);
        }
    }

    #[test]
    fn a_mapped_pixel_is_the_nearest_colour_of_the_map() {
        let map = [0, 0xff_0000, 0x00_ff00, 0x7f_7f7f];
        let nearest = |colour| Format::Mapped8.encode(colour, &map);
        assert_eq!([nearest(0xf0_1010), nearest(0x10_e010), nearest(0x70_8070), nearest(0x02_0202)], [1, 2, 3, 0]);
        assert_eq!(Format::Mapped8.encode(0xff_ffff, &[]), 0, "a map without colours");
        assert_eq!(Format::Mapped8.decode(9, &map), 0);
    }

    #[test]
    fn a_depth_is_rounded_up_to_a_format() {
        let depths = [0, 1, 8, 9, 15, 16, 24, 32, 33].map(|bits| Format::with_depth(bits).map(Format::depth));
        let expected = [None, Some(8), Some(8), Some(16), Some(16), Some(16), Some(32), Some(32), None];
        assert_eq!(depths, expected);
    }
}
