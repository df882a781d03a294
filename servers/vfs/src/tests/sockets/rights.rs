//! Open files in flight: what is sent arrives once, wherever vfs dies, and what nobody can receive is closed.

use super::{messages::pair_of, *};

pub(super) const SCM_RIGHTS: u64 = 1;
const MSG_CTRUNC: u64 = 8;
const MSG_CMSG_CLOEXEC: u64 = 0x4000_0000;
const SOCK_SEQPACKET: u64 = 5;
/// Where control messages are, and how much room there is for those received.
pub(super) const CONTROL: u64 = DATA + 0x3000;
pub(super) const ROOM: u64 = 2048;

/// `struct cmsghdr` with data.
pub(super) fn control(kind: u64, data: &[u32]) -> Vec<u8> {
    let mut bytes = (16 + 4 * data.len() as u64).to_le_bytes().to_vec();
    bytes.extend((SOL_SOCKET | kind << 32).to_le_bytes());
    bytes.extend(data.iter().flat_map(|word| word.to_le_bytes()));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// `struct msghdr` with one piece of so many bytes.
fn message(world: &World, who: Endpoint, bytes: u64, control_bytes: u64) -> u64 {
    world.machine.write(who, DATA + 0x1000, &[DATA.to_le_bytes(), bytes.to_le_bytes()].concat());
    world.words(who, &[0, 0, DATA + 0x1000, 1, CONTROL, control_bytes, 0xffff_ffff])
}

/// The arguments of a sendmsg with control messages.
pub(super) fn sending(world: &World, who: Endpoint, socket: u64, text: &[u8], controls: &[u8]) -> [u64; 3] {
    world.machine.write(who, DATA, text);
    world.machine.write(who, CONTROL, controls);
    [socket, message(world, who, text.len() as u64, controls.len() as u64), MSG_NOSIGNAL]
}

fn send_files(world: &World, who: Endpoint, socket: u64, text: &[u8], files: &[u64]) -> Result<u64> {
    let files: Vec<u32> = files.iter().map(|file| *file as u32).collect();
    let arguments = sending(world, who, socket, text, &control(SCM_RIGHTS, &files));
    world.call(who, nr::SENDMSG, &arguments)
}

/// The arguments of a recvmsg with this room for control messages.
pub(super) fn receiving(world: &World, who: Endpoint, socket: u64, room: u64, flags: u64) -> [u64; 3] {
    [socket, message(world, who, 100, room), flags]
}

/// What a recvmsg that has returned so many bytes has written: the text, descriptors, flags.
fn received(world: &World, who: Endpoint, bytes: u64) -> (Vec<u8>, Vec<u64>, u64) {
    let [.., control_bytes, flags] = world.read_words(who, 0x1_4000, 7)[..] else { panic!("seven words") };
    let control = world.machine.read(who, CONTROL, control_bytes as usize);
    let mut files = Vec::new();
    if let Some((head, data)) = control.split_at_checked(16) {
        let length = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize - 16;
        assert_eq!(head[8..], [1, 0, 0, 0, 1, 0, 0, 0]);
        files = data[..length].as_chunks().0.iter().map(|file| u64::from(u32::from_le_bytes(*file))).collect();
    }
    (world.machine.read(who, DATA, bytes as usize), files, flags & 0xffff_ffff)
}

fn receive_files(world: &World, who: Endpoint, socket: u64, room: u64, flags: u64) -> Result<(Vec<u8>, Vec<u64>, u64)> {
    let arguments = receiving(world, who, socket, room, flags);
    let bytes = world.call(who, nr::RECVMSG, &arguments)?;
    Ok(received(world, who, bytes))
}

/// Text and number of descriptors that come without waiting.
fn next(world: &World, socket: u64) -> (Vec<u8>, usize) {
    let (text, files, _) = receive_files(world, world.root, socket, ROOM, MSG_DONTWAIT).expect("there is something");
    (text, files.len())
}

/// Whether nobody can write to the pipe with this end.
fn has_ended(world: &World, reads: u64) -> bool {
    world.read(world.root, reads, 1) == Ok(Vec::new())
}

/// Lets a collection of sockets in flight be done.
fn collect(world: &World) {
    world.heartbeat();
    for _ in 0..10 {
        world.machine.advance_ns(1_000_000);
    }
}

#[test]
fn what_is_sent_lives_without_its_sender() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
        let child = world.fork(world.root, 0);
        assert_eq!(send_files(&world, world.root, one, b"take", &[writes]), Ok(4));
        for process in [child, world.root] {
            world.close(process, writes).unwrap();
        }
        world.close(world.root, one).unwrap();
        assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN), "it is open");
        let (text, files, flags) = receive_files(&world, child, two, ROOM, 0).unwrap();
        assert_eq!((text.as_slice(), files.len(), flags), (&b"take"[..], 1, 0));
        assert_eq!(world.write(child, files[0], b"x"), Ok(1));
        assert_eq!(world.read(world.root, reads, 1).unwrap(), b"x");
        world.close(child, files[0]).unwrap();
        assert!(has_ended(&world, reads));
    }
}

#[test]
fn no_read_of_a_stream_passes_bytes_with_files() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let plain = |text: &[u8]| assert_eq!(send(&world, one, text, 0), Ok(text.len() as u64));
    let laden = |text: &[u8], files: &[u64]| assert!(send_files(&world, world.root, one, text, files).is_ok());
    plain(b"ab");
    laden(b"cd", &[one]);
    laden(b"ef", &[one, two]);
    plain(b"gh");
    plain(b"ij");
    assert_eq!(next(&world, two), (b"abcd".to_vec(), 1));
    assert_eq!(next(&world, two), (b"ef".to_vec(), 2));
    assert_eq!(next(&world, two), (b"ghij".to_vec(), 0));
    laden(b"klm", &[one]);
    plain(b"no");
    assert_eq!(world.read(world.root, two, 1).unwrap(), b"k", "the file goes with the first byte");
    assert_eq!(next(&world, two), (b"lmno".to_vec(), 0), "and then they are like any other");
    plain(b"pq");
    laden(b"rs", &[one]);
    assert_eq!(world.read(world.root, two, 2).unwrap(), b"pq");
    assert_eq!(receive(&world, two, MSG_PEEK).unwrap(), b"rs");
    assert_eq!(next(&world, two), (b"rs".to_vec(), 1), "which neither of the two has taken");
}

#[test]
fn files_for_which_there_is_no_room_are_closed() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let pipes = [0; 3].map(|_| world.pipe(world.root, O_NONBLOCK));
        let writes = pipes.map(|pipe| pipe.1);
        assert_eq!(send_files(&world, world.root, one, b"three", &writes), Ok(5));
        assert_eq!(send_files(&world, world.root, one, b"one", &writes[..1]), Ok(3));
        assert_eq!(send_files(&world, world.root, one, b"two", &writes[..1]), Ok(3));
        writes.iter().for_each(|file| assert_eq!(world.close(world.root, *file), Ok(0)));
        let (text, files, flags) = receive_files(&world, world.root, two, 23, 0).unwrap();
        assert_eq!((text.as_slice(), files.len(), flags), (&b"three"[..], 1, MSG_CTRUNC));
        assert_eq!(pipes.map(|pipe| has_ended(&world, pipe.0)), [false, true, true]);
        world.close(world.root, files[0]).unwrap();
        let (_, files, flags) = receive_files(&world, world.root, two, 16, 0).unwrap();
        assert_eq!((files, flags), (vec![], MSG_CTRUNC));
        assert!(!has_ended(&world, pipes[0].0));
        assert_eq!(world.read(world.root, two, 10).unwrap(), b"two");
        assert!(has_ended(&world, pipes[0].0));
    }
}

#[test]
fn as_many_come_as_there_are_numbers_for() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    assert_eq!(send_files(&world, world.root, one, b"x", &[one; 253]), Ok(1));
    assert_eq!(send_files(&world, world.root, one, b"y", &[two; 10]), Ok(1));
    assert_eq!(send_files(&world, world.root, one, b"x", &[one; 254]), Err(Errno::EINVAL));
    let (_, files, flags) = receive_files(&world, world.root, two, ROOM, MSG_CMSG_CLOEXEC).unwrap();
    assert_eq!((files.len(), files[252] - files[0], flags), (253, 252, MSG_CMSG_CLOEXEC));
    assert_eq!(world.call(world.root, nr::FCNTL, &[files[252], F_GETFD]), Ok(1));
    world.set_limits(world.root, files[252] + 3, u64::MAX);
    let (_, files, flags) = receive_files(&world, world.root, two, ROOM, 0).unwrap();
    assert_eq!((files.len(), flags), (2, MSG_CTRUNC));
    assert_eq!(world.call(world.root, nr::FCNTL, &[files[1], F_GETFD]), Ok(0));
}

#[test]
fn a_look_gives_descriptors_too() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
        assert_eq!(send_files(&world, world.root, one, b"look", &[writes]), Ok(4));
        world.close(world.root, writes).unwrap();
        let (text, looked, _) = receive_files(&world, world.root, two, ROOM, MSG_PEEK).unwrap();
        let (same, files, _) = receive_files(&world, world.root, two, ROOM, 0).unwrap();
        assert_eq!((text, looked.len(), files.len()), (same, 1, 1));
        world.close(world.root, looked[0]).unwrap();
        assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
        world.close(world.root, files[0]).unwrap();
        assert!(has_ended(&world, reads));
    }
}

#[test]
fn who_waits_gets_the_files() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let child = world.fork(world.root, 0);
        let arguments = receiving(&world, child, two, ROOM, 0);
        assert_eq!(world.begin_call(child, nr::RECVMSG, &arguments), None);
        assert_eq!(send_files(&world, world.root, one, b"late", &[one]), Ok(4));
        assert_eq!(world.result(child), Some(Ok(4)));
        let (text, files, flags) = received(&world, child, 4);
        assert_eq!((text.as_slice(), files.len(), flags), (&b"late"[..], 1, 0));
        // One without room for control messages.
        world.words(child, &[0, 0, DATA + 0x1000, 1, 0, 0, 0]);
        assert_eq!(world.begin_call(child, nr::RECVMSG, &arguments), None);
        assert_eq!(send_files(&world, world.root, one, b"late", &[one]), Ok(4));
        assert_eq!(world.result(child), Some(Ok(4)));
        let results = world.read_words(child, arguments[1], 7);
        assert_eq!((results[5], results[6] & 0xffff_ffff), (0, MSG_CTRUNC));
        // One that reads.
        let arguments = [two, DATA, 10];
        assert_eq!(world.begin_call(child, nr::READ, &arguments), None);
        assert_eq!(send_files(&world, world.root, one, b"read", &[one]), Ok(4));
        assert_eq!(world.result(child), Some(Ok(4)));
    }
}

#[test]
fn a_sender_that_waits_for_room_sends_its_files_once() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let mut world = World::new();
        let (one, two) = pair_of(&world, kind);
        while send(&world, one, &[0; 4096], MSG_DONTWAIT).is_ok() {}
        while send(&world, one, &[0; 1], MSG_DONTWAIT).is_ok() {}
        let child = world.fork(world.root, 0);
        let arguments = sending(&world, child, one, b"late", &control(SCM_RIGHTS, &[two as u32; 9]));
        let [socket, header, _] = arguments;
        assert_eq!(world.call(child, nr::SENDMSG, &[socket, header, MSG_DONTWAIT]), Err(Errno::EAGAIN));
        assert_eq!(world.begin_call(child, nr::SENDMSG, &arguments), None);
        world.restart_vfs();
        world.machine.forget_request(child);
        assert_eq!(world.repeat_call(child, nr::SENDMSG, &arguments), None);
        let (mut files, mut bytes) = (0, 0);
        while let Ok((text, found, _)) = receive_files(&world, world.root, two, ROOM, MSG_DONTWAIT) {
            files += found.len();
            bytes = text.len();
        }
        assert_eq!((world.result(child), files, bytes > 0), (Some(Ok(4)), 9, true));
    }
}

#[test]
fn control_messages_are_checked() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let try_to = |controls: &[u8]| {
        let arguments = sending(&world, world.root, one, b"x", controls);
        world.call(world.root, nr::SENDMSG, &arguments)
    };
    assert_eq!(try_to(&control(SCM_RIGHTS, &[99])), Err(Errno::EBADF));
    assert_eq!(try_to(&control(SCM_RIGHTS, &[u32::MAX])), Err(Errno::EBADF));
    assert_eq!(try_to(&control(77, &[1])), Err(Errno::EINVAL));
    assert_eq!(try_to(&[0; 16]), Err(Errno::EINVAL));
    assert_eq!(try_to(&[0; 15]), Ok(1), "there is none");
    assert_eq!(try_to(&control(SCM_RIGHTS, &[])), Ok(1), "of no file");
    let mut other_level = control(77, &[1]);
    other_level[8] = 2;
    assert_eq!(try_to(&other_level), Ok(1));
    let mut long = control(SCM_RIGHTS, &[one as u32]);
    long[0] = 25;
    assert_eq!(try_to(&long), Err(Errno::EINVAL));
    let both = [control(SCM_RIGHTS, &[one as u32, two as u32]), control(SCM_RIGHTS, &[two as u32])].concat();
    assert_eq!(try_to(&both), Ok(1));
    let header = message(&world, world.root, 1, 20_481);
    assert_eq!(world.call(world.root, nr::SENDMSG, &[one, header, 0]), Err(Errno::ENOBUFS));
    world.words(world.root, &[0, 0, DATA + 0x1000, 1, 8, 16, 0]);
    assert_eq!(world.call(world.root, nr::SENDMSG, &[one, header, 0]), Err(Errno::EFAULT));
    assert_eq!(next(&world, two), (b"xxxx".to_vec(), 3));
}

#[test]
fn files_arrive_once_wherever_vfs_dies() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let mut world = World::new();
        let (one, two) = pair_of(&world, kind);
        let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
        let sent = send_files(&world, world.root, one, b"first", &[writes; 20]);
        world.restart_vfs();
        let sending = [one, 0x1_4000, MSG_NOSIGNAL];
        assert_eq!([Some(sent), world.repeat_call(world.root, nr::SENDMSG, &sending)], [Some(Ok(5)); 2]);
        assert_eq!(send_files(&world, world.root, one, b"second", &[writes]), Ok(6));
        world.close(world.root, writes).unwrap();
        world.restart_vfs();
        assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN), "it is open");
        for (text, count) in [(&b"first"[..], 20), (b"second", 1)] {
            let arguments = receiving(&world, world.root, two, ROOM, 0);
            let bytes = world.call(world.root, nr::RECVMSG, &arguments).unwrap();
            world.restart_vfs();
            assert_eq!(world.repeat_call(world.root, nr::RECVMSG, &arguments), Some(Ok(bytes)));
            let (found, files, flags) = received(&world, world.root, bytes);
            assert_eq!((found.as_slice(), files.len(), flags), (text, count, 0));
            files.iter().for_each(|file| assert_eq!(world.close(world.root, *file), Ok(0)));
        }
        assert!(has_ended(&world, reads));
        assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN));
    }
}

#[test]
fn what_is_registered_or_locked_stays_so_in_flight() {
    let mut world = World::new();
    let (one, two) = pair(&world, 0);
    world.make("/file", b"x", 0o666, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    const LOCK_EX_NB: u64 = 6;
    assert_eq!(world.call(world.root, nr::FLOCK, &[file, LOCK_EX_NB]), Ok(0));
    let (epoll, counter) = (crate::tests::epoll::create(&world), crate::tests::epoll::counter(&world, 1));
    assert_eq!(crate::tests::epoll::control(&world, epoll, 1, counter, 1), Ok(0));
    assert_eq!(send_files(&world, world.root, one, b"x", &[file, epoll, counter]), Ok(1));
    for file in [file, epoll, counter] {
        world.close(world.root, file).unwrap();
    }
    for _ in 0..2 {
        let other = world.open(world.root, "/file", O_RDWR, 0).unwrap();
        assert_eq!(world.call(world.root, nr::FLOCK, &[other, LOCK_EX_NB]), Err(Errno::EAGAIN));
        world.close(world.root, other).unwrap();
        world.restart_vfs();
    }
    let (_, files, _) = receive_files(&world, world.root, two, ROOM, 0).unwrap();
    assert_eq!(crate::tests::epoll::now(&world, files[1]), [(counter, 1)]);
    let other = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FLOCK, &[other, LOCK_EX_NB]), Err(Errno::EAGAIN));
    world.close(world.root, files[0]).unwrap();
    assert_eq!(world.call(world.root, nr::FLOCK, &[other, LOCK_EX_NB]), Ok(0));
}

/// A socket waits in its own queue, with the writing end of a pipe. Returns the reading end.
fn loop_of_one(world: &World, kind: u64) -> u64 {
    let (one, two) = pair_of(world, kind);
    let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
    assert_eq!(send_files(world, world.root, one, b"x", &[two, writes]), Ok(1));
    for file in [two, writes] {
        world.close(world.root, file).unwrap();
    }
    reads
}

#[test]
fn sockets_that_nobody_can_receive_are_closed() {
    for kind in [SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let reads = loop_of_one(&world, kind);
        assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
        collect(&world);
        assert!(has_ended(&world, reads), "the peer is open, but nobody can receive");
        // Two sockets, each in the queue of the other.
        let ((a, to_a), (b, to_b)) = (pair_of(&world, kind), pair_of(&world, kind));
        let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
        assert_eq!(send_files(&world, world.root, to_a, b"x", &[b, writes]), Ok(1));
        assert_eq!(send_files(&world, world.root, to_b, b"x", &[a]), Ok(1));
        for file in [a, to_a, b, to_b, writes] {
            world.close(world.root, file).unwrap();
        }
        collect(&world);
        assert!(has_ended(&world, reads));
    }
}

#[test]
fn what_can_be_received_is_not_closed() {
    let world = World::new();
    // A descriptor refers to the first socket, whose queue has the second, whose queue has a pipe of a third that is in its own queue.
    let reads = loop_of_one(&world, SOCK_STREAM);
    let (first, to_first) = pair(&world, 0);
    let (loose, to_loose) = pair(&world, 0);
    assert_eq!(send_files(&world, world.root, to_loose, b"y", &[reads]), Ok(1));
    assert_eq!(send_files(&world, world.root, to_first, b"x", &[loose]), Ok(1));
    for file in [loose, to_loose, to_first, reads] {
        world.close(world.root, file).unwrap();
    }
    collect(&world);
    let (_, files, _) = receive_files(&world, world.root, first, ROOM, 0).unwrap();
    collect(&world);
    let (text, files, _) = receive_files(&world, world.root, files[0], ROOM, 0).unwrap();
    assert_eq!((text.as_slice(), files.len()), (&b"y"[..], 1));
    assert!(has_ended(&world, files[0]), "the loop has gone");
}

#[test]
fn connections_that_wait_in_a_listening_socket_in_flight_go_with_it() {
    let world = World::new();
    let (server, child) = listener(&world, "/server", 5);
    let client = socket(&world, child, 0);
    assert_eq!(connect(&world, child, client, "/server"), Some(Ok(0)));
    let (one, two) = pair(&world, 0);
    let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
    assert_eq!(send_files(&world, world.root, one, b"x", &[server]), Ok(1));
    let (_, files, _) = receive_files(&world, world.root, two, ROOM, MSG_PEEK).unwrap();
    world.close(world.root, server).unwrap();
    collect(&world);
    // The listening socket is in its own connection's queue.
    assert_eq!(send_files(&world, world.root, one, b"give", &[writes, files[0]]), Ok(4));
    let arguments = receiving(&world, world.root, two, ROOM, 0);
    world.call(world.root, nr::RECVMSG, &arguments).unwrap();
    let (_, given, _) = receive_files(&world, world.root, two, ROOM, 0).unwrap();
    let second = socket(&world, world.root, 0);
    assert_eq!(connect(&world, world.root, second, "/server"), Some(Ok(0)));
    assert_eq!(send_files(&world, world.root, second, b"y", &given), Ok(1));
    world.call(world.root, nr::CLOSE_RANGE, &[0, reads - 1, 0]).unwrap();
    world.call(world.root, nr::CLOSE_RANGE, &[reads + 1, u64::from(u32::MAX), 0]).unwrap();
    assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
    collect(&world);
    assert!(has_ended(&world, reads));
    assert_eq!(world.read(child, client, 1), Err(Errno::ECONNRESET), "its listener has gone");
}

#[test]
fn a_successor_closes_what_nobody_can_receive() {
    let mut world = World::new();
    let reads = loop_of_one(&world, SOCK_STREAM);
    world.restart_vfs();
    assert!(has_ended(&world, reads));
}

#[test]
fn a_long_chain_of_sockets_is_closed() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
    let mut last = writes;
    for _ in 0..12 {
        let (one, two) = pair(&world, 0);
        assert_eq!(send_files(&world, world.root, one, b"x", &[last]), Ok(1));
        for file in [one, last] {
            world.close(world.root, file).unwrap();
        }
        last = two;
    }
    world.restart_vfs();
    assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
    world.close(world.root, last).unwrap();
    assert!(has_ended(&world, reads));
}

#[test]
fn a_user_has_as_many_files_in_flight_as_descriptors() {
    let mut world = World::new();
    let user = world.user(1000, 100);
    assert_eq!(world.call(user, nr::SOCKETPAIR, &[AF_UNIX, SOCK_STREAM, 0, DATA]), Ok(0));
    let both = world.read_words(user, DATA, 1)[0];
    let (one, two) = (both & 0xffff_ffff, both >> 32);
    world.set_limits(user, 10, u64::MAX);
    assert_eq!(send_files(&world, user, one, b"x", &[one; 10]), Ok(1));
    assert_eq!(send_files(&world, user, one, b"x", &[one; 3]), Ok(1));
    world.restart_vfs();
    assert_eq!(send_files(&world, user, one, b"x", &[one]), Err(Errno::ETOOMANYREFS));
    assert_eq!(send_files(&world, user, one, b"x", &[]), Ok(1));
    assert_eq!(world.read(user, two, 1).unwrap(), b"x");
    assert_eq!(send_files(&world, user, one, b"x", &[one]), Ok(1));
}

#[test]
fn the_table_is_divided_among_users() {
    let world = World::new();
    let fill = |who| {
        assert_eq!(world.call(who, nr::SOCKETPAIR, &[AF_UNIX, SOCK_STREAM, 0, DATA]), Ok(0));
        let both = world.read_words(who, DATA, 1)[0];
        let one = both & 0xffff_ffff;
        let sent = |_: &u32| send_files(&world, who, one, b"x", &[one]) == Ok(1);
        (0..100).take_while(sent).count()
    };
    assert_eq!((fill(world.user(1000, 100)), fill(world.user(1001, 100)), fill(world.root)), (32, 28, 4));
}
