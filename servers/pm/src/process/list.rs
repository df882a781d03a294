//! What procfs and rs are told of processes, threads and services (`abi::pm::ProcessRecord`).

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::containers::Kind;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits;
use crate::state::pid::Holder;
use crate::state::process::{Life, Process};
use crate::state::services::Service;
use crate::state::signal::action;
use crate::system::System;
use abi::info::state;
use abi::pm::{self, ProcessRecord, Threads};
use abi::{Endpoint, Errno, GrantId, Part, Word};
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};
use zerocopy::IntoBytes;

type Result<T> = core::result::Result<T, Errno>;

const RECORD_BYTES: u64 = size_of::<ProcessRecord>() as u64;
/// Records of one reply; procfs asks again for the rest.
const MAX_RECORDS: u64 = 64;

impl<S: System> Programs<S> {
    fn record(&mut self, p: ProcessIndex) -> ProcessRecord {
        let user_ns = self.run_ns(p);
        let process: &Process = &self.table[p];
        let (user, group) = (process.credentials.user, process.credentials.group);
        let capabilities = &process.credentials.capabilities;
        let queued = self.table.queued_by(process.credentials.account());
        let (ignored, caught) = action::ignored_and_handled(&process.actions);
        let record = ProcessRecord {
            endpoint: Endpoint::NONE,
            pid: process.pid(),
            process: process.pid(),
            parent: process.parent().map_or(0, |parent| self.table[parent].pid()),
            group: process.group(),
            session: process.session(),
            uid: user.real,
            euid: user.effective,
            suid: user.saved,
            gid: group.real,
            egid: group.effective,
            sgid: group.saved,
            capabilities_inheritable: capabilities.inheritable().bits(),
            capabilities_permitted: capabilities.permitted().bits(),
            capabilities_effective: capabilities.effective().bits(),
            capabilities_bounding: capabilities.bounding().bits(),
            capabilities_ambient: capabilities.ambient().bits(),
            fsuid: user.file,
            fsgid: group.file,
            no_new_privileges: process.control.no_new_privileges.into(),
            undumpable: (!process.control.dumpable).into(),
            signals_queued: queued as u32,
            signals_queued_max: process.limits.soft(limits::SIGPENDING).min(u32::MAX.into()) as u32,
            threads: process.threads(),
            state: 'Z' as u32,
            nice: process.nice,
            oom_adjust: process.oom.value() as i16,
            started_ns: process.started_ns(),
            children_ns: process.of_children.run_ns,
            signals_shared: process.pending.set().0,
            signals_ignored: ignored.0,
            signals_caught: caught.0,
            parts: process.credentials.parts.to_word(),
            name: process.name.bytes(),
            ..ProcessRecord::default()
        };
        let main = process.main();
        let record = main.map_or(record, |t| self.thread_record(&record, t));
        ProcessRecord { pid: record.process, user_ns, ..record }
    }

    /// The record of a thread: as that of its process, but for what is its own.
    fn thread_record(&mut self, process: &ProcessRecord, t: ThreadIndex) -> ProcessRecord {
        let thread = &self.table[t];
        let (endpoint, pending, blocked) = (thread.endpoint(), thread.pending.set().0, thread.blocked.0);
        let (tid, (policy, priority)) = (thread.tid(), thread.scheduling.policy_and_priority());
        let tracer = thread.trace;
        let used = self.system.thread_use(endpoint);
        let holder = &self.table[self.table.process_of(t)];
        let state = match (holder.life(), holder.stopped()) {
            (Life::Zombie(_) | Life::Free, _) => 'Z' as u32,
            _ if tracer.is_some_and(|trace| trace.stop.is_some()) => 't' as u32,
            (Life::Alive, Some(_)) => 'T' as u32,
            (Life::Alive, None) => letter(used.state),
        };
        ProcessRecord {
            endpoint,
            pid: tid,
            state,
            user_ns: used.run_ns,
            waits: used.waits,
            signals_pending: pending,
            signals_blocked: blocked,
            seccomp: thread.seccomp.mode(),
            filters: self.filters.count(thread.seccomp) as u16,
            policy,
            priority,
            name: self.table.name_of(t).bytes(),
            tracer: tracer.map_or(0, |trace| self.table[trace.tracer].pid()),
            effective: self.table.effective_priority(t, used.queue),
            ..*process
        }
    }

    /// A text of a process (`pm::TEXT_*`). `ESRCH`.
    pub fn text(&mut self, requester: Endpoint, pid: u64, what: u64, grant: GrantId, bytes: u64) -> Result<u64> {
        let p = u32::try_from(pid).ok().and_then(|pid| self.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        let process = &self.table[p];
        let Some(t) = process.main() else { return Ok(0) };
        let mut text = match what {
            pm::TEXT_ARGUMENTS => self.memory_text(t, process.arguments.clone(), bytes)?,
            pm::TEXT_ENVIRONMENT => self.memory_text(t, process.environment.clone(), bytes)?,
            pm::TEXT_AUXILIARY => self.memory_text(t, process.auxiliary.clone(), bytes)?,
            pm::TEXT_EXECUTABLE => fallible::copied(process.executable.as_deref().unwrap_or(&[]))?,
            pm::TEXT_GROUPS => {
                fallible::collect(process.credentials.groups().iter().flat_map(|group| group.to_le_bytes()))?
            }
            pm::TEXT_LIMITS => {
                let limits = process.limits.iter().flat_map(|limit| [limit.soft, limit.hard]);
                fallible::collect(limits.flat_map(u64::to_le_bytes))?
            }
            pm::TEXT_USER_MAP => self.map_text(process, Kind::Users)?,
            pm::TEXT_GROUP_MAP => self.map_text(process, Kind::Groups)?,
            pm::TEXT_SETGROUPS => {
                let users = process.credentials.parts.of(Part::Users);
                fallible::copied(self.table.containers.setgroups_text(users).as_bytes())?
            }
            _ => return Err(Errno::EINVAL),
        };
        text.truncate(bytes as usize);
        if text.is_empty() { Ok(0) } else { self.system.write_grant(requester, grant, &text) }
    }

    /// First id inside, first id outside and their number, as u32; nothing if there is none.
    fn map_text(&self, process: &Process, kind: Kind) -> Result<Vec<u8>> {
        let map = match process.credentials.parts.of(Part::Users) {
            0 => [0, 0, u32::MAX],
            users => match self.table.containers.map(users, kind) {
                Some(map) => [map.inside, self.table.containers.named_above(users, kind, map.outside), 1],
                None => return Ok(Vec::new()),
            },
        };
        fallible::collect(map.into_iter().flat_map(u32::to_le_bytes))
    }

    fn memory_text(&mut self, t: ThreadIndex, range: core::ops::Range<u64>, bytes: u64) -> Result<Vec<u8>> {
        let length = (range.end - range.start).min(bytes) as usize;
        let mut text = fallible::filled(0, length)?;
        self.system.read(self.table[t].endpoint(), range.start, &mut text)?;
        Ok(text)
    }
}

impl<S: System> Pm<S> {
    /// Records in order of pid.
    pub fn list(&mut self, requester: Endpoint, first_pid: u64, grant: GrantId, bytes: u64) -> Result<u64> {
        let room = (bytes / RECORD_BYTES).min(MAX_RECORDS) as usize;
        let mut out = Vec::new();
        for pid in first_pid.max(1)..self.programs.table.pids_end().into() {
            if out.len() / RECORD_BYTES as usize == room {
                break;
            }
            let record = match self.programs.table.holder(pid as u32) {
                Holder::Process(p) => self.programs.record(p),
                Holder::Service(index) => self.service_record(index),
                Holder::Thread(_) | Holder::Nobody => continue,
            };
            out.try_extend_from_slice(record.as_bytes())?;
        }
        if out.is_empty() { Ok(0) } else { self.programs.system.write_grant(requester, grant, &out) }
    }

    /// Records of threads in order of their ids. `ESRCH`.
    pub fn list_threads(&mut self, requester: Endpoint, ask: &Threads) -> Result<u64> {
        let room = (ask.bytes / RECORD_BYTES).min(MAX_RECORDS) as usize;
        let mut records = match u32::try_from(ask.pid).map(|pid| self.programs.table.holder(pid)) {
            Ok(Holder::Service(index)) => fallible::collect([self.service_record(index)])?,
            Ok(Holder::Process(p)) => {
                let process = self.programs.record(p);
                let threads = fallible::collect(self.programs.table.threads_of(p))?;
                fallible::collect(threads.into_iter().map(|t| self.programs.thread_record(&process, t)))?
            }
            _ => return Err(Errno::ESRCH),
        };
        records.retain(|record| u64::from(record.pid) >= ask.first_tid);
        records.sort_unstable_by_key(|record| record.pid);
        records.truncate(room);
        if records.is_empty() {
            Ok(0)
        } else {
            self.programs.system.write_grant(requester, ask.grant, records.as_bytes())
        }
    }

    fn service_record(&mut self, index: u16) -> ProcessRecord {
        let &Service { pid, endpoint, name, started_ns } = self.services.get(index);
        let usage = self.programs.system.thread_use(endpoint);
        ProcessRecord {
            endpoint,
            pid,
            process: pid,
            threads: 1,
            state: letter(usage.state),
            service: 1,
            started_ns,
            user_ns: usage.run_ns,
            name: name.0,
            ..ProcessRecord::default()
        }
    }
}

/// The letter for a kernel state.
fn letter(kernel_state: u32) -> u32 {
    match kernel_state {
        state::READY => 'R' as u32,
        state::FAULTING => 'D' as u32,
        _ => 'S' as u32,
    }
}
