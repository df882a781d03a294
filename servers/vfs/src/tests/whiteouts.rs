//! Renames that leave a whiteout under the old name, on ext2 and tmpfs, and when vfs dies.

use super::*;
use abi::{Errno, linux::nr};

const RENAME_WHITEOUT: u64 = 4;

/// renameat2 that leaves a whiteout, with further flags.
fn leave_whiteout(world: &World, who: abi::Endpoint, first: &str, second: &str, flags: u64) -> Result<u64> {
    let (first, second) = (world.path(who, 0, first), world.path(who, 1, second));
    world.call(who, nr::RENAMEAT2, &[AT_FDCWD, first, AT_FDCWD, second, RENAME_WHITEOUT | flags])
}

#[test]
fn a_whiteout_gets_the_name_of_what_is_renamed() {
    let mut world = World::new();
    world.start_tmpfs();
    world.make_directory("/tmp", 0o777, (0, 0));
    for top in ["", "/tmp"] {
        if top == "/tmp" {
            let (kind, target) = (world.data(world.root, b"tmpfs\0"), world.path(world.root, 1, "/tmp"));
            assert_eq!(world.call(world.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
        }
        let at = |path: &str| std::format!("{top}{path}");
        world.make_directory(&at("/mine"), 0o2777, (1000, 77));
        world.make_directory(&at("/mine/dir"), 0o755, (1000, 1000));
        for path in ["/mine/a", "/mine/b", "/mine/dir/c"] {
            world.make(&at(path), path.as_bytes(), 0o644, (1000, 1000));
        }
        let user = world.user(1000, 1000);
        let leave = |first: &str, second: &str, flags| leave_whiteout(&world, user, &at(first), &at(second), flags);
        let whiteout = |path: &str| {
            let found = world.stat(world.root, &at(path)).unwrap();
            (found.mode, found.uid, found.gid, found.links)
        };
        assert_eq!(leave("/mine/a", "/mine/new", 0), Ok(0));
        assert_eq!(world.content(&at("/mine/new")), b"/mine/a");
        assert_eq!(whiteout("/mine/a"), (S_IFCHR, 1000, 77, 1));
        assert_eq!(leave("/mine/b", "/mine/new", 1), Err(Errno::EEXIST));
        assert_eq!(leave("/mine/b", "/mine/new", 0), Ok(0), "over a file");
        assert_eq!(world.content(&at("/mine/new")), b"/mine/b");
        assert_eq!(whiteout("/mine/b"), (S_IFCHR, 1000, 77, 1));
        assert_eq!(leave("/mine/dir", "/mine/dir/below", 0), Err(Errno::EINVAL));
        assert_eq!(leave("/mine/new", "/mine/dir", 0), Err(Errno::EISDIR));
        assert_eq!(leave("/mine/new", "/mine/new", 0), Ok(0));
        assert_eq!(world.names(user, &at("/mine")).unwrap(), ["a", "b", "dir", "new"]);
        assert_eq!(leave("/mine/dir", "/mine/moved", 0), Ok(0), "a directory");
        assert_eq!(world.content(&at("/mine/moved/c")), b"/mine/dir/c");
        assert_eq!(world.stat(user, &at("/mine")).unwrap().links, 3);
        assert_eq!(world.path_call(user, nr::MKNOD, &at("/mine/other"), &[u64::from(S_IFCHR), 0]), Ok(0));
        assert_eq!(
            world.path_call(user, nr::MKNOD, &at("/mine/null"), &[u64::from(S_IFCHR), 0x103]),
            Err(Errno::EPERM)
        );
    }
    world.restart_vfs();
    let (old, new) = (world.path(world.root, 0, "/mine/new"), world.path(world.root, 1, "/mine/last"));
    let call = [AT_FDCWD, old, AT_FDCWD, new, RENAME_WHITEOUT];
    assert_eq!(world.call(world.root, nr::RENAMEAT2, &call), Ok(0));
    world.restart_vfs();
    world.path(world.root, 0, "/mine/new");
    assert_eq!(world.repeat_call(world.root, nr::RENAMEAT2, &call), Some(Ok(0)), "once");
    assert_eq!(world.content("/mine/last"), b"/mine/b");
}
