//! The vDSO and the page of the clocks, as programs see them and while vm dies.

use super::*;
use crate::simulation::{Touch, grant};
use abi::{
    Errno, Message,
    clock::ClockPage,
    layout::{VDSO_BYTES, VDSO_OFFSET},
    linux::nr,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A program with both pages, and where its vDSO is.
fn program_with_vdso() -> (Server<Simulation>, Endpoint, u64) {
    let (mut server, p) = with_program(2000);
    let linker = std::fs::read("/lib64/ld-linux-x86-64.so.2").expect("this machine has a dynamic linker");
    let image = files::image(&mut server, 9, linker);
    let request = vm::Exec { process: p, image, interpreter: 0, stack_bytes: 8 << 20, seed: 0 };
    let reply = server.ask(slot::PM, request.message());
    let (.., stack_end) = vm::Exec::results(&reply).expect("a real program");
    (server, p, stack_end + VDSO_OFFSET)
}

fn clocks(server: &mut Server<Simulation>, p: Endpoint, vdso: u64) -> Vec<u8> {
    (0..ClockPage::BYTES as u64).map(|at| server.load(p, vdso - VDSO_OFFSET + at).expect("readable")).collect()
}

fn change(server: &mut Server<Simulation>, done: bool) -> Result<u64, Errno> {
    server.ask(slot::PM, vm::ClockChange { done }.message()).result()
}

/// What the simulated kernel's clocks are, with a sequence.
fn content(sequence: u64, real_s: u64) -> Vec<u8> {
    ClockPage::content(sequence, 1000, 1 << 32, real_s * 1_000_000_000).to_vec()
}

#[test]
fn a_program_reads_the_clocks_and_executes_the_image_and_writes_to_neither() {
    let (mut server, p, vdso) = program_with_vdso();
    let (frame, flags) = server.memory.kernel.mapping(p, vdso).expect("mapped before it is touched");
    assert_eq!((frame, flags), (server.memory.vdso_image().1, abi::layout::map::EXECUTE));
    let image: Vec<u8> = (0..P).map(|at| server.load(p, vdso + at).expect("readable")).collect();
    assert!(image.starts_with(::vdso::IMAGE) && image[::vdso::IMAGE.len()..].iter().all(|byte| *byte == 0));
    assert_eq!(clocks(&mut server, p, vdso), content(2, 0));
    assert!((ClockPage::BYTES as u64..P).all(|at| server.load(p, vdso - VDSO_OFFSET + at) == Ok(0)));
    for (address, executable) in [(vdso, true), (vdso - VDSO_OFFSET, false)] {
        assert_eq!(server.store(p, address, 1), Err(Errno::EACCES));
        assert_eq!(server.touch(p, address, Touch::Execute).is_ok(), executable);
    }
    assert_eq!(server.load(p, vdso - VDSO_OFFSET + VDSO_BYTES), Err(Errno::EFAULT));
    invariants::check(&server);
}

#[test]
fn copies_of_the_image_are_private_and_of_the_clocks_there_are_none() {
    let (mut server, p, vdso) = program_with_vdso();
    fork(&mut server, p, program(1)).expect("enough memory");
    let call =
        |server: &mut Server<Simulation>, address, rights| server.call(p, nr::MPROTECT, [address, P, rights, 0, 0, 0]);
    assert_eq!(call(&mut server, vdso - VDSO_OFFSET, READ | WRITE), Err(Errno::EACCES));
    assert_eq!(call(&mut server, vdso, READ | WRITE), Ok(0));
    server.store(p, vdso, 1).expect("its own copy");
    let source = grant(&mut server, vec![9]);
    let poke = |server: &mut Server<Simulation>, process, address| {
        server.ask(slot::PM, vm::Poke { process, address, grant: source, bytes: 1 }.message()).result()
    };
    assert_eq!(poke(&mut server, program(1), vdso + 1), Ok(0));
    assert_eq!(poke(&mut server, program(1), vdso - VDSO_OFFSET), Err(Errno::EFAULT));
    fork(&mut server, program(1), program(2)).expect("enough memory");
    let seen =
        |server: &mut Server<Simulation>, process| [0, 1].map(|at| server.load(process, vdso + at).expect("readable"));
    assert_eq!(seen(&mut server, p), [1, b'E']);
    assert_eq!([1, 2].map(|number| seen(&mut server, program(number))), [[0x7f, 9]; 2]);
    assert_eq!(server.call(p, nr::MUNMAP, [vdso - VDSO_OFFSET, VDSO_BYTES, 0, 0, 0, 0]), Ok(0));
    assert_eq!(server.load(p, vdso), Err(Errno::EFAULT));
    invariants::check(&server);
    (0..3).for_each(|number| exit(&mut server, program(number)).expect("known"));
    invariants::check(&server);
    assert_eq!(server.memory.objects.get(server.memory.vdso_image().0).map(|object| object.pages.count()), Some(2));
}

#[test]
fn a_clock_that_is_being_set_is_marked_until_it_is_set() {
    let (mut server, p, vdso) = program_with_vdso();
    assert_eq!(change(&mut server, false), Ok(0));
    assert_eq!(clocks(&mut server, p, vdso), content(3, 0));
    server.memory.kernel.now_s = 77;
    assert_eq!(change(&mut server, false), Ok(0), "somebody else sets it, too");
    assert_eq!(change(&mut server, true), Ok(0));
    assert_eq!(clocks(&mut server, p, vdso), content(4, 77));
    assert_eq!(change(&mut server, true), Ok(0), "a successor does not know");
    assert_eq!(clocks(&mut server, p, vdso), content(6, 77));
    let of_a_program = Message { source: p, ..vm::ClockChange { done: false }.message() };
    assert!(server.handle(&of_a_program).done().expect("answered").result().is_err());
    assert_eq!(clocks(&mut server, p, vdso), content(6, 77));
}

#[test]
fn a_death_at_any_kernel_call_leaves_the_mark_and_the_right_time() {
    for call in 1.. {
        let (mut server, p, vdso) = program_with_vdso();
        server.memory.kernel.dies_in = Some(call);
        for done in [false, true] {
            let message = Message { source: Endpoint::new(slot::PM, 1), ..vm::ClockChange { done }.message() };
            while catch_unwind(AssertUnwindSafe(|| server.handle(&message).done())).is_err() {
                server.recover(|_| true);
                invariants::check(&server);
            }
            // The program's own fault is not to be what vm dies of.
            let dies_in = server.memory.kernel.dies_in.take();
            let sequence = clocks(&mut server, p, vdso)[0];
            server.memory.kernel.dies_in = dies_in;
            assert_eq!(sequence.is_multiple_of(2), done, "{call}: {sequence}");
            server.memory.kernel.now_s = 5;
        }
        let is_over = server.memory.kernel.dies_in.take().is_some();
        let shown = clocks(&mut server, p, vdso);
        assert_eq!(shown, content(u64::from(shown[0]), 5));
        if is_over {
            return assert!(call > 6, "only {call} calls");
        }
    }
}
