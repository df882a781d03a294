//! Recovery: rs has died, and its records are as it left them (docs/book/recovery.md).
//!
//! The kernel knows which incarnations exist; the records are made to agree. One that no record knows was being started: it is destroyed.
//! One that the kernel does not know was being ended: its successor is started. ds gets all changes once more.

use crate::record::State;
use crate::supervisor::Supervisor;
use crate::world::World;
use abi::Endpoint;
use sys::StartKind;

impl<W: World> Supervisor<W> {
    /// Makes the records agree with the kernel. `holder`: the incarnation in a slot.
    pub fn recover(&mut self, holder: impl Fn(usize) -> Option<Endpoint>) {
        self.changes.stop_fetching();
        for at in 0..self.records.len() {
            if !self.records[at].is_critical() {
                self.compare(at, holder(self.records[at].slot()));
            }
            let change = self.records[at].change();
            self.changes.add(change);
        }
        if let Some(own) = self.records.iter_mut().find(|record| record.slot() == abi::endpoint::slot::RS) {
            own.restarts += 1;
        }
        self.tick();
    }

    fn compare(&mut self, at: usize, real: Option<Endpoint>) {
        let known = self.records[at].endpoint;
        let is_there = real == Some(known);
        if let Some(stranger) = real.filter(|_| !is_there) {
            self.world.destroy(stranger, true);
            // Memory that is retained passes on with the slot.
            if !self.records[at].service.retained {
                self.world.free_memory(stranger);
            }
        }
        let record = &mut self.records[at];
        if !is_there && known != Endpoint::NONE {
            record.dead = known;
            record.endpoint = Endpoint::NONE;
        }
        let is_wanted = matches!(record.state, State::Up | State::Starting | State::Restarting);
        let has_plan = record.retry_ns.is_some() || record.start_pending.is_some();
        if record.endpoint != Endpoint::NONE || !is_wanted || has_plan {
            return;
        }
        match record.was_up {
            true => self.start(at, StartKind::Restarted, State::Restarting),
            false => self.start(at, StartKind::Fresh, State::Starting),
        }
    }
}
