//! Descriptors that signals are read from: the tests are pm, of which vfs asks the signals.

use super::*;
use abi::{Endpoint, Errno, Message, endpoint::slot, linux::nr, pm, vfs};

const PM: Endpoint = Endpoint::new(slot::PM, 1);
const MASK: u64 = 1 << 9 | 1 << 39;
const KILL_AND_STOP: u64 = 1 << 8 | 1 << 18;
const INFO: u64 = 128;
const FOR_EVER: u64 = u64::MAX;

fn create(world: &World, mask: u64, flags: u64) -> u64 {
    let address = world.words(world.root, &[mask]);
    world.call(world.root, nr::SIGNALFD4, &[u64::MAX, address, 8, flags]).unwrap()
}

/// The next request of vfs to pm.
fn asked(world: &World) -> Option<(Message, pm::Request)> {
    loop {
        let message = world.machine.received(PM)?;
        if let Some(request) = pm::Request::decode(&message) {
            return Some((message, request));
        }
    }
}

fn answer(world: &World, request: &Message, result: Result<u64>) {
    world.machine.send(PM, Endpoint::VFS, &request.reply(result));
    world.machine.run();
}

/// vfs asks pm to take signals, and gets this answer.
fn takes(world: &World, result: Result<u64>) -> pm::TakeSignals {
    match asked(world) {
        Some((message, pm::Request::TakeSignals(request))) => {
            answer(world, &message, result);
            request
        }
        other => panic!("vfs takes no signals: {other:?}"),
    }
}

/// vfs asks pm which signals are pending.
fn awaits(world: &World, result: Result<u64>) -> pm::AwaitSignals {
    awaits_after(world, result, 1)
}

/// The same, after so many signals.
fn awaits_after(world: &World, result: Result<u64>, arrivals: u64) -> pm::AwaitSignals {
    match asked(world) {
        Some((message, pm::Request::AwaitSignals(request))) => {
            let reply = match result {
                Ok(pending) => pm::AwaitSignals::reply(&message, 0, pending, arrivals),
                Err(error) => message.reply(Err(error)),
            };
            world.machine.send(PM, Endpoint::VFS, &reply);
            world.machine.run();
            request
        }
        other => panic!("vfs awaits no signals: {other:?}"),
    }
}

fn arrives(world: &World, process: Endpoint) {
    assert_eq!(world.call_as_pm(vfs::SignalsPending { process }.message()), Ok(0));
    world.machine.run();
}

fn begin_read(world: &World, descriptor: u64, bytes: u64) -> Option<Result<u64>> {
    world.begin_call(world.root, nr::READ, &[descriptor, DATA, bytes])
}

fn begin_poll(world: &World, descriptor: u64, timeout: u64) -> Option<Result<u64>> {
    let address = world.words(world.root, &[descriptor | u64::from(POLLIN) << 32]);
    world.begin_call(world.root, nr::POLL, &[address, 1, timeout])
}

#[test]
fn a_read_gives_what_pm_has_taken() {
    let world = World::new();
    let signals = create(&world, MASK | KILL_AND_STOP, 0);
    assert_eq!(begin_read(&world, signals, 5 * INFO + 1), None);
    let request = takes(&world, Ok(2));
    assert_eq!((request.process, request.mask, request.address, request.count), (world.root, MASK, DATA, 5));
    assert_eq!(world.result(world.root), Some(Ok(2 * INFO)));
    assert_eq!(begin_read(&world, signals, INFO - 1), Some(Err(Errno::EINVAL)));
    assert_eq!(begin_read(&world, signals, INFO), None);
    takes(&world, Err(Errno::EFAULT));
    assert_eq!(world.result(world.root), Some(Err(Errno::EFAULT)));
}

#[test]
fn a_read_waits_until_pm_tells_of_a_signal() {
    let world = World::new();
    let signals = create(&world, MASK, 0);
    assert_eq!(begin_read(&world, signals, INFO), None);
    let first = takes(&world, Err(Errno::EAGAIN));
    assert!(first.watch && asked(&world).is_none(), "it does not ask while it waits");
    arrives(&world, world.root);
    let second = takes(&world, Ok(1));
    assert_eq!(first.call, second.call);
    assert_eq!(world.result(world.root), Some(Ok(INFO)));
    let impatient = create(&world, MASK, O_NONBLOCK);
    assert_eq!(begin_read(&world, impatient, INFO), None);
    assert!(!takes(&world, Err(Errno::EAGAIN)).watch);
    assert_eq!(world.result(world.root), Some(Err(Errno::EAGAIN)));
}

#[test]
fn a_signal_with_a_handler_ends_the_wait_but_not_what_pm_is_taking() {
    let world = World::new();
    let signals = create(&world, MASK, 0);
    assert_eq!(begin_read(&world, signals, INFO), None);
    let (question, _) = asked(&world).expect("it asks");
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Err(Errno::ENOENT));
    answer(&world, &question, Ok(1));
    assert_eq!(world.result(world.root), Some(Ok(INFO)), "the signal is not lost");
    assert_eq!(begin_read(&world, signals, INFO), None);
    let (question, _) = asked(&world).expect("it asks");
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Err(Errno::ENOENT));
    answer(&world, &question, Err(Errno::EAGAIN));
    assert_eq!(world.result(world.root), Some(Err(Errno::ERESTARTSYS)));
    assert_eq!(begin_read(&world, signals, INFO), None);
    takes(&world, Err(Errno::EAGAIN));
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::ERESTARTSYS)));
}

#[test]
fn another_set_is_looked_at_at_once() {
    let world = World::new();
    let signals = create(&world, MASK, 0);
    let child = world.fork(world.root, vfs::FORK_FILES);
    assert_eq!(begin_read(&world, signals, INFO), None);
    takes(&world, Err(Errno::EAGAIN));
    let set = |descriptor: u64, mask: u64, bytes: u64| {
        let address = world.words(child, &[mask]);
        world.call(child, nr::SIGNALFD4, &[descriptor, address, bytes, 0])
    };
    assert_eq!(set(signals, 1 << 11, 8), Ok(signals));
    assert_eq!(takes(&world, Ok(1)).mask, 1 << 11);
    assert_eq!(world.result(world.root), Some(Ok(INFO)));
    assert_eq!(set(signals, 1, 4), Err(Errno::EINVAL));
    assert_eq!(set(90, 1, 8), Err(Errno::EBADF));
    let (end, _) = world.pipe(child, 0);
    assert_eq!(set(end, 1, 8), Err(Errno::EINVAL));
    assert_eq!(world.call(child, nr::SIGNALFD4, &[u64::MAX, 8, 8, 0]), Err(Errno::EFAULT));
    let address = world.words(child, &[1]);
    assert_eq!(world.call(child, nr::SIGNALFD4, &[u64::MAX, address, 8, 1]), Err(Errno::EINVAL));
}

#[test]
fn poll_asks_once_and_then_waits_for_the_signal() {
    let world = World::new();
    let signals = create(&world, MASK, 0);
    assert_eq!(begin_poll(&world, signals, 0), None);
    assert_eq!(awaits(&world, Ok(0)).mask, MASK);
    assert_eq!(world.result(world.root), Some(Ok(0)));
    assert_eq!(begin_poll(&world, signals, 0), Some(Ok(0)), "pm would have told");
    assert_eq!(begin_poll(&world, signals, FOR_EVER), None);
    assert!(asked(&world).is_none());
    arrives(&world, world.root);
    awaits(&world, Ok(1 << 9));
    assert_eq!(world.result(world.root), Some(Ok(1)));
    assert_eq!(begin_poll(&world, signals, FOR_EVER), None);
    awaits(&world, Ok(1 << 9));
    assert_eq!(world.result(world.root), Some(Ok(1)), "it is still pending");
}

#[test]
fn an_epoll_reports_signals_of_the_one_who_waits() {
    let mut world = World::new();
    let signals = create(&world, MASK, O_NONBLOCK);
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let event = world.words(world.root, &[u64::from(POLLIN) | 7 << 32, 0]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, 1, signals, event]), Ok(0));
    let wait = |world: &World, who: Endpoint| world.begin_call(who, nr::EPOLL_WAIT, &[epoll, DATA, 4, FOR_EVER]);
    assert_eq!(wait(&world, world.root), None);
    assert_eq!(awaits(&world, Ok(0)).process, world.root);
    arrives(&world, world.root);
    awaits(&world, Ok(1 << 9));
    assert_eq!(world.result(world.root), Some(Ok(1)));
    world.restart_vfs();
    let child = world.fork(world.root, 0);
    assert_eq!(wait(&world, child), None);
    assert_eq!(awaits(&world, Ok(1 << 39)).process, child);
    assert_eq!(world.result(child), Some(Ok(1)));
}

/// An epoll of the descriptor by edge.
fn by_edge(world: &World, descriptor: u64) -> u64 {
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let event = world.words(world.root, &[u64::from(POLLIN) | 1 << 31 | 7 << 32, 0]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, 1, descriptor, event]), Ok(0));
    epoll
}

#[test]
fn an_epoll_by_edge_reports_each_arrival_once() {
    let mut world = World::new();
    let signals = create(&world, MASK, O_NONBLOCK);
    let epoll = by_edge(&world, signals);
    let wait = |world: &World, time: u64| world.begin_call(world.root, nr::EPOLL_WAIT, &[epoll, DATA, 4, time]);
    assert_eq!(wait(&world, 0), None);
    assert!(!awaits_after(&world, Ok(1 << 9), 5).any, "nothing was told yet");
    assert_eq!(world.result(world.root), Some(Ok(1)));
    assert_eq!(wait(&world, FOR_EVER), None);
    assert!(awaits_after(&world, Ok(1 << 9), 5).any);
    assert!(asked(&world).is_none(), "pm tells");
    arrives(&world, world.root);
    awaits_after(&world, Ok(1 << 9), 6);
    assert_eq!(world.result(world.root), Some(Ok(1)));
    world.restart_vfs();
    assert_eq!(wait(&world, 0), None);
    assert!(awaits_after(&world, Ok(1 << 9), 6).any);
    assert_eq!(world.result(world.root), Some(Ok(0)), "it was told before the death");
    assert_eq!(begin_read(&world, signals, INFO), None);
    takes(&world, Ok(1));
    assert_eq!(world.result(world.root), Some(Ok(INFO)));
    assert_eq!(wait(&world, 0), Some(Ok(0)), "a read is no arrival");
    let other = world.words(world.root, &[1 << 11]);
    assert_eq!(world.call(world.root, nr::SIGNALFD4, &[signals, other, 8, 0]), Ok(signals));
    assert_eq!(wait(&world, 0), None);
    awaits_after(&world, Ok(1 << 11), 6);
    assert_eq!(world.result(world.root), Some(Ok(1)), "another set tells of what is pending");
}

#[test]
fn what_arrives_before_the_next_wait_is_one_edge() {
    let world = World::new();
    let signals = create(&world, MASK, O_NONBLOCK);
    let epoll = by_edge(&world, signals);
    let wait = |time: u64| world.begin_call(world.root, nr::EPOLL_WAIT, &[epoll, DATA, 4, time]);
    assert_eq!(wait(1), None);
    awaits_after(&world, Ok(0), 1);
    world.machine.advance_ns(2_000_000);
    assert_eq!(world.result(world.root), Some(Ok(0)));
    arrives(&world, world.root);
    awaits_after(&world, Ok(1 << 9), 2);
    assert_eq!(wait(0), None);
    awaits_after(&world, Ok(1 << 9), 3);
    assert_eq!(world.result(world.root), Some(Ok(1)));
    assert_eq!(wait(0), None);
    awaits_after(&world, Ok(1 << 9), 3);
    assert_eq!(world.result(world.root), Some(Ok(0)));
}

#[test]
fn who_waits_with_the_question_of_another_thread_asks_itself_when_that_ends() {
    let world = World::new();
    let signals = create(&world, MASK, O_NONBLOCK);
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let event = world.words(world.root, &[u64::from(POLLIN) | 7 << 32, 0]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, 1, signals, event]), Ok(0));
    let thread = world.fork(world.root, vfs::FORK_FILES);
    for who in [thread, world.root] {
        assert_eq!(world.begin_call(who, nr::EPOLL_WAIT, &[epoll, DATA, 4, FOR_EVER]), None);
    }
    assert_eq!(awaits(&world, Ok(0)).process, thread);
    assert!(asked(&world).is_none());
    world.machine.forget_request(thread);
    assert_eq!(world.call_as_pm(vfs::Exit { process: thread }.message()), Ok(0));
    world.machine.run();
    assert_eq!(awaits(&world, Ok(1 << 9)).process, world.root);
    assert_eq!(world.result(world.root), Some(Ok(1)));
}

#[test]
fn a_successor_asks_for_the_same_call_again() {
    let mut world = World::new();
    let signals = create(&world, MASK, 0);
    assert_eq!(begin_read(&world, signals, INFO), None);
    let first = takes(&world, Err(Errno::EAGAIN));
    world.machine.forget_request(world.root);
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::READ, &[signals, DATA, INFO]), None);
    let second = takes(&world, Ok(1));
    assert_eq!(first, second);
    assert_eq!(world.result(world.root), Some(Ok(INFO)));
}
