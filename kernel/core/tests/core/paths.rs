//! The fast path and the ordinary path do the same: two nodes get the same calls, one by the fast path wherever that can be taken, the other
//! never. After every call all threads that exist and the scheduler are compared, at the end of a run the nodes as a whole.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use abi::{
    Endpoint,
    call::{self, KernelCall},
    endpoint::{FIRST_CONTAINER, slot},
};
use kernel_core::Next;

use crate::world::{A, B, C, RS, VM, World};

const MS: u64 = 1_000_000;
/// Routed to A.
const LINUX_CALL: u64 = 39;
const REAL_TIME_QUEUE: u64 = abi::call::REAL_TIME + 10;

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
        w.service(slot);
    }
    w.kernel_call(RS, KernelCall::Route, &[LINUX_CALL, A as u64]).expect("routed");
    let programs = [w.application(), w.application()];
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
        let mut twins = Twins::new();
        for (slot, bit) in [(A, 3), (B, 4), (C, 5)] {
            twins
                .both("line", |w| w.begin_kernel_call(slot, KernelCall::IrqSet, &[bit, 0, abi::kernel::irq::REENABLE]));
        }
        // A queue each: the fast path leads to a thread that is better than all ready ones.
        let rs = Endpoint::SELF.0 as u64;
        twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[rs, 0, 0]));
        let slots = [A, B, C, twins.programs[0], twins.programs[1], RS];
        for (slot, queue) in slots.into_iter().zip(1..) {
            let endpoint = twins.fast.endpoint(slot).0 as u64;
            twins.both("schedule", |w| w.begin_kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, 0]));
        }
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
