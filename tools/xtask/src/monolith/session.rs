//! A guest that runs user/monolith: booted once and kept as QEMU's snapshot, from which every trial starts anew.
//!
//! So no trial can suffer from the one before it, and one that is run again gives the same. The snapshot also makes QEMU's log of
//! translated code hold what runs during a copy, and nothing of the boot: code that ran before is translated again.

use crate::faults::line;
use crate::machine::Machine;
use crate::monitor::{self, Monitor};
use crate::process::{self, tail};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the RAM disk.
pub const DISK_BYTES: u64 = 8 << 20;
/// Memory of both machines.
pub const MEMORY_MIB: u32 = 256;
/// An instruction takes 2^3 ns of the guest's time.
const ICOUNT_SHIFT: u32 = 3;
/// While a guest with a disk waits, time is real.
pub const ICOUNT_WITH_DISK: &str = "shift=3,sleep=on";
/// While a guest that waits for nothing outside waits, its time goes on to its next timer at once.
pub const ICOUNT_ALONE: &str = "shift=3,sleep=off";

/// Hang detection: time for a boot.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// A machine counts as dead when nothing is heard of it for so many seconds of its own time: the program says nothing for 7 at most, what it
/// takes a copy for hung after and a second to end it (user/monolith/monolith.c).
const DEAD_AFTER_S: i64 = 11;
/// Hang detection: a machine whose time stands still for so long waits for ever.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Hang detection: what a guest has said arrives within this time.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Period of the checks on QEMU while the guest sends nothing.
const LOOK: Duration = Duration::from_millis(200);
/// SIGIO in Linux's masks of signals.
const SIGIO_BIT: u64 = 1 << 28;

/// Instructions in so many ns of the guest's time.
pub fn ticks(ns: u64) -> u64 {
    ns >> ICOUNT_SHIFT
}

/// A system that has made its first copy, ready for trials.
pub struct Snapshot {
    machine: Machine,
    state: PathBuf,
    folder: PathBuf,
    /// From power-on to the end of the first copy.
    pub boot_ns: u64,
    /// Where the driver's text begins, if the guest knows that.
    pub text_address: u64,
}

impl Snapshot {
    /// Boots `machine`, waits for its first copy and keeps its state in `folder`.
    ///
    /// # Errors
    /// When the undisturbed system does not come so far.
    pub fn make(machine: Machine, folder: &Path) -> Result<Self> {
        let mut guest = Guest::start(machine.command(), folder)?;
        guest.dead_after_s = BOOT_LIMIT.as_secs() as i64;
        let Some(ready) = guest.next_after_tries()? else {
            bail!("the undisturbed system did not make a copy:\n{}", guest.last_words());
        };
        let words: Vec<&str> = ready.split(' ').collect();
        let ["ready", boot_ns, address] = words[..] else { bail!("the guest sent '{ready}' instead of 'ready'") };
        let boot_ns: u64 = boot_ns.parse()?;
        let text_address = u64::from_str_radix(address, 16)?;
        let state = folder.join("state");
        guest.monitor()?.order(&format!("migrate \"exec:cat >'{}'\"", state.display()), "")?;
        guest.monitor()?.order("info status", "postmigrate")?;
        Ok(Self { machine, state, folder: folder.to_path_buf(), boot_ns, text_address })
    }

    /// A copy of the machine that goes on from there; `options` are QEMU's.
    ///
    /// # Errors
    /// When QEMU does not start.
    pub fn resume(&self, options: &[&str]) -> Result<Guest> {
        let mut qemu = self.machine.command();
        // What is written to disks is dropped at the end.
        qemu.args(["-snapshot", "-incoming", &format!("exec:cat '{}'", self.state.display())]).args(options);
        let guest = Guest::start(qemu, &self.folder)?;
        // What is sent earlier does not arrive.
        guest.monitor()?.order("info status", "running")?;
        Ok(guest)
    }
}

/// A running machine.
pub struct Guest {
    qemu: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    console: PathBuf,
    monitor: PathBuf,
    dead_after_s: i64,
}

impl Guest {
    fn start(mut qemu: Command, folder: &Path) -> Result<Self> {
        let (console, monitor) = (folder.join("console"), folder.join("monitor"));
        // That of the guest before, if there was one.
        let _ = fs::remove_file(&monitor);
        qemu.args(monitor::option(&monitor));
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&console)?);
        let mut qemu = qemu.spawn().context("cannot start QEMU")?;
        let (Some(input), Some(output)) = (qemu.stdin.take(), qemu.stdout.take()) else {
            bail!("QEMU has no input and output");
        };
        let (to, lines) = mpsc::channel();
        thread::spawn(move || pass_on(BufReader::new(output), &to));
        Ok(Self { qemu, input, lines, console, monitor, dead_after_s: DEAD_AFTER_S })
    }

    /// Sends a line to the program. The end of QEMU is seen by `next`, so that what cannot be sent need not be told here.
    pub fn send(&mut self, text: &str) {
        let _ = self.input.write_all(line::pack(text).as_bytes()).and_then(|()| self.input.flush());
    }

    /// The next line of the program. None: the machine is dead.
    ///
    /// # Errors
    /// When QEMU cannot be watched.
    pub fn next(&mut self) -> Result<Option<String>> {
        let (mut idle_since, mut begun, mut last) = (Instant::now(), None, None);
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(text) => return Ok(Some(text)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.wake(),
            }
            // A monitor that has ended is that of a machine that has ended, which `lines` tells.
            let now = self.monitor().and_then(|mut monitor| monitor.guest_seconds()).ok();
            if now > last {
                (idle_since, last) = (Instant::now(), now);
            }
            begun = begun.or(now);
            let silence_s = now.zip(begun).map_or(0, |(now, begun)| now - begun);
            if silence_s >= self.dead_after_s || idle_since.elapsed() > IDLE_LIMIT {
                // The time of a guest that waits for us may fly: what it has said before counts.
                return Ok(self.lines.recv_timeout(LAST_WORDS).ok());
            }
        }
    }

    /// As `next`, past the lines that only tell that the machine lives.
    ///
    /// # Errors
    /// As `next`.
    pub fn next_after_tries(&mut self) -> Result<Option<String>> {
        loop {
            match self.next()? {
                Some(line) if line == "tried" => {}
                other => return Ok(other),
            }
        }
    }

    /// The console's end.
    pub fn last_words(&self) -> String {
        // A console that cannot be read has nothing to tell.
        tail(&String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()), 12)
    }

    /// Keeps the console for people, as the file `to`.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub fn keep_console(&self, to: &Path) -> Result<()> {
        fs::copy(&self.console, to).map(drop).with_context(|| format!("cannot write {}", to.display()))
    }

    /// QEMU 7.2 with `sleep=on` may not wake for the guest's timer until its main loop gets a signal (faults::session). Before it has a
    /// main loop, the signal would end it.
    fn wake(&self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.qemu.id())).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if blocked & SIGIO_BIT != 0 {
            process::wake(&self.qemu);
        }
    }

    fn monitor(&self) -> Result<Monitor> {
        Monitor::connect(&self.monitor, IDLE_LIMIT, BOOT_LIMIT)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Hands on intact lines.
fn pass_on(mut output: impl BufRead, to: &mpsc::Sender<String>) {
    let mut line = Vec::new();
    // The end of the machine ends this, and so does the end of the session.
    while let Ok(1..) = output.read_until(b'\n', &mut line) {
        let text = line::unpack(line.trim_ascii_end()).map(str::to_string);
        line.clear();
        if let Some(text) = text
            && to.send(text).is_err()
        {
            return;
        }
    }
}
