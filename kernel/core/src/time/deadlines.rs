//! A set of deadlines: a binary heap with the earliest on top, in which each has a number of its own and can be set and cancelled at once.
//!
//! Setting and cancelling take a few instructions while the deadline is not among the earliest, and a logarithm of steps at worst.
//! Neighbours: `alarm` (threads), `mrt::timer` (virtual timers).

use zerocopy::FromZeros;

#[derive(Clone, Copy, Debug, FromZeros)]
struct Entry {
    deadline: u64,
    id: u16,
}

/// At most `N` deadlines, numbered from 0.
#[derive(Debug, FromZeros)]
pub struct Deadlines<const N: usize> {
    heap: [Entry; N],
    /// By number: place in the heap, plus 1; 0: not set.
    places: [u16; N],
    count: usize,
}

impl<const N: usize> Deadlines<N> {
    /// The earliest.
    pub fn first_deadline(&self) -> Option<u64> {
        (self.count > 0).then(|| self.heap[0].deadline)
    }

    /// Sets a deadline, in place of the one before.
    pub fn set(&mut self, id: usize, deadline: u64) {
        self.cancel(id);
        let at = self.count;
        self.count += 1;
        self.sift_up(at, Entry { deadline, id: id as u16 });
    }

    /// Forgets a deadline, if it is set.
    #[inline(always)]
    pub fn cancel(&mut self, id: usize) {
        let place = core::mem::take(&mut self.places[id]) as usize;
        if place != 0 {
            self.remove(place - 1);
        }
    }

    /// Takes out one that is not after `now`: its number, and when it was due.
    pub fn expire(&mut self, now: u64) -> Option<(usize, u64)> {
        let first = self.heap[0];
        if self.count == 0 || first.deadline > now {
            return None;
        }
        self.cancel(first.id as usize);
        Some((first.id as usize, first.deadline))
    }

    fn remove(&mut self, at: usize) {
        self.count -= 1;
        if at < self.count {
            let last = self.heap[self.count];
            let at = self.sift_up(at, last);
            self.sift_down(at);
        }
    }

    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.places[entry.id as usize] = at as u16 + 1;
    }

    /// Puts an entry where `at` is a hole, or above. → where.
    fn sift_up(&mut self, mut at: usize, entry: Entry) -> usize {
        while at > 0 {
            let parent = self.heap[(at - 1) / 2];
            if parent.deadline <= entry.deadline {
                break;
            }
            self.place(at, parent);
            at = (at - 1) / 2;
        }
        self.place(at, entry);
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.count);
            let Some(child) = children.min_by_key(|&child| self.heap[child].deadline) else { break };
            if entry.deadline <= self.heap[child].deadline {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_expire_in_order_whatever_is_set_and_cancelled_between() {
        let mut all = Deadlines::<32>::new_zeroed();
        let mut expected = [None; 32];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (id, deadline) = ((seed >> 59) as usize, seed >> 40 & 0xffff);
            if seed >> 33 & 3 == 0 {
                all.cancel(id);
                expected[id] = None;
            } else {
                all.set(id, deadline);
                expected[id] = Some(deadline);
            }
            let earliest = expected.iter().flatten().min().copied();
            assert_eq!(all.first_deadline(), earliest);
            if let Some(now) = earliest.filter(|_| seed >> 35 & 7 == 0) {
                let (id, deadline) = all.expire(now).unwrap();
                assert_eq!((expected[id].take(), deadline), (Some(now), now));
            }
        }
    }
}
