//! What services ask of pm (`abi::pm`): texts of processes, who a thread is, and the start of it all (the process list: `records`).

use crate::exec::arguments::{Arguments, List};
use crate::exec::flow::Execution;
use crate::index::ThreadIndex;
use crate::manager::{Answer, Pm};
use crate::pid::Holder;
use crate::process::Life;
use crate::signal::{SigInfo, Signal};
use crate::system::{FileEvent, System};
use crate::thread::Doing;
use abi::pm::{Request, WhoIs};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use alloc::vec::Vec;

type Result<T> = core::result::Result<T, Errno>;

/// Programs that may become the first one, in order of preference.
const FIRST_PROGRAMS: [&str; 2] = ["/sbin/init", "/bin/sh"];
const FIRST_ENVIRONMENT: [&str; 2] = ["HOME=/", "TERM=linux"];
/// Its process id.
const FIRST_PID: u32 = 1;

/// A service in the process list.
pub struct Service {
    /// Its process id.
    pub pid: u32,
    /// Where it is.
    pub endpoint: Endpoint,
    /// What it is called.
    pub name: Name,
    /// When it came up, in monotonic time.
    pub started_ns: u64,
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
            Request::Threads(ask) => self.list_threads(message.source, &ask),
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

    /// A message has come to a queue for whoever asked to be told.
    pub fn message_signal(&mut self, event: &FileEvent) {
        let [target, value, sender, _] = event.values;
        let Some(p) = self.table.process_by_pid(target as u32) else { return };
        let Ok(signal) = Signal::new(target >> 32) else { return };
        // EAGAIN: too many wait already; Linux drops it, too.
        let _ = self.send(p, None, SigInfo::message(signal, sender, value));
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
