//! Containers with limits: the system call `skink_container`, and keeping their threads within their share of the processor.
//!
//! A process enters one when it is made, and never leaves it. Its limits are enforced where things are counted: processes in the table, memory in
//! vm, open files and pipes in vfs. pm looks every `LOOK_NS` at what the threads have used while there is a container with a share, and
//! stops them while it has used more. Neighbours: `state::limited` (the rule), `containers` (parts), `fork`, which makes the processes.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limited::{ByContainer, LOOK_NS, Limited, Services, Turn, Use};
use crate::state::limits;
use crate::state::scheduling::Scheduling;
use crate::state::signal::Signal;
use crate::state::timers::Key;
use crate::state::wait::Ending;
use crate::system::{System, ThreadUse};
use abi::container::{CONTAINERS, ContainerRecord, NO_LIMIT, Settings, container_call};
use abi::endpoint::slot;
use abi::info::state;
use abi::layout::PAGE_BYTES;
use abi::{Capability, Endpoint, Errno, Name, Part, Parts};
use zerocopy::{FromZeros, IntoBytes};

type Result<T> = core::result::Result<T, Errno>;

/// Parts that a container with limits has of its own.
pub const OWN_PARTS: u64 = Part::Processes.flag()
    | Part::Mounts.flag()
    | Part::Host.flag()
    | Part::Ipc.flag()
    | Part::Users.flag()
    | Part::Groups.flag();

/// How many messages one counts for of a process that takes part in M3-IPC, to the time that services work for it: it may ask for a copy of a MiB,
/// which takes 140 µs (ADR 119).
const COPIER_MESSAGES: u64 = 4;

impl<S: System> Programs<S> {
    fn settings_at(&mut self, t: ThreadIndex, address: u64, bytes: u64) -> Result<Settings> {
        let mut settings = Settings::new_zeroed();
        if bytes != settings.as_bytes().len() as u64 {
            return Err(Errno::EINVAL);
        }
        self.system.read(self.table[t].endpoint(), address, settings.as_mut_bytes())?;
        Ok(settings)
    }

    /// Tells vm and vfs where a child is that is in other containers than its parent. `ENOMEM`.
    pub fn settle_in_container(&mut self, t: ThreadIndex, parts: Parts) -> Result<()> {
        let p = self.table.process_of(t);
        self.tell_vfs_ids(p);
        self.tell_id_map(p);
        if parts.limited().is_some() && self.table[p].limits.soft(limits::RTPRIO) == 0 {
            self.table[t].scheduling = Scheduling::default();
            self.apply_scheduling(t);
        }
        let Some(container) = parts.limited() else { return Ok(()) };
        let Some(limited) = self.table.containers.limited(container) else { return Ok(()) };
        let pages = match limited.settings().memory_bytes {
            NO_LIMIT => NO_LIMIT,
            bytes => bytes / PAGE_BYTES,
        };
        self.system.vm_set_container(self.table[t].endpoint(), container, pages)
    }

    /// A process has been made, in a container perhaps.
    pub fn count_made(&mut self, t: ThreadIndex) {
        let container = self.container_of(t);
        if let Some(limited) = container.and_then(|container| self.table.containers.limited_mut(container)) {
            limited.count_made();
        }
    }

    /// What the threads of each container that exist have used.
    fn living_use(&mut self) -> ByContainer<Use> {
        let mut used = [Use::default(); CONTAINERS];
        for t in ThreadIndex::all() {
            if let Some(container) = self.container_of(t) {
                used[usize::from(container)] = used[usize::from(container)].plus(self.use_of(t));
            }
        }
        used
    }

    /// Whether vm or vfs works at this moment for a thread of a container.
    fn is_served(&mut self, container: u8) -> bool {
        ThreadIndex::all().any(|t| self.container_of(t) == Some(container) && self.is_thread_served(t))
    }

    fn is_thread_served(&mut self, t: ThreadIndex) -> bool {
        let thread = self.table[t].endpoint();
        let known = self.system.thread_use(thread);
        match known.blocked_on {
            Endpoint::NONE => false,
            _ if known.state == state::SENDING => false,
            service if service.slot() == slot::VM => true,
            service => service.slot() == slot::VFS && self.system.vfs_works_for(thread),
        }
    }

    /// How long services have run since this was asked last.
    fn services_since_look(&mut self) -> u64 {
        let run_ns = self.system.services_ns();
        self.table.containers.services_since(run_ns)
    }

    /// The container with limits of a thread, if the entry is in use.
    fn container_of(&self, t: ThreadIndex) -> Option<u8> {
        let is_used = self.table[t].endpoint() != abi::Endpoint::NONE;
        self.table[self.table.process_of(t)].credentials.parts.limited().filter(|_| is_used)
    }

    fn use_of(&mut self, t: ThreadIndex) -> Use {
        let known = self.system.thread_use(self.table[t].endpoint());
        self.use_as_charged(t, &known)
    }

    fn use_as_charged(&self, t: ThreadIndex, used: &ThreadUse) -> Use {
        let takes_part = self.table[self.table.process_of(t)].enrolled;
        Use { run_ns: used.run_ns, messages: used.messages * if takes_part { COPIER_MESSAGES } else { 1 } }
    }

    /// Stops a thread whose container waits, and lets it run again with that.
    fn throttle(&mut self, t: ThreadIndex, turn: Turn) {
        let is_whole = self.table[t].ready && !self.table[t].leaving && !self.is_over(t);
        let waits = turn == Turn::Waits;
        if !is_whole || self.table[t].throttled == waits {
            return;
        }
        self.table[t].throttled = waits;
        let (endpoint, tid) = (self.table[t].endpoint(), self.table[t].tid());
        if waits { self.system.stop(endpoint) } else { self.system.start(endpoint, tid) }
    }

    /// A thread is about to end: what it has used is its container's, if that has limits.
    pub fn settle_use_of_container(&mut self, t: ThreadIndex, used: &ThreadUse) {
        let (container, used) = (self.container_of(t), self.use_as_charged(t, used));
        if let Some(limited) = container.and_then(|container| self.table.containers.limited_mut(container)) {
            limited.add_ended(used);
        }
    }

    /// Logs that something was refused to a process with limits, but not too often.
    pub fn log_refusal(&mut self, t: ThreadIndex, number: u32) {
        let p = self.table.process_of(t);
        let container = self.table[p].credentials.parts.limited();
        let Some(limited) = container.and_then(|container| self.table.containers.limited(container)) else { return };
        let (name, pid) = (limited.name(), self.table[p].pid());
        let (now_ns, _) = self.system.time_ns();
        if self.table.containers.may_log(now_ns) {
            let call = abi::linux::name(number).unwrap_or("?");
            self.system.log(format_args!("container {name}: {call} of process {pid} refused: EPERM"));
        }
    }
}

impl<S: System> Pm<S> {
    /// `skink_container (operation, name low, name high, address, bytes)`. `EPERM`: no right over the system.
    pub fn container_call(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let p = self.programs.table.process_of(t);
        if !self.programs.table[p].credentials.has(Capability::SysAdmin) {
            return Errno::EPERM.into();
        }
        let [operation, low, high, address, bytes, ..] = *a;
        let name = Name::from_words(low, high);
        match operation {
            container_call::CREATE => self.create_limited(t, name, address, bytes),
            container_call::ENTER => self.enter_limited(t, name),
            container_call::KILL => self.kill_container(name).into(),
            container_call::LIST => self.list_containers(t, address, bytes).into(),
            _ => Errno::EINVAL.into(),
        }
    }

    fn create_limited(&mut self, t: ThreadIndex, name: Name, address: u64, bytes: u64) -> Step {
        let (now_ns, _) = self.programs.system.time_ns();
        self.forget_ended_containers();
        let settings = self.programs.settings_at(t, address, bytes);
        let limited = settings.and_then(|settings| Limited::new(name, settings, now_ns));
        let is_known = self.programs.table.containers.find(name).is_some();
        match limited {
            Ok(_) if is_known => Errno::EEXIST.into(),
            Ok(limited) => self.fork_into(t, OWN_PARTS, Some(limited), None),
            Err(error) => error.into(),
        }
    }

    fn enter_limited(&mut self, t: ThreadIndex, name: Name) -> Step {
        self.forget_ended_containers();
        let containers = &self.programs.table.containers;
        match containers.find(name).map(|container| containers.parts(container)) {
            Some(parts) => self.fork_into(t, 0, None, Some(parts)),
            None => Errno::ENOENT.into(),
        }
    }

    /// Tells vfs and the quota of processes what the container may have, before its first process comes. `ENOMEM`.
    pub fn open_limited(&mut self, parts: Parts) -> Result<()> {
        let Some(container) = parts.limited() else { return Ok(()) };
        let Some(limited) = self.programs.table.containers.limited(container).copied() else { return Ok(()) };
        let settings = limited.settings();
        self.programs.table.limit_threads(container, settings.processes)?;
        self.programs.system.vfs_limit_container(container, settings.files, settings.pipes)?;
        if limited.is_watched() && !self.timers.is_set(Key::Containers) {
            self.programs.services_since_look();
            self.plan_look();
        }
        Ok(())
    }

    fn kill_container(&mut self, name: Name) -> Result<u64> {
        self.forget_ended_containers();
        let container = self.programs.table.containers.find(name).ok_or(Errno::ENOENT)?;
        let mut killed = 0;
        for p in self.programs.table.positions() {
            if self.is_in(p, container) && self.programs.table[p].is_alive() {
                self.exit_process(p, Ending::Killed(Signal::KILL));
                killed += 1;
            }
        }
        Ok(killed)
    }

    fn is_in(&self, p: ProcessIndex, container: u8) -> bool {
        self.programs.table.is_used(p) && self.programs.table[p].credentials.parts.limited() == Some(container)
    }

    fn list_containers(&mut self, t: ThreadIndex, address: u64, bytes: u64) -> Result<u64> {
        self.forget_ended_containers();
        let used = self.programs.living_use();
        let endpoint = self.programs.table[t].endpoint();
        let mut written = 0;
        for container in 1..CONTAINERS as u8 {
            let Some(limited) = self.programs.table.containers.limited(container).copied() else { continue };
            let record = self.record_of(container, &limited, used[usize::from(container)]);
            let text = record.as_bytes();
            if bytes - written < text.len() as u64 {
                break;
            }
            self.programs.system.write(endpoint, address.wrapping_add(written), text)?;
            written += text.len() as u64;
        }
        Ok(written)
    }

    fn record_of(&mut self, container: u8, limited: &Limited, living: Use) -> ContainerRecord {
        let table = &self.programs.table;
        let first = table.first_of_container(container).map_or(0, |first| table[first].pid());
        let processes = table.threads_of_user(abi::container::account(container)) as u64;
        let pages = self.programs.system.vm_container(container);
        let (files, pipes) = self.programs.system.vfs_container(container);
        ContainerRecord {
            name: limited.name(),
            number: container.into(),
            first_pid: first,
            settings: *limited.settings(),
            used: Settings {
                memory_bytes: pages * PAGE_BYTES,
                processes,
                files,
                pipes,
                percent: limited.run_ns(living),
            },
        }
    }

    /// Looks who has used its share of the processor, and stops or starts the threads of those that changes for.
    pub fn look_at_containers(&mut self) {
        let used = self.programs.living_use();
        let services_ns = self.programs.services_since_look();
        let (now_ns, _) = self.programs.system.time_ns();
        let mut turns: ByContainer<Option<Turn>> = [None; CONTAINERS];
        for container in 1..CONTAINERS {
            let number = container as u8;
            if !self.programs.table.containers.limited(number).is_some_and(Limited::is_watched) {
                continue;
            }
            let services = Services { run_ns: services_ns, at_work: self.programs.is_served(number) };
            let limited = self.programs.table.containers.limited_mut(number);
            turns[container] = limited.map(|one| one.look(used[container], services, now_ns));
        }
        for t in ThreadIndex::all() {
            let turn = self.programs.container_of(t).and_then(|container| turns[usize::from(container)]);
            if let Some(turn) = turn {
                self.programs.throttle(t, turn);
            }
        }
        if turns.iter().flatten().count() > 0 && used.iter().all(|used| *used == Use::default()) {
            self.forget_ended_containers();
        }
        if self.programs.table.containers.any_watched() {
            self.plan_look();
        }
    }

    fn plan_look(&mut self) {
        let (now_ns, _) = self.programs.system.time_ns();
        self.set_timer(now_ns + LOOK_NS, Key::Containers);
    }

    /// After the death of a predecessor: all threads run, and somebody looks again.
    pub fn watch_containers_anew(&mut self) {
        for t in ThreadIndex::all() {
            self.programs.table[t].throttled = false;
        }
        if self.programs.table.containers.any_watched() {
            self.plan_look();
        }
    }
}
