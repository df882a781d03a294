//! The recent failures of vm and rs, and how often rs has left its alarm unheard. Neighbours: `ipc::critical`.

use zerocopy::FromZeros;

/// Failures that are forgiven within the window.
const TRIES: u32 = 8;
/// The window.
const WINDOW_NS: u64 = 10_000_000_000;

/// The failures of a service within a window.
#[derive(Clone, Copy, Debug, FromZeros)]
struct Failures {
    /// Start of the window.
    since_ns: u64,
    /// Failures in it.
    count: u32,
}

/// What is remembered of vm and rs.
#[derive(Debug, FromZeros)]
pub struct Watch {
    failures: [Failures; 2],
    /// Reminders that rs has not heard; valid while its alarm is pending.
    pub unheard: u32,
}

impl Watch {
    /// Counts a failure of vm, or of rs. Returns false when they are too many.
    pub fn forgives(&mut self, is_rs: bool, now_ns: u64) -> bool {
        let failures = &mut self.failures[is_rs as usize];
        if now_ns - failures.since_ns > WINDOW_NS {
            *failures = Failures { since_ns: now_ns, count: 0 };
        }
        failures.count += 1;
        failures.count <= TRIES
    }
}
