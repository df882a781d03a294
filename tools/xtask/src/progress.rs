//! Tells on standard error what a command is busy with: one step at a time, with its number and the
//! seconds it has taken.
//!
//! On a terminal the step is one line that is redrawn each second and erased at the end. Elsewhere
//! only a step that takes long gets lines, few of them, so that logs stay tidy. `./skink` counts the
//! steps it has done itself and those that follow in `SKINK_STEPS`, as `DONE/ALL`.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a terminal's line is redrawn.
const TICK: Duration = Duration::from_secs(1);
/// Without a terminal: time until the first report of a step, and between further ones.
const MENTION_S: u64 = 4;
const MENTION_AGAIN_S: u64 = 20;
/// Columns of a progress line.
const LINE_WIDTH: usize = 100;

/// The number of the last step that began here.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// A step that is in progress; it ends when this is dropped.
pub struct Step {
    detail: Arc<Mutex<String>>,
    stop: Option<mpsc::Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

impl Step {
    /// Begins the step that `title` describes in a few words.
    pub fn begin(title: &str) -> Self {
        let number = BEGUN.fetch_add(1, Ordering::Relaxed) + 1;
        let heading = format!("skink: {}{title}", position(env::var("SKINK_STEPS").ok().as_deref(), number));
        let detail = Arc::new(Mutex::new(String::new()));
        let (stop, stopped) = mpsc::channel();
        let shared = detail.clone();
        let ticker = thread::spawn(move || show(&heading, &shared, &stopped));
        Self { detail, stop: Some(stop), ticker: Some(ticker) }
    }

    /// Says how far the step is.
    pub fn detail(&self, text: &str) {
        text.clone_into(&mut self.detail.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(ticker) = self.ticker.take() {
            // A ticker that has panicked has nothing more to say.
            let _ = ticker.join();
        }
    }
}

/// `[3/4] `, or nothing when the number of steps is not known.
fn position(steps: Option<&str>, number: u32) -> String {
    let parsed = steps.and_then(|steps| {
        let (done, all) = steps.split_once('/')?;
        Some((done.parse::<u32>().ok()? + number, all.parse::<u32>().ok()?))
    });
    match parsed {
        Some((number, all)) if number <= all => format!("[{number}/{all}] "),
        _ => String::new(),
    }
}

fn show(heading: &str, detail: &Mutex<String>, stopped: &mpsc::Receiver<()>) {
    let (start, is_terminal) = (Instant::now(), io::stderr().is_terminal());
    // What cannot be written to standard error is not missed.
    let write = |text: String| drop(io::stderr().lock().write_all(text.as_bytes()));
    let mut next_mention_s = MENTION_S;
    let mut drawn = false;
    while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let seconds = start.elapsed().as_secs();
        let detail = detail.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if is_terminal {
            write(format!("\r\x1b[K{}", line(heading, &detail, seconds, LINE_WIDTH)));
            drawn = true;
        } else if seconds >= next_mention_s {
            write(format!("{}\n", line(heading, &detail, seconds, usize::MAX)));
            next_mention_s = seconds + MENTION_AGAIN_S;
        }
    }
    if drawn {
        write("\r\x1b[K".to_string());
    }
}

fn line(heading: &str, detail: &str, seconds: u64, width: usize) -> String {
    let separator = if detail.is_empty() { "" } else { ": " };
    let text = format!("{heading}{separator}{detail}");
    let shown: String = text.chars().take(width).collect();
    format!("{shown} ({seconds} s)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_after_those_of_the_script() {
        assert_eq!(position(Some("2/5"), 1), "[3/5] ");
        assert_eq!(position(Some("2/5"), 4), "");
        assert_eq!(position(None, 1), "");
        assert_eq!(position(Some("words"), 1), "");
    }

    #[test]
    fn a_line_says_what_how_far_and_how_long() {
        assert_eq!(line("skink: [1/2] kernel", "3 of 9 crates", 12, 80), "skink: [1/2] kernel: 3 of 9 crates (12 s)");
        assert_eq!(line("skink: kernel", "", 5, 9), "skink: ke (5 s)");
    }
}
