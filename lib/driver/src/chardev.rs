//! The receive loop of character drivers (`abi::chardev`), with any number of requests in progress. A driver replies to each when
//! it can, in any order, through [`Answers`].

use crate::Client;
use abi::chardev::{
    Cancel, Close, Continue, Control, MAX_FURTHER_BYTES, Map, Open, Poll, Read, ReadAt, Request, Write, WriteAt,
};
use abi::{Endpoint, Errno, GrantId, Message};
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

    /// Reads from a position into the client's buffer, of a device that has positions (`OPENED_POSITIONS`).
    ///
    /// # Errors
    /// `ESPIPE`: it has none, the default.
    fn read_at(&mut self, request: &ReadAt, client: Client) -> Result<u64> {
        let _ = (request, client);
        Err(Errno::ESPIPE)
    }

    /// Writes to a position from the client's buffer.
    ///
    /// # Errors
    /// As [`CharDriver::read_at`].
    fn write_at(&mut self, request: &WriteAt, client: Client) -> Result<u64> {
        let _ = (request, client);
        Err(Errno::ESPIPE)
    }

    /// Handles ioctl(2). The default supports none.
    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let _ = request;
        answers.give(held, Err(Errno::ENOTTY));
    }

    /// Goes on with an ioctl for which the driver has asked for further memory ([`Answers::ask_further`]).
    fn control_further(&mut self, held: Held, further: &Further, answers: &mut Answers) {
        let _ = further;
        answers.give(held, Err(Errno::ENOTTY));
    }

    /// Says where the device's memory is that mmap(2) is to show: physical address, and how programs reach it (`layout::map`).
    ///
    /// # Errors
    /// `ENODEV`: it cannot be mapped, the default; `EINVAL`: it has less.
    fn map(&mut self, request: &Map) -> Result<(u64, u64)> {
        let _ = request;
        Err(Errno::ENODEV)
    }

    /// Serves a message of another protocol that the driver speaks too. The default knows none.
    fn other(&mut self, held: Held, message: &Message, answers: &mut Answers) {
        let _ = message;
        answers.give(held, Err(Errno::ENOSYS));
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

/// An ioctl that goes on, in whose argument or behind it the driver keeps nothing: everything may have changed.
#[derive(Clone, Copy, Debug)]
pub struct Further {
    /// Which device.
    pub minor: u64,
    /// Which ioctl.
    pub request: u64,
    /// How many times the driver has asked for memory.
    pub step: u64,
    /// What the program passed.
    pub address: u64,
    /// The memory there, as in `Control`.
    pub argument: Client,
    /// The memory that was asked for last.
    pub memory: Client,
}

impl Further {
    /// Bytes at the argument that a driver may reach.
    pub const ARGUMENT_BYTES: u64 = 256;

    fn new(requester: Endpoint, request: &Continue) -> Further {
        let grant = |shift: u32| GrantId((request.grants >> shift) as u32);
        Further {
            minor: request.minor,
            request: request.request & u64::from(u32::MAX),
            step: request.request >> 32,
            address: request.argument,
            argument: Client::new(requester, grant(0), Further::ARGUMENT_BYTES),
            memory: Client::new(requester, grant(32), MAX_FURTHER_BYTES),
        }
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
        let Some(request) = Request::decode(message) else {
            self.driver.other(held, message, answers);
            return Ok(());
        };
        match request {
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
            Request::ReadAt(request) => {
                let client = Client::new(message.source, request.grant, request.bytes);
                let result = self.driver.read_at(&request, client);
                answers.give(held, result);
            }
            Request::WriteAt(request) => {
                let client = Client::new(message.source, request.grant, request.bytes);
                let result = self.driver.write_at(&request, client);
                answers.give(held, result);
            }
            Request::Map(request) => {
                let (physical, caching) = self.driver.map(&request)?;
                answers.give_message(&held, Map::reply(message, 0, physical, caching));
            }
            Request::Continue(request) => {
                self.driver.control_further(held, &Further::new(message.source, &request), answers);
            }
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
        let write = Write { minor: 0, grant: GrantId::NONE, bytes: 3, flags: 0, caller: 0, process: 0 };
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

    /// Has memory, and an ioctl that needs some of the program's.
    struct Screen;

    impl CharDriver for Screen {
        fn open(&mut self, _: &Open) -> Result<u64> {
            Ok(abi::chardev::OPENED_POSITIONS)
        }
        fn read(&mut self, held: Held, _: &Read, _: Client, answers: &mut Answers) {
            answers.give(held, Err(Errno::EINVAL));
        }
        fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
            answers.give(held, Err(Errno::EINVAL));
        }
        fn read_at(&mut self, request: &ReadAt, client: Client) -> Result<u64> {
            Ok(client.bytes().min(100 - request.position.min(100)))
        }
        fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
            answers.ask_further(held, request.argument + 8, 32);
        }
        fn control_further(&mut self, held: Held, further: &Further, answers: &mut Answers) {
            let is_it = (further.minor, further.request, further.address) == (7, 0x4604, 0x1000);
            answers.give(held, if is_it { Ok(further.step) } else { Err(Errno::EINVAL) });
        }
        fn map(&mut self, request: &Map) -> Result<(u64, u64)> {
            if request.offset + request.bytes <= 0x2000 {
                Ok((0xfd00_0000 + request.offset, 32))
            } else {
                Err(Errno::EINVAL)
            }
        }
    }

    fn ask(message: Message) -> Message {
        let mut screen = Loop { driver: Screen, answers: Answers::default() };
        screen.request(&from_tty(1, message)).done().expect("is answered at once")
    }

    #[test]
    fn a_driver_says_where_its_memory_is_and_where_it_ends() {
        let map = |offset, bytes| Map::results(&ask(Map { minor: 7, offset, bytes }.message()));
        assert_eq!(map(0x1000, 0x1000), Ok((0xfd00_1000, 32)));
        assert_eq!(map(0x1000, 0x2000), Err(Errno::EINVAL));
        let mut line = line();
        let refused = line.request(&from_tty(1, Map { minor: 0, offset: 0, bytes: 4096 }.message()));
        assert_eq!(refused.done().map(|reply| reply.result()), Some(Err(Errno::ENODEV)), "most devices have none");
    }

    #[test]
    fn an_ioctl_that_needs_further_memory_goes_on_with_it() {
        let grant = GrantId::NONE;
        let control = Control { minor: 7, request: 0x4604, argument: 0x1000, grant, caller: 0, session: 0 };
        assert_eq!(Control::results(&ask(control.message())), Ok((0x1008, 32)));
        let request = 0x4604 | 3 << 32;
        let next = Continue { minor: 7, request, argument: 0x1000, grants: 1 | 2 << 32, caller: 0, session: 0 };
        let reply = ask(next.message());
        assert_eq!((reply.result(), Continue::results(&reply)), (Ok(3), Ok((0, 0))));
    }

    #[test]
    fn a_device_with_positions_is_read_from_one() {
        let grant = GrantId::NONE;
        let read = |position| ask(ReadAt { minor: 7, grant, bytes: 64, position }.message()).result();
        assert_eq!((read(0), read(80), read(200)), (Ok(64), Ok(20), Ok(0)));
    }
}
