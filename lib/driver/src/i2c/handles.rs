//! Open files of /dev/i2c-N: each has an address of its own, which its minor stands for. They outlive the driver.

use abi::Errno;
use recover::records::{Cells, Entry, Recover};
use server::quota::Quota;
use sys::keep::Keep;

/// Open files at a time; those of a user, and those that only root gets.
const HANDLES: usize = 64;
const PER_USER: usize = 16;
const RESERVE: usize = 8;
/// Minors of open files begin here; those below are the buses.
const FIRST: u64 = 256;
/// Changes when the values change their meaning.
const LAYOUT: u64 = 1;
/// Preserved memory that they take.
pub const KEEP_BYTES: usize = Recover::bytes(HANDLES) + 8 * HANDLES;

/// Bits of a handle: the address, that the file is open, and whose it is.
const ADDRESS: u64 = 0x7f;
const IS_OPEN: u64 = 1 << 8;
const USER_SHIFT: u32 = 16;

/// The open files.
pub struct Handles {
    recover: Recover,
    cells: Cells,
    quota: Quota,
}

impl Handles {
    /// Those of a predecessor.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn open(keep: Keep) -> Result<Handles, Errno> {
        let (recover, _) = Recover::open(keep, LAYOUT, HANDLES);
        let cells = Cells::lay_out(&recover, HANDLES);
        let mut handles = Handles { recover, cells, quota: Quota::new(HANDLES, PER_USER, RESERVE) };
        for index in 0..HANDLES {
            if let Some(word) = handles.get(index) {
                handles.quota.restore((word >> USER_SHIFT) as u32, 1).map_err(|_| Errno::ENOMEM)?;
            }
        }
        Ok(handles)
    }

    fn get(&self, index: usize) -> Option<u64> {
        match self.cells.get(&self.recover, index) {
            Entry::Some(word) => Some(word),
            Entry::Empty | Entry::Damaged => None,
        }
    }

    fn set(&self, index: usize, word: Option<u64>) {
        self.recover.begin();
        match word {
            Some(word) => self.cells.set(&self.recover, index, word),
            None => self.cells.clear(&self.recover, index),
        }
        self.recover.commit();
    }

    fn index(minor: u64) -> Option<usize> {
        minor.checked_sub(FIRST).map(|index| index as usize).filter(|index| *index < HANDLES)
    }

    /// Opens a file for a user. Returns its minor. `EMFILE`: the user has his share; `ENFILE`: all are in use.
    pub fn add(&mut self, user: u32) -> Result<u64, Errno> {
        let free = (0..HANDLES).find(|index| self.get(*index).is_none()).ok_or(Errno::ENFILE)?;
        self.quota.take(user, 1).map_err(|refusal| refusal.errno(Errno::EMFILE, Errno::ENFILE))?;
        self.set(free, Some(IS_OPEN | u64::from(user) << USER_SHIFT));
        Ok(FIRST + free as u64)
    }

    /// Closes one, if it is open.
    pub fn remove(&mut self, minor: u64) {
        if let Some((index, word)) = Handles::index(minor).and_then(|index| Some((index, self.get(index)?))) {
            self.quota.give((word >> USER_SHIFT) as u32, 1);
            self.set(index, None);
        }
    }

    /// The address of one. `ENXIO`: it is not open.
    pub fn address(&self, minor: u64) -> Result<u8, Errno> {
        let word = Handles::index(minor).and_then(|index| self.get(index)).ok_or(Errno::ENXIO)?;
        Ok((word & ADDRESS) as u8)
    }

    /// Sets it. `EINVAL`: it has more than 7 bits.
    pub fn set_address(&self, minor: u64, address: u64) -> Result<(), Errno> {
        let (index, word) =
            Handles::index(minor).and_then(|index| Some((index, self.get(index)?))).ok_or(Errno::ENXIO)?;
        if address > ADDRESS {
            return Err(Errno::EINVAL);
        }
        self.set(index, Some(word & !ADDRESS | address));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn memory() -> &'static [AtomicU64] {
        sys::host::zeroed(KEEP_BYTES)
    }

    fn open(memory: &'static [AtomicU64]) -> Handles {
        Handles::open(Keep::simulated(memory, u64::MAX)).expect("there is memory")
    }

    #[test]
    fn each_open_file_has_its_own_address_and_keeps_it() {
        let memory = memory();
        let mut handles = open(memory);
        let (one, other) = (handles.add(0).expect("opens"), handles.add(1000).expect("opens"));
        handles.set_address(one, 0x50).expect("is an address");
        handles.set_address(other, 0x37).expect("is an address");
        assert_eq!(handles.set_address(one, 0x80), Err(Errno::EINVAL));
        let mut successor = open(memory);
        assert_eq!((successor.address(one), successor.address(other)), (Ok(0x50), Ok(0x37)));
        successor.remove(one);
        assert_eq!(open(memory).address(one), Err(Errno::ENXIO));
        for minor in [0, 1, FIRST + HANDLES as u64, u64::MAX] {
            assert_eq!(successor.address(minor), Err(Errno::ENXIO));
            successor.remove(minor);
        }
    }

    #[test]
    fn a_user_has_a_share_and_root_finds_a_reserve() {
        let memory = memory();
        let mut handles = open(memory);
        let own: Vec<u64> = (0..PER_USER).map(|_| handles.add(1000).expect("is within the share")).collect();
        assert_eq!(handles.add(1000), Err(Errno::EMFILE));
        let mut handles = open(memory);
        assert_eq!(handles.add(1000), Err(Errno::EMFILE), "a successor counts them too");
        for user in 1001.. {
            if handles.add(user) == Err(Errno::ENFILE) {
                break;
            }
        }
        assert!((0..RESERVE).all(|_| handles.add(0).is_ok()));
        assert_eq!(handles.add(0), Err(Errno::ENFILE));
        own.into_iter().for_each(|minor| handles.remove(minor));
        assert!(handles.add(1000).is_ok());
    }
}
