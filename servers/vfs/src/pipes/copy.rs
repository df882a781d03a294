//! Copies between the memory of two programs, straight from the writer's to the reader's.

use super::{MAX_BYTES, World};
use crate::memory::buffer::UserBuffer;

/// Which side's memory was bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that is read from.
    Writer,
    /// The one that is written to.
    Reader,
}

/// Copies from one program to another as much as one has and the other has room for.
pub(super) fn hand_over(world: &impl World, from: &mut UserBuffer, to: &mut UserBuffer) -> Result<(), Side> {
    while from.left() > 0 && to.left() > 0 {
        let (source, target) = (from.piece(), to.piece());
        let bytes = source.bytes.min(target.bytes).min(MAX_BYTES as u64);
        if world.copy(from.owner, source.address, to.owner, target.address, bytes).is_err() {
            // The copy does not tell whose memory it was: one byte of the writer's decides.
            let writer_bad = !world.is_mapped(from.owner, source.address)
                || !world.is_mapped(from.owner, source.address.wrapping_add(bytes - 1));
            return Err(if writer_bad { Side::Writer } else { Side::Reader });
        }
        from.advance(bytes);
        to.advance(bytes);
    }
    Ok(())
}
