//! Kernel calls on address spaces and frames. For vm.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::{Endpoint, GrantId, Word};

/// Number of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(pub u64);

impl Space {
    /// No address space.
    pub const NONE: Space = Space(u64::MAX);
}

fn on(call: KernelCall, space: Space, arguments: [u64; 4]) -> Result<(u64, [u64; 2])> {
    let [a, b, c, d] = arguments;
    raw::kernel(call, [space.0, a, b, c, d, 0])
}

/// Progress of a call that fills page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pages completed.
    pub pages: u64,
    /// Whether the pool of page-table frames ran empty: [`donate`] and continue.
    pub pool_empty: bool,
}

fn progress((pages, words): (u64, [u64; 2])) -> Progress {
    Progress { pages, pool_empty: Result::<u64>::from_word(words[0]) == Err(abi::Errno::ENOMEM) }
}

/// Creates an empty address space.
///
/// # Errors
/// `ENOMEM`: table full or pool empty.
pub fn create() -> Result<Space> {
    raw::kernel(KernelCall::SpaceCreate, [0; 6]).map(|(value, _)| Space(value))
}

/// Destroys a space; its page-table frames return to the pool.
///
/// # Errors
/// `EAGAIN` while threads use it.
pub fn destroy(space: Space) -> Result<()> {
    on(KernelCall::SpaceDestroy, space, [0; 4]).map(drop)
}

/// Assigns the thread to this space.
///
/// # Errors
/// `EDEADSRCDST`, `EINVAL`.
pub fn set(thread: Endpoint, space: Space) -> Result<()> {
    raw::kernel(KernelCall::SpaceSet, [thread.to_word(), space.0, 0, 0, 0, 0]).map(drop)
}

/// Maps contiguous frames from physical address `frame` at `address`, with flags of `layout::map`.
///
/// # Errors
/// `EINVAL`: writable and executable, or not user addresses.
pub fn map(space: Space, address: u64, frame: u64, pages: u64, flags: u64) -> Result<Progress> {
    on(KernelCall::SpaceMap, space, [address, frame, pages, flags]).map(progress)
}

/// Removes mappings; absent ones are skipped.
///
/// # Errors
/// `EINVAL`.
pub fn unmap(space: Space, address: u64, pages: u64) -> Result<()> {
    on(KernelCall::SpaceUnmap, space, [address, pages, 0, 0]).map(drop)
}

/// Changes the rights of the mappings that are present.
///
/// # Errors
/// `EINVAL`.
pub fn protect(space: Space, address: u64, pages: u64, flags: u64) -> Result<()> {
    on(KernelCall::SpaceProtect, space, [address, pages, flags, 0]).map(drop)
}

/// Copies the present mappings of a range, write-protecting both sides.
///
/// # Errors
/// `EINVAL`.
pub fn copy(from: Space, to: Space, address: u64, pages: u64) -> Result<Progress> {
    on(KernelCall::SpaceCopy, from, [to.0, address, pages, 0]).map(progress)
}

/// Donates frames to the kernel's pool of page-table frames.
///
/// # Errors
/// `EINVAL`.
pub fn donate(frame: u64, pages: u64) -> Result<()> {
    raw::kernel(KernelCall::Donate, [frame, pages, 0, 0, 0, 0]).map(drop)
}

/// Takes a frame out of the kernel's pool that page tables have left.
///
/// # Errors
/// `EAGAIN`: there is none to spare.
pub fn reclaim() -> Result<u64> {
    raw::kernel(KernelCall::Reclaim, [0; 6]).map(|(frame, _)| frame)
}

/// Copies one frame.
///
/// # Errors
/// `EINVAL`.
pub fn copy_frame(to: u64, from: u64) -> Result<()> {
    raw::kernel(KernelCall::FrameCopy, [to, from, 0, 0, 0, 0]).map(drop)
}

/// Copies `bytes` from a grant into frames from physical address `frame` on, `offset` bytes into them.
///
/// # Errors
/// `EPERM`: the grant does not permit it; `EFAULT`.
pub fn fill_frames(
    frame: u64,
    offset: u64,
    granter: Endpoint,
    grant: GrantId,
    grant_offset: u64,
    bytes: u64,
) -> Result<()> {
    let arguments = [frame, offset, granter.to_word(), grant.to_word(), grant_offset, bytes];
    raw::kernel(KernelCall::FrameFill, arguments).map(drop)
}
