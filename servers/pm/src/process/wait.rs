//! `wait4` and `waitid`.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::SigInfo;
use crate::state::thread::{Doing, WaitCall};
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
        match self.table.find_event(self.table.process_of(t), &call.wait) {
            Some((child, event)) => Some(self.report(t, call, child, event)),
            None if !self.table.has_child(self.table.process_of(t), &call.wait) => Some(Err(Errno::ECHILD)),
            None if call.wait.options & wait::NO_HANG != 0 => Some(self.report_nothing(t, call)),
            None => None,
        }
    }

    fn report(&mut self, t: ThreadIndex, call: &WaitCall, child: ProcessIndex, event: Event) -> Result<u64, Errno> {
        let entry = &self.table[child];
        let (pid, uid) = (entry.pid(), entry.credentials.user.real);
        let run_ns = self.run_ns(child) + self.table[child].children_run_ns;
        if call.wait.options & wait::NO_WAIT == 0 {
            self.consume(child, event);
        }
        if call.usage != 0 {
            self.write_usage(t, call.usage, run_ns)?;
        }
        match (call.status, call.is_waitid) {
            (0, _) => {}
            (address, false) => self.write_u32(t, address, event.status())?,
            (address, true) => {
                let (code, status) = event.code_and_status();
                let info = SigInfo::child(code, pid, uid, status, 0).to_bytes();
                self.write_bytes(t, address, &info)?;
            }
        }
        Ok(if call.is_waitid { 0 } else { pid as u64 })
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

impl<S: System> Pm<S> {
    /// Something has happened to a child of `p`: ends the waits that were for it.
    pub fn serve_waits(&mut self, p: ProcessIndex) {
        let mut next = self.programs.table[p].main();
        while let Some(t) = next {
            next = self.programs.table[t].next();
            let Doing::Waiting(call) = self.programs.table[t].doing else { continue };
            if let Some(result) = self.programs.try_wait(t, &call) {
                self.finish(t, result);
                if !self.programs.table[p].is_alive() {
                    return;
                }
            }
        }
    }
}
