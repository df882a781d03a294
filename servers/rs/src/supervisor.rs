//! The supervisor: decides which service is started when, and what becomes of one that dies.
//!
//! Services are started in the order of the system file, each when the one before is ready (or will never be). A service that has
//! died is started again at once, as long as its budget lasts.

use crate::changes::{Change, Changes};
use crate::policy::Beat;
use crate::record::{End, Record, State};
use crate::world::World;
use abi::endpoint::slot;
use abi::system::Service;
use abi::{Endpoint, Errno, Name};
use alloc::vec::Vec;
use sys::{Birth, Result};

/// How long a service may take to become ready.
const READY_WITHIN_NS: u64 = 30_000_000_000;

/// Services without which no program can do anything, and which hold what no successor could know.
const ESSENTIAL: [usize; 3] = [slot::PM, slot::VFS, slot::TTY];

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

    /// A service reports that its initialisation is over, well or not. `EPERM`: it is no service's present incarnation.
    pub fn ready(&mut self, from: Endpoint, status: i64) -> Result<()> {
        let at = self.index_of(from)?;
        if !self.records[at].is_starting() {
            return Err(Errno::EINVAL);
        }
        if status < 0 {
            self.left_out(at, Errno(status.unsigned_abs().min(4095) as i32));
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
        if self.records[at].endpoint == Endpoint::NONE || self.records[at].postponed.is_some() {
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
        self.records[at].budget.reset();
        self.records[at].restarts = 0;
        self.start(at, Birth::Fresh, State::Restarting);
        Ok(())
    }

    /// Time has passed: hearts and late starters.
    pub fn tick(&mut self) {
        let now_ns = self.world.now_ns();
        for at in 0..self.records.len() {
            match self.records[at].state {
                State::Up => self.check_heart(at, now_ns),
                State::Starting | State::Restarting if now_ns >= self.records[at].started_ns + READY_WITHIN_NS => {
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
            State::Starting | State::Restarting => Some(record.started_ns + READY_WITHIN_NS),
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

    /// The present incarnation is over: takes it down, and starts a successor if there may be one.
    fn end(&mut self, at: usize, end: End, status: i64) {
        let now_ns = self.world.now_ns();
        let again = self.records[at].budget.take(now_ns);
        self.put_down(at, again);
        self.records[at].last_end = Some((end, status));
        if again {
            self.records[at].restarts += 1;
            self.start(at, Birth::Restarted, State::Restarting);
        } else {
            self.give_up(at);
        }
    }

    fn put_down(&mut self, at: usize, keep: bool) {
        let now_ns = self.world.now_ns();
        let record = &mut self.records[at];
        record.ended_ns = now_ns;
        record.ready_ns = 0;
        if record.endpoint != Endpoint::NONE && record.postponed.take().is_none() {
            self.world.destroy(record.endpoint, keep);
        }
        record.state = State::Restarting;
        if record.slot() == slot::DS {
            self.changes.stop_fetching();
        }
    }

    /// Starts an incarnation; when that fails again and again, the service is given up.
    fn start(&mut self, at: usize, birth: Birth, state: State) {
        let mut birth = birth;
        loop {
            let now_ns = self.world.now_ns();
            let record = &mut self.records[at];
            record.state = state;
            record.started_ns = now_ns;
            match self.world.launch(&record.service, birth) {
                Ok(endpoint) => {
                    record.endpoint = endpoint;
                    self.changes.add(record.change());
                    return;
                }
                Err(Errno::EAGAIN) => {
                    record.postponed = Some(birth);
                    return;
                }
                Err(error @ (Errno::ENODEV | Errno::ENXIO)) => return self.left_out(at, error),
                Err(error) => {
                    record.last_end = Some((End::Exited, -i64::from(error.0)));
                    self.world.say(format_args!("{} cannot be started: {error}", record.name));
                }
            }
            if !self.records[at].budget.take(now_ns) {
                return self.give_up(at);
            }
            self.records[at].restarts += 1;
            birth = Birth::Restarted;
        }
    }

    /// A service says of itself, or its missing device does, that it cannot run.
    fn left_out(&mut self, at: usize, error: Errno) {
        let record = &mut self.records[at];
        if record.endpoint != Endpoint::NONE {
            self.world.destroy(record.endpoint, false);
            self.world.bury(record.endpoint);
            record.endpoint = Endpoint::NONE;
        }
        record.last_end = Some((End::Exited, -i64::from(error.0)));
        let quietly = record.service.optional && matches!(error, Errno::ENODEV | Errno::ENXIO);
        record.state = if quietly { State::Down } else { State::GivenUp };
        self.changes.add(record.change());
        if !quietly {
            self.world.say(format_args!("{} cannot run: {error}", record.name));
            self.check_essential(at);
        }
    }

    fn give_up(&mut self, at: usize) {
        let record = &mut self.records[at];
        record.state = State::GivenUp;
        if record.endpoint != Endpoint::NONE {
            self.world.bury(record.endpoint);
            record.endpoint = Endpoint::NONE;
        }
        self.world.say(format_args!("{} is given up", record.name));
        self.changes.add(record.change());
        self.check_essential(at);
    }

    /// A system that has lost for good what it needs had better end than hang.
    fn check_essential(&mut self, at: usize) {
        let record = &self.records[at];
        if ESSENTIAL.contains(&record.slot()) {
            self.world.end_system(&record.service);
        }
    }

    fn came_up(&mut self, at: usize, now_ns: u64) {
        self.records[at].up(now_ns);
        self.changes.add(self.records[at].change());
        self.events.push(Event::Up(at));
        if self.records[at].slot() == slot::PCI {
            self.give_devices_back();
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
