//! Signal numbers, sets of signals, and the default action of each (signal(7)).

use abi::Errno;

/// Highest signal number.
pub const LAST: u8 = 64;
/// First real-time signal: these queue, each with its own value.
pub const FIRST_REAL_TIME: u8 = 32;

/// A signal, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(u8);

/// What happens by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// The process ends.
    Terminate,
    /// Nothing.
    Ignore,
    /// The process stops.
    Stop,
    /// Continues a stopped process; else nothing.
    Continue,
}

#[allow(missing_docs)]
impl Signal {
    pub const HUP: Signal = Signal(1);
    #[cfg(test)]
    pub const INT: Signal = Signal(2);
    pub const ILL: Signal = Signal(4);
    pub const TRAP: Signal = Signal(5);
    pub const BUS: Signal = Signal(7);
    pub const FPE: Signal = Signal(8);
    pub const KILL: Signal = Signal(9);
    pub const SEGV: Signal = Signal(11);
    pub const PIPE: Signal = Signal(13);
    pub const ALRM: Signal = Signal(14);
    pub const CHLD: Signal = Signal(17);
    pub const CONT: Signal = Signal(18);
    pub const STOP: Signal = Signal(19);
    pub const TSTP: Signal = Signal(20);
    pub const TTIN: Signal = Signal(21);
    pub const TTOU: Signal = Signal(22);
    pub const URG: Signal = Signal(23);
    pub const XCPU: Signal = Signal(24);
    pub const VTALRM: Signal = Signal(26);
    pub const PROF: Signal = Signal(27);
    pub const WINCH: Signal = Signal(28);
    pub const IO: Signal = Signal(29);
    pub const SYS: Signal = Signal(31);

    /// The signal with this number. `EINVAL` for 0 and above 64.
    pub fn new(number: u64) -> Result<Signal, Errno> {
        match number {
            1..=64 => Ok(Signal(number as u8)),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Position in tables of 64.
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// The set of just this signal.
    pub const fn set(self) -> Set {
        Set(1 << (self.0 - 1))
    }

    /// Queues once for each sending.
    pub const fn is_real_time(self) -> bool {
        self.0 >= FIRST_REAL_TIME
    }

    /// What happens when the process has no other wish.
    pub fn default_action(self) -> Default {
        match self {
            Signal::CHLD | Signal::URG | Signal::WINCH => Default::Ignore,
            Signal::CONT => Default::Continue,
            Signal::STOP | Signal::TSTP | Signal::TTIN | Signal::TTOU => Default::Stop,
            _ => Default::Terminate,
        }
    }
}

/// A set of signals, as Linux's `sigset_t` of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(pub u64);

impl Set {
    /// No signal.
    pub const EMPTY: Set = Set(0);
    /// SIGKILL and SIGSTOP, which nobody can block, catch or ignore.
    pub const UNSTOPPABLE: Set = Signal::KILL.set().or(Signal::STOP.set());
    /// Signals that stop by default.
    pub const STOPS: Set = Signal::STOP.set().or(Signal::TSTP.set()).or(Signal::TTIN.set()).or(Signal::TTOU.set());
    /// Signals that an instruction of the program itself causes; they are delivered before all others.
    pub const SYNCHRONOUS: Set = Signal::SEGV
        .set()
        .or(Signal::BUS.set())
        .or(Signal::ILL.set())
        .or(Signal::TRAP.set())
        .or(Signal::FPE.set())
        .or(Signal::SYS.set());

    /// In either.
    pub const fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }
    /// In both.
    pub const fn and(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }
    /// In this, not in `other`.
    pub const fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }
    /// Holds the signal.
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & signal.set().0 != 0
    }
    /// Holds nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signal to deliver next: those an instruction caused, then by number.
    pub fn next(self) -> Option<Signal> {
        let urgent = self.and(Set::SYNCHRONOUS);
        let from = if urgent.is_empty() { self.0 } else { urgent.0 };
        (from != 0).then(|| Signal(from.trailing_zeros() as u8 + 1))
    }
}

/// Name for the console.
pub fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::ILL => "SIGILL",
        Signal::TRAP => "SIGTRAP",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::KILL => "SIGKILL",
        Signal::SEGV => "SIGSEGV",
        _ => "a signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_faults_come_first_then_low_numbers() {
        let set = Signal::HUP.set().or(Signal::SEGV.set()).or(Signal::CHLD.set());
        assert_eq!(set.next(), Some(Signal::SEGV));
        assert_eq!(set.without(Signal::SEGV.set()).next(), Some(Signal::HUP));
        assert_eq!(Set::EMPTY.next(), None);
    }

    #[test]
    fn only_one_to_sixty_four_are_signals() {
        assert_eq!(Signal::new(0), Err(Errno::EINVAL));
        assert_eq!(Signal::new(65), Err(Errno::EINVAL));
        assert_eq!(Signal::new(64).map(|s| s.set().0), Ok(1 << 63));
    }
}
