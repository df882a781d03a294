//! rs's receive loop: messages to the supervisor, its decisions to ds, pm, pci and the services concerned.
//!
//! rs waits for nobody but vm, which waits for nobody: all other services are asked through `requests`.

use crate::control::{self, Answer};
use crate::device::{Progress, Search};
use crate::launch::Launcher;
use crate::record::Cause;
use crate::requests::Requests;
use crate::supervisor::{Event, Supervisor};
use abi::call::inject;
use abi::endpoint::slot;
use abi::kernel::{Exception, Exited, Notify};
use abi::pm::{Boot, ServiceUp, WhoIs};
use abi::rs::{Arguments, FailAllocation, NextChange, PrepareUpdate, Ready, Stalled};
use abi::{Capability, Endpoint, Errno, Message, Word, linux};
use alloc::vec::Vec;
use recover::in_progress::{InProgress, Recall};
use recover::retained::waits_for;
use server::SyncStep;
use sys::{Result, copy, ipc, thread, time};

/// The CPU's vector of page faults.
const PAGE_FAULT: u64 = 14;

/// What to do with an answer.
#[derive(Debug)]
enum Task {
    /// pm has taken notice of a service.
    Announced,
    /// pm has started the first program.
    Booted,
    /// pm knows who makes this system call: if it is root, do it.
    Control(Message),
    /// pci has answered a question about the device of this service.
    FindDevice(usize, Search),
    /// This service is prepared for its update.
    Prepared(usize),
    /// A service knows which of its allocations is to fail.
    Disturbed,
}

/// rs.
pub struct Rs {
    supervisor: Supervisor<Launcher>,
    requests: Requests<Task>,
    /// Callers of `UPDATE`, and which service it is about.
    updating: Vec<(usize, Message)>,
    /// The caller of `REPORT`.
    waits_for_report: Option<Message>,
    /// What the kernel's alarm is set to.
    alarm_ns: u64,
    /// The message in progress.
    in_progress: InProgress,
}

impl Rs {
    /// rs, with nothing started.
    pub fn new(supervisor: Supervisor<Launcher>) -> Rs {
        Rs {
            supervisor,
            requests: Requests::default(),
            updating: Vec::new(),
            waits_for_report: None,
            alarm_ns: 0,
            in_progress: InProgress::default(),
        }
    }

    /// Starts everything.
    pub fn start_all(&mut self) {
        self.supervisor.adopt(sys::endpoint());
        self.supervisor.adopt(thread::who_is(slot::VM).expect("the kernel has started no vm"));
        self.supervisor.go_on();
    }

    /// rs has died, and its records are as it left them.
    pub fn recover(&mut self) {
        self.in_progress.died(|process| waits_for(process, slot::RS));
        // The kernel's alarm may have come and been lost.
        self.alarm_ns = 0;
        // Callers of the system call ask again.
        self.requests.recover(|task| matches!(task, Task::Control(_)));
        self.updating.clear();
        self.waits_for_report = None;
        let holder = |slot| thread::who_is(slot).ok();
        self.supervisor.recover(holder);
    }

    /// Serves for ever.
    pub fn serve(&mut self) -> ! {
        loop {
            self.follow_up();
            let message = ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail");
            let step = match self.in_progress.recall(&message) {
                Recall::New => {
                    self.in_progress.begin(&message);
                    let step = self.handle(&message);
                    self.in_progress.end(step.as_done());
                    step
                }
                Recall::Answered(reply) => SyncStep::Done(reply),
                Recall::Refused => self.refuse(&message),
            };
            if let SyncStep::Done(reply) = step {
                answer(&message, &reply);
            }
        }
    }

    /// Refuses a message over which rs has died twice. A service whose death it reports has no successor.
    fn refuse(&mut self, message: &Message) -> SyncStep<Message> {
        sys::log!("refused a message of {:#x} over which rs has died twice", message.source.0);
        if matches!(message.label, Exception::LABEL | Exited::LABEL) {
            // It can only fail because the service is gone.
            let _ = thread::destroy(message.source, false);
            return SyncStep::Later;
        }
        SyncStep::Done(message.reply(Err(Errno::EIO)))
    }

    fn handle(&mut self, message: &Message) -> SyncStep<Message> {
        let from = message.source;
        match message.label {
            Notify::LABEL => self.notified(from),
            Exception::LABEL => self.crashed(from, &Exception::from_message(message)),
            Exited::LABEL => self.exited(from, Exited::from_message(message).status as i64),
            Ready::LABEL => {
                let result = self.supervisor.ready(from, Ready::from_message(message).status);
                return SyncStep::Done(message.reply(result.map(|()| 0)));
            }
            linux::SERVICE => {
                let question = WhoIs { process: from }.message();
                if let Err(error) = self.requests.try_add(slot::PM, question, Task::Control(*message)) {
                    return SyncStep::Done(message.reply(Err(error)));
                }
            }
            NextChange::LABEL => return SyncStep::Done(self.next_change(message)),
            Stalled::LABEL => {
                let result = self.supervisor.stalled(from, Stalled::from_message(message).process);
                return SyncStep::Done(message.reply(result.map(|()| 0)));
            }
            Arguments::LABEL => {
                let result = self.give_arguments(from, &Arguments::from_message(message));
                return SyncStep::Done(message.reply(result));
            }
            _ if message.is_reply() => {
                if let Some(task) = self.requests.take_answered(message) {
                    self.go_on_with(task, message);
                }
            }
            _ => return SyncStep::Done(message.reply(Err(Errno::ENOSYS))),
        }
        SyncStep::Later
    }

    fn notified(&mut self, from: Endpoint) {
        if from == Endpoint::CLOCK {
            self.alarm_ns = 0;
            self.supervisor.tick();
        } else {
            self.requests.is_waiting(from);
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
        let _ = self.supervisor.ended(from, Cause::Exception(*what));
    }

    fn exited(&mut self, from: Endpoint, status: i64) {
        let Ok(at) = self.supervisor.index_of(from) else { return };
        sys::log!("{} ({}) exited with status {status}", self.supervisor.records()[at].name, from.generation());
        let _ = self.supervisor.ended(from, Cause::Exited(status));
    }

    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    fn next_change(&mut self, message: &Message) -> Message {
        if message.source.slot() != slot::DS {
            return message.reply(Err(Errno::EPERM));
        }
        if NextChange::from_message(message).restart {
            let all: Vec<_> = self.supervisor.all_changes().collect();
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
        while let Some(event) = self.supervisor.next_event() {
            self.act_on(event);
        }
        let supervisor = &self.supervisor;
        self.requests.send(|slot| supervisor.up(slot), ipc::send_nonblocking);
        if let Some(ds) = self.supervisor.up(slot::DS)
            && self.supervisor.changes.begin_fetching()
        {
            let _ = ipc::notify(ds);
        }
        self.give_report();
        self.set_alarm();
    }

    fn act_on(&mut self, event: Event) {
        match event {
            Event::Booted => self.requests.add(slot::PM, Boot {}.message(), Task::Booted),
            Event::Up(at) => {
                let record = &self.supervisor.records()[at];
                let (name_low, name_high) = record.name.to_words();
                let up = ServiceUp { process: record.endpoint, name_low, name_high };
                self.requests.add(slot::PM, up.message(), Task::Announced);
            }
            Event::Gone(at) => self.is_gone(at),
            Event::FindDevice(at) => {
                let record = &self.supervisor.records()[at];
                let search = Search::new(&record.service, record.measured);
                self.requests.add(slot::PCI, search.question(), Task::FindDevice(at, search));
            }
            Event::Prepare(at) => {
                let slot = self.supervisor.records()[at].slot();
                self.requests.add(slot, PrepareUpdate {}.message(), Task::Prepared(at));
            }
            Event::FailAllocation(at, after) => self.fail_allocation(at, after),
            Event::UpdateOver(at, result) => self.update_is_over(at, result),
        }
    }

    fn fail_allocation(&mut self, at: usize, after: u64) {
        match self.supervisor.records()[at].slot() {
            slot::RS => sys::fallible::fail_after(after),
            slot => self.requests.add(slot, FailAllocation { after }.message(), Task::Disturbed),
        }
    }

    /// Sends the outstanding requests of a dead incarnation again, except those that died with it.
    fn is_gone(&mut self, at: usize) {
        let slot = self.supervisor.records()[at].slot();
        self.requests.forget_incarnation(slot);
        self.requests.cancel(slot, |task| matches!(task, Task::Prepared(_) | Task::FindDevice(..) | Task::Disturbed));
    }

    fn update_is_over(&mut self, at: usize, result: Result<()>) {
        if let Some(place) = self.updating.iter().position(|(of, _)| *of == at) {
            let (_, request) = self.updating.swap_remove(place);
            answer(&request, &request.reply(result.map(|()| 0)));
        }
    }

    /// An answer has come.
    fn go_on_with(&mut self, task: Task, reply: &Message) {
        match task {
            Task::Disturbed => {}
            Task::Announced | Task::Booted => {
                if let Err(error) = reply.result() {
                    sys::log!("pm refuses {task:?}: {error}");
                }
            }
            Task::Control(request) => match WhoIs::results(reply) {
                Ok((.., capabilities)) if capabilities.has(Capability::SysAdmin) => self.control(&request),
                Ok(_) => answer(&request, &request.reply(Err(Errno::EPERM))),
                Err(error) => answer(&request, &request.reply(Err(error))),
            },
            Task::FindDevice(at, search) => match search.answered(reply) {
                Progress::Ask(next) => self.requests.add(slot::PCI, next.question(), Task::FindDevice(at, next)),
                Progress::Over(result) => self.supervisor.device_found(at, result),
            },
            Task::Prepared(at) => self.supervisor.prepared(at),
        }
    }

    /// Does what root asks for.
    #[expect(clippy::disallowed_methods, reason = "one update of each service: from the heap's reserve")]
    fn control(&mut self, request: &Message) {
        let result = match control::control(&mut self.supervisor, request) {
            Ok(Answer::Now(value)) => Ok(value),
            Ok(Answer::AfterUpdate(at)) => return self.updating.push((at, *request)),
            Ok(Answer::WithReport) => match self.waits_for_report.replace(*request) {
                None => return,
                // The newest caller waits: the one before may have died in its wait.
                Some(earlier) => return answer(&earlier, &earlier.reply(Err(Errno::EBUSY))),
            },
            Err(error) => Err(error),
        };
        answer(request, &request.reply(result));
    }

    /// Gives a new crash report to the caller that waits for it.
    fn give_report(&mut self) {
        let Some(request) = self.waits_for_report else { return };
        if let Some(result) = control::give_report(&self.supervisor, &request).transpose() {
            self.waits_for_report = None;
            answer(&request, &request.reply(result));
        }
    }

    fn set_alarm(&mut self) {
        let wanted = self.supervisor.deadline_ns().unwrap_or(0);
        if wanted != self.alarm_ns {
            self.alarm_ns = wanted;
            time::set_alarm(wanted).expect("rs may set its alarm");
        }
    }
}

/// Replies; the caller waits for it, or has died.
fn answer(request: &Message, reply: &Message) {
    let _ = ipc::send_nonblocking(request.source, reply);
}
