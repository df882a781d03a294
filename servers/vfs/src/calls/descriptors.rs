//! Calls on descriptors that move no data: close, dup, pipe, lseek, fcntl, ioctl.

use super::{Entry, call, done};
use crate::{
    base::Flow,
    calls::open,
    files::locks::Range,
    memory as user,
    objects::{CHANGEABLE, File, O_ASYNC, O_CLOEXEC, O_NONBLOCK, O_WRONLY, OpenFile, Operation, Seek, pipe::PipeEnd},
    processes::{Process, file_table::FileTable},
    state::Vfs,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;

mod fcntl {
    pub const DUPFD: u32 = 0;
    pub const GETFD: u32 = 1;
    pub const SETFD: u32 = 2;
    pub const GETFL: u32 = 3;
    pub const SETFL: u32 = 4;
    pub const GETLK: u32 = 5;
    pub const SETLK: u32 = 6;
    pub const SETLKW: u32 = 7;
    pub const SETOWN: u32 = 8;
    pub const GETOWN: u32 = 9;
    pub const DUPFD_CLOEXEC: u32 = 1030;
    pub const SETPIPE_SZ: u32 = 1031;
    pub const GETPIPE_SZ: u32 = 1032;
    /// The bit of FD_CLOEXEC.
    pub const CLOEXEC: u64 = 1;
}

mod ioctl {
    pub const FIONBIO: u32 = 0x5421;
    pub const FIONCLEX: u32 = 0x5450;
    pub const FIOCLEX: u32 = 0x5451;
    pub const FIOASYNC: u32 = 0x5452;
}

/// close_range: mark instead of closing.
const CLOSE_RANGE_CLOEXEC: u32 = 4;
/// close_range: with a table of one's own.
const CLOSE_RANGE_UNSHARE: u32 = 2;

pub(super) const CALLS: &[Entry] = &[
    call(nr::CLOSE, |c| done(c.vfs.close_descriptor(c.process, c.int(0)))),
    call(nr::CLOSE_RANGE, |c| done(c.vfs.close_range(c.process, c.flags(0), c.flags(1), c.flags(2)))),
    call(nr::LSEEK, |c| done(c.vfs.seek(c.process, c.int(0), c.words[1] as i64, c.flags(2)))),
    call(nr::DUP, |c| done(c.vfs.dup(c.process, c.int(0)))),
    call(nr::DUP2, |c| done(c.vfs.dup_to(c.process, c.int(0), c.int(1), 0, true))),
    call(nr::DUP3, |c| done(c.vfs.dup_to(c.process, c.int(0), c.int(1), c.flags(2), false))),
    call(nr::PIPE, |c| done(c.vfs.pipe(c.process, c.words[0], 0))),
    call(nr::PIPE2, |c| done(c.vfs.pipe(c.process, c.words[0], c.flags(1)))),
    call(nr::FCNTL, |c| c.vfs.fcntl(c.process, c.int(0), c.flags(1), c.words[2])),
    call(nr::IOCTL, |c| c.vfs.ioctl(c.process, c.int(0), c.flags(1), c.words[2])),
];

impl Vfs {
    /// close.
    pub fn close_descriptor(&self, process: &Process, descriptor: i32) -> Result<u64, Errno> {
        let table = process.files();
        let file = table.remove(descriptor)?;
        self.release_records(&table, &file);
        Ok(0)
    }

    /// A descriptor's end takes the table's record locks off its file, and its wish to be told of messages off its queue.
    pub fn release_records(&self, table: &FileTable, file: &OpenFile) {
        file.any().forget(table.number());
        if let Some(node) = file.node() {
            node.locks().release_records(&self.base.store, node.record(), table.number(), Range::ALL);
        }
    }

    /// close_range.
    pub fn close_range(&self, process: &Process, first: u32, last: u32, flags: u32) -> Result<u64, Errno> {
        if first > last || flags & !(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE) != 0 {
            return Err(Errno::EINVAL);
        }
        if flags & CLOSE_RANGE_UNSHARE != 0 {
            self.unshare_files(process)?;
        }
        let table = process.files();
        let (first, last) = (first as usize, last as usize);
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            table.mark_range(first, last);
            return Ok(0);
        }
        table.remove_range(first, last).iter().for_each(|file| self.release_records(&table, file));
        Ok(0)
    }

    /// Gives a process a descriptor table of its own. `EAGAIN`, `ENFILE`: no room.
    pub fn unshare_files(&self, process: &Process) -> Result<(), Errno> {
        let shared = process.files();
        // Two: the process' own and ours.
        if Rc::strong_count(&shared) > 2 {
            let descriptors = shared.descriptors().clone();
            process.set_files(self.new_table(descriptors)?);
        }
        Ok(())
    }

    /// dup.
    pub fn dup(&self, process: &Process, descriptor: i32) -> Result<u64, Errno> {
        let file = process.file(descriptor)?;
        process.insert(file, false)
    }

    /// dup2 (`same` is then allowed) and dup3.
    pub fn dup_to(&self, process: &Process, old: i32, new: i32, flags: u32, same: bool) -> Result<u64, Errno> {
        if flags & !O_CLOEXEC != 0 || (old == new && !same) {
            return Err(Errno::EINVAL);
        }
        let file = process.file(old)?;
        if old == new {
            return Ok(new as u64);
        }
        let table = process.files();
        let replaced = table.replace(new, file, flags & O_CLOEXEC != 0)?;
        if let Some(replaced) = replaced {
            self.release_records(&table, &replaced);
        }
        Ok(new as u64)
    }

    /// pipe2: writes both descriptors to the program.
    pub fn pipe(&self, process: &Process, address: u64, flags: u32) -> Result<u64, Errno> {
        let status = open::pipe_flags(flags).ok_or(Errno::EINVAL)?;
        let close_on_exec = flags & O_CLOEXEC != 0;
        let pipe = self.base.pipes.make()?;
        let inode = self.base.pipes.new_inodes(1);
        let end = |reads: bool, access: u32| {
            pipe.open(reads, !reads);
            let object = PipeEnd { pipe: pipe.clone(), node: None, inode, reads, writes: !reads };
            let path = alloc::format!("pipe:[{inode}]").into_bytes();
            File::new(&self.base.closing, object, status | access, path)
        };
        let reader = process.insert(end(true, 0)?, close_on_exec)?;
        let writer = end(false, O_WRONLY)
            .and_then(|writer| process.insert(writer, close_on_exec))
            .inspect_err(|_| forget(process, reader))?;
        let mut both = [0; 8];
        both[..4].copy_from_slice(&(reader as u32).to_le_bytes());
        both[4..].copy_from_slice(&(writer as u32).to_le_bytes());
        user::store(process.caller.endpoint, address, &both).inspect_err(|_| {
            forget(process, reader);
            forget(process, writer);
        })?;
        Ok(0)
    }

    /// lseek.
    pub fn seek(&self, process: &Process, descriptor: i32, offset: i64, whence: u32) -> Result<u64, Errno> {
        let file = process.file(descriptor)?;
        file.usable()?;
        let position = file.any().seek(&Seek { position: file.position(), offset, whence })?;
        file.set_position(position);
        Ok(position)
    }

    /// fcntl.
    pub fn fcntl(
        &'static self,
        process: &Rc<Process>,
        descriptor: i32,
        command: u32,
        argument: u64,
    ) -> Result<Flow, Errno> {
        let file = process.file(descriptor)?;
        let table = process.files();
        let result = match command {
            fcntl::DUPFD | fcntl::DUPFD_CLOEXEC => {
                let first = usize::try_from(argument).map_err(|_| Errno::EINVAL)?;
                let number = table.insert(file, first, command == fcntl::DUPFD_CLOEXEC)?;
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
                file.set_flags(file.flags() & !CHANGEABLE | argument as u32 & CHANGEABLE);
                0
            }
            fcntl::GETLK => return self.get_lock(process, &file, argument).map(|value| Flow::Done(Ok(value))),
            fcntl::SETLK => return self.set_lock(process, &table, &file, argument).map(|value| Flow::Done(Ok(value))),
            fcntl::SETLKW => {
                let process = process.clone();
                return Ok(Flow::task(async move { self.wait_lock(process, table, file, argument).await }));
            }
            fcntl::SETOWN | fcntl::GETOWN => 0,
            fcntl::SETPIPE_SZ | fcntl::GETPIPE_SZ => {
                let pipe = &file.object::<PipeEnd>().ok_or(Errno::EBADF)?.pipe;
                match command {
                    fcntl::GETPIPE_SZ => pipe.capacity() as u64,
                    _ => pipe.set_capacity(&self.base, argument as u32 as usize)?,
                }
            }
            _ => return Err(Errno::EINVAL),
        };
        done(Ok(result))
    }

    /// ioctl.
    pub fn ioctl(
        &'static self,
        process: &Rc<Process>,
        descriptor: i32,
        request: u32,
        argument: u64,
    ) -> Result<Flow, Errno> {
        let file = process.file(descriptor)?;
        file.usable()?;
        let table = process.files();
        match request {
            ioctl::FIOCLEX | ioctl::FIONCLEX => {
                table.set_close_on_exec(descriptor, request == ioctl::FIOCLEX)?;
                return done(Ok(0));
            }
            ioctl::FIONBIO | ioctl::FIOASYNC => {
                let flag = if request == ioctl::FIONBIO { O_NONBLOCK } else { O_ASYNC };
                let mut on = [0; 4];
                user::fetch(process.caller.endpoint, argument, &mut on)?;
                let others = file.flags() & !flag;
                file.set_flags(if on == [0; 4] { others } else { others | flag });
                return done(Ok(0));
            }
            _ => {}
        }
        let on = Operation { base: &self.base, caller: &process.caller, file: &file };
        file.any().control(&on, request, argument)
    }
}

fn forget(process: &Process, descriptor: u64) {
    let files = process.files();
    drop(files.remove(descriptor as i32));
}
