//! What pm and procfs ask (`abi::vfs`): lives of processes, signals, ids, and what /proc shows. Answered at once, but for events.

use super::{pidfds, shown};
use crate::{
    base::Base,
    callers::{Call, Caller, lives::Identity, permission::Credentials, save_groups},
    exec,
    keep::{
        ROOT, Text,
        records::{GlobalRecord, IdMaps, LimitRecord, NOWHERE, NodeRecord, ThreadRecord},
    },
    mounts::{
        self,
        tree::{self, Copied},
    },
    processes::{Place, Process, Processes, descriptors::Descriptors, directories::Directories, file_table::FileTable},
    state::Vfs,
};
use abi::container::{CONTAINERS, account};
use abi::{CapabilitySet, Endpoint, Errno, Message, Part, Parts, endpoint::slot, limits, vfs, vfs::Request};
use alloc::{rc::Rc, vec::Vec};
use sys::copy;
use sys::fallible::{collect, copied, filled};

/// RLIMIT_MSGQUEUE of the first process.
const FIRST_MESSAGE_BYTES: u64 = 819_200;
/// RLIMIT_NOFILE of the first program, as pm has it.
const FIRST_DESCRIPTORS: u32 = 1024;

/// Answers a request of a service.
pub fn service_request(vfs: &'static Vfs, message: &Message) -> Message {
    let (base, processes) = (vfs.base(), vfs.processes());
    let Some(request) = Request::decode(message) else { return message.reply(Err(Errno::ENOSYS)) };
    let result = match request {
        Request::NextEvent(request) if is_pm(message) => return next_event(base, message, request.done),
        Request::PidFd(request) if is_pm(message) => return pidfds::describe(processes, message, &request),
        Request::Text(request) => shown::text(base, processes, message.source, &request),
        Request::DescriptorPath(request) => shown::path(processes, message.source, &request),
        Request::Descriptors(request) => shown::descriptors(processes, message.source, &request),
        Request::DescriptorInfo(request) => shown::descriptor(processes, message.source, &request),
        Request::DescriptorAccess(request) => shown::access(processes, &request),
        Request::ProcessFiles(request) => match shown::files(processes, request.process) {
            Ok((umask, table_size)) => return vfs::ProcessFiles::reply(message, 0, umask, table_size),
            Err(error) => Err(error),
        },
        Request::Usage(_) => return shown::usage(base, message),
        Request::ContainerFiles(request) if is_pm(message) => match container_files(base, request.container) {
            Ok((files, pipes)) => return vfs::ContainerFiles::reply(message, 0, files, pipes),
            Err(error) => Err(error),
        },
        _ if !is_pm(message) => Err(Errno::EPERM),
        request => pm_request(vfs, message.source, request),
    };
    message.reply(result)
}

fn pm_request(vfs: &'static Vfs, pm: Endpoint, request: Request) -> Result<u64, Errno> {
    let (base, processes) = (vfs.base(), vfs.processes());
    match request {
        Request::Fork(request) => fork(vfs, &request)?,
        Request::Exit(request) => exit(vfs, request.process)?,
        Request::Exec(request) => exec::begin(base, vfs.startup(), processes.get(request.process)?, pm, &request)?,
        Request::ExecCommit(request) => {
            let process = processes.get(request.process)?;
            commit_exec(vfs, &process)?;
        }
        Request::ExecText(request) => {
            let process = processes.get(request.process)?;
            let text = process.exec_text();
            let bytes = text.len().min(request.bytes as usize);
            copy::to_grant(pm, request.grant, 0, &text[..bytes])?;
            return Ok(bytes as u64);
        }
        Request::Cancel(request) => {
            let process = processes.get(request.process)?;
            cancel(base, &process, Errno(request.error.saturating_abs()))?;
        }
        Request::SignalsPending(request) => processes.get(request.process)?.caller.signals().arrived(),
        Request::Unmasked(request) => {
            processes.get(request.process)?.caller.unmasked().fire();
        }
        Request::SetIds(request) => {
            let process = processes.get(request.process)?;
            set_ids(&process, pm, &request)?;
        }
        Request::LimitContainer(request) => limit_container(base, &request)?,
        Request::WorksFor(request) => return Ok(processes.get(request.process)?.caller.is_served().into()),
        Request::SetParts(request) => set_parts(vfs, &request)?,
        Request::SetIdMap(request) => {
            let maps = IdMaps { users: request.users, groups: request.groups };
            processes.get(request.process)?.caller.set_id_maps(maps);
        }
        Request::SetSession(request) => {
            let process = processes.get(request.process)?;
            process.caller.set_session(request.session, request.group);
        }
        Request::SetLimits(request) => set_limits(processes, &request)?,
        Request::OpenPidFd(request) => return pidfds::open(base, processes, &request),
        Request::ProcessFolder(request) => return pidfds::process_folder(processes, &request),
        Request::CopyDescriptor(request) => return pidfds::copy_descriptor(base, processes, &request),
        Request::Compare(request) => return pidfds::compare(processes, &request),
        Request::SyncAll(request) => mounts::begin_sync(base, request.unmount),
        _ => return Err(Errno::ENOSYS),
    }
    Ok(0)
}

fn next_event(base: &Base, message: &Message, done: u64) -> Message {
    let done = base.notices().done(done);
    if let Some(place) = done.and_then(|event| event.saved) {
        base.store().release_signal(place);
    }
    if done.is_some_and(|event| event.kind == vfs::EVENT_SYNCED) {
        base.store().set_global(&GlobalRecord { sync: 0, ..base.store().global() });
    }
    base.notices().next(message)
}

/// The account of a container. `EINVAL`: there is none with this number.
fn account_of(container: u64) -> Result<(u8, u32), Errno> {
    let number = u8::try_from(container).map_err(|_| Errno::EINVAL)?;
    let exists = (1..CONTAINERS).contains(&usize::from(number));
    if exists { Ok((number, account(number))) } else { Err(Errno::EINVAL) }
}

/// Sets what a container may have, here and for successors.
fn limit_container(base: &Base, request: &vfs::LimitContainer) -> Result<(), Errno> {
    let (number, _) = account_of(request.container)?;
    let limit = |value| u32::try_from(value).unwrap_or(u32::MAX);
    let record = LimitRecord { files: limit(request.files), pipes: limit(request.pipes) };
    base.apply_limits(number, &record)?;
    base.store().set_limits(number, &record);
    Ok(())
}

fn container_files(base: &Base, container: u64) -> Result<(u64, u64), Errno> {
    let (_, account) = account_of(container)?;
    Ok((base.store().files_of(account) as u64, base.pipes().held_by(account) as u64))
}

/// Adds the thread of a child. If it exists, pm repeats a request that a predecessor did not reply to.
fn fork(vfs: &Vfs, request: &vfs::Fork) -> Result<(), Errno> {
    let (base, processes) = (vfs.base(), vfs.processes());
    if !request.child.is_application() {
        return Err(Errno::EINVAL);
    }
    if processes.get(request.child).is_ok() {
        return Ok(());
    }
    let child = if request.parent == Endpoint::NONE {
        first_process(base, request)?
    } else {
        let parent = processes.get(request.parent)?;
        child_process(base, &parent, request)?
    };
    let child = Rc::new(child);
    if let Some(old) = processes.insert(child.clone())? {
        end(vfs, &old);
    }
    base.store().forget_thread(request.child.slot());
    child.caller.save();
    Ok(())
}

fn first_process(base: &Base, request: &vfs::Fork) -> Result<Process, Errno> {
    let files = FileTable::new(base.closing(), ROOT, Descriptors::default())?;
    let Identity { pid, generation } = Identity::from_word(request.identity);
    let record = ThreadRecord {
        endpoint: request.child,
        pid,
        generation,
        table: files.record(),
        directories: NOWHERE,
        first: true,
        session: 0,
        group: 0,
        ids: [0; 4],
        capabilities: [CapabilitySet::ALL; 2],
        groups: Text::EMPTY,
        descriptors: FIRST_DESCRIPTORS,
        file_bytes: u64::MAX,
        message_bytes: FIRST_MESSAGE_BYTES,
        program: NodeRecord::NONE,
        parts: request.parts,
        id_maps: IdMaps::NONE,
    };
    Ok(Process::new(Caller::new(base.store(), record, Vec::new()), files, None))
}

fn child_process(base: &Base, parent: &Process, request: &vfs::Fork) -> Result<Process, Errno> {
    check_root(parent, request.parts)?;
    let (files, user) = (parent.files(), request.parts.account(parent.caller.record().ids[2]));
    let files = match request.flags & vfs::FORK_FILES {
        0 => FileTable::new(base.closing(), user, files.descriptors().copy()?)?,
        _ => files,
    };
    let directories = match parent.directories().ok() {
        Some(shared) if request.flags & vfs::FORK_FS == 0 => Some(shared.copy(user)?),
        shared => shared,
    };
    match (new_namespace(base, parent, request.parts)?, &directories) {
        (Some(copies), Some(directories)) => enter_copy(directories, &copies)?,
        (None, Some(directories)) if u16::from(request.parts.of(Part::Mounts)) != parent.caller.mounts() => {
            enter_root(base, directories, request.parts)?;
        }
        _ => {}
    }
    let has_same_users = parent.caller.parts().of(Part::Users) == request.parts.of(Part::Users);
    let id_maps = if has_same_users { parent.caller.record().id_maps } else { IdMaps::NONE };
    let groups = copied(&parent.caller.credentials().groups)?;
    let Identity { pid, generation } = Identity::from_word(request.identity);
    let record = ThreadRecord {
        endpoint: request.child,
        pid,
        generation,
        table: files.record(),
        directories: directories.as_ref().map_or(NOWHERE, |directories| directories.record()),
        groups: save_groups(base.store(), &groups, user)?,
        parts: request.parts,
        id_maps,
        ..parent.caller.record()
    };
    let child = Process::new(Caller::new(base.store(), record, groups), files, directories);
    child.restore_program(parent.program());
    Ok(child)
}

/// Copies the mounts that a process sees for containers in which there are none yet. `ENOSPC`.
fn new_namespace(base: &Base, of: &Process, parts: Parts) -> Result<Option<Vec<Copied>>, Errno> {
    let namespace = u16::from(parts.of(Part::Mounts));
    if namespace == of.caller.mounts() || base.files().mounts.root(namespace).is_ok() {
        return Ok(None);
    }
    let locked = parts.of(Part::Users) != of.caller.parts().of(Part::Users);
    tree::copy_namespace(base, of, parts, locked).map(Some)
}

/// `EPERM`: in a container with users of its own a process would have the right to leave its root directory.
fn check_root(process: &Process, parts: Parts) -> Result<(), Errno> {
    let has_new_users = parts.of(Part::Users) != process.caller.parts().of(Part::Users);
    let is_confined = || process.directories().is_ok_and(|own| !own.root().node.mount().is_root(&own.root().node));
    if has_new_users && is_confined() { Err(Errno::EPERM) } else { Ok(()) }
}

/// Goes to the same directories in a copy of the mounts.
fn enter_copy(directories: &Directories, copies: &[Copied]) -> Result<(), Errno> {
    let (root, working) = (directories.root().clone(), directories.working().clone());
    directories.set_root(tree::place_in_copy(copies, &root))?;
    directories.set_working(tree::place_in_copy(copies, &working))
}

/// Goes to the root of the mounts of a container that has some.
fn enter_root(base: &Base, directories: &Directories, parts: Parts) -> Result<(), Errno> {
    let namespace = parts.of(Part::Mounts).into();
    let root = Place { node: base.files().mounts.root(namespace)?, path: Rc::from(&b"/"[..]) };
    directories.set_root(root.clone())?;
    directories.set_working(root)
}

/// A thread goes into other containers. Done again, it finds itself there.
fn set_parts(vfs: &Vfs, request: &vfs::SetParts) -> Result<(), Errno> {
    let (base, processes) = (vfs.base(), vfs.processes());
    let process = processes.get(request.process)?;
    check_root(&process, request.parts)?;
    if request.unshared & vfs::FORK_FILES != 0 {
        process.unshare_files(base.closing())?;
    }
    if request.unshared & vfs::FORK_FS != 0 {
        process.unshare_directories()?;
    }
    let before = process.caller.parts();
    let namespace = u16::from(request.parts.of(Part::Mounts));
    if namespace != process.caller.mounts() {
        process.unshare_directories()?;
        let directories = process.directories()?;
        match new_namespace(base, &process, request.parts)? {
            Some(copies) => enter_copy(&directories, &copies)?,
            None => enter_root(base, &directories, request.parts)?,
        }
    }
    process.caller.set_parts(request.parts);
    end_unseen(vfs, before);
    Ok(())
}

/// Ends the mounts, and the names of message queues, of containers that no thread is in any more.
fn end_unseen(vfs: &Vfs, parts: Parts) {
    let is_lost = |part| {
        let container = parts.of(part);
        container != 0 && !vfs.processes().any(|process| process.caller.parts().of(part) == container)
    };
    if is_lost(Part::Mounts) {
        tree::end_namespace(vfs.base(), parts.of(Part::Mounts).into());
    }
    if is_lost(Part::Ipc) {
        vfs.queues().remove_all_of(parts.of(Part::Ipc));
    }
}

/// Removes a thread. One that does not exist has ended before.
fn exit(vfs: &Vfs, endpoint: Endpoint) -> Result<(), Errno> {
    if let Ok(process) = vfs.processes().remove(endpoint) {
        vfs.base().store().forget_thread(endpoint.slot());
        let parts = process.caller.parts();
        end(vfs, &process);
        end_unseen(vfs, parts);
    }
    Ok(())
}

/// Ends the call of a thread in progress, and releases what no other thread shares with it.
fn end(vfs: &Vfs, process: &Process) {
    let (base, processes) = (vfs.base(), vfs.processes());
    process.caller.set_gone();
    process.caller.unmasked().fire();
    process.caller.signals().arrived();
    match process.caller.set_call(Call::None) {
        Call::Pipe(pipe) => drop(pipe.cancel(process.caller.endpoint)),
        Call::Waiting => process.caller.interrupt(Errno::EINTR),
        Call::Device(asked) => asked.cancel(),
        Call::None | Call::Signalled(_) => {}
    }
    process.caller.part().end(Err(Errno::EINTR));
    base.notices().forget(process.caller.endpoint);
    let identity = process.caller.identity();
    base.lives().thread_ended(identity, || has_thread(processes, identity));
    if !vfs.contexts().is_empty() && !has_thread(processes, identity) {
        vfs.contexts().end_all(identity);
    }
    process.drop_exec();
    let table = process.files();
    if !is_shared(processes, &table) {
        table.close_all();
    }
    process.end();
}

/// Whether a process has a thread.
pub(super) fn has_thread(processes: &Processes, identity: Identity) -> bool {
    processes.any(|process| process.caller.identity() == identity)
}

/// Whether a thread besides the one that has just ended uses this table.
fn is_shared(processes: &Processes, table: &Rc<FileTable>) -> bool {
    // Two: the ended thread's and the caller's. More may also be handlers in progress.
    Rc::strong_count(table) > 2 && processes.any(|other| other.uses_files(table))
}

/// Ends the call in progress with this error, or with what it has moved. `ENOENT`: there is none.
fn cancel(base: &Base, process: &Process, error: Errno) -> Result<(), Errno> {
    let endpoint = process.caller.endpoint;
    match process.caller.set_call(Call::None) {
        Call::None => {
            // If it is a call that a predecessor was serving, it comes again, and ends when it would wait.
            process.caller.cancel(error);
            return Err(Errno::ENOENT);
        }
        Call::Waiting => {
            process.caller.set_call(Call::Waiting);
            process.caller.interrupt(error);
        }
        Call::Device(asked) => {
            process.caller.cancel(error);
            asked.cancel();
            process.caller.set_call(Call::Device(asked));
        }
        Call::Pipe(pipe) => {
            let moved = pipe.cancel(endpoint).unwrap_or(0);
            base.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) });
        }
        Call::Signalled(moved) => base.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) }),
    }
    // pm, which is told that the call ends, does not ask again: so a successor must know how it has ended.
    base.store().has_moved();
    Ok(())
}

/// The point of no return of an exec: closes its images and the descriptors marked close-on-exec, and shares nothing any more.
fn commit_exec(vfs: &Vfs, process: &Process) -> Result<(), Errno> {
    let base = vfs.base();
    vfs.contexts().end_all(process.caller.identity());
    process.start_program();
    base.store().set_exec(process.caller.endpoint.slot(), None);
    process.unshare_files(base.closing())?;
    process.unshare_directories()?;
    process.files().close_marked();
    Ok(())
}

fn set_ids(process: &Process, pm: Endpoint, request: &vfs::SetIds) -> Result<(), Errno> {
    if request.groups > limits::GROUPS as u64 {
        return Err(Errno::EINVAL);
    }
    let mut bytes = filled(0, request.groups as usize * 4)?;
    if !bytes.is_empty() {
        copy::from_grant(pm, request.grant, 0, &mut bytes)?;
    }
    let credentials = Credentials {
        euid: request.effective as u32,
        egid: (request.effective >> 32) as u32,
        uid: request.real as u32,
        gid: (request.real >> 32) as u32,
        groups: collect(bytes.as_chunks().0.iter().map(|group| u32::from_le_bytes(*group)))?,
        capabilities: request.capabilities,
        real_capabilities: request.real_capabilities,
        contained: None,
    };
    process.caller.set_credentials(credentials)
}

/// Changes the limits of all threads of a process.
fn set_limits(processes: &Processes, request: &vfs::SetLimits) -> Result<(), Errno> {
    let pid = processes.get(request.process)?.caller.pid;
    processes.for_each(|process| {
        if process.caller.pid == pid {
            process.caller.set_limits(request);
        }
    });
    Ok(())
}

fn is_pm(message: &Message) -> bool {
    message.source.slot() == slot::PM
}
