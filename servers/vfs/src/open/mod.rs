//! From a path to an open file (open(2)): finds or creates the file, checks permissions, and makes the object of its type.
//!
//! Neighbours: `calls::open`, which gives the file a descriptor; `exec`, which opens the console of the first program.

mod how;
mod now;

pub use how::How;
pub use now::{Opening, open_now};

use crate::{
    base::{Base, closing::Closing, leases::Wait},
    callers::{
        Caller,
        permission::{self, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, WRITE},
    },
    devices::OWN_NAME,
    files::{
        Files,
        loops::LoopUse,
        mount::{MS_NODEV, Mount},
        nodes::Changing,
        vnode::{Crowd, Description, NodeRef},
        watches::flag,
    },
    objects::{
        O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_LARGEFILE, O_NOATIME, O_NOFOLLOW, O_NONBLOCK, O_PATH,
        O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY, OpenFile,
        block::{Block, Disk, Driven},
        character::Character,
        directory::Directory,
        loop_control::{LOOP_CONTROL, LoopControl},
        null::{self, Null},
        path::PathOnly,
        pipe::PipeEnd,
        regular::Regular,
        zero::Zero,
    },
    pathname::{self, decimal},
    paths::{
        change::{ask_to_make, may_change, new_file},
        walk::{self, Found, Last, Stopped},
    },
    peers::{Peers, Role},
    pipes::Pipe,
    processes::Process,
};
use abi::{
    Errno, Message, block, chardev,
    device::{Device, Kind},
    fs,
    tty::MINOR_SLAVE,
};
use alloc::{format, rc::Rc, vec::Vec};
use core::cell::Cell;
use how::wanted_rights;
use sys::fallible::copied;

/// Flags that are not kept as status of the open file.
const NOT_STATUS: u32 = O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC;
/// What O_PATH leaves of the flags.
const PATH_FLAGS: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Opens the file at a path, creating it if the flags say so. Errors as of open(2).
pub async fn open_file(
    base: &'static Base,
    process: &Rc<Process>,
    directory: i32,
    path: Vec<u8>,
    How { flags, mode, resolve }: How,
) -> Result<Rc<OpenFile>, Errno> {
    let flags = if flags & O_PATH != 0 { flags & PATH_FLAGS } else { flags };
    if flags & O_TMPFILE != 0 {
        return open_nameless(base, process, directory, path, How { flags, mode, resolve }).await;
    }
    let how = How { flags, mode, resolve };
    let (found, created) = find_or_create(base.files(), process, directory, path, how).await?;
    open_resolved(base, process, found, flags, created).await
}

/// [`open_file`], without `O_PATH` and `O_TMPFILE`, from where the resolution of its path has stopped in the turn of the call.
pub async fn open_stopped(
    base: &'static Base,
    process: &Rc<Process>,
    directory: i32,
    stopped: Stopped,
    how: How,
) -> Result<Rc<OpenFile>, Errno> {
    let files = base.files();
    let path = if how.flags & O_CREAT != 0 { copied(stopped.path())? } else { Vec::new() };
    let found = stopped.go_on(files, process).await?;
    let (found, created) = create_or_look_again(files, process, (directory, path), found, how).await?;
    open_resolved(base, process, found, how.flags, created).await
}

/// Opens what a path has led to.
async fn open_resolved(
    base: &'static Base,
    process: &Rc<Process>,
    found: Found,
    flags: u32,
    created: bool,
) -> Result<Rc<OpenFile>, Errno> {
    if let Some(pipe) = &found.pipe {
        return reopen(base.closing(), process.caller.user(), pipe, flags);
    }
    let node = found.existing()?.clone();
    open_found(base, process, node, flags, found.canonical, created).await
}

/// Opens a file that is there, whatever path led to it, or has just been created.
pub async fn open_found(
    base: &'static Base,
    process: &Rc<Process>,
    node: NodeRef,
    flags: u32,
    path: Vec<u8>,
    created: bool,
) -> Result<Rc<OpenFile>, Errno> {
    if flags & O_PATH != 0 {
        return open_path(base.closing(), process.caller.user(), node, flags & PATH_FLAGS, path);
    }
    if !created {
        may_open(process, &node, flags)?;
    }
    open_checked(base, process, node, flags, path, created).await
}

/// Whether a file can be opened without waiting for anybody.
fn is_free(node: &NodeRef) -> bool {
    node.is_regular() && !node.leases().has_any()
}

/// The object of a regular file. `ETXTBSY`: it is to be written, and is executed.
fn make_regular(node: NodeRef, flags: u32) -> Result<Regular, Errno> {
    if wanted_rights(flags) & WRITE != 0 {
        node.check_idle()?;
    }
    Ok(Regular::new(node, flags))
}

/// The last part of opening: permissions are checked, or the file has just been created.
async fn open_checked(
    base: &'static Base,
    process: &Rc<Process>,
    node: NodeRef,
    flags: u32,
    path: Vec<u8>,
    created: bool,
) -> Result<Rc<OpenFile>, Errno> {
    if !node.is_regular() {
        return open_node(base, process, node, flags, path).await;
    }
    // Counted as open first: else another program could get a lease while this call waits.
    let file = make_regular(node, flags)?;
    if file.node.leases().has_any() {
        let wait = if flags & O_NONBLOCK == 0 { Wait::Yes } else { Wait::No };
        base.break_leases(&process.caller, &file.node, file.access(), wait).await?;
    }
    if flags & O_TRUNC != 0 && !created {
        if let Some(seals) = file.node.seals() {
            seals.check_resize(file.node.size(), 0)?;
        }
        base.files().set_size(&process.caller, &file.node, 0).await?;
        base.files().watches().happened(&file.node, &path, flag::MODIFY);
    }
    OpenFile::new(base.closing(), process.caller.user(), file, status_of(flags), path)
}

/// Opens a new file without a name on the file system of a directory (`O_TMPFILE`).
#[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
async fn open_nameless(
    base: &'static Base,
    process: &Rc<Process>,
    directory: i32,
    path: Vec<u8>,
    How { flags, mode, resolve }: How,
) -> Result<Rc<OpenFile>, Errno> {
    if flags & O_DIRECTORY == 0 || flags & O_CREAT != 0 || flags & O_ACCMODE == 0 {
        return Err(Errno::EINVAL);
    }
    let last = if flags & O_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
    let found = walk::resolve_within(base.files(), process, directory, path, last, resolve).await?;
    let parent = found.existing()?;
    if !parent.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    may_change(process, parent)?;
    let (mode, ids) = new_file(process, parent, S_IFREG | mode & 0o7777)?;
    let node = base.files().create_nameless(parent, mode, ids).await?;
    node.set_linkable(flags & O_EXCL == 0);
    let mut path = found.canonical;
    pathname::push(&mut path, format!("#{}", node.number() & 0xffff_ffff).as_bytes())?;
    OpenFile::new(base.closing(), process.caller.user(), Regular::new(node, flags), status_of(flags), path)
}

/// The status flags of a file opened with these flags.
fn status_of(flags: u32) -> u32 {
    flags & !NOT_STATUS | O_LARGEFILE
}

/// The file that a predecessor of this vfs has created for the call in progress, whose name has been looked up since: it counts as new.
pub fn recalled_file(caller: &Caller, directory: &NodeRef, found: Option<&NodeRef>) -> Option<NodeRef> {
    let reply = caller.recalled(fs::Create::LABEL)?;
    let made = Description::from(fs::Create::results(&reply).ok()?);
    let mount = found.filter(|node| node.number() == made.node).map_or(directory.mount(), |node| node.mount());
    Some(mount.adopt(made))
}

/// Opens a pipe once more, through its link in /proc.
fn reopen(closing: &Rc<Closing>, user: u32, open: &OpenFile, flags: u32) -> Result<Rc<OpenFile>, Errno> {
    let PipeEnd { pipe, node, inode, .. } = open.object::<PipeEnd>().ok_or(Errno::ENXIO)?;
    let (reads, writes) = ends(flags);
    pipe.open(reads, writes);
    let object =
        PipeEnd { pipe: pipe.clone(), node: node.clone(), inode: *inode, reads, writes, lonely: Cell::default() };
    let path = open.path().clone();
    OpenFile::new(closing, user, object, flags & !NOT_STATUS, path)
}

fn open_path(
    closing: &Rc<Closing>,
    user: u32,
    node: NodeRef,
    flags: u32,
    path: Vec<u8>,
) -> Result<Rc<OpenFile>, Errno> {
    if flags & O_DIRECTORY != 0 && !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    OpenFile::new(closing, user, PathOnly { node, crowd: Crowd::default() }, flags & !NOT_STATUS, path)
}

/// Finds the file at a path; creates it if the flags say so and it does not exist. Returns whether it is new. The request that creates it
/// tells whether a name exists that is not known, so that a new file takes one request.
async fn find_or_create(
    files: &Files,
    process: &Process,
    directory: i32,
    path: Vec<u8>,
    how: How,
) -> Result<(Found, bool), Errno> {
    if how.flags & (O_CREAT | O_DIRECTORY) == O_CREAT {
        let found = walk::resolve_unasked(files, process, directory, copied(&path)?, how.last(), how.resolve).await?;
        return create_or_look_again(files, process, (directory, path), found, how).await;
    }
    look_again(files, process, directory, path, how).await
}

/// Creates the file that a resolution of this path has not found; looks for it again if the request finds that it is there.
async fn create_or_look_again(
    files: &Files,
    process: &Process,
    (directory, path): (i32, Vec<u8>),
    found: Found,
    how: How,
) -> Result<(Found, bool), Errno> {
    match create_missing(files, process, found, how).await {
        Err(Errno::EEXIST) if !how.is_exclusive() => look_again(files, process, directory, path, how).await,
        result => result,
    }
}

/// Finds the file at a path, also one that a request to create it has found; creates it if the flags say so and it does not exist.
async fn look_again(
    files: &Files,
    process: &Process,
    directory: i32,
    path: Vec<u8>,
    how: How,
) -> Result<(Found, bool), Errno> {
    let found = walk::resolve_within(files, process, directory, path, how.last(), how.resolve).await?;
    create_missing(files, process, found, how).await
}

/// Creates the file that was not found. Returns whether it is new. `EEXIST`: it was found, or has been created meanwhile.
async fn create_missing(files: &Files, process: &Process, mut found: Found, how: How) -> Result<(Found, bool), Errno> {
    if found.pipe.is_some() {
        return Ok((found, false));
    }
    let recalled = recalled_file(&process.caller, &found.parent, found.node.as_ref());
    let created = found.node.is_none() || recalled.is_some();
    match recalled {
        Some(node) => found.node = Some(node),
        None if created => {
            files.settle([Some(&found.parent)]).await?;
            let (request, changing) = ask_to_create(files, process, &found, how)?;
            let reply = files.peers().ask_once(&process.caller, found.parent.service(), request).await?;
            found.node = Some(files.created(changing, &found.parent, pathname::last(&found.canonical), &reply)?);
        }
        None if how.is_exclusive() => return Err(Errno::EEXIST),
        None => {}
    }
    Ok((found, created))
}

/// The request that creates the file that was not found.
fn ask_to_create(files: &Files, process: &Process, found: &Found, how: How) -> Result<(Message, Changing<1>), Errno> {
    if how.flags & O_CREAT == 0 {
        return Err(Errno::ENOENT);
    }
    if found.slash {
        return Err(Errno::EISDIR);
    }
    if how.flags & O_DIRECTORY != 0 {
        return Err(Errno::EINVAL);
    }
    ask_to_make(files, process, found, S_IFREG | how.mode & 0o7777, 0)
}

/// Opens what is behind a node that is no regular file.
async fn open_node(
    base: &Base,
    process: &Process,
    node: NodeRef,
    flags: u32,
    path: Vec<u8>,
) -> Result<Rc<OpenFile>, Errno> {
    let (closing, user) = (base.closing(), process.caller.user());
    let status = status_of(flags);
    match node.kind() {
        S_IFDIR => OpenFile::new(closing, user, Directory { node, crowd: Crowd::default() }, status, path),
        S_IFIFO => {
            let file = OpenFile::new(closing, user, open_fifo(base, &process.caller, node, flags)?, status, path)?;
            wait_for_other_end(&process.caller, &file).await?;
            Ok(file)
        }
        S_IFCHR | S_IFBLK if node.mount().has(MS_NODEV) => Err(Errno::EACCES),
        S_IFCHR => match base.devices().character(node.special_device())? {
            (OWN_NAME, _) if node.special_device() == LOOP_CONTROL => {
                OpenFile::new(closing, user, LoopControl { node }, status, path)
            }
            (OWN_NAME, null::MINOR) => OpenFile::new(closing, user, Null { node }, status, path),
            (OWN_NAME, minor) => OpenFile::new(closing, user, Zero::new(node, minor)?, status, path),
            device => OpenFile::new(
                closing,
                user,
                open_character(base.peers(), process, device, node, flags).await?,
                status,
                path,
            ),
        },
        S_IFBLK => {
            let device = base.devices().numbered(Kind::Block, node.special_device())?;
            let object = match device.service {
                OWN_NAME => {
                    let device = base.loops().device(device.minor.into())?;
                    Block { node, device: Disk::Loop(LoopUse::new(device)) }
                }
                _ => open_block(base.peers(), device, node).await?,
            };
            OpenFile::new(closing, user, object, status, path)
        }
        _ => Err(Errno::ENXIO),
    }
}

fn open_fifo(base: &Base, caller: &Caller, node: NodeRef, flags: u32) -> Result<PipeEnd, Errno> {
    let (reads, writes) = ends(flags);
    let known = node.fifo().filter(|pipe| !pipe.has_ended());
    if writes && !reads && flags & O_NONBLOCK != 0 && known.as_ref().is_none_or(|pipe| pipe.readers() == 0) {
        return Err(Errno::ENXIO);
    }
    let pipe = match known {
        Some(pipe) => pipe,
        None => base.pipes().make(caller.user())?,
    };
    node.set_fifo(&pipe);
    pipe.open(reads, writes);
    if writes {
        pipe.count_write_open(base);
    }
    let lonely = (pipe.writers() == 0).then(|| pipe.write_opens());
    Ok(PipeEnd { pipe, node: Some(node), inode: 0, reads, writes, lonely: Cell::new(lonely) })
}

/// Opens the device behind a node. The driver may say that the open file is another of its devices: /dev/ptmx makes one, and /dev/tty is
/// the terminal of the session.
async fn open_character(
    peers: &Peers,
    process: &Process,
    (service, minor): (&str, u64),
    node: NodeRef,
    flags: u32,
) -> Result<Character, Errno> {
    let service = peers.connect(service, Role::Driver)?;
    let caller = &process.caller;
    let credentials = caller.credentials();
    let request = chardev::Open {
        minor,
        flags: flags as u64,
        caller: caller.pid as u64 | caller.group() << 32,
        session: caller.session(),
        ids: credentials.euid as u64 | (credentials.uid as u64) << 32,
        node: if node.service() == service { node.number() } else { 0 },
    };
    let reply = peers.ask_device_once(caller, service, request.message(), 0).await?;
    let other = reply.words[0] >> chardev::OPENED_MINOR_SHIFT;
    let has_positions = reply.words[0] & chardev::OPENED_POSITIONS != 0;
    Ok(Character::new(node, service, if other != 0 { other } else { minor }, has_positions))
}

/// Opens the slave of a pseudo-terminal whose master is open (`TIOCGPTPEER`). Its node need not permit it. `EIO`: it is a slave itself.
pub async fn open_slave(
    base: &Base,
    process: &Process,
    master: Rc<OpenFile>,
    flags: u32,
) -> Result<Rc<OpenFile>, Errno> {
    let character = master.object::<Character>().ok_or(Errno::ENOTTY)?;
    let (service, number) = character.master()?;
    let name = base.peers().name(service).ok_or(Errno::ENXIO)?;
    let namespace = process.caller.mounts();
    let is_seen = |mount: &Mount| mount.namespace() == namespace && mount.root().is_some();
    let nodes = |mount: &Mount| mount.service() == service && is_seen(mount);
    let mount = base.files().mounts.find(nodes).ok_or(Errno::ENXIO)?;
    let root = mount.root().ok_or(Errno::ENXIO)?;
    let mut digits = [0; 24];
    let file_name = decimal(number, &mut digits).as_bytes();
    let node = base.files().lookup(&root, file_name).await?.ok_or(Errno::EIO)?;
    let mut path = mount.path();
    pathname::push(&mut path, file_name)?;
    let minor = MINOR_SLAVE + number;
    let slave = open_character(base.peers(), process, (name.as_str(), minor), node, flags).await?;
    OpenFile::new(base.closing(), process.caller.user(), slave, status_of(flags), path)
}

async fn open_block(peers: &Peers, device: Device<'_>, node: NodeRef) -> Result<Block, Errno> {
    let service = peers.connect(device.service, Role::Driver)?;
    let minor = device.minor.into();
    let reply = peers.ask(service, block::Open { minor }.message()).await?;
    let (bytes, _, _) = block::Open::results(&reply)?;
    Ok(Block { node, device: Disk::Driven(Driven { service, minor, bytes }) })
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
    caller.wait_until(&pipe.watchers, || !alone(pipe)).await
}

fn ends(flags: u32) -> (bool, bool) {
    match flags & O_ACCMODE {
        O_WRONLY => (false, true),
        O_RDWR => (true, true),
        _ => (true, false),
    }
}

/// Whether opening a file gives power over the system, whoever its owner is: disks, and settings in /proc and /sys.
fn is_of_system(node: &NodeRef, wanted: u32) -> bool {
    let is_setting = || matches!(node.mount().kind(), "proc" | "sysfs") && !fs::is_of_process(node.number());
    node.kind() == S_IFBLK || wanted & WRITE != 0 && node.is_regular() && is_setting()
}

/// Checks that a file which exists may be opened so.
fn may_open(process: &Process, node: &NodeRef, flags: u32) -> Result<(), Errno> {
    let credentials = process.caller.credentials();
    let wanted = wanted_rights(flags);
    match node.kind() {
        S_IFLNK if flags & O_DIRECTORY == 0 => return Err(Errno::ELOOP),
        S_IFDIR if wanted & WRITE != 0 || flags & O_CREAT != 0 => return Err(Errno::EISDIR),
        S_IFDIR => {}
        _ if flags & O_DIRECTORY != 0 => return Err(Errno::ENOTDIR),
        _ => {}
    }
    let is_read_only = wanted & WRITE != 0 && node.is_regular() && node.mount().is_read_only();
    // Linux asks the mount before the permissions when it has to truncate, and after them otherwise.
    if is_read_only && flags & O_TRUNC != 0 {
        return Err(Errno::EROFS);
    }
    permission::check(&credentials, node.attributes(), wanted)?;
    if is_read_only {
        return Err(Errno::EROFS);
    }
    if credentials.contained.is_some() && is_of_system(node, wanted) {
        process.caller.refuse("open of a disk or setting");
        return Err(Errno::EACCES);
    }
    if flags & O_NOATIME != 0 {
        permission::check_owner(&credentials, node.attributes())?;
    }
    Ok(())
}
