//! A terminal's connection with its serial line: one task reads from uart, one writes to it, one sends it commands. To the terminals on the
//! screen console is what uart is to the others.
//!
//! uart replies to a read when there are bytes, and to a write when it has taken at least one byte; the rest is sent again. Reads and
//! writes carry their position in the stream (`chardev::serial`), so a request that is repeated, because uart or a predecessor of this
//! tty died, neither loses nor doubles a byte. Before the machine ends pm has all lines drained.

use crate::serial::Command;
use crate::state::Tty;
use abi::chardev::{self, serial};
use abi::{Endpoint, Errno, GrantId, Message};
use alloc::{rc::Rc, vec};
use core::cell::Cell;
use server::{Peer, Repeat};
use sys::grant::{Access, GrantedBuffer};

/// Limit of one request to uart, in bytes.
const CHUNK: usize = 256;
/// Back-off after an error of the line.
const ERROR_PAUSE_NS: u64 = 100_000_000;

/// How often to look for uart at boot, and for the end of the output at the machine's end.
const POLL_NS: u64 = 1_000_000;
/// How long the machine's end waits for output.
const DRAIN_LIMIT_NS: u64 = 1_000_000_000;

/// Starts the tasks of terminal `index`, which is uart's minor `index`.
pub fn start(tty: &Rc<Tty>, index: usize) {
    tty.runtime.spawn(receive(tty.clone(), index));
    tty.runtime.spawn(send(tty.clone(), index));
    tty.runtime.spawn(send_commands(tty.clone(), index));
}

/// Replies to `request` when all output has been sent, or after `DRAIN_LIMIT_NS`.
pub fn drain(tty: &Rc<Tty>, request: &Message) {
    let pending = Rc::new(Cell::new(Some(*request)));
    let reply = |tty: Rc<Tty>, pending: Rc<Cell<Option<Message>>>| {
        if let Some(request) = pending.take() {
            tty.runtime.reply(&request, &request.reply(Ok(0)));
        }
    };
    let (limited, expired) = (tty.clone(), pending.clone());
    tty.runtime.spawn(async move {
        limited.runtime.sleep_ns(DRAIN_LIMIT_NS).await;
        reply(limited, expired);
    });
    let tty = tty.clone();
    tty.clone().runtime.spawn(async move {
        for index in 0..tty.lines().len() {
            drain_line(&tty, index).await;
        }
        reply(tty, pending);
    });
}

async fn drain_line(tty: &Tty, index: usize) {
    let is_sending = || {
        let output = &tty.lines()[index].terminal.borrow().output;
        output.len() > 0 && !output.is_stopped()
    };
    while is_sending() {
        tty.runtime.sleep_ns(POLL_NS).await;
    }
    let (lower, minor) = tty.lower(index);
    let control =
        chardev::Control { minor, request: serial::DRAIN, argument: 0, grant: GrantId::NONE, caller: 0, session: 0 };
    // A line that does not exist has nothing to send, and one whose driver does not reply has lost it.
    let _ = lower.request(control.message(), Repeat::Yes).await;
}

#[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "from the heap's reserve")]
async fn receive(tty: Rc<Tty>, index: usize) {
    let (uart, minor) = tty.lower(index);
    wait_for_lower(uart, minor).await;
    let line = &tty.lines()[index];
    loop {
        let position = match &*line.terminal.borrow() {
            terminal if !terminal.opened || !terminal.discipline.wants_input(&terminal.termios, CHUNK) => None,
            terminal => Some(terminal.received),
        };
        let Some(caller) = position else {
            line.changed.wait().await;
            continue;
        };
        let buffer = grant(uart, vec![0; CHUNK], Access::Write);
        let read = chardev::Read { minor, grant: buffer.id(), bytes: CHUNK as u64, flags: 0, caller };
        let result = uart.request(read.message(), Repeat::Yes).await.and_then(|reply| reply.result());
        let bytes = buffer.take();
        match result {
            Ok(count) => {
                let received = bytes.get(..count as usize).unwrap_or_default();
                tty.with(index, |terminal, world| terminal.input(world, received));
            }
            Err(error) if pause(&tty, index, error).await => {}
            Err(_) => return,
        }
    }
}

#[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "from the heap's reserve")]
async fn send(tty: Rc<Tty>, index: usize) {
    let (uart, minor) = tty.lower(index);
    wait_for_lower(uart, minor).await;
    let line = &tty.lines()[index];
    loop {
        let mut chunk = vec![0; CHUNK];
        let (caller, count) = line.terminal.borrow().output.peek(&mut chunk);
        if count == 0 {
            line.changed.wait().await;
            continue;
        }
        chunk.truncate(count);
        let bytes = count as u64;
        let buffer = grant(uart, chunk, Access::Read);
        let write = chardev::Write { minor, grant: buffer.id(), bytes, flags: 0, caller, process: 0 };
        let sent = match uart.request(write.message(), Repeat::Yes).await.and_then(|reply| reply.result()) {
            Ok(taken) => taken.min(bytes),
            Err(error) if pause(&tty, index, error).await => 0,
            // Output to a line that does not exist is discarded.
            Err(_) => bytes,
        };
        drop(buffer);
        tty.with(index, |terminal, world| terminal.output_done(world, caller + sent));
    }
}

async fn send_commands(tty: Rc<Tty>, index: usize) {
    let (uart, minor) = tty.lower(index);
    wait_for_lower(uart, minor).await;
    let line = &tty.lines()[index];
    loop {
        let next = line.terminal.borrow_mut().commands.next();
        let Some(command) = next else {
            line.changed.wait().await;
            continue;
        };
        let result = match command.message(minor) {
            Some(control) => uart.request(control.message(), Repeat::Yes).await.and_then(|reply| reply.result()),
            None => Ok(0),
        };
        if let Command::Pause(duration_ns) = command {
            tty.runtime.sleep_ns(duration_ns).await;
        }
        match (command.ticket(), result) {
            (Some(ticket), result) => tty.with(index, |terminal, world| terminal.command_done(world, ticket, result)),
            // Commands to a line that does not exist are discarded.
            (None, Ok(_) | Err(Errno::ENXIO)) => {}
            (None, Err(error)) => sys::log!("serial line {index}: {command:?}: {error}"),
        }
    }
}

/// Waits until what is below has been up once: a grant needs its endpoint.
async fn wait_for_lower(lower: &Peer, minor: u64) {
    if lower.endpoint() == Endpoint::NONE {
        let open = chardev::Open { minor, flags: 0, caller: 0, session: 0, ids: 0, node: 0 };
        // Whatever the answer: it came from there.
        let _ = lower.request(open.message(), Repeat::Yes).await;
    }
}

/// Logs an error of the line and waits. Returns whether another try makes sense.
pub async fn pause(tty: &Tty, index: usize, error: Errno) -> bool {
    if error == Errno::ENXIO {
        return false;
    }
    sys::log!("serial line {index}: {error}");
    tty.runtime.sleep_ns(ERROR_PAUSE_NS).await;
    true
}

/// Grants a buffer to uart, whichever incarnation.
pub fn grant(uart: &Peer, buffer: alloc::vec::Vec<u8>, access: Access) -> GrantedBuffer {
    let uart = Endpoint::current(uart.endpoint().slot());
    GrantedBuffer::new(buffer, uart, access).expect("tty has too many grants, or none are permitted")
}
