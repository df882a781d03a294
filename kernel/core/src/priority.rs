//! The ready queues and their use: 0 (best) to 46 real time, 47 the SYSTEM task, 48 to 63 time shared.

/// Number of ready queues.
pub const QUEUES: usize = 64;
/// The time-shared queues: 16 from here on.
pub const FIRST_SHARED: u8 = 48;
/// The queue of the SYSTEM task alone: better than all time-shared ones. Its list stays empty, since slot 0 links nothing: the bit in
/// `ready` says all.
pub const SYSTEM_QUEUE: u8 = FIRST_SHARED - 1;
/// The worst queue.
pub const LAST: u8 = QUEUES as u8 - 1;
/// Default base queue of services (of the 16).
pub const SERVICE_QUEUE: u8 = FIRST_SHARED + 4;
/// Default base queue of applications.
pub const APPLICATION_QUEUE: u8 = FIRST_SHARED + 8;
/// Default quantum.
pub const QUANTUM_NS: u64 = 10_000_000;
/// Quantum of `SCHED_FIFO`: how often `throttle` checks its thread.
pub const FIFO_NS: u64 = 50_000_000;
/// Bit of a quantum: when it is over, the thread keeps its turn among those of its queue.
pub const KEEPS_TURN: u64 = 1 << 63;
