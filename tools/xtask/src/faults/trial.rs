//! A trial: one disturbance of one service, and what came of it.

use anyhow::{Context, Result, bail};
use std::fmt;

/// How a service is disturbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is left alone: shows that the work and its checks are sound.
    None,
    /// It dies after this many further messages.
    KillAfter(u32),
    /// A few bytes of its text are changed.
    Poke(Patch),
    /// It stops without a word.
    Silence,
}

/// A change of at most eight bytes of a program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// What kind of mistake it stands for.
    pub kind: Mutation,
    /// Address of the first byte that changes.
    pub address: u64,
    /// The new bytes.
    pub bytes: Vec<u8>,
    /// The original bytes.
    pub clean: Vec<u8>,
    /// The instruction before and after, for people.
    pub words: String,
}

/// The kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// An instruction reads another register.
    Source,
    /// An instruction writes another register.
    Destination,
    /// An address is computed wrongly.
    Pointer,
    /// A branch is taken the other way round.
    Branch,
    /// An instruction is left out.
    Dropped,
    /// A constant has another value.
    Constant,
    /// An instruction jumps to itself.
    StuckLoop,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 7] = [
        Mutation::Source,
        Mutation::Destination,
        Mutation::Pointer,
        Mutation::Branch,
        Mutation::Dropped,
        Mutation::Constant,
        Mutation::StuckLoop,
    ];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Mutation::Source => "wrong source register",
            Mutation::Destination => "wrong destination register",
            Mutation::Pointer => "garbled pointer",
            Mutation::Branch => "inverted branch",
            Mutation::Dropped => "dropped instruction",
            Mutation::Constant => "changed constant",
            Mutation::StuckLoop => "stuck loop",
        }
    }
}

/// The three parts of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Services are killed after their k-th message.
    Kills,
    /// Their text is changed.
    Mutations,
    /// They fall silent.
    Silence,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Kills, Part::Mutations, Part::Silence];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Part::Kills => "Killed after the k-th message",
            Part::Mutations => "Mutated text",
            Part::Silence => "Silence: stopped, stuck at a system call, system call left out",
        }
    }
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its number in the campaign.
    pub number: u32,
    /// Its part of the campaign.
    pub part: Part,
    /// The service under test.
    pub service: String,
    /// How.
    pub fault: Fault,
    /// rs starts the service again when it dies.
    pub restartable: bool,
}

impl Trial {
    /// The work with that of `service` first, and nobody disturbed.
    pub fn undisturbed(service: &str) -> Self {
        Self { number: 0, part: Part::Kills, service: service.to_string(), fault: Fault::None, restartable: false }
    }

    /// The command that has the guest do it.
    pub fn command(&self) -> String {
        let (kind, value, patch) = match &self.fault {
            Fault::None => ("none", 0, None),
            Fault::KillAfter(messages) => ("kill-after", u64::from(*messages), None),
            Fault::Silence => ("silence", 0, None),
            Fault::Poke(patch) => ("poke", patch.address, Some(patch)),
        };
        let (bytes, clean) = patch.map_or((0, 0), |patch| (word(&patch.bytes), word(&patch.clean)));
        let count = patch.map_or(0, |patch| patch.bytes.len());
        let Trial { number, service, .. } = self;
        // The content of the files and messages of the work follows from the trial's number.
        format!(
            "trial {number} {number} {service} {kind} {value:x} {bytes:x} {count} {clean:x} {}",
            u8::from(self.restartable)
        )
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.number, self.service)?;
        match &self.fault {
            Fault::None => f.write_str("undisturbed"),
            Fault::KillAfter(messages) => write!(f, "killed after {messages} messages"),
            Fault::Silence => f.write_str("silenced"),
            Fault::Poke(patch) => write!(f, "{} at {:#x}: {}", patch.kind.name(), patch.address, patch.words),
        }
    }
}

/// Up to eight bytes as a number, the first one lowest.
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

/// Outcome of a trial, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nobody noticed anything.
    NotManifested,
    /// A service was restarted, and programs noticed at most a delay.
    Recovered,
    /// A call failed, or did not return until the service was restarted from outside.
    ClientError,
    /// A call was said to have succeeded and had not.
    Corrupted,
    /// The system stopped working.
    Lost,
}

impl Outcome {
    /// All of them, in the order of the tables.
    pub const ALL: [Outcome; 5] =
        [Outcome::NotManifested, Outcome::Recovered, Outcome::ClientError, Outcome::Corrupted, Outcome::Lost];

    /// As it stands in files.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::NotManifested => "not-manifested",
            Outcome::Recovered => "recovered",
            Outcome::ClientError => "client-error",
            Outcome::Corrupted => "corrupted",
            Outcome::Lost => "lost",
        }
    }

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Outcome::NotManifested => "not manifested",
            Outcome::Recovered => "recovered",
            Outcome::ClientError => "client saw an error",
            Outcome::Corrupted => "silent corruption",
            Outcome::Lost => "system lost",
        }
    }
}

/// What the guest says when it could not disturb the service.
const REFUSED: &str = "refused";

/// What the guest or the harness tells of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The trial's number.
    pub number: u32,
    /// Its outcome.
    pub outcome: Outcome,
    /// The step of the work that failed, and how; `-` when none did.
    pub reason: String,
    /// From the service's end to its successor's readiness, in ns of the guest; 0 when it was not restarted.
    pub recovery_ns: u64,
}

impl Report {
    /// The system was lost, for this reason.
    pub fn lost(number: u32, reason: impl Into<String>) -> Self {
        Self { number, outcome: Outcome::Lost, reason: reason.into(), recovery_ns: 0 }
    }

    /// Reads the words after `done` in a guest's line: `NUMBER OUTCOME STEP WHAT ERROR RESTARTS OTHERS RECOVERY_NS`.
    ///
    /// # Errors
    /// When it is no such line.
    pub fn from_guest(words: &str) -> Result<Self> {
        let words: Vec<&str> = words.split(' ').collect();
        let [number, outcome, step, what, error, own, others, recovery_ns] = words[..] else {
            bail!("expected eight words, got {words:?}");
        };
        let restarts = own.parse::<i64>()? + others.parse::<i64>()?;
        let outcome = match outcome {
            "passed" if restarts == 0 => Outcome::NotManifested,
            "passed" => Outcome::Recovered,
            "error" | "hung" => Outcome::ClientError,
            "corrupted" => Outcome::Corrupted,
            "lost" | REFUSED => Outcome::Lost,
            other => bail!("the guest sent '{other}', which is no report"),
        };
        let reason = match outcome {
            Outcome::NotManifested | Outcome::Recovered => "-".to_string(),
            _ => format!("{}/{step}/{what}/{error}", words[1]),
        };
        Ok(Self { number: number.parse()?, outcome, reason, recovery_ns: recovery_ns.parse()? })
    }

    /// The system would not even be disturbed: something before has broken it.
    pub fn was_refused(&self) -> bool {
        self.reason.starts_with(REFUSED)
    }

    /// One line of the file of results.
    pub fn line(&self) -> String {
        format!("{} {} {} {}", self.number, self.outcome.word(), self.recovery_ns, self.reason)
    }

    /// Reads such a line.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_line(line: &str) -> Result<Self> {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().context("a word is missing");
        let number = word()?.parse()?;
        let name = word()?;
        let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.word() == name).context("no such outcome")?;
        Ok(Self { number, outcome, recovery_ns: word()?.parse()?, reason: word()?.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_carries_the_patch_as_a_number() {
        let patch = Patch {
            kind: Mutation::StuckLoop,
            address: 0x40_1000,
            bytes: vec![0xeb, 0xfe],
            clean: vec![0x31, 0xc0],
            words: String::new(),
        };
        let trial = Trial {
            number: 7,
            part: Part::Mutations,
            service: "uart".to_string(),
            fault: Fault::Poke(patch),
            restartable: true,
        };
        assert_eq!(trial.command(), "trial 7 7 uart poke 401000 feeb 2 c031 1");
    }

    #[test]
    fn what_passed_after_a_restart_is_recovered() {
        let outcome = |line| Report::from_guest(line).map(|report| report.outcome).ok();
        assert_eq!(outcome("3 passed pipeline - 0 0 0 0"), Some(Outcome::NotManifested));
        assert_eq!(outcome("3 passed pipeline - 0 1 0 9000"), Some(Outcome::Recovered));
        assert_eq!(outcome("3 hung files - 0 0 0 0"), Some(Outcome::ClientError));
        assert_eq!(outcome("3 passed pipeline"), None);
    }

    #[test]
    fn reports_are_read_back_from_their_lines() {
        let report = Report { number: 4, outcome: Outcome::Corrupted, reason: "a/b c".to_string(), recovery_ns: 12 };
        assert_eq!(Report::from_line(&report.line()).ok(), Some(report));
        assert!(Report::from_line("4 fine 0 -").is_err());
    }
}
