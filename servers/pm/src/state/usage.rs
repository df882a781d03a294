//! What processes have used: getrusage(2), wait4(2), times(2).

use crate::state::time::to_timeval;
use crate::system::{Footprint, ThreadUse};

/// Words of `struct rusage`.
pub const USAGE_WORDS: usize = 18;
/// Words of that structure: the most resident memory in KiB, minor faults, voluntary context switches.
const MAX_RSS: usize = 4;
const MINOR_FAULTS: usize = 8;
const VOLUNTARY_SWITCHES: usize = 16;

/// What one or more processes, or a thread, have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time.
    pub run_ns: u64,
    /// How often they waited for a server.
    pub waits: u64,
    /// Page faults, and the most memory of one of them.
    pub memory: Footprint,
}

impl Usage {
    /// Adds what a thread has used.
    pub fn add_thread(&mut self, used: &ThreadUse) {
        self.run_ns += used.run_ns;
        self.waits += used.waits;
    }

    /// This and what another process has used.
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            run_ns: self.run_ns + other.run_ns,
            waits: self.waits + other.waits,
            memory: Footprint {
                faults: self.memory.faults + other.memory.faults,
                peak_bytes: self.memory.peak_bytes.max(other.memory.peak_bytes),
            },
        }
    }

    /// As `struct rusage`. What nobody counts is 0; no fault waits for a disk, so that there are no major ones.
    pub fn to_words(self) -> [u64; USAGE_WORDS] {
        let mut words = [0; USAGE_WORDS];
        words[..2].copy_from_slice(&to_timeval(self.run_ns));
        words[MAX_RSS] = self.memory.peak_bytes / 1024;
        words[MINOR_FAULTS] = self.memory.faults;
        words[VOLUNTARY_SWITCHES] = self.waits;
        words
    }
}
