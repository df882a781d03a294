//! vm as a whole, over a simulated kernel.

mod bounds;
mod cache;
mod calls;
mod containers;
mod deaths;
mod edges;
mod exhaustion;
mod file_model;
mod files;
mod invariants;
mod model;
mod own_pages;
mod programs;
mod rights;
mod segments;
mod services;
mod shared_cache;
mod shared_files;
mod updates;
mod vdso;
mod windows;

use crate::server::Server;
use crate::simulation::Simulation;
use abi::{
    Endpoint,
    endpoint::{SERVICE_SLOTS, slot},
    layout::PAGE_BYTES,
    vm,
};

pub const P: u64 = PAGE_BYTES;
pub const READ: u64 = 1;
pub const WRITE: u64 = 2;
pub const EXECUTE: u64 = 4;
pub const SHARED: u64 = 1;
pub const PRIVATE: u64 = 2;
pub const FIXED: u64 = 0x10;
pub const ANONYMOUS: u64 = 0x20;

/// The `number`th program.
pub fn program(number: usize) -> Endpoint {
    Endpoint::new(SERVICE_SLOTS + number, 1)
}

/// Marsaglia's xorshift64*, so that every run is the same.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end
    }
}

/// A vm with one program in an empty space.
pub fn with_program(frames: u32) -> (Server<Simulation>, Endpoint) {
    let mut server = Simulation::start(frames);
    let first = program(0);
    let fork = vm::Fork { parent: Endpoint::NONE, child: first, share: false, pid: 1 };
    server.ask(slot::PM, fork.message()).result().expect("a thread without memory");
    let space = crate::space::AddressSpace::new(&mut server.memory).expect("enough memory");
    server.processes.enter(&mut server.memory, first, space).expect("a good space");
    (server, first)
}

pub fn fork(server: &mut Server<Simulation>, parent: Endpoint, child: Endpoint) -> Result<(), abi::Errno> {
    server.ask(slot::PM, vm::Fork { parent, child, share: false, pid: 0 }.message()).result().map(drop)
}

pub fn exit(server: &mut Server<Simulation>, process: Endpoint) -> Result<(), abi::Errno> {
    server.ask(slot::PM, vm::Exit { process }.message()).result().map(drop)
}
