//! Interrupt lines and ports of drivers.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    kernel::{Notify, irq},
    privilege::{MSI, PortRange, Privileges, io, way},
};

use crate::world::{A, B, BUFFER, RS, World, all_rights};

const LINE: u64 = 4;

fn driver_rights() -> Privileges {
    let mut rights = all_rights();
    rights.irqs[0] = LINE as u8;
    rights.irq_count = 1;
    rights.ports[0] = PortRange { first: 0x3f8, last: 0x3ff };
    rights.port_count = 1;
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
fn ports_are_read_and_written_within_the_ranges_only() {
    let mut w = drivers();
    w.m.ports.insert(0x3f8, 0x41);
    assert_eq!(w.kernel_call(A, KernelCall::DevIo, &[0x3f8, io::IN | 1, 0]), Ok(0x41));
    assert_eq!(w.kernel_call(A, KernelCall::DevIo, &[0x3fc, io::OUT | 4, 0x1234]), Ok(0));
    assert_eq!(w.m.port_log, [(0x3fc, 4, 0x1234)]);
    for port in [0x3f7, 0x3fd, 0x400, 0x1_03f8, u64::MAX] {
        assert_eq!(w.kernel_call(A, KernelCall::DevIo, &[port, io::OUT | 4, 0]), Err(Errno::ECALLDENIED), "{port:#x}");
    }
    assert_eq!(w.kernel_call(A, KernelCall::DevIo, &[0x3f8, 3, 0]), Err(Errno::EINVAL));
    assert_eq!(w.m.port_log.len(), 1);
}

#[test]
fn strings_of_ports_go_to_and_from_memory() {
    let mut w = drivers();
    w.m.ports.insert(0x3f8, 0x6261);
    let space = w.space(A);
    assert_eq!(w.kernel_call(A, KernelCall::SDevIo, &[0x3f8, io::IN | 2, BUFFER, 600]), Ok(600));
    assert_eq!(w.m.peek(space, BUFFER + 1196, 4), b"abab");
    w.m.poke(space, BUFFER, b"xy");
    assert_eq!(w.kernel_call(A, KernelCall::SDevIo, &[0x3f8, io::OUT | 1, BUFFER, 2]), Ok(2));
    assert_eq!(w.m.port_log, [(0x3f8, 1, b'x' as u32), (0x3f8, 1, b'y' as u32)]);
    assert_eq!(w.kernel_call(A, KernelCall::SDevIo, &[0x3f8, io::OUT | 1, BUFFER, u64::MAX]), Err(Errno::EINVAL));
}

#[test]
fn port_instructions_of_an_emulated_driver_are_carried_out_within_its_ranges() {
    let mut w = drivers();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { io_way: way::EMULATE, ..driver_rights() });
    w.receive(RS, Endpoint::ANY);
    let space = w.space(A);
    w.m.poke(space, BUFFER, &[0xec, 0x66, 0xef, 0xe4, 0x70]);
    w.m.ports.insert(0x3fa, 0x99);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rip, frame.rdx, frame.rax) = (BUFFER, 0x3fa, 0x1100);
    w.node.exception(&mut w.m, 13, 0, 0);
    assert_eq!((w.node.frame_mut(A).rax, w.node.frame_mut(A).rip), (0x1199, BUFFER + 1));
    w.node.exception(&mut w.m, 13, 0, 0);
    assert_eq!(w.m.port_log, [(0x3fa, 2, 0x1199)]);
    assert_eq!(w.node.frame_mut(A).rip, BUFFER + 3);
    w.node.exception(&mut w.m, 13, 0, 0);
    w.next();
    assert!(!w.is_ready(A), "port 0x70 is not its");
    assert_eq!(w.message(RS).source, a);
}
