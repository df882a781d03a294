//! Queries of the table: ids, groups and orphaned groups, what a signal does to a process, and which of the kernel's
//! queues threads mean.

use super::containers::Kind;
use super::index::{ProcessIndex, ThreadIndex};
use super::name::ShortName;
use super::scheduling::{PRIORITIES, queue_of};
use super::signal::{Disposition, Signal};
use super::table::Table;
use super::wait::{Event, Selector, Wait};
use crate::system::Identity;
use abi::call::REAL_TIME;
use abi::linux::nr;
use abi::{Errno, Part, container, container::Parts, limits};

impl Table {
    /// The result of a call that asks for an id of the caller; `None`: another call.
    #[inline]
    pub fn look_up(&self, t: ThreadIndex, number: u32) -> Option<u64> {
        let p = self.process_of(t);
        let process = &self[p];
        let credentials = &process.credentials;
        let id = match number {
            nr::GETPPID => self.parent_pid(p),
            nr::GETPID => process.pid,
            nr::GETTID => self[t].tid,
            nr::GETPGRP => process.group,
            nr::GETUID => credentials.user.real,
            nr::GETEUID => credentials.user.effective,
            nr::GETGID => credentials.group.real,
            nr::GETEGID => credentials.group.effective,
            _ => return None,
        };
        let shown = if credentials.parts == Parts::SYSTEM { id } else { self.id_shown(p, number, id) };
        Some(shown.into())
    }

    /// An id that a call asks for, as the container of its process shows it.
    #[cold]
    fn id_shown(&self, p: ProcessIndex, number: u32, id: u32) -> u32 {
        match number {
            nr::GETUID | nr::GETEUID => self.seen(p, Kind::Users, id),
            nr::GETGID | nr::GETEGID => self.seen(p, Kind::Groups, id),
            _ => self.pid_shown(p, id),
        }
    }

    /// A user or group as a process sees it.
    #[inline]
    pub fn seen(&self, p: ProcessIndex, kind: Kind, id: u32) -> u32 {
        match self[p].credentials.parts.of(Part::Users) {
            0 => id,
            users => self.containers.seen(users, kind, id),
        }
    }

    /// The user or group that a process means. `EINVAL`: none.
    pub fn meant(&self, p: ProcessIndex, kind: Kind, id: u32) -> Result<u32, Errno> {
        self.containers.meant(self[p].credentials.parts.of(Part::Users), kind, id)
    }

    /// The superuser among whose users a process is.
    pub fn superuser(&self, p: ProcessIndex) -> Option<u32> {
        self.containers.superuser(self[p].credentials.parts.of(Part::Users))
    }

    /// The pid of the parent; 0 for the first process.
    #[inline]
    fn parent_pid(&self, p: ProcessIndex) -> u32 {
        self[p].parent.map_or(0, |parent| self[parent].pid)
    }

    /// The name of a thread.
    pub fn name_of(&self, t: ThreadIndex) -> ShortName {
        self[t].own_name.unwrap_or(self[self[t].process()].name)
    }

    /// Names a thread, and with the first one its process.
    pub fn set_name(&mut self, t: ThreadIndex, name: ShortName) {
        let p = self[t].process();
        match &mut self[t].own_name {
            Some(own) => *own = name,
            None => self[p].name = name,
        }
    }

    /// A process number as a process sees it; 0: it is of one outside its container.
    #[inline]
    pub fn pid_shown(&self, p: ProcessIndex, pid: u32) -> u32 {
        // Its own number tells at once whether it is in no container.
        if self[p].pid < limits::PIDS {
            return pid;
        }
        container::pid_shown(self[p].credentials.parts.of(Part::Processes), pid)
    }

    /// The process number that a process means. One that it cannot mean becomes one that nobody has.
    pub fn pid_meant(&self, p: ProcessIndex, number: i32) -> i32 {
        let container = self[p].credentials.parts.of(Part::Processes);
        if container == 0 || number <= 0 {
            return number;
        }
        container::pid_meant(container, number as u32).map_or(i32::MAX, |pid| pid as i32)
    }

    /// The arguments of a call with the system's process numbers in place of those of the caller's container.
    pub fn arguments_meant(&self, p: ProcessIndex, number: u32, a: &[u64; 7]) -> [u64; 7] {
        const BY_PROCESS: u64 = 0;
        const BY_GROUP: u64 = 1;
        let mut a = *a;
        let which: &[usize] = match number {
            nr::KILL | nr::WAIT4 => {
                // 0 and -1 are no numbers; what is below -1 is that of a group.
                let pid = a[0] as i32;
                a[0] = match pid {
                    i32::MIN..-1 => -i64::from(self.pid_meant(p, pid.checked_neg().unwrap_or(i32::MAX))) as u64,
                    _ => self.pid_meant(p, pid) as u64,
                };
                &[]
            }
            nr::WAITID if matches!(a[0], 1 | 2) => &[1],
            nr::GETPRIORITY | nr::SETPRIORITY if matches!(a[0], BY_PROCESS | BY_GROUP) => &[1],
            nr::IOPRIO_GET | nr::IOPRIO_SET if matches!(a[0], 1 | 2) => &[1],
            nr::TGKILL | nr::SETPGID | nr::RT_TGSIGQUEUEINFO => &[0, 1],
            nr::PTRACE => &[1],
            nr::TKILL | nr::GETPGID | nr::GETSID | nr::PIDFD_OPEN | nr::RT_SIGQUEUEINFO | nr::PRLIMIT64 => &[0],
            nr::GET_ROBUST_LIST | nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV => &[0],
            nr::SCHED_GETAFFINITY | nr::SCHED_SETAFFINITY | nr::SCHED_GETSCHEDULER | nr::SCHED_SETSCHEDULER => &[0],
            nr::SCHED_GETPARAM | nr::SCHED_SETPARAM | nr::SCHED_GETATTR | nr::SCHED_SETATTR => &[0],
            nr::SCHED_RR_GET_INTERVAL => &[0],
            _ => &[],
        };
        which.iter().for_each(|at| a[*at] = self.pid_meant(p, a[*at] as i32) as u64);
        a
    }

    /// The result of a call of a thread as its container shows it.
    #[inline]
    pub fn result_shown(&self, t: ThreadIndex, result: Result<u64, Errno>) -> Result<u64, Errno> {
        let p = self.process_of(t);
        if self[p].credentials.parts.of(Part::Processes) == 0 { result } else { self.result_shown_in(p, t, result) }
    }

    /// The same for a process in a container.
    #[cold]
    fn result_shown_in(&self, p: ProcessIndex, t: ThreadIndex, result: Result<u64, Errno>) -> Result<u64, Errno> {
        match self[t].call {
            nr::FORK
            | nr::VFORK
            | nr::CLONE
            | nr::CLONE3
            | nr::WAIT4
            | nr::GETPGID
            | nr::GETSID
            | nr::SETSID
            | nr::SET_TID_ADDRESS => result.map(|pid| self.pid_shown(p, pid as u32).into()),
            _ => result,
        }
    }

    /// Whether a process sees another one: all, if it is in no container of processes.
    pub fn sees(&self, p: ProcessIndex, other: ProcessIndex) -> bool {
        let container = self[p].credentials.parts.of(Part::Processes);
        container == 0 || container == self[other].credentials.parts.of(Part::Processes)
    }

    /// Whether a process is the first of its container.
    pub fn is_first_of_container(&self, p: ProcessIndex) -> bool {
        let container = self[p].credentials.parts.of(Part::Processes);
        container != 0 && container::pid_shown(container, self[p].pid) == 1
    }

    /// The first process of a container, while it lives.
    pub fn first_of_container(&self, container: u8) -> Option<ProcessIndex> {
        let pid = container::pid_meant(container, 1).filter(|_| container != 0)?;
        self.process_by_pid(pid).filter(|first| self[*first].is_alive() && self[*first].ending.is_none())
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
            _ if signal != Signal::KILL && signal != Signal::STOP && self.is_first_of_container(p) => {
                Disposition::Ignore
            }
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
