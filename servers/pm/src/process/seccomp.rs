//! The strict mode of seccomp(2) (ADR 152): the kernel reports the thread's calls to pm, as those of one that is traced, and pm lets it make four.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::signal::Signal;
use crate::state::wait::Ending;
use crate::system::System;
use abi::Errno;
use abi::call::resume;
use abi::linux::nr;

/// What a thread in strict mode may still call.
const ALLOWED: [u32; 4] = [nr::READ, nr::WRITE, nr::EXIT, nr::RT_SIGRETURN];
/// `SECCOMP_MODE_STRICT`, for prctl.
const MODE_STRICT: u64 = 1;
/// `SECCOMP_SET_MODE_STRICT`, for seccomp.
const SET_MODE_STRICT: u64 = 0;

impl<S: System> Programs<S> {
    /// Whether a thread may make a Linux call.
    pub fn may_call(&self, t: ThreadIndex, number: u64) -> bool {
        !self.table[t].strict || ALLOWED.iter().any(|allowed| u64::from(*allowed) == number)
    }

    /// Bits of `SetRegisters` with which a thread goes on.
    pub fn resume_bits(&self, t: ThreadIndex) -> u64 {
        let thread = &self.table[t];
        let of_tracer = thread.trace.map_or(0, |trace| trace.resume_bits());
        if thread.strict { of_tracer | resume::REPORT_CALLS } else { of_tracer }
    }
}

impl<S: System> Pm<S> {
    /// `prctl(PR_SET_SECCOMP, mode)`. `EINVAL`: there are no filters.
    pub fn set_seccomp(&mut self, t: ThreadIndex, mode: u64) -> Step {
        if mode == MODE_STRICT { self.begin_strict(t) } else { Errno::EINVAL.into() }
    }

    /// `seccomp(operation, flags, arguments)`. `EINVAL`: there is the strict mode alone, which has neither flags nor arguments.
    pub fn seccomp(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let is_strict = a[0] & 0xffff_ffff == SET_MODE_STRICT && a[1] & 0xffff_ffff == 0 && a[2] == 0;
        if is_strict { self.begin_strict(t) } else { Errno::EINVAL.into() }
    }

    /// The thread gets its result with its registers, since a reply would not let its calls be reported. `EINVAL`: its process is a member of M3-IPC, whose
    /// primitives are not reported.
    fn begin_strict(&mut self, t: ThreadIndex) -> Step {
        if self.programs.table[self.programs.table.process_of(t)].enrolled {
            return Errno::EINVAL.into();
        }
        self.programs.table[t].strict = true;
        self.finish(t, Ok(0));
        Step::Later
    }

    /// A thread in strict mode has made another call: it ends, and with the last one its process, as by SIGKILL.
    pub fn end_strict(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        let ending = Ending::Killed(Signal::KILL);
        if self.programs.table[p].threads() == 1 {
            return self.exit_process(p, ending);
        }
        self.programs.clear_tid(t);
        self.end_traced(t, ending);
        self.tear_down(t);
    }
}
