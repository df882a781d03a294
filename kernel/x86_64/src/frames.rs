//! Who owns which frame: the pool of frames for page tables, and which frames vm may give to processes.
//!
//! The pool starts with what the kernel set aside at boot, grows by `Donate` and shrinks by `Reclaim`. Free frames are chained through
//! their first word. A bit for each frame says "RAM, and not the kernel's": what vm may map, fill and donate.

use crate::physical;
use abi::{layout::PAGE_BYTES, privilege::MemoryRange};
use kernel_boot::MemoryMap;

/// Free frames that the pool keeps: tables for some more processes.
const KEPT: u64 = 64;

/// The frames of the machine.
pub struct Frames {
    usable: MemoryMap,
    /// One bit a frame, set: RAM outside the kernel.
    user: &'static mut [u64],
    first_free: u64,
    free: u64,
    total: u64,
    boot_bytes: u64,
}

impl Frames {
    /// No frames.
    pub const fn new() -> Self {
        Frames { usable: MemoryMap::EMPTY, user: &mut [], first_free: 0, free: 0, total: 0, boot_bytes: 0 }
    }

    /// Takes the bitmap and `pool_frames` frames for page tables out of `free`. `usable`: all RAM that the boot loader reported.
    pub fn start(&mut self, usable: MemoryMap, free: &mut MemoryMap, pool_frames: u64) {
        let words = (usable.end() / PAGE_BYTES).div_ceil(64);
        let bitmap = free.take((words * 8).div_ceil(PAGE_BYTES), u64::MAX).expect("no memory for the frame table");
        // SAFETY: just taken out of the free RAM, which the direct map covers; zeros are valid words.
        self.user = unsafe {
            physical::pointer::<u64>(bitmap).write_bytes(0, words as usize);
            core::slice::from_raw_parts_mut(physical::pointer(bitmap), words as usize)
        };
        self.usable = usable;
        for _ in 0..pool_frames {
            let Some(frame) = free.take(1, u64::MAX) else { panic!("no memory for the pool of page-table frames") };
            self.push(frame);
        }
    }

    /// From now on these frames are the processes'.
    pub fn give_to_user(&mut self, range: MemoryRange) {
        for frame in range.start / PAGE_BYTES..(range.start + range.bytes) / PAGE_BYTES {
            self.set_user(frame, true);
        }
    }

    /// Is the frame RAM that does not belong to the kernel?
    #[inline]
    pub fn is_user_ram(&self, frame: u64) -> bool {
        let number = frame / PAGE_BYTES;
        self.user.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// May a process have this frame: RAM outside the kernel, or no RAM at all (device registers, firmware tables)?
    pub fn may_map(&self, frame: u64) -> bool {
        let has_it = |range: &MemoryRange| range.start <= frame && frame - range.start < range.bytes;
        self.is_user_ram(frame) || !self.usable.ranges().iter().any(has_it)
    }

    /// A frame for a page table, filled with zeros.
    pub fn take(&mut self) -> Option<u64> {
        let frame = self.pop()?;
        // SAFETY: it belongs to nobody else.
        unsafe { physical::zero_frame(frame) };
        Some(frame)
    }

    /// A frame that the pool can spare leaves it: it is the processes' again.
    pub fn reclaim(&mut self) -> Option<u64> {
        let frame = if self.free > KEPT { self.pop()? } else { return None };
        self.total -= 1;
        self.set_user(frame / PAGE_BYTES, true);
        Some(frame)
    }

    /// A page-table frame is not used any more.
    pub fn give_back(&mut self, frame: u64) {
        // SAFETY: the frame is the kernel's and no table points to it any more.
        unsafe { physical::pointer::<u64>(frame).write(self.first_free) };
        self.first_free = frame;
        self.free += 1;
    }

    /// Puts user frames into the pool; false when one of them is not RAM outside the kernel.
    pub fn donate(&mut self, start: u64, pages: u64) -> bool {
        let frames = (0..pages).map(|page| start + page * PAGE_BYTES);
        if !frames.clone().all(|frame| self.is_user_ram(frame)) {
            return false;
        }
        for frame in frames {
            self.set_user(frame / PAGE_BYTES, false);
            self.push(frame);
        }
        true
    }

    /// Returns the number of free frames of the pool.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Booting is over: `bytes` were taken for the kernel's tables, page-table pool included.
    pub fn end_of_boot(&mut self, bytes: u64) {
        self.boot_bytes = bytes - self.total * PAGE_BYTES;
    }

    /// Returns the bytes that the kernel took at boot, without its image, and those of page tables.
    pub fn kernel_bytes(&self) -> u64 {
        self.boot_bytes + (self.total - self.free) * PAGE_BYTES
    }

    /// Bytes of RAM the boot loader reported.
    pub fn usable_bytes(&self) -> u64 {
        self.usable.total_bytes()
    }

    fn pop(&mut self) -> Option<u64> {
        let frame = Some(self.first_free).filter(|frame| *frame != 0)?;
        // SAFETY: a free frame of the pool belongs to nobody else; its first word is the chain.
        self.first_free = unsafe { physical::pointer::<u64>(frame).read() };
        self.free -= 1;
        Some(frame)
    }

    fn push(&mut self, frame: u64) {
        self.give_back(frame);
        self.total += 1;
    }

    fn set_user(&mut self, number: u64, user: bool) {
        if let Some(word) = self.user.get_mut((number / 64) as usize) {
            let bit = 1 << (number % 64);
            *word = if user { *word | bit } else { *word & !bit };
        }
    }
}
