//! The tables of threads and processes, and how they are linked: threads in a list of their process, children in a
//! list of their parent and in the ring of their group (`family`), ids in `pids`. The file is long because every list has its
//! ways in and out here.
//!
//! Invariants: a thread entry in use belongs to a living process; `Process::threads` counts its list; the group and session of
//! every process in use are retained in `pids`; every process but the first has a parent.
//! Entries are found by slot and used again, so that no call but the one that sets a new record of processes allocates: one entry,
//! out of the heap's reserve if need be.

use super::containers::Containers;
use super::credentials::Credentials;
use super::index::{PROCESSES, ProcessIndex, THREADS, ThreadIndex};
use super::pid::{Holder, Pids};
use super::process::{Life, Process};
use super::round::Round;
use super::signal::pending::Entries;
use super::signal::{Set, Signal};
use super::thread::Thread;
use super::trace::Ended;
use super::wait::Ending;
use crate::system::{Identity, Requester};
use abi::{Endpoint, Errno, Part, container};
use alloc::{boxed::Box, vec::Vec};
use core::ops::{Index, IndexMut};
use server::quota::Quota;
use sys::fallible::TryVec;

/// Threads that only root may use up, so that it can clean up after others.
const RESERVED_THREADS: usize = 16;
const ROOT: u32 = 0;

/// All threads and processes.
pub struct Table {
    threads: Vec<Thread>,
    #[expect(clippy::vec_box, reason = "a record of processes moves pointers, not two kilobytes each")]
    processes: Vec<Box<Process>>,
    free: Vec<ProcessIndex>,
    /// Process and thread ids.
    pub(super) pids: Pids,
    /// The first process, once there is one.
    first: Option<ProcessIndex>,
    /// Number of stopped processes.
    stopped: u32,
    /// Walks over groups that were begun.
    pub(super) walks: u32,
    /// The signal that is sent to several processes.
    pub(super) round: Round,
    /// Threads of each real user; a process without threads counts as one.
    quota: Quota,
    /// Queue entries of pending signals.
    pub(super) entries: Entries,
    /// Traced threads that have ended, for their tracers.
    pub(super) ended: Vec<Ended>,
    /// Containers.
    pub containers: Containers,
    /// Stops of traced threads so far.
    pub(super) stops: u64,
    /// Memories of processes so far.
    memories: u64,
    /// Signals that have become pending so far, modulo a number.
    arrivals: u32,
    /// A zombie that its tracer has waited for: its parent is to be told.
    pub released: Option<ProcessIndex>,
}

impl Index<ThreadIndex> for Table {
    type Output = Thread;
    fn index(&self, thread: ThreadIndex) -> &Thread {
        &self.threads[thread.get()]
    }
}

impl IndexMut<ThreadIndex> for Table {
    fn index_mut(&mut self, thread: ThreadIndex) -> &mut Thread {
        &mut self.threads[thread.get()]
    }
}

impl Index<ProcessIndex> for Table {
    type Output = Process;
    fn index(&self, process: ProcessIndex) -> &Process {
        &self.processes[process.get()]
    }
}

impl IndexMut<ProcessIndex> for Table {
    fn index_mut(&mut self, process: ProcessIndex) -> &mut Process {
        &mut self.processes[process.get()]
    }
}

impl Table {
    /// Empty tables.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Table {
        let threads = core::iter::repeat_with(Thread::free).take(THREADS).collect();
        Table {
            threads,
            processes: Vec::with_capacity(PROCESSES),
            free: Vec::with_capacity(PROCESSES),
            pids: Pids::new(),
            first: None,
            stopped: 0,
            walks: 0,
            round: Round::NONE,
            quota: Quota::new(PROCESSES, PROCESSES, PROCESSES - (THREADS - RESERVED_THREADS)),
            entries: Entries::new(),
            ended: Vec::new(),
            containers: Containers::new(),
            stops: 0,
            memories: 0,
            arrivals: 1,
            released: None,
        }
    }

    /// Gives a process a memory of its own, which no other process has or had.
    pub fn renew_memory(&mut self, p: ProcessIndex) {
        self.memories += 1;
        self[p].memory = self.memories;
    }

    /// A signal has become pending for a process, or a thread of it. The numbers of `pm::AwaitSignals` begin again before 2^27.
    #[inline]
    pub fn count_arrival(&mut self, p: ProcessIndex) {
        self.arrivals = (self.arrivals.wrapping_add(1) & 0x7ff_ffff).max(1);
        self[p].arrivals = self.arrivals;
    }

    /// The thread with this endpoint, if pm knows it.
    #[inline]
    pub fn find(&self, endpoint: Endpoint) -> Option<ThreadIndex> {
        let thread = ThreadIndex::of(endpoint)?;
        (self.threads[thread.get()].endpoint == endpoint).then_some(thread)
    }

    /// The process a thread belongs to.
    #[inline]
    pub fn process_of(&self, thread: ThreadIndex) -> ProcessIndex {
        self[thread].process
    }

    /// The thread and its call in progress, for what vfs does once for that.
    pub fn requester(&self, thread: ThreadIndex) -> Requester {
        Requester { thread: self[thread].endpoint, call: self[thread].serial }
    }

    /// All entries in use, zombies included.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessIndex, &Process)> {
        let all = self.processes.iter().enumerate();
        all.filter(|(_, process)| process.life != Life::Free).map(|(at, process)| (ProcessIndex::at(at), &**process))
    }

    /// The positions of all entries of processes, free ones included: for those who change the table on the way.
    pub fn positions(&self) -> impl Iterator<Item = ProcessIndex> + use<> {
        (0..self.processes.len()).map(ProcessIndex::at)
    }

    /// Whether an entry is in use, by a zombie perhaps.
    pub fn is_used(&self, process: ProcessIndex) -> bool {
        self[process].life != Life::Free
    }

    /// The threads of a process, first one first.
    pub fn threads_of(&self, process: ProcessIndex) -> impl Iterator<Item = ThreadIndex> {
        core::iter::successors(self[process].main, |thread| self[*thread].next)
    }

    /// The first thread of a process that satisfies `test`.
    pub fn first_thread_where(&self, process: ProcessIndex, test: impl Fn(&Thread) -> bool) -> Option<ThreadIndex> {
        self.threads_of(process).find(|thread| test(&self[*thread]))
    }

    /// A process entry that nothing refers to. `EAGAIN`: too many processes.
    pub fn allocate_process(&mut self) -> Result<ProcessIndex, Errno> {
        if let Some(index) = self.free.pop() {
            self[index].reset();
            return Ok(index);
        }
        if self.processes.len() == PROCESSES {
            return Err(Errno::EAGAIN);
        }
        self.processes.push_reserved(Box::new(Process::free()));
        Ok(ProcessIndex::at(self.processes.len() - 1))
    }

    /// Two different processes, the first to be changed.
    ///
    /// # Panics
    /// When they are the same, or not in the table.
    fn process_pair(&mut self, one: ProcessIndex, other: ProcessIndex) -> (&mut Process, &Process) {
        let [one, other] =
            self.processes.get_disjoint_mut([one.get(), other.get()]).expect("two processes of the table");
        (one, other)
    }

    /// The first process, which adopts orphans.
    pub fn first(&self) -> Option<ProcessIndex> {
        self.first
    }

    /// Whether this is the first process.
    pub fn is_first(&self, process: ProcessIndex) -> bool {
        self.first == Some(process)
    }

    /// Makes the entry the first process, leader of a session and group of its own.
    pub fn enter_first_process(&mut self, process: ProcessIndex, pid: u32, started_ns: u64) {
        self.pids.claim(pid, Holder::Process(process));
        self.pids.retain(pid);
        self.pids.retain(pid);
        self.quota.take(ROOT, 1).expect("the first process is the first to be counted");
        let entry = &mut self[process];
        entry.life = Life::Alive;
        entry.pid = pid;
        entry.group = pid;
        entry.session = pid;
        entry.started_ns = started_ns;
        self.join_group(process);
        self.first = Some(process);
    }

    /// Makes an allocated entry a child of `parent` (of its parent with `of_grandparent`), with what a child inherits and an id of this container. `EAGAIN`: no
    /// id is free; the entry is free again.
    pub fn enter_child(
        &mut self,
        child: ProcessIndex,
        parent: ProcessIndex,
        of_grandparent: bool,
        container: u8,
        started_ns: u64,
    ) -> Result<(), Errno> {
        let user = self[parent].credentials.account();
        let counted = self.quota.take(user, 1);
        let Some(pid) = counted.ok().and_then(|()| self.pids.allocate_in(container, Holder::Process(child))) else {
            if counted.is_ok() {
                self.quota.give(user, 1);
            }
            self.free.push_reserved(child);
            return Err(Errno::EAGAIN);
        };
        let generation = self.pids.generation(pid);
        let (entry, origin) = self.process_pair(child, parent);
        entry.inherit(origin);
        entry.credentials.parts = entry.credentials.parts.with(Part::Processes, container);
        entry.life = Life::Alive;
        entry.pid = pid;
        entry.generation = generation;
        entry.started_ns = started_ns;
        let (group, session) = (entry.group, entry.session);
        let family = origin.parent.filter(|_| of_grandparent).unwrap_or(parent);
        self.pids.retain(group);
        self.pids.retain(session);
        self.join_group(child);
        self.adopt(family, child);
        Ok(())
    }

    /// An id for a further thread of a process, which is counted for its user. `EAGAIN`.
    pub fn allocate_tid(&mut self, thread: ThreadIndex, process: ProcessIndex) -> Result<u32, Errno> {
        let user = self[process].credentials.account();
        self.quota.take(user, 1).map_err(|_| Errno::EAGAIN)?;
        let container = self[process].credentials.parts.of(Part::Processes);
        let tid = self.pids.allocate_in(container, Holder::Thread(thread));
        if tid.is_none() {
            self.quota.give(user, 1);
        }
        tid.ok_or(Errno::EAGAIN)
    }

    /// Number of threads of a user or container, for RLIMIT_NPROC. A process without threads counts as one.
    pub fn threads_of_user(&self, user: u32) -> usize {
        self.quota.held_by(user)
    }

    /// The user who has most threads, other than root.
    pub fn largest_user(&self) -> Option<u32> {
        self.quota.largest()
    }

    /// Number of threads of all users.
    pub fn threads(&self) -> usize {
        self.quota.total()
    }

    /// Changes who a process is. `EAGAIN`: there is no place for its threads among those of the new user.
    pub fn set_credentials(&mut self, process: ProcessIndex, new: Credentials) -> Result<(), Errno> {
        let entry = &self[process];
        let (old, count) = (entry.credentials.account(), entry.counted_threads());
        if new.account() != old {
            self.quota.take(new.account(), count).map_err(|_| Errno::EAGAIN)?;
            self.quota.give(old, count);
        }
        self[process].credentials = new;
        Ok(())
    }

    /// Sets how many threads a container may have; a process without threads counts as one. `ENOMEM`.
    pub fn limit_threads(&mut self, container: u8, threads: u64) -> Result<(), Errno> {
        let limit = Some(usize::try_from(threads).unwrap_or(usize::MAX).min(PROCESSES));
        self.quota.set_limit(container::account(container), limit).map_err(|_| Errno::ENOMEM)
    }

    /// A container begins.
    pub fn begin_container(&mut self, container: u8) {
        self.pids.begin_container(container);
    }

    /// Whether a container has processes, or had some.
    pub fn has_begun(&self, container: u8) -> bool {
        self.pids.has_begun(container)
    }

    /// An id for a service.
    pub fn add_service(&mut self, index: u16) -> Option<u32> {
        self.pids.allocate(Holder::Service(index))
    }

    /// What all ids that are held are below.
    pub fn pids_end(&self) -> u32 {
        self.pids.end()
    }

    /// What new ids are below.
    pub fn pid_bound(&self) -> u32 {
        self.pids.bound()
    }

    /// Bounds new ids. `EINVAL`.
    pub fn set_pid_bound(&mut self, bound: u64) -> Result<(), Errno> {
        self.pids.set_bound(bound)
    }

    /// Gives a thread, the only one left, the id of its process. Returns false when it has it already.
    pub fn make_main(&mut self, thread: ThreadIndex) -> bool {
        let (tid, pid) = (self[thread].tid, self[self[thread].process].pid);
        if tid == pid {
            return false;
        }
        self.pids.release(tid);
        self[thread].tid = pid;
        true
    }

    /// What has this id.
    pub fn holder(&self, pid: u32) -> Holder {
        self.pids.holder(pid)
    }

    /// Stops a process, for its parent to be told.
    pub fn stop(&mut self, process: ProcessIndex, signal: Signal) {
        let entry = &mut self[process];
        let was_running = entry.stopped.replace(signal).is_none();
        entry.stop_unreported = true;
        entry.continue_unreported = false;
        self.stopped += u32::from(was_running);
        self.news_changed(process);
    }

    /// Ends the stop of a process. Returns false when it was not stopped.
    fn end_stop(&mut self, process: ProcessIndex) -> bool {
        let was_stopped = self[process].stopped.take().is_some();
        self.stopped -= u32::from(was_stopped);
        was_stopped
    }

    /// Continues a process, for its parent to be told. Returns false when it was not stopped.
    pub fn continue_stopped(&mut self, process: ProcessIndex) -> bool {
        let was_stopped = self.end_stop(process);
        if was_stopped {
            self[process].stop_unreported = false;
            self[process].continue_unreported = true;
            self.news_changed(process);
        }
        was_stopped
    }

    /// The parent has waited for the stop of this process.
    pub fn stop_reported(&mut self, process: ProcessIndex) {
        self[process].stop_unreported = false;
        self.news_changed(process);
    }

    /// The parent has waited for the continuation of this process.
    pub fn continue_reported(&mut self, process: ProcessIndex) {
        self[process].continue_unreported = false;
        self.news_changed(process);
    }

    /// Begins the end of a process: from now on it ends in this way, even if pm dies meanwhile.
    pub fn begin_end(&mut self, process: ProcessIndex, ending: Ending) {
        self[process].ending = Some(ending);
    }

    /// Makes a zombie of a process whose threads are gone.
    pub fn make_zombie(&mut self, process: ProcessIndex, ending: Ending) {
        self[process].life = Life::Zombie(ending);
        self.news_changed(process);
    }

    /// Drops what a zombie needs no more. May be done again.
    pub fn strip_zombie(&mut self, process: ProcessIndex) {
        self.end_stop(process);
        self.discard_signals(process, Set(u64::MAX));
        self[process].executable = None;
    }

    /// Parent, vfs and tty know of the end of a process. Its entry may be free already.
    pub fn end_settled(&mut self, process: ProcessIndex) {
        self[process].ending = None;
    }

    /// Whether any process is stopped.
    pub fn has_stopped(&self) -> bool {
        self.stopped != 0
    }

    /// Adds a thread to a process.
    pub fn add_thread(&mut self, thread: ThreadIndex, endpoint: Endpoint, process: ProcessIndex, tid: u32) {
        self[thread].occupy(endpoint, process, tid);
        match self[process].main {
            Some(main) => self[thread].next = self[main].next.replace(thread),
            None => self[process].main = Some(thread),
        }
        self[process].threads += 1;
    }

    /// Takes a thread out of its process and frees its entry; its id stays with the process if it is the process's.
    pub fn remove_thread(&mut self, thread: ThreadIndex) {
        let process = self[thread].process;
        self.discard_signals_of_thread(thread, Set(u64::MAX));
        let next = self[thread].next;
        let before = self.threads_of(process).find(|other| self[*other].next == Some(thread));
        match before {
            Some(before) => self[before].next = next,
            None => self[process].main = next,
        }
        self[process].threads -= 1;
        if self[process].threads != 0 {
            self.quota.give(self[process].credentials.account(), 1);
        }
        let tid = self[thread].tid;
        if tid != self[process].pid {
            self.pids.release(tid);
        }
        self[thread].endpoint = Endpoint::NONE;
    }

    /// Moves a process to another group and session.
    pub fn set_group(&mut self, process: ProcessIndex, group: u32, session: u32) {
        self.pids.retain(group);
        self.pids.retain(session);
        self.leave_group(process);
        let old = (self[process].group, self[process].session);
        self.pids.drop_use(old.0);
        self.pids.drop_use(old.1);
        self[process].group = group;
        self[process].session = session;
        self.join_group(process);
    }

    /// Frees the entry of a process that has not come to be.
    pub fn withdraw(&mut self, process: ProcessIndex) {
        let container = self[process].credentials.parts.of(Part::Processes);
        self.pids.take_back(container, self[process].pid);
        self.free_entry(process);
    }

    /// Frees the entry of a zombie.
    pub fn release(&mut self, process: ProcessIndex) {
        self.pids.release(self[process].pid);
        self.free_entry(process);
    }

    fn free_entry(&mut self, process: ProcessIndex) {
        self.orphan(process);
        self.leave_group(process);
        self.quota.give(self[process].credentials.account(), 1);
        let (group, session) = (self[process].group, self[process].session);
        self.pids.drop_use(group);
        self.pids.drop_use(session);
        self[process].life = Life::Free;
        self.free.push_reserved(process);
    }

    /// Rebuilds all lists and counts from the entries themselves: the process of a thread, the parent of a process, pids, groups and
    /// sessions. Threads are then in order of their ids, the first one first, children in order of age.
    #[expect(clippy::disallowed_methods, reason = "recovery, before any call: bounded by the tables")]
    pub fn rebuild(&mut self) {
        self.free.clear();
        for process in &mut self.processes {
            process.main = None;
            process.threads = 0;
            process.first_child = None;
            process.last_child = None;
            process.last_news = None;
        }
        let mut threads: Vec<ThreadIndex> =
            ThreadIndex::all().filter(|t| self[*t].endpoint != Endpoint::NONE).collect();
        threads.sort_unstable_by_key(|t| (self[*t].tid != self[self[*t].process].pid, self[*t].tid));
        let mut all: Vec<ProcessIndex> = (0..self.processes.len()).map(ProcessIndex::at).collect();
        all.sort_unstable_by_key(|p| (self[*p].started_ns, self[*p].pid));
        self.pids.begin_recount();
        for p in all {
            match self[p].life {
                Life::Free => self.free.push_reserved(p),
                _ => self.rebuild_process(p),
            }
        }
        threads.iter().for_each(|t| self.rebuild_thread(*t));
        self.recount_signals();
        self.recount_threads();
        self.recount_tracees();
        self.stopped = self.processes().filter(|(_, process)| process.stopped.is_some()).count() as u32;
    }

    fn recount_threads(&mut self) {
        let used = self.processes.iter().filter(|process| process.life != Life::Free);
        let users =
            used.flat_map(|process| core::iter::repeat_n(process.credentials.account(), process.counted_threads()));
        self.quota.recount(users);
    }

    fn rebuild_process(&mut self, p: ProcessIndex) {
        let (pid, group, session) = (self[p].pid, self[p].group, self[p].session);
        self.pids.claim(pid, Holder::Process(p));
        self.pids.retain(group);
        self.pids.retain(session);
        self.join_group(p);
        match self[p].parent.filter(|parent| *parent != p && self[*parent].life != Life::Free) {
            Some(parent) => self.adopt(parent, p),
            None => self[p].parent = None,
        }
    }

    fn rebuild_thread(&mut self, t: ThreadIndex) {
        let p = self[t].process;
        self[t].next = None;
        if self[p].life != Life::Alive {
            self[t].endpoint = Endpoint::NONE;
            return;
        }
        let tid = self[t].tid;
        if tid != self[p].pid {
            self.pids.claim(tid, Holder::Thread(t));
        }
        match self.threads_of(p).last() {
            Some(last) => self[last].next = Some(t),
            None => self[p].main = Some(t),
        }
        self[p].threads += 1;
    }

    /// The process that `pid` means, by its own id or that of one of its threads; zombies included.
    pub fn process_by_pid(&self, pid: u32) -> Option<ProcessIndex> {
        match self.pids.holder(pid) {
            Holder::Process(process) => Some(process),
            Holder::Thread(thread) => Some(self[thread].process),
            Holder::Service(_) | Holder::Nobody => None,
        }
    }

    /// The process with this identity; zombies included.
    pub fn process_by_identity(&self, identity: Identity) -> Option<ProcessIndex> {
        match self.pids.holder(identity.pid) {
            Holder::Process(process) => Some(process).filter(|process| self[*process].identity() == identity),
            _ => None,
        }
    }

    /// The living thread with this id.
    pub fn thread_by_tid(&self, tid: u32) -> Option<ThreadIndex> {
        match self.pids.holder(tid) {
            Holder::Process(process) => self[process].main.filter(|thread| self[*thread].tid == tid),
            Holder::Thread(thread) => Some(thread),
            Holder::Service(_) | Holder::Nobody => None,
        }
    }

    /// A signal can be delivered to the thread, or its process is stopped: it must not simply be resumed.
    #[inline]
    pub fn has_work(&self, thread: ThreadIndex) -> bool {
        let entry = &self[thread];
        let process = &self[entry.process];
        let pending = entry.pending.set().or(process.pending.set());
        !pending.without(entry.blocked).is_empty() || process.stopped.is_some() && entry.trace.is_none()
    }
}
