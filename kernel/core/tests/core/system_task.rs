//! The SYSTEM task: kernel calls as messages.

use abi::{
    Endpoint, Errno, Message,
    call::{self, BY_MESSAGE, KERNEL_CALL_NAMES, KernelCall, SYSTEM_LABELS},
    endpoint::slot,
    kernel::CopyFault,
    layout::map,
    message::REPLY,
    privilege::{MemoryRange, Privileges, io},
    trace::event,
};

use crate::{
    fake::PAGE,
    ports::driver_rights,
    world::{A, B, BUFFER, BUFFER_PAGES, C, RS, VM, World, all_rights},
};

const MISSING: u64 = BUFFER + BUFFER_PAGES * PAGE;
const SELF: u64 = Endpoint::SELF.0 as u64;
const NONE: u64 = Endpoint::NONE.0 as u64;

#[test]
fn the_baseline_path_is_visible_step_by_step() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &driver_rights());
    w.m.ports.insert(0x3f8, 0x41);
    w.make_current(A);
    w.node.set_tracing(abi::trace::event::ALL);
    assert_eq!(w.ask_system(A, KernelCall::DevIo, &[0x3f8, io::IN | 1, 0]), Ok(0x41));
    let label = SYSTEM_LABELS | KernelCall::DevIo as u32;
    let steps: Vec<_> = w.m.records.iter().map(|record| (record.event, record.label, record.from, record.to)).collect();
    let system = Endpoint::SYSTEM;
    assert_eq!(
        steps,
        [
            (event::MESSAGE, label, a, system),
            (event::SWITCH, 0, a, system),
            (event::KERNEL_CALL, KernelCall::DevIo.number() as u32, a, system),
            (event::MESSAGE, label | REPLY, system, a),
            (event::SWITCH, 0, system, w.endpoint(B)),
        ],
        "B was ready before A was again"
    );
    assert_eq!(w.m.records[2].words[6], 0x41);
}

#[test]
fn listed_calls_are_made_and_no_others() {
    let mut w = World::with_services();
    for (name, call) in KERNEL_CALL_NAMES {
        let refused = w.ask_system(A, *call, &[u64::MAX; 6]) == Err(Errno::EBADCALL);
        assert_eq!(refused, call.bit() & BY_MESSAGE == 0, "{name}");
    }
    for label in [SYSTEM_LABELS | 63, SYSTEM_LABELS | 0xffff, SYSTEM_LABELS - 1, SYSTEM_LABELS + 0x1_0000, 0] {
        w.primitive(A, call::SENDREC, Endpoint::SYSTEM, label, 0);
        assert_eq!(w.message(A).result(), Err(Errno::EBADCALL), "{label:#x}");
    }
}

#[test]
fn only_requests_reach_it() {
    let mut w = World::with_services();
    for number in [call::SEND, call::SENDNB, call::SENDWAIT, call::NOTIFY, call::RECEIVE] {
        w.primitive(A, number, Endpoint::SYSTEM, SYSTEM_LABELS | KernelCall::GetTsc as u32, 0);
        assert_eq!(w.result(A), Err(Errno::EDEADSRCDST), "{number:#x}");
    }
    assert_eq!(w.kernel_call(RS, KernelCall::Destroy, &[slot::SYSTEM as u64, 0]), Err(Errno::EDEADSRCDST));
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { destinations: [!1, u64::MAX], ..all_rights() });
    assert_eq!(w.ask_system(A, KernelCall::GetTsc, &[]), Err(Errno::ECALLDENIED));
    let program = w.application().slot();
    assert_eq!(w.ask_system(program, KernelCall::GetTsc, &[]), Err(Errno::ECALLDENIED));
}

#[test]
fn further_results_come_in_the_next_words() {
    let mut w = World::with_services();
    w.m.now = 0x12_3456_789a;
    assert_eq!(w.kernel_call(A, KernelCall::GetTsc, &[]), Ok(0));
    assert_eq!((w.node.frame_mut(A).rdi, w.node.frame_mut(A).rsi), (0x12, 0x3456_789a));
    assert_eq!(w.ask_system(A, KernelCall::GetTsc, &[]), Ok(0));
    let reply = w.message(A);
    assert_eq!((reply.source, reply.label), (Endpoint::SYSTEM, SYSTEM_LABELS | KernelCall::GetTsc as u32 | REPLY));
    assert_eq!(reply.words[..3], [0, 0x12, 0x3456_789a]);
}

#[test]
fn calls_are_made_in_the_name_of_the_sender() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    let spaces = [w.space(A), w.space(B)];
    w.m.poke(spaces[0], BUFFER, b"of A");
    assert_eq!(w.ask_system(A, KernelCall::VirCopy, &[SELF, BUFFER, b.0 as u64, BUFFER, 4]), Ok(4));
    assert_eq!(w.m.peek(spaces[1], BUFFER, 4), b"of A");
    assert_eq!(w.ask_system(B, KernelCall::Umap, &[BUFFER]), w.kernel_call(B, KernelCall::Umap, &[BUFFER]));
    assert_eq!(w.ask_system(A, KernelCall::PrivCtl, &[a.0 as u64, BUFFER]), Err(Errno::ECALLDENIED));
    w.ask_system(A, KernelCall::SetAlarm, &[5]).expect("set");
    w.receive(A, Endpoint::ANY);
    w.m.now = 10;
    w.node.timer(&mut w.m);
    w.next();
    assert_eq!(w.message(A).source, Endpoint::CLOCK);
}

#[test]
fn a_call_that_waits_for_memory_delays_nobody_else() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let space = w.space(A);
    w.m.poke(space, BUFFER, b"long");
    w.receive(VM, Endpoint::ANY);
    w.begin_ask_system(A, KernelCall::VirCopy, &[SELF, BUFFER, SELF, MISSING - 2, 4]);
    assert_eq!(w.message(VM).label, CopyFault::LABEL);
    assert_eq!(w.ask_system(B, KernelCall::GetTsc, &[]), Ok(0), "SYSTEM is free");
    assert!(!w.is_ready(A));
    w.m.map(space, MISSING, 0x800_0000, map::WRITE);
    w.primitive(VM, call::REPLYREC, a, CopyFault::LABEL | REPLY, 0);
    assert!(w.is_ready(A));
    assert_eq!(w.message(A).result(), Ok(4));
    assert_eq!(w.m.peek(space, MISSING - 2, 4), b"long");
}

#[test]
fn a_long_copy_makes_way_for_interrupts_and_for_other_requests() {
    let mut w = World::with_services();
    let space = w.space(A);
    for page in 0..64 {
        w.m.map(space, 0x100_0000 + page * PAGE, 0x1000_0000 + page * PAGE, map::WRITE);
    }
    w.m.poke(space, 0x100_0000, b"start");
    w.m.polls_until_interrupt = Some(1);
    w.begin_ask_system(A, KernelCall::VirCopy, &[SELF, 0x100_0000, SELF, 0x102_0000, 0x2_0000]);
    w.m.polls_until_interrupt = None;
    assert_eq!(w.ask_system(C, KernelCall::GetTsc, &[]), Ok(0));
    assert!(w.is_ready(A));
    assert_eq!(w.message(A).result(), Ok(0x2_0000));
    assert_eq!(w.m.peek(space, 0x102_0000, 5), b"start");
}

#[test]
fn vector_33_reaches_it_too() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &driver_rights());
    w.m.ports.insert(0x3f8, 0x41);
    let space = w.space(A);
    let mut message = Message::new(SYSTEM_LABELS | KernelCall::DevIo as u32);
    message.words = [0x3f8, io::IN | 1, 0, 0, 0, 0, 0];
    let mut bytes = [message.source.0.to_le_bytes(), message.label.to_le_bytes()].concat();
    message.words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    w.m.poke(space, BUFFER, &bytes);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rax, frame.rdi, frame.rsi) = (call::SENDREC, Endpoint::SYSTEM.0 as u64, BUFFER);
    w.node.vector33(&mut w.m);
    assert!(w.is_ready(A));
    assert_eq!(w.result(A), Ok(0));
    assert_eq!(w.m.peek(space, BUFFER, 16)[..9], [0, 0, 0, 0, 26, 0, 0x11, 0x80, 0x41]);
}

/// The forms of a call: trap and message.
const FORMS: [(&str, fn(&mut World, KernelCall, &[u64]) -> Result<u64, Errno>); 2] = [
    ("trap", |w, call, arguments| w.kernel_call(A, call, arguments)),
    ("message", |w, call, arguments| w.ask_system(A, call, arguments)),
];

fn records(records: &[[u64; 5]]) -> Vec<u8> {
    let record = |&[from, from_address, to, to_address, bytes]: &[u64; 5]| {
        let ends = [(from as u32).to_le_bytes(), (to as u32).to_le_bytes()].concat();
        let rest = [from_address, to_address, bytes].map(u64::to_le_bytes).concat();
        [ends, rest].concat()
    };
    records.iter().flat_map(record).collect()
}

#[test]
fn physical_memory_is_copied_within_the_ranges() {
    for (form, make) in FORMS {
        let mut w = World::with_services();
        let a = w.endpoint(A);
        let mut rights = all_rights();
        rights.memory[0] = MemoryRange { start: 0x800_0000, bytes: PAGE };
        w.set_privileges(a, &rights);
        let space = w.space(A);
        w.m.map(99, 0, 0x800_0000, map::WRITE);
        w.m.poke(space, BUFFER, b"physical");
        let mut copy = |from, from_address, to, to_address, bytes| {
            make(&mut w, KernelCall::PhysCopy, &[from, from_address, to, to_address, bytes])
        };
        assert_eq!(copy(SELF, BUFFER, NONE, 0x800_0010, 8), Ok(8), "{form}");
        assert_eq!(copy(NONE, 0x800_0010, NONE, 0x800_0100, 8), Ok(8), "{form}");
        assert_eq!(copy(NONE, 0x800_0100, SELF, BUFFER + 100, 8), Ok(8), "{form}");
        assert_eq!(copy(SELF, BUFFER, SELF, BUFFER + 200, 8), Ok(8), "{form}");
        assert_eq!(copy(NONE, 0x800_0ff9, SELF, BUFFER, 8), Err(Errno::ECALLDENIED), "{form}");
        assert_eq!(copy(SELF, BUFFER, NONE, u64::MAX, 8), Err(Errno::ECALLDENIED), "{form}");
        assert_eq!(copy(SELF, u64::MAX, NONE, 0x800_0000, 8), Err(Errno::EFAULT), "{form}");
        assert_eq!(w.m.peek(space, BUFFER + 100, 8), b"physical");
        assert_eq!(w.m.peek(space, BUFFER + 200, 8), b"physical");
    }
}

#[test]
fn the_right_to_physical_copies_is_none_to_the_memory_of_others() {
    for (form, make) in FORMS {
        let mut w = World::with_services();
        let (a, b) = (w.endpoint(A), w.endpoint(B));
        let only = KernelCall::PhysCopy.bit() | KernelCall::PhysVCopy.bit();
        w.set_privileges(a, &Privileges { kernel_calls: only, ..all_rights() });
        let request = [b.0 as u64, BUFFER, SELF, BUFFER, 8];
        assert_eq!(make(&mut w, KernelCall::PhysCopy, &request), Err(Errno::ECALLDENIED), "{form}");
        let space = w.space(A);
        w.m.poke(space, BUFFER, &records(&[request]));
        assert_eq!(make(&mut w, KernelCall::PhysVCopy, &[BUFFER, 1]), Err(Errno::ECALLDENIED), "{form}");
    }
}

#[test]
fn vectors_of_copies_are_made_in_order_until_one_fails() {
    for (form, make) in FORMS {
        for call in [KernelCall::VirVCopy, KernelCall::PhysVCopy] {
            let mut w = World::with_services();
            let b = w.endpoint(B).0 as u64;
            let (space, other) = (w.space(A), w.space(B));
            w.m.poke(space, BUFFER + 1000, b"one two");
            let requests = [
                [SELF, BUFFER + 1000, b, BUFFER, 3],
                [SELF, BUFFER + 1004, b, BUFFER + 8, 3],
                [SELF, BUFFER + 1004, 0x7_0015, BUFFER + 8, 3],
                [SELF, BUFFER + 1000, b, BUFFER + 16, 3],
            ];
            w.m.poke(space, BUFFER, &records(&requests));
            assert_eq!(make(&mut w, call, &[BUFFER, 4]), Ok(2), "{form}");
            assert_eq!(w.m.peek(other, BUFFER, 19), b"one\0\0\0\0\0two\0\0\0\0\0\0\0\0", "{form}");
            assert_eq!(make(&mut w, call, &[BUFFER + 64, 2]), Err(Errno::EDEADSRCDST), "{form}");
            assert_eq!(make(&mut w, call, &[BUFFER, 65]), Err(Errno::EINVAL), "{form}");
            assert_eq!(make(&mut w, call, &[u64::MAX - 31, 2]), Err(Errno::EFAULT), "{form}");
            assert_eq!(make(&mut w, call, &[BUFFER, 0]), Ok(0), "{form}");
        }
    }
}

#[test]
fn a_vector_that_is_interrupted_goes_on_where_it_was() {
    for (form, make) in FORMS {
        let mut w = World::with_services();
        let space = w.space(A);
        w.m.poke(space, BUFFER + 1000, b"0123");
        let requests: Vec<_> = (0..4).map(|i| [SELF, BUFFER + 1000 + i, SELF, BUFFER + 2000 + i, 1]).collect();
        w.m.poke(space, BUFFER, &records(&requests));
        w.m.polls_until_interrupt = Some(3);
        let _ = make(&mut w, KernelCall::VirVCopy, &[BUFFER, 4]);
        w.m.polls_until_interrupt = None;
        assert!(w.is_ready(A));
        assert_eq!(w.m.peek(space, BUFFER + 2000, 4), b"0123", "{form}");
    }
}
