//! Opening with `O_CREAT` what vfs does not know: the request that creates a file is the first that the file system hears of its name.

use super::numbers::*;
use super::*;
use abi::{Errno, linux::nr};

/// Files that this vfs knows nothing of, since a predecessor has made them.
fn world() -> World {
    let mut world = World::new();
    world.make("/file", b"text", 0o666, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/file", b"", 0o666, (0, 0));
    for (target, link) in [("/file", "/link"), ("/absent", "/dangling"), ("/dir", "/way")] {
        assert_eq!(world.paths_call(world.root, nr::SYMLINK, target, link), Ok(0));
    }
    world.restart_vfs();
    world
}

fn create(world: &World, path: &str, flags: u64) -> Result<u64> {
    world.open(world.root, path, O_CREAT | flags, 0o644)
}

#[test]
fn a_file_that_exists_is_opened() {
    for path in ["/file", "/link", "/dir/../file"] {
        let world = world();
        let file = create(&world, path, O_RDWR).unwrap();
        assert_eq!(world.read(world.root, file, 10).unwrap(), b"text", "{path}");
        assert_eq!(world.stat(world.root, "/file").unwrap().mode & 0o777, 0o666, "it is not new");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_created_through() {
    let world = world();
    let file = create(&world, "/dangling", O_WRONLY).unwrap();
    world.write(world.root, file, b"new").unwrap();
    assert_eq!(world.content("/absent"), b"new");
}

#[test]
fn what_cannot_be_created_or_opened_so_has_the_usual_error() {
    let cases = [
        ("/file", O_EXCL | O_WRONLY, Errno::EEXIST),
        ("/dangling", O_EXCL | O_WRONLY, Errno::EEXIST),
        ("/link", O_NOFOLLOW | O_WRONLY, Errno::ELOOP),
        ("/dir", O_RDONLY, Errno::EISDIR),
        ("/way", O_RDONLY, Errno::EISDIR),
        ("/dir/", O_RDONLY, Errno::EISDIR),
        ("/file/", O_RDONLY, Errno::ENOTDIR),
        ("/file", O_DIRECTORY, Errno::ENOTDIR),
        ("/none", O_DIRECTORY, Errno::EINVAL),
    ];
    for (path, flags, error) in cases {
        assert_eq!(create(&world(), path, flags), Err(error), "{path} with {flags:#o}");
    }
}

#[test]
fn who_may_not_create_may_open_what_exists() {
    let world = world();
    let user = world.user(1000, 100);
    assert!(world.open(user, "/dir/file", O_CREAT | O_WRONLY, 0o600).is_ok());
    assert_eq!(world.open(user, "/dir/new", O_CREAT | O_WRONLY, 0o600), Err(Errno::EACCES));
}

#[test]
fn a_truncated_file_is_emptied_once() {
    let world = world();
    let file = create(&world, "/file", O_TRUNC | O_RDWR).unwrap();
    assert_eq!(world.content("/file"), b"");
    world.write(world.root, file, b"more").unwrap();
    assert_eq!(world.content("/file"), b"more");
}

#[test]
fn a_file_system_without_new_names_is_asked_for_the_name() {
    let mut world = world();
    world.start_proc().lock().unwrap().push(("exe".into(), "/file".into()));
    let file = create(&world, "/proc/exe", O_RDONLY).unwrap();
    assert_eq!(world.read(world.root, file, 10).unwrap(), b"text");
}
