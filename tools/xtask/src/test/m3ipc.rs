//! Conformance of M3-IPC: tests/m3ipc/NAME.c is a behaviour, NAME.expect what the program prints on every back end.
//!
//! Each program is compiled once, as one static binary with the library, and its hash is shown in what a failure tells: the same binary runs
//! on all back ends. Here it runs in Linux over shared memory, with a broker of its own in a folder of its own. `SKINK_M3IPC_RECORD` in the environment
//! writes the .expect files anew.

use super::{Setting, Test, Verdict};
use crate::process::{self, tail};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a program, in seconds.
const LIMIT: &str = "60";
/// How long a broker may take to listen.
const START: Duration = Duration::from_secs(10);
/// Set to write what the programs print as what is expected.
const RECORD: &str = "SKINK_M3IPC_RECORD";
/// Lines that are shown of a failure.
const SHOWN_LINES: usize = 30;

/// One test for each program.
///
/// # Errors
/// When tests/m3ipc cannot be read.
pub fn tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let folder = folder(setting);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|own| own == "c") {
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names.into_iter().map(|name| Test::new(format!("m3ipc/{name}"), move || judge(setting, &name))).collect())
}

fn folder(setting: &Setting) -> PathBuf {
    setting.workspace.root.join("tests/m3ipc")
}

/// Builds the library and the broker. Returns their folder.
fn built<'a>(setting: &'a Setting<'_>) -> Result<&'a PathBuf> {
    setting.built(&setting.m3ipc, || {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&setting.workspace.root).args(["build", "--quiet", "--release"]);
        process::run(cargo.args(["--package", "libm3ipc", "--package", "m3ipcd", "--package", "m3"]))?;
        Ok(setting.workspace.target.join("release"))
    })
}

/// Compiles a program with the library to one static binary.
fn compile(setting: &Setting, library: &Path, name: &str, to: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.current_dir(folder(setting)).args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static"]);
    cc.arg("-I").arg(setting.workspace.root.join("lib/m3ipc/include"));
    cc.arg(format!("{name}.c")).arg("-o").arg(to).arg("-L").arg(library).arg("-lm3ipc");
    process::run(&mut cc)
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
        command.arg("--socket").arg(&socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
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
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn judge(setting: &Setting, name: &str) -> Result<Verdict> {
    let library = built(setting)?;
    let work = setting.workspace.run_folder()?;
    let program = work.join(name);
    compile(setting, library, name, &program)?;
    let broker = Broker::start(&library.join("m3ipcd"), work.path())?;
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(&program).current_dir(work.path()).env("M3IPC_SOCKET", &broker.socket);
    let output = command.stdin(Stdio::null()).output().context("cannot start timeout")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let expect = folder(setting).join(format!("{name}.expect"));
    if std::env::var_os(RECORD).is_some() && output.status.success() {
        fs::write(&expect, &printed)?;
    }
    let expected = fs::read_to_string(&expect).with_context(|| format!("{}: run with {RECORD}=1", expect.display()))?;
    if output.status.success() && printed == expected {
        return Ok(Verdict::passed());
    }
    fs::write(setting.failure_folder(&format!("m3ipc/{name}"))?.join("stdout"), &printed)?;
    let hash = process::output(Command::new("sha256sum").arg(&program))?;
    let hash = String::from_utf8_lossy(&hash).chars().take(64).collect::<String>();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Verdict::failed(format!(
        "binary {hash}, {}\n{}\n{}",
        output.status,
        difference(&expected, &printed),
        tail(&errors, SHOWN_LINES)
    )))
}

/// The first line in which two outputs differ.
fn difference(expected: &str, printed: &str) -> String {
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
    fn the_first_difference_is_named_with_its_line() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2: expected b\n  printed c");
        assert_eq!(difference("a\n", "a\nb\n"), "line 2: expected (end)\n  printed b");
        assert_eq!(difference("a\n", "a\n"), "");
    }
}
