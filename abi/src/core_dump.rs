//! Core dumps: what the program that writes one asks pm with the system call `skink_core_dump(what, which, buffer, bytes)`. Only a process that
//! pm has made for a dump may make it, and only about the process that it dumps; others get `ENOSYS`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most bytes of one call with [`MEMORY`].
pub const MAX_COPY: u64 = 64 * 1024;

/// The system call.
pub const SYSTEM_CALL: u32 = crate::linux::nr::SKINK_CORE_DUMP;
/// `what`: writes a [`CoreHead`].
pub const HEAD: u64 = 0;
/// `what`: writes the `Registers` of the thread with the lowest id not below `which`. Returns its id; 0: there is none.
pub const THREAD: u64 = 1;
/// `what`: copies at most `bytes` bytes of memory at the address `which`. Returns how many. `EFAULT`.
pub const MEMORY: u64 = 2;
/// `what`: writes two words, where the first memory that is present begins and ends, at or after the address `which` and before the address
/// `bytes`; both are `bytes` when there is none.
pub const PRESENT: u64 = 3;

/// The process that is dumped.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[allow(missing_docs)]
pub struct CoreHead {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    pub user: u32,
    pub user_group: u32,
    /// The signal that kills it.
    pub signal: u32,
    /// The thread that it was for.
    pub thread: u32,
    /// RLIMIT_CORE.
    pub limit: u64,
    /// Where the text of the arguments begins and ends.
    pub arguments: [u64; 2],
    /// Where the auxiliary vector begins and ends.
    pub auxiliary: [u64; 2],
    /// First bytes of the program's file name.
    pub name: [u8; 16],
    /// `siginfo_t` of the signal.
    pub info: [u8; 128],
}
