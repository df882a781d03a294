//! System calls of Skink: the kernel's primitives and the call of the server m3ipc. With `memory`, the only `unsafe` of this crate.

use abi::call::{RECEIVE, SEND, SENDREC};
use abi::{Endpoint, Errno};
use m3ipc::message::Message;
use std::arch::asm;

/// Has children of this process run this first.
pub fn at_fork(handler: extern "C" fn()) {
    // SAFETY: the handler touches what the thread keeps, and calls nothing. If it cannot be registered, a child finds out by the errors of its
    // calls.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
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

/// Executes a primitive with a message that lies in memory, which goes to registers and back word by word: who touches the registers of the
/// FPU pays for a switch of them. `load`, `store`: what is before and behind the call. Returns the status, and `r13`.
macro_rules! in_place {
    ($number:expr, $route:expr, $message:expr, [$($load:literal),*], [$($store:literal),*]) => {{
        let status: i64;
        let mut route: u64 = $route;
        // SAFETY: the words of the message are read and written at their offsets, and all registers that the kernel may change are declared.
        unsafe {
            asm!(
                $($load,)*
                "syscall",
                $($store,)*
                inlateout("rax") $number => status, in("r14") $message, inlateout("r13") route,
                out("rdi") _, out("rsi") _, out("rdx") _, out("r10") _, out("r8") _, out("r9") _, out("r12") _,
                out("rcx") _, out("r11") _,
                options(nostack),
            );
        }
        (status, route)
    }};
}

/// `SEND`. Returns its status.
#[inline(always)]
pub fn send(to: Endpoint, message: &Message) -> i64 {
    let route = u64::from(to.0) | u64::from(message.kind.cast_unsigned()) << 32;
    let (status, _) = in_place!(
        SEND,
        route,
        std::ptr::from_ref(message),
        [
            "mov rdi, [r14 + 8]",
            "mov rsi, [r14 + 16]",
            "mov rdx, [r14 + 24]",
            "mov r10, [r14 + 32]",
            "mov r8, [r14 + 40]",
            "mov r9, [r14 + 48]",
            "mov r12, [r14 + 56]"
        ],
        []
    );
    status
}

/// `SENDREC`: the answer takes the place of the message, but for its head; if there is none, the words are what they were. Returns status and
/// kind.
#[inline(always)]
pub fn send_receive(to: Endpoint, message: &mut Message) -> (i64, i32) {
    let route = u64::from(to.0) | u64::from(message.kind.cast_unsigned()) << 32;
    let (status, route) = in_place!(
        SENDREC,
        route,
        std::ptr::from_mut(message),
        [
            "mov rdi, [r14 + 8]",
            "mov rsi, [r14 + 16]",
            "mov rdx, [r14 + 24]",
            "mov r10, [r14 + 32]",
            "mov r8, [r14 + 40]",
            "mov r9, [r14 + 48]",
            "mov r12, [r14 + 56]"
        ],
        [
            "mov [r14 + 8], rdi",
            "mov [r14 + 16], rsi",
            "mov [r14 + 24], rdx",
            "mov [r14 + 32], r10",
            "mov [r14 + 40], r8",
            "mov [r14 + 48], r9",
            "mov [r14 + 56], r12"
        ]
    );
    (status, (route >> 32) as i32)
}

/// `RECEIVE`: the words of what was received go to the message; if it fails, there is rubbish of the caller's own. Returns status, source and
/// kind.
#[inline(always)]
pub fn receive(from: Endpoint, message: &mut Message) -> (i64, Endpoint, i32) {
    let (status, route) = in_place!(
        RECEIVE,
        u64::from(from.0),
        std::ptr::from_mut(message),
        [],
        [
            "mov [r14 + 8], rdi",
            "mov [r14 + 16], rsi",
            "mov [r14 + 24], rdx",
            "mov [r14 + 32], r10",
            "mov [r14 + 40], r8",
            "mov [r14 + 48], r9",
            "mov [r14 + 56], r12"
        ]
    );
    (status, Endpoint(route as u32), (route >> 32) as i32)
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
