//! Each allocation of a workload fails in turn, and each kernel call that may be refused: the request that needed it gets `ENOMEM`, nothing
//! else is disturbed, and repeated it succeeds.

use super::*;
use crate::simulation::{Touch, grant};
use abi::{Errno, linux::nr};
use sys::fallible;

const ARENA: u64 = 0x10_0000;
const MOVED: u64 = 0x80_0000;
const SHARED_AT: u64 = 0x4000_0000;
const MAY_MOVE_FIXED: u64 = 3;
const DONT_NEED: u64 = 4;
const FILE_BYTES: u64 = 2 * P + 100;

type Vm = Server<Simulation>;
type Done = Result<u64, Errno>;

/// A step of the workload: what it does, and how.
type Operation = (&'static str, fn(&mut Vm) -> Done);

const WORKLOAD: &[Operation] = &[
    ("map", |vm| vm.call(program(0), nr::MMAP, [ARENA, 8 * P, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, 0, 0])),
    ("fill", |vm| store_all(vm, program(0), ARENA, 8, 1)),
    ("map shared", |vm| {
        vm.call(program(0), nr::MMAP, [SHARED_AT, 3 * P, READ | WRITE, SHARED | ANONYMOUS | FIXED, 0, 0])
    }),
    ("fill shared", |vm| store_all(vm, program(0), SHARED_AT, 3, 40)),
    ("fork", |vm| fork(vm, program(0), program(1)).map(|()| 0)),
    ("copy on write", |vm| store_all(vm, program(1), ARENA + 3 * P, 2, 80)),
    ("write shared", |vm| store_all(vm, program(1), SHARED_AT, 1, 90)),
    ("protect", |vm| vm.call(program(0), nr::MPROTECT, [ARENA + 2 * P, 2 * P, READ, 0, 0, 0])),
    ("move", |vm| vm.call(program(0), nr::MREMAP, [ARENA + 6 * P, 2 * P, 4 * P, MAY_MOVE_FIXED, MOVED, 0])),
    ("fill moved", |vm| store_all(vm, program(0), MOVED + 2 * P, 2, 120)),
    ("unmap", |vm| vm.call(program(0), nr::MUNMAP, [ARENA + P, P, 0, 0, 0, 0])),
    ("discard", |vm| vm.call(program(0), nr::MADVISE, [ARENA, P, DONT_NEED, 0, 0, 0])),
    ("load an image", load_image),
    ("second fork", |vm| fork(vm, program(1), program(2)).map(|()| 0)),
    ("exit", |vm| exit(vm, program(1)).map(|()| 0)),
];

/// Stores `first`, `first + 1` … into successive pages.
fn store_all(vm: &mut Vm, process: Endpoint, start: u64, pages: u64, first: u8) -> Done {
    for page in 0..pages {
        vm.touch(process, start + page * P, Touch::Write(first + page as u8))?;
    }
    Ok(0)
}

/// Opens and fills an image as vfs does.
fn load_image(vm: &mut Vm) -> Done {
    let open = vm::ImageOpen { device: 1, inode: 7, version: 1, bytes: FILE_BYTES };
    let (image, _) = vm::ImageOpen::results(&vm.ask(slot::VFS, open.message()))?;
    let content = grant(vm, vec![5; FILE_BYTES as usize]);
    let fill = vm::ImageFill { image, offset: 0, grant: content, bytes: FILE_BYTES };
    let result = vm.ask(slot::VFS, fill.message()).result();
    vm.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("opened");
    result
}

/// What programs see after the workload.
fn outcome(vm: &mut Vm) -> Vec<Result<u8, Errno>> {
    let pages = (0..8).map(|page| ARENA + page * P);
    let pages = pages.chain((0..4).map(|page| MOVED + page * P)).chain((0..3).map(|page| SHARED_AT + page * P));
    let views: Vec<(Endpoint, u64)> = pages.flat_map(|at| [(program(0), at), (program(2), at)]).collect();
    views.into_iter().map(|(process, at)| vm.load(process, at)).collect()
}

/// Runs the workload, of which one request may fail.
fn run(vm: &mut Vm, what: &str) {
    let mut failures = 0;
    for (name, operation) in WORKLOAD {
        let mut result = operation(vm);
        if result == Err(Errno::ENOMEM) {
            failures += 1;
            invariants::check(vm);
            result = operation(vm);
        }
        assert!(result.is_ok(), "{name}: {result:?}, {what}");
        invariants::check(vm);
    }
    assert!(failures <= 1, "{what}");
}

/// What programs see when nothing fails.
fn expected_outcome() -> Vec<Result<u8, Errno>> {
    let (mut vm, _) = with_program(512);
    run(&mut vm, "nothing fails");
    let expected = outcome(&mut vm);
    assert!(expected.contains(&Ok(81)) && expected.contains(&Err(Errno::EFAULT)));
    expected
}

#[test]
fn brk_tells_where_the_heap_ends_even_without_memory() {
    let (mut server, p) = with_program(512);
    let end = server.call(p, nr::BRK, [0; 6]).expect("an end");
    fallible::fail_after(1);
    assert_eq!(server.call(p, nr::BRK, [end + P, 0, 0, 0, 0, 0]), Ok(end));
    assert_eq!(server.call(p, nr::BRK, [end + P, 0, 0, 0, 0, 0]), Ok(end + P));
}

#[test]
fn each_allocation_may_fail_without_harm() {
    let expected = expected_outcome();
    let mut n = 0;
    let mut is_over = false;
    while !is_over {
        n += 1;
        let what = format!("allocation {n} fails");
        let (mut vm, _) = with_program(512);
        fallible::fail_after(n);
        run(&mut vm, &what);
        is_over = fallible::is_failure_pending();
        fallible::fail_after(0);
        assert_eq!(outcome(&mut vm), expected, "{what}");
    }
    assert!(n > 40, "only {n} allocations");
}

#[test]
fn each_kernel_call_may_be_refused_without_harm() {
    let expected = expected_outcome();
    for is_contained in [false, true] {
        let mut n = 0;
        let mut is_over = false;
        while !is_over {
            n += 1;
            let what = format!("call {n} is refused, {is_contained}");
            let (mut vm, p) = with_program(512);
            if is_contained {
                let request = vm::SetContainer { process: p, container: 5, pages: 300 };
                vm.ask(slot::PM, request.message()).result().expect("pm may");
            }
            vm.memory.kernel.refuses_in = Some(n);
            run(&mut vm, &what);
            is_over = vm.memory.kernel.refuses_in.take().is_some();
            assert_eq!(outcome(&mut vm), expected, "{what}");
            for number in [0, 2] {
                exit(&mut vm, program(number)).expect("it lives");
            }
            invariants::check(&vm);
            let used = vm.memory.frames.total() - vm.memory.frames.free();
            let image = FILE_BYTES.div_ceil(P);
            assert_eq!(used as u64, vm.memory.own_frames() + image, "{what}: frames are lost");
        }
        assert!(n > 30, "only {n} calls");
    }
}
