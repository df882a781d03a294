//! Linux calls with which a native program starts others in a world of their own: containers, mounts, limits. Neighbour: `linux`.

use crate::{Result, raw};
use abi::linux::nr;
use abi::{Errno, Name};
use core::ffi::CStr;

/// Flags of mount(2) and umount2(2).
pub mod mount {
    #![allow(missing_docs)]
    pub const NO_DEVICES: u64 = 4;
    pub const REMOUNT: u64 = 0x20;
    pub const BIND: u64 = 0x1000;
    pub const RECURSIVE: u64 = 0x4000;
    pub const DETACH: u64 = 2;
}

/// Resources of setrlimit(2).
pub mod resource {
    #![allow(missing_docs)]
    pub const REAL_TIME_PRIORITY: u64 = 14;
}

/// How a child has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl End {
    /// From the word of wait4(2), of a child that has ended.
    pub fn from_word(word: u32) -> End {
        match word & 0x7f {
            0 => End::Exited((word >> 8 & 0xff) as i32),
            signal => End::Killed(signal as i32),
        }
    }

    /// As a shell tells it.
    pub fn status(self) -> i32 {
        match self {
            End::Exited(status) => status,
            End::Killed(signal) => 128 + signal,
        }
    }
}

fn path(text: &CStr) -> u64 {
    text.as_ptr() as u64
}

/// Makes Skink's system call to pm: `operation` of `abi::container::container_call`, which reads from `buffer` or writes its results there.
/// Those that make a process return in it too, with 0.
///
/// # Errors
/// `EPERM`: no right over the system; others as the operation says.
pub fn container(operation: u64, name: Name, buffer: &mut [u8]) -> Result<u64> {
    let (low, high) = name.to_words();
    let arguments = [operation, low, high, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0];
    // SAFETY: pm reads or writes within the buffer, before the call returns; a child has memory of its own.
    unsafe { raw::linux(nr::SKINK_CONTAINER.into(), arguments) }
}

/// Mounts a file system of a kind, or binds what is at `source`.
///
/// # Errors
/// As mount(2).
pub fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: u64) -> Result<()> {
    let arguments = [path(source), path(target), path(kind), flags, 0, 0];
    // SAFETY: mount only reads the texts.
    unsafe { raw::linux(nr::MOUNT.into(), arguments) }.map(drop)
}

/// Unmounts.
///
/// # Errors
/// As umount2(2).
pub fn unmount(target: &CStr, flags: u64) -> Result<()> {
    // SAFETY: umount2 only reads the path.
    unsafe { raw::linux(nr::UMOUNT2.into(), [path(target), flags, 0, 0, 0, 0]) }.map(drop)
}

/// Exchanges the root of the mounts.
///
/// # Errors
/// As pivot_root(2).
pub fn pivot_root(new: &CStr, old: &CStr) -> Result<()> {
    // SAFETY: pivot_root only reads the paths.
    unsafe { raw::linux(nr::PIVOT_ROOT.into(), [path(new), path(old), 0, 0, 0, 0]) }.map(drop)
}

/// Changes the working directory.
///
/// # Errors
/// As chdir(2).
pub fn change_directory(to: &CStr) -> Result<()> {
    // SAFETY: chdir only reads the path.
    unsafe { raw::linux(nr::CHDIR.into(), [path(to), 0, 0, 0, 0, 0]) }.map(drop)
}

/// Changes the working directory to that of a descriptor.
///
/// # Errors
/// As fchdir(2).
pub fn change_directory_to(descriptor: i32) -> Result<()> {
    // SAFETY: fchdir touches no memory of the program.
    unsafe { raw::linux(nr::FCHDIR.into(), [descriptor as u64, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Names the host.
///
/// # Errors
/// As sethostname(2).
pub fn set_host_name(name: &str) -> Result<()> {
    // SAFETY: sethostname only reads the name.
    unsafe { raw::linux(nr::SETHOSTNAME.into(), [name.as_ptr() as u64, name.len() as u64, 0, 0, 0, 0]) }.map(drop)
}

/// Closes all descriptors from `first` on.
///
/// # Errors
/// As close_range(2).
pub fn close_from(first: i32) -> Result<()> {
    // SAFETY: close_range touches no memory of the program.
    unsafe { raw::linux(nr::CLOSE_RANGE.into(), [first as u64, u64::from(u32::MAX), 0, 0, 0, 0]) }.map(drop)
}

/// Sets both limits of a resource.
///
/// # Errors
/// As setrlimit(2).
pub fn set_limit(resource: u64, value: u64) -> Result<()> {
    let limits = [value, value];
    // SAFETY: prlimit64 only reads the limits.
    unsafe { raw::linux(nr::PRLIMIT64.into(), [0, resource, limits.as_ptr() as u64, 0, 0, 0]) }.map(drop)
}

/// Sets the caller's niceness.
///
/// # Errors
/// As setpriority(2).
pub fn set_priority(nice: i32) -> Result<()> {
    // SAFETY: setpriority touches no memory of the program.
    unsafe { raw::linux(nr::SETPRIORITY.into(), [0, 0, nice as u64, 0, 0, 0]) }.map(drop)
}

/// Waits for the end of a child.
///
/// # Errors
/// As wait4(2), but for `EINTR`.
pub fn wait(pid: u64) -> Result<End> {
    let mut status = 0u32;
    loop {
        // SAFETY: wait4 writes the status.
        let waited = unsafe { raw::linux(nr::WAIT4.into(), [pid, &raw mut status as u64, 0, 0, 0, 0]) };
        match waited {
            Err(Errno::EINTR) => {}
            other => return other.map(|_| End::from_word(status)),
        }
    }
}

/// Makes the program one of SCHED_FIFO with this priority (1 to 99): it and the services that work for it run before all ordinary ones.
///
/// # Errors
/// As sched_setscheduler(2).
pub fn set_real_time(priority: u32) -> Result<()> {
    const SCHED_FIFO: u64 = 1;
    // SAFETY: sched_setscheduler only reads the priority.
    unsafe { raw::linux(nr::SCHED_SETSCHEDULER.into(), [0, SCHED_FIFO, (&raw const priority) as u64, 0, 0, 0]) }
        .map(drop)
}

/// Returns the program's process id.
pub fn own_id() -> u32 {
    // SAFETY: getpid touches no memory of the program.
    unsafe { raw::linux(nr::GETPID.into(), [0; 6]) }.map_or(0, |pid| pid as u32)
}

/// Sleeps for some milliseconds, below a second.
pub fn sleep_ms(ms: u32) {
    let time = [0u64, u64::from(ms.min(999)) * 1_000_000];
    // SAFETY: nanosleep only reads the time. Whoever it wakes early looks again.
    let _ = unsafe { raw::linux(nr::NANOSLEEP.into(), [time.as_ptr() as u64, 0, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_a_shell_tells_them() {
        assert_eq!([0, 0x300, 9, 0x8b].map(|word| End::from_word(word).status()), [0, 3, 137, 139]);
    }
}
