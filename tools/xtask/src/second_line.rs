//! The other end of the guest's second serial line: a shell command here, whose standard input is what the guest sends, and whose
//! standard output is what the guest receives.
//!
//! QEMU connects to a socket of ours when the machine starts; the command starts then, and ends on its own: it finds the end of its
//! input when the machine is left.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// What to run.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondLine {
    /// For `sh -euc`.
    pub command: String,
    /// Added to its environment.
    pub variables: Vec<(String, OsString)>,
}

/// The command, which waits for the machine or runs.
pub struct Running {
    socket: PathBuf,
    thread: JoinHandle<Result<ExitStatus>>,
}

impl SecondLine {
    /// Listens at `socket`, and starts the command when the machine has connected.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(&self, socket: &Path) -> Result<Running> {
        let listener = UnixListener::bind(socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
        let line = self.clone();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().context("the machine does not connect its second serial line")?;
            line.run(stream)
        });
        Ok(Running { socket: socket.to_path_buf(), thread })
    }

    fn run(&self, stream: UnixStream) -> Result<ExitStatus> {
        let input = OwnedFd::from(stream.try_clone()?);
        let mut shell = Command::new("sh");
        shell.arg("-euc").arg(&self.command).envs(self.variables.iter().cloned());
        shell.stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(stream)));
        shell.status().context("cannot start sh")
    }
}

impl Running {
    /// Waits for the command, after the machine has ended.
    ///
    /// # Errors
    /// When it failed.
    pub fn finish(self) -> Result<()> {
        // A machine that never came up has not connected; the command then finds an empty line.
        let _ = UnixStream::connect(&self.socket);
        let status = self.thread.join().map_err(|_| anyhow::anyhow!("the second serial line failed"))??;
        if !status.success() {
            bail!("the command on the second serial line ended with {status}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn line(command: &str) -> SecondLine {
        SecondLine { command: command.to_string(), variables: vec![("WORD".to_string(), "hello".into())] }
    }

    fn socket(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("skink-{name}-{}", std::process::id()))
    }

    #[test]
    fn the_command_talks_with_whoever_connects() {
        let path = socket("talks");
        let running = line("read word; echo $WORD $word").listen(&path).expect("listens");
        let mut machine = UnixStream::connect(&path).expect("connects");
        machine.write_all(b"you\n").expect("writes");
        let mut answer = String::new();
        machine.read_to_string(&mut answer).expect("reads");
        assert_eq!(answer, "hello you\n");
        running.finish().expect("ends well");
        std::fs::remove_file(&path).expect("removes");
    }

    #[test]
    fn a_machine_that_never_came_leaves_the_command_an_empty_line() {
        let path = socket("never");
        let running = line("cat >/dev/null; exit 3").listen(&path).expect("listens");
        assert!(running.finish().expect_err("fails").to_string().contains("exit status: 3"));
        std::fs::remove_file(&path).expect("removes");
    }
}
