//! Interrupt lines of drivers.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    kernel::{Notify, irq},
    privilege::{MSI, Privileges},
};

use crate::world::{A, B, RS, World, all_rights};

const LINE: u64 = 4;

fn driver_rights() -> Privileges {
    let mut rights = all_rights();
    rights.irqs[0] = LINE as u8;
    rights.irq_count = 1;
    rights
}

fn drivers() -> World {
    let mut w = World::with_services();
    for slot in [A, B] {
        let endpoint = w.endpoint(slot);
        w.set_privileges(endpoint, &driver_rights());
    }
    w
}

#[test]
fn an_interrupt_notifies_its_driver_and_stays_masked_until_enabled() {
    let mut w = drivers();
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, irq::MASK_UNTIL_ENABLED]).expect("set");
    assert!(!w.m.unmasked.contains(&4));
    w.kernel_call(A, KernelCall::IrqEnable, &[3]).expect("enabled");
    assert!(w.m.unmasked.contains(&4));
    w.receive(A, Endpoint::ANY);
    w.node.interrupt(&mut w.m, 4);
    assert!(!w.m.unmasked.contains(&4));
    let message = w.message(A);
    assert_eq!((message.source, Notify::from_message(&message).bits), (Endpoint::HARDWARE, 1 << 3));
}

#[test]
fn interrupts_before_the_driver_listens_are_gathered() {
    let mut w = drivers();
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, irq::REENABLE]).expect("set");
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 5, irq::REENABLE]).expect("set twice");
    w.node.interrupt(&mut w.m, 4);
    w.node.interrupt(&mut w.m, 4);
    assert!(w.m.unmasked.contains(&4));
    w.receive(A, Endpoint::ANY);
    assert_eq!(Notify::from_message(&w.message(A)).bits, 1 << 3 | 1 << 5);
    w.receive(A, Endpoint::ANY);
    assert!(!w.is_ready(A));
}

#[test]
fn a_shared_line_opens_when_all_its_drivers_have_enabled_it() {
    let mut w = drivers();
    for slot in [A, B] {
        w.kernel_call(slot, KernelCall::IrqSet, &[LINE, 0, irq::MASK_UNTIL_ENABLED]).expect("set");
    }
    w.kernel_call(A, KernelCall::IrqEnable, &[0]).expect("enabled");
    assert!(!w.m.unmasked.contains(&4));
    w.kernel_call(B, KernelCall::IrqEnable, &[0]).expect("enabled");
    assert!(w.m.unmasked.contains(&4));
    w.node.interrupt(&mut w.m, 4);
    let b = w.endpoint(B);
    w.kernel_call(A, KernelCall::IrqEnable, &[0]).expect("enabled");
    assert!(!w.m.unmasked.contains(&4));
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 1]).expect("destroyed");
    assert!(w.m.unmasked.contains(&4), "the dead driver does not hold the line");
}

#[test]
fn a_disabled_line_stays_masked_until_its_driver_enables_it() {
    let mut w = drivers();
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, irq::REENABLE]).expect("set");
    w.kernel_call(A, KernelCall::IrqDisable, &[3]).expect("disabled");
    assert!(!w.m.unmasked.contains(&4));
    w.kernel_call(A, KernelCall::IrqEnable, &[3]).expect("enabled");
    assert!(w.m.unmasked.contains(&4));
    assert_eq!(w.kernel_call(A, KernelCall::IrqDisable, &[4]), Err(Errno::EINVAL));
}

#[test]
fn the_death_of_a_driver_gives_its_line_back() {
    let mut w = drivers();
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 0, irq::REENABLE]).expect("set");
    let a = w.endpoint(A);
    w.kernel_call(RS, KernelCall::Destroy, &[a.0 as u64, 1]).expect("destroyed");
    assert!(w.m.opened.is_empty() && w.m.unmasked.is_empty());
    w.node.interrupt(&mut w.m, 4);
    w.service(A);
    w.receive(A, Endpoint::ANY);
    assert!(!w.is_ready(A));
}

#[test]
fn lines_outside_the_privileges_are_refused() {
    let mut w = drivers();
    assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[5, 0, 0]), Err(Errno::ECALLDENIED));
    assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[LINE, 64, 0]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[256 + LINE, 0, 0]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[LINE, 0, 2]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::IrqEnable, &[0]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::MsiSet, &[0]), Err(Errno::ECALLDENIED));
}

#[test]
fn message_signalled_interrupts_notify_like_lines() {
    let mut w = drivers();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { flags: MSI, ..driver_rights() });
    assert_eq!(w.kernel_call(A, KernelCall::MsiSet, &[9]), Ok(0));
    assert_eq!((w.node.frame_mut(A).rdi, w.node.frame_mut(A).rsi), (0xfee0_0000, 0x40));
    w.receive(A, Endpoint::ANY);
    w.node.interrupt(&mut w.m, 100);
    assert_eq!(Notify::from_message(&w.message(A)).bits, 1 << 9);
}

#[test]
fn hooks_have_numbers_up_to_63_each_for_one_line() {
    let mut w = drivers();
    for bit in 0..64 {
        assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[LINE, bit, irq::REENABLE]), Ok(0), "{bit}");
    }
    assert_eq!(w.kernel_call(A, KernelCall::IrqSet, &[LINE, 7, irq::REENABLE]), Err(Errno::EBUSY));
    assert_eq!(w.kernel_call(B, KernelCall::IrqSet, &[LINE, 0, irq::REENABLE]), Err(Errno::EAGAIN), "all are in use");
    assert_eq!(w.kernel_call(A, KernelCall::IrqRemove, &[63]), Ok(0));
    assert_eq!(w.kernel_call(B, KernelCall::IrqSet, &[LINE, 0, irq::REENABLE]), Ok(0));
    w.node.interrupt(&mut w.m, LINE as usize);
    w.receive(A, Endpoint::ANY);
    assert_eq!(Notify::from_message(&w.message(A)).bits, u64::MAX >> 1);
    w.receive(B, Endpoint::ANY);
    assert_eq!(Notify::from_message(&w.message(B)).bits, 1);
}

#[test]
fn a_line_is_closed_with_its_last_hook() {
    let mut w = drivers();
    let line = LINE as usize;
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 1, irq::REENABLE]).expect("set");
    w.kernel_call(B, KernelCall::IrqSet, &[LINE, 1, irq::MASK_UNTIL_ENABLED]).expect("set");
    assert!(!w.m.unmasked.contains(&line), "B has not enabled it");
    assert_eq!(w.kernel_call(B, KernelCall::IrqRemove, &[1]), Ok(0));
    assert!(w.m.unmasked.contains(&line) && w.m.opened.contains(&line), "A's is left");
    assert_eq!(w.kernel_call(B, KernelCall::IrqRemove, &[1]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::IrqRemove, &[1]), Ok(0));
    assert!(!w.m.unmasked.contains(&line) && !w.m.opened.contains(&line));
    for call in [KernelCall::IrqEnable, KernelCall::IrqDisable, KernelCall::IrqRemove] {
        assert_eq!(w.kernel_call(A, call, &[1]), Err(Errno::EINVAL));
    }
}

#[test]
fn an_interrupt_of_another_line_tells_a_driver_nothing() {
    let mut w = drivers();
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 1, irq::REENABLE]).expect("set");
    w.receive(A, Endpoint::ANY);
    w.m.unmasked.insert(5);
    w.node.interrupt(&mut w.m, 5);
    assert!(!w.is_ready(A));
    assert!(!w.m.unmasked.contains(&5), "a line without a driver is masked");
    assert!(w.m.unmasked.contains(&(LINE as usize)));
}

#[test]
fn a_line_that_its_driver_enables_itself_stays_masked_while_one_of_two_has_not() {
    let mut w = drivers();
    let line = LINE as usize;
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 1, irq::REENABLE]).expect("set");
    w.kernel_call(B, KernelCall::IrqSet, &[LINE, 1, irq::MASK_UNTIL_ENABLED]).expect("set");
    w.kernel_call(B, KernelCall::IrqEnable, &[1]).expect("enabled");
    assert!(w.m.unmasked.contains(&line));
    w.node.interrupt(&mut w.m, line);
    assert!(!w.m.unmasked.contains(&line));
    w.kernel_call(A, KernelCall::IrqEnable, &[1]).expect("no matter");
    assert!(!w.m.unmasked.contains(&line));
    w.kernel_call(B, KernelCall::IrqEnable, &[1]).expect("enabled");
    assert!(w.m.unmasked.contains(&line));
}

#[test]
fn interrupts_wait_for_a_real_time_driver_that_the_one_before_has_woken() {
    let mut w = drivers();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    let mut rights = driver_rights();
    rights.irqs[0] = 9;
    w.set_privileges(b, &rights);
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 1, irq::REENABLE]).expect("set");
    w.kernel_call(B, KernelCall::IrqSet, &[9, 2, irq::REENABLE]).expect("set");
    for slot in [A, B] {
        w.receive(slot, Endpoint::ANY);
    }
    w.kernel_call(RS, KernelCall::Schedule, &[a.0 as u64, abi::call::REAL_TIME + 5, 0]).expect("scheduled");
    w.make_current(RS);
    w.node.interrupt(&mut w.m, LINE as usize);
    w.scrub(B);
    w.node.interrupt(&mut w.m, 9);
    assert_eq!(w.next(), kernel_core::Next::Run(A));
    assert_eq!(w.node.frame_mut(B).rax, 0xdead, "B is not told yet");
    w.receive(A, Endpoint::ANY);
    assert_eq!(Notify::from_message(&w.message(B)).bits, 1 << 2);
}

#[test]
fn message_signalled_interrupts_need_a_free_hook() {
    let mut w = drivers();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { flags: MSI, ..driver_rights() });
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 1, irq::REENABLE]).expect("set");
    assert_eq!(w.kernel_call(A, KernelCall::MsiSet, &[1]), Err(Errno::EBUSY));
    assert_eq!(w.kernel_call(A, KernelCall::MsiSet, &[64]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::MsiSet, &[63]), Ok(0));
    w.receive(A, Endpoint::ANY);
    for _ in 0..2 {
        w.m.unmasked.insert(100);
        w.node.interrupt(&mut w.m, 100);
        assert!(w.m.unmasked.contains(&100), "it is never masked");
        assert_eq!(Notify::from_message(&w.message(A)).bits, 1 << 63);
        w.receive(A, Endpoint::ANY);
    }
}
