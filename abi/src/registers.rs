//! The registers of a thread, as `GetRegisters` and `SetRegisters` copy them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// Bytes of the extended state: XSAVE area (legacy, header, AVX; SDM volume 1, 13.4).
pub const EXTENDED_BYTES: usize = 832;

/// All of a thread's user registers.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[allow(missing_docs)]
pub struct Registers {
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
    pub fs_base: u64,
    pub gs_base: u64,
    /// Number of the Linux call that the thread is in, or has returned from without running since; `u64::MAX`: none.
    /// A call that returned `-ERESTARTSYS` is restarted by `rip -= 2`, `rax = linux_call`. Ignored by `SetRegisters`.
    pub linux_call: u64,
    /// 1: `extended` is valid; 0: the thread has not used the FPU (`SetRegisters`: resets it to the initial state).
    pub extended_valid: u64,
    /// XSAVE area, standard format, components x87, SSE, AVX.
    pub extended: [u8; EXTENDED_BYTES],
    /// Padding.
    pub unused: [u64; 2],
}

impl Registers {
    /// All zero, interrupts enabled, FPU in its initial state.
    pub const ZERO: Registers = Registers { rflags: 0x202, linux_call: u64::MAX, ..Self::EMPTY };

    const EMPTY: Registers = transmute!([0u64; size_of::<Registers>() / 8]);
}
