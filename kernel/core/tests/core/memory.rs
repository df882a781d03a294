//! Limits of memory calls, and how long ones are divided.

use abi::{
    Endpoint, Errno, GrantId, call,
    call::KernelCall,
    grant::{MAX_GRANTS, READ, USED, WRITE},
    kernel::CopyFault,
    layout::{MAX_COPY, SPACES, USER_END, map},
    privilege::MemoryRange,
};
use kernel_core::{CHUNK_BYTES, Next, PAGES_AT_ONCE};

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, C, RS, VM, World, all_rights},
};

const SELF: u64 = Endpoint::SELF.0 as u64;
const NONE: u64 = Endpoint::NONE.0 as u64;
/// Where tests map many pages.
const LARGE: u64 = 0x100_0000;
const FRAMES: u64 = 0x1000_0000;

/// Maps pages of A and B from `LARGE` on.
fn large(w: &mut World, pages: u64) {
    for (slot, first) in [(A, FRAMES), (B, FRAMES + 0x100_0000)] {
        let space = w.space(slot);
        (0..pages).for_each(|page| w.m.map(space, LARGE + page * PAGE, first + page * PAGE, map::WRITE));
    }
}

/// What a call does between two preemption points.
fn chunks(w: &mut World, slot: usize, call: KernelCall, words: &[u64]) -> (Result<u64, Errno>, Vec<u64>) {
    w.m.chunks.clear();
    let result = w.kernel_call(slot, call, words);
    (result, w.m.chunks.clone())
}

#[test]
fn copies_are_divided_into_chunks_of_64_kib() {
    let mut w = World::with_services();
    large(&mut w, 40);
    let b = w.endpoint(B).0 as u64;
    let length = 2 * CHUNK_BYTES + 5;
    let expected = (Ok(length), vec![65536, 65536, 5]);
    assert_eq!(chunks(&mut w, A, KernelCall::VirCopy, &[SELF, LARGE, b, LARGE, length]), expected);
    assert_eq!(chunks(&mut w, A, KernelCall::PhysCopy, &[SELF, LARGE, b, LARGE, length]), expected);
    for exact in [1, CHUNK_BYTES] {
        let one = (Ok(exact), vec![exact]);
        assert_eq!(chunks(&mut w, A, KernelCall::VirCopy, &[SELF, LARGE, b, LARGE, exact]), one);
    }
    assert_eq!(chunks(&mut w, A, KernelCall::VirCopy, &[SELF, LARGE, b, LARGE, 0]), (Ok(0), vec![]));
}

#[test]
fn changes_of_spaces_are_divided_by_what_a_page_costs() {
    assert_eq!(PAGES_AT_ONCE, 512);
    let mut w = World::with_services();
    let (from, to) = (w.space(B) as u64, w.space(C) as u64);
    let all = vec![512, 512, 1];
    let map = [from, LARGE, FRAMES, 1025, map::WRITE];
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceMap, &map), (Ok(1025), all.clone()));
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceCopy, &[from, to, LARGE, 1025]), (Ok(1025), all.clone()));
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceProtect, &[from, LARGE, 1025, 0]), (Ok(0), all.clone()));
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceUnmap, &[from, LARGE, 1025]), (Ok(0), all));
    let zeroed = [from, LARGE, FRAMES, 33, map::WRITE | map::ZERO];
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceMap, &zeroed), (Ok(33), vec![16, 16, 1]));
    assert_eq!(chunks(&mut w, RS, KernelCall::SpaceMap, &[from, LARGE, FRAMES, 0, 0]), (Ok(0), vec![]));
}

/// Every page must be right, not only the first and the last.
#[test]
fn long_changes_of_spaces_that_are_interrupted_go_on_where_they_were() {
    let mut w = World::with_services();
    let (from, to) = (w.space(B), w.space(C));
    let interrupted = |w: &mut World, call: KernelCall, words: &[u64]| {
        w.m.polls_until_interrupt = Some(1);
        w.m.chunks.clear();
        assert_eq!(w.begin_kernel_call(RS, call, words), Next::Interrupts);
        assert_eq!(w.m.chunks.len(), 1);
        w.m.polls_until_interrupt = None;
        w.make_current(RS);
        (w.result(RS), w.node.frame_mut(RS).rdi)
    };
    let pages = 600;
    let map = [from as u64, LARGE, FRAMES, pages, map::WRITE];
    assert_eq!(interrupted(&mut w, KernelCall::SpaceMap, &map), (Ok(pages), 0));
    let has = |w: &World, space: u16, page: u64| w.m.spaces[&space].get(&(LARGE + page * PAGE)).copied();
    for page in 0..pages {
        assert_eq!(has(&w, from, page).expect("mapped").frame, FRAMES + page * PAGE);
    }
    assert!(has(&w, from, pages).is_none());
    let copy = [from as u64, to as u64, LARGE, pages];
    assert_eq!(interrupted(&mut w, KernelCall::SpaceCopy, &copy), (Ok(pages), 0));
    for page in 0..pages {
        let (one, other) = (has(&w, from, page).expect("mapped"), has(&w, to, page).expect("copied"));
        assert_eq!((one.frame, one.flags, other.flags), (other.frame, 0, 0));
    }
    let protect = [to as u64, LARGE, pages, map::EXECUTE];
    assert_eq!(interrupted(&mut w, KernelCall::SpaceProtect, &protect).0, Ok(0));
    assert!((0..pages).all(|page| has(&w, to, page).is_some_and(|mapping| mapping.flags == map::EXECUTE)));
    assert_eq!(interrupted(&mut w, KernelCall::SpaceUnmap, &[to as u64, LARGE, pages]).0, Ok(0));
    assert!((0..pages).all(|page| has(&w, to, page).is_none()));
    assert!(has(&w, from, 0).is_some());
}

#[test]
fn a_call_after_an_interrupted_one_begins_at_its_own_start() {
    let mut w = World::with_services();
    large(&mut w, 40);
    let b = w.endpoint(B).0 as u64;
    w.m.polls_until_interrupt = Some(1);
    w.begin_kernel_call(A, KernelCall::VirCopy, &[SELF, LARGE, b, LARGE, 2 * CHUNK_BYTES]);
    w.m.polls_until_interrupt = None;
    w.make_current(A);
    assert_eq!(w.result(A), Ok(2 * CHUNK_BYTES));
    let again = chunks(&mut w, A, KernelCall::VirCopy, &[SELF, LARGE, b, LARGE, 2 * CHUNK_BYTES]);
    assert_eq!(again, (Ok(2 * CHUNK_BYTES), vec![CHUNK_BYTES; 2]));
}

#[test]
fn a_copy_of_a_vector_that_is_interrupted_within_a_record_goes_on_there() {
    let mut w = World::with_services();
    large(&mut w, 40);
    let (a, b) = (w.space(A), w.space(B));
    let endpoint = w.endpoint(B).0;
    let record = |from: u64, to: u64, bytes: u64| {
        let ends = [Endpoint::SELF.0.to_le_bytes(), endpoint.to_le_bytes()].concat();
        [ends, [from, to, bytes].map(u64::to_le_bytes).concat()].concat()
    };
    let last = 2 * CHUNK_BYTES - 1;
    w.m.poke(a, BUFFER, &[record(BUFFER + 512, BUFFER, 8), record(LARGE, LARGE, last + 1)].concat());
    w.m.poke(a, BUFFER + 512, b"a record");
    w.m.poke(a, LARGE + last, b"!");
    for polls in 1..=2 {
        w.m.poke(b, LARGE + last, b"\0");
        w.m.chunks.clear();
        w.m.polls_until_interrupt = Some(polls);
        assert_eq!(w.begin_kernel_call(A, KernelCall::VirVCopy, &[BUFFER, 2]), Next::Interrupts);
        w.m.polls_until_interrupt = None;
        w.make_current(A);
        assert_eq!(w.result(A), Ok(2));
        assert_eq!(w.m.chunks, [8, CHUNK_BYTES, CHUNK_BYTES], "nothing is copied twice");
        assert_eq!((w.m.peek(b, BUFFER, 8), w.m.peek(b, LARGE + last, 1)), (b"a record".to_vec(), b"!".to_vec()));
    }
}

#[test]
fn a_vector_whose_record_faults_ends_with_the_number_of_those_before() {
    for (bad, expected) in [(0, Err(Errno::EFAULT)), (2, Ok(2)), (3, Ok(3))] {
        for copy in [KernelCall::VirVCopy, KernelCall::PhysVCopy] {
            let mut w = World::with_services();
            w.receive(VM, Endpoint::ANY);
            let (a, b) = (w.space(A), w.space(B));
            let endpoint = w.endpoint(B).0;
            let record = |number: u64| {
                let from = if number == bad { LARGE } else { BUFFER + 512 };
                let ends = [Endpoint::SELF.0.to_le_bytes(), endpoint.to_le_bytes()].concat();
                [ends, [from, BUFFER + 8 * number, 8].map(u64::to_le_bytes).concat()].concat()
            };
            w.m.poke(a, BUFFER, &(0..4).map(record).collect::<Vec<_>>().concat());
            w.m.poke(a, BUFFER + 512, b"a record");
            w.begin_kernel_call(A, copy, &[BUFFER, 4]);
            let fault = w.message(VM);
            assert_eq!((fault.label, CopyFault::from_message(&fault).address), (CopyFault::LABEL, LARGE));
            w.primitive(VM, call::REPLYREC, fault.source, 0x8000_0000, -14i64 as u64);
            w.make_current(A);
            assert_eq!(w.result(A), expected, "{copy:?} {bad}");
            assert!((0..bad).all(|number| w.m.peek(b, BUFFER + 8 * number, 8) == b"a record"));
            assert_eq!(w.kernel_call(A, KernelCall::VirVCopy, &[BUFFER, bad]), Ok(bad), "the next one begins anew");
        }
    }
}

#[test]
fn the_longest_copy_is_allowed_and_a_longer_one_is_not() {
    let mut w = World::with_services();
    w.receive(VM, Endpoint::ANY);
    let a = w.endpoint(A).0 as u64;
    for call in [KernelCall::VirCopy, KernelCall::PhysCopy] {
        let too_long = [a, LARGE, SELF, LARGE, MAX_COPY + 1];
        assert_eq!(w.kernel_call(B, call, &too_long), Err(Errno::EINVAL));
    }
    let too_long = [FRAMES, 0, a, GrantId::new(0, 1).0 as u64, 0, MAX_COPY + 1];
    assert_eq!(w.kernel_call(B, KernelCall::FrameFill, &too_long), Err(Errno::EINVAL));
    // It begins, and waits for memory.
    w.begin_kernel_call(B, KernelCall::VirCopy, &[a, LARGE, SELF, LARGE, MAX_COPY]);
    assert_eq!(w.message(VM).label, CopyFault::LABEL);
}

#[test]
fn both_sides_of_a_copy_end_where_user_memory_ends() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    for slot in [A, B] {
        let space = w.space(slot);
        w.m.map(space, USER_END - PAGE, FRAMES + slot as u64 * PAGE, map::WRITE);
    }
    for call in [KernelCall::VirCopy, KernelCall::PhysCopy] {
        let mut copy = |from: u64, to: u64, bytes: u64| w.kernel_call(B, call, &[a, from, SELF, to, bytes]);
        assert_eq!(copy(USER_END - 8, BUFFER, 8), Ok(8));
        assert_eq!(copy(BUFFER, USER_END - 8, 8), Ok(8));
        assert_eq!(copy(USER_END - 8, BUFFER, 9), Err(Errno::EFAULT));
        assert_eq!(copy(BUFFER, USER_END - 8, 9), Err(Errno::EFAULT));
        assert_eq!(copy(USER_END, BUFFER, 0), Ok(0));
        assert_eq!(copy(USER_END + 1, BUFFER, 0), Err(Errno::EFAULT));
    }
}

#[test]
fn memory_of_threads_without_a_space_or_of_the_dead_cannot_be_copied() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A).0 as u64, w.endpoint(B).0 as u64);
    w.kernel_call(RS, KernelCall::SpaceSet, &[a, u64::MAX]).expect("taken away");
    w.kernel_call(RS, KernelCall::Destroy, &[b, 0]).expect("destroyed");
    for call in [KernelCall::VirCopy, KernelCall::PhysCopy] {
        for (peer, error) in [(a, Errno::EFAULT), (b, Errno::EDEADSRCDST)] {
            assert_eq!(w.kernel_call(C, call, &[peer, BUFFER, SELF, BUFFER, 8]), Err(error));
            assert_eq!(w.kernel_call(C, call, &[SELF, BUFFER, peer, BUFFER, 8]), Err(error));
        }
    }
}

#[test]
fn an_address_is_translated_while_it_is_user_memory() {
    let mut w = World::with_services();
    let space = w.space(A);
    w.m.map(space, USER_END - PAGE, FRAMES, 0);
    assert_eq!(w.kernel_call(A, KernelCall::Umap, &[USER_END - 1]), Ok(FRAMES + PAGE - 1));
    for address in [USER_END, u64::MAX] {
        assert_eq!(w.kernel_call(A, KernelCall::Umap, &[address]), Err(Errno::EFAULT));
    }
}

#[test]
fn frames_are_copied_whole() {
    let mut w = World::with_services();
    for (page, content) in [(0, b"from"), (1, b"to  ")] {
        w.m.map(99, page * PAGE, FRAMES + page * PAGE, map::WRITE);
        w.m.poke(99, page * PAGE + PAGE - 4, content);
    }
    let mut copy = |to: u64, from: u64| w.kernel_call(A, KernelCall::FrameCopy, &[to, from]);
    assert_eq!(copy(FRAMES + PAGE, FRAMES), Ok(0));
    for (to, from) in [(FRAMES + 1, FRAMES), (FRAMES, FRAMES + PAGE - 1), (1 << 40, FRAMES)] {
        assert_eq!(copy(to, from), Err(Errno::EINVAL), "{to:#x} {from:#x}");
    }
    assert_eq!(w.m.peek(99, 2 * PAGE - 4, 4), b"from");
}

#[test]
fn frames_are_donated_by_whole_pages() {
    let mut w = World::with_services();
    let pool = w.m.pool;
    let mut donate = |frame: u64, pages: u64| w.kernel_call(RS, KernelCall::Donate, &[frame, pages]);
    assert_eq!(donate(FRAMES, 3), Ok(0));
    let wrong = [(FRAMES, 0), (FRAMES + 1, 1), (FRAMES, 1 << 60), (FRAMES, 1 << 52), (!0 << 12, 1), (!0 << 12, 2)];
    for (frame, pages) in wrong {
        assert_eq!(donate(frame, pages), Err(Errno::EINVAL), "{frame:#x} {pages:#x}");
    }
    assert_eq!(w.m.pool, pool + 3);
}

#[test]
fn ranges_of_pages_are_aligned_and_end_where_user_memory_ends() {
    let mut w = World::with_services();
    let (space, other) = (w.space(B) as u64, w.space(C) as u64);
    let last = USER_END - PAGE;
    type Call = fn(&mut World, u64, u64, u64, u64) -> Result<u64, Errno>;
    let calls: [Call; 4] = [
        |w, space, _, at, pages| w.kernel_call(RS, KernelCall::SpaceMap, &[space, at, FRAMES, pages, 0]),
        |w, space, _, at, pages| w.kernel_call(RS, KernelCall::SpaceUnmap, &[space, at, pages]),
        |w, space, _, at, pages| w.kernel_call(RS, KernelCall::SpaceProtect, &[space, at, pages, 0]),
        |w, space, to, at, pages| w.kernel_call(RS, KernelCall::SpaceCopy, &[space, to, at, pages]),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        assert!(call(&mut w, space, other, last, 1).is_ok(), "{number}");
        assert!(call(&mut w, space, other, USER_END, 0).is_ok(), "{number}: nothing");
        assert_eq!(call(&mut w, space, other, last, 2), Err(Errno::EFAULT), "{number}");
        assert_eq!(call(&mut w, space, other, 0, 1 << 52), Err(Errno::EFAULT), "{number}");
        assert_eq!(call(&mut w, space, other, LARGE + 8, 1), Err(Errno::EINVAL), "{number}");
        for nobody in [700, SPACES as u64, u64::MAX, 1 << 32 | space] {
            assert_eq!(call(&mut w, nobody, other, LARGE, 1), Err(Errno::EINVAL), "{number}");
        }
    }
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceCopy, &[space, 700, LARGE, 1]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceCopy, &[space, space, LARGE, 1]), Err(Errno::EINVAL));
    let far = |frame: u64, pages: u64| [space, LARGE, frame, pages, 0];
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceMap, &far(!0 << 12, 2)), Err(Errno::EINVAL));
}

#[test]
fn each_call_has_its_own_flags() {
    let mut w = World::with_services();
    let space = w.space(B) as u64;
    let known = map::WRITE | map::EXECUTE | map::ZERO | map::UNCACHED | map::COMBINED | map::NONE;
    for bit in 0..64 {
        let flag = 1u64 << bit;
        let maps = flag & (known & !map::NONE) != 0;
        let protects = flag & (known & !map::ZERO) != 0;
        let map = w.kernel_call(RS, KernelCall::SpaceMap, &[space, LARGE, FRAMES, 1, flag]);
        let protect = w.kernel_call(RS, KernelCall::SpaceProtect, &[space, LARGE, 1, flag]);
        assert_eq!((map.is_ok(), protect.is_ok()), (maps, protects), "{flag:#x}");
    }
    let both = map::WRITE | map::EXECUTE;
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceProtect, &[space, LARGE, 1, both]), Err(Errno::EINVAL));
}

#[test]
fn a_space_that_nobody_uses_is_found_again_when_all_others_are_taken() {
    let mut w = World::with_services();
    w.m.pool = 2000;
    let (mut last, mut count) = (0, 0);
    while let Ok(space) = w.kernel_call(RS, KernelCall::SpaceCreate, &[]) {
        assert!((1..SPACES as u64).contains(&space));
        (last, count) = (space, count + 1);
    }
    assert_eq!(count, SPACES - 1 - 5, "all but those of rs, vm, A, B, C");
    assert_eq!(w.kernel_call(RS, KernelCall::SpaceCreate, &[]), Err(Errno::ENOMEM));
    for space in [last, 700] {
        assert_eq!(w.kernel_call(RS, KernelCall::SpaceDestroy, &[space]), Ok(0));
        assert_eq!(w.kernel_call(RS, KernelCall::SpaceCreate, &[]), Ok(space));
    }
}

/// A table of A at BUFFER, whose entry `index` grants B 16 bytes.
fn table(w: &mut World, index: u64, entries: u64, address: u64, bytes: u64) {
    let b = w.endpoint(B);
    let mut entry = Vec::new();
    [USED | READ | WRITE, 1, b.0, Endpoint::NONE.0].iter().for_each(|word| entry.extend(word.to_le_bytes()));
    [address, bytes].iter().for_each(|word| entry.extend(word.to_le_bytes()));
    let space = w.space(A);
    w.m.poke(space, BUFFER + index * 32, &entry);
    w.kernel_call(A, KernelCall::SetGrants, &[BUFFER, entries]).expect("registered");
}

#[test]
fn tables_of_grants_are_aligned_and_not_too_long() {
    let mut w = World::with_services();
    let mut set = |address: u64, entries: u64| w.kernel_call(A, KernelCall::SetGrants, &[address, entries]);
    assert_eq!(set(BUFFER, MAX_GRANTS as u64), Ok(0));
    assert_eq!(set(BUFFER, 0), Ok(0));
    assert_eq!(set(BUFFER, MAX_GRANTS as u64 + 1), Err(Errno::EINVAL));
    assert_eq!(set(BUFFER + 16, 1), Err(Errno::EINVAL));
    assert_eq!(set(USER_END - 64, 2), Ok(0));
    assert_eq!(set(USER_END - 64, 3), Err(Errno::EFAULT));
}

#[test]
fn grants_are_found_by_their_place_in_the_table() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    table(&mut w, 3, 4, BUFFER + PAGE, 16);
    let copy = |w: &mut World, index: u16, address: u64, bytes: u64| {
        let id = GrantId::new(index, 1).0 as u64;
        w.kernel_call(B, KernelCall::SafeCopyFrom, &[a, id, 0, address, bytes])
    };
    assert_eq!(copy(&mut w, 3, BUFFER, 16), Ok(16));
    for index in [0, 2, 4] {
        assert_eq!(copy(&mut w, index, BUFFER, 16), Err(Errno::EPERM), "{index}");
    }
    assert_eq!(copy(&mut w, 3, USER_END - 8, 16), Err(Errno::EFAULT), "its own side");
    w.kernel_call(A, KernelCall::SetGrants, &[BUFFER, 3]).expect("registered");
    assert_eq!(copy(&mut w, 3, BUFFER, 16), Err(Errno::EPERM), "beyond the table");
}

#[test]
fn a_grant_of_memory_that_cannot_be_is_no_way_to_it() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    let id = GrantId::new(0, 1).0 as u64;
    table(&mut w, 0, 1, u64::MAX - 15, u64::MAX);
    for (offset, bytes) in [(0, 8), (16, 8), (15, 1)] {
        assert_eq!(w.kernel_call(B, KernelCall::SafeCopyFrom, &[a, id, offset, BUFFER, bytes]), Err(Errno::EFAULT));
    }
}

#[test]
fn frames_are_filled_within_their_limits_and_in_chunks() {
    let mut w = World::with_services();
    large(&mut w, 40);
    let a = w.endpoint(A).0 as u64;
    let id = GrantId::new(0, 1).0 as u64;
    table(&mut w, 0, 1, LARGE, 40 * PAGE);
    let space = w.space(A);
    w.m.poke(space, LARGE + 2 * CHUNK_BYTES, b"end");
    (0..40).for_each(|page| w.m.map(99, page * PAGE, 0x800_0000 + page * PAGE, map::WRITE));
    let length = 2 * CHUNK_BYTES + 3;
    let filled = chunks(&mut w, B, KernelCall::FrameFill, &[0x800_0000, 16, a, id, 0, length]);
    assert_eq!(filled, (Ok(length), vec![65536, 65536, 3]));
    assert_eq!(w.m.peek(99, 16 + 2 * CHUNK_BYTES, 3), b"end");
    let mut fill = |frame: u64, offset: u64, at: u64, bytes: u64| {
        w.kernel_call(B, KernelCall::FrameFill, &[frame, offset, a, id, at, bytes])
    };
    assert_eq!(fill(u64::MAX, 1, 0, 1), Err(Errno::EINVAL));
    assert_eq!(fill(!0 << 12, 4095, 0, 2), Err(Errno::EINVAL));
    assert_eq!(fill(0x800_0000, 0, 40 * PAGE - 1, 2), Err(Errno::EPERM));
    assert_eq!(fill(0x800_0000, 0, 40 * PAGE - 1, 1), Ok(1));
}

#[test]
fn ranges_of_physical_memory_are_kept_to_the_byte() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let mut rights = all_rights();
    rights.memory[2] = MemoryRange { start: 0x800_0100, bytes: 0x100 };
    w.set_privileges(a, &rights);
    w.m.map(99, 0, 0x800_0000, map::WRITE);
    let mut copy = |from: u64, bytes: u64| w.kernel_call(A, KernelCall::PhysCopy, &[NONE, from, SELF, BUFFER, bytes]);
    assert_eq!(copy(0x800_0100, 0x100), Ok(0x100));
    assert_eq!(copy(0x800_01ff, 1), Ok(1));
    for (from, bytes) in [(0x800_00ff, 1), (0x800_00ff, 2), (0x800_0100, 0x101), (0x800_01ff, 2), (0x800_0200, 1)] {
        assert_eq!(copy(from, bytes), Err(Errno::ECALLDENIED), "{from:#x} {bytes:#x}");
    }
}
