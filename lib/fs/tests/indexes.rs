//! The index with order of use, against a plain model, and the cache of names.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use fs::lru::LruIndex;
use fs::names::{Known, NameCache};

/// Keys in order of use, the newest first, with their slots.
#[derive(Default)]
struct Model(VecDeque<(u64, usize)>);

impl Model {
    fn slot(&self, key: u64) -> Option<usize> {
        self.0.iter().find(|entry| entry.0 == key).map(|entry| entry.1)
    }

    fn take(&mut self, key: u64) -> (u64, usize) {
        let at = self.0.iter().position(|entry| entry.0 == key).unwrap();
        self.0.remove(at).unwrap()
    }
}

#[test]
fn the_index_agrees_with_a_list_in_order_of_use() {
    let mut index = LruIndex::new(8);
    let mut model = Model::default();
    let mut random = 12345u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (random >> 40) % 50 * 0x1_0000_0001;
        match ((random >> 33) % 4, model.slot(key)) {
            (0, Some(slot)) => {
                index.remove(slot);
                model.take(key);
            }
            (_, Some(slot)) => {
                index.touch(slot);
                let entry = model.take(key);
                model.0.push_front(entry);
            }
            (0..3, None) => {
                let slot = index.insert(key);
                assert!(model.0.iter().all(|entry| entry.1 != slot), "slot {slot} was in use");
                model.0.push_front((key, slot));
            }
            _ => {}
        }
        assert_eq!(index.find(key), model.slot(key));
        assert_eq!(index.oldest(), model.0.back().map(|entry| entry.1));
        assert_eq!(index.len(), model.0.len());
    }
}

#[test]
fn neighbours_lie_side_by_side_wherever_the_place_is_free() {
    let mut index = LruIndex::new(8);
    let mut model = Model::default();
    let mut random = 777u64;
    let mut slots = 0;
    let mut side_by_side = 0;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (random >> 40) % 60;
        if let Some(slot) = model.slot(key) {
            index.remove(slot);
            model.take(key);
            continue;
        }
        let wanted = key.checked_sub(1).and_then(|before| model.slot(before)).map(|slot| slot + 1);
        let is_free = |slot: &usize| *slot < slots && model.0.iter().all(|entry| entry.1 != *slot);
        let wanted = wanted.filter(is_free);
        let slot = index.insert_in_order(key);
        assert!(model.0.iter().all(|entry| entry.1 != slot), "slot {slot} was in use");
        assert!(wanted.is_none_or(|wanted| slot == wanted), "key {key}");
        side_by_side += usize::from(wanted.is_some());
        slots = slots.max(slot + 1);
        model.0.push_front((key, slot));
        assert_eq!((index.find(key), index.len()), (Some(slot), model.0.len()));
    }
    assert!(slots <= 60 && side_by_side > 1000, "{slots} slots, {side_by_side} side by side");
}

#[test]
fn a_held_slot_is_never_the_oldest() {
    let mut index = LruIndex::new(4);
    let slots: Vec<_> = (0..3).map(|key| index.insert(key)).collect();
    index.hold(slots[0]);
    index.touch(slots[0]);
    assert_eq!(index.oldest(), Some(slots[1]));
    index.remove(slots[1]);
    index.hold(slots[2]);
    assert_eq!(index.oldest(), None);
    assert_eq!(index.find(0), Some(slots[0]));
    index.release(slots[0]);
    assert_eq!(index.oldest(), Some(slots[0]));
    index.remove(slots[2]);
    assert_eq!(index.len(), 1);
}

#[test]
fn a_name_is_known_as_it_was_learnt_last() {
    let mut names = NameCache::new(10);
    assert_eq!(names.find(2, b"a"), None);
    names.learn(2, b"a", Known::Node(12, 0));
    names.learn(3, b"a", Known::Absent);
    assert_eq!(names.find(2, b"a"), Some(Known::Node(12, 0)));
    assert_eq!(names.find(3, b"a"), Some(Known::Absent));
    names.learn(2, b"a", Known::Absent);
    assert_eq!(names.find(2, b"a"), Some(Known::Absent));
}

#[test]
fn names_are_forgotten_in_order_of_use_and_long_ones_not_kept() {
    let mut names = NameCache::new(3);
    for name in [b"a", b"b", b"c"] {
        names.learn(2, name, Known::Absent);
    }
    assert!(names.find(2, b"a").is_some());
    names.learn(2, b"d", Known::Absent);
    assert_eq!(names.find(2, b"b"), None);
    assert!(names.find(2, b"a").is_some());
    names.learn(2, &[b'x'; 200], Known::Absent);
    assert_eq!(names.find(2, &[b'x'; 200]), None);
}
