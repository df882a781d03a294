//! Random operations, the same in every run, compared with a model in memory and checked by e2fsck.

use crate::common::run::Run;
use crate::common::{Scratch, amount, check, is_marked_clean, mount};
use fs::file_system::FileSystem;

fn run(seed: u64, arguments: &[&str]) {
    let scratch = Scratch::new();
    let image = scratch.image(65536, arguments);
    let volume = mount(&image);
    let root = volume.root();
    let mut run = Run::new(seed, volume);
    let operations = amount(800, 3000);
    for count in 1..=operations {
        run.step();
        if count % (operations / 4) == 0 {
            run.volume.sync().unwrap();
            check(&image);
        }
    }
    run.model.compare(&mut run.volume, 0, root);
    run.volume.unmount().unwrap();
    drop(run.volume);
    check(&image);
    assert!(is_marked_clean(&image));
    run.model.compare(&mut mount(&image), 0, root);
}

#[test]
fn blocks_of_1024_bytes() {
    run(1, &["-b", "1024"]);
}

#[test]
fn blocks_of_2048_bytes() {
    run(2, &["-b", "2048"]);
}

#[test]
fn blocks_of_4096_bytes() {
    run(3, &["-b", "4096"]);
}

#[test]
fn inodes_of_128_bytes() {
    run(4, &["-b", "1024", "-I", "128"]);
}

#[test]
fn many_small_groups() {
    run(5, &["-b", "1024", "-g", "1024"]);
}

#[test]
fn revision_0() {
    run(6, &["-b", "1024", "-r", "0"]);
}

#[test]
fn directory_entries_without_kind() {
    run(7, &["-b", "1024", "-O", "^filetype"]);
}
