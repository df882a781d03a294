//! Local sockets: connected pairs; names and connections in the other files.

mod messages;
mod names;
mod options;
mod restarts;
mod rights;
mod senders;
mod streams;

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const AF_UNIX: u64 = 1;
const SOCK_STREAM: u64 = 1;
const SOCK_DGRAM: u64 = 2;
const SOCK_RDM: u64 = 4;
const MSG_OOB: u64 = 1;
const MSG_PEEK: u64 = 2;
const MSG_DONTWAIT: u64 = 0x40;
const MSG_WAITALL: u64 = 0x100;
const MSG_EOR: u64 = 0x80;
const MSG_NOSIGNAL: u64 = 0x4000;
const SHUT_RD: u64 = 0;
const SHUT_WR: u64 = 1;
const SHUT_RDWR: u64 = 2;
const SOL_SOCKET: u64 = 1;
const SIGPIPE: u64 = 13;
const FIONREAD: u64 = 0x541b;

pub(super) fn pair(world: &World, flags: u64) -> (u64, u64) {
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[AF_UNIX, SOCK_STREAM | flags, 0, DATA]), Ok(0));
    let both = world.read_words(world.root, DATA, 1)[0];
    (both & 0xffff_ffff, both >> 32)
}

fn send(world: &World, socket: u64, text: &[u8], flags: u64) -> Result<u64> {
    let address = world.data(world.root, text);
    world.call(world.root, nr::SENDTO, &[socket, address, text.len() as u64, flags, 0, 0])
}

fn receive(world: &World, socket: u64, flags: u64) -> Result<Vec<u8>> {
    let bytes = world.call(world.root, nr::RECVFROM, &[socket, DATA, 100, flags, 0, 0])?;
    Ok(world.machine.read(world.root, DATA, bytes as usize))
}

fn poll(world: &World, socket: u64) -> u64 {
    let asked = POLLIN | POLLOUT | POLLRDHUP;
    let address = world.words(world.root, &[socket | u64::from(asked) << 32]);
    world.call(world.root, nr::POLL, &[address, 1, 0]).unwrap();
    world.read_words(world.root, address, 1)[0] >> 48
}

/// `struct msghdr` with these pieces, and lengths of name and control message.
fn header(world: &World, who: Endpoint, pieces: &[u64], name: u64, control: u64) -> u64 {
    let list = DATA + 0x1000;
    let bytes: Vec<u8> = pieces.iter().flat_map(|word| word.to_le_bytes()).collect();
    world.machine.write(who, list, &bytes);
    world.words(who, &[DATA, name, list, pieces.len() as u64 / 2, DATA, control, 0xffff_ffff])
}

fn socket(world: &World, who: Endpoint, flags: u64) -> u64 {
    world.call(who, nr::SOCKET, &[AF_UNIX, SOCK_STREAM | flags, 0]).expect("there is room")
}

/// Puts `struct sockaddr_un` into a program's memory: a path with its NUL, or an abstract name.
fn put_address(world: &World, who: Endpoint, name: &str) -> u64 {
    world.data(who, &[&[1, 0], name.as_bytes(), &[0]].concat())
}

/// Bytes of that.
fn address_bytes(name: &str) -> u64 {
    2 + name.len() as u64 + u64::from(name.starts_with(|first| first != '\0'))
}

fn bind(world: &World, who: Endpoint, socket: u64, name: &str) -> Result<u64> {
    world.call(who, nr::BIND, &[socket, put_address(world, who, name), address_bytes(name)])
}

/// Begins to connect; its result, if it does not wait.
pub(super) fn connect(world: &World, who: Endpoint, socket: u64, name: &str) -> Option<Result<u64>> {
    world.begin_call(who, nr::CONNECT, &[socket, put_address(world, who, name), address_bytes(name)])
}

/// A socket of root that listens, and a child of root without descriptors.
pub(super) fn listener(world: &World, name: &str, backlog: u64) -> (u64, Endpoint) {
    let child = world.fork(world.root, 0);
    world.call(child, nr::CLOSE_RANGE, &[0, u64::from(u32::MAX), 0]).unwrap();
    let server = socket(world, world.root, 0);
    assert_eq!(bind(world, world.root, server, name), Ok(0));
    assert_eq!(world.call(world.root, nr::LISTEN, &[server, backlog]), Ok(0));
    (server, child)
}

/// What getsockname or getpeername tells.
fn name_of(world: &World, who: Endpoint, socket: u64, call: u32) -> Result<Vec<u8>> {
    let length = world.words(who, &[200]);
    world.call(who, call, &[socket, DATA, length])?;
    Ok(world.machine.read(who, DATA, world.read_words(who, length, 1)[0] as usize))
}

#[test]
fn what_one_socket_sends_the_other_receives() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    assert_eq!(send(&world, one, b"there", 0), Ok(5));
    assert_eq!(world.write(world.root, two, b"and back"), Ok(8));
    assert_eq!(receive(&world, one, 0).unwrap(), b"and back");
    assert_eq!(world.read(world.root, two, 3).unwrap(), b"the");
    assert_eq!(world.call(world.root, nr::IOCTL, &[two, FIONREAD, DATA]), Ok(0));
    assert_eq!(world.machine.read(world.root, DATA, 4), [2, 0, 0, 0]);
    assert_eq!(receive(&world, two, MSG_EOR).unwrap(), b"re");
    assert_eq!(receive(&world, one, 0), Err(Errno::EAGAIN));
    assert_eq!(world.call(world.root, nr::IOCTL, &[two, 0x5401, DATA]), Err(Errno::ENOTTY));
}

#[test]
fn a_receiver_waits_unless_told_otherwise() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(receive(&world, two, MSG_DONTWAIT), Err(Errno::EAGAIN));
    assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 100, 0, 0, 0]), None);
    assert_eq!(send(&world, one, b"late", 0), Ok(4));
    assert_eq!(world.result(child), Some(Ok(4)));
    assert_eq!(world.machine.read(child, DATA, 4), b"late");
    while send(&world, one, &[0; 4096], MSG_DONTWAIT).is_ok() {}
    assert_eq!(send(&world, one, b"x", MSG_DONTWAIT), Err(Errno::EAGAIN));
    assert_eq!(world.begin_call(child, nr::SENDTO, &[one, DATA, 4096, 0, 0, 0]), None, "it waits for room");
    while world.result(child).is_none() {
        world.read(world.root, two, 4096).unwrap();
    }
}

#[test]
fn only_local_stream_sockets_are_made() {
    let world = World::new();
    let make =
        |domain, kind, protocol, address| world.call(world.root, nr::SOCKETPAIR, &[domain, kind, protocol, address]);
    assert_eq!(make(2, SOCK_STREAM, 0, DATA), Err(Errno::EAFNOSUPPORT));
    assert_eq!(make(AF_UNIX, SOCK_RDM, 0, DATA), Err(Errno::ESOCKTNOSUPPORT));
    assert_eq!(make(AF_UNIX, SOCK_STREAM, 2, DATA), Err(Errno::EPROTONOSUPPORT));
    assert_eq!(make(AF_UNIX, SOCK_STREAM | 0x10, 0, DATA), Err(Errno::EINVAL));
    assert_eq!(make(AF_UNIX, SOCK_STREAM, 0, 8), Err(Errno::EFAULT));
    assert_eq!(make(AF_UNIX, SOCK_STREAM, AF_UNIX, DATA), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 1), [1 << 32], "what failed has left no descriptors");
    assert_eq!(world.call(world.root, nr::SOCKET, &[2, SOCK_STREAM, 0]), Err(Errno::EAFNOSUPPORT));
    assert_eq!(world.call(world.root, nr::SOCKET, &[AF_UNIX, 12, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::SOCKET, &[AF_UNIX, 0, 0]), Err(Errno::ESOCKTNOSUPPORT));
}

#[test]
fn a_socket_is_an_open_file() {
    let world = World::new();
    let (one, two) = pair(&world, O_CLOEXEC | O_NONBLOCK);
    let (plain, other) = pair(&world, 0);
    let flags = |socket, command| world.call(world.root, nr::FCNTL, &[socket, command]);
    for socket in [one, two] {
        assert_eq!((flags(socket, F_GETFD), flags(socket, F_GETFL)), (Ok(1), Ok(O_RDWR | O_NONBLOCK)));
    }
    assert_eq!((flags(plain, F_GETFD), flags(plain, F_GETFL)), (Ok(0), Ok(O_RDWR)));
    let stats = [one, two, plain, other].map(|socket| world.fstat(world.root, socket).unwrap());
    assert!(stats.iter().all(|stat| stat.mode == S_IFSOCK | 0o777));
    let mut inodes = stats.map(|stat| stat.inode);
    inodes.sort();
    assert!(inodes.windows(2).all(|two| two[0] != two[1]));
    assert_eq!(world.seek(world.root, one, 0, SEEK_SET), Err(Errno::ESPIPE));
    assert_eq!(world.pread(world.root, one, 1, 0), Err(Errno::ESPIPE));
    assert_eq!(world.pwrite(world.root, one, b"x", 0), Err(Errno::ESPIPE));
}

#[test]
fn names_of_others_and_unknown_flags_are_refused() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    world.write(world.root, two, b"data").unwrap();
    assert_eq!(world.call(world.root, nr::SENDTO, &[one, DATA, 1, 0, DATA, 16]), Err(Errno::EISCONN));
    assert_eq!(send(&world, one, b"x", MSG_OOB), Err(Errno::EOPNOTSUPP));
    assert_eq!(receive(&world, one, MSG_OOB), Err(Errno::EINVAL));
    world.machine.write(world.root, DATA + 200, &[9; 8]);
    assert_eq!(world.call(world.root, nr::RECVFROM, &[one, DATA, 100, 0, DATA + 300, DATA + 200]), Ok(4));
    assert_eq!(world.machine.read(world.root, DATA + 200, 8), [0, 0, 0, 0, 9, 9, 9, 9], "the sender has no name");
    let (pipe, _) = world.pipe(world.root, 0);
    for (socket, error) in [(pipe, Errno::ENOTSOCK), (99, Errno::EBADF)] {
        assert_eq!(send(&world, socket, b"x", 0), Err(error));
        assert_eq!(receive(&world, socket, 0), Err(error));
        for call in [nr::SENDMSG, nr::RECVMSG, nr::SHUTDOWN, nr::GETSOCKOPT, nr::SETSOCKOPT, nr::GETSOCKNAME] {
            assert_eq!(world.call(world.root, call, &[socket, 1, 0, 0, 0]), Err(error), "call {call}");
        }
    }
}

#[test]
fn messages_gather_and_scatter() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    world.data(world.root, b"twoone");
    let message = header(&world, world.root, &[DATA + 3, 3, DATA, 3], 0, 0);
    assert_eq!(world.call(world.root, nr::SENDMSG, &[one, message, 0]), Ok(6));
    let message = header(&world, world.root, &[DATA + 100, 4, DATA + 200, 50], 0xffff_ffff_0000_0010, 77);
    assert_eq!(world.call(world.root, nr::RECVMSG, &[two, message, 0]), Ok(6));
    assert_eq!(world.machine.read(world.root, DATA + 100, 5), b"onet\0");
    assert_eq!(world.machine.read(world.root, DATA + 200, 2), b"wo");
    let found = world.read_words(world.root, message, 7);
    assert_eq!((found[1], found[5], found[6]), (0xffff_ffff_0000_0000, 0, 0), "no name, control message or flags");
    assert_eq!((found[0], found[2], found[3], found[4]), (DATA, DATA + 0x1000, 2, DATA));
}

#[test]
fn names_and_malformed_control_messages_are_refused() {
    let world = World::new();
    let (one, _) = pair(&world, O_NONBLOCK);
    let pieces = [DATA, 3];
    for (name, control, error) in [(0, 16, Errno::EINVAL), (16, 0, Errno::EISCONN)] {
        let message = header(&world, world.root, &pieces, name, control);
        assert_eq!(world.call(world.root, nr::SENDMSG, &[one, message, 0]), Err(error));
    }
    let message = header(&world, world.root, &pieces, 0xffff_ffff_0000_0000, 0);
    assert_eq!(world.call(world.root, nr::SENDMSG, &[one, message, 0]), Ok(3), "a length has 32 bits");
    assert_eq!(world.call(world.root, nr::SENDMSG, &[one, message, MSG_OOB]), Err(Errno::EOPNOTSUPP));
    assert_eq!(world.call(world.root, nr::RECVMSG, &[one, message, MSG_DONTWAIT]), Err(Errno::EAGAIN));
    for call in [nr::SENDMSG, nr::RECVMSG] {
        assert_eq!(world.call(world.root, call, &[one, 8, 0]), Err(Errno::EFAULT));
    }
}

#[test]
fn shutting_down_one_direction_leaves_the_other() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    assert_eq!(send(&world, one, b"last", 0), Ok(4));
    assert_eq!(world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]), Ok(0));
    assert_eq!(send(&world, one, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(receive(&world, two, 0).unwrap(), b"last");
    assert_eq!(receive(&world, two, 0).unwrap(), b"", "the end");
    assert_eq!(send(&world, two, b"still", 0), Ok(5));
    assert_eq!(receive(&world, one, 0).unwrap(), b"still");
    assert_eq!(world.call(world.root, nr::SHUTDOWN, &[one, SHUT_RD]), Ok(0));
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
    assert_eq!(send(&world, two, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(world.call(world.root, nr::SHUTDOWN, &[one, 3]), Err(Errno::EINVAL));
    let (one, two) = pair(&world, O_NONBLOCK);
    assert_eq!(world.call(world.root, nr::SHUTDOWN, &[one, SHUT_RDWR]), Ok(0));
    assert_eq!(receive(&world, two, 0).unwrap(), b"");
    assert_eq!(send(&world, two, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
}

#[test]
fn sending_to_nobody_is_signalled() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    world.close(world.root, two).unwrap();
    for (call, arguments) in [(nr::WRITE, [one, DATA, 1, 0, 0, 0]), (nr::SENDTO, [one, DATA, 1, 0, 0, 0])] {
        assert_eq!(world.begin_call(world.root, call, &arguments), None);
        assert_eq!(world.next_event(), Some((vfs::EVENT_SIGNAL, world.root, [SIGPIPE, 0, 0, 0])));
        assert_eq!(world.call_as_pm(vfs::Cancel { process: world.root, error: Errno::EPIPE.0 }.message()), Ok(0));
        assert_eq!(world.result(world.root), Some(Err(Errno::EPIPE)));
    }
    assert_eq!(send(&world, one, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(world.next_event(), None);
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
}

#[test]
fn poll_tells_of_data_room_and_ends() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    let [input, output, ended, hung_up] = [POLLIN, POLLOUT, POLLRDHUP, POLLHUP].map(u64::from);
    assert_eq!(poll(&world, one), output);
    send(&world, two, b"x", 0).unwrap();
    assert_eq!((poll(&world, one), poll(&world, two)), (input | output, output));
    receive(&world, one, 0).unwrap();
    world.call(world.root, nr::SHUTDOWN, &[two, SHUT_WR]).unwrap();
    assert_eq!((poll(&world, one), poll(&world, two)), (input | output | ended, output));
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    assert_eq!(poll(&world, one), input | output | ended | hung_up);
    assert_eq!(poll(&world, two), input | output | ended | hung_up);
    let (one, two) = pair(&world, 0);
    world.close(world.root, two).unwrap();
    assert_eq!(poll(&world, one), input | output | ended | hung_up);
}

#[test]
fn poll_waits_for_data_and_for_the_end_of_the_other_side() {
    let world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    let child = world.fork(world.root, 0);
    let wait = |events: u16| {
        let address = world.words(child, &[one | u64::from(events) << 32]);
        assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, -1i64 as u64]), None);
    };
    wait(POLLIN);
    send(&world, two, b"x", 0).unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
    receive(&world, one, 0).unwrap();
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_RD]).unwrap();
    wait(0);
    world.call(world.root, nr::SHUTDOWN, &[two, SHUT_RD]).unwrap();
    assert_eq!(world.result(child), Some(Ok(1)), "nobody reads what it sends");
}

#[test]
fn both_ends_are_without_a_name() {
    let world = World::new();
    let (one, _) = pair(&world, 0);
    for call in [nr::GETSOCKNAME, nr::GETPEERNAME] {
        for (room, expected) in [(0, [0xff; 4]), (1, [1, 0xff, 0xff, 0xff]), (100, [1, 0, 0xff, 0xff])] {
            let length = world.words(world.root, &[room]);
            world.machine.write(world.root, DATA, &[0xff; 4]);
            assert_eq!(world.call(world.root, call, &[one, DATA, length]), Ok(0));
            assert_eq!(world.machine.read(world.root, DATA, 4), expected);
            assert_eq!(world.read_words(world.root, length, 1), [2]);
        }
        let length = world.words(world.root, &[0xffff_ffff]);
        assert_eq!(world.call(world.root, call, &[one, DATA, length]), Err(Errno::EINVAL));
    }
}

#[test]
fn sockets_outlive_vfs() {
    let mut world = World::new();
    let (one, two) = pair(&world, O_NONBLOCK);
    send(&world, one, b"before", 0).unwrap();
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    world.restart_vfs();
    assert_eq!(receive(&world, two, 0).unwrap(), b"before");
    assert_eq!(receive(&world, two, 0).unwrap(), b"", "it is still shut down");
    assert_eq!(send(&world, one, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(send(&world, two, b"back", 0), Ok(4));
    assert_eq!(receive(&world, one, 0).unwrap(), b"back");
    let (new, _) = pair(&world, 0);
    let inodes = [one, two, new].map(|socket| world.fstat(world.root, socket).unwrap().inode);
    assert!(inodes[2] != inodes[0] && inodes[2] != inodes[1]);
}

#[test]
fn a_datagram_socket_is_ready_for_sending_while_its_peer_has_room() {
    let mut world = World::new();
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    let (one, two) = datagram_pair(&world);
    let third = world.call(world.root, nr::SOCKET, &[AF_UNIX, SOCK_DGRAM, 0]).unwrap();
    let [input, output] = [POLLIN, POLLOUT].map(u64::from);
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let event = world.words(world.root, &[output, 0]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, 1, one, event]), Ok(0));
    let reported = |world: &World| world.call(world.root, nr::EPOLL_WAIT, &[epoll, DATA, 1, 0]);
    while send(&world, one, &[0; 1000], MSG_DONTWAIT).is_ok() {}
    assert_eq!([one, two, third].map(|socket| poll(&world, socket)), [0, input | output, output]);
    assert_eq!(reported(&world), Ok(0));
    world.restart_vfs();
    assert_eq!((poll(&world, one), reported(&world)), (0, Ok(0)));
    let child = world.fork(world.root, 0);
    let asked = world.words(child, &[one | output << 32]);
    assert_eq!(world.begin_call(child, nr::POLL, &[asked, 1, -1i64 as u64]), None);
    while receive(&world, two, MSG_DONTWAIT).is_ok() {}
    assert_eq!((world.result(child), reported(&world), poll(&world, one)), (Some(Ok(1)), Ok(1), output));
    while send(&world, one, &[0; 1000], MSG_DONTWAIT).is_ok() {}
    for who in [world.root, child] {
        world.close(who, two).unwrap();
    }
    assert_eq!(poll(&world, one), output, "a message would be refused at once");
}

pub(super) fn datagram_pair(world: &World) -> (u64, u64) {
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[AF_UNIX, SOCK_DGRAM, 0, DATA]), Ok(0));
    let both = world.read_words(world.root, DATA, 1)[0];
    (both & 0xffff_ffff, both >> 32)
}
