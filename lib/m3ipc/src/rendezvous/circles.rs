//! Waits that would close a circle.

use super::{Doing, Rendezvous, Source};
use crate::{endpoint::Number, error::Error, limits::SLOTS};

impl<M: Copy, const N: usize> Rendezvous<M, N> {
    /// Checks that `who` may wait for `whom`.
    ///
    /// # Errors
    /// `Locked`: that one waits for `who`, directly or through others.
    pub(super) fn check_circle(&self, who: Number, whom: Number) -> Result<(), Error> {
        let mut at = Some(whom);
        for _ in 0..N {
            match at {
                Some(number) if number == who => return Err(Error::Locked),
                Some(number) => at = self.waits_for(number),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the process that this one waits for; `None`: it does not wait, or for anybody.
    fn waits_for(&self, number: Number) -> Option<Number> {
        match self.process(number)?.doing {
            Doing::Sending { to, .. } => Some(to),
            Doing::Receiving { from: Source::One(from), .. } | Doing::AwaitingAnswer { from } => Some(from),
            Doing::Receiving { from: Source::Any, .. } | Doing::Running => None,
        }
    }

    /// Checks the invariants of the whole container, for tests and after a successor has taken it over.
    ///
    /// # Errors
    /// The first slot that breaks one, and which.
    pub fn check(&self) -> Result<(), (Number, &'static str)> {
        let is_sending =
            |number: &Number| matches!(self.process(*number).map(|process| process.doing), Some(Doing::Sending { .. }));
        if self.senders != Self::numbers().filter(is_sending).count() {
            return Err((Number::at(SLOTS - N), "is one of senders that are counted wrongly"));
        }
        for number in Self::numbers() {
            if self.bound.contains(number) != self.process(number).is_some() {
                return Err((number, "is bound and free"));
            }
            let Some(process) = self.process(number) else { continue };
            if let Some(whom) = self.waits_for(number) {
                if self.process(whom).is_none() {
                    return Err((number, "waits for a free slot"));
                }
                if self.check_circle(number, whom).is_err() {
                    return Err((number, "waits for itself"));
                }
            }
            if !process.pending.is_subset_of(&self.bound) {
                return Err((number, "has a notification of a free slot"));
            }
            if self.next_for(number).is_some() {
                return Err((number, "waits for what is there"));
            }
            if self.process(process.leader).is_none_or(|leader| leader.leader != process.leader) {
                return Err((number, "has no group leader"));
            }
        }
        Ok(())
    }
}
