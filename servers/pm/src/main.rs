//! pm, the process manager: processes and threads, their ids, groups and sessions, signals, `wait`, `exec`, and the timers of
//! programs. It decides; the kernel moves threads, vm memory, vfs files.
//!
//! Reading order: `messages` (how a message reaches its handler), `state` (what pm knows, as data), `programs` and `pm` (that state, in
//! two structures: half of the handlers are given the first alone); then by topic `process`, `signal`, `exec`, `time`, `sysv`, `trace`, `machine`;
//! `recovery` after a death. Imports go down: `messages` and `recovery`, topics, `pm`, `programs`, `state`, `system`.
//! Everything but `native` runs on the host against a fake `System`.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod exec;
mod machine;
mod messages;
mod native;
mod pm;
mod process;
mod programs;
mod recovery;
mod signal;
mod state;
mod system;
mod sysv;
mod time;
mod trace;

#[cfg(test)]
mod tests;

use abi::{Endpoint, Message};
use native::Native;
use pm::Pm;
use server::SyncStep;
use state::random::Random;

sys::program!(main);

impl server::Service for Pm<Native> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        self.handle(message)
    }

    fn notified(&mut self, from: Endpoint) {
        self.handle_notification(from);
    }

    fn alarm(&mut self, _now_ns: u64) {
        self.handle_notification(Endpoint::CLOCK);
    }
}

fn main(start: sys::Start) {
    let (pm, is_second_life) = recover::retained::state(|| {
        let mut pm = Pm::new(Native, Random::new(sys::random::seed()));
        pm.places_randomly = start.arguments.split_ascii_whitespace().any(|word| word == "places=random");
        pm
    });
    if is_second_life {
        pm.recover();
        pm.shed_load(sys::fallible::exhaustions());
    }
    server::run(pm)
}
