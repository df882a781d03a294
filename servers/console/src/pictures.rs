//! Open files of /dev/vcs*: which picture each reads, and how far it has come.
//!
//! A read that is repeated, because console died before its reply arrived, gets the same place again.

use abi::Errno;
use recover::snapshot::{Reader, Writer};
use server::quota::Quota;

/// Open files.
const FILES: usize = 32;
/// Those of one user, and those that only the superuser gets.
const PER_USER: usize = 8;
const RESERVE: usize = 8;
/// Minor of the first open file.
const MINOR_FILE: u64 = 0x100;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    /// The minor of the node.
    minor: u64,
    position: u64,
    user: u32,
    /// The request that opened it, until another one comes.
    open_tag: u64,
    /// The last read, and where it began.
    last: (u64, u64),
}

/// See the head of the file.
pub struct Pictures {
    files: [Option<File>; FILES],
    quota: Quota,
}

impl Pictures {
    /// None is open.
    pub fn new() -> Pictures {
        Pictures { files: [None; FILES], quota: Quota::new(FILES, PER_USER, RESERVE) }
    }

    /// Opens a node. Returns the minor of the open file.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`: too many are open; `ENOMEM`.
    pub fn open(&mut self, minor: u64, user: u32, tag: u64) -> Result<u64, Errno> {
        let is_known = |file: &Option<File>| file.is_some_and(|file| tag != 0 && file.open_tag == tag);
        if let Some(index) = self.files.iter().position(is_known) {
            return Ok(MINOR_FILE + index as u64);
        }
        let index = self.files.iter().position(Option::is_none).ok_or(Errno::ENFILE)?;
        self.quota.take(user, 1).map_err(|refusal| refusal.errno(Errno::EMFILE, Errno::ENFILE))?;
        self.files[index] = Some(File { minor, position: 0, user, open_tag: tag, last: (0, 0) });
        Ok(MINOR_FILE + index as u64)
    }

    /// Closes an open file.
    pub fn close(&mut self, minor: u64) {
        let slot = self.files.get_mut(minor.wrapping_sub(MINOR_FILE) as usize);
        if let Some(file) = slot.and_then(Option::take) {
            self.quota.give(file.user, 1);
        }
    }

    /// Closes all that `keeps` does not want: vfs has restarted.
    pub fn close_others(&mut self, keeps: impl Fn(u64) -> bool) {
        (MINOR_FILE..).take(FILES).filter(|minor| !keeps(*minor)).for_each(|minor| self.close(minor));
    }

    /// Reads on: `read` gets the node's minor and the position, and returns how much there was.
    ///
    /// # Errors
    /// `EBADF`: it is not open; those of `read`.
    pub fn read(
        &mut self,
        minor: u64,
        tag: u64,
        read: impl FnOnce(u64, u64) -> Result<u64, Errno>,
    ) -> Result<u64, Errno> {
        let slot = self.files.get_mut(minor.wrapping_sub(MINOR_FILE) as usize);
        let file = slot.and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        let start = if tag != 0 && file.last.0 == tag { file.last.1 } else { file.position };
        let count = read(file.minor, start)?;
        (file.position, file.last, file.open_tag) = (start + count, (tag, start), 0);
        Ok(count)
    }

    /// Saves them into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        for file in &self.files {
            writer.number(file.is_some().into());
            if let Some(File { minor, position, user, open_tag, last }) = file {
                let numbers = [*minor, *position, u64::from(*user), *open_tag, last.0, last.1];
                numbers.into_iter().for_each(|number| writer.number(number));
            }
        }
    }

    /// Loads them from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Pictures> {
        let mut pictures = Pictures::new();
        for slot in &mut pictures.files {
            if reader.number()? != 0 {
                let (minor, position, user) = (reader.number()?, reader.number()?, reader.number()? as u32);
                let (open_tag, last) = (reader.number()?, (reader.number()?, reader.number()?));
                pictures.quota.restore(user, 1).ok()?;
                *slot = Some(File { minor, position, user, open_tag, last });
            }
        }
        Some(pictures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_goes_on_and_a_repeated_one_does_not() {
        let mut pictures = Pictures::new();
        let file = pictures.open(129, 7, 1).expect("there is room");
        assert_eq!(pictures.open(129, 7, 1), Ok(file), "it is repeated");
        let mut read = |tag| {
            let mut from = 0;
            pictures.read(file, tag, |minor, position| {
                assert_eq!(minor, 129);
                from = position;
                Ok(10)
            })?;
            Ok::<u64, Errno>(from)
        };
        assert_eq!([read(2), read(2), read(3)], [Ok(0), Ok(0), Ok(10)]);
        let mut writer = Writer::default();
        pictures.save(&mut writer);
        let mut pictures = Pictures::load(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!(pictures.read(file, 3, |_, position| Ok(position)), Ok(10));
        pictures.close_others(|_| false);
        assert_eq!(pictures.read(file, 4, |_, _| Ok(0)), Err(Errno::EBADF));
    }

    #[test]
    fn a_user_gets_a_share() {
        let mut pictures = Pictures::new();
        assert_eq!((0..).take_while(|_| pictures.open(1, 7, 0).is_ok()).count(), PER_USER);
        assert_eq!((0..).take_while(|_| pictures.open(1, 0, 0).is_ok()).count(), FILES - PER_USER);
    }
}
