//! The cases by name; `exploration` has all the others.

use crate::inheritance::{semaphore::Down, *};

use std::vec::Vec;
use zerocopy::FromZeros;

pub(super) const THREADS: usize = 4;
pub(super) const MUTEXES: usize = 3;
const POOL: core::ops::Range<u16> = 0..MUTEXES as u16;
pub(super) const MUTEX: Flags = Flags { by_priority: true, mutex: true, inherits: true, ceiling: false };
pub(super) const COUNTING: Flags = Flags { by_priority: true, mutex: false, inherits: false, ceiling: false };

pub(super) type Small = RealTime<THREADS, MUTEXES>;

/// Writes down what it is told.
#[derive(Default)]
pub(super) struct Log {
    pub changed: Vec<(u16, u8)>,
    pub woken: Vec<(u16, bool)>,
}

impl Scheduler for Log {
    fn changed(&mut self, thread: u16, priority: u8) {
        self.changed.push((thread, priority));
    }
    fn woken(&mut self, thread: u16, gone: bool) {
        self.woken.push((thread, gone));
    }
}

/// Thread `n` has base priority `10 + n`, and inherits priorities.
pub(super) fn without_semaphores() -> Small {
    let mut all = Small::new_zeroed();
    all.start();
    let log = &mut Log::default();
    for thread in 0..THREADS as u16 {
        all.set_base(thread, 10 + thread as u8, log);
        all.set_inherits(thread, true, log);
    }
    all
}

/// Thread 0 owns the mutexes.
fn with(flags: Flags, value: i32) -> Small {
    let mut all = without_semaphores();
    for _ in 0..MUTEXES {
        all.allocate(POOL, 0, value, flags, 0).unwrap();
    }
    all
}

fn mutexes() -> Small {
    with(MUTEX, 1)
}

impl Small {
    pub(super) fn effectives(&self) -> [u8; THREADS] {
        core::array::from_fn(|thread| self.effective(thread as u16))
    }

    fn lock(&mut self, thread: u16, id: u16) -> Down {
        self.down(thread, id, true, &mut Log::default()).unwrap()
    }

    fn unlock(&mut self, thread: u16, id: u16) -> Vec<(u16, bool)> {
        let mut log = Log::default();
        self.up(thread, id, &mut log).unwrap();
        log.woken
    }
}

#[test]
fn a_holder_runs_with_its_best_waiters_priority_and_falls_back() {
    let mut all = mutexes();
    assert_eq!(all.lock(3, 0), Down::Done);
    assert_eq!(all.lock(2, 0), Down::Waits);
    assert_eq!(all.effectives(), [10, 11, 12, 12]);
    assert_eq!(all.lock(1, 0), Down::Waits);
    assert_eq!(all.effectives(), [10, 11, 12, 11]);
    assert_eq!(all.unlock(3, 0), [(1, false)]);
    assert_eq!(all.effectives(), [10, 11, 12, 13]);
}

#[test]
fn inheritance_goes_through_chains_and_a_time_limit_takes_it_back() {
    let mut all = mutexes();
    all.lock(3, 0);
    all.lock(2, 1);
    all.lock(2, 0);
    all.lock(1, 1);
    assert_eq!(all.effectives(), [10, 11, 11, 11]);
    all.give_up(1, &mut Log::default());
    assert_eq!(all.effectives(), [10, 11, 12, 12]);
    assert_eq!(all.semaphore(1).unwrap().value, 0);
}

#[test]
fn giving_up_one_of_two_mutexes_keeps_what_the_other_lends() {
    let mut all = mutexes();
    all.lock(3, 0);
    all.lock(3, 1);
    all.lock(1, 0);
    all.lock(2, 1);
    assert_eq!(all.effective(3), 11);
    assert_eq!(all.unlock(3, 0), [(1, false)]);
    assert_eq!(all.effective(3), 12);
}

#[test]
fn a_circle_is_refused_at_once_and_nothing_has_changed() {
    let mut all = mutexes();
    all.lock(1, 0);
    all.lock(2, 1);
    all.lock(1, 1);
    let before = all.clone();
    assert_eq!(all.down(2, 0, true, &mut Log::default()), Err(Refusal::Deadlock));
    assert_eq!(all.down(1, 0, true, &mut Log::default()), Err(Refusal::Deadlock));
    assert_eq!(all.await_answer(2, 1, &mut Log::default()), Err(Refusal::Deadlock));
    assert_eq!(all, before);
}

#[test]
fn requests_lend_priority_along_with_mutexes() {
    let mut all = mutexes();
    all.lock(3, 0);
    all.lock(2, 0);
    all.await_answer(1, 2, &mut Log::default()).unwrap();
    assert_eq!(all.effectives(), [10, 11, 11, 11]);
    all.give_up(1, &mut Log::default());
    assert_eq!(all.effectives(), [10, 11, 12, 12]);
}

#[test]
fn waiters_of_equal_priority_go_in_order_of_arrival() {
    let mut all = with(COUNTING, 0);
    let log = &mut Log::default();
    for thread in [2, 1, 3] {
        all.set_base(thread, 5, log);
        all.lock(thread, 0);
    }
    let order: Vec<_> = (0..3).flat_map(|_| all.unlock(0, 0)).map(|(thread, _)| thread).collect();
    assert_eq!(order, [2, 1, 3]);
}

#[test]
fn fifo_waiters_go_in_order_of_arrival_whatever_their_priority() {
    let mut all = with(Flags::default(), 0);
    for thread in [3, 1, 2] {
        all.lock(thread, 0);
    }
    let order: Vec<_> = (0..3).flat_map(|_| all.unlock(0, 0)).map(|(thread, _)| thread).collect();
    assert_eq!(order, [3, 1, 2]);
}

#[test]
fn a_waiter_whose_priority_changes_moves_in_the_queue() {
    let mut all = mutexes();
    all.lock(0, 0);
    all.lock(1, 0);
    all.lock(3, 0);
    all.set_base(3, 1, &mut Log::default());
    assert_eq!(all.effective(0), 1);
    assert_eq!(all.unlock(0, 0), [(3, false)]);
}

#[test]
fn a_ceiling_is_taken_with_the_mutex_and_refuses_better_threads() {
    let mut all = with(Flags::default(), 0);
    let flags = Flags { by_priority: true, mutex: true, inherits: false, ceiling: true };
    let log = &mut Log::default();
    all.free(0, 2, log).unwrap();
    let id = all.allocate(POOL, 0, 1, flags, 11).unwrap();
    assert_eq!(all.down(0, id, true, log), Err(Refusal::Ceiling));
    all.lock(3, id);
    assert_eq!(all.effective(3), 11);
    all.unlock(3, id);
    assert_eq!(all.effective(3), 13);
}

#[test]
fn who_waits_for_what_a_leaving_thread_owns_goes_on_with_an_error() {
    let mut all = mutexes();
    all.lock(2, 0);
    all.lock(1, 0);
    all.await_answer(3, 0, &mut Log::default()).unwrap();
    let mut log = Log::default();
    all.leave(0, &mut log);
    assert_eq!(log.woken, [(3, true), (1, true)]);
    assert_eq!(all.effective(2), 12);
    all.free_all(0, &mut log);
    assert_eq!(all.down(2, 0, true, &mut log), Err(Refusal::NoSemaphore));
}

#[test]
fn a_leaving_carrier_hands_its_mutex_on() {
    let mut all = mutexes();
    all.lock(3, 1);
    all.lock(2, 1);
    let mut log = Log::default();
    all.leave(3, &mut log);
    assert_eq!(log.woken, [(2, false)]);
    assert_eq!(all.semaphore(1).unwrap().owner, 2);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut all = mutexes();
    let log = &mut Log::default();
    let inherits = Flags { inherits: true, ..Flags::default() };
    assert_eq!(all.allocate(POOL, 0, 1, inherits, 0), Err(Refusal::Flags));
    assert_eq!(all.allocate(POOL, 0, 2, MUTEX, 0), Err(Refusal::Value));
    assert_eq!(all.allocate(POOL, 0, -1, COUNTING, 0), Err(Refusal::Value));
    assert_eq!(all.allocate(POOL, 0, 1, MUTEX, 0), Err(Refusal::NoSemaphore));
    assert_eq!(all.free(1, 0, log), Err(Refusal::NotOwner));
    assert_eq!(all.up(1, 0, log), Err(Refusal::NotOwner));
    assert_eq!(all.down(1, 77, true, log), Err(Refusal::NoSemaphore));
    all.lock(1, 0);
    assert_eq!(all.down(2, 0, false, log), Err(Refusal::WouldWait));
}
