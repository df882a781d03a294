//! The command line.

use abi::Name;
use abi::container::{NO_LIMIT, Settings};
use core::fmt;

/// Usage.
pub const USAGE: &str =
    "usage: container run NAME --root DIR [--memory SIZE] [--processes N] [--descriptors N] [--pipes N]
                     [--processor PERCENT] [--priority NICE | --real-time] -- COMMAND [ARGUMENTS]
       container exec NAME -- COMMAND [ARGUMENTS]
       container list | kill NAME | --help
";

/// Text that `--help` adds to the usage.
pub const HELP: &str = "
  run NAME ...     runs a command in a new container, whose root is DIR, and waits for it; the exit status is the command's
    --memory       bytes, with K, M or G: anonymous, shared, and page tables; beyond: ENOMEM
    --processes    processes and threads; beyond: EAGAIN
    --descriptors  open files; beyond: ENFILE
    --pipes        pipes, a connection of sockets being two; beyond: ENFILE
    --processor    share of the processor, 1 to 100: beyond it the container's threads wait
    --priority     niceness, -20 to 19, which nobody inside makes better
    --real-time    processes inside may take real-time priorities; else none may
  exec NAME ...    runs a command in a container that there is
  list             lists containers: first process, and what each has of what it may have
  kill NAME        kills all its processes, and waits until nothing is left

Only root may do this. Exit status: that of the command, 128 and the signal that ended it; 125 the container could not be made,
127 the command not be found; of list and kill 0 success, 1 failure; 2 error in the command line.
";

/// How the processes of a container are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// With this niceness, and never in real time.
    Shared(i32),
    /// They may take real-time priorities.
    RealTime,
}

/// What `run` needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Name of the container.
    pub name: Name,
    /// Index of the argument with the root directory.
    pub root: usize,
    /// Limits.
    pub settings: Settings,
    /// Priorities.
    pub scheduling: Scheduling,
    /// Index of the command.
    pub command: usize,
}

/// A parsed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Usage.
    Help,
    /// Make a container.
    Run(Run),
    /// Go into one: its name, and the index of the command.
    Exec(Name, usize),
    /// List all.
    List,
    /// Kill one.
    Kill(Name),
}

/// Error in a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// The command is missing.
    Nothing,
    /// Unknown command.
    Unknown(&'a str),
    /// An argument is missing.
    Missing(&'static str),
    /// Not a valid name of a container.
    NotAName(&'a str),
    /// Not a valid value of an option.
    Wrong(&'static str, &'a str),
    /// `--priority` and `--real-time`.
    TwoPriorities,
    /// Superfluous argument.
    TooMuch(&'a str),
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Nothing => f.write_str("a command is missing"),
            Problem::Unknown(word) => write!(f, "there is no command or option '{word}'"),
            Problem::Missing(what) => write!(f, "{what} is missing"),
            Problem::NotAName(word) => {
                write!(f, "'{word}' is not the name of a container: 1 to 16 letters, digits, - and _")
            }
            Problem::Wrong(expected, word) => write!(f, "expected {expected}, not '{word}'"),
            Problem::TwoPriorities => f.write_str("--priority and --real-time exclude each other"),
            Problem::TooMuch(word) => write!(f, "'{word}' is one word too many"),
        }
    }
}

/// Iterator over the arguments.
struct Words<F> {
    count: usize,
    next: usize,
    argument: F,
}

impl<'a, F: Fn(usize) -> Option<&'a str>> Words<F> {
    fn take(&mut self) -> Option<&'a str> {
        let index = self.next;
        self.next += 1;
        // What is not UTF-8 may be a file, but no word of ours.
        (index < self.count).then(|| (self.argument)(index).unwrap_or("?"))
    }

    fn need(&mut self, what: &'static str) -> Result<&'a str, Problem<'a>> {
        self.take().ok_or(Problem::Missing(what))
    }

    fn name(&mut self) -> Result<Name, Problem<'a>> {
        let text = self.need("the name of a container")?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        Name::new(text).filter(|_| is_plain && !text.starts_with('-')).ok_or(Problem::NotAName(text))
    }

    /// The index of the command after `--`.
    fn command(&mut self) -> Result<usize, Problem<'a>> {
        let index = self.next;
        self.need("the command to run").map(|_| index)
    }

    fn number(&mut self, expected: &'static str, range: core::ops::RangeInclusive<u64>) -> Result<u64, Problem<'a>> {
        let word = self.need(expected)?;
        word.parse().ok().filter(|number| range.contains(number)).ok_or(Problem::Wrong(expected, word))
    }

    fn size(&mut self) -> Result<u64, Problem<'a>> {
        const EXPECTED: &str = "a size such as 64M";
        let word = self.need(EXPECTED)?;
        let (digits, shift) = match word.as_bytes().last() {
            Some(b'K' | b'k') => (&word[..word.len() - 1], 10),
            Some(b'M' | b'm') => (&word[..word.len() - 1], 20),
            Some(b'G' | b'g') => (&word[..word.len() - 1], 30),
            _ => (word, 0),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        bytes.filter(|bytes| (1..NO_LIMIT).contains(bytes)).ok_or(Problem::Wrong(EXPECTED, word))
    }

    fn nice(&mut self) -> Result<i32, Problem<'a>> {
        const EXPECTED: &str = "a niceness from -20 to 19";
        let word = self.need(EXPECTED)?;
        word.parse().ok().filter(|nice| (-20..=19).contains(nice)).ok_or(Problem::Wrong(EXPECTED, word))
    }

    fn run(&mut self) -> Result<Run, Problem<'a>> {
        const COUNT: &str = "a number from 1 on";
        let name = self.name()?;
        let (mut settings, mut root, mut nice, mut is_real_time) = (Settings::NONE, None, None, false);
        loop {
            match self.need("-- and the command to run")? {
                "--" => break,
                "--root" => {
                    root = Some(self.next);
                    self.need("the root directory")?;
                }
                "--memory" => settings.memory_bytes = self.size()?,
                "--processes" => settings.processes = self.number(COUNT, 1..=NO_LIMIT - 1)?,
                "--descriptors" => settings.files = self.number(COUNT, 1..=NO_LIMIT - 1)?,
                "--pipes" => settings.pipes = self.number("a number", 0..=NO_LIMIT - 1)?,
                "--processor" => settings.percent = self.number("a percentage from 1 to 100", 1..=100)?,
                "--priority" => nice = Some(self.nice()?),
                "--real-time" => is_real_time = true,
                other => return Err(Problem::Unknown(other)),
            }
        }
        let scheduling = match (nice, is_real_time) {
            (Some(_), true) => return Err(Problem::TwoPriorities),
            (_, true) => Scheduling::RealTime,
            (nice, false) => Scheduling::Shared(nice.unwrap_or(0)),
        };
        let root = root.ok_or(Problem::Missing("--root and the directory that is to be the root"))?;
        Ok(Run { name, root, settings, scheduling, command: self.command()? })
    }

    fn exec(&mut self) -> Result<Command, Problem<'a>> {
        let name = self.name()?;
        match self.need("-- and the command to run")? {
            "--" => Ok(Command::Exec(name, self.command()?)),
            other => Err(Problem::Unknown(other)),
        }
    }
}

/// Reads `count` arguments, the program's own name first.
pub fn parse<'a>(count: usize, argument: impl Fn(usize) -> Option<&'a str>) -> Result<Command, Problem<'a>> {
    let mut words = Words { count, next: 1, argument };
    let parsed = match words.take().ok_or(Problem::Nothing)? {
        "run" => return words.run().map(Command::Run),
        "exec" => return words.exec(),
        "--help" | "-h" | "help" => Command::Help,
        "list" => Command::List,
        "kill" => Command::Kill(words.name()?),
        other => return Err(Problem::Unknown(other)),
    };
    words.take().map_or(Ok(parsed), |extra| Err(Problem::TooMuch(extra)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &'static str) -> Result<Command, Problem<'static>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        parse(words.len(), |index| words.get(index).copied())
    }

    fn web() -> Name {
        Name::new("web").expect("is a name")
    }

    #[test]
    fn a_container_is_described_in_any_order() {
        let line = "container run web --processor 20 --memory 64M --root /c --processes 50 --descriptors 9 --pipes 0 -- sh -c true";
        let settings = Settings { memory_bytes: 64 << 20, processes: 50, files: 9, pipes: 0, percent: 20 };
        let run = Run { name: web(), root: 8, settings, scheduling: Scheduling::Shared(0), command: 16 };
        assert_eq!(parse_line(line), Ok(Command::Run(run)));
        let least = Run { root: 4, settings: Settings::NONE, command: 6, ..run };
        assert_eq!(parse_line("container run web --root / -- sh"), Ok(Command::Run(least)));
        let real_time = Run { scheduling: Scheduling::RealTime, command: 7, ..least };
        assert_eq!(parse_line("container run web --root / --real-time -- sh"), Ok(Command::Run(real_time)));
        let nicer = Run { scheduling: Scheduling::Shared(-5), command: 8, ..least };
        assert_eq!(parse_line("container run web --root / --priority -5 -- sh"), Ok(Command::Run(nicer)));
    }

    #[test]
    fn other_commands_are_understood() {
        assert_eq!(parse_line("container list"), Ok(Command::List));
        assert_eq!(parse_line("container kill web"), Ok(Command::Kill(web())));
        assert_eq!(parse_line("container exec web -- ps aux"), Ok(Command::Exec(web(), 4)));
        assert_eq!(parse_line("container --help"), Ok(Command::Help));
    }

    #[test]
    fn sizes_have_units_and_ends() {
        let of = |size: &'static str| {
            let words = ["container", "run", "web", "--memory", size, "--root", "/", "--", "sh"];
            match parse(words.len(), |index| words.get(index).copied()) {
                Ok(Command::Run(run)) => Some(run.settings.memory_bytes),
                _ => None,
            }
        };
        assert_eq!(["1", "2K", "3m", "4G"].map(of), [Some(1), Some(2048), Some(3 << 20), Some(4 << 30)]);
        for wrong in ["0", "", "M", "-1M", "1T", "18446744073709551615", "99999999999999G"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_command_lines_are_told_apart() {
        assert_eq!(parse_line("container"), Err(Problem::Nothing));
        assert_eq!(parse_line("container stop web"), Err(Problem::Unknown("stop")));
        assert_eq!(parse_line("container kill a/b"), Err(Problem::NotAName("a/b")));
        assert_eq!(parse_line("container kill seventeen_letters"), Err(Problem::NotAName("seventeen_letters")));
        assert_eq!(parse_line("container list all"), Err(Problem::TooMuch("all")));
        assert_eq!(parse_line("container exec web sh"), Err(Problem::Unknown("sh")));
        assert_eq!(parse_line("container exec web --"), Err(Problem::Missing("the command to run")));
        assert!(matches!(parse_line("container run web -- sh"), Err(Problem::Missing(_))));
        assert!(matches!(parse_line("container run web --root /"), Err(Problem::Missing(_))));
        for wrong in ["--processor 0", "--processor 101", "--processes 0", "--processes x", "--priority 20"] {
            let line = format!("container run web --root / {wrong} -- sh");
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(
                matches!(parse(words.len(), |index| words.get(index).copied()), Err(Problem::Wrong(..))),
                "{wrong}"
            );
        }
        let both = "container run web --root / --priority 1 --real-time -- sh";
        assert_eq!(parse_line(both), Err(Problem::TwoPriorities));
    }
}
