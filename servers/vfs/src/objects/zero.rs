//! /dev/zero and /dev/full (zero(4), full(4)), which need no driver.
//!
//! Nothing about a read is noted: one that comes again gives the same.

use super::{Inheritance, Kind, Object, OpenFile, Operation, Seek, done};
use crate::{
    base::{Base, Flow},
    callers::Caller,
    events::poll::ALWAYS_READY,
    files::vnode::NodeRef,
    keep::records::ObjectRecord,
    memory as user,
    memory::buffer::UserBuffer,
};
use abi::{Errno, layout::PAGE_BYTES};
use alloc::rc::Rc;
use core::mem::take;

/// Bytes of a read between which others have their turn.
const AT_ONCE: u64 = 256 << 10;
/// How long they have it.
const PAUSE_NS: u64 = 1000;

/// Bytes that are cleared with one copy by the kernel at most.
const CLEARED_BYTES: u64 = 16 * PAGE_BYTES;

/// Zeros in whole pages: the kernel copies a page to a page fastest.
#[repr(align(4096))]
struct Zeros([u8; CLEARED_BYTES as usize]);
static ZEROS: Zeros = Zeros([0; CLEARED_BYTES as usize]);

/// See the head of the file.
#[derive(Debug)]
pub struct Zero {
    /// The special file.
    node: NodeRef,
    /// It takes nothing: /dev/full.
    is_full: bool,
}

/// The minor numbers (devices.txt of Linux).
mod minor {
    pub const ZERO: u64 = 5;
    pub const FULL: u64 = 7;
}

impl Zero {
    /// The device behind a special file. `ENXIO`: vfs has none of this minor number.
    pub fn new(node: NodeRef, minor: u64) -> Result<Zero, Errno> {
        match minor {
            minor::ZERO | minor::FULL => Ok(Zero { node, is_full: minor == minor::FULL }),
            _ => Err(Errno::ENXIO),
        }
    }

    /// Whether it takes everything: it is /dev/zero, a mapping of which is memory without a file.
    pub fn swallows(&self) -> bool {
        !self.is_full
    }
}

impl Object for Zero {
    fn record(&self) -> ObjectRecord {
        let minor = if self.is_full { minor::FULL } else { minor::ZERO };
        ObjectRecord { minor: minor as u32, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        let piece = buffer.piece();
        if piece.bytes == buffer.left() && piece.bytes <= PAGE_BYTES && store_zeros(buffer, piece.bytes).is_ok() {
            return done(piece.bytes);
        }
        read_pieces(on, buffer)
    }

    fn write(&self, _: &Operation, buffer: &mut UserBuffer, _: Option<u64>) -> Result<Flow, Errno> {
        if self.is_full { Err(Errno::ENOSPC) } else { done(buffer.left()) }
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for Zero {
    const NUMBER: u8 = 16;

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Zero::new(node?, record.minor.into()).ok()
    }
}

/// Clears a buffer piece by piece, a long one with pauses.
#[inline(never)]
fn read_pieces(on: &Operation, buffer: &mut UserBuffer) -> Result<Flow, Errno> {
    if buffer.left() > AT_ONCE {
        return Ok(Flow::task(clear_all(on.base, on.caller.clone(), on.file.clone(), take(buffer))));
    }
    clear(buffer, AT_ONCE).or_else(|error| buffer.moved_or(error)).and_then(done)
}

/// Clears up to `limit` further bytes of a program's buffer. Returns how many have been cleared in all. `EFAULT`.
fn clear(buffer: &mut UserBuffer, limit: u64) -> Result<u64, Errno> {
    let end = buffer.moved() + limit;
    while buffer.left() > 0 && buffer.moved() < end {
        let piece = buffer.piece();
        let to_page_end = PAGE_BYTES - piece.address % PAGE_BYTES;
        let most = if to_page_end == PAGE_BYTES { CLEARED_BYTES } else { to_page_end };
        let bytes = piece.bytes.min(most).min(end - buffer.moved());
        let cleared = match store_zeros(buffer, bytes) {
            Ok(()) => bytes,
            // The program's memory may end within the pages.
            Err(_) if bytes > to_page_end => store_zeros(buffer, to_page_end).map(|()| to_page_end)?,
            Err(error) => return Err(error),
        };
        buffer.advance(cleared);
    }
    Ok(buffer.moved())
}

/// Clears `bytes` bytes of a buffer's piece, at most [`CLEARED_BYTES`]. `EFAULT`.
#[inline]
fn store_zeros(buffer: &UserBuffer, bytes: u64) -> Result<(), Errno> {
    user::store(buffer.owner, buffer.piece().address, &ZEROS.0[..bytes as usize])
}

/// Clears a long buffer, piece by piece, until a signal ends the call.
async fn clear_all(
    base: &'static Base,
    caller: Rc<Caller>,
    _open: Rc<OpenFile>,
    mut buffer: UserBuffer,
) -> Result<u64, Errno> {
    loop {
        if let Err(error) = clear(&mut buffer, AT_ONCE) {
            return buffer.moved_or(error);
        }
        if buffer.left() == 0 {
            return Ok(buffer.moved());
        }
        let mut pause = base.runtime().sleep_ns(PAUSE_NS);
        if let Err(error) = caller.wait_or_sleep(Some(&mut pause)).await {
            return buffer.moved_or(error);
        }
    }
}
