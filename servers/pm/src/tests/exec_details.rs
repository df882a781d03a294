//! What `execve` reads of its caller, what it hands to vm and vfs, and what the new program finds.

use super::fake::{ENTRY, HEADERS, INTERPRETER, Request, START};
use super::{Answer, DONE, MEMORY, Told, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno, vfs};
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

const BUFFER: u64 = MEMORY.start + 0x100;
const LIST: u64 = MEMORY.start + 0x1000;
const TEXT: u64 = MEMORY.start + 0x2000;
const PAGE: u64 = 4096;
const STRING_BYTES: u64 = 128 * 1024;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const IMAGE: u64 = 5;

fn child() -> (World, Endpoint) {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write_bytes(child, BUFFER, b"/bin/x\0");
    (world, child)
}

fn execve(world: &mut World, thread: Endpoint, argv: u64, envp: u64) -> Answer {
    world.call(thread, nr::EXECVE, &[BUFFER, argv, envp])
}

/// Execs with these lists, which lie in memory already. Returns what came back, with the image loaded meanwhile.
fn exec(world: &mut World, thread: Endpoint, argv: u64, envp: u64) -> Answer {
    if let Some(answer) = execve(world, thread, argv, envp) {
        return Some(answer);
    }
    world.exec_event(thread, b"/bin/x", 0);
    if world.is_there(thread) { world.answer(thread) } else { None }
}

fn string(world: &mut World, thread: Endpoint, address: u64) -> String {
    let bytes = (address..MEMORY.end).map(|at| world.read_bytes(thread, at, 1)[0]);
    String::from_utf8(bytes.take_while(|byte| *byte != 0).collect()).unwrap()
}

/// Arguments, environment, and auxiliary vector of a program that has just begun.
fn start(world: &mut World, thread: Endpoint) -> (Vec<String>, Vec<String>, BTreeMap<u64, u64>) {
    let registers = world.thread(thread).registers;
    assert_eq!((registers.rip, registers.rsp % 16), (START, 0));
    let mut at = registers.rsp;
    let mut next = |world: &mut World| {
        at += 8;
        world.read(thread, at - 8)
    };
    let count = next(world);
    let mut lists = [Vec::new(), Vec::new()];
    for list in &mut lists {
        loop {
            match next(world) {
                0 => break,
                pointer => list.push(string(world, thread, pointer)),
            }
        }
    }
    let mut vector = BTreeMap::new();
    loop {
        match (next(world), next(world)) {
            (0, _) => break,
            (kind, value) => assert_eq!(vector.insert(kind, value), None),
        }
    }
    assert!(vector[&25] - at < 16, "nothing but padding lies between the vector and the random bytes");
    let [arguments, environment] = lists;
    assert_eq!(count as usize, arguments.len());
    (arguments, environment, vector)
}

#[test]
fn lists_that_are_null_are_empty_but_for_one_empty_argument() {
    let (mut world, child) = child();
    world.write_bytes(child, TEXT, b"one\0");
    world.write(child, LIST, &[TEXT, 0]);
    assert_eq!(exec(&mut world, child, 0, LIST), None);
    let (arguments, environment, _) = start(&mut world, child);
    assert_eq!((arguments, environment), (Vec::from([String::new()]), Vec::from(["one".into()])));
}

#[test]
fn the_auxiliary_vector_tells_what_vm_and_pm_know() {
    let (mut world, child) = child();
    world.call(child, nr::SETRESGID, &[40, 50, 60]);
    world.call(child, nr::SETRESUID, &[10, 20, 30]);
    assert_eq!(exec(&mut world, child, 0, 0), None);
    let (_, _, vector) = start(&mut world, child);
    let features = 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 15 | 15 << 23;
    let fixed = [
        (3, HEADERS.0),
        (4, 56),
        (5, HEADERS.1),
        (6, PAGE),
        (7, INTERPRETER),
        (8, 0),
        (9, ENTRY),
        (11, 10),
        (12, 20),
        (13, 40),
        (14, 50),
        (16, features),
        (17, 100),
        (23, 1),
        (33, MEMORY.end + abi::layout::VDSO_OFFSET),
        (51, 2048),
    ];
    for (kind, value) in fixed {
        assert_eq!(vector.get(&kind), Some(&value), "entry {kind}");
    }
    assert_eq!(string(&mut world, child, vector[&15]), "x86_64");
    assert_eq!(string(&mut world, child, vector[&31]), "/bin/x");
    assert_eq!(vector[&25] % 16, 0);
    assert_ne!(world.words(child, vector[&25]), [0, 0], "random");
    assert_eq!(vector.len(), fixed.len() + 3);
    assert_eq!(world.read(child, MEMORY.end - 8), 0);
    assert_eq!(vector[&31] + "/bin/x".len() as u64 + 1, MEMORY.end - 8, "the path stands last");
}

#[test]
fn the_stack_is_aligned_whatever_the_length_of_its_strings() {
    for length in 0..17 {
        let (mut world, child) = child();
        repeat(&mut world, child, length + 1, 1);
        assert_eq!(exec(&mut world, child, LIST, 0), None);
        let (_, _, vector) = start(&mut world, child);
        assert_eq!(vector[&25] % 16, 0, "{length}");
        assert!(vector[&15] - vector[&25] < 32, "{length}");
    }
}

#[test]
fn a_program_is_secure_where_its_ids_differ() {
    for (user, group, secure) in [([1, 1, 1], [2, 2, 2], 0), ([1, 2, 2], [2, 2, 2], 1), ([1, 1, 1], [2, 3, 3], 1)] {
        let (mut world, child) = child();
        world.call(child, nr::SETRESGID, &group);
        world.call(child, nr::SETRESUID, &user);
        assert_eq!(exec(&mut world, child, 0, 0), None);
        assert_eq!(start(&mut world, child).2[&23], secure, "{user:?} {group:?}");
    }
}

#[test]
fn set_id_bits_give_the_ids_of_the_owner() {
    const BOTH: u64 = vfs::EXEC_SETUID | vfs::EXEC_SETGID;
    for (flags, user, group, told) in [
        (0, [10, 20, 20], [40, 50, 50], false),
        (vfs::EXEC_SETUID, [10, 7, 7], [40, 50, 50], true),
        (vfs::EXEC_SETGID, [10, 20, 20], [40, 8, 8], true),
        (BOTH, [10, 7, 7], [40, 8, 8], true),
    ] {
        let (mut world, child) = child();
        world.call(child, nr::SETRESGID, &[40, 50, 60]);
        world.call(child, nr::SETRESUID, &[10, 20, 30]);
        assert_eq!(execve(&mut world, child, 0, 0), None);
        world.told();
        world.file_event(vfs::EVENT_EXEC, child, [IMAGE, 0, flags, 7 | 8 << 32]);
        let ids = |world: &World| world.pm.programs.system.told.iter().any(|told| matches!(told, Told::Ids { .. }));
        assert_eq!(ids(&world), told, "{flags}");
        for (call, ids) in [(nr::GETRESUID, user), (nr::GETRESGID, group)] {
            assert_eq!(world.call(child, call, &[BUFFER, BUFFER + 8, BUFFER + 16]), DONE);
            assert_eq!(world.words(child, BUFFER), ids, "{flags}");
        }
    }
}

#[test]
fn vm_gets_image_interpreter_and_the_limit_of_the_stack() {
    for (limit, stack_bytes) in [
        (8 << 20, 8 << 20),
        (1000, 128 * 1024),
        (128 * 1024 + 1, 128 * 1024 + 1),
        (1 << 29, 1 << 29),
        (u64::MAX, 1 << 30),
    ] {
        let (mut world, child) = child();
        world.write(child, LIST, &[limit, u64::MAX]);
        assert_eq!(world.call(child, nr::SETRLIMIT, &[3, LIST]), DONE);
        assert_eq!(execve(&mut world, child, 0, 0), None);
        world.told();
        world.file_event(vfs::EVENT_EXEC, child, [77, 88, 0, 0]);
        let told = world.told();
        let new = Told::NewMemory { process: child, image: 77, interpreter: 88, stack_bytes };
        let at = |wanted: &Told| told.iter().position(|told| told == wanted);
        assert!(at(&new).is_some() && at(&new) < at(&Told::Committed(child)), "{told:?}");
    }
}

#[test]
fn an_error_of_vfs_or_vm_leaves_the_program() {
    for request in [Request::Exec, Request::ExecText] {
        let (mut world, child) = child();
        world.handle_signal(child, 10, 0);
        assert_eq!(execve(&mut world, child, 0, 0), None);
        world.told();
        world.pm.programs.system.failing = Some((request, Errno::EIO));
        world.exec_event(child, b"/bin/x", 0);
        assert_eq!(world.answer(child), failed(Errno::EIO));
        assert_eq!(world.told(), []);
        world.call(child, nr::RT_SIGACTION, &[10, 0, LIST, 8]);
        assert_eq!(world.read(child, LIST), 0xaaaa);
    }
}

#[test]
fn what_vfs_cannot_even_begin_fails_at_once() {
    let (mut world, child) = child();
    world.pm.programs.system.failing = Some((Request::BeginExec, Errno::EMFILE));
    assert_eq!(execve(&mut world, child, 0, 0), failed(Errno::EMFILE));
    let mut pm = crate::pm::Pm::new(Default::default(), crate::state::random::Random::new([1; 32]));
    pm.programs.system = super::fake::Fake { failing: Some((Request::BeginExec, Errno::EMFILE)), ..Default::default() };
    let boot = abi::Message { source: Endpoint::RS, ..abi::pm::Boot {}.message() };
    assert_eq!(pm.handle(&boot).done().unwrap().result(), Ok(0));
    let printed = "pm: cannot start /sbin/init: EMFILE\npm: cannot start /bin/sh: EMFILE\npm: there is no first program; put one at /sbin/init\n";
    assert_eq!(pm.programs.system.printed, printed);
}

#[test]
fn paths_have_1_to_4095_bytes() {
    let (mut world, child) = child();
    for (length, answer) in [(0, failed(Errno::ENOENT)), (4096, failed(Errno::ENAMETOOLONG)), (4095, None)] {
        world.write_bytes(child, TEXT, &[b"/".repeat(length), b"\0".to_vec()].concat());
        assert_eq!(world.call(child, nr::EXECVE, &[TEXT, 0, 0]), answer, "{length}");
    }
    assert_eq!(world.pm.programs.system.exec_paths.last().unwrap().len(), 4095);
}

/// A list of `count` pointers to a string of `length` bytes with its NUL.
fn repeat(world: &mut World, thread: Endpoint, length: u64, count: usize) {
    let mut text = b"x".repeat(length as usize);
    *text.last_mut().unwrap() = 0;
    world.write_bytes(thread, TEXT, &text);
    let mut list = std::vec![TEXT; count + 1];
    list[count] = 0;
    world.write(thread, LIST, &list);
}

#[test]
fn a_string_has_up_to_128_kibibytes() {
    for (length, answer) in [(STRING_BYTES, None), (STRING_BYTES + 1, failed(Errno::E2BIG))] {
        for environment in [false, true] {
            let (mut world, child) = child();
            repeat(&mut world, child, length, 1);
            let lists = if environment { [0, LIST] } else { [LIST, 0] };
            assert_eq!(execve(&mut world, child, lists[0], lists[1]), answer);
            if answer.is_none() {
                world.exec_event(child, b"/bin/x", 0);
                let (arguments, variables, _) = start(&mut world, child);
                let lengths = (arguments.iter().map(String::len).sum(), variables.iter().map(String::len).sum());
                let whole = STRING_BYTES as usize - 1;
                assert_eq!(lengths, if environment { (0, whole) } else { (whole, 0) });
            }
        }
    }
}

#[test]
fn all_strings_with_their_pointers_have_two_mebibytes() {
    // Fifteen strings of the greatest length, and one that fills up: each takes a pointer, too.
    const LAST: u64 = (2 << 20) - 15 * STRING_BYTES - 16 * 8;
    for (last, in_environment, answer) in [
        (LAST, false, None),
        (LAST + 1, false, failed(Errno::E2BIG)),
        (LAST, true, None),
        (LAST + 1, true, failed(Errno::E2BIG)),
    ] {
        let (mut world, child) = child();
        repeat(&mut world, child, STRING_BYTES, 16);
        world.write(child, LIST + 15 * 8, &[TEXT + STRING_BYTES - last, 0]);
        let envp = if in_environment { LIST + 14 * 8 } else { 0 };
        if in_environment {
            world.write(child, LIST + 14 * 8, &[0, TEXT, TEXT + STRING_BYTES - last, 0]);
            world.write(child, LIST + 18 * 8, &[0]);
        }
        let envp = if envp == 0 { 0 } else { envp + 8 };
        assert_eq!(execve(&mut world, child, LIST, envp), answer, "{last} {in_environment}");
    }
}

#[test]
fn a_quarter_of_the_stack_is_for_strings_and_pointers() {
    const LIMIT: u64 = 800 * 1024;
    const WHOLE: u64 = LIMIT / 4;
    for (first, answer) in
        [(WHOLE - STRING_BYTES - 2 * 8, None), (WHOLE - STRING_BYTES - 2 * 8 + 1, failed(Errno::E2BIG))]
    {
        for split in [false, true] {
            let (mut world, child) = child();
            world.write(child, LIST, &[LIMIT, LIMIT]);
            assert_eq!(world.call(child, nr::SETRLIMIT, &[3, LIST]), DONE);
            repeat(&mut world, child, STRING_BYTES, 2);
            world.write(child, LIST, &[TEXT + STRING_BYTES - first]);
            let envp = if split { LIST + 24 } else { 0 };
            if split {
                world.write(child, LIST + 8, &[0, 0, TEXT, 0]);
            }
            let outcome = exec(&mut world, child, LIST, envp);
            assert_eq!(outcome, answer, "{first} {split}");
            assert_eq!(world.is_there(child), answer.is_some(), "a stack that cannot be written kills");
        }
    }
}

#[test]
fn strings_and_pointers_may_lie_across_pages() {
    let (mut world, child) = child();
    let across = TEXT + PAGE - 3;
    world.write_bytes(child, across, b"across\0");
    let list = LIST + PAGE - 13;
    world.write(child, list, &[across, MEMORY.end - 4, 0]);
    world.write_bytes(child, MEMORY.end - 4, b"end\0");
    let path = TEXT + 3 * PAGE - 2;
    world.write_bytes(child, path, b"/path\0");
    assert_eq!(world.call(child, nr::EXECVE, &[path, list, 0]), None);
    assert_eq!(world.pm.programs.system.exec_paths.last().unwrap(), "/path");
    world.exec_event(child, b"/path", 0);
    assert_eq!(start(&mut world, child).0, ["across", "end"]);
}

#[test]
fn what_cannot_be_read_is_efault() {
    let (mut world, child) = child();
    world.write_bytes(child, MEMORY.end - 8, &[b'x'; 8]);
    world.write(child, LIST, &[8, 0, MEMORY.end - 3, 0]);
    for (path, argv, envp) in [
        (8, 0, 0),
        (BUFFER, 8, 0),
        (BUFFER, 0, 8),
        (BUFFER, LIST, 0),
        (BUFFER, 0, LIST),
        (BUFFER, LIST + 16, 0),
        (MEMORY.end - 3, 0, 0),
    ] {
        assert_eq!(world.call(child, nr::EXECVE, &[path, argv, envp]), failed(Errno::EFAULT));
    }
    world.write(child, MEMORY.end - 8, &[BUFFER]);
    assert_eq!(
        world.call(child, nr::EXECVE, &[BUFFER, MEMORY.end - 8, 0]),
        failed(Errno::EFAULT),
        "a list without end"
    );
}

#[test]
fn a_script_without_an_argument_of_its_interpreter() {
    let (mut world, child) = child();
    world.write_bytes(child, TEXT, b"script\0");
    world.write_bytes(child, TEXT + 10, b"b\0");
    world.write(child, LIST, &[TEXT, TEXT + 10, 0]);
    assert_eq!(execve(&mut world, child, LIST, LIST + 8), None);
    world.exec_event(child, b"/bin/sh\0./x\0/bin/sh\0./x\0", 0);
    let (arguments, environment, _) = start(&mut world, child);
    assert_eq!(arguments, ["/bin/sh", "./x", "b"]);
    assert_eq!(environment, ["b"]);
}

#[test]
fn a_new_program_keeps_masks_and_pending_signals_but_nothing_that_lay_in_memory() {
    const USR1: u64 = 10;
    let (mut world, child) = child();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    world.write(child, LIST, &[MEMORY.start + 0x4000, 0, 8192, 1 << (USR1 - 1)]);
    assert_eq!(world.call(child, nr::SIGALTSTACK, &[LIST, 0]), DONE);
    assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[2, LIST + 24, 0, 8]), DONE);
    world.call(child, nr::SET_TID_ADDRESS, &[TEXT]);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert_eq!(exec(&mut world, child, 0, 0), None);
    world.write(child, TEXT, &[7]);
    assert_eq!(world.call(child, nr::SIGALTSTACK, &[0, LIST]), DONE);
    assert_eq!(world.words(child, LIST), [0, 2, 0]);
    assert_eq!(world.call(child, nr::RT_SIGPENDING, &[LIST, 8]), DONE);
    assert_eq!(world.read(child, LIST), 1 << (USR1 - 1));
    assert_eq!(world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).map(|made| made.is_ok()), Some(true));
    world.call(child, nr::EXIT, &[0]);
    assert!(world.pm.programs.system.futexes_woken.is_empty(), "no word is cleared");
}

#[test]
fn robust_futexes_are_released_before_the_memory_is_replaced() {
    let (mut world, parent) = child();
    world.call(parent, nr::CLONE, &[0x100 | 17, 0, 0, 0, 0]).unwrap().unwrap();
    let child = world.newest();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    world.write(child, LIST, &[LIST + 0x40, 0x20, 0]);
    world.write(child, LIST + 0x40, &[LIST, 0, 0, 0, pid]);
    assert_eq!(world.call(child, nr::SET_ROBUST_LIST, &[LIST, 24]), DONE);
    assert_eq!(exec(&mut world, child, 0, 0), None);
    assert_eq!(world.read(parent, LIST + 0x60), 0x4000_0000);
    assert_eq!(world.call(child, nr::GET_ROBUST_LIST, &[0, LIST, LIST + 8]), DONE);
    assert_eq!(world.words(child, LIST), [0, 0]);
}

#[test]
fn a_thread_that_execs_becomes_the_process() {
    let (mut world, first) = child();
    let pid = world.call(first, nr::GETPID, &[]).unwrap().unwrap();
    let tid = world.call(first, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    assert_eq!(execve(&mut world, second, 0, 0), None);
    world.told();
    world.exec_event(second, b"/bin/x", 0);
    let told = world.told();
    for wanted in [
        Told::FilesEnded(first),
        Told::MemoryEnded(first),
        Told::Destroyed(first),
        Told::Started { thread: second, tid: pid as u32 },
    ] {
        assert!(told.contains(&wanted), "{wanted:?}");
    }
    assert_eq!(world.call(second, nr::GETTID, &[]), Some(Ok(pid)));
    assert_eq!(world.call(world.init, nr::TKILL, &[tid, 0]), failed(Errno::ESRCH));
    assert_eq!(world.call(world.init, nr::TKILL, &[pid, 0]), DONE);
}

#[test]
fn a_program_that_was_stopped_meanwhile_begins_when_it_is_continued() {
    let (mut world, child) = child();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    assert_eq!(execve(&mut world, child, 0, 0), None);
    world.call(world.init, nr::KILL, &[pid, 19]);
    world.exec_event(child, b"/bin/x", 0);
    world.report_interrupted(child, None);
    assert!(world.thread(child).waits);
    world.call(world.init, nr::KILL, &[pid, 18]);
    assert!(!world.thread(child).waits);
    start(&mut world, child);
}

#[test]
fn the_first_program_begins_with_its_path_and_an_environment() {
    let mut world = World::new();
    let init = world.init;
    let (arguments, environment, _) = start(&mut world, init);
    assert_eq!(arguments, ["/sbin/init"]);
    assert_eq!(environment, ["HOME=/", "TERM=linux"]);
    let told = world.told();
    for wanted in [
        Told::Memory { parent: Endpoint::NONE, child: init, share: false },
        Told::Files { parent: Endpoint::NONE, child: init, pid: 1, flags: 0 },
        Told::Started { thread: init, tid: 1 },
    ] {
        assert!(told.contains(&wanted), "{wanted:?}");
    }
    let boot = abi::Message { source: Endpoint::RS, ..abi::pm::Boot {}.message() };
    assert_eq!(world.pm.handle(&boot).done().unwrap().result(), Err(Errno::EEXIST));
    for call in [nr::GETPID, nr::GETPGRP, nr::GETSID] {
        assert_eq!(world.call(init, call, &[0]), Some(Ok(1)));
    }
    assert_eq!(world.call(init, nr::GETPPID, &[]), DONE);
}

#[test]
fn the_first_program_execs_like_any_other_later() {
    let mut world = World::new();
    let init = world.init;
    world.write_bytes(init, BUFFER, b"/x\0");
    assert_eq!(world.call(init, nr::EXECVE, &[BUFFER, 0, 0]), None);
    world.file_event(vfs::EVENT_EXEC, init, [-2i64 as u64, 0, 0, 0]);
    assert_eq!(world.answer(init), failed(Errno::ENOENT));
    assert_eq!(world.pm.programs.system.printed, "");
}
