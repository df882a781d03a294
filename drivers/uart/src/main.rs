//! uart: the serial lines COM1 to COM3 (16550) as character devices 0 to 2, for tty.
//!
//! A read completes when bytes have arrived; a write as soon as the chip has accepted at least one byte, with the number accepted.
//! Bytes received and sent are counted in preserved memory, so that a crash of this driver or of tty neither loses nor duplicates a
//! byte, except one in the very instruction that moves it. Requests to a line without chip fail with `ENXIO`.
//!
//! * `chip`: the 16550 itself; `settings`: speed and form; `store`: what is preserved; `line`: the requests that wait for one chip;
//!   `measure`: what register accesses cost, for a benchmark; this file: messages and interrupts.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod chip;
mod line;
mod measure;
mod settings;
mod store;

use abi::chardev::{Control, Open, Poll, Read, Write};
use abi::{Endpoint, Errno};
use chip::Registers;
use driver::chardev::{Answers, CharDriver, Held};
use driver::{Client, Interrupt, Ports};
use line::Line;
use measure::Measured;
use store::{STORE_BYTES, Store};
use sys::keep::Keep;

sys::program!(main);

/// First port and interrupt line of each chip: the PC's, but COM3 has a line of its own.
const CHIPS: [(u16, u8); 3] = [(0x3f8, 4), (0x2f8, 3), (0x3e8, 5)];
const REGISTERS: u16 = 8;

/// Polling interval of a drain, in ns.
const DRAIN_POLL_NS: u64 = 1_000_000;

fn main(start: sys::Start) {
    match start.argument("measure") {
        Some("ports") => serve(|port| Measured::new(window(port), port)),
        _ => serve(window),
    }
}

fn window(first_port: u16) -> Window {
    Window(Ports::new(first_port, REGISTERS))
}

/// Serves the chips behind these registers, forever.
fn serve<R: Registers>(registers: impl Fn(u16) -> R) -> ! {
    let mut keep = Keep::take(CHIPS.len() * STORE_BYTES).expect("preserved memory is taken once");
    let mut index = 0..;
    let lines = CHIPS.map(|(port, irq)| {
        let index = index.next().unwrap_or_default();
        // The interrupt is registered first, so that none of the chip is lost.
        Interrupt::edge(irq, index as u32)?;
        Line::find(registers(port), Store::open(&mut keep, index))
    });
    if let [Err(error), Err(_), Err(_)] = &lines {
        server::not_ready(*error);
    }
    driver::chardev::serve(Uart { lines, keep });
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

/// The lines.
struct Uart<R: Registers> {
    /// Each line, or the error of its initialisation.
    lines: [Result<Line<R>, Errno>; CHIPS.len()],
    keep: Keep,
}

impl<R: Registers> Uart<R> {
    fn line(&mut self, minor: u64) -> Result<(&mut Line<R>, Store<'_>), Errno> {
        let index = usize::try_from(minor).map_err(|_| Errno::ENXIO)?;
        let line = self.lines.get_mut(index).and_then(|line| line.as_mut().ok()).ok_or(Errno::ENXIO)?;
        Ok((line, Store::open(&mut self.keep, index)))
    }

    /// Polls the drains in progress: no interrupt signals that the last character has been sent.
    fn watch_drains(&mut self) {
        if self.lines.iter().flatten().any(Line::has_drains) {
            let soon = sys::time::now_ns() + DRAIN_POLL_NS;
            sys::time::set_alarm(soon).expect("uart needs the kernel call SetAlarm");
        }
    }
}

impl<R: Registers> CharDriver for Uart<R> {
    fn open(&mut self, request: &Open) -> Result<u64, Errno> {
        self.line(request.minor).map(|_| 0)
    }

    fn read(&mut self, held: Held, request: &Read, client: Client, answers: &mut Answers) {
        match self.line(request.minor) {
            Ok((line, store)) => line.read(store, held, client, request.caller, answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    fn write(&mut self, held: Held, request: &Write, client: Client, answers: &mut Answers) {
        match self.line(request.minor) {
            Ok((line, store)) => line.write(store, held, client, request.caller, answers),
            Err(error) => answers.give(held, Err(error)),
        }
    }

    fn control(&mut self, held: Held, request: &Control, answers: &mut Answers) {
        match self.line(request.minor) {
            Ok((line, store)) => line.control(store, held, request, answers),
            Err(error) => answers.give(held, Err(error)),
        }
        self.watch_drains();
    }

    fn poll(&mut self, held: Held, _: &Poll, answers: &mut Answers) {
        // tty keeps a read in progress instead.
        answers.give(held, Err(Errno::ENOSYS));
    }

    fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        for line in self.lines.iter_mut().flatten() {
            line.cancel(requester, tag, answers);
        }
    }

    fn interrupt(&mut self, hooks: u64, answers: &mut Answers) {
        for minor in (0..CHIPS.len() as u64).filter(|hook| hooks & 1 << hook != 0) {
            if let Ok((line, store)) = self.line(minor) {
                line.interrupt(store, answers);
            }
        }
    }

    fn alarm(&mut self, _: u64, answers: &mut Answers) {
        for line in self.lines.iter_mut().flatten() {
            line.serve_drains(answers);
        }
        self.watch_drains();
    }
}
