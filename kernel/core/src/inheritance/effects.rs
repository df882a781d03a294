//! What the decisions of `rt` do to threads: changed priorities move them in the ready queues, ended waits wake them.

use crate::{
    Node, Thread, futex::inheriting::MUTEXES, inheritance::NOTHING, inheritance::RealTime, inheritance::Scheduler,
    priority::QUEUES, sched, thread::blocked, thread::list::List, time::alarm, time::alarm::Kind,
};

use abi::{Errno, endpoint::SLOTS};

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

/// Who inherits from whom: every thread, the semaphores of MINIX4RT, and the futexes with inheritance.
pub(crate) type Inheritance = RealTime<SLOTS, MUTEXES>;

/// Makes a decision about futexes and donations, and carries out what follows from it.
#[inline(always)]
pub(crate) fn decide<R>(node: &mut Node, act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R) -> R {
    decide_with(node, act, end_pi_wait)
}

/// Makes a decision, and carries out what follows from it: `end_wait` is called for each thread whose wait it ends.
#[inline(always)]
pub(crate) fn decide_with<R>(
    node: &mut Node,
    act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R,
    end_wait: impl Fn(&mut Node, usize),
) -> R {
    let mut effects = Effects {
        threads: &mut node.threads,
        queues: &mut node.queues,
        ready: &mut node.ready,
        deferred: node.deferred,
        running: [node.current, node.next_hint as usize],
        woken: List::EMPTY,
    };
    let result = act(&mut node.inheritance, &mut effects);
    let mut woken = effects.woken;
    while woken.first != 0 {
        let slot = woken.first;
        woken.remove(&mut node.threads, slot);
        end_wait(node, slot as usize);
    }
    result
}

/// A wait for such a futex is over: it is the thread's.
#[cold]
#[inline(never)]
pub(crate) fn end_pi_wait(node: &mut Node, slot: usize) {
    alarm::cancel_deadline(node, slot, Kind::Futex);
    node.threads[slot].flags &= !blocked::FUTEX;
    sched::wake_if_free(node, slot);
}

/// From now on `rt` knows a thread.
pub(crate) fn take_part(node: &mut Node, slot: usize) {
    if node.inheritance.base(slot as u16) == NOTHING {
        let queue = node.threads[slot].base_queue;
        decide(node, |rt, effects| rt.set_base(slot as u16, queue, effects));
    }
}

/// The ready queue of a thread, apart from what is lent to it.
pub(crate) fn own_queue(node: &Node, slot: usize) -> u8 {
    match node.inheritance.base(slot as u16) {
        NOTHING => node.threads[slot].base_queue,
        base => base,
    }
}
