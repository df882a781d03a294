//! Which thread uses which space.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::space::AddressSpace;
use abi::{Endpoint, Errno, endpoint::SLOTS};
use alloc::{boxed::Box, vec, vec::Vec};
use sys::fallible::TryVec;
use sys::space::Space;

/// Place of a space in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceIndex(u32);

#[derive(Clone, Copy, Debug)]
struct Process {
    endpoint: Endpoint,
    space: Option<SpaceIndex>,
    /// Id of the process it belongs to; 0: a service.
    pid: u32,
    /// Number and result of its last shmat.
    attached: Option<(u64, u64)>,
}

impl Process {
    const fn new(endpoint: Endpoint, pid: u32) -> Process {
        Process { endpoint, space: None, pid, attached: None }
    }
}

/// All threads, by slot, and all spaces.
#[derive(Debug)]
pub struct Processes {
    by_slot: Vec<Process>,
    spaces: Vec<Option<Box<AddressSpace>>>,
    vacant: Vec<u32>,
}

impl Processes {
    /// No processes.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Processes {
        Processes { by_slot: vec![Process::new(Endpoint::NONE, 0); SLOTS], spaces: Vec::new(), vacant: Vec::new() }
    }

    fn process(&self, endpoint: Endpoint) -> Option<&Process> {
        self.by_slot.get(endpoint.slot()).filter(|process| process.endpoint == endpoint)
    }

    /// True when vm knows this thread.
    pub fn knows(&self, endpoint: Endpoint) -> bool {
        self.process(endpoint).is_some()
    }

    /// The space that a thread uses. `ESRCH`: no such thread, or it has none.
    pub fn index(&self, endpoint: Endpoint) -> Result<SpaceIndex, Errno> {
        self.process(endpoint).and_then(|process| process.space).ok_or(Errno::ESRCH)
    }

    /// The space itself.
    #[inline]
    pub fn space(&mut self, endpoint: Endpoint) -> Result<&mut AddressSpace, Errno> {
        let index = self.index(endpoint)?;
        self.spaces[index.0 as usize].as_deref_mut().ok_or(Errno::ESRCH)
    }

    /// A new thread of this process, without a space. Whatever was known of its slot is forgotten.
    pub fn add<K: Kernel>(&mut self, memory: &mut Memory<K>, endpoint: Endpoint, pid: u32) -> Result<(), Errno> {
        let old = self.by_slot.get(endpoint.slot()).ok_or(Errno::EINVAL)?.endpoint;
        if old != Endpoint::NONE {
            self.remove(memory, old)?;
        }
        self.by_slot[endpoint.slot()] = Process::new(endpoint, pid);
        Ok(())
    }

    /// What the shmat with this number has returned to a thread, if it was the last.
    pub fn attached(&self, endpoint: Endpoint, call: u64) -> Option<u64> {
        let (known, address) = self.process(endpoint)?.attached?;
        (known == call).then_some(address)
    }

    /// A shmat, or a call that vfs maps a page for, is about to return an address to a thread; 0: its page has been unmapped.
    pub fn set_attached(&mut self, endpoint: Endpoint, call: u64, address: u64) {
        if let Some(process) = self.by_slot.get_mut(endpoint.slot()) {
            process.attached = Some((call, address));
        }
    }

    /// A thread uses a new space from now on, for which it is counted as user.
    pub fn enter<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        endpoint: Endpoint,
        mut space: AddressSpace,
    ) -> Result<(), Errno> {
        let id = space.id;
        space.process = self.process(endpoint).map_or(0, |process| process.pid);
        let index = match self.vacant.pop().map_or_else(|| self.grow(), Ok) {
            Ok(index) => index,
            Err(error) => return space.destroy(memory).and(Err(error)),
        };
        self.spaces[index as usize] = Some(Box::new(space));
        // The table knows before the kernel does: whatever a thread uses is found after a death.
        let old = self.by_slot[endpoint.slot()].space.replace(SpaceIndex(index));
        if let Err(error) = memory.kernel.set(endpoint, id) {
            self.by_slot[endpoint.slot()].space = old;
            self.leave(memory, Some(SpaceIndex(index)))?;
            return Err(error);
        }
        self.leave(memory, old)
    }

    /// A service takes over the space of its predecessor in the slot, from which that has gone. `ESRCH`: there is none.
    pub fn succeed<K: Kernel>(&mut self, memory: &mut Memory<K>, endpoint: Endpoint) -> Result<(), Errno> {
        let process = self.by_slot.get_mut(endpoint.slot()).ok_or(Errno::EINVAL)?;
        let index = process.space.ok_or(Errno::ESRCH)?;
        let space = self.spaces[index.0 as usize].as_ref().ok_or(Errno::ESRCH)?;
        memory.kernel.set(endpoint, space.id)?;
        process.endpoint = endpoint;
        Ok(())
    }

    /// A thread shares the space of another from now on.
    pub fn share<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        endpoint: Endpoint,
        other: Endpoint,
    ) -> Result<(), Errno> {
        let index = self.index(other)?;
        let space = self.space(other)?;
        memory.kernel.set(endpoint, space.id)?;
        space.users += 1;
        let old = self.by_slot[endpoint.slot()].space.replace(index);
        self.leave(memory, old)
    }

    /// A thread is gone, and its space too when it was the last there. `ESRCH`: it was not known.
    pub fn remove<K: Kernel>(&mut self, memory: &mut Memory<K>, endpoint: Endpoint) -> Result<(), Errno> {
        if self.process(endpoint).ok_or(Errno::ESRCH)?.space.is_some() {
            // The kernel has done this already when the thread does not exist any more.
            match memory.kernel.set(endpoint, Space::NONE) {
                Ok(()) | Err(Errno::EDEADSRCDST) => {}
                Err(error) => return Err(error),
            }
        }
        let process = &mut self.by_slot[endpoint.slot()];
        process.endpoint = Endpoint::NONE;
        let old = process.space.take();
        self.leave(memory, old)
    }

    /// Adds an entry, with a place in `vacant` for when it is free: giving it back allocates nothing. Returns its index.
    fn grow(&mut self) -> Result<u32, Errno> {
        self.vacant.try_make_room(self.spaces.len() + 1)?;
        self.spaces.try_push(None)?;
        Ok(self.spaces.len() as u32 - 1)
    }

    /// One user less.
    fn leave<K: Kernel>(&mut self, memory: &mut Memory<K>, index: Option<SpaceIndex>) -> Result<(), Errno> {
        let Some(SpaceIndex(index)) = index else { return Ok(()) };
        let entry = &mut self.spaces[index as usize];
        if let Some(space) = entry {
            space.users -= 1;
            if space.users > 0 {
                return Ok(());
            }
        }
        self.vacant.push_reserved(index);
        entry.take().map_or(Ok(()), |space| space.destroy(memory))
    }

    /// After a death: recounts users, and destroys spaces without any.
    pub fn recount<K: Kernel>(&mut self, memory: &mut Memory<K>) {
        self.spaces.iter_mut().flatten().for_each(|space| space.users = 0);
        for process in &mut self.by_slot {
            let space = process.space.and_then(|index| self.spaces.get_mut(index.0 as usize)?.as_deref_mut());
            match space {
                Some(space) => space.users += 1,
                None => process.space = None,
            }
        }
        self.vacant.clear();
        for (index, entry) in self.spaces.iter_mut().enumerate() {
            if let Some(space) = entry.take_if(|space| space.users == 0) {
                // A thread that still uses it is stopped for good by its next fault.
                let _ = space.destroy(memory);
            }
            if entry.is_none() {
                self.vacant.push_reserved(index as u32);
            }
        }
    }

    /// After a death: what the kernel knows of a thread's memory is what the table says, no more. A space whose own tables are broken
    /// becomes empty, and its program dies of that.
    pub fn renew<K: Kernel>(&mut self, memory: &mut Memory<K>, endpoint: Endpoint) -> Result<(), Errno> {
        let index = self.index(endpoint)?;
        let space = self.space(endpoint)?;
        if space.is_whole() {
            space.hide_all(memory)?;
        } else {
            space.give_up(memory)?;
        }
        let id = space.id;
        for process in self.by_slot.iter().filter(|process| process.space == Some(index)) {
            // It can only fail because the thread is gone.
            let _ = memory.kernel.set(process.endpoint, id);
        }
        Ok(())
    }

    /// Whether the places without a space are those that are known to be free.
    #[cfg(test)]
    pub fn knows_free_places(&self) -> bool {
        let mut known = self.vacant.clone();
        known.sort_unstable();
        let free = (0..self.spaces.len()).filter(|index| self.spaces[*index].is_none());
        free.eq(known.into_iter().map(|index| index as usize))
    }

    /// All spaces, to be changed.
    pub fn spaces_mut(&mut self) -> impl Iterator<Item = &mut AddressSpace> {
        self.spaces.iter_mut().filter_map(|space| space.as_deref_mut())
    }

    /// All spaces.
    pub fn spaces(&self) -> impl Iterator<Item = &AddressSpace> {
        self.spaces.iter().filter_map(|space| space.as_deref())
    }
}
