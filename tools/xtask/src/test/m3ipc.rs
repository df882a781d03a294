//! Conformance of M3-IPC: a program of tests/m3ipc is a behaviour, the .expect file beside it what it prints on every back end.
//!
//! Each program is compiled once, as one static binary with the library, and the same binary runs in Linux over shared memory, with a broker of
//! its own in a folder of its own, and twice in one guest with Skink, which tells its hash: the second time the server is killed meanwhile. `SKINK_M3IPC_RECORD` in the environment writes the .expect
//! files anew.

use super::{DEEP_VARIABLE, Setting, Test, Verdict, linux, m3ipc_module};
use crate::cli::{DEFAULT_SYSTEM, Depth};
use crate::guest::{Guest, Job};
use crate::m3ipc_programs;
use crate::process::{self, tail};
use crate::workspace::RunFolder;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Time limit of a program, in seconds: hang detection.
const LIMIT_S: u32 = 60;
const DEEP_LIMIT_S: u32 = 1800;
/// Time limit of the guest.
const GUEST_LIMIT: Duration = Duration::from_secs(600);
const DEEP_GUEST_LIMIT: Duration = Duration::from_secs(2 * DEEP_LIMIT_S as u64 + 600);
/// How long a broker may take to listen.
const START: Duration = Duration::from_secs(10);
/// Set to write what the programs print as what is expected.
const RECORD: &str = "SKINK_M3IPC_RECORD";
/// Lines that are shown of a failure.
const SHOWN_LINES: usize = 30;
/// Ends what an earlier program has left in the guest.
const END_NODE: &str = "end_node";
/// What the guest's shell runs: each program, once more while the server dies at one of its messages, and in the end a line with name, hash and
/// status before what each has printed.
const COMMAND: &str = "cd /m3ipc
    run() {
        timeout $limit ./$1 > /tmp/printed 2>&1 < /dev/null
        echo \"program $2$1 $(sha256sum < $1 | cut -c1-64) $?\" >> /tmp/all
        cat /tmp/printed >> /tmp/all
    }
    for each in test_*; do ./end_node; run $each; done
    k=0
    for each in test_*; do
        ./end_node
        k=$((k % 24 + 1))
        service inject m3ipc kill-after $k
        run $each killed_
    done
    sleep 1
    cat /tmp/all";
/// Before the name of a program during which the server was killed.
const KILLED: &str = "killed_";

/// The broker and the programs.
pub struct Programs {
    broker: PathBuf,
    /// Has the folder m3ipc with the programs, as the guest has it.
    folder: RunFolder,
}

impl Programs {
    /// The folder with the programs.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("m3ipc")
    }
}

/// What a program has printed in the guest.
pub struct Printed {
    /// Hash of the program.
    pub hash: String,
    /// What it has printed.
    pub text: String,
}

/// What the programs have printed in the guest, by name; and why the guest ended early, if it did.
pub struct Ran {
    outputs: BTreeMap<String, Printed>,
    problem: Option<String>,
}

/// One test for each program.
///
/// # Errors
/// When tests/m3ipc cannot be read.
pub fn tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let names = names(setting)?;
    Ok(names.into_iter().map(|name| Test::new(test_name(&name), move || judge(setting, &name))).collect())
}

/// The tests of programs that have a full form, in that form.
///
/// # Errors
/// When tests/m3ipc cannot be read.
pub fn deep_tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let mut tests = Vec::new();
    for name in names(setting)? {
        if fs::read_to_string(folder(setting).join(format!("{name}.c")))?.contains(DEEP_VARIABLE) {
            tests.push(Test::new(test_name(&name), move || judge(setting, &name)));
        }
    }
    Ok(tests)
}

/// How long a program may take, in seconds.
fn limit_s(setting: &Setting) -> u32 {
    match setting.depth {
        Depth::Short => LIMIT_S,
        Depth::Deep => DEEP_LIMIT_S,
    }
}

fn test_name(program: &str) -> String {
    format!("m3ipc/{program}")
}

pub(super) fn folder(setting: &Setting) -> PathBuf {
    setting.workspace.root.join("tests/m3ipc")
}

/// The names of the programs, sorted.
pub(super) fn names(setting: &Setting) -> Result<Vec<String>> {
    let mut names = linux::sources(&folder(setting))?;
    names.retain(|name| name != END_NODE);
    Ok(names)
}

/// Builds the library and the broker, and compiles the programs that are asked for.
pub(super) fn built<'a>(setting: &'a Setting<'_>) -> Result<&'a Programs> {
    setting.built(&setting.m3ipc, || {
        let library = m3ipc_programs::build_library(setting.workspace)?;
        let folder = setting.workspace.run_folder()?;
        let overlay = folder.join("m3ipc");
        fs::create_dir_all(&overlay)?;
        let is_wanted = |name: &String| setting.is_wanted(&test_name(name)) || setting.is_wanted(m3ipc_module::NAME);
        let wanted = names(setting)?.into_iter().filter(is_wanted);
        for name in wanted.chain([END_NODE.to_string()]) {
            let source = self::folder(setting).join(format!("{name}.c"));
            m3ipc_programs::compile(setting.workspace, &library, &source, &overlay.join(&name))?;
        }
        Ok(Programs { broker: library.join("m3ipcd"), folder })
    })
}

/// Boots a guest with the programs, and runs them.
fn run_in_guest(setting: &Setting) -> Result<Ran> {
    let overlay = built(setting)?.folder.path().to_path_buf();
    let bundle = setting.bundle(DEFAULT_SYSTEM)?;
    let (head, limit) = match setting.depth {
        Depth::Short => (String::new(), GUEST_LIMIT),
        Depth::Deep => (format!("export {DEEP_VARIABLE}=1\n"), DEEP_GUEST_LIMIT),
    };
    let command = format!("{head}limit={}\n{COMMAND}", limit_s(setting));
    let job = Job { overlays: std::slice::from_ref(&overlay), limit: Some(limit), ..Job::new(&command) };
    let guest = Guest::prepare(setting.workspace, bundle, &job)?;
    let mut output = Vec::new();
    let outcome = guest.run(|bytes| output.extend_from_slice(bytes), |_| ())?;
    let problem = match outcome.status {
        _ if outcome.timed_out => Some("time limit exceeded".to_string()),
        None => Some(format!("the machine stopped\n{}", tail(&outcome.console, SHOWN_LINES))),
        Some(_) => None,
    };
    Ok(Ran { outputs: by_program(&String::from_utf8_lossy(&output)), problem })
}

/// Splits the guest's output at the lines `program NAME HASH STATUS`.
pub(super) fn by_program(output: &str) -> BTreeMap<String, Printed> {
    let mut outputs = BTreeMap::new();
    let mut current = None;
    for line in output.lines() {
        let mut words = line.split(' ');
        if let (Some("program"), Some(name), Some(hash), Some(_)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            let printed = Printed { hash: hash.to_string(), text: String::new() };
            current = Some(outputs.entry(name.to_string()).insert_entry(printed).into_mut());
        } else if let Some(printed) = &mut current {
            printed.text.push_str(line);
            printed.text.push('\n');
        }
    }
    outputs
}

/// A broker, ended with this.
struct Broker {
    process: Child,
    socket: PathBuf,
}

impl Broker {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let socket = folder.join("socket");
        let log = fs::File::create(folder.join("log"))?;
        let mut command = Command::new(program);
        // Two users of programs that are not root's.
        command
            .args(["--uid", "1000", "--uid", "1001", "--socket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let broker = Self { process, socket };
        let start = Instant::now();
        while !broker.socket.exists() {
            if start.elapsed() > START {
                bail!("m3ipcd does not listen: {}", fs::read_to_string(folder.join("log")).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(broker)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        m3ipc_programs::end_broker(&mut self.process);
    }
}

/// Runs a program in Linux, and compares that and what the guest's has printed with what is expected.
fn judge(setting: &Setting, name: &str) -> Result<Verdict> {
    let programs = built(setting)?;
    let program = programs.folder.path().join("m3ipc").join(name);
    let (printed, errors) = run_in_linux(setting, &programs.broker, &program)?;
    let expect = folder(setting).join(format!("{name}.expect"));
    if std::env::var_os(RECORD).is_some() {
        fs::write(&expect, &printed)?;
    }
    let expected = fs::read_to_string(&expect).with_context(|| format!("{}: run with {RECORD}=1", expect.display()))?;
    let hash = hash(&program)?;
    let mut problems = Vec::new();
    if printed != expected {
        fs::write(setting.failure_folder(&test_name(name))?.join("linux"), &printed)?;
        problems.push(format!("Linux, binary {hash}:\n{}\n{errors}", difference(&expected, &printed)));
    }
    // Held by the first while it runs all: the others have nothing to judge before.
    let mut ran = setting.m3ipc_ran.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = ran.get_or_insert_with(|| {
        run_in_guest(setting)
            .unwrap_or_else(|error| Ran { outputs: BTreeMap::new(), problem: Some(format!("{error:#}")) })
    });
    for prefix in ["", KILLED] {
        match ran.outputs.get(&format!("{prefix}{name}")) {
            Some(skink) if skink.hash != hash => problems.push(format!("Skink ran another binary: {}", skink.hash)),
            Some(skink) if skink.text != expected => {
                fs::write(setting.failure_folder(&test_name(name))?.join(format!("{prefix}skink")), &skink.text)?;
                problems.push(format!("Skink, {prefix}{hash}:\n{}", difference(&expected, &skink.text)));
            }
            Some(_) => {}
            None => problems.push(format!("did not run in Skink: {}", ran.problem.clone().unwrap_or_default())),
        }
    }
    let mut verdict = Verdict::failed(problems.join("\n"));
    (verdict.count.passed, verdict.count.failed) = (3 - problems.len(), problems.len());
    Ok(verdict)
}

/// Runs a program with a broker of its own. Returns what it has printed, and its errors.
fn run_in_linux(setting: &Setting, broker: &Path, program: &Path) -> Result<(String, String)> {
    let work = setting.workspace.run_folder()?;
    let broker = Broker::start(broker, work.path())?;
    let mut command = Command::new("timeout");
    command.arg(limit_s(setting).to_string()).arg(program);
    command.current_dir(work.path()).env("M3IPC_SOCKET", &broker.socket);
    match setting.depth {
        Depth::Short => command.env_remove(DEEP_VARIABLE),
        Depth::Deep => command.env(DEEP_VARIABLE, "1"),
    };
    let output = command.stdin(Stdio::null()).output().context("cannot start timeout")?;
    let errors = format!("{}\n{}", output.status, tail(&String::from_utf8_lossy(&output.stderr), SHOWN_LINES));
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), errors))
}

/// The hash of a program, as the guest tells it.
pub(super) fn hash(program: &Path) -> Result<String> {
    let hash = process::output(Command::new("sha256sum").arg(program))?;
    Ok(String::from_utf8_lossy(&hash).chars().take(64).collect())
}

/// The first line in which two outputs differ.
pub(super) fn difference(expected: &str, printed: &str) -> String {
    let (mut expected, mut printed) = (expected.lines(), printed.lines());
    for line in 1.. {
        match (expected.next(), printed.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                let show = |text: Option<&str>| text.unwrap_or("(end)").to_string();
                return format!("line {line}: expected {}\n  printed {}", show(one), show(other));
            }
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_guest_is_split_by_program() {
        let outputs = by_program("noise\nprogram test_a 12ab 0\none\ntwo\nprogram test_b 34 1\n");
        assert_eq!((outputs["test_a"].hash.as_str(), outputs["test_a"].text.as_str()), ("12ab", "one\ntwo\n"));
        assert_eq!((outputs.len(), outputs["test_b"].text.as_str()), (2, ""));
    }

    #[test]
    fn the_first_difference_is_named_with_its_line() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2: expected b\n  printed c");
        assert_eq!(difference("a\n", "a\nb\n"), "line 2: expected (end)\n  printed b");
        assert_eq!(difference("a\n", "a\n"), "");
    }
}
