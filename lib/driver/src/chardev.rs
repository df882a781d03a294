//! The receive loop of character drivers (`abi::chardev`), with any number of requests in progress. A driver replies to each when
//! it can, in any order, through [`Answers`].

use crate::Client;
use abi::chardev::{Cancel, Close, Control, Open, Poll, Read, Request, Write};
use abi::{Endpoint, Errno, Message};
use server::{Service, SyncStep};
use sys::Result;

pub use crate::answers::{Answers, Held};

/// What a character driver implements.
pub trait CharDriver {
    /// Opens a minor. Returns flags `OPENED_*`.
    ///
    /// # Errors
    /// `ENXIO`: no such minor.
    fn open(&mut self, request: &Open) -> Result<u64>;

    /// Handles the close of an open file's last descriptor.
    fn close(&mut self, request: &Close) {
        let _ = request;
    }

    /// Reads into the client's buffer, now or later.
    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers);

    /// Writes from the client's buffer, now or later.
    fn write(&mut self, held: Held, request: &Write, client: Client, answers: &mut Answers);

    /// Handles ioctl(2). The default supports none.
    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let _ = request;
        answers.give(held, Err(Errno::ENOTTY));
    }

    /// Waits for events. By default all of them are ready at once.
    fn poll(&mut self, held: Held, request: &Poll, answers: &mut Answers) {
        answers.give(held, Ok(request.events));
    }

    /// Cancels this client's request with this tag, if it is in progress.
    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        let _ = (requester, tag, answers);
    }

    /// Handles interrupts: one bit for each hook.
    fn interrupt(&mut self, hooks: u64, answers: &mut Answers) {
        let _ = (hooks, answers);
    }

    /// Handles the alarm of `sys::time::set_alarm`.
    fn alarm(&mut self, now_ns: u64, answers: &mut Answers) {
        let _ = (now_ns, answers);
    }
}

/// Reports ready to rs and serves forever.
pub fn serve(driver: impl CharDriver) -> ! {
    server::run(&mut Loop { driver, answers: Answers::default() })
}

struct Loop<D> {
    driver: D,
    answers: Answers,
}

impl<D: CharDriver> Service for Loop<D> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        if let Err(error) = self.take_in(message) {
            self.answers.give(Held::new(message), Err(error));
        }
        self.answers.send_around(message).into()
    }

    fn interrupt(&mut self, hooks: u64) {
        self.driver.interrupt(hooks, &mut self.answers);
        self.answers.send();
    }

    fn alarm(&mut self, now_ns: u64) {
        self.driver.alarm(now_ns, &mut self.answers);
        self.answers.send();
    }
}

impl<D: CharDriver> Loop<D> {
    fn take_in(&mut self, message: &Message) -> Result<()> {
        let held = Held::new(message);
        let answers = &mut self.answers;
        match Request::decode(message).ok_or(Errno::ENOSYS)? {
            Request::Open(request) => {
                let result = self.driver.open(&request);
                answers.give(held, result);
            }
            Request::Close(request) => {
                self.driver.close(&request);
                answers.give(held, Ok(0));
            }
            Request::Read(request) => {
                let client = Client::new(message.source, request.grant, request.bytes);
                self.driver.read(held, &request, client, answers);
            }
            Request::Write(request) => {
                let client = Client::new(message.source, request.grant, request.bytes);
                self.driver.write(held, &request, client, answers);
            }
            Request::Control(request) => self.driver.control(held, &request, answers),
            Request::Poll(request) => self.driver.poll(held, &request, answers),
            Request::Cancel(Cancel { tag, .. }) => self.driver.cancel(message.source, tag, answers),
            Request::SetUses(_) => answers.give(held, Err(Errno::ENOSYS)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::GrantId;
    use std::vec::Vec;

    /// Answers the oldest read when an interrupt comes.
    #[derive(Default)]
    struct Line {
        held: Vec<Held>,
    }

    impl CharDriver for Line {
        fn open(&mut self, request: &Open) -> Result<u64> {
            if request.minor == 0 { Ok(0) } else { Err(Errno::ENXIO) }
        }
        fn read(&mut self, held: Held, _: &Read, _: Client, _: &mut Answers) {
            self.held.push(held);
        }
        fn write(&mut self, held: Held, request: &Write, _: Client, answers: &mut Answers) {
            answers.give(held, Ok(request.bytes));
        }
        fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
            if let Some(at) = self.held.iter().position(|held| held.requester() == requester && held.tag() == tag) {
                answers.give(self.held.remove(at), Err(Errno::EINTR));
            }
        }
        fn interrupt(&mut self, _: u64, answers: &mut Answers) {
            answers.give(self.held.remove(0), Ok(1));
        }
    }

    fn line() -> Loop<Line> {
        Loop { driver: Line::default(), answers: Answers::default() }
    }

    fn from_tty(tag: u64, mut message: Message) -> Message {
        message.source = Endpoint::new(9, 1);
        message.words[6] = tag;
        message
    }

    fn read(tag: u64) -> Message {
        from_tty(tag, Read { minor: 0, grant: GrantId::NONE, bytes: 1, flags: 0, caller: 0 }.message())
    }

    #[test]
    fn a_write_is_answered_at_once_and_a_read_when_there_is_input() {
        let mut line = line();
        assert!(line.request(&read(1)).done().is_none());
        let write = Write { minor: 0, grant: GrantId::NONE, bytes: 3, flags: 0, caller: 0 };
        let answer = line.request(&from_tty(2, write.message())).done().expect("is answered at once");
        assert_eq!((answer.tag(), answer.result()), (2, Ok(3)));
        line.driver.interrupt(1, &mut line.answers);
        let given = line.answers.given();
        assert_eq!(given.iter().map(Message::tag).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn only_the_request_that_was_named_is_cancelled() {
        let mut line = line();
        line.request(&read(1));
        line.request(&read(2));
        line.take_in(&from_tty(0, Cancel { tag: 2, minor: 0 }.message())).expect("is a request");
        let given = line.answers.given();
        assert_eq!(given.len(), 1);
        assert_eq!((given[0].tag(), given[0].result()), (2, Err(Errno::EINTR)));
    }

    #[test]
    fn an_unknown_request_is_answered_not_implemented() {
        let answer = line().request(&from_tty(5, Message::new(0x77_0001))).done().expect("is answered");
        assert_eq!(answer.result(), Err(Errno::ENOSYS));
    }
}
