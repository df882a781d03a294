//! Signals that wait for delivery to one thread or one process.
//!
//! Invariant: `set` has a bit exactly when the queue has at least one entry for that signal. A standard signal is there at
//! most once; real-time signals queue in order, up to the limit the caller gives.

use super::{Set, SigInfo, Signal};
use abi::Errno;
use alloc::collections::VecDeque;

/// Pending signals.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    set: Set,
    queue: VecDeque<SigInfo>,
}

impl Pending {
    /// Which signals wait.
    pub fn set(&self) -> Set {
        self.set
    }

    /// Adds a signal. `EAGAIN`: a real-time signal, and there are `limit` entries already.
    pub fn add(&mut self, info: SigInfo, limit: u64) -> Result<(), Errno> {
        if !info.signal.is_real_time() && self.set.contains(info.signal) {
            return Ok(());
        }
        if info.signal.is_real_time() && self.queue.len() as u64 >= limit {
            return Err(Errno::EAGAIN);
        }
        self.set = self.set.or(info.signal.set());
        self.queue.push_back(info);
        Ok(())
    }

    /// Adds expiries to the pending signal of a timer. Returns false if there is none.
    pub fn count_timer(&mut self, signal: Signal, id: u32, expiries: u32) -> bool {
        let waiting = self.queue.iter_mut().find(|info| info.is_of_timer(signal, id));
        waiting.map(|info| info.add_overruns(expiries)).is_some()
    }

    /// Takes the next signal of `wanted` out.
    pub fn take(&mut self, wanted: Set) -> Option<SigInfo> {
        let signal = self.set.and(wanted).next()?;
        let at = self.queue.iter().position(|info| info.signal == signal)?;
        let info = self.queue.remove(at);
        self.forget_bit_without_entry(signal);
        info
    }

    /// Drops all signals of `unwanted`.
    pub fn discard(&mut self, unwanted: Set) {
        if !self.set.and(unwanted).is_empty() {
            self.queue.retain(|info| !unwanted.contains(info.signal));
            self.set = self.set.without(unwanted);
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.set = Set::EMPTY;
        self.queue.clear();
    }

    fn forget_bit_without_entry(&mut self, signal: Signal) {
        if !signal.is_real_time() || !self.queue.iter().any(|info| info.signal == signal) {
            self.set = self.set.without(signal.set());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(number: u64, value: u32) -> SigInfo {
        SigInfo::user(Signal::new(number).unwrap(), 0, value, 0)
    }

    const ALL: Set = Set(u64::MAX);

    #[test]
    fn a_standard_signal_waits_once_with_its_first_reason() {
        let mut pending = Pending::default();
        pending.add(info(10, 1), 100).unwrap();
        pending.add(info(10, 2), 100).unwrap();
        assert_eq!(pending.take(ALL), Some(info(10, 1)));
        assert_eq!(pending.take(ALL), None);
    }

    #[test]
    fn real_time_signals_keep_number_and_order() {
        let mut pending = Pending::default();
        for (number, value) in [(40, 1), (35, 2), (40, 3)] {
            pending.add(info(number, value), 100).unwrap();
        }
        let taken: Vec<_> = core::iter::from_fn(|| pending.take(ALL)).collect();
        assert_eq!(taken, [info(35, 2), info(40, 1), info(40, 3)]);
        assert_eq!(pending.set(), Set::EMPTY);
    }

    #[test]
    fn the_limit_refuses_only_real_time_signals() {
        let mut pending = Pending::default();
        pending.add(info(40, 1), 1).unwrap();
        assert_eq!(pending.add(info(40, 2), 1), Err(Errno::EAGAIN));
        assert_eq!(pending.add(info(10, 2), 1), Ok(()));
    }

    #[test]
    fn discarded_signals_do_not_come_back() {
        let mut pending = Pending::default();
        pending.add(info(40, 1), 9).unwrap();
        pending.add(info(10, 1), 9).unwrap();
        pending.discard(Signal::new(40).unwrap().set());
        assert_eq!(pending.take(ALL), Some(info(10, 1)));
        assert_eq!(pending.take(ALL), None);
    }
}
