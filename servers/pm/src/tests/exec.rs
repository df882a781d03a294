//! execve and the start of the system.

use super::fake::Request;
use super::{MEMORY, Told, World};
use crate::pm::Pm;
use crate::state::random::Random;
use crate::tests::fake::{Fake, START};
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, pm, vfs};
use zerocopy::FromBytes;

const BUFFER: u64 = MEMORY.start + 0x100;

/// argv and envp in the program's memory. → addresses of path, argv, envp.
fn put_arguments(world: &mut World, thread: Endpoint, argv: &[&str], envp: &[&str]) -> [u64; 3] {
    let mut text = MEMORY.start + 0xff0;
    let mut list = BUFFER;
    let mut addresses = [text, list, 0];
    for (n, strings) in [argv, envp].into_iter().enumerate() {
        addresses[n + 1] = list;
        for string in strings {
            let mut bytes = string.as_bytes().to_vec();
            bytes.push(0);
            crate::system::System::write(&mut world.pm.programs.system, thread, text, &bytes).unwrap();
            world.write(thread, list, &[text]);
            text += bytes.len() as u64;
            list += 8;
        }
        world.write(thread, list, &[0]);
        list += 8;
    }
    addresses
}

fn string(world: &mut World, thread: Endpoint, mut address: u64) -> std::string::String {
    let mut text = std::string::String::new();
    loop {
        match world.read(thread, address) as u8 {
            0 => return text,
            byte => text.push(byte as char),
        }
        address += 1;
    }
}

fn argv(world: &mut World, thread: Endpoint) -> std::vec::Vec<std::string::String> {
    let stack = world.pm.programs.system.thread(thread).registers.rsp;
    let count = world.read(thread, stack);
    (1..=count)
        .map(|n| {
            let at = world.read(thread, stack + 8 * n);
            string(world, thread, at)
        })
        .collect()
}

#[test]
fn a_program_is_replaced_and_told_its_arguments() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.handle_signal(child, 10, 0);
    let [path, args, env] = put_arguments(&mut world, child, &["/bin/echo", "hello", ""], &["A=1"]);
    assert_eq!(world.call(child, nr::EXECVE, &[path, args, env]), None);
    assert_eq!(world.pm.programs.system.exec_paths.last().unwrap(), "/bin/echo");
    world.exec_event(child, b"/bin/echo", 0);
    assert_eq!(world.pm.programs.system.thread(child).registers.rip, START);
    assert_eq!(argv(&mut world, child), ["/bin/echo", "hello", ""]);
    world.call(child, nr::PRCTL, &[16, BUFFER]);
    assert_eq!(string(&mut world, child, BUFFER), "echo");
    world.call(child, nr::RT_SIGACTION, &[10, 0, BUFFER, 8]);
    assert_eq!(world.read(child, BUFFER), 0, "handlers do not survive");
}

#[test]
fn a_script_is_given_to_its_interpreter() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let [path, args, env] = put_arguments(&mut world, child, &["./x", "b"], &[]);
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.exec_event(child, b"/bin/sh\0./x\0/bin/sh\0-e\0./x\0", 0);
    assert_eq!(argv(&mut world, child), ["/bin/sh", "-e", "./x", "b"]);
    world.call(child, nr::PRCTL, &[16, BUFFER]);
    assert_eq!(string(&mut world, child, BUFFER), "x", "the process has the script's name");
}

#[test]
fn execveat_hands_directory_and_flags_to_vfs() {
    const AT_EMPTY_PATH: u64 = 0x1000;
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let [path, args, env] = put_arguments(&mut world, child, &["", "b"], &[]);
    assert_eq!(world.call(child, nr::EXECVEAT, &[3, path, args, env, 4]), Some(Err(Errno::ENOENT)));
    assert_eq!(world.call(child, nr::EXECVEAT, &[3, path, args, env, AT_EMPTY_PATH | 4]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(child, nr::EXECVEAT, &[3, path, args, env, AT_EMPTY_PATH]), None);
    let system = &world.pm.programs.system;
    assert_eq!((system.exec_paths.last().unwrap().as_str(), system.exec_from), ("", (3, AT_EMPTY_PATH)));
    world.exec_event(child, b"/bin/x\0/dev/fd/3\0", 0);
    world.call(child, nr::PRCTL, &[16, BUFFER]);
    assert_eq!(string(&mut world, child, BUFFER), "3");
}

#[test]
fn a_failed_exec_changes_nothing() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let [path, args, env] = put_arguments(&mut world, child, &["/x"], &[]);
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.file_event(vfs::EVENT_EXEC, child, [-2i64 as u64, 0, 0, 0]);
    assert_eq!(world.answer(child), Some(Err(Errno::ENOENT)));
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.pm.programs.system.failing = Some((Request::Exec, Errno::ENOEXEC));
    world.exec_event(child, b"/x", 0);
    assert_eq!(world.answer(child), Some(Err(Errno::ENOEXEC)));
    assert_eq!(world.call(child, nr::EXECVE, &[8, args, env]), Some(Err(Errno::EFAULT)));
    assert_eq!(world.call(child, nr::EXECVE, &[path, 8, env]), Some(Err(Errno::EFAULT)));
}

#[test]
fn the_kernel_forgets_who_a_process_was_that_is_its_files_owner_to_vfs_already() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETRESUID, &[7, 7, 5]);
    assert_eq!(world.call(child, nr::SETFSUID, &[5]), Some(Ok(7)));
    for _ in 0..2 {
        assert_eq!(world.call(child, nr::GETEUID, &[]), Some(Ok(7)));
    }
    assert_eq!(world.kept(child), 1);
    let [path, args, env] = put_arguments(&mut world, child, &["/bin/su"], &[]);
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.pm.programs.system.exec_text = b"/bin/su".to_vec();
    world.file_event(vfs::EVENT_EXEC, child, [5, 0, vfs::EXEC_SETUID, 5]);
    assert_eq!(world.call(child, nr::GETEUID, &[]), Some(Ok(5)));
}

#[test]
fn set_user_id_programs_get_their_owner() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETUID, &[1000]);
    let [path, args, env] = put_arguments(&mut world, child, &["/bin/su"], &[]);
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.pm.programs.system.exec_text = b"/bin/su".to_vec();
    world.file_event(vfs::EVENT_EXEC, child, [5, 0, vfs::EXEC_SETUID, 0]);
    assert_eq!(world.call(child, nr::GETEUID, &[]), Some(Ok(0)));
    assert_eq!(world.call(child, nr::GETUID, &[]), Some(Ok(1000)));
    let ids = Told::Ids { thread: child, effective: 0, real: 1000, groups: std::vec![] };
    assert!(world.told().contains(&ids), "vfs is told");
}

#[test]
fn exec_ends_the_other_threads_and_a_vfork() {
    let mut world = World::new();
    assert_eq!(world.call(world.init, nr::VFORK, &[]), None);
    let child = world.newest();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    const THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000;
    world.call(child, nr::CLONE, &[THREAD, MEMORY.end, 0, 0, 0]).unwrap().unwrap();
    let thread = world.newest();
    for _ in 0..2 {
        assert_ne!(world.call(thread, nr::GETTID, &[]), Some(Ok(pid)));
    }
    let [path, args, env] = put_arguments(&mut world, thread, &["/x"], &[]);
    world.call(thread, nr::EXECVE, &[path, args, env]);
    assert_eq!(world.answer(world.init), None);
    world.exec_event(thread, b"/x", 0);
    assert!(!world.is_there(child));
    assert_eq!(world.call(thread, nr::GETTID, &[]), Some(Ok(pid)));
    assert_eq!(world.answer(world.init), Some(Ok(pid)));
}

#[test]
fn a_program_killed_in_exec_is_forgotten() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let [path, args, env] = put_arguments(&mut world, child, &["/x"], &[]);
    world.call(child, nr::EXECVE, &[path, args, env]);
    world.call(world.init, nr::KILL, &[pid, 9]);
    world.exec_event(child, b"/x", 0);
    assert!(!world.is_there(child));
}

#[test]
fn without_init_the_shell_is_tried_and_then_pm_says_so() {
    let mut pm = Pm::new(Fake::default(), Random::new([1; 32]));
    let boot = Message { source: Endpoint::RS, ..pm::Boot {}.message() };
    pm.handle(&boot);
    let init = Endpoint(*pm.programs.system.threads.keys().next().unwrap());
    let mut world = World { pm, init };
    for path in ["/sbin/init", "/bin/sh"] {
        assert_eq!(world.pm.programs.system.exec_paths.last().unwrap(), path);
        world.file_event(vfs::EVENT_EXEC, init, [-2i64 as u64, 0, 0, 0]);
        assert!(world.pm.programs.system.printed.contains(path));
    }
    assert!(world.pm.programs.system.printed.contains("no first program"));
}

#[test]
fn reboot_needs_root_and_writes_back_first() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETUID, &[1000]);
    let power_off = [0xfee1_dead, 672_274_793, 0x4321_fedc];
    assert_eq!(world.call(child, nr::REBOOT, &power_off), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(world.init, nr::REBOOT, &[1, 2, 3]), Some(Err(Errno::EINVAL)));
    world.told();
    assert_eq!(world.call(world.init, nr::REBOOT, &power_off), None);
    assert_eq!(world.told(), [Told::Synced { unmount: true }]);
    assert_eq!(world.pm.programs.system.ended, None);
    world.file_event(vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4]);
    assert_eq!(world.pm.programs.system.ended, Some(crate::system::End::PowerOff));
}

#[test]
fn services_and_programs_are_listed_in_order_of_pid() {
    let mut world = World::new();
    let (low, high) = abi::Name::new("uart").unwrap().to_words();
    let up = pm::ServiceUp { process: Endpoint::new(11, 1), name_low: low, name_high: high };
    let source = Endpoint::RS;
    world.pm.handle(&Message { source, ..up.message() }).done().unwrap().result().unwrap();
    let (pid, _) = world.fork(world.init);
    let ask = pm::Processes { first_pid: 0, grant: abi::GrantId::NONE, bytes: 100_000 };
    let bytes = world.pm.handle(&Message { source, ..ask.message() }).done().unwrap().result().unwrap();
    let size = size_of::<pm::ProcessRecord>();
    assert_eq!(bytes as usize, 3 * size);
    let pids: std::vec::Vec<u32> = world
        .pm
        .programs
        .system
        .granted
        .chunks(size)
        .map(|r| pm::ProcessRecord::read_from_bytes(r).unwrap().pid)
        .collect();
    assert_eq!(pids, [1, 2, pid as u32]);
    let ask = pm::Threads { pid, first_tid: 0, grant: abi::GrantId::NONE, bytes: 100_000 };
    let bytes = world.pm.handle(&Message { source, ..ask.message() }).done().unwrap().result().unwrap();
    let thread = pm::ProcessRecord::read_from_bytes(&world.pm.programs.system.granted[..size]).unwrap();
    assert_eq!((bytes as usize, thread.pid, thread.process), (size, pid as u32, pid as u32));
    let nobody = pm::Threads { pid: 4000, ..ask };
    let answer = world.pm.handle(&Message { source, ..nobody.message() }).done().unwrap();
    assert_eq!(answer.result(), Err(abi::Errno::ESRCH));
}

#[test]
fn the_end_of_the_first_process_ends_the_machine() {
    for (signal, text) in
        [(0, "pm: the first process has exited with status 3\n"), (11, "pm: signal 11 has killed the first process\n")]
    {
        let mut world = World::new();
        let init = world.init;
        world.told();
        if signal == 0 {
            world.call(init, nr::EXIT_GROUP, &[3]);
        } else {
            let exception = abi::kernel::Exception { vector: 13, error: 0, ip: 1, address: 2 };
            world.pm.handle(&abi::Message { source: init, ..exception.message() });
        }
        assert!(world.pm.programs.system.printed.ends_with(text));
        assert!(world.told().contains(&Told::Synced { unmount: true }));
        world.file_event(vfs::EVENT_SYNCED, Endpoint::NONE, [0; 4]);
        assert_eq!(world.pm.programs.system.ended, Some(crate::system::End::PowerOff));
    }
}
