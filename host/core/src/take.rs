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
        let channels = || {
            let wanted = peers.known().iter().copied().filter(|number| is_wanted(*number));
            wanted.filter_map(|number| Some((number, peers.live(self, number)?.channel(number, self.number))))
        };
        if takes == Takes::All {
            let noted = channels().find(|(_, channel)| channel.notes() > 0).map(|(number, _)| number);
            let posted = self.first_posted(is_wanted);
            match (noted, posted) {
                (Some(noted), Some(posted)) if posted < noted => return Some(Next::Posted(posted)),
                (Some(noted), _) => return Some(Next::Note(noted)),
                (None, Some(posted)) => return Some(Next::Posted(posted)),
                (None, None) => {}
            }
        }
        let offers = channels().filter_map(|(number, channel)| {
            let found = channel.first()?;
            Some((channel.began(found), number, found))
        });
        let (_, sender, found) = offers.min_by_key(|(began, number, _)| (*began, *number))?;
        Some(Next::Message(sender, found))
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
        let (value, time_ns) = peers.last_mapped(source)?.channel(source, self.number).take_note()?;
        peers.last = Some(source);
        Some(Message::notification(self.name_of(source), source.index(), value, time_ns))
    }

    pub(crate) fn take_claimed(&self, peers: &mut Peers, sender: Number) -> Option<Message> {
        let found = peers.last_mapped(sender)?.channel(sender, self.number).first_to_take()?;
        self.take(peers, sender, found)
    }

    /// Takes a message, and says on its sender's desk that it was taken.
    fn take(&self, peers: &mut Peers, sender: Number, found: Found) -> Option<Message> {
        let mut message = peers.last_mapped(sender)?.channel(sender, self.number).take(found)?;
        // Who sent it is known by the box it was in.
        message.source = self.name_of(sender).raw();
        peers.last = Some(sender);
        let desk = self.desks.desk(sender);
        let word = desk.word_to_replace();
        // By now the sender may wait in its next call, whose message lies in the other place.
        let next = match word.doing() {
            _ if word.call() != found.number() => None,
            Doing::Sending(to) if to == self.number => Some(Doing::Running),
            Doing::SendingForAnswer(to) if to == self.number => Some(Doing::AwaitingAnswer(to)),
            _ => None,
        };
        if let Some(next) = next {
            desk.replace(word, word.with(next));
        }
        Some(message)
    }

    /// Takes a message that this process was not claimed for, and wakes its sender, who waits.
    fn take_message(&self, peers: &mut Peers, sender: Number, found: Found) -> Option<Message> {
        let message = self.take(peers, sender, found)?;
        ring(self.desks.desk(sender));
        Some(message)
    }

    /// The name of whoever is bound in a slot, or was last.
    fn name_of(&self, number: Number) -> Endpoint {
        self.board.occupant(number).map_or_else(|| self.board.last_endpoint(number), |occupant| occupant.endpoint)
    }
}
