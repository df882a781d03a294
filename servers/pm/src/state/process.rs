//! One process.

use super::control::Control;
use super::core_dump::CoreDump;
use super::credentials::Credentials;
use super::index::{ProcessIndex, ThreadIndex};
use super::intervals::Intervals;
use super::limits::{self, Limits};
use super::name::ShortName;
use super::oom::OomAdjust;
use super::signal::{Action, Pending, Signal, action::Actions};
use super::usage::Usage;
use super::wait::{Child, Ending};
use crate::system::{Identity, MemoryLimits};
use abi::{Capability, CapabilitySet, Endpoint};
use alloc::rc::Rc;
use core::ops::Range;

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The entry is free.
    Free,
    /// It has threads.
    Alive,
    /// It has ended and waits to be waited for.
    Zombie(Ending),
}

/// One process. Family, ids, stops and its end are changed by the [`Table`](super::table::Table) alone, whose invariants they are.
pub struct Process {
    /// Its state.
    pub(super) life: Life,
    /// Its id.
    pub(super) pid: u32,
    /// How many had this id before it.
    pub(super) generation: u32,
    /// The process that gets its SIGCHLD; `None` for the first process.
    pub(super) parent: Option<ProcessIndex>,
    /// First of its children: those that have something to report to a wait, then the others, each oldest first.
    pub(super) first_child: Option<ProcessIndex>,
    /// Last of its children.
    pub(super) last_child: Option<ProcessIndex>,
    /// Its next older sibling.
    pub(super) previous_sibling: Option<ProcessIndex>,
    /// Its next younger sibling.
    pub(super) next_sibling: Option<ProcessIndex>,
    /// Its first thread; the others follow by `Thread::next`.
    pub(super) main: Option<ThreadIndex>,
    /// Number of its threads.
    pub(super) threads: u32,
    /// Process group.
    pub(super) group: u32,
    /// The processes before and after it in the ring of its group.
    pub(super) group_ring: [ProcessIndex; 2],
    /// The last walk over the group that has come by (`Table::next_member`).
    pub(super) visit: u32,
    /// The last round of a signal that has reached it (`state/round.rs`).
    pub(super) reached: u64,
    /// It is among the children that have something to report, which come first.
    pub(super) has_news: bool,
    /// The last of its children that have something to report.
    pub(super) last_news: Option<ProcessIndex>,
    /// Session.
    pub(super) session: u32,
    /// Its ids.
    pub credentials: Credentials,
    /// Its signal actions.
    pub actions: Actions,
    /// Signals for any of its threads.
    pub pending: Pending,
    /// A thread of it may wait by a signalfd.
    pub watched: bool,
    /// The number of the last signal that has become pending for it or a thread of it, from 1; no two processes have the same signal's.
    pub arrivals: u32,
    /// The container of processes that its children will be in, if it is another one (unshare, setns).
    pub children: Option<u8>,
    /// m3ipc is told when a thread of it ends.
    pub enrolled: bool,
    /// The signal its end is told by; `None`: none.
    pub exit_signal: Option<Signal>,
    /// The signal that stopped it; `None`: not stopped.
    pub(super) stopped: Option<Signal>,
    /// How it is ending: set before anything is torn down, until parent, vfs and tty know.
    pub(super) ending: Option<Ending>,
    /// That stop has not been waited for.
    pub(super) stop_unreported: bool,
    /// It was continued, which has not been waited for.
    pub(super) continue_unreported: bool,
    /// The thread that waits in `vfork` for this process.
    pub vfork_parent: Option<Endpoint>,
    /// It has called `execve` since it was forked.
    pub executed: bool,
    /// What vm was told of its limits.
    pub memory_limits: MemoryLimits,
    /// Its memory is that of another process too: it has executed nothing since clone with `CLONE_VM`.
    pub shares_memory: bool,
    /// Which memory it has: processes that share it have the same number.
    pub memory: u64,
    /// What it has chosen by prctl(2) and personality(2).
    pub control: Control,
    /// Limits.
    pub limits: Limits,
    /// Niceness, -20 to 19.
    pub nice: i32,
    /// How much it is wanted when memory ends (`oom_score_adj`).
    pub oom: OomAdjust,
    /// First bytes of the program's file name.
    pub name: ShortName,
    /// Absolute path of the program.
    pub executable: Option<Rc<[u8]>>,
    /// Where its arguments lie in its memory.
    pub arguments: Range<u64>,
    /// Where its environment lies.
    pub environment: Range<u64>,
    /// Where its auxiliary vector lies.
    pub auxiliary: Range<u64>,
    /// When it started, monotonic.
    pub(super) started_ns: u64,
    /// What threads that have ended have used, and memory once all have.
    pub ended: Usage,
    /// What children that have been waited for have used.
    pub of_children: Usage,
    /// Its interval timers.
    pub intervals: Intervals,
    /// Number of its POSIX timers.
    pub timers: u32,
    /// The part it has in a core dump.
    pub core_dump: CoreDump,
    /// How many it traces: threads, and those that have ended and not been waited for.
    pub(super) tracees: u32,
    /// The tracer of a zombie, which is to wait for it before its parent.
    pub(super) last_tracer: Option<ProcessIndex>,
}

impl Process {
    /// A free entry.
    pub(super) fn free() -> Process {
        Process {
            life: Life::Free,
            pid: 0,
            generation: 0,
            parent: None,
            first_child: None,
            last_child: None,
            previous_sibling: None,
            next_sibling: None,
            main: None,
            threads: 0,
            group: 0,
            group_ring: [ProcessIndex::at(0); 2],
            visit: 0,
            reached: 0,
            has_news: false,
            last_news: None,
            session: 0,
            credentials: Credentials::default(),
            actions: [Action::default(); 64],
            pending: Pending::default(),
            watched: false,
            arrivals: 1,
            children: None,
            enrolled: false,
            exit_signal: None,
            stopped: None,
            ending: None,
            stop_unreported: false,
            continue_unreported: false,
            vfork_parent: None,
            executed: false,
            memory_limits: MemoryLimits::NONE,
            shares_memory: false,
            memory: 0,
            control: Control::DEFAULT,
            limits: Limits::default(),
            nice: 0,
            oom: OomAdjust::default(),
            name: ShortName::default(),
            executable: None,
            arguments: 0..0,
            environment: 0..0,
            auxiliary: 0..0,
            started_ns: 0,
            ended: Usage::default(),
            of_children: Usage::default(),
            intervals: Intervals::default(),
            timers: 0,
            core_dump: CoreDump::None,
            tracees: 0,
            last_tracer: None,
        }
    }

    /// Its state.
    pub fn life(&self) -> Life {
        self.life
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its id, and which process it is of those that have had it.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, generation: self.generation }
    }

    /// The process that gets its SIGCHLD; `None` for the first process.
    pub fn parent(&self) -> Option<ProcessIndex> {
        self.parent
    }

    /// Its first thread; `None` when it has ended.
    pub fn main(&self) -> Option<ThreadIndex> {
        self.main
    }

    /// Number of its threads.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// What it counts for RLIMIT_NPROC.
    pub(super) fn counted_threads(&self) -> usize {
        self.threads.max(1) as usize
    }

    /// Its process group.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Its session.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The signal that stopped it; `None`: it is not stopped.
    pub fn stopped(&self) -> Option<Signal> {
        self.stopped
    }

    /// When it started, monotonic.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// How it is ending: set before anything is torn down, until parent, vfs and tty know.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// It is dumped, or about to end: nothing that its threads ask for matters any more.
    pub fn is_over(&self) -> bool {
        self.core_dump.is_dumped() || self.ending.is_some()
    }

    /// Its rights over the system, as services are told. In a container that was given real-time priorities it may be one of MINIX4RT, too.
    pub fn capabilities_for_services(&self) -> CapabilitySet {
        let takes_part = self.credentials.parts.limited().is_some() && self.limits.soft(limits::RTPRIO) != 0;
        if takes_part { CapabilitySet::of(&[Capability::SysNice]) } else { self.credentials.of_system() }
    }

    /// It has threads.
    pub fn is_alive(&self) -> bool {
        self.life == Life::Alive
    }

    /// What a child takes over from its parent; family, threads and ids of its own are the table's business.
    pub(super) fn inherit(&mut self, parent: &Process) {
        self.group = parent.group;
        self.session = parent.session;
        self.reached = parent.reached;
        self.credentials.clone_from(&parent.credentials);
        self.actions = parent.actions;
        self.control = parent.control.for_child();
        self.limits = parent.limits;
        self.memory_limits = parent.memory_limits;
        self.nice = parent.nice;
        self.oom = parent.oom;
        self.name = parent.name;
        self.executable.clone_from(&parent.executable);
        self.arguments = parent.arguments.clone();
        self.environment = parent.environment.clone();
        self.auxiliary = parent.auxiliary.clone();
    }

    /// Resets the entry for the next process. Links, threads, signals and timers are gone already: their owners take them out when a
    /// process ends, and `inherit` replaces the rest. `ending` is left if pm died right after the release of the entry.
    pub(super) fn reset(&mut self) {
        self.ending = None;
        self.stop_unreported = false;
        self.continue_unreported = false;
        self.executed = false;
        self.shares_memory = false;
        self.core_dump = CoreDump::None;
        self.watched = false;
        self.children = None;
        self.ended = Usage::default();
        self.of_children = Usage::default();
    }

    /// A wait of its parent may have something to report of it.
    pub(super) fn is_news(&self) -> bool {
        self.zombie().is_some() && self.last_tracer.is_none() || self.stop_unreported || self.continue_unreported
    }

    /// How it has ended, if it is a zombie.
    pub fn zombie(&self) -> Option<Ending> {
        match self.life {
            Life::Zombie(ending) => Some(ending),
            Life::Alive | Life::Free => None,
        }
    }

    /// Whether it traces anybody.
    pub fn traces(&self) -> bool {
        self.tracees != 0
    }

    /// The tracer of a zombie, which is to wait for it before its parent.
    pub fn last_tracer(&self) -> Option<ProcessIndex> {
        self.last_tracer
    }

    /// As a wait of its parent sees it.
    pub fn as_child(&self) -> Child {
        Child {
            pid: self.pid,
            generation: self.generation,
            group: self.group,
            ordinary: self.exit_signal == Some(Signal::CHLD),
            ending: self.zombie().filter(|_| self.last_tracer.is_none()),
            stop_to_report: self.stopped.filter(|_| self.stop_unreported),
            continue_to_report: self.continue_unreported,
        }
    }
}
