//! A guest that runs trials, one after the other, until it is lost or no longer wanted.
//!
//! Its program `faults` talks over the second serial line (`line`); what it wants echoed is sent back as it came. The console goes to a
//! file. Time in the guest is counted in instructions while it computes, however fast the host is, so the limits in the guest are the
//! same everywhere; while it waits for disk or line, time is real. Hang detection, here, is for systems that cannot even tell: by the
//! processor time that QEMU takes.

use super::line;
use super::trial::{Outcome, Report, Trial};
use crate::bundle::Media;
use crate::machine::{Boot, Line, Machine, Screen};
use crate::process::{self, cpu_time, tail};
use crate::rootfs;
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// An instruction takes 2^3 ns of the guest's time.
const ICOUNT_SHIFT: u32 = 3;
const ICOUNT_MODE: &str = "shift=3,sleep=on";
/// Hang detection: a system counts as lost when QEMU has computed for so long without an answer from the guest. The guest's own limits are
/// reached long before, unless a service computes for ever and nobody ends it.
const CPU_LIMIT: Duration = Duration::from_secs(150);
/// Hang detection: the same when it sends nothing at all, as after a panic.
const IDLE_LIMIT: Duration = Duration::from_secs(150);
/// Hang detection: the same when the guest has not come to the end of a trial, whatever it says.
const TRIAL_LIMIT: Duration = Duration::from_secs(500);
/// Period of the checks on QEMU while the guest sends nothing.
const LOOK: Duration = Duration::from_millis(100);
/// Size of the file system on the disk, and of the range behind it that raw writes go to.
const DISK_MIB: u64 = 16;
const RAW_BYTES: u64 = 1 << 20;
/// How often a trial is asked for whose command or report does not arrive.
const MAX_TRIES: u32 = 3;
/// How much of the console a reason for a loss is looked for in.
const CONSOLE_LINES: usize = 12;

/// The command of the guest.
pub const COMMAND: &str =
    "mount -t ext2 /dev/hda /mnt && exec faults /root/work /out:/dev/vda:0x1000000 /mnt:/dev/hda:0x1000000";

const _: () = assert!(DISK_MIB << 20 == 0x100_0000);

/// Instructions in so many ns of the guest's time.
pub fn ticks(ns: u64) -> u64 {
    ns >> ICOUNT_SHIFT
}

/// Why no line comes: nothing is wrong with that after `end`.
const MACHINE_ENDED: &str = "the machine ended";

/// A booted guest.
pub struct Session {
    qemu: Child,
    input: ChildStdin,
    lines: Receiver<Vec<u8>>,
    console: PathBuf,
    disks: [PathBuf; 2],
    folder: RunFolder,
}

/// Next event from the guest.
enum Next {
    Line(String),
    Ended(&'static str),
}

impl Session {
    /// Boots a guest and waits until it is ready for the first trial.
    ///
    /// # Errors
    /// When QEMU or the undisturbed system does not start.
    pub fn boot(workspace: &Workspace, media: &Media) -> Result<Self> {
        let mut session = Self::start(workspace, media, &[])?;
        session.try_undisturbed("vfs")?;
        Ok(session)
    }

    /// Has a guest do the work of all these services undisturbed, and returns what `read` finds in QEMU's log of the instructions.
    ///
    /// # Errors
    /// As `boot`, and those of `read`.
    pub fn log_instructions<T>(
        workspace: &Workspace,
        media: &Media,
        services: impl Iterator<Item = impl AsRef<str>>,
        read: impl FnOnce(BufReader<File>) -> Result<T>,
    ) -> Result<T> {
        let folder = workspace.run_folder()?;
        let log = folder.join("instructions");
        let options = ["-d", "in_asm", "-D"].map(OsString::from);
        let mut session = Self::start(workspace, media, &[&options[..], &[log.clone().into_os_string()]].concat())?;
        for service in services {
            session.try_undisturbed(service.as_ref())?;
        }
        session.end()?;
        read(BufReader::new(File::open(&log)?))
    }

    fn start(workspace: &Workspace, media: &Media, options: &[OsString]) -> Result<Self> {
        let folder = workspace.run_folder()?;
        let disks = [folder.join("virtio.img"), folder.join("ide.img")];
        disks.iter().try_for_each(|disk| make_disk(disk))?;
        let console = folder.join("console");
        let mut qemu = machine(media, &disks).command();
        qemu.args(options);
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&console)?);
        let mut qemu = qemu.spawn().context("cannot start QEMU")?;
        let (Some(input), Some(output)) = (qemu.stdin.take(), qemu.stdout.take()) else {
            bail!("QEMU has no input and output");
        };
        let (to, lines) = mpsc::channel();
        thread::spawn(move || pass_on(BufReader::new(output), &to));
        let mut session = Self { qemu, input, lines, console, disks, folder };
        match session.next()? {
            Next::Line(text) if text == "ready" => {}
            Next::Line(text) => bail!("the guest sent '{text}' instead of 'ready'"),
            Next::Ended(why) => bail!("the undisturbed system did not start ({why}):\n{}", session.console_tail()),
        }
        Ok(session)
    }

    /// The work and its checks are sound when nobody is disturbed.
    fn try_undisturbed(&mut self, service: &str) -> Result<()> {
        let report = self.run(&Trial::undisturbed(service))?;
        if report.outcome > Outcome::Recovered {
            bail!("the undisturbed system failed ({}):\n{}", report.reason, self.console_tail());
        }
        Ok(())
    }

    /// Runs one trial. The session cannot be used further when the outcome is a loss.
    ///
    /// # Errors
    /// When the guest cannot be watched.
    pub fn run(&mut self, trial: &Trial) -> Result<Report> {
        let command = line::pack(&trial.command());
        let said = self.console().len();
        self.send(command.as_bytes());
        let mut report = None;
        let mut tries = 1;
        let begun = Instant::now();
        loop {
            if begun.elapsed() > TRIAL_LIMIT {
                return Ok(Report::lost(trial.number, "the trial has no end"));
            }
            match self.next()? {
                Next::Ended(why) => return Ok(Report::lost(trial.number, format!("{why}: {}", self.last_words()))),
                Next::Line(text) if text == "ready" => {
                    if let Some(report) = report {
                        return Ok(self.correct(report, trial, said));
                    }
                    if tries == MAX_TRIES {
                        let reason = "report/serial line/report garbled".to_string();
                        return Ok(Report { outcome: Outcome::Corrupted, ..Report::lost(trial.number, reason) });
                    }
                    // Either line was garbled: the system is undisturbed again, and does it once more.
                    tries += 1;
                    self.send(command.as_bytes());
                }
                Next::Line(text) => {
                    let told = text.strip_prefix("done ").map(Report::from_guest).transpose()?;
                    report = told.filter(|told| told.number == trial.number).or(report);
                }
            }
        }
    }

    /// Ends the guest in good order and checks its disk.
    ///
    /// # Errors
    /// When it does not end, or the file system on its disk is damaged.
    pub fn end(mut self) -> Result<()> {
        self.send(line::pack("end").as_bytes());
        loop {
            match self.next()? {
                Next::Line(_) => {}
                Next::Ended(MACHINE_ENDED) => break,
                Next::Ended(why) => bail!("instead of ending, {why}"),
            }
        }
        self.qemu.wait().context("cannot wait for QEMU")?;
        for disk in &self.disks {
            OpenOptions::new().write(true).open(disk)?.set_len(DISK_MIB << 20)?;
            process::run(Command::new("e2fsck").arg("-fn").arg(disk)).context("a disk is not clean")?;
        }
        Ok(())
    }

    /// Keeps the console for people, as the file `to`.
    pub fn keep_console(&self, to: &Path) -> Result<()> {
        fs::copy(&self.console, to).map(drop).with_context(|| format!("cannot write {}", to.display()))
    }

    /// The end of QEMU is seen by `next`, so that what cannot be sent need not be told here.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.input.write_all(bytes).and_then(|()| self.input.flush());
    }

    /// The next intact line that is not to be echoed. A line that talks to itself takes processor time, so that it ends too.
    fn next(&mut self) -> Result<Next> {
        let (mut since, cpu) = (Instant::now(), cpu_time(&self.qemu)?);
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(mut line) => {
                    since = Instant::now();
                    if line.starts_with(b"@echo ") {
                        line.push(b'\n');
                        self.send(&line);
                    } else if let Some(text) = line::unpack(&line) {
                        return Ok(Next::Line(text.to_string()));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Ended(MACHINE_ENDED)),
                Err(RecvTimeoutError::Timeout) => self.wake(),
            }
            if cpu_time(&self.qemu)? - cpu > CPU_LIMIT {
                return Ok(Next::Ended("the system hangs, computing"));
            }
            if since.elapsed() > IDLE_LIMIT {
                return Ok(Next::Ended("the system hangs, idle"));
            }
        }
    }

    /// With `-icount` and `sleep=on`, QEMU 7.2 may halt and not wake for the guest's timer until something else wakes its main loop. So
    /// this does: it sends a signal that the main loop reads and that has no other effect, once there is a main loop.
    fn wake(&self) {
        let has_begun = fs::metadata(&self.console).is_ok_and(|console| console.len() > 0);
        if has_begun {
            process::wake(&self.qemu);
        }
    }

    /// vm starts again without rs: the kernel says so on the console.
    fn correct(&self, report: Report, trial: &Trial, said: usize) -> Report {
        let words = format!("kernel: {} ", trial.service);
        let begins_again = self.console().get(said..).is_some_and(|new| new.contains(&words));
        let outcome = if begins_again { report.outcome.max(Outcome::Recovered) } else { report.outcome };
        Report { outcome, ..report }
    }

    fn console(&self) -> String {
        // A console that cannot be read has nothing to tell.
        String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()).into_owned()
    }

    fn console_tail(&self) -> String {
        tail(&self.console(), CONSOLE_LINES)
    }

    /// The console's last line, where a panic stands.
    fn last_words(&self) -> String {
        let tail = self.console_tail();
        let panic = tail.lines().rfind(|line| line.contains("panic"));
        panic.or(tail.lines().last()).unwrap_or_default().trim().to_string()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        // The folder with its files goes last.
        let _ = &self.folder;
    }
}

/// The machine of every session: the root on the ramdisk, a virtio disk and an IDE disk, and a screen, so that each driver has its device.
fn machine(media: &Media, [virtio, ide]: &[PathBuf; 2]) -> Machine {
    let append = ["exec", "out"].map(str::to_string).to_vec();
    let mut machine =
        Machine::new(Boot::Kernel { kernel: media.kernel.clone(), archive: media.archive.clone(), append });
    machine.disks = vec![virtio.clone()];
    let ide = format!("if=none,id=hda,format=raw,cache=unsafe,file={}", ide.display());
    let extra = ["-drive", &ide, "-device", "piix3-ide,id=ide", "-device", "ide-hd,drive=hda,bus=ide.0"];
    machine.extra = extra.map(OsString::from).to_vec();
    machine.memory_mib = 128;
    machine.screen = Screen::Hidden;
    machine.icount = true;
    machine.icount_mode = ICOUNT_MODE;
    machine.serial = vec![Line::Stderr, Line::Stdio];
    machine
}

fn make_disk(disk: &Path) -> Result<()> {
    rootfs::make_empty(DISK_MIB, disk)?;
    Ok(OpenOptions::new().write(true).open(disk)?.set_len((DISK_MIB << 20) + RAW_BYTES)?)
}

fn pass_on(mut output: impl BufRead, to: &mpsc::Sender<Vec<u8>>) {
    let mut line = Vec::new();
    // The end of the machine ends this, and so does the end of the session.
    while let Ok(1..) = output.read_until(b'\n', &mut line) {
        if line.pop_if(|byte| *byte == b'\n').is_none() || to.send(std::mem::take(&mut line)).is_err() {
            return;
        }
    }
}
