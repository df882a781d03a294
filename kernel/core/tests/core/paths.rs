//! The fast path and the ordinary path do the same: two nodes get the same calls, one by the fast path wherever that can be taken, the other
//! never. After every call all threads that exist and the scheduler are compared, at the end of a run the nodes as a whole.
//! The file is long because each condition of a fast path has a case of its own.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use abi::{
    Endpoint, Errno, Word,
    call::{self, KernelCall},
    endpoint::{FIRST_CONTAINER, slot},
    message,
    trace::event,
};
use kernel_core::Next;

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, BUFFER_PAGES, C, RS, VM, World, all_rights},
};

const MS: u64 = 1_000_000;
/// Routed to A.
const LINUX_CALL: u64 = 39;
const REAL_TIME_QUEUE: u64 = abi::call::REAL_TIME + 10;

/// Memory of all that may not be written.
const READ_ONLY: u64 = BUFFER + BUFFER_PAGES * PAGE;

/// By what number a call by vector 33 is counted.
fn by_vector_33(number: u64) -> u64 {
    number | 1 << 32
}

/// FNV-1a of what is printed.
struct Hash(u64);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3));
        Ok(())
    }
}

fn hash(value: &impl fmt::Debug) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    write!(hash, "{value:?}").expect("hashing does not fail");
    hash.0
}

struct Twins {
    fast: World,
    ordinary: World,
    programs: Vec<usize>,
    /// How often the fast path was taken, by call.
    taken: BTreeMap<u64, u32>,
}

fn world(is_ordinary: bool) -> (World, Vec<usize>) {
    let mut w = World::new();
    w.is_ordinary = is_ordinary;
    w.receive(VM, Endpoint::ANY);
    for slot in [A, B, C] {
        let endpoint = w.service(slot);
        let mut rights = all_rights();
        (rights.irqs[0], rights.irq_count) = ((slot - A + 3) as _, 1);
        w.set_privileges(endpoint, &rights);
    }
    w.kernel_call(RS, KernelCall::Route, &[LINUX_CALL, A as u64]).expect("routed");
    let programs = [w.application(), w.application()];
    for slot in [A, B, C, programs[0].slot(), programs[1].slot()] {
        let space = w.space(slot);
        w.m.map(space, READ_ONLY, (0x1000 + space as u64) * PAGE, 0);
    }
    for program in programs {
        w.kernel_call(RS, KernelCall::Join, &[program.0 as u64, FIRST_CONTAINER as u64]).expect("a container");
    }
    (w, programs.map(Endpoint::slot).to_vec())
}

impl Twins {
    fn new() -> Twins {
        let ((fast, programs), (ordinary, same)) = (world(false), world(true));
        assert_eq!(programs, same);
        Twins { fast, ordinary, programs, taken: BTreeMap::new() }
    }

    /// All in a queue each: the fast path leads to a thread that is better than all ready ones.
    fn in_queues() -> Twins {
        let mut twins = Twins::new();
        for (slot, bit) in [(A, 3), (B, 4), (C, 5)] {
            twins
                .both("line", |w| w.begin_kernel_call(slot, KernelCall::IrqSet, &[bit, 0, abi::kernel::irq::REENABLE]));
            assert_eq!(twins.fast.result(slot), Ok(0), "the line of slot {slot}");
        }
        let rs = Endpoint::SELF.0 as u64;
        twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[rs, 0, 0]));
        let slots = [A, B, C, twins.programs[0], twins.programs[1], RS];
        for (slot, queue) in slots.into_iter().zip(1..) {
            let endpoint = twins.fast.endpoint(slot).0 as u64;
            twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, 0]));
        }
        twins
    }

    /// Does the same with both, and compares them.
    fn both(&mut self, what: &str, act: impl Fn(&mut World) -> Next) -> Next {
        let before = self.fast.fast_switches;
        let [one, other] = [&mut self.fast, &mut self.ordinary].map(act);
        assert_eq!(one, other, "{what}");
        self.compare(what);
        if self.fast.fast_switches > before {
            let number = what.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
            *self.taken.entry(number).or_default() += 1;
        }
        one
    }

    fn compare(&self, what: &str) {
        assert_eq!(self.fast.m.armed, self.ordinary.m.armed, "{what}: the timer");
        let slots = [RS, VM, A, B, C, self.programs[0], self.programs[1], slot::IDLE, slot::SYSTEM];
        let [fast, ordinary] = [&self.fast, &self.ordinary].map(|w| w.node.snapshot(slots));
        if hash(&fast) != hash(&ordinary) {
            assert_eq!(format!("{fast:#?}"), format!("{ordinary:#?}"), "{what}");
        }
    }

    fn compare_all(&self) {
        assert_eq!(hash(&self.fast.node), hash(&self.ordinary.node), "the nodes differ, but in no thread");
    }

    /// The current thread makes a random call; with `members` it may be one that only members of a container make.
    fn step(&mut self, members: bool, random: &mut impl FnMut(u64) -> u64) {
        let now = self.fast.m.now + random(3 * MS);
        let timer = random(8) == 0;
        let next = self.both("time", |w| {
            w.m.now = now;
            if timer {
                w.node.timer(&mut w.m);
            }
            w.next()
        });
        let Next::Run(current) = next else {
            // Everybody waits: rs, which does not, is made to ask for the next one to run.
            return self.wake_somebody(random);
        };
        let (label, peer) = ((1 + random(3) as u32) | (random(2) as u32) << 31, [A, B, C][random(3) as usize]);
        let members = members && random(2) == 0;
        let is_service = current < abi::endpoint::SERVICE_SLOTS;
        let number = match random(10) {
            0..=3 if is_service || members => call::REPLYREC,
            4..=6 => call::SENDREC,
            7 if is_service => call::SEND,
            8 if is_service => call::NOTIFY,
            9 => KernelCall::Yield.number(),
            _ => LINUX_CALL,
        };
        let peer = if number == call::REPLYREC || members { self.somebody(random) } else { Endpoint::current(peer) };
        self.both(&format!("{number} from slot {current} to {peer:?}"), |w| {
            let frame = w.node.frame_mut(current);
            frame.rax = number;
            frame.r13 = peer.0 as u64 | (label as u64) << 32;
            frame.r14 = Endpoint::ANY.0 as u64;
            (frame.rdi, frame.rsi) = (now, label as u64);
            w.enter()
        });
    }

    /// The current thread makes a random call by vector 33, from time to time with a label or to memory that is refused. Services call
    /// services and programs programs, so each can be answered; vm refuses the memory that it is asked for.
    fn step_by_vector_33(&mut self, random: &mut impl FnMut(u64) -> u64) {
        let now = self.fast.m.now + random(3 * MS);
        let next = self.both("time", |w| {
            w.m.now = now;
            w.next()
        });
        let services = [A, B, C];
        let (current, slots) = match next {
            Next::Run(VM) => {
                let (to, no) = (self.fast.message(VM).source, Err(Errno::EFAULT).to_word());
                self.both("vm", |w| w.primitive(VM, call::REPLYREC, to, message::REPLY, no));
                return;
            }
            Next::Run(slot) if services.contains(&slot) => (slot, &services[..]),
            Next::Run(slot) if self.programs.contains(&slot) => (slot, &self.programs[..]),
            _ => return self.wake_somebody(random),
        };
        let endpoints = slots.iter().map(|&slot| self.fast.endpoint(slot)).collect::<Vec<_>>();
        let peer = endpoints[random(slots.len() as u64) as usize];
        let source = self.fast.m.peek(self.fast.space(current), BUFFER, 4);
        let asked = endpoints.into_iter().find(|endpoint| endpoint.0.to_le_bytes()[..] == source).unwrap_or(peer);
        let (number, peer) = match random(32) {
            0..=9 => (call::SENDNB, asked),
            10..=13 => (call::SEND, asked),
            14..=21 => (call::RECEIVE, Endpoint::ANY),
            22..=29 => (call::SENDREC, peer),
            30 => (call::SEND, peer),
            _ => (call::NOTIFY, peer),
        };
        let label = if random(16) == 0 { message::KERNEL_LABELS } else { 1 + random(3) as u32 };
        // The last place may not be written.
        let at = [BUFFER, BUFFER + PAGE - 32, READ_ONLY][random(64).saturating_sub(61) as usize];
        self.both(&format!("{} from slot {current} to {peer:?} at {at:#x}", by_vector_33(number)), |w| {
            let space = w.space(current);
            if at != READ_ONLY {
                w.m.poke(space, at + 4, &label.to_le_bytes());
                w.m.poke(space, at + 8, &now.to_le_bytes());
            }
            let frame = w.node.frame_mut(current);
            (frame.rax, frame.rdi, frame.rsi) = (number, peer.0 as u64, at);
            w.enter33()
        });
        let slots = [A, B, C, self.programs[0], self.programs[1]];
        let memory = |w: &mut World| slots.map(|slot| w.m.peek(w.space(slot), BUFFER, 2 * PAGE as usize));
        assert_eq!(memory(&mut self.fast), memory(&mut self.ordinary), "what was stored");
    }

    /// Somebody who may wait for an answer.
    fn somebody(&self, random: &mut impl FnMut(u64) -> u64) -> Endpoint {
        let slots = [A, B, C, self.programs[0], self.programs[1]];
        self.fast.node.thread(slots[random(5) as usize]).endpoint()
    }

    fn wake_somebody(&mut self, random: &mut impl FnMut(u64) -> u64) {
        let victim = [A, B, C][random(3) as usize];
        self.both("interrupt", |w| {
            w.node.interrupt(&mut w.m, victim - A + 3);
            w.next()
        });
    }
}

fn seeded(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    }
}

#[test]
fn both_paths_leave_the_same_node() {
    let mut taken = BTreeMap::<u64, u32>::new();
    for seed in 1..=12 {
        let mut twins = Twins::in_queues();
        let mut random = seeded(seed);
        for _ in 0..400 {
            twins.step(seed > 6, &mut random);
        }
        twins.compare_all();
        twins.taken.into_iter().for_each(|(number, times)| *taken.entry(number).or_default() += times);
    }
    for number in [call::SENDREC, call::REPLYREC, LINUX_CALL] {
        let times = taken.get(&number).copied().unwrap_or(0);
        assert!(times >= 5, "call {number} took the fast path {times} times: {taken:?}");
    }
}

#[test]
fn both_paths_leave_the_same_node_by_vector_33() {
    let mut taken = BTreeMap::<u64, u32>::new();
    for seed in 1..=12 {
        let mut twins = Twins::in_queues();
        let mut random = seeded(seed);
        for _ in 0..400 {
            twins.step_by_vector_33(&mut random);
        }
        twins.compare_all();
        twins.taken.into_iter().for_each(|(number, times)| *taken.entry(number).or_default() += times);
    }
    for number in [call::SENDREC, call::SEND] {
        let times = taken.get(&by_vector_33(number)).copied().unwrap_or(0);
        assert!(times >= 10, "call {number} took the fast path {times} times: {taken:?}");
    }
}

/// A thread makes a call by vector 33.
fn call_by_vector_33(twins: &mut Twins, slot: usize, (number, peer): (u64, Endpoint), label: u32, at: u64) -> Next {
    twins.both("vector 33", |w| {
        w.make_current(slot);
        let space = w.space(slot);
        if at != READ_ONLY {
            w.m.poke(space, at + 4, &label.to_le_bytes());
        }
        let frame = w.node.frame_mut(slot);
        (frame.rax, frame.rdi, frame.rsi) = (number, peer.0 as u64, at);
        w.enter33()
    })
}

/// A thread receives by `syscall`; its registers name memory all the same.
fn receive_in_registers(twins: &mut Twins, slot: usize, from: Endpoint) -> Next {
    twins.both("receive", |w| {
        w.syscall(slot, |frame| (frame.rax, frame.r13, frame.rsi) = (call::RECEIVE, from.0 as u64, BUFFER))
    })
}

/// A asks C, which waits, after everybody else has begun to wait. Returns whether that takes the fast path, which it does when `case` is
/// empty.
fn request_takes_fast_path(case: &str) -> bool {
    let mut twins = Twins::in_queues();
    let [program, other] = [twins.programs[0], twins.programs[1]];
    for slot in [A, B] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    let from = if case == "it waits for one" { twins.fast.endpoint(A) } else { Endpoint::ANY };
    match case {
        "it waits in registers" => receive_in_registers(&mut twins, C, Endpoint::ANY),
        "its memory is read-only" => call_by_vector_33(&mut twins, C, (call::RECEIVE, from), 0, READ_ONLY),
        _ => call_by_vector_33(&mut twins, C, (call::RECEIVE, from), 0, BUFFER),
    };
    let server = if case == "it is named by slot" { Endpoint::current(C) } else { twins.fast.endpoint(C) };
    let wake = |twins: &mut Twins, line: usize| {
        twins.both("interrupt", |w| {
            w.node.interrupt(&mut w.m, line);
            w.next()
        })
    };
    if case == "it is to be interrupted" {
        for slot in [program, other] {
            twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
        }
        twins.both("interrupt", |w| w.begin_kernel_call(RS, KernelCall::Interrupt, &[server.0 as u64]));
    }
    if case == "a better one is ready" {
        wake(&mut twins, 4);
    }
    let client = if case == "it may not be asked" { program } else { A };
    assert_eq!(if client == A { wake(&mut twins, 3) } else { Next::Run(program) }, Next::Run(client));
    let label = if case == "the label is the kernel's" { message::KERNEL_LABELS } else { 1 };
    let number = if case == "it is only sent to" { call::SENDNB } else { call::SENDREC };
    let before = twins.fast.fast_switches;
    call_by_vector_33(&mut twins, client, (number, server), label, BUFFER);
    let taken = twins.fast.fast_switches > before;
    twins.compare_all();
    taken
}

#[test]
fn a_request_by_vector_33_takes_the_fast_path_if_nothing_is_against_it() {
    assert!(request_takes_fast_path(""));
    for case in [
        "it waits for one",
        "it waits in registers",
        "its memory is read-only",
        "it is named by slot",
        "it is to be interrupted",
        "a better one is ready",
        "it may not be asked",
        "the label is the kernel's",
        "it is only sent to",
    ] {
        assert!(!request_takes_fast_path(case), "{case}");
    }
}

/// B sends to C, which waits for it. Returns whether that takes the fast path, which it does when `case` is empty.
fn send_takes_fast_path(case: &str) -> bool {
    let mut twins = Twins::new();
    let [a, b, c] = [A, B, C].map(|slot| twins.fast.endpoint(slot));
    let ask = |twins: &mut Twins, slot: usize, call: KernelCall, arguments: [u64; 3]| {
        twins.both("kernel call", |w| w.begin_kernel_call(slot, call, &arguments));
        assert!(twins.fast.result(slot).is_ok(), "{call:?}");
    };
    match case {
        "it waits in registers" => receive_in_registers(&mut twins, C, b),
        "it waits for another one" => call_by_vector_33(&mut twins, C, (call::RECEIVE, a), 0, BUFFER),
        "its memory is read-only" => call_by_vector_33(&mut twins, C, (call::RECEIVE, b), 0, READ_ONLY),
        "it is asked" | "it waits for an answer" => {
            call_by_vector_33(&mut twins, B, (call::RECEIVE, Endpoint::ANY), 0, BUFFER);
            call_by_vector_33(&mut twins, C, (call::SENDREC, b), 1, BUFFER)
        }
        _ => call_by_vector_33(&mut twins, C, (call::RECEIVE, Endpoint::ANY), 0, BUFFER),
    };
    match case {
        "it is better" => ask(&mut twins, RS, KernelCall::Schedule, [c.0 as u64, 0, 0]),
        "it is a real-time thread" => ask(&mut twins, RS, KernelCall::Schedule, [c.0 as u64, REAL_TIME_QUEUE, 0]),
        "it is stopped" => ask(&mut twins, RS, KernelCall::Stop, [c.0 as u64, 0, 0]),
        "it is to be interrupted" => ask(&mut twins, RS, KernelCall::Interrupt, [c.0 as u64, 0, 0]),
        "the sender makes itself a real-time thread" => {
            ask(&mut twins, B, KernelCall::Schedule, [b.0 as u64, REAL_TIME_QUEUE, 0]);
        }
        "messages are observed" => {
            twins.both("tracing", |w| {
                w.node.set_tracing(event::ALL);
                w.next()
            });
        }
        _ => {}
    }
    let receiver = if case == "it is named by slot" { Endpoint::current(C) } else { c };
    let sender = if case == "it may not be sent to" { twins.programs[0] } else { B };
    let label = if case == "the label is the kernel's" { message::KERNEL_LABELS } else { 1 };
    let number = if case == "it is asked" { call::SENDREC } else { call::SEND };
    let before = twins.fast.fast_switches;
    let next = call_by_vector_33(&mut twins, sender, (number, receiver), label, BUFFER);
    let taken = twins.fast.fast_switches > before;
    assert!(!taken || next == Next::Run(sender), "the sender goes on");
    twins.compare_all();
    taken
}

#[test]
fn a_send_by_vector_33_takes_the_fast_path_if_nothing_is_against_it() {
    for case in ["", "it waits for an answer"] {
        assert!(send_takes_fast_path(case), "{case}");
    }
    for case in [
        "it waits in registers",
        "it waits for another one",
        "its memory is read-only",
        "it is asked",
        "it is better",
        "it is a real-time thread",
        "it is stopped",
        "it is to be interrupted",
        "it is named by slot",
        "it may not be sent to",
        "the sender makes itself a real-time thread",
        "messages are observed",
        "the label is the kernel's",
    ] {
        assert!(!send_takes_fast_path(case), "{case}");
    }
}

#[test]
fn the_timer_comes_for_a_sender_that_goes_on_beside_nobody_but_its_receiver() {
    let mut twins = Twins::new();
    let c = twins.fast.endpoint(C);
    call_by_vector_33(&mut twins, C, (call::RECEIVE, Endpoint::ANY), 0, BUFFER);
    for slot in [A, RS, twins.programs[0], twins.programs[1]] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    let next = twins.both("timer", |w| {
        w.timer();
        w.next()
    });
    assert_eq!((next, twins.fast.m.armed), (Next::Run(B), None), "B is alone");
    assert_eq!(call_by_vector_33(&mut twins, B, (call::SEND, c), 1, BUFFER), Next::Run(B));
    assert!(twins.fast.m.armed.is_some());
}

#[test]
fn who_sends_by_vector_33_to_no_better_one_goes_on() {
    let mut twins = Twins::in_queues();
    twins.both("receive", |w| w.receive(A, Endpoint::ANY));
    let (b, c) = (twins.fast.endpoint(B), twins.fast.endpoint(C));
    call_by_vector_33(&mut twins, B, (call::RECEIVE, Endpoint::ANY), 0, BUFFER);
    assert_eq!(call_by_vector_33(&mut twins, C, (call::SENDREC, b), 1, BUFFER), Next::Run(B));
    assert_eq!(call_by_vector_33(&mut twins, B, (call::SEND, c), 1, BUFFER), Next::Run(B));
    assert_eq!(call_by_vector_33(&mut twins, B, (call::RECEIVE, Endpoint::ANY), 0, BUFFER), Next::Run(C));
    assert_eq!(twins.fast.m.peek(twins.fast.space(C), BUFFER, 4), b.0.to_le_bytes());
}

/// A client in a real-time queue waits for the answer of A, which has the priority of its queue.
fn real_time_client() -> Twins {
    let mut twins = Twins::new();
    for slot in [A, B] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    let client = twins.fast.endpoint(C);
    twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[client.0 as u64, REAL_TIME_QUEUE, 0]));
    let server = Endpoint::current(A);
    twins.both("request", |w| w.sendrec(C, server, 1));
    twins
}

#[test]
fn an_answer_to_a_real_time_client_goes_by_the_ordinary_path() {
    let mut twins = real_time_client();
    let client = twins.fast.endpoint(C);
    let before = twins.fast.fast_switches;
    assert_eq!(twins.both("answer", |w| w.primitive(A, call::REPLYREC, client, 1, 0)), Next::Run(C));
    assert_eq!(twins.fast.fast_switches, before, "the fast path knows nothing of donated priorities");
}

/// The server took the request of an ordinary client, so it runs with its own priority and may take the fast path otherwise.
#[test]
fn an_answer_to_a_client_that_became_real_time_meanwhile_goes_by_the_ordinary_path() {
    let mut twins = Twins::new();
    for slot in [A, B] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    let client = twins.fast.endpoint(C);
    twins.both("request", |w| w.sendrec(C, Endpoint::current(A), 1));
    twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[client.0 as u64, REAL_TIME_QUEUE, 0]));
    let before = twins.fast.fast_switches;
    assert_eq!(twins.both("answer", |w| w.primitive(A, call::REPLYREC, client, 1, 0)), Next::Run(C));
    assert_eq!(twins.fast.fast_switches, before);
}

#[test]
fn a_request_to_a_real_time_server_goes_by_the_ordinary_path_and_so_does_its_answer() {
    let mut twins = Twins::new();
    for slot in [A, B] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    let server = twins.fast.endpoint(A);
    twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[server.0 as u64, REAL_TIME_QUEUE, 0]));
    let before = twins.fast.fast_switches;
    assert_eq!(twins.both("request", |w| w.sendrec(C, server, 1)), Next::Run(A));
    let client = twins.fast.endpoint(C);
    assert_eq!(twins.both("answer", |w| w.primitive(A, call::REPLYREC, client, 1, 0)), Next::Run(C));
    assert_eq!(twins.fast.fast_switches, before, "the fast path would not know that a real-time thread runs");
}

/// The request was waiting when its sender became real-time, so the server runs with its own priority until it takes it.
#[test]
fn a_server_that_inherits_a_priority_while_it_runs_takes_no_fast_path() {
    let mut twins = Twins::new();
    let [one, two] = [twins.programs[0], twins.programs[1]];
    for slot in [B, one, two] {
        twins.both("receive", |w| w.receive(slot, Endpoint::ANY));
    }
    twins.both("request", |w| w.sendrec(C, Endpoint::current(A), 1));
    let client = twins.fast.endpoint(C);
    twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[client.0 as u64, REAL_TIME_QUEUE, 0]));
    twins.both("receive", |w| w.receive(RS, Endpoint::ANY));
    twins.both("receive", |w| w.receive(A, Endpoint::ANY));
    let before = twins.fast.fast_switches;
    assert_eq!(twins.both("nested request", |w| w.sendrec(A, Endpoint::current(B), 1)), Next::Run(B));
    assert_eq!(twins.fast.fast_switches, before, "B inherits the priority of the client");
}
