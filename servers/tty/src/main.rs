//! tty: terminals. Line discipline, job control and window size, over the serial lines that uart drives and in pseudo-terminals.
//!
//! vfs speaks `chardev` to it, and `fs` for /dev/pts; pm fetches signals with `tty::NextEvent`. Each serial terminal has tasks that move
//! bytes from and to uart; everything else happens within the handling of one message. tty waits for nobody but vfs, to take a reply.
//!
//! Terminals survive this process: snapshots of them are in preserved memory, `ledger` knows repeated requests, and vfs repeats those
//! that waited.
//!
//! * `terminal`, `control`: a terminal and its ioctls; `discipline`, `output`, `termios`: what they are made of;
//! * `pty`, `ptys`: pseudo-terminals; `packets`: their packet mode; `devpts`: their nodes;
//! * `line`: the tasks that speak with uart; `serial`: their commands besides bytes;
//! * `ledger`: results of requests, for a successor; `saved`: what is preserved;
//! * `device`: requests of vfs; `world`: what a terminal needs from outside; this file: the parts, and signals for pm.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod control;
mod device;
mod devpts;
mod discipline;
mod ledger;
mod line;
mod output;
mod packets;
mod pty;
mod ptys;
mod saved;
mod serial;
mod terminal;
mod termios;
mod waiting;
mod world;

use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, GrantId, Message, Name, chardev, tty};
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::cell::RefCell;
use devpts::DevPts;
use fs::{preserve::VolumeMemory, server::MountRequest, server::Server};
use ledger::{Ledger, Outcome};
use line::Line;
use pty::Pty;
use ptys::Ptys;
use recover::snapshot::{Reader, Snapshots, Writer};
use saved::{Dirty, PTYS, SHARED};
use server::{Handlers, Peer, Runtime, Service, Step};
use sys::fallible::{self, TryQueue};
use terminal::{Lower, Terminal, World};

sys::program!(main);

/// Serial lines with a terminal: COM1 to COM3.
const TERMINALS: usize = 3;
/// Requests that uart may hold: a read and a write of each terminal.
const UART_WINDOW: usize = 2 * TERMINALS;
/// Limit of signals that wait for pm.
const SIGNALS: usize = 128;

fn main(_: sys::Start) {
    let runtime = Runtime::new();
    let name = Name::new("uart").expect("a short name");
    let uart = Peer::connect(&runtime, name, UART_WINDOW).expect("the system file has no uart");
    let tty = Rc::new(Tty::new(runtime.clone(), uart, saved::open()));
    for index in 0..TERMINALS {
        line::start(&tty, index);
    }
    tty.tell_pm();
    // Every mount shows the same directory, which is there already.
    let mount: Mount = |_, _| Err(Errno::ENODEV);
    let directory = RefCell::new(Server::mounted([DevPts::new(tty.clone(), sys::time::real_ns())], mount));
    tty.clone().runtime.serve(Serving { tty, directory })
}

type Mount = fn(&MountRequest, Option<VolumeMemory>) -> Result<DevPts, Errno>;

/// What messages are for: the terminals, or the directory of pseudo-terminals.
struct Serving {
    tty: Rc<Tty>,
    directory: RefCell<Server<DevPts, Mount>>,
}

impl Handlers for Serving {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        if abi::fs::Request::decode(message).is_some() {
            return self.directory.borrow_mut().request(message).done().into();
        }
        self.tty.request(message);
        Step::Later
    }

    fn reply(&self, reply: Message) -> Message {
        reply
    }

    fn notified(&self, from: Endpoint, _: Notify) {
        if from.slot() == slot::RS {
            self.tty.trim();
        }
    }

    fn before_sending(&self, _: impl Iterator<Item = (Endpoint, u64)>) {
        self.tty.preserve();
    }
}

/// All terminals.
struct Tty {
    runtime: Runtime,
    uart: Peer,
    lines: Vec<Line>,
    ptys: RefCell<Ptys>,
    shared: RefCell<Shared>,
    ledger: RefCell<Ledger>,
    /// What has changed in this turn, besides the ledger.
    dirty: RefCell<Dirty>,
    snapshots: RefCell<Snapshots>,
}

/// The signals of terminals.
struct Shared {
    /// Signals that pm has not fetched yet.
    signals: VecDeque<Signal>,
    /// pm has fetched the first signal. It is kept until pm asks for the next: better twice than never.
    first_is_told: bool,
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
        Shared { signals, first_is_told: false }
    }

    /// Adds a signal for pm. One that pm has not fetched yet stands for both, as pending signals do; what a full queue drops is a
    /// key or a denial whose group gets too many already.
    fn add_signal(&mut self, signal: Signal) {
        let untold = self.signals.iter().skip(self.first_is_told.into());
        if untold.clone().any(|other| *other == signal) || self.signals.len() == SIGNALS {
            return;
        }
        self.signals.push_back_reserved(signal);
    }

    fn save(&self, writer: &mut Writer) {
        writer.number(self.signals.len() as u64);
        for signal in &self.signals {
            writer.number(u64::from(signal.number) << 32 | u64::from(signal.group));
        }
    }

    fn load(reader: &mut Reader) -> Option<Shared> {
        let mut shared = Shared::new();
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
        self.first_is_told = !self.signals.is_empty();
        self.signals.front()
    }
}

impl Tty {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn new(runtime: Runtime, uart: Peer, snapshots: Snapshots) -> Self {
        let serial = |reader: &mut Reader| Terminal::load(reader, Lower::Serial);
        let terminal = |index| snapshots.load(index, serial).unwrap_or_else(Terminal::new);
        let lines = (0..TERMINALS).map(|index| Line::new(terminal(index))).collect();
        let shared = snapshots.load(SHARED, |reader| Some((reader.number()?, Shared::load(reader)?)));
        let (next_serial, shared) = shared.unwrap_or_else(|| (1, Shared::new()));
        let pty = |number| snapshots.load(PTYS + number, |reader| Pty::load(reader, number));
        Tty {
            runtime,
            uart,
            lines,
            ptys: RefCell::new(Ptys::restore(pty, next_serial)),
            shared: RefCell::new(shared),
            ledger: RefCell::new(Ledger::load(|place| snapshots.note(place))),
            dirty: RefCell::new(Dirty::new()),
            snapshots: RefCell::new(snapshots),
        }
    }

    /// Saves the changes of this turn.
    fn preserve(&self) {
        let (mut dirty, mut ledger) = (self.dirty.borrow_mut(), self.ledger.borrow_mut());
        if dirty.is_empty() && !ledger.has_changes() {
            return;
        }
        let ptys = self.ptys.borrow();
        let save = |part, writer: &mut Writer| match part {
            SHARED => {
                writer.number(ptys.next_serial());
                self.shared.borrow().save(writer);
            }
            PTYS.. => ptys.get(part - PTYS).into_iter().for_each(|pty| pty.save(writer)),
            _ => self.lines[part].terminal.borrow().save(writer),
        };
        self.snapshots.borrow_mut().save_with(dirty.take(), save, ledger.take_changes());
    }

    /// Returns the preserved memory of pseudo-terminals that have ended.
    fn trim(&self) {
        let snapshots = self.snapshots.borrow();
        self.ptys.borrow_mut().trim(|number| snapshots.discard(PTYS + number));
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
                self.dirty.borrow_mut().add(SHARED);
                let reply = match self.shared.borrow_mut().next_signal() {
                    Some(&Signal { number, group }) => tty::NextEvent::reply(message, 0, number.into(), group.into()),
                    None => message.reply(Err(Errno::ENOENT)),
                };
                self.runtime.reply(message, &reply);
            }
            tty::Request::SessionEnd(end) => {
                self.session_end(end.session as u32);
                self.answer(message, Ok(0));
            }
            tty::Request::Drain(_) => line::drain(self, message),
        }
    }

    /// The leader of a session has ended: its terminal is free.
    fn session_end(self: &Rc<Self>, session: u32) {
        for index in 0..TERMINALS {
            self.with(index, |terminal, world| terminal.session_end(world, session));
        }
        let end = self.ptys.borrow().end();
        for number in 0..end {
            if session != 0 && self.ptys.borrow().get(number).is_some_and(|pty| pty.session() == session) {
                self.with_pty(number, |pty, world| pty.session_end(world, session));
            }
        }
    }

    /// Does something with a terminal, then wakes its tasks as needed: output to send, a deadline to wait for.
    fn with(self: &Rc<Self>, index: usize, act: impl FnOnce(&mut Terminal, &mut Outside)) {
        let line = &self.lines[index];
        act(&mut line.terminal.borrow_mut(), &mut Outside { tty: self });
        self.dirty.borrow_mut().add(index);
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

    /// Does something with a pseudo-terminal, which ends if nothing of it is open then.
    fn with_pty<R>(self: &Rc<Self>, number: usize, act: impl FnOnce(&mut Pty, &mut Outside) -> R) -> Option<R> {
        let mut ptys = self.ptys.borrow_mut();
        let pty = ptys.get_mut(number)?;
        let result = act(pty, &mut Outside { tty: self });
        let deadline_ns = pty.take_new_deadline();
        if pty.is_unused() {
            ptys.remove(number);
        }
        self.dirty.borrow_mut().add(PTYS + number);
        drop(ptys);
        deadline_ns.into_iter().for_each(|deadline_ns| self.settle_pty_at(number, deadline_ns));
        Some(result)
    }

    /// Looks at the requests of a pseudo-terminal again at the time of a VTIME.
    fn settle_pty_at(self: &Rc<Self>, number: usize, deadline_ns: u64) {
        let tty = self.clone();
        self.runtime.spawn(async move {
            tty.runtime.sleep_until(deadline_ns).await;
            tty.with_pty(number, |pty, world| pty.settle(world));
        });
    }

    fn answer(&self, request: &Message, result: Result<u64, Errno>) {
        // A repeated poll reports the state at that time.
        if request.tag() != 0 && request.label != chardev::Poll::LABEL {
            self.note(request, Outcome::Result(result));
        }
        self.runtime.reply(request, &request.reply(result));
    }

    fn note(&self, request: &Message, outcome: Outcome) {
        self.ledger.borrow_mut().note(request, outcome);
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
        self.tty.dirty.borrow_mut().add(SHARED);
        self.tty.tell_pm();
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}
