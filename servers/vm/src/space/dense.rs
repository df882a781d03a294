//! Where a search for free addresses need not look: from some address up to the top of mmap's addresses nothing is free, and from another
//! one nothing as large as what was last looked for. Without it each mmap of a program with many mappings would walk along all of them.
//!
//! Invariant: a region holds each `from`, or it is the top, so no free range reaches beyond it. Neighbour: `region`, which tells what comes and goes.

use abi::layout::PAGE_BYTES;

/// Addresses up to the top in which every free range is smaller than `bytes`.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    bytes: u64,
}

/// What is known of the addresses below `top`.
#[derive(Clone, Debug)]
pub struct Dense {
    top: u64,
    /// Where nothing is free, and where the last search found too little.
    parts: [Part; 2],
}

impl Dense {
    /// Nothing is known yet.
    pub fn below(top: u64) -> Dense {
        Dense { top, parts: [Part { from: top, bytes: PAGE_BYTES }; 2] }
    }

    /// The top.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// Where a search for `bytes` below `top` begins, downwards.
    pub fn search_from(&self, top: u64, bytes: u64) -> u64 {
        let known = self.parts.iter().filter(|part| part.bytes <= bytes && top <= self.top);
        known.map(|part| part.from).fold(top, u64::min)
    }

    /// A search from the top, or from `from`, has found the first free addresses below `gap`, and `bytes` below `end`.
    pub fn found(&mut self, from: u64, gap: u64, end: u64, bytes: u64) {
        let [full, searched] = &mut self.parts;
        if from == full.from {
            full.from = gap;
        }
        if end < from {
            *searched = Part { from: end, bytes };
        }
    }

    /// A region has come.
    pub fn cover(&mut self, start: u64, end: u64) {
        for part in self.parts.iter_mut().filter(|part| end >= part.from && start < part.from) {
            part.from = start;
        }
    }

    /// Whether what becomes free below `end` is in a known part.
    pub fn reaches(&self, end: u64) -> bool {
        self.parts.iter().any(|part| end > part.from)
    }

    /// Something below `end` becomes free; `next` is the first address from there on that a region holds.
    pub fn open(&mut self, end: u64, next: u64) {
        for part in self.parts.iter_mut().filter(|part| end > part.from) {
            part.from = next.min(self.top);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::{MMAP_TOP, Region, Regions, Rights};
    use super::PAGE_BYTES as P;

    fn anonymous(first: u64, end: u64) -> Region {
        Region::anonymous(first * P, end * P, Rights::READ_WRITE)
    }

    #[test]
    fn a_second_search_begins_where_the_first_ended() {
        let mut regions = Regions::default();
        for hole in 1..=1000 {
            regions.insert(anonymous(MMAP_TOP / P - 2 * hole, MMAP_TOP / P - 2 * hole + 1));
        }
        let mut search = |bytes| {
            let start = regions.free_below(MMAP_TOP, P, bytes).expect("is free");
            regions.insert(Region::anonymous(start, start + bytes, Rights::READ));
            regions.remove(start, start + bytes);
            (start + bytes, regions.dense().search_from(MMAP_TOP, bytes))
        };
        for pages in [16, 2, 300] {
            let (end, from) = search(pages * P);
            assert_eq!((end, from), (MMAP_TOP - 2000 * P, end));
        }
        assert_eq!(search(P), (MMAP_TOP, MMAP_TOP), "the first hole");
    }

    #[test]
    fn what_is_mapped_one_below_the_other_is_not_searched_again() {
        let mut regions = Regions::default();
        for page in 1..=100 {
            let start = regions.free_below(MMAP_TOP, P, P).expect("is free");
            assert_eq!(start, MMAP_TOP - page * P);
            regions.insert(Region::anonymous(start, start + P, Rights::READ));
            assert_eq!(regions.dense().search_from(MMAP_TOP, P), start);
        }
        regions.remove(MMAP_TOP - 50 * P, MMAP_TOP - 49 * P);
        assert_eq!(regions.dense().search_from(MMAP_TOP, P), MMAP_TOP - 49 * P);
    }

    #[test]
    fn the_search_skips_nothing_that_is_free() {
        let top = MMAP_TOP / P;
        let mut regions = Regions::default();
        let mut random = 1u64;
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (page, pages, wanted) =
                (top - 64 + (random >> 33) % 64, 1 + (random >> 50) % 5, 1 + (random >> 40) % 9);
            let end = (page + pages).min(top);
            regions.remove(page * P, end * P);
            if random >> 60 > 3 {
                regions.insert(anonymous(page, end));
            }
            let is_free = |start: &u64| regions.is_free(start * P, (start + wanted) * P);
            let expected = (top - 100..=top - wanted).rev().find(is_free);
            assert_eq!(regions.free_below(MMAP_TOP, P, wanted * P), expected.map(|start| start * P));
        }
    }
}
