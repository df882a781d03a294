//! Pages of shared files: found, made of zeros, marked before a program writes to them. (`server::shared_files` serves vfs.)

use crate::memory::frames::Frame;
use crate::memory::kernel::Kernel;
use crate::memory::object::ObjectId;
use crate::memory::{Floor, Memory};
use abi::Errno;

/// The frame of a page of a shared file, made if that page is zeros. `None`: only the file has it.
pub fn frame_of<K: Kernel>(
    memory: &mut Memory<K>,
    id: ObjectId,
    index: u64,
    floor: Floor,
) -> Result<Option<Frame>, Errno> {
    let object = memory.objects.get(id).ok_or(Errno::EINVAL)?;
    match object.pages.frame(index) {
        None if object.content.is_zeros(index) => make_zeros(memory, id, index, floor).map(Some),
        known => Ok(known),
    }
}

/// Makes a page of zeros in an object.
pub fn make_zeros<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, index: u64, floor: Floor) -> Result<Frame, Errno> {
    let object = memory.objects.get(id).ok_or(Errno::EIO)?;
    if object.pages.must_grow() {
        let growth_bytes = object.pages.growth_bytes();
        memory.ensure_heap(growth_bytes)?;
    }
    let frame = memory.take_zeroed(floor)?;
    match memory.objects.get_mut(id) {
        Some(object) => object.pages.own(index, frame, &mut memory.frames),
        None => memory.frames.release(frame),
    }
    Ok(frame)
}

/// A program is about to write to a page of a shared file: the mark comes before the right.
pub fn mark_changed<K: Kernel>(memory: &mut Memory<K>, id: ObjectId, index: u64) -> Result<(), Errno> {
    let growth_bytes = memory.objects.get(id).map_or(0, |object| object.marks.growth_bytes());
    memory.ensure_heap(growth_bytes)?;
    if let Some(object) = memory.objects.get_mut(id) {
        object.marks.change(index);
    }
    Ok(())
}
