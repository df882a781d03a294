//! Pages that vfs maps into programs.

use super::*;
use abi::{Errno, linux::nr};

fn map(server: &mut Server<Simulation>, process: Endpoint, call: u64) -> Result<u64, Errno> {
    let reply = server.ask(slot::VFS, vm::PageMap { process, call }.message());
    invariants::check(server);
    reply.result().and_then(|_| vm::PageMap::results(&reply))
}

fn unmap(server: &mut Server<Simulation>, process: Endpoint, call: u64, address: u64) -> Result<u64, Errno> {
    let reply = server.ask(slot::VFS, vm::PageUnmap { process, call, address }.message());
    invariants::check(server);
    reply.result()
}

#[test]
fn a_call_gets_one_page_of_zeros_however_often_it_comes() {
    let (mut server, p) = with_program(512);
    let first = map(&mut server, p, 7).unwrap();
    assert_eq!((server.load(p, first), map(&mut server, p, 7)), (Ok(0), Ok(first)));
    server.store(p, first, 9).expect("writable");
    let second = map(&mut server, p, 8).unwrap();
    assert_eq!((second == first, server.load(p, second), server.load(p, first)), (false, Ok(0), Ok(9)));
    assert_eq!(unmap(&mut server, p, 9, first), Ok(0));
    assert_eq!((server.load(p, first), server.load(p, second)), (Err(Errno::EFAULT), Ok(0)));
    assert_eq!(unmap(&mut server, p, 10, first), Ok(0), "nothing there is no error");
    assert_eq!(unmap(&mut server, p, 11, first + 1), Err(Errno::EINVAL));
}

#[test]
fn a_call_that_comes_again_does_not_unmap_what_has_come_to_its_place() {
    let (mut server, p) = with_program(512);
    let page = map(&mut server, p, 7).unwrap();
    assert_eq!(unmap(&mut server, p, 7, page), Ok(0), "also the call that has mapped it, when it fails");
    const FIXED_ANONYMOUS: u64 = 0x32;
    let other = server.call(p, nr::MMAP, [page, P, 3, FIXED_ANONYMOUS, u64::MAX, 0]);
    assert_eq!((other, unmap(&mut server, p, 7, page), server.load(p, page)), (Ok(page), Ok(0), Ok(0)));
}

#[test]
fn a_page_that_the_program_has_unmapped_is_mapped_anew() {
    let (mut server, p) = with_program(512);
    let first = map(&mut server, p, 7).unwrap();
    server.call(p, nr::MUNMAP, [first, P, 0, 0, 0, 0]).expect("mapped");
    let again = map(&mut server, p, 7).unwrap();
    assert_eq!(server.load(p, again), Ok(0));
}

#[test]
fn nobody_but_vfs_maps_pages_and_nobody_gets_one_who_has_ended() {
    let (mut server, p) = with_program(512);
    let request = vm::PageMap { process: p, call: 7 }.message();
    assert_eq!(server.ask(slot::PM, request).result(), Err(Errno::EPERM));
    server.ask(slot::PM, vm::Exit { process: p }.message()).result().expect("lives");
    assert_eq!((map(&mut server, p, 7), unmap(&mut server, p, 8, 0)), (Err(Errno::ESRCH), Err(Errno::ESRCH)));
}
