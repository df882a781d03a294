//! The saved user registers of a thread, and which register carries which part of a message (`abi::message`).
//!
//! The hardware entry code stores into the frame of the current thread and restores from the frame of the next one.
//! Neighbours: `thread` (owns the frame), `ipc` (moves messages from frame to frame).

use abi::{Endpoint, Errno, Message, Word, registers::Registers};
use core::mem::offset_of;
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute};

/// The user registers of a thread while it does not run. The order is part of the contract with the entry code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[allow(missing_docs)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rbp: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
    pub rip: u64,
    pub rflags: u64,
    pub rsp: u64,
    /// FS base. The hardware half keeps it current: saved and loaded when it changes threads.
    pub fs_base: u64,
    /// GS base of user mode, likewise.
    pub gs_base: u64,
    /// One of [`entry`]: how the thread may be resumed. Written by the entry code; core writes `FULL` when it changes
    /// registers.
    pub entry: u64,
}

/// How a thread came into the kernel, and so how it may be resumed.
pub mod entry {
    /// Every register counts: resume by `iretq`.
    pub const FULL: u64 = 0;
    /// By `syscall`: `rcx` and `r11` are free, `sysretq` does.
    pub const SYSCALL: u64 = 1;
}

/// The flags of `rflags` that a program may choose: carry to overflow, and the harmless rest; never IOPL, NT, VM, IF.
pub const USER_FLAGS: u64 = 0x24_0dd5;
/// The flags every program runs with: interrupts on, and the bit that is always one.
pub const FIXED_FLAGS: u64 = 0x202;

/// Bytes of the registers with which both `Frame` and `Registers` begin.
const COMMON_BYTES: usize = offset_of!(Frame, entry);

const _: () = assert!(COMMON_BYTES == offset_of!(Registers, linux_call));

impl Frame {
    /// All zero; `entry` is `FULL`.
    pub const ZERO: Frame = transmute!([0u64; size_of::<Frame>() / 8]);

    /// A thread that starts at `rip` with this stack and nothing else.
    pub const fn start(rip: u64, rsp: u64) -> Frame {
        Frame { rip, rsp, rflags: FIXED_FLAGS, ..Frame::ZERO }
    }

    /// Puts them into what `GetRegisters` gives.
    pub(crate) fn store(&self, registers: &mut Registers) {
        registers.as_mut_bytes()[..COMMON_BYTES].copy_from_slice(&self.as_bytes()[..COMMON_BYTES]);
    }

    /// Takes them from what `SetRegisters` is given, as they are.
    #[inline(always)]
    pub(crate) fn load(registers: &Registers) -> Frame {
        let mut frame = Frame::ZERO;
        frame.as_mut_bytes()[..COMMON_BYTES].copy_from_slice(&registers.as_bytes()[..COMMON_BYTES]);
        frame
    }

    /// Destination, or the source to receive from.
    pub const fn endpoint(&self) -> Endpoint {
        Endpoint(self.r13 as u32)
    }

    /// Label of the message to send.
    pub const fn label(&self) -> u32 {
        (self.r13 >> 32) as u32
    }

    /// The seven words of the message in the registers; words 0 to 5 are also the arguments of kernel and Linux calls.
    pub const fn words(&self) -> [u64; 7] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9, self.r12]
    }

    /// Sets what [`Frame::words`] returns.
    pub const fn set_words(&mut self, words: [u64; 7]) {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9, self.r12] = words;
    }

    /// Puts a received message into the registers, with success in `rax`.
    #[inline(always)]
    pub fn set_message(&mut self, message: &Message) {
        self.set_words(message.words);
        self.r13 = message.source.0 as u64 | (message.label as u64) << 32;
        self.rax = 0;
    }

    /// The result of a call: `rax`.
    pub fn set_result(&mut self, result: Result<u64, Errno>) {
        self.rax = result.to_word();
    }
}
