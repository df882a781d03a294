//! Reading and writing: read, write and their relatives, sendfile, getdents.
//!
//! Data of regular files and devices goes straight between the service and the program through a magic grant. Pipes are served at once.
//! Positions are moved before the file system has answered, so that programs which share an open file, or append, do not write
//! over each other; the answer corrects them.

use super::{Entry, call, done, task};
use crate::{
    calls::Flow,
    files::{permission::after_write, stat, vnode::NodeRef},
    keep::records::Note,
    mappings::exec::BUFFER_BYTES,
    memory as user,
    memory::buffer::UserBuffer,
    objects::{O_APPEND, O_DSYNC, Object, OpenFile},
    processes::Process,
    state::Vfs,
};
use abi::{Errno, chardev, fs, linux::nr};
use alloc::{rc::Rc, vec};
use sys::grant::{Access, GrantedBuffer, MagicGrant};

/// Most bytes of one request to a file system: others have their turn in between.
const CHUNK: u64 = 1 << 20;
/// Bytes of the buffer that sendfile copies through.
const SENDFILE_BYTES: usize = 64 * 1024;

pub(super) const CALLS: &[Entry] = &[
    call(nr::READ, |c| c.vfs.read(c.process, c.int(0), c.buffer(1)?, None)),
    call(nr::WRITE, |c| c.vfs.write(c.process, c.int(0), c.buffer(1)?, None)),
    call(nr::READV, |c| c.vfs.read(c.process, c.int(0), c.vector(1)?, None)),
    call(nr::WRITEV, |c| c.vfs.write(c.process, c.int(0), c.vector(1)?, None)),
    call(nr::PREAD64, |c| c.position(3).and_then(|at| c.vfs.read(c.process, c.int(0), c.buffer(1)?, at))),
    call(nr::PWRITE64, |c| c.position(3).and_then(|at| c.vfs.write(c.process, c.int(0), c.buffer(1)?, at))),
    call(nr::PREADV, |c| c.position(3).and_then(|at| c.vfs.read(c.process, c.int(0), c.vector(1)?, at))),
    call(nr::PWRITEV, |c| c.position(3).and_then(|at| c.vfs.write(c.process, c.int(0), c.vector(1)?, at))),
    call(nr::SENDFILE, |c| task(c.vfs.sendfile(c.process(), c.int(0), c.int(1), c.words[2], c.words[3]))),
    call(nr::GETDENTS64, |c| task(c.vfs.read_directory(c.process(), c.int(0), c.words[1], c.words[2], false))),
    call(nr::GETDENTS, |c| task(c.vfs.read_directory(c.process(), c.int(0), c.words[1], c.words[2], true))),
    call(nr::FSYNC, |c| c.vfs.sync_file(c.process, c.int(0))),
    call(nr::FDATASYNC, |c| c.vfs.sync_file(c.process, c.int(0))),
    call(nr::SYNCFS, |c| c.vfs.sync_file(c.process, c.int(0))),
    call(nr::FADVISE64, |c| c.vfs.advise(c.process, c.int(0))),
    call(nr::READAHEAD, |c| c.vfs.advise(c.process, c.int(0))),
    call(nr::SYNC_FILE_RANGE, |c| c.vfs.advise(c.process, c.int(0))),
];

impl Vfs {
    /// read, readv, and with a position pread64, preadv.
    pub fn read(
        &'static self,
        process: &Rc<Process>,
        descriptor: i32,
        buffer: UserBuffer,
        at: Option<u64>,
    ) -> Result<Flow, Errno> {
        let file = process.file(descriptor)?;
        file.readable()?;
        match &file.object {
            Object::Pipe { pipe, .. } => {
                no_position(at)?;
                self.read_pipe(process, pipe, buffer, file.nonblocking())
            }
            Object::Null(_) => Ok(Flow::Done(Ok(0))),
            Object::Node(node) if node.is_directory() => Err(Errno::EISDIR),
            Object::Node(node) => {
                let ended = at.unwrap_or_else(|| file.position.get()) >= node.size.get() && !node.mount.volatile;
                if buffer.left() == 0 || ended {
                    return Ok(Flow::Done(Ok(0)));
                }
                let node = node.clone();
                Ok(Flow::task(self.read_node(file, node, buffer, at)))
            }
            Object::Device { .. } => {
                no_position(at)?;
                let process = process.clone();
                Ok(Flow::task(self.move_device(process, file, buffer, Access::Write)))
            }
            Object::Block { .. } => Ok(Flow::task(async move { self.read_block(&file, buffer, at).await })),
            Object::Socket(socket) => {
                no_position(at)?;
                self.receive(process, &file, socket, buffer, 0)
            }
            Object::Timer(timer) => {
                no_position(at)?;
                self.read_timer(process, file.clone(), timer.clone(), buffer)
            }
            Object::Queue(_) => Err(Errno::EINVAL),
            Object::Path(_) => Err(Errno::EBADF),
        }
    }

    /// write, writev, and with a position pwrite64, pwritev.
    pub fn write(
        &'static self,
        process: &Rc<Process>,
        descriptor: i32,
        buffer: UserBuffer,
        at: Option<u64>,
    ) -> Result<Flow, Errno> {
        let file = process.file(descriptor)?;
        file.writable()?;
        match &file.object {
            Object::Pipe { pipe, .. } => {
                no_position(at)?;
                self.write_pipe(process, pipe, buffer, file.nonblocking(), false)
            }
            Object::Null(_) => Ok(Flow::Done(Ok(buffer.left()))),
            Object::Node(node) => {
                if buffer.left() == 0 {
                    return Ok(Flow::Done(Ok(0)));
                }
                let node = node.clone();
                Ok(Flow::task(self.write_node(process.clone(), file, node, buffer, at)))
            }
            Object::Device { .. } => {
                no_position(at)?;
                let process = process.clone();
                Ok(Flow::task(self.move_device(process, file, buffer, Access::Read)))
            }
            Object::Block { .. } => Ok(Flow::task(async move { self.write_block(&file, buffer, at).await })),
            Object::Socket(socket) => {
                no_position(at)?;
                self.send(process, &file, socket, buffer, 0)
            }
            Object::Queue(_) | Object::Timer(_) => Err(Errno::EINVAL),
            Object::Path(_) => Err(Errno::EBADF),
        }
    }

    async fn read_node(
        &self,
        file: Rc<OpenFile>,
        node: NodeRef,
        mut buffer: UserBuffer,
        at: Option<u64>,
    ) -> Result<u64, Errno> {
        let service = node.mount.service;
        let start = at.unwrap_or_else(|| file.position.get());
        let expected = start + buffer.left().min(node.size.get().saturating_sub(start));
        if at.is_none() {
            file.begin_transfer(expected);
        }
        let is_mapped = node.shared.get() != 0;
        let mut result = if is_mapped { self.write_back(&node, start, buffer.left()).await } else { Ok(()) };
        while buffer.left() > 0 && result.is_ok() {
            let piece = buffer.piece();
            let bytes = piece.bytes.min(CHUNK);
            let endpoint = service.endpoint();
            let grant = match MagicGrant::new(buffer.owner, piece.address, bytes, endpoint, Access::Write) {
                Ok(grant) => grant,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let position = start + buffer.moved();
            let request = fs::Read { node: node.node, grant: grant.id(), position, bytes };
            match self.ask(service, request.message()).await {
                Ok(reply) => buffer.advance(reply.words[0].min(bytes)),
                Err(error) => result = Err(error),
            }
            let short = buffer.moved() < position - start + bytes;
            if result.is_err() || short {
                break;
            }
        }
        if at.is_none() {
            file.end_transfer(expected, start + buffer.moved());
        }
        result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
    }

    async fn write_node(
        &self,
        process: Rc<Process>,
        file: Rc<OpenFile>,
        node: NodeRef,
        mut buffer: UserBuffer,
        at: Option<u64>,
    ) -> Result<u64, Errno> {
        let appends = file.flags.get() & O_APPEND != 0;
        let old_size = node.size.get();
        let start = if appends { append_at(&process, old_size) } else { at.unwrap_or_else(|| file.position.get()) };
        let expected = start.checked_add(buffer.left()).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        if at.is_none() {
            file.begin_transfer(expected);
        }
        node.size.set(old_size.max(expected));
        let ids = process.credentials().ids();
        let mut result = Ok(());
        let mut real_size = old_size;
        while buffer.left() > 0 {
            let is_mapped = node.shared.get() != 0;
            let bytes = buffer.piece().bytes.min(if is_mapped { BUFFER_BYTES } else { CHUNK });
            let position = start + buffer.moved();
            let written = if is_mapped {
                self.write_through(&node, &buffer, position, bytes, ids).await
            } else {
                self.write_directly(&node, &buffer, position, bytes, ids).await
            };
            match written {
                Ok((moved, size)) => {
                    buffer.advance(moved);
                    real_size = size;
                }
                Err(error) => result = Err(error),
            }
            let short = buffer.moved() < position - start + bytes;
            if result.is_err() || short {
                break;
            }
        }
        let end = start + buffer.moved();
        if node.size.get() == old_size.max(expected) {
            node.size.set(real_size.max(if result.is_ok() { end } else { 0 }));
        }
        let written = self.written(&process, &file, &node).await;
        // Last, in the turn that answers the call: until then it is done again from its start.
        if at.is_none() {
            file.end_transfer(expected, end);
        }
        written?;
        result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
    }

    /// A piece of a write, straight from the program. → bytes, new size.
    async fn write_directly(
        &self,
        node: &NodeRef,
        buffer: &UserBuffer,
        position: u64,
        bytes: u64,
        ids: u64,
    ) -> Result<(u64, u64), Errno> {
        let service = node.mount.service;
        let address = buffer.piece().address;
        let grant = MagicGrant::new(buffer.owner, address, bytes, service.endpoint(), Access::Read)?;
        let request = fs::Write { node: node.node, grant: grant.id(), position, bytes, ids };
        let reply = self.ask(service, request.message()).await?;
        Ok((reply.words[0].min(bytes), reply.words[1]))
    }

    /// What a write changes besides the data.
    async fn written(&self, process: &Process, file: &OpenFile, node: &NodeRef) -> Result<(), Errno> {
        node.mount.dirty.set(true);
        self.forget_image(node);
        let mode = after_write(&process.credentials(), node.mode.get());
        if mode != node.mode.get() {
            self.set_mode(node, mode).await?;
        }
        if file.flags.get() & O_DSYNC != 0 {
            self.sync_node(node).await?;
        }
        Ok(())
    }

    /// Reads from (the device may write the program's memory) or writes to a character device, one piece after the other
    /// as long as they are moved in full.
    async fn move_device(
        &self,
        process: Rc<Process>,
        file: Rc<OpenFile>,
        mut buffer: UserBuffer,
        access: Access,
    ) -> Result<u64, Errno> {
        let Object::Device { service, minor, .. } = file.object else { return Err(Errno::EBADF) };
        let flags = if file.nonblocking() { chardev::NONBLOCK } else { 0 };
        let caller = process.group.get() & 0xffff_ffff | process.session.get() << 32;
        if buffer.left() == 0 {
            return Ok(0);
        }
        if let Some(Note::Moved(moved)) = process.note.get() {
            buffer.advance_all(moved);
        }
        loop {
            let piece = buffer.piece();
            let bytes = piece.bytes.min(CHUNK);
            let grant = MagicGrant::new(buffer.owner, piece.address, bytes, service.endpoint(), access)?;
            let message = match access {
                Access::Read => chardev::Write { minor, grant: grant.id(), bytes, flags, caller }.message(),
                _ => chardev::Read { minor, grant: grant.id(), bytes, flags, caller }.message(),
            };
            match self.ask_device_once(&process, service, message, buffer.moved()).await {
                Ok(reply) => {
                    let moved = reply.words[0].min(bytes);
                    buffer.advance(moved);
                    self.store.has_moved();
                    // A terminal gives one line, however much was asked for.
                    if moved < bytes || buffer.left() == 0 || access == Access::Write {
                        return Ok(buffer.moved());
                    }
                    process.note(Note::Moved(buffer.moved()));
                }
                Err(error) => return buffer.moved_or(error),
            }
        }
    }

    /// getdents64; with `old` getdents.
    pub async fn read_directory(
        &self,
        process: Rc<Process>,
        descriptor: i32,
        address: u64,
        bytes: u64,
        old: bool,
    ) -> Result<u64, Errno> {
        let file = process.file(descriptor)?;
        file.usable()?;
        let Object::Node(node) = &file.object else { return Err(Errno::ENOTDIR) };
        if !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if node.links.get() == 0 {
            return Err(Errno::ENOENT);
        }
        let service = node.mount.service;
        let bytes = (bytes as u32 as u64).min(CHUNK);
        let position = file.position.get();
        if !old {
            let grant = MagicGrant::new(process.endpoint, address, bytes, service.endpoint(), Access::Write)?;
            let request = fs::GetDents { node: node.node, grant: grant.id(), position, bytes };
            let reply = self.ask(service, request.message()).await?;
            file.set_position(fs::GetDents::results(&reply)?);
            return Ok(reply.words[0]);
        }
        let room = GrantedBuffer::new(vec![0; bytes as usize], service.endpoint(), Access::Write)?;
        let request = fs::GetDents { node: node.node, grant: room.id(), position, bytes };
        let reply = self.ask(service, request.message()).await?;
        let mut records = room.take();
        records.truncate(reply.words[0] as usize);
        stat::make_old_dirents(&mut records);
        user::store(process.endpoint, address, &records)?;
        file.set_position(fs::GetDents::results(&reply)?);
        Ok(records.len() as u64)
    }

    /// fsync and its relatives.
    fn sync_file(&'static self, process: &Process, descriptor: i32) -> Result<Flow, Errno> {
        let file = process.file(descriptor)?;
        file.usable()?;
        let node = file.node().cloned().ok_or(Errno::EINVAL)?;
        task(async move {
            self.sync_node(&node).await?;
            Ok(0)
        })
    }

    /// Advice, which changes nothing here.
    fn advise(&self, process: &Process, descriptor: i32) -> Result<Flow, Errno> {
        match process.file(descriptor)?.object {
            Object::Pipe { .. } => Err(Errno::ESPIPE),
            _ => done(Ok(0)),
        }
    }

    /// sendfile from a regular file to a regular file. `EINVAL` for everything else: programs then read and write themselves.
    pub async fn sendfile(
        &self,
        process: Rc<Process>,
        to: i32,
        from: i32,
        offset_address: u64,
        bytes: u64,
    ) -> Result<u64, Errno> {
        let (to, from) = (process.file(to)?, process.file(from)?);
        to.writable()?;
        from.readable()?;
        let (Object::Node(target), Object::Node(source)) = (&to.object, &from.object) else {
            return Err(Errno::EINVAL);
        };
        if !source.is_regular() || to.flags.get() & O_APPEND != 0 {
            return Err(Errno::EINVAL);
        }
        let offset = match offset_address {
            0 => None,
            address => Some(user::fetch_words::<1>(process.endpoint, address)?[0]),
        };
        let start = offset.unwrap_or_else(|| from.position.get());
        if start > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        let (bytes, ids) = (bytes.min(user::MAX_TRANSFER), process.credentials().ids());
        let moved = self.copy_data(source, start, target, to.position.get(), bytes, ids).await?;
        let end = to.position.get() + moved;
        self.written(&process, &to, target).await?;
        to.set_position(end);
        match offset {
            None => from.set_position(start + moved),
            Some(_) => user::store(process.endpoint, offset_address, &(start + moved).to_le_bytes())?,
        }
        Ok(moved)
    }

    /// Copies between two files through a buffer of vfs. What was copied before an error counts more than the error.
    async fn copy_data(
        &self,
        from: &NodeRef,
        from_position: u64,
        to: &NodeRef,
        to_position: u64,
        bytes: u64,
        ids: u64,
    ) -> Result<u64, Errno> {
        let mut moved = 0;
        while moved < bytes {
            let wanted = (bytes - moved).min(SENDFILE_BYTES as u64) as usize;
            let step = match self.read_into(from, from_position + moved, wanted).await {
                Ok(data) if data.is_empty() => break,
                Ok(data) => self.write_from(to, to_position + moved, data, ids).await,
                Err(error) => Err(error),
            };
            match step {
                Ok(written) => {
                    moved += written;
                    if written < wanted as u64 {
                        break;
                    }
                }
                Err(error) if moved == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(moved)
    }

    /// Reads from a file into memory of vfs; less than asked for at its end.
    pub async fn read_into(&self, node: &NodeRef, position: u64, bytes: usize) -> Result<alloc::vec::Vec<u8>, Errno> {
        self.write_back(node, position, bytes as u64).await?;
        let service = node.mount.service;
        let room = GrantedBuffer::new(vec![0; bytes], service.endpoint(), Access::Write)?;
        let request = fs::Read { node: node.node, grant: room.id(), position, bytes: bytes as u64 };
        let reply = self.ask(service, request.message()).await?;
        let mut data = room.take();
        data.truncate(reply.words[0] as usize);
        Ok(data)
    }

    async fn write_from(
        &self,
        node: &NodeRef,
        position: u64,
        data: alloc::vec::Vec<u8>,
        ids: u64,
    ) -> Result<u64, Errno> {
        let service = node.mount.service;
        let bytes = data.len() as u64;
        let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
        let request = fs::Write { node: node.node, grant: lent.id(), position, bytes, ids };
        let reply = self.ask(service, request.message()).await?;
        node.size.set(reply.words[1]);
        let mut data = lent.take();
        data.truncate(reply.words[0] as usize);
        self.update_map(node, position, data, reply.words[1])?;
        Ok(reply.words[0])
    }
}

fn no_position(at: Option<u64>) -> Result<(), Errno> {
    if at.is_some() { Err(Errno::ESPIPE) } else { Ok(()) }
}

/// Where an appending write begins: at the end, or where it began when a predecessor did it.
fn append_at(process: &Process, size: u64) -> u64 {
    match process.note.get() {
        Some(Note::Start(start)) => start,
        _ => {
            process.note(Note::Start(size));
            size
        }
    }
}
