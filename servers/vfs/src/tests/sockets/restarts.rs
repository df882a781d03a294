//! vfs dies under sockets with names: what was bound, waits or is connected stays, and no call is done twice.

use super::*;

/// A call that is made, and comes again at a successor that does not know how it ended.
fn twice(world: &mut World, who: Endpoint, call: u32, arguments: &[u64]) -> [Result<u64>; 2] {
    let first = world.call(who, call, arguments);
    world.restart_vfs();
    [first, world.repeat_call(who, call, arguments).expect("nothing waits")]
}

#[test]
fn every_step_of_a_connection_is_taken_once() {
    let mut world = World::new();
    let root = world.root;
    let child = world.fork(root, 0);
    let done = [Ok(0); 2];
    assert_eq!(twice(&mut world, root, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]), done);
    let address = put_address(&world, root, "/server");
    assert_eq!(twice(&mut world, root, nr::BIND, &[0, address, 10]), done);
    assert_eq!(twice(&mut world, root, nr::LISTEN, &[0, 5]), done);
    assert_eq!(world.call(child, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]), Ok(0));
    let address = put_address(&world, child, "/server");
    assert_eq!(twice(&mut world, child, nr::CONNECT, &[0, address, 10]), done);
    world.data(child, b"once");
    assert_eq!(twice(&mut world, child, nr::WRITE, &[0, DATA, 4]), [Ok(4); 2]);
    assert_eq!(twice(&mut world, root, nr::ACCEPT, &[0, 0, 0]), [Ok(1); 2]);
    assert_eq!(twice(&mut world, root, nr::RECVFROM, &[1, DATA, 100, 0, 0, 0]), [Ok(4); 2]);
    assert_eq!(twice(&mut world, root, nr::SHUTDOWN, &[1, SHUT_WR]), done);
    assert_eq!(world.read(child, 0, 1).unwrap(), b"");
    assert_eq!(twice(&mut world, root, nr::CLOSE, &[1]), done);
    assert_eq!(poll(&world, 0), 0, "there is no second connection");
    assert_eq!(world.fstat(root, 1), Err(Errno::EBADF));
}

#[test]
fn connections_that_wait_are_accepted_in_their_order() {
    let mut world = World::new();
    let (server, child) = listener(&world, "/server", 5);
    let clients = [0; 3].map(|flags| socket(&world, child, flags));
    assert_eq!(bind(&world, child, clients[0], "\0first"), Ok(0));
    for (number, client) in clients.into_iter().enumerate() {
        assert_eq!(connect(&world, child, client, "/server"), Some(Ok(0)));
        assert_eq!(world.write(child, client, &[number as u8]), Ok(1));
    }
    world.restart_vfs();
    let late = socket(&world, child, 0);
    assert_eq!(connect(&world, child, late, "/server"), Some(Ok(0)), "its name is known");
    world.restart_vfs();
    for number in 0..3 {
        let accepted = world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
        assert_eq!(world.read(world.root, accepted, 10).unwrap(), [number]);
        let expected = if number == 0 { &b"\x01\0\0first"[..] } else { b"\x01\0" };
        assert_eq!(name_of(&world, world.root, accepted, nr::GETPEERNAME).unwrap(), expected);
        world.restart_vfs();
    }
    world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    let other = socket(&world, child, 0);
    assert_eq!(bind(&world, child, other, "\0first"), Err(Errno::EADDRINUSE));
    world.close(child, clients[0]).unwrap();
    assert_eq!(bind(&world, child, other, "\0first"), Ok(0));
}

#[test]
fn a_reset_outlives_vfs() {
    let mut world = World::new();
    let (one, two) = pair(&world, 0);
    send(&world, one, b"unread", 0).unwrap();
    world.close(world.root, two).unwrap();
    world.restart_vfs();
    assert_eq!(receive(&world, one, 0), Err(Errno::ECONNRESET));
    world.restart_vfs();
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
}

#[test]
fn waits_go_on_when_they_are_repeated() {
    let mut world = World::new();
    let (server, child) = listener(&world, "/server", 0);
    let clients = [0; 2].map(|flags| socket(&world, child, flags));
    assert_eq!(world.begin_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    assert_eq!(connect(&world, child, clients[0], "/server"), Some(Ok(0)));
    let first = world.result(world.root).expect("it is accepted").unwrap();
    let third = socket(&world, child, 0);
    assert_eq!(connect(&world, child, third, "/server"), Some(Ok(0)));
    let address = put_address(&world, child, "/server");
    let call = [clients[1], address, 10];
    assert_eq!(world.begin_call(child, nr::CONNECT, &call), None);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(world.repeat_call(child, nr::CONNECT, &call), None);
    world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(world.write(child, clients[0], b"abc"), Ok(3));
    let call = [first, DATA, 6, MSG_WAITALL, 0, 0];
    assert_eq!(world.begin_call(world.root, nr::RECVFROM, &call), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::RECVFROM, &call), None);
    assert_eq!(world.write(child, clients[0], b"def"), Ok(3));
    assert_eq!(world.result(world.root), Some(Ok(6)));
    assert_eq!(world.machine.read(world.root, DATA, 6), b"abcdef");
}

#[test]
fn shares_are_counted_again() {
    let mut world = World::new();
    let user = world.user(1000, 100);
    let made =
        |world: &World| core::iter::from_fn(|| world.call(user, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]).ok()).count();
    assert_eq!(made(&world), 32);
    world.restart_vfs();
    assert_eq!(made(&world), 0);
    world.close(user, 3).unwrap();
    world.call(user, nr::UMASK, &[0]).unwrap();
    assert_eq!(made(&world), 1);
}
