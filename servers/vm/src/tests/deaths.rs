//! vm dies at every one of its kernel calls, starts again with the tables as they were, and is asked again: everything is counted
//! right then, and programs find their memory as it should be.

use super::*;
use crate::simulation::Touch;
use abi::{
    Errno, Message,
    kernel::{ACCESS_WRITE, Fault},
    linux::nr,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ARENA: u64 = 0x100 * P;
const PAGES: u64 = 150;

/// Has vm serve a message, through as many lives as it takes. → the answer, deaths.
fn serve(server: &mut Server<Simulation>, message: &Message) -> (Message, u32) {
    for deaths in 0.. {
        match catch_unwind(AssertUnwindSafe(|| server.handle(message).done())) {
            Ok(reply) => return (reply.expect("answered at once"), deaths),
            Err(_) => {
                server.recover(|_| true);
                invariants::check(server);
            }
        }
    }
    unreachable!()
}

fn call(server: &mut Server<Simulation>, process: Endpoint, number: u32, arguments: &[u64]) -> Result<u64, Errno> {
    let mut message = Message { source: process, ..Message::new(number) };
    message.words[..arguments.len()].copy_from_slice(arguments);
    serve(server, &message).0.result()
}

fn ask(server: &mut Server<Simulation>, request: Message) -> Result<u64, Errno> {
    serve(server, &Message { source: Endpoint::new(slot::PM, 1), ..request }).0.result()
}

fn fault(server: &mut Server<Simulation>, process: Endpoint, page: u64, access: u64) {
    let fault = Fault { address: ARENA + page * P, access, ip: 0 };
    serve(server, &Message { source: process, ..fault.message() }).0.result().expect("allowed");
}

fn store(server: &mut Server<Simulation>, process: Endpoint, page: u64, value: u8) {
    let address = ARENA + page * P;
    fault(server, process, page, ACCESS_WRITE);
    // The page may have gone from the kernel's tables once more.
    server.touch(process, address, Touch::Write(value)).expect("writable");
}

fn check_pages(server: &mut Server<Simulation>, process: Endpoint, value: impl Fn(u64) -> u8) {
    for page in (0..PAGES).step_by(7) {
        fault(server, process, page, 0);
        assert_eq!(server.load(process, ARENA + page * P), Ok(value(page)), "page {page} of {process:?}");
    }
}

/// Maps, writes, forks, writes on both sides, changes rights, unmaps, shares, ends.
fn scenario(server: &mut Server<Simulation>, parent: Endpoint) {
    let (child, thread) = (program(1), program(2));
    let flags = PRIVATE | FIXED | ANONYMOUS;
    call(server, parent, nr::MMAP, &[ARENA, PAGES * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped");
    (0..PAGES).step_by(7).for_each(|page| store(server, parent, page, page as u8 + 1));
    ask(server, vm::Fork { parent, child, share: false, pid: 0 }.message()).expect("forked");
    store(server, child, 7, 200);
    store(server, parent, 14, 201);
    check_pages(server, child, |page| if page == 7 { 200 } else { page as u8 + 1 });
    check_pages(server, parent, |page| if page == 14 { 201 } else { page as u8 + 1 });
    call(server, child, nr::MPROTECT, &[ARENA, 20 * P, READ]).expect("protected");
    assert_eq!(server.store(child, ARENA, 9), Err(Errno::EACCES));
    call(server, child, nr::MUNMAP, &[ARENA + 50 * P, 20 * P]).expect("unmapped");
    assert_eq!(server.load(child, ARENA + 56 * P), Err(Errno::EFAULT));
    ask(server, vm::Fork { parent, child: thread, share: true, pid: 0 }.message()).expect("shared");
    let from_pm = |request: Message| Message { source: Endpoint::new(slot::PM, 1), ..request };
    let (used, _) = serve(server, &from_pm(vm::MemoryUse { process: child }.message()));
    let used = vm::MemoryUse::results(&used).expect("it exists");
    assert!(used.0 > 20, "{used:?}");
    // pm may have died before it knew.
    for _ in 0..2 {
        let (gone, _) = serve(server, &from_pm(vm::Exit { process: child }.message()));
        assert_eq!(vm::Exit::results(&gone), Ok(used));
    }
    check_pages(server, thread, |page| if page == 14 { 201 } else { page as u8 + 1 });
}

#[test]
fn a_death_at_any_kernel_call_loses_nothing() {
    let mut call = 0;
    loop {
        call += 1;
        let (mut server, parent) = with_program(2000);
        server.memory.kernel.dies_in = Some(call);
        scenario(&mut server, parent);
        invariants::check(&server);
        if server.memory.kernel.dies_in.is_some() {
            break;
        }
    }
    assert!(call > 30, "only {call} calls");
}

#[test]
fn what_kills_vm_twice_is_refused() {
    let (mut server, parent) = with_program(2000);
    let mut message = Message { source: parent, ..Message::new(nr::MMAP) };
    message.words = [ARENA, P, READ | WRITE, PRIVATE | FIXED | ANONYMOUS, u64::MAX, 0, 5];
    server.handle(&message).done().expect("answered").result().expect("mapped");
    let fault = Message { source: parent, ..Fault { address: ARENA, access: ACCESS_WRITE, ip: 0 }.message() };
    for _ in 0..2 {
        server.memory.kernel.dies_in = Some(1);
        assert!(catch_unwind(AssertUnwindSafe(|| server.handle(&fault))).is_err());
        server.recover(|_| true);
        invariants::check(&server);
    }
    assert_eq!(server.handle(&fault).done().expect("answered").result(), Err(Errno::EIO));
    assert!(server.handle(&fault).done().expect("answered").result().is_ok(), "the next one is served");
}

#[test]
fn a_program_with_broken_tables_loses_its_memory_and_nobody_else_does() {
    let (mut server, parent) = with_program(2000);
    let child = program(1);
    let flags = PRIVATE | FIXED | ANONYMOUS;
    call(&mut server, parent, nr::MMAP, &[ARENA, PAGES * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped");
    (0..PAGES).step_by(7).for_each(|page| store(&mut server, parent, page, page as u8 + 1));
    fork(&mut server, parent, child).expect("forked");
    server.processes.space(child).expect("there").pages.break_order();
    let fault = Message { source: child, ..Fault { address: ARENA, access: ACCESS_WRITE, ip: 0 }.message() };
    server.memory.kernel.dies_in = Some(1);
    assert!(catch_unwind(AssertUnwindSafe(|| server.handle(&fault))).is_err());
    server.recover(|_| true);
    invariants::check(&server);
    assert_eq!(server.load(child, ARENA), Err(Errno::EFAULT));
    check_pages(&mut server, parent, |page| page as u8 + 1);
}

#[test]
fn pages_are_counted_anew_after_a_death() {
    let (mut server, parent) = with_program(2000);
    let flags = PRIVATE | FIXED | ANONYMOUS;
    call(&mut server, parent, nr::MMAP, &[ARENA, PAGES * P, READ | WRITE, flags, u64::MAX, 0]).expect("mapped");
    (0..PAGES).step_by(7).for_each(|page| store(&mut server, parent, page, page as u8 + 1));
    server.processes.space(parent).expect("there").pages.break_count();
    server.memory.kernel.dies_in = Some(1);
    let fault = Message { source: parent, ..Fault { address: ARENA, access: ACCESS_WRITE, ip: 0 }.message() };
    assert!(catch_unwind(AssertUnwindSafe(|| server.handle(&fault))).is_err());
    server.recover(|_| true);
    invariants::check(&server);
    check_pages(&mut server, parent, |page| page as u8 + 1);
}
