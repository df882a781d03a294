//! What a receiver finds in its boxes and on the board, and which of it comes first.

use crate::desk::{Doing, From, Takes};
use crate::member::{Ends, Member, Peers};
use crate::pair::{Asks, Found};
use crate::wait::{now_ns, ring};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::message::Message;
use m3ipc::rights::SlotSet;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What a receiver takes next.
pub(crate) enum Next {
    /// A notification that lies in a box.
    Note(Number),
    /// A notification that the broker has posted in the name of this process.
    Posted(Number),
    /// A message.
    Message(Number, Found),
}

/// Returns a message, or the notification that its sender has put before it since notifications were looked for.
fn first_of(takes: Takes, sender: Number, link: &Ends, found: Found) -> Next {
    match takes {
        Takes::All if link.note_before(found).is_some() => Next::Note(sender),
        _ => Next::Message(sender, found),
    }
}

impl Member {
    /// Takes what comes first, if something is there. Returns whether it has.
    pub(crate) fn take_next(&self, peers: &mut Peers, from: From, takes: Takes, message: &mut Message) -> bool {
        while let Some(next) = self.next(peers, from, takes) {
            let is_taken = match next {
                Next::Note(source) => self.take_note(peers, source, message),
                Next::Posted(source) => self.take_posted(source, message),
                Next::Message(sender, found) => self.take_message(peers, sender, found, message),
            };
            if is_taken {
                return true;
            }
        }
        false
    }

    pub(crate) fn next(&self, peers: &Peers, from: From, takes: Takes) -> Option<Next> {
        let is_wanted = |number: Number| from == From::Any || from == From::One(number);
        let one = match from {
            From::Any => None,
            From::One(one) => Some(one),
        };
        let numbers = one.as_ref().map_or(peers.known(), std::slice::from_ref);
        let links = || numbers.iter().filter_map(|number| Some((*number, peers.live(self, *number)?)));
        if takes == Takes::All {
            let noted = links().find(|(_, link)| link.first_note().is_some()).map(|(number, _)| number);
            let posted = self.first_posted(is_wanted);
            match (noted, posted) {
                (Some(noted), Some(posted)) if posted < noted => return Some(Next::Posted(posted)),
                (Some(noted), _) => return Some(Next::Note(noted)),
                (None, Some(posted)) => return Some(Next::Posted(posted)),
                (None, None) => {}
            }
        }
        let mut offers = links().filter_map(|(number, link)| Some((number, link, link.first()?)));
        let (sender, link, found) = offers.next()?;
        let Some(second) = offers.next() else {
            // When its call began is not asked: its sender may be writing that just now.
            return Some(first_of(takes, sender, link, found));
        };
        let all = [(sender, link, found), second].into_iter().chain(offers);
        let (sender, link, found) = all.min_by_key(|(number, link, found)| (link.began(*found), *number))?;
        Some(first_of(takes, sender, link, found))
    }

    /// Whether the broker has posted a notification in the name of this process.
    #[inline(always)]
    pub(crate) fn is_posted(&self, source: Number) -> bool {
        let seen = self.desk().seen[source.index() / 64].load(Relaxed) & 1 << (source.index() % 64) != 0;
        self.board.posted_bit(self.number, source) != seen
    }

    fn first_posted(&self, is_wanted: impl Fn(Number) -> bool) -> Option<Number> {
        let (posted, seen) = (self.board.posted(self.number).bits(), &self.desk().seen);
        let mut new = SlotSet::from_bits(std::array::from_fn(|at| posted[at] ^ seen[at].load(Relaxed)));
        while let Some(source) = new.first() {
            if is_wanted(source) {
                return Some(source);
            }
            new.remove(source);
        }
        None
    }

    pub(crate) fn take_posted(&self, source: Number, message: &mut Message) -> bool {
        let (posted, seen) = (self.board.posted(self.number), &self.desk().seen[source.index() / 64]);
        let bit = 1 << (source.index() % 64);
        let is_seen = seen.load(Relaxed) & bit != 0;
        if posted.contains(source) == is_seen {
            return false;
        }
        seen.fetch_xor(bit, SeqCst);
        let name = self.board.occupant(source).map_or(Endpoint::new(source, 0), |occupant| occupant.endpoint);
        *message = Message::notification(name, source.index(), 0, now_ns());
        true
    }

    pub(crate) fn take_note(&self, peers: &mut Peers, source: Number, message: &mut Message) -> bool {
        let Some(link) = peers.last_link_mut(source) else { return false };
        let Some(found) = link.first_note() else { return false };
        let (value, time_ns) = link.take_note(found);
        peers.last = source;
        *message = Message::notification(self.board.last_endpoint(source), source.index(), value, time_ns);
        true
    }

    pub(crate) fn take_claimed(&self, peers: &mut Peers, sender: Number, message: &mut Message) -> bool {
        let found = peers.last_link(sender).and_then(Ends::first);
        found.is_some_and(|found| self.take_message(peers, sender, found, message))
    }

    /// Takes a message, and wakes its sender if that one waits. Returns whether it is taken.
    pub(crate) fn take_message(&self, peers: &mut Peers, sender: Number, found: Found, message: &mut Message) -> bool {
        let is_taken = peers.last_link_mut(sender).is_some_and(|link| link.take(found, message));
        if is_taken {
            self.is_from(peers, sender, message);
            self.tell_sender(sender, found.number());
        }
        is_taken
    }

    /// Names the sender of a message that was taken.
    #[inline]
    pub(crate) fn is_from(&self, peers: &mut Peers, sender: Number, message: &mut Message) {
        // Who sent it is known by the box it was in.
        message.source = self.board.last_endpoint(sender).raw();
        peers.last = sender;
    }

    /// As [`Member::tell_sender`], of a message that was promised: its sender waits for an answer or not at all.
    #[inline(always)]
    pub(crate) fn tell_sender_of_promised(&self, sender: Number, found: Found) {
        let desk = self.desks.desk(sender);
        if found.asks() == Asks::Answer && (desk.word().call() == found.number() || desk.bell.load(SeqCst) != 0) {
            self.tell_sender(sender, found.number());
        }
    }

    /// Says on the desk of a sender that waits that its message was taken: nobody must find it still sending.
    #[inline(never)]
    pub(crate) fn tell_sender(&self, sender: Number, number: u32) {
        let desk = self.desks.desk(sender);
        let mut word = desk.word();
        // By now the sender may wait in its next call, whose message lies in the other place.
        while word.call() == number {
            let next = match word.doing() {
                Doing::Looking => Doing::LookingAgain,
                Doing::Sending(to) if to == self.number => Doing::Running,
                Doing::SendingForAnswer(to) if to == self.number => Doing::AwaitingAnswer(to),
                _ => break,
            };
            if desk.replace(word, word.with(next)) {
                break;
            }
            word = desk.word();
        }
        ring(desk);
    }
}
