//! Images and mapped files: what vfs puts in is what programs see.

use super::*;
use crate::memory::object::FileId;
use crate::simulation::grant;
use abi::{Errno, GrantId, Message, linux::nr};

/// Content of a file that differs everywhere.
pub fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at / P * 31 + at % 251) as u8).collect()
}

/// An image of a file with this content, filled and held by vfs.
pub fn image(server: &mut Server<Simulation>, inode: u64, content: Vec<u8>) -> u64 {
    let bytes = content.len() as u64;
    let image = open(server, inode, 1, bytes);
    let grant = grant(server, content);
    server.ask(slot::VFS, vm::ImageFill { image, offset: 0, grant, bytes }.message()).result().expect("enough memory");
    image
}

fn open(server: &mut Server<Simulation>, inode: u64, version: u64, bytes: u64) -> u64 {
    let reply = server.ask(slot::VFS, vm::ImageOpen { device: 1, inode, version, bytes }.message());
    vm::ImageOpen::results(&reply).expect("enough memory").0
}

fn missing(server: &mut Server<Simulation>, image: u64, offset: u64, bytes: u64) -> (u64, u64) {
    let reply = server.ask(slot::VFS, vm::ImageMissing { image, offset, bytes }.message());
    let length = reply.result().expect("an image");
    (vm::ImageMissing::results(&reply).expect("an image"), length)
}

/// mmap of a file as far as vfs is asked.
fn begin_map(server: &mut Server<Simulation>, process: Endpoint, arguments: [u64; 6]) {
    let mut message = Message { source: process, ..Message::new(nr::MMAP) };
    message.words[..6].copy_from_slice(&arguments);
    assert_eq!(server.handle(&message).done(), None);
    assert_eq!(server.memory.kernel.notified.last(), Some(&Endpoint::VFS));
}

/// The rest: vfs fetches and answers. → what the program gets.
fn end_map(server: &mut Server<Simulation>, image: u64, error: i32) -> Result<u64, Errno> {
    let reply = server.ask(slot::VFS, vm::NextFileMap {}.message());
    let (process, ..) = vm::NextFileMap::results(&reply).expect("somebody waits");
    server
        .ask(slot::VFS, vm::FileMapDone { process, image, error, may_write: false }.message())
        .result()
        .expect("somebody waits");
    let (answered, answer) = server.memory.kernel.answers.pop().expect("an answer");
    assert_eq!(answered, process);
    answer.result()
}

/// Maps an image for reading. Returns the address.
pub fn map(server: &mut Server<Simulation>, process: Endpoint, image: u64, pages: u64) -> u64 {
    begin_map(server, process, [0, pages * P, READ, PRIVATE, 3, 0]);
    end_map(server, image, 0).expect("mapped")
}

#[test]
fn a_mapped_file_shows_its_content_and_zeros_behind_its_end() {
    let (mut server, p) = with_program(512);
    let file = content(3 * P + 100);
    let image = image(&mut server, 7, file.clone());
    begin_map(&mut server, p, [0, 4 * P, READ, PRIVATE, 3, P]);
    let at = end_map(&mut server, image, 0).expect("mapped");
    for offset in [0, 1, P + 77, 2 * P + 99] {
        assert_eq!(server.load(p, at + offset), Ok(file[(P + offset) as usize]));
    }
    assert_eq!(server.load(p, at + 2 * P + 100), Ok(0));
    assert_eq!(server.load(p, at + 3 * P), Err(Errno::EIO));
    invariants::check(&server);
}

#[test]
fn a_mapped_file_keeps_the_path_that_it_was_opened_by_first() {
    let (mut server, p) = with_program(512);
    let image = image(&mut server, 7, content(P));
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    let at = end_map(&mut server, image, 0).expect("mapped");
    let rights = vm::SetRights { process: Endpoint::new(slot::PM, 1), dma_bytes: 0, inspects_memory: true };
    server.ask(slot::RS, rights.message()).result().expect("allowed");
    let room = grant(&mut server, vec![0; 8]);
    let ask = |address| vm::MappedName { process: p, address, grant: room, bytes: 8 }.message();
    assert_eq!(server.ask(slot::PM, ask(at)).result(), Err(Errno::ENOENT), "nobody has told it");
    for (path, expected) in [(&b"/lib/libc.so"[..], Ok(0)), (b"/other", Err(Errno::EEXIST))] {
        let name = grant(&mut server, path.to_vec());
        let tell = vm::FileName { object: image, grant: name, bytes: path.len() as u64 };
        assert_eq!(server.ask(slot::VFS, tell.message()).result(), expected);
        let long = vm::FileName { bytes: vm::MAX_NAME_BYTES + 1, ..tell };
        assert_eq!(server.ask(slot::VFS, long.message()).result(), Err(Errno::ENAMETOOLONG));
        let none = vm::FileName { object: 0, ..tell };
        assert_eq!(server.ask(slot::VFS, none.message()).result(), Err(Errno::EINVAL));
    }
    let open = vm::ImageOpen { device: 1, inode: 7, version: 1, bytes: P }.message();
    assert_eq!(vm::ImageOpen::results(&server.ask(slot::VFS, open)), Ok((image, true)));
    assert_eq!(server.ask(slot::PM, ask(at + 9)).result(), Ok(8), "as much as there is room for");
    assert_eq!(server.memory.kernel.grants[&room.0], b"/lib/lib");
    let whole = [at, at + P - 1].map(|address| server.ask(slot::PM, ask(address)).result());
    assert_eq!(whole, [Ok(8); 2], "at its first byte and at its last");
    assert_eq!([at - 1, at + P].map(|address| server.ask(slot::PM, ask(address)).result()), [Err(Errno::ENOENT); 2]);
    assert_eq!(server.ask(slot::VFS, ask(at)).result(), Err(Errno::EPERM));
    invariants::check(&server);
}

#[test]
fn private_writes_stay_private_and_the_image_clean() {
    let (mut server, p) = with_program(512);
    let image = image(&mut server, 7, content(2 * P));
    begin_map(&mut server, p, [0, 2 * P, READ | WRITE, PRIVATE, 3, 0]);
    let first = end_map(&mut server, image, 0).expect("mapped");
    begin_map(&mut server, p, [0, 2 * P, READ, PRIVATE, 3, 0]);
    let second = end_map(&mut server, image, 0).expect("mapped");
    server.load(p, first + P).expect("readable");
    server.store(p, first + P + 1, 99).expect("writable");
    fork(&mut server, p, program(1)).expect("enough memory");
    server.store(program(1), first + P + 1, 98).expect("writable");
    assert_eq!(
        (server.load(p, first + P + 1), server.load(p, second + P + 1)),
        (Ok(99), Ok(content(2 * P)[P as usize + 1]))
    );
    invariants::check(&server);
}

#[test]
fn errors_of_vfs_reach_the_program() {
    let (mut server, p) = with_program(512);
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    assert_eq!(end_map(&mut server, 0, Errno::EACCES.0), Err(Errno::EACCES));
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    let at = end_map(&mut server, 0, 0).expect("no image, no error: zeros");
    assert_eq!(server.load(p, at), Ok(0));
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    exit(&mut server, p).expect("known");
    let reply = server.ask(slot::VFS, vm::NextFileMap {}.message());
    assert_eq!(reply.result(), Err(Errno::ENOENT));
    let done = vm::FileMapDone { process: p, image: 0, error: 0, may_write: false };
    assert_eq!(server.ask(slot::VFS, done.message()).result(), Err(Errno::ESRCH));
    invariants::check(&server);
}

#[test]
fn missing_stretches_are_told_and_filled_once() {
    let (mut server, _) = with_program(512);
    let file = content(10 * P + 5);
    let image = open(&mut server, 7, 1, file.len() as u64);
    assert_eq!(missing(&mut server, image, 0, u64::MAX), (0, 10 * P + 5));
    let grant = grant(&mut server, file[2 * P as usize..].to_vec());
    let fill = |server: &mut Server<Simulation>, offset, bytes| {
        server.ask(slot::VFS, vm::ImageFill { image, offset, grant, bytes }.message()).result()
    };
    assert_eq!(fill(&mut server, 2 * P, 3 * P), Ok(0));
    assert_eq!(missing(&mut server, image, 0, 20 * P), (0, 2 * P));
    assert_eq!(missing(&mut server, image, 2 * P, 3 * P), (0, 0));
    assert_eq!(missing(&mut server, image, 3 * P + 7, 20 * P), (5 * P, 5 * P + 5));
    assert_eq!(fill(&mut server, 2 * P, 8 * P + 5), Ok(0));
    assert_eq!(missing(&mut server, image, 2 * P, 20 * P), (0, 0));
    assert_eq!(fill(&mut server, 1, P), Err(Errno::EINVAL));
    assert_eq!(fill(&mut server, 0, P + 1), Err(Errno::EINVAL));
    assert_eq!(fill(&mut server, 10 * P, P), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn frames_set_aside_for_an_image_come_back_when_it_is_let_go() {
    let (mut server, _) = with_program(512);
    let free = server.memory.frames.free();
    let image = open(&mut server, 7, 1, 50 * P);
    let grant = grant(&mut server, content(2 * P));
    for offset in [40 * P, 3 * P] {
        let fill = vm::ImageFill { image, offset, grant, bytes: 2 * P };
        server.ask(slot::VFS, fill.message()).result().expect("enough memory");
    }
    let object = server.memory.objects.get(crate::memory::object::ObjectId(image)).expect("an image");
    let first = object.pages.frame(3).expect("filled");
    assert_eq!(object.pages.frame(41), Some(first.plus(38)), "neighbours like their pages");
    assert_eq!(server.memory.frames.free(), free - 50);
    invariants::check(&server);
    server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
    assert_eq!(server.memory.frames.free(), free - 4);
    invariants::check(&server);
}

#[test]
fn a_successor_of_vfs_holds_what_it_claims_and_nothing_else() {
    let (mut server, p) = with_program(512);
    let claim = |server: &mut Server<Simulation>, held: &[u64]| {
        let grant = grant(server, held.iter().flat_map(|image| image.to_le_bytes()).collect());
        server.ask(slot::VFS, vm::ClaimImages { grant, images: held.len() as u64 }.message()).result()
    };
    let close =
        |server: &mut Server<Simulation>, image| server.ask(slot::VFS, vm::ImageClose { image }.message()).result();
    let [once, twice, lost, shown] = [1, 2, 3, 4].map(|inode| image(&mut server, inode, content(2 * P)));
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    let at = end_map(&mut server, shown, 0).expect("mapped");
    assert_eq!(open(&mut server, 1, 1, 2 * P), once);
    server.ask(slot::VFS, vm::ImageForget { device: 1, inode: 3, gone: true }.message()).result().expect("known");
    let free = server.memory.frames.free();
    assert_eq!(claim(&mut server, &[once, twice, twice, 0, u64::MAX, 12345]), Ok(0));
    assert_eq!(server.memory.frames.free(), free + 2, "the file of an image that nobody holds is gone");
    for (image, holds) in [(once, 1), (twice, 2), (lost, 0), (shown, 0)] {
        (0..holds).for_each(|_| assert_eq!(close(&mut server, image), Ok(0)));
        assert_eq!(close(&mut server, image), Err(Errno::EINVAL));
    }
    assert_eq!(server.load(p, at + 9), Ok(content(P)[9]));
    assert_eq!(claim(&mut server, &[once; vm::MAX_CLAIMS as usize]), Ok(0));
    assert_eq!(claim(&mut server, &[twice; vm::MAX_CLAIMS as usize + 1]), Err(Errno::EINVAL));
    let none = vm::ClaimImages { grant: GrantId(u32::MAX), images: 1 };
    assert!(server.ask(slot::VFS, none.message()).result().is_err());
    assert_eq!(close(&mut server, once), Ok(0), "nothing has ended");
    let nothing = vm::ClaimImages { grant: GrantId(u32::MAX), images: 0 };
    assert_eq!(server.ask(slot::PM, nothing.message()).result(), Err(Errno::EPERM));
    assert_eq!(server.ask(slot::VFS, nothing.message()).result(), Ok(0));
    assert_eq!(close(&mut server, once), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn images_nobody_maps_give_way_when_memory_is_short() {
    let (mut server, p) = with_program(400);
    let used = image(&mut server, 1, content(4 * P));
    begin_map(&mut server, p, [0, P, READ, PRIVATE, 3, 0]);
    let at = end_map(&mut server, used, 0).expect("mapped");
    let idle = image(&mut server, 2, content(100 * P));
    for image in [used, idle] {
        server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
    }
    let big = server.call(p, nr::MMAP, [0, 150 * P, READ | WRITE, PRIVATE | ANONYMOUS, 0, 0]).expect("memory");
    (0..150).for_each(|page| server.store(p, big + page * P, 1).expect("the idle image gives way"));
    assert_eq!(server.load(p, at + 9), Ok(content(P)[9]));
    assert_eq!(server.ask(slot::VFS, vm::ImageClose { image: idle }.message()).result(), Err(Errno::EINVAL));
    invariants::check(&server);
}

#[test]
fn requests_of_strangers_are_refused() {
    let (mut server, p) = with_program(512);
    let grant = GrantId(0);
    for request in [
        vm::ImageOpen { device: 1, inode: 1, version: 1, bytes: P }.message(),
        vm::NextFileMap {}.message(),
        vm::Exec { process: p, image: 1, interpreter: 0, stack_bytes: 0, seed: 0 }.message(),
        vm::Spawn { process: p, grant, image_bytes: 1, argument_bytes: 0, heap_bytes: 0, keep_bytes: 0 }.message(),
        vm::Fork { parent: p, child: program(1), share: false, pid: 0 }.message(),
        vm::Exit { process: p }.message(),
    ] {
        assert_eq!(server.ask(slot::TTY, request).result(), Err(Errno::EPERM));
    }
    assert_eq!(server.ask(slot::TTY, Message::new(0x1_0099)).result(), Err(Errno::ENOSYS));
}

/// Tells vm of a new size. Returns whether images are in use.
fn resize(server: &mut Server<Simulation>, inode: u64, old_bytes: u64, bytes: u64) -> bool {
    let request = vm::ImageResize { device: 1, inode, old_bytes, bytes };
    let reply = server.ask(slot::VFS, request.message());
    reply.result().expect("never refused");
    invariants::check(server);
    vm::ImageResize::results(&reply).expect("a reply")
}

/// A file of three pages that a program maps four pages of, privately, after it was closed by vfs.
fn mapped_privately() -> (Server<Simulation>, Endpoint, u64) {
    let (mut server, p) = with_program(512);
    let image = image(&mut server, 7, content(3 * P));
    begin_map(&mut server, p, [0, 4 * P, READ | WRITE, PRIVATE, 3, 0]);
    let at = end_map(&mut server, image, 0).expect("mapped");
    server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
    (server, p, at)
}

#[test]
fn truncation_takes_private_copies_beyond_the_new_end_only() {
    let (mut server, p, at) = mapped_privately();
    for page in 0..3 {
        server.store(p, at + page * P + 200, 99).expect("writable");
    }
    fork(&mut server, p, program(1)).expect("enough memory");
    assert!(resize(&mut server, 7, 3 * P, P + 100));
    for process in [p, program(1)] {
        assert_eq!((server.load(process, at + 200), server.load(process, at + P + 200)), (Ok(99), Ok(99)));
        assert_eq!(server.load(process, at + 2 * P + 200), Err(Errno::EIO));
    }
}

#[test]
fn what_comes_back_after_truncation_is_zeros() {
    let (mut server, p, at) = mapped_privately();
    server.load(p, at + 2 * P).expect("readable");
    resize(&mut server, 7, 3 * P, 100);
    assert_eq!((server.load(p, at + 99), server.load(p, at + 100)), (Ok(content(P)[99]), Ok(0)));
    assert_eq!(server.load(p, at + P), Err(Errno::EIO));
    resize(&mut server, 7, 100, 4 * P);
    assert_eq!((server.load(p, at + P), server.load(p, at + 3 * P)), (Ok(0), Ok(0)));
    server.store(p, at + 3 * P, 5).expect("writable");
    assert_eq!(server.load(p, at + 3 * P), Ok(5));
    invariants::check(&server);
}

#[test]
fn an_image_of_another_size_does_not_grow_unless_the_old_size_is_unknown() {
    let (mut server, p, at) = mapped_privately();
    resize(&mut server, 7, 3 * P + 50, 4 * P);
    assert_eq!(server.load(p, at + 3 * P), Err(Errno::EIO));
    resize(&mut server, 7, vm::UNKNOWN_BYTES, 4 * P);
    assert_eq!(server.load(p, at + 3 * P), Ok(0));
}

#[test]
fn truncation_reaches_old_images_and_memory_that_may_not_be_read() {
    let (mut server, p, at) = mapped_privately();
    server.store(p, at + P, 99).expect("writable");
    let newer = open(&mut server, 7, 2, 5 * P);
    server.ask(slot::VFS, vm::ImageClose { image: newer }.message()).result().expect("held");
    let mut protect = Message { source: p, ..Message::new(nr::MPROTECT) };
    protect.words[..3].copy_from_slice(&[at, 4 * P, 0]);
    server.handle(&protect).done().expect("a reply").result().expect("mapped");
    resize(&mut server, 7, 5 * P, 10);
    protect.words[2] = READ;
    server.handle(&protect).done().expect("a reply").result().expect("mapped");
    assert_eq!(server.load(p, at + P), Err(Errno::EIO));
}

#[test]
fn a_file_that_gets_the_number_of_a_freed_one_does_not_truncate_its_mappings() {
    let (mut server, p, at) = mapped_privately();
    let forget = vm::ImageForget { device: 1, inode: 7, gone: true };
    server.ask(slot::VFS, forget.message()).result().expect("never refused");
    assert!(!resize(&mut server, 7, 3 * P, 0));
    assert_eq!(server.load(p, at + P), Ok(content(2 * P)[P as usize]));
    let (mut server, p, at) = mapped_privately();
    let forget = vm::ImageForget { device: 1, inode: vm::ALL_INODES, gone: true };
    server.ask(slot::VFS, forget.message()).result().expect("never refused");
    assert!(!resize(&mut server, 7, 3 * P, 0));
    assert_eq!(server.load(p, at + P), Ok(content(2 * P)[P as usize]));
    exit(&mut server, p).expect("known");
    invariants::check(&server);
}

#[test]
fn truncation_of_an_image_that_is_being_filled_keeps_what_was_set_aside() {
    let (mut server, _) = with_program(512);
    let free = server.memory.frames.free();
    let image = open(&mut server, 7, 1, 50 * P);
    let grant = grant(&mut server, content(2 * P));
    server
        .ask(slot::VFS, vm::ImageFill { image, offset: 40 * P, grant, bytes: 2 * P }.message())
        .result()
        .expect("room");
    assert!(resize(&mut server, 7, 50 * P, 3 * P));
    assert_eq!(missing(&mut server, image, 0, u64::MAX), (0, 3 * P));
    server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("held");
    assert_eq!(server.memory.frames.free(), free);
    invariants::check(&server);
}

#[test]
fn a_file_of_any_length_is_shown_with_zeros_behind_it() {
    for bytes in [1, 2, P - 1, P, P + 1, 3 * P - 1, 3 * P] {
        let (mut server, p) = with_program(512);
        let file: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8 + 1).collect();
        let image = image(&mut server, 7, file.clone());
        let at = map(&mut server, p, image, 3);
        let end = bytes.next_multiple_of(P);
        for offset in [0, 1, bytes - 1, bytes, end - 1].into_iter().filter(|offset| *offset < end) {
            let expected = file.get(offset as usize).copied().unwrap_or(0);
            assert_eq!(server.load(p, at + offset), Ok(expected), "byte {offset} of {bytes}");
        }
        invariants::check(&server);
    }
}

#[test]
fn the_image_that_nobody_has_used_for_longest_goes_first() {
    let (mut server, p) = with_program(1024);
    let images = [7, 8, 9].map(|inode| image(&mut server, inode, content(2 * P)));
    let close = |server: &mut Server<Simulation>, image| {
        server.ask(slot::VFS, vm::ImageClose { image }.message()).result().expect("it was opened");
    };
    let at = map(&mut server, p, images[1], 2);
    images.into_iter().for_each(|image| close(&mut server, image));
    let again = open(&mut server, 7, 1, 2 * P);
    close(&mut server, again);
    server.call(p, nr::MUNMAP, [at, 2 * P, 0, 0, 0, 0]).expect("mapped");
    let mut left = vec![7, 8, 9];
    let mut gone = Vec::new();
    while server.memory.objects.drop_oldest(&mut server.memory.frames) {
        let is_there =
            |inode: &u64| server.memory.objects.next_image(&mut 0, FileId { device: 1, inode: *inode }).is_some();
        gone.extend(left.extract_if(.., |inode| !is_there(inode)));
    }
    assert_eq!(gone, [9, 8, 7], "the second was mapped, and the first opened after that");
    invariants::check(&server);
}
