//! The requests to a bus whose wires the processor moves (`wires`), as Linux's /dev/i2c-N.
//!
//! A transfer is made while its request is handled. `I2C_RDWR` alone takes several steps, one for each message, because the driver gets the
//! program's memory piece by piece (ADR 85); meanwhile the transaction is open, and requests of others wait. It is the one thing that is kept
//! between steps, and nothing relies on it: a successor begins with an idle bus, and the ioctl begins anew.

use super::handles::Handles;
use super::ioctl::{self, MAX_MESSAGE, MAX_MESSAGES, MESSAGE_BYTES, Segment, Smbus};
use super::wires::{Host, Wires};
use crate::Client;
use crate::chardev::{Answers, CharDriver, Further, Held};
use abi::chardev::{Close, Control, OPENED_MINOR_SHIFT, Open, Poll, Read, Write};
use abi::{Endpoint, Errno, GrantId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use sys::fallible::{self, TryQueue};
use sys::time;

/// How long a transaction may wait for its next step: its program or vfs may have died.
const LIMIT_NS: u64 = 200_000_000;

/// A transaction between two of its messages.
struct Transaction {
    requester: Endpoint,
    minor: u64,
    argument: u64,
    messages: [Segment; MAX_MESSAGES],
    count: usize,
    next: usize,
    deadline_ns: u64,
}

/// A request that needs the bus.
#[derive(Clone, Copy)]
enum Request {
    Control(Control),
    Further(Further),
    Read(Read, Client),
    Write(Write, Client),
}

/// A bus, as a driver has it that has nothing else.
pub struct Bus<W> {
    minor: u64,
    handles: Handles,
    host: Host<W>,
    transaction: Option<Transaction>,
    waiting: VecDeque<(Held, Request)>,
    buffer: Vec<u8>,
}

impl<W: Wires> Bus<W> {
    /// The bus on these wires, idle, which is opened as `minor`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(minor: u64, handles: Handles, wires: W) -> Result<Self, Errno> {
        let buffer = fallible::filled(0, MAX_MESSAGE)?;
        Ok(Bus { minor, handles, host: Host::new(wires), transaction: None, waiting: VecDeque::new(), buffer })
    }

    /// Handles a request, or has it wait for the end of another's transaction.
    fn take(&mut self, held: Held, request: Request, answers: &mut Answers) {
        if self.transaction.as_ref().is_none_or(|transaction| transaction.is_continued(&held, &request)) {
            self.handle(held, request, answers);
        } else if let Err(error) = self.waiting.try_push_back((held, request)) {
            answers.give(held, Err(error));
        }
    }

    fn handle(&mut self, held: Held, request: Request, answers: &mut Answers) {
        let result = match request {
            Request::Control(control) => match self.begin(held, &control, answers) {
                Some(result) => result,
                None => return,
            },
            Request::Further(further) if further.request == ioctl::RDWR => return self.step(held, &further, answers),
            Request::Further(further) => Smbus::fetch(&further.argument)
                .and_then(|smbus| self.transfer(further.minor, &smbus, Some(&further.memory))),
            Request::Read(read, client) => self.read_in(read.minor, &client),
            Request::Write(write, client) => self.write_out(write.minor, &client),
        };
        answers.give(held, result);
    }

    /// The first step of an ioctl. `None`: there is another.
    fn begin(&mut self, held: Held, request: &Control, answers: &mut Answers) -> Option<Result<u64, Errno>> {
        let argument = Client::new(held.requester(), request.grant, Further::ARGUMENT_BYTES);
        let further = match request.request {
            ioctl::RDWR => {
                ioctl::list(&argument).map(|(address, count)| Some((address, (count * MESSAGE_BYTES) as u64)))
            }
            _ => match Smbus::fetch(&argument) {
                Ok(smbus) if smbus.data_bytes() == 0 => return Some(self.transfer(request.minor, &smbus, None)),
                Ok(smbus) => Ok(Some((smbus.data, smbus.data_bytes() as u64))),
                Err(error) => Err(error),
            },
        };
        match further {
            Ok(Some((address, bytes))) => answers.ask_further(held, address, bytes),
            Ok(None) => {}
            Err(error) => return Some(Err(error)),
        }
        None
    }

    fn transfer(&mut self, minor: u64, smbus: &Smbus, memory: Option<&Client>) -> Result<u64, Errno> {
        let mut data = [0; ioctl::DATA_BYTES];
        match memory {
            Some(memory) if smbus.is_told() => memory.fetch(0, &mut data[..smbus.data_bytes()])?,
            _ => {}
        }
        let transfer = smbus.transfer(self.handles.address(minor)?, &data)?;
        let read = self.host.transfer(&transfer)?;
        match memory {
            Some(memory) if smbus.reads => {
                let (bytes, count) = smbus.told(&read);
                memory.put(0, &bytes[..count]).map(|()| 0)
            }
            _ => Ok(0),
        }
    }

    fn read_in(&mut self, minor: u64, client: &Client) -> Result<u64, Errno> {
        let address = self.handles.address(minor)?;
        let bytes = &mut self.buffer[..client.bytes().min(MAX_MESSAGE as u64) as usize];
        let read = self.host.read(address, bytes);
        self.host.stop();
        read.and_then(|()| client.put(0, bytes)).map(|()| bytes.len() as u64)
    }

    fn write_out(&mut self, minor: u64, client: &Client) -> Result<u64, Errno> {
        let address = self.handles.address(minor)?;
        let bytes = &mut self.buffer[..client.bytes().min(MAX_MESSAGE as u64) as usize];
        client.fetch(0, bytes)?;
        let written = self.host.write(address, bytes);
        self.host.stop();
        written.map(|()| bytes.len() as u64)
    }

    /// A further step of `I2C_RDWR`: the list of messages first, then the bytes of one after the other.
    fn step(&mut self, held: Held, further: &Further, answers: &mut Answers) {
        let result = match &mut self.transaction {
            None if further.step == 1 => self.open_transaction(&held, further),
            None => Err(Errno::ETIMEDOUT),
            Some(_) => self.message(&further.memory),
        };
        match result.and_then(|()| self.next_memory()) {
            Ok(Some(segment)) => answers.ask_further(held, segment.buffer, segment.bytes as u64),
            Ok(None) => {
                let count = self.transaction.as_ref().map_or(0, |transaction| transaction.count);
                answers.give(held, Ok(count as u64));
                self.end(answers);
            }
            Err(error) => {
                answers.give(held, Err(error));
                self.end(answers);
            }
        }
    }

    fn open_transaction(&mut self, held: &Held, further: &Further) -> Result<(), Errno> {
        let (_, count) = ioctl::list(&further.argument)?;
        let mut bytes = [[0; MESSAGE_BYTES]; MAX_MESSAGES];
        further.memory.fetch(0, bytes[..count].as_flattened_mut())?;
        let mut messages = [Segment::default(); MAX_MESSAGES];
        for (message, bytes) in messages.iter_mut().zip(&bytes[..count]) {
            *message = Segment::parse(bytes)?;
        }
        let (requester, minor, argument) = (held.requester(), further.minor, further.address);
        self.transaction = Some(Transaction { requester, minor, argument, messages, count, next: 0, deadline_ns: 0 });
        Ok(())
    }

    /// Sends or receives the next message, whose bytes are there.
    fn message(&mut self, memory: &Client) -> Result<(), Errno> {
        let Some(segment) = self.transaction.as_mut().and_then(Transaction::take_next) else { return Ok(()) };
        let bytes = &mut self.buffer[..segment.bytes];
        if segment.reads {
            self.host.read(segment.address, bytes)?;
            return memory.put(0, bytes);
        }
        memory.fetch(0, bytes)?;
        self.host.write(segment.address, bytes)
    }

    /// The next message that has bytes, after those that have none. `None`: that was the last.
    fn next_memory(&mut self) -> Result<Option<Segment>, Errno> {
        while let Some(segment) = self.transaction.as_ref().and_then(Transaction::next) {
            if segment.bytes > 0 {
                self.expect_next();
                return Ok(Some(segment));
            }
            self.transaction.as_mut().and_then(Transaction::take_next);
            if segment.reads {
                self.host.read(segment.address, &mut [])?;
            } else {
                self.host.write(segment.address, &[])?;
            }
        }
        Ok(None)
    }

    fn expect_next(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.deadline_ns = time::now_ns() + LIMIT_NS;
            time::set_alarm(transaction.deadline_ns).expect("a driver of a bus needs the kernel call SetAlarm");
        }
    }

    /// Ends the transaction, if one is open, and goes on with what has waited for that.
    fn end(&mut self, answers: &mut Answers) {
        if self.transaction.take().is_some() {
            self.host.stop();
        }
        while self.transaction.is_none()
            && let Some((held, request)) = self.waiting.pop_front()
        {
            self.handle(held, request, answers);
        }
    }
}

impl Transaction {
    fn is_continued(&self, held: &Held, request: &Request) -> bool {
        let Request::Further(further) = request else { return false };
        // The list was the first step.
        let is_next = further.request == ioctl::RDWR && further.step == self.steps() + 1;
        is_next && held.requester() == self.requester && further.minor == self.minor && further.address == self.argument
    }

    /// Steps so far: messages without bytes have none.
    fn steps(&self) -> u64 {
        1 + self.messages[..self.next].iter().filter(|message| message.bytes > 0).count() as u64
    }

    fn next(&self) -> Option<Segment> {
        self.messages[..self.count].get(self.next).copied()
    }

    fn take_next(&mut self) -> Option<Segment> {
        let next = self.next();
        self.next += usize::from(next.is_some());
        next
    }
}

impl<W: Wires> CharDriver for Bus<W> {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        if request.minor != self.minor {
            return Err(Errno::ENODEV);
        }
        // Who is accountable is the real user.
        self.handles.add((request.ids >> 32) as u32).map(|minor| minor << OPENED_MINOR_SHIFT)
    }

    fn close(&mut self, request: &Close) {
        self.handles.remove(request.minor);
    }

    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers) {
        self.take(held, Request::Read(*request, client), answers);
    }

    fn write(&mut self, held: Held, request: &Write, client: Client, answers: &mut Answers) {
        self.take(held, Request::Write(*request, client), answers);
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let functions = (ioctl::FUNCTIONS | ioctl::PLAIN_FUNCTIONS).to_le_bytes();
        let argument = Client::new(held.requester(), request.grant, Further::ARGUMENT_BYTES);
        let result = match request.request {
            ioctl::SLAVE | ioctl::SLAVE_FORCE => self.handles.set_address(request.minor, request.argument).map(|()| 0),
            ioctl::RETRIES | ioctl::TIMEOUT => Ok(0),
            ioctl::TENBIT | ioctl::PEC if request.argument == 0 => Ok(0),
            ioctl::TENBIT | ioctl::PEC => Err(Errno::EINVAL),
            ioctl::FUNCS | ioctl::SMBUS | ioctl::RDWR if request.grant == GrantId::NONE => Err(Errno::EFAULT),
            ioctl::FUNCS => argument.put(0, &functions).map(|()| 0),
            ioctl::SMBUS | ioctl::RDWR => return self.take(held, Request::Control(*request), answers),
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result);
    }

    fn control_further(&mut self, held: Held, further: &Further, answers: &mut Answers) {
        self.take(held, Request::Further(*further), answers);
    }

    fn poll(&mut self, held: Held, request: &Poll, answers: &mut Answers) {
        answers.give(held, Ok(request.events));
    }

    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        let is_it = |(held, _): &(Held, Request)| held.requester() == requester && held.tag() == tag;
        if let Some((held, _)) = self.waiting.iter().position(is_it).and_then(|at| self.waiting.remove(at)) {
            answers.give(held, Err(Errno::EINTR));
        }
    }

    fn alarm(&mut self, now_ns: u64, answers: &mut Answers) {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.deadline_ns <= now_ns) {
            self.end(answers);
        }
    }
}
