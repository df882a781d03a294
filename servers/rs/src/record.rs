//! What rs knows of one service.

use crate::changes::Change;
use crate::device::{Knowledge, Measured};
use crate::policy::{Backoff, Budget, Heart};
use crate::update::{Phase, Program, Update};
use abi::endpoint::slot;
use abi::kernel::Exception;
use abi::rs::{ServiceRecord, state};
use abi::system::Service;
use abi::{Endpoint, Name};
use sys::StartKind;

const NS_PER_MS: u64 = 1_000_000;
/// How long a service may take to become ready.
const READY_WITHIN_NS: u64 = 30_000_000_000;

/// Why an incarnation ended; numbers of `ServiceRecord::reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It called `Exit`, or could not be started.
    Exited = 1,
    /// It caused an exception.
    Exception = 2,
    /// It did not answer heartbeats, or did not become ready in time.
    Silent = 3,
    /// Somebody asked for it.
    Killed = 4,
    /// It depends on a service that was restarted.
    Dependant = 5,
}

/// Why an incarnation ends, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It exits with this status, or cannot be started for this negative error.
    Exited(i64),
    /// This exception.
    Exception(Exception),
    /// As `End`.
    Silent,
    /// As `End`.
    Killed,
    /// As `End`.
    Dependant,
}

impl Cause {
    /// Without the details.
    pub fn end(self) -> End {
        match self {
            Cause::Exited(_) => End::Exited,
            Cause::Exception(_) => End::Exception,
            Cause::Silent => End::Silent,
            Cause::Killed => End::Killed,
            Cause::Dependant => End::Dependant,
        }
    }

    /// `ServiceRecord::last_status`.
    pub fn status(self) -> i64 {
        match self {
            Cause::Exited(status) => status,
            Cause::Exception(exception) => exception.vector as i64,
            Cause::Silent | Cause::Killed | Cause::Dependant => 0,
        }
    }

    /// It was not meant to end: there is a report.
    pub fn is_crash(self) -> bool {
        matches!(self, Cause::Exited(_) | Cause::Exception(_) | Cause::Silent)
    }
}

/// Whose death is reported.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// The service.
    pub name: Name,
    /// The incarnation.
    pub endpoint: Endpoint,
    /// Why.
    pub cause: Cause,
    /// Its program came by an update.
    pub is_updated: bool,
}

/// Where a service stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started yet, or left out.
    Down,
    /// Started for the first time, not ready yet.
    Starting,
    /// Ready.
    Up,
    /// A successor is being started.
    Restarting,
    /// It has died too often, or is never restarted.
    GivenUp,
}

impl State {
    fn number(self) -> u32 {
        match self {
            State::Down => state::DOWN,
            State::Starting => state::STARTING,
            State::Up => state::UP,
            State::Restarting => state::RESTARTING,
            State::GivenUp => state::GIVEN_UP,
        }
    }
}

/// One service.
#[derive(Debug)]
pub struct Record {
    /// What the system file says.
    pub service: Service,
    /// Its name.
    pub name: Name,
    /// The present incarnation; `NONE`: there is none.
    pub endpoint: Endpoint,
    /// A dead incarnation whose memory vm still keeps, for the successor to free; `NONE`: there is none.
    pub dead: Endpoint,
    /// Where it stands.
    pub state: State,
    /// Some incarnation has once been ready.
    pub was_up: bool,
    /// Its signs of life.
    pub heart: Heart,
    /// Restarts it may still have.
    pub budget: Budget,
    /// How long the next restart has to wait.
    pub backoff: Backoff,
    /// A successor waits until then: it has died too often in a short time.
    pub retry_ns: Option<u64>,
    /// Restarts since boot.
    pub restarts: u32,
    /// When the present incarnation was started.
    pub started_ns: u64,
    /// When the end of the last incarnation was noticed; 0: never.
    pub ended_ns: u64,
    /// When the present incarnation became ready; 0: it has not.
    pub ready_ns: u64,
    /// Its device, for its rights.
    pub device: Knowledge,
    /// What pci has once measured of it.
    pub measured: Measured,
    /// The program that runs, when it came by an update; else it is the boot archive's.
    pub program: Option<Program>,
    /// The update in progress.
    pub update: Option<Update>,
    /// It has to be started as soon as its device is known.
    pub start_pending: Option<StartKind>,
    /// How the last one ended.
    pub last_end: Option<(End, i64)>,
}

impl Record {
    /// A service that has not been started.
    pub fn new(service: Service) -> Record {
        let name = Name::new(&service.name).expect("a service's name is longer than 16 bytes, or empty");
        let budget = Budget::new(service.restarts, u64::from(service.restart_window_ms) * NS_PER_MS);
        Record {
            name,
            endpoint: Endpoint::NONE,
            dead: Endpoint::NONE,
            state: State::Down,
            was_up: false,
            heart: Heart::new(0, 0, 0),
            budget,
            backoff: Backoff::new(u64::from(service.backoff_ms) * NS_PER_MS),
            retry_ns: None,
            restarts: 0,
            started_ns: 0,
            ended_ns: 0,
            ready_ns: 0,
            device: Knowledge::of(&service),
            measured: Measured::default(),
            program: None,
            update: None,
            start_pending: None,
            last_end: None,
            service,
        }
    }

    /// It is ready: from now on its heart is watched, and closely while a new program is on trial.
    pub fn up(&mut self, now_ns: u64) {
        self.state = State::Up;
        self.ready_ns = now_ns;
        self.heart = match &self.update {
            Some(Update { phase: Phase::Trial(_), .. }) => Heart::on_trial(&self.service, now_ns),
            _ => Heart::of(&self.service, now_ns),
        };
    }

    /// Its slot.
    pub fn slot(&self) -> usize {
        self.service.slot as usize
    }

    /// It is rs or vm, which the kernel itself restarts.
    pub fn is_critical(&self) -> bool {
        matches!(self.slot(), slot::RS | slot::VM)
    }

    /// It is not ready yet, or not again.
    pub fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting | State::Restarting)
    }

    /// When the present incarnation, which is starting, counts as silent.
    pub fn ready_by_ns(&self) -> Option<u64> {
        (self.endpoint != Endpoint::NONE).then_some(self.started_ns + READY_WITHIN_NS)
    }

    /// What ds is told of it.
    pub fn change(&self) -> Change {
        let endpoint = match self.state {
            State::Up => self.endpoint,
            State::Down | State::GivenUp => Endpoint::NONE,
            State::Starting | State::Restarting => Endpoint::current(self.slot()),
        };
        Change { name: self.name, endpoint, up: self.state == State::Up }
    }

    /// What people are told of it.
    pub fn describe(&self, now_ns: u64) -> ServiceRecord {
        let (reason, last_status) = self.last_end.map_or((0, 0), |(end, status)| (end as u32, status));
        ServiceRecord {
            name: self.name,
            endpoint: self.endpoint,
            state: self.state.number(),
            restarts: self.restarts,
            missed: self.heart.missed,
            started_ns: self.started_ns,
            last_status,
            reason,
            retry_ms: self.retry_ns.map_or(0, |at| at.saturating_sub(now_ns).div_ceil(NS_PER_MS) as u32),
            ended_ns: self.ended_ns,
            ready_ns: self.ready_ns,
            denials: 0,
        }
    }
}
