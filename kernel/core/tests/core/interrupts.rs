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
