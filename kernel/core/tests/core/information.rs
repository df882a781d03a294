//! What `GetInfo` and its neighbours tell of threads, of the kernel and of the machine, and the clock.

use abi::{
    Endpoint, Errno, Name,
    call::{self, KernelCall, NO_QUANTUM, REAL_TIME},
    endpoint::{SERVICE_SLOTS, SLOTS},
    info::{self, state},
    layout::USER_END,
    privilege::Privileges,
};
use kernel_core::Next;

use crate::world::{A, B, BUFFER, C, RS, VM, World, all_rights};

const THREAD_BYTES: u64 = 72;
const KERNEL_BYTES: u64 = 88;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    endpoint: Endpoint,
    state: u32,
    blocked_on: Endpoint,
    queue: u32,
    run_ns: u64,
    messages: u64,
    name: Name,
    ip: u64,
    sp: u64,
}

fn bytes_of(w: &mut World, what: u64, index: u64, bytes: u64) -> Vec<u8> {
    assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &[what, index, BUFFER, bytes]), Ok(bytes));
    let space = w.space(C);
    w.m.peek(space, BUFFER, bytes as usize)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"))
}

/// What C is told of the thread in a slot.
fn told(w: &mut World, slot: usize) -> Told {
    let bytes = bytes_of(w, info::THREAD, slot as u64, THREAD_BYTES);
    let half = |at: usize| word(&bytes, at) as u32;
    Told {
        endpoint: Endpoint(half(0)),
        state: half(4),
        blocked_on: Endpoint(word(&bytes, 8) as u32),
        queue: half(12),
        run_ns: word(&bytes, 16),
        messages: word(&bytes, 24),
        name: Name(bytes[32..48].try_into().expect("a name")),
        ip: word(&bytes, 48),
        sp: word(&bytes, 56),
    }
}

/// What C is told of the kernel, word by word.
fn kernel(w: &mut World) -> [u64; 11] {
    let bytes = bytes_of(w, info::KERNEL, 0, KERNEL_BYTES);
    core::array::from_fn(|at| word(&bytes, at * 8))
}

#[test]
fn what_a_thread_waits_for_is_told_without_a_write() {
    let mut w = World::with_services();
    let [a, b] = [A, B].map(|slot| w.endpoint(slot));
    let wait = |w: &mut World, of: Endpoint| w.kernel_call(C, KernelCall::GetInfo, &[info::WAIT, of.0 as u64, 1, 8]);
    assert_eq!(wait(&mut w, a), Ok(u64::from(state::READY) | u64::from(Endpoint::NONE.0) << 32));
    w.receive(A, b);
    assert_eq!(wait(&mut w, a), Ok(u64::from(state::RECEIVING) | u64::from(b.0) << 32));
    w.kernel_call(RS, KernelCall::Destroy, &[a.0 as u64, 0]).expect("destroyed");
    assert_eq!(wait(&mut w, a), Err(Errno::EDEADSRCDST));
}

#[test]
fn a_thread_is_told_with_all_that_is_known_of_it() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let name = Name::new("a service").expect("short");
    w.set_privileges(a, &Privileges { name, ..all_rights() });
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rip, frame.rsp) = (0x40_1234, 0x7fff_0000);
    let ready = Told {
        endpoint: a,
        state: state::READY,
        blocked_on: Endpoint::NONE,
        queue: 4,
        run_ns: 0,
        messages: 0,
        name,
        ip: 0x40_1234,
        sp: 0x7fff_0000,
    };
    assert_eq!(told(&mut w, A), ready);
    let b = w.endpoint(B);
    w.send(A, b, 1);
    assert_eq!(told(&mut w, A), Told { state: state::SENDING, blocked_on: b, ..ready });
    w.receive(B, Endpoint::ANY);
    assert_eq!(told(&mut w, A), Told { messages: 1, ..ready });
    w.receive(A, b);
    assert_eq!(told(&mut w, A), Told { state: state::RECEIVING, blocked_on: b, messages: 1, ..ready });
    w.kernel_call(RS, KernelCall::Stop, &[a.0 as u64]).expect("stopped");
    assert_eq!(told(&mut w, A).state, state::STOPPED);
    assert_eq!(told(&mut w, A).blocked_on, b, "it waits besides");
}

#[test]
fn states_of_threads_have_their_own_numbers() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.sendrec(A, b, 1);
    assert_eq!((told(&mut w, A).state, told(&mut w, A).blocked_on), (state::SENDING, b));
    w.receive(B, Endpoint::ANY);
    assert_eq!((told(&mut w, A).state, told(&mut w, A).blocked_on), (state::ANSWERING, b));
    w.make_current(B);
    w.node.page_fault(&mut w.m, 0x7000_0000, 0);
    assert_eq!((told(&mut w, B).state, told(&mut w, B).blocked_on), (state::FAULTING, Endpoint::VM), "vm is busy");
    let vm = w.endpoint(VM);
    w.receive(VM, Endpoint::ANY);
    assert_eq!((told(&mut w, B).state, told(&mut w, B).blocked_on), (state::FAULTING, vm));
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 1]).expect("destroyed");
    let b = w.inert_service(B);
    assert_eq!((told(&mut w, B).endpoint, told(&mut w, B).state), (b, state::STOPPED), "not started");
    w.kernel_call(RS, KernelCall::SpaceSet, &[b.0 as u64, u64::MAX]).expect("taken away");
    w.kernel_call(RS, KernelCall::Start, &[b.0 as u64]).expect("started");
    assert_eq!(told(&mut w, B).state, state::STOPPED, "without a space");
    assert_eq!(told(&mut w, A).endpoint, a);
}

#[test]
fn queues_are_told_as_they_are_set() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    w.receive(A, Endpoint::ANY);
    for queue in [0, 15, REAL_TIME + 1, REAL_TIME + 46] {
        assert_eq!(w.kernel_call(RS, KernelCall::Schedule, &[a, queue, 0]), Ok(0));
        assert_eq!(told(&mut w, A).queue as u64, queue);
    }
    for queue in [16, REAL_TIME, REAL_TIME + 47, u64::MAX - 1] {
        assert_eq!(w.kernel_call(RS, KernelCall::Schedule, &[a, queue, 0]), Err(Errno::EINVAL), "{queue}");
    }
    assert_eq!(w.kernel_call(RS, KernelCall::Schedule, &[a, u64::MAX, NO_QUANTUM]), Ok(0));
    assert_eq!(told(&mut w, A).queue as u64, REAL_TIME + 46, "kept");
}

/// A serves a real-time client.
#[test]
fn the_queue_that_is_told_is_the_one_that_a_thread_has_been_donated() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(A, Endpoint::ANY);
    w.kernel_call(RS, KernelCall::Schedule, &[b.0 as u64, REAL_TIME + 7, 0]).expect("scheduled");
    assert_eq!(w.sendrec(B, a, 1), Next::Run(A));
    w.kernel_call(A, KernelCall::GetInfo, &[info::THREAD, A as u64, BUFFER, THREAD_BYTES]).expect("told");
    let space = w.space(A);
    let bytes = w.m.peek(space, BUFFER, THREAD_BYTES as usize);
    assert_eq!(word(&bytes, 12) as u32, REAL_TIME as u32 + 7);
}

#[test]
fn the_time_that_threads_have_used_adds_up() {
    let mut w = World::with_services();
    w.make_current(A);
    w.m.now += 500;
    w.receive(A, Endpoint::ANY);
    assert_eq!(told(&mut w, A).run_ns, 500);
    w.make_current(C);
    w.m.now += 700;
    assert_eq!((told(&mut w, C).run_ns, told(&mut w, A).run_ns), (700, 500), "until now");
    for slot in [RS, VM, B] {
        w.receive(slot, Endpoint::ANY);
    }
    w.make_current(C);
    let idle = kernel(&mut w)[1];
    let alarm = w.m.now + 2000;
    w.kernel_call(C, KernelCall::SetAlarm, &[alarm]).expect("set");
    assert_eq!(w.receive(C, Endpoint::ANY), Next::Idle);
    w.m.now += 2000;
    w.node.timer(&mut w.m);
    w.next();
    let all = kernel(&mut w);
    assert_eq!((all[0], all[1] - idle), (w.m.now, 2000));
}

#[test]
fn the_kernel_counts_messages_switches_interrupts_and_threads() {
    let mut w = World::with_services();
    w.make_current(C);
    let before = kernel(&mut w);
    assert_eq!(before[10], 5, "rs, vm, A, B, C");
    assert_eq!((before[2], before[9]), (1_000_000_000, w.m.pool), "what the machine knows");
    w.application();
    let c = w.endpoint(C);
    w.receive(C, Endpoint::ANY);
    w.primitive(B, call::SEND, c, 1, 0);
    w.receive(C, Endpoint::ANY);
    w.primitive(A, call::NOTIFY, c, 0, 0);
    w.node.interrupt(&mut w.m, 3);
    w.node.interrupt(&mut w.m, 3);
    w.make_current(C);
    let now = kernel(&mut w);
    assert_eq!([now[4] - before[4], now[6] - before[6], now[10] - before[10]], [2, 2, 1]);
    w.make_current(C);
    let switches = kernel(&mut w)[5];
    assert_eq!(kernel(&mut w)[5], switches, "C runs on");
    w.begin_kernel_call(C, KernelCall::Yield, &[]);
    w.make_current(C);
    assert!(kernel(&mut w)[5] >= switches + 2);
}

#[test]
fn programs_have_no_names() {
    let mut w = World::with_services();
    let program = w.application();
    let told = told(&mut w, program.slot());
    assert_eq!((told.endpoint, told.name), (program, Name::default()));
}

#[test]
fn answers_are_truncated_to_the_room_there_is() {
    let mut w = World::with_services();
    let space = w.space(C);
    w.m.poke(space, BUFFER, &[0xee; 100]);
    assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &[info::THREAD, C as u64, BUFFER, 6]), Ok(6));
    assert_eq!(w.m.peek(space, BUFFER + 6, 2), [0xee; 2]);
    assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &[info::THREAD, C as u64, BUFFER, 0]), Ok(0));
    assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &[info::THREAD, C as u64, BUFFER, 1000]), Ok(THREAD_BYTES));
    assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &[info::KERNEL, 0, BUFFER, 1000]), Ok(KERNEL_BYTES));
}

#[test]
fn threads_are_told_by_slot() {
    let mut w = World::with_services();
    let ask = |w: &mut World, slot: u64| w.kernel_call(C, KernelCall::GetInfo, &[info::THREAD, slot, BUFFER, 64]);
    assert_eq!(ask(&mut w, SLOTS as u64 - 1), Err(Errno::ESRCH));
    assert_eq!(ask(&mut w, SLOTS as u64), Err(Errno::EINVAL));
    assert_eq!(ask(&mut w, u64::MAX), Err(Errno::EINVAL));
    for (slot, error) in
        [(SLOTS as u64 - 1, Errno::EDEADSRCDST), (SLOTS as u64, Errno::EINVAL), (1 << 60, Errno::EINVAL)]
    {
        assert_eq!(w.kernel_call(C, KernelCall::WhoIs, &[slot]), Err(error));
    }
}

#[test]
fn rights_are_told_to_their_owner_and_to_rs() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let rights = Privileges { flags: 0x55, ..all_rights() };
    w.set_privileges(a, &rights);
    let bytes = crate::world::privilege_bytes(&rights);
    let ask = |w: &mut World, slot: usize, entry: u64| {
        w.kernel_call(slot, KernelCall::GetInfo, &[info::PRIVILEGES, entry, BUFFER, 272])
    };
    for slot in [A, RS] {
        assert_eq!(ask(&mut w, slot, A as u64), Ok(272));
        let space = w.space(slot);
        assert_eq!(w.m.peek(space, BUFFER, 272), bytes);
    }
    assert_eq!(ask(&mut w, A, B as u64), Err(Errno::EPERM));
    assert_eq!(ask(&mut w, RS, SERVICE_SLOTS as u64 - 1), Ok(272));
    assert_eq!(ask(&mut w, RS, SERVICE_SLOTS as u64), Err(Errno::EINVAL));
}

#[test]
fn long_answers_of_the_machine_come_in_pieces_and_end_where_they_end() {
    for (length, room) in [(512, 1000), (513, 1000), (1500, 4000), (1500, 1100), (1500, 512), (0, 100)] {
        let mut w = World::with_services();
        w.m.command_line = (0..length).map(|byte| byte as u8 | 1).collect();
        let space = w.space(C);
        w.m.poke(space, BUFFER, &[0; 4096]);
        let told = length.min(room);
        let words = [info::COMMAND_LINE, 0, BUFFER + 3, room as u64];
        assert_eq!(w.kernel_call(C, KernelCall::GetInfo, &words), Ok(told as u64), "{length} {room}");
        assert_eq!(w.m.peek(space, BUFFER + 3, told), w.m.command_line[..told]);
        assert_eq!(w.m.peek(space, BUFFER + 3 + told as u64, 2), [0, 0]);
    }
    let mut w = World::with_services();
    w.m.command_line = vec![7; 600];
    let space = w.space(C);
    w.m.map(space, USER_END - 4096, 0x900_0000, abi::layout::map::WRITE);
    let mut ask = |address: u64| w.kernel_call(C, KernelCall::GetInfo, &[info::COMMAND_LINE, 0, address, 600]);
    assert_eq!(ask(USER_END - 512), Err(Errno::EFAULT));
    assert_eq!(ask(USER_END - 600), Ok(600));
    assert_eq!(ask(u64::MAX - 511), Err(Errno::EFAULT));
    assert_eq!(w.kernel_call(VM, KernelCall::GetInfo, &[info::FREE_MEMORY, 0, BUFFER, 9]), Err(Errno::ENOENT));
}

#[test]
fn the_clock_tells_both_times_and_one_of_them_can_be_set() {
    let mut w = World::with_services();
    w.m.now = 5000;
    assert_eq!(w.kernel_call(C, KernelCall::Time, &[]), Ok(5000));
    assert_eq!(w.node.frame_mut(C).rdi, 5000);
    assert_eq!(w.kernel_call(C, KernelCall::SetTime, &[1_000_000]), Ok(0));
    w.m.now = 5007;
    assert_eq!(w.kernel_call(C, KernelCall::Time, &[]), Ok(5007));
    assert_eq!(w.node.frame_mut(C).rdi, 1_000_007);
    assert_eq!(w.kernel_call(C, KernelCall::SetTime, &[7]), Ok(0), "before the start of the clock");
    assert_eq!(w.kernel_call(C, KernelCall::Time, &[]), Ok(5007));
    assert_eq!(w.node.frame_mut(C).rdi, 7);
}

#[test]
fn text_for_the_log_has_a_limit() {
    let mut w = World::with_services();
    let space = w.space(C);
    w.m.poke(space, BUFFER, &[b'x'; 1025]);
    let mut print = |bytes: u64, address: u64| w.kernel_call(C, KernelCall::Diag, &[address, bytes]);
    assert_eq!(print(3, BUFFER), Ok(3));
    assert_eq!(print(0, BUFFER), Ok(0));
    assert_eq!(print(1024, BUFFER), Ok(1024));
    assert_eq!(print(1025, BUFFER), Err(Errno::EINVAL));
    assert_eq!(print(3, USER_END - 2), Err(Errno::EFAULT));
    assert_eq!(w.m.console, [b'x'; 1027]);
}
