//! What a container with limits is called, what it may have, and whether it has used its share of the processor.
//!
//! Processes are counted by `Table`'s quota, memory by vm, files and pipes by vfs, each under the container's account. The processor is counted
//! here as a credit: it grows with time, by the container's percent, and shrinks by what its threads have run and by what services may have
//! done for them: so much for each message and each new process, and all that they did if one is at work for the container when pm looks. Whose
//! credit is below zero waits. Neighbours: `containers`, and `process::limited`, which looks and acts.

use abi::container::{CONTAINERS, Settings};
use abi::{Errno, Name};

/// Distance of two looks at who has used what.
pub const LOOK_NS: u64 = 10_000_000;
/// Credit that a container which has been quiet has at most, as if it had been quiet for so long.
const BURST_NS: u64 = 2 * LOOK_NS;
/// What services do at most for a message of a program, in nearly all calls; those that take longer are seen at work at the next look.
const MESSAGE_MOST_NS: u64 = 20_000;
/// What they do at most for a process that comes and goes.
const PROCESS_MOST_NS: u64 = 300_000;

/// What threads of a container have used since they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Time that they ran.
    pub run_ns: u64,
    /// Messages that they sent and received.
    pub messages: u64,
}

impl Use {
    /// Both together.
    pub fn plus(self, other: Use) -> Use {
        Use { run_ns: self.run_ns + other.run_ns, messages: self.messages + other.messages }
    }
}

/// What services have done between two looks.
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// How long they ran, for whomever.
    pub run_ns: u64,
    /// One of them works for the container at this look.
    pub at_work: bool,
}

/// Whether the threads of a container may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// They run.
    Runs,
    /// They wait until time has passed.
    Waits,
}

/// See the head of the file.
#[derive(Clone, Copy, Debug)]
pub struct Limited {
    name: Name,
    settings: Settings,
    /// Of threads that have ended.
    ended: Use,
    /// Processes that were made since the last look.
    made: u64,
    /// What all threads had used at the last look, and when that was.
    looked: Use,
    looked_ns: u64,
    credit_ns: i64,
    turn: Turn,
}

impl Limited {
    /// A container that begins now. `EINVAL`: settings that make no sense.
    pub fn new(name: Name, settings: Settings, now_ns: u64) -> Result<Limited, Errno> {
        if settings.processes == 0 || !(1..=100).contains(&settings.percent) || name == Name::default() {
            return Err(Errno::EINVAL);
        }
        let (ended, looked) = (Use::default(), Use::default());
        Ok(Limited { name, settings, ended, made: 0, looked, looked_ns: now_ns, credit_ns: 0, turn: Turn::Runs })
    }

    /// Its name.
    pub fn name(&self) -> Name {
        self.name
    }

    /// What it may have.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A thread of it has ended.
    pub fn add_ended(&mut self, used: Use) {
        self.ended = self.ended.plus(used);
    }

    /// A process has been made in it.
    pub fn count_made(&mut self) {
        self.made += 1;
    }

    /// Whether somebody must look at what it uses.
    pub fn is_watched(&self) -> bool {
        self.settings.percent < 100
    }

    /// How long its threads have run so far, when the living ones have used this.
    pub fn run_ns(&self, living: Use) -> u64 {
        self.ended.plus(living).run_ns
    }

    /// Whether its threads run.
    #[cfg(test)]
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// Settles accounts now, when its living threads have used this, and services have done that since the last look. Returns whether its
    /// threads may run from here on.
    pub fn look(&mut self, living: Use, services: Services, now_ns: u64) -> Turn {
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        let used_ns = self.used_since_look(self.ended.plus(living), services).min(passed_ns);
        let earned_ns = passed_ns * self.settings.percent / 100;
        let most_ns = BURST_NS * self.settings.percent / 100;
        self.credit_ns = (self.credit_ns + earned_ns as i64 - used_ns as i64).min(most_ns as i64);
        self.looked_ns = now_ns;
        self.turn = if self.credit_ns < 0 { Turn::Waits } else { Turn::Runs };
        self.turn
    }

    /// What its threads have run, and what services have done for them: all that these did, unless it has asked for less and none is at work.
    fn used_since_look(&mut self, total: Use, services: Services) -> u64 {
        let messages = total.messages.saturating_sub(self.looked.messages);
        let asked_ns = messages * MESSAGE_MOST_NS + core::mem::take(&mut self.made) * PROCESS_MOST_NS;
        let run_ns = total.run_ns.saturating_sub(self.looked.run_ns);
        self.looked = total;
        run_ns + if services.at_work { services.run_ns } else { asked_ns.min(services.run_ns) }
    }
}

/// Something of each container, by number.
pub type ByContainer<T> = [T; CONTAINERS];

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(percent: u64) -> Limited {
        let settings = Settings { percent, ..Settings::NONE };
        Limited::new(Name::new("c").unwrap(), settings, 0).unwrap()
    }

    fn worked(run_ns: u64) -> Services {
        Services { run_ns, at_work: false }
    }

    /// The share of looks in which the container ran, in percent, if it uses all it gets.
    fn share_of_a_hog(percent: u64, others_run: impl Fn(u64) -> bool) -> u64 {
        let (mut limited, mut run_ns, mut now_ns, mut ran) = (limited(percent), 0, 0, 0);
        for look in 0..1000 {
            now_ns += LOOK_NS;
            if limited.turn() == Turn::Runs && !others_run(look) {
                run_ns += LOOK_NS;
                ran += 1;
            }
            limited.look(Use { run_ns, messages: 0 }, worked(LOOK_NS), now_ns);
        }
        ran / 10
    }

    #[test]
    fn a_hog_gets_its_percent_and_no_more() {
        for percent in [1, 10, 25, 50, 99] {
            let share = share_of_a_hog(percent, |_| false);
            assert!(share.abs_diff(percent) <= 1, "{share} of {percent}");
        }
    }

    #[test]
    fn who_was_kept_from_running_catches_up_for_a_moment_only() {
        // Quiet for half of the time: it does not get the other half as a whole.
        let share = share_of_a_hog(20, |look| look < 500);
        assert!((10..=11).contains(&share), "{share}");
    }

    #[test]
    fn what_services_do_for_it_counts() {
        let mut limited = limited(50);
        let messages = LOOK_NS / MESSAGE_MOST_NS;
        let asked = Use { run_ns: 0, messages };
        assert_eq!(limited.look(asked, worked(LOOK_NS), LOOK_NS), Turn::Waits);
        assert_eq!(limited.look(asked, worked(LOOK_NS), 2 * LOOK_NS), Turn::Runs, "services worked for others");
        (0..LOOK_NS / PROCESS_MOST_NS).for_each(|_| limited.count_made());
        limited.add_ended(Use { run_ns: LOOK_NS / 8, messages: 0 });
        assert_eq!(limited.look(asked, worked(LOOK_NS), 3 * LOOK_NS), Turn::Waits);
    }

    #[test]
    fn services_count_as_long_as_they_ran() {
        let mut limited = limited(50);
        let asked = Use { run_ns: 0, messages: u64::from(u32::MAX) };
        assert_eq!(limited.look(asked, worked(LOOK_NS / 2), LOOK_NS), Turn::Runs);
        limited.add_ended(asked);
        assert_eq!(limited.look(asked, worked(LOOK_NS / 2 + 1), 2 * LOOK_NS), Turn::Waits);
    }

    #[test]
    fn long_work_for_one_message_counts_as_long_as_it_takes() {
        let mut limited = limited(50);
        let asked = Use { run_ns: 0, messages: 1 };
        assert_eq!(limited.look(asked, Services { run_ns: LOOK_NS, at_work: true }, LOOK_NS), Turn::Waits);
        assert_eq!(limited.look(asked, Services { run_ns: 0, at_work: true }, 2 * LOOK_NS), Turn::Runs, "it is idle");
    }

    #[test]
    fn settings_must_make_sense() {
        let name = Name::new("c").unwrap();
        for settings in [
            Settings { processes: 0, ..Settings::NONE },
            Settings { percent: 0, ..Settings::NONE },
            Settings { percent: 101, ..Settings::NONE },
        ] {
            assert!(Limited::new(name, settings, 0).is_err());
        }
        assert!(Limited::new(Name::default(), Settings::NONE, 0).is_err());
        assert!(!Limited::new(name, Settings::NONE, 0).unwrap().is_watched());
    }
}
