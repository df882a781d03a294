//! The font that a program has loaded, as `setfont` does (`KDFONTOP`, `PIO_UNIMAP`): glyphs, and which characters they stand for.
//!
//! All terminals are drawn with it. It is preserved. What a program sets is taken or refused as a whole. A program may also read the font of the system
//! file, of which it sees the characters of Latin-1.

use crate::font::Font;
use abi::Errno;
use abi::console::font::{GET, MAX_GLYPHS, MAX_SIDE, SET, SET_DEFAULT};
use abi::console::{MAX_FONT_ARGUMENT, font_word, ioctl};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::fallible;

/// Bytes of a character and its glyph in a map.
const PAIR: usize = 4;
/// Limit of the pairs of a map: so many tty passes on at once.
const MAX_PAIRS: usize = 0x3fff;
/// Characters that are seen of the system file's font.
const LATIN: u16 = 256;

type Structure = [u8; MAX_FONT_ARGUMENT];

/// A font that was loaded.
pub struct Loaded {
    width: usize,
    height: usize,
    /// Glyph by glyph and line by line, each line of whole bytes.
    glyphs: Vec<u8>,
    /// Characters and glyphs in the order in which a program has listed them.
    map: Vec<(u16, u16)>,
}

/// Carries out a font's ioctl with its structure and the memory that this points to. Returns whether the font has changed.
///
/// # Errors
/// `EINVAL`: no such font can be drawn, or the map is that of the system file's font; `ENOSPC`, `ENOMEM`: there is more to read than the program
/// has memory for; `ENOSYS`: `KDFONTOP` has no such operation; `ENOMEM`.
pub fn carry_out(
    loaded: &mut Option<Loaded>,
    usual: &'static [u8],
    request: u64,
    bytes: &mut [u8],
) -> Result<bool, Errno> {
    let (structure, memory) = bytes.split_first_chunk_mut().ok_or(Errno::EINVAL)?;
    match (request, font_word(structure, 0)) {
        (ioctl::KDFONTOP, SET) => {
            *loaded = Some(Loaded::new(structure, memory)?);
            Ok(true)
        }
        // There are no fonts with names.
        (ioctl::KDFONTOP, SET_DEFAULT) if !memory.is_empty() => Err(Errno::ENOENT),
        (ioctl::KDFONTOP, SET_DEFAULT) => Ok(loaded.take().is_some()),
        (ioctl::KDFONTOP, GET) => Loaded::shown(loaded.as_ref(), usual)?.tell(structure, memory).map(|()| false),
        (ioctl::KDFONTOP, _) => Err(Errno::ENOSYS),
        (ioctl::GIO_UNIMAP, _) => Loaded::shown(loaded.as_ref(), usual)?.tell_map(structure, memory).map(|()| false),
        (ioctl::PIO_UNIMAPCLR, _) => {
            loaded.as_mut().ok_or(Errno::EINVAL)?.map.clear();
            Ok(true)
        }
        (ioctl::PIO_UNIMAP, _) => loaded.as_mut().ok_or(Errno::EINVAL)?.enter(memory).map(|()| true),
        _ => Err(Errno::ENOTTY),
    }
}

/// Bytes of a line of a glyph.
fn line_bytes(width: usize) -> usize {
    width.div_ceil(8)
}

fn put(structure: &mut Structure, at: usize, word: usize) {
    structure[4 * at..][..4].copy_from_slice(&(word as u32).to_le_bytes());
}

impl Loaded {
    /// A font of `struct console_font_op`; in memory each glyph has 32 lines. Each glyph stands for its own number.
    fn new(structure: &Structure, memory: &[u8]) -> Result<Loaded, Errno> {
        let word = |at| font_word(structure, at) as usize;
        let (width, height, count) = (word(2), word(3), word(4));
        let sides = width.is_multiple_of(2) && (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
        let line = line_bytes(width);
        if !sides || !(1..=MAX_GLYPHS).contains(&count) || memory.len() != count * MAX_SIDE * line {
            return Err(Errno::EINVAL);
        }
        let mut glyphs = fallible::filled(0, count * height * line)?;
        for (to, from) in glyphs.chunks_mut(height * line).zip(memory.chunks(MAX_SIDE * line)) {
            to.copy_from_slice(&from[..height * line]);
        }
        Ok(Loaded { width, height, glyphs, map: fallible::collect((0..count as u16).map(|glyph| (glyph, glyph)))? })
    }

    /// What is drawn with: a copy of it, or of the beginning of the system file's font.
    fn shown(loaded: Option<&Loaded>, usual: &'static [u8]) -> Result<Loaded, Errno> {
        if let Some(Loaded { width, height, glyphs, map }) = loaded {
            let (glyphs, map) = (fallible::copied(glyphs)?, fallible::copied(map)?);
            return Ok(Loaded { width: *width, height: *height, glyphs, map });
        }
        let font = Font::new(usual)?;
        let bytes = line_bytes(font.width) * font.height;
        let mut glyphs = fallible::filled(0, bytes * usize::from(LATIN))?;
        for (character, to) in ('\0'..).zip(glyphs.chunks_mut(bytes)) {
            font.glyph(character).into_iter().for_each(|glyph| to.copy_from_slice(glyph));
        }
        let map = fallible::collect((0..LATIN).map(|character| (character, character)))?;
        Ok(Loaded { width: font.width, height: font.height, glyphs, map })
    }

    /// The font to draw with.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn font(&self) -> Result<Font, Errno> {
        Font::of(self.width, self.height, &self.glyphs, &self.map)
    }

    fn tell(&self, structure: &mut Structure, memory: &mut [u8]) -> Result<(), Errno> {
        let glyph_bytes = self.height * line_bytes(self.width);
        let count = self.glyphs.len() / glyph_bytes;
        let word = |at| font_word(structure, at) as usize;
        if !memory.is_empty() && (word(2) < self.width || word(3) < self.height || word(4) < count) {
            return Err(Errno::ENOSPC);
        }
        memory.fill(0);
        let places = memory.chunks_mut(MAX_SIDE * line_bytes(self.width));
        places.zip(self.glyphs.chunks(glyph_bytes)).for_each(|(to, from)| to[..glyph_bytes].copy_from_slice(from));
        [(2, self.width), (3, self.height), (4, count)].into_iter().for_each(|(at, word)| put(structure, at, word));
        Ok(())
    }

    /// Tells as much of the map as there is memory for, and how much there is.
    fn tell_map(&self, structure: &mut Structure, memory: &mut [u8]) -> Result<(), Errno> {
        for (to, (character, glyph)) in memory.as_chunks_mut::<PAIR>().0.iter_mut().zip(&self.map) {
            let ([one, two], [three, four]) = (character.to_le_bytes(), glyph.to_le_bytes());
            *to = [one, two, three, four];
        }
        structure[..2].copy_from_slice(&(self.map.len() as u16).to_le_bytes());
        if memory.len() / PAIR < self.map.len() { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Adds pairs to the map.
    fn enter(&mut self, memory: &[u8]) -> Result<(), Errno> {
        let pairs = memory.as_chunks::<PAIR>().0;
        if self.map.len() + pairs.len() > MAX_PAIRS {
            return Err(Errno::ENOMEM);
        }
        let pair = |pair: &[u8; PAIR]| (u16::from_le_bytes([pair[0], pair[1]]), u16::from_le_bytes([pair[2], pair[3]]));
        self.map = fallible::collect(self.map.iter().copied().chain(pairs.iter().map(pair)))?;
        Ok(())
    }

    /// Saves it.
    pub fn save(loaded: Option<&Loaded>, writer: &mut Writer) {
        let Some(loaded) = loaded else { return writer.number(0) };
        writer.numbers([loaded.width as u64, loaded.height as u64, loaded.map.len() as u64]);
        loaded.map.iter().for_each(|(character, glyph)| writer.number(u64::from(*character) | u64::from(*glyph) << 16));
        writer.run((&loaded.glyphs, &[]));
    }

    /// What a predecessor has saved.
    pub fn load(reader: &mut Reader) -> Option<Option<Loaded>> {
        let width = reader.number()? as usize;
        if width == 0 {
            return Some(None);
        }
        let (height, count) = (reader.number()? as usize, reader.number()? as usize);
        let mut map = fallible::filled((0, 0), count.min(MAX_PAIRS)).ok()?;
        for pair in &mut map {
            let word = reader.number()?;
            *pair = (word as u16, (word >> 16) as u16);
        }
        let glyphs = fallible::copied(reader.run()?).ok()?;
        Some(Some(Loaded { width, height, glyphs, map }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &[u8] = spleen_font::FONT_8X16;

    fn bytes(words: [u32; 8], memory: &[u8]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).chain(memory.iter().copied()).collect()
    }

    fn set(loaded: &mut Option<Loaded>, width: u32, height: u32, count: u32) -> Result<bool, Errno> {
        let memory: Vec<u8> = (0..count * 32 * width.div_ceil(8)).map(|at| (at % 251) as u8).collect();
        let words = [SET, 0, width, height, count, 0, 1, 0];
        carry_out(loaded, USUAL, ioctl::KDFONTOP, &mut bytes(words, &memory))
    }

    fn get(loaded: &mut Option<Loaded>, count: u32) -> Result<(Vec<u32>, Vec<u8>), Errno> {
        let words = [GET, 0, 32, 32, count, 0, 1, 0];
        let mut bytes = bytes(words, &vec![0xff; count as usize * 128]);
        carry_out(loaded, USUAL, ioctl::KDFONTOP, &mut bytes)?;
        let words = bytes[..32].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        Ok((words, bytes[32..].to_vec()))
    }

    #[test]
    fn what_was_set_is_drawn_with_and_can_be_read_and_survives() {
        let mut loaded = None;
        assert_eq!(set(&mut loaded, 12, 24, 300), Ok(true));
        let mut map = bytes([2, 0, 1, 0, 0, 0, 0, 0], &[0x41, 0, 7, 0, 0xac, 0x20, 0x2b, 1]);
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::PIO_UNIMAPCLR, &mut [0; 32]), Ok(true));
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::PIO_UNIMAP, &mut map), Ok(true));
        let mut writer = Writer::default();
        Loaded::save(loaded.as_ref(), &mut writer);
        loaded = Loaded::load(&mut Reader::new(writer.bytes())).expect("was saved");
        let font = loaded.as_ref().expect("was loaded").font().expect("there is memory");
        assert_eq!((font.width, font.height), (12, 24));
        let glyph = |number: usize| (number * 64..number * 64 + 48).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
        assert_eq!(font.glyph('A'), Some(&glyph(7)[..]));
        assert_eq!(font.glyph('€'), Some(&glyph(299)[..]));
        assert_eq!([font.glyph('₭'), font.glyph('B')], [None; 2]);
        let (words, memory) = get(&mut loaded, 512).expect("fits");
        assert_eq!(words[2..5], [12, 24, 300]);
        assert_eq!(memory[64 * 299..][..64], [&glyph(299)[..], &[0; 16]].concat());
        assert_eq!(get(&mut loaded, 299).err(), Some(Errno::ENOSPC));
        let mut small = bytes([1, 0, 1, 0, 0, 0, 0, 0], &[0; 4]);
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::GIO_UNIMAP, &mut small), Err(Errno::ENOMEM));
        assert_eq!((small[0], &small[32..]), (2, &[0x41, 0, 7, 0][..]));
    }

    #[test]
    fn the_usual_font_can_be_read_and_comes_back() {
        let mut loaded = None;
        let (words, memory) = get(&mut loaded, 512).expect("fits");
        assert_eq!(words[2..5], [8, 16, 256]);
        assert_ne!(memory[32 * 65..][..16], [0; 16]);
        assert_eq!(set(&mut loaded, 8, 8, 256), Ok(true));
        let mut usual = bytes([SET_DEFAULT, 0, 0, 0, 0, 0, 0, 0], &[]);
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::KDFONTOP, &mut usual), Ok(true));
        assert!(loaded.is_none());
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_and_changes_nothing() {
        let mut loaded = None;
        assert_eq!(set(&mut loaded, 8, 16, 256), Ok(true));
        let refused = [(0, 16, 256), (7, 16, 256), (34, 16, 256), (8, 0, 256), (8, 33, 256), (8, 16, 0), (8, 16, 513)];
        for (width, height, count) in refused {
            assert_eq!(set(&mut loaded, width, height, count), Err(Errno::EINVAL), "{width} {height} {count}");
        }
        let mut short = bytes([SET, 0, 8, 16, 256, 0, 1, 0], &[0; 100]);
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::KDFONTOP, &mut short), Err(Errno::EINVAL));
        let mut long = vec![0; 32 + PAIR * MAX_PAIRS];
        assert_eq!(carry_out(&mut loaded, USUAL, ioctl::PIO_UNIMAP, &mut long), Err(Errno::ENOMEM));
        assert_eq!(loaded.as_ref().map(|font| (font.width, font.map.len())), Some((8, 256)));
        assert_eq!(carry_out(&mut None, USUAL, ioctl::PIO_UNIMAP, &mut [0; 36]), Err(Errno::EINVAL));
    }
}
