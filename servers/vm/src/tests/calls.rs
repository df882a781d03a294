//! The Linux calls, one behaviour each, with the errors of their manual pages.

use super::*;
use crate::simulation::Touch;
use crate::space::{Limits, region::Region};
use abi::{Errno, endpoint::slot, linux::nr};

const ARENA: u64 = 0x10_0000;

fn mmap(
    server: &mut Server<Simulation>,
    process: Endpoint,
    at: u64,
    bytes: u64,
    rights: u64,
    flags: u64,
) -> Result<u64, Errno> {
    server.call(process, nr::MMAP, [at, bytes, rights, flags, u64::MAX, 0])
}

/// Maps private memory at a fixed address.
fn map_at(server: &mut Server<Simulation>, process: Endpoint, page: u64, pages: u64, rights: u64) -> u64 {
    let at = ARENA + page * P;
    assert_eq!(mmap(server, process, at, pages * P, rights, PRIVATE | ANONYMOUS | FIXED), Ok(at));
    at
}

#[test]
fn new_memory_is_zero_and_keeps_what_is_written() {
    let (mut server, p) = with_program(512);
    let at = mmap(&mut server, p, 0, 3 * P, READ | WRITE, PRIVATE | ANONYMOUS).expect("memory");
    assert_eq!(server.load(p, at + 5), Ok(0));
    server.store(p, at + P + 1, 7).expect("writable");
    assert_eq!((server.load(p, at + P + 1), server.load(p, at + 2 * P)), (Ok(7), Ok(0)));
    assert_eq!(server.load(p, at + 3 * P), Err(Errno::EFAULT));
    invariants::check(&server);
}

#[test]
fn wrong_arguments_of_mmap_are_refused() {
    let (mut server, p) = with_program(512);
    let anonymous = PRIVATE | ANONYMOUS;
    for (at, bytes, flags, error) in [
        (0, 0, anonymous, Errno::EINVAL),
        (0, P, ANONYMOUS, Errno::EINVAL),
        (0, u64::MAX, anonymous, Errno::ENOMEM),
        (0, 1 << 47, anonymous, Errno::ENOMEM),
        (ARENA + 1, P, anonymous | FIXED, Errno::EINVAL),
        (0, P, anonymous | FIXED, Errno::EPERM),
        (0x7fff_ffff_f000, P, anonymous | FIXED, Errno::ENOMEM),
        (0, 1 << 30, anonymous, Errno::ENOMEM),
    ] {
        assert_eq!(mmap(&mut server, p, at, bytes, READ | WRITE, flags), Err(error), "{at:#x} {bytes:#x} {flags:#x}");
    }
    assert!(mmap(&mut server, p, 0, 1 << 40, READ | WRITE, anonymous | 0x4000).is_ok(), "MAP_NORESERVE");
    assert!(mmap(&mut server, p, 0, 1 << 40, 0, anonymous).is_ok(), "PROT_NONE");
    assert_eq!(server.call(p, nr::MMAP, [0, P, READ, PRIVATE, 3, 1]), Err(Errno::EINVAL));
    assert_eq!(server.call(p, nr::MMAP, [0, P, READ, PRIVATE, 3, i64::MAX as u64 & !0xfff]), Err(Errno::EOVERFLOW));
}

#[test]
fn fixed_maps_replace_and_noreplace_does_not() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 4, READ | WRITE);
    server.store(p, at, 1).expect("writable");
    server.store(p, at + 3 * P, 2).expect("writable");
    map_at(&mut server, p, 3, 2, READ | WRITE);
    assert_eq!((server.load(p, at), server.load(p, at + 3 * P)), (Ok(1), Ok(0)));
    let noreplace = PRIVATE | ANONYMOUS | 0x10_0000;
    assert_eq!(mmap(&mut server, p, at + 4 * P, 2 * P, READ, noreplace), Err(Errno::EEXIST));
    assert_eq!(mmap(&mut server, p, at + 5 * P, 2 * P, READ, noreplace), Ok(at + 5 * P));
    assert_eq!(mmap(&mut server, p, at + 1, P, READ, PRIVATE | ANONYMOUS).map(|new| new == at), Ok(false));
    invariants::check(&server);
}

#[test]
fn rights_hold_for_each_kind_of_access() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 1, READ);
    assert_eq!(server.load(p, at), Ok(0));
    assert_eq!(server.store(p, at, 1), Err(Errno::EACCES));
    assert_eq!(server.touch(p, at, Touch::Execute), Err(Errno::EACCES));
    assert_eq!(server.call(p, nr::MPROTECT, [at, P, READ | EXECUTE, 0, 0, 0]), Ok(0));
    assert_eq!(server.touch(p, at, Touch::Execute), Ok(0));
    assert_eq!(server.call(p, nr::MPROTECT, [at, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(server.load(p, at), Err(Errno::EACCES));
    invariants::check(&server);
}

#[test]
fn memory_writable_and_executable_serves_both_in_turn() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 1, READ | WRITE | EXECUTE);
    for value in 1..4 {
        server.store(p, at, value).expect("writable");
        assert_eq!(server.touch(p, at, Touch::Execute), Ok(value));
        invariants::check(&server);
    }
}

#[test]
fn protection_taken_and_given_back_keeps_content() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 3, READ | WRITE);
    (0..3).for_each(|page| server.store(p, at + page * P, page as u8 + 1).expect("writable"));
    server.call(p, nr::MPROTECT, [at + P, P, 0, 0, 0, 0]).expect("mapped");
    assert_eq!((server.store(p, at, 9), server.load(p, at + P)), (Ok(()), Err(Errno::EACCES)));
    server.call(p, nr::MPROTECT, [at, 3 * P, READ, 0, 0, 0]).expect("mapped");
    assert_eq!((server.load(p, at + P), server.store(p, at + P, 1)), (Ok(2), Err(Errno::EACCES)));
    server.call(p, nr::MPROTECT, [at, 3 * P, READ | WRITE, 0, 0, 0]).expect("mapped");
    assert_eq!((server.store(p, at + P, 5), server.load(p, at + P)), (Ok(()), Ok(5)));
    assert_eq!(server.call(p, nr::MPROTECT, [at, 4 * P, READ, 0, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(server.call(p, nr::MPROTECT, [at + 1, P, READ, 0, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(server.call(p, nr::MPROTECT, [at, P, 64, 0, 0, 0]), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn unmapping_in_the_middle_leaves_both_ends() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 5, READ | WRITE);
    (0..5).for_each(|page| server.store(p, at + page * P, 1).expect("writable"));
    assert_eq!(server.call(p, nr::MUNMAP, [at + P, 2 * P, 0, 0, 0, 0]), Ok(0));
    let present: Vec<bool> = (0..5).map(|page| server.load(p, at + page * P).is_ok()).collect();
    assert_eq!(present, [true, false, false, true, true]);
    assert_eq!(server.call(p, nr::MUNMAP, [at, 0, 0, 0, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(server.call(p, nr::MUNMAP, [at + 1, P, 0, 0, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(server.call(p, nr::MUNMAP, [at + 100 * P, P, 0, 0, 0, 0]), Ok(0));
    invariants::check(&server);
}

#[test]
fn brk_moves_the_heap_and_refuses_to_collide() {
    let (mut server, p) = with_program(512);
    let space = server.processes.space(p).expect("known");
    (space.heap_start, space.heap_end) = (ARENA, ARENA);
    let brk = |server: &mut Server<Simulation>, to: u64| server.call(p, nr::BRK, [to, 0, 0, 0, 0, 0]).expect("brk");
    assert_eq!(brk(&mut server, 0), ARENA);
    assert_eq!(brk(&mut server, ARENA + 100), ARENA + 100);
    server.store(p, ARENA + 99, 3).expect("heap");
    assert_eq!(brk(&mut server, ARENA + 3 * P), ARENA + 3 * P);
    server.store(p, ARENA + 2 * P, 4).expect("heap");
    assert_eq!(brk(&mut server, ARENA + P), ARENA + P);
    assert_eq!(server.load(p, ARENA + 2 * P), Err(Errno::EFAULT));
    assert_eq!((brk(&mut server, ARENA + 3 * P), server.load(p, ARENA + 2 * P)), (ARENA + 3 * P, Ok(0)));
    map_at(&mut server, p, 5, 1, READ);
    assert_eq!(brk(&mut server, ARENA + 6 * P), ARENA + 3 * P);
    assert_eq!(brk(&mut server, ARENA + (1 << 40)), ARENA + 3 * P);
    assert_eq!(server.load(p, ARENA + 99), Ok(3));
    invariants::check(&server);
}

#[test]
fn mremap_grows_in_place_or_moves_with_content() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 2, READ | WRITE);
    server.store(p, at + P, 7).expect("writable");
    let mremap = |server: &mut Server<Simulation>, words: [u64; 5]| {
        let [old, old_bytes, new_bytes, flags, new] = words;
        server.call(p, nr::MREMAP, [old, old_bytes, new_bytes, flags, new, 0])
    };
    assert_eq!(mremap(&mut server, [at, 2 * P, 4 * P, 0, 0]), Ok(at));
    assert_eq!((server.load(p, at + P), server.load(p, at + 3 * P)), (Ok(7), Ok(0)));
    map_at(&mut server, p, 4, 1, READ);
    assert_eq!(mremap(&mut server, [at, 4 * P, 6 * P, 0, 0]), Err(Errno::ENOMEM));
    let new = mremap(&mut server, [at, 4 * P, 6 * P, 1, 0]).expect("may move");
    assert_eq!(
        (server.load(p, new + P), server.load(p, new + 5 * P), server.load(p, at)),
        (Ok(7), Ok(0), Err(Errno::EFAULT))
    );
    assert_eq!(mremap(&mut server, [new, 6 * P, 2 * P, 0, 0]), Ok(new));
    assert_eq!(server.load(p, new + 2 * P), Err(Errno::EFAULT));
    let target = ARENA + 50 * P;
    assert_eq!(mremap(&mut server, [new, 2 * P, 2 * P, 3, target]), Ok(target));
    assert_eq!((server.load(p, target + P), server.store(p, target + P, 8)), (Ok(7), Ok(())));
    for (words, error) in [
        ([target, P, 0, 0, 0], Errno::EINVAL),
        ([target + 1, P, P, 0, 0], Errno::EINVAL),
        ([target, P, P, 2, 0], Errno::EINVAL),
        ([target, P, P, 3, target], Errno::EINVAL),
        ([target, P, P, 8, 0], Errno::EINVAL),
        ([target, 9 * P, 9 * P, 1, 0], Errno::EFAULT),
        ([0x5000_0000, P, P, 1, 0], Errno::EFAULT),
        ([target, 0, P, 1, 0], Errno::EINVAL),
    ] {
        assert_eq!(mremap(&mut server, words), Err(error), "{words:x?}");
    }
    invariants::check(&server);
}

#[test]
fn madvise_drops_private_and_keeps_shared_memory() {
    let (mut server, p) = with_program(512);
    let private = map_at(&mut server, p, 0, 2, READ | WRITE);
    let shared = mmap(&mut server, p, 0, P, READ | WRITE, SHARED | ANONYMOUS).expect("memory");
    [private, private + P, shared].into_iter().for_each(|at| server.store(p, at, 5).expect("writable"));
    let madvise =
        |server: &mut Server<Simulation>, at, bytes, advice| server.call(p, nr::MADVISE, [at, bytes, advice, 0, 0, 0]);
    assert_eq!(madvise(&mut server, private, P, 4), Ok(0));
    assert_eq!(madvise(&mut server, shared, P, 4), Ok(0));
    assert_eq!((server.load(p, private), server.load(p, private + P), server.load(p, shared)), (Ok(0), Ok(5), Ok(5)));
    assert_eq!(madvise(&mut server, private, P, 99), Err(Errno::EINVAL));
    assert_eq!(madvise(&mut server, private, 9 * P, 4), Err(Errno::ENOMEM));
    assert_eq!(madvise(&mut server, private, 2 * P, 23), Ok(0));
    invariants::check(&server);
}

#[test]
fn advice_for_fork_is_obeyed() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 3, READ | WRITE);
    (0..3).for_each(|page| server.store(p, at + page * P, 6).expect("writable"));
    for (page, advice) in [(0, 10), (1, 18)] {
        assert_eq!(server.call(p, nr::MADVISE, [at + page * P, P, advice, 0, 0, 0]), Ok(0));
    }
    fork(&mut server, p, program(1)).expect("enough memory");
    let seen: Vec<_> = (0..3).map(|page| server.load(program(1), at + page * P)).collect();
    assert_eq!(seen, [Err(Errno::EFAULT), Ok(0), Ok(6)]);
    assert_eq!(server.load(p, at), Ok(6));
    invariants::check(&server);
}

#[test]
fn mincore_tells_what_is_there() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 4, READ | WRITE);
    server.store(p, at + P, 1).expect("writable");
    let answer = map_at(&mut server, p, 10, 1, READ | WRITE);
    assert_eq!(server.call(p, nr::MINCORE, [at, 4 * P, answer + 8, 0, 0, 0]), Ok(0));
    let seen: Vec<u8> = (0..4).map(|page| server.load(p, answer + 8 + page).expect("readable")).collect();
    assert_eq!(seen, [0, 1, 0, 0]);
    assert_eq!(server.call(p, nr::MINCORE, [at, 4 * P, 0, 0, 0, 0]), Err(Errno::EFAULT));
    assert_eq!(server.call(p, nr::MINCORE, [at, 5 * P, answer, 0, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(server.call(p, nr::MINCORE, [at + 1, P, answer, 0, 0, 0]), Err(Errno::EINVAL));
}

#[test]
fn locks_and_syncs_check_their_arguments() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 2, READ | WRITE);
    let call = |server: &mut Server<Simulation>, number, a, b, c| server.call(p, number, [a, b, c, 0, 0, 0]);
    assert_eq!(call(&mut server, nr::MLOCK, at + 5, P, 0), Ok(0));
    assert_eq!(server.processes.space(p).expect("known").pages.count(), 2);
    assert_eq!(call(&mut server, nr::MLOCK, at, 3 * P, 0), Err(Errno::ENOMEM));
    assert_eq!(call(&mut server, nr::MUNLOCK, at, 2 * P, 0), Ok(0));
    assert_eq!(call(&mut server, nr::MLOCKALL, 1, 0, 0), Ok(0));
    assert_eq!(call(&mut server, nr::MLOCKALL, 0, 0, 0), Err(Errno::EINVAL));
    assert_eq!(call(&mut server, nr::MLOCK2, at, P, 2), Err(Errno::EINVAL));
    assert_eq!(call(&mut server, nr::MSYNC, at, 2 * P, 4), Ok(0));
    assert_eq!(call(&mut server, nr::MSYNC, at, 2 * P, 5), Err(Errno::EINVAL));
    assert_eq!(call(&mut server, nr::MSYNC, at, 3 * P, 4), Err(Errno::ENOMEM));
    assert_eq!(call(&mut server, 1, at, P, 0), Err(Errno::ENOSYS));
}

fn limit(server: &mut Server<Simulation>, process: Endpoint, limits: Limits) {
    let Limits { addresses, data, locked } = limits;
    let request = abi::vm::SetLimits { process, addresses, data, locked, stack: 8 << 20 }.message();
    assert_eq!(server.ask(slot::RS, request).result(), Err(Errno::EPERM));
    assert_eq!(server.ask(slot::PM, request).result(), Ok(0));
}

fn bytes_of(server: &mut Server<Simulation>, process: Endpoint, test: impl Fn(&Region) -> bool) -> u64 {
    let space = server.processes.space(process).expect("known");
    space.regions.iter().filter(|region| test(region)).map(|region| region.pages() * P).sum()
}

#[test]
fn addresses_are_limited_whatever_they_are_for() {
    let (mut server, p) = with_program(512);
    let there = bytes_of(&mut server, p, |_| true);
    limit(&mut server, p, Limits { addresses: there + 4 * P, ..Limits::NONE });
    assert_eq!(mmap(&mut server, p, 0, 5 * P, 0, PRIVATE | ANONYMOUS), Err(Errno::ENOMEM));
    let at = map_at(&mut server, p, 0, 4, READ);
    assert_eq!(mmap(&mut server, p, 0, P, READ, SHARED | ANONYMOUS), Err(Errno::ENOMEM));
    map_at(&mut server, p, 2, 2, READ);
    assert_eq!(mmap(&mut server, p, at + 2 * P, 3 * P, READ, PRIVATE | ANONYMOUS | FIXED), Err(Errno::ENOMEM));
    assert_eq!(server.load(p, at + 2 * P), Ok(0), "what was to be replaced is still there");
    assert_eq!(server.call(p, nr::MREMAP, [at, 4 * P, 5 * P, 1, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(server.call(p, nr::MUNMAP, [at, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(server.call(p, nr::MREMAP, [at + P, 3 * P, 4 * P, 1, 0, 0]).map(drop), Ok(()));
    assert_eq!(mmap(&mut server, p, 0, P, READ, PRIVATE | ANONYMOUS), Err(Errno::ENOMEM));
}

#[test]
fn memory_that_moves_is_not_counted_twice_unless_the_old_place_stays() {
    const MAY_MOVE: u64 = 1;
    const AND_STAYS: u64 = 5;
    let (mut server, p) = with_program(512);
    let there = bytes_of(&mut server, p, |_| true);
    let mut at = map_at(&mut server, p, 0, 4, READ | WRITE);
    // So that it cannot grow in place.
    map_at(&mut server, p, 4, 1, READ);
    for (left, flags, pages, expected) in [
        (0, AND_STAYS, 4, Err(Errno::ENOMEM)),
        (3, AND_STAYS, 4, Err(Errno::ENOMEM)),
        (0, MAY_MOVE, 5, Err(Errno::ENOMEM)),
        (1, MAY_MOVE | 2, 4, Ok(())),
        (0, MAY_MOVE | 2, 4, Ok(())),
        (4, AND_STAYS, 4, Ok(())),
    ] {
        limit(&mut server, p, Limits { addresses: there + (5 + left) * P, ..Limits::NONE });
        let to = at + 100 * P;
        let moved = server.call(p, nr::MREMAP, [at, 4 * P, pages * P, flags, to, 0]);
        assert_eq!(moved.map(drop), expected, "{left} pages left, {flags}");
        at = moved.unwrap_or(at);
    }
}

#[test]
fn private_memory_to_write_is_limited_however_it_comes() {
    let (mut server, p) = with_program(512);
    let there = bytes_of(&mut server, p, Region::is_data);
    limit(&mut server, p, Limits { data: there + 2 * P, ..Limits::NONE });
    assert_eq!(mmap(&mut server, p, 0, 3 * P, READ | WRITE, PRIVATE | ANONYMOUS), Err(Errno::ENOMEM));
    assert!(mmap(&mut server, p, 0, 3 * P, READ | WRITE, SHARED | ANONYMOUS).is_ok(), "what is shared does not count");
    let at = map_at(&mut server, p, 0, 3, READ);
    let mut protect = |pages| server.call(p, nr::MPROTECT, [at, pages * P, READ | WRITE, 0, 0, 0]);
    assert_eq!([3, 2, 2].map(&mut protect), [Err(Errno::ENOMEM), Ok(0), Ok(0)]);
    let heap = server.call(p, nr::BRK, [0; 6]).expect("brk never fails");
    assert_eq!(server.call(p, nr::BRK, [heap + P, 0, 0, 0, 0, 0]), Ok(heap));
    assert_eq!(server.call(p, nr::MUNMAP, [at, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(server.call(p, nr::BRK, [heap + P, 0, 0, 0, 0, 0]), Ok(heap + P));
}

#[test]
fn locked_memory_is_counted_page_by_page_and_is_not_inherited() {
    let (mut server, p) = with_program(512);
    let at = map_at(&mut server, p, 0, 6, READ | WRITE);
    let lock = |server: &mut Server<Simulation>, p, page, pages| {
        server.call(p, nr::MLOCK, [at + page * P, pages * P, 0, 0, 0, 0])
    };
    limit(&mut server, p, Limits { locked: 4 * P, ..Limits::NONE });
    assert_eq!(lock(&mut server, p, 0, 5), Err(Errno::ENOMEM));
    assert_eq!((lock(&mut server, p, 0, 3), lock(&mut server, p, 1, 3)), (Ok(0), Ok(0)), "pages count once");
    assert_eq!(lock(&mut server, p, 4, 1), Err(Errno::ENOMEM));
    assert_eq!(server.call(p, nr::MUNLOCK, [at, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(lock(&mut server, p, 4, 1), Ok(0));
    let map_locked = 0x2000;
    assert_eq!(mmap(&mut server, p, 0, P, READ, PRIVATE | ANONYMOUS | map_locked), Err(Errno::EAGAIN));
    let child = program(1);
    fork(&mut server, p, child).expect("memory");
    assert_eq!(lock(&mut server, child, 0, 4), Ok(0));
    assert_eq!(server.call(p, nr::MLOCKALL, [1, 0, 0, 0, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(server.call(p, nr::MUNLOCKALL, [0; 6]), Ok(0));
    assert_eq!(server.call(p, nr::MLOCKALL, [2, 0, 0, 0, 0, 0]), Ok(0), "what comes is locked");
    assert_eq!(mmap(&mut server, p, 0, 5 * P, READ, PRIVATE | ANONYMOUS), Err(Errno::EAGAIN));
    limit(&mut server, p, Limits { locked: 0, ..Limits::NONE });
    assert_eq!(lock(&mut server, p, 0, 1), Err(Errno::EPERM));
    assert_eq!(mmap(&mut server, p, 0, P, READ, PRIVATE | ANONYMOUS | map_locked), Err(Errno::EPERM));
}

#[test]
fn stacks_grow_to_their_limit_and_not_into_others() {
    let (mut server, p) = with_program(512);
    let flags = PRIVATE | ANONYMOUS | FIXED | 0x100;
    let top = 0x4000_0000;
    mmap(&mut server, p, top, P, READ | WRITE, flags).expect("memory");
    assert_eq!(server.store(p, top - 20 * P, 1), Ok(()));
    assert_eq!(server.store(p, top + P - (8 << 20), 1), Ok(()));
    assert_eq!(server.store(p, top - (8 << 20), 1), Err(Errno::EFAULT));
    let other = 0x6000_0000;
    mmap(&mut server, p, other, P, READ | WRITE, flags).expect("memory");
    mmap(&mut server, p, other - 300 * P, P, READ, PRIVATE | ANONYMOUS | FIXED).expect("memory");
    assert_eq!(server.store(p, other - 40 * P, 1), Ok(()));
    assert_eq!(server.store(p, other - 50 * P, 1), Err(Errno::EFAULT));
    invariants::check(&server);
}
