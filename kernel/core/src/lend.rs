//! Services work for real-time programs with the priority of these: who sends to a service lends it its ready queue, at once or as soon as the
//! service takes the message, and the service lends it to those that it waits for in turn. It gives back what was lent when it waits for anybody's next
//! message. What it learns by notification it does with its own priority, but for CLOCK's.
//!
//! A real-time thread, and a service while something is lent to it, takes none of the short ways (`Node::barred`); so those know nothing of
//! this. Neighbours: `ipc`, `rt` (which decides), `hand_over`.

use abi::endpoint::{FIRST_SERVICE, SERVICE_SLOTS};

use crate::{
    Node,
    rt::NOTHING,
    scheduler::SYSTEM_QUEUE,
    thread::{Then, blocked},
};

impl Node {
    /// The thread in slot `to` has the message of the one in slot `from`.
    #[inline(always)]
    pub(crate) fn lend(&mut self, from: usize, to: usize) {
        let queue = self.threads[from].queue;
        if queue < SYSTEM_QUEUE {
            self.set_loan(queue, to);
        } else if self.threads[to].base_queue < SYSTEM_QUEUE {
            self.set_loan(NOTHING, to);
        }
    }

    /// What is lent to the thread in this slot, if it is a service, is this queue from now on.
    #[cold]
    #[inline(never)]
    pub(crate) fn set_loan(&mut self, queue: u8, slot: usize) {
        if (FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) {
            self.take_part(slot);
            self.decide(|rt, effects| rt.lend(slot as u16, queue, effects));
            self.barred |= slot == self.current;
        }
    }

    /// A thread with this queue waits for the thread in slot `to`: lends to that, and to those that it waits for, each for the next. No wait
    /// closes a circle.
    pub(crate) fn lend_along(&mut self, queue: u8, to: usize) {
        let mut link = Some(to);
        while let Some(slot) = link.filter(|&slot| queue < SYSTEM_QUEUE && queue < self.threads[slot].base_queue) {
            self.set_loan(queue, slot);
            link = self.server_of(slot).filter(|_| slot < SERVICE_SLOTS);
        }
    }

    /// The service that a thread waits for, in a call.
    pub(crate) fn server_of(&self, slot: usize) -> Option<usize> {
        let thread = &self.threads[slot];
        let answer = thread.flags & blocked::RECEIVING != 0 && thread.then == Then::Answer;
        (answer || thread.flags & blocked::SENDING != 0).then_some(thread.peer.slot())
    }
}
