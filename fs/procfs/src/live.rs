//! Figures of the running system. Requests are repeated if a server crashes. A figure that is not available at the moment (of a
//! process that has just ended) counts as empty or 0: a file of /proc is a snapshot.

use crate::source::{Memory, OpenFile, ProcessMemory, ProcessText, Source};
use abi::info::{self, KernelInfo};
use abi::pm::{IpcRecord, ProcessRecord};
use abi::vm::MapRecord;
use abi::{Endpoint, Errno, GrantId, Message, pm, vfs, vm};
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};
use sys::{grant, ipc};
use zerocopy::{FromBytes, IntoBytes};

/// Limit of the text of a process, in bytes.
const TEXT_BYTES: usize = 16 * 1024;
/// Limit of a path, in bytes.
const PATH_BYTES: usize = 4096;

/// The running system.
pub struct Live;

impl Source for Live {
    fn process_from(&mut self, pid: u32) -> Result<Option<ProcessRecord>, Errno> {
        fetch_one(Endpoint::PM, |grant, bytes| pm::Processes { first_pid: pid.into(), grant, bytes }.message())
    }

    fn thread_from(&mut self, pid: u32, tid: u32) -> Result<Option<ProcessRecord>, Errno> {
        let (pid, first_tid) = (pid.into(), tid.into());
        fetch_one(Endpoint::PM, |grant, bytes| pm::Threads { pid, first_tid, grant, bytes }.message())
    }

    fn process_text(&mut self, pid: u32, which: ProcessText) -> Result<Vec<u8>, Errno> {
        let what = match which {
            ProcessText::Arguments => 0,
            ProcessText::Environment => 1,
            ProcessText::Executable => 2,
        };
        let request = |grant, bytes| pm::ProcessText { pid: pid.into(), what, grant, bytes }.message();
        fetch_text(Endpoint::PM, TEXT_BYTES, request)
    }

    fn process_memory(&mut self, process: Endpoint) -> ProcessMemory {
        let reply = ipc::call(Endpoint::VM, &vm::ProcessMemory { process }.message());
        let (size, resident, data, stack) =
            reply.and_then(|reply| vm::ProcessMemory::results(&reply)).unwrap_or_default();
        ProcessMemory { size, resident, data, stack }
    }

    fn maps(&mut self, process: Endpoint, first: u64, records: &mut [MapRecord]) -> Result<usize, Errno> {
        let request = |grant, bytes| vm::Maps { process, first, grant, bytes }.message();
        fetch_some(Endpoint::VM, records, request)
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

    fn command_line(&mut self) -> Result<Vec<u8>, Errno> {
        let mut text = fallible::filled(0, PATH_BYTES)?;
        let length = sys::info::get_bytes(info::COMMAND_LINE, 0, &mut text).unwrap_or(0);
        text.truncate(length);
        Ok(text)
    }

    fn ipc_objects(&mut self, kind: u64, first: u32, records: &mut [IpcRecord]) -> Result<usize, Errno> {
        let request = |grant, bytes| pm::IpcObjects { kind, first: first.into(), grant, bytes }.message();
        fetch_some(Endpoint::PM, records, request)
    }

    fn mounts(&mut self) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        loop {
            let offset = text.len() as u64;
            let request = |grant, bytes| vfs::Mounts { grant, bytes, offset }.message();
            let part = fetch_text(Endpoint::VFS, PATH_BYTES, request)?;
            if part.is_empty() {
                return Ok(text);
            }
            text.try_extend_from_slice(&part)?;
        }
    }
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
