//! A box: messages and notifications between two processes, which map it both and nobody else does. This file is long because both ends of it are
//! one protocol.
//!
//! A box has two sides. Each is written by one of the two and read by the other, so that a message crosses from one processor to another once
//! and nobody waits for a lock. What a process must be sure of it keeps in its own [`Link`]: the other one may write anything into the box.
//!
//! **Numbers.** What a process puts into a box, messages and notifications, is numbered. The other one says by number what it has taken: for
//! each place, in a line of its own that nobody reads while all goes well; and, with each wait that it announces, the last number that it has
//! seen. A sender whose message is the next one after that knows that the wait ends with its message: `send` returns at once, and the next
//! message finds an announcement that is too old. So no announcement is ever withdrawn on the way.
//!
//! **Who gets through.** Both announce first and look then, with a fence between: the sender its message, the receiver its wait, the receiver
//! what it takes, the sender that it takes its message back. Of two that do so at the same time at least one sees the other. A sender that
//! takes its message back and sees it taken leaves it; a receiver that sees it being taken back waits for the sender's decision, or decides
//! itself. `host/core/tests/loom.rs` tries all orders of these.
//!
//! **Promises.** Who has announced a wait and found nothing then may take the very next thing without a fence: its sender had looked after the announcement
//! ([`Promise`], docs/adr/0110-promises-and-biased-locks.md).

use crate::sync::{AtomicU32, AtomicU64, LEAVING_LOOKS, pause, store_and_fence};
use m3ipc::message::Message;
use std::ops::Deref;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// What two processes share: what the one with the lower slot writes, then the other's.
#[repr(C)]
#[derive(Default)]
pub struct Box {
    sides: [Side; 2],
}

/// What one of the two writes, by who looks at it: processors fetch lines by pairs, so what the other one rarely looks at is in another pair.
#[repr(C, align(128))]
#[derive(Default)]
struct Side {
    messages: [Place; 2],
    notes: Notes,
    shown: Shown,
    aside: Aside,
}

/// Room for a message: one cache line. One may hold a message whose receiver has not run yet, the other the next one.
#[repr(C, align(64))]
#[derive(Default)]
struct Place {
    /// Number and kind of the message: see [`Stamp`]. 0 before the first one, and when it was taken back.
    stamp: AtomicU32,
    kind: AtomicU32,
    words: [AtomicU64; 7],
}

/// What the other side looks at often.
#[repr(C, align(128))]
#[derive(Default)]
struct Shown {
    /// The wait that its owner announces: [`RECEIVES`] and up to which number it has seen everything, or 0.
    wait: AtomicU32,
    /// The last request whose answer its owner waits for no more, or not here: its number.
    given_up: AtomicU32,
    /// Not 0 when its owner has mapped the box, and so will find what is put into it.
    attached: AtomicU32,
}

/// What the other side looks at only when it must wait.
#[repr(C, align(128))]
#[derive(Default)]
struct Aside {
    /// Stamps of the messages that its owner has taken from the other's places.
    taken: [AtomicU32; 2],
    notes_taken: [AtomicU32; 2],
    /// When the calls began whose messages lie in its own places and wait, in nanoseconds of CLOCK_MONOTONIC; 0: just now.
    began: [AtomicU64; 2],
}

/// Room for notifications, as for messages.
#[repr(C, align(128))]
#[derive(Default)]
struct Notes([Note; 2]);

#[repr(C)]
#[derive(Default)]
struct Note {
    number: AtomicU32,
    /// Up to which number its sender has seen everything, or 0.
    seen: AtomicU32,
    value: AtomicU64,
    time_ns: AtomicU64,
}

/// Bits of a stamp below the number.
const STAMP_BITS: u32 = 3;
/// The sender waits for an answer.
const REQUEST: u32 = 1;
/// The sender has taken a request and answers it.
const ANSWER: u32 = 2;
/// The sender is taking it back.
const LEAVING: u32 = 4;

/// Returns whether `one` was counted before `other`: numbers wrap.
fn is_before(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) << STAMP_BITS).cast_signed() > 0
}

/// Returns the number that is counted after another one.
fn following(number: u32) -> u32 {
    let next = number.wrapping_add(1) & (u32::MAX >> STAMP_BITS);
    next + u32::from(next == 0)
}

/// One of the two sides of a box, or of the two places of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    First,
    Second,
}

impl Which {
    fn other(self) -> Which {
        match self {
            Which::First => Which::Second,
            Which::Second => Which::First,
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// The bit of an announced wait beside the number.
const RECEIVES: u32 = 1 << 31;

/// Whether a message asks for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// No answer is waited for.
    No,
    /// The sender waits for the answer.
    Answer,
}

/// A message of one's own that lies in the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    place: Which,
    stamp: u32,
}

impl Offered {
    /// Returns its number.
    pub fn number(self) -> u32 {
        self.stamp >> STAMP_BITS
    }
}

/// A message or notification of the other's that lies in the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    place: Which,
    stamp: u32,
}

impl Found {
    /// Returns its number.
    pub fn number(self) -> u32 {
        self.stamp >> STAMP_BITS
    }

    /// Whether its sender waits for an answer.
    pub fn asks(self) -> Asks {
        if self.stamp & REQUEST != 0 { Asks::Answer } else { Asks::No }
    }

    /// Whether it was put before the other one.
    pub fn is_before(self, other: Found) -> bool {
        is_before(self.number(), other.number())
    }
}

/// Something that was put into a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// A message.
    Message(Found),
    /// A notification.
    Note(Found),
}

/// Returns which of two places was filled first. Who finds only the second one filled looks at the first one again: both may have been filled since it was
/// looked at.
#[inline]
fn put_first(found: impl Fn(Which) -> Option<Found>) -> Option<Found> {
    match (found(Which::First), found(Which::Second)) {
        (first, Some(second)) => {
            first.or_else(|| found(Which::First)).filter(|first| first.is_before(second)).or(Some(second))
        }
        (first, None) => first,
    }
}

/// A message that, once it is there, is not taken back: the very next thing that the other one puts, so that one looks after the announcement of
/// who waits for it. What comes later may have seen too old an announcement.
#[derive(Clone, Copy)]
pub struct Promise<'a> {
    place: Which,
    lies: &'a Place,
    /// Where it would be if it were a notification.
    notes: &'a Notes,
    /// Its stamp, as far as it is known: these bits.
    awaited: u32,
    known: u32,
}

impl Promise<'_> {
    /// Returns the message if it is there. One that lies in the other place than expected is none: it is found by [`Link::first`].
    #[inline(always)]
    pub fn kept(&self) -> Option<Found> {
        let stamp = self.lies.stamp.load(Acquire);
        (stamp & self.known == self.awaited).then_some(Found { place: self.place, stamp })
    }

    /// Reads the message that was found, whose sender does not take it back. Who sent it is for the caller to say.
    #[inline(always)]
    pub fn read(&self, message: &mut Message) {
        self.lies.read(message);
    }

    /// Looks for the message, and for a notification in its place.
    #[inline(always)]
    pub fn look(&self) -> Option<Come> {
        let is_noted = || self.notes.0.iter().any(|note| note.number.load(Acquire) == self.awaited >> STAMP_BITS);
        self.kept().map(Come::Promised).or_else(|| is_noted().then_some(Come::Noted))
    }
}

/// What has come to one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Come {
    /// The message that was promised.
    Promised(Found),
    /// A notification.
    Noted,
}

/// One process's end of a box, and what it knows for certain.
pub struct Link<B> {
    shared: B,
    own: Which,
    /// The number counted last, and the last one that was put and not taken back.
    count: u32,
    put: u32,
    /// The place for its next message, and the one where the other's next message will lie if both have counted the same.
    place: Which,
    others_place: Which,
    notes: [u32; 2],
    /// What was put last before its last notification.
    before_note: u32,
    last_time_ns: u64,
    /// Stamps and numbers that it has taken from the other's places.
    taken: [u32; 2],
    notes_taken: [u32; 2],
    /// The last number that it has taken.
    seen: u32,
    /// The request that it has taken and not answered, or 0.
    unanswered: u32,
    /// What the other one had given up just before that was taken. It waits for nothing between two requests, so once it has given up another one it waits for no answer
    /// to this one.
    given_up_before: u32,
    /// Up to which number the other one has said that it had seen everything.
    other_seen: u32,
    /// It has given up a request; what comes may be the answer to that one.
    is_doubtful: bool,
    is_attached: bool,
}

impl<B: Deref<Target = Box>> Link<B> {
    /// Takes one's end of a box: the one of the lower slot or the other one. What a former program of this process has done goes on.
    pub fn new(shared: B, is_lower: bool) -> Link<B> {
        let own = if is_lower { Which::First } else { Which::Second };
        let (mine, other) = (&shared.sides[own.index()], &shared.sides[own.other().index()]);
        let all = |words: [&AtomicU32; 2]| words.map(|word| word.load(Acquire));
        let stamps = all([&mine.messages[0].stamp, &mine.messages[1].stamp]);
        let notes = all([&mine.notes()[0].number, &mine.notes()[1].number]);
        let taken = all([&mine.aside.taken[0], &mine.aside.taken[1]]);
        let notes_taken = all([&mine.aside.notes_taken[0], &mine.aside.notes_taken[1]]);
        let first_is_free = [0, other.aside.taken[0].load(Acquire)].contains(&stamps[0]);
        let last = |numbers: [u32; 4]| {
            numbers.into_iter().fold(0, |last, number| if last == 0 || is_before(last, number) { number } else { last })
        };
        let number = |stamp: u32| stamp >> STAMP_BITS;
        mine.aside.began.iter().for_each(|began| began.store(0, Relaxed));
        let count = last([number(stamps[0]), number(stamps[1]), notes[0], notes[1]]);
        let seen = last([number(taken[0]), number(taken[1]), notes_taken[0], notes_taken[1]]);
        mine.shown.attached.store(1, SeqCst);
        Link {
            own,
            count,
            put: count,
            place: if first_is_free { Which::First } else { Which::Second },
            others_place: Which::First,
            notes,
            before_note: 0,
            last_time_ns: 0,
            taken,
            notes_taken,
            seen,
            unanswered: 0,
            given_up_before: 0,
            other_seen: 0,
            is_doubtful: true,
            is_attached: false,
            shared,
        }
    }

    fn mine(&self) -> &Side {
        &self.shared.sides[self.own.index()]
    }

    fn other(&self) -> &Side {
        &self.shared.sides[self.own.other().index()]
    }

    #[inline]
    fn next_number(&mut self) -> u32 {
        self.count = following(self.count);
        self.count
    }

    /// Whether the other one has mapped the box.
    #[inline]
    pub fn is_attached(&mut self) -> bool {
        self.is_attached |= self.other().shown.attached.load(SeqCst) != 0;
        self.is_attached
    }

    /// Puts a message into the box. Whatever the other one has announced before is seen by who looks now.
    #[inline]
    pub fn offer(&mut self, message: &Message, asks: Asks) -> Offered {
        let number = self.next_number();
        let answers = if self.unanswered != 0 { ANSWER } else { 0 };
        let stamp = number << STAMP_BITS | answers | if asks == Asks::Answer { REQUEST } else { 0 };
        let place = &self.mine().messages[self.place.index()];
        place.kind.store(message.kind.cast_unsigned(), Relaxed);
        for (word, value) in place.words.iter().zip(message.words) {
            word.store(value, Relaxed);
        }
        store_and_fence(&place.stamp, stamp);
        Offered { place: self.place, stamp }
    }

    /// Whether the other one waits for this message, and so will take it: it has announced that, or awaits this answer.
    #[inline]
    pub fn is_awaited(&self, offered: Offered) -> bool {
        let shown = &self.other().shown;
        let awaits_answer = || {
            let given_up = shown.given_up.load(SeqCst);
            given_up == self.given_up_before && given_up != self.unanswered
        };
        offered.stamp & ANSWER != 0 && awaits_answer() || self.waits()
    }

    /// Says when the call began whose message waits, and 0 when it waits no more.
    pub fn set_began(&self, offered: Offered, began_ns: u64) {
        self.mine().aside.began[offered.place.index()].store(began_ns, Relaxed);
    }

    /// Whether an offered message was taken.
    pub fn is_taken(&self, offered: Offered) -> bool {
        self.other().aside.taken[offered.place.index()].load(SeqCst) == offered.stamp
    }

    /// Notes that a message was taken, or is certain to be.
    #[inline]
    pub fn settle(&mut self, offered: Offered) {
        self.place = offered.place.other();
        self.put = offered.number();
        if offered.stamp & ANSWER != 0 {
            self.unanswered = 0;
        }
    }

    /// Takes an offered message back. Returns whether it was not taken, and will not be: one that is awaited stays, since who awaits it does not look whether
    /// it is still there.
    pub fn withdraw(&mut self, offered: Offered) -> bool {
        if self.is_awaited(offered) {
            self.settle(offered);
            return false;
        }
        let stamp = &self.mine().messages[offered.place.index()].stamp;
        store_and_fence(stamp, offered.stamp | LEAVING);
        let is_taken = self.is_taken(offered);
        let decision = if is_taken { offered.stamp } else { 0 };
        let decided = stamp.compare_exchange(offered.stamp | LEAVING, decision, AcqRel, Acquire).is_ok();
        let stays = is_taken && decided;
        if stays {
            self.settle(offered);
        }
        !stays
    }

    /// Whether the other one has taken a request of this number and not answered it: what a desk says of it is true.
    pub fn owes_answer(&self, request: u32) -> bool {
        self.unanswered != 0 && self.unanswered == request
    }

    /// Whether the other one has sent a request that is not answered.
    pub fn has_request(&self) -> bool {
        self.unanswered != 0
    }

    /// Announces that a message or notification from the other one is waited for. Nothing of it lay there before.
    #[inline]
    pub fn announce(&self) {
        store_and_fence(&self.mine().shown.wait, RECEIVES | self.seen);
    }

    /// Announces that nothing is waited for. What lies there now may have been promised to be taken.
    pub fn retract(&self) {
        store_and_fence(&self.mine().shown.wait, 0);
    }

    /// Announces that the answer to a request is not waited for, or that one's desk says so from now on. An answer that lies there now may
    /// have been promised to be taken.
    pub fn retract_request(&self, request: Offered) {
        store_and_fence(&self.mine().shown.given_up, request.number());
    }

    /// Gives up a request, so that an answer to it that comes late is not taken for that to the next one.
    pub fn give_up(&mut self) {
        self.is_doubtful = true;
    }

    /// Returns the message that was offered first.
    #[inline]
    pub fn first(&self) -> Option<Found> {
        put_first(|place| self.found(place))
    }

    #[inline]
    fn found(&self, place: Which) -> Option<Found> {
        let stamp = self.other().messages[place.index()].stamp.load(Acquire);
        (stamp >> STAMP_BITS != 0 && stamp & LEAVING == 0 && stamp != self.taken[place.index()])
            .then_some(Found { place, stamp })
    }

    /// Returns the answer to a request.
    #[inline]
    pub fn answer(&self, request: Offered) -> Option<Found> {
        let found = self.first().filter(|found| found.stamp & ANSWER != 0)?;
        (!self.is_doubtful || self.is_taken(request)).then_some(found)
    }

    /// Returns the first notification.
    #[inline]
    pub fn first_note(&self) -> Option<Found> {
        put_first(|place| {
            let number = self.other().notes()[place.index()].number.load(Acquire);
            let is_new = number != 0 && number != self.notes_taken[place.index()];
            is_new.then_some(Found { place, stamp: number << STAMP_BITS })
        })
    }

    /// Returns what was put first, be it a message or a notification.
    #[inline]
    pub fn first_put(&self) -> Option<Put> {
        match (self.first_note(), self.first()) {
            (Some(note), None) => Some(Put::Note(note)),
            (note, Some(found)) => match note.or_else(|| self.note_before(found)) {
                Some(note) if note.is_before(found) => Some(Put::Note(note)),
                _ => Some(Put::Message(found)),
            },
            (None, None) => None,
        }
    }

    /// Returns the notification that was put before a message, also one that was not there before the message was found.
    #[inline]
    pub fn note_before(&self, found: Found) -> Option<Found> {
        self.first_note().filter(|note| note.is_before(found))
    }

    /// Returns when the call began whose message this is; the last moment there is: just now.
    pub fn began(&self, found: Found) -> u64 {
        match self.other().aside.began[found.place.index()].load(Relaxed) {
            0 => u64::MAX,
            began => began,
        }
    }

    /// Takes a message; who sent it is for the caller to say. Returns whether it is taken: it may have been taken back meanwhile.
    pub fn take(&mut self, found: Found, message: &mut Message) -> bool {
        let place = &self.other().messages[found.place.index()];
        let kind = place.kind.load(Relaxed).cast_signed();
        let words = std::array::from_fn(|at| place.words[at].load(Relaxed));
        let given_up = self.given_up(found);
        store_and_fence(&self.mine().aside.taken[found.place.index()], found.stamp);
        let mut looks = 0;
        loop {
            match place.stamp.load(Acquire) {
                stamp if stamp == found.stamp => break,
                leaving if leaving != found.stamp | LEAVING => return false,
                leaving if looks > LEAVING_LOOKS => {
                    if place.stamp.compare_exchange(leaving, 0, AcqRel, Acquire).is_ok() {
                        return false;
                    }
                }
                _ => pause(),
            }
            looks += 1;
        }
        *message = Message { source: message.source, kind, words };
        self.has_taken(found, given_up);
        self.saw(found.number());
        true
    }

    /// Takes a message that its sender does not take back, because it has seen that this one waits. Who sent it is for the caller to say.
    pub fn take_promised(&mut self, found: Found, message: &mut Message) {
        self.other().messages[found.place.index()].read(message);
        self.took_promised(found);
    }

    /// Notes that a promised message was taken, which was read.
    #[inline(always)]
    pub fn took_promised(&mut self, found: Found) {
        // Its value is all that matters. Who fills the place again knows by more than this that its words were read: by the announcement of a later wait, or
        // by a later message of this process.
        let given_up = self.given_up(found);
        self.mine().aside.taken[found.place.index()].store(found.stamp, Release);
        self.has_taken(found, given_up);
        // It is the next one after all that was seen.
        self.seen = found.number();
    }

    /// What the other one has given up. Of one that does not ask nobody wants to know, and it may be writing that line.
    #[inline(always)]
    fn given_up(&self, found: Found) -> u32 {
        if found.stamp & REQUEST != 0 { self.other().shown.given_up.load(Acquire) } else { 0 }
    }

    #[inline]
    fn has_taken(&mut self, found: Found, given_up: u32) {
        self.given_up_before = given_up;
        self.taken[found.place.index()] = found.stamp;
        self.others_place = found.place.other();
        self.unanswered = if found.stamp & REQUEST != 0 { found.number() } else { 0 };
    }

    /// Returns what is promised to one that has announced that it waits, and has found nothing since.
    #[inline(always)]
    pub fn promise(&self) -> Promise<'_> {
        self.next_of_other(0, !(REQUEST | ANSWER))
    }

    /// Whether what comes may be the answer to a request that was given up.
    #[inline(always)]
    pub fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Returns what is promised to one that has sent a request, and never said that it does not look for the answer here, if nothing is doubtful.
    #[inline(always)]
    pub fn promised_answer(&self) -> Promise<'_> {
        self.next_of_other(ANSWER, !REQUEST)
    }

    #[inline(always)]
    fn next_of_other(&self, kind: u32, known: u32) -> Promise<'_> {
        let (place, other) = (self.others_place, self.other());
        let (lies, notes) = (&other.messages[place.index()], &other.notes);
        Promise { place, lies, notes, awaited: following(self.seen) << STAMP_BITS | kind, known }
    }

    /// Takes the answer to one's request. `is_awaited`: it was never said that it is not. Returns whether it is taken.
    pub fn take_answer(&mut self, request: Offered, found: Found, is_awaited: bool, message: &mut Message) -> bool {
        // The request was taken. It may have been an answer, and this one may ask: what is owed is from now on that.
        self.settle(request);
        if is_awaited && !self.is_doubtful {
            self.take_promised(found, message);
        } else if !self.take(found, message) {
            return false;
        }
        self.is_doubtful = false;
        true
    }

    fn saw(&mut self, number: u32) {
        if self.seen == 0 || is_before(self.seen, number) {
            self.seen = number;
        }
    }

    /// Whether the other one waits for the next thing that is put, whatever it is.
    #[inline]
    pub fn waits(&self) -> bool {
        self.other().shown.wait.load(SeqCst) == RECEIVES | self.put
    }

    /// Puts a notification into the box; `false`: one lies there already. Its time is this one, or a later one so that times ascend.
    /// `is_claimed`: the one before ends the other's wait.
    pub fn note(&mut self, time_ns: u64, value: u64, is_claimed: bool) -> bool {
        self.last_time_ns = time_ns.max(self.last_time_ns + 1);
        let mut place =
            usize::from(self.notes[0] != 0 && (self.notes[1] == 0 || is_before(self.notes[1], self.notes[0])));
        if self.other_seen != self.put && !self.waits() {
            let lies = [0, 1].map(|place| self.lies(place));
            // One that ends the other's wait is not pending any more.
            let pending = lies.into_iter().filter(|lies| *lies).count();
            if pending > usize::from(is_claimed || self.ends_wait(1 - place)) || lies == [true, true] {
                return false;
            }
            place = usize::from(lies[0]);
        }
        let seen = if self.first_note().is_none() { self.seen } else { 0 };
        let number = self.next_number();
        let note = &self.mine().notes()[place];
        note.seen.store(seen, Relaxed);
        note.value.store(value, Relaxed);
        note.time_ns.store(self.last_time_ns, Relaxed);
        store_and_fence(&note.number, number);
        self.notes[place] = number;
        self.before_note = std::mem::replace(&mut self.put, number);
        true
    }

    fn lies(&self, place: usize) -> bool {
        self.notes[place] != 0 && self.other().aside.notes_taken[place].load(SeqCst) != self.notes[place]
    }

    /// Whether the other one's wait began before the notification in this place, and so ends with it.
    fn ends_wait(&self, place: usize) -> bool {
        self.notes[place] == self.put && self.other().shown.wait.load(SeqCst) == RECEIVES | self.before_note
    }

    /// Takes a notification: its value and time.
    pub fn take_note(&mut self, found: Found) -> (u64, u64) {
        let note = &self.other().notes()[found.place.index()];
        let (value, time_ns, seen) = (note.value.load(Relaxed), note.time_ns.load(Relaxed), note.seen.load(Relaxed));
        self.mine().aside.notes_taken[found.place.index()].store(found.number(), Release);
        self.other_seen = seen;
        self.notes_taken[found.place.index()] = found.number();
        self.saw(found.number());
        (value, time_ns)
    }
}

impl Place {
    #[inline(always)]
    fn read(&self, message: &mut Message) {
        message.kind = self.kind.load(Relaxed).cast_signed();
        for (word, own) in message.words.iter_mut().zip(&self.words) {
            *word = own.load(Relaxed);
        }
    }
}

impl Side {
    fn notes(&self) -> &[Note; 2] {
        &self.notes.0
    }
}

#[cfg(test)]
impl<B: Deref<Target = Box>> Link<B> {
    /// Counts on from another number.
    pub fn set_count(&mut self, count: u32) {
        (self.count, self.put) = (count, count);
    }

    /// Has seen everything up to a number.
    pub fn set_seen(&mut self, seen: u32) {
        self.seen = seen;
    }

    /// Has the other one write something somewhere.
    pub fn scribble(&self, at: usize, value: u32) {
        let other = self.other();
        let words = [
            &other.messages[0].stamp,
            &other.messages[1].stamp,
            &other.notes()[0].number,
            &other.notes()[1].number,
            &other.shown.wait,
            &other.shown.given_up,
            &other.aside.taken[0],
            &other.aside.taken[1],
            &self.mine().messages[0].stamp,
        ];
        words[at % words.len()].store(value, Relaxed);
    }
}
