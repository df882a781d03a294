//! Epolls by system call: registrations, what they report, and limits. Deaths, nesting and devices are in files of their own.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

pub const ADD: u64 = 1;
pub const DEL: u64 = 2;
pub const MOD: u64 = 3;
pub const IN: u32 = 1;
pub const OUT: u32 = 4;
pub const ERR: u32 = 8;
pub const HUP: u32 = 16;
pub const RDHUP: u32 = 0x2000;
pub const EXCLUSIVE: u32 = 1 << 28;
pub const WAKEUP: u32 = 1 << 29;
pub const ONESHOT: u32 = 1 << 30;
pub const ET: u32 = 1 << 31;
pub const FOREVER: u64 = -1i64 as u64;

/// Where waits put their events: packed structures of 12 bytes.
const EVENTS: u64 = DATA + 0x1000;

pub fn create(world: &World) -> u64 {
    world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap()
}

pub fn event(world: &World, who: Endpoint, events: u32, data: u64) -> u64 {
    let bytes = [&events.to_le_bytes()[..], &data.to_le_bytes()].concat();
    world.machine.write(who, DATA + 0x800, &bytes);
    DATA + 0x800
}

/// epoll_ctl with the descriptor as data.
pub fn control(world: &World, epoll: u64, operation: u64, file: u64, events: u32) -> Result<u64> {
    let event = event(world, world.root, events, file);
    world.call(world.root, nr::EPOLL_CTL, &[epoll, operation, file, event])
}

pub fn begin(world: &World, who: Endpoint, epoll: u64, most: u64, timeout_ms: u64) -> Option<Result<u64>> {
    world.begin_call(who, nr::EPOLL_WAIT, &[epoll, EVENTS, most, timeout_ms])
}

/// What a wait has reported: data and events.
pub fn reported(world: &World, who: Endpoint, count: u64) -> Vec<(u64, u32)> {
    let bytes = world.machine.read(who, EVENTS, count as usize * 12);
    let event = |bytes: &[u8]| {
        let (events, data) = bytes.split_at(4);
        (u64::from_le_bytes(data.try_into().unwrap()), u32::from_le_bytes(events.try_into().unwrap()))
    };
    bytes.chunks(12).map(event).collect()
}

/// What is ready now.
pub fn now(world: &World, epoll: u64) -> Vec<(u64, u32)> {
    let count = begin(world, world.root, epoll, 32, 0).expect("it does not wait").unwrap();
    reported(world, world.root, count)
}

pub fn counter(world: &World, count: u64) -> u64 {
    world.call(world.root, nr::EVENTFD2, &[count, O_NONBLOCK]).unwrap()
}

pub fn post(world: &World, counter: u64) {
    assert_eq!(world.write(world.root, counter, &1u64.to_le_bytes()), Ok(8));
}

pub fn take(world: &World, counter: u64) {
    assert_eq!(world.call(world.root, nr::READ, &[counter, DATA, 8]), Ok(8));
}

/// A read that finds the counter empty.
fn take_nothing(world: &World, counter: u64) {
    assert_eq!(world.call(world.root, nr::READ, &[counter, DATA, 8]), Err(Errno::EAGAIN));
}

#[test]
fn what_is_ready_is_reported_as_long_as_it_is() {
    let world = World::new();
    let (epoll, first, second) = (create(&world), counter(&world, 0), counter(&world, 5));
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(now(&world, epoll), []);
    for (file, events) in [(first, IN), (second, IN | OUT), (reads, IN | RDHUP), (writes, OUT)] {
        assert_eq!(control(&world, epoll, ADD, file, events), Ok(0));
    }
    for _ in 0..2 {
        let mut found = now(&world, epoll);
        found.sort();
        assert_eq!(found, [(second, IN | OUT), (writes, OUT)]);
    }
    take(&world, second);
    post(&world, first);
    world.write(world.root, writes, b"x").unwrap();
    let mut found = now(&world, epoll);
    found.sort();
    assert_eq!(found, [(first, IN), (second, OUT), (reads, IN), (writes, OUT)]);
    world.close(world.root, writes).unwrap();
    control(&world, epoll, DEL, second, 0).unwrap();
    assert_eq!(now(&world, epoll).into_iter().find(|(file, _)| *file == reads), Some((reads, IN | HUP)));
}

#[test]
fn events_are_reported_in_turn_when_there_are_more_than_fit() {
    let world = World::new();
    let epoll = create(&world);
    let counters: Vec<u64> = (0..40).map(|_| counter(&world, 1)).collect();
    counters.iter().for_each(|file| assert_eq!(control(&world, epoll, ADD, *file, IN), Ok(0)));
    let wait = |most| {
        let count = begin(&world, world.root, epoll, most, 0).unwrap().unwrap();
        reported(&world, world.root, count).into_iter().map(|(file, _)| file).collect::<Vec<_>>()
    };
    assert_eq!(wait(1), counters[..1]);
    assert_eq!(wait(3), counters[1..4]);
    assert_eq!(wait(37), [&counters[4..], &counters[..1]].concat());
    assert_eq!(wait(100), [&counters[1..], &counters[..1]].concat());
}

#[test]
fn an_edge_is_reported_once() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    assert_eq!(control(&world, epoll, ADD, file, IN | ET), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN)], vec![]));
    post(&world, file);
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN)], vec![]), "a write is an edge, read or not");
    assert_eq!(control(&world, epoll, MOD, file, IN | ET), Ok(0));
    assert_eq!(
        (now(&world, epoll), now(&world, epoll)),
        (vec![(file, IN)], vec![]),
        "so is a change of the registration"
    );
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, reads, IN | ET), Ok(0));
    world.write(world.root, writes, b"two").unwrap();
    assert_eq!(now(&world, epoll), [(reads, IN)]);
    world.read(world.root, reads, 1).unwrap();
    assert_eq!(now(&world, epoll), [], "a read is none for those who read");
    post(&world, file);
    take(&world, file);
    assert_eq!(now(&world, epoll), [], "it is over");
}

#[test]
fn room_is_an_edge_for_a_writer_when_there_was_none() {
    let world = World::new();
    let (epoll, (reads, writes)) = (create(&world), world.pipe(world.root, O_NONBLOCK));
    assert_eq!(control(&world, epoll, ADD, writes, OUT | ET), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(writes, OUT)], vec![]));
    world.write(world.root, writes, &[7; 100]).unwrap();
    world.read(world.root, reads, 100).unwrap();
    assert_eq!(now(&world, epoll), [], "there was room");
    while world.write(world.root, writes, &[7; 4096]).is_ok() {}
    assert_eq!(now(&world, epoll), []);
    world.read(world.root, reads, 8192).unwrap();
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(writes, OUT)], vec![]));
}

#[test]
fn both_directions_of_a_socket_are_told_apart() {
    let world = World::new();
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[1, 1, 0, DATA]), Ok(0));
    let both = world.read_words(world.root, DATA, 1)[0];
    let (epoll, mine, peer) = (create(&world), both & 0xffff_ffff, both >> 32);
    assert_eq!(control(&world, epoll, ADD, mine, IN | OUT | RDHUP | ET), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(mine, OUT)], vec![]));
    world.write(world.root, peer, b"x").unwrap();
    assert_eq!(now(&world, epoll), [(mine, IN | OUT)]);
    world.read(world.root, mine, 1).unwrap();
    assert_eq!(now(&world, epoll), []);
    world.write(world.root, mine, b"y").unwrap();
    assert_eq!(now(&world, epoll), []);
    world.close(world.root, peer).unwrap();
    assert_eq!(now(&world, epoll), [(mine, IN | OUT | ERR | HUP | RDHUP)], "the peer has not read everything");
}

#[test]
fn a_socket_is_registered_before_it_listens_or_is_connected() {
    let world = World::new();
    let make = || world.call(world.root, nr::SOCKET, &[1, 1, 0]).unwrap();
    let (epoll, server, client, name) =
        (create(&world), make(), make(), world.words(world.root, &[0x7878_0000_0001, 0]));
    assert_eq!(control(&world, epoll, ADD, server, IN | ET), Ok(0));
    assert_eq!(control(&world, epoll, ADD, client, IN | OUT | ET), Ok(0));
    assert_eq!(now(&world, epoll), [(server, HUP), (client, OUT | HUP)]);
    assert_eq!(world.call(world.root, nr::BIND, &[server, name, 8]), Ok(0));
    assert_eq!(world.call(world.root, nr::LISTEN, &[server, 5]), Ok(0));
    assert_eq!(now(&world, epoll), []);
    assert_eq!(world.call(world.root, nr::CONNECT, &[client, name, 8]), Ok(0));
    assert_eq!(now(&world, epoll), [(client, OUT), (server, IN)]);
    let accepted = world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    world.write(world.root, accepted, b"x").unwrap();
    assert_eq!(now(&world, epoll), [(client, IN | OUT)]);
}

#[test]
fn a_registration_for_one_report_waits_to_be_modified() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    assert_eq!(control(&world, epoll, ADD, file, IN | ONESHOT), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN)], vec![]));
    post(&world, file);
    assert_eq!(now(&world, epoll), []);
    assert_eq!(control(&world, epoll, ADD, file, IN), Err(Errno::EEXIST), "it is registered");
    assert_eq!(control(&world, epoll, MOD, file, IN | OUT | ONESHOT), Ok(0));
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(file, IN | OUT)], vec![]));
}

#[test]
fn errors_and_hang_ups_are_reported_without_being_asked_for() {
    let world = World::new();
    let (epoll, (reads, writes)) = (create(&world), world.pipe(world.root, 0));
    let (other_reads, other_writes) = world.pipe(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, reads, 0), Ok(0));
    assert_eq!(control(&world, epoll, ADD, other_writes, 0), Ok(0));
    assert_eq!(now(&world, epoll), []);
    world.close(world.root, writes).unwrap();
    world.close(world.root, other_reads).unwrap();
    assert_eq!(now(&world, epoll), [(reads, HUP), (other_writes, ERR)]);
}

#[test]
fn a_wait_ends_with_an_event_a_signal_or_its_time() {
    const MS: u64 = 1_000_000;
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    world.machine.advance_ns(1_000 * MS);
    assert_eq!(world.result(child), None);
    post(&world, file);
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(file, IN)]));
    take(&world, file);
    assert_eq!(begin(&world, child, epoll, 1, 50), None);
    world.machine.advance_ns(50 * MS - 1);
    assert_eq!(world.result(child), None);
    world.machine.advance_ns(1);
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    assert_eq!(world.cancel(child, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(child), Some(Err(Errno::EINTR)));
    let timeout = world.words(child, &[0, 20 * MS]);
    let wait = [epoll, EVENTS, 1, timeout, 0, 0];
    assert_eq!(world.begin_call(child, nr::EPOLL_PWAIT2, &wait), None);
    world.machine.advance_ns(20 * MS);
    assert_eq!(world.result(child), Some(Ok(0)));
    let wrong = world.words(child, &[0, 1_000_000_000]);
    assert_eq!(world.call(child, nr::EPOLL_PWAIT2, &[epoll, EVENTS, 1, wrong, 0, 0]), Err(Errno::EINVAL));
}

#[test]
fn registrations_made_while_somebody_waits_wake_him() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    assert_eq!(world.result(child), Some(Ok(1)));
    take(&world, file);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    assert_eq!(control(&world, epoll, MOD, file, OUT), Ok(0));
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(file, OUT)]));
}

#[test]
fn a_registration_is_told_of_what_it_was_modified_for() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    assert_eq!(world.write(world.root, file, &(u64::MAX - 1).to_le_bytes()), Ok(8), "there is no room for more");
    let child = world.fork(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, file, HUP), Ok(0));
    assert_eq!(control(&world, epoll, MOD, file, OUT), Ok(0));
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    take(&world, file);
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(file, OUT)]));
    assert_eq!(control(&world, epoll, MOD, file, IN), Ok(0));
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    take_nothing(&world, file);
    assert_eq!(world.result(child), None, "nothing that it is for has happened");
    post(&world, file);
    assert_eq!((world.result(child), reported(&world, child, 1)), (Some(Ok(1)), vec![(file, IN)]));
}

#[test]
fn a_socket_whose_registration_was_modified_before_it_was_connected_is_told() {
    let world = World::new();
    let make = || world.call(world.root, nr::SOCKET, &[1, 1, 0]).unwrap();
    let (epoll, server, client, name) =
        (create(&world), make(), make(), world.words(world.root, &[0x7878_0000_0001, 0]));
    assert_eq!(control(&world, epoll, ADD, client, ET), Ok(0));
    assert_eq!(now(&world, epoll), [(client, HUP)]);
    assert_eq!(world.call(world.root, nr::BIND, &[server, name, 8]), Ok(0));
    assert_eq!(world.call(world.root, nr::LISTEN, &[server, 5]), Ok(0));
    assert_eq!(world.call(world.root, nr::CONNECT, &[client, name, 8]), Ok(0));
    assert_eq!(control(&world, epoll, MOD, client, IN | ET), Ok(0));
    let accepted = world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    assert_eq!(now(&world, epoll), []);
    world.write(world.root, accepted, b"x").unwrap();
    assert_eq!(now(&world, epoll), [(client, IN)]);
}

#[test]
fn several_waits_see_what_is_ready_and_an_edge_goes_to_one() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    let waiters = [(); 3].map(|()| world.fork(world.root, 0));
    let begin_all = || assert_eq!(waiters.map(|who| begin(&world, who, epoll, 1, FOREVER)), [None; 3]);
    let ended = || waiters.into_iter().filter(|who| world.result(*who) == Some(Ok(1))).count();
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    begin_all();
    post(&world, file);
    assert_eq!(ended(), 3);
    take(&world, file);
    assert_eq!(control(&world, epoll, MOD, file, IN | ET), Ok(0));
    begin_all();
    post(&world, file);
    assert_eq!((ended(), ended()), (1, 0));
    post(&world, file);
    assert_eq!(ended(), 1);
}

#[test]
fn of_exclusive_registrations_one_that_somebody_waits_for_is_told() {
    let world = World::new();
    let (epolls, file) = ([(); 3].map(|()| create(&world)), counter(&world, 0));
    epolls.iter().for_each(|epoll| assert_eq!(control(&world, *epoll, ADD, file, IN | EXCLUSIVE), Ok(0)));
    let waiters = [(); 2].map(|()| world.fork(world.root, 0));
    let begin_all = || [0, 1].map(|nth| begin(&world, waiters[nth], epolls[nth + 1], 1, FOREVER));
    assert_eq!(begin_all(), [None; 2]);
    post(&world, file);
    assert_eq!(waiters.map(|who| world.result(who)), [Some(Ok(1)), None], "nobody waits in the first epoll");
    post(&world, file);
    assert_eq!(waiters.map(|who| world.result(who)), [None, Some(Ok(1))]);
    take(&world, file);
    let other = create(&world);
    assert_eq!(control(&world, other, ADD, file, IN), Ok(0));
    assert_eq!(begin_all(), [None; 2]);
    let third = world.fork(world.root, 0);
    assert_eq!(begin(&world, third, other, 1, FOREVER), None);
    post(&world, file);
    assert_eq!(waiters.map(|who| world.result(who)), [Some(Ok(1)), None]);
    assert_eq!(world.result(third), Some(Ok(1)), "it is not exclusive");
}

#[test]
fn a_wait_with_a_mask_ends_it_with_pm() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    let mask = world.words(world.root, &[5]);
    assert_eq!(world.begin_call(world.root, nr::EPOLL_PWAIT, &[epoll, EVENTS, 1, FOREVER, mask, 8]), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_MASK, world.root, [5, 0, 0, 0])));
    let other = world.fork(world.root, 0);
    let one = world.words(other, &[1]);
    assert_eq!(world.call(other, nr::WRITE, &[file, one, 8]), Ok(8));
    assert_eq!(world.next_event(), Some((vfs::EVENT_MASK_END, world.root, [0; 4])));
    assert_eq!(world.call_as_pm(vfs::Unmasked { process: world.root }.message()), Ok(0));
    assert_eq!((world.result(world.root), reported(&world, world.root, 1)), (Some(Ok(1)), vec![(file, IN)]));
    assert_eq!(world.call(world.root, nr::EPOLL_PWAIT, &[epoll, EVENTS, 1, FOREVER, mask, 8]), Ok(1));
    assert_eq!(world.next_event(), None, "what is ready at once needs no mask");
    assert_eq!(world.call(world.root, nr::EPOLL_PWAIT, &[epoll, EVENTS, 1, 0, mask, 4]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::EPOLL_PWAIT, &[epoll, EVENTS, 1, 0, 0, 4]), Ok(1), "no mask");
}

#[test]
fn a_registration_lasts_as_long_as_its_open_file() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    let copy = world.call(world.root, nr::DUP, &[file]).unwrap();
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    assert_eq!(control(&world, epoll, ADD, copy, IN), Ok(0), "another descriptor is another registration");
    world.close(world.root, file).unwrap();
    assert_eq!(now(&world, epoll), [(file, IN), (copy, IN)], "the open file goes on");
    let other = counter(&world, 0);
    assert_eq!(other, file, "the number is used again");
    assert_eq!(control(&world, epoll, DEL, other, 0), Err(Errno::ENOENT), "for another open file");
    assert_eq!(control(&world, epoll, ADD, other, IN), Ok(0));
    world.close(world.root, copy).unwrap();
    assert_eq!(now(&world, epoll), []);
    post(&world, other);
    assert_eq!(now(&world, epoll), [(other, IN)]);
}

#[test]
fn a_child_shares_the_epoll_of_its_parent() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 0));
    let child = world.fork(world.root, 0);
    assert_eq!(control(&world, epoll, ADD, file, IN), Ok(0));
    post(&world, file);
    world.close(world.root, file).unwrap();
    assert_eq!(begin(&world, child, epoll, 1, 0), Some(Ok(1)), "the child has it open");
    let event = event(&world, child, OUT, 7);
    assert_eq!(world.call(child, nr::EPOLL_CTL, &[epoll, MOD, file, event]), Ok(0));
    assert_eq!(now(&world, epoll), [(7, OUT)]);
}

#[test]
fn a_timer_is_reported_when_it_expires() {
    const S: u64 = 1_000_000_000;
    let world = World::new();
    let epoll = create(&world);
    let timer = world.call(world.root, nr::TIMERFD_CREATE, &[1, O_NONBLOCK]).unwrap();
    let set = |seconds: u64, interval: u64| {
        let spec = world.words(world.root, &[interval, 0, seconds, 0]);
        assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, spec, 0]), Ok(0));
    };
    set(2, 0);
    assert_eq!(control(&world, epoll, ADD, timer, IN), Ok(0));
    assert_eq!(begin(&world, world.root, epoll, 1, FOREVER), None);
    world.machine.advance_ns(2 * S - 1);
    assert_eq!(world.result(world.root), None);
    world.machine.advance_ns(1);
    assert_eq!((world.result(world.root), reported(&world, world.root, 1)), (Some(Ok(1)), vec![(timer, IN)]));
    assert_eq!(now(&world, epoll), [(timer, IN)]);
    take(&world, timer);
    assert_eq!(now(&world, epoll), []);
    assert_eq!(control(&world, epoll, MOD, timer, IN | ET), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(begin(&world, child, epoll, 1, FOREVER), None);
    set(3, 1);
    world.machine.advance_ns(S);
    set(1, 1);
    world.machine.advance_ns(S);
    assert_eq!(world.result(child), Some(Ok(1)), "the time that was set last");
    assert_eq!(now(&world, epoll), []);
    take(&world, timer);
    world.machine.advance_ns(S);
    assert_eq!((now(&world, epoll), now(&world, epoll)), (vec![(timer, IN)], vec![]), "the next interval");
}

#[test]
fn arguments_have_limits() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let (epoll, file) = (create(&world), counter(&world, 1));
    assert_eq!(world.call(world.root, nr::EPOLL_CREATE, &[0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::EPOLL_CREATE1, &[1]), Err(Errno::EINVAL));
    let old = world.call(world.root, nr::EPOLL_CREATE, &[1]).unwrap();
    let marked = world.call(world.root, nr::EPOLL_CREATE1, &[O_CLOEXEC]).unwrap();
    let flags = |file, command| world.call(world.root, nr::FCNTL, &[file, command]).unwrap();
    assert_eq!([(old, F_GETFD), (marked, F_GETFD), (marked, F_GETFL)].map(|(f, c)| flags(f, c)), [0, 1, O_RDWR]);
    let regular = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    let place = world.open(world.root, "/file", O_PATH, 0).unwrap();
    assert_eq!([regular, directory].map(|f| control(&world, epoll, ADD, f, IN)), [Err(Errno::EPERM); 2]);
    assert_eq!([place, 99].map(|f| control(&world, epoll, ADD, f, IN)), [Err(Errno::EBADF); 2]);
    assert_eq!([99, place].map(|e| control(&world, e, ADD, file, IN)), [Err(Errno::EBADF); 2]);
    assert_eq!([file, regular].map(|e| control(&world, e, ADD, counter(&world, 0), IN)), [Err(Errno::EINVAL); 2]);
    assert_eq!(control(&world, epoll, ADD, epoll, IN), Err(Errno::EINVAL));
    assert_eq!([DEL, MOD].map(|how| control(&world, epoll, how, file, IN)), [Err(Errno::ENOENT); 2]);
    assert_eq!([0, 4].map(|how| control(&world, epoll, how, file, IN)), [Err(Errno::EINVAL); 2]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, ADD, file, 8]), Err(Errno::EFAULT));
    assert_eq!(control(&world, epoll, ADD, file, IN | WAKEUP), Ok(0));
    for most in [0, -1i64 as u64, 178_956_971] {
        assert_eq!(begin(&world, world.root, epoll, most, 0), Some(Err(Errno::EINVAL)));
    }
    assert_eq!(
        [99, file].map(|e| begin(&world, world.root, e, 1, 0)),
        [Some(Err(Errno::EBADF)), Some(Err(Errno::EINVAL))]
    );
    assert_eq!(world.call(world.root, nr::EPOLL_WAIT, &[epoll, 8, 1, 0]), Err(Errno::EFAULT));
    assert_eq!(now(&world, epoll), [(file, IN)], "it is still there");
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, DEL, file, 0]), Ok(0), "no event is needed");
    assert_eq!(world.read(world.root, epoll, 8), Err(Errno::EINVAL));
    assert_eq!(world.write(world.root, epoll, &[0; 8]), Err(Errno::EINVAL));
    assert_eq!(world.pread(world.root, epoll, 8, 0), Err(Errno::ESPIPE));
    assert_eq!(world.pwrite(world.root, epoll, &[0; 8], 0), Err(Errno::ESPIPE));
}

#[test]
fn an_exclusive_registration_is_made_once_and_for_few_events() {
    let world = World::new();
    let (epoll, file) = (create(&world), counter(&world, 1));
    assert_eq!(control(&world, epoll, ADD, file, IN | ONESHOT | EXCLUSIVE), Err(Errno::EINVAL));
    assert_eq!(control(&world, epoll, ADD, create(&world), IN | EXCLUSIVE), Err(Errno::EINVAL));
    assert_eq!(control(&world, epoll, ADD, file, IN | ET | WAKEUP | EXCLUSIVE), Ok(0));
    assert_eq!([IN, IN | EXCLUSIVE].map(|events| control(&world, epoll, MOD, file, events)), [Err(Errno::EINVAL); 2]);
    assert_eq!(now(&world, epoll), [(file, IN)]);
}

#[test]
fn an_edge_is_not_lost_when_its_report_fails() {
    let world = World::new();
    let epoll = create(&world);
    let files = [counter(&world, 1), counter(&world, 1)];
    files.iter().for_each(|file| assert_eq!(control(&world, epoll, ADD, *file, IN | ET | ONESHOT), Ok(0)));
    assert_eq!(world.call(world.root, nr::EPOLL_WAIT, &[epoll, 8, 9, 0]), Err(Errno::EFAULT));
    assert_eq!(now(&world, epoll), files.map(|file| (file, IN)));
}
