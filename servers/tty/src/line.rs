//! A terminal's connection with its serial line: one task reads from uart, one writes to it.
//!
//! uart answers a read when there are bytes, and a write when it has taken at least one byte; what it has not taken is sent
//! again. A request that was with uart when that died is repeated: nothing of it had been done.

use crate::Tty;
use crate::terminal::Terminal;
use abi::{Endpoint, Errno, chardev};
use alloc::{rc::Rc, vec};
use core::cell::{Cell, RefCell};
use server::{Peer, Repeat, WaitList};
use sys::grant::{Access, GrantedBuffer};

/// Most bytes of one request to uart.
const CHUNK: usize = 256;
/// How long to wait after an error of the line before the next try.
const ERROR_PAUSE_NS: u64 = 100_000_000;

/// How often to look for uart at boot.
const BIRTH_POLL_NS: u64 = 1_000_000;

/// A terminal and what its tasks wait for.
pub struct Line {
    pub terminal: RefCell<Terminal>,
    /// Woken when there may be output.
    pub output: WaitList,
    /// The deadline for which a task sleeps.
    pub deadline_ns: Cell<Option<u64>>,
}

impl Line {
    /// A terminal that nobody uses yet.
    pub fn new() -> Self {
        Line { terminal: RefCell::new(Terminal::new()), output: WaitList::new(), deadline_ns: Cell::new(None) }
    }
}

/// Starts the tasks of terminal `index`, which is uart's minor `index`.
pub fn start(tty: &Rc<Tty>, index: usize, uart: &Peer) {
    tty.runtime.spawn(receive(tty.clone(), index, uart.clone()));
    tty.runtime.spawn(send(tty.clone(), index, uart.clone()));
}

async fn receive(tty: Rc<Tty>, index: usize, uart: Peer) {
    first_birth(&tty, &uart).await;
    loop {
        let buffer = grant(&uart, vec![0; CHUNK], Access::Write);
        let read = chardev::Read { minor: index as u64, grant: buffer.id(), bytes: CHUNK as u64, flags: 0, caller: 0 };
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

async fn send(tty: Rc<Tty>, index: usize, uart: Peer) {
    first_birth(&tty, &uart).await;
    let line = &tty.lines[index];
    loop {
        let mut chunk = [0; CHUNK];
        let count = line.terminal.borrow_mut().take_output(&mut chunk);
        if count == 0 {
            line.output.wait().await;
            continue;
        }
        let mut sent = 0;
        while sent < count {
            let rest = chunk[sent..count].to_vec();
            let bytes = rest.len() as u64;
            let buffer = grant(&uart, rest, Access::Read);
            let write = chardev::Write { minor: index as u64, grant: buffer.id(), bytes, flags: 0, caller: 0 };
            match uart.request(write.message(), Repeat::Yes).await.and_then(|reply| reply.result()) {
                Ok(taken) => sent += taken as usize,
                Err(error) if pause(&tty, index, error).await => {}
                // A line that does not exist swallows what is written to it.
                Err(_) => sent = count,
            }
        }
        tty.with(index, |terminal, world| terminal.output_done(world));
    }
}

/// Waits until uart has been there: only then a grant can name it.
async fn first_birth(tty: &Tty, uart: &Peer) {
    while uart.endpoint() == Endpoint::NONE {
        tty.runtime.sleep_ns(BIRTH_POLL_NS).await;
    }
}

/// After an error of the line: says so, waits, and gives true when it is worth another try.
async fn pause(tty: &Tty, index: usize, error: Errno) -> bool {
    if error == Errno::ENXIO {
        return false;
    }
    sys::log!("serial line {index}: {error}");
    tty.runtime.sleep_ns(ERROR_PAUSE_NS).await;
    true
}

/// Lends a buffer to uart, whichever incarnation.
fn grant(uart: &Peer, buffer: alloc::vec::Vec<u8>, access: Access) -> GrantedBuffer {
    let uart = Endpoint::current(uart.endpoint().slot());
    GrantedBuffer::new(buffer, uart, access).expect("tty has too many grants, or none are permitted")
}
