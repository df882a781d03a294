//! From messages of the fs protocol to calls of `FileSystem`, and back. The file is long because each request has a function.
//!
//! One request runs at a time, from its start to its end, on blocks that are in the cache. One that misses a block is undone, waits in
//! `Waiting`, and runs again when the block has arrived; others run meanwhile. So there is no lock, and no request sees half of another.
//! Only vfs may ask. The replies that describe a node count one user more for it. Changes are written down when vfs asks for it (`Sync`).
//!
//! * `waiting`: requests that have missed a block;
//! * `copying`: copies between files;
//! * `once`: executes each request exactly once, however often the process dies;
//! * `mounting`: mounting, unmounting, resuming the volumes of the previous incarnation;
//! * `xattrs`: extended attributes.

mod copying;
mod mounting;
mod once;
mod waiting;
mod xattrs;

use alloc::vec::Vec;

use abi::endpoint::slot;
use abi::fs::{
    ALLOCATE_CHECK, ALLOCATE_FILL, ALLOCATE_PUNCH, ALLOCATE_ZERO, Allocate, ChMod, ChOwn, Create, GetDents, Handle,
    LINK_OTHER, Link, Lookup, Mount, OpenHandle, PUT_ALL_MOST, Put, PutAll, RENAME_EXCHANGE, RENAME_WHITEOUT, Read,
    ReadLink, Recall, Rename, Request, SeekData, SetTimes, SetUses, ShortName, Stat, StatFs, Symlink, Sync, Truncate,
    Unlink, UnlinkUnused, Unmount, Use, Write,
};
use abi::{Endpoint, Errno, GrantId, Message, Word};
use server::{Service, SyncStep};
use sys::{copy, time};

use crate::block_client::Drivers;
use crate::device::{Blocking, Source};
use crate::file_system::{
    Allocation, Attributes, Caller, FileSystem, NAME_MAX, NewTimes, NodeId, Reader, S_IFDIR, S_IFMT, Timestamp,
};
use crate::linux::{self, Dirents};
use crate::preserve::{Preserved, VolumeMemory};
use crate::transfer::{GrantSink, GrantSource, Granted, NameBuffer};
use crate::volumes::{Volume, Volumes, node_of, volume_of};
use once::fetch_uses;
use waiting::{Progress, Waiting};

/// Longest target of a symbolic link, in bytes.
const TARGET_MAX: usize = 4095;
/// Limit of directory records in one reply, in bytes.
const DIRENT_BYTES: usize = 32 * 1024;
/// Limit of one read or write, in bytes.
const TRANSFER_BYTES: u64 = 0x7fff_f000;
/// Limit of one transaction of a write, in bytes: what a write that misses a block has to repeat.
const WRITE_BYTES: u64 = 256 * 1024;

/// `SetTimes`: keep this time.
const LEAVE: u64 = u64::MAX;
/// `SetTimes`: set this time to now.
const SET_NOW: u64 = u64::MAX - 1;

/// The arguments of a mount.
#[derive(Clone, Copy, Debug)]
pub struct MountRequest {
    /// The device.
    pub source: Source,
    /// Whether to mount read-only.
    pub read_only: bool,
    /// `FileSystem::memo` of the previous incarnation, which had the volume mounted and left its state in the memory.
    pub memo: Option<[u64; 4]>,
}

/// Serves the fs protocol for file systems of one kind. `server::run` runs it.
pub struct Server<F, M> {
    volumes: Volumes<F>,
    mount: M,
    names: NameBuffer,
    dirents: Vec<u8>,
    /// State that outlives the process; `None` for file systems without such state.
    preserved: Option<Preserved>,
    /// Whether the devices have what a predecessor had changed.
    has_caught_up: bool,
    /// Requests that have missed a block.
    waiting: Waiting,
    /// Whether reads block.
    blocking: Blocking,
    /// The drivers of the devices; `None` for file systems that have none.
    drivers: Option<Drivers>,
}

impl<F, M> Service for Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        let reply = self.answer(message);
        self.go_on();
        reply.into()
    }

    fn notified(&mut self, from: Endpoint) {
        if let Some(drivers) = &self.drivers {
            drivers.peers().notified(from);
            self.go_on();
        }
        if from.slot() == slot::RS && self.waiting.is_empty() {
            self.volumes.iter_mut().for_each(F::trim);
        }
    }
}

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    /// Returns a server without volumes; `mount` mounts a file system from a device.
    pub fn new(mount: M) -> Self {
        let names = NameBuffer::new(NAME_MAX + 1 + TARGET_MAX);
        let (waiting, blocking) = Default::default();
        let (volumes, dirents) = (Volumes::new(), Vec::new());
        Server {
            volumes,
            mount,
            names,
            dirents,
            preserved: None,
            has_caught_up: false,
            waiting,
            blocking,
            drivers: None,
        }
    }

    /// Returns a server of file systems without device, mounted from the start: a successor knows the nodes that vfs has without another
    /// mount. A mount chooses one by the low half of its minor.
    pub fn mounted(file_systems: impl IntoIterator<Item = F>, mount: M) -> Self {
        let mut server = Self::new(mount);
        for (number, file_system) in file_systems.into_iter().enumerate() {
            let source = Source { service: None, minor: number as u64 };
            let owner = Endpoint::NONE;
            let volume = Volume { file_system, source, owner, read_only: false, incomplete: false, place: None };
            server.volumes.put(number, volume);
        }
        server
    }

    /// Executes a request, once per tag, and returns the reply. `EPERM` if it is not from vfs, `ENOSYS` if it is no request of the
    /// protocol, `EIO` if two incarnations crashed executing it. `None` if it waits for a block: [`Server::go_on`] replies later.
    pub fn answer(&mut self, message: &Message) -> Option<Message> {
        if message.source.slot() != slot::VFS || message.is_reply() {
            return self.hear(message);
        }
        self.waiting.forget_others(message.source);
        if waits_for_blocks(message.label) {
            return self.while_blocking(|server| server.attempt(message, Progress::default()));
        }
        self.attempt(message, Progress::default())
    }

    /// Executes a request whose first `done` bytes have been moved.
    fn perform(&mut self, message: &Message, done: &mut u64) -> Message {
        match Request::decode(message) {
            Some(request) => self.dispatch(message, request, done).unwrap_or_else(|error| message.reply(Err(error))),
            None => message.reply(Err(Errno::ENOSYS)),
        }
    }

    /// Writes the dirty blocks of all volumes.
    fn sync(&mut self) -> Result<(), Errno> {
        // Every volume is written, even after one has failed.
        let mut result = Ok(());
        for file_system in self.volumes.iter_mut() {
            result = result.and(file_system.sync());
        }
        result
    }

    fn dispatch(&mut self, message: &Message, request: Request, done: &mut u64) -> Result<Message, Errno> {
        match request {
            Request::Lookup(request) => self.lookup(message, request),
            Request::Read(request) => self.read(message, request, done),
            Request::Write(request) => self.write(message, request, done),
            Request::Put(request) => self.put(message, request),
            Request::PutAll(request) => self.put_all(message, request),
            Request::GetDents(request) => self.get_dents(message, request),
            Request::Stat(request) => self.stat(message, request),
            Request::Create(request) => self.create(message, request),
            Request::Unlink(request) => self.unlink(message, request),
            Request::UnlinkUnused(request) => self.unlink_unused(message, request),
            Request::Symlink(request) => self.symlink(message, request),
            Request::ReadLink(request) => self.read_link(message, request),
            Request::Link(request) => self.link(message, request),
            Request::Rename(request) => self.rename(message, request),
            Request::Truncate(Truncate { node, size }) => self.simple(message, node, |f, node| f.truncate(node, size)),
            Request::Allocate(request) => self.allocate(message, request),
            Request::CopyRange(request) => self.copy_range(message, request, done),
            Request::GetXattr(request) => self.get_xattr(message, request),
            Request::SetXattr(request) => self.set_xattr(message, request),
            Request::RemoveXattr(request) => self.remove_xattr(message, request),
            Request::ListXattr(request) => self.list_xattr(message, request),
            Request::SeekData(request) => self.seek_data(message, request),
            Request::Handle(request) => self.handle(message, request),
            Request::OpenHandle(request) => self.open_handle(message, request),
            Request::ChMod(request) => self.change_mode(message, request),
            Request::ChOwn(request) => self.change_owner(message, request),
            Request::SetTimes(request) => self.set_times(message, request),
            Request::StatFs(request) => self.stat_fs(message, request),
            Request::Mount(request) => self.mount(message, request),
            Request::Unmount(request) => self.unmount(message, request),
            Request::Sync(_) => self.sync().map(|()| message.reply(Ok(0))),
            Request::SetUses(request) => self.set_uses(message, request),
            Request::Recall(_) => self.recall(message).ok_or(Errno::ENOENT),
        }
    }

    /// Executes a request about one node whose reply has no results.
    fn simple(
        &mut self,
        message: &Message,
        node: u64,
        act: impl FnOnce(&mut F, NodeId) -> Result<(), Errno>,
    ) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(node)?;
        act(file_system, node)?;
        Ok(message.reply(Ok(0)))
    }

    fn lookup(&mut self, message: &Message, request: Lookup) -> Result<Message, Errno> {
        let name = fetch_name(&mut self.names, message, request.grant, request.bytes)?;
        let (file_system, dir) = self.volumes.find(request.directory)?;
        let node = file_system.lookup(dir, name)?;
        let attributes = file_system.attributes(node)?;
        let stat = linux::stat(&attributes);
        if request.room >= stat.len() as u64 {
            let to = granted(message, request.grant);
            copy::to_grant(to.granter, to.grant, 0, &stat)?;
        }
        file_system.get(node)?;
        let (node, mode, ids, size, device) = describe(volume_of(request.directory), &attributes);
        Ok(Lookup::reply(message, 0, node, mode, ids, size, device))
    }

    fn handle(&mut self, message: &Message, request: Handle) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let generation = file_system.generation(node)?;
        Ok(Handle::reply(message, 0, node, generation.into()))
    }

    fn open_handle(&mut self, message: &Message, request: OpenHandle) -> Result<Message, Errno> {
        let (file_system, _) = self.volumes.find(request.root)?;
        let generation = u32::try_from(request.generation).map_err(|_| Errno::ESTALE)?;
        let node = file_system.by_handle(request.inode, generation)?;
        let attributes = use_node(file_system, node)?;
        let (node, mode, ids, size, device) = describe(volume_of(request.root), &attributes);
        Ok(OpenHandle::reply(message, 0, node, mode, ids, size, device))
    }

    fn create(&mut self, message: &Message, request: Create) -> Result<Message, Errno> {
        if request.bytes == 0 {
            return self.create_nameless(message, request);
        }
        let short = ShortName::from_words(request.name, request.bytes);
        let name = sent_name(&short, &mut self.names, message, request.name, request.bytes)?;
        let (file_system, dir) = self.volumes.find(request.directory)?;
        let (mode, caller) = (request.mode as u32, caller(request.ids));
        let node = if mode & S_IFMT == S_IFDIR {
            file_system.make_dir(dir, name, mode, caller)?
        } else {
            file_system.make_node(dir, name, mode, request.device, caller)?
        };
        let attributes = use_node(file_system, node)?;
        let (node, mode, ids, size, device) = describe(volume_of(request.directory), &attributes);
        Ok(Create::reply(message, 0, node, mode, ids, size, device))
    }

    fn create_nameless(&mut self, message: &Message, request: Create) -> Result<Message, Errno> {
        let (file_system, dir) = self.volumes.find(request.directory)?;
        let node = file_system.make_nameless(dir, request.mode as u32, caller(request.ids))?;
        let attributes = file_system.attributes(node)?;
        let (node, mode, ids, size, device) = describe(volume_of(request.directory), &attributes);
        Ok(Create::reply(message, 0, node, mode, ids, size, device))
    }

    fn put(&mut self, message: &Message, request: Put) -> Result<Message, Errno> {
        let count = u32::try_from(request.count).map_err(|_| Errno::EINVAL)?;
        self.simple(message, request.node, |file_system, node| file_system.put(node, count))
    }

    fn put_all(&mut self, message: &Message, request: PutAll) -> Result<Message, Errno> {
        if request.bytes > (PUT_ALL_MOST * size_of::<Use>()) as u64 {
            return Err(Errno::EINVAL);
        }
        for one in fetch_uses(message, request.grant, request.bytes)? {
            let (file_system, node) = self.volumes.find(one.node)?;
            match file_system.put(node, u32::try_from(one.count).map_err(|_| Errno::EINVAL)?) {
                Err(Errno::EAGAIN) => return Err(Errno::EAGAIN),
                Err(error) => sys::log!("uses of node {:#x} not dropped: {error}", one.node),
                Ok(()) => {}
            }
        }
        Ok(message.reply(Ok(0)))
    }

    /// Continues a read after `done` bytes. An error after some bytes ends the read there.
    fn read(&mut self, message: &Message, request: Read, done: &mut u64) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let bytes = request.bytes.min(TRANSFER_BYTES) - *done;
        let mut sink = GrantSink::new(granted(message, request.grant), *done);
        let position = request.position.saturating_add(*done);
        match file_system.read(node, position, bytes as usize, &mut sink) {
            Ok(more) => {
                if request.kept {
                    file_system.forget_content(node, position, more);
                }
                *done += more as u64;
            }
            Err(error) if *done == 0 => return Err(error),
            Err(_) => {}
        }
        Ok(Read::reply(message, *done, file_system.take_accessed().map_or(u64::MAX, linux::nanoseconds)))
    }

    /// Continues a write after `done` bytes, in transactions of `WRITE_BYTES`; the last one is committed with the reply.
    fn write(&mut self, message: &Message, request: Write, done: &mut u64) -> Result<Message, Errno> {
        let (bytes, writer) =
            (request.bytes.min(TRANSFER_BYTES), Caller { write: message.tag(), ..caller(request.ids) });
        loop {
            let (file_system, node) = self.volumes.find(request.node)?;
            let piece = (bytes - *done).min(WRITE_BYTES);
            let mut source = GrantSource::new(granted(message, request.grant), *done);
            let position = request.position.saturating_add(*done);
            let more = match file_system.write(node, position, piece as usize, &mut source, writer) {
                Ok(more) => more as u64,
                Err(error) if *done == 0 => return Err(error),
                Err(_) => 0,
            };
            if more < piece || *done + more == bytes {
                file_system.set_written(node, request.written_ns)?;
                return Ok(Write::reply(message, *done + more, file_system.size(node)?));
            }
            self.commit_part()?;
            *done += more;
        }
    }

    fn get_dents(&mut self, message: &Message, request: GetDents) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let limit = request.bytes.min(DIRENT_BYTES as u64) as usize;
        let mut dirents = Dirents::new(core::mem::take(&mut self.dirents), limit)?;
        let listed = file_system.read_dir(node, request.position, &mut dirents);
        let accessed_ns = file_system.take_accessed().map_or(u64::MAX, linux::nanoseconds);
        let to = granted(message, request.grant);
        let result = listed.and_then(|position| {
            if dirents.is_too_small() {
                return Err(Errno::EINVAL);
            }
            copy::to_grant(to.granter, to.grant, 0, dirents.records())?;
            Ok(GetDents::reply(message, dirents.records().len() as u64, position, accessed_ns))
        });
        self.dirents = dirents.into_buffer();
        result
    }

    fn symlink(&mut self, message: &Message, request: Symlink) -> Result<Message, Errno> {
        let from = granted(message, request.grant);
        let (name, target) = self.names.fetch_two(from, request.name_bytes, request.target_bytes)?;
        check_name(name)?;
        if target.len() > TARGET_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let (file_system, dir) = self.volumes.find(request.directory)?;
        file_system.make_symlink(dir, name, target, caller(request.ids))?;
        Ok(message.reply(Ok(0)))
    }

    fn read_link(&mut self, message: &Message, request: ReadLink) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let target = self.names.whole();
        let limit = request.bytes.min(target.len() as u64) as usize;
        let len = file_system.read_link_for(node, reader(request.reader), &mut target[..limit])?;
        let to = granted(message, request.grant);
        copy::to_grant(to.granter, to.grant, 0, &target[..len])?;
        let (pid, descriptor) = file_system.process_behind(node).unwrap_or((0, LINK_OTHER));
        Ok(ReadLink::reply(message, len as u64, pid.into(), descriptor))
    }

    fn link(&mut self, message: &Message, request: Link) -> Result<Message, Errno> {
        let name = fetch_name(&mut self.names, message, request.grant, request.bytes)?;
        let (file_system, dir, node) = self.volumes.find_two(request.directory, request.node)?;
        file_system.link(dir, name, node, Caller::default())?;
        Ok(message.reply(Ok(0)))
    }

    fn unlink(&mut self, message: &Message, request: Unlink) -> Result<Message, Errno> {
        let short = ShortName::from_words(request.name, request.bytes);
        let name = sent_name(&short, &mut self.names, message, request.name, request.bytes)?;
        let (file_system, dir, node) = self.volumes.find_two(request.directory, request.node)?;
        let uses = u32::try_from(request.uses).map_err(|_| Errno::EINVAL)?;
        if request.directory_wanted {
            file_system.remove_dir(dir, name)?;
        } else {
            file_system.unlink(dir, name)?;
        }
        if uses > 0
            && let Err(error) = file_system.put(node, uses)
            && error != Errno::EAGAIN
        {
            // The name is gone. As after a `Put` that fails the node stays until the file system is mounted again.
            sys::log!("node {:#x} has lost its name and is not freed: {error}", request.node);
        }
        Ok(message.reply(Ok(0)))
    }

    fn unlink_unused(&mut self, message: &Message, request: UnlinkUnused) -> Result<Message, Errno> {
        let short = ShortName::from_words(request.name, request.bytes);
        let name = sent_name(&short, &mut self.names, message, request.name, request.bytes)?;
        let (file_system, dir) = self.volumes.find(request.directory)?;
        let node = file_system.unlink_unused(dir, name)?;
        Ok(UnlinkUnused::reply(message, 0, node.map_or(0, |node| node_of(volume_of(request.directory), node))))
    }

    fn rename(&mut self, message: &Message, request: Rename) -> Result<Message, Errno> {
        let from = granted(message, request.grant);
        let (old_name, new_name) = self.names.fetch_two(from, request.old_bytes, request.new_bytes)?;
        check_name(old_name)?;
        check_name(new_name)?;
        let (file_system, old, new) = self.volumes.find_two(request.old_directory, request.new_directory)?;
        match request.flags {
            0 => file_system.rename(old, old_name, new, new_name, Caller::default())?,
            RENAME_EXCHANGE => file_system.exchange(old, old_name, new, new_name)?,
            RENAME_WHITEOUT => {
                let mut ids = [0; 8];
                copy::from_grant(from.granter, from.grant, request.old_bytes + request.new_bytes, &mut ids)?;
                let owner = caller(u64::from_le_bytes(ids));
                file_system.rename_leaving_whiteout(old, old_name, new, new_name, owner)?;
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(message.reply(Ok(0)))
    }

    fn allocate(&mut self, message: &Message, request: Allocate) -> Result<Message, Errno> {
        let how = match request.mode {
            ALLOCATE_FILL => Allocation::Fill,
            ALLOCATE_CHECK => Allocation::FillAndCheck,
            ALLOCATE_PUNCH => Allocation::Punch,
            ALLOCATE_ZERO => Allocation::Zero,
            _ => return Err(Errno::EINVAL),
        };
        let Allocate { node, offset, bytes, .. } = request;
        self.simple(message, node, |file_system, node| file_system.allocate(node, offset, bytes, how))
    }

    fn seek_data(&mut self, message: &Message, request: SeekData) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let (found, position) = file_system.seek_data(node, request.position, request.hole)?;
        Ok(SeekData::reply(message, found.into(), position))
    }

    fn stat(&mut self, message: &Message, request: Stat) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let bytes = linux::stat(&file_system.attributes(node)?);
        let to = granted(message, request.grant);
        copy::to_grant(to.granter, to.grant, 0, &bytes)?;
        Ok(message.reply(Ok(0)))
    }

    fn stat_fs(&mut self, message: &Message, request: StatFs) -> Result<Message, Errno> {
        let (file_system, _) = self.volumes.find(request.node)?;
        let bytes = linux::statfs(&file_system.statistics());
        let to = granted(message, request.grant);
        copy::to_grant(to.granter, to.grant, 0, &bytes)?;
        Ok(message.reply(Ok(0)))
    }

    fn change_mode(&mut self, message: &Message, request: ChMod) -> Result<Message, Errno> {
        self.change_attributes(message, request.node, |f, node| f.set_mode(node, request.mode as u32))
    }

    fn change_owner(&mut self, message: &Message, request: ChOwn) -> Result<Message, Errno> {
        let half = |id: u32| (id != u32::MAX).then_some(id);
        let (uid, gid) = (half(request.ids as u32), half((request.ids >> 32) as u32));
        self.change_attributes(message, request.node, |f, node| f.set_owner(node, uid, gid))
    }

    fn set_times(&mut self, message: &Message, request: SetTimes) -> Result<Message, Errno> {
        let times = NewTimes { accessed: new_time(request.accessed_ns), modified: new_time(request.modified_ns) };
        self.change_attributes(message, request.node, |f, node| f.set_times(node, times))
    }

    /// Executes a change of a node's attributes, and replies what they are since.
    fn change_attributes(
        &mut self,
        message: &Message,
        node: u64,
        change: impl FnOnce(&mut F, NodeId) -> Result<(), Errno>,
    ) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(node)?;
        change(file_system, node)?;
        let attributes = file_system.attributes(node)?;
        let (_, mode, ..) = describe(0, &attributes);
        let times = [attributes.accessed, attributes.modified, attributes.changed];
        let [accessed, modified, changed] = times.map(linux::nanoseconds);
        // The replies to all three have the same form.
        Ok(ChMod::reply(message, 0, mode, attributes.blocks, accessed, modified, changed))
    }
}

/// Whether a request changes what is mounted, or concerns a whole file system: it is done in one go, and waits for each block, with
/// everything else.
fn waits_for_blocks(label: u32) -> bool {
    matches!(label, Mount::LABEL | Unmount::LABEL | Sync::LABEL | SetUses::LABEL | Recall::LABEL)
}

fn granted(message: &Message, grant: GrantId) -> Granted {
    Granted { granter: message.source, grant }
}

/// The component in two words of a request: itself, if it is `short`, or in the grant that they tell. Errors as of `fetch_name`.
fn sent_name<'a>(
    short: &'a Option<ShortName>,
    names: &'a mut NameBuffer,
    message: &Message,
    name: u64,
    bytes: u64,
) -> Result<&'a [u8], Errno> {
    match short {
        Some(short) => check_name(short.text()).map(|()| short.text()),
        None => fetch_name(names, message, GrantId::from_word(name), bytes),
    }
}

/// The component that a grant holds. `ENOENT` when it is empty, `ENAMETOOLONG`, `EINVAL` with a `/` or NUL in it.
fn fetch_name<'a>(names: &'a mut NameBuffer, message: &Message, grant: GrantId, bytes: u64) -> Result<&'a [u8], Errno> {
    if bytes > NAME_MAX as u64 {
        return Err(Errno::ENAMETOOLONG);
    }
    let name = names.fetch(granted(message, grant), bytes)?;
    check_name(name)?;
    Ok(name)
}

fn check_name(name: &[u8]) -> Result<(), Errno> {
    match name.len() {
        0 => Err(Errno::ENOENT),
        1..=NAME_MAX if name.iter().any(|&byte| byte == b'/' || byte == 0) => Err(Errno::EINVAL),
        1..=NAME_MAX => Ok(()),
        _ => Err(Errno::ENAMETOOLONG),
    }
}

fn use_node<F: FileSystem>(file_system: &mut F, node: NodeId) -> Result<Attributes, Errno> {
    file_system.get(node)?;
    file_system.attributes(node)
}

/// Node, mode and links, ids, size and device as replies have them.
fn describe(volume: usize, attributes: &Attributes) -> (u64, u64, u64, u64, u64) {
    let mode = u64::from(attributes.mode) | u64::from(attributes.links) << 32;
    let ids = u64::from(attributes.uid) | u64::from(attributes.gid) << 32;
    (node_of(volume, attributes.node), mode, ids, attributes.size, attributes.device)
}

fn reader(word: u64) -> Reader {
    Reader { pid: word as u32, thread: Endpoint((word >> 32) as u32) }
}

fn caller(ids: u64) -> Caller {
    Caller { uid: ids as u32, gid: (ids >> 32) as u32, write: 0 }
}

fn new_time(ns: u64) -> Option<Timestamp> {
    match ns {
        LEAVE => None,
        SET_NOW => Some(linux::timestamp(time::real_ns())),
        ns => Some(linux::timestamp(ns)),
    }
}
