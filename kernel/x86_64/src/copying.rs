//! Copies to and from the memory of processes: page by page through the direct map, stopping where user mode would fault.

use crate::{physical, spaces::Spaces, spaces::Walk};
use abi::layout::PAGE_BYTES;
use kernel_core::{Space, machine::Copied, machine::Fault, machine::Memory, machine::Side};

/// Bytes from `address` to the end of its page.
fn rest_of_page(address: u64) -> u64 {
    PAGE_BYTES - address % PAGE_BYTES
}

/// Copies from one space to another if the bytes lie within a page of either, which is mapped. Returns false if not.
#[inline(always)]
pub fn within_pages(spaces: &mut Spaces, from: (Space, u64), to: (Space, u64), bytes: u64) -> bool {
    let Some(source) = spaces.within_page::<false>(from.0, from.1, bytes) else { return false };
    let Some(target) = spaces.within_page::<true>(to.0, to.1, bytes) else { return false };
    // SAFETY: as in `between`.
    unsafe { physical::copy(source, target, bytes) };
    true
}

/// Copies from one space to another.
#[inline(never)]
pub fn between(spaces: &Spaces, from: (Space, u64), to: (Space, u64), bytes: u64) -> Copied {
    let (mut from_walk, mut to_walk) = (spaces.walk::<false>(from.0), spaces.walk::<true>(to.0));
    let (mut source, mut target) = (from.1, to.1);
    let end = source + bytes;
    while source < end {
        let done = bytes - (end - source);
        let (from_physical, to_physical) = match (from_walk.translate(source), to_walk.translate(target)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(fault), _) => return Copied { bytes: done, fault: Some((Side::From, fault)) },
            (_, Err(fault)) => return Copied { bytes: done, fault: Some((Side::To, fault)) },
        };
        let length = if (source | target) % PAGE_BYTES == 0 && end - source >= PAGE_BYTES {
            whole_pages(&from_walk, source, &to_walk, target, end - source)
        } else {
            let length = (end - source).min(rest_of_page(source)).min(rest_of_page(target));
            // SAFETY: both are within pages of processes, to which the kernel holds no references. (Overlap gives odd bytes, nothing worse.)
            unsafe { physical::copy(from_physical, to_physical, length) };
            length
        };
        source += length;
        target += length;
    }
    Copied { bytes, fault: None }
}

/// Copies whole pages from those that were translated last on, up to `bytes`, the end of a table, or a page that is not there;
/// returns how many bytes. (One counter for both sides: each instruction here is done 256 times a MiB.)
#[inline(always)]
fn whole_pages(from: &Walk<false>, source: u64, to: &Walk<true>, target: u64, bytes: u64) -> u64 {
    let pages = (bytes / PAGE_BYTES).min(from.pages_left(source)).min(to.pages_left(target));
    for page in 0..pages {
        let (Some(from), Some(to)) = (from.frame_after(source, page), to.frame_after(target, page)) else {
            return page * PAGE_BYTES;
        };
        // SAFETY: frames of processes, to which the kernel holds no references.
        unsafe { physical::copy_frame(from, to) };
    }
    pages * PAGE_BYTES
}

/// Copies where one side or both are physical memory, which the caller has checked to be RAM of processes.
#[inline(never)]
pub fn between_memories(spaces: &Spaces, from: Memory, to: Memory, bytes: u64) -> Copied {
    let mut source = locator::<false>(spaces, from);
    let mut target = locator::<true>(spaces, to);
    let mut done = 0;
    while done < bytes {
        let (from_physical, to_physical) = match (source(done), target(done)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(fault), _) => return Copied { bytes: done, fault: Some((Side::From, fault)) },
            (_, Err(fault)) => return Copied { bytes: done, fault: Some((Side::To, fault)) },
        };
        // A physical address has the offset of its virtual one.
        let length = (bytes - done).min(rest_of_page(from_physical)).min(rest_of_page(to_physical));
        // SAFETY: as in `between`.
        unsafe { physical::copy(from_physical, to_physical, length) };
        done += length;
    }
    Copied { bytes: done, fault: None }
}

/// Finds the physical address a number of bytes into some memory.
fn locator<const WRITE: bool>(spaces: &Spaces, memory: Memory) -> impl FnMut(u64) -> Result<u64, Fault> {
    let mut walk = match memory {
        Memory::Space(space, _) => Some(spaces.walk::<WRITE>(space)),
        Memory::Physical(_) => None,
    };
    move |done| match (memory, &mut walk) {
        (Memory::Space(_, address), Some(walk)) => walk.translate(address + done),
        (Memory::Space(_, address) | Memory::Physical(address), _) => Ok(address + done),
    }
}

/// Calls `each` with the physical address of each stretch of a range within one page, how many bytes are before it, and how many it has;
/// not at all when a page to be written is missing. Mostly there is one stretch, in a page that is kept.
#[inline(always)]
fn stretches<const WRITE: bool>(
    spaces: &mut Spaces,
    space: Space,
    address: u64,
    bytes: usize,
    mut each: impl FnMut(u64, usize, usize),
) -> Result<(), Fault> {
    if let Some(physical) = spaces.within_page::<WRITE>(space, address, bytes as u64) {
        each(physical, 0, bytes);
        return Ok(());
    }
    let mut walk = spaces.walk::<WRITE>(space);
    for is_last in if WRITE { &[false, true][..] } else { &[true] } {
        let mut done = 0;
        while done < bytes {
            let at = address + done as u64;
            let length = (bytes - done).min(rest_of_page(at) as usize);
            let physical = walk.translate(at)?;
            is_last.then(|| each(physical, done, length));
            done += length;
        }
    }
    Ok(())
}

/// Reads user memory into the kernel.
#[inline(always)]
pub fn read(spaces: &mut Spaces, space: Space, address: u64, out: &mut [u8]) -> Result<(), Fault> {
    stretches::<false>(spaces, space, address, out.len(), |source, done, length| {
        // SAFETY: the source is within a page of a process, the target within `out`.
        unsafe { out.as_mut_ptr().add(done).copy_from_nonoverlapping(physical::pointer(source), length) };
    })
}

/// Writes user memory: everything, or nothing when a page is missing.
#[inline(always)]
pub fn write(spaces: &mut Spaces, space: Space, address: u64, bytes: &[u8]) -> Result<(), Fault> {
    stretches::<true>(spaces, space, address, bytes.len(), |target, done, length| {
        // SAFETY: the source is within `bytes`, the target within a page of a process.
        unsafe { physical::pointer::<u8>(target).copy_from_nonoverlapping(bytes.as_ptr().add(done), length) };
    })
}

/// Copies from the kernel's own view of memory to frames that nobody uses yet.
pub fn fill(to_physical: u64, bytes: &[u8]) {
    // SAFETY: the caller has just taken the frames, which hold at least so many bytes.
    unsafe { physical::pointer::<u8>(to_physical).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
}
