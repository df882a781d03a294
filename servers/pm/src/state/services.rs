//! The services in the list of processes.

use abi::{Endpoint, Errno, Name};
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// A service in the list of processes.
pub struct Service {
    /// Its process id.
    pub pid: u32,
    /// Its present endpoint.
    pub endpoint: Endpoint,
    /// Its name.
    pub name: Name,
    /// When it came up, in monotonic time.
    pub started_ns: u64,
}

/// All services, in the order in which they came up first.
#[derive(Default)]
pub struct Services(Vec<Service>);

impl Services {
    /// A successor of a known service has come up. Returns false when the service is not known.
    pub fn restarted(&mut self, name: Name, endpoint: Endpoint, started_ns: u64) -> bool {
        let Some(known) = self.0.iter_mut().find(|service| service.name == name) else { return false };
        known.endpoint = endpoint;
        known.started_ns = started_ns;
        true
    }

    /// The name of the service in a slot of the kernel.
    pub fn name_in(&self, slot: usize) -> Option<&str> {
        self.0.iter().find(|service| service.endpoint.slot() == slot).map(|service| service.name.as_str())
    }

    /// The index that the next new service gets.
    pub fn next_index(&self) -> u16 {
        self.0.len() as u16
    }

    /// Adds a service. `ENOMEM`.
    pub fn add(&mut self, service: Service) -> Result<(), Errno> {
        self.0.try_push(service)
    }

    /// The service with this index.
    pub fn get(&self, index: u16) -> &Service {
        &self.0[index as usize]
    }
}
