//! The requests of vfs about images: opened, filled, closed, forgotten.

use crate::{
    kernel::{Kernel, Source},
    memory::{Floor, Memory},
    object::{Content, FileId, ObjectId},
    pages::{LEAF_HEAP_BYTES, LEAF_PAGES},
};
use abi::{
    Errno,
    layout::{MAX_COPY, PAGE_BYTES},
};

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
    memory.ensure_heap(0)?;
    Ok(memory.objects.open_image(&mut memory.frames, file, version, bytes))
}

/// The first stretch within `wanted` that is not there yet; `None`: all is there.
pub fn missing<K>(memory: &Memory<K>, id: ObjectId, wanted: Stretch) -> Result<Option<Stretch>, Errno> {
    let image = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    let Content::File { bytes: file_bytes, .. } = image.content else { return Err(Errno::EINVAL) };
    let end = wanted.offset.saturating_add(wanted.bytes).min(file_bytes);
    let first = wanted.offset / PAGE_BYTES;
    let found = image.pages.absent(first, end.div_ceil(PAGE_BYTES).max(first));
    Ok(found.map(|(page, pages)| {
        let offset = page * PAGE_BYTES;
        Stretch { offset, bytes: (pages * PAGE_BYTES).min(file_bytes - offset) }
    }))
}

/// Puts content into an image; pages that are there already stay as they are. `EINVAL`: not whole pages, or not within the file.
pub fn fill<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, part: Stretch, source: Source) -> Result<(), Errno> {
    let growth_bytes = check(memory, id, part)?;
    let (first, end) = (part.offset / PAGE_BYTES, (part.offset + part.bytes).div_ceil(PAGE_BYTES));
    memory.ensure_heap((end - first) as usize / LEAF_PAGES as usize * LEAF_HEAP_BYTES + growth_bytes)?;
    let mut page = first;
    while let Some((start, pages)) = memory.objects.get(id).and_then(|image| image.pages.absent(page, end)) {
        let run = memory.take_some(pages.min(MAX_COPY / PAGE_BYTES), Floor::PROGRAM)?;
        let skipped = (start - first) * PAGE_BYTES;
        let bytes = (run.frames * PAGE_BYTES).min(part.bytes - skipped);
        memory.fill(run, 0, source.plus(skipped), bytes).inspect_err(|_| memory.release_run(run))?;
        match memory.objects.get_mut(id) {
            Some(image) => image.pages.own_run(start, run),
            None => memory.release_run(run),
        }
        page = start + run.frames;
    }
    Ok(())
}

/// → heap that the image's list of pages takes when it grows.
fn check<K>(memory: &Memory<K>, id: ObjectId, part: Stretch) -> Result<usize, Errno> {
    let image = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    let Content::File { bytes: file_bytes, .. } = image.content else { return Err(Errno::EINVAL) };
    let end = part.offset.checked_add(part.bytes).filter(|&end| end <= file_bytes).ok_or(Errno::EINVAL)?;
    let is_whole = part.bytes.is_multiple_of(PAGE_BYTES) || end == file_bytes;
    let is_good = part.offset.is_multiple_of(PAGE_BYTES) && is_whole;
    if is_good { Ok(image.pages.growth_bytes()) } else { Err(Errno::EINVAL) }
}
