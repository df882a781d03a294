//! Reads of blocks that are in flight, and the requests that have missed them.
//!
//! A request that needs a block that is not here begins to fetch it and *misses*: it gets `EAGAIN`, is undone, and runs again when the
//! block has [arrived](Arrival). So no request ever waits in the middle of what it does.
//!
//! A run of blocks that cannot be read is tried again block by block; the error of a single block is told once, to the next request that
//! needs it.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use crate::device::Fetch;

/// Failed runs that are remembered.
const MOST_FAILED: usize = 16;

/// Tells whether a fetch has ended. Clones are of the same fetch.
#[derive(Clone, Debug, Default)]
pub struct Arrival(Rc<Cell<bool>>);

impl Arrival {
    /// Whether it has ended, well or not.
    pub fn has_come(&self) -> bool {
        self.0.get()
    }
}

struct Flight {
    blocks: Range<u64>,
    /// Blocks that were given another content meanwhile.
    outdated: Vec<u64>,
    fetch: Box<dyn Fetch>,
    arrival: Arrival,
}

/// What a fetch has brought.
pub struct Landed {
    /// The blocks.
    pub blocks: Range<u64>,
    /// Their content, and perhaps more bytes that mean nothing.
    pub content: Vec<u8>,
    /// Blocks whose content is no longer true.
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
    /// Whether the present request has missed a block.
    pub fn has_missed(&self) -> bool {
        self.missed.is_some()
    }

    /// What the present request has to wait for, if it has missed a block; the next request has missed none.
    pub fn take_missed(&mut self) -> Option<Arrival> {
        self.missed.take()
    }

    /// Notes that the present request has missed `block`. False when the block is not in flight.
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
    pub fn add(&mut self, blocks: Range<u64>, fetch: Box<dyn Fetch>) {
        self.list.push(Flight { blocks, outdated: Vec::new(), fetch, arrival: Arrival::default() });
    }

    /// `block` has another content now than the device.
    #[inline]
    pub fn outdate(&mut self, block: u64) {
        for flight in &mut self.list {
            if flight.blocks.contains(&block) {
                flight.outdated.push(block);
            }
        }
    }

    /// Whether `block` was part of a run that could not be read: it is to be fetched alone.
    pub fn has_failed(&self, block: u64) -> bool {
        self.failed.iter().any(|blocks| blocks.contains(&block))
    }

    /// Whether `block` alone could not be read. Said once.
    pub fn take_failure(&mut self, block: u64) -> bool {
        let alone = self.failed.iter().position(|blocks| *blocks == (block..block + 1));
        alone.map(|at| self.failed.remove(at)).is_some()
    }

    /// A fetch that has ended well since this was asked last.
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

    fn note_failure(&mut self, blocks: Range<u64>) {
        if self.failed.len() == MOST_FAILED {
            self.failed.remove(0);
        }
        self.failed.push(blocks);
    }
}
