//! What the decisions of `inheritance` do to threads: changed priorities move them in the ready queues, ended waits wake them.

use crate::{
    Node, inheritance::NOTHING, inheritance::Scheduler, node::Inheritance, sched::Threads, thread::list::List,
    time::alarm::Kind,
};

use abi::Errno;

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

/// Makes a decision about futexes and donations, and carries out what follows from it.
#[inline(always)]
pub fn decide<R>(node: &mut Node, act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R) -> R {
    let (result, mut woken) = decide_only(node, act);
    while let Some(slot) = woken.pop_front(&mut node.threads) {
        end_pi_wait(node, slot);
    }
    result
}

/// Makes a decision, and moves threads in the ready queues. Returns also the threads whose wait it ends, which the caller ends.
#[inline(always)]
pub fn decide_only<R>(node: &mut Node, act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R) -> (R, List) {
    let mut effects = Effects { threads: &mut node.threads, woken: List::EMPTY };
    let result = act(&mut node.inheritance, &mut effects);
    (result, effects.woken)
}

/// Ends the wait of a thread for a futex with inheritance: it is the owner.
#[cold]
#[inline(never)]
pub fn end_pi_wait(node: &mut Node, slot: usize) {
    node.alarms.cancel(slot, Kind::Futex);
    node.threads[slot].state.unblock();
    node.threads.wake_if_free(slot);
}

/// Makes a thread known to `inheritance`.
pub fn take_part(node: &mut Node, slot: usize) {
    if node.inheritance.base(slot as u16) == NOTHING {
        let queue = node.threads[slot].base_queue;
        decide(node, |rt, effects| rt.set_base(slot as u16, queue, effects));
    }
}

/// The ready queue of a thread, without donations.
pub fn own_queue(node: &Node, slot: usize) -> u8 {
    match node.inheritance.base(slot as u16) {
        NOTHING => node.threads[slot].base_queue,
        base => base,
    }
}
