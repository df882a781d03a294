//! The vDSO and the page of the clocks, which every program shows: an object that vm holds for ever.
//!
//! Programs trust the page while its sequence is even (`abi::clock`). It is odd from before the real-time clock is set until the page tells
//! the new time, so nobody reads one time here and an older one by a call. A death leaves the sequence as it was told to programs, or was about to be.

use crate::memory::Memory;
use crate::memory::frames::Frame;
use crate::memory::kernel::{Kernel, PageBytes};
use crate::memory::object::ObjectId;
use abi::{Errno, clock::ClockPage, layout::PAGE_BYTES};

/// Page of the object with the clocks.
pub const CLOCK_PAGE: u64 = 0;
/// Page of the object with the image.
pub const IMAGE_PAGE: u64 = 1;

const _: () = assert!(vdso::IMAGE.len() <= PAGE_BYTES as usize);

/// Where both pages are, and the sequence of the clocks.
#[derive(Clone, Copy, Debug)]
pub struct Vdso {
    object: ObjectId,
    clocks: Frame,
    image: Frame,
    sequence: u64,
}

/// How the kernel computes its clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    /// The tick that is monotonic time 0.
    pub entry_tsc: u64,
    /// A factor for `abi::clock::scale`.
    pub ns_per_tick: u64,
    /// Real time less monotonic time.
    pub real_offset_ns: u64,
}

impl Vdso {
    /// The object and frames for two pages.
    pub fn new(object: ObjectId, [clocks, image]: [Frame; 2]) -> Vdso {
        Vdso { object, clocks, image, sequence: 1 }
    }
}

impl<K: Kernel> Memory<K> {
    /// The object of both pages, and the frame of the image.
    pub fn vdso_image(&self) -> (ObjectId, Frame) {
        (self.vdso.object, self.vdso.image)
    }

    /// The object of both pages, and the frame of the clocks.
    pub fn vdso_clocks(&self) -> (ObjectId, Frame) {
        (self.vdso.object, self.vdso.clocks)
    }

    /// Fills both pages.
    pub fn fill_vdso(&mut self) -> Result<(), Errno> {
        let Vdso { object, clocks, image, .. } = self.vdso;
        let mut page: PageBytes = [0; PAGE_BYTES as usize];
        page[..vdso::IMAGE.len()].copy_from_slice(vdso::IMAGE);
        self.kernel.write_frame(image, &page)?;
        if let Some(object) = self.objects.get_mut(object) {
            object.pages.own(CLOCK_PAGE, clocks, &mut self.frames);
            object.pages.own(IMAGE_PAGE, image, &mut self.frames);
        }
        self.change_clock(true)
    }

    /// The real-time clock is about to be set, or that is `done`.
    pub fn change_clock(&mut self, done: bool) -> Result<(), Errno> {
        self.vdso.sequence |= 1;
        self.show_clocks()?;
        if done {
            self.vdso.sequence += 1;
            self.show_clocks()?;
        }
        Ok(())
    }

    /// Writes the page of the clocks.
    pub fn show_clocks(&mut self) -> Result<(), Errno> {
        let Clocks { entry_tsc, ns_per_tick, real_offset_ns } = self.kernel.clocks()?;
        let mut page: PageBytes = [0; PAGE_BYTES as usize];
        let content = ClockPage::content(self.vdso.sequence, entry_tsc, ns_per_tick, real_offset_ns);
        page[..ClockPage::BYTES].copy_from_slice(&content);
        self.kernel.write_frame(self.vdso.clocks, &page)
    }
}
