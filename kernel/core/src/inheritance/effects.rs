//! What the decisions of `rt` do to threads: changed priorities move them in the ready queues, ended waits wake them.

use crate::{
    Node, futex::inheriting::MUTEXES, inheritance::NOTHING, inheritance::RealTime, inheritance::Scheduler,
    sched::Threads, thread::blocked, thread::list::List, time::alarm, time::alarm::Kind,
};

use abi::{Errno, endpoint::SLOTS};

/// The parts of the node that a decision may change; whose wait has ended is in `woken`, to be woken afterwards.
pub struct Effects<'a> {
    threads: &'a mut Threads,
    woken: List,
}

impl Scheduler for Effects<'_> {
    #[inline(never)]
    fn changed(&mut self, thread: u16, priority: u8) {
        self.threads.change_priority(thread as usize, priority);
    }

    #[inline(always)]
    fn woken(&mut self, thread: u16, gone: bool) {
        let result = if gone { Err(Errno(abi::rt::error::E_MRT_EXITING)) } else { Ok(0) };
        self.threads[thread as usize].frame.set_result(result);
        self.woken.push_back(self.threads, thread);
    }
}

/// Who inherits from whom: every thread, the semaphores of MINIX4RT, and the futexes with inheritance.
pub type Inheritance = RealTime<SLOTS, MUTEXES>;

/// Makes a decision about futexes and donations, and carries out what follows from it.
#[inline(always)]
pub fn decide<R>(node: &mut Node, act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R) -> R {
    decide_with(node, act, end_pi_wait)
}

/// Makes a decision, and carries out what follows from it: `end_wait` is called for each thread whose wait it ends.
#[inline(always)]
pub fn decide_with<R>(
    node: &mut Node,
    act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R,
    end_wait: impl Fn(&mut Node, usize),
) -> R {
    let mut effects = Effects { threads: &mut node.threads, woken: List::EMPTY };
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
pub fn end_pi_wait(node: &mut Node, slot: usize) {
    alarm::cancel_deadline(node, slot, Kind::Futex);
    node.threads[slot].flags &= !blocked::FUTEX;
    node.threads.wake_if_free(slot);
}

/// From now on `rt` knows a thread.
pub fn take_part(node: &mut Node, slot: usize) {
    if node.inheritance.base(slot as u16) == NOTHING {
        let queue = node.threads[slot].base_queue;
        decide(node, |rt, effects| rt.set_base(slot as u16, queue, effects));
    }
}

/// The ready queue of a thread, apart from what is lent to it.
pub fn own_queue(node: &Node, slot: usize) -> u8 {
    match node.inheritance.base(slot as u16) {
        NOTHING => node.threads[slot].base_queue,
        base => base,
    }
}
