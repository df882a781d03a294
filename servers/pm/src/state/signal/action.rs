//! What a process wants done about each signal: `rt_sigaction`'s structure and table.

use super::{Set, Signal, number::Default as ByDefault};

/// SIGCHLD not for stopped children.
pub const NO_CHILD_STOP: u64 = 1;
/// Children are not kept as zombies.
pub const NO_CHILD_WAIT: u64 = 2;
/// The action brings its return trampoline.
pub const RESTORER: u64 = 0x0400_0000;
/// The handler runs on the alternate stack.
pub const ON_STACK: u64 = 0x0800_0000;
/// Interrupted calls are repeated.
pub const RESTART: u64 = 0x1000_0000;
/// The signal is not blocked while its handler runs.
pub const NO_DEFER: u64 = 0x4000_0000;
/// The action falls back to the default when the handler starts.
pub const RESET_HAND: u64 = 0x8000_0000;

const HANDLER_DEFAULT: u64 = 0;
const HANDLER_IGNORE: u64 = 1;

/// Size of the kernel's `struct sigaction`.
pub const ACTION_BYTES: usize = 32;

/// One entry of the table, as in memory of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Address of the handler, 0 default, 1 ignore.
    pub handler: u64,
    /// `SA_*`.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Blocked while the handler runs.
    pub mask: Set,
}

/// What is to happen with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing.
    Ignore,
    /// The process ends.
    Terminate,
    /// The process stops.
    Stop,
    /// A handler runs.
    Handle,
}

impl Action {
    /// From a program's memory.
    pub fn from_bytes(bytes: &[u8; ACTION_BYTES]) -> Self {
        let word = |n: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[8 * n + i]));
        let mask = Set(word(3)).without(Set::UNSTOPPABLE);
        Action { handler: word(0), flags: word(1), restorer: word(2), mask }
    }

    /// Into a program's memory.
    pub fn to_bytes(self) -> [u8; ACTION_BYTES] {
        let mut bytes = [0; ACTION_BYTES];
        for (n, word) in [self.handler, self.flags, self.restorer, self.mask.0].into_iter().enumerate() {
            bytes[8 * n..8 * n + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Has a flag.
    pub const fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// A handler is set.
    pub const fn is_handled(&self) -> bool {
        self.handler > HANDLER_IGNORE
    }

    /// SIG_IGN is set.
    pub const fn is_ignored(&self) -> bool {
        self.handler == HANDLER_IGNORE
    }

    /// SIG_IGN or SA_NOCLDWAIT for SIGCHLD: children do not become zombies.
    pub const fn keeps_no_zombies(&self) -> bool {
        self.is_ignored() || self.has(NO_CHILD_WAIT)
    }

    /// What this action means for `signal`.
    pub fn disposition(&self, signal: Signal) -> Disposition {
        match (self.handler, signal.default_action()) {
            (HANDLER_IGNORE, _) => Disposition::Ignore,
            (HANDLER_DEFAULT, ByDefault::Terminate) => Disposition::Terminate,
            (HANDLER_DEFAULT, ByDefault::Stop) => Disposition::Stop,
            (HANDLER_DEFAULT, ByDefault::Ignore | ByDefault::Continue) => Disposition::Ignore,
            _ => Disposition::Handle,
        }
    }

    /// The mask that holds while the handler for `signal` runs.
    pub fn mask_in_handler(&self, blocked: Set, signal: Signal) -> Set {
        let own = if self.has(NO_DEFER) { Set::EMPTY } else { signal.set() };
        blocked.or(self.mask).or(own).without(Set::UNSTOPPABLE)
    }
}

/// The actions of a process by signal.
pub type Actions = [Action; super::number::LAST as usize];

/// After exec: handlers are gone, ignored signals stay ignored.
pub fn reset_for_exec(actions: &mut Actions) {
    for action in actions {
        let handler = if action.is_ignored() { HANDLER_IGNORE } else { HANDLER_DEFAULT };
        *action = Action { handler, ..Action::default() };
    }
}

/// Returns the signals that are ignored by SIG_IGN, and those that have handlers.
pub fn ignored_and_handled(actions: &Actions) -> (Set, Set) {
    let (mut ignored, mut handled) = (0, 0);
    for (n, action) in actions.iter().enumerate().filter(|(_, action)| action.handler != HANDLER_DEFAULT) {
        *if action.is_ignored() { &mut ignored } else { &mut handled } |= 1 << n;
    }
    (Set(ignored), Set(handled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_signal() {
        let action = Action::default();
        assert_eq!(action.disposition(Signal::INT), Disposition::Terminate);
        assert_eq!(action.disposition(Signal::CHLD), Disposition::Ignore);
        assert_eq!(action.disposition(Signal::TSTP), Disposition::Stop);
        assert_eq!(action.disposition(Signal::CONT), Disposition::Ignore);
        let ignore = Action { handler: 1, ..action };
        assert_eq!(ignore.disposition(Signal::INT), Disposition::Ignore);
    }

    #[test]
    fn the_handler_mask_never_blocks_kill_or_stop() {
        let action = Action { handler: 99, mask: Set(u64::MAX), ..Action::default() };
        let mask = action.mask_in_handler(Set::EMPTY, Signal::INT);
        assert!(mask.contains(Signal::INT) && !mask.contains(Signal::KILL) && !mask.contains(Signal::STOP));
        let nodefer = Action { flags: NO_DEFER, mask: Set::EMPTY, ..action };
        assert!(nodefer.mask_in_handler(Set::EMPTY, Signal::INT).is_empty());
    }

    #[test]
    fn exec_keeps_only_what_is_ignored() {
        let mut actions = [Action { handler: 77, flags: RESTART, restorer: 5, mask: Set(3) }; 64];
        actions[1].handler = 1;
        reset_for_exec(&mut actions);
        assert_eq!(ignored_and_handled(&actions), (Signal::INT.set(), Set::EMPTY));
        assert_eq!(actions[0], Action::default());
        assert_eq!(actions[1].flags, 0);
    }
}
