//! Epolls whose vfs dies: registrations are kept, nothing is lost, and nothing is done twice.

use super::{
    epoll::{
        ADD, DEL, ET, FOREVER, IN, MOD, ONESHOT, OUT, begin, control, counter, create, event, now, post, reported, take,
    },
    *,
};
use abi::{Endpoint, Errno, linux::nr};

/// A wait comes again at a successor, as it was begun.
fn repeat(world: &World, who: Endpoint, epoll: u64, timeout_ms: u64) -> Option<Result<u64>> {
    world.repeat_call(who, nr::EPOLL_WAIT, &[epoll, DATA + 0x1000, 1, timeout_ms])
}

#[test]
fn registrations_outlive_vfs() {
    let mut world = World::new();
    let (epoll, file, other) = (create(&world), counter(&world, 0), counter(&world, 1));
    let (reads, writes) = world.pipe(world.root, 0);
    for (file, events) in [(file, IN), (other, IN | OUT), (reads, IN)] {
        assert_eq!(control(&world, epoll, ADD, file, events), Ok(0));
    }
    assert_eq!(control(&world, epoll, MOD, other, OUT), Ok(0));
    let data = event(&world, world.root, IN, 0x1234_5678_9abc_def0);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, MOD, reads, data]), Ok(0));
    world.restart_vfs();
    assert_eq!(now(&world, epoll), [(other, OUT)]);
    post(&world, file);
    world.write(world.root, writes, b"x").unwrap();
    let mut found = now(&world, epoll);
    found.sort();
    assert_eq!(found, [(file, IN), (other, OUT), (0x1234_5678_9abc_def0, IN)]);
    assert_eq!(control(&world, epoll, DEL, file, 0), Ok(0));
    assert_eq!(control(&world, epoll, ADD, other, IN), Err(Errno::EEXIST));
    world.restart_vfs();
    assert_eq!(now(&world, epoll).len(), 2);
    assert_eq!(control(&world, epoll, DEL, file, 0), Err(Errno::ENOENT));
}

#[test]
fn registrations_are_made_changed_and_ended_once() {
    let mut world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    let mut twice = |operation, events| {
        let first = control(&world, epoll, operation, file, events);
        world.restart_vfs();
        let event = event(&world, world.root, events, file);
        [Some(first), world.repeat_call(world.root, nr::EPOLL_CTL, &[epoll, operation, file, event])]
    };
    assert_eq!(twice(ADD, IN), [Some(Ok(0)); 2]);
    assert_eq!(twice(MOD, OUT), [Some(Ok(0)); 2]);
    assert_eq!(twice(DEL, 0), [Some(Ok(0)); 2]);
    assert_eq!(now(&world, epoll), []);
}

#[test]
fn an_edge_that_nobody_has_seen_is_reported_by_the_successor() {
    let mut world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    assert_eq!(control(&world, epoll, ADD, file, IN | ET), Ok(0));
    assert_eq!(now(&world, epoll), []);
    post(&world, file);
    world.restart_vfs();
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN)], vec![]));
}

#[test]
fn whatever_is_ready_is_reported_by_the_successor() {
    const CREATE: u32 = 0x100;
    let mut world = World::new();
    let (level, edge, inner) = (create(&world), create(&world), create(&world));
    let inotify = inotify::create(&world);
    inotify::watch(&world, inotify, "/", CREATE).unwrap();
    world.make("/file", b"", 0o644, (0, 0));
    let ((stream, writer), (alone, gone)) = (sockets::pair(&world, 0), sockets::pair(&world, 0));
    assert_eq!(world.write(world.root, writer, b"x"), Ok(1));
    world.close(world.root, gone).unwrap();
    let (datagram, sender) = sockets::datagram_pair(&world);
    assert_eq!(world.write(world.root, sender, b""), Ok(0));
    let (listener, client) = sockets::listener(&world, "/socket", 1);
    let socket = world.call(client, nr::SOCKET, &[1, 1, 0]).unwrap();
    assert_eq!(sockets::connect(&world, client, socket, "/socket"), Some(Ok(0)));
    let queue = queues::make(&world, world.root, "queue", 1, 1).unwrap();
    assert_eq!(queues::send(&world, queue, b"x", 0), Some(Ok(0)));
    assert_eq!(control(&world, inner, ADD, counter(&world, 1), IN), Ok(0));
    let files = [inner, inotify, stream, alone, datagram, listener, queue];
    for (epoll, how) in [(level, IN), (edge, IN | ET)] {
        files.iter().for_each(|file| assert_eq!(control(&world, epoll, ADD, *file, how), Ok(0)));
    }
    let found = |world: &World, epoll| {
        let mut found: Vec<u64> = now(world, epoll).into_iter().map(|(file, _)| file).collect();
        found.sort_unstable();
        found
    };
    for edges in [&files[..], &[]] {
        world.restart_vfs();
        assert_eq!((found(&world, level), found(&world, edge)), (files.to_vec(), edges.to_vec()));
    }
}

#[test]
fn an_edge_that_was_reported_is_not_reported_again_by_a_successor_until_the_next() {
    let mut world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, file, IN | ET), Ok(0));
    assert_eq!(control(&world, epoll, ADD, reads, IN | ET), Ok(0));
    assert_eq!(control(&world, epoll, ADD, writes, OUT | ET), Ok(0));
    assert_eq!(now(&world, epoll), [(writes, OUT)]);
    for _ in 0..3 {
        post(&world, file);
        world.write(world.root, writes, b"x").unwrap();
        let mut found = now(&world, epoll);
        found.sort();
        assert_eq!(found, [(file, IN), (reads, IN)]);
        for _ in 0..2 {
            world.restart_vfs();
            assert_eq!(now(&world, epoll), []);
        }
    }
    assert_eq!(control(&world, epoll, MOD, file, IN | ET), Ok(0));
    world.restart_vfs();
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN)], vec![]), "it asks anew");
}

#[test]
fn an_edge_of_a_timer_or_an_epoll_is_not_reported_again_by_a_successor_until_the_next() {
    const S: u64 = 1_000_000_000;
    let mut world = World::new();
    let (outer, inner, file) = (create(&world), create(&world), counter(&world, 1));
    let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, O_NONBLOCK]).unwrap();
    let arm = |world: &World| {
        let spec = world.words(world.root, &[0, 0, 10, 0]);
        assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, spec, 0]), Ok(0));
    };
    arm(&world);
    assert_eq!(control(&world, inner, ADD, file, IN), Ok(0));
    assert_eq!(control(&world, outer, ADD, inner, IN | ET), Ok(0));
    assert_eq!(control(&world, outer, ADD, timer, IN | ET), Ok(0));
    assert_eq!((now(&world, outer), now(&world, outer)), (vec![(inner, IN)], vec![]));
    world.restart_vfs();
    assert_eq!(now(&world, outer), []);
    take(&world, file);
    post(&world, file);
    world.restart_vfs();
    assert_eq!(now(&world, outer), [(inner, IN)], "nobody has seen this one");
    for _ in 0..2 {
        world.machine.advance_ns(10 * S);
        world.restart_vfs();
        assert_eq!(now(&world, outer), [(timer, IN)]);
        world.restart_vfs();
        assert_eq!(now(&world, outer), []);
        arm(&world);
    }
}

#[test]
fn a_timer_that_expires_in_an_epoll_is_an_edge_though_an_earlier_one_was_reported() {
    const S: u64 = 1_000_000_000;
    let mut world = World::new();
    let (outer, inner, file) = (create(&world), create(&world), counter(&world, 1));
    let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, O_NONBLOCK]).unwrap();
    let spec = world.words(world.root, &[0, 0, 10, 0]);
    assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, spec, 0]), Ok(0));
    for target in [file, timer] {
        assert_eq!(control(&world, inner, ADD, target, IN), Ok(0));
    }
    assert_eq!(control(&world, outer, ADD, inner, IN | ET), Ok(0));
    assert_eq!((now(&world, outer), now(&world, outer)), (vec![(inner, IN)], vec![]));
    world.machine.advance_ns(10 * S);
    world.restart_vfs();
    assert_eq!(now(&world, outer), [(inner, IN)]);
}

#[test]
fn a_report_whose_answer_was_lost_is_made_again() {
    let mut world = World::new();
    let (epoll, edge, once) = (create(&world), counter(&world, 1), counter(&world, 1));
    for (file, events) in [(edge, IN | ET), (once, IN | ONESHOT)] {
        assert_eq!(control(&world, epoll, ADD, file, events), Ok(0));
        assert_eq!(begin(&world, world.root, epoll, 1, FOREVER), Some(Ok(1)));
        world.restart_vfs();
        assert_eq!(repeat(&world, world.root, epoll, FOREVER), Some(Ok(1)));
        assert_eq!(reported(&world, world.root, 1), [(file, IN)]);
        take(&world, file);
    }
    post(&world, once);
    assert_eq!(now(&world, epoll), [], "it was reported once");
    world.restart_vfs();
    assert_eq!(now(&world, epoll), [], "nor does a successor");
    assert_eq!(control(&world, epoll, MOD, once, IN | ONESHOT), Ok(0));
    assert_eq!(now(&world, epoll), [(once, IN)]);
}

#[test]
fn a_wait_goes_on_until_the_same_time() {
    const S: u64 = 1_000_000_000;
    let mut world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, 5000), None);
    world.machine.advance_ns(3 * S);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(repeat(&world, child, epoll, 5000), None);
    world.machine.advance_ns(2 * S);
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(repeat(&world, child, epoll, FOREVER), None);
    post(&world, file);
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(file, IN)]));
}

#[test]
fn a_registration_of_a_file_that_was_closed_is_none_for_the_successor() {
    let mut world = World::new();
    let (epoll, file, other) = (create(&world), counter(&world, 1), counter(&world, 1));
    for file in [file, other] {
        assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    }
    world.close(world.root, file).unwrap();
    world.restart_vfs();
    assert_eq!(now(&world, epoll), [(other, IN)]);
    let again = counter(&world, 1);
    assert_eq!(again, file);
    assert_eq!(control(&world, epoll, ADD, again, IN), Ok(0));
    assert_eq!(now(&world, epoll).len(), 2);
    world.close(world.root, epoll).unwrap();
    world.restart_vfs();
    let epoll = create(&world);
    assert_eq!(now(&world, epoll), [], "what was registered in an epoll ends with it");
}

#[test]
fn timers_and_epolls_in_epolls_go_on() {
    const S: u64 = 1_000_000_000;
    let mut world = World::new();
    let (outer, inner) = (create(&world), create(&world));
    let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, O_NONBLOCK]).unwrap();
    let spec = world.words(world.root, &[0, 0, 10, 0]);
    assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, spec, 0]), Ok(0));
    assert_eq!(control(&world, inner, ADD, timer, IN), Ok(0));
    assert_eq!(control(&world, outer, ADD, inner, IN), Ok(0));
    world.restart_vfs();
    assert_eq!(now(&world, outer), []);
    assert_eq!(begin(&world, world.root, outer, 1, FOREVER), None);
    world.machine.advance_ns(10 * S);
    assert_eq!((world.result(world.root), reported(&world, world.root, 1)), (Some(Ok(1)), vec![(inner, IN)]));
    assert_eq!(now(&world, inner), [(timer, IN)]);
}
