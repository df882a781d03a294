//! The command line.

use abi::Name;
use core::fmt;

/// How it is used.
pub const USAGE: &str = "usage: service list | status NAME | kill NAME | restart NAME";

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// All services.
    List,
    /// One of them.
    Status(Name),
    /// End it as if it had crashed.
    Kill(Name),
    /// Start it afresh.
    Restart(Name),
}

impl Command {
    /// The service it is about.
    pub fn name(&self) -> Option<Name> {
        match *self {
            Command::List => None,
            Command::Status(name) | Command::Kill(name) | Command::Restart(name) => Some(name),
        }
    }
}

/// What is wrong with a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// There is no command.
    Nothing,
    /// There is no such command.
    Unknown(&'a str),
    /// The command needs a name.
    NameMissing,
    /// No service can have this name.
    NotAName(&'a str),
    /// There is more than the command takes.
    TooMuch(&'a str),
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Nothing => f.write_str("a command is missing"),
            Problem::Unknown(word) => write!(f, "there is no command '{word}'"),
            Problem::NameMissing => f.write_str("the name of a service is missing"),
            Problem::NotAName(word) => write!(f, "'{word}' is not the name of a service"),
            Problem::TooMuch(word) => write!(f, "'{word}' is one word too many"),
        }
    }
}

/// Reads `count` arguments, the program's own name first.
pub fn parse<'a>(count: usize, argument: impl Fn(usize) -> Option<&'a str>) -> Result<Command, Problem<'a>> {
    // What is not UTF-8 names no command and no service.
    let word = |index: usize| (index < count).then(|| argument(index).unwrap_or("?"));
    let command = word(1).ok_or(Problem::Nothing)?;
    let name = || {
        let text = word(2).ok_or(Problem::NameMissing)?;
        Name::new(text).ok_or(Problem::NotAName(text))
    };
    let (parsed, words) = match command {
        "list" => (Command::List, 2),
        "status" => (Command::Status(name()?), 3),
        "kill" => (Command::Kill(name()?), 3),
        "restart" => (Command::Restart(name()?), 3),
        other => return Err(Problem::Unknown(other)),
    };
    word(words).map_or(Ok(parsed), |extra| Err(Problem::TooMuch(extra)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &'static str) -> Result<Command, Problem<'static>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        parse(words.len(), |index| words.get(index).copied())
    }

    #[test]
    fn commands_are_understood() {
        let uart = Name::new("uart").expect("is a name");
        assert_eq!(parse_line("service list"), Ok(Command::List));
        assert_eq!(parse_line("service status uart"), Ok(Command::Status(uart)));
        assert_eq!(parse_line("service kill uart"), Ok(Command::Kill(uart)));
        assert_eq!(parse_line("service restart uart"), Ok(Command::Restart(uart)));
    }

    #[test]
    fn wrong_command_lines_are_told_apart() {
        assert_eq!(parse_line("service"), Err(Problem::Nothing));
        assert_eq!(parse_line(""), Err(Problem::Nothing));
        assert_eq!(parse_line("service stop uart"), Err(Problem::Unknown("stop")));
        assert_eq!(parse_line("service kill"), Err(Problem::NameMissing));
        assert_eq!(parse_line("service kill seventeen_letters"), Err(Problem::NotAName("seventeen_letters")));
        assert_eq!(parse_line("service list all"), Err(Problem::TooMuch("all")));
        assert_eq!(parse_line("service kill uart now"), Err(Problem::TooMuch("now")));
    }
}
