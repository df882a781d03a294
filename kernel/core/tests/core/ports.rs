//! Ports by all ways: what is read and written, what is refused, and what the log says of it.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    kernel::Exception,
    privilege::{KILL_ON_DENIAL, PortRange, Privileges, device, io, way},
    trace::event,
};

use crate::world::{A, B, BUFFER, RS, World, all_rights};

/// Ports 0x3f8 to 0x3ff, two of them by name `driver`.
pub fn driver_rights() -> Privileges {
    let mut rights = Privileges { name: abi::Name::new("driver").expect("short"), ..all_rights() };
    rights.ports[0] = PortRange { first: 0x3f8, last: 0x3ff };
    rights.port_count = 1;
    rights
}

fn driver(rights: &Privileges) -> World {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, rights);
    w
}

/// The ways that answer with a result.
type Access = fn(&mut World, u64, u64, u64) -> Result<u64, Errno>;
const ANSWERING: [(&str, Access); 3] = [
    ("call", |w, port, operation, value| w.kernel_call(A, KernelCall::DevIo, &[port, operation, value])),
    ("systask", |w, port, operation, value| w.ask_system(A, KernelCall::DevIo, &[port, operation, value])),
    ("hal", |w, port, operation, value| w.hal(A, operation, port, value)),
];

fn console(w: &World) -> String {
    String::from_utf8(w.m.console.clone()).expect("text")
}

#[test]
fn ports_are_read_and_written_within_the_ranges_only() {
    for (way, access) in ANSWERING {
        let mut w = driver(&driver_rights());
        w.m.ports.insert(0x3f8, 0x41);
        assert_eq!(access(&mut w, 0x3f8, io::IN | 1, 0), Ok(0x41), "{way}");
        assert_eq!(access(&mut w, 0x3fc, io::OUT | 4, 0x1234), Ok(0), "{way}");
        assert_eq!(w.m.port_log, [(0x3fc, 4, 0x1234)]);
        for port in [0x3f7, 0x3fd, 0x400, 0x1_03f8, u64::MAX] {
            assert_eq!(access(&mut w, port, io::OUT | 4, 0), Err(Errno::ECALLDENIED), "{way} {port:#x}");
        }
        assert_eq!(w.m.port_log.len(), 1, "{way}");
    }
}

#[test]
fn operations_that_do_not_exist_are_refused() {
    for (way, access) in ANSWERING {
        let mut w = driver(&driver_rights());
        let error = if way == "hal" { Errno::EBADCALL } else { Errno::EINVAL };
        for operation in [0, 3, 5, 7, 32 | 1, u64::MAX] {
            assert_eq!(access(&mut w, 0x3f8, operation, 0), Err(error), "{way} {operation:#x}");
        }
        assert_eq!(w.m.port_log, []);
    }
    let mut w = driver(&driver_rights());
    let _ = w.hal(A, 3, 0x3f8, 0);
    assert_eq!(console(&w), "driver: no such operation: 0x3 (hal)\n");
}

#[test]
fn the_machine_may_be_reached_at_once_only_with_call_right_and_port() {
    let mut w = driver(&driver_rights());
    w.make_current(A);
    assert!(w.node.reaches_port(0x3f8, 1) && w.node.reaches_port(0x3fc, 4));
    for (port, width) in [(0x3f7, 1), (0x3fd, 4), (0x400, 1), (0x1_03f8, 1), (u64::MAX, 4)] {
        assert!(!w.node.reaches_port(port, width), "{port:#x} {width}");
    }
    let a = w.endpoint(A);
    let no_call = Privileges { kernel_calls: !KernelCall::DevIo.bit(), ..driver_rights() };
    let mut no_machine = driver_rights();
    no_machine.devices[0] = device::CLOCK;
    for rights in [no_call, no_machine] {
        w.set_privileges(a, &rights);
        w.make_current(A);
        assert!(!w.node.reaches_port(0x3f8, 1));
    }
}

#[test]
fn a_refusal_leaves_a_line_that_names_service_port_and_way() {
    for (way, access) in ANSWERING {
        let mut w = driver(&driver_rights());
        assert_eq!(access(&mut w, 0x60, io::IN | 1, 0), Err(Errno::ECALLDENIED));
        assert_eq!(console(&w), format!("driver: port 0x60 denied ({way})\n"));
    }
    for (way, name) in [(way::EMULATE, "emulate"), (way::DIRECT, "direct")] {
        let mut w = driver(&Privileges { io_way: way, ..driver_rights() });
        w.receive(RS, Endpoint::ANY);
        w.protection_fault(A, &[0xe4, 0x60], |_| ());
        assert_eq!(console(&w), format!("driver: port 0x60 denied ({name})\n"));
        assert_eq!(w.message(RS).label, Exception::LABEL);
    }
}

#[test]
fn a_driver_that_keeps_trying_cannot_flood_the_log() {
    let mut w = driver(&driver_rights());
    for _ in 0..1000 {
        assert_eq!(w.hal(A, 1, 0x60, 0), Err(Errno::ECALLDENIED));
    }
    let lines = console(&w).lines().count();
    assert_eq!(lines, 16 + 5, "sixteen, and 32, 64, 128, 256, 512");
    assert!(console(&w).ends_with("driver: port 0x60 denied (hal), refusal 512\n"));
}

#[test]
fn programs_leave_no_line() {
    let mut w = World::with_services();
    let program = w.application().slot();
    assert_eq!(w.hal(program, 1, 0x60, 0), Err(Errno::ECALLDENIED));
    assert_eq!(console(&w), "");
}

#[test]
fn the_policy_may_make_a_refusal_deadly() {
    for (way, access) in ANSWERING {
        let mut w = driver(&Privileges { flags: KILL_ON_DENIAL, ..driver_rights() });
        let a = w.endpoint(A);
        w.receive(RS, Endpoint::ANY);
        let _ = access(&mut w, 0x60, io::OUT | 1, 0);
        let message = w.message(RS);
        assert_eq!((message.source, message.label), (a, Exception::LABEL), "{way}");
        let exception = Exception::from_message(&message);
        assert_eq!((exception.vector, exception.address), (13, 0x60));
        assert!(!w.is_ready(A), "{way}");
    }
}

#[test]
fn vectors_of_accesses_are_done_in_order_until_one_fails() {
    let by: [fn(&mut World, &[u64]) -> Result<u64, Errno>; 2] = [
        |w, arguments| w.kernel_call(A, KernelCall::VDevIo, arguments),
        |w, arguments| w.ask_system(A, KernelCall::VDevIo, arguments),
    ];
    for vector in by {
        let mut w = driver(&driver_rights());
        w.m.ports.insert(0x3f9, 0x77);
        let space = w.space(A);
        let requests = [(0x3f8u16, 9u16, 5u32), (0x3f9, 1, 0), (0x60, 1, 0), (0x3fa, 9, 6)];
        let bytes = |&(port, operation, value): &(u16, u16, u32)| {
            [&port.to_le_bytes()[..], &operation.to_le_bytes(), &value.to_le_bytes()].concat()
        };
        w.m.poke(space, BUFFER, &requests.iter().flat_map(bytes).collect::<Vec<u8>>());
        assert_eq!(vector(&mut w, &[BUFFER, 4]), Ok(2));
        assert_eq!(w.m.port_log, [(0x3f8, 1, 5)]);
        assert_eq!(w.m.peek(space, BUFFER + 12, 4), [0x77, 0, 0, 0]);
        assert_eq!(vector(&mut w, &[BUFFER + 16, 2]), Err(Errno::ECALLDENIED), "the first fails");
        assert_eq!(vector(&mut w, &[BUFFER, 65]), Err(Errno::EINVAL));
        assert_eq!(vector(&mut w, &[1 << 60, 1]), Err(Errno::EFAULT));
        assert_eq!(vector(&mut w, &[BUFFER, 0]), Ok(0));
    }
}

/// Instruction, width, what `rax` is after reading 0x8765_4321 over ones.
const INSTRUCTIONS: [(&[u8], u64, u64); 9] = [
    (&[0xec], 1, 0xffff_ffff_ffff_ff21),
    (&[0x66, 0xed], 2, 0xffff_ffff_ffff_4321),
    (&[0xed], 4, 0x8765_4321),
    (&[0xe4, 0x70], 1, 0xffff_ffff_ffff_ff21),
    (&[0x66, 0xe5, 0x70], 2, 0xffff_ffff_ffff_4321),
    (&[0xe5, 0x70], 4, 0x8765_4321),
    (&[0x48, 0xed], 4, 0x8765_4321),
    (&[0x2e, 0x66, 0x67, 0xed], 2, 0xffff_ffff_ffff_4321),
    (&[0xf3, 0xec], 1, 0xffff_ffff_ffff_ff21),
];

fn emulated() -> World {
    let mut rights = Privileges { io_way: way::EMULATE, ..driver_rights() };
    rights.ports[1] = PortRange { first: 0x70, last: 0x77 };
    rights.port_count = 2;
    driver(&rights)
}

#[test]
fn all_forms_of_in_and_out_are_carried_out() {
    for (code, width, read) in INSTRUCTIONS {
        let mut w = emulated();
        let port = if code.contains(&0x70) { 0x70 } else { 0x3f8 };
        w.m.ports.insert(port, 0x8765_4321);
        w.protection_fault(A, code, |frame| (frame.rdx, frame.rax) = (0x3f8, u64::MAX));
        assert_eq!(w.node.frame_mut(A).rax, read, "{code:x?}");
        assert_eq!(w.node.frame_mut(A).rip, crate::world::CODE + code.len() as u64);
        let opcode = code.iter().position(|byte| byte & 0xf4 == 0xe4).expect("has one");
        let mut out = code.to_vec();
        out[opcode] |= 2;
        w.protection_fault(A, &out, |frame| (frame.rdx, frame.rax) = (0x3f8, 0x8765_4321));
        assert_eq!(w.m.port_log, [(port, width, 0x8765_4321)], "{out:x?}");
        assert_eq!(w.node.frame_mut(A).rax, 0x8765_4321);
    }
}

#[test]
fn what_is_no_port_instruction_stays_an_exception() {
    for code in [&[0xf4u8][..], &[0x66; 15], &[0xf0, 0xec], &[0x64, 0x6e], &[0x48, 0x66, 0xed], &[0x0f, 0x30]] {
        let mut w = emulated();
        w.receive(RS, Endpoint::ANY);
        w.protection_fault(A, code, |frame| frame.rdx = 0x3f8);
        assert_eq!(w.message(RS).label, Exception::LABEL, "{code:x?}");
        assert!(w.m.port_log.is_empty() && w.m.console.is_empty());
    }
}

#[test]
fn only_faults_with_error_code_0_at_a_readable_instruction_are_looked_into() {
    for (error, rip) in [(8, crate::world::CODE), (0, 0x7000_0000), (0, u64::MAX)] {
        let mut w = emulated();
        let space = w.space(A);
        w.m.poke(space, crate::world::CODE, &[0xec]);
        w.receive(RS, Endpoint::ANY);
        w.make_current(A);
        let frame = w.node.frame_mut(A);
        (frame.rip, frame.rdx) = (rip, 0x3f8);
        w.node.exception(&mut w.m, 13, error, 0);
        w.next();
        assert_eq!(w.message(RS).label, Exception::LABEL, "{error} {rip:#x}");
    }
}

#[test]
fn instructions_of_services_on_another_way_are_exceptions() {
    for way in [way::SYSTASK, way::HAL, way::DIRECT] {
        let mut w = driver(&Privileges { io_way: way, ..driver_rights() });
        w.receive(RS, Endpoint::ANY);
        w.protection_fault(A, &[0xec], |frame| frame.rdx = 0x3f8);
        assert_eq!(w.message(RS).label, Exception::LABEL, "way {way}");
    }
}

#[test]
fn devices_of_the_kernel_are_reached_by_every_way() {
    let mut rights = driver_rights();
    rights.ports[1] = PortRange { first: 0xff00, last: 0xff07 };
    rights.ports[2] = PortRange { first: 0xff10, last: 0xff10 };
    rights.port_count = 3;
    (rights.devices[1], rights.devices[2]) = (device::CLOCK, device::LOG);
    for (way, access) in ANSWERING {
        let mut w = driver(&rights);
        w.m.now = 0x1234_5678_9abc;
        assert_eq!(access(&mut w, 0xff00, 4, 0), Ok(0x5678_9abc), "{way}");
        assert_eq!(access(&mut w, 0xff04, 4, 0), Ok(0x1234), "{way}");
        assert_eq!(access(&mut w, 0xff01, 2, 0), Ok(u32::MAX.into()), "{way}");
        assert_eq!(access(&mut w, 0xff10, 9, b'x'.into()), Ok(0), "{way}");
        assert_eq!(access(&mut w, 0xff10, 1, 0), Ok(0xe9), "{way}");
        assert_eq!((console(&w).as_str(), w.m.port_log.len()), ("x", 0));
    }
    for way in [way::EMULATE, way::DIRECT] {
        let mut w = driver(&Privileges { io_way: way, ..rights });
        w.m.now = 0x1234_5678_9abc;
        w.protection_fault(A, &[0xed], |frame| frame.rdx = 0xff00);
        assert_eq!(w.node.frame_mut(A).rax, 0x5678_9abc);
        w.protection_fault(A, &[0xee], |frame| (frame.rdx, frame.rax) = (0xff10, b'y'.into()));
        assert_eq!((console(&w).as_str(), w.m.port_log.len()), ("y", 0));
    }
}

#[test]
fn unknown_devices_and_ways_cannot_be_given() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    let mut remote = driver_rights();
    remote.devices[0] = 128;
    for rights in [remote, Privileges { io_way: 4, ..driver_rights() }] {
        assert_eq!(w.try_set_privileges(b, &rights), Err(Errno::EINVAL));
    }
    assert_eq!(w.m.changed_rights.last(), Some(&22), "the last who was changed is C, at its start");
    w.set_privileges(b, &driver_rights());
    assert_eq!(w.m.changed_rights.last(), Some(&B), "the machine hears of every change");
}

#[test]
fn the_trace_shows_accesses_that_are_no_calls() {
    let mut w = emulated();
    w.node.set_tracing(abi::trace::event::ALL);
    w.m.ports.insert(0x3f8, 0x41);
    assert_eq!(w.hal(A, 1, 0x3f8, 0), Ok(0x41));
    w.protection_fault(A, &[0xec], |frame| frame.rdx = 0x3f8);
    let accesses = w.m.records.iter().filter(|record| record.event == event::PORT);
    let ways: Vec<_> = accesses.map(|record| (record.label, record.words[0], record.words[6] & 0xff)).collect();
    assert_eq!(ways, [(0x3f8, way::HAL.into(), 0x41), (0x3f8, way::EMULATE.into(), 0x41)]);
}

#[test]
fn rights_to_ports_are_checked_for_others_by_range() {
    let mut w = driver(&driver_rights());
    let a = w.endpoint(A).0 as u64;
    let mut allowed = |first: u64, count: u64| {
        w.kernel_call(RS, KernelCall::PrivCheck, &[a, abi::privilege::check::PORTS, first, count])
    };
    for (first, count) in [(0x3f8, 8), (0x3ff, 1), (0x3f8, 1)] {
        assert_eq!(allowed(first, count), Ok(0), "{first:#x} {count}");
    }
    for (first, count) in [(0x3f8, 9), (0x3f7, 2), (0x400, 1), (0x3f8, 0), (u64::MAX, 2), (0x3f8, u64::MAX)] {
        assert_eq!(allowed(first, count), Err(Errno::EPERM), "{first:#x} {count}");
    }
}
