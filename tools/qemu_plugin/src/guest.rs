//! The guest's memory, seen from QEMU's: its physical memory is one range there, which the kernel's image tells.

use crate::places::Places;
use crate::qemu::Translated;
use abi::layout::PAGE_BYTES;
use kernel_core::Frame;
use profile::{Guest, KERNEL_BASE};
use std::ptr;
use zerocopy::IntoBytes;

/// Physical memory up to here is one range.
const MOST_BYTES: u64 = 2 << 30;
/// Of an entry of a page table: present, a large page, and the frame.
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// The memory of the guest.
pub struct Memory {
    /// Physical address 0, once code of the kernel has been seen.
    start: *const u8,
    bytes: u64,
    current_frame: u64,
    loaded: u64,
}

// SAFETY: QEMU's memory belongs to no thread; it is read by the one that executes the guest.
unsafe impl Send for Memory {}

impl Memory {
    /// Where it is is not known yet.
    pub fn new(places: &Places) -> Self {
        let Places { memory_bytes, current_frame, loaded, .. } = *places;
        Memory { start: ptr::null(), bytes: memory_bytes.min(MOST_BYTES), current_frame, loaded }
    }

    /// Learns where it is from a block of the kernel.
    pub fn learn(&mut self, block: &Translated) {
        let address = block.instructions.first().map_or(0, |first| first.address);
        if self.start.is_null() && !block.host.is_null() && address >= KERNEL_BASE {
            self.start = block.host.wrapping_sub((address - KERNEL_BASE) as usize);
        }
    }

    /// Copies physical memory; returns whether it is there.
    fn copy(&self, address: u64, to: &mut [u8]) -> bool {
        let is_there =
            !self.start.is_null() && address.checked_add(to.len() as u64).is_some_and(|end| end <= self.bytes);
        if is_there {
            // SAFETY: the range is the guest's memory, which QEMU keeps as long as the machine exists.
            unsafe { ptr::copy_nonoverlapping(self.start.add(address as usize), to.as_mut_ptr(), to.len()) };
        }
        is_there
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.copy(address, &mut word).then(|| u64::from_le_bytes(word))
    }

    /// A word of the kernel's image.
    fn kernel_word(&self, address: u64) -> Option<u64> {
        self.word(address.checked_sub(KERNEL_BASE)?)
    }

    /// The physical address of a user address in the loaded space.
    fn translate(&self, address: u64) -> Option<u64> {
        let mut table = self.kernel_word(self.loaded)? & FRAME;
        for level in (0..4).rev() {
            let index = address >> (12 + 9 * level) & 511;
            let entry = self.word(table + 8 * index).filter(|entry| entry & PRESENT != 0)?;
            if level > 0 && entry & LARGE != 0 {
                return None;
            }
            table = entry & FRAME;
        }
        Some(table + address % PAGE_BYTES)
    }
}

impl Guest for Memory {
    fn current(&self) -> Option<(u64, Frame)> {
        let at = self.kernel_word(self.current_frame)?;
        let mut frame = Frame::ZERO;
        self.copy(at.checked_sub(KERNEL_BASE)?, frame.as_mut_bytes()).then_some((at, frame))
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let from = address + done as u64;
            let length = (buffer.len() - done).min((PAGE_BYTES - from % PAGE_BYTES) as usize);
            let there = self.translate(from).is_some_and(|at| self.copy(at, &mut buffer[done..done + length]));
            if !there {
                break;
            }
            done += length;
        }
        done
    }
}
