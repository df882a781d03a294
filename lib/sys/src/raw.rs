//! The `syscall` instruction: the only way out of a program.
//!
//! Registers are as `abi::message` and `abi::call` say. `rbx`, `rbp` and `r15` are unused and preserved by the
//! kernel; the instruction clobbers `rcx` and `r11`.

use crate::Result;
use abi::call::KernelCall;
use abi::{Endpoint, Errno, Message, Word};
use core::arch::asm;

/// Executes the primitive `number`: `message` is sent to `to` (if the primitive sends), `from` is for `REPLYREC` and `SENDWAIT` only.
/// Returns the message received; unspecified for primitives that receive none.
#[inline(always)]
pub fn primitive(number: u64, to: Endpoint, message: &Message, from: Endpoint) -> Result<Message> {
    let mut words = message.words;
    let mut peer = to.to_word() | (message.label as u64) << 32;
    let status: u64;
    // SAFETY: the primitives read and write registers only, all of which are declared; memory is reached by other
    // processes only through live grants, whose buffers the compiler must expect to change (no `nomem`).
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => status,
            inlateout("rdi") words[0], inlateout("rsi") words[1], inlateout("rdx") words[2], inlateout("r10") words[3],
            inlateout("r8") words[4], inlateout("r9") words[5], inlateout("r12") words[6],
            inlateout("r13") peer, inlateout("r14") from.to_word() => _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    Result::from_word(status)?;
    Ok(Message { source: Endpoint(peer as u32), label: (peer >> 32) as u32, words })
}

/// Makes a kernel call whose arguments are plain values. Returns its result and further results in two words.
#[inline(always)]
pub fn kernel(call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
    // SAFETY: the callers in this crate pass no addresses here at which the kernel writes, or memory that their own
    // callers have vouched for.
    unsafe { numbered(call.number(), arguments) }
}

/// Makes a kernel call that writes into `buffer`, whose address becomes argument `at`.
pub fn kernel_filling(call: KernelCall, mut arguments: [u64; 6], at: usize, buffer: &mut [u8]) -> Result<u64> {
    arguments[at] = buffer.as_mut_ptr() as u64;
    // SAFETY: the callers in this crate pass the buffer's length in another argument, so the kernel writes within it,
    // and it is done when the call returns.
    unsafe { numbered(call.number(), arguments) }.map(|(value, _)| value)
}

/// Makes a kernel call that reads from `buffer`, whose address becomes argument `at`.
pub fn kernel_reading(call: KernelCall, mut arguments: [u64; 6], at: usize, buffer: &[u8]) -> Result<u64> {
    arguments[at] = buffer.as_ptr() as u64;
    // SAFETY: the kernel only reads, within the length that the callers pass, until the call returns.
    unsafe { numbered(call.number(), arguments) }.map(|(value, _)| value)
}

/// Makes the Linux call `number` and returns `rax`.
///
/// # Safety
/// The call must only change memory that the arguments pass to it for that.
#[inline(always)]
pub unsafe fn linux(number: u64, arguments: [u64; 6]) -> Result<u64> {
    // SAFETY: passed on.
    unsafe { numbered(number, arguments) }.map(|(value, _)| value)
}

/// # Safety
/// The call must only change memory that the arguments pass to it for that.
#[inline(always)]
unsafe fn numbered(number: u64, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
    let value: u64;
    let mut words = [arguments[0], arguments[1]];
    // SAFETY: see above; all registers that the kernel may change are declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => value,
            inlateout("rdi") words[0], inlateout("rsi") words[1], inlateout("rdx") arguments[2] => _,
            inlateout("r10") arguments[3] => _, inlateout("r8") arguments[4] => _, inlateout("r9") arguments[5] => _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    let value = core::result::Result::<u64, Errno>::from_word(value)?;
    Ok((value, words))
}
