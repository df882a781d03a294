//! The kernel's own page tables, and how any table is read and written.
//!
//! Four levels of 512 entries. The kernel's half (direct map, image, device registers) is complete before the first process
//! exists and never changes, so every address space shares it by copying two entries of its top level. The image is W^X in both
//! places where it is mapped; only its text can be executed.

use crate::{physical, physical::FRAME_WORDS, physical::KERNEL_BASE};
use abi::layout::PAGE_BYTES;
use kernel_boot::MemoryMap;

/// Bits of an entry.
pub mod bit {
    #![allow(missing_docs)]
    pub const PRESENT: u64 = 1;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    /// Entry 1 of the page attribute table (`entry::start`): write combining.
    pub const COMBINED: u64 = 1 << 3;
    /// Entry 3: not cached. Its bits include those of `COMBINED`.
    pub const UNCACHED: u64 = 3 << 3;
    pub const ACCESSED: u64 = 1 << 5;
    pub const DIRTY: u64 = 1 << 6;
    pub const LARGE: u64 = 1 << 7;
    pub const GLOBAL: u64 = 1 << 8;
    /// Ours: the entry keeps its frame though nobody may touch it now (`layout::map::NONE`).
    pub const KEPT: u64 = 1 << 9;
    /// Ours: the page is present, and `MEMORY`: the kernel can copy from and to it.
    pub const COPYABLE: u64 = 1 << 10;
    /// Ours: the frame is RAM that processes may have, cached, so that the direct map has it too. Device registers and pixels are not,
    /// whatever their driver says.
    pub const MEMORY: u64 = COPYABLE << 1;
    pub const NO_EXECUTE: u64 = 1 << 63;
    /// The frame's address.
    pub const FRAME: u64 = 0x000f_ffff_ffff_f000;
}
use bit::*;

/// A page of a table's second level.
pub const LARGE_PAGE_BYTES: u64 = 2 << 20;
/// Device registers of the kernel's own devices are mapped from here on.
const DEVICE_WINDOW: u64 = 0xffff_ffff_c000_0000;
/// Boot-time tables come from memory which the boot loader's tables reach.
const EARLY_LIMIT: u64 = 4 << 30;
/// Where the kernel's half begins in a table of the top level, in bytes.
const KERNEL_HALF: u64 = PAGE_BYTES / 2;

unsafe extern "C" {
    static __text_start: u8;
    static __rodata_start: u8;
    static __data_start: u8;
    static __image_end: u8;
    static kernel_stack_guard: u8;
}

/// Index of `address` in a table of `level` (3 is the top, 0 holds pages).
pub fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize & (FRAME_WORDS - 1)
}

/// Reads an entry.
pub fn read(table: u64, index: usize) -> u64 {
    debug_assert!(index < FRAME_WORDS);
    // SAFETY: `table` is a page-table frame, which is RAM within the direct map.
    unsafe { *physical::pointer::<u64>(table).add(index) }
}

/// Writes an entry.
pub fn write(table: u64, index: usize, entry: u64) {
    debug_assert!(index < FRAME_WORDS);
    // SAFETY: as `read`; callers write only tables of user spaces or, at boot, the kernel's own.
    unsafe { *physical::pointer::<u64>(table).add(index) = entry }
}

/// First byte and end of the image, physical.
pub fn image_range() -> (u64, u64) {
    (physical::of_image(&raw const __text_start), physical::of_image(&raw const __image_end))
}

/// Builds the kernel's half of the address space.
pub struct KernelTables {
    root: u64,
    next_device: u64,
}

impl KernelTables {
    /// Maps all RAM up to `ram_end` and the image, with frames taken from `memory`.
    pub fn new(memory: &mut MemoryMap, ram_end: u64) -> Self {
        let mut tables = KernelTables { root: early_frame(memory), next_device: DEVICE_WINDOW };
        tables.map_ram(memory, ram_end);
        tables.map_image(memory);
        tables
    }

    /// The top-level table.
    pub fn root(&self) -> u64 {
        self.root
    }

    fn map_ram(&mut self, memory: &mut MemoryMap, ram_end: u64) {
        let (image_start, image_end) = image_range();
        for address in (0..ram_end).step_by(LARGE_PAGE_BYTES as usize) {
            let holds_image = address < image_end && image_start < address + LARGE_PAGE_BYTES;
            if holds_image {
                for frame in (address..address + LARGE_PAGE_BYTES).step_by(PAGE_BYTES as usize) {
                    let writable = if writable_alias(frame) { WRITE } else { 0 };
                    self.map(memory, frame + physical::DIRECT_MAP, 0, frame | writable | NO_EXECUTE);
                }
            } else {
                self.map(memory, address + physical::DIRECT_MAP, 1, address | WRITE | NO_EXECUTE | LARGE);
            }
        }
    }

    fn map_image(&mut self, memory: &mut MemoryMap) {
        let (start, end) = image_range();
        let text_end = physical::of_image(&raw const __rodata_start);
        let data = physical::of_image(&raw const __data_start);
        let guard = physical::of_image(&raw const kernel_stack_guard);
        for frame in (start..end).step_by(PAGE_BYTES as usize).filter(|&frame| frame != guard) {
            let rights = match frame {
                _ if frame < text_end => 0,
                _ if frame < data => NO_EXECUTE,
                _ => WRITE | NO_EXECUTE,
            };
            self.map(memory, frame + KERNEL_BASE, 0, frame | rights);
        }
    }

    /// Maps a page of device registers, uncached, and says where. Only before the first process exists.
    pub fn map_device(&mut self, memory: &mut MemoryMap, address: u64) -> u64 {
        let page = self.next_device;
        self.next_device += PAGE_BYTES;
        let frame = address & !(PAGE_BYTES - 1);
        self.map(memory, page, 0, frame | WRITE | NO_EXECUTE | UNCACHED);
        page + address % PAGE_BYTES
    }

    fn map(&mut self, memory: &mut MemoryMap, address: u64, leaf_level: u32, entry: u64) {
        let mut table = self.root;
        for level in (leaf_level + 1..=3).rev() {
            let at = index(address, level);
            if read(table, at) & PRESENT == 0 {
                write(table, at, early_frame(memory) | PRESENT | WRITE);
            }
            table = read(table, at) & FRAME;
        }
        write(table, index(address, leaf_level), entry | PRESENT | GLOBAL | ACCESSED | DIRTY);
    }
}

/// Copies the kernel's half into a new top-level table.
pub fn share_kernel_half(kernel_root: u64, root: u64) {
    // SAFETY: two frames of tables, of which nobody has a reference.
    unsafe { physical::copy(kernel_root + KERNEL_HALF, root + KERNEL_HALF, PAGE_BYTES - KERNEL_HALF) }
}

/// May the direct map write this frame? Not text and read-only data.
fn writable_alias(frame: u64) -> bool {
    let (start, _) = image_range();
    frame < start || frame >= physical::of_image(&raw const __data_start)
}

fn early_frame(memory: &mut MemoryMap) -> u64 {
    let Some(frame) = memory.take(1, EARLY_LIMIT) else { panic!("no memory for the kernel's page tables") };
    // SAFETY: the frame was free until now.
    unsafe { physical::zero_frame(frame) };
    frame
}
