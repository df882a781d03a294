//! Places in user memory: whose memory and where, and the check that every address from a program passes.

use abi::{Errno, layout::USER_END};

/// One side of a copy: whose memory, and where.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Slot of the owner.
    pub owner: usize,
    /// Start.
    pub address: u64,
}

/// `EFAULT` unless all of the range is user memory.
pub fn check_range(address: u64, bytes: u64) -> Result<(), Errno> {
    match address.checked_add(bytes) {
        Some(end) if end <= USER_END => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}
