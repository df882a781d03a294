//! Memory of programs: paths, vectors and structures of their calls, and pipes' copies.

pub mod address;
pub mod buffer;

use abi::{Endpoint, Errno, layout};
use alloc::vec::Vec;
use buffer::UserBuffer;
use sys::{
    copy,
    fallible::{TryVec, copied, filled},
};

/// Longest path of a call, its NUL included.
pub const PATH_MAX: usize = 4096;
/// Most bytes that one read or write moves (Linux's MAX_RW_COUNT).
pub const MAX_TRANSFER: u64 = 0x7fff_f000;
/// Most entries of a vector of buffers.
pub const IOV_MAX: u64 = 1024;
/// Paths are fetched in steps that do not cross into memory that may not be there.
const STEP: u64 = 256;
/// The first piece: most paths are short.
const FIRST_STEP: u64 = 64;

/// Errors of a copy, as programs see them: whatever is wrong with their memory is `EFAULT`.
pub fn fault(_: Errno) -> Errno {
    Errno::EFAULT
}

/// Fills `into` from a program's memory. `EFAULT`.
pub fn fetch(from: Endpoint, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    copy::from_process(from, address, into).map_err(fault)
}

/// Writes to a program's memory. `EFAULT`.
pub fn store(to: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    copy::to_process(to, address, bytes).map_err(fault)
}

/// Writes to a program's buffer, which is at least as long and not used any more. `EFAULT`.
#[inline]
pub fn store_all(to: &mut UserBuffer, bytes: &[u8]) -> Result<(), Errno> {
    let piece = to.piece();
    if bytes.len() as u64 <= piece.bytes { store(to.owner, piece.address, bytes) } else { store_pieces(to, bytes) }
}

#[cold]
fn store_pieces(to: &mut UserBuffer, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() && to.left() > 0 {
        let piece = to.piece();
        let (now, later) = bytes.split_at(bytes.len().min(piece.bytes as usize));
        store(to.owner, piece.address, now)?;
        to.advance(now.len() as u64);
        bytes = later;
    }
    Ok(())
}

/// `bytes` bytes of a program's memory. `EFAULT`, `ENOMEM`.
pub fn fetch_vec(from: Endpoint, address: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
    let mut copied = filled(0, bytes)?;
    fetch(from, address, &mut copied)?;
    Ok(copied)
}

/// Words of a program's memory. `EFAULT`.
pub fn fetch_words<const N: usize>(from: Endpoint, address: u64) -> Result<[u64; N], Errno> {
    let mut bytes = [[0; 8]; N];
    fetch(from, address, bytes.as_flattened_mut())?;
    Ok(bytes.map(u64::from_le_bytes))
}

/// The first piece of a path, which never lies across two pages of vfs: the kernel copies to one page at once.
#[repr(align(64))]
struct FirstPiece([u8; FIRST_STEP as usize]);

/// How many bytes there are at an address before the next page, at most `step`.
fn step_at(address: u64, step: u64) -> usize {
    (layout::PAGE_BYTES - address % layout::PAGE_BYTES).min(step) as usize
}

/// A text that ends with NUL, without it. `EFAULT`; `ENAMETOOLONG`: longer than a path may be.
pub fn fetch_path(from: Endpoint, address: u64) -> Result<Vec<u8>, Errno> {
    let is_end = |byte: &u8| *byte == 0;
    let mut piece = FirstPiece([0; FIRST_STEP as usize]);
    let first = &mut piece.0[..step_at(address, FIRST_STEP)];
    fetch(from, address, first)?;
    if let Some(end) = first.iter().position(is_end) {
        return copied(&first[..end]);
    }
    let mut path = copied(first)?;
    while path.len() < PATH_MAX {
        let known = path.len();
        let at = address.checked_add(known as u64).ok_or(Errno::EFAULT)?;
        path.try_resize(known + step_at(at, STEP), 0)?;
        fetch(from, at, &mut path[known..])?;
        if let Some(end) = path[known..].iter().position(is_end) {
            path.truncate(known + end);
            return if path.len() < PATH_MAX { Ok(path) } else { Err(Errno::ENAMETOOLONG) };
        }
    }
    Err(Errno::ENAMETOOLONG)
}

/// The buffer of a read or write. `EINVAL`: a negative length.
pub fn buffer(owner: Endpoint, address: u64, bytes: u64) -> Result<UserBuffer, Errno> {
    match bytes {
        0..=MAX_TRANSFER => Ok(UserBuffer::new(owner, address, bytes)),
        _ if bytes as i64 <= -1 => Err(Errno::EINVAL),
        _ => Ok(UserBuffer::new(owner, address, MAX_TRANSFER)),
    }
}

/// The buffers of a readv or writev (`struct iovec`). `EINVAL`: too many, or a negative or too large sum; `EFAULT`.
pub fn vector(owner: Endpoint, address: u64, count: u64) -> Result<UserBuffer, Errno> {
    if count > IOV_MAX {
        return Err(Errno::EINVAL);
    }
    UserBuffer::of_vector(owner, address, count as usize, MAX_TRANSFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_length_is_refused_and_a_large_one_cut() {
        assert!(buffer(Endpoint::NONE, 0, 1 << 63).is_err());
        assert_eq!(buffer(Endpoint::NONE, 0, 1 << 40).unwrap().left(), MAX_TRANSFER);
    }
}
