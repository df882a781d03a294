//! Files that are mapped shared: the requests of vfs about them, and the faults that notice changes.
//!
//! As long as it is mapped, and until what programs have written there is in the file, the object is the truth about the pages it has. vfs
//! reads them in its cache, which has the same frames (`SharedShow`), or brings them to the file first (`SharedTake`); what is written by
//! calls goes to both (`SharedUpdate`).
//! A page is writable for programs only while it is marked as changed: the first write is a fault, which marks it.
//! Order of changes, in case vm or vfs dies in between: the mark is set before the right to write is given, and cleared after the right
//! is taken.

use crate::memory::images::Stretch;
use crate::memory::kernel::{Kernel, PageBytes, Source};
use crate::memory::object::{Content, FileId, Object, ObjectId};
use crate::memory::shared_pages::frame_of;
use crate::memory::{Floor, Memory};
use crate::server::Server;
use crate::space::AddressSpace;
use crate::space::processes::Processes;
use crate::space::region::{Backing, Region, Rights};
use abi::{Errno, layout::PAGE_BYTES, vm};
use core::ops::Range;
use sys::fallible;

/// Pages that vfs is given at a time, at most.
const TAKE_PAGES: u64 = 16;

/// The shared file with this number, its length and the page where zeros begin. `EINVAL`: there is none.
fn shared<K>(memory: &Memory<K>, id: ObjectId) -> Result<(&Object, u64, u64), Errno> {
    let object = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    match object.content {
        Content::Shared { bytes, zeros, .. } => Ok((object, bytes, zeros)),
        _ => Err(Errno::EINVAL),
    }
}

impl<K: Kernel> Server<K> {
    /// `SharedTake`. Returns what was copied; no bytes: nothing differs from the file.
    pub(crate) fn take_changed(
        &mut self,
        id: ObjectId,
        wanted: Stretch,
        to: Source,
        room: u64,
    ) -> Result<Stretch, Errno> {
        let nothing = Stretch { offset: 0, bytes: 0 };
        let (object, file_bytes, _) = shared(&self.memory, id)?;
        let end = wanted.offset.saturating_add(wanted.bytes).min(file_bytes).div_ceil(PAGE_BYTES);
        let most = (room / PAGE_BYTES).min(TAKE_PAGES);
        if most == 0 {
            return Err(Errno::EINVAL);
        }
        let Some((first, pages)) = object.marks.first_run(wanted.offset / PAGE_BYTES, end, most) else {
            return Ok(nothing);
        };
        // Without any right nothing is mapped.
        let has_rights = |region: &Region| region.rights != Rights::NONE;
        each_view(&mut self.processes, id, first..first + pages, has_rights, |space, start, end| {
            space.restrict(&mut self.memory, start, end, false)
        })?;
        if let Some(object) = self.memory.objects.get_mut(id) {
            object.marks.take(first, pages);
        }
        let offset = first * PAGE_BYTES;
        let taken = Stretch { offset, bytes: (pages * PAGE_BYTES).min(file_bytes - offset) };
        let mut page: PageBytes = [0; PAGE_BYTES as usize];
        for index in first..first + pages {
            let frame = shared(&self.memory, id)?.0.pages.frame(index).ok_or(Errno::EINVAL)?;
            self.memory.kernel.read_frame(frame, &mut page)?;
            let at = (index - first) * PAGE_BYTES;
            let bytes = (taken.bytes - at).min(PAGE_BYTES) as usize;
            self.memory.kernel.write_grant(to.plus(at), &page[..bytes])?;
        }
        Ok(taken)
    }

    /// `SharedWritten`.
    pub(crate) fn set_written(&mut self, id: ObjectId, part: Stretch) -> Result<(), Errno> {
        let (first, end) = (part.offset / PAGE_BYTES, part.offset.saturating_add(part.bytes).div_ceil(PAGE_BYTES));
        let object = self.memory.objects.get_mut(id).ok_or(Errno::EINVAL)?;
        object.marks.written(first, end.saturating_sub(first).min(TAKE_PAGES));
        Ok(())
    }

    /// `SharedUpdate`.
    pub(crate) fn update_shared(
        &mut self,
        id: ObjectId,
        part: Stretch,
        source: Source,
        size: u64,
    ) -> Result<(), Errno> {
        let (_, old_bytes, _) = shared(&self.memory, id)?;
        let end = part.offset.checked_add(part.bytes).filter(|&end| end <= size).ok_or(Errno::EINVAL)?;
        if size > old_bytes {
            self.resize_shared(id, size)?;
        }
        let mut at = part.offset;
        while at < end {
            let bytes = (PAGE_BYTES - at % PAGE_BYTES).min(end - at);
            if let Some(frame) = frame_of(&mut self.memory, id, at / PAGE_BYTES, Floor::PROGRAM)? {
                self.memory.kernel.fill(frame, at % PAGE_BYTES, source.plus(at - part.offset), bytes)?;
                let object = self.memory.objects.get_mut(id).ok_or(Errno::EINVAL)?;
                if object.marks.is_taken(at / PAGE_BYTES) {
                    // What was taken may come to the file after what was written.
                    object.marks.change(at / PAGE_BYTES);
                }
            }
            at += bytes;
        }
        Ok(())
    }

    /// `SharedResize`.
    pub(crate) fn resize_shared(&mut self, id: ObjectId, bytes: u64) -> Result<(), Errno> {
        let (_, old_bytes, _) = shared(&self.memory, id)?;
        self.resize_object(id, old_bytes, bytes)
    }

    /// `ImageResize`. Returns whether there are images in use.
    pub(crate) fn resize_images(&mut self, resize: &vm::ImageResize) -> Result<bool, Errno> {
        let vm::ImageResize { old_bytes, bytes, .. } = *resize;
        let file = FileId { device: resize.device, inode: resize.inode };
        let mut next = 0;
        while let Some(id) = self.memory.objects.next_image(&mut next, file) {
            let known =
                self.memory.objects.get(id).and_then(|image| image.content.file_bytes()).ok_or(Errno::EINVAL)?;
            if bytes < known || [known, vm::UNKNOWN_BYTES].contains(&old_bytes) {
                self.resize_object(id, known, bytes)?;
            }
        }
        self.memory.objects.forget_image(&mut self.memory.frames, file);
        Ok(self.memory.objects.is_image_in_use(file))
    }

    /// Takes what lies beyond the new end of a file out of all programs first, and then out of its object.
    fn resize_object(&mut self, id: ObjectId, old_bytes: u64, bytes: u64) -> Result<(), Errno> {
        if bytes < old_bytes {
            each_view(
                &mut self.processes,
                id,
                bytes.div_ceil(PAGE_BYTES)..u64::MAX,
                |_| true,
                |space, start, end| space.empty(&mut self.memory, start, end),
            )?;
        }
        let memory = &mut self.memory;
        memory.objects.get_mut(id).ok_or(Errno::EINVAL)?.resize(&mut memory.frames, bytes);
        // Nobody may see what lay behind the end once the file is longer.
        self.clear_behind(id, bytes.min(old_bytes))
    }

    /// Clears the rest of the page that a file ends in.
    fn clear_behind(&mut self, id: ObjectId, end: u64) -> Result<(), Errno> {
        let object = self.memory.objects.get(id).ok_or(Errno::EINVAL)?;
        let Some(frame) = object.pages.frame(end / PAGE_BYTES) else { return Ok(()) };
        self.memory.clear_behind(frame, end % PAGE_BYTES)
    }

    /// `SharedClose`.
    pub(crate) fn close_shared(&mut self, id: ObjectId, lose: bool) -> Result<(), Errno> {
        let (object, ..) = shared(&self.memory, id)?;
        if object.is_mapped() || !lose && !object.marks.is_empty() {
            return Err(Errno::EBUSY);
        }
        self.memory.objects.close(&mut self.memory.frames, id)
    }
}

/// Does something with each range of addresses at which a program shows such pages of a file, or has copies of them, in regions of a kind.
fn each_view(
    processes: &mut Processes,
    id: ObjectId,
    pages: Range<u64>,
    is_wanted: impl Fn(&Region) -> bool,
    mut act: impl FnMut(&mut AddressSpace, u64, u64) -> Result<(), Errno>,
) -> Result<(), Errno> {
    for space in processes.spaces_mut() {
        let views = space.regions.iter().filter_map(|region| {
            let Backing::Object(shown, from) = region.backing else { return None };
            let until = from + region.pages();
            if shown != id || !is_wanted(region) || pages.start >= until || pages.end <= from {
                return None;
            }
            let address = |page: u64| region.start + (page.clamp(from, until) - from) * PAGE_BYTES;
            Some((address(pages.start), address(pages.end)))
        });
        fallible::collect(views)?.into_iter().try_for_each(|(start, end)| act(space, start, end))?;
    }
    Ok(())
}
