//! Real-time processes of MINIX4RT on a node. B stands for the server mrt, which hands on system calls; programs in the guest (user/mrt) do
//! the rest. Time goes by in ticks of 1 ms.

mod attributes;
mod deadlines;
mod interrupts;
mod mode;
mod queues;
mod requests;
mod running;
mod semaphores;

use abi::{
    Endpoint, Errno, Message,
    call::{self, KernelCall},
    kernel::Resident,
    rt::{self, ANYPROC, FOREVER, NOPROC, ProcessAttributes, control, irq},
};
use kernel_core::Next;

use crate::world::{A, B, BUFFER, C, RS, VM, World};

/// Ticks of the real-time clock in one of the time-shared world.
const HARMONIC: u64 = 20;
const REFRESH: u64 = 1000;
/// Nanoseconds in a tick.
const TICK: u64 = 1_000_000;
/// The line by which sleepers are woken.
const WAKING_LINE: u64 = 9;
const NOBODY: u64 = NOPROC as u64;

/// The pid of the process in a slot.
fn pid(slot: usize) -> u64 {
    100 + slot as u64
}

fn error<T>(number: i32) -> Result<T, Errno> {
    Err(Errno(number))
}

/// A process of this priority, with neither period nor deadline, and a queue for eight messages.
fn plain(baseprty: u64) -> ProcessAttributes {
    ProcessAttributes { baseprty, watchdog: NOPROC, mq_size: 8, ..ProcessAttributes::ZERO }
}

fn words_of(attributes: ProcessAttributes) -> [u64; 8] {
    let ProcessAttributes { flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags } = attributes;
    [flags, baseprty, period, limit, deadline, watchdog as u64, mq_size, mq_flags]
}

/// A message as its receiver finds it in the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Received {
    pid: u64,
    kind: u64,
    id: u64,
    sequence: u64,
    time: u64,
    priority: u64,
    number: u64,
    deadline: u64,
    laxity: i64,
    words: [u64; 4],
}

/// In real-time mode with these options.
fn world_with(options: u64) -> World {
    let mut w = World::with_services();
    w.control(control::SETSVAL, A, options, [0; 8]).expect("set");
    w.control(control::RTSTART, A, HARMONIC | REFRESH << 32, [0; 8]).expect("started");
    for slot in [A, B, C, VM, RS] {
        // Nobody's quantum ends while time passes.
        let endpoint = w.endpoint(slot).0 as u64;
        w.kernel_call(RS, KernelCall::Schedule, &[endpoint, 4, 1_000_000_000]).expect("scheduled");
    }
    w
}

/// In real-time mode.
fn world() -> World {
    world_with(0)
}

impl World {
    /// A system call of a process, as mrt hands it on.
    fn control(&mut self, operation: u64, process: usize, argument: u64, words: [u64; 8]) -> Result<u64, Errno> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (space, endpoint) = (self.space(B), self.endpoint(process).0 as u64);
        self.m.poke(space, BUFFER, &bytes);
        self.kernel_call(B, KernelCall::RtControl, &[operation, endpoint, argument, BUFFER])
    }

    /// What a system call about `argument` writes.
    fn look(&mut self, operation: u64, argument: u64) -> Result<[u64; 8], Errno> {
        self.control(operation, A, argument, [0x5a; 8])?;
        let space = self.space(B);
        let bytes = self.m.peek(space, BUFFER, 64);
        Ok(core::array::from_fn(|at| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight"))))
    }

    fn real_time_call(&mut self, slot: usize, number: u64, arguments: [u64; 2]) -> Next {
        self.syscall(slot, |frame| (frame.rax, frame.rdi, frame.rsi) = (number, arguments[0], arguments[1]))
    }

    /// The same, and its result.
    fn calls(&mut self, slot: usize, number: u64, arguments: [u64; 2]) -> Result<u64, Errno> {
        self.real_time_call(slot, number, arguments);
        self.result(slot)
    }

    fn sets_attributes(&mut self, slot: usize, attributes: ProcessAttributes) -> Result<u64, Errno> {
        self.control(control::SETPATTR, slot, pid(slot), words_of(attributes))
    }

    /// An application that has these attributes, but is not real-time.
    fn candidate(&mut self, attributes: ProcessAttributes) -> usize {
        let slot = self.application().slot();
        self.sets_attributes(slot, attributes).expect("attributes");
        slot
    }

    /// `SET2RT` by an application.
    fn becomes_real_time(&mut self, slot: usize) -> Result<u64, Errno> {
        self.asks_for_real_time(slot);
        self.has_memory(slot, 0)
    }

    /// Returns what vm, which has received the request for resident memory, is told.
    fn asks_for_real_time(&mut self, slot: usize) -> Resident {
        self.receive(VM, Endpoint::ANY);
        self.real_time_call(slot, rt::call::SET2RT, [0, 0]);
        let request = self.message(VM);
        assert_eq!((request.source, request.label), (self.endpoint(slot), Resident::LABEL));
        Resident::from_message(&request)
    }

    /// vm says `word` to that.
    fn has_memory(&mut self, slot: usize, word: u64) -> Result<u64, Errno> {
        let mut reply = Message { source: self.endpoint(slot), ..Message::new(0) };
        reply.words[0] = word;
        self.syscall(VM, |frame| {
            frame.set_message(&reply);
            frame.rax = call::SENDNB;
        });
        self.make_current(slot);
        self.result(slot)
    }

    /// A real-time process that runs.
    fn process(&mut self, attributes: ProcessAttributes) -> usize {
        let slot = self.candidate(attributes);
        assert_eq!(self.becomes_real_time(slot), Ok(0));
        slot
    }

    /// A real-time process that waits for a wake-up.
    fn sleeper(&mut self, attributes: ProcessAttributes) -> usize {
        let slot = self.process(attributes);
        self.sleep(slot);
        slot
    }

    /// A real-time process that waits for any message.
    fn receiver(&mut self, attributes: ProcessAttributes) -> usize {
        let slot = self.process(attributes);
        self.listen(slot);
        slot
    }

    fn sleep(&mut self, slot: usize) -> Next {
        self.real_time_call(slot, rt::call::SLEEP, [FOREVER as u64, 0])
    }

    fn listen(&mut self, slot: usize) -> Next {
        self.real_time_call(slot, rt::call::RCV, [ANYPROC as u64, FOREVER as u64])
    }

    fn wake(&mut self, by: usize, slot: usize) -> Next {
        self.real_time_call(by, rt::call::WAKEUP, [pid(slot), 0])
    }

    /// Wakes a sleeper by an interrupt, while no real-time process is ready.
    fn awaken(&mut self, slot: usize) {
        let descriptor = [1, pid(slot), NOBODY, 1, irq::RTIRQ, 0, 0, 0];
        self.control(control::SETIATTR, A, WAKING_LINE, descriptor).expect("descriptor");
        self.node.interrupt(&mut self.m, WAKING_LINE as usize);
        assert_eq!(self.next(), Next::Run(slot));
    }

    /// Lets time pass; the timer comes whenever it is armed for.
    fn pass(&mut self, ticks: u64) -> Next {
        let end = self.m.now + ticks * TICK;
        while let Some(deadline) = self.m.armed.filter(|&deadline| deadline <= end) {
            self.m.now = self.m.now.max(deadline);
            self.m.armed = None;
            self.node.timer(&mut self.m);
            self.next();
        }
        self.m.now = end;
        self.next()
    }

    /// Sends `words` by the call `number`; `argument` is its time limit.
    fn sends(&mut self, slot: usize, number: u64, to: usize, argument: i64, words: [u64; 4]) -> Next {
        self.syscall(slot, |frame| {
            (frame.rax, frame.rdi, frame.rsi) = (number, pid(to), argument as u64);
            [frame.r10, frame.r8, frame.r9, frame.r12] = words;
        })
    }

    /// Sends such a message without waiting.
    fn posts(&mut self, slot: usize, to: usize, word: u64) -> Result<u64, Errno> {
        self.sends(slot, rt::call::ARQST, to, 0, [word, 0, 0, 0]);
        self.result(slot)
    }

    /// `UPRQST`.
    fn posts_urgently(&mut self, slot: usize, to: usize, priority: u64) -> Result<u64, Errno> {
        self.syscall(slot, |frame| {
            (frame.rax, frame.rdi, frame.rdx) = (rt::call::UPRQST, pid(to), priority);
        });
        self.result(slot)
    }

    /// The next message from `source`, if there is one.
    fn takes(&mut self, slot: usize, source: i64) -> Result<Received, Errno> {
        self.calls(slot, rt::call::RCV, [source as u64, rt::NOWAIT as u64])?;
        Ok(self.received(slot))
    }

    /// The message that a process has received.
    fn received(&mut self, slot: usize) -> Received {
        let frame = *self.node.frame_mut(slot);
        assert_eq!(frame.rax, 0, "the call has failed");
        let halves = |word: u64| (word & u32::MAX as u64, word >> 32);
        let (pid, kind) = halves(frame.rdi);
        let (id, sequence) = halves(frame.rsi);
        let (priority, number) = halves(frame.r13);
        Received {
            pid,
            kind,
            id,
            sequence,
            time: frame.rdx,
            priority,
            number,
            deadline: frame.r14,
            laxity: frame.r15 as i64,
            words: [frame.r10, frame.r8, frame.r9, frame.r12],
        }
    }

    /// The number of a real-time process, which is that of its queue.
    fn number_of(&mut self, slot: usize) -> u64 {
        self.look(control::GETPINT, pid(slot)).expect("known")[2]
    }

    /// The priority that a process runs with.
    fn priority_of(&mut self, slot: usize) -> u64 {
        self.look(control::GETPINT, pid(slot)).expect("known")[1]
    }

    fn destroys(&mut self, slot: usize) {
        let endpoint = self.endpoint(slot).0 as u64;
        self.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
    }
}
