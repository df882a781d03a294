//! What vm tells about memory: of the machine, and of one process.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::object::Content;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Purpose, Region, Rights};
use abi::{Errno, layout::PAGE_BYTES, vm::MapRecord};
use alloc::vec::Vec;
use sys::fallible;

/// Memory of one process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// All regions.
    pub all: u64,
    /// Pages that are present.
    pub resident: u64,
    /// Private writable regions but the stack.
    pub data: u64,
    /// The stack.
    pub stack: u64,
}

/// Bit of `MapRecord::protection` for shared regions.
const SHARED: u32 = 8;

impl AddressSpace {
    /// How large it is.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes { resident: self.pages.count() * PAGE_BYTES, ..Sizes::default() };
        for region in self.regions.iter() {
            let bytes = region.end - region.start;
            sizes.all += bytes;
            if region.purpose == Purpose::Stack {
                sizes.stack += bytes;
            } else if region.rights.has(Rights::WRITE) && !region.shared {
                sizes.data += bytes;
            }
        }
        sizes
    }

    /// Its regions from number `first` on, at most `most`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn records<K: Kernel>(&self, memory: &Memory<K>, first: u64, most: usize) -> Result<Vec<MapRecord>, Errno> {
        let regions = self.regions.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        fallible::collect(regions.take(most).map(|region| self.record(memory, region)))
    }

    fn record<K>(&self, memory: &Memory<K>, region: &Region) -> MapRecord {
        let mut record = MapRecord {
            start: region.start,
            end: region.end,
            resident: self.pages.count_in(region.start / PAGE_BYTES, region.end / PAGE_BYTES) * PAGE_BYTES,
            protection: u32::from(region.rights.0) | if region.shared { SHARED } else { 0 },
            kind: match region.purpose {
                Purpose::Other | Purpose::Segment => 0,
                Purpose::Heap => 1,
                Purpose::Stack => 2,
            },
            ..MapRecord::default()
        };
        if let Backing::Object(id, page) = region.backing {
            let (device, inode) = match memory.objects.get(id).map(|object| object.content) {
                Some(Content::File { file, .. } | Content::Shared { file, .. }) => (file.device, file.inode),
                Some(Content::Segment { number, .. }) => (0, number),
                Some(Content::Anonymous) | None => return record,
            };
            record = MapRecord { offset: page * PAGE_BYTES, inode, device, ..record };
        }
        record
    }
}
