//! Epolls in epolls and in poll, devices in epolls, and what a user may register.

use super::{
    epoll::{ADD, DEL, ET, FOREVER, IN, MOD, OUT, begin, control, counter, create, now, post, reported, take},
    *,
};
use abi::{Endpoint, Errno, chardev::Request, linux::nr};

fn pollfd(world: &World, who: Endpoint, file: u64) -> u64 {
    world.words(who, &[file | u64::from(POLLIN | POLLOUT) << 32])
}

/// What poll tells of a descriptor.
fn polled(world: &World, file: u64) -> u16 {
    let address = pollfd(world, world.root, file);
    world.call(world.root, nr::POLL, &[address, 1, 0]).unwrap();
    (world.read_words(world.root, address, 1)[0] >> 48) as u16
}

fn terminal(world: &World) -> u64 {
    let device = [u64::from(S_IFCHR) | 0o666, 0x405];
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/tty5", &device), Ok(0));
    world.open(world.root, "/tty5", O_RDWR | O_NONBLOCK, 0).unwrap()
}

/// Questions that the terminal has been asked since the last time.
fn questions(world: &World) -> usize {
    let asked = std::mem::take(&mut world.terminal().asked);
    asked.iter().filter(|request| matches!(request, Request::Poll(_))).count()
}

#[test]
fn an_epoll_is_readable_when_something_in_it_is_ready() {
    let world = World::new();
    let (outer, inner, file) = (create(&world), create(&world), counter(&world, 0));
    assert_eq!(control(&world, inner, ADD, file, IN), Ok(0));
    assert_eq!(control(&world, outer, ADD, inner, IN), Ok(0));
    assert_eq!((polled(&world, inner), now(&world, outer)), (0, vec![]));
    let waiters = [(); 2].map(|()| world.fork(world.root, 0));
    assert_eq!(begin(&world, waiters[0], outer, 1, FOREVER), None);
    let address = pollfd(&world, waiters[1], inner);
    assert_eq!(world.begin_call(waiters[1], nr::POLL, &[address, 1, FOREVER]), None);
    post(&world, file);
    assert_eq!(waiters.map(|who| world.result(who)), [Some(Ok(1)); 2]);
    assert_eq!(reported(&world, waiters[0], 1), [(inner, IN)]);
    assert_eq!((polled(&world, inner), polled(&world, outer)), (POLLIN, POLLIN));
    take(&world, file);
    assert_eq!((polled(&world, inner), polled(&world, outer), now(&world, outer)), (0, 0, vec![]));
}

#[test]
fn an_edge_goes_through_all_levels() {
    let world = World::new();
    let (outer, inner, file) = (create(&world), create(&world), counter(&world, 0));
    assert_eq!(control(&world, outer, ADD, inner, IN | ET), Ok(0));
    assert_eq!(control(&world, inner, ADD, file, IN), Ok(0));
    assert_eq!(now(&world, outer), []);
    for _ in 0..2 {
        post(&world, file);
        assert_eq!((now(&world, outer), now(&world, outer)), (vec![(inner, IN)], vec![]));
    }
}

#[test]
fn the_times_in_an_inner_epoll_are_those_of_the_outer() {
    const S: u64 = 1_000_000_000;
    let world = World::new();
    let (outer, inner) = (create(&world), create(&world));
    assert_eq!(control(&world, outer, ADD, inner, IN), Ok(0));
    let timers = [3, 5].map(|seconds| {
        let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, O_NONBLOCK]).unwrap();
        let spec = world.words(world.root, &[0, 0, seconds, 0]);
        assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, spec, 0]), Ok(0));
        assert_eq!(control(&world, inner, ADD, timer, IN), Ok(0));
        timer
    });
    for (timer, wait_s) in timers.into_iter().zip([3, 2]) {
        assert_eq!(begin(&world, world.root, outer, 1, FOREVER), None);
        world.machine.advance_ns(wait_s * S - 1);
        assert_eq!(world.result(world.root), None);
        world.machine.advance_ns(1);
        assert_eq!((world.result(world.root), reported(&world, world.root, 1)), (Some(Ok(1)), vec![(inner, IN)]));
        assert_eq!(now(&world, inner), [(timer, IN)]);
        world.close(world.root, timer).unwrap();
    }
    assert_eq!(now(&world, outer), []);
}

#[test]
fn a_terminal_is_asked_although_something_else_is_always_ready() {
    let world = World::new();
    let (epoll, tty, file) = (create(&world), terminal(&world), counter(&world, 1));
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    assert_eq!(control(&world, epoll, ADD, tty, IN), Ok(0));
    world.enter(b"line\n");
    assert_eq!(now(&world, epoll), [(file, IN)], "it is not waited for");
    assert_eq!(now(&world, epoll), [(file, IN), (tty, IN)]);
}

#[test]
fn epolls_form_no_circle_and_few_levels() {
    let world = World::new();
    let epolls: Vec<u64> = (0..6).map(|_| create(&world)).collect();
    let nest = |outer: usize, inner: usize| control(&world, epolls[outer], ADD, epolls[inner], IN);
    assert_eq!((nest(0, 1), nest(1, 0)), (Ok(0), Err(Errno::ELOOP)));
    assert_eq!((nest(1, 2), nest(2, 0)), (Ok(0), Err(Errno::ELOOP)));
    assert_eq!((nest(4, 5), nest(3, 4)), (Ok(0), Ok(0)));
    assert_eq!(nest(2, 3), Err(Errno::ELOOP), "six levels");
    assert_eq!(control(&world, epolls[4], DEL, epolls[5], 0), Ok(0));
    assert_eq!(nest(2, 3), Ok(0), "five");
    assert_eq!(nest(4, 5), Err(Errno::ELOOP), "counted from the top too");
    let top = create(&world);
    assert_eq!(control(&world, top, ADD, epolls[0], IN), Err(Errno::ELOOP));
    let file = counter(&world, 1);
    assert_eq!(control(&world, epolls[4], ADD, file, IN), Ok(0));
    assert_eq!(now(&world, epolls[0]), [(epolls[1], IN)]);
}

#[test]
fn an_epoll_is_in_four_others_at_most() {
    let world = World::new();
    let inner = create(&world);
    let added: Vec<_> = (0..5).map(|_| control(&world, create(&world), ADD, inner, IN)).collect();
    assert_eq!(added, [Ok(0), Ok(0), Ok(0), Ok(0), Err(Errno::EINVAL)]);
}

#[test]
fn a_terminal_is_asked_while_somebody_waits() {
    let world = World::new();
    let (epoll, tty, file) = (create(&world), terminal(&world), counter(&world, 0));
    questions(&world);
    assert_eq!(control(&world, epoll, ADD, tty, IN), Ok(0));
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    assert_eq!(questions(&world), 0, "nobody waits");
    assert_eq!(now(&world, epoll), []);
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 9, FOREVER), None);
    assert_eq!((questions(&world), world.terminal().waiting()), (2, 1));
    for _ in 0..3 {
        post(&world, file);
        assert_eq!(world.result(child), Some(Ok(1)));
        take(&world, file);
        assert_eq!(begin(&world, child, epoll, 9, FOREVER), None);
    }
    assert_eq!((questions(&world), world.terminal().waiting()), (0, 1), "one question is enough");
    world.enter(b"line\n");
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(tty, IN)]));
    assert_eq!(now(&world, epoll), [(tty, IN)], "it was not read");
    assert_eq!(world.read(world.root, tty, 100).unwrap(), b"line\n");
    assert_eq!(now(&world, epoll), []);
}

#[test]
fn a_terminal_that_leaves_is_asked_no_more() {
    let world = World::new();
    let (epoll, tty) = (create(&world), terminal(&world));
    let child = world.fork(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, tty, IN), Ok(0));
    assert_eq!(begin(&world, child, epoll, 9, FOREVER), None);
    assert_eq!(world.terminal().waiting(), 1);
    assert_eq!(control(&world, epoll, MOD, tty, IN | OUT), Ok(0));
    assert_eq!(
        (world.result(child), world.terminal().waiting()),
        (Some(Ok(1)), 0),
        "it is asked for what is wanted now"
    );
    assert_eq!(control(&world, epoll, MOD, tty, IN), Ok(0));
    assert_eq!(begin(&world, child, epoll, 9, 10), None);
    assert_eq!(world.terminal().waiting(), 1);
    assert_eq!(control(&world, epoll, DEL, tty, 0), Ok(0));
    assert_eq!(world.terminal().waiting(), 0);
    world.machine.advance_ns(10_000_000);
    assert_eq!(world.result(child), Some(Ok(0)));
}

#[test]
fn an_edge_of_a_terminal_is_told_again_after_a_transfer() {
    let world = World::new();
    let (epoll, tty) = (create(&world), terminal(&world));
    assert_eq!(control(&world, epoll, ADD, tty, IN | OUT | ET), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(tty, OUT)], vec![]));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    world.enter(b"a");
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(tty, IN)]));
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None, "it was told");
    assert_eq!(world.read(world.root, tty, 100).unwrap(), b"a");
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(tty, OUT)]));
}

#[test]
fn an_edge_of_a_terminal_that_was_told_is_not_told_by_a_successor() {
    let mut world = World::new();
    let (epoll, tty) = (create(&world), terminal(&world));
    assert_eq!(control(&world, epoll, ADD, tty, IN | OUT | ET), Ok(0));
    world.enter(b"a");
    assert_eq!(now(&world, epoll), [(tty, IN | OUT)]);
    world.restart_vfs();
    assert_eq!(now(&world, epoll), []);
    assert_eq!(world.read(world.root, tty, 100).unwrap(), b"a");
    world.restart_vfs();
    assert_eq!(now(&world, epoll), [(tty, OUT)]);
}

#[test]
fn a_terminal_is_found_through_an_epoll_in_poll_and_in_another() {
    let world = World::new();
    let (outer, inner, tty) = (create(&world), create(&world), terminal(&world));
    assert_eq!(control(&world, inner, ADD, tty, IN), Ok(0));
    assert_eq!(control(&world, outer, ADD, inner, IN), Ok(0));
    assert_eq!((polled(&world, inner), polled(&world, outer), now(&world, outer)), (0, 0, vec![]));
    let waiters = [(); 2].map(|()| world.fork(world.root, 0));
    assert_eq!(begin(&world, waiters[0], outer, 1, FOREVER), None);
    let address = pollfd(&world, waiters[1], outer);
    assert_eq!(world.begin_call(waiters[1], nr::POLL, &[address, 1, FOREVER]), None);
    assert_eq!(world.terminal().waiting(), 1, "one question for both");
    world.enter(b"line\n");
    assert_eq!(waiters.map(|who| world.result(who)), [Some(Ok(1)); 2]);
    assert_eq!((polled(&world, inner), polled(&world, outer)), (POLLIN, POLLIN));
    assert_eq!(world.read(world.root, tty, 100).unwrap(), b"line\n");
    assert_eq!((polled(&world, outer), now(&world, outer)), (0, vec![]));
}

#[test]
fn a_wait_for_a_terminal_goes_on_after_a_death() {
    let mut world = World::new();
    let (epoll, tty) = (create(&world), terminal(&world));
    assert_eq!(control(&world, epoll, ADD, tty, IN), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(world.repeat_call(child, nr::EPOLL_WAIT, &[epoll, DATA + 0x1000, 1, FOREVER]), None);
    world.enter(b"line\n");
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(tty, IN)]));
}

#[test]
fn users_share_registrations_and_root_finds_some() {
    let world = World::new();
    let register = |who: Endpoint, file: u64| {
        let epoll = world.call(who, nr::EPOLL_CREATE1, &[0]).unwrap();
        let event = super::epoll::event(&world, who, IN, 0);
        let add = |file| world.call(who, nr::EPOLL_CTL, &[epoll, ADD, file, event]);
        world.set_limits(who, 2000, u64::MAX);
        let results: Vec<_> = (0..600)
            .map(|_| add(world.call(who, nr::DUP, &[file]).expect("there are descriptors enough")))
            .take_while(|result| *result == Ok(0))
            .collect();
        (results.len(), epoll)
    };
    let file = counter(&world, 0);
    let users = [world.user(1000, 1000), world.user(1001, 1001)];
    let [(first, epoll), (second, _)] = users.map(|user| register(user, file));
    assert_eq!((first, second), (256, 224), "half of them, and what is not kept for root");
    assert!(register(world.root, file).0 > 0);
    world.close(users[0], epoll).unwrap();
    assert_eq!(register(users[1], file).0, 32, "what the first had is free, up to a half");
}

#[test]
fn terminals_are_few() {
    let world = World::new();
    let (epoll, tty) = (create(&world), terminal(&world));
    let user = world.user(1000, 1000);
    let event = super::epoll::event(&world, user, IN, 0);
    let add = |file| world.call(user, nr::EPOLL_CTL, &[epoll, ADD, file, event]);
    let results: Vec<_> = (0..65).map(|_| add(world.call(user, nr::DUP, &[tty]).unwrap())).collect();
    assert_eq!((results[63], results[64]), (Ok(0), Err(Errno::ENOSPC)));
    assert_eq!(control(&world, epoll, ADD, tty, IN), Ok(0), "root has a share of its own");
}

#[test]
fn registrations_that_come_and_go_leave_nothing() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    for _ in 0..2000 {
        assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
        assert_eq!(control(&world, epoll, DEL, file, 0), Ok(0));
        let other = counter(&world, 1);
        assert_eq!(control(&world, epoll, ADD, other, IN), Ok(0));
        world.close(world.root, other).unwrap();
    }
    assert_eq!(now(&world, epoll), []);
}
