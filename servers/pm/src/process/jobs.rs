//! Process groups and sessions, and the terminal's part in them.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::{Disposition, SigInfo, Signal};
use crate::state::thread::Doing;
use crate::system::System;
use abi::Errno;

impl<S: System> Programs<S> {
    /// `getpgid(pid)`.
    pub fn getpgid(&self, p: ProcessIndex, pid: i32) -> Result<u64, Errno> {
        Ok(self.table[self.table.process_or_self(p, pid)?].group() as u64)
    }

    /// `getsid(pid)`.
    pub fn getsid(&self, p: ProcessIndex, pid: i32) -> Result<u64, Errno> {
        Ok(self.table[self.table.process_or_self(p, pid)?].session() as u64)
    }

    /// `setpgid(pid, group)`.
    pub fn setpgid(&mut self, p: ProcessIndex, pid: i32, group: i32) -> Result<u64, Errno> {
        if group < 0 || (group == 0 && pid < 0) {
            return Err(Errno::EINVAL);
        }
        let target = self.table.process_or_self(p, pid)?;
        let (own, entry) = (&self.table[p], &self.table[target]);
        if target != p {
            if entry.parent() != Some(p) || !entry.is_alive() {
                return Err(Errno::ESRCH);
            }
            if entry.session() != own.session() {
                return Err(Errno::EPERM);
            }
            if entry.executed {
                return Err(Errno::EACCES);
            }
        }
        if entry.session() == entry.pid() {
            return Err(Errno::EPERM);
        }
        let (session, pid) = (entry.session(), entry.pid());
        let group = if group == 0 { pid } else { group as u32 };
        if group != pid && !self.table.is_group_of_session(group, session) {
            return Err(Errno::EPERM);
        }
        self.move_to(target, group, session, false);
        Ok(0)
    }

    /// `setsid()`.
    pub fn setsid(&mut self, t: ThreadIndex, p: ProcessIndex) -> Result<u64, Errno> {
        let pid = self.table[p].pid();
        if self.table.is_group(pid) {
            return Err(Errno::EPERM);
        }
        self.move_to(p, pid, pid, true);
        self.note_result(t, Ok(pid.into()));
        Ok(pid.into())
    }

    /// vfs knows first: a successor of pm that finds the table as it was does all of it again.
    fn move_to(&mut self, p: ProcessIndex, group: u32, session: u32, leader: bool) {
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            self.system.vfs_set_session(self.table[t].endpoint(), session, group, leader);
        }
        self.forget_answers_of_all(p);
        self.table.set_group(p, group, session);
    }

    fn fail_calls_of_vfs(&mut self, p: ProcessIndex) {
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            if matches!(self.table[t].doing, Doing::Running) {
                self.interrupt_with(t, Errno::EIO);
            }
        }
    }
}

impl<S: System> Pm<S> {
    /// Calls `act` for each living process of a group. It may end any of them.
    pub fn for_each_in_group(&mut self, group: u32, mut act: impl FnMut(&mut Self, ProcessIndex)) {
        let walk = self.programs.table.begin_walk();
        while let Some(member) = self.programs.table.next_member(group, walk) {
            if self.programs.table[member].is_alive() {
                act(self, member);
            }
        }
    }

    /// `member` of a group loses `parent`, or ends itself (`leaving`). If that was the last tie of the group to the rest of its session, and
    /// some of the group is stopped, no shell can continue it: it gets SIGHUP and SIGCONT.
    pub fn loosen_group(&mut self, member: ProcessIndex, parent: ProcessIndex, leaving: Option<ProcessIndex>) {
        let (group, session) = (self.programs.table[member].group(), self.programs.table[member].session());
        let was_a_tie =
            self.programs.table[parent].group() != group && self.programs.table[parent].session() == session;
        if !self.programs.table.has_stopped() || !was_a_tie || !self.programs.table.is_orphaned(group, leaving) {
            return;
        }
        let table = &self.programs.table;
        if table.members_of(group).any(|process| table[process].stopped().is_some()) {
            self.send_to_group(group, Signal::HUP);
            self.send_to_group(group, Signal::CONT);
        }
    }

    /// SIGTTIN for a group that reads from a terminal it does not own. Reads of processes that the signal cannot stop fail with `EIO`.
    pub fn stop_background_readers(&mut self, group: u32) {
        let orphaned = self.programs.table.is_orphaned(group, None);
        self.for_each_in_group(group, |pm, p| {
            if orphaned || pm.is_deaf_to(p, Signal::TTIN) {
                pm.programs.fail_calls_of_vfs(p);
            } else {
                // The queue always has room for a standard signal.
                let _ = pm.send(p, None, SigInfo::kernel(Signal::TTIN));
            }
        });
    }

    /// Whether a process ignores a signal, or its main thread blocks it.
    pub fn is_deaf_to(&self, p: ProcessIndex, signal: Signal) -> bool {
        let table = &self.programs.table;
        table[p].main().is_some_and(|t| table[t].blocked.contains(signal))
            || table.disposition(p, signal) == Disposition::Ignore
    }

    /// What a process that ends means to its session and to the groups it kept from being orphaned.
    pub fn leave_jobs(&mut self, p: ProcessIndex) {
        let (pid, session) = (self.programs.table[p].pid(), self.programs.table[p].session());
        if session == pid {
            self.programs.system.tty_session_end(session);
        }
        if let Some(parent) = self.programs.table[p].parent() {
            self.loosen_group(p, parent, Some(p));
        }
    }
}
