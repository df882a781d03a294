//! The free physical memory: what the boot loader reports, minus what the kernel and the boot archive occupy.
//!
//! The kernel takes the frames it needs while it starts; the rest is vm's (`info::FREE_MEMORY`), and this list never changes again.
//! Invariants: ranges are page aligned, not empty and do not overlap.

use abi::{layout::PAGE_BYTES, privilege::MemoryRange};

/// Most ranges; a map with more pieces loses the rest.
pub const MAX_RANGES: usize = 64;

/// Memory below this belongs to the firmware; nobody gets it.
const LOW_MEMORY_END: u64 = 0x10_0000;

/// A list of free physical memory.
#[derive(Clone)]
pub struct MemoryMap {
    ranges: [MemoryRange; MAX_RANGES],
    count: usize,
}

impl MemoryMap {
    /// No memory.
    pub const EMPTY: MemoryMap = MemoryMap { ranges: [MemoryRange { start: 0, bytes: 0 }; MAX_RANGES], count: 0 };

    /// Returns the free ranges.
    pub fn ranges(&self) -> &[MemoryRange] {
        &self.ranges[..self.count]
    }

    /// Returns the bytes in all ranges.
    pub fn total_bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.bytes).sum()
    }

    /// Returns the end of the highest range.
    pub fn end(&self) -> u64 {
        self.ranges().iter().map(|range| range.start + range.bytes).max().unwrap_or(0)
    }

    /// Adds the whole pages of a usable range. The loader's ranges do not overlap; should they, the new one counts once.
    pub fn add(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes) & !(PAGE_BYTES - 1);
        // A range in the last page of the address space holds no whole page.
        let Some(start) = start.max(LOW_MEMORY_END).checked_next_multiple_of(PAGE_BYTES) else { return };
        if start < end {
            self.remove(start, end - start);
            self.push(start, end);
        }
    }

    /// Removes every page that `start .. start + bytes` touches.
    pub fn remove(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes).saturating_add(PAGE_BYTES - 1) & !(PAGE_BYTES - 1);
        let start = start & !(PAGE_BYTES - 1);
        let mut index = 0;
        while index < self.count {
            let range = self.ranges[index];
            let range_end = range.start + range.bytes;
            if range_end <= start || end <= range.start {
                index += 1;
                continue;
            }
            self.count -= 1;
            self.ranges[index] = self.ranges[self.count];
            self.push(range.start, start.max(range.start));
            self.push(end.min(range_end), range_end);
        }
    }

    /// Removes and returns `pages` contiguous frames, from the start of the first range that has them below `limit`.
    pub fn take(&mut self, pages: u64, limit: u64) -> Option<u64> {
        let bytes = pages * PAGE_BYTES;
        let fits = |range: &&MemoryRange| range.bytes >= bytes && range.start + bytes <= limit;
        let start = self.ranges().iter().find(fits)?.start;
        self.remove(start, bytes);
        Some(start)
    }

    fn push(&mut self, start: u64, end: u64) {
        if start < end && self.count < MAX_RANGES {
            self.ranges[self.count] = MemoryRange { start, bytes: end - start };
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(map: &MemoryMap) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = map.ranges().iter().map(|r| (r.start, r.start + r.bytes)).collect();
        all.sort();
        all
    }

    #[test]
    fn partial_pages_and_low_memory_are_left_out() {
        let mut map = MemoryMap::EMPTY;
        map.add(0, 0x9f000);
        map.add(0x10_0800, 0x2800);
        assert_eq!(sorted(&map), [(0x10_1000, 0x10_3000)]);
    }

    #[test]
    fn removing_from_the_middle_leaves_two_ranges() {
        let mut map = MemoryMap::EMPTY;
        map.add(0x20_0000, 0x10_0000);
        map.remove(0x24_0001, 1);
        assert_eq!(sorted(&map), [(0x20_0000, 0x24_0000), (0x24_1000, 0x30_0000)]);
    }

    #[test]
    fn overlapping_ranges_count_once() {
        let mut map = MemoryMap::EMPTY;
        map.add(0x20_0000, 0x2000);
        map.add(0x20_1000, 0x2000);
        assert_eq!(map.total_bytes(), 0x3000);
    }

    #[test]
    fn taken_frames_are_gone() {
        let mut map = MemoryMap::EMPTY;
        map.add(0x20_0000, 0x3000);
        assert_eq!(map.take(2, u64::MAX), Some(0x20_0000));
        assert_eq!(map.take(2, u64::MAX), None);
        assert_eq!(map.take(1, 0x20_2000), None);
        assert_eq!(map.take(1, u64::MAX), Some(0x20_2000));
        assert_eq!(map.total_bytes(), 0);
    }

    #[test]
    fn a_range_to_the_end_of_the_address_space_does_not_overflow() {
        let mut map = MemoryMap::EMPTY;
        map.add(u64::MAX - 0x1fff, 0x2000);
        map.remove(0, 0x1000);
        assert!(map.total_bytes() <= 0x2000);
    }
}
