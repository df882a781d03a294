//! What pm and procfs ask (`abi::vfs`): lives of processes, signals, ids, and what /proc shows. Answered at once, but for events.

use crate::{
    descriptors::Descriptors,
    event::Event,
    events,
    file::OpenFile,
    path,
    permission::Credentials,
    process::{Call, Directories, FileTable, Place, Process},
    state::Vfs,
};
use abi::{Endpoint, Errno, Message, endpoint::slot, vfs, vfs::Request};
use alloc::{rc::Rc, string::String, vec, vec::Vec};
use core::cell::{Cell, RefCell};
use sys::copy;

/// Most supplementary groups (NGROUPS_MAX).
const GROUPS_MAX: u64 = 65536;

impl Vfs {
    /// A descriptor table with a number of its own.
    pub fn new_table(&self, descriptors: Descriptors<OpenFile>) -> Rc<FileTable> {
        Rc::new(FileTable { number: self.closing.next_number(), descriptors: RefCell::new(descriptors) })
    }

    /// Answers a request of a service.
    pub fn service_request(&'static self, message: &Message) -> Message {
        let Some(request) = Request::decode(message) else { return message.reply(Err(Errno::ENOSYS)) };
        let result = match request {
            Request::NextEvent(_) if is_pm(message) => return self.events.next(message),
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
                process.session.set(request.session);
                process.group.set(request.group);
            }
            Request::SyncAll(request) => {
                self.runtime.spawn(async move {
                    let result = self.sync_all(request.unmount).await;
                    self.events.synced(result);
                });
            }
            _ => return Err(Errno::ENOSYS),
        }
        Ok(0)
    }

    fn fork(&self, request: &vfs::Fork) -> Result<(), Errno> {
        if !request.child.is_application() {
            return Err(Errno::EINVAL);
        }
        let child = if request.parent == Endpoint::NONE {
            self.first_process(request)
        } else {
            let parent = self.processes.get(request.parent)?;
            self.child_process(&parent, request)
        };
        if let Some(old) = self.processes.insert(Rc::new(child))? {
            self.end(&old);
        }
        Ok(())
    }

    fn first_process(&self, request: &vfs::Fork) -> Process {
        Process {
            endpoint: request.child,
            pid: request.pid as u32,
            files: RefCell::new(self.new_table(Descriptors::default())),
            directories: RefCell::new(None),
            credentials: RefCell::new(Rc::new(Credentials::default())),
            session: Cell::new(0),
            group: Cell::new(0),
            call: RefCell::new(Call::None),
            event: Rc::new(Event::default()),
            cancelled: Cell::new(None),
            gone: Cell::new(false),
            exec_text: RefCell::default(),
            exec_images: RefCell::default(),
            first: Cell::new(true),
        }
    }

    fn child_process(&self, parent: &Process, request: &vfs::Fork) -> Process {
        let files = parent.files.borrow().clone();
        let files = if request.flags & vfs::FORK_FILES != 0 {
            files
        } else {
            let copied = files.descriptors.borrow().clone();
            self.new_table(copied)
        };
        let directories = parent.directories.borrow().clone();
        let directories = if request.flags & vfs::FORK_FS != 0 {
            directories
        } else {
            directories.map(|shared| Rc::new(Directories::clone(&shared)))
        };
        let mut child = self.first_process(request);
        child.files = RefCell::new(files);
        child.directories = RefCell::new(directories);
        child.credentials = parent.credentials.clone();
        child.session = parent.session.clone();
        child.group = parent.group.clone();
        child.first = parent.first.clone();
        child
    }

    fn exit(&self, endpoint: Endpoint) -> Result<(), Errno> {
        let process = self.processes.remove(endpoint)?;
        self.end(&process);
        Ok(())
    }

    /// Ends what a thread is in, and gives up what nobody shares with it.
    fn end(&self, process: &Rc<Process>) {
        process.gone.set(true);
        let call = process.call.replace(Call::None);
        match call {
            Call::Pipe(pipe) => drop(pipe.cancel(process.endpoint)),
            Call::Waiting => self.interrupt(process, Errno::EINTR),
            Call::None | Call::Signalled(_) => {}
        }
        self.events.forget(process.endpoint);
        self.close_images(process);
        let table = process.files.borrow().clone();
        if !self.is_shared(&table) {
            let removed = table.descriptors.borrow_mut().remove_range(0, usize::MAX);
            removed.iter().for_each(|file| self.release_records(&table, file));
        }
        process.directories.replace(None);
    }

    /// Whether a thread besides the one that has just ended uses this table.
    fn is_shared(&self, table: &Rc<FileTable>) -> bool {
        // Two: the ended thread's and the caller's. More may also be handlers under way.
        Rc::strong_count(table) > 2 && self.processes.all().iter().any(|other| Rc::ptr_eq(&other.files.borrow(), table))
    }

    fn interrupt(&self, process: &Process, error: Errno) {
        process.cancelled.set(Some(error));
        process.event.fire();
    }

    fn cancel(&self, endpoint: Endpoint, error: Errno) -> Result<(), Errno> {
        let process = self.processes.get(endpoint)?;
        let call = process.call.replace(Call::None);
        match call {
            Call::None => return Err(Errno::ENOENT),
            Call::Waiting => {
                process.call.replace(Call::Waiting);
                self.interrupt(&process, error);
            }
            Call::Pipe(pipe) => {
                let moved = pipe.cancel(endpoint).unwrap_or(0);
                self.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) });
            }
            Call::Signalled(moved) => self.answer(endpoint, if moved > 0 { Ok(moved) } else { Err(error) }),
        }
        Ok(())
    }

    fn commit_exec(&self, endpoint: Endpoint) -> Result<(), Errno> {
        let process = self.processes.get(endpoint)?;
        self.close_images(&process);
        self.unshare_files(&process);
        let shared = process.directories()?;
        // Two: the process' own and ours.
        if Rc::strong_count(&shared) > 2 {
            process.directories.replace(Some(Rc::new(Directories::clone(&shared))));
        }
        let table = process.files.borrow().clone();
        let removed = table.descriptors.borrow_mut().remove_close_on_exec();
        removed.iter().for_each(|file| self.release_records(&table, file));
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
        process.credentials.replace(Rc::new(credentials));
        Ok(())
    }

    fn show_mounts(&self, to: Endpoint, request: &vfs::Mounts) -> Result<u64, Errno> {
        let text: String = self.mounts.borrow().iter().map(|mount| mount.line()).collect();
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
            WORKING => process.directories()?.working.borrow().path.to_vec(),
            ROOT => process.directories()?.root.borrow().path.to_vec(),
            descriptor => process.file(descriptor as i32)?.path.borrow().clone(),
        };
        let root = process.directories()?.root.borrow().path.clone();
        let shown = if request.what == ROOT { &full } else { path::below(&full, &root).unwrap_or(&full) };
        let bytes = shown.len().min(request.bytes as usize);
        copy::to_grant(to, request.grant, 0, &shown[..bytes])?;
        Ok(bytes as u64)
    }

    fn show_descriptors(&self, to: Endpoint, request: &vfs::Descriptors) -> Result<u64, Errno> {
        let process = self.processes.get(request.process)?;
        let table = process.files.borrow().clone();
        let descriptors = table.descriptors.borrow();
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
        if process.directories.borrow().is_some() {
            return Ok(());
        }
        let root = self.mounts.borrow().first().and_then(|mount| mount.root.borrow().clone()).ok_or(Errno::ENOENT)?;
        let place = Place { node: root, path: Rc::from(&b"/"[..]) };
        let directories =
            Directories { root: RefCell::new(place.clone()), working: RefCell::new(place), umask: Cell::new(0o022) };
        process.directories.replace(Some(Rc::new(directories)));
        Ok(())
    }

    /// Reports the result of an exec.
    pub fn report_exec(&self, process: Endpoint, a: u64, b: u64, c: u64, d: u64) {
        self.events.put(events::Event { kind: vfs::EVENT_EXEC, process, a, b, c, d });
    }
}

fn is_pm(message: &Message) -> bool {
    message.source.slot() == slot::PM
}
