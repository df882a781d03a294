//! The death of a service: what follows it, step by step.
//!
//! 1. A death comes to rs as an exception (`Supervisor::ended`), an exit, a missing sign of life (`tick`), or a command (`kill`).
//! 2. [`Supervisor::end`] has the dead incarnation examined for the crash report, and takes it down.
//! 3. `restart_delay` decides: at once the first time, after a delay that grows when it dies again and again, never when the budget
//!    is spent. A service whose very first incarnation never became ready is broken and not tried again; an essential one is tried
//!    for ever.
//! 4. `restart` starts the successor (`start.rs`) or remembers when to; or the service is given up, and its callers fail.
//! 5. When the successor is ready, `restart_dependants` restarts services that cannot go on with a new one.

use crate::policy::LONGEST_WAIT_NS;
use crate::record::{Cause, Death, End, State};
use crate::supervisor::{Event, Launch, Supervisor};
use crate::world::World;
use abi::endpoint::slot;
use abi::{Endpoint, Errno};
use sys::StartKind;

const NS_PER_MS: u64 = 1_000_000;

impl<W: World> Supervisor<W> {
    /// Ends the present incarnation and has a successor started, if there may be one. The crash report comes last: people wait for
    /// the successor.
    pub(crate) fn end(&mut self, at: usize, cause: Cause) {
        let record = &self.records[at];
        let death = Death { name: record.name, endpoint: record.endpoint, cause, is_updated: record.program.is_some() };
        if cause.is_crash() {
            self.world.examine(&death);
        }
        if self.records[at].is_critical() {
            self.note_kernel_restart(at, cause);
        } else if !self.end_during_update(at, cause) {
            let wait_ns = self.restart_delay(at);
            self.take_down(at, wait_ns.is_some());
            self.records[at].last_end = Some((cause.end(), cause.status()));
            self.restart_after(at, wait_ns);
        }
        if cause.is_crash() {
            self.world.report(&death);
        }
    }

    /// Records the restart of rs or vm, which the kernel has done itself, in their own memory and with the same endpoint.
    fn note_kernel_restart(&mut self, at: usize, cause: Cause) {
        let now_ns = self.world.now_ns();
        self.world.destroy(self.records[at].endpoint, true);
        let record = &mut self.records[at];
        record.last_end = Some((cause.end(), cause.status()));
        record.restarts += 1;
        record.up(now_ns);
    }

    /// How long the successor of a service that is ending has to wait; `None`: no successor.
    pub(crate) fn restart_delay(&mut self, at: usize) -> Option<u64> {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        if record.service.restarts == 0 || !record.was_up {
            return None;
        }
        let wait_ns = record.backoff.died(now_ns);
        // A death so late that all earlier ones are forgotten costs no budget.
        let is_free = wait_ns == 0 && record.service.backoff_ms > 0;
        match is_free || record.budget.take(now_ns) {
            true => Some(wait_ns),
            false => record.service.essential.then_some(LONGEST_WAIT_NS),
        }
    }

    /// Starts the successor, now or after `wait_ns`; gives the service up without one.
    pub(crate) fn restart_after(&mut self, at: usize, wait_ns: Option<u64>) {
        let Some(wait_ns) = wait_ns else { return self.give_up(at) };
        self.records[at].restarts += 1;
        if wait_ns == 0 {
            return self.start(at, StartKind::Restarted, State::Restarting);
        }
        let retry_ns = self.world.now_ns() + wait_ns;
        let record = &mut self.records[at];
        record.state = State::Restarting;
        record.retry_ns = Some(retry_ns);
        self.world.say(format_args!("{} is restarted in {} ms", record.name, wait_ns / NS_PER_MS));
        self.changes.add(record.change());
        if !record.service.retained {
            self.free_memory(at);
        }
    }

    /// Destroys the present incarnation, if there is one, and forgets what was planned for it. `keep`: a successor comes.
    pub(crate) fn take_down(&mut self, at: usize, keep: bool) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        record.start_pending = None;
        record.retry_ns = None;
        record.state = State::Restarting;
        if record.endpoint == Endpoint::NONE {
            return;
        }
        record.ended_ns = now_ns;
        record.ready_ns = 0;
        self.world.destroy(record.endpoint, keep);
        record.dead = core::mem::replace(&mut record.endpoint, Endpoint::NONE);
        let slot = record.slot();
        self.happened(Event::Gone(at));
        match slot {
            slot::DS => self.changes.stop_fetching(),
            slot::PCI => self.forget_devices(),
            _ => {}
        }
    }

    /// Frees the memory of a dead incarnation that no successor takes over soon.
    fn free_memory(&mut self, at: usize) {
        let dead = core::mem::replace(&mut self.records[at].dead, Endpoint::NONE);
        if dead != Endpoint::NONE {
            self.world.free_memory(dead);
        }
    }

    fn give_up(&mut self, at: usize) {
        self.world.say(format_args!("{} is given up", self.records[at].name));
        self.stay_down(at, State::GivenUp);
    }

    /// No successor comes: calls to the service fail.
    pub(crate) fn stay_down(&mut self, at: usize, state: State) {
        self.world.expect_nobody(self.records[at].slot());
        self.free_memory(at);
        let service = &self.records[at].service;
        if !service.pci.is_empty() || !service.memory.is_empty() || service.dma_bytes > 0 {
            self.world.lose_device(self.records[at].slot());
        }
        let record = &mut self.records[at];
        record.state = state;
        record.start_pending = None;
        self.changes.add(record.change());
        if state == State::GivenUp && record.service.essential {
            self.world.end_system(&record.service);
        }
        if record.slot() == slot::PCI {
            self.leave_out_drivers();
        }
    }

    /// Gives up the drivers that wait for pci, which will not come.
    fn leave_out_drivers(&mut self) {
        for at in 0..self.records.len() {
            if self.records[at].start_pending.is_some() && self.may_launch(at) == Launch::Never {
                self.left_out(at, Errno::ENXIO);
            }
        }
    }

    /// Restarts the services that cannot go on with a successor of this one. It costs them no budget.
    pub(crate) fn restart_dependants(&mut self, at: usize) {
        for place in 0..self.records[at].service.dependants.len() {
            let slot = self.records[at].service.dependants[place] as usize;
            let dependant = self.records.iter().position(|other| other.slot() == slot && other.state == State::Up);
            let Some(dependant) = dependant else { continue };
            self.say_of(dependant, "is restarted with a service it depends on");
            if !self.end_during_update(dependant, Cause::Dependant) {
                self.take_down(dependant, true);
                self.records[dependant].last_end = Some((End::Dependant, 0));
                self.records[dependant].restarts += 1;
                self.start(dependant, StartKind::Restarted, State::Restarting);
            }
        }
    }
}
