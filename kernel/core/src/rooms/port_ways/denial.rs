//! What the kernel refuses a service, ports, kernel calls and messages: one line in the kernel's log, and the end of a driver whose policy
//! for ports says so.
//!
//! A service that tries again and again cannot flood the log: of one incarnation the first sixteen refusals are logged, and from then on each
//! whose number is a power of two; all are counted. Neighbours: `ports`, `hal`, `emulate`, `calls`, `ipc` (refuse).

use crate::{Machine, Node, ipc::message, stop::Stop, thread::state::BlockedOn};

use core::fmt::{Arguments, Write};

use abi::endpoint::{FIRST_SERVICE, SERVICE_SLOTS};
use abi::{Errno, Name, privilege::KILL_ON_DENIAL};

/// Refusals of one incarnation that are all logged.
const LOGGED: u32 = 16;

/// How an access came, by the name that the log gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A kernel call.
    Call,
    /// A message to the SYSTEM task.
    Systask,
    /// The HAL trap.
    Hal,
    /// An instruction that the kernel was to carry out.
    Emulate,
    /// An instruction that the CPU has refused by the bitmap.
    Direct,
}

impl Path {
    fn name(self) -> &'static str {
        match self {
            Path::Call => "call",
            Path::Systask => "systask",
            Path::Hal => "hal",
            Path::Emulate => "emulate",
            Path::Direct => "direct",
        }
    }
}

/// The access path of the kernel call in progress.
pub fn call_path(node: &Node) -> Path {
    if node.serving == 0 { Path::Call } else { Path::Systask }
}

/// Refuses a port: how the access ends.
#[cold]
#[inline(never)]
pub fn deny<M: Machine>(node: &mut Node, m: &mut M, path: Path, port: u64) -> Stop {
    log_denial(node, m, format_args!("port {port:#x} denied ({})", path.name()));
    let kills = node.privileges(node.caller()).flags & KILL_ON_DENIAL != 0;
    if kills { Stop::Exception(port) } else { Errno::ECALLDENIED.into() }
}

/// The message in the registers of the thread in this slot has been refused. A thread that waits for it as the reply would do so for
/// ever: its wait fails.
pub fn deny_message<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let to = node.threads[slot].frame.endpoint().slot();
    let name = match to {
        ..FIRST_SERVICE => Name::new("the kernel").unwrap_or_default(),
        FIRST_SERVICE..SERVICE_SLOTS => node.privileges(to).name,
        _ => Name::default(),
    };
    log_denial(node, m, format_args!("message to {name} (slot {to}) denied: not among its destinations"));
    let awaits_it = Some(BlockedOn::Answer(node.threads[slot].endpoint));
    if node.threads.get(to).is_some_and(|thread| thread.state.blocked_on() == awaits_it) {
        message::fail_wait(node, m, to, Errno::EDEADSRCDST);
    }
}

/// Logs a refusal, unless there have been too many. Programs have no ports and leave no line.
pub fn log_denial<M: Machine>(node: &mut Node, m: &mut M, what: Arguments) {
    let slot = node.caller();
    let denials = node.threads[slot].denials.saturating_add(1);
    node.threads[slot].denials = denials;
    let is_service = node.threads[slot].endpoint.is_service();
    if !is_service || denials > LOGGED && !denials.is_power_of_two() {
        return;
    }
    let name = node.privileges(slot).name;
    let mut line = Line { bytes: [0; LINE_BYTES], length: 0 };
    // What does not fit is truncated.
    let _ = match denials {
        ..=LOGGED => writeln!(line, "{name}: {what}"),
        _ => writeln!(line, "{name}: {what}, refusal {denials}"),
    };
    m.console(&line.bytes[..line.length]);
}

const LINE_BYTES: usize = 96;

/// A line of text, truncated at its end.
struct Line {
    bytes: [u8; LINE_BYTES],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}
