//! The request in progress, by which a successor knows what its predecessor died over.
//!
//! The sender repeats the request word for word. If the answer was ready, it is given; else the request is handled once more, and
//! if the service dies of it [`MAX_DEATHS`] times, it is refused. So no request kills a service for ever.
//!
//! [`InProgress`] is for state in retained memory, [`Tries`] for state in preserved memory.

mod preserved;

pub use preserved::Tries;

use abi::message::{LINUX_LABELS, REPEATED};
use abi::{Endpoint, Message};

/// After this many deaths over one request, the request is to blame.
pub const MAX_DEATHS: u32 = 2;

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// Handle it.
    New,
    /// The predecessor has handled it, with this answer.
    Answered(Message),
    /// Two predecessors have died over it: answer with an error.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    message: Message,
    answer: Option<Message>,
    deaths: u32,
}

/// The request in progress and its answer, in retained memory.
#[derive(Debug, Default)]
pub struct InProgress {
    now: Option<Message>,
    answer: Option<Message>,
    suspect: Option<Suspect>,
}

impl InProgress {
    /// Tells what to do with a message that has arrived.
    #[inline]
    pub fn recall(&mut self, message: &Message) -> Recall {
        if self.suspect.is_none() { Recall::New } else { self.recall_suspect(message) }
    }

    #[cold]
    fn recall_suspect(&mut self, message: &Message) -> Recall {
        let Some(suspect) = self.suspect.filter(|suspect| suspect.message.source == message.source) else {
            return Recall::New;
        };
        let (recall, is_settled) = match suspect.answer {
            _ if !is_same(&suspect.message, message) => (Recall::New, true),
            Some(answer) => (Recall::Answered(answer), true),
            None if suspect.deaths >= MAX_DEATHS => (Recall::Refused, true),
            None => (Recall::New, false),
        };
        if is_settled {
            self.suspect = None;
        }
        recall
    }

    /// A message is handled from now on.
    #[inline]
    pub fn begin(&mut self, message: &Message) {
        self.answer = None;
        self.now = Some(*message);
    }

    /// The message has been handled, with this answer, which is sent next.
    #[inline]
    pub fn end(&mut self, answer: Option<&Message>) {
        if self.suspect.is_some() {
            self.acquit();
        }
        match answer {
            Some(answer) => self.answer = Some(*answer),
            None => self.now = None,
        }
    }

    /// The service has survived the message: earlier deaths over it do not count any more.
    #[cold]
    fn acquit(&mut self) {
        let survived = self.now;
        self.suspect = self.suspect.filter(|suspect| !survived.is_some_and(|now| is_same(&suspect.message, &now)));
    }

    /// The predecessor has died. Returns the message that it had begun and not finished. `waits` tells whether a process waits for
    /// an answer of this service.
    pub fn died(&mut self, waits: impl FnOnce(Endpoint) -> bool) -> Option<Message> {
        let answer = self.answer.take();
        let message = self.now.take()?;
        let before =
            self.suspect.filter(|suspect| is_same(&suspect.message, &message)).map_or(0, |suspect| suspect.deaths);
        self.suspect = waits(message.source).then_some(Suspect { message, answer, deaths: before + 1 });
        answer.is_none().then_some(message)
    }
}

/// Whether it is the same message once more; a repeated Linux call carries a mark.
fn is_same(one: &Message, other: &Message) -> bool {
    let mark = if one.label < LINUX_LABELS { REPEATED } else { 0 };
    let (mut a, mut b) = (*one, *other);
    a.words[6] &= !mark;
    b.words[6] &= !mark;
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(label: u32, word: u64) -> Message {
        Message { source: Endpoint::new(200, 3), words: [word, 0, 0, 0, 0, 0, 7], ..Message::new(label) }
    }

    fn dead_over(message: &Message) -> InProgress {
        let mut in_progress = InProgress::default();
        assert_eq!(in_progress.recall(message), Recall::New);
        in_progress.begin(message);
        assert_eq!(in_progress.died(|_| true), Some(*message));
        in_progress
    }

    #[test]
    fn an_unfinished_message_is_handled_once_more_and_then_refused() {
        let fatal = message(9, 1);
        let again = Message { words: [1, 0, 0, 0, 0, 0, 7 | REPEATED], ..fatal };
        let mut in_progress = dead_over(&fatal);
        assert_eq!(in_progress.recall(&again), Recall::New);
        in_progress.begin(&again);
        assert_eq!(in_progress.died(|_| true), Some(again));
        assert_eq!(in_progress.recall(&again), Recall::Refused);
        assert_eq!(in_progress.recall(&again), Recall::New, "refused once");
    }

    #[test]
    fn a_message_that_was_survived_is_not_suspect_when_an_equal_one_comes() {
        let request = message(0x1_0002, 1);
        let mut in_progress = dead_over(&request);
        in_progress.begin(&request);
        in_progress.end(None);
        in_progress.begin(&request);
        in_progress.died(|_| true);
        assert_eq!(in_progress.recall(&request), Recall::New);
    }

    #[test]
    fn an_answer_that_was_ready_is_given_without_handling() {
        let request = message(0x1_0002, 1);
        let mut in_progress = InProgress::default();
        in_progress.begin(&request);
        in_progress.end(Some(&request.reply(Ok(5))));
        assert_eq!(in_progress.died(|_| true), None);
        assert_eq!(in_progress.recall(&request), Recall::Answered(request.reply(Ok(5))));
        assert_eq!(in_progress.recall(&request), Recall::New);
    }

    #[test]
    fn an_answer_that_has_arrived_is_not_kept_for_an_equal_request() {
        let request = message(0x1_0002, 1);
        let mut in_progress = InProgress::default();
        in_progress.begin(&request);
        in_progress.end(Some(&request.reply(Ok(5))));
        in_progress.died(|_| false);
        assert_eq!(in_progress.recall(&request), Recall::New);
    }

    #[test]
    fn a_sender_of_something_else_has_given_up_its_request() {
        let mut in_progress = dead_over(&message(9, 1));
        assert_eq!(in_progress.recall(&message(9, 2)), Recall::New);
        in_progress.begin(&message(9, 1));
        in_progress.died(|_| true);
        assert_eq!(in_progress.recall(&message(9, 1)), Recall::New, "deaths are counted anew");
    }

    #[test]
    fn a_death_between_two_messages_suspects_nobody() {
        let mut in_progress = InProgress::default();
        in_progress.begin(&message(9, 1));
        in_progress.end(None);
        assert_eq!(in_progress.died(|_| true), None);
        assert_eq!(in_progress.recall(&message(9, 1)), Recall::New);
    }
}
