//! The command line of `./skink`: reads it into an [`Action`], refuses what it does not know. It is long because
//! every command has its options and refusals here.

use crate::debian;
use crate::machine::Screen;
use crate::programs::Profile;
use anyhow::{Context, Result, anyhow, bail};
use lexopt::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// The text of `--help`, which the shell script prints too.
pub const HELP: &str = include_str!("../help.txt");

/// The system that is booted unless `--system` names another.
pub const DEFAULT_SYSTEM: &str = "default";
/// The system that keeps its root on the ramdisk, for repeatable runs.
pub const RAMDISK_SYSTEM: &str = "ramdisk";
/// The test that has options of its own.
pub const FAULTS: &str = "faults";
/// The word for the full forms of tests.
const DEEP: &str = "deep";
/// The word for writing down what Linux prints in place of a test.
const RECORD: &str = "record";

/// A request from the command line.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Print the help text.
    Help,
    /// Boot with the terminal as console.
    Run(RunOptions),
    /// Run one command in the guest.
    Exec(ExecOptions),
    /// Run a topic or command and tell what happened.
    Explain(ExplainOptions),
    /// Run a command and tell where its ticks went.
    Profile(ProfileOptions),
    /// Write the skeleton of something new.
    New {
        /// What: driver or service.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Build the book and the API pages.
    Doc,
    /// Boot stopped, for GDB.
    Debug(MachineOptions),
    /// Run the tests whose name contains `name`, or all.
    Test {
        /// Whether to run the full forms.
        depth: Depth,
        /// Part of a test's name.
        name: Option<String>,
    },
    /// Write down what the programs' tests whose name contains `name` print on this machine's Linux.
    Record {
        /// Part of a test's name.
        name: Option<String>,
    },
    /// Run a campaign of fault injection.
    Faults(FaultOptions),
    /// Run the benchmarks whose name contains `name`, or all.
    Bench {
        /// Part of a benchmark's name.
        name: Option<String>,
    },
    /// Make the bootable ISO image.
    Image(ImageOptions),
    /// Break the source on purpose and see whether tests notice.
    Mutants {
        /// Options of tools/mutants.
        arguments: Vec<OsString>,
    },
    /// Check the source's rules.
    Check,
}

/// How much of a proof a test does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// The form that continuous integration runs: samples with a fixed seed.
    Short,
    /// Everything.
    Deep,
}

/// Options of every command that boots a machine.
#[derive(Debug, PartialEq, Clone)]
pub struct MachineOptions {
    /// `--system`, if given.
    pub system: Option<String>,
    /// Debian packages for the root file system.
    pub packages: Vec<String>,
    /// Folders whose files are added to the root file system, in order.
    pub overlays: Vec<PathBuf>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of processors.
    pub processors: u32,
    /// The screen.
    pub screen: Screen,
    /// How the system is compiled.
    pub profile: Profile,
}

impl Default for MachineOptions {
    fn default() -> Self {
        let profile = Profile::default();
        let (packages, overlays) = (Vec::new(), Vec::new());
        Self { system: None, packages, overlays, memory_mib: 512, processors: 1, screen: Screen::None, profile }
    }
}

/// Options of `run`.
#[derive(Debug, PartialEq, Default)]
pub struct RunOptions {
    /// The machine.
    pub machine: MachineOptions,
    /// With a network card.
    pub net: bool,
    /// Handed to QEMU as they are.
    pub qemu_args: Vec<OsString>,
}

/// Options of `exec`.
#[derive(Debug, PartialEq, Default)]
pub struct ExecOptions {
    /// The machine.
    pub machine: MachineOptions,
    /// Where the files of the guest's `/out` go.
    pub out: Option<PathBuf>,
    /// Count instructions and keep the root on the ramdisk.
    pub icount: bool,
    /// The shell command at the other end of the second serial line.
    pub com2: Option<String>,
    /// The machine has a tablet.
    pub tablet: bool,
    /// Further devices of the machine, as QEMU's option `-device` has them.
    pub devices: Vec<String>,
    /// What is typed meanwhile.
    pub keys: Option<PathBuf>,
    /// Where the decoded trace goes.
    pub trace: Option<PathBuf>,
    /// Where a picture of the screen goes when the command has ended.
    pub screenshot: Option<PathBuf>,
    /// The command for the guest's shell.
    pub command: String,
}

/// Options of `image`.
#[derive(Debug, PartialEq)]
pub struct ImageOptions {
    /// The system to put on it.
    pub system: String,
    /// Debian packages for the root file system.
    pub packages: Vec<String>,
}

/// Options of `explain`.
#[derive(Debug, PartialEq, Default)]
pub struct ExplainOptions {
    /// The machine.
    pub machine: MachineOptions,
    /// A topic, or a command for the guest's shell; None: list the topics.
    pub subject: Option<String>,
}

/// Options of `profile`.
#[derive(Debug, PartialEq, Default)]
pub struct ProfileOptions {
    /// The machine.
    pub machine: MachineOptions,
    /// Where the files go.
    pub out: Option<PathBuf>,
    /// The command for the guest's shell.
    pub command: String,
}

/// Kinds of skeletons that `new` writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A driver of a character device.
    Driver,
    /// A service that other services ask.
    Service,
}

/// Options of `test faults`.
#[derive(Debug, PartialEq, Default)]
pub struct FaultOptions {
    /// The whole campaign.
    pub all: bool,
    /// Go on with the campaign that was interrupted.
    pub resume: bool,
    /// Draw other mutations.
    pub seed: Option<u64>,
    /// Only this service.
    pub service: Option<String>,
    /// Only this trial.
    pub trial: Option<u32>,
}

/// Reads the whole command line.
///
/// # Errors
/// A sentence that names the argument which is unknown, incomplete or too much.
pub fn parse(mut parser: lexopt::Parser) -> Result<Action> {
    let command = match next(&mut parser)? {
        None => bail!("a command is missing; './skink --help' lists them"),
        Some(Argument::Help) => return Ok(Action::Help),
        Some(Argument::Value(command)) => text(command)?,
        Some(Argument::Option(option)) => bail!("the command comes before the option {option}"),
    };
    match command.as_str() {
        "help" => Ok(Action::Help),
        "run" => parse_run(&mut parser),
        "exec" => parse_exec(&mut parser),
        "explain" => parse_explain(&mut parser),
        "profile" => parse_profile(&mut parser),
        "new" => parse_new(&mut parser),
        "doc" => parse_nothing(&mut parser, "doc", Action::Doc),
        "debug" => parse_debug(&mut parser),
        "test" => parse_test(&mut parser),
        "bench" => parse_name(&mut parser, "bench", |name| Action::Bench { name }),
        "image" => parse_image(&mut parser),
        "mutants" => Ok(Action::Mutants { arguments: parser.raw_args()?.collect() }),
        "check" => parse_nothing(&mut parser, "check", Action::Check),
        other => bail!("there is no command '{other}'; './skink --help' lists them"),
    }
}

/// One argument, in the three kinds this command line has.
enum Argument {
    Help,
    Option(String),
    Value(OsString),
}

fn next(parser: &mut lexopt::Parser) -> Result<Option<Argument>> {
    Ok(match parser.next()? {
        None => None,
        Some(Short('h') | Long("help")) => Some(Argument::Help),
        Some(Short(letter)) => Some(Argument::Option(format!("-{letter}"))),
        Some(Long(word)) => Some(Argument::Option(format!("--{word}"))),
        Some(Value(value)) => Some(Argument::Value(value)),
    })
}

fn parse_run(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut options = RunOptions::default();
    // What follows `--` is QEMU's; it is taken off first so that it is not read as ours.
    loop {
        if let Some(mut raw) = parser.try_raw_args()
            && raw.peek().is_some_and(|argument| argument == "--")
        {
            raw.next();
            options.qemu_args = raw.collect();
            return Ok(Action::Run(options));
        }
        match next(parser)? {
            None => return Ok(Action::Run(options)),
            Some(Argument::Help) => return Ok(Action::Help),
            Some(Argument::Option(option)) if option == "--net" => options.net = true,
            Some(Argument::Option(option)) => machine_option(parser, "run", &option, &mut options.machine)?,
            Some(Argument::Value(value)) => return Err(unexpected("run", &value)),
        }
    }
}

fn parse_exec(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut options = ExecOptions::default();
    let mut command = None;
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => match option.as_str() {
                "--out" => options.out = Some(folder_or_file(parser, &option)?),
                "--icount" => options.icount = true,
                "--com2" => options.com2 = Some(text(value_of(parser, &option)?)?),
                "--tablet" => options.tablet = true,
                "--device" => options.devices.push(text(value_of(parser, &option)?)?),
                "--keys" => options.keys = Some(folder_or_file(parser, &option)?),
                "--trace" => options.trace = Some(folder_or_file(parser, &option)?),
                "--screenshot" => options.screenshot = Some(folder_or_file(parser, &option)?),
                _ => machine_option(parser, "exec", &option, &mut options.machine)?,
            },
            Argument::Value(value) if command.is_none() => command = Some(text(value)?),
            Argument::Value(value) => {
                return Err(unexpected("exec", &value)).context("exec takes one command, quoted as a whole");
            }
        }
    }
    options.command = command.context("exec needs the command to run, for example ./skink exec 'uname -a'")?;
    Ok(Action::Exec(options))
}

fn parse_debug(parser: &mut lexopt::Parser) -> Result<Action> {
    // What is compiled for speed has few variables left to look at.
    let mut machine = MachineOptions { profile: Profile::Fast, ..MachineOptions::default() };
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) if option == "--release" => machine.profile = Profile::Release,
            Argument::Option(option) => machine_option(parser, "debug", &option, &mut machine)?,
            Argument::Value(value) => return Err(unexpected("debug", &value)),
        }
    }
    Ok(Action::Debug(machine))
}

fn parse_name(parser: &mut lexopt::Parser, command: &str, action: impl Fn(Option<String>) -> Action) -> Result<Action> {
    let mut name = None;
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => return Err(unknown(command, &option)),
            Argument::Value(value) if name.is_none() => name = Some(text(value)?),
            Argument::Value(value) => return Err(unexpected(command, &value)),
        }
    }
    Ok(action(name))
}

fn parse_test(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut name = None;
    let mut depth = Depth::Short;
    let mut record = false;
    let mut faults = FaultOptions::default();
    let mut first_option = None;
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => {
                fault_option(parser, &option, &mut faults)?;
                first_option.get_or_insert(option);
            }
            Argument::Value(value) if value == DEEP && depth == Depth::Short && name.is_none() => depth = Depth::Deep,
            Argument::Value(value) if value == RECORD && !record && name.is_none() => record = true,
            Argument::Value(value) if name.is_none() => name = Some(text(value)?),
            Argument::Value(value) => return Err(unexpected("test", &value)),
        }
    }
    match (name.as_deref(), first_option) {
        (Some(FAULTS), _) => Ok(Action::Faults(FaultOptions { all: faults.all || depth == Depth::Deep, ..faults })),
        (_, None) if record => Ok(Action::Record { name }),
        (_, None) => Ok(Action::Test { depth, name }),
        (_, Some(option)) => bail!("the option {option} belongs to './skink test faults'"),
    }
}

fn fault_option(parser: &mut lexopt::Parser, option: &str, faults: &mut FaultOptions) -> Result<()> {
    match option {
        "--all" => faults.all = true,
        "--resume" => faults.resume = true,
        "--seed" => faults.seed = Some(number(parser, option, 0, u32::MAX)?.into()),
        "--service" => faults.service = Some(text(value_of(parser, option)?)?),
        "--trial" => faults.trial = Some(number(parser, option, 1, u32::MAX)?),
        _ => return Err(unknown("test", option)),
    }
    Ok(())
}

fn parse_image(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut iso = false;
    let mut options = ImageOptions { system: RAMDISK_SYSTEM.to_string(), packages: Vec::new() };
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => match option.as_str() {
                "--iso" => iso = true,
                "--system" => options.system = text(value_of(parser, &option)?)?,
                "--package" => options.packages.extend(packages(parser, &option)?),
                _ => return Err(unknown("image", &option)),
            },
            Argument::Value(value) => return Err(unexpected("image", &value)),
        }
    }
    if !iso {
        bail!("image needs the option --iso: ./skink image --iso");
    }
    Ok(Action::Image(options))
}

fn parse_explain(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut options = ExplainOptions::default();
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => machine_option(parser, "explain", &option, &mut options.machine)?,
            Argument::Value(value) if options.subject.is_none() => options.subject = Some(text(value)?),
            Argument::Value(value) => {
                return Err(unexpected("explain", &value)).context("explain takes one command, quoted as a whole");
            }
        }
    }
    Ok(Action::Explain(options))
}

fn parse_profile(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut options = ProfileOptions::default();
    let mut command = None;
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) if option == "--out" => options.out = Some(folder_or_file(parser, &option)?),
            Argument::Option(option) => machine_option(parser, "profile", &option, &mut options.machine)?,
            Argument::Value(value) if command.is_none() => command = Some(text(value)?),
            Argument::Value(value) => {
                return Err(unexpected("profile", &value)).context("profile takes one command, quoted as a whole");
            }
        }
    }
    options.command = command.context("profile needs the command to run, for example ./skink profile 'ls -lR /etc'")?;
    Ok(Action::Profile(options))
}

fn parse_new(parser: &mut lexopt::Parser) -> Result<Action> {
    let mut words = Vec::new();
    while let Some(argument) = next(parser)? {
        match argument {
            Argument::Help => return Ok(Action::Help),
            Argument::Option(option) => return Err(unknown("new", &option)),
            Argument::Value(value) => words.push(text(value)?),
        }
    }
    let (kind, name) = match words.as_slice() {
        [kind, name] => (kind, name),
        _ => bail!("new needs a kind and a name, for example ./skink new driver counter"),
    };
    let kind = match kind.as_str() {
        "driver" => Kind::Driver,
        "service" => Kind::Service,
        other => bail!("new makes a driver or a service, not a '{other}'"),
    };
    Ok(Action::New { kind, name: name.clone() })
}

/// A command without arguments.
fn parse_nothing(parser: &mut lexopt::Parser, command: &str, action: Action) -> Result<Action> {
    match next(parser)? {
        None => Ok(action),
        Some(Argument::Help) => Ok(Action::Help),
        Some(Argument::Option(option)) => Err(unknown(command, &option)),
        Some(Argument::Value(value)) => Err(unexpected(command, &value)),
    }
}

fn machine_option(
    parser: &mut lexopt::Parser,
    command: &str,
    option: &str,
    machine: &mut MachineOptions,
) -> Result<()> {
    match option {
        "--system" => machine.system = Some(text(value_of(parser, option)?)?),
        "--package" => machine.packages.extend(packages(parser, option)?),
        "--overlay" => {
            let folder = folder_or_file(parser, option)?;
            if !folder.is_dir() {
                bail!("--overlay: there is no folder {}", folder.display());
            }
            machine.overlays.push(folder);
        }
        "--memory" => machine.memory_mib = number(parser, option, 16, 65536)?,
        "--smp" => machine.processors = number(parser, option, 1, 64)?,
        "--display" => machine.screen = Screen::Window,
        "--fast" => machine.profile = Profile::Fast,
        _ => return Err(unknown(command, option)),
    }
    Ok(())
}

fn value_of(parser: &mut lexopt::Parser, option: &str) -> Result<OsString> {
    parser.value().map_err(|_| anyhow!("the option {option} needs a value"))
}

fn packages(parser: &mut lexopt::Parser, option: &str) -> Result<Vec<String>> {
    debian::names(&text(value_of(parser, option)?)?)
}

fn folder_or_file(parser: &mut lexopt::Parser, option: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(value_of(parser, option)?))
}

fn number(parser: &mut lexopt::Parser, option: &str, least: u32, most: u32) -> Result<u32> {
    let value = text(value_of(parser, option)?)?;
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => bail!("the option {option} needs a number from {least} to {most}, not '{value}'"),
    }
}

fn text(value: OsString) -> Result<String> {
    value.into_string().map_err(|value| anyhow!("the argument {value:?} is not UTF-8"))
}

fn unknown(command: &str, option: &str) -> anyhow::Error {
    anyhow!("{command} has no option {option}; './skink --help' lists them")
}

fn unexpected(command: &str, value: &OsString) -> anyhow::Error {
    anyhow!("{command} does not know what to do with '{}'", value.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Action> {
        parse(lexopt::Parser::from_args(words.iter().copied()))
    }

    fn refusal(words: &[&str]) -> String {
        format!("{:#}", parse_words(words).expect_err("was accepted"))
    }

    #[test]
    fn run_hands_what_follows_two_dashes_to_qemu() {
        let Ok(Action::Run(options)) = parse_words(&["run", "--smp", "2", "--", "-d", "int", "--net"]) else {
            panic!("not a run");
        };
        assert_eq!(options.machine.processors, 2);
        assert!(!options.net);
        assert_eq!(options.qemu_args, ["-d", "int", "--net"]);
    }

    #[test]
    fn exec_takes_options_before_and_after_the_command() {
        let Ok(Action::Exec(options)) = parse_words(&["exec", "--icount", "echo hi", "--out", "/tmp/o"]) else {
            panic!("not an exec");
        };
        assert!(options.icount);
        assert_eq!(options.command, "echo hi");
        assert_eq!(options.out, Some(PathBuf::from("/tmp/o")));
    }

    #[test]
    fn packages_are_given_with_commas_or_again() {
        let Ok(Action::Run(options)) = parse_words(&["run", "--package", "bc,hello", "--package", "git"]) else {
            panic!("not a run");
        };
        assert_eq!(options.machine.packages, ["bc", "hello", "git"]);
        let Ok(Action::Image(options)) = parse_words(&["image", "--iso", "--package", "bc"]) else {
            panic!("not an image");
        };
        assert_eq!(options.packages, ["bc"]);
        assert!(refusal(&["exec", "--package", "bc=1", "bc"]).contains("'bc=1' is no name"));
    }

    #[test]
    fn only_debug_is_compiled_fast_unless_it_is_asked_for() {
        let profile = |words: &[&str]| match parse_words(words) {
            Ok(Action::Run(options)) => options.machine.profile,
            Ok(Action::Debug(machine)) => machine.profile,
            other => panic!("{other:?}"),
        };
        assert_eq!(profile(&["run"]), Profile::Release);
        assert_eq!(profile(&["run", "--fast"]), Profile::Fast);
        assert_eq!(profile(&["debug"]), Profile::Fast);
        assert_eq!(profile(&["debug", "--release"]), Profile::Release);
    }

    #[test]
    fn faults_take_options_and_other_tests_do_not() {
        let expected = FaultOptions { all: true, seed: Some(7), ..FaultOptions::default() };
        assert_eq!(parse_words(&["test", "faults", "--all", "--seed", "7"]).ok(), Some(Action::Faults(expected)));
        assert!(refusal(&["test", "--all"]).contains("--all belongs to"));
        assert!(refusal(&["test", "faults", "--al"]).contains("--al"));
    }

    #[test]
    fn deep_comes_before_the_name_of_a_test() {
        let deep = |name: Option<&str>| Action::Test { depth: Depth::Deep, name: name.map(str::to_string) };
        assert_eq!(parse_words(&["test", "deep"]).ok(), Some(deep(None)));
        assert_eq!(parse_words(&["test", "deep", "chaos"]).ok(), Some(deep(Some("chaos"))));
        assert_eq!(parse_words(&["test", "deep", "deep"]).ok(), Some(deep(Some("deep"))));
        let all = Action::Faults(FaultOptions { all: true, ..FaultOptions::default() });
        assert_eq!(parse_words(&["test", "deep", "faults"]).ok(), Some(all));
        assert!(refusal(&["test", "chaos", "deep"]).contains("'deep'"));
    }

    #[test]
    fn refusals_name_the_argument() {
        assert!(refusal(&["run", "--quick"]).contains("run has no option --quick"));
        assert!(refusal(&["exec"]).contains("needs the command"));
        assert!(refusal(&["exec", "a", "b"]).contains("'b'"));
        assert!(refusal(&["run", "--smp", "zero"]).contains("from 1 to 64, not 'zero'"));
        assert!(refusal(&["run", "--overlay", "/no/such/folder"]).contains("/no/such/folder"));
        assert!(refusal(&["run", "--system"]).contains("--system needs a value"));
        assert!(refusal(&["image"]).contains("--iso"));
        assert!(refusal(&["tset"]).contains("'tset'"));
        assert!(refusal(&["new", "driver"]).contains("./skink new driver counter"));
        assert!(refusal(&["new", "kernel", "x"]).contains("not a 'kernel'"));
        assert!(refusal(&["explain", "ls", "/"]).contains("quoted as a whole"));
    }
}
