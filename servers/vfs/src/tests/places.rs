//! Preserved memory has few places in tests: everything here happens more often than it has any, so what ends must give its own back.

use super::*;
use abi::{Endpoint, linux::nr, vfs};
use std::string::String;

const F_SETLK: u64 = 6;
const LOCK_EX: u64 = 2;
const MANY: usize = 300;

/// Too long for the places of short texts, of which there are more.
fn long(name: &str) -> String {
    std::format!("/{}{name}", "n".repeat(100))
}

/// That much is left: of files, pipes, timers, queues, locks.
fn check(world: &World) {
    let queue = world.words(world.root, &[0, 1, 1, 0, 0, 0, 0, 0]);
    let queue = world.path_call(world.root, nr::MQ_OPEN, "check", &[O_CREAT | O_RDWR, 0o600, queue]).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, 0]).unwrap();
    world.write(world.root, writes, b"x").unwrap();
    for file in [queue, reads, writes, timer] {
        world.close(world.root, file).unwrap();
    }
    world.path_call(world.root, nr::MQ_UNLINK, "check", &[]).unwrap();
}

#[test]
fn open_files_give_their_places_back() {
    let world = World::new();
    let path = long("file");
    world.make(&path, b"x", 0o644, (0, 0));
    for _ in 0..MANY {
        let file = world.open(world.root, &path, O_RDWR, 0).unwrap();
        let lock = world.words(world.root, &[1, 0, 0, 0]);
        world.call(world.root, nr::FCNTL, &[file, F_SETLK, lock]).unwrap();
        world.call(world.root, nr::FLOCK, &[file, LOCK_EX]).unwrap();
        let place = world.open(world.root, &path, O_PATH, 0).unwrap();
        world.close(world.root, place).unwrap();
        world.close(world.root, file).unwrap();
    }
    check(&world);
}

#[test]
fn what_has_no_name_gives_its_places_back() {
    let world = World::new();
    let queue = world.words(world.root, &[0, 2, 100, 0, 0, 0, 0, 0]);
    for _ in 0..MANY {
        let (reads, writes) = world.pipe(world.root, 0);
        world.write(world.root, writes, &[1; 5000]).unwrap();
        world.call(world.root, nr::SOCKETPAIR, &[1, 1, 0, DATA]).unwrap();
        world.write(world.root, 3, b"in the socket").unwrap();
        let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, 0]).unwrap();
        let name = &long("queue")[1..];
        let queue = world.path_call(world.root, nr::MQ_OPEN, name, &[O_CREAT | O_RDWR, 0o600, queue]).unwrap();
        let event = world.words(world.root, &[0, 10]);
        world.call(world.root, nr::MQ_NOTIFY, &[queue, event]).unwrap();
        for _ in 0..2 {
            world.call(world.root, nr::MQ_TIMEDSEND, &[queue, DATA, 100, 0, 0]).unwrap();
        }
        while world.next_event().is_some() {}
        world.path_call(world.root, nr::MQ_UNLINK, name, &[]).unwrap();
        for file in [reads, writes, 2, 3, timer, queue] {
            world.close(world.root, file).unwrap();
        }
        world.words(world.root, &[0, 2, 100, 0, 0, 0, 0, 0]);
    }
    check(&world);
}

#[test]
fn renamed_paths_give_their_places_back() {
    let world = World::new();
    let (one, two) = (long("one"), long("two"));
    world.make_directory(&one, 0o755, (0, 0));
    world.make(&std::format!("{one}/file"), b"", 0o644, (0, 0));
    let child = world.fork(world.root, 0);
    world.change_directory(child, &one).unwrap();
    world.path_call(child, nr::CHROOT, &one, &[]).unwrap();
    world.open(world.root, &std::format!("{one}/file"), O_RDONLY, 0).unwrap();
    for _ in 0..MANY {
        world.paths_call(world.root, nr::RENAME, &one, &two).unwrap();
        world.paths_call(world.root, nr::RENAME, &two, &one).unwrap();
        world.change_directory(world.root, &one).unwrap();
        world.change_directory(world.root, "/").unwrap();
    }
    let another = world.open(world.root, &std::format!("{one}/file"), O_RDONLY, 0);
    assert!(another.is_ok());
    check(&world);
}

#[test]
fn processes_give_their_places_back() {
    let world = World::new();
    let path = long("directory");
    world.make_directory(&path, 0o755, (0, 0));
    world.change_directory(world.root, &path).unwrap();
    let file = world.open(world.root, ".", O_RDONLY, 0).unwrap();
    for number in [100, 500, 900] {
        world.call(world.root, nr::DUP2, &[file, number]).unwrap();
    }
    let groups: Vec<u32> = (0..100).collect();
    for generation in 1..1300 {
        let child = Endpoint::new(300, generation);
        world.machine.add_program(child, 0x1_0000..0x1_0100);
        let fork = vfs::Fork { parent: world.root, child, identity: 300, flags: 0, parts: abi::Parts::SYSTEM };
        world.call_as_pm(fork.message()).unwrap();
        world.set_ids(child, (1, 1), (1, 1), &groups);
        world.set_ids(child, (2, 2), (2, 2), &groups);
        if generation % 2 == 0 {
            world.exit(child);
        }
    }
    check(&world);
}

#[test]
fn mounts_and_programs_give_their_places_back() {
    let mut world = World::new();
    world.start_tmpfs();
    let (target, program) = (long("mount"), long("program"));
    world.make_directory(&target, 0o755, (0, 0));
    world.make(&program, &super::exec::program(), 0o755, (0, 0));
    for _ in 0..MANY {
        let (kind, path) = (world.path(world.root, 0, "tmpfs"), world.path(world.root, 1, &target));
        world.call(world.root, nr::MOUNT, &[kind, path, kind, 0, 0]).unwrap();
        let file = world.path_call(world.root, nr::MEMFD_CREATE, "name", &[0]).unwrap();
        world.write(world.root, file, b"text").unwrap();
        world.close(world.root, file).unwrap();
        world.path_call(world.root, nr::UMOUNT2, &target, &[0]).unwrap();
        world.exec(world.root, &program).0.unwrap();
        world.exec(world.root, &long("none")).0.unwrap_err();
    }
    assert!(world.vm().images.iter().all(|image| image.open == 0));
    check(&world);
}

#[test]
fn what_is_in_use_stays_whole_when_free_places_return_their_memory() {
    let mut world = World::new();
    let path = long("file");
    world.make(&path, b"0123456789", 0o644, (0, 0));
    for peak in 0..3 {
        let files: Vec<u64> = (0..90).map(|_| world.open(world.root, &path, O_RDWR, 0).unwrap()).collect();
        let pipes: Vec<(u64, u64)> = (0..14).map(|_| world.pipe(world.root, 0)).collect();
        for (file, at) in files.iter().zip(0..) {
            world.seek(world.root, *file, at % 10, 0).unwrap();
        }
        for (_, writes) in &pipes {
            world.write(world.root, *writes, &[peak; 4000]).unwrap();
        }
        let children: Vec<Endpoint> = (0..9).map(|_| world.fork(world.root, 0)).collect();
        children.iter().filter(|child| **child != children[6]).for_each(|child| world.exit(*child));
        let is_kept = |index: &usize| index % 9 == 4;
        for index in (0..files.len()).filter(|index| !is_kept(index)) {
            world.close(world.root, files[index]).unwrap();
        }
        for index in (0..pipes.len()).filter(|index| !is_kept(index)) {
            world.close(world.root, pipes[index].0).unwrap();
            world.close(world.root, pipes[index].1).unwrap();
        }
        world.heartbeat();
        world.restart_vfs();
        world.heartbeat();
        for (file, at) in files.iter().zip(0..) {
            assert_eq!(world.position(children[6], *file), at % 10);
        }
        world.exit(children[6]);
        for index in (0..files.len()).filter(is_kept) {
            world.close(world.root, files[index]).unwrap();
        }
        for index in (0..pipes.len()).filter(is_kept) {
            assert_eq!(world.read(world.root, pipes[index].0, 4001).unwrap(), [peak; 4000]);
            world.close(world.root, pipes[index].0).unwrap();
            world.close(world.root, pipes[index].1).unwrap();
        }
    }
    check(&world);
}
