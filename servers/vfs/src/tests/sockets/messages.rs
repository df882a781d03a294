//! Sockets that keep the boundaries of messages: pairs and connections of packets, datagrams, and calls for several messages.

use super::*;
use crate::tests::sockets::options::SO_SNDBUF;

const SOCK_RAW: u64 = 3;
const SOCK_SEQPACKET: u64 = 5;
const MSG_TRUNC: u64 = 0x20;
const MSG_WAITFORONE: u64 = 0x1_0000;

pub(super) fn pair_of(world: &World, kind: u64) -> (u64, u64) {
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[AF_UNIX, kind, 0, DATA]), Ok(0));
    let both = world.read_words(world.root, DATA, 1)[0];
    (both & 0xffff_ffff, both >> 32)
}

fn made(world: &World, who: Endpoint, kind: u64) -> u64 {
    world.call(who, nr::SOCKET, &[AF_UNIX, kind, 0]).expect("there is room")
}

fn send_to(world: &World, socket: u64, text: &[u8], name: &str) -> Option<Result<u64>> {
    let (who, address) = (world.root, DATA + 0x4000);
    world.machine.write(who, address, &[&[1, 0], name.as_bytes(), &[0]].concat());
    let text_address = world.data(who, text);
    let call = [socket, text_address, text.len() as u64, MSG_NOSIGNAL, address, address_bytes(name)];
    world.begin_call(who, nr::SENDTO, &call)
}

/// A message received by recvmsg into so many bytes: result, content, flags, and the sender's name.
fn receive_whole(world: &World, socket: u64, room: u64, flags: u64) -> Result<(u64, Vec<u8>, u64, Vec<u8>)> {
    let who = world.root;
    let (text, name, pieces) = (DATA + 0x1000, DATA + 0x3000, DATA + 0x2000);
    world.machine.write(who, pieces, [text, room].map(u64::to_le_bytes).as_flattened());
    let header = world.words(who, &[name, 110, pieces, 1, 0, 0, 0x1234]);
    let bytes = world.call(who, nr::RECVMSG, &[socket, header, flags | MSG_DONTWAIT])?;
    let found = world.read_words(who, header, 7);
    let content = world.machine.read(who, text, bytes.min(room) as usize);
    Ok((bytes, content, found[6], world.machine.read(who, name, found[1] as usize)))
}

#[test]
fn messages_keep_their_boundaries() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        for text in [&b"first"[..], b"second message", b"", b"last"] {
            assert_eq!(send(&world, one, text, 0), Ok(text.len() as u64));
        }
        assert_eq!(world.call(world.root, nr::IOCTL, &[two, FIONREAD, DATA]), Ok(0));
        let waiting = if kind == SOCK_DGRAM { 5 } else { 23 };
        assert_eq!(world.machine.read(world.root, DATA, 4), [waiting, 0, 0, 0]);
        let none = || b"".to_vec();
        assert_eq!(receive_whole(&world, two, 100, MSG_PEEK), Ok((5, b"first".to_vec(), 0, none())));
        assert_eq!(receive_whole(&world, two, 100, 0), Ok((5, b"first".to_vec(), 0, none())));
        let truncated = |length| Ok((length, b"second".to_vec(), MSG_TRUNC, none()));
        assert_eq!(receive_whole(&world, two, 6, MSG_PEEK | MSG_TRUNC), truncated(14));
        assert_eq!(receive_whole(&world, two, 6, 0), truncated(6));
        assert_eq!(receive_whole(&world, two, 6, 0), Ok((0, none(), 0, none())), "an empty message");
        assert_eq!(world.read(world.root, two, 2).unwrap(), b"la", "the rest is lost");
        assert_eq!(receive_whole(&world, two, 6, 0), Err(Errno::EAGAIN));
        assert_eq!(send(&world, one, b"x", MSG_OOB), Err(Errno::EOPNOTSUPP));
        assert_eq!(receive(&world, two, MSG_OOB), Err(Errno::EOPNOTSUPP));
    }
}

#[test]
fn a_receiver_that_waits_gets_one_message() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let child = world.fork(world.root, 0);
        assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 3, 0, 0, 0]), None);
        assert_eq!(send(&world, one, b"late", 0), Ok(4));
        assert_eq!(world.result(child), Some(Ok(3)));
        assert_eq!(world.machine.read(child, DATA, 4), b"lat\0");
        assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN));
        assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, 8, 3, 0, 0, 0]), None);
        assert_eq!(send(&world, one, b"kept", 0), Ok(4));
        assert_eq!(world.result(child), Some(Err(Errno::EFAULT)));
        assert_eq!(receive(&world, two, 0).unwrap(), b"kept");
        assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 9, 0, 0, 0]), None);
        assert_eq!(world.call(world.root, nr::SENDTO, &[one, 8, 4, 0, 0, 0]), Err(Errno::EFAULT));
        assert_eq!(world.result(child), None);
        assert_eq!(world.cancel(child, Errno::EINTR), Ok(0));
        assert_eq!(world.result(child), Some(Err(Errno::EINTR)));
        assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 9, MSG_PEEK, 0, 0]), None);
        assert_eq!(send(&world, one, b"seen", 0), Ok(4));
        assert_eq!(world.result(child), Some(Ok(4)));
        assert_eq!(receive(&world, two, 0).unwrap(), b"seen");
    }
}

#[test]
fn a_sender_waits_for_room_for_the_whole_message() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let world = World::new();
        let (one, two) = pair_of(&world, kind);
        let child = world.fork(world.root, 0);
        world.data(world.root, &[1; 30_000]);
        let call = |flags| [one, DATA, 30_000, flags, 0, 0];
        assert_eq!([(); 2].map(|()| world.call(world.root, nr::SENDTO, &call(0))), [Ok(30_000); 2]);
        assert_eq!(world.call(world.root, nr::SENDTO, &call(MSG_DONTWAIT)), Err(Errno::EAGAIN));
        world.data(child, &[2; 30_000]);
        assert_eq!(world.begin_call(child, nr::SENDTO, &call(0)), None);
        assert_eq!(send(&world, one, b"x", MSG_DONTWAIT), Err(Errno::EAGAIN), "after those who wait");
        for byte in [1, 1, 2] {
            assert_eq!(world.call(world.root, nr::RECVFROM, &[two, DATA, 30_000, 0, 0, 0]), Ok(30_000));
            assert_eq!(world.machine.read(world.root, DATA + 29_999, 1), [byte]);
        }
        assert_eq!(world.result(child), Some(Ok(30_000)));
        let send_large = |bytes: u64| world.call(world.root, nr::SENDTO, &[one, DATA, bytes, 0, 0, 0]);
        world.data(world.root, &[3; 212_961]);
        assert_eq!(send_large(212_961), Err(Errno::EMSGSIZE));
        assert_eq!(send_large(212_960), Err(Errno::ENOBUFS), "more than the user's share of pages");
        world.data(world.root, &45_000_u32.to_le_bytes());
        assert_eq!(world.call(world.root, nr::SETSOCKOPT, &[one, SOL_SOCKET, SO_SNDBUF, DATA, 4]), Ok(0));
        world.data(world.root, &[3; 90_000]);
        assert_eq!(send_large(90_000 - 31), Err(Errno::EMSGSIZE));
        assert_eq!(send_large(90_000 - 32), Ok(90_000 - 32), "the pipe grows");
        assert_eq!(world.call(world.root, nr::RECVFROM, &[two, DATA, 90_000, 0, 0, 0]), Ok(90_000 - 32));
        assert_eq!(world.machine.read(world.root, DATA + 90_000 - 33, 1), [3]);
        let bad = MEMORY.end - 5000;
        assert_eq!(world.call(world.root, nr::SENDTO, &[one, bad, 9000, 0, 0, 0]), Err(Errno::EFAULT));
        assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN), "nothing of it was sent");
    }
}

#[test]
fn packets_end_as_streams_do() {
    let world = World::new();
    let (one, two) = pair_of(&world, SOCK_SEQPACKET);
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::EPIPE), "without a signal");
    assert_eq!(receive_whole(&world, two, 5, 0), Ok((0, b"".to_vec(), 0, b"".to_vec())));
    assert_eq!(poll(&world, two), u64::from(POLLIN | POLLOUT | POLLRDHUP));
    assert_eq!(send(&world, two, b"back", 0), Ok(4));
    assert_eq!(receive(&world, one, 0).unwrap(), b"back");
    let (one, two) = pair_of(&world, SOCK_SEQPACKET);
    send(&world, one, b"unread", 0).unwrap();
    world.close(world.root, two).unwrap();
    assert_eq!(poll(&world, one), u64::from(POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR));
    assert_eq!(receive(&world, one, 0), Err(Errno::ECONNRESET));
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::EPIPE));
    assert_eq!(world.next_event(), None);
}

#[test]
fn packets_are_connected_by_name() {
    let world = World::new();
    let (child, server) = (world.fork(world.root, 0), made(&world, world.root, SOCK_SEQPACKET));
    assert_eq!(bind(&world, world.root, server, "/server"), Ok(0));
    assert_eq!(world.call(world.root, nr::LISTEN, &[server, 5]), Ok(0));
    let [other, client] = [SOCK_STREAM, SOCK_SEQPACKET].map(|kind| made(&world, child, kind));
    assert_eq!(world.call(child, nr::RECVFROM, &[client, DATA, 1, 0, 0, 0]), Err(Errno::ENOTCONN));
    assert_eq!(world.write(child, client, b"x"), Err(Errno::ENOTCONN));
    assert_eq!(connect(&world, child, other, "/server"), Some(Err(Errno::EPROTOTYPE)));
    assert_eq!(bind(&world, child, client, "/client"), Ok(0));
    assert_eq!(connect(&world, child, client, "/server"), Some(Ok(0)));
    assert_eq!(world.write(child, client, b"early"), Ok(5));
    let accepted = world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    let expected = (5, b"early".to_vec(), 0, b"\x01\0/client\0".to_vec());
    assert_eq!(receive_whole(&world, accepted, 50, 0), Ok(expected));
}

#[test]
fn datagrams_go_to_names() {
    let world = World::new();
    let [one, two, three] = [SOCK_DGRAM, SOCK_DGRAM, SOCK_RAW].map(|kind| made(&world, world.root, kind));
    assert_eq!(poll(&world, one), u64::from(POLLOUT));
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::ENOTCONN));
    assert_eq!(send_to(&world, one, b"x", "/none"), Some(Err(Errno::ENOENT)));
    assert_eq!(send_to(&world, one, b"x", "\0none"), Some(Err(Errno::ECONNREFUSED)));
    for call in [nr::LISTEN, nr::ACCEPT] {
        assert_eq!(world.call(world.root, call, &[one, 0, 0]), Err(Errno::EOPNOTSUPP));
    }
    assert_eq!(bind(&world, world.root, one, "/one"), Ok(0));
    assert_eq!(bind(&world, world.root, two, "\0two"), Ok(0));
    assert_eq!(send_to(&world, one, b"from one", "\0two"), Some(Ok(8)));
    assert_eq!(send_to(&world, three, b"from three", "\0two"), Some(Ok(10)));
    assert_eq!(receive_whole(&world, two, 50, 0), Ok((8, b"from one".to_vec(), 0, b"\x01\0/one\0".to_vec())));
    assert_eq!(receive_whole(&world, two, 50, 0), Ok((10, b"from three".to_vec(), 0, b"".to_vec())));
    assert_eq!(send_to(&world, two, b"back", "/one"), Some(Ok(4)));
    let length = world.words(world.root, &[50]);
    assert_eq!(world.call(world.root, nr::RECVFROM, &[one, DATA + 100, 9, 0, DATA, length]), Ok(4));
    assert_eq!(world.machine.read(world.root, DATA, 6), b"\x01\0\0two");
    assert_eq!(world.read_words(world.root, length, 1), [6]);
    let (_, _) = listener(&world, "/stream", 5);
    assert_eq!(send_to(&world, one, b"x", "/stream"), Some(Err(Errno::EPROTOTYPE)));
    assert_eq!(connect(&world, world.root, one, "/stream"), Some(Err(Errno::EPROTOTYPE)));
    assert_eq!(send_to(&world, one, b"self", "/one"), Some(Ok(4)));
    assert_eq!(receive(&world, one, 0).unwrap(), b"self");
}

#[test]
fn a_connected_datagram_socket_has_one_correspondent() {
    let mut world = World::new();
    let [one, two, three] = [SOCK_DGRAM; 3].map(|kind| made(&world, world.root, kind));
    assert_eq!(bind(&world, world.root, one, "\0one"), Ok(0));
    assert_eq!(bind(&world, world.root, two, "\0two"), Ok(0));
    assert_eq!(connect(&world, world.root, one, "\0two"), Some(Ok(0)));
    for _ in 0..2 {
        assert_eq!(send(&world, one, b"connected", 0), Ok(9));
        assert_eq!(receive(&world, two, 0).unwrap(), b"connected");
        assert_eq!(name_of(&world, world.root, one, nr::GETPEERNAME).unwrap(), b"\x01\0\0two");
        assert_eq!(send_to(&world, three, b"x", "\0one"), Some(Err(Errno::EPERM)));
        assert_eq!(connect(&world, world.root, three, "\0one"), Some(Err(Errno::EPERM)));
        assert_eq!(send_to(&world, two, b"back", "\0one"), Some(Ok(4)));
        assert_eq!(receive(&world, one, 0).unwrap(), b"back");
        world.restart_vfs();
    }
    let nobody = world.data(world.root, &[0; 16]);
    assert_eq!(world.call(world.root, nr::CONNECT, &[one, nobody, 16]), Ok(0));
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::ENOTCONN));
    assert_eq!(name_of(&world, world.root, one, nr::GETPEERNAME), Err(Errno::ENOTCONN));
    assert_eq!(send_to(&world, three, b"x", "\0one"), Some(Ok(1)));
    assert_eq!(connect(&world, world.root, one, "\0two"), Some(Ok(0)));
    world.close(world.root, two).unwrap();
    let others = [SOCK_DGRAM; 2].map(|kind| made(&world, world.root, kind));
    world.restart_vfs();
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::ECONNREFUSED), "another socket may have its place");
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::ENOTCONN));
    assert_eq!(others.map(|other| receive(&world, other, MSG_DONTWAIT)), [Err(Errno::EAGAIN), Err(Errno::EAGAIN)]);
}

#[test]
fn shutting_down_a_datagram_socket_concerns_itself() {
    let world = World::new();
    let (one, two) = pair_of(&world, SOCK_DGRAM);
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::EPIPE));
    assert_eq!((poll(&world, one), poll(&world, two)), (u64::from(POLLOUT), u64::from(POLLOUT)));
    assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN));
    assert_eq!(send(&world, two, b"back", 0), Ok(4));
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_RD]).unwrap();
    assert_eq!(receive(&world, one, 0).unwrap(), b"back");
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
    assert_eq!(send(&world, two, b"x", 0), Err(Errno::EPIPE));
    let (one, two) = pair_of(&world, SOCK_DGRAM);
    let child = world.fork(world.root, 0);
    world.call(child, nr::CLOSE, &[two]).unwrap();
    world.data(child, &[1; 60_000]);
    assert_eq!(world.call(child, nr::SENDTO, &[one, DATA, 60_000, 0, 0, 0]), Ok(60_000));
    assert_eq!(world.begin_call(child, nr::SENDTO, &[one, DATA, 60_000, 0, 0, 0]), None);
    world.close(world.root, two).unwrap();
    assert_eq!(world.result(child), Some(Err(Errno::ECONNREFUSED)));
}

/// `struct mmsghdr`s for messages of so many bytes each, the n-th at `DATA + n * 0x100`.
fn many(world: &World, lengths: &[u64]) -> u64 {
    let (headers, pieces) = (DATA + 0x8000, DATA + 0x7000);
    for (number, length) in lengths.iter().enumerate() {
        let (number, piece) = (number as u64, pieces + 16 * number as u64);
        let words = [0, 0, piece, 1, 0, 0, 0, 99].map(u64::to_le_bytes);
        world.machine.write(world.root, headers + 64 * number, words.as_flattened());
        let piece_words = [DATA + 0x100 * number, *length].map(u64::to_le_bytes);
        world.machine.write(world.root, piece, piece_words.as_flattened());
    }
    headers
}

fn lengths(world: &World, count: u64) -> Vec<u64> {
    (0..count).map(|number| world.read_words(world.root, DATA + 0x8000 + 64 * number + 56, 1)[0]).collect()
}

#[test]
fn several_messages_go_in_one_call() {
    let mut world = World::new();
    let (one, two) = pair_of(&world, SOCK_DGRAM);
    let headers = many(&world, &[1, 2, 3]);
    world.machine.write(world.root, DATA + 0x200, b"abc");
    assert_eq!(world.call(world.root, nr::SENDMMSG, &[one, headers, 3, 0]), Ok(3));
    assert_eq!(lengths(&world, 3), [1, 2, 3]);
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::SENDMMSG, &[one, headers, 3, 0]), Some(Ok(3)));
    let headers = many(&world, &[10, 10, 10, 10]);
    assert_eq!(world.call(world.root, nr::RECVMMSG, &[two, headers, 4, MSG_DONTWAIT, 0]), Ok(3));
    assert_eq!(lengths(&world, 4), [1, 2, 3, 99]);
    assert_eq!(world.machine.read(world.root, DATA + 0x200, 3), b"abc");
    assert_eq!(world.call(world.root, nr::RECVMMSG, &[two, headers, 4, MSG_DONTWAIT, 0]), Err(Errno::EAGAIN));
    send(&world, one, b"x", 0).unwrap();
    assert_eq!(world.call(world.root, nr::RECVMMSG, &[two, headers, 4, MSG_WAITFORONE, 0]), Ok(1));
    let call = [two, headers, 2, 0, 0];
    let child = world.fork(world.root, 0);
    assert_eq!(world.write(child, one, b"y"), Ok(1));
    assert_eq!(world.begin_call(world.root, nr::RECVMMSG, &call), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::RECVMMSG, &call), None);
    assert_eq!(world.write(child, one, b"z"), Ok(1));
    assert_eq!(world.result(world.root), Some(Ok(2)), "the first is not received again");
    assert_eq!(lengths(&world, 2), [1, 1]);
}

#[test]
fn bytes_of_a_stream_go_in_one_call_too() {
    let mut world = World::new();
    let (one, two) = pair(&world, 0);
    let headers = many(&world, &[1, 2, 3]);
    assert_eq!(world.call(world.root, nr::SENDMMSG, &[one, headers, 3, 0]), Ok(3));
    assert_eq!(lengths(&world, 3), [1, 2, 3]);
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::SENDMMSG, &[one, headers, 3, 0]), Some(Ok(3)));
    let headers = many(&world, &[4, 4]);
    assert_eq!(world.call(world.root, nr::RECVMMSG, &[two, headers, 2, 0, 0]), Ok(2));
    assert_eq!(lengths(&world, 2), [4, 2]);
    let headers = many(&world, &[2, 2]);
    assert_eq!(world.write(world.fork(world.root, 0), one, b"y"), Ok(1));
    let call = [two, headers, 2, 0, 0];
    assert_eq!(world.begin_call(world.root, nr::RECVMMSG, &call), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::RECVMMSG, &call), None);
    assert_eq!(world.write(world.fork(world.root, 0), one, b"zz"), Ok(2));
    assert_eq!(world.result(world.root), Some(Ok(2)), "the first is not received again");
    assert_eq!(lengths(&world, 2), [1, 2]);
}

#[test]
fn messages_outlive_vfs_and_are_sent_once() {
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let mut world = World::new();
        let (one, two) = pair_of(&world, kind);
        world.data(world.root, &[7; 9000]);
        for call in [[one, DATA, 3, 0, 0, 0], [one, DATA, 9000, 0, 0, 0]] {
            let sent = world.call(world.root, nr::SENDTO, &call);
            world.restart_vfs();
            assert_eq!(world.repeat_call(world.root, nr::SENDTO, &call), Some(sent));
        }
        let call = [two, DATA, 9001, 0, 0, 0];
        for length in [3, 9000] {
            assert_eq!(world.call(world.root, nr::RECVFROM, &call), Ok(length));
            world.restart_vfs();
            assert_eq!(world.repeat_call(world.root, nr::RECVFROM, &call), Some(Ok(length)));
        }
        assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN));
        let child = world.fork(world.root, 0);
        assert_eq!(world.begin_call(child, nr::RECVFROM, &call), None);
        world.restart_vfs();
        world.machine.forget_request(child);
        assert_eq!(world.repeat_call(child, nr::RECVFROM, &call), None);
        assert_eq!(send(&world, one, b"late", 0), Ok(4));
        assert_eq!(world.result(child), Some(Ok(4)));
    }
}
