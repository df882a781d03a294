//! smbus: the SMBus of a PC's chip set (ICH9), with the EEPROMs of memory modules and what else is on it, as Linux's /dev/i2c-0.
//!
//! An open file has an address of its own; so it gets a minor of its own, which stands for that (`driver::i2c`). Transfers are made one after the
//! other, and looked at by a timer: a device may take its time, and nobody else waits for it.
//!
//! * `controller`: the chip; this file: requests.
//!
//! When the driver dies, an ioctl is made again: a byte may be written twice.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod controller;

use abi::chardev::{Close, Control, OPENED_MINOR_SHIFT, Open, Poll, Read, Write};
use abi::{Endpoint, Errno, GrantId};
use alloc::collections::VecDeque;
use controller::{Controller, LIMIT_NS, Registers};
use driver::chardev::{Answers, CharDriver, Further, Held};
use driver::i2c::handles::{self, Handles};
use driver::i2c::ioctl::{self, DATA_BYTES, Smbus};
use driver::i2c::{Data, Kind, Transfer};
use driver::{Client, Ports, pci};
use sys::fallible::TryQueue;
use sys::keep::Keep;
use sys::time;

sys::program!(main);

/// Minor of the bus.
const BUS: u64 = 0;
/// The BAR with the controller's ports.
const BAR: u8 = 4;
/// Offset of the host configuration register in configuration space, and its bit that switches the controller on.
const HOST_CONFIGURATION: u16 = 0x40;
const HOST_ENABLE: u32 = 1;
/// Offset of the command register, and its bit that makes the ports answer.
const COMMAND: u16 = 4;
const PORT_SPACE: u32 = 1;
/// Between two looks at a transfer: two bytes take as long.
const LOOK_NS: u64 = 200_000;

fn main(_: sys::Start) {
    match set_up() {
        Ok(bus) => driver::chardev::serve(bus),
        Err(error) => server::not_ready(error),
    }
}

fn set_up() -> Result<Bus<Window>, Errno> {
    let handles = Handles::open(Keep::take(handles::KEEP_BYTES).expect("preserved memory is taken once"))?;
    let bar = pci::bar(BAR)?;
    if !bar.ports {
        return Err(Errno::ENODEV);
    }
    let command = pci::read(COMMAND, 2)?;
    pci::write(COMMAND, 2, command | PORT_SPACE)?;
    let configuration = pci::read(HOST_CONFIGURATION, 1)?;
    pci::write(HOST_CONFIGURATION, 1, configuration | HOST_ENABLE)?;
    let window = Window(Ports::new(bar.start as u16, controller::PORTS));
    Ok(Bus { handles, controller: Controller::new(window)?, jobs: VecDeque::new() })
}

struct Window(Ports);

impl Registers for Window {
    fn read(&mut self, offset: u16) -> Result<u8, Errno> {
        self.0.read8(offset)
    }
    fn write(&mut self, offset: u16, value: u8) -> Result<(), Errno> {
        self.0.write8(offset, value)
    }
}

/// A transfer that is waited for: the first of the queue is in progress.
struct Job {
    held: Held,
    smbus: Smbus,
    transfer: Transfer,
    /// Where what is read goes to.
    memory: Option<Client>,
    /// When it has taken too long; 0: it has not begun.
    deadline_ns: u64,
}

impl Job {
    /// Gives the program what was read.
    fn tell(&self, data: &Data) -> Result<u64, Errno> {
        match &self.memory {
            Some(memory) if self.smbus.reads => {
                let (bytes, count) = self.smbus.told(data);
                memory.put(0, &bytes[..count]).map(|()| 0)
            }
            _ => Ok(0),
        }
    }
}

/// The bus.
struct Bus<R> {
    handles: Handles,
    controller: Controller<R>,
    jobs: VecDeque<Job>,
}

impl<R: Registers> Bus<R> {
    fn set_address(&self, request: &Control) -> Result<u64, Errno> {
        self.handles.set_address(request.minor, request.argument).map(|()| 0)
    }

    /// A transfer: of the program's data, if it has any.
    fn begin(&mut self, held: Held, minor: u64, smbus: Smbus, memory: Option<Client>, answers: &mut Answers) {
        let mut data = [0; DATA_BYTES];
        let fetched = match &memory {
            Some(memory) if !smbus.reads => memory.fetch(0, &mut data[..smbus.data_bytes()]),
            _ => Ok(()),
        };
        let address = self.handles.address(minor);
        let transfer = fetched.and(address).and_then(|address| smbus.transfer(address, &data));
        let job = transfer.map(|transfer| Job { held, smbus, transfer, memory, deadline_ns: 0 });
        match job.and_then(|job| self.jobs.try_push_back(job)) {
            Ok(()) => self.go_on(answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    /// Begins the first job, or looks whether it has ended, until it is in progress.
    fn go_on(&mut self, answers: &mut Answers) {
        let now_ns = time::now_ns();
        while let Some(job) = self.jobs.front_mut() {
            let result = match job.deadline_ns {
                0 => {
                    job.deadline_ns = now_ns.saturating_add(LIMIT_NS);
                    self.controller.begin(&job.transfer).and_then(|()| self.controller.end())
                }
                _ => self.controller.end(),
            };
            let result = match result {
                Ok(None) if now_ns < job.deadline_ns => return self.look_later(now_ns),
                Ok(None) => self.controller.give_up().and(Err(Errno::ETIMEDOUT)),
                Ok(Some(data)) => job.tell(&data),
                Err(error) => Err(error),
            };
            answers.give(job.held, result);
            self.jobs.pop_front();
        }
    }

    fn look_later(&self, now_ns: u64) {
        time::set_alarm(now_ns + LOOK_NS).expect("smbus needs the kernel call SetAlarm");
    }
}

impl<R: Registers> CharDriver for Bus<R> {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        if request.minor != BUS {
            return Err(Errno::ENODEV);
        }
        // Who is accountable is the real user.
        self.handles.add((request.ids >> 32) as u32).map(|minor| minor << OPENED_MINOR_SHIFT)
    }

    fn close(&mut self, request: &Close) {
        self.handles.remove(request.minor);
    }

    // Plain transfers, as I2C has them.
    fn read(&mut self, held: Held, _: &Read, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EOPNOTSUPP));
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EOPNOTSUPP));
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let argument = Client::new(held.requester(), request.grant, Further::ARGUMENT_BYTES);
        let result = match request.request {
            ioctl::SLAVE | ioctl::SLAVE_FORCE => self.set_address(request),
            ioctl::RETRIES | ioctl::TIMEOUT => Ok(0),
            ioctl::TENBIT | ioctl::PEC if request.argument == 0 => Ok(0),
            ioctl::TENBIT | ioctl::PEC => Err(Errno::EINVAL),
            ioctl::RDWR => Err(Errno::EOPNOTSUPP),
            ioctl::FUNCS | ioctl::SMBUS if request.grant == GrantId::NONE => Err(Errno::EFAULT),
            ioctl::FUNCS => argument.put(0, &ioctl::FUNCTIONS.to_le_bytes()).map(|()| 0),
            ioctl::SMBUS => match Smbus::fetch(&argument) {
                // The controller writes none, and reads some only.
                Ok(Smbus { kind: Kind::PlainBlock, .. }) => Err(Errno::EOPNOTSUPP),
                Ok(smbus) if smbus.data_bytes() == 0 => return self.begin(held, request.minor, smbus, None, answers),
                Ok(smbus) => return answers.ask_further(held, smbus.data, smbus.data_bytes() as u64),
                Err(error) => Err(error),
            },
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result);
    }

    fn control_further(&mut self, held: Held, further: &Further, answers: &mut Answers) {
        match Smbus::fetch(&further.argument) {
            Ok(smbus) => self.begin(held, further.minor, smbus, Some(further.memory), answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    fn poll(&mut self, held: Held, request: &Poll, answers: &mut Answers) {
        answers.give(held, Ok(request.events));
    }

    /// A transfer in progress goes on; one that waits ends.
    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        let is_it = |job: &Job| job.held.requester() == requester && job.held.tag() == tag && job.deadline_ns == 0;
        if let Some(job) = self.jobs.iter().position(is_it).and_then(|at| self.jobs.remove(at)) {
            answers.give(job.held, Err(Errno::EINTR));
        }
    }

    fn alarm(&mut self, _: u64, answers: &mut Answers) {
        self.go_on(answers);
    }
}
