//! The last value that is allowed and the first that is not, what is mapped without a fault, and what is refused when vm's own heap has
//! ended.

use super::*;
use crate::memory::frames::{Frame, Frames};
use crate::simulation::grant;
use crate::space::STACK_GAP;
use crate::space::region::MAX_STACK_BYTES;
use abi::{
    Errno, Message,
    layout::{SERVICE_CLOCKS, SERVICE_HEAP, SERVICE_IMAGE, USER_END, USER_START, map},
    limits::FREE_FRAMES,
    linux::nr,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ARENA: u64 = 0x10_0000;
const SERVICE: usize = 20;
const DONT_NEED: u64 = 4;
const POPULATE_WRITE: u64 = 23;

type Vm = Server<Simulation>;

fn map_at(vm: &mut Vm, process: Endpoint, at: u64, pages: u64) -> Result<u64, Errno> {
    vm.call(process, nr::MMAP, [at, pages * P, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, u64::MAX, 0])
}

fn set_limits(vm: &mut Vm, process: Endpoint, locked: u64, stack: u64) {
    let limits = vm::SetLimits { process, addresses: u64::MAX, data: u64::MAX, locked, stack };
    assert_eq!(vm.ask(slot::PM, limits.message()).result(), Ok(0));
}

#[test]
fn as_much_is_locked_as_the_limit_says() {
    for (missing, expected) in [(0, Ok(0)), (1, Err(Errno::ENOMEM))] {
        let (mut vm, p) = with_program(512);
        map_at(&mut vm, p, ARENA, 3).expect("free");
        set_limits(&mut vm, p, 3 * P - missing, 0);
        assert_eq!(vm.call(p, nr::MLOCKALL, [1, 0, 0, 0, 0, 0]), expected);
        map_at(&mut vm, p, ARENA + 3 * P, 1).expect("free");
        let one_more = vm.call(p, nr::MLOCK, [ARENA + 3 * P, P, 0, 0, 0, 0]);
        assert_eq!(one_more.is_err(), expected.is_ok(), "what mlockall has locked counts");
        assert_eq!(vm.call(p, nr::MUNLOCKALL, [0; 6]), Ok(0));
        assert_eq!(vm.call(p, nr::MLOCK, [ARENA + P, 2 * P, 0, 0, 0, 0]), Ok(0), "and munlockall unlocks it");
    }
}

#[test]
fn the_largest_stack_leaves_two_gaps_to_what_is_below_it() {
    let (mut vm, p) = with_program(512);
    let (top, most) = (0x4000_0000, MAX_STACK_BYTES - 2 * STACK_GAP);
    const GROWS_DOWN: u64 = 0x100;
    let flags = PRIVATE | ANONYMOUS | FIXED | GROWS_DOWN;
    vm.call(p, nr::MMAP, [top - P, P, READ | WRITE, flags, u64::MAX, 0]).expect("free");
    set_limits(&mut vm, p, 0, u64::MAX);
    assert_eq!(vm.store(p, top - most - 1, 1), Err(Errno::EFAULT));
    assert_eq!(vm.store(p, top - most, 1), Ok(()));
}

#[test]
fn frames_are_added_below_the_limit_and_once() {
    let mut frames = Frames::new(64);
    [63, 63, 64, 1000].iter().for_each(|&number| frames.add(Frame(number)));
    assert_eq!((frames.free(), frames.total()), (1, 1));
}

#[test]
fn a_mapping_of_a_file_is_asked_for_as_the_program_has_asked() {
    let (mut vm, p) = with_program(512);
    let flags = SHARED | 0x8000;
    let words = [0, 3 * P, READ | EXECUTE, flags, 7, 2 * P];
    let mut message = Message { source: p, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&words);
    assert_eq!(vm.handle(&message).done(), None);
    let next = vm::NextFileMap::results(&vm.ask(slot::VFS, vm::NextFileMap {}.message()));
    assert_eq!(next, Ok((p, 7, 2 * P, 3 * P, flags | (READ | EXECUTE) << 32)));
}

#[test]
fn the_page_of_the_clocks_of_a_service_is_mapped_before_it_is_touched() {
    let mut vm = Simulation::start(512);
    services::start(&mut vm, Endpoint::new(SERVICE, 1));
    let (_, flags) = vm.memory.kernel.mapping(Endpoint::new(SERVICE, 1), SERVICE_CLOCKS).expect("mapped");
    assert_eq!(flags & (map::WRITE | map::EXECUTE), 0);
}

/// Leaves no two free frames beside each other, and a hundred in all.
fn scatter(vm: &mut Vm) {
    let mut frames: Vec<Frame> = core::iter::from_fn(|| vm.memory.frames.take()).collect();
    frames.sort();
    frames.iter().step_by(2).take(100).for_each(|&frame| vm.memory.frames.release(frame));
}

#[test]
fn a_service_in_scattered_frames_is_what_its_image_says_and_so_is_its_successor() {
    let mut vm = Simulation::start(512);
    scatter(&mut vm);
    let file = services::image();
    let check = |vm: &mut Vm, generation, file: &[u8]| {
        let service = Endpoint::new(SERVICE, generation);
        for offset in (0..0x2010).step_by(61).chain([0xfff, 0x1000, 0x1fff, 0x2000]) {
            assert_eq!(vm.load(service, SERVICE_IMAGE + offset as u64), Ok(file[offset]), "{offset:#x}");
        }
    };
    services::start(&mut vm, Endpoint::new(SERVICE, 1));
    check(&mut vm, 1, &file);
    let mut other = file.clone();
    other[0x300..].iter_mut().for_each(|byte| *byte ^= 0xff);
    let (image_bytes, argument_bytes) = (other.len() as u64, 1);
    let grant = grant(&mut vm, [&other[..], b"x"].concat());
    let renew = vm::Renew { process: Endpoint::new(SERVICE, 2), grant, image_bytes, argument_bytes };
    assert_eq!(vm.ask(slot::RS, renew.message()).result(), Ok(0));
    check(&mut vm, 2, &other);
}

#[test]
fn memory_that_is_filled_over_many_page_tables_is_all_there() {
    for is_scattered in [false, true] {
        let (mut vm, p) = with_program(4000);
        if is_scattered {
            let frames: Vec<Frame> = core::iter::from_fn(|| vm.memory.frames.take()).collect();
            frames.chunks(700).flat_map(|run| &run[1..]).for_each(|&frame| vm.memory.frames.release(frame));
        }
        let start = ARENA + 500 * P;
        map_at(&mut vm, p, start, 2000).expect("free");
        assert_eq!(vm.call(p, nr::MADVISE, [start, 2000 * P, POPULATE_WRITE, 0, 0, 0]), Ok(0));
        let mapped = (0..2000).filter(|page| vm.memory.kernel.mapping(p, start + page * P).is_some());
        assert_eq!(mapped.count(), 2000);
        if !is_scattered {
            invariants::check(&vm);
        }
    }
}

#[test]
fn pages_of_a_shared_file_are_asked_for_within_all_that_can_be_in_a_file() {
    let (mut vm, _, _) = cache::with_cache();
    let object = shared_files::open(&mut vm, P);
    let mut show = |offset, pages| {
        let request = vm::SharedShow { object, offset, first: 0, pages };
        vm.ask(slot::VFS, request.message()).result()
    };
    let end = u64::MAX - P + 1;
    assert_eq!([show(end - P, 1), show(end - P, 2), show(end, 1)], [Ok(0), Err(Errno::EINVAL), Err(Errno::EINVAL)]);
    assert_eq!(
        [show(1, 1), show(end - 8 * P, 9), show(end - 8 * P, 8)],
        [Err(Errno::EINVAL), Err(Errno::EINVAL), Ok(0)]
    );
}

#[test]
fn pages_of_the_cache_are_taken_anew_where_they_are() {
    let (mut vm, _, address) = cache::with_cache();
    cache::take(&mut vm, 0, 12).expect("enough memory");
    (0..12).for_each(|page| vm.store(cache::vfs(), address + page * P, page as u8 + 1).expect("present"));
    let image = vm::ImageOpen { device: 1, inode: 7, version: 1, bytes: 2 * P };
    let (image, _) = vm::ImageOpen::results(&vm.ask(slot::VFS, image.message())).expect("enough memory");
    let show = vm::ImageShow { image, offset: 0, first: 5, bytes: 2 * P };
    assert_eq!(vm.ask(slot::VFS, show.message()).result(), Ok(0));
    let frames = |vm: &Vm| -> Vec<_> {
        (0..12).map(|page| vm.memory.kernel.mapping(cache::vfs(), address + page * P).expect("mapped").0).collect()
    };
    let before = frames(&vm);
    cache::take(&mut vm, 4, 4).expect("enough memory");
    let after = frames(&vm);
    let differ: Vec<usize> = (0..12).filter(|&page| before[page] != after[page]).collect();
    assert_eq!(differ, [5, 6]);
}

#[test]
fn after_a_death_nothing_is_mapped_of_whom_the_request_concerned() {
    let (mut vm, p) = with_program(512);
    let other = program(1);
    map_at(&mut vm, p, ARENA, 8).expect("free");
    (0..8).for_each(|page| vm.store(p, ARENA + page * P, 1 + page as u8).expect("writable"));
    fork(&mut vm, p, other).expect("enough memory");
    (0..8).for_each(|page| vm.store(p, ARENA + page * P, 1 + page as u8).expect("writable"));
    let mapped =
        |vm: &Vm, process| (0..8).filter(|page| vm.memory.kernel.mapping(process, ARENA + page * P).is_some()).count();
    let before = mapped(&vm, other);
    vm.memory.kernel.dies_in = Some(1);
    let protect = |vm: &mut Vm| vm.call(p, nr::MPROTECT, [ARENA, 4 * P, READ, 0, 0, 0]);
    assert!(catch_unwind(AssertUnwindSafe(|| protect(&mut vm))).is_err());
    vm.recover(|_| true);
    assert_eq!((mapped(&vm, p), mapped(&vm, other)), (0, before));
    assert_eq!(protect(&mut vm), Ok(0));
    (0..8).for_each(|page| assert_eq!(vm.load(p, ARENA + page * P), Ok(1 + page as u8)));
    invariants::check(&vm);
}

#[test]
fn after_a_death_each_shared_file_is_what_it_was_and_a_new_one_is_none_of_them() {
    let (mut vm, p) = with_program(512);
    let open = |vm: &mut Vm, inode| {
        let request = vm::SharedOpen { device: 1, inode, bytes: P };
        vm::SharedOpen::results(&vm.ask(slot::VFS, request.message())).expect("enough memory").0
    };
    let objects: Vec<u64> = (1..=6).map(|inode| open(&mut vm, inode)).collect();
    for object in [objects[1], objects[3]] {
        assert_eq!(vm.ask(slot::VFS, vm::SharedClose { object, lose: false }.message()).result(), Ok(0));
    }
    map_at(&mut vm, p, ARENA, 1).expect("free");
    vm.memory.kernel.dies_in = Some(1);
    assert!(catch_unwind(AssertUnwindSafe(|| vm.store(p, ARENA, 1))).is_err());
    vm.recover(|_| true);
    let mut expected: Vec<(u64, u64)> = [1, 3, 5, 6].map(|inode| (objects[inode as usize - 1], inode)).to_vec();
    expected.extend((7..=9).map(|inode| (open(&mut vm, inode), inode)));
    expected.sort();
    let mut after = 0;
    let next = core::iter::from_fn(|| {
        let reply = vm.ask(slot::VFS, vm::NextShared { after }.message());
        let (object, device, inode) = vm::NextShared::results(&reply).ok()?;
        assert_eq!(device, 1);
        after = object;
        Some((object, inode))
    });
    let mut known: Vec<_> = next.take(20).collect();
    known.sort();
    assert_eq!(known, expected);
}

#[test]
fn a_large_device_is_mapped_over_many_page_tables_and_a_failure_leaves_nothing() {
    const PAGES: u64 = 1500;
    const DEVICE: u64 = 0xc000_0000;
    let (mut vm, _) = with_program(512);
    let driver = Endpoint::new(SERVICE, 1);
    services::start(&mut vm, driver);
    vm.memory.kernel.device = DEVICE..DEVICE + 30 * PAGES * P;
    let ask = |vm: &mut Vm, pages| {
        let request = vm::MapPhysical { physical: DEVICE, bytes: pages * P, flags: map::WRITE };
        vm::MapPhysical::results(&vm.ask(SERVICE, request.message()))
    };
    let frames: Vec<Frame> = core::iter::from_fn(|| vm.memory.frames.take()).collect();
    let regions = vm.processes.space(driver).expect("known").regions.len();
    let mapped = |vm: &Vm, at: u64| -> Vec<_> {
        (0..PAGES).filter_map(|page| vm.memory.kernel.mapping(driver, at + page * P)).map(|(frame, _)| frame).collect()
    };
    assert_eq!(ask(&mut vm, 30 * PAGES), Err(Errno::ENOMEM), "there is nothing for page tables");
    assert_eq!(vm.processes.space(driver).expect("known").regions.len(), regions);
    frames.into_iter().for_each(|frame| vm.memory.frames.release(frame));
    let at = ask(&mut vm, PAGES).expect("enough memory");
    assert!(mapped(&vm, at).into_iter().eq((0..PAGES).map(|page| Frame((DEVICE / P + page) as u32))));
    invariants::check(&vm);
}

#[test]
fn the_flags_and_the_hint_of_mmap_are_heeded_to_the_last_bit() {
    const SHARED_VALIDATE: u64 = 3;
    const MAP_SYNC: u64 = 0x8_0000;
    let (mut vm, p) = with_program(512);
    let mut mmap = |at, flags| vm.call(p, nr::MMAP, [at, P, READ, flags | ANONYMOUS, u64::MAX, 0]);
    assert!(mmap(0, SHARED_VALIDATE).is_ok());
    for flag in [MAP_SYNC, 0x20_0000, 0x200] {
        assert_eq!(mmap(0, SHARED_VALIDATE | flag), Err(Errno::EOPNOTSUPP), "{flag:#x}");
        assert!(mmap(0, PRIVATE | flag).is_ok(), "{flag:#x}");
    }
    for kind in [0, 4, 0xf] {
        assert_eq!(mmap(0, kind), Err(Errno::EINVAL), "kind {kind}");
    }
    assert_eq!(mmap(USER_START, PRIVATE), Ok(USER_START));
    assert_eq!(mmap(USER_START + P - 1, PRIVATE), Ok(USER_START + P), "rounded up");
    assert!(mmap(USER_START - P, PRIVATE).is_ok_and(|at| at > USER_START + P), "below there is nothing to be had");
    assert_eq!(mmap(USER_END - P, PRIVATE), Ok(USER_END - P));
}

#[test]
fn a_segment_is_detached_with_all_its_parts() {
    let (mut vm, process) = with_program(512);
    let flags = vm::ATTACH_READ | vm::ATTACH_WRITE | vm::ATTACH_MAKE;
    let attach = vm::SegmentAttach { process, call: 1, segment: 1, pages: 6, address: 0, flags };
    let at = vm::SegmentAttach::results(&vm.ask(slot::PM, attach.message())).expect("enough memory");
    for page in [1, 4] {
        assert_eq!(vm.call(process, nr::MPROTECT, [at + page * P, P, READ, 0, 0, 0]), Ok(0));
    }
    assert_eq!(vm.call(process, nr::SHMDT, [at, 0, 0, 0, 0, 0]), Ok(0));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|page| vm.load(process, at + page * P)), [Err(Errno::EFAULT); 6]);
    invariants::check(&vm);
}

#[test]
fn what_changes_nothing_succeeds_even_for_a_mapping_larger_than_memory() {
    let (mut vm, p) = with_program(512);
    let bytes = 2000 * P;
    let at = vm.call(p, nr::MMAP, [0, bytes, READ, PRIVATE | ANONYMOUS, u64::MAX, 0]).expect("nothing is filled");
    assert_eq!(vm.call(p, nr::MREMAP, [at, bytes, bytes, 0, 0, 0]), Ok(at));
    assert_eq!(vm.call(p, nr::MREMAP, [at, bytes, bytes + P, 1, 0, 0]), Err(Errno::ENOMEM));
    assert_eq!(vm.call(p, nr::MPROTECT, [at, 0, READ | WRITE, 0, 0, 0]), Ok(0));
    assert_eq!(vm.call(p, nr::MPROTECT, [at + 1, 0, READ, 0, 0, 0]), Err(Errno::EINVAL));
}

#[test]
fn a_fork_leaves_shared_memory_and_what_may_only_be_read_as_they_are() {
    for (rights, sharing, is_protected) in
        [(READ | WRITE, PRIVATE, true), (READ | WRITE, SHARED, false), (READ, PRIVATE, false)]
    {
        let (mut vm, p) = with_program(1000);
        let flags = sharing | ANONYMOUS | FIXED;
        vm.call(p, nr::MMAP, [ARENA, 200 * P, READ | WRITE, flags, u64::MAX, 0]).expect("free");
        (0..200).for_each(|page| vm.store(p, ARENA + page * P, 1).expect("writable"));
        assert_eq!(vm.call(p, nr::MPROTECT, [ARENA, 200 * P, rights, 0, 0, 0]), Ok(0));
        let before = vm.memory.kernel.protected_pages;
        fork(&mut vm, p, program(1)).expect("enough memory");
        assert_eq!(vm.memory.kernel.protected_pages > before, is_protected, "{rights} {sharing}");
        invariants::check(&vm);
    }
}

#[test]
fn so_many_empty_spaces_are_kept_for_the_next_programs_and_no_more() {
    const MOST: usize = 8;
    let (mut vm, p) = with_program(1000);
    (1..=20).for_each(|number| fork(&mut vm, p, program(number)).expect("enough memory"));
    (1..=20).for_each(|number| exit(&mut vm, program(number)).expect("known"));
    assert_eq!(vm.memory.spares().len(), MOST);
    invariants::check(&vm);
}

#[test]
fn an_image_of_a_file_that_was_truncated_is_not_opened_again() {
    let (mut vm, _) = with_program(512);
    let open = |vm: &mut Vm, bytes| {
        let request = vm::ImageOpen { device: 1, inode: 7, version: 1, bytes };
        vm::ImageOpen::results(&vm.ask(slot::VFS, request.message())).expect("enough memory").0
    };
    let image = open(&mut vm, P);
    assert_eq!(open(&mut vm, P), image);
    let resize = vm::ImageResize { device: 1, inode: 7, old_bytes: P, bytes: 100 };
    assert_eq!(vm.ask(slot::VFS, resize.message()).result(), Ok(0));
    assert_ne!(open(&mut vm, 100), image);
}

#[test]
fn what_a_driver_offers_is_whole_pages_and_some() {
    let mut vm = Simulation::start(512);
    services::start(&mut vm, Endpoint::new(SERVICE, 1));
    vm.memory.kernel.device = 0xc000_0000..0xc000_2000;
    for (physical, bytes, caching, expected) in [
        (0xc000_0000, 2 * P, 0, Ok(0)),
        (0xc000_0000, 0, 0, Err(Errno::EINVAL)),
        (0xc000_0000, P + 1, 0, Err(Errno::EINVAL)),
        (0xc000_0001, P, 0, Err(Errno::EINVAL)),
        (0xc000_0000, P, map::WRITE, Err(Errno::EINVAL)),
        (0xc000_1000, 2 * P, 0, Err(Errno::EPERM)),
    ] {
        let offer = vm::OfferMemory { slot: 71, physical, bytes, caching };
        assert_eq!(vm.ask(SERVICE, offer.message()).result(), expected, "{bytes} bytes at {physical:#x}");
    }
}

/// A vm with a program, a service and a file, whose heap has ended and cannot grow. The last is the shared file.
fn without_heap() -> (Vm, Endpoint, u64) {
    let (mut vm, p) = with_program(2000);
    services::start(&mut vm, Endpoint::new(SERVICE, 1));
    let rights = vm::SetRights { process: Endpoint::new(SERVICE, 1), dma_bytes: P, inspects_memory: false };
    assert_eq!(vm.ask(slot::RS, rights.message()).result(), Ok(0));
    map_at(&mut vm, p, ARENA, 200).expect("free");
    (0..200).for_each(|page| vm.store(p, ARENA + page * P, 1).expect("writable"));
    let object = shared_files::open(&mut vm, 2 * P);
    vm.memory.kernel.tables.insert(slot::VM as u64, BTreeMap::new());
    while vm.memory.frames.free() > FREE_FRAMES + 100 {
        vm.memory.frames.take();
    }
    vm.memory.kernel.heap_bytes = Some(0);
    // What was looked at before is used up.
    while vm.memory.ensure_request_heap().is_ok() {}
    (vm, p, object)
}

#[test]
fn without_heap_a_request_that_needs_some_is_refused_and_nothing_happens() {
    let file = services::image();
    let (image_bytes, argument_bytes) = (file.len() as u64, 1);
    let service = |generation| Endpoint::new(SERVICE, generation);
    type Ask<'a> = &'a dyn Fn(&mut Vm, Endpoint, u64, abi::GrantId) -> Result<u64, Errno>;
    let requests: [(&str, Ask); 10] = [
        ("fork", &|vm, p, _, _| fork(vm, p, program(1)).map(|()| 0)),
        ("spawn", &|vm, _, _, grant| {
            let process = Endpoint::new(SERVICE + 1, 1);
            let spawn = vm::Spawn { process, grant, image_bytes, argument_bytes, heap_bytes: P, keep_bytes: P };
            vm.ask(slot::RS, spawn.message()).result()
        }),
        ("renew", &|vm, _, _, grant| {
            let renew = vm::Renew { process: service(2), grant, image_bytes, argument_bytes };
            vm.ask(slot::RS, renew.message()).result()
        }),
        ("open an image", &|vm, _, _, _| {
            let open = vm::ImageOpen { device: 1, inode: 7, version: 1, bytes: P };
            vm.ask(slot::VFS, open.message()).result()
        }),
        ("open a shared file", &|vm, _, _, _| {
            vm.ask(slot::VFS, vm::SharedOpen { device: 1, inode: 8, bytes: P }.message()).result()
        }),
        ("fill a shared file", &|vm, _, object, grant| {
            let fill = vm::ImageFill { image: object, offset: 0, grant, bytes: P };
            vm.ask(slot::VFS, fill.message()).result()
        }),
        ("DMA", &|vm, _, _, _| {
            let allocate = vm::AllocateDma { bytes: P, flags: map::ZERO };
            vm.ask(SERVICE, allocate.message()).result()
        }),
        ("segment", &|vm, process, _, _| {
            let flags = vm::ATTACH_READ | vm::ATTACH_WRITE | vm::ATTACH_MAKE;
            let attach = vm::SegmentAttach { process, call: 1, segment: 1, pages: 1, address: 0, flags };
            vm.ask(slot::PM, attach.message()).result()
        }),
        ("mmap", &|vm, p, _, _| map_at(vm, p, ARENA + 300 * P, 1).map(|_| 0)),
        ("populate", &|vm, p, _, _| vm.call(p, nr::MADVISE, [ARENA, 200 * P, POPULATE_WRITE, 0, 0, 0])),
    ];
    for (name, ask) in requests {
        let (mut vm, p, object) = without_heap();
        let grant = grant(&mut vm, [&file[..], b"x"].concat());
        let before = (vm.memory.frames.free(), vm.memory.objects.iter().count(), vm.memory.kernel.tables.len());
        assert_eq!(ask(&mut vm, p, object, grant), Err(Errno::ENOMEM), "{name}");
        let after = (vm.memory.frames.free(), vm.memory.objects.iter().count(), vm.memory.kernel.tables.len());
        assert_eq!(after, before, "{name}");
        assert_eq!(vm.load(service(1), SERVICE_HEAP), Ok(0), "{name}");
        vm.memory.kernel.heap_bytes = Some(16 << 20);
        assert_eq!(ask(&mut vm, p, object, grant), Ok(0), "{name}");
    }
}

#[test]
fn what_was_thrown_away_is_zeros_in_every_leaf() {
    let (mut vm, p) = with_program(1000);
    let child = program(1);
    map_at(&mut vm, p, ARENA, 200).expect("free");
    (0..200).for_each(|page| vm.store(p, ARENA + page * P, 1 + page as u8).expect("writable"));
    fork(&mut vm, p, child).expect("enough memory");
    for (first, pages) in [(0, 64), (70, 10), (100, 100)] {
        assert_eq!(vm.call(child, nr::MADVISE, [ARENA + first * P, pages * P, DONT_NEED, 0, 0, 0]), Ok(0));
    }
    let is_gone = |page: u64| page < 64 || (70..80).contains(&page) || page >= 100;
    for page in 0..200 {
        assert_eq!(vm.load(p, ARENA + page * P), Ok(1 + page as u8));
        assert_eq!(vm.load(child, ARENA + page * P), Ok(if is_gone(page) { 0 } else { 1 + page as u8 }), "page {page}");
    }
    invariants::check(&vm);
}
