//! The requests of vfs about images: opened, filled, shown pages of the cache, closed, forgotten. Shared files are filled here too.

use crate::memory::kernel::{Kernel, Source};
use crate::memory::object::{Content, FileId, ObjectId};
use crate::memory::pages::{LEAF_HEAP_BYTES, LEAF_PAGES};
use crate::memory::{Floor, Memory};
use abi::{
    Errno,
    layout::{MAX_COPY, PAGE_BYTES},
    vm::{MAX_CLAIMS, MAX_NAME_BYTES},
};
use sys::fallible::filled;

/// Images up to this size get frames that are neighbours: programs and libraries mostly.
const RESERVE_BYTES: u64 = 4 << 20;

/// A stretch of a file.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// The image of a file, held once more.
pub fn open<K: Kernel>(memory: &mut Memory<K>, file: FileId, version: u64, bytes: u64) -> Result<ObjectId, Errno> {
    memory.ensure_request_heap()?;
    Ok(memory.objects.open_image(&mut memory.frames, file, version, bytes))
}

/// Sets the path of the file of an image or shared file. `EINVAL`: there is no such object; `EEXIST`, `ENAMETOOLONG`; `EFAULT`: not granted.
pub fn set_name<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, from: Source, bytes: u64) -> Result<(), Errno> {
    if bytes > MAX_NAME_BYTES {
        return Err(Errno::ENAMETOOLONG);
    }
    memory.ensure_heap(bytes as usize)?;
    let mut name = filled(0, bytes as usize)?;
    memory.kernel.read_grant(from, &mut name)?;
    memory.objects.get_mut(id).ok_or(Errno::EINVAL)?.set_name(name)
}

/// `vm::ClaimImages` with so many numbers. `EINVAL`: too many; `EFAULT`: not granted; `ENOMEM`.
pub fn claim<K: Kernel>(memory: &mut Memory<K>, from: Source, images: u64) -> Result<(), Errno> {
    if images > MAX_CLAIMS {
        return Err(Errno::EINVAL);
    }
    let bytes = images as usize * size_of::<u64>();
    memory.ensure_heap(bytes)?;
    let mut list = filled(0, bytes)?;
    if images > 0 {
        memory.kernel.read_grant(from, &mut list)?;
    }
    let (numbers, _) = list.as_chunks();
    let held = numbers.iter().map(|number| ObjectId(u64::from_le_bytes(*number)));
    memory.objects.claim_images(&mut memory.frames, held);
    Ok(())
}

/// The first stretch within `wanted` that is absent; `None`: all is present.
pub fn missing<K>(memory: &Memory<K>, id: ObjectId, wanted: Stretch) -> Result<Option<Stretch>, Errno> {
    let image = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    let file_bytes = image.content.file_bytes().ok_or(Errno::EINVAL)?;
    let end = wanted.offset.saturating_add(wanted.bytes).min(file_bytes);
    let first = wanted.offset / PAGE_BYTES;
    let found = image.pages.absent(first, end.div_ceil(PAGE_BYTES).max(first));
    Ok(found.map(|(page, pages)| {
        let offset = page * PAGE_BYTES;
        Stretch { offset, bytes: (pages * PAGE_BYTES).min(file_bytes - offset) }
    }))
}

/// Puts content into an image; present pages stay as they are. `EINVAL`: not whole pages, or not within the file.
pub fn fill<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, part: Stretch, source: Source) -> Result<(), Errno> {
    let growth_bytes = check(memory, id, part)?;
    let (first, end) = (part.offset / PAGE_BYTES, (part.offset + part.bytes).div_ceil(PAGE_BYTES));
    memory.ensure_heap((end - first) as usize / LEAF_PAGES as usize * LEAF_HEAP_BYTES + growth_bytes)?;
    reserve(memory, id);
    let mut page = first;
    while let Some((start, pages)) = memory.objects.get(id).and_then(|image| image.pages.absent(page, end)) {
        let skipped = (start - first) * PAGE_BYTES;
        let rest = Stretch { offset: start * PAGE_BYTES, bytes: (pages * PAGE_BYTES).min(part.bytes - skipped) };
        page = start + fill_absent(memory, id, rest, source.plus(skipped))?;
    }
    Ok(())
}

/// Shows pages of vfs's cache, from its page `first` on, where those of an image or shared file are absent. vfs takes another page before it fills the place of one that is shown again; programs
/// write to copies of an image's pages, and to the pages of a shared file themselves. `EINVAL`: as [`fill`]; `EFAULT`: a page of the cache is gone.
pub fn show<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, part: Stretch, first: u64) -> Result<(), Errno> {
    let growth_bytes = check(memory, id, part)?;
    let cache = memory.objects.cache().ok_or(Errno::EINVAL)?;
    let pages = part.bytes.div_ceil(PAGE_BYTES);
    memory.ensure_heap((pages / LEAF_PAGES) as usize * LEAF_HEAP_BYTES + growth_bytes)?;
    let shown = part.offset / PAGE_BYTES;
    for index in 0..pages {
        let (image, cache) = (memory.objects.get(id).ok_or(Errno::EINVAL)?, memory.objects.get(cache));
        if image.pages.frame(shown + index).is_some() {
            continue;
        }
        let place = first.checked_add(index).ok_or(Errno::EINVAL)?;
        let frame = cache.and_then(|cache| cache.pages.frame(place)).ok_or(Errno::EFAULT)?;
        memory.clear_behind(frame, part.bytes - index * PAGE_BYTES)?;
        memory.frames.share(frame);
        if let Some(image) = memory.objects.get_mut(id) {
            image.pages.own(shown + index, frame, &mut memory.frames);
        }
    }
    Ok(())
}

/// Fills pages from the start of a stretch on, all of them absent. Returns how many.
fn fill_absent<K: Kernel>(
    memory: &mut Memory<K>,
    id: ObjectId,
    stretch: Stretch,
    source: Source,
) -> Result<u64, Errno> {
    let page = stretch.offset / PAGE_BYTES;
    let pages = stretch.bytes.div_ceil(PAGE_BYTES).min(MAX_COPY / PAGE_BYTES);
    let reserved = memory.objects.get(id).and_then(|image| image.reserved(page, pages));
    let run = reserved.map_or_else(|| memory.take_some(pages, Floor::PROGRAM), Ok)?;
    let bytes = (run.frames * PAGE_BYTES).min(stretch.bytes);
    let filled = memory.fill(run, 0, source, bytes);
    match memory.objects.get_mut(id) {
        Some(image) if filled.is_ok() => image.pages.own_run(page, run, &mut memory.frames),
        _ if reserved.is_none() => memory.release_run(run),
        _ => {}
    }
    filled.map(|()| run.frames)
}

/// Sets frames aside for a whole image that is not too large, before any of its pages is present.
fn reserve<K: Kernel>(memory: &mut Memory<K>, id: ObjectId) {
    let wanted = memory.objects.get(id).filter(|image| image.pages.count() == 0 && image.reserved(0, 0).is_none());
    let Some(Content::File { bytes, .. }) = wanted.map(|image| image.content) else { return };
    if bytes > RESERVE_BYTES {
        return;
    }
    if let Some(run) = memory.take_spare_run(bytes.div_ceil(PAGE_BYTES)) {
        match memory.objects.get_mut(id) {
            Some(image) => image.set_reserve(run),
            None => memory.release_run(run),
        }
    }
}

/// Returns the heap that the image's list of pages takes when it grows.
fn check<K>(memory: &Memory<K>, id: ObjectId, part: Stretch) -> Result<usize, Errno> {
    let image = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    let file_bytes = image.content.file_bytes().ok_or(Errno::EINVAL)?;
    let end = part.offset.checked_add(part.bytes).filter(|&end| end <= file_bytes).ok_or(Errno::EINVAL)?;
    let is_whole = part.bytes.is_multiple_of(PAGE_BYTES) || end == file_bytes;
    let is_good = part.offset.is_multiple_of(PAGE_BYTES) && is_whole;
    if is_good { Ok(image.pages.growth_bytes()) } else { Err(Errno::EINVAL) }
}
