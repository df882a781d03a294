//! Connections of stream sockets: listen, connect, accept, and how they end.

use super::*;

#[test]
fn a_client_connects_and_the_server_accepts() {
    let world = World::new();
    let (server, child) = listener(&world, "/server", 5);
    let client = socket(&world, child, 0);
    assert_eq!(bind(&world, child, client, "/client"), Ok(0));
    assert_eq!(connect(&world, child, client, "/server"), Some(Ok(0)));
    assert_eq!(world.write(child, client, b"early"), Ok(5));
    let length = world.words(world.root, &[100]);
    let accepted = world.call(world.root, nr::ACCEPT4, &[server, DATA, length, O_CLOEXEC | O_NONBLOCK]).unwrap();
    assert_eq!(world.machine.read(world.root, DATA, 10), b"\x01\0/client\0");
    assert_eq!(world.read_words(world.root, length, 1), [10]);
    assert_eq!(world.call(world.root, nr::FCNTL, &[accepted, F_GETFD]), Ok(1));
    assert_eq!(world.call(world.root, nr::FCNTL, &[accepted, F_GETFL]), Ok(O_RDWR | O_NONBLOCK));
    assert_eq!(world.read(world.root, accepted, 100).unwrap(), b"early");
    assert_eq!(world.write(world.root, accepted, b"answer"), Ok(6));
    let length = world.words(child, &[100]);
    assert_eq!(world.call(child, nr::RECVFROM, &[client, DATA + 100, 100, 0, DATA, length]), Ok(6));
    assert_eq!(world.machine.read(child, DATA, 10), b"\x01\0/server\0", "who has sent it");
    let names = [(world.root, accepted, "/server", "/client"), (child, client, "/client", "/server")];
    for (who, socket, own, peer) in names {
        let name = |call| name_of(&world, who, socket, call).unwrap();
        assert_eq!(name(nr::GETSOCKNAME), [b"\x01\0", own.as_bytes(), b"\0"].concat());
        assert_eq!(name(nr::GETPEERNAME), [b"\x01\0", peer.as_bytes(), b"\0"].concat());
    }
    assert_eq!(connect(&world, child, client, "/server"), Some(Err(Errno::EISCONN)));
    assert_eq!(world.call(child, nr::LISTEN, &[client, 1]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::ACCEPT4, &[server, 0, 0, 1]), Err(Errno::EINVAL));
    world.close(child, client).unwrap();
    assert_eq!(world.read(world.root, accepted, 100).unwrap(), b"", "the end");
}

#[test]
fn what_is_not_connected_neither_sends_nor_receives() {
    let world = World::new();
    let one = socket(&world, world.root, 0);
    assert_eq!(poll(&world, one), u64::from(POLLOUT | POLLHUP));
    assert_eq!(world.read(world.root, one, 1), Err(Errno::EINVAL));
    assert_eq!(receive(&world, one, 0), Err(Errno::EINVAL));
    assert_eq!(world.write(world.root, one, b"x"), Err(Errno::ENOTCONN));
    assert_eq!(send(&world, one, b"x", 0), Err(Errno::ENOTCONN));
    assert_eq!(world.call(world.root, nr::SENDTO, &[one, DATA, 1, 0, DATA, 16]), Err(Errno::EOPNOTSUPP));
    assert_eq!(name_of(&world, world.root, one, nr::GETSOCKNAME), Ok(vec![1, 0]));
    assert_eq!(name_of(&world, world.root, one, nr::GETPEERNAME), Err(Errno::ENOTCONN));
    assert_eq!(world.call(world.root, nr::LISTEN, &[one, 1]), Err(Errno::EINVAL), "it has no name");
    assert_eq!(world.call(world.root, nr::ACCEPT, &[one, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::SHUTDOWN, &[one, SHUT_RDWR]), Ok(0));
    assert_eq!(poll(&world, one), u64::from(POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
    let (server, _) = listener(&world, "/server", 5);
    assert_eq!(world.read(world.root, server, 1), Err(Errno::EINVAL));
    assert_eq!(world.write(world.root, server, b"x"), Err(Errno::ENOTCONN));
    assert_eq!(connect(&world, world.root, server, "/server"), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(world.root, nr::IOCTL, &[server, FIONREAD, DATA]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::IOCTL, &[one, FIONREAD, DATA]), Ok(0));
}

#[test]
fn nobody_is_found_at_a_name_without_listener() {
    let world = World::new();
    let (one, two) = (socket(&world, world.root, 0), socket(&world, world.root, 0));
    assert_eq!(connect(&world, world.root, one, "/server"), Some(Err(Errno::ENOENT)));
    assert_eq!(connect(&world, world.root, one, "\0server"), Some(Err(Errno::ECONNREFUSED)));
    world.make("/file", b"", 0o666, (0, 0));
    assert_eq!(connect(&world, world.root, one, "/file"), Some(Err(Errno::ECONNREFUSED)));
    assert_eq!(bind(&world, world.root, two, "/server"), Ok(0));
    assert_eq!(connect(&world, world.root, one, "/server"), Some(Err(Errno::ECONNREFUSED)));
    assert_eq!(world.call(world.root, nr::LISTEN, &[two, 5]), Ok(0));
    world.paths_call(world.root, nr::SYMLINK, "/server", "/link").unwrap();
    assert_eq!(connect(&world, world.root, one, "/link"), Some(Ok(0)));
    world.close(world.root, two).unwrap();
    let three = socket(&world, world.root, 0);
    assert_eq!(connect(&world, world.root, three, "/server"), Some(Err(Errno::ECONNREFUSED)));
}

#[test]
fn connecting_needs_write_and_search_permission() {
    let world = World::new();
    world.make_directory("/closed", 0o700, (0, 0));
    let (_, _) = listener(&world, "/server", 5);
    let (_, _) = listener(&world, "/closed/server", 5);
    let user = world.user(1000, 100);
    let client = socket(&world, user, 0);
    assert_eq!(connect(&world, user, client, "/closed/server"), Some(Err(Errno::EACCES)));
    assert_eq!(connect(&world, user, client, "/server"), Some(Err(Errno::EACCES)), "the umask took the right");
    world.path_call(world.root, nr::CHMOD, "/server", &[0o722]).unwrap();
    assert_eq!(connect(&world, user, client, "/server"), Some(Ok(0)));
}

#[test]
fn as_many_wait_as_the_backlog_says_and_one() {
    let world = World::new();
    let (server, child) = listener(&world, "\0server", 1);
    let clients = [O_NONBLOCK; 3].map(|flags| socket(&world, child, flags));
    let [first, second, third] = clients.map(|client| connect(&world, child, client, "\0server"));
    assert_eq!([first, second, third], [Some(Ok(0)), Some(Ok(0)), Some(Err(Errno::EAGAIN))]);
    assert_eq!(world.call(world.root, nr::LISTEN, &[server, 2]), Ok(0));
    assert_eq!(connect(&world, child, clients[2], "\0server"), Some(Ok(0)));
    let waiting = socket(&world, child, 0);
    assert_eq!(connect(&world, child, waiting, "\0server"), None);
    for letter in [b"a", b"b", b"c"] {
        let number = clients[(letter[0] - b'a') as usize];
        let other = world.fork(child, 0);
        assert_eq!(world.write(other, number, letter), Ok(1));
        world.exit(other);
    }
    let accepted = [(); 3].map(|()| world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap());
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(accepted.map(|one| world.read(world.root, one, 1).unwrap()[0]), [b'a', b'b', b'c'], "in their order");
    assert_eq!(poll(&world, server), u64::from(POLLIN));
    assert!(world.call(world.root, nr::ACCEPT, &[server, 0, 0]).is_ok());
    assert_eq!(poll(&world, server), 0);
}

#[test]
fn waiting_to_connect_ends_with_the_server() {
    let world = World::new();
    let (server, child) = listener(&world, "/server", 0);
    let [first, second] = [0; 2].map(|flags| socket(&world, child, flags));
    assert_eq!(connect(&world, child, first, "/server"), Some(Ok(0)));
    assert_eq!(connect(&world, child, second, "/server"), None);
    world.close(world.root, server).unwrap();
    assert_eq!(world.result(child), Some(Err(Errno::ECONNREFUSED)));
    assert_eq!(world.read(child, first, 1), Err(Errno::ECONNRESET), "nobody has accepted it");
    assert_eq!(world.read(child, first, 1).unwrap(), b"");
}

#[test]
fn accept_and_poll_wait_for_a_connection() {
    let world = World::new();
    let (server, child) = listener(&world, "/server", 5);
    let clients = [0; 2].map(|flags| socket(&world, child, flags));
    assert_eq!(world.begin_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    assert_eq!(connect(&world, child, clients[0], "/server"), Some(Ok(0)));
    let accepted = world.result(world.root).expect("it is accepted").unwrap();
    assert_eq!(world.write(child, clients[0], b"x"), Ok(1));
    assert_eq!(world.read(world.root, accepted, 1).unwrap(), b"x");
    let asked = world.words(world.root, &[server | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(world.root, nr::POLL, &[asked, 1, -1i64 as u64]), None);
    assert_eq!(connect(&world, child, clients[1], "/server"), Some(Ok(0)));
    assert_eq!(world.result(world.root), Some(Ok(1)));
    world.call(world.root, nr::ACCEPT, &[server, 0, 0]).unwrap();
    assert_eq!(world.begin_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::ERESTARTSYS)));
    assert_eq!(world.begin_call(world.root, nr::ACCEPT, &[server, 0, 0]), None);
    let other = world.fork(world.root, 0);
    assert_eq!(world.call(other, nr::SHUTDOWN, &[server, SHUT_RD]), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EINVAL)));
    let third = socket(&world, child, 0);
    assert_eq!(connect(&world, child, third, "/server"), Some(Err(Errno::ECONNREFUSED)));
}

#[test]
fn an_accept_that_fails_gives_nothing() {
    let world = World::new();
    let (server, child) = listener(&world, "/server", 5);
    let client = socket(&world, child, 0);
    assert_eq!(connect(&world, child, client, "/server"), Some(Ok(0)));
    world.set_limits(world.root, server + 1, u64::MAX);
    assert_eq!(world.call(world.root, nr::ACCEPT, &[server, 0, 0]), Err(Errno::EMFILE));
    world.set_limits(world.root, 1024, u64::MAX);
    assert_eq!(world.call(world.root, nr::ACCEPT, &[server, DATA, 8]), Err(Errno::EFAULT));
    assert_eq!(world.read(child, client, 1).unwrap(), b"", "it is closed");
    assert_eq!(world.call(world.root, nr::FCNTL, &[server, O_NONBLOCK]).err(), Some(Errno::EINVAL));
    world.call(world.root, nr::FCNTL, &[server, 4, O_NONBLOCK]).unwrap();
    assert_eq!(world.call(world.root, nr::ACCEPT, &[server, 0, 0]), Err(Errno::EAGAIN));
}

#[test]
fn unread_data_resets_the_connection() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    send(&world, one, b"unread", 0).unwrap();
    send(&world, two, b"last", 0).unwrap();
    world.close(world.root, two).unwrap();
    assert_eq!(poll(&world, one), u64::from(POLLIN | POLLOUT | POLLHUP | POLLRDHUP | POLLERR));
    assert_eq!(send(&world, one, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(receive(&world, one, 0).unwrap(), b"last");
    assert_eq!(receive(&world, one, 0), Err(Errno::ECONNRESET));
    assert_eq!(receive(&world, one, 0).unwrap(), b"");
}

#[test]
fn a_reader_that_waits_is_told_of_the_reset() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let thread = Endpoint::new(300, 1);
    world.machine.add_program(thread, MEMORY);
    let fork =
        vfs::Fork { parent: world.root, child: thread, identity: 1, flags: vfs::FORK_FILES, parts: abi::Parts::SYSTEM };
    assert_eq!(world.call_as_pm(fork.message()), Ok(0));
    send(&world, one, b"unread", 0).unwrap();
    assert_eq!(world.begin_call(thread, nr::READ, &[one, DATA, 1]), None);
    world.close(world.root, two).unwrap();
    assert_eq!(world.result(thread), Some(Err(Errno::ECONNRESET)));
}

#[test]
fn peeking_leaves_what_it_sees() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    assert_eq!(receive(&world, two, MSG_PEEK | MSG_DONTWAIT), Err(Errno::EAGAIN));
    world.data(world.root, &[b'x'; 9000]);
    assert_eq!(world.call(world.root, nr::SENDTO, &[one, DATA, 9000, 0, 0, 0]), Ok(9000));
    for flags in [MSG_PEEK, MSG_PEEK | MSG_DONTWAIT] {
        assert_eq!(world.call(world.root, nr::RECVFROM, &[two, DATA, 8999, flags, 0, 0]), Ok(8999));
    }
    world.call(world.root, nr::RECVFROM, &[two, DATA, 9000, 0, 0, 0]).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 10, MSG_PEEK, 0, 0]), None);
    send(&world, one, b"late", 0).unwrap();
    assert_eq!(world.result(child), Some(Ok(4)));
    assert_eq!(world.machine.read(child, DATA, 4), b"late");
    assert_eq!(receive(&world, two, 0).unwrap(), b"late");
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    assert_eq!(receive(&world, two, MSG_PEEK).unwrap(), b"");
}

#[test]
fn waiting_for_all_ends_with_the_last_byte_or_the_end() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    let child = world.fork(world.root, 0);
    send(&world, one, b"abc", 0).unwrap();
    assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 6, MSG_WAITALL, 0, 0]), None);
    send(&world, one, b"defgh", 0).unwrap();
    assert_eq!(world.result(child), Some(Ok(6)));
    assert_eq!(world.machine.read(child, DATA, 6), b"abcdef");
    assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 6, MSG_WAITALL, 0, 0]), None);
    assert_eq!(world.cancel(child, Errno::EINTR), Ok(0));
    assert_eq!(world.result(child), Some(Ok(2)), "a signal ends it with what it has");
    send(&world, one, b"ij", 0).unwrap();
    assert_eq!(world.begin_call(child, nr::RECVFROM, &[two, DATA, 6, MSG_WAITALL, 0, 0]), None);
    world.call(world.root, nr::SHUTDOWN, &[one, SHUT_WR]).unwrap();
    assert_eq!(world.result(child), Some(Ok(2)));
    send(&world, two, b"x", 0).unwrap();
    assert_eq!(receive(&world, one, MSG_WAITALL | MSG_DONTWAIT).unwrap(), b"x");
}

#[test]
fn what_has_come_before_a_shutdown_is_still_read() {
    let world = World::new();
    let (one, two) = pair(&world, 0);
    send(&world, one, b"before", 0).unwrap();
    world.call(world.root, nr::SHUTDOWN, &[two, SHUT_RD]).unwrap();
    assert_eq!(send(&world, one, b"x", MSG_NOSIGNAL), Err(Errno::EPIPE));
    assert_eq!(receive(&world, two, 0).unwrap(), b"before");
    assert_eq!(receive(&world, two, 0).unwrap(), b"");
}

#[test]
fn a_thread_that_waits_in_a_socket_learns_that_it_receives_no_more() {
    for kind in [SOCK_STREAM, SOCK_DGRAM] {
        let world = World::new();
        assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[AF_UNIX, kind, 0, DATA]), Ok(0));
        let mine = world.read_words(world.root, DATA, 1)[0] & 0xffff_ffff;
        let child = world.fork(world.root, 0);
        assert_eq!(world.begin_call(child, nr::RECVFROM, &[mine, DATA, 100, 0, 0, 0]), None);
        assert_eq!(world.call(world.root, nr::SHUTDOWN, &[mine, SHUT_RD]), Ok(0));
        assert_eq!(world.result(child), Some(Ok(0)));
    }
}
