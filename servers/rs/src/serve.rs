//! rs's receive loop: messages to the supervisor, its decisions to ds and pm.

use crate::control::control;
use crate::errands::{self, Errand, Errands};
use crate::launch::Launcher;
use crate::record::{End, State};
use crate::supervisor::{Event, Supervisor};
use abi::call::inject;
use abi::endpoint::slot;
use abi::kernel::{Exception, Exited, Notify};
use abi::rs::{Arguments, NextChange, Ready};
use abi::{Endpoint, Errno, Message, Word, linux};
use sys::{Result, copy, ipc, thread, time};

/// When pm could not be asked because of a circle of waiting processes, how long until the next try.
const TRY_AGAIN_NS: u64 = 1_000_000;

/// The CPU's vector of page faults.
const PAGE_FAULT: u64 = 14;

/// rs.
pub struct Rs {
    supervisor: Supervisor<Launcher>,
    errands: Errands,
    /// What the kernel's alarm is set to.
    alarm_ns: u64,
    /// An errand has to be tried again then.
    try_again_ns: Option<u64>,
}

impl Rs {
    /// rs, with nothing started.
    pub fn new(supervisor: Supervisor<Launcher>) -> Rs {
        Rs { supervisor, errands: Errands::default(), alarm_ns: 0, try_again_ns: None }
    }

    /// Starts everything and serves for ever.
    pub fn run(mut self) -> ! {
        self.supervisor.adopt(sys::endpoint());
        self.supervisor.adopt(thread::who_is(slot::VM).expect("the kernel has started no vm"));
        self.supervisor.go_on();
        loop {
            self.follow_up();
            let message = ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail");
            if let Some(reply) = self.handle(&message) {
                // Whoever asks rs waits for the answer, or has died.
                let _ = ipc::send_nonblocking(message.source, &reply);
            }
        }
    }

    fn handle(&mut self, message: &Message) -> Option<Message> {
        let from = message.source;
        match message.label {
            Notify::LABEL => {
                self.notified(from);
                None
            }
            Exception::LABEL => {
                self.crashed(from, &Exception::from_message(message));
                None
            }
            Exited::LABEL => {
                self.exited(from, Exited::from_message(message).status as i64);
                None
            }
            // Sent without waiting for an answer.
            Ready::LABEL => {
                let _ = self.supervisor.ready(from, Ready::from_message(message).status);
                None
            }
            linux::SERVICE => {
                self.errands.add(Errand::Control(*message));
                None
            }
            NextChange::LABEL => Some(self.next_change(message)),
            Arguments::LABEL => Some(message.reply(self.give_arguments(from, &Arguments::from_message(message)))),
            _ if message.is_reply() => None,
            _ => Some(message.reply(Err(Errno::ENOSYS))),
        }
    }

    fn notified(&mut self, from: Endpoint) {
        if from == Endpoint::CLOCK {
            self.alarm_ns = 0;
            self.try_again_ns = None;
            self.supervisor.tick();
        } else {
            self.supervisor.alive(from);
        }
    }

    fn crashed(&mut self, from: Endpoint, what: &Exception) {
        let Ok(at) = self.supervisor.index_of(from) else { return };
        let Exception { vector, error, ip, address } = *what;
        let name = self.supervisor.records()[at].name;
        let generation = from.generation();
        match Result::<u64>::from_word(error) {
            Err(refusal) if vector == PAGE_FAULT => {
                sys::log!("{name} ({generation}) page fault at {ip:#x}, address {address:#x}: {refusal}");
            }
            _ if vector == inject::VECTOR => sys::log!("{name} ({generation}) is killed as injected, at {ip:#x}"),
            _ => sys::log!("{name} ({generation}) exception {vector} at {ip:#x}, error code {error:#x}"),
        }
        let _ = self.supervisor.ended(from, End::Exception, vector as i64);
    }

    fn exited(&mut self, from: Endpoint, status: i64) {
        let Ok(at) = self.supervisor.index_of(from) else { return };
        sys::log!("{} ({}) exited with status {status}", self.supervisor.records()[at].name, from.generation());
        let _ = self.supervisor.ended(from, End::Exited, status);
    }

    fn next_change(&mut self, message: &Message) -> Message {
        if message.source.slot() != slot::DS {
            return message.reply(Err(Errno::EPERM));
        }
        if NextChange::from_message(message).restart {
            let all: alloc::vec::Vec<_> = self.supervisor.all_changes().collect();
            self.supervisor.changes.restart(all.into_iter());
        }
        match self.supervisor.changes.next() {
            None => message.reply(Err(Errno::ENOENT)),
            Some(change) => {
                let (low, high) = change.name.to_words();
                NextChange::reply(message, 0, low, high, change.endpoint, change.up)
            }
        }
    }

    fn give_arguments(&self, from: Endpoint, request: &Arguments) -> Result<u64> {
        let text = &self.supervisor.records()[self.supervisor.index_of(from)?].service.arguments;
        let length = (request.bytes as usize).min(text.len());
        copy::to_grant(from, request.grant, 0, &text.as_bytes()[..length])?;
        Ok(length as u64)
    }

    /// Acts on what the last message has changed.
    fn follow_up(&mut self) {
        for event in self.supervisor.take_events() {
            self.act_on(event);
        }
        self.run_errands();
        if let Some(ds) = self.up(slot::DS)
            && self.supervisor.changes.begin_fetching()
        {
            let _ = ipc::notify(ds);
        }
        self.set_alarm();
    }

    fn act_on(&mut self, event: Event) {
        match event {
            Event::Booted => self.errands.add(Errand::Boot),
            Event::Up(at) => {
                let record = &self.supervisor.records()[at];
                self.errands.add(Errand::Announce(record.endpoint, record.name));
            }
        }
    }

    /// The present incarnation of a fixed slot, if it is up.
    fn up(&self, slot: usize) -> Option<Endpoint> {
        let record = self.supervisor.records().iter().find(|record| record.slot() == slot)?;
        (record.state == State::Up).then_some(record.endpoint)
    }

    /// ds does not call rs now (see `errands`).
    fn ds_is_quiet(&self) -> bool {
        let ds = self.supervisor.records().iter().find(|record| record.slot() == slot::DS);
        ds.is_none_or(|ds| !ds.is_starting()) && !self.supervisor.changes.is_fetching()
    }

    fn run_errands(&mut self) {
        while self.up(slot::PM).is_some() && self.ds_is_quiet() {
            let Some(errand) = self.errands.take() else { return };
            if self.run_errand(errand) == Err(Errno::ELOCKED) {
                self.errands.put_back(errand);
                self.try_again_ns = Some(time::now_ns() + TRY_AGAIN_NS);
                return;
            }
            // What a control call has changed may have made ds busy.
            for event in self.supervisor.take_events() {
                self.act_on(event);
            }
        }
    }

    /// `ELOCKED`: try again.
    fn run_errand(&mut self, errand: Errand) -> Result<()> {
        match errand {
            Errand::Announce(process, name) => match errands::announce(process, name) {
                Err(Errno::ELOCKED) => return Err(Errno::ELOCKED),
                Err(error) => sys::log!("pm does not take notice of {name}: {error}"),
                Ok(()) => {}
            },
            Errand::Boot => match errands::boot() {
                Err(Errno::ELOCKED) => return Err(Errno::ELOCKED),
                Err(error) => sys::log!("pm cannot start the first program: {error}"),
                Ok(()) => {}
            },
            Errand::Control(request) => {
                let result = match errands::check_root(request.source) {
                    Err(Errno::ELOCKED) => return Err(Errno::ELOCKED),
                    allowed => allowed.and_then(|()| control(&mut self.supervisor, &request)),
                };
                // The caller waits, or has died.
                let _ = ipc::send_nonblocking(request.source, &request.reply(result));
            }
        }
        Ok(())
    }

    fn set_alarm(&mut self) {
        let deadlines = [self.supervisor.deadline_ns(), self.try_again_ns];
        let wanted = deadlines.into_iter().flatten().min().unwrap_or(0);
        if wanted != self.alarm_ns {
            self.alarm_ns = wanted;
            time::set_alarm(wanted).expect("rs may set its alarm");
        }
    }
}
