//! The source of all figures (pm, vm, vfs and the kernel), as a trait, so that tests can replace it.

use abi::info::KernelInfo;
use abi::pm::{IpcRecord, ProcessRecord};
use abi::vm::MapRecord;
use abi::{Endpoint, Errno};
use alloc::vec::Vec;

/// Texts of a process that pm keeps (`pm::ProcessText::what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessText {
    /// Arguments, each ended by NUL.
    Arguments,
    /// Environment, each ended by NUL.
    Environment,
    /// Absolute path of the executable.
    Executable,
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
    /// Returns the memory sizes of a process.
    fn process_memory(&mut self, process: Endpoint) -> ProcessMemory;
    /// Writes the regions of a process from number `first` on into `records`. Returns how many; 0: there are no more. `ENOMEM`.
    fn maps(&mut self, process: Endpoint, first: u64, records: &mut [MapRecord]) -> Result<usize, Errno>;
    /// Returns the first open descriptor of a process not below this. `ENOMEM`.
    fn descriptor_from(&mut self, process: Endpoint, descriptor: u64) -> Result<Option<u32>, Errno>;
    /// Returns the path of an open file. `EBADF`, `ENOMEM`.
    fn open_file(&mut self, process: Endpoint, which: OpenFile) -> Result<Vec<u8>, Errno>;
    /// Returns the machine's memory sizes.
    fn memory(&mut self) -> Memory;
    /// Returns the kernel's counters.
    fn kernel(&mut self) -> KernelInfo;
    /// Returns the real time in ns since 1970.
    fn real_time_ns(&mut self) -> u64;
    /// Returns the kernel's command line. `ENOMEM`.
    fn command_line(&mut self) -> Result<Vec<u8>, Errno>;
    /// Writes the System V objects of a kind (`abi::pm::IPC_*`), from this index on, into `records`. Returns how many; 0: there are no more.
    /// `ENOMEM`.
    fn ipc_objects(&mut self, kind: u64, first: u32, records: &mut [IpcRecord]) -> Result<usize, Errno>;
    /// Returns the text of the mount table. `ENOMEM`.
    fn mounts(&mut self) -> Result<Vec<u8>, Errno>;
}
