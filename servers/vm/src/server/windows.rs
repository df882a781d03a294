//! Memory of devices for programs and for other services, at the request of vfs, of rs and of drivers (ADR 84).

use crate::memory::kernel::Kernel;
use crate::memory::window::Window;
use crate::operations::windows::{lose, own_memory};
use crate::operations::{devices, mmap::MapRequest};
use crate::server::Server;
use abi::{
    Endpoint, Errno, Message,
    endpoint::SERVICE_SLOTS,
    layout::{PAGE_BYTES, map},
    linux::nr,
    vm,
};
use sys::fallible::TryVec;

/// What a driver lets another service map.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    driver: Endpoint,
    to: usize,
    physical: u64,
    bytes: u64,
    caching: u64,
}

impl<K: Kernel> Server<K> {
    /// `DeviceMapDone`.
    pub(crate) fn device_map_done(&mut self, done: &vm::DeviceMapDone) -> Result<(), Errno> {
        let map = self.file_maps.finish(done.process).ok_or(Errno::ESRCH)?;
        let window = self.window(done, &map.request);
        let result = match window {
            Ok(window) => self.show_window(done, &map.request, window),
            Err(_) => Err(Errno::EIO),
        };
        self.memory.kernel.answer(done.process, &Message::new(nr::MMAP).reply(result));
        window.map(drop)
    }

    fn window(&mut self, done: &vm::DeviceMapDone, request: &MapRequest) -> Result<Window, Errno> {
        let range = (done.physical, request.bytes);
        let run = own_memory(&mut self.memory, &self.dma, done.driver, range, done.caching)?;
        let first_page = request.offset / PAGE_BYTES;
        Ok(Window { slot: done.driver.slot(), run, first_page, caching: done.caching, is_lost: false })
    }

    /// `EINVAL`: a private mapping that may be written: a device has no copies.
    fn show_window(&mut self, done: &vm::DeviceMapDone, request: &MapRequest, window: Window) -> Result<u64, Errno> {
        if request.wants_copies() {
            return Err(Errno::EINVAL);
        }
        self.memory.ensure_request_heap()?;
        let object = self.memory.objects.add_window(window);
        let result =
            self.with_space(done.process, |space, memory| space.mmap(memory, request, Some(object), done.may_write));
        // The region keeps it from here on.
        self.memory.objects.close(&mut self.memory.frames, object)?;
        result
    }

    /// `DeviceLost`.
    pub(crate) fn device_lost(&mut self, slot: u64) -> Result<(), Errno> {
        let slot = usize::try_from(slot).ok().filter(|&slot| slot < SERVICE_SLOTS).ok_or(Errno::EINVAL)?;
        self.offers.retain(|offer| offer.driver.slot() != slot);
        lose(&mut self.memory, &mut self.processes, slot, |_, _| false)
    }

    /// A successor comes into the slot, whose privileges are set: what it has no right to is taken from programs.
    pub(crate) fn recheck_windows(&mut self, successor: Endpoint) -> Result<(), Errno> {
        let dma = &self.dma;
        lose(&mut self.memory, &mut self.processes, successor.slot(), |memory, window| {
            own_memory(memory, dma, successor, window.bytes(), window.caching).is_ok()
        })
    }

    /// `IsShown`.
    pub(crate) fn is_shown(&self, driver: Endpoint) -> bool {
        driver.is_service() && self.memory.objects.next_window(&mut 0, driver.slot()).is_some()
    }

    /// `OfferMemory`.
    pub(crate) fn offer_memory(&mut self, driver: Endpoint, offer: &vm::OfferMemory) -> Result<(), Errno> {
        let vm::OfferMemory { slot, physical, bytes, caching } = *offer;
        own_memory(&mut self.memory, &self.dma, driver, (physical, bytes), caching)?;
        let to = usize::try_from(slot).ok().filter(|&slot| slot < SERVICE_SLOTS).ok_or(Errno::EINVAL)?;
        // One of each driver: bounded by the slots.
        self.offers.retain(|known| known.driver.slot() != driver.slot());
        self.offers.try_push(Offer { driver, to, physical, bytes, caching })
    }

    /// `MapOffered`.
    pub(crate) fn map_offered(&mut self, message: &Message, driver: u64) -> Result<Message, Errno> {
        let process = message.source;
        let is_it = |offer: &&Offer| offer.driver.slot() as u64 == driver && offer.to == process.slot();
        let offer = *self.offers.iter().find(is_it).filter(|_| process.is_service()).ok_or(Errno::ENOENT)?;
        let Offer { driver, physical, bytes, caching, .. } = offer;
        // The driver's rights may have become less.
        let run = own_memory(&mut self.memory, &self.dma, driver, (physical, bytes), caching)?;
        let flags = map::WRITE | caching;
        let address = self.with_space(process, |space, memory| devices::map_device(space, memory, run, flags))?;
        Ok(vm::MapOffered::reply(message, 0, address, bytes))
    }
}
