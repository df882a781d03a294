//! Queries of the table: ids, groups and orphaned groups, what a signal does to a process, and which of the kernel's
//! queues threads mean.

use super::index::{ProcessIndex, ThreadIndex};
use super::scheduling::{PRIORITIES, queue_of};
use super::signal::{Disposition, Signal};
use super::table::Table;
use super::wait::{Event, Selector, Wait};
use crate::system::Identity;
use abi::Errno;
use abi::call::REAL_TIME;
use abi::linux::nr;

impl Table {
    /// The result of a call that asks for an id of the caller; `None`: another call.
    #[inline]
    pub fn look_up(&self, t: ThreadIndex, number: u32) -> Option<u64> {
        let p = self.process_of(t);
        let process = &self[p];
        let value = match number {
            nr::GETPPID => return Some(self.parent_pid(p)),
            nr::GETPID => process.pid,
            nr::GETTID => self[t].tid,
            nr::GETPGRP => process.group,
            nr::GETUID => process.credentials.user.real,
            nr::GETEUID => process.credentials.user.effective,
            nr::GETGID => process.credentials.group.real,
            nr::GETEGID => process.credentials.group.effective,
            _ => return None,
        };
        Some(value as u64)
    }

    /// The pid of the parent; 0 for the first process.
    #[inline]
    fn parent_pid(&self, p: ProcessIndex) -> u64 {
        self[p].parent.map_or(0, |parent| self[parent].pid as u64)
    }

    /// The process meant by `pid`, 0 being the caller. `ESRCH`.
    pub fn process_or_self(&self, p: ProcessIndex, pid: i32) -> Result<ProcessIndex, Errno> {
        if pid == 0 {
            return Ok(p);
        }
        let found = u32::try_from(pid).ok().and_then(|pid| self.process_by_pid(pid));
        found.ok_or(Errno::ESRCH)
    }

    /// The one child that a wait by pid means.
    fn child_by_pid(&self, parent: ProcessIndex, pid: u32) -> Option<ProcessIndex> {
        let child = self.process_by_pid(pid).filter(|child| self[*child].pid == pid);
        child.filter(|child| self[*child].parent == Some(parent))
    }

    /// Something that a wait of `parent` has to report.
    pub fn find_event(&self, parent: ProcessIndex, wait: &Wait) -> Option<(ProcessIndex, Event)> {
        let event = |child: ProcessIndex| {
            let mut seen = self[child].as_child();
            if self[parent].traces() && self.tracer_of(child) == Some(parent) {
                // It sees the stops of the thread instead.
                seen.stop_to_report = None;
            }
            wait.event(&seen).filter(|_| wait.concerns(&seen)).map(|event| (child, event))
        };
        match wait.selector {
            Selector::Pid(pid) | Selector::Exactly(Identity { pid, .. }) => {
                self.child_by_pid(parent, pid).and_then(event)
            }
            _ => self.children_of(parent).take_while(|child| self.has_news(*child)).find_map(event),
        }
    }

    /// Whether `parent` has a child that a wait is for.
    pub fn has_child(&self, parent: ProcessIndex, wait: &Wait) -> bool {
        let concerns = |child: ProcessIndex| wait.concerns(&self[child].as_child());
        match wait.selector {
            Selector::Pid(pid) | Selector::Exactly(Identity { pid, .. }) => {
                self.child_by_pid(parent, pid).is_some_and(concerns)
            }
            Selector::Any => self.children_of(parent).any(concerns),
            Selector::Group(group) => {
                self.members_of(group).any(|member| self[member].parent == Some(parent) && concerns(member))
            }
        }
    }

    /// Whether the session has this group.
    pub fn is_group_of_session(&self, group: u32, session: u32) -> bool {
        self.members_of(group).any(|member| self[member].session == session)
    }

    /// No living member but `without` has a parent in another group of the same session: nobody is left to continue it when it is stopped.
    pub fn is_orphaned(&self, group: u32, without: Option<ProcessIndex>) -> bool {
        !self.members_of(group).any(|member| {
            let process = &self[member];
            process.is_alive()
                && Some(member) != without
                && process
                    .parent
                    .filter(|parent| !self.is_first(*parent))
                    .is_some_and(|parent| self[parent].group != group && self[parent].session == process.session)
        })
    }

    /// Whether any process, a zombie included, is in this group.
    pub fn is_group(&self, group: u32) -> bool {
        self.members_of(group).next().is_some()
    }

    /// What a signal does to a process. The first process is immune to all that it does not handle.
    pub fn disposition(&self, p: ProcessIndex, signal: Signal) -> Disposition {
        match self[p].actions[signal.index()].disposition(signal) {
            Disposition::Handle => Disposition::Handle,
            _ if self.is_first(p) => Disposition::Ignore,
            other => other,
        }
    }

    /// The real-time queue of a thread; 0: it is time shared.
    pub fn queue_of_thread(&self, t: ThreadIndex) -> u8 {
        match self[t].scheduling.priority() {
            0 => 0,
            priority => queue_of(priority) as u8,
        }
    }

    /// The best real-time queue of the threads of a process; 0: all are time shared.
    pub fn queue_of_process(&self, p: ProcessIndex) -> u8 {
        let queues = self.threads_of(p).map(|t| self.queue_of_thread(t));
        queues.filter(|queue| *queue != 0).min().unwrap_or(0)
    }

    /// The real-time priority that the kernel's queue of a thread stands for; 0: it is time shared. Where priorities share the queue it is the
    /// thread's own, or the best that somebody has from whom it may be inherited.
    pub fn effective_priority(&self, t: ThreadIndex, queue: u32) -> u32 {
        let Some(queue) = (queue as u64).checked_sub(REAL_TIME) else { return 0 };
        let fits = |priority: &u32| *priority != 0 && queue_of(*priority) == queue;
        let all = self.processes().flat_map(|(p, _)| self.threads_of(p));
        let known = |t: ThreadIndex| Some(self[t].scheduling.priority()).filter(fits);
        let some = || PRIORITIES.rev().find(|&priority| queue_of(priority) >= queue);
        known(t).or_else(|| all.filter_map(known).max()).or_else(some).unwrap_or(*PRIORITIES.start())
    }
}
