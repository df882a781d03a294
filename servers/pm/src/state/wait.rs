//! What `wait4` and `waitid` wait for, and how the fate of a child is told. Pure; `wait_calls` joins it to processes.

use super::signal::Signal;
use super::signal::info::code;
use crate::system::Identity;

/// WNOHANG.
pub const NO_HANG: u64 = 1;
/// WUNTRACED, WSTOPPED.
pub const STOPPED: u64 = 2;
/// WEXITED.
pub const EXITED: u64 = 4;
/// WCONTINUED.
pub const CONTINUED: u64 = 8;
/// WNOWAIT: the event stays for another wait.
pub const NO_WAIT: u64 = 0x0100_0000;
/// __WNOTHREAD.
pub const NO_THREAD: u64 = 0x2000_0000;
/// __WALL: children of either kind.
pub const ALL: u64 = 0x4000_0000;
/// __WCLONE: only children that end with another signal than SIGCHLD.
pub const CLONE: u64 = 0x8000_0000;

/// Which children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Any.
    Any,
    /// The one with this pid.
    Pid(u32),
    /// This one and no later one with its pid.
    Exactly(Identity),
    /// Those of this process group.
    Group(u32),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status, 0 to 255.
    Exited(u8),
    /// A signal killed it.
    Killed(Signal),
    /// A signal killed it, and a core dump was written.
    Dumped(Signal),
}

/// What a wait reports of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has ended.
    Ended(Ending),
    /// A signal stopped it.
    Stopped(Signal),
    /// SIGCONT continued it.
    Continued,
}

impl Event {
    /// As the status word of `wait4`.
    pub fn status(self) -> u32 {
        match self {
            Event::Ended(Ending::Exited(status)) => (status as u32) << 8,
            Event::Ended(Ending::Killed(signal)) => signal.number() as u32,
            Event::Ended(Ending::Dumped(signal)) => signal.number() as u32 | 0x80,
            Event::Stopped(signal) => (signal.number() as u32) << 8 | 0x7f,
            Event::Continued => 0xffff,
        }
    }

    /// As `si_code` and `si_status`.
    pub fn code_and_status(self) -> (i32, i32) {
        match self {
            Event::Ended(Ending::Exited(status)) => (code::CHILD_EXITED, status as i32),
            Event::Ended(Ending::Killed(signal)) => (code::CHILD_KILLED, signal.number() as i32),
            Event::Ended(Ending::Dumped(signal)) => (code::CHILD_DUMPED, signal.number() as i32),
            Event::Stopped(signal) => (code::CHILD_STOPPED, signal.number() as i32),
            Event::Continued => (code::CHILD_CONTINUED, Signal::CONT.number() as i32),
        }
    }
}

/// What a wait must know of one child.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its pid.
    pub pid: u32,
    /// How many had the pid before it.
    pub generation: u32,
    /// Its process group.
    pub group: u32,
    /// Its end is told by SIGCHLD.
    pub ordinary: bool,
    /// It has ended.
    pub ending: Option<Ending>,
    /// It was stopped, and no wait has reported it.
    pub stop_to_report: Option<Signal>,
    /// It was continued, and no wait has reported it.
    pub continue_to_report: bool,
}

/// A wait in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Which children.
    pub selector: Selector,
    /// `wait4`'s and `waitid`'s options.
    pub options: u64,
}

impl Wait {
    /// The child is one of those waited for.
    pub fn concerns(&self, child: &Child) -> bool {
        let kind = self.options & ALL != 0 || child.ordinary == (self.options & CLONE == 0);
        kind && match self.selector {
            Selector::Any => true,
            Selector::Pid(pid) => pid == child.pid,
            Selector::Exactly(identity) => identity == Identity { pid: child.pid, generation: child.generation },
            Selector::Group(group) => group == child.group,
        }
    }

    /// The wait is for ends.
    pub fn wants_ends(&self) -> bool {
        self.options & EXITED != 0
    }

    /// What there is to report of a child that is waited for.
    pub fn event(&self, child: &Child) -> Option<Event> {
        let wants = |option| self.options & option != 0;
        match child {
            Child { ending: Some(ending), .. } => wants(EXITED).then_some(Event::Ended(*ending)),
            Child { stop_to_report: Some(signal), .. } if wants(STOPPED) => Some(Event::Stopped(*signal)),
            Child { continue_to_report: true, .. } if wants(CONTINUED) => Some(Event::Continued),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: Child = Child {
        pid: 7,
        generation: 3,
        group: 5,
        ordinary: true,
        ending: None,
        stop_to_report: None,
        continue_to_report: false,
    };

    fn wait(selector: Selector, options: u64) -> Wait {
        Wait { selector, options }
    }

    #[test]
    fn selection_is_by_pid_group_or_any() {
        for (selector, expected) in [
            (Selector::Any, true),
            (Selector::Pid(7), true),
            (Selector::Pid(8), false),
            (Selector::Exactly(Identity { pid: 7, generation: 3 }), true),
            (Selector::Exactly(Identity { pid: 7, generation: 4 }), false),
            (Selector::Group(5), true),
            (Selector::Group(7), false),
        ] {
            assert_eq!(wait(selector, EXITED).concerns(&CHILD), expected, "{selector:?}");
        }
    }

    #[test]
    fn clone_children_need_their_options() {
        let clone = Child { ordinary: false, ..CHILD };
        assert!(!wait(Selector::Any, EXITED).concerns(&clone));
        assert!(wait(Selector::Any, EXITED | CLONE).concerns(&clone));
        assert!(!wait(Selector::Any, EXITED | CLONE).concerns(&CHILD));
        assert!(wait(Selector::Any, EXITED | ALL).concerns(&clone));
    }

    #[test]
    fn events_are_reported_only_to_those_who_asked() {
        let stopped = Child { stop_to_report: Some(Signal::TSTP), ..CHILD };
        assert_eq!(wait(Selector::Any, EXITED).event(&stopped), None);
        assert_eq!(wait(Selector::Any, STOPPED).event(&stopped), Some(Event::Stopped(Signal::TSTP)));
        let continued = Child { continue_to_report: true, ..CHILD };
        assert_eq!(wait(Selector::Any, EXITED | CONTINUED).event(&continued), Some(Event::Continued));
        let dead = Child { ending: Some(Ending::Exited(3)), ..stopped };
        assert_eq!(wait(Selector::Any, STOPPED).event(&dead), None);
        assert_eq!(wait(Selector::Any, EXITED).event(&dead), Some(Event::Ended(Ending::Exited(3))));
    }

    #[test]
    fn status_words_are_those_of_the_wait_macros() {
        assert_eq!(Event::Ended(Ending::Exited(3)).status(), 0x300);
        assert_eq!(Event::Ended(Ending::Killed(Signal::SEGV)).status(), 11);
        assert_eq!(Event::Stopped(Signal::TSTP).status(), 0x147f);
        assert_eq!(Event::Continued.status(), 0xffff);
    }
}
