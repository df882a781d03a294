//! Runs the tests of a crate with one change at a time, each until its first test fails. Only those are run that reach the place of the
//! change; which these are is noted when each is run alone without a change.
//!
//! The limit is processor time, which does not depend on what else the computer does; tests that wait for ever are known by their
//! threads, all of which sleep, as those of programs do that they run.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// Processor seconds that tests may take with a change: so many times what each takes alone without, and this at least.
const TIMES: u64 = 5;
const LEAST_S: u64 = 5;
const WALL: Duration = Duration::from_secs(300);
/// No test sleeps this long.
const LONGEST_SLEEP: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);
/// What takes longer is run when no quicker test notices a change.
const QUICK: Duration = Duration::from_secs(2);

/// What a change makes of an allocation shall not take the computer's memory. The tests of vfs, which keep their simulated machines to the
/// end, need 38 GB of addresses.
const ADDRESSES_KIB: u64 = 48_000_000;

/// What the tests said to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A test failed.
    Killed,
    /// A test went on for ever.
    TimedOut,
    /// No test minded.
    Survived,
}

/// A test as it is without any change.
struct Test {
    executable: PathBuf,
    name: String,
    took: Duration,
    /// The numbers of all changes whose places it reaches: no other change can be noticed by it.
    reached: BTreeSet<usize>,
}

/// Tests of one executable that are run together.
struct Part<'a> {
    executable: &'a Path,
    names: Vec<&'a str>,
    limit_s: u64,
    reached: Option<&'a Path>,
}

/// The tests of one crate.
pub struct Tests {
    folder: PathBuf,
    executables: Vec<PathBuf>,
    tests: Vec<Test>,
}

impl Tests {
    /// Runs each alone as it is, to see that it passes, how long it takes, and which changes it reaches.
    ///
    /// # Errors
    /// When one fails.
    pub fn new(executables: &[PathBuf], folder: &Path) -> Result<Tests> {
        let mut tests = Tests { folder: folder.into(), executables: executables.to_vec(), tests: Vec::new() };
        let mut names: Vec<(&Path, String)> = Vec::new();
        for executable in executables {
            names.extend(tests.list(executable)?.into_iter().map(|name| (executable.as_path(), name)));
        }
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let measured: Vec<Result<Vec<Test>>> = std::thread::scope(|scope| {
            let (tests, names) = (&tests, &names);
            let share = move |worker| names.iter().skip(worker).step_by(workers);
            let measure =
                move |worker| share(worker).map(|(executable, name)| tests.measure(executable, name)).collect();
            let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || measure(worker))).collect();
            threads.into_iter().map(|thread| thread.join().expect("measuring does not panic")).collect()
        });
        tests.tests = measured.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok(tests)
    }

    /// The names of an executable's tests.
    fn list(&self, executable: &Path) -> Result<Vec<String>> {
        let output =
            Command::new(executable).current_dir(&self.folder).args(["--list", "--format", "terse"]).output()?;
        let lines = String::from_utf8(output.stdout)?;
        Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
    }

    fn measure(&self, executable: &Path, name: &str) -> Result<Test> {
        let file =
            std::env::temp_dir().join(format!("skink-mutants-{}-{}", std::process::id(), name.replace("::", "-")));
        let part = Part { executable, names: vec![name], limit_s: 3600, reached: Some(&file) };
        let start = Instant::now();
        if self.run_part(&part, 0)? != Verdict::Survived {
            bail!("{name} of {} fails without any change", executable.display());
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        // Without a file the test has reached nothing.
        let _ = fs::remove_file(&file);
        let reached = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Test { executable: executable.into(), name: name.into(), took: start.elapsed(), reached })
    }

    /// Whether any test reaches the place of the change of this number.
    pub fn is_reached(&self, number: usize) -> bool {
        self.tests.iter().any(|test| test.reached.contains(&number))
    }

    /// Runs those that reach it with the change of this number, the quick ones first.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn run(&self, number: usize) -> Result<Verdict> {
        for is_slow in [false, true] {
            for executable in &self.executables {
                let is_meant = |test: &&Test| {
                    test.executable == *executable && test.reached.contains(&number) && (test.took > QUICK) == is_slow
                };
                let (mut names, mut took) = (Vec::new(), Duration::ZERO);
                for test in self.tests.iter().filter(is_meant) {
                    names.push(test.name.as_str());
                    took += test.took;
                }
                let limit_s = LEAST_S.max(TIMES * (took.as_secs() + 1));
                let part = Part { executable, names, limit_s, reached: None };
                if part.names.is_empty() {
                    continue;
                }
                let verdict = self.run_part(&part, number)?;
                if verdict != Verdict::Survived {
                    return Ok(verdict);
                }
            }
        }
        Ok(Verdict::Survived)
    }

    fn run_part(&self, part: &Part, number: usize) -> Result<Verdict> {
        let limits = format!("ulimit -t {}; ulimit -v {ADDRESSES_KIB}; exec \"$@\"", part.limit_s);
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(part.executable).arg("--exact").args(&part.names);
        command.current_dir(&self.folder).env("SKINK_MUTANT", number.to_string()).env("RUST_BACKTRACE", "0");
        if let Some(file) = part.reached {
            command.env("SKINK_REACHED", file);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", part.executable.display()))?;
        let failures = failures(&mut child);
        let wall = if number == 0 { Duration::from_secs(3600) } else { WALL };
        let outcome = wait(&mut child, &failures, wall);
        // Of one that has ended already, neither has an effect.
        let _ = child.kill();
        child.wait()?;
        outcome
    }
}

/// Tells when a test of this process has failed.
fn failures(child: &mut Child) -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n'));
        for line in lines.map_while(core::result::Result::ok) {
            if line.starts_with(b"test ") && line.ends_with(b"FAILED") && sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn wait(child: &mut Child, failures: &Receiver<()>, wall: Duration) -> Result<Verdict> {
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    let end = Instant::now() + wall;
    let mut awake = Instant::now();
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            let verdict = match signal {
                Some(SIGXCPU | SIGKILL) => Verdict::TimedOut,
                _ if status.success() => Verdict::Survived,
                _ => Verdict::Killed,
            };
            return Ok(verdict);
        }
        if !matches!(failures.try_recv(), Err(TryRecvError::Empty | TryRecvError::Disconnected)) {
            return Ok(Verdict::Killed);
        }
        if !is_asleep(child.id()) {
            awake = Instant::now();
        }
        if awake.elapsed() > LONGEST_SLEEP {
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(Verdict::TimedOut)
}

/// The fields of a `stat` file of proc(5) from the third on: the second, a name, may have blanks.
fn fields(path: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(String::from).collect())
}

/// Whether every thread of a process sleeps, and of the programs that it runs.
fn is_asleep(process: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().all(|thread| {
        let state = fields(&thread.path().join("stat")).and_then(|fields| fields.into_iter().next());
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        state.is_some_and(|state| state == "S")
            && children.split_whitespace().all(|child| child.parse().is_ok_and(is_asleep))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Verdict {
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("there is a shell");
        let failures = failures(&mut child);
        let outcome = wait(&mut child, &failures, WALL).expect("is waited for");
        let _ = child.kill();
        child.wait().expect("is waited for");
        outcome
    }

    #[test]
    fn the_end_of_the_tests_is_their_verdict() {
        assert_eq!(shell("exit 0"), Verdict::Survived);
        assert_eq!(shell("exit 101"), Verdict::Killed);
        assert_eq!(shell("kill -XCPU $$"), Verdict::TimedOut);
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let start = Instant::now();
        assert_eq!(shell("echo 'test a::b ... FAILED'; while :; do :; done"), Verdict::Killed);
        assert!(start.elapsed() < WALL);
    }

    #[test]
    fn a_process_that_sleeps_for_good_is_not_waited_for() {
        assert_eq!(shell("exec sleep 600"), Verdict::TimedOut);
        assert_eq!(shell("sleep 6 & wait"), Verdict::TimedOut, "what it waits for sleeps as well");
    }

    #[test]
    fn a_process_that_waits_for_a_program_that_computes_is_awake() {
        let compute = "timeout 5 sh -c 'while :; do :; done'";
        assert_eq!(shell(&format!("{compute}; exit 0")), Verdict::Survived);
    }
}
