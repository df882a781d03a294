//! A box: messages and notifications between two processes, which map it both and nobody else does.
//!
//! Each direction is a [`Channel`] with two places for messages: one may hold a message whose receiver was claimed and has not yet run, the
//! other the next one, whose sender waits. The same for notifications. A place is free while its number is 0. Only the sender fills it, with a
//! number that it never takes from shared memory; whoever wants it empty, the receiver who takes it or the sender who withdraws it, puts 0
//! for that number by compare-and-exchange, so that one of them does.

use m3ipc::endpoint::Number;
use m3ipc::message::Message;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What two processes share.
#[repr(C)]
pub struct Box {
    /// What the one with the lower slot sends, then the other.
    channels: [Channel; 2],
}

/// One direction of a box.
#[repr(C, align(128))]
pub struct Channel {
    messages: [Place<7>; 2],
    notes: [Place<2>; 2],
    /// When the calls began whose messages lie there, in nanoseconds of CLOCK_MONOTONIC.
    began: [AtomicU64; 2],
    /// Not 0 when the receiver has mapped the box, and so will find what it is claimed for.
    attached: AtomicU32,
}

/// Room for a message or a notification: one cache line, so that it moves from one processor to another at once.
#[repr(C, align(64))]
struct Place<const WORDS: usize> {
    number: AtomicU32,
    kind: AtomicU32,
    words: [AtomicU64; WORDS],
}

/// A message that lies in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    place: usize,
    number: u32,
}

impl Found {
    /// Returns the number that its sender gave it.
    pub fn number(self) -> u32 {
        self.number
    }
}

impl Box {
    /// Returns what `from` sends to `to`.
    pub fn channel(&self, from: Number, to: Number) -> &Channel {
        &self.channels[usize::from(from > to)]
    }
}

impl Channel {
    /// Says that the receiver has mapped the box.
    pub fn attach(&self) {
        self.attached.store(1, SeqCst);
    }

    /// Whether the receiver has mapped the box.
    pub fn is_attached(&self) -> bool {
        self.attached.load(SeqCst) != 0
    }

    /// Puts a message into a free place. Returns it, or `None` when both are full.
    pub fn offer(&self, number: u32, began: u64, message: &Message) -> Option<Found> {
        let place = free(&self.messages)?;
        self.began[place].store(began, Relaxed);
        self.messages[place].put(number, message.kind, message.words);
        Some(Found { place, number })
    }

    /// Whether an offered message still lies there.
    pub fn is_offered(&self, found: Found) -> bool {
        self.messages[found.place].number.load(SeqCst) == found.number
    }

    /// Takes an offered message back. Returns whether it still lay there.
    pub fn withdraw(&self, found: Found) -> bool {
        self.messages[found.place].empty(found.number)
    }

    /// Returns the message that was offered first.
    pub fn first(&self) -> Option<Found> {
        first([0, 1].map(|at| self.messages[at].number.load(SeqCst)))
    }

    /// The same for a receiver that is about to take it.
    pub fn first_to_take(&self) -> Option<Found> {
        first([0, 1].map(|at| self.messages[at].fetch_number()))
    }

    /// Returns when the call began whose message this is.
    pub fn began(&self, found: Found) -> u64 {
        self.began[found.place].load(Relaxed)
    }

    /// Takes a message, as if nobody had sent it; `None`: it was withdrawn meanwhile.
    pub fn take(&self, found: Found) -> Option<Message> {
        let (kind, words) = self.messages[found.place].take(found.number)?;
        Some(Message { source: 0, kind, words })
    }

    /// Puts a notification into a free place; `false`: both are full.
    pub fn note(&self, number: u32, time_ns: u64, value: u64) -> bool {
        let place = free(&self.notes);
        if let Some(place) = place {
            self.notes[place].put(number, 0, [value, time_ns]);
        }
        place.is_some()
    }

    /// Returns how many notifications lie there.
    pub fn notes(&self) -> usize {
        self.notes.iter().filter(|place| place.number.load(SeqCst) != 0).count()
    }

    /// Takes the first notification: its value and time.
    pub fn take_note(&self) -> Option<(u64, u64)> {
        let found = first([0, 1].map(|at| self.notes[at].fetch_number()))?;
        let (_, [value, time_ns]) = self.notes[found.place].take(found.number)?;
        Some((value, time_ns))
    }
}

fn free<const W: usize>(places: &[Place<W>; 2]) -> Option<usize> {
    places.iter().position(|place| place.fetch_number() == 0)
}

/// Returns which of two places was filled first, by their numbers, which wrap.
fn first(numbers: [u32; 2]) -> Option<Found> {
    let place = match numbers {
        [0, 0] => return None,
        [0, _] => 1,
        [_, 0] => 0,
        [one, other] => usize::from(one.wrapping_sub(other).cast_signed() > 0),
    };
    Some(Found { place, number: numbers[place] })
}

impl<const W: usize> Place<W> {
    /// Returns the number, and gets the cache line for writing, which is about to follow: a load would have it fetched twice.
    fn fetch_number(&self) -> u32 {
        self.number.compare_exchange(0, 0, SeqCst, SeqCst).unwrap_or_else(|number| number)
    }

    fn put(&self, number: u32, kind: i32, words: [u64; W]) {
        self.kind.store(kind.cast_unsigned(), Relaxed);
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Relaxed);
        }
        self.number.store(number, SeqCst);
    }

    fn take(&self, number: u32) -> Option<(i32, [u64; W])> {
        let kind = self.kind.load(Relaxed).cast_signed();
        let words = std::array::from_fn(|at| self.words[at].load(Relaxed));
        // They are those of `number` only if it still lies there now.
        self.empty(number).then_some((kind, words))
    }

    fn empty(&self, number: u32) -> bool {
        self.number.compare_exchange(number, 0, SeqCst, SeqCst).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapping;

    fn message(kind: i32) -> Message {
        Message { source: 5, kind, words: [kind as u64; 7] }
    }

    fn shared() -> Mapping<Box> {
        Mapping::create("test").expect("there is memory for a box").1
    }

    fn ends() -> (Number, Number) {
        (Number::at(3), Number::at(200))
    }

    #[test]
    fn directions_are_apart() {
        let (shared, (low, high)) = (shared(), ends());
        shared.channel(low, high).offer(1, 0, &message(1));
        assert!(shared.channel(low, high).first().is_some());
        assert!(shared.channel(high, low).first().is_none());
        assert!(shared.channel(high, low).offer(7, 0, &message(2)).is_some());
    }

    #[test]
    fn what_was_offered_first_is_taken_first_also_when_numbers_wrap() {
        let (shared, (low, high)) = (shared(), ends());
        let channel = shared.channel(low, high);
        for (one, other) in [(1, 2), (u32::MAX, 1), (u32::MAX - 1, u32::MAX)] {
            assert!(channel.offer(one, 10, &message(one as i32)).is_some());
            assert!(channel.offer(other, 11, &message(other as i32)).is_some());
            assert!(channel.offer(9, 0, &message(9)).is_none(), "both places are full");
            for number in [one, other] {
                let found = channel.first().expect("one lies there");
                assert_eq!(channel.take(found), Some(Message { source: 0, ..message(number as i32) }));
                assert_eq!(channel.take(found), None, "nothing is taken twice");
            }
        }
    }

    #[test]
    fn a_message_is_taken_or_withdrawn_and_never_both() {
        let (shared, (low, high)) = (shared(), ends());
        let channel = shared.channel(low, high);
        for round in 1..2000 {
            let found = channel.offer(round, 0, &message(1)).expect("a place is free");
            let (taken, withdrawn) = std::thread::scope(|scope| {
                let taker = scope.spawn(|| channel.first().is_some_and(|found| channel.take(found).is_some()));
                let withdrawn = channel.withdraw(found);
                (taker.join().expect("the taker does not panic"), withdrawn)
            });
            assert!(taken != withdrawn, "round {round}: taken {taken}, withdrawn {withdrawn}");
        }
    }

    #[test]
    fn messages_arrive_whole_and_in_order_between_threads() {
        let (shared, (low, high)) = (shared(), ends());
        let channel = shared.channel(low, high);
        // As the desk's `GotMessage` does: the receiver looks for a message that lies there, while the sender offers the next one.
        let claimed = AtomicU32::new(0);
        let all_in_order = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                (1..20_000).all(|number| {
                    while claimed.load(SeqCst) < number {
                        std::thread::yield_now();
                    }
                    let taken = channel.first_to_take().and_then(|found| channel.take(found));
                    taken == Some(Message { source: 0, ..message(number.cast_signed()) })
                })
            });
            for number in 1..20_000 {
                while channel.offer(number, 0, &message(number.cast_signed())).is_none() && !taker.is_finished() {
                    std::thread::yield_now();
                }
                claimed.store(number, SeqCst);
            }
            taker.join().expect("the taker does not panic")
        });
        assert!(all_in_order);
    }

    #[test]
    fn notifications_have_two_places() {
        let (shared, (low, high)) = (shared(), ends());
        let channel = shared.channel(low, high);
        assert_eq!([channel.note(1, 5, 50), channel.note(2, 6, 60), channel.note(3, 7, 70)], [true, true, false]);
        assert_eq!(channel.notes(), 2);
        assert_eq!(
            [channel.take_note(), channel.take_note(), channel.take_note()],
            [Some((50, 5)), Some((60, 6)), None]
        );
    }

    #[test]
    fn random_words_yield_messages_or_nothing() {
        let (shared, (low, high)) = (shared(), ends());
        let channel = shared.channel(low, high);
        let mut state = 88_172_645_463_325_252u64;
        for _ in 0..10_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            channel.messages[state as usize % 2].number.store((state >> 8) as u32 % 3, Relaxed);
            channel.notes[(state >> 4) as usize % 2].number.store((state >> 40) as u32 % 3, Relaxed);
            if let Some(found) = channel.first() {
                channel.take(found);
            }
            channel.take_note();
            assert!(channel.notes() <= 2);
        }
    }
}
