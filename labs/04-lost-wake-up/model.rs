//! A waiter and a waker over one flag, as lists of atomic steps. `explore` and `MENDED` are yours to write.

/// One atomic step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waiter: looks at the flag and remembers it.
    Look,
    /// Waiter: sleeps if the flag was not set when it looked.
    SleepIfUnset,
    /// Waiter: looks, and sleeps if the flag is not set, in one step that nobody can come between.
    LookAndSleep,
    /// Waker: sets the flag.
    Set,
    /// Waker: wakes the waiter if it sleeps.
    Wake,
}
use Step::{Look, LookAndSleep, Set, SleepIfUnset, Wake};

/// The steps of both threads.
pub struct Protocol {
    /// Thread 0.
    pub waiter: &'static [Step],
    /// Thread 1.
    pub waker: &'static [Step],
}

/// A wake-up can be lost.
pub const BROKEN: Protocol = Protocol { waiter: &[Look, SleepIfUnset], waker: &[Set, Wake] };

/// No wake-up can be lost. (Yours to mend.)
pub const MENDED: Protocol = Protocol { waiter: &[Look, SleepIfUnset], waker: &[Set, Wake] };

/// Where both threads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    flag: bool,
    seen: bool,
    sleeps: bool,
    at: [usize; 2],
}

impl State {
    /// Makes the next step of `thread`; `None` when it cannot: it sleeps, or is done.
    pub fn step(mut self, protocol: &Protocol, thread: usize) -> Option<State> {
        let steps = [protocol.waiter, protocol.waker][thread];
        if thread == 0 && self.sleeps {
            return None;
        }
        match *steps.get(self.at[thread])? {
            Look => self.seen = self.flag,
            SleepIfUnset => self.sleeps = !self.seen,
            LookAndSleep => self.sleeps = !self.flag,
            Set => self.flag = true,
            Wake => self.sleeps = false,
        }
        self.at[thread] += 1;
        Some(self)
    }

    /// True when the waiter sleeps for ever: nobody is left who could wake it.
    pub fn is_lost(&self, protocol: &Protocol) -> bool {
        self.sleeps && self.step(protocol, 1).is_none()
    }
}

/// The first schedule (which thread makes each step) that ends in a lost wake-up; `None` when no interleaving does.
pub fn explore(protocol: &Protocol) -> Option<Vec<usize>> {
    let _ = (protocol, LookAndSleep);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(protocol: &Protocol, schedule: &[usize]) -> State {
        let step = |state: State, thread: &usize| state.step(protocol, *thread).expect("a step that can be made");
        schedule.iter().fold(State::default(), step)
    }

    #[test]
    fn the_lost_wake_up_is_found() {
        let schedule = explore(&BROKEN).expect("a schedule that loses the wake-up");
        assert!(replay(&BROKEN, &schedule).is_lost(&BROKEN), "{schedule:?} loses nothing");
    }

    #[test]
    fn the_mended_protocol_loses_none() {
        assert_eq!(explore(&MENDED), None);
        // Not by luck: these are all interleavings of the two threads that there are.
        for schedule in [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]] {
            let mut state = State::default();
            for thread in schedule {
                state = state.step(&MENDED, thread).unwrap_or(state);
            }
            assert!(!state.is_lost(&MENDED), "{schedule:?}");
        }
    }

    #[test]
    fn the_mended_waiter_sleeps_while_nobody_has_set_the_flag() {
        let mut state = State::default();
        while let Some(next) = state.step(&MENDED, 0) {
            state = next;
        }
        assert!(state.sleeps);
        assert!(MENDED.waker.contains(&Set) && MENDED.waker.contains(&Wake));
    }
}
