//! Futexes: Linux's `futex` WAIT, WAKE and their BITSET forms (futex(2)), by address space and address.
//!
//! Compare and sleep happen in one entry of the kernel, so no wake-up between them is lost. Waiters hang in buckets by
//! a hash of the address, in order of arrival. Neighbours: `route` (calls arrive), `alarm` (time limits), `life`
//! (interruption and death).

use abi::Errno;

use crate::{Machine, Node, Space, alarm::Kind, call::Stop, thread::blocked};

/// Lists of waiters.
pub(crate) const BUCKETS: usize = 64;

/// Operations and flags (linux/futex.h).
mod operation {
    pub const WAIT: u64 = 0;
    pub const WAKE: u64 = 1;
    pub const WAIT_BITSET: u64 = 9;
    pub const WAKE_BITSET: u64 = 10;
    pub const PRIVATE: u64 = 128;
    pub const REALTIME: u64 = 256;
}

const ALL_BITS: u32 = u32::MAX;

fn bucket(space: Space, address: u64) -> usize {
    ((address >> 2 ^ address >> 12 ^ space.0 as u64) % BUCKETS as u64) as usize
}

impl Node {
    /// `futex (address, operation, value, address of timespec, bits)`: results as futex(2).
    pub(crate) fn futex<M: Machine>(&mut self, m: &mut M, words: [u64; 5]) -> Result<u64, Stop> {
        let [address, operation, value, limit, bits] = words;
        let operation = operation as u32 as u64;
        let realtime = operation & operation::REALTIME != 0;
        if address % 4 != 0 {
            return Err(Errno::EINVAL.into());
        }
        match operation & !(operation::PRIVATE | operation::REALTIME) {
            operation::WAIT => {
                let deadline_ns = self.relative_deadline(m, limit)?;
                self.futex_wait(m, address, value as u32, deadline_ns, ALL_BITS)
            }
            operation::WAIT_BITSET => {
                let deadline_ns = self.absolute_deadline(m, limit, realtime)?;
                self.futex_wait(m, address, value as u32, deadline_ns, bits as u32)
            }
            operation::WAKE => self.futex_wake(address, value as i32, ALL_BITS),
            operation::WAKE_BITSET => self.futex_wake(address, value as i32, bits as u32),
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    /// The timespec at this address, in ns; `None` for address 0. `EINVAL`: negative or not normalised.
    fn read_timespec<M: Machine>(&mut self, m: &mut M, address: u64) -> Result<Option<u64>, Stop> {
        if address == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 16];
        self.read_own(m, address, &mut bytes)?;
        let both = u128::from_le_bytes(bytes);
        let (seconds, nanoseconds) = (both as u64, (both >> 64) as u64);
        if seconds > i64::MAX as u64 || nanoseconds >= 1_000_000_000 {
            return Err(Errno::EINVAL.into());
        }
        Ok(Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)))
    }

    fn relative_deadline<M: Machine>(&mut self, m: &mut M, limit: u64) -> Result<Option<u64>, Stop> {
        let duration_ns = self.read_timespec(m, limit)?;
        let now_ns = self.now_ns(m);
        Ok(duration_ns.map(|duration_ns| now_ns.saturating_add(duration_ns)))
    }

    fn absolute_deadline<M: Machine>(&mut self, m: &mut M, limit: u64, realtime: bool) -> Result<Option<u64>, Stop> {
        let offset_ns = if realtime { self.real_offset_ns } else { 0 };
        Ok(self.read_timespec(m, limit)?.map(|deadline_ns| deadline_ns.saturating_sub(offset_ns)))
    }

    fn futex_wait<M: Machine>(
        &mut self,
        m: &mut M,
        address: u64,
        expected: u32,
        deadline_ns: Option<u64>,
        bits: u32,
    ) -> Result<u64, Stop> {
        if bits == 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut value = [0; 4];
        self.read_own(m, address, &mut value)?;
        if u32::from_le_bytes(value) != expected {
            return Err(Errno::EAGAIN.into());
        }
        let slot = self.current;
        let thread = &mut self.threads[slot];
        thread.flags |= blocked::FUTEX;
        thread.futex_address = address;
        thread.futex_bits = bits;
        let bucket = bucket(thread.space, address);
        self.futexes[bucket].push_back(&mut self.threads, slot as u16);
        if let Some(deadline_ns) = deadline_ns {
            self.set_deadline(m, slot, Kind::Futex, deadline_ns);
        }
        Err(Stop::NoResult)
    }

    /// Wakes at most `count` waiters that share a bit (Linux wakes one for a count of 0 or less, too). → number.
    fn futex_wake(&mut self, address: u64, count: i32, bits: u32) -> Result<u64, Stop> {
        if bits == 0 {
            return Err(Errno::EINVAL.into());
        }
        let space = self.space_of(self.current)?;
        let mut woken = 0;
        let mut slot = self.futexes[bucket(space, address)].first as usize;
        while slot != 0 && woken < count.max(1) as u64 {
            let waiter = &self.threads[slot];
            let next = waiter.next as usize;
            if waiter.space == space && waiter.futex_address == address && waiter.futex_bits & bits != 0 {
                self.end_futex_wait(slot, Ok(0));
                woken += 1;
            }
            slot = next;
        }
        Ok(woken)
    }

    /// Ends the wait of a thread in a futex bucket with this result.
    pub(crate) fn end_futex_wait(&mut self, slot: usize, result: Result<u64, Errno>) {
        self.leave_futex(slot);
        let thread = &mut self.threads[slot];
        thread.frame.set_result(result);
        self.wake_if_free(slot);
    }

    /// Takes a thread out of its futex bucket.
    pub(crate) fn leave_futex(&mut self, slot: usize) {
        self.alarms.cancel(&mut self.threads, slot, Kind::Futex);
        let thread = &mut self.threads[slot];
        thread.flags &= !blocked::FUTEX;
        let bucket = bucket(thread.space, thread.futex_address);
        self.futexes[bucket].remove(&mut self.threads, slot as u16);
    }
}
