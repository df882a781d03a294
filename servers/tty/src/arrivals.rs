//! Arrivals at one side of a terminal, counted for those who want each of them once (`chardev::Poll`, `since`; EPOLLET of epoll(7)).
//!
//! There are arrivals of input and of room for output, as Linux wakes those who wait for either. A count goes on with the first arrival
//! after it was told, so it is another for everyone to whom the one before was told. It is saved; whether it was told is not: a successor
//! takes it for told. Neighbours: `terminal` (the slave's and a line's arrivals), `pty` (the master's).

use abi::chardev;
use recover::snapshot::{Reader, Writer};

/// poll(2) bits that input makes ready: POLLIN, POLLPRI, POLLRDNORM, POLLRDBAND.
const INPUT: u64 = 0x1 | 0x2 | 0x40 | 0x80;
/// poll(2) bits that room makes ready: POLLOUT, POLLWRNORM, POLLWRBAND.
const OUTPUT: u64 = 0x4 | 0x100 | 0x200;
/// Bits of one count.
const COUNT_BITS: u32 = 13;
/// The low one of two counts.
const LOW: u64 = (1 << COUNT_BITS) - 1;
/// The counts of what has been hung up, which nothing arrives at any more.
const HUNG_UP: u64 = (1 << (2 * COUNT_BITS)) - 1;

/// A poll that is answered with the ready events and the counts.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    events: u64,
    /// The counts that were told last; 0: none.
    since: u64,
}

impl Asked {
    /// What a poll asks for.
    pub fn of(poll: &chardev::Poll) -> Asked {
        Asked { events: poll.events, since: poll.since }
    }

    /// Word 0 of the reply from what is hung up; `None`: it was told, and nothing more will come.
    pub fn when_hung_up(&self, ready: u64) -> Option<u64> {
        let events = ready & self.events;
        (events != 0 && self.since != HUNG_UP).then_some(events | HUNG_UP << chardev::ARRIVALS_SHIFT)
    }
}

/// How often something has arrived, as far as it was told.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// From 1 to one less than the count of what has been hung up.
    number: u64,
    was_told: bool,
}

impl Count {
    const LAST: u64 = LOW - 1;

    fn load(saved: u64) -> Option<Count> {
        (1..=Count::LAST).contains(&saved).then_some(Count { number: saved, was_told: true })
    }

    fn go_on(&mut self) {
        if core::mem::take(&mut self.was_told) {
            self.number = self.number % Count::LAST + 1;
        }
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Arrivals {
    input: Count,
    output: Count,
    /// What the input and the output were at when they were looked at last.
    seen: ([u64; 2], u64),
}

impl Arrivals {
    /// Nothing has arrived.
    pub fn new() -> Arrivals {
        let count = Count { number: 1, was_told: false };
        Arrivals { input: count, output: count, seen: Default::default() }
    }

    /// Saves the counts into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.counts());
    }

    /// Loads the counts from a snapshot. `input` and `output`: as for [`Arrivals::note`], of the state that was saved with them.
    pub fn load(reader: &mut Reader, input: [u64; 2], output: u64) -> Option<Arrivals> {
        let counts = reader.number()?;
        let (low, high) = (counts & LOW, counts >> COUNT_BITS);
        Some(Arrivals { input: Count::load(low)?, output: Count::load(high)?, seen: (input, output) })
    }

    /// Both counts in a word.
    pub fn counts(&self) -> u64 {
        self.input.number | self.output.number << COUNT_BITS
    }

    /// Compares with what was looked at last. `input`: the position up to which there was ever input, and how many parts of it wait to be
    /// read: either may have grown. `output`: the position up to which output is gone.
    pub fn note(&mut self, input: [u64; 2], output: u64) {
        let (input_before, output_before) = core::mem::replace(&mut self.seen, (input, output));
        if input[0] != input_before[0] || input[1] > input_before[1] {
            self.input.go_on();
        }
        if output != output_before {
            self.output.go_on();
        }
    }

    /// Input has come, or what is as good.
    pub fn input_arrived(&mut self) {
        self.input.go_on();
    }

    /// There may be room.
    pub fn room_arrived(&mut self) {
        self.output.go_on();
    }

    /// Word 0 of the reply to a poll: which of its events are ready, if something has arrived for them; `None`: it has to wait.
    pub fn reply(&mut self, asked: Asked, ready: u64) -> Option<u64> {
        let events = ready & asked.events;
        if events == 0 || asked.since != 0 && !self.has_news(asked, events) {
            return None;
        }
        (self.input.was_told, self.output.was_told) = (true, true);
        Some(events | self.counts() << chardev::ARRIVALS_SHIFT)
    }

    fn has_news(&self, asked: Asked, events: u64) -> bool {
        // A hang-up is told, whatever is asked for.
        let always = events & !(INPUT | OUTPUT);
        let changed = asked.since ^ self.counts();
        let (input, output) = (changed & LOW != 0, changed >> COUNT_BITS != 0);
        input && (asked.events & INPUT | always) != 0 || output && (asked.events & OUTPUT | always) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLLIN: u64 = 1;
    const POLLOUT: u64 = 4;
    const POLLHUP: u64 = 16;
    const READY: u64 = POLLIN | POLLOUT;

    fn told(arrivals: &mut Arrivals, events: u64, since: u64) -> Option<u64> {
        arrivals.reply(Asked { events, since }, READY).map(|reply| reply >> chardev::ARRIVALS_SHIFT)
    }

    #[test]
    fn each_arrival_is_told_once_to_each() {
        let mut arrivals = Arrivals::new();
        let first = told(&mut arrivals, POLLIN, 0).expect("nothing was told");
        assert_eq!(told(&mut arrivals, POLLIN, first), None);
        arrivals.input_arrived();
        arrivals.input_arrived();
        let second = told(&mut arrivals, POLLIN, first).expect("two have arrived");
        assert_eq!(told(&mut arrivals, POLLIN, second), None);
        assert_eq!(told(&mut arrivals, POLLIN, first), Some(second), "to another one");
    }

    #[test]
    fn room_is_no_news_for_a_reader_but_told_with_input() {
        let mut arrivals = Arrivals::new();
        let first = told(&mut arrivals, POLLIN, 0).unwrap();
        arrivals.room_arrived();
        assert_eq!(told(&mut arrivals, POLLIN, first), None);
        assert!(told(&mut arrivals, POLLOUT, first).is_some());
        let both = arrivals.reply(Asked { events: READY, since: first }, READY);
        assert_eq!(both.map(|reply| reply & READY), Some(READY));
    }

    #[test]
    fn positions_that_change_are_arrivals() {
        let mut arrivals = Arrivals::new();
        let mut last = told(&mut arrivals, POLLIN, 0).unwrap();
        for (input, has_arrived) in [([5, 1], true), ([5, 2], true), ([5, 1], false), ([5, 1], false), ([9, 0], true)] {
            arrivals.note(input, 0);
            let now = told(&mut arrivals, POLLIN, last);
            assert_eq!(now.is_some(), has_arrived, "{input:?}");
            last = now.unwrap_or(last);
        }
    }

    #[test]
    fn counts_begin_again_after_the_last_and_never_mean_nothing_or_hung_up() {
        let mut arrivals = Arrivals::new();
        let mut last = told(&mut arrivals, READY, 0).unwrap();
        for _ in 0..2 * Count::LAST {
            arrivals.input_arrived();
            arrivals.room_arrived();
            let now = told(&mut arrivals, READY, last).expect("something has arrived");
            assert!(now != 0 && now != HUNG_UP && now & LOW != 0 && now & LOW != LOW);
            last = now;
        }
    }

    #[test]
    fn a_hang_up_is_told_once() {
        let asked = |since| Asked { events: POLLIN | POLLHUP, since };
        let told = asked(5).when_hung_up(READY | POLLHUP).unwrap();
        assert_eq!(told & 31, POLLIN | POLLHUP);
        assert_eq!(asked(told >> chardev::ARRIVALS_SHIFT).when_hung_up(READY | POLLHUP), None);
    }

    #[test]
    fn a_successor_goes_on_counting() {
        let mut arrivals = Arrivals::new();
        let last = told(&mut arrivals, READY, 0).unwrap();
        let mut saved = Writer::default();
        arrivals.save(&mut saved);
        let mut successor = Arrivals::load(&mut Reader::new(saved.bytes()), [0, 0], 0).expect("is whole");
        assert_eq!(told(&mut successor, READY, last), None);
        successor.input_arrived();
        assert!(told(&mut successor, READY, last).is_some());
    }
}
