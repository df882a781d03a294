//! Containers: which of them each part of a process's world belongs to.
//!
//! A process has one container, whose number pm gives. A container has parts of its own, as clone(2) was asked for them, and shares the others
//! with the container that it was made in. So the world of a process is a number for each part; 0 is the system itself. pm works the numbers out
//! and tells them to those who keep a part: vfs its mounts, message queues and names of sockets.

use crate::{Name, Word, limits};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A part of the world of a process, and its bit of clone(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// The container itself: has no bit.
    Whole = 0,
    /// Process numbers (CLONE_NEWPID).
    Processes = 1,
    /// Root directory and mounts (CLONE_NEWNS).
    Mounts = 2,
    /// Host name (CLONE_NEWUTS).
    Host = 3,
    /// Names of System V and POSIX objects (CLONE_NEWIPC).
    Ipc = 4,
    /// Users, groups and rights (CLONE_NEWUSER).
    Users = 5,
    /// Abstract names of sockets (CLONE_NEWNET).
    Network = 6,
    /// Control groups (CLONE_NEWCGROUP): a name without content here.
    Groups = 7,
}

/// Containers that exist at a time, the system itself among them.
pub const CONTAINERS: usize = 63;

/// Process numbers of one container. Number n of container c is the system's `first_pid(c) + n`; 0 names no process.
pub const CONTAINER_PIDS: u32 = 512;
/// The system's process numbers are below this.
pub const PIDS_END: u32 = first_pid(CONTAINERS as u8);

/// The system's number before the first process of a container.
pub const fn first_pid(container: u8) -> u32 {
    limits::PIDS + (container as u32 - 1) * CONTAINER_PIDS
}

/// A process number of the system's as a container shows it; 0: it is of a process outside.
pub const fn pid_shown(container: u8, pid: u32) -> u32 {
    if container == 0 {
        return pid;
    }
    let first = first_pid(container);
    if pid > first && pid - first < CONTAINER_PIDS { pid - first } else { 0 }
}

/// The system's number of what has this number in a container. `None`: there is no such number.
pub const fn pid_meant(container: u8, number: u32) -> Option<u32> {
    if container == 0 {
        return Some(number);
    }
    if number > 0 && number < CONTAINER_PIDS { Some(first_pid(container) + number) } else { None }
}

impl Part {
    /// All that a container may have of its own.
    pub const ALL: [Part; 7] =
        [Part::Processes, Part::Mounts, Part::Host, Part::Ipc, Part::Users, Part::Network, Part::Groups];

    /// Its flag of clone(2), unshare(2) and setns(2).
    pub const fn flag(self) -> u64 {
        match self {
            Part::Whole => 0,
            Part::Processes => 0x2000_0000,
            Part::Mounts => 0x2_0000,
            Part::Host => 0x400_0000,
            Part::Ipc => 0x800_0000,
            Part::Users => 0x1000_0000,
            Part::Network => 0x4000_0000,
            Part::Groups => 0x200_0000,
        }
    }

    /// Its name below /proc/PID/ns.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Whole => "",
            Part::Processes => "pid",
            Part::Mounts => "mnt",
            Part::Host => "uts",
            Part::Ipc => "ipc",
            Part::Users => "user",
            Part::Network => "net",
            Part::Groups => "cgroup",
        }
    }
}

/// All flags of parts.
pub const PART_FLAGS: u64 = {
    let (mut flags, mut index) = (0, 0);
    while index < Part::ALL.len() {
        flags |= Part::ALL[index].flag();
        index += 1;
    }
    flags
};

/// Set in the number of the whole container when that has limits of its own, and what its processes take is charged to it.
const LIMITED: u64 = 0x80;

/// The account of a container with limits is this and its number: quotas count by user, and no user has such an id.
const FIRST_ACCOUNT: u32 = 0xffff_ff00;

/// Operations of the system call `linux::CONTAINER`: `(operation, name low, name high, address, bytes)`; for who has `CAP_SYS_ADMIN` over the
/// system. Names are `Name`s.
pub mod container_call {
    /// Makes a container, as the `Settings` in the buffer say, and a first process in it, a child of the caller as by fork(2): returns its id, and 0
    /// in the child. `EEXIST`: the name is in use; `ENOSPC`: too many containers; `EINVAL`.
    pub const CREATE: u64 = 1;
    /// Makes a child of the caller in a container. `ENOENT`: there is none of this name; `ENOMEM`: it is ending; `EAGAIN`: its limit.
    pub const ENTER: u64 = 2;
    /// Kills all processes of a container. Returns how many there were, which have not all ended yet. `ENOENT`.
    pub const KILL: u64 = 3;
    /// Fills the buffer with `ContainerRecord`s of all containers with limits. Returns the bytes.
    pub const LIST: u64 = 4;
}

/// `Settings`, `ContainerRecord`: no limit.
pub const NO_LIMIT: u64 = u64::MAX;

/// What a new container may have at most.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Settings {
    /// Bytes of memory: anonymous, shared, and of page tables.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Open files.
    pub files: u64,
    /// Pipes; a connection of sockets is two.
    pub pipes: u64,
    /// Share of the processor that it may use while others want it, in percent.
    pub percent: u64,
}

impl Settings {
    /// No limits.
    pub const NONE: Settings =
        Settings { memory_bytes: NO_LIMIT, processes: NO_LIMIT, files: NO_LIMIT, pipes: NO_LIMIT, percent: 100 };
}

/// A container, and what it has.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ContainerRecord {
    /// Its name.
    pub name: Name,
    /// Its number.
    pub number: u32,
    /// The system's id of its first process; 0: that has ended.
    pub first_pid: u32,
    /// What it may have.
    pub settings: Settings,
    /// What it has; of the processor: nanoseconds so far.
    pub used: Settings,
}

/// Which account of quotas a container with limits has.
pub const fn account(container: u8) -> u32 {
    FIRST_ACCOUNT | container as u32
}

/// The container whose account this is; 0: it is a user's.
pub const fn container_of(account: u32) -> u8 {
    let is_account = account > FIRST_ACCOUNT && account < FIRST_ACCOUNT + CONTAINERS as u32;
    if is_account { (account - FIRST_ACCOUNT) as u8 } else { 0 }
}

/// The container of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// Those of the system itself.
    pub const SYSTEM: Parts = Parts(0);

    /// The container that has this part.
    #[inline(always)]
    pub const fn of(self, part: Part) -> u8 {
        let number = (self.0 >> (part as u32 * 8)) as u8;
        match part {
            Part::Whole => number & !(LIMITED as u8),
            _ => number,
        }
    }

    /// The container with limits that a process is in. It never leaves it: what it makes for itself inside has no number of its own as a whole.
    #[inline]
    pub const fn limited(self) -> Option<u8> {
        if self.0 & LIMITED != 0 { Some(self.of(Part::Whole)) } else { None }
    }

    /// To whom quotas charge what a process of this user takes: the container with limits that it is in, or the user.
    #[inline]
    pub const fn account(self, user: u32) -> u32 {
        match self.limited() {
            Some(container) => account(container),
            None => user,
        }
    }

    /// The same with the limits of its whole container.
    pub const fn with_limits(self) -> Parts {
        Parts(self.0 | LIMITED)
    }

    /// The same with the whole container, and so the limits, of another process.
    pub const fn with_whole_of(self, other: Parts) -> Parts {
        Parts(self.0 & !0xff | other.0 & 0xff)
    }

    /// The same, with the part in another container.
    pub const fn with(self, part: Part, container: u8) -> Parts {
        let shift = part as u32 * 8;
        Parts(self.0 & !(0xff << shift) | (container as u64) << shift)
    }

    /// Those of a process in a new container that has parts of its own, as flags say. Limits stay those of the container around it.
    pub fn inside(self, container: u8, flags: u64) -> Parts {
        let own = Part::ALL.iter().filter(|part| flags & part.flag() != 0);
        let whole = if self.limited().is_some() { self } else { self.with(Part::Whole, container) };
        own.fold(whole, |parts, part| parts.with(*part, container))
    }
}

impl Word for Parts {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Parts(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_within_limits_stays_within_them() {
        let outer = Parts::SYSTEM.inside(3, Part::Users.flag()).with_limits();
        let inner = outer.inside(4, Part::Host.flag() | Part::Users.flag());
        assert_eq!((inner.limited(), inner.of(Part::Users), inner.of(Part::Host)), (Some(3), 4, 4));
        assert_eq!((inner.account(7), Parts::SYSTEM.inside(3, 0).account(7)), (account(3), 7));
        assert_eq!([account(3), account(62), 0, 1000, u32::MAX].map(container_of), [3, 62, 0, 0, 0]);
    }

    #[test]
    fn a_nested_container_without_limits_has_a_number_of_its_own() {
        let inner = Parts::SYSTEM.inside(3, Part::Host.flag()).inside(4, Part::Users.flag());
        assert_eq!((inner.of(Part::Whole), inner.limited()), (4, None));
    }
}
