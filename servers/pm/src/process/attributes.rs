//! Small calls about one process or thread: names, registers, limits, niceness, random numbers.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits::{self, Limit};
use crate::system::{FileLimits, System};
use abi::registers::Registers;
use abi::{Capability, Errno, layout};

type Result<T> = core::result::Result<T, Errno>;

/// Options of arch_prctl(2).
mod arch {
    pub const SET_GS: u64 = 0x1001;
    pub const SET_FS: u64 = 0x1002;
    pub const GET_FS: u64 = 0x1003;
    pub const GET_GS: u64 = 0x1004;
}

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

    /// `get_robust_list(tid, head, bytes)`. `EPERM`: of another's process.
    pub fn get_robust_list(&mut self, t: ThreadIndex, tid: i32, head: u64, bytes: u64) -> Result<u64> {
        let target = match tid {
            0 => t,
            _ => u32::try_from(tid).ok().and_then(|tid| self.table.thread_by_tid(tid)).ok_or(Errno::ESRCH)?,
        };
        let (own, other) = (self.table.process_of(t), self.table.process_of(target));
        if own != other && !self.table[own].credentials.may_inspect(&self.table[other].credentials) {
            return Err(Errno::EPERM);
        }
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
        self.system.set_registers(endpoint, &registers, 0).map(|()| 0)
    }

    fn get_base(&mut self, t: ThreadIndex, option: u64, address: u64) -> Result<u64> {
        let mut registers = Registers::ZERO;
        self.system.registers(self.table[t].endpoint(), &mut registers)?;
        let base = if option == arch::GET_FS { registers.fs_base } else { registers.gs_base };
        self.write_words(t, address, [base])?;
        Ok(0)
    }

    /// `getpriority(which, who)`: returns 20 minus the best niceness among those meant.
    pub fn getpriority(&mut self, p: ProcessIndex, which: u64, who: u32) -> Result<u64> {
        if which > PRIO_USER {
            return Err(Errno::EINVAL);
        }
        let meant = self.table.positions().filter(|index| self.is_meant(p, which, who, *index));
        let best = meant.map(|index| self.table[index].nice).min();
        best.map(|nice| (20 - nice) as u64).ok_or(Errno::ESRCH)
    }

    /// `setpriority(which, who, nice)`.
    pub fn setpriority(&mut self, p: ProcessIndex, which: u64, who: u32, nice: i32) -> Result<u64> {
        let nice = nice.clamp(-20, 19);
        if which > PRIO_USER {
            return Err(Errno::EINVAL);
        }
        let own = &self.table[p].credentials;
        let (may, user) = (own.has(Capability::SysNice), own.user);
        let mut outcome = Err(Errno::ESRCH);
        for index in self.table.positions() {
            if !self.is_meant(p, which, who, index) {
                continue;
            }
            let target = &self.table[index];
            let theirs = target.credentials.user.real;
            outcome = if !may && theirs != user.effective && theirs != user.real {
                Err(Errno::EPERM)
            } else if !may && nice < target.nice && (20 - nice) as u64 > target.limits.soft(limits::NICE) {
                Err(Errno::EACCES)
            } else {
                self.set_nice(index, nice);
                // As Linux: one refusal is the answer, whoever else was changed.
                if outcome == Err(Errno::ESRCH) { Ok(0) } else { outcome }
            };
        }
        outcome
    }

    /// Tells vfs the limits that it enforces.
    pub fn tell_vfs_limits(&mut self, p: ProcessIndex) {
        let Some(main) = self.table[p].main() else { return };
        let own = &self.table[p].limits;
        let told = FileLimits {
            descriptors: own.soft(limits::NOFILE),
            file_bytes: own.soft(limits::FSIZE),
            message_bytes: own.soft(limits::MSGQUEUE),
        };
        self.system.vfs_set_limits(self.table[main].endpoint(), told);
    }

    /// Tells vm the limits that it enforces, if they have changed. Of memory that is another process's too they are that one's, until the next
    /// exec.
    pub fn tell_vm_limits(&mut self, p: ProcessIndex) {
        let Some(main) = self.table[p].main().filter(|_| !self.table[p].shares_memory) else { return };
        let wanted = self.table[p].limits.of_memory(self.table[p].credentials.has(Capability::IpcLock));
        if wanted != self.table[p].memory_limits {
            self.system.vm_set_limits(self.table[main].endpoint(), wanted);
            self.table[p].memory_limits = wanted;
        }
    }

    /// Whether `getpriority` and `setpriority` mean a process: a living one.
    pub(super) fn is_meant(&self, p: ProcessIndex, which: u64, who: u32, index: ProcessIndex) -> bool {
        let (own, other) = (&self.table[p], &self.table[index]);
        other.is_alive()
            && self.table.sees(p, index)
            && match (which, who) {
                (PRIO_PROCESS, 0) => index == p,
                (PRIO_PROCESS, _) => self.table.process_by_pid(who) == Some(index),
                (PRIO_PGRP, 0) => other.group() == own.group(),
                (PRIO_PGRP, _) => other.group() == who,
                (_, 0) => other.credentials.user.real == own.credentials.user.real,
                _ => other.credentials.user.real == who,
            }
    }

    /// `personality(persona)`: returns the old one. Of all flags `ADDR_NO_RANDOMIZE` alone has an effect.
    pub fn personality(&mut self, t: ThreadIndex, persona: u64) -> u64 {
        let p = self.table.process_of(t);
        let control = &mut self.table[p].control;
        let old = control.personality;
        if persona as u32 != u32::MAX {
            control.personality = persona as u32;
        }
        u64::from(old)
    }
}

impl<S: System> Pm<S> {
    /// `prlimit64(pid, resource, new, old)`.
    pub fn prlimit64(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        let target = self.programs.table.process_or_self(p, a[0] as i32)?;
        let own = &self.programs.table[p].credentials;
        let may = own.has(Capability::SysResource);
        if target != p && !may && !own.owns(&self.programs.table[target].credentials) {
            return Err(Errno::EPERM);
        }
        // A resource is an int.
        let resource = a[1] & 0xffff_ffff;
        let limits = self.programs.table[target].limits;
        let old = limits.get(resource)?;
        let new = match a[2] {
            0 => None,
            address => {
                let [soft, hard] = self.programs.read_words(t, address)?;
                Some(limits.with(resource, Limit { soft, hard }, may)?)
            }
        };
        let written = self.programs.write_old(t, a[3], [old.soft, old.hard].map(u64::to_le_bytes).as_flattened());
        if let Some(new) = new {
            self.programs.table[target].limits = new;
            self.programs.note_result(t, written.map(|()| 0));
            self.limit_has_changed(target, resource as usize);
        }
        written.map(|()| 0)
    }

    /// Tells whoever enforces a limit.
    fn limit_has_changed(&mut self, target: ProcessIndex, resource: usize) {
        match resource {
            limits::CPU | limits::RTTIME => self.plan_processor_check(target),
            limits::NOFILE | limits::FSIZE | limits::MSGQUEUE => self.programs.tell_vfs_limits(target),
            limits::AS | limits::DATA | limits::MEMLOCK | limits::STACK => self.programs.tell_vm_limits(target),
            _ => {}
        }
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
        // GRND_RANDOM and GRND_INSECURE exclude each other.
        if flags & !RANDOM_FLAGS != 0 || flags & 6 == 6 {
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
