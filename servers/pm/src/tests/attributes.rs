//! Small calls about one process or thread: names, register bases, robust lists, limits, random numbers; and the machine's names,
//! memory and log.

use super::fake::LOG;
use super::{Answer, DONE, MEMORY, SECOND, Told, World, failed};
use crate::system::End;
use crate::system::MemoryLimits;
use abi::linux::nr;
use abi::{Endpoint, Errno};
use std::string::String;
use std::vec::Vec;

const BUFFER: u64 = MEMORY.start + 0x100;
const PAGE: u64 = 4096;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.iter().copied().take_while(|byte| *byte != 0).collect()).unwrap()
}

const PR_SET_NAME: u64 = 15;
const PR_GET_NAME: u64 = 16;

/// Sets the name from this address, which has to work. Returns the name that is told afterwards.
fn named_from(world: &mut World, address: u64) -> String {
    assert_eq!(world.call(world.init, nr::PRCTL, &[PR_SET_NAME, address]), DONE);
    world.write(world.init, BUFFER, &[u64::MAX; 3]);
    assert_eq!(world.call(world.init, nr::PRCTL, &[PR_GET_NAME, BUFFER]), DONE);
    assert_eq!(world.read(world.init, BUFFER + 16), u64::MAX, "16 bytes are written");
    text(&world.read_bytes(world.init, BUFFER, 16))
}

#[test]
fn a_name_has_up_to_15_bytes() {
    let mut world = World::new();
    for (given, kept) in
        [("", ""), ("x", "x"), ("123456789012345", "123456789012345"), ("1234567890123456", "123456789012345")]
    {
        let bytes = std::format!("{given}\0rest");
        world.write_bytes(world.init, BUFFER + 64, bytes.as_bytes());
        assert_eq!(named_from(&mut world, BUFFER + 64), kept);
    }
    let init = world.init;
    for option in [0, 14, 17] {
        assert_eq!(world.call(init, nr::PRCTL, &[option, BUFFER]), failed(Errno::EINVAL));
    }
    for option in [PR_SET_NAME, PR_GET_NAME] {
        assert_eq!(world.call(init, nr::PRCTL, &[option, 8]), failed(Errno::EFAULT));
    }
}

#[test]
fn a_name_may_lie_at_the_end_of_memory_or_of_a_page() {
    let mut world = World::new();
    let init = world.init;
    world.write_bytes(init, MEMORY.end - 4, b"end\0");
    assert_eq!(named_from(&mut world, MEMORY.end - 4), "end");
    world.write_bytes(init, MEMORY.end - 4, b"open");
    assert_eq!(world.call(init, nr::PRCTL, &[PR_SET_NAME, MEMORY.end - 4]), failed(Errno::EFAULT));
    world.write_bytes(init, MEMORY.end - 15, b"a name of 15 by");
    assert_eq!(named_from(&mut world, MEMORY.end - 15), "a name of 15 by");
    let across = MEMORY.start + 2 * PAGE - 4;
    world.write_bytes(init, across, b"across pages\0");
    assert_eq!(named_from(&mut world, across), "across pages");
    let begin = MEMORY.start + 2 * PAGE;
    world.write_bytes(init, begin, b"begins a page\0");
    assert_eq!(named_from(&mut world, begin), "begins a page");
}

#[test]
fn the_bases_of_fs_and_gs_are_set_and_read() {
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    let mut world = World::new();
    let init = world.init;
    world.thread(init).registers.rbx = 5;
    assert_eq!(world.call(init, nr::ARCH_PRCTL, &[SET_FS, 0x1111]), DONE);
    assert_eq!(world.call(init, nr::ARCH_PRCTL, &[SET_GS, 0x2222]), DONE);
    let registers = world.thread(init).registers;
    assert_eq!((registers.fs_base, registers.gs_base, registers.rbx), (0x1111, 0x2222, 5));
    for (option, base) in [(GET_FS, 0x1111), (GET_GS, 0x2222)] {
        assert_eq!(world.call(init, nr::ARCH_PRCTL, &[option, BUFFER]), DONE);
        assert_eq!(world.read(init, BUFFER), base);
        assert_eq!(world.call(init, nr::ARCH_PRCTL, &[option, 8]), failed(Errno::EFAULT));
    }
    let end = abi::layout::USER_END;
    for option in [SET_FS, SET_GS] {
        assert_eq!(world.call(init, nr::ARCH_PRCTL, &[option, end]), failed(Errno::EPERM));
        assert_eq!(world.call(init, nr::ARCH_PRCTL, &[option, end - 1]), DONE);
    }
    for option in [0, 0x1000, 0x1005] {
        assert_eq!(world.call(init, nr::ARCH_PRCTL, &[option, BUFFER]), failed(Errno::EINVAL));
    }
}

#[test]
fn a_thread_has_a_robust_list_that_others_may_look_up() {
    let mut world = World::new();
    let init = world.init;
    let tid = world.call(init, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    for (bytes, answer) in [(23, failed(Errno::EINVAL)), (24, DONE), (25, failed(Errno::EINVAL))] {
        assert_eq!(world.call(second, nr::SET_ROBUST_LIST, &[0x7000, bytes]), answer);
    }
    for (thread, id, list) in
        [(second, 0, [0x7000, 24]), (init, tid, [0x7000, 24]), (init, 1, [0, 0]), (init, 0, [0, 0])]
    {
        assert_eq!(world.call(thread, nr::GET_ROBUST_LIST, &[id, BUFFER, BUFFER + 8]), DONE);
        assert_eq!(world.words(thread, BUFFER), list, "{id}");
    }
    for id in [4000, u64::MAX] {
        assert_eq!(world.call(init, nr::GET_ROBUST_LIST, &[id, BUFFER, BUFFER + 8]), failed(Errno::ESRCH));
    }
    for places in [[8, BUFFER], [BUFFER, 8]] {
        assert_eq!(world.call(init, nr::GET_ROBUST_LIST, &[0, places[0], places[1]]), failed(Errno::EFAULT));
    }
}

#[test]
fn a_thread_that_names_the_word_to_clear_learns_its_id() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    assert_eq!(world.call(child, nr::SET_TID_ADDRESS, &[0]), Some(Ok(pid)));
    assert_eq!(world.call(second, nr::SET_TID_ADDRESS, &[BUFFER]), Some(Ok(tid)));
    world.write(child, BUFFER, &[u64::MAX]);
    world.call(second, nr::EXIT, &[0]);
    assert_eq!(world.read(child, BUFFER), 0xffff_ffff << 32, "four bytes are cleared");
    assert_eq!(world.pm.programs.system.futexes_woken, [(second, BUFFER)]);
}

/// Soft and hard limit.
fn limit(world: &mut World, thread: Endpoint, resource: u64) -> [u64; 2] {
    assert_eq!(world.call(thread, nr::GETRLIMIT, &[resource, BUFFER]), DONE);
    world.words(thread, BUFFER)
}

fn set_limit(world: &mut World, thread: Endpoint, pid: u64, resource: u64, limit: [u64; 2]) -> Answer {
    world.write(thread, BUFFER, &limit);
    world.call(thread, nr::PRLIMIT64, &[pid, resource, BUFFER, BUFFER + 16])
}

#[test]
fn limits_begin_as_documented_and_are_inherited() {
    const NONE: u64 = u64::MAX;
    let mut world = World::new();
    let init = world.init;
    let (_, child) = world.fork(init);
    let wanted = [
        [NONE, NONE],
        [NONE, NONE],
        [NONE, NONE],
        [8 << 20, NONE],
        [0, NONE],
        [NONE, NONE],
        [512, 512],
        [1024, 4096],
        [8 << 20, 8 << 20],
        [NONE, NONE],
        [NONE, NONE],
        [1000, 1000],
        [819_200, 819_200],
        [0, 0],
        [0, 0],
        [NONE, NONE],
    ];
    for (resource, wanted) in wanted.into_iter().enumerate() {
        assert_eq!(limit(&mut world, child, resource as u64), wanted, "resource {resource}");
    }
    for resource in [16, 17, u32::MAX as u64] {
        assert_eq!(world.call(child, nr::GETRLIMIT, &[resource, BUFFER]), failed(Errno::EINVAL));
    }
    assert_eq!(set_limit(&mut world, init, 0, 7, [5, 6]), DONE);
    let (_, child) = world.fork(init);
    assert_eq!(limit(&mut world, child, 7), [5, 6]);
}

#[test]
fn vfs_is_told_the_limits_that_it_enforces() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let (of_descriptors, of_files, of_stacks) = (7, 1, 3);
    world.told();
    let told = |world: &mut World, resource, limit| {
        assert_eq!(set_limit(world, world.init, pid, resource, [limit, limit]), DONE);
        world.told()
    };
    let limits =
        |descriptors, file_bytes| [Told::Limits { thread: child, descriptors, file_bytes, message_bytes: 819_200 }];
    assert_eq!(told(&mut world, of_descriptors, 1 << 20), limits(1 << 20, u64::MAX));
    assert_eq!(told(&mut world, of_files, 100), limits(1 << 20, 100));
    assert_eq!(told(&mut world, of_stacks, u64::MAX).len(), 1, "vm is");
    assert_eq!(told(&mut world, 4, 1 << 20), []);
}

#[test]
fn vm_is_told_the_limits_of_memory_and_of_who_may_lock_it() {
    const NONE: MemoryLimits = MemoryLimits::NONE;
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    world.told();
    let told = |thread, limits| [Told::MemoryLimits { thread, limits }];
    for (resource, limits) in [
        (9, MemoryLimits { addresses: 1 << 30, ..NONE }),
        (2, MemoryLimits { addresses: 1 << 30, data: 1 << 30, ..NONE }),
        (3, MemoryLimits { addresses: 1 << 30, data: 1 << 30, stack: 1 << 30, ..NONE }),
    ] {
        assert_eq!(set_limit(&mut world, init, pid, resource, [1 << 30, 1 << 30]), DONE);
        assert_eq!(world.told(), told(child, limits));
    }
    assert_eq!(set_limit(&mut world, init, pid, 8, [1 << 20, 1 << 20]), DONE);
    assert_eq!(world.told(), [], "the superuser locks what he likes");
    let locked = MemoryLimits { addresses: 1 << 30, data: 1 << 30, locked: 1 << 20, stack: 1 << 30 };
    assert_eq!(world.call(child, nr::SETUID, &[1000]), DONE);
    assert!(world.told().ends_with(&told(child, locked)));
    let (_, grandchild) = world.fork(child);
    world.told();
    assert_eq!(world.call(grandchild, nr::SETUID, &[1000]), DONE);
    let again = world.told().into_iter().find(|told| matches!(told, Told::MemoryLimits { .. }));
    assert_eq!(again, None, "a child's memory has them already");
}

#[test]
fn limits_set_in_the_memory_of_another_are_told_with_the_exec() {
    let mut world = World::new();
    assert_eq!(world.call(world.init, nr::VFORK, &[]), None);
    let child = world.newest();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    world.told();
    assert_eq!(set_limit(&mut world, child, pid, 9, [1 << 30, 1 << 30]), DONE);
    assert_eq!(world.told(), []);
    world.write_bytes(child, BUFFER + 64, b"/x\0");
    assert_eq!(world.call(child, nr::EXECVE, &[BUFFER + 64, 0, 0]), None);
    world.exec_event(child, b"/x", 0);
    let limits = MemoryLimits { addresses: 1 << 30, ..MemoryLimits::NONE };
    assert!(world.told().contains(&Told::MemoryLimits { thread: child, limits }));
}

#[test]
fn a_hard_limit_is_raised_by_root_alone() {
    let mut world = World::new();
    let (_, user) = world.user(1000, 100);
    for (new, answer) in [
        ([1, 4096], DONE),
        ([4096, 4096], DONE),
        ([0, 100], DONE),
        ([101, 100], failed(Errno::EINVAL)),
        ([0, 101], failed(Errno::EPERM)),
        ([100, 100], DONE),
    ] {
        assert_eq!(set_limit(&mut world, user, 0, 7, new), answer, "{new:?}");
    }
    let init = world.init;
    assert_eq!(set_limit(&mut world, init, 0, 7, [0, 1 << 20]), DONE);
    assert_eq!(world.words(init, BUFFER + 16), [1024, 4096], "the old one is written");
    assert_eq!(limit(&mut world, init, 7), [0, 1 << 20]);
}

#[test]
fn limits_of_others_belong_to_their_user_and_root() {
    let mut world = World::new();
    let (pid, target) = world.user(1000, 100);
    let (_, same) = world.user(1000, 100);
    let (_, stranger) = world.user(1001, 100);
    let init = world.init;
    for (caller, answer) in [(same, DONE), (stranger, failed(Errno::EPERM)), (init, DONE), (target, DONE)] {
        assert_eq!(set_limit(&mut world, caller, pid, 7, [3, 4]), answer);
    }
    assert_eq!(limit(&mut world, target, 7), [3, 4]);
    assert_eq!(limit(&mut world, same, 7), [1024, 4096]);
    assert_eq!(set_limit(&mut world, init, 4000, 7, [3, 4]), failed(Errno::ESRCH));
    assert_eq!(set_limit(&mut world, init, u64::MAX, 7, [3, 4]), failed(Errno::ESRCH));
}

#[test]
fn limits_are_read_and_written_where_the_caller_says() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::PRLIMIT64, &[0, 7, 0, 0]), DONE);
    assert_eq!(world.call(init, nr::PRLIMIT64, &[0, 16, 0, 0]), failed(Errno::EINVAL));
    assert_eq!(world.call(init, nr::PRLIMIT64, &[0, 7, 8, 0]), failed(Errno::EFAULT));
    assert_eq!(world.call(init, nr::PRLIMIT64, &[0, 7, 0, 8]), failed(Errno::EFAULT));
    assert_eq!(world.call(init, nr::GETRLIMIT, &[7, 0]), DONE, "as Linux's prlimit64 without an address");
    assert_eq!(world.call(init, nr::SETRLIMIT, &[7, 0]), failed(Errno::EFAULT));
    world.write(init, BUFFER, &[1, 2]);
    assert_eq!(world.call(init, nr::SETRLIMIT, &[7, BUFFER]), DONE);
    assert_eq!(limit(&mut world, init, 7), [1, 2]);
    let (_, child) = world.fork(init);
    assert_eq!(set_limit(&mut world, child, 0, 7, [1, 1]), DONE);
    assert_eq!([limit(&mut world, child, 7), limit(&mut world, init, 7)], [[1, 1], [1, 2]], "each its own");
    assert_eq!(set_limit(&mut world, init, 0, 1 << 32 | 7, [2, 3]), DONE, "a resource is an int");
    assert_eq!(limit(&mut world, init, 7), [2, 3]);
}

#[test]
fn random_bytes_fill_what_was_asked_for_and_no_more() {
    let mut world = World::new();
    let init = world.init;
    for (bytes, given) in
        [(0, 0), (1, 1), (255, 255), (256, 256), (257, 257), (700, 700), (65536, 65536), (65537, 65536)]
    {
        world.write(init, BUFFER, &std::vec![0; 8200]);
        assert_eq!(world.call(init, nr::GETRANDOM, &[BUFFER, bytes, 0]), Some(Ok(given)));
        let drawn = world.read_bytes(init, BUFFER, 65600);
        let (random, rest) = drawn.split_at(given as usize);
        assert!(rest.iter().all(|byte| *byte == 0), "{bytes}");
        assert!(random.chunks(64).all(|chunk| chunk.len() < 8 || chunk.iter().any(|byte| *byte != 0)), "{bytes}");
    }
    let mut draw = || {
        world.call(init, nr::GETRANDOM, &[BUFFER, 16, 0]);
        world.read_bytes(init, BUFFER, 16)
    };
    assert_ne!(draw(), draw());
    for (flags, answer) in [(1, Some(Ok(8))), (5, Some(Ok(8))), (6, failed(Errno::EINVAL)), (8, failed(Errno::EINVAL))]
    {
        assert_eq!(world.call(init, nr::GETRANDOM, &[BUFFER, 8, flags]), answer);
    }
    assert_eq!(world.call(init, nr::GETRANDOM, &[MEMORY.end - 300, 301, 0]), failed(Errno::EFAULT));
}

/// The six fields of `struct utsname`.
fn machine(world: &mut World) -> Vec<String> {
    assert_eq!(world.call(world.init, nr::UNAME, &[BUFFER]), DONE);
    world.read_bytes(world.init, BUFFER, 6 * 65).chunks(65).map(text).collect()
}

#[test]
fn root_names_the_machine() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(machine(&mut world), ["Linux", "skink", "6.1.0-skink", "#1 Skink", "x86_64", "(none)"]);
    let longest = "h".repeat(64);
    world.write_bytes(init, BUFFER, longest.as_bytes());
    assert_eq!(world.call(init, nr::SETHOSTNAME, &[BUFFER, 65]), failed(Errno::EINVAL));
    assert_eq!(world.call(init, nr::SETHOSTNAME, &[BUFFER, 64]), DONE);
    assert_eq!(world.call(init, nr::SETDOMAINNAME, &[BUFFER, 3]), DONE);
    assert_eq!(machine(&mut world), ["Linux", &longest, "6.1.0-skink", "#1 Skink", "x86_64", "hhh"]);
    for number in [nr::SETHOSTNAME, nr::SETDOMAINNAME] {
        assert_eq!(world.call(init, number, &[8, 1]), failed(Errno::EFAULT));
    }
    assert_eq!(world.call(init, nr::UNAME, &[8]), failed(Errno::EFAULT));
    let (_, user) = world.user(1000, 100);
    assert_eq!(world.call(user, nr::SETHOSTNAME, &[BUFFER, 1]), failed(Errno::EPERM));
}

#[test]
fn sysinfo_tells_uptime_memory_and_the_number_of_threads() {
    let mut world = World::new();
    let init = world.init;
    world.set_time(77 * SECOND + 999);
    let (_, zombie) = world.fork(init);
    world.call(zombie, nr::EXIT_GROUP, &[0]);
    let (_, child) = world.fork(init);
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    world.write(init, BUFFER, &[u64::MAX; 15]);
    assert_eq!(world.call(init, nr::SYSINFO, &[BUFFER]), DONE);
    let mut wanted = [0; 15];
    (wanted[0], wanted[4], wanted[5], wanted[10], wanted[13]) = (77, 1 << 28, 1 << 27, 4, 1);
    wanted[14] = u64::MAX;
    assert_eq!(world.words(init, BUFFER), wanted);
    assert_eq!(world.call(init, nr::SYSINFO, &[8]), failed(Errno::EFAULT));
}

#[test]
fn the_log_is_read_by_all_and_cleared_by_root() {
    let mut world = World::new();
    let init = world.init;
    let (_, user) = world.user(1000, 100);
    let length = LOG.len() as u64;
    let actions: [(u64, u64, bool); 11] = [
        (0, 0, false),
        (1, 0, false),
        (3, length, true),
        (4, length, false),
        (5, 0, false),
        (6, 0, false),
        (7, 0, false),
        (8, 0, false),
        (9, 0, false),
        (10, 16384, true),
        (10, 16384, true),
    ];
    for (action, answer, for_all) in actions {
        assert_eq!(world.call(init, nr::SYSLOG, &[action, BUFFER, 1000]), Some(Ok(answer)), "action {action}");
        let answer = if for_all { Some(Ok(answer)) } else { failed(Errno::EPERM) };
        assert_eq!(world.call(user, nr::SYSLOG, &[action, BUFFER, 1000]), answer, "action {action}");
    }
    for action in [2, 11] {
        assert_eq!(world.call(init, nr::SYSLOG, &[action, BUFFER, 1000]), failed(Errno::EINVAL));
    }
}

#[test]
fn the_newest_part_of_the_log_is_read() {
    let mut world = World::new();
    let init = world.init;
    for (room, part) in [(1000, LOG), (LOG.len(), LOG), (5, &LOG[LOG.len() - 5..]), (0, &[])] {
        world.write(init, BUFFER, &[0; 8]);
        assert_eq!(world.call(init, nr::SYSLOG, &[3, BUFFER, room as u64]), Some(Ok(part.len() as u64)));
        assert_eq!(world.read_bytes(init, BUFFER, part.len()), part);
        assert_eq!(world.read_bytes(init, BUFFER + part.len() as u64, 1), [0]);
    }
    assert_eq!(world.call(init, nr::SYSLOG, &[3, BUFFER, i32::MAX as u64]), Some(Ok(LOG.len() as u64)));
    assert_eq!(world.call(init, nr::SYSLOG, &[3, BUFFER, 1 << 31]), failed(Errno::EINVAL));
    assert_eq!(world.call(init, nr::SYSLOG, &[3, 8, 1000]), failed(Errno::EFAULT));
}

const MAGIC: u64 = 0xfee1_dead;

#[test]
fn the_machine_ends_as_root_wants_when_files_are_written_back() {
    for (magic, command, end) in [
        (672_274_793, 0x0123_4567, End::Reboot),
        (85_072_278, 0xa1b2_c3d4, End::Reboot),
        (369_367_448, 0xcdef_0123, End::Halt),
        (537_993_216, 0x4321_fedc, End::PowerOff),
    ] {
        let mut world = World::new();
        world.told();
        assert_eq!(world.call(world.init, nr::REBOOT, &[MAGIC, magic, command]), None);
        assert_eq!(world.told(), [Told::Synced { unmount: true }]);
        assert_eq!(world.pm.programs.system.ended, None);
        world.file_event(abi::vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4]);
        assert_eq!(world.pm.programs.system.ended.take(), Some(end));
        world.file_event(abi::vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4]);
        assert_eq!(world.pm.programs.system.ended, None, "it ends once");
    }
}

#[test]
fn the_machine_ends_at_once_when_files_cannot_be_written_back() {
    let mut world = World::new();
    world.pm.programs.system.failing = Some((super::fake::Request::SyncAll, Errno::EIO));
    assert_eq!(world.call(world.init, nr::REBOOT, &[MAGIC, 672_274_793, 0x4321_fedc]), None);
    assert_eq!(world.pm.programs.system.ended, Some(End::PowerOff));
    assert!(world.pm.programs.system.printed.contains("pm: files may not be written back: EIO"));
}

#[test]
fn unknown_commands_of_reboot_end_nothing() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::REBOOT, &[MAGIC, 672_274_793, 1]), failed(Errno::EINVAL));
    world.file_event(abi::vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4]);
    assert_eq!(world.pm.programs.system.ended, None);
}
