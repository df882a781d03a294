//! Reading and writing: read, write and their relatives, fsync, getdents. What moves bytes between descriptors is in `splice`.
//!
//! What a read or write does is up to the object behind the descriptor: see `objects`.

use super::{Entry, call, call::Call, done, task};
use crate::{
    base::{Base, Flow},
    callers::permission::{S_IFBLK, S_IFDIR, S_IFREG},
    files::{Files, stat, vnode::NodeRef, watches::flag},
    mappings::Mappings,
    memory as user,
    memory::buffer::UserBuffer,
    objects::{
        O_APPEND, O_DSYNC, OpenFile, Operation,
        block::{self, Block},
        directory::Directory,
        eventfd::EventCounter,
        pipe::PipeEnd,
        regular::Regular,
        socket::SocketFile,
    },
    peers::Peers,
    processes::Process,
};
use abi::{Errno, Message, fs, linux::nr};
use alloc::rc::Rc;
use sys::{
    fallible::filled,
    grant::{Access, GrantedBuffer, MagicGrant},
};

/// At most so many bytes a request to a file system, so that other requests get in between.
const CHUNK: u64 = 1 << 20;
/// The most that an old getdents returns at once, because it goes through memory of vfs.
const OLD_DIRENTS_BYTES: u64 = 32 * 1024;

pub(super) const CALLS: &[Entry] = &[
    call(nr::READ, |c| read(c, Memory::Buffer, None)),
    call(nr::WRITE, |c| write(c, Memory::Buffer, None)),
    call(nr::READV, |c| read(c, Memory::Vector, None)),
    call(nr::WRITEV, |c| write(c, Memory::Vector, None)),
    call(nr::PREAD64, |c| c.position(3).and_then(|at| read(c, Memory::Buffer, at))),
    call(nr::PWRITE64, |c| c.position(3).and_then(|at| write(c, Memory::Buffer, at))),
    call(nr::PREADV, |c| c.position(3).and_then(|at| read(c, Memory::Vector, at))),
    call(nr::PWRITEV, |c| c.position(3).and_then(|at| write(c, Memory::Vector, at))),
    call(nr::GETDENTS64, |c| {
        task(read_directory(c.files(), c.peers(), c.process(), (c.int(0), c.words[1], c.words[2]), false))
    }),
    call(nr::GETDENTS, |c| {
        task(read_directory(c.files(), c.peers(), c.process(), (c.int(0), c.words[1], c.words[2]), true))
    }),
    call(nr::PREADV2, read_flagged),
    call(nr::PWRITEV2, write_flagged),
    call(nr::FSYNC, |c| sync_file(c.base(), c.process.file(c.int(0))?)),
    call(nr::FDATASYNC, |c| sync_file(c.base(), c.process.file(c.int(0))?)),
    call(nr::SYNCFS, |c| sync_file_system(c.mappings(), c.process, c.int(0))),
    call(nr::FADVISE64, |c| advise(c.process, c.int(0), c.words[2] as i64, c.flags(3))),
    call(nr::READAHEAD, |c| read_ahead(c.process, c.int(0))),
    call(nr::SYNC_FILE_RANGE, sync_range),
];

/// Flags of preadv2 and pwritev2. `HIPRI` is a hint.
mod rwf {
    pub const HIPRI: u32 = 1;
    pub const DSYNC: u32 = 2;
    pub const SYNC: u32 = 4;
    pub const NOWAIT: u32 = 8;
    pub const APPEND: u32 = 16;
}

/// The position of preadv2 and pwritev2; -1: the file's own.
fn position_or_own(call: &Call) -> Result<Option<u64>, Errno> {
    if call.words[3] == u64::MAX { Ok(None) } else { call.position(3) }
}

/// The flags of preadv2 and pwritev2. `EOPNOTSUPP`: unknown ones, or `RWF_NOWAIT` on what has none: only pipes and sockets do.
pub(super) fn check_flags(flags: u32, file: &OpenFile) -> Result<(), Errno> {
    let known = rwf::HIPRI | rwf::DSYNC | rwf::SYNC | rwf::NOWAIT | rwf::APPEND;
    let hurries = file.object::<PipeEnd>().is_some() || file.object::<SocketFile>().is_some();
    let refused = flags & !known != 0 || flags & rwf::NOWAIT != 0 && !hurries;
    if refused { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

/// preadv2.
fn read_flagged(call: &Call) -> Result<Flow, Errno> {
    let at = position_or_own(call)?;
    let (file, mut buffer) = to_read(call, Memory::Vector, at)?;
    let on = Operation { base: call.base(), caller: &call.process.caller, file: &file };
    check_flags(call.flags(5), &file)?;
    read_with(&on, &mut buffer, at, call.flags(5))
}

/// Reads with flags that [`check_flags`] has allowed.
pub(super) fn read_with(on: &Operation, buffer: &mut UserBuffer, at: Option<u64>, flags: u32) -> Result<Flow, Errno> {
    match flags & rwf::NOWAIT {
        0 => on.file.any().read(on, buffer, at),
        _ => on.file.any().read_now(on, buffer, at),
    }
}

/// pwritev2.
fn write_flagged(call: &Call) -> Result<Flow, Errno> {
    let at = position_or_own(call)?;
    let (file, mut buffer) = to_write(call, Memory::Vector, at)?;
    let on = Operation { base: call.base(), caller: &call.process.caller, file: &file };
    check_flags(call.flags(5), &file)?;
    write_with(&on, &mut buffer, at, call.flags(5))
}

/// Writes with flags that [`check_flags`] has allowed.
pub(super) fn write_with(on: &Operation, buffer: &mut UserBuffer, at: Option<u64>, flags: u32) -> Result<Flow, Errno> {
    let file = on.file;
    let status = |bits: u32, flag: u32| if flags & bits != 0 { flag } else { 0 };
    match file.object::<Regular>() {
        Some(regular) => {
            let more = status(rwf::APPEND, O_APPEND) | status(rwf::DSYNC | rwf::SYNC, O_DSYNC);
            regular.write_as(on, buffer, at, file.flags() | more)
        }
        None if flags & rwf::NOWAIT != 0 => file.any().write_now(on, buffer, at),
        None => file.any().write(on, buffer, at),
    }
}

/// How a call gives its memory, in the arguments behind the descriptor.
#[derive(Clone, Copy)]
enum Memory {
    Buffer,
    Vector,
}

impl Memory {
    #[inline(always)]
    fn of(self, call: &Call) -> Result<UserBuffer, Errno> {
        match self {
            Memory::Buffer => call.buffer(1),
            Memory::Vector => call.vector(1),
        }
    }
}

/// The file that a call reads from, and where to. The descriptor comes first, then the position, the access mode and the memory.
#[inline(always)]
fn to_read(call: &Call, memory: Memory, at: Option<u64>) -> Result<(Rc<OpenFile>, UserBuffer), Errno> {
    let file = call.process.file(call.int(0))?;
    let buffer = file.readable().and_then(|()| memory.of(call)).map_err(|error| file.error_at(at, error))?;
    Ok((file, buffer))
}

/// [`to_read`] for a write.
#[inline(always)]
fn to_write(call: &Call, memory: Memory, at: Option<u64>) -> Result<(Rc<OpenFile>, UserBuffer), Errno> {
    let file = call.process.file(call.int(0))?;
    let buffer = file.writable().and_then(|()| memory.of(call)).map_err(|error| file.error_at(at, error))?;
    Ok((file, buffer))
}

/// read, readv, and with a position pread64, preadv. Inlined into each of them, as [`write`] is: a call would cost the fastest calls 20
/// ticks.
#[inline(always)]
fn read(call: &Call, memory: Memory, at: Option<u64>) -> Result<Flow, Errno> {
    let (file, mut buffer) = to_read(call, memory, at)?;
    file.any().read(&Operation { base: call.base(), caller: &call.process.caller, file: &file }, &mut buffer, at)
}

/// write, writev, and with a position pwrite64, pwritev.
#[inline(always)]
fn write(call: &Call, memory: Memory, at: Option<u64>) -> Result<Flow, Errno> {
    let (file, mut buffer) = to_write(call, memory, at)?;
    file.any().write(&Operation { base: call.base(), caller: &call.process.caller, file: &file }, &mut buffer, at)
}

/// write of eight bytes that the kernel has fetched (`linux::FETCHED`): a counter needs no copy.
pub(super) fn write_word(call: &Call) -> Result<Flow, Errno> {
    let (file, mut buffer) = to_write(call, Memory::Buffer, None)?;
    let on = Operation { base: call.base(), caller: &call.process.caller, file: &file };
    match file.object::<EventCounter>() {
        Some(counter) => counter.write_value(&on, call.words[5]),
        None => file.any().write(&on, &mut buffer, None),
    }
}

/// getdents64; with `old` getdents.
async fn read_directory(
    files: &Files,
    peers: &Peers,
    process: Rc<Process>,
    (descriptor, address, bytes): (i32, u64, u64),
    old: bool,
) -> Result<u64, Errno> {
    let watches = files.watches();
    let file = process.file(descriptor)?;
    file.usable()?;
    let node = &file.object::<Directory>().ok_or(Errno::ENOTDIR)?.node;
    if node.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    if file.position() == fs::DIRECTORY_END {
        return Ok(0);
    }
    let service = node.service();
    let bytes = (bytes as u32 as u64).min(if old { OLD_DIRENTS_BYTES } else { CHUNK });
    let position = file.position();
    if !old {
        let grant = MagicGrant::new(process.caller.endpoint, address, bytes, service.endpoint(), Access::Write)?;
        let request = fs::GetDents { node: node.number(), grant: grant.id(), position, bytes };
        let version = node.known_stat().unchanging();
        let reply = peers.ask(service, request.message()).await?;
        let moved = length_of(&reply, bytes)?;
        listed(&file, node, version, &reply)?;
        watches.happened(node, &file.path(), flag::ACCESS);
        return Ok(moved);
    }
    let room = GrantedBuffer::new(filled(0, bytes as usize)?, service.endpoint(), Access::Write)?;
    let request = fs::GetDents { node: node.number(), grant: room.id(), position, bytes };
    let version = node.known_stat().unchanging();
    let reply = peers.ask(service, request.message()).await?;
    let mut records = room.take();
    records.truncate(length_of(&reply, bytes)? as usize);
    stat::make_old_dirents(&mut records);
    user::store(process.caller.endpoint, address, &records)?;
    listed(&file, node, version, &reply)?;
    watches.happened(node, &file.path(), flag::ACCESS);
    Ok(records.len() as u64)
}

/// An open directory was listed so far. `version`: of what is known of it, before its file system was asked.
fn listed(file: &OpenFile, node: &NodeRef, version: Option<u64>, reply: &Message) -> Result<(), Errno> {
    let (position, accessed_ns) = fs::GetDents::results(reply)?;
    file.set_position(position);
    node.known_stat().was_read(version, reply.source, accessed_ns);
    Ok(())
}

/// The length in a file system's reply. `EIO`: it claims more than it was asked for.
fn length_of(reply: &Message, bytes: u64) -> Result<u64, Errno> {
    Some(reply.words[0]).filter(|length| *length <= bytes).ok_or(Errno::EIO)
}

/// fsync and fdatasync. `EINVAL`: nothing that could be written back.
pub(super) fn sync_file(base: &'static Base, file: Rc<OpenFile>) -> Result<Flow, Errno> {
    file.usable()?;
    if file.object::<Block>().is_some() {
        return Ok(block::flush(base, file));
    }
    let has_data = file.node().is_some_and(|node| matches!(node.kind(), S_IFREG | S_IFDIR | S_IFBLK));
    if has_data { sync_node(base.mappings(), &file) } else { Err(Errno::EINVAL) }
}

fn sync_node(mappings: &'static Mappings, file: &OpenFile) -> Result<Flow, Errno> {
    let node = node_to_sync(file)?;
    task(async move {
        mappings.sync_node(&node).await?;
        Ok(0)
    })
}

/// syncfs.
fn sync_file_system(mappings: &'static Mappings, process: &Process, descriptor: i32) -> Result<Flow, Errno> {
    let node = node_to_sync(&*process.file(descriptor)?)?;
    task(async move {
        mappings.write_back_all(Some(node.mount())).await?;
        mappings.sync_node(&node).await?;
        Ok(0)
    })
}

fn node_to_sync(file: &OpenFile) -> Result<NodeRef, Errno> {
    file.usable()?;
    file.node().cloned().ok_or(Errno::EINVAL)
}

/// posix_fadvise: advice changes nothing here.
fn advise(process: &Process, descriptor: i32, bytes: i64, advice: u32) -> Result<Flow, Errno> {
    const POSIX_FADV_NOREUSE: u32 = 5;
    let file = process.file(descriptor)?;
    file.usable()?;
    match file.object::<PipeEnd>() {
        Some(_) => Err(Errno::ESPIPE),
        None if bytes < 0 || advice > POSIX_FADV_NOREUSE => Err(Errno::EINVAL),
        None => done(Ok(0)),
    }
}

/// readahead: file systems read ahead by themselves.
fn read_ahead(process: &Process, descriptor: i32) -> Result<Flow, Errno> {
    let file = process.file(descriptor)?;
    file.readable()?;
    let has_data = file.node().is_some_and(|node| matches!(node.kind(), S_IFREG | S_IFBLK));
    if has_data { done(Ok(0)) } else { Err(Errno::EINVAL) }
}

/// sync_file_range: the whole file is written back, so that the range is.
fn sync_range(call: &Call) -> Result<Flow, Errno> {
    const FLAGS: u32 = 7;
    let file = call.process.file(call.int(0))?;
    file.usable()?;
    let (offset, bytes) = (call.words[1] as i64, call.words[2] as i64);
    if call.flags(3) & !FLAGS != 0 || offset < 0 || bytes < 0 || offset.checked_add(bytes).is_none() {
        return Err(Errno::EINVAL);
    }
    match file.node().map(|node| node.kind()) {
        Some(S_IFREG | S_IFBLK | S_IFDIR) => sync_node(call.mappings(), &file),
        _ => Err(Errno::ESPIPE),
    }
}
