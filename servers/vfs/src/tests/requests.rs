//! What pm and procfs ask of vfs: lives of processes, signals, ids, sync, and what /proc shows.

use super::*;
use abi::{CapabilitySet, Endpoint, Errno, GrantId, Message, endpoint::slot, linux::nr, vfs};
use std::string::String;

const WORKING: i64 = -1;
const ROOT: i64 = -2;

/// A path as /proc shows it, at most so many bytes of it.
fn path_of(world: &World, process: Endpoint, what: i64, bytes: u64) -> Result<String> {
    let request = vfs::DescriptorPath { process, what, grant: GrantId(0), bytes };
    let length = world.call_as_procfs(request.message())?;
    Ok(String::from_utf8(world.machine.read(PROCFS, 0, length as usize)).expect("is text"))
}

fn descriptors(world: &World, process: Endpoint, first: u64, bytes: u64) -> Result<Vec<u32>> {
    let request = vfs::Descriptors { process, first, grant: GrantId(0), bytes };
    let length = world.call_as_procfs(request.message())?;
    let bytes = world.machine.read(PROCFS, 0, length as usize);
    Ok(bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect())
}

fn mounts(world: &World, offset: u64, bytes: u64) -> String {
    let length = world
        .call_as_procfs(
            vfs::Text { what: vfs::TEXT_MOUNTS, grant: GrantId(0), bytes, offset, process: abi::Endpoint::NONE }
                .message(),
        )
        .unwrap();
    String::from_utf8(world.machine.read(PROCFS, 0, length as usize)).expect("is text")
}

fn fork(world: &World, parent: Endpoint, child: Endpoint) -> Result<u64> {
    world.call_as_pm(
        vfs::Fork { parent, child, identity: child.slot() as u64, flags: 0, parts: abi::Parts::SYSTEM }.message(),
    )
}

#[test]
fn proc_shows_paths_of_descriptors_and_directories() {
    let world = World::new();
    world.make_directory("/a", 0o755, (0, 0));
    world.make("/a/file", b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "a/file", "/link"), Ok(0));
    let child = world.fork(world.root, 0);
    let file = world.open(child, "/../link", O_RDONLY, 0).unwrap() as i64;
    let (pipe, _) = world.pipe(child, 0);
    assert_eq!(world.change_directory(child, "/a/."), Ok(0));
    assert_eq!(path_of(&world, child, file, 100).unwrap(), "/a/file");
    assert_eq!(path_of(&world, child, file, 4).unwrap(), "/a/f");
    assert_eq!(path_of(&world, child, WORKING, 100).unwrap(), "/a");
    assert_eq!(path_of(&world, child, ROOT, 100).unwrap(), "/");
    assert_eq!(path_of(&world, world.root, WORKING, 100).unwrap(), "/");
    let inode = world.fstat(child, pipe).unwrap().inode;
    assert_eq!(path_of(&world, child, pipe as i64, 100).unwrap(), std::format!("pipe:[{inode}]"));
    assert_eq!(path_of(&world, child, 99, 100), Err(Errno::EBADF));
    assert_eq!(path_of(&world, Endpoint::new(300, 1), WORKING, 100), Err(Errno::ESRCH));
    let successor = Endpoint::new(child.slot(), 2);
    assert_eq!(path_of(&world, successor, WORKING, 100), Err(Errno::ESRCH), "another one in its slot");
}

#[test]
fn proc_shows_paths_as_seen_from_the_root_of_the_process() {
    let world = World::new();
    world.make_directory("/jail", 0o755, (0, 0));
    world.make("/jail/file", b"", 0o644, (0, 0));
    world.make("/outside", b"", 0o644, (0, 0));
    let child = world.fork(world.root, 0);
    let [inside, outside] = ["/jail/file", "/outside"].map(|path| world.open(child, path, O_RDONLY, 0).unwrap());
    assert_eq!(world.path_call(child, nr::CHROOT, "/jail", &[]), Ok(0));
    assert_eq!(path_of(&world, child, ROOT, 100).unwrap(), "/jail");
    assert_eq!(path_of(&world, child, inside as i64, 100).unwrap(), "/file");
    assert_eq!(path_of(&world, child, outside as i64, 100).unwrap(), "/outside");
    let bytes = world.call(child, nr::GETCWD, &[DATA, 100]).unwrap() as usize;
    assert_eq!(world.machine.read(child, DATA, bytes), b"(unreachable)/\0");
    assert_eq!(world.change_directory(child, "/"), Ok(0));
    assert_eq!(path_of(&world, child, WORKING, 100).unwrap(), "/");
    let bytes = world.call(child, nr::GETCWD, &[DATA, 2]).unwrap() as usize;
    assert_eq!(world.machine.read(child, DATA, bytes), b"/\0");
}

#[test]
fn an_absolute_link_begins_at_the_root_of_the_process() {
    let world = World::new();
    world.make_directory("/jail", 0o755, (0, 0));
    world.make_directory("/jail/dir", 0o755, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/dir", "/jail/link"), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(world.path_call(child, nr::CHROOT, "/jail", &[]), Ok(0));
    assert_eq!(world.change_directory(child, "/link"), Ok(0));
    let bytes = world.call(child, nr::GETCWD, &[DATA, 100]).unwrap() as usize;
    assert_eq!(world.machine.read(child, DATA, bytes), b"/dir\0");
    assert_eq!(path_of(&world, child, WORKING, 100).unwrap(), "/dir");
}

#[test]
fn proc_shows_where_renamed_directories_have_gone() {
    let world = World::new();
    world.make_directory("/old", 0o755, (0, 0));
    world.make_directory("/old/sub", 0o755, (0, 0));
    world.make("/old/sub/file", b"", 0o644, (0, 0));
    world.make("/older", b"", 0o644, (0, 0));
    let child = world.fork(world.root, 0);
    let [file, other] = ["/old/sub/file", "/older"].map(|path| world.open(child, path, O_RDONLY, 0).unwrap() as i64);
    assert_eq!(world.change_directory(child, "/old/sub"), Ok(0));
    assert_eq!(world.path_call(child, nr::CHROOT, "/old", &[]), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/old", "/new"), Ok(0));
    assert_eq!(path_of(&world, child, ROOT, 100).unwrap(), "/new");
    assert_eq!(path_of(&world, child, WORKING, 100).unwrap(), "/sub");
    assert_eq!(path_of(&world, child, file, 100).unwrap(), "/sub/file");
    assert_eq!(path_of(&world, child, other, 100).unwrap(), "/older");
    let thread = world.fork(world.root, vfs::FORK_FILES | vfs::FORK_FS);
    assert_eq!(path_of(&world, thread, WORKING, 100).unwrap(), "/");
}

#[test]
fn proc_shows_which_descriptors_are_open() {
    let world = World::new();
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    for number in [3, 7, 900] {
        assert_eq!(world.call(world.root, nr::DUP2, &[file, number]), Ok(number));
    }
    assert_eq!(descriptors(&world, world.root, 0, 100).unwrap(), [0, 3, 7, 900]);
    assert_eq!(descriptors(&world, world.root, 3, 100).unwrap(), [3, 7, 900]);
    assert_eq!(descriptors(&world, world.root, 4, 7).unwrap(), [7], "as many as there is room for");
    assert_eq!(descriptors(&world, world.root, 901, 100).unwrap(), []);
    assert_eq!(descriptors(&world, Endpoint::new(300, 1), 0, 100), Err(Errno::ESRCH));
}

#[test]
fn proc_shows_the_mounts_in_parts() {
    let world = World::new();
    let all = "/dev/vda / ext2 rw 0 0\n";
    assert_eq!(mounts(&world, 0, 1000), all);
    assert_eq!(mounts(&world, 5, 6), all[5..11]);
    assert_eq!(mounts(&world, 10, u64::MAX), all[10..]);
    assert_eq!(mounts(&world, all.len() as u64, 10), "");
    assert_eq!(mounts(&world, 1000, 10), "");
}

#[test]
fn only_pm_asks_what_concerns_processes() {
    let world = World::new();
    let ask = |request: Message| world.call_as_procfs(request);
    let process = world.root;
    assert_eq!(ask(vfs::Exit { process }.message()), Err(Errno::EPERM));
    assert_eq!(ask(vfs::NextEvent { done: 0 }.message()), Err(Errno::EPERM));
    assert_eq!(ask(vfs::SyncAll { unmount: true }.message()), Err(Errno::EPERM));
    assert_eq!(ask(Message::new(vfs::Exit { process }.message().label + 90)), Err(Errno::ENOSYS));
    assert_eq!(world.call_as_pm(Message::new(0xfff)), Err(Errno::ENOSYS));
    assert!(world.open(world.root, "/", O_RDONLY, 0).is_ok(), "nothing has happened to it");
    assert_eq!(world.call(world.root, 511, &[]), Err(Errno::ENOSYS));
    assert_eq!(world.call(world.root, 512, &[]), Err(Errno::ENOSYS));
}

#[test]
fn a_fork_that_is_repeated_changes_nothing() {
    let world = World::new();
    let child = world.fork(world.root, 0);
    let file = world.open(child, "/", O_RDONLY, 0).unwrap();
    assert_eq!(fork(&world, world.root, child), Ok(0));
    assert_eq!(descriptors(&world, child, 0, 100).unwrap(), [file as u32]);
    assert_eq!(fork(&world, Endpoint::new(400, 1), Endpoint::new(401, 1)), Err(Errno::ESRCH));
    assert_eq!(fork(&world, world.root, Endpoint::new(slot::TTY, 1)), Err(Errno::EINVAL));
}

#[test]
fn a_process_in_the_slot_of_another_ends_that_one() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    world.close(world.root, writes).unwrap();
    assert_eq!(world.begin_call(world.root, nr::READ, &[reads, DATA, 10]), None);
    let successor = Endpoint::new(child.slot(), 2);
    assert_eq!(fork(&world, world.root, successor), Ok(0));
    assert_eq!(world.result(world.root), Some(Ok(0)), "its end of the pipe is closed");
    assert_eq!(path_of(&world, child, WORKING, 100), Err(Errno::ESRCH));
    assert_eq!(path_of(&world, successor, WORKING, 100).unwrap(), "/");
    world.exit(child);
    assert_eq!(path_of(&world, successor, WORKING, 100).unwrap(), "/", "its exit was before");
}

#[test]
fn a_shared_table_ends_with_its_last_thread() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let threads = [0; 2].map(|_| world.fork(child, vfs::FORK_FILES));
    world.close(world.root, writes).unwrap();
    assert_eq!(world.begin_call(world.root, nr::READ, &[reads, DATA, 10]), None);
    for thread in [child, threads[0]] {
        world.exit(thread);
        assert_eq!(world.result(world.root), None);
    }
    world.exit(threads[1]);
    assert_eq!(world.result(world.root), Some(Ok(0)));
}

#[test]
fn what_a_process_waits_for_ends_with_it() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let children = [0; 3].map(|_| world.fork(world.root, 0));
    let asked = world.words(children[1], &[reads | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(children[0], nr::READ, &[reads, DATA, 100]), None);
    assert_eq!(world.begin_call(children[1], nr::POLL, &[asked, 1, -1i64 as u64]), None);
    world.exit(children[0]);
    world.exit(children[1]);
    assert_eq!(world.write(world.root, writes, b"kept"), Ok(4));
    assert_eq!(world.read(children[2], reads, 100).unwrap(), b"kept", "no dead reader gets it");
    world.close(children[2], reads).unwrap();
    world.close(world.root, reads).unwrap();
    assert_eq!(world.begin_call(children[2], nr::WRITE, &[writes, DATA, 1]), None);
    world.exit(children[2]);
    assert_eq!(world.next_event(), None, "no signal for who has ended");
}

#[test]
fn an_exec_leaves_nothing_shared() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    let child = world.fork(world.root, vfs::FORK_FS | vfs::FORK_FILES);
    let other = world.fork(world.root, vfs::FORK_FS | vfs::FORK_FILES);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: child }.message()), Ok(0));
    assert_eq!(world.change_directory(child, "/dir"), Ok(0));
    assert_eq!(world.call(child, nr::UMASK, &[0o77]), Ok(0o22));
    let file = world.open(child, "/", O_RDONLY, 0).unwrap();
    assert_eq!(path_of(&world, world.root, WORKING, 100).unwrap(), "/");
    assert_eq!(world.call(world.root, nr::UMASK, &[0o27]), Ok(0o22));
    assert_eq!(world.close(world.root, file), Err(Errno::EBADF));
    assert_eq!(world.call(other, nr::UMASK, &[0]), Ok(0o27), "the others still share");
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: Endpoint::new(300, 1) }.message()), Err(Errno::ESRCH));
}

#[test]
fn a_process_has_at_most_1024_further_groups() {
    let world = World::new();
    world.make("/file", b"x", 0o060, (0, 2023));
    let user = world.user(1000, 100);
    let groups: Vec<u32> = (1000..2024).collect();
    world.set_ids(user, (1000, 100), (1000, 100), &groups);
    assert!(world.open(user, "/file", O_RDONLY, 0).is_ok());
    let ids = 1000 | 100 << 32;
    let request = vfs::SetIds {
        process: user,
        effective: ids,
        real: ids,
        grant: GrantId(0),
        groups: 1025,
        capabilities: CapabilitySet::EMPTY,
        real_capabilities: CapabilitySet::EMPTY,
    };
    assert_eq!(world.call_as_pm(request.message()), Err(Errno::EINVAL));
    assert!(world.open(user, "/file", O_RDONLY, 0).is_ok());
    world.set_ids(user, (1000, 100), (1000, 100), &groups[..1023]);
    assert_eq!(world.open(user, "/file", O_RDONLY, 0), Err(Errno::EACCES));
}

#[test]
fn sync_brings_everything_to_the_disk_and_says_so() {
    let mut world = World::new();
    world.make("/file", b"for the disk", 0o644, (0, 0));
    assert!(!world.is_on_disk(b"for the disk"));
    assert_eq!(world.call_as_pm(vfs::SyncAll { unmount: false }.message()), Ok(0));
    assert_eq!(world.next_event(), Some((vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4])));
    assert!(world.is_on_disk(b"for the disk"));
    world.make("/more", b"still writable", 0o644, (0, 0));
    assert_eq!(world.next_event(), None);
    world.restart_vfs();
    while let Some((kind, ..)) = world.next_event() {
        assert_ne!(kind, vfs::EVENT_SYNCED, "pm has heard of it");
    }
}

#[test]
fn before_a_shutdown_file_systems_refuse_changes() {
    let world = World::new();
    world.make("/file", b"for the disk", 0o644, (0, 0));
    assert_eq!(world.call_as_pm(vfs::SyncAll { unmount: true }.message()), Ok(0));
    assert_eq!(world.next_event(), Some((vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4])));
    assert!(world.is_on_disk(b"for the disk"));
    assert_eq!(world.open(world.root, "/file", O_WRONLY, 0), Err(Errno::EROFS));
    assert_eq!(mounts(&world, 0, 100), "/dev/vda / ext2 ro 0 0\n");
}

#[test]
fn a_sync_that_pm_has_not_heard_of_is_made_again() {
    let mut world = World::new();
    assert_eq!(world.call_as_pm(vfs::SyncAll { unmount: false }.message()), Ok(0));
    world.restart_vfs();
    let events: Vec<u64> = std::iter::from_fn(|| world.next_event()).map(|(kind, ..)| kind).collect();
    assert!(events.contains(&vfs::EVENT_SYNCED), "{events:?}");
}

#[test]
fn the_path_of_an_exec_has_a_limit_and_its_text_is_told_in_part() {
    let world = World::new();
    let exec = |bytes| {
        let exec = vfs::Exec { process: world.root, grant: GrantId(0), bytes, directory: -100, flags: 0 };
        world.call_as_pm(exec.message())
    };
    assert_eq!(exec(4096), Err(Errno::ENAMETOOLONG));
    world.machine.write(abi::Endpoint::new(slot::PM, 1), 0, &[b'/'; 4095]);
    assert_eq!(exec(4095), Ok(0));
    let event = world.next_event().unwrap();
    assert_eq!(event.2[0], -i64::from(Errno::EACCES.0) as u64, "a directory");
    world.make("/text", b"#!/text\n", 0o755, (0, 0));
    assert_eq!(world.exec(world.root, "/text\0").0, Err(Errno::ELOOP), "a NUL at the end does not count");
    let request = vfs::ExecText { process: Endpoint::new(300, 1), grant: GrantId(0), bytes: 10 };
    assert_eq!(world.call_as_pm(request.message()), Err(Errno::ESRCH));
}

#[test]
fn a_signal_that_comes_before_its_call_is_repeated_ends_it() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let call = [reads, DATA, 100];
    assert_eq!(world.begin_call(world.root, nr::READ, &call), None);
    world.restart_vfs();
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Err(Errno::ENOENT));
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::READ, &call), Some(Err(Errno::ERESTARTSYS)));
    assert_eq!(world.begin_call(world.root, nr::READ, &call), None, "the next call waits");
    assert_eq!(world.cancel(world.root, Errno::EINTR), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)));
    assert_eq!(world.cancel(world.root, Errno::EINTR), Err(Errno::ENOENT));
    assert_eq!(world.begin_call(world.root, nr::READ, &call), None, "a new call does not end of an old signal");
    assert_eq!(world.cancel(world.root, Errno::EINTR), Ok(0));
    world.result(world.root).unwrap().unwrap_err();
    assert_eq!(world.begin_call(world.root, nr::WRITE, &[writes, DATA, 100_000]), None);
    assert_eq!(world.cancel(world.root, Errno::EINTR), Ok(0));
    let moved = world.result(world.root).unwrap().unwrap();
    assert!((1..100_000).contains(&moved), "what was written counts more: {moved}");
}

fn shown(world: &World, what: u64) -> String {
    let length = world
        .call_as_procfs(
            vfs::Text { what, grant: GrantId(0), bytes: 4000, offset: 0, process: abi::Endpoint::NONE }.message(),
        )
        .unwrap();
    String::from_utf8(world.machine.read(PROCFS, 0, length as usize)).expect("is text")
}

fn information(world: &World, process: Endpoint, descriptor: i32) -> Result<String> {
    let request = vfs::DescriptorInfo { process, descriptor, grant: GrantId(0), bytes: 1000 };
    let length = world.call_as_procfs(request.message())?;
    Ok(String::from_utf8(world.machine.read(PROCFS, 0, length as usize)).expect("is text"))
}

#[test]
fn proc_learns_what_a_descriptor_was_opened_for() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let opened = [O_RDONLY, O_WRONLY, O_RDWR, O_PATH].map(|flags| world.open(world.root, "/file", flags, 0).unwrap());
    let ask = |descriptor: u64| {
        let request = vfs::DescriptorAccess { process: world.root, descriptor: descriptor as i64 };
        world.call_as_procfs(request.message())
    };
    let both = vfs::OPEN_READS | vfs::OPEN_WRITES;
    assert_eq!(opened.map(ask), [Ok(vfs::OPEN_READS), Ok(vfs::OPEN_WRITES), Ok(both), Ok(0)]);
    assert_eq!(ask(99), Err(Errno::EBADF));
}

#[test]
fn proc_shows_mounts_in_a_line_with_number_device_and_place() {
    let world = World::new();
    let text = shown(&world, vfs::TEXT_MOUNT_INFO);
    let fields: Vec<&str> = text.lines().next().unwrap().split(' ').collect();
    assert_eq!((fields[0], fields[1], &fields[3..8]), ("1", "0", &["/", "/", "rw", "-", "ext2"][..]));
    assert_eq!(fields[2].split(':').map(str::parse::<u32>).filter(|number| number.is_ok()).count(), 2);
}

#[test]
fn proc_shows_position_flags_and_file_of_a_descriptor() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY | O_CLOEXEC, 0).unwrap();
    world.read(world.root, file, 3).unwrap();
    let inode = world.stat(world.root, "/file").unwrap().inode;
    let flags = world.call(world.root, nr::FCNTL, &[file, F_GETFL]).unwrap() | O_CLOEXEC;
    let expected = std::format!("pos:\t3\nflags:\t0{flags:o}\nmnt_id:\t1\nino:\t{inode}\n");
    assert_eq!(information(&world, world.root, file as i32).unwrap(), expected);
    let counter = world.call(world.root, nr::EVENTFD2, &[255, 0]).unwrap();
    assert!(information(&world, world.root, counter as i32).unwrap().ends_with("\neventfd-count:               ff\n"));
    assert_eq!(information(&world, world.root, 99), Err(Errno::EBADF));
}

#[test]
fn proc_shows_how_much_is_in_use() {
    let mut world = World::new();
    let usage = |world: &World| {
        let reply = world.machine.ask(PROCFS, Endpoint::VFS, &vfs::Usage {}.message()).unwrap();
        vfs::Usage::results(&reply).unwrap()
    };
    let before = usage(&world);
    world.pipe(world.root, 0);
    assert_eq!((usage(&world).0, usage(&world).1), (before.0 + 2, before.1));
    world.restart_vfs();
    assert_eq!(usage(&world).0, before.0 + 2);
    let reply = world.machine.ask(PROCFS, Endpoint::VFS, &vfs::ProcessFiles { process: world.root }.message()).unwrap();
    assert_eq!(vfs::ProcessFiles::results(&reply).map(|(umask, _)| umask), Ok(0o22));
}
