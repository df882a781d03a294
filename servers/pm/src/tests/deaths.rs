//! pm dies at every single thing it asks of others, starts again with its tables as they were, and is asked again: no program notices. The file
//! is long because every kind of work of pm has its scenario.

use super::{MEMORY, World};
use abi::endpoint::slot;
use abi::linux::nr;
use abi::message::REPEATED;
use abi::{Endpoint, Errno, Message, vfs};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

pub(super) const BUFFER: u64 = MEMORY.start + 0x100;
const SIGTERM: u64 = 15;

type Outcome = Option<Result<u64, Errno>>;
type Reply = Result<u64, Errno>;

/// A world whose pm may die, and what every program has asked last.
pub(super) struct Mortal {
    pub(super) world: World,
    asked: BTreeMap<u32, Message>,
    number: u64,
}

impl Mortal {
    fn new() -> Mortal {
        Mortal { world: World::new(), asked: BTreeMap::new(), number: 0 }
    }

    pub(super) fn thread(&mut self, thread: Endpoint) -> &mut super::fake::FakeThread {
        self.world.pm.programs.system.thread(thread)
    }

    /// Makes a call. → its result, if that has come; `None`: the caller waits, runs on with other registers, or is gone.
    pub(super) fn call(&mut self, thread: Endpoint, number: u32, arguments: &[u64]) -> Outcome {
        self.number += 1;
        let mut message = Message { source: thread, ..Message::new(number) };
        message.words[..arguments.len()].copy_from_slice(arguments);
        message.words[6] = self.number;
        let entry = self.thread(thread);
        entry.waits = true;
        entry.registers.linux_call = number as u64;
        self.asked.insert(thread.0, message);
        self.deliver(&message);
        self.world.answer(thread)
    }

    /// Lets pm do something, through as many lives as it takes; whoever waits asks again in each.
    pub(super) fn live(&mut self, act: &dyn Fn(&mut World)) {
        if catch_unwind(AssertUnwindSafe(|| act(&mut self.world))).is_ok() {
            return;
        }
        let system = &mut self.world.pm.programs.system;
        system.threads.values_mut().filter(|thread| thread.waits).for_each(|thread| thread.asks_again = true);
        self.live(&|world| world.pm.recover());
        let waiting: Vec<Message> = self.asked.values().copied().collect();
        for mut message in waiting {
            let Some(thread) = self.world.pm.programs.system.threads.get_mut(&message.source.0) else { continue };
            if std::mem::take(&mut thread.asks_again) {
                message.words[6] |= REPEATED;
                self.deliver(&message);
            }
        }
    }

    fn deliver(&mut self, message: &Message) {
        self.live(&|world| {
            if let Some(reply) = world.pm.handle(message).done() {
                world.pm.programs.system.thread(message.source).waits = false;
                world.pm.programs.system.replies.push((message.source, reply.result()));
            }
        });
    }

    /// A thread reports that it was interrupted, if it was.
    pub(super) fn report_interrupted(&mut self, thread: Endpoint) {
        if self.world.is_there(thread) && self.thread(thread).interrupted {
            self.thread(thread).interrupted = false;
            self.report(thread, abi::kernel::Interrupted {}.message());
        }
    }

    /// The kernel reports what a thread does, which waits for pm's reply.
    pub(super) fn report(&mut self, thread: Endpoint, report: Message) {
        let report = Message { source: thread, ..report };
        self.thread(thread).waits = true;
        self.asked.insert(thread.0, report);
        self.deliver(&report);
    }

    /// A request of vfs, which it makes again when pm dies over it.
    pub(super) fn request(&mut self, request: Message) -> Reply {
        let message = Message { source: Endpoint::VFS, ..request };
        let answer = std::cell::Cell::new(None);
        while answer.get().is_none() {
            self.live(&|world| answer.set(world.pm.handle(&message).done().map(|reply| reply.result())));
        }
        answer.get().expect("it was answered")
    }

    pub(super) fn fork(&mut self, parent: Endpoint) -> (u64, Endpoint) {
        let pid = self.call(parent, nr::FORK, &[]).expect("answered").expect("forked");
        (pid, self.thread_of(pid))
    }

    pub(super) fn thread_of(&self, pid: u64) -> Endpoint {
        let table = &self.world.pm.programs.table;
        let process = table.process_by_pid(pid as u32).expect("a process");
        table[table[process].main().expect("it lives")].endpoint()
    }

    fn exec_event(&mut self, thread: Endpoint, text: &[u8]) {
        self.world.pm.programs.system.exec_text = text.to_vec();
        self.file_event(vfs::EVENT_EXEC, thread, [5, 0, 0, 0]);
    }

    fn file_event(&mut self, kind: u64, process: Endpoint, values: [u64; 4]) {
        self.world.pm.programs.system.file_events.push_back((kind, process, values));
        self.live(&|world| world.pm.handle_notification(Endpoint::VFS));
    }

    fn terminal_event(&mut self, signal: u64, target: u64) {
        self.world.pm.programs.system.terminal_events.push_back((signal, target));
        self.live(&|world| world.pm.handle_notification(Endpoint::current(slot::TTY)));
    }
}

/// Runs a scenario once for each thing that pm asks for in it, and lets pm die there.
pub(super) fn at_every_step(scenario: impl Fn(&mut Mortal)) {
    for step in 1.. {
        let mut mortal = Mortal::new();
        mortal.world.pm.programs.system.dies_in = Some(step);
        scenario(&mut mortal);
        if mortal.world.pm.programs.system.dies_in.is_some() {
            assert!(step > 5, "it asks for {step} things only");
            return;
        }
    }
}

#[test]
fn a_process_that_is_dumped_ends_once_with_a_dump_or_without() {
    const TERMINATED: u64 = 6;
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        m.world.write(child, BUFFER, &[u64::MAX, u64::MAX]);
        assert_eq!(m.call(child, nr::SETRLIMIT, &[4, BUFFER]), Some(Ok(0)));
        assert_eq!(m.call(init, nr::KILL, &[pid, TERMINATED]), Some(Ok(0)));
        m.report_interrupted(child);
        let writer = m.world.newest();
        if writer != child && m.world.is_there(writer) {
            m.exec_event(writer, b"/bin/coredump");
            assert!(m.thread(writer).runs);
            m.call(writer, nr::EXIT_GROUP, &[0]);
        }
        assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Ok(pid)));
        assert_eq!(m.world.read(init, BUFFER) & 0x7f, TERMINATED);
        assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Err(Errno::ECHILD)));
        assert_eq!(m.world.pm.programs.system.threads.len(), 1);
    });
}

#[test]
fn a_clock_that_was_being_set_is_set_and_programs_may_read_it() {
    at_every_step(|m| {
        let init = m.world.init;
        for since_1970_s in 2000..2003 {
            m.world.write(init, BUFFER, &[since_1970_s, 7]);
            assert_eq!(m.call(init, nr::CLOCK_SETTIME, &[0, BUFFER]), Some(Ok(0)));
            let system = &m.world.pm.programs.system;
            assert!(!system.is_setting_clock);
            assert_eq!(system.real_offset_ns + system.now_ns, since_1970_s * 1_000_000_000 + 7);
        }
    });
}

/// The parent waits before the child is killed, or after.
#[test]
fn an_end_that_was_put_off_comes_once() {
    const KILLED: u64 = 9;
    for waits_first in [true, false] {
        at_every_step(|m| {
            let init = m.world.init;
            let m3ipc = Endpoint::new(30, 1);
            m.world.pm.programs.m3ipc = Some(m3ipc);
            let (pid, child) = m.fork(init);
            let (killer_pid, killer) = m.fork(init);
            let p = m.world.pm.programs.table.process_by_pid(pid as u32).expect("it lives");
            m.world.pm.programs.table[p].enrolled = true;
            let wait = |m: &mut Mortal| m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]);
            let early = waits_first.then(|| wait(m));
            assert_eq!(m.call(killer, nr::KILL, &[pid, KILLED]), Some(Ok(0)));
            let waited = if waits_first { early.flatten() } else { wait(m) };
            m.report_interrupted(child);
            assert!(!m.world.is_there(child));
            assert_eq!(waited.or_else(|| m.world.answer(init)), Some(Ok(pid)));
            assert_eq!(m.world.read(init, BUFFER) & 0x7f, KILLED);
            assert_eq!(m.call(killer, nr::EXIT_GROUP, &[0]), None);
            assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Ok(killer_pid)));
            assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Err(Errno::ECHILD)));
            assert_eq!(m.world.pm.programs.system.threads.len(), 1);
        });
    }
}

#[test]
fn a_segment_is_attached_once_and_removed_once() {
    const STATUS: u64 = BUFFER + 0x200;
    at_every_step(|m| {
        let init = m.world.init;
        let id = m.call(init, nr::SHMGET, &[7, 4096, 0o1600]).expect("answered").expect("made");
        let (pid, child) = m.fork(init);
        for thread in [init, child] {
            assert!(matches!(m.call(thread, nr::SHMAT, &[id, 0, 0]), Some(Ok(_))));
        }
        assert_eq!(m.call(init, nr::SHMCTL, &[id, 2, STATUS]), Some(Ok(0)));
        assert_eq!(m.world.read(init, STATUS + 88), 2, "attaches");
        assert_eq!(m.call(init, nr::SHMCTL, &[id, 0, 0]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::EXIT_GROUP, &[0]), None);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
        assert_eq!(m.call(init, nr::SHMCTL, &[id, 2, STATUS]), Some(Ok(0)));
        assert_eq!(m.world.read(init, STATUS + 88), 1, "attaches");
        m.world.pm.programs.system.detach(init);
        assert_eq!(m.call(init, nr::SHMCTL, &[id, 0, 0]), Some(Err(Errno::EINVAL)));
        assert!(m.world.pm.programs.system.segments.is_empty());
        assert_eq!(m.world.pm.segments.used().0, 0);
    });
}

#[test]
fn a_child_with_a_descriptor_is_the_one_that_the_descriptor_means() {
    const CLONE_PIDFD: u64 = 0x1000;
    at_every_step(|m| {
        let init = m.world.init;
        let pid = m.call(init, nr::CLONE, &[CLONE_PIDFD | 17, 0, BUFFER, 0, 0]).expect("answered").expect("made");
        let child = m.thread_of(pid);
        let system = &m.world.pm.programs.system;
        assert_eq!((system.threads.len(), system.pidfds.len()), (2, 1), "one child, one descriptor");
        let descriptor = u64::from(m.world.read(init, BUFFER) as u32);
        assert_eq!(m.call(init, nr::PIDFD_SEND_SIGNAL, &[descriptor, 9, 0, 0]), Some(Ok(0)));
        assert!(!m.world.is_there(child));
        assert_eq!(m.call(init, nr::WAITID, &[3, descriptor, BUFFER, 4, 0]), Some(Ok(0)));
    });
}

#[test]
fn a_signal_is_read_once_by_descriptor_and_vfs_is_told_that_it_came() {
    const USR1: u64 = 10;
    const MASK: u64 = 1 << (USR1 - 1) | 1 << 39;
    at_every_step(|m| {
        let (pid, child) = m.fork(m.world.init);
        m.world.write(child, MEMORY.start, &[MASK]);
        assert_eq!(m.call(child, nr::RT_SIGPROCMASK, &[2, MEMORY.start, 0, 8]), Some(Ok(0)));
        let init = m.world.init;
        let mut read = 0;
        for round in 0..4 {
            let ask = abi::pm::TakeSignals {
                process: child,
                call: 100 + round,
                mask: MASK,
                address: BUFFER,
                count: 2,
                watch: true,
            };
            assert_eq!(m.request(ask.message()), Err(Errno::EAGAIN));
            m.world.told();
            for signal in [USR1, 40] {
                assert_eq!(m.call(init, nr::KILL, &[pid, signal]), Some(Ok(0)));
            }
            let told = m.world.told();
            assert!(told.contains(&super::Told::SignalsPending(child)));
            read += m.request(ask.message()).expect("two signals");
            let numbers = [BUFFER, BUFFER + 128].map(|at| m.world.read(child, at) as u32);
            assert_eq!(numbers, [10, 40]);
        }
        assert!(read == 8, "{read}");
    });
}

/// Real-time signals, of which two are not one: they wait, and their process reads them by a descriptor.
#[test]
fn a_signal_of_vfs_or_tty_comes_once() {
    const SIGNAL: u64 = 40;
    const MASK: u64 = 1 << (SIGNAL - 1);
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(init, nr::SETPGID, &[pid, pid]), Some(Ok(0)));
        m.world.write(child, MEMORY.start, &[MASK]);
        assert_eq!(m.call(child, nr::RT_SIGPROCMASK, &[2, MEMORY.start, 0, 8]), Some(Ok(0)));
        let mut calls = 100..;
        let mut take = |m: &mut Mortal| {
            let call = calls.next().expect("without end");
            let ask = abi::pm::TakeSignals { process: child, call, mask: MASK, address: BUFFER, count: 4, watch: true };
            m.request(ask.message())
        };
        let owner = |kind: u64| [pid | kind << 32 | SIGNAL << 40, 9 | vfs::OWNER_INPUT << 32, 0, 0];
        let events: [&dyn Fn(&mut Mortal); 6] = [
            &|m| m.file_event(vfs::EVENT_MESSAGE, Endpoint::NONE, [pid | SIGNAL << 32, 42, 1, 0]),
            &|m| m.file_event(vfs::EVENT_OWNER, Endpoint::NONE, owner(vfs::OWNER_THREAD)),
            &|m| m.file_event(vfs::EVENT_OWNER, Endpoint::NONE, owner(vfs::OWNER_PROCESS)),
            &|m| m.file_event(vfs::EVENT_OWNER, Endpoint::NONE, owner(vfs::OWNER_GROUP)),
            &|m| m.terminal_event(SIGNAL, pid),
            &|m| m.terminal_event(SIGNAL, pid | abi::tty::TO_PROCESS),
        ];
        for (number, event) in events.into_iter().enumerate() {
            assert_eq!(take(m), Err(Errno::EAGAIN), "before event {number}");
            event(m);
            assert_eq!(take(m), Ok(1), "event {number}");
        }
    });
}

#[test]
fn a_child_is_made_once_and_waited_for_once() {
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.world.pm.programs.system.threads.len(), 2, "one child");
        assert!(m.thread(child).runs);
        assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), None);
        assert_eq!(m.call(child, nr::EXIT_GROUP, &[7]), None);
        assert_eq!(m.world.answer(init), Some(Ok(pid)));
        assert_eq!(m.world.read(init, BUFFER) as u32, 0x700);
        assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Err(Errno::ECHILD)));
        assert_eq!(m.world.pm.programs.system.threads.len(), 1);
    });
}

#[test]
fn what_a_child_has_used_is_counted_once() {
    const USAGE: u64 = BUFFER + 0x100;
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        let thread = m.thread(child);
        (thread.run_ns, thread.waited) = (3_000_000_000, 5);
        thread.footprint = crate::system::Footprint { faults: 7, peak_bytes: 400 << 10 };
        assert_eq!(m.call(child, nr::EXIT_GROUP, &[0]), None);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, USAGE]), Some(Ok(pid)));
        let [seconds, peak_kib, faults, waits] = [0, 4, 8, 16].map(|word| m.world.read(init, USAGE + 8 * word));
        assert_eq!((seconds, peak_kib, faults, waits), (3, 400, 7, 5));
    });
}

#[test]
fn a_new_process_does_not_end_like_the_one_before_it() {
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, 0, 0, 0]), None);
        assert_eq!(m.call(child, nr::EXIT_GROUP, &[7]), None);
        assert_eq!(m.world.answer(init), Some(Ok(pid)));
        let (_, next) = m.fork(init);
        m.live(&|world| world.pm.recover());
        assert!(m.world.is_there(next));
    });
}

#[test]
fn a_child_that_shares_memory_lets_its_parent_go_when_it_execs() {
    at_every_step(|m| {
        let init = m.world.init;
        assert_eq!(m.call(init, nr::VFORK, &[]), None);
        let child = *m.world.pm.programs.system.threads.keys().find(|key| **key != init.0).expect("a child");
        let child = Endpoint(child);
        m.world.pm.programs.system.put(child, BUFFER, b"/bin/true\0").expect("memory");
        m.world.write(child, BUFFER + 64, &[BUFFER, 0]);
        assert_eq!(m.call(child, nr::EXECVE, &[BUFFER, BUFFER + 64, BUFFER + 72]), None);
        m.exec_event(child, b"/bin/true");
        let process = m.world.pm.programs.table.process_of(m.world.pm.programs.table.find(child).expect("it lives"));
        assert_eq!(m.world.pm.programs.table[process].name.text(), "true");
        assert!(m.thread(child).runs && !m.thread(child).waits);
        let pid = m.world.pm.programs.table[process].pid() as u64;
        assert_eq!(m.world.answer(init), Some(Ok(pid)), "the parent goes on");
    });
}

#[test]
fn a_tracee_stops_goes_on_and_its_end_is_told_once() {
    const SIGSTOP: u64 = 19;
    const CONT: u64 = 7;
    const WALL: u64 = 0x4000_0000;
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(child, nr::PTRACE, &[0, 0, 0, 0]), Some(Ok(0)));
        m.call(child, nr::KILL, &[pid, SIGSTOP]);
        m.report_interrupted(child);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, WALL, 0]), Some(Ok(pid)));
        assert_eq!(m.world.read(init, BUFFER) as u32, (SIGSTOP << 8 | 0x7f) as u32);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, WALL | 1, 0]), Some(Ok(0)), "a stop is told once");
        assert_eq!(m.call(init, nr::PTRACE, &[CONT, pid, 0, 0]), Some(Ok(0)));
        assert!(!m.thread(child).interrupted, "it stops once");
        assert_eq!(m.call(child, nr::EXIT_GROUP, &[3]), None);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, WALL, 0]), Some(Ok(pid)));
        assert_eq!(m.world.read(init, BUFFER) as u32, 0x300);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, WALL, 0]), Some(Err(Errno::ECHILD)));
        assert_eq!(m.world.pm.programs.system.threads.len(), 1);
    });
}

#[test]
fn a_tracer_attaches_once_and_kills_once() {
    const ATTACH: u64 = 16;
    const SEIZE: u64 = 0x4206;
    const KILL: u64 = 8;
    const INTERRUPT: u64 = 0x4207;
    at_every_step(|m| {
        let init = m.world.init;
        for request in [ATTACH, SEIZE] {
            let (pid, child) = m.fork(init);
            assert_eq!(m.call(init, nr::PTRACE, &[request, pid, 0, 0]), Some(Ok(0)));
            if request == SEIZE {
                assert_eq!(m.call(init, nr::PTRACE, &[INTERRUPT, pid, 0, 0]), Some(Ok(0)));
            }
            m.report_interrupted(child);
            assert_eq!(m.call(init, nr::PTRACE, &[KILL, pid, 0, 0]), Some(Ok(0)));
            assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0x4000_0000, 0]), Some(Ok(pid)));
            assert_eq!(m.world.read(init, BUFFER) as u32, 9);
        }
    });
}

#[test]
fn tracees_of_a_tracer_that_ends_go_on_or_die_as_it_has_wished() {
    const SEIZE: u64 = 0x4206;
    const EXITKILL: u64 = 1 << 20;
    for (options, lives) in [(0, true), (EXITKILL, false)] {
        at_every_step(|m| {
            let init = m.world.init;
            let (_, tracer) = m.fork(init);
            let (pid, child) = m.fork(init);
            assert_eq!(m.call(tracer, nr::PTRACE, &[SEIZE, pid, 0, options]), Some(Ok(0)));
            assert_eq!(m.call(tracer, nr::EXIT_GROUP, &[0]), None);
            m.report_interrupted(child);
            assert_eq!(m.world.is_there(child), lives);
            if lives {
                assert_eq!(m.call(child, nr::EXIT_GROUP, &[0]), None);
            }
            for _ in 0..2 {
                assert!(matches!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Ok(_))));
            }
            assert_eq!(m.call(init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), Some(Err(Errno::ECHILD)));
        });
    }
}

#[test]
fn a_signal_ends_its_target_once() {
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(child, nr::PAUSE, &[]), None);
        assert_eq!(m.call(init, nr::KILL, &[pid, SIGTERM]), Some(Ok(0)));
        m.report_interrupted(child);
        assert!(!m.world.is_there(child));
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
        assert_eq!(m.world.read(init, BUFFER) as u32, SIGTERM as u32);
    });
}

#[test]
fn sleepers_wake_at_their_time() {
    at_every_step(|m| {
        let init = m.world.init;
        let (_, child) = m.fork(init);
        m.world.write(child, BUFFER, &[2, 0]);
        assert_eq!(m.call(child, nr::NANOSLEEP, &[BUFFER, 0]), None);
        m.world.pm.programs.system.now_ns += 1_000_000_000;
        m.live(&|world| world.pm.handle_notification(Endpoint::CLOCK));
        assert_eq!(m.world.answer(child), None, "it has slept half of its time");
        m.world.pm.programs.system.now_ns += 1_000_000_000;
        m.live(&|world| world.pm.handle_notification(Endpoint::CLOCK));
        assert_eq!(m.world.answer(child), Some(Ok(0)));
    });
}

#[test]
fn a_call_that_kills_pm_twice_fails() {
    let mut m = Mortal::new();
    let init = m.world.init;
    let message = Message { source: init, words: [0, 0, 0, 0, 0, 0, 50], ..Message::new(nr::FORK) };
    for _ in 0..2 {
        m.thread(init).waits = true;
        m.world.pm.programs.system.dies_in = Some(1);
        assert!(catch_unwind(AssertUnwindSafe(|| m.world.pm.handle(&message))).is_err());
        m.thread(init).asks_again = true;
        m.world.pm.recover();
        m.thread(init).asks_again = false;
    }
    let again = Message { words: [0, 0, 0, 0, 0, 0, 50 | REPEATED], ..message };
    assert_eq!(m.world.pm.handle(&again).done().expect("answered").result(), Err(Errno::EIO));
    assert_eq!(m.world.pm.programs.system.threads.len(), 1);
}

#[test]
fn operations_on_semaphores_are_done_once_also_when_others_are_woken_by_them() {
    const RMID: u64 = 0;
    const GETVAL: u64 = 12;
    const SETVAL: u64 = 16;
    let change = |by: i16| u64::from(by as u16) << 16;
    at_every_step(|m| {
        let init = m.world.init;
        let (_, child) = m.fork(init);
        let set = m.call(init, nr::SEMGET, &[0, 1, 0o1600]).expect("answered").expect("made");
        m.world.write(child, BUFFER, &[change(-2)]);
        m.world.write(init, BUFFER, &[change(3)]);
        for wakes in [&[set, BUFFER, 1][..], &[set, 0, SETVAL, 3]] {
            assert_eq!(m.call(child, nr::SEMOP, &[set, BUFFER, 1]), None);
            let number = if wakes.len() == 3 { nr::SEMOP } else { nr::SEMCTL };
            assert_eq!(m.call(init, number, wakes), Some(Ok(0)));
            assert_eq!(m.world.answer(child), Some(Ok(0)));
            assert_eq!(m.call(init, nr::SEMCTL, &[set, 0, GETVAL]), Some(Ok(1)));
        }
        assert_eq!(m.call(child, nr::SEMOP, &[set, BUFFER, 1]), None);
        assert_eq!(m.call(init, nr::SEMCTL, &[set, 0, RMID]), Some(Ok(0)));
        assert_eq!(m.world.answer(child), Some(Err(Errno::EIDRM)));
    });
}

#[test]
fn messages_are_sent_and_received_once_also_when_others_are_woken_by_them() {
    const RMID: u64 = 0;
    const NOWAIT: u64 = 0o4000;
    at_every_step(|m| {
        let init = m.world.init;
        let (_, child) = m.fork(init);
        let queue = m.call(init, nr::MSGGET, &[0, 0o1600]).expect("answered").expect("made");
        m.world.write(init, BUFFER, &[7, 1234]);
        for _ in 0..2 {
            assert_eq!(m.call(child, nr::MSGRCV, &[queue, BUFFER, 8, 0, 0]), None);
            assert_eq!(m.call(init, nr::MSGSND, &[queue, BUFFER, 8, 0]), Some(Ok(0)));
            assert_eq!(m.world.answer(child), Some(Ok(8)));
            assert_eq!(m.world.read(child, BUFFER + 8), 1234);
            assert_eq!(m.call(init, nr::MSGRCV, &[queue, BUFFER, 8, 0, NOWAIT]), Some(Err(Errno::ENOMSG)));
        }
        assert_eq!(m.call(child, nr::MSGRCV, &[queue, BUFFER, 8, 0, 0]), None);
        assert_eq!(m.call(init, nr::MSGCTL, &[queue, RMID]), Some(Ok(0)));
        assert_eq!(m.world.answer(child), Some(Err(Errno::EIDRM)));
    });
}
