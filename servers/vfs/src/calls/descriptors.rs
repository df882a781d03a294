//! Calls on descriptors that move no data: close, dup, pipe, lseek, fcntl, ioctl.

use super::{
    Entry, asynchronous, call,
    call::Call,
    done, leases,
    locks::{self, Owner},
    loops, seals, task,
};
use crate::{
    base::{Base, Flow, closing::Closing},
    callers::permission,
    files::Files,
    memory as user,
    objects::{
        CHANGEABLE, O_ASYNC, O_CLOEXEC, O_DIRECT, O_NOATIME, O_NONBLOCK, O_WRONLY, OpenFile, Operation, SEEK_CUR,
        SEEK_END, SEEK_HOLE, Seek, block::Block, pipe::PipeEnd, regular::Regular,
    },
    open::open_slave,
    pathname::decimal,
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};
use core::cell::Cell;
use sys::fallible::{TryString, string};

mod fcntl {
    pub const DUPFD: u32 = 0;
    pub const GETFD: u32 = 1;
    pub const SETFD: u32 = 2;
    pub const GETFL: u32 = 3;
    pub const SETFL: u32 = 4;
    pub const GETLK: u32 = 5;
    pub const SETLK: u32 = 6;
    pub const SETLKW: u32 = 7;
    pub const OFD_GETLK: u32 = 36;
    pub const OFD_SETLK: u32 = 37;
    pub const OFD_SETLKW: u32 = 38;
    pub const DUPFD_CLOEXEC: u32 = 1030;
    pub const SETPIPE_SZ: u32 = 1031;
    pub const GETPIPE_SZ: u32 = 1032;
    /// The bit of FD_CLOEXEC.
    pub const CLOEXEC: u64 = 1;
}

mod ioctl {
    pub const TIOCGPTPEER: u32 = 0x5441;
    pub const FIONBIO: u32 = 0x5421;
    pub const FIONCLEX: u32 = 0x5450;
    pub const FIOCLEX: u32 = 0x5451;
}

/// close_range: mark instead of closing.
const CLOSE_RANGE_CLOEXEC: u32 = 4;
/// close_range: with a table of one's own.
const CLOSE_RANGE_UNSHARE: u32 = 2;

pub(super) const CALLS: &[Entry] = &[
    call(nr::CLOSE, |c| done(close_descriptor(c.process, c.int(0)))),
    call(nr::CLOSE_RANGE, |c| done(close_range(c.closing(), c.process, c.flags(0), c.flags(1), c.flags(2)))),
    call(nr::LSEEK, seek),
    call(nr::DUP, |c| done(dup(c.process, c.int(0)))),
    call(nr::DUP2, |c| done(dup_to(c.process, c.int(0), c.int(1), 0, true))),
    call(nr::DUP3, |c| done(dup_to(c.process, c.int(0), c.int(1), c.flags(2), false))),
    call(nr::PIPE, |c| done(pipe(c.base(), c.process, c.words[0], 0))),
    call(nr::PIPE2, |c| done(pipe(c.base(), c.process, c.words[0], c.flags(1)))),
    call(nr::FCNTL, control_descriptor),
    call(nr::IOCTL, ioctl),
];

/// close.
fn close_descriptor(process: &Process, descriptor: i32) -> Result<u64, Errno> {
    process.files().close(descriptor).map(|()| 0)
}

/// close_range.
fn close_range(closing: &Rc<Closing>, process: &Process, first: u32, last: u32, flags: u32) -> Result<u64, Errno> {
    if first > last || flags & !(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE) != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        process.unshare_files(closing)?;
    }
    let table = process.files();
    let (first, last) = (first as usize, last as usize);
    if flags & CLOSE_RANGE_CLOEXEC != 0 {
        table.mark_range(first, last);
        return Ok(0);
    }
    table.close_range(first, last);
    Ok(0)
}

/// dup.
fn dup(process: &Process, descriptor: i32) -> Result<u64, Errno> {
    let file = process.file(descriptor)?;
    process.insert(file, false)
}

/// dup2 (`same` is then allowed) and dup3.
fn dup_to(process: &Process, old: i32, new: i32, flags: u32, same: bool) -> Result<u64, Errno> {
    if flags & !O_CLOEXEC != 0 || (old == new && !same) {
        return Err(Errno::EINVAL);
    }
    let file = process.file(old)?;
    if old == new {
        return Ok(new as u64);
    }
    process.files().replace(new, file, process.caller.descriptor_limit(), flags & O_CLOEXEC != 0)?;
    Ok(new as u64)
}

/// pipe2: writes both descriptors to the program.
fn pipe(base: &Base, process: &Process, address: u64, flags: u32) -> Result<u64, Errno> {
    let status = pipe_flags(flags).ok_or(Errno::EINVAL)?;
    let user = process.caller.user();
    let pipe = base.pipes().make(user)?;
    let inode = base.pipes().new_inodes(1);
    let end = |reads: bool, access: u32| {
        pipe.open(reads, !reads);
        let object = PipeEnd { pipe: pipe.clone(), node: None, inode, reads, writes: !reads, lonely: Cell::default() };
        let path = numbered("pipe", inode)?;
        OpenFile::new(base.closing(), user, object, status | access, path)
    };
    give_pair(process, [end(true, 0)?, end(false, O_WRONLY)?], address, flags & O_CLOEXEC != 0)
}

/// The name of a pipe or socket: `pipe:[7]`. `ENOMEM`.
pub(super) fn numbered(kind: &str, inode: u64) -> Result<Vec<u8>, Errno> {
    let mut name = string(kind)?;
    let mut digits = [0; 24];
    name.try_push_str(":[")?;
    name.try_push_str(decimal(inode, &mut digits))?;
    name.try_push_str("]")?;
    Ok(name.into_bytes())
}

/// Gives two open files descriptors, or none, and writes both to the program.
pub(super) fn give_pair(
    process: &Process,
    [first, second]: [Rc<OpenFile>; 2],
    address: u64,
    close_on_exec: bool,
) -> Result<u64, Errno> {
    let table = process.files();
    let undo = |descriptor: i32| table.close(descriptor).expect("it has just been inserted");
    let limit = process.caller.descriptor_limit();
    let first = table.insert(first, 0, limit, close_on_exec)?;
    let second = table.insert(second, 0, limit, close_on_exec).inspect_err(|_| undo(first))?;
    let both = (first as u64 | (second as u64) << 32).to_le_bytes();
    user::store(process.caller.endpoint, address, &both).inspect_err(|_| [first, second].into_iter().for_each(undo))?;
    Ok(0)
}

/// lseek.
fn seek(call: &Call) -> Result<Flow, Errno> {
    let (offset, whence) = (call.words[1] as i64, call.flags(2));
    if whence > SEEK_END {
        return seek_to_data(call, offset, whence);
    }
    done(call.process.look_at_file(call.int(0), |file, users| move_to(file, offset, whence, || users.is_one()))?)
}

/// Moves the position of an open file, which perhaps nobody but the caller uses. Returns the new one.
#[inline(always)]
fn move_to(file: &OpenFile, offset: i64, whence: u32, has_one_user: impl FnOnce() -> bool) -> Result<u64, Errno> {
    file.usable()?;
    let position = file.any().seek(&Seek { position: file.position(), offset, whence })?;
    // Kinds without a position stay at 0, and preserve something else in its place.
    if position == file.position() {
        return Ok(position);
    }
    // Made again, it moves the file to the same place; but not after others who may move it meanwhile.
    if whence != SEEK_CUR && has_one_user() {
        file.set_position_again(position);
    } else {
        file.set_position(position);
    }
    Ok(position)
}

/// lseek to data or a hole, which file systems know of regular files. `EINVAL`: to something else.
#[cold]
fn seek_to_data(call: &Call, offset: i64, whence: u32) -> Result<Flow, Errno> {
    let file = call.process.file(call.int(0))?;
    file.usable()?;
    if whence > SEEK_HOLE {
        return Err(Errno::EINVAL);
    }
    if file.object::<Regular>().is_none() {
        return done(move_to(&file, offset, whence, || false));
    }
    file.any().seek(&Seek { position: file.position(), offset, whence })?;
    task(seek_data(call.files(), file, offset as u64, whence == SEEK_HOLE))
}

/// Looks for data or a hole in a regular file, from an offset before its end on. File systems that know none have data only.
async fn seek_data(files: &Files, file: Rc<OpenFile>, offset: u64, hole: bool) -> Result<u64, Errno> {
    let node = &file.object::<Regular>().ok_or(Errno::EINVAL)?.node;
    let position = match files.seek_data(node, offset, hole).await {
        Err(Errno::EOPNOTSUPP) if hole => node.size(),
        Err(Errno::EOPNOTSUPP) => offset,
        found => found?,
    };
    file.set_position(position);
    Ok(position)
}

/// fcntl.
fn control_descriptor(call: &Call) -> Result<Flow, Errno> {
    let (process, descriptor, command, argument) = (call.process, call.int(0), call.flags(1), call.words[2]);
    let file = process.file(descriptor)?;
    let table = process.files();
    let result = match command {
        fcntl::DUPFD | fcntl::DUPFD_CLOEXEC => {
            let first = usize::try_from(argument).map_err(|_| Errno::EINVAL)?;
            let limit = process.caller.descriptor_limit();
            let number = table.insert(file, first, limit, command == fcntl::DUPFD_CLOEXEC)?;
            number as u64
        }
        fcntl::GETFD => table.descriptors().close_on_exec(descriptor)? as u64,
        fcntl::SETFD => {
            table.set_close_on_exec(descriptor, argument & fcntl::CLOEXEC != 0)?;
            0
        }
        fcntl::GETFL => file.flags() as u64,
        fcntl::SETFL => {
            file.usable()?;
            if let Some(node) = file.node().filter(|_| argument as u32 & !file.flags() & O_NOATIME != 0) {
                permission::check_owner(&process.caller.credentials(), node.attributes())?;
            }
            if argument as u32 & O_DIRECT != 0 && !takes_direct(&file) {
                return Err(Errno::EINVAL);
            }
            asynchronous::set(call, &file, argument as u32 & O_ASYNC != 0)?;
            file.set_flags(file.flags() & !CHANGEABLE | argument as u32 & CHANGEABLE);
            0
        }
        fcntl::GETLK | fcntl::SETLK | fcntl::SETLKW => return lock(call, file, Owner::table(process), command),
        fcntl::OFD_GETLK | fcntl::OFD_SETLK | fcntl::OFD_SETLKW => {
            let owner = Owner::open_file(process, &file);
            return lock(call, file, owner, command - fcntl::OFD_GETLK + fcntl::GETLK);
        }
        fcntl::SETPIPE_SZ | fcntl::GETPIPE_SZ => {
            let pipe = &file.object::<PipeEnd>().ok_or(Errno::EBADF)?.pipe;
            match command {
                fcntl::GETPIPE_SZ => pipe.capacity() as u64,
                _ => pipe.set_capacity(call.base(), argument as u32 as usize)?,
            }
        }
        seals::ADD_SEALS | seals::GET_SEALS => return seals::control(call, &file, command),
        _ => leases::control(call, &file, command)?,
    };
    done(Ok(result))
}

/// The commands of fcntl on record locks, as of `F_GETLK`.
fn lock(call: &Call, file: Rc<OpenFile>, owner: Owner, command: u32) -> Result<Flow, Errno> {
    let (store, address) = (call.base().store(), call.words[2]);
    match command {
        fcntl::GETLK => done(locks::get_lock(call.process, &file, owner, address)),
        fcntl::SETLK => done(locks::set_lock(store, call.process, &file, owner, address)),
        _ => task(locks::wait_lock(store, call.lock_waits(), call.process(), file, owner, address)),
    }
}

/// ioctl.
fn ioctl(call: &Call) -> Result<Flow, Errno> {
    let (base, process) = (call.base(), call.process);
    let (descriptor, request, argument) = (call.int(0), call.flags(1), call.words[2]);
    let file = process.file(descriptor)?;
    file.usable()?;
    let table = process.files();
    match request {
        ioctl::FIOCLEX | ioctl::FIONCLEX => {
            table.set_close_on_exec(descriptor, request == ioctl::FIOCLEX)?;
            return done(Ok(0));
        }
        ioctl::FIONBIO => {
            let mut on = [0; 4];
            user::fetch(process.caller.endpoint, argument, &mut on)?;
            let others = file.flags() & !O_NONBLOCK;
            file.set_flags(if on == [0; 4] { others } else { others | O_NONBLOCK });
            return done(Ok(0));
        }
        ioctl::TIOCGPTPEER => {
            let process = process.clone();
            return task(async move {
                process.files().check_room(process.caller.descriptor_limit())?;
                let slave = open_slave(base, &process, file, argument as u32).await?;
                process.insert(slave, argument as u32 & O_CLOEXEC != 0)
            });
        }
        _ => {}
    }
    if let Some(result) = asynchronous::control(call, &file, request) {
        return done(result);
    }
    if let Some(result) = loops::control(call, &file, request) {
        return result;
    }
    let on = Operation { base, caller: &process.caller, file: &file };
    file.any().control(&on, request, argument)
}

/// The flags of pipe2 that mean something for an open file; `None`: unknown ones.
fn pipe_flags(flags: u32) -> Option<u32> {
    let known = O_NONBLOCK | O_CLOEXEC | O_DIRECT;
    (flags & !known == 0).then_some(flags & (O_NONBLOCK | O_DIRECT))
}

/// Whether `O_DIRECT` may be set: on files, disks, and pipes, which then have packets.
fn takes_direct(file: &OpenFile) -> bool {
    file.object::<PipeEnd>().is_some() || file.object::<Regular>().is_some() || file.object::<Block>().is_some()
}
