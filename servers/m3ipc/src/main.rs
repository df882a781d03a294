//! m3ipc: messages between ordinary programs, in containers.
//!
//! The rules are `lib/m3ipc`'s, the messages mostly the kernel's: m3ipc binds processes and gives them a container's row of privileges
//! (ADR 73), and from then on they send and receive by the kernel's primitives, without it. It does what these cannot: notifications, copies,
//! time limits, waits for a binding, and the messages of processes with restricted rights or with threads that share an endpoint
//! (`Member::is_direct`).
//!
//! Its state is in retained memory (ADR 74): programs whose calls it held notice a delay. It waits for pm.
//!
//! Reading order: `server` (a call and its handler), `threads`, `container` (what it knows), then by topic `node`, `binding`, `exchange`,
//! `direct`, `rights`, `files`; `recovery` after a death. Everything but `native` runs on the host against a made-up `System`.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod binding;
mod container;
mod direct;
mod exchange;
mod files;
mod joins;
mod native;
mod node;
mod recovery;
mod rights;
mod server;
mod system;
mod threads;

#[cfg(test)]
mod tests;

use ::server::{Service, SyncStep};
use abi::{Endpoint, Message};

sys::program!(main);

impl Service for server::M3ipc<native::Native> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        self.handle(message)
    }

    fn notified(&mut self, from: Endpoint) {
        if from.slot() == abi::endpoint::slot::PM {
            self.look_for_ends();
        }
    }

    fn alarm(&mut self, now_ns: u64) {
        self.end_late_waits(now_ns);
    }
}

fn main(start: sys::Start) {
    let (server, is_second_life) = recover::retained::state(|| server::M3ipc::new(native::Native));
    server.defaults = joins::parse(start.arguments, |word| {
        sys::log!("argument {word} ignored: not any, uid=N, gid=N or capability=N")
    });
    if is_second_life {
        server.recover();
    }
    ::server::run(server)
}
