//! futex(2).

use abi::{Endpoint, Errno, call::KernelCall};

use crate::world::{BUFFER, PM, RS, World};

const FUTEX: u64 = 202;
const WAIT: u64 = 128;
const WAKE: u64 = 129;
const WAIT_BITSET: u64 = 128 + 9;
const WAKE_BITSET: u64 = 128 + 10;

/// Two threads of one program (one space) and one of another.
fn programs() -> (World, [usize; 3]) {
    let mut w = World::new();
    w.service(PM);
    w.kernel_call(RS, KernelCall::Route, &[FUTEX, 0]).expect("routed");
    let threads = [w.application(), w.application(), w.application()];
    let space = w.space(threads[0].slot()) as u64;
    w.kernel_call(RS, KernelCall::SpaceSet, &[threads[1].0 as u64, space]).expect("shared");
    (w, threads.map(Endpoint::slot))
}

fn futex(w: &mut World, slot: usize, operation: u64, value: u64, limit: u64, bits: u64) {
    w.linux_call(slot, FUTEX, [BUFFER, operation, value, limit, 0, bits]);
}

#[test]
fn a_waiter_is_woken_by_a_thread_of_its_space_only() {
    let (mut w, [one, two, other]) = programs();
    futex(&mut w, one, WAIT, 0, 0, 0);
    assert!(!w.is_ready(one));
    futex(&mut w, other, WAKE, 1, 0, 0);
    assert_eq!(w.result(other), Ok(0));
    futex(&mut w, two, WAKE, 1, 0, 0);
    assert_eq!(w.result(two), Ok(1));
    assert!(w.is_ready(one));
    assert_eq!(w.result(one), Ok(0));
}

#[test]
fn a_changed_value_is_not_waited_for() {
    let (mut w, [one, ..]) = programs();
    futex(&mut w, one, WAIT, 1, 0, 0);
    assert_eq!(w.result(one), Err(Errno::EAGAIN));
}

#[test]
fn a_time_limit_ends_the_wait() {
    let (mut w, [one, two, _]) = programs();
    let space = w.space(one);
    w.m.poke(space, BUFFER + 64, &[0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0]);
    futex(&mut w, one, WAIT, 0, BUFFER + 64, 0);
    w.m.now = 100;
    w.node.timer(&mut w.m);
    assert!(w.is_ready(one));
    assert_eq!(w.result(one), Err(Errno::ETIMEDOUT));
    futex(&mut w, two, WAKE, 1, 0, 0);
    assert_eq!(w.result(two), Ok(0));
}

#[test]
fn bits_choose_whom_to_wake() {
    let (mut w, [one, two, _]) = programs();
    futex(&mut w, one, WAIT_BITSET, 0, 0, 0b01);
    futex(&mut w, two, WAKE_BITSET, 9, 0, 0b10);
    assert_eq!(w.result(two), Ok(0));
    futex(&mut w, two, WAKE_BITSET, 9, 0, 0b11);
    assert_eq!(w.result(two), Ok(1));
    futex(&mut w, two, WAKE_BITSET, 9, 0, 0);
    assert_eq!(w.result(two), Err(Errno::EINVAL));
}

#[test]
fn interruption_ends_the_wait_and_death_leaves_the_bucket_whole() {
    let (mut w, [one, two, _]) = programs();
    w.receive(PM, Endpoint::ANY);
    futex(&mut w, one, WAIT, 0, 0, 0);
    let endpoint = w.endpoint(one).0 as u64;
    w.kernel_call(RS, KernelCall::Interrupt, &[endpoint]).expect("interrupted");
    assert!(!w.is_ready(one));
    assert_eq!(w.message(PM).source.slot(), one);
    assert_eq!(w.result(one), Err(Errno::ERESTARTSYS));
    w.primitive(PM, abi::call::REPLYREC, Endpoint(endpoint as u32), 0, 0);
    futex(&mut w, one, WAIT, 0, 0, 0);
    w.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
    futex(&mut w, two, WAKE, 9, 0, 0);
    assert_eq!(w.result(two), Ok(0));
}

#[test]
fn bad_addresses_and_operations_are_refused() {
    let (mut w, [one, ..]) = programs();
    w.linux_call(one, FUTEX, [BUFFER + 1, WAIT, 0, 0, 0, 0]);
    assert_eq!(w.result(one), Err(Errno::EINVAL));
    w.linux_call(one, FUTEX, [1 << 47, WAIT, 0, 0, 0, 0]);
    assert_eq!(w.result(one), Err(Errno::EFAULT));
    futex(&mut w, one, 77, 0, 0, 0);
    assert_eq!(w.result(one), Err(Errno::ENOSYS));
}

/// One page that two programs map, the second one at the same address.
fn shared_page() -> (World, [usize; 2]) {
    let (mut w, [one, _, other]) = programs();
    let (first, second) = (w.space(one), w.space(other));
    let frame = w.m.spaces[&first][&BUFFER].frame;
    w.m.map(second, BUFFER, frame, abi::layout::map::WRITE);
    (w, [one, other])
}

const SHARED_WAIT: u64 = 0;
const SHARED_WAKE: u64 = 1;
const REQUEUE: u64 = 128 + 3;
const CMP_REQUEUE: u64 = 128 + 4;
const SECOND: u64 = BUFFER + 16;

fn requeue(w: &mut World, slot: usize, operation: u64, [count, limit, expected]: [u64; 3]) -> Result<u64, Errno> {
    w.linux_call(slot, FUTEX, [BUFFER, operation, count, limit, SECOND, expected]);
    w.result(slot)
}

#[test]
fn a_shared_futex_is_woken_from_another_space() {
    let (mut w, [one, other]) = shared_page();
    futex(&mut w, one, SHARED_WAIT, 0, 0, 0);
    futex(&mut w, other, SHARED_WAKE, 1, 0, 0);
    assert_eq!(w.result(other), Ok(1));
    assert!(w.is_ready(one));
}

#[test]
fn private_and_shared_futexes_at_one_address_do_not_wake_each_other() {
    let (mut w, [one, two, _]) = programs();
    futex(&mut w, one, SHARED_WAIT, 0, 0, 0);
    futex(&mut w, two, WAKE, 1, 0, 0);
    assert_eq!(w.result(two), Ok(0), "a private wake-up does not reach who waits for the shared futex");
    assert!(!w.is_ready(one));
    futex(&mut w, two, SHARED_WAKE, 1, 0, 0);
    assert_eq!(w.result(two), Ok(1));
    futex(&mut w, one, WAIT, 0, 0, 0);
    futex(&mut w, two, SHARED_WAKE, 1, 0, 0);
    assert_eq!(w.result(two), Ok(0), "nor a shared one who waits for the private futex");
    assert!(!w.is_ready(one));
}

#[test]
fn a_private_futex_of_another_space_at_the_same_address_is_another_one() {
    let (mut w, [one, other]) = shared_page();
    futex(&mut w, one, WAIT, 0, 0, 0);
    futex(&mut w, other, WAKE, 1, 0, 0);
    assert_eq!(w.result(other), Ok(0));
    assert!(!w.is_ready(one));
}

#[test]
fn requeue_wakes_some_and_moves_others() {
    let (mut w, [one, two, other]) = programs();
    let space = w.space(one) as u64;
    let endpoint = w.endpoint(other).0 as u64;
    w.kernel_call(RS, KernelCall::SpaceSet, &[endpoint, space]).expect("shared");
    futex(&mut w, one, WAIT, 0, 0, 0);
    futex(&mut w, two, WAIT, 0, 0, 0);
    assert_eq!(requeue(&mut w, other, CMP_REQUEUE, [1, 1, 7]), Err(Errno::EAGAIN), "the value is another one");
    assert_eq!(requeue(&mut w, other, CMP_REQUEUE, [1, 1, 0]), Ok(2), "woken and moved");
    assert!(w.is_ready(one) && !w.is_ready(two));
    futex(&mut w, other, WAKE, 1, 0, 0);
    assert_eq!(w.result(other), Ok(0), "it waits at the first no more");
    w.linux_call(other, FUTEX, [SECOND, WAKE, 1, 0, 0, 0]);
    assert_eq!(w.result(other), Ok(1));
    assert!(w.is_ready(two));
}

#[test]
fn requeue_without_a_value_tells_only_whom_it_has_woken() {
    let (mut w, [one, two, _]) = programs();
    futex(&mut w, one, WAIT, 0, 0, 0);
    assert_eq!(requeue(&mut w, two, REQUEUE, [0, 1, 0]), Ok(0));
    assert!(!w.is_ready(one));
    w.linux_call(two, FUTEX, [SECOND, WAKE, 1, 0, 0, 0]);
    assert_eq!(w.result(two), Ok(1));
}

#[test]
fn a_wake_up_passes_over_waiters_without_a_common_bit() {
    let (mut w, [one, two, other]) = programs();
    let (space, endpoint) = (w.space(one) as u64, w.endpoint(other).0 as u64);
    w.kernel_call(RS, KernelCall::SpaceSet, &[endpoint, space]).expect("shared");
    futex(&mut w, one, WAIT_BITSET, 0, 0, 1);
    futex(&mut w, two, WAIT_BITSET, 0, 0, 6);
    futex(&mut w, other, WAKE_BITSET, 9, 0, 2);
    assert_eq!(w.result(other), Ok(1));
    assert!(w.is_ready(two) && !w.is_ready(one));
    futex(&mut w, other, WAKE_BITSET, 9, 0, 0);
    assert_eq!(w.result(other), Err(Errno::EINVAL));
}

#[test]
fn requeue_moves_at_most_its_limit_and_no_waiters_of_other_futexes() {
    let (mut w, [one, two, other]) = programs();
    let (space, third) = (w.space(one) as u64, w.application());
    w.kernel_call(RS, KernelCall::SpaceSet, &[third.0 as u64, space]).expect("shared");
    for slot in [other, one, third.slot()] {
        futex(&mut w, slot, WAIT, 0, 0, 0);
    }
    let negative = -1i32 as u32 as u64;
    assert_eq!(requeue(&mut w, two, REQUEUE, [negative, 1, 0]), Err(Errno::EINVAL));
    assert_eq!(requeue(&mut w, two, REQUEUE, [0, negative, 0]), Err(Errno::EINVAL));
    assert_eq!(requeue(&mut w, two, REQUEUE, [0, 1, 0]), Ok(0));
    w.linux_call(two, FUTEX, [SECOND, WAKE, 9, 0, 0, 0]);
    assert_eq!(w.result(two), Ok(1), "one waiter was moved");
    futex(&mut w, two, WAKE, 9, 0, 0);
    assert_eq!(w.result(two), Ok(1), "the other one still waits for the first futex");
    assert!(!w.is_ready(other), "a futex of another program at the same address is another one");
}

#[test]
fn a_wait_without_bits_is_refused() {
    let (mut w, [one, ..]) = programs();
    futex(&mut w, one, WAIT_BITSET, 0, 0, 0);
    assert_eq!(w.result(one), Err(Errno::EINVAL));
    assert!(w.is_ready(one));
}
