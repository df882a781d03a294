//! uart: the serial lines COM1 to COM3 (16550) as character devices 0 to 2, for tty.
//!
//! A read is answered when bytes have come; a write as soon as the chip has taken at least one byte, with how many it took.
//! So this driver holds no output, and its death loses none. A line whose chip is missing answers `ENXIO`.
//!
//! * `chip`: the 16550 itself; `line`: the requests that wait for one chip; this file: messages and interrupts.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod chip;
mod line;

use abi::chardev::{Open, Poll, Read, Write};
use abi::{Endpoint, Errno};
use chip::{Chip, Registers};
use driver::chardev::{Answers, CharDriver, Held};
use driver::{Client, Interrupt, Ports};
use line::Line;

sys::program!(main);

/// First port and interrupt line of each chip: the PC's, but COM3 has a line of its own.
const CHIPS: [(u16, u8); 3] = [(0x3f8, 4), (0x2f8, 3), (0x3e8, 5)];
const REGISTERS: u16 = 8;

fn main(_: sys::Start) {
    let mut hook = 0..;
    let lines = CHIPS.map(|(port, irq)| {
        let hook = hook.next().unwrap_or_default();
        find(port).and_then(|chip| Interrupt::edge(irq, hook).map(|_| Line::new(chip)))
    });
    if let [Err(error), Err(_), Err(_)] = &lines {
        server::not_ready(*error);
    }
    driver::chardev::serve(Uart { lines });
}

fn find(port: u16) -> Result<Chip<Window>, Errno> {
    Chip::find(Window(Ports::new(port, REGISTERS)))
}

/// A chip's registers.
struct Window(Ports);

impl Registers for Window {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        self.0.read8(register)
    }
    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        self.0.write8(register, value)
    }
}

/// The lines, or why one is missing.
struct Uart {
    lines: [Result<Line<Window>, Errno>; CHIPS.len()],
}

impl Uart {
    fn line(&mut self, minor: u64) -> Result<&mut Line<Window>, Errno> {
        let line = usize::try_from(minor).ok().and_then(|minor| self.lines.get_mut(minor));
        line.and_then(|line| line.as_mut().ok()).ok_or(Errno::ENXIO)
    }
}

impl CharDriver for Uart {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        self.line(request.minor).map(|_| 0)
    }

    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers) {
        match self.line(request.minor) {
            Ok(line) => line.read(held, client, answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    fn write(&mut self, held: Held, request: &Write, client: Client, answers: &mut Answers) {
        match self.line(request.minor) {
            Ok(line) => line.write(held, client, answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    fn poll(&mut self, held: Held, _: &Poll, answers: &mut Answers) {
        // tty keeps a read waiting instead.
        answers.give(held, Err(Errno::ENOSYS));
    }

    fn cancel(&mut self, asker: Endpoint, tag: u64, answers: &mut Answers) {
        for line in self.lines.iter_mut().flatten() {
            line.cancel(asker, tag, answers);
        }
    }

    fn interrupt(&mut self, hooks: u64, answers: &mut Answers) {
        for (hook, line) in self.lines.iter_mut().enumerate() {
            if let Ok(line) = line
                && hooks & 1 << hook != 0
            {
                line.interrupt(answers);
            }
        }
    }
}
