//! The real-time world, for the server mrt.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::{Endpoint, Word};

/// A system call of MINIX4RT by `caller`: `operation` of `abi::rt::control`, with the structure that it reads or writes, which may be empty.
///
/// # Errors
/// Those of the operation; `ECALLDENIED`; `EDEADSRCDST`: the caller is gone.
pub fn control(operation: u64, caller: Endpoint, argument: u64, structure: &mut [u8]) -> Result<u64> {
    raw::kernel_filling(KernelCall::RtControl, [operation, caller.to_word(), argument, 0, 0, 0], 3, structure)
}
