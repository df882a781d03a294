//! Who runs, and what a real-time process may call.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    kernel::{Notify, irq},
    linux::nr,
    rt::{self, control, flag},
};
use kernel_core::Next;

use super::plain;
use crate::world::{A, B, RS, World, all_rights};

const LINE: u64 = 4;

/// In real-time mode, A with a line, and two sleepers, the first one better.
fn begin() -> (World, usize, usize) {
    let mut w = super::world();
    let mut rights = all_rights();
    (rights.irqs[0], rights.irq_count) = (LINE as u8, 1);
    let driver = w.endpoint(A);
    w.set_privileges(driver, &rights);
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, irq::MASK_UNTIL_ENABLED]).expect("set");
    w.kernel_call(A, KernelCall::IrqEnable, &[3]).expect("enabled");
    w.receive(A, Endpoint::ANY);
    let (better, worse) = (w.sleeper(plain(5)), w.sleeper(plain(9)));
    (w, better, worse)
}

#[test]
fn a_driver_hears_of_its_interrupt_when_nothing_real_time_is_ready() {
    let (mut w, better, _) = begin();
    w.awaken(better);
    assert_eq!(w.next(), Next::Run(better));
    w.node.interrupt(&mut w.m, LINE as usize);
    assert!(!w.m.unmasked.contains(&(LINE as usize)), "it comes once");
    assert_eq!(w.next(), Next::Run(better), "the driver waits");
    w.sleep(better);
    let message = w.message(A);
    assert_eq!((message.source, Notify::from_message(&message).bits), (Endpoint::HARDWARE, 1 << 3));
    assert!(w.is_ready(A));
}

#[test]
fn a_better_process_runs_as_soon_as_it_is_woken_and_a_worse_one_when_it_may() {
    let (mut w, better, worse) = begin();
    w.awaken(worse);
    assert_eq!(w.next(), Next::Run(worse));
    assert_eq!(w.wake(worse, better), Next::Run(better));
    assert_eq!(w.result(worse), Ok(0));
    w.sleep(better);
    assert_eq!(w.next(), Next::Run(worse));
}

#[test]
fn a_real_time_process_makes_no_other_calls_and_ends_as_an_ordinary_one() {
    let (mut w, better, _) = begin();
    w.awaken(better);
    w.kernel_call(better, KernelCall::Yield, &[]).expect_err("not for it");
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_RTMODE)));
    w.linux_call(better, nr::GETPPID as u64, [0; 6]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_RTMODE)));
    w.linux_call(better, nr::EXIT as u64, [0; 6]);
    assert_eq!(w.result(better), Err(Errno::ENOSYS), "nobody serves it here");
    w.real_time_call(better, rt::call::SLEEP, [1, 0]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_BADPTYPE)));
}

#[test]
fn a_process_that_never_waits_becomes_ordinary() {
    let (mut w, better, _) = begin();
    w.awaken(better);
    assert_eq!(w.next(), Next::Run(better));
    w.m.now += rt::RUNAWAY_NS;
    w.node.timer(&mut w.m);
    assert!(w.is_ready(RS), "others run");
    w.real_time_call(better, rt::call::SET2NRT, [0, 0]);
    assert_eq!(w.result(better), Err(Errno(rt::error::E_MRT_BADPTYPE)));
}

#[test]
fn what_a_dead_process_held_goes_to_the_next_in_line() {
    let (mut w, better, worse) = begin();
    let mutex = flag::SEM_MUTEX | flag::SEM_PRTYORDER;
    let id = w.control(control::SEMALLOC, B, 1, [1, mutex, 0, 0, 0, 0, 0, 0]).expect("allocated");
    w.awaken(worse);
    w.real_time_call(worse, rt::call::SEMDOWN, [id, rt::FOREVER as u64]);
    w.wake(worse, better);
    w.real_time_call(better, rt::call::SEMDOWN, [id, rt::FOREVER as u64]);
    w.sleep(worse);
    assert!(!w.is_ready(better));
    let endpoint = w.endpoint(worse).0 as u64;
    w.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
    assert!(w.is_ready(better));
    assert_eq!(w.result(better), Ok(0));
}
