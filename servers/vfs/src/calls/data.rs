//! Reading and writing: read, write and their relatives, fsync, sendfile, getdents.
//!
//! What a read or write does is up to the object behind the descriptor: see `objects`.

use super::{Entry, call, done, task};
use crate::{
    base::{Base, Flow},
    files::{stat, vnode::NodeRef},
    mappings::Mappings,
    memory as user,
    memory::buffer::UserBuffer,
    objects::{
        O_APPEND, Operation,
        directory::Directory,
        pipe::PipeEnd,
        regular::{Regular, written},
    },
    peers::Peers,
    processes::Process,
};
use abi::{Errno, fs, linux::nr};
use alloc::{rc::Rc, vec};
use sys::grant::{Access, GrantedBuffer, MagicGrant};

/// At most so many bytes a request to a file system, so that other requests get in between.
const CHUNK: u64 = 1 << 20;
/// Bytes of the buffer that sendfile copies through.
const SENDFILE_BYTES: usize = 64 * 1024;

pub(super) const CALLS: &[Entry] = &[
    call(nr::READ, |c| read(c.base(), c.process, c.int(0), c.buffer(1)?, None)),
    call(nr::WRITE, |c| write(c.base(), c.process, c.int(0), c.buffer(1)?, None)),
    call(nr::READV, |c| read(c.base(), c.process, c.int(0), c.vector(1)?, None)),
    call(nr::WRITEV, |c| write(c.base(), c.process, c.int(0), c.vector(1)?, None)),
    call(nr::PREAD64, |c| c.position(3).and_then(|at| read(c.base(), c.process, c.int(0), c.buffer(1)?, at))),
    call(nr::PWRITE64, |c| c.position(3).and_then(|at| write(c.base(), c.process, c.int(0), c.buffer(1)?, at))),
    call(nr::PREADV, |c| c.position(3).and_then(|at| read(c.base(), c.process, c.int(0), c.vector(1)?, at))),
    call(nr::PWRITEV, |c| c.position(3).and_then(|at| write(c.base(), c.process, c.int(0), c.vector(1)?, at))),
    call(nr::SENDFILE, |c| task(sendfile(c.base(), c.process(), c.int(0), c.int(1), c.words[2], c.words[3]))),
    call(nr::GETDENTS64, |c| task(read_directory(c.peers(), c.process(), c.int(0), c.words[1], c.words[2], false))),
    call(nr::GETDENTS, |c| task(read_directory(c.peers(), c.process(), c.int(0), c.words[1], c.words[2], true))),
    call(nr::FSYNC, |c| sync_file(c.mappings(), c.process, c.int(0))),
    call(nr::FDATASYNC, |c| sync_file(c.mappings(), c.process, c.int(0))),
    call(nr::SYNCFS, |c| sync_file(c.mappings(), c.process, c.int(0))),
    call(nr::FADVISE64, |c| advise(c.process, c.int(0))),
    call(nr::READAHEAD, |c| advise(c.process, c.int(0))),
    call(nr::SYNC_FILE_RANGE, |c| advise(c.process, c.int(0))),
];

/// read, readv, and with a position pread64, preadv.
#[inline]
fn read(
    base: &'static Base,
    process: &Process,
    descriptor: i32,
    mut buffer: UserBuffer,
    at: Option<u64>,
) -> Result<Flow, Errno> {
    let file = process.file(descriptor)?;
    file.readable()?;
    file.any().read(&Operation { base, caller: &process.caller, file: &file }, &mut buffer, at)
}

/// write, writev, and with a position pwrite64, pwritev.
#[inline]
fn write(
    base: &'static Base,
    process: &Process,
    descriptor: i32,
    mut buffer: UserBuffer,
    at: Option<u64>,
) -> Result<Flow, Errno> {
    let file = process.file(descriptor)?;
    file.writable()?;
    file.any().write(&Operation { base, caller: &process.caller, file: &file }, &mut buffer, at)
}

/// getdents64; with `old` getdents.
async fn read_directory(
    peers: &Peers,
    process: Rc<Process>,
    descriptor: i32,
    address: u64,
    bytes: u64,
    old: bool,
) -> Result<u64, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    let node = &file.object::<Directory>().ok_or(Errno::ENOTDIR)?.node;
    if node.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    let service = node.service();
    let bytes = (bytes as u32 as u64).min(CHUNK);
    let position = file.position();
    if !old {
        let grant = MagicGrant::new(process.caller.endpoint, address, bytes, service.endpoint(), Access::Write)?;
        let request = fs::GetDents { node: node.number(), grant: grant.id(), position, bytes };
        let reply = peers.ask(service, request.message()).await?;
        file.set_position(fs::GetDents::results(&reply)?);
        return Ok(reply.words[0]);
    }
    let room = GrantedBuffer::new(vec![0; bytes as usize], service.endpoint(), Access::Write)?;
    let request = fs::GetDents { node: node.number(), grant: room.id(), position, bytes };
    let reply = peers.ask(service, request.message()).await?;
    let mut records = room.take();
    records.truncate(reply.words[0] as usize);
    stat::make_old_dirents(&mut records);
    user::store(process.caller.endpoint, address, &records)?;
    file.set_position(fs::GetDents::results(&reply)?);
    Ok(records.len() as u64)
}

/// fsync and its relatives.
fn sync_file(mappings: &'static Mappings, process: &Process, descriptor: i32) -> Result<Flow, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    let node = file.node().cloned().ok_or(Errno::EINVAL)?;
    task(async move {
        mappings.sync_node(&node).await?;
        Ok(0)
    })
}

/// Advice, which changes nothing here.
fn advise(process: &Process, descriptor: i32) -> Result<Flow, Errno> {
    match process.file(descriptor)?.object::<PipeEnd>() {
        Some(_) => Err(Errno::ESPIPE),
        None => done(Ok(0)),
    }
}

/// sendfile from a regular file to a regular file. `EINVAL` for everything else: programs then read and write themselves.
async fn sendfile(
    base: &Base,
    process: Rc<Process>,
    to: i32,
    from: i32,
    offset_address: u64,
    bytes: u64,
) -> Result<u64, Errno> {
    let (to, from) = (process.file(to)?, process.file(from)?);
    to.writable()?;
    from.readable()?;
    let (Some(target), Some(source)) = (to.object::<Regular>(), from.object::<Regular>()) else {
        return Err(Errno::EINVAL);
    };
    if to.flags() & O_APPEND != 0 {
        return Err(Errno::EINVAL);
    }
    let (target, source) = (&target.node, &source.node);
    let offset = match offset_address {
        0 => None,
        address => Some(user::fetch_words::<1>(process.caller.endpoint, address)?[0]),
    };
    let start = offset.unwrap_or_else(|| from.position());
    if start > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let (bytes, ids) = (bytes.min(user::MAX_TRANSFER), process.caller.credentials().ids());
    let moved = copy_data(base.mappings(), source, start, target, to.position(), bytes, ids).await?;
    let end = to.position() + moved;
    written(base, &process.caller, &to, target).await?;
    to.set_position(end);
    match offset {
        None => from.set_position(start + moved),
        Some(_) => user::store(process.caller.endpoint, offset_address, &(start + moved).to_le_bytes())?,
    }
    Ok(moved)
}

/// Copies between two files through a buffer of vfs. After a partial copy the count is returned, not the error.
async fn copy_data(
    mappings: &Mappings,
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
        let step = match mappings.read_into(from, from_position + moved, wanted).await {
            Ok(data) if data.is_empty() => break,
            Ok(data) => mappings.write_from(to, to_position + moved, data, ids).await,
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
