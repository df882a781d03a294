//! A volume with a journal: at whatever write the power fails, a recovery (`e2fsck -p`, or the next mount) leaves a moment between two
//! requests, not before the last sync, and `e2fsck -fn` then finds nothing.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::disk::Disk;
use crate::common::work::{Tree, Work, tree, work};
use crate::common::{ROOT_USER, Random, Scratch, amount, check, debugfs, memory, mount, options, read_all, write};
use ext2::{Ext2, Options};
use fs::Errno;
use fs::file_system::{FileSystem, NodeId};

const ROOT: NodeId = 2;

/// An image with a journal of the least length, by block size.
const SMALL: (u32, &[&str]) = (4096, &["-b", "1024", "-j", "-J", "size=1", "-N", "256"]);
const LARGE: (u32, &[&str]) = (12 * 1024, &["-b", "4096", "-j", "-J", "size=4", "-I", "256", "-N", "256"]);

fn e2fsck(path: &Path, how: &str) -> Output {
    Command::new("e2fsck").arg(how).arg(path).output().expect("e2fsck must be installed")
}

/// Recovers the image as a boot does, and fails unless that only replays.
fn recover_by_e2fsck(path: &Path) {
    let output = e2fsck(path, "-p");
    let text = String::from_utf8_lossy(&output.stdout);
    let is_usual = |line: &str| {
        line.contains("recovering journal")
            || line.contains(": clean, ")
            || line.contains("Clearing orphaned inode")
            || line.contains("Truncating orphaned inode")
            || line.contains("Setting free ")
    };
    assert!(output.status.code().is_some_and(|code| code <= 1) && text.lines().all(is_usual), "e2fsck -p:\n{text}");
    check(path);
}

/// The trees that may be on the disk after so many of its requests: those since the last sync that had ended.
fn allowed(work: &Work, requests: usize) -> &[(Tree, usize, bool)] {
    let moments = &work.moments;
    let last_sync = moments.iter().rposition(|&(_, end, is_sync)| is_sync && end <= requests).unwrap_or(0);
    let running = moments.iter().position(|&(_, end, _)| end >= requests).unwrap_or(moments.len() - 1);
    &moments[last_sync..=running.max(last_sync)]
}

/// Whether `tree` is between two moments because a long write is committed in parts.
fn is_part(before: &Tree, after: &Tree, tree: &Tree) -> bool {
    let is_between = |(path, content): (&String, &Option<Vec<u8>>)| match (before.get(path), content, after.get(path)) {
        (Some(Some(before)), Some(content), Some(Some(after))) => {
            content.starts_with(before) && after.starts_with(content)
        }
        (before, content, after) => before == Some(content) && after == Some(content),
    };
    tree.len() == after.len() && tree.iter().all(is_between)
}

/// What is different in two trees.
fn differences(one: &Tree, other: &Tree) -> Vec<String> {
    let describe = |content: Option<&Option<Vec<u8>>>| match content {
        None => "absent".to_owned(),
        Some(None) => "directory".to_owned(),
        Some(Some(content)) => format!("{} bytes", content.len()),
    };
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let apart = paths.into_iter().filter(|&path| one.get(path) != other.get(path));
    apart.map(|path| format!("{path}: {} for {}", describe(other.get(path)), describe(one.get(path)))).collect()
}

#[test]
fn each_power_cut_leaves_a_moment_since_the_last_sync_and_nothing_to_mend() {
    // e2fsck waits for the disk often.
    let scratch = Scratch::in_memory();
    let path = scratch.path("cut");
    let (mut states, mut replayed) = (0, 0);
    // The first two have checkpoints after nearly every sync.
    for (seed, kind, cache_kib) in [(1, SMALL, 128), (2, LARGE, 512), (3, SMALL, 1024)] {
        let (mut work, before) = work(kind, cache_kib, seed, amount(250, 2500));
        let disk = work.disk.clone();
        let chosen = amount(2, 1);
        let mut number = 0;
        work.volume.sync().unwrap();
        work.moments.push((work.tree.clone(), disk.log().len(), true));
        disk.at_each_state(before, |requests, bytes| {
            number += 1;
            if number % chosen != 0 {
                return;
            }
            states += 1;
            let require_moment = |tree: &Tree, by: &str| {
                let moments = allowed(&work, requests);
                let is_between = |pair: &[(Tree, usize, bool)]| is_part(&pair[0].0, &pair[1].0, tree);
                if moments.iter().all(|(moment, ..)| moment != tree) && !moments.windows(2).any(is_between) {
                    let apart = moments.iter().map(|(moment, ..)| differences(moment, tree));
                    panic!("seed {seed}, {requests} requests, {by}: {:#?}", apart.min_by_key(Vec::len));
                }
            };
            // Our own recovery.
            let own = Disk::of(bytes.to_vec());
            let mut volume = own.mount();
            require_moment(&tree(&mut volume), "mount");
            volume.clean_up().unwrap();
            volume.unmount().unwrap();
            std::fs::write(&path, own.bytes()).unwrap();
            check(&path);
            // That of e2fsck.
            std::fs::write(&path, bytes).unwrap();
            recover_by_e2fsck(&path);
            replayed += 1;
            let mut volume = Disk::of(std::fs::read(&path).unwrap()).mount();
            require_moment(&tree(&mut volume), "e2fsck");
        });
    }
    println!("{states} states, {replayed} recovered by e2fsck");
    assert!(states >= amount(200, 3000), "only {states} states");
}

/// A debugfs session on the image.
fn debugfs_script(path: &Path, commands: &str) {
    let script = path.with_extension("debugfs");
    std::fs::write(&script, commands).unwrap();
    let output = Command::new("debugfs").arg("-w").arg("-f").arg(&script).arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_journal_that_debugfs_has_written_is_replayed() {
    for (kib, arguments) in [SMALL, LARGE] {
        let scratch = Scratch::in_memory();
        let path = scratch.image(kib, arguments);
        let block_size: usize = arguments[1].parse().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            std::fs::write(scratch.path(name), bytes).unwrap();
            scratch.path(name).display().to_string()
        };
        // The second block looks like the journal; the third is revoked, the fourth revoked and written again.
        let magic = [0xc0, 0x3b, 0x39, 0x98].repeat(block_size / 4);
        let first = file("first", &[vec![1; block_size], magic.clone(), vec![3; 2 * block_size]].concat());
        let second = file("second", &vec![4; block_size]);
        let free: Vec<u32> = String::from_utf8(debugfs(&path, "ffb 4"))
            .unwrap()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [a, b, c, d] = free[..] else { panic!("{free:?}") };
        debugfs_script(&path, &format!("jo\njw -b {a},{b},{c},{d} {first}\njw -r {c},{d}\njw -b {d} {second}\njc\n"));
        let marked = std::fs::read(&path).unwrap();
        let of = |bytes: &[u8], block: u32| bytes[block as usize * block_size..][..block_size].to_vec();
        assert!(of(&marked, a) != [1].repeat(block_size), "not replayed yet");
        for read_only in [false, true] {
            let disk = Disk::of(marked.clone());
            let options = Options { read_only, ..options() };
            let mut volume = Ext2::mount(disk.clone(), options, memory()).unwrap();
            volume.unmount().unwrap();
            let bytes = disk.bytes();
            assert_eq!(of(&bytes, a), [1].repeat(block_size));
            assert_eq!(of(&bytes, b), magic);
            assert_eq!(of(&bytes, c), of(&marked, c), "revoked");
            assert_eq!(of(&bytes, d), [4].repeat(block_size));
            std::fs::write(&path, bytes).unwrap();
            check(&path);
            // Neither e2fsck nor a mount finds anything left.
            assert!(!String::from_utf8(debugfs(&path, "features")).unwrap().contains("needs_recovery"));
        }
    }
}

/// What Linux 6.18 had on a disk when its power would have failed: ext3 (1 KiB blocks, `-O none,has_journal,filetype,sparse_super`), five
/// transactions, none of them at home. Four directories of 30 files, of which three were removed (their blocks are revoked); a file whose
/// content looks like the journal; one of 300,000 bytes in the freed blocks; one that was unlinked in use; a rename.
const OF_LINUX: &[u8] = include_bytes!("images/linux_journal.gz");

#[test]
fn a_journal_that_linux_has_written_is_replayed() {
    let scratch = Scratch::in_memory();
    let path = scratch.path("image");
    std::fs::write(scratch.path("image.gz"), OF_LINUX).unwrap();
    assert!(Command::new("gzip").arg("-d").arg(scratch.path("image.gz")).status().unwrap().success());
    let disk = Disk::of(std::fs::read(&path).unwrap());
    let mut volume = disk.mount();
    volume.clean_up().unwrap();
    let mut expected = Tree::from([("/dir0".to_owned(), None)]);
    expected.extend((0..30).map(|file| (format!("/dir0/file{file}"), Some(Vec::new()))));
    let magic = [0xc0, 0x3b, 0x39, 0x98].repeat(2000);
    for (name, content) in
        [("/second", magic), ("/big", vec![b'b'; 300_000]), ("/last", b"end\n".to_vec()), ("/moved", vec![b'1'; 5000])]
    {
        expected.insert(name.to_owned(), Some(content));
    }
    let link = volume.lookup(ROOT, b"link").unwrap();
    let mut target = [0; 10];
    assert_eq!(volume.read_link(link, &mut target), Ok(5));
    volume.unlink(ROOT, b"link").unwrap();
    assert_eq!(differences(&expected, &tree(&mut volume)), Vec::<String>::new());
    volume.unmount().unwrap();
    std::fs::write(&path, disk.bytes()).unwrap();
    check(&path);
}

#[test]
fn e2fsck_and_debugfs_read_what_a_mount_has_written() {
    let (work, _) = work(SMALL, 1024, 5, 40);
    let scratch = Scratch::in_memory();
    let path = scratch.path("image");
    std::fs::write(&path, work.disk.bytes()).unwrap();
    assert!(String::from_utf8(debugfs(&path, "features")).unwrap().contains("needs_recovery"));
    let dump = String::from_utf8(debugfs(&path, "logdump -a")).unwrap();
    assert!(dump.contains("Found expected sequence") && dump.contains("commit block"), "{dump}");
    assert!(!dump.contains("orphan") && !dump.contains("corrupt"), "{dump}");
    recover_by_e2fsck(&path);
}

#[test]
fn an_unmounted_volume_is_clean_for_a_system_without_journal() {
    let (mut work, _) = work(SMALL, 1024, 7, 60);
    for node in core::mem::take(&mut work.unnamed) {
        work.volume.put(node, 1).unwrap();
    }
    work.volume.unmount().unwrap();
    let scratch = Scratch::in_memory();
    let path = scratch.path("image");
    std::fs::write(&path, work.disk.bytes()).unwrap();
    check(&path);
    let features = String::from_utf8(debugfs(&path, "features")).unwrap();
    assert!(features.contains("has_journal") && !features.contains("needs_recovery"), "{features}");
    // Linux's ext2 does the same: it ignores the journal of a clean volume.
    assert_eq!(e2fsck(&path, "-p").status.code(), Some(0));
    assert_eq!(tree(&mut work.disk.mount()), work.tree);
}

#[test]
fn truncations_that_linux_has_begun_are_finished_and_unnamed_files_freed() {
    let scratch = Scratch::in_memory();
    let path = scratch.image(SMALL.0, SMALL.1);
    let mut volume = mount(&path);
    let numbers = ["cut", "gone"].map(|name| {
        let node = volume.make_node(ROOT, name.as_bytes(), 0o100_644, 0, ROOT_USER).unwrap();
        write(&mut volume, node, 0, &[7; 300_000]).unwrap();
        node
    });
    volume.unmount().unwrap();
    drop(volume);
    let [cut, gone] = numbers;
    // Linux sets the size first; a file without name has no entry and no link.
    debugfs_script(
        &path,
        &format!(
            "sif <{cut}> size 5000\nsif <{cut}> dtime {gone}\nunlink gone\nsif <{gone}> links_count 0\nssv last_orphan {cut}\n             feature needs_recovery\n"
        ),
    );
    let marked = std::fs::read(&path).unwrap();
    let disk = Disk::of(marked.clone());
    let mut volume = disk.mount();
    assert_eq!(volume.attributes(cut).unwrap().size, 5000);
    assert_eq!(read_all(&mut volume, cut), [7; 5000]);
    volume.clean_up().unwrap();
    assert_eq!(volume.attributes(gone), Err(Errno::EUCLEAN));
    volume.unmount().unwrap();
    std::fs::write(&path, disk.bytes()).unwrap();
    check(&path);
    // A mount that cannot write leaves them to the next one.
    let disk = Disk::of(marked);
    let read_only = Options { read_only: true, ..options() };
    let mut volume = Ext2::mount(disk.clone(), read_only, memory()).unwrap();
    assert_eq!(volume.attributes(cut).unwrap().size, 5000);
    std::fs::write(&path, disk.bytes()).unwrap();
    recover_by_e2fsck(&path);
}

/// Names that move need an order of writes on a disk without journal alone: there they make earlier ones be written.
#[test]
fn with_a_journal_the_disk_hears_of_moved_names_at_the_next_sync_and_not_before() {
    for (arguments, is_journaled) in [(SMALL.1, true), (&["-b", "1024"][..], false)] {
        let disk = Disk::with_kib(SMALL.0, arguments);
        let mut volume = disk.mount();
        let [one, two] = [b"one", b"two"].map(|name| volume.make_dir(ROOT, name, 0o755, ROOT_USER).unwrap());
        let node = volume.make_node(one, b"file", 0o100_644, 0, ROOT_USER).unwrap();
        let other = volume.make_node(two, b"other", 0o100_644, 0, ROOT_USER).unwrap();
        volume.sync().unwrap();
        disk.forget_log();
        volume.rename(one, b"file", two, b"file", ROOT_USER).unwrap();
        volume.rename(two, b"file", one, b"again", ROOT_USER).unwrap();
        volume.link(two, b"link", node, ROOT_USER).unwrap();
        volume.exchange(one, b"again", two, b"other").unwrap();
        volume.rename(two, b"link", one, b"link", ROOT_USER).unwrap();
        assert_eq!(disk.log().is_empty(), is_journaled);
        volume.sync().unwrap();
        assert!(!disk.log().is_empty());
        let expected = [(one, &b"again"[..], other), (two, b"other", node), (one, b"link", node)];
        assert!(expected.into_iter().all(|(dir, name, node)| volume.lookup(dir, name) == Ok(node)));
    }
}

/// Some commits make the log full, and there are many.
#[test]
fn a_log_is_emptied_before_it_is_full() {
    let disk = Disk::with_kib(8192, &["-b", "1024", "-j", "-J", "size=1"]);
    let mut volume = disk.mount();
    let node = volume.make_node(ROOT, b"file", 0o100_000, 0, ROOT_USER).unwrap();
    for round in 1..=1500u32 {
        volume.set_mode(node, round % 0o777).unwrap();
        assert_eq!(volume.sync(), Ok(()), "round {round}");
        if round % 100 == 0 {
            // As after a power cut.
            let mut volume = Disk::of(disk.bytes()).mount();
            assert_eq!(volume.attributes(node).unwrap().mode & 0o7777, round % 0o777);
        }
    }
    volume.unmount().unwrap();
    let scratch = Scratch::new();
    std::fs::write(scratch.path("image"), disk.bytes()).unwrap();
    check(&scratch.path("image"));
}

#[test]
fn a_commit_that_fails_is_tried_again_or_ends_the_writing() {
    let (work, _) = work(SMALL, 1024, 17, 40);
    let base = work.disk.bytes();
    let scratch = Scratch::in_memory();
    let path = scratch.path("image");
    let (mut again, mut ended) = (0, 0);
    for requests in 0.. {
        let disk = Disk::of(base.clone());
        let mut volume = disk.mount();
        let node = volume.make_node(ROOT, b"new", 0o100_644, 0, ROOT_USER).unwrap();
        write(&mut volume, node, 0, &[5; 20_000]).unwrap();
        disk.fail_after(requests);
        let first = volume.sync();
        if disk.is_failure_pending() {
            break;
        }
        assert_eq!(first, Err(Errno::EIO), "after {requests}");
        let is_there = volume.sync().is_ok();
        if is_there {
            again += 1;
            assert_eq!(write(&mut volume, node, 20_000, b"more"), Ok(4));
        } else {
            ended += 1;
            assert_eq!(write(&mut volume, node, 20_000, b"more"), Err(Errno::EROFS));
            assert_eq!(read_all(&mut volume, node), [5; 20_000]);
            volume.unmount().unwrap();
        }
        std::fs::write(&path, disk.bytes()).unwrap();
        recover_by_e2fsck(&path);
        let mut volume = mount(&path);
        match volume.lookup(ROOT, b"new") {
            Ok(node) => assert_eq!(read_all(&mut volume, node), [5; 20_000]),
            Err(error) => assert!(!is_there && error == Errno::ENOENT),
        }
    }
    assert!(again >= 3 && ended == 2, "{again} tried again, {ended} ended");
}

#[test]
fn a_mutated_journal_is_an_error_or_a_recovery_but_never_more() {
    let (work, _) = work(SMALL, 1024, 11, 60);
    let base = work.disk.bytes();
    let superblock = Ext2::mount(Disk::of(base.clone()), Options { read_only: true, ..options() }, memory());
    drop(superblock.expect("the journal is sound"));
    let journal = journal_blocks(&base);
    let disk = Disk::of(base.clone());
    let mut random = Random::new(13);
    let (mut mounted, mut refused) = (0u32, 0u32);
    for _ in 0..amount(5000, 100_000) {
        for _ in 0..1 + random.below(4) {
            // Headers and the first tags, or anywhere in the blocks that are in use; now and then a superblock.
            let block = match random.below(8) {
                0 => 1,
                1 => journal[0],
                _ => journal[random.below(journal.len() as u64) as usize],
            };
            let offset = if random.below(2) == 0 { random.below(64) } else { random.below(1024) };
            let value = [0, 1, 2, 5, 0xff, random.next() as u8][random.below(6) as usize];
            disk.set(block * 1024 + offset as usize, value);
        }
        let read_only = Options { read_only: random.below(2) == 0, ..options() };
        match Ext2::mount(disk.clone(), read_only, memory()) {
            Ok(_) => mounted += 1,
            Err(error) => {
                assert!([Errno::EUCLEAN, Errno::EINVAL, Errno::EIO].contains(&error), "{error}");
                refused += 1;
            }
        }
        disk.restore(&base);
    }
    println!("{mounted} mounted, {refused} refused");
    assert!(mounted > 100 && refused > 100);
}

/// The blocks of the journal that are in use.
fn journal_blocks(image: &[u8]) -> Vec<usize> {
    const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];
    let has_magic = |block: &usize| image[block * 1024..].starts_with(&MAGIC);
    (2..image.len() / 1024).filter(has_magic).collect()
}
