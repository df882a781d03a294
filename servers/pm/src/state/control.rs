//! What a process chooses for itself by prctl(2) and personality(2).

use super::signal::Signal;
use abi::Errno;

/// Flag of personality(2): addresses are the same in each run.
pub const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
/// Flags of personality(2) that a program with more rights than its caller does not inherit.
pub const CLEARED_ON_SETID: u32 = 0x0040_0000 | ADDR_NO_RANDOMIZE | 0x0010_0000 | 0x0020_0000;
/// What Linux says of timers at first. Those of pm are exact.
pub const TIMER_SLACK_NS: u64 = 50_000;

/// What PR_MCE_KILL chooses for when memory turns out to be broken, which nobody finds out here.
#[derive(Clone, Copy, Debug)]
pub enum MemoryFailure {
    /// The process is told when it uses the page.
    Late = 0,
    /// It is told at once.
    Early = 1,
    /// As the system is set.
    Default = 2,
}

impl MemoryFailure {
    /// `EINVAL`: no such choice.
    pub fn from_number(number: u64) -> Result<MemoryFailure, Errno> {
        match number {
            0 => Ok(MemoryFailure::Late),
            1 => Ok(MemoryFailure::Early),
            2 => Ok(MemoryFailure::Default),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Choices of a process.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// personality(2): execution domain and flags.
    pub personality: u32,
    /// The signal that it gets when its parent ends.
    pub parent_death: Option<Signal>,
    /// Others of its user may look into it.
    pub dumpable: bool,
    /// It adopts orphans among its descendants.
    pub subreaper: bool,
    /// No exec gives it rights that its caller does not have.
    pub no_new_privileges: bool,
    /// PR_MCE_KILL.
    pub memory_failure: MemoryFailure,
    /// PR_SET_THP_DISABLE, which has no effect: all pages are small.
    pub small_pages: bool,
    /// PR_SET_TIMERSLACK, which has no effect.
    pub timer_slack_ns: u64,
    /// ioprio_set(2), which has no effect: drivers serve requests in their order. 0: it follows niceness.
    pub io_priority: u16,
    /// Commands of membarrier(2) that it has registered for.
    pub barriers: u32,
}

impl Control {
    /// Of a process that has chosen nothing.
    pub const DEFAULT: Control = Control {
        personality: 0,
        parent_death: None,
        dumpable: true,
        subreaper: false,
        no_new_privileges: false,
        memory_failure: MemoryFailure::Default,
        small_pages: false,
        timer_slack_ns: TIMER_SLACK_NS,
        io_priority: 0,
        barriers: 0,
    };

    /// What a child begins with.
    pub fn for_child(self) -> Control {
        Control { parent_death: None, subreaper: false, ..self }
    }

    /// What a new program of the process begins with; `secure`: it has more rights than its caller.
    pub fn for_program(self, secure: bool) -> Control {
        let (personality, parent_death) = match secure {
            true => (self.personality & !CLEARED_ON_SETID, None),
            false => (self.personality, self.parent_death),
        };
        Control { personality, parent_death, dumpable: !secure, barriers: 0, ..self }
    }
}
