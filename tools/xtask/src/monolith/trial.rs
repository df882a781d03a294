//! What a user of the copy has seen, and what it took until the copy worked again.

use anyhow::{Context, Result, bail};

/// What the user has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The copy was right, and nothing was restarted: the mistake did not show.
    Nothing,
    /// The copy was right, but the driver was restarted meanwhile.
    Delay,
    /// A call failed, or the program was killed.
    Error,
    /// The copy did not end.
    Hung,
    /// All calls succeeded, and a file was wrong.
    WrongData,
    /// The whole machine did not answer any more.
    DeadMachine,
}

impl Seen {
    /// All of them, in the order of the table.
    pub const ALL: [Seen; 6] =
        [Seen::Nothing, Seen::Delay, Seen::Error, Seen::Hung, Seen::WrongData, Seen::DeadMachine];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Seen::Nothing => "nothing: the mistake did not show",
            Seen::Delay => "nothing but a delay: the driver was restarted",
            Seen::Error => "an error",
            Seen::Hung => "a copy that does not end",
            Seen::WrongData => "wrong data",
            Seen::DeadMachine => "a dead machine",
        }
    }
}

/// What it took until the copy worked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// It had never failed.
    None,
    /// The system restarted the driver by itself, unnoticed.
    Itself,
    /// Another try.
    Again,
    /// Somebody restarted the driver.
    Driver,
    /// Somebody restarted the machine.
    Machine,
}

impl Remedy {
    /// All of them, in the order of the table.
    pub const ALL: [Remedy; 5] = [Remedy::None, Remedy::Itself, Remedy::Again, Remedy::Driver, Remedy::Machine];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Remedy::None => "nothing",
            Remedy::Itself => "nothing: the system had restarted the driver",
            Remedy::Again => "another try",
            Remedy::Driver => "the driver restarted by hand",
            Remedy::Machine => "the machine restarted",
        }
    }
}

/// What came of one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the user has seen.
    pub seen: Seen,
    /// What helped.
    pub remedy: Remedy,
    /// The user's delay, or the time from the failure to the end of the copy that worked; of a restarted machine, from power-on.
    pub recovery_ns: u64,
    /// The step and the call, for people.
    pub reason: String,
}

/// Undisturbed times of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usual {
    /// From power-on to the end of the first copy.
    pub boot_ns: u64,
    /// The copy.
    pub copy_ns: u64,
}

/// The guest's line `seen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLine {
    outcome: String,
    reason: String,
    /// What the copy took.
    pub took_ns: u64,
}

impl SeenLine {
    /// Reads what follows `seen` in a guest's line: `OUTCOME STEP WHAT ERROR NS`.
    ///
    /// # Errors
    /// When it is no such line.
    pub fn read(words: &str) -> Result<Self> {
        let [outcome, step, what, error, took_ns] = words.split(' ').collect::<Vec<_>>()[..] else {
            bail!("expected five words, got '{words}'");
        };
        let reason = format!("{outcome}/{step}/{what}/{error}");
        Ok(Self { outcome: outcome.to_string(), reason, took_ns: took_ns.parse()? })
    }

    /// Whether the copy was right.
    pub fn passed(&self) -> bool {
        self.outcome == "passed"
    }

    fn seen(&self, restarts: u32) -> Result<Seen> {
        Ok(match self.outcome.as_str() {
            "passed" if restarts == 0 => Seen::Nothing,
            "passed" => Seen::Delay,
            "error" | "killed" => Seen::Error,
            "corrupted" => Seen::WrongData,
            "hung" => Seen::Hung,
            other => bail!("the guest sent the outcome '{other}'"),
        })
    }
}

impl Report {
    /// Nothing was heard of the machine any more, perhaps after it had told what the user saw.
    ///
    /// # Errors
    /// As of [`SeenLine::read`].
    pub fn dead(seen: Option<&SeenLine>, last_words: &str, usual: Usual) -> Result<Self> {
        let (reason, seen) = match seen {
            // A right copy on a machine that is dead afterwards is no comfort.
            Some(line) if !line.passed() => (line.reason.clone(), line.seen(0)?),
            _ => (format!("dead: {last_words}"), Seen::DeadMachine),
        };
        Ok(Self { seen, remedy: Remedy::Machine, recovery_ns: usual.boot_ns, reason })
    }

    /// Reads what follows `done`: `HOW NS RESTARTS RECOVERY_NS`.
    ///
    /// # Errors
    /// When it is no such line.
    pub fn done(line: &SeenLine, words: &str, usual: Usual) -> Result<Self> {
        let mut words = words.split(' ');
        let mut word = || words.next().context("a word is missing in the guest's line");
        let (how, waited_ns, restarts) = (word()?, word()?.parse()?, word()?.parse()?);
        let seen = line.seen(restarts)?;
        let (remedy, recovery_ns) = match how {
            "nothing" if restarts == 0 => (Remedy::None, 0),
            "nothing" => (Remedy::Itself, line.took_ns.saturating_sub(usual.copy_ns)),
            "again" => (Remedy::Again, waited_ns),
            "driver" => (Remedy::Driver, waited_ns),
            "machine" => (Remedy::Machine, usual.boot_ns),
            other => bail!("the guest sent the remedy '{other}'"),
        };
        Ok(Self { seen, remedy, recovery_ns, reason: line.reason.clone() })
    }

    /// One line for the file of results.
    pub fn line(&self) -> String {
        format!("{:?} {:?} {} {}", self.seen, self.remedy, self.recovery_ns, self.reason)
    }

    /// Reads such a line. None: it is none.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (seen, remedy) = (words.next()?, words.next()?);
        Some(Self {
            seen: Seen::ALL.into_iter().find(|own| format!("{own:?}") == seen)?,
            remedy: Remedy::ALL.into_iter().find(|own| format!("{own:?}") == remedy)?,
            recovery_ns: words.next()?.parse().ok()?,
            reason: words.next()?.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Usual = Usual { boot_ns: 5000, copy_ns: 100 };

    fn report(seen: &str, done: &str) -> Report {
        Report::done(&SeenLine::read(seen).expect("is read"), done, USUAL).expect("is read")
    }

    #[test]
    fn a_right_copy_is_a_delay_only_if_the_driver_was_restarted() {
        assert_eq!(report("passed remove - 0 101", "nothing 3 0 0").seen, Seen::Nothing);
        let delayed = report("passed remove - 0 900", "nothing 3 1 50");
        assert_eq!((delayed.seen, delayed.remedy, delayed.recovery_ns), (Seen::Delay, Remedy::Itself, 800));
    }

    #[test]
    fn recovery_by_hand_is_counted_from_the_failure_and_by_reboot_from_power_on() {
        let by_hand = report("error copy fsync 5 80", "driver 700 1 50");
        assert_eq!((by_hand.seen, by_hand.remedy, by_hand.recovery_ns), (Seen::Error, Remedy::Driver, 700));
        assert_eq!(report("hung copy - 0 80", "machine 9000 0 0").recovery_ns, 5000);
    }

    #[test]
    fn reports_are_read_back_from_their_lines() {
        let by_hand = report("error copy fsync 5 80", "driver 700 1 50");
        assert_eq!(Report::from_line(&by_hand.line()), Some(by_hand));
        assert_eq!(Report::from_line("Error Driver"), None);
    }

    #[test]
    fn a_machine_that_dies_after_the_copy_failed_keeps_what_the_user_saw() {
        let line = SeenLine::read("killed copy - 9 80").expect("is read");
        assert_eq!(Report::dead(Some(&line), "", USUAL).expect("is one").seen, Seen::Error);
        assert_eq!(Report::dead(None, "", USUAL).expect("is one").seen, Seen::DeadMachine);
    }
}
