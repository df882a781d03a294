//! Names of sockets: bind, getsockname, and what the nodes of the names are.

use super::*;

#[test]
fn a_path_becomes_a_special_file() {
    let world = World::new();
    let user = world.user(1000, 100);
    world.make_directory("/open", 0o777, (0, 0));
    world.make_directory("/closed", 0o755, (0, 0));
    let one = socket(&world, user, 0);
    assert_eq!(bind(&world, user, one, "/open/name"), Ok(0));
    let stat = world.stat(user, "/open/name").unwrap();
    assert_eq!((stat.mode, stat.uid, stat.gid), (S_IFSOCK | 0o755, 1000, 100), "as the umask says");
    assert_eq!(name_of(&world, user, one, nr::GETSOCKNAME), Ok(b"\x01\0/open/name\0".to_vec()));
    assert_eq!(world.open(user, "/open/name", O_RDWR, 0), Err(Errno::ENXIO));
    assert_eq!(bind(&world, user, one, "/open/other"), Err(Errno::EINVAL), "it has a name");
    assert_eq!(world.stat(user, "/open/other"), Err(Errno::ENOENT));
    let two = socket(&world, user, 0);
    for (path, error) in [
        ("/open/name", Errno::EADDRINUSE),
        ("/open", Errno::EADDRINUSE),
        ("/none/name", Errno::ENOENT),
        ("/open/name/x", Errno::ENOTDIR),
        ("/closed/name", Errno::EACCES),
        ("/open/x/", Errno::ENOENT),
    ] {
        assert_eq!(bind(&world, user, two, path), Err(error), "{path}");
    }
    world.close(user, one).unwrap();
    assert_eq!(bind(&world, user, two, "/open/name"), Err(Errno::EADDRINUSE), "the file stays");
    world.path_call(user, nr::UNLINK, "/open/name", &[]).unwrap();
    assert_eq!(bind(&world, user, two, "/open/name"), Ok(0));
}

#[test]
fn abstract_names_are_free_when_their_socket_ends() {
    let world = World::new();
    let [one, two, three] = [0; 3].map(|flags| socket(&world, world.root, flags));
    assert_eq!(bind(&world, world.root, one, "\0name"), Ok(0));
    assert_eq!(name_of(&world, world.root, one, nr::GETSOCKNAME), Ok(b"\x01\0\0name".to_vec()));
    assert_eq!(bind(&world, world.root, two, "\0name"), Err(Errno::EADDRINUSE));
    assert_eq!(bind(&world, world.root, two, "\0name\0"), Ok(0), "length counts");
    assert_eq!(bind(&world, world.root, one, "\0other"), Err(Errno::EINVAL));
    world.close(world.root, one).unwrap();
    assert_eq!(bind(&world, world.root, three, "\0name"), Ok(0));
    assert!(world.names(world.root, "/").unwrap().iter().all(|name| name == "lost+found"), "no files");
}

#[test]
fn without_a_name_vfs_chooses_one() {
    let world = World::new();
    let mut names = [0; 3].map(|flags| {
        let socket = socket(&world, world.root, flags);
        assert_eq!([(); 2].map(|()| bind(&world, world.root, socket, "")), [Ok(0); 2]);
        name_of(&world, world.root, socket, nr::GETSOCKNAME).unwrap()
    });
    for name in &names {
        assert_eq!((name.len(), &name[..3]), (8, &[1, 0, 0][..]));
        assert!(name[3..].iter().all(|digit| digit.is_ascii_hexdigit()));
    }
    names.sort();
    assert!(names.windows(2).all(|two| two[0] != two[1]));
}

#[test]
fn addresses_are_checked() {
    let world = World::new();
    let one = socket(&world, world.root, 0);
    let address = world.data(world.root, &[1, 0, 0, b'x', 0, 0]);
    let call = |call, address, length| world.call(world.root, call, &[one, address, length]);
    for length in [0, 1, 111, 200, 0xffff_ffff] {
        assert_eq!(call(nr::BIND, address, length), Err(Errno::EINVAL), "{length} bytes");
        assert_eq!(call(nr::CONNECT, address, length), Err(Errno::EINVAL), "{length} bytes");
    }
    assert_eq!(call(nr::BIND, 8, 6), Err(Errno::EFAULT));
    assert_eq!(call(nr::CONNECT, 8, 6), Err(Errno::EFAULT));
    assert_eq!(call(nr::CONNECT, address, 2), Err(Errno::EINVAL), "no name");
    let address = world.data(world.root, &[2, 0, 0, b'x', 0, 0]);
    assert_eq!(call(nr::BIND, address, 6), Err(Errno::EINVAL), "another family");
    assert_eq!(call(nr::CONNECT, address, 6), Err(Errno::EINVAL), "another family");
    let (reads, _) = world.pipe(world.root, 0);
    for number in [nr::BIND, nr::CONNECT, nr::LISTEN, nr::ACCEPT] {
        world.data(world.root, &[1, 0, b'x', 0, 0, 0]);
        assert_eq!(world.call(world.root, number, &[reads, DATA, 6]), Err(Errno::ENOTSOCK));
        assert_eq!(world.call(world.root, number, &[99, DATA, 6]), Err(Errno::EBADF));
    }
}

#[test]
fn the_longest_path_has_108_letters() {
    let world = World::new();
    let one = socket(&world, world.root, 0);
    let path = "p".repeat(108);
    let address = world.data(world.root, &[&[1, 0], path.as_bytes()].concat());
    assert_eq!(world.call(world.root, nr::BIND, &[one, address, 110]), Ok(0));
    let name = name_of(&world, world.root, one, nr::GETSOCKNAME).unwrap();
    assert_eq!((name.len(), name[110]), (111, 0));
    assert!(world.stat(world.root, &path).is_ok());
    let length = world.words(world.root, &[4]);
    world.machine.write(world.root, DATA, &[0xff; 8]);
    assert_eq!(world.call(world.root, nr::GETSOCKNAME, &[one, DATA, length]), Ok(0));
    assert_eq!(world.machine.read(world.root, DATA, 5), [1, 0, b'p', b'p', 0xff]);
    assert_eq!(world.read_words(world.root, length, 1), [111]);
}

#[test]
fn every_user_has_a_share_of_the_sockets() {
    let world = World::new();
    let user = world.user(1000, 100);
    let made = |who| core::iter::from_fn(|| world.call(who, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]).ok()).count();
    world.set_limits(user, 1024, u64::MAX);
    assert_eq!(made(user), 32, "half of 64");
    assert_eq!(world.call(user, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]), Err(Errno::ENFILE));
    let other = world.user(1001, 100);
    assert_eq!(made(other), 28, "four are for root");
    let third = socket(&world, world.root, 0);
    world.close(world.root, third).unwrap();
    world.close(user, 0).unwrap();
    world.call(user, nr::UMASK, &[0]).unwrap();
    assert_eq!(made(user), 1);
}
