//! Signals that vfs takes for threads that read them from descriptors.

use super::*;
use crate::state::signal::{SigInfo, Signal};
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, pm};

const BUFFER: u64 = MEMORY.start + 0x1000;
const INFO: u64 = 128;
const USR1: u64 = 10;
const USR2: u64 = 12;
const REAL_TIME: u64 = 40;
const MASK: u64 = 1 << (USR1 - 1) | 1 << (USR2 - 1) | 1 << (REAL_TIME - 1);
const CALL: u64 = 70;

/// A request of vfs.
fn ask(world: &mut World, request: Message) -> Result<u64, Errno> {
    let message = Message { source: Endpoint::VFS, ..request };
    world.pm.handle(&message).done().expect("at once").result()
}

fn take(world: &mut World, process: Endpoint, call: u64, count: u64, watch: bool) -> Result<u64, Errno> {
    ask(world, pm::TakeSignals { process, call, mask: MASK, address: BUFFER, count, watch }.message())
}

fn block(world: &mut World, thread: Endpoint) {
    world.write(thread, MEMORY.start, &[MASK]);
    assert_eq!(world.call(thread, nr::RT_SIGPROCMASK, &[2, MEMORY.start, 0, 8]), DONE);
}

fn kill(world: &mut World, pid: u64, signal: u64) {
    assert_eq!(world.call(world.init, nr::KILL, &[pid, signal]), DONE);
}

/// Signal, code, pid and user of what was read in this place.
fn read(world: &mut World, thread: Endpoint, place: u64) -> [u32; 4] {
    let at = |world: &mut World, offset: u64| world.read(thread, BUFFER + place * INFO + offset) as u32;
    [0, 8, 12, 16].map(|offset| at(world, offset))
}

fn told(world: &mut World) -> usize {
    world.told().iter().filter(|told| matches!(told, Told::SignalsPending(_))).count()
}

#[test]
fn several_signals_are_taken_at_a_time_in_linux_order() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child);
    for signal in [REAL_TIME, USR2, REAL_TIME] {
        kill(&mut world, pid, signal);
    }
    assert_eq!(world.call(world.init, nr::TKILL, &[pid, REAL_TIME]), DONE);
    assert_eq!(take(&mut world, child, CALL, 3, true), Ok(3));
    const TKILL: u32 = -6i32 as u32;
    assert_eq!(read(&mut world, child, 0), [REAL_TIME as u32, TKILL, 1, 0], "the thread's own first");
    assert_eq!(read(&mut world, child, 1), [USR2 as u32, 0, 1, 0]);
    assert_eq!(read(&mut world, child, 2)[0], REAL_TIME as u32);
    assert_eq!(take(&mut world, child, CALL + 1, 3, true), Ok(1));
    assert_eq!(take(&mut world, child, CALL + 2, 3, true), Err(Errno::EAGAIN));
}

#[test]
fn the_same_call_gets_the_same_signals_again() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child);
    assert_eq!(take(&mut world, child, CALL, 2, false), Err(Errno::EAGAIN));
    kill(&mut world, pid, USR1);
    assert_eq!(take(&mut world, child, CALL, 2, false), Ok(1), "it had none when it asked first");
    kill(&mut world, pid, USR2);
    assert_eq!(take(&mut world, child, CALL, 2, false), Ok(1), "what it took already");
    assert_eq!(take(&mut world, child, CALL + 1, 2, false), Ok(1));
    assert_eq!(read(&mut world, child, 0)[0], USR2 as u32);
}

#[test]
fn vfs_is_told_once_of_a_signal_that_is_waited_for() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child);
    assert_eq!(take(&mut world, child, CALL, 1, true), Err(Errno::EAGAIN));
    kill(&mut world, pid, USR1);
    kill(&mut world, pid, USR2);
    assert_eq!(told(&mut world), 1);
    let waits = pm::AwaitSignals { process: child, mask: MASK, any: false };
    let pending = |world: &mut World| {
        let message = Message { source: Endpoint::VFS, ..waits.message() };
        let reply = world.pm.handle(&message).done().expect("at once");
        pm::AwaitSignals::results(&reply).map(|(pending, _)| pending)
    };
    assert_eq!(pending(&mut world), Ok(1 << (USR1 - 1) | 1 << (USR2 - 1)));
    assert_eq!(take(&mut world, child, CALL, 2, true), Ok(2));
    assert_eq!(pending(&mut world), Ok(0));
    kill(&mut world, pid, REAL_TIME);
    assert_eq!(told(&mut world), 1);
    assert_eq!(take(&mut world, child, CALL + 1, 2, false), Ok(1));
    kill(&mut world, pid, USR1);
    assert_eq!(told(&mut world), 0, "nobody waits");
}

#[test]
fn with_any_vfs_is_told_of_each_next_signal_whatever_is_pending() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child);
    kill(&mut world, pid, USR1);
    let ask = |world: &mut World| {
        let request = pm::AwaitSignals { process: child, mask: MASK, any: true };
        let message = Message { source: Endpoint::VFS, ..request.message() };
        let reply = world.pm.handle(&message).done().expect("pm does not wait");
        pm::AwaitSignals::results(&reply).expect("the thread is there")
    };
    let (first, second) = (ask(&mut world), ask(&mut world));
    assert_eq!(first, (1 << (USR1 - 1), second.1));
    kill(&mut world, pid, USR1);
    assert_eq!(ask(&mut world), second, "it is pending already");
    told(&mut world);
    kill(&mut world, pid, REAL_TIME);
    kill(&mut world, pid, REAL_TIME);
    assert_eq!(told(&mut world), 1);
    let third = ask(&mut world);
    assert!(third.1 != second.1 && third.1 != 0);
    assert_eq!((told(&mut world), ask(&mut world)), (0, third));
}

#[test]
fn a_bad_address_loses_the_signal_as_on_linux() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child);
    kill(&mut world, pid, USR1);
    kill(&mut world, pid, USR2);
    let nowhere = pm::TakeSignals { process: child, call: CALL, mask: MASK, address: 8, count: 1, watch: false };
    assert_eq!(ask(&mut world, nowhere.message()), Err(Errno::EFAULT));
    assert_eq!(ask(&mut world, nowhere.message()), Err(Errno::EFAULT), "the same call");
    assert_eq!(take(&mut world, child, CALL + 1, 9, false), Ok(1));
    assert_eq!(read(&mut world, child, 0)[0], USR2 as u32);
}

#[test]
fn only_vfs_takes_signals() {
    let mut world = World::new();
    let request = pm::TakeSignals { process: world.init, call: 1, mask: MASK, address: BUFFER, count: 1, watch: true };
    let message = Message { source: Endpoint::TTY, ..request.message() };
    assert_eq!(world.pm.handle(&message).done().unwrap().result(), Err(Errno::EPERM));
    let gone = pm::AwaitSignals { process: Endpoint::new(900, 1), mask: MASK, any: true };
    assert_eq!(ask(&mut world, gone.message()), Err(Errno::ESRCH));
}

#[test]
fn each_reason_has_its_fields() {
    let bytes = |info: SigInfo| info.to_signalfd_bytes();
    let word = |bytes: &[u8; 128], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |bytes: &[u8; 128], at: usize| word(bytes, at) as u32;
    let child = bytes(SigInfo::child(1, 77, 5, 3, 9));
    assert_eq!([12, 16, 40].map(|at| half(&child, at)), [77, 5, 3]);
    assert_eq!(word(&child, 56), 9);
    let timer = bytes(SigInfo::timer(Signal::ALRM, 4, 0x1_0000_0007).with_overruns(6));
    assert_eq!([24, 32, 44].map(|at| half(&timer, at)), [4, 6, 7]);
    assert_eq!((word(&timer, 48), half(&timer, 12)), (0x1_0000_0007, 0));
    let message = bytes(SigInfo::message(Signal::IO, 77 | 5 << 32, 8));
    assert_eq!([12, 16, 44].map(|at| half(&message, at)), [77, 5, 8]);
    let lease = bytes(SigInfo::io(Signal::IO, 3, 3));
    assert_eq!([20, 28].map(|at| half(&lease, at)), [3, 0x441]);
    assert_eq!(word(&bytes(SigInfo::fault(Signal::SEGV, 1, 0x1234)), 72), 0x1234);
    assert_eq!(half(&bytes(SigInfo::kernel(Signal::INT)), 8), 0x80);
}
