//! MINIX4RT's system calls, for the server mrt.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::{Endpoint, Word};
use zerocopy::IntoBytes;

/// Words of the longest structure of `abi::rt`.
pub const WORDS: usize = 8;

/// Executes a MINIX4RT system call of `caller`: `operation` of `abi::rt::control`, with the words of the structure that it reads or writes.
///
/// # Errors
/// Those of the operation; `ECALLDENIED`; `EDEADSRCDST`: the caller has ended.
pub fn control(operation: u64, caller: Endpoint, argument: u64, words: &mut [u64; WORDS]) -> Result<u64> {
    let arguments = [operation, caller.to_word(), argument, 0, 0, 0];
    raw::kernel_filling(KernelCall::RtControl, arguments, 3, words.as_mut_bytes())
}
