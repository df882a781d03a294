//! Every state that four threads and three semaphores can reach, by every step from each, checked after every step.
//!
//! A state is known by a hash of 128 bits of all of it, links and counters included, so that one that differs in anything is another one; what
//! follows from the state alone is checked when it is met for the first time. Steps are those of the calls: down, up, time limits (`GiveUp`),
//! changes of base priority, synchronous requests (`Await`), what messages donate (`Lend`), ends, allocation and release.
//!
//! All states take minutes, so they are visited when `SKINK_DEEP` is set (`./skink test deep`); otherwise a sample with a fixed seed is.

use crate::{inheritance::semaphore::Statistics, inheritance::tests::*, inheritance::*};

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::vec::Vec;

/// States of the sample, and the least that a full exploration finds.
const SAMPLE: usize = 50_000;
const AT_LEAST: usize = 300_000;

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Down(u16, u16),
    Up(u16, u16),
    GiveUp(u16),
    SetBase(u16, u8),
    Lend(u16, u8),
    Await(u16, u16),
    Leave(u16),
    Allocate,
    Free(u16),
}

/// The semaphores of a world, and whose messages donate something.
#[derive(Clone, Copy)]
struct World {
    semaphores: [(Flags, u8); MUTEXES],
    lent_to: Option<u16>,
}

const CEILING: Flags = Flags { by_priority: true, mutex: true, inherits: true, ceiling: true };
const FIFO_MUTEX: Flags = Flags { by_priority: false, mutex: true, inherits: false, ceiling: false };

impl World {
    fn begin(&self) -> Small {
        let mut all = without_semaphores();
        while self.allocate(&mut all) {}
        all
    }

    /// Allocates the first free semaphore as this world has it.
    fn allocate(&self, all: &mut Small) -> bool {
        let free = all.semaphores.iter().position(|semaphore| !semaphore.is_allocated());
        free.is_some_and(|id| {
            all.allocate(0..MUTEXES as u16, 0, 1, self.semaphores[id].0, self.semaphores[id].1).is_ok()
        })
    }

    fn steps(&self) -> Vec<Step> {
        let threads = 0..THREADS as u16;
        let mut steps = std::vec![Step::Allocate];
        for thread in threads.clone() {
            steps.extend([Step::GiveUp(thread), Step::Leave(thread)]);
            steps.extend([10 + thread as u8, 9].map(|base| Step::SetBase(thread, base)));
            steps.extend(threads.clone().map(|server| Step::Await(thread, server)));
            for id in 0..MUTEXES as u16 {
                steps.extend([Step::Down(thread, id), Step::Up(thread, id)]);
            }
        }
        steps.extend(
            self.lent_to.into_iter().flat_map(|thread| [8, NOTHING].map(|donated| Step::Lend(thread, donated))),
        );
        steps.extend((0..MUTEXES as u16).map(Step::Free));
        steps
    }

    /// Takes a step. False: it is refused, and changes nothing.
    fn take(&self, all: &mut Small, step: Step, log: &mut Log) -> bool {
        let is_full =
            |all: &Small, id: u16| !all.semaphores[id as usize].flags.mutex && all.semaphores[id as usize].value > 0;
        let done = match step {
            Step::Down(thread, id) => all.down(thread, id, true, log).is_ok(),
            Step::Up(thread, id) => !is_full(all, id) && all.up(thread, id, log).is_ok(),
            Step::Await(thread, server) => all.await_answer(thread, server, log).is_ok(),
            Step::Free(id) => all.free(0, id, log).is_ok(),
            Step::Allocate => self.allocate(all),
            Step::GiveUp(thread) => {
                all.give_up(thread, log);
                true
            }
            Step::SetBase(thread, base) => {
                all.set_base(thread, base, log);
                true
            }
            Step::Lend(thread, donated) => {
                all.donate(thread, donated, log);
                true
            }
            Step::Leave(thread) => {
                all.leave(thread, log);
                all.free_all(thread, log);
                all.set_base(thread, 10 + thread as u8, log);
                all.set_inherits(thread, true, log);
                true
            }
        };
        all.semaphores.iter_mut().for_each(|semaphore| semaphore.statistics = Statistics::default());
        done
    }

    /// Visits every state, or a sample of them; returns how many.
    fn explore(&self, is_deep: bool) -> usize {
        let steps = self.steps();
        let mut open = std::vec![self.begin()];
        let mut seen = HashSet::with_hasher(BuildHasherDefault::<Known>::default());
        seen.insert(fingerprint(&open[0]));
        let mut log = Log::default();
        let mut random = 0u64;
        while !open.is_empty() && (is_deep || seen.len() < SAMPLE) {
            // Depth-first keeps the full exploration small, a random order (Knuth's MMIX) spreads the sample over all depths.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let next = if is_deep { open.len() - 1 } else { (random >> 33) as usize % open.len() };
            let state = open.swap_remove(next);
            for &step in steps.iter().filter(|&&step| state.may(step)) {
                let mut next = state.clone();
                log.changed.clear();
                log.woken.clear();
                if !self.take(&mut next, step, &mut log) {
                    assert!(
                        log.changed.is_empty() && log.woken.is_empty(),
                        "{step:?} was refused and changed something"
                    );
                    continue;
                }
                next.check_told(&state, &log, step);
                if seen.insert(fingerprint(&next)) {
                    next.check();
                    open.push(next);
                }
            }
        }
        seen.len()
    }

    fn check(&self) {
        let is_deep = std::env::var_os("SKINK_DEEP").is_some();
        let states = self.explore(is_deep);
        assert!(states >= if is_deep { AT_LEAST } else { SAMPLE }, "only {states} states");
    }
}

impl Small {
    /// False when a step would be refused at once: most are, and to know that needs no copy of the state.
    fn may(&self, step: Step) -> bool {
        match step {
            Step::Down(thread, _) | Step::Up(thread, _) | Step::Await(thread, _) => self.waits(thread) == Wait::No,
            Step::GiveUp(thread) => self.waits(thread) != Wait::No,
            Step::SetBase(thread, base) => self.base(thread) != base,
            Step::Lend(thread, donated) => self.tasks[thread as usize].donated != donated,
            Step::Free(id) => self.semaphores[id as usize].is_allocated(),
            Step::Leave(_) | Step::Allocate => true,
        }
    }

    /// Effective priorities by definition: from the bases, spread along the waits until nothing changes.
    fn defined(&self) -> [u8; THREADS] {
        let ceiling = |thread: u16| {
            let held = self.semaphores.iter().filter(|semaphore| semaphore.owner == thread && semaphore.flags.ceiling);
            held.map(|semaphore| semaphore.ceiling).min().unwrap_or(NOTHING)
        };
        let mut all = core::array::from_fn(|thread| {
            self.base(thread as u16).min(self.tasks[thread].donated).min(ceiling(thread as u16))
        });
        for _ in 0..THREADS {
            for thread in 0..THREADS {
                let donates = match self.waits(thread as u16) {
                    Wait::Semaphore(id) => self.semaphores[id as usize].flags.inherits,
                    wait => wait != Wait::No,
                };
                if let Some(on) = self.waits_on(thread as u16).filter(|_| donates) {
                    all[on as usize] = all[on as usize].min(all[thread]);
                }
            }
        }
        all
    }

    /// The scheduler has heard of every change, and of every wait that somebody else has ended.
    fn check_told(&self, before: &Small, log: &Log, step: Step) {
        for thread in 0..THREADS as u16 {
            let told = log.changed.iter().rev().find(|(changed, _)| *changed == thread);
            let left = matches!(step, Step::Leave(leaver) if leaver == thread);
            let expected = told.map_or(before.effective(thread), |(_, priority)| *priority);
            assert!(left || self.effective(thread) == expected, "{step:?}");
            let was_freed = before.waits(thread) != Wait::No && self.waits(thread) == Wait::No;
            let by_itself = left || matches!(step, Step::GiveUp(waiter) if waiter == thread);
            let woken = log.woken.iter().filter(|(woken, _)| *woken == thread).count();
            assert_eq!(woken, usize::from(was_freed && !by_itself), "{step:?}");
        }
    }

    fn check(&self) {
        assert_eq!(self.effectives(), self.defined());
        for (id, semaphore) in self.semaphores.iter().enumerate() {
            let waiters: Vec<u16> = self.waiters[id].iter(&self.tasks).collect();
            let priorities: Vec<u8> = waiters.iter().map(|&waiter| self.effective(waiter)).collect();
            assert!(!semaphore.flags.by_priority || priorities.is_sorted(), "{priorities:?}");
            assert!(waiters.iter().all(|&waiter| self.waits(waiter) == Wait::Semaphore(id as u16)));
            let is_free = if semaphore.flags.mutex { semaphore.owner == NONE } else { semaphore.value > 0 };
            if !semaphore.is_allocated() {
                assert_eq!(*semaphore, Semaphore::FREE);
            } else {
                assert_eq!(semaphore.value, if is_free { 1 } else { -(waiters.len() as i32) });
            }
        }
        for thread in 0..THREADS as u16 {
            let mut held: Vec<u16> = self.held_by(thread).take(MUTEXES + 1).collect();
            let carried = (0..MUTEXES as u16).filter(|&id| self.semaphores[id as usize].owner == thread);
            held.sort_unstable();
            assert_eq!(held, carried.collect::<Vec<_>>());
            self.check_wait(thread);
        }
    }

    /// Who waits is in exactly the list of what it waits for, and not for itself.
    fn check_wait(&self, thread: u16) {
        let in_list = |list: &Waiters| list.iter(&self.tasks).filter(|&waiter| waiter == thread).count();
        let total: usize = self.waiters.iter().chain(&self.clients).map(in_list).sum();
        let expected = match self.waits(thread) {
            Wait::No => 0,
            Wait::Semaphore(id) => in_list(&self.waiters[id as usize]),
            Wait::Answer(server) => in_list(&self.clients[server as usize]),
        };
        assert_eq!(total, usize::from(self.waits(thread) != Wait::No));
        assert_eq!(total, expected);
        assert!(!self.waits_on(thread).is_some_and(|on| self.leads_to(on, thread)));
    }
}

/// Two hashes of 64 bits by multiplication, over every field.
#[derive(Default)]
struct Fingerprint(u64, u64);

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte as u64));
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value as u64);
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(value as u64);
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.1 = (self.1.rotate_left(23) ^ value).wrapping_mul(0xc2b2_ae3d_27d4_eb4f).wrapping_add(1);
    }
    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

fn fingerprint(state: &Small) -> u128 {
    let mut hasher = Fingerprint::default();
    state.hash(&mut hasher);
    hasher.0 as u128 | (hasher.1 as u128) << 64
}

/// Fingerprints are as good as any hash of them.
#[derive(Default)]
struct Known(u64);

impl Hasher for Known {
    fn write(&mut self, _: &[u8]) {}
    fn write_u128(&mut self, value: u128) {
        self.0 = (value >> 32) as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[test]
fn every_state_of_four_threads_and_three_mutexes_keeps_the_invariants() {
    let world = World { semaphores: [(MUTEX, 0); MUTEXES], lent_to: None };
    world.check();
}

#[test]
fn every_state_with_messages_that_lend_a_ceiling_and_a_counting_semaphore_keeps_the_invariants() {
    let world = World { semaphores: [(MUTEX, 0), (CEILING, 12), (COUNTING, 0)], lent_to: Some(3) };
    world.check();
}

#[test]
fn every_state_with_mutexes_that_nobody_inherits_by_keeps_the_invariants() {
    let world = World { semaphores: [(FIFO_MUTEX, 0), (MUTEX, 0), (FIFO_MUTEX, 0)], lent_to: Some(2) };
    world.check();
}
