//! `kill` for several processes. First the signal becomes pending for each of them, then the call counts as done, then the signal takes
//! effect: a pm that dies meanwhile has a successor which does the rest, and nothing twice ([`round`](crate::state::round)).

use crate::pm::Pm;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::SigInfo;
use crate::state::table::Table;
use crate::system::System;
use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

impl<S: System> Pm<S> {
    /// Sends to all processes but the first and the caller's. No signal: asks only whether it may.
    pub fn kill_all(&mut self, t: ThreadIndex, info: Option<SigInfo>) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        self.begin_round(t);
        for target in self.programs.table.positions() {
            let table = &self.programs.table;
            let is_spared = |of: &Table| of.is_first(target) || of.sees(target, p) && of.is_first_of_container(target);
            if table.is_used(target) && target != p && table.sees(p, target) && !is_spared(table) {
                self.send_in_round(p, target, info);
            }
        }
        let outcome = self.end_round(t);
        for target in self.programs.table.positions() {
            self.act_in_round(target, info);
        }
        outcome
    }

    /// Sends to all of a group: one success is success; else the last error, or ESRCH. No signal: asks only whether it may.
    pub fn kill_group(&mut self, t: ThreadIndex, group: u32, info: Option<SigInfo>) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        self.begin_round(t);
        let walk = self.programs.table.begin_walk();
        while let Some(target) = self.programs.table.next_member(group, walk) {
            self.send_in_round(p, target, info);
        }
        let outcome = self.end_round(t);
        let walk = self.programs.table.begin_walk();
        while let Some(target) = self.programs.table.next_member(group, walk) {
            if target != p {
                self.act_in_round(target, info);
            }
        }
        // The caller comes last: it may not survive.
        self.act_in_round(p, info);
        outcome
    }

    fn begin_round(&mut self, t: ThreadIndex) {
        let requester = self.programs.table.requester(t);
        self.programs.table.begin_round(requester);
    }

    /// From here on a successor of pm returns the outcome, and acts on what is pending.
    fn end_round(&mut self, t: ThreadIndex) -> Result<u64> {
        let outcome = self.programs.table.outcome_of_round();
        self.programs.note_result(t, outcome);
        self.programs.table.end_round();
        outcome
    }

    /// Makes the signal pending for one of several processes, if the sender may and the signal has not reached it.
    fn send_in_round(&mut self, sender: ProcessIndex, target: ProcessIndex, info: Option<SigInfo>) {
        if self.programs.table.is_reached(target) {
            return;
        }
        let sent = match self.permitted(sender, target, info) {
            Ok(Some(info)) => self.enqueue(target, None, info).map(|_| self.programs.table.note_reached(target)),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.programs.table.note_of_round(sent.map(|()| 0));
    }

    fn act_in_round(&mut self, target: ProcessIndex, info: Option<SigInfo>) {
        if let Some(info) = info.filter(|_| self.programs.table.is_reached(target)) {
            self.act_on(target, None, info.signal);
        }
    }
}
