//! Files that are mapped shared and read by calls: the cache of vfs and the shared file have the same frames.

use super::cache::{exhaust, is_mapped, take, vfs, with_cache};
use super::shared_files::{map, open, resize, take as take_changed};
use super::*;
use abi::Errno;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sys::fallible;

const FIRST: u64 = 10;

/// vfs puts pages of a shared file into its cache, from page `FIRST` on. Returns which are shown, and which are zeros.
fn show(server: &mut Server<Simulation>, object: u64, offset: u64, pages: u64) -> Result<(u64, u64), Errno> {
    let reply = server.ask(slot::VFS, vm::SharedShow { object, offset, first: FIRST, pages }.message());
    invariants::check(server);
    vm::SharedShow::results(&reply)
}

/// A program that has mapped a file of three pages for writing; they begin with 1, 2 and 3. Returns the object, where it is mapped, and the address of the cache.
fn mapped() -> (Server<Simulation>, Endpoint, u64, u64, u64) {
    let (mut server, program, address) = with_cache();
    let object = open(&mut server, 3 * P);
    let content = (0..3 * P).map(|at| if at % P == 0 { (at / P) as u8 + 1 } else { 0 }).collect();
    shared_files::fill(&mut server, object, content);
    let at = map(&mut server, program, object, 3, READ | WRITE, true);
    (server, program, object, at, address)
}

/// What is at the start of each page of the cache from `FIRST` on.
fn cached<const N: usize>(server: &mut Server<Simulation>, address: u64) -> [Result<u8, Errno>; N] {
    core::array::from_fn(|page| server.load(vfs(), address + (FIRST + page as u64) * P))
}

#[test]
fn what_a_program_stores_is_in_the_cache() {
    let (mut server, program, object, at, address) = mapped();
    let free = server.memory.frames.free();
    assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)));
    assert_eq!(server.memory.frames.free(), free, "no memory is taken");
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(2), Ok(3)]);
    server.store(program, at + P, 7).expect("writable");
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(7), Ok(3)]);
    assert!(take_changed(&mut server, object, 0, 3 * P).is_some_and(|(offset, _)| offset == P), "and not in the file");
    server.store(program, at + P, 8).expect("writable again");
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(8), Ok(3)]);
}

#[test]
fn a_shared_file_shows_what_the_cache_has() {
    let (mut server, program, address) = with_cache();
    take(&mut server, FIRST, 2).expect("enough memory");
    (0..2).for_each(|page| server.store(vfs(), address + (FIRST + page) * P, page as u8 + 1).expect("present"));
    let object = open(&mut server, P + 100);
    let request = vm::ImageShow { image: object, offset: 0, first: FIRST, bytes: P + 100 };
    assert_eq!(server.ask(slot::VFS, request.message()).result(), Ok(0));
    let at = map(&mut server, program, object, 2, READ | WRITE, true);
    assert_eq!([at, at + P].map(|at| server.load(program, at)), [Ok(1), Ok(2)]);
    server.store(program, at, 9).expect("writable");
    assert_eq!(cached(&mut server, address), [Ok(9), Ok(2)]);
    invariants::check(&server);
}

#[test]
fn what_was_in_the_cache_is_free_again() {
    let (mut server, _, object, _, address) = mapped();
    let free = server.memory.frames.free();
    take(&mut server, FIRST, 3).expect("enough memory");
    assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)));
    assert!(server.memory.frames.free() + 2 >= free);
    assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)), "once more");
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(2), Ok(3)]);
}

#[test]
fn pages_that_are_taken_anew_are_others() {
    let (mut server, program, object, at, address) = mapped();
    show(&mut server, object, 0, 3).expect("a shared file");
    take(&mut server, FIRST + 1, 1).expect("enough memory");
    server.store(vfs(), address + (FIRST + 1) * P, 9).expect("present");
    assert_eq!(server.load(program, at + P), Ok(2));
    server.store(program, at, 5).expect("writable");
    assert_eq!(cached(&mut server, address), [Ok(5), Ok(9), Ok(3)]);
}

#[test]
fn pages_that_only_the_file_has_are_left_as_they_are() {
    let (mut server, program, address) = with_cache();
    let object = open(&mut server, 4 * P);
    take(&mut server, FIRST, 4).expect("enough memory");
    server.store(vfs(), address + (FIRST + 1) * P, 9).expect("present");
    let grant = crate::simulation::grant(&mut server, vec![7; P as usize]);
    let request = vm::ImageFill { image: object, offset: 2 * P, grant, bytes: P };
    server.ask(slot::VFS, request.message()).result().expect("within the file");
    resize(&mut server, object, 3 * P);
    resize(&mut server, object, 5 * P);
    assert_eq!(show(&mut server, object, 0, 6), Ok((0b100, 0b11000)), "nothing is behind the end");
    assert_eq!(cached::<3>(&mut server, address)[1..], [Ok(9), Ok(7)]);
    let at = map(&mut server, program, object, 5, READ | WRITE, true);
    server.store(program, at + 3 * P, 4).expect("zeros");
    assert_eq!(show(&mut server, object, 2 * P, 3), Ok((0b011, 0b100)));
    assert_eq!(cached(&mut server, address), [Ok(7), Ok(4)]);
}

#[test]
fn programs_keep_pages_that_the_cache_has_lost() {
    let (mut server, program, object, at, address) = mapped();
    show(&mut server, object, 0, 3).expect("a shared file");
    server.store(program, at, 5).expect("writable");
    let other = super::program(1);
    fork(&mut server, program, other).expect("enough memory");
    exhaust(&mut server, other);
    assert!(!is_mapped(&server, address, FIRST));
    assert_eq!(server.load(program, at), Ok(5));
}

#[test]
fn a_file_that_is_cut_or_closed_leaves_the_cache_its_pages() {
    let (mut server, program, object, _, address) = mapped();
    show(&mut server, object, 0, 3).expect("a shared file");
    resize(&mut server, object, P + 1);
    invariants::check(&server);
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(2), Ok(3)], "vfs forgets what is behind the end");
    exit(&mut server, program).expect("known");
    server.ask(slot::VFS, vm::SharedClose { object, lose: true }.message()).result().expect("not mapped");
    invariants::check(&server);
    assert_eq!(cached(&mut server, address), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!(show(&mut server, object, 0, 1), Err(Errno::EINVAL));
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let (mut server, program, object, _, _) = mapped();
    let image = files::image(&mut server, 99, vec![1; P as usize]);
    let ask = |server: &mut Server<Simulation>, object, offset, first, pages| {
        server.ask(slot::VFS, vm::SharedShow { object, offset, first, pages }.message()).result()
    };
    for (object, offset, first, pages) in [
        (image, 0, 0, 1),
        (999, 0, 0, 1),
        (object, 1, 0, 1),
        (object, u64::MAX - P + 1, 0, 2),
        (object, 0, 500, 1),
        (object, 0, u64::MAX, 1),
        (object, 0, 0, vm::CACHE_BATCH + 1),
    ] {
        let refused = ask(&mut server, object, offset, first, pages);
        assert_eq!(refused, Err(Errno::EINVAL), "{object:#x} from {offset:#x} at {first}, {pages} pages");
    }
    let request = vm::SharedShow { object, offset: 0, first: 0, pages: 1 };
    let foreign = abi::Message { source: program, ..request.message() };
    assert_eq!(server.handle(&foreign).done().expect("answered").result(), Err(Errno::EPERM));
    invariants::check(&server);
}

#[test]
fn each_allocation_may_fail_and_the_caller_alone_is_told() {
    for n in 1.. {
        let (mut server, program, object, at, address) = mapped();
        take(&mut server, FIRST, 2).expect("enough memory");
        server.store(program, at + P, 7).expect("writable");
        let free = server.memory.frames.free();
        fallible::fail_after(n);
        let result = show(&mut server, object, 0, 3);
        let failed = !fallible::is_failure_pending();
        fallible::fail_after(0);
        assert_eq!(result, if failed { Err(Errno::ENOMEM) } else { Ok((0b111, 0)) }, "with allocation {n} failing");
        assert!(server.memory.frames.free() >= free, "nothing is lost");
        assert_eq!([0, P, 2 * P].map(|page| server.load(program, at + page)), [Ok(1), Ok(7), Ok(3)]);
        assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)), "asked again, with allocation {n} failed");
        assert_eq!(cached(&mut server, address), [Ok(1), Ok(7), Ok(3)]);
        if !failed {
            assert!(n > 2, "only {n} allocations");
            return;
        }
    }
}

#[test]
fn without_heap_it_is_refused_and_mappings_go_on() {
    let (mut server, program, object, at, address) = mapped();
    let hog = super::program(1);
    fork(&mut server, program, hog).expect("enough memory");
    server.store(program, at, 1).expect("writable");
    assert_eq!(server.load(hog, at), Ok(1));
    exhaust(&mut server, hog);
    server.memory.kernel.heap_bytes = Some(0);
    let refused = (0..10_000).find_map(|_| show(&mut server, object, 0, 3).err());
    assert_eq!(refused, Some(Errno::ENOMEM));
    assert_eq!([program, hog].map(|who| server.load(who, at)), [Ok(1); 2]);
    server.store(program, at, 5).expect("it is mapped");
    assert_eq!(server.load(hog, at), Ok(5), "programs share it as before");
    exit(&mut server, hog).expect("known");
    server.memory.kernel.heap_bytes = None;
    assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)), "there is memory again");
    assert_eq!(cached(&mut server, address), [Ok(5), Ok(2), Ok(3)]);
}

#[test]
fn a_thousand_files_are_shared_by_two_programs_and_the_cache() {
    const FILES: u64 = 1000;
    let (mut server, program, address) = with_cache();
    let other = super::program(1);
    fork(&mut server, program, other).expect("enough memory");
    let mark = |file: u64| (file % 251) as u8;
    let files: Vec<(u64, u64, u64)> = (0..FILES)
        .map(|file| {
            let request = vm::SharedOpen { device: 1, inode: 100 + file, bytes: P };
            let object = vm::SharedOpen::results(&server.ask(slot::VFS, request.message())).expect("enough memory").0;
            shared_files::fill(&mut server, object, vec![mark(file); P as usize]);
            (
                object,
                map(&mut server, program, object, 1, READ | WRITE, true),
                map(&mut server, other, object, 1, READ, false),
            )
        })
        .collect();
    for (&(object, at, seen_at), file) in files.iter().zip(0..) {
        let slot = FIRST + file % 400;
        assert_eq!(server.load(program, at), Ok(mark(file)), "file {file}");
        server.store(program, at + 1, mark(file + 1)).expect("writable");
        assert_eq!(server.load(other, seen_at + 1), Ok(mark(file + 1)), "file {file}");
        let reply = server.ask(slot::VFS, vm::SharedShow { object, offset: 0, first: slot, pages: 1 }.message());
        assert_eq!(vm::SharedShow::results(&reply), Ok((1, 0)), "file {file}");
        server.store(program, at + 2, mark(file + 2)).expect("writable");
        let seen = [0, 1, 2].map(|byte| server.load(vfs(), address + slot * P + byte));
        assert_eq!(seen, [0, 1, 2].map(|byte| Ok(mark(file + byte))), "file {file}");
    }
    invariants::check(&server);
    exit(&mut server, program).expect("known");
    for (&(object, _, seen_at), file) in files.iter().zip(0..) {
        assert_eq!(server.load(other, seen_at + 2), Ok(mark(file + 2)), "file {file}");
        let (offset, content) = take_changed(&mut server, object, 0, P).expect("changed");
        assert_eq!((offset, content[..3].to_vec()), (0, [0, 1, 2].map(|byte| mark(file + byte)).to_vec()));
    }
    exit(&mut server, other).expect("known");
    for (object, ..) in files {
        server.ask(slot::VFS, vm::SharedClose { object, lose: true }.message()).result().expect("not mapped");
    }
    invariants::check(&server);
}

#[test]
fn vm_may_die_at_any_call_of_the_kernel() {
    for call in 1.. {
        let (mut server, program, object, at, address) = mapped();
        take(&mut server, FIRST, 2).expect("enough memory");
        server.memory.kernel.dies_in = Some(call);
        if catch_unwind(AssertUnwindSafe(|| show(&mut server, object, 0, 3))).is_err() {
            server.recover(|_| true);
            invariants::check(&server);
        }
        if server.memory.kernel.dies_in.take().is_some() {
            return;
        }
        assert_eq!(show(&mut server, object, 0, 3), Ok((0b111, 0)));
        server.store(program, at + P, 7).expect("writable");
        assert_eq!(cached(&mut server, address), [Ok(1), Ok(7), Ok(3)], "at call {call}");
    }
}
