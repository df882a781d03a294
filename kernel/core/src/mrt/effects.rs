//! What the decisions of `rt` do to threads: changed priorities move them in the ready queues, ended waits wake them.

use abi::{Errno, endpoint::SLOTS};

use crate::{
    Node, Thread,
    futex_pi::MUTEXES,
    node::QUEUES,
    queue::List,
    rt::{RealTime, Scheduler},
};

/// The parts of the node that a decision may change; whose wait has ended is in `woken`, to be woken afterwards.
pub(crate) struct Effects<'a> {
    threads: &'a mut [Thread],
    queues: &'a mut [List; QUEUES],
    ready: &'a mut u64,
    deferred: u64,
    running: [usize; 2],
    woken: List,
}

impl Scheduler for Effects<'_> {
    #[inline(never)]
    fn changed(&mut self, thread: u16, priority: u8) {
        let slot = thread as usize;
        let queue = self.threads[slot].queue as usize % QUEUES;
        let better = priority < self.threads[slot].queue;
        let is_queued = self.threads[slot].flags == 0 && !self.running.contains(&slot);
        if is_queued {
            self.queues[queue].remove(self.threads, thread);
            if self.queues[queue].is_empty() {
                *self.ready = *self.ready & !(1 << queue) | self.deferred;
            }
        }
        self.threads[slot].base_queue = priority;
        self.threads[slot].queue = priority;
        if is_queued {
            let queue = &mut self.queues[priority as usize % QUEUES];
            if better {
                queue.push_front(self.threads, thread);
            } else {
                queue.push_back(self.threads, thread);
            }
            *self.ready |= 1 << priority;
        }
    }

    #[inline(always)]
    fn woken(&mut self, thread: u16, gone: bool) {
        let result = if gone { Err(Errno(abi::rt::error::E_MRT_EXITING)) } else { Ok(0) };
        self.threads[thread as usize].frame.set_result(result);
        self.woken.push_back(self.threads, thread);
    }
}

impl Node {
    /// Makes a decision of `rt`, and lets happen what follows from it.
    #[inline(always)]
    pub(crate) fn decide<R>(&mut self, act: impl FnOnce(&mut RealTime<SLOTS, MUTEXES>, &mut Effects<'_>) -> R) -> R {
        let mut effects = Effects {
            threads: &mut self.threads,
            queues: &mut self.queues,
            ready: &mut self.ready,
            deferred: self.deferred,
            running: [self.current, self.woken as usize],
            woken: List::EMPTY,
        };
        let result = act(&mut self.mrt.rt, &mut effects);
        let mut woken = effects.woken;
        while woken.first != 0 {
            let slot = woken.first;
            woken.remove(&mut self.threads, slot);
            self.end_real_time_wait(slot as usize);
        }
        result
    }
}
