//! System V segments: what counts as an attach, how long the memory lives, where a segment may lie, and what deaths of vm leave.

use super::*;
use abi::{
    Errno, Message,
    linux::nr,
    vm::{ATTACH_MAKE, ATTACH_REPLACE},
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const NUMBER: u64 = 77;
const PAGES: u64 = 6;
const ARENA: u64 = 0x4000_0000;
const MAKE: u64 = READ | WRITE | ATTACH_MAKE;

/// An attach by the call with this number.
fn attach_by(call: u64, process: Endpoint, address: u64, flags: u64) -> Message {
    vm::SegmentAttach { process, call, segment: NUMBER, pages: PAGES, address, flags }.message()
}

fn attach(server: &mut Server<Simulation>, process: Endpoint, address: u64, flags: u64) -> Result<u64, Errno> {
    server.memory.kernel.now_s += 1;
    let reply = server.ask(slot::PM, attach_by(server.memory.kernel.now_s, process, address, flags));
    reply.result().and_then(|_| vm::SegmentAttach::results(&reply))
}

/// Mappings, resident pages, when one came and went, and who did that.
fn status(server: &mut Server<Simulation>) -> Option<(u64, u64, u64, u64, u64)> {
    invariants::check(server);
    let reply = server.ask(slot::PM, vm::SegmentStatus { segment: NUMBER }.message());
    reply.result().and_then(|_| vm::SegmentStatus::results(&reply)).ok()
}

fn attaches(server: &mut Server<Simulation>) -> Option<u64> {
    status(server).map(|(attaches, ..)| attaches)
}

fn release(server: &mut Server<Simulation>) -> u64 {
    server.ask(slot::PM, vm::SegmentRelease { segment: NUMBER }.message()).words[1]
}

fn detach(server: &mut Server<Simulation>, process: Endpoint, address: u64) -> Result<u64, Errno> {
    server.memory.kernel.now_s += 1;
    server.call(process, nr::SHMDT, [address, 0, 0, 0, 0, 0])
}

fn fork_as(server: &mut Server<Simulation>, parent: Endpoint, child: Endpoint, pid: u64) {
    server.memory.kernel.now_s += 1;
    server.ask(slot::PM, vm::Fork { parent, child, share: false, pid }.message()).result().expect("forked");
}

#[test]
fn all_who_attach_a_segment_see_the_same_memory_which_begins_as_zeros() {
    let (mut server, p) = with_program(512);
    let (first, second) = (attach(&mut server, p, 0, MAKE).unwrap(), attach(&mut server, p, ARENA, MAKE).unwrap());
    assert_eq!((second, server.load(p, first + P)), (ARENA, Ok(0)));
    server.store(p, first + P, 9).expect("writable");
    assert_eq!((server.load(p, second + P), server.load(p, second + PAGES * P)), (Ok(9), Err(Errno::EFAULT)));
    assert_eq!(status(&mut server), Some((2, 1, 2, 0, 1)), "one page was touched");
}

#[test]
fn an_attach_is_a_mapping_whoever_made_it_and_the_last_to_come_or_go_is_known() {
    let (mut server, p) = with_program(512);
    let child = program(1);
    attach(&mut server, p, ARENA, MAKE).unwrap();
    fork_as(&mut server, p, child, 2);
    assert_eq!(status(&mut server), Some((2, 0, 2, 0, 1)), "fork is the parent's doing");
    server.memory.kernel.now_s = 10;
    server.call(child, nr::MUNMAP, [ARENA + P, P, 0, 0, 0, 0]).expect("mapped");
    assert_eq!(status(&mut server), Some((3, 0, 10, 10, 2)), "both ends are left");
    server.call(child, nr::MUNMAP, [ARENA + 2 * P, P, 0, 0, 0, 0]).expect("mapped");
    server.call(child, nr::MUNMAP, [ARENA, P, 0, 0, 0, 0]).expect("mapped");
    assert_eq!(attaches(&mut server), Some(2));
    server.memory.kernel.now_s = 20;
    exit(&mut server, child).expect("known");
    assert_eq!(status(&mut server), Some((1, 0, 10, 20, 2)));
    assert_eq!(detach(&mut server, p, ARENA), Ok(0));
    assert_eq!(status(&mut server), Some((0, 0, 10, 21, 1)), "it stays until it is released");
    assert_eq!(detach(&mut server, p, ARENA), Err(Errno::EINVAL));
}

#[test]
fn rights_that_differ_split_an_attach_and_the_same_rights_join_it_again() {
    let (mut server, p) = with_program(512);
    attach(&mut server, p, ARENA, MAKE).unwrap();
    server.call(p, nr::MPROTECT, [ARENA + P, P, READ, 0, 0, 0]).expect("mapped");
    assert_eq!(attaches(&mut server), Some(3));
    server.call(p, nr::MPROTECT, [ARENA + P, P, READ | WRITE, 0, 0, 0]).expect("mapped");
    assert_eq!(attaches(&mut server), Some(1));
    server.call(p, nr::MADVISE, [ARENA, PAGES * P, 10, 0, 0, 0]).expect("mapped");
    fork_as(&mut server, p, program(1), 2);
    assert_eq!(attaches(&mut server), Some(1), "MADV_DONTFORK");
}

#[test]
fn a_moved_attach_is_one_and_grows_into_nothing() {
    let (mut server, p) = with_program(512);
    attach(&mut server, p, ARENA, MAKE).unwrap();
    server.store(p, ARENA, 5).expect("writable");
    let new = server.call(p, nr::MREMAP, [ARENA, PAGES * P, (PAGES + 1) * P, 3, ARENA + 64 * P, 0]).expect("moved");
    assert_eq!((attaches(&mut server), server.load(p, new)), (Some(1), Ok(5)));
    assert_eq!(server.load(p, new + PAGES * P), Err(Errno::EIO), "behind its end");
    assert_eq!(server.call(p, nr::MREMAP, [new, 0, PAGES * P, 1, 0, 0]).map(|other| other != new), Ok(true));
    assert_eq!(attaches(&mut server), Some(2));
    assert_eq!(detach(&mut server, p, new), Ok(0));
    assert_eq!(attaches(&mut server), Some(1));
}

#[test]
fn a_released_segment_is_freed_with_its_last_mapping() {
    let (mut server, p) = with_program(512);
    let before = server.memory.frames.free();
    assert_eq!(release(&mut server), 0, "never attached");
    attach(&mut server, p, ARENA, MAKE).unwrap();
    server.store(p, ARENA, 5).expect("writable");
    assert_eq!((release(&mut server), release(&mut server)), (1, 1));
    assert_eq!(attach(&mut server, p, 0, READ | WRITE).map(|second| second != ARENA), Ok(true));
    assert_eq!(attaches(&mut server), Some(2));
    exit(&mut server, p).expect("known");
    assert_eq!((attaches(&mut server), attach(&mut server, p, 0, READ)), (None, Err(Errno::ESRCH)));
    assert!(server.memory.frames.free() >= before);
    let (mut server, p) = with_program(512);
    attach(&mut server, p, ARENA, MAKE).unwrap();
    assert_eq!((detach(&mut server, p, ARENA), release(&mut server), attaches(&mut server)), (Ok(0), 0, None));
    assert_eq!(attach(&mut server, p, 0, READ), Err(Errno::EINVAL));
}

#[test]
fn an_address_must_be_free_unless_it_is_to_be_replaced() {
    let (mut server, p) = with_program(512);
    attach(&mut server, p, ARENA, MAKE).unwrap();
    assert_eq!(attach(&mut server, p, ARENA + P, MAKE), Err(Errno::EINVAL));
    assert_eq!(attach(&mut server, p, ARENA + 1, MAKE), Err(Errno::EINVAL));
    assert_eq!(attach(&mut server, p, !0xfff, MAKE), Err(Errno::EINVAL));
    assert_eq!(attach(&mut server, p, 0x7fff_ffff_f000, MAKE), Err(Errno::ENOMEM));
    assert_eq!(attach(&mut server, p, P, MAKE), Err(Errno::EPERM));
    assert_eq!(attach(&mut server, p, ARENA + P, MAKE | ATTACH_REPLACE), Ok(ARENA + P));
    assert_eq!(attaches(&mut server), Some(2), "one page of the first is left");
    assert_eq!(detach(&mut server, p, ARENA), Ok(0));
    assert_eq!((attaches(&mut server), server.load(p, ARENA + P)), (Some(1), Ok(0)));
}

#[test]
fn a_segment_attached_for_reading_never_becomes_writable() {
    let (mut server, p) = with_program(512);
    attach(&mut server, p, ARENA, READ | ATTACH_MAKE).unwrap();
    assert_eq!(server.store(p, ARENA, 1), Err(Errno::EACCES));
    assert_eq!(server.call(p, nr::MPROTECT, [ARENA, P, READ | WRITE, 0, 0, 0]), Err(Errno::EACCES));
}

#[test]
fn others_than_pm_may_not_ask() {
    let (mut server, p) = with_program(512);
    for request in [attach_by(1, p, 0, MAKE), vm::SegmentRelease { segment: 1 }.message()] {
        assert_eq!(server.ask(slot::VFS, request).result(), Err(Errno::EPERM));
    }
}

/// Has vm serve a message, through as many lives as it takes.
fn serve(server: &mut Server<Simulation>, message: &Message) -> Message {
    loop {
        match catch_unwind(AssertUnwindSafe(|| server.handle(message).done())) {
            Ok(reply) => return reply.expect("answered at once"),
            Err(_) => {
                server.recover(|_| true);
                invariants::check(server);
            }
        }
    }
}

#[test]
fn attaches_are_exact_whenever_vm_dies_and_whatever_pm_repeats() {
    let mut calls = 0;
    loop {
        calls += 1;
        let (mut server, p) = with_program(512);
        let child = program(1);
        server.memory.kernel.dies_in = Some(calls);
        let from_pm = |message: Message| Message { source: Endpoint::new(slot::PM, 1), ..message };
        let from = |source, number: u32, words: [u64; 7]| Message { source, words, ..Message::new(number) };
        // A pm that has died in between asks again.
        let addresses = [0, 1].map(|_| serve(&mut server, &from_pm(attach_by(1, p, 0, MAKE))).words[1]);
        assert_eq!(addresses[0], addresses[1]);
        serve(&mut server, &from_pm(attach_by(2, p, ARENA, MAKE))).result().expect("attached");
        let store = abi::kernel::Fault { address: ARENA, access: abi::kernel::ACCESS_WRITE, ip: 0 };
        serve(&mut server, &from(p, 0, [0; 7]));
        serve(&mut server, &Message { source: p, ..store.message() }).result().expect("writable");
        serve(&mut server, &from_pm(vm::Fork { parent: p, child, share: false, pid: 2 }.message()));
        assert_eq!(attaches(&mut server), Some(4));
        serve(&mut server, &from(child, nr::MUNMAP, [ARENA + P, P, 0, 0, 0, 0, 7]));
        assert_eq!(attaches(&mut server), Some(5));
        let detached = serve(&mut server, &from(p, nr::SHMDT, [ARENA, 0, 0, 0, 0, 0, 8])).result();
        assert!(matches!(detached, Ok(0) | Err(Errno::EINVAL)), "{detached:?}");
        serve(&mut server, &from_pm(vm::SegmentRelease { segment: NUMBER }.message()));
        serve(&mut server, &from_pm(vm::Exit { process: child }.message()));
        assert_eq!(attaches(&mut server), Some(1));
        serve(&mut server, &from_pm(vm::Exit { process: p }.message()));
        assert_eq!(attaches(&mut server), None);
        if server.memory.kernel.dies_in.is_some() {
            break;
        }
    }
    assert!(calls > 10, "only {calls} calls");
}
