//! What a receiver finds in its boxes and on the board, and which of it comes first.

use crate::desk::{Doing, From, Takes};
use crate::member::{Member, Peers};
use crate::pair::Found;
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

impl Member {
    /// Takes what comes first, if something is there.
    pub(crate) fn take_next(&self, peers: &mut Peers, from: From, takes: Takes) -> Option<Message> {
        loop {
            let taken = match self.next(peers, from, takes)? {
                Next::Note(source) => self.take_note(peers, source),
                Next::Posted(source) => self.take_posted(source),
                Next::Message(sender, found) => self.take_message(peers, sender, found),
            };
            if taken.is_some() {
                return taken;
            }
        }
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
        let offers = links().filter_map(|(number, link)| {
            let found = link.first()?;
            Some((link.began(found), number, found))
        });
        let (_, sender, found) = offers.min_by_key(|(began, number, _)| (*began, *number))?;
        Some(Next::Message(sender, found))
    }

    /// Whether the broker has posted a notification in the name of this process.
    pub(crate) fn is_posted(&self, source: Number) -> bool {
        let seen = self.desk().seen[source.index() / 64].load(Relaxed) & 1 << (source.index() % 64) != 0;
        self.board.posted(self.number).contains(source) != seen
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

    pub(crate) fn take_posted(&self, source: Number) -> Option<Message> {
        let (posted, seen) = (self.board.posted(self.number), &self.desk().seen[source.index() / 64]);
        let bit = 1 << (source.index() % 64);
        let is_seen = seen.load(Relaxed) & bit != 0;
        if posted.contains(source) == is_seen {
            return None;
        }
        seen.fetch_xor(bit, SeqCst);
        let name = self.board.occupant(source).map_or(Endpoint::new(source, 0), |occupant| occupant.endpoint);
        Some(Message::notification(name, source.index(), 0, now_ns()))
    }

    pub(crate) fn take_note(&self, peers: &mut Peers, source: Number) -> Option<Message> {
        let link = peers.last_link_mut(source)?;
        let (value, time_ns) = link.first_note().map(|found| link.take_note(found))?;
        peers.last = Some(source);
        Some(Message::notification(self.board.last_endpoint(source), source.index(), value, time_ns))
    }

    pub(crate) fn take_claimed(&self, peers: &mut Peers, sender: Number) -> Option<Message> {
        let found = peers.last_link(sender)?.first()?;
        self.take_message(peers, sender, found)
    }

    /// Takes a message, and wakes its sender if that one waits.
    pub(crate) fn take_message(&self, peers: &mut Peers, sender: Number, found: Found) -> Option<Message> {
        let mut message = peers.last_link_mut(sender)?.take(found)?;
        // Who sent it is known by the box it was in.
        message.source = self.board.last_endpoint(sender).raw();
        peers.last = Some(sender);
        self.tell_sender(sender, found.number());
        Some(message)
    }

    /// Says on the desk of a sender that waits that its message was taken: nobody must find it still sending.
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
