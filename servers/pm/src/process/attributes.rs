//! Small calls about one process or thread: names, registers, limits, niceness, random numbers.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits::{self, Limit};
use crate::state::process::NAME_BYTES;
use crate::system::System;
use abi::registers::Registers;
use abi::{Errno, layout};

type Result<T> = core::result::Result<T, Errno>;

/// Options of arch_prctl(2).
mod arch {
    pub const SET_GS: u64 = 0x1001;
    pub const SET_FS: u64 = 0x1002;
    pub const GET_FS: u64 = 0x1003;
    pub const GET_GS: u64 = 0x1004;
}

const PR_SET_NAME: u64 = 15;
const PR_GET_NAME: u64 = 16;

/// Size of `struct robust_list_head`.
const ROBUST_HEAD_BYTES: u64 = 24;
/// All flags of getrandom(2): the generator never blocks, so they change nothing.
const RANDOM_FLAGS: u64 = 7;
/// One call of `getrandom` gives at most this; programs ask again.
const RANDOM_BYTES: u64 = 64 * 1024;

/// `which` of getpriority(2).
const PRIO_PROCESS: u64 = 0;
const PRIO_PGRP: u64 = 1;
const PRIO_USER: u64 = 2;

impl<S: System> Programs<S> {
    /// `set_robust_list(head, bytes)`: walked when the thread ends.
    pub fn set_robust_list(&mut self, t: ThreadIndex, head: u64, bytes: u64) -> Result<u64> {
        if bytes != ROBUST_HEAD_BYTES {
            return Err(Errno::EINVAL);
        }
        self.table[t].robust = (head, bytes);
        Ok(0)
    }

    /// `get_robust_list(tid, head, bytes)`.
    pub fn get_robust_list(&mut self, t: ThreadIndex, tid: i32, head: u64, bytes: u64) -> Result<u64> {
        let target = match tid {
            0 => t,
            _ => u32::try_from(tid).ok().and_then(|tid| self.table.thread_by_tid(tid)).ok_or(Errno::ESRCH)?,
        };
        let (list, length) = self.table[target].robust;
        self.write_words(t, head, [list])?;
        self.write_words(t, bytes, [length])?;
        Ok(0)
    }

    /// `arch_prctl(option, address)`.
    pub fn arch_prctl(&mut self, t: ThreadIndex, option: u64, address: u64) -> Step {
        match option {
            arch::SET_FS | arch::SET_GS if address >= layout::USER_END => Errno::EPERM.into(),
            arch::SET_FS | arch::SET_GS => self.set_base(t, option, address).into(),
            arch::GET_FS | arch::GET_GS => self.get_base(t, option, address).into(),
            _ => Errno::EINVAL.into(),
        }
    }

    fn set_base(&mut self, t: ThreadIndex, option: u64, address: u64) -> Result<u64> {
        let endpoint = self.table[t].endpoint();
        let mut registers = Registers::ZERO;
        self.system.registers(endpoint, &mut registers)?;
        match option {
            arch::SET_FS => registers.fs_base = address,
            _ => registers.gs_base = address,
        }
        self.system.set_registers(endpoint, &registers, false).map(|()| 0)
    }

    fn get_base(&mut self, t: ThreadIndex, option: u64, address: u64) -> Result<u64> {
        let mut registers = Registers::ZERO;
        self.system.registers(self.table[t].endpoint(), &mut registers)?;
        let base = if option == arch::GET_FS { registers.fs_base } else { registers.gs_base };
        self.write_words(t, address, [base])?;
        Ok(0)
    }

    /// `prctl(option, argument)`: the name of the process.
    pub fn prctl(&mut self, t: ThreadIndex, option: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        match option {
            PR_SET_NAME => {
                let name = self.read_name(t, address)?;
                self.table[p].set_name(&name);
                Ok(0)
            }
            PR_GET_NAME => {
                let name = self.table[p].name;
                self.write_bytes(t, address, &name)?;
                Ok(0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Up to 15 bytes before a NUL. The text may end right before memory that is not there.
    fn read_name(&mut self, t: ThreadIndex, address: u64) -> Result<alloc::vec::Vec<u8>> {
        let to_page_end = (layout::PAGE_BYTES - address % layout::PAGE_BYTES) as usize;
        let mut bytes = [0; NAME_BYTES - 1];
        let (first, second) = bytes.split_at_mut(to_page_end.min(NAME_BYTES - 1));
        let endpoint = self.table[t].endpoint();
        self.system.read(endpoint, address, first)?;
        if !first.contains(&0) && !second.is_empty() {
            self.system.read(endpoint, address.wrapping_add(first.len() as u64), second)?;
        }
        Ok(bytes.split(|&byte| byte == 0).next().unwrap_or(&[]).to_vec())
    }

    /// `getpriority(which, who)`: returns 20 minus the best niceness among those meant.
    pub fn getpriority(&mut self, p: ProcessIndex, which: u64, who: u32) -> Result<u64> {
        let meant = self.meant_by(p, which, who)?;
        let best = meant.into_iter().map(|index| self.table[index].nice).min();
        best.map(|nice| (20 - nice) as u64).ok_or(Errno::ESRCH)
    }

    /// `setpriority(which, who, nice)`.
    pub fn setpriority(&mut self, p: ProcessIndex, which: u64, who: u32, nice: i32) -> Result<u64> {
        let nice = nice.clamp(-20, 19);
        let meant = self.meant_by(p, which, who)?;
        let own = &self.table[p].credentials;
        let (root, user) = (own.is_root(), own.user);
        let mut outcome = Err(Errno::ESRCH);
        for index in meant {
            let target = &self.table[index];
            let theirs = target.credentials.user.real;
            outcome = if !root && theirs != user.effective && theirs != user.real {
                Err(Errno::EPERM)
            } else if !root && nice < target.nice {
                Err(Errno::EACCES)
            } else {
                self.set_nice(index, nice);
                // As Linux: one refusal is the answer, whoever else was changed.
                if outcome == Err(Errno::ESRCH) { Ok(0) } else { outcome }
            };
        }
        outcome
    }

    fn meant_by(&self, p: ProcessIndex, which: u64, who: u32) -> Result<alloc::vec::Vec<ProcessIndex>> {
        let own = &self.table[p];
        let test: &dyn Fn(ProcessIndex) -> bool = match (which, who) {
            (PRIO_PROCESS, 0) => &|index| index == p,
            (PRIO_PROCESS, _) => &|index| self.table.process_by_pid(who) == Some(index),
            (PRIO_PGRP, 0) => &|index| self.table[index].group() == own.group(),
            (PRIO_PGRP, _) => &|index| self.table[index].group() == who,
            (PRIO_USER, 0) => &|index| self.table[index].credentials.user.real == own.credentials.user.real,
            (PRIO_USER, _) => &|index| self.table[index].credentials.user.real == who,
            _ => return Err(Errno::EINVAL),
        };
        let alive = self.table.processes().filter(|(_, process)| process.is_alive());
        Ok(alive.map(|(index, _)| index).filter(|index| test(*index)).collect())
    }

    /// `personality(persona)`: Linux, and nothing else.
    pub fn personality(&self, persona: u64) -> Result<u64> {
        match persona as u32 {
            0 | u32::MAX => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl<S: System> Pm<S> {
    /// `prlimit64(pid, resource, new, old)`.
    pub fn prlimit64(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        let target = self.programs.table.process_or_self(p, a[0] as i32)?;
        let own = &self.programs.table[p].credentials;
        let root = own.is_root();
        if target != p && !root && own.user.real != self.programs.table[target].credentials.user.real {
            return Err(Errno::EPERM);
        }
        // A resource is an int.
        let resource = a[1] & 0xffff_ffff;
        let old = self.programs.table[target].limits.get(resource)?;
        if a[2] != 0 {
            let [soft, hard] = self.programs.read_words(t, a[2])?;
            self.programs.table[target].limits.set(resource, Limit { soft, hard }, root)?;
            if resource == limits::CPU as u64 {
                self.plan_processor_check(target);
            }
        }
        if a[3] != 0 {
            self.programs.write_words(t, a[3], [old.soft, old.hard])?;
        }
        Ok(0)
    }

    /// `setrlimit(resource, limit)`.
    pub fn setrlimit(&mut self, t: ThreadIndex, resource: u64, address: u64) -> Result<u64> {
        if address == 0 {
            return Err(Errno::EFAULT);
        }
        self.prlimit64(t, &[0, resource, address, 0, 0, 0, 0])
    }

    /// `getrandom(buffer, bytes, flags)`.
    pub fn getrandom(&mut self, t: ThreadIndex, address: u64, bytes: u64, flags: u64) -> Result<u64> {
        if flags & !RANDOM_FLAGS != 0 {
            return Err(Errno::EINVAL);
        }
        let mut block = [0; 256];
        let wanted = bytes.min(RANDOM_BYTES);
        let mut done = 0;
        while done < wanted {
            let piece = &mut block[..(wanted - done).min(256) as usize];
            self.random.fill(piece);
            self.programs.system.write(self.programs.table[t].endpoint(), address.wrapping_add(done), piece)?;
            done += piece.len() as u64;
        }
        Ok(done)
    }
}
