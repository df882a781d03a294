//! A dialogue with the machine's console, as a person at the terminal would have it.
//!
//! A case is a file of lines: `< TEXT` waits until the console says TEXT (after what was waited for
//! before), `> TEXT` types TEXT and Enter, `>> TEXT` types it without Enter, `. ` waits for the
//! machine to end by itself. In TEXT `\xHH` is a byte; `#` begins a remark.

use super::case::Case;
use super::scripts::check_disk;
use super::{Setting, Verdict};
use crate::machine::{Boot, Line, Machine};
use crate::monitor::Monitor;
use crate::process::tail;
use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How much of the console is shown of a failure.
const SHOWN_LINES: usize = 40;

/// One line of a dialogue.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Wait for these bytes.
    Expect(Vec<u8>),
    /// Type these bytes.
    Type(Vec<u8>),
    /// Have QEMU's monitor, at this socket, write a picture of the screen to this file.
    Picture { monitor: PathBuf, file: PathBuf },
    /// Wait for the end of the machine.
    End,
}

/// Boots the case's system and has its dialogue.
///
/// # Errors
/// When the case is written wrongly or the machine cannot be started.
pub fn run(setting: &Setting, case: &Case) -> Result<Verdict> {
    let steps = parse(&case.text)?;
    let bundle = setting.bundle(&case.terms.system)?;
    let folder = setting.workspace.run_folder()?;
    let media = bundle.make_media(&bundle.contents(setting.workspace), &folder)?;
    let mut machine = Machine::new(Boot::Kernel { kernel: media.kernel, archive: media.archive, append: Vec::new() });
    machine.disks = media.disks;
    machine.memory_mib = case.terms.memory_mib;
    machine.icount = case.terms.icount;
    let verdict = hold(&mut machine, &steps, case.terms.limit)?;
    if verdict.is_ok() && steps.last() == Some(&Step::End) {
        machine.disks.iter().try_for_each(|disk| check_disk(disk))?;
    }
    match verdict {
        Ok(_) => Ok(Verdict::passed()),
        Err(failure) => {
            let kept = setting.failure_folder(&case.name)?.join("console");
            fs::write(&kept, &failure.console)?;
            let shown = tail(&failure.console, SHOWN_LINES);
            Ok(Verdict::failed(format!("{}\nconsole:\n{shown}\nall of it is in {}", failure.reason, kept.display())))
        }
    }
}

/// Why a dialogue failed, and what the console had said until then.
pub struct Failure {
    /// The step that failed.
    pub reason: String,
    /// The console.
    pub console: String,
}

/// Starts `machine` with its console on our side, goes through `steps` and ends it. Returns what the console has said.
///
/// # Errors
/// When the machine cannot be started; what goes wrong in the dialogue is the inner result.
pub fn hold(machine: &mut Machine, steps: &[Step], limit: Duration) -> Result<std::result::Result<String, Failure>> {
    machine.serial = vec![Line::Stdio];
    let conversation = converse(machine.command().stderr(Stdio::null()), steps, limit)?;
    Ok(match conversation.failure {
        None => Ok(conversation.said),
        Some(reason) => Err(Failure { reason, console: conversation.said }),
    })
}

/// Outcome of a dialogue with a program.
pub struct Conversation {
    /// The step that failed.
    pub failure: Option<String>,
    /// Everything the program said.
    pub said: String,
    /// How it ended.
    pub status: ExitStatus,
}

/// Starts `command` with its standard input and output on our side, goes through `steps` and ends it.
///
/// # Errors
/// When the program cannot be started.
pub fn converse(command: &mut Command, steps: &[Step], limit: Duration) -> Result<Conversation> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let (Some(input), Some(output)) = (program.stdin.take(), program.stdout.take()) else {
        bail!("the program has no input and output");
    };
    let mut console = Console::new(input, output, limit);
    let result = steps.iter().try_for_each(|step| console.take(step));
    if result.is_err() || steps.last() != Some(&Step::End) {
        // Fails when it has ended already, which is as good.
        let _ = program.kill();
    }
    let status = program.wait().context("cannot wait for the program's end")?;
    Ok(Conversation { failure: result.err().map(|error| format!("{error:#}")), said: console.text(), status })
}

/// Our side of the console.
struct Console {
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
    said: Vec<u8>,
    /// How much of `said` has been waited for already.
    seen: usize,
    deadline: Instant,
}

impl Console {
    fn new(input: ChildStdin, output: impl Read + Send + 'static, limit: Duration) -> Self {
        let (to, from) = mpsc::channel();
        thread::spawn(move || pass_on(output, &to));
        Self { input, output: from, said: Vec::new(), seen: 0, deadline: Instant::now() + limit }
    }

    fn take(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Expect(text) => self.expect(text),
            Step::Type(text) => {
                self.input.write_all(text).and_then(|()| self.input.flush()).context("the machine has stopped")
            }
            Step::Picture { monitor, file } => {
                let left = self.deadline.saturating_duration_since(Instant::now());
                Monitor::connect(monitor, left, left)?.screenshot(file)
            }
            Step::End => self.wait_for_end(),
        }
    }

    fn expect(&mut self, text: &[u8]) -> Result<()> {
        loop {
            if let Some(at) = find(&self.said[self.seen..], text) {
                self.seen += at + text.len();
                return Ok(());
            }
            let wanted = String::from_utf8_lossy(text);
            match self.listen() {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => bail!("time-out while waiting for '{wanted}'"),
                Err(RecvTimeoutError::Disconnected) => bail!("the machine stopped before it printed '{wanted}'"),
            }
        }
    }

    fn wait_for_end(&mut self) -> Result<()> {
        loop {
            match self.listen() {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => bail!("time-out while waiting for the machine to stop"),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn listen(&mut self) -> std::result::Result<(), RecvTimeoutError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let bytes = self.output.recv_timeout(left)?;
        self.said.extend(bytes.into_iter().filter(|byte| *byte != b'\r'));
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }
}

fn pass_on(mut output: impl Read, to: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    // The end of the machine ends this, and so does the end of the dialogue.
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        if to.send(buffer[..length].to_vec()).is_err() {
            return;
        }
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The steps in a case's text.
fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let step = parse_line(line).with_context(|| format!("line {}", number + 1))?;
        steps.extend(step);
    }
    Ok(steps)
}

fn parse_line(line: &str) -> Result<Option<Step>> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (mark, text) = line.split_once(' ').unwrap_or((line, ""));
    Ok(Some(match mark {
        "<" => Step::Expect(bytes(text)?),
        ">>" => Step::Type(bytes(text)?),
        ">" => {
            let mut text = bytes(text)?;
            text.push(b'\r');
            Step::Type(text)
        }
        "." => Step::End,
        _ => bail!("expected a line that begins with '<', '>', '>>', '.' or '#'"),
    }))
}

/// `text` with `\xHH` replaced by that byte.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(|| anyhow!("expected two digits after \\x"))?;
        bytes.push(u8::from_str_radix(digits, 16).with_context(|| format!("\\x{digits} is no byte"))?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_steps() {
        let steps = parse("# Ctrl-C\n#: timeout 5\n< $ \n> sleep 9\n>> \\x03a\n.\n").expect("is right");
        let expected =
            [Step::Expect(b"$ ".to_vec()), Step::Type(b"sleep 9\r".to_vec()), Step::Type(b"\x03a".to_vec()), Step::End];
        assert_eq!(steps, expected);
    }

    #[test]
    fn wrong_lines_are_named() {
        assert!(format!("{:#}", parse("< a\nfoo\n").expect_err("was accepted")).starts_with("line 2: expected"));
        assert!(parse("> \\xg1\n").is_err());
        assert!(parse("> \\x1\n").is_err());
    }
}
