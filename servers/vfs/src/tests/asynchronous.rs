//! Signals for input and output: `O_ASYNC`, `F_SETOWN`, `F_SETSIG`.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};
use std::vec::Vec;

const F_SETFL: u64 = 4;
const F_SETOWN: u64 = 8;
const F_SETSIG: u64 = 10;
const O_ASYNC: u64 = 0x2000;
const O_DIRECT: u64 = 0x4000;
const SIGNAL: u64 = 40;

/// The pid of the first program.
const ROOT_PID: u64 = 1;

fn control(world: &World, who: Endpoint, file: u64, command: u64, argument: u64) {
    assert_eq!(world.call(who, nr::FCNTL, &[file, command, argument]), Ok(0), "command {command}");
}

/// Has a program told of what happens to a descriptor of the first one, by a signal.
fn tell_of(world: &World, who: Endpoint, pid: u64, file: u64) {
    for (command, argument) in [(F_SETOWN, pid), (F_SETSIG, SIGNAL), (F_SETFL, O_ASYNC)] {
        control(world, who, file, command, argument);
    }
}

fn tell(world: &World, file: u64) {
    tell_of(world, world.root, ROOT_PID, file);
}

/// What pm is told to send since it was asked last: signal, descriptor, reason.
fn told(world: &World) -> Vec<[u64; 3]> {
    let events = std::iter::from_fn(|| world.next_event()).filter(|(kind, ..)| *kind == vfs::EVENT_OWNER);
    let fields = events.map(|(_, process, [target, of, ..])| {
        assert_eq!((process, target & 0xffff_ffff), (Endpoint::NONE, ROOT_PID));
        [target >> 40, of & 0xffff_ffff, of >> 32]
    });
    fields.collect()
}

#[test]
fn each_write_to_a_pipe_is_told_to_the_owner_of_the_other_end() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    world.write(world.root, writes, b"before").unwrap();
    tell(&world, reads);
    assert_eq!(told(&world), Vec::<[u64; 3]>::new());
    for _ in 0..2 {
        world.write(world.root, writes, b"x").unwrap();
    }
    assert_eq!(told(&world), [[SIGNAL, reads, vfs::OWNER_INPUT]; 2]);
    world.close(world.root, writes).unwrap();
    assert_eq!(told(&world), [[SIGNAL, reads, vfs::OWNER_INPUT]], "the end");
}

#[test]
fn what_is_told_outlives_vfs() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    tell(&world, reads);
    world.write(world.root, writes, b"x").unwrap();
    world.restart_vfs();
    assert_eq!(told(&world), [[SIGNAL, reads, vfs::OWNER_INPUT]], "pm had not fetched it");
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(told(&world), [[SIGNAL, reads, vfs::OWNER_INPUT]]);
    control(&world, world.root, reads, F_SETFL, 0);
    world.restart_vfs();
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(told(&world), Vec::<[u64; 3]>::new());
}

#[test]
fn a_terminal_is_asked_again_after_a_read() {
    let world = World::new();
    let file = terminals::open(&world, O_RDWR);
    tell(&world, file);
    assert_eq!(told(&world), Vec::<[u64; 3]>::new());
    for _ in 0..2 {
        world.enter(b"text");
        assert_eq!(told(&world), [[SIGNAL, file, vfs::OWNER_INPUT]]);
        assert_eq!(world.read(world.root, file, 100).unwrap(), b"text");
    }
}

#[test]
fn one_user_s_signals_leave_room_for_those_of_others() {
    let world = World::new();
    let user = world.user(1000, 100);
    let (reads, writes) = world.pipe(user, 0);
    let (own_reads, own_writes) = world.pipe(world.root, 0);
    tell_of(&world, user, user.slot() as u64, reads);
    tell(&world, own_reads);
    for _ in 0..100 {
        world.write(user, writes, b"x").unwrap();
    }
    world.write(world.root, own_writes, b"x").unwrap();
    let mine = |event: &(u64, Endpoint, [u64; 4])| event.2[0] & 0xffff_ffff == ROOT_PID;
    let events: Vec<_> = std::iter::from_fn(|| world.next_event()).collect();
    assert_eq!(events.iter().filter(|event| event.0 == vfs::EVENT_OWNER && mine(event)).count(), 1);
    assert!(events.len() < 100, "{}", events.len());
}

#[test]
fn packets_outlive_vfs_and_stay_apart() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, O_DIRECT | O_NONBLOCK);
    for packet in [&b"abc"[..], b"de", b"f"] {
        world.write(world.root, writes, packet).unwrap();
    }
    assert_eq!(world.read(world.root, reads, 2).unwrap(), b"ab");
    world.restart_vfs();
    world.write(world.root, writes, b"gh").unwrap();
    for packet in [&b"de"[..], b"f", b"gh"] {
        assert_eq!(world.read(world.root, reads, 100).unwrap(), packet);
    }
    assert_eq!(world.read(world.root, reads, 100), Err(Errno::EAGAIN));
}

#[test]
fn an_event_comes_again_until_pm_has_dealt_with_it_whoever_dies() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    tell(&world, reads);
    for _ in 0..2 {
        world.write(world.root, writes, b"x").unwrap();
    }
    // A new vfs repeats the end of an exec.
    let next = |world: &World, mut done: u64| {
        loop {
            let reply = world.ask_as_pm(vfs::NextEvent { done }.message());
            match vfs::NextEvent::results(&reply)? {
                (vfs::EVENT_OWNER, ..) => return reply.result(),
                _ => done = reply.result()?,
            }
        }
    };
    let first = next(&world, 0).expect("the owner is told");
    assert_eq!(next(&world, 0), Ok(first), "a new pm has not dealt with it");
    world.restart_vfs();
    assert_eq!(next(&world, 0), Ok(first), "a new vfs has not lost it");
    let second = next(&world, first).expect("there are two");
    assert!(second > first);
    world.restart_vfs();
    assert_eq!(next(&world, first), Ok(second), "what has been dealt with does not come again");
    world.restart_vfs();
    assert_eq!(next(&world, second), Err(Errno::ENOENT), "a new vfs is told what its predecessor was not");
    assert_eq!(next(&world, second), Err(Errno::ENOENT));
}
