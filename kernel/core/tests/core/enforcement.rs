//! Every right on every path: a driver that lacks one is refused, cannot gain it, and disturbs nothing else.
//!
//! The table below has all combinations. Where a path cannot even express what the right is about (interrupts by a port instruction), the
//! entry is `None`: `ports.rs` shows that such a path knows nothing but ports.

use abi::{
    Endpoint, Errno, call as primitive,
    call::{BY_MESSAGE, KERNEL_CALL_NAMES, KernelCall, SYSTEM_LABELS, UNRESTRICTED},
    grant::{READ, USED},
    kernel::{Exception, irq},
    privilege::{MemoryRange, PortRange, Privileges, check, io, way},
};

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, CODE, RS, World, all_rights},
};

const SELF: u64 = Endpoint::SELF.0 as u64;
const NONE: u64 = Endpoint::NONE.0 as u64;
/// Physical memory that only a range gives.
const MEMORY: u64 = 0x800_0000;
const TABLE: u64 = BUFFER + PAGE;
const PORT: u64 = 0x3f8;
/// `in al, dx`
const READS_PORT: [u8; 1] = [0xec];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    CallMask,
    Destination,
    Port,
    Irq,
    Memory,
    Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Trap,
    Message,
    Hal,
    Emulate,
    Direct,
}

use Path::*;

/// How a refusal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was done.
    Done,
    /// The driver gets this error.
    Error(Errno),
    /// The driver has an exception, and rs the say.
    Exception,
}

const DENIED: Option<Outcome> = Some(Outcome::Error(Errno::ECALLDENIED));
const NOT_GRANTED: Option<Outcome> = Some(Outcome::Error(Errno::EPERM));
const EXCEPTION: Option<Outcome> = Some(Outcome::Exception);

const PATHS: [Path; 5] = [Trap, Message, Hal, Emulate, Direct];
const TABLE_OF_REFUSALS: [(Right, [Option<Outcome>; 5]); 6] = [
    (Right::CallMask, [DENIED, DENIED, DENIED, EXCEPTION, EXCEPTION]),
    (Right::Destination, [DENIED, DENIED, None, None, None]),
    (Right::Port, [DENIED, DENIED, DENIED, EXCEPTION, EXCEPTION]),
    (Right::Irq, [DENIED, DENIED, None, None, None]),
    (Right::Memory, [DENIED, DENIED, None, None, None]),
    (Right::Grant, [NOT_GRANTED, NOT_GRANTED, None, None, None]),
];

/// The rights of a driver that has all of one kind each, but for `missing`.
fn rights(path: Path, missing: Option<Right>) -> Privileges {
    let mut rights = all_rights();
    rights.io_way = match path {
        Trap | Hal => way::HAL,
        Message => way::SYSTASK,
        Emulate => way::EMULATE,
        Direct => way::DIRECT,
    };
    rights.ports[0] = PortRange { first: PORT as u16, last: PORT as u16 + 7 };
    rights.port_count = (missing != Some(Right::Port)) as u32;
    rights.irqs[0] = 4;
    rights.irq_count = (missing != Some(Right::Irq)) as u32;
    if missing != Some(Right::Memory) {
        rights.memory[0] = MemoryRange { start: MEMORY, bytes: PAGE };
    }
    match missing {
        Some(Right::CallMask) => rights.kernel_calls = 0,
        Some(Right::Destination) => rights.destinations = [0; 2],
        _ => {}
    }
    rights
}

/// A driver A with these rights, B with a secret and a grant on it, RS waiting for reports.
fn world(path: Path, missing: Option<Right>) -> World {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.m.map(99, 0, MEMORY, abi::layout::map::WRITE);
    w.m.ports.insert(PORT as u16, 0x41);
    let grantee = if missing == Some(Right::Grant) { b } else { a };
    let mut entry = Vec::new();
    for word in [USED | READ, 1, grantee.0, Endpoint::NONE.0] {
        entry.extend_from_slice(&word.to_le_bytes());
    }
    for word in [BUFFER, 8] {
        entry.extend_from_slice(&word.to_le_bytes());
    }
    let space = w.space(B);
    w.m.poke(space, BUFFER, b"a secret");
    w.m.poke(space, TABLE, &entry);
    let space = w.space(A);
    w.m.poke(space, CODE, &READS_PORT);
    w.kernel_call(B, KernelCall::SetGrants, &[TABLE, 1]).expect("registered");
    w.set_privileges(a, &rights(path, missing));
    w.receive(RS, Endpoint::ANY);
    w
}

/// A kernel call by one of the two paths for such.
fn call(w: &mut World, path: Path, call: KernelCall, arguments: &[u64]) -> Outcome {
    let result = match path {
        Trap => w.kernel_call(A, call, arguments),
        _ => w.ask_system(A, call, arguments),
    };
    result.map_or_else(Outcome::Error, |_| Outcome::Done)
}

/// A reads a port.
fn port(w: &mut World, path: Path) -> Outcome {
    match path {
        Trap | Message => return call(w, path, KernelCall::DevIo, &[PORT, io::IN | 1, 0]),
        Hal => return w.hal(A, io::IN | 1, PORT, 0).map_or_else(Outcome::Error, |_| Outcome::Done),
        Direct if w.node.privileges(A).port_count > 0 && w.node.privileges(A).kernel_calls != 0 => {
            // The CPU lets it through; the kernel's part is to load no more than the ranges.
            return Outcome::Done;
        }
        Emulate | Direct => {}
    }
    w.protection_fault(A, &READS_PORT, |frame| frame.rdx = PORT);
    if w.is_ready(A) { Outcome::Done } else { Outcome::Exception }
}

/// A tries what `right` is about.
fn attempt(w: &mut World, path: Path, right: Right) -> Outcome {
    let b = w.endpoint(B).0 as u64;
    match right {
        Right::CallMask | Right::Port => port(w, path),
        Right::Destination if path == Trap => {
            w.primitive(A, abi::call::NOTIFY, Endpoint(b as u32), 0, 0);
            w.result(A).map_or_else(Outcome::Error, |_| Outcome::Done)
        }
        Right::Destination => call(w, path, KernelCall::DevIo, &[PORT, io::IN | 1, 0]),
        Right::Irq => call(w, path, KernelCall::IrqSet, &[4, 0, irq::REENABLE]),
        Right::Memory => call(w, path, KernelCall::PhysCopy, &[SELF, BUFFER, NONE, MEMORY, 8]),
        Right::Grant => {
            let grant = abi::GrantId::new(0, 1).0 as u64;
            call(w, path, KernelCall::SafeCopyFrom, &[b, grant, 0, BUFFER, 8])
        }
    }
}

/// What must be as before: B, the devices, the memory of everybody, and A's rights.
fn surroundings(w: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    let b = w.node.thread(B);
    let frames: Vec<_> = w.m.frames.iter().map(|(frame, bytes)| (*frame, bytes.to_vec())).collect();
    (
        (b.endpoint(), b.is_ready(), format!("{:?}", b.frame)),
        (w.m.port_log.clone(), w.m.unmasked.clone(), w.m.opened.clone()),
        (*w.node.privileges(A), *w.node.privileges(B)),
        frames,
    )
}

#[test]
fn a_missing_right_is_refused_on_every_path_and_cannot_be_gained() {
    for (right, refusals) in TABLE_OF_REFUSALS {
        for (path, refusal) in PATHS.into_iter().zip(refusals) {
            let Some(refusal) = refusal else { continue };
            let mut w = world(path, None);
            assert_eq!(attempt(&mut w, path, right), Outcome::Done, "{right:?} {path:?}: it works with the right");

            let mut w = world(path, Some(right));
            // Its own memory is the driver's to write; here it writes none.
            let before = surroundings(&w);
            assert_eq!(attempt(&mut w, path, right), refusal, "{right:?} {path:?}");
            assert!(surroundings(&w) == before, "{right:?} {path:?} disturbs");
            if refusal == Outcome::Exception {
                assert_eq!(w.message(RS).label, Exception::LABEL);
                continue;
            }
            gains_nothing(&mut w, right, path);
            assert_eq!(attempt(&mut w, path, right), refusal, "{right:?} {path:?} again");
            assert!(surroundings(&w) == before, "{right:?} {path:?} disturbs later");
        }
    }
}

/// A tries to give itself all rights.
fn gains_nothing(w: &mut World, right: Right, path: Path) {
    let a = w.endpoint(A);
    let number = KernelCall::PrivCtl;
    let denied = Err(Errno::ECALLDENIED);
    assert_eq!(w.kernel_call(A, number, &[SELF, BUFFER]), denied, "{right:?} {path:?}");
    assert_eq!(w.kernel_call(A, number, &[a.0 as u64, BUFFER]), denied);
    assert_eq!(w.ask_system(A, number, &[SELF, BUFFER]), denied);
    assert_eq!(w.hal(A, number.number(), PORT, BUFFER), Err(Errno::EBADCALL));
}

#[test]
fn every_call_needs_its_bit_on_both_paths() {
    for (name, call) in KERNEL_CALL_NAMES {
        if call.bit() & UNRESTRICTED != 0 {
            continue;
        }
        let mut w = world(Trap, None);
        let a = w.endpoint(A);
        // Let RS, which waits, go on.
        w.node.interrupt(&mut w.m, 0);
        let others = Privileges { kernel_calls: !call.bit(), ..rights(Trap, None) };
        w.primitive(B, abi::call::NOTIFY, Endpoint::RS, 0, 0);
        w.set_privileges(a, &others);
        assert_eq!(w.kernel_call(A, *call, &[0; 6]), Err(Errno::ECALLDENIED), "{name}");
        let by_message = if call.bit() & BY_MESSAGE != 0 { Errno::ECALLDENIED } else { Errno::EBADCALL };
        assert_eq!(w.ask_system(A, *call, &[0; 6]), Err(by_message), "{name}");
    }
}

#[test]
fn memory_outside_the_ranges_is_not_vms_to_map() {
    let mut w = world(Trap, Some(Right::Memory));
    w.primitive(B, abi::call::NOTIFY, Endpoint::RS, 0, 0);
    let a = w.endpoint(A);
    let ask = |w: &mut World| w.kernel_call(RS, KernelCall::PrivCheck, &[a.0 as u64, check::MEMORY, MEMORY, PAGE]);
    assert_eq!(ask(&mut w), Err(Errno::EPERM));
    w.set_privileges(a, &rights(Trap, None));
    assert_eq!(ask(&mut w), Ok(0));
}

#[test]
fn the_task_itself_cannot_be_impersonated() {
    let mut w = world(Trap, None);
    w.primitive(A, abi::call::SENDREC, w.node.thread(B).endpoint(), SYSTEM_LABELS | KernelCall::DevIo as u32, 0);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).source, w.endpoint(A), "the kernel names the sender");
}

/// The lines of the kernel's log since the last look.
fn log(w: &mut World) -> String {
    String::from_utf8(std::mem::take(&mut w.m.console)).expect("text")
}

#[test]
fn each_denial_is_logged_with_both_sides_and_counted() {
    let mut w = world(Trap, Some(Right::Destination));
    log(&mut w);
    let (b, denied) = (w.endpoint(B), Err(Errno::ECALLDENIED));
    for number in [primitive::SEND, primitive::SENDNB, primitive::NOTIFY, primitive::SENDREC] {
        w.primitive(A, number, b, 1, 0);
        assert_eq!(w.result(A), denied);
        let line = log(&mut w);
        let name = w.node.privileges(A).name;
        let told =
            format!("{name}: message to {} (slot {B}) denied: not among its destinations\n", w.node.privileges(B).name);
        assert_eq!(line, told);
    }
    let mut w = world(Trap, Some(Right::CallMask));
    log(&mut w);
    for count in 1..=32u32 {
        assert_eq!(w.kernel_call(A, KernelCall::VirCopy, &[0; 5]), denied);
        let line = log(&mut w);
        assert_eq!(line.contains("kernel call VirCopy denied"), count <= 16 || count == 32, "refusal {count}");
        assert_eq!(line.ends_with("denied, refusal 32\n"), count == 32);
    }
}

#[test]
fn who_waits_for_a_reply_that_is_denied_fails() {
    let mut w = world(Trap, Some(Right::Destination));
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(A, Endpoint::ANY);
    w.sendrec(B, a, 7);
    w.primitive(A, primitive::SENDNB, b, 7 | 0x8000_0000, 0);
    w.make_current(B);
    assert_eq!(w.result(B), Err(Errno::EDEADSRCDST));
}
