//! Memory of containers: charged once to who took it, refused at the limit, given back at the last end, whatever vm dies at.

use super::*;
use crate::memory::frames::Payer;
use crate::memory::pages::LEAF_PAGES;
use crate::simulation::Touch;
use abi::{Errno, Message, linux::nr, vm::ATTACH_MAKE};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ARENA: u64 = 0x1000_0000;
const SHARED_AT: u64 = 0x2000_0000;
const CONTAINER: u64 = 5;
const POPULATE: u64 = 0x8000;

type Vm = Server<Simulation>;

fn set(server: &mut Vm, process: Endpoint, pages: u64) -> Result<u64, Errno> {
    server.ask(slot::PM, vm::SetContainer { process, container: CONTAINER, pages }.message()).result()
}

fn paid(server: &mut Vm) -> u64 {
    invariants::check(server);
    let reply = server.ask(slot::PM, vm::ContainerMemory { container: CONTAINER }.message());
    vm::ContainerMemory::results(&reply).expect("pm may ask")
}

fn map(server: &mut Vm, process: Endpoint, at: u64, pages: u64, sharing: u64) {
    let flags = sharing | FIXED | ANONYMOUS;
    server.call(process, nr::MMAP, [at, pages * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped");
}

/// Stores to successive pages until that fails. Returns how many there were.
fn fill(server: &mut Vm, process: Endpoint, at: u64, pages: u64) -> u64 {
    (0..pages).find(|page| server.touch(process, at + page * P, Touch::Write(7)).is_err()).unwrap_or(pages)
}

/// Two programs of a machine with room, the first in the container.
fn contained(pages: u64) -> (Vm, Endpoint) {
    let (mut server, outside) = with_program(4000);
    let inside = program(1);
    fork(&mut server, outside, inside).expect("forked");
    set(&mut server, inside, pages).expect("pm may");
    (server, inside)
}

#[test]
fn a_container_gets_its_pages_and_no_more_and_nobody_else_is_concerned() {
    let (mut server, inside) = contained(200);
    map(&mut server, inside, ARENA, 500, PRIVATE);
    let got = fill(&mut server, inside, ARENA, 500);
    assert!((100..=200).contains(&got), "{got}");
    let full = paid(&mut server);
    assert!((185..=200).contains(&full), "{full}");
    assert_eq!(server.touch(inside, ARENA + got * P, Touch::Write(1)), Err(Errno::ENOMEM));
    map(&mut server, program(0), ARENA, 500, PRIVATE);
    assert_eq!(fill(&mut server, program(0), ARENA, 500), 500);
    assert_eq!(paid(&mut server), full);
    // What it gives back it may have again.
    server.call(inside, nr::MUNMAP, [ARENA, 50 * P, 0, 0, 0, 0]).expect("unmapped");
    assert_eq!(paid(&mut server), full - 50);
    map(&mut server, inside, SHARED_AT, 500, PRIVATE);
    assert!((30..=50).contains(&fill(&mut server, inside, SHARED_AT, 500)));
    exit(&mut server, inside).expect("known");
    assert_eq!(paid(&mut server), 0);
}

#[test]
fn what_fork_shares_counts_once_and_a_copy_when_it_is_made() {
    let (mut server, inside) = contained(1000);
    map(&mut server, inside, ARENA, 100, PRIVATE);
    assert_eq!(fill(&mut server, inside, ARENA, 100), 100);
    let before = paid(&mut server);
    let child = program(2);
    fork(&mut server, inside, child).expect("forked");
    let tables = server.processes.space(child).expect("there").table_frames;
    assert_eq!(paid(&mut server), before + tables);
    assert_eq!(fill(&mut server, child, ARENA, 60), 60);
    assert_eq!(paid(&mut server), before + tables + 60);
    exit(&mut server, inside).expect("known");
    let left = paid(&mut server);
    assert!(left >= 100, "the child has it all: {left}");
    exit(&mut server, child).expect("known");
    assert_eq!(paid(&mut server), 0);
}

#[test]
fn shared_memory_and_segments_are_paid_for_by_who_touches_them_first() {
    let (mut server, inside) = contained(1000);
    map(&mut server, inside, SHARED_AT, 40, SHARED);
    let child = program(2);
    fork(&mut server, inside, child).expect("forked");
    let before = paid(&mut server);
    assert_eq!(fill(&mut server, inside, SHARED_AT, 40), 40);
    assert_eq!(fill(&mut server, child, SHARED_AT, 40), 40);
    assert!((40..=72).contains(&(paid(&mut server) - before)), "pages once, and tables");
    let attach = vm::SegmentAttach {
        process: inside,
        call: 1,
        segment: 9,
        pages: 30,
        address: 0,
        flags: READ | WRITE | ATTACH_MAKE,
    };
    let at = vm::SegmentAttach::results(&server.ask(slot::PM, attach.message())).expect("attached");
    assert_eq!(fill(&mut server, inside, at, 30), 30);
    for process in [inside, child] {
        exit(&mut server, process).expect("known");
    }
    assert_eq!(paid(&mut server), 30, "pm has the segment");
    server.ask(slot::PM, vm::SegmentRelease { segment: 9 }.message()).result().expect("pm may");
    assert_eq!(paid(&mut server), 0);
}

/// Touches pages that have no table in common.
fn touch_far(server: &mut Vm, inside: Endpoint) {
    const FAR: u64 = 1 << 30;
    for at in (1..60).map(|number| number * FAR) {
        map(server, inside, at, 1, PRIVATE);
        // At the limit there may be a frame, and no table for it.
        let touched = server.touch(inside, at, Touch::Write(1));
        assert!(matches!(touched, Ok(_) | Err(Errno::ENOMEM)), "{touched:?}");
    }
}

#[test]
fn page_tables_of_a_fork_that_fails_are_given_back() {
    // Two stretches, each with more tables than one gift to the kernel's pool has: a small region in each leaf.
    const PAGES: u64 = 40 * 512;
    let small = |page: &u64| page.is_multiple_of(LEAF_PAGES) && !(PAGES / 2..PAGES / 2 + LEAF_PAGES).contains(page);
    for more in 0..100 {
        let (mut server, outside) = with_program(2 * PAGES as u32);
        let inside = program(1);
        fork(&mut server, outside, inside).expect("forked");
        set(&mut server, inside, 2 * PAGES).expect("pm may");
        for page in (0..PAGES).filter(small) {
            map(&mut server, inside, ARENA + page * P, 1, PRIVATE);
            assert_eq!(fill(&mut server, inside, ARENA + page * P, 1), 1);
        }
        let before = paid(&mut server);
        set(&mut server, inside, before + more).expect("pm may");
        if fork(&mut server, inside, program(2)).is_ok() {
            assert!(more > 20, "{more} pages are enough for two stretches");
            return;
        }
        assert_eq!(paid(&mut server), before, "with {more} more");
    }
    unreachable!("a fork needs fewer tables");
}

#[test]
fn a_successor_of_vm_counts_frames_and_page_tables_alike() {
    let (mut server, inside) = contained(1000);
    touch_far(&mut server, inside);
    let before = paid(&mut server);
    assert!(server.processes.space(inside).expect("there").table_frames > 0);
    for _ in 0..2 {
        server.recover(|_| true);
        assert_eq!(paid(&mut server), before);
    }
}

#[test]
fn page_tables_count_and_go_with_their_space() {
    for limit in (20..60).chain([1000]) {
        let (mut server, inside) = contained(limit);
        touch_far(&mut server, inside);
        assert!(server.processes.space(inside).expect("there").table_frames > 0);
        assert!(paid(&mut server) <= limit);
        exit(&mut server, inside).expect("known");
        assert_eq!(paid(&mut server), 0);
    }
}

#[test]
fn only_pm_says_who_is_in_which_container_and_there_are_so_many() {
    let (mut server, inside) = contained(10);
    let request = vm::SetContainer { process: inside, container: CONTAINER, pages: 9 };
    assert_eq!(server.ask(slot::VFS, request.message()).result(), Err(Errno::EPERM));
    for container in [0, 63, u64::MAX] {
        let request = vm::SetContainer { process: inside, container, pages: 9 };
        assert_eq!(server.ask(slot::PM, request.message()).result(), Err(Errno::EINVAL));
    }
}

/// Works at the limit, by messages that are sent again when vm dies. Returns what the container pays for.
fn work(server: &mut Vm, inside: Endpoint) -> u64 {
    let mut serve = |message: &Message| loop {
        match catch_unwind(AssertUnwindSafe(|| server.handle(message).done())) {
            Ok(reply) => return reply.expect("answered at once").result(),
            Err(_) => {
                server.recover(|_| true);
                invariants::check(server);
            }
        }
    };
    let mut call = |number, arguments: [u64; 6]| {
        let mut message = Message { source: inside, ..Message::new(number) };
        message.words[..6].copy_from_slice(&arguments);
        serve(&message)
    };
    let flags = PRIVATE | FIXED | ANONYMOUS | POPULATE;
    call(nr::MMAP, [ARENA, 60 * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped");
    call(nr::MUNMAP, [ARENA + 10 * P, 20 * P, 0, 0, 0, 0]).expect("unmapped");
    call(nr::MMAP, [SHARED_AT, 400 * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped as far as it goes");
    let child = program(2);
    let fork = vm::Fork { parent: inside, child, share: false, pid: 0 }.message();
    // At the limit there may be no page tables for it.
    let forked = serve(&Message { source: Endpoint::new(slot::PM, 1), ..fork });
    assert!(matches!(forked, Ok(0) | Err(Errno::ENOMEM)), "{forked:?}");
    if forked.is_ok() {
        let gone = serve(&Message { source: Endpoint::new(slot::PM, 1), ..vm::Exit { process: child }.message() });
        assert!(matches!(gone, Ok(0) | Err(Errno::ESRCH)), "{gone:?}");
    }
    server.memory.frames.paid_by(Payer::container(CONTAINER).expect("is one"))
}

#[test]
fn the_account_is_right_after_a_death_at_any_kernel_call() {
    for call in 1.. {
        let (mut server, inside) = contained(200);
        server.memory.kernel.dies_in = Some(call);
        let total = work(&mut server, inside);
        invariants::check(&server);
        assert!(total <= 200, "{total} after a death at call {call}");
        if server.memory.kernel.dies_in.is_some() {
            assert!(call > 20, "only {call} calls");
            break;
        }
        server.memory.kernel.dies_in = None;
        exit(&mut server, inside).expect("known");
        assert_eq!(paid(&mut server), 0);
    }
}
