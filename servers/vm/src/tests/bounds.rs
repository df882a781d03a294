//! Limits, and what is taken: arguments at the edge of what is allowed, pages that come with others, the last frames, vm's own heap.
//! The file is long because each limit has two sides.

use super::*;
use crate::memory::Floor;
use crate::memory::frames::{Frame, Frames, Payer};
use crate::memory::marks::Marks;
use crate::memory::pages::{LEAF_HEAP_BYTES, LEAF_PAGES, Pages};
use crate::simulation::{Touch, grant};
use crate::space::region::{MAX_REGIONS, MMAP_TOP, Region, Rights};
use abi::{
    Errno,
    layout::{SERVICE_HEAP, USER_END, USER_START},
    limits::FREE_FRAMES,
    linux::nr,
    vm::MapRecord,
};
use std::collections::BTreeMap;
use zerocopy::FromBytes;

const ARENA: u64 = 0x10_0000;
const POPULATE: u64 = 0x8000;
const KIB: usize = 1024;

type Vm = Server<Simulation>;

fn mmap(vm: &mut Vm, process: Endpoint, at: u64, bytes: u64, rights: u64, flags: u64) -> Result<u64, Errno> {
    vm.call(process, nr::MMAP, [at, bytes, rights, flags, u64::MAX, 0])
}

/// Maps private memory to read and write at a page of the arena.
fn map_at(vm: &mut Vm, process: Endpoint, page: u64, pages: u64) -> u64 {
    let at = ARENA + page * P;
    assert_eq!(mmap(vm, process, at, pages * P, READ | WRITE, PRIVATE | ANONYMOUS | FIXED), Ok(at));
    at
}

fn mremap(vm: &mut Vm, process: Endpoint, words: [u64; 5]) -> Result<u64, Errno> {
    let [old, old_bytes, new_bytes, flags, new] = words;
    vm.call(process, nr::MREMAP, [old, old_bytes, new_bytes, flags, new, 0])
}

fn pages(vm: &mut Vm, process: Endpoint) -> u64 {
    vm.processes.space(process).expect("known").pages.count()
}

fn faults(vm: &mut Vm, process: Endpoint) -> u64 {
    vm.processes.space(process).expect("known").used.faults
}

/// Whether the kernel maps each of these pages, and whether for writing.
fn mapped(vm: &Vm, process: Endpoint, at: u64, pages: u64) -> Vec<Option<bool>> {
    let flags = |page| vm.memory.kernel.mapping(process, at + page * P).map(|(_, flags)| flags);
    (0..pages).map(|page| flags(page).map(|flags| flags & abi::layout::map::WRITE != 0)).collect()
}

#[test]
fn a_process_has_so_many_mappings_and_no_more() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 8);
    let space = vm.processes.space(p).expect("known");
    // Neighbours with other rights, so that they stay apart.
    let mut next = 0;
    while space.regions.len() < MAX_REGIONS - 3 {
        let start = 0x10_0000_0000 + next * P;
        space.regions.insert(Region::anonymous(
            start,
            start + P,
            if next % 2 == 0 { Rights::READ } else { Rights::NONE },
        ));
        next += 1;
    }
    let last = 0x10_0000_0000 + (next - 1) * P;
    (space.heap_start, space.heap_end) = (0x20_0000_0000, 0x20_0000_0000);
    let calls: [(&str, &dyn Fn(&mut Vm) -> Result<u64, Errno>); 8] = [
        ("mmap", &|vm| mmap(vm, p, 0, P, READ, PRIVATE | ANONYMOUS)),
        ("mmap shared", &|vm| mmap(vm, p, 0, P, READ, SHARED | ANONYMOUS)),
        ("mprotect", &|vm| vm.call(p, nr::MPROTECT, [at + P, P, READ, 0, 0, 0])),
        ("mlock", &|vm| vm.call(p, nr::MLOCK, [at + P, P, 0, 0, 0, 0])),
        ("munlock", &|vm| vm.call(p, nr::MUNLOCK, [at + P, P, 0, 0, 0, 0])),
        ("mremap", &|vm| mremap(vm, p, [at, 8 * P, 4 * P, 0, 0])),
        ("madvise", &|vm| vm.call(p, nr::MADVISE, [at + P, P, 18, 0, 0, 0])),
        ("brk", &|vm| {
            let end = vm.call(p, nr::BRK, [0x20_0000_0000 + P, 0, 0, 0, 0, 0])?;
            if end > 0x20_0000_0000 { Ok(end) } else { Err(Errno::ENOMEM) }
        }),
    ];
    let full = Region::anonymous(last + P, last + 2 * P, Rights(if next % 2 == 0 { 1 } else { 0 }));
    vm.processes.space(p).expect("known").regions.insert(full);
    for (name, call) in &calls {
        assert_eq!(call(&mut vm), Err(Errno::ENOMEM), "{name}");
    }
    // What needs no more mappings is possible, and so is a cut as long as there is one left.
    assert_eq!(vm.call(p, nr::MADVISE, [at, P, 4, 0, 0, 0]), Ok(0));
    assert_eq!(vm.call(p, nr::MUNMAP, [at + 2 * P, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(vm.call(p, nr::MUNMAP, [at + 4 * P, P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(vm.processes.space(p).expect("known").regions.len(), MAX_REGIONS);
    assert_eq!(vm.call(p, nr::MUNMAP, [at + 6 * P, P, 0, 0, 0, 0]), Err(Errno::ENOMEM), "in the middle");
    assert_eq!(vm.call(p, nr::MUNMAP, [at + 5 * P, P, 0, 0, 0, 0]), Ok(0), "at the beginning");
    assert_eq!(vm.call(p, nr::MUNMAP, [at + 7 * P, P, 0, 0, 0, 0]), Ok(0), "at the end");
    assert_eq!(vm.call(p, nr::MUNMAP, [0x10_0000_0000, 4 * P, 0, 0, 0, 0]), Ok(0));
    for (name, call) in &calls[2..6] {
        let result = call(&mut vm);
        assert!(result.is_ok() || *name == "mremap", "{name}: {result:?}");
    }
    assert!(calls[0].1(&mut vm).is_ok());
}

#[test]
fn addresses_are_user_addresses_to_the_last_page() {
    let (mut vm, p) = with_program(512);
    let fixed = PRIVATE | ANONYMOUS | FIXED;
    for (at, bytes, expected) in [
        (USER_START, P, Ok(USER_START)),
        (USER_START - P, P, Err(Errno::EPERM)),
        (USER_END - P, P, Ok(USER_END - P)),
        (USER_END - P, P + 1, Err(Errno::ENOMEM)),
        (USER_END, P, Err(Errno::ENOMEM)),
        (u64::MAX - P + 1, P, Err(Errno::ENOMEM)),
    ] {
        assert_eq!(mmap(&mut vm, p, at, bytes, READ, fixed), expected, "{at:#x}");
    }
    // A hint is rounded up; where it cannot be, any address will do.
    let hinted = |vm: &mut Vm, at, bytes| mmap(vm, p, at, bytes, READ, PRIVATE | ANONYMOUS).expect("free");
    assert_eq!(hinted(&mut vm, ARENA + 1, P), ARENA + P);
    assert_eq!(hinted(&mut vm, ARENA + P, P), MMAP_TOP - P, "it is taken");
    assert_eq!(hinted(&mut vm, USER_START - P, P), MMAP_TOP - 2 * P);
    assert_eq!(hinted(&mut vm, USER_START + P, P), USER_START + P);
    assert_eq!(hinted(&mut vm, USER_END - 2 * P, P), USER_END - 2 * P);
    assert_eq!(hinted(&mut vm, USER_END - 2 * P, 2 * P), MMAP_TOP - 4 * P, "half of it is taken");
    assert_eq!(hinted(&mut vm, u64::MAX, P), MMAP_TOP - 5 * P);
    let low = mmap(&mut vm, p, 0, P, READ, PRIVATE | ANONYMOUS | 0x40).expect("free");
    assert_eq!(low, (1 << 31) - P, "MAP_32BIT");
    for (at, bytes, error) in [
        (ARENA, USER_END, Errno::EINVAL),
        (USER_END - P, 2 * P, Errno::EINVAL),
        (ARENA, u64::MAX, Errno::EINVAL),
        (ARENA + 1, P, Errno::EINVAL),
    ] {
        assert_eq!(vm.call(p, nr::MUNMAP, [at, bytes, 0, 0, 0, 0]), Err(error), "{at:#x} {bytes:#x}");
    }
    assert_eq!(vm.call(p, nr::MUNMAP, [USER_END - P, 1, 0, 0, 0, 0]), Ok(0));
    assert_eq!(vm.load(p, USER_END - P), Err(Errno::EFAULT));
    assert_eq!(hinted(&mut vm, USER_END - P, P), USER_END - P, "the last page");
    invariants::check(&vm);
}

#[test]
fn more_than_all_memory_is_promised_to_nobody() {
    let (mut vm, p) = with_program(512);
    let all = vm.memory.frames.total() as u64 * P;
    let private = PRIVATE | ANONYMOUS;
    assert!(mmap(&mut vm, p, 0, all, READ | WRITE, private).is_ok());
    assert_eq!(mmap(&mut vm, p, 0, all + 1, READ | WRITE, private), Err(Errno::ENOMEM));
    assert!(mmap(&mut vm, p, 0, all + 1, READ, private).is_ok(), "nothing is filled");
    let at = map_at(&mut vm, p, 0, 1);
    assert_eq!(mremap(&mut vm, p, [at, P, all + P, 1, 0]), Err(Errno::ENOMEM));
    let grown = mremap(&mut vm, p, [at, P, all, 1, 0]).expect("as much as there is");
    assert!(mremap(&mut vm, p, [grown, all, all - P, 1, 0]).is_ok(), "less is always possible");
    let space = vm.processes.space(p).expect("known");
    (space.heap_start, space.heap_end) = (0x20_0000_0000, 0x20_0000_0000);
    let brk = |vm: &mut Vm, bytes| vm.call(p, nr::BRK, [0x20_0000_0000 + bytes, 0, 0, 0, 0, 0]).expect("an end");
    assert_eq!(brk(&mut vm, all + 1), 0x20_0000_0000);
    assert_eq!(brk(&mut vm, all), 0x20_0000_0000 + all);
    assert_eq!(brk(&mut vm, 1), 0x20_0000_0001);
    assert_eq!(brk(&mut vm, 0), 0x20_0000_0000, "nothing of it is left");
    assert_eq!(vm.load(p, 0x20_0000_0000), Err(Errno::EFAULT));
    assert_eq!(vm.call(p, nr::BRK, [0x20_0000_0000 - 1, 0, 0, 0, 0, 0]), Ok(0x20_0000_0000), "never below its start");
}

#[test]
fn memory_is_filled_in_advance_as_it_is_asked_for() {
    let (mut vm, p) = with_program(2048);
    for (rights, flags, filled) in [
        (READ | WRITE, PRIVATE | ANONYMOUS | POPULATE, 5),
        (READ, PRIVATE | ANONYMOUS | POPULATE, 5),
        (READ | WRITE, SHARED | ANONYMOUS | POPULATE, 5),
        (0, PRIVATE | ANONYMOUS | POPULATE, 0),
        (READ | WRITE, PRIVATE | ANONYMOUS | 0x2000, 5),
        (READ | WRITE, PRIVATE | ANONYMOUS, 0),
    ] {
        let before = (pages(&mut vm, p), faults(&mut vm, p));
        let at = mmap(&mut vm, p, 0, 5 * P, rights, flags).expect("memory");
        assert_eq!(pages(&mut vm, p) - before.0, filled, "{rights} {flags:#x}");
        if filled > 0 {
            (0..5).for_each(|page| assert_eq!(vm.load(p, at + page * P), Ok(0)));
            assert_eq!(faults(&mut vm, p), before.1, "{rights} {flags:#x}: nothing is left to faults");
        }
    }
    let at = map_at(&mut vm, p, 0, 6);
    vm.store(p, at + 2 * P, 7).expect("writable");
    let advise = |vm: &mut Vm, page: u64, pages: u64, advice| {
        vm.call(p, nr::MADVISE, [at + page * P, pages * P, advice, 0, 0, 0])
    };
    let before = pages(&mut vm, p);
    assert_eq!(advise(&mut vm, 1, 3, 23), Ok(0));
    assert_eq!((pages(&mut vm, p) - before, vm.load(p, at + 2 * P)), (2, Ok(7)));
    assert_eq!(advise(&mut vm, 4, 1, 22), Ok(0));
    assert_eq!(mapped(&vm, p, at + 4 * P, 1), [Some(true)]);
    let there = pages(&mut vm, p);
    assert_eq!((advise(&mut vm, 0, 0, 22), pages(&mut vm, p)), (Ok(0), there), "nothing");
    vm.call(p, nr::MPROTECT, [at + 5 * P, P, READ, 0, 0, 0]).expect("mapped");
    assert_eq!((advise(&mut vm, 4, 2, 23), advise(&mut vm, 4, 2, 22)), (Err(Errno::EINVAL), Ok(0)));
    vm.call(p, nr::MPROTECT, [at + 5 * P, P, 0, 0, 0, 0]).expect("mapped");
    assert_eq!(advise(&mut vm, 4, 2, 22), Err(Errno::EINVAL));
    invariants::check(&vm);
}

#[test]
fn who_walks_through_new_memory_gets_more_and_more_of_it_at_a_time() {
    let (mut vm, p) = with_program(1024);
    let at = map_at(&mut vm, p, 0, 200);
    let mut taken = Vec::new();
    let mut page = 0;
    while page < 50 {
        let before = pages(&mut vm, p);
        vm.store(p, at + page * P, 1).expect("writable");
        let more = pages(&mut vm, p) - before;
        taken.push(more);
        page += more.max(1);
    }
    assert_eq!(taken[..6], [1, 2, 4, 8, 8, 8]);
    // Somewhere else it begins anew, and does not go beyond the end, nor over what is there.
    let other = map_at(&mut vm, p, 300, 5);
    vm.store(p, other + 4 * P, 9).expect("writable");
    let mut touch = |page: u64| {
        let before = pages(&mut vm, p);
        vm.store(p, other + page * P, 1).expect("writable");
        pages(&mut vm, p) - before
    };
    assert_eq!([touch(0), touch(1), touch(3)], [1, 2, 1]);
    assert_eq!(vm.load(p, other + 4 * P), Ok(9));
    invariants::check(&vm);
}

#[test]
fn a_moved_mapping_is_mapped_where_it_was_written() {
    let (mut vm, p) = with_program(1024);
    let at = map_at(&mut vm, p, 0, 80);
    (0..80).filter(|page| *page != 40).for_each(|page| {
        vm.store(p, at + page * P, 1 + page as u8).expect("writable");
    });
    vm.call(p, nr::MADVISE, [at + 40 * P, P, 4, 0, 0, 0]).expect("mapped");
    let target = ARENA + 1000 * P;
    let before = faults(&mut vm, p);
    assert_eq!(mremap(&mut vm, p, [at + P, 79 * P, 70 * P, 3, target]), Ok(target));
    let expected: Vec<_> = (0..70).map(|page| (page != 39).then_some(true)).collect();
    assert_eq!(mapped(&vm, p, target, 70), expected, "no fault is needed to write");
    for page in (0..70).filter(|page| *page != 39) {
        assert_eq!(vm.load(p, target + page * P), Ok(2 + page as u8));
    }
    assert_eq!(faults(&mut vm, p), before);
    assert_eq!(
        (vm.load(p, at), vm.load(p, at + P), vm.load(p, at + 75 * P)),
        (Ok(1), Err(Errno::EFAULT), Err(Errno::EFAULT))
    );
    assert_eq!(vm.load(p, target + 70 * P), Err(Errno::EFAULT));
    assert_eq!(pages(&mut vm, p), 1 + 69);
    // What others use too is not written without a copy.
    fork(&mut vm, p, program(1)).expect("memory");
    let again = ARENA + 2000 * P;
    assert_eq!(mremap(&mut vm, p, [target, 70 * P, 70 * P, 3, again]), Ok(again));
    assert!(mapped(&vm, p, again, 70).iter().all(|page| *page != Some(true)));
    [0, 5, 7].into_iter().for_each(|page| vm.store(p, again + page * P, 99).expect("writable"));
    assert_eq!((vm.load(program(1), target), vm.load(p, again)), (Ok(2), Ok(99)));
    assert_eq!(mremap(&mut vm, p, [again, 70 * P, 70 * P, 3, target]), Ok(target));
    let own: Vec<u64> = (0..70).filter(|&page| mapped(&vm, p, target + page * P, 1) == [Some(true)]).collect();
    assert_eq!(own, [0, 5, 7]);
    invariants::check(&vm);
}

#[test]
fn a_mapping_that_is_read_only_is_moved_without_the_right_to_write() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 3);
    (0..3).for_each(|page| vm.store(p, at + page * P, 5).expect("writable"));
    vm.call(p, nr::MPROTECT, [at, 3 * P, READ, 0, 0, 0]).expect("mapped");
    let target = ARENA + 100 * P;
    assert_eq!(mremap(&mut vm, p, [at, 3 * P, 3 * P, 3, target]), Ok(target));
    assert_eq!((vm.load(p, target + P), vm.store(p, target, 1)), (Ok(5), Err(Errno::EACCES)));
    invariants::check(&vm);
}

#[test]
fn the_arguments_of_mremap_have_limits() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 4);
    let shared = mmap(&mut vm, p, 0, 2 * P, READ | WRITE, SHARED | ANONYMOUS).expect("memory");
    vm.store(p, shared + P, 6).expect("writable");
    vm.store(p, at, 7).expect("writable");
    let invalid = Err(Errno::EINVAL);
    for (words, expected) in [
        ([at, P, P, 3, USER_START - P], invalid),
        ([at, P, P, 3, USER_END], invalid),
        ([at, P, 2 * P, 3, USER_END - P], invalid),
        ([at, P, P, 3, ARENA + 100 * P + 1], invalid),
        ([at, 4 * P, 4 * P, 3, at + 3 * P], invalid),
        ([at, 2 * P, 2 * P, 3, at - P], invalid),
        ([at, P, P, 4, 0], invalid),
        ([at, P, 2 * P, 5, 0], invalid),
        ([at, P, u64::MAX, 1, 0], invalid),
        ([USER_END, P, P, 1, 0], invalid),
        ([at, 5 * P, 5 * P, 1, 0], Err(Errno::EFAULT)),
        ([at + 4 * P, P, P, 1, 0], Err(Errno::EFAULT)),
        ([at, 0, P, 0, 0], invalid),
        ([shared, 0, P, 0, 0], Err(Errno::ENOMEM)),
    ] {
        assert_eq!(mremap(&mut vm, p, words), expected, "{words:x?}");
    }
    assert_eq!(mremap(&mut vm, p, [at, 4 * P, 4 * P, 0, 0]), Ok(at), "as it is");
    assert_eq!(vm.load(p, at), Ok(7));
    // Targets that touch the old place, and the last ones.
    assert_eq!(mremap(&mut vm, p, [at, 2 * P, 2 * P, 3, at + 2 * P]), Ok(at + 2 * P));
    assert_eq!(mremap(&mut vm, p, [at + 2 * P, 2 * P, 2 * P, 3, at]), Ok(at));
    assert_eq!(mremap(&mut vm, p, [at, P, P, 3, USER_START]), Ok(USER_START));
    assert_eq!(mremap(&mut vm, p, [USER_START, P, P, 3, USER_END - P]), Ok(USER_END - P));
    assert_eq!(vm.load(p, USER_END - P), Ok(7));
    assert_eq!(mremap(&mut vm, p, [USER_END - P, P, P, 0, 0]), Ok(USER_END - P));
    assert_eq!(mremap(&mut vm, p, [USER_END - P, 2 * P, P, 0, 0]), invalid);
    // A second view of shared memory, and an old place that stays, empty.
    let twin = mremap(&mut vm, p, [shared, 0, 2 * P, 1, 0]).expect("a second view");
    vm.store(p, twin, 8).expect("writable");
    assert_eq!((vm.load(p, shared), vm.load(p, twin + P)), (Ok(8), Ok(6)));
    let left = map_at(&mut vm, p, 50, 2);
    vm.store(p, left + P, 9).expect("writable");
    let moved = mremap(&mut vm, p, [left, 2 * P, 2 * P, 5, 0]).expect("MREMAP_DONTUNMAP");
    assert_eq!((vm.load(p, moved + P), vm.load(p, left + P), vm.store(p, left, 1)), (Ok(9), Ok(0), Ok(())));
    invariants::check(&vm);
}

#[test]
fn a_mapping_grows_in_place_up_to_the_next_one_and_the_top() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 1);
    map_at(&mut vm, p, 3, 1);
    assert_eq!(mremap(&mut vm, p, [at, P, 3 * P, 0, 0]), Ok(at));
    assert_eq!(mremap(&mut vm, p, [at, 3 * P, 4 * P, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(mremap(&mut vm, p, [at, P, 2 * P, 0, 0]), Err(Errno::ENOMEM), "not from its midst");
    let top = MMAP_TOP - 2 * P;
    assert_eq!(mmap(&mut vm, p, top, P, READ | WRITE, PRIVATE | ANONYMOUS | FIXED), Ok(top));
    assert_eq!(mremap(&mut vm, p, [top, P, 2 * P, 0, 0]), Ok(top));
    assert_eq!(mremap(&mut vm, p, [top, 2 * P, 3 * P, 0, 0]), Err(Errno::ENOMEM));
    // Memory of a mapping that was left goes back.
    let free = vm.memory.frames.free();
    (0..3).for_each(|page| vm.store(p, at + page * P, 1).expect("writable"));
    assert_eq!(mremap(&mut vm, p, [at, 3 * P, P, 0, 0]), Ok(at));
    assert_eq!(vm.load(p, at + P), Err(Errno::EFAULT));
    vm.call(p, nr::MUNMAP, [at, P, 0, 0, 0, 0]).expect("mapped");
    assert!(free - vm.memory.frames.free() <= 16, "but for page tables");
    invariants::check(&vm);
}

#[test]
fn the_last_frames_are_for_those_on_whom_others_depend() {
    let mut vm = Simulation::start(600);
    let memory = &mut vm.memory;
    let left = |memory: &mut crate::memory::Memory<Simulation>, frames: usize| {
        while memory.frames.free() > frames {
            memory.frames.take();
        }
    };
    left(memory, FREE_FRAMES + 3);
    assert_eq!(memory.take_some(10, Floor::PROGRAM).map(|run| run.frames), Ok(3));
    assert_eq!(memory.take_some(10, Floor::PROGRAM), Err(Errno::ENOMEM));
    assert_eq!(memory.take(Floor::PROGRAM), Err(Errno::ENOMEM));
    assert_eq!(memory.take_run(1, Floor::PROGRAM), Err(Errno::ENOMEM));
    assert!(memory.take(Floor::SERVICE).is_ok());
    left(memory, 64 + 2);
    assert_eq!(memory.take_run(3, Floor::SERVICE), Err(Errno::ENOMEM));
    assert_eq!(memory.take_run(2, Floor::SERVICE).map(|run| run.frames), Ok(2));
    assert_eq!(memory.take(Floor::SERVICE), Err(Errno::ENOMEM));
    assert_eq!(memory.take_some(100, Floor::OWN).map(|run| run.frames), Ok(64));
    assert_eq!(memory.take(Floor::OWN), Err(Errno::ENOMEM));
    assert_eq!(memory.frames.free(), 0);
}

#[test]
fn a_quarter_of_what_is_free_may_be_set_aside() {
    let mut vm = Simulation::start(600);
    let memory = &mut vm.memory;
    let quarter = memory.frames.free() as u64 / 4;
    assert_eq!(memory.take_spare_run(quarter + 1), None);
    assert_eq!(memory.take_spare_run(quarter).map(|run| run.frames), Some(quarter));
}

#[test]
fn a_large_program_leaves_more_to_others_than_a_small_one() {
    let (mut vm, p) = with_program(1024);
    let total = vm.memory.frames.total() as u64;
    let space = vm.processes.space(p).expect("known");
    let small = Floor::PROGRAM;
    let large = small.raised_by(total as usize / 64);
    for (tables, expected) in [(total / 8, small), (total / 8 + 1, large)] {
        space.table_frames = tables;
        assert_eq!(space.floor(&vm.memory), expected, "{tables}");
    }
    space.is_service = true;
    assert_eq!(space.floor(&vm.memory), Floor::SERVICE);
    (space.is_service, space.table_frames) = (false, 0);
}

/// A vm whose heap ends, and which can map more.
fn with_heap(frames: u32, heap_bytes: u64) -> Vm {
    let mut vm = Simulation::start(frames);
    empty_heap(&mut vm);
    vm.memory.kernel.heap_bytes = Some(heap_bytes);
    vm
}

fn empty_heap(vm: &mut Vm) {
    vm.memory.kernel.heap_bytes = Some(0);
    vm.memory.kernel.tables.insert(slot::VM as u64, BTreeMap::new());
}

fn heap(vm: &Vm) -> u64 {
    vm.memory.kernel.heap_bytes.expect("it ends")
}

#[test]
fn the_heap_of_vm_grows_before_it_ends() {
    let mut vm = with_heap(2000, 0);
    let before = (vm.memory.frames.free(), vm.memory.own_frames());
    assert_eq!(vm.memory.ensure_heap(128 * KIB), Ok(()));
    assert_eq!(heap(&vm), 129 * P, "half a MiB, and a page");
    let used = vm.memory.own_frames() - before.1;
    assert_eq!(before.0 - vm.memory.frames.free(), used as usize);
    assert!((129..129 + 20).contains(&used), "{used}: the heap, and page tables");
    let own = &vm.memory.kernel.tables[&(slot::VM as u64)];
    let first = SERVICE_HEAP / P;
    assert!(own.keys().copied().eq(first..first + 129), "one page behind the other");
    assert!(own.values().all(|(frame, flags)| {
        *flags == abi::layout::map::WRITE && vm.memory.frames.users(*frame) == crate::memory::frames::OWN
    }));
    // Now it is large enough for a while.
    (0..100).for_each(|_| assert_eq!(vm.memory.ensure_heap(128 * KIB), Ok(())));
    assert_eq!(heap(&vm), 129 * P);
    let wanted = 1024 * KIB + 2 * 128 * KIB;
    assert_eq!(vm.memory.ensure_heap(1024 * KIB), Ok(()));
    assert_eq!(heap(&vm), 129 * P + wanted as u64 + P, "all that is wanted, and a page");
    assert_eq!(vm.memory.ensure_heap(usize::MAX), Err(Errno::ENOMEM));
}

#[test]
fn small_requests_look_at_the_heap_now_and_then() {
    let mut vm = with_heap(2000, 0);
    assert_eq!(vm.memory.ensure_heap(128 * KIB), Ok(()));
    empty_heap(&mut vm);
    // 128 KiB of credit, of which each takes 4.
    (0..32).for_each(|_| assert_eq!(vm.memory.ensure_request_heap(), Ok(())));
    assert_eq!(heap(&vm), 0);
    assert_eq!(vm.memory.ensure_request_heap(), Ok(()));
    assert_eq!(heap(&vm), 129 * P);
    (0..10).for_each(|_| assert_eq!(vm.memory.ensure_heap(8 * KIB), Ok(())));
    empty_heap(&mut vm);
    assert_eq!(vm.memory.ensure_heap(4 * KIB), Ok(()), "8 KiB are left");
    assert_eq!(heap(&vm), 0);
    assert_eq!(vm.memory.ensure_heap(0), Ok(()));
    assert_eq!(heap(&vm), 129 * P);
}

#[test]
fn without_memory_the_heap_serves_as_long_as_it_goes() {
    let enough = 256 * KIB as u64;
    let mut vm = with_heap(600, 0);
    while vm.memory.frames.free() > FREE_FRAMES + 128 {
        vm.memory.frames.take();
    }
    let free = vm.memory.frames.free();
    for (heap_bytes, expected) in [(enough, Ok(())), (enough - 1, Err(Errno::ENOMEM)), (0, Err(Errno::ENOMEM))] {
        vm.memory.kernel.heap_bytes = Some(heap_bytes);
        assert_eq!((vm.memory.ensure_heap(128 * KIB), heap(&vm)), (expected, heap_bytes));
        assert_eq!(vm.memory.frames.free(), free, "nothing was taken");
    }
    // A request is refused, and nothing happens.
    let fork = vm::Fork { parent: Endpoint::NONE, child: program(0), share: false, pid: 1 };
    assert_eq!(vm.ask(slot::PM, fork.message()).result(), Err(Errno::ENOMEM));
    vm.memory.kernel.heap_bytes = Some(enough);
    assert_eq!(vm.ask(slot::PM, fork.message()).result(), Ok(0));
}

#[test]
fn the_heap_grows_in_pieces_of_what_is_free() {
    let mut vm = with_heap(1000, 0);
    let all: Vec<_> = core::iter::from_fn(|| vm.memory.frames.take()).collect();
    let pieces = all.chunks(3).flat_map(|three| &three[..three.len().min(2)]);
    pieces.for_each(|&frame| vm.memory.frames.release(frame));
    let before = (vm.memory.frames.free(), vm.memory.own_frames());
    assert_eq!(vm.memory.ensure_heap(128 * KIB), Ok(()));
    assert_eq!(heap(&vm), 129 * P);
    assert_eq!(before.0 - vm.memory.frames.free(), (vm.memory.own_frames() - before.1) as usize);
    let first = SERVICE_HEAP / P;
    assert!(vm.memory.kernel.tables[&(slot::VM as u64)].keys().copied().eq(first..first + 129));
}

#[test]
fn a_list_of_marks_tells_before_how_much_heap_it_needs_to_grow() {
    let mut marks = Marks::default();
    for leaf in 0..100u64 {
        let told = marks.growth_bytes();
        marks.change(leaf * LEAF_PAGES);
        assert!(told >= 2 * 24 * leaf as usize, "{leaf}: {told} bytes");
    }
}

#[test]
fn spaces_that_nobody_knows_are_destroyed_and_those_that_are_gone_are_forgotten() {
    let mut vm = Simulation::start(2000);
    let spaces: Vec<_> = (0..200).map(|_| vm.memory.create_space().expect("a space")).collect();
    assert_eq!(spaces.last().map(|space| space.0), Some(200));
    let gone = [3, 63, 65, 126, 128, 129, 198];
    for number in gone {
        assert_eq!(vm.memory.destroy_space(spaces[number - 1]), Ok(()));
    }
    vm.memory.drop_unknown_spaces(|space| space.0.is_multiple_of(3));
    let left: Vec<u64> = vm.memory.kernel.tables.keys().copied().collect();
    let expected = |number: &u64| number.is_multiple_of(3) && !gone.contains(&(*number as usize));
    assert_eq!(left, (1..=200).filter(expected).collect::<Vec<_>>());
    vm.memory.drop_unknown_spaces(|_| false);
    assert!(vm.memory.kernel.tables.is_empty());
}

#[test]
fn each_mapping_is_told_with_its_kind_its_rights_and_what_it_shows() {
    let (mut vm, p) = with_program(1024);
    let rights = vm::SetRights { process: Endpoint::new(slot::PM, 1), dma_bytes: 0, inspects_memory: true };
    vm.ask(slot::RS, rights.message()).result().expect("allowed");
    let (heap, other, shared, vdso, stack) = (0x1000_0000, 0x2000_0000, 0x3000_0000, 0x4000_0000, 0x5000_0000);
    let space = vm.processes.space(p).expect("known");
    (space.heap_start, space.heap_end) = (heap, heap);
    space.add_vdso(&mut vm.memory, vdso).expect("memory");
    space.add_stack(&mut vm.memory, stack, 1 << 20, Rights::READ_WRITE).expect("memory");
    vm.call(p, nr::BRK, [heap + P, 0, 0, 0, 0, 0]).expect("an end");
    mmap(&mut vm, p, other, 2 * P, READ | EXECUTE, PRIVATE | ANONYMOUS | FIXED).expect("memory");
    mmap(&mut vm, p, shared, P, READ | WRITE, SHARED | ANONYMOUS | FIXED).expect("memory");
    vm.load(p, other).expect("readable");
    let image = files::image(&mut vm, 9, files::content(3 * P));
    let file = files::map(&mut vm, p, image, 2);
    let record = |vm: &mut Vm, first| {
        let grant = grant(vm, vec![0; size_of::<MapRecord>()]);
        let maps = vm::Maps { process: p, first, grant, bytes: size_of::<MapRecord>() as u64 };
        let bytes = vm.ask(slot::PM, maps.message()).result().expect("allowed");
        (bytes > 0).then(|| MapRecord::read_from_bytes(&vm.memory.kernel.grants[&grant.0]).expect("a record"))
    };
    let all: Vec<_> = (0..).map_while(|first| record(&mut vm, first)).collect();
    let told = |start: u64| {
        let record = all.iter().find(|record| record.start == start).expect("it is there");
        (record.end - start, record.resident, record.protection, record.kind, record.inode, record.device)
    };
    assert_eq!(told(heap), (P, 0, 3, 1, 0, 0));
    assert_eq!(told(other), (2 * P, P, 5, 0, 0, 0));
    assert_eq!(told(shared), (P, 0, 3 | 8, 0, 0, 0));
    assert_eq!(told(vdso), (P, 0, 1, 3, 0, 0), "it counts for nobody");
    assert_eq!(told(vdso + abi::layout::VDSO_OFFSET), (abi::layout::VDSO_BYTES - P, P, 5, 4, 0, 0));
    assert_eq!(told(stack - 0x21 * P), (0x21 * P, 2 * P, 3, 2, 0, 0));
    assert_eq!(told(file), (2 * P, 0, 1, 0, 9, 1));
    assert_eq!(all.len(), 7);
    assert!(all.iter().all(|record| record.offset == 0));
    let sizes =
        vm::ProcessMemory::results(&vm.ask(slot::PM, vm::ProcessMemory { process: p }.message())).expect("told");
    let (bytes, resident, data, of_stack, ..) = sizes;
    assert_eq!(bytes, all.iter().map(|record| record.end - record.start).sum());
    assert_eq!(resident, all.iter().map(|record| record.resident).sum());
    assert_eq!((data, of_stack), (P, 0x21 * P));
}

#[test]
fn the_neighbours_of_a_touched_page_of_a_file_are_mapped_with_it() {
    const PAGES: u64 = 150;
    let (mut vm, p) = with_program(2000);
    let image = files::image(&mut vm, 9, files::content(PAGES * P));
    let at = files::map(&mut vm, p, image, PAGES);
    assert_eq!(pages(&mut vm, p), 0);
    vm.load(p, at + 70 * P).expect("readable");
    let leaf = |page: u64| (at / P + page) / LEAF_PAGES;
    let expected: Vec<_> = (0..PAGES).map(|page| (leaf(page) == leaf(70)).then_some(false)).collect();
    assert_eq!(mapped(&vm, p, at, PAGES), expected);
    // What is there already stays as it is.
    vm.call(p, nr::MADVISE, [at + 69 * P, 2 * P, 4, 0, 0, 0]).expect("mapped");
    vm.load(p, at + 69 * P).expect("readable");
    assert_eq!(mapped(&vm, p, at, PAGES), expected);
    assert_eq!(faults(&mut vm, p), 2);
    invariants::check(&vm);
}

/// It may have paid for the frame before.
#[test]
fn a_recount_charges_nobody_for_a_frame_that_is_not_paid_for() {
    let mut frames = Frames::new(10);
    (0..10).for_each(|number| frames.add(Frame(number)));
    let payer = Payer::container(3).expect("a container");
    let run = frames.take_some(2).expect("free");
    frames.charge(run, payer);
    run.iter().for_each(|frame| frames.release(frame));
    let again = frames.take().expect("free");
    assert_eq!(again, run.first);
    frames.begin_recount();
    assert!(frames.claim(again));
    frames.end_recount();
    assert_eq!((frames.paid_by(payer), frames.users(again)), (0, 1));
}

#[test]
fn what_a_fork_takes_of_the_heap_is_asked_for_before() {
    let (mut vm, p) = with_program(2000);
    let at = map_at(&mut vm, p, 0, 1000);
    (0..1000).for_each(|page| vm.store(p, at + page * P, 1).expect("writable"));
    let space = vm.processes.space(p).expect("known");
    let (leaves, bytes) = (space.pages.leaves(), space.heap_bytes());
    assert!((15..=17).contains(&leaves));
    assert!(bytes >= leaves * LEAF_HEAP_BYTES + size_of::<Region>(), "{bytes} bytes");
}

/// A list of pages that grows is copied: until then both are in the heap.
#[test]
fn a_list_of_pages_tells_before_how_much_heap_it_needs_to_grow() {
    let (mut pages, mut frames) = (Pages::default(), Frames::new(1));
    let mut growths = Vec::new();
    for leaf in 0..100u64 {
        if pages.must_grow() {
            growths.push((pages.leaves(), pages.growth_bytes()));
        }
        pages.borrow(leaf * LEAF_PAGES, 1, &mut frames);
    }
    assert!((3..10).contains(&growths.len()), "{growths:?}");
    for pair in growths[1..].windows(2) {
        let ((_, told), (capacity, _)) = (pair[0], pair[1]);
        assert!(told >= capacity * size_of::<usize>(), "{growths:?}");
    }
    for (leaves, told) in &growths[1..] {
        assert!(*told <= 2 * leaves * size_of::<usize>(), "it doubles: {growths:?}");
    }
}

#[test]
fn what_vm_tells_about_the_machine_adds_up() {
    let mut vm = Simulation::start(600);
    let (total, free, cached, own) =
        vm::MemoryInfo::results(&vm.ask(slot::PM, vm::MemoryInfo {}.message())).expect("told");
    assert_eq!((total, free, cached), (600 * P, vm.memory.frames.free() as u64 * P, 0));
    assert_eq!(own, vm.memory.own_frames() * P);
    assert_eq!(own, 3 * P, "zeros and the pages of the vdso");
}

#[test]
fn a_new_stack_begins_with_pages_of_zeros_that_are_mapped() {
    let (mut vm, p) = with_program(512);
    let end = 0x5000_0000;
    vm.processes.space(p).expect("known").add_stack(&mut vm.memory, end, 1 << 20, Rights::READ_WRITE).expect("memory");
    assert_eq!(mapped(&vm, p, end - 3 * P, 3), [None, Some(true), Some(true)]);
    assert_eq!([end - 2 * P, end - 1].map(|at| vm.load(p, at)), [Ok(0); 2]);
    invariants::check(&vm);
}

#[test]
fn a_tracer_writes_within_one_page() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 2);
    let source = grant(&mut vm, vec![7; 2 * P as usize]);
    let mut poke = |offset: u64, bytes: u64| {
        vm.ask(slot::PM, vm::Poke { process: p, address: at + offset, grant: source, bytes }.message()).result()
    };
    assert_eq!([poke(0, P + 1), poke(1, P), poke(P - 1, 2)], [Err(Errno::EINVAL); 3]);
    assert_eq!([poke(0, P), poke(P + 1, P - 1), poke(2 * P - 1, 1)], [Ok(0); 3]);
    assert_eq!([0, P - 1, P, P + 1, 2 * P - 1].map(|offset| vm.load(p, at + offset)), [7, 7, 0, 7, 7].map(Ok));
    invariants::check(&vm);
}

#[test]
fn a_stack_grows_as_far_as_its_gap_and_the_limit_allow() {
    let (mut vm, p) = with_program(512);
    let flags = PRIVATE | ANONYMOUS | FIXED | 0x100;
    let top = 0x4000_0000;
    mmap(&mut vm, p, top, P, READ | WRITE, flags).expect("memory");
    let gap = 256 * P;
    // A mapping that leaves exactly the gap, and then one page more.
    let below = top - gap - 10 * P;
    mmap(&mut vm, p, below - P, P, READ, PRIVATE | ANONYMOUS | FIXED).expect("memory");
    assert_eq!(vm.store(p, top - 11 * P, 1), Err(Errno::EFAULT));
    assert_eq!(vm.store(p, top - 10 * P, 1), Ok(()));
    assert_eq!(vm.touch(p, top - 9 * P, Touch::Execute), Err(Errno::EACCES));
    assert_eq!(vm.load(p, top - 11 * P), Err(Errno::EFAULT));
    invariants::check(&vm);
}

#[test]
fn no_mapping_is_locked_or_advised_beyond_what_is_mapped() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 3);
    map_at(&mut vm, p, 4, 1);
    let mut call =
        |number, page: u64, pages: u64, third| vm.call(p, number, [at + page * P, pages * P, third, 0, 0, 0]);
    let hole = Err(Errno::ENOMEM);
    for number in [nr::MLOCK, nr::MUNLOCK] {
        assert_eq!(
            [call(number, 0, 3, 0), call(number, 0, 4, 0), call(number, 3, 1, 0), call(number, 2, 3, 0)],
            [Ok(0), hole, hole, hole]
        );
    }
    for (advice, inside) in [
        (0, Ok(0)),
        (4, Ok(0)),
        (8, Ok(0)),
        (10, Ok(0)),
        (11, Ok(0)),
        (18, Ok(0)),
        (19, Ok(0)),
        (25, Err(Errno::EINVAL)),
        (9, Err(Errno::EINVAL)),
        (22, Ok(0)),
    ] {
        assert_eq!(call(nr::MADVISE, 0, 3, advice), inside, "{advice}");
        let outside = if inside.is_ok() { hole } else { inside };
        assert_eq!([call(nr::MADVISE, 0, 4, advice), call(nr::MADVISE, 3, 2, advice)], [outside; 2], "{advice}");
    }
    // What is locked is not thrown away but on purpose, nor said to be read again.
    assert_eq!(call(nr::MLOCK, 1, 1, 0), Ok(0));
    assert_eq!(
        [call(nr::MADVISE, 0, 3, 4), call(nr::MADVISE, 2, 1, 4), call(nr::MADVISE, 0, 3, 24)],
        [Err(Errno::EINVAL), Ok(0), Ok(0)]
    );
    assert_eq!(
        [call(nr::MSYNC, 0, 3, 2), call(nr::MSYNC, 2, 1, 2), call(nr::MSYNC, 0, 3, 4)],
        [Err(Errno::EBUSY), Ok(0), Ok(0)]
    );
    assert_eq!(
        [call(nr::MSYNC, 0, 3, 8), call(nr::MSYNC, 0, 3, 1), call(nr::MSYNC, 0, 3, 0)],
        [Err(Errno::EINVAL), Ok(0), Ok(0)]
    );
    invariants::check(&vm);
}

#[test]
fn frames_are_mapped_one_behind_the_other_whatever_page_tables_the_kernel_has_left() {
    const PAGES: u64 = 2000;
    for spaces in 0..20 {
        let mut vm = Simulation::start(4000);
        let memory = &mut vm.memory;
        for _ in 0..spaces {
            memory.create_space().expect("a space");
        }
        let space = memory.create_space().expect("a space");
        let run = memory.take_run(PAGES, Floor::SERVICE).expect("enough memory");
        let before = memory.kernel.donated.len() as u64;
        let donated = memory.map(space, ARENA, run, 0, |_| Floor::OWN).expect("enough memory");
        assert_eq!(donated, memory.kernel.donated.len() as u64 - before);
        let mapped = memory.kernel.tables[&space.0].iter().map(|(page, (frame, _))| (*page, *frame));
        let expected = (0..PAGES).map(|page| (ARENA / P + page, run.first.plus(page)));
        assert!(mapped.eq(expected), "after {spaces} spaces");
    }
}

#[test]
fn what_filling_in_advance_takes_of_the_heap_is_asked_for_before() {
    const PAGES: u64 = 60_000;
    let (mut vm, p) = with_program(80_000);
    let at = map_at(&mut vm, p, 0, PAGES);
    empty_heap(&mut vm);
    assert_eq!(vm.call(p, nr::MADVISE, [at, PAGES * P, 23, 0, 0, 0]), Ok(0));
    assert_eq!(pages(&mut vm, p), PAGES);
    let leaves = (PAGES / LEAF_PAGES) as usize;
    let needed = leaves * LEAF_HEAP_BYTES;
    let reserve = 2 * 128 * KIB + 2 * P as usize;
    assert!((needed..=needed + reserve).contains(&(heap(&vm) as usize)), "{} of {needed} bytes of heap", heap(&vm));
}

#[test]
fn a_copy_that_cannot_be_mapped_is_refused_and_made_the_next_time() {
    let (mut vm, p) = with_program(512);
    let at = map_at(&mut vm, p, 0, 1);
    vm.store(p, at, 5).expect("writable");
    fork(&mut vm, p, program(1)).expect("memory");
    let free = vm.memory.frames.free();
    // The first call copies the frame, the second one maps it.
    vm.memory.kernel.refuses_in = Some(2);
    assert_eq!(vm.store(p, at, 6), Err(Errno::ENOMEM));
    assert_eq!((vm.memory.frames.free(), vm.memory.kernel.refuses_in), (free, None));
    assert_eq!((vm.store(p, at, 6), vm.load(program(1), at)), (Ok(()), Ok(5)));
    invariants::check(&vm);
}

/// Pages that a program writes to soon after a fork are copied by its next fork, and need no fault then.
#[test]
fn pages_that_parent_or_child_wrote_to_after_a_fork_are_the_next_child_s_own() {
    for by_parent in [true, false] {
        let (mut vm, p) = with_program(1024);
        let at = map_at(&mut vm, p, 0, 8);
        (0..8).for_each(|page| vm.store(p, at + page * P, page as u8).expect("writable"));
        let (first, second) = (program(1), program(2));
        fork(&mut vm, p, first).expect("memory");
        vm.store(if by_parent { p } else { first }, at + 3 * P, 99).expect("writable");
        exit(&mut vm, first).expect("known");
        fork(&mut vm, p, second).expect("memory");
        let writable = |page| page == 3;
        let expected: Vec<_> = (0..8).map(|page| Some(writable(page))).collect();
        assert_eq!(mapped(&vm, second, at, 8), expected, "{by_parent}");
        let of_parent: Vec<_> = (0..8).map(|page| Some(writable(page) && by_parent)).collect();
        assert_eq!(mapped(&vm, p, at, 8), of_parent, "{by_parent}");
        assert_eq!(vm.load(second, at + 3 * P), Ok(if by_parent { 99 } else { 3 }));
        invariants::check(&vm);
    }
}
