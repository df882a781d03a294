//! Runs the tests of a crate with one change at a time, each until its first test fails.
//!
//! The limit is processor time, which does not depend on what else the computer does; tests that wait for ever are known by their
//! threads, all of which sleep, as those of programs do that they run.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// Processor seconds that the tests may take with a change: so many times what they take without, and this at least.
const TIMES: u64 = 5;
const LEAST_S: u64 = 5;
const WALL: Duration = Duration::from_secs(300);
/// No test sleeps this long.
const LONGEST_SLEEP: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);
const TICKS_PER_S: u64 = 100;

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

/// A part of the tests: an executable with arguments.
struct Part {
    executable: PathBuf,
    arguments: Vec<String>,
    limit_s: u64,
}

/// The tests of one crate.
pub struct Tests {
    folder: PathBuf,
    parts: Vec<Part>,
}

impl Tests {
    /// Runs them as they are, to see that they pass and how long they take. Those whose names contain one of `slow` are run
    /// after all others.
    ///
    /// # Errors
    /// When one fails.
    pub fn new(executables: &[PathBuf], folder: &Path, slow: &[&str]) -> Result<Tests> {
        let quick: Vec<String> = slow.iter().flat_map(|name| ["--skip".into(), (*name).into()]).collect();
        let slow: Vec<String> = slow.iter().map(|name| (*name).into()).collect();
        let part = |executable: &PathBuf, arguments: &[String]| Part {
            executable: executable.clone(),
            arguments: arguments.to_vec(),
            limit_s: 3600,
        };
        let mut parts: Vec<Part> = executables.iter().map(|executable| part(executable, &quick)).collect();
        if !slow.is_empty() {
            parts.extend(executables.iter().map(|executable| part(executable, &slow)));
        }
        let mut tests = Tests { folder: folder.into(), parts };
        for at in 0..tests.parts.len() {
            let (verdict, used_s) = tests.run_part(&tests.parts[at], 0)?;
            if verdict != Verdict::Survived {
                bail!("{} fails without any change", tests.parts[at].executable.display());
            }
            tests.parts[at].limit_s = LEAST_S.max(TIMES * (used_s + 1));
        }
        Ok(tests)
    }

    /// Runs them with the change of this number.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn run(&self, number: usize) -> Result<Verdict> {
        for part in &self.parts {
            let (verdict, _) = self.run_part(part, number)?;
            if verdict != Verdict::Survived {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Survived)
    }

    /// Returns the verdict and processor seconds.
    fn run_part(&self, part: &Part, number: usize) -> Result<(Verdict, u64)> {
        let limits = format!("ulimit -t {}; ulimit -v {ADDRESSES_KIB}; exec \"$@\"", part.limit_s);
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(&part.executable).args(&part.arguments);
        command.current_dir(&self.folder).env("SKINK_MUTANT", number.to_string()).env("RUST_BACKTRACE", "0");
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

fn wait(child: &mut Child, failures: &Receiver<()>, wall: Duration) -> Result<(Verdict, u64)> {
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    let end = Instant::now() + wall;
    let (mut used_s, mut awake) = (0, Instant::now());
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            let verdict = match signal {
                Some(SIGXCPU | SIGKILL) => Verdict::TimedOut,
                _ if status.success() => Verdict::Survived,
                _ => Verdict::Killed,
            };
            return Ok((verdict, used_s));
        }
        if !matches!(failures.try_recv(), Err(TryRecvError::Empty | TryRecvError::Disconnected)) {
            return Ok((Verdict::Killed, used_s));
        }
        used_s = used_s.max(processor_s(child.id()).unwrap_or(0));
        if !is_asleep(child.id()) {
            awake = Instant::now();
        }
        if awake.elapsed() > LONGEST_SLEEP {
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok((Verdict::TimedOut, used_s))
}

/// The fields of a `stat` file of proc(5) from the third on: the second, a name, may have blanks.
fn fields(path: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(String::from).collect())
}

/// Processor time of a process.
fn processor_s(process: u32) -> Option<u64> {
    let fields = fields(&PathBuf::from(format!("/proc/{process}/stat")))?;
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_S)
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

    fn shell(text: &str) -> (Verdict, u64) {
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
        assert_eq!(shell("exit 0").0, Verdict::Survived);
        assert_eq!(shell("exit 101").0, Verdict::Killed);
        assert_eq!(shell("kill -XCPU $$").0, Verdict::TimedOut);
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let start = Instant::now();
        assert_eq!(shell("echo 'test a::b ... FAILED'; while :; do :; done").0, Verdict::Killed);
        assert!(start.elapsed() < WALL);
    }

    #[test]
    fn a_process_that_sleeps_for_good_is_not_waited_for() {
        assert_eq!(shell("exec sleep 600").0, Verdict::TimedOut);
        assert_eq!(shell("sleep 6 & wait").0, Verdict::TimedOut, "what it waits for sleeps as well");
    }

    #[test]
    fn a_process_that_waits_for_a_program_that_computes_is_awake() {
        let compute = "timeout 5 sh -c 'while :; do :; done'";
        assert_eq!(shell(&format!("{compute}; exit 0")).0, Verdict::Survived);
    }
}
