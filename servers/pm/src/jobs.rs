//! Process groups and sessions, and the terminal's part in them.

use crate::index::ProcessIndex;
use crate::manager::Pm;
use crate::process::Process;
use crate::signal::{Disposition, SigInfo, Signal};
use crate::system::System;
use crate::thread::Doing;
use abi::Errno;
use alloc::vec::Vec;

impl<S: System> Pm<S> {
    /// `getppid()`: 0 for the first process.
    #[inline]
    pub fn getppid(&self, p: ProcessIndex) -> u64 {
        self.table[p].parent.map_or(0, |parent| self.table[parent].pid as u64)
    }

    /// The process meant by `pid`, 0 being the caller. `ESRCH`.
    pub fn process_or_self(&self, p: ProcessIndex, pid: i32) -> Result<ProcessIndex, Errno> {
        if pid == 0 {
            return Ok(p);
        }
        let found = u32::try_from(pid).ok().and_then(|pid| self.table.process_by_pid(pid));
        found.ok_or(Errno::ESRCH)
    }

    /// `getpgid(pid)`.
    pub fn getpgid(&self, p: ProcessIndex, pid: i32) -> Result<u64, Errno> {
        Ok(self.table[self.process_or_self(p, pid)?].group as u64)
    }

    /// `getsid(pid)`.
    pub fn getsid(&self, p: ProcessIndex, pid: i32) -> Result<u64, Errno> {
        Ok(self.table[self.process_or_self(p, pid)?].session as u64)
    }

    /// `setpgid(pid, group)`.
    pub fn setpgid(&mut self, p: ProcessIndex, pid: i32, group: i32) -> Result<u64, Errno> {
        if group < 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.process_or_self(p, pid)?;
        let (own, entry) = (&self.table[p], &self.table[target]);
        if target != p {
            if entry.parent != Some(p) || !entry.is_alive() {
                return Err(Errno::ESRCH);
            }
            if entry.session != own.session {
                return Err(Errno::EPERM);
            }
            if entry.executed {
                return Err(Errno::EACCES);
            }
        }
        if entry.session == entry.pid {
            return Err(Errno::EPERM);
        }
        let (session, pid) = (entry.session, entry.pid);
        let group = if group == 0 { pid } else { group as u32 };
        if group != pid && !self.is_group_of_session(group, session) {
            return Err(Errno::EPERM);
        }
        self.move_to(target, group, session, false);
        Ok(0)
    }

    fn is_group_of_session(&self, group: u32, session: u32) -> bool {
        self.table.processes().any(|(_, process)| process.group == group && process.session == session)
    }

    /// `setsid()`.
    pub fn setsid(&mut self, p: ProcessIndex) -> Result<u64, Errno> {
        let pid = self.table[p].pid;
        if self.table.processes().any(|(_, process)| process.group == pid) {
            return Err(Errno::EPERM);
        }
        self.move_to(p, pid, pid, true);
        Ok(pid as u64)
    }

    fn move_to(&mut self, p: ProcessIndex, group: u32, session: u32, leader: bool) {
        self.table.set_group(p, group, session);
        let mut next = self.table[p].main;
        while let Some(t) = next {
            next = self.table[t].next;
            self.system.vfs_set_session(self.table[t].endpoint, session, group, leader);
        }
    }

    /// Calls `act` for each living process of a group. It may end any of them.
    pub fn for_each_in_group(&mut self, group: u32, mut act: impl FnMut(&mut Self, ProcessIndex)) {
        let members = self.table.processes().filter(|(_, process)| process.group == group && process.is_alive());
        let members: Vec<ProcessIndex> = members.map(|(index, _)| index).collect();
        for member in members {
            if self.table[member].is_alive() && self.table[member].group == group {
                act(self, member);
            }
        }
    }

    /// No living member but `without` has a parent in another group of the same session: nobody is left to continue it when it is stopped.
    pub fn is_orphaned(&self, group: u32, without: Option<ProcessIndex>) -> bool {
        !self.table.processes().any(|(index, process)| {
            let counts = process.group == group && process.is_alive() && Some(index) != without;
            counts
                && process.parent.filter(|parent| self.init != Some(*parent)).is_some_and(|parent| {
                    self.table[parent].group != group && self.table[parent].session == process.session
                })
        })
    }

    /// `member` of a group loses `parent`, or ends itself (`leaving`). If that was the last tie of the group to the rest of its session, and
    /// some of the group is stopped, nobody could continue it any more: it gets SIGHUP and SIGCONT.
    pub fn loosen_group(&mut self, member: ProcessIndex, parent: ProcessIndex, leaving: Option<ProcessIndex>) {
        let (group, session) = (self.table[member].group, self.table[member].session);
        let was_a_tie = self.table[parent].group != group && self.table[parent].session == session;
        if self.stopped_count == 0 || !was_a_tie || !self.is_orphaned(group, leaving) {
            return;
        }
        let is_stopped = |process: &Process| process.group == group && process.stopped.is_some();
        if self.table.processes().any(|(_, process)| is_stopped(process)) {
            self.send_to_group(group, Signal::HUP);
            self.send_to_group(group, Signal::CONT);
        }
    }

    /// tty has events: signals for groups.
    pub fn terminal_events(&mut self) {
        while let Some((signal, group)) = self.system.tty_next_event() {
            let Ok(signal) = Signal::new(signal) else { continue };
            let group = group as u32;
            if signal == Signal::TTIN {
                self.stop_background_readers(group);
            } else {
                self.send_to_group(group, signal);
            }
        }
    }

    /// SIGTTIN for a group that reads from a terminal it does not own. Reads of those whom the signal cannot stop fail with EIO.
    fn stop_background_readers(&mut self, group: u32) {
        let orphaned = self.is_orphaned(group, None);
        self.for_each_in_group(group, |pm, p| {
            let blocked = pm.table[p].main.is_some_and(|t| pm.table[t].blocked.contains(Signal::TTIN));
            if orphaned || blocked || pm.disposition(p, Signal::TTIN) == Disposition::Ignore {
                pm.fail_calls_of_vfs(p);
            } else {
                // A standard signal always finds room.
                let _ = pm.send(p, None, SigInfo::kernel(Signal::TTIN));
            }
        });
    }

    fn fail_calls_of_vfs(&mut self, p: ProcessIndex) {
        let mut next = self.table[p].main;
        while let Some(t) = next {
            next = self.table[t].next;
            if matches!(self.table[t].doing, Doing::Running) {
                self.interrupt_with(t, Errno::EIO);
            }
        }
    }

    /// What a process that ends means to its session and to the groups it kept from being orphaned.
    pub fn leave_jobs(&mut self, p: ProcessIndex) {
        let (pid, session) = (self.table[p].pid, self.table[p].session);
        if session == pid {
            self.system.tty_session_end(session);
        }
        if let Some(parent) = self.table[p].parent {
            self.loosen_group(p, parent, Some(p));
        }
    }
}
