//! What two processes share (kcmp(2)): pm knows of memory, signal handlers and semaphores, vfs of open files and directories.

use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::system::System;
use abi::{Errno, vfs};

type Result<T> = core::result::Result<T, Errno>;

/// Kinds of kcmp, as in Linux's `kcmp.h`.
mod kind {
    pub const FILE: u32 = 0;
    pub const VM: u32 = 1;
    pub const FILES: u32 = 2;
    pub const FS: u32 = 3;
    pub const SIGHAND: u32 = 4;
    pub const IO: u32 = 5;
    pub const SYSVSEM: u32 = 6;
    pub const EPOLL_TFD: u32 = 7;
}

/// 0: the same; 1, 2: the first is before or behind the second.
fn order<T: Ord>(first: T, second: T) -> u64 {
    match first.cmp(&second) {
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Less => 1,
        core::cmp::Ordering::Greater => 2,
    }
}

impl<S: System> Programs<S> {
    /// `kcmp(pid, pid, kind, index, index)`. `ESRCH`: no such thread; `EPERM`: the caller may not look into both; `EINVAL`: an unknown kind;
    /// `EBADF`, and of epolls `ENOENT`, `EFAULT`.
    pub fn kcmp(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let threads = [self.compared(a[0])?, self.compared(a[1])?];
        let own = self.table.process_of(t);
        let [first, second] = threads.map(|thread| self.table.process_of(thread));
        if ![first, second].into_iter().all(|p| self.may_attach(own, p)) {
            return Err(Errno::EPERM);
        }
        let ask = |what| vfs::Compare {
            what,
            first: self.table[threads[0]].endpoint(),
            descriptor: a[3],
            second: self.table[threads[1]].endpoint(),
            other: a[4],
            nth: 0,
        };
        let request = match a[2] as u32 {
            kind::VM => return Ok(order(self.table[first].memory, self.table[second].memory)),
            // Handlers, priorities of input and output and what semaphores have to undo belong to processes.
            kind::SIGHAND | kind::IO | kind::SYSVSEM => return Ok(order(first.get(), second.get())),
            kind::FILE => ask(vfs::COMPARE_FILE),
            kind::FILES => ask(vfs::COMPARE_FILES),
            kind::FS => ask(vfs::COMPARE_FS),
            kind::EPOLL_TFD => ask(vfs::COMPARE_EPOLL),
            _ => return Err(Errno::EINVAL),
        };
        if request.what != vfs::COMPARE_EPOLL {
            return self.system.vfs_compare(&request);
        }
        // struct kcmp_epoll_slot: the epoll, the descriptor that it has registered, and which of those with this number.
        let mut slot = [[0; 4]; 3];
        self.system.read(self.table[t].endpoint(), a[4], slot.as_flattened_mut())?;
        let [epoll, registered, nth] = slot.map(|word| u32::from_le_bytes(word) as u64);
        self.system.vfs_compare(&vfs::Compare { other: epoll | registered << 32, nth, ..request })
    }

    fn compared(&self, pid: u64) -> Result<ThreadIndex> {
        let tid = u32::try_from(pid as i32).map_err(|_| Errno::ESRCH)?;
        self.table.thread_by_tid(tid).ok_or(Errno::ESRCH)
    }
}
