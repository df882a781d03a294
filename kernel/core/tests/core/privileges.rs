//! Who may call what.

use abi::{
    Endpoint, Errno,
    call::{KERNEL_CALL_NAMES, KernelCall, UNRESTRICTED},
    info,
    privilege::{MemoryRange, Privileges, check},
};

use crate::world::{A, B, BUFFER, RS, World, all_rights};

#[test]
fn every_kernel_call_needs_its_bit() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges::NONE);
    for (name, call) in KERNEL_CALL_NAMES {
        if call.bit() & UNRESTRICTED == 0 {
            assert_eq!(w.kernel_call(A, *call, &[0; 6]), Err(Errno::ECALLDENIED), "{name}");
        }
    }
    assert!(w.kernel_call(A, KernelCall::Time, &[]).is_ok());
}

#[test]
fn only_rs_sets_privileges() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.set_privileges(a, &all_rights());
    assert_eq!(w.kernel_call(A, KernelCall::PrivCtl, &[b.0 as u64, BUFFER]), Err(Errno::ECALLDENIED));
    let program = w.application();
    assert_eq!(w.try_set_privileges(program, &all_rights()), Err(Errno::EINVAL));
    assert_eq!(w.try_set_privileges(a, &Privileges { port_count: 17, ..all_rights() }), Err(Errno::EINVAL));
    assert_eq!(w.try_set_privileges(a, &Privileges { irq_count: 9, ..all_rights() }), Err(Errno::EINVAL));
}

#[test]
fn a_successor_starts_without_rights() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 1]).expect("destroyed");
    let b = w.inert_service(B);
    w.kernel_call(RS, KernelCall::Start, &[b.0 as u64]).expect("started");
    assert_eq!(w.kernel_call(B, KernelCall::SetAlarm, &[1]), Err(Errno::ECALLDENIED));
}

#[test]
fn ranges_are_checked_as_a_whole() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let mut rights = all_rights();
    rights.memory[1] = MemoryRange { start: 0x1000, bytes: 0x1000 };
    rights.irqs[0] = 7;
    rights.irq_count = 1;
    w.set_privileges(a, &rights);
    let mut is = |kind: u64, value: u64, length: u64| {
        w.kernel_call(RS, KernelCall::PrivCheck, &[a.0 as u64, kind, value, length])
    };
    assert_eq!(is(check::MEMORY, 0x1000, 0x1000), Ok(0));
    for (start, length) in [(0xfff, 2), (0x1fff, 2), (0x1000, u64::MAX), (0, 0x3000), (0, 0)] {
        assert_eq!(is(check::MEMORY, start, length), Err(Errno::EPERM), "{start:#x} {length:#x}");
    }
    assert_eq!(is(check::IRQ, 7, 0), Ok(0));
    assert_eq!(is(check::IRQ, 0, 0), Err(Errno::EPERM));
    assert_eq!(is(check::PORTS, 0, 1), Err(Errno::EPERM));
    assert_eq!(is(9, 0, 0), Err(Errno::EINVAL));
}

#[test]
fn information_goes_to_whom_it_is_for() {
    let mut w = World::with_services();
    let space = w.space(A);
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::COMMAND_LINE, 0, BUFFER, 100]), Ok(5));
    assert_eq!(w.m.peek(space, BUFFER, 5), b"quiet");
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::COMMAND_LINE, 0, BUFFER, 2]), Ok(2));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::FREE_MEMORY, 0, BUFFER, 100]), Err(Errno::EPERM));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::PRIVILEGES, 4, BUFFER, 272]), Err(Errno::EPERM));
    assert_eq!(w.kernel_call(RS, KernelCall::GetInfo, &[info::PRIVILEGES, 128, BUFFER, 272]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::THREAD, 99, BUFFER, 64]), Err(Errno::ESRCH));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::THREAD, 5000, BUFFER, 64]), Err(Errno::EINVAL));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[77, 0, BUFFER, 64]), Err(Errno::ENOENT));
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[info::KERNEL, 0, 1 << 60, 88]), Err(Errno::EFAULT));
    assert_eq!(w.kernel_call(A, KernelCall::WhoIs, &[B as u64]), Ok(w.endpoint(B).0 as u64));
    assert_eq!(w.kernel_call(A, KernelCall::WhoIs, &[99]), Err(Errno::EDEADSRCDST));
}

#[test]
fn what_rs_sets_is_what_it_reads_back() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let mut rights = all_rights();
    rights.memory[7] = MemoryRange { start: 1, bytes: 2 };
    rights.irqs = [1, 2, 3, 4, 5, 6, 7, 8];
    rights.flags = 0x55;
    w.set_privileges(a, &rights);
    w.kernel_call(RS, KernelCall::GetInfo, &[info::PRIVILEGES, A as u64, BUFFER, 272]).expect("read");
    assert_eq!(w.m.peek(RS as u16, BUFFER, 272), crate::world::privilege_bytes(&rights));
    assert_ne!(a, Endpoint::NONE);
}
