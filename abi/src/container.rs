//! Containers: which of them each part of a process's world belongs to.
//!
//! A process has one container, whose number pm gives. A container has parts of its own, as clone(2) was asked for them, and shares the others
//! with the container that it was made in. So the world of a process is a number for each part; 0 is the system itself. pm works the numbers out
//! and tells them to those who keep a part: vfs its mounts, message queues and names of sockets.

use crate::{Word, limits};

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

/// The container of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// Those of the system itself.
    pub const SYSTEM: Parts = Parts(0);

    /// The container that has this part.
    pub const fn of(self, part: Part) -> u8 {
        (self.0 >> (part as u32 * 8)) as u8
    }

    /// The same, with the part in another container.
    pub const fn with(self, part: Part, container: u8) -> Parts {
        let shift = part as u32 * 8;
        Parts(self.0 & !(0xff << shift) | (container as u64) << shift)
    }

    /// Those of a process in a new container that has parts of its own, as flags say.
    pub fn inside(self, container: u8, flags: u64) -> Parts {
        let own = Part::ALL.iter().filter(|part| flags & part.flag() != 0);
        own.fold(self.with(Part::Whole, container), |parts, part| parts.with(*part, container))
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
