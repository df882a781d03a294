//! Desks: what each process of a container waits for, in one word, and the futex that wakes it.
//!
//! The owner of a desk changes its word when a call begins and ends. Others change it in these ways only, each by one compare-and-exchange:
//! a sender *claims* a receiver that would take its message (`Receiving` becomes `Got`); a receiver that has taken a message lets its sender
//! go on (`Sending` becomes `Running`, `SendingForAnswer` becomes `AwaitingAnswer`); whoever offers something to a process that just looks
//! for messages makes it look once more (`Looking` becomes `LookingAgain`).
//!
//! Every word has a number that its owner counts up at each call, so that a late compare-and-exchange fails. A message carries the number of
//! the call that sent it: a claimed receiver may take it when its sender has long begun the next call.

use m3ipc::endpoint::Number;
use m3ipc::limits::SLOTS;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The desks of a container.
#[repr(C)]
pub struct Desks {
    /// Not 0 while somebody traces the container.
    pub traced: AtomicU32,
    /// 1 while somebody settles who gives way in a circle.
    settling: AtomicU32,
    unused: [AtomicU32; 30],
    desks: [Desk; SLOTS],
}

/// The desk of a slot. What others change, what they look at at each message, and what only its owner touches are in lines of their own.
#[repr(C, align(256))]
pub struct Desk {
    /// What its owner does: a [`Doing`]. While it is about to wait, and looks again for a few microseconds, this is `Running`.
    word: AtomicU64,
    unused: [AtomicU64; 7],
    /// 1 while its owner sleeps or is about to.
    pub bell: AtomicU32,
    /// The processor that its owner was on when it waited last.
    pub cpu: AtomicU32,
    unused_too: [AtomicU64; 7],
    /// What its owner waits for, from the first moment on: for those who are not told by a box.
    status: AtomicU64,
    /// Messages that its owner has sent.
    pub sent: AtomicU64,
    /// Blocks that its owner has copied.
    pub copied: AtomicU64,
    /// The bits of posted notifications that its owner has received.
    pub seen: [AtomicU64; SLOTS / 64],
}

impl Desks {
    /// Returns the desk of a slot.
    #[inline(always)]
    pub fn desk(&self, number: Number) -> &Desk {
        &self.desks[number.index()]
    }

    /// Lets one process at a time settle who gives way in a circle, until the result is dropped. Whoever has died in there is not waited for
    /// long: then two may give way instead of one.
    pub fn settle(&self) -> Settling<'_> {
        for _ in 0..SETTLING_LOOKS {
            if self.settling.compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
                break;
            }
            rustix::thread::sched_yield();
        }
        Settling(&self.settling)
    }
}

/// How often one looks whether another process has settled who gives way.
const SETTLING_LOOKS: u32 = 1_000;

/// Held by who settles.
pub struct Settling<'a>(&'a AtomicU32);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

/// Whom a process receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Anybody.
    Any,
    /// The process in this slot.
    One(Number),
}

/// What a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Notifications, then messages.
    All,
    /// Messages.
    Messages,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// No call that waits.
    Running,
    /// It looks for something to receive.
    Looking,
    /// The same, and something has come meanwhile.
    LookingAgain,
    /// It waits for something to receive.
    Receiving(From, Takes),
    /// It waits until its message is taken.
    Sending(Number),
    /// The same, and it will wait for the answer then.
    SendingForAnswer(Number),
    /// Its message was taken, and it waits for the answer.
    AwaitingAnswer(Number),
    /// A message of this process is for it.
    GotMessage(Number),
    /// A notification of this process is for it.
    GotNote(Number),
    /// Another process has ended its wait.
    WokenUp,
}

/// A word of a desk: what its owner does, and the number of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

const ANYBODY: u64 = 0xffff;
const RUNNING: u64 = 0;
const GOT_MESSAGE: u64 = 7;
const KIND_BITS: u32 = 8;
const PEER_BITS: u32 = 16;

impl Word {
    /// Returns the word for this.
    #[inline(always)]
    pub fn new(doing: Doing, call: u64) -> Word {
        let peer = |number: Number| number.index() as u64;
        let (kind, peer) = match doing {
            Doing::Running => (RUNNING, 0),
            Doing::Looking => (1, 0),
            Doing::LookingAgain => (2, 0),
            Doing::Receiving(From::Any, Takes::All) => (3, ANYBODY),
            Doing::Receiving(From::Any, Takes::Messages) => (4, ANYBODY),
            Doing::Receiving(From::One(one), Takes::All) => (3, peer(one)),
            Doing::Receiving(From::One(one), Takes::Messages) => (4, peer(one)),
            Doing::Sending(to) => (5, peer(to)),
            Doing::SendingForAnswer(to) => (6, peer(to)),
            Doing::GotMessage(from) => (GOT_MESSAGE, peer(from)),
            Doing::GotNote(from) => (8, peer(from)),
            Doing::WokenUp => (9, 0),
            Doing::AwaitingAnswer(from) => (10, peer(from)),
        };
        Word(kind | peer << KIND_BITS | call << (KIND_BITS + PEER_BITS))
    }

    /// Returns what its owner does. A word that means nothing is taken for `Running`, from which nobody concludes anything.
    pub fn doing(self) -> Doing {
        let peer = self.0 >> KIND_BITS & ANYBODY;
        let number = (peer < SLOTS as u64).then(|| Number::at(peer as usize));
        let from = number.map(From::One).or((peer == ANYBODY).then_some(From::Any));
        let doing = match self.0 & ((1 << KIND_BITS) - 1) {
            1 => Some(Doing::Looking),
            2 => Some(Doing::LookingAgain),
            3 => from.map(|from| Doing::Receiving(from, Takes::All)),
            4 => from.map(|from| Doing::Receiving(from, Takes::Messages)),
            5 => number.map(Doing::Sending),
            6 => number.map(Doing::SendingForAnswer),
            GOT_MESSAGE => number.map(Doing::GotMessage),
            8 => number.map(Doing::GotNote),
            9 => Some(Doing::WokenUp),
            10 => number.map(Doing::AwaitingAnswer),
            _ => Some(Doing::Running),
        };
        doing.unwrap_or(Doing::Running)
    }

    /// Whether it is what a process leaves on its desk that does not wait.
    #[inline(always)]
    pub(crate) fn is_quiet(self) -> bool {
        matches!(self.0 & ((1 << KIND_BITS) - 1), RUNNING | GOT_MESSAGE)
    }

    /// Returns the word as it lies on the desk.
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// Returns the number of the call, as messages carry it.
    pub fn call(self) -> u32 {
        (self.0 >> (KIND_BITS + PEER_BITS)) as u32
    }

    /// Returns the word for something else in the same call.
    pub fn with(self, doing: Doing) -> Word {
        Word::new(doing, self.0 >> (KIND_BITS + PEER_BITS))
    }
}

impl Desk {
    /// Returns its word.
    pub fn word(&self) -> Word {
        Word(self.word.load(SeqCst))
    }

    /// Returns what its owner waits for, also while it does not sleep yet.
    pub fn status(&self) -> Word {
        Word(self.status.load(SeqCst))
    }

    /// Returns the word of its status, to watch it.
    pub(crate) fn status_word(&self) -> &AtomicU64 {
        &self.status
    }

    /// Returns its word, to watch it.
    pub(crate) fn own_word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Says what its owner waits for. For its owner.
    pub fn set_status(&self, word: Word) {
        self.status.store(word.0, Release);
    }

    /// Sets its word. For its owner.
    pub fn set(&self, word: Word) {
        self.word.store(word.0, SeqCst);
    }

    /// Sets its word if it is still `old`.
    pub fn replace(&self, old: Word, new: Word) -> bool {
        self.word.compare_exchange(old.0, new.0, SeqCst, SeqCst).is_ok()
    }

    /// Forgets what a former owner did. For the broker.
    pub fn clear(&self) {
        self.set(Word::new(Doing::Running, 0));
        self.set_status(Word::new(Doing::Running, 0));
        self.sent.store(0, SeqCst);
        self.copied.store(0, SeqCst);
        self.seen.iter().for_each(|word| word.store(0, SeqCst));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back() {
        let peer = Number::at(255);
        let all = [
            Doing::Running,
            Doing::Looking,
            Doing::LookingAgain,
            Doing::Receiving(From::Any, Takes::All),
            Doing::Receiving(From::One(peer), Takes::All),
            Doing::Receiving(From::Any, Takes::Messages),
            Doing::Receiving(From::One(peer), Takes::Messages),
            Doing::Sending(peer),
            Doing::SendingForAnswer(peer),
            Doing::AwaitingAnswer(peer),
            Doing::GotMessage(peer),
            Doing::GotNote(peer),
            Doing::WokenUp,
        ];
        for doing in all {
            let word = Word::new(doing, 77);
            assert_eq!((word.doing(), word.with(Doing::Running)), (doing, Word::new(Doing::Running, 77)));
            assert_ne!(word, Word::new(doing, 78));
            assert_eq!(word.call(), 77);
        }
    }

    #[test]
    fn scribbles_mean_nothing() {
        for word in [11, 0xff, 5 | 256 << 8, 5 | ANYBODY << 8, 3 | 300 << 8, !0] {
            assert_eq!(Word(word).doing(), Doing::Running, "{word:x}");
        }
    }
}
