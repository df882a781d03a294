//! Strings of port accesses: by call, by message, by trap, by instruction; their memory, and what interrupts them.

use abi::{
    Endpoint, Errno,
    call::KernelCall,
    kernel::{CopyFault, Fault},
    layout::map,
    privilege::{Privileges, io, way},
};

use crate::{
    fake::PAGE,
    ports::driver_rights,
    world::{A, B, BUFFER, BUFFER_PAGES, CODE, RS, VM, World},
};

/// Past the mapped pages.
const MISSING: u64 = BUFFER + BUFFER_PAGES * PAGE;
const DIRECTION: u64 = 1 << 10;

fn driver(way: u32) -> World {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { io_way: way, ..driver_rights() });
    w
}

/// The ways that take a string in one go: operation, address, count.
type Strings = fn(&mut World, u64, u64, u64);
const IN_ONE_GO: [(&str, Strings); 3] = [
    ("call", |w, operation, address, count| {
        w.begin_kernel_call(A, KernelCall::SDevIo, &[0x3f8, operation, address, count]);
    }),
    ("systask", |w, operation, address, count| {
        w.begin_ask_system(A, KernelCall::SDevIo, &[0x3f8, operation, address, count]);
    }),
    ("hal", |w, operation, address, count| {
        w.begin_hal(A, operation | io::STRING, 0x3f8, address, count);
    }),
];

/// The result of one of them.
fn result(w: &mut World, way: &str) -> Result<u64, Errno> {
    match way {
        "systask" => w.result(A).and_then(|_| w.message(A).result()),
        _ => w.result(A),
    }
}

#[test]
fn strings_go_to_and_from_memory() {
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        w.m.ports.insert(0x3f8, 0x6261);
        let space = w.space(A);
        string(&mut w, io::IN | 2, BUFFER, 600);
        assert_eq!(result(&mut w, way), Ok(600), "{way}");
        assert_eq!(w.m.peek(space, BUFFER + 1196, 4), b"abab");
        w.m.poke(space, BUFFER, b"xy");
        string(&mut w, io::OUT | 1, BUFFER, 2);
        assert_eq!(w.m.port_log, [(0x3f8, 1, b'x' as u32), (0x3f8, 1, b'y' as u32)]);
        string(&mut w, io::OUT | 1, BUFFER, u64::MAX);
        assert_eq!(result(&mut w, way), Err(Errno::EINVAL), "{way}");
        string(&mut w, io::OUT | 1, u64::MAX - 1, 2);
        assert_eq!(result(&mut w, way), Err(Errno::EFAULT), "{way}");
    }
}

#[test]
fn missing_memory_is_asked_for_before_the_device_is_touched() {
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        w.m.ports.insert(0x3f8, 0x7a);
        let a = w.endpoint(A);
        let space = w.space(A);
        w.receive(VM, Endpoint::ANY);
        string(&mut w, io::OUT | 1, MISSING - 4, 8);
        let asked = w.message(VM);
        assert_eq!((asked.label, asked.source), (CopyFault::LABEL, a), "{way}");
        assert!(w.m.port_log.is_empty(), "{way}");
        assert!(!w.is_ready(A));
        w.m.map(space, MISSING, 0x800_0000, map::WRITE);
        w.primitive(VM, abi::call::REPLYREC, a, asked.label | abi::message::REPLY, 0);
        assert!(w.is_ready(A), "{way}");
        assert_eq!(result(&mut w, way), Ok(8), "{way}");
        assert_eq!(w.m.port_log.len(), 8, "{way}: each once");
    }
}

#[test]
fn memory_that_vm_refuses_ends_the_string() {
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        let a = w.endpoint(A);
        w.receive(VM, Endpoint::ANY);
        string(&mut w, io::IN | 1, MISSING, 8);
        let refusal = (-(Errno::EFAULT.0 as i64)) as u64;
        w.primitive(VM, abi::call::REPLYREC, a, CopyFault::LABEL | abi::message::REPLY, refusal);
        assert!(w.is_ready(A), "{way}");
        assert_eq!(result(&mut w, way), Err(Errno::EFAULT), "{way}");
        assert_eq!(w.hal(A, io::IN | 1, 0x3f8, 0), Ok(0), "{way}: the next access finds nothing left over");
    }
}

#[test]
fn long_strings_make_way_for_interrupts_and_go_on() {
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        w.m.polls_until_interrupt = Some(2);
        string(&mut w, io::OUT | 4, BUFFER, 1000);
        w.m.polls_until_interrupt = None;
        assert!(w.m.port_log.len() < 1000, "{way}: interrupted");
        assert!(w.is_ready(A));
        assert_eq!(result(&mut w, way), Ok(1000), "{way}");
        assert_eq!(w.m.port_log.len(), 1000, "{way}: each once");
    }
}

#[test]
fn string_instructions_move_a_chunk_and_are_executed_again() {
    let mut w = driver(way::EMULATE);
    w.m.ports.insert(0x3f8, 0x6261);
    let space = w.space(A);
    w.protection_fault(A, &[0x66, 0xf3, 0x6d], |frame| (frame.rdx, frame.rdi, frame.rcx) = (0x3f8, BUFFER, 300));
    let frame = *w.node.frame_mut(A);
    assert_eq!((frame.rdi, frame.rcx, frame.rip), (BUFFER + 512, 44, CODE), "256 words are one chunk");
    w.node.exception(&mut w.m, 13, 0, 0);
    let frame = *w.node.frame_mut(A);
    assert_eq!((frame.rdi, frame.rcx, frame.rip), (BUFFER + 600, 0, CODE + 3));
    assert_eq!(w.m.peek(space, BUFFER + 596, 6), b"abab\0\0");
}

#[test]
fn string_instructions_without_rep_move_one_item() {
    let mut w = driver(way::EMULATE);
    let space = w.space(A);
    w.m.poke(space, BUFFER, b"wxyz");
    w.protection_fault(A, &[0x6f], |frame| (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, BUFFER, 9));
    let frame = *w.node.frame_mut(A);
    assert_eq!((frame.rsi, frame.rcx, frame.rip), (BUFFER + 4, 9, CODE + 1));
    assert_eq!(w.m.port_log, [(0x3f8, 4, u32::from_le_bytes(*b"wxyz"))]);
    w.protection_fault(A, &[0xf3, 0x6e], |frame| (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, BUFFER, 0));
    assert_eq!((w.m.port_log.len(), w.node.frame_mut(A).rip), (1, CODE + 2), "a count of 0 does nothing");
}

#[test]
fn the_direction_flag_turns_strings_round() {
    let mut w = driver(way::EMULATE);
    let space = w.space(A);
    w.m.poke(space, BUFFER, b"abcd");
    w.protection_fault(A, &[0xf3, 0x6e], |frame| {
        (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, BUFFER + 3, 4);
        frame.rflags |= DIRECTION;
    });
    let values: Vec<_> = w.m.port_log.iter().map(|(_, _, value)| *value as u8).collect();
    assert_eq!(values, b"dcba");
    assert_eq!(w.node.frame_mut(A).rsi, BUFFER - 1);
}

#[test]
fn a_missing_page_of_a_string_instruction_is_an_ordinary_fault() {
    let mut w = driver(way::EMULATE);
    let a = w.endpoint(A);
    w.receive(VM, Endpoint::ANY);
    w.protection_fault(A, &[0xf3, 0x6c], |frame| (frame.rdx, frame.rdi, frame.rcx) = (0x3f8, MISSING - 512, 600));
    assert_eq!(w.node.frame_mut(A).rcx, 88, "what was there is filled");
    w.node.exception(&mut w.m, 13, 0, 0);
    w.next();
    let fault = w.message(VM);
    assert_eq!((fault.source, fault.label), (a, Fault::LABEL));
    assert_eq!(Fault::from_message(&fault).address, MISSING);
    let frame = *w.node.frame_mut(A);
    assert_eq!((frame.rdi, frame.rcx, frame.rip), (MISSING, 88, CODE));
}

#[test]
fn read_only_memory_is_seen_before_the_device_gives_anything_away() {
    let mut w = driver(way::EMULATE);
    let space = w.space(A);
    w.m.map(space, MISSING, 0x900_0000, 0);
    w.receive(VM, Endpoint::ANY);
    w.protection_fault(A, &[0xf3, 0x6c], |frame| (frame.rdx, frame.rdi, frame.rcx) = (0x3f8, MISSING, 4));
    let fault = Fault::from_message(&w.message(VM));
    assert_eq!(fault.access, abi::kernel::ACCESS_WRITE | abi::kernel::ACCESS_PRESENT);
    let _ = (RS, B);
}

#[test]
fn string_instructions_without_items_touch_neither_memory_nor_device() {
    for code in [[0xf3u8, 0x6c], [0xf3, 0x6e]] {
        for address in [BUFFER, MISSING, u64::MAX] {
            let mut w = driver(way::EMULATE);
            w.protection_fault(A, &code, |frame| {
                (frame.rdx, frame.rcx) = (0x3f8, 0);
                (frame.rsi, frame.rdi) = (address, address);
            });
            assert!(w.is_ready(A), "{code:x?} {address:#x}");
            let frame = *w.node.frame_mut(A);
            assert_eq!((frame.rip, frame.rcx), (CODE + 2, 0));
            assert_eq!((frame.rsi, frame.rdi), (address, address));
            assert!(w.m.port_log.is_empty());
        }
    }
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        string(&mut w, io::OUT | 1, BUFFER, 0);
        assert_eq!(result(&mut w, way), Ok(0), "{way}");
        assert!(w.m.port_log.is_empty());
    }
}

#[test]
fn a_string_that_is_done_does_not_make_way_for_interrupts() {
    for (way, string) in IN_ONE_GO {
        let mut w = driver(way::HAL);
        w.m.polls_until_interrupt = Some(1);
        string(&mut w, io::OUT | 1, BUFFER, 512);
        assert_eq!(w.m.polls_until_interrupt, Some(1), "{way}: nobody has asked");
        assert_eq!(result(&mut w, way), Ok(512));
        assert_eq!(w.m.port_log.len(), 512);
        string(&mut w, io::OUT | 1, BUFFER, 513);
        assert_eq!(w.m.polls_until_interrupt, Some(0), "{way}: once");
        w.m.polls_until_interrupt = None;
        w.make_current(A);
        assert_eq!((result(&mut w, way), w.m.port_log.len()), (Ok(513), 1025));
    }
}

#[test]
fn instructions_at_the_limits_of_a_chunk_and_of_memory() {
    let mut w = driver(way::EMULATE);
    let outs = |w: &mut World, first: u64, count: u64, down: bool| {
        w.m.port_log.clear();
        w.protection_fault(A, &[0xf3, 0x6f], |frame| {
            (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, first, count);
            frame.rflags = if down { DIRECTION } else { 0 };
        });
        let frame = *w.node.frame_mut(A);
        (frame.rsi, frame.rcx, frame.rip - CODE, w.m.port_log.len())
    };
    assert_eq!(outs(&mut w, BUFFER, 128, false), (BUFFER + 512, 0, 2, 128));
    assert_eq!(outs(&mut w, BUFFER, 129, false), (BUFFER + 512, 1, 0, 128));
    assert_eq!(outs(&mut w, BUFFER + 508, 128, true), (BUFFER - 4, 0, 2, 128));
    assert_eq!(outs(&mut w, BUFFER + 512, 129, true), (BUFFER, 1, 0, 128));
}
