//! How a file is to be opened: what the caller's flags mean.

use crate::{
    callers::permission::{READ, WRITE},
    objects::{O_ACCMODE, O_CREAT, O_EXCL, O_NOFOLLOW, O_TRUNC, O_WRONLY},
    paths::walk::Last,
};

/// How a file is to be opened (`struct open_how`).
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// `O_*`.
    pub flags: u32,
    /// Permission bits of a new file.
    pub mode: u32,
    /// Bits of [`crate::paths::restriction`].
    pub resolve: u64,
}

impl How {
    /// A file that exists is not wanted.
    pub fn is_exclusive(self) -> bool {
        self.flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL
    }

    /// What becomes of a link as last component.
    pub fn last(self) -> Last {
        if self.flags & O_NOFOLLOW != 0 || self.is_exclusive() { Last::Keep } else { Last::Follow }
    }
}

/// What of a file the flags of open ask for.
pub fn wanted_rights(flags: u32) -> u32 {
    let access = match flags & O_ACCMODE {
        0 => READ,
        O_WRONLY => WRITE,
        _ => READ | WRITE,
    };
    if flags & O_TRUNC != 0 { access | WRITE } else { access }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::O_RDWR;

    #[test]
    fn the_access_mode_tells_the_rights_that_are_needed() {
        assert_eq!(wanted_rights(0), READ);
        assert_eq!(wanted_rights(O_WRONLY), WRITE);
        assert_eq!(wanted_rights(O_RDWR), READ | WRITE);
        assert_eq!(wanted_rights(O_TRUNC), READ | WRITE);
    }
}
