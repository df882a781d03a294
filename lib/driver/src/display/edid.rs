//! EDID: what a display says of itself, in blocks of 128 bytes (VESA E-EDID 1.3 and 1.4; the base block is read here).
//!
//! The bytes come from a cable, so nothing in them is believed: a block with a wrong header or checksum is refused, and of a good
//! one any field may be nonsense. No input makes this fail otherwise.

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 128;
const HEADER: [u8; 8] = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
/// Offsets in the base block.
const MANUFACTURER: usize = 8;
const PRODUCT: usize = 10;
const SERIAL: usize = 12;
const WEEK: usize = 16;
const YEAR: usize = 17;
const VERSION: usize = 18;
const SIZE_CM: usize = 21;
const FEATURES: usize = 24;
const ESTABLISHED: usize = 35;
const STANDARD: usize = 38;
const DESCRIPTORS: usize = 54;
const DESCRIPTOR_BYTES: usize = 18;
const EXTENSIONS: usize = 126;
const FIRST_YEAR: u16 = 1990;
/// Weeks as which the year is that of the model.
const MODEL_YEAR: u8 = 0xff;
/// Tag of the descriptor with the product's name.
const NAME: u8 = 0xfc;

/// Why a block is no EDID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Fewer bytes than a block.
    Short,
    /// It does not begin as one.
    Header,
    /// Its sum is not 0.
    Checksum,
}

/// A mode that a display knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Pixels of a line.
    pub width: u16,
    /// Lines.
    pub height: u16,
    /// Pictures in a second, rounded.
    pub refresh_hz: u16,
}

impl Mode {
    const fn new(width: u16, height: u16, refresh_hz: u16) -> Mode {
        Mode { width, height, refresh_hz }
    }
}

/// A detailed timing: a mode with all that a cathode ray needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The mode.
    pub mode: Mode,
    /// Pixels in a second.
    pub pixel_clock_hz: u32,
    /// Pixels and lines in all, with the invisible ones; of a half picture, if it is interlaced.
    pub total: (u16, u16),
    /// Every other line in turn.
    pub is_interlaced: bool,
    /// Size of the picture in mm; 0: not told.
    pub size_mm: (u16, u16),
}

/// The modes of the bits of the established timings, from bit 7 of the first byte on.
const ESTABLISHED_MODES: [Mode; 17] = [
    Mode::new(720, 400, 70),
    Mode::new(720, 400, 88),
    Mode::new(640, 480, 60),
    Mode::new(640, 480, 67),
    Mode::new(640, 480, 73),
    Mode::new(640, 480, 75),
    Mode::new(800, 600, 56),
    Mode::new(800, 600, 60),
    Mode::new(800, 600, 72),
    Mode::new(800, 600, 75),
    Mode::new(832, 624, 75),
    Mode::new(1024, 768, 87),
    Mode::new(1024, 768, 60),
    Mode::new(1024, 768, 70),
    Mode::new(1024, 768, 75),
    Mode::new(1280, 1024, 75),
    Mode::new(1152, 870, 75),
];

/// The base block of an EDID.
#[derive(Clone, Copy)]
pub struct Edid {
    block: [u8; BLOCK_BYTES],
}

impl core::fmt::Debug for Edid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Edid").field("manufacturer", &self.manufacturer()).field("product", &self.product()).finish()
    }
}

impl Edid {
    /// Reads the base block.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Edid, Refusal> {
        let block = *bytes.first_chunk::<BLOCK_BYTES>().ok_or(Refusal::Short)?;
        if block[..HEADER.len()] != HEADER {
            return Err(Refusal::Header);
        }
        let sum = block.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
        if sum == 0 { Ok(Edid { block }) } else { Err(Refusal::Checksum) }
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.block[at], self.block[at + 1]])
    }

    /// The manufacturer's three letters; `@` and others where it has none.
    pub fn manufacturer(&self) -> [u8; 3] {
        let packed = u16::from_be_bytes([self.block[MANUFACTURER], self.block[MANUFACTURER + 1]]);
        [10, 5, 0].map(|shift| b'@' + (packed >> shift & 0x1f) as u8)
    }

    /// The manufacturer's number of the product.
    pub fn product(&self) -> u16 {
        self.word(PRODUCT)
    }

    /// The serial number; 0: not told.
    pub fn serial(&self) -> u32 {
        u32::from(self.word(SERIAL)) | u32::from(self.word(SERIAL + 2)) << 16
    }

    /// The week in which it was made; `None`: not told.
    pub fn week(&self) -> Option<u8> {
        Some(self.block[WEEK]).filter(|week| !matches!(*week, 0 | MODEL_YEAR))
    }

    /// The year in which it was made, or that of the model.
    pub fn year(&self) -> u16 {
        FIRST_YEAR + u16::from(self.block[YEAR])
    }

    /// Version and revision of the EDID.
    pub fn version(&self) -> (u8, u8) {
        (self.block[VERSION], self.block[VERSION + 1])
    }

    /// Blocks that follow.
    pub fn extensions(&self) -> u8 {
        self.block[EXTENSIONS]
    }

    /// Size of the picture in mm, as exactly as it is told; `None`: not told.
    pub fn size_mm(&self) -> Option<(u16, u16)> {
        let detailed = self.timings().map(|timing| timing.size_mm).next();
        let [width, height] = [SIZE_CM, SIZE_CM + 1].map(|at| u16::from(self.block[at]) * 10);
        [detailed.unwrap_or((0, 0)), (width, height)].into_iter().find(|&(width, height)| width > 0 && height > 0)
    }

    /// The product's name.
    pub fn name(&self) -> Option<&str> {
        let text = self.descriptors().find(|descriptor| descriptor[..5] == [0, 0, 0, NAME, 0])?.get(5..)?;
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        core::str::from_utf8(&text[..end]).ok().map(str::trim_end).filter(|name| !name.is_empty())
    }

    fn descriptors(&self) -> impl Iterator<Item = &[u8]> {
        self.block[DESCRIPTORS..EXTENSIONS].chunks_exact(DESCRIPTOR_BYTES)
    }

    /// The detailed timings, the best first.
    pub fn timings(&self) -> impl Iterator<Item = Timing> + '_ {
        self.descriptors().filter_map(timing)
    }

    /// The mode that shows best: the first detailed timing, which 1.3 promises with a bit and 1.4 always.
    pub fn preferred(&self) -> Option<Mode> {
        let is_promised = self.version() >= (1, 4) || self.block[FEATURES] & 2 != 0;
        self.timings().next().filter(|_| is_promised).map(|timing| timing.mode)
    }

    /// The modes of the established timings.
    pub fn established(&self) -> impl Iterator<Item = Mode> + '_ {
        let bits = self.block[ESTABLISHED..ESTABLISHED + 3]
            .iter()
            .flat_map(|&byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        ESTABLISHED_MODES.iter().zip(bits).filter(|(_, bit)| *bit != 0).map(|(mode, _)| *mode)
    }

    /// The modes of the standard timings.
    pub fn standard(&self) -> impl Iterator<Item = Mode> + '_ {
        let wide_is_square = self.version() < (1, 3);
        self.block[STANDARD..DESCRIPTORS]
            .chunks_exact(2)
            .filter_map(move |pair| standard(pair[0], pair[1], wide_is_square))
    }

    /// All modes, the best first; some may come twice.
    pub fn modes(&self) -> impl Iterator<Item = Mode> + '_ {
        self.timings().map(|timing| timing.mode).chain(self.standard()).chain(self.established())
    }
}

/// A standard timing. `wide_is_square`: 16:10 was 1:1 before 1.3.
fn standard(columns: u8, shape: u8, wide_is_square: bool) -> Option<Mode> {
    // 1 stands for a place without a timing, whatever comes behind it.
    if columns <= 1 {
        return None;
    }
    let width = (u16::from(columns) + 31) * 8;
    let height = match shape >> 6 {
        0 if wide_is_square => width,
        0 => width / 16 * 10,
        1 => width / 4 * 3,
        2 => width / 5 * 4,
        _ => (u32::from(width) * 9 / 16) as u16,
    };
    Some(Mode { width, height, refresh_hz: u16::from(shape & 0x3f) + 60 })
}

/// A descriptor, if it is a detailed timing.
fn timing(descriptor: &[u8]) -> Option<Timing> {
    let byte = |at: usize| descriptor.get(at).map_or(0, |byte| u16::from(*byte));
    let pixel_clock_hz = (u32::from(byte(0)) | u32::from(byte(1)) << 8) * 10_000;
    let split = |low: usize, high: usize, shift: u32| byte(low) | (byte(high) >> shift & 0xf) << 8;
    let (width, blank) = (split(2, 4, 4), split(3, 4, 0));
    let (lines, blank_lines) = (split(5, 7, 4), split(6, 7, 0));
    let is_interlaced = byte(17) & 0x80 != 0;
    // It tells the lines of one of the two half pictures.
    let height = if is_interlaced { 2 * lines } else { lines };
    let total = (width + blank, lines + blank_lines);
    if pixel_clock_hz == 0 || width == 0 || height == 0 {
        return None;
    }
    let pixels = u32::from(total.0) * u32::from(total.1);
    let refresh_hz = ((pixel_clock_hz + pixels / 2) / pixels) as u16;
    Some(Timing {
        mode: Mode { width, height, refresh_hz },
        pixel_clock_hz,
        total,
        is_interlaced,
        size_mm: (split(12, 14, 4), split(13, 14, 0)),
    })
}

#[cfg(test)]
mod tests;
