//! Notifications: pm's alarm, and events of vfs and tty, which are fetched one by one.
//!
//! An event comes again until pm has fetched the next one, naming the number of this one. So a signal is made pending first, then the event counts
//! as dealt with, then the signal takes effect, which a successor of a pm that dies meanwhile sees to: it comes neither twice nor never.

use crate::pm::Pm;
use crate::state::capabilities::Capabilities;
use crate::state::credentials::{Credentials, Ids};
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::process::Life;
use crate::state::signal::info::code;
use crate::state::signal::{Set, SigInfo, Signal};
use crate::state::thread::Doing;
use crate::system::{FileEvent, System, TerminalEvent};
use abi::endpoint::slot;
use abi::{Endpoint, Errno, tty, vfs};

impl<S: System> Pm<S> {
    /// Handles a notification.
    pub fn handle_notification(&mut self, source: Endpoint) {
        let (now_ns, _) = self.programs.system.time_ns();
        self.random.stir(now_ns);
        match source.slot() {
            slot::CLOCK => self.alarm_fired(),
            slot::VFS => self.file_events(),
            slot::TTY => self.terminal_events(),
            slot::RS => self.programs.sample_load(now_ns),
            _ => {}
        }
        self.keep_alarm();
    }

    /// vfs has events: images for programs that wait in `execve`, signals, the end of a sync.
    pub fn file_events(&mut self) {
        while let Some(event) = self.programs.system.vfs_next_event(self.file_events_done) {
            match event.kind {
                vfs::EVENT_EXEC => self.exec_ready(&event),
                vfs::EVENT_SIGNAL => self.file_signal(&event),
                vfs::EVENT_MASK => self.mask_call(event.process, Set(event.values[0])),
                vfs::EVENT_MASK_END => self.unmask_call(event.process),
                vfs::EVENT_SYNCED => self.synced(),
                vfs::EVENT_MESSAGE => self.message_signal(&event),
                vfs::EVENT_OWNER => self.owner_signals(&event),
                _ => {}
            }
            self.file_events_done = event.number;
        }
    }

    /// tty has events: signals for groups, and for processes that decide over a terminal on the screen.
    pub fn terminal_events(&mut self) {
        while let Some(event) = self.programs.system.tty_next_event(self.terminal_events_done) {
            self.terminal_event(&event);
            self.terminal_events_done = event.number;
        }
    }

    fn terminal_event(&mut self, event: &TerminalEvent) {
        let group = event.target as u32;
        if event.target & tty::CHANGES != 0 {
            return self.change_in_background(event);
        }
        if event.target & tty::TO_PROCESS != 0 {
            return self.terminal_signal(event);
        }
        match Signal::new(event.signal) {
            Ok(Signal::TTIN) => self.stop_background_readers(group),
            Ok(signal) => self.signal_group_of(event, group, signal),
            Err(_) => {}
        }
    }

    fn signal_group_of(&mut self, event: &TerminalEvent, group: u32, signal: Signal) {
        self.for_each_in_group(group, |pm, p| {
            // EAGAIN: too many of a real-time signal wait already; Linux drops it, too.
            let _ = pm.enqueue(p, None, SigInfo::kernel(signal));
        });
        self.terminal_events_done = event.number;
        self.for_each_in_group(group, |pm, p| pm.act_if_pending(p, None, signal));
    }

    /// A process writes to its terminal, or changes it, from the background.
    fn change_in_background(&mut self, event: &TerminalEvent) {
        // One that has ended waits for nothing.
        let Some(p) = self.programs.table.process_by_pid(event.target as u32) else { return };
        let group = self.programs.table[p].group();
        let is_allowed = self.is_deaf_to(p, Signal::TTOU);
        if is_allowed || self.programs.table.is_orphaned(group, None) {
            return self.programs.system.tty_background(event.target as u32, is_allowed);
        }
        self.signal_group_of(event, group, Signal::TTOU);
    }

    /// The signal of a terminal's switch, for the process that has asked for it (`VT_SETMODE`); 0: none, only whether the process exists.
    fn terminal_signal(&mut self, event: &TerminalEvent) {
        let pid = event.target as u32;
        let is_zombie = |p: &ProcessIndex| matches!(self.programs.table[*p].life(), Life::Zombie(_));
        let Some(p) = self.programs.table.process_by_pid(pid).filter(|p| !is_zombie(p)) else {
            return self.programs.system.tty_process_gone(pid);
        };
        if let Ok(signal) = Signal::new(event.signal) {
            // As a signal of the kernel. EAGAIN: too many wait already; Linux drops it, too.
            let _ = self.enqueue(p, None, SigInfo::kernel(signal));
            self.terminal_events_done = event.number;
            self.act_if_pending(p, None, signal);
        }
    }

    /// vfs reports a signal for a thread whose call waits: SIGPIPE, SIGXFSZ.
    fn file_signal(&mut self, event: &FileEvent) {
        let (Some(t), Ok(signal)) = (self.programs.table.find(event.process), Signal::new(event.values[0])) else {
            return;
        };
        let p = self.programs.table.process_of(t);
        if !matches!(self.programs.table[t].doing, Doing::Running) {
            return;
        }
        // The queue always has room for a standard signal.
        // As if the process had sent it to itself: so says Linux.
        let process = &self.programs.table[p];
        let info = SigInfo::user(signal, code::USER, process.pid(), process.credentials.user.real);
        let queued = self.enqueue(p, Some(t), info).unwrap_or(false);
        let error = if signal == Signal::PIPE { Errno::EPIPE } else { Errno::EFBIG };
        // ENOENT: the call is over, the signal stays.
        let _ = self.programs.system.vfs_cancel(event.process, error);
        if queued {
            self.act_on(p, Some(t), signal);
        }
    }

    /// A message has arrived in a queue: signals the process that has asked for it (mq_notify(2)).
    fn message_signal(&mut self, event: &FileEvent) {
        let [target, value, sender, _] = event.values;
        let Some(p) = self.programs.table.process_by_pid(target as u32) else { return };
        let Ok(signal) = Signal::new(target >> 32) else { return };
        // EAGAIN: too many wait already; Linux drops it, too.
        let _ = self.enqueue(p, None, SigInfo::message(signal, sender, value));
        self.file_events_done = event.number;
        self.act_if_pending(p, None, signal);
    }

    /// Something happened to an open file, or its lease is to be broken: signals its owner (fcntl(2), `F_SETOWN`).
    fn owner_signals(&mut self, event: &FileEvent) {
        let [target, of, ids, _] = event.values;
        let (id, kind, signal) = (target as u32, target >> 32 & 0xff, Signal::new(target >> 40).ok());
        let user = Ids { real: ids as u32, effective: (ids >> 32) as u32, ..Ids::default() };
        // As Linux: the user who named it decides, not what rights it has now.
        let sender =
            Credentials { user, capabilities: Capabilities::of_user(user.effective), ..Credentials::default() };
        let signal = OwnerSignal { sender, signal, descriptor: of as u32, reason: (of >> 32) as u32 };
        self.for_each_owner(kind, id, |pm, p, t| pm.enqueue_for_owner(p, t, &signal));
        self.file_events_done = event.number;
        self.for_each_owner(kind, id, |pm, p, t| {
            for sent in [signal.signal.unwrap_or(Signal::IO), Signal::IO] {
                pm.act_if_pending(p, t, sent);
            }
        });
    }

    /// Calls `act` for each process or thread that `EVENT_OWNER` names.
    fn for_each_owner(
        &mut self,
        kind: u64,
        id: u32,
        mut act: impl FnMut(&mut Self, ProcessIndex, Option<ThreadIndex>),
    ) {
        match kind {
            vfs::OWNER_THREAD => {
                if let Some(t) = self.programs.table.thread_by_tid(id) {
                    act(self, self.programs.table.process_of(t), Some(t));
                }
            }
            vfs::OWNER_PROCESS => {
                if let Some(p) = self.programs.table.process_by_pid(id) {
                    act(self, p, None);
                }
            }
            _ => self.for_each_in_group(id, |pm, p| act(pm, p, None)),
        }
    }

    /// Makes the signal pending for a process or thread, if the user who named it the owner may. Where the queue has no room for a signal with
    /// details, it is SIGIO, as on Linux.
    fn enqueue_for_owner(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, event: &OwnerSignal) {
        if !event.sender.may_signal(&self.programs.table[p].credentials) {
            return;
        }
        let info = event.signal.map(|signal| SigInfo::io(signal, event.reason, event.descriptor));
        if info.is_none_or(|info| self.enqueue(p, t, info).is_err()) {
            // Standard signals never meet the limit of the queue.
            let _ = self.enqueue(p, t, SigInfo::kernel(Signal::IO));
        }
    }

    /// Lets a signal take effect that was made pending before, if it has not been discarded.
    fn act_if_pending(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) {
        let process = &self.programs.table[p];
        let pending = t.map_or(process.pending.set(), |t| self.programs.table[t].pending.set());
        if process.is_alive() && pending.contains(signal) {
            self.act_on(p, t, signal);
        }
    }
}

/// What `EVENT_OWNER` says of the signal.
struct OwnerSignal {
    /// Who named the owner: user ids only.
    sender: Credentials,
    /// `None`: SIGIO without details.
    signal: Option<Signal>,
    descriptor: u32,
    /// `abi::vfs::OWNER_INPUT` and so on.
    reason: u32,
}
