//! What a thread that ends releases for others: its robust futexes, and the word that others join it by.

use super::{DONE, MEMORY, World};
use abi::Endpoint;
use abi::linux::nr;

const HEAD: u64 = MEMORY.start + 0x1000;
const OFFSET: u64 = 0x20;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const WAITERS: u64 = 0x8000_0000;
const OWNER_DIED: u64 = 0x4000_0000;
/// The bit of a pointer to an entry whose futex passes on priorities.
const INHERITS: u64 = 1;
const BESIDE: u64 = 0x7777_7777 << 32;

/// A process with a second thread, which is about to end with a robust list.
struct Scene {
    world: World,
    first: Endpoint,
    second: Endpoint,
    tid: u64,
}

fn scene() -> Scene {
    let mut world = World::new();
    let (_, first) = world.fork(world.init);
    let tid = world.call(first, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    Scene { world, first, second, tid }
}

/// The entry with this number, and the address of its futex.
fn entry(n: u64) -> u64 {
    HEAD + 0x100 * (n + 1)
}

fn futex(n: u64) -> u64 {
    entry(n) + OFFSET
}

impl Scene {
    /// Links these entries (perhaps marked) in this order; `pending` is being locked or unlocked. 0: none.
    fn link(&mut self, entries: &[u64], pending: u64) {
        let mut place = HEAD;
        for entry in entries {
            self.world.write(self.first, place, &[*entry]);
            place = entry & !INHERITS;
        }
        self.world.write(self.first, place, &[HEAD]);
        self.world.write(self.first, HEAD + 8, &[OFFSET, pending]);
        assert_eq!(self.world.call(self.second, nr::SET_ROBUST_LIST, &[HEAD, 24]), DONE);
    }

    fn set(&mut self, n: u64, word: u64) {
        self.world.write(self.first, futex(n), &[word | BESIDE]);
    }

    fn get(&mut self, n: u64) -> u64 {
        let word = self.world.read(self.first, futex(n));
        assert_eq!(word & BESIDE, BESIDE, "four bytes are written");
        word as u32 as u64
    }

    fn end(&mut self) {
        self.world.call(self.second, nr::EXIT, &[0]);
    }

    /// The numbers of the futexes of which a waiter was woken.
    fn woken(&self) -> std::vec::Vec<u64> {
        let woken = &self.world.pm.programs.system.futexes_woken;
        assert!(woken.iter().all(|(thread, _)| *thread == self.second));
        woken.iter().map(|(_, address)| (address - OFFSET - HEAD) / 0x100 - 1).collect()
    }
}

#[test]
fn the_futexes_of_a_thread_that_ends_are_marked() {
    let mut s = scene();
    s.set(0, s.tid);
    s.set(1, s.tid | WAITERS);
    s.set(2, s.tid + 1);
    s.set(3, s.tid | OWNER_DIED);
    s.link(&[entry(0), entry(1), entry(2), entry(3)], 0);
    s.world.write(s.first, HEAD + OFFSET, &[s.tid]);
    s.end();
    assert_eq!(s.world.read(s.first, HEAD + OFFSET), s.tid, "the head is no entry");
    assert_eq!([0, 1, 2, 3].map(|n| s.get(n)), [OWNER_DIED, OWNER_DIED | WAITERS, s.tid + 1, OWNER_DIED]);
    assert_eq!(s.woken(), [0, 1, 3]);
}

#[test]
fn a_futex_with_priority_inheritance_is_marked_too() {
    let mut s = scene();
    s.set(0, s.tid);
    s.set(1, s.tid);
    s.link(&[entry(0) | INHERITS, entry(1)], 0);
    s.end();
    assert_eq!([s.get(0), s.get(1)], [OWNER_DIED; 2]);
    assert_eq!(s.woken(), [0, 1]);
}

#[test]
fn a_futex_that_is_being_locked_is_marked_once() {
    for pending in [entry(1), entry(1) | INHERITS] {
        let mut s = scene();
        s.set(0, s.tid);
        s.set(1, s.tid);
        s.link(&[entry(0), pending], pending);
        s.end();
        assert_eq!([s.get(0), s.get(1)], [OWNER_DIED; 2]);
        assert_eq!(s.woken(), [0, 1]);
    }
    let mut s = scene();
    s.set(1, s.tid);
    s.link(&[], entry(1));
    s.end();
    assert_eq!(s.get(1), OWNER_DIED);
}

#[test]
fn the_list_may_end_in_its_marked_head() {
    let mut s = scene();
    s.set(0, s.tid);
    s.link(&[entry(0)], 0);
    s.world.write(s.first, entry(0), &[HEAD | INHERITS]);
    s.end();
    assert_eq!(s.woken(), [0]);
}

#[test]
fn a_list_that_is_a_circle_ends_after_2048_entries() {
    let mut s = scene();
    s.set(0, s.tid + 1);
    s.set(1, s.tid);
    s.link(&[entry(0)], entry(1));
    s.world.write(s.first, entry(0), &[entry(0)]);
    s.end();
    assert_eq!(s.woken(), [1]);
}

#[test]
fn a_corrupt_list_ends_the_walk_and_nothing_else() {
    for (next, futex_offset) in [(8, OFFSET), (entry(1), u64::MAX - 7)] {
        let mut s = scene();
        s.set(0, s.tid);
        s.set(1, s.tid);
        s.link(&[entry(0), entry(1)], 0);
        s.world.write(s.first, entry(0), &[next]);
        s.world.write(s.first, HEAD + 8, &[futex_offset]);
        s.end();
        assert!(!s.world.is_there(s.second) && s.world.is_there(s.first));
        assert_eq!(s.get(1), s.tid);
    }
    let mut s = scene();
    assert_eq!(s.world.call(s.second, nr::SET_ROBUST_LIST, &[8, 24]), DONE);
    s.end();
    assert!(!s.world.is_there(s.second));
}

#[test]
fn a_futex_that_is_not_aligned_is_left_alone() {
    let mut s = scene();
    s.link(&[entry(0)], 0);
    s.world.write(s.first, HEAD + 8, &[OFFSET + 2]);
    s.world.write(s.first, futex(0), &[s.tid << 16]);
    s.end();
    assert_eq!(s.world.read(s.first, futex(0)), s.tid << 16);
    assert_eq!(s.woken(), []);
}

#[test]
fn a_killed_process_releases_its_futexes() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(world.init, nr::CLONE, &[0x100 | 17, 0, 0, 0, 0]).unwrap().unwrap();
    let owner = world.newest();
    let owner_pid = world.call(owner, nr::GETPID, &[]).unwrap().unwrap();
    world.write(owner, HEAD, &[entry(0), OFFSET, 0]);
    world.write(owner, entry(0), &[HEAD]);
    world.write(owner, futex(0), &[owner_pid]);
    assert_eq!(world.call(owner, nr::SET_ROBUST_LIST, &[HEAD, 24]), DONE);
    world.call(child, nr::KILL, &[owner_pid, 9]);
    assert_eq!(world.read(world.init, futex(0)), OWNER_DIED);
    assert_ne!(pid, owner_pid);
}

#[test]
fn the_word_of_a_joined_thread_is_cleared_with_the_thread_alone() {
    let mut s = scene();
    let word = MEMORY.start + 0x800;
    s.world.write(s.first, word, &[5]);
    s.world.call(s.second, nr::SET_TID_ADDRESS, &[8]);
    s.end();
    assert!(s.world.pm.programs.system.futexes_woken.is_empty(), "a bad address is ignored");
    s.world.call(s.first, nr::SET_TID_ADDRESS, &[word]);
    assert_eq!(s.world.read(s.first, word), 5);
}
