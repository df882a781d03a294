//! Windows come and go: which physical memory is a driver's own, and what happens when it is no more (ADR 84).

use crate::memory::Memory;
use crate::memory::frames::{Frame, Run};
use crate::memory::kernel::Kernel;
use crate::memory::object::{Content, ObjectId};
use crate::memory::window::Window;
use crate::operations::devices::Dma;
use crate::space::processes::Processes;
use crate::space::region::{Backing, Region};
use abi::{
    Endpoint, Errno,
    layout::{PAGE_BYTES, map},
};
use sys::fallible;

impl Region {
    /// The window that it shows.
    pub fn window<K>(&self, memory: &Memory<K>) -> Option<Window> {
        let Backing::Object(id, _) = self.backing else { return None };
        match memory.objects.get(id)?.content {
            Content::Window(window) => Some(window),
            _ => None,
        }
    }
}

/// The frames of a range of physical memory, if all of it is the service's own: in its privileges and not vm's, or DMA memory of its slot.
///
/// # Errors
/// `EINVAL`: not whole pages, none, too many, or no such way to reach it; `EPERM`: another's.
pub fn own_memory<K: Kernel>(
    memory: &mut Memory<K>,
    dma: &Dma,
    owner: Endpoint,
    (physical, bytes): (u64, u64),
    caching: u64,
) -> Result<Run, Errno> {
    let end = physical.checked_add(bytes).filter(|&end| end <= u64::from(u32::MAX) * PAGE_BYTES);
    let is_whole = physical.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES) && bytes > 0;
    if end.is_none() || !is_whole || !matches!(caching, 0 | map::COMBINED | map::UNCACHED) {
        return Err(Errno::EINVAL);
    }
    let run = Run { first: Frame((physical / PAGE_BYTES) as u32), frames: bytes / PAGE_BYTES };
    if dma.has(owner.slot(), run) {
        return Ok(run);
    }
    let is_own = owner.is_service() && memory.kernel.may_map(owner, physical, bytes) && !memory.frames.manages_any(run);
    if is_own { Ok(run) } else { Err(Errno::EPERM) }
}

/// Takes from all programs the windows of the driver in `slot` that `keeps` denies it.
pub fn lose<K: Kernel>(
    memory: &mut Memory<K>,
    processes: &mut Processes,
    slot: usize,
    mut keeps: impl FnMut(&mut Memory<K>, &Window) -> bool,
) -> Result<(), Errno> {
    let mut next = 0;
    while let Some((id, window)) = memory.objects.next_window(&mut next, slot) {
        if keeps(memory, &window) {
            continue;
        }
        if let Some(object) = memory.objects.get_mut(id) {
            object.content = Content::Window(Window { is_lost: true, ..window });
        }
        take_views(memory, processes, id)?;
    }
    Ok(())
}

/// Takes the pages of a window out of all programs that show it. Their regions stay: a touch fails from now on.
fn take_views<K: Kernel>(memory: &mut Memory<K>, processes: &mut Processes, id: ObjectId) -> Result<(), Errno> {
    for space in processes.spaces_mut() {
        let views =
            space.regions.iter().filter(|region| matches!(region.backing, Backing::Object(shown, _) if shown == id));
        for (start, end) in fallible::collect(views.map(|region| (region.start, region.end)))? {
            space.empty(memory, start, end)?;
        }
    }
    Ok(())
}
