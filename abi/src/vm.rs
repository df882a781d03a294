//! The protocol of vm, the memory server: frames, address spaces, page faults, mmap, images of executables.
//! Routed to vm are the Linux calls brk, mmap, munmap, mprotect, mremap, madvise, msync, mincore, mlock and relatives.
//! vm never blocks on another process, so every process may wait for it.

use crate::{Endpoint, GrantId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

protocol! {
    /// Memory. Faults come from the kernel (`kernel::Fault`, `kernel::CopyFault`); callers of the others as noted.
    pub "vm" = 1;
    /// rs: builds the address space of a new service (registers are rs's to set) from the ELF file in the grant: segments, stack, heap of
    /// `heap_bytes` (filled on demand), preserved memory of `keep_bytes` (zero at first, then the same pages for each incarnation in this
    /// slot), and copies the argument text from the grant behind the image. All memory of a predecessor in the slot but the preserved memory is freed.
    /// Returns entry, address of the arguments, end of the stack. `ENOEXEC`, `ENOMEM`.
    Spawn = 1 { process: Endpoint, grant: GrantId, image_bytes: u64, argument_bytes: u64, heap_bytes: u64, keep_bytes: u64 }
        -> { entry: u64, arguments: u64, stack_end: u64 }
    /// pm: gives `child` a copy-on-write copy of `parent`'s memory, or (`share`) the same memory (vfork, threads). `pid`: id of the
    /// process that the child is or belongs to.
    Fork = 2 { parent: Endpoint, child: Endpoint, share: bool, pid: u64 }
    /// pm, rs: the process has ended; frees its memory unless another process shares it. Returns what `MemoryUse` would have, and
    /// so once more if the program that has ended last is named again. `ESRCH`.
    Exit = 3 { process: Endpoint } -> { faults: u64, peak_bytes: u64 }
    /// pm: replaces the memory of `process` by the image (and interpreter image, 0 = none) and a fresh stack of at most `stack_bytes`.
    /// On failure nothing has changed. `ENOEXEC`, `ENOMEM`. `phdr`: address of the program headers in memory;
    /// `interpreter_base`: 0 without interpreter; `start`: where to jump to (the interpreter's entry if there is one). `seed`: a random
    /// number that decides where stack, mappings, heap and position-independent programs begin; 0: at fixed addresses.
    Exec = 4 { process: Endpoint, image: u64, interpreter: u64, stack_bytes: u64, seed: u64 }
        -> { start: u64, entry: u64, phdr: u64, phdr_count: u64, interpreter_base: u64, stack_end: u64 }
    /// vfs: returns the image (cached pages) of this file, an empty one if there was none. `version` changes with the content: an image of
    /// an older version is discarded. Unmapped images are evicted when memory is short. `has_name`: `FileName` need not be told.
    ImageOpen = 5 { device: u64, inode: u64, version: u64, bytes: u64 } -> { image: u64, has_name: bool }
    /// vfs: returns the first missing range of the image within `offset .. offset + bytes`. Word 0 of the reply: its length in bytes (0: nothing is missing).
    ImageMissing = 6 { image: u64, offset: u64, bytes: u64 } -> { missing_offset: u64 }
    /// vfs: fills a range of the image from the grant. The offset is page-aligned, the length a multiple of the page except at the end of the file.
    ImageFill = 7 { image: u64, offset: u64, grant: GrantId, bytes: u64 }
    /// vfs: releases an image that it opened.
    ImageClose = 8 { image: u64 }
    /// vfs: the content of this file has changed or it was deleted: its image is not used for later mappings. `gone`: the file is freed, and
    /// another one may get its number; inode `ALL_INODES`: so it is with all files of the device. Returns whether images of it are in use.
    ImageForget = 9 { device: u64, inode: u64, gone: bool } -> { in_use: bool }
    /// vfs, after a notification from vm: returns the next mmap of a file, whose program blocks in vm. `ENOENT`: none left.
    NextFileMap = 10 { } -> { process: Endpoint, descriptor: i32, offset: u64, bytes: u64, flags: u64 }
    /// vfs: completes a file mapping with the image or shared file, loaded in the range, or with an `error` for the program. vm maps it
    /// and replies to the program. `may_write`: the descriptor is open for writing, so a shared mapping may become writable later.
    FileMapDone = 11 { process: Endpoint, image: u64, error: i32, may_write: bool }
    /// Drivers: maps physical memory of their privileges into the caller. `flags`: `layout::map::WRITE`, `UNCACHED`, `COMBINED`. Returns the address.
    /// `EPERM`: outside the privileges.
    MapPhysical = 12 { physical: u64, bytes: u64, flags: u64 } -> { address: u64 }
    /// Drivers: allocates physically contiguous memory for DMA and maps it into the caller. `flags`: `layout::map::ZERO` clears it, else it
    /// may be a predecessor's, as that left it; `layout::map::UNCACHED`. Returns its address and physical address.
    /// `EPERM`: more than `SetRights` allows, all incarnations in the slot together; `ENOMEM`.
    AllocateDma = 13 { bytes: u64, flags: u64 } -> { address: u64, physical: u64 }
    /// Any service: returns the bytes that are total, free, cached (images) and used by vm itself.
    MemoryInfo = 14 { } -> { total: u64, free: u64, cached: u64, own: u64 }
    /// Services with `inspects_memory`: returns size and resident bytes of a process.
    ProcessMemory = 15 { process: Endpoint } -> { virtual_bytes: u64, resident_bytes: u64, data_bytes: u64, stack_bytes: u64, faults: u64, peak_bytes: u64 }
    /// Services with `inspects_memory`: copies `MapRecord`s of a process into the grant, starting with region `first`. Word 0 of the reply: bytes copied.
    Maps = 16 { process: Endpoint, first: u64, grant: GrantId, bytes: u64 }
    /// rs: as `Spawn`, but `process` inherits the memory of its predecessor in the slot; only the read-only segments, the arguments and
    /// the stack are fresh. `ESRCH`: no predecessor; `ENOEXEC`: not the predecessor's image.
    Renew = 17 { process: Endpoint, grant: GrantId, image_bytes: u64, argument_bytes: u64 }
        -> { entry: u64, arguments: u64, stack_end: u64 }
    /// vfs: returns the shared file, the one object behind all shared mappings of a file, an empty one if there was none. vfs holds it
    /// until `SharedClose`. `ImageMissing`, `ImageFill` and `FileMapDone` accept it in place of an image.
    SharedOpen = 18 { device: u64, inode: u64, bytes: u64 } -> { object: u64, has_name: bool }
    /// vfs: copies the first run of dirty pages within `offset .. end`, at most `bytes` bytes, into the grant, and write-protects them to
    /// see later changes. The pages stay dirty until `SharedWritten`. Word 0 of the reply: bytes (0: no dirty page); then the offset.
    SharedTake = 19 { object: u64, offset: u64, end: u64, grant: GrantId, bytes: u64 } -> { offset: u64 }
    /// vfs: the dirty pages that `SharedTake` copied are written to the file: they are clean.
    SharedWritten = 20 { object: u64, offset: u64, bytes: u64 }
    /// vfs: copies what a write(2) has put into the file from the grant to the shared file; the file is `size` bytes long.
    SharedUpdate = 21 { object: u64, offset: u64, grant: GrantId, bytes: u64, size: u64 }
    /// vfs: the file was truncated or extended to this size. Pages beyond the end are unmapped, in programs too.
    SharedResize = 22 { object: u64, bytes: u64 }
    /// vfs: releases a shared file. `EBUSY`: it is mapped, or it has dirty pages and `lose` is not set.
    SharedClose = 23 { object: u64, lose: bool }
    /// vfs, after a notification from vm: returns a shared file whose last mapping is gone. `ENOENT`: none left.
    NextUnmapped = 24 { } -> { object: u64 }
    /// vfs, after its restart: returns the shared file after this one in vm's order, 0: the first. `ENOENT`: none left.
    NextShared = 25 { after: u64 } -> { object: u64, device: u64, inode: u64 }
    /// vfs, after a notification from vm: returns a file for whose write-back a program waits in msync. `ENOENT`: none left.
    NextSync = 26 { } -> { process: Endpoint, object: u64 }
    /// vfs: completes an msync, with 0 or an `error`.
    SyncDone = 27 { process: Endpoint, error: i32 }
    /// rs, before `Spawn`: rights of the incarnations in the slot of `process`, from the system file: how much memory for DMA they may have
    /// (`dma_bytes`), and whether they may ask for the memory of other processes (`inspects_memory`). Until then: none.
    SetRights = 28 { process: Endpoint, dma_bytes: u64, inspects_memory: bool }
    /// pci: returns block number `index` of the DMA memory that belongs to `slot`, whichever incarnation allocated it. A block is never
    /// freed. `ENOENT`: there are no more.
    DmaBlock = 29 { slot: u64, index: u64 } -> { physical: u64, bytes: u64 }
    /// Any service: frees whole pages of the caller's heap or preserved memory; they read as zeros, and take memory again when they are
    /// touched. `EINVAL`: no whole pages, or not within one of the two.
    Discard = 30 { address: u64, bytes: u64 }
    /// pm: maps the System V segment with this number of pm's into `process` and returns its address. `address`: 0 for any. `flags`:
    /// `ATTACH_*`. `call`: number of the process's system call; the same one once more returns the same address. `EINVAL`: the segment
    /// is gone, or the address is in use; `ENOMEM`.
    SegmentAttach = 31 { process: Endpoint, call: u64, segment: u64, pages: u64, address: u64, flags: u64 } -> { address: u64 }
    /// pm: nobody is to attach the segment any more who does not know its number: its memory is freed with its last mapping, or now.
    /// Returns how many mappings there are.
    SegmentRelease = 32 { segment: u64 } -> { attaches: u64 }
    /// pm: returns the mappings of a segment, its resident pages, when one came and went last (seconds since 1970), and the process that
    /// did this. `ENOENT`: it was never attached, or its memory is freed.
    SegmentStatus = 33 { segment: u64 }
        -> { attaches: u64, resident_pages: u64, attached_s: u64, detached_s: u64, process: u64 }
    /// pm: returns the first memory of a process within `from .. end` that is present: what was never touched is not. `ENOENT`: none.
    NextPresent = 34 { process: Endpoint, from: u64, end: u64 } -> { start: u64, stop: u64 }
    /// pm: writes the grant to memory of a process that this may not write itself, within one page: the page becomes its own. `EFAULT`:
    /// nothing is mapped, or it is shared.
    Poke = 35 { process: Endpoint, address: u64, grant: GrantId, bytes: u64 }
    /// pm: what the memory of a process may have, in bytes; `u64::MAX`: no limit. What it has already stays. An exec keeps them.
    SetLimits = 36 { process: Endpoint, addresses: u64, data: u64, locked: u64, stack: u64 }
    /// vfs: completes a mapping of a character device with what `driver` has replied to `chardev::Map`. vm maps it and replies to the
    /// program, with `EIO` if the memory is not the driver's. `may_write`: the descriptor is open for writing.
    /// `EPERM`: it is neither in the privileges of `driver` nor DMA memory of its slot.
    DeviceMapDone = 37 { process: Endpoint, driver: Endpoint, physical: u64, caching: u64, may_write: bool }
    /// rs: the service in this slot stays down. What programs have mapped of its device's memory is taken from them (SIGBUS from now on).
    /// A successor keeps what is still in its privileges without this.
    DeviceLost = 38 { slot: u64 }
    /// Drivers: lets the service in `slot` map memory of the caller's own with `MapOffered`; a later offer takes the place of the first.
    /// `EPERM`: the memory is neither in the privileges of the caller nor its DMA memory; `EINVAL`.
    OfferMemory = 39 { slot: u64, physical: u64, bytes: u64, caching: u64 }
    /// Services: maps, for writing, what the service in slot `driver` offers to the caller. `ENOENT`: nothing.
    MapOffered = 40 { driver: u64 } -> { address: u64, bytes: u64 }
    /// vfs: the file was truncated or extended from `old_bytes` to `bytes`. Of all its images, old ones too, what lies beyond the end is
    /// unmapped, with the private copies that programs have of it; what is new in images of the old size reads as zeros; `old_bytes`
    /// `UNKNOWN_BYTES`: in all shorter ones. None is used for later mappings. Returns whether images of it are in use.
    ImageResize = 41 { device: u64, inode: u64, old_bytes: u64, bytes: u64 } -> { in_use: bool }
    /// pm: returns how many page faults a process has had, over its execs, and the most memory that it had resident.
    MemoryUse = 42 { process: Endpoint } -> { faults: u64, peak_bytes: u64 }
    /// pm: what a process, its children and the programs that they execute take from now on is charged to a container, which may have so many
    /// `pages`: anonymous and shared memory, and page tables. Beyond that it is `ENOMEM`, also of a fault. `u64::MAX`: no limit.
    SetContainer = 43 { process: Endpoint, container: u64, pages: u64 }
    /// pm: returns the pages that are charged to a container.
    ContainerMemory = 44 { container: u64 } -> { pages: u64 }
    /// Drivers: returns whether any program maps memory of a driver in the caller's slot. A device that does not show its memory by itself is
    /// told of it as long as that is so.
    IsShown = 45 { } -> { is_shown: bool }
    /// vfs: reserves addresses of the caller for a cache of so many pages, all of them absent. When memory is short, vm frees pages of the
    /// cache without asking, and a copy from them fails with `EFAULT`. Returns the address of the first. `EEXIST`: the caller has a cache.
    CacheOpen = 46 { pages: u64 } -> { address: u64 }
    /// vfs: makes these pages of the cache present, at most `CACHE_BATCH`, and replaces those that images or shared files have, too; what is in those that were absent or replaced is undefined.
    /// `ENOMEM`: it would leave too little free memory.
    CacheTake = 47 { first: u64, pages: u64 }
    /// Services that set the real-time clock: it is about to be set, or that is `done`. In between programs ask the kernel for the time; then
    /// they find it in the page of the clocks again. The successor of one that died says that it is done.
    ClockChange = 48 { done: bool }
    /// vfs: the path that the file of an image or shared file was opened by, as `MappedName` tells it. `EEXIST`: it has one, which it keeps;
    /// `ENAMETOOLONG`: more than `MAX_NAME_BYTES`.
    FileName = 49 { object: u64, grant: GrantId, bytes: u64 }
    /// Services with `inspects_memory`: copies the path of the file that is mapped at `address` into the grant. Word 0 of the reply: its length.
    /// `ENOENT`: none is, or its path is not known.
    MappedName = 50 { process: Endpoint, address: u64, grant: GrantId, bytes: u64 }
    /// vfs: puts pages of its cache into an image or shared file, where pages are missing, from the cache's page `first` on: both have the same frames from then on, until the cache's are
    /// taken anew (`CacheTake`). Offset and length as for `ImageFill`. What the last page has behind the end of the file is cleared. `EFAULT`: a page of the cache is gone; those before it are there.
    ImageShow = 51 { image: u64, offset: u64, first: u64, bytes: u64 }
    /// vfs: the other way round: puts pages of a shared file, from `offset` on, into the cache from its page `first` on, in place of what is there; at most `CACHE_BATCH` pages. Both have the
    /// same frames from then on, as after `ImageShow`. Returns two sets of these pages, the first page in the lowest bit: those that the shared file has, and those that read as zeros because the file has
    /// grown while it was mapped, but that nobody has made yet. `EINVAL`: no such shared file, or not the start of a page; otherwise as `CacheTake`.
    SharedShow = 52 { object: u64, offset: u64, first: u64, pages: u64 } -> { shown: u64, zeros: u64 }
    /// vfs, as a successor: these are the images that it holds, each as often as its number is in the grant, 64 bits each. What a predecessor held besides ends. A number that is no image's
    /// counts for nothing. `EINVAL`: more than `MAX_CLAIMS`; then nothing ends.
    ClaimImages = 53 { grant: GrantId, images: u64 }
    /// vfs: maps a page of zeros into `process`, which may read and write it, and returns its address. `call`: number of the process's
    /// system call; the same one once more returns the same address. `ENOMEM`.
    PageMap = 54 { process: Endpoint, call: u64 } -> { address: u64 }
    /// vfs: unmaps the page at this address of `process`, as munmap does, unless that was done for the system call with this number. `EINVAL`, `ENOMEM`.
    PageUnmap = 55 { process: Endpoint, call: u64, address: u64 }
}

/// `FileName`: longest path.
pub const MAX_NAME_BYTES: u64 = 1024;
/// `ImageForget`: every file of the device.
pub const ALL_INODES: u64 = u64::MAX;
/// `ImageResize`: the size that the file had is not known.
pub const UNKNOWN_BYTES: u64 = u64::MAX;

/// `CacheTake`: most pages of a request.
pub const CACHE_BATCH: u64 = 64;

/// Most numbers in one `ClaimImages`: program and interpreter of every thread.
pub const MAX_CLAIMS: u64 = 2 * crate::endpoint::SLOTS as u64;

/// `SegmentAttach`: for reading.
pub const ATTACH_READ: u64 = 1;
/// `SegmentAttach`: for writing.
pub const ATTACH_WRITE: u64 = 2;
/// `SegmentAttach`: for executing.
pub const ATTACH_EXECUTE: u64 = 4;
/// `SegmentAttach`: whatever is mapped there is replaced.
pub const ATTACH_REPLACE: u64 = 8;
/// `SegmentAttach`: the segment is made when there is none.
pub const ATTACH_MAKE: u64 = 16;

/// One region of an address space.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MapRecord {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Bytes that are present: what was never touched, or was discarded, is not.
    pub resident: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Inode, 0: anonymous.
    pub inode: u64,
    /// Device.
    pub device: u64,
    /// PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4, shared 8.
    pub protection: u32,
    /// 0 other, 1 heap, 2 stack, 3 page of the clocks, 4 vDSO.
    pub kind: u32,
}
