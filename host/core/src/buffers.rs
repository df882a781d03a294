//! The library's buffers: memory that programs allocate so that `vcopy` between them is fastest.
//!
//! On every back end they are pages between two that cannot be touched, and a child does not have them. Over shared memory they belong to a memory object that the
//! broker has made and hands to who may copy (docs/adr/0109-buffers-of-the-library.md); elsewhere the kernel's copy needs nothing of the kind.
//!
//! Neighbours: `copy` uses them, `region` maps them.

use crate::client;
use crate::region::{PAGE_BYTES, Region};
use crate::wire::internal;
use m3ipc::error::Error;
use m3ipc::limits::{BUFFERS, MAX_COPY};
use rustix::fs::FallocateFlags;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The buffers of a process.
struct Own {
    /// A child's are not its parent's.
    pid: i32,
    regions: Vec<Region>,
}

static OWN: Mutex<Own> = Mutex::new(Own { pid: 0, regions: Vec::new() });
/// Counts the buffers that were freed.
pub(crate) static FREED: AtomicU64 = AtomicU64::new(0);

fn locked() -> MutexGuard<'static, Own> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if own.pid != pid {
        // The parent's are not mapped here: something else may be in their place.
        std::mem::take(&mut own.regions).into_iter().for_each(std::mem::forget);
        own.pid = pid;
    }
    own
}

/// Allocates a buffer of at least so many bytes. `bound_program`: the number of this program where a broker makes buffers, or why it may have none.
/// Returns its address.
///
/// # Errors
/// `Range`; that of `bound_program`; `ResourceBusy`: the process has [`BUFFERS`]; `NoMemory`: there is none, or the user has his share; and the broker's.
pub fn allocate(bytes: i64, bound_program: impl FnOnce() -> Result<Option<u64>, Error>) -> Result<usize, Error> {
    let asked = usize::try_from(bytes).ok().filter(|bytes| (1..=MAX_COPY as usize).contains(bytes));
    let bytes = asked.ok_or(Error::Range)?.next_multiple_of(PAGE_BYTES);
    let program = bound_program()?;
    let mut own = locked();
    if own.regions.len() >= BUFFERS {
        return Err(Error::ResourceBusy);
    }
    let mut region = Region::new(bytes).map_err(|_| Error::NoMemory)?;
    if let Some(program) = program {
        share(&mut region, program)?;
    }
    let address = region.address();
    own.regions.push(region);
    Ok(address)
}

/// Has the broker make the memory of a buffer.
fn share(region: &mut Region, program: u64) -> Result<(), Error> {
    let arguments = [region.address() as i64, region.bytes() as i64, program.cast_signed()];
    let answer = client::call(internal::ALLOCATE, &arguments, &[])?;
    let filled = answer.files.first().is_some_and(|file| {
        // Here, and not in the broker, so that it is this process's memory that is counted.
        let has_pages = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, region.bytes() as u64);
        has_pages.and_then(|()| region.share(file)).is_ok()
    });
    if !filled {
        client::call(internal::FREE, &arguments[..1], &[])?;
        return Err(Error::NoMemory);
    }
    Ok(())
}

/// Frees a buffer. `has_broker`: a broker has made it.
///
/// # Errors
/// `Invalid`: none begins at this address; the broker's.
pub fn free(address: usize, has_broker: bool) -> Result<(), Error> {
    let mut own = locked();
    let at = own.regions.iter().position(|region| region.address() == address).ok_or(Error::Invalid)?;
    FREED.fetch_add(1, Ordering::SeqCst);
    if has_broker {
        client::call(internal::FREE, &[address as i64], &[])?;
    }
    own.regions.remove(at);
    Ok(())
}

/// Returns address and length of this process's buffer in which a block lies.
pub(crate) fn own(address: usize, bytes: usize) -> Option<(usize, usize)> {
    let own = locked();
    let has = |region: &&Region| {
        address
            .checked_sub(region.address())
            .is_some_and(|offset| offset <= region.bytes() && bytes <= region.bytes() - offset)
    };
    own.regions.iter().find(has).map(|region| (region.address(), region.bytes()))
}
