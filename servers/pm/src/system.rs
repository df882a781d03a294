//! Everything pm asks of others, as one trait: the kernel's calls, vm, vfs and tty. `native` fulfils it with messages;
//! the tests fulfil it with a fake, so that all of pm's decisions run under `cargo test`.
//!
//! Errors of teardown calls (`destroy`, `vm_exit`, …) are not reported: the peer is dead either way.

use abi::{CapabilitySet, Endpoint, Errno, Parts, registers::Registers, vfs, vm};
use alloc::vec::Vec;
use core::fmt;

/// What `vm::Exec` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewMemory {
    /// Where to jump to.
    pub start: u64,
    /// Entry point of the program itself.
    pub entry: u64,
    /// Its program headers in memory.
    pub phdr: u64,
    /// Their number.
    pub phdr_count: u64,
    /// Base of the interpreter, 0 without.
    pub interpreter_base: u64,
    /// End of the stack.
    pub stack_end: u64,
}

/// What vfs is told of who a process is, see `abi::vfs::SetIds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIds {
    /// User (low) and group of file accesses.
    pub effective: u64,
    /// Real user (low) and group.
    pub real: u64,
    /// What the process may.
    pub capabilities: CapabilitySet,
    /// What access(2) says it may.
    pub real_capabilities: CapabilitySet,
}

/// The limits that vfs enforces, see `abi::vfs::SetLimits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// RLIMIT_NOFILE.
    pub descriptors: u64,
    /// RLIMIT_FSIZE.
    pub file_bytes: u64,
    /// RLIMIT_MSGQUEUE.
    pub message_bytes: u64,
}

/// An event of tty, see `abi::tty::NextEvent`.
#[derive(Clone, Copy, Debug)]
pub struct TerminalEvent {
    pub number: u64,
    pub signal: u64,
    pub target: u64,
}

/// An event of vfs, see `abi::vfs::NextEvent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// By which vfs is told that it has been dealt with.
    pub number: u64,
    /// One of `abi::vfs::EVENT_*`.
    pub kind: u64,
    /// The thread concerned.
    pub process: Endpoint,
    /// Values by kind.
    pub values: [u64; 4],
}

/// A process as others may refer to it: no later process with the same id has the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id.
    pub pid: u32,
    /// How many had it before, modulo 2^31.
    pub generation: u32,
}

impl Identity {
    /// As `abi::vfs` has it.
    pub fn to_word(self) -> u64 {
        self.pid as u64 | (self.generation as u64) << 32
    }

    /// From a message of vfs.
    pub fn from_word(word: u64) -> Identity {
        Identity { pid: word as u32, generation: (word >> 32) as u32 }
    }
}

/// A thread for which vfs does something that must not be done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The thread.
    pub thread: Endpoint,
    /// The number of the call that it waits in.
    pub call: u64,
}

/// "Relative to the working directory".
pub const AT_FDCWD: i32 = -100;

/// How a caller of `execve` or `execveat` names the program.
#[derive(Debug)]
pub struct ProgramName {
    /// A descriptor that the path is relative to, or [`AT_FDCWD`].
    pub directory: i32,
    /// The path; empty for the file of the descriptor.
    pub path: Vec<u8>,
    /// `AT_*` of execveat(2).
    pub flags: u64,
}

impl ProgramName {
    /// A path that is relative to the working directory.
    pub fn at(path: Vec<u8>) -> ProgramName {
        ProgramName { directory: AT_FDCWD, path, flags: 0 }
    }
}

/// The limits that vm enforces, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MemoryLimits {
    pub addresses: u64,
    pub data: u64,
    pub locked: u64,
    pub stack: u64,
}

impl MemoryLimits {
    /// What holds of a new process's memory in vm. The stack's is told with each exec.
    pub const NONE: MemoryLimits =
        MemoryLimits { addresses: u64::MAX, data: u64::MAX, locked: u64::MAX, stack: 8 << 20 };
}

/// What one thread has used, and what it is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// Processor time.
    pub run_ns: u64,
    /// Messages sent and received.
    pub messages: u64,
    /// `abi::info::state`.
    pub state: u32,
    /// Whom it waits for, or `NONE`.
    pub blocked_on: Endpoint,
    /// Its queue, inheritance included.
    pub queue: u32,
    /// How often it has waited for a server: a voluntary context switch each time.
    pub waits: u64,
}

/// What a process has used of memory (`vm::MemoryUse`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Page faults.
    pub faults: u64,
    /// The most bytes that were resident.
    pub peak_bytes: u64,
}

/// Who uses a System V segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentUse {
    /// Mappings.
    pub attaches: u64,
    /// Pages in memory.
    pub resident_pages: u64,
    /// When it was attached last, in seconds since 1970.
    pub attached_s: u64,
    /// When it was detached last.
    pub detached_s: u64,
    /// The process that did the last of the two.
    pub pid: u64,
}

/// Memory of the machine in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All.
    pub total: u64,
    /// Unused.
    pub free: u64,
}

/// How the machine is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Switch the power off.
    PowerOff,
    /// Start again.
    Reboot,
    /// Stop and stay.
    Halt,
}

/// The world around pm.
pub trait System {
    /// A new stopped thread with the registers of `parent`, whose result is 0 there. `EAGAIN`: no slot.
    fn fork(&mut self, parent: Endpoint) -> Result<Endpoint, Errno>;
    /// Ends a thread for good.
    fn destroy(&mut self, thread: Endpoint);
    /// Lets a stopped thread run, under this id.
    fn start(&mut self, thread: Endpoint, tid: u32);
    /// Keeps a thread from running.
    fn stop(&mut self, thread: Endpoint);
    /// Registers of a stopped or blocked thread.
    fn registers(&mut self, thread: Endpoint, registers: &mut Registers) -> Result<(), Errno>;
    /// Sets registers; bits of `abi::call::resume` end whatever the thread waits for.
    fn set_registers(&mut self, thread: Endpoint, registers: &Registers, resume: u64) -> Result<(), Errno>;
    /// The thread will report `kernel::Interrupted` before it runs again. Returns the peer it waits for.
    fn interrupt(&mut self, thread: Endpoint) -> Result<Endpoint, Errno>;
    /// Notifies a service.
    fn notify(&mut self, service: Endpoint);
    /// `m3ipc::Ends`, if m3ipc waits for a message. Returns whether it did.
    fn m3ipc_ends(&mut self, m3ipc: Endpoint, thread: Endpoint) -> bool;
    /// Sets the queue a thread competes in, and its quantum; 0 keeps that.
    fn schedule(&mut self, thread: Endpoint, queue: u64, quantum_us: u64);
    /// Lets the kernel answer a call of `linux::KEPT` by this thread.
    fn keep_answer(&mut self, thread: Endpoint, number: u32, answer: u64);
    /// The kernel asks pm for all of them again.
    fn forget_answers(&mut self, thread: Endpoint);
    /// Wakes one thread that waits for the shared futex at this address of a thread's memory.
    fn wake_futex(&mut self, thread: Endpoint, address: u64);
    /// Copies out of a program's memory. `EFAULT`.
    fn read(&mut self, thread: Endpoint, address: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Copies into a program's memory. `EFAULT`.
    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Errno>;
    /// Monotonic time and nanoseconds since 1970.
    fn time_ns(&mut self) -> (u64, u64);
    /// Sets the wall clock.
    fn set_real_time_ns(&mut self, since_1970_ns: u64) -> Result<(), Errno>;
    /// After a death: programs may trust the wall clock again, whether it was being set or not.
    fn settle_clock(&mut self);
    /// One notification at this monotonic time; `None` cancels.
    fn set_alarm(&mut self, deadline_ns: Option<u64>, queue: u64);
    /// The thread in a slot.
    fn thread_at(&mut self, slot: usize) -> Option<Endpoint>;
    /// What a thread has used.
    fn thread_use(&mut self, thread: Endpoint) -> ThreadUse;
    /// How long the services that there are have run.
    fn services_ns(&mut self) -> u64;
    /// Copies the kernel's log. Returns its length.
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize;
    /// Writes a line `pm: text` to the kernel's console.
    fn log(&mut self, text: fmt::Arguments);
    /// Ends everything.
    fn shutdown(&mut self, end: End);
    /// Answers a call made earlier.
    fn reply(&mut self, thread: Endpoint, result: Result<u64, Errno>);
    /// Copies into a grant of a service. Returns the bytes copied.
    fn write_grant(&mut self, granter: Endpoint, grant: abi::GrantId, bytes: &[u8]) -> Result<u64, Errno>;
    /// Copies out of a grant of a service.
    fn read_grant(&mut self, granter: Endpoint, grant: abi::GrantId, bytes: &mut [u8]) -> Result<(), Errno>;

    /// `vm::Fork`.
    fn vm_fork(&mut self, parent: Endpoint, child: Endpoint, share: bool, pid: u32) -> Result<(), Errno>;
    /// `vm::Exit`; `None`: vm did not know the thread.
    fn vm_exit(&mut self, thread: Endpoint) -> Option<Footprint>;
    /// `vm::MemoryUse`.
    fn vm_use(&mut self, thread: Endpoint) -> Footprint;
    /// `vm::Exec`.
    fn vm_exec(&mut self, request: vm::Exec) -> Result<NewMemory, Errno>;
    /// `vm::SegmentAttach`.
    fn vm_attach(&mut self, request: vm::SegmentAttach) -> Result<u64, Errno>;
    /// `vm::SegmentRelease`. Returns how many mappings keep the segment.
    fn vm_release_segment(&mut self, segment: u32) -> u64;
    /// `vm::SegmentStatus`; `None`: vm does not have it.
    fn vm_segment(&mut self, segment: u32) -> Option<SegmentUse>;
    /// `vm::NextPresent`.
    fn vm_present(&mut self, thread: Endpoint, from: u64, end: u64) -> Option<(u64, u64)>;
    /// `vm::Poke`.
    fn vm_poke(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Errno>;
    /// `vm::SetContainer`.
    fn vm_set_container(&mut self, process: Endpoint, container: u8, pages: u64) -> Result<(), Errno>;
    /// Pages that a container has.
    fn vm_container(&mut self, container: u8) -> u64;
    /// `vm::SetLimits`.
    fn vm_set_limits(&mut self, thread: Endpoint, limits: MemoryLimits);
    /// `vm::MemoryInfo`.
    fn memory(&mut self) -> MemoryUse;

    /// `vfs::Fork`.
    fn vfs_fork(
        &mut self,
        parent: Endpoint,
        child: Endpoint,
        identity: Identity,
        flags: u64,
        parts: Parts,
    ) -> Result<(), Errno>;
    /// `vfs::SetParts`.
    fn vfs_set_parts(&mut self, thread: Endpoint, parts: Parts, unshared: u64) -> Result<(), Errno>;
    /// `vfs::SetIdMap`.
    fn vfs_set_id_map(&mut self, thread: Endpoint, users: u64, groups: u64);
    /// `vfs::Exit`.
    fn vfs_exit(&mut self, thread: Endpoint);
    /// `vfs::Exec`.
    fn vfs_exec(&mut self, thread: Endpoint, program: &ProgramName) -> Result<(), Errno>;
    /// `vfs::ExecCommit`.
    fn vfs_exec_commit(&mut self, thread: Endpoint);
    /// `vfs::ExecText`. Returns the length.
    fn vfs_exec_text(&mut self, thread: Endpoint, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// `vfs::Cancel`. `ENOENT`: vfs has no call of this thread.
    fn vfs_cancel(&mut self, thread: Endpoint, error: Errno) -> Result<(), Errno>;

    /// `vfs::SignalsPending`.
    fn vfs_signals_pending(&mut self, thread: Endpoint);
    /// Tells vfs that the mask of a thread is its own again, or will be: its call returns.
    fn vfs_unmasked(&mut self, thread: Endpoint);
    /// `vfs::SetIds`.
    fn vfs_set_ids(&mut self, thread: Endpoint, ids: FileIds, groups: &[u32]);
    /// `vfs::LimitContainer`.
    fn vfs_limit_container(&mut self, container: u8, files: u64, pipes: u64) -> Result<(), Errno>;
    /// Open files and pipes that a container has.
    fn vfs_container(&mut self, container: u8) -> (u64, u64);
    /// `vfs::WorksFor`.
    fn vfs_works_for(&mut self, thread: Endpoint) -> bool;
    /// `vfs::SetLimits`.
    fn vfs_set_limits(&mut self, thread: Endpoint, limits: FileLimits);
    /// `vfs::SetSession`.
    fn vfs_set_session(&mut self, thread: Endpoint, session: u32, group: u32, leader: bool);
    /// `vfs::OpenPidFd` for the call of a thread with this number. Returns the descriptor.
    fn vfs_open_pidfd(&mut self, to: &Requester, identity: Identity, flags: u64, address: u64) -> Result<u64, Errno>;
    /// `vfs::PidFd`: the process that a descriptor means, and whether waits for it do not block.
    fn vfs_pidfd(&mut self, thread: Endpoint, descriptor: i32) -> Result<(Identity, bool), Errno>;
    /// `vfs::ProcessFolder`: the pid of the process whose directory in /proc a descriptor is open on.
    fn vfs_process_folder(&mut self, thread: Endpoint, descriptor: i32) -> Result<u32, Errno>;
    /// `vfs::CopyDescriptor`. Returns the new one.
    fn vfs_copy_descriptor(&mut self, to: &Requester, from: Endpoint, descriptor: i32) -> Result<u64, Errno>;
    /// `vfs::Compare`.
    fn vfs_compare(&mut self, request: &vfs::Compare) -> Result<u64, Errno>;
    /// `vfs::NextEvent`; `None`: no more.
    fn vfs_next_event(&mut self, done: u64) -> Option<FileEvent>;
    /// `vfs::SyncAll`.
    fn vfs_sync_all(&mut self, unmount: bool) -> Result<(), Errno>;

    /// `tty::NextEvent`; `None`: no more.
    fn tty_next_event(&mut self, done: u64) -> Option<TerminalEvent>;
    /// `tty::SessionEnd`.
    fn tty_session_end(&mut self, session: u32);
    /// `tty::Background`.
    fn tty_background(&mut self, pid: u32, is_allowed: bool);
    /// `tty::ProcessGone`.
    fn tty_process_gone(&mut self, pid: u32);
}
