//! A node on the made-up machine, and a way to let any ready thread make its next call: all threads share one queue,
//! and the others yield.

use abi::{
    Endpoint, Errno, Message, Name, Word,
    call::{self, KernelCall},
    endpoint::slot,
    layout::map,
    privilege::Privileges,
    rt,
};
use kernel_core::{FastSwitch, Frame, Kernel, Next, frame::entry};
use zerocopy::FromZeros;

use crate::fake::{Fake, PAGE};

pub const RS: usize = slot::RS;
pub const VM: usize = slot::VM;
pub const PM: usize = slot::PM;
/// Three services for tests.
pub const A: usize = 20;
pub const B: usize = 21;
pub const C: usize = 22;

/// Every space of the tests has these writable pages.
pub const BUFFER: u64 = 0x10_0000;
pub const BUFFER_PAGES: u64 = 4;

/// Where tests put instructions.
pub const CODE: u64 = BUFFER + 3 * PAGE;

pub struct World {
    pub node: Box<Kernel>,
    pub m: Fake,
    /// No call takes the fast path.
    pub is_ordinary: bool,
    /// Messages that have taken it.
    pub fast_switches: u32,
    /// Copies that have.
    pub fast_copies: u32,
}

impl World {
    /// rs and vm run.
    pub fn new() -> World {
        let m = Fake { pool: 1000, can_renew: true, command_line: b"quiet".to_vec(), ..Fake::default() };
        let mut world =
            World { node: Box::new(Kernel::new_zeroed()), m, is_ordinary: false, fast_switches: 0, fast_copies: 0 };
        world.node.boot(&mut world.m);
        for slot in [RS, VM] {
            world.map_buffer(slot as u16);
            world.node.boot_service(&mut world.m, slot, Name::new("boot").expect("short"), Frame::start(0x40_0000, 0));
        }
        world.next();
        world
    }

    /// rs, vm, and services A, B, C with all rights, ready.
    pub fn with_services() -> World {
        let mut world = World::new();
        for slot in [A, B, C] {
            world.service(slot);
        }
        world
    }

    fn map_buffer(&mut self, space: u16) {
        for page in 0..BUFFER_PAGES {
            let frame = (space as u64 * BUFFER_PAGES + page + 1) * PAGE;
            self.m.map(space, BUFFER + page * PAGE, frame, map::WRITE);
        }
    }

    /// A service with all rights, ready to run. Returns its endpoint.
    pub fn service(&mut self, slot: usize) -> Endpoint {
        let endpoint = self.inert_service(slot);
        self.set_privileges(endpoint, &all_rights());
        self.kernel_call(RS, KernelCall::Start, &[endpoint.0 as u64]).expect("started");
        endpoint
    }

    /// A service with a space, not started.
    pub fn inert_service(&mut self, slot: usize) -> Endpoint {
        let endpoint = self.kernel_call(RS, KernelCall::Create, &[slot as u64]).expect("created");
        let space = self.kernel_call(RS, KernelCall::SpaceCreate, &[]).expect("space");
        self.map_buffer(space as u16);
        self.kernel_call(RS, KernelCall::SpaceSet, &[endpoint, space]).expect("space set");
        Endpoint(endpoint as u32)
    }

    /// An application thread with a space, ready to run.
    pub fn application(&mut self) -> Endpoint {
        let endpoint = self.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("forked");
        let space = self.kernel_call(RS, KernelCall::SpaceCreate, &[]).expect("space");
        self.map_buffer(space as u16);
        self.kernel_call(RS, KernelCall::SpaceSet, &[endpoint, space]).expect("space set");
        self.kernel_call(RS, KernelCall::Schedule, &[endpoint, 4, 0]).expect("same queue as services");
        self.kernel_call(RS, KernelCall::Start, &[endpoint]).expect("started");
        Endpoint(endpoint as u32)
    }

    pub fn set_privileges(&mut self, endpoint: Endpoint, privileges: &Privileges) {
        self.try_set_privileges(endpoint, privileges).expect("privileges set");
    }

    pub fn try_set_privileges(&mut self, endpoint: Endpoint, privileges: &Privileges) -> Result<u64, Errno> {
        let bytes = privilege_bytes(privileges);
        self.m.poke(RS as u16, BUFFER, &bytes);
        self.kernel_call(RS, KernelCall::PrivCtl, &[endpoint.0 as u64, BUFFER])
    }

    pub fn space(&self, slot: usize) -> u16 {
        self.node.thread(slot).space().expect("has a space").0
    }

    pub fn endpoint(&self, slot: usize) -> Endpoint {
        self.node.thread(slot).endpoint()
    }

    /// Lets the node decide who runs.
    pub fn next(&mut self) -> Next {
        self.node.next(&mut self.m)
    }

    /// True when the thread is ready or runs.
    pub fn is_ready(&mut self, slot: usize) -> bool {
        self.try_make_current(slot)
    }

    fn try_make_current(&mut self, slot: usize) -> bool {
        for _ in 0..64 {
            match self.next() {
                Next::Run(current) if current == slot => return true,
                Next::Run(current) => {
                    let saved = *self.node.frame_mut(current);
                    self.node.frame_mut(current).rax = KernelCall::Yield.number();
                    let number = self.node.frame_mut(current).rax;
                    self.node.syscall(&mut self.m, number);
                    *self.node.frame_mut(current) = saved;
                }
                Next::Idle => return false,
                Next::Interrupts => {}
            }
        }
        false
    }

    pub fn make_current(&mut self, slot: usize) {
        assert!(self.try_make_current(slot), "slot {slot} is not ready: {:?}", self.node.thread(slot));
    }

    /// Lets `slot` execute `syscall` with these registers.
    pub fn syscall(&mut self, slot: usize, set: impl FnOnce(&mut Frame)) -> Next {
        self.make_current(slot);
        set(self.node.frame_mut(slot));
        self.enter()
    }

    /// The current thread, whose registers are set, executes `syscall`; as the hardware half does it: by the fast path
    /// where that can be taken.
    pub fn enter(&mut self) -> Next {
        let current = self.node.current();
        self.node.frame_mut(current).entry = entry::SYSCALL;
        if let number @ rt::call::FIRST..rt::call::END = self.node.frame_mut(current).rax {
            self.node.real_time_call(&mut self.m, number);
            return self.next();
        }
        let copies = [KernelCall::VirCopy, KernelCall::SafeCopyFrom, KernelCall::SafeCopyTo];
        let copy = copies.into_iter().find(|call| call.number() == self.node.frame_mut(current).rax);
        if copy.is_some_and(|call| !self.is_ordinary && self.node.try_copy(&mut self.m, call)) {
            self.fast_copies += 1;
            return self.next();
        }
        let fast_path = match self.node.frame_mut(current).rax {
            _ if self.is_ordinary => None,
            number @ ..call::NATIVE => {
                let plain = self.node.try_linux_call(&mut self.m, number, false);
                let fetches = plain.is_none() && self.node.fetches(number);
                plain.or_else(|| fetches.then(|| self.node.try_linux_call(&mut self.m, number, true))?)
            }
            number => self.node.try_primitive(&mut self.m, number),
        };
        let Some(FastSwitch { from, to, word }) = fast_path else {
            let number = self.node.frame_mut(current).rax;
            if self.is_ordinary || self.node.try_kept(number).is_none() {
                self.node.syscall(&mut self.m, number);
            }
            return self.next();
        };
        self.fast_switches += 1;
        if from != to {
            let words = *self.node.frame_mut(from);
            let is_linux_call = words.rax < call::NATIVE;
            let number = self.node.thread(from).messages();
            let frame = self.node.frame_mut(to);
            (frame.rax, frame.rdi, frame.rsi, frame.rdx) = (0, words.rdi, words.rsi, words.rdx);
            (frame.r10, frame.r8, frame.r9) = (words.r10, words.r8, word.unwrap_or(words.r9));
            frame.r12 = if is_linux_call { number } else { words.r12 };
        }
        Next::Run(to)
    }

    /// The current thread, whose registers are set, executes `int 0x21`, likewise.
    pub fn enter33(&mut self) -> Next {
        let current = self.node.current();
        self.node.frame_mut(current).entry = entry::FULL;
        if self.is_ordinary {
            self.node.vector33(&mut self.m);
            return self.next();
        }
        if let Some(slot) = self.node.try_vector33(&mut self.m) {
            assert_eq!(slot, self.node.current());
            self.fast_switches += 1;
            return Next::Run(slot);
        }
        self.node.vector33(&mut self.m);
        if self.node.goes_on(&mut self.m) { Next::Run(current) } else { self.next() }
    }

    /// The timer comes. Returns true when it is armed for now again.
    pub fn timer_once(&mut self) -> bool {
        self.m.armed = None;
        self.node.timer(&mut self.m);
        self.m.armed.is_some_and(|deadline| deadline <= self.m.now)
    }

    /// The timer comes, and again while it is armed for now.
    pub fn timer(&mut self) {
        while self.timer_once() {}
    }

    /// A kernel call that finishes at once.
    pub fn kernel_call(&mut self, slot: usize, call: KernelCall, arguments: &[u64]) -> Result<u64, Errno> {
        self.begin_kernel_call(slot, call, arguments);
        self.result(slot)
    }

    /// A kernel call that may have to wait.
    pub fn begin_kernel_call(&mut self, slot: usize, call: KernelCall, arguments: &[u64]) -> Next {
        let mut words = [0; 6];
        words[..arguments.len()].copy_from_slice(arguments);
        self.syscall(slot, |frame| {
            [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9] = words;
            frame.rax = call.number();
        })
    }

    /// The same as a message to the SYSTEM task. `Err`: its answer is an error, or has not come.
    pub fn ask_system(&mut self, slot: usize, call: KernelCall, arguments: &[u64]) -> Result<u64, Errno> {
        if self.begin_ask_system(slot, call, arguments) == Next::Interrupts {
            self.next();
        }
        if self.result(slot)? != 0 {
            return Err(Errno::EINPROGRESS);
        }
        self.message(slot).result()
    }

    /// The same, if it may have to wait.
    pub fn begin_ask_system(&mut self, slot: usize, call: KernelCall, arguments: &[u64]) -> Next {
        let mut words = [0; 6];
        words[..arguments.len()].copy_from_slice(arguments);
        let label = call::SYSTEM_LABELS | call as u32;
        self.syscall(slot, |frame| {
            [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9] = words;
            frame.rax = call::SENDREC;
            frame.r13 = Endpoint::SYSTEM.0 as u64 | (label as u64) << 32;
        })
    }

    /// Lets `slot` execute `int 0x22`.
    pub fn begin_hal(&mut self, slot: usize, operation: u64, port: u64, value: u64, count: u64) -> Next {
        self.make_current(slot);
        let frame = self.node.frame_mut(slot);
        (frame.rax, frame.rdx, frame.rdi, frame.r10) = (operation, port, value, count);
        self.node.hal(&mut self.m);
        self.next()
    }

    /// The same, if it is done at once.
    pub fn hal(&mut self, slot: usize, operation: u64, port: u64, value: u64) -> Result<u64, Errno> {
        self.begin_hal(slot, operation, port, value, 0);
        self.result(slot)
    }

    /// Lets `slot` execute an instruction on which it takes a protection fault, with these registers.
    pub fn protection_fault(&mut self, slot: usize, code: &[u8], set: impl FnOnce(&mut Frame)) -> Next {
        let space = self.space(slot);
        self.m.poke(space, CODE, code);
        self.make_current(slot);
        let frame = self.node.frame_mut(slot);
        set(frame);
        frame.rip = CODE;
        self.node.exception(&mut self.m, 13, 0, 0);
        self.next()
    }

    /// What is in `rax`.
    pub fn result(&mut self, slot: usize) -> Result<u64, Errno> {
        Word::from_word(self.node.frame_mut(slot).rax)
    }

    /// A primitive with a message `(label, word 0)`.
    pub fn primitive(&mut self, slot: usize, number: u64, peer: Endpoint, label: u32, word: u64) -> Next {
        self.syscall(slot, |frame| {
            frame.rax = number;
            frame.r13 = peer.0 as u64 | (label as u64) << 32;
            frame.r14 = Endpoint::ANY.0 as u64;
            frame.rdi = word;
            [frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9, frame.r12] =
                [word + 1, word + 2, word + 3, word + 4, word + 5, word + 6];
        })
    }

    pub fn send(&mut self, slot: usize, to: Endpoint, label: u32) -> Next {
        self.primitive(slot, call::SEND, to, label, 0)
    }

    pub fn sendrec(&mut self, slot: usize, to: Endpoint, label: u32) -> Next {
        self.primitive(slot, call::SENDREC, to, label, 0)
    }

    pub fn receive(&mut self, slot: usize, from: Endpoint) -> Next {
        self.primitive(slot, call::RECEIVE, from, 0, 0)
    }

    /// The message in the registers of a thread that has received one.
    pub fn message(&mut self, slot: usize) -> Message {
        let frame = self.node.frame_mut(slot);
        assert_eq!(frame.rax, 0, "the call has failed");
        Message { source: frame.endpoint(), label: frame.label(), words: frame.words() }
    }

    /// Marks a frame so that a change of it is seen.
    pub fn scrub(&mut self, slot: usize) {
        self.node.frame_mut(slot).rax = 0xdead;
    }

    /// A program's Linux call.
    pub fn linux_call(&mut self, slot: usize, number: u64, arguments: [u64; 6]) -> Next {
        self.syscall(slot, |frame| {
            frame.rax = number;
            [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9] = arguments;
        })
    }
}

/// Every kernel call and destination.
pub fn all_rights() -> Privileges {
    Privileges { kernel_calls: u64::MAX, destinations: [u64::MAX; 2], ..Privileges::NONE }
}

/// `Privileges` as they lie in memory.
pub fn privilege_bytes(privileges: &Privileges) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&privileges.name.0);
    out.extend_from_slice(&privileges.kernel_calls.to_le_bytes());
    privileges.destinations.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(&privileges.flags.to_le_bytes());
    out.extend_from_slice(&privileges.io_way.to_le_bytes());
    for range in privileges.ports {
        out.extend_from_slice(&range.first.to_le_bytes());
        out.extend_from_slice(&range.last.to_le_bytes());
    }
    out.extend_from_slice(&privileges.devices);
    out.extend_from_slice(&privileges.port_count.to_le_bytes());
    out.extend_from_slice(&privileges.irq_count.to_le_bytes());
    out.extend_from_slice(&privileges.irqs);
    for range in privileges.memory {
        out.extend_from_slice(&range.start.to_le_bytes());
        out.extend_from_slice(&range.bytes.to_le_bytes());
    }
    out
}
