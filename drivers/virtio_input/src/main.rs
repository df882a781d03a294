//! virtio_input: a keyboard, mouse, tablet or touch screen of a virtual machine, as input device 0 (`abi::input`).
//!
//! The argument `pointer=touch` makes a touch screen of a tablet: its left button is a finger.
//!
//! * `device`: what the device is, its events and lights; this file: messages and interrupts.
//!
//! The driver exits if the device violates the rules of virtio: the successor resets it. Events that are in the device's memory when the driver
//! dies are lost; those that it has taken in are preserved (`driver::input`).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod device;

use abi::chardev::{Control, Open, Poll, Read, Write};
use abi::input::{DESCRIBE, DESCRIPTION_BYTES, Event, SET_LEDS, kind};
use abi::{Endpoint, Errno};
use alloc::rc::Rc;
use device::{Device, MEMORY_BYTES, Pointer};
use driver::chardev::{Answers, CharDriver, Held};
use driver::input::{SOURCE_BYTES, Source};
use driver::virtio::{PciTransport, Window};
use driver::{Client, Region, pci, virtio};
use sys::keep::Keep;

sys::program!(main);

/// Events of a packet that are kept together; longer ones are passed in pieces.
const PACKET: usize = 32;

fn main(start: sys::Start) {
    let pointer = if start.argument("pointer") == Some("touch") { Pointer::Touch } else { Pointer::Button };
    match set_up(pointer) {
        Ok(driver) => driver::chardev::serve(driver),
        Err(error) => server::not_ready(error),
    }
}

fn set_up(pointer: Pointer) -> Result<Driver, Errno> {
    let keep = Rc::new(Keep::take(SOURCE_BYTES).expect("preserved memory is taken once"));
    // The interrupt is message-signalled: it needs no `done`.
    let (transport, _) = virtio::find(1)?;
    let device = Device::set_up(transport, pci::dma(MEMORY_BYTES)?, pointer)?;
    Ok(Driver { device, source: Source::open(&keep, 0), packet: [Event::default(); PACKET], count: 0 })
}

struct Driver {
    device: Device<PciTransport<Window>, Region>,
    source: Source,
    /// The packet that the device has not ended.
    packet: [Event; PACKET],
    count: usize,
}

impl Driver {
    fn receive(&mut self, answers: &mut Answers) {
        let time_ns = sys::time::now_ns();
        // What finds no room waits in the device's memory until input has read.
        while self.source.room() >= PACKET {
            match self.device.next(time_ns) {
                Ok(Some(event)) => self.add(event),
                Ok(None) => break,
                Err(broken) => panic!("the device violates virtio: {broken:?}"),
            }
        }
        self.source.serve(answers);
    }

    fn add(&mut self, event: Event) {
        self.packet[self.count] = event;
        self.count += 1;
        if event.kind == kind::SYN || self.count == PACKET {
            self.source.push(&self.packet[..self.count], 0);
            self.count = 0;
        }
    }

    fn check(minor: u64) -> Result<(), Errno> {
        if minor == 0 { Ok(()) } else { Err(Errno::ENXIO) }
    }
}

impl CharDriver for Driver {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        Driver::check(request.minor).map(|()| 0)
    }

    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers) {
        match Driver::check(request.minor) {
            Ok(()) => self.source.read(held, client, request.caller, answers),
            Err(error) => return answers.give(held, Err(error)),
        }
        self.receive(answers);
    }

    fn write(&mut self, held: Held, _: &Write, _: Client, answers: &mut Answers) {
        answers.give(held, Err(Errno::EINVAL));
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        let result = Driver::check(request.minor).and_then(|()| match request.request {
            DESCRIBE => {
                let client = Client::new(held.requester(), request.grant, DESCRIPTION_BYTES as u64);
                client.put(0, &self.device.description().to_bytes())
            }
            SET_LEDS => self.device.set_lights(request.argument),
            _ => Err(Errno::ENOTTY),
        });
        answers.give(held, result.map(|()| 0));
    }

    fn poll(&mut self, held: Held, _: &Poll, answers: &mut Answers) {
        // input keeps a read in progress instead.
        answers.give(held, Err(Errno::ENOSYS));
    }

    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        self.source.cancel(requester, tag, answers);
    }

    fn interrupt(&mut self, _: u64, answers: &mut Answers) {
        self.receive(answers);
    }
}
