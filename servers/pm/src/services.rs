//! What services ask of pm (`abi::pm`): the process list, texts of processes, who a thread is, and the start of it all.

use crate::exec::arguments::{Arguments, List};
use crate::exec::flow::Execution;
use crate::index::{ProcessIndex, ThreadIndex};
use crate::manager::{Answer, Pm};
use crate::pid::{Holder, PID_LIMIT};
use crate::process::{Life, Process};
use crate::signal::{Action, SigInfo, Signal, action};
use crate::system::{FileEvent, System};
use crate::thread::Doing;
use abi::info::state;
use abi::pm::{ProcessRecord, Request, WhoIs};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use alloc::vec::Vec;
use zerocopy::IntoBytes;

type Result<T> = core::result::Result<T, Errno>;

/// Programs that may become the first one, in order of preference.
const FIRST_PROGRAMS: [&str; 2] = ["/sbin/init", "/bin/sh"];
const FIRST_ENVIRONMENT: [&str; 2] = ["HOME=/", "TERM=linux"];
/// Its process id.
const FIRST_PID: u32 = 1;
/// Records of one answer; procfs asks again.
const MAX_RECORDS: u64 = 64;
const RECORD_BYTES: u64 = size_of::<ProcessRecord>() as u64;

/// A service in the process list.
pub struct Service {
    pid: u32,
    endpoint: Endpoint,
    name: Name,
    started_ns: u64,
}

impl<S: System> Pm<S> {
    /// A request from a service. Programs cannot send any.
    pub fn service_request(&mut self, message: &Message) -> Option<Message> {
        let Some(request) = Request::decode(message).filter(|_| !message.source.is_application()) else {
            return Some(message.reply(Err(Errno::ENOSYS)));
        };
        let result = match request {
            Request::ServiceUp(up) => self.service_up(up.process, Name::from_words(up.name_low, up.name_high)),
            Request::Boot(_) => self.boot(),
            Request::Processes(ask) => self.list(message.source, ask.first_pid, ask.grant, ask.bytes),
            Request::ProcessText(ask) => self.text(message.source, ask.pid, ask.what, ask.grant, ask.bytes),
            Request::WhoIs(ask) => match self.table.find(ask.process) {
                Some(t) => {
                    let process = &self.table[self.table.process_of(t)];
                    let ids = process.credentials.effective_word();
                    let (pid, session, group) = (process.pid as u64, process.session as u64, process.group as u64);
                    return Some(WhoIs::reply(message, 0, pid, ids, session, group));
                }
                None => Err(Errno::ESRCH),
            },
        };
        Some(message.reply(result))
    }

    fn service_up(&mut self, endpoint: Endpoint, name: Name) -> Result<u64> {
        let started_ns = self.system.time_ns().0;
        if let Some(known) = self.services.iter_mut().find(|service| service.name == name) {
            known.endpoint = endpoint;
            known.started_ns = started_ns;
            return Ok(0);
        }
        let holder = Holder::Service(self.services.len() as u16);
        let pid = self.table.pids.allocate(holder).ok_or(Errno::EAGAIN)?;
        self.services.push(Service { pid, endpoint, name, started_ns });
        Ok(0)
    }

    /// Makes the first process and lets it exec. `EEXIST`: there is one.
    fn boot(&mut self) -> Result<u64> {
        if self.init.is_some() {
            return Err(Errno::EEXIST);
        }
        let endpoint = self.system.fork(Endpoint::NONE)?;
        let t = ThreadIndex::of(endpoint).ok_or(Errno::EAGAIN)?;
        self.system.vm_fork(Endpoint::NONE, endpoint, false)?;
        self.system.vfs_fork(Endpoint::NONE, endpoint, FIRST_PID, 0)?;
        let p = self.table.allocate_process()?;
        self.table.pids.claim(FIRST_PID, Holder::Process(p));
        self.table.pids.retain(FIRST_PID);
        self.table.pids.retain(FIRST_PID);
        let started_ns = self.system.time_ns().0;
        let process = &mut self.table[p];
        process.life = Life::Alive;
        process.pid = FIRST_PID;
        process.group = FIRST_PID;
        process.session = FIRST_PID;
        process.started_ns = started_ns;
        self.table.add_thread(t, endpoint, p, FIRST_PID);
        self.table[t].ready = true;
        self.init = Some(p);
        self.exec_first(t, 0);
        Ok(0)
    }

    /// Tries the first programs from `index` on.
    fn exec_first(&mut self, t: ThreadIndex, index: usize) {
        let Some(path) = FIRST_PROGRAMS.get(index) else {
            return self.system.print("pm: there is no first program; put one at /sbin/init\n");
        };
        let mut arguments = Arguments::default();
        let strings =
            [(List::Argument, *path)].into_iter().chain(FIRST_ENVIRONMENT.map(|text| (List::Environment, text)));
        for (list, text) in strings {
            if arguments.push(list, text.as_bytes(), true).is_err() {
                return self.system.print("pm: no memory for the first program\n");
            }
        }
        let execution = Execution { path: path.as_bytes().to_vec(), arguments };
        if let Answer::Now(Err(error)) = self.begin_exec(t, execution) {
            self.first_program_failed(t, index, error);
        }
    }

    /// vfs could not give the first program.
    pub fn first_exec_failed(&mut self, t: ThreadIndex, path: &[u8], error: Errno) {
        let index = FIRST_PROGRAMS.iter().position(|known| known.as_bytes() == path).unwrap_or(FIRST_PROGRAMS.len());
        self.first_program_failed(t, index, error);
    }

    fn first_program_failed(&mut self, t: ThreadIndex, index: usize, error: Errno) {
        let name = FIRST_PROGRAMS.get(index).unwrap_or(&"the first program");
        self.system.print(&alloc::format!("pm: cannot start {name}: {error}\n"));
        self.exec_first(t, index + 1);
    }

    /// vfs reports a signal for a thread whose call waits: SIGPIPE, SIGXFSZ.
    pub fn file_signal(&mut self, event: &FileEvent) {
        let (Some(t), Ok(signal)) = (self.table.find(event.process), Signal::new(event.values[0])) else { return };
        let p = self.table.process_of(t);
        if !matches!(self.table[t].doing, Doing::Running) {
            return;
        }
        // A standard signal always finds room.
        let queued = self.enqueue(p, Some(t), SigInfo::kernel(signal)).unwrap_or(false);
        let error = if signal == Signal::PIPE { Errno::EPIPE } else { Errno::EFBIG };
        // ENOENT: the call is over, the signal stays.
        let _ = self.system.vfs_cancel(event.process, error);
        if queued {
            self.act_on(p, Some(t), signal);
        }
    }

    /// Records in order of pid.
    fn list(&mut self, asker: Endpoint, first_pid: u64, grant: GrantId, bytes: u64) -> Result<u64> {
        let room = (bytes / RECORD_BYTES).min(MAX_RECORDS) as usize;
        let mut out = Vec::new();
        for pid in first_pid.max(1)..PID_LIMIT as u64 {
            if out.len() / RECORD_BYTES as usize == room {
                break;
            }
            let record = match self.table.pids.holder(pid as u32) {
                Holder::Process(p) => self.record(p),
                Holder::Service(index) => self.service_record(index),
                Holder::Thread(_) | Holder::Nobody => continue,
            };
            out.extend_from_slice(record.as_bytes());
        }
        if out.is_empty() { Ok(0) } else { self.system.write_grant(asker, grant, &out) }
    }

    fn service_record(&mut self, index: u16) -> ProcessRecord {
        let Service { pid, endpoint, name, started_ns } = self.services[index as usize];
        let usage = self.system.thread_use(endpoint);
        ProcessRecord {
            endpoint,
            pid,
            threads: 1,
            state: letter(usage.state),
            service: 1,
            started_ns,
            user_ns: usage.run_ns,
            name: name.0,
            ..ProcessRecord::default()
        }
    }

    fn record(&mut self, p: ProcessIndex) -> ProcessRecord {
        let user_ns = self.run_ns(p);
        let state = self.state_letter(p);
        let process: &Process = &self.table[p];
        let (user, group) = (process.credentials.user, process.credentials.group);
        let main = process.main.map(|t| &self.table[t]);
        ProcessRecord {
            endpoint: main.map_or(Endpoint::NONE, |thread| thread.endpoint),
            pid: process.pid,
            parent: process.parent.map_or(0, |parent| self.table[parent].pid),
            group: process.group,
            session: process.session,
            terminal: 0,
            uid: user.real,
            euid: user.effective,
            suid: user.saved,
            gid: group.real,
            egid: group.effective,
            sgid: group.saved,
            threads: process.threads,
            state,
            service: 0,
            nice: process.nice,
            started_ns: process.started_ns,
            user_ns,
            children_ns: process.children_run_ns,
            signals_pending: process.pending.set().0 | main.map_or(0, |thread| thread.pending.set().0),
            signals_blocked: main.map_or(0, |thread| thread.blocked.0),
            signals_ignored: action::signals_where(&process.actions, Action::is_ignored).0,
            signals_caught: action::signals_where(&process.actions, Action::is_handled).0,
            name: process.name,
        }
    }

    fn state_letter(&mut self, p: ProcessIndex) -> u32 {
        let process = &self.table[p];
        match (process.life, process.stopped, process.main) {
            (Life::Zombie(_) | Life::Free, _, _) | (_, _, None) => 'Z' as u32,
            (Life::Alive, Some(_), _) => 'T' as u32,
            (Life::Alive, None, Some(t)) => letter(self.system.thread_use(self.table[t].endpoint).state),
        }
    }

    fn text(&mut self, asker: Endpoint, pid: u64, what: u64, grant: GrantId, bytes: u64) -> Result<u64> {
        let p = u32::try_from(pid).ok().and_then(|pid| self.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        let process = &self.table[p];
        let text = match (what, process.main) {
            (_, None) => return Ok(0),
            (0, Some(t)) => self.memory_text(t, process.arguments.clone(), bytes)?,
            (1, Some(t)) => self.memory_text(t, process.environment.clone(), bytes)?,
            (2, _) => {
                let path = process.executable.as_deref().unwrap_or(&[]);
                path[..path.len().min(bytes as usize)].to_vec()
            }
            _ => return Err(Errno::EINVAL),
        };
        if text.is_empty() { Ok(0) } else { self.system.write_grant(asker, grant, &text) }
    }

    fn memory_text(&mut self, t: ThreadIndex, range: core::ops::Range<u64>, bytes: u64) -> Result<Vec<u8>> {
        let length = (range.end - range.start).min(bytes) as usize;
        let mut text = Vec::new();
        text.try_reserve_exact(length).map_err(|_| Errno::ENOMEM)?;
        text.resize(length, 0);
        self.system.read(self.table[t].endpoint, range.start, &mut text)?;
        Ok(text)
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
