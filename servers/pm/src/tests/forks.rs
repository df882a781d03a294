//! `fork`, `vfork`, `clone` and `clone3`: what the child gets, what others are told, and what remains of one that fails.

use super::fake::Request;
use super::{Answer, DONE, MEMORY, SECOND, Told, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const WORD: u64 = MEMORY.start + 0x800;
const VM: u64 = 0x100;
const FS: u64 = 0x200;
const FILES: u64 = 0x400;
const SIGHAND: u64 = 0x800;
const VFORK: u64 = 0x4000;
const PARENT: u64 = 0x8000;
const THREAD: u64 = 0x1_0000;
const SETTLS: u64 = 0x8_0000;
const PARENT_SETTID: u64 = 0x10_0000;
const CHILD_CLEARTID: u64 = 0x20_0000;
const CHILD_SETTID: u64 = 0x100_0000;
const CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CHLD: u64 = 17;

fn clone(world: &mut World, thread: Endpoint, flags: u64) -> (u64, Endpoint) {
    let id = world.call(thread, nr::CLONE, &[flags, 0, WORD, WORD + 8, 0x7777]).unwrap().unwrap();
    (id, world.newest())
}

/// `clone3` with these words of its structure.
fn clone3(world: &mut World, thread: Endpoint, words: [u64; 8]) -> Answer {
    world.write(thread, BUFFER, &words);
    world.call(thread, nr::CLONE3, &[BUFFER, 64])
}

#[test]
fn vm_and_vfs_are_told_what_a_child_shares() {
    for (flags, share, files) in [
        (CHLD, false, 0),
        (VM | CHLD, true, 0),
        (FILES | CHLD, false, 1),
        (FS | CHLD, false, 2),
        (VM | FS | FILES | CHLD, true, 3),
    ] {
        let mut world = World::new();
        let init = world.init;
        world.told();
        let (pid, child) = clone(&mut world, init, flags);
        let wanted = [
            Told::Memory { parent: init, child, share },
            Told::Files { parent: init, child, pid: pid as u32, flags: files },
            Told::Started { thread: child, tid: pid as u32 },
        ];
        assert_eq!(world.told(), wanted, "{flags:#x}");
    }
    let mut world = World::new();
    let init = world.init;
    world.told();
    let (tid, thread) = clone(&mut world, init, VM | SIGHAND | THREAD);
    let wanted = [
        Told::Memory { parent: init, child: thread, share: true },
        Told::Files { parent: init, child: thread, pid: 1, flags: 0 },
        Told::Started { thread, tid: tid as u32 },
    ];
    assert_eq!(world.told(), wanted);
}

#[test]
fn ids_are_written_where_flags_say() {
    for (flags, in_parent, in_child) in [
        (0, [0, 0], [0, 0]),
        (PARENT_SETTID, [1, 0], [0, 0]),
        (CHILD_SETTID, [0, 0], [0, 1]),
        (PARENT_SETTID | CHILD_SETTID, [1, 0], [0, 1]),
    ] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        world.write(parent, WORD, &[5 << 32, 5 << 32]);
        let (pid, child) = clone(&mut world, parent, flags | CHLD);
        let words = |written: [u64; 2]| written.map(|written| (5 << 32) | (written * pid));
        assert_eq!(world.words(parent, WORD), words(in_parent), "{flags:#x}, parent");
        assert_eq!(world.words(child, WORD), words(in_child), "{flags:#x}, child");
    }
}

#[test]
fn a_thread_clears_a_word_at_its_end_only_if_wanted() {
    for (flags, cleared) in [(CHILD_CLEARTID, true), (0, false)] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        world.write(parent, WORD, &[7, 7]);
        let (_, thread) = clone(&mut world, parent, VM | SIGHAND | THREAD | flags);
        world.call(thread, nr::EXIT, &[0]);
        assert_eq!(world.words(parent, WORD), [7, if cleared { 0 } else { 7 }]);
        assert_eq!(world.pm.programs.system.futexes_woken.len(), cleared as usize);
    }
}

#[test]
fn a_child_runs_on_where_its_parent_is_unless_told_otherwise() {
    for (flags, stack, wanted) in [
        (0, 0, (0x6000, 0x1111)),
        (SETTLS, 0, (0x6000, 0x7777)),
        (0, MEMORY.end, (MEMORY.end, 0x1111)),
        (SETTLS, 64, (64, 0x7777)),
    ] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        let registers = &mut world.thread(parent).registers;
        (registers.rsp, registers.fs_base, registers.rbx, registers.rax) = (0x6000, 0x1111, 3, 9);
        world.call(parent, nr::CLONE, &[flags | CHLD, stack, 0, 0, 0x7777]).unwrap().unwrap();
        let child = world.newest();
        let registers = world.thread(child).registers;
        assert_eq!((registers.rsp, registers.fs_base), wanted);
        assert_eq!((registers.rbx, registers.rax), (3, 0));
        assert_eq!(world.thread(parent).registers.rsp, 0x6000);
    }
}

#[test]
fn clone3_has_all_arguments_in_a_structure() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let flags = PARENT_SETTID | CHILD_SETTID | SETTLS;
    let pid = clone3(&mut world, parent, [flags, 0, WORD + 8, WORD, 10, 0x5000, 0x1000, 0x7777]).unwrap().unwrap();
    let child = world.newest();
    assert_eq!(world.read(parent, WORD), pid);
    assert_eq!(world.read(child, WORD + 8), pid);
    let registers = world.thread(child).registers;
    assert_eq!((registers.rsp, registers.fs_base), (0x6000, 0x7777));
    world.handle_signal(parent, 10, 0);
    world.call(child, nr::EXIT_GROUP, &[0]);
    world.report_interrupted(parent, None);
    assert_eq!(world.thread(parent).registers.rdi, 10, "the signal of its choice");
    for (bytes, error) in [(63, Errno::EINVAL), (4097, Errno::E2BIG), (0, Errno::EINVAL)] {
        assert_eq!(world.call(parent, nr::CLONE3, &[BUFFER, bytes]), failed(error));
    }
    assert_eq!(world.call(parent, nr::CLONE3, &[8, 64]), failed(Errno::EFAULT));
    for words in [
        [CHLD, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, CHLD, 0x5000, 0, 0],
        [0, 0, 0, 0, CHLD, 0, 0x1000, 0],
        [0, 0, 0, 0, 65, 0, 0, 0],
        [CLEAR_SIGHAND | SIGHAND | VM, 0, 0, 0, CHLD, 0, 0, 0],
        [0x2_0000_0000, 0, 0, 0, CHLD, 0, 0, 0],
        [0x80, 0, 0, 0, CHLD, 0, 0, 0],
        [0x1000 | THREAD | SIGHAND | VM, 0, 0, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(clone3(&mut world, parent, words), failed(Errno::EINVAL), "{words:?}");
    }
    world.write(parent, BUFFER, &[0; 512]);
    world.write(parent, BUFFER, &[0, 0, 0, 0, 64, 0, 0, 0]);
    assert!(world.call(parent, nr::CLONE3, &[BUFFER, 4096]).unwrap().is_ok());
}

#[test]
fn handlers_are_inherited_or_cleared_but_ignored_signals_stay_ignored() {
    for (flags, handler) in [(0, 0xaaaa), (CLEAR_SIGHAND, 0)] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        world.handle_signal(parent, 10, 0);
        world.write(parent, BUFFER, &[1, 0, 0, 0]);
        world.call(parent, nr::RT_SIGACTION, &[12, BUFFER, 0, 8]);
        clone3(&mut world, parent, [flags, 0, 0, 0, CHLD, 0, 0, 0]).unwrap().unwrap();
        let child = world.newest();
        for (signal, wanted) in [(10, handler), (12, 1)] {
            assert_eq!(world.call(child, nr::RT_SIGACTION, &[signal, 0, WORD, 8]), DONE);
            assert_eq!(world.read(child, WORD), wanted);
        }
        assert_eq!(world.call(parent, nr::RT_SIGACTION, &[10, 0, WORD, 8]), DONE);
        assert_eq!(world.read(parent, WORD), 0xaaaa);
    }
}

#[test]
fn a_child_of_the_grandparent_is_a_sibling() {
    let mut world = World::new();
    let (parent_pid, parent) = world.fork(world.init);
    let (_, sibling) = clone(&mut world, parent, PARENT | CHLD);
    assert_eq!(world.call(sibling, nr::GETPPID, &[]), Some(Ok(1)));
    let (_, child) = clone(&mut world, parent, CHLD);
    assert_eq!(world.call(child, nr::GETPPID, &[]), Some(Ok(parent_pid)));
    let init = world.init;
    let (_, of_init) = clone(&mut world, init, PARENT | CHLD);
    assert_eq!(world.call(of_init, nr::GETPPID, &[]), Some(Ok(1)), "the first process has no parent");
}

#[test]
fn a_child_inherits_the_mask_but_no_pending_signals() {
    for flags in [CHLD, VM | SIGHAND | THREAD] {
        let mut world = World::new();
        let (pid, parent) = world.fork(world.init);
        world.write(parent, BUFFER, &[1 << 9 | 1 << 11]);
        world.call(parent, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
        world.call(world.init, nr::TKILL, &[pid, 10]);
        let (_, child) = clone(&mut world, parent, flags);
        world.call(child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]);
        assert_eq!(world.read(child, BUFFER), 1 << 9 | 1 << 11);
        world.call(child, nr::RT_SIGPENDING, &[BUFFER, 8]);
        assert_eq!(world.read(child, BUFFER), 0);
    }
}

#[test]
fn groups_and_sessions_are_inherited() {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    let session = world.call(shell, nr::SETSID, &[]).unwrap();
    let (_, child) = world.fork(shell);
    for call in [nr::GETPGID, nr::GETSID] {
        assert_eq!(world.call(child, call, &[0]), Some(session));
    }
}

#[test]
fn nothing_remains_of_a_child_that_could_not_be_equipped() {
    for flags in [CHLD, VM | SIGHAND | THREAD] {
        for (failing, parent_tid) in [(Some(Request::MemoryFork), WORD), (Some(Request::FilesFork), WORD), (None, 8)] {
            let mut world = World::new();
            let (pid, parent) = world.fork(world.init);
            world.told();
            world.pm.programs.system.failing = failing.map(|request| (request, Errno::ENOMEM));
            let error = if failing.is_some() { Errno::ENOMEM } else { Errno::EFAULT };
            let arguments = [flags | PARENT_SETTID, 0, parent_tid, 0, 0];
            assert_eq!(world.call(parent, nr::CLONE, &arguments), failed(error));
            let child = world.newest();
            let told = world.told();
            assert!(told.contains(&Told::Destroyed(child)), "{told:?}");
            assert!(told.contains(&Told::MemoryEnded(child)) && told.contains(&Told::FilesEnded(child)));
            assert!(!told.iter().any(|told| matches!(told, Told::Started { .. })));
            world.pm.programs.system.failing = None;
            assert_eq!(world.call(parent, nr::WAIT4, &[u64::MAX, 0, 0, 0]), failed(Errno::ECHILD));
            assert!(clone(&mut world, parent, flags).0 > pid);
            assert_eq!(world.pm.programs.table.processes().count(), if flags == CHLD { 3 } else { 2 });
        }
    }
}

#[test]
fn a_bad_address_in_the_child_is_ignored() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let arguments = [CHILD_SETTID | CHLD, 0, 0, 8, 0];
    assert!(world.call(parent, nr::CLONE, &arguments).unwrap().is_ok());
}

#[test]
fn the_limit_of_a_user_counts_threads_and_zombies() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    world.write(parent, BUFFER, &[4, 4]);
    world.call(parent, nr::SETRLIMIT, &[6, BUFFER]);
    world.call(parent, nr::SETUID, &[1000]);
    world.user(1001, 100);
    clone(&mut world, parent, VM | SIGHAND | THREAD);
    let (pid, zombie) = world.fork(parent);
    world.call(zombie, nr::EXIT_GROUP, &[0]);
    let (last_pid, last) = world.fork(parent);
    assert_eq!(world.call(parent, nr::FORK, &[]), failed(Errno::EAGAIN));
    assert_eq!(world.call(parent, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    assert!(last_pid > pid && world.is_there(last));
    world.fork(parent);
    assert_eq!(world.call(parent, nr::FORK, &[]), failed(Errno::EAGAIN));
}

#[test]
fn the_last_slots_are_left_to_root() {
    let mut world = World::new();
    let (_, parent) = world.user(1000, 100);
    world.write(world.init, BUFFER, &[5000, 5000]);
    let pid = world.call(parent, nr::GETPID, &[]).unwrap().unwrap();
    assert_eq!(world.call(world.init, nr::PRLIMIT64, &[pid, 6, BUFFER, 0]), DONE);
    let shared = [VM | CHLD, 0, 0, 0, 0];
    let made = (0..2000).take_while(|_| world.call(parent, nr::CLONE, &shared).unwrap().is_ok()).count();
    assert_eq!(made, 1024 - 16 - 2, "with the first process and itself");
    let by_root = (0..100).take_while(|_| world.call(world.init, nr::CLONE, &shared).unwrap().is_ok()).count();
    assert_eq!(by_root, 16);
}

#[test]
fn the_parent_of_a_vfork_goes_on_when_the_child_ends_however_it_ends() {
    for way in [nr::EXIT_GROUP, nr::EXIT, nr::KILL] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        assert_eq!(world.call(parent, nr::CLONE, &[VM | VFORK | CHLD, 0, 0, 0, 0]), None);
        let child = world.newest();
        let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
        world.call(child, nr::CLONE, &[VM | SIGHAND | THREAD, 0, 0, 0, 0]).unwrap().unwrap();
        let second = world.newest();
        world.call(second, nr::EXIT, &[0]);
        assert_eq!(world.answer(parent), None, "a thread is not the whole child");
        match way {
            nr::KILL => world.call(world.init, nr::KILL, &[pid, 9]),
            call => world.call(child, call, &[0]),
        };
        assert_eq!(world.answer(parent), Some(Ok(pid)));
    }
}

#[test]
fn processor_time_starts_at_zero_in_a_child() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (_, grandchild) = world.fork(parent);
    world.thread(grandchild).run_ns = SECOND;
    world.call(grandchild, nr::EXIT_GROUP, &[0]);
    world.call(parent, nr::WAIT4, &[u64::MAX, 0, 0, 0]).unwrap().unwrap();
    let (_, child) = world.fork(parent);
    for thread in [child, parent] {
        assert_eq!(world.call(thread, nr::GETRUSAGE, &[u64::MAX, BUFFER]), DONE);
        assert_eq!(world.read(thread, BUFFER), (thread == parent) as u64);
    }
}

#[test]
fn an_entry_that_is_used_again_has_nothing_of_its_predecessor() {
    let mut world = World::new();
    let (pid, first) = world.fork(world.init);
    world.call(first, nr::SETSID, &[]).unwrap().unwrap();
    world.write_bytes(first, BUFFER, b"/x\0");
    world.call(first, nr::EXECVE, &[BUFFER, 0, 0]);
    world.exec_event(first, b"/x", 0);
    world.fork(first);
    world.write(first, BUFFER, &[1 << 9, 0, 1, 0]);
    world.call(first, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
    world.call(first, nr::SETITIMER, &[1, BUFFER, 0]);
    world.call(world.init, nr::KILL, &[pid, 10]);
    world.thread(first).run_ns = SECOND;
    world.call(first, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(world.init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    let (pid, second) = world.fork(world.init);
    assert_eq!(world.call(second, nr::WAIT4, &[u64::MAX, 0, 0, 0]), failed(Errno::ECHILD));
    for who in [0, u64::MAX] {
        world.call(second, nr::GETRUSAGE, &[who, BUFFER]);
        assert_eq!(world.words(second, BUFFER), [0, 0]);
    }
    world.call(second, nr::GETITIMER, &[1, BUFFER]);
    assert_eq!(world.words(second, BUFFER), [0; 4]);
    world.write(second, BUFFER, &[u64::MAX]);
    world.call(second, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
    world.call(second, nr::RT_SIGPENDING, &[BUFFER, 8]);
    assert_eq!(world.read(second, BUFFER), 0);
    assert_eq!(world.call(world.init, nr::SETPGID, &[pid, pid]), DONE, "it has not called execve yet");
}
