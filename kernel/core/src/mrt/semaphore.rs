//! The semaphore calls of real-time processes, and what the system calls need to know about semaphores.

use abi::{
    Errno,
    rt::{self, NOWAIT, SEMAPHORES},
};

use crate::{
    Machine, Node,
    rt::{Down, Flags, Semaphore},
};

use super::{DONE, Outcome, control::Words, error, process::Waiting};

impl Node {
    /// `SEMDOWN`.
    #[inline(always)]
    pub(super) fn semaphore_down<M: Machine>(&mut self, m: &mut M, id: u64, timeout: i64) -> Outcome {
        let caller = self.current as u16;
        let id = id.min(SEMAPHORES as u64) as u16;
        match self.decide(|rt, effects| rt.down(caller, id, timeout != NOWAIT, effects))? {
            Down::Done => DONE,
            Down::Waits => self.wait_real_time(m, Waiting::Semaphore, timeout),
        }
    }

    /// `SEMUP`.
    #[inline(always)]
    pub(super) fn semaphore_up(&mut self, id: u64) -> Outcome {
        let caller = self.current as u16;
        let id = id.min(SEMAPHORES as u64) as u16;
        self.decide(|rt, effects| rt.up(caller, id, effects))?;
        DONE
    }

    /// `SEMALLOC`: the semaphore belongs to the thread in this slot. While inheritance is off in the whole system, none has it.
    pub(super) fn allocate_semaphore(&mut self, owner: usize, words: &Words) -> Result<u64, Errno> {
        let [value, flags, priority, low, high, ..] = *words;
        if self.find_semaphore([low, high]).is_ok() {
            return Err(error(rt::error::E_MRT_BADNAME));
        }
        let wanted = decode(flags);
        let ceiling = priority.clamp(1, rt::PRIORITIES) as u8;
        let flags = Flags { inherits: wanted.inherits && self.mrt.inherits(), ..wanted };
        let id = self.decide(|rt, effects| {
            rt.allocate(0..SEMAPHORES as u16, owner as u16, value as i32, flags, ceiling, effects)
        });
        let id = id.map_err(|refusal| match refusal {
            crate::rt::Refusal::NoSemaphore => error(rt::error::E_MRT_NOSEM),
            refusal => refusal.into(),
        })?;
        self.mrt.names[id as usize] = [low, high];
        Ok(id as u64)
    }

    /// `GETSEMID`. `BADSEM`: nobody has that name.
    pub(super) fn find_semaphore(&self, name: [u64; 2]) -> Result<u64, Errno> {
        let mut ids = 0..SEMAPHORES;
        let found = ids.find(|&id| self.mrt.names[id] == name && self.mrt.rt.semaphore(id as u16).is_some());
        found.filter(|_| name != [0; 2]).map(|id| id as u64).ok_or(error(rt::error::E_MRT_BADSEM))
    }

    /// The semaphore of a system call. `BADSEM`: there is no such id; `FREESEM`: it is free.
    pub(super) fn allocated_semaphore(&self, id: u64) -> Result<&Semaphore, Errno> {
        if id >= SEMAPHORES as u64 {
            return Err(error(rt::error::E_MRT_BADSEM));
        }
        self.mrt.rt.semaphore(id as u16).ok_or(error(rt::error::E_MRT_FREESEM))
    }

    /// `GETSEMATTR`.
    pub(super) fn semaphore_attributes(&self, id: u64) -> Result<Words, Errno> {
        let semaphore = self.allocated_semaphore(id)?;
        let [low, high] = self.mrt.names[id as usize];
        let Semaphore { value, flags, ceiling, .. } = *semaphore;
        Ok([value as u64, encode(flags), ceiling as u64, low, high, 0, 0, 0])
    }

    /// `GETSEMINT`.
    pub(super) fn semaphore_internals(&self, id: u64) -> Result<Words, Errno> {
        if id >= SEMAPHORES as u64 {
            return Err(error(rt::error::E_MRT_BADSEM));
        }
        let known = |semaphore: &Semaphore| [semaphore.owner as u64, semaphore.value.min(0).unsigned_abs() as u64];
        let [owner, waiters] = self.mrt.rt.semaphore(id as u16).map_or([u64::MAX, 0], known);
        Ok([id, owner, waiters, 0, 0, 0, 0, 0])
    }
}

/// The flags of `abi::rt::flag` are bits in this order.
fn decode(flags: u64) -> Flags {
    let [by_priority, inherits, mutex, ceiling] = [0, 1, 2, 3].map(|bit| flags >> bit & 1 != 0);
    Flags { by_priority, mutex, inherits, ceiling }
}

fn encode(flags: Flags) -> u64 {
    let Flags { by_priority, mutex, inherits, ceiling } = flags;
    by_priority as u64 | (inherits as u64) << 1 | (mutex as u64) << 2 | (ceiling as u64) << 3
}
