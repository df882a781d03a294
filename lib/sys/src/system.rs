//! Kernel calls as messages to the SYSTEM task, as in MINIX (`abi::call::SYSTEM_LABELS`): the slow path, with the same results and
//! checks as the trap. [`crate::port`] uses it for services with the access path `systask`.
//!
//! No other code builds such messages (`./skink check` enforces it): they name memory of the caller, to which safe code must not let
//! the kernel write.

use crate::{Result, ipc};
use abi::call::{KernelCall, SYSTEM_LABELS};
use abi::{Endpoint, Errno, GrantId, Message, Word};

/// Calls whose arguments are plain values, or memory that is only read.
const PLAIN: u64 = KernelCall::DevIo.bit()
    | KernelCall::Umap.bit()
    | KernelCall::IrqSet.bit()
    | KernelCall::IrqEnable.bit()
    | KernelCall::IrqDisable.bit()
    | KernelCall::IrqRemove.bit()
    | KernelCall::SetAlarm.bit()
    | KernelCall::PrivCtl.bit()
    | KernelCall::GetTsc.bit();

/// Makes a call whose arguments are plain values. Returns its result and further results.
///
/// # Errors
/// Those of the call; `EINVAL` for calls that write the caller's memory; `ECALLDENIED` also if the SYSTEM task is not a destination of
/// the caller.
pub fn call(call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
    if PLAIN & call.bit() == 0 {
        return Err(Errno::EINVAL);
    }
    let reply = ask(call, arguments)?;
    Ok((reply.words[0], [reply.words[1], reply.words[2]]))
}

/// Copies as [`crate::copy::from_grant`] does, at most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As `from_grant`.
pub fn from_grant(granter: Endpoint, grant: GrantId, offset: u64, into: &mut [u8]) -> Result<()> {
    let address = into.as_mut_ptr() as u64;
    let arguments = [granter.to_word(), grant.to_word(), offset, address, into.len() as u64, 0];
    ask(KernelCall::SafeCopyFrom, arguments).map(drop)
}

/// Copies as [`crate::copy::from_physical`] does, at most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As `from_physical`.
pub fn from_physical(physical: u64, into: &mut [u8]) -> Result<()> {
    let to = Endpoint::SELF.to_word();
    let arguments = [Endpoint::NONE.to_word(), physical, to, into.as_mut_ptr() as u64, into.len() as u64, 0];
    ask(KernelCall::PhysCopy, arguments).map(drop)
}

/// A call as a message. The caller in this crate vouches for the memory that it names.
pub(crate) fn ask(call: KernelCall, arguments: [u64; 6]) -> Result<Message> {
    let mut request = Message::new(SYSTEM_LABELS | call as u32);
    request.words[..6].copy_from_slice(&arguments);
    ipc::call(Endpoint::SYSTEM, &request)
}
