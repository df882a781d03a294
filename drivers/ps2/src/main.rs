//! ps2: the keyboard and the mouse behind a PC's i8042 controller, as input devices 0 and 1 (`abi::input`).
//!
//! * `controller`: registers, and commands with time-outs; `keyboard`, `mouse`: bytes into events; `packet`: the events of one packet;
//! * `device`: both of them, and the lights; this file: messages and interrupts.
//!
//! Events wait in preserved memory until input has them (`driver::input`), with the state of the decoders: a successor goes on in the
//! middle of a key's bytes. One gap remains, between the access that takes a byte and the store that counts it.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod controller;
mod device;
mod keyboard;
mod mouse;
mod packet;
#[cfg(test)]
mod played;

use abi::chardev::{Control, Open, Poll, Read, Write};
use abi::input::{DESCRIBE, DESCRIPTION_BYTES, SET_LEDS};
use abi::{Endpoint, Errno};
use alloc::rc::Rc;
use controller::{Controller, Register, Registers};
use device::{DEVICES, Devices};
use driver::chardev::{Answers, CharDriver, Held};
use driver::input::{SOURCE_BYTES, Source};
use driver::{Client, Interrupt, Ports};
use sys::keep::Keep;

sys::program!(main);

/// Interrupt lines of keyboard and mouse.
const LINES: [u8; DEVICES] = [1, 12];

fn main(_: sys::Start) {
    match set_up() {
        Ok(driver) => driver::chardev::serve(driver),
        Err(error) => server::not_ready(error),
    }
}

fn set_up() -> Result<Ps2, Errno> {
    let keep = Rc::new(Keep::take(DEVICES * SOURCE_BYTES).expect("preserved memory is taken once"));
    let sources = [Source::open(&keep, 0), Source::open(&keep, 1)];
    let window = Window { data: Ports::new(0x60, 1), control: Ports::new(0x64, 1) };
    // The interrupts are registered first, so that none of the controller is lost.
    for (hook, line) in LINES.into_iter().enumerate() {
        Interrupt::edge(line, hook as u32)?;
    }
    let mut devices = Devices::set_up(Controller::new(window), sources)?;
    // The edge of the next interrupt needs the line to be low.
    devices.receive(&mut Answers::default());
    let mut driver = Ps2 { devices };
    driver.watch_lights();
    Ok(driver)
}

/// The controller's registers.
struct Window {
    data: Ports,
    control: Ports,
}

impl Window {
    fn ports(&self, register: Register) -> &Ports {
        match register {
            Register::Data => &self.data,
            Register::Control => &self.control,
        }
    }
}

impl Registers for Window {
    fn read(&mut self, register: Register) -> Result<u8, Errno> {
        self.ports(register).read8(0)
    }
    fn write(&mut self, register: Register, value: u8) -> Result<(), Errno> {
        self.ports(register).write8(0, value)
    }
    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}

struct Ps2 {
    devices: Devices<Window>,
}

impl Ps2 {
    /// Sets the alarm for a keyboard that does not acknowledge its lights.
    fn watch_lights(&mut self) {
        if let Some(deadline_ns) = self.devices.deadline_ns() {
            sys::time::set_alarm(deadline_ns).expect("ps2 needs the kernel call SetAlarm");
        }
    }
}

impl CharDriver for Ps2 {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        self.devices.describe(request.minor).map(|_| 0)
    }

    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers) {
        match self.devices.source_mut(request.minor) {
            Ok(source) => source.read(held, client, request.caller, answers),
            Err(error) => answers.give(held, Err(error)),
        }
        // There is room again for what the controller holds.
        self.devices.receive(answers);
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let result = match request.request {
            DESCRIBE => self.devices.describe(request.minor).and_then(|description| {
                let client = Client::new(held.requester(), request.grant, DESCRIPTION_BYTES as u64);
                client.put(0, &description.to_bytes())
            }),
            SET_LEDS => self.devices.set_lights(request.minor, request.argument),
            _ => Err(Errno::ENOTTY),
        };
        answers.give(held, result.map(|()| 0));
        self.watch_lights();
    }

    fn poll(&mut self, held: Held, _: &Poll, answers: &mut Answers) {
        // input keeps a read in progress instead.
        answers.give(held, Err(Errno::ENOSYS));
    }

    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        self.devices.sources_mut().for_each(|source| source.cancel(requester, tag, answers));
    }

    fn interrupt(&mut self, _: u64, answers: &mut Answers) {
        self.devices.receive(answers);
        self.watch_lights();
    }

    fn alarm(&mut self, _: u64, _: &mut Answers) {
        self.devices.time_out();
        self.watch_lights();
    }
}
