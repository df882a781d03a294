//! Follows the guest event by event and attributes what it executes.
//!
//! A service handles the request that it has received last; after a reply, the request for which it had asked. Notifications and alarms are
//! handled in the service's own name. The kernel and interrupts are attributed to the context that they interrupt. Neighbours: `stack`,
//! `requests`.

use crate::Guest;
use crate::block::{Block, Blocks, End};
use crate::naming;
use crate::recording::{Actor, Code, Events, Executed, Frame, Page, Recording, Span};
use crate::requests::{Request, Requests};
use crate::slots::{Slots, slot_of};
use crate::stack::Stack;
use crate::thread::{Doing, Thread};
use crate::tree::{ROOT, Tree};
use abi::call::{
    KERNEL_CALLS, KERNEL_CALLS_END, KernelCall, NATIVE, NOTIFY, RECEIVE, REPLYREC, SEND, SENDNB, SENDREC, SENDWAIT,
};
use abi::endpoint::Endpoint;
use abi::kernel::Notify;
use abi::linux::nr;
use abi::message::REPLY;
use std::collections::HashMap;

/// Arguments of `umask` that mark what is recorded; nobody else uses the first and the last. It begins when the call with the second returns,
/// the shell's usual mask, after one with the first.
pub const BEGIN: u64 = 0o765;
/// See [`BEGIN`].
pub const USUAL: u64 = 0o022;
/// The mark of the end. See [`BEGIN`].
pub const END: u64 = 0o764;
/// prctl(2): sets the name of the caller.
const PR_SET_NAME: u64 = 15;
/// Vectors from here on are interrupts, which come between two instructions.
const FIRST_INTERRUPT: u8 = 32;
/// Bytes of an entry of the table of traps.
const STUB_BYTES: u64 = 16;
const VECTORS: u64 = 256;
/// Spans that are kept.
const SPANS: usize = 1_000_000;

/// Addresses in the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel {
    /// The entry of system calls.
    pub syscall_entry: u64,
    /// The table of traps.
    pub trap_stubs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Armed,
    Beginning,
    On,
    After,
}

/// Executions by context, block, and number of its instructions that were executed.
type Executions = HashMap<(u32, u32, u32), u64>;

/// The recorder.
pub struct Recorder {
    kernel: Kernel,
    state: State,
    ticks: u64,
    tree: Tree,
    threads: HashMap<u64, Thread>,
    /// Address at which the registers of the current thread are saved.
    current: u64,
    /// The kernel's call stack, between entry and exit.
    inside: Option<Stack>,
    /// The last block, and its context.
    last: Option<(u32, u32)>,
    /// The last block in user mode, its context, and the vector by which the kernel was entered.
    left: Option<(u32, u32, u8)>,
    slots: Slots,
    requests: Requests,
    actors: Vec<Actor>,
    executed: Executions,
    events: HashMap<u32, Events>,
    spans: Vec<Span>,
    lost: u64,
}

impl Recorder {
    /// A recorder of a machine that has not started.
    pub fn new(kernel: Kernel) -> Self {
        Recorder {
            kernel,
            state: State::Before,
            ticks: 0,
            tree: Tree::new(),
            threads: HashMap::new(),
            current: 0,
            inside: None,
            last: None,
            left: None,
            slots: Slots::default(),
            requests: Requests::default(),
            actors: Vec::new(),
            executed: HashMap::new(),
            events: HashMap::new(),
            spans: Vec::new(),
            lost: 0,
        }
    }

    /// A block is about to be executed.
    pub fn block(&mut self, blocks: &Blocks, number: u32, guest: &impl Guest) {
        let block = &blocks[number as usize];
        let last = self.last.map(|(last, _)| &blocks[last as usize]);
        match last {
            Some(last) if last.is_kernel() == block.is_kernel() => self.go_on(last, block),
            _ if block.is_kernel() => self.enter(block),
            _ => self.leave(guest),
        }
        let context = self.context();
        self.count(context, number, block.lengths.len());
        self.last = Some((number, context));
    }

    /// The registers of the current thread have been saved for a system call.
    pub fn syscall_saved(&mut self, blocks: &Blocks, guest: &impl Guest) {
        let Some((at, frame)) = guest.current() else { return };
        self.current = at;
        let user = self.thread().stack.context();
        let context = self.begin(user, &frame, guest);
        let context = self.tree.child(context, Frame::Kernel);
        self.inside = Some(Stack::new(context));
        if let Some((entry, counted_for)) = self.last {
            self.uncount(counted_for, entry, blocks[entry as usize].lengths.len());
            self.count(context, entry, blocks[entry as usize].lengths.len());
            self.last = Some((entry, context));
        }
        self.event(context, |events| events.entries += 1);
    }

    /// The registers of the current thread have been saved for an exception or interrupt.
    pub fn trap_saved(&mut self, blocks: &Blocks, guest: &impl Guest) {
        let (Some((_, frame)), Some((number, context, vector))) = (guest.current(), self.left.take()) else { return };
        let block = &blocks[number as usize];
        let whole = block.lengths.len();
        let done = match block.instructions_before(frame.rip) {
            None if frame.rip == block.address && vector < FIRST_INTERRUPT => 0,
            None => return,
            Some(done) => done,
        };
        self.uncount(context, number, whole);
        self.count(context, number, done);
    }

    /// A page table was loaded.
    pub fn switched(&mut self) {
        let context = self.context();
        self.event(context, |events| events.switches += 1);
    }

    /// Returns true after the end mark.
    pub fn is_over(&self) -> bool {
        self.state == State::After
    }

    /// Returns the recording. `pages`: those that blocks name by number.
    pub fn finish(mut self, blocks: &Blocks, pages: Vec<Page>) -> Recording {
        // Those of the first threads were not known when they began.
        for (at, thread) in &self.threads {
            self.actors[thread.actor as usize].slot = self.slots.slot(*at).unwrap_or(0);
        }
        let executed = self.executed.into_iter().filter(|(_, times)| *times > 0);
        let mut executed: Vec<Executed> = executed
            .map(|((context, code, instructions), times)| Executed { context, code, instructions, times })
            .collect();
        executed.sort_by_key(|one| (one.context, one.code, one.instructions));
        let mut events: Vec<Events> =
            self.events.into_iter().map(|(context, events)| Events { context, ..events }).collect();
        events.sort_by_key(|one| one.context);
        let code = |block: &Block| Code { address: block.address, page: block.page, lengths: block.lengths.clone() };
        Recording {
            ticks: self.ticks,
            contexts: self.tree.into_contexts(),
            actors: self.actors,
            code: blocks.iter().map(code).collect(),
            pages,
            executed,
            events,
            spans: self.spans,
            lost: self.lost,
        }
    }

    fn context(&self) -> u32 {
        match &self.inside {
            Some(stack) => stack.context(),
            None => self.threads.get(&self.current).map_or(ROOT, |thread| thread.stack.context()),
        }
    }

    fn thread(&mut self) -> &mut Thread {
        let at = self.current;
        if !self.threads.contains_key(&at) {
            let slot = self.slots.slot(at).unwrap_or(0);
            self.begin_thread(at, slot, None);
        }
        self.threads.get_mut(&at).expect("is there now")
    }

    /// The slot whose registers are saved at `at` has a new thread.
    fn begin_thread(&mut self, at: u64, slot: u32, name: Option<String>) {
        let actor = self.actors.len() as u32;
        self.actors.push(Actor { slot, name });
        let context = self.tree.child(ROOT, Frame::Actor(actor));
        self.requests.forget(slot);
        self.threads.insert(at, Thread::new(actor, context));
    }

    fn count(&mut self, context: u32, block: u32, instructions: usize) {
        if self.state == State::On {
            *self.executed.entry((context, block, instructions as u32)).or_default() += 1;
            self.ticks += instructions as u64;
        }
    }

    fn uncount(&mut self, context: u32, block: u32, instructions: usize) {
        if let Some(times) = self.executed.get_mut(&(context, block, instructions as u32)).filter(|times| **times > 0) {
            *times -= 1;
            self.ticks -= instructions as u64;
        }
    }

    fn event(&mut self, context: u32, count: impl FnOnce(&mut Events)) {
        if self.state == State::On {
            count(self.events.entry(context).or_default());
        }
    }

    /// A block follows another of the same privilege level.
    fn go_on(&mut self, last: &Block, next: &Block) {
        // The emulator leaves a block at an access to a device, and resumes after that instruction.
        if let (Some(done), Some((number, context))) = (last.instructions_before(next.address), self.last)
            && last.end != End::Jump(next.address)
        {
            self.uncount(context, number, last.lengths.len());
            return self.count(context, number, done);
        }
        let stack = match &mut self.inside {
            Some(stack) => stack,
            None => match self.threads.get_mut(&self.current) {
                Some(thread) => &mut thread.stack,
                None => return,
            },
        };
        stack.follow(&mut self.tree, last, next);
    }

    /// The kernel is entered.
    fn enter(&mut self, block: &Block) {
        let user = self.context();
        let stubs = self.kernel.trap_stubs..self.kernel.trap_stubs + STUB_BYTES * VECTORS;
        let vector = stubs.contains(&block.address).then(|| ((block.address - stubs.start) / STUB_BYTES) as u8);
        let context = match vector {
            Some(vector) => self.tree.child(user, Frame::Trap(vector)),
            None => user,
        };
        self.left = self.last.zip(vector).map(|((number, context), vector)| (number, context, vector));
        let context = self.tree.child(context, Frame::Kernel);
        self.inside = Some(Stack::new(context));
        if vector.is_some() {
            self.event(context, |events| events.entries += 1);
        }
    }

    /// The current thread makes a system call. Returns the context of the call.
    fn begin(&mut self, user: u32, frame: &kernel_core::Frame, guest: &impl Guest) -> u32 {
        let (number, label, to) = (frame.rax, frame.label(), slot_of(frame.endpoint().0));
        match number {
            ..NATIVE => self.begin_linux_call(user, frame, guest),
            SENDREC => {
                let context = self.send(user, label, Some(to));
                self.thread().doing = Doing::Asking(label);
                context
            }
            SEND | SENDNB | REPLYREC | SENDWAIT => {
                let receives = matches!(number, REPLYREC | SENDWAIT);
                if receives {
                    self.end_work();
                }
                if label & REPLY != 0 {
                    self.thread().doing = if receives { Doing::Receiving } else { Doing::Computing };
                    return user;
                }
                let context = self.send(user, label, Some(to));
                self.thread().doing = Doing::Sending { receives };
                context
            }
            RECEIVE => {
                self.end_work();
                self.thread().doing = Doing::Receiving;
                user
            }
            NOTIFY => user,
            KERNEL_CALLS..KERNEL_CALLS_END => {
                self.thread().doing = match number {
                    _ if number == KernelCall::Fork.number() => Doing::Forking(slot_of(frame.rdi as u32)),
                    _ if number == KernelCall::Create.number() => Doing::Creating,
                    _ => Doing::Computing,
                };
                self.tree.child(user, Frame::KernelCall(number as u32))
            }
            _ => user,
        }
    }

    fn begin_linux_call(&mut self, user: u32, frame: &kernel_core::Frame, guest: &impl Guest) -> u32 {
        let number = frame.rax as u32;
        if number == nr::UMASK {
            self.state = match (self.state, frame.rdi) {
                (State::Before, BEGIN) => State::Armed,
                (State::Armed, USUAL) => State::Beginning,
                (State::On, END) => State::After,
                (state, _) => state,
            };
        }
        let what = Frame::Call(number);
        let context = self.tree.child(user, what);
        let actor = self.thread().actor;
        // As busybox does, which forks for most of its programs and executes none.
        if (number, frame.rdi) == (nr::PRCTL, PR_SET_NAME)
            && let Some(name) = naming::name_at(guest, frame.rsi)
        {
            self.actors[actor as usize].name = Some(name);
        }
        let span = self.begin_span(actor, what, false, None);
        let slot = self.slots.slot(self.current).unwrap_or(u32::MAX);
        self.requests.forget(slot);
        self.requests.add(slot, Request { label: number, to: None, context, base: ROOT, span, is_received: false });
        let program = (number == nr::EXECVE).then(|| naming::program(guest, frame.rdi, frame.rsi)).flatten();
        self.thread().doing = Doing::LinuxCall { number, span, program };
        context
    }

    /// The current thread sends a request. Returns its context.
    fn send(&mut self, user: u32, label: u32, to: Option<u32>) -> u32 {
        let what = Frame::Message(label);
        let context = self.tree.child(user, what);
        let actor = self.thread().actor;
        let span = self.begin_span(actor, what, false, None);
        let base = self.thread().stack.base();
        if let Some(slot) = self.slots.slot(self.current) {
            self.requests.add(slot, Request { label, to, context, base, span, is_received: false });
        }
        context
    }

    /// The kernel is left for a thread.
    fn leave(&mut self, guest: &impl Guest) {
        let came_from = core::mem::replace(&mut self.current, 0);
        self.inside = None;
        let Some((at, frame)) = guest.current() else { return };
        self.current = at;
        let failed = (frame.rax as i64) < 0;
        let doing = core::mem::replace(&mut self.thread().doing, Doing::Computing);
        match doing {
            Doing::Computing => {}
            Doing::LinuxCall { number, span, program } => self.end_linux_call(number, span, program, failed),
            Doing::Asking(label) => {
                let slot = self.slots.slot(at);
                let asked = slot.and_then(|slot| self.requests.answer(slot, label, None));
                self.end_span(asked.and_then(|asked| asked.span));
            }
            Doing::Sending { .. } if failed => {
                if let Some(slot) = self.slots.slot(at) {
                    self.requests.withdraw(slot);
                }
            }
            Doing::Sending { receives: true } => self.receive(came_from, &frame),
            Doing::Receiving if !failed => self.receive(came_from, &frame),
            Doing::Sending { .. } | Doing::Receiving => {}
            Doing::Forking(parent) if !failed => {
                let name = self.slots.frame(parent).and_then(|at| self.threads.get(&at));
                let name = name.and_then(|parent| self.actors[parent.actor as usize].name.clone());
                self.created(frame.rax as u32, name);
            }
            Doing::Creating if !failed => self.created(frame.rax as u32, None),
            Doing::Forking(_) | Doing::Creating => {}
        }
    }

    fn created(&mut self, endpoint: u32, name: Option<String>) {
        let slot = slot_of(endpoint);
        if let Some(at) = self.slots.frame(slot) {
            self.begin_thread(at, slot, name);
        }
    }

    fn end_linux_call(&mut self, number: u32, span: Option<u32>, program: Option<String>, failed: bool) {
        self.end_span(span);
        if number == nr::UMASK && self.state == State::Beginning {
            self.state = State::On;
        }
        if let (Some(name), false) = (program, failed) {
            let slot = self.slots.slot(self.current).unwrap_or(0);
            self.begin_thread(self.current, slot, Some(name));
        }
    }

    /// The current thread has received a message, after the thread whose registers are saved at `came_from` ran.
    fn receive(&mut self, came_from: u64, frame: &kernel_core::Frame) {
        let (source, label) = (frame.endpoint(), frame.label());
        let from = slot_of(source.0);
        let own = self.slots.slot(self.current);
        let actor = self.thread().actor;
        let mine = self.tree.child(ROOT, Frame::Actor(actor));
        if label & REPLY != 0 {
            let answered = own.and_then(|own| self.requests.answer(own, label & !REPLY, Some(from)));
            let base = answered.map_or(mine, |answered| answered.base);
            self.end_span(answered.and_then(|answered| answered.span));
            return self.work_on(base, Frame::Message(label & !REPLY), None);
        }
        if label == Notify::LABEL || matches!(source, Endpoint::CLOCK | Endpoint::HARDWARE) {
            return self.rebase(mine);
        }
        if self.threads.get(&came_from).is_some_and(|sender| sender.doing == Doing::Asking(label)) {
            self.slots.learn(came_from, from);
        }
        let request = self.requests.receive(from, label, own);
        let (context, cause) = match request {
            Some(request) => (request.context, request.span),
            // The kernel has sent it in the thread's name.
            None => {
                let sender = self.slots.frame(from).and_then(|at| self.threads.get(&at));
                let what = Frame::Message(label);
                (sender.map_or(mine, |sender| self.tree.child(sender.stack.context(), what)), None)
            }
        };
        let base = self.tree.child(context, Frame::Actor(actor));
        self.work_on(base, Frame::Message(label), cause);
    }

    fn work_on(&mut self, base: u32, what: Frame, cause: Option<u32>) {
        self.rebase(base);
        let actor = self.thread().actor;
        let span = self.begin_span(actor, what, true, cause);
        self.thread().work = span;
    }

    fn rebase(&mut self, base: u32) {
        if let Some(thread) = self.threads.get_mut(&self.current) {
            thread.stack.rebase(&mut self.tree, base);
        }
    }

    fn end_work(&mut self) {
        let work = self.thread().work.take();
        self.end_span(work);
    }

    fn begin_span(&mut self, actor: u32, what: Frame, is_work: bool, cause: Option<u32>) -> Option<u32> {
        if self.state != State::On {
            return None;
        }
        if self.spans.len() == SPANS {
            self.lost += 1;
            return None;
        }
        self.spans.push(Span { actor, what, is_work, begin: self.ticks, end: u64::MAX, cause });
        Some(self.spans.len() as u32 - 1)
    }

    fn end_span(&mut self, span: Option<u32>) {
        if let Some(span) = span.and_then(|span| self.spans.get_mut(span as usize)) {
            span.end = self.ticks;
        }
    }
}
