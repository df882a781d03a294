//! What a user is told and refused: changes of a read-only volume, reserved blocks, times of directories, links, the volume's number.

use std::path::Path;
use std::process::Command;

use crate::common::{
    FileDevice, NOW, ROOT_USER, Scratch, Slice, USER, check, memory, memory_of, mount, options, write,
};
use abi::limits::FILES_IN_USE;
use ext2::{Ext2, Options};
use fs::Errno;
use fs::file_system::{
    Allocation, Caller, FileSystem, NewTimes, NodeId, S_IFCHR, S_IFLNK, S_IFMT, S_IFREG, Timestamp, XattrMode,
};

type Volume = Ext2<FileDevice>;

fn tune(image: &Path, arguments: &[&str]) {
    let output = Command::new("tune2fs").args(arguments).arg(image).output().expect("tune2fs must be installed");
    assert!(output.status.success(), "tune2fs: {}", String::from_utf8_lossy(&output.stderr));
}

fn file(volume: &mut Volume, name: &str) -> NodeId {
    let root = volume.root();
    volume.make_node(root, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER).unwrap()
}

#[test]
fn no_change_of_a_read_only_volume_is_made() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let mut volume = mount(&image);
    let (root, f) = (volume.root(), file(&mut volume, "f"));
    let d = volume.make_dir(root, b"d", 0o755, ROOT_USER).unwrap();
    write(&mut volume, f, 0, b"data").unwrap();
    volume.set_xattr(f, b"user.a", b"1", XattrMode::Any, ROOT_USER).unwrap();
    volume.unmount().unwrap();
    let before = std::fs::read(&image).unwrap();
    let options = Options { read_only: true, ..options() };
    let mut volume = Ext2::mount(FileDevice::open(&image), options, memory()).unwrap();
    let times = NewTimes { accessed: Some(NOW), modified: Some(NOW) };
    let results = [
        volume.make_node(root, b"x", S_IFREG | 0o644, 0, ROOT_USER).map(drop),
        volume.make_nameless(root, S_IFREG | 0o644, ROOT_USER).map(drop),
        volume.make_dir(root, b"x", 0o755, ROOT_USER).map(drop),
        volume.make_symlink(root, b"x", b"f", ROOT_USER).map(drop),
        volume.link(root, b"x", f, ROOT_USER),
        volume.unlink(root, b"f"),
        volume.remove_dir(root, b"d"),
        volume.rename(root, b"f", d, b"f", ROOT_USER),
        volume.rename_leaving_whiteout(root, b"f", d, b"f", ROOT_USER),
        volume.exchange(root, b"f", root, b"d"),
        volume.truncate(f, 1),
        volume.truncate(f, 100),
        volume.allocate(f, 0, 5000, Allocation::Fill),
        volume.allocate(f, 0, 2, Allocation::Punch),
        volume.set_mode(f, 0o600),
        volume.set_owner(f, Some(5), None),
        volume.set_times(f, times),
        volume.set_xattr(f, b"user.b", b"1", XattrMode::Any, ROOT_USER),
        volume.remove_xattr(f, b"user.a"),
        write(&mut volume, f, 0, b"other").map(drop),
    ];
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result, Err(Errno::EROFS), "{number}");
    }
    assert_eq!(volume.attributes(f).unwrap().size, 4);
    volume.unmount().unwrap();
    assert!(std::fs::read(&image).unwrap() == before);
}

#[test]
fn reserved_blocks_are_for_the_user_and_group_in_the_superblock_too() {
    let caller = |uid, gid| Caller { uid, gid, write: 0 };
    let (stranger, of_user, of_group) = (caller(1000, 100), caller(7, 100), caller(1000, 8));
    let of_root_group = caller(1000, 0);
    for (arguments, served) in [
        (&["-g", "0"][..], &[][..]),
        (&["-u", "7"], &[of_user]),
        (&["-g", "8"], &[of_group]),
        (&["-u", "7", "-g", "8"], &[of_user, of_group]),
    ] {
        let scratch = Scratch::new();
        let image = scratch.image(1024, &["-b", "1024", "-m", "20"]);
        tune(&image, arguments);
        let mut volume = mount(&image);
        let node = file(&mut volume, "f");
        let mut size = 0;
        while let Ok(done) = volume.write(node, size, 10_000, &mut Slice(&[1; 10_000]), stranger) {
            size += done as u64;
        }
        for who in [stranger, of_user, of_group, of_root_group, ROOT_USER] {
            let result = volume.write(node, size, 1024, &mut Slice(&[1; 1024]), who);
            let expected = if who == ROOT_USER || served.contains(&who) { Ok(1024) } else { Err(Errno::ENOSPC) };
            assert_eq!(result, expected, "{arguments:?} {who:?}");
            volume.truncate(node, size).unwrap();
            volume.sync().unwrap();
        }
        volume.unmount().unwrap();
        check(&image);
    }
}

#[test]
fn a_directory_has_the_time_of_the_last_change_of_its_names() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let (root, f) = (volume.root(), file(&mut volume, "f"));
    let dirs = [b"one", b"two"].map(|name| volume.make_dir(root, name, 0o755, ROOT_USER).unwrap());
    let [one, two] = dirs;
    let old = Timestamp { seconds: 1000, nanos: 0 };
    type Change<'a> = (&'a dyn Fn(&mut Volume) -> Result<(), Errno>, [bool; 2]);
    let changes: [Change; 10] = [
        (&|volume| volume.make_node(one, b"n", S_IFREG, 0, ROOT_USER).map(drop), [true, false]),
        (&|volume| volume.make_dir(one, b"d", 0o755, ROOT_USER).map(drop), [true, false]),
        (&|volume| volume.make_symlink(two, b"s", b"t", ROOT_USER).map(drop), [false, true]),
        (&|volume| volume.link(two, b"l", f, ROOT_USER), [false, true]),
        (&|volume| volume.rename(one, b"n", two, b"n", ROOT_USER), [true, true]),
        (&|volume| volume.rename(two, b"n", two, b"m", ROOT_USER), [false, true]),
        (&|volume| volume.exchange(one, b"d", two, b"m"), [true, true]),
        (&|volume| volume.unlink(two, b"l"), [false, true]),
        (&|volume| volume.unlink(one, b"d"), [true, false]),
        (&|volume| volume.remove_dir(two, b"m"), [false, true]),
    ];
    for (number, (change, changed)) in changes.into_iter().enumerate() {
        for dir in dirs {
            volume.set_times(dir, NewTimes { accessed: Some(old), modified: Some(old) }).unwrap();
        }
        assert_eq!(change(&mut volume), Ok(()), "{number}");
        for (dir, changed) in dirs.into_iter().zip(changed) {
            let attributes = volume.attributes(dir).unwrap();
            let expected = if changed { NOW } else { old };
            assert_eq!((attributes.modified, attributes.accessed), (expected, old), "{number} {dir}");
        }
    }
}

#[test]
fn a_symbolic_link_allows_everything_and_is_as_long_as_its_target() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-b", "1024"]);
    let mut volume = mount(&image);
    let root = volume.root();
    for length in [1, 59, 60, 1023] {
        let target = vec![b't'; length];
        let name = format!("{length}");
        let link = volume.make_symlink(root, name.as_bytes(), &target, USER).unwrap();
        let attributes = volume.attributes(link).unwrap();
        assert_eq!((attributes.mode, attributes.size), (S_IFLNK | 0o777, length as u64));
        assert_eq!((attributes.links, attributes.uid, attributes.gid), (1, USER.uid, USER.gid));
        assert_eq!(attributes.blocks, if length < 60 { 0 } else { 2 }, "{length}");
        let mut read = vec![0; 2000];
        assert_eq!(volume.read_link(link, &mut read), Ok(length));
        assert!(read[..length] == target);
    }
    assert_eq!(volume.make_symlink(root, b"e", b"", USER), Err(Errno::ENOENT));
    assert_eq!(volume.make_symlink(root, b"e", &[b't'; 1024], USER), Err(Errno::ENAMETOOLONG));
    volume.unmount().unwrap();
    check(&image);
}

#[test]
fn a_symbolic_link_of_an_impossible_length_is_corrupt() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-b", "1024"]);
    let mut volume = mount(&image);
    let root = volume.root();
    let links = [59, 1023].map(|length| {
        let name = format!("{length}");
        volume.make_symlink(root, name.as_bytes(), &vec![b't'; length], USER).unwrap()
    });
    volume.unmount().unwrap();
    let result = |name: u64, length: usize| {
        let request = format!("sif {name} size {length}");
        let output = Command::new("debugfs").args(["-w", "-R", &request]).arg(&image).output().unwrap();
        assert!(output.status.success());
        let node = links[usize::from(name == 1023)];
        let mut volume = Ext2::mount(FileDevice::open(&image), options(), memory()).unwrap();
        volume.read_link(node, &mut [0; 2000])
    };
    for (name, limit) in [(59, 60), (1023, 1024)] {
        for length in [0, limit, limit + 1, 1 << 20] {
            assert_eq!(result(name, length), Err(Errno::EUCLEAN), "{name} {length}");
        }
        assert_eq!(result(name, limit - 1), Ok(limit - 1));
    }
}

/// A directory in one of two takes a name of its own or that of an empty directory, and a whiteout is left.
#[test]
fn parents_count_their_directories_whatever_a_whiteout_replaces() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let mut volume = mount(&image);
    let root = volume.root();
    let parents = [b"one", b"two"].map(|name| volume.make_dir(root, name, 0o755, ROOT_USER).unwrap());
    let links = |volume: &mut Volume| parents.map(|dir| volume.attributes(dir).unwrap().links);
    let mut expected = [2, 2];
    for (number, (to, is_replacing)) in [(0, false), (0, true), (1, false), (1, true)].into_iter().enumerate() {
        let [old, new] = ["old", "new"].map(|kind| format!("{kind}{number}"));
        let moved = volume.make_dir(parents[0], old.as_bytes(), 0o755, ROOT_USER).unwrap();
        let replaced = is_replacing.then(|| volume.make_dir(parents[to], new.as_bytes(), 0o755, ROOT_USER).unwrap());
        volume.rename_leaving_whiteout(parents[0], old.as_bytes(), parents[to], new.as_bytes(), USER).unwrap();
        expected[to] += 1;
        assert_eq!(links(&mut volume), expected, "{number}");
        assert_eq!(volume.lookup(parents[to], new.as_bytes()), Ok(moved));
        assert_eq!(volume.lookup(moved, b".."), Ok(parents[to]));
        assert!(replaced.is_none_or(|node| volume.attributes(node).is_err()), "{number}");
        let whiteout = volume.lookup(parents[0], old.as_bytes()).unwrap();
        let attributes = volume.attributes(whiteout).unwrap();
        assert_eq!((attributes.mode & S_IFMT, attributes.device, attributes.links), (S_IFCHR, 0, 1));
        assert_eq!(attributes.uid, USER.uid);
    }
    volume.unmount().unwrap();
    check(&image);
}

#[test]
fn the_number_of_a_volume_is_its_uuid_folded_as_in_linux() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-U", "6b1f0c3a-52d8-4e97-a10b-f3247c85d96e"]);
    let halves = [[0x6b, 0x1f, 0x0c, 0x3a, 0x52, 0xd8, 0x4e, 0x97], [0xa1, 0x0b, 0xf3, 0x24, 0x7c, 0x85, 0xd9, 0x6e]];
    let [first, second] = halves.map(u64::from_le_bytes);
    assert_eq!(mount(&image).statistics().id, first ^ second);
}

#[test]
fn a_file_without_a_name_that_nobody_can_use_is_not_made_and_a_new_vfs_frees_all_others() {
    let scratch = Scratch::new();
    let inodes = FILES_IN_USE as u32 + 1000;
    let image = scratch.image(inodes, &["-N", &inodes.to_string()]);
    let mut volume = Ext2::mount(FileDevice::open(&image), options(), memory_of(1 << 20)).unwrap();
    volume.sync().unwrap();
    let root = volume.root();
    let free = volume.statistics().nodes_free;
    let make = |volume: &mut Volume| volume.make_nameless(root, S_IFREG | 0o600, USER);
    let made = (0..inodes).take_while(|_| make(&mut volume).is_ok()).count() as u64;
    assert_eq!((made, make(&mut volume)), (FILES_IN_USE as u64, Err(Errno::ENFILE)));
    assert_eq!(volume.statistics().nodes_free, free - made);
    // All at once, which is more than one transaction holds.
    volume.set_uses(&[]).unwrap();
    assert_eq!(volume.statistics().nodes_free, free);
    volume.unmount().unwrap();
    check(&image);
}
