//! Killed at every write, the successor finds the state before or after, never one between.

use super::*;
use core::sync::atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

const WORDS: usize = 256;
const UNLIMITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair(u64, u64);

impl Record for Pair {
    const WORDS: usize = 2;
    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.0, self.1]);
    }
    fn load(words: &[u64]) -> Self {
        Pair(words[0], words[1])
    }
}

fn memory() -> &'static [AtomicU64] {
    Box::leak((0..WORDS).map(|word| AtomicU64::new((word as u64 + 1) * 77)).collect::<Vec<_>>().into_boxed_slice())
}

struct State {
    recover: Recover,
    pairs: Table<Pair>,
    found: Found,
}

fn open(memory: &'static [AtomicU64], writes: u64) -> State {
    let (recover, found) = Recover::open(Keep::simulated(memory, writes), 1, 16);
    let pairs = Table::lay_out(&recover, 8);
    State { recover, pairs, found }
}

impl State {
    fn all(&self) -> Vec<(usize, Entry<Pair>)> {
        self.pairs.entries(&self.recover).collect()
    }

    fn change(&self, from: u64) {
        self.recover.begin();
        for index in 0..3 {
            self.pairs.set(&self.recover, index, &Pair(from + index as u64, from));
        }
        self.pairs.clear(&self.recover, 3);
        self.pairs.set(&self.recover, 0, &Pair(from * 2, 0));
        self.recover.commit();
    }
}

fn prepared() -> (&'static [AtomicU64], Vec<(usize, Entry<Pair>)>) {
    let memory = memory();
    let state = open(memory, UNLIMITED);
    assert_eq!(state.found, Found::Nothing);
    assert!(state.all().is_empty());
    state.pairs.set(&state.recover, 3, &Pair(8, 9));
    state.recover.commit();
    state.change(10);
    state.pairs.set(&state.recover, 3, &Pair(3, 3));
    state.recover.commit();
    (memory, state.all())
}

/// Runs `work` on a fresh state that dies at write `writes`; true when it came to its end.
fn dies_at(memory: &'static [AtomicU64], writes: u64, work: impl Fn(&State)) -> bool {
    catch_unwind(AssertUnwindSafe(|| work(&open(memory, writes)))).is_ok()
}

#[test]
fn a_death_at_any_write_leaves_the_state_before_or_after() {
    let mut seen = [0, 0];
    for writes in 0.. {
        let (memory, before) = prepared();
        let finished = dies_at(memory, writes, |state| state.change(50));
        let after = open(memory, UNLIMITED);
        let is_before = after.all() == before;
        assert!(is_before || after.pairs.get(&after.recover, 0) == Entry::Some(Pair(100, 0)), "after {writes} writes");
        assert!(is_before || after.all().len() == 3);
        seen[usize::from(is_before)] += 1;
        if finished {
            break;
        }
    }
    assert!(seen[0] >= 1 && seen[1] > 10, "{seen:?}");
}

#[test]
fn a_death_while_undoing_is_undone_as_well() {
    for first in 0.. {
        let (memory, before) = prepared();
        if dies_at(memory, first, |state| state.change(50)) {
            break;
        }
        for second in 0.. {
            if dies_at(memory, second, |_| {}) {
                break;
            }
        }
        let state = open(memory, UNLIMITED);
        assert!(state.all() == before || state.pairs.get(&state.recover, 0) == Entry::Some(Pair(100, 0)));
    }
}

#[test]
fn another_layout_starts_empty() {
    let (memory, _) = prepared();
    let (recover, found) = Recover::open(Keep::simulated(memory, UNLIMITED), 2, 16);
    assert_eq!(found, Found::Nothing);
    assert_eq!(Table::<Pair>::lay_out(&recover, 8).entries(&recover).count(), 0);
}

#[test]
fn a_record_that_something_wrote_into_is_found() {
    let (memory, _) = prepared();
    // The first record's second word: after header, log and check word.
    memory[LOG + 32 + 2].fetch_add(1, Ordering::Relaxed);
    let state = open(memory, UNLIMITED);
    assert_eq!(state.pairs.get(&state.recover, 0), Entry::Damaged);
    assert_eq!(state.pairs.get(&state.recover, 0).record(), None);
    assert_eq!(state.pairs.get(&state.recover, 1), Entry::Some(Pair(11, 10)));
}

#[test]
fn a_log_that_makes_no_sense_is_not_followed() {
    for used in [1, 2, 33, u64::MAX] {
        let (memory, _) = prepared();
        memory[LOG].store(3, Ordering::Relaxed);
        memory[USED].store(used, Ordering::Relaxed);
        assert_eq!(open(memory, UNLIMITED).found, Found::Damaged);
    }
}

#[test]
fn an_abandoned_change_has_not_happened() {
    let (memory, before) = prepared();
    let state = open(memory, UNLIMITED);
    assert_eq!(state.found, Found::State);
    state.recover.begin();
    state.pairs.set(&state.recover, 5, &Pair(1, 1));
    state.pairs.clear(&state.recover, 0);
    state.recover.abandon();
    assert_eq!(state.all(), before);
}

#[test]
fn bytes_of_an_area_stay() {
    let (memory, _) = prepared();
    let written = open(memory, UNLIMITED);
    let area = Area::lay_out(&written.recover, 11);
    area.write(&written.recover, 1, b"hello");
    let found = open(memory, UNLIMITED);
    let mut bytes = [0; 5];
    Area::lay_out(&found.recover, 11).read(&found.recover, 1, &mut bytes);
    assert_eq!(&bytes, b"hello");
}

#[test]
fn what_has_a_stamp_lasts_from_its_commit_on() {
    let (memory, _) = prepared();
    let state = open(memory, UNLIMITED);
    let first = state.recover.stamp();
    assert!(!state.recover.is_committed(first));
    state.recover.commit_stamp();
    let second = state.recover.stamp();
    let successor = open(memory, UNLIMITED);
    assert!(successor.recover.is_committed(first) && !successor.recover.is_committed(second));
}

#[test]
fn cells_are_undone_and_checked_like_records() {
    let memory = memory();
    let open = || {
        let (recover, _) = Recover::open(Keep::simulated(memory, UNLIMITED), 3, 16);
        let cells = Cells::lay_out(&recover, 8);
        (recover, cells)
    };
    let (recover, cells) = open();
    cells.put_unreferenced(&recover, 2, 77);
    cells.set(&recover, 3, (1 << VALUE_BITS) - 1);
    recover.commit();
    cells.set(&recover, 2, 78);
    cells.clear(&recover, 3);
    let (recover, cells) = open();
    assert_eq!((cells.get(&recover, 2), cells.get(&recover, 3)), (Entry::Some(77), Entry::Some((1 << VALUE_BITS) - 1)));
    assert_eq!(cells.get(&recover, 4), Entry::Empty);
    memory[LOG + 32 + 2].fetch_xor(1 << 20, Ordering::Relaxed);
    assert_eq!(cells.get(&recover, 2), Entry::Damaged);
}
