//! Block reads in flight, and which of them the current request misses.
//!
//! A request that needs an absent block starts a fetch and *misses*: it fails with `EAGAIN`, is rolled back, and runs again when the
//! block has [arrived](Arrival). So no request ever blocks half-way.
//!
//! A run of blocks that failed is fetched again block by block; the error of a single block is returned once, to the next request that
//! needs the block.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use crate::device::Fetch;

/// Number of failed runs that are remembered.
const MAX_FAILED: usize = 16;

/// Completion flag of a fetch. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Arrival(Rc<Cell<bool>>);

impl Arrival {
    /// Whether the fetch has completed or failed.
    pub fn has_come(&self) -> bool {
        self.0.get()
    }
}

struct Flight {
    blocks: Range<u64>,
    /// Blocks overwritten since the fetch began.
    outdated: Vec<u64>,
    fetch: Box<dyn Fetch>,
    arrival: Arrival,
}

/// The result of a fetch.
pub struct Landed {
    /// The blocks.
    pub blocks: Range<u64>,
    /// Their content, possibly followed by padding.
    pub content: Vec<u8>,
    /// Blocks overwritten since the fetch began: their content is stale.
    pub outdated: Vec<u64>,
}

/// All reads in flight of one cache.
#[derive(Default)]
pub struct Flights {
    list: Vec<Flight>,
    failed: Vec<Range<u64>>,
    missed: Option<Arrival>,
}

impl Flights {
    /// Whether the current request misses a block.
    pub fn has_missed(&self) -> bool {
        self.missed.is_some()
    }

    /// Returns the fetch that the current request misses, if any, and clears it for the next request.
    pub fn take_missed(&mut self) -> Option<Arrival> {
        self.missed.take()
    }

    /// Records that the current request misses `block`. Returns false if the block is not in flight.
    pub fn miss(&mut self, block: u64) -> bool {
        let flight = self.list.iter().find(|flight| flight.blocks.contains(&block));
        let Some(flight) = flight else { return false };
        self.missed.get_or_insert_with(|| flight.arrival.clone());
        true
    }

    /// Whether `block` is in flight.
    pub fn contains(&self, block: u64) -> bool {
        self.list.iter().any(|flight| flight.blocks.contains(&block))
    }

    /// Adds a fetch of these blocks.
    #[expect(clippy::disallowed_methods, reason = "one of each request to the driver: from the heap's reserve")]
    pub fn add(&mut self, blocks: Range<u64>, fetch: Box<dyn Fetch>) {
        self.list.push(Flight { blocks, outdated: Vec::new(), fetch, arrival: Arrival::default() });
    }

    /// Marks `block` as overwritten: the content that a fetch returns is stale.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "at most the blocks in flight: from the heap's reserve")]
    pub fn outdate(&mut self, block: u64) {
        for flight in &mut self.list {
            if flight.blocks.contains(&block) && !flight.outdated.contains(&block) {
                flight.outdated.push(block);
            }
        }
    }

    /// Whether `block` was part of a run that failed: it must be fetched alone.
    pub fn has_failed(&self, block: u64) -> bool {
        self.failed.iter().any(|blocks| blocks.contains(&block))
    }

    /// Whether the fetch of `block` alone failed. Clears the failure.
    pub fn take_failure(&mut self, block: u64) -> bool {
        let alone = self.failed.iter().position(|blocks| *blocks == (block..block + 1));
        alone.map(|at| self.failed.remove(at)).is_some()
    }

    /// Returns the next fetch that has completed; notes failed ones on the way.
    pub fn land(&mut self) -> Option<Landed> {
        let mut at = 0;
        while at < self.list.len() {
            let Some(result) = self.list[at].fetch.result() else {
                at += 1;
                continue;
            };
            let Flight { blocks, outdated, arrival, .. } = self.list.remove(at);
            arrival.0.set(true);
            match result {
                Ok(content) => return Some(Landed { blocks, content, outdated }),
                Err(_) => self.note_failure(blocks),
            }
        }
        None
    }

    #[expect(clippy::disallowed_methods, reason = "`MAX_FAILED`: from the heap's reserve")]
    fn note_failure(&mut self, blocks: Range<u64>) {
        if self.failed.len() == MAX_FAILED {
            self.failed.remove(0);
        }
        self.failed.push(blocks);
    }
}
