//! pm's state as a whole.
//!
//! Each topic (`process`, `signal`, `time`, `exec`, `sysv`, `machine`) is a folder. What needs only the tables and the kernel is a method of
//! [`Programs`]; a method of [`Pm`] may also set timers, wake waiters of semaphores or end the machine, as the end of a process does. The
//! topics do not import each other; what they share is here, in `programs` and in `state`.

use crate::programs::Programs;
use crate::state::machine::Machine;
use crate::state::messages::Queues;
use crate::state::posix_timers::PosixTimers;
use crate::state::random::Random;
use crate::state::segments::Segments;
use crate::state::semaphores::Sets;
use crate::state::services::Services;
use crate::state::timers::Timers;
use crate::system::System;
use abi::Errno;
use recover::in_progress::InProgress;

/// The outcome of a Linux call: its result, or `Later` when the thread waits, has ended, or runs with new registers.
pub type Step = server::SyncStep<Result<u64, Errno>>;

/// The process manager.
pub struct Pm<S> {
    /// Threads and processes, with the kernel and the other servers.
    pub programs: Programs<S>,
    /// What pm is to be woken for.
    pub timers: Timers,
    /// POSIX timers of programs.
    pub posix_timers: PosixTimers,
    /// For `getrandom`, AT_RANDOM and the places of programs.
    pub random: Random,
    /// Programs start at random addresses.
    pub places_randomly: bool,
    /// Services, for the process list.
    pub services: Services,
    /// Names and fate of the machine.
    pub machine: Machine,
    /// System V semaphores.
    pub semaphores: Sets,
    /// System V message queues.
    pub messages: Queues,
    /// System V shared memory.
    pub segments: Segments,
    /// The message in progress.
    pub in_progress: InProgress,
    /// How often memory had been exhausted when pm last ended processes for that.
    pub exhaustions: u32,
    /// The number of the event of vfs that was dealt with last.
    pub file_events_done: u64,
    /// The number of the event of tty that was dealt with last.
    pub terminal_events_done: u64,
}

impl<S: System> Pm<S> {
    /// pm before its first message.
    pub fn new(system: S, mut random: Random) -> Self {
        let machine = Machine::new(random.pair());
        Pm {
            programs: Programs::new(system),
            timers: Timers::new(),
            posix_timers: PosixTimers::default(),
            random,
            places_randomly: false,
            services: Services::default(),
            machine,
            semaphores: Sets::default(),
            messages: Queues::default(),
            segments: Segments::default(),
            in_progress: InProgress::default(),
            exhaustions: 0,
            file_events_done: 0,
            terminal_events_done: 0,
        }
    }
}
