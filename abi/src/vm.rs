//! The protocol of vm, the memory server: frames, address spaces, page faults, mmap, images of executables.
//! Routed to it are the Linux calls brk, mmap, munmap, mprotect, mremap, madvise, msync, mincore, mlock and relatives.
//! vm never blocks on anybody, so everybody may wait for it.

use crate::{Endpoint, GrantId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

protocol! {
    /// Memory. Faults come from the kernel (`kernel::Fault`, `kernel::CopyFault`); the rest from pm, rs, vfs, drivers and procfs as noted.
    pub "vm" = 1;
    /// rs: builds the address space of a new service (registers are rs's to set) from the ELF file in the grant: segments, stack, heap of
    /// `heap_bytes` (filled on demand), preserved memory of `keep_bytes` (zero at first, then the same pages for each incarnation in this
    /// slot), and copies the argument text from the grant behind the image. Everything of a predecessor in the slot is freed but the preserved memory.
    /// → entry, address of the arguments, stack end. `ENOEXEC`, `ENOMEM`.
    Spawn = 1 { process: Endpoint, grant: GrantId, image_bytes: u64, argument_bytes: u64, heap_bytes: u64, keep_bytes: u64 }
        -> { entry: u64, arguments: u64, stack_end: u64 }
    /// pm: gives `child` a copy-on-write copy of `parent`'s memory, or (`share`) the same memory (vfork, threads).
    Fork = 2 { parent: Endpoint, child: Endpoint, share: bool }
    /// pm, rs: the process is gone; frees its memory when nobody shares it.
    Exit = 3 { process: Endpoint }
    /// pm: replaces the memory of `process` by the image (and interpreter image, 0 = none) and a fresh stack of at most `stack_bytes`.
    /// Nothing has changed when it fails. `ENOEXEC`, `ENOMEM`. `phdr`: address of the program headers in memory;
    /// `interpreter_base`: 0 without interpreter; `start`: where to jump to (the interpreter's entry if there is one).
    Exec = 4 { process: Endpoint, image: u64, interpreter: u64, stack_bytes: u64 }
        -> { start: u64, entry: u64, phdr: u64, phdr_count: u64, interpreter_base: u64, stack_end: u64 }
    /// vfs: the image (cached pages) of this file, made empty if there is none. `version` changes whenever the content does: an old image is forgotten.
    /// → image, and in word 0 nothing. Images are dropped when memory is short and nobody maps them.
    ImageOpen = 5 { device: u64, inode: u64, version: u64, bytes: u64 } -> { image: u64 }
    /// vfs: the first stretch of the image within `offset .. offset + bytes` that is not there yet. Word 0: its length in bytes (0: all there).
    ImageMissing = 6 { image: u64, offset: u64, bytes: u64 } -> { missing_offset: u64 }
    /// vfs: fills a stretch of the image (offset page-aligned; bytes a multiple of the page but at the end of the file) from the grant.
    ImageFill = 7 { image: u64, offset: u64, grant: GrantId, bytes: u64 }
    /// vfs: done with an image it opened (drops vfs's hold).
    ImageClose = 8 { image: u64 }
    /// vfs: the content of this file has changed or it is gone: its image is for nobody new.
    ImageForget = 9 { device: u64, inode: u64 }
    /// vfs, after a notification from vm: the next mmap of a file. The program waits in vm. `ENOENT`: none left.
    NextFileMap = 10 { } -> { process: Endpoint, descriptor: i32, offset: u64, bytes: u64, flags: u64 }
    /// vfs: the answer: the image or shared file (loaded in that range), or in `error` an errno for the program. vm then maps it and answers the
    /// program. `may_write`: the descriptor is open for writing, so a shared mapping may become writable later.
    FileMapDone = 11 { process: Endpoint, image: u64, error: i32, may_write: bool }
    /// Drivers: maps physical memory of their privileges into the caller. `flags`: `layout::map`. → address. `EPERM` outside the privileges.
    MapPhysical = 12 { physical: u64, bytes: u64, flags: u64 } -> { address: u64 }
    /// Drivers: physically contiguous zeroed memory for DMA, mapped into the caller. → address, physical address.
    AllocateDma = 13 { bytes: u64 } -> { address: u64, physical: u64 }
    /// Anyone: total, free, cached (images) bytes and bytes vm itself uses.
    MemoryInfo = 14 { } -> { total: u64, free: u64, cached: u64, own: u64 }
    /// procfs, pm: size and resident bytes of a process.
    ProcessMemory = 15 { process: Endpoint } -> { virtual_bytes: u64, resident_bytes: u64, data_bytes: u64, stack_bytes: u64 }
    /// procfs: `MapRecord`s of a process into the grant, starting with the region `first`. → word 0: bytes written.
    Maps = 16 { process: Endpoint, first: u64, grant: GrantId, bytes: u64 }
    /// rs: as `Spawn`, but `process` gets the memory of its predecessor in the slot, in which only what the image has read-only and the
    /// arguments are written anew, and the stack is empty. The image is the predecessor's. `ESRCH`: there is none; `ENOEXEC`: another image.
    Renew = 17 { process: Endpoint, grant: GrantId, image_bytes: u64, argument_bytes: u64 }
        -> { entry: u64, arguments: u64, stack_end: u64 }
    /// vfs: the memory of a file that is mapped shared, held by vfs until `SharedClose`; one for each file, made empty if there is none.
    /// `ImageMissing`, `ImageFill` and `FileMapDone` take it as they take images. → the object.
    SharedOpen = 18 { device: u64, inode: u64, bytes: u64 } -> { object: u64 }
    /// vfs: copies the first pages within `offset .. end` that programs have changed into the grant, as many as `bytes` hold and follow each
    /// other; the next change of them is noticed again. They count as changed until `SharedWritten`. → word 0: bytes (0: there are none), offset.
    SharedTake = 19 { object: u64, offset: u64, end: u64, grant: GrantId, bytes: u64 } -> { offset: u64 }
    /// vfs: what it has taken there is in the file.
    SharedWritten = 20 { object: u64, offset: u64, bytes: u64 }
    /// vfs: somebody has written what is in the grant to the file, which is `size` bytes long now.
    SharedUpdate = 21 { object: u64, offset: u64, grant: GrantId, bytes: u64, size: u64 }
    /// vfs: the file is this long. Pages behind its end are gone, from programs too.
    SharedResize = 22 { object: u64, bytes: u64 }
    /// vfs: gives it up. `EBUSY`: it is mapped, or, unless `lose`, changed.
    SharedClose = 23 { object: u64, lose: bool }
    /// vfs, after a notification from vm: a shared file that nobody maps any more. `ENOENT`: none left.
    NextUnmapped = 24 { } -> { object: u64 }
    /// vfs, after its restart: the shared file after this one in vm's order, 0: the first. `ENOENT`: none left.
    NextShared = 25 { after: u64 } -> { object: u64, device: u64, inode: u64 }
    /// vfs, after a notification from vm: a program waits in msync until this file is written back. `ENOENT`: none left.
    NextSync = 26 { } -> { process: Endpoint, object: u64 }
    /// vfs: it is, or in `error` why not.
    SyncDone = 27 { process: Endpoint, error: i32 }
}

/// One region of an address space.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MapRecord {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Inode, 0: anonymous.
    pub inode: u64,
    /// Device.
    pub device: u64,
    /// PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4, shared 8.
    pub protection: u32,
    /// 0 other, 1 heap, 2 stack.
    pub kind: u32,
}
