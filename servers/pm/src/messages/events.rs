//! Notifications: pm's alarm, and events of vfs and tty, which are fetched one by one.

use crate::pm::Pm;
use crate::state::signal::{Set, SigInfo, Signal};
use crate::state::thread::Doing;
use crate::system::{FileEvent, System};
use abi::endpoint::slot;
use abi::{Endpoint, Errno, vfs};

impl<S: System> Pm<S> {
    /// Handles a notification.
    pub fn handle_notification(&mut self, source: Endpoint) {
        let (now_ns, _) = self.programs.system.time_ns();
        self.random.stir(now_ns);
        match source.slot() {
            slot::CLOCK => self.alarm_fired(),
            slot::VFS => self.file_events(),
            slot::TTY => self.terminal_events(),
            _ => {}
        }
        self.keep_alarm();
    }

    /// vfs has events: images for programs that wait in `execve`, signals, the end of a sync.
    pub fn file_events(&mut self) {
        while let Some(event) = self.programs.system.vfs_next_event() {
            match event.kind {
                vfs::EVENT_EXEC => self.exec_ready(&event),
                vfs::EVENT_SIGNAL => self.file_signal(&event),
                vfs::EVENT_MASK => self.mask_call(event.process, Set(event.values[0])),
                vfs::EVENT_MASK_END => self.unmask_call(event.process),
                vfs::EVENT_SYNCED => self.synced(),
                vfs::EVENT_MESSAGE => self.message_signal(&event),
                _ => {}
            }
        }
    }

    /// tty has events: signals for groups.
    pub fn terminal_events(&mut self) {
        while let Some((signal, group)) = self.programs.system.tty_next_event() {
            let Ok(signal) = Signal::new(signal) else { continue };
            let group = group as u32;
            if signal == Signal::TTIN {
                self.stop_background_readers(group);
            } else {
                self.send_to_group(group, signal);
            }
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
        let queued = self.enqueue(p, Some(t), SigInfo::kernel(signal)).unwrap_or(false);
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
        let _ = self.send(p, None, SigInfo::message(signal, sender, value));
    }
}
