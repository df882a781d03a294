//! Waits that would close a circle of processes that wait for each other.
//!
//! Everybody announces its wait on its desk before it follows from whom to whom processes wait; so whoever announces last finds the circle.

use crate::desk::{Doing, From, Word};
use crate::member::Member;
use m3ipc::endpoint::Number;
use m3ipc::limits::SLOTS;

/// How often a circle is looked for while processes on the way change what they do.
const CIRCLE_LOOKS: usize = 100;

impl Member {
    /// Whether the wait that this process has just announced closes a circle of processes that wait for each other. Then it is announced no
    /// more: of two that find the same circle, one gives way.
    pub(crate) fn closes_circle(&self, own: Word) -> bool {
        if !self.is_circle(own) {
            return false;
        }
        let _one_at_a_time = self.desks.settle();
        self.is_circle(own) && self.desk().replace(own, own.with(Doing::Running))
    }

    /// Follows from whom to whom processes wait. Returns whether the last one waits for this one, and all did at one moment.
    fn is_circle(&self, own: Word) -> bool {
        // Whoever changes meanwhile announces its next wait, and looks for circles then: a few attempts are enough.
        (0..CIRCLE_LOOKS).find_map(|_| self.look_for_circle(own)).unwrap_or(false)
    }

    /// As [`Member::is_circle`]; `None`: somebody on the way has changed meanwhile.
    fn look_for_circle(&self, own: Word) -> Option<bool> {
        let mut path = Vec::new();
        let mut next = waits_for(own.doing());
        while let Some(at) = next.filter(|at| *at != self.number) {
            let word = self.desks.desk(at).word();
            next = waits_for(word.doing());
            // Of these two one sends what the other takes, or is just about to.
            let is_exchange =
                path.is_empty() && next == Some(self.number) && is_sending(own.doing()) != is_sending(word.doing());
            // A circle without this process is others' to find.
            if is_exchange || path.len() > SLOTS || self.board.occupant(at).is_none() {
                return Some(false);
            }
            path.push((at, word));
        }
        let is_circle = next.is_some();
        let is_stable = || path.iter().all(|(number, word)| self.desks.desk(*number).word() == *word);
        (!is_circle || is_stable()).then_some(is_circle)
    }
}

fn waits_for(doing: Doing) -> Option<Number> {
    match doing {
        Doing::Sending(to) | Doing::SendingForAnswer(to) | Doing::AwaitingAnswer(to) => Some(to),
        Doing::Receiving(From::One(from), _) => Some(from),
        _ => None,
    }
}

fn is_sending(doing: Doing) -> bool {
    matches!(doing, Doing::Sending(_) | Doing::SendingForAnswer(_))
}
