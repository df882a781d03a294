//! A full volume, full tables, memory that is refused.

use std::format;
use std::vec;
use std::vec::Vec;

use fs::Errno;
use fs::file_system::{Allocation, FileSystem, NodeId, XattrMode};
use sys::fallible;

use super::check::check;
use super::{ROOT_USER, free_pages, make, read_all, volume, write};
use crate::map::MAX_PAGES;
use crate::plan::PAGE;
use crate::volume::Tmpfs;

fn unlink(volume: &mut Tmpfs, name: &str) {
    volume.unlink(volume.root(), name.as_bytes()).unwrap();
    volume.begin();
    volume.clean_up().unwrap();
}

#[test]
fn small_files_fill_it_to_the_last_page() {
    let mut volume = volume(300);
    for number in 0..299 {
        let file = make(&mut volume, &format!("{number}"));
        assert_eq!(write(&mut volume, file, 0, &[1; PAGE]), Ok(PAGE), "{number}");
    }
    // Its own inode is the root's, one page is left, and no inode.
    assert_eq!(volume.make_node(volume.root(), b"more", 0o100_644, 0, ROOT_USER), Err(Errno::ENOSPC));
    assert_eq!((volume.statistics().nodes_free, free_pages(&volume)), (0, 1));
    check(&volume);
    unlink(&mut volume, "7");
    assert_eq!((volume.statistics().nodes_free, free_pages(&volume)), (1, 2));
    make(&mut volume, "more");
}

#[test]
fn when_it_is_full_writes_fail_and_what_is_there_stays() {
    let mut volume = volume(100);
    let file = make(&mut volume, "full");
    let data: Vec<u8> = (0..200 * PAGE).map(|at| (at / 7) as u8).collect();
    assert_eq!(write(&mut volume, file, 10, &data), Ok(99 * PAGE - 10), "one is the map");
    assert_eq!(write(&mut volume, file, 99 * PAGE as u64, &[1]), Err(Errno::ENOSPC));
    assert_eq!(volume.attributes(file).unwrap().size, 99 * PAGE as u64);
    assert!(read_all(&mut volume, file)[10..] == data[..99 * PAGE - 10]);
    assert_eq!(write(&mut volume, file, 5, &[9; 20]), Ok(20), "what has a page can be written");
    let root = volume.root();
    assert_eq!(volume.make_symlink(root, b"long", &[b'x'; 100], ROOT_USER), Err(Errno::ENOSPC));
    assert_eq!(volume.lookup(root, b"long"), Err(Errno::ENOENT));
    volume.make_symlink(root, b"short", &[b'x'; 56], ROOT_USER).unwrap();
    assert_eq!(volume.set_xattr(file, b"user.a", b"value", XattrMode::Any, ROOT_USER), Err(Errno::ENOSPC));
    check(&volume);
    volume.truncate(file, 0).unwrap();
    volume.begin();
    assert_eq!(volume.allocate(file, 0, 101 * PAGE as u64, Allocation::FillAndCheck), Err(Errno::ENOSPC));
    assert_eq!(volume.allocate(file, 0, 100 * PAGE as u64, Allocation::FillAndCheck), Ok(()));
    assert_eq!(free_pages(&volume), 100);
    check(&volume);
}

#[test]
fn maps_without_a_page_for_them_change_nothing() {
    for pages in 1..6 {
        let mut volume = volume(pages);
        let file = make(&mut volume, "far");
        let at = (MAX_PAGES - 1) * PAGE as u64;
        let expected = if pages == 5 { Ok(3) } else { Err(Errno::ENOSPC) };
        assert_eq!(write(&mut volume, file, at, &[1; 3]), expected, "{pages} pages");
        assert_eq!(free_pages(&volume), if pages == 5 { 0 } else { pages as u64 });
        check(&volume);
        unlink(&mut volume, "far");
        assert_eq!(free_pages(&volume), pages as u64);
    }
}

#[test]
fn a_file_has_no_more_than_the_largest_size() {
    let mut volume = volume(20);
    let file = make(&mut volume, "far");
    let most = MAX_PAGES * PAGE as u64;
    assert_eq!(write(&mut volume, file, most - 2, &[1; 10]), Ok(2));
    assert_eq!(write(&mut volume, file, most, &[1]), Err(Errno::EFBIG));
    assert_eq!(write(&mut volume, file, u64::MAX, &[1]), Err(Errno::EFBIG));
    assert_eq!(volume.truncate(file, most + 1), Err(Errno::EFBIG));
    assert_eq!(volume.truncate(file, u64::MAX), Err(Errno::EFBIG));
    assert_eq!(volume.allocate(file, most, 1, Allocation::Punch), Err(Errno::EFBIG));
    assert_eq!(volume.allocate(file, u64::MAX - 5, u64::MAX, Allocation::Fill), Ok(()));
    let (mut found, mut at) = (false, 0);
    while !found {
        (found, at) = volume.seek_data(file, at, false).unwrap();
    }
    assert_eq!(at, most - PAGE as u64);
    assert_eq!(volume.allocate(file, 100, most - 200, Allocation::Punch), Ok(()));
    assert_eq!(volume.truncate(file, most), Ok(()));
    check(&volume);
    assert_eq!(volume.truncate(file, 5), Ok(()));
    check(&volume);
}

#[test]
fn links_count_as_inodes() {
    let mut volume = volume(64);
    let root = volume.root();
    let file = make(&mut volume, "file");
    for number in 0..62 {
        volume.link(root, format!("link {number}").as_bytes(), file, ROOT_USER).unwrap();
    }
    assert_eq!(volume.link(root, b"more", file, ROOT_USER), Err(Errno::ENOSPC));
    // A rename needs no more.
    volume.rename(root, b"link 5", root, b"renamed", ROOT_USER).unwrap();
    assert_eq!(volume.rename_leaving_whiteout(root, b"link 6", root, b"white", ROOT_USER), Err(Errno::ENOSPC));
    check(&volume);
    volume.unlink(root, b"link 7").unwrap();
    assert_eq!(volume.rename_leaving_whiteout(root, b"link 6", root, b"white", ROOT_USER), Ok(()));
    check(&volume);
}

#[test]
fn a_file_without_a_name_has_room_for_its_first() {
    let mut volume = volume(64);
    let root = volume.root();
    let file = volume.make_nameless(root, 0o100_600, ROOT_USER).unwrap();
    for number in 0..62 {
        make(&mut volume, &format!("{number}"));
    }
    assert_eq!(volume.make_nameless(root, 0o100_600, ROOT_USER), Err(Errno::ENOSPC));
    volume.link(root, b"name", file, ROOT_USER).unwrap();
    assert_eq!(volume.link(root, b"other", file, ROOT_USER), Err(Errno::ENOSPC));
    check(&volume);
    volume.put(file, 1).unwrap();
    assert_eq!(volume.lookup(root, b"name"), Ok(file));
}

/// A tree of maps with one page each: what is freed between requests is bounded, and all of it is found again.
#[test]
fn a_file_that_is_all_maps_is_freed_in_parts() {
    let mut volume = volume(1000);
    let file = make(&mut volume, "maps");
    let far = 1 << 32;
    let mut files = 0;
    while write(&mut volume, file, far + files * 4096 * PAGE as u64, &[1]).is_ok() {
        files += 1;
    }
    check(&volume);
    let full = free_pages(&volume);
    volume.unlink(volume.root(), b"maps").unwrap();
    volume.begin();
    assert_eq!(free_pages(&volume), full, "it takes no longer than a small one");
    volume.clean_up().unwrap();
    let some = free_pages(&volume);
    assert!(some > full && some < 1000, "{some}");
    check(&volume);
    // Who needs the rest gets it.
    let other = make(&mut volume, "other");
    let data = vec![3; 200 * PAGE];
    for at in 0..4 {
        assert_eq!(write(&mut volume, other, at * data.len() as u64, &data), Ok(data.len()));
    }
    check(&volume);
    unlink(&mut volume, "other");
    (0..20).for_each(|_| volume.clean_up().unwrap());
    assert_eq!(free_pages(&volume), 1000);
}

/// Lets the n-th allocation of each operation fail: it fails, or does not need it, and the volume is sound.
#[test]
fn an_allocation_that_fails_changes_nothing() {
    let mut volume = volume(64);
    let root = volume.root();
    let file = make(&mut volume, "file");
    volume.set_xattr(file, b"user.one", b"value", XattrMode::Any, ROOT_USER).unwrap();
    let operations: [&dyn Fn(&mut Tmpfs) -> Result<NodeId, Errno>; 5] = [
        &|volume| volume.xattr(file, b"user.one").map(|_| 0),
        &|volume| volume.xattr_names(file).map(|_| 0),
        &|volume| volume.set_xattr(file, b"user.two", b"other", XattrMode::Any, ROOT_USER).map(|()| 0),
        &|volume| volume.remove_xattr(file, b"user.two").map(|()| 0),
        &|volume| volume.set_uses(&[(root, 1), (file, 3)]).map(|()| 0),
    ];
    for operation in operations {
        for number in 1.. {
            fallible::fail_after(number);
            let result = operation(&mut volume);
            let is_pending = fallible::is_failure_pending();
            fallible::fail_after(0);
            volume.begin();
            check(&volume);
            if is_pending {
                assert!(result.is_ok(), "{result:?}");
                break;
            }
            assert_eq!(result, Err(Errno::ENOMEM));
        }
    }
    // Names and content need no memory at all.
    fallible::fail_after(1);
    let file = make(&mut volume, "another");
    write(&mut volume, file, 0, &[1; 50_000]).unwrap();
    volume.unlink(root, b"another").unwrap();
    assert!(fallible::is_failure_pending());
    fallible::fail_after(0);
}
