//! The fake world: threads with registers and a stretch of memory, a clock that tests move, and a record of what pm did.

use crate::pm::Pm;
use crate::state::random::Random;
use crate::system::{End, FileEvent, MemoryUse, NewMemory, System, ThreadUse};
use abi::endpoint::slot;
use abi::info::state;
use abi::registers::Registers;
use abi::{Endpoint, Errno, GrantId, Message, kernel, pm, vfs, vm};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// Every program has its memory here.
pub const MEMORY: std::ops::Range<u64> = 0x10000..0x40000;
/// Registers at a program's start.
pub const START: u64 = 0x401000;

type Result<T> = core::result::Result<T, Errno>;

pub struct FakeThread {
    pub memory: Rc<RefCell<Vec<u8>>>,
    pub registers: Registers,
    pub runs: bool,
    pub interrupted: bool,
    pub blocked_on: Endpoint,
    pub state: u32,
    pub run_ns: u64,
    /// It waits in a call of pm.
    pub waits: bool,
    /// pm has died, and the thread is about to ask again: an answer does not reach it.
    pub asks_again: bool,
}

/// What pm is connected to.
#[derive(Default)]
pub struct Fake {
    pub threads: BTreeMap<u32, FakeThread>,
    pub slots: usize,
    pub replies: Vec<(Endpoint, Result<u64>)>,
    pub now_ns: u64,
    pub real_offset_ns: u64,
    pub alarm: Option<u64>,
    pub alarm_queue: u64,
    pub printed: String,
    pub ended: Option<End>,
    pub cancelled: Vec<(Endpoint, Errno)>,
    pub file_events: VecDeque<FileEvent>,
    pub terminal_events: VecDeque<(u64, u64)>,
    pub sessions_ended: Vec<u32>,
    pub exec_paths: Vec<String>,
    pub exec_text: Vec<u8>,
    pub queues: Vec<(Endpoint, u64)>,
    pub futexes_woken: Vec<(Endpoint, u64)>,
    pub ids: Vec<(Endpoint, u64)>,
    pub synced: bool,
    pub granted: Vec<u8>,
    /// pm dies when it asks for this many things more.
    pub dies_in: Option<u64>,
    pub deaths: u64,
    /// The event that was fetched last: a successor gets it again.
    pub last_event: Option<FileEvent>,
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
        if self.threads.len() >= 1000 {
            return Err(Errno::EAGAIN);
        }
        let registers = match self.threads.get(&parent.0) {
            Some(parent) => Registers { rax: 0, ..parent.registers },
            None => Registers::ZERO,
        };
        let taken: Vec<usize> = self.threads.keys().map(|key| Endpoint(*key).slot()).collect();
        self.slots += 1;
        while taken.contains(&(128 + self.slots % 1024)) {
            self.slots += 1;
        }
        let (slot, generation) = (128 + self.slots % 1024, 1 + self.slots / 1024);
        let endpoint = Endpoint::new(slot, generation as u32);
        let thread = FakeThread {
            memory: fresh_memory(),
            registers,
            runs: false,
            interrupted: false,
            blocked_on: Endpoint::NONE,
            state: state::READY,
            run_ns: 0,
            waits: false,
            asks_again: false,
        };
        self.threads.insert(endpoint.0, thread);
        Ok(endpoint)
    }
    fn destroy(&mut self, thread: Endpoint) {
        self.enter();
        let was_there = self.threads.remove(&thread.0).is_some();
        assert!(was_there || self.deaths > 0, "destroyed twice");
    }
    fn start(&mut self, thread: Endpoint, _tid: u32) {
        self.enter();
        if let Ok(thread) = self.known(thread) {
            thread.runs = true;
        }
    }
    fn thread_at(&mut self, slot: usize) -> Option<Endpoint> {
        self.threads.keys().map(|key| Endpoint(*key)).find(|thread| thread.slot() == slot)
    }
    fn stop(&mut self, thread: Endpoint) {
        self.enter();
        if let Ok(thread) = self.known(thread) {
            thread.runs = false;
        }
    }
    fn registers(&mut self, thread: Endpoint, registers: &mut Registers) -> Result<()> {
        *registers = self.known(thread)?.registers;
        Ok(())
    }
    fn set_registers(&mut self, thread: Endpoint, registers: &Registers, resume: bool) -> Result<()> {
        self.enter();
        let entry = self.known(thread)?;
        entry.registers = Registers { linux_call: u64::MAX, ..*registers };
        if resume {
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
    fn schedule(&mut self, thread: Endpoint, queue: u64, _quantum_us: u64) {
        self.queues.push((thread, queue));
    }
    fn wake_futex(&mut self, thread: Endpoint, address: u64) {
        self.futexes_woken.push((thread, address));
    }
    fn read(&mut self, thread: Endpoint, address: u64, buffer: &mut [u8]) -> Result<()> {
        let range = range(address, buffer.len())?;
        buffer.copy_from_slice(&self.known(thread)?.memory.borrow()[range]);
        Ok(())
    }
    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<()> {
        let range = range(address, bytes.len())?;
        self.known(thread)?.memory.borrow_mut()[range].copy_from_slice(bytes);
        Ok(())
    }
    fn time_ns(&mut self) -> (u64, u64) {
        (self.now_ns, self.now_ns + self.real_offset_ns)
    }
    fn set_real_time_ns(&mut self, since_1970_ns: u64) -> Result<()> {
        self.real_offset_ns = since_1970_ns - self.now_ns;
        Ok(())
    }
    fn set_alarm(&mut self, deadline_ns: Option<u64>, queue: u64) {
        (self.alarm, self.alarm_queue) = (deadline_ns, queue);
    }
    fn thread_use(&mut self, thread: Endpoint) -> ThreadUse {
        self.threads.get(&thread.0).map_or(ThreadUse::default(), |t| ThreadUse {
            run_ns: t.run_ns,
            state: t.state,
            queue: 8,
        })
    }
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize {
        buffer[..3].copy_from_slice(b"log");
        3
    }
    fn print(&mut self, text: &str) {
        self.printed.push_str(text);
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
    fn write_grant(&mut self, _: Endpoint, _: GrantId, bytes: &[u8]) -> Result<u64> {
        self.granted = bytes.to_vec();
        Ok(bytes.len() as u64)
    }
    fn vm_fork(&mut self, parent: Endpoint, child: Endpoint, share: bool) -> Result<()> {
        self.enter();
        if parent != Endpoint::NONE {
            let memory = self.thread(parent).memory.clone();
            let copy = memory.borrow().clone();
            self.thread(child).memory = if share { memory } else { Rc::new(RefCell::new(copy)) };
        }
        Ok(())
    }
    fn vm_exit(&mut self, _: Endpoint) {
        self.enter();
    }
    fn vm_exec(&mut self, request: vm::Exec) -> Result<NewMemory> {
        self.enter();
        if request.image == 666 {
            return Err(Errno::ENOEXEC);
        }
        self.thread(request.process).memory = fresh_memory();
        Ok(NewMemory { start: START, entry: START, stack_end: MEMORY.end, ..NewMemory::default() })
    }
    fn memory(&mut self) -> MemoryUse {
        MemoryUse { total: 1 << 28, free: 1 << 27 }
    }
    fn vfs_fork(&mut self, _: Endpoint, _: Endpoint, _: u32, _: u64) -> Result<()> {
        self.enter();
        Ok(())
    }
    fn vfs_exit(&mut self, _: Endpoint) {
        self.enter();
    }
    fn vfs_exec(&mut self, _: Endpoint, path: &[u8]) -> Result<()> {
        self.enter();
        self.exec_paths.push(String::from_utf8_lossy(path).into_owned());
        Ok(())
    }
    fn vfs_exec_commit(&mut self, _: Endpoint) {
        self.enter();
    }
    fn vfs_exec_text(&mut self, _: Endpoint, buffer: &mut [u8]) -> Result<usize> {
        self.enter();
        buffer[..self.exec_text.len()].copy_from_slice(&self.exec_text);
        Ok(self.exec_text.len())
    }
    fn vfs_cancel(&mut self, thread: Endpoint, error: Errno) -> Result<()> {
        self.enter();
        self.cancelled.push((thread, error));
        if self.thread(thread).state == state::SENDING { Err(Errno::ENOENT) } else { Ok(()) }
    }
    fn vfs_set_ids(&mut self, thread: Endpoint, effective: u64, _: u64, _: &[u32]) {
        self.ids.push((thread, effective));
    }
    fn vfs_set_session(&mut self, _: Endpoint, _: u32, _: u32, _: bool) {}
    fn vfs_next_event(&mut self) -> Option<FileEvent> {
        self.enter();
        self.last_event = self.file_events.pop_front();
        self.last_event
    }
    fn vfs_sync_all(&mut self, _: bool) -> Result<()> {
        self.synced = true;
        Ok(())
    }
    fn tty_next_event(&mut self) -> Option<(u64, u64)> {
        self.terminal_events.pop_front()
    }
    fn tty_session_end(&mut self, session: u32) {
        self.enter();
        self.sessions_ended.push(session);
    }
}

/// pm and the programs under it.
pub struct World {
    pub pm: Pm<Fake>,
    pub init: Endpoint,
}

impl World {
    /// A system whose first program runs.
    pub fn new() -> World {
        let mut pm = Pm::new(Fake::default(), Random::new([1; 32]));
        let boot = Message { source: Endpoint::RS, ..pm::Boot {}.message() };
        assert_eq!(pm.handle(&boot).done().unwrap().result(), Ok(0));
        let init = Endpoint(*pm.programs.system.threads.keys().next().unwrap());
        let mut world = World { pm, init };
        world.exec_event(init, b"/sbin/init", 0);
        assert!(world.pm.programs.system.thread(init).runs);
        world
    }

    /// vfs has loaded what `thread` wants to exec.
    pub fn exec_event(&mut self, thread: Endpoint, text: &[u8], flags: u64) {
        self.pm.programs.system.exec_text = text.to_vec();
        self.file_event(vfs::EVENT_EXEC, thread, [5, 0, flags, 0]);
    }

    pub fn file_event(&mut self, kind: u64, process: Endpoint, values: [u64; 4]) {
        self.pm.programs.system.file_events.push_back(FileEvent { kind, process, values });
        self.pm.handle_notification(Endpoint::current(slot::VFS));
    }

    pub fn terminal_event(&mut self, signal: u64, group: u64) {
        self.pm.programs.system.terminal_events.push_back((signal, group));
        self.pm.handle_notification(Endpoint::current(slot::TTY));
    }

    /// Makes a Linux call. → its result if it came at once, by message or by a later reply; `None`: the caller waits, is gone, or runs on.
    pub fn call(&mut self, thread: Endpoint, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        let entry = self.pm.programs.system.thread(thread);
        entry.waits = true;
        entry.registers.linux_call = number as u64;
        let mut message = Message { source: thread, ..Message::new(number) };
        message.words[..arguments.len()].copy_from_slice(arguments);
        let before = self.pm.programs.system.replies.len();
        if let Some(reply) = self.pm.handle(&message).done() {
            self.pm.programs.system.thread(thread).waits = false;
            return Some(reply.result());
        }
        let late = self.pm.programs.system.replies[before..].iter().find(|(to, _)| *to == thread);
        late.map(|(_, result)| *result)
    }

    /// The answer that `thread` got since it last waited, taken out of the record.
    pub fn answer(&mut self, thread: Endpoint) -> Option<Result<u64>> {
        let at = self.pm.programs.system.replies.iter().position(|(to, _)| *to == thread)?;
        Some(self.pm.programs.system.replies.remove(at).1)
    }

    /// Forks. → pid and endpoint of the child.
    pub fn fork(&mut self, parent: Endpoint) -> (u64, Endpoint) {
        let pid = self.call(parent, abi::linux::nr::FORK, &[]).unwrap().unwrap();
        (pid, self.newest())
    }

    /// The thread that was made last.
    pub fn newest(&self) -> Endpoint {
        let slots = self.pm.programs.system.slots;
        Endpoint::new(128 + slots % 1024, (1 + slots / 1024) as u32)
    }

    pub fn is_there(&self, thread: Endpoint) -> bool {
        self.pm.programs.system.threads.contains_key(&thread.0)
    }

    /// The kernel lets an interrupted thread report itself. `call`: the Linux call that has just ended with `rax`.
    pub fn report_interrupted(&mut self, thread: Endpoint, ended: Option<(u32, Result<u64>)>) -> Option<Result<u64>> {
        let entry = self.pm.programs.system.thread(thread);
        assert!(std::mem::take(&mut entry.interrupted), "nobody has interrupted {thread:?}");
        entry.waits = true;
        entry.blocked_on = Endpoint::NONE;
        if let Some((call, result)) = ended {
            entry.registers.linux_call = call as u64;
            entry.registers.rax = abi::Word::to_word(result);
        }
        let message = Message { source: thread, ..kernel::Interrupted {}.message() };
        self.pm.handle(&message).done().map(|reply| reply.result())
    }

    pub fn write(&mut self, thread: Endpoint, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.pm.programs.system.write(thread, address, &bytes).unwrap();
    }

    pub fn read(&mut self, thread: Endpoint, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.pm.programs.system.read(thread, address, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Sets a handler with these flags (SA_RESTORER is added).
    pub fn handle_signal(&mut self, thread: Endpoint, signal: u64, flags: u64) {
        self.write(thread, MEMORY.start, &[0xaaaa, flags | crate::state::signal::action::RESTORER, 0xbbbb, 0]);
        let set = self.call(thread, abi::linux::nr::RT_SIGACTION, &[signal, MEMORY.start, 0, 8]);
        assert_eq!(set, Some(Ok(0)));
        self.pm.programs.system.thread(thread).registers.rsp = MEMORY.end - 64;
    }

    pub fn set_time(&mut self, now_ns: u64) {
        self.pm.programs.system.now_ns = now_ns;
        if self.pm.programs.system.alarm.is_some_and(|alarm| alarm <= now_ns) {
            self.pm.programs.system.alarm = None;
            self.pm.handle_notification(Endpoint::CLOCK);
        }
    }
}
