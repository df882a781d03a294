//! The command line.

use abi::Name;
use abi::call::inject;
use abi::rs::Injection;
use core::fmt;

/// Longest observation, in seconds.
const MAX_SECONDS: u32 = 86_400;
/// Samples a second: unless the command says something else, and at most.
const HERTZ: u32 = 1000;
const MAX_HERTZ: u32 = 50_000;

/// Usage.
pub const USAGE: &str = "usage: service list | status NAME | kill NAME | restart NAME | update NAME FILE | log NAME
       service inject NAME kill-after COUNT | poke ADDRESS HEXBYTES | silence | fail-allocation COUNT
       service top [SECONDS] | trace SECONDS | profile SECONDS [HERTZ]
       service reports | --help
";

/// Text that `--help` adds to the usage.
pub const HELP: &str = "
  list                 lists all services: state, restarts, time up, last end
  status NAME          prints the whole state of a service
  kill NAME            kills it as if it had crashed; rs starts its successor
  restart NAME         ends it and starts it without its old state, even after rs has given it up
  update NAME FILE     replaces its binary by an ELF file until the next reboot; if that fails, the old one runs again
  log NAME             prints its newest crash report
  inject NAME ...      injects a fault, to test recovery: kills it after COUNT messages, overwrites up to 8 bytes of its
                       memory, stops it so that it misses its heartbeats, or lets its COUNT-th allocation fail
  top [SECONDS]        shows who called whom, how often and how long it took, and who used the processor: for so many seconds once, or
                       every second anew
  trace SECONDS        prints every message, notification, interrupt and exception as it happens
  profile SECONDS [HERTZ]
                       samples what runs, by default 1000 times a second, and prints folded stacks for a flame graph: program, calls of
                       services that work for it, function
  reports              saves each crash report in /var/log/crash, forever; /etc/inittab starts it

Only root may do this. Exit status: 0 success, 1 failure, 2 error in the command line.
";

/// A parsed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Usage.
    Help,
    /// List all services.
    List,
    /// Show one service.
    Status(Name),
    /// Kill a service as if it had crashed.
    Kill(Name),
    /// Restart a service with start kind `Fresh`.
    Restart(Name),
    /// Replace a service's binary by a file.
    Update(Name, &'a str),
    /// Print a service's newest crash report.
    Log(Name),
    /// Inject a fault into a service.
    Inject(Name, Injection),
    /// Save crash reports as they arrive.
    Reports,
    /// Show latencies, for so many seconds or for ever.
    Top(Option<u32>),
    /// Print events for so many seconds.
    Trace(u32),
    /// Sample for so many seconds, so often a second.
    Profile(u32, u32),
}

impl Command<'_> {
    /// Returns the service that the command is about.
    pub fn name(&self) -> Option<Name> {
        match *self {
            Command::Help | Command::List | Command::Reports => None,
            Command::Top(_) | Command::Trace(_) | Command::Profile(..) => None,
            Command::Status(name) | Command::Kill(name) | Command::Restart(name) | Command::Log(name) => Some(name),
            Command::Update(name, _) | Command::Inject(name, _) => Some(name),
        }
    }
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
    /// Not a valid name of a service.
    NotAName(&'a str),
    /// Unknown kind of fault.
    NoKind(&'a str),
    /// Not a number.
    NotANumber(&'a str),
    /// Not 1 to 8 bytes in hexadecimal.
    NotBytes(&'a str),
    /// Not a number of this kind in this range.
    NotInRange(&'static str, u32, &'a str),
    /// Superfluous argument.
    TooMuch(&'a str),
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Nothing => f.write_str("a command is missing"),
            Problem::Unknown(word) => write!(f, "there is no command '{word}'"),
            Problem::Missing(what) => write!(f, "{what} is missing"),
            Problem::NotAName(word) => write!(f, "'{word}' is not the name of a service; 'service list' shows them"),
            Problem::NoKind(word) => write!(f, "expected kill-after, poke or silence, not '{word}'"),
            Problem::NotANumber(word) => write!(f, "'{word}' is no number"),
            Problem::NotBytes(word) => write!(f, "expected 1 to 8 bytes of two hexadecimal digits each, not '{word}'"),
            Problem::NotInRange(what, most, word) => write!(f, "expected {what} from 1 to {most}, not '{word}'"),
            Problem::TooMuch(word) => write!(f, "'{word}' is one word too many"),
        }
    }
}

/// Iterator over the arguments.
struct Words<'a, F> {
    count: usize,
    next: usize,
    argument: F,
    end: core::marker::PhantomData<&'a str>,
}

impl<'a, F: Fn(usize) -> Option<&'a str>> Words<'a, F> {
    fn take(&mut self) -> Option<&'a str> {
        let index = self.next;
        self.next += 1;
        // No command and no service has a name that is not UTF-8.
        (index < self.count).then(|| (self.argument)(index).unwrap_or("?"))
    }

    fn need(&mut self, what: &'static str) -> Result<&'a str, Problem<'a>> {
        self.take().ok_or(Problem::Missing(what))
    }

    fn name(&mut self) -> Result<Name, Problem<'a>> {
        let text = self.need("the name of a service")?;
        Name::new(text).ok_or(Problem::NotAName(text))
    }

    fn seconds(&mut self) -> Result<u32, Problem<'a>> {
        let text = self.need("the number of seconds")?;
        in_range("a number of seconds", MAX_SECONDS, text)
    }

    fn injection(&mut self) -> Result<Injection, Problem<'a>> {
        match self.need("what to do to the service")? {
            "kill-after" => {
                let value = number(self.need("the number of messages")?)?;
                Ok(Injection { kind: inject::KILL_AFTER_MESSAGES, value, ..Injection::default() })
            }
            "poke" => {
                let value = number(self.need("the address")?)?;
                let (further, bytes) = bytes(self.need("the bytes to write")?)?;
                Ok(Injection { kind: inject::POKE, value, further, bytes })
            }
            "fail-allocation" => {
                let value = number(self.need("the number of allocations")?)?;
                Ok(Injection { kind: inject::ALLOCATION, value, ..Injection::default() })
            }
            "silence" => Ok(Injection { kind: inject::SILENCE, ..Injection::default() }),
            other => Err(Problem::NoKind(other)),
        }
    }
}

/// Reads `count` arguments, the program's own name first.
pub fn parse<'a>(count: usize, argument: impl Fn(usize) -> Option<&'a str>) -> Result<Command<'a>, Problem<'a>> {
    let mut words = Words { count, next: 1, argument, end: core::marker::PhantomData };
    let parsed = match words.take().ok_or(Problem::Nothing)? {
        "--help" | "-h" | "help" => Command::Help,
        "list" => Command::List,
        "status" => Command::Status(words.name()?),
        "kill" => Command::Kill(words.name()?),
        "restart" => Command::Restart(words.name()?),
        "update" => Command::Update(words.name()?, words.need("the file with the new program")?),
        "log" => Command::Log(words.name()?),
        "inject" => Command::Inject(words.name()?, words.injection()?),
        "reports" => Command::Reports,
        "top" => match words.take() {
            Some(text) => Command::Top(Some(in_range("a number of seconds", MAX_SECONDS, text)?)),
            None => Command::Top(None),
        },
        "trace" => Command::Trace(words.seconds()?),
        "profile" => {
            let seconds = words.seconds()?;
            let hertz = words.take().map_or(Ok(HERTZ), |text| in_range("samples a second", MAX_HERTZ, text))?;
            Command::Profile(seconds, hertz)
        }
        other => return Err(Problem::Unknown(other)),
    };
    words.take().map_or(Ok(parsed), |extra| Err(Problem::TooMuch(extra)))
}

fn in_range<'a>(what: &'static str, most: u32, text: &'a str) -> Result<u32, Problem<'a>> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or(Problem::NotInRange(what, most, text))
}

/// Parses a number, decimal or hexadecimal with `0x`.
fn number(text: &str) -> Result<u64, Problem<'_>> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Problem::NotANumber(text))
}

/// Parses bytes in hexadecimal. Returns them as a number, the first one lowest, and their count.
fn bytes(text: &str) -> Result<(u64, u64), Problem<'_>> {
    let wrong = Problem::NotBytes(text);
    if text.is_empty()
        || !text.len().is_multiple_of(2)
        || text.len() > 16
        || !text.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return Err(wrong);
    }
    let value = u64::from_str_radix(text, 16).map_err(|_| wrong)?;
    let count = text.len() / 2;
    Ok((value.swap_bytes() >> (64 - 8 * count), count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &'static str) -> Result<Command<'static>, Problem<'static>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        parse(words.len(), |index| words.get(index).copied())
    }

    #[test]
    fn commands_are_understood() {
        let uart = Name::new("uart").expect("is a name");
        assert_eq!(parse_line("service --help"), Ok(Command::Help));
        assert_eq!(parse_line("service list"), Ok(Command::List));
        assert_eq!(parse_line("service status uart"), Ok(Command::Status(uart)));
        assert_eq!(parse_line("service kill uart"), Ok(Command::Kill(uart)));
        assert_eq!(parse_line("service restart uart"), Ok(Command::Restart(uart)));
        assert_eq!(parse_line("service update uart /tmp/uart"), Ok(Command::Update(uart, "/tmp/uart")));
        assert_eq!(parse_line("service log uart"), Ok(Command::Log(uart)));
        assert_eq!(parse_line("service reports"), Ok(Command::Reports));
        assert_eq!(parse_line("service top"), Ok(Command::Top(None)));
        assert_eq!(parse_line("service top 3"), Ok(Command::Top(Some(3))));
        assert_eq!(parse_line("service trace 1"), Ok(Command::Trace(1)));
        assert_eq!(parse_line("service profile 2"), Ok(Command::Profile(2, 1000)));
        assert_eq!(parse_line("service profile 2 97"), Ok(Command::Profile(2, 97)));
    }

    #[test]
    fn disturbances_become_requests_to_the_kernel() {
        let request = |line| match parse_line(line) {
            Ok(Command::Inject(_, request)) => (request.kind, request.value, request.further, request.bytes),
            other => panic!("{other:?}"),
        };
        assert_eq!(request("service inject uart kill-after 17"), (inject::KILL_AFTER_MESSAGES, 17, 0, 0));
        assert_eq!(request("service inject uart silence"), (inject::SILENCE, 0, 0, 0));
        assert_eq!(request("service inject vfs fail-allocation 9"), (inject::ALLOCATION, 9, 0, 0));
        assert_eq!(request("service inject uart poke 0x401000 0f0b90"), (inject::POKE, 0x40_1000, 0x90_0b0f, 3));
        assert_eq!(request("service inject uart poke 4096 0102030405060708").2, 0x0807_0605_0403_0201);
    }

    #[test]
    fn wrong_command_lines_are_told_apart() {
        assert_eq!(parse_line("service"), Err(Problem::Nothing));
        assert_eq!(parse_line(""), Err(Problem::Nothing));
        assert_eq!(parse_line("service stop uart"), Err(Problem::Unknown("stop")));
        assert_eq!(parse_line("service kill"), Err(Problem::Missing("the name of a service")));
        assert_eq!(parse_line("service kill seventeen_letters"), Err(Problem::NotAName("seventeen_letters")));
        assert_eq!(parse_line("service list all"), Err(Problem::TooMuch("all")));
        assert_eq!(parse_line("service kill uart now"), Err(Problem::TooMuch("now")));
        assert_eq!(parse_line("service update uart"), Err(Problem::Missing("the file with the new program")));
        assert_eq!(parse_line("service inject uart hang"), Err(Problem::NoKind("hang")));
        assert_eq!(parse_line("service inject uart kill-after soon"), Err(Problem::NotANumber("soon")));
        let seconds = |word| Problem::NotInRange("a number of seconds", 86_400, word);
        assert_eq!(parse_line("service top 0"), Err(seconds("0")));
        assert_eq!(parse_line("service trace 86401"), Err(seconds("86401")));
        assert_eq!(parse_line("service trace"), Err(Problem::Missing("the number of seconds")));
        assert_eq!(
            parse_line("service profile 1 1000000"),
            Err(Problem::NotInRange("samples a second", 50_000, "1000000"))
        );
        assert_eq!(parse_line("service top 1 2"), Err(Problem::TooMuch("2")));
        for wrong in ["9", "0x90", "901", "010203040506070809"] {
            let words = ["service", "inject", "uart", "poke", "0x1000", wrong];
            assert_eq!(parse(6, |index| words.get(index).copied()), Err(Problem::NotBytes(wrong)));
        }
    }
}
