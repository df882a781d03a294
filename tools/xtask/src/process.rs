//! Running host tools: output is kept back and shown only in the sentence about a failure.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Runs `command` without input and returns its standard output.
///
/// # Errors
/// When the tool cannot be started or fails, with the last lines it printed.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed ({}): {}", output.status, last_words(&output));
    }
    Ok(output.stdout)
}

/// Runs `command` for its effect.
///
/// # Errors
/// As [`output`].
pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs `command`, which is debugfs: it prints its version first, succeeds always, and tells of failures in words.
///
/// # Errors
/// With these words.
pub fn debugfs(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("cannot start debugfs")?;
    let words = String::from_utf8_lossy(&output.stderr);
    let trouble: Vec<&str> = words.lines().filter(|line| !line.starts_with("debugfs ")).collect();
    if !output.status.success() || !trouble.is_empty() {
        bail!("{}", trouble.join("; "));
    }
    Ok(())
}

/// Replaces the file `to` by what `make` writes to the path that it gets. Readers of `to` find the old file or the new one, never half of it.
///
/// # Errors
/// As of `make`; when the new file cannot take the old one's place.
pub fn replace(to: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut name = OsString::from(to);
    name.push(".new");
    let new = PathBuf::from(name);
    make(&new)?;
    fs::rename(&new, to).with_context(|| format!("cannot replace {}", to.display()))
}

/// The processor time that a child has taken, from Linux's /proc.
///
/// # Errors
/// When the child has been waited for.
pub fn cpu_time(child: &Child) -> Result<Duration> {
    /// USER_HZ, which is 100 on x86-64.
    const NS_PER_UNIT: u64 = 10_000_000;
    let text = fs::read_to_string(format!("/proc/{}/stat", child.id()))
        .with_context(|| format!("cannot watch process {}", child.id()))?;
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, the 12th and 13th after the name.
    let units: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_nanos(units * NS_PER_UNIT))
}

/// Sends SIGIO, which QEMU's main loop reads and which has no other effect. When the child has ended, there is nobody to wake.
pub fn wake(child: &Child) {
    // The shell's own: the program `kill` is not on every machine. 29 is SIGIO.
    let kill = format!("kill -29 {}", child.id());
    let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
}

fn last_words(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    tail(&String::from_utf8_lossy(text), 20)
}

/// The last `count` lines of `text`.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
