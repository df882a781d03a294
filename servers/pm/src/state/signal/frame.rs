//! What a signal handler finds on its stack: Linux's `struct rt_sigframe` for x86-64, byte for byte.
//!
//! ```text
//! lower addresses
//!   +0    return address (the action's restorer)          <- rsp in the handler; rsp + 8 is a multiple of 16
//!   +8    ucontext: flags, link, alternate stack, registers, signal mask
//!   +312  siginfo
//!   +440  end; then up to the next multiple of 64
//!   fpu   XSAVE area with Linux's software bytes and end marker (absent if the thread has not used the FPU)
//! higher: red zone of 128 bytes below the interrupted rsp, or the end of the alternate stack
//! ```
//! Offsets are facts of the kernel's interface (asm/sigcontext.h, asm/ucontext.h); the tests compare them with the C headers.

use super::{Set, SigInfo, info::INFO_BYTES};
use abi::Errno;
use abi::registers::{EXTENDED_BYTES, Registers};

/// Bytes below rsp that a function may use without moving it.
const RED_ZONE_BYTES: u64 = 128;

/// Offset of the ucontext in the frame.
pub const CONTEXT: usize = 8;
/// Offset of `uc_stack` in the ucontext.
pub const STACK: usize = 16;
/// Offset of `uc_mcontext` in the ucontext.
pub const MACHINE: usize = 40;
/// Offset of `uc_sigmask` in the ucontext.
pub const MASK: usize = 296;
/// Size of the ucontext as the kernel writes it.
pub const CONTEXT_BYTES: usize = 304;
/// Offset of the siginfo in the frame.
pub const INFO: usize = CONTEXT + CONTEXT_BYTES;
/// Size of the frame without FPU state.
pub const FRAME_BYTES: usize = INFO + INFO_BYTES;
/// Largest frame: the FPU state lies at a multiple of 64, the frame 8 bytes below a multiple of 16.
const MAX_BYTES: usize = FRAME_BYTES + 15 + 8 + EXTENDED_BYTES + MAGIC_END_BYTES;

/// Offsets in `uc_mcontext` behind the registers.
const SEGMENTS: usize = 144;
const ERROR: usize = 152;
const TRAP: usize = 160;
const OLD_MASK: usize = 168;
const FAULT_ADDRESS: usize = 176;
/// Offset of the pointer to the FPU state in `uc_mcontext`.
pub const FPU: usize = 184;

/// Selectors user code runs with, in the order cs, gs, fs, ss.
const SELECTORS: u64 = 0x33 | 0x2b << 48;

const UC_FP_XSTATE: u64 = 1;
const UC_SIGCONTEXT_SS: u64 = 2;
const UC_STRICT_RESTORE_SS: u64 = 4;

/// Offset of Linux's software bytes in the XSAVE area; their magic number, and that of the marker behind the area.
pub const SOFTWARE: usize = 464;
const MAGIC_START: u32 = 0x4650_5853;
const MAGIC_END: u32 = 0x4650_5845;
const MAGIC_END_BYTES: usize = 4;
/// x87, SSE, AVX.
const COMPONENTS: u64 = 7;
/// Offset of MXCSR in the XSAVE area.
pub const MXCSR: usize = 24;
/// Offset of the XSAVE header.
pub const XSAVE_HEADER: usize = 512;
const XSAVE_HEADER_BYTES: usize = 64;

/// Flags a handler's return may change: CF PF AF ZF SF TF DF OF RF AC.
const USER_FLAGS: u64 = 0x5_0dd5;
/// Flags cleared when a handler starts: DF, RF, TF.
const CLEARED_FLAGS: u64 = 0x400 | 0x1_0000 | 0x100;
/// Interrupts enabled and the bit that is always one.
const FIXED_FLAGS: u64 = 0x202;

/// The least length of an alternate stack (MINSIGSTKSZ).
const MIN_STACK_BYTES: u64 = 2048;

/// An alternate stack, as `stack_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AltStack {
    /// Lowest address.
    pub start: u64,
    /// `SS_*` flags.
    pub flags: u32,
    /// Length.
    pub bytes: u64,
}

/// `stack_t`: there is none.
pub const SS_DISABLE: u32 = 2;
/// `stack_t`: the thread runs on it now.
pub const SS_ONSTACK: u32 = 1;
/// `stack_t`: switched off while a handler runs on it.
pub const SS_AUTODISARM: u32 = 1 << 31;
/// Size of `stack_t`.
pub const STACK_BYTES: usize = 24;

impl AltStack {
    /// No alternate stack.
    pub const NONE: AltStack = AltStack { start: 0, flags: SS_DISABLE, bytes: 0 };

    /// The stack that is to take its place, for a thread with this stack pointer. `EPERM`: the thread is on the present one; `EINVAL`: flags;
    /// `ENOMEM`: too small.
    pub fn replaced(self, wanted: AltStack, stack_pointer: u64) -> Result<AltStack, Errno> {
        if self.bytes != 0 && self.holds(stack_pointer) {
            return Err(Errno::EPERM);
        }
        match wanted.flags & !SS_AUTODISARM {
            SS_DISABLE => Ok(AltStack { flags: wanted.flags, ..AltStack::NONE }),
            0 | SS_ONSTACK if wanted.bytes < MIN_STACK_BYTES => Err(Errno::ENOMEM),
            0 | SS_ONSTACK => Ok(wanted),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The stack pointer lies in it.
    pub fn holds(&self, stack_pointer: u64) -> bool {
        let offset = stack_pointer.wrapping_sub(self.start);
        self.flags & SS_AUTODISARM == 0 && offset > 0 && offset <= self.bytes
    }

    /// As `sigaltstack` and `uc_stack` show it for a thread with this stack pointer.
    pub fn to_bytes(self, stack_pointer: u64) -> [u8; STACK_BYTES] {
        let state = match self.bytes {
            0 => SS_DISABLE,
            _ if self.holds(stack_pointer) => SS_ONSTACK,
            _ => 0,
        };
        let flags = state | self.flags & SS_AUTODISARM;
        let mut bytes = [0; STACK_BYTES];
        bytes[0..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..12].copy_from_slice(&flags.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// From a program's memory.
    pub fn from_bytes(bytes: &[u8; STACK_BYTES]) -> AltStack {
        let flags = u32::from_le_bytes(core::array::from_fn(|i| bytes[8 + i]));
        AltStack { start: word(bytes, 0), flags, bytes: word(bytes, 16) }
    }
}

/// What an exception adds to the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trap {
    /// CPU vector.
    pub vector: u64,
    /// CPU error code.
    pub error: u64,
    /// Address of the access.
    pub address: u64,
}

/// All that goes into a frame beside the registers.
pub struct Contents<'a> {
    /// The signal and its reason.
    pub info: SigInfo,
    /// The mask to restore afterwards.
    pub mask: Set,
    /// The thread's alternate stack.
    pub stack: AltStack,
    /// Switch to that stack.
    pub on_stack: bool,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Last exception.
    pub trap: Trap,
    /// The interrupted registers.
    pub registers: &'a Registers,
}

/// A frame ready to be written.
pub struct Frame {
    /// Where it goes; the handler's stack pointer.
    pub address: u64,
    /// Where the siginfo is.
    pub info: u64,
    /// Where the ucontext is.
    pub context: u64,
    bytes: [u8; MAX_BYTES],
    used: usize,
}

impl Frame {
    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// The registers in the order of `struct sigcontext`.
fn machine_words(r: &Registers) -> [u64; 18] {
    [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx, r.rsp,
        r.rip, r.rflags,
    ]
}

/// The frame for a handler. Addresses wrap on garbage stack pointers; writing there then fails with `EFAULT`.
pub fn build(contents: &Contents) -> Frame {
    let registers = contents.registers;
    let switch = contents.on_stack && contents.stack.bytes != 0 && !contents.stack.holds(registers.rsp);
    let top = if switch {
        contents.stack.start.wrapping_add(contents.stack.bytes)
    } else {
        registers.rsp.wrapping_sub(RED_ZONE_BYTES)
    };
    let has_fpu = registers.extended_valid != 0;
    let fpu_bytes = if has_fpu { EXTENDED_BYTES + MAGIC_END_BYTES } else { 0 };
    let fpu = top.wrapping_sub(fpu_bytes as u64) & !63;
    let address = (fpu.wrapping_sub(FRAME_BYTES as u64) & !15).wrapping_sub(8);

    let fpu_offset = fpu.wrapping_sub(address) as usize;
    let used = if has_fpu { fpu_offset + fpu_bytes } else { FRAME_BYTES };
    let (info, context) = (address.wrapping_add(INFO as u64), address.wrapping_add(CONTEXT as u64));
    let mut frame = Frame { address, info, context, bytes: [0; MAX_BYTES], used };
    put(&mut frame.bytes, 0, contents.restorer);
    write_context(&mut frame.bytes[CONTEXT..INFO], contents, if has_fpu { fpu } else { 0 });
    frame.bytes[INFO..FRAME_BYTES].copy_from_slice(&contents.info.to_bytes());
    if has_fpu {
        write_fpu(&mut frame.bytes[fpu_offset..], &registers.extended);
    }
    frame
}

fn write_context(bytes: &mut [u8], contents: &Contents, fpu: u64) {
    let fpu_flag = if fpu != 0 { UC_FP_XSTATE } else { 0 };
    put(bytes, 0, UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS | fpu_flag);
    bytes[STACK..STACK + STACK_BYTES].copy_from_slice(&contents.stack.to_bytes(contents.registers.rsp));
    for (n, value) in machine_words(contents.registers).into_iter().enumerate() {
        put(bytes, MACHINE + 8 * n, value);
    }
    put(bytes, MACHINE + SEGMENTS, SELECTORS);
    put(bytes, MACHINE + ERROR, contents.trap.error);
    put(bytes, MACHINE + TRAP, contents.trap.vector);
    put(bytes, MACHINE + OLD_MASK, contents.mask.0);
    put(bytes, MACHINE + FAULT_ADDRESS, contents.trap.address);
    put(bytes, MACHINE + FPU, fpu);
    put(bytes, MASK, contents.mask.0);
}

fn write_fpu(bytes: &mut [u8], extended: &[u8; EXTENDED_BYTES]) {
    bytes[..EXTENDED_BYTES].copy_from_slice(extended);
    let software = &mut bytes[SOFTWARE..SOFTWARE + 48];
    software.fill(0);
    software[0..4].copy_from_slice(&MAGIC_START.to_le_bytes());
    software[4..8].copy_from_slice(&((EXTENDED_BYTES + MAGIC_END_BYTES) as u32).to_le_bytes());
    software[8..16].copy_from_slice(&COMPONENTS.to_le_bytes());
    software[16..20].copy_from_slice(&(EXTENDED_BYTES as u32).to_le_bytes());
    bytes[EXTENDED_BYTES..EXTENDED_BYTES + 4].copy_from_slice(&MAGIC_END.to_le_bytes());
}

/// Turns the interrupted registers into those with which the handler starts.
pub fn enter_handler(registers: &mut Registers, frame: &Frame, info: &SigInfo, handler: u64) {
    registers.rdi = info.signal.number() as u64;
    registers.rsi = frame.info;
    registers.rdx = frame.context;
    registers.rax = 0;
    registers.rip = handler;
    registers.rsp = frame.address;
    registers.rflags &= !CLEARED_FLAGS;
}

/// What `rt_sigreturn` reads from a ucontext.
pub struct Restored {
    /// The mask.
    pub mask: Set,
    /// The alternate stack.
    pub stack: AltStack,
    /// Where the FPU state is, 0: nowhere.
    pub fpu: u64,
}

/// Takes the general registers back from a ucontext. What a program must not choose (system flags, segments) stays.
pub fn restore(context: &[u8; CONTEXT_BYTES], registers: &mut Registers) -> Restored {
    let at = |n: usize| word(context, MACHINE + 8 * n);
    [registers.r8, registers.r9, registers.r10, registers.r11] = [at(0), at(1), at(2), at(3)];
    [registers.r12, registers.r13, registers.r14, registers.r15] = [at(4), at(5), at(6), at(7)];
    [registers.rdi, registers.rsi, registers.rbp, registers.rbx] = [at(8), at(9), at(10), at(11)];
    [registers.rdx, registers.rax, registers.rcx, registers.rsp] = [at(12), at(13), at(14), at(15)];
    registers.rip = at(16);
    registers.rflags = at(17) & USER_FLAGS | FIXED_FLAGS;
    let stack: [u8; STACK_BYTES] = core::array::from_fn(|i| context[STACK + i]);
    Restored {
        mask: Set(word(context, MASK)).without(Set::UNSTOPPABLE),
        stack: AltStack::from_bytes(&stack),
        fpu: word(context, MACHINE + FPU),
    }
}

/// Makes FPU state from a program's memory safe to load: unknown components, reserved bits and the compacted form are removed.
pub fn sanitize_fpu(extended: &mut [u8; EXTENDED_BYTES]) {
    extended[MXCSR + 2..MXCSR + 4].fill(0);
    let components = word(extended, XSAVE_HEADER) & COMPONENTS;
    extended[XSAVE_HEADER..XSAVE_HEADER + XSAVE_HEADER_BYTES].fill(0);
    put(extended, XSAVE_HEADER, components);
}
