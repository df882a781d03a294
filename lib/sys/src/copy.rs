//! Copies between processes: by grant, or by address where the privileges permit it.
//!
//! Slices may be longer than the limit of one kernel call; they are copied by several.

use crate::{Result, raw, start};
use abi::call::KernelCall;
use abi::layout::MAX_COPY;
use abi::{Endpoint, Errno, GrantId, Word};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Copies from the grant, `offset` bytes into it, until `into` is full.
///
/// # Errors
/// `EPERM`: the grant does not permit it; `EFAULT`: the granter's memory is not mapped; `EDEADSRCDST`.
pub fn from_grant(granter: Endpoint, grant: GrantId, offset: u64, into: &mut [u8]) -> Result<()> {
    let mut at = offset;
    for piece in into.chunks_mut(MAX_COPY as usize) {
        let arguments = [granter.to_word(), grant.to_word(), at, 0, piece.len() as u64, 0];
        raw::kernel_filling(KernelCall::SafeCopyFrom, arguments, 3, piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Copies all of `from` into the grant, `offset` bytes into it.
///
/// # Errors
/// As [`from_grant`].
pub fn to_grant(granter: Endpoint, grant: GrantId, offset: u64, from: &[u8]) -> Result<()> {
    let mut at = offset;
    for piece in from.chunks(MAX_COPY as usize) {
        let arguments = [granter.to_word(), grant.to_word(), at, 0, piece.len() as u64, 0];
        raw::kernel_reading(KernelCall::SafeCopyTo, arguments, 3, piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Copies to a grant from memory outside of Rust's model: registers, DMA buffers. At most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As [`from_grant`]; `E2BIG`.
///
/// # Safety
/// `bytes` bytes at `from` may be read.
pub unsafe fn to_grant_from(
    granter: Endpoint,
    grant: GrantId,
    offset: u64,
    from: *const u8,
    bytes: usize,
) -> Result<()> {
    by_address(KernelCall::SafeCopyTo, granter, grant, offset, from as u64, bytes)
}

/// Copies from a grant to memory outside of Rust's model. At most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As [`from_grant`]; `E2BIG`.
///
/// # Safety
/// `bytes` bytes at `to` may be written.
pub unsafe fn from_grant_to(granter: Endpoint, grant: GrantId, offset: u64, to: *mut u8, bytes: usize) -> Result<()> {
    by_address(KernelCall::SafeCopyFrom, granter, grant, offset, to as u64, bytes)
}

fn by_address(
    call: KernelCall,
    granter: Endpoint,
    grant: GrantId,
    offset: u64,
    address: u64,
    bytes: usize,
) -> Result<()> {
    if bytes as u64 > MAX_COPY {
        return Err(Errno::E2BIG);
    }
    raw::kernel(call, [granter.to_word(), grant.to_word(), offset, address, bytes as u64, 0]).map(drop)
}

/// Fills `into` from `address` of another process.
///
/// # Errors
/// `EFAULT`: not mapped; `EDEADSRCDST`; `ECALLDENIED`.
#[inline]
pub fn from_process(process: Endpoint, address: u64, into: &mut [u8]) -> Result<()> {
    if into.len().wrapping_sub(1) as u64 >= MAX_COPY {
        return from_process_in_pieces(process, address, into);
    }
    let arguments = [process.to_word(), address, Endpoint::SELF.to_word(), 0, into.len() as u64, 0];
    raw::kernel_filling(KernelCall::VirCopy, arguments, 3, into).map(drop)
}

/// [`from_process`] of nothing, or of more than one kernel call copies.
#[cold]
fn from_process_in_pieces(process: Endpoint, address: u64, into: &mut [u8]) -> Result<()> {
    let mut at = address;
    for piece in into.chunks_mut(MAX_COPY as usize) {
        from_process(process, at, piece)?;
        at = at.wrapping_add(piece.len() as u64);
    }
    Ok(())
}

/// Writes `from` to `address` of another process.
///
/// # Errors
/// `EFAULT`: not mapped, or not writable; `EINVAL`: the destination is the caller itself; `EDEADSRCDST`; `ECALLDENIED`.
#[inline]
pub fn to_process(process: Endpoint, address: u64, from: &[u8]) -> Result<()> {
    refuse_self(process)?;
    if from.len().wrapping_sub(1) as u64 >= MAX_COPY {
        return to_process_in_pieces(process, address, from);
    }
    let arguments = [Endpoint::SELF.to_word(), 0, process.to_word(), address, from.len() as u64, 0];
    raw::kernel_reading(KernelCall::VirCopy, arguments, 1, from).map(drop)
}

/// [`to_process`] of nothing, or of more than one kernel call copies.
#[cold]
fn to_process_in_pieces(process: Endpoint, address: u64, from: &[u8]) -> Result<()> {
    let mut at = address;
    for piece in from.chunks(MAX_COPY as usize) {
        to_process(process, at, piece)?;
        at = at.wrapping_add(piece.len() as u64);
    }
    Ok(())
}

/// Copies between two other processes.
///
/// # Errors
/// As [`to_process`]; `E2BIG` beyond `layout::MAX_COPY`.
pub fn between(from: Endpoint, from_address: u64, to: Endpoint, to_address: u64, bytes: u64) -> Result<()> {
    refuse_self(to)?;
    if bytes > MAX_COPY {
        return Err(Errno::E2BIG);
    }
    let arguments = [from.to_word(), from_address, to.to_word(), to_address, bytes, 0];
    raw::kernel(KernelCall::VirCopy, arguments).map(drop)
}

/// Fills `into` from physical memory within the caller's ranges.
///
/// # Errors
/// `ECALLDENIED`: outside the ranges; `EINVAL`: not memory, or the kernel's.
pub fn from_physical(physical: u64, into: &mut [u8]) -> Result<()> {
    let mut at = physical;
    for piece in into.chunks_mut(MAX_COPY as usize) {
        let arguments = [Endpoint::NONE.to_word(), at, Endpoint::SELF.to_word(), 0, piece.len() as u64, 0];
        raw::kernel_filling(KernelCall::PhysCopy, arguments, 3, piece)?;
        at = at.wrapping_add(piece.len() as u64);
    }
    Ok(())
}

/// Writes `from` to physical memory within the caller's ranges.
///
/// # Errors
/// As [`from_physical`].
pub fn to_physical(physical: u64, from: &[u8]) -> Result<()> {
    let mut at = physical;
    for piece in from.chunks(MAX_COPY as usize) {
        let arguments = [Endpoint::SELF.to_word(), 0, Endpoint::NONE.to_word(), at, piece.len() as u64, 0];
        raw::kernel_reading(KernelCall::PhysCopy, arguments, 1, piece)?;
        at = at.wrapping_add(piece.len() as u64);
    }
    Ok(())
}

/// Reads one structure from `address` of another process.
///
/// # Errors
/// As [`from_process`].
pub fn read_process<T: FromBytes + IntoBytes>(process: Endpoint, address: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    from_process(process, address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes one structure to `address` of another process.
///
/// # Errors
/// As [`to_process`].
pub fn write_process<T: IntoBytes + Immutable>(process: Endpoint, address: u64, value: &T) -> Result<()> {
    to_process(process, address, value.as_bytes())
}

/// Refuses the caller itself as destination: the compiler could not see such writes.
pub(crate) fn refuse_self(process: Endpoint) -> Result<()> {
    let own = process == Endpoint::SELF || process.slot() == start::endpoint().slot();
    if own { Err(Errno::EINVAL) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Kernel;
    use abi::Message;
    use std::{cell::RefCell, rc::Rc, vec::Vec};

    /// Notes how many bytes it was asked to copy at once.
    struct Copies(Rc<RefCell<Vec<u64>>>);

    impl Kernel for Copies {
        fn primitive(&mut self, _: u64, _: Endpoint, _: &Message, _: Endpoint) -> Result<Message> {
            unreachable!()
        }
        fn call(&mut self, _: KernelCall, _: [u64; 6]) -> Result<(u64, [u64; 2])> {
            unreachable!()
        }
        fn filling(&mut self, _: KernelCall, arguments: [u64; 6], _: &mut [u8]) -> Result<u64> {
            self.0.borrow_mut().push(arguments[4]);
            Ok(0)
        }
        fn reading(&mut self, _: KernelCall, arguments: [u64; 6], _: &[u8]) -> Result<u64> {
            self.0.borrow_mut().push(arguments[4]);
            Ok(0)
        }
    }

    #[test]
    fn long_copies_are_made_in_pieces_and_empty_ones_not_at_all() {
        let copies = Rc::new(RefCell::new(Vec::new()));
        crate::host::install(Copies(copies.clone()));
        let other = Endpoint::new(200, 1);
        for (bytes, pieces) in [(0, &[][..]), (1, &[1]), (MAX_COPY, &[MAX_COPY]), (MAX_COPY + 2, &[MAX_COPY, 2])] {
            let mut buffer = std::vec![0; bytes as usize];
            from_process(other, 0x1000, &mut buffer).unwrap();
            assert_eq!(copies.take(), pieces);
            to_process(other, 0x1000, &buffer).unwrap();
            assert_eq!(copies.take(), pieces);
        }
    }
}
