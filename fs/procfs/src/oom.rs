//! /proc/PID/oom_score_adj and oom_adj: one number in two measures. Neighbour: `tree`, which reads and writes them.

use abi::Errno;

/// Bytes of a write that are looked at: the rest is left.
pub const MAX_BYTES: usize = 12;

/// oom_score_adj's limit in both directions.
const LIMIT: i32 = 1000;
/// oom_adj's limits; the lower one means never.
const OLD_NEVER: i32 = -17;
const OLD_LIMIT: i32 = 15;

/// How the number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// oom_score_adj.
    New,
    /// oom_adj.
    Old,
}

impl Measure {
    /// The number as it is shown.
    pub fn shown(self, adjust: i32) -> i32 {
        match self {
            Measure::New => adjust,
            Measure::Old if adjust == LIMIT => OLD_LIMIT,
            Measure::Old => adjust * -OLD_NEVER / LIMIT,
        }
    }

    /// The number that a program writes. `EINVAL`: it is none, or out of range; `ERANGE`: it is out of all ranges.
    pub fn parse(self, text: &[u8]) -> Result<i32, Errno> {
        let number = number(text.trim_ascii())?;
        match self {
            Measure::New if (-LIMIT..=LIMIT).contains(&number) => Ok(number),
            Measure::Old if number == OLD_LIMIT => Ok(LIMIT),
            Measure::Old if (OLD_NEVER..OLD_LIMIT).contains(&number) => Ok(number * LIMIT / -OLD_NEVER),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// A number as C writes it: with a sign, in hexadecimal after 0x, in octal after 0.
fn number(text: &[u8]) -> Result<i32, Errno> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (radix, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        _ => (10, digits),
    };
    if digits.is_empty() {
        return Err(Errno::EINVAL);
    }
    let mut value: i64 = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(radix).ok_or(Errno::EINVAL)?;
        value = value.saturating_mul(radix.into()).saturating_add(digit.into());
    }
    i32::try_from(if is_negative { -value } else { value }).map_err(|_| Errno::ERANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_c() {
        let cases: [(&[u8], i32); 6] =
            [(b"17", 17), (b" +100\n", 100), (b"0x1F", 31), (b"010", 8), (b"-0", 0), (b"-1000", -1000)];
        for (text, value) in cases {
            assert_eq!(Measure::New.parse(text), Ok(value));
        }
        for text in [&b"x"[..], b"", b"-", b"+-1", b"0x", b"08", b"1 2", b"1x", b"1001", b"-1001"] {
            assert_eq!(Measure::New.parse(text), Err(Errno::EINVAL), "{text:?}");
        }
        assert_eq!(Measure::New.parse(b"99999999999"), Err(Errno::ERANGE));
    }

    #[test]
    fn both_measures_have_the_same_ends() {
        assert_eq!(
            [15, 7, 0, -17].map(|old| Measure::Old.parse(std::format!("{old}").as_bytes())),
            [1000, 411, 0, -1000].map(Ok)
        );
        assert_eq!([1000, 411, 0, -1000].map(|new| Measure::Old.shown(new)), [15, 6, 0, -17]);
        assert_eq!([&b"16"[..], b"-18"].map(|old| Measure::Old.parse(old)), [Err(Errno::EINVAL); 2]);
    }
}
