//! Fonts: PSF in both versions, with a table of the characters that each glyph stands for, as console programs have them.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use sys::Errno;
use sys::fallible::{self, TryVec};

const MAGIC: [u8; 4] = [0x72, 0xb5, 0x4a, 0x86];
/// The first version: 8 pixels wide, and a table of 16-bit characters.
const OLD_MAGIC: [u8; 2] = [0x36, 0x04];
const OLD_HEADER: usize = 4;
const OLD_512: u8 = 1;
const OLD_HAS_TABLE: u8 = 6;
const HEADER: usize = 32;
const HAS_TABLE: u32 = 1;
/// No font has this glyph.
const NO_GLYPH: u16 = u16::MAX;
/// Largest glyph.
const MAX_SIDE: usize = 64;

/// The font with cells of this size, as in `font=8x16`. Spleen (LICENSE-SPLEEN).
pub fn of_size(size: &str) -> Option<&'static [u8]> {
    match size {
        "8x16" => Some(spleen_font::FONT_8X16),
        "12x24" => Some(spleen_font::FONT_12X24),
        "16x32" => Some(spleen_font::FONT_16X32),
        _ => None,
    }
}

/// A font in memory.
pub struct Font {
    glyphs: Cow<'static, [u8]>,
    /// Size of a glyph in pixels.
    pub width: usize,
    pub height: usize,
    glyph_bytes: usize,
    /// Characters beyond ASCII, sorted, and their glyphs.
    table: Vec<(char, u16)>,
    ascii: [u16; 128],
}

impl Font {
    /// Reads a font.
    ///
    /// # Errors
    /// `EINVAL`: it is none; `ENOMEM`.
    pub fn new(file: &'static [u8]) -> Result<Font, Errno> {
        match file {
            [first, second, mode, height, ..] if [*first, *second] == OLD_MAGIC => {
                Font::old(file, *mode, (*height).into())
            }
            _ => Font::second(file),
        }
    }

    /// A font of these glyphs, one line of whole bytes after the other, with a map of characters to them. Of several glyphs beyond ASCII for a character
    /// it is the first one.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn of(width: usize, height: usize, glyphs: &[u8], map: &[(u16, u16)]) -> Result<Font, Errno> {
        let glyph_bytes = width.div_ceil(8) * height;
        let glyphs = Cow::Owned(fallible::copied(glyphs)?);
        let mut font = Font { glyphs, width, height, glyph_bytes, table: Vec::new(), ascii: [NO_GLYPH; 128] };
        for (character, glyph) in map {
            char::from_u32((*character).into()).into_iter().try_for_each(|character| font.enter(character, *glyph))?;
        }
        font.table.sort_unstable();
        font.table.dedup_by_key(|(character, _)| *character);
        Ok(font)
    }

    fn old(file: &'static [u8], mode: u8, height: usize) -> Result<Font, Errno> {
        let count = if mode & OLD_512 != 0 { 512 } else { 256 };
        let end = OLD_HEADER + count * height;
        let glyphs = file.get(OLD_HEADER..end).filter(|_| (1..=MAX_SIDE).contains(&height)).ok_or(Errno::EINVAL)?;
        let glyphs = Cow::Borrowed(glyphs);
        let mut font = Font { glyphs, width: 8, height, glyph_bytes: height, table: Vec::new(), ascii: [0; 128] };
        if mode & OLD_HAS_TABLE == 0 {
            (0..128).for_each(|glyph| font.ascii[glyph] = glyph as u16);
            return Ok(font);
        }
        let (mut glyph, mut in_sequence) = (0, false);
        for pair in file[end..].as_chunks().0 {
            match u16::from_le_bytes(*pair) {
                0xffff => (glyph, in_sequence) = (glyph + 1, false),
                0xfffe => in_sequence = true,
                code if !in_sequence && glyph < count => {
                    let character = char::from_u32(code.into()).ok_or(Errno::EINVAL)?;
                    font.enter(character, glyph as u16)?;
                }
                _ => {}
            }
        }
        font.table.sort_unstable();
        Ok(font)
    }

    fn enter(&mut self, character: char, glyph: u16) -> Result<(), Errno> {
        match self.ascii.get_mut(character as usize) {
            Some(slot) => *slot = glyph,
            None => self.table.try_push((character, glyph))?,
        }
        Ok(())
    }

    fn second(file: &'static [u8]) -> Result<Font, Errno> {
        let word = |at: usize| file.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
        let number = |at: usize| word(at).map(|word| word as usize).ok_or(Errno::EINVAL);
        if file.get(..4) != Some(&MAGIC) {
            return Err(Errno::EINVAL);
        }
        let (start, flags, count) = (number(8)?, word(12).ok_or(Errno::EINVAL)?, number(16)?);
        let (glyph_bytes, height, width) = (number(20)?, number(24)?, number(28)?);
        let sides = (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
        if !sides || glyph_bytes != width.div_ceil(8) * height || start < HEADER || count > 0xffff {
            return Err(Errno::EINVAL);
        }
        let end = start.checked_add(count * glyph_bytes).ok_or(Errno::EINVAL)?;
        let glyphs = Cow::Borrowed(file.get(start..end).ok_or(Errno::EINVAL)?);
        let mut font = Font { glyphs, width, height, glyph_bytes, table: Vec::new(), ascii: [0; 128] };
        match flags & HAS_TABLE {
            0 => (0..count.min(128)).for_each(|glyph| font.ascii[glyph] = glyph as u16),
            _ => font.read_table(file.get(end..).unwrap_or_default(), count)?,
        }
        Ok(font)
    }

    /// The rows of a character's glyph, each of whole bytes; `None`: the font has none.
    pub fn glyph(&self, character: char) -> Option<&[u8]> {
        let index = match self.ascii.get(character as usize) {
            Some(glyph) => *glyph,
            None => {
                let at = self.table.binary_search_by_key(&character, |(character, _)| *character).ok()?;
                self.table[at].1
            }
        };
        let start = usize::from(index) * self.glyph_bytes;
        self.glyphs.get(start..start + self.glyph_bytes)
    }

    /// For each glyph UTF-8 characters up to 0xff; behind 0xfe are sequences, which are not used.
    fn read_table(&mut self, mut rest: &[u8], count: usize) -> Result<(), Errno> {
        for glyph in 0..count {
            let end = rest.iter().position(|byte| *byte == 0xff).ok_or(Errno::EINVAL)?;
            let single = rest[..end].split(|byte| *byte == 0xfe).next().unwrap_or_default();
            for character in core::str::from_utf8(single).map_err(|_| Errno::EINVAL)?.chars() {
                self.enter(character, glyph as u16)?;
            }
            rest = &rest[end + 1..];
        }
        self.table.sort_unstable();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spleen_has_letters_lines_and_blocks() {
        for file in [spleen_font::FONT_8X16, spleen_font::FONT_12X24, spleen_font::FONT_16X32] {
            let font = Font::new(file).expect("is a font");
            for character in "Aß─│┌█░é".chars() {
                assert!(font.glyph(character).is_some_and(|glyph| glyph.iter().any(|row| *row != 0)), "{character}");
            }
            assert!(font.glyph(' ').is_some_and(|glyph| glyph.iter().all(|row| *row == 0)));
            assert_eq!(font.glyph('\u{10ffff}'), None);
        }
    }

    #[test]
    fn what_is_no_font_is_refused() {
        let font = spleen_font::FONT_8X16;
        for length in [0, 3, 31, 32, 1000, font.len() / 3] {
            assert_eq!(Font::new(&font[..length]).err(), Some(Errno::EINVAL), "{length}");
        }
        for at in 0..HEADER {
            let mut broken = font.to_vec();
            broken[at] ^= 0xff;
            // It may still be a font; it does no harm.
            let _ = Font::new(broken.leak()).map(|font| font.glyph('A').map(<[u8]>::len));
        }
    }
}
