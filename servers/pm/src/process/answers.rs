//! Answers left with the kernel: ids that a program asks for again and again (`abi::linux::KEPT`) cost it no message then.
//!
//! An answer is left when a thread asks for the second time, for most ask once, and forgotten where it changes: where a process gets other
//! credentials, as in each exec, another group or another parent, and where the ids of its container are mapped.
//! pm forgets first, and changes then, without waiting for anybody in between: so a death in between changes nothing. Where that is not possible, in
//! exec and for maps, a successor begins with all forgotten.

use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::thread::Answers;
use crate::system::System;
use abi::linux;

impl<S: System> Programs<S> {
    /// A thread is being told `answer` to the call `number`, which only looks something up.
    #[inline]
    pub fn leave_answer(&mut self, t: ThreadIndex, number: u32, answer: u64) {
        let Some(bit) = linux::kept(number.into()).map(|index| 1 << index) else { return };
        let answers = &mut self.table[t].answers;
        if answers.asked & bit == 0 {
            answers.asked |= bit;
            return;
        }
        answers.are_left = true;
        let endpoint = self.table[t].endpoint();
        self.system.keep_answer(endpoint, number, answer);
    }

    /// What the kernel has been left for a thread may not be true any more.
    #[inline]
    pub fn forget_answers(&mut self, t: ThreadIndex) {
        if self.table[t].answers.are_left {
            self.system.forget_answers(self.table[t].endpoint());
            self.table[t].answers = Answers::default();
        }
    }

    /// The same for all threads of a process.
    pub fn forget_answers_of_all(&mut self, p: ProcessIndex) {
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            self.forget_answers(t);
        }
    }
}
