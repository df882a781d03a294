//! A signal that one call sends to several processes: each gets it exactly once, also if pm dies on the way.
//!
//! A successor of pm finds the round as it was, and goes on with the processes that the signal has not reached. Rounds have numbers, and a
//! process knows the last one that has reached it. A child has the number of its parent: it was forked after the signal.

use super::index::ProcessIndex;
use super::table::Table;
use crate::system::Requester;
use abi::Errno;

/// The round in progress, or the last one.
#[derive(Debug)]
pub struct Round {
    /// The call; `None`: it counts as done.
    of: Option<Requester>,
    number: u64,
    outcome: Result<u64, Errno>,
}

impl Round {
    /// None has begun yet.
    pub(super) const NONE: Round = Round { of: None, number: 0, outcome: Err(Errno::ESRCH) };
}

impl Table {
    /// Begins the round of this call, or goes on with it after the death of a predecessor.
    pub fn begin_round(&mut self, of: Requester) {
        if self.round.of != Some(of) {
            self.round = Round { of: Some(of), number: self.round.number + 1, outcome: Err(Errno::ESRCH) };
        }
    }

    /// Whether the signal of the round has reached a process.
    pub fn is_reached(&self, p: ProcessIndex) -> bool {
        self[p].reached == self.round.number
    }

    /// The signal of the round is pending for a process, or was discarded.
    pub fn note_reached(&mut self, p: ProcessIndex) {
        self.round.outcome = Ok(0);
        self[p].reached = self.round.number;
    }

    /// Sending to one more process had this result; one success makes the call one.
    pub fn note_of_round(&mut self, sent: Result<u64, Errno>) {
        self.round.outcome = self.round.outcome.or(sent);
    }

    /// The call counts as done.
    pub fn end_round(&mut self) {
        self.round.of = None;
    }

    /// The result of the call.
    pub fn outcome_of_round(&self) -> Result<u64, Errno> {
        self.round.outcome
    }
}
