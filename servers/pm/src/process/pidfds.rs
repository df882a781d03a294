//! Descriptors that mean a process: `pidfd_open`, `pidfd_send_signal`, `pidfd_getfd`, and which process a wait by descriptor is for.
//!
//! vfs has the descriptors, and knows of each the identity of its process. A process that takes the same id later has another one, so
//! nothing here reaches it.

use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::pid::Holder;
use crate::system::System;
use abi::{Errno, vfs};

type Result<T> = core::result::Result<T, Errno>;

/// PIDFD_NONBLOCK, which is O_NONBLOCK.
const NONBLOCK: u64 = 0x800;

impl<S: System> Programs<S> {
    /// `pidfd_open(pid, flags)`. `ESRCH`: no process; `EINVAL`: the id of a thread that is not the first.
    pub fn pidfd_open(&mut self, t: ThreadIndex, pid: i32, flags: u64) -> Result<u64> {
        let flags = flags & 0xffff_ffff;
        if flags & !NONBLOCK != 0 || pid <= 0 {
            return Err(Errno::EINVAL);
        }
        let p = match self.table.holder(pid as u32) {
            Holder::Process(p) => p,
            Holder::Thread(_) => return Err(Errno::EINVAL),
            Holder::Service(_) | Holder::Nobody => return Err(Errno::ESRCH),
        };
        let flags = if flags != 0 { vfs::PIDFD_NONBLOCK } else { 0 };
        self.system.vfs_open_pidfd(&self.table.requester(t), self.table[p].identity(), flags, 0)
    }

    /// The process that a descriptor of a thread means. `EBADF`; `ESRCH`: it has ended, and has been waited for.
    pub fn process_of_pidfd(&mut self, t: ThreadIndex, descriptor: i32) -> Result<ProcessIndex> {
        let (identity, _) = self.system.vfs_pidfd(self.table[t].endpoint(), descriptor)?;
        self.table.process_by_identity(identity).ok_or(Errno::ESRCH)
    }

    /// The process that a signal to a descriptor is for: that of a pidfd, or of an open directory /proc/PID. `EBADF`; `None`: it has ended.
    pub fn signalled_by_descriptor(&mut self, t: ThreadIndex, descriptor: i32) -> Result<Option<ProcessIndex>> {
        let thread = self.table[t].endpoint();
        match self.system.vfs_pidfd(thread, descriptor) {
            Ok((identity, _)) => Ok(self.table.process_by_identity(identity)),
            Err(Errno::EBADF) => {
                let pid = self.system.vfs_process_folder(thread, descriptor)?;
                Ok(self.table.process_by_pid(pid))
            }
            Err(error) => Err(error),
        }
    }

    /// `pidfd_getfd(pidfd, descriptor, flags)`. `EPERM`: the caller may not look into the process.
    pub fn pidfd_getfd(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[2] & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.process_of_pidfd(t, a[0] as i32)?;
        let target = self.table[p].main().ok_or(Errno::ESRCH)?;
        if !self.may_attach(self.table.process_of(t), p) {
            return Err(Errno::EPERM);
        }
        let from = self.table[target].endpoint();
        self.system.vfs_copy_descriptor(&self.table.requester(t), from, a[1] as i32)
    }
}
