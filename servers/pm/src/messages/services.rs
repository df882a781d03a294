//! Requests of services (`abi::pm`): the identity of a thread, texts and lists of processes (`process::list`), and the first process.

use crate::pm::Pm;
use crate::state::name::ShortName;
use crate::state::services::Service;
use crate::state::signal::{Set, SigInfo, Signal};
use crate::system::System;
use abi::endpoint::slot;
use abi::pm::{AwaitSignals, Enroll, Identity, Loads, Request, Setting, WhoIs};
use abi::{Endpoint, Errno, Message, Name};

/// The server of messages between programs.
const M3IPC: &str = "m3ipc";

impl<S: System> Pm<S> {
    /// A request from a service. Programs cannot send any.
    pub fn service_request(&mut self, message: &Message) -> Message {
        let Some(request) = Request::decode(message).filter(|_| !message.source.is_application()) else {
            return message.reply(Err(Errno::ENOSYS));
        };
        if !self.may_ask(message.source, &request) {
            return message.reply(Err(Errno::EPERM));
        }
        let result = match request {
            Request::ServiceUp(up) => self.service_up(up.process, Name::from_words(up.name_low, up.name_high)),
            Request::Boot(_) => self.programs.boot(),
            Request::Processes(ask) => self.list(message.source, ask.first_pid, ask.grant, ask.bytes),
            Request::Threads(ask) => self.list_threads(message.source, &ask),
            Request::IpcObjects(ask) => self.list_ipc(message.source, &ask),
            Request::Stir(stir) => {
                self.random.mix_in([stir.first, stir.second, stir.third, stir.fourth]);
                Ok(0)
            }
            Request::TakeSignals(ask) => self.take_signals(&ask),
            Request::AwaitSignals(ask) => match self.await_signals(ask.process, Set(ask.mask), ask.any) {
                Ok((pending, arrivals)) => return AwaitSignals::reply(message, 0, pending.0, arrivals.into()),
                Err(error) => Err(error),
            },
            Request::Memory(ask) => self.programs.copy_memory(message.source, &ask),
            Request::ProcessText(ask) => self.programs.text(message.source, ask.pid, ask.what, ask.grant, ask.bytes),
            Request::MachineName(ask) => self.show_machine_name(message.source, &ask),
            Request::SetMachineName(ask) => self.change_machine_name(message.source, ask.grant, ask.bytes, ask.which),
            Request::Setting(ask) => match self.setting(ask.what) {
                Ok(value) => return Setting::reply(message, 0, value),
                Err(error) => Err(error),
            },
            Request::SetSetting(ask) => self.set_setting(ask.what, ask.value),
            Request::SetIdMap(ask) => self.programs.set_id_map(message.source, &ask),
            Request::SetName(ask) => self.programs.set_name(message.source, &ask),
            Request::SetOomAdjust(ask) => self.programs.set_oom_adjust(&ask),
            Request::Loads(_) => {
                let [one, five, fifteen] = self.programs.load.averages();
                return Loads::reply(message, 0, one, five, fifteen);
            }
            Request::Identity(_) => {
                let ([boot_low, boot_high], [new_low, new_high]) = (self.machine.boot(), self.random.pair());
                return Identity::reply(message, 0, boot_low, boot_high, new_low, new_high);
            }
            Request::Enroll(ask) => match self.enroll(&ask) {
                Some((thread, pid, ids, capabilities, name)) => {
                    let (low, high) = Name(name.bytes()).to_words();
                    return Enroll::reply(message, 0, thread.0.into(), pid.into(), ids, capabilities, low, high);
                }
                None => Err(Errno::ESRCH),
            },
            Request::Signal(ask) => self.signal_enrolled(ask.pid, ask.signal),
            Request::WhoIs(ask) => match self.programs.table.find(ask.process) {
                Some(t) => {
                    let process = &self.programs.table[self.programs.table.process_of(t)];
                    let ids = process.credentials.word_of_system();
                    let (pid, session, group) =
                        (process.pid() as u64, process.session() as u64, process.group() as u64);
                    let capabilities = process.capabilities_for_services();
                    return WhoIs::reply(message, 0, pid, ids, session, group, capabilities);
                }
                None => Err(Errno::ESRCH),
            },
        };
        message.reply(result)
    }

    /// Whether a service may make a request: rs any, others those that `abi::pm` names them for.
    fn may_ask(&self, source: Endpoint, request: &Request) -> bool {
        let askers: &[&str] = match request {
            Request::ServiceUp(_) | Request::Boot(_) => &[],
            Request::Processes(_)
            | Request::Threads(_)
            | Request::ProcessText(_)
            | Request::IpcObjects(_)
            | Request::SetIdMap(_)
            | Request::SetName(_)
            | Request::SetOomAdjust(_)
            | Request::Memory(_) => &["procfs"],
            Request::MachineName(_) | Request::SetMachineName(_) | Request::Setting(_) | Request::SetSetting(_) => {
                &["procfs"]
            }
            Request::Identity(_) | Request::Loads(_) => &["procfs"],
            Request::Stir(_) => &["devfs"],
            Request::Enroll(_) | Request::Signal(_) => &[M3IPC],
            Request::TakeSignals(_) | Request::AwaitSignals(_) => return source.slot() == slot::VFS,
            // Whoever implements a routed call must know its callers.
            Request::WhoIs(_) => return true,
        };
        source.slot() == slot::RS || self.services.name_in(source.slot()).is_some_and(|name| askers.contains(&name))
    }

    /// m3ipc is told from now on when a thread of this process ends. Returns its first thread, pid, ids, capabilities and name.
    fn enroll(&mut self, ask: &Enroll) -> Option<(Endpoint, u32, u64, u64, ShortName)> {
        let table = &mut self.programs.table;
        let p = match u32::try_from(ask.pid).ok()? {
            0 => table.find(ask.process).map(|thread| table.process_of(thread))?,
            pid => table.process_by_pid(pid)?,
        };
        let process = &mut table[p];
        if process.ending().is_some() {
            return None;
        }
        let ids = process.credentials.word_of_system();
        let capabilities = process.credentials.of_system().bits();
        let (pid, main, name) = (process.pid(), process.main()?, process.name);
        process.enrolled = true;
        Some((table[main].endpoint(), pid, ids, capabilities, name))
    }

    fn signal_enrolled(&mut self, pid: u64, number: u64) -> Result<u64, Errno> {
        let p = u32::try_from(pid).ok().and_then(|pid| self.programs.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        if !self.programs.table[p].enrolled {
            return Err(Errno::ESRCH);
        }
        self.send(p, None, SigInfo::kernel(Signal::new(number)?)).map(|()| 0)
    }

    fn service_up(&mut self, endpoint: Endpoint, name: Name) -> Result<u64, Errno> {
        if name.as_str() == M3IPC {
            self.programs.m3ipc = Some(endpoint);
        }
        let started_ns = self.programs.system.time_ns().0;
        if self.services.restarted(name, endpoint, started_ns) {
            return Ok(0);
        }
        let pid = self.programs.table.add_service(self.services.next_index()).ok_or(Errno::EAGAIN)?;
        self.services.add(Service { pid, endpoint, name, started_ns }).map(|()| 0)
    }
}
