//! What vfs knows of the pending signals of a thread, for descriptors that signals are read from (signalfd(2)).
//!
//! Signals are pm's. vfs knows at most that some are not pending: then pm tells it when one of them arrives (`vfs::SignalsPending`), and whoever
//! waits is woken and asks again. So a wait costs nothing while no signal arrives. Who wants to know of each signal that arrives (EPOLLET) has
//! the number of the last one that it was told of: vfs knows at most that none has arrived since the one with a number. Nothing here is
//! preserved: a successor asks once more.

use crate::events::Watchers;
use core::cell::Cell;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Signals {
    /// Signals that are not pending, and of which pm tells when they arrive.
    quiet: Cell<u64>,
    /// The number of the last signal that has arrived, of whose successor pm tells; 0: not known.
    last: Cell<u32>,
    /// What is to be asked of pm.
    to_ask: Cell<Question>,
    /// A question is out.
    asking: Cell<bool>,
    /// The pending signals and the number of the last one, while those who asked are told of pm's answer.
    found: Cell<(u64, u32)>,
    watchers: Watchers,
}

/// What pm is asked about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Which of these signals are pending. If none is, pm tells of the next one of them.
    pub mask: u64,
    /// pm is to tell of the next signal, whatever is pending.
    pub any: bool,
}

impl Signals {
    /// Whether none of these signals is pending, and pm tells when one arrives.
    pub fn is_quiet(&self, mask: u64) -> bool {
        mask & !self.quiet.get() == 0
    }

    /// Whether no signal has arrived since the one with this number, and pm tells of the next one.
    pub fn is_last(&self, number: u32) -> bool {
        number != 0 && self.last.get() == number
    }

    /// The number of the last signal, if pm has just found signals of `mask` pending.
    pub fn found(&self, mask: u64) -> Option<u32> {
        let (pending, last) = self.found.get();
        (pending & mask != 0).then_some(last)
    }

    /// Fire when more is known, when a signal has arrived, and when the thread ends.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// pm has found none of these pending, and will tell of the next one.
    pub fn set_quiet(&self, mask: u64) {
        self.quiet.set(self.quiet.get() | mask);
    }

    /// pm tells that a signal has arrived, or the thread has ended.
    pub fn arrived(&self) {
        self.quiet.set(0);
        self.last.set(0);
        self.watchers.fire();
    }

    /// Adds to what pm is to be asked. Returns whether nobody asks yet: then the caller does, as long as there is a [`Signals::question`].
    pub fn ask(&self, further: Question) -> bool {
        let Question { mask, any } = self.to_ask.get();
        self.to_ask.set(Question { mask: mask | further.mask, any: any | further.any });
        !self.asking.replace(true)
    }

    /// What pm is to be asked now; `None`: everything is answered.
    pub fn question(&self) -> Option<Question> {
        let question = self.to_ask.take();
        self.asking.set(question.mask != 0);
        (question.mask != 0).then_some(question)
    }

    /// Tells those who asked which signals are pending, and the number of the last one.
    pub fn answered(&self, Question { mask, any }: Question, pending: u64, last: u32) {
        if pending & mask == 0 {
            self.set_quiet(mask);
        }
        if any {
            self.last.set(last);
        }
        self.found.set((pending & mask, last));
        self.watchers.fire();
        self.found.take();
    }
}
