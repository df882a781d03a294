//! Semaphores: allocation, down, up, and the next owner of a mutex.

use crate::{
    inheritance::NONE, inheritance::NOTHING, inheritance::RealTime, inheritance::Refusal, inheritance::Scheduler,
    inheritance::Wait,
};

use core::ops::Range;
use zerocopy::FromZeros;

/// How a semaphore behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromZeros)]
pub struct Flags {
    /// Waiters are woken by priority, else in order of arrival.
    pub by_priority: bool,
    /// One thread at a time holds it, and only that thread gives it up.
    pub mutex: bool,
    /// Its owner inherits the priorities of its waiters. Only with both flags above.
    pub inherits: bool,
    /// Its owner runs with at least the ceiling's priority. Only with the mutex flag.
    pub ceiling: bool,
}

/// Counters since the allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromZeros)]
pub struct Statistics {
    /// Ups.
    pub ups: u64,
    /// Downs.
    pub downs: u64,
    /// Most waiters at a time.
    pub most_waiters: u32,
}

/// One semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromZeros)]
pub struct Semaphore {
    /// As allocated, plus ups, minus downs: a negative value's magnitude is the number of waiters.
    pub value: i32,
    /// Flags.
    pub flags: Flags,
    /// Ceiling, if there is one.
    pub ceiling: u8,
    /// The thread that has allocated it; `NONE`: it is free.
    pub creator: u16,
    /// The thread that holds the mutex, or `NONE`.
    pub owner: u16,
    /// Counters.
    pub statistics: Statistics,
    /// The mutex that its owner has locked before.
    pub(super) next_held: u16,
}

/// How a down has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// The caller goes on.
    Done,
    /// The caller waits.
    Waits,
}

impl Semaphore {
    pub(super) const FREE: Semaphore = Semaphore {
        value: 0,
        flags: Flags { by_priority: false, mutex: false, inherits: false, ceiling: false },
        ceiling: 0,
        creator: NONE,
        owner: NONE,
        statistics: Statistics { ups: 0, downs: 0, most_waiters: 0 },
        next_held: NONE,
    };

    /// Returns true when it has a creator.
    pub fn is_allocated(&self) -> bool {
        self.creator != NONE
    }

    fn check(value: i32, flags: Flags) -> Result<(), Refusal> {
        let wrong_flags = flags.inherits && !(flags.mutex && flags.by_priority) || flags.ceiling && !flags.mutex;
        match value {
            _ if wrong_flags => Err(Refusal::Flags),
            0..=1 => Ok(()),
            2.. if !flags.mutex => Ok(()),
            _ => Err(Refusal::Value),
        }
    }
}

impl<const THREADS: usize, const SEMAPHORES: usize> RealTime<THREADS, SEMAPHORES> {
    /// Allocates a semaphore with a number out of `pool`. A mutex of value 0 is locked and nobody's; the first up passes, whoever makes it.
    ///
    /// # Errors
    /// `Flags`, `Value`; `NoSemaphore`: all are in use.
    pub fn allocate(
        &mut self,
        mut pool: Range<u16>,
        creator: u16,
        value: i32,
        flags: Flags,
        ceiling: u8,
    ) -> Result<u16, Refusal> {
        Semaphore::check(value, flags)?;
        let free = pool.find(|&id| !self.semaphores[id as usize].is_allocated());
        let id = free.ok_or(Refusal::NoSemaphore)?;
        self.semaphores[id as usize] = Semaphore { value, flags, ceiling, creator, ..Semaphore::FREE };
        Ok(id)
    }

    /// The priority that its owner has from a mutex.
    pub(super) fn donates(&self, id: u16) -> u8 {
        let Semaphore { flags, ceiling, .. } = self.semaphores[id as usize];
        let waiters = if flags.inherits { self.waiters[id as usize].best(&self.tasks) } else { NOTHING };
        waiters.min(if flags.ceiling { ceiling } else { NOTHING })
    }

    /// Sets the counters of an allocated semaphore to 0.
    pub fn clear_statistics(&mut self, id: u16) {
        self.semaphores[id as usize].statistics = Statistics::default();
    }

    /// Frees a semaphore; its waiters go on with an error.
    ///
    /// # Errors
    /// `NoSemaphore`; `NotOwner`: another thread has allocated it.
    pub fn free(&mut self, caller: u16, id: u16, scheduler: &mut impl Scheduler) -> Result<(), Refusal> {
        if self.allocated(id)?.creator != caller {
            return Err(Refusal::NotOwner);
        }
        self.release(id, scheduler);
        Ok(())
    }

    /// P: takes one from the value, and waits when nothing is left.
    ///
    /// # Errors
    /// `NoSemaphore`; `WouldWait`, when the caller may not wait; `Deadlock`: it would wait for itself; `Ceiling`.
    #[inline(always)]
    pub fn down(&mut self, caller: u16, id: u16, block: bool, scheduler: &mut impl Scheduler) -> Result<Down, Refusal> {
        let semaphore = self.allocated(id)?;
        let Semaphore { value, flags, owner, .. } = *semaphore;
        if flags.ceiling && self.base(caller) < semaphore.ceiling {
            return Err(Refusal::Ceiling);
        }
        if value <= 0 {
            self.check_circle(caller, owner)?;
            if !block {
                return Err(Refusal::WouldWait);
            }
        }
        let semaphore = &mut self.semaphores[id as usize];
        semaphore.value -= 1;
        semaphore.statistics.downs += 1;
        if value > 0 {
            if flags.mutex {
                self.take(caller, id);
            }
            if flags.ceiling {
                self.adjust(caller, scheduler);
            }
            return Ok(Down::Done);
        }
        let waiters = semaphore.value.unsigned_abs();
        semaphore.statistics.most_waiters = semaphore.statistics.most_waiters.max(waiters);
        self.begin_wait(caller, Wait::Semaphore(id));
        if owner != NONE {
            self.adjust(owner, scheduler);
        }
        Ok(Down::Waits)
    }

    /// V: adds one to the value; a waiter goes on. A mutex goes straight to the waiter.
    ///
    /// # Errors
    /// `NoSemaphore`; `NotOwner`: the caller does not hold the mutex; `Value`: there is no greater value.
    #[inline(always)]
    pub fn up(&mut self, caller: u16, id: u16, scheduler: &mut impl Scheduler) -> Result<(), Refusal> {
        let semaphore = self.allocated(id)?;
        let Semaphore { value, flags, owner, .. } = *semaphore;
        if flags.mutex && owner != caller && (owner != NONE || value > 0) {
            return Err(Refusal::NotOwner);
        }
        if value == i32::MAX {
            return Err(Refusal::Value);
        }
        self.semaphores[id as usize].statistics.ups += 1;
        self.hand_on(caller, id, scheduler);
        Ok(())
    }

    fn allocated(&self, id: u16) -> Result<&Semaphore, Refusal> {
        self.semaphore(id).ok_or(Refusal::NoSemaphore)
    }

    /// `thread` holds the mutex from now on.
    fn take(&mut self, thread: u16, id: u16) {
        let task = &mut self.tasks[thread as usize];
        let semaphore = &mut self.semaphores[id as usize];
        semaphore.owner = thread;
        semaphore.next_held = core::mem::replace(&mut task.held, id);
    }

    /// `thread` holds the mutex no longer.
    fn drop_hold(&mut self, thread: u16, id: u16) {
        let semaphore = &mut self.semaphores[id as usize];
        semaphore.owner = NONE;
        let after = core::mem::replace(&mut semaphore.next_held, NONE);
        let task = &mut self.tasks[thread as usize];
        if task.held == id {
            task.held = after;
            return;
        }
        let before = self.held_by(thread).find(|&held| self.semaphores[held as usize].next_held == id);
        if let Some(before) = before {
            self.semaphores[before as usize].next_held = after;
        }
    }

    /// Adds one to the value and lets the next waiter have it. `giver` holds it, if it is a mutex.
    #[inline(always)]
    pub(super) fn hand_on(&mut self, giver: u16, id: u16, scheduler: &mut impl Scheduler) {
        let semaphore = &mut self.semaphores[id as usize];
        semaphore.value += 1;
        let (flags, next) = (semaphore.flags, self.waiters[id as usize].first());
        if flags.mutex {
            self.drop_hold(giver, id);
        }
        if let Some(next) = next {
            self.hand_to(next, id, flags.mutex, scheduler);
        }
        if flags.ceiling || flags.inherits && next.is_some() {
            self.adjust(giver, scheduler);
        }
    }

    fn hand_to(&mut self, next: u16, id: u16, is_mutex: bool, scheduler: &mut impl Scheduler) {
        self.end_wait(next);
        if is_mutex {
            self.take(next, id);
            self.adjust(next, scheduler);
        }
        scheduler.woken(next, false);
    }

    /// Ends the waits of all waiters of a semaphore with an error.
    pub(super) fn expel(&mut self, id: u16, scheduler: &mut impl Scheduler) {
        while let Some(waiter) = self.first_waiter(id) {
            self.give_up(waiter, scheduler);
            scheduler.woken(waiter, true);
        }
    }

    /// Frees a semaphore; its waiters go on with an error.
    pub(super) fn release(&mut self, id: u16, scheduler: &mut impl Scheduler) {
        self.expel(id, scheduler);
        let owner = self.semaphores[id as usize].owner;
        if owner != NONE {
            self.drop_hold(owner, id);
            self.adjust(owner, scheduler);
        }
        self.semaphores[id as usize] = Semaphore::FREE;
    }
}
