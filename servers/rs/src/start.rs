//! The start of an incarnation: first its device is found, then it is launched, and then it says whether it could initialise itself.

use crate::device::Knowledge;
use crate::record::{Cause, End, Record, State};
use crate::supervisor::{Event, Launch, Supervisor};
use crate::world::{Plan, World};
use abi::endpoint::slot;
use abi::{Endpoint, Errno};
use sys::StartKind;

impl<W: World> Supervisor<W> {
    /// Starts an incarnation, after its device has been found.
    pub(crate) fn start(&mut self, at: usize, kind: StartKind, state: State) {
        let now_ns = self.world.now_ns();
        let launch = self.may_launch(at);
        let record = &mut self.records[at];
        record.state = state;
        record.started_ns = now_ns;
        record.retry_ns = None;
        record.start_pending = Some(kind);
        match launch {
            Launch::Now => self.launch(at, kind),
            Launch::Ask => self.find_device(at),
            Launch::Later => {}
            Launch::Never => self.left_out(at, Errno::ENXIO),
        }
    }

    fn find_device(&mut self, at: usize) {
        self.records[at].device = Knowledge::Asked;
        self.happened(Event::FindDevice(at));
    }

    fn launch(&mut self, at: usize, kind: StartKind) {
        let record = &mut self.records[at];
        record.start_pending = None;
        let Knowledge::Known(device) = &record.device else { return };
        let plan = Plan { service: &record.service, program: record.program.as_ref(), device, kind };
        match self.world.launch(&plan) {
            Ok(endpoint) => {
                record.endpoint = endpoint;
                record.dead = Endpoint::NONE;
                self.changes.add(record.change());
            }
            Err(error @ (Errno::ENODEV | Errno::ENXIO)) => self.left_out(at, error),
            Err(error) => {
                self.world.say(format_args!("{} cannot be started: {error}", record.name));
                let cause = Cause::Exited(-i64::from(error.0));
                record.last_end = Some((cause.end(), cause.status()));
                if !self.end_during_update(at, cause) {
                    let wait_ns = self.restart_delay(at);
                    self.restart_after(at, wait_ns);
                }
            }
        }
    }

    /// An incarnation is ready.
    pub(crate) fn came_up(&mut self, at: usize, now_ns: u64) {
        let is_successor = core::mem::replace(&mut self.records[at].was_up, true);
        self.records[at].up(now_ns);
        self.changes.add(self.records[at].change());
        self.happened(Event::Up(at));
        if self.records[at].slot() == slot::PCI {
            self.give_devices_back();
        }
        if is_successor {
            self.restart_dependants(at);
        }
    }

    /// A new pci does not know which device belongs to whom; services that needed it have waited. It hears first of the drivers that run,
    /// and knows their devices when it looks for room for the ranges of another.
    fn give_devices_back(&mut self) {
        let turns: [fn(&Record) -> bool; 2] =
            [|record| record.endpoint != Endpoint::NONE, |record| record.start_pending.is_some()];
        for is_in_turn in turns {
            for at in 0..self.records.len() {
                if self.records[at].device == Knowledge::None && is_in_turn(&self.records[at]) {
                    self.find_device(at);
                }
            }
        }
    }

    /// pci is dead, and with it the knowledge which device belongs to whom.
    pub(crate) fn forget_devices(&mut self) {
        for record in &mut self.records {
            record.device = Knowledge::of(&record.service);
        }
    }

    /// An incarnation could not initialise itself. The very first one is not tried again. A device that was found before is not missing
    /// for good: pci has died, and the driver is started when pci has found the device again.
    pub(crate) fn failed(&mut self, at: usize, error: Errno) {
        if self.records[at].update.is_none() && !self.records[at].was_up {
            return self.left_out(at, error);
        }
        self.world.say(format_args!("{} could not initialise itself: {error}", self.records[at].name));
        self.end(at, Cause::Exited(-i64::from(error.0)));
    }

    /// Leaves a service out that cannot run, by its own report or for lack of its device.
    pub(crate) fn left_out(&mut self, at: usize, error: Errno) {
        let record = &mut self.records[at];
        let quietly = record.service.optional && matches!(error, Errno::ENODEV | Errno::ENXIO);
        if !quietly {
            self.world.say(format_args!("{} cannot run: {error}", record.name));
        }
        self.take_down(at, false);
        self.records[at].last_end = Some((End::Exited, -i64::from(error.0)));
        self.stay_down(at, if quietly { State::Down } else { State::GivenUp });
    }
}
