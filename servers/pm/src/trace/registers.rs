//! Registers of a stopped thread in Linux's forms: `struct user_regs_struct`, `struct user`, the FPU's areas.

use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::signal::frame;
use crate::state::thread::Doing;
use crate::state::trace::Stop;
use crate::system::System;
use abi::linux::nr;
use abi::registers::{EXTENDED_BYTES, Registers};
use abi::{Errno, Word, layout};

type Result<T> = core::result::Result<T, Errno>;

/// Words of `struct user_regs_struct`.
pub const WORDS: usize = 27;
/// Positions of `rax` and `orig_rax` there.
const RESULT: usize = 10;
const CALL: usize = 15;
/// That of the flags.
const FLAGS: usize = 18;
/// Size of `struct user`, and of its registers.
const USER_BYTES: u64 = 928;
const USER_REGISTERS_BYTES: u64 = 8 * WORDS as u64;
/// Offset of the debug registers there, and their end.
const DEBUG: u64 = 848;
const DEBUG_END: u64 = DEBUG + 64;
/// Size of `struct user_fpregs_struct`.
pub const FPU_BYTES: usize = 512;
/// Selectors of user code: cs, ss.
const CODE_SEGMENT: u64 = 0x33;
const STACK_SEGMENT: u64 = 0x2b;
/// Flags that a tracer may change: CF PF AF ZF SF TF DF OF NT RF AC.
const TRACER_FLAGS: u64 = 0x5_4dd5;
const TRAP_FLAG: u64 = 0x100;
/// RF, which the kernel does not keep: `Watches` does.
const RESUME_FLAG: u64 = 0x1_0000;
const FIXED_FLAGS: u64 = 0x202;
/// x87 control word and MXCSR of a thread that has not used the FPU.
const INITIAL_CONTROL: [u8; 2] = [0x7f, 0x03];
const INITIAL_MXCSR: [u8; 4] = [0x80, 0x1f, 0, 0];
/// x87, SSE, AVX: what XCR0 says, where Linux shows it.
const COMPONENTS: [u8; 8] = [7, 0, 0, 0, 0, 0, 0, 0];

/// As `struct user_regs_struct`; `call`: `orig_rax`.
fn to_words(r: &Registers, call: u64) -> [u64; WORDS] {
    let (code, stack) = (CODE_SEGMENT, STACK_SEGMENT);
    [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi, r.rdi, call,
        r.rip, code, r.rflags, r.rsp, stack, r.fs_base, r.gs_base, 0, 0, 0, 0,
    ]
}

/// Takes them from `struct user_regs_struct`. What no program may have is `EIO`; segments stay as they are.
fn from_words(words: &[u64; WORDS], r: &mut Registers) -> Result<()> {
    [r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx] = [words[0], words[1], words[2], words[3], words[4], words[5]];
    [r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx] = [words[6], words[7], words[8], words[9], words[10], words[11]];
    [r.rdx, r.rsi, r.rdi, r.rip, r.rsp] = [words[12], words[13], words[14], words[16], words[19]];
    [r.fs_base, r.gs_base] = [words[21], words[22]];
    r.rflags = words[FLAGS] & TRACER_FLAGS | FIXED_FLAGS;
    if [r.rip, r.fs_base, r.gs_base].iter().any(|address| *address >= layout::USER_END) {
        return Err(Errno::EIO);
    }
    Ok(())
}

/// The result of a call as Linux shows it to a tracer. What a call that a signal interrupts returns says there whether it is made again
/// when no handler runs, or goes on by `restart_syscall`; a program never sees it.
pub fn shown_result(registers: &Registers) -> u64 {
    const IF_NO_HANDLER: Errno = Errno(514);
    const RESTART_BLOCK: Errno = Errno(516);
    if registers.rax != Err(Errno::ERESTARTSYS).to_word() {
        return registers.rax;
    }
    match registers.linux_call as u32 {
        nr::PAUSE | nr::RT_SIGSUSPEND | nr::SELECT | nr::PSELECT6 | nr::PPOLL => Err(IF_NO_HANDLER).to_word(),
        nr::NANOSLEEP | nr::CLOCK_NANOSLEEP | nr::POLL | nr::RESTART_SYSCALL => Err(RESTART_BLOCK).to_word(),
        _ => registers.rax,
    }
}

/// The FPU's state of a thread that has not used it.
fn initial_fpu() -> [u8; EXTENDED_BYTES] {
    let mut bytes = [0; EXTENDED_BYTES];
    bytes[..2].copy_from_slice(&INITIAL_CONTROL);
    bytes[frame::MXCSR..frame::MXCSR + 4].copy_from_slice(&INITIAL_MXCSR);
    bytes
}

impl<S: System> Programs<S> {
    /// The registers of a stopped thread, with the call that it is in. `ESRCH`: it is gone.
    pub fn stopped_registers(&mut self, t: ThreadIndex) -> Result<Registers> {
        let mut registers = Registers::ZERO;
        self.system.registers(self.table[t].endpoint(), &mut registers).map_err(|_| Errno::ESRCH)?;
        if let Some(trace) = self.table[t].trace {
            registers.linux_call = trace.call;
        }
        Ok(registers)
    }

    /// Changes them. `EIO`: the thread is stopped in a call of pm, or no program may have such registers.
    fn set_stopped(&mut self, t: ThreadIndex, registers: &Registers) -> Result<()> {
        if !matches!(self.table[t].doing, Doing::Held) {
            return Err(Errno::EIO);
        }
        self.system.set_registers(self.table[t].endpoint(), registers, 0).map_err(|_| Errno::EIO)
    }

    /// As `PTRACE_GETREGS` copies them.
    pub fn user_registers(&mut self, t: ThreadIndex) -> Result<[u64; WORDS]> {
        let registers = self.stopped_registers(t)?;
        let mut words = to_words(&registers, registers.linux_call);
        words[RESULT] = shown_result(&registers);
        if self.table[t].trace.is_some_and(|trace| trace.watches.resumes()) {
            words[FLAGS] |= RESUME_FLAG;
        }
        if matches!(self.table[t].trace.and_then(|trace| trace.stop), Some(Stop::Event(_))) {
            // Linux stops there before the call has a result.
            words[RESULT] = Err(Errno::ENOSYS).to_word();
        }
        Ok(words)
    }

    /// `PTRACE_SETREGS`.
    pub fn set_user_registers(&mut self, t: ThreadIndex, words: &[u64; WORDS]) -> Result<()> {
        let mut registers = self.stopped_registers(t)?;
        let (shown, result) = (self.user_registers(t)?[RESULT], registers.rax);
        from_words(words, &mut registers)?;
        if registers.rax == shown {
            registers.rax = result;
        }
        self.set_stopped(t, &registers)?;
        if let Some(trace) = &mut self.table[t].trace {
            trace.call = words[CALL] as i32 as i64 as u64;
            trace.watches.set_resumes(words[FLAGS] & RESUME_FLAG != 0);
        }
        Ok(())
    }

    /// A word of `struct user`. `EIO`: no such word.
    pub fn peek_user(&mut self, t: ThreadIndex, offset: u64) -> Result<u64> {
        if !offset.is_multiple_of(8) || offset >= USER_BYTES {
            return Err(Errno::EIO);
        }
        match offset {
            ..USER_REGISTERS_BYTES => Ok(self.user_registers(t)?[offset as usize / 8]),
            DEBUG..DEBUG_END => {
                Ok(self.table[t].trace.map_or(0, |trace| trace.watches.peek((offset - DEBUG) as usize / 8)))
            }
            _ => Ok(0),
        }
    }

    /// Changes a word of `struct user`. `EIO`: no such word; `EINVAL`: it cannot be watched so.
    pub fn poke_user(&mut self, t: ThreadIndex, offset: u64, value: u64) -> Result<()> {
        if !offset.is_multiple_of(8) || offset >= USER_BYTES {
            return Err(Errno::EIO);
        }
        match offset {
            ..USER_REGISTERS_BYTES => {
                let mut words = self.user_registers(t)?;
                words[offset as usize / 8] = value;
                self.set_user_registers(t, &words)
            }
            DEBUG..DEBUG_END => {
                let trace = self.table[t].trace.as_mut().ok_or(Errno::ESRCH)?;
                trace.watches.poke((offset - DEBUG) as usize / 8, value)
            }
            _ => Err(Errno::EIO),
        }
    }

    /// The FPU's state: `FPU_BYTES` of it are Linux's `struct user_fpregs_struct`, all NT_X86_XSTATE.
    pub fn fpu(&mut self, t: ThreadIndex) -> Result<[u8; EXTENDED_BYTES]> {
        let registers = self.stopped_registers(t)?;
        let mut bytes = if registers.extended_valid != 0 { registers.extended } else { initial_fpu() };
        bytes[frame::SOFTWARE..frame::SOFTWARE + 8].copy_from_slice(&COMPONENTS);
        Ok(bytes)
    }

    /// Changes the beginning of the FPU's state. `EINVAL`: these bytes are none.
    pub fn set_fpu(&mut self, t: ThreadIndex, bytes: &[u8]) -> Result<()> {
        let mut registers = self.stopped_registers(t)?;
        let mut new = if registers.extended_valid != 0 { registers.extended } else { initial_fpu() };
        new.get_mut(..bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        if bytes.len() <= FPU_BYTES {
            // x87 and SSE are what was given.
            new[frame::XSAVE_HEADER] |= 3;
        }
        frame::sanitize_fpu(&mut new);
        registers.extended = new;
        registers.extended_valid = 1;
        self.set_stopped(t, &registers)
    }

    /// Ends a single step: the flag is the tracer's, not the program's.
    pub fn clear_trap_flag(&mut self, t: ThreadIndex, registers: &mut Registers) {
        hide_step(registers);
        self.set_held(t, registers);
    }

    /// Sets the registers of a thread that does not run yet.
    pub fn set_held(&mut self, t: ThreadIndex, registers: &Registers) {
        // It can only fail because the thread is gone.
        let _ = self.system.set_registers(self.table[t].endpoint(), registers, 0);
    }
}

/// Takes the flag TF out of registers of a thread that makes a call: `syscall` has copied the flags to r11.
pub fn hide_step_in_call(registers: &mut Registers) {
    hide_step(registers);
    registers.r11 &= !TRAP_FLAG;
}

/// Takes the flag TF out of registers of a thread whose step has ended.
pub fn hide_step(registers: &mut Registers) {
    registers.rflags &= !TRAP_FLAG;
}

/// Registers with which a thread makes one step.
pub fn stepping(registers: &Registers) -> Registers {
    Registers { rflags: registers.rflags | TRAP_FLAG, ..*registers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_survive_the_way_to_a_tracer_and_back() {
        let mut r = Registers { r15: 1, rax: 2, rip: 0x4000, rsp: 5, rdi: 6, fs_base: 7, ..Registers::ZERO };
        let words = to_words(&r, 39);
        assert_eq!((words[CALL], words[16], words[17]), (39, 0x4000, CODE_SEGMENT));
        let before = r;
        r.rip = 0;
        from_words(&words, &mut r).unwrap();
        assert_eq!((r.rip, r.r15, r.rax, r.rdi, r.fs_base), (before.rip, 1, 2, 6, 7));
    }

    #[test]
    fn a_tracer_chooses_no_system_flags_and_no_kernel_addresses() {
        let mut r = Registers::ZERO;
        let mut words = to_words(&r, 0);
        words[18] = u64::MAX;
        from_words(&words, &mut r).unwrap();
        assert_eq!(r.rflags & 0x3000, 0, "IOPL");
        words[16] = layout::USER_END;
        assert_eq!(from_words(&words, &mut r), Err(Errno::EIO));
    }
}
