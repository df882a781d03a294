//! Options of sockets.

use super::*;

const SO_TYPE: u64 = 3;
const SO_ERROR: u64 = 4;
pub const SO_SNDBUF: u64 = 7;
const SO_RCVBUF: u64 = 8;
const SO_PASSCRED: u64 = 16;
const SO_PEERCRED: u64 = 17;
const SO_RCVTIMEO: u64 = 20;
const SO_SNDTIMEO: u64 = 21;

fn get(world: &World, socket: u64, name: u64, room: u64) -> Result<(Vec<u64>, u64)> {
    let length = world.words(world.root, &[room]);
    world.machine.write(world.root, DATA, &[0; 16]);
    world.call(world.root, nr::GETSOCKOPT, &[socket, SOL_SOCKET, name, DATA, length])?;
    Ok((world.read_words(world.root, DATA, 2), world.read_words(world.root, length, 1)[0]))
}

fn set(world: &World, socket: u64, name: u64, value: &[u64], length: u64) -> Result<u64> {
    let address = world.words(world.root, value);
    world.call(world.root, nr::SETSOCKOPT, &[socket, SOL_SOCKET, name, address, length])
}

#[test]
fn options_tell_what_a_socket_is() {
    let world = World::new();
    let (one, _) = pair(&world, 0);
    let value = |value: u64| Ok((vec![value, 0], 4));
    for (name, expected) in
        [(SO_TYPE, SOCK_STREAM), (SO_ERROR, 0), (SO_SNDBUF, 212_992), (SO_RCVBUF, 212_992), (30, 0), (38, 0), (39, 1)]
    {
        assert_eq!(get(&world, one, name, 100), value(expected), "option {name}");
    }
    let (listening, _) = listener(&world, "/server", 5);
    assert_eq!(get(&world, listening, 30, 4), value(1));
    assert_eq!(get(&world, one, SO_TYPE, 0), Ok((vec![0, 0], 0)));
    assert_eq!(get(&world, one, SO_SNDBUF, 2), Ok((vec![212_992 & 0xffff, 0], 2)), "as much as there is room for");
    assert_eq!(get(&world, one, SO_TYPE, 0xffff_ffff), Err(Errno::EINVAL));
    assert_eq!(get(&world, one, 999, 4), Err(Errno::ENOPROTOOPT));
    let other_level = world.call(world.root, nr::GETSOCKOPT, &[one, 6, 3, DATA, DATA]);
    assert_eq!(other_level, Err(Errno::EOPNOTSUPP));
    assert_eq!(world.call(world.root, nr::GETSOCKOPT, &[one, SOL_SOCKET, 3, DATA, 8]), Err(Errno::EFAULT));
}

#[test]
fn options_are_remembered() {
    let mut world = World::new();
    let (one, two) = pair(&world, 0);
    assert_eq!(set(&world, one, SO_SNDBUF, &[10_000], 4), Ok(0));
    assert_eq!(set(&world, one, SO_RCVBUF, &[1], 4), Ok(0));
    assert_eq!(set(&world, two, SO_SNDBUF, &[1], 4), Ok(0));
    assert_eq!(set(&world, two, SO_RCVBUF, &[0xffff_ffff], 4), Ok(0));
    assert_eq!(set(&world, one, SO_PASSCRED, &[7], 4), Ok(0));
    assert_eq!(set(&world, one, SO_SNDTIMEO, &[2, 345_678], 16), Ok(0));
    world.restart_vfs();
    let value = |socket, name| get(&world, socket, name, 16).unwrap().0;
    assert_eq!([value(one, SO_SNDBUF)[0], value(one, SO_RCVBUF)[0]], [20_000, 2304]);
    assert_eq!([value(two, SO_SNDBUF)[0], value(two, SO_RCVBUF)[0]], [4608, 425_984]);
    assert_eq!([value(one, SO_PASSCRED)[0], value(two, SO_PASSCRED)[0]], [1, 0]);
    assert_eq!((value(one, SO_SNDTIMEO), value(one, SO_RCVTIMEO)), (vec![2, 345_678], vec![0, 0]));
    assert_eq!(set(&world, one, SO_PASSCRED, &[0], 4), Ok(0));
    assert_eq!(get(&world, one, SO_PASSCRED, 4).unwrap().0[0], 0);
    for (name, value, length, error) in [
        (SO_PASSCRED, [1, 0], 3, Errno::EINVAL),
        (SO_RCVTIMEO, [1, 0], 15, Errno::EINVAL),
        (SO_RCVTIMEO, [1, 1_000_000], 16, Errno::EDOM),
        (SO_TYPE, [1, 0], 4, Errno::ENOPROTOOPT),
        (999, [1, 0], 4, Errno::ENOPROTOOPT),
    ] {
        assert_eq!(set(&world, one, name, &value, length), Err(error), "option {name}");
    }
    assert_eq!(world.call(world.root, nr::SETSOCKOPT, &[one, 6, 7, DATA, 4]), Err(Errno::EOPNOTSUPP));
    assert_eq!(world.call(world.root, nr::SETSOCKOPT, &[one, SOL_SOCKET, 7, 8, 4]), Err(Errno::EFAULT));
}

#[test]
fn each_side_is_told_who_the_other_is() {
    let world = World::new();
    let (server, user) = (listener(&world, "/server", 5).0, world.user(1000, 100));
    world.path_call(world.root, nr::CHMOD, "/server", &[0o777]).unwrap();
    let client = socket(&world, user, 0);
    assert_eq!(connect(&world, user, client, "/server"), Some(Ok(0)));
    let accepted = world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    let ids = |who: Endpoint, descriptor| {
        let length = world.words(who, &[100]);
        world.call(who, nr::GETSOCKOPT, &[descriptor, SOL_SOCKET, SO_PEERCRED, DATA, length]).unwrap();
        assert_eq!(world.read_words(who, length, 1), [12]);
        world.machine.read(who, DATA, 12).as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)).collect::<Vec<_>>()
    };
    assert_eq!(ids(world.root, accepted), [user.slot() as u32, 1000, 100]);
    assert_eq!(ids(user, client), [1, 0, 0]);
    let fresh = socket(&world, world.root, 0);
    assert_eq!(ids(world.root, fresh), [0, u32::MAX, u32::MAX]);
    let (one, _) = pair(&world, 0);
    assert_eq!(ids(world.root, one), [1, 0, 0]);
}

#[test]
fn waiting_ends_at_the_limit() {
    const MS: u64 = 1_000_000;
    let world = World::new();
    let (one, _two) = pair(&world, 0);
    for name in [SO_RCVTIMEO, SO_SNDTIMEO] {
        assert_eq!(set(&world, one, name, &[0, 30_000], 16), Ok(0));
    }
    assert_eq!(world.begin_call(world.root, nr::RECVFROM, &[one, DATA, 10, 0, 0, 0]), None);
    world.machine.advance_ns(29 * MS);
    assert_eq!(world.result(world.root), None);
    world.machine.advance_ns(MS);
    assert_eq!(world.result(world.root), Some(Err(Errno::EAGAIN)));
    assert_eq!(world.begin_call(world.root, nr::SENDTO, &[one, DATA, 100_000, 0, 0, 0]), None);
    world.machine.advance_ns(30 * MS);
    assert_eq!(world.result(world.root), Some(Ok(65_536)), "what went is told");
    assert_eq!(world.begin_call(world.root, nr::SENDTO, &[one, DATA, 10, 0, 0, 0]), None);
    world.machine.advance_ns(30 * MS);
    assert_eq!(world.result(world.root), Some(Err(Errno::EAGAIN)));
    let (server, _) = listener(&world, "/server", 0);
    assert_eq!(set(&world, server, SO_RCVTIMEO, &[0, 30_000], 16), Ok(0));
    assert_eq!(world.begin_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    world.machine.advance_ns(30 * MS);
    assert_eq!(world.result(world.root), Some(Err(Errno::EAGAIN)));
    let clients = [0; 2].map(|flags| socket(&world, world.root, flags));
    assert_eq!(set(&world, clients[1], SO_SNDTIMEO, &[0, 30_000], 16), Ok(0));
    assert_eq!(connect(&world, world.root, clients[0], "/server"), Some(Ok(0)));
    assert_eq!(connect(&world, world.root, clients[1], "/server"), None);
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)), "its wait has a limit");
    assert_eq!(connect(&world, world.root, clients[1], "/server"), None);
    world.machine.advance_ns(30 * MS);
    assert_eq!(world.result(world.root), Some(Err(Errno::EAGAIN)));
}

#[test]
fn a_send_with_a_limit_to_nobody_is_signalled() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    assert_eq!(set(&world, one, SO_SNDTIMEO, &[5, 0], 16), Ok(0));
    assert_eq!(world.begin_call(world.root, nr::SENDTO, &[one, DATA, 70_000, 0, 0, 0]), None);
    let child = world.fork(world.root, 0);
    world.call(child, nr::SHUTDOWN, &[two, SHUT_RD]).unwrap();
    assert_eq!(world.result(world.root), Some(Ok(65_536)));
    let other = pair(&world, 0);
    assert_eq!(set(&world, other.0, SO_SNDTIMEO, &[5, 0], 16), Ok(0));
    world.close(world.root, other.1).unwrap();
    assert_eq!(world.begin_call(world.root, nr::SENDTO, &[other.0, DATA, 1, 0, 0, 0]), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_SIGNAL, world.root, [SIGPIPE, 0, 0, 0])));
    assert_eq!(world.cancel(world.root, Errno::EPIPE), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EPIPE)));
    assert_eq!(send(&world, other.0, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
}
