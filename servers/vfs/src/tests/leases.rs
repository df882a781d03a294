//! Leases (fcntl(2), `F_SETLEASE`), and who is told that one is to be broken.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const F_SETOWN: u64 = 8;
const F_GETOWN: u64 = 9;
const F_SETSIG: u64 = 10;
const F_GETSIG: u64 = 11;
const F_SETOWN_EX: u64 = 15;
const F_GETOWN_EX: u64 = 16;
const F_SETLEASE: u64 = 1024;
const F_GETLEASE: u64 = 1025;

const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;

const F_OWNER_TID: u64 = 0;
const F_OWNER_PID: u64 = 1;
const F_OWNER_PGRP: u64 = 2;

const SIGUSR1: u64 = 10;
const BREAK_NS: u64 = 45_000_000_000;
const RESTART: Errno = Errno::ERESTARTSYS;

/// A program and one of its descriptors.
type Side = (Endpoint, u64);

fn control(world: &World, (who, file): Side, command: u64, argument: u64) -> Result<u64> {
    world.call(who, nr::FCNTL, &[file, command, argument])
}

fn set(world: &World, side: Side, kind: u64) -> Result<u64> {
    control(world, side, F_SETLEASE, kind)
}

fn get(world: &World, side: Side) -> Result<u64> {
    control(world, side, F_GETLEASE, 0)
}

/// A file of a user, a descriptor that the user has of it, and a program of another user who may write it.
fn file(world: &World, flags: u64) -> (Side, Endpoint) {
    // Else a successor would report the exec of the first program again.
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    world.make("/file", b"content", 0o666, (1000, 100));
    let user = world.user(1000, 100);
    let file = world.open(user, "/file", flags, 0).unwrap();
    ((user, file), world.user(2000, 100))
}

fn open(world: &World, who: Endpoint, flags: u64) -> Result<u64> {
    world.open(who, "/file", flags, 0)
}

/// Begins an open that may wait.
fn begin(world: &World, who: Endpoint, flags: u64) -> Option<Result<u64>> {
    world.begin_call(who, nr::OPEN, &[world.path(who, 0, "/file"), flags, 0])
}

/// The signals that pm is told to send: owner, what the owner is, signal, descriptor, ids.
fn told(world: &World) -> Vec<[u64; 5]> {
    let events = std::iter::from_fn(|| world.next_event());
    let fields = events.map(|(kind, process, [target, of, ids, rest])| {
        assert_eq!((kind, process, rest), (vfs::EVENT_OWNER, Endpoint::NONE, 0));
        let (descriptor, reason) = (of & 0xffff_ffff, of >> 32);
        assert_eq!(reason, vfs::OWNER_MESSAGE);
        [target & 0xffff_ffff, target >> 32 & 0xff, target >> 40, descriptor, ids]
    });
    fields.collect()
}

/// The break of the lease of a descriptor as its holder is told, by SIGIO.
fn told_to((who, file): Side) -> Vec<[u64; 5]> {
    std::vec![[who.slot() as u64, F_OWNER_PID, 0, file, 1000 | 1000 << 32]]
}

/// What F_GETOWN_EX finds.
fn owner(world: &World, side: Side) -> (u64, u64) {
    let address = world.words(side.0, &[u64::MAX]);
    assert_eq!(control(world, side, F_GETOWN_EX, address), Ok(0));
    let word = world.read_words(side.0, address, 1)[0];
    (word & 0xffff_ffff, word >> 32)
}

fn set_owner_ex(world: &World, side: Side, kind: u64, id: i32) -> Result<u64> {
    let address = world.words(side.0, &[kind | (id as u32 as u64) << 32]);
    control(world, side, F_SETOWN_EX, address)
}

#[test]
fn a_lease_is_set_changed_and_removed() {
    let world = World::new();
    let (mine, _) = file(&world, O_RDONLY);
    assert_eq!((get(&world, mine), set(&world, mine, F_UNLCK)), (Ok(F_UNLCK), Err(Errno::EAGAIN)));
    for kind in [F_RDLCK, F_WRLCK, F_RDLCK] {
        assert_eq!((set(&world, mine, kind), get(&world, mine)), (Ok(0), Ok(kind)));
    }
    assert_eq!((set(&world, mine, F_UNLCK), get(&world, mine)), (Ok(0), Ok(F_UNLCK)));
    assert_eq!(set(&world, mine, F_UNLCK), Err(Errno::EAGAIN));
    assert!([3, u64::MAX, 1 << 32].into_iter().all(|kind| set(&world, mine, kind) == Err(Errno::EINVAL)));
}

#[test]
fn only_the_owner_of_a_regular_file_and_root_get_a_lease() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let theirs = (other, open(&world, other, O_RDONLY).unwrap());
    assert_eq!(set(&world, theirs, F_RDLCK), Err(Errno::EACCES));
    assert_eq!(set(&world, theirs, F_UNLCK), Err(Errno::EACCES));
    assert_eq!((set(&world, theirs, 9), get(&world, theirs)), (Err(Errno::EINVAL), Ok(F_UNLCK)));
    let roots = (world.root, open(&world, world.root, O_RDONLY).unwrap());
    assert_eq!(set(&world, roots, F_RDLCK), Ok(0));
    let directory = (world.root, world.open(world.root, "/", O_RDONLY, 0).unwrap());
    let (pipe, _) = world.pipe(world.root, 0);
    for side in [directory, (world.root, pipe)] {
        assert_eq!((set(&world, side, F_RDLCK), get(&world, side)), (Err(Errno::EINVAL), Ok(F_UNLCK)));
    }
    let place = (mine.0, open(&world, mine.0, O_PATH).unwrap());
    for command in [F_SETLEASE, F_GETLEASE, F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX, 99] {
        assert_eq!(control(&world, place, command, 0), Err(Errno::EBADF));
    }
    assert_eq!(control(&world, mine, 99, 0), Err(Errno::EINVAL));
    assert_eq!(set(&world, (mine.0, 77), F_RDLCK), Err(Errno::EBADF));
}

#[test]
fn a_lease_for_reading_needs_a_file_that_nobody_writes() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let writes = open(&world, other, O_WRONLY).unwrap();
    assert_eq!(set(&world, mine, F_RDLCK), Err(Errno::EAGAIN));
    world.close(other, writes).unwrap();
    open(&world, other, O_RDONLY).unwrap();
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    let own = (mine.0, open(&world, mine.0, O_RDONLY).unwrap());
    assert_eq!((set(&world, own, F_RDLCK), set(&world, own, F_UNLCK), get(&world, mine)), (Ok(0), Ok(0), Ok(F_RDLCK)));
    world.make("/own", b"", 0o600, (1000, 100));
    let both = (mine.0, world.open(mine.0, "/own", O_RDWR, 0).unwrap());
    assert_eq!((set(&world, both, F_RDLCK), set(&world, both, F_WRLCK)), (Err(Errno::EAGAIN), Ok(0)));
    assert_eq!((set(&world, both, F_RDLCK), get(&world, both)), (Err(Errno::EAGAIN), Ok(F_WRLCK)), "it writes itself");
}

#[test]
fn a_lease_for_writing_needs_a_file_that_is_open_once() {
    for (flags, again) in [(O_RDONLY, O_RDONLY), (O_RDWR, O_RDONLY), (O_WRONLY, O_WRONLY), (O_RDONLY, O_RDWR)] {
        let world = World::new();
        let (mine, other) = file(&world, flags);
        let second = open(&world, other, again).unwrap();
        assert_eq!(set(&world, mine, F_WRLCK), Err(Errno::EAGAIN));
        world.close(other, second).unwrap();
        open(&world, other, O_PATH).unwrap();
        assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    }
}

#[test]
fn an_open_that_conflicts_waits_for_the_end_of_the_lease() {
    for (lease, conflicting) in
        [(F_RDLCK, O_WRONLY), (F_RDLCK, O_RDWR), (F_WRLCK, O_RDONLY), (F_WRLCK, O_WRONLY), (F_WRLCK, O_RDWR | O_CREAT)]
    {
        let world = World::new();
        let (mine, other) = file(&world, O_RDONLY);
        assert_eq!(set(&world, mine, lease), Ok(0));
        assert_eq!(begin(&world, other, conflicting), None);
        assert_eq!(told(&world), told_to(mine));
        let left = if conflicting == O_RDONLY { F_RDLCK } else { F_UNLCK };
        assert_eq!(get(&world, mine), Ok(left), "what the break will leave");
        assert_eq!(set(&world, mine, F_WRLCK), Err(Errno::EAGAIN), "the open counts");
        assert_eq!(world.result(other), None);
        assert_eq!(set(&world, mine, F_UNLCK), Ok(0));
        assert!(matches!(world.result(other), Some(Ok(_))));
        assert_eq!(told(&world), Vec::<[u64; 5]>::new());
    }
}

#[test]
fn what_does_not_conflict_does_not_break_a_lease() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    let reads = open(&world, other, O_RDONLY).unwrap();
    world.close(other, reads).unwrap();
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    open(&world, other, O_PATH).unwrap();
    world.stat(other, "/file").unwrap();
    assert_eq!(world.path_call(mine.0, nr::CHMOD, "/file", &[0o600]), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/file", "/other"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/other", &[]), Ok(0));
    assert_eq!((told(&world), get(&world, mine)), (Vec::new(), Ok(F_WRLCK)));
}

#[test]
fn a_downgrade_lets_readers_in() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    assert_eq!(begin(&world, other, O_RDONLY), None);
    assert_eq!((set(&world, mine, F_WRLCK), set(&world, mine, F_RDLCK)), (Err(Errno::EAGAIN), Ok(0)));
    assert_eq!((world.result(other), get(&world, mine)), (Some(Ok(0)), Ok(F_RDLCK)));
    world.close(other, 0).unwrap();
    assert_eq!((set(&world, mine, F_WRLCK), get(&world, mine)), (Ok(0), Ok(F_WRLCK)), "the break is over");
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    assert_eq!(begin(&world, other, O_WRONLY), None);
    assert_eq!(set(&world, mine, F_RDLCK), Err(Errno::EAGAIN), "a writer waits");
    assert_eq!(set(&world, mine, F_UNLCK), Ok(0));
    assert_eq!(world.result(other), Some(Ok(0)));
    assert_eq!(set(&world, mine, F_RDLCK), Err(Errno::EAGAIN));
}

#[test]
fn an_open_that_does_not_wait_fails_and_the_break_has_begun() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    let expected = |told| (Err(Errno::EAGAIN), told);
    let try_open = |flags| (open(&world, other, flags | O_NONBLOCK), told(&world));
    assert_eq!(try_open(O_RDONLY), expected(told_to(mine)));
    assert_eq!(try_open(O_RDONLY), expected(Vec::new()), "it is told once");
    assert_eq!((set(&world, mine, F_WRLCK), get(&world, mine)), (Ok(0), Ok(F_RDLCK)), "which ends no break");
    assert_eq!(try_open(O_WRONLY), expected(told_to(mine)), "more is wanted");
    assert_eq!(try_open(O_RDONLY), expected(Vec::new()));
    assert_eq!((set(&world, mine, F_RDLCK), get(&world, mine)), (Ok(0), Ok(F_UNLCK)));
    let own = (mine.0, open(&world, mine.0, O_RDONLY | O_NONBLOCK).unwrap());
    assert_eq!(set(&world, own, F_RDLCK), Err(Errno::EAGAIN), "the other is to end");
    assert_eq!((set(&world, mine, F_UNLCK), set(&world, own, F_RDLCK)), (Ok(0), Ok(0)));
}

#[test]
fn a_holder_that_does_nothing_loses_the_lease_in_time() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    control(&world, mine, F_SETSIG, SIGUSR1).unwrap();
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    assert_eq!(begin(&world, other, O_RDONLY), None);
    world.machine.advance_ns(BREAK_NS - 1_000_000);
    assert_eq!((world.result(other), get(&world, mine)), (None, Ok(F_RDLCK)));
    world.machine.advance_ns(2_000_000);
    assert_eq!((world.result(other), get(&world, mine)), (Some(Ok(0)), Ok(F_RDLCK)), "downgraded");
    assert_eq!(open(&world, other, O_WRONLY | O_NONBLOCK), Err(Errno::EAGAIN));
    world.machine.advance_ns(BREAK_NS - 1_000_000);
    assert_eq!(open(&world, other, O_WRONLY | O_NONBLOCK), Err(Errno::EAGAIN));
    world.machine.advance_ns(2_000_000);
    assert_eq!(set(&world, mine, F_UNLCK), Err(Errno::EAGAIN), "it has ended");
    assert_eq!((control(&world, mine, F_GETOWN, 0), control(&world, mine, F_GETSIG, 0)), (Ok(0), Ok(0)));
    assert_eq!(open(&world, other, O_WRONLY | O_NONBLOCK), Ok(1));
}

#[test]
fn a_writer_waits_for_all_holders() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let second = (mine.0, open(&world, mine.0, O_RDONLY).unwrap());
    assert_eq!((set(&world, mine, F_RDLCK), set(&world, second, F_RDLCK)), (Ok(0), Ok(0)));
    assert_eq!(begin(&world, other, O_WRONLY), None);
    assert_eq!(told(&world), [told_to(mine), told_to(second)].concat());
    assert_eq!(set(&world, mine, F_UNLCK), Ok(0));
    assert_eq!(world.result(other), None);
    world.close(second.0, second.1).unwrap();
    assert_eq!(world.result(other), Some(Ok(0)));
}

#[test]
fn truncate_breaks_a_lease_and_a_descriptor_does_not() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    let truncate = |size| world.begin_call(other, nr::TRUNCATE, &[world.path(other, 0, "/file"), size]);
    assert_eq!(truncate(3), None);
    assert_eq!((told(&world), world.fstat(mine.0, mine.1).unwrap().size), (told_to(mine), 7));
    assert_eq!(set(&world, mine, F_RDLCK), Err(Errno::EAGAIN), "it counts as a writer");
    assert_eq!(set(&world, mine, F_UNLCK), Ok(0));
    assert_eq!((world.result(other), world.fstat(mine.0, mine.1).unwrap().size), (Some(Ok(0)), 3));
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    world.close(mine.0, mine.1).unwrap();
    let both = (mine.0, open(&world, mine.0, O_RDWR).unwrap());
    assert_eq!(set(&world, both, F_WRLCK), Ok(0));
    assert_eq!(world.call(both.0, nr::FTRUNCATE, &[both.1, 1]), Ok(0));
    assert_eq!(begin(&world, other, O_RDONLY | O_TRUNC), None);
    assert_eq!((world.fstat(both.0, both.1).unwrap().size, set(&world, both, F_UNLCK)), (1, Ok(0)));
    assert_eq!((world.result(other), world.fstat(both.0, both.1).unwrap().size), (Some(Ok(0)), 0));
}

#[test]
fn a_signal_ends_the_wait_for_a_lease() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    assert_eq!(begin(&world, other, O_RDONLY), None);
    assert_eq!((world.cancel(other, RESTART), world.result(other)), (Ok(0), Some(Err(RESTART))));
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0), "it counts no more");
    let truncate = [world.path(other, 0, "/file"), 3];
    assert_eq!(world.begin_call(other, nr::TRUNCATE, &truncate), None);
    assert_eq!((world.cancel(other, RESTART), world.result(other)), (Ok(0), Some(Err(RESTART))));
    assert_eq!(begin(&world, mine.0, O_RDONLY), None, "the holder itself waits, too");
    world.exit(mine.0);
    assert_eq!(open(&world, other, O_RDONLY), Ok(0));
}

#[test]
fn a_lease_belongs_to_the_open_file() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let copy = (mine.0, world.call(mine.0, nr::DUP, &[mine.1]).unwrap());
    let child = (world.fork(mine.0, 0), mine.1);
    assert_eq!(set(&world, copy, F_RDLCK), Ok(0));
    assert!([mine, copy, child].into_iter().all(|side| get(&world, side) == Ok(F_RDLCK)));
    assert_eq!(begin(&world, other, O_WRONLY), None);
    assert_eq!(told(&world), told_to(copy), "by the descriptor that set it");
    world.close(mine.0, mine.1).unwrap();
    world.close(copy.0, copy.1).unwrap();
    assert_eq!((world.result(other), get(&world, child)), (None, Ok(F_UNLCK)));
    world.exit(child.0);
    assert_eq!(world.result(other), Some(Ok(0)));
    let (again, third) = ((world.root, open(&world, world.root, O_RDONLY).unwrap()), world.fork(world.root, 0));
    world.close(other, 0).unwrap();
    assert_eq!((set(&world, again, F_RDLCK), set(&world, (third, again.1), F_UNLCK)), (Ok(0), Ok(0)));
    assert_eq!(get(&world, again), Ok(F_UNLCK));
}

#[test]
fn the_caller_owns_the_signals_of_a_lease_unless_another_does() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!((owner(&world, mine), set(&world, mine, F_RDLCK)), ((F_OWNER_TID, 0), Ok(0)));
    let pid = mine.0.slot() as u64;
    assert_eq!((owner(&world, mine), control(&world, mine, F_GETOWN, 0)), ((F_OWNER_PID, pid), Ok(pid)));
    assert_eq!((set(&world, mine, F_UNLCK), owner(&world, mine).1), (Ok(0), 0));
    let pid = other.slot() as u64;
    assert_eq!((control(&world, mine, F_SETOWN, pid), set(&world, mine, F_RDLCK)), (Ok(0), Ok(0)));
    control(&world, mine, F_SETSIG, SIGUSR1).unwrap();
    world.set_ids(mine.0, (1000, 100), (5, 100), &[]);
    assert_eq!((owner(&world, mine), control(&world, mine, F_GETSIG, 0)), ((F_OWNER_PID, pid), Ok(SIGUSR1)));
    assert_eq!(open(&world, other, O_RDWR | O_NONBLOCK), Err(Errno::EAGAIN));
    assert_eq!(told(&world), [[pid, F_OWNER_PID, SIGUSR1, mine.1, 1000 | 1000 << 32]], "named before the ids changed");
    control(&world, mine, F_SETLEASE, F_UNLCK).unwrap();
    assert_eq!((owner(&world, mine).1, control(&world, mine, F_GETSIG, 0)), (0, Ok(0)), "they go with the lease");
    assert_eq!(set(&world, mine, F_RDLCK), Ok(0));
    assert_eq!(control(&world, mine, F_SETOWN, 0), Ok(0));
    assert_eq!(open(&world, other, O_RDWR | O_NONBLOCK), Err(Errno::EAGAIN));
    assert_eq!(told(&world), Vec::<[u64; 5]>::new(), "nobody is told");
}

#[test]
fn owners_are_processes_groups_and_threads() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let group = vfs::SetSession { process: mine.0, session: 50, group: 60, leader: false };
    assert_eq!(world.call_as_pm(group.message()), Ok(0));
    let minus = |id: u64| id.wrapping_neg();
    assert_eq!((control(&world, mine, F_SETOWN, minus(60)), owner(&world, mine)), (Ok(0), (F_OWNER_PGRP, 60)));
    assert_eq!(control(&world, mine, F_GETOWN, 0), Err(Errno(60)), "as Linux: the group, negated");
    for nobody in [1234, minus(1234), minus(1)] {
        assert_eq!(control(&world, mine, F_SETOWN, nobody), Err(Errno::ESRCH));
    }
    assert_eq!(control(&world, mine, F_SETOWN, 1 << 31), Err(Errno::EINVAL));
    let pid = other.slot() as u64;
    assert_eq!((set_owner_ex(&world, mine, F_OWNER_TID, 321), owner(&world, mine)), (Ok(0), (F_OWNER_TID, 321)));
    assert_eq!((set_owner_ex(&world, mine, F_OWNER_PGRP, 60), owner(&world, mine)), (Ok(0), (F_OWNER_PGRP, 60)));
    assert_eq!(set_owner_ex(&world, mine, F_OWNER_PID, pid as i32), Ok(0));
    assert_eq!(set_owner_ex(&world, mine, 3, 1), Err(Errno::EINVAL));
    assert_eq!(set_owner_ex(&world, mine, F_OWNER_PID, -1), Err(Errno::ESRCH));
    for command in [F_SETOWN_EX, F_GETOWN_EX] {
        assert_eq!(control(&world, mine, command, 8), Err(Errno::EFAULT));
    }
    assert_eq!(owner(&world, mine), (F_OWNER_PID, pid));
    world.exit(other);
    assert_eq!((owner(&world, mine), control(&world, mine, F_GETOWN, 0)), ((F_OWNER_PID, 0), Ok(0)), "it has ended");
    assert_eq!((control(&world, mine, F_SETSIG, 65), control(&world, mine, F_SETSIG, 64)), (Err(Errno::EINVAL), Ok(0)));
}

#[test]
fn any_open_file_has_an_owner_and_a_signal() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(control(&world, (world.root, reads), F_SETOWN, 1), Ok(0));
    assert_eq!(control(&world, (world.root, writes), F_SETSIG, SIGUSR1), Ok(0));
    world.restart_vfs();
    assert_eq!((owner(&world, (world.root, reads)), owner(&world, (world.root, writes)).1), ((F_OWNER_PID, 1), 0));
    assert_eq!(control(&world, (world.root, writes), F_GETSIG, 0), Ok(SIGUSR1));
}

#[test]
fn a_user_has_leases_for_half_of_the_table_and_root_finds_more() {
    let mut world = World::new();
    let user = world.user(1000, 100);
    let names: Vec<_> = (0..40).map(|number| std::format!("/{number}")).collect();
    names.iter().for_each(|name| world.make(name, b"", 0o644, (1000, 100)));
    let files: Vec<Side> = names.iter().map(|name| (user, world.open(user, name, O_RDONLY, 0).unwrap())).collect();
    let given = |world: &World| files.iter().filter(|side| set(world, **side, F_RDLCK).is_ok()).count();
    assert_eq!((given(&world), set(&world, files[16], F_RDLCK)), (16, Err(Errno::ENOMEM)));
    assert_eq!(control(&world, files[16], F_SETOWN, 1), Err(Errno::ENOMEM));
    assert_eq!((control(&world, files[16], F_SETSIG, 0), control(&world, files[16], F_SETOWN, 0)), (Ok(0), Ok(0)));
    world.restart_vfs();
    assert_eq!((given(&world), set(&world, files[16], F_RDLCK)), (16, Err(Errno::ENOMEM)), "the same ones");
    assert_eq!((set(&world, files[3], F_UNLCK), set(&world, files[16], F_RDLCK)), (Ok(0), Ok(0)));
    world.close(user, files[4].1).unwrap();
    assert_eq!(set(&world, files[17], F_RDLCK), Ok(0));
    let other = world.user(2000, 100);
    let pipes: Vec<Side> = (0..9).map(|_| (other, world.pipe(other, 0).0)).collect();
    let others = pipes.iter().filter(|side| control(&world, **side, F_SETSIG, 1).is_ok()).count();
    assert_eq!(others, 9);
    let third = world.user(3000, 100);
    let own = |who, count| (0..count).map(|_| (who, world.pipe(who, 0).0)).collect::<Vec<Side>>();
    let named = |sides: Vec<Side>| sides.iter().filter(|side| control(&world, **side, F_SETSIG, 1).is_ok()).count();
    assert_eq!((named(own(third, 9)), named(own(world.root, 4))), (5, 2), "a sixteenth is kept for root");
}

#[test]
fn leases_owners_and_breaks_outlive_vfs() {
    let mut world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    assert_eq!((set(&world, mine, F_WRLCK), control(&world, mine, F_SETSIG, SIGUSR1)), (Ok(0), Ok(0)));
    world.restart_vfs();
    let pid = mine.0.slot() as u64;
    assert_eq!((get(&world, mine), owner(&world, mine)), (Ok(F_WRLCK), (F_OWNER_PID, pid)));
    let path = world.path(other, 0, "/file");
    assert_eq!(world.begin_call(other, nr::OPEN, &[path, O_RDONLY, 0]), None);
    world.restart_vfs();
    assert_eq!(get(&world, mine), Ok(F_RDLCK), "it is being broken");
    world.machine.forget_request(other);
    world.machine.advance_ns(BREAK_NS / 3);
    assert_eq!(world.begin_call(other, nr::OPEN, &[path, O_RDONLY, 0]), None);
    let told_once = [[pid, F_OWNER_PID, SIGUSR1, mine.1, 1000 | 1000 << 32]];
    assert_eq!((told(&world), world.result(other)), (told_once.to_vec(), None));
    world.machine.advance_ns(BREAK_NS / 3 * 2 + 1_000_000);
    assert_eq!((world.result(other), get(&world, mine)), (Some(Ok(0)), Ok(F_RDLCK)), "when it would have been");
    world.restart_vfs();
    assert_eq!(get(&world, mine), Ok(F_RDLCK));
    assert_eq!(set(&world, mine, F_WRLCK), Err(Errno::EAGAIN), "the file is open twice");
    world.close(mine.0, mine.1).unwrap();
    assert_eq!(begin(&world, other, O_RDWR), Some(Ok(1)));
    world.restart_vfs();
    assert_eq!(set(&world, (world.root, open(&world, world.root, O_RDONLY).unwrap()), F_RDLCK), Err(Errno::EAGAIN));
}

#[test]
fn a_call_on_a_lease_that_comes_again_is_made_once() {
    let mut world = World::new();
    let (mine, other) = file(&world, O_RDONLY);
    let twice = |world: &mut World, who: Endpoint, call: u32, arguments: &[u64]| {
        let first = world.call(who, call, arguments);
        world.restart_vfs();
        [Some(first), world.repeat_call(who, call, arguments)]
    };
    for kind in [F_RDLCK, F_WRLCK, F_UNLCK, F_WRLCK] {
        assert_eq!(twice(&mut world, mine.0, nr::FCNTL, &[mine.1, F_SETLEASE, kind]), [Some(Ok(0)); 2]);
    }
    let path = world.path(other, 0, "/file");
    let again = twice(&mut world, other, nr::OPEN, &[path, O_RDWR | O_NONBLOCK, 0]);
    assert_eq!(again, [Some(Err(Errno::EAGAIN)); 2]);
    assert_eq!(told(&world), told_to(mine), "it is told once");
}

#[test]
fn an_exec_breaks_a_lease_for_writing() {
    let world = World::new();
    let (mine, other) = file(&world, O_RDWR);
    world.pwrite(mine.0, mine.1, &exec::program(), 0).unwrap();
    assert_eq!(world.call(mine.0, nr::FCHMOD, &[mine.1, 0o755]), Ok(0));
    assert_eq!(set(&world, mine, F_WRLCK), Ok(0));
    world.machine.write(Endpoint::new(abi::endpoint::slot::PM, 1), 0, b"/file");
    // A signal that came too late for the call before.
    assert_eq!(world.cancel(other, RESTART), Err(Errno::ENOENT));
    let exec = vfs::Exec { process: other, grant: abi::GrantId(0), bytes: 5, directory: -100, flags: 0 };
    assert_eq!(world.call_as_pm(exec.message()), Ok(0));
    assert_eq!(told(&world), told_to(mine));
    assert_eq!(set(&world, mine, F_WRLCK), Err(Errno::EAGAIN), "it counts as a reader");
    assert_eq!(world.call(mine.0, nr::CLOSE, &[mine.1]), Ok(0), "which ends the lease, and lets the program run");
    let (kind, who, [image, ..]) = world.next_event().expect("the exec goes on");
    assert_eq!((kind, who, image as i64 > 0), (vfs::EVENT_EXEC, other, true));
}
