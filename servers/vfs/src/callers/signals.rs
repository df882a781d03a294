//! What vfs knows of the pending signals of a thread, for descriptors that signals are read from (signalfd(2)).
//!
//! Signals are pm's. vfs knows at most that some are not pending: then pm tells it when one of them arrives (`vfs::SignalsPending`), and whoever
//! waits is woken and asks again. So a wait costs nothing while no signal arrives. Nothing here is preserved: a successor asks once more.

use crate::events::Watchers;
use core::cell::Cell;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Signals {
    /// Signals that are not pending, and of which pm tells when they arrive.
    quiet: Cell<u64>,
    /// What is to be asked of pm.
    to_ask: Cell<u64>,
    /// A question is out.
    asking: Cell<bool>,
    /// The pending signals, while those who asked are told of pm's answer.
    found: Cell<u64>,
    watchers: Watchers,
}

impl Signals {
    /// Whether none of these signals is pending, and pm tells when one arrives.
    pub fn is_quiet(&self, mask: u64) -> bool {
        mask & !self.quiet.get() == 0
    }

    /// The signals of `mask` that pm has just found pending.
    pub fn found(&self, mask: u64) -> u64 {
        self.found.get() & mask
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
        self.watchers.fire();
    }

    /// Adds to what pm is to be asked. Returns whether nobody asks yet: then the caller does, as long as there is a [`Signals::question`].
    pub fn ask(&self, mask: u64) -> bool {
        self.to_ask.set(self.to_ask.get() | mask);
        !self.asking.replace(true)
    }

    /// What pm is to be asked now; `None`: everything is answered.
    pub fn question(&self) -> Option<u64> {
        let mask = self.to_ask.take();
        self.asking.set(mask != 0);
        (mask != 0).then_some(mask)
    }

    /// Tells those who asked which signals of `mask` are pending. If none is, pm tells of the next one.
    pub fn answered(&self, mask: u64, pending: u64) {
        if pending & mask == 0 {
            self.set_quiet(mask);
        }
        self.found.set(pending & mask);
        self.watchers.fire();
        self.found.set(0);
    }
}
