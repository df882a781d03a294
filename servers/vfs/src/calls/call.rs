//! One call with its arguments, and the forms in which calls give them.

use crate::{
    aio::Contexts,
    base::{Base, closing::Closing},
    files::{Files, locks::Waits},
    keep::{Store, records::Note},
    mappings::Mappings,
    memory as user,
    memory::buffer::UserBuffer,
    objects::garbage::InFlight,
    peers::Peers,
    processes::{AT_FDCWD, Process, Processes},
    queues::names::QueueNames,
    sockets::names::Names,
    state::Vfs,
};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use sys::time;

const NS_PER_S: u64 = 1_000_000_000;

/// Do not follow a link as last component.
pub const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
/// faccessat2: with the effective ids.
pub const AT_EACCESS: u32 = 0x200;
/// An empty path means the descriptor.
pub const AT_EMPTY_PATH: u32 = 0x1000;

/// A directory (a descriptor, or `AT_FDCWD`) and a path relative to it.
pub type Side = (i32, Vec<u8>);

/// A file that a call is about.
pub struct Target {
    /// A descriptor, or `AT_FDCWD`.
    pub directory: i32,
    /// The path relative to it.
    pub path: Vec<u8>,
    /// AT_* flags.
    pub flags: u32,
}

impl Target {
    fn new(directory: i32, path: Vec<u8>, flags: u32) -> Target {
        Target { directory, path, flags }
    }
}

/// One call.
pub struct Call<'a> {
    vfs: &'static Vfs,
    /// The program's thread.
    pub process: &'a Rc<Process>,
    /// The arguments.
    pub words: &'a [u64; 7],
}

impl<'a> Call<'a> {
    /// The call of a thread with these arguments.
    pub fn new(vfs: &'static Vfs, process: &'a Rc<Process>, words: &'a [u64; 7]) -> Call<'a> {
        Call { vfs, process, words }
    }
}

/// The parts of vfs that handlers are given.
impl Call<'_> {
    /// What open files stand on.
    pub fn base(&self) -> &'static Base {
        self.vfs.base()
    }

    /// Preserved memory.
    pub fn store(&self) -> &'static Rc<Store> {
        self.base().store()
    }

    /// Files in use.
    pub fn files(&self) -> &'static Files {
        self.base().files()
    }

    /// File systems and drivers.
    pub fn peers(&self) -> &'static Peers {
        self.base().peers()
    }

    /// Files that are mapped shared.
    pub fn mappings(&self) -> &'static Mappings {
        self.base().mappings()
    }

    /// What new open files need.
    pub fn closing(&self) -> &'static Rc<Closing> {
        self.base().closing()
    }

    /// All threads.
    pub fn processes(&self) -> &'static Processes {
        self.vfs.processes()
    }

    /// Message queues by name.
    pub fn queues(&self) -> &'static QueueNames {
        self.vfs.queues()
    }

    /// Sockets by name.
    pub fn sockets(&self) -> &'static Rc<Names> {
        self.vfs.sockets()
    }

    /// Open files in flight.
    pub fn in_flight(&self) -> &'static Rc<InFlight> {
        self.vfs.in_flight()
    }

    /// Contexts of asynchronous I/O.
    pub fn contexts(&self) -> &'static Contexts {
        self.vfs.contexts()
    }

    /// The wait-for graph of record locks.
    pub fn lock_waits(&self) -> &'static Waits {
        self.vfs.lock_waits()
    }
}

/// The arguments.
impl Call<'_> {
    /// The first `N` arguments.
    pub fn first<const N: usize>(&self) -> [u64; N] {
        core::array::from_fn(|index| self.words[index])
    }

    /// An argument of 32 bits with a sign: a descriptor.
    pub fn int(&self, index: usize) -> i32 {
        self.words[index] as i32
    }

    /// An argument of 32 bits.
    pub fn flags(&self, index: usize) -> u32 {
        self.words[index] as u32
    }

    /// The program's thread, for a task.
    pub fn process(&self) -> Rc<Process> {
        self.process.clone()
    }

    /// The buffer of address `index` and the length behind it.
    pub fn buffer(&self, index: usize) -> Result<UserBuffer, Errno> {
        user::buffer(self.process.caller.endpoint, self.words[index], self.words[index + 1])
    }

    /// The buffers of the vector at address `index` and the count behind it.
    pub fn vector(&self, index: usize) -> Result<UserBuffer, Errno> {
        user::vector(self.process.caller.endpoint, self.words[index], self.words[index + 1])
    }

    /// The position of pread64 and its relatives. `EINVAL`: negative.
    pub fn position(&self, index: usize) -> Result<Option<u64>, Errno> {
        if self.words[index] as i64 <= -1 { Err(Errno::EINVAL) } else { Ok(Some(self.words[index])) }
    }

    /// A path.
    pub fn path(&self, index: usize) -> Result<Vec<u8>, Errno> {
        user::fetch_path(self.process.caller.endpoint, self.words[index])
    }

    /// A path, or nothing for a null pointer.
    pub fn path_or_none(&self, index: usize) -> Result<Vec<u8>, Errno> {
        if self.words[index] == 0 { Ok(Vec::new()) } else { self.path(index) }
    }

    /// A path relative to the working directory.
    pub fn here(&self, index: usize) -> Result<Side, Errno> {
        Ok((AT_FDCWD, self.path(index)?))
    }

    /// A descriptor and the path relative to it.
    pub fn at(&self, index: usize) -> Result<Side, Errno> {
        Ok((self.int(index), self.path(index + 1)?))
    }

    /// A file by its path.
    pub fn target_here(&self, index: usize, flags: u32) -> Result<Target, Errno> {
        Ok(Target::new(AT_FDCWD, self.path(index)?, flags))
    }

    /// A file by a descriptor and a path. A missing path with AT_EMPTY_PATH means the descriptor, as in fstat.
    pub fn target_at(&self, index: usize, flags: u32) -> Result<Target, Errno> {
        let path = match self.words[index + 1] {
            0 if flags & AT_EMPTY_PATH != 0 => Vec::new(),
            _ => self.path(index + 1)?,
        };
        Ok(Target::new(self.int(index), path, flags))
    }

    /// The file behind the descriptor in argument 0.
    pub fn target_descriptor(&self) -> Result<Target, Errno> {
        let descriptor = self.int(0);
        self.process.file(descriptor)?;
        Ok(Target::new(descriptor, Vec::new(), AT_EMPTY_PATH))
    }

    /// The same, but `EBADF` for a descriptor opened with O_PATH.
    pub fn target_usable(&self) -> Result<Target, Errno> {
        self.process.file(self.int(0))?.usable()?;
        self.target_descriptor()
    }

    /// A file by a descriptor and a path, by the descriptor alone when the path is missing.
    pub fn target_or_descriptor(&self, index: usize) -> Result<Target, Errno> {
        match self.words[index + 1] {
            0 => self.target_usable(),
            _ => self.target_at(index, 0),
        }
    }

    /// The deadline of a time-out in milliseconds; `None`: for ever, 0: no waiting.
    pub fn milliseconds(&self, index: usize) -> Option<u64> {
        let wait_ms = self.int(index);
        match wait_ms {
            _ if let Some(Note::Deadline(deadline_ns)) = self.process.caller.noted() => Some(deadline_ns),
            0 => Some(0),
            1.. => Some(time::now_ns() + wait_ms as u64 * 1_000_000),
            _ => None,
        }
    }

    /// The deadline of a `struct timespec` argument.
    pub fn timespec(&self, index: usize) -> Result<Option<u64>, Errno> {
        self.deadline(index, NS_PER_S, 1)
    }

    /// The deadline of a `struct timeval` argument.
    pub fn timeval(&self, index: usize) -> Result<Option<u64>, Errno> {
        self.deadline(index, 1_000_000, 1000)
    }

    fn deadline(&self, index: usize, parts_per_s: u64, ns_per_part: u64) -> Result<Option<u64>, Errno> {
        if self.words[index] == 0 {
            return Ok(None);
        }
        if let Some(Note::Deadline(deadline_ns)) = self.process.caller.noted() {
            return Ok(Some(deadline_ns));
        }
        let [seconds, parts] = user::fetch_words::<2>(self.process.caller.endpoint, self.words[index])?;
        if seconds as i64 <= -1 || parts >= parts_per_s {
            return Err(Errno::EINVAL);
        }
        let wait_ns = seconds.saturating_mul(NS_PER_S).saturating_add(parts * ns_per_part);
        Ok(Some(if wait_ns == 0 { 0 } else { time::now_ns().saturating_add(wait_ns) }))
    }
}
