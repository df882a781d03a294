//! How dirty pages go back to their file system: neighbours together.

use super::known::requests;
use super::meanwhile::expected;
use super::services::PAGE;
use super::*;
use abi::linux::nr;

const FILE: u64 = 0;
const PAGES: u64 = 20;
const SEEK_DATA: u64 = 3;

/// A file that is open, and was written over twice: from now on its pages may be dirty.
fn world() -> World {
    let world = World::new();
    world.make("/file", &expected(0..PAGES * PAGE), 0o666, (0, 0));
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    admit(&world);
    world
}

fn admit(world: &World) {
    (0..2).for_each(|_| write_over(world, 0, 1, 0));
}

/// Writes over so many pages from this one on.
fn write_over(world: &World, first: u64, pages: u64, mark: u8) {
    let content = std::vec![mark; (pages * PAGE) as usize];
    assert_eq!(world.pwrite(world.root, FILE, &content, (first * PAGE) as i64), Ok(pages * PAGE));
}

#[test]
fn neighbours_are_written_back_together_again_and_again() {
    let mut world = world();
    for mark in 1..5 {
        let written = requests(&world, |world| {
            (1..13).step_by(4).for_each(|page| write_over(world, page, 4, mark));
            Ok(0)
        });
        let settled = requests(&world, |world| world.call(world.root, nr::LSEEK, &[FILE, 0, SEEK_DATA]));
        assert!(written == 0 && settled <= 5, "{written} and {settled} requests for 12 pages");
        world.restart_vfs();
        assert!(world.content("/file")[PAGE as usize..13 * PAGE as usize].iter().all(|byte| *byte == mark));
        admit(&world);
    }
}

#[test]
fn what_lies_apart_is_written_where_it_belongs() {
    let mut world = world();
    let mut model = expected(0..PAGES * PAGE);
    model[..PAGE as usize].fill(0);
    for (page, mark) in [(9, 1), (3, 2), (4, 3), (12, 4), (5, 5), (10, 6), (2, 7)] {
        write_over(&world, page, 1, mark);
        model[(page * PAGE) as usize..((page + 1) * PAGE) as usize].fill(mark);
    }
    assert_eq!(world.call(world.root, nr::FSYNC, &[FILE]), Ok(0));
    world.restart_vfs();
    assert!(world.content("/file") == model);
}
