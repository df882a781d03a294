//! The supervisor: decides which service is started when, and what becomes of one that dies.
//!
//! Services are started in the order of the system file, each when the one before is ready (or will never be). A service that has
//! died is started again as long as its budget lasts: at once the first time, after a wait that grows when it dies again and again.
//! Two exceptions: one that dies before its first incarnation was ever ready is broken and not tried again, and one that is
//! essential is tried for ever.

use crate::changes::{Change, Changes};
use crate::policy::{Beat, LONGEST_WAIT_NS};
use crate::record::{End, Record, State};
use crate::world::World;
use abi::endpoint::slot;
use abi::rs::Injection;
use abi::system::Service;
use abi::{Endpoint, Errno, Name};
use alloc::vec::Vec;
use sys::{Birth, Result};

const NS_PER_MS: u64 = 1_000_000;

/// Something that the rest of rs has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The service with this index is up.
    Up(usize),
    /// Every service has had its turn.
    Booted,
}

/// All services.
pub struct Supervisor<W> {
    /// The world it acts on.
    pub world: W,
    records: Vec<Record>,
    /// What ds has to be told.
    pub changes: Changes,
    /// Services before this index have had their first turn.
    next: usize,
    booted: bool,
    events: Vec<Event>,
}

impl<W: World> Supervisor<W> {
    /// The services of the system file, none of them started.
    pub fn new(world: W, services: Vec<Service>) -> Self {
        let records = services.into_iter().map(Record::new).collect();
        Supervisor { world, records, changes: Changes::default(), next: 0, booted: false, events: Vec::new() }
    }

    /// All services, in the order of the system file.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    /// Takes over a service that the kernel has started: rs itself and vm.
    pub fn adopt(&mut self, endpoint: Endpoint) {
        let now_ns = self.world.now_ns();
        let Some(at) = self.records.iter().position(|record| record.slot() == endpoint.slot()) else { return };
        self.world.adopt(endpoint, &self.records[at].service);
        self.records[at].endpoint = endpoint;
        self.records[at].started_ns = now_ns;
        self.came_up(at, now_ns);
    }

    /// Starts what can be started: the next service when all before it have settled.
    pub fn go_on(&mut self) {
        while !self.records[..self.next].iter().any(|record| record.state == State::Starting) {
            let Some(record) = self.records.get(self.next) else {
                if !core::mem::replace(&mut self.booted, true) {
                    self.events.push(Event::Booted);
                }
                return;
            };
            let is_running = record.state == State::Up;
            self.next += 1;
            if !is_running {
                self.start(self.next - 1, Birth::Fresh, State::Starting);
            }
        }
    }

    /// A service reports that its initialisation is over, well or not. When the very first incarnation fails, or the device is missing,
    /// there is no other try.
    ///
    /// # Errors
    /// `ESRCH`: it is no service's present incarnation; `EINVAL`: it has said so before.
    pub fn ready(&mut self, from: Endpoint, status: i64) -> Result<()> {
        let at = self.index_of(from)?;
        if !self.records[at].is_starting() {
            return Err(Errno::EINVAL);
        }
        if status < 0 {
            self.failed(at, Errno(status.unsigned_abs().min(4095) as i32));
        } else {
            let now_ns = self.world.now_ns();
            self.came_up(at, now_ns);
        }
        self.go_on();
        Ok(())
    }

    /// A service has given a sign of life.
    pub fn alive(&mut self, from: Endpoint) {
        if let Ok(at) = self.index_of(from) {
            self.records[at].heart.answered();
        }
    }

    /// A service has ended itself or been ended; its successor is started if it may have one.
    ///
    /// # Errors
    /// `ESRCH`: it is no service's present incarnation.
    pub fn ended(&mut self, from: Endpoint, end: End, status: i64) -> Result<()> {
        let at = self.index_of(from)?;
        self.end(at, end, status);
        self.go_on();
        Ok(())
    }

    /// Kills a service as if it had crashed.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `EPERM`: rs and vm; `ESRCH`: it does not run.
    pub fn kill(&mut self, name: Name) -> Result<()> {
        let at = self.victim(name)?;
        if self.records[at].endpoint == Endpoint::NONE {
            return Err(Errno::ESRCH);
        }
        self.say_of(at, "is killed");
        self.end(at, End::Killed, 0);
        Ok(())
    }

    /// Ends a service and starts it afresh, also one that was given up.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `EPERM`: rs and vm.
    pub fn restart(&mut self, name: Name) -> Result<()> {
        let at = self.victim(name)?;
        if self.records[at].endpoint != Endpoint::NONE {
            self.put_down(at, true);
            self.records[at].last_end = Some((End::Killed, 0));
        }
        let record = &mut self.records[at];
        record.budget.reset();
        record.backoff.reset();
        record.restarts = 0;
        self.start(at, Birth::Fresh, State::Restarting);
        Ok(())
    }

    /// Disturbs a service, for tests of recovery.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `ESRCH`: it does not run; those of the kernel call.
    pub fn inject(&mut self, name: Name, request: &Injection) -> Result<()> {
        let endpoint = self.records[self.named(name)?].endpoint;
        if endpoint == Endpoint::NONE {
            return Err(Errno::ESRCH);
        }
        self.world.inject(endpoint, request)
    }

    /// Time has passed: hearts and late starters.
    pub fn tick(&mut self) {
        let now_ns = self.world.now_ns();
        for at in 0..self.records.len() {
            let record = &mut self.records[at];
            match record.state {
                State::Up => self.check_heart(at, now_ns),
                State::Restarting if record.retry_ns.is_some_and(|at_ns| now_ns >= at_ns) => {
                    record.retry_ns = None;
                    self.start(at, Birth::Restarted, State::Restarting);
                }
                State::Starting | State::Restarting if record.ready_by_ns().is_some_and(|at_ns| now_ns >= at_ns) => {
                    self.say_of(at, "has not become ready in time");
                    self.end(at, End::Silent, 0);
                }
                _ => {}
            }
        }
        self.go_on();
    }

    /// When `tick` is due.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline = |record: &Record| match record.state {
            State::Up => record.heart.deadline_ns(),
            State::Starting | State::Restarting => record.retry_ns.or(record.ready_by_ns()),
            State::Down | State::GivenUp => None,
        };
        self.records.iter().filter_map(deadline).min()
    }

    /// The service that runs as `endpoint`.
    ///
    /// # Errors
    /// `ESRCH`.
    pub fn index_of(&self, endpoint: Endpoint) -> Result<usize> {
        self.records.iter().position(|record| record.endpoint == endpoint).ok_or(Errno::ESRCH)
    }

    /// The service with this name.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn named(&self, name: Name) -> Result<usize> {
        self.records.iter().position(|record| record.name == name).ok_or(Errno::ENOENT)
    }

    /// ds asks for everything again.
    pub fn all_changes(&self) -> impl Iterator<Item = Change> + use<'_, W> {
        self.records.iter().map(Record::change)
    }

    /// An incarnation could not initialise itself.
    fn failed(&mut self, at: usize, error: Errno) {
        let is_missing = matches!(error, Errno::ENODEV | Errno::ENXIO);
        if is_missing || !self.records[at].was_up {
            return self.left_out(at, error);
        }
        self.world.say(format_args!("{} has failed to initialise itself: {error}", self.records[at].name));
        self.end(at, End::Exited, -i64::from(error.0));
    }

    fn victim(&self, name: Name) -> Result<usize> {
        let at = self.named(name)?;
        match self.records[at].slot() {
            slot::RS | slot::VM => Err(Errno::EPERM),
            _ => Ok(at),
        }
    }

    fn check_heart(&mut self, at: usize, now_ns: u64) {
        let endpoint = self.records[at].endpoint;
        match self.records[at].heart.beat(now_ns, || self.world.activity(endpoint)) {
            Beat::NotYet => {}
            Beat::Ask => {
                if endpoint.slot() == slot::DS {
                    self.changes.expect_fetching();
                }
                self.world.notify(endpoint);
            }
            Beat::Silent => {
                self.say_of(at, "is silent");
                self.end(at, End::Silent, 0);
            }
        }
    }

    /// The present incarnation is over: takes it down, and has a successor started if there may be one.
    fn end(&mut self, at: usize, end: End, status: i64) {
        let wait_ns = self.wait_for_successor(at);
        self.put_down(at, wait_ns.is_some());
        self.records[at].last_end = Some((end, status));
        self.succeed(at, wait_ns);
    }

    /// How long the successor of a service that is ending has to wait; `None`: there is none.
    fn wait_for_successor(&mut self, at: usize) -> Option<u64> {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        if record.service.restarts == 0 || !record.was_up {
            return None;
        }
        let wait_ns = record.backoff.died(now_ns);
        match record.budget.take(now_ns) {
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

    fn put_down(&mut self, at: usize, keep: bool) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        record.postponed = None;
        record.retry_ns = None;
        if record.endpoint != Endpoint::NONE {
            record.ended_ns = now_ns;
            record.ready_ns = 0;
            self.world.destroy(record.endpoint, keep);
            record.corpse = core::mem::replace(&mut record.endpoint, Endpoint::NONE);
        }
        record.state = State::Restarting;
        if record.slot() == slot::DS {
            self.changes.stop_fetching();
        }
    }

    /// Frees the memory of a dead incarnation that no successor takes over soon.
    fn clear_away(&mut self, at: usize) {
        let corpse = core::mem::replace(&mut self.records[at].corpse, Endpoint::NONE);
        if corpse != Endpoint::NONE {
            self.world.clear_away(corpse);
        }
    }

    /// Starts an incarnation.
    fn start(&mut self, at: usize, birth: Birth, state: State) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        record.state = state;
        record.started_ns = now_ns;
        record.postponed = None;
        record.retry_ns = None;
        match self.world.launch(&record.service, birth) {
            Ok(endpoint) => {
                record.endpoint = endpoint;
                record.corpse = Endpoint::NONE;
                self.changes.add(record.change());
            }
            Err(Errno::EAGAIN) => record.postponed = Some(birth),
            Err(error @ (Errno::ENODEV | Errno::ENXIO)) => self.left_out(at, error),
            Err(error) => {
                record.last_end = Some((End::Exited, -i64::from(error.0)));
                self.world.say(format_args!("{} cannot be started: {error}", record.name));
                let wait_ns = self.wait_for_successor(at);
                self.succeed(at, wait_ns);
            }
        }
    }

    /// A service says of itself, or its missing device does, that it cannot run.
    fn left_out(&mut self, at: usize, error: Errno) {
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
        self.changes.add(record.change());
        if state == State::GivenUp && record.service.essential {
            self.world.end_system(&record.service);
        }
    }

    fn came_up(&mut self, at: usize, now_ns: u64) {
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

    /// Those who cannot go on with a successor of this service get one themselves, at nobody's cost.
    fn restart_dependants(&mut self, at: usize) {
        for place in 0..self.records[at].service.dependants.len() {
            let slot = self.records[at].service.dependants[place] as usize;
            let dependant = self.records.iter().position(|other| other.slot() == slot && other.state == State::Up);
            let Some(dependant) = dependant else { continue };
            self.say_of(dependant, "is restarted with another");
            self.put_down(dependant, true);
            self.records[dependant].last_end = Some((End::Dependant, 0));
            self.records[dependant].restarts += 1;
            self.start(dependant, Birth::Restarted, State::Restarting);
        }
    }

    /// pci has come again without memory of whose device is whose; services that needed it have waited.
    fn give_devices_back(&mut self) {
        for at in 0..self.records.len() {
            let record = &mut self.records[at];
            if let Some(birth) = record.postponed.take() {
                let state = record.state;
                self.start(at, birth, state);
            } else if record.endpoint != Endpoint::NONE && !record.service.pci.is_empty() {
                self.world.assign_devices(&record.service);
            }
        }
    }

    fn say_of(&mut self, at: usize, what: &str) {
        let record = &self.records[at];
        self.world.say(format_args!("{} ({}) {what}", record.name, record.endpoint.generation()));
    }
}
