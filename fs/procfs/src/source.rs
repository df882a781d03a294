//! The source of all figures (pm, vm, vfs and the kernel), as a trait, so that tests can replace it.

use crate::text::Text;
use abi::info::KernelInfo;
use abi::pm::{IpcRecord, ProcessRecord};
use abi::vm::MapRecord;
use abi::{Endpoint, Errno};
use alloc::vec::Vec;
use core::fmt;
use fs::file_system::Caller;

/// Texts of a process that pm knows (`pm::TEXT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessText {
    /// Arguments, each ended by NUL.
    Arguments,
    /// Environment, each ended by NUL.
    Environment,
    /// Absolute path of the executable.
    Executable,
    /// Supplementary groups.
    Groups,
    /// Limits of resources.
    Limits,
    /// Auxiliary vector.
    Auxiliary,
    /// First id inside a container, first id outside, and their number, as u32; nothing if there is none.
    UserMap,
    /// The same of groups.
    GroupMap,
    /// Whether setgroups(2) is allowed in its container.
    Setgroups,
}

/// Kinds of descriptor paths (`vfs::DescriptorPath::what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFile {
    /// A descriptor.
    Descriptor(u32),
    /// The working directory.
    WorkingDirectory,
    /// The root directory.
    Root,
}

/// Memory of the machine, in bytes (`vm::MemoryInfo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All memory.
    pub total: u64,
    /// Free memory.
    pub free: u64,
    /// Cached pages of files, which can be evicted.
    pub cached: u64,
}

/// Memory of a process, in bytes (`vm::ProcessMemory`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Size of all regions.
    pub size: u64,
    /// Resident size.
    pub resident: u64,
    /// Data and heap.
    pub data: u64,
    /// Stack.
    pub stack: u64,
    /// Page faults: a number.
    pub faults: u64,
    /// The most that was resident.
    pub peak: u64,
}

/// How full vfs's tables are (`vfs::Usage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileUsage {
    /// Open files.
    pub files: u64,
    /// Open files that there can be.
    pub files_max: u64,
    /// Vnodes.
    pub nodes: u64,
    /// Bytes in pipes that one user gets.
    pub user_pipe_bytes: u64,
    /// Registrations in epolls that one user gets.
    pub user_interests: u64,
    /// Requests that contexts of asynchronous I/O have been made for.
    pub aio_requests: u64,
}

/// What the screen shows (`display::Describe`). Pairs are width and height, or column and line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Bits of a pixel.
    pub depth: u32,
    /// By how many quarters it is turned.
    pub rotation: u32,
    /// The visible picture.
    pub size: (u32, u32),
    /// The virtual picture.
    pub whole: (u32, u32),
    /// The first visible pixel.
    pub place: (u32, u32),
    /// The device's name, ended by zeros.
    pub name: [u8; 16],
}

/// The figures. What does not exist (any more) is `None` or empty; a server without memory for the answer is an error, `ENOMEM`, so
/// that nobody takes it for absence.
pub trait Source {
    /// Returns the first process with a pid not below this. `ENOMEM`.
    fn process_from(&mut self, pid: u32) -> Result<Option<ProcessRecord>, Errno>;
    /// Returns the first thread of a process with an id not below this. `ENOMEM`.
    fn thread_from(&mut self, pid: u32, tid: u32) -> Result<Option<ProcessRecord>, Errno>;
    /// Returns a text of a process. `ESRCH`, `ENOMEM`.
    fn process_text(&mut self, pid: u32, which: ProcessText) -> Result<Vec<u8>, Errno>;
    /// Reads memory of a process. Returns the bytes read: fewer at the end of what is mapped. `EIO`: nothing is; `ESRCH`, `ENOMEM`.
    fn read_memory(&mut self, process: Endpoint, address: u64, into: &mut [u8]) -> Result<usize, Errno>;
    /// Writes memory of a process, also where it may not write itself. `EIO`, `ESRCH`, `ENOMEM`.
    fn write_memory(&mut self, process: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno>;
    /// Returns the memory sizes of a process.
    fn process_memory(&mut self, process: Endpoint) -> ProcessMemory;
    /// Writes the regions of a process from number `first` on into `records`. Returns how many; 0: there are no more. `ENOMEM`.
    fn maps(&mut self, process: Endpoint, first: u64, records: &mut [MapRecord]) -> Result<usize, Errno>;
    /// Returns the path of the file that a process has mapped at an address. `ENOENT`: not known; `ESRCH`, `ENOMEM`.
    fn mapped_name(&mut self, process: Endpoint, address: u64) -> Result<Vec<u8>, Errno>;
    /// Returns the first open descriptor of a process not below this. `ENOMEM`.
    fn descriptor_from(&mut self, process: Endpoint, descriptor: u64) -> Result<Option<u32>, Errno>;
    /// Returns the path of an open file. `EBADF`, `ENOMEM`.
    fn open_file(&mut self, process: Endpoint, which: OpenFile) -> Result<Vec<u8>, Errno>;
    /// Returns the text of /proc/PID/fdinfo about a descriptor. `EBADF`, `ENOMEM`.
    fn descriptor_info(&mut self, process: Endpoint, descriptor: u32) -> Result<Vec<u8>, Errno>;
    /// Returns what a descriptor was opened for (`vfs::OPEN_*`). `EBADF`.
    fn descriptor_access(&mut self, process: Endpoint, descriptor: u32) -> Result<u64, Errno>;
    /// Returns umask and size of the descriptor table of a process, if it has files.
    fn process_files(&mut self, process: Endpoint) -> Option<(u64, u64)>;
    /// Returns the machine's memory sizes.
    fn memory(&mut self) -> Memory;
    /// Returns how full vfs's tables are.
    fn file_usage(&mut self) -> FileUsage;
    /// Returns the kernel's counters.
    fn kernel(&mut self) -> KernelInfo;
    /// Returns the real time in ns since 1970.
    fn real_time_ns(&mut self) -> u64;
    /// Writes the kernel's command line.
    fn command_line(&mut self, text: &mut Text) -> fmt::Result;
    /// Writes the System V objects of a kind (`abi::pm::IPC_*`), from this index on, into `records`. Returns how many; 0: there are no more.
    /// `ENOMEM`.
    fn ipc_objects(&mut self, kind: u64, first: u32, records: &mut [IpcRecord]) -> Result<usize, Errno>;
    /// Writes the table of the mounts that a process sees.
    fn mounts(&mut self, process: Endpoint, text: &mut Text) -> fmt::Result;
    /// Writes the table of the mounts that a process sees in the form of mountinfo.
    fn mount_info(&mut self, process: Endpoint, text: &mut Text) -> fmt::Result;
    /// Writes the table of file locks.
    fn locks(&mut self, text: &mut Text) -> fmt::Result;
    /// Writes the table of local sockets.
    fn sockets(&mut self, text: &mut Text) -> fmt::Result;
    /// Writes /proc/partitions.
    fn partitions(&mut self, text: &mut Text) -> fmt::Result;
    /// Returns a name of the machine (`pm::MachineName`). `ENOMEM`.
    fn machine_name(&mut self, which: u64) -> Result<Vec<u8>, Errno>;
    /// Sets a name of the machine. `EINVAL`.
    fn set_machine_name(&mut self, which: u64, name: &[u8]) -> Result<(), Errno>;
    /// Sets a map of ids of the container of a process, or whether setgroups(2) is allowed there. `EPERM`, `EINVAL`, `ESRCH`.
    fn set_id_map(&mut self, pid: u32, which: ProcessText, text: &[u8], writer: Caller) -> Result<(), Errno>;
    /// Sets how much a process is wanted when memory ends, from -1,000 to 1,000; `is_old`: as oom_adj does. `EACCES`, `ESRCH`.
    fn set_oom_adjust(&mut self, pid: u32, value: i32, is_old: bool, writer: Caller) -> Result<(), Errno>;
    /// Names a thread. `ESRCH`.
    fn set_name(&mut self, tid: u32, name: &[u8]) -> Result<(), Errno>;
    /// Returns a setting of pm (`pm::SETTING_*`).
    fn setting(&mut self, what: u64) -> u64;
    /// Changes a setting of pm. `EINVAL`.
    fn set_setting(&mut self, what: u64, value: u64) -> Result<(), Errno>;
    /// Returns the load averages (`pm::Loads`).
    fn loads(&mut self) -> [u64; 3];
    /// Returns a text of m3ipc (`abi::m3ipc::Text`). `ESRCH`: there is no such container; `ENOENT`: this system has no m3ipc; `ENOMEM`.
    fn m3ipc_text(&mut self, what: u64, container: u64) -> Result<Vec<u8>, Errno>;
    /// Returns the containers of M3-IPC that run, a bit each. `ENOMEM`.
    fn m3ipc_containers(&mut self) -> Result<u32, Errno>;
    /// Returns what the screen shows. `ENODEV`: there is none.
    fn screen(&mut self) -> Result<Screen, Errno>;
    /// Changes one thing of the screen (`display::CHANGE_*`). `ENODEV`, `EINVAL`.
    fn change_screen(&mut self, what: u64, value: u64) -> Result<(), Errno>;
    /// Returns by how many quarters text is turned on the screen. `ENODEV`.
    fn text_rotation(&mut self) -> Result<u64, Errno>;
    /// Turns text on the screen. `ENODEV`, `EINVAL`.
    fn turn_text(&mut self, quarters: u64) -> Result<(), Errno>;
    /// Returns the random number of this boot, and a new one.
    fn identity(&mut self) -> (u128, u128);
}
