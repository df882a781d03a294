//! Message queues.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const S: u64 = 1_000_000_000;
const START_S: u64 = sys::host::machine::START_REAL_NS / S;

const SIGEV_SIGNAL: u64 = 0;
const SIGEV_NONE: u64 = 1;
const SIGEV_THREAD: u64 = 2;
const SIGUSR1: u64 = 10;

fn open(world: &World, who: Endpoint, name: &str, flags: u64, mode: u64) -> Result<u64> {
    world.path_call(who, nr::MQ_OPEN, name, &[flags, mode, 0])
}

/// Makes a queue for so many messages of so many bytes.
pub(super) fn make(world: &World, who: Endpoint, name: &str, messages: u64, bytes: u64) -> Result<u64> {
    let attributes = world.words(who, &[0, messages, bytes, 0, 0, 0, 0, 0]);
    world.path_call(who, nr::MQ_OPEN, name, &[O_CREAT | O_RDWR, 0o644, attributes])
}

pub(super) fn send(world: &World, queue: u64, text: &[u8], priority: u64) -> Option<Result<u64>> {
    let address = world.data(world.root, text);
    world.begin_call(world.root, nr::MQ_TIMEDSEND, &[queue, address, text.len() as u64, priority, 0])
}

fn receive(world: &World, queue: u64) -> Result<(Vec<u8>, u64)> {
    let (text, priority) = (DATA, DATA + 0x4000);
    world.machine.write(world.root, priority, &[0xff; 8]);
    let bytes = world.call(world.root, nr::MQ_TIMEDRECEIVE, &[queue, text, 8192, priority, 0])?;
    let priority = world.read_words(world.root, priority, 1)[0];
    assert_eq!(priority >> 32, 0xffff_ffff, "a priority has 32 bits");
    Ok((world.machine.read(world.root, text, bytes as usize), priority & 0xffff_ffff))
}

/// Flags, most messages, most bytes, messages.
fn attributes(world: &World, who: Endpoint, queue: u64) -> [u64; 4] {
    assert_eq!(world.call(who, nr::MQ_GETSETATTR, &[queue, 0, DATA]), Ok(0));
    let words = world.read_words(who, DATA, 8);
    assert_eq!(words[4..], [0; 4]);
    [words[0], words[1], words[2], words[3]]
}

fn notify(world: &World, who: Endpoint, queue: u64, how: u64, signal: u64, value: u64) -> Result<u64> {
    let event = world.words(who, &[value, signal | how << 32]);
    world.call(who, nr::MQ_NOTIFY, &[queue, event])
}

#[test]
fn messages_come_by_priority_and_in_order_within_one() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 4, 8192).unwrap();
    for (text, priority) in [(&b"low"[..], 1), (b"high", 32767), (b"", 1), (b"middle", 5)] {
        assert_eq!(send(&world, queue, text, priority), Some(Ok(0)));
    }
    assert_eq!(attributes(&world, world.root, queue), [0, 4, 8192, 4]);
    let expected = [(&b"high"[..], 32767), (b"middle", 5), (b"low", 1), (b"", 1)];
    for (text, priority) in expected {
        assert_eq!(receive(&world, queue), Ok((text.to_vec(), priority)));
    }
    assert_eq!(attributes(&world, world.root, queue)[3], 0);
}

#[test]
fn a_queue_is_made_with_the_usual_size_or_that_asked_for() {
    let world = World::new();
    let usual = open(&world, world.root, "usual", O_CREAT | O_RDWR | O_NONBLOCK | O_APPEND, 0o600).unwrap();
    assert_eq!(attributes(&world, world.root, usual), [O_NONBLOCK, 10, 8192, 0]);
    let small = make(&world, world.root, "small", 3, 7).unwrap();
    assert_eq!(attributes(&world, world.root, small), [0, 3, 7, 0]);
    let flags = |queue, command| world.call(world.root, nr::FCNTL, &[queue, command]);
    assert_eq!((flags(usual, F_GETFD), flags(usual, F_GETFL)), (Ok(1), Ok(O_RDWR | O_NONBLOCK)));
    assert_eq!((flags(small, F_GETFD), flags(small, F_GETFL)), (Ok(1), Ok(O_RDWR)), "exec closes all queues");
    assert_eq!(world.path_call(world.root, nr::MQ_OPEN, "q", &[O_CREAT | O_RDWR, 0o600, 8]), Err(Errno::EFAULT));
}

#[test]
fn sizes_have_limits_that_are_wider_for_the_superuser() {
    let world = World::new();
    let user = world.user(1000, 100);
    for (messages, bytes) in [(0, 1), (1, 0), (11, 1), (1, 8193), (u64::MAX, 1), (1, u64::MAX)] {
        assert_eq!(make(&world, user, "q", messages, bytes), Err(Errno::EINVAL), "{messages} of {bytes}");
    }
    assert!(make(&world, user, "user", 10, 8192).is_ok());
    for (messages, bytes) in [(65537, 1), (1, (16 << 20) + 1)] {
        assert_eq!(make(&world, world.root, "q", messages, bytes), Err(Errno::EINVAL));
    }
    for (messages, bytes) in [(65536, 1), (1, 16 << 20)] {
        assert_eq!(make(&world, world.root, "q", messages, bytes), Err(Errno::EMFILE), "more than a user may have");
    }
    assert!(make(&world, world.root, "many", 11, 100).is_ok());
    assert!(make(&world, world.root, "long", 1, 8193).is_ok());
}

#[test]
fn the_queues_of_a_user_have_a_limit_together() {
    let world = World::new();
    // Linux counts 96 bytes more for each message, and allows 819,200 in all.
    assert_eq!(make(&world, world.root, "q", 8193, 4), Err(Errno::EMFILE));
    assert_eq!(make(&world, world.root, "q", 8192, 4), Err(Errno::ENOSPC), "vfs has less in its tests");
    let (one, two) = (world.user(1000, 100), world.user(1001, 100));
    let small = make(&world, one, "small", 10, 1000).unwrap();
    let used = 10 * 1096;
    assert_eq!(make(&world, world.root, "root", 8000, 4), Err(Errno::ENOSPC));
    world.set_ids(one, (1000, 100), (0, 0), &[]);
    let rest = (819_200 - used) / 10 - 96;
    assert!(rest > 8192, "a user reaches it only with more queues");
    world.close(one, small).unwrap();
    assert_eq!(world.path_call(one, nr::MQ_UNLINK, "small", &[]), Ok(0));
    assert!(make(&world, two, "theirs", 10, 8192).is_ok());
}

#[test]
fn an_existing_queue_is_opened_as_its_mode_allows() {
    let world = World::new();
    let (owner, other) = (world.user(1000, 100), world.user(1001, 101));
    assert_eq!(world.call(owner, nr::UMASK, &[0o022]), Ok(0o022));
    assert_eq!(open(&world, owner, "q", O_RDWR, 0o666), Err(Errno::ENOENT));
    let mine = open(&world, owner, "q", O_CREAT | O_EXCL | O_RDWR, 0o10666).unwrap();
    let stat = world.fstat(owner, mine).unwrap();
    assert_eq!((stat.mode, stat.uid, stat.gid), (S_IFREG | 0o644, 1000, 100));
    assert_eq!(open(&world, owner, "q", O_CREAT | O_EXCL | O_RDWR, 0o666), Err(Errno::EEXIST));
    assert!(open(&world, owner, "q", O_CREAT | O_RDWR, 0).is_ok());
    assert!(open(&world, owner, "q", O_EXCL | O_WRONLY, 0).is_ok());
    assert!(open(&world, other, "q", O_RDONLY, 0).is_ok());
    assert_eq!(open(&world, other, "q", O_WRONLY, 0), Err(Errno::EACCES));
    assert_eq!(open(&world, other, "q", O_RDWR, 0), Err(Errno::EACCES));
    assert_eq!(open(&world, owner, "q", 3, 0), Err(Errno::EINVAL));
    assert!(open(&world, world.root, "q", O_RDWR, 0).is_ok());
}

#[test]
fn names_are_one_component() {
    let world = World::new();
    let longest = "n".repeat(255);
    assert!(make(&world, world.root, &longest, 1, 1).is_ok());
    let bad = [("", Errno::ENOENT), (".", Errno::EACCES), ("..", Errno::EACCES), ("a/b", Errno::EACCES)];
    for (name, error) in bad {
        assert_eq!(make(&world, world.root, name, 1, 1), Err(error), "{name:?}");
        assert_eq!(world.path_call(world.root, nr::MQ_UNLINK, name, &[]), Err(error), "{name:?}");
    }
    assert_eq!(make(&world, world.root, &std::format!("{longest}n"), 1, 1), Err(Errno::ENAMETOOLONG));
    assert_eq!(world.call(world.root, nr::MQ_OPEN, &[8, O_RDWR, 0, 0]), Err(Errno::EFAULT));
}

#[test]
fn an_unlinked_queue_lives_until_it_is_closed() {
    let world = World::new();
    let owner = world.user(1000, 100);
    let queue = make(&world, owner, "q", 1, 10).unwrap();
    let unlink = |who| world.path_call(who, nr::MQ_UNLINK, "q", &[]);
    assert_eq!(unlink(world.user(1001, 100)), Err(Errno::EPERM));
    assert_eq!(unlink(owner), Ok(0));
    assert_eq!(unlink(owner), Err(Errno::ENOENT));
    assert_eq!(world.call(owner, nr::MQ_TIMEDSEND, &[queue, DATA, 3, 0, 0]), Ok(0));
    assert_eq!(world.call(owner, nr::MQ_TIMEDRECEIVE, &[queue, DATA, 10, 0, 0]), Ok(3));
    assert_eq!(open(&world, owner, "q", O_RDWR, 0), Err(Errno::ENOENT));
    let other = make(&world, owner, "q", 2, 20).unwrap();
    assert_eq!(attributes(&world, owner, other), [0, 2, 20, 0], "another queue of this name");
    assert_eq!(attributes(&world, owner, queue), [0, 1, 10, 0]);
    assert_eq!(unlink(world.root), Ok(0));
}

#[test]
fn there_are_not_more_queues_than_vfs_can_preserve() {
    let world = World::new();
    let names: Vec<std::string::String> = (0..40).map(|number| std::format!("q{number}")).collect();
    let results: Vec<Result<u64>> = names.iter().map(|name| make(&world, world.root, name, 1, 1)).collect();
    let made = results.iter().take_while(|result| result.is_ok()).count();
    assert!((8..40).contains(&made), "{made} queues");
    assert!(results[made..].iter().all(|result| *result == Err(Errno::ENOSPC)));
    world.close(world.root, results[0].unwrap()).unwrap();
    assert_eq!(world.path_call(world.root, nr::MQ_UNLINK, "q0", &[]), Ok(0));
    assert!(make(&world, world.root, "new", 1, 1).is_ok());
}

#[test]
fn messages_have_a_size_and_a_priority() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 2, 8).unwrap();
    assert_eq!(send(&world, queue, b"12345678", 32767), Some(Ok(0)));
    assert_eq!(send(&world, queue, b"123456789", 0), Some(Err(Errno::EMSGSIZE)));
    assert_eq!(send(&world, queue, b"x", 32768), Some(Err(Errno::EINVAL)));
    assert_eq!(send(&world, queue, b"x", 1 << 32), Some(Ok(0)), "a priority has 32 bits");
    let call = |bytes| world.call(world.root, nr::MQ_TIMEDRECEIVE, &[queue, DATA, bytes, 0, 0]);
    assert_eq!(call(7), Err(Errno::EMSGSIZE));
    assert_eq!(call(8), Ok(8));
    assert_eq!(world.machine.read(world.root, DATA, 8), b"12345678");
    assert_eq!(call(9), Ok(1));
    assert_eq!(world.call(world.root, nr::MQ_TIMEDSEND, &[queue, 8, 1, 0, 0]), Err(Errno::EFAULT));
    assert_eq!(send(&world, queue, b"kept", 0), Some(Ok(0)));
    assert_eq!(world.call(world.root, nr::MQ_TIMEDRECEIVE, &[queue, 8, 8, 0, 0]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::MQ_TIMEDRECEIVE, &[queue, DATA, 8, 8, 0]), Err(Errno::EFAULT));
    assert_eq!(receive(&world, queue), Ok((b"kept".to_vec(), 0)), "what could not be copied is still there");
}

#[test]
fn a_descriptor_has_to_be_a_queue_open_for_that() {
    let world = World::new();
    make(&world, world.root, "q", 2, 8).unwrap();
    let reads = open(&world, world.root, "q", O_RDONLY, 0).unwrap();
    let writes = open(&world, world.root, "q", O_WRONLY, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    assert_eq!(send(&world, writes, b"x", 0), Some(Ok(0)));
    assert_eq!(receive(&world, writes), Err(Errno::EBADF));
    for file in [reads, pipe, 99] {
        assert_eq!(send(&world, file, b"x", 0), Some(Err(Errno::EBADF)));
    }
    for file in [pipe, 99] {
        assert_eq!(receive(&world, file), Err(Errno::EBADF));
        assert_eq!(notify(&world, world.root, file, SIGEV_SIGNAL, SIGUSR1, 0), Err(Errno::EBADF));
        assert_eq!(world.call(world.root, nr::MQ_NOTIFY, &[file, 0]), Err(Errno::EBADF));
        assert_eq!(world.call(world.root, nr::MQ_GETSETATTR, &[file, 0, DATA]), Err(Errno::EBADF));
    }
    assert_eq!(receive(&world, reads), Ok((b"x".to_vec(), 0)));
    assert_eq!(world.read(world.root, reads, 8), Err(Errno::EINVAL), "read is no way to receive");
    assert_eq!(world.write(world.root, writes, b"x"), Err(Errno::EINVAL));
}

#[test]
fn without_waiting_a_full_or_empty_queue_says_so() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 1, 8).unwrap();
    let set = |flags: u64, old| {
        let new = world.words(world.root, &[flags, 99, 99, 99]);
        world.call(world.root, nr::MQ_GETSETATTR, &[queue, new, old])
    };
    assert_eq!(set(O_NONBLOCK | 1, 0), Err(Errno::EINVAL));
    assert_eq!(set(O_NONBLOCK, DATA), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 4), [0, 1, 8, 0], "as it was");
    assert_eq!(attributes(&world, world.root, queue), [O_NONBLOCK, 1, 8, 0], "only the flag has changed");
    assert_eq!(receive(&world, queue), Err(Errno::EAGAIN));
    assert_eq!(send(&world, queue, b"x", 0), Some(Ok(0)));
    assert_eq!(send(&world, queue, b"y", 0), Some(Err(Errno::EAGAIN)));
    assert_eq!(set(0, 0), Ok(0));
    assert_eq!(attributes(&world, world.root, queue), [0, 1, 8, 1]);
    assert_eq!(send(&world, queue, b"y", 0), None, "it waits");
    assert_eq!(world.call(world.fork(world.root, 0), nr::MQ_GETSETATTR, &[queue, 8, 0]), Err(Errno::EFAULT));
}

#[test]
fn receivers_and_senders_wait_for_each_other() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 1, 8).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::MQ_TIMEDRECEIVE, &[queue, DATA, 8, DATA + 8, 0]), None);
    assert_eq!(send(&world, queue, b"first", 7), Some(Ok(0)));
    assert_eq!(world.result(child), Some(Ok(5)));
    assert_eq!(world.machine.read(child, DATA, 5), b"first");
    assert_eq!(world.machine.read(child, DATA + 8, 4), [7, 0, 0, 0]);
    assert_eq!(send(&world, queue, b"second", 0), Some(Ok(0)));
    world.data(child, b"third");
    assert_eq!(world.begin_call(child, nr::MQ_TIMEDSEND, &[queue, DATA, 5, 3, 0]), None);
    assert_eq!(receive(&world, queue), Ok((b"second".to_vec(), 0)));
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(receive(&world, queue), Ok((b"third".to_vec(), 3)));
}

#[test]
fn a_wait_ends_at_a_time_of_the_wall_clock() {
    let world = World::new();
    world.machine.advance_ns(2 * S);
    let queue = make(&world, world.root, "q", 1, 8).unwrap();
    let begin = |call, seconds: u64, nanoseconds: u64| {
        let time = world.words(world.root, &[seconds, nanoseconds]);
        world.begin_call(world.root, call, &[queue, DATA, 8, 0, time])
    };
    let now_s = || START_S + world.machine.now_ns() / S;
    let left_ns = || S - world.machine.now_ns() % S;
    assert_eq!(begin(nr::MQ_TIMEDRECEIVE, now_s() + 1, 500), None);
    world.machine.advance_ns(left_ns() + 499);
    assert_eq!(world.result(world.root), None);
    world.machine.advance_ns(1);
    assert_eq!(world.result(world.root), Some(Err(Errno::ETIMEDOUT)));
    assert_eq!(begin(nr::MQ_TIMEDRECEIVE, 1, 0), None);
    world.machine.advance_ns(0);
    assert_eq!(world.result(world.root), Some(Err(Errno::ETIMEDOUT)), "a time that is over");
    assert_eq!(begin(nr::MQ_TIMEDSEND, 1, 0), Some(Ok(0)), "without a wait it does not matter");
    assert_eq!(begin(nr::MQ_TIMEDSEND, now_s() + 1, 0), None);
    world.machine.advance_ns(left_ns());
    assert_eq!(world.result(world.root), Some(Err(Errno::ETIMEDOUT)));
    for (seconds, nanoseconds) in [(u64::MAX, 0), (1 << 63, 0), (0, S), (0, u64::MAX)] {
        assert_eq!(begin(nr::MQ_TIMEDRECEIVE, seconds, nanoseconds), Some(Err(Errno::EINVAL)));
        assert_eq!(begin(nr::MQ_TIMEDSEND, seconds, nanoseconds), Some(Err(Errno::EINVAL)));
    }
    assert_eq!(begin(nr::MQ_TIMEDRECEIVE, 0, S - 1), Some(Ok(8)));
    assert_eq!(world.call(world.root, nr::MQ_TIMEDRECEIVE, &[queue, DATA, 8, 0, 8]), Err(Errno::EFAULT));
}

#[test]
fn a_signal_ends_the_wait_and_the_place_in_the_queue() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 1, 8).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::MQ_TIMEDRECEIVE, &[queue, DATA, 8, 0, 0]), None);
    assert_eq!(world.call_as_pm(vfs::Cancel { process: child, error: Errno::EINTR.0 }.message()), Ok(0));
    assert_eq!(world.result(child), Some(Err(Errno::EINTR)));
    assert_eq!(send(&world, queue, b"kept", 0), Some(Ok(0)));
    assert_eq!(attributes(&world, world.root, queue)[3], 1, "it is not handed to who has left");
}

#[test]
fn a_message_to_an_empty_queue_is_announced_once() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 4, 8).unwrap();
    let (user, value) = (world.user(1000, 100), 0x1234_5678_9abc_def0);
    let pid = user.slot() as u64;
    let theirs = open(&world, user, "q", O_RDONLY, 0).unwrap();
    assert_eq!(notify(&world, user, theirs, SIGEV_SIGNAL, SIGUSR1, value), Ok(0));
    assert_eq!(notify(&world, world.root, queue, SIGEV_SIGNAL, SIGUSR1, 0), Err(Errno::EBUSY));
    world.set_ids(world.root, (0, 0), (77, 88), &[]);
    assert_eq!(send(&world, queue, b"x", 0), Some(Ok(0)));
    let (kind, _, words) = world.next_event().unwrap();
    assert_eq!((kind, words), (vfs::EVENT_MESSAGE, [pid | SIGUSR1 << 32, value, 1 | 77 << 32, 0]));
    assert_eq!(world.next_event(), None);
    receive(&world, queue).unwrap();
    assert_eq!(send(&world, queue, b"x", 0), Some(Ok(0)));
    assert_eq!(world.next_event(), None, "one asks for one message");
    assert_eq!(notify(&world, user, theirs, SIGEV_SIGNAL, 64, 1), Ok(0));
    assert_eq!(send(&world, queue, b"y", 0), Some(Ok(0)));
    assert_eq!(world.next_event(), None, "the queue was not empty");
    while attributes(&world, world.root, queue)[3] > 0 {
        receive(&world, queue).unwrap();
    }
    assert_eq!(world.begin_call(user, nr::MQ_TIMEDRECEIVE, &[theirs, DATA, 8, 0, 0]), None);
    assert_eq!(send(&world, queue, b"z", 0), Some(Ok(0)));
    assert_eq!(world.result(user), Some(Ok(1)));
    assert_eq!(world.next_event(), None, "who waits gets the message, and nobody a signal");
    assert_eq!(send(&world, queue, b"z", 0), Some(Ok(0)));
    assert_eq!(world.next_event().unwrap().2[..2], [pid | 64 << 32, 1]);
}

#[test]
fn an_announcement_is_taken_back_by_who_asked_for_it() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 4, 8).unwrap();
    let (child, thread) = (world.fork(world.root, 0), world.fork(world.root, vfs::FORK_FILES));
    let ask = |who| notify(&world, who, queue, SIGEV_SIGNAL, SIGUSR1, 0);
    assert_eq!(ask(world.root), Ok(0));
    assert_eq!(world.call(child, nr::MQ_NOTIFY, &[queue, 0]), Ok(0));
    assert_eq!(ask(child), Err(Errno::EBUSY), "another process takes nothing back");
    assert_eq!(world.call(thread, nr::MQ_NOTIFY, &[queue, 0]), Ok(0));
    assert_eq!(ask(child), Ok(0));
    world.close(child, queue).unwrap();
    assert_eq!(ask(world.root), Ok(0), "a close takes it back");
    assert_eq!(world.call(world.root, nr::MQ_NOTIFY, &[queue, 0]), Ok(0));
    assert_eq!(notify(&world, world.root, queue, SIGEV_NONE, 0, 0), Ok(0));
    assert_eq!(ask(thread), Err(Errno::EBUSY));
    assert_eq!(send(&world, queue, b"x", 0), Some(Ok(0)));
    assert_eq!(world.next_event(), None, "it asked for silence");
    assert_eq!(ask(thread), Ok(0));
}

#[test]
fn announcements_are_signals_or_nothing() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 4, 8).unwrap();
    let ask = |how, signal| notify(&world, world.root, queue, how, signal, 0);
    assert_eq!(ask(SIGEV_SIGNAL, 65), Err(Errno::EINVAL));
    assert_eq!(ask(SIGEV_SIGNAL, 0xffff_ffff), Err(Errno::EINVAL));
    assert_eq!(ask(SIGEV_THREAD, SIGUSR1), Err(Errno::EBADF));
    assert_eq!(ask(3, SIGUSR1), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::MQ_NOTIFY, &[queue, 8]), Err(Errno::EFAULT));
    assert_eq!(ask(SIGEV_NONE, 65), Ok(0));
}

#[test]
fn poll_tells_of_messages_and_room() {
    let world = World::new();
    let queue = make(&world, world.root, "q", 2, 8).unwrap();
    let child = world.fork(world.root, 0);
    let asked = |who| world.words(who, &[queue | u64::from(POLLIN | POLLOUT) << 32]);
    let ready = || {
        let address = asked(world.root);
        world.call(world.root, nr::POLL, &[address, 1, 0]).unwrap();
        (world.read_words(world.root, address, 1)[0] >> 48) as u16
    };
    assert_eq!(ready(), POLLOUT);
    send(&world, queue, b"x", 0);
    assert_eq!(ready(), POLLIN | POLLOUT);
    send(&world, queue, b"x", 0);
    assert_eq!(ready(), POLLIN);
    let address = world.words(child, &[queue | u64::from(POLLOUT) << 32]);
    assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, -1i64 as u64]), None);
    receive(&world, queue).unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
    receive(&world, queue).unwrap();
    let address = world.words(child, &[queue | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, -1i64 as u64]), None);
    send(&world, queue, b"x", 0);
    assert_eq!(world.result(child), Some(Ok(1)));
}

#[test]
fn queues_outlive_vfs() {
    let mut world = World::new();
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    let queue = make(&world, world.root, "q", 4, 8).unwrap();
    let unnamed = make(&world, world.root, "gone", 1, 8).unwrap();
    assert_eq!(world.path_call(world.root, nr::MQ_UNLINK, "gone", &[]), Ok(0));
    let inodes = [queue, unnamed].map(|queue| world.fstat(world.root, queue).unwrap().inode);
    assert!(inodes[0] != inodes[1] && inodes.iter().all(|inode| *inode > 0));
    assert_eq!(send(&world, queue, b"low", 1), Some(Ok(0)));
    assert_eq!(send(&world, queue, b"high", 9), Some(Ok(0)));
    assert_eq!(notify(&world, world.root, unnamed, SIGEV_SIGNAL, SIGUSR1, 5), Ok(0));
    world.restart_vfs();
    assert_eq!(receive(&world, queue), Ok((b"high".to_vec(), 9)));
    assert_eq!(receive(&world, queue), Ok((b"low".to_vec(), 1)));
    assert!(open(&world, world.root, "q", O_RDWR, 0).is_ok());
    assert_eq!(open(&world, world.root, "gone", O_RDWR, 0), Err(Errno::ENOENT));
    assert_eq!(send(&world, unnamed, b"x", 0), Some(Ok(0)));
    world.restart_vfs();
    let (kind, _, words) = world.next_event().unwrap();
    assert_eq!((kind, words[..2].to_vec()), (vfs::EVENT_MESSAGE, [1 | SIGUSR1 << 32, 5].to_vec()), "it is not lost");
    assert_eq!(world.next_event(), None);
}

/// The message goes to the receiver that waited, although the sender's call comes again first.
#[test]
fn who_waited_for_a_message_still_does_when_vfs_has_died_of_it() {
    let mut world = World::new();
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    let queue = make(&world, world.root, "q", 4, 8).unwrap();
    let child = world.fork(world.root, 0);
    let kept = open(&world, child, "q", O_RDWR, 0).unwrap();
    assert_eq!(notify(&world, world.root, queue, SIGEV_SIGNAL, SIGUSR1, 5), Ok(0));
    let (receives, sends) = ([kept, DATA, 8, 0, 0], [queue, DATA, 4, 0, 0]);
    assert_eq!(world.begin_call(child, nr::MQ_TIMEDRECEIVE, &receives), None);
    world.data(world.root, b"text");
    world.restart_vfs_for(&[(world.root, nr::MQ_TIMEDSEND, &sends), (child, nr::MQ_TIMEDRECEIVE, &receives)]);
    assert_eq!((world.result(world.root), world.result(child)), (Some(Ok(0)), Some(Ok(4))));
    assert_eq!(world.machine.read(child, DATA, 4), b"text");
    assert_eq!(world.next_event(), None, "who waited has the message, and nobody a signal");
}

#[test]
fn queues_of_a_user_have_as_many_bytes_as_his_limit_says() {
    let mut world = World::new();
    let user = world.user(1000, 100);
    let limits =
        |message_bytes| vfs::SetLimits { process: user, descriptors: 100, file_bytes: u64::MAX, message_bytes };
    // Each message costs 96 bytes more.
    world.set_all_limits(limits(10 * 8288 - 1));
    assert_eq!(make(&world, user, "one", 10, 8192), Err(Errno::EMFILE));
    world.set_all_limits(limits(10 * 8288));
    world.restart_vfs();
    assert!(make(&world, user, "one", 10, 8192).is_ok());
    assert_eq!(make(&world, user, "two", 1, 1), Err(Errno::EMFILE));
}
