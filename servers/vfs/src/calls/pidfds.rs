//! What pm asks of descriptors that mean processes: it has their calls, and vfs the descriptors.
//!
//! A request that makes a descriptor names the call of the program for which it is made, under which the result is noted. So it comes to one
//! descriptor when pm or vfs dies and the request is made again.

use super::services::has_thread;
use crate::{
    base::Base,
    callers::lives::Identity,
    keep::{Store, records::Note},
    memory as user,
    objects::{O_NONBLOCK, O_RDWR, OpenFile, directory::Directory, epoll::epoll_of, pidfd::PidFd},
    processes::{Process, Processes},
};
use abi::{Endpoint, Errno, Message, Word, fs, vfs};
use alloc::rc::Rc;
use core::cmp::Ordering;
use sys::fallible::copied;

/// The descriptor that was made for a call.
fn made(store: &Store, thread: Endpoint, call: u64) -> Option<u64> {
    match store.noted(thread, call) {
        Some(Note::Result(word)) => Result::from_word(word).ok(),
        _ => None,
    }
}

/// Gives a thread a descriptor that closes on exec, and notes it under its call to pm.
fn give(base: &Base, process: &Process, call: u64, file: Rc<OpenFile>) -> Result<u64, Errno> {
    let descriptor = process.insert(file, true)?;
    base.store().begin_call(process.caller.endpoint, call);
    process.caller.note(Note::Result(descriptor));
    Ok(descriptor)
}

/// The open file behind a descriptor that means a process, and which one.
fn pidfd_at(process: &Process, descriptor: i32) -> Option<(Rc<OpenFile>, Identity)> {
    let file = process.file(descriptor).ok()?;
    let identity = file.object::<PidFd>()?.identity();
    Some((file, identity))
}

/// Closes the descriptor of a child that pm has made once more, because it had died: also in the new child, which is a copy of its parent as
/// the parent was by then.
fn end_former(processes: &Processes, parent: &Process, child: Identity, descriptor: i32, file: &Rc<OpenFile>) {
    let table = parent.files();
    for thread in processes.all().into_iter().filter(|thread| thread.caller.identity() == child) {
        let is_copy = thread.file(descriptor).is_ok_and(|its| Rc::ptr_eq(&its, file));
        if is_copy && !thread.uses_files(&table) {
            // It is there.
            let _ = thread.files().close(descriptor);
        }
    }
    let _ = table.close(descriptor);
}

/// `OpenPidFd`. If pm has died and made the child once more, the descriptor means the new one.
pub(super) fn open(base: &Base, processes: &Processes, request: &vfs::OpenPidFd) -> Result<u64, Errno> {
    let process = processes.get(request.process)?;
    let identity = Identity::from_word(request.identity);
    if let Some(descriptor) = made(base.store(), request.process, request.call) {
        match pidfd_at(&process, descriptor as i32) {
            Some((_, known)) if known == identity => return Ok(descriptor),
            Some((file, _)) => end_former(processes, &process, identity, descriptor as i32, &file),
            // Another thread has closed it.
            None => {}
        }
    }
    let pidfd = PidFd::new(base.lives().of(identity, || has_thread(processes, identity)));
    let nonblock = if request.flags & vfs::PIDFD_NONBLOCK != 0 { O_NONBLOCK } else { 0 };
    let path = copied(b"anon_inode:[pidfd]")?;
    let file = OpenFile::new(base.closing(), process.caller.user(), pidfd, nonblock | O_RDWR, path)?;
    let descriptor = give(base, &process, request.call, file)?;
    if request.address != 0 {
        let number = (descriptor as u32).to_le_bytes();
        user::store(request.process, request.address, &number).inspect_err(|_| {
            // It has just been given.
            let _ = process.files().close(descriptor as i32);
        })?;
    }
    Ok(descriptor)
}

/// `PidFd`.
pub(super) fn describe(processes: &Processes, message: &Message, request: &vfs::PidFd) -> Message {
    let file = processes.get(request.process).and_then(|process| process.file(request.descriptor as i32));
    let known = file.ok().and_then(|file| Some((file.object::<PidFd>()?.identity(), file.nonblocking())));
    match known {
        Some((identity, nonblocking)) => vfs::PidFd::reply(message, 0, identity.to_word(), nonblocking),
        None => message.reply(Err(Errno::EBADF)),
    }
}

/// `ProcessFolder`. A descriptor of `O_PATH` is none, as on Linux.
pub(super) fn process_folder(processes: &Processes, request: &vfs::ProcessFolder) -> Result<u64, Errno> {
    let file = processes.get(request.process)?.file(request.descriptor as i32)?;
    let node = &file.object::<Directory>().ok_or(Errno::EBADF)?.node;
    let pid = if node.mount().kind() == "proc" { fs::process_of_folder(node.number()) } else { None };
    pid.map(u64::from).ok_or(Errno::EBADF)
}

/// `Compare`.
pub(super) fn compare(processes: &Processes, request: &vfs::Compare) -> Result<u64, Errno> {
    let (first, second) = (processes.get(request.first)?, processes.get(request.second)?);
    let file = || Ok(first.file(request.descriptor as i32)?.number());
    let order = match request.what {
        vfs::COMPARE_FILE => file()?.cmp(&second.file(request.other as i32)?.number()),
        vfs::COMPARE_FILES => first.files().number().cmp(&second.files().number()),
        vfs::COMPARE_FS => first.directories()?.record().cmp(&second.directories()?.record()),
        vfs::COMPARE_EPOLL => {
            let (file, epoll) = (file()?, second.file(request.other as i32)?);
            let epoll = epoll_of(&epoll).ok_or(Errno::EINVAL)?;
            file.cmp(&epoll.nth_target((request.other >> 32) as i32, request.nth).ok_or(Errno::ENOENT)?)
        }
        _ => return Err(Errno::EINVAL),
    };
    Ok(match order {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}

/// `CopyDescriptor`. `EBADF`: the other thread has no such descriptor.
pub(super) fn copy_descriptor(base: &Base, processes: &Processes, request: &vfs::CopyDescriptor) -> Result<u64, Errno> {
    if let Some(descriptor) = made(base.store(), request.process, request.call) {
        return Ok(descriptor);
    }
    let file = processes.get(request.from)?.file(request.descriptor as i32)?;
    let process = processes.get(request.process)?;
    give(base, &process, request.call, file)
}
