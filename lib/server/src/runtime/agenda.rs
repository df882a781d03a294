//! What a turn has left to do at its end: replies, new tasks, requests to peers, the alarm.
//!
//! Most turns leave nothing of it, so one flag says whether there may be anything: whoever adds something sets it, and the end of a turn
//! that had something to do clears it ([`Agenda::settle`]).

use crate::step::Task;
use abi::{Endpoint, Message};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell, RefMut};

/// The peers that have messages to send at the end of the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    #[default]
    None,
    /// The one in this place.
    One(usize),
    Several,
}

/// What is left to do at the end of the turn.
#[derive(Default)]
pub(super) struct Agenda {
    /// Whether there may be something.
    has_items: Cell<bool>,
    answers: RefCell<Vec<(Endpoint, Message)>>,
    spawned: RefCell<Vec<Task<()>>>,
    waiting: Cell<Waiting>,
}

impl Agenda {
    /// Whether there may be something to do.
    #[inline(always)]
    pub(super) fn has_items(&self) -> bool {
        self.has_items.get()
    }

    /// Adds a reply. Inlined, because a call that copies the message costs every request 50 ticks.
    #[inline(always)]
    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    pub(super) fn answer(&self, to: Endpoint, message: Message) {
        self.has_items.set(true);
        self.answers.borrow_mut().push((to, message));
    }

    /// Adds a task without a client.
    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    pub(super) fn spawn(&self, task: Task<()>) {
        self.has_items.set(true);
        self.spawned.borrow_mut().push(task);
    }

    /// Adds the requests of the peer in place `index`.
    pub(super) fn add_peer(&self, index: usize) {
        self.has_items.set(true);
        self.waiting.set(match self.waiting.get() {
            Waiting::None => Waiting::One(index),
            Waiting::One(other) if other == index => Waiting::One(index),
            _ => Waiting::Several,
        });
    }

    /// Adds that the alarm may have to be set.
    pub(super) fn add_alarm(&self) {
        self.has_items.set(true);
    }

    /// The replies.
    pub(super) fn answers(&self) -> RefMut<'_, Vec<(Endpoint, Message)>> {
        self.answers.borrow_mut()
    }

    /// The tasks that have not begun, oldest first.
    pub(super) fn spawned(&self) -> RefMut<'_, Vec<Task<()>>> {
        self.spawned.borrow_mut()
    }

    /// The peers that have requests to send.
    pub(super) fn waiting(&self) -> Waiting {
        self.waiting.get()
    }

    /// Takes these off.
    pub(super) fn take_waiting(&self) -> Waiting {
        self.waiting.take()
    }

    /// The end of a turn has done what it could; `alarm`: the alarm may still have to be set.
    pub(super) fn settle(&self, alarm: bool) {
        let none_left = self.answers.borrow().is_empty()
            && self.spawned.borrow().is_empty()
            && self.waiting.get() == Waiting::None
            && !alarm;
        self.has_items.set(!none_left);
    }
}
