//! Timers behind descriptors (timerfd_create(2)).
//!
//! A timer runs nowhere: how often it has expired follows from the time and from when the first expiration is that nobody has read. Reading
//! moves that on. So nothing is lost when vfs dies, and a timer that nobody waits for costs nothing.

use super::{Inheritance, Kind, Object, Operation, no_position};
use crate::{
    base::Flow,
    events::{
        Watchers,
        poll::{ANY, POLLIN},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::{
        Kept, Store,
        records::{ObjectRecord, TimerRecord},
    },
    memory as user,
    memory::buffer::UserBuffer,
};
use abi::Errno;
use alloc::rc::Rc;
use core::fmt::{self, Write};
use sys::{text::Text, time};

/// Nanoseconds of a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Bytes that a read gives.
pub const COUNT_BYTES: u64 = 8;

/// One timer.
#[derive(Debug)]
pub struct Timer {
    record: Kept<TimerRecord>,
    /// Those who wait and have to look again when it is set.
    pub watchers: Watchers,
}

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Now {
    monotonic_ns: u64,
    wall_ns: u64,
}

impl Now {
    fn read() -> Now {
        let (monotonic_ns, wall_ns) = time::both_ns();
        Now { monotonic_ns, wall_ns }
    }

    fn of(self, record: &TimerRecord) -> u64 {
        if record.on_wall { self.wall_ns } else { self.monotonic_ns }
    }
}

/// Expirations that nobody has read.
fn expirations(record: &TimerRecord, now_ns: u64) -> u64 {
    match record.next_ns {
        0 => 0,
        next_ns if now_ns < next_ns => 0,
        _ if record.interval_ns == 0 => 1,
        next_ns => 1 + (now_ns - next_ns) / record.interval_ns,
    }
}

/// The timer when these expirations have been read.
fn after_reading(record: &TimerRecord, count: u64) -> TimerRecord {
    let next_ns = match record.interval_ns {
        0 => 0,
        interval_ns => record.next_ns.saturating_add(count.saturating_mul(interval_ns)),
    };
    TimerRecord { next_ns, ..*record }
}

/// Time until the next expiration; 0: there will be none.
fn time_left(record: &TimerRecord, now_ns: u64) -> u64 {
    match expirations(record, now_ns) {
        0 => record.next_ns.saturating_sub(now_ns),
        count => after_reading(record, count).next_ns.saturating_sub(now_ns),
    }
}

impl Timer {
    /// A timer of a user that is not set. `ENFILE`: there are too many.
    pub fn new(store: &Rc<Store>, user: u32, of_wall: bool) -> Result<Rc<Timer>, Errno> {
        let record = store.new_timer(TimerRecord { of_wall, user, ..TimerRecord::default() })?;
        Ok(Timer::restore(record))
    }

    /// A timer as a predecessor has left it.
    pub fn restore(record: Kept<TimerRecord>) -> Rc<Timer> {
        Rc::new(Timer { record, watchers: Watchers::default() })
    }

    /// As it is set.
    pub fn record(&self) -> TimerRecord {
        self.record.get()
    }

    fn set(&self, record: TimerRecord) {
        self.record.set(record);
        self.watchers.fire_for(POLLIN);
    }

    /// Sets the next expiration, at a time of its clock or (`absolute` unset) after a time, and the interval. 0 as value: never.
    pub fn arm(&self, absolute: bool, value_ns: u64, interval_ns: u64) {
        let of_wall = self.record().of_wall;
        let start_ns = if absolute { 0 } else { Now::read().monotonic_ns };
        let next_ns = if value_ns == 0 { 0 } else { start_ns.saturating_add(value_ns) };
        // A relative time does not follow the wall clock when that is set.
        self.set(TimerRecord { on_wall: of_wall && absolute, next_ns, interval_ns, ..self.record.get() });
    }

    /// Expirations that nobody has read.
    pub fn expirations(&self) -> u64 {
        let record = self.record();
        expirations(&record, Now::read().of(&record))
    }

    /// Counts so many expirations as read.
    pub fn read(&self, count: u64) {
        self.set(after_reading(&self.record(), count));
    }

    /// It has expired, and nobody has read that.
    pub fn is_ready(&self) -> bool {
        self.record().next_ns != 0 && self.expirations() > 0
    }

    /// The monotonic time of the next expiration, as the clocks are now.
    pub fn wakes_at(&self) -> Option<u64> {
        let record = self.record();
        let now = Now::read();
        let left_ns = record.next_ns.saturating_sub(now.of(&record));
        (record.next_ns != 0).then_some(now.monotonic_ns.saturating_add(left_ns))
    }

    /// As `struct itimerspec`: interval, and time left.
    pub fn show(&self) -> [u8; 32] {
        let record = self.record();
        let left_ns = time_left(&record, Now::read().of(&record));
        let words = [record.interval_ns, left_ns].map(|ns| [ns / NS_PER_S, ns % NS_PER_S].map(u64::to_le_bytes));
        let mut spec = [0; 32];
        spec.copy_from_slice(words.as_flattened().as_flattened());
        spec
    }
}

/// A timer as an open file.
#[derive(Debug)]
pub struct TimerFile(pub Rc<Timer>);

impl Object for TimerFile {
    fn record(&self) -> ObjectRecord {
        ObjectRecord { place: self.0.record.place() as u16, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        let record = self.0.record();
        let clock = if record.of_wall { 0 } else { 1 };
        let (left_ns, interval_ns) = (time_left(&record, Now::read().of(&record)), record.interval_ns);
        let pair = |ns: u64| (ns / NS_PER_S, ns % NS_PER_S);
        let (ticks, flags) = (self.0.expirations(), u32::from(record.on_wall));
        let (value, interval) = (pair(left_ns), pair(interval_ns));
        write!(text, "clockid: {clock}\nticks: {ticks}\nsettime flags: 0{flags:o}\n")?;
        writeln!(text, "it_value: {value:?}\nit_interval: {interval:?}")
    }

    /// Gives how often it has expired since the last read.
    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        if buffer.left() < COUNT_BYTES {
            return Err(Errno::EINVAL);
        }
        let timer = self.0.clone();
        if !timer.is_ready() && on.file.nonblocking() {
            return Err(Errno::EAGAIN);
        }
        let (base, caller, file, mut buffer) = (on.base, on.caller.clone(), on.file.clone(), core::mem::take(buffer));
        Ok(Flow::task(async move {
            while !timer.is_ready() {
                let mut sleep = timer.wakes_at().map(|at_ns| base.runtime().sleep_until(at_ns));
                timer.watchers.add(caller.event());
                let waited = caller.wait_or_sleep(sleep.as_mut()).await;
                timer.watchers.remove(caller.event());
                waited?;
            }
            let count = timer.expirations();
            user::store_all(&mut buffer, &count.to_le_bytes())?;
            timer.read(count);
            drop(file);
            Ok(COUNT_BYTES)
        }))
    }

    fn poll(&self) -> u32 {
        u32::from(self.0.is_ready()) * POLLIN
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.0.watchers, ANY)), None]
    }

    fn wakes_at(&self) -> Option<u64> {
        self.0.wakes_at()
    }
}

impl Kind for TimerFile {
    const NUMBER: u8 = 7;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        from.timer(record.place).map(|record| TimerFile(Timer::restore(record)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(next_ns: u64, interval_ns: u64) -> TimerRecord {
        TimerRecord { next_ns, interval_ns, ..TimerRecord::default() }
    }

    #[test]
    fn expirations_are_counted_until_they_are_read() {
        let periodic = timer(100, 10);
        assert_eq!([99, 100, 109, 110, 145].map(|now_ns| expirations(&periodic, now_ns)), [0, 1, 1, 2, 5]);
        let read = after_reading(&periodic, 5);
        assert_eq!([145, 150].map(|now_ns| expirations(&read, now_ns)), [0, 1]);
        assert_eq!([99, 100, 1000].map(|now_ns| expirations(&timer(100, 0), now_ns)), [0, 1, 1]);
        assert_eq!(expirations(&after_reading(&timer(100, 0), 1), 1000), 0);
        assert_eq!(expirations(&timer(0, 10), 1000), 0);
    }

    #[test]
    fn the_time_left_is_that_to_the_next_expiration() {
        assert_eq!([90, 100, 101, 145].map(|now_ns| time_left(&timer(100, 10), now_ns)), [10, 10, 9, 5]);
        assert_eq!([90, 100, 101].map(|now_ns| time_left(&timer(100, 0), now_ns)), [10, 0, 0]);
        assert_eq!(time_left(&timer(0, 10), 50), 0);
    }
}
