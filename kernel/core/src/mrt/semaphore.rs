//! The semaphore calls of real-time processes, and what the system calls need to know about semaphores.

use abi::{
    Errno,
    rt::{self, NOWAIT, SEMAPHORES, SemaphoreAttributes, flag},
};

use crate::{
    Machine, Node,
    rt::{Down, Flags, NONE, Semaphore},
};

use super::{DONE, Outcome, error, process::Waiting};

const KNOWN_FLAGS: u64 = flag::SEM_PRTYORDER | flag::SEM_PRTYINHERIT | flag::SEM_MUTEX | flag::SEM_PRTYCEILING;

impl Node {
    /// `SEMDOWN`.
    #[inline(always)]
    pub(super) fn semaphore_down<M: Machine>(&mut self, m: &mut M, id: u64, timeout: i64) -> Outcome {
        let caller = self.current as u16;
        let id = id.min(NONE as u64) as u16;
        match self.decide(|rt, effects| rt.down(caller, id, timeout != NOWAIT, effects))? {
            Down::Done => DONE,
            Down::Waits => self.wait_real_time(m, Waiting::Semaphore, timeout),
        }
    }

    /// `SEMUP`.
    #[inline(always)]
    pub(super) fn semaphore_up(&mut self, id: u64) -> Outcome {
        let caller = self.current as u16;
        let id = id.min(NONE as u64) as u16;
        self.decide(|rt, effects| rt.up(caller, id, effects))?;
        DONE
    }

    /// `SEMALLOC`: the semaphore belongs to the thread in this slot. While inheritance is off in the whole system, none has it.
    pub(super) fn allocate_semaphore(&mut self, owner: usize, wanted: &SemaphoreAttributes) -> Result<u64, Errno> {
        let SemaphoreAttributes { value, flags, priority, name } = *wanted;
        if name != [0; 16] && self.find_semaphore(&name).is_ok() {
            return Err(error(rt::error::E_MRT_BADNAME));
        }
        let value = i32::try_from(value).map_err(|_| error(rt::error::E_MRT_BADVALUE))?;
        let needed = flag::SEM_PRTYORDER | flag::SEM_MUTEX;
        let inherits_wrongly = flags & flag::SEM_PRTYINHERIT != 0 && flags & needed != needed;
        if flags & !KNOWN_FLAGS != 0 || inherits_wrongly {
            return Err(error(rt::error::E_MRT_BADFLAGS));
        }
        if flags & flag::SEM_PRTYCEILING != 0 && !(1..=rt::PRIORITIES).contains(&priority) {
            return Err(error(rt::error::E_MRT_BADPRTY));
        }
        let wanted = decode(flags);
        let flags = Flags { inherits: wanted.inherits && self.mrt.inherits(), ..wanted };
        let id = self.decide(|rt, effects| rt.allocate(owner as u16, value, flags, priority as u8, effects));
        let id = id.map_err(|refusal| match refusal {
            crate::rt::Refusal::NoSemaphore => error(rt::error::E_MRT_NOSEM),
            refusal => refusal.into(),
        })?;
        self.mrt.names[id as usize] = name;
        Ok(id as u64)
    }

    /// `GETSEMID`. `BADSEM`: nobody has that name.
    pub(super) fn find_semaphore(&self, name: &[u8; 16]) -> Result<u64, Errno> {
        let mut ids = 0..SEMAPHORES;
        let found = ids.find(|&id| self.mrt.names[id] == *name && self.mrt.rt.semaphore(id as u16).is_some());
        found.filter(|_| *name != [0; 16]).map(|id| id as u64).ok_or(error(rt::error::E_MRT_BADSEM))
    }

    /// The semaphore of a system call. `BADSEM`: there is no such id; `FREESEM`: it is free.
    pub(super) fn allocated_semaphore(&self, id: u64) -> Result<&Semaphore, Errno> {
        if id >= SEMAPHORES as u64 {
            return Err(error(rt::error::E_MRT_BADSEM));
        }
        self.mrt.rt.semaphore(id as u16).ok_or(error(rt::error::E_MRT_FREESEM))
    }

    /// `GETSEMATTR`.
    pub(super) fn semaphore_attributes(&self, id: u64) -> Result<SemaphoreAttributes, Errno> {
        let semaphore = self.allocated_semaphore(id)?;
        Ok(SemaphoreAttributes {
            value: semaphore.value as i64,
            flags: encode(semaphore.flags),
            priority: semaphore.ceiling as u64,
            name: self.mrt.names[id as usize],
        })
    }
}

fn decode(flags: u64) -> Flags {
    Flags {
        by_priority: flags & flag::SEM_PRTYORDER != 0,
        mutex: flags & flag::SEM_MUTEX != 0,
        inherits: flags & flag::SEM_PRTYINHERIT != 0,
        ceiling: flags & flag::SEM_PRTYCEILING != 0,
    }
}

fn encode(flags: Flags) -> u64 {
    let bit = |on: bool, bit: u64| if on { bit } else { 0 };
    bit(flags.by_priority, flag::SEM_PRTYORDER)
        | bit(flags.mutex, flag::SEM_MUTEX)
        | bit(flags.inherits, flag::SEM_PRTYINHERIT)
        | bit(flags.ceiling, flag::SEM_PRTYCEILING)
}
