//! What pm and procfs ask (`abi::vfs`): lives of processes, signals, ids, and what /proc shows. Answered at once, but for events.

use crate::{
    callers::{Call, Caller, permission::Credentials, save_groups},
    events::notices,
    keep::{
        Text,
        records::{GlobalRecord, NOWHERE, ThreadRecord},
    },
    objects::OpenFile,
    paths as path,
    processes::{Place, Process, descriptors::Descriptors, directories::Directories, file_table::FileTable},
    state::Vfs,
};
use abi::{Endpoint, Errno, Message, endpoint::slot, vfs, vfs::Request};
use alloc::{rc::Rc, string::String, vec, vec::Vec};
use sys::copy;

/// Most supplementary groups: what preserved memory holds in one text.
const GROUPS_MAX: u64 = 1024;

impl Vfs {
    /// A descriptor table with a number of its own. `EAGAIN`, `ENFILE`: no room.
    pub fn new_table(&self, descriptors: Descriptors<OpenFile>) -> Result<Rc<FileTable>, Errno> {
        FileTable::new(&self.base.store, self.base.closing.next_number(), descriptors)
    }

    /// Answers a request of a service.
    pub fn service_request(&'static self, message: &Message) -> Message {
        let Some(request) = Request::decode(message) else { return message.reply(Err(Errno::ENOSYS)) };
        let result = match request {
            Request::NextEvent(_) if is_pm(message) => return self.next_event(message),
            Request::Mounts(request) => self.show_mounts(message.source, &request),
            Request::DescriptorPath(request) => self.show_path(message.source, &request),
            Request::Descriptors(request) => self.show_descriptors(message.source, &request),
            _ if !is_pm(message) => Err(Errno::EPERM),
            request => self.pm_request(message.source, request),
        };
        message.reply(result)
    }

    fn pm_request(&'static self, pm: Endpoint, request: Request) -> Result<u64, Errno> {
        match request {
            Request::Fork(request) => self.fork(&request)?,
            Request::Exit(request) => self.exit(request.process)?,
            Request::Exec(request) => self.begin_exec(pm, &request)?,
            Request::ExecCommit(request) => self.commit_exec(request.process)?,
            Request::ExecText(request) => {
                let process = self.processes.get(request.process)?;
                let text = process.exec_text.borrow();
                let bytes = text.len().min(request.bytes as usize);
                copy::to_grant(pm, request.grant, 0, &text[..bytes])?;
                return Ok(bytes as u64);
            }
            Request::Cancel(request) => self.cancel(request.process, Errno(request.error.saturating_abs()))?,
            Request::SetIds(request) => self.set_ids(pm, &request)?,
            Request::SetSession(request) => {
                let process = self.processes.get(request.process)?;
                process.caller.set_session(request.session, request.group);
            }
            Request::SyncAll(request) => self.begin_sync(request.unmount),
            _ => return Err(Errno::ENOSYS),
        }
        Ok(0)
    }

    /// Background of `SyncAll`; a successor does it again if pm has not heard of its end.
    pub fn begin_sync(&'static self, unmount: bool) {
        self.base.store.set_global(&GlobalRecord { sync: 1 + unmount as u8, ..self.base.store.global() });
        self.base.runtime.spawn(async move {
            let result = self.sync_all(unmount).await;
            self.base.notices.synced(result);
        });
    }

    fn next_event(&self, message: &Message) -> Message {
        let (reply, event) = self.base.notices.next(message);
        if let Some(place) = event.and_then(|event| event.saved) {
            self.base.store.release_signal(place);
        }
        if event.is_some_and(|event| event.kind == vfs::EVENT_SYNCED) {
            self.base.store.set_global(&GlobalRecord { sync: 0, ..self.base.store.global() });
        }
        reply
    }

    /// Adds the thread of a child. If it exists, pm repeats a request that a predecessor did not reply to.
    fn fork(&self, request: &vfs::Fork) -> Result<(), Errno> {
        if !request.child.is_application() {
            return Err(Errno::EINVAL);
        }
        if self.processes.get(request.child).is_ok() {
            return Ok(());
        }
        let child = if request.parent == Endpoint::NONE {
            self.first_process(request)?
        } else {
            let parent = self.processes.get(request.parent)?;
            self.child_process(&parent, request)?
        };
        let child = Rc::new(child);
        if let Some(old) = self.processes.insert(child.clone())? {
            self.end(&old);
        }
        self.base.store.forget_thread(request.child.slot());
        child.caller.save();
        Ok(())
    }

    fn first_process(&self, request: &vfs::Fork) -> Result<Process, Errno> {
        let files = self.new_table(Descriptors::default())?;
        let record = ThreadRecord {
            endpoint: request.child,
            pid: request.pid as u32,
            table: files.record(),
            directories: NOWHERE,
            first: true,
            session: 0,
            group: 0,
            ids: [0; 4],
            groups: Text::EMPTY,
        };
        Ok(Process::new(Caller::new(&self.base.store, record, Vec::new()), files, None))
    }

    fn child_process(&self, parent: &Process, request: &vfs::Fork) -> Result<Process, Errno> {
        let files = parent.files();
        let files = match request.flags & vfs::FORK_FILES {
            0 => self.new_table(files.descriptors().clone())?,
            _ => files,
        };
        let directories = match parent.directories().ok() {
            Some(shared) if request.flags & vfs::FORK_FS == 0 => Some(shared.copy()?),
            shared => shared,
        };
        let groups = parent.caller.credentials().groups.clone();
        let record = ThreadRecord {
            endpoint: request.child,
            pid: request.pid as u32,
            table: files.record(),
            directories: directories.as_ref().map_or(NOWHERE, |directories| directories.record()),
            groups: save_groups(&self.base.store, &groups)?,
            ..parent.caller.record()
        };
        Ok(Process::new(Caller::new(&self.base.store, record, groups), files, directories))
    }

    /// A thread that is not there has ended before.
    fn exit(&self, endpoint: Endpoint) -> Result<(), Errno> {
        if let Ok(process) = self.processes.remove(endpoint) {
            self.base.store.forget_thread(endpoint.slot());
            self.end(&process);
        }
        Ok(())
    }

    /// Ends the call of a thread in progress, and releases what no other thread shares with it.
    fn end(&self, process: &Rc<Process>) {
        process.caller.set_gone();
        match process.caller.set_call(Call::None) {
            Call::Pipe(pipe) => drop(pipe.cancel(process.caller.endpoint)),
            Call::Waiting => process.caller.interrupt(Errno::EINTR),
            Call::None | Call::Signalled(_) => {}
        }
        self.base.notices.forget(process.caller.endpoint);
        self.close_images(process);
        let table = process.files();
        if !self.is_shared(&table) {
            table.remove_all().iter().for_each(|file| self.release_records(&table, file));
        }
        process.drop_directories();
    }

    /// Whether a thread besides the one that has just ended uses this table.
    fn is_shared(&self, table: &Rc<FileTable>) -> bool {
        // Two: the ended thread's and the caller's. More may also be handlers in progress.
        Rc::strong_count(table) > 2 && self.processes.all().iter().any(|other| other.uses_files(table))
    }

    fn cancel(&self, endpoint: Endpoint, error: Errno) -> Result<(), Errno> {
        let process = self.processes.get(endpoint)?;
        match process.caller.set_call(Call::None) {
            Call::None => {
                // If it is a call that a predecessor was serving, it comes again, and ends when it would wait.
                process.caller.cancel(error);
                return Err(Errno::ENOENT);
            }
            Call::Waiting => {
                process.caller.set_call(Call::Waiting);
                process.caller.interrupt(error);
            }
            Call::Pipe(pipe) => {
                let moved = pipe.cancel(endpoint).unwrap_or(0);
                self.base.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) });
            }
            Call::Signalled(moved) => self.base.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) }),
        }
        Ok(())
    }

    fn commit_exec(&self, endpoint: Endpoint) -> Result<(), Errno> {
        let process = self.processes.get(endpoint)?;
        self.close_images(&process);
        self.base.store.set_exec(endpoint.slot(), None);
        self.unshare_files(&process)?;
        let shared = process.directories()?;
        // Two: the process' own and ours.
        if Rc::strong_count(&shared) > 2 {
            process.set_directories(shared.copy()?);
        }
        let table = process.files();
        table.remove_close_on_exec().iter().for_each(|file| self.release_records(&table, file));
        Ok(())
    }

    fn set_ids(&self, pm: Endpoint, request: &vfs::SetIds) -> Result<(), Errno> {
        let process = self.processes.get(request.process)?;
        if request.groups > GROUPS_MAX {
            return Err(Errno::EINVAL);
        }
        let mut bytes = vec![0; request.groups as usize * 4];
        if !bytes.is_empty() {
            copy::from_grant(pm, request.grant, 0, &mut bytes)?;
        }
        let credentials = Credentials {
            euid: request.effective as u32,
            egid: (request.effective >> 32) as u32,
            uid: request.real as u32,
            gid: (request.real >> 32) as u32,
            groups: bytes.as_chunks().0.iter().map(|group| u32::from_le_bytes(*group)).collect(),
        };
        process.caller.set_credentials(credentials)
    }

    fn show_mounts(&self, to: Endpoint, request: &vfs::Mounts) -> Result<u64, Errno> {
        let text: String = self.base.files.mounts.all().iter().map(|mount| mount.line()).collect();
        let start = text.len().min(request.offset as usize);
        let end = text.len().min(start.saturating_add(request.bytes as usize));
        copy::to_grant(to, request.grant, 0, &text.as_bytes()[start..end])?;
        Ok((end - start) as u64)
    }

    fn show_path(&self, to: Endpoint, request: &vfs::DescriptorPath) -> Result<u64, Errno> {
        const WORKING: i64 = -1;
        const ROOT: i64 = -2;
        let process = self.processes.get(request.process)?;
        let full = match request.what {
            WORKING => process.directories()?.working().path.to_vec(),
            ROOT => process.directories()?.root().path.to_vec(),
            descriptor => process.file(descriptor as i32)?.path().clone(),
        };
        let root = process.directories()?.root().path.clone();
        let shown = if request.what == ROOT { &full } else { path::below(&full, &root).unwrap_or(&full) };
        let bytes = shown.len().min(request.bytes as usize);
        copy::to_grant(to, request.grant, 0, &shown[..bytes])?;
        Ok(bytes as u64)
    }

    fn show_descriptors(&self, to: Endpoint, request: &vfs::Descriptors) -> Result<u64, Errno> {
        let process = self.processes.get(request.process)?;
        let table = process.files();
        let descriptors = table.descriptors();
        let numbers = descriptors.iter().map(|(number, _)| number as u32);
        let bytes: Vec<u8> = numbers
            .filter(|number| *number as u64 >= request.first)
            .take(request.bytes as usize / 4)
            .flat_map(u32::to_le_bytes)
            .collect();
        copy::to_grant(to, request.grant, 0, &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Root and working directory of a program that has none yet.
    pub fn give_root(&self, process: &Process) -> Result<(), Errno> {
        if process.directories().is_ok() {
            return Ok(());
        }
        let place = Place { node: self.base.files.mounts.root()?, path: Rc::from(&b"/"[..]) };
        process.set_directories(Directories::new(&self.base.store, place.clone(), place, 0o022)?);
        Ok(())
    }

    /// Reports the result of an exec.
    pub fn report_exec(&self, process: Endpoint, [a, b, c, d]: [u64; 4]) {
        self.base.notices.put(notices::Notice { kind: vfs::EVENT_EXEC, process, a, b, c, d, saved: None });
    }
}

fn is_pm(message: &Message) -> bool {
    message.source.slot() == slot::PM
}
