//! What pm is connected to in tests: threads with registers and a stretch of memory, a clock that tests move, and a record of what pm
//! asked for. `world` drives pm on top of it. The file is long because `System` has a method for all that pm asks of others.

use crate::system::{
    End, FileEvent, FileIds, FileLimits, Footprint, Identity, MemoryLimits, MemoryUse, NewMemory, ProgramName,
    Requester, SegmentUse, System, TerminalEvent, ThreadUse,
};
use abi::endpoint::slot;
use abi::info::state;
use abi::registers::Registers;
use abi::{Endpoint, Errno, GrantId, Parts, vm};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// Every program has its memory here.
pub const MEMORY: std::ops::Range<u64> = 0x10000..0x40000;
/// Registers at a program's start.
pub const START: u64 = 0x401000;
/// Where `NewMemory` has the program's entry, its headers and its interpreter.
pub const ENTRY: u64 = 0x402000;
pub const HEADERS: (u64, u64) = (0x403000, 7);
pub const INTERPRETER: u64 = 0x404000;
/// Threads that the kernel has room for, and their first slot.
pub const MAX_THREADS: usize = abi::endpoint::SLOTS - FIRST_SLOT;
const FIRST_SLOT: usize = abi::endpoint::SERVICE_SLOTS;
/// The kernel's log.
pub const LOG: &[u8] = b"first line\nlast line\n";

type Result<T> = core::result::Result<T, Errno>;

pub struct FakeThread {
    pub memory: Rc<RefCell<Vec<u8>>>,
    pub registers: Registers,
    pub runs: bool,
    pub interrupted: bool,
    pub blocked_on: Endpoint,
    pub state: u32,
    pub run_ns: u64,
    pub messages: u64,
    pub waited: u64,
    pub footprint: Footprint,
    pub queue: u32,
    /// It waits in a call of pm.
    pub waits: bool,
    /// How pm let it run last (`abi::call::resume`).
    pub resumed: u64,
    /// pm has died, and the thread is about to ask again: an answer does not reach it.
    pub asks_again: bool,
}

/// Where vm attaches every segment.
pub const ATTACHED: u64 = 0x7000_0000;

/// A System V segment as vm has it: whether pm has it, and who has attached it, by which call.
pub struct FakeSegment {
    is_held: bool,
    attaches: Vec<(Endpoint, u64)>,
}

/// Something that pm told the kernel or another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Parts { thread: Endpoint, parts: Parts, unshared: u64 },
    IdMap { thread: Endpoint, users: u64, groups: u64 },
    Container { thread: Endpoint, container: u8, pages: u64 },
    LimitedFiles { container: u8, files: u64, pipes: u64 },
    Started { thread: Endpoint, tid: u32 },
    Stopped(Endpoint),
    MemoryLimits { thread: Endpoint, limits: MemoryLimits },
    Destroyed(Endpoint),
    Notified(Endpoint),
    Ends(Endpoint),
    Scheduled { thread: Endpoint, queue: u64, quantum_us: u64 },
    Memory { parent: Endpoint, child: Endpoint, share: bool },
    MemoryEnded(Endpoint),
    NewMemory { process: Endpoint, image: u64, interpreter: u64, stack_bytes: u64 },
    Files { parent: Endpoint, child: Endpoint, pid: u32, flags: u64 },
    PidFd { to: Requester, identity: Identity, flags: u64, address: u64 },
    Copied { to: Requester, from: Endpoint, descriptor: i32 },
    Compared { what: u64, first: Endpoint, second: Endpoint, descriptors: [u64; 3] },
    FilesEnded(Endpoint),
    Committed(Endpoint),
    Unmasked(Endpoint),
    SignalsPending(Endpoint),
    Ids { thread: Endpoint, effective: u64, real: u64, groups: Vec<u32> },
    Limits { thread: Endpoint, descriptors: u64, file_bytes: u64, message_bytes: u64 },
    Session { thread: Endpoint, session: u32, group: u32, leader: bool },
    Granted { granter: Endpoint, grant: GrantId },
    Synced { unmount: bool },
    Poked { thread: Endpoint, address: u64, bytes: Vec<u8> },
}

/// Requests that a test can let fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    MemoryFork,
    FilesFork,
    PidFd,
    BeginExec,
    Exec,
    ExecText,
    SyncAll,
}

/// What pm is connected to.
#[derive(Default)]
pub struct Fake {
    pub threads: BTreeMap<u32, FakeThread>,
    pub slots: usize,
    pub replies: Vec<(Endpoint, Result<u64>)>,
    pub now_ns: u64,
    pub real_offset_ns: u64,
    /// Programs are not to trust the wall clock.
    pub is_setting_clock: bool,
    /// How long services have run.
    pub services_ns: u64,
    /// Whose calls vfs works on.
    pub worked_for: Vec<Endpoint>,
    pub alarm: Option<u64>,
    pub alarm_queue: u64,
    pub printed: String,
    pub ended: Option<End>,
    pub cancelled: Vec<(Endpoint, Errno)>,
    /// m3ipc does not wait for a message.
    pub m3ipc_is_busy: bool,
    /// vfs receives what threads send it as soon as it has answered pm.
    pub vfs_is_late: bool,
    pub file_events: VecDeque<(u64, Endpoint, [u64; 4])>,
    /// How many there were before the first of them.
    pub file_events_gone: u64,
    pub terminal_events: VecDeque<(u64, u64)>,
    /// How many there were before the first of them.
    pub terminal_events_gone: u64,
    /// Pids of which tty was told that there is no such process.
    pub processes_gone: Vec<u32>,
    /// Verdicts about processes in the background.
    pub judged: Vec<(u32, bool)>,
    pub sessions_ended: Vec<u32>,
    pub exec_paths: Vec<String>,
    pub exec_text: Vec<u8>,
    /// Directory and flags of the last exec.
    pub exec_from: (i32, u64),
    pub futexes_woken: Vec<(Endpoint, u64)>,
    /// What the kernel answers by itself.
    pub kept: Vec<(Endpoint, u32, u64)>,
    pub granted: Vec<u8>,
    /// Segments that vm has, by their number.
    pub segments: BTreeMap<u64, FakeSegment>,
    /// The last request to attach one.
    pub attached: Option<vm::SegmentAttach>,
    /// What pm told the kernel and the other servers, until a test takes it out.
    pub told: Vec<Told>,
    /// What vfs was told last of who a thread is.
    pub file_ids: std::collections::BTreeMap<u32, FileIds>,
    /// The request that fails, and how.
    pub failing: Option<(Request, Errno)>,
    /// pm dies when it asks for this many things more.
    pub dies_in: Option<u64>,
    pub deaths: u64,
    pub deaths_of_vfs: u32,
    /// Descriptors for processes, whoever has them.
    pub pidfds: Vec<(Requester, Identity, u64)>,
    /// Descriptors of directories /proc/PID, whoever has them.
    pub process_folders: Vec<(i32, u32)>,
    /// Whose memory was freed last, and what it had used.
    pub memory_ended: Option<(Endpoint, Footprint)>,
}

impl Fake {
    /// pm asks for something, which may be the last thing it does.
    fn enter(&mut self) {
        if let Some(left) = &mut self.dies_in {
            *left -= 1;
            if *left == 0 {
                self.dies_in = None;
                self.deaths += 1;
                std::panic::resume_unwind(Box::new("pm dies"));
            }
        }
    }

    /// A process has no System V segment attached any more.
    pub fn detach(&mut self, process: Endpoint) {
        self.segments.values_mut().for_each(|segment| segment.attaches.retain(|(known, _)| *known != process));
        self.drop_free_segments();
    }

    fn drop_free_segments(&mut self) {
        self.segments.retain(|_, segment| segment.is_held || !segment.attaches.is_empty());
    }

    fn tell(&mut self, told: Told) {
        self.enter();
        self.told.push(told);
    }

    /// The thread that was made last.
    pub fn newest(&self) -> Endpoint {
        Endpoint::new(FIRST_SLOT + self.slots % MAX_THREADS, (1 + self.slots / MAX_THREADS) as u32)
    }

    /// Reads what a program reads itself.
    pub fn get(&mut self, thread: Endpoint, address: u64, buffer: &mut [u8]) -> Result<()> {
        let range = range(address, buffer.len())?;
        buffer.copy_from_slice(&self.known(thread)?.memory.borrow()[range]);
        Ok(())
    }

    /// Writes what a program writes itself.
    pub fn put(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<()> {
        let range = range(address, bytes.len())?;
        self.known(thread)?.memory.borrow_mut()[range].copy_from_slice(bytes);
        Ok(())
    }

    /// Fails as the test wants.
    fn try_request(&self, request: Request) -> Result<()> {
        match self.failing {
            Some((failing, error)) if failing == request => Err(error),
            _ => Ok(()),
        }
    }

    pub fn thread(&mut self, endpoint: Endpoint) -> &mut FakeThread {
        self.threads.get_mut(&endpoint.0).expect("no such thread")
    }

    fn known(&mut self, endpoint: Endpoint) -> Result<&mut FakeThread> {
        self.threads.get_mut(&endpoint.0).ok_or(Errno::EDEADSRCDST)
    }
}

fn range(address: u64, bytes: usize) -> Result<std::ops::Range<usize>> {
    let end = address.checked_add(bytes as u64).ok_or(Errno::EFAULT)?;
    if address < MEMORY.start || end > MEMORY.end {
        return Err(Errno::EFAULT);
    }
    let start = (address - MEMORY.start) as usize;
    Ok(start..start + bytes)
}

fn fresh_memory() -> Rc<RefCell<Vec<u8>>> {
    Rc::new(RefCell::new(vec![0; (MEMORY.end - MEMORY.start) as usize]))
}

impl System for Fake {
    fn fork(&mut self, parent: Endpoint) -> Result<Endpoint> {
        self.enter();
        if self.threads.len() >= MAX_THREADS {
            return Err(Errno::EAGAIN);
        }
        let registers = match self.threads.get(&parent.0) {
            Some(parent) => Registers { rax: 0, ..parent.registers },
            None => Registers::ZERO,
        };
        let taken: Vec<usize> = self.threads.keys().map(|key| Endpoint(*key).slot()).collect();
        self.slots += 1;
        while taken.contains(&self.newest().slot()) {
            self.slots += 1;
        }
        let endpoint = self.newest();
        let thread = FakeThread {
            memory: fresh_memory(),
            registers,
            runs: false,
            interrupted: false,
            blocked_on: Endpoint::NONE,
            state: state::READY,
            run_ns: 0,
            messages: 0,
            waited: 0,
            footprint: Footprint::default(),
            queue: 8,
            waits: false,
            resumed: 0,
            asks_again: false,
        };
        self.threads.insert(endpoint.0, thread);
        Ok(endpoint)
    }
    fn destroy(&mut self, thread: Endpoint) {
        self.enter();
        let was_there = self.threads.remove(&thread.0).is_some();
        assert!(was_there || self.deaths > 0, "destroyed twice");
        self.tell(Told::Destroyed(thread));
    }
    fn start(&mut self, thread: Endpoint, tid: u32) {
        self.enter();
        self.tell(Told::Started { thread, tid });
        if let Ok(thread) = self.known(thread) {
            thread.runs = true;
        }
    }
    fn thread_at(&mut self, slot: usize) -> Option<Endpoint> {
        match slot {
            slot::PM => return Some(Endpoint::new(slot, 1 + self.deaths as u32)),
            slot::VFS => return Some(Endpoint::new(slot, 1 + self.deaths_of_vfs)),
            _ => {}
        }
        self.threads.keys().map(|key| Endpoint(*key)).find(|thread| thread.slot() == slot)
    }
    fn stop(&mut self, thread: Endpoint) {
        self.enter();
        self.tell(Told::Stopped(thread));
        if let Ok(thread) = self.known(thread) {
            thread.runs = false;
        }
    }
    fn registers(&mut self, thread: Endpoint, registers: &mut Registers) -> Result<()> {
        *registers = self.known(thread)?.registers;
        Ok(())
    }
    fn set_registers(&mut self, thread: Endpoint, registers: &Registers, resume: u64) -> Result<()> {
        self.enter();
        let entry = self.known(thread)?;
        entry.registers = Registers { linux_call: u64::MAX, ..*registers };
        if resume & abi::call::resume::READY != 0 {
            entry.resumed = resume;
            entry.runs = true;
            entry.waits = false;
            entry.asks_again = false;
            entry.blocked_on = Endpoint::NONE;
        }
        Ok(())
    }
    fn interrupt(&mut self, thread: Endpoint) -> Result<Endpoint> {
        self.enter();
        let entry = self.known(thread)?;
        entry.interrupted = true;
        Ok(entry.blocked_on)
    }
    fn notify(&mut self, service: Endpoint) {
        self.tell(Told::Notified(service));
    }
    fn m3ipc_ends(&mut self, _: Endpoint, thread: Endpoint) -> bool {
        if !self.m3ipc_is_busy {
            self.tell(Told::Ends(thread));
        }
        !self.m3ipc_is_busy
    }
    fn schedule(&mut self, thread: Endpoint, queue: u64, quantum_us: u64) {
        self.tell(Told::Scheduled { thread, queue, quantum_us });
    }
    fn keep_answer(&mut self, thread: Endpoint, number: u32, answer: u64) {
        self.enter();
        self.kept.retain(|kept| (kept.0, kept.1) != (thread, number));
        self.kept.push((thread, number, answer));
    }
    fn forget_answers(&mut self, thread: Endpoint) {
        self.enter();
        self.kept.retain(|kept| kept.0 != thread);
    }
    fn wake_futex(&mut self, thread: Endpoint, address: u64) {
        self.futexes_woken.push((thread, address));
    }
    fn read(&mut self, thread: Endpoint, address: u64, buffer: &mut [u8]) -> Result<()> {
        self.enter();
        self.get(thread, address, buffer)
    }
    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<()> {
        self.enter();
        self.put(thread, address, bytes)
    }
    fn time_ns(&mut self) -> (u64, u64) {
        (self.now_ns, self.now_ns + self.real_offset_ns)
    }
    fn set_real_time_ns(&mut self, since_1970_ns: u64) -> Result<()> {
        self.is_setting_clock = true;
        self.enter();
        self.real_offset_ns = since_1970_ns - self.now_ns;
        self.enter();
        self.is_setting_clock = false;
        Ok(())
    }
    fn settle_clock(&mut self) {
        self.is_setting_clock = false;
    }
    fn set_alarm(&mut self, deadline_ns: Option<u64>, queue: u64) {
        (self.alarm, self.alarm_queue) = (deadline_ns, queue);
    }
    fn thread_use(&mut self, thread: Endpoint) -> ThreadUse {
        self.threads.get(&thread.0).map_or(ThreadUse::default(), |t| ThreadUse {
            run_ns: t.run_ns,
            messages: t.messages,
            state: t.state,
            blocked_on: t.blocked_on,
            queue: t.queue,
            waits: t.waited,
        })
    }
    fn services_ns(&mut self) -> u64 {
        self.services_ns
    }
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize {
        buffer[..LOG.len()].copy_from_slice(LOG);
        LOG.len()
    }
    fn log(&mut self, text: fmt::Arguments) {
        self.printed += &format!("pm: {text}\n");
    }
    fn shutdown(&mut self, end: End) {
        self.ended = Some(end);
    }
    fn reply(&mut self, thread: Endpoint, result: Result<u64>) {
        self.enter();
        let entry = self.thread(thread);
        if entry.asks_again {
            return;
        }
        assert!(entry.waits, "{thread:?} is answered without waiting");
        entry.waits = false;
        self.replies.push((thread, result));
    }
    fn write_grant(&mut self, granter: Endpoint, grant: GrantId, bytes: &[u8]) -> Result<u64> {
        self.tell(Told::Granted { granter, grant });
        self.granted = bytes.to_vec();
        Ok(bytes.len() as u64)
    }
    fn read_grant(&mut self, _: Endpoint, _: GrantId, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(self.granted.get(..bytes.len()).ok_or(Errno::EFAULT)?);
        Ok(())
    }
    fn vm_fork(&mut self, parent: Endpoint, child: Endpoint, share: bool, _: u32) -> Result<()> {
        self.enter();
        self.try_request(Request::MemoryFork)?;
        self.tell(Told::Memory { parent, child, share });
        if parent != Endpoint::NONE {
            let memory = self.thread(parent).memory.clone();
            let copy = memory.borrow().clone();
            self.thread(child).memory = if share { memory } else { Rc::new(RefCell::new(copy)) };
        }
        Ok(())
    }
    fn vm_exit(&mut self, thread: Endpoint) -> Option<Footprint> {
        self.enter();
        self.detach(thread);
        self.tell(Told::MemoryEnded(thread));
        if self.memory_ended.is_none_or(|(ended, _)| ended != thread) {
            self.memory_ended = self.threads.get(&thread.0).map(|known| (thread, known.footprint));
        }
        self.enter();
        // Like vm, which remembers the last one.
        self.memory_ended.filter(|(ended, _)| *ended == thread).map(|(_, footprint)| footprint)
    }
    fn vm_use(&mut self, thread: Endpoint) -> Footprint {
        self.enter();
        self.threads.get(&thread.0).map_or(Footprint::default(), |known| known.footprint)
    }
    fn vm_exec(&mut self, request: vm::Exec) -> Result<NewMemory> {
        self.enter();
        self.try_request(Request::Exec)?;
        let vm::Exec { process, image, interpreter, stack_bytes, .. } = request;
        self.tell(Told::NewMemory { process, image, interpreter, stack_bytes });
        self.thread(process).memory = fresh_memory();
        let (phdr, phdr_count) = HEADERS;
        let interpreter_base = INTERPRETER;
        Ok(NewMemory { start: START, entry: ENTRY, phdr, phdr_count, interpreter_base, stack_end: MEMORY.end })
    }
    fn vm_attach(&mut self, request: vm::SegmentAttach) -> Result<u64> {
        self.enter();
        if request.flags & vm::ATTACH_MAKE == 0 && !self.segments.contains_key(&request.segment) {
            return Err(Errno::EINVAL);
        }
        let segment =
            self.segments.entry(request.segment).or_insert(FakeSegment { is_held: true, attaches: Vec::new() });
        let attach = (request.process, request.call);
        if request.call == 0 || !segment.attaches.contains(&attach) {
            segment.attaches.push(attach);
        }
        self.attached = Some(request);
        Ok(ATTACHED)
    }
    fn vm_release_segment(&mut self, segment: u32) -> u64 {
        self.enter();
        let number = u64::from(segment);
        let Some(known) = self.segments.get_mut(&number) else { return 0 };
        known.is_held = false;
        self.drop_free_segments();
        self.segments.get(&number).map_or(0, |segment| segment.attaches.len() as u64)
    }
    fn vm_segment(&mut self, segment: u32) -> Option<SegmentUse> {
        let attaches = self.segments.get(&segment.into())?.attaches.len() as u64;
        Some(SegmentUse { attaches, resident_pages: 1, attached_s: 100, detached_s: 200, pid: 77 })
    }
    fn vm_present(&mut self, _: Endpoint, from: u64, end: u64) -> Option<(u64, u64)> {
        let (start, stop) = (from.max(MEMORY.start), end.min(MEMORY.end));
        (start < stop).then_some((start, stop))
    }
    fn vm_poke(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<()> {
        self.enter();
        self.tell(Told::Poked { thread, address, bytes: bytes.to_vec() });
        Ok(())
    }
    fn vm_set_container(&mut self, process: Endpoint, container: u8, pages: u64) -> Result<()> {
        self.told.push(Told::Container { thread: process, container, pages });
        Ok(())
    }

    fn vm_container(&mut self, container: u8) -> u64 {
        u64::from(container) * 10
    }

    fn vfs_limit_container(&mut self, container: u8, files: u64, pipes: u64) -> Result<()> {
        self.told.push(Told::LimitedFiles { container, files, pipes });
        Ok(())
    }

    fn vfs_container(&mut self, container: u8) -> (u64, u64) {
        (container.into(), 1)
    }

    fn vfs_works_for(&mut self, thread: Endpoint) -> bool {
        self.worked_for.contains(&thread)
    }

    fn vm_set_limits(&mut self, thread: Endpoint, limits: MemoryLimits) {
        self.enter();
        self.tell(Told::MemoryLimits { thread, limits });
    }
    fn memory(&mut self) -> MemoryUse {
        MemoryUse { total: 1 << 28, free: 1 << 27 }
    }
    fn vfs_set_parts(&mut self, thread: Endpoint, parts: Parts, unshared: u64) -> Result<()> {
        self.enter();
        self.try_request(Request::FilesFork)?;
        self.tell(Told::Parts { thread, parts, unshared });
        Ok(())
    }
    fn vfs_set_id_map(&mut self, thread: Endpoint, users: u64, groups: u64) {
        self.tell(Told::IdMap { thread, users, groups });
    }
    fn vfs_fork(
        &mut self,
        parent: Endpoint,
        child: Endpoint,
        identity: Identity,
        flags: u64,
        parts: Parts,
    ) -> Result<()> {
        self.enter();
        self.try_request(Request::FilesFork)?;
        if parts != Parts::SYSTEM {
            self.tell(Told::Parts { thread: child, parts, unshared: 0 });
        }
        self.tell(Told::Files { parent, child, pid: identity.pid, flags });
        Ok(())
    }
    fn vfs_open_pidfd(&mut self, to: &Requester, identity: Identity, flags: u64, address: u64) -> Result<u64> {
        self.enter();
        self.try_request(Request::PidFd)?;
        // As vfs: the same descriptor for the same call.
        let known = self.pidfds.iter().position(|(of, ..)| of == to && to.call != 0);
        let descriptor = known.unwrap_or(self.pidfds.len());
        self.pidfds.truncate(descriptor);
        self.pidfds.push((*to, identity, flags));
        if address != 0 {
            self.write(to.thread, address, &(descriptor as u32).to_le_bytes())?;
        }
        self.tell(Told::PidFd { to: *to, identity, flags, address });
        Ok(descriptor as u64)
    }
    fn vfs_pidfd(&mut self, _: Endpoint, descriptor: i32) -> Result<(Identity, bool)> {
        self.enter();
        let (_, identity, flags) = self.pidfds.get(descriptor as usize).ok_or(Errno::EBADF)?;
        Ok((*identity, flags & abi::vfs::PIDFD_NONBLOCK != 0))
    }
    fn vfs_process_folder(&mut self, _: Endpoint, descriptor: i32) -> Result<u32> {
        self.enter();
        let folder = self.process_folders.iter().find(|(known, _)| *known == descriptor);
        folder.map(|(_, pid)| *pid).ok_or(Errno::EBADF)
    }
    fn vfs_copy_descriptor(&mut self, to: &Requester, from: Endpoint, descriptor: i32) -> Result<u64> {
        self.enter();
        self.tell(Told::Copied { to: *to, from, descriptor });
        Ok(70)
    }
    fn vfs_compare(&mut self, request: &abi::vfs::Compare) -> Result<u64> {
        self.enter();
        let abi::vfs::Compare { what, first, descriptor, second, other, nth } = *request;
        self.tell(Told::Compared { what, first, second, descriptors: [descriptor, other, nth] });
        Ok(2)
    }
    fn vfs_exit(&mut self, thread: Endpoint) {
        self.enter();
        self.tell(Told::FilesEnded(thread));
    }
    fn vfs_exec(&mut self, _: Endpoint, program: &ProgramName) -> Result<()> {
        self.enter();
        self.try_request(Request::BeginExec)?;
        self.exec_paths.push(String::from_utf8_lossy(&program.path).into_owned());
        self.exec_from = (program.directory, program.flags);
        Ok(())
    }
    fn vfs_exec_commit(&mut self, thread: Endpoint) {
        self.enter();
        self.tell(Told::Committed(thread));
    }
    fn vfs_exec_text(&mut self, _: Endpoint, buffer: &mut [u8]) -> Result<usize> {
        self.enter();
        self.try_request(Request::ExecText)?;
        // Of a program that is no script tests give the path alone.
        let mut text = self.exec_text.clone();
        if !text.ends_with(b"\0") {
            text.push(0);
            text.extend(self.exec_paths.last().map_or("", String::as_str).bytes().chain([0]));
        }
        buffer[..text.len()].copy_from_slice(&text);
        Ok(text.len())
    }
    fn vfs_cancel(&mut self, thread: Endpoint, error: Errno) -> Result<()> {
        self.enter();
        self.cancelled.push((thread, error));
        if self.thread(thread).state != state::SENDING {
            return Ok(());
        }
        if self.vfs_is_late {
            self.thread(thread).state = state::RECEIVING;
        }
        Err(Errno::ENOENT)
    }
    fn vfs_unmasked(&mut self, thread: Endpoint) {
        self.tell(Told::Unmasked(thread));
    }
    fn vfs_signals_pending(&mut self, thread: Endpoint) {
        self.enter();
        self.tell(Told::SignalsPending(thread));
    }
    fn vfs_set_ids(&mut self, thread: Endpoint, ids: FileIds, groups: &[u32]) {
        let FileIds { effective, real, .. } = ids;
        self.file_ids.insert(thread.0, ids);
        self.tell(Told::Ids { thread, effective, real, groups: groups.to_vec() });
    }
    fn vfs_set_limits(&mut self, thread: Endpoint, limits: FileLimits) {
        let FileLimits { descriptors, file_bytes, message_bytes } = limits;
        self.tell(Told::Limits { thread, descriptors, file_bytes, message_bytes });
    }
    fn vfs_set_session(&mut self, thread: Endpoint, session: u32, group: u32, leader: bool) {
        self.tell(Told::Session { thread, session, group, leader });
    }
    fn vfs_next_event(&mut self, done: u64) -> Option<FileEvent> {
        self.enter();
        if done == self.file_events_gone + 1 {
            self.file_events.pop_front();
            self.file_events_gone += 1;
        }
        let (kind, process, values) = *self.file_events.front()?;
        Some(FileEvent { number: self.file_events_gone + 1, kind, process, values })
    }
    fn vfs_sync_all(&mut self, unmount: bool) -> Result<()> {
        self.try_request(Request::SyncAll)?;
        self.tell(Told::Synced { unmount });
        Ok(())
    }
    fn tty_next_event(&mut self, done: u64) -> Option<TerminalEvent> {
        self.enter();
        if done == self.terminal_events_gone + 1 {
            self.terminal_events.pop_front();
            self.terminal_events_gone += 1;
        }
        let (signal, target) = *self.terminal_events.front()?;
        Some(TerminalEvent { number: self.terminal_events_gone + 1, signal, target })
    }
    fn tty_session_end(&mut self, session: u32) {
        self.enter();
        self.sessions_ended.push(session);
    }
    fn tty_background(&mut self, pid: u32, is_allowed: bool) {
        self.enter();
        self.judged.push((pid, is_allowed));
    }
    fn tty_process_gone(&mut self, pid: u32) {
        self.enter();
        self.processes_gone.push(pid);
    }
}
