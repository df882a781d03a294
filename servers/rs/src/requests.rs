//! What rs asks of services that it may have to restart: asynchronous requests, one in flight to each service, never waited for.
//!
//! A request goes out by `SENDNB`. When the service is busy the kernel notifies rs as soon as it waits again; when it dies with the request
//! in hand its successor is asked again, so every request here may be repeated. Invariant: only the first request of a queue is in flight.

use abi::{Endpoint, Errno, Message};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use sys::Result;
use sys::fallible::TryQueue;

/// All requests; `T` is what to do with an answer.
#[derive(Debug)]
pub struct Requests<T> {
    lines: Vec<Line<T>>,
    last_tag: u64,
}

/// The requests to one service, in the order in which they are made.
#[derive(Debug)]
struct Line<T> {
    slot: usize,
    queue: VecDeque<(Message, T)>,
    /// The endpoint to which the first request is in flight.
    in_hand_of: Option<Endpoint>,
    /// It was busy; a notification from it tells when to try again.
    is_busy: bool,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests { lines: Vec::new(), last_tag: 0 }
    }
}

impl<T> Requests<T> {
    /// Adds a request of rs's own to the service in `slot`, behind the others.
    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    pub fn add(&mut self, slot: usize, message: Message, task: T) {
        let message = self.tagged(message);
        self.line(slot).queue.push_back((message, task));
    }

    /// Adds a request on behalf of a caller.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn try_add(&mut self, slot: usize, message: Message, task: T) -> Result<()> {
        let message = self.tagged(message);
        self.line(slot).queue.try_push_back((message, task))
    }

    fn tagged(&mut self, mut message: Message) -> Message {
        self.last_tag += 1;
        message.words[6] = self.last_tag;
        message
    }

    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    fn line(&mut self, slot: usize) -> &mut Line<T> {
        let at = self.lines.iter().position(|line| line.slot == slot).unwrap_or_else(|| {
            self.lines.push(Line { slot, queue: VecDeque::new(), in_hand_of: None, is_busy: false });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// Sends what can be sent. `up` tells who holds a slot and is ready, `send` is `SENDNB`.
    pub fn send(
        &mut self,
        up: impl Fn(usize) -> Option<Endpoint>,
        mut send: impl FnMut(Endpoint, &Message) -> Result<()>,
    ) {
        for line in &mut self.lines {
            let (None, false, Some((message, _))) = (line.in_hand_of, line.is_busy, line.queue.front()) else {
                continue;
            };
            let Some(to) = up(line.slot) else { continue };
            match send(to, message) {
                Ok(()) => line.in_hand_of = Some(to),
                Err(Errno::ENOTREADY) => line.is_busy = true,
                // It has just died; `forget_incarnation` comes soon.
                Err(_) => {}
            }
        }
    }

    /// A service waits again.
    pub fn is_waiting(&mut self, from: Endpoint) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.slot == from.slot()) {
            line.is_busy = false;
        }
    }

    /// Takes the request that this message answers.
    pub fn take_answered(&mut self, reply: &Message) -> Option<T> {
        let line = self.lines.iter_mut().find(|line| line.in_hand_of == Some(reply.source))?;
        if line.queue.front()?.0.tag() != reply.tag() {
            return None;
        }
        line.in_hand_of = None;
        line.queue.pop_front().map(|(_, task)| task)
    }

    /// The service in `slot` has died: the request in flight is sent to its successor.
    pub fn forget_incarnation(&mut self, slot: usize) {
        let line = self.line(slot);
        line.in_hand_of = None;
        line.is_busy = false;
    }

    /// rs has died: whether a request was on its way nobody knows, so it is made again. Those that `unwanted` picks are not.
    pub fn recover(&mut self, unwanted: impl Fn(&T) -> bool) {
        for line in &mut self.lines {
            line.in_hand_of = None;
            line.is_busy = false;
            line.queue.retain(|(_, task)| !unwanted(task));
        }
    }

    /// Takes away all requests to the service in `slot` that `unwanted` picks.
    pub fn cancel(&mut self, slot: usize, unwanted: impl Fn(&T) -> bool) {
        let line = self.line(slot);
        if line.queue.front().is_some_and(|(_, task)| unwanted(task)) {
            line.in_hand_of = None;
        }
        line.queue.retain(|(_, task)| !unwanted(task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PM: usize = 7;
    const FIRST: Endpoint = Endpoint::new(PM, 1);
    const SECOND: Endpoint = Endpoint::new(PM, 2);

    fn send(requests: &mut Requests<char>, to: Option<Endpoint>, result: Result<()>) -> Vec<Message> {
        let mut sent = Vec::new();
        requests.send(
            |_| to,
            |_, message| {
                sent.push(*message);
                result
            },
        );
        sent
    }

    fn answer(request: &Message, from: Endpoint) -> Message {
        Message { source: from, ..request.reply(Ok(0)) }
    }

    #[test]
    fn requests_to_one_service_go_out_one_after_the_other() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        requests.add(PM, Message::new(2), 'b');
        assert_eq!(send(&mut requests, None, Ok(())), []);
        let first = send(&mut requests, Some(FIRST), Ok(()));
        assert_eq!((first.len(), first[0].label), (1, 1));
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), []);
        assert_eq!(requests.take_answered(&answer(&first[0], FIRST)), Some('a'));
        let second = send(&mut requests, Some(FIRST), Ok(()));
        assert_eq!(second[0].label, 2);
        assert_eq!(requests.take_answered(&answer(&first[0], FIRST)), None, "the first is answered once");
    }

    #[test]
    fn who_is_busy_is_asked_again_when_it_waits() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        assert_eq!(send(&mut requests, Some(FIRST), Err(Errno::ENOTREADY)).len(), 1);
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), []);
        requests.is_waiting(FIRST);
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())).len(), 1);
    }

    #[test]
    fn the_successor_is_asked_what_the_dead_had_in_hand() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        let sent = send(&mut requests, Some(FIRST), Ok(()));
        requests.forget_incarnation(PM);
        assert_eq!(requests.take_answered(&answer(&sent[0], FIRST)), None);
        assert_eq!(send(&mut requests, Some(SECOND), Ok(())), sent);
        assert_eq!(requests.take_answered(&answer(&sent[0], SECOND)), Some('a'));
    }

    #[test]
    fn only_the_right_answer_counts() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        let mut wrong = answer(&send(&mut requests, Some(FIRST), Ok(()))[0], FIRST);
        wrong.words[6] += 1;
        assert_eq!(requests.take_answered(&wrong), None);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_not_sent() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        requests.add(PM, Message::new(2), 'b');
        let sent = send(&mut requests, Some(FIRST), Ok(()));
        requests.cancel(PM, |task| *task == 'a');
        assert_eq!(requests.take_answered(&answer(&sent[0], FIRST)), None);
        assert_eq!(send(&mut requests, Some(FIRST), Ok(()))[0].label, 2);
    }

    #[test]
    fn each_service_has_a_line_of_its_own() {
        const DS: usize = 6;
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'p');
        requests.add(DS, Message::new(2), 'd');
        let mut sent = Vec::new();
        requests.send(
            |slot| Some(Endpoint::new(slot, 1)),
            |to, message| {
                sent.push((to, *message));
                if to == FIRST { Err(Errno::ENOTREADY) } else { Ok(()) }
            },
        );
        assert_eq!(sent.iter().map(|(to, message)| (to.slot(), message.label)).collect::<Vec<_>>(), [(PM, 1), (DS, 2)]);
        assert_ne!(sent[0].1.tag(), sent[1].1.tag());
        let ds = Endpoint::new(DS, 1);
        requests.is_waiting(ds);
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), [], "pm is still busy, and ds has its request");
        assert_eq!(requests.take_answered(&answer(&sent[0].1, ds)), None);
        assert_eq!(requests.take_answered(&answer(&sent[1].1, ds)), Some('d'));
    }

    #[test]
    fn a_request_that_could_not_be_sent_is_sent_next_time() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        let tried = send(&mut requests, Some(FIRST), Err(Errno::EDEADSRCDST));
        assert_eq!(requests.take_answered(&answer(&tried[0], FIRST)), None, "it is not in flight");
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), tried);
    }

    #[test]
    fn a_successor_is_asked_although_the_dead_was_busy() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        send(&mut requests, Some(FIRST), Err(Errno::ENOTREADY));
        requests.forget_incarnation(PM);
        assert_eq!(send(&mut requests, Some(SECOND), Ok(())).len(), 1);
    }

    #[test]
    fn after_a_death_of_rs_what_was_in_flight_or_held_back_is_sent_again() {
        for result in [Ok(()), Err(Errno::ENOTREADY)] {
            let mut requests = Requests::default();
            for (label, task) in [(1, 'a'), (2, 'b'), (3, 'c')] {
                requests.add(PM, Message::new(label), task);
            }
            let first = send(&mut requests, Some(FIRST), result);
            requests.recover(|task| *task == 'b');
            assert_eq!(send(&mut requests, Some(FIRST), Ok(())), first);
            assert_eq!(requests.take_answered(&answer(&first[0], FIRST)), Some('a'));
            assert_eq!(send(&mut requests, Some(FIRST), Ok(()))[0].label, 3);
        }
    }

    #[test]
    fn a_request_in_flight_stays_when_one_behind_it_is_not_wanted() {
        let mut requests = Requests::default();
        requests.add(PM, Message::new(1), 'a');
        requests.add(PM, Message::new(2), 'b');
        let sent = send(&mut requests, Some(FIRST), Ok(()));
        requests.cancel(PM, |task| *task == 'b');
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), [], "it is not sent twice");
        assert_eq!(requests.take_answered(&answer(&sent[0], FIRST)), Some('a'));
        assert_eq!(send(&mut requests, Some(FIRST), Ok(())), []);
    }
}
