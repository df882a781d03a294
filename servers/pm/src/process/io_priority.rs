//! ioprio_get(2) and ioprio_set(2), and membarrier(2).

use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::system::System;
use abi::{Capability, Errno};

type Result<T> = core::result::Result<T, Errno>;

/// `which`: a process. It is one more than in getpriority(2), as are those of a group and of a user.
const IOPRIO_WHO_PROCESS: u64 = 1;
/// Classes: the bits above the level.
const CLASS_SHIFT: u32 = 13;
const CLASS_NONE: u64 = 0;
const CLASS_RT: u64 = 1;
const CLASS_BE: u64 = 2;
const CLASS_IDLE: u64 = 3;
/// Levels of a class.
const LEVELS: u64 = 8;

/// Commands of membarrier(2), and those that need an earlier registration, with that.
mod barrier {
    pub const QUERY: u32 = 0;
    pub const GLOBAL: u32 = 1;
    pub const GLOBAL_EXPEDITED: u32 = 2;
    pub const REGISTER_GLOBAL_EXPEDITED: u32 = 4;
    pub const PRIVATE_EXPEDITED: u32 = 8;
    pub const REGISTER_PRIVATE_EXPEDITED: u32 = 16;
    pub const PRIVATE_EXPEDITED_SYNC_CORE: u32 = 32;
    pub const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: u32 = 64;
    pub const ALL: u32 = 127;
}

impl<S: System> Programs<S> {
    /// `ioprio_get(which, who)`: of a process what was set; of several the best, where one that has set none follows its niceness.
    pub fn ioprio_get(&mut self, p: ProcessIndex, which: u64, who: u32) -> Result<u64> {
        let which = which.checked_sub(IOPRIO_WHO_PROCESS).filter(|which| *which <= 2).ok_or(Errno::EINVAL)?;
        let meant = self.table.positions().filter(|index| self.is_meant(p, which, who, *index));
        let priorities = meant.map(|index| {
            let process = &self.table[index];
            match u64::from(process.control.io_priority) {
                0 if which > 0 => (CLASS_BE << CLASS_SHIFT) | ((process.nice + 20) as u64 / 5),
                priority => priority,
            }
        });
        priorities.min().ok_or(Errno::ESRCH)
    }

    /// `ioprio_set(which, who, priority)`.
    pub fn ioprio_set(&mut self, p: ProcessIndex, which: u64, who: u32, priority: u64) -> Result<u64> {
        let own = &self.table[p].credentials;
        let (nice, admin) = (own.has(Capability::SysNice), own.has(Capability::SysAdmin));
        let (class, level) = ((priority & 0xffff) >> CLASS_SHIFT, priority & ((1 << CLASS_SHIFT) - 1));
        match class {
            CLASS_RT if !nice && !admin => return Err(Errno::EPERM),
            CLASS_RT | CLASS_BE if level >= LEVELS => return Err(Errno::EINVAL),
            CLASS_RT | CLASS_BE | CLASS_IDLE => {}
            CLASS_NONE if level == 0 => {}
            _ => return Err(Errno::EINVAL),
        }
        let which = which.checked_sub(IOPRIO_WHO_PROCESS).filter(|which| *which <= 2).ok_or(Errno::EINVAL)?;
        let own = self.table[p].credentials.user;
        let mut result = Err(Errno::ESRCH);
        for index in self.table.positions() {
            if !self.is_meant(p, which, who, index) {
                continue;
            }
            let theirs = self.table[index].credentials.user.real;
            if !nice && theirs != own.effective && theirs != own.real {
                return Err(Errno::EPERM);
            }
            self.table[index].control.io_priority = (class << CLASS_SHIFT | level) as u16;
            result = Ok(0);
        }
        result
    }

    /// `membarrier(command, flags)`: on one processor a switch between threads is a barrier, so there is nothing to do but to keep the
    /// rules. `EINVAL`; `EPERM`: the process has not registered.
    pub fn membarrier(&mut self, t: ThreadIndex, command: u64, flags: u64) -> Result<u64> {
        if flags as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.table.process_of(t);
        let registered = &mut self.table[p].control.barriers;
        match command as u32 {
            barrier::QUERY => Ok(u64::from(barrier::ALL)),
            barrier::GLOBAL | barrier::GLOBAL_EXPEDITED => Ok(0),
            command @ (barrier::REGISTER_GLOBAL_EXPEDITED
            | barrier::REGISTER_PRIVATE_EXPEDITED
            | barrier::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) => {
                *registered |= command;
                Ok(0)
            }
            command @ (barrier::PRIVATE_EXPEDITED | barrier::PRIVATE_EXPEDITED_SYNC_CORE) => {
                // The bit of the registration is the next one.
                if *registered & command << 1 != 0 { Ok(0) } else { Err(Errno::EPERM) }
            }
            _ => Err(Errno::EINVAL),
        }
    }
}
