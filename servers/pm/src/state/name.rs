//! The name of a program or thread (PR_SET_NAME, /proc/PID/comm).

/// Bytes of a name with its NUL.
pub const NAME_BYTES: usize = 16;

/// Up to 15 bytes; zeros follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortName([u8; NAME_BYTES]);

impl ShortName {
    /// Returns the bytes before the first NUL, cut at 15.
    pub fn new(text: &[u8]) -> ShortName {
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(NAME_BYTES - 1);
        let mut name = [0; NAME_BYTES];
        name[..length].copy_from_slice(&text[..length]);
        ShortName(name)
    }

    /// Returns the last component of a path.
    pub fn of_path(path: &[u8]) -> ShortName {
        ShortName::new(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path))
    }

    /// Returns all bytes.
    pub fn bytes(self) -> [u8; NAME_BYTES] {
        self.0
    }

    /// Returns it as text.
    pub fn text(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.0[..length]).unwrap_or("?")
    }
}
