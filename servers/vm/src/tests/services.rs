//! Services: spawned by rs, with devices, DMA and memory that outlives them.

use super::*;
use crate::memory::Memory;
use crate::simulation::{Touch, grant};
use abi::{
    Errno,
    layout::{SERVICE_CLOCKS, SERVICE_HEAP, SERVICE_IMAGE, SERVICE_KEEP, SERVICE_STACK_BYTES, SERVICE_STACK_END, map},
    linux::nr,
};

const SLOT: usize = 20;
pub const ARGUMENTS: &[u8] = b"root=ext2";

/// A service: text of two pages and a bit, data of 100 bytes and zeros behind.
pub fn image() -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(2u16.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for word in [SERVICE_IMAGE + 0x200, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 2, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let text = [5u64 << 32 | 1, 0, SERVICE_IMAGE, 0, 0x2010, 0x2010, P];
    let data = [6u64 << 32 | 1, 0x2010, SERVICE_IMAGE + 0x3010, 0, 100, 0x1800, P];
    text.iter().chain(&data).for_each(|word| file.extend(word.to_le_bytes()));
    let rest = 0x2010 + 100 - file.len();
    file.extend((0..rest).map(|at| at as u8));
    file
}

/// Pages of preserved memory of a service.
const KEEP_PAGES: u64 = 31;

fn spawn(
    server: &mut Server<Simulation>,
    generation: u32,
    file: &[u8],
    heap_bytes: u64,
) -> Result<(u64, u64, u64), Errno> {
    spawn_as(server, Endpoint::new(SLOT, generation), file, heap_bytes)
}

/// A service with a small image.
pub fn start(server: &mut Server<Simulation>, process: Endpoint) {
    spawn_as(server, process, &image(), 64 * 1024).expect("a service");
}

fn spawn_as(
    server: &mut Server<Simulation>,
    process: Endpoint,
    file: &[u8],
    heap_bytes: u64,
) -> Result<(u64, u64, u64), Errno> {
    let grant = grant(server, [file, ARGUMENTS].concat());
    let request = vm::Spawn {
        process,
        grant,
        image_bytes: file.len() as u64,
        argument_bytes: ARGUMENTS.len() as u64,
        heap_bytes,
        keep_bytes: KEEP_PAGES * P,
    };
    let reply = server.ask(slot::RS, request.message());
    vm::Spawn::results(&reply)
}

#[test]
fn a_service_finds_its_image_heap_stack_and_arguments() {
    let mut server = Simulation::start(512);
    let file = image();
    let (entry, arguments, stack_end) = spawn(&mut server, 1, &file, 64 * 1024).expect("a service");
    let service = Endpoint::new(SLOT, 1);
    assert_eq!(entry, SERVICE_IMAGE + 0x200);
    for offset in [0, 0x1fff, 0x200f] {
        assert_eq!(server.load(service, SERVICE_IMAGE + offset), Ok(file[offset as usize]));
    }
    assert_eq!(server.load(service, SERVICE_IMAGE + 0x3010 + 99), Ok(file[0x2010 + 99]));
    assert_eq!(server.load(service, SERVICE_IMAGE + 0x300f), Ok(0));
    assert_eq!(server.load(service, SERVICE_IMAGE + 0x3010 + 100), Ok(0));
    assert_eq!(server.load(service, SERVICE_IMAGE + 0x4000), Ok(0));
    assert_eq!(server.store(service, SERVICE_IMAGE, 0), Err(Errno::EACCES));
    assert_eq!(server.touch(service, SERVICE_IMAGE + 0x3010, Touch::Execute), Err(Errno::EACCES));
    let text: Vec<u8> =
        (0..ARGUMENTS.len() as u64).map(|at| server.load(service, arguments + at).expect("text")).collect();
    assert_eq!((text.as_slice(), stack_end % 16), (ARGUMENTS, 0));
    assert_eq!(server.store(service, stack_end - 8, 1), Ok(()));
    assert_eq!(server.store(service, SERVICE_STACK_END - SERVICE_STACK_BYTES, 1), Ok(()));
    assert_eq!(server.store(service, SERVICE_STACK_END - SERVICE_STACK_BYTES - 1, 1), Err(Errno::EFAULT));
    assert_eq!(server.store(service, SERVICE_HEAP + 65535, 1), Ok(()));
    assert_eq!(server.store(service, SERVICE_HEAP + 65536, 1), Err(Errno::EFAULT));
    invariants::check(&server);
}

#[test]
fn a_service_that_uses_more_and_more_preserved_memory_gets_several_pages_at_a_time() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    let service = Endpoint::new(SLOT, 1);
    // The tables are there.
    server.store(service, SERVICE_KEEP, 1).expect("writable");
    let mut free = server.memory.frames.free();
    let mut taken = Vec::new();
    for page in 1..KEEP_PAGES {
        assert_eq!(server.load(service, SERVICE_KEEP + page * P), Ok(0));
        server.store(service, SERVICE_KEEP + page * P, 1 + page as u8).expect("writable");
        taken.push(free - server.memory.frames.free());
        free = server.memory.frames.free();
    }
    taken.retain(|&pages| pages > 0);
    assert_eq!(taken, [1, 2, 4, 8, 8, 7], "and not beyond the end");
    spawn(&mut server, 2, &image(), P).expect("a successor");
    let successor = Endpoint::new(SLOT, 2);
    for page in 0..KEEP_PAGES {
        assert_eq!(server.load(successor, SERVICE_KEEP + page * P), Ok(1 + page as u8));
    }
    invariants::check(&server);
}

#[test]
fn a_service_that_touches_memory_here_and_there_gets_single_pages() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    let service = Endpoint::new(SLOT, 1);
    server.store(service, SERVICE_KEEP, 1).expect("writable");
    let free = server.memory.frames.free();
    for page in [30, 20, 10, 9, 2] {
        server.store(service, SERVICE_KEEP + page * P, 1).expect("writable");
    }
    assert_eq!(free - server.memory.frames.free(), 5);
    invariants::check(&server);
}

#[test]
fn a_service_sees_the_clocks_and_cannot_change_them() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    let service = Endpoint::new(SLOT, 1);
    let bytes: Vec<u8> = (0..4 * 8).map(|at| server.load(service, SERVICE_CLOCKS + at).expect("readable")).collect();
    let words: Vec<u64> = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!((words[0] % 2, &words[1..3]), (0, &[1000, 1 << 32][..]));
    assert_eq!(server.store(service, SERVICE_CLOCKS, 1), Err(Errno::EACCES));
    assert_eq!(server.load(service, SERVICE_CLOCKS + P), Err(Errno::EFAULT));
    invariants::check(&server);
}

#[test]
fn preserved_memory_and_nothing_else_outlives_a_service() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    let old = Endpoint::new(SLOT, 1);
    server.store(old, SERVICE_KEEP + P, 42).expect("writable");
    server.store(old, SERVICE_HEAP, 43).expect("writable");
    let used =
        |memory: &Memory<Simulation>| memory.frames.total() - memory.frames.free() - memory.own_frames() as usize;
    let before = used(&server.memory);
    spawn(&mut server, 2, &image(), P).expect("a service");
    let new = Endpoint::new(SLOT, 2);
    assert_eq!(
        (server.load(new, SERVICE_KEEP + P), server.load(new, SERVICE_KEEP), server.load(new, SERVICE_HEAP)),
        (Ok(42), Ok(0), Ok(0))
    );
    assert_eq!(used(&server.memory), before + 1);
    assert_eq!(server.load(old, SERVICE_HEAP), Err(Errno::EFAULT));
    let request = vm::Exit { process: new };
    assert_eq!(server.ask(slot::RS, request.message()).result(), Ok(0));
    invariants::check(&server);
}

#[test]
fn what_a_service_discards_is_free_and_reads_as_zeros() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), 2 * P).expect("a service");
    let service = Endpoint::new(SLOT, 1);
    let pages = [SERVICE_HEAP, SERVICE_HEAP + P, SERVICE_KEEP, SERVICE_KEEP + P];
    pages.iter().for_each(|&page| server.store(service, page + 7, 1).expect("writable"));
    let free = server.memory.frames.free();
    let mut discard = |address, bytes| server.ask(SLOT, vm::Discard { address, bytes }.message()).result();
    assert_eq!([discard(SERVICE_HEAP, P), discard(SERVICE_KEEP + P, P)], [Ok(0); 2]);
    for (address, bytes) in [
        (SERVICE_HEAP + 1, P),
        (SERVICE_HEAP, P - 1),
        (SERVICE_HEAP, 0),
        (SERVICE_HEAP, 3 * P),
        (SERVICE_KEEP + P, u64::MAX - P + 1),
        (SERVICE_IMAGE, P),
        (SERVICE_STACK_END - SERVICE_STACK_BYTES, P),
    ] {
        assert_eq!(discard(address, bytes), Err(Errno::EINVAL), "{address:#x} {bytes:#x}");
    }
    assert_eq!(server.memory.frames.free(), free + 2);
    assert_eq!(pages.map(|page| server.load(service, page + 7)), [Ok(0), Ok(1), Ok(1), Ok(0)]);
    invariants::check(&server);
}

#[test]
fn a_program_discards_nothing() {
    let (mut server, p) = with_program(512);
    let message = abi::Message { source: p, ..vm::Discard { address: SERVICE_HEAP, bytes: P }.message() };
    assert!(server.handle(&message).done().is_none_or(|reply| reply.result().is_err()));
}

#[test]
fn what_is_no_service_is_refused() {
    let mut server = Simulation::start(512);
    let with = |at: usize, value: u8| {
        let mut file = image();
        file[at] = value;
        file
    };
    assert_eq!(spawn(&mut server, 1, b"#!/bin/sh", P), Err(Errno::ENOEXEC));
    assert_eq!(spawn(&mut server, 1, &with(16, 3), P), Err(Errno::ENOEXEC), "position independent");
    assert_eq!(spawn(&mut server, 1, &with(64 + 4, 7), P), Err(Errno::ENOEXEC), "writable and executable");
    assert_eq!(spawn(&mut server, 1, &image()[..0x1000], P), Err(Errno::ENOEXEC), "cut");
    assert_eq!(spawn(&mut server, 1, &image(), 1 << 40), Err(Errno::EINVAL));
    let used = server.memory.frames.total() - server.memory.frames.free();
    assert_eq!(used as u64, server.memory.own_frames());
    invariants::check(&server);
}

#[test]
fn devices_are_mapped_within_privileges_only() {
    let mut server = Simulation::start(512);
    server.memory.kernel.device = 0xfeb0_0000..0xfeb0_8000;
    spawn(&mut server, 1, &image(), P).expect("a service");
    let mut map = |physical, bytes, flags| {
        let reply = server.ask(SLOT, vm::MapPhysical { physical, bytes, flags }.message());
        vm::MapPhysical::results(&reply)
    };
    let flags = map::WRITE | map::UNCACHED;
    let first = map(0xfeb0_0000, 0x100, flags).expect("allowed");
    let second = map(0xfeb0_1080, 0x1000, flags).expect("allowed");
    assert_eq!((first % P, second % P, second > first), (0, 0x80, true));
    assert_eq!(map(0xfeb0_7000, 0x1001, flags), Err(Errno::EPERM));
    assert_eq!(map(0xfeb0_0000, 0, flags), Err(Errno::EINVAL));
    assert_eq!(map(0xfeb0_0000, 1, map::EXECUTE), Err(Errno::EINVAL));
    assert_eq!(map(u64::MAX, 2, flags), Err(Errno::EINVAL));
    server.memory.kernel.device = 0..u64::MAX;
    let reply = server.ask(SLOT, vm::MapPhysical { physical: 20 * P, bytes: P, flags }.message());
    assert_eq!(vm::MapPhysical::results(&reply), Err(Errno::EPERM), "memory of others");
    invariants::check(&server);
}

#[test]
fn dma_memory_is_contiguous_and_stays_with_the_slot() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    limit_dma(&mut server, 6 * P);
    let (address, physical) = allocate_dma(&mut server, 3 * P).expect("memory");
    let (_, other) = allocate_dma(&mut server, 3 * P).expect("memory");
    assert_ne!(physical, other);
    let service = Endpoint::new(SLOT, 1);
    (0..3).for_each(|page| server.store(service, address + page * P, 9).expect("mapped"));
    invariants::check(&server);
    spawn(&mut server, 2, &image(), P).expect("a service");
    let service = Endpoint::new(SLOT, 2);
    let process = |server: &mut Server<Simulation>| {
        let message = abi::Message { source: service, ..vm::AllocateDma { bytes: 3 * P, flags: map::ZERO }.message() };
        vm::AllocateDma::results(&server.handle(&message).done().expect("answered"))
    };
    let (address, inherited) = process(&mut server).expect("memory");
    assert_eq!(inherited, physical);
    assert_eq!(server.load(service, address), Ok(0));
    invariants::check(&server);
}

fn limit_dma(server: &mut Server<Simulation>, bytes: u64) {
    set_rights(server, bytes, false);
}

fn set_rights(server: &mut Server<Simulation>, dma_bytes: u64, inspects_memory: bool) {
    let request = vm::SetRights { process: Endpoint::new(SLOT, 1), dma_bytes, inspects_memory };
    assert_eq!(server.ask(slot::RS, request.message()).result(), Ok(0));
}

fn allocate_dma(server: &mut Server<Simulation>, bytes: u64) -> Result<(u64, u64), Errno> {
    let reply = server.ask(SLOT, vm::AllocateDma { bytes, flags: map::ZERO }.message());
    vm::AllocateDma::results(&reply)
}

#[test]
fn dma_memory_is_a_right_with_a_limit() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    let free = server.memory.frames.free();
    assert_eq!(allocate_dma(&mut server, 1), Err(Errno::EPERM), "nobody has given it any");
    let own = vm::SetRights { process: Endpoint::new(SLOT, 1), dma_bytes: P, inspects_memory: false };
    assert_eq!(server.ask(SLOT, own.message()).result(), Err(Errno::EPERM));
    limit_dma(&mut server, 4 * P);
    assert_eq!(allocate_dma(&mut server, 4 * P + 1), Err(Errno::EPERM));
    assert_eq!(allocate_dma(&mut server, u64::MAX), Err(Errno::EPERM));
    assert_eq!(server.memory.frames.free(), free);
    allocate_dma(&mut server, 3 * P).expect("within the limit");
    assert_eq!(allocate_dma(&mut server, 2 * P), Err(Errno::EPERM));
    allocate_dma(&mut server, 1).expect("the last page");
    invariants::check(&server);
}

#[test]
fn a_successor_gets_the_smallest_block_that_suffices() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    limit_dma(&mut server, 5 * P);
    let (_, large) = allocate_dma(&mut server, 3 * P).expect("memory");
    let (_, small) = allocate_dma(&mut server, 2 * P).expect("memory");
    spawn(&mut server, 2, &image(), P).expect("a service");
    let successor = Endpoint::new(SLOT, 2);
    let mut allocate = |bytes| {
        let message = abi::Message { source: successor, ..vm::AllocateDma { bytes, flags: map::ZERO }.message() };
        let reply = server.handle(&message).done().expect("answered");
        vm::AllocateDma::results(&reply).map(|(_, physical)| physical)
    };
    assert_eq!([allocate(P), allocate(P), allocate(P)], [Ok(small), Ok(large), Err(Errno::EPERM)]);
    invariants::check(&server);
}

#[test]
fn present_memory_is_found_run_by_run() {
    let (mut server, p) = with_program(512);
    let map = |server: &mut Server<Simulation>, at, kind| {
        server.call(p, nr::MMAP, [at, 40 * P, READ | WRITE, kind | ANONYMOUS | FIXED, u64::MAX, 0]).expect("memory");
    };
    let arena = 0x10_0000;
    map(&mut server, arena, PRIVATE);
    map(&mut server, arena + 100 * P, SHARED);
    for page in [5, 6, 30, 103, 104, 110] {
        server.store(p, arena + page * P, 1).expect("writable");
    }
    // What a shared mapping no longer shows is still in memory.
    server.call(p, nr::MADVISE, [arena + 100 * P, 40 * P, 4, 0, 0, 0]).expect("mapped");
    let mut found = Vec::new();
    let (mut from, end) = (arena, arena + 200 * P);
    loop {
        let reply = server.ask(slot::PM, vm::NextPresent { process: p, from, end }.message());
        let Ok((start, stop)) = reply.result().and_then(|_| vm::NextPresent::results(&reply)) else { break };
        found.extend((start..stop).step_by(P as usize).map(|address| (address - arena) / P));
        from = stop;
    }
    for page in [5, 6, 30, 103, 104, 110] {
        assert!(found.contains(&page), "page {page} of {found:?}");
    }
    // A store brings in neighbours of its page too, but never these.
    assert!(found.is_sorted() && [0, 35, 120].iter().all(|page| !found.contains(page)), "{found:?}");
    assert_eq!(server.ask(slot::VFS, vm::NextPresent { process: p, from, end }.message()).result(), Err(Errno::EPERM));
}

#[test]
fn maps_and_sizes_tell_the_truth() {
    let (mut server, p) = with_program(512);
    let at = server.call(p, abi::linux::nr::MMAP, [0, 4 * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    server.store(p, at, 1).expect("writable");
    let sizes = vm::ProcessMemory { process: p }.message();
    let grant = grant(&mut server, vec![0; 1000]);
    let maps = vm::Maps { process: p, first: 0, grant, bytes: 1000 };
    for message in [sizes, maps.message()] {
        assert_eq!(server.ask(SLOT, message).result(), Err(Errno::EPERM), "nobody has allowed it");
    }
    set_rights(&mut server, 0, true);
    let reply = server.ask(SLOT, sizes);
    assert_eq!(vm::ProcessMemory::results(&reply), Ok((4 * P, P, 4 * P, 0, 1, P)));
    assert_eq!(server.ask(SLOT, maps.message()).result(), Ok(56));
    let record = &server.memory.kernel.grants[&grant.0][..56];
    let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!((word(0), word(8), word(16), word(48)), (at, at + 4 * P, P, 3));
    let maps = vm::Maps { first: 1, ..maps };
    assert_eq!(server.ask(SLOT, maps.message()).result(), Ok(0));
    let reply = server.ask(slot::PM, vm::MemoryInfo {}.message());
    let frames = &server.memory.frames;
    let (free, own) = (frames.free() as u64 * P, server.memory.own_frames() * P);
    assert_eq!(vm::MemoryInfo::results(&reply), Ok((512 * P, free, 0, own)));
    assert!(own >= P && own < 512 * P - free, "the program has memory, too");
    let image = files::image(&mut server, 9, files::content(2 * P));
    let cached = |server: &mut Server<Simulation>| {
        let reply = server.ask(slot::PM, vm::MemoryInfo {}.message());
        vm::MemoryInfo::results(&reply).expect("told").2
    };
    assert_eq!(cached(&mut server), 2 * P);
    server.ask(slot::VFS, vm::ImageForget { device: 1, inode: 9, gone: false }.message()).result().expect("known");
    assert_eq!(cached(&mut server), 0, "an image that is for nobody new is no cache");
    server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
}

#[test]
fn tables_that_a_device_walks_are_a_successors_as_they_were() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    limit_dma(&mut server, 2 * P);
    let tables = vm::AllocateDma { bytes: P, flags: map::UNCACHED };
    let allocate = |server: &mut Server<Simulation>, generation| {
        let service = Endpoint::new(SLOT, generation);
        let reply = server.handle(&abi::Message { source: service, ..tables.message() }).done().expect("answered");
        (service, vm::AllocateDma::results(&reply).expect("memory").0)
    };
    let (service, address) = allocate(&mut server, 1);
    assert_eq!(server.load(service, address), Ok(0), "what others left is not shown");
    server.store(service, address, 9).expect("mapped");
    spawn(&mut server, 2, &image(), P).expect("a service");
    let (service, address) = allocate(&mut server, 2);
    assert_eq!(server.load(service, address), Ok(9));
    let other = vm::AllocateDma { bytes: P, flags: map::EXECUTE };
    let reply = server.handle(&abi::Message { source: service, ..other.message() }).done().expect("answered");
    assert_eq!(reply.result(), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn pci_is_told_which_memory_a_slot_has_for_dma() {
    let mut server = Simulation::start(512);
    spawn(&mut server, 1, &image(), P).expect("a service");
    limit_dma(&mut server, 3 * P);
    let (_, first) = allocate_dma(&mut server, 1).expect("memory");
    let (_, second) = allocate_dma(&mut server, 2 * P).expect("memory");
    let mut block = |asker, slot: usize, index| {
        let reply = server.ask(asker, vm::DmaBlock { slot: slot as u64, index }.message());
        vm::DmaBlock::results(&reply)
    };
    assert_eq!(
        [0, 1, 2].map(|index| block(slot::PCI, SLOT, index)),
        [Ok((first, P)), Ok((second, 2 * P)), Err(Errno::ENOENT)]
    );
    assert_eq!(block(slot::PCI, SLOT + 1, 0), Err(Errno::ENOENT));
    assert_eq!(block(SLOT, SLOT, 0), Err(Errno::EPERM));
}
