//! `ptrace(request, pid, address, data)`. Any thread of the tracer may make the requests.

use super::registers::{FPU_BYTES, WORDS, shown_result};
use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::bpf::ARCHITECTURE;
use crate::state::index::ThreadIndex;
use crate::state::signal::info::{KEPT_BYTES, code};
use crate::state::signal::{Set, SigInfo, Signal};
use crate::state::trace::{Event, How, Stop, option};
use crate::system::System;
use abi::{Errno, Word};

type Result<T> = core::result::Result<T, Errno>;

/// `PTRACE_*`.
mod request {
    pub const TRACEME: u64 = 0;
    pub const PEEKTEXT: u64 = 1;
    pub const PEEKDATA: u64 = 2;
    pub const PEEKUSER: u64 = 3;
    pub const POKETEXT: u64 = 4;
    pub const POKEDATA: u64 = 5;
    pub const POKEUSER: u64 = 6;
    pub const CONT: u64 = 7;
    pub const KILL: u64 = 8;
    pub const SINGLESTEP: u64 = 9;
    pub const GETREGS: u64 = 12;
    pub const SETREGS: u64 = 13;
    pub const GETFPREGS: u64 = 14;
    pub const SETFPREGS: u64 = 15;
    pub const ATTACH: u64 = 16;
    pub const DETACH: u64 = 17;
    pub const SYSCALL: u64 = 24;
    pub const SETOPTIONS: u64 = 0x4200;
    pub const GETEVENTMSG: u64 = 0x4201;
    pub const GETSIGINFO: u64 = 0x4202;
    pub const SETSIGINFO: u64 = 0x4203;
    pub const GETREGSET: u64 = 0x4204;
    pub const SETREGSET: u64 = 0x4205;
    pub const SEIZE: u64 = 0x4206;
    pub const INTERRUPT: u64 = 0x4207;
    pub const LISTEN: u64 = 0x4208;
    pub const GETSIGMASK: u64 = 0x420a;
    pub const SETSIGMASK: u64 = 0x420b;
    pub const GET_SYSCALL_INFO: u64 = 0x420e;
}

/// Sets of registers (`NT_*`).
mod regset {
    pub const PRSTATUS: u64 = 1;
    pub const PRFPREG: u64 = 2;
    pub const XSTATE: u64 = 0x202;
}

/// Size of a signal set.
const SET_BYTES: u64 = 8;
/// What `struct ptrace_syscall_info` is about, and how many bytes Linux writes of it.
const INFO_NONE: (u8, usize) = (0, 24);
const INFO_ENTRY: (u8, usize) = (1, 80);
const INFO_EXIT: (u8, usize) = (2, 33);
/// As at the entry, and the filter's data.
const INFO_SECCOMP: (u8, usize) = (3, 84);

/// What a request is about.
#[derive(Clone, Copy)]
struct Request {
    /// The thread of the tracer.
    t: ThreadIndex,
    /// The thread that is traced.
    target: ThreadIndex,
    address: u64,
    data: u64,
}

impl<S: System> Programs<S> {
    /// The requests that look at a stopped thread, or change it.
    fn inspect(&mut self, number: u64, stop: Stop, r: Request) -> Result<u64> {
        let Request { t, target, address, data } = r;
        match number {
            request::PEEKTEXT | request::PEEKDATA => {
                let word = self.peek(target, address)?;
                self.write_words(t, data, [word])?;
            }
            request::PEEKUSER => {
                let word = self.peek_user(target, address)?;
                self.write_words(t, data, [word])?;
            }
            request::POKETEXT | request::POKEDATA => self.poke(target, address, &data.to_le_bytes())?,
            request::POKEUSER => self.poke_user(target, address, data)?,
            request::GETREGS => {
                let words = self.user_registers(target)?;
                self.write_words(t, data, words)?;
            }
            request::SETREGS => {
                let words = self.read_words::<WORDS>(t, data)?;
                self.set_user_registers(target, &words)?;
            }
            request::GETFPREGS => {
                let bytes = self.fpu(target)?;
                self.write_bytes(t, data, &bytes[..FPU_BYTES])?;
            }
            request::SETFPREGS => {
                let bytes = self.read_bytes::<FPU_BYTES>(t, data)?;
                self.set_fpu(target, &bytes)?;
            }
            request::GETREGSET => self.get_regset(r)?,
            request::SETREGSET => self.set_regset(r)?,
            request::SETOPTIONS => self.set_options(target, data)?,
            request::GETEVENTMSG => {
                let message = self.table[target].trace.map_or(0, |trace| trace.message);
                self.write_words(t, data, [message])?;
            }
            request::GETSIGINFO => {
                let trace = self.table[target].trace.ok_or(Errno::ESRCH)?;
                let user = self.table[self.table.process_of(target)].credentials.user.real;
                let info = trace.info(self.table[target].tid(), user)?;
                self.write_bytes(t, data, &info.to_bytes())?;
            }
            request::SETSIGINFO => self.set_info(stop, r)?,
            request::GETSIGMASK | request::SETSIGMASK if address != SET_BYTES => return Err(Errno::EINVAL),
            request::GETSIGMASK => {
                let thread = &self.table[target];
                let mask = thread.restore_mask.unwrap_or(thread.blocked);
                self.write_words(t, data, [mask.0])?;
            }
            request::SETSIGMASK => {
                let mask = Set(self.read_word(t, data)?).without(Set::UNSTOPPABLE);
                self.table[target].blocked = mask;
            }
            request::GET_SYSCALL_INFO => return self.syscall_info(stop, r),
            _ => return Err(Errno::EIO),
        }
        Ok(0)
    }

    fn set_options(&mut self, target: ThreadIndex, options: u64) -> Result<()> {
        if options & !u64::from(option::ALL) != 0 {
            return Err(Errno::EINVAL);
        }
        if let Some(trace) = &mut self.table[target].trace {
            trace.options = options as u32;
        }
        Ok(())
    }

    fn set_info(&mut self, stop: Stop, r: Request) -> Result<()> {
        let bytes = self.read_bytes::<KEPT_BYTES>(r.t, r.data)?;
        let Stop::Signal(info) = stop else { return Err(Errno::EINVAL) };
        let number = u32::from_le_bytes(core::array::from_fn(|n| bytes[n]));
        let signal = Signal::new(number.into()).unwrap_or(info.signal);
        if let Some(trace) = &mut self.table[r.target].trace {
            trace.stop = Some(Stop::Signal(SigInfo::from_user(signal, &bytes)));
        }
        Ok(())
    }

    /// The `struct iovec` of a request about a set of registers.
    fn regset_vector(&mut self, r: Request) -> Result<(u64, usize)> {
        let [base, bytes] = self.read_words(r.t, r.data)?;
        Ok((base, bytes as usize))
    }

    fn get_regset(&mut self, r: Request) -> Result<()> {
        let (base, room) = self.regset_vector(r)?;
        let words;
        let fpu;
        let bytes: &[u8] = match r.address & 0xffff_ffff {
            regset::PRSTATUS => {
                words = self.user_registers(r.target)?.map(u64::to_le_bytes);
                words.as_flattened()
            }
            regset::PRFPREG => {
                fpu = self.fpu(r.target)?;
                &fpu[..FPU_BYTES]
            }
            regset::XSTATE => {
                fpu = self.fpu(r.target)?;
                &fpu
            }
            _ => return Err(Errno::EINVAL),
        };
        if !room.is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        let bytes = &bytes[..room.min(bytes.len())];
        self.write_bytes(r.t, base, bytes)?;
        self.write_words(r.t, r.data.wrapping_add(8), [bytes.len() as u64])
    }

    fn set_regset(&mut self, r: Request) -> Result<()> {
        let (base, bytes) = self.regset_vector(r)?;
        if !bytes.is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        let endpoint = self.table[r.t].endpoint();
        match r.address & 0xffff_ffff {
            regset::PRSTATUS => {
                let mut words = self.user_registers(r.target)?.map(u64::to_le_bytes);
                let all = words.as_flattened_mut();
                let used = bytes.min(all.len());
                self.system.read(endpoint, base, &mut all[..used])?;
                self.set_user_registers(r.target, &words.map(u64::from_le_bytes))?;
                self.write_words(r.t, r.data.wrapping_add(8), [used as u64])
            }
            regset::PRFPREG | regset::XSTATE => {
                let mut all = self.fpu(r.target)?;
                let limit = if r.address == regset::PRFPREG { FPU_BYTES } else { all.len() };
                let used = &mut all[..bytes.min(limit)];
                self.system.read(endpoint, base, used)?;
                let length = used.len() as u64;
                self.set_fpu(r.target, used)?;
                self.write_words(r.t, r.data.wrapping_add(8), [length])
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// `PTRACE_GET_SYSCALL_INFO`: returns how long `struct ptrace_syscall_info` is, of which as much is written as the tracer has room for.
    fn syscall_info(&mut self, stop: Stop, r: Request) -> Result<u64> {
        let registers = self.stopped_registers(r.target)?;
        let words = match stop {
            Stop::Entry | Stop::Event(Event::Seccomp) => {
                let s = &registers;
                [s.linux_call, s.rdi, s.rsi, s.rdx, s.r10, s.r8, s.r9]
            }
            Stop::Exit => {
                let result = shown_result(&registers);
                [result, Result::<u64>::from_word(result).is_err().into(), 0, 0, 0, 0, 0]
            }
            _ => [0; 7],
        };
        let (kind, length) = match stop {
            Stop::Entry => INFO_ENTRY,
            Stop::Exit => INFO_EXIT,
            Stop::Event(Event::Seccomp) => INFO_SECCOMP,
            _ => INFO_NONE,
        };
        let message = self.table[r.target].trace.map_or(0, |trace| trace.message as u32);
        let mut bytes = [0; INFO_SECCOMP.1];
        bytes[INFO_ENTRY.1..].copy_from_slice(&message.to_le_bytes());
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&ARCHITECTURE.to_le_bytes());
        for (n, word) in [registers.rip, registers.rsp].into_iter().chain(words).enumerate() {
            bytes[8 + 8 * n..16 + 8 * n].copy_from_slice(&word.to_le_bytes());
        }
        self.write_bytes(r.t, r.data, &bytes[..length.min(r.address as usize)])?;
        Ok(length as u64)
    }
}

impl<S: System> Pm<S> {
    /// `ptrace(request, pid, address, data)`.
    pub fn ptrace(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let [number, pid, address, data, ..] = *a;
        let pid = pid as i32;
        match number {
            request::TRACEME => return self.programs.trace_me(t).into(),
            request::ATTACH => return self.attach(t, pid, None).into(),
            request::SEIZE if address != 0 => return Errno::EIO.into(),
            request::SEIZE => return self.attach(t, pid, Some(data)).into(),
            _ => {}
        }
        let own = self.programs.table.process_of(t);
        let target = u32::try_from(pid).ok().and_then(|tid| self.programs.table.thread_by_tid(tid));
        let traced = target.and_then(|target| Some((target, self.programs.table[target].trace?)));
        let Some((target, trace)) = traced.filter(|(_, trace)| trace.tracer == own) else {
            return Errno::ESRCH.into();
        };
        match number {
            request::KILL => {
                let p = self.programs.table.process_of(target);
                self.programs.note_done(t);
                return self.send(p, None, SigInfo::kernel(Signal::KILL)).map(|()| 0).into();
            }
            request::INTERRUPT if !trace.seized => return Errno::EIO.into(),
            request::INTERRUPT => {
                self.programs.note_done(t);
                return self.interrupt_traced(target).into();
            }
            _ => {}
        }
        let Some(stop) = trace.stop.filter(|_| !trace.listening) else { return Errno::ESRCH.into() };
        match number {
            request::CONT => self.resume_request(t, target, How::Continue, data).into(),
            request::SYSCALL => self.resume_request(t, target, How::ToCall, data).into(),
            request::SINGLESTEP => self.resume_request(t, target, How::Step, data).into(),
            request::DETACH => {
                let signal = match self.injected(t, target, stop, data) {
                    Ok(signal) => signal,
                    Err(error) => return error.into(),
                };
                self.programs.note_done(t);
                self.detach(target, signal);
                Step::Done(Ok(0))
            }
            request::LISTEN => self.listen(t, target, stop).into(),
            _ => self.programs.inspect(number, stop, Request { t, target, address, data }).into(),
        }
    }

    /// The signal that a request to go on names, with the reason that the thread is stopped for if it is the same. `EIO`: no signal.
    fn injected(&self, t: ThreadIndex, target: ThreadIndex, stop: Stop, data: u64) -> Result<Option<SigInfo>> {
        if data == 0 {
            return Ok(None);
        }
        let signal = Signal::new(data).map_err(|_| Errno::EIO)?;
        let tracer = &self.programs.table[self.programs.table.process_of(t)];
        debug_assert!(self.programs.table.is_traced(target), "the caller has looked");
        Ok(Some(match stop {
            Stop::Signal(info) if info.signal == signal => info,
            _ => SigInfo::user(signal, code::USER, tracer.pid(), tracer.credentials.user.real),
        }))
    }

    fn resume_request(&mut self, t: ThreadIndex, target: ThreadIndex, how: How, data: u64) -> Result<u64> {
        let Some(stop) = self.trace_of(target).and_then(|trace| trace.stop) else { return Err(Errno::ESRCH) };
        let signal = self.injected(t, target, stop, data)?;
        // The next stop must not be continued.
        self.programs.note_done(t);
        if let Some(trace) = self.trace_of(target) {
            trace.stop = None;
            trace.unreported = false;
            trace.how = how;
        }
        self.continue_traced(target, stop, signal);
        Ok(0)
    }

    fn interrupt_traced(&mut self, target: ThreadIndex) -> Result<u64> {
        let Some(trace) = self.trace_of(target) else { return Err(Errno::ESRCH) };
        if core::mem::take(&mut trace.listening) {
            let stopped = self.programs.table[self.programs.table.process_of(target)].stopped();
            self.stop_traced(target, Stop::Group(stopped));
        } else {
            trace.interrupt = true;
            self.prod(target);
        }
        Ok(0)
    }

    /// `PTRACE_LISTEN`. `EIO`: not in a stop of the group of a thread that was seized.
    fn listen(&mut self, t: ThreadIndex, target: ThreadIndex, stop: Stop) -> Result<u64> {
        let Some(trace) = self.trace_of(target).filter(|trace| trace.seized) else { return Err(Errno::EIO) };
        if !matches!(stop, Stop::Group(_)) {
            return Err(Errno::EIO);
        }
        trace.listening = true;
        trace.unreported = false;
        // Something has happened meanwhile.
        let is_due = core::mem::take(&mut trace.interrupt);
        self.programs.note_done(t);
        let stopped = self.programs.table[self.programs.table.process_of(target)].stopped();
        if is_due || stopped.is_none() {
            self.stop_traced(target, Stop::Group(stopped));
        }
        Ok(0)
    }
}
