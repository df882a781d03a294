//! All terminals: what is saved when, who is woken, and the world that a terminal lives in.

use crate::ledger::{Ledger, Outcome};
use crate::pty::Pty;
use crate::ptys::Ptys;
use crate::saved::{Dirty, QUEUES, SETTINGS, SHARED};
use crate::serial::{SERIAL_LINES, TERMINALS};
use crate::signals::{Signal, Signals, Target};
use crate::terminal::{Lower, Terminal, World};
use abi::console::MINOR_TERMINAL;
use abi::{Endpoint, Errno, GrantId, Message, chardev};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, Ref, RefCell};
use recover::snapshot::{Reader, Snapshots, Writer};
use server::{Peer, Runtime, WaitList};

/// A terminal of a serial line, and the wait list of the tasks in `line`.
pub struct Line {
    pub terminal: RefCell<Terminal>,
    /// Woken when there may be output, commands, or room for input.
    pub changed: WaitList,
    /// The deadline for which a task sleeps.
    deadline_ns: Cell<Option<u64>>,
}

impl Line {
    /// The line of a terminal.
    fn new(terminal: Terminal) -> Self {
        let terminal = RefCell::new(terminal);
        Line { terminal, changed: WaitList::new(), deadline_ns: Cell::new(None) }
    }
}

/// All terminals.
pub struct Tty {
    pub runtime: Runtime,
    uart: Peer,
    console: Peer,
    /// The terminal that the screen shows.
    shown: Cell<usize>,
    lines: Vec<Line>,
    ptys: RefCell<Ptys>,
    signals: RefCell<Signals>,
    /// Signals of terminals' switches (`VT_SETMODE`) that have been taken from console.
    switch_signals: Cell<u64>,
    ledger: RefCell<Ledger>,
    /// What has changed in this turn, besides the ledger.
    dirty: RefCell<Dirty>,
    snapshots: RefCell<Snapshots>,
}

impl Tty {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(runtime: Runtime, uart: Peer, console: Peer, snapshots: Snapshots) -> Self {
        let serial = |reader: &mut Reader| Terminal::load(reader, Lower::Serial);
        let terminal = |index| snapshots.load(index, serial).unwrap_or_else(Terminal::new);
        let lines = (0..TERMINALS).map(|index| Line::new(terminal(index))).collect();
        let shared = |reader: &mut Reader| Some((reader.number()?, reader.number()?, Signals::load(reader)?));
        let (next_serial, switch_signals, signals) =
            snapshots.load(SHARED, shared).unwrap_or_else(|| (1, 0, Signals::new()));
        let pty = |number| {
            let pty = snapshots.load(SETTINGS + number, |reader| Pty::load_settings(reader, number))?;
            snapshots.load(QUEUES + number, |reader| pty.load_queues(reader))
        };
        Tty {
            runtime,
            uart,
            console,
            shown: Cell::new(SERIAL_LINES),
            lines,
            ptys: RefCell::new(Ptys::restore(pty, next_serial)),
            signals: RefCell::new(signals),
            switch_signals: Cell::new(switch_signals),
            ledger: RefCell::new(Ledger::load(|place| snapshots.note(place))),
            dirty: RefCell::new(Dirty::new()),
            snapshots: RefCell::new(snapshots),
        }
    }

    /// The terminals of serial lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// What is behind the terminal `index`, and its minor there: a serial line of uart, or a terminal of console.
    pub fn lower(&self, index: usize) -> (&Peer, u64) {
        match index.checked_sub(SERIAL_LINES) {
            None => (&self.uart, index as u64),
            Some(number) => (&self.console, MINOR_TERMINAL + number as u64),
        }
    }

    /// The index of the terminal that the screen shows.
    pub fn shown(&self) -> usize {
        self.shown.get()
    }

    /// Takes note of another one.
    pub fn set_shown(&self, index: usize) {
        self.shown.set(index);
    }

    /// The pseudo-terminals.
    pub fn ptys(&self) -> Ref<'_, Ptys> {
        self.ptys.borrow()
    }

    /// Makes a pseudo-terminal for the `user` who is accountable, whose node belongs to `uid`; returns its number.
    pub fn make_pty(self: &Rc<Self>, user: u32, uid: u32) -> Result<usize, Errno> {
        let number = self.ptys.borrow_mut().make(user, uid, sys::time::real_ns())?;
        [SHARED, QUEUES + number, SETTINGS + number].into_iter().for_each(|part| self.dirty.borrow_mut().add(part));
        Ok(number)
    }

    /// Returns how a request ended, or how far it has come, if it is known.
    pub fn outcome(&self, request: &Message) -> Option<Outcome> {
        self.ledger.borrow().find(request)
    }

    /// Forgets the outcomes of opens: vfs has said what is open.
    pub fn forget_opens(&self) {
        self.ledger.borrow_mut().forget_opens();
    }

    /// Saves the changes of this turn.
    pub fn preserve(&self) {
        let (mut dirty, mut ledger) = (self.dirty.borrow_mut(), self.ledger.borrow_mut());
        if dirty.is_empty() && !ledger.has_changes() {
            return;
        }
        let ptys = self.ptys.borrow();
        let save = |part, writer: &mut Writer| match part {
            SHARED => {
                writer.numbers([ptys.next_serial(), self.switch_signals.get()]);
                self.signals.borrow().save(writer);
            }
            SETTINGS.. => ptys.get(part - SETTINGS).into_iter().for_each(|pty| pty.save_settings(writer)),
            QUEUES.. => ptys.get(part - QUEUES).into_iter().for_each(|pty| pty.save_queues(writer)),
            _ => self.lines[part].terminal.borrow().save(writer),
        };
        self.snapshots.borrow_mut().save_with(dirty.take(), save, ledger.take_changes());
    }

    /// Returns the preserved memory of pseudo-terminals that have ended.
    pub fn trim(&self) {
        let snapshots = self.snapshots.borrow();
        self.ptys.borrow_mut().trim(|number| {
            snapshots.discard(QUEUES + number);
            snapshots.discard(SETTINGS + number);
        });
    }

    /// Queues a signal for pm.
    pub fn send(&self, signal: Signal) {
        self.signals.borrow_mut().add(signal);
        self.dirty.borrow_mut().add(SHARED);
        self.tell_pm();
    }

    /// How many signals of switches have been taken from console.
    pub fn switch_signals(&self) -> u64 {
        self.switch_signals.get()
    }

    /// Passes the next of these on: its number in the high half, the process in the low one.
    pub fn pass_switch_signal(&self, signal: u64) {
        self.switch_signals.set(self.switch_signals.get() + 1);
        self.send(Signal { number: (signal >> 32) as u32, target: Target::Process(signal as u32) });
    }

    /// Notifies pm if there are signals to fetch.
    pub fn tell_pm(&self) {
        if self.signals.borrow().is_empty() {
            return;
        }
        if let Err(error) = sys::ipc::notify(Endpoint::PM) {
            sys::log!("cannot notify pm of signals: {error}");
        }
    }

    /// Does something with a terminal, then wakes its tasks as needed: output to send, a deadline to wait for.
    pub fn with(self: &Rc<Self>, index: usize, act: impl FnOnce(&mut Terminal, &mut Outside)) {
        let line = &self.lines[index];
        act(&mut line.terminal.borrow_mut(), &mut Outside { tty: self });
        self.dirty.borrow_mut().add(index);
        line.changed.wake_all();
        self.wait_for_deadline(index);
    }

    /// Returns the first signal that pm has not dealt with, and its number; the last one that it has is number `done`.
    pub fn next_signal(&self, done: u64) -> Option<(u64, Signal)> {
        self.dirty.borrow_mut().add(SHARED);
        self.signals.borrow_mut().next(done).map(|(number, signal)| (number, *signal))
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

    /// Does something with a pseudo-terminal, which ends if nothing of it is open then. Its settings are saved, and its queues if they have
    /// changed.
    pub fn with_pty<R>(self: &Rc<Self>, number: usize, act: impl FnOnce(&mut Pty, &mut Outside) -> R) -> Option<R> {
        self.change_pty(number, |pty, world| {
            let before = pty.extent();
            let result = act(pty, world);
            (result, [true, pty.extent() != before])
        })
    }

    /// The same for a read or a write: its queues are saved, and its settings if what such a request changes of them has changed.
    pub fn with_queues<R>(self: &Rc<Self>, number: usize, act: impl FnOnce(&mut Pty, &mut Outside) -> R) -> Option<R> {
        self.change_pty(number, |pty, world| {
            let before = pty.state();
            let result = act(pty, world);
            (result, [pty.state() != before, true])
        })
    }

    /// The same for a request that changes nothing of what is saved.
    pub fn ask_pty<R>(self: &Rc<Self>, number: usize, act: impl FnOnce(&mut Pty, &mut Outside) -> R) -> Option<R> {
        self.change_pty(number, |pty, world| (act(pty, world), [false, false]))
    }

    /// Does something with a pseudo-terminal; `act` says whether settings and queues are to be saved.
    fn change_pty<R>(
        self: &Rc<Self>,
        number: usize,
        act: impl FnOnce(&mut Pty, &mut Outside) -> (R, [bool; 2]),
    ) -> Option<R> {
        let mut ptys = self.ptys.borrow_mut();
        let pty = ptys.get_mut(number)?;
        let (result, changed) = act(pty, &mut Outside { tty: self });
        let deadline_ns = pty.take_new_deadline();
        if pty.is_unused() {
            ptys.remove(number);
        }
        for (part, _) in [SETTINGS, QUEUES].into_iter().zip(changed).filter(|(_, changed)| *changed) {
            self.dirty.borrow_mut().add(part + number);
        }
        drop(ptys);
        deadline_ns.into_iter().for_each(|deadline_ns| self.settle_pty_at(number, deadline_ns));
        Some(result)
    }

    /// Looks at the requests of a pseudo-terminal again at the time of a VTIME.
    fn settle_pty_at(self: &Rc<Self>, number: usize, deadline_ns: u64) {
        let tty = self.clone();
        self.runtime.spawn(async move {
            tty.runtime.sleep_until(deadline_ns).await;
            tty.with_queues(number, |pty, world| pty.settle(world));
        });
    }

    pub fn answer(&self, request: &Message, result: Result<u64, Errno>) {
        // A repeated poll reports the state at that time.
        if request.tag() != 0 && request.label != chardev::Poll::LABEL {
            self.note(request, Outcome::Result(result));
        }
        self.runtime.reply(request, &request.reply(result));
    }

    pub fn note(&self, request: &Message, outcome: Outcome) {
        self.ledger.borrow_mut().note(request, outcome);
    }
}

/// The real `World` of a terminal.
pub struct Outside<'a> {
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
        self.tty.send(Signal { number: signal, target: Target::Group(group) });
    }

    fn probe(&mut self, pid: u32) {
        self.tty.send(Signal { number: 0, target: Target::Process(pid) });
    }

    fn judge(&mut self, pid: u32) {
        self.tty.send(Signal { number: 0, target: Target::Changes(pid) });
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}
