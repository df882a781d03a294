//! All terminals: what is saved when, who is woken, and the world that a terminal lives in.

use crate::ledger::{Ledger, Outcome};
use crate::pty::Pty;
use crate::ptys::Ptys;
use crate::saved::{Dirty, PTYS, SHARED};
use crate::serial::{SERIAL_LINES, TERMINALS};
use crate::signals::{Signal, Signals};
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
    lines: Vec<Line>,
    ptys: RefCell<Ptys>,
    signals: RefCell<Signals>,
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
        let saved = snapshots.load(SHARED, |reader| Some((reader.number()?, Signals::load(reader)?)));
        let (next_serial, signals) = saved.unwrap_or_else(|| (1, Signals::new()));
        let pty = |number| snapshots.load(PTYS + number, |reader| Pty::load(reader, number));
        Tty {
            runtime,
            uart,
            console,
            lines,
            ptys: RefCell::new(Ptys::restore(pty, next_serial)),
            signals: RefCell::new(signals),
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

    /// The pseudo-terminals.
    pub fn ptys(&self) -> Ref<'_, Ptys> {
        self.ptys.borrow()
    }

    /// Makes a pseudo-terminal for the `user` who is accountable, whose node belongs to `uid`; returns its number.
    pub fn make_pty(self: &Rc<Self>, user: u32, uid: u32) -> Result<usize, Errno> {
        let number = self.ptys.borrow_mut().make(user, uid, sys::time::real_ns())?;
        self.with_pty(number, |_, _| ());
        self.dirty.borrow_mut().add(SHARED);
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
                writer.number(ptys.next_serial());
                self.signals.borrow().save(writer);
            }
            PTYS.. => ptys.get(part - PTYS).into_iter().for_each(|pty| pty.save(writer)),
            _ => self.lines[part].terminal.borrow().save(writer),
        };
        self.snapshots.borrow_mut().save_with(dirty.take(), save, ledger.take_changes());
    }

    /// Returns the preserved memory of pseudo-terminals that have ended.
    pub fn trim(&self) {
        let snapshots = self.snapshots.borrow();
        self.ptys.borrow_mut().trim(|number| snapshots.discard(PTYS + number));
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

    /// Returns the next signal, after pm has asked for it.
    pub fn next_signal(&self) -> Option<Signal> {
        self.dirty.borrow_mut().add(SHARED);
        self.signals.borrow_mut().next().copied()
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
    pub fn with_pty<R>(self: &Rc<Self>, number: usize, act: impl FnOnce(&mut Pty, &mut Outside) -> R) -> Option<R> {
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
        self.tty.signals.borrow_mut().add(Signal { number: signal, group });
        self.tty.dirty.borrow_mut().add(SHARED);
        self.tty.tell_pm();
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}
