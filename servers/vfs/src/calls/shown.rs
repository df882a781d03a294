//! What procfs shows of vfs: mounts, locks and sockets, and the files of a process (`abi::vfs`).

use super::descriptors::numbered;
use crate::{
    base::Base,
    devices::OWN_NAME,
    files::{mount::Mount, stat, vnode::NodeRef},
    keep::records::{LockRecord, NOWHERE, SocketRecord},
    objects::{Object, OpenFile, socket::SocketFile},
    pathname,
    processes::{Place, Processes},
};
use abi::{Endpoint, Errno, Message, vfs};
use alloc::{rc::Rc, string::String, vec::Vec};
use core::fmt::{self, Write};
use sys::{
    copy,
    fallible::{TryVec, collect, copied},
    text::Text,
};

/// `SO_ACCEPTCON` in the column of flags of /proc/net/unix.
const ACCEPTS: u32 = 0x1_0000;
/// Mount of what has no file, which no list of mounts shows.
const NO_MOUNT: u16 = 0x1000;

/// A text about vfs as a whole.
pub fn text(base: &Base, processes: &Processes, to: Endpoint, request: &vfs::Text) -> Result<u64, Errno> {
    let text = match request.what {
        vfs::TEXT_MOUNTS => Text::of(|text| mounts(base, processes, request.process, text, Mount::line)),
        vfs::TEXT_MOUNT_INFO => Text::of(|text| mounts(base, processes, request.process, text, Mount::info_line)),
        vfs::TEXT_LOCKS => Text::of(|text| locks(base, text)),
        vfs::TEXT_SOCKETS => Text::of(|text| sockets(base, text)),
        vfs::TEXT_PARTITIONS => Text::of(|text| partitions(base, text)),
        _ => return Err(Errno::EINVAL),
    }?;
    let start = text.len().min(request.offset as usize);
    let end = text.len().min(start.saturating_add(request.bytes as usize));
    copy::to_grant(to, request.grant, 0, &text[start..end])?;
    Ok((end - start) as u64)
}

/// The mounts that a process sees, with their paths below its root; those of the system, if there is no such process.
fn mounts(
    base: &Base,
    processes: &Processes,
    process: Endpoint,
    text: &mut Text,
    line: fn(&Mount, &[u8]) -> String,
) -> fmt::Result {
    let process = processes.get(process).ok();
    let namespace = process.as_ref().map_or(0, |process| process.caller.mounts());
    let directories = process.and_then(|process| process.directories().ok());
    let root = directories.map(|directories| directories.root().path.clone());
    base.files().mounts.of(namespace).iter().try_for_each(|mount| {
        let path = mount.path();
        match pathname::below(&path, root.as_deref().unwrap_or(b"/")) {
            Some(path) => text.write_str(&line(mount, path)),
            None => Ok(()),
        }
    })
}

/// Every disk whose size is known, and not 0.
fn partitions(base: &Base, text: &mut Text) -> fmt::Result {
    text.write_str("major minor  #blocks  name\n\n")?;
    for (disk, driven_bytes) in base.devices().disks() {
        let bytes = match disk.service {
            OWN_NAME => base.loops().device(disk.minor.into()).map_or(0, |device| device.bytes()),
            _ => driven_bytes,
        };
        if bytes > 0 {
            writeln!(text, "{:4}  {:7} {:10} {}", disk.major, disk.minor, bytes / 1024, disk.name)?;
        }
    }
    Ok(())
}

fn locks(base: &Base, text: &mut Text) -> fmt::Result {
    base.store().locks().enumerate().try_for_each(|(index, (_, lock))| {
        let mount = base.files().mounts.find(|mount| mount.record() == lock.node.mount);
        let device = mount.map_or(0, |mount| mount.device());
        lock_line(text, index + 1, &lock, device)
    })
}

/// A line of /proc/locks: the lock's number, sort, strength, process, file and range.
fn lock_line(text: &mut Text, number: usize, lock: &LockRecord, device: u64) -> fmt::Result {
    let pid = lock.pid as i32;
    // One of an open file has no process.
    let sort = if lock.whole { "FLOCK " } else { if pid < 0 { "OFDLCK" } else { "POSIX " } };
    let strength = if lock.exclusive { "WRITE" } else { "READ " };
    let (major, minor) = (stat::major(device), stat::minor(device));
    let (node, start) = (lock.node.node, lock.start);
    write!(text, "{number}: {sort} ADVISORY  {strength} {pid} {major:02x}:{minor:02x}:{node} {start} ")?;
    match lock.last {
        u64::MAX => text.write_str("EOF\n"),
        last => writeln!(text, "{last}"),
    }
}

fn sockets(base: &Base, text: &mut Text) -> fmt::Result {
    base.store().sockets_in_use().try_for_each(|(place, socket)| {
        let name = base.store().text(socket.name);
        socket_line(text, place, &socket, &name)
    })
}

/// A line of /proc/net/unix. The first number, an address in Linux, is the socket's place.
fn socket_line(text: &mut Text, place: u16, socket: &SocketRecord, name: &[u8]) -> fmt::Result {
    const UNCONNECTED: u32 = 1;
    const CONNECTED: u32 = 3;
    let is_connected = socket.outgoing != NOWHERE;
    let (flags, state) =
        (if socket.listening { ACCEPTS } else { 0 }, if is_connected { CONNECTED } else { UNCONNECTED });
    let (kind, inode) = (socket.kind, socket.inode);
    write!(text, "{place:016x}: {:08X} {:08X} {flags:08X} {kind:04X} {state:02X} {inode:>5}", 2, 0)?;
    if !name.is_empty() {
        text.write_str(" ")?;
        // An abstract name begins with NUL, which Linux shows as @, like every other NUL in it.
        name.split_inclusive(|byte| *byte == 0).try_for_each(|part| match part.split_last() {
            Some((0, before)) => text.write_bytes(before).and_then(|()| text.write_str("@")),
            _ => text.write_bytes(part),
        })?;
    }
    text.write_str("\n")
}

/// What /proc shows an open file as: the path that it was opened by, or a socket's inode number.
fn name(file: &OpenFile) -> Result<Vec<u8>, Errno> {
    match file.object::<SocketFile>() {
        Some(SocketFile(socket)) => numbered("socket", socket.record().inode),
        None => named(&file.path(), file.node()),
    }
}

/// A path, and whether its file has been removed.
fn named(path: &[u8], node: Option<&NodeRef>) -> Result<Vec<u8>, Errno> {
    let mut text = copied(path)?;
    if node.is_some_and(|node| node.is_unlinked() && !node.mount().is_volatile()) {
        text.try_extend_from_slice(b" (deleted)")?;
    }
    Ok(text)
}

fn directory(place: &Place) -> Result<Vec<u8>, Errno> {
    named(&place.path, Some(&place.node))
}

/// The path of a descriptor, or of the working or root directory.
pub fn path(processes: &Processes, to: Endpoint, request: &vfs::DescriptorPath) -> Result<u64, Errno> {
    const WORKING: i64 = -1;
    const ROOT: i64 = -2;
    let process = processes.get(request.process)?;
    let full = match request.what {
        WORKING => directory(&process.directories()?.working())?,
        ROOT => directory(&process.directories()?.root())?,
        descriptor => name(&*process.file(descriptor as i32)?)?,
    };
    let root = process.directories()?.root().path.clone();
    let shown = if request.what == ROOT { &full } else { pathname::below(&full, &root).unwrap_or(&full) };
    let bytes = shown.len().min(request.bytes as usize);
    copy::to_grant(to, request.grant, 0, &shown[..bytes])?;
    Ok(bytes as u64)
}

/// The numbers of the open descriptors.
pub fn descriptors(processes: &Processes, to: Endpoint, request: &vfs::Descriptors) -> Result<u64, Errno> {
    let process = processes.get(request.process)?;
    let table = process.files();
    let descriptors = table.descriptors();
    let numbers = descriptors.iter().map(|(number, _)| number as u32);
    let wanted = numbers.filter(|number| *number as u64 >= request.first).take(request.bytes as usize / 4);
    let bytes = collect(wanted.flat_map(u32::to_le_bytes))?;
    copy::to_grant(to, request.grant, 0, &bytes)?;
    Ok(bytes.len() as u64)
}

/// What a descriptor was opened for: nothing with `O_PATH`.
pub fn access(processes: &Processes, request: &vfs::DescriptorAccess) -> Result<u64, Errno> {
    let file = processes.get(request.process)?.file(request.descriptor as i32)?;
    let reads = if file.reads() { vfs::OPEN_READS } else { 0 };
    let writes = if file.writes() { vfs::OPEN_WRITES } else { 0 };
    Ok(reads | writes)
}

/// The lines of /proc/PID/fdinfo.
pub fn descriptor(processes: &Processes, to: Endpoint, request: &vfs::DescriptorInfo) -> Result<u64, Errno> {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let process = processes.get(request.process)?;
    let file = process.file(request.descriptor)?;
    let closes = process.files().descriptors().close_on_exec(request.descriptor)?;
    let flags = file.flags() | if closes { O_CLOEXEC } else { 0 };
    let text = Text::of(|text| describe(text, &file, flags))?;
    let bytes = text.len().min(request.bytes as usize);
    copy::to_grant(to, request.grant, 0, &text[..bytes])?;
    Ok(bytes as u64)
}

fn describe(text: &mut Text, file: &Rc<OpenFile>, flags: u32) -> fmt::Result {
    let object: &dyn Object = file.any();
    let (mount, inode) = match object.node() {
        Some(node) => (node.mount().id(), node.number()),
        None => (NO_MOUNT, object.summary().map_or(0, |summary| summary.inode)),
    };
    write!(text, "pos:\t{}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{inode}\n", file.position())?;
    object.describe(text)
}

/// umask and size of the descriptor table of a process.
pub fn files(processes: &Processes, endpoint: Endpoint) -> Result<(u64, u64), Errno> {
    let process = processes.get(endpoint)?;
    let umask = process.directories()?.umask();
    let size = process.files().descriptors().len();
    Ok((u64::from(umask), size as u64))
}

/// How full the tables are.
pub fn usage(base: &Base, message: &Message) -> Message {
    let nodes: usize = base.files().mounts.all().iter().map(|mount| mount.node_count()).sum();
    let usage = base.store().usage();
    vfs::Usage::reply(
        message,
        0,
        usage.files as u64,
        usage.files_max as u64,
        nodes as u64,
        usage.user_pipe_bytes as u64,
        usage.user_interests as u64,
        base.store().requests() as u64,
    )
}
