//! Runs the tests of a crate with one change at a time.
//!
//! The limits are processor time, which does not depend on what else the computer does, and a generous wall time for tests that
//! wait for ever.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Processor seconds that the tests may take with a change: so many times what they take without, and this at least.
const TIMES: u64 = 5;
const LEAST_S: u64 = 10;
const WALL: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(20);

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

/// The tests of one crate.
pub struct Tests {
    executables: Vec<PathBuf>,
    folder: PathBuf,
    arguments: &'static [&'static str],
    limit_s: u64,
}

impl Tests {
    /// Runs them as they are, to see that they pass and how long they take.
    ///
    /// # Errors
    /// When one fails.
    pub fn new(executables: Vec<PathBuf>, folder: &Path, arguments: &'static [&'static str]) -> Result<Tests> {
        let mut tests = Tests { executables, folder: folder.into(), arguments, limit_s: 3600 };
        let start = Instant::now();
        if tests.run(0)? != Verdict::Survived {
            bail!("the tests in {} fail without any change", folder.display());
        }
        tests.limit_s = LEAST_S.max(TIMES * start.elapsed().as_secs());
        Ok(tests)
    }

    /// Runs them with the change of this number.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn run(&self, number: usize) -> Result<Verdict> {
        for executable in &self.executables {
            let verdict = self.run_one(executable, number)?;
            if verdict != Verdict::Survived {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Survived)
    }

    fn run_one(&self, executable: &Path, number: usize) -> Result<Verdict> {
        // What a change makes of an allocation shall not take the computer's memory.
        let limits = format!("ulimit -t {}; ulimit -v 16000000; exec \"$@\"", self.limit_s);
        let mut command = Command::new("sh");
        command.args(["-c", &limits, "sh"]).arg(executable).args(self.arguments);
        command.current_dir(&self.folder).env("SKINK_MUTANT", number.to_string()).env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {}", executable.display()))?;
        let wall = if number == 0 { Duration::from_secs(3600) } else { WALL };
        wait(child, wall)
    }
}

fn wait(mut child: Child, wall: Duration) -> Result<Verdict> {
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    let end = Instant::now() + wall;
    while Instant::now() < end {
        let Some(status) = child.try_wait()? else {
            std::thread::sleep(POLL);
            continue;
        };
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        return Ok(match signal {
            Some(SIGXCPU | SIGKILL) => Verdict::TimedOut,
            _ if status.success() => Verdict::Survived,
            _ => Verdict::Killed,
        });
    }
    child.kill()?;
    child.wait()?;
    Ok(Verdict::TimedOut)
}
