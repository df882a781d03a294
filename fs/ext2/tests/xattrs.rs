//! Extended attributes: what debugfs and e2fsck see of ours, what is read of theirs, sharing, and power cuts.

use crate::common::{FileDevice, ROOT_USER, Scratch, check, debugfs, memory, mount, options, write};
use ext2::{Ext2, Options};
use fs::Errno;
use fs::file_system::{FileSystem, NodeId, S_IFREG, XattrMode};
use std::path::Path;
use std::process::Command;

type Volume = Ext2<FileDevice>;

fn file(volume: &mut Volume, name: &str) -> NodeId {
    let root = volume.root();
    volume.make_node(root, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER).unwrap()
}

fn set(volume: &mut Volume, node: NodeId, name: &str, value: &[u8]) -> Result<(), Errno> {
    volume.set_xattr(node, name.as_bytes(), value, XattrMode::Any, ROOT_USER)
}

fn finish(image: &Path, mut volume: Volume) {
    volume.unmount().unwrap();
    check(image);
}

fn make_changes(image: &Path, requests: &[&str]) {
    for request in requests {
        let output = Command::new("debugfs").args(["-w", "-R", request]).arg(image).output().unwrap();
        assert!(output.status.success(), "{request}");
    }
}

#[test]
fn e2fsck_and_debugfs_accept_what_is_set() {
    let scratch = Scratch::new();
    for arguments in
        [&["-b", "1024", "-I", "128"][..], &["-b", "4096", "-I", "256"], &["-b", "2048", "-O", "^ext_attr"]]
    {
        let image = scratch.image(8192, arguments);
        let mut volume = mount(&image);
        let node = file(&mut volume, "file");
        let before = volume.statistics().blocks_free;
        let names = ["user.b", "trusted.name", "user.a", "security.x", "user.longer", "user.\u{e9}\u{f8}"];
        for (at, name) in names.iter().enumerate() {
            assert_eq!(set(&mut volume, node, name, &[b'x'; 20][..at * 3]), Ok(()));
        }
        assert_eq!(volume.statistics().blocks_free, before - 1);
        assert_eq!(volume.attributes(node).unwrap().blocks, volume.statistics().block_size / 512);
        volume.sync().unwrap();
        check_while_mounted(&image);
        let listed = String::from_utf8_lossy(&debugfs(&image, "ea_list /file")).into_owned();
        assert!(
            listed.contains("user.longer (12) = \"xxxxxxxxxxxx\"") && listed.contains("trusted.name (3)"),
            "{listed}"
        );
        for name in names {
            assert_eq!(volume.remove_xattr(node, name.as_bytes()), Ok(()));
            assert_eq!(volume.remove_xattr(node, name.as_bytes()), Err(Errno::ENODATA));
        }
        assert_eq!(volume.attributes(node).unwrap().blocks, 0);
        assert_eq!(set(&mut volume, node, "user.last", b"value"), Ok(()));
        assert_eq!(write(&mut volume, node, 0, &[1; 5000]), Ok(5000));
        let root = volume.root();
        assert_eq!(volume.truncate(node, 0), Ok(()));
        assert_eq!(volume.xattr(node, b"user.last").unwrap(), b"value");
        assert_eq!(volume.unlink(root, b"file"), Ok(()));
        assert_eq!(volume.statistics().blocks_free, before);
        finish(&image, volume);
    }
}

/// Fails if e2fsck finds anything but that the file system is in use.
fn check_while_mounted(image: &Path) {
    let scratch = Scratch::new();
    let copy = scratch.path("copy");
    std::fs::copy(image, &copy).unwrap();
    let output = Command::new("e2fsck").arg("-fn").arg(&copy).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("ttribute") && !text.contains("i_blocks"), "e2fsck found:\n{text}");
}

#[test]
fn what_debugfs_has_set_is_read_and_changed() {
    let scratch = Scratch::new();
    for arguments in [["-b", "1024", "-I", "256"], ["-b", "1024", "-I", "128"]] {
        let image = scratch.image(8192, &arguments);
        let mut volume = mount(&image);
        file(&mut volume, "file");
        finish(&image, volume);
        make_changes(
            &image,
            &["ea_set /file user.one first", "ea_set /file user.two second", "ea_set /file security.x y"],
        );
        let mut volume = mount(&image);
        let root = volume.root();
        let node = volume.lookup(root, b"file").unwrap();
        assert_eq!(volume.xattr(node, b"user.one").unwrap(), b"first");
        assert_eq!(volume.xattr(node, b"user.two").unwrap(), b"second");
        let create = volume.set_xattr(node, b"user.one", b"x", XattrMode::Create, ROOT_USER);
        let replace = volume.set_xattr(node, b"user.none", b"x", XattrMode::Replace, ROOT_USER);
        assert_eq!((create, replace), (Err(Errno::EEXIST), Err(Errno::ENODATA)));
        assert_eq!(set(&mut volume, node, "user.one", b"changed"), Ok(()));
        assert_eq!(volume.remove_xattr(node, b"user.two"), Ok(()));
        let names = volume.xattr_names(node).unwrap();
        assert_eq!(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).count(), 2);
        finish(&image, volume);
        let listed = String::from_utf8_lossy(&debugfs(&image, "ea_list /file")).into_owned();
        assert!(listed.contains("user.one (7) = \"changed\"") && !listed.contains("user.two"), "{listed}");
    }
}

#[test]
fn a_shared_block_is_copied_by_a_change_and_freed_with_its_last_inode() {
    let scratch = Scratch::new();
    let image = scratch.image(8192, &["-b", "1024", "-I", "128"]);
    let mut volume = mount(&image);
    let (one, two) = (file(&mut volume, "one"), file(&mut volume, "two"));
    assert_eq!(set(&mut volume, one, "user.shared", b"value"), Ok(()));
    finish(&image, volume);
    // As Linux leaves two files with the same attributes.
    let show = String::from_utf8(debugfs(&image, "stat /one")).unwrap();
    let block: u32 = show.split("File ACL: ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let references = u64::from(block) * 1024 + 4;
    make_changes(&image, &[&format!("sif /two file_acl {block}"), "sif /two blocks 2"]);
    let device = FileDevice::open(&image);
    std::os::unix::fs::FileExt::write_all_at(device.file(), &2u32.to_le_bytes(), references).unwrap();
    check(&image);
    let mut volume = mount(&image);
    let before = volume.statistics().blocks_free;
    assert_eq!(volume.xattr(two, b"user.shared").unwrap(), b"value");
    assert_eq!(set(&mut volume, two, "user.own", b"x"), Ok(()));
    assert_eq!(volume.statistics().blocks_free, before - 1);
    assert_eq!(volume.xattr_names(one).unwrap(), b"user.shared\0");
    finish(&image, volume);
    let mut volume = mount(&image);
    let root = volume.root();
    assert_eq!((volume.unlink(root, b"one"), volume.unlink(root, b"two")), (Ok(()), Ok(())));
    assert_eq!(volume.statistics().blocks_free, before + 1);
    finish(&image, volume);
}

#[test]
fn a_full_disk_keeps_what_was_set() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-b", "1024", "-m", "0"]);
    let mut volume = mount(&image);
    let (node, other, fill) = (file(&mut volume, "file"), file(&mut volume, "other"), file(&mut volume, "fill"));
    assert_eq!(set(&mut volume, node, "user.large", &[1; 1000]), Err(Errno::ENOSPC));
    assert_eq!(set(&mut volume, node, "user.one", &[1; 500]), Ok(()));
    assert_eq!(set(&mut volume, node, "user.two", &[2; 500]), Err(Errno::ENOSPC), "one block is all");
    let mut at = 0;
    while let Ok(more) = write(&mut volume, fill, at, &[3; 1024]) {
        at += more as u64;
    }
    assert_eq!(volume.statistics().blocks_free, 0);
    assert_eq!(set(&mut volume, other, "user.one", b"x"), Err(Errno::ENOSPC));
    assert_eq!(set(&mut volume, node, "user.one", &[4; 300]), Ok(()), "in place");
    assert_eq!(set(&mut volume, node, "user.two", &[5; 10]), Ok(()));
    assert_eq!(volume.remove_xattr(node, b"user.two"), Ok(()));
    assert_eq!(volume.xattr(node, b"user.one").unwrap(), [4; 300]);
    finish(&image, volume);
}

#[test]
fn a_block_that_makes_no_sense_is_refused() {
    let scratch = Scratch::new();
    let image = scratch.image(8192, &["-b", "1024", "-I", "128"]);
    let mut volume = mount(&image);
    let node = file(&mut volume, "file");
    finish(&image, volume);
    for block in [1, 3, 500, 100_000] {
        make_changes(&image, &[&format!("sif /file file_acl {block}")]);
        let mut volume =
            Ext2::mount(FileDevice::open(&image), Options { read_only: false, ..options() }, memory()).unwrap();
        assert_eq!(volume.xattr(node, b"user.a"), Err(Errno::EUCLEAN));
        assert_eq!(set(&mut volume, node, "user.a", b"x"), Err(Errno::EUCLEAN));
        assert_eq!(volume.xattr_names(node), Err(Errno::EUCLEAN));
    }
}
