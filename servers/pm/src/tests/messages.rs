//! System V message queues: waiting, who gets a message, limits, rights, and what deaths leave.

use super::{Answer, DONE, MEMORY, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno};
use std::vec::Vec;

const LETTER: u64 = MEMORY.start + 0x100;
const PLACE: u64 = MEMORY.start + 0x3000;
const STATUS: u64 = MEMORY.start + 0x800;
const KEY: u64 = 7;
const CREATE: u64 = 0o1000;
const NO_WAIT: u64 = 0o4000;
const TRUNCATE: u64 = 0o10000;
const RMID: u64 = 0;
const SET: u64 = 1;
const STAT: u64 = 2;
const USR1: u64 = 10;

/// A world with one queue, made by the first process.
struct Scene {
    world: World,
    init: Endpoint,
    id: u64,
}

fn scene() -> Scene {
    let mut world = World::new();
    let init = world.init;
    let id = world.call(init, nr::MSGGET, &[KEY, CREATE | 0o600]).unwrap().unwrap();
    Scene { world, init, id }
}

impl Scene {
    fn send(&mut self, thread: Endpoint, kind: u64, text: &[u8], flags: u64) -> Answer {
        self.world.write(thread, LETTER, &[kind]);
        self.world.write_bytes(thread, LETTER + 8, text);
        self.world.call(thread, nr::MSGSND, &[self.id, LETTER, text.len() as u64, flags])
    }

    fn receive(&mut self, thread: Endpoint, bytes: u64, kind: i64, flags: u64) -> Answer {
        self.world.call(thread, nr::MSGRCV, &[self.id, PLACE, bytes, kind as u64, flags])
    }

    /// Type and text that have been received.
    fn received(&mut self, thread: Endpoint, bytes: usize) -> (u64, Vec<u8>) {
        (self.world.read(thread, PLACE), self.world.read_bytes(thread, PLACE + 8, bytes))
    }

    fn control(&mut self, thread: Endpoint, command: u64) -> Answer {
        self.world.call(thread, nr::MSGCTL, &[self.id, command, STATUS])
    }

    /// Bytes, messages and limit of the queue.
    fn used(&mut self) -> [u64; 3] {
        assert_eq!(self.control(self.init, STAT), DONE);
        self.world.words::<3>(self.init, STATUS + 72)
    }

    fn set_limit(&mut self, thread: Endpoint, limit: u64) -> Answer {
        assert_eq!(self.control(thread, STAT), DONE);
        self.world.write(thread, STATUS + 88, &[limit]);
        self.control(thread, SET)
    }

    fn fork(&mut self) -> Endpoint {
        self.world.fork(self.init).1
    }
}

#[test]
fn a_message_goes_to_whoever_has_waited_longest_for_its_type() {
    let mut s = scene();
    let [first, second, third] = [(); 3].map(|()| s.fork());
    assert_eq!(s.receive(first, 10, 2, 0), None);
    assert_eq!(s.receive(second, 10, -5, 0), None);
    assert_eq!(s.receive(third, 10, 0, 0), None);
    assert_eq!(s.send(s.init, 3, b"abc", 0), DONE);
    assert_eq!([first, second, third].map(|thread| s.world.answer(thread)), [None, Some(Ok(3)), None]);
    assert_eq!(s.received(second, 3), (3, b"abc".to_vec()));
    assert_eq!(s.send(s.init, 2, b"", 0), DONE);
    assert_eq!(s.send(s.init, 2, b"x", 0), DONE);
    assert_eq!([first, third].map(|thread| s.world.answer(thread)), [Some(Ok(0)), Some(Ok(1))]);
    assert_eq!(s.used(), [0, 0, 16384]);
}

#[test]
fn a_message_too_long_for_one_receiver_is_for_the_next() {
    let mut s = scene();
    let [small, truncating] = [(); 2].map(|()| s.fork());
    assert_eq!(s.receive(small, 2, 0, 0), None);
    assert_eq!(s.receive(truncating, 2, 0, TRUNCATE), None);
    assert_eq!(s.send(s.init, 1, b"abc", 0), DONE);
    assert_eq!((s.world.answer(small), s.world.answer(truncating)), (failed(Errno::E2BIG), Some(Ok(2))));
    assert_eq!(s.send(s.init, 1, b"abc", 0), DONE);
    assert_eq!(s.world.call(small, nr::MSGRCV, &[s.id, 8, 10, 0, 0]), failed(Errno::EFAULT));
    assert_eq!(s.used(), [3, 1, 16384], "it stays");
}

#[test]
fn each_of_many_senders_sends_when_the_one_before_was_received() {
    let mut s = scene();
    assert_eq!(s.set_limit(s.init, 4), DONE);
    assert_eq!(s.send(s.init, 1, b"full", 0), DONE);
    let senders: Vec<Endpoint> = (0..20).map(|_| s.fork()).collect();
    let receivers: Vec<Endpoint> = (0..20).map(|_| s.fork()).collect();
    for (&sender, &receiver) in senders.iter().zip(&receivers) {
        assert_eq!(s.send(sender, 2, b"more", NO_WAIT), failed(Errno::EAGAIN));
        assert_eq!(s.send(sender, 2, b"more", 0), None);
        assert_eq!(s.receive(receiver, 4, 2, 0), None);
    }
    assert_eq!(s.receive(s.init, 4, 1, 0), Some(Ok(4)));
    assert!(senders.iter().all(|sender| s.world.answer(*sender) == DONE));
    assert!(receivers.iter().all(|receiver| s.world.answer(*receiver) == Some(Ok(4))));
    assert_eq!(s.used(), [0, 0, 4]);
}

#[test]
fn a_wider_limit_lets_senders_go_on_and_root_alone_sets_one_beyond_the_usual() {
    let mut s = scene();
    assert_eq!(s.set_limit(s.init, 2), DONE);
    let sender = s.fork();
    assert_eq!(s.send(sender, 1, b"abc", 0), None);
    assert_eq!(s.set_limit(s.init, 100_000), DONE);
    assert_eq!(s.world.answer(sender), DONE);
    let (_, owner) = s.world.user(1000, 100);
    s.id = s.world.call(owner, nr::MSGGET, &[KEY + 1, CREATE | 0o600]).unwrap().unwrap();
    assert_eq!((s.set_limit(owner, 16384), s.set_limit(owner, 16385)), (DONE, failed(Errno::EPERM)));
}

#[test]
fn a_handler_ends_a_wait_which_is_not_repeated() {
    let mut s = scene();
    assert_eq!(s.set_limit(s.init, 2), DONE);
    for sends in [true, false] {
        let (pid, child) = s.world.fork(s.init);
        s.world.handle_signal(child, USR1, 0x1000_0000);
        let waits = if sends { s.send(child, 1, b"abc", 0) } else { s.receive(child, 4, 0, 0) };
        assert_eq!(waits, None);
        s.world.call(s.init, nr::KILL, &[pid, USR1]);
        s.world.thread(child).registers.rsp += 8;
        s.world.call(child, nr::RT_SIGRETURN, &[]);
        assert_eq!(s.world.thread(child).registers.rax, -4i64 as u64);
        assert_eq!(s.send(s.init, 1, b"a", 0), DONE, "it is for nobody who waited");
        assert_eq!(s.receive(s.init, 4, 0, 0), Some(Ok(1)));
    }
}

#[test]
fn a_waiter_that_was_killed_takes_nothing() {
    let mut s = scene();
    let (pid, killed) = s.world.fork(s.init);
    let other = s.fork();
    assert_eq!((s.receive(killed, 4, 0, 0), s.receive(other, 4, 0, 0)), (None, None));
    s.world.call(s.init, nr::KILL, &[pid, 9]);
    assert_eq!(s.send(s.init, 1, b"abc", 0), DONE);
    assert_eq!(s.world.answer(other), Some(Ok(3)));
}

#[test]
fn removal_ends_waits() {
    let mut s = scene();
    assert_eq!(s.set_limit(s.init, 2), DONE);
    let [sender, receiver] = [(); 2].map(|()| s.fork());
    assert_eq!((s.send(sender, 1, b"abc", 0), s.receive(receiver, 4, 0, 0)), (None, None));
    assert_eq!(s.control(s.init, RMID), DONE);
    assert_eq!([sender, receiver].map(|thread| s.world.answer(thread)), [failed(Errno::EIDRM); 2]);
    assert_eq!(s.send(s.init, 1, b"", 0), failed(Errno::EINVAL));
}

#[test]
fn a_user_gets_64_queues_and_half_of_all_bytes() {
    let mut s = scene();
    let (_, user) = s.world.user(1000, 100);
    let made: Vec<u64> = core::iter::from_fn(|| s.world.call(user, nr::MSGGET, &[0, 0o600]).unwrap().ok()).collect();
    assert_eq!(made.len(), 64);
    assert_eq!(s.world.call(user, nr::MSGGET, &[0, 0o600]), failed(Errno::ENOSPC));
    let text = [1; 4000];
    let sent = made.iter().flat_map(|id| [*id; 4]).take_while(|id| {
        s.id = *id;
        s.send(user, 1, &text, NO_WAIT) == DONE
    });
    assert_eq!(sent.count(), (1 << 19) / (4000 + 64));
    assert_eq!(s.send(user, 1, &text, NO_WAIT), failed(Errno::ENOMEM));
    let (_, other) = s.world.user(1001, 100);
    s.id = s.world.call(other, nr::MSGGET, &[0, 0o600]).unwrap().unwrap();
    assert_eq!(s.send(other, 1, &text, NO_WAIT), DONE);
}
