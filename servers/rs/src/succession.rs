//! What becomes of a service that dies: its successor, the wait before it, or none; and those who depend on it.
//!
//! A service that has died is started again as long as its budget lasts: at once the first time, after a wait that grows when it dies again
//! and again. Two exceptions: one whose very first incarnation never became ready is broken and not tried
//! again, and one that is essential is tried for ever.

use crate::device::Knowledge;
use crate::policy::LONGEST_WAIT_NS;
use crate::record::{Cause, Death, End, State};
use crate::supervisor::{Event, Launch, Supervisor};
use crate::world::{Plan, World};
use abi::endpoint::slot;
use abi::{Endpoint, Errno};
use sys::Birth;

const NS_PER_MS: u64 = 1_000_000;

impl<W: World> Supervisor<W> {
    /// The present incarnation is over: takes it down, and has a successor started if there may be one. What is known of its death is
    /// reported last, since the successor is what people wait for.
    pub(crate) fn end(&mut self, at: usize, cause: Cause) {
        let record = &self.records[at];
        let death = Death { name: record.name, endpoint: record.endpoint, cause, is_updated: record.program.is_some() };
        if cause.is_crash() {
            self.world.examine(&death);
        }
        if self.records[at].is_root() {
            self.begin_again(at, cause);
        } else if !self.end_during_update(at, cause) {
            let wait_ns = self.wait_for_successor(at);
            self.put_down(at, wait_ns.is_some());
            self.records[at].last_end = Some((cause.end(), cause.status()));
            self.succeed(at, wait_ns);
        }
        if cause.is_crash() {
            self.world.report(&death);
        }
    }

    /// The kernel starts rs and vm again itself, in their own memory and with the same endpoint.
    fn begin_again(&mut self, at: usize, cause: Cause) {
        let now_ns = self.world.now_ns();
        self.world.destroy(self.records[at].endpoint, true);
        let record = &mut self.records[at];
        record.last_end = Some((cause.end(), cause.status()));
        record.restarts += 1;
        record.up(now_ns);
    }

    /// How long the successor of a service that is ending has to wait; `None`: there is none.
    fn wait_for_successor(&mut self, at: usize) -> Option<u64> {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        if record.service.restarts == 0 || !record.was_up {
            return None;
        }
        let wait_ns = record.backoff.died(now_ns);
        // A death that comes so late that all earlier ones are forgotten costs nothing.
        let is_free = wait_ns == 0 && record.service.backoff_ms > 0;
        match is_free || record.budget.take(now_ns) {
            true => Some(wait_ns),
            false => record.service.essential.then_some(LONGEST_WAIT_NS),
        }
    }

    /// Starts the successor, or remembers when it is time to.
    fn succeed(&mut self, at: usize, wait_ns: Option<u64>) {
        let Some(wait_ns) = wait_ns else { return self.give_up(at) };
        self.records[at].restarts += 1;
        if wait_ns == 0 {
            return self.start(at, Birth::Restarted, State::Restarting);
        }
        let retry_ns = self.world.now_ns() + wait_ns;
        let record = &mut self.records[at];
        record.state = State::Restarting;
        record.retry_ns = Some(retry_ns);
        self.world.say(format_args!("{} is started again in {} ms", record.name, wait_ns / NS_PER_MS));
        self.changes.add(record.change());
        if !record.service.retained {
            self.clear_away(at);
        }
    }

    /// Ends the present incarnation, if there is one, and everything that was planned for it.
    pub(crate) fn put_down(&mut self, at: usize, keep: bool) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        record.postponed = None;
        record.retry_ns = None;
        record.state = State::Restarting;
        if record.endpoint == Endpoint::NONE {
            return;
        }
        record.ended_ns = now_ns;
        record.ready_ns = 0;
        self.world.destroy(record.endpoint, keep);
        record.corpse = core::mem::replace(&mut record.endpoint, Endpoint::NONE);
        self.events.push(Event::Gone(at));
        match record.slot() {
            slot::DS => self.changes.stop_fetching(),
            slot::PCI => self.forget_devices(),
            _ => {}
        }
    }

    /// pci is dead, and with it the knowledge whose device is whose.
    fn forget_devices(&mut self) {
        for record in &mut self.records {
            record.device = Knowledge::of(&record.service);
        }
    }

    /// Frees the memory of a dead incarnation that no successor takes over soon.
    fn clear_away(&mut self, at: usize) {
        let corpse = core::mem::replace(&mut self.records[at].corpse, Endpoint::NONE);
        if corpse != Endpoint::NONE {
            self.world.clear_away(corpse);
        }
    }

    /// Starts an incarnation, or has its device looked for before.
    pub(crate) fn start(&mut self, at: usize, birth: Birth, state: State) {
        let now_ns = self.world.now_ns();
        let launch = self.may_launch(at);
        let record = &mut self.records[at];
        record.state = state;
        record.started_ns = now_ns;
        record.retry_ns = None;
        record.postponed = Some(birth);
        match launch {
            Launch::Now => self.launch(at, birth),
            Launch::Ask => self.find_device(at),
            Launch::Later => {}
            Launch::Never => self.left_out(at, Errno::ENXIO),
        }
    }

    fn find_device(&mut self, at: usize) {
        self.records[at].device = Knowledge::Asked;
        self.events.push(Event::FindDevice(at));
    }

    fn launch(&mut self, at: usize, birth: Birth) {
        let record = &mut self.records[at];
        record.postponed = None;
        let Knowledge::Known(device) = &record.device else { return };
        let plan = Plan { service: &record.service, program: record.program.as_ref(), device, birth };
        match self.world.launch(&plan) {
            Ok(endpoint) => {
                record.endpoint = endpoint;
                record.corpse = Endpoint::NONE;
                self.changes.add(record.change());
            }
            Err(error @ (Errno::ENODEV | Errno::ENXIO)) => self.left_out(at, error),
            Err(error) => {
                self.world.say(format_args!("{} cannot be started: {error}", record.name));
                let cause = Cause::Exited(-i64::from(error.0));
                record.last_end = Some((cause.end(), cause.status()));
                if !self.end_during_update(at, cause) {
                    let wait_ns = self.wait_for_successor(at);
                    self.succeed(at, wait_ns);
                }
            }
        }
    }

    /// An incarnation says that it could not initialise itself. When it is the very first one, there is no other try. A device that was
    /// there before is not missing for good: pci has died, and the driver's successor is started when pci has found the device again.
    pub(crate) fn failed(&mut self, at: usize, error: Errno) {
        if self.records[at].update.is_none() && !self.records[at].was_up {
            return self.left_out(at, error);
        }
        self.world.say(format_args!("{} has failed to initialise itself: {error}", self.records[at].name));
        self.end(at, Cause::Exited(-i64::from(error.0)));
    }

    /// A service says of itself, or its missing device does, that it cannot run.
    pub(crate) fn left_out(&mut self, at: usize, error: Errno) {
        let record = &mut self.records[at];
        let quietly = record.service.optional && matches!(error, Errno::ENODEV | Errno::ENXIO);
        if !quietly {
            self.world.say(format_args!("{} cannot run: {error}", record.name));
        }
        self.put_down(at, false);
        self.records[at].last_end = Some((End::Exited, -i64::from(error.0)));
        self.bury(at, if quietly { State::Down } else { State::GivenUp });
    }

    fn give_up(&mut self, at: usize) {
        self.world.say(format_args!("{} is given up", self.records[at].name));
        self.bury(at, State::GivenUp);
    }

    /// No successor comes: whoever waits for the service fails.
    fn bury(&mut self, at: usize, state: State) {
        self.world.expect_nobody(self.records[at].slot());
        self.clear_away(at);
        let record = &mut self.records[at];
        record.state = state;
        record.postponed = None;
        self.changes.add(record.change());
        if state == State::GivenUp && record.service.essential {
            self.world.end_system(&record.service);
        }
        if record.slot() == slot::PCI {
            self.leave_out_drivers();
        }
    }

    /// Drivers that have been waiting for pci wait in vain.
    fn leave_out_drivers(&mut self) {
        for at in 0..self.records.len() {
            if self.records[at].postponed.is_some() && self.may_launch(at) == Launch::Never {
                self.left_out(at, Errno::ENXIO);
            }
        }
    }

    pub(crate) fn came_up(&mut self, at: usize, now_ns: u64) {
        let is_successor = core::mem::replace(&mut self.records[at].was_up, true);
        self.records[at].up(now_ns);
        self.changes.add(self.records[at].change());
        self.events.push(Event::Up(at));
        if self.records[at].slot() == slot::PCI {
            self.give_devices_back();
        }
        if is_successor {
            self.restart_dependants(at);
        }
    }

    /// pci has come again without memory of whose device is whose; services that needed it have waited.
    fn give_devices_back(&mut self) {
        for at in 0..self.records.len() {
            let record = &self.records[at];
            let is_concerned = record.endpoint != Endpoint::NONE || record.postponed.is_some();
            if is_concerned && record.device == Knowledge::None {
                self.find_device(at);
            }
        }
    }

    /// Those who cannot go on with a successor of this service get one themselves, at nobody's cost.
    fn restart_dependants(&mut self, at: usize) {
        for place in 0..self.records[at].service.dependants.len() {
            let slot = self.records[at].service.dependants[place] as usize;
            let dependant = self.records.iter().position(|other| other.slot() == slot && other.state == State::Up);
            let Some(dependant) = dependant else { continue };
            self.say_of(dependant, "is restarted with another");
            if !self.end_during_update(dependant, Cause::Dependant) {
                self.put_down(dependant, true);
                self.records[dependant].last_end = Some((End::Dependant, 0));
                self.records[dependant].restarts += 1;
                self.start(dependant, Birth::Restarted, State::Restarting);
            }
        }
    }
}
