//! `--keys FILE`: types, moves and touches at the machine's keyboard and pointer while the command runs, by QEMU's monitor (QMP).
//!
//! Each line of the file is a step, done in order. Empty lines and those that begin with `#` count as nothing.
//!
//! | line | does |
//! |---|---|
//! | `wait TEXT` | waits until the command or the console prints TEXT, after what earlier `wait`s saw of the same one |
//! | `type TEXT` | types TEXT on a US keyboard; `\n` is Enter, `\e` Escape, `\t` Tab, `\\` a backslash |
//! | `keys ctrl-alt-f2 x` | presses the keys of each word together (QEMU's names) |
//! | `down KEY`, `up KEY` | presses or releases one key |
//! | `move X Y` | moves a mouse |
//! | `at X Y` | moves a tablet or a finger to a place from 0 to 32767 |
//! | `press BUTTON`, `release BUTTON` | `left`, `middle`, `right`, `side`, `extra`, `wheel-up`, `wheel-down` |
//! | `pause MS` | waits so long |
//! | `flood COUNT STEP` | does a step that types, moves or presses so many times, as fast as the machine takes it |
//! | `again` | goes on with the first line, until the machine ends |

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long QEMU takes to make its socket.
const SOCKET_LIMIT: Duration = Duration::from_secs(60);
const SOCKET_POLL: Duration = Duration::from_millis(20);
/// What of the output is looked at again: longer than any text that is waited for.
const SEEN_BYTES: usize = 64 << 10;
/// Between two events of a key: a keyboard's, and longer than the guest's debouncing is short.
const STROKE: Duration = Duration::from_millis(10);
/// How long a guest may take to fetch what was typed before: QEMU's keyboard and mouse keep a few events only, and drop the others.
const FETCH_LIMIT: Duration = Duration::from_secs(5);
const FETCH_POLL: Duration = Duration::from_millis(5);
/// Bit of the keyboard controller's status: something is to be fetched.
const OUTPUT_FULL: u32 = 1;

/// One step.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Wait(String),
    Pause(Duration),
    Again,
    /// Events of one moment.
    Events(Vec<Value>),
    /// Events of one moment after the other, again and again.
    Flood(i64, Vec<Vec<Value>>),
}

/// The steps, each with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Script(Vec<(usize, Step)>);

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no step.
    pub fn read(path: &Path) -> Result<Script> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Script::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Script> {
        let mut steps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let of_line = steps_of(line).with_context(|| format!("line {}: '{line}'", index + 1))?;
            steps.extend(of_line.into_iter().map(|step| (index + 1, step)));
        }
        Ok(Script(steps))
    }

    /// Starts to type into the machine whose monitor is at `socket`.
    pub fn start(&self, socket: &Path) -> Typist {
        let seen = Arc::new(Seen::default());
        let (script, socket, heard) = (self.clone(), socket.to_path_buf(), seen.clone());
        Typist { seen, thread: thread::spawn(move || script.play(&socket, &heard)) }
    }

    fn play(&self, socket: &Path, seen: &Seen) -> Result<()> {
        let mut monitor = Monitor::connect(socket, seen)?;
        let (mut steps, mut goes_round) = (self.0.iter(), false);
        while let Some((line, step)) = steps.next() {
            match step {
                Step::Again => (steps, goes_round) = (self.0.iter(), true),
                Step::Wait(text) if !seen.wait_for(text.as_bytes()) => {
                    if goes_round {
                        return Ok(());
                    }
                    bail!("line {line}: the machine ended before '{text}' was printed");
                }
                Step::Wait(_) => {}
                Step::Pause(duration) => thread::sleep(*duration),
                Step::Events(events) => {
                    monitor.wait_until_fetched().with_context(|| format!("line {line}"))?;
                    monitor.send(events).with_context(|| format!("line {line}"))?;
                    thread::sleep(STROKE);
                }
                Step::Flood(count, moments) => {
                    let mut all = (0..*count).flat_map(|_| moments);
                    all.try_for_each(|events| monitor.send(events)).with_context(|| format!("line {line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// One of the streams that the machine prints on. They are read by threads of their own, so that what arrives on one may fall in the midst
/// of a text on the other.
#[derive(Clone, Copy)]
pub enum Stream {
    Command,
    Console,
}

/// What the machine has printed and nobody has waited for.
#[derive(Default)]
struct Seen {
    printed: Mutex<Printed>,
    changed: Condvar,
}

#[derive(Default)]
struct Printed {
    command: VecDeque<u8>,
    console: VecDeque<u8>,
    has_ended: bool,
}

impl Printed {
    /// Drops a text and what came before it on the same stream. Returns false if the text is on none.
    fn take(&mut self, text: &[u8]) -> bool {
        [&mut self.command, &mut self.console].into_iter().any(|stream| {
            let bytes = stream.make_contiguous();
            let end = (0..bytes.len()).find_map(|at| end_of(&bytes[at..], text).map(|length| at + length));
            if let Some(end) = end {
                stream.drain(..end);
            }
            end.is_some()
        })
    }
}

/// How far a text reaches that `bytes` begin with. A report of a death may fall in its midst: the driver that died was printing the text.
fn end_of(bytes: &[u8], text: &[u8]) -> Option<usize> {
    const REPORT: &[u8] = b"rs: ";
    let mut at = 0;
    for (index, letter) in text.iter().enumerate() {
        // A report begins with a letter that the text may go on with.
        while at > 0 && bytes[at..].starts_with(REPORT) && !text[index..].starts_with(REPORT) {
            at += 1 + bytes[at..].iter().position(|byte| *byte == b'\n')?;
        }
        if bytes.get(at) != Some(letter) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

impl Seen {
    fn add(&self, stream: Stream, bytes: &[u8]) {
        let mut printed = self.lock();
        let stream = match stream {
            Stream::Command => &mut printed.command,
            Stream::Console => &mut printed.console,
        };
        stream.extend(bytes);
        let excess = stream.len().saturating_sub(SEEN_BYTES);
        stream.drain(..excess);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Waits for a text, and drops it with what came before. Returns false if the machine ends first.
    fn wait_for(&self, text: &[u8]) -> bool {
        let mut printed = self.lock();
        loop {
            if printed.take(text) {
                return true;
            }
            if printed.has_ended {
                return false;
            }
            printed = self.changed.wait(printed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Printed> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A script that is being played.
pub struct Typist {
    seen: Arc<Seen>,
    thread: JoinHandle<Result<()>>,
}

/// The side of a [`Typist`] that hears what the machine prints on one of its streams.
pub struct Ear(Arc<Seen>, Stream);

impl Ear {
    /// Takes what was printed.
    pub fn hear(&self, bytes: &[u8]) {
        self.0.add(self.1, bytes);
    }
}

impl Typist {
    /// For whoever reads a stream of the machine.
    pub fn ear(&self, stream: Stream) -> Ear {
        Ear(self.seen.clone(), stream)
    }

    /// Ends, because the machine has ended.
    ///
    /// # Errors
    /// When not everything was typed.
    pub fn finish(self) -> Result<()> {
        self.seen.end();
        self.thread.join().map_err(|_| anyhow::anyhow!("typing failed"))?.context("--keys")
    }
}

/// QEMU's monitor for programs.
struct Monitor {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Monitor {
    fn connect(socket: &Path, seen: &Seen) -> Result<Monitor> {
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > SOCKET_LIMIT || seen.has_ended() => {
                    return Err(error).context("QEMU's monitor does not answer");
                }
                Err(_) => thread::sleep(SOCKET_POLL),
            }
        };
        let mut monitor = Monitor { lines: BufReader::new(stream.try_clone()?), stream };
        monitor.execute(&json!({"execute": "qmp_capabilities"}))?;
        Ok(monitor)
    }

    fn send(&mut self, events: &[Value]) -> Result<()> {
        self.execute(&json!({"execute": "input-send-event", "arguments": {"events": events}})).map(drop)
    }

    /// Waits until the guest has fetched all bytes of keyboard and mouse. One that does not is given the next event anyway.
    fn wait_until_fetched(&mut self) -> Result<()> {
        let begun = Instant::now();
        let status = json!({"execute": "human-monitor-command", "arguments": {"command-line": "i /b 0x64"}});
        while begun.elapsed() < FETCH_LIMIT && port_value(&self.execute(&status)?)? & OUTPUT_FULL != 0 {
            thread::sleep(FETCH_POLL);
        }
        Ok(())
    }

    /// Returns what the command returns.
    fn execute(&mut self, command: &Value) -> Result<Value> {
        writeln!(self.stream, "{command}").context("QEMU's monitor has ended")?;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 {
                bail!("QEMU's monitor has ended");
            }
            let reply: Value = serde_json::from_str(&line)?;
            if let Some(error) = reply.get("error") {
                bail!("QEMU refuses {command}: {error}");
            }
            if let Some(value) = reply.get("return") {
                return Ok(value.clone());
            }
        }
    }
}

/// Reads what the monitor says of a port: `portb[0x0064] = 0x1c`.
fn port_value(said: &Value) -> Result<u32> {
    let digits = said.as_str().and_then(|text| text.trim().rsplit_once("0x")).map(|(_, digits)| digits);
    let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    value.with_context(|| format!("QEMU's monitor says '{said}' of a port"))
}

fn steps_of(line: &str) -> Result<Vec<Step>> {
    let (word, rest) = line.trim_start().split_once(' ').unwrap_or((line.trim(), ""));
    let number = |text: &str| text.trim().parse::<i64>().with_context(|| format!("'{text}' is no number"));
    let both = || rest.trim().split_once(' ').context("two numbers are expected");
    let axes = |kind: &str| -> Result<Vec<Step>> {
        let (x, y) = both()?;
        let axis = |axis: &str, value: i64| json!({"type": kind, "data": {"axis": axis, "value": value}});
        Ok(vec![Step::Events(vec![axis("x", number(x)?), axis("y", number(y)?)])])
    };
    let button = |down: bool| {
        let event = json!({"type": "btn", "data": {"button": rest.trim(), "down": down}});
        vec![Step::Events(vec![event])]
    };
    Ok(match word {
        "wait" if !rest.is_empty() => vec![Step::Wait(rest.to_string())],
        "again" => vec![Step::Again],
        "pause" => vec![Step::Pause(Duration::from_millis(number(rest)?.unsigned_abs()))],
        "type" => typed(rest)?,
        "keys" => rest.split_whitespace().flat_map(|word| stroke(&word.split('-').collect::<Vec<_>>())).collect(),
        "down" => vec![Step::Events(vec![key(rest.trim(), true)])],
        "up" => vec![Step::Events(vec![key(rest.trim(), false)])],
        "move" => axes("rel")?,
        "at" => axes("abs")?,
        "press" => button(true),
        "release" => button(false),
        "flood" => {
            let (count, step) = both()?;
            let moments = steps_of(step)?.into_iter().map(|step| match step {
                Step::Events(events) => Ok(events),
                other => bail!("{other:?} is no event"),
            });
            vec![Step::Flood(number(count)?, moments.collect::<Result<_>>()?)]
        }
        _ => bail!("expected wait, type, keys, down, up, move, at, press, release, pause, flood or again"),
    })
}

fn key(name: &str, down: bool) -> Value {
    json!({"type": "key", "data": {"down": down, "key": {"type": "qcode", "data": name}}})
}

/// Presses keys one after the other, and releases them in the opposite order.
fn stroke(names: &[&str]) -> Vec<Step> {
    let down = names.iter().map(|name| key(name, true));
    let up = names.iter().rev().map(|name| key(name, false));
    down.chain(up).map(|event| Step::Events(vec![event])).collect()
}

fn typed(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('e') => '\u{1b}',
                Some('\\') => '\\',
                other => bail!("expected \\n, \\t, \\e or \\\\, not {other:?}"),
            },
            letter => letter,
        };
        let (name, shifted) = key_of(letter).with_context(|| format!("no key has '{letter}'"))?;
        steps.extend(if shifted { stroke(&["shift", &name]) } else { stroke(&[&name]) });
    }
    Ok(steps)
}

/// QEMU's name of the key of a character on a US keyboard, and whether Shift is pressed with it.
fn key_of(letter: char) -> Option<(String, bool)> {
    const PLAIN: [(char, &str); 15] = [
        ('\n', "ret"),
        ('\t', "tab"),
        ('\u{1b}', "esc"),
        (' ', "spc"),
        ('-', "minus"),
        ('=', "equal"),
        ('[', "bracket_left"),
        (']', "bracket_right"),
        (';', "semicolon"),
        ('\'', "apostrophe"),
        ('`', "grave_accent"),
        ('\\', "backslash"),
        (',', "comma"),
        ('.', "dot"),
        ('/', "slash"),
    ];
    const SHIFTED: [(char, char); 21] = [
        ('!', '1'),
        ('@', '2'),
        ('#', '3'),
        ('$', '4'),
        ('%', '5'),
        ('^', '6'),
        ('&', '7'),
        ('*', '8'),
        ('(', '9'),
        (')', '0'),
        ('_', '-'),
        ('+', '='),
        ('{', '['),
        ('}', ']'),
        (':', ';'),
        ('"', '\''),
        ('~', '`'),
        ('|', '\\'),
        ('<', ','),
        ('>', '.'),
        ('?', '/'),
    ];
    if let Some((_, under)) = SHIFTED.iter().find(|(shifted, _)| *shifted == letter) {
        return key_of(*under).map(|(name, _)| (name, true));
    }
    if letter.is_ascii_alphanumeric() {
        return Some((letter.to_ascii_lowercase().to_string(), letter.is_ascii_uppercase()));
    }
    PLAIN.iter().find(|(plain, _)| *plain == letter).map(|(_, name)| ((*name).to_string(), false))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
