//! What all address spaces share: the kernel, the frames, the objects; and which requests may take a frame when few are left.
//!
//! The last frames are reserved for the services on which all others depend. A program meets `ENOMEM` first (the larger it is, the
//! earlier, so that a hog and not its neighbour dies), then services, and what remains is for page tables.

use crate::memory::frames::{Frame, Frames, OWN, Payer, Run};
use crate::memory::kernel::{Kernel, PageBytes, Source};
use crate::memory::object::Objects;
use crate::memory::vdso::Vdso;
use abi::{
    Errno,
    layout::{PAGE_BYTES, SPACES, map},
};
use alloc::vec::Vec;
use sys::space::Space;

/// How many free frames somebody must leave, in the low half, and who pays for what he takes, above: so a payer is noticed by the comparison that
/// finds memory short, and nobody else pays for the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor(usize);

impl Floor {
    /// For page tables.
    pub const OWN: Floor = Floor::of(0);
    /// For services.
    pub const SERVICE: Floor = Floor::of(64);
    /// For programs of ordinary size.
    pub const PROGRAM: Floor = Floor::of(abi::limits::FREE_FRAMES);

    /// So many frames, and nobody pays.
    pub const fn of(frames: usize) -> Floor {
        Floor(frames)
    }

    /// The same with so many frames more.
    pub const fn raised_by(self, frames: usize) -> Floor {
        Floor(self.0 + frames)
    }

    /// The same for somebody who pays.
    pub const fn paid_by(self, payer: Payer) -> Floor {
        Floor(self.frames() | payer.to_bits() << PAYER_SHIFT)
    }

    const fn frames(self) -> usize {
        self.0 & ((1 << PAYER_SHIFT) - 1)
    }

    pub const fn payer(self) -> Payer {
        Payer::from_bits(self.0 >> PAYER_SHIFT)
    }
}

/// Where the payer begins in a [`Floor`].
const PAYER_SHIFT: u32 = 32;
/// Frames given to the pool of page tables at a time, when so many neighbours are free.
const DONATION: u64 = 16;
/// One page never needs more tables than this.
const TABLES_PER_PAGE: u32 = 4;
/// Kernel spaces kept for the next processes.
const MAX_SPARES: usize = 8;
/// Heap that a request may take without saying so.
const REQUEST_HEAP_BYTES: usize = 4 << 10;
/// Heap that requests may take between two looks at it.
const HEAP_CREDIT_BYTES: usize = 128 << 10;
/// The heap grows by this at least.
const HEAP_GROWTH_BYTES: usize = 512 << 10;

/// What all spaces share.
#[derive(Debug)]
pub struct Memory<K> {
    /// The kernel.
    pub kernel: K,
    /// All frames.
    pub frames: Frames,
    /// All objects.
    pub objects: Objects,
    /// What all programs read the clocks with.
    pub(super) vdso: Vdso,
    /// A frame of zeros, never mapped.
    zeros: Frame,
    /// Frames that have gone to page tables and vm's heap.
    own_frames: u64,
    /// Empty kernel spaces for reuse: they have their tables already.
    spares: Vec<Space>,
    /// Heap that is known to be free.
    heap_credit: usize,
    /// Bit = number of a kernel space that exists.
    created: [u64; SPACES.div_ceil(64)],
}

impl<K: Kernel> Memory<K> {
    /// Takes over the frames, `own_frames` of which vm uses already.
    pub fn new(mut kernel: K, mut frames: Frames, own_frames: u64) -> Result<Memory<K>, Errno> {
        let zeros = frames.take().ok_or(Errno::ENOMEM)?;
        kernel.write_frame(zeros, &[0; PAGE_BYTES as usize])?;
        frames.keep(Run { first: zeros, frames: 1 });
        let mut objects = Objects::default();
        let object = objects.add_anonymous();
        let mut page = || frames.take().ok_or(Errno::ENOMEM);
        let vdso = Vdso::new(object, [page()?, page()?]);
        let mut memory = Memory {
            kernel,
            frames,
            objects,
            vdso,
            zeros,
            own_frames: own_frames + 3,
            spares: Vec::new(),
            heap_credit: 0,
            created: [0; SPACES.div_ceil(64)],
        };
        memory.fill_vdso()?;
        Ok(memory)
    }

    /// Frames that vm itself and the page tables use.
    pub fn own_frames(&self) -> u64 {
        self.own_frames
    }

    /// Allocates a frame, leaving at least `floor` free ones. It is not zeroed.
    pub fn take(&mut self, floor: Floor) -> Result<Frame, Errno> {
        permit()?;
        if self.frames.free() <= floor.0 {
            return self.take_slowly(1, floor).map(|run| run.first);
        }
        self.frames.take().ok_or(Errno::ENOMEM)
    }

    /// Takes a frame and its free followers, at most `most`.
    pub fn take_some(&mut self, most: u64, floor: Floor) -> Result<Run, Errno> {
        permit()?;
        if self.frames.free() <= floor.0 {
            return self.take_slowly(most, floor);
        }
        let most = most.min((self.frames.free() - floor.0) as u64);
        self.frames.take_some(most).ok_or(Errno::ENOMEM)
    }

    /// Takes frames when memory is short, or for somebody who pays. `ENOMEM`: who pays has as much as it may, too.
    #[cold]
    fn take_slowly(&mut self, most: u64, floor: Floor) -> Result<Run, Errno> {
        let most = most.min(self.frames.left_for(floor.payer()));
        if most == 0 {
            return Err(Errno::ENOMEM);
        }
        self.drop_images(1, floor.frames())?;
        let most = most.min((self.frames.free() - floor.frames()) as u64);
        let run = self.frames.take_some(most).ok_or(Errno::ENOMEM)?;
        self.frames.charge(run, floor.payer());
        Ok(run)
    }

    /// Takes exactly `frames` neighbours, for a service.
    pub fn take_run(&mut self, frames: u64, floor: Floor) -> Result<Run, Errno> {
        self.make_room(usize::try_from(frames).map_err(|_| Errno::ENOMEM)?, floor)?;
        loop {
            if let Some(run) = self.frames.take_run(frames) {
                return Ok(run);
            }
            self.drop_image()?;
        }
    }

    /// `frames` neighbours, if that leaves plenty of free memory.
    pub fn take_spare_run(&mut self, frames: u64) -> Option<Run> {
        let plenty = self.frames.free() as u64 / 4;
        if frames <= plenty { self.frames.take_run(frames) } else { None }
    }

    /// Gives frames back that had one user.
    pub fn release_run(&mut self, run: Run) {
        run.iter().for_each(|frame| self.frames.release(frame));
    }

    /// A frame of zeros.
    pub fn take_zeroed(&mut self, floor: Floor) -> Result<Frame, Errno> {
        self.take_copy(self.zeros, floor)
    }

    /// A frame with a copy of `from`.
    pub fn take_copy(&mut self, from: Frame, floor: Floor) -> Result<Frame, Errno> {
        let frame = self.take(floor)?;
        self.kernel.copy_frame(frame, from).inspect_err(|_| self.frames.release(frame))?;
        Ok(frame)
    }

    /// Drops images until `wanted` frames can be taken. `ENOMEM`: even so too few are free.
    fn make_room(&mut self, wanted: usize, floor: Floor) -> Result<(), Errno> {
        permit()?;
        self.drop_images(wanted, floor.frames())
    }

    fn drop_images(&mut self, wanted: usize, floor: usize) -> Result<(), Errno> {
        let needed = wanted.saturating_add(floor);
        while self.frames.free() < needed {
            self.drop_image()?;
        }
        Ok(())
    }

    /// Frees some pages of vfs's cache, or an image when there are none.
    fn drop_image(&mut self) -> Result<(), Errno> {
        if self.drop_cached()? || self.objects.drop_oldest(&mut self.frames) { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// True when an emptied kernel space is worth keeping.
    pub fn wants_spare(&self) -> bool {
        self.spares.len() < MAX_SPARES
    }

    /// Keeps a kernel space in which nothing is mapped any more.
    #[expect(clippy::disallowed_methods, reason = "`MAX_SPARES`: from the heap's reserve")]
    pub fn keep_spare(&mut self, space: Space) {
        self.spares.push(space);
    }

    /// The spaces that are kept.
    #[cfg(test)]
    pub fn spares(&self) -> &[Space] {
        &self.spares
    }

    /// A kernel space in which nothing is mapped.
    pub fn create_space(&mut self) -> Result<Space, Errno> {
        if let Some(spare) = self.spares.pop() {
            return Ok(spare);
        }
        let mut created = Err(Errno::ENOMEM);
        let step = |kernel: &mut K, _| {
            created = kernel.create();
            match created {
                Err(Errno::ENOMEM) => Ok(0),
                Err(error) => Err(error),
                Ok(_) => Ok(1),
            }
        };
        self.with_tables(1, |_| Floor::OWN, step)?;
        if let Ok(Space(number)) = created
            && let Some(word) = self.created.get_mut(number as usize / 64)
        {
            *word |= 1 << (number % 64);
        }
        created
    }

    /// Destroys a kernel space that no thread uses.
    pub fn destroy_space(&mut self, space: Space) -> Result<(), Errno> {
        self.kernel.destroy(space)?;
        if let Some(word) = self.created.get_mut(space.0 as usize / 64) {
            *word &= !(1 << (space.0 % 64));
        }
        self.reclaim();
        Ok(())
    }

    /// Takes back the frames that page tables have left.
    fn reclaim(&mut self) {
        while let Ok(frame) = self.kernel.reclaim() {
            if self.frames.users(frame) == OWN {
                self.frames.unkeep(Run { first: frame, frames: 1 });
                self.own_frames -= 1;
            } else {
                self.frames.add(frame);
            }
        }
    }

    /// After a death: destroys kernel spaces that no table knows, and those kept for reuse.
    pub fn drop_unknown_spaces(&mut self, is_known: impl Fn(Space) -> bool) {
        self.spares.clear();
        for number in 0..SPACES as u64 {
            let exists = self.created[number as usize / 64] >> (number % 64) & 1 != 0;
            if exists && !is_known(Space(number)) {
                // One that was destroyed already is forgotten.
                let _ = self.kernel.destroy(Space(number));
                self.created[number as usize / 64] &= !(1 << (number % 64));
            }
        }
    }

    /// Maps frames, with more page tables when the kernel has none left, which leave as many free frames as `floor` says. Returns the frames
    /// that tables have taken.
    pub fn map(
        &mut self,
        space: Space,
        address: u64,
        run: Run,
        flags: u64,
        floor: impl Fn(&Memory<K>) -> Floor,
    ) -> Result<u64, Errno> {
        self.with_tables(run.frames, floor, |kernel, done| {
            let rest = Run { first: run.first.plus(done), frames: run.frames - done };
            kernel.map(space, address + done * PAGE_BYTES, rest, flags)
        })
    }

    /// Copies mappings, without the right to write on both sides. Page tables as for `map`.
    pub fn copy(
        &mut self,
        from: Space,
        to: Space,
        first_page: u64,
        pages: u64,
        floor: impl Fn(&Memory<K>) -> Floor,
    ) -> Result<u64, Errno> {
        self.with_tables(pages, floor, |kernel, done| {
            kernel.copy(from, to, (first_page + done) * PAGE_BYTES, pages - done)
        })
    }

    /// Repeats `step`, which is told how many pages are done and does some more, until all are, donating in between. Returns how many frames.
    fn with_tables(
        &mut self,
        pages: u64,
        floor: impl Fn(&Memory<K>) -> Floor,
        mut step: impl FnMut(&mut K, u64) -> Result<u64, Errno>,
    ) -> Result<u64, Errno> {
        let mut done = 0;
        let mut donated = 0;
        let mut donated_in_vain = 0;
        let error = loop {
            match step(&mut self.kernel, done) {
                Ok(more) => {
                    done += more;
                    if done >= pages {
                        return Ok(donated);
                    }
                    donated_in_vain = if more == 0 { donated_in_vain + 1 } else { 0 };
                }
                Err(error) => break error,
            }
            if donated_in_vain > TABLES_PER_PAGE {
                break Errno::ENOMEM;
            }
            match self.donate(floor(self)) {
                Ok(more) => donated += more,
                Err(error) => break error,
            }
        };
        if donated > 0 {
            // They are the kernel's, for whoever needs tables next.
            let payer = floor(self).payer();
            self.frames.refund_tables(donated, payer);
        }
        Err(error)
    }

    /// Gives the kernel frames for page tables, for which the space pays.
    fn donate(&mut self, floor: Floor) -> Result<u64, Errno> {
        let payer = floor.payer();
        let most = DONATION.min(self.frames.left_for(payer));
        if most == 0 {
            return Err(Errno::ENOMEM);
        }
        let run = self.take_some(most, Floor::of(floor.frames()))?;
        self.frames.keep(run);
        self.kernel.donate(run).inspect_err(|_| self.frames.unkeep(run))?;
        self.own_frames += run.frames;
        self.frames.charge_tables(run.frames, payer);
        Ok(run.frames)
    }

    /// Fills frames, `offset` bytes into them, with `bytes` from a grant; before and behind are zeros.
    pub fn fill(&mut self, run: Run, offset: u64, source: Source, bytes: u64) -> Result<(), Errno> {
        let end = offset + bytes;
        for index in 0..run.frames {
            let is_whole = offset <= index * PAGE_BYTES && end >= (index + 1) * PAGE_BYTES;
            if !is_whole {
                self.kernel.copy_frame(run.first.plus(index), self.zeros)?;
            }
        }
        let first = run.first.plus(offset / PAGE_BYTES);
        if bytes == 0 { Ok(()) } else { self.kernel.fill(first, offset % PAGE_BYTES, source, bytes) }
    }

    /// Clears what a frame has behind its first `bytes` bytes.
    pub fn clear_behind(&mut self, frame: Frame, bytes: u64) -> Result<(), Errno> {
        if bytes >= PAGE_BYTES {
            return Ok(());
        }
        let mut page: PageBytes = [0; PAGE_BYTES as usize];
        self.kernel.read_frame(frame, &mut page)?;
        page[bytes as usize..].fill(0);
        self.kernel.write_frame(frame, &page)
    }

    /// A frame with the first `bytes` bytes of `from` and zeros behind.
    pub fn take_cut_copy(&mut self, from: Frame, bytes: usize, floor: Floor) -> Result<Frame, Errno> {
        let mut page: PageBytes = [0; PAGE_BYTES as usize];
        self.kernel.read_frame(from, &mut page)?;
        page[bytes..].fill(0);
        let frame = self.take(floor)?;
        self.kernel.write_frame(frame, &page).inspect_err(|_| self.frames.release(frame))?;
        Ok(frame)
    }

    /// Sees to it that vm's own heap has what every request takes.
    pub fn ensure_request_heap(&mut self) -> Result<(), Errno> {
        self.ensure_heap(0)
    }

    /// Sees to it that vm's own heap has `bytes` free for a request, beyond what every request takes.
    pub fn ensure_heap(&mut self, bytes: usize) -> Result<(), Errno> {
        permit()?;
        let cost = bytes.saturating_add(REQUEST_HEAP_BYTES);
        if cost > self.heap_credit {
            return self.renew_heap_credit(bytes);
        }
        self.heap_credit -= cost;
        Ok(())
    }

    /// Looks whether the heap has a large free block, makes it longer if it has not, and grants half of it to the next requests. When
    /// memory has ended, the other half serves as long as it lasts.
    #[cold]
    fn renew_heap_credit(&mut self, bytes: usize) -> Result<(), Errno> {
        let least = bytes.checked_add(HEAP_CREDIT_BYTES).ok_or(Errno::ENOMEM)?;
        let wanted = least.saturating_add(HEAP_CREDIT_BYTES);
        self.heap_credit = 0;
        if !self.kernel.has_heap(wanted) {
            let pages = wanted.max(HEAP_GROWTH_BYTES).div_ceil(PAGE_BYTES as usize) as u64 + 1;
            if let Err(error) = self.grow_heap(pages) {
                return if self.kernel.has_heap(least) { Ok(()) } else { Err(error) };
            }
        }
        self.heap_credit = HEAP_CREDIT_BYTES;
        Ok(())
    }

    fn grow_heap(&mut self, pages: u64) -> Result<(), Errno> {
        self.make_room(pages as usize, Floor::PROGRAM)?;
        let end = self.kernel.heap_end();
        let mut mapped = 0;
        let mut result = Ok(());
        while mapped < pages && result.is_ok() {
            result = self.map_own(end + mapped * PAGE_BYTES, pages - mapped).map(|more| mapped += more);
        }
        if mapped > 0 {
            self.kernel.grow_heap(mapped * PAGE_BYTES)?;
        }
        result
    }

    /// Maps some frames into vm's own space. Returns how many.
    fn map_own(&mut self, address: u64, most: u64) -> Result<u64, Errno> {
        let run = self.take_some(most, Floor::PROGRAM)?;
        self.frames.keep(run);
        self.map(self.kernel.own_space(), address, run, map::WRITE, |_| Floor::OWN)
            .inspect_err(|_| self.frames.unkeep(run))?;
        self.own_frames += run.frames;
        Ok(run.frames)
    }
}

/// Counts an allocation that a test may let fail. Page faults are too frequent to count them in the guest.
fn permit() -> Result<(), Errno> {
    if cfg!(test) { sys::fallible::permit() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Simulation;

    /// Has pages done as a script says: how many each step does. Returns the result, and the frames that were donated.
    fn do_pages(pages: u64, script: &[u64]) -> (Result<u64, Errno>, u64) {
        let mut memory = Simulation::start(2000).memory;
        let before = memory.kernel.donated.len();
        let mut steps = script.iter();
        let result = memory.with_tables(pages, |_| Floor::OWN, |_, _| Ok(*steps.next().expect("it gives up before")));
        (result, (memory.kernel.donated.len() - before) as u64)
    }

    #[test]
    fn a_page_gets_so_many_donations_as_it_may_need_and_the_next_one_again() {
        assert_eq!(do_pages(3, &[3]), (Ok(0), 0));
        assert_eq!(do_pages(3, &[0, 1, 2]), (Ok(2 * DONATION), 2 * DONATION));
        let each = [0, 0, 0, 0, 1];
        let all = 5 * 2 * DONATION - DONATION;
        assert_eq!(do_pages(2, &each.repeat(2)), (Ok(all), all), "the last step needs none");
        assert_eq!(do_pages(2, &[1, 0, 0, 0, 0, 0, 1]), (Err(Errno::ENOMEM), 5 * DONATION));
    }
}
