//! Watched places of a traced thread (ADR 148): it runs by single steps, whose ends no tracer sees, and pm looks after each whether a place holds
//! another value, and before each whether its execution is watched. What is stored by a system call is no store of the program, as on Linux.

use super::registers::{hide_step, hide_step_in_call, stepping};
use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::signal::info::code;
use crate::state::signal::{SigInfo, Signal};
use crate::state::thread::Doing;
use crate::state::trace::How;
use crate::state::watch::{PLACES, Values};
use crate::system::System;
use abi::call::resume;
use abi::registers::Registers;

/// The instruction `pushf`, which shows the flags, behind up to two prefixes.
const PUSH_FLAGS: u8 = 0x9c;
const PUSH_FLAGS_BYTES: core::ops::RangeInclusive<u64> = 1..=3;
/// How far it moves the stack: with a prefix for 16 bits, and without.
const PUSHED_BYTES: [u64; 2] = [2, 8];
/// The flag TF in the second byte of what it pushes.
const TRAP_FLAG_IN_BYTE: u8 = 1;

impl<S: System> Programs<S> {
    fn watched_values(&mut self, t: ThreadIndex) -> Values {
        let mut values = [None; PLACES];
        let Some(trace) = self.table[t].trace else { return values };
        let endpoint = self.table[t].endpoint();
        for (n, address, length) in trace.watches.stores() {
            let mut bytes = [0; 8];
            values[n] =
                self.system.read(endpoint, address, &mut bytes[..length]).ok().map(|()| u64::from_le_bytes(bytes));
        }
        values
    }

    /// Takes the flag TF out of what a `pushf` has pushed that ran as a single step.
    fn hide_pushed_flag(&mut self, t: ThreadIndex, registers: &Registers) {
        let Some(trace) = self.table[t].trace else { return };
        let (rip, rsp) = trace.watches.step_began_at();
        let length = registers.rip.wrapping_sub(rip);
        if !PUSHED_BYTES.contains(&rsp.wrapping_sub(registers.rsp)) || !PUSH_FLAGS_BYTES.contains(&length) {
            return;
        }
        let endpoint = self.table[t].endpoint();
        let (mut instruction, mut byte) = ([0], [0]);
        let at = registers.rsp.wrapping_add(1);
        if self.system.read(endpoint, registers.rip.wrapping_sub(1), &mut instruction).is_ok()
            && instruction == [PUSH_FLAGS]
            && self.system.read(endpoint, at, &mut byte).is_ok()
        {
            // It has just been pushed there.
            let _ = self.system.write(endpoint, at, &[byte[0] & !TRAP_FLAG_IN_BYTE]);
        }
    }

    /// A step of `t` has stored into watched places, which hold `values` now: the other threads did not.
    fn credit_stores(&mut self, t: ThreadIndex, values: &Values) {
        let Some(trace) = self.table[t].trace else { return };
        let mut next = self.table[self.table.process_of(t)].main();
        while let Some(thread) = next {
            next = self.table[thread].next();
            if let Some(other) = self.table[thread].trace.as_mut().filter(|_| thread != t) {
                trace.watches.stored(values).for_each(|store| other.watches.learn(store));
            }
        }
    }

    /// The watched places hold something else, or hold what a tracer may have changed, before the next instruction.
    pub fn forget_watched_values(&mut self, t: ThreadIndex) {
        if let Some(trace) = &mut self.table[t].trace {
            trace.watches.forget_values();
        }
    }
}

impl<S: System> Pm<S> {
    /// A traced thread that runs by steps has ended one: it stops, or goes on unseen.
    pub fn step_ended(&mut self, t: ThreadIndex, registers: &mut Registers, info: SigInfo) {
        self.programs.hide_pushed_flag(t, registers);
        let values = self.programs.watched_values(t);
        let Some(trace) = self.programs.table[t].trace else { return };
        let is_seen = trace.how == How::Step;
        let stops = is_seen || trace.watches.changed(&values) != 0;
        hide_step(registers);
        if stops {
            // Should pm die over this, the values still differ. From then on it asks nobody until the stop is recorded.
            self.programs.set_held(t, registers);
            self.programs.credit_stores(t, &values);
        }
        if let Some(trace) = self.trace_of(t) {
            trace.watches.end_step(values, registers.rip, is_seen);
        }
        if stops {
            let hit = SigInfo::fault(Signal::TRAP, code::TRAP_HWBKPT, registers.rip);
            return self.force_traced(t, if is_seen { info } else { hit });
        }
        // What else it has to stop at has marked it: it reports before its next instruction.
        self.programs.table[t].doing = Doing::Running;
        self.run_on(t, registers);
    }

    /// Prepares registers for a thread that runs on as its tracer has continued it. Returns bits of `SetRegisters`.
    pub fn as_continued(&mut self, t: ThreadIndex, registers: &mut Registers) -> u64 {
        let bits = resume::READY | self.programs.resume_bits(t);
        let Some(trace) = self.programs.table[t].trace else { return bits };
        if trace.watches.are_active() {
            let values = trace.watches.is_blind().then(|| self.programs.watched_values(t));
            if let Some(trace) = self.trace_of(t) {
                trace.watches.begin_step(values, registers.rip, registers.rsp);
            }
        }
        if trace.steps() {
            *registers = stepping(registers);
        }
        bits
    }

    /// Whether a thread stops instead of running its next instruction, whose execution is watched.
    pub fn stops_before(&mut self, t: ThreadIndex, registers: &Registers) -> bool {
        let is_watched = self.programs.table[t].trace.is_some_and(|mut trace| trace.watches.stop_before(registers.rip));
        if !is_watched {
            return false;
        }
        self.programs.table[t].doing = Doing::Held;
        self.programs.set_held(t, registers);
        if let Some(trace) = self.trace_of(t) {
            trace.watches.stop_before(registers.rip);
            trace.call = u64::MAX;
        }
        self.force_traced(t, SigInfo::fault(Signal::TRAP, code::TRAP_HWBKPT, registers.rip));
        true
    }

    /// The call that a thread makes which runs by steps does not see the flag TF, nor does a child that it makes.
    pub fn hide_step_in_call(&self, t: ThreadIndex, registers: &mut Registers) {
        if self.programs.table[t].trace.is_some_and(|trace| trace.steps()) {
            hide_step_in_call(registers);
        }
    }
}
