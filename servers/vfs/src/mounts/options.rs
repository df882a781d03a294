//! Options of mount(2) for a file system in memory: size, mode and owner of its root.

use abi::Errno;

/// What the text says; the file system decides about the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Most bytes; 0: as the file system likes.
    pub bytes: u64,
    /// Permission bits of the root.
    pub mode: Option<u32>,
    /// Its owner.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
}

impl Options {
    /// From `name=value` with commas between. `EINVAL`: an option that is not known, or a bad value.
    pub fn parse(text: &[u8]) -> Result<Options, Errno> {
        let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        let mut options = Options::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = |base| u32::from_str_radix(value, base).map_err(|_| Errno::EINVAL);
            match name {
                "size" => options.bytes = parse_size(value)?,
                "mode" => options.mode = Some(number(8)? & 0o7777),
                "uid" => options.uid = Some(number(10)?),
                "gid" => options.gid = Some(number(10)?),
                // How many files there may be follows from the size.
                "nr_inodes" | "nr_blocks" | "huge" | "inode32" | "inode64" => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        Ok(options)
    }

    /// The minor of `fs::Mount`: the size in KiB below, a number above that tells this mount from others.
    pub fn minor(&self, number: u64) -> u64 {
        self.bytes.div_ceil(1024).min(u32::MAX.into()) | number << 32
    }
}

/// A number with k, m or g behind it.
fn parse_size(text: &str) -> Result<u64, Errno> {
    let shift = match text.bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    let number: u64 = digits.parse().map_err(|_| Errno::EINVAL)?;
    number.checked_mul(1 << shift).ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_size_mode_and_owner() {
        let expected = Options { bytes: 3 << 20, mode: Some(0o1777), uid: Some(5), gid: None };
        assert_eq!(Options::parse(b"size=3m,mode=1777,uid=5,nr_inodes=9"), Ok(expected));
        assert_eq!(Options::parse(b""), Ok(Options::default()));
        assert_eq!(Options::parse(b"size=4096").map(|options| options.minor(7)), Ok(4 | 7 << 32));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for bad in ["speed=9", "size=", "size=x", "size=99999999999g", "mode=9", "mode", "uid=-1"] {
            assert_eq!(Options::parse(bad.as_bytes()), Err(Errno::EINVAL), "{bad}");
        }
    }
}
