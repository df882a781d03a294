//! prctl(2).

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::control::{MemoryFailure, TIMER_SLACK_NS};
use crate::state::index::ThreadIndex;
use crate::state::name::{NAME_BYTES, ShortName};
use crate::state::oom::OomAdjust;
use crate::state::signal::Signal;
use crate::system::System;
use abi::{Endpoint, Errno, layout, pm};

type Result<T> = core::result::Result<T, Errno>;

/// Options.
mod option {
    pub const SET_PDEATHSIG: u64 = 1;
    pub const GET_PDEATHSIG: u64 = 2;
    pub const GET_DUMPABLE: u64 = 3;
    pub const SET_DUMPABLE: u64 = 4;
    pub const GET_KEEPCAPS: u64 = 7;
    pub const SET_KEEPCAPS: u64 = 8;
    pub const GET_TIMING: u64 = 13;
    pub const SET_TIMING: u64 = 14;
    pub const SET_NAME: u64 = 15;
    pub const GET_NAME: u64 = 16;
    pub const GET_SECCOMP: u64 = 21;
    pub const SET_SECCOMP: u64 = 22;
    pub const CAPBSET_READ: u64 = 23;
    pub const CAPBSET_DROP: u64 = 24;
    pub const GET_SECUREBITS: u64 = 27;
    pub const SET_SECUREBITS: u64 = 28;
    pub const SET_TIMERSLACK: u64 = 29;
    pub const GET_TIMERSLACK: u64 = 30;
    pub const TASK_PERF_EVENTS_DISABLE: u64 = 31;
    pub const TASK_PERF_EVENTS_ENABLE: u64 = 32;
    pub const MCE_KILL: u64 = 33;
    pub const MCE_KILL_GET: u64 = 34;
    pub const SET_CHILD_SUBREAPER: u64 = 36;
    pub const GET_CHILD_SUBREAPER: u64 = 37;
    pub const SET_NO_NEW_PRIVS: u64 = 38;
    pub const GET_NO_NEW_PRIVS: u64 = 39;
    pub const GET_TID_ADDRESS: u64 = 40;
    pub const SET_THP_DISABLE: u64 = 41;
    pub const GET_THP_DISABLE: u64 = 42;
    pub const CAP_AMBIENT: u64 = 47;
}

/// What PR_MCE_KILL does.
const MCE_KILL_CLEAR: u64 = 0;
const MCE_KILL_SET: u64 = 1;

fn flag(value: u64) -> Result<bool> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Errno::EINVAL),
    }
}

impl<S: System> Pm<S> {
    /// `prctl(option, ...)`. `EINVAL`: unknown option.
    pub fn prctl(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        match a[0] & 0xffff_ffff {
            option::SET_SECCOMP => self.set_seccomp(t, a[1], a[2]),
            option => self.programs.process_control(t, option, a).into(),
        }
    }
}

impl<S: System> Programs<S> {
    fn process_control(&mut self, t: ThreadIndex, option: u64, a: &[u64; 7]) -> Result<u64> {
        let p = self.table.process_of(t);
        let value = a[1];
        let control = &mut self.table[p].control;
        match option {
            option::SET_NAME => {
                let name = ShortName::new(&self.read_name(t, value)?);
                self.table.set_name(t, name);
            }
            option::GET_NAME => {
                let name = self.table.name_of(t).bytes();
                self.write_bytes(t, value, &name)?;
            }
            option::SET_PDEATHSIG if value == 0 => control.parent_death = None,
            option::SET_PDEATHSIG => control.parent_death = Some(Signal::new(value)?),
            option::GET_PDEATHSIG => {
                let signal = control.parent_death.map_or(0, |signal| u32::from(signal.number()));
                self.write_u32(t, value, signal)?;
            }
            option::SET_DUMPABLE => control.dumpable = flag(value)?,
            option::GET_DUMPABLE => return Ok(u64::from(control.dumpable)),
            option::SET_KEEPCAPS => {
                let keeps = flag(value)?;
                return self.change_capabilities(p, |own| own.keep(keeps));
            }
            option::GET_KEEPCAPS => return Ok(self.table[p].credentials.capabilities.are_kept().into()),
            option::GET_SECUREBITS => return Ok(self.table[p].credentials.capabilities.secure_bits().into()),
            option::SET_SECUREBITS => return self.change_capabilities(p, |own| own.set_secure_bits(value)),
            option::CAPBSET_READ => return self.has_bounding(p, value),
            option::CAPBSET_DROP => return self.change_capabilities(p, |own| own.drop_bounding(value)),
            option::CAP_AMBIENT => return self.ambient(p, a),
            // Time is counted exactly, which Linux calls statistical.
            option::GET_TIMING => {}
            option::GET_SECCOMP => return Ok(self.table[t].seccomp.mode().into()),
            // Nobody counts events.
            option::TASK_PERF_EVENTS_DISABLE | option::TASK_PERF_EVENTS_ENABLE => {}
            option::SET_TIMING if value == 0 => {}
            option::MCE_KILL if a[3..5] == [0; 2] => {
                control.memory_failure = match (value, a[2]) {
                    (MCE_KILL_CLEAR, 0) => MemoryFailure::Default,
                    (MCE_KILL_SET, wanted) => MemoryFailure::from_number(wanted)?,
                    _ => return Err(Errno::EINVAL),
                }
            }
            option::MCE_KILL_GET if a[1..5] == [0; 4] => return Ok(control.memory_failure as u64),
            option::SET_THP_DISABLE if a[2..5] == [0; 3] => control.small_pages = value != 0,
            option::GET_THP_DISABLE if a[1..5] == [0; 4] => return Ok(control.small_pages.into()),
            option::GET_TID_ADDRESS => {
                let address = self.table[t].clear_tid;
                self.write_words(t, value, [address])?;
            }
            option::SET_TIMERSLACK if value == 0 => control.timer_slack_ns = TIMER_SLACK_NS,
            option::SET_TIMERSLACK => control.timer_slack_ns = value,
            option::GET_TIMERSLACK => return Ok(control.timer_slack_ns),
            option::SET_CHILD_SUBREAPER => control.subreaper = value != 0,
            option::GET_CHILD_SUBREAPER => {
                let subreaper = u32::from(control.subreaper);
                self.write_u32(t, value, subreaper)?;
            }
            option::SET_NO_NEW_PRIVS if value == 1 && a[2..5] == [0; 3] => control.no_new_privileges = true,
            option::GET_NO_NEW_PRIVS if a[1..5] == [0; 4] => return Ok(u64::from(control.no_new_privileges)),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    /// `pm::SetOomAdjust`. Only root may spare a process more than it was spared.
    pub fn set_oom_adjust(&mut self, ask: &pm::SetOomAdjust) -> Result<u64> {
        let p = u32::try_from(ask.pid).ok().and_then(|pid| self.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        let value =
            i32::try_from(ask.value).ok().filter(|value| OomAdjust::RANGE.contains(value)).ok_or(Errno::EINVAL)?;
        self.table[p].oom.set(value, ask.uid == 0, ask.old)?;
        Ok(0)
    }

    /// `pm::SetName`.
    pub fn set_name(&mut self, from: Endpoint, ask: &pm::SetName) -> Result<u64> {
        let t = u32::try_from(ask.tid).ok().and_then(|tid| self.table.thread_by_tid(tid)).ok_or(Errno::ESRCH)?;
        let mut text = [0; NAME_BYTES];
        let text = &mut text[..ask.bytes.min(NAME_BYTES as u64) as usize];
        self.system.read_grant(from, ask.grant, text)?;
        self.table.set_name(t, ShortName::new(text));
        Ok(ask.bytes)
    }

    /// The first 15 bytes of a name. The text may end right before memory that is not there.
    fn read_name(&mut self, t: ThreadIndex, address: u64) -> Result<[u8; NAME_BYTES - 1]> {
        let to_page_end = (layout::PAGE_BYTES - address % layout::PAGE_BYTES) as usize;
        let mut bytes = [0; NAME_BYTES - 1];
        let (first, second) = bytes.split_at_mut(to_page_end.min(NAME_BYTES - 1));
        let endpoint = self.table[t].endpoint();
        self.system.read(endpoint, address, first)?;
        if !first.contains(&0) && !second.is_empty() {
            self.system.read(endpoint, address.wrapping_add(first.len() as u64), second)?;
        }
        Ok(bytes)
    }
}
