//! A thread that another process traces (ptrace(2)), as data: what it is stopped at, how it goes on, what its tracer has chosen.

use super::index::{ProcessIndex, ThreadIndex};
use super::signal::{SigInfo, Signal};
use super::table::Table;
use super::wait::{Ending, Selector, Wait};
use super::watch::Watches;
use abi::call::resume;
use abi::{Endpoint, Errno};
use sys::fallible::TryVec;

/// `PTRACE_O_*`, but for those of [`Event`].
pub mod option {
    #![allow(missing_docs)]
    pub const TRACESYSGOOD: u32 = 1;
    pub const EXITKILL: u32 = 1 << 20;
    pub const ALL: u32 = 0xff | EXITKILL;
}

/// `PTRACE_EVENT_*` that a thread is stopped at on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// It has made a process that tells its end by SIGCHLD.
    Fork = 1,
    /// It has made a process by `vfork`.
    Vfork = 2,
    /// It has made another process, or a thread.
    Clone = 3,
    /// It has executed a program.
    Exec = 4,
    /// The process that it made by `vfork` needs its memory no longer.
    VforkDone = 5,
    /// It is about to end.
    Exit = 6,
    /// A filter of seccomp leaves it to the tracer whether the call is made.
    Seccomp = 7,
}

impl Event {
    /// The `PTRACE_O_*` that asks for it.
    pub fn option(self) -> u32 {
        1 << self as u8
    }
}

/// `PTRACE_EVENT_STOP`.
const EVENT_STOP: u32 = 128;
/// What `TRACESYSGOOD` adds to SIGTRAP.
const SYSGOOD: u32 = 0x80;
/// Records of threads that have ended, for their tracers: all, those of the tracers of one user, and those that only root gets.
const MAX_ENDED: usize = 512;
const MAX_ENDED_OF_USER: usize = 256;
const RESERVED_ENDED: usize = 32;

/// What a thread is stopped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The Linux call [`Trace::call`] is about to be made.
    Entry,
    /// A call has returned.
    Exit,
    /// A signal is about to be delivered.
    Signal(SigInfo),
    /// `PTRACE_EVENT_*`.
    Event(Event),
    /// The signal has stopped the process; without one: `PTRACE_INTERRUPT`, or the process was continued.
    Group(Option<Signal>),
}

/// How a thread was continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `PTRACE_CONT`.
    Continue,
    /// `PTRACE_SYSCALL`.
    ToCall,
    /// `PTRACE_SINGLESTEP`.
    Step,
}

/// What a thread that is stopped at [`Event::Exit`] was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// `exit`.
    Thread(u64),
    /// `exit_group`.
    Process(u64),
    /// Die of a signal.
    Signal(SigInfo),
}

/// A thread that is traced.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// The process that traces it.
    pub tracer: ProcessIndex,
    /// By `PTRACE_SEIZE`.
    pub seized: bool,
    /// `PTRACE_O_*`.
    pub options: u32,
    /// How it was continued last.
    pub how: How,
    /// What it is stopped at: it is kept until its tracer continues it.
    pub stop: Option<Stop>,
    /// No wait has reported that stop.
    pub unreported: bool,
    /// `PTRACE_LISTEN`: it stays stopped, and a SIGCONT is to be told.
    pub listening: bool,
    /// Which of all stops that was: they are reported in this order.
    pub order: u64,
    /// It is between the beginning and the end of a call that its tracer follows, or steps over.
    pub in_call: bool,
    /// `orig_rax`: the number of the call that it makes or has made; -1: none.
    pub call: u64,
    /// An event that it is to stop at next, and `PTRACE_GETEVENTMSG` of that.
    pub event: Option<(Event, u64)>,
    /// `PTRACE_GETEVENTMSG`.
    pub message: u64,
    /// It is to stop as soon as it can: `PTRACE_INTERRUPT`, or a SIGCONT of which the tracer is to be told.
    pub interrupt: bool,
    /// It is to stop with its process.
    pub stops_with_group: bool,
    /// What it is about to do.
    pub leaving: Option<Leaving>,
    /// Its debug registers.
    pub watches: Watches,
}

impl Trace {
    /// A thread that nothing has happened to yet.
    pub fn new(tracer: ProcessIndex, seized: bool, options: u32) -> Trace {
        Trace {
            tracer,
            seized,
            options,
            how: How::Continue,
            stop: None,
            unreported: false,
            listening: false,
            order: 0,
            in_call: false,
            call: u64::MAX,
            event: None,
            message: 0,
            interrupt: false,
            stops_with_group: false,
            leaving: None,
            watches: Watches::NONE,
        }
    }

    /// Has one of `PTRACE_O_*`.
    pub fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    /// Whether it runs by single steps: its tracer wishes so, or a place is watched.
    pub fn steps(&self) -> bool {
        self.how == How::Step || self.watches.are_active()
    }

    /// Bits of `SetRegisters` with which it goes on.
    pub fn resume_bits(&self) -> u64 {
        if self.how == How::ToCall || self.steps() { resume::REPORT_CALLS } else { 0 }
    }

    /// The stop as the upper bytes of the status of a wait; `None`: it runs.
    pub fn code(&self) -> Option<u32> {
        const TRAP: u32 = Signal::TRAP.number() as u32;
        Some(match self.stop? {
            Stop::Entry | Stop::Exit if self.has(option::TRACESYSGOOD) => TRAP | SYSGOOD,
            Stop::Entry | Stop::Exit => TRAP,
            Stop::Signal(info) => info.signal.number().into(),
            Stop::Event(event) => TRAP | (event as u32) << 8,
            Stop::Group(signal) => {
                let number = signal.unwrap_or(Signal::TRAP).number().into();
                if self.seized { number | EVENT_STOP << 8 } else { number }
            }
        })
    }

    /// `PTRACE_GETSIGINFO` for the thread `tid` of `user`. `EINVAL`: the stop has none.
    pub fn info(&self, tid: u32, user: u32) -> Result<SigInfo, Errno> {
        let trap = |signal| Ok(SigInfo::user(signal, self.code().unwrap_or(0) as i32, tid, user));
        match self.stop {
            Some(Stop::Signal(info)) => Ok(info),
            Some(Stop::Group(signal)) if self.seized => trap(signal.unwrap_or(Signal::TRAP)),
            Some(Stop::Group(_)) | None => Err(Errno::EINVAL),
            Some(_) => trap(Signal::TRAP),
        }
    }
}

/// A thread that has ended while it was traced, and was not the first of its process: only its tracer waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its id, which nobody else gets meanwhile.
    pub tid: u32,
    /// The process that has traced it.
    pub tracer: ProcessIndex,
    /// Its group.
    pub group: u32,
    /// Its user.
    pub user: u32,
    /// How it ended.
    pub ending: Ending,
}

/// What a wait finds among those whom a process traces.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// A thread is stopped.
    Stopped(ThreadIndex),
    /// A thread, not the first of its process, has ended.
    Thread(Ended),
    /// A process has ended whose parent is to be told after its tracer.
    Process(ProcessIndex, Ending),
}

impl Wait {
    fn selects(&self, tid: u32, group: u32) -> bool {
        match self.selector {
            Selector::Any => true,
            Selector::Pid(pid) => pid == tid,
            Selector::Exactly(identity) => identity.pid == tid,
            Selector::Group(wanted) => wanted == group,
        }
    }
}

impl Table {
    /// Whether a thread is traced.
    pub fn is_traced(&self, t: ThreadIndex) -> bool {
        self[t].trace.is_some()
    }

    /// Begins to trace a thread.
    pub fn trace(&mut self, t: ThreadIndex, trace: Trace) {
        self.untrace(t);
        self[trace.tracer].tracees += 1;
        self[t].trace = Some(trace);
    }

    /// Ends to trace a thread. Returns how it was traced.
    pub fn untrace(&mut self, t: ThreadIndex) -> Option<Trace> {
        let trace = self[t].trace.take()?;
        self[trace.tracer].tracees -= 1;
        Some(trace)
    }

    /// Records that a traced thread is stopped.
    pub fn set_stop(&mut self, t: ThreadIndex, stop: Stop) {
        self.stops += 1;
        let order = self.stops;
        if let Some(trace) = &mut self[t].trace {
            *trace = Trace { stop: Some(stop), unreported: true, listening: false, order, ..*trace };
            trace.watches.forget_values();
        }
    }

    /// The threads that a process traces.
    pub fn tracees_of(&self, tracer: ProcessIndex) -> impl Iterator<Item = ThreadIndex> {
        let is_tracee = move |t: &ThreadIndex| {
            self[*t].endpoint() != Endpoint::NONE && self[*t].trace.is_some_and(|trace| trace.tracer == tracer)
        };
        ThreadIndex::all().filter(is_tracee)
    }

    /// The process that traces a living process by its first thread.
    pub fn tracer_of(&self, p: ProcessIndex) -> Option<ProcessIndex> {
        Some(self[self[p].main()?].trace?.tracer)
    }

    /// A thread that ends is no longer traced, and its tracer may wait for it. Returns the tracer that is to be told.
    pub fn end_tracee(&mut self, t: ThreadIndex, ending: Ending) -> Option<ProcessIndex> {
        let trace = self.untrace(t)?;
        let p = self.process_of(t);
        let (tid, group, user) = (self[t].tid(), self[p].group(), self[p].credentials.user.real);
        let ended = Ended { tid, tracer: trace.tracer, group, user, ending };
        let is_recorded =
            tid != self[p].pid() && self.has_ended_room(trace.tracer) && self.ended.try_push(ended).is_ok();
        if is_recorded {
            self.pids.retain(tid);
            self[trace.tracer].tracees += 1;
        }
        is_recorded.then_some(trace.tracer)
    }

    /// Whether there is a record for one more thread that has ended under this tracer. They are counted for its user.
    fn has_ended_room(&self, tracer: ProcessIndex) -> bool {
        let user_of = |tracer: ProcessIndex| self[tracer].credentials.user.real;
        let user = user_of(tracer);
        if user == 0 {
            return self.ended.len() < MAX_ENDED;
        }
        let held = self.ended.iter().filter(|ended| user_of(ended.tracer) == user).count();
        self.ended.len() < MAX_ENDED - RESERVED_ENDED && held < MAX_ENDED_OF_USER
    }

    /// Forgets a thread that has ended.
    pub fn drop_ended(&mut self, tid: u32) {
        if let Some(at) = self.ended.iter().position(|ended| ended.tid == tid) {
            let ended = self.ended.swap_remove(at);
            self[ended.tracer].tracees -= 1;
            self.pids.drop_use(tid);
        }
    }

    /// The threads that have ended under a tracer that has not waited for them.
    pub fn first_ended(&self, tracer: ProcessIndex) -> Option<Ended> {
        self.ended.iter().find(|ended| ended.tracer == tracer).copied()
    }

    /// A zombie that its tracer is to wait for before its parent.
    pub fn hold_zombie(&mut self, p: ProcessIndex, tracer: ProcessIndex) {
        if self[p].last_tracer.replace(tracer).is_none() {
            self[tracer].tracees += 1;
        }
        self.news_changed(p);
    }

    /// Its tracer has waited for it, or is gone: it is its parent's now.
    pub fn give_zombie_to_parent(&mut self, p: ProcessIndex) {
        if let Some(tracer) = self[p].last_tracer.take() {
            self[tracer].tracees -= 1;
            self.news_changed(p);
        }
    }

    /// The zombies that this tracer is to wait for.
    pub fn zombies_of_tracer(&self, tracer: ProcessIndex) -> impl Iterator<Item = ProcessIndex> {
        self.processes().filter(move |(_, process)| process.last_tracer == Some(tracer)).map(|(p, _)| p)
    }

    /// What a wait of a tracer has to report of those whom it traces.
    pub fn find_traced(&self, tracer: ProcessIndex, wait: &Wait) -> Option<Found> {
        if self[tracer].tracees == 0 {
            return None;
        }
        let selects = |t: &ThreadIndex| wait.selects(self[*t].tid(), self[self.process_of(*t)].group());
        let order = |t: &ThreadIndex| self[*t].trace.filter(|trace| trace.unreported && trace.stop.is_some());
        let stopped = self.tracees_of(tracer).filter(selects).filter_map(|t| Some((order(&t)?.order, t))).min();
        let ended = || {
            let of_thread = self.ended.iter().find(|e| e.tracer == tracer && wait.selects(e.tid, e.group));
            of_thread.map(|ended| Found::Thread(*ended)).or_else(|| self.find_zombie(tracer, wait))
        };
        let ended = || if wait.wants_ends() { ended() } else { None };
        stopped.map(|(_, t)| Found::Stopped(t)).or_else(ended)
    }

    fn find_zombie(&self, tracer: ProcessIndex, wait: &Wait) -> Option<Found> {
        let mut zombies = self.zombies_of_tracer(tracer);
        let found = zombies.find(|p| wait.selects(self[*p].pid(), self[*p].group()))?;
        Some(Found::Process(found, self[found].zombie()?))
    }

    /// Whether a tracer traces somebody whom a wait is for.
    pub fn has_tracee(&self, tracer: ProcessIndex, wait: &Wait) -> bool {
        let selects = |t: ThreadIndex| wait.selects(self[t].tid(), self[self.process_of(t)].group());
        self[tracer].tracees != 0
            && (self.tracees_of(tracer).any(selects)
                || self.ended.iter().any(|e| e.tracer == tracer && wait.selects(e.tid, e.group))
                || self.find_zombie(tracer, wait).is_some())
    }

    /// Counts again who is traced by whom, after the death of a predecessor.
    pub(super) fn recount_tracees(&mut self) {
        for p in self.positions() {
            self[p].tracees = 0;
        }
        for t in ThreadIndex::all() {
            if self[t].endpoint() != Endpoint::NONE
                && let Some(trace) = self[t].trace
            {
                self[trace.tracer].tracees += 1;
            }
        }
        for at in 0..self.ended.len() {
            let Ended { tid, tracer, .. } = self.ended[at];
            self.pids.retain(tid);
            self[tracer].tracees += 1;
        }
        for p in self.positions() {
            if let Some(tracer) = self[p].last_tracer {
                self[tracer].tracees += 1;
            }
        }
    }
}
