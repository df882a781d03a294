//! Runs one command in the guest's shell, without a terminal, and brings back what came of it.
//!
//! The kernel's command line says `exec`; /etc/rc then runs /etc/skink-exec, with COM3 as its
//! standard output and the console as its standard error, tells its status and powers off
//! (systems/root/etc/rc and `stream` are the two sides of that). COM3 is QEMU's standard output,
//! the console its standard error. COM2 is there when somebody is at its other end.

use crate::bundle::{Bundle, PRINTER, Root};
use crate::c_programs::CProgram;
use crate::debian::Set;
use crate::keys::{Ear, Script, Stream, Typist};
use crate::machine::{Boot, Line, Machine, Screen};
use crate::monitor::Monitor;
use crate::process::{self, tail};
use crate::rootfs::{self, Contents};
use crate::second_line::{Running, SecondLine};
use crate::stream::{Console, Output};
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Size of the disk that takes the guest's /out when the root is on the ramdisk.
const OUT_DISK_MIB: u64 = 256;
/// Image of the disk that a job wants besides.
const SECOND_DISK: &str = "second.img";

/// File name of what the guest sends on its second serial line, where that is kept.
const SECOND_LINE_FILE: &str = "com2.sent";

/// File name of the socket of QEMU's monitor.
const MONITOR: &str = "orders";
/// Hang detection: the monitor answers within this time.
const MONITOR_LIMIT: Duration = Duration::from_secs(120);

/// Lines of the console that are shown of a failure.
const SHOWN_LINES: usize = 20;

/// A command, and the machine that runs it.
pub struct Job<'a> {
    /// The command for the guest's shell.
    pub command: &'a str,
    /// Folders laid over the root file system.
    pub overlays: &'a [PathBuf],
    /// Debian packages for the root file system.
    pub packages: Option<&'a Set>,
    /// Whether the root file system has a journal.
    pub has_journal: bool,
    /// C programs for the guest's /bin.
    pub c_programs: &'a [CProgram],
    /// Whether the guest gets a disk for /out where its root is not a disk.
    pub wants_out: bool,
    /// Count instructions.
    pub icount: bool,
    /// With a tablet.
    pub tablet: bool,
    /// Further devices, as QEMU's option `-device` has them.
    pub devices: &'a [String],
    /// Events of QEMU's devices that are written to a file, by their names in QEMU.
    pub traced: &'a [String],
    /// Record the trace.
    pub trace: bool,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of processors.
    pub processors: u32,
    /// Bytes that the disks read in a second, if there is a limit.
    pub disk_rate: Option<u32>,
    /// Size in MiB of an empty disk after the root's, if there is one: on IDE the first of the second channel.
    pub second_disk_mib: Option<u64>,
    /// An image for the last disk, and the file in which what reaches it is recorded.
    pub recorded_disk: Option<(PathBuf, PathBuf)>,
    /// The screen.
    pub screen: Screen,
    /// Where a picture of the screen goes when the command has ended. It needs a screen, hidden if nothing else is said.
    pub screenshot: Option<PathBuf>,
    /// Free space of the root file system in MiB, beyond the usual.
    pub free_mib: u64,
    /// Files that can be made there, beyond the usual.
    pub free_inodes: u64,
    /// The other end of the second serial line.
    pub second_line: Option<SecondLine>,
    /// What is typed while the command runs.
    pub keys: Option<Script>,
    /// Nobody is there, but a file that keeps what is sent: [`Guest::second_line_file`].
    pub keeps_second_line: bool,
    /// End the machine when it takes longer.
    pub limit: Option<Duration>,
}

impl<'a> Job<'a> {
    /// `command` on the usual machine.
    pub fn new(command: &'a str) -> Self {
        Self {
            command,
            overlays: &[],
            packages: None,
            has_journal: false,
            c_programs: &[],
            wants_out: false,
            icount: false,
            tablet: false,
            devices: &[],
            traced: &[],
            trace: false,
            memory_mib: 512,
            processors: 1,
            disk_rate: None,
            second_disk_mib: None,
            recorded_disk: None,
            screen: Screen::None,
            screenshot: None,
            free_mib: 0,
            free_inodes: 0,
            second_line: None,
            keys: None,
            keeps_second_line: false,
            limit: None,
        }
    }

    /// What goes into the root file system of its guest.
    pub fn contents(&self, workspace: &Workspace, bundle: &Bundle) -> Contents<'a> {
        let mut contents = Contents {
            command: Some(self.command),
            overlays: self.overlays,
            packages: self.packages,
            has_journal: self.has_journal,
            free_mib: self.free_mib,
            free_inodes: self.free_inodes,
            ..bundle.contents(workspace)
        };
        contents.programs.extend(self.c_programs.iter().map(|program| (program.name.clone(), program.path.clone())));
        contents
    }
}

/// A machine that is ready to run a job, with its files.
pub struct Guest {
    machine: Machine,
    second_line: Option<(SecondLine, PathBuf)>,
    /// What is typed, and where QEMU's monitor is.
    keys: Option<(Script, PathBuf)>,
    limit: Option<Duration>,
    screenshot: Option<PathBuf>,
    /// Where the events of devices are.
    traced: Option<PathBuf>,
    /// The folder of its files; they are gone when this is dropped.
    pub folder: RunFolder,
}

/// Outcome of a job, besides its output.
pub struct Outcome {
    /// The command's exit status; None when the machine stopped before the command ended.
    pub status: Option<u8>,
    /// Whether the machine was ended because it took too long.
    pub timed_out: bool,
    /// Everything the console said.
    pub console: String,
}

impl Guest {
    /// Makes the disks and the boot archive for `job`.
    ///
    /// # Errors
    /// When an image cannot be made.
    pub fn prepare(workspace: &Workspace, bundle: &Bundle, job: &Job) -> Result<Self> {
        let folder = workspace.run_folder()?;
        let contents = job.contents(workspace, bundle);
        let media = bundle.make_media(&contents, &folder)?;
        let mut append = vec!["exec".to_string()];
        if job.trace {
            append.push("trace".to_string());
        }
        let mut disks = media.disks;
        if let Some(size_mib) = job.second_disk_mib {
            let disk = folder.join(SECOND_DISK);
            rootfs::make_empty(size_mib, &disk)?;
            disks.push(disk);
        }
        if job.wants_out && bundle.root() == Root::Ramdisk {
            let disk = folder.join("out.img");
            rootfs::make_empty(OUT_DISK_MIB, &disk)?;
            disks.push(disk);
            // Tells /etc/rc to mount it.
            append.push("out".to_string());
        }
        let mut machine = Machine::new(Boot::Kernel { kernel: media.kernel, archive: media.archive, append });
        machine.disks = disks;
        machine.recorded_disk = job.recorded_disk.clone();
        machine.disk_bus = media.disk_bus;
        machine.iommu = media.iommu;
        machine.roms = media.roms;
        machine.adapter = bundle.adapter();
        let second_line = job.second_line.clone().map(|line| (line, folder.join("com2")));
        let com2 = match &second_line {
            Some((_, socket)) => Line::Socket(socket.clone()),
            None if job.keeps_second_line => Line::File(folder.join(SECOND_LINE_FILE)),
            None => Line::None,
        };
        machine.serial = vec![Line::Stderr, com2, Line::Stdio];
        machine.printer = bundle.has_printer().then(|| folder.join(PRINTER));
        machine.trace = job.trace.then(|| folder.join("trace.raw"));
        machine.icount = job.icount;
        machine.memory_mib = job.memory_mib;
        machine.disk_rate = job.disk_rate;
        machine.processors = job.processors;
        Ok(Self { second_line, ..Self::of_machine(machine, folder, job) })
    }

    /// A machine whose command and disks somebody else has made, from files in `folder`, with the job's screen and what is typed. It speaks
    /// as /etc/rc does.
    pub fn of_machine(mut machine: Machine, folder: RunFolder, job: &Job) -> Self {
        machine.screen = job.screen;
        machine.extra.extend(job.devices.iter().flat_map(|device| ["-device".into(), device.into()]));
        if job.screenshot.is_some() {
            machine.monitor = Some(folder.join(MONITOR));
            // Tells /etc/rc to wait for a line before it ends the machine.
            machine.boot.append("hold");
            if machine.screen == Screen::None {
                machine.screen = Screen::Hidden;
            }
        }
        if job.tablet {
            machine.extra.extend(["-device".into(), "virtio-tablet-pci,disable-legacy=on".into()]);
        }
        let traced = (!job.traced.is_empty()).then(|| folder.join("events"));
        if let Some(file) = &traced {
            machine.extra.extend(job.traced.iter().flat_map(|event| ["-trace".into(), event.into()]));
            machine.extra.extend(["-D".into(), file.into()]);
        }
        let keys = job.keys.clone().map(|script| (script, folder.join("monitor")));
        if let Some((_, socket)) = &keys {
            let server = format!("unix:{},server=on,wait=off", socket.display());
            machine.extra.extend(["-qmp".into(), server.into()]);
        }
        let screenshot = job.screenshot.clone();
        Self { machine, second_line: None, keys, limit: job.limit, screenshot, traced, folder }
    }

    /// Adds arguments of QEMU.
    pub fn add_arguments<const COUNT: usize>(&mut self, arguments: [OsString; COUNT]) {
        self.machine.extra.extend(arguments);
    }

    /// Runs a command that has to succeed. → what it has printed.
    ///
    /// # Errors
    /// As of `run`, and when it does not succeed.
    pub fn collect(&self) -> Result<String> {
        let mut printed = Vec::new();
        let outcome = self.run(|bytes| printed.extend_from_slice(bytes), |_| ())?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        if outcome.status != Some(0) {
            bail!("the command failed:\n{printed}\n{}", tail(&outcome.console, SHOWN_LINES));
        }
        Ok(printed)
    }

    /// Boots the machine and waits for its end, handing on what the command prints as it comes.
    ///
    /// # Errors
    /// When QEMU cannot be started, or the command on the second serial line fails.
    pub fn run(&self, on_output: impl FnMut(&[u8]) + Send, on_errors: impl FnMut(&[u8]) + Send) -> Result<Outcome> {
        let second_line = self.second_line.as_ref().map(|(line, socket)| line.listen(socket)).transpose()?;
        let typist = self.keys.as_ref().map(|(script, socket)| script.start(socket));
        let outcome = self.run_machine(on_output, on_errors, typist.as_ref());
        let typed = typist.map_or(Ok(()), Typist::finish);
        second_line.map_or(Ok(()), Running::finish).and(typed).and(outcome)
    }

    fn run_machine(
        &self,
        on_output: impl FnMut(&[u8]) + Send,
        on_errors: impl FnMut(&[u8]) + Send,
        typist: Option<&Typist>,
    ) -> Result<Outcome> {
        let mut qemu = self.machine.command();
        let input = if self.screenshot.is_some() { Stdio::piped() } else { Stdio::null() };
        qemu.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut qemu = qemu.spawn().context("cannot start QEMU")?;
        let input = qemu.stdin.take();
        let (Some(stdout), Some(stderr)) = (qemu.stdout.take(), qemu.stderr.take()) else {
            bail!("QEMU has no output");
        };
        let stdout = Heard { from: stdout, ear: typist.map(|typist| typist.ear(Stream::Command)) };
        let stderr = Heard { from: stderr, ear: typist.map(|typist| typist.ear(Stream::Console)) };
        thread::scope(|scope| {
            let (ended, wait) = mpsc::channel();
            let also_ended = ended.clone();
            let output = scope.spawn(move || {
                let status = pass_output(stdout, on_output, || self.take_screenshot(input));
                // The receiver is gone only when the whole run is over.
                let _ = ended.send(());
                status
            });
            let console = scope.spawn(move || {
                let console = pass_console(stderr, on_errors);
                let _ = also_ended.send(());
                console
            });
            let timed_out = wait_for_end(&mut qemu, &wait, self.limit)?;
            let status = output.join().map_err(|_| anyhow::anyhow!("reading the output failed"))??;
            let console = console.join().map_err(|_| anyhow::anyhow!("reading the console failed"))??;
            Ok(Outcome { status, timed_out, console: console.log() })
        })
    }

    /// Takes the picture of a guest that holds, and lets it go on.
    fn take_screenshot(&self, input: Option<ChildStdin>) -> Result<()> {
        let (Some(file), Some(socket), Some(mut input)) = (&self.screenshot, &self.machine.monitor, input) else {
            return Ok(());
        };
        let monitor = Monitor::connect(socket, MONITOR_LIMIT, MONITOR_LIMIT);
        let result = monitor.and_then(|mut monitor| monitor.screenshot(file));
        input.write_all(b"\n").context("the guest does not go on")?;
        result
    }

    /// The disk image with the guest's /out, and /out's path on it.
    pub fn out_folder(&self) -> Option<(&Path, &'static str)> {
        let disk = self.machine.disks.iter().rfind(|disk| !disk.ends_with(SECOND_DISK))?;
        let is_root = disk.file_name().is_some_and(|name| name == crate::bundle::ROOT_DISK);
        Some((disk, if is_root { "/out" } else { "/" }))
    }

    /// The disk images of the machine.
    pub fn disks(&self) -> &[PathBuf] {
        &self.machine.disks
    }

    /// The raw trace, if it was asked for.
    pub fn trace(&self) -> Option<&Path> {
        self.machine.trace.as_deref()
    }

    /// What the guest has sent on its second serial line, if the job wanted it kept.
    pub fn second_line_file(&self) -> PathBuf {
        self.folder.join(SECOND_LINE_FILE)
    }

    /// Bytes printed on the parallel port, if the machine has one.
    pub fn printed(&self) -> Option<&Path> {
        self.machine.printer.as_deref()
    }

    /// The events of devices, if the job wanted any.
    pub fn traced(&self) -> Option<&Path> {
        self.traced.as_deref()
    }

    /// The picture of the screen, if the job wanted it.
    pub fn screenshot(&self) -> Option<&Path> {
        self.screenshot.as_deref()
    }

    /// Copies the files of the guest's /out to the folder `to`, with modes, owners and times.
    ///
    /// # Errors
    /// When the disk cannot be read or `to` not written.
    pub fn bring_out(&self, to: &Path) -> Result<()> {
        let Some((disk, from)) = self.out_folder() else {
            bail!("the machine had no disk for /out");
        };
        let taken = self.folder.join("taken");
        fs::create_dir_all(&taken)?;
        dump(disk, from, &taken)?;
        // debugfs leaves `/out` as a folder in the target, but the root folder as its entries.
        let entries = if from == "/" { taken.clone() } else { taken.join("out") };
        let _ = fs::remove_dir(entries.join("lost+found"));
        fs::create_dir_all(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
        process::run(Command::new("cp").args(["-a", "-T"]).arg(&entries).arg(to))?;
        fs::remove_dir_all(&taken).context("cannot remove the files taken from the disk")
    }
}

/// A line of the machine that somebody who types listens to.
struct Heard<R> {
    from: R,
    ear: Option<Ear>,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Some(ear) = &self.ear {
            ear.hear(&buffer[..count]);
        }
        Ok(count)
    }
}

/// Passes the command's output on. `at_end`: when the command has ended, once.
fn pass_output(
    mut from: impl Read,
    mut to: impl FnMut(&[u8]),
    at_end: impl FnOnce() -> Result<()>,
) -> Result<Option<u8>> {
    let mut output = Output::default();
    let (mut at_end, mut result) = (Some(at_end), Ok(()));
    each_chunk(&mut from, |chunk| {
        to(&output.take(chunk));
        if output.has_ended()
            && let Some(at_end) = at_end.take()
        {
            result = at_end();
        }
    })?;
    let (rest, status) = output.finish();
    to(&rest);
    result.map(|()| status)
}

fn pass_console(mut from: impl Read, mut to: impl FnMut(&[u8])) -> Result<Console> {
    let mut console = Console::default();
    each_chunk(&mut from, |chunk| to(&console.take(chunk)))?;
    Ok(console)
}

fn each_chunk(from: &mut impl Read, mut to: impl FnMut(&[u8])) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to(&buffer[..length]),
        }
    }
}

/// Waits until both lines are closed, which is when QEMU ends, or ends it when `limit` is over.
fn wait_for_end(qemu: &mut Child, ended: &mpsc::Receiver<()>, limit: Option<Duration>) -> Result<bool> {
    let mut timed_out = false;
    for _ in 0..2 {
        let end = match limit {
            Some(limit) if !timed_out => ended.recv_timeout(limit),
            _ => ended.recv().map_err(mpsc::RecvTimeoutError::from),
        };
        if end == Err(mpsc::RecvTimeoutError::Timeout) {
            timed_out = true;
            qemu.kill().context("cannot end QEMU")?;
        }
    }
    qemu.wait().context("cannot wait for QEMU")?;
    Ok(timed_out)
}

/// Copies the folder `from` of the ext2 image `disk` into the folder `to`.
///
/// # Errors
/// When the image cannot be read or the folder not written.
pub fn dump(disk: &Path, from: &str, to: &Path) -> Result<()> {
    let request = format!("rdump {from} \"{}\"", to.display());
    let mut debugfs = Command::new("debugfs");
    process::debugfs(debugfs.arg("-R").arg(request).arg(disk))
        .with_context(|| format!("cannot take {from} off the disk"))
}
