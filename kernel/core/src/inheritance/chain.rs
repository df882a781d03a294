//! Inheritance: an effective priority follows from the base and from the waiters, and a change walks along the chain of waits.

use crate::{
    inheritance::NONE, inheritance::NOTHING, inheritance::RealTime, inheritance::Refusal, inheritance::Scheduler,
    inheritance::Wait,
};

impl<const THREADS: usize, const SEMAPHORES: usize> RealTime<THREADS, SEMAPHORES> {
    /// The effective priority by the invariant, if those of all waiters are right.
    fn due(&self, thread: u16) -> u8 {
        let task = &self.tasks[thread as usize];
        let own = task.base.min(task.donated);
        let clients = if task.inherits { self.clients[thread as usize].best(&self.tasks) } else { NOTHING };
        self.held_by(thread).map(|id| self.donates(id)).fold(own.min(clients), u8::min)
    }

    /// The mutexes a thread holds.
    pub fn held_by(&self, thread: u16) -> impl Iterator<Item = u16> + '_ {
        let some = |id: u16| (id != NONE).then_some(id);
        core::iter::successors(some(self.tasks[thread as usize].held), move |&id| {
            some(self.semaphores[id as usize].next_held)
        })
    }

    /// The thread that another's wait depends on: the owner of the semaphore, or the server that is to reply.
    pub(super) fn waits_on(&self, thread: u16) -> Option<u16> {
        match self.tasks[thread as usize].waits {
            Wait::No => None,
            Wait::Semaphore(id) => Some(self.semaphores[id as usize].owner).filter(|&owner| owner != NONE),
            Wait::Answer(server) => Some(server),
        }
    }

    /// The last thread in the chain of waits that begins with this one; itself, when it waits for none.
    pub fn end_of_chain(&self, thread: u16) -> u16 {
        core::iter::successors(Some(thread), |&thread| self.waits_on(thread)).last().unwrap_or(thread)
    }

    /// True when `from` is `to`, or waits for it over any number of links.
    pub(super) fn leads_to(&self, from: u16, to: u16) -> bool {
        core::iter::successors(Some(from), |&thread| self.waits_on(thread)).take(THREADS).any(|thread| thread == to)
    }

    /// Something that a thread's effective priority depends on has changed: sets it, and follows the chain as far as it changes. Nobody waits
    /// in a circle, so the chain ends.
    pub(super) fn adjust(&mut self, thread: u16, scheduler: &mut impl Scheduler) {
        let mut link = Some(thread);
        while let Some(thread) = link {
            let due = self.due(thread);
            if due == self.tasks[thread as usize].effective {
                return;
            }
            self.tasks[thread as usize].effective = due;
            self.reorder(thread);
            scheduler.changed(thread, due);
            link = self.waits_on(thread);
        }
    }

    /// Puts a waiting thread where its new priority belongs.
    fn reorder(&mut self, thread: u16) {
        let wait = self.tasks[thread as usize].waits;
        let ordered = match wait {
            Wait::No => false,
            Wait::Answer(_) => true,
            Wait::Semaphore(id) => self.semaphores[id as usize].flags.by_priority,
        };
        if ordered {
            self.end_wait(thread);
            self.begin_wait(thread, wait);
        }
    }

    pub(super) fn begin_wait(&mut self, thread: u16, wait: Wait) {
        self.tasks[thread as usize].waits = wait;
        match wait {
            Wait::No => {}
            Wait::Semaphore(id) => {
                let by_priority = self.semaphores[id as usize].flags.by_priority;
                self.waiters[id as usize].insert(&mut self.tasks, thread, by_priority);
            }
            Wait::Answer(server) => self.clients[server as usize].insert(&mut self.tasks, thread, true),
        }
    }

    pub(super) fn end_wait(&mut self, thread: u16) {
        match core::mem::take(&mut self.tasks[thread as usize].waits) {
            Wait::No => {}
            Wait::Semaphore(id) => self.waiters[id as usize].remove(&mut self.tasks, thread),
            Wait::Answer(server) => self.clients[server as usize].remove(&mut self.tasks, thread),
        }
    }

    /// Refuses a wait that would close a circle.
    pub(super) fn check_circle(&self, thread: u16, owner: u16) -> Result<(), Refusal> {
        if owner != NONE && self.leads_to(owner, thread) { Err(Refusal::Deadlock) } else { Ok(()) }
    }
}
