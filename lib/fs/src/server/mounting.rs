//! Mounting and unmounting.
//!
//! A mount has two transactions. The first makes the volume known, which a successor then goes on with; in between the device
//! learns that the file system is in use; the second has the reply. So a mount that is asked for again finds how far the first had come.

use abi::fs::{MOUNTED_FIXED, MOUNTED_IN_MEMORY, MOUNTED_JOURNAL, MOUNTED_READ_ONLY, MOUNTED_VOLATILE, Mount, Unmount};
use abi::{Errno, Message, Name};

use super::{MountRequest, Server, describe, granted, use_node};
use crate::block_client::Drivers;
use crate::device::{Blocking, Source};
use crate::file_system::FileSystem;
use crate::preserve::{Preserved, VolumeMemory};
use crate::volumes::{MAX_VOLUMES, Volume, volume_of};

/// Linux's `MS_RDONLY`.
const MS_RDONLY: u64 = 1;

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    /// A server whose state outlives it, with what a predecessor had mounted.
    pub fn resuming(mount: M, preserved: Preserved) -> Self {
        Self::new(mount).going_on(preserved)
    }

    /// As `resuming`, over the drivers of `drivers`.
    pub fn resuming_over(drivers: Drivers, mount: M, preserved: Preserved) -> Self {
        let server = Server { blocking: drivers.blocking().clone(), drivers: Some(drivers), ..Self::new(mount) };
        server.going_on(preserved)
    }

    /// With devices that heed this blocking, and answer when the caller of [`Server::go_on`] says so.
    #[must_use]
    pub fn with_blocking(self, blocking: Blocking) -> Self {
        Server { blocking, ..self }
    }

    fn going_on(mut self, preserved: Preserved) -> Self {
        let count = preserved.volumes();
        self.preserved = Some(preserved);
        self.while_blocking(|server| (0..count).for_each(|number| server.resume(number)));
        self.finish_work_left();
        self
    }

    /// Goes on with volume `number`, if there is one.
    fn resume(&mut self, number: usize) {
        let Some(preserved) = &self.preserved else { return };
        let Some(mut place) = preserved.mount_place(number) else { return };
        let Some(record) = place.get() else { return };
        let (source, read_only) = (record.source, record.read_only);
        let request = MountRequest { source, read_only, memo: Some(record.memo) };
        match (self.mount)(&request, preserved.volume(number)) {
            Ok(file_system) => {
                let (owner, incomplete) = (record.owner, record.incomplete);
                let volume = Volume { file_system, source, owner, read_only, incomplete, place: Some(place) };
                self.volumes.put(number, volume);
            }
            Err(error) => {
                sys::log!("volume {number} not resumed after a restart: {error}");
                place.set(None);
                preserved.undo.commit();
            }
        }
    }

    pub(super) fn mount(&mut self, message: &Message, request: Mount) -> Result<Message, Errno> {
        let service = match request.bytes {
            0 => None,
            bytes => Some(service_name(self.names.fetch(granted(message, request.grant), bytes)?)?),
        };
        let source = Source { service, minor: request.minor };
        let read_only = request.flags & MS_RDONLY != 0;
        let number = match self.mounted_already(message, source)? {
            Some(number) => number,
            None => self.mount_anew(message, source, read_only)?,
        };
        let volume = self.volumes.get(number).ok_or(Errno::EIO)?;
        if volume.incomplete {
            volume.file_system.sync()?;
            volume.incomplete = false;
            volume.record();
        }
        let root = volume.file_system.root();
        let attributes = use_node(&mut volume.file_system, root)?;
        let refuses = volume.file_system.statistics().read_only && !read_only;
        let volatile = volume.file_system.is_volatile();
        let in_memory = volume.file_system.is_in_memory();
        let fixed = volume.file_system.is_fixed();
        let journal = volume.file_system.has_journal();
        let flags = if volatile { MOUNTED_VOLATILE } else { 0 }
            | if in_memory { MOUNTED_IN_MEMORY } else { 0 }
            | if fixed { MOUNTED_FIXED } else { 0 }
            | if journal { MOUNTED_JOURNAL } else { 0 }
            | if refuses { MOUNTED_READ_ONLY } else { 0 };
        let (node, mode, ids, size, device) = describe(number, &attributes);
        Ok(Mount::reply(message, flags, node, mode, ids, size, device))
    }

    /// The volume that is there for `source` and can be used as it is: one without device always, and one that this vfs has asked
    /// for without getting an answer. What an earlier vfs had mounted from a device is unmounted in its name; `EBUSY` when it was
    /// this one.
    fn mounted_already(&mut self, message: &Message, source: Source) -> Result<Option<usize>, Errno> {
        if self.volumes.get(0).is_some_and(|volume| volume.file_system.is_volatile()) {
            let number = source.minor as u32 as usize;
            return self.volumes.get(number).map(|_| Some(number)).ok_or(Errno::ENODEV);
        }
        let Some(number) = self.volumes.mounted_from(source) else { return Ok(None) };
        let Some(volume) = self.volumes.get(number) else { return Ok(None) };
        match (volume.owner == message.source, volume.incomplete) {
            (true, true) => return Ok(Some(number)),
            (true, false) => return Err(Errno::EBUSY),
            (false, _) => {}
        }
        let result = volume.file_system.unmount();
        self.volumes.remove(number);
        self.commit_part()?;
        result.map(|()| None)
    }

    fn mount_anew(&mut self, message: &Message, source: Source, read_only: bool) -> Result<usize, Errno> {
        let limit = self.preserved.as_ref().map_or(MAX_VOLUMES, Preserved::volumes);
        let number = self.volumes.free_number(limit)?;
        let place = self.preserved.as_ref().and_then(|preserved| preserved.mount_place(number));
        let memory = self.preserved.as_ref().and_then(|preserved| preserved.volume(number));
        let file_system = (self.mount)(&MountRequest { source, read_only, memo: None }, memory)?;
        let owner = message.source;
        let mut volume = Volume { file_system, source, owner, read_only, incomplete: true, place };
        volume.record();
        self.volumes.put(number, volume);
        self.commit_part()?;
        Ok(number)
    }

    pub(super) fn unmount(&mut self, message: &Message, request: Unmount) -> Result<Message, Errno> {
        let (file_system, _) = self.volumes.find(request.node)?;
        if file_system.is_busy() && !request.force {
            return Err(Errno::EBUSY);
        }
        file_system.unmount()?;
        if !file_system.is_volatile() {
            self.volumes.remove(volume_of(request.node));
        }
        Ok(message.reply(Ok(0)))
    }
}

/// Name of a service. `EINVAL` when no service can have it.
fn service_name(text: &[u8]) -> Result<Name, Errno> {
    core::str::from_utf8(text).ok().and_then(Name::new).ok_or(Errno::EINVAL)
}
