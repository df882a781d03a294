//! QEMU's monitor: orders to a running machine, and their answers.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const PROMPT: &str = "(qemu) ";
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// QEMU's monitor.
pub struct Monitor {
    stream: UnixStream,
    limit: Duration,
}

/// The option that makes QEMU have a monitor at this socket.
pub fn option(socket: &Path) -> [OsString; 2] {
    ["-monitor".into(), format!("unix:{},server=on,wait=off", socket.display()).into()]
}

impl Monitor {
    /// Connects to the monitor of a machine that has just been started. `limit`: for each answer.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub fn connect(socket: &Path, patience: Duration, limit: Duration) -> Result<Self> {
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > patience => {
                    return Err(error).context("QEMU's monitor does not answer");
                }
                Err(_) => thread::sleep(LOOK),
            }
        };
        stream.set_read_timeout(Some(limit))?;
        let mut monitor = Self { stream, limit };
        monitor.answer()?;
        Ok(monitor)
    }

    /// Gives the order once, and returns the answer.
    ///
    /// # Errors
    /// When QEMU has ended.
    pub fn ask(&mut self, order: &str) -> Result<String> {
        writeln!(self.stream, "{order}").context("QEMU's monitor has ended")?;
        self.answer()
    }

    /// Gives the order until the answer has `wanted` in it.
    ///
    /// # Errors
    /// When that does not come.
    pub fn order(&mut self, order: &str, wanted: &str) -> Result<()> {
        let begun = Instant::now();
        while !self.ask(order)?.contains(wanted) {
            if begun.elapsed() > self.limit {
                bail!("QEMU's monitor did not come to '{wanted}' after '{order}'");
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The guest's time by its real-time clock, in seconds since some day. It is that of the instructions it has executed, on however loaded a
    /// host.
    ///
    /// # Errors
    /// When QEMU has ended.
    pub fn guest_seconds(&mut self) -> Result<i64> {
        let answer = self.ask("qom-get /machine rtc-time")?;
        let field = |name: &str| -> Result<i64> {
            let (_, rest) = answer.split_once(&format!("\"tm_{name}\": ")).context("QEMU does not tell the time")?;
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            Ok(rest[..digits].parse()?)
        };
        Ok(((field("mday")? * 24 + field("hour")?) * 60 + field("min")?) * 60 + field("sec")?)
    }

    /// Writes the picture on the screen to `file`: as PNG if it ends so, else as PPM.
    ///
    /// # Errors
    /// When the machine has no screen, or the file cannot be written.
    pub fn screenshot(&mut self, file: &Path) -> Result<()> {
        let format = if file.extension().is_some_and(|extension| extension == "png") { "png" } else { "ppm" };
        // The name is of the folder in which QEMU runs, which is ours.
        let answer = self.ask(&format!("screendump \"{}\" -f {format}", file.display()))?;
        if file.exists() { Ok(()) } else { bail!("no picture of the screen: {}", answer.trim()) }
    }

    /// What comes up to the next prompt.
    fn answer(&mut self) -> Result<String> {
        let mut text = Vec::new();
        let mut byte = [0; 1];
        // It echoes the order after a first prompt's end; the answer ends with a prompt on a line of its own.
        while !text.ends_with(PROMPT.as_bytes()) {
            self.stream.read_exact(&mut byte).context("QEMU's monitor has ended")?;
            text.extend(byte);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
