//! Where the figures come from: pm, vm, vfs and the kernel. A trait, so that tests can make figures up.

use abi::info::KernelInfo;
use abi::pm::ProcessRecord;
use abi::vm::MapRecord;
use abi::{Endpoint, Errno};
use alloc::{string::String, vec::Vec};

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

/// What a descriptor path is asked of (`vfs::DescriptorPath::what`).
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
    /// All of it.
    pub total: u64,
    /// Not used at all.
    pub free: u64,
    /// Pages of files, free when needed.
    pub cached: u64,
}

/// Memory of a process, in bytes (`vm::ProcessMemory`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Size of all regions.
    pub size: u64,
    /// In memory.
    pub resident: u64,
    /// Data and heap.
    pub data: u64,
    /// Stack.
    pub stack: u64,
}

/// The figures.
pub trait Source {
    /// The first process with a pid not below this.
    fn process_from(&mut self, pid: u32) -> Option<ProcessRecord>;
    /// The first thread of a process with an id not below this.
    fn thread_from(&mut self, pid: u32, tid: u32) -> Option<ProcessRecord>;
    /// A text of a process. `ESRCH`.
    fn process_text(&mut self, pid: u32, which: ProcessText) -> Result<Vec<u8>, Errno>;
    /// Its memory.
    fn process_memory(&mut self, process: Endpoint) -> ProcessMemory;
    /// Its regions.
    fn maps(&mut self, process: Endpoint) -> Vec<MapRecord>;
    /// Its open descriptors, ascending.
    fn descriptors(&mut self, process: Endpoint) -> Vec<u32>;
    /// The path of an open file. `EBADF`.
    fn open_file(&mut self, process: Endpoint, which: OpenFile) -> Result<Vec<u8>, Errno>;
    /// The machine's memory.
    fn memory(&mut self) -> Memory;
    /// The kernel's counters.
    fn kernel(&mut self) -> KernelInfo;
    /// Real time in ns since 1970.
    fn real_time_ns(&mut self) -> u64;
    /// The kernel's command line.
    fn command_line(&mut self) -> String;
    /// Text of the mount table.
    fn mounts(&mut self) -> Vec<u8>;
}
