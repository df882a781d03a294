//! Resource limits (getrlimit(2)): the table, its defaults, and the rule for changing an entry.
//! pm enforces NPROC, CORE, NICE, CPU (through its timers), SIGPENDING and RTPRIO, and tells vfs NOFILE, FSIZE and MSGQUEUE, and vm AS, DATA, STACK and
//! MEMLOCK; the rest is kept for programs to read.

use super::index::THREADS;
use crate::system::MemoryLimits;
use abi::Errno;

/// RLIMIT_STACK of a process that has chosen nothing.
const STACK_BYTES: u64 = MemoryLimits::NONE.stack;

/// No limit.
pub const INFINITY: u64 = u64::MAX;
/// Number of resources.
pub const RESOURCES: usize = 16;
/// RLIMIT_CPU, seconds.
pub const CPU: usize = 0;
/// RLIMIT_FSIZE: bytes up to which files are written.
pub const FSIZE: usize = 1;
/// RLIMIT_STACK, bytes.
pub const STACK: usize = 3;
/// RLIMIT_NPROC: threads of one real user id.
pub const NPROC: usize = 6;
/// RLIMIT_SIGPENDING: queued signals and POSIX timers of one real user id.
pub const SIGPENDING: usize = 11;

/// RLIMIT_NOFILE: numbers that descriptors are below.
pub const NOFILE: usize = 7;
/// Limit of RLIMIT_NOFILE (Linux: /proc/sys/fs/nr_open).
const NOFILE_MAX: u64 = abi::limits::DESCRIPTORS;

/// RLIMIT_CORE: bytes of a core dump.
pub const CORE: usize = 4;
/// RLIMIT_DATA: bytes of private memory that may be written.
pub const DATA: usize = 2;
/// RLIMIT_AS: bytes of addresses.
pub const AS: usize = 9;
/// RLIMIT_MEMLOCK: bytes of locked memory.
pub const MEMLOCK: usize = 8;
/// RLIMIT_MSGQUEUE: bytes of the POSIX message queues of one user.
pub const MSGQUEUE: usize = 12;
/// RLIMIT_NICE: 20 minus the best niceness that a process without rights may be given.
pub const NICE: usize = 13;
/// RLIMIT_RTPRIO: best real-time priority that a process without rights may take.
pub const RTPRIO: usize = 14;
/// RLIMIT_RTTIME: microseconds that a real-time thread runs without waiting.
pub const RTTIME: usize = 15;

/// One limit: what counts now, and how far its owner may raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In force.
    pub soft: u64,
    /// Ceiling of `soft`.
    pub hard: u64,
}

/// Threads of a user, as shipped: as in Linux half of what there are, so that nobody keeps the others from theirs.
const THREADS_OF_USER: u64 = (THREADS / 2) as u64;

/// All limits of a process.
#[derive(Clone, Copy, Debug)]
pub struct Limits([Limit; RESOURCES]);

impl Default for Limits {
    fn default() -> Self {
        let mut table = [Limit { soft: INFINITY, hard: INFINITY }; RESOURCES];
        table[STACK].soft = STACK_BYTES;
        table[CORE].soft = 0;
        table[NPROC] = Limit { soft: THREADS_OF_USER, hard: THREADS_OF_USER };
        table[NOFILE] = Limit { soft: 1024, hard: 4096 };
        table[MEMLOCK] = Limit { soft: 8 << 20, hard: 8 << 20 };
        table[SIGPENDING] = Limit { soft: 1000, hard: 1000 };
        table[MSGQUEUE] = Limit { soft: 819_200, hard: 819_200 };
        table[NICE] = Limit { soft: 0, hard: 0 };
        table[RTPRIO] = Limit { soft: 0, hard: 0 };
        Limits(table)
    }
}

impl Limits {
    /// The limit in force for `resource`, one of the constants of this file.
    pub fn soft(&self, resource: usize) -> u64 {
        self.0[resource].soft
    }

    /// What vm is to be told; the `privileged` may lock as much as they like.
    pub fn of_memory(&self, privileged: bool) -> MemoryLimits {
        let locked = if privileged { INFINITY } else { self.soft(MEMLOCK) };
        MemoryLimits { addresses: self.soft(AS), data: self.soft(DATA), locked, stack: self.soft(STACK) }
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        self.0.iter()
    }

    /// The entry with this number. `EINVAL`: there is none.
    pub fn get(&self, resource: u64) -> Result<Limit, Errno> {
        self.0.get(resource as usize).copied().ok_or(Errno::EINVAL)
    }

    /// Changes an entry. `EINVAL`: soft above hard; `EPERM`: only the privileged raise the hard one, and nobody
    /// RLIMIT_NOFILE beyond 1,048,576.
    pub fn set(&mut self, resource: u64, new: Limit, privileged: bool) -> Result<(), Errno> {
        let entry = self.0.get_mut(resource as usize).ok_or(Errno::EINVAL)?;
        if new.soft > new.hard {
            return Err(Errno::EINVAL);
        }
        let is_too_high = resource == NOFILE as u64 && new.hard > NOFILE_MAX;
        if is_too_high || new.hard > entry.hard && !privileged {
            return Err(Errno::EPERM);
        }
        *entry = new;
        Ok(())
    }

    /// These limits with one changed. `EINVAL`, `EPERM`: as of `set`.
    pub fn with(mut self, resource: u64, new: Limit, privileged: bool) -> Result<Limits, Errno> {
        self.set(resource, new, privileged)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_lowered_for_good() {
        let mut limits = Limits::default();
        limits.set(NPROC as u64, Limit { soft: 200, hard: 200 }, false).unwrap();
        let raise = Limit { soft: 200, hard: 300 };
        assert_eq!(limits.set(NPROC as u64, raise, false), Err(Errno::EPERM));
        limits.set(NPROC as u64, raise, true).unwrap();
        assert_eq!(limits.get(NPROC as u64), Ok(raise));
    }

    #[test]
    fn nobody_gets_more_descriptors_than_a_table_has() {
        let mut limits = Limits::default();
        let most = Limit { soft: 1 << 20, hard: 1 << 20 };
        limits.set(NOFILE as u64, most, true).unwrap();
        assert_eq!(limits.set(NOFILE as u64, Limit { hard: most.hard + 1, ..most }, true), Err(Errno::EPERM));
        assert_eq!(limits.get(NOFILE as u64), Ok(most));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut limits = Limits::default();
        assert_eq!(limits.get(16), Err(Errno::EINVAL));
        assert_eq!(limits.set(0, Limit { soft: 2, hard: 1 }, true), Err(Errno::EINVAL));
    }
}
