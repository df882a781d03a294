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
