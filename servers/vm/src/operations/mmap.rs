//! mmap, munmap and brk: regions come and go.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::object::ObjectId;
use crate::memory::pages::Page;
use crate::operations::fault::Access;
use crate::space::AddressSpace;
use crate::space::region::{Backing, MMAP_TOP, Purpose, Region, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END, USER_START},
};

const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_TYPE: u64 = 0xf;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_32BIT: u64 = 0x40;
const MAP_GROWSDOWN: u64 = 0x100;
const MAP_LOCKED: u64 = 0x2000;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_POPULATE: u64 = 0x8000;
const MAP_HUGETLB: u64 = 0x4_0000;
/// Flags that MAP_SHARED_VALIDATE admits: all that Linux has, but MAP_SYNC.
const MAP_VALID: u64 = 0x17_f9ff | 0x3f << 26;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

/// Addresses of MAP_32BIT end here.
const LOW_END: u64 = 1 << 31;
/// Pages that one call fills in advance at most: vm serves nobody else meanwhile. Faults do the rest.
const POPULATE_PAGES: u64 = 4096;

/// `bytes` rounded up to whole pages; `error` when there are none or too many.
pub fn whole_pages(bytes: u64, error: Errno) -> Result<u64, Errno> {
    bytes.checked_next_multiple_of(PAGE_BYTES).filter(|&bytes| bytes <= USER_END).ok_or(error)
}

/// The page-aligned range `address..address + bytes` of user addresses. `EINVAL`: not aligned; `error`: not user addresses.
pub fn user_range(address: u64, bytes: u64, error: Errno) -> Result<(u64, u64), Errno> {
    if !address.is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    let end = address.checked_add(whole_pages(bytes, error)?).filter(|&end| end <= USER_END);
    Ok((address, end.ok_or(error)?))
}

/// The arguments of mmap, checked as far as they can be without looking at memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// Wanted address, 0: any.
    address: u64,
    /// Length, whole pages.
    pub bytes: u64,
    rights: Rights,
    /// MAP_*.
    pub flags: u64,
    /// File descriptor, for vfs.
    pub descriptor: i32,
    /// Offset in the file.
    pub offset: u64,
}

impl MapRequest {
    /// From the arguments of the call.
    pub fn parse(words: &[u64; 7]) -> Result<MapRequest, Errno> {
        let [address, bytes, protection, flags, descriptor, offset, _] = *words;
        if !offset.is_multiple_of(PAGE_BYTES) || bytes == 0 {
            return Err(Errno::EINVAL);
        }
        let bytes = whole_pages(bytes, Errno::ENOMEM)?;
        if offset.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64) {
            return Err(Errno::EOVERFLOW);
        }
        let request = MapRequest {
            address,
            bytes,
            rights: Rights::from_linux(protection),
            flags,
            descriptor: descriptor as i32,
            offset,
        };
        request.check_flags().map(|()| request)
    }

    /// True when no file is involved.
    pub fn is_anonymous(&self) -> bool {
        self.flags & MAP_ANONYMOUS != 0
    }

    /// Flags and rights in one word, as `vm::NextFileMap` tells them: MAP_* in the low half, PROT_* in the high half.
    pub fn flags_word(&self) -> u64 {
        self.flags & u64::from(u32::MAX) | u64::from(self.rights.0) << 32
    }

    fn check_flags(&self) -> Result<(), Errno> {
        let kind = self.flags & MAP_TYPE;
        if kind == MAP_SHARED_VALIDATE && self.flags & u64::from(u32::MAX) & !MAP_VALID != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if !matches!(kind, MAP_SHARED | MAP_PRIVATE | MAP_SHARED_VALIDATE) {
            return Err(Errno::EINVAL);
        }
        if self.flags & MAP_HUGETLB != 0 {
            return Err(Errno::ENOMEM);
        }
        if self.is_fixed() && !self.address.is_multiple_of(PAGE_BYTES) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// True for a private mapping that may be written.
    pub fn wants_copies(&self) -> bool {
        !self.is_shared() && self.rights.has(Rights::WRITE)
    }

    fn is_shared(&self) -> bool {
        self.flags & MAP_TYPE != MAP_PRIVATE
    }

    fn is_fixed(&self) -> bool {
        self.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0
    }
}

impl AddressSpace {
    /// mmap of memory without a file, and the last step of mmap with one (`image`; `may_write`: the descriptor is open for
    /// writing). Returns the address.
    pub fn mmap<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        request: &MapRequest,
        image: Option<ObjectId>,
        may_write: bool,
    ) -> Result<u64, Errno> {
        self.regions.check_count()?;
        if image.is_none() && request.flags & MAP_NORESERVE == 0 {
            self.check_commit(memory, request)?;
        }
        let start = self.choose(request)?;
        let end = start + request.bytes;
        // A device has no copies.
        let is_copied = !request.is_shared() && !image.is_some_and(|image| memory.objects.is_window(image));
        let region = Region {
            shared: request.is_shared(),
            may_write: may_write && request.is_shared() || is_copied,
            grows_down: request.flags & MAP_GROWSDOWN != 0,
            locked: self.locks(request.flags & MAP_LOCKED != 0)?,
            ..Region::anonymous(start, end, request.rights)
        };
        self.check_new(&region)?;
        self.has_locked |= region.locked;
        self.remove(memory, start, end)?;
        match image {
            Some(image) => {
                let backing = Backing::Object(image, request.offset / PAGE_BYTES);
                self.add(memory, Region { backing, ..region });
            }
            None if region.shared => self.add_shared(memory, region)?,
            None => self.add(memory, region),
        }
        if request.flags & (MAP_POPULATE | MAP_LOCKED) != 0 {
            self.populate(memory, start, end);
        }
        Ok(start)
    }

    /// A region of shared memory without a file: the region alone keeps its object.
    fn add_shared<K: Kernel>(&mut self, memory: &mut Memory<K>, region: Region) -> Result<(), Errno> {
        let object = memory.objects.add_anonymous();
        self.add(memory, Region { backing: Backing::Object(object, 0), ..region });
        memory.objects.close(&mut memory.frames, object)
    }

    /// What cannot possibly be filled is refused at once.
    fn check_commit<K: Kernel>(&self, memory: &Memory<K>, request: &MapRequest) -> Result<(), Errno> {
        let most = memory.frames.total() as u64 * PAGE_BYTES;
        let may_fill = request.rights.has(Rights::WRITE);
        if may_fill && request.bytes > most { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    fn choose(&mut self, request: &MapRequest) -> Result<u64, Errno> {
        let address = request.address;
        if request.is_fixed() {
            return self.check_fixed(request);
        }
        let hint = address.checked_next_multiple_of(PAGE_BYTES).unwrap_or(0);
        let end = hint.saturating_add(request.bytes);
        if hint >= USER_START && end <= USER_END && self.regions.is_free(hint, end) {
            return Ok(hint);
        }
        let top = if request.flags & MAP_32BIT != 0 { LOW_END } else { self.regions.top() };
        self.free_range(request.bytes, top)
    }

    fn check_fixed(&self, request: &MapRequest) -> Result<u64, Errno> {
        let start = request.address;
        let end = start.checked_add(request.bytes).filter(|&end| end <= USER_END).ok_or(Errno::ENOMEM)?;
        if start < USER_START {
            return Err(Errno::EPERM);
        }
        if request.flags & MAP_FIXED_NOREPLACE != 0 && !self.regions.is_free(start, end) {
            return Err(Errno::EEXIST);
        }
        Ok(start)
    }

    /// Fills a range in advance, as far as that goes: what is missing comes by faults.
    pub fn populate<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64) {
        let end = end.min(start + POPULATE_PAGES * PAGE_BYTES);
        let mut address = start;
        while address < end {
            let Some(region) = self.regions.find(address) else { return };
            let is_there = self.pages.get(address / PAGE_BYTES) != Page::Absent;
            // What is shared is not copied, and should not count as changed.
            let write = region.rights.has(Rights::WRITE) && !region.shared;
            if !is_there && self.fault(memory, address, Access::data(write)).is_err() {
                return;
            }
            address += PAGE_BYTES;
        }
    }

    /// The address for a page that a service maps into a program.
    pub fn choose_page(&mut self) -> Result<u64, Errno> {
        self.free_range(PAGE_BYTES, self.regions.top())
    }

    /// Maps a page of zeros at the address that [`AddressSpace::choose_page`] has chosen.
    pub fn map_page<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64) -> Result<(), Errno> {
        self.regions.check_count()?;
        let region =
            Region { locked: self.locks_new, ..Region::anonymous(address, address + PAGE_BYTES, Rights::READ_WRITE) };
        self.check_new(&region)?;
        self.add(memory, region);
        Ok(())
    }

    /// munmap.
    pub fn munmap<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64, bytes: u64) -> Result<u64, Errno> {
        let (start, end) = user_range(address, bytes, Errno::EINVAL)?;
        if bytes == 0 {
            return Err(Errno::EINVAL);
        }
        self.regions.find(start);
        self.regions.check_cut(start, end)?;
        self.remove(memory, start, end).map(|()| 0)
    }

    /// brk: moves the end of the heap if that can be, and tells where it is.
    pub fn brk<K: Kernel>(&mut self, memory: &mut Memory<K>, wanted: u64) -> u64 {
        if wanted >= self.heap_start && self.move_heap_end(memory, wanted).is_ok() {
            self.heap_end = wanted;
        }
        self.heap_end
    }

    fn move_heap_end<K: Kernel>(&mut self, memory: &mut Memory<K>, wanted: u64) -> Result<(), Errno> {
        let start = self.heap_start;
        let old = start + whole_pages(self.heap_end - start, Errno::ENOMEM)?;
        let new = start + whole_pages(wanted - start, Errno::ENOMEM)?;
        if new < old {
            return self.remove(memory, new, old);
        }
        let most = memory.frames.total() as u64 * PAGE_BYTES;
        if new > MMAP_TOP || new - start > most || !self.regions.is_free(old, new) {
            return Err(Errno::ENOMEM);
        }
        if new > old {
            self.regions.check_count()?;
            let region = Region::anonymous(old, new, Rights::READ_WRITE);
            let region = Region { purpose: Purpose::Heap, locked: self.locks_new, ..region };
            self.check_new(&region)?;
            self.add(memory, region);
        }
        Ok(())
    }
}
