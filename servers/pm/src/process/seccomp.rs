//! seccomp(2): the kernel reports the thread's calls to pm, as those of one that is traced, and pm lets it make those that it may (ADRs 152,
//! 169).
//!
//! The mode is set with registers. So the call that begins it, and the first instruction of a child that inherits it, go by `SetRegisters`.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::bpf::{Data, INSTRUCTION_BYTES, MAX_INSTRUCTIONS, Program};
use crate::state::index::ThreadIndex;
use crate::state::seccomp::{Refusal, Seccomp, is_action};
use crate::state::signal::{SigInfo, Signal};
use crate::state::wait::Ending;
use crate::system::System;
use abi::call::resume;
use abi::linux::nr;
use abi::registers::Registers;
use abi::{Capability, Endpoint, Errno, Word};
use sys::fallible::filled;

type Result<T> = core::result::Result<T, Errno>;

/// What a thread in strict mode may still call.
const STRICT_CALLS: [u32; 4] = [nr::READ, nr::WRITE, nr::EXIT, nr::RT_SIGRETURN];

/// `SECCOMP_MODE_*`, for prctl.
mod mode {
    pub const STRICT: u64 = 1;
    pub const FILTER: u64 = 2;
}

/// Operations of seccomp, without `SECCOMP_`.
mod operation {
    pub const SET_MODE_STRICT: u32 = 0;
    pub const SET_MODE_FILTER: u32 = 1;
    pub const GET_ACTION_AVAIL: u32 = 2;
}

/// `SECCOMP_FILTER_FLAG_*`.
mod flag {
    /// All threads of the process get the filter.
    pub const TSYNC: u32 = 1;
    /// Wishes about the log, and about a processor's speculation: nothing here follows from them.
    pub const LOG: u32 = 2;
    pub const SPEC_ALLOW: u32 = 4;
    /// If they cannot, the call fails with `ESRCH` instead of telling which one.
    pub const TSYNC_ESRCH: u32 = 16;
    pub const KNOWN: u32 = TSYNC | LOG | SPEC_ALLOW | TSYNC_ESRCH;
}

impl<S: System> Programs<S> {
    /// Why a Linux call that a thread is about to make with these registers is not made; `None`: it is.
    pub fn refusal(&self, t: ThreadIndex, number: u64, r: &Registers) -> Option<Refusal> {
        match self.table[t].seccomp {
            Seccomp::Off => None,
            Seccomp::Strict if STRICT_CALLS.iter().any(|allowed| u64::from(*allowed) == number) => None,
            Seccomp::Strict => Some(Refusal::KillThread),
            Seccomp::Filtered(filter) => {
                self.filters.refusal(filter, &Data::new(number, r.rip, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]))
            }
        }
    }

    /// Bits of `SetRegisters` with which a thread goes on.
    pub fn resume_bits(&self, t: ThreadIndex) -> u64 {
        let thread = &self.table[t];
        let of_tracer = thread.trace.map_or(0, |trace| trace.resume_bits());
        if thread.seccomp.is_on() { of_tracer | resume::REPORT_CALLS } else { of_tracer }
    }

    /// `EINVAL`: the process is a member of M3-IPC, whose primitives are not reported, or the thread is strict already and becomes something else.
    fn check_mode(&self, t: ThreadIndex, wanted: u64) -> Result<()> {
        let thread = &self.table[t];
        let differs = thread.seccomp.is_on() && u64::from(thread.seccomp.mode()) != wanted;
        if differs || self.table[thread.process()].enrolled { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// The program of a `struct sock_fprog`. `EFAULT`, `EINVAL`; `EACCES`: the process may get more rights by an exec, and is no administrator.
    fn fetch_filter(&mut self, t: ThreadIndex, address: u64) -> Result<Program> {
        let [count, instructions] = self.read_words(t, address)?;
        let count = usize::from(count as u16);
        if !(1..=MAX_INSTRUCTIONS).contains(&count) {
            return Err(Errno::EINVAL);
        }
        let process = &self.table[self.table.process_of(t)];
        if !process.control.no_new_privileges && !process.credentials.has_inside(Capability::SysAdmin) {
            return Err(Errno::EACCES);
        }
        let mut bytes = filled([0; INSTRUCTION_BYTES], count)?;
        self.system.read(self.table[t].endpoint(), instructions, bytes.as_flattened_mut())?;
        Program::new(&bytes)
    }

    /// Adds a filter to those of a thread, and with `TSYNC` of all of its process. Returns 0, or the id of a thread that has others.
    fn add_filter(&mut self, t: ThreadIndex, flags: u32, address: u64) -> Result<u64> {
        let program = self.fetch_filter(t, address)?;
        self.check_mode(t, mode::FILTER)?;
        let p = self.table.process_of(t);
        let has = self.table[t].seccomp;
        let stranger = if flags & flag::TSYNC != 0 { self.stranger_to(t) } else { None };
        match stranger {
            Some(_) if flags & flag::TSYNC_ESRCH != 0 => return Err(Errno::ESRCH),
            Some(stranger) => return Ok(self.table.pid_shown(p, self.table[stranger].tid()).into()),
            None => {}
        }
        let call = (self.table[t].tid(), self.table[t].serial);
        if !self.filters.was_added_by(has, call) {
            let Programs { filters, table, .. } = self;
            let living = ThreadIndex::all().filter(|t| table[*t].endpoint() != Endpoint::NONE);
            filters.retain(living.map(|t| table[t].seccomp));
            let filter = filters.add(program, has, table[p].credentials.account(), call)?;
            table[t].seccomp = Seccomp::Filtered(filter);
        }
        if flags & flag::TSYNC != 0 {
            self.share_filters(t);
        }
        Ok(0)
    }

    /// A thread of the same process that has filters which this one has not.
    fn stranger_to(&self, t: ThreadIndex) -> Option<ThreadIndex> {
        let p = self.table.process_of(t);
        let has = self.table[t].seccomp;
        self.table.first_thread_where(p, |other| !self.filters.descends(has, other.seccomp))
    }

    /// Gives all threads of a process the filters of this one. They come to pm before their next instruction.
    fn share_filters(&mut self, t: ThreadIndex) {
        let seccomp = self.table[t].seccomp;
        let mut next = self.table[self.table.process_of(t)].main();
        while let Some(other) = next {
            next = self.table[other].next();
            if other != t {
                self.table[other].seccomp = seccomp;
                self.report_soon(other);
            }
        }
    }

    /// A thread comes to pm before its next instruction, from which on its calls are reported.
    pub fn report_soon(&mut self, t: ThreadIndex) {
        // It can only fail because the thread is gone.
        let _ = self.system.interrupt(self.table[t].endpoint());
    }
}

impl<S: System> Pm<S> {
    /// `prctl(PR_SET_SECCOMP, mode, filter)`. Errors as of [`Pm::seccomp`].
    pub fn set_seccomp(&mut self, t: ThreadIndex, mode: u64, filter: u64) -> Step {
        match mode {
            mode::STRICT => self.begin_strict(t),
            mode::FILTER => self.begin_filter(t, 0, filter),
            _ => Errno::EINVAL.into(),
        }
    }

    /// `seccomp(operation, flags, argument)`. `EINVAL`: unknown, or a listener is wanted; `EOPNOTSUPP`: no such action; else as the modes say.
    pub fn seccomp(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let [operation, flags] = [a[0] as u32, a[1] as u32];
        match operation {
            operation::SET_MODE_STRICT if flags == 0 && a[2] == 0 => self.begin_strict(t),
            operation::SET_MODE_FILTER if flags & !flag::KNOWN == 0 => self.begin_filter(t, flags, a[2]),
            operation::GET_ACTION_AVAIL if flags == 0 => match self.programs.read_bytes(t, a[2]) {
                Ok(action) if is_action(u32::from_le_bytes(action)) => Ok(0).into(),
                Ok(_) => Errno::EOPNOTSUPP.into(),
                Err(error) => error.into(),
            },
            _ => Errno::EINVAL.into(),
        }
    }

    /// `EINVAL`: as of `check_mode`.
    fn begin_strict(&mut self, t: ThreadIndex) -> Step {
        if let Err(error) = self.programs.check_mode(t, mode::STRICT) {
            return error.into();
        }
        self.programs.table[t].seccomp = Seccomp::Strict;
        self.finish_beginning(t, 0)
    }

    fn begin_filter(&mut self, t: ThreadIndex, flags: u32, address: u64) -> Step {
        match self.programs.add_filter(t, flags, address) {
            Ok(result) => self.finish_beginning(t, result),
            Err(error) => error.into(),
        }
    }

    /// The thread gets its result with its registers, since a reply would not let its calls be reported.
    fn finish_beginning(&mut self, t: ThreadIndex, result: u64) -> Step {
        self.finish(t, Ok(result));
        Step::Later
    }

    /// A thread has made a call that it may not make, or not in this way.
    pub fn refuse_call(&mut self, t: ThreadIndex, number: u64, registers: &mut Registers, refusal: Refusal) {
        let info = |data| SigInfo::filtered(number, registers.rip, data);
        match refusal {
            Refusal::KillThread if self.programs.table[t].seccomp == Seccomp::Strict => {
                self.end_thread(t, SigInfo::kernel(Signal::KILL));
            }
            Refusal::KillThread => self.end_thread(t, info(0)),
            Refusal::KillProcess => self.end_as_fatal(t, info(0)),
            Refusal::Trap(data) => {
                let info = info(data);
                registers.rax = number;
                // It can only fail because the thread is gone.
                let _ = self.programs.system.set_registers(self.programs.table[t].endpoint(), registers, 0);
                self.force(t, info);
            }
            Refusal::Fail(error) => self.skip_call(t, registers, Err(Errno(error.into())).to_word()),
            Refusal::Trace(data) => {
                if !self.stops_at_filter(t, registers, data) {
                    self.skip_call(t, registers, Err(Errno::ENOSYS).to_word());
                }
            }
        }
    }

    /// Ends a thread, and with the last one its process as by this signal.
    fn end_thread(&mut self, t: ThreadIndex, info: SigInfo) {
        let p = self.programs.table.process_of(t);
        if self.programs.table[p].threads() == 1 {
            return self.end_as_fatal(t, info);
        }
        self.programs.clear_tid(t);
        self.end_traced(t, Ending::Killed(info.signal));
        self.tear_down(t);
    }

    fn end_as_fatal(&mut self, t: ThreadIndex, info: SigInfo) {
        let process = &self.programs.table[self.programs.table.process_of(t)];
        let (name, pid) = (process.name, process.pid());
        self.programs.system.log(format_args!("{}[{pid}] has made a call that it may not make", name.text()));
        self.end_by_signal(t, info);
    }
}
