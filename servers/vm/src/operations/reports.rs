//! What vm tells about memory: of the machine, and of one process.

use crate::memory::Memory;
use crate::memory::kernel::{Kernel, Source};
use crate::memory::object::{Content, Object};
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

    /// The first memory within `start..end` that is present, in this space or in what it shows, but for memory of devices.
    pub fn next_present<K>(&self, memory: &Memory<K>, start: u64, end: u64) -> Option<(u64, u64)> {
        let pages = |start: u64, end: u64| (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let is_memory = |region: &&Region| region.window(memory).is_none();
        self.regions.overlapping(start, end).filter(is_memory).find_map(|region| {
            let (first, stop) = pages(start.max(region.start), end.min(region.end));
            let own = self.pages.stretch(first, stop);
            let shown = region.object_page(first).and_then(|(id, index)| {
                let (from, to) = memory.objects.get(id)?.pages.stretch(index, index + (stop - first))?;
                Some((from - index + first, to - index + first))
            });
            let (from, to) = [own, shown].into_iter().flatten().min()?;
            Some((from * PAGE_BYTES, to * PAGE_BYTES))
        })
    }

    /// Its regions from number `first` on, at most `most`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn records<K: Kernel>(&self, memory: &Memory<K>, first: u64, most: usize) -> Result<Vec<MapRecord>, Errno> {
        let regions = self.regions.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
        fallible::collect(regions.take(most).map(|region| self.record(memory, region)))
    }

    /// Copies the path of the file that is mapped at `address` into a grant. Returns its length. `ENOENT`: it has none.
    pub fn write_mapped_name<K: Kernel>(
        &self,
        memory: &mut Memory<K>,
        address: u64,
        to: Source,
        most: u64,
    ) -> Result<u64, Errno> {
        let region = self.regions.overlapping(address, address + 1).next().ok_or(Errno::ENOENT)?;
        let Backing::Object(id, _) = region.backing else { return Err(Errno::ENOENT) };
        let name = memory.objects.get(id).and_then(Object::name).ok_or(Errno::ENOENT)?;
        let name = &name[..name.len().min(most as usize)];
        memory.kernel.write_grant(to, name).map(|()| name.len() as u64)
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
                Purpose::Clocks => 3,
                Purpose::Vdso => 4,
            },
            ..MapRecord::default()
        };
        if let Backing::Object(id, page) = region.backing {
            let (device, inode) = match memory.objects.get(id).map(|object| object.content) {
                Some(Content::File { file, .. } | Content::Shared { file, .. }) => (file.device, file.inode),
                Some(Content::Segment { number, .. }) => (0, number),
                Some(Content::Anonymous | Content::Window(_) | Content::Cache { .. }) | None => return record,
            };
            record = MapRecord { offset: page * PAGE_BYTES, inode, device, ..record };
        }
        record
    }
}
