//! A file system whose names come and go by themselves, and its links that stand for pipes.

use super::{exec::program, mappings::map, services::Proc, *};
use abi::{Errno, linux::nr, vfs};
use std::string::{String, ToString};

const MAP_PRIVATE: u64 = 2;
const PROT_READ: u64 = 1 << 32;

fn name_of(world: &World, pipe: u64) -> String {
    std::format!("pipe:[{}]", world.fstat(world.root, pipe).unwrap().inode)
}

#[test]
fn names_are_looked_up_each_time() {
    let mut world = World::new();
    let links = world.start_proc();
    let exists = |world: &World| world.stat(world.root, "/proc/link").is_ok();
    assert!(!exists(&world));
    links.lock().unwrap().push(("link".into(), "text".into()));
    assert!(exists(&world));
    assert_eq!(world.content("/proc/link"), Proc::TEXT);
    links.lock().unwrap().clear();
    assert!(!exists(&world));
    links.lock().unwrap().push(("link".into(), "/proc/../proc/text".into()));
    assert_eq!(world.content("/proc/link"), Proc::TEXT);
}

#[test]
fn a_file_of_unknown_length_is_read_to_its_end() {
    let mut world = World::new();
    world.start_proc();
    let file = world.open(world.root, "/proc/text", O_RDONLY, 0).unwrap();
    assert_eq!(world.fstat(world.root, file).unwrap().size, 0);
    assert_eq!(world.read(world.root, file, 5).unwrap(), Proc::TEXT[..5]);
    assert_eq!(world.read(world.root, file, 100).unwrap(), Proc::TEXT[5..]);
    assert_eq!(world.read(world.root, file, 100).unwrap(), b"");
    assert_eq!(world.pread(world.root, file, 3, 4).unwrap(), Proc::TEXT[4..7]);
    let (_, error, _) = map(&world, file, 0, 4096, MAP_PRIVATE | PROT_READ);
    assert_eq!(Errno(error), Errno::ENODEV);
    world.restart_vfs();
    assert_eq!(world.pread(world.root, file, 3, 4).unwrap(), Proc::TEXT[4..7]);
    assert_eq!(world.content("/proc/text"), Proc::TEXT);
}

#[test]
fn a_link_that_stands_for_a_pipe_leads_to_it() {
    let mut world = World::new();
    let links = world.start_proc();
    let (reads, writes) = world.pipe(world.root, 0);
    links.lock().unwrap().push(("pipe".into(), name_of(&world, reads)));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/proc/pipe", "/stdin"), Ok(0));
    assert_eq!(world.write(world.root, writes, b"through"), Ok(7));
    let again = world.open(world.root, "/stdin", O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0).unwrap();
    assert_eq!(world.read(world.root, again, 100).unwrap(), b"through");
    assert_eq!(world.read(world.root, again, 100), Err(Errno::EAGAIN), "the flags are its own");
    assert_eq!(world.write(world.root, again, b"x"), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::FCNTL, &[again, F_GETFL]), Ok(O_NONBLOCK));
    assert_eq!(world.call(world.root, nr::FCNTL, &[again, F_GETFD]), Ok(1));
    let other = world.open(world.root, "/proc/pipe", O_WRONLY, 0).unwrap();
    world.close(world.root, writes).unwrap();
    assert_eq!(world.write(world.root, other, b"more"), Ok(4));
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"more");
    world.close(world.root, other).unwrap();
    assert_eq!(world.read(world.root, again, 100).unwrap(), b"", "no writer is left");
    let both = world.open(world.root, "/proc/pipe", O_RDWR, 0).unwrap();
    assert_eq!(world.write(world.root, both, b"self"), Ok(4));
    assert_eq!(world.read(world.root, both, 4).unwrap(), b"self");
}

#[test]
fn a_pipe_behind_a_link_is_described_like_itself() {
    let mut world = World::new();
    let links = world.start_proc();
    let (reads, writes) = world.pipe(world.root, 0);
    links.lock().unwrap().push(("pipe".into(), name_of(&world, reads)));
    assert_eq!(world.path_call(world.root, nr::STAT, "/proc/pipe", &[DATA]), Ok(0));
    let words = world.read_words(world.root, DATA, 4);
    assert_eq!((words[1], words[3] as u32), (world.fstat(world.root, reads).unwrap().inode, S_IFIFO | 0o600));
    assert_eq!(world.stat(world.root, "/proc/pipe").unwrap().mode, S_IFLNK | 0o777);
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/proc/pipe", &[0o600]), Err(Errno::EINVAL));
    let stranger = world.fork(world.root, 0);
    world.close(stranger, reads).unwrap();
    assert!(world.open(stranger, "/proc/pipe", O_RDONLY, 0).is_ok(), "it has the other end");
    let stranger = world.fork(world.root, 0);
    for file in [reads, writes] {
        world.close(stranger, file).unwrap();
    }
    assert_eq!(world.open(stranger, "/proc/pipe", O_RDONLY, 0), Err(Errno::ENOENT), "only of who has it");
    links.lock().unwrap()[0].1 = "pipe:[999]".into();
    assert_eq!(world.open(world.root, "/proc/pipe", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, &name_of(&world, reads), "/fake"), Ok(0));
    assert_eq!(world.open(world.root, "/fake", O_RDONLY, 0), Err(Errno::ENOENT), "an ordinary link is a name");
}

#[test]
fn links_of_a_process_are_for_its_user_and_root() {
    let mut world = World::new();
    let links = world.start_proc();
    world.make("/secret", b"x", 0o644, (0, 0));
    links.lock().unwrap().push(("exe".into(), "/secret".into()));
    let user = world.user(1000, 100);
    let read_link = |who, path| world.path_call(who, nr::READLINK, path, &[DATA, 100]);
    assert_eq!((read_link(world.root, "/proc/1/exe"), read_link(user, "/proc/exe")), (Ok(7), Ok(7)));
    assert_eq!(read_link(user, "/proc/1/exe"), Err(Errno::EACCES));
    assert_eq!(world.open(user, "/proc/1/exe", O_RDONLY, 0), Err(Errno::EACCES));
    assert!(world.open(user, "/proc/exe", O_RDONLY, 0).is_ok(), "those at the top are everybody's");
    assert!(world.open(world.root, "/proc/1/exe", O_RDONLY, 0).is_ok());
}

#[test]
fn a_file_that_changes_by_itself_is_read_anew_each_time() {
    let mut world = World::new();
    let links = world.start_proc();
    let file = world.open(world.root, "/proc/text", O_RDONLY, 0).unwrap();
    let read = |world: &World| world.pread(world.root, file, 100, 0).unwrap();
    (0..3).for_each(|_| assert_eq!(read(&world), Proc::TEXT));
    for text in ["how it is now", "and how it is then"] {
        links.lock().unwrap().clear();
        links.lock().unwrap().push(("text".into(), text.into()));
        (0..3).for_each(|_| assert_eq!(read(&world), text.as_bytes()));
    }
}

#[test]
fn a_process_reads_which_program_it_runs_without_procfs() {
    let mut world = World::new();
    let links = world.start_proc();
    let read_link = |world: &World, who, path| {
        let length = world.path_call(who, nr::READLINK, path, &[DATA, 100])?;
        Ok(String::from_utf8(world.machine.read(who, DATA, length as usize)).unwrap())
    };
    let own = |world: &World, who| read_link(world, who, "/proc/self/exe");
    let run = |world: &World, process| {
        world.exec(process, "/./program").0.expect("it is found");
        assert_eq!(world.call_as_pm(vfs::ExecCommit { process }.message()), Ok(0));
    };
    world.make("/program", &program(), 0o755, (0, 0));
    let process = world.fork(world.root, 0);
    assert_eq!(own(&world, process), Err(Errno::ENOENT), "procfs, which knows no such link, was asked");
    world.exec(process, "/program").0.expect("it is found");
    assert_eq!(own(&world, process), Err(Errno::ENOENT), "it does not run it yet");
    run(&world, process);
    let child = world.fork(process, 0);
    let found = Ok("/program".to_string());
    assert_eq!((own(&world, process), own(&world, child)), (found.clone(), found.clone()));
    assert_eq!(world.path_call(child, nr::READLINK, "/proc/self/exe", &[DATA, 3]), Ok(3));
    assert_eq!(world.path_call(child, nr::READLINK, "/proc/self/exe", &[DATA, 0]), Err(Errno::EINVAL));
    assert_eq!(world.path_call(child, nr::READLINK, "/proc/self/exe", &[8, 9]), Err(Errno::EFAULT));
    for path in ["/proc/self/exe/", "/proc/self", "/proc//self/exe"] {
        assert_eq!(read_link(&world, child, path), Err(Errno::ENOENT), "{path}");
    }
    let user = world.user(1000, 100);
    run(&world, user);
    for (mode, answer) in [(0o700, Err(Errno::EACCES)), (0o755, found.clone())] {
        assert_eq!(world.path_call(world.root, nr::CHMOD, "/", &[mode]), Ok(0));
        assert_eq!(own(&world, user), answer);
    }
    // What was found by a predecessor is procfs's to say.
    world.restart_vfs();
    while world.next_event().is_some() {}
    assert_eq!(own(&world, child), Err(Errno::ENOENT));
    links.lock().unwrap().extend([("self".into(), "/proc/1".into()), ("exe".into(), "/elsewhere".into())]);
    assert_eq!(own(&world, child), Ok("/elsewhere".to_string()));
    run(&world, child);
    assert_eq!(own(&world, child), found);
    // Another directory in its place.
    world.make_directory("/other", 0o755, (0, 0));
    assert_eq!(world.path_call(child, nr::CHROOT, "/other", &[]), Ok(0));
    assert_eq!(own(&world, child), Err(Errno::ENOENT));
}
