//! I/O ports through the kernel (`DevIo`), within the caller's port ranges.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::privilege::io;

/// Reads a port; `width` is 1, 2 or 4 bytes.
///
/// # Errors
/// `ECALLDENIED`: outside the ranges; `EINVAL`: no such width.
#[inline]
pub fn read(port: u16, width: u64) -> Result<u32> {
    raw::kernel(KernelCall::DevIo, [port as u64, io::IN | width, 0, 0, 0, 0]).map(|(value, _)| value as u32)
}

/// Writes a port; `width` is 1, 2 or 4 bytes.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn write(port: u16, width: u64, value: u32) -> Result<()> {
    raw::kernel(KernelCall::DevIo, [port as u64, io::OUT | width, value as u64, 0, 0, 0]).map(drop)
}

/// Reads a port again and again until the buffer is full. The buffer's length is a multiple of `width`.
///
/// # Errors
/// As [`read`].
pub fn read_string(port: u16, width: u64, into: &mut [u8]) -> Result<()> {
    let count = items(into.len(), width)?;
    raw::kernel_filling(KernelCall::SDevIo, [port as u64, io::IN | width, 0, count, 0, 0], 2, into).map(drop)
}

/// Writes the whole buffer to a port.
///
/// # Errors
/// As [`read`].
pub fn write_string(port: u16, width: u64, from: &[u8]) -> Result<()> {
    let count = items(from.len(), width)?;
    raw::kernel_reading(KernelCall::SDevIo, [port as u64, io::OUT | width, 0, count, 0, 0], 2, from).map(drop)
}

fn items(bytes: usize, width: u64) -> Result<u64> {
    let whole = matches!(width, 1 | 2 | 4) && bytes as u64 % width == 0;
    if whole { Ok(bytes as u64 / width) } else { Err(abi::Errno::EINVAL) }
}
