//! System V semaphores: sets and their identifiers, operations that wait, rights, limits, and what the end of a process undoes.

mod operations;
mod sets;

use super::{Answer, DONE, MEMORY, SECOND, World};
use abi::Endpoint;
use abi::linux::nr;
use std::vec::Vec;

const BUFFER: u64 = MEMORY.start + 0x100;
const OPERATIONS: u64 = MEMORY.start + 0x1000;
const KEY: u64 = 7;
const CREATE: u64 = 0o1000;
const EXCLUSIVE: u64 = 0o2000;
const NO_WAIT: u16 = 0o4000;
const UNDO: u16 = 0x1000;
const USR1: u64 = 10;

const RMID: u64 = 0;
const SET: u64 = 1;
const STAT: u64 = 2;
const GETPID: u64 = 11;
const GETVAL: u64 = 12;
const GETALL: u64 = 13;
const GETNCNT: u64 = 14;
const GETZCNT: u64 = 15;
const SETVAL: u64 = 16;
const SETALL: u64 = 17;

/// A world with one set of two semaphores, made by the first process, and a child of it.
struct Scene {
    world: World,
    init: Endpoint,
    pid: u64,
    child: Endpoint,
    id: u64,
}

fn scene() -> Scene {
    let mut world = World::new();
    world.pm.programs.system.real_offset_ns = 1000 * SECOND;
    world.set_time(5 * SECOND);
    let init = world.init;
    let id = world.call(init, nr::SEMGET, &[KEY, 2, CREATE | 0o600]).unwrap().unwrap();
    let (pid, child) = world.fork(init);
    Scene { world, init, pid, child, id }
}

impl Scene {
    fn get(&mut self, thread: Endpoint, key: u64, count: u64, flags: u64) -> Answer {
        self.world.call(thread, nr::SEMGET, &[key, count, flags])
    }

    fn write_operations(&mut self, thread: Endpoint, operations: &[(u16, i16, u16)]) {
        let bytes: Vec<u8> = operations
            .iter()
            .flat_map(|(number, change, flags)| [*number, *change as u16, *flags])
            .flat_map(u16::to_le_bytes)
            .collect();
        self.world.write_bytes(thread, OPERATIONS, &bytes);
    }

    fn operate(&mut self, thread: Endpoint, operations: &[(u16, i16, u16)]) -> Answer {
        self.write_operations(thread, operations);
        self.world.call(thread, nr::SEMOP, &[self.id, OPERATIONS, operations.len() as u64])
    }

    fn add(&mut self, thread: Endpoint, number: u16, change: i16) -> Answer {
        self.operate(thread, &[(number, change, 0)])
    }

    /// An operation that gives up after this time.
    fn add_timed(&mut self, thread: Endpoint, number: u16, change: i16, limit: [u64; 2]) -> Answer {
        self.world.write(thread, BUFFER, &limit);
        self.write_operations(thread, &[(number, change, 0)]);
        self.world.call(thread, nr::SEMTIMEDOP, &[self.id, OPERATIONS, 1, BUFFER])
    }

    fn control(&mut self, thread: Endpoint, number: u64, command: u64, argument: u64) -> Answer {
        self.world.call(thread, nr::SEMCTL, &[self.id, number, command, argument])
    }

    /// What a command of the first process tells of a semaphore.
    fn ask(&mut self, number: u64, command: u64) -> u64 {
        self.control(self.init, number, command, 0).unwrap().unwrap()
    }

    fn values(&mut self) -> [u64; 2] {
        [self.ask(0, GETVAL), self.ask(1, GETVAL)]
    }

    /// How many wait for each semaphore to become greater, and zero.
    fn waiting(&mut self) -> [[u64; 2]; 2] {
        [GETNCNT, GETZCNT].map(|command| [self.ask(0, command), self.ask(1, command)])
    }

    fn set_value(&mut self, number: u64, value: u64) {
        assert_eq!(self.control(self.init, number, SETVAL, value), DONE);
    }

    fn fork(&mut self) -> Endpoint {
        self.world.fork(self.init).1
    }
}
