//! Timers behind descriptors in preserved memory.

use super::Store;
use abi::Errno;
use recover::records::Record;

/// A timer. Expirations that nobody has read follow from the time: see `timerfd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TimerRecord {
    /// It was made for the wall clock.
    pub of_wall: bool,
    /// `next_ns` is a time of the wall clock, else monotonic.
    pub on_wall: bool,
    /// When the first expiration that nobody has read is; 0: never.
    pub next_ns: u64,
    /// From one to the next; 0: there is only one.
    pub interval_ns: u64,
}

impl Record for TimerRecord {
    const WORDS: usize = 3;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.of_wall as u64 | (self.on_wall as u64) << 1, self.next_ns, self.interval_ns]);
    }

    fn load(words: &[u64]) -> Self {
        let (of_wall, on_wall) = (words[0] & 1 != 0, words[0] & 2 != 0);
        TimerRecord { of_wall, on_wall, next_ns: words[1], interval_ns: words[2] }
    }
}

impl Store {
    /// Makes a timer. `ENFILE`: no room.
    pub fn new_timer(&self, record: &TimerRecord) -> Result<u16, Errno> {
        let place = self.timers.pool.take(self.turn()).ok_or(Errno::ENFILE)?;
        self.timers.table.put_unreferenced(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Changes a timer.
    pub fn set_timer(&self, place: u16, record: &TimerRecord) {
        self.timers.table.set(&self.recover, place as usize, record);
    }

    /// Ends a timer.
    pub fn release_timer(&self, place: u16) {
        self.release(&self.timers, place as usize);
    }

    /// A timer as a predecessor has left it.
    pub fn timer(&self, place: u16) -> Option<TimerRecord> {
        super::get(&self.timers.table, &self.recover, place)
    }
}
