//! Figures of the running system. Requests are repeated if a server crashes. A figure that is not available at the moment (of a
//! process that has just ended) counts as empty or 0: a file of /proc is a snapshot.

use crate::pidfd;
use crate::source::{FileUsage, Memory, OpenFile, ProcessMemory, ProcessText, Screen, Source};
use crate::text::{Lossy, Text};
use abi::info::{self, KernelInfo};
use abi::pm::{IpcRecord, ProcessRecord};
use abi::vm::MapRecord;
use abi::{Endpoint, Errno, GrantId, Message, Name, container, display, m3ipc, pm, vfs, vm};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use fs::file_system::Caller;
use sys::fallible::{self, TryVec};
use sys::{grant, ipc};
use zerocopy::{FromBytes, IntoBytes};

/// Limit of the text of a process, in bytes.
const TEXT_BYTES: usize = 16 * 1024;
/// Limit of a text of vfs, in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Limit of a name of the machine, in bytes.
const NAME_BYTES: usize = 64;
/// Limit of a path, in bytes.
const PATH_BYTES: usize = 4096;

/// Limit of a text of m3ipc, in bytes: a line for each process of a container.
const DRVS_BYTES: usize = 32 * 1024;

/// The running system, with the processes of a container by its numbers; 0: all.
pub struct Live {
    /// The container.
    pub container: u8,
    /// The driver of the screen.
    pub screen: Optional,
    /// The service that draws text on it.
    pub console: Optional,
}

/// A service that not every machine has. A call to it waits while it starts; its slot is remembered.
#[derive(Clone, Copy)]
pub struct Optional {
    name: &'static str,
    slot: Option<usize>,
}

impl Optional {
    /// The service of this name.
    pub const fn new(name: &'static str) -> Optional {
        Optional { name, slot: None }
    }

    /// Asks it. `ENODEV`: it is not up, and will not be, or it dies whenever it is asked.
    fn ask(&mut self, message: &Message) -> Result<Message, Errno> {
        let slot = match self.slot {
            Some(slot) => slot,
            None => {
                let name = Name::new(self.name).ok_or(Errno::ENODEV)?;
                server::names::expected(name).map_err(|_| Errno::ENODEV)?.slot()
            }
        };
        self.slot = Some(slot);
        let reply = ipc::call_repeating(Endpoint::current(slot), message).map_err(|error| match error {
            Errno::EDEADSRCDST => Errno::ENODEV,
            other => other,
        })?;
        reply.result()?;
        Ok(reply)
    }
}

impl Live {
    /// The system's number of a process. `ESRCH`: the container has none with this number.
    fn meant(&self, pid: u32) -> Result<u64, Errno> {
        container::pid_meant(self.container, pid).map(u64::from).ok_or(Errno::ESRCH)
    }

    /// A record with the container's numbers; `None`: the process is in none of its.
    fn shown(&self, record: ProcessRecord) -> Option<ProcessRecord> {
        let shown = |pid| container::pid_shown(self.container, pid);
        let record = ProcessRecord {
            pid: shown(record.pid),
            process: shown(record.process),
            parent: shown(record.parent),
            group: shown(record.group),
            session: shown(record.session),
            tracer: shown(record.tracer),
            ..record
        };
        (record.pid != 0).then_some(record)
    }
}

impl Live {
    /// The text about a pidfd with the lines that programs see.
    fn with_pids(&self, mut text: Vec<u8>, told: pidfd::Told) -> Result<Vec<u8>, Errno> {
        let first_pid = told.pid.into();
        let found = fetch_one(Endpoint::PM, |grant, bytes| pm::Processes { first_pid, grant, bytes }.message())?;
        let is_zombie = |record: ProcessRecord| record.pid == told.pid && record.state == u32::from(b'Z');
        let is_known = !told.has_ended || found.is_some_and(is_zombie);
        let lines = Text::of(|text| pidfd::write(text, self.container, is_known.then_some(told.pid)))?;
        text.truncate(told.at);
        text.try_extend_from_slice(&lines)?;
        Ok(text)
    }
}

impl Source for Live {
    fn process_from(&mut self, pid: u32) -> Result<Option<ProcessRecord>, Errno> {
        let Ok(first_pid) = self.meant(pid.max(1)) else { return Ok(None) };
        let found = fetch_one(Endpoint::PM, |grant, bytes| pm::Processes { first_pid, grant, bytes }.message())?;
        Ok(found.and_then(|record| self.shown(record)))
    }

    fn thread_from(&mut self, pid: u32, tid: u32) -> Result<Option<ProcessRecord>, Errno> {
        let (Ok(pid), Ok(first_tid)) = (self.meant(pid), self.meant(tid.max(1))) else { return Ok(None) };
        let found = fetch_one(Endpoint::PM, |grant, bytes| pm::Threads { pid, first_tid, grant, bytes }.message())?;
        Ok(found.and_then(|record| self.shown(record)))
    }

    fn process_text(&mut self, pid: u32, which: ProcessText) -> Result<Vec<u8>, Errno> {
        let (pid, what) = (self.meant(pid)?, text_number(which));
        let request = |grant, bytes| pm::ProcessText { pid, what, grant, bytes }.message();
        let limit = if which == ProcessText::Executable { PATH_BYTES } else { TEXT_BYTES };
        fetch_text(Endpoint::PM, limit, request)
    }

    fn process_memory(&mut self, process: Endpoint) -> ProcessMemory {
        let reply = ipc::call(Endpoint::VM, &vm::ProcessMemory { process }.message());
        let (size, resident, data, stack, faults, peak) =
            reply.and_then(|reply| vm::ProcessMemory::results(&reply)).unwrap_or_default();
        ProcessMemory { size, resident, data, stack, faults, peak }
    }

    fn maps(&mut self, process: Endpoint, first: u64, records: &mut [MapRecord]) -> Result<usize, Errno> {
        let request = |grant, bytes| vm::Maps { process, first, grant, bytes }.message();
        fetch_some(Endpoint::VM, records, request)
    }

    fn mapped_name(&mut self, process: Endpoint, address: u64) -> Result<Vec<u8>, Errno> {
        let request = |grant, bytes| vm::MappedName { process, address, grant, bytes }.message();
        fetch_text(Endpoint::VM, vm::MAX_NAME_BYTES as usize, request)
    }

    fn descriptor_from(&mut self, process: Endpoint, descriptor: u64) -> Result<Option<u32>, Errno> {
        let request = |grant, bytes| vfs::Descriptors { process, first: descriptor, grant, bytes }.message();
        fetch_one(Endpoint::VFS, request)
    }

    fn open_file(&mut self, process: Endpoint, which: OpenFile) -> Result<Vec<u8>, Errno> {
        let what = match which {
            OpenFile::Descriptor(descriptor) => i64::from(descriptor),
            OpenFile::WorkingDirectory => -1,
            OpenFile::Root => -2,
        };
        let request = |grant, bytes| vfs::DescriptorPath { process, what, grant, bytes }.message();
        fetch_text(Endpoint::VFS, PATH_BYTES, request)
    }

    fn descriptor_info(&mut self, process: Endpoint, descriptor: u32) -> Result<Vec<u8>, Errno> {
        let descriptor = descriptor as i32;
        let request = |grant, bytes| vfs::DescriptorInfo { process, descriptor, grant, bytes }.message();
        let text = fetch_text(Endpoint::VFS, TEXT_BYTES, request)?;
        match pidfd::told(&text) {
            Some(told) => self.with_pids(text, told),
            None => Ok(text),
        }
    }

    fn descriptor_access(&mut self, process: Endpoint, descriptor: u32) -> Result<u64, Errno> {
        let request = vfs::DescriptorAccess { process, descriptor: descriptor.into() };
        ipc::call_repeating(Endpoint::VFS, &request.message())?.result()
    }

    fn process_files(&mut self, process: Endpoint) -> Option<(u64, u64)> {
        let reply = ipc::call_repeating(Endpoint::VFS, &vfs::ProcessFiles { process }.message()).ok()?;
        vfs::ProcessFiles::results(&reply).ok()
    }

    fn file_usage(&mut self) -> FileUsage {
        let reply = ipc::call_repeating(Endpoint::VFS, &vfs::Usage {}.message());
        let (files, files_max, nodes, user_pipe_bytes, user_interests, aio_requests) =
            reply.and_then(|reply| vfs::Usage::results(&reply)).unwrap_or_default();
        FileUsage { files, files_max, nodes, user_pipe_bytes, user_interests, aio_requests }
    }

    fn memory(&mut self) -> Memory {
        let reply = ipc::call(Endpoint::VM, &vm::MemoryInfo {}.message());
        let (total, free, cached, _) = reply.and_then(|reply| vm::MemoryInfo::results(&reply)).unwrap_or_default();
        Memory { total, free, cached }
    }

    fn kernel(&mut self) -> KernelInfo {
        sys::info::kernel().unwrap_or_default()
    }

    fn real_time_ns(&mut self) -> u64 {
        sys::time::real_ns()
    }

    fn command_line(&mut self, text: &mut Text) -> fmt::Result {
        let mut line = fallible::filled(0, PATH_BYTES).map_err(|error| text.failed(error))?;
        let length = sys::info::get_bytes(info::COMMAND_LINE, 0, &mut line).unwrap_or(0);
        writeln!(text, "{}", Lossy(&line[..length]))
    }

    fn ipc_objects(&mut self, kind: u64, first: u32, records: &mut [IpcRecord]) -> Result<usize, Errno> {
        let request = |grant, bytes| pm::IpcObjects { kind, first: first.into(), grant, bytes }.message();
        fetch_some(Endpoint::PM, records, request)
    }

    fn mounts(&mut self, process: Endpoint, text: &mut Text) -> fmt::Result {
        vfs_text(text, vfs::TEXT_MOUNTS, process)
    }

    fn mount_info(&mut self, process: Endpoint, text: &mut Text) -> fmt::Result {
        vfs_text(text, vfs::TEXT_MOUNT_INFO, process)
    }

    fn locks(&mut self, text: &mut Text) -> fmt::Result {
        vfs_text(text, vfs::TEXT_LOCKS, Endpoint::NONE)
    }

    fn partitions(&mut self, text: &mut Text) -> fmt::Result {
        vfs_text(text, vfs::TEXT_PARTITIONS, Endpoint::NONE)
    }

    fn sockets(&mut self, text: &mut Text) -> fmt::Result {
        vfs_text(text, vfs::TEXT_SOCKETS, Endpoint::NONE)
    }

    fn m3ipc_text(&mut self, what: u64, container: u64) -> Result<Vec<u8>, Errno> {
        let server = m3ipc_server()?;
        fetch_text(server, DRVS_BYTES, |grant, bytes| m3ipc::Text { what, container, grant, bytes }.message())
    }

    fn m3ipc_containers(&mut self) -> Result<u32, Errno> {
        // Without the server there are none.
        let Ok(server) = m3ipc_server() else { return Ok(0) };
        let reply = ipc::call_repeating(server, &m3ipc::Containers {}.message());
        Ok(reply.and_then(|reply| m3ipc::Containers::results(&reply)).map_or(0, |containers| containers as u32))
    }

    fn machine_name(&mut self, which: u64) -> Result<Vec<u8>, Errno> {
        fetch_text(Endpoint::PM, NAME_BYTES, |grant, bytes| pm::MachineName { which, grant, bytes }.message())
    }

    fn read_memory(&mut self, process: Endpoint, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        fetch(Endpoint::PM, into, |grant, bytes| pm::Memory { process, address, grant, bytes, write: false }.message())
    }

    fn write_memory(&mut self, process: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno> {
        let bytes = from.len() as u64;
        let reply = grant::lend(from, Endpoint::PM, |grant| {
            let request = pm::Memory { process, address, grant, bytes, write: true };
            ipc::call_repeating(Endpoint::PM, &request.message())
        })??;
        reply.result().map(drop)
    }

    fn set_machine_name(&mut self, which: u64, name: &[u8]) -> Result<(), Errno> {
        let bytes = name.len() as u64;
        let reply = grant::lend(name, Endpoint::PM, |grant| {
            ipc::call_repeating(Endpoint::PM, &pm::SetMachineName { which, grant, bytes }.message())
        })??;
        reply.result().map(drop)
    }

    fn set_id_map(&mut self, pid: u32, which: ProcessText, text: &[u8], writer: Caller) -> Result<(), Errno> {
        let (pid, what, bytes) = (self.meant(pid)?, text_number(which), text.len() as u64);
        let Caller { uid, gid, write } = writer;
        let ids = u64::from(uid) | u64::from(gid) << 32;
        let reply = grant::lend(text, Endpoint::PM, |grant| {
            ipc::call_repeating(Endpoint::PM, &pm::SetIdMap { pid, what, grant, bytes, ids, write }.message())
        })??;
        reply.result().map(drop)
    }

    fn set_oom_adjust(&mut self, pid: u32, value: i32, is_old: bool, writer: Caller) -> Result<(), Errno> {
        let (pid, uid) = (self.meant(pid)?, writer.uid.into());
        let request = pm::SetOomAdjust { pid, value: value.into(), uid, old: is_old };
        ipc::call_repeating(Endpoint::PM, &request.message())?.result().map(drop)
    }

    fn set_name(&mut self, tid: u32, name: &[u8]) -> Result<(), Errno> {
        let (tid, bytes) = (self.meant(tid)?, name.len() as u64);
        let request = |grant| pm::SetName { tid, grant, bytes }.message();
        let reply = grant::lend(name, Endpoint::PM, |grant| ipc::call_repeating(Endpoint::PM, &request(grant)))??;
        reply.result().map(drop)
    }

    fn setting(&mut self, what: u64) -> u64 {
        let reply = ipc::call_repeating(Endpoint::PM, &pm::Setting { what }.message());
        reply.and_then(|reply| pm::Setting::results(&reply)).unwrap_or_default()
    }

    fn set_setting(&mut self, what: u64, value: u64) -> Result<(), Errno> {
        ipc::call_repeating(Endpoint::PM, &pm::SetSetting { what, value }.message())?.result().map(drop)
    }

    fn loads(&mut self) -> [u64; 3] {
        let reply = ipc::call_repeating(Endpoint::PM, &pm::Loads {}.message());
        let (one, five, fifteen) = reply.and_then(|reply| pm::Loads::results(&reply)).unwrap_or_default();
        [one, five, fifteen]
    }

    fn screen(&mut self) -> Result<Screen, Errno> {
        let reply = self.screen.ask(&display::Describe {}.message())?;
        let (size, whole, place, name_low, name_high) = display::Describe::results(&reply)?;
        let pair = |word: u64| (word as u32, (word >> 32) as u32);
        let form = reply.words[0] as u32;
        let name = (u128::from(name_low) | u128::from(name_high) << 64).to_le_bytes();
        let (size, whole, place) = (pair(size), pair(whole), pair(place));
        Ok(Screen { depth: form & 0xff, rotation: form >> 8 & 0xff, size, whole, place, name })
    }

    fn change_screen(&mut self, what: u64, value: u64) -> Result<(), Errno> {
        self.screen.ask(&display::Change { what, value }.message()).map(drop)
    }

    fn text_rotation(&mut self) -> Result<u64, Errno> {
        self.console.ask(&display::Describe {}.message()).map(|reply| reply.words[0] >> 8 & 0xff)
    }

    fn turn_text(&mut self, quarters: u64) -> Result<(), Errno> {
        self.console.ask(&display::Change { what: display::CHANGE_ROTATION, value: quarters }.message()).map(drop)
    }

    fn identity(&mut self) -> (u128, u128) {
        let reply = ipc::call_repeating(Endpoint::PM, &pm::Identity {}.message());
        let (boot_low, boot_high, new_low, new_high) =
            reply.and_then(|reply| pm::Identity::results(&reply)).unwrap_or_default();
        let join = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
        (join(boot_low, boot_high), join(new_low, new_high))
    }
}

/// What pm calls a text of a process.
fn text_number(which: ProcessText) -> u64 {
    match which {
        ProcessText::Arguments => pm::TEXT_ARGUMENTS,
        ProcessText::Environment => pm::TEXT_ENVIRONMENT,
        ProcessText::Executable => pm::TEXT_EXECUTABLE,
        ProcessText::Groups => pm::TEXT_GROUPS,
        ProcessText::Limits => pm::TEXT_LIMITS,
        ProcessText::Auxiliary => pm::TEXT_AUXILIARY,
        ProcessText::UserMap => pm::TEXT_USER_MAP,
        ProcessText::GroupMap => pm::TEXT_GROUP_MAP,
        ProcessText::Setgroups => pm::TEXT_SETGROUPS,
    }
}

/// Writes a text of vfs (`vfs::TEXT_*`), as a process sees it, piece by piece.
fn vfs_text(text: &mut Text, what: u64, process: Endpoint) -> fmt::Result {
    let mut offset = 0;
    while offset < MAX_TEXT_BYTES {
        let request = |grant, bytes| vfs::Text { what, grant, bytes, offset, process }.message();
        let part = fetch_text(Endpoint::VFS, TEXT_BYTES, request).map_err(|error| text.failed(error))?;
        if part.is_empty() {
            break;
        }
        offset += part.len() as u64;
        text.write_bytes(&part)?;
    }
    Ok(())
}

/// Makes a server fill `records`. Returns the number filled.
fn fetch<T: FromBytes + IntoBytes>(
    server: Endpoint,
    records: &mut [T],
    request: impl FnOnce(GrantId, u64) -> Message,
) -> Result<usize, Errno> {
    let bytes = records.as_mut_bytes();
    let length = bytes.len() as u64;
    let reply = grant::lend_mut(bytes, server, |grant| ipc::call_repeating(server, &request(grant, length)))??;
    Ok(reply.result()? as usize / size_of::<T>())
}

/// Makes a server fill as many `records` as there are. Returns the number filled; 0 if what they describe does not exist. `ENOMEM`.
fn fetch_some<T: FromBytes + IntoBytes>(
    server: Endpoint,
    records: &mut [T],
    request: impl FnOnce(GrantId, u64) -> Message,
) -> Result<usize, Errno> {
    match fetch(server, records, request) {
        Err(error) if error != Errno::ENOMEM => Ok(0),
        filled => filled,
    }
}

/// The server of M3-IPC, which not every system has.
fn m3ipc_server() -> Result<Endpoint, Errno> {
    const NAME: Name = Name::new("m3ipc").expect("a name");
    // Who is down at the moment comes up in the same slot.
    server::names::lookup(NAME)
}

/// Makes a server fill one record, if there is one.
fn fetch_one<T: FromBytes + IntoBytes + Copy + Default>(
    server: Endpoint,
    request: impl FnOnce(GrantId, u64) -> Message,
) -> Result<Option<T>, Errno> {
    let mut record = [T::default()];
    let filled = fetch_some(server, &mut record, request)?;
    Ok((filled == 1).then_some(record[0]))
}

/// Makes a server write a text of at most `limit` bytes.
fn fetch_text(server: Endpoint, limit: usize, request: impl FnOnce(GrantId, u64) -> Message) -> Result<Vec<u8>, Errno> {
    let mut text = fallible::filled(0, limit)?;
    let length = fetch(server, &mut text, request)?;
    text.truncate(length);
    Ok(text)
}
