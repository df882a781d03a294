//! What has memory, and what has none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;

use fs::file_system::FileSystem;

use super::{LAYOUT, ROOT_USER, make, mount, read_all, words, write};
use crate::plan::{PAGE, Plan};

/// Pages of the preserved memory that are not zeros.
fn used_pages(words: &[AtomicU64]) -> usize {
    let area = &words[LAYOUT.bytes() / 8..];
    area.chunks(PAGE / 8).filter(|page| page.iter().any(|word| word.load(Ordering::Relaxed) != 0)).count()
}

#[test]
fn what_files_no_longer_use_has_no_memory() {
    let plan = Plan::of_pages(1024);
    let words = words(plan);
    let mut volume = mount(words, plan);
    let root = volume.root();
    let before = used_pages(words);
    let (large, kept) = (make(&mut volume, "large"), make(&mut volume, "kept"));
    for (file, pages) in [(large, 300), (kept, 10), (large, 600)] {
        assert_eq!(write(&mut volume, file, 0, &vec![0x5a; pages * PAGE]), Ok(pages * PAGE));
    }
    volume.begin();
    volume.trim();
    assert!(used_pages(words) > before + 610);
    volume.unlink(root, b"large").unwrap();
    volume.begin();
    volume.trim();
    assert!(used_pages(words) < before + 20, "{} of {before}", used_pages(words));
    assert!(read_all(&mut volume, kept) == vec![0x5a; 10 * PAGE]);
    let again = make(&mut volume, "again");
    assert_eq!(write(&mut volume, again, 0, &vec![1; 700 * PAGE]), Ok(700 * PAGE));
    assert!(read_all(&mut volume, again) == vec![1; 700 * PAGE]);
}

#[test]
fn memory_of_another_file_system_is_as_good_as_new() {
    let plan = Plan::of_pages(256);
    let words = words(plan);
    let empty = used_pages(words);
    for round in 0..3 {
        let mut volume = mount(words, plan);
        let root = volume.root();
        super::check::check(&volume);
        for number in 0..40 {
            let name = std::format!("file {number} of round {round}");
            let file = make(&mut volume, &name);
            assert_eq!(write(&mut volume, file, 5000, &[7; 5000]), Ok(5000));
            assert!(read_all(&mut volume, file)[..5000] == [0; 5000]);
            volume.set_xattr(root, b"user.x", &[round; 100], fs::file_system::XattrMode::Any, ROOT_USER).unwrap();
        }
        super::check::check(&volume);
    }
    drop(mount(words, plan));
    assert!(used_pages(words) < empty + 8);
}

#[test]
fn pages_of_a_file_follow_one_another_also_when_they_were_used_before() {
    let mut volume = super::volume(512);
    let root = volume.root();
    for _ in 0..3 {
        let file = make(&mut volume, "file");
        assert_eq!(write(&mut volume, file, 0, &vec![1; 200 * PAGE]), Ok(200 * PAGE));
        let inode = volume.inode(file).unwrap();
        let (mut index, mut runs) = (0, 0);
        while index < 200 {
            index += crate::map::run(&volume.memory, inode, index, 200).1;
            runs += 1;
        }
        assert!(runs <= 6, "{runs} runs");
        volume.unlink(root, b"file").unwrap();
        volume.begin();
        volume.clean_up().unwrap();
    }
}
