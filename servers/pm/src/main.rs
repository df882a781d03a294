//! pm, the process manager: processes and threads, their ids, groups and sessions, signals, `wait`, `exec`, and the timers of
//! programs. It decides; the kernel moves threads, vm memory, vfs files.
//!
//! Reading order: `manager` (the way of a message), `linux_calls` (which call is whose), `table`, `process`, `thread` (state),
//! then `fork`, `exec`, `exit`, `wait_calls`, `signal`. Everything but `native` runs on the host against a fake `System`.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod clocks;
mod credentials;
mod exec;
mod exit;
mod fork;
mod id_calls;
mod index;
mod intervals;
mod jobs;
mod limits;
mod linux_calls;
mod machine;
mod manager;
mod memory;
mod native;
mod pid;
mod posix_timers;
mod process;
mod process_calls;
mod random;
mod records;
mod recovery;
mod robust;
mod scheduling;
mod semaphore_calls;
mod semaphore_sets;
mod services;
mod signal;
mod system;
mod table;
mod thread;
mod timers;
mod wait;
mod wait_calls;

#[cfg(test)]
mod tests;

use abi::{Endpoint, Message};
use manager::Pm;
use native::Native;
use random::Random;

sys::program!(main);

impl server::Service for Pm<Native> {
    fn request(&mut self, message: &Message) -> Option<Message> {
        self.handle(message)
    }

    fn notified(&mut self, from: Endpoint) {
        self.handle_notification(from);
    }

    fn alarm(&mut self, _now_ns: u64) {
        self.handle_notification(Endpoint::CLOCK);
    }
}

fn main(_start: sys::Start) {
    let (pm, is_second_life) = recover::retained::state(|| Pm::new(Native, Random::new(sys::random::seed())));
    if is_second_life {
        pm.recover();
    }
    server::run(pm)
}
