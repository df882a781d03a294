//! One thread of a program, as pm sees it.

use super::arguments::Execution;
use super::index::{ProcessIndex, ThreadIndex};
use super::messages::Wanted;
use super::name::ShortName;
use super::scheduling::Scheduling;
use super::seccomp::Seccomp;
use super::semaphores::Operation;
use super::signal::frame::{AltStack, Trap};
use super::signal::{Action, Pending, Set, SigInfo};
use super::trace::Trace;
use super::wait::Wait;
use abi::{Endpoint, Errno};
use alloc::{rc::Rc, vec::Vec};

/// The state of a thread, as far as pm is concerned.
#[derive(Debug)]
pub enum Doing {
    /// It runs, or waits for another server: pm owes it nothing.
    Running,
    /// It reported `kernel::Interrupted` and stays there because its process is stopped.
    Held,
    /// Its call has ended; the reply waits because its process is stopped.
    Ended(Result<u64, Errno>),
    /// `wait4`, `waitid`.
    Waiting(WaitCall),
    /// `nanosleep`, `clock_nanosleep`.
    Sleeping(Sleep),
    /// `pause`, `rt_sigsuspend`.
    Pausing,
    /// `rt_sigtimedwait`.
    SignalWaiting(SignalWait),
    /// `semop`, `semtimedop`.
    SemaphoreWaiting(SemaphoreWait),
    /// `msgsnd`: until there is room.
    MessageSending(MessageSend),
    /// `msgrcv`: until there is a message.
    MessageReceiving(MessageReceive),
    /// `vfork`: until the child is done with the memory.
    Vforking {
        /// The child's pid.
        child: u32,
    },
    /// `execve`: until vfs has the image.
    Executing(Rc<Execution>),
}

impl Doing {
    /// When its sleep or timed wait is over.
    pub fn deadline_ns(&self) -> Option<u64> {
        match self {
            Doing::Sleeping(sleep) => Some(sleep.deadline_ns),
            Doing::SignalWaiting(wait) => wait.deadline_ns,
            Doing::SemaphoreWaiting(wait) => wait.deadline_ns,
            _ => None,
        }
    }
}

/// Where a finished wait puts its results.
#[derive(Clone, Copy, Debug)]
pub struct WaitCall {
    /// What is waited for.
    pub wait: Wait,
    /// `waitid` instead of `wait4`: `status` is a siginfo.
    pub is_waitid: bool,
    /// Address of the status word or siginfo; 0: none.
    pub status: u64,
    /// Address of the rusage; 0: none.
    pub usage: u64,
}

/// Which ids a thread has asked for, and whether the kernel tells it some.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Asked for once, or more often: one bit for each call of `abi::linux::KEPT`.
    pub asked: u8,
    /// The kernel has been left an answer.
    pub are_left: bool,
}

/// A sleep.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    /// When it is over.
    pub deadline_ns: u64,
    /// Where the rest goes when a signal ends it; 0: nowhere.
    pub rest: u64,
}

/// A wait for a signal.
#[derive(Clone, Copy, Debug)]
pub struct SignalWait {
    /// The signals.
    pub set: Set,
    /// Where the siginfo goes; 0: nowhere.
    pub info: u64,
    /// When it gives up.
    pub deadline_ns: Option<u64>,
}

/// The signals that a call has taken out of the queues, for a request of vfs that comes again.
#[derive(Clone, Copy, Debug, Default)]
pub struct TakenSignals {
    /// The call's number.
    pub call: u64,
    /// How many have been written to its buffer.
    pub count: u64,
    /// One that is out of its queue and not written yet.
    pub unwritten: Option<SigInfo>,
    /// No more are taken.
    pub ended: bool,
}

/// Since when a real-time thread has run without a call, as pm has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSince {
    /// Messages of its calls so far.
    pub messages: u64,
    /// Its processor time then.
    pub run_ns: u64,
}

/// A wait for semaphores of a set.
#[derive(Clone, Debug)]
pub struct SemaphoreWait {
    /// The set.
    pub id: u32,
    /// What is to be done.
    pub operations: Vec<Operation>,
    /// Index of the operation that is not possible yet.
    pub blocked: usize,
    /// When it gives up.
    pub deadline_ns: Option<u64>,
}

/// A message that waits for room in a queue. It is in the sender's memory.
#[derive(Clone, Copy, Debug)]
pub struct MessageSend {
    /// The queue.
    pub id: u32,
    /// Address of the type, which the text follows.
    pub address: u64,
    /// Length of the text.
    pub bytes: usize,
}

/// A wait for a message of a queue.
#[derive(Clone, Copy, Debug)]
pub struct MessageReceive {
    /// The queue.
    pub id: u32,
    /// Where type and text go.
    pub address: u64,
    /// Longest text.
    pub bytes: usize,
    /// Which message.
    pub wanted: Wanted,
    /// A longer text is truncated (MSG_NOERROR).
    pub truncates: bool,
}

/// What a thread was before it was given a signal: so it is again, with the signal pending, should pm die over that.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Which thread.
    pub thread: ThreadIndex,
    /// The signal.
    pub info: SigInfo,
    /// The process' action for it.
    pub action: Action,
    /// The thread's blocked signals.
    pub blocked: Set,
    /// The mask to come back to.
    pub restore_mask: Option<Set>,
    /// The alternate stack.
    pub stack: AltStack,
}

/// One thread. To which process it belongs, and its ids, are changed by the [`Table`](super::table::Table) alone.
#[derive(Debug)]
pub struct Thread {
    /// Its endpoint; `NONE` marks a free entry.
    pub(super) endpoint: Endpoint,
    /// The process it belongs to.
    pub(super) process: ProcessIndex,
    /// Its id.
    pub(super) tid: u32,
    /// The next thread of the process.
    pub(super) next: Option<ThreadIndex>,
    /// What it does.
    pub doing: Doing,
    /// Number of the Linux call it last made to pm.
    pub call: u32,
    /// Which of its calls that was (`abi::message::REPEATED`); calls that only look something up do not count.
    pub serial: u64,
    /// Result of that call; `None` while it is in progress or waits.
    pub outcome: Option<Result<u64, Errno>>,
    /// It is complete: kernel, vm and vfs know it.
    pub ready: bool,
    /// It is being torn down.
    pub leaving: bool,
    /// What it has used is counted for its process.
    pub settled: bool,
    /// It is stopped because its container has used its share of the processor.
    pub throttled: bool,
    /// Blocked signals.
    pub blocked: Set,
    /// The mask to come back to, while `rt_sigsuspend` has another one in force.
    pub restore_mask: Option<Set>,
    /// Signals for this thread alone.
    pub pending: Pending,
    /// Signals of whose arrival vfs is to be told, once: the thread waits for them by a signalfd.
    pub watched: Set,
    /// For RLIMIT_RTTIME; `None`: pm has not looked since it has a real-time policy.
    pub run_since: Option<RunSince>,
    /// vfs is to be told of the next signal, whichever it is.
    pub watches_all: bool,
    /// What its call that reads a signalfd has taken.
    pub taken: TakenSignals,
    /// Alternate signal stack.
    pub stack: AltStack,
    /// Last exception, for signal frames.
    pub trap: Trap,
    /// Address that is cleared when the thread ends; 0: none.
    pub clear_tid: u64,
    /// Head and length of the robust futex list.
    pub robust: (u64, u64),
    /// Policy and priority.
    pub scheduling: Scheduling,
    /// Its ids that the kernel tells it.
    pub answers: Answers,
    /// Which calls it may make.
    pub seccomp: Seccomp,
    /// It is traced.
    pub trace: Option<Trace>,
    /// What is left of a sleep that a stop has ended: `restart_syscall` goes on with it.
    pub restart: Option<Sleep>,
    /// Its name, if it is not the first of its process, which has that of the process.
    pub own_name: Option<ShortName>,
}

impl Thread {
    /// Its endpoint; `NONE` for a free entry.
    #[inline]
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// The process it belongs to.
    #[inline]
    pub fn process(&self) -> ProcessIndex {
        self.process
    }

    /// Its id.
    #[inline]
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// The next thread of its process.
    #[inline]
    pub fn next(&self) -> Option<ThreadIndex> {
        self.next
    }

    /// A free entry.
    pub(super) fn free() -> Thread {
        Thread {
            endpoint: Endpoint::NONE,
            process: ProcessIndex::at(0),
            tid: 0,
            next: None,
            doing: Doing::Running,
            call: 0,
            serial: 0,
            outcome: None,
            ready: false,
            leaving: false,
            settled: false,
            throttled: false,
            blocked: Set::EMPTY,
            restore_mask: None,
            pending: Pending::default(),
            watched: Set::EMPTY,
            run_since: None,
            watches_all: false,
            taken: TakenSignals::default(),
            stack: AltStack::NONE,
            trap: Trap::default(),
            clear_tid: 0,
            robust: (0, 0),
            scheduling: Scheduling::default(),
            answers: Answers::default(),
            seccomp: Seccomp::Off,
            trace: None,
            restart: None,
            own_name: None,
        }
    }

    /// Makes the entry a new thread's; the caller then copies what it inherits.
    pub(super) fn occupy(&mut self, endpoint: Endpoint, process: ProcessIndex, tid: u32) {
        *self = Thread { endpoint, process, tid, ..Thread::free() };
    }
}
