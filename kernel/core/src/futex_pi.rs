//! Futexes whose holder inherits the priorities of those who wait: `FUTEX_LOCK_PI`, `TRYLOCK_PI`, `UNLOCK_PI`
//! (futex(2)), and the second half of `CMP_REQUEUE_PI`.
//!
//! The word in the program's memory says who holds such a futex. Only what concerns those who wait is here: a mutex of `rt` that comes with
//! the first waiter and goes with the last. Its number is one that no semaphore of MINIX4RT has. When its holder ends, the first in line has
//! it, and makes its call again to say so in the word. A thread takes part in `rt` from its first wait or loan on, with its ready
//! queue as its base. Neighbours: `futex`, `rt`, `lend`, `mrt::effects`.

use abi::{
    Errno,
    endpoint::{SERVICE_SLOTS, SLOTS},
    linux::nr,
    rt::SEMAPHORES,
};

use crate::{
    Machine, Node,
    alarm::Kind,
    call::Stop,
    futex::{ALL_BITS, Name},
    rt::{Flags, NOTHING, Refusal, Semaphore},
    thread::{attention, blocked},
};

/// Futexes that somebody waits for, at a time; more are `ENOMEM`.
const FUTEXES: usize = 128;
/// Numbers of mutexes in `rt`: those of MINIX4RT come first, then one that is none, then these.
const FIRST: usize = SEMAPHORES + 1;
pub(crate) const MUTEXES: usize = FIRST + FUTEXES;
const MUTEX: Flags = Flags { by_priority: true, mutex: true, inherits: true, ceiling: false };

/// Length of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;

/// Fields of the word. As on Linux, whoever has waited finds `WAITERS` in it, and so unlocks by a call.
mod word {
    pub const TID: u32 = 0x3fff_ffff;
    pub const OWNER_DIED: u32 = 0x4000_0000;
    pub const WAITERS: u32 = 0x8000_0000;
}

/// What `rt` does not know about them.
#[derive(Debug)]
pub(crate) struct PiFutexes {
    names: [Name; FUTEXES],
}

impl PiFutexes {
    pub const fn new() -> PiFutexes {
        PiFutexes { names: [Name::NOBODYS; FUTEXES] }
    }
}

impl Node {
    /// The thread of a program with this Linux id.
    fn thread_by_tid(&self, tid: u32) -> Option<usize> {
        (SERVICE_SLOTS..SLOTS).find(|&slot| self.threads[slot].tid == tid && self.threads[slot].is_live() && tid != 0)
    }

    /// The mutex of a futex that somebody waits for.
    fn pi_mutex(&self, name: Name) -> Option<(u16, Semaphore)> {
        let known = |id: usize| Some((id as u16, *self.mrt.rt.semaphore(id as u16)?));
        (FIRST..MUTEXES).filter(|id| name.is(self.pi.names[id - FIRST])).find_map(known)
    }

    /// A futex has become the thread's by the end of its holder.
    pub(crate) fn is_heir(&self, slot: usize, name: Name) -> bool {
        self.pi_mutex(name).is_some_and(|(_, mutex)| mutex.carrier == slot as u16)
    }

    /// `FUTEX_LOCK_PI`, and `FUTEX_TRYLOCK_PI`, which may not wait, by the current thread; `CMP_REQUEUE_PI` for a thread that waits.
    pub(crate) fn lock_pi<M: Machine>(
        &mut self,
        m: &mut M,
        slot: usize,
        name: Name,
        may_wait: bool,
    ) -> Result<u64, Stop> {
        let (own, old) = (self.threads[slot].tid, self.futex_word(m, name.address())?);
        let known = self.pi_mutex(name);
        let is_heir = self.is_heir(slot, name);
        if !is_heir && old & word::TID == own {
            return Err(Errno::EDEADLK.into());
        }
        if is_heir || known.is_none() && old & word::TID == 0 {
            let marks = if is_heir { word::OWNER_DIED | word::WAITERS } else { old & word::OWNER_DIED };
            self.write_own(m, name.address(), &(own | marks).to_le_bytes())?;
            known.into_iter().for_each(|(id, _)| self.drop_unused_pi(id));
            return Ok(0);
        }
        self.write_own(m, name.address(), &(old | word::WAITERS).to_le_bytes())?;
        let holder = self.thread_by_tid(old & word::TID);
        match known {
            None if holder.is_none() => Err(Errno::ESRCH.into()),
            _ if !may_wait => Err(Errno::EAGAIN.into()),
            Some((id, _)) => self.wait_for_pi(slot, id),
            None => {
                let id = self.new_pi_mutex(name, holder.unwrap_or_default())?;
                self.wait_for_pi(slot, id)
            }
        }
    }

    /// A mutex for a futex that the thread in slot `holder` holds. It belongs to nobody who could end.
    fn new_pi_mutex(&mut self, name: Name, holder: usize) -> Result<u16, Errno> {
        self.take_part(holder);
        let pool = FIRST as u16..MUTEXES as u16;
        let id = self.decide(|rt, effects| rt.allocate(pool, 0, 1, MUTEX, NOTHING, effects)).or(Err(Errno::ENOMEM))?;
        self.pi.names[id as usize - FIRST] = name;
        // It is new and free.
        let _ = self.decide(|rt, effects| rt.down(holder as u16, id, false, effects));
        Ok(id)
    }

    fn wait_for_pi(&mut self, slot: usize, id: u16) -> Result<u64, Stop> {
        self.take_part(slot);
        if let Err(refusal) = self.decide(|rt, effects| rt.down(slot as u16, id, true, effects)) {
            self.drop_unused_pi(id);
            return Err(if refusal == Refusal::Deadlock { Errno::EDEADLK } else { Errno::EINVAL }.into());
        }
        let thread = &mut self.threads[slot];
        thread.flags |= blocked::FUTEX;
        thread.futex_bits = ALL_BITS;
        let last = self.mrt.rt.end_of_chain(slot as u16) as usize;
        if let Some(server) = self.server_of(last) {
            self.lend_along(self.threads[last].base_queue, server);
        }
        Err(Stop::NoResult)
    }

    /// `FUTEX_UNLOCK_PI`: the best of those who wait has it next.
    pub(crate) fn unlock_pi<M: Machine>(&mut self, m: &mut M, name: Name) -> Result<u64, Stop> {
        let slot = self.current as u16;
        if self.futex_word(m, name.address())? & word::TID != self.threads[self.current].tid {
            return Err(Errno::EPERM.into());
        }
        let held = self.pi_mutex(name).filter(|(_, mutex)| mutex.carrier == slot);
        let heir = held.and_then(|(_, mutex)| mutex.first_waiter());
        let new = heir.map_or(0, |heir| self.threads[heir as usize].tid | word::WAITERS);
        self.write_own(m, name.address(), &new.to_le_bytes())?;
        if let Some((id, _)) = held {
            // It carries it.
            let _ = self.decide(|rt, effects| rt.up(slot, id, effects));
            self.drop_unused_pi(id);
        }
        Ok(0)
    }

    /// The wait of a thread for such a futex ends without it.
    pub(crate) fn give_up_pi(&mut self, slot: usize, id: u16) {
        self.decide(|rt, effects| rt.give_up(slot as u16, effects));
        self.drop_unused_pi(id);
    }

    /// A signal ends the wait of a thread for such a futex: it makes its call again afterwards, whatever the signal's action says.
    pub(crate) fn interrupt_pi_wait(&mut self, slot: usize) {
        self.leave_futex(slot);
        let frame = &mut self.threads[slot].frame;
        frame.rip = frame.rip.wrapping_sub(SYSCALL_BYTES);
        self.wake_if_free(slot);
    }

    /// A wait for such a futex is over: it is the thread's.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_pi_wait(&mut self, slot: usize) {
        self.cancel_deadline(slot, Kind::Futex);
        self.threads[slot].flags &= !blocked::FUTEX;
        self.wake_if_free(slot);
    }

    /// The mutex goes with the last who waits for it.
    fn drop_unused_pi(&mut self, id: u16) {
        if self.mrt.rt.semaphore(id).is_some_and(|mutex| mutex.value >= 0) {
            // It is there, and 0 its owner.
            let _ = self.decide(|rt, effects| rt.free(0, id, effects));
        }
    }

    /// A thread leaves its memory behind: whoever waits for a futex that it holds has that now, and makes its call again.
    pub(crate) fn bequeath_pi(&mut self, slot: usize) {
        let next = |node: &Node| node.mrt.rt.held_by(slot as u16).find(|&id| id >= FIRST as u16);
        while let Some(id) = next(self) {
            let heir = self.mrt.rt.semaphore(id).and_then(Semaphore::first_waiter);
            // It carries it.
            let _ = self.decide(|rt, effects| rt.up(slot as u16, id, effects));
            match heir {
                None => self.drop_unused_pi(id),
                Some(heir) => {
                    let heir = &mut self.threads[heir as usize];
                    heir.frame.rax = nr::FUTEX as u64;
                    heir.attention |= attention::RESUME;
                }
            }
        }
    }

    /// From now on `rt` knows a thread.
    pub(crate) fn take_part(&mut self, slot: usize) {
        if self.mrt.rt.base(slot as u16) == NOTHING {
            let queue = self.threads[slot].base_queue;
            self.decide(|rt, effects| rt.set_base(slot as u16, queue, effects));
        }
    }

    /// The ready queue of a thread, apart from what is lent to it.
    pub(crate) fn own_queue(&self, slot: usize) -> u8 {
        match self.mrt.rt.base(slot as u16) {
            NOTHING => self.threads[slot].base_queue,
            base => base,
        }
    }
}
