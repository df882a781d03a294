//! Semaphores and priorities of real-time threads: waits, and priority inheritance along them.
//!
//! Apart from the node's thread table, so that it can be explored exhaustively: threads and semaphores are indices here. A lower
//! number is a better priority. Invariants, whatever happens and in whatever order:
//! * a thread's effective priority is the best of its base, of what messages donate it, of the ceilings of the mutexes it holds, and
//!   of the effective priorities of the waiters for an inheriting mutex it holds, and of the clients that await its reply;
//! * a semaphore's waiters are in the order in which they will be woken;
//! * no thread waits for itself, over however many links; so every walk ends after at most as many steps as there are threads.
//!
//! Neighbours: the kernel calls (errors, time limits) and `boost`, which is told of each effective priority that has changed.

mod chain;
#[cfg(test)]
mod exploration;
pub mod semaphore;
#[cfg(test)]
mod tests;
mod waiters;

pub use semaphore::{Flags, Semaphore};

use waiters::Waiters;
use zerocopy::FromZeros;

/// No thread, no semaphore.
pub const NONE: u16 = u16::MAX;
/// The worst priority: nothing is donated.
pub const NOTHING: u8 = u8::MAX;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromZeros)]
#[repr(u8)]
pub enum Wait {
    /// Nothing here.
    #[default]
    No,
    /// A semaphore.
    Semaphore(u16),
    /// The answer of a thread.
    Answer(u16),
}

/// Why an operation is refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such semaphore, or it is free.
    NoSemaphore,
    /// Flags that exclude each other, or a value that they do not allow.
    Flags,
    /// The value of a mutex is 0 or 1, of a semaphore not negative.
    Value,
    /// Another thread owns the mutex, or has allocated the semaphore.
    NotOwner,
    /// It would have to wait, and must not.
    WouldWait,
    /// Threads would wait for each other in a circle.
    Deadlock,
    /// The thread's base priority is better than the mutex's ceiling.
    Ceiling,
}

/// One thread, as far as it is of interest here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromZeros)]
struct Task {
    base: u8,
    effective: u8,
    /// The best priority that messages donate it.
    donated: u8,
    waits: Wait,
    /// Neighbours among the waiters of what it waits for, and its level there.
    next: u16,
    previous: u16,
    level: u8,
    /// The mutex it has locked last; `Semaphore::next_held` leads on.
    held: u16,
    /// The threads that wait for its reply donate it their priorities.
    inherits: bool,
}

impl Task {
    const NEW: Task = Task {
        base: NOTHING,
        effective: NOTHING,
        donated: NOTHING,
        waits: Wait::No,
        next: NONE,
        previous: NONE,
        level: 0,
        held: NONE,
        inherits: false,
    };
}

/// Whom a change of an effective priority is told to.
pub trait Scheduler {
    /// The effective priority of this thread is now this one.
    fn changed(&mut self, thread: u16, priority: u8);
    /// The wait of this thread is over, well or with the semaphore gone.
    fn woken(&mut self, thread: u16, gone: bool);
}

/// All threads and semaphores.
#[derive(Clone, Debug, PartialEq, Eq, Hash, FromZeros)]
pub struct RealTime<const THREADS: usize, const SEMAPHORES: usize> {
    tasks: [Task; THREADS],
    /// The threads that wait for the reply of each.
    clients: [Waiters; THREADS],
    semaphores: [Semaphore; SEMAPHORES],
    /// The threads that wait for each semaphore.
    waiters: [Waiters; SEMAPHORES],
}

impl<const THREADS: usize, const SEMAPHORES: usize> RealTime<THREADS, SEMAPHORES> {
    /// No semaphores, and threads of the worst priority.
    pub fn start(&mut self) {
        self.tasks.fill(Task::NEW);
        self.clients.fill(Waiters::NONE);
        self.semaphores.fill(Semaphore::FREE);
        self.waiters.fill(Waiters::NONE);
    }

    /// The priority a thread runs with.
    pub fn effective(&self, thread: u16) -> u8 {
        self.tasks[thread as usize].effective
    }

    /// The priority it has of itself.
    pub fn base(&self, thread: u16) -> u8 {
        self.tasks[thread as usize].base
    }

    /// What it waits for.
    pub fn waits(&self, thread: u16) -> Wait {
        self.tasks[thread as usize].waits
    }

    /// The semaphore with this number, if it is allocated.
    pub fn semaphore(&self, id: u16) -> Option<&Semaphore> {
        self.semaphores.get(id as usize).filter(|semaphore| semaphore.is_allocated())
    }

    /// The waiter that a semaphore goes to next.
    pub fn first_waiter(&self, id: u16) -> Option<u16> {
        self.waiters[id as usize].first()
    }

    /// Changes a thread's own priority, whatever it is doing.
    pub fn set_base(&mut self, thread: u16, priority: u8, scheduler: &mut impl Scheduler) {
        self.tasks[thread as usize].base = priority;
        self.adjust(thread, scheduler);
    }

    /// Changes the best priority that messages donate a thread; `NOTHING`: none do.
    pub fn donate(&mut self, thread: u16, priority: u8, scheduler: &mut impl Scheduler) {
        self.tasks[thread as usize].donated = priority;
        self.adjust(thread, scheduler);
    }

    /// Sets whether a thread inherits the priorities of the threads that wait for its reply.
    pub fn set_inherits(&mut self, thread: u16, inherits: bool, scheduler: &mut impl Scheduler) {
        self.tasks[thread as usize].inherits = inherits;
        self.adjust(thread, scheduler);
    }

    /// `client` waits for the answer of `server` from now on, and donates it its priority if that inherits.
    ///
    /// # Errors
    /// `Deadlock`: the server waits for the client already.
    pub fn await_answer(&mut self, client: u16, server: u16, scheduler: &mut impl Scheduler) -> Result<(), Refusal> {
        if self.leads_to(server, client) {
            return Err(Refusal::Deadlock);
        }
        self.begin_wait(client, Wait::Answer(server));
        self.adjust(server, scheduler);
        Ok(())
    }

    /// The wait of `thread` ends without what it waited for: its time is over, or a signal has come.
    pub fn give_up(&mut self, thread: u16, scheduler: &mut impl Scheduler) {
        let wait = self.tasks[thread as usize].waits;
        self.end_wait(thread);
        match wait {
            Wait::No => {}
            Wait::Answer(server) => self.adjust(server, scheduler),
            Wait::Semaphore(id) => {
                let semaphore = &mut self.semaphores[id as usize];
                semaphore.value += 1;
                let owner = semaphore.owner;
                if owner != NONE {
                    self.adjust(owner, scheduler);
                }
            }
        }
    }

    /// Removes a thread: its wait ends, threads that wait for its reply or for a semaphore it has allocated go on with an
    /// error, and the mutexes it holds go to the next in line.
    pub fn leave(&mut self, thread: u16, scheduler: &mut impl Scheduler) {
        self.give_up(thread, scheduler);
        while let Some(client) = self.clients[thread as usize].first() {
            self.give_up(client, scheduler);
            scheduler.woken(client, true);
        }
        while self.tasks[thread as usize].held != NONE {
            let id = self.tasks[thread as usize].held;
            self.hand_on(thread, id, scheduler);
        }
        for id in 0..SEMAPHORES as u16 {
            if self.semaphores[id as usize].creator == thread {
                self.expel(id, scheduler);
            }
        }
        self.tasks[thread as usize] = Task::NEW;
    }

    /// Frees all semaphores that a thread, which ends, has allocated.
    pub fn free_all(&mut self, thread: u16, scheduler: &mut impl Scheduler) {
        for id in 0..SEMAPHORES as u16 {
            if self.semaphores[id as usize].creator == thread {
                self.release(id, scheduler);
            }
        }
    }
}
