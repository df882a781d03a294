//! Kernel calls as messages to the SYSTEM task: the long way that MINIX has (`abi::call::SYSTEM_LABELS`), with the same results and the
//! same checks. [`crate::port`] takes it for services whose way it is.
//!
//! Nobody else builds such messages (`./skink check` looks): what they name is memory of the caller, and safe code must not have the
//! kernel write there.

use crate::{Result, ipc};
use abi::call::{KernelCall, SYSTEM_LABELS};
use abi::{Endpoint, Errno, GrantId, Message, Word};

/// The calls whose arguments are plain values, or memory that is only read.
const PLAIN: u64 = KernelCall::DevIo.bit()
    | KernelCall::Umap.bit()
    | KernelCall::IrqSet.bit()
    | KernelCall::IrqEnable.bit()
    | KernelCall::IrqDisable.bit()
    | KernelCall::IrqRemove.bit()
    | KernelCall::SetAlarm.bit()
    | KernelCall::PrivCtl.bit()
    | KernelCall::GetTsc.bit();

/// Makes a call whose arguments are plain values. Gives its result and further results.
///
/// # Errors
/// Those of the call; `EINVAL` for calls that write the caller's memory; `ECALLDENIED` also when the SYSTEM task is no destination of the
/// caller.
pub fn call(call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
    if PLAIN & call.bit() == 0 {
        return Err(Errno::EINVAL);
    }
    let reply = ask(call, arguments)?;
    Ok((reply.words[0], [reply.words[1], reply.words[2]]))
}

/// [`crate::copy::from_grant`], at most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As that.
pub fn from_grant(granter: Endpoint, grant: GrantId, offset: u64, into: &mut [u8]) -> Result<()> {
    let address = into.as_mut_ptr() as u64;
    let arguments = [granter.to_word(), grant.to_word(), offset, address, into.len() as u64, 0];
    ask(KernelCall::SafeCopyFrom, arguments).map(drop)
}

/// [`crate::copy::from_physical`], at most `layout::MAX_COPY` bytes.
///
/// # Errors
/// As that.
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
