//! System calls of Skink: the kernel's primitives and the call of the server m3ipc. With `memory`, the only `unsafe` of this crate.

use abi::{Endpoint, Errno};
use m3ipc::message::Message;
use std::arch::asm;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often this process or its ancestors have forked since the first look.
static FORKS: AtomicU64 = AtomicU64::new(0);
static WATCHED: Once = Once::new();

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that is another one in a child than in its parent.
pub fn generation() -> u64 {
    WATCHED.call_once(|| {
        // SAFETY: the handler touches one atomic. If it cannot be registered, a child finds out by the errors of its calls.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    FORKS.load(Ordering::Relaxed)
}

/// What a primitive sends or receives: the kernel's endpoint of the other side, the kind of message, and its words.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    pub peer: Endpoint,
    pub kind: u32,
    pub words: [u64; 7],
}

impl Parcel {
    /// A message for this thread.
    pub fn to(peer: Endpoint, message: &Message) -> Parcel {
        Parcel { peer, kind: message.kind.cast_unsigned(), words: message.words }
    }
}

/// Executes a primitive (`abi::call`). Returns what was received, if it receives.
#[inline(always)]
pub fn primitive(number: u64, parcel: Parcel) -> Result<Parcel, Errno> {
    let mut words = parcel.words;
    let mut peer = u64::from(parcel.peer.0) | u64::from(parcel.kind) << 32;
    let status: u64;
    // SAFETY: the primitives read and write registers only, all of which are declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => status,
            inlateout("rdi") words[0], inlateout("rsi") words[1], inlateout("rdx") words[2], inlateout("r10") words[3],
            inlateout("r8") words[4], inlateout("r9") words[5], inlateout("r12") words[6],
            inlateout("r13") peer, lateout("r14") _, lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    match status.cast_signed() {
        0.. => Ok(Parcel { peer: Endpoint(peer as u32), kind: (peer >> 32) as u32, words }),
        error => Err(Errno(-error as i32)),
    }
}

/// Makes the routed call of m3ipc. Returns its result.
///
/// # Safety
/// Arguments that are addresses point to memory that the call may read, or change, as `abi::m3ipc` says.
pub unsafe fn call(number: u64, arguments: [u64; 5]) -> i64 {
    let [a, b, c, d, e] = arguments;
    let result: i64;
    // SAFETY: as the caller promises; all registers that the kernel may change are declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") u64::from(abi::m3ipc::SYSTEM_CALL) => result,
            inlateout("rdi") number => _, inlateout("rsi") a => _, inlateout("rdx") b => _, inlateout("r10") c => _,
            inlateout("r8") d => _, inlateout("r9") e => _,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a call with a message that is read and written.
pub fn call_with_message(number: u64, [first, last]: [i64; 2], message: &mut Message) -> i64 {
    // SAFETY: the message is ours until the call returns.
    unsafe { call(number, [first as u64, std::ptr::from_mut(message) as u64, last as u64, 0, 0]) }
}

/// Makes a call without addresses.
pub fn call_plainly(number: u64, arguments: [i64; 4]) -> i64 {
    let [a, b, c, d] = arguments.map(|argument| argument as u64);
    // SAFETY: these calls have none (`abi::m3ipc`).
    unsafe { call(number, [a, b, c, d, 0]) }
}

/// Makes a call that reads or fills `bytes`, whose address comes behind the other arguments.
pub fn call_with_bytes(number: u64, arguments: &[i64], bytes: &mut [u8]) -> i64 {
    let mut words = [0; 5];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = *argument as u64;
    }
    words[arguments.len()] = bytes.as_mut_ptr() as u64;
    // SAFETY: the buffer has the size of the descriptor that the call is about.
    unsafe { call(number, words) }
}

/// Makes a call whose message lies at another place in its arguments.
pub fn call_rcvrqst(number: u64, message: &mut Message, limit: i64) -> i64 {
    // SAFETY: the message is ours until the call returns.
    unsafe { call(number, [std::ptr::from_mut(message) as u64, limit as u64, 0, 0, 0]) }
}

/// `RESUME`.
pub fn resume(of: u64, peer: i64, message: &mut Message) -> i64 {
    // SAFETY: the message is ours until the call returns.
    unsafe { call(abi::m3ipc::own::RESUME, [of, peer as u64, std::ptr::from_mut(message) as u64, 0, 0]) }
}
