//! Files that are mapped shared: one memory for all, and what is changed comes to vfs exactly until it is written.

use super::*;
use crate::simulation::{Touch, grant};
use abi::{Errno, GrantId, Message, linux::nr};

const FILE: u64 = 7;
const MS_ASYNC: u64 = 1;
const MS_SYNC: u64 = 4;

pub fn ask(server: &mut Server<Simulation>, request: Message) -> Result<Message, Errno> {
    let reply = server.ask(slot::VFS, request);
    reply.result().map(|_| reply)
}

pub fn open(server: &mut Server<Simulation>, bytes: u64) -> u64 {
    let reply = ask(server, vm::SharedOpen { device: 1, inode: FILE, bytes }.message()).expect("enough memory");
    vm::SharedOpen::results(&reply).expect("an object").0
}

/// The whole file, as vfs fills it.
pub fn fill(server: &mut Server<Simulation>, object: u64, content: Vec<u8>) {
    let bytes = content.len() as u64;
    let grant = grant(server, content);
    ask(server, vm::ImageFill { image: object, offset: 0, grant, bytes }.message()).expect("within the file");
}

pub fn map(
    server: &mut Server<Simulation>,
    process: Endpoint,
    object: u64,
    pages: u64,
    rights: u64,
    may_write: bool,
) -> u64 {
    let mut message = Message { source: process, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&[0, pages * P, rights, SHARED, 3, 0]);
    assert_eq!(server.handle(&message).done(), None);
    ask(server, vm::NextFileMap {}.message()).expect("somebody waits");
    ask(server, vm::FileMapDone { process, image: object, error: 0, may_write }.message()).expect("somebody waits");
    server.memory.kernel.answers.pop().expect("an answer").1.result().expect("mapped")
}

/// What vfs gets when it writes back: offset and bytes; nothing when nothing differs.
pub fn take(server: &mut Server<Simulation>, object: u64, offset: u64, end: u64) -> Option<(u64, Vec<u8>)> {
    let grant = grant(server, vec![0xee; 64 << 10]);
    let request = vm::SharedTake { object, offset, end, grant, bytes: 64 << 10 };
    let reply = ask(server, request.message()).expect("an object");
    let bytes = reply.words[0] as usize;
    let content = server.memory.kernel.grants[&grant.0][..bytes].to_vec();
    (bytes > 0).then(|| (vm::SharedTake::results(&reply).expect("an offset"), content))
}

fn written(server: &mut Server<Simulation>, object: u64, offset: u64, bytes: u64) {
    ask(server, vm::SharedWritten { object, offset, bytes }.message()).expect("an object");
}

pub fn resize(server: &mut Server<Simulation>, object: u64, bytes: u64) {
    ask(server, vm::SharedResize { object, bytes }.message()).expect("an object");
}

/// A file of three pages and 100 bytes, mapped by one program for writing.
fn mapped() -> (Server<Simulation>, Endpoint, u64, u64) {
    let (mut server, p) = with_program(512);
    let object = open(&mut server, 3 * P + 100);
    fill(&mut server, object, files::content(3 * P + 100));
    let at = map(&mut server, p, object, 6, READ | WRITE, true);
    (server, p, object, at)
}

#[test]
fn all_who_map_a_file_see_what_one_writes() {
    let (mut server, p, object, at) = mapped();
    let (child, other) = (program(1), program(2));
    fork(&mut server, p, child).expect("enough memory");
    fork(&mut server, p, other).expect("enough memory");
    assert_eq!(open(&mut server, 9), object, "there is one memory of a file");
    let readable = map(&mut server, other, object, 1, READ, false);
    server.store(p, at + 5, 200).expect("writable");
    assert_eq!((server.load(child, at + 5), server.load(other, readable + 5)), (Ok(200), Ok(200)));
    server.store(child, at + 6, 201).expect("writable");
    assert_eq!(server.load(p, at + 6), Ok(201));
    invariants::check(&server);
}

#[test]
fn behind_the_end_of_the_file_is_nothing() {
    let (mut server, p, _, at) = mapped();
    assert_eq!(server.load(p, at + 3 * P + 100), Ok(0));
    assert_eq!(server.load(p, at + 4 * P), Err(Errno::EIO));
    assert_eq!(server.store(p, at + 5 * P, 1), Err(Errno::EIO));
}

#[test]
fn a_page_is_written_back_once_for_each_time_it_was_changed() {
    let (mut server, p, object, at) = mapped();
    assert_eq!(server.load(p, at + P), Ok(files::content(2 * P)[P as usize]));
    assert_eq!(take(&mut server, object, 0, u64::MAX), None, "nobody has written");
    server.store(p, at + P + 1, 77).expect("writable");
    server.store(p, at + 3 * P, 78).expect("writable");
    let (offset, content) = take(&mut server, object, 0, u64::MAX).expect("changed");
    assert_eq!((offset, content.len() as u64, content[1]), (P, P, 77));
    server.store(p, at + P + 2, 79).expect("writable again");
    written(&mut server, object, P, P);
    let (offset, content) = take(&mut server, object, 0, 2 * P).expect("changed while it was being written");
    assert_eq!((offset, content[1], content[2]), (P, 77, 79));
    written(&mut server, object, P, P);
    assert_eq!(take(&mut server, object, 0, 3 * P), None);
    let (offset, content) = take(&mut server, object, 0, u64::MAX).expect("the last page");
    assert_eq!((offset, content.len()), (3 * P, 100), "what lies behind the end is not the file's");
    invariants::check(&server);
}

#[test]
fn what_was_taken_and_not_written_is_taken_again() {
    let (mut server, p, object, at) = mapped();
    server.store(p, at, 1).expect("writable");
    let first = take(&mut server, object, 0, u64::MAX);
    assert!(first.is_some());
    assert_eq!(take(&mut server, object, 0, u64::MAX), first, "a vfs that died has written nothing");
}

#[test]
fn what_calls_write_is_seen_in_memory() {
    let (mut server, p, object, at) = mapped();
    server.store(p, at + 10, 1).expect("writable");
    let data = grant(&mut server, vec![9; 2 * P as usize]);
    let update = vm::SharedUpdate { object, offset: P - 3, grant: data, bytes: 2 * P, size: 3 * P + 100 };
    ask(&mut server, update.message()).expect("within the file");
    assert_eq!(
        (server.load(p, at + 10), server.load(p, at + P - 3), server.load(p, at + 3 * P - 4)),
        (Ok(1), Ok(9), Ok(9))
    );
    let longer = vm::SharedUpdate { object, offset: 5 * P, grant: data, bytes: 8, size: 5 * P + 8 };
    ask(&mut server, longer.message()).expect("the file grows");
    assert_eq!(
        (server.load(p, at + 4 * P), server.load(p, at + 5 * P + 7), server.load(p, at + 5 * P + 8)),
        (Ok(0), Ok(9), Ok(0))
    );
    invariants::check(&server);
}

#[test]
fn what_calls_write_differs_from_the_file_only_while_the_page_is_being_written_back() {
    let (mut server, p, object, at) = mapped();
    server.store(p, at + P, 1).expect("writable");
    let data = grant(&mut server, vec![9; 8]);
    let update = |server: &mut Server<Simulation>| {
        let update = vm::SharedUpdate { object, offset: 16, grant: data, bytes: 8, size: 3 * P + 100 };
        ask(server, update.message()).expect("within the file");
    };
    update(&mut server);
    assert_eq!(take(&mut server, object, 0, P), None, "vfs has written the same to the file");
    server.store(p, at, 1).expect("writable");
    take(&mut server, object, 0, P).expect("changed");
    update(&mut server);
    written(&mut server, object, 0, P);
    let (_, content) = take(&mut server, object, 0, P).expect("the older bytes may have come to the file last");
    assert_eq!((content[0], content[16]), (1, 9));
}

#[test]
fn what_is_cut_off_is_gone_and_comes_back_as_zeros() {
    let (mut server, p, object, at) = mapped();
    (0..3).for_each(|page| server.store(p, at + page * P + 50, 99).expect("writable"));
    resize(&mut server, object, P + 20);
    assert_eq!((server.load(p, at + 50), server.load(p, at + P + 50)), (Ok(99), Ok(0)));
    assert_eq!(server.load(p, at + 2 * P + 50), Err(Errno::EIO));
    server.store(p, at + P + 30, 5).expect("writable behind the end, in its page");
    resize(&mut server, object, 6 * P);
    assert_eq!(
        (server.load(p, at + P + 30), server.load(p, at + 2 * P + 50), server.load(p, at + 6 * P - 1)),
        (Ok(0), Ok(0), Ok(0))
    );
    invariants::check(&server);
}

#[test]
fn a_mapping_that_is_filled_in_advance_has_changed_nothing() {
    const POPULATE: u64 = 0x8000;
    let (mut server, p) = with_program(512);
    let object = open(&mut server, 3 * P);
    fill(&mut server, object, files::content(3 * P));
    let mut message = Message { source: p, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&[0, 3 * P, READ | WRITE, SHARED | POPULATE, 3, 0]);
    assert_eq!(server.handle(&message).done(), None);
    ask(&mut server, vm::NextFileMap {}.message()).expect("somebody waits");
    let done = vm::FileMapDone { process: p, image: object, error: 0, may_write: true };
    ask(&mut server, done.message()).expect("somebody waits");
    let at = server.memory.kernel.answers.pop().expect("an answer").1.result().expect("mapped");
    assert!((0..3).all(|page| server.memory.kernel.mapping(p, at + page * P).is_some()));
    assert_eq!(take(&mut server, object, 0, u64::MAX), None);
}

#[test]
fn a_file_that_shrinks_leaves_the_mappings_of_others() {
    let (mut server, p, object, at) = mapped();
    let reply = ask(&mut server, vm::SharedOpen { device: 1, inode: FILE + 1, bytes: 3 * P }.message());
    let other = vm::SharedOpen::results(&reply.expect("enough memory")).expect("an object").0;
    fill(&mut server, other, files::content(3 * P));
    let beside = map(&mut server, p, other, 3, READ | WRITE, true);
    [at, beside]
        .map(|start| server.store(p, start + 2 * P, 9))
        .into_iter()
        .for_each(|stored| assert_eq!(stored, Ok(())));
    resize(&mut server, object, P);
    assert_eq!(server.memory.kernel.mapping(p, at + 2 * P), None);
    assert!(server.memory.kernel.mapping(p, beside + 2 * P).is_some());
    invariants::check(&server);
}

#[test]
fn a_mapping_grows_over_what_vm_has_of_the_file() {
    const MAY_MOVE: u64 = 1;
    let (mut server, p) = with_program(512);
    let object = open(&mut server, 4 * P);
    let brought = grant(&mut server, files::content(2 * P));
    ask(&mut server, vm::ImageFill { image: object, offset: 0, grant: brought, bytes: 2 * P }.message())
        .expect("whole");
    let mut at = map(&mut server, p, object, 1, READ | WRITE, true);
    let mut grow = |server: &mut Server<Simulation>, from: u64, to: u64| {
        let moved = server.call(p, nr::MREMAP, [at, from * P, to * P, MAY_MOVE, 0, 0]);
        at = moved.unwrap_or(at);
        moved.map(|at| server.load(p, at + (to - 1) * P))
    };
    assert_eq!(grow(&mut server, 1, 2), Ok(Ok(files::content(2 * P)[P as usize])));
    assert_eq!(grow(&mut server, 2, 3), Err(Errno::ENOMEM), "only the file system has that");
    let rest = grant(&mut server, files::content(2 * P));
    ask(&mut server, vm::ImageFill { image: object, offset: 2 * P, grant: rest, bytes: 2 * P }.message())
        .expect("whole");
    resize(&mut server, object, 6 * P);
    assert_eq!(grow(&mut server, 2, 6), Ok(Ok(0)), "with zeros that are not made yet");
    assert_eq!(grow(&mut server, 6, 8), Ok(Err(Errno::EIO)), "behind the end");
    invariants::check(&server);
}

#[test]
fn vfs_hears_of_a_file_whose_mapping_was_refused() {
    let (mut server, p) = with_program(512);
    let object = open(&mut server, P);
    let mut message = Message { source: p, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&[0, P, READ | WRITE, SHARED, 3, 0]);
    assert_eq!(server.handle(&message).done(), None);
    ask(&mut server, vm::NextFileMap {}.message()).expect("somebody waits");
    let done = vm::FileMapDone { process: p, image: object, error: Errno::ENOSPC.0, may_write: true };
    ask(&mut server, done.message()).expect("somebody waits");
    let (_, reply) = server.memory.kernel.answers.pop().expect("an answer");
    assert_eq!(reply.result(), Err(Errno::ENOSPC));
    let reply = ask(&mut server, vm::NextUnmapped {}.message()).expect("nobody maps it");
    assert_eq!(vm::NextUnmapped::results(&reply), Ok(object));
    invariants::check(&server);
}

#[test]
fn it_stays_until_nobody_maps_it_and_everything_is_written() {
    let (mut server, p, object, at) = mapped();
    let free = server.memory.frames.free();
    let close =
        |server: &mut Server<Simulation>, lose| ask(server, vm::SharedClose { object, lose }.message()).map(drop);
    assert_eq!(close(&mut server, true), Err(Errno::EBUSY));
    server.store(p, at, 1).expect("writable");
    server.memory.kernel.notified.clear();
    assert_eq!(server.call(p, nr::MUNMAP, [at, 6 * P, 0, 0, 0, 0]), Ok(0));
    assert_eq!(server.memory.kernel.notified, [Endpoint::VFS]);
    let reply = ask(&mut server, vm::NextUnmapped {}.message()).expect("nobody maps it");
    assert_eq!(vm::NextUnmapped::results(&reply), Ok(object));
    assert_eq!(close(&mut server, false), Err(Errno::EBUSY), "it was changed");
    take(&mut server, object, 0, u64::MAX).expect("changed");
    written(&mut server, object, 0, P);
    assert_eq!(close(&mut server, false), Ok(()));
    assert_eq!(server.memory.frames.free(), free + 4);
    assert_eq!(close(&mut server, false), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn only_who_opened_the_file_for_writing_may_get_the_right_later() {
    let (mut server, p, object, _) = mapped();
    let readable = map(&mut server, p, object, 1, READ, false);
    let later = map(&mut server, p, object, 1, READ, true);
    let protect = |server: &mut Server<Simulation>, at, rights| server.call(p, nr::MPROTECT, [at, P, rights, 0, 0, 0]);
    assert_eq!(protect(&mut server, readable, READ | WRITE), Err(Errno::EACCES));
    assert_eq!(protect(&mut server, later, READ | WRITE), Ok(0));
    server.store(p, later, 4).expect("writable");
    assert_eq!((protect(&mut server, later, READ), server.load(p, readable)), (Ok(0), Ok(4)));
    assert_eq!(server.store(p, later, 5), Err(Errno::EACCES));
    assert_eq!(protect(&mut server, later, READ | WRITE), Ok(0));
    server.store(p, later, 6).expect("writable");
}

#[test]
fn msync_waits_for_vfs_and_gets_its_error() {
    let (mut server, p, object, at) = mapped();
    assert_eq!(server.call(p, nr::MSYNC, [at, P, MS_ASYNC, 0, 0, 0]), Ok(0));
    for (error, expected) in [(0, Ok(0)), (Errno::ENOSPC.0, Err(Errno::ENOSPC))] {
        let mut message = Message { source: p, ..Message::new(nr::MSYNC) };
        message.words[..3].copy_from_slice(&[at, P, MS_SYNC]);
        assert_eq!(server.handle(&message).done(), None);
        let reply = ask(&mut server, vm::NextSync {}.message()).expect("somebody waits");
        assert_eq!(vm::NextSync::results(&reply), Ok((p, object)));
        ask(&mut server, vm::SyncDone { process: p, error }.message()).expect("somebody waits");
        assert_eq!(server.memory.kernel.answers.pop().expect("an answer").1.result(), expected);
    }
    assert_eq!(server.call(p, nr::MSYNC, [at + 6 * P, P, MS_SYNC, 0, 0, 0]), Err(Errno::ENOMEM));
}

#[test]
fn a_mapping_grows_only_over_what_is_there() {
    let (mut server, p) = with_program(512);
    let object = open(&mut server, 4 * P);
    let data = grant(&mut server, files::content(P));
    ask(&mut server, vm::ImageFill { image: object, offset: 0, grant: data, bytes: P }.message()).expect("a page");
    let at = map(&mut server, p, object, 1, READ | WRITE, true);
    assert_eq!(server.call(p, nr::MREMAP, [at, P, 2 * P, 1, 0, 0]), Err(Errno::ENOMEM));
    resize(&mut server, object, P);
    let at = server.call(p, nr::MREMAP, [at, P, 2 * P, 1, 0, 0]).expect("behind the end of the file");
    assert_eq!(server.load(p, at + P), Err(Errno::EIO));
}

#[test]
fn a_new_vfs_learns_what_is_mapped() {
    let (mut server, p, object, at) = mapped();
    let reply = ask(&mut server, vm::NextShared { after: 0 }.message()).expect("one");
    assert_eq!(vm::NextShared::results(&reply), Ok((object, 1, FILE)));
    let next = |server: &mut Server<Simulation>, after| {
        let reply = ask(server, vm::NextShared { after }.message())?;
        vm::NextShared::results(&reply)
    };
    assert_eq!(next(&mut server, object), Err(Errno::ENOENT));
    let second = vm::SharedOpen { device: 1, inode: FILE + 1, bytes: P };
    let (second, _) =
        vm::SharedOpen::results(&ask(&mut server, second.message()).expect("enough memory")).expect("new");
    assert_eq!(next(&mut server, object), Ok((second, 1, FILE + 1)));
    assert_eq!(next(&mut server, second), Err(Errno::ENOENT));
    server.touch(p, at, Touch::Write(3)).expect("writable");
}

#[test]
fn a_death_of_vm_forgets_no_change() {
    let (mut server, p, object, at) = mapped();
    server.store(p, at + 2 * P, 42).expect("writable");
    server.call(p, nr::MUNMAP, [at, 6 * P, 0, 0, 0, 0]).expect("mapped");
    server.recover(|_| true);
    let reply = ask(&mut server, vm::NextUnmapped {}.message()).expect("nobody maps it");
    assert_eq!(vm::NextUnmapped::results(&reply), Ok(object));
    let (offset, content) = take(&mut server, object, 0, u64::MAX).expect("changed");
    assert_eq!((offset, content[0]), (2 * P, 42));
    invariants::check(&server);
}

#[test]
fn only_vfs_may_ask() {
    let (mut server, _, object, _) = mapped();
    let take = vm::SharedTake { object, offset: 0, end: P, grant: GrantId::new(1, 1), bytes: P }.message();
    assert_eq!(server.ask(slot::PM, take).result(), Err(Errno::EPERM));
}
