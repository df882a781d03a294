//! What services ask of pm: who somebody is, lists of processes and threads, texts of processes; and who is refused.
//! The file is long because each kind of record has many fields.

use super::{DONE, MEMORY, SECOND, Told, World};
use abi::info::state;
use abi::linux::nr;
use abi::pm::{
    Boot, Identity, MachineName, ProcessRecord, ProcessText, Processes, ServiceUp, SetMachineName, SetSetting, Setting,
    Threads, WhoIs,
};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use std::string::String;
use std::vec::Vec;
use zerocopy::FromBytes;

const BUFFER: u64 = MEMORY.start + 0x100;
const RECORD: u64 = size_of::<ProcessRecord>() as u64;
const GRANT: GrantId = GrantId::new(3, 4);
const ASKER: Endpoint = Endpoint::RS;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const STOP: u64 = 19;
/// The kernel's first real-time queue.
const REAL_TIME: u32 = 64;

fn ask(world: &mut World, message: Message) -> Message {
    world.pm.handle(&Message { source: ASKER, ..message }).done().expect("services are answered at once")
}

/// What was copied into the grant, if the reply says that something was.
fn granted(world: &mut World, message: Message) -> Result<Vec<u8>, Errno> {
    world.told();
    let bytes = ask(world, message).result()?;
    let told = world.told();
    if bytes == 0 {
        assert_eq!(told, []);
        return Ok(Vec::new());
    }
    assert_eq!(told, [Told::Granted { granter: ASKER, grant: GRANT }]);
    assert_eq!(bytes as usize, world.pm.programs.system.granted.len());
    Ok(world.pm.programs.system.granted.clone())
}

fn records(bytes: &[u8]) -> Vec<ProcessRecord> {
    assert_eq!(bytes.len() % RECORD as usize, 0);
    bytes.chunks(RECORD as usize).map(|record| ProcessRecord::read_from_bytes(record).unwrap()).collect()
}

fn processes(world: &mut World, first_pid: u64, bytes: u64) -> Vec<ProcessRecord> {
    let message = Processes { first_pid, grant: GRANT, bytes }.message();
    records(&granted(world, message).unwrap())
}

fn threads(world: &mut World, pid: u64, first_tid: u64, bytes: u64) -> Result<Vec<ProcessRecord>, Errno> {
    let message = Threads { pid, first_tid, grant: GRANT, bytes }.message();
    granted(world, message).map(|bytes| records(&bytes))
}

fn process(world: &mut World, pid: u64) -> ProcessRecord {
    processes(world, pid, RECORD)[0]
}

fn text(world: &mut World, pid: u64, what: u64, bytes: u64) -> Result<String, Errno> {
    let message = ProcessText { pid, what, grant: GRANT, bytes }.message();
    granted(world, message).map(|bytes| String::from_utf8(bytes).unwrap())
}

fn service_up(world: &mut World, name: &str, process: Endpoint) {
    let (name_low, name_high) = Name::new(name).unwrap().to_words();
    let message = ServiceUp { process, name_low, name_high }.message();
    assert_eq!(ask(world, message).result(), Ok(0));
}

/// The fields that are equal in all records of a process.
fn identity(record: &ProcessRecord) -> [u32; 12] {
    let r = record;
    [r.process, r.parent, r.group, r.session, r.uid, r.euid, r.suid, r.gid, r.egid, r.sgid, r.terminal, r.service]
}

#[test]
fn a_record_tells_all_of_a_process() {
    let mut world = World::new();
    world.set_time(7 * SECOND);
    let (_, shell) = world.fork(world.init);
    let session = world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, child) = world.fork(shell);
    world.call(shell, nr::SETPGID, &[pid, pid]);
    world.write(child, BUFFER, &[1, 0, 0, 0]);
    world.call(child, nr::RT_SIGACTION, &[2, BUFFER, 0, 8]);
    world.handle_signal(child, 10, 0);
    world.handle_signal(child, 64, 0);
    world.write(child, BUFFER, &[1 << 9 | 1 << 11]);
    world.call(child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
    world.call(world.init, nr::KILL, &[pid, 10]);
    world.call(world.init, nr::TKILL, &[pid, 12]);
    world.call(child, nr::SETPRIORITY, &[0, 0, 7]);
    world.write_bytes(child, BUFFER, b"a name\0");
    world.call(child, nr::PRCTL, &[15, BUFFER]);
    let (_, grandchild) = world.fork(child);
    world.thread(grandchild).run_ns = 4 * SECOND;
    world.call(grandchild, nr::EXIT_GROUP, &[0]);
    world.call(child, nr::WAIT4, &[u64::MAX, 0, 0, 0]).unwrap().unwrap();
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    world.thread(child).run_ns = 1;
    world.thread(second).run_ns = 20;
    world.call(child, nr::SETRESGID, &[4, 5, 6]);
    world.call(child, nr::SETRESUID, &[1, 2, 3]);

    let record = process(&mut world, pid);
    let ids = [pid as u32, session as u32, pid as u32, session as u32, 1, 2, 3, 4, 5, 6, 0, 0];
    assert_eq!(identity(&record), ids);
    assert_eq!((record.endpoint, record.pid as u64, record.threads, record.nice), (child, pid, 2, 7));
    assert_eq!((record.started_ns, record.user_ns, record.children_ns), (7 * SECOND, 21, 4 * SECOND));
    assert_eq!((record.signals_pending, record.signals_shared), (1 << 11, 1 << 9));
    assert_eq!((record.signals_blocked, record.fsuid, record.fsgid), (1 << 9 | 1 << 11, 2, 5));
    assert_eq!((record.signals_ignored, record.signals_caught), (1 << 1, 1 << 9 | 1 << 63));
    assert_eq!(record.name, *b"a name\0\0\0\0\0\0\0\0\0\0");
    assert_eq!((record.policy, record.priority, record.effective), (0, 0, 0));

    let own = threads(&mut world, pid, 0, 10 * RECORD).unwrap();
    assert_eq!(own.iter().map(identity).collect::<Vec<_>>(), [ids; 2]);
    assert_eq!([own[0].endpoint, own[1].endpoint], [child, second]);
    assert_eq!([own[0].pid as u64, own[1].pid as u64], [pid, pid + 2]);
    assert_eq!([own[0].user_ns, own[1].user_ns], [1, 20], "each its own");
    assert_eq!(own.iter().map(|thread| thread.signals_pending).collect::<Vec<_>>(), [1 << 11, 0]);
    assert_eq!([own[0].signals_shared, own[1].signals_shared], [1 << 9; 2]);
}

#[test]
fn letters_tell_what_a_process_does() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    for (kernel_state, letter) in [
        (state::READY, 'R'),
        (state::SENDING, 'S'),
        (state::RECEIVING, 'S'),
        (state::STOPPED, 'S'),
        (state::FAULTING, 'D'),
    ] {
        world.thread(child).state = kernel_state;
        assert_eq!(process(&mut world, pid).state, letter as u32, "{kernel_state}");
        assert_eq!(threads(&mut world, pid, 0, RECORD).unwrap()[0].state, letter as u32);
    }
    world.thread(child).state = state::READY;
    world.call(world.init, nr::KILL, &[pid, STOP]);
    assert_eq!(process(&mut world, pid).state, 'T' as u32);
    world.call(world.init, nr::KILL, &[pid, 9]);
    let zombie = process(&mut world, pid);
    assert_eq!((zombie.state, zombie.endpoint, zombie.threads), ('Z' as u32, Endpoint::NONE, 0));
    assert_eq!(threads(&mut world, pid, 0, RECORD).unwrap().len(), 0);
}

#[test]
fn the_mode_of_seccomp_is_shown_of_the_thread_that_has_it() {
    const SET_SECCOMP: u64 = 22;
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let newest = world.newest();
    world.call(newest, nr::PRCTL, &[SET_SECCOMP, 1]);
    let shown = threads(&mut world, pid, 0, 2 * RECORD).unwrap();
    assert_eq!(shown.iter().map(|record| record.seccomp).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(process(&mut world, pid).seccomp, 0);
}

#[test]
fn records_come_in_order_of_pid_from_the_first_that_is_wanted() {
    let mut world = World::new();
    let pids: Vec<u32> = (0..5).map(|_| world.fork(world.init).0 as u32).collect();
    let listed = |world: &mut World, first: u64, bytes: u64| -> Vec<u32> {
        processes(world, first, bytes).iter().map(|record| record.pid).collect()
    };
    let all = [&[1][..], &pids].concat();
    assert_eq!(listed(&mut world, 0, 100 * RECORD), all);
    assert_eq!(listed(&mut world, 1, 100 * RECORD), all);
    assert_eq!(listed(&mut world, pids[2] as u64, 100 * RECORD), pids[2..]);
    assert_eq!(listed(&mut world, pids[4] as u64 + 1, 100 * RECORD), []);
    assert_eq!(listed(&mut world, 40_000, 100 * RECORD), []);
    for (bytes, count) in [(0, 0), (RECORD - 1, 0), (RECORD, 1), (2 * RECORD - 1, 1), (2 * RECORD, 2)] {
        assert_eq!(listed(&mut world, 0, bytes), all[..count]);
    }
}

#[test]
fn a_reply_has_at_most_64_records() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    for _ in 0..70 {
        world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    }
    assert_eq!(threads(&mut world, pid, 0, 100 * RECORD).unwrap().len(), 64);
    assert_eq!(threads(&mut world, pid, pid + 60, 100 * RECORD).unwrap().len(), 11);
    for _ in 0..70 {
        world.fork(world.init);
    }
    let listed = processes(&mut world, 0, 100 * RECORD);
    assert_eq!(listed.len(), 64);
    assert_eq!(listed[2].pid as u64, pid + 71, "threads are not processes");
}

#[test]
fn threads_come_in_order_of_their_ids() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let tids: Vec<u64> =
        (0..3).map(|_| world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap()).collect();
    let listed = |world: &mut World, first: u64, bytes: u64| -> Vec<u64> {
        threads(world, pid, first, bytes).unwrap().iter().map(|record| record.pid as u64).collect()
    };
    let all = [&[pid][..], &tids].concat();
    assert_eq!(listed(&mut world, 0, 100 * RECORD), all);
    assert_eq!(listed(&mut world, tids[1], 100 * RECORD), tids[1..]);
    assert_eq!(listed(&mut world, tids[1] + 1, 100 * RECORD), tids[2..]);
    assert_eq!(listed(&mut world, 0, 2 * RECORD + 1), all[..2]);
    for pid in [tids[0], 4000, 1 << 32 | pid] {
        assert_eq!(threads(&mut world, pid, 0, RECORD).err(), Some(Errno::ESRCH));
    }
}

#[test]
fn threads_are_in_order_even_when_ids_have_begun_anew() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let thread = |world: &mut World| {
        let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
        (tid, world.newest())
    };
    let mut last = thread(&mut world);
    while last.0 < 32767 {
        world.call(last.1, nr::EXIT, &[0]);
        last = thread(&mut world);
    }
    let low = thread(&mut world).0;
    assert_eq!(low, 300);
    let listed = threads(&mut world, pid, 0, 3 * RECORD).unwrap();
    assert_eq!(listed.iter().map(|record| record.pid as u64).collect::<Vec<_>>(), [pid, low, 32767]);
}

/// Lets a thread of the process come and go until ids begin anew, and on up to this one. Returns the ids from 300 on.
fn ids_given_anew(world: &mut World, process: Endpoint, last: u64) -> Vec<u64> {
    let mut given = Vec::new();
    let mut before = 0;
    loop {
        let tid = world.call(process, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
        world.call(world.newest(), nr::EXIT, &[0]);
        if tid < before || !given.is_empty() {
            given.push(tid);
        }
        if !given.is_empty() && tid > last {
            return given;
        }
        before = tid;
    }
}

#[test]
fn an_id_is_given_again_when_no_group_or_session_has_it() {
    let mut world = World::new();
    let init = world.init;
    let (_, process) = world.fork(init);
    for _ in 0..300 {
        world.call(process, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
        world.call(world.newest(), nr::EXIT, &[0]);
    }
    let [plain, group, session, kept] = [(); 4].map(|()| world.fork(init));
    assert_eq!(world.call(group.1, nr::SETPGID, &[0, 0]), DONE);
    for leader in [session, kept] {
        world.call(leader.1, nr::SETSID, &[]).unwrap().unwrap();
    }
    let (left_pid, left) = world.fork(session.1);
    world.call(left, nr::SETSID, &[]).unwrap().unwrap();
    let (member_pid, _) = world.fork(kept.1);
    for (pid, child) in [plain, group, session, kept] {
        world.call(child, nr::EXIT_GROUP, &[0]);
        assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    }
    let given = ids_given_anew(&mut world, process, member_pid);
    let is_given = [plain.0, group.0, session.0, kept.0, left_pid, member_pid].map(|pid| given.contains(&pid));
    assert_eq!(is_given, [true, true, true, false, false, false]);
}

#[test]
fn the_effective_priority_is_that_of_the_queue() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let (other_pid, other) = world.fork(world.init);
    let set = |world: &mut World, thread: Endpoint, priority: u64| {
        world.write(thread, BUFFER, &[priority]);
        let policy = if priority == 0 { 0 } else { 1 };
        assert_eq!(world.call(thread, nr::SCHED_SETSCHEDULER, &[0, policy, BUFFER]), DONE);
    };
    // Priorities 17 to 22 share queue 30.
    for (own, others, queue, effective) in [
        (0, 0, 8, 0),
        (0, 0, REAL_TIME - 1, 0),
        (99, 0, REAL_TIME + 3, 99),
        (18, 0, REAL_TIME + 30, 18),
        (18, 21, REAL_TIME + 30, 18),
        (0, 21, REAL_TIME + 30, 21),
        (5, 21, REAL_TIME + 30, 21),
        (5, 50, REAL_TIME + 30, 22),
        (0, 0, REAL_TIME + 3, 99),
        (0, 0, REAL_TIME + 46, 1),
        (0, 0, REAL_TIME, 99),
        (0, 0, REAL_TIME + 47, 1),
    ] {
        set(&mut world, child, own);
        set(&mut world, other, others);
        world.thread(child).queue = queue;
        let record = process(&mut world, pid);
        assert_eq!((record.priority as u64, record.effective), (own, effective), "{own} {others} {queue}");
        assert_eq!(record.policy, (own != 0) as u32);
    }
    assert_ne!(pid, other_pid);
}

#[test]
fn services_are_listed_under_a_pid_that_stays() {
    let mut world = World::new();
    world.set_time(3 * SECOND);
    let [uart, disk] = [Endpoint::new(30, 1), Endpoint::new(31, 1)];
    service_up(&mut world, "uart", uart);
    world.set_time(4 * SECOND);
    service_up(&mut world, "disk", disk);
    let (pid, child) = world.fork(world.init);
    let listed = processes(&mut world, 0, 100 * RECORD);
    assert_eq!(listed.len(), 4);
    for (record, endpoint, name, started) in [(&listed[1], uart, *b"uart", 3), (&listed[2], disk, *b"disk", 4)] {
        assert_eq!((record.endpoint, record.started_ns), (endpoint, started * SECOND));
        assert_eq!((record.name[..4].to_vec(), record.name[4..].to_vec()), (name.to_vec(), std::vec![0; 12]));
        assert_eq!((record.process, record.threads, record.service, record.parent), (record.pid, 1, 1, 0));
        assert_eq!((record.state, record.user_ns), ('R' as u32, 0));
    }
    let uart_pid = listed[1].pid;
    world.set_time(9 * SECOND);
    service_up(&mut world, "uart", child);
    world.thread(child).run_ns = 55;
    world.thread(child).state = state::RECEIVING;
    let successor = processes(&mut world, uart_pid as u64, RECORD)[0];
    assert_eq!((successor.pid, successor.endpoint, successor.started_ns), (uart_pid, child, 9 * SECOND));
    assert_eq!((successor.user_ns, successor.state), (55, 'S' as u32));
    assert_eq!(threads(&mut world, uart_pid as u64, 0, RECORD).unwrap()[0].pid, uart_pid);
    assert_eq!(processes(&mut world, 0, 100 * RECORD).len(), 4, "no further entry");
    assert_eq!(text(&mut world, uart_pid as u64, 0, 100), Err(Errno::ESRCH));
    assert_ne!(pid as u32, uart_pid);
}

#[test]
fn texts_of_a_process_are_its_arguments_environment_and_program() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    for (what, whole) in [(0, "/sbin/init\0"), (1, "HOME=/\0TERM=linux\0"), (2, "/sbin/init")] {
        for who in [1, pid] {
            assert_eq!(text(&mut world, who, what, 1000).as_deref(), Ok(whole));
            assert_eq!(text(&mut world, who, what, whole.len() as u64).as_deref(), Ok(whole));
            assert_eq!(text(&mut world, who, what, 5).as_deref(), Ok(&whole[..5]));
            assert_eq!(text(&mut world, who, what, 0).as_deref(), Ok(""));
        }
    }
    assert_eq!(text(&mut world, pid, 9, 100), Err(Errno::EINVAL));
    world.write(child, BUFFER, &[7 | 9 << 32]);
    assert_eq!(world.call(child, nr::SETGROUPS, &[2, BUFFER]), DONE);
    assert_eq!(text(&mut world, pid, 3, 100).as_deref(), Ok("\x07\0\0\0\x09\0\0\0"));
    world.write(child, BUFFER, &[64, 65]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[7, BUFFER]), DONE);
    let limits = granted(&mut world, ProcessText { pid, what: 4, grant: GRANT, bytes: 1000 }.message()).unwrap();
    assert_eq!((limits.len(), &limits[7 * 16..8 * 16]), (256, [64u64, 65].map(u64::to_le_bytes).as_flattened()));
    let vector = granted(&mut world, ProcessText { pid, what: 5, grant: GRANT, bytes: 1000 }.message()).unwrap();
    let pairs: Vec<[u64; 2]> = vector
        .chunks(16)
        .map(|pair| [0, 8].map(|at| u64::from_le_bytes(pair[at..at + 8].try_into().unwrap())))
        .collect();
    assert!(pairs.contains(&[6, 4096]) && pairs.last() == Some(&[0, 0]), "the size of a page, and the end");
    for unknown in [4000, 1 << 32 | 1] {
        assert_eq!(text(&mut world, unknown, 0, 100), Err(Errno::ESRCH));
    }
    world.call(child, nr::EXIT_GROUP, &[0]);
    for what in 0..6 {
        assert_eq!(text(&mut world, pid, what, 100).as_deref(), Ok(""), "a zombie has none");
    }
}

#[test]
fn a_thread_is_told_by_pid_ids_session_and_group() {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    let session = world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, child) = world.fork(shell);
    world.call(shell, nr::SETPGID, &[pid, pid]);
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    world.call(child, nr::SETRESGID, &[4, 5, 6]);
    world.call(child, nr::SETRESUID, &[1, 2, 3]);
    let reply = ask(&mut world, WhoIs { process: second }.message());
    assert_eq!(WhoIs::results(&reply), Ok((pid, 2 | 5 << 32, session, pid, abi::CapabilitySet::EMPTY)));
    let nobody = ask(&mut world, WhoIs { process: Endpoint::new(900, 7) }.message());
    assert_eq!(nobody.result(), Err(Errno::ESRCH));
}

#[test]
fn programs_and_unknown_requests_are_refused() {
    let mut world = World::new();
    let init = world.init;
    let who = WhoIs { process: init }.message();
    for request in [who, Boot {}.message(), Processes { first_pid: 0, grant: GRANT, bytes: 1000 }.message()] {
        let reply = world.pm.handle(&Message { source: init, ..request }).done().unwrap();
        assert_eq!(reply.result(), Err(Errno::ENOSYS));
    }
    assert_eq!(ask(&mut world, who).result().map(|_| ()), Ok(()));
    assert_eq!(ask(&mut world, Message::new(who.label + 100)).result(), Err(Errno::ENOSYS));
}

#[test]
fn the_first_label_behind_those_of_linux_is_no_call() {
    let mut world = World::new();
    let stranger = Endpoint::new(700, 9);
    let mut answer = |source: Endpoint, label: u32| {
        world.pm.handle(&Message { source, ..Message::new(label) }).done().unwrap().result()
    };
    assert_eq!(answer(stranger, 0xfff), Err(Errno::ESRCH), "a call of nobody");
    assert_eq!(answer(stranger, 0x1000), Err(Errno::ENOSYS));
}

#[test]
fn reports_about_threads_that_are_gone_are_answered() {
    let mut world = World::new();
    let source = Endpoint::new(700, 9);
    let exception = abi::kernel::Exception { vector: 13, error: 0, ip: 1, address: 2 }.message();
    for report in [abi::kernel::Interrupted {}.message(), exception] {
        let reply = world.pm.handle(&Message { source, ..report }).done().unwrap();
        assert_eq!(reply.result(), Err(Errno::ESRCH));
    }
    assert!(world.pm.handle(&Message { source, ..abi::kernel::Exited { status: 0 }.message() }).done().is_none());
}

#[test]
fn a_request_is_answered_to_those_it_is_for() {
    let mut world = World::new();
    let [procfs, other] = [20, 21].map(|slot| Endpoint::new(slot, 1));
    service_up(&mut world, "procfs", procfs);
    service_up(&mut world, "other", other);
    let mut answer =
        |source: Endpoint, request: Message| world.pm.handle(&Message { source, ..request }).done().unwrap().result();
    let up = ServiceUp { process: other, name_low: 1, name_high: 0 }.message();
    let text = ProcessText { pid: 1, what: 2, grant: GRANT, bytes: 100 }.message();
    let list = Processes { first_pid: 1, grant: GRANT, bytes: RECORD }.message();
    let threads = Threads { pid: 1, first_tid: 1, grant: GRANT, bytes: RECORD }.message();
    let set = SetSetting { what: 1, value: 400 }.message();
    for request in [up, Boot {}.message(), text, list, threads, set, Identity {}.message()] {
        assert_eq!(answer(other, request), Err(Errno::EPERM));
        assert_eq!(answer(Endpoint::new(90, 1), request), Err(Errno::EPERM));
    }
    for request in [text, list, threads, Setting { what: 1 }.message(), Identity {}.message()] {
        assert!(answer(Endpoint::new(20, 2), request).is_ok(), "a successor in the slot of procfs");
    }
    assert_eq!(answer(procfs, up), Err(Errno::EPERM));
    assert_eq!(answer(procfs, Boot {}.message()), Err(Errno::EPERM));
}

fn machine_name(world: &mut World, which: u64) -> String {
    let message = MachineName { which, grant: GRANT, bytes: 64 }.message();
    String::from_utf8(granted(world, message).unwrap()).unwrap()
}

fn name_machine(world: &mut World, which: u64, name: &[u8]) -> Result<u64, Errno> {
    world.pm.programs.system.granted = name.to_vec();
    ask(world, SetMachineName { which, grant: GRANT, bytes: name.len() as u64 }.message()).result()
}

#[test]
fn the_names_of_the_machine_are_shown_and_set_for_procfs() {
    let mut world = World::new();
    assert_eq!([0, 1].map(|which| machine_name(&mut world, which)), ["skink", "(none)"]);
    assert_eq!(name_machine(&mut world, 1, b"desert"), Ok(0));
    assert_eq!(name_machine(&mut world, 0, &[b'x'; 64]), Ok(0));
    assert_eq!(name_machine(&mut world, 0, &[b'x'; 65]), Err(Errno::EINVAL));
    assert_eq!(name_machine(&mut world, 2, b"x"), Err(Errno::EINVAL));
    assert_eq!([0, 1].map(|which| machine_name(&mut world, which)), ["x".repeat(64), "desert".into()]);
    assert_eq!(name_machine(&mut world, 0, b""), Ok(0));
    assert_eq!(machine_name(&mut world, 0), "");
}

#[test]
fn settings_take_the_values_that_they_can_have() {
    let mut world = World::new();
    let get = |world: &mut World, what| Setting::results(&ask(world, Setting { what }.message()));
    let set = |world: &mut World, what, value| ask(world, SetSetting { what, value }.message()).result();
    assert_eq!([0, 1, 2].map(|what| get(&mut world, what)), [Ok(0), Ok(32768), Err(Errno::EINVAL)]);
    assert_eq!(
        [(0, 1), (1, 400), (0, 3), (1, 300)].map(|(what, value)| set(&mut world, what, value)),
        [Ok(0), Ok(0), Err(Errno::EINVAL), Err(Errno::EINVAL)]
    );
    assert_eq!([0, 1].map(|what| get(&mut world, what)), [Ok(2), Ok(400)]);
    for _ in 0..3 {
        let pids = [(); 60].map(|()| {
            let (pid, child) = world.fork(world.init);
            world.call(child, nr::EXIT_GROUP, &[0]);
            world.call(world.init, nr::WAIT4, &[pid, 0, 0, 0]);
            pid
        });
        assert!(pids.iter().all(|pid| *pid < 400), "{pids:?}");
    }
}

#[test]
fn a_boot_has_one_number_and_others_are_always_new() {
    let mut world = World::new();
    let mut numbers = || Identity::results(&ask(&mut world, Identity {}.message())).unwrap();
    let (first, second) = (numbers(), numbers());
    assert_eq!((first.0, first.1), (second.0, second.1));
    assert!(first.2 != second.2 && first.3 != second.3 && first.0 != first.2);
}
