//! RLIMIT_RTTIME: how long a thread with a real-time policy may run without waiting.
//!
//! As with RLIMIT_CPU, pm looks again when the rest has passed. A thread has waited when the kernel has counted a message of
//! it since the look before: a call, a page fault, the report of a signal. Whether that let it wait, pm does not know. pm is woken in a better queue
//! than the thread's, or would not run before it waits (`Pm::set_timer`). Neighbour: `intervals`, which plans the looks.

use crate::pm::Pm;
use crate::state::index::ProcessIndex;
use crate::state::limits::{self, Limit};
use crate::state::signal::{SigInfo, Signal};
use crate::state::thread::RunSince;
use crate::state::time::{MICRO_NS, SECOND_NS};
use crate::state::wait::Ending;
use crate::system::System;
use abi::info::state;

const SECOND_US: u64 = SECOND_NS / MICRO_NS;

impl<S: System> Pm<S> {
    /// The limit of a process, in microseconds, if it has one.
    pub(super) fn real_time_limit(&self, p: ProcessIndex) -> Option<Limit> {
        let limit = self.programs.table[p].limits.get(limits::RTTIME as u64).ok()?;
        (limit.soft.min(limit.hard) != limits::INFINITY).then_some(limit)
    }

    /// Processor time until a limited real-time thread of the process must be told of; `None`: it has none.
    pub(super) fn real_time_rest_ns(&mut self, p: ProcessIndex) -> Option<u64> {
        let limit = self.real_time_limit(p)?;
        let longest = self.longest_run_ns(p)?;
        Some(limit.soft.min(limit.hard).saturating_mul(MICRO_NS).saturating_sub(longest))
    }

    /// How long the real-time thread has run that waited longest ago; `None`: there is no such thread.
    fn longest_run_ns(&mut self, p: ProcessIndex) -> Option<u64> {
        let mut longest = None;
        let mut next = self.programs.table[p].main();
        while let Some(t) = next {
            next = self.programs.table[t].next();
            if !self.programs.table[t].scheduling.is_real_time() {
                self.programs.table[t].run_since = None;
                continue;
            }
            let used = self.programs.system.thread_use(self.programs.table[t].endpoint());
            // A call in progress counts with its request and its reply.
            let messages = used.messages
                + match used.state {
                    state::SENDING => 2,
                    state::RECEIVING | state::ANSWERING => 1,
                    _ => 0,
                };
            let since = self.programs.table[t].run_since.filter(|since| since.messages == messages);
            let since = since.unwrap_or(RunSince { messages, run_ns: used.run_ns });
            self.programs.table[t].run_since = Some(since);
            longest = longest.max(Some(used.run_ns.saturating_sub(since.run_ns)));
        }
        longest
    }

    /// SIGXCPU at the soft limit and each second behind it, SIGKILL at the hard one.
    pub(super) fn check_real_time_limit(&mut self, p: ProcessIndex) {
        if !self.programs.table[p].is_alive() {
            return;
        }
        let Some(limit) = self.real_time_limit(p) else { return };
        // One that has waited is within any limit, also within 0.
        let Some(run_ns) = self.longest_run_ns(p).filter(|run_ns| *run_ns != 0) else { return };
        let run_us = run_ns / MICRO_NS;
        if run_us >= limit.hard {
            return self.exit_process(p, Ending::Killed(Signal::KILL));
        }
        if run_us >= limit.soft {
            let later = Limit { soft: limit.soft.saturating_add(SECOND_US).min(limit.hard), ..limit };
            // Raising the soft limit up to the hard one is always allowed.
            let _ = self.programs.table[p].limits.set(limits::RTTIME as u64, later, false);
            // The queue always has room for a standard signal.
            let _ = self.send(p, None, SigInfo::kernel(Signal::XCPU));
        }
    }
}
