//! tty: terminals. Line discipline, job control and window size over the serial lines that uart drives.
//!
//! vfs speaks `chardev` to it, pm fetches signals with `tty::NextEvent`. Each terminal has two tasks that move bytes from and to uart;
//! everything else happens within the handling of one message. tty waits for nobody.
//!
//! Terminals survive this process: snapshots of them are in preserved memory, `ledger` knows repeated requests, and vfs repeats those
//! that waited.
//!
//! * `terminal`, `control`: a terminal and its ioctls; `discipline`, `output`, `termios`: what they are made of;
//! * `line`: the tasks that speak with uart; `serial`: their commands besides bytes;
//! * `ledger`: results of requests, for a successor;
//! * this file: from messages to terminals, and what a terminal needs from outside.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod control;
mod discipline;
mod ledger;
mod line;
mod output;
mod serial;
mod terminal;
mod termios;
mod waiting;

use abi::{Endpoint, Errno, GrantId, Message, Name, chardev, tty};
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::cell::RefCell;
use ledger::{Ledger, Outcome};
use line::Line;
use recover::records::Found;
use recover::snapshot::{Reader, Snapshots, Writer};
use server::{Peer, Runtime, Step};
use sys::fallible::{self, TryQueue};
use sys::keep::Keep;
use terminal::{Caller, Terminal, World};

sys::program!(main);

/// Serial lines with a terminal: COM1 to COM3.
const TERMINALS: usize = 3;
/// Requests that uart may hold: a read and a write of each terminal.
const UART_WINDOW: usize = 2 * TERMINALS;
/// The preserved part that all terminals share, behind theirs.
const SHARED: usize = TERMINALS;
/// Parts of a snapshot: each terminal, and what they share.
const PARTS: usize = TERMINALS + 1;
/// Most bytes of a part: full queues in both directions, where a tab may have become eight blanks.
const PART_BYTES: usize = 40 << 10;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 2;
/// Minor numbers (devices.txt of Linux): the controlling terminal, the console, the first serial line.
/// Limit of signals that wait for pm.
const SIGNALS: usize = 128;

const MINOR_CONTROLLING: u64 = 0;
const MINOR_CONSOLE: u64 = 1;
const MINOR_SERIAL: u64 = 64;

fn main(_: sys::Start) {
    let runtime = Runtime::new();
    let name = Name::new("uart").expect("a short name");
    let uart = Peer::connect(&runtime, name, UART_WINDOW).expect("the system file has no uart");
    let tty = Rc::new(Tty::new(runtime.clone(), uart, open_snapshots()));
    for index in 0..TERMINALS {
        line::start(&tty, index);
    }
    tty.tell_pm();
    let preserving = tty.clone();
    runtime.before_sending(move |_| preserving.preserve());
    let handle = |message: &Message| {
        tty.request(message);
        Step::Later
    };
    runtime.serve(handle, |answer| answer, |_, _| {});
}

/// The predecessor's terminals in preserved memory, so that they go on where it died. A turn that changes some saves them before its
/// answers leave: nobody hears of anything that a death could undo.
fn open_snapshots() -> Snapshots {
    let keep = Keep::take(Snapshots::bytes(PARTS, PART_BYTES)).expect("preserved memory is taken once");
    let (snapshots, found) = Snapshots::open(keep, LAYOUT, PARTS);
    if found == Found::Damaged {
        sys::log!("the preserved state is damaged: all terminals are reset");
    }
    snapshots
}

/// All terminals.
struct Tty {
    runtime: Runtime,
    uart: Peer,
    lines: Vec<Line>,
    shared: RefCell<Shared>,
    snapshots: RefCell<Snapshots>,
}

/// What terminals share.
struct Shared {
    /// Signals that pm has not fetched yet.
    signals: VecDeque<Signal>,
    /// pm has fetched the first signal. It is kept until pm asks for the next: better twice than never.
    first_is_told: bool,
    ledger: Ledger,
    dirty: bool,
}

/// A signal for a process group.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Signal {
    number: u32,
    group: u32,
}

impl Shared {
    fn new() -> Shared {
        let signals = fallible::queue(SIGNALS).expect("tty starts with memory for its queues");
        Shared { signals, first_is_told: false, ledger: Ledger::new(), dirty: false }
    }

    /// Adds a signal for pm. One that pm has not fetched yet stands for both, as pending signals do; what a full queue drops is a
    /// key or a denial whose group gets too many already.
    fn add_signal(&mut self, signal: Signal) {
        let untold = self.signals.iter().skip(self.first_is_told.into());
        if untold.clone().any(|other| *other == signal) || self.signals.len() == SIGNALS {
            return;
        }
        self.signals.push_back_reserved(signal);
        self.dirty = true;
    }

    fn save(&self, writer: &mut Writer) {
        self.ledger.save(writer);
        writer.number(self.signals.len() as u64);
        for signal in &self.signals {
            writer.number(u64::from(signal.number) << 32 | u64::from(signal.group));
        }
    }

    fn load(reader: &mut Reader) -> Option<Shared> {
        let mut shared = Shared { ledger: Ledger::load(reader)?, ..Shared::new() };
        for _ in 0..reader.number()?.min(SIGNALS as u64) {
            let packed = reader.number()?;
            shared.signals.push_back_reserved(Signal { number: (packed >> 32) as u32, group: packed as u32 });
        }
        Some(shared)
    }

    /// The next signal, after pm has asked for it.
    fn next_signal(&mut self) -> Option<&Signal> {
        if self.first_is_told {
            self.signals.pop_front();
        }
        self.dirty = true;
        self.first_is_told = !self.signals.is_empty();
        self.signals.front()
    }
}

impl Tty {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn new(runtime: Runtime, uart: Peer, snapshots: Snapshots) -> Self {
        let terminal = |index| snapshots.load(index, Terminal::load).unwrap_or_else(Terminal::new);
        let lines = (0..TERMINALS).map(|index| Line::new(terminal(index))).collect();
        let shared = snapshots.load(SHARED, Shared::load).unwrap_or_else(Shared::new);
        Tty { runtime, uart, lines, shared: RefCell::new(shared), snapshots: RefCell::new(snapshots) }
    }

    /// Saves the changes of this turn.
    fn preserve(&self) {
        let mut shared = self.shared.borrow_mut();
        let mut dirty = [false; PARTS];
        for (dirty, line) in dirty.iter_mut().zip(&self.lines) {
            *dirty = line.dirty.take();
        }
        dirty[SHARED] = core::mem::take(&mut shared.dirty);
        if dirty == [false; PARTS] {
            return;
        }
        let changed = (0..PARTS).filter(|part| dirty[*part]);
        self.snapshots.borrow_mut().save(changed, |part, writer| match self.lines.get(part) {
            Some(line) => line.terminal.borrow().save(writer),
            None => shared.save(writer),
        });
    }

    /// Notifies pm if there are signals to fetch.
    fn tell_pm(&self) {
        if self.shared.borrow().signals.is_empty() {
            return;
        }
        if let Err(error) = sys::ipc::notify(Endpoint::PM) {
            sys::log!("cannot notify pm of signals: {error}");
        }
    }

    /// Carries out a request; the reply is sent now or later.
    fn request(self: &Rc<Self>, message: &Message) {
        if let Some(request) = tty::Request::decode(message) {
            self.pm_request(message, request);
        } else if let Some(request) = chardev::Request::decode(message) {
            self.device_request(message, request);
        } else {
            self.answer(message, Err(Errno::ENOSYS));
        }
    }

    fn pm_request(self: &Rc<Self>, message: &Message, request: tty::Request) {
        if message.source.slot() != Endpoint::PM.slot() {
            return self.answer(message, Err(Errno::EPERM));
        }
        match request {
            tty::Request::NextEvent(_) => {
                let reply = match self.shared.borrow_mut().next_signal() {
                    Some(&Signal { number, group }) => tty::NextEvent::reply(message, 0, number.into(), group.into()),
                    None => message.reply(Err(Errno::ENOENT)),
                };
                self.runtime.reply(message, &reply);
            }
            tty::Request::SessionEnd(end) => {
                for index in 0..TERMINALS {
                    self.with(index, |terminal, world| terminal.session_end(world, end.session as u32));
                }
                self.answer(message, Ok(0));
            }
            tty::Request::Drain(_) => line::drain(self, message),
        }
    }

    fn device_request(self: &Rc<Self>, message: &Message, request: chardev::Request) {
        use chardev::Request;
        if let Request::Cancel(cancel) = request {
            for index in 0..TERMINALS {
                self.with(index, |terminal, world| terminal.cancel(world, message.source, cancel.tag));
            }
            return;
        }
        let done = match self.shared.borrow().ledger.find(message) {
            Some(Outcome::Result(result)) => return self.runtime.reply(message, &message.reply(result)),
            Some(Outcome::Progress(done)) => done as usize,
            None => 0,
        };
        let (minor, session) = match request {
            Request::Open(open) => (open.minor, open.session as u32),
            Request::Close(close) => (close.minor, 0),
            Request::Read(read) => (read.minor, Caller::from_word(read.caller).session),
            Request::Write(write) => (write.minor, Caller::from_word(write.caller).session),
            Request::Control(control) => (control.minor, control.session as u32),
            Request::Poll(poll) => (poll.minor, 0),
            Request::Cancel(_) => return,
        };
        let Some(index) = self.terminal_of(minor, session) else {
            return self.answer(message, Err(Errno::ENXIO));
        };
        for line in &self.lines {
            line.terminal.borrow_mut().forget_stale(message);
        }
        self.with(index, |terminal, world| match request {
            Request::Open(open) => {
                let caller = Caller { group: open.group as u32, session: open.session as u32 };
                let flags = terminal.open(open.flags, open.pid as u32, caller);
                world.answer(message, Ok(flags));
            }
            Request::Close(_) | Request::Cancel(_) => world.answer(message, Ok(0)),
            Request::Read(read) => terminal.read(world, message, read),
            Request::Write(write) => terminal.write(world, message, write, done),
            Request::Control(control) => terminal.control(world, message, control),
            Request::Poll(poll) => terminal.poll(world, message, poll),
        });
    }

    /// Which terminal a minor number means; /dev/tty is the session's.
    fn terminal_of(&self, minor: u64, session: u32) -> Option<usize> {
        match minor {
            MINOR_CONSOLE => Some(0),
            MINOR_CONTROLLING if session != 0 => {
                self.lines.iter().position(|line| line.terminal.borrow().session == session)
            }
            _ => minor.checked_sub(MINOR_SERIAL).map(|index| index as usize).filter(|&index| index < TERMINALS),
        }
    }

    /// Does something with a terminal, then wakes its tasks as needed: output to send, a deadline to wait for.
    fn with(self: &Rc<Self>, index: usize, act: impl FnOnce(&mut Terminal, &mut Outside)) {
        let line = &self.lines[index];
        act(&mut line.terminal.borrow_mut(), &mut Outside { tty: self });
        line.dirty.set(true);
        line.changed.wake_all();
        self.wait_for_deadline(index);
    }

    /// Arms the timer for the terminal's next VTIME.
    fn wait_for_deadline(self: &Rc<Self>, index: usize) {
        let line = &self.lines[index];
        let deadline = line.terminal.borrow().deadline_ns();
        if deadline == line.deadline_ns.get() {
            return;
        }
        line.deadline_ns.set(deadline);
        if let Some(deadline_ns) = deadline {
            let tty = self.clone();
            self.runtime.spawn(async move {
                tty.runtime.sleep_until(deadline_ns).await;
                tty.with(index, |terminal, world| terminal.settle(world));
            });
        }
    }

    fn answer(&self, request: &Message, result: Result<u64, Errno>) {
        // A repeated poll reports the state at that time.
        if request.tag() != 0 && request.label != chardev::Poll::LABEL {
            self.note(request, Outcome::Result(result));
        }
        self.runtime.reply(request, &request.reply(result));
    }

    fn note(&self, request: &Message, outcome: Outcome) {
        let mut shared = self.shared.borrow_mut();
        shared.ledger.note(request, outcome);
        shared.dirty = true;
    }
}

/// The real `World` of a terminal.
struct Outside<'a> {
    tty: &'a Tty,
}

impl World for Outside<'_> {
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        sys::copy::to_grant(request.source, grant, 0, data)
    }

    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        sys::copy::from_grant(request.source, grant, offset, buffer)
    }

    fn progress(&mut self, request: &Message, bytes: u64) {
        self.tty.note(request, Outcome::Progress(bytes));
    }

    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.tty.answer(request, result);
    }

    fn signal(&mut self, signal: u32, group: u32) {
        {
            let mut shared = self.tty.shared.borrow_mut();
            shared.add_signal(Signal { number: signal, group });
        }
        self.tty.tell_pm();
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}
