//! What /proc tells of processes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, stat, statat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;

/// What Linux has for `overflowuid` and `overflowgid`, unless it is told otherwise.
const OVERFLOW_ID: u32 = 65534;

/// Returns when a process began, in ticks since boot: with its pid, its name for ever. `None`: there is no such process.
pub fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have anything in it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a process has ended, though its parent may not have waited for it.
pub fn has_ended(pid: i32) -> bool {
    let open = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    open.is_none_or(|open| {
        let mut ends = [PollFd::new(&open, PollFlags::IN)];
        poll(&mut ends, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    })
}

/// Returns the user that a process belongs to.
pub fn owner(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().nth(1)?.parse().ok()
}

/// A process's folder in /proc: another process that gets its pid later is not read by it.
///
/// What a program gains by `execve(2)` is not its user's to use: whoever kept a connection to the broker open in a child would use it. The kernel has such a
/// program's folder belong to root before it has the new rights; so whose folder it is must be asked after what the process may do.
pub struct Process(OwnedFd);

/// What a process may do.
struct Status {
    /// Real, effective, saved and file system's.
    users: [u32; 4],
    groups: [u32; 4],
    permitted: u64,
    effective: u64,
}

impl Process {
    /// Opens the folder of the process that has this pid, if that began then.
    pub fn open(pid: i32, since: u64) -> Option<Process> {
        let folder =
            open(format!("/proc/{pid}"), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // Who has the pid now began before the folder was opened, so it had it then.
        (started(pid) == Some(since)).then_some(Process(folder))
    }

    /// Returns its effective capabilities, if its user has them where this process is: not in a user namespace of its own.
    pub fn capabilities(&self, user: u32, group: u32) -> u64 {
        match self.status_of(user, group) {
            Some(status) if self.user_namespace().is_some_and(|its| own_user_namespace() == Some(its)) => {
                status.effective
            }
            _ => 0,
        }
    }

    /// Whether a process of this user may look into it, as the kernel decides that for `process_vm_readv(2)`; but for descendants.
    pub fn is_open_to(&self, asking: &Process, user: u32, group: u32) -> bool {
        let (Some(own), Some(other)) = (self.status_of(user, group), asking.status_of(user, group)) else {
            return false;
        };
        own.permitted & !other.permitted == 0 && self.user_namespace() == asking.user_namespace()
    }

    /// Returns what it may do if all its ids are these, and its user may look into it.
    fn status_of(&self, user: u32, group: u32) -> Option<Status> {
        let status = self.status()?;
        let folder = statat(&self.0, "status", AtFlags::empty()).ok()?;
        let is_its = status.users == [user; 4] && status.groups == [group; 4] && folder.st_uid == user;
        is_its.then_some(status)
    }

    fn status(&self) -> Option<Status> {
        let file = openat(&self.0, "status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let text = std::io::read_to_string(fs::File::from(file)).ok()?;
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let ids = |name| {
            let ids: Vec<u32> = line(name)?.split_whitespace().filter_map(|id| id.parse().ok()).collect();
            ids.try_into().ok()
        };
        let capabilities = |name| u64::from_str_radix(line(name)?.trim(), 16).ok();
        let (permitted, effective) = (capabilities("CapPrm:")?, capabilities("CapEff:")?);
        Some(Status { users: ids("Uid:")?, groups: ids("Gid:")?, permitted, effective })
    }

    /// Which user namespace it is in; `None`: this process may not know.
    fn user_namespace(&self) -> Option<(u64, u64)> {
        statat(&self.0, "ns/user", AtFlags::empty()).ok().map(|its| (its.st_dev, its.st_ino))
    }
}

fn own_user_namespace() -> Option<(u64, u64)> {
    stat("/proc/self/ns/user").ok().map(|own| (own.st_dev, own.st_ino))
}

/// The id that stands for those which this process's user namespace has no id for; `None`: it has one for all.
pub fn foreign_id(kind: Ids) -> Option<u32> {
    let (map, overflow) = match kind {
        Ids::Users => ("/proc/self/uid_map", "/proc/sys/kernel/overflowuid"),
        Ids::Groups => ("/proc/self/gid_map", "/proc/sys/kernel/overflowgid"),
    };
    let map = fs::read_to_string(map).unwrap_or_default();
    let is_complete = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let overflow = || fs::read_to_string(overflow).ok()?.trim().parse().ok();
    (!is_complete).then(|| overflow().unwrap_or(OVERFLOW_ID))
}

/// What ids are of.
#[derive(Clone, Copy)]
pub enum Ids {
    /// Users.
    Users,
    /// Groups.
    Groups,
}

/// Returns a process's name: at most 15 bytes, and zeros.
pub fn name(pid: i32) -> [u8; 16] {
    let mut name = [0; 16];
    if let Ok(text) = fs::read(format!("/proc/{pid}/comm")) {
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let length = text.len().min(name.len() - 1);
        name[..length].copy_from_slice(&text[..length]);
    }
    name
}

/// Whether a thread is one of a process's.
pub fn has_thread(pid: i32, thread: i32) -> bool {
    fs::metadata(format!("/proc/{pid}/task/{thread}")).is_ok()
}
