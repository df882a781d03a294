//! Regions join, split, and leave free ranges between them.

use super::region::*;
use crate::memory::object::ObjectId;
use abi::layout::PAGE_BYTES;

const P: u64 = PAGE_BYTES;

fn anonymous(first: u64, end: u64) -> Region {
    Region::anonymous(first * P, end * P, Rights::READ_WRITE)
}

fn regions(ranges: &[(u64, u64)]) -> Regions {
    let mut regions = Regions::default();
    for &(first, end) in ranges {
        regions.insert(anonymous(first, end));
    }
    regions
}

fn change(regions: &mut Regions, first: u64, end: u64, rights: Rights) {
    for region in regions.remove(first * P, end * P) {
        regions.insert(Region { rights, ..region });
    }
}

fn ranges(regions: &Regions) -> Vec<(u64, u64)> {
    regions.iter().map(|region| (region.start / P, region.end / P)).collect()
}

#[test]
fn neighbours_of_one_kind_become_one() {
    let mut regions = regions(&[(10, 20), (30, 40)]);
    assert_eq!(regions.insert(anonymous(20, 30)), 2);
    assert_eq!(ranges(&regions), [(10, 40)]);
    change(&mut regions, 15, 20, Rights::READ);
    assert_eq!(ranges(&regions), [(10, 15), (15, 20), (20, 40)]);
    change(&mut regions, 15, 20, Rights::READ_WRITE);
    assert_eq!(ranges(&regions), [(10, 40)]);
}

#[test]
fn parts_of_an_object_join_only_in_order() {
    let part = |first, end, page| Region { backing: Backing::Object(ObjectId(1), page), ..anonymous(first, end) };
    let mut regions = Regions::default();
    regions.insert(part(0, 4, 10));
    regions.insert(part(4, 8, 14));
    regions.insert(part(8, 9, 14));
    assert_eq!(ranges(&regions), [(0, 8), (8, 9)]);
    let removed = regions.remove(2 * P, 3 * P);
    assert_eq!(removed[0].object_page(2), Some((ObjectId(1), 12)));
    assert_eq!(regions.find(5 * P).and_then(|region| region.object_page(5)), Some((ObjectId(1), 15)));
}

#[test]
fn removing_cuts_at_both_ends() {
    let mut regions = regions(&[(10, 20), (21, 30)]);
    let removed = regions.remove(15 * P, 25 * P);
    assert_eq!((removed.len(), ranges(&regions)), (2, [(10, 15), (25, 30)].to_vec()));
    assert!(regions.is_free(15 * P, 25 * P) && !regions.is_free(14 * P, 15 * P));
    assert_eq!(regions.find(15 * P), None);
    assert_eq!(regions.find(25 * P).map(|region| region.pages()), Some(5));
}

#[test]
fn coverage_ends_at_holes() {
    let regions = regions(&[(10, 20), (21, 30)]);
    assert!(regions.is_covered(12 * P, 20 * P));
    assert!(!regions.is_covered(12 * P, 22 * P) && !regions.is_covered(29 * P, 31 * P) && !regions.is_covered(0, P));
}

#[test]
fn free_ranges_are_found_from_both_sides() {
    let mut regions = regions(&[(10, 20), (22, 30), (40, 50)]);
    assert_eq!(regions.free_below(100 * P, P, 60 * P), None);
    assert_eq!(regions.free_below(100 * P, P, 50 * P), Some(50 * P));
    assert_eq!(regions.free_below(50 * P, P, 3 * P), Some(37 * P));
    assert_eq!(regions.free_below(30 * P, P, 2 * P), Some(20 * P));
    assert_eq!(regions.free_below(45 * P, P, 3 * P), Some(37 * P));
    assert_eq!(regions.free_below(30 * P, P, 3 * P), Some(7 * P));
    assert_eq!(regions.free_below(30 * P, 8 * P, 3 * P), None);
    assert_eq!(regions.free_above(12 * P, 100 * P, 2 * P), Some(20 * P));
    assert_eq!(regions.free_above(12 * P, 100 * P, 11 * P), Some(50 * P));
    assert_eq!(regions.free_above(12 * P, 60 * P, 11 * P), None);
}

#[test]
fn lists_that_a_death_has_broken_are_noticed() {
    let list = || {
        let mut list = regions(&[(10, 20), (30, 40)]);
        list.insert(Region::anonymous(20 * P, 30 * P, Rights::READ));
        list
    };
    assert!(Regions::default().is_whole() && list().is_whole());
    for (what, start, region) in [
        ("not where it begins", 50, anonymous(51, 60)),
        ("over the next one", 20, anonymous(20, 31)),
        ("within the one before", 39, anonymous(39, 60)),
        ("empty", 50, anonymous(50, 50)),
        ("of less than nothing", 50, anonymous(50, 45)),
    ] {
        let mut list = list();
        list.break_entry(start * P, region);
        assert!(!list.is_whole(), "{what}");
    }
}
