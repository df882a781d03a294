//! Windows: memory of devices that programs show. The content of an object, as files are, so that fork, munmap, mremap, exec and exit
//! need nothing of their own for it; but its frames are not vm's, so nothing is counted, copied, written back or freed.
//!
//! A window is lost when its driver may no longer have the memory; then its pages are gone from all programs, for good.
//! Neighbours: `object`; `operations::windows`, which makes and loses them; `operations::fault`, which maps them.

use crate::memory::frames::{Frame, Run};

/// A range of physical memory as a file is mapped: from page `first_page` of the file on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Slot of the driver to whose device the memory belongs.
    pub slot: usize,
    /// The memory.
    pub run: Run,
    /// Page of the file that its first frame is.
    pub first_page: u64,
    /// How the processor reaches it: `layout::map::COMBINED`, `UNCACHED` or 0.
    pub caching: u64,
    /// The driver may no longer have it.
    pub is_lost: bool,
}

impl Window {
    /// The pages of the file around `index`, within `first..end`, with their frames. `None`: there is nothing at `index`.
    pub fn around(&self, index: u64, first: u64, end: u64) -> Option<(u64, Run)> {
        let until = self.first_page + self.run.frames;
        if self.is_lost || !(self.first_page..until).contains(&index) {
            return None;
        }
        let (first, end) = (first.max(self.first_page), end.min(until));
        Some((first, Run { first: self.run.first.plus(first - self.first_page), frames: end - first }))
    }

    /// The frame of a page of the file.
    #[cfg(test)]
    pub fn frame(&self, index: u64) -> Option<Frame> {
        self.around(index, index, index + 1).map(|(_, run)| run.first)
    }

    /// The addresses of its memory.
    pub fn bytes(&self) -> (u64, u64) {
        (Frame::address(self.run.first), self.run.frames * abi::layout::PAGE_BYTES)
    }
}
