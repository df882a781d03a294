//! A small guest: a program that asks a service, which asks a driver; with the table of threads where the kernel would have it.
#![forbid(unsafe_code)]

use abi::call::{KERNEL_CALLS, KernelCall, RECEIVE, REPLYREC, SENDNB, SENDREC};
use abi::endpoint::Endpoint;
use abi::linux::nr;
use abi::message::REPLY;
use profile::block::{Block, Blocks, End};
use profile::recorder::{BEGIN, END, USUAL};
use profile::recording::{Frame, Recording};
use profile::{Guest, Kernel, Recorder};
use std::collections::HashMap;

const KERNEL: Kernel = Kernel { syscall_entry: 1 << 63, trap_stubs: 1 << 63 | 0x1000 };
const PAGE_FAULT: u64 = 14;
/// Where the registers of the thread in a slot are saved.
const fn table(slot: u32) -> u64 {
    0x5000 + 0x200 * slot as u64
}

const PROGRAM: u32 = 200;
const FILES: u32 = 8;
const DRIVER: u32 = 11;
const READ: u32 = 0x20001;
const BLOCK: u32 = 0x30001;
const CALL: u64 = 0;

/// The threads, as the kernel has them, and the memory of the current one.
#[derive(Default)]
struct Threads {
    current: u32,
    frames: HashMap<u32, kernel_core::Frame>,
    memory: HashMap<u64, u8>,
}

impl Guest for Threads {
    fn current(&self) -> Option<(u64, kernel_core::Frame)> {
        Some((table(self.current), self.frames.get(&self.current).copied().unwrap_or(kernel_core::Frame::ZERO)))
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let there = (address..).zip(buffer).map_while(|(at, byte)| self.memory.get(&at).map(|known| *byte = *known));
        there.count()
    }
}

/// The machine: the emulator's side.
struct Machine {
    blocks: Blocks,
    threads: Threads,
    recorder: Recorder,
}

impl Machine {
    /// One in which the slots of three threads are known.
    fn new() -> Self {
        let mut machine = Machine { blocks: Vec::new(), threads: Threads::default(), recorder: Recorder::new(KERNEL) };
        for (asking, asked) in [(PROGRAM, FILES), (FILES, DRIVER)] {
            machine.resume(asked, |_| {});
            machine.call(RECEIVE, |_| {});
            machine.resume(asking, |_| {});
            machine.call(SENDREC, |frame| frame.r13 = message(asked, READ));
            machine.resume(asked, |frame| frame.r13 = message(asking, READ));
        }
        machine
    }

    /// Executes so many instructions at an address.
    fn execute(&mut self, address: u64, instructions: usize, end: End) {
        self.blocks.push(Block { address, page: 0, lengths: vec![1; instructions], end });
        self.recorder.block(&self.blocks, self.blocks.len() as u32 - 1, &self.threads);
    }

    fn user(&mut self, instructions: usize) {
        self.execute(0x40_0000, instructions, End::Other);
    }

    /// The current thread enters the kernel with this call, in ten instructions.
    fn call(&mut self, number: u64, set: impl FnOnce(&mut kernel_core::Frame)) {
        let frame = self.threads.frames.entry(self.threads.current).or_insert(kernel_core::Frame::ZERO);
        frame.rax = number;
        set(frame);
        self.execute(KERNEL.syscall_entry, 10, End::Other);
        self.recorder.syscall_saved(&self.blocks, &self.threads);
    }

    /// The kernel is left for a thread, which executes one instruction.
    fn resume(&mut self, slot: u32, set: impl FnOnce(&mut kernel_core::Frame)) {
        self.threads.current = slot;
        let frame = self.threads.frames.entry(slot).or_insert(kernel_core::Frame::ZERO);
        frame.rax = 0;
        set(frame);
        self.user(1);
    }

    /// The command begins or ends, in the program.
    fn mark(&mut self, masks: &[u64]) {
        for mask in masks {
            self.call(u64::from(nr::UMASK), |frame| frame.rdi = *mask);
            self.resume(PROGRAM, |_| {});
        }
    }

    fn finish(self) -> Recording {
        self.recorder.finish(&self.blocks, Vec::new())
    }
}

const fn message(peer: u32, label: u32) -> u64 {
    peer as u64 | (label as u64) << 32
}

/// The stack of a context, and its ticks, without those of the calls that end the recording.
fn stacks(recording: &Recording) -> Vec<(Vec<Frame>, u64)> {
    let mut ticks: HashMap<u32, u64> = HashMap::new();
    for executed in &recording.executed {
        *ticks.entry(executed.context).or_default() += executed.times * u64::from(executed.instructions);
    }
    let path = |mut context: u32| {
        let mut path = Vec::new();
        while context != 0 {
            path.push(recording.contexts[context as usize].frame);
            context = recording.contexts[context as usize].parent;
        }
        path.reverse();
        path
    };
    let mut stacks: Vec<_> = ticks.into_iter().map(|(context, ticks)| (path(context), ticks)).collect();
    stacks.sort_by_key(|(path, _)| format!("{path:?}"));
    stacks
}

/// The ticks of the context that ends in these frames.
fn ticks_of(recording: &Recording, end: &[Frame]) -> u64 {
    stacks(recording).into_iter().filter(|(path, _)| path.ends_with(end)).map(|(_, ticks)| ticks).sum()
}

fn actor_in(recording: &Recording, slot: u32) -> Frame {
    let at = recording.actors.iter().rposition(|actor| actor.slot == slot).expect("there is one");
    Frame::Actor(at as u32)
}

#[test]
fn a_driver_works_for_the_program_whose_call_caused_its_request() {
    let mut machine = Machine::new();
    machine.resume(FILES, |_| {});
    machine.call(RECEIVE, |_| {});
    machine.resume(DRIVER, |_| {});
    machine.call(RECEIVE, |_| {});
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[BEGIN, USUAL]);
    machine.call(CALL, |_| {});
    machine.resume(FILES, |frame| frame.r13 = message(PROGRAM, CALL as u32));
    machine.user(20);
    // Asks, and turns to what was sent meanwhile: nothing. The answer comes later.
    machine.call(SENDNB, |frame| frame.r13 = message(DRIVER, BLOCK));
    machine.resume(FILES, |_| {});
    machine.call(RECEIVE, |_| {});
    machine.resume(DRIVER, |frame| frame.r13 = message(FILES, BLOCK));
    machine.user(300);
    machine.call(REPLYREC, |frame| frame.r13 = message(FILES, BLOCK | REPLY));
    machine.resume(FILES, |frame| frame.r13 = message(DRIVER, BLOCK | REPLY));
    machine.user(4000);
    machine.call(REPLYREC, |frame| frame.r13 = message(PROGRAM, CALL as u32 | REPLY));
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[END]);
    let recording = machine.finish();
    let [program, files, driver] = [PROGRAM, FILES, DRIVER].map(|slot| actor_in(&recording, slot));
    let call = [program, Frame::Call(CALL as u32), files];
    assert_eq!(ticks_of(&recording, &[call.as_slice(), &[Frame::Message(BLOCK), driver]].concat()), 301);
    // With what it did before it asked, and the instructions at which it came out of the kernel.
    assert_eq!(ticks_of(&recording, &call), 1 + 20 + 1 + 1 + 4000);
    let all: u64 = stacks(&recording).iter().map(|(_, ticks)| ticks).sum();
    assert_eq!(all, recording.ticks);
    assert!(
        recording.spans.iter().all(|span| span.end != u64::MAX || span.what == Frame::Call(nr::UMASK) || span.is_work),
        "{:?}",
        recording.spans
    );
}

#[test]
fn what_a_fault_cuts_short_counts_as_far_as_it_came() {
    let mut machine = Machine::new();
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[BEGIN, USUAL]);
    machine.user(100);
    machine.execute(KERNEL.trap_stubs + 16 * PAGE_FAULT, 5, End::Other);
    machine.threads.frames.get_mut(&PROGRAM).expect("is there").rip = 0x40_0000 + 30;
    machine.recorder.trap_saved(&machine.blocks, &machine.threads);
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[END]);
    let recording = machine.finish();
    let program = actor_in(&recording, PROGRAM);
    let first = recording.executed.iter().find(|executed| executed.instructions == 30);
    assert!(first.is_some(), "{:?}", recording.executed);
    assert!(recording.executed.iter().all(|executed| executed.instructions != 100));
    assert_eq!(ticks_of(&recording, &[program, Frame::Trap(PAGE_FAULT as u8), Frame::Kernel]), 5);
}

#[test]
fn an_access_of_a_device_within_a_block_is_counted_once() {
    let mut machine = Machine::new();
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[BEGIN, USUAL]);
    machine.user(100);
    // The emulator has stopped after 40 of them and goes on.
    machine.execute(0x40_0000 + 40, 60, End::Other);
    machine.mark(&[END]);
    let recording = machine.finish();
    let program = actor_in(&recording, PROGRAM);
    assert_eq!(ticks_of(&recording, &[program]), 1 + 40 + 60);
}

#[test]
fn programs_are_called_what_they_were_executed_as() {
    let mut machine = Machine::new();
    machine.resume(PROGRAM, |_| {});
    machine.mark(&[BEGIN, USUAL]);
    let (path, first, called) = (0x1000_u64, 0x2000_u64, 0x3000_u64);
    for (at, bytes) in [(path, &b"/bin/busybox\0"[..]), (first, &called.to_le_bytes()), (called, b"/usr/bin/wc\0")] {
        machine.threads.memory.extend((at..).zip(bytes.iter().copied()));
    }
    machine.call(u64::from(nr::EXECVE), |frame| (frame.rdi, frame.rsi) = (path, first));
    machine.resume(PROGRAM, |_| {});
    machine.user(50);
    // Its child is called the same, until it is something else.
    machine.threads.current = FILES;
    machine.call(KERNEL_CALLS + KernelCall::Fork as u64, |frame| frame.rdi = u64::from(PROGRAM));
    machine.resume(FILES, |frame| frame.rax = u64::from(Endpoint::new(PROGRAM as usize + 1, 5).0));
    machine.call(RECEIVE, |_| {});
    machine.resume(PROGRAM + 1, |_| {});
    machine.user(70);
    machine.mark(&[END]);
    let recording = machine.finish();
    for slot in [PROGRAM, PROGRAM + 1] {
        let Frame::Actor(actor) = actor_in(&recording, slot) else { unreachable!() };
        assert_eq!(recording.actors[actor as usize].name.as_deref(), Some("wc"), "slot {slot}");
    }
    assert_eq!(ticks_of(&recording, &[actor_in(&recording, PROGRAM + 1)]), 71);
}
