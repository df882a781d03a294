//! ipcbench: the cost of messages, notifications, grants and page faults, in ticks, measured between two services of the system
//! `bench`: `ping` (this program without arguments) measures, `pong` (argument `role=pong`) replies from its own address space. With
//! `role=ports way=WAY` it measures port accesses on the access path of its system file.
//!
//! The figures go to the kernel's log as lines `bench: NAME TICKS`, each the mean over `ROUNDS`, after a first round that is not
//! counted.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use abi::kernel::Notify;
use abi::{Endpoint, Message, Name};
use alloc::vec;
use core::hint::black_box;
use sys::time::ticks;
use sys::{grant, ipc, port};

sys::program!(main);

const ROUNDS: u64 = 1000;
/// Labels of this program's own protocol: echo; when the last notification arrived; copy from the grant in words 0 and 1.
const ECHO: u32 = 0x7f_0001;
const NOTIFIED_AT: u32 = 0x7f_0002;
const COPY: u32 = 0x7f_0003;
const PAGE: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

fn main(start: sys::Start) {
    if let Some(way) = start.argument("way") {
        ports(way);
    }
    server::ready();
    match start.argument("role") {
        Some("pong") => pong(),
        Some("ports") => stay(),
        _ => ping(),
    }
}

/// Replies forever.
fn pong() {
    let mut notified_at = 0;
    let mut buffer = vec![0; PAGE + MAX_BYTES];
    let mut message = receive();
    loop {
        let reply = match message.label {
            Notify::LABEL => {
                notified_at = ticks();
                // A heartbeat of rs; ping's notifications need no reply.
                if message.source.slot() == Endpoint::RS.slot() {
                    let _ = ipc::notify(Endpoint::RS);
                }
                message = receive();
                continue;
            }
            NOTIFIED_AT => message.reply(Ok(notified_at)),
            COPY => {
                let grant = abi::GrantId(message.words[0] as u32);
                let start = first_page(&buffer);
                let bytes = &mut buffer[start..start + message.words[1] as usize];
                let start = ticks();
                let result = sys::copy::from_grant(message.source, grant, 0, bytes).map(|()| ticks() - start);
                message.reply(result)
            }
            _ => message,
        };
        message = ipc::reply_receive(message.source, &reply, Endpoint::ANY).unwrap_or_else(|_| receive());
    }
}

fn receive() -> Message {
    ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail")
}

fn ping() {
    let name = Name::new("pong").expect("a short name");
    let pong = server::names::lookup(name).expect("the system bench has a pong");
    sendrec(pong);
    notify(pong);
    fault();
    copy(pong, "grant_copy_4k", PAGE);
    copy(pong, "grant_copy_1m", MAX_BYTES);
    stay();
}

/// Answers heartbeats forever.
fn stay() {
    loop {
        if receive().source.slot() == Endpoint::RS.slot() {
            let _ = ipc::notify(Endpoint::RS);
        }
    }
}

/// One access of a port, without the loop around it, and a sector's worth of words by one string operation.
fn ports(way: &str) {
    /// The port of power-on codes, where accesses have no effect.
    const PORT: u16 = 0x80;
    let allowed = "the system bench grants port 0x80";
    let empty = ticks_of(|port| _ = black_box(port), PORT);
    let read = ticks_of(|port| _ = port::read(port, 1).expect(allowed), PORT);
    let write = ticks_of(|port| port::write(port, 1, 7).expect(allowed), PORT);
    let mut sector = [0; 512];
    let string = ticks_of(|port| port::read_string(port, 2, &mut sector).expect(allowed), PORT);
    for (form, ticks) in [("in", read), ("out", write), ("string_in_512", string)] {
        sys::log!("bench: port_{way}_{form} {}", ticks.saturating_sub(empty));
    }
}

/// Returns the mean of the best tenth: rs may be starting other services during the others.
fn ticks_of(mut access: impl FnMut(u16), port: u16) -> u64 {
    const PARTS: u64 = 10;
    let part = |_| {
        let start = ticks();
        for _ in 0..ROUNDS / PARTS {
            access(black_box(port));
        }
        (ticks() - start) / (ROUNDS / PARTS)
    };
    (0..PARTS).map(part).min().unwrap_or_default()
}

/// 0 if all words are the same. An `==` of the arrays would be a call of `memcmp`, and a fourth of what is measured.
fn difference(one: &[u64; 7], other: &[u64; 7]) -> u64 {
    one.iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other))
}

/// Measures a request with all seven words and its reply.
fn sendrec(pong: Endpoint) {
    let mut message = Message::new(ECHO);
    message.words = [1, 2, 3, 4, 5, 6, 7];
    let mut start = 0;
    for round in 0..=ROUNDS {
        if round == 1 {
            start = ticks();
        }
        let reply = ipc::sendrec(pong, &message).expect("pong answers");
        assert_eq!(difference(&reply.words, &message.words), 0);
    }
    report("sendrec_round_trip", (ticks() - start) / ROUNDS);
}

/// Measures from the call to the first instruction of the waiting process of higher priority.
fn notify(pong: Endpoint) {
    let mut sum = 0;
    for _ in 0..ROUNDS {
        let start = ticks();
        ipc::notify(pong).expect("pong can be notified");
        let arrived = ipc::call(pong, &Message::new(NOTIFIED_AT)).and_then(|reply| reply.result());
        sum += arrived.expect("pong tells") - start;
    }
    report("notify_higher", sum / ROUNDS);
}

/// Measures the first access to heap pages: the fault, vm's reply, the mapping of a zeroed frame.
fn fault() {
    const PAGES: usize = 128;
    let mut heap = alloc::vec::Vec::<u8>::with_capacity(PAGES * PAGE);
    let start = ticks();
    // One byte a page: resize would zero every byte.
    for _ in 0..PAGES {
        heap.resize(heap.len() + PAGE, 1);
    }
    let touched = ticks() - start;
    let start = ticks();
    heap.clear();
    for _ in 0..PAGES {
        heap.resize(heap.len() + PAGE, 1);
    }
    let filled = ticks() - start;
    report("page_fault_with_zeroed_frame", touched.saturating_sub(filled) / PAGES as u64);
}

/// Measures a copy of this many bytes from this program's memory, made by pong.
fn copy(pong: Endpoint, name: &str, bytes: usize) {
    const COPIES: u64 = 20;
    let buffer = vec![7; PAGE + bytes];
    let start = first_page(&buffer);
    let buffer = &buffer[start..start + bytes];
    let mut sum = 0;
    for round in 0..=COPIES {
        let ticks = grant::lend(buffer, pong, |grant| {
            let mut request = Message::new(COPY);
            request.words[0] = grant.0.into();
            request.words[1] = bytes as u64;
            ipc::call(pong, &request).and_then(|reply| reply.result())
        });
        // The first round finds pages of the buffers missing.
        if round > 0 {
            sum += ticks.flatten().expect("pong copies");
        }
    }
    report(name, sum / COPIES);
}

/// Returns the offset of the first whole page of a buffer.
fn first_page(buffer: &[u8]) -> usize {
    buffer.as_ptr().align_offset(PAGE)
}

fn report(name: &str, ticks: u64) {
    sys::log!("bench: {name} {ticks}");
}
