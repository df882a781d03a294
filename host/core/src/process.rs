//! What /proc tells of processes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;

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

/// Returns the effective capabilities of a process, a bit each.
pub fn capabilities(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    u64::from_str_radix(digits.trim(), 16).unwrap_or(0)
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
