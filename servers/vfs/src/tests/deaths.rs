//! vfs, ext2 or tmpfs dies at each message of a call: the call ends as it would have ended, and leaves what it would have left.

use super::{world::Stat, *};
use abi::{Endpoint, linux::nr};
use std::string::String;
use std::vec::Vec;

const MS_BIND: u64 = 0x1000;
const MNT_DETACH: u64 = 2;
const AF_UNIX: u64 = 1;
const SOCK_STREAM: u64 = 1;
const SOCK_DGRAM: u64 = 2;
const RENAME_EXCHANGE: u64 = 2;
const RENAME_WHITEOUT: u64 = 4;
const ALL_EVENTS: u32 = 0xfff;
const Q_OVERFLOW: u32 = 0x4000;

/// A world with a tree below `base`, a child in one of its directories, and open files.
struct Scene {
    world: World,
    base: &'static str,
    child: Endpoint,
    /// `dir/file`.
    file: u64,
    /// `dir/in`.
    directory: u64,
    /// Both ends of a pipe that holds six bytes.
    pipe: (u64, u64),
    /// An inotify instance that watches the directories.
    watcher: u64,
    /// An epoll of it and the pipe.
    epoll: u64,
}

/// What can be seen after a call.
#[derive(Debug, PartialEq)]
struct Picture {
    /// Of files, descriptors and directories.
    state: Vec<String>,
    /// What was told of files.
    events: Vec<(u32, String)>,
}

impl Picture {
    /// Whether events were lost, as they may be when vfs dies, and it was told.
    fn lacks_events(&self) -> bool {
        self.events.iter().any(|(mask, _)| *mask == Q_OVERFLOW)
    }
}

type Call = (u32, Vec<u64>);

/// Which file system it is.
type Which = fn(&World) -> Endpoint;

impl Scene {
    fn new(base: &'static str) -> Scene {
        let mut world = World::new();
        if !base.is_empty() {
            world.mount_tmpfs(base);
        }
        let at = |path: &str| format!("{base}/{path}");
        for directory in ["dir", "dir/in", "dir/in/deep", "other", "other/in", "empty"] {
            world.make_directory(&at(directory), 0o755, (0, 0));
        }
        world.make(&at("dir/file"), b"the text", 0o644, (0, 0));
        world.make(&at("other/file"), &[b'o'; 5000], 0o600, (3, 4));
        assert_eq!(world.paths_call(world.root, nr::SYMLINK, "dir/file", &at("link")), Ok(0));
        let child = world.fork(world.root, 0);
        assert_eq!(world.change_directory(child, &at("dir/in/deep")), Ok(0));
        assert_eq!(world.change_directory(world.root, &at("dir")), Ok(0));
        let file = world.open(world.root, &at("dir/file"), O_RDWR, 0).unwrap();
        let directory = world.open(world.root, &at("dir/in"), O_RDONLY | O_DIRECTORY, 0).unwrap();
        let pipe = world.pipe(world.root, 0);
        assert_eq!(world.write(world.root, pipe.1, b"in it."), Ok(6));
        assert_eq!(world.seek(world.root, file, 4, SEEK_SET), Ok(4));
        let name = world.path(world.root, 1, "user.kept");
        assert_eq!(world.call(world.root, nr::FSETXATTR, &[file, name, DATA, 6, 0]), Ok(0));
        let (watcher, epoll) = (inotify::create(&world), epoll::create(&world));
        for directory in ["", "dir", "dir/in", "other"] {
            inotify::watch(&world, watcher, &at(directory), ALL_EVENTS).unwrap();
        }
        for (file, events) in [(watcher, epoll::IN), (pipe.0, epoll::IN), (pipe.1, epoll::OUT)] {
            assert_eq!(epoll::control(&world, epoll, epoll::ADD, file, events), Ok(0));
        }
        Scene { world, base, child, file, directory, pipe, watcher, epoll }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// A call with paths of the tree first.
    fn paths<const N: usize>(&self, number: u32, paths: [&str; N], more: &[u64]) -> Call {
        let root = self.world.root;
        let paths = std::array::from_fn::<u64, N, _>(|which| self.world.path(root, which, &self.at(paths[which])));
        (number, [&paths[..], more].concat())
    }

    fn rename(&self, old: &str, new: &str, flags: u64) -> Call {
        let (_, paths) = self.paths(0, [old, new], &[]);
        (nr::RENAMEAT2, std::vec![AT_FDCWD, paths[0], AT_FDCWD, paths[1], flags])
    }

    /// What can be seen of everything.
    fn picture(&self) -> Picture {
        let ready = epoll::now(&self.world, self.epoll);
        let events = inotify::events(&self.world, self.watcher);
        assert_eq!(ready.iter().any(|(file, _)| *file == self.watcher), !events.is_empty());
        let mut state = self.state();
        state.push(format!("{:?}", ready.iter().filter(|(file, _)| *file != self.watcher).collect::<Vec<_>>()));
        Picture { state, events }
    }

    fn state(&self) -> Vec<String> {
        let Scene { world, child, .. } = self;
        let mut picture = std::vec![world.working(world.root), world.working(*child)];
        for descriptor in 0..12 {
            let position = world.call(world.root, nr::LSEEK, &[descriptor, 0, SEEK_CUR]);
            let flags = world.call(world.root, nr::FCNTL, &[descriptor, F_GETFL, 0]);
            let stat = world.fstat(world.root, descriptor).map(|stat| (stat.mode, stat.size, stat.links));
            picture.push(format!("{descriptor}: {position:?} {flags:?} {stat:?}"));
        }
        for below in ["", "in"] {
            let names = world.open_at(world.root, self.directory, below, O_RDONLY | O_DIRECTORY).map(drop);
            picture.push(format!("in/{below}: {names:?}"));
        }
        for name in ["user.kept", "user.new"] {
            let arguments = [world.path(world.root, 0, &self.at("link")), world.path(world.root, 1, name), 0, 0];
            picture.push(format!("{name}: {:?}", world.call(world.root, nr::GETXATTR, &arguments)));
        }
        self.tree(&self.at(""), &mut picture);
        picture
    }

    fn tree(&self, directory: &str, picture: &mut Vec<String>) {
        let world = &self.world;
        for name in world.names(world.root, directory).expect("is a directory") {
            let path = format!("{directory}{name}");
            let Ok(stat) = world.stat(world.root, &path) else {
                picture.push(format!("{path} is named, and not there"));
                continue;
            };
            let content = match stat.mode & S_IFMT {
                S_IFREG => world.content(&path),
                _ => Vec::new(),
            };
            let runs = content.chunk_by(|a, b| a == b).map(|run| format!("{}{}", run.len(), char::from(run[0])));
            let content: String = runs.collect();
            let Stat { mode, links, uid, gid, size, .. } = stat;
            picture.push(format!("{path} {mode:o} {links} {uid} {gid} {size} {content}"));
            if stat.mode & S_IFMT == S_IFDIR && name != "lost+found" {
                self.tree(&format!("{path}/"), picture);
            }
        }
    }
}

/// Makes the call on a new scene as `make` does. Returns its result with the picture afterwards, and what else `make` returns.
fn outcome<D>(
    base: &'static str,
    call: &impl Fn(&Scene) -> Call,
    make: impl FnOnce(&mut Scene, Call) -> (Result<u64>, D),
) -> ((Result<u64>, Picture), D) {
    let mut scene = Scene::new(base);
    let call = call(&scene);
    let (result, deaths) = make(&mut scene, call);
    ((result, scene.picture()), deaths)
}

/// The call has ended in the same way, and left the same.
fn assert_same(outcome: &(Result<u64>, Picture), expected: &(Result<u64>, Picture), when: std::fmt::Arguments) {
    assert_eq!((outcome.0, &outcome.1.state), (expected.0, &expected.1.state), "{when}");
    if !outcome.1.lacks_events() {
        assert_eq!(outcome.1.events, expected.1.events, "{when}");
    }
}

/// The call ends and leaves the same whenever vfs dies in it, or a file system.
fn survives(call: impl Fn(&Scene) -> Call) {
    for base in ["", "/tmp"] {
        let expected = outcome_with_deaths(base, &call, &[]).0;
        let vfs_died_at = |death| {
            let (outcome, died) = outcome_with_deaths(base, &call, &[death]);
            assert_same(&outcome, &expected, format_args!("below {base:?}, vfs dies at {death}"));
            died > 0
        };
        assert!((1..).take_while(|death| vfs_died_at(*death)).count() > 0);
        let file_systems: &[Which] = if base.is_empty() { &[World::ext2] } else { &[World::ext2, World::tmpfs] };
        for file_system in file_systems {
            let died_at = |death| {
                let (outcome, died) = outcome_with_death_of(*file_system, base, &call, death);
                assert_same(&outcome, &expected, format_args!("below {base:?}, a file system dies at {death}"));
                died
            };
            (1..).take_while(|death| died_at(*death)).count();
        }
    }
}

/// The same when vfs dies in it, and so does its successor.
fn survives_two(call: impl Fn(&Scene) -> Call) {
    let expected = outcome_with_deaths("", &call, &[]).0;
    let died = |deaths: [u64; 2]| {
        let (outcome, died) = outcome_with_deaths("", &call, &deaths);
        assert_same(&outcome, &expected, format_args!("vfs dies at {deaths:?}"));
        died
    };
    let ends_with_one = |first| (1..).map(|second| died([first, second])).find(|died| *died < 2) == Some(1);
    assert!((1..).take_while(|first| ends_with_one(*first)).count() > 0);
}

fn outcome_with_deaths(
    base: &'static str,
    call: &impl Fn(&Scene) -> Call,
    deaths: &[u64],
) -> ((Result<u64>, Picture), usize) {
    outcome(base, call, |scene, (number, arguments)| {
        scene.world.call_with_deaths(deaths, scene.world.root, number, &arguments)
    })
}

fn outcome_with_death_of(
    file_system: Which,
    base: &'static str,
    call: &impl Fn(&Scene) -> Call,
    death: u64,
) -> ((Result<u64>, Picture), bool) {
    outcome(base, call, |scene, (number, arguments)| {
        let (who, program) = (file_system(&scene.world), scene.world.root);
        scene.world.call_with_death_of(who, death, program, number, &arguments)
    })
}

#[test]
fn a_file_system_dies_in_a_call_that_it_serves() {
    for (base, file_system) in [("", World::ext2 as Which), ("/tmp", World::tmpfs)] {
        let call = |scene: &Scene| scene.paths(nr::MKDIR, ["new"], &[0o750]);
        let (_, died) = outcome_with_death_of(file_system, base, &call, 1);
        assert!(died, "below {base:?}");
    }
}

#[test]
fn directories_are_moved() {
    survives(|scene| scene.paths(nr::RENAME, ["dir", "moved"], &[]));
    survives(|scene| scene.paths(nr::RENAME, ["dir/in", "other/moved"], &[]));
    survives(|scene| scene.paths(nr::RENAME, ["dir", "empty"], &[]));
    survives(|scene| scene.paths(nr::RENAME, ["dir", "other"], &[]));
    survives(|scene| scene.rename("dir", "other", RENAME_EXCHANGE));
    survives(|scene| scene.rename("dir/in", "other/file", RENAME_EXCHANGE));
    survives(|scene| scene.rename("dir/in", "other/whiteout", RENAME_WHITEOUT));
}

#[test]
fn a_successor_that_dies_too_has_moved_them_or_not() {
    survives_two(|scene| scene.paths(nr::RENAME, ["dir", "moved"], &[]));
    survives_two(|scene| scene.paths(nr::RENAME, ["dir/in", "other/moved"], &[]));
    survives_two(|scene| scene.rename("dir", "other", RENAME_EXCHANGE));
    survives_two(|scene| scene.rename("dir/in", "other/whiteout", RENAME_WHITEOUT));
}

#[test]
fn files_are_moved() {
    survives(|scene| scene.paths(nr::RENAME, ["dir/file", "other/moved"], &[]));
    survives(|scene| scene.paths(nr::RENAME, ["dir/file", "other/file"], &[]));
    survives(|scene| scene.rename("dir/file", "other/file", RENAME_EXCHANGE));
    survives(|scene| scene.rename("dir/file", "dir/new", RENAME_WHITEOUT));
}

#[test]
fn names_are_made_and_removed() {
    survives(|scene| scene.paths(nr::MKDIR, ["new"], &[0o750]));
    survives(|scene| scene.paths(nr::MKDIR, ["dir"], &[0o750]));
    survives(|scene| scene.paths(nr::RMDIR, ["empty"], &[]));
    survives(|scene| scene.paths(nr::RMDIR, ["other"], &[]));
    survives(|scene| scene.paths(nr::UNLINK, ["dir/file"], &[]));
    survives(|scene| scene.paths(nr::UNLINK, ["other/file"], &[]));
    survives(|scene| scene.paths(nr::LINK, ["dir/file", "other/new"], &[]));
    survives(|scene| scene.paths(nr::SYMLINK, ["dir/file", "other/new"], &[]));
    survives(|scene| scene.paths(nr::MKNOD, ["dir/new"], &[u64::from(S_IFIFO) | 0o640, 0]));
}

#[test]
fn files_are_opened() {
    survives(|scene| scene.paths(nr::OPEN, ["dir/new"], &[O_CREAT | O_EXCL | O_RDWR, 0o640]));
    survives(|scene| scene.paths(nr::OPEN, ["other/file"], &[O_CREAT | O_RDWR, 0o640]));
    survives(|scene| scene.paths(nr::OPEN, ["other/file"], &[O_TRUNC | O_RDWR, 0]));
    survives(|scene| scene.paths(nr::OPEN, ["dir"], &[O_TMPFILE | O_RDWR, 0o600]));
    survives(|scene| scene.paths(nr::OPEN, ["dir"], &[O_RDONLY | O_DIRECTORY, 0]));
    survives(|scene| scene.paths(nr::OPEN, ["link"], &[O_RDONLY | O_CLOEXEC, 0]));
}

#[test]
fn descriptors_are_made_and_closed() {
    survives(|scene| (nr::CLOSE, std::vec![scene.file]));
    survives(|scene| (nr::CLOSE, std::vec![scene.pipe.0]));
    survives(|scene| (nr::DUP, std::vec![scene.file]));
    survives(|scene| (nr::DUP2, std::vec![scene.file, scene.pipe.1]));
    survives(|scene| (nr::FCNTL, std::vec![scene.file, F_DUPFD, 7]));
    survives(|scene| (nr::FCNTL, std::vec![scene.file, F_SETFL, O_APPEND]));
    survives(|scene| (nr::PIPE2, std::vec![scene.world.words(scene.world.root, &[0; 2]), O_NONBLOCK]));
    survives(|_| (nr::EVENTFD2, std::vec![3, 0]));
    survives(|scene| (nr::MEMFD_CREATE, std::vec![scene.world.path(scene.world.root, 0, "name"), 0]));
}

#[test]
fn data_is_moved() {
    let data = |scene: &Scene, bytes: usize| scene.world.data(scene.world.root, &std::vec![b'n'; bytes]);
    survives(|scene| (nr::WRITE, std::vec![scene.file, data(scene, 10), 10]));
    survives(|scene| (nr::WRITE, std::vec![scene.file, data(scene, 6000), 6000]));
    survives(|scene| (nr::PWRITE64, std::vec![scene.file, data(scene, 100), 100, 9000]));
    survives(|scene| (nr::WRITE, std::vec![scene.pipe.1, data(scene, 100), 100]));
    survives(|scene| (nr::READ, std::vec![scene.file, DATA, 3]));
    survives(|scene| (nr::READ, std::vec![scene.pipe.0, DATA, 4]));
    survives(|scene| (nr::SPLICE, std::vec![scene.file, 0, scene.pipe.1, 0, 100, 0]));
    survives(|scene| (nr::SPLICE, std::vec![scene.pipe.0, 0, scene.file, 0, 5, 0]));
    survives(|scene| (nr::SENDFILE, std::vec![scene.pipe.1, scene.file, 0, 100]));
    survives(|scene| (nr::FSYNC, std::vec![scene.file]));
}

#[test]
fn sizes_and_attributes_are_set() {
    survives(|scene| scene.paths(nr::TRUNCATE, ["other/file"], &[100]));
    survives(|scene| scene.paths(nr::TRUNCATE, ["other/file"], &[10_000]));
    survives(|scene| (nr::FTRUNCATE, std::vec![scene.file, 3]));
    survives(|scene| (nr::FALLOCATE, std::vec![scene.file, 0, 0, 9000]));
    survives(|scene| (nr::FALLOCATE, std::vec![scene.file, 3, 2, 4]));
    survives(|scene| scene.paths(nr::CHMOD, ["other/file"], &[0o4711]));
    survives(|scene| scene.paths(nr::CHOWN, ["dir/file"], &[7, 8]));
    survives(|scene| (nr::FCHMOD, std::vec![scene.directory, 0o700]));
}

#[test]
fn directories_of_a_process_are_changed() {
    survives(|scene| scene.paths(nr::CHDIR, ["other/in"], &[]));
    survives(|scene| (nr::FCHDIR, std::vec![scene.directory]));
}

#[test]
fn extended_attributes_are_set_and_removed() {
    let attribute = |scene: &Scene, number: u32, name: &str| -> Call {
        let name = scene.world.path(scene.world.root, 1, name);
        (number, std::vec![scene.file, name, scene.world.data(scene.world.root, b"a value"), 7, 0])
    };
    survives(|scene| attribute(scene, nr::FSETXATTR, "user.new"));
    survives(|scene| attribute(scene, nr::FSETXATTR, "user.kept"));
    survives(|scene| attribute(scene, nr::FREMOVEXATTR, "user.kept"));
    survives(|scene| attribute(scene, nr::FREMOVEXATTR, "user.new"));
}

#[test]
fn directories_are_bound_and_unbound() {
    survives(|scene| scene.paths(nr::MOUNT, ["other", "empty"], &[0, MS_BIND, 0]));
    survives(|scene| {
        let (number, arguments) = scene.paths(nr::MOUNT, ["other", "empty"], &[0, MS_BIND, 0]);
        assert_eq!(scene.world.call(scene.world.root, number, &arguments), Ok(0));
        scene.paths(nr::UMOUNT2, ["empty"], &[MNT_DETACH])
    });
}

#[test]
fn sockets_are_made_bound_and_written_to() {
    let address = |scene: &Scene, name: &str| {
        let address = [&1u16.to_le_bytes()[..], scene.at(name).as_bytes(), &[0]].concat();
        (scene.world.data(scene.world.root, &address), address.len() as u64)
    };
    let bound = |scene: &Scene, kind: u64, name: &str| {
        let socket = scene.world.call(scene.world.root, nr::SOCKET, &[AF_UNIX, kind, 0]).unwrap();
        let (address, bytes) = address(scene, name);
        assert_eq!(scene.world.call(scene.world.root, nr::BIND, &[socket, address, bytes]), Ok(0));
        socket
    };
    survives(|scene| (nr::SOCKETPAIR, std::vec![AF_UNIX, SOCK_STREAM, 0, scene.world.words(scene.world.root, &[0])]));
    survives(|scene| {
        let socket = scene.world.call(scene.world.root, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]).unwrap();
        let (address, bytes) = address(scene, "dir/socket");
        (nr::BIND, std::vec![socket, address, bytes])
    });
    survives(|scene| {
        let listens = bound(scene, SOCK_STREAM, "dir/socket");
        assert_eq!(scene.world.call(scene.world.root, nr::LISTEN, &[listens, 5]), Ok(0));
        let socket = scene.world.call(scene.world.root, nr::SOCKET, &[AF_UNIX, SOCK_STREAM, 0]).unwrap();
        let (address, bytes) = address(scene, "dir/socket");
        (nr::CONNECT, std::vec![socket, address, bytes])
    });
    survives(|scene| {
        let socket = bound(scene, SOCK_DGRAM, "dir/socket");
        let (address, bytes) = address(scene, "dir/socket");
        (nr::SENDTO, std::vec![socket, address, 5, 0, address, bytes])
    });
}

#[test]
fn what_tells_of_events_is_made() {
    survives(|_| (nr::EPOLL_CREATE1, std::vec![0]));
    survives(|_| (nr::INOTIFY_INIT1, std::vec![0]));
    survives(|_| (nr::TIMERFD_CREATE, std::vec![1, 0]));
    survives(|scene| {
        let instance = scene.world.call(scene.world.root, nr::INOTIFY_INIT1, &[0]).unwrap();
        let (number, arguments) = scene.paths(nr::INOTIFY_ADD_WATCH, ["dir"], &[0xfff]);
        (number, [&[instance], &arguments[..]].concat())
    });
    survives(|scene| {
        let epoll = scene.world.call(scene.world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
        let event = scene.world.words(scene.world.root, &[1, 7]);
        (nr::EPOLL_CTL, std::vec![epoll, 1, scene.pipe.0, event])
    });
}
