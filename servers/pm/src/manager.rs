//! pm's state, and the way every message takes through it.
//!
//! A message is answered at once, or the sender stays waiting and is answered by `finish` when its time has come. `finish` is the
//! only way out of a call that waited: it delivers signals on the way, or keeps the answer while the process is stopped.
//! pm waits itself only for vm, vfs, tty and the kernel, all behind `System`.

use crate::index::{ProcessIndex, ThreadIndex};
use crate::machine::Machine;
use crate::random::Random;
use crate::semaphore_sets::Sets;
use crate::services::Service;
use crate::system::System;
use crate::table::Table;
use crate::thread::Doing;
use crate::timers::{Key, Timers};
use abi::endpoint::slot;
use abi::message::{LINUX_LABELS, REPEATED};
use abi::registers::Registers;
use abi::{Endpoint, Errno, Message, Word, kernel};
use alloc::vec::Vec;
use recover::in_progress::InProgress;

/// What a handler says about the call it was given.
pub enum Answer {
    /// The result.
    Now(Result<u64, Errno>),
    /// Nothing now: the thread waits, is gone, or runs with new registers.
    Later,
}

impl From<Result<u64, Errno>> for Answer {
    fn from(result: Result<u64, Errno>) -> Self {
        Answer::Now(result)
    }
}

impl From<Errno> for Answer {
    fn from(error: Errno) -> Self {
        Answer::Now(Err(error))
    }
}

/// The process manager.
pub struct Pm<S> {
    /// Everybody else.
    pub system: S,
    /// Threads and processes.
    pub table: Table,
    /// Timers of programs.
    pub timers: Timers,
    /// The kernel alarm that is set.
    pub armed: (Option<u64>, u64),
    /// For `getrandom` and AT_RANDOM.
    pub random: Random,
    /// Services, for the process list.
    pub services: Vec<Service>,
    /// The first program, once `Boot` has made it.
    pub init: Option<ProcessIndex>,
    /// Number of stopped processes: nobody looks for orphaned groups while it is 0.
    pub stopped_count: u32,
    /// Names and fate of the machine.
    pub machine: Machine,
    /// System V semaphores.
    pub semaphores: Sets,
    /// The message in progress.
    pub in_progress: InProgress,
}

impl<S: System> Pm<S> {
    /// pm before its first message.
    pub fn new(system: S, random: Random) -> Self {
        Pm {
            system,
            table: Table::new(),
            timers: Timers::default(),
            armed: (None, 0),
            random,
            services: Vec::new(),
            init: None,
            stopped_count: 0,
            machine: Machine::default(),
            semaphores: Sets::default(),
            in_progress: InProgress::default(),
        }
    }

    /// Handles one message. → the answer, if it is time for one.
    #[inline]
    pub fn handle(&mut self, message: &Message) -> Option<Message> {
        match self.quick_answer(message) {
            Some(value) => Some(message.reply(Ok(value))),
            None => self.handle_slowly(message),
        }
    }

    /// The short way for calls that only look something up, when nothing else is to be done for the thread.
    #[inline]
    fn quick_answer(&self, message: &Message) -> Option<u64> {
        if message.label >= LINUX_LABELS {
            return None;
        }
        let thread = self.table.find(message.source)?;
        let value = self.look_up(thread, message.label)?;
        (!self.table.has_work(thread)).then_some(value)
    }

    #[inline(never)]
    fn handle_slowly(&mut self, message: &Message) -> Option<Message> {
        self.in_progress.begin(message);
        let reply =
            if message.label < LINUX_LABELS { self.program_call(message) } else { self.system_message(message) };
        self.keep_alarm();
        self.in_progress.end(None);
        reply
    }

    fn program_call(&mut self, message: &Message) -> Option<Message> {
        let Some(thread) = self.table.find(message.source) else {
            return Some(message.reply(Err(Errno::ESRCH)));
        };
        let answer = match self.answer_to_repetition(message) {
            Some(answer) => answer,
            None => {
                let entry = &mut self.table[thread];
                entry.call = message.label;
                entry.serial = message.words[6] & !REPEATED;
                entry.outcome = None;
                self.linux_call(thread, message.label, &message.words)
            }
        };
        let Answer::Now(result) = answer else { return None };
        if self.table[thread].endpoint != message.source {
            return None;
        }
        self.table[thread].outcome = Some(result);
        if self.table.has_work(thread) || result == Err(Errno::ERESTARTSYS) {
            self.finish(thread, result);
            return None;
        }
        Some(message.reply(result))
    }

    /// The answer to a call that a predecessor had received, unless it is to be handled as any other.
    #[inline]
    fn answer_to_repetition(&mut self, message: &Message) -> Option<Answer> {
        if message.words[6] & REPEATED == 0 { None } else { self.repeated(message) }
    }

    fn system_message(&mut self, message: &Message) -> Option<Message> {
        if let Some(answer) = self.repeated(message) {
            return match answer {
                Answer::Now(result) => Some(message.reply(result)),
                Answer::Later => None,
            };
        }
        match message.label {
            kernel::Interrupted::LABEL => self.interrupted(message),
            kernel::Exception::LABEL => self.exception(message),
            kernel::Exited::LABEL => {
                if let Some(thread) = self.table.find(message.source) {
                    let status = kernel::Exited::from_message(message).status;
                    self.exit_group(self.table.process_of(thread), status);
                }
                None
            }
            _ => self.service_request(message),
        }
    }

    /// Handles a notification: the alarm, or events of vfs or tty.
    pub fn handle_notification(&mut self, source: Endpoint) {
        match source.slot() {
            slot::CLOCK => self.alarm_fired(),
            slot::VFS => self.file_events(),
            slot::TTY => self.terminal_events(),
            _ => {}
        }
        self.keep_alarm();
    }

    /// Ends the call in which a thread waits with `result`, delivering signals on the way.
    pub fn finish(&mut self, thread: ThreadIndex, result: Result<u64, Errno>) {
        let process = self.table.process_of(thread);
        self.table[thread].outcome = Some(result);
        if self.table[process].stopped.is_some() {
            self.table[thread].doing = Doing::Ended(result);
            return;
        }
        self.table[thread].doing = Doing::Running;
        let endpoint = self.table[thread].endpoint;
        // A call to be repeated needs its registers changed even when no signal is left.
        if !self.table.has_work(thread) && result != Err(Errno::ERESTARTSYS) {
            self.system.reply(endpoint, result);
            return;
        }
        let mut registers = Registers::ZERO;
        if self.system.registers(endpoint, &mut registers).is_ok() {
            registers.rax = result.to_word();
            registers.linux_call = self.table[thread].call as u64;
            self.deliver(thread, &mut registers, Some(result));
        }
    }

    fn interrupted(&mut self, message: &Message) -> Option<Message> {
        let Some(thread) = self.table.find(message.source) else {
            return Some(message.reply(Err(Errno::ESRCH)));
        };
        self.resume_interrupted(thread);
        None
    }

    /// A thread has reported `Interrupted`: it gets its signals and goes on, or stays when its process is stopped.
    pub fn resume_interrupted(&mut self, thread: ThreadIndex) {
        if self.table[self.table.process_of(thread)].stopped.is_some() {
            self.table[thread].doing = Doing::Held;
            return;
        }
        self.table[thread].doing = Doing::Running;
        let mut registers = Registers::ZERO;
        if self.system.registers(self.table[thread].endpoint, &mut registers).is_ok() {
            self.deliver(thread, &mut registers, None);
        }
    }

    /// Sets the kernel alarm when the earliest deadline has changed, or the best priority of those who have timers: pm cannot know whose timer will
    /// be due while it does not run.
    fn keep_alarm(&mut self) {
        if !core::mem::take(&mut self.timers.changed) {
            return;
        }
        let next = (self.timers.next_deadline(), self.queue_of_timers());
        if next != self.armed {
            self.armed = next;
            self.system.set_alarm(next.0, next.1);
        }
    }

    fn alarm_fired(&mut self) {
        self.armed.0 = None;
        self.timers.changed = true;
        let (now_ns, _) = self.system.time_ns();
        while let Some(key) = self.timers.pop_expired(now_ns) {
            match key {
                Key::Wake(thread) => self.time_is_up(thread),
                Key::Real(process) => self.real_interval_fired(process, now_ns),
                Key::Posix(process, id) => self.posix_timer_fired(process, id, now_ns),
                Key::Processor(process) => self.check_processor_time(process, now_ns),
            }
        }
    }
}
