//! The cache of vfs: vm gives pages out while plenty of memory is free, and takes them back without asking.

use super::*;
use crate::memory::images::{self, Stretch};
use crate::memory::object::FileId;
use crate::simulation::Touch;
use abi::{Errno, linux::nr};
use std::panic::{AssertUnwindSafe, catch_unwind};

const PAGES: u64 = 500;
const FRAMES: u32 = 4000;
const ARENA: u64 = 0x10_0000;

pub fn vfs() -> Endpoint {
    Endpoint::new(slot::VFS, 1)
}

/// A vm, a program, and vfs with a cache at the address.
pub fn with_cache() -> (Server<Simulation>, Endpoint, u64) {
    let (mut server, program) = with_program(FRAMES);
    services::start(&mut server, vfs());
    let address = open(&mut server, PAGES).expect("addresses are free");
    (server, program, address)
}

fn open(server: &mut Server<Simulation>, pages: u64) -> Result<u64, Errno> {
    vm::CacheOpen::results(&server.ask(slot::VFS, vm::CacheOpen { pages }.message()))
}

pub fn take(server: &mut Server<Simulation>, first: u64, pages: u64) -> Result<u64, Errno> {
    let result = server.ask(slot::VFS, vm::CacheTake { first, pages }.message()).result();
    invariants::check(server);
    result
}

pub fn is_mapped(server: &Server<Simulation>, address: u64, page: u64) -> bool {
    server.memory.kernel.mapping(vfs(), address + page * P).is_some()
}

/// The program takes memory until there is none.
pub fn exhaust(server: &mut Server<Simulation>, program: Endpoint) {
    let flags = PRIVATE | ANONYMOUS | FIXED;
    server.call(program, nr::MMAP, [ARENA, u64::from(FRAMES) * P, READ | WRITE, flags, 0, 0]).expect("lazily");
    let mut page = 0;
    while server.touch(program, ARENA + page * P, Touch::Write(1)).is_ok() {
        page += 1;
    }
    invariants::check(server);
}

#[test]
fn pages_are_there_when_they_are_taken_and_not_before() {
    let (mut server, _, address) = with_cache();
    assert_eq!(server.load(vfs(), address), Err(Errno::EIO));
    assert_eq!(take(&mut server, 60, 10), Ok(0));
    assert_eq!(server.store(vfs(), address + 60 * P, 7), Ok(()));
    assert_eq!(server.load(vfs(), address + 60 * P), Ok(7));
    assert_eq!(take(&mut server, 58, 64), Ok(0), "some are there already");
    assert_eq!(server.load(vfs(), address + 60 * P), Ok(7));
    let mapped = (0..PAGES).filter(|&page| is_mapped(&server, address, page));
    assert!(mapped.eq(58..122));
}

#[test]
fn requests_beyond_the_cache_are_refused() {
    let (mut server, program, _) = with_cache();
    assert_eq!(open(&mut server, 10), Err(Errno::EEXIST));
    for (first, pages) in [(0, vm::CACHE_BATCH + 1), (PAGES, 1), (PAGES - 1, 2), (u64::MAX, 2)] {
        assert_eq!(take(&mut server, first, pages), Err(Errno::EINVAL), "{pages} pages from {first}");
    }
    let foreign = abi::Message { source: program, ..vm::CacheTake { first: 0, pages: 1 }.message() };
    assert_eq!(server.handle(&foreign).done().expect("answered").result(), Err(Errno::EPERM));
    let other = server.ask(slot::PM, vm::CacheOpen { pages: 1 }.message());
    assert_eq!(other.result(), Err(Errno::EPERM));
}

#[test]
fn the_cache_leaves_plenty_of_memory_and_drops_nothing_for_more() {
    let (mut server, program, _) = with_cache();
    let image = images::open(&mut server.memory, FileId { device: 1, inode: 1 }, 1, P).expect("enough memory");
    let part = Stretch { offset: 0, bytes: P };
    let content = crate::simulation::grant(&mut server, vec![5; P as usize]);
    let source = crate::memory::kernel::Source { granter: vfs(), grant: content, offset: 0 };
    images::fill(&mut server.memory, image, part, source).expect("enough memory");
    server.ask(slot::VFS, vm::ImageClose { image: image.0 }.message()).result().expect("opened");
    let (hog, flags) = (u64::from(FRAMES) - 900, PRIVATE | ANONYMOUS | FIXED);
    server.call(program, nr::MMAP, [ARENA, hog * P, READ | WRITE, flags, 0, 0]).expect("lazily");
    (0..hog).for_each(|page| server.store(program, ARENA + page * P, 1).expect("enough memory"));
    let taken = (0..PAGES / 50).take_while(|batch| take(&mut server, batch * 50, 50).is_ok()).count();
    assert!((1..10).contains(&taken), "{taken} batches");
    assert!(server.memory.frames.free() >= FRAMES as usize / 8);
    assert!(server.memory.objects.get(image).is_some(), "the image is there still");
}

#[test]
fn a_program_that_needs_memory_gets_that_of_the_cache() {
    let (mut server, program, address) = with_cache();
    (0..PAGES / 50).for_each(|batch| assert_eq!(take(&mut server, batch * 50, 50), Ok(0)));
    server.store(vfs(), address, 7).expect("present");
    exhaust(&mut server, program);
    assert!((0..PAGES).all(|page| !is_mapped(&server, address, page)));
    assert_eq!(server.load(vfs(), address), Err(Errno::EIO), "it is lost, not zeros");
    assert_eq!(take(&mut server, 0, 1), Err(Errno::ENOMEM));
    exit(&mut server, program).expect("known");
    assert_eq!(take(&mut server, 0, 1), Ok(0), "there is memory again");
}

#[test]
fn a_successor_of_vfs_has_a_cache_of_its_own() {
    let (mut server, _, _) = with_cache();
    let free = server.memory.frames.free();
    take(&mut server, 0, 50).expect("enough memory");
    services::start(&mut server, Endpoint::new(slot::VFS, 2));
    invariants::check(&server);
    assert!(server.memory.frames.free() + 10 >= free, "the pages of the first are free");
    let request = vm::CacheOpen { pages: 10 }.message();
    let request = abi::Message { source: Endpoint::new(slot::VFS, 2), ..request };
    assert!(server.handle(&request).done().expect("answered").result().is_ok());
}

#[test]
fn vm_may_die_at_any_call_of_the_kernel() {
    for call in 1.. {
        let (mut server, program, address) = with_cache();
        server.memory.kernel.dies_in = Some(call);
        for batch in 0..PAGES / 50 {
            let request = vm::CacheTake { first: batch * 50, pages: 50 }.message();
            let died = catch_unwind(AssertUnwindSafe(|| server.ask(slot::VFS, request).result())).is_err();
            if died {
                server.recover(|_| true);
                invariants::check(&server);
                assert_eq!(take(&mut server, batch * 50, 50), Ok(0));
            }
        }
        (0..PAGES).for_each(|page| server.store(vfs(), address + page * P, 7).expect("present"));
        if catch_unwind(AssertUnwindSafe(|| exhaust(&mut server, program))).is_err() {
            server.recover(|_| true);
            invariants::check(&server);
        }
        if server.memory.kernel.dies_in.is_some() {
            return;
        }
    }
}

/// vfs shows what is in its cache from page `first` on at the start of a file of so many bytes. Returns the image.
fn show(server: &mut Server<Simulation>, first: u64, bytes: u64) -> Result<u64, Errno> {
    let open = server.ask(slot::VFS, vm::ImageOpen { device: 1, inode: 7, version: 1, bytes }.message());
    let (image, _) = vm::ImageOpen::results(&open)?;
    server.ask(slot::VFS, vm::ImageShow { image, offset: 0, first, bytes }.message()).result()?;
    invariants::check(server);
    Ok(image)
}

/// A cache whose pages from 10 on have these bytes at their starts.
fn with_content(marks: &[u8]) -> (Server<Simulation>, Endpoint, u64) {
    let (mut server, program, address) = with_cache();
    take(&mut server, 10, marks.len() as u64).expect("enough memory");
    for (page, &mark) in (10..).zip(marks) {
        server.store(vfs(), address + page * P, mark).expect("present");
    }
    (server, program, address)
}

/// What the program sees at the start of each page of an image that it maps.
fn seen(server: &mut Server<Simulation>, program: Endpoint, image: u64, pages: u64) -> Vec<u8> {
    let at = files::map(server, program, image, pages);
    (0..pages).map(|page| server.load(program, at + page * P).expect("mapped")).collect()
}

#[test]
fn an_image_has_the_frames_of_the_cache() {
    let (mut server, program, _) = with_content(&[1, 2, 3]);
    let free = server.memory.frames.free();
    let image = show(&mut server, 10, 3 * P).expect("present");
    assert_eq!(server.memory.frames.free(), free, "no memory is taken");
    assert_eq!(seen(&mut server, program, image, 3), [1, 2, 3]);
}

#[test]
fn pages_that_are_taken_anew_are_others_than_those_that_are_shown() {
    let (mut server, program, address) = with_content(&[1, 2, 3]);
    let image = show(&mut server, 10, 3 * P).expect("present");
    assert_eq!(take(&mut server, 11, 2), Ok(0));
    (11..13).for_each(|page| server.store(vfs(), address + page * P, 9).expect("present"));
    assert_eq!(server.load(vfs(), address + 10 * P), Ok(1), "it was not taken anew");
    assert_eq!(seen(&mut server, program, image, 3), [1, 2, 3]);
}

#[test]
fn an_image_keeps_pages_that_the_cache_has_lost() {
    let (mut server, program, address) = with_content(&[1, 2]);
    let image = show(&mut server, 10, 2 * P).expect("present");
    let at = files::map(&mut server, program, image, 2);
    let other = super::program(1);
    fork(&mut server, program, other).expect("enough memory");
    exhaust(&mut server, other);
    assert!(!is_mapped(&server, address, 10));
    assert_eq!([at, at + P].map(|address| server.load(program, address)), [Ok(1), Ok(2)]);
}

#[test]
fn nothing_is_shown_behind_the_end_of_a_file() {
    let (mut server, program, address) = with_content(&[1, 2]);
    server.store(vfs(), address + 11 * P + 99, 5).expect("present");
    server.store(vfs(), address + 11 * P + 100, 6).expect("present");
    let image = show(&mut server, 10, P + 100).expect("present");
    let at = files::map(&mut server, program, image, 2);
    assert_eq!([99, 100].map(|offset| server.load(program, at + P + offset)), [Ok(5), Ok(0)]);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let (mut server, _, _) = with_content(&[1, 2]);
    assert_eq!(show(&mut server, 11, 2 * P), Err(Errno::EFAULT), "the second is gone");
    assert_eq!(show(&mut server, u64::MAX, 2 * P), Err(Errno::EINVAL));
    let request = vm::ImageShow { image: 999, offset: 0, first: 10, bytes: P };
    assert_eq!(server.ask(slot::VFS, request.message()).result(), Err(Errno::EINVAL));
}

#[test]
fn pages_that_are_shown_are_counted_once() {
    let (mut server, _, _) = with_content(&[1, 2, 3]);
    let cached = |server: &Server<Simulation>| server.memory.objects.cached_pages(&server.memory.frames);
    let before = cached(&server);
    show(&mut server, 10, 3 * P).expect("present");
    assert_eq!(cached(&server), before);
}

#[test]
fn vm_may_die_at_any_call_of_the_kernel_while_it_shows_pages() {
    for call in 1.. {
        let (mut server, program, address) = with_content(&[1, 2]);
        server.memory.kernel.dies_in = Some(call);
        let died = catch_unwind(AssertUnwindSafe(|| {
            let image = show(&mut server, 10, P + 100);
            (image, take(&mut server, 10, 2))
        }));
        if died.is_err() {
            server.recover(|_| true);
            invariants::check(&server);
        }
        if server.memory.kernel.dies_in.take().is_some() {
            return;
        }
        let image = show(&mut server, 10, P + 100).expect("present");
        take(&mut server, 10, 2).expect("enough memory");
        server.store(vfs(), address + 10 * P, 9).expect("present");
        assert!(seen(&mut server, program, image, 1) != [9], "at call {call}");
    }
}
