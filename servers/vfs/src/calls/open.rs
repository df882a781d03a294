//! open and its relatives: from a path to an open file (open(2)).

use super::{Changes::First, Entry, call::Call, change, task};
use crate::{
    base::Flow,
    callers::{
        Caller,
        permission::{self, READ, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, WRITE},
    },
    devices::OWN_NAME,
    files::{mount::MS_NODEV, vnode::NodeRef},
    memory as user,
    objects::{
        File, O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_LARGEFILE, O_NOATIME, O_NOFOLLOW,
        O_NONBLOCK, O_PATH, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY, OpenFile,
        block::{Block, Disk},
        character::Character,
        directory::Directory,
        null::Null,
        path::PathOnly,
        pipe::PipeEnd,
        regular::Regular,
    },
    paths::walk::{Found, Last},
    peers::Role,
    pipes::Pipe,
    processes::{AT_FDCWD, Process},
    state::Vfs,
};
use abi::{
    Errno, block, chardev,
    device::{Device, Kind},
    linux::nr,
};
use alloc::{rc::Rc, vec::Vec};

/// Flags that are not kept as status of the open file.
const NOT_STATUS: u32 = O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC;
/// What O_PATH leaves of the flags.
const PATH_FLAGS: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
/// Bytes of the `struct open_how` that is known.
const OPEN_HOW_BYTES: u64 = 24;

/// What of a file the flags of open ask for.
fn wanted_rights(flags: u32) -> u32 {
    let access = match flags & O_ACCMODE {
        0 => READ,
        O_WRONLY => WRITE,
        _ => READ | WRITE,
    };
    if flags & O_TRUNC != 0 { access | WRITE } else { access }
}

pub(super) const CALLS: &[Entry] = &[
    change(nr::OPEN, First, |c| task(c.vfs.open(c.process(), AT_FDCWD, c.path(0)?, c.flags(1), c.flags(2)))),
    change(nr::OPENAT, First, |c| task(c.vfs.open(c.process(), c.int(0), c.path(1)?, c.flags(2), c.flags(3)))),
    change(nr::OPENAT2, First, openat2),
    change(nr::CREAT, First, |c| {
        task(c.vfs.open(c.process(), AT_FDCWD, c.path(0)?, O_CREAT | O_TRUNC | O_WRONLY, c.flags(1)))
    }),
];

/// openat2: flags and mode of `struct open_how`. `EINVAL` for restrictions of the resolution, which are not supported.
fn openat2(call: &Call) -> Result<Flow, Errno> {
    if call.words[3] < OPEN_HOW_BYTES {
        return Err(Errno::EINVAL);
    }
    let [flags, mode, resolve] = user::fetch_words::<3>(call.process.caller.endpoint, call.words[2])?;
    if resolve != 0 || flags > u32::MAX as u64 || mode & !0o7777 != 0 {
        return Err(Errno::EINVAL);
    }
    task(call.vfs.open(call.process(), call.int(0), call.path(1)?, flags as u32, mode as u32))
}

impl Vfs {
    /// open, openat, creat: returns the descriptor.
    pub async fn open(
        &'static self,
        process: Rc<Process>,
        directory: i32,
        path: Vec<u8>,
        flags: u32,
        mode: u32,
    ) -> Result<u64, Errno> {
        if !process.files().descriptors().has_room() {
            return Err(Errno::EMFILE);
        }
        let file = self.open_file(&process, directory, path, flags, mode).await?;
        process.insert(file, flags & O_CLOEXEC != 0)
    }

    /// The same without a descriptor.
    pub async fn open_file(
        &'static self,
        process: &Rc<Process>,
        directory: i32,
        path: Vec<u8>,
        flags: u32,
        mode: u32,
    ) -> Result<Rc<OpenFile>, Errno> {
        if flags & O_TMPFILE != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let flags = if flags & O_PATH != 0 { flags & PATH_FLAGS } else { flags };
        let exclusive = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
        let last = if flags & O_NOFOLLOW != 0 || exclusive { Last::Keep } else { Last::Follow };
        let mut found = self.resolve(process, directory, path, last).await?;
        if let Some(pipe) = &found.pipe {
            return self.reopen(pipe, flags);
        }
        if flags & O_PATH != 0 {
            return self.open_path(found, flags);
        }
        let recalled = self.recalled_file(process, &found.parent, found.node.as_ref());
        let created = found.node.is_none() || recalled.is_some();
        if let Some(node) = recalled {
            found.node = Some(node);
        } else if created {
            let node = self.create_file(process, &found, flags, mode).await?;
            found.node = Some(node);
        } else if exclusive {
            return Err(Errno::EEXIST);
        }
        let node = found.existing()?.clone();
        if !created {
            may_open(process, &node, flags)?;
            if flags & O_TRUNC != 0 && node.is_regular() && !self.was_emptied(process) {
                self.base.files.set_size(&process.caller, &node, 0).await?;
            }
        }
        self.open_node(process, node, flags, found.canonical).await
    }

    /// Opens a pipe once more, through its link in /proc.
    fn reopen(&self, open: &OpenFile, flags: u32) -> Result<Rc<OpenFile>, Errno> {
        let PipeEnd { pipe, node, inode, .. } = open.object::<PipeEnd>().ok_or(Errno::ENXIO)?;
        let (reads, writes) = ends(flags);
        pipe.open(reads, writes);
        let object = PipeEnd { pipe: pipe.clone(), node: node.clone(), inode: *inode, reads, writes };
        let path = open.path().clone();
        File::new(&self.base.closing, object, flags & !NOT_STATUS, path)
    }

    fn open_path(&self, found: Found, flags: u32) -> Result<Rc<OpenFile>, Errno> {
        let node = found.existing()?.clone();
        if flags & O_DIRECTORY != 0 && !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        File::new(&self.base.closing, PathOnly { node }, flags & !NOT_STATUS, found.canonical)
    }

    async fn create_file(&self, process: &Process, found: &Found, flags: u32, mode: u32) -> Result<NodeRef, Errno> {
        if flags & O_CREAT == 0 {
            return Err(Errno::ENOENT);
        }
        if found.slash {
            return Err(Errno::EISDIR);
        }
        if flags & O_DIRECTORY != 0 {
            return Err(Errno::EINVAL);
        }
        self.make_node(process, found, S_IFREG | mode & 0o7777, 0).await
    }

    /// Opens what is behind a node.
    async fn open_node(
        &'static self,
        process: &Process,
        node: NodeRef,
        flags: u32,
        path: Vec<u8>,
    ) -> Result<Rc<OpenFile>, Errno> {
        let (closing, status) = (&self.base.closing, flags & !NOT_STATUS | O_LARGEFILE);
        match node.kind() {
            S_IFREG => File::new(closing, Regular { node }, status, path),
            S_IFDIR => File::new(closing, Directory { node }, status, path),
            S_IFIFO => {
                let file = File::new(closing, self.open_fifo(node, flags)?, status, path)?;
                wait_for_other_end(&process.caller, &file).await?;
                Ok(file)
            }
            S_IFCHR | S_IFBLK if node.mount().has(MS_NODEV) => Err(Errno::EACCES),
            S_IFCHR => match self.devices.numbered(Kind::Char, node.special_device())? {
                device if device.service == OWN_NAME => File::new(closing, Null { node }, status, path),
                device => File::new(closing, self.open_character(process, device, node, flags).await?, status, path),
            },
            S_IFBLK => {
                let device = self.devices.numbered(Kind::Block, node.special_device())?;
                File::new(closing, self.open_block(device, node).await?, status, path)
            }
            _ => Err(Errno::ENXIO),
        }
    }

    fn open_fifo(&self, node: NodeRef, flags: u32) -> Result<PipeEnd, Errno> {
        let (reads, writes) = ends(flags);
        let pipe = self.fifo(&node)?;
        if writes && !reads && flags & O_NONBLOCK != 0 && pipe.readers() == 0 {
            return Err(Errno::ENXIO);
        }
        pipe.open(reads, writes);
        Ok(PipeEnd { pipe, node: Some(node), inode: 0, reads, writes })
    }

    async fn open_character(
        &self,
        process: &Process,
        device: Device<'_>,
        node: NodeRef,
        flags: u32,
    ) -> Result<Character, Errno> {
        let service = self.base.peers.connect(device.service, Role::Driver)?;
        let minor = device.minor.into();
        let caller = &process.caller;
        let (pid, group, session) = (caller.pid as u64, caller.group(), caller.session());
        let request = chardev::Open { minor, flags: flags as u64, pid, group, session };
        self.base.peers.ask_device(caller, service, request.message()).await?;
        Ok(Character { node, service, minor })
    }

    async fn open_block(&self, device: Device<'_>, node: NodeRef) -> Result<Block, Errno> {
        let service = self.base.peers.connect(device.service, Role::Driver)?;
        let minor = device.minor.into();
        let reply = self.base.peers.ask(service, block::Open { minor }.message()).await?;
        let (bytes, _, _) = block::Open::results(&reply)?;
        Ok(Block { node, device: Disk { service, minor, bytes } })
    }

    /// The pipe of a FIFO, made by its first opener. `ENFILE`: there are too many.
    fn fifo(&self, node: &NodeRef) -> Result<Rc<Pipe>, Errno> {
        let known = node.fifo();
        if let Some(pipe) = known.filter(|pipe| !pipe.has_ended()) {
            return Ok(pipe);
        }
        let pipe = self.base.pipes.make()?;
        node.set_fifo(&pipe);
        Ok(pipe)
    }
}

/// The last step of opening a FIFO, unless it is opened for both or must not wait.
async fn wait_for_other_end(caller: &Caller, file: &OpenFile) -> Result<(), Errno> {
    let Some(PipeEnd { pipe, reads, writes, .. }) = file.object::<PipeEnd>() else { return Ok(()) };
    if *reads == *writes || file.nonblocking() {
        return Ok(());
    }
    let before = pipe.opened();
    let alone = |pipe: &Pipe| {
        let now = pipe.opened();
        if *reads { pipe.writers() == 0 && now.1 == before.1 } else { pipe.readers() == 0 && now.0 == before.0 }
    };
    pipe.watchers.add(caller.event());
    let mut result = Ok(());
    while result.is_ok() && alone(pipe) {
        result = caller.wait().await;
    }
    pipe.watchers.remove(caller.event());
    result
}

fn ends(flags: u32) -> (bool, bool) {
    match flags & O_ACCMODE {
        O_WRONLY => (false, true),
        O_RDWR => (true, true),
        _ => (true, false),
    }
}

/// Checks that a file which exists may be opened so.
fn may_open(process: &Process, node: &NodeRef, flags: u32) -> Result<(), Errno> {
    let credentials = process.caller.credentials();
    let wanted = wanted_rights(flags);
    match node.kind() {
        S_IFLNK => return Err(Errno::ELOOP),
        S_IFDIR if wanted & WRITE != 0 || flags & O_CREAT != 0 => return Err(Errno::EISDIR),
        S_IFDIR => {}
        _ if flags & O_DIRECTORY != 0 => return Err(Errno::ENOTDIR),
        _ => {}
    }
    permission::check(&credentials, node.attributes(), wanted)?;
    if wanted & WRITE != 0 && node.is_regular() && node.mount().is_read_only() {
        return Err(Errno::EROFS);
    }
    if flags & O_NOATIME != 0 {
        permission::check_owner(&credentials, node.attributes())?;
    }
    Ok(())
}

/// The flags of pipe2 that mean something for an open file; `None`: unknown ones.
pub fn pipe_flags(flags: u32) -> Option<u32> {
    let known = O_NONBLOCK | O_CLOEXEC | crate::objects::O_DIRECT;
    (flags & !known == 0).then_some(flags & (O_NONBLOCK | O_APPEND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_mode_tells_the_rights_that_are_needed() {
        assert_eq!(wanted_rights(0), READ);
        assert_eq!(wanted_rights(O_WRONLY), WRITE);
        assert_eq!(wanted_rights(O_RDWR), READ | WRITE);
        assert_eq!(wanted_rights(O_TRUNC), READ | WRITE);
    }
}
