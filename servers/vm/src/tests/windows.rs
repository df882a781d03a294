//! Memory of devices: what a driver may show, and what programs may do with it.

use super::*;
use crate::simulation::grant;
use abi::{Endpoint, Errno, Message, kernel::CopyFault, layout::map, linux::nr};

const DRIVER: usize = 70;
const DEVICE: u64 = 0xfeb0_0000;
const PAGES: u64 = 100;

fn driver() -> Endpoint {
    Endpoint::new(DRIVER, 1)
}

fn device() -> (Server<Simulation>, Endpoint) {
    let (mut server, p) = with_program(512);
    server.memory.kernel.device = DEVICE..DEVICE + PAGES * P;
    (server, p)
}

/// A program maps `pages` pages from page `first` of the device on, which the driver says are at `physical`.
fn map_at(
    server: &mut Server<Simulation>,
    p: Endpoint,
    range: [u64; 4],
    physical: u64,
) -> (Result<u64, Errno>, Result<u64, Errno>) {
    map_as(server, p, range, physical, map::COMBINED)
}

/// The same, and how the driver says that it is reached.
fn map_as(
    server: &mut Server<Simulation>,
    p: Endpoint,
    [first, pages, rights, flags]: [u64; 4],
    physical: u64,
    caching: u64,
) -> (Result<u64, Errno>, Result<u64, Errno>) {
    let mut message = Message { source: p, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&[0, pages * P, rights, flags, 3, first * P]);
    assert_eq!(server.handle(&message).done(), None);
    let reply = server.ask(slot::VFS, vm::NextFileMap {}.message());
    let (process, ..) = vm::NextFileMap::results(&reply).expect("somebody waits");
    let driver = driver();
    let done = vm::DeviceMapDone { process, driver, physical, caching, may_write: rights & WRITE != 0 };
    let told = server.ask(slot::VFS, done.message()).result();
    (server.memory.kernel.answers.pop().expect("an answer").1.result(), told)
}

fn map_device(server: &mut Server<Simulation>, p: Endpoint, first: u64, pages: u64) -> u64 {
    let (address, told) = map_at(server, p, [first, pages, READ | WRITE, SHARED], DEVICE + first * P);
    assert_eq!(told, Ok(0));
    address.expect("mapped")
}

fn frame_at(server: &Server<Simulation>, p: Endpoint, address: u64) -> Option<(u64, u64)> {
    server.memory.kernel.mapping(p, address).map(|(frame, flags)| (frame.address(), flags))
}

#[test]
fn a_program_sees_the_device_page_by_page_and_nothing_behind() {
    let (mut server, p) = device();
    let at = map_device(&mut server, p, 10, 90);
    for page in [0, 1, 63, 64, 89] {
        server.store(p, at + page * P, 7).expect("writable");
        let flags = map::WRITE | map::COMBINED;
        assert_eq!(frame_at(&server, p, at + page * P), Some((DEVICE + (10 + page) * P, flags)));
    }
    assert_eq!(server.load(p, at + 90 * P), Err(Errno::EFAULT));
    super::invariants::check(&server);
    let free = server.memory.frames.free();
    server.call(p, nr::MUNMAP, [at + P, P, 0, 0, 0, 0]).expect("is mapped");
    assert_eq!(server.load(p, at + P), Err(Errno::EFAULT));
    server.load(p, at + 2 * P).expect("the others are there still");
    exit(&mut server, p).expect("known");
    assert!(server.memory.frames.free() >= free, "none of vm's frames was in it, none came to it");
    assert!(server.memory.objects.iter().nth(1).is_none_or(|object| object.is_mapped()));
}

#[test]
fn a_driver_shows_no_memory_that_is_not_its_own() {
    let (mut server, p) = device();
    let cases = [DEVICE + (PAGES - 1) * P, DEVICE - P, 20 * P, 0, DEVICE + 8, u64::MAX - P + 1];
    for physical in cases {
        let (program, told) = map_at(&mut server, p, [0, 2, READ, SHARED], physical);
        assert_eq!(program, Err(Errno::EIO), "{physical:#x}");
        assert!(matches!(told, Err(Errno::EPERM | Errno::EINVAL)), "{physical:#x}: {told:?}");
    }
    server.memory.kernel.device = 0..u64::MAX;
    let (program, told) = map_at(&mut server, p, [0, 1, READ, SHARED], 20 * P);
    assert_eq!((program, told), (Err(Errno::EIO), Err(Errno::EPERM)), "memory that vm gives to others");
    super::invariants::check(&server);
}

#[test]
fn dma_memory_of_the_slot_may_be_shown_and_of_another_slot_not() {
    let (mut server, p) = device();
    let rights = vm::SetRights { process: driver(), dma_bytes: 3 * P, inspects_memory: false };
    server.ask(slot::RS, rights.message()).result().expect("rs may");
    let space = crate::space::AddressSpace::new(&mut server.memory).expect("enough memory");
    server.processes.add(&mut server.memory, driver(), 0).expect("new");
    server.processes.enter(&mut server.memory, driver(), space).expect("new");
    let reply = server.ask(DRIVER, vm::AllocateDma { bytes: 2 * P, flags: map::ZERO }.message());
    let (_, physical) = vm::AllocateDma::results(&reply).expect("memory");
    let (address, _) = map_as(&mut server, p, [0, 2, READ | WRITE, SHARED], physical, 0);
    let address = address.expect("its own");
    let fault = CopyFault { owner: p, address: address + P, access: 1 };
    assert_eq!(server.handle(&fault.message()).done().expect("answered").result(), Ok(0), "the kernel may copy to it");
    assert_eq!(frame_at(&server, p, address + P).map(|(frame, _)| frame), Some(physical + P));
    assert_eq!(map_at(&mut server, p, [0, 3, READ, SHARED], physical).1, Err(Errno::EPERM), "beyond the block");
    let offer = |slot, physical, bytes| vm::OfferMemory { slot, physical, bytes, caching: 0 }.message();
    assert_eq!(server.ask(DRIVER, offer(71, physical, 2 * P)).result(), Ok(0));
    assert_eq!(server.ask(DRIVER + 1, offer(71, physical, 2 * P)).result(), Err(Errno::EPERM));
    assert_eq!(server.ask(72, vm::MapOffered { driver: DRIVER as u64 }.message()).result(), Err(Errno::ENOENT));
}

#[test]
fn a_driver_learns_whether_its_memory_is_mapped_by_anybody() {
    let (mut server, p) = device();
    let is_shown = |server: &mut Server<Simulation>, slot| {
        vm::IsShown::results(&server.ask(slot, vm::IsShown {}.message())).expect("is answered")
    };
    assert!(!is_shown(&mut server, DRIVER));
    let at = map_device(&mut server, p, 0, 4);
    assert!(is_shown(&mut server, DRIVER) && !is_shown(&mut server, DRIVER + 1));
    let child = program(1);
    fork(&mut server, p, child).expect("enough memory");
    server.call(p, nr::MUNMAP, [at, 4 * P, 0, 0, 0, 0]).expect("is mapped");
    assert!(is_shown(&mut server, DRIVER), "the child has it still");
    exit(&mut server, child).expect("known");
    assert!(!is_shown(&mut server, DRIVER));
}

#[test]
fn fork_shares_a_device_and_mprotect_and_mremap_keep_it_what_it_is() {
    let (mut server, p) = device();
    let at = map_device(&mut server, p, 0, 4);
    server.store(p, at, 1).expect("writable");
    let child = program(1);
    fork(&mut server, p, child).expect("enough memory");
    for process in [p, child] {
        server.store(process, at, 2).expect("writable after fork");
        assert_eq!(frame_at(&server, process, at), Some((DEVICE, map::WRITE | map::COMBINED)));
    }
    server.call(p, nr::MPROTECT, [at, 4 * P, READ, 0, 0, 0]).expect("may be less");
    assert!(server.store(p, at, 3).is_err());
    server.call(p, nr::MPROTECT, [at, 4 * P, READ | WRITE, 0, 0, 0]).expect("was open for writing");
    server.store(p, at + P, 3).expect("writable again");
    let mremap =
        |server: &mut Server<Simulation>, new, flags| server.call(p, nr::MREMAP, [at, 4 * P, new, flags, 0, 0]);
    assert_eq!(mremap(&mut server, 5 * P, 1), Err(Errno::EFAULT), "it does not grow");
    assert_eq!(mremap(&mut server, 4 * P, 1 | 4), Err(Errno::EINVAL), "nor stay behind empty");
    assert_eq!(server.call(p, nr::MADVISE, [at, P, 4, 0, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(server.call(p, nr::MSYNC, [at, P, 4, 0, 0, 0]), Ok(0));
    assert_eq!(mremap(&mut server, 2 * P, 1), Ok(at));
    assert_eq!(server.load(p, at + 2 * P), Err(Errno::EFAULT));
    let present = vm::NextPresent { process: p, from: at, end: at + 4 * P };
    assert_eq!(server.ask(slot::PM, present.message()).result(), Err(Errno::ENOENT), "no device in a core dump");
    super::invariants::check(&server);
}

#[test]
fn the_kernel_copies_neither_from_nor_to_a_device() {
    let (mut server, p) = device();
    let at = map_device(&mut server, p, 0, 2);
    let copy = |server: &mut Server<Simulation>, access| {
        let fault = CopyFault { owner: p, address: at, access };
        server.handle(&fault.message()).done().expect("answered").result()
    };
    assert_eq!(copy(&mut server, 0), Err(Errno::EFAULT));
    server.store(p, at, 1).expect("writable");
    assert_eq!(copy(&mut server, 0), Err(Errno::EFAULT), "also where the program has touched it");
    server.call(p, nr::MPROTECT, [at, 2 * P, READ, 0, 0, 0]).expect("may be less");
    assert_eq!(frame_at(&server, p, at), None, "what is less is mapped anew");
}

#[test]
fn the_kernel_does_not_copy_what_a_driver_shows_cached_either_if_it_is_no_memory() {
    let (mut server, p) = device();
    let (at, told) = map_as(&mut server, p, [0, 1, READ | WRITE, SHARED], DEVICE, 0);
    assert_eq!(told, Ok(0));
    let fault = CopyFault { owner: p, address: at.expect("mapped"), access: 0 };
    assert_eq!(server.handle(&fault.message()).done().expect("answered").result(), Err(Errno::EFAULT));
}

#[test]
fn a_private_mapping_can_be_read_only_and_stays_so() {
    let (mut server, p) = device();
    let (refused, told) = map_at(&mut server, p, [0, 1, READ | WRITE, PRIVATE], DEVICE);
    assert_eq!((refused, told), (Err(Errno::EINVAL), Ok(0)));
    let (at, _) = map_at(&mut server, p, [0, 1, READ, PRIVATE], DEVICE);
    let at = at.expect("may be read");
    server.load(p, at).expect("readable");
    assert_eq!(server.call(p, nr::MPROTECT, [at, P, READ | WRITE, 0, 0, 0]), Err(Errno::EACCES));
    let source = grant(&mut server, std::vec![1]);
    let poke = vm::Poke { process: p, address: at, grant: source, bytes: 1 };
    assert!(server.ask(slot::PM, poke.message()).result().is_err(), "a tracer makes no copy of a device");
    super::invariants::check(&server);
}

#[test]
fn what_a_driver_may_no_longer_have_is_gone_from_programs_at_once() {
    let (mut server, p) = device();
    let (low, high) = (map_device(&mut server, p, 0, 2), map_device(&mut server, p, 50, 2));
    for at in [low, high] {
        server.store(p, at, 1).expect("writable");
    }
    server.memory.kernel.device = DEVICE..DEVICE + 10 * P;
    server.recheck_windows(Endpoint::new(DRIVER, 2)).expect("enough memory");
    assert!(frame_at(&server, p, low).is_some(), "the successor has it still");
    assert_eq!(frame_at(&server, p, high), None);
    assert_eq!(server.store(p, high, 1), Err(Errno::EIO), "SIGBUS");
    server.memory.kernel.device = DEVICE..DEVICE + PAGES * P;
    assert_eq!(server.store(p, high, 1), Err(Errno::EIO), "lost is lost");
    let lost = vm::DeviceLost { slot: DRIVER as u64 };
    assert_eq!(server.ask(slot::VFS, lost.message()).result(), Err(Errno::EPERM));
    assert_eq!(server.ask(slot::RS, lost.message()).result(), Ok(0));
    assert_eq!(server.store(p, low, 1), Err(Errno::EIO));
    super::invariants::check(&server);
}
