//! Asynchronous I/O: contexts, requests and their events, also when vfs dies.

mod deaths;

use super::{services::MAPPED_PAGES, *};
use abi::{Endpoint, Errno, linux::nr, vfs};
use std::vec::Vec;

const PREAD: u64 = 0;
const PWRITE: u64 = 1;
const FSYNC: u64 = 2;
const POLL: u64 = 5;
const PREADV: u64 = 7;

/// What a write to a pipe moves at once or not at all.
const PIPE_BUF: u64 = 4096;

/// Where programs have their requests, the pointers to these, events, an id and a time.
const IOCBS: u64 = 0x4_0000;
const POINTERS: u64 = 0x5_0000;
const EVENTS: u64 = 0x6_0000;
const ID: u64 = 0x7_0000;
const TIME: u64 = 0x7_1000;
const NOWHERE: u64 = 8;

/// More than a call waits for its next turn.
const TURN_NS: u64 = 100_000;

type Iocb = [u64; 8];
/// Data, number of the request, result.
type Event = (u64, u64, u64);

fn iocb(descriptor: u64, opcode: u64, address: u64, bytes: u64, position: u64) -> Iocb {
    [70 + opcode, 9, opcode | descriptor << 32, address, bytes, position, 0, 0]
}

fn put(world: &World, who: Endpoint, address: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    world.machine.write(who, address, &bytes);
}

fn begin_setup(world: &World, who: Endpoint, requests: u64) -> [u64; 2] {
    put(world, who, ID, &[0]);
    [requests, ID]
}

fn setup(world: &World, who: Endpoint, requests: u64) -> Result<u64> {
    let arguments = begin_setup(world, who, requests);
    after_a_turn(world, who, nr::IO_SETUP, &arguments)?;
    Ok(world.read_words(who, ID, 1)[0])
}

/// A call that may go on in a later turn.
fn after_a_turn(world: &World, who: Endpoint, number: u32, arguments: &[u64]) -> Result<u64> {
    world.begin_call(who, number, arguments).unwrap_or_else(|| {
        world.machine.advance_ns(TURN_NS);
        world.result(who).expect("it waits for nothing else")
    })
}

fn destroy(world: &World, who: Endpoint, context: u64) -> Result<u64> {
    after_a_turn(world, who, nr::IO_DESTROY, &[context])
}

/// Puts requests into a program's memory. Returns the arguments of their io_submit.
fn requests(world: &World, who: Endpoint, context: u64, iocbs: &[Iocb]) -> [u64; 3] {
    put(world, who, IOCBS, iocbs.as_flattened());
    let pointers: Vec<u64> = (0..iocbs.len() as u64).map(|number| IOCBS + 64 * number).collect();
    put(world, who, POINTERS, &pointers);
    [context, iocbs.len() as u64, POINTERS]
}

fn submit(world: &World, who: Endpoint, context: u64, iocbs: &[Iocb]) -> Result<u64> {
    let arguments = requests(world, who, context, iocbs);
    world.call(who, nr::IO_SUBMIT, &arguments)
}

/// The first events that a program has been given.
fn events_at(world: &World, who: Endpoint, count: u64) -> Vec<Event> {
    let words = world.read_words(who, EVENTS, count as usize * 4);
    let events = words.as_chunks::<4>().0.iter();
    events
        .map(|[data, object, result, more]| {
            assert_eq!(*more, 0);
            (*data, (object - IOCBS) / 64, *result)
        })
        .collect()
}

fn collect_arguments(world: &World, who: Endpoint, context: u64, least: u64, most: u64) -> [u64; 5] {
    put(world, who, TIME, &[0, 0]);
    [context, least, most, EVENTS, TIME]
}

/// The events that there are now.
fn collect(world: &World, who: Endpoint, context: u64, most: u64) -> Result<Vec<Event>> {
    let arguments = collect_arguments(world, who, context, 0, most);
    let count = world.call(who, nr::IO_GETEVENTS, &arguments)?;
    Ok(events_at(world, who, count))
}

/// Begins to wait for events, for ever.
fn wait(world: &World, who: Endpoint, context: u64, least: u64) -> Option<Result<u64>> {
    world.begin_call(who, nr::IO_GETEVENTS, &[context, least, 16, EVENTS, 0])
}

fn error(error: Errno) -> u64 {
    i64::from(-error.0) as u64
}

/// A thread of the first program.
fn thread(world: &World, slot: usize) -> Endpoint {
    let child = Endpoint::new(slot, 1);
    world.machine.add_program(child, MEMORY);
    let flags = vfs::FORK_FILES | vfs::FORK_FS;
    let fork = vfs::Fork { parent: world.root, child, identity: 1, flags, parts: abi::Parts::SYSTEM };
    assert_eq!(world.call_as_pm(fork.message()), Ok(0));
    child
}

/// A file with ten bytes, and a context for eight requests.
fn begun() -> (World, u64, u64) {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let context = setup(&world, world.root, 8).unwrap();
    (world, file, context)
}

#[test]
fn a_context_is_known_by_its_page_and_ends_with_it() {
    let world = World::new();
    let (first, second) = (setup(&world, world.root, 1).unwrap(), setup(&world, world.root, 8).unwrap());
    assert_eq!([first, second], [MAPPED_PAGES, MAPPED_PAGES + 4096]);
    assert_eq!((destroy(&world, world.root, first), destroy(&world, world.root, first)), (Ok(0), Err(Errno::EINVAL)));
    assert_eq!(world.vm().unmapped_pages.values().collect::<Vec<_>>(), [&first]);
    assert_eq!(submit(&world, world.root, second, &[]), Ok(0));
    assert_eq!(submit(&world, world.root, first, &[]), Err(Errno::EINVAL));
}

#[test]
fn io_setup_refuses_numbers_and_memory_that_are_wrong() {
    let world = World::new();
    let results = [0, 0x80_0001, 65_537, 257].map(|requests| setup(&world, world.root, requests));
    assert_eq!(results, [Errno::EINVAL, Errno::EINVAL, Errno::EAGAIN, Errno::EAGAIN].map(Err));
    assert_eq!(world.call(world.root, nr::IO_SETUP, &[1, NOWHERE]), Err(Errno::EFAULT));
    put(&world, world.root, ID, &[1]);
    assert_eq!(world.call(world.root, nr::IO_SETUP, &[1, ID]), Err(Errno::EINVAL));
    assert_eq!(used(&world), 0);
    let memory = world.vm();
    assert_eq!(memory.mapped_pages.len(), memory.unmapped_pages.len(), "nothing stays mapped");
}

#[test]
fn requests_are_carried_out_in_order_and_each_is_told_once() {
    let (world, file, context) = begun();
    put(&world, world.root, DATA + 100, &[DATA, 2, DATA + 2, 3]);
    let iocbs = [
        iocb(file, PREAD, DATA + 64, 4, 2),
        iocb(file, PWRITE, DATA + 64, 4, 0),
        iocb(file, FSYNC, 0, 0, 0),
        iocb(file, PREADV, DATA + 100, 2, 0),
        iocb(file, PREAD, NOWHERE, 4, 0),
    ];
    assert_eq!(submit(&world, world.root, context, &iocbs), Ok(5));
    assert_eq!(world.machine.read(world.root, DATA, 5), b"23454");
    let two = collect(&world, world.root, context, 2).unwrap();
    assert_eq!(two, [(70 + PREAD, 0, 4), (70 + PWRITE, 1, 4)]);
    let others = collect(&world, world.root, context, 8).unwrap();
    assert_eq!(others, [(70 + FSYNC, 2, 0), (70 + PREADV, 3, 5), (70 + PREAD, 4, error(Errno::EFAULT))]);
    assert_eq!(collect(&world, world.root, context, 8), Ok(vec![]));
    assert_eq!((world.content("/file"), world.position(world.root, file)), (b"2345456789".to_vec(), 0));
}

#[test]
fn a_request_that_is_wrong_ends_the_submission() {
    let (world, file, context) = begun();
    let good = iocb(file, PREAD, DATA, 4, 0);
    let mut reserved = good;
    reserved[6] = 1;
    let mut unsignalled = good;
    unsignalled[7] = 1 | file << 32;
    let wrong = [
        (iocb(99, PREAD, DATA, 4, 0), Errno::EBADF),
        (iocb(file, POLL, 1, 0, 0), Errno::EINVAL),
        (iocb(file, PREAD, DATA, 4, u64::MAX), Errno::EINVAL),
        (iocb(file, PREAD, DATA, u64::MAX, 0), Errno::EINVAL),
        (iocb(file, PREAD, 1 << 63, 4, 0), Errno::EFAULT),
        (iocb(file, PREADV, NOWHERE, 2, 0), Errno::EFAULT),
        (iocb(file, FSYNC, 0, 0, 1), Errno::EINVAL),
        (reserved, Errno::EINVAL),
        (unsignalled, Errno::EINVAL),
    ];
    for (iocb, error) in wrong {
        assert_eq!(submit(&world, world.root, context, &[iocb]), Err(error), "{iocb:?}");
        assert_eq!(submit(&world, world.root, context, &[good, iocb, good]), Ok(1), "{iocb:?}");
        assert_eq!(collect(&world, world.root, context, 8).map(|events| events.len()), Ok(1));
    }
    for (arguments, error) in [
        ([context, u64::MAX, POINTERS], Errno::EINVAL),
        ([context + 1, 1, POINTERS], Errno::EINVAL),
        ([context, 1, NOWHERE], Errno::EFAULT),
    ] {
        assert_eq!(world.call(world.root, nr::IO_SUBMIT, &arguments), Err(error));
    }
}

#[test]
fn a_full_context_takes_no_request_until_its_events_are_collected() {
    let (world, file, context) = begun();
    let good = iocb(file, PREAD, DATA, 4, 0);
    for round in 0..5 {
        assert_eq!(submit(&world, world.root, context, &[good; 11]), Ok(8), "in round {round}");
        assert_eq!(submit(&world, world.root, context, &[good]), Err(Errno::EAGAIN));
        assert_eq!(collect(&world, world.root, context, 3).map(|events| events.len()), Ok(3));
        assert_eq!(submit(&world, world.root, context, &[good; 11]), Ok(3));
        let numbers = collect(&world, world.root, context, 16).unwrap().into_iter().map(|event| event.1);
        assert_eq!(numbers.collect::<Vec<_>>(), [3, 4, 5, 6, 7, 0, 1, 2]);
    }
}

#[test]
fn a_wait_lasts_until_there_are_enough_events() {
    let (world, file, context) = begun();
    let other = thread(&world, 300);
    let good = iocb(file, PREAD, DATA, 4, 0);
    assert_eq!(wait(&world, other, context, 3), None);
    assert_eq!(submit(&world, world.root, context, &[good; 2]), Ok(2));
    assert_eq!(world.result(other), None);
    assert_eq!(submit(&world, world.root, context, &[good; 2]), Ok(2));
    assert_eq!(world.result(other), Some(Ok(4)));
    assert_eq!(events_at(&world, other, 4).iter().map(|event| event.1).collect::<Vec<_>>(), [0, 1, 0, 1]);
    // More than the context has room for.
    assert_eq!(wait(&world, other, context, 12), None);
    assert_eq!(submit(&world, world.root, context, &[good; 8]), Ok(8));
    assert_eq!((world.result(other), submit(&world, world.root, context, &[good; 4])), (None, Ok(4)));
    assert_eq!(world.result(other), Some(Ok(12)));
}

#[test]
fn a_wait_ends_by_time_by_a_signal_and_with_the_context() {
    let (world, file, context) = begun();
    let other = thread(&world, 300);
    put(&world, other, TIME, &[0, 5_000_000]);
    let arguments = [context, 2, 8, EVENTS, TIME];
    assert_eq!(world.begin_call(other, nr::IO_GETEVENTS, &arguments), None);
    assert_eq!(submit(&world, world.root, context, &[iocb(file, PREAD, DATA, 4, 0)]), Ok(1));
    world.machine.advance_ns(6_000_000);
    assert_eq!(world.result(other), Some(Ok(1)), "what there is");
    assert_eq!(wait(&world, other, context, 1), None);
    assert_eq!(world.cancel(other, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(other), Some(Err(Errno::EINTR)));
    assert_eq!(wait(&world, other, context, 2), None);
    assert_eq!(submit(&world, world.root, context, &[iocb(file, PREAD, DATA, 4, 0)]), Ok(1));
    assert_eq!(world.cancel(other, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(other), Some(Ok(1)), "what there is counts more");
    assert_eq!(wait(&world, other, context, 1), None);
    assert_eq!(destroy(&world, world.root, context), Ok(0));
    assert_eq!(world.result(other), Some(Err(Errno::EINVAL)));
}

#[test]
fn io_getevents_refuses_numbers_and_memory_that_are_wrong_and_loses_nothing() {
    let (world, file, context) = begun();
    assert_eq!(submit(&world, world.root, context, &[iocb(file, PREAD, DATA, 4, 0); 2]), Ok(2));
    let call = |arguments: [u64; 5]| world.call(world.root, nr::IO_GETEVENTS, &arguments);
    assert_eq!(call([context, 2, 1, EVENTS, 0]), Err(Errno::EINVAL));
    assert_eq!(call([context, u64::MAX, 1, EVENTS, 0]), Err(Errno::EINVAL));
    assert_eq!(call([context + 8, 1, 1, EVENTS, 0]), Err(Errno::EINVAL));
    assert_eq!(call([context, 1, 1, EVENTS, NOWHERE]), Err(Errno::EFAULT));
    assert_eq!(call([context, 1, 2, NOWHERE, 0]), Err(Errno::EFAULT));
    assert_eq!(call([context, 1, 2, MEMORY.end - 32, 0]), Err(Errno::EFAULT), "of two, one has a place");
    assert_eq!(collect(&world, world.root, context, 8).map(|events| events.len()), Ok(2));
    for (arguments, error) in [([context, IOCBS, 0], Errno::EINVAL), ([context, NOWHERE, 0], Errno::EFAULT)] {
        assert_eq!(world.call(world.root, nr::IO_CANCEL, &arguments), Err(error));
    }
}

#[test]
fn a_request_waits_for_a_pipe_inside_its_call() {
    let (world, file, context) = begun();
    let (read, write) = world.pipe(world.root, 0);
    let other = thread(&world, 300);
    let iocbs = [iocb(file, PREAD, DATA, 4, 0), iocb(read, PREAD, DATA + 8, 8, 0), iocb(file, PREAD, DATA, 2, 0)];
    let arguments = requests(&world, other, context, &iocbs);
    assert_eq!(world.begin_call(other, nr::IO_SUBMIT, &arguments), None);
    assert_eq!(collect(&world, world.root, context, 8).map(|events| events.len()), Ok(1));
    assert_eq!(world.write(world.root, write, b"text"), Ok(4));
    assert_eq!(world.result(other), Some(Ok(3)));
    assert_eq!(world.machine.read(other, DATA + 8, 4), b"text");
    assert_eq!(collect(&world, world.root, context, 8), Ok(vec![(70, 1, 4), (70, 2, 2)]));
    assert_eq!(world.begin_call(other, nr::IO_SUBMIT, &arguments), None);
    assert_eq!(world.cancel(other, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(other), Some(Ok(2)), "those behind the signal are not submitted");
    assert_eq!(collect(&world, world.root, context, 8), Ok(vec![(70, 0, 4), (70, 1, error(Errno::EINTR))]));
    assert_eq!(world.read(other, file, 3), Ok(b"012".to_vec()), "its later calls are answered");
}

#[test]
fn a_thread_that_ends_while_its_request_waits_leaves_nothing() {
    let (world, _, context) = begun();
    let (read, write) = world.pipe(world.root, 0);
    let other = thread(&world, 300);
    let arguments = requests(&world, other, context, &[iocb(read, PREAD, DATA, 8, 0); 2]);
    assert_eq!(world.begin_call(other, nr::IO_SUBMIT, &arguments), None);
    world.exit(other);
    assert_eq!(world.write(world.root, write, b"text"), Ok(4));
    assert_eq!(world.read(world.root, read, 8), Ok(b"text".to_vec()));
    assert_eq!(submit(&world, world.root, context, &[]), Ok(0), "another thread still has the context");
    world.heartbeat();
}

#[test]
fn an_eventfd_is_told_of_each_completion() {
    let (world, file, context) = begun();
    let counter = world.call(world.root, nr::EVENTFD2, &[0, O_NONBLOCK]).unwrap();
    let mut told = iocb(file, PREAD, DATA, 4, 0);
    told[7] = 1 | counter << 32;
    let mut failed = iocb(file, PREAD, NOWHERE, 4, 0);
    failed[7] = told[7];
    assert_eq!(submit(&world, world.root, context, &[told, failed, told]), Ok(3));
    assert_eq!(world.read(world.root, counter, 8), Ok(vec![3, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn contexts_are_not_inherited_and_end_by_exec_and_exit() {
    let (world, _, context) = begun();
    let child = world.fork(world.root, 0);
    assert_eq!(submit(&world, child, context, &[]), Err(Errno::EINVAL));
    let own = setup(&world, child, 200).unwrap();
    assert_eq!((submit(&world, child, own, &[]), setup(&world, child, 100)), (Ok(0), Err(Errno::EAGAIN)));
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: child }.message()), Ok(0));
    assert_eq!(submit(&world, child, own, &[]), Err(Errno::EINVAL));
    let next = setup(&world, child, 200).unwrap();
    assert_ne!(next, own);
    let other = thread(&world, 300);
    assert_eq!(submit(&world, other, context, &[]), Ok(0), "threads share them");
    world.exit(other);
    assert_eq!(submit(&world, world.root, context, &[]), Ok(0));
    world.exit(child);
    assert!(setup(&world, world.root, 200).is_ok(), "what the child had is free");
}

fn used(world: &World) -> u64 {
    let reply = world.ask_as_pm(vfs::Usage {}.message());
    vfs::Usage::results(&reply).unwrap().5
}

#[test]
fn a_user_gets_half_of_the_requests_and_of_the_contexts() {
    let mut world = World::new();
    let (user, other) = (world.user(7, 7), world.user(8, 8));
    let contexts: Vec<u64> = (0..2).map(|_| setup(&world, user, 64).unwrap()).collect();
    assert_eq!((setup(&world, user, 1), used(&world)), (Err(Errno::EAGAIN), 128));
    assert_eq!(setup(&world, other, 113), Err(Errno::EAGAIN), "root's reserve");
    assert!(setup(&world, other, 112).is_ok());
    assert!(setup(&world, world.root, 16).is_ok());
    assert_eq!((setup(&world, world.root, 1), used(&world)), (Err(Errno::EAGAIN), 256));
    world.restart_vfs();
    assert_eq!((setup(&world, user, 1), used(&world)), (Err(Errno::EAGAIN), 256));
    assert_eq!(destroy(&world, user, contexts[0]), Ok(0));
    let many = (0..64).map(|_| setup(&world, user, 1)).take_while(|made| made.is_ok()).count();
    assert_eq!(many, 15, "with the one that is left: half of 32");
    assert_eq!(used(&world), 256 - 64 + 15);
}

#[test]
fn completed_requests_outlive_vfs() {
    let (mut world, file, context) = begun();
    let good = iocb(file, PREAD, DATA, 4, 0);
    assert_eq!(submit(&world, world.root, context, &[good; 7]), Ok(7));
    assert_eq!(collect(&world, world.root, context, 6).map(|events| events.len()), Ok(6));
    assert_eq!(submit(&world, world.root, context, &[good, good, good]), Ok(3));
    let child = world.fork(world.root, 0);
    setup(&world, child, 8).unwrap();
    world.exit(child);
    world.restart_vfs();
    assert_eq!(used(&world), 8);
    assert_eq!(submit(&world, world.root, context, &[good; 5]), Ok(4), "there is room for four");
    world.restart_vfs();
    let numbers = collect(&world, world.root, context, 16).unwrap().into_iter().map(|event| event.1);
    assert_eq!(numbers.collect::<Vec<_>>(), [6, 0, 1, 2, 0, 1, 2, 3]);
    world.restart_vfs();
    assert_eq!(collect(&world, world.root, context, 16), Ok(vec![]));
}
