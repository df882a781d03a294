//! What part a process has in a core dump (core(5), ADR 61).

use super::signal::{SigInfo, Signal};

/// A process that is dumped has stopped for good: its threads do not run again, and no signal but SIGKILL acts on it. A process that writes
/// was made by pm for that, and the other ends when it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreDump {
    /// None.
    None,
    /// It is dumped, and ends then.
    Dumped {
        /// The signal that kills it.
        info: SigInfo,
        /// Id of the thread that the signal was for.
        thread: u32,
        /// Pid of the process that writes; 0: it is being made.
        writer: u32,
    },
    /// It writes the dump of the process with this pid.
    Writing {
        /// That pid.
        of: u32,
    },
}

impl CoreDump {
    /// Whether the process is dumped.
    pub fn is_dumped(&self) -> bool {
        matches!(self, CoreDump::Dumped { .. })
    }

    /// Whether pm has made the process to write a dump.
    pub fn is_writing(&self) -> bool {
        matches!(self, CoreDump::Writing { .. })
    }
}

/// Whether a signal that kills a process leaves a core dump (signal(7)).
pub fn leaves_core(signal: Signal) -> bool {
    /// SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS.
    const NUMBERS: [u8; 10] = [3, 4, 5, 6, 7, 8, 11, 24, 25, 31];
    NUMBERS.contains(&signal.number())
}
