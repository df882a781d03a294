//! Semaphores: their attributes and names, downs and ups, who runs with whose priority, and what is counted.

use abi::{
    Errno,
    rt::{self, FOREVER, NOWAIT, call, control, error as number, flag, mode},
};
use kernel_core::Next;

use super::{error, pid, plain, world, world_with};
use crate::world::{A, C, World};

const MUTEX: u64 = flag::SEM_MUTEX | flag::SEM_PRTYORDER;
const INHERITING: u64 = MUTEX | flag::SEM_PRTYINHERIT;
const CEILING: u64 = MUTEX | flag::SEM_PRTYCEILING;

/// A semaphore of A, without a name.
fn allocate(w: &mut World, value: i64, flags: u64, ceiling: u64) -> Result<u64, Errno> {
    allocate_named(w, value, flags, ceiling, [0, 0])
}

fn allocate_named(w: &mut World, value: i64, flags: u64, ceiling: u64, [low, high]: [u64; 2]) -> Result<u64, Errno> {
    w.control(control::SEMALLOC, A, 1, [value as u64, flags, ceiling, low, high, 0, 0, 0])
}

fn value(w: &mut World, id: u64) -> i64 {
    w.look(control::GETSEMATTR, id).expect("allocated")[0] as i64
}

/// Ups, downs, most waiters.
fn counts(w: &mut World, id: u64) -> [u64; 3] {
    let words = w.look(control::GETSEMSTAT, id).expect("allocated");
    assert_eq!(words[3..], [0; 5]);
    [words[0], words[1], words[2]]
}

fn down(w: &mut World, slot: usize, id: u64, limit: i64) -> Next {
    w.real_time_call(slot, call::SEMDOWN, [id, limit as u64])
}

fn up(w: &mut World, slot: usize, id: u64) -> Next {
    w.real_time_call(slot, call::SEMUP, [id, 0])
}

#[test]
fn attributes_are_read_back_as_they_were_given() {
    let mut w = world_with(mode::BPIP);
    let cases = [
        (0, 0, 1),
        (7, flag::SEM_PRTYORDER, 1),
        (0, flag::SEM_MUTEX, 1),
        (1, INHERITING, 1),
        (1, CEILING, 9),
        (1, flag::SEM_MUTEX | flag::SEM_PRTYCEILING, 46),
        (i32::MAX as i64, 0, 5),
    ];
    for (number, (value, flags, ceiling)) in cases.into_iter().enumerate() {
        let name = [0x6162 + number as u64, 0x6364];
        let id = allocate_named(&mut w, value, flags, ceiling, name).expect("allocated");
        assert_eq!(id, number as u64, "the first free one");
        let words = [value as u64, flags, ceiling, name[0], name[1], 0, 0, 0];
        assert_eq!(w.look(control::GETSEMATTR, id), Ok(words));
        assert_eq!(w.look(control::GETSEMINT, id), Ok([id, A as u64, 0, 0, 0, 0, 0, 0]));
        assert_eq!(counts(&mut w, id), [0, 0, 0]);
    }
    for (given, taken) in [(0, 1), (46, 46), (47, 46), (u64::MAX, 46)] {
        let id = allocate(&mut w, 1, CEILING, given).expect("allocated");
        assert_eq!(w.look(control::GETSEMATTR, id).expect("allocated")[2], taken, "ceiling {given}");
    }
}

#[test]
fn a_mutex_inherits_only_while_the_system_lets_it() {
    let mut w = world();
    let id = allocate(&mut w, 1, INHERITING, 0).expect("allocated");
    assert_eq!(w.look(control::GETSEMATTR, id).expect("allocated")[1], MUTEX);
}

#[test]
fn what_a_semaphore_cannot_be_is_refused() {
    let mut w = world_with(mode::BPIP);
    for flags in [flag::SEM_PRTYINHERIT, flag::SEM_PRTYINHERIT | flag::SEM_MUTEX, flag::SEM_PRTYCEILING] {
        assert_eq!(allocate(&mut w, 1, flags, 1), error(number::E_MRT_BADFLAGS), "{flags}");
    }
    for (value, flags) in [(-1, 0), (-1, MUTEX), (2, MUTEX), (i32::MIN as i64, 0)] {
        assert_eq!(allocate(&mut w, value, flags, 1), error(number::E_MRT_BADVALUE), "{value}");
    }
    for id in [256, 257, u64::MAX] {
        for operation in
            [control::SEMFREE, control::GETSEMATTR, control::GETSEMSTAT, control::CLRSEMSTAT, control::GETSEMINT]
        {
            assert_eq!(w.look(operation, id), error(number::E_MRT_BADSEM), "{operation} {id}");
        }
    }
    for operation in [control::SEMFREE, control::GETSEMATTR, control::GETSEMSTAT, control::CLRSEMSTAT] {
        assert_eq!(w.look(operation, 255), error(number::E_MRT_FREESEM), "{operation}");
    }
    assert_eq!(w.look(control::GETSEMINT, 255), Ok([255, u64::MAX, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn names_are_unique_and_end_with_their_semaphore() {
    let mut w = world();
    let find = |w: &mut World, name: [u64; 2]| w.control(control::GETSEMID, C, 0, [name[0], name[1], 0, 0, 0, 0, 0, 0]);
    let ids = [[5, 6], [5, 0], [0, 6]].map(|name| allocate_named(&mut w, 1, 0, 1, name).expect("allocated"));
    for (name, id) in [[5, 6], [5, 0], [0, 6]].into_iter().zip(ids) {
        assert_eq!(find(&mut w, name), Ok(id));
        assert_eq!(allocate_named(&mut w, 1, 0, 1, name), error(number::E_MRT_BADNAME));
    }
    assert_eq!(find(&mut w, [6, 5]), error(number::E_MRT_BADSEM));
    for _ in 0..2 {
        assert!(allocate(&mut w, 1, 0, 1).is_ok(), "many have no name");
    }
    assert_eq!(find(&mut w, [0, 0]), error(number::E_MRT_BADSEM));
    w.control(control::SEMFREE, A, ids[1], [0; 8]).expect("freed");
    assert_eq!(find(&mut w, [5, 0]), error(number::E_MRT_BADSEM));
    assert_eq!(allocate_named(&mut w, 1, 0, 1, [5, 0]), Ok(ids[1]));
}

#[test]
fn semaphores_run_out_and_come_back() {
    let mut w = world();
    for id in 0..rt::SEMAPHORES as u64 {
        assert_eq!(allocate(&mut w, 1, 0, 1), Ok(id));
    }
    assert_eq!(allocate(&mut w, 1, 0, 1), error(number::E_MRT_NOSEM));
    assert_eq!(w.control(control::SEMFREE, C, 77, [0; 8]), Err(Errno::EPERM), "another one's");
    assert_eq!(w.control(control::SEMFREE, A, 77, [0; 8]), Ok(0));
    assert_eq!(w.control(control::SEMFREE, A, 77, [0; 8]), error(number::E_MRT_FREESEM));
    assert_eq!(allocate(&mut w, 3, 0, 1), Ok(77));
    assert_eq!(value(&mut w, 77), 3);
}

#[test]
fn downs_take_from_the_value_and_wait_when_nothing_is_left() {
    let mut w = world();
    let id = allocate(&mut w, 2, 0, 1).expect("allocated");
    let slots = [w.sleeper(plain(5)), w.sleeper(plain(6)), w.sleeper(plain(7))];
    w.awaken(slots[0]);
    for _ in 0..2 {
        assert_eq!(down(&mut w, slots[0], id, NOWAIT), Next::Run(slots[0]));
        assert_eq!(w.result(slots[0]), Ok(0));
    }
    down(&mut w, slots[0], id, NOWAIT);
    assert_eq!(w.result(slots[0]), error(number::E_TRY_AGAIN));
    down(&mut w, slots[0], id, FOREVER);
    w.awaken(slots[1]);
    down(&mut w, slots[1], id, FOREVER);
    assert_eq!(value(&mut w, id), -2);
    assert_eq!(w.look(control::GETSEMINT, id).expect("exists")[1..3], [A as u64, 2]);
    assert_eq!(counts(&mut w, id), [0, 4, 2]);
    w.awaken(slots[2]);
    w.scrub(slots[0]);
    assert_eq!(up(&mut w, slots[2], id), Next::Run(slots[0]));
    assert_eq!((w.result(slots[0]), w.result(slots[2])), (Ok(0), Ok(0)));
    w.sleep(slots[0]);
    assert_eq!(up(&mut w, slots[2], id), Next::Run(slots[1]));
    w.sleep(slots[1]);
    assert_eq!(up(&mut w, slots[2], id), Next::Run(slots[2]));
    w.sleep(slots[2]);
    assert_eq!((value(&mut w, id), counts(&mut w, id)), (1, [3, 4, 2]));
    w.control(control::CLRSEMSTAT, C, id, [0; 8]).expect("cleared");
    assert_eq!((value(&mut w, id), counts(&mut w, id)), (1, [0, 0, 0]));
}

#[test]
fn waiters_go_on_in_the_order_of_arrival_or_of_priority() {
    for (flags, order) in [(0, [0, 1, 2]), (flag::SEM_PRTYORDER, [2, 0, 1])] {
        let mut w = world();
        let id = allocate(&mut w, 0, flags, 1).expect("allocated");
        let slots = [8, 9, 7].map(|priority| w.sleeper(plain(priority)));
        let giver = w.sleeper(plain(20));
        for slot in slots {
            w.awaken(slot);
            down(&mut w, slot, id, FOREVER);
        }
        w.awaken(giver);
        for number in order {
            assert_eq!(up(&mut w, giver, id), Next::Run(slots[number]), "flags {flags}");
            w.sleep(slots[number]);
        }
    }
}

#[test]
fn a_mutex_that_is_locked_from_the_beginning_is_nobodys_and_the_first_up_passes() {
    for flags in [INHERITING, CEILING] {
        let mut w = world_with(mode::BPIP);
        let (creator, waiter, giver) = (w.sleeper(plain(30)), w.sleeper(plain(5)), w.sleeper(plain(7)));
        let words = [0, flags, 4, 0, 0, 0, 0, 0];
        let id = w.control(control::SEMALLOC, creator, pid(creator), words).expect("allocated");
        w.awaken(giver);
        assert_eq!(w.calls(giver, call::SEMDOWN, [id, NOWAIT as u64]), error(number::E_TRY_AGAIN));
        w.sleep(giver);
        w.awaken(waiter);
        down(&mut w, waiter, id, FOREVER);
        assert_eq!(w.priority_of(creator), 30, "who has allocated it inherits nothing");
        w.awaken(giver);
        assert_eq!(up(&mut w, giver, id), Next::Run(waiter));
        assert_eq!((w.result(waiter), w.result(giver)), (Ok(0), Ok(0)));
        w.sleep(waiter);
        assert_eq!(w.calls(giver, call::SEMUP, [id, 0]), Err(Errno::EPERM), "it is the waiter's");
        w.sleep(giver);
        assert_eq!(value(&mut w, id), 0);
    }
}

#[test]
fn a_time_limit_ends_the_wait() {
    let mut w = world();
    let id = allocate(&mut w, 0, 0, 1).expect("allocated");
    let slot = w.process(plain(5));
    assert_ne!(down(&mut w, slot, id, 4), Next::Run(slot));
    assert_ne!(w.pass(3), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot));
    assert_eq!(w.result(slot), error(number::E_MRT_TIMEOUT));
    w.sleep(slot);
    assert_eq!(value(&mut w, id), 0);
    assert_eq!(w.look(control::GETPSTAT, pid(slot)).expect("known")[0], 1);
}

#[test]
fn semaphores_that_do_not_exist_are_refused() {
    let mut w = world();
    let id = allocate(&mut w, 0, 0, 1).expect("allocated");
    let slot = w.process(plain(5));
    for bad in [id + 1, 255, 256, 257, 1 << 16, u64::MAX] {
        for call in [call::SEMDOWN, call::SEMUP] {
            assert_eq!(w.calls(slot, call, [bad, 0]), error(number::E_MRT_BADSEM), "{call:#x} {bad}");
        }
    }
}

#[test]
fn the_end_of_a_semaphore_ends_the_waits_for_it() {
    let mut w = world();
    let id = allocate(&mut w, 0, 0, 1).expect("allocated");
    let slots = [w.sleeper(plain(5)), w.sleeper(plain(6))];
    for slot in slots {
        w.awaken(slot);
        down(&mut w, slot, id, FOREVER);
    }
    w.control(control::SEMFREE, A, id, [0; 8]).expect("freed");
    for slot in slots {
        assert_eq!(w.next(), Next::Run(slot));
        assert_eq!(w.result(slot), error(number::E_MRT_EXITING));
        w.sleep(slot);
    }
}

#[test]
fn semaphores_end_with_the_process_that_has_allocated_them() {
    let mut w = world();
    let (creator, waiter) = (w.sleeper(plain(5)), w.sleeper(plain(6)));
    let id = w.control(control::SEMALLOC, creator, pid(creator), [0; 8]).expect("allocated");
    let other = allocate(&mut w, 0, 0, 1).expect("allocated");
    assert_eq!(w.look(control::GETSEMINT, id).expect("exists")[1], creator as u64);
    w.awaken(waiter);
    down(&mut w, waiter, id, FOREVER);
    w.destroys(creator);
    assert_eq!(w.next(), Next::Run(waiter));
    assert_eq!(w.result(waiter), error(number::E_MRT_EXITING));
    w.sleep(waiter);
    assert_eq!(w.look(control::GETSEMATTR, id), error(number::E_MRT_FREESEM));
    assert!(w.look(control::GETSEMATTR, other).is_ok());
}

#[test]
fn a_mutex_is_given_back_by_its_owner_only_and_goes_to_the_next() {
    let mut w = world();
    let id = allocate(&mut w, 1, MUTEX, 1).expect("allocated");
    let (owner, next) = (w.sleeper(plain(6)), w.sleeper(plain(5)));
    w.awaken(owner);
    assert_eq!(w.calls(owner, call::SEMUP, [id, 0]), Err(Errno::EPERM));
    assert_eq!(w.calls(owner, call::SEMDOWN, [id, NOWAIT as u64]), Ok(0));
    assert_eq!(w.calls(owner, call::SEMDOWN, [id, FOREVER as u64]), Err(Errno::ELOCKED), "it would wait for itself");
    w.wake(owner, next);
    assert_eq!(w.calls(next, call::SEMUP, [id, 0]), Err(Errno::EPERM));
    down(&mut w, next, id, FOREVER);
    assert_eq!(up(&mut w, owner, id), Next::Run(next));
    assert_eq!(w.calls(next, call::SEMUP, [id, 0]), Ok(0));
}

#[test]
fn the_owner_of_an_inheriting_mutex_runs_with_the_best_priority_of_its_waiters() {
    let mut w = world_with(mode::BPIP);
    let id = allocate(&mut w, 1, INHERITING, 1).expect("allocated");
    let (owner, between, best) = (w.sleeper(plain(30)), w.sleeper(plain(20)), w.sleeper(plain(10)));
    w.awaken(owner);
    down(&mut w, owner, id, FOREVER);
    w.wake(owner, between);
    assert_eq!(w.wake(between, best), Next::Run(best));
    assert_eq!(down(&mut w, best, id, FOREVER), Next::Run(owner), "before the one between");
    w.sleep(owner);
    w.sleep(between);
    assert_eq!(w.priority_of(owner), 10);
    w.awaken(owner);
    assert_eq!(up(&mut w, owner, id), Next::Run(best));
    w.sleep(best);
    w.sleep(owner);
    assert_eq!(w.priority_of(owner), 30);
}

#[test]
fn a_ceiling_is_the_priority_of_the_owner_and_none_better_may_have_it() {
    let mut w = world();
    let id = allocate(&mut w, 1, CEILING, 10).expect("allocated");
    let (owner, better, equal) = (w.sleeper(plain(30)), w.sleeper(plain(9)), w.sleeper(plain(10)));
    w.awaken(better);
    assert_eq!(w.calls(better, call::SEMDOWN, [id, FOREVER as u64]), error(number::E_MRT_BADPRTY));
    w.sleep(better);
    w.awaken(owner);
    assert_eq!(w.calls(owner, call::SEMDOWN, [id, FOREVER as u64]), Ok(0));
    assert_eq!(w.wake(owner, equal), Next::Run(owner), "it is as good");
    assert_eq!(up(&mut w, owner, id), Next::Run(equal), "and is not any more");
    w.sleep(equal);
    w.sleep(owner);
    assert_eq!(w.priority_of(owner), 30);
}

#[test]
fn semaphores_of_a_process_without_attributes_end_with_it_too() {
    let mut w = world();
    let creator = w.application().slot();
    let id = w.control(control::SEMALLOC, creator, pid(creator), [0; 8]).expect("allocated");
    assert!(w.look(control::GETPATTR, pid(creator)).is_ok(), "it is known from now on");
    w.destroys(creator);
    assert_eq!(w.look(control::GETSEMATTR, id), error(number::E_MRT_FREESEM));
}

/// The owner has three mutexes; giving back the one in the middle leaves the priorities of the others.
#[test]
fn mutexes_are_given_back_in_any_order() {
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1]] {
        let mut w = world_with(mode::BPIP);
        let ids = [(); 3].map(|()| allocate(&mut w, 1, INHERITING, 1).expect("allocated"));
        let owner = w.sleeper(plain(30));
        let waiters = [11, 12, 13].map(|priority| w.sleeper(plain(priority)));
        w.awaken(owner);
        for id in ids {
            assert_eq!(w.calls(owner, call::SEMDOWN, [id, NOWAIT as u64]), Ok(0));
        }
        w.sleep(owner);
        for (waiter, id) in waiters.into_iter().zip(ids) {
            w.awaken(waiter);
            down(&mut w, waiter, id, FOREVER);
        }
        let mut left = vec![11, 12, 13];
        for number in order {
            assert_eq!(w.priority_of(owner), left.iter().copied().min().expect("one is left"));
            w.awaken(owner);
            w.real_time_call(owner, call::SEMUP, [ids[number], 0]);
            left.retain(|priority| *priority != 11 + number as u64);
            while let Next::Run(slot) = w.next()
                && (slot == owner || waiters.contains(&slot))
            {
                assert_eq!(w.result(slot), Ok(0));
                w.sleep(slot);
            }
        }
        assert_eq!(w.priority_of(owner), 30, "{order:?}");
    }
}
