//! `wait4` and `waitid`.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::SigInfo;
use crate::state::signal::info::code;
use crate::state::thread::{Doing, WaitCall};
use crate::state::trace::Found;
use crate::state::usage::Usage;
use crate::state::wait::{self, Event, Selector, Wait};
use crate::system::System;
use abi::Errno;

const WAIT4_OPTIONS: u64 = wait::NO_HANG | wait::STOPPED | wait::CONTINUED | wait::NO_THREAD | wait::ALL | wait::CLONE;
const WAITID_OPTIONS: u64 = WAIT4_OPTIONS | wait::EXITED | wait::NO_WAIT;

/// `idtype_t`.
const P_ALL: u64 = 0;
const P_PID: u64 = 1;
const P_PGID: u64 = 2;
const P_PIDFD: u64 = 3;

impl<S: System> Programs<S> {
    /// `wait4(pid, status, options, usage)`.
    pub fn wait4(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        // Options are an int.
        let options = a[2] & 0xffff_ffff;
        let own_group = self.table[self.table.process_of(t)].group();
        let selector = match a[0] as i32 {
            pid @ 1.. => Selector::Pid(pid as u32),
            0 => Selector::Group(own_group),
            -1 => Selector::Any,
            i32::MIN => return Errno::ESRCH.into(),
            group => Selector::Group(group.unsigned_abs()),
        };
        if options & !WAIT4_OPTIONS != 0 {
            return Errno::EINVAL.into();
        }
        let wait = Wait { selector, options: options | wait::EXITED };
        self.begin_wait(t, WaitCall { wait, is_waitid: false, status: a[1], usage: a[3] })
    }

    /// `waitid(idtype, id, info, options, usage)`.
    pub fn waitid(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let options = a[3] & 0xffff_ffff;
        let events = wait::EXITED | wait::STOPPED | wait::CONTINUED;
        if options & !WAITID_OPTIONS != 0 || options & events == 0 {
            return Errno::EINVAL.into();
        }
        let id = a[1] as u32;
        let mut may_block = true;
        let own_group = self.table[self.table.process_of(t)].group();
        let selector = match a[0] {
            P_ALL => Selector::Any,
            P_PID if id as i32 > 0 => Selector::Pid(id),
            P_PGID if id == 0 => Selector::Group(own_group),
            P_PGID if id as i32 > 0 => Selector::Group(id),
            P_PIDFD if id as i32 >= 0 => match self.system.vfs_pidfd(self.table[t].endpoint(), id as i32) {
                Ok((identity, nonblocking)) => {
                    may_block = !nonblocking;
                    Selector::Exactly(identity)
                }
                Err(error) => return error.into(),
            },
            _ => return Errno::EINVAL.into(),
        };
        let wait = Wait { selector, options };
        let call = WaitCall { wait, is_waitid: true, status: a[2], usage: a[4] };
        if may_block { self.begin_wait(t, call) } else { self.try_wait(t, &call).unwrap_or(Err(Errno::EAGAIN)).into() }
    }

    fn begin_wait(&mut self, t: ThreadIndex, call: WaitCall) -> Step {
        if let Some(result) = self.try_wait(t, &call) {
            return result.into();
        }
        if self.table.has_work(t) {
            return Errno::ERESTARTSYS.into();
        }
        self.table[t].doing = Doing::Waiting(call);
        Step::Later
    }

    /// The result of a wait as things are now; `None`: it has to wait.
    fn try_wait(&mut self, t: ThreadIndex, call: &WaitCall) -> Option<Result<u64, Errno>> {
        let own = self.table.process_of(t);
        if let Some(found) = self.table.find_traced(own, &call.wait) {
            return Some(self.report_traced(t, call, found));
        }
        match self.table.find_event(own, &call.wait) {
            Some((child, event)) => Some(self.report(t, call, child, event)),
            None if !self.table.has_child(own, &call.wait) && !self.table.has_tracee(own, &call.wait) => {
                Some(Err(Errno::ECHILD))
            }
            None if call.wait.options & wait::NO_HANG != 0 => Some(self.report_nothing(t, call)),
            None => None,
        }
    }

    fn report(&mut self, t: ThreadIndex, call: &WaitCall, child: ProcessIndex, event: Event) -> Result<u64, Errno> {
        let entry = &self.table[child];
        let (pid, uid) = (entry.pid(), entry.credentials.user.real);
        let usage = self.usage_for(call, child);
        let (code, status) = event.code_and_status();
        let seen = Seen { id: pid, user: uid, status: event.status(), code, value: status, usage };
        let result = self.write_report(t, call, &seen);
        if call.wait.options & wait::NO_WAIT == 0 {
            self.consume(child, event);
            self.note_result(t, result);
        }
        result
    }

    /// What a child and its children have used, if the caller wants to know.
    fn usage_for(&mut self, call: &WaitCall, child: ProcessIndex) -> Usage {
        if call.usage == 0 { Usage::default() } else { self.usage(child).plus(self.table[child].of_children) }
    }

    /// Reports something of those whom the caller traces.
    fn report_traced(&mut self, t: ThreadIndex, call: &WaitCall, found: Found) -> Result<u64, Errno> {
        let of_end = |id, user, ending, usage| {
            let event = Event::Ended(ending);
            let (code, value) = event.code_and_status();
            Seen { id, user, status: event.status(), code, value, usage }
        };
        let seen = match found {
            Found::Stopped(tracee) => {
                let p = self.table.process_of(tracee);
                let (id, user) = (self.table[tracee].tid(), self.table[p].credentials.user.real);
                let usage = self.usage_for(call, p);
                let value = self.table[tracee].trace.and_then(|trace| trace.code()).unwrap_or(0);
                Seen { id, user, status: value << 8 | 0x7f, code: code::CHILD_TRAPPED, value: value as i32, usage }
            }
            Found::Thread(ended) => of_end(ended.tid, ended.user, ended.ending, Usage::default()),
            Found::Process(p, ending) => {
                let usage = self.usage_for(call, p);
                of_end(self.table[p].pid(), self.table[p].credentials.user.real, ending, usage)
            }
        };
        let result = self.write_report(t, call, &seen);
        if call.wait.options & wait::NO_WAIT == 0 {
            self.consume_traced(found);
            self.note_result(t, result);
        }
        result
    }

    fn consume_traced(&mut self, found: Found) {
        match found {
            Found::Stopped(tracee) => {
                if let Some(trace) = &mut self.table[tracee].trace {
                    trace.unreported = false;
                }
            }
            Found::Thread(ended) => self.table.drop_ended(ended.tid),
            Found::Process(p, _) => self.table.released = Some(p),
        }
    }

    /// Writes what is seen to the caller. To be called before it is consumed: a successor of pm finds it again.
    fn write_report(&mut self, t: ThreadIndex, call: &WaitCall, seen: &Seen) -> Result<u64, Errno> {
        let Seen { id, user, status, code, value, usage } = *seen;
        if call.usage != 0 {
            self.write_words(t, call.usage, usage.to_words())?;
        }
        match (call.status, call.is_waitid) {
            (0, _) => {}
            (address, false) => self.write_u32(t, address, status)?,
            (address, true) => {
                let id = self.table.pid_shown(self.table.process_of(t), id);
                let info = SigInfo::child(code, id, user, value, 0).to_bytes();
                self.write_bytes(t, address, &info)?;
            }
        }
        Ok(if call.is_waitid { 0 } else { id as u64 })
    }

    /// WNOHANG and nothing there: 0, and a siginfo of zeros.
    fn report_nothing(&mut self, t: ThreadIndex, call: &WaitCall) -> Result<u64, Errno> {
        if call.is_waitid && call.status != 0 {
            self.write_bytes(t, call.status, &[0; crate::state::signal::info::INFO_BYTES])?;
        }
        Ok(0)
    }

    fn consume(&mut self, child: ProcessIndex, event: Event) {
        match event {
            Event::Ended(_) => self.reap(child),
            Event::Stopped(_) => self.table.stop_reported(child),
            Event::Continued => self.table.continue_reported(child),
        }
    }
}

/// What a wait reports.
struct Seen {
    id: u32,
    user: u32,
    /// The status word of `wait4`.
    status: u32,
    /// `si_code` and `si_status`.
    code: i32,
    value: i32,
    usage: Usage,
}

impl<S: System> Pm<S> {
    /// `wait4` or `waitid`. What a tracer has waited for is its parent's then.
    pub fn wait_call(
        &mut self,
        t: ThreadIndex,
        a: &[u64; 7],
        wait: fn(&mut Programs<S>, ThreadIndex, &[u64; 7]) -> Step,
    ) -> Step {
        let step = wait(&mut self.programs, t, a);
        self.tell_released();
        step
    }

    /// Something has happened to a child of `p`: ends the waits that were for it.
    pub fn serve_waits(&mut self, p: ProcessIndex) {
        let mut next = self.programs.table[p].main();
        while let Some(t) = next {
            next = self.programs.table[t].next();
            let Doing::Waiting(call) = self.programs.table[t].doing else { continue };
            if let Some(result) = self.programs.try_wait(t, &call) {
                self.finish(t, result);
                self.tell_released();
                if !self.programs.table[p].is_alive() {
                    return;
                }
            }
        }
    }
}
