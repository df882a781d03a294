//! The tree of /proc as a file system. The file is long because every kind of node has its line in each function.
//!
//! A node's number encodes the file (`Place`): pid, entry, descriptor. So it is valid for the next incarnation of this process too,
//! and no state is kept between requests: every read generates its text from the present figures.

use crate::source::{OpenFile, ProcessText, Source};
use crate::text::{Lossy, Text, or_empty};
use crate::{process_text, system_text, system_v};
use abi::{pm::ProcessRecord, vfs::LEASE_BREAK_S};
use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;
use fs::Errno;
use fs::file_system::{
    Attributes, DataSink, EntrySink, FileSystem, NodeId, S_IFDIR, S_IFLNK, S_IFREG, Statistics, Timestamp,
};

const PROC_MAGIC: u64 = 0x9fa0;

/// Files at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopFile {
    CommandLine,
    Cpu,
    Devices,
    FileSystems,
    LoadAverage,
    Memory,
    Mounts,
    Own,
    Settings,
    Statistics,
    SystemV,
    Uptime,
    Version,
}

const TOP: &[(&str, TopFile)] = &[
    ("cmdline", TopFile::CommandLine),
    ("cpuinfo", TopFile::Cpu),
    ("devices", TopFile::Devices),
    ("filesystems", TopFile::FileSystems),
    ("loadavg", TopFile::LoadAverage),
    ("meminfo", TopFile::Memory),
    ("mounts", TopFile::Mounts),
    ("self", TopFile::Own),
    ("stat", TopFile::Statistics),
    ("sys", TopFile::Settings),
    ("sysvipc", TopFile::SystemV),
    ("uptime", TopFile::Uptime),
    ("version", TopFile::Version),
];

/// Entries of /proc/PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessFile {
    Arguments,
    Name,
    WorkingDirectory,
    Environment,
    Executable,
    Descriptors,
    Maps,
    MapSizes,
    Mounts,
    Root,
    Stat,
    MemoryPages,
    Status,
    Threads,
}

const PROCESS: &[(&str, ProcessFile)] = &[
    ("cmdline", ProcessFile::Arguments),
    ("comm", ProcessFile::Name),
    ("cwd", ProcessFile::WorkingDirectory),
    ("environ", ProcessFile::Environment),
    ("exe", ProcessFile::Executable),
    ("fd", ProcessFile::Descriptors),
    ("maps", ProcessFile::Maps),
    ("mounts", ProcessFile::Mounts),
    ("root", ProcessFile::Root),
    ("smaps", ProcessFile::MapSizes),
    ("stat", ProcessFile::Stat),
    ("statm", ProcessFile::MemoryPages),
    ("status", ProcessFile::Status),
    ("task", ProcessFile::Threads),
];

/// Entries of /proc/PID/task/TID.
const THREAD: &[(&str, ProcessFile)] =
    &[("comm", ProcessFile::Name), ("stat", ProcessFile::Stat), ("status", ProcessFile::Status)];

/// Directories and files below /proc/sys. None can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    FileSystems,
    LeaseBreakTime,
}

const SETTINGS: &[(&str, Setting)] = &[("fs", Setting::FileSystems)];
const FILE_SYSTEM_SETTINGS: &[(&str, Setting)] = &[("lease-break-time", Setting::LeaseBreakTime)];

/// Files of /proc/sysvipc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemV {
    Messages,
    Semaphores,
    Segments,
}

const SYSTEM_V: &[(&str, SystemV)] =
    &[("msg", SystemV::Messages), ("sem", SystemV::Semaphores), ("shm", SystemV::Segments)];

/// The file behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Top,
    File(TopFile),
    Process(u32),
    ProcessFile(u32, ProcessFile),
    Descriptor(u32, u32),
    /// Process and thread.
    Thread(u32, u32),
    ThreadFile(u32, u32, ProcessFile),
    Setting(Setting),
    SystemV(SystemV),
}

/// Node numbers: bits 0 to 7 kind and index, bits 8 to 31 descriptor or thread, bits 32 to 63 pid. The top is 1.
const TOP_NODE: NodeId = 1;
const TOP_FILES: u64 = 0x10;
const PROCESS_DIRECTORY: u64 = 0x40;
const PROCESS_FILES: u64 = 0x50;
const DESCRIPTOR: u64 = 0x80;
const THREAD_DIRECTORY: u64 = 0x90;
const THREAD_FILES: u64 = 0xa0;
const FILE_SYSTEM_FOLDER: u64 = 0xb0;
const LEASE_BREAK_TIME: u64 = 0xb1;
const SYSTEM_V_FILES: u64 = 0xc0;

impl Place {
    fn node(self) -> NodeId {
        let pid_bits = |pid: u32| u64::from(pid) << 32;
        match self {
            Place::Top => TOP_NODE,
            Place::File(file) => TOP_FILES + index_of(TOP, file),
            Place::Process(pid) => pid_bits(pid) | PROCESS_DIRECTORY,
            Place::ProcessFile(pid, file) => pid_bits(pid) | (PROCESS_FILES + index_of(PROCESS, file)),
            Place::Descriptor(pid, descriptor) => pid_bits(pid) | u64::from(descriptor) << 8 | DESCRIPTOR,
            Place::Thread(pid, tid) => pid_bits(pid) | u64::from(tid) << 8 | THREAD_DIRECTORY,
            Place::ThreadFile(pid, tid, file) => {
                pid_bits(pid) | u64::from(tid) << 8 | (THREAD_FILES + index_of(THREAD, file))
            }
            Place::Setting(Setting::FileSystems) => FILE_SYSTEM_FOLDER,
            Place::Setting(Setting::LeaseBreakTime) => LEASE_BREAK_TIME,
            Place::SystemV(file) => SYSTEM_V_FILES + index_of(SYSTEM_V, file),
        }
    }

    fn of(node: NodeId) -> Result<Place, Errno> {
        let pid = (node >> 32) as u32;
        let inner = (node >> 8) as u32 & 0xff_ffff;
        let entry = |base: u64| ((node & 0xff) - base) as usize;
        match node & 0xff {
            TOP_NODE => Some(Place::Top),
            TOP_FILES..PROCESS_DIRECTORY => TOP.get(entry(TOP_FILES)).map(|(_, file)| Place::File(*file)),
            PROCESS_DIRECTORY => Some(Place::Process(pid)),
            PROCESS_FILES..DESCRIPTOR => {
                PROCESS.get(entry(PROCESS_FILES)).map(|(_, file)| Place::ProcessFile(pid, *file))
            }
            DESCRIPTOR => Some(Place::Descriptor(pid, inner)),
            THREAD_DIRECTORY => Some(Place::Thread(pid, inner)),
            THREAD_FILES..FILE_SYSTEM_FOLDER => {
                THREAD.get(entry(THREAD_FILES)).map(|(_, file)| Place::ThreadFile(pid, inner, *file))
            }
            FILE_SYSTEM_FOLDER => Some(Place::Setting(Setting::FileSystems)),
            LEASE_BREAK_TIME => Some(Place::Setting(Setting::LeaseBreakTime)),
            SYSTEM_V_FILES.. => SYSTEM_V.get(entry(SYSTEM_V_FILES)).map(|(_, file)| Place::SystemV(*file)),
            _ => None,
        }
        .ok_or(Errno::ESTALE)
    }
}

fn index_of<T: PartialEq>(table: &[(&str, T)], wanted: T) -> u64 {
    table.iter().take_while(|(_, file)| *file != wanted).count() as u64
}

/// /proc, generic over the source of figures.
pub struct Proc<S: Source> {
    source: S,
}

impl<S: Source> Proc<S> {
    /// Makes /proc with these figures.
    pub fn new(source: S) -> Self {
        Proc { source }
    }

    fn process(&mut self, pid: u32) -> Result<ProcessRecord, Errno> {
        self.source.process_from(pid)?.filter(|process| process.pid == pid).ok_or(Errno::ESRCH)
    }

    fn thread(&mut self, pid: u32, tid: u32) -> Result<ProcessRecord, Errno> {
        self.source.thread_from(pid, tid)?.filter(|thread| thread.pid == tid).ok_or(Errno::ESRCH)
    }

    /// Returns the content of a regular file.
    fn content(&mut self, place: Place) -> Result<Vec<u8>, Errno> {
        match place {
            _ if is_directory(place) => Err(Errno::EISDIR),
            Place::File(file) => self.top_content(file),
            Place::ProcessFile(pid, file) => {
                let process = self.process(pid)?;
                self.process_content(&process, file)
            }
            Place::ThreadFile(pid, tid, file) => {
                let thread = self.thread(pid, tid)?;
                self.process_content(&thread, file)
            }
            Place::Setting(_) => Text::of(|text| writeln!(text, "{LEASE_BREAK_S}")),
            Place::SystemV(file) => Text::of(|text| match file {
                SystemV::Messages => system_v::queues(&mut self.source, text),
                SystemV::Semaphores => system_v::semaphores(&mut self.source, text),
                SystemV::Segments => system_v::segments(&mut self.source, text),
            }),
            _ => Err(Errno::EINVAL),
        }
    }

    fn top_content(&mut self, file: TopFile) -> Result<Vec<u8>, Errno> {
        let source = &mut self.source;
        match file {
            TopFile::Mounts => return source.mounts(),
            TopFile::Own | TopFile::Settings | TopFile::SystemV => return Err(Errno::EINVAL),
            _ => {}
        }
        let command_line = if file == TopFile::CommandLine { source.command_line()? } else { Vec::new() };
        Text::of(|text| match file {
            TopFile::CommandLine => writeln!(text, "{}", Lossy(&command_line)),
            TopFile::Cpu => system_text::cpu(source, text),
            TopFile::Devices => system_text::devices(text),
            TopFile::FileSystems => system_text::file_systems(text),
            TopFile::LoadAverage => system_text::load_average(source, text),
            TopFile::Memory => system_text::memory(source, text),
            TopFile::Statistics => system_text::statistics(source, text),
            TopFile::Uptime => system_text::uptime(source, text),
            TopFile::Version => system_text::version(text),
            TopFile::Mounts | TopFile::Own | TopFile::Settings | TopFile::SystemV => Ok(()),
        })
    }

    fn process_content(&mut self, process: &ProcessRecord, file: ProcessFile) -> Result<Vec<u8>, Errno> {
        let source = &mut self.source;
        match file {
            ProcessFile::Arguments => self.memory_text(process, ProcessText::Arguments),
            ProcessFile::Environment => self.memory_text(process, ProcessText::Environment),
            ProcessFile::Mounts => source.mounts(),
            ProcessFile::Name => Text::of(|text| writeln!(text, "{}", process_text::name(process))),
            ProcessFile::Maps => Text::of(|text| process_text::maps(source, process, text, process_text::map_line)),
            ProcessFile::MapSizes => {
                Text::of(|text| process_text::maps(source, process, text, process_text::map_sizes))
            }
            ProcessFile::Stat => Text::of(|text| process_text::stat(source, process, text)),
            ProcessFile::MemoryPages => Text::of(|text| process_text::memory_pages(source, process, text)),
            ProcessFile::Status => Text::of(|text| process_text::status(source, process, text)),
            ProcessFile::Descriptors | ProcessFile::Threads => Err(Errno::EISDIR),
            ProcessFile::WorkingDirectory | ProcessFile::Executable | ProcessFile::Root => Err(Errno::EINVAL),
        }
    }

    /// Returns arguments or environment as stored in memory; a zombie and a service have none.
    fn memory_text(&mut self, process: &ProcessRecord, which: ProcessText) -> Result<Vec<u8>, Errno> {
        or_empty(self.source.process_text(process.pid, which))
    }

    /// Returns the target of a symbolic link; `reader` is the pid of the process that follows it.
    fn target(&mut self, place: Place, reader: u32) -> Result<Vec<u8>, Errno> {
        let (pid, which) = match place {
            Place::File(TopFile::Own) => return Text::of(|text| write!(text, "{reader}")),
            Place::ProcessFile(pid, ProcessFile::Executable) => {
                self.process(pid)?;
                return self.source.process_text(pid, ProcessText::Executable).map_err(not_found);
            }
            Place::ProcessFile(pid, ProcessFile::WorkingDirectory) => (pid, OpenFile::WorkingDirectory),
            Place::ProcessFile(pid, ProcessFile::Root) => (pid, OpenFile::Root),
            Place::Descriptor(pid, descriptor) => (pid, OpenFile::Descriptor(descriptor)),
            _ => return Err(Errno::EINVAL),
        };
        let process = self.process(pid)?;
        self.source.open_file(process.endpoint, which).map_err(not_found)
    }

    fn lookup_top(&mut self, name: &[u8]) -> Result<Place, Errno> {
        if let Some((_, file)) = TOP.iter().find(|(entry, _)| entry.as_bytes() == name) {
            return Ok(Place::File(*file));
        }
        let pid = number(name).ok_or(Errno::ENOENT)?;
        self.process(pid).map_err(not_found)?;
        Ok(Place::Process(pid))
    }

    fn lookup_process(&mut self, pid: u32, name: &[u8]) -> Result<Place, Errno> {
        self.process(pid).map_err(not_found)?;
        let found = PROCESS.iter().find(|(entry, _)| entry.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(Place::ProcessFile(pid, found.1))
    }

    fn lookup_thread(&mut self, pid: u32, name: &[u8]) -> Result<Place, Errno> {
        let tid = number(name).ok_or(Errno::ENOENT)?;
        self.thread(pid, tid).map_err(not_found)?;
        Ok(Place::Thread(pid, tid))
    }

    fn lookup_thread_file(&mut self, pid: u32, tid: u32, name: &[u8]) -> Result<Place, Errno> {
        self.thread(pid, tid).map_err(not_found)?;
        let found = THREAD.iter().find(|(entry, _)| entry.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(Place::ThreadFile(pid, tid, found.1))
    }

    fn lookup_descriptor(&mut self, pid: u32, name: &[u8]) -> Result<Place, Errno> {
        let process = self.process(pid).map_err(not_found)?;
        let descriptor = number(name).ok_or(Errno::ENOENT)?;
        let open = self.source.descriptor_from(process.endpoint, descriptor.into())? == Some(descriptor);
        if open { Ok(Place::Descriptor(pid, descriptor)) } else { Err(Errno::ENOENT) }
    }

    /// Returns entry number `position` of a directory, after the dots.
    #[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
    fn entry(&mut self, dir: Place, position: u64) -> Result<Option<(Place, String, u64)>, Errno> {
        let index = position as usize;
        match dir {
            Place::Top if index < TOP.len() => {
                let (name, file) = TOP[index];
                Ok(Some((Place::File(file), name.into(), position + 1)))
            }
            // Behind the files, the position is the lowest pid of the next entry.
            Place::Top => {
                let process = self.source.process_from((index - TOP.len()) as u32)?;
                Ok(process.map(|found| {
                    let next = TOP.len() as u64 + u64::from(found.pid) + 1;
                    (Place::Process(found.pid), format!("{}", found.pid), next)
                }))
            }
            Place::Process(pid) => Ok(PROCESS
                .get(index)
                .map(|(name, file)| (Place::ProcessFile(pid, *file), String::from(*name), position + 1))),
            Place::ProcessFile(pid, ProcessFile::Descriptors) => {
                let process = self.process(pid)?;
                let found = self.source.descriptor_from(process.endpoint, position)?;
                Ok(found.map(|descriptor| {
                    (Place::Descriptor(pid, descriptor), format!("{descriptor}"), u64::from(descriptor) + 1)
                }))
            }
            Place::ProcessFile(pid, ProcessFile::Threads) => {
                let found = self.source.thread_from(pid, position as u32)?;
                Ok(found.map(|thread| {
                    (Place::Thread(pid, thread.pid), format!("{}", thread.pid), u64::from(thread.pid) + 1)
                }))
            }
            Place::Thread(pid, tid) => Ok(THREAD
                .get(index)
                .map(|(name, file)| (Place::ThreadFile(pid, tid, *file), String::from(*name), position + 1))),
            Place::File(TopFile::Settings) | Place::Setting(_) => {
                let setting = settings(dir).get(index);
                Ok(setting.map(|(name, setting)| (Place::Setting(*setting), String::from(*name), position + 1)))
            }
            Place::File(TopFile::SystemV) => {
                Ok(SYSTEM_V.get(index).map(|(name, file)| (Place::SystemV(*file), String::from(*name), position + 1)))
            }
            _ => Err(Errno::ENOTDIR),
        }
    }
}

impl<S: Source> FileSystem for Proc<S> {
    fn is_volatile(&self) -> bool {
        true
    }

    fn root(&self) -> NodeId {
        TOP_NODE
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let place = Place::of(node)?;
        let owner = match place {
            Place::Process(pid) | Place::ProcessFile(pid, _) | Place::Descriptor(pid, _) => self.process(pid)?,
            Place::Thread(pid, tid) | Place::ThreadFile(pid, tid, _) => self.thread(pid, tid)?,
            _ => ProcessRecord::default(),
        };
        let now_ns = self.source.real_time_ns();
        let now = Timestamp { seconds: (now_ns / 1_000_000_000) as i64, nanos: (now_ns % 1_000_000_000) as u32 };
        Ok(Attributes {
            node,
            mode: mode_of(place),
            links: if is_directory(place) { 2 } else { 1 },
            uid: if matches!(place, Place::ProcessFile(..)) && !has_one_user(&owner) { 0 } else { owner.euid },
            gid: owner.egid,
            block_size: 1024,
            accessed: now,
            modified: now,
            changed: now,
            ..Attributes::default()
        })
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let dir = Place::of(dir)?;
        let found = match (dir, name) {
            _ if !is_directory(dir) => Err(Errno::ENOTDIR),
            (_, b".") => Ok(dir),
            (Place::ProcessFile(pid, _), b"..") => Ok(Place::Process(pid)),
            (Place::Setting(_), b"..") => Ok(Place::File(TopFile::Settings)),
            (Place::Thread(pid, _), b"..") => Ok(Place::ProcessFile(pid, ProcessFile::Threads)),
            (_, b"..") => Ok(Place::Top),
            (Place::Top, _) => self.lookup_top(name),
            (Place::Process(pid), _) => self.lookup_process(pid, name),
            (Place::ProcessFile(pid, ProcessFile::Threads), _) => self.lookup_thread(pid, name),
            (Place::ProcessFile(pid, _), _) => self.lookup_descriptor(pid, name),
            (Place::Thread(pid, tid), _) => self.lookup_thread_file(pid, tid, name),
            (Place::File(TopFile::Settings) | Place::Setting(_), _) => lookup_setting(dir, name),
            (Place::File(TopFile::SystemV), _) => {
                let found = SYSTEM_V.iter().find(|(entry, _)| entry.as_bytes() == name).ok_or(Errno::ENOENT)?;
                Ok(Place::SystemV(found.1))
            }
            _ => Err(Errno::ENOTDIR),
        }?;
        Ok(found.node())
    }

    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno> {
        let content = self.content(Place::of(node)?)?;
        let start = content.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let end = content.len().min(start.saturating_add(len));
        sink.put(&content[start..end])?;
        Ok(end - start)
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        const DOTS: [&[u8]; 2] = [b".", b".."];
        let place = Place::of(dir)?;
        let mut position = position;
        while let Some(name) = DOTS.get(position as usize) {
            let node = self.lookup(dir, name)?;
            if !sink.entry(node, position + 1, S_IFDIR, name) {
                return Ok(position);
            }
            position += 1;
        }
        let dots = DOTS.len() as u64;
        while let Some((entry, name, next)) = self.entry(place, position - dots)? {
            if !sink.entry(entry.node(), next + dots, mode_of(entry), name.as_bytes()) {
                break;
            }
            position = next + dots;
        }
        Ok(position)
    }

    fn read_link_for(&mut self, node: NodeId, reader: u32, target: &mut [u8]) -> Result<usize, Errno> {
        let text = self.target(Place::of(node)?, reader)?;
        let count = text.len().min(target.len());
        target[..count].copy_from_slice(&text[..count]);
        Ok(count)
    }

    fn statistics(&self) -> Statistics {
        Statistics { kind: PROC_MAGIC, block_size: 4096, read_only: true, ..Statistics::default() }
    }
}

/// The entries of a directory of settings.
fn settings(dir: Place) -> &'static [(&'static str, Setting)] {
    if dir == Place::File(TopFile::Settings) { SETTINGS } else { FILE_SYSTEM_SETTINGS }
}

fn lookup_setting(dir: Place, name: &[u8]) -> Result<Place, Errno> {
    let found = settings(dir).iter().find(|(entry, _)| entry.as_bytes() == name).ok_or(Errno::ENOENT)?;
    Ok(Place::Setting(found.1))
}

fn is_directory(place: Place) -> bool {
    let is_folder = |file| matches!(file, ProcessFile::Descriptors | ProcessFile::Threads);
    match place {
        Place::Top | Place::Process(_) | Place::Thread(..) => true,
        Place::File(TopFile::Settings | TopFile::SystemV) | Place::Setting(Setting::FileSystems) => true,
        Place::ProcessFile(_, file) => is_folder(file),
        _ => false,
    }
}

/// Whether a process has the same rights as its user, who then may look into it. Of others root alone may.
fn has_one_user(process: &ProcessRecord) -> bool {
    [process.uid, process.suid].map(|id| id == process.euid) == [true; 2]
        && [process.gid, process.sgid].map(|id| id == process.egid) == [true; 2]
}

fn mode_of(place: Place) -> u32 {
    match place {
        Place::ProcessFile(_, ProcessFile::Descriptors) => S_IFDIR | 0o500,
        _ if is_directory(place) => S_IFDIR | 0o555,
        Place::File(TopFile::Own) | Place::Descriptor(..) => S_IFLNK | 0o777,
        Place::ProcessFile(_, ProcessFile::WorkingDirectory | ProcessFile::Executable | ProcessFile::Root) => {
            S_IFLNK | 0o777
        }
        Place::ProcessFile(_, ProcessFile::Environment | ProcessFile::Maps | ProcessFile::MapSizes) => S_IFREG | 0o400,
        _ => S_IFREG | 0o444,
    }
}

/// The error of a name whose process, thread or file is gone. Lack of memory is not absence.
fn not_found(error: Errno) -> Errno {
    if error == Errno::ENOMEM { error } else { Errno::ENOENT }
}

/// Parses a decimal number without leading zeros.
fn number(name: &[u8]) -> Option<u32> {
    let canonical = name == b"0" || name.first().is_some_and(|&digit| digit != b'0');
    let digits = name.iter().all(u8::is_ascii_digit);
    if canonical && digits { core::str::from_utf8(name).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
