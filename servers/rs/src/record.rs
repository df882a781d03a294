//! What rs knows of one service.

use crate::changes::Change;
use crate::policy::{Budget, Heart};
use abi::rs::{ServiceRecord, state};
use abi::system::Service;
use abi::{Endpoint, Name};
use sys::Birth;

const NS_PER_MS: u64 = 1_000_000;

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
    /// Where it stands.
    pub state: State,
    /// Its signs of life.
    pub heart: Heart,
    /// Restarts it may still have.
    pub budget: Budget,
    /// Restarts since boot.
    pub restarts: u32,
    /// When the present incarnation was started.
    pub started_ns: u64,
    /// When the end of the last incarnation was noticed; 0: never.
    pub ended_ns: u64,
    /// When the present incarnation became ready; 0: it has not.
    pub ready_ns: u64,
    /// It has to be started as soon as pci is up again.
    pub postponed: Option<Birth>,
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
            state: State::Down,
            heart: Heart::new(0, 0, 0),
            budget,
            restarts: 0,
            started_ns: 0,
            ended_ns: 0,
            ready_ns: 0,
            postponed: None,
            last_end: None,
            service,
        }
    }

    /// It is ready: from now on its heart is watched.
    pub fn up(&mut self, now_ns: u64) {
        self.state = State::Up;
        self.ready_ns = now_ns;
        let period_ns = u64::from(self.service.heartbeat_ms) * NS_PER_MS;
        self.heart = Heart::new(period_ns, self.service.heartbeat_misses, now_ns);
    }

    /// Its slot.
    pub fn slot(&self) -> usize {
        self.service.slot as usize
    }

    /// It exists and is not ready yet.
    pub fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting | State::Restarting)
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
    pub fn describe(&self) -> ServiceRecord {
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
            unused: 0,
            ended_ns: self.ended_ns,
            ready_ns: self.ready_ns,
        }
    }
}
