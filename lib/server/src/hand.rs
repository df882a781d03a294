//! What a server has in hand, for the life after its death (`sys::retained`).
//!
//! A server that is started again in its own memory finds here the message it died over. Whoever sent that asks again, word for
//! word. If the answer was ready it is given; else the message is handled once more, after the server has put its tables in order; and if it
//! dies of the same message `MOST_DEATHS` times, the message is refused. So no message kills a server for ever.

use abi::message::{LINUX_LABELS, REPEATED};
use abi::{Endpoint, Message};

/// So many deaths over one message are its fault.
const MOST_DEATHS: u32 = 2;

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It is to be handled.
    New,
    /// It was handled by the predecessor, with this answer.
    Answered(Message),
    /// Two predecessors have died over it: its sender gets an error.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    message: Message,
    answer: Option<Message>,
    deaths: u32,
}

/// The message in hand.
#[derive(Debug, Default)]
pub struct Hand {
    now: Option<Message>,
    answer: Option<Message>,
    suspect: Option<Suspect>,
}

impl Hand {
    /// A message has come.
    #[inline]
    pub fn recall(&mut self, message: &Message) -> Recall {
        if self.suspect.is_none() { Recall::New } else { self.recall_suspect(message) }
    }

    #[cold]
    fn recall_suspect(&mut self, message: &Message) -> Recall {
        let Some(suspect) = self.suspect.filter(|suspect| suspect.message.source == message.source) else {
            return Recall::New;
        };
        if !is_same(&suspect.message, message) {
            self.suspect = None;
            return Recall::New;
        }
        match suspect.answer {
            Some(answer) => {
                self.suspect = None;
                Recall::Answered(answer)
            }
            None if suspect.deaths >= MOST_DEATHS => {
                self.suspect = None;
                Recall::Refused
            }
            None => Recall::New,
        }
    }

    /// A message is handled from now on.
    #[inline]
    pub fn begin(&mut self, message: &Message) {
        self.answer = None;
        self.now = Some(*message);
    }

    /// It has been handled, with this answer, which will be sent at once.
    #[inline]
    pub fn end(&mut self, answer: Option<&Message>) {
        match answer {
            Some(answer) => self.answer = Some(*answer),
            None => self.now = None,
        }
    }

    /// The predecessor has died. `asks`: does this process wait for an answer? → the message that it had begun and not finished.
    pub fn died(&mut self, asks: impl FnOnce(Endpoint) -> bool) -> Option<Message> {
        let answer = self.answer.take();
        let message = self.now.take()?;
        let before =
            self.suspect.filter(|suspect| is_same(&suspect.message, &message)).map_or(0, |suspect| suspect.deaths);
        self.suspect = asks(message.source).then_some(Suspect { message, answer, deaths: before + 1 });
        answer.is_none().then_some(message)
    }
}

/// The same message once more. A Linux call carries the mark of a repetition.
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

    fn dead_over(message: &Message) -> Hand {
        let mut hand = Hand::default();
        assert_eq!(hand.recall(message), Recall::New);
        hand.begin(message);
        assert_eq!(hand.died(|_| true), Some(*message));
        hand
    }

    #[test]
    fn an_unfinished_message_is_handled_once_more_and_then_refused() {
        let fatal = message(9, 1);
        let again = Message { words: [1, 0, 0, 0, 0, 0, 7 | REPEATED], ..fatal };
        let mut hand = dead_over(&fatal);
        assert_eq!(hand.recall(&again), Recall::New);
        hand.begin(&again);
        assert_eq!(hand.died(|_| true), Some(again));
        assert_eq!(hand.recall(&again), Recall::Refused);
        assert_eq!(hand.recall(&again), Recall::New, "refused once");
    }

    #[test]
    fn an_answer_that_was_ready_is_given_without_handling() {
        let request = message(0x1_0002, 1);
        let mut hand = Hand::default();
        hand.begin(&request);
        hand.end(Some(&request.reply(Ok(5))));
        assert_eq!(hand.died(|_| true), None);
        assert_eq!(hand.recall(&request), Recall::Answered(request.reply(Ok(5))));
        assert_eq!(hand.recall(&request), Recall::New);
    }

    #[test]
    fn an_answer_that_has_arrived_is_not_kept_for_an_equal_request() {
        let request = message(0x1_0002, 1);
        let mut hand = Hand::default();
        hand.begin(&request);
        hand.end(Some(&request.reply(Ok(5))));
        hand.died(|_| false);
        assert_eq!(hand.recall(&request), Recall::New);
    }

    #[test]
    fn who_asks_something_else_does_not_wait_any_more() {
        let mut hand = dead_over(&message(9, 1));
        assert_eq!(hand.recall(&message(9, 2)), Recall::New);
        hand.begin(&message(9, 1));
        hand.died(|_| true);
        assert_eq!(hand.recall(&message(9, 1)), Recall::New, "its deaths are counted anew");
    }

    #[test]
    fn a_death_with_nothing_in_hand_suspects_nobody() {
        let mut hand = Hand::default();
        hand.begin(&message(9, 1));
        hand.end(None);
        assert_eq!(hand.died(|_| true), None);
        assert_eq!(hand.recall(&message(9, 1)), Recall::New);
    }
}
