//! Objects: when they live and when they go.

use super::frames::{Frame, Frames};
use super::object::*;
use abi::Errno;

const FILE: FileId = FileId { device: 8, inode: 12 };

fn frames() -> Frames {
    let mut frames = Frames::new(64);
    (0..64).for_each(|number| frames.add(Frame(number)));
    frames
}

fn fill(objects: &mut Objects, frames: &mut Frames, id: ObjectId) {
    let frame = frames.take().expect("enough frames");
    objects.get_mut(id).expect("exists").pages.own(0, frame, frames);
}

#[test]
fn an_image_stays_cached_until_its_file_changes() {
    let (mut objects, mut frames) = (Objects::default(), frames());
    let first = objects.open_image(&mut frames, FILE, 1, 100);
    fill(&mut objects, &mut frames, first);
    objects.close(&mut frames, first).expect("held");
    assert_eq!(objects.open_image(&mut frames, FILE, 1, 100), first);
    objects.map(first, 3);
    objects.close(&mut frames, first).expect("held");
    let second = objects.open_image(&mut frames, FILE, 2, 100);
    assert_ne!(first, second);
    assert!(objects.get(first).is_some(), "a region still shows the old version");
    objects.unmap(&mut frames, first, 3);
    assert!(objects.get(first).is_none());
    assert_eq!(frames.free(), 64);
}

#[test]
fn only_idle_images_are_dropped_and_the_oldest_first() {
    let (mut objects, mut frames) = (Objects::default(), frames());
    let ids: Vec<ObjectId> =
        (0..3).map(|inode| objects.open_image(&mut frames, FileId { inode, ..FILE }, 1, 1)).collect();
    objects.close(&mut frames, ids[0]).expect("held");
    objects.close(&mut frames, ids[1]).expect("held");
    objects.map(ids[0], 1);
    objects.unmap(&mut frames, ids[0], 1);
    assert!(objects.drop_oldest(&mut frames));
    assert!(objects.get(ids[1]).is_none() && objects.get(ids[0]).is_some());
    assert!(objects.drop_oldest(&mut frames) && !objects.drop_oldest(&mut frames));
    assert!(objects.get(ids[2]).is_some());
}

#[test]
fn a_number_never_means_a_successor() {
    let (mut objects, mut frames) = (Objects::default(), frames());
    let first = objects.add_anonymous();
    objects.close(&mut frames, first).expect("held");
    let second = objects.add_anonymous();
    assert_ne!(first, second);
    assert_eq!(objects.close(&mut frames, first), Err(Errno::EINVAL));
    assert!(objects.get(first).is_none() && objects.get(second).is_some());
    assert!(objects.get(ObjectId(0)).is_none());
}

#[test]
fn every_shared_file_is_found_by_its_file_and_on_the_way_through_all() {
    let mut objects = Objects::default();
    let file = |inode| FileId { inode, ..FILE };
    let first = objects.open_shared(file(1), 10);
    objects.add_anonymous();
    let others = [2, 3].map(|inode| objects.open_shared(file(inode), 10));
    let all = [(first, file(1)), (others[0], file(2)), (others[1], file(3))];
    let mut found = Vec::new();
    while let Some(next) = objects.next_shared(found.last().map_or(ObjectId(0), |&(id, _)| id)) {
        found.push(next);
    }
    assert_eq!(found, all);
    assert!(all.iter().all(|&(id, file)| objects.open_shared(file, 10) == id), "one memory for each file");
}

#[test]
fn frames_that_a_death_left_set_aside_go_with_their_image() {
    let (mut objects, mut frames) = (Objects::default(), frames());
    let image = objects.open_image(&mut frames, FILE, 1, 8192);
    let run = frames.take_run(2).expect("enough frames");
    let object = objects.get_mut(image).expect("exists");
    object.set_reserve(run);
    object.begin_close();
    objects.end_recount(&mut frames);
    assert_eq!(frames.free(), 62, "the image is cached");
    objects.forget_image(&mut frames, FILE);
    assert_eq!(frames.free(), 64);
}
