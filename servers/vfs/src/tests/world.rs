//! A system that has booted: vfs over a fresh ext2 disk, one program of the superuser, and as many others as a test likes.
//! The file is long because it has a method for everything that a test does.

use super::format::Plan;
use super::services::{Disk, Line, Medium, Memory, Names, PAGE, Proc, Terminal, Vm, take_reports};
use super::{AT_FDCWD, numbers::*};
use abi::endpoint::slot;
use abi::linux::{WITH_WORD, nr};
use abi::message::REPEATED;
use abi::{CapabilitySet, Endpoint, Errno, GrantId, Message, vfs};
use fs::file_system::Timestamp;
use std::cell::Cell;
use std::ops::Range;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard};
use std::vec::Vec;
use sys::host::machine::Machine;
use sys::{Start, StartKind};

pub type Result<T> = core::result::Result<T, Errno>;

/// Every program has its memory here; nothing else is mapped.
pub const MEMORY: Range<u64> = 0x1_0000..0x14_0000;
/// Where the helpers put paths; two of them.
const PATHS: [u64; 2] = [0x1_0000, 0x1_2000];
/// Where they put structures.
const STRUCTURE: u64 = 0x1_4000;
/// Where they put data, up to the end of memory.
pub const DATA: u64 = 0x2_0000;

const PM: Endpoint = Endpoint::new(slot::PM, 1);
/// The service that asks what /proc shows.
pub const PROCFS: Endpoint = Endpoint::new(23, 1);
const EXT2: usize = 20;
const TMPFS: usize = 21;
const DISK: usize = 22;
const PROC: usize = 24;
const LOOP_EXT2: usize = 25;
const ARGUMENTS: &str = "root=ext2,vda dev:vda=block,254,0,660,virtio_blk dev:vdb=block,254,1,660,virtio_blk \
    dev:null=char,1,3,666,vfs dev:zero=char,1,5,666,vfs dev:full=char,1,7,666,vfs dev:tty5=char,4,5,620,tty dev:ptmx=char,5,2,666,tty \
    dev:loop-control=char,10,237,660,vfs dev:loop0=block,7,0,660,vfs dev:loop1=block,7,1,660,vfs";
const DISK_BYTES: u64 = 4 << 20;

/// See the head of the file.
pub struct World {
    pub machine: Machine,
    pub disk: Arc<Mutex<Medium>>,
    line: Arc<Mutex<Line>>,
    memory: Arc<Mutex<Memory>>,
    /// The services of which vfs has told rs that they have stalled.
    pub stalled: Arc<Mutex<Vec<Endpoint>>>,
    /// The service whose restart ds tells next.
    restarted: Arc<Mutex<Option<(&'static str, Endpoint)>>>,
    /// The first program, of the superuser.
    pub root: Endpoint,
    vfs: Cell<Endpoint>,
    programs: Cell<usize>,
    calls: Cell<u64>,
    /// Number of the event that pm has fetched last.
    event_done: Cell<u64>,
}

/// What fstat tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub inode: u64,
    pub links: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub accessed_s: u64,
    pub modified_s: u64,
}

impl World {
    /// With an empty disk.
    pub fn new() -> World {
        let medium = Arc::new(Mutex::new(Medium::new(formatted(DISK_BYTES))));
        let memory = Arc::new(Mutex::new(Memory::default()));
        let line = Arc::new(Mutex::new(Line::default()));
        let mut machine = Machine::default();
        let names = [
            ("ext2", EXT2),
            ("tmpfs", TMPFS),
            ("loop_ext2", LOOP_EXT2),
            ("vfs", slot::VFS),
            ("virtio_blk", DISK),
            ("tty", slot::TTY),
            ("procfs", PROC),
            ("pm", slot::PM),
        ];
        let names = names.map(|(name, slot)| (name, Endpoint::new(slot, 1))).to_vec();
        let stalled = Arc::new(Mutex::new(Vec::new()));
        let shared = stalled.clone();
        machine.start(slot::RS, move |_| take_reports(&shared));
        let restarted = Arc::new(Mutex::new(None));
        let shared = restarted.clone();
        machine.start(slot::DS, |_| server::run(&mut Names(names, shared)));
        let (disk, shared) = (medium.clone(), memory.clone());
        machine.start(DISK, |_| server::run(&mut Disk(disk)));
        machine.start(slot::VM, |_| server::run(&mut Vm(shared)));
        let shared = line.clone();
        machine.start(slot::TTY, |_| server::run(&mut Terminal(shared)));
        machine.start(EXT2, |endpoint| ext2::process::main(start(endpoint, "cache_kib=1024")));
        let vfs = machine.start(slot::VFS, |endpoint| crate::main(start(endpoint, ARGUMENTS)));
        machine.play(PM);
        machine.play(PROCFS);
        machine.run();
        let root = Endpoint::new(199, 1);
        let (vfs, programs, calls) = (Cell::new(vfs), Cell::new(200), Cell::new(1));
        let world = World {
            machine,
            disk: medium,
            line,
            memory,
            stalled,
            restarted,
            root,
            vfs,
            programs,
            calls,
            event_done: Cell::default(),
        };
        world.begin();
        world
    }

    /// The file system of the root.
    pub fn ext2(&self) -> Endpoint {
        Endpoint::new(EXT2, 1)
    }

    /// tmpfs, once it was started.
    pub fn tmpfs(&self) -> Endpoint {
        Endpoint::new(TMPFS, 1)
    }

    /// Starts tmpfs, and makes a directory with a file system of its own.
    pub fn mount_tmpfs(&mut self, directory: &str) {
        self.start_tmpfs();
        self.make_directory(directory, 0o755, (0, 0));
        let (kind, target) = (self.path(self.root, 0, "tmpfs"), self.path(self.root, 1, directory));
        assert_eq!(self.call(self.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
    }

    /// Starts tmpfs too.
    pub fn start_tmpfs(&mut self) {
        self.start_file_system(TMPFS);
    }

    /// Starts tmpfs, or the file system of the root.
    fn start_file_system(&mut self, which: usize) -> Endpoint {
        let started = match which {
            TMPFS => self.machine.start(TMPFS, |endpoint| tmpfs::process::main(start(endpoint, ""))),
            _ => self.machine.start(EXT2, |endpoint| ext2::process::main(start(endpoint, "cache_kib=1024"))),
        };
        self.machine.run();
        started
    }

    /// Starts the file system of loop devices.
    pub fn start_loop_ext2(&mut self) {
        self.machine.start(LOOP_EXT2, |endpoint| ext2::process::main(start(endpoint, "cache_kib=1024")));
        self.machine.run();
    }

    /// The file system of loop devices dies, and its successor finds what it has preserved.
    pub fn restart_loop_ext2(&mut self) {
        self.machine.kill(Endpoint::new(LOOP_EXT2, 1));
        self.machine.start(LOOP_EXT2, |endpoint| ext2::process::main(start(endpoint, "cache_kib=1024")));
        self.machine.run();
    }

    /// The file system of the root has died, and its successor finds what it has preserved.
    pub fn restart_ext2(&mut self) {
        self.restart(EXT2);
    }

    fn restart(&mut self, file_system: usize) {
        let successor = self.start_file_system(file_system);
        let name = if file_system == TMPFS { "tmpfs" } else { "ext2" };
        *self.restarted.lock().expect("ds has not panicked") = Some((name, successor));
        self.machine.notify(Endpoint::new(slot::DS, 1), self.vfs.get());
    }

    /// Starts a file system like that of /proc, with these links, and mounts it there.
    pub fn start_proc(&mut self) -> Arc<Mutex<Vec<(String, String)>>> {
        self.start_proc_with(abi::fs::MOUNTED_VOLATILE)
    }

    /// The same, with what it says of itself when it is mounted.
    pub fn start_proc_with(&mut self, flags: u64) -> Arc<Mutex<Vec<(String, String)>>> {
        let links = Arc::new(Mutex::new(Vec::new()));
        let shared = links.clone();
        self.machine.start(PROC, move |_| server::run(&mut Proc(shared, flags)));
        self.machine.run();
        self.make_directory("/proc", 0o755, (0, 0));
        let (kind, target) = (self.path(self.root, 0, "proc"), self.path(self.root, 1, "/proc"));
        assert_eq!(self.call(self.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
        links
    }

    /// The first program gets its directories with its first exec, though that fails.
    fn begin(&self) {
        self.machine.add_program(self.root, MEMORY);
        let fork =
            vfs::Fork { parent: Endpoint::NONE, child: self.root, identity: 1, flags: 0, parts: abi::Parts::SYSTEM };
        assert_eq!(self.call_as_pm(fork.message()), Ok(0));
        assert_eq!(self.exec(self.root, "/none").0, Err(Errno::ENOENT));
    }

    /// vfs dies, and its successor finds what it has preserved.
    pub fn restart_vfs(&mut self) {
        self.restart_vfs_for(&[]);
    }

    /// The same when it had these calls in progress: they are made again, in this order, as soon as there is a successor.
    pub fn restart_vfs_for(&mut self, in_progress: &[(Endpoint, u32, &[u64])]) {
        self.start_successor();
        for (program, number, arguments) in in_progress {
            self.machine.forget_request(*program);
            let call = self.calls.replace(self.calls.get() + 1);
            self.machine.queue(*program, Endpoint::VFS, &call_message(*number, arguments, call | REPEATED));
        }
        match in_progress {
            [] => self.machine.run(),
            // The successor looks now and then whether all have come.
            _ => self.machine.advance_ns(1_000_000),
        }
        self.announce_successor();
    }

    /// vfs dies if it has not yet, and its successor is about to begin.
    fn start_successor(&mut self) {
        self.machine.kill(self.vfs.get());
        // No two incarnations begin at the same time.
        self.machine.advance_ns(1_000_000);
        self.vfs.set(self.machine.start(slot::VFS, |endpoint| crate::main(start(endpoint, ARGUMENTS))));
    }

    /// Who asked for it hears of the successor.
    fn announce_successor(&self) {
        *self.restarted.lock().expect("ds has not panicked") = Some(("vfs", self.vfs.get()));
        self.machine.notify(Endpoint::new(slot::DS, 1), Endpoint::new(LOOP_EXT2, 1));
    }

    /// What vm has.
    pub fn vm(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("vm has not panicked")
    }

    /// What the terminal has.
    pub fn terminal(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("the terminal has not panicked")
    }

    /// The disk answers nothing until [`World::release_disk`].
    pub fn hold_disk(&self) {
        self.disk.lock().expect("the disk has not panicked").is_held = true;
    }

    /// The disk answers again, and what it has been asked meanwhile.
    pub fn release_disk(&self) {
        self.disk.lock().expect("the disk has not panicked").is_held = false;
        self.machine.notify(PM, Endpoint::new(DISK, 1));
    }

    /// Somebody types a line at the terminal.
    pub fn enter(&self, text: &[u8]) {
        self.terminal().input.push_back(text.to_vec());
        self.machine.notify(PM, Endpoint::TTY);
    }

    /// vm has something for vfs to fetch.
    pub fn notify_from_vm(&self) {
        self.machine.notify(Endpoint::new(slot::VM, 1), Endpoint::VFS);
    }

    /// rs asks whether vfs lives.
    pub fn heartbeat(&self) {
        self.machine.notify(Endpoint::new(slot::RS, 1), Endpoint::VFS);
        self.machine.run();
    }

    /// A request of pm.
    pub fn call_as_pm(&self, request: Message) -> Result<u64> {
        self.ask_as_pm(request).result()
    }

    /// A request of pm, and the whole reply.
    pub fn ask_as_pm(&self, request: Message) -> Message {
        self.machine.run();
        while self.machine.received(PM).is_some() {}
        let mut reply = self.machine.ask(PM, Endpoint::VFS, &request).expect("vfs answers pm at once");
        // Events are notified before the answer.
        while !reply.is_reply() {
            reply = self.machine.received(PM).expect("vfs answers pm at once");
        }
        reply
    }

    /// A request of procfs.
    pub fn call_as_procfs(&self, request: Message) -> Result<u64> {
        self.machine.ask(PROCFS, Endpoint::VFS, &request).expect("vfs answers at once").result()
    }

    /// A signal ends the call of a program.
    pub fn cancel(&self, process: Endpoint, error: Errno) -> Result<u64> {
        self.call_as_pm(vfs::Cancel { process, error: error.0 }.message())
    }

    /// The next event for pm, which has dealt with the one before: kind, process and four values.
    pub fn next_event(&self) -> Option<(u64, Endpoint, [u64; 4])> {
        let reply = self.ask_as_pm(vfs::NextEvent { done: self.event_done.get() }.message());
        self.event_done.set(reply.result().unwrap_or_default());
        let (kind, process, a, b, c, d) = vfs::NextEvent::results(&reply).ok()?;
        Some((kind, process, [a, b, c, d]))
    }

    /// pm has a program run the file at a path. Returns the image or error, and the other values of the event.
    pub fn exec(&self, program: Endpoint, path: &str) -> (Result<u64>, [u64; 3]) {
        self.exec_at(program, -100, path, 0)
    }

    /// [`World::exec`] of a path relative to a descriptor, with flags of execveat.
    pub fn exec_at(&self, program: Endpoint, directory: i32, path: &str, flags: u64) -> (Result<u64>, [u64; 3]) {
        self.machine.write(PM, 0, path.as_bytes());
        let bytes = path.len() as u64;
        let exec = vfs::Exec { process: program, grant: GrantId(0), bytes, directory, flags };
        assert_eq!(self.call_as_pm(exec.message()), Ok(0));
        let (kind, process, [a, b, c, d]) = self.next_event().expect("the exec has an end");
        assert_eq!((kind, process), (vfs::EVENT_EXEC, program));
        (abi::Word::from_word(a), [b, c, d])
    }

    /// The text of the last exec.
    pub fn exec_text(&self, program: Endpoint) -> String {
        String::from_utf8(self.exec_bytes(program)).expect("is text")
    }

    /// What pm is told with it.
    pub fn exec_bytes(&self, program: Endpoint) -> Vec<u8> {
        let request = vfs::ExecText { process: program, grant: GrantId(0), bytes: 4096 };
        let bytes = self.call_as_pm(request.message()).expect("there is a text");
        self.machine.read(PM, 0, bytes as usize)
    }

    /// A child of a program; `flags` of `vfs::Fork`.
    pub fn fork(&self, parent: Endpoint, flags: u64) -> Endpoint {
        self.fork_into(parent, flags, abi::Parts::SYSTEM)
    }

    /// A child of a program, in these containers.
    pub fn fork_into(&self, parent: Endpoint, flags: u64, parts: abi::Parts) -> Endpoint {
        let slot = self.programs.get();
        self.programs.set(slot + 1);
        let child = Endpoint::new(slot, 1);
        self.machine.add_program(child, MEMORY);
        let fork = vfs::Fork { parent, child, identity: slot as u64, flags, parts };
        assert_eq!(self.call_as_pm(fork.message()), Ok(0));
        child
    }

    /// The program ends.
    pub fn exit(&self, program: Endpoint) {
        assert_eq!(self.call_as_pm(vfs::Exit { process: program }.message()), Ok(0));
    }

    /// Ids change: effective and real ones, and further groups.
    pub fn set_ids(&self, program: Endpoint, effective: (u32, u32), real: (u32, u32), groups: &[u32]) {
        let of = |user| if user == 0 { CapabilitySet::ALL } else { CapabilitySet::EMPTY };
        self.set_rights(program, effective, real, groups, [of(effective.0), of(real.0)]);
    }

    /// The capabilities of a process of root's change.
    pub fn set_capabilities(&self, program: Endpoint, capabilities: CapabilitySet) {
        self.set_rights(program, (0, 0), (0, 0), &[], [capabilities, CapabilitySet::ALL]);
    }

    /// Those of a user's process change.
    pub fn set_user_capabilities(&self, program: Endpoint, ids: (u32, u32), capabilities: CapabilitySet) {
        self.set_rights(program, ids, ids, &[], [capabilities, CapabilitySet::EMPTY]);
    }

    fn set_rights(
        &self,
        program: Endpoint,
        effective: (u32, u32),
        real: (u32, u32),
        groups: &[u32],
        [capabilities, real_capabilities]: [CapabilitySet; 2],
    ) {
        let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
        self.machine.write(PM, 0, &bytes);
        let word = |(uid, gid): (u32, u32)| u64::from(uid) | u64::from(gid) << 32;
        let request = vfs::SetIds {
            process: program,
            effective: word(effective),
            real: word(real),
            grant: GrantId(0),
            groups: groups.len() as u64,
            capabilities,
            real_capabilities,
        };
        assert_eq!(self.call_as_pm(request.message()), Ok(0));
    }

    /// RLIMIT_NOFILE and RLIMIT_FSIZE of a process change.
    pub fn set_limits(&self, process: Endpoint, descriptors: u64, file_bytes: u64) {
        self.set_all_limits(vfs::SetLimits { process, descriptors, file_bytes, message_bytes: 819_200 });
    }

    /// All limits of a process change.
    pub fn set_all_limits(&self, limits: vfs::SetLimits) {
        assert_eq!(self.call_as_pm(limits.message()), Ok(0));
    }

    /// A program of an ordinary user, forked from the first one.
    pub fn user(&self, uid: u32, gid: u32) -> Endpoint {
        let program = self.fork(self.root, 0);
        self.set_ids(program, (uid, gid), (uid, gid), &[]);
        program
    }

    /// Begins a Linux call; its result, if vfs has one already.
    pub fn begin_call(&self, program: Endpoint, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        let call = self.calls.get();
        self.calls.set(call + 1);
        match self.fetched(program, number, arguments, call) {
            Some(word) => {
                let words = [arguments, &[0, 0, word]].concat();
                self.send_call(program, nr::WRITE | WITH_WORD, &words, call)
            }
            None => self.send_call(program, number, arguments, call),
        }
    }

    /// What the kernel fetches with a call (`linux::FETCHED`). Here that of every other write, so that both forms are tested.
    fn fetched(&self, program: Endpoint, number: u32, arguments: &[u64], call: u64) -> Option<u64> {
        let fetches = number == nr::WRITE && arguments[2] == 8 && call.is_multiple_of(2);
        fetches.then(|| self.machine.word(program, arguments[1])).flatten()
    }

    /// Makes a Linux call that does not wait for others. vfs dies with the message of the first number from now on, its successor with the
    /// message of the second number of its own, and so on; the call comes again at each. Returns how many have died, too.
    pub fn call_with_deaths(
        &mut self,
        deaths: &[u64],
        program: Endpoint,
        number: u32,
        arguments: &[u64],
    ) -> (Result<u64>, usize) {
        let mut died = 0;
        self.machine.kill_at(self.vfs.get(), deaths.first().copied());
        let mut result = self.begin_call(program, number, arguments);
        while !self.machine.is_alive(self.vfs.get()) {
            died += 1;
            self.start_successor();
            self.machine.kill_at(self.vfs.get(), deaths.get(died).copied());
            self.machine.run();
            self.announce_successor();
            if result.is_none() && self.machine.is_alive(self.vfs.get()) {
                self.machine.forget_request(program);
                result = self.repeat_call(program, number, arguments);
            }
        }
        self.machine.kill_at(self.vfs.get(), None);
        (result.unwrap_or_else(|| panic!("call {number} waits after deaths at {deaths:?}")), died)
    }

    /// The same while a file system, [`World::ext2`] or [`World::tmpfs`], dies with the message of this number from now on. Returns whether it has
    /// died, too.
    pub fn call_with_death_of(
        &mut self,
        file_system: Endpoint,
        death: u64,
        program: Endpoint,
        number: u32,
        arguments: &[u64],
    ) -> (Result<u64>, bool) {
        self.machine.kill_at(file_system, Some(death));
        let mut result = self.begin_call(program, number, arguments);
        let died = !self.machine.is_alive(file_system);
        if died {
            self.restart(file_system.slot());
            result = result.or_else(|| self.result(program));
        } else {
            self.machine.kill_at(file_system, None);
        }
        (result.unwrap_or_else(|| panic!("call {number} waits after a death of {file_system:?} at {death}")), died)
    }

    /// The last call of a program comes once more, as after a death of vfs.
    pub fn repeat_call(&self, program: Endpoint, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        self.repeat_earlier(1, program, number, arguments)
    }

    /// The same for a call after which there were others: the last but `back` - 1.
    pub fn repeat_earlier(&self, back: u64, program: Endpoint, number: u32, arguments: &[u64]) -> Option<Result<u64>> {
        self.send_call(program, number, arguments, (self.calls.get() - back) | REPEATED)
    }

    fn send_call(&self, program: Endpoint, number: u32, arguments: &[u64], call: u64) -> Option<Result<u64>> {
        let message = call_message(number, arguments, call);
        self.machine.ask(program, Endpoint::VFS, &message).map(|reply| reply.result())
    }

    /// The result of a call that had to wait, if it has come.
    pub fn result(&self, program: Endpoint) -> Option<Result<u64>> {
        self.machine.received(program).map(|reply| reply.result())
    }

    /// Makes a Linux call that does not wait.
    pub fn call(&self, program: Endpoint, number: u32, arguments: &[u64]) -> Result<u64> {
        self.begin_call(program, number, arguments).unwrap_or_else(|| panic!("call {number} of {program:?} waits"))
    }

    /// A call whose first argument is a path.
    pub fn path_call(&self, program: Endpoint, number: u32, path: &str, arguments: &[u64]) -> Result<u64> {
        self.call(program, number, &[&[self.path(program, 0, path)], arguments].concat())
    }

    /// A call with two paths.
    pub fn paths_call(&self, program: Endpoint, number: u32, first: &str, second: &str) -> Result<u64> {
        let paths = [self.path(program, 0, first), self.path(program, 1, second)];
        self.call(program, number, &paths)
    }

    /// Puts a path into a program's memory.
    pub fn path(&self, program: Endpoint, which: usize, path: &str) -> u64 {
        self.machine.write(program, PATHS[which], &[path.as_bytes(), &[0]].concat());
        PATHS[which]
    }

    /// Puts words into a program's memory.
    pub fn words(&self, program: Endpoint, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.machine.write(program, STRUCTURE, &bytes);
        STRUCTURE
    }

    /// Puts data into a program's memory.
    pub fn data(&self, program: Endpoint, data: &[u8]) -> u64 {
        self.machine.write(program, DATA, data);
        DATA
    }

    pub fn open(&self, program: Endpoint, path: &str, flags: u64, mode: u64) -> Result<u64> {
        self.path_call(program, nr::OPEN, path, &[flags, mode])
    }

    pub fn close(&self, program: Endpoint, descriptor: u64) -> Result<u64> {
        self.call(program, nr::CLOSE, &[descriptor])
    }

    pub fn write(&self, program: Endpoint, descriptor: u64, data: &[u8]) -> Result<u64> {
        self.call(program, nr::WRITE, &[descriptor, self.data(program, data), data.len() as u64])
    }

    pub fn pwrite(&self, program: Endpoint, descriptor: u64, data: &[u8], position: i64) -> Result<u64> {
        let address = self.data(program, data);
        self.call(program, nr::PWRITE64, &[descriptor, address, data.len() as u64, position as u64])
    }

    pub fn read(&self, program: Endpoint, descriptor: u64, bytes: usize) -> Result<Vec<u8>> {
        let done = self.call(program, nr::READ, &[descriptor, DATA, bytes as u64])?;
        Ok(self.machine.read(program, DATA, done as usize))
    }

    pub fn pread(&self, program: Endpoint, descriptor: u64, bytes: usize, position: i64) -> Result<Vec<u8>> {
        let done = self.call(program, nr::PREAD64, &[descriptor, DATA, bytes as u64, position as u64])?;
        Ok(self.machine.read(program, DATA, done as usize))
    }

    pub fn seek(&self, program: Endpoint, descriptor: u64, offset: i64, from: u64) -> Result<u64> {
        self.call(program, nr::LSEEK, &[descriptor, offset as u64, from])
    }

    pub fn position(&self, program: Endpoint, descriptor: u64) -> u64 {
        self.seek(program, descriptor, 0, SEEK_CUR).expect("has a position")
    }

    /// The superuser makes a file with this content, mode and owner.
    pub fn make(&self, path: &str, content: &[u8], mode: u64, (uid, gid): (u64, u64)) {
        let file = self.open(self.root, path, O_CREAT | O_EXCL | O_WRONLY, 0o600).expect("the file is new");
        for piece in content.chunks((MEMORY.end - DATA) as usize) {
            assert_eq!(self.write(self.root, file, piece), Ok(piece.len() as u64));
        }
        assert_eq!(self.call(self.root, nr::FCHOWN, &[file, uid, gid]), Ok(0));
        assert_eq!(self.call(self.root, nr::FCHMOD, &[file, mode]), Ok(0));
        self.close(self.root, file).expect("is open");
    }

    /// The superuser makes a directory.
    pub fn make_directory(&self, path: &str, mode: u64, (uid, gid): (u64, u64)) {
        assert_eq!(self.path_call(self.root, nr::MKDIR, path, &[0o700]), Ok(0));
        assert_eq!(self.path_call(self.root, nr::CHOWN, path, &[uid, gid]), Ok(0));
        assert_eq!(self.path_call(self.root, nr::CHMOD, path, &[mode]), Ok(0));
    }

    /// The content of a file.
    pub fn content(&self, path: &str) -> Vec<u8> {
        let file = self.open(self.root, path, O_RDONLY, 0).expect("the file is there");
        let mut content = Vec::new();
        loop {
            let piece = self.read(self.root, file, (MEMORY.end - DATA) as usize).expect("is read");
            if piece.is_empty() {
                self.close(self.root, file).expect("is open");
                return content;
            }
            content.extend(piece);
        }
    }

    pub fn stat(&self, program: Endpoint, path: &str) -> Result<Stat> {
        let address = self.words(program, &[0; 18]);
        self.path_call(program, nr::LSTAT, path, &[address])?;
        Ok(self.stat_at(program, address))
    }

    pub fn fstat(&self, program: Endpoint, descriptor: u64) -> Result<Stat> {
        let address = self.words(program, &[0; 18]);
        self.call(program, nr::FSTAT, &[descriptor, address])?;
        Ok(self.stat_at(program, address))
    }

    fn stat_at(&self, program: Endpoint, address: u64) -> Stat {
        let words = self.read_words(program, address, 18);
        Stat {
            inode: words[1],
            links: words[2],
            mode: words[3] as u32,
            uid: (words[3] >> 32) as u32,
            gid: words[4] as u32,
            size: words[6],
            accessed_s: words[9],
            modified_s: words[11],
        }
    }

    pub fn read_words(&self, program: Endpoint, address: u64, count: usize) -> Vec<u64> {
        let bytes = self.machine.read(program, address, count * 8);
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// The names that one call lists of an open directory, from its position on.
    pub fn more_names(&self, program: Endpoint, directory: u64) -> Result<Vec<String>> {
        let bytes = self.call(program, nr::GETDENTS64, &[directory, DATA, 1000])?;
        let records = self.machine.read(program, DATA, bytes as usize);
        let (mut names, mut at) = (Vec::new(), 0);
        while at < records.len() {
            let length = u16::from_le_bytes([records[at + 16], records[at + 17]]) as usize;
            let name = records[at + 19..at + length].split(|byte| *byte == 0).next().unwrap_or_default();
            names.push(String::from_utf8_lossy(name).into_owned());
            at += length;
        }
        Ok(names)
    }

    /// The names in a directory without `.` and `..`, sorted.
    pub fn names(&self, program: Endpoint, path: &str) -> Result<Vec<String>> {
        let directory = self.open(program, path, O_RDONLY | O_DIRECTORY, 0)?;
        let mut names = Vec::new();
        loop {
            let more = self.more_names(program, directory)?;
            if more.is_empty() {
                break;
            }
            names.extend(more);
        }
        self.close(program, directory)?;
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }

    pub fn change_directory(&self, program: Endpoint, path: &str) -> Result<u64> {
        self.path_call(program, nr::CHDIR, path, &[])
    }

    /// The path of a program's working directory.
    pub fn working(&self, program: Endpoint) -> String {
        let address = self.words(program, &[0; 32]);
        let bytes = self.call(program, nr::GETCWD, &[address, 256]).expect("there is one");
        String::from_utf8(self.machine.read(program, address, bytes as usize - 1)).expect("is text")
    }

    /// A pipe: the end to read, the end to write.
    pub fn pipe(&self, program: Endpoint, flags: u64) -> (u64, u64) {
        assert_eq!(self.call(program, nr::PIPE2, &[STRUCTURE, flags]), Ok(0));
        let both = self.read_words(program, STRUCTURE, 1)[0];
        (both & 0xffff_ffff, both >> 32)
    }

    /// Blocks, of a page each, that are free for everybody on the file system of the root.
    pub fn free_blocks(&self) -> u64 {
        let address = self.words(self.root, &[0; 15]);
        assert_eq!(self.path_call(self.root, nr::STATFS, "/", &[address]), Ok(0));
        let words = self.read_words(self.root, address, 15);
        assert_eq!(words[1], PAGE);
        words[4]
    }

    /// Leaves at most so many of them, by a file `/large`.
    pub fn fill_disk(&self, blocks: u64) {
        let large = self.open(self.root, "/large", O_CREAT | O_WRONLY, 0o644).expect("it can be made");
        while self.free_blocks() > blocks {
            let bytes = if self.free_blocks() > 200 { 64 * PAGE } else { PAGE };
            assert_eq!(self.write(self.root, large, &std::vec![0; bytes as usize]), Ok(bytes));
        }
        self.close(self.root, large).expect("is open");
    }

    /// Writes everything to the disk, and lets it leave ext2's cache for the blocks of a file `/large`, which is made or written over.
    pub fn evict(&self) {
        self.call(self.root, nr::SYNC, &[]).expect("everything is written");
        let large = self.open(self.root, "/large", O_CREAT | O_WRONLY, 0o644).expect("it can be made");
        for _ in 0..400 {
            assert_eq!(self.write(self.root, large, &[0; PAGE as usize]), Ok(PAGE));
        }
        self.close(self.root, large).expect("is open");
        self.call(self.root, nr::SYNC, &[]).expect("everything is written");
    }

    /// Whether these bytes are on the disk, not only in ext2's cache.
    pub fn is_on_disk(&self, bytes: &[u8]) -> bool {
        let medium = self.disk.lock().expect("the disk has not panicked");
        medium.bytes.windows(bytes.len()).any(|window| window == bytes)
    }

    /// The path relative to an open directory.
    pub fn open_at(&self, program: Endpoint, directory: u64, path: &str, flags: u64) -> Result<u64> {
        let path = self.path(program, 0, path);
        self.call(program, nr::OPENAT, &[directory, path, flags, 0o644])
    }

    /// openat relative to the working directory.
    pub fn open_here(&self, program: Endpoint, path: &str, flags: u64) -> Result<u64> {
        self.open_at(program, AT_FDCWD, path, flags)
    }
}

fn start(endpoint: Endpoint, arguments: &'static str) -> Start {
    let kind = if endpoint.generation() == 1 { StartKind::Fresh } else { StartKind::Restarted };
    Start { kind, arguments, endpoint }
}

/// A disk with an empty file system.
pub fn formatted(bytes: u64) -> Vec<u8> {
    let plan = Plan::new(bytes);
    let mut disk = std::vec![0; plan.bytes()];
    plan.format(&mut disk, 1, Timestamp::default());
    disk
}

/// A Linux call with its number among all calls.
fn call_message(number: u32, arguments: &[u64], call: u64) -> Message {
    let mut message = Message::new(number);
    message.words[..arguments.len()].copy_from_slice(arguments);
    message.words[6] = call;
    message
}
