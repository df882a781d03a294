//! Services work for real-time programs with the priority of these: who sends to a service lends it its ready queue, at once or as soon as the
//! service takes the message, and the service lends it to those that it waits for in turn. It gives back what was lent when it waits for anybody's next
//! message. What it learns by notification it does with its own priority, but for CLOCK's.
//!
//! A real-time thread, and a service while something is lent to it, takes none of the short ways (`Node::fast_path_off`); so those know nothing of
//! this. Neighbours: `ipc`, `rt` (which decides), `hand_over`.

use crate::{
    Node, inheritance::NOTHING, inheritance::effects, priority::SYSTEM_QUEUE, thread::Continuation, thread::blocked,
};

use abi::{endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS};

/// The thread in slot `to` has the message of the one in slot `from`.
#[inline(always)]
pub fn donate(node: &mut Node, from: usize, to: usize) {
    let queue = node.threads[from].queue;
    if queue < SYSTEM_QUEUE {
        set_donation(node, queue, to);
    } else if node.threads[to].base_queue < SYSTEM_QUEUE {
        set_donation(node, NOTHING, to);
    }
}

/// What is lent to the thread in this slot, if it is a service, is this queue from now on.
#[cold]
pub fn set_donation(node: &mut Node, queue: u8, slot: usize) {
    if (FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) {
        effects::take_part(node, slot);
        effects::decide(node, |rt, effects| rt.donate(slot as u16, queue, effects));
        node.threads.bar_fast_path(slot);
    }
}

/// A thread with this queue waits for the thread in slot `to`: lends to that, and to those that it waits for, each for the next. No wait
/// closes a circle.
pub fn donate_along(node: &mut Node, queue: u8, to: usize) {
    let mut link = Some(to);
    while let Some(slot) = link.filter(|&slot| queue < SYSTEM_QUEUE && queue < node.threads[slot].base_queue) {
        set_donation(node, queue, slot);
        link = server_of(node, slot).filter(|_| slot < SERVICE_SLOTS);
    }
}

/// The service that a thread waits for, in a call.
pub fn server_of(node: &Node, slot: usize) -> Option<usize> {
    let thread = &node.threads[slot];
    let answer = thread.flags & blocked::RECEIVING != 0 && thread.then == Continuation::Answer;
    (answer || thread.flags & blocked::SENDING != 0).then_some(thread.peer.slot())
}
