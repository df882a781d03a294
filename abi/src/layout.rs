//! Addresses and sizes that more than one program must agree on.

/// A page, in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// End of user addresses.
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// Lowest address a program may map.
pub const USER_START: u64 = 0x1_0000;
/// A program finds the page of the clocks right behind its stack, and behind that page its vDSO, of one page.
pub const VDSO_OFFSET: u64 = PAGE_BYTES;
/// What lies behind the stack of a program.
pub const VDSO_BYTES: u64 = 2 * PAGE_BYTES;
/// Services are linked here.
pub const SERVICE_IMAGE: u64 = 0x40_0000;
/// A service's heap starts here; its size is `heap_bytes` of the system file.
pub const SERVICE_HEAP: u64 = 0x1_0000_0000;
/// A service's preserved memory (`keep_bytes` of the system file): the same pages in each incarnation.
pub const SERVICE_KEEP: u64 = 0x2_0000_0000;
/// Physical memory that vm maps for drivers (registers, DMA buffers) starts here.
pub const SERVICE_DEVICES: u64 = 0x3_0000_0000;
/// End of a service's stack; a gap page is below the stack.
pub const SERVICE_STACK_END: u64 = 0x4_0000_0000;
/// Size of a service's stack.
pub const SERVICE_STACK_BYTES: u64 = 256 * 1024;
/// A service finds the page of the clocks here; rs and vm, which the kernel starts, have none. It shares a page table with the stack.
pub const SERVICE_CLOCKS: u64 = SERVICE_STACK_END - 2 * SERVICE_STACK_BYTES;
/// The kernel maps the boot archive here, read-only, in rs only.
pub const RS_ARCHIVE: u64 = 0x10_0000_0000;
/// Heap the kernel gives to rs and to vm, which it starts itself from the archive. It is mapped before they run.
pub const BOOT_HEAP_BYTES: u64 = 2 << 20;
/// Limit of one copying kernel call, in bytes.
pub const MAX_COPY: u64 = 4 << 20;
/// Limit of the text of `Diag`, in bytes.
pub const MAX_DIAG: u64 = 1024;
/// Limit of address spaces.
pub const SPACES: usize = 1152;

/// Flags of `SpaceMap` and `SpaceProtect`. Readable always; writable and executable exclude each other (W^X): `EINVAL`.
/// (If a program requests both, vm maps the page writable until it is executed, then executable.)
pub mod map {
    /// Writable.
    pub const WRITE: u64 = 1;
    /// Executable.
    pub const EXECUTE: u64 = 2;
    /// `SpaceMap`: zeroes the frames first.
    pub const ZERO: u64 = 4;
    /// Not cached: device registers.
    pub const UNCACHED: u64 = 8;
    /// Not cached, and writes are combined and may be reordered: pixels.
    pub const COMBINED: u64 = 32;
    /// `SpaceProtect`: no access at all (PROT_NONE); the frames stay.
    pub const NONE: u64 = 16;
}

/// How a native program starts: `rdi` start kind, `rsi` and `rdx` address and length of its argument text, `r10` and `r8` start and
/// length of its heap, `r9` its endpoint, `rsp` end of its stack (16-byte aligned).
pub mod start_kind {
    /// The first incarnation.
    pub const FRESH: u64 = 0;
    /// The predecessor crashed, hung or was killed.
    pub const RESTARTED: u64 = 1;
    /// The predecessor was replaced by a new binary.
    pub const UPDATED: u64 = 2;
}
