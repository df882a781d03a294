//! The tree of /proc, and of /sys, as file systems. The file is long because each kind of node is found, listed, read and described here.
//!
//! A node's number encodes the file (`Place`). So it is valid for the next incarnation of this process too, and no state is kept between
//! requests: every read generates its text from the present figures.

use crate::drvs;
use crate::fixed::{self, Entries, Entry, Setting};
use crate::graphics;
use crate::oom::{self, Measure};
use crate::process_files::{ENTRIES, Kind, NAMESPACES, Of, namespace_inode};
use crate::process_text;
use crate::source::{OpenFile, ProcessText, Source};
use crate::text::{Text, number};
use abi::display::CHANGE_ROTATION;
use abi::{Endpoint, container, fs::process_folder, pm::ProcessRecord, vfs};
use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;
use fs::Errno;
use fs::file_system::{
    Attributes, Caller, DataSink, DataSource, EntrySink, FileSystem, NodeId, Reader, S_IFDIR, S_IFLNK, S_IFREG,
    Statistics, Timestamp,
};
use sys::fallible;

/// Limit of what is written to a file, in bytes.
const WRITE_BYTES: usize = 128;
/// Bytes that are looked at of what is written to `comm`.
const NAME_BYTES: usize = 16;
/// Memory of a process that is copied at a time.
const MEMORY_BYTES: usize = 16 * 1024;

/// A process, or a thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whose {
    pid: u32,
    /// 0: the process.
    tid: u32,
}

impl Whose {
    /// The number of the thread, or of the first one of the process.
    fn id(self) -> u32 {
        if self.tid == 0 { self.pid } else { self.tid }
    }

    fn folder(self) -> Of {
        if self.tid == 0 { Of::Process } else { Of::Thread }
    }
}

/// The file behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// An entry of the table.
    Fixed(usize),
    /// /proc/PID, /proc/PID/task/TID.
    Folder(Whose),
    /// An entry of such a folder.
    File(Whose, usize),
    /// A link in fd.
    Descriptor(Whose, u32),
    /// A file in fdinfo.
    DescriptorInfo(Whose, u32),
    /// A link in ns.
    Namespace(Whose, usize),
    /// /proc/drvs/VM and a number.
    Container(u32),
    /// A file in it.
    ContainerFile(u32, usize),
}

/// The first entry of a table is its root.
const ROOT: usize = 0;

/// Fields of a node's number: kind, number within the kind, thread, process.
const INNER_SHIFT: u32 = 4;
const TID_SHIFT: u32 = 24;
const PID_SHIFT: u32 = 40;

impl Place {
    fn node(self) -> NodeId {
        let whose = |whose: Whose| u64::from(whose.pid) << PID_SHIFT | u64::from(whose.tid) << TID_SHIFT;
        let (kind, owner, inner) = match self {
            Place::Fixed(index) => (1, 0, index as u64),
            Place::Folder(owner) if owner.tid == 0 => return process_folder(owner.pid),
            Place::Folder(owner) => (2, whose(owner), 0),
            Place::File(owner, index) => (3, whose(owner), index as u64),
            Place::Descriptor(owner, number) => (4, whose(owner), u64::from(number)),
            Place::DescriptorInfo(owner, number) => (5, whose(owner), u64::from(number)),
            Place::Namespace(owner, index) => (6, whose(owner), index as u64),
            Place::Container(number) => (7, 0, u64::from(number)),
            Place::ContainerFile(number, index) => (8, u64::from(number) << TID_SHIFT, index as u64),
        };
        owner | inner << INNER_SHIFT | kind
    }

    fn of(node: NodeId) -> Result<Place, Errno> {
        let inner = node >> INNER_SHIFT & 0xf_ffff;
        let owner = Whose { pid: (node >> PID_SHIFT & 0xffff) as u32, tid: (node >> TID_SHIFT & 0xffff) as u32 };
        match node & 0xf {
            1 => Ok(Place::Fixed(inner as usize)),
            2 => Ok(Place::Folder(owner)),
            3 if inner < ENTRIES.len() as u64 => Ok(Place::File(owner, inner as usize)),
            4 => Ok(Place::Descriptor(owner, inner as u32)),
            5 => Ok(Place::DescriptorInfo(owner, inner as u32)),
            6 if inner < NAMESPACES.len() as u64 => Ok(Place::Namespace(owner, inner as usize)),
            7 => Ok(Place::Container(inner as u32)),
            8 if inner < drvs::FILES.len() as u64 => Ok(Place::ContainerFile(owner.tid, inner as usize)),
            _ => Err(Errno::ESTALE),
        }
    }

    fn owner(self) -> Option<Whose> {
        match self {
            Place::Fixed(_) | Place::Container(_) | Place::ContainerFile(..) => None,
            Place::Folder(owner)
            | Place::File(owner, _)
            | Place::Descriptor(owner, _)
            | Place::DescriptorInfo(owner, _)
            | Place::Namespace(owner, _) => Some(owner),
        }
    }
}

/// The entry with this name in the folder of a process or a thread.
fn entry_named(folder: Of, name: &[u8]) -> Option<usize> {
    ENTRIES.iter().position(|(entry, of, _)| entry.as_bytes() == name && of.has(folder))
}

/// A tree over this source of figures.
pub struct Tree<S: Source> {
    source: S,
    entries: Entries,
    /// Magic number of the format, as Linux reports it.
    magic: u64,
    has_processes: bool,
    /// The container whose process numbers it shows.
    container: u8,
    /// Whose record the last look-up has fetched: the attributes of what it has found come right behind it, in the same request.
    looked_up: Option<(Whose, ProcessRecord)>,
}

impl<S: Source> Tree<S> {
    /// Makes /proc of a container, whose processes the source has.
    pub fn of_processes(source: S, entries: Entries, container: u8) -> Self {
        Tree { source, entries, magic: 0x9fa0, has_processes: true, container, looked_up: None }
    }

    /// Makes /sys.
    pub fn of_system(source: S, entries: Entries) -> Self {
        Tree { source, entries, magic: 0x6265_6572, has_processes: false, container: 0, looked_up: None }
    }

    /// The system's number of a process.
    fn meant(&self, whose: Whose) -> Option<u32> {
        container::pid_meant(self.container, whose.pid)
    }

    fn process(&mut self, pid: u32) -> Result<ProcessRecord, Errno> {
        self.source.process_from(pid)?.filter(|process| process.pid == pid).ok_or(Errno::ESRCH)
    }

    fn record(&mut self, whose: Whose) -> Result<ProcessRecord, Errno> {
        let Whose { pid, tid } = whose;
        if tid == 0 {
            return self.process(pid);
        }
        self.source.thread_from(pid, tid)?.filter(|thread| thread.pid == tid).ok_or(Errno::ESRCH)
    }

    /// The record of a process or thread for a look-up. `ENOENT`.
    fn look_up(&mut self, whose: Whose) -> Result<ProcessRecord, Errno> {
        let record = self.record(whose).map_err(not_found)?;
        self.looked_up = Some((whose, record));
        Ok(record)
    }

    fn fixed(&self, index: usize) -> Result<&'static Entry, Errno> {
        self.entries.get(index).ok_or(Errno::ESTALE)
    }

    /// Returns the content of a regular file.
    fn content(&mut self, place: Place) -> Result<Vec<u8>, Errno> {
        match place {
            Place::Fixed(index) => self.fixed_content(self.fixed(index)?),
            Place::File(whose, index) => {
                let record = self.record(whose)?;
                match ENTRIES[index].2 {
                    Kind::Text(write) | Kind::PrivateText(write) => {
                        Text::of(|text| write(&mut self.source, &record, text))
                    }
                    Kind::Name => Text::of(|text| process_text::comm(&mut self.source, &record, text)),
                    Kind::OomAdjust(measure) => {
                        Text::of(|text| writeln!(text, "{}", measure.shown(record.oom_adjust.into())))
                    }
                    Kind::IdMap(which) => {
                        let told = self.source.process_text(whose.pid, which).map_err(not_found)?;
                        Text::of(|text| process_text::id_map(which, &told, text))
                    }
                    Kind::Link(_) | Kind::Executable | Kind::Memory => Err(Errno::EINVAL),
                    _ => Err(Errno::EISDIR),
                }
            }
            Place::DescriptorInfo(whose, number) => {
                let record = self.record(whose)?;
                self.source.descriptor_info(record.endpoint, number).map_err(not_found)
            }
            Place::ContainerFile(container, index) => {
                self.source.m3ipc_text(drvs::FILES[index].1, container.into()).map_err(not_found)
            }
            Place::Folder(_) | Place::Container(_) => Err(Errno::EISDIR),
            Place::Descriptor(..) | Place::Namespace(..) => Err(Errno::EINVAL),
        }
    }

    fn fixed_content(&mut self, entry: &Entry) -> Result<Vec<u8>, Errno> {
        let source = &mut self.source;
        match entry.kind {
            fixed::Kind::Folder => Err(Errno::EISDIR),
            fixed::Kind::Link(_) | fixed::Kind::OwnProcess | fixed::Kind::OwnThread => Err(Errno::EINVAL),
            fixed::Kind::Text(write) => Text::of(|text| write(source, text)),
            fixed::Kind::OfScreen(write) => {
                let screen = source.screen()?;
                Text::of(|text| write(&screen, text))
            }
            fixed::Kind::Line(line) => Text::of(|text| writeln!(text, "{line}")),
            fixed::Kind::Number(number) => Text::of(|text| writeln!(text, "{number}")),
            fixed::Kind::Setting(Setting::Number(what)) => {
                let value = source.setting(what);
                Text::of(|text| writeln!(text, "{value}"))
            }
            fixed::Kind::Setting(Setting::Screen(what)) => graphics::content(source, what),
            fixed::Kind::Setting(Setting::TextRotation) => {
                let quarters = source.text_rotation()?;
                Text::of(|text| writeln!(text, "{quarters}"))
            }
            fixed::Kind::Setting(Setting::MachineName(which)) => {
                let name = source.machine_name(which)?;
                Text::of(|text| text.write_bytes(&name).and_then(|()| text.write_str("\n")))
            }
        }
    }

    /// Changes a setting to a text that was written. `EINVAL`: it is no value for it.
    fn set(&mut self, setting: Setting, text: &[u8]) -> Result<(), Errno> {
        let line = text.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or(&[]);
        match setting {
            Setting::MachineName(which) => self.source.set_machine_name(which, line),
            Setting::Number(what) => {
                let digits = core::str::from_utf8(line).map_err(|_| Errno::EINVAL)?.trim();
                self.source.set_setting(what, digits.parse().map_err(|_| Errno::EINVAL)?)
            }
            Setting::Screen(what) => self.source.change_screen(what, graphics::value(what, line)?),
            Setting::TextRotation => self.source.turn_text(graphics::value(CHANGE_ROTATION, line)?),
        }
    }

    /// The process whose memory a node shows, if it does.
    fn memory_of(&mut self, node: NodeId) -> Result<Option<Endpoint>, Errno> {
        match Place::of(node)? {
            Place::File(whose, index) if matches!(ENTRIES[index].2, Kind::Memory) => {
                let record = self.record(whose)?;
                if record.service == 0 { Ok(Some(record.endpoint)) } else { Err(Errno::EACCES) }
            }
            _ => Ok(None),
        }
    }

    /// Copies memory of a process, up to the first page that is not there.
    fn read_memory(
        &mut self,
        process: Endpoint,
        address: u64,
        len: usize,
        sink: &mut dyn DataSink,
    ) -> Result<usize, Errno> {
        let mut piece = fallible::filled(0, len.min(MEMORY_BYTES))?;
        let mut done = 0;
        while done < len {
            let wanted = (len - done).min(MEMORY_BYTES);
            match self.source.read_memory(process, address.wrapping_add(done as u64), &mut piece[..wanted]) {
                Ok(0) => break,
                Ok(read) => {
                    sink.put(&piece[..read])?;
                    done += read;
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Changes memory of a process. A write is as long as one piece at most: programs go on with the rest.
    fn write_memory(
        &mut self,
        process: Endpoint,
        address: u64,
        len: usize,
        source: &mut dyn DataSource,
    ) -> Result<usize, Errno> {
        let mut piece = fallible::filled(0, len.min(MEMORY_BYTES))?;
        source.take(&mut piece)?;
        self.source.write_memory(process, address, &piece)?;
        Ok(piece.len())
    }

    /// The setting behind a node. `EISDIR`; `EACCES`: it cannot be written.
    fn setting(&self, node: NodeId) -> Result<Setting, Errno> {
        match Place::of(node)? {
            Place::Fixed(index) => match self.fixed(index)?.kind {
                fixed::Kind::Setting(setting) => Ok(setting),
                fixed::Kind::Folder => Err(Errno::EISDIR),
                _ => Err(Errno::EACCES),
            },
            _ => Err(Errno::EACCES),
        }
    }

    /// Returns the target of a symbolic link.
    fn target(&mut self, place: Place, reader: Reader) -> Result<Vec<u8>, Errno> {
        let (whose, which) = match place {
            Place::Fixed(index) => return self.fixed_target(self.fixed(index)?, reader),
            Place::Descriptor(whose, descriptor) => (whose, OpenFile::Descriptor(descriptor)),
            Place::Namespace(whose, index) => {
                let inode = namespace_inode(index, &self.record(whose)?);
                return Text::of(|text| write!(text, "{}:[{inode}]", NAMESPACES[index].1));
            }
            Place::File(whose, index) => match ENTRIES[index].2 {
                Kind::Link(which) => (whose, which),
                Kind::Executable => {
                    // Of a process that has ended there is no text.
                    if whose.tid != 0 {
                        self.record(whose)?;
                    }
                    return self.source.process_text(whose.pid, ProcessText::Executable).map_err(not_found);
                }
                _ => return Err(Errno::EINVAL),
            },
            _ => return Err(Errno::EINVAL),
        };
        let record = self.record(whose)?;
        self.source.open_file(record.endpoint, which).map_err(not_found)
    }

    fn fixed_target(&mut self, entry: &Entry, reader: Reader) -> Result<Vec<u8>, Errno> {
        let pid = container::pid_shown(self.container, reader.pid);
        match entry.kind {
            fixed::Kind::OwnProcess | fixed::Kind::OwnThread if pid == 0 => Err(Errno::ENOENT),
            fixed::Kind::Link(target) => Text::of(|text| text.write_str(target)),
            fixed::Kind::OwnProcess => Text::of(|text| write!(text, "{pid}")),
            fixed::Kind::OwnThread => {
                let mut tid = 0;
                while let Some(thread) = self.source.thread_from(pid, tid)? {
                    if thread.endpoint == reader.thread {
                        return Text::of(|text| write!(text, "{pid}/task/{}", thread.pid));
                    }
                    tid = thread.pid + 1;
                }
                Err(Errno::ENOENT)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn lookup_fixed(&mut self, index: usize, name: &[u8]) -> Result<Place, Errno> {
        let entry = self.fixed(index)?;
        if !entry.is_folder() {
            return Err(Errno::ENOTDIR);
        }
        match name {
            b"." => return Ok(Place::Fixed(index)),
            b".." => return Ok(Place::Fixed(self.entries.parent(entry))),
            _ => {}
        }
        if let Some(found) = self.entries.find(entry, name) {
            return Ok(Place::Fixed(found));
        }
        if self.is_drvs(entry) {
            return drvs::container_named(&mut self.source, name).map(Place::Container);
        }
        let pid = number(name).filter(|_| index == ROOT && self.has_processes).ok_or(Errno::ENOENT)?;
        let whose = Whose { pid, tid: 0 };
        self.look_up(whose)?;
        Ok(Place::Folder(whose))
    }

    /// Whether this is the folder of M3-IPC.
    fn is_drvs(&self, entry: &Entry) -> bool {
        self.has_processes && entry.is_folder() && entry.path() == drvs::FOLDER
    }

    fn lookup_in_container(&mut self, container: u32, name: &[u8]) -> Result<Place, Errno> {
        let folder = || self.entries.numbered_path(drvs::FOLDER);
        match name {
            b"." => Ok(Place::Container(container)),
            b".." => Ok(Place::Fixed(folder())),
            _ => drvs::file_named(name).map(|file| Place::ContainerFile(container, file)),
        }
    }

    fn lookup_in_folder(&mut self, whose: Whose, name: &[u8]) -> Result<Place, Errno> {
        let threads = || ENTRIES.iter().position(|(_, _, kind)| matches!(kind, Kind::Threads)).unwrap_or(0);
        match (name, whose.tid) {
            (b".", _) => return Ok(Place::Folder(whose)),
            (b"..", 0) => return Ok(Place::Fixed(ROOT)),
            (b"..", _) => return Ok(Place::File(Whose { tid: 0, ..whose }, threads())),
            _ => {}
        }
        self.look_up(whose)?;
        let index = entry_named(whose.folder(), name).ok_or(Errno::ENOENT)?;
        Ok(Place::File(whose, index))
    }

    fn lookup_in_entry(&mut self, whose: Whose, index: usize, name: &[u8]) -> Result<Place, Errno> {
        let kind = ENTRIES[index].2;
        match name {
            _ if !is_folder(kind) => return Err(Errno::ENOTDIR),
            b"." => return Ok(Place::File(whose, index)),
            b".." => return Ok(Place::Folder(whose)),
            _ => {}
        }
        let record = self.look_up(whose)?;
        match kind {
            Kind::Threads => {
                let thread = Whose { tid: number(name).filter(|tid| *tid > 0).ok_or(Errno::ENOENT)?, ..whose };
                self.look_up(thread)?;
                Ok(Place::Folder(thread))
            }
            Kind::Namespaces => {
                let found = NAMESPACES.iter().position(|(entry, ..)| entry.as_bytes() == name);
                Ok(Place::Namespace(whose, found.ok_or(Errno::ENOENT)?))
            }
            _ => {
                let descriptor = number(name).ok_or(Errno::ENOENT)?;
                let found = self.source.descriptor_from(record.endpoint, descriptor.into())?;
                found.filter(|found| *found == descriptor).ok_or(Errno::ENOENT)?;
                Ok(descriptor_place(kind, whose, descriptor))
            }
        }
    }

    /// Returns the entry of a directory at or after `position`, after the dots, and the next position.
    fn entry(&mut self, dir: Place, position: u64) -> Result<Option<(Place, String, u64)>, Errno> {
        let index = position as usize;
        match dir {
            Place::Fixed(folder) => self.fixed_entry(folder, index),
            Place::Folder(whose) => {
                let entries = ENTRIES.iter().enumerate().skip(index);
                let next = entries.into_iter().find(|(_, (_, of, _))| of.has(whose.folder()));
                Ok(next.map(|(at, (name, ..))| (Place::File(whose, at), String::from(*name), at as u64 + 1)))
            }
            Place::File(whose, file) => self.inner_entry(whose, ENTRIES[file].2, position),
            Place::Container(container) => Ok(drvs::FILES
                .get(index)
                .map(|(name, _)| (Place::ContainerFile(container, index), String::from(*name), position + 1))),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Behind the entries of the root, the position is the lowest pid of the next one.
    #[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
    fn fixed_entry(&mut self, folder: usize, index: usize) -> Result<Option<(Place, String, u64)>, Errno> {
        let entry = self.fixed(folder)?;
        if !entry.is_folder() {
            return Err(Errno::ENOTDIR);
        }
        if let Some((at, found)) = self.entries.next_in(entry, index) {
            return Ok(Some((Place::Fixed(at), found.name().into(), at as u64 + 1)));
        }
        let count = self.entries.len();
        if self.is_drvs(entry) {
            let found = drvs::container_from(&mut self.source, index.saturating_sub(count) as u32)?;
            return Ok(found.map(|number| {
                let next = count as u64 + u64::from(number) + 1;
                (Place::Container(number), format!("VM{number}"), next)
            }));
        }
        if folder != ROOT || !self.has_processes {
            return Ok(None);
        }
        let process = self.source.process_from(index.saturating_sub(count) as u32)?;
        Ok(process.map(|ProcessRecord { pid, .. }| {
            let next = count as u64 + u64::from(pid) + 1;
            (Place::Folder(Whose { pid, tid: 0 }), format!("{pid}"), next)
        }))
    }

    #[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
    fn inner_entry(&mut self, whose: Whose, kind: Kind, position: u64) -> Result<Option<(Place, String, u64)>, Errno> {
        match kind {
            Kind::Threads => {
                let found = self.source.thread_from(whose.pid, position as u32)?;
                Ok(found.map(|ProcessRecord { pid: tid, .. }| {
                    (Place::Folder(Whose { tid, ..whose }), format!("{tid}"), u64::from(tid) + 1)
                }))
            }
            Kind::Namespaces => {
                let index = position as usize;
                let found = NAMESPACES.get(index);
                Ok(found.map(|(name, ..)| (Place::Namespace(whose, index), String::from(*name), position + 1)))
            }
            Kind::Descriptors | Kind::DescriptorInfo => {
                let record = self.record(whose)?;
                let found = self.source.descriptor_from(record.endpoint, position)?;
                Ok(found.map(|descriptor| {
                    (descriptor_place(kind, whose, descriptor), format!("{descriptor}"), u64::from(descriptor) + 1)
                }))
            }
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Permissions of a link in fd: they tell what the descriptor was opened for, as lsof(8) expects. `ENOENT`: it is closed.
    fn link_permissions(&mut self, process: Endpoint, descriptor: u32) -> Result<u32, Errno> {
        let access = self.source.descriptor_access(process, descriptor).map_err(not_found)?;
        let reads = if access & vfs::OPEN_READS != 0 { 0o500 } else { 0 };
        let writes = if access & vfs::OPEN_WRITES != 0 { 0o300 } else { 0 };
        Ok(reads | writes)
    }

    /// Kind and permissions; those of a link in fd are not all its own.
    fn mode_of(&self, place: Place) -> u32 {
        match place {
            Place::Fixed(index) => self.fixed(index).map_or(0, |entry| match entry.kind {
                fixed::Kind::Folder => S_IFDIR | 0o555,
                fixed::Kind::Link(_) | fixed::Kind::OwnProcess | fixed::Kind::OwnThread => S_IFLNK | 0o777,
                fixed::Kind::Setting(_) => S_IFREG | 0o644,
                fixed::Kind::Text(_) | fixed::Kind::OfScreen(_) | fixed::Kind::Line(_) | fixed::Kind::Number(_) => {
                    S_IFREG | 0o444
                }
            }),
            Place::Folder(_) | Place::Container(_) => S_IFDIR | 0o555,
            Place::ContainerFile(..) => S_IFREG | 0o444,
            Place::Descriptor(..) | Place::Namespace(..) => S_IFLNK | 0o777,
            Place::DescriptorInfo(..) => S_IFREG | 0o400,
            Place::File(_, index) => match ENTRIES[index].2 {
                Kind::Descriptors | Kind::DescriptorInfo => S_IFDIR | 0o500,
                Kind::Namespaces | Kind::Threads => S_IFDIR | 0o555,
                Kind::Link(_) | Kind::Executable => S_IFLNK | 0o777,
                Kind::Text(_) => S_IFREG | 0o444,
                Kind::PrivateText(_) => S_IFREG | 0o400,
                Kind::Memory => S_IFREG | 0o600,
                Kind::IdMap(_) | Kind::Name | Kind::OomAdjust(_) => S_IFREG | 0o644,
            },
        }
    }
}

impl<S: Source> FileSystem for Tree<S> {
    fn is_volatile(&self) -> bool {
        true
    }

    fn root(&self) -> NodeId {
        Place::Fixed(ROOT).node()
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let looked_up = self.looked_up.take();
        let place = Place::of(node)?;
        let owner = match place {
            Place::Fixed(index) => self.fixed(index).map(|_| ProcessRecord::default())?,
            Place::Container(number) | Place::ContainerFile(number, _) => {
                let is_running = drvs::container_from(&mut self.source, number)? == Some(number);
                is_running.then(ProcessRecord::default).ok_or(Errno::ESTALE)?
            }
            _ => {
                let owner = place.owner().ok_or(Errno::ESTALE)?;
                match looked_up {
                    Some((whose, record)) if whose == owner => record,
                    _ => self.record(owner)?,
                }
            }
        };
        let now_ns = self.source.real_time_ns();
        let now = Timestamp { seconds: (now_ns / 1_000_000_000) as i64, nanos: (now_ns % 1_000_000_000) as u32 };
        let mode = match place {
            Place::Descriptor(_, descriptor) => S_IFLNK | self.link_permissions(owner.endpoint, descriptor)?,
            _ => self.mode_of(place),
        };
        let is_private = place.owner().is_some() && !matches!(place, Place::Folder(_) | Place::Descriptor(..));
        Ok(Attributes {
            node,
            mode,
            links: if mode & S_IFDIR != 0 { 2 } else { 1 },
            uid: if is_private && (owner.undumpable != 0 || !has_one_user(&owner)) { 0 } else { owner.euid },
            gid: owner.egid,
            block_size: 1024,
            accessed: now,
            modified: now,
            changed: now,
            ..Attributes::default()
        })
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        self.looked_up = None;
        let found = match Place::of(dir)? {
            Place::Fixed(index) => self.lookup_fixed(index, name),
            Place::Folder(whose) => self.lookup_in_folder(whose, name),
            Place::File(whose, index) => self.lookup_in_entry(whose, index, name),
            Place::Container(container) => self.lookup_in_container(container, name),
            _ => Err(Errno::ENOTDIR),
        };
        if found.is_err() {
            self.looked_up = None;
        }
        Ok(found?.node())
    }

    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno> {
        if let Some(process) = self.memory_of(node)? {
            return self.read_memory(process, offset, len, sink);
        }
        let content = self.content(Place::of(node)?)?;
        let start = content.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let end = content.len().min(start.saturating_add(len));
        sink.put(&content[start..end])?;
        Ok(end - start)
    }

    /// A write is a new value as a whole, wherever it is written.
    fn write(
        &mut self,
        node: NodeId,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        writer: Caller,
    ) -> Result<usize, Errno> {
        if let Some(process) = self.memory_of(node)? {
            return self.write_memory(process, offset, len, source);
        }
        let mut bytes = [0; WRITE_BYTES];
        let entry = entry_of(node);
        if let Some((whose, Kind::Name)) = entry {
            let text = &mut bytes[..len.min(NAME_BYTES)];
            source.take(text)?;
            self.source.set_name(whose.id(), text.strip_suffix(b"\n").unwrap_or(text))?;
            return Ok(len);
        }
        if let Some((whose, Kind::OomAdjust(measure))) = entry {
            let text = &mut bytes[..len.min(oom::MAX_BYTES)];
            source.take(text)?;
            let (value, is_old) = (measure.parse(text)?, measure == Measure::Old);
            self.source.set_oom_adjust(whose.pid, value, is_old, writer)?;
            return Ok(text.len());
        }
        if let Some((whose, Kind::IdMap(which))) = entry {
            let text = bytes.get_mut(..len).ok_or(Errno::EINVAL)?;
            source.take(text)?;
            self.source.set_id_map(whose.pid, which, text, writer)?;
            return Ok(len);
        }
        let setting = self.setting(node)?;
        let text = bytes.get_mut(..len).ok_or(Errno::EINVAL)?;
        source.take(text)?;
        self.set(setting, text)?;
        Ok(len)
    }

    /// What can be written may be opened with `O_TRUNC`.
    fn truncate(&mut self, node: NodeId, _: u64) -> Result<(), Errno> {
        if self.memory_of(node)?.is_some()
            || matches!(entry_of(node), Some((_, Kind::Name | Kind::IdMap(_) | Kind::OomAdjust(_))))
        {
            return Ok(());
        }
        self.setting(node).map(drop)
    }

    fn make_node(&mut self, _: NodeId, _: &[u8], _: u32, _: u64, _: Caller) -> Result<NodeId, Errno> {
        Err(Errno::ENOENT)
    }

    fn make_dir(&mut self, _: NodeId, _: &[u8], _: u32, _: Caller) -> Result<NodeId, Errno> {
        Err(Errno::ENOENT)
    }

    fn make_symlink(&mut self, _: NodeId, _: &[u8], _: &[u8], _: Caller) -> Result<NodeId, Errno> {
        Err(Errno::ENOENT)
    }

    fn unlink(&mut self, _: NodeId, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    fn remove_dir(&mut self, _: NodeId, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    fn set_mode(&mut self, _: NodeId, _: u32) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    fn set_owner(&mut self, _: NodeId, _: Option<u32>, _: Option<u32>) -> Result<(), Errno> {
        Err(Errno::EPERM)
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
            if !sink.entry(entry.node(), next + dots, self.mode_of(entry), name.as_bytes()) {
                break;
            }
            position = next + dots;
        }
        Ok(position)
    }

    fn read_link_for(&mut self, node: NodeId, reader: Reader, target: &mut [u8]) -> Result<usize, Errno> {
        let text = self.target(Place::of(node)?, reader)?;
        let count = text.len().min(target.len());
        target[..count].copy_from_slice(&text[..count]);
        Ok(count)
    }

    fn process_behind(&self, node: NodeId) -> Option<(u32, u64)> {
        match Place::of(node) {
            Ok(Place::Descriptor(whose, descriptor)) => Some((self.meant(whose)?, descriptor.into())),
            Ok(Place::File(whose, index)) if matches!(ENTRIES[index].2, Kind::Executable) => {
                Some((self.meant(whose)?, abi::fs::LINK_PROGRAM))
            }
            Ok(Place::File(whose, _) | Place::Namespace(whose, _)) => Some((self.meant(whose)?, abi::fs::LINK_OTHER)),
            _ => None,
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics { kind: self.magic, block_size: 4096, ..Statistics::default() }
    }
}

/// Which entry of a process or thread a node is, and whose.
fn entry_of(node: NodeId) -> Option<(Whose, Kind)> {
    match Place::of(node).ok()? {
        Place::File(whose, index) => Some((whose, ENTRIES[index].2)),
        _ => None,
    }
}

fn descriptor_place(kind: Kind, whose: Whose, descriptor: u32) -> Place {
    match kind {
        Kind::DescriptorInfo => Place::DescriptorInfo(whose, descriptor),
        _ => Place::Descriptor(whose, descriptor),
    }
}

fn is_folder(kind: Kind) -> bool {
    matches!(kind, Kind::Descriptors | Kind::DescriptorInfo | Kind::Namespaces | Kind::Threads)
}

/// Whether a process has the same rights as its user, who then may look into it. Of others root alone may.
fn has_one_user(process: &ProcessRecord) -> bool {
    [process.uid, process.suid].map(|id| id == process.euid) == [true; 2]
        && [process.gid, process.sgid].map(|id| id == process.egid) == [true; 2]
}

/// The error of a name whose process, thread or file is gone. Lack of memory is not absence.
fn not_found(error: Errno) -> Errno {
    if error == Errno::ENOMEM { error } else { Errno::ENOENT }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
