//! The tables of the keyboard as programs read and change them: `loadkeys` and `dumpkeys` use these ioctls (linux/kd.h).
//!
//! What a program sets goes into the tables or is refused as a whole.

use crate::compose::{PAIRS, Pair};
use crate::keyboard::Keyboard;
use crate::keymap::{STRING_BYTES, Symbol};
use abi::Errno;
use abi::console::ioctl;

/// Accents of a byte each, or of a word.
const NARROW: usize = 1;
const WIDE: usize = 4;

/// Reads or changes the tables with an argument that tty has taken from the program. Returns whether they have changed.
///
/// # Errors
/// `EINVAL`: what is to be set makes no sense; `ENOMEM`.
pub fn carry_out(keyboard: &mut Keyboard, request: u64, bytes: &mut [u8]) -> Result<bool, Errno> {
    match request {
        ioctl::KDGKBSENT => tell_string(keyboard, bytes),
        ioctl::KDSKBSENT => set_string(keyboard, bytes)?,
        ioctl::KDGKBDIACR => tell_pairs::<NARROW>(keyboard, bytes),
        ioctl::KDGKBDIACRUC => tell_pairs::<WIDE>(keyboard, bytes),
        ioctl::KDSKBDIACR => set_pairs::<NARROW>(keyboard, bytes)?,
        ioctl::KDSKBDIACRUC => set_pairs::<WIDE>(keyboard, bytes)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(matches!(request, ioctl::KDSKBSENT | ioctl::KDSKBDIACR | ioctl::KDSKBDIACRUC))
}

/// One entry of a table (`struct kbentry`): the set of modifiers, the key, the symbol. Returns whether it has changed.
///
/// # Errors
/// `EINVAL`: there is no such symbol; `ENOMEM`.
pub fn entry(keyboard: &mut Keyboard, request: u64, entry: &mut [u8; 4]) -> Result<bool, Errno> {
    let [set, key, low, high] = *entry;
    if request == ioctl::KDSKBENT {
        keyboard.keymap.set(set, key, Symbol(u16::from_le_bytes([low, high])))?;
        return Ok(true);
    }
    let symbol = keyboard.keymap.entry(set.into(), key.into());
    entry[2..].copy_from_slice(&symbol.0.to_le_bytes());
    Ok(false)
}

/// What a function key sends, with a zero at its end.
fn tell_string(keyboard: &Keyboard, bytes: &mut [u8]) {
    let [number, rest @ ..] = bytes else { return };
    let string = keyboard.keymap.string(*number);
    let count = string.len().min(STRING_BYTES - 1);
    rest[..count].copy_from_slice(&string[..count]);
    rest[count] = 0;
}

fn set_string(keyboard: &mut Keyboard, bytes: &[u8]) -> Result<(), Errno> {
    let [number, rest @ ..] = bytes else { return Err(Errno::EINVAL) };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(STRING_BYTES - 1);
    keyboard.keymap.set_string(*number, &rest[..end])
}

/// A count, and the accents. A byte has the characters of Latin 1 alone.
fn tell_pairs<const SIZE: usize>(keyboard: &Keyboard, bytes: &mut [u8]) {
    let (head, rest) = bytes.split_at_mut(4);
    let pairs = keyboard.compose.pairs();
    head.copy_from_slice(&(pairs.len() as u32).to_le_bytes());
    for (record, pair) in rest.chunks_exact_mut(3 * SIZE).zip(pairs) {
        for (slot, character) in record.chunks_exact_mut(SIZE).zip([pair.accent, pair.base, pair.result]) {
            slot.copy_from_slice(&u32::from(character).to_le_bytes()[..SIZE]);
        }
    }
}

fn set_pairs<const SIZE: usize>(keyboard: &mut Keyboard, bytes: &[u8]) -> Result<(), Errno> {
    let (head, rest) = bytes.split_at(4);
    let count = number(head) as usize;
    if count >= PAIRS {
        return Err(Errno::EINVAL);
    }
    let records = || rest.chunks_exact(3 * SIZE).take(count);
    let pair = |record: &[u8]| {
        let character = |index: usize| char::from_u32(number(&record[index * SIZE..][..SIZE]));
        Some(Pair { accent: character(0)?, base: character(1)?, result: character(2)? })
    };
    if records().any(|record| pair(record).is_none()) {
        return Err(Errno::EINVAL);
    }
    keyboard.compose.set(records().filter_map(pair));
    Ok(())
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::console::long_argument;
    use alloc::vec;

    #[test]
    fn any_argument_harms_nobody_and_what_is_told_can_be_set() {
        let mut keyboard = Keyboard::new().expect("there is memory");
        let mut random = 7_u64;
        for request in (0x4b48..=0x4b4b).chain(0x4bfa..=0x4bfb) {
            let (bytes, _) = long_argument(request).expect("is long");
            for _ in 0..200 {
                let mut argument = vec![0; bytes];
                for byte in &mut argument {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *byte = (random >> 60) as u8;
                }
                let _ = carry_out(&mut keyboard, request, &mut argument);
            }
        }
        let mut keyboard = Keyboard::new().expect("there is memory");
        for (get, set) in [(ioctl::KDGKBDIACR, ioctl::KDSKBDIACR), (ioctl::KDGKBDIACRUC, ioctl::KDSKBDIACRUC)] {
            let mut told = vec![0; long_argument(get).expect("is long").0];
            assert_eq!(carry_out(&mut keyboard, get, &mut told), Ok(false));
            assert_eq!(carry_out(&mut keyboard, set, &mut told.clone()), Ok(true));
            let mut again = vec![0; told.len()];
            carry_out(&mut keyboard, get, &mut again).expect("is told");
            assert_eq!((number(&told[..4]), again), (68, told));
        }
        let mut string = vec![0; 513];
        string[..6].copy_from_slice(b"\x05abcd\0");
        assert_eq!(carry_out(&mut keyboard, ioctl::KDSKBSENT, &mut string), Ok(true));
        string[1..].fill(b'x');
        carry_out(&mut keyboard, ioctl::KDGKBSENT, &mut string).expect("is told");
        assert_eq!(string[..6], *b"\x05abcd\0");
    }
}
