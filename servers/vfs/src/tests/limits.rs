//! Resource limits that pm has told: how many descriptors a process has, and how large it makes files.

use super::known::requests;
use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const SIGXFSZ: u64 = 25;

/// The call waits for pm to send the signal, and ends then.
fn exceeds(world: &World, who: Endpoint, number: u32, arguments: &[u64]) {
    assert_eq!(world.begin_call(who, number, arguments), None, "call {number} waits for its signal");
    assert_eq!(world.next_event(), Some((vfs::EVENT_SIGNAL, who, [SIGXFSZ, 0, 0, 0])));
    assert_eq!(world.cancel(who, Errno::EFBIG), Ok(0));
    assert_eq!(world.result(who), Some(Err(Errno::EFBIG)), "call {number}");
}

#[test]
fn a_process_has_descriptors_below_its_limit() {
    let mut world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    world.set_limits(world.root, 3, u64::MAX);
    let open = |world: &World, who| world.open(who, "/file", O_RDONLY, 0);
    assert_eq!([(); 4].map(|()| open(&world, world.root)), [Ok(0), Ok(1), Ok(2), Err(Errno::EMFILE)]);
    let child = world.fork(world.root, 0);
    assert_eq!(open(&world, child), Err(Errno::EMFILE), "a child has its parent's limit");
    world.set_limits(world.root, 2, u64::MAX);
    assert_eq!(world.pread(world.root, 2, 1, 0).unwrap(), b"x", "what is open stays open");
    world.close(world.root, 1).unwrap();
    assert_eq!(world.call(world.root, nr::PIPE, &[DATA]), Err(Errno::EMFILE));
    assert_eq!((open(&world, world.root), open(&world, world.root)), (Ok(1), Err(Errno::EMFILE)));
    world.restart_vfs();
    assert_eq!((open(&world, child), open(&world, world.root)), (Err(Errno::EMFILE), Err(Errno::EMFILE)));
    world.set_limits(child, 4, u64::MAX);
    assert_eq!((open(&world, child), open(&world, world.root)), (Ok(3), Err(Errno::EMFILE)));
}

#[test]
fn threads_share_their_limit() {
    let world = World::new();
    let thread = Endpoint::new(300, 1);
    world.machine.add_program(thread, world::MEMORY);
    let fork =
        vfs::Fork { parent: world.root, child: thread, identity: 1, flags: vfs::FORK_FILES, parts: abi::Parts::SYSTEM };
    assert_eq!(world.call_as_pm(fork.message()), Ok(0));
    world.set_limits(world.root, 1, u64::MAX);
    let open = || world.open(thread, "/", O_RDONLY, 0);
    assert_eq!((open(), open()), (Ok(0), Err(Errno::EMFILE)));
}

#[test]
fn a_process_has_a_million_descriptors_if_it_may() {
    const LAST: u64 = 3000;
    let mut world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    world.set_limits(world.root, 1 << 20, u64::MAX);
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    for number in (0..=LAST).rev() {
        assert_eq!(world.call(world.root, nr::DUP2, &[file, number]), Ok(number));
    }
    let child = world.fork(world.root, 0);
    world.restart_vfs();
    for who in [world.root, child] {
        for number in [0, 255, 256, 1231, 1232, LAST] {
            assert_eq!(world.pread(who, number, 1, 0).unwrap(), b"x", "{number}");
        }
    }
    world.call(world.root, nr::CLOSE_RANGE, &[1, u64::from(u32::MAX), 4]).unwrap();
    assert_eq!(world.call(world.root, nr::FCNTL, &[LAST, F_GETFD]), Ok(1));
    world.call(world.root, nr::CLOSE_RANGE, &[2, u64::from(u32::MAX), 0]).unwrap();
    assert_eq!(world.open(world.root, "/file", O_RDONLY, 0), Ok(2));
    assert_eq!(world.pread(child, LAST, 1, 0).unwrap(), b"x");
}

#[test]
fn files_grow_up_to_the_limit() {
    let mut world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    world.start_tmpfs();
    world.make_directory("/tmp", 0o777, (0, 0));
    let (kind, target) = (world.path(world.root, 0, "tmpfs"), world.path(world.root, 1, "/tmp"));
    assert_eq!(world.call(world.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
    world.make("/tmp/file", b"0123456789", 0o644, (0, 0));
    let who = world.fork(world.root, 0);
    world.set_limits(who, 1024, 100);
    for path in ["/file", "/tmp/file"] {
        let file = world.open(who, path, O_RDWR, 0).unwrap();
        assert_eq!(world.pwrite(who, file, &[1; 50], 70), Ok(30), "what is below the limit is written");
        let data = world.data(who, &[2; 50]);
        exceeds(&world, who, nr::PWRITE64, &[file, data, 50, 100]);
        exceeds(&world, who, nr::PWRITE64, &[file, data, 1, 1000]);
        exceeds(&world, who, nr::FTRUNCATE, &[file, 101]);
        exceeds(&world, who, nr::FALLOCATE, &[file, 0, 90, 20]);
        exceeds(&world, who, nr::FALLOCATE, &[file, 0x10, 90, 20]);
        assert_eq!(world.call(who, nr::FALLOCATE, &[file, 0x11, 90, 20]), Ok(0), "it keeps its size");
        let address = world.path(who, 0, path);
        exceeds(&world, who, nr::TRUNCATE, &[address, 101]);
        assert_eq!(world.call(who, nr::FSTAT, &[file, DATA]), Ok(0));
        assert_eq!(world.read_words(who, DATA, 7)[6], 100);
        let appends = world.open(who, path, O_WRONLY | O_APPEND, 0).unwrap();
        exceeds(&world, who, nr::WRITE, &[appends, data, 1]);
        world.call(world.root, nr::TRUNCATE, &[world.path(world.root, 0, path), 500]).unwrap();
        assert_eq!(world.call(who, nr::FTRUNCATE, &[file, 400]), Ok(0), "what shrinks is not too large");
        exceeds(&world, who, nr::WRITE, &[appends, data, 1]);
    }
}

#[test]
fn a_mapped_file_grows_up_to_the_limit() {
    let world = World::new();
    world.make("/file", &[1; 99], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let flags = super::mappings::MAP_SHARED | super::mappings::PROT_READ;
    assert_eq!(super::mappings::map(&world, file, 0, 99, flags).1, 0);
    let who = world.fork(world.root, 0);
    world.set_limits(who, 1024, 100);
    assert_eq!(world.pwrite(who, file, &[2; 10], 99), Ok(1));
    let data = world.data(who, &[2; 10]);
    exceeds(&world, who, nr::PWRITE64, &[file, data, 10, 100]);
    assert_eq!(world.fstat(who, file).unwrap().size, 100);
}

#[test]
fn users_share_the_files_that_a_file_system_can_have_in_use_and_root_finds_some() {
    let mut world = World::new();
    let users = [1000, 1001].map(|user| world.user(user, user));
    // They stay in use, by the name cache, so all that are opened are charged.
    for number in 0..100 {
        world.make(&format!("/{number}"), b"x", 0o644, (0, 0));
    }
    let open = |world: &World, who: Endpoint, number: usize| world.open(who, &format!("/{number}"), O_RDONLY, 0);
    let open_all = |world: &World, who| (0..100).map(|n| open(world, who, n)).take_while(|file| file.is_ok()).count();
    assert_eq!(users.map(|user| open_all(&world, user)), [32, 28], "half, and what is not kept for root");
    assert!(open(&world, world.root, 99).is_ok());
    world.restart_vfs();
    // Only what is in use is known to a successor: half of it is anybody's again, the rest is charged.
    let taken: usize = users.map(|user| open_all(&world, user)).iter().sum();
    assert!(taken > 0);
    assert!(open(&world, world.root, 98).is_ok());
    for file in 0..20 {
        world.close(users[0], file).unwrap();
    }
    assert!(open(&world, users[1], 97).is_ok(), "what the first had is free");
}

#[test]
fn uses_that_end_together_are_reported_together() {
    let world = World::new();
    let make = |number: usize| world.make(&std::format!("/file{number}"), b"", 0o644, (0, 0));
    let each = requests(&world, |_| {
        (0..50).for_each(make);
        Ok(0)
    });
    // From 192 files in use on each new one has the name cache give 64 back.
    (50..300).for_each(make);
    let more = requests(&world, |_| {
        (300..350).for_each(make);
        Ok(0)
    });
    assert!(more <= each + 5, "{more} instead of {each}");
    for number in [0, 100, 349] {
        assert_eq!(world.content(&std::format!("/file{number}")), b"");
    }
}
