//! The calls for System V semaphores: `semget`, `semop`, `semtimedop`, `semctl`. The sets themselves are in `state::semaphores`.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::ipc::{ALTER, READ};
use crate::state::semaphores::{MOST, OPERATIONS, Operation, SEMAPHORES, SETS, Set, Stop};
use crate::state::thread::{Doing, SemaphoreWait};
use crate::state::timers::Key;
use crate::system::System;
use crate::sysv::IPC_64;
use abi::Errno;
use alloc::vec::Vec;
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Commands of semctl(2).
mod command {
    pub use crate::sysv::command::*;
    pub const GETPID: u64 = 11;
    pub const GETVAL: u64 = 12;
    pub const GETALL: u64 = 13;
    pub const GETNCNT: u64 = 14;
    pub const GETZCNT: u64 = 15;
    pub const SETVAL: u64 = 16;
    pub const SETALL: u64 = 17;
    pub const SEM_STAT: u64 = 18;
    pub const SEM_INFO: u64 = 19;
    pub const SEM_STAT_ANY: u64 = 20;
}

/// Words of `struct semid_ds`.
const STATUS_WORDS: usize = 13;

impl<S: System> Programs<S> {
    fn read_operations(&mut self, t: ThreadIndex, address: u64, count: usize) -> Result<Vec<Operation>> {
        let mut bytes = fallible::filled(0, count * size_of::<Operation>())?;
        self.system.read(self.table[t].endpoint(), address, &mut bytes)?;
        let half = |piece: &[u8], at: usize| u16::from_le_bytes([piece[at], piece[at + 1]]);
        let operation =
            |piece: &[u8]| Operation { number: half(piece, 0), change: half(piece, 2) as i16, flags: half(piece, 4) };
        fallible::collect(bytes.chunks_exact(size_of::<Operation>()).map(operation))
    }

    /// Counts the threads that wait for this semaphore to become zero, or greater.
    fn count_waiting(&self, set: &Set, number: usize, for_zero: bool) -> u64 {
        let waits = |(t, endpoint): &(ThreadIndex, abi::Endpoint)| match &self.table[*t].doing {
            Doing::SemaphoreWaiting(wait) if self.table[*t].endpoint() == *endpoint => {
                let operation = wait.operations[wait.blocked];
                operation.number as usize == number && (operation.change == 0) == for_zero
            }
            _ => false,
        };
        set.waiting.iter().filter(waits).count() as u64
    }
}

impl<S: System> Pm<S> {
    /// `semget(key, count, flags)`: returns the identifier.
    pub fn semget(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (key, count, flags) = (a[0] as u32, a[1] as i32, a[2]);
        let count = usize::try_from(count).ok().filter(|count| *count <= SEMAPHORES).ok_or(Errno::EINVAL)?;
        let now_s = self.programs.now_s();
        let who = self.programs.credentials_of(t);
        let fits = |set: &Set| if count > set.semaphores.len() { Err(Errno::EINVAL) } else { Ok(()) };
        if let Some(id) = self.semaphores.all.find(key, flags, who, fits)? {
            return Ok(id.into());
        }
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        self.semaphores.make(key, count, flags as u32, who, now_s).map(u64::from)
    }

    /// `semop(id, operations, count)`, and `semtimedop` with the address of its time limit.
    pub fn semop(&mut self, t: ThreadIndex, a: &[u64; 7], limit: u64) -> Step {
        match self.begin_semop(t, a, limit) {
            Ok(None) => Step::Done(Ok(0)),
            Ok(Some(wait)) => self.wait_for_semaphores(t, wait),
            Err(error) => error.into(),
        }
    }

    /// Does the operations; `Some`: they have to wait.
    fn begin_semop(&mut self, t: ThreadIndex, a: &[u64; 7], limit: u64) -> Result<Option<SemaphoreWait>> {
        let (id, count) = (a[0] as u32, a[2]);
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        if count > OPERATIONS as u64 {
            return Err(Errno::E2BIG);
        }
        let operations = self.programs.read_operations(t, a[1], count as usize)?;
        let deadline_ns = match limit {
            0 => None,
            address => {
                let duration_ns = self.programs.read_timespec(t, address)?;
                Some(self.programs.system.time_ns().0.saturating_add(duration_ns))
            }
        };
        let (pid, now_s) = (self.programs.pid_of(t), self.programs.now_s());
        let who = &self.programs.table[self.programs.table.process_of(t)].credentials;
        let set = self.semaphores.all.get(id)?;
        let alters = operations.iter().any(|operation| operation.change != 0);
        if !set.head.allows(who, if alters { ALTER } else { READ }) {
            return Err(Errno::EACCES);
        }
        let user = who.account();
        self.semaphores.prepare(id, &operations, pid, user)?;
        let set = self.semaphores.all.get(id)?;
        match set.perform(&operations, pid) {
            Ok(()) => {
                set.used_s = now_s;
                // Those who waited are answered first: a pm that dies then must not do it twice.
                self.programs.note_done(t);
                self.serve_semaphore_waits(id);
                Ok(None)
            }
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Wait(blocked)) => Ok(Some(SemaphoreWait { id, operations, blocked, deadline_ns })),
        }
    }

    fn wait_for_semaphores(&mut self, t: ThreadIndex, wait: SemaphoreWait) -> Step {
        if self.programs.table.has_work(t) {
            return Errno::EINTR.into();
        }
        let endpoint = self.programs.table[t].endpoint();
        let queued = self.semaphores.all.get(wait.id).and_then(|set| set.waiting.add(t, endpoint));
        if let Err(error) = queued {
            return error.into();
        }
        if let Some(deadline) = wait.deadline_ns {
            self.set_timer(deadline, Key::Wake(t));
        }
        self.programs.table[t].doing = Doing::SemaphoreWaiting(wait);
        Step::Later
    }

    /// Ends the wait of a thread for semaphores.
    pub fn end_semaphore_wait(&mut self, t: ThreadIndex, result: Result<u64>) {
        self.forget_timer(t);
        if let Doing::SemaphoreWaiting(wait) = &self.programs.table[t].doing
            && let Ok(set) = self.semaphores.all.get(wait.id)
        {
            set.waiting.remove(t);
        }
        self.finish(t, result);
    }

    /// Completes the waiting operations that are possible since the values of the set have changed, oldest first.
    fn serve_semaphore_waits(&mut self, id: u32) {
        let mut index = 0;
        while let Some((t, endpoint)) = self.semaphores.all.get(id).ok().and_then(|set| set.waiting.get(index)) {
            let pid = if self.programs.table.find(endpoint) == Some(t) { self.programs.pid_of(t) } else { 0 };
            let outcome = match (&mut self.programs.table[t].doing, self.semaphores.all.get(id)) {
                (Doing::SemaphoreWaiting(wait), Ok(set)) if pid != 0 && wait.id == id => {
                    let outcome = set.perform(&wait.operations, pid);
                    if let Err(Stop::Wait(blocked)) = outcome {
                        wait.blocked = blocked;
                    }
                    Some(outcome)
                }
                _ => None,
            };
            match outcome {
                Some(Err(Stop::Wait(_))) => index += 1,
                Some(outcome) => {
                    let result = outcome.map(|()| 0).map_err(|stop| match stop {
                        Stop::Error(error) => error,
                        Stop::Wait(_) => Errno::EAGAIN,
                    });
                    self.end_semaphore_wait(t, result);
                    index = 0;
                }
                // The set has been removed.
                None => {
                    if let Ok(set) = self.semaphores.all.get(id) {
                        set.waiting.remove(t);
                    }
                }
            }
        }
    }

    /// `semctl(id, number, command, argument)`.
    pub fn semctl(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (id, number, argument) = (a[0] as u32, a[1] as u32 as usize, a[3]);
        let command = a[2] & 0xffff_ffff & !IPC_64;
        match command {
            command::RMID => self.remove_semaphores(t, id),
            command::SET => self.set_semaphore_owner(t, id, argument),
            command::SETVAL => self.set_semaphores(t, id, Some(number), &[argument as i32]),
            command::SETALL => {
                let count = self.semaphores.all.get(id)?.semaphores.len();
                let mut bytes = fallible::filled(0, 2 * count)?;
                self.programs.system.read(self.programs.table[t].endpoint(), argument, &mut bytes)?;
                let values = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]) as i32);
                self.set_semaphores(t, id, None, &fallible::collect(values)?)
            }
            command::IPC_INFO | command::SEM_INFO => self.semaphore_info(t, command, argument),
            command::SEM_STAT | command::SEM_STAT_ANY => {
                let id = self.semaphores.all.at(id as usize)?.head.id();
                self.read_semaphores(t, id, (number, command), argument).map(|_| u64::from(id))
            }
            _ => self.read_semaphores(t, id, (number, command), argument),
        }
    }

    /// `struct seminfo`: the limits, and for SEM_INFO how many sets and semaphores there are. Returns the highest index in use.
    fn semaphore_info(&mut self, t: ThreadIndex, command: u64, address: u64) -> Result<u64> {
        let all = (SETS * SEMAPHORES) as i32;
        let (sets, semaphores) = match command {
            command::SEM_INFO => self.semaphores.used(),
            _ => (20, MOST),
        };
        // semmap, semmni, semmns, semmnu, semmsl, semopm, semume, semusz, semvmx, semaem
        let (per_set, operations) = (SEMAPHORES as i32, OPERATIONS as i32);
        let info = [all, SETS as i32, all, all, per_set, operations, operations, sets, MOST, semaphores];
        self.programs.write_bytes(t, address, info.map(i32::to_le_bytes).as_flattened())?;
        Ok(self.semaphores.all.highest_index() as u64)
    }

    fn remove_semaphores(&mut self, t: ThreadIndex, id: u32) -> Result<u64> {
        let removed = self.semaphores.remove(id, self.programs.credentials_of(t))?;
        self.programs.note_done(t);
        for (waiter, endpoint) in removed.waiting.iter() {
            if self.programs.table.find(endpoint) == Some(waiter)
                && matches!(&self.programs.table[waiter].doing, Doing::SemaphoreWaiting(wait) if wait.id == id)
            {
                self.end_semaphore_wait(waiter, Err(Errno::EIDRM));
            }
        }
        Ok(0)
    }

    fn set_semaphore_owner(&mut self, t: ThreadIndex, id: u32, address: u64) -> Result<u64> {
        let (owner, mode) = self.programs.read_owner(t, address)?;
        let now_s = self.programs.now_s();
        let set = self.semaphores.all.get(id)?;
        set.head.change(self.programs.credentials_of(t), owner, mode, now_s).map(|()| 0)
    }

    /// Sets one value (`number`), or all.
    fn set_semaphores(&mut self, t: ThreadIndex, id: u32, number: Option<usize>, values: &[i32]) -> Result<u64> {
        let (pid, now_s) = (self.programs.pid_of(t), self.programs.now_s());
        let who = &self.programs.table[self.programs.table.process_of(t)].credentials;
        let set = self.semaphores.all.get(id)?;
        let first = number.unwrap_or(0);
        if first + values.len() > set.semaphores.len() {
            return Err(Errno::EINVAL);
        }
        if !set.head.allows(who, ALTER) {
            return Err(Errno::EACCES);
        }
        if values.iter().any(|value| !(0..=MOST).contains(value)) {
            return Err(Errno::ERANGE);
        }
        values.iter().enumerate().for_each(|(offset, value)| set.set_value(first + offset, *value, pid));
        set.head.changed_s = now_s;
        self.programs.note_done(t);
        self.serve_semaphore_waits(id);
        Ok(0)
    }

    fn read_semaphores(
        &mut self,
        t: ThreadIndex,
        id: u32,
        (number, command): (usize, u64),
        address: u64,
    ) -> Result<u64> {
        let who = &self.programs.table[self.programs.table.process_of(t)].credentials;
        let set = self.semaphores.all.get(id)?;
        if command != command::SEM_STAT_ANY && !set.head.allows(who, READ) {
            return Err(Errno::EACCES);
        }
        let set = &*set;
        match command {
            command::STAT | command::SEM_STAT | command::SEM_STAT_ANY => {
                self.programs.write_words(t, address, status(set)).map(|()| 0)
            }
            command::GETALL => {
                let values = fallible::collect(set.semaphores.iter().map(|one| (one.value as u16).to_le_bytes()))?;
                self.programs.write_bytes(t, address, values.as_flattened()).map(|()| 0)
            }
            _ => {
                let semaphore = set.semaphores.get(number).ok_or(Errno::EINVAL)?;
                match command {
                    command::GETPID => Ok(semaphore.pid as u64),
                    command::GETVAL => Ok(semaphore.value as u64),
                    command::GETNCNT => Ok(self.programs.count_waiting(set, number, false)),
                    command::GETZCNT => Ok(self.programs.count_waiting(set, number, true)),
                    _ => Err(Errno::EINVAL),
                }
            }
        }
    }

    /// A process ends: what it wanted undone is undone.
    pub fn undo_semaphores(&mut self, p: ProcessIndex) {
        let pid = self.programs.table[p].pid();
        for index in 0..self.semaphores.all.places() {
            if let Some(id) = self.semaphores.take_back(index, pid) {
                self.serve_semaphore_waits(id);
            }
        }
    }
}

/// A `struct semid_ds`.
fn status(set: &Set) -> [u64; STATUS_WORDS] {
    let mut words = [0; STATUS_WORDS];
    words[..3].copy_from_slice(&set.head.words());
    words[6] = set.used_s;
    words[8] = set.head.changed_s;
    words[10] = set.semaphores.len() as u64;
    words
}
