//! Routes of Linux calls, and the errors that programs and services get instead of an answer.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall},
    kernel::{Exception, Interrupted},
    linux::{NUMBERS, nr},
    message::REPLY,
    privilege::Privileges,
};

use crate::world::{A, B, C, PM, RS, VM, World, all_rights};

const CALL: u64 = 39;

fn route(w: &mut World, number: u64, slot: u64) -> Result<u64, Errno> {
    w.kernel_call(RS, KernelCall::Route, &[number, slot])
}

#[test]
fn routes_lead_to_services_or_the_kernel() {
    let mut w = World::with_services();
    for slot in [0, 4, A as u64, 127, u64::MAX] {
        assert_eq!(route(&mut w, CALL, slot), Ok(0), "{slot}");
    }
    for slot in [1, 2, 3, 128, 1151, u64::MAX - 1, 1 << 32] {
        assert_eq!(route(&mut w, CALL, slot), Err(Errno::EINVAL), "{slot}");
    }
    for number in [0, NUMBERS as u64 - 1] {
        assert_eq!(route(&mut w, number, A as u64), Ok(0), "{number}");
    }
    for number in [NUMBERS as u64, u64::MAX] {
        assert_eq!(route(&mut w, number, A as u64), Err(Errno::EINVAL), "{number}");
    }
}

#[test]
fn the_first_and_the_last_service_and_number_are_reached() {
    for (slot, number) in [(VM, 0), (95, NUMBERS as u64 - 1)] {
        let mut w = World::with_services();
        if slot != VM {
            w.service(slot);
        }
        route(&mut w, number, slot as u64).expect("routed");
        let program = w.application();
        for sleeper in [slot, A, B, C] {
            w.receive(sleeper, Endpoint::ANY);
        }
        w.linux_call(program.slot(), number, [1; 6]);
        assert_eq!((w.message(slot).source, w.message(slot).label), (program, number as u32));
    }
}

#[test]
fn a_call_without_a_service_behind_it_fails() {
    let mut w = World::with_services();
    route(&mut w, CALL, PM as u64).expect("routed");
    let program = w.application().slot();
    w.linux_call(program, CALL, [0; 6]);
    assert_eq!(w.result(program), Err(Errno::EIO));
    w.linux_call(program, CALL + 1, [0; 6]);
    assert_eq!(w.result(program), Err(Errno::ENOSYS), "routed nowhere");
    for number in [CALL, nr::GETPPID as u64] {
        route(&mut w, number, 0).expect("routed");
        w.linux_call(program, number, [0; 6]);
        assert_eq!(w.result(program), Err(Errno::ENOSYS), "the kernel has no such call");
    }
}

#[test]
fn a_service_that_would_wait_for_itself_is_told() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    route(&mut w, CALL, B as u64).expect("routed");
    w.linux_call(B, CALL, [0; 6]);
    assert_eq!(w.result(B), Err(Errno::EDEADLK));
    w.sendrec(B, a, 1);
    w.linux_call(A, CALL, [0; 6]);
    assert_eq!(w.result(A), Err(Errno::EDEADLK));
    w.send(A, b, 1);
    assert_eq!(w.result(A), Err(Errno::ELOCKED), "as the primitive says it");
}

#[test]
fn routed_calls_of_services_need_the_destination_and_nothing_else() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    route(&mut w, CALL, B as u64).expect("routed");
    let mut destinations = [0; 2];
    destinations[B / 64] = 1 << (B % 64);
    w.set_privileges(a, &Privileges { destinations, ..Privileges::NONE });
    w.receive(B, Endpoint::ANY);
    w.linux_call(A, CALL, [5; 6]);
    assert_eq!((w.message(B).source, w.message(B).words[0]), (a, 5));
    w.primitive(B, call::REPLYREC, a, REPLY, 3);
    assert_eq!(w.result(A), Ok(3));
    w.set_privileges(a, &Privileges { destinations: [!destinations[0], !0], ..all_rights() });
    w.linux_call(A, CALL, [5; 6]);
    assert_eq!(w.result(A), Err(Errno::ECALLDENIED));
}

#[test]
fn a_service_needs_the_destination_even_when_nobody_else_is_ready() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    route(&mut w, CALL, B as u64).expect("routed");
    w.set_privileges(a, &Privileges::NONE);
    for sleeper in [B, C, VM, RS] {
        w.receive(sleeper, Endpoint::ANY);
    }
    w.scrub(B);
    w.linux_call(A, CALL, [5; 6]);
    assert_eq!(w.result(A), Err(Errno::ECALLDENIED));
    assert_eq!(w.node.frame_mut(B).rax, 0xdead);
}

/// Slots of both words of the bitmap, and their neighbours.
#[test]
fn every_destination_has_its_own_bit() {
    let slots = [63, 64, 65, 94, 95];
    let mut w = World::with_services();
    let a = w.endpoint(A);
    for slot in slots {
        w.service(slot);
    }
    for allowed in slots {
        let mut destinations = [0; 2];
        destinations[allowed / 64] = 1 << (allowed % 64);
        w.set_privileges(a, &Privileges { destinations, ..all_rights() });
        for slot in slots {
            let to = w.endpoint(slot);
            w.primitive(A, call::SENDNB, to, 1, 0);
            let expected = if slot == allowed { Errno::ENOTREADY } else { Errno::ECALLDENIED };
            assert_eq!(w.result(A), Err(expected), "{allowed} {slot}");
            w.primitive(A, call::NOTIFY, to, 0, 0);
            let expected = if slot == allowed { Ok(0) } else { Err(Errno::ECALLDENIED) };
            assert_eq!(w.result(A), expected, "{allowed} {slot}");
        }
    }
}

#[test]
fn programs_as_destinations_share_a_bit() {
    let mut w = World::with_services();
    let (a, program) = (w.endpoint(A), w.application());
    let (rest, last) = (!(1u64 << 3), !0);
    w.set_privileges(a, &Privileges { destinations: [rest, last], ..all_rights() });
    w.primitive(A, call::SENDNB, program, 1, 0);
    assert_eq!(w.result(A), Err(Errno::ECALLDENIED));
    w.set_privileges(a, &Privileges { destinations: [!rest, 0], ..all_rights() });
    w.primitive(A, call::SENDNB, program, 1, 0);
    assert_eq!(w.result(A), Err(Errno::ENOTREADY));
    w.receive(program.slot(), Endpoint::ANY);
    w.primitive(A, call::SENDNB, program, 1, 0);
    assert_eq!(w.result(A), Ok(0));
}

#[test]
fn notifications_of_all_services_are_kept_apart() {
    let slots = [63, 64, 65, 95];
    let mut w = World::with_services();
    for slot in slots {
        w.service(slot);
    }
    let a = w.endpoint(A);
    for &slot in slots.iter().rev() {
        w.primitive(slot, call::NOTIFY, a, 0, 0);
        assert_eq!(w.result(slot), Ok(0));
    }
    let last = w.endpoint(95);
    w.receive(A, last);
    assert_eq!(w.message(A).source, last, "the one it asks for");
    for slot in [63, 64, 65] {
        w.receive(A, Endpoint::ANY);
        assert_eq!(w.message(A).source, w.endpoint(slot));
    }
    w.receive(A, Endpoint::ANY);
    assert!(!w.is_ready(A));
}

#[test]
fn refused_senders_of_all_slots_are_notified() {
    let slots = [63, 64, 95];
    let mut w = World::with_services();
    for slot in slots {
        w.service(slot);
    }
    let a = w.endpoint(A);
    for slot in slots {
        w.primitive(slot, call::SENDNB, a, 1, 0);
        assert_eq!(w.result(slot), Err(Errno::ENOTREADY));
        w.receive(slot, Endpoint::ANY);
    }
    w.receive(A, Endpoint::ANY);
    for slot in slots {
        assert!(w.is_ready(slot), "{slot}");
        assert_eq!(w.message(slot).source, a);
    }
}

#[test]
fn notifications_of_a_dead_service_of_any_slot_vanish() {
    for slot in [63, 64, 95] {
        let mut w = World::with_services();
        let (a, dead, other) = (w.endpoint(A), w.service(slot), w.service(90));
        for from in [slot, 90] {
            w.primitive(from, call::NOTIFY, a, 0, 0);
            w.primitive(from, call::SENDNB, a, 1, 0);
        }
        w.receive(90, Endpoint::ANY);
        w.kernel_call(RS, KernelCall::Destroy, &[dead.0 as u64, 1]).expect("destroyed");
        w.service(slot);
        w.receive(slot, Endpoint::ANY);
        w.receive(A, Endpoint::ANY);
        assert_eq!(w.message(A).source, other, "the other one's stays");
        w.receive(A, Endpoint::ANY);
        assert!(!w.is_ready(A) && w.is_ready(90));
        assert!(!w.is_ready(slot), "the successor asked for nothing");
    }
}

#[test]
fn a_program_whose_sendnb_fails_is_not_notified() {
    let mut w = World::with_services();
    let (a, program) = (w.endpoint(A), w.application());
    w.primitive(A, call::SENDNB, program, 1, 0);
    assert_eq!(w.result(A), Err(Errno::ENOTREADY));
    w.receive(A, Endpoint::ANY);
    w.receive(program.slot(), Endpoint::ANY);
    assert!(!w.is_ready(A), "programs tell nobody that they wait");
    assert_eq!(w.endpoint(A), a);
}

#[test]
fn a_manager_that_waits_for_the_thread_that_fails_is_released() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    // rs waits for A, A for B, and B fails.
    w.receive(A, Endpoint::ANY);
    w.sendrec(RS, a, 1);
    w.sendrec(A, b, 2);
    w.make_current(B);
    w.node.exception(&mut w.m, 6, 0, 0);
    w.next();
    assert!(w.is_ready(A), "the last link of the chain is broken");
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    assert!(!w.is_ready(RS) && !w.is_ready(B));
    w.primitive(A, call::SENDNB, Endpoint::RS, REPLY, 0);
    assert!(w.is_ready(RS));
    w.receive(RS, Endpoint::ANY);
    assert_eq!((w.message(RS).source, w.message(RS).label), (b, Exception::LABEL));
}

#[test]
fn a_service_that_is_interrupted_while_pm_waits_for_it_releases_pm() {
    let mut w = World::with_services();
    w.service(PM);
    let (a, pm) = (w.endpoint(A), w.endpoint(PM));
    w.kernel_call(RS, KernelCall::Interrupt, &[a.0 as u64]).expect("interrupted");
    w.kernel_call(RS, KernelCall::Stop, &[a.0 as u64]).expect("stopped");
    w.sendrec(PM, a, 1);
    w.kernel_call(RS, KernelCall::Start, &[a.0 as u64]).expect("started");
    assert!(w.is_ready(PM));
    assert_eq!(w.result(PM), Err(Errno::EDEADSRCDST));
    w.receive(PM, Endpoint::ANY);
    w.next();
    assert_eq!((w.message(PM).source, w.message(PM).label), (a, Interrupted::LABEL));
    assert_eq!(w.endpoint(PM), pm);
}
