//! The system calls that set up signals and send them.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::pid::Holder;
use crate::state::signal::action::{ACTION_BYTES, Action};
use crate::state::signal::frame::{AltStack, STACK_BYTES};
use crate::state::signal::info::{KEPT_BYTES, SigInfo, code};
use crate::state::signal::{Disposition, Set, Signal};
use crate::system::System;
use abi::registers::Registers;
use abi::{Capability, Errno, Part};

type Result<T> = core::result::Result<T, Errno>;

/// The only size of a signal set the calls accept.
const SET_BYTES: u64 = 8;

const SIG_BLOCK: u64 = 0;
const SIG_UNBLOCK: u64 = 1;
const SIG_SETMASK: u64 = 2;

impl<S: System> Programs<S> {
    /// `rt_sigprocmask(how, new, old, size)`; `word`: what is at `new`, if the kernel has fetched it. Inlined: a call would cost the quick path 20 ticks.
    #[inline(always)]
    pub fn rt_sigprocmask(&mut self, t: ThreadIndex, a: &[u64; 7], word: Option<u64>) -> Result<u64> {
        if a[3] != SET_BYTES {
            return Err(Errno::EINVAL);
        }
        let old = self.table[t].blocked;
        let mut new = old;
        if a[1] != 0 {
            let given = Set(word.map_or_else(|| self.read_word(t, a[1]), Ok)?);
            new = match a[0] {
                SIG_BLOCK => old.or(given),
                SIG_UNBLOCK => old.without(given),
                SIG_SETMASK => given,
                _ => return Err(Errno::EINVAL),
            };
        }
        let written = self.write_old(t, a[2], &old.0.to_le_bytes());
        self.table[t].blocked = new.without(Set::UNSTOPPABLE);
        written.map(|()| 0)
    }

    /// `rt_sigpending(set, size)`.
    pub fn rt_sigpending(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[1] > SET_BYTES {
            return Err(Errno::EINVAL);
        }
        let p = self.table.process_of(t);
        let pending = self.table[t].pending.set().or(self.table[p].pending.set()).and(self.table[t].blocked);
        self.write_bytes(t, a[0], &pending.0.to_le_bytes()[..a[1] as usize])?;
        Ok(0)
    }

    /// `sigaltstack(new, old)`.
    pub fn sigaltstack(&mut self, t: ThreadIndex, new: u64, old: u64) -> Result<u64> {
        let mut registers = Registers::ZERO;
        self.system.registers(self.table[t].endpoint(), &mut registers)?;
        let before = self.table[t].stack;
        let mut stack = before;
        if new != 0 {
            let wanted = AltStack::from_bytes(&self.read_bytes::<STACK_BYTES>(t, new)?);
            stack = before.replaced(wanted, registers.rsp)?;
        }
        let written = self.write_old(t, old, &before.to_bytes(registers.rsp));
        self.table[t].stack = stack;
        written.map(|()| 0)
    }

    /// Services take no signals: like Linux's kernel threads, they ignore what root sends.
    fn kill_service(&self, p: ProcessIndex, pid: u32) -> Result<u64> {
        match self.table.holder(pid) {
            Holder::Service(_) if self.table[p].credentials.has(Capability::Kill) => Ok(0),
            Holder::Service(_) => Err(Errno::EPERM),
            _ => Err(Errno::ESRCH),
        }
    }

    fn thread_of_process(&self, group: Option<i32>, tid: u32) -> Result<(ProcessIndex, ThreadIndex)> {
        let thread = self.table.thread_by_tid(tid).ok_or(Errno::ESRCH)?;
        let process = self.table.process_of(thread);
        match group {
            Some(group) if self.table[process].pid() != group as u32 => Err(Errno::ESRCH),
            _ => Ok((process, thread)),
        }
    }

    /// The siginfo of a program. Only to itself may it pretend that the kernel or `kill` was the sender.
    fn given_info(&mut self, t: ThreadIndex, signal: u64, address: u64, to_itself: bool) -> Result<Option<SigInfo>> {
        let bytes = self.read_bytes::<KEPT_BYTES>(t, address)?;
        let pretended = SigInfo::from_user(Signal::KILL, &bytes).code;
        if (pretended >= 0 || pretended == code::TKILL) && !to_itself {
            return Err(Errno::EPERM);
        }
        Ok(optional_signal(signal)?.map(|signal| SigInfo::from_user(signal, &bytes)))
    }
}

impl<S: System> Pm<S> {
    /// `rt_sigaction(signal, new, old, size)`.
    pub fn rt_sigaction(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let signal = Signal::new(a[0])?;
        if a[3] != SET_BYTES {
            return Err(Errno::EINVAL);
        }
        let p = self.programs.table.process_of(t);
        let new = match a[1] {
            0 => None,
            _ if Set::UNSTOPPABLE.contains(signal) => return Err(Errno::EINVAL),
            address => Some(Action::from_bytes(&self.programs.read_bytes::<ACTION_BYTES>(t, address)?)),
        };
        let old = self.programs.table[p].actions[signal.index()];
        let written = if a[2] == 0 { Ok(()) } else { self.programs.write_old(t, a[2], &old.to_bytes()) };
        if let Some(new) = new {
            self.programs.table[p].actions[signal.index()] = new;
            if new.disposition(signal) == Disposition::Ignore {
                self.programs.table.discard_signals(p, signal.set());
            } else if self.programs.table[p].timers != 0 {
                self.wake_resting_timers(p, signal);
            }
        }
        written.map(|()| 0)
    }

    /// `kill(pid, signal)`.
    pub fn kill(&mut self, t: ThreadIndex, pid: i32, signal: u64) -> Result<u64> {
        let signal = optional_signal(signal)?;
        let p = self.programs.table.process_of(t);
        match pid {
            1.. => {
                let Some(target) = self.programs.table.process_by_pid(pid as u32) else {
                    return self.programs.kill_service(p, pid as u32);
                };
                self.signal_one(t, target, None, self.user_info(p, signal, code::USER))
            }
            -1 => self.kill_all(t, self.user_info(p, signal, code::USER)),
            0 => self.kill_group(t, self.programs.table[p].group(), self.user_info(p, signal, code::USER)),
            i32::MIN => Err(Errno::ESRCH),
            _ => self.kill_group(t, pid.unsigned_abs(), self.user_info(p, signal, code::USER)),
        }
    }

    fn user_info(&self, p: ProcessIndex, signal: Option<Signal>, code: i32) -> Option<SigInfo> {
        let sender = &self.programs.table[p];
        let pid = self.programs.table.pid_shown(p, sender.pid());
        signal.map(|signal| SigInfo::user(signal, code, pid, sender.credentials.user.real))
    }

    /// What a process that signals another one sends: nothing if only the right is to be checked. `ESRCH`, `EPERM`.
    pub(super) fn permitted(
        &self,
        sender: ProcessIndex,
        target: ProcessIndex,
        info: Option<SigInfo>,
    ) -> Result<Option<SigInfo>> {
        if !self.programs.table.sees(sender, target) {
            return Err(Errno::ESRCH);
        }
        let (from, to) = (&self.programs.table[sender], &self.programs.table[target]);
        let continues = info.is_some_and(|info| info.signal == Signal::CONT) && from.session() == to.session();
        if !continues && !from.credentials.may_signal(&to.credentials) {
            return Err(Errno::EPERM);
        }
        // As on Linux nobody inside can end or stop the first process of a container.
        let is_own_first =
            from.credentials.parts.of(Part::Processes) != 0 && self.programs.table.is_first_of_container(target);
        Ok(info.filter(|info| !(is_own_first && matches!(info.signal, Signal::KILL | Signal::STOP))))
    }

    /// Sends to one process, or to one thread of it, if the caller may.
    fn signal_one(
        &mut self,
        t: ThreadIndex,
        target: ProcessIndex,
        thread: Option<ThreadIndex>,
        info: Option<SigInfo>,
    ) -> Result<u64> {
        let sender = self.programs.table.process_of(t);
        let Some(info) = self.permitted(sender, target, info)? else { return Ok(0) };
        if self.enqueue(target, thread, info)? {
            // A successor of a pm that dies now acts on what is pending, and does not send it twice.
            self.programs.note_done(t);
            self.act_on(target, thread, info.signal);
        }
        Ok(0)
    }

    /// `tkill(tid, signal)`, `tgkill(process, tid, signal)`.
    pub fn tkill(&mut self, t: ThreadIndex, group: Option<i32>, tid: i32, signal: u64) -> Result<u64> {
        if tid <= 0 || group.is_some_and(|group| group <= 0) {
            return Err(Errno::EINVAL);
        }
        let signal = optional_signal(signal)?;
        let p = self.programs.table.process_of(t);
        let (target, thread) = self.programs.thread_of_process(group, tid as u32)?;
        self.signal_one(t, target, Some(thread), self.user_info(p, signal, code::TKILL))
    }

    /// `pidfd_send_signal(pidfd, signal, info, flags)`.
    pub fn pidfd_send_signal(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[3] & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.programs.table.process_of(t);
        let target = self.programs.signalled_by_descriptor(t, a[0] as i32)?;
        let info = match a[2] {
            0 => self.user_info(p, optional_signal(a[1])?, code::USER),
            info => {
                let [named] = self.programs.read_words(t, info)?;
                if named as u32 != a[1] as u32 {
                    return Err(Errno::EINVAL);
                }
                self.programs.given_info(t, a[1], info, target == Some(p))?
            }
        };
        self.signal_one(t, target.ok_or(Errno::ESRCH)?, None, info)
    }

    /// `rt_sigqueueinfo(pid, signal, info)`.
    pub fn rt_sigqueueinfo(&mut self, t: ThreadIndex, pid: i32, signal: u64, info: u64) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        let target = u32::try_from(pid).ok().and_then(|pid| self.programs.table.process_by_pid(pid));
        let info = self.programs.given_info(t, signal, info, target == Some(p))?;
        self.signal_one(t, target.ok_or(Errno::ESRCH)?, None, info)
    }

    /// `rt_tgsigqueueinfo(process, tid, signal, info)`.
    pub fn rt_tgsigqueueinfo(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (group, tid) = (a[0] as i32, a[1] as i32);
        if group <= 0 || tid <= 0 {
            return Err(Errno::EINVAL);
        }
        let p = self.programs.table.process_of(t);
        let (target, thread) = self.programs.thread_of_process(Some(group), tid as u32)?;
        let info = self.programs.given_info(t, a[2], a[3], target == p)?;
        self.signal_one(t, target, Some(thread), info)
    }
}

/// Signal 0 only asks.
fn optional_signal(number: u64) -> Result<Option<Signal>> {
    match number as i32 {
        0 => Ok(None),
        number => Signal::new(number as i64 as u64).map(Some),
    }
}

/// A signal set of the size the calls accept. `EINVAL`, `EFAULT`.
pub fn read_set<S: System>(programs: &mut Programs<S>, t: ThreadIndex, address: u64, bytes: u64) -> Result<Set> {
    if bytes != SET_BYTES {
        return Err(Errno::EINVAL);
    }
    Ok(Set(programs.read_word(t, address)?).without(Set::UNSTOPPABLE))
}
