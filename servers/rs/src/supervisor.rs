//! The supervisor: all services, and what kernel, services, people and time say about them.
//!
//! Services are started in the order of the system file, each when the one before is ready (or will never be). `restart` decides
//! what becomes of one that dies, `update` replaces programs; both are further methods of [`Supervisor`]. Nothing here waits: what others
//! have to be asked for goes out as an [`Event`], and comes back by a call.

use crate::changes::{Change, Changes};
use crate::device::{Device, Knowledge};
use crate::policy::Beat;
use crate::record::{Cause, End, Record, State};
use crate::update::Phase;
use crate::world::World;
use abi::call::inject;
use abi::endpoint::slot;
use abi::rs::Injection;
use abi::system::Service;
use abi::{Endpoint, Errno, Name};
use alloc::vec::Vec;
use sys::{Result, StartKind, fallible};

/// Something that the rest of rs has to act on. Services are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is up.
    Up(usize),
    /// Its incarnation is dead: its outstanding requests have to be sent again.
    Gone(usize),
    /// pci has to be asked for its device; `device_found` wants the answer.
    FindDevice(usize),
    /// It has to be told that it is about to be replaced; `prepared` wants the answer.
    Prepare(usize),
    /// Its update is over, well or not.
    UpdateOver(usize, Result<()>),
    /// It has to be told that this of its allocations, counted from now, is to fail.
    FailAllocation(usize, u64),
    /// Every service has had its turn.
    Booted,
}

/// All services.
pub struct Supervisor<W> {
    /// The world it acts on.
    pub world: W,
    pub(crate) records: Vec<Record>,
    /// What ds has to be told.
    pub changes: Changes,
    /// Services before this index have had their first turn.
    next: usize,
    booted: bool,
    events: Vec<Event>,
}

impl<W: World> Supervisor<W> {
    /// The services of the system file, none of them started.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(world: W, services: Vec<Service>) -> Self {
        let records = services.into_iter().map(Record::new).collect();
        Supervisor { world, records, changes: Changes::default(), next: 0, booted: false, events: Vec::new() }
    }

    /// All services, in the order of the system file.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Adds an event. All are taken before the next message.
    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    pub(crate) fn happened(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The next of what has happened, in order.
    pub fn next_event(&mut self) -> Option<Event> {
        (!self.events.is_empty()).then(|| self.events.remove(0))
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
                    self.happened(Event::Booted);
                }
                return;
            };
            let is_running = record.state == State::Up;
            self.next += 1;
            if !is_running {
                self.start(self.next - 1, StartKind::Fresh, State::Starting);
            }
        }
    }

    /// A service reports that its initialisation is over, well or not. It may say so twice, when rs has died of it.
    ///
    /// # Errors
    /// `ESRCH`: it is no service's present incarnation.
    pub fn ready(&mut self, from: Endpoint, status: i64) -> Result<()> {
        let at = self.index_of(from)?;
        if !self.records[at].is_starting() {
            return Ok(());
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

    /// vfs reports that a service answers none of its requests.
    ///
    /// # Errors
    /// `EPERM`: somebody else does, or of a service that the system cannot do without; `ESRCH`: it is no service's present incarnation.
    pub fn stalled(&mut self, from: Endpoint, process: Endpoint) -> Result<()> {
        if from.slot() != slot::VFS || process.slot() == slot::VFS {
            return Err(Errno::EPERM);
        }
        let at = self.index_of(process)?;
        if self.records[at].is_critical() {
            return Err(Errno::EPERM);
        }
        self.say_of(at, "answers no request");
        self.end(at, Cause::Silent);
        self.go_on();
        Ok(())
    }

    /// A service has given a sign of life.
    pub fn alive(&mut self, from: Endpoint) {
        if let Ok(at) = self.index_of(from) {
            self.records[at].heart.answered();
        }
    }

    /// A service has ended itself or been ended by the kernel; its successor is started if it may have one.
    ///
    /// # Errors
    /// `ESRCH`: it is no service's present incarnation.
    pub fn ended(&mut self, from: Endpoint, cause: Cause) -> Result<()> {
        let at = self.index_of(from)?;
        self.end(at, cause);
        self.go_on();
        Ok(())
    }

    /// pci has been asked for the device of a service.
    pub fn device_found(&mut self, at: usize, result: Result<Device>) {
        let result = result.or_else(|error| self.boot_device(at).ok_or(error));
        let record = &mut self.records[at];
        match result {
            Ok(device) => {
                record.measured = device.measured;
                record.device = Knowledge::Known(device);
                if let Some(kind) = record.start_pending {
                    let state = record.state;
                    self.start(at, kind, state);
                }
            }
            Err(error) => {
                record.device = Knowledge::None;
                if record.start_pending.is_some() {
                    self.left_out(at, error);
                } else {
                    self.world.say(format_args!("pci does not find the device of {} again: {error}", record.name));
                }
            }
        }
        self.go_on();
    }

    /// What the boot loader has set up in place of a screen's device.
    fn boot_device(&self, at: usize) -> Option<Device> {
        let range = self.world.boot_framebuffer().filter(|_| self.records[at].service.framebuffer)?;
        Some(Device { memory: fallible::collect([range]).ok()?, ..Device::default() })
    }

    /// Kills a service as if it had crashed.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `ESRCH`: it does not run.
    pub fn kill(&mut self, name: Name) -> Result<()> {
        let at = self.named(name)?;
        let endpoint = self.records[at].endpoint;
        if endpoint == Endpoint::NONE {
            return Err(Errno::ESRCH);
        }
        self.say_of(at, "is killed");
        if self.records[at].is_critical() || self.records[at].service.retained {
            // It starts again in its own memory, so it dies between two messages, not in the middle of a change of its heap. The
            // heartbeat makes for a message; without an answer to that it is replaced anyway.
            let soon = Injection { kind: inject::KILL_AFTER_MESSAGES, value: 1, ..Injection::default() };
            self.world.inject(endpoint, &soon)?;
            self.world.notify(endpoint);
            return Ok(());
        }
        self.end(at, Cause::Killed);
        Ok(())
    }

    /// Ends a service and starts it afresh, also one that was given up.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `EPERM`: rs and vm; `EBUSY`: it is being updated.
    pub fn restart(&mut self, name: Name) -> Result<()> {
        let at = self.named(name)?;
        if self.records[at].is_critical() {
            return Err(Errno::EPERM);
        }
        if self.records[at].update.is_some() {
            return Err(Errno::EBUSY);
        }
        if self.records[at].endpoint != Endpoint::NONE {
            self.take_down(at, true);
            self.records[at].last_end = Some((End::Killed, 0));
        }
        let record = &mut self.records[at];
        record.budget.reset();
        record.backoff.reset();
        record.restarts = 0;
        self.start(at, StartKind::Fresh, State::Restarting);
        Ok(())
    }

    /// Disturbs a service, for tests of recovery.
    ///
    /// # Errors
    /// `ENOENT`: no such service; `ESRCH`: it does not run; those of the kernel call.
    pub fn inject(&mut self, name: Name, request: &Injection) -> Result<()> {
        let at = self.named(name)?;
        let endpoint = self.records[at].endpoint;
        if endpoint == Endpoint::NONE {
            return Err(Errno::ESRCH);
        }
        if request.kind == inject::ALLOCATION {
            self.happened(Event::FailAllocation(at, request.value));
            return Ok(());
        }
        self.world.inject(endpoint, request)
    }

    /// Time has passed: hearts, late starters, waits that are over, trials.
    pub fn tick(&mut self) {
        let now_ns = self.world.now_ns();
        for at in 0..self.records.len() {
            self.look_after(at, now_ns);
        }
        self.go_on();
    }

    fn look_after(&mut self, at: usize, now_ns: u64) {
        if self.look_after_update(at, now_ns) {
            return;
        }
        let record = &mut self.records[at];
        match record.state {
            State::Up => self.check_heart(at, now_ns),
            State::Restarting if record.retry_ns.is_some_and(|at_ns| now_ns >= at_ns) => {
                self.start(at, StartKind::Restarted, State::Restarting);
            }
            State::Starting | State::Restarting if record.ready_by_ns().is_some_and(|at_ns| now_ns >= at_ns) => {
                self.say_of(at, "has not become ready in time");
                self.end(at, Cause::Silent);
            }
            _ => {}
        }
    }

    /// When `tick` is due.
    pub fn deadline_ns(&self) -> Option<u64> {
        let of_state = |record: &Record| match record.state {
            State::Up => record.heart.deadline_ns(),
            State::Starting | State::Restarting => record.retry_ns.or(record.ready_by_ns()),
            State::Down | State::GivenUp => None,
        };
        let of_update = |record: &Record| record.update.as_ref().map(|update| update.phase.deadline_ns());
        self.records.iter().flat_map(|record| [of_state(record), of_update(record)]).flatten().min()
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

    /// The present incarnation of a slot, if it is up.
    pub fn up(&self, slot: usize) -> Option<Endpoint> {
        let record = self.records.iter().find(|record| record.slot() == slot)?;
        (record.state == State::Up).then_some(record.endpoint)
    }

    /// ds asks for everything again.
    pub fn all_changes(&self) -> impl Iterator<Item = Change> + use<'_, W> {
        self.records.iter().map(Record::change)
    }

    fn check_heart(&mut self, at: usize, now_ns: u64) {
        let endpoint = self.records[at].endpoint;
        match self.records[at].heart.beat(now_ns, || self.world.activity(endpoint)) {
            Beat::NotYet => {}
            Beat::Ask => self.world.notify(endpoint),
            Beat::Silent => {
                self.say_of(at, "is silent");
                self.end(at, Cause::Silent);
            }
        }
    }

    pub(crate) fn say_of(&mut self, at: usize, what: &str) {
        let record = &self.records[at];
        self.world.say(format_args!("{} ({}) {what}", record.name, record.endpoint.generation()));
    }

    /// Whether a service can be started now.
    pub(crate) fn may_launch(&self, at: usize) -> Launch {
        match &self.records[at].device {
            Knowledge::Known(_) => Launch::Now,
            Knowledge::Asked => Launch::Later,
            Knowledge::None => match self.records.iter().find(|record| record.slot() == slot::PCI) {
                Some(pci) if pci.state == State::Up => Launch::Ask,
                Some(pci) if pci.is_starting() => Launch::Later,
                _ => Launch::Never,
            },
        }
    }

    /// The phase of an update of the service in progress.
    pub fn phase(&self, at: usize) -> Option<Phase> {
        self.records[at].update.as_ref().map(|update| update.phase)
    }
}

/// Whether a service can be started, as far as its device is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// Yes.
    Now,
    /// When pci has been asked.
    Ask,
    /// When pci has answered, or is back.
    Later,
    /// There is no pci that could find its device.
    Never,
}
