//! What the supervisor does to the world; tests play it.

use crate::device::Device;
use crate::policy::Activity;
use crate::record::Death;
use crate::update::Program;
use abi::Endpoint;
use abi::rs::Injection;
use abi::system::Service;
use core::fmt;
use sys::{Result, StartKind};

/// How to start an incarnation.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// What the system file says.
    pub service: &'a Service,
    /// Its program; `None`: the boot archive's.
    pub program: Option<&'a Program>,
    /// What its device brings.
    pub device: &'a Device,
    /// Why it starts.
    pub kind: StartKind,
}

/// The world of the supervisor.
pub trait World {
    /// Monotonic time.
    fn now_ns(&self) -> u64;

    /// Starts an incarnation: memory, rights, registers. It runs when this returns.
    ///
    /// # Errors
    /// `ENXIO`: its module is not there. Others: it cannot be started; nothing is left of the attempt.
    fn launch(&mut self, plan: &Plan) -> Result<Endpoint>;

    /// The kernel has started it; rs gives it its rights.
    fn adopt(&mut self, endpoint: Endpoint, service: &Service);

    /// Looks at an incarnation that is about to be destroyed, for its crash report.
    fn examine(&mut self, death: &Death);

    /// Makes a crash report of what was last examined.
    fn report(&mut self, death: &Death);

    /// Ends an incarnation. `keep`: its successor comes, and those who wait for the slot go on waiting.
    fn destroy(&mut self, endpoint: Endpoint, keep: bool);

    /// No successor comes: those who wait for the slot fail.
    fn expect_nobody(&mut self, slot: usize);

    /// Has vm free the memory of a dead incarnation.
    fn free_memory(&mut self, endpoint: Endpoint);

    /// The memory of the boot loader's frame buffer, whole pages: start and length.
    fn boot_framebuffer(&self) -> Option<(u64, u64)>;

    /// Takes the memory of its device from the programs that have it mapped: the service in `slot` stays down.
    fn lose_device(&mut self, slot: usize);

    /// Disturbs it.
    ///
    /// # Errors
    /// Those of the kernel call `Inject`.
    fn inject(&mut self, endpoint: Endpoint, request: &Injection) -> Result<()>;

    /// Sets its notification bit.
    fn notify(&mut self, endpoint: Endpoint);

    /// What it does just now.
    fn activity(&mut self, endpoint: Endpoint) -> Activity;

    /// Nothing works any more without this service: ends the system.
    fn end_system(&mut self, lost: &Service);

    /// A line for the console.
    fn say(&mut self, text: fmt::Arguments);
}
