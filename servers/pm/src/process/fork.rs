//! `fork`, `vfork`, `clone`, `clone3`: new processes and new threads.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limited::Limited;
use crate::state::limits;
use crate::state::scheduling::Scheduling;
use crate::state::seccomp::Seccomp;
use crate::state::signal::{Signal, action, frame::AltStack};
use crate::state::thread::Doing;
use crate::state::trace;
use crate::system::System;
use abi::container::PART_FLAGS;
use abi::linux::nr;
use abi::registers::Registers;
use abi::{Capability, Endpoint, Errno, Part, Parts, vfs};

/// Flags of `clone`.
mod flag {
    pub const EXIT_SIGNAL: u64 = 0xff;
    pub const VM: u64 = 0x100;
    pub const FS: u64 = 0x200;
    pub const FILES: u64 = 0x400;
    pub const SIGHAND: u64 = 0x800;
    pub const PIDFD: u64 = 0x1000;
    pub const PTRACE: u64 = 0x2000;
    pub const VFORK: u64 = 0x4000;
    pub const DETACHED: u64 = 0x40_0000;
    pub const PARENT: u64 = 0x8000;
    pub const THREAD: u64 = 0x1_0000;
    pub const SETTLS: u64 = 0x8_0000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const UNTRACED: u64 = 0x80_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
    pub const CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    /// What clone3 does not know, and what only clone ignores.
    pub const UNKNOWN: u64 = !0x3_ffff_ffff | 0x40_0000;
    /// A namespace of clocks, and a control group to begin in, which Skink does not have.
    pub const UNSUPPORTED: u64 = 0x80 | 0x2_0000_0000;
}

/// Sizes of `struct clone_args` that are known.
const CLONE_ARGS_BYTES: core::ops::RangeInclusive<u64> = 64..=4096;
const CLONE_ARGS_WORDS: usize = 11;
const CLONE_ARGS_KNOWN_BYTES: u64 = 8 * CLONE_ARGS_WORDS as u64;

/// What is to be made.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    flags: u64,
    /// Signal that tells the end of a process; 0: none.
    exit_signal: u64,
    /// New stack pointer; 0: the parent's.
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    thread_local: u64,
    /// Where the descriptor of the child goes.
    pidfd: u64,
    /// The containers of the child, if they are not its parent's.
    container: Option<Parts>,
    /// The limits of the container that is made for the child.
    limited: Option<Limited>,
}

impl Request {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Refuses combinations that Linux refuses, and what Skink does not have.
    fn check(&self) -> Result<(), Errno> {
        let needs = |flag, other| self.has(flag) && !self.has(other);
        let nonsense = needs(flag::THREAD, flag::SIGHAND)
            || needs(flag::SIGHAND, flag::VM)
            || (self.has(flag::CLEAR_SIGHAND) && self.has(flag::SIGHAND))
            || self.exit_signal > 64;
        // As Linux 6.1: a pidfd is of a process.
        let of_thread = self.has(flag::PIDFD) && self.has(flag::THREAD | flag::DETACHED);
        // A container is of a process, whose directories are its own where its mounts are.
        let shares_container = self.has(PART_FLAGS) && self.has(flag::THREAD | flag::PARENT)
            || self.has(Part::Mounts.flag() | Part::Users.flag()) && self.has(flag::FS);
        if nonsense || of_thread || shares_container || self.has(flag::UNSUPPORTED) {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    fn vfs_flags(&self) -> u64 {
        let bit = |flag, vfs| if self.has(flag) { vfs } else { 0 };
        bit(flag::FILES, vfs::FORK_FILES) | bit(flag::FS, vfs::FORK_FS)
    }
}

impl<S: System> Programs<S> {
    fn clone3_request(&mut self, t: ThreadIndex, address: u64, bytes: u64) -> Result<Request, Errno> {
        if bytes > *CLONE_ARGS_BYTES.end() {
            return Err(Errno::E2BIG);
        }
        if bytes < *CLONE_ARGS_BYTES.start() {
            return Err(Errno::EINVAL);
        }
        let mut known = [[0; 8]; CLONE_ARGS_WORDS];
        let given = &mut known.as_flattened_mut()[..bytes.min(CLONE_ARGS_KNOWN_BYTES) as usize];
        self.system.read(self.table[t].endpoint(), address, given)?;
        self.check_zero(t, address, CLONE_ARGS_KNOWN_BYTES..bytes)?;
        let [flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_bytes, thread_local, tids, tid_count, _] =
            known.map(u64::from_le_bytes);
        // Nobody chooses the ids of a child.
        if flags & (flag::EXIT_SIGNAL | flag::UNKNOWN) != 0
            || (stack == 0) != (stack_bytes == 0)
            || tids | tid_count != 0
        {
            return Err(Errno::EINVAL);
        }
        let stack = stack.wrapping_add(stack_bytes);
        let request =
            Request { flags, exit_signal, stack, parent_tid, child_tid, thread_local, pidfd, ..Request::default() };
        Ok(request)
    }

    /// Checks that the end of a structure, which a later Linux knows, is zero. `E2BIG`.
    fn check_zero(&mut self, t: ThreadIndex, address: u64, mut range: core::ops::Range<u64>) -> Result<(), Errno> {
        let mut piece = [0; 256];
        while !range.is_empty() {
            let piece = &mut piece[..(range.end - range.start).min(256) as usize];
            self.system.read(self.table[t].endpoint(), address.wrapping_add(range.start), piece)?;
            if piece.iter().any(|byte| *byte != 0) {
                return Err(Errno::E2BIG);
            }
            range.start += piece.len() as u64;
        }
        Ok(())
    }

    /// RLIMIT_NPROC by real user. `EAGAIN`.
    fn check_process_limit(&self, p: ProcessIndex) -> Result<(), Errno> {
        let own = &self.table[p];
        let is_within = self.table.threads_of_user(own.credentials.account()) < own.limits.soft(limits::NPROC) as usize;
        let who = &own.credentials;
        let is_exempt = !who.is_contained() && who.user.real == 0
            || who.has(Capability::SysResource)
            || who.has(Capability::SysAdmin);
        if is_exempt || is_within { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    fn enter_in_table(&mut self, t: ThreadIndex, endpoint: Endpoint, request: &Request) -> Result<ThreadIndex, Errno> {
        let child = ThreadIndex::of(endpoint).ok_or(Errno::EAGAIN)?;
        let parent = self.table.process_of(t);
        if request.has(flag::THREAD) {
            let tid = self.table.allocate_tid(child, parent)?;
            self.table.add_thread(child, endpoint, parent, tid);
            self.table[child].own_name = Some(self.table.name_of(t));
        } else {
            let process = self.new_process(parent, request)?;
            let pid = self.table[process].pid();
            self.table.add_thread(child, endpoint, process, pid);
            self.table[process].name = self.table.name_of(t);
        }
        let keeps_stack = !request.has(flag::VM) || request.has(flag::VFORK);
        let (blocked, stack, seccomp) = (self.table[t].blocked, self.table[t].stack, self.table[t].seccomp);
        let scheduling = self.table[t].scheduling.for_child();
        let entry = &mut self.table[child];
        entry.blocked = blocked;
        entry.scheduling = scheduling;
        entry.seccomp = seccomp;
        entry.stack = if keeps_stack { stack } else { AltStack::NONE };
        entry.clear_tid = if request.has(flag::CHILD_CLEARTID) { request.child_tid } else { 0 };
        Ok(child)
    }

    fn new_process(&mut self, parent: ProcessIndex, request: &Request) -> Result<ProcessIndex, Errno> {
        let container = self.container_of_child(parent, request.container)?;
        let process = self.table.allocate_process()?;
        let (now_ns, _) = self.system.time_ns();
        self.table.enter_child(process, parent, request.has(flag::PARENT), container, now_ns)?;
        self.table.renew_memory(process);
        let memory = self.table[if request.has(flag::VM) { parent } else { process }].memory;
        let child = &mut self.table[process];
        child.exit_signal = Signal::new(request.exit_signal).ok();
        child.shares_memory = request.has(flag::VM);
        child.memory = memory;
        if request.has(flag::CLEAR_SIGHAND) {
            action::reset_for_exec(&mut child.actions);
        }
        Ok(process)
    }

    /// Memory, files, registers and ids in memory for a new thread.
    fn equip(&mut self, parent: Endpoint, child: ThreadIndex, request: &Request) -> Result<(), Errno> {
        let endpoint = self.table[child].endpoint();
        let identity = self.table[self.table.process_of(child)].identity();
        self.system.vm_fork(parent, endpoint, request.has(flag::VM), identity.pid)?;
        let parts = self.table[self.table.process_of(child)].credentials.parts;
        self.system.vfs_fork(parent, endpoint, identity, request.vfs_flags(), parts)?;
        if request.stack != 0 || request.has(flag::SETTLS) {
            let mut registers = Registers::ZERO;
            self.system.registers(endpoint, &mut registers)?;
            if request.stack != 0 {
                registers.rsp = request.stack;
            }
            if request.has(flag::SETTLS) {
                registers.fs_base = request.thread_local;
            }
            self.system.set_registers(endpoint, &registers, 0)?;
        }
        let tid = self.table[child].tid();
        if request.has(flag::PARENT_SETTID) {
            let by = self.table.find(parent).map_or(tid, |t| self.table.pid_shown(self.table.process_of(t), tid));
            self.system.write(parent, request.parent_tid, &by.to_le_bytes())?;
        }
        let tid = self.table.pid_shown(self.table.process_of(child), tid).to_le_bytes();
        if request.has(flag::CHILD_SETTID) {
            // As Linux: a bad address of the child is ignored.
            let _ = self.system.write(endpoint, request.child_tid, &tid);
        }
        let nice = self.table[self.table.process_of(child)].nice;
        let parent_is_real_time =
            self.table.find(parent).is_some_and(|parent| self.table[parent].scheduling.is_real_time());
        if nice != 0 || self.table[child].scheduling != Scheduling::default() || parent_is_real_time {
            self.apply_scheduling(child);
        }
        Ok(())
    }

    /// The descriptor of a new process for its parent (`CLONE_PIDFD`): the last thing that can fail, since nobody closes it again.
    fn open_pidfd_of_child(&mut self, t: ThreadIndex, child: ThreadIndex, request: &Request) -> Result<(), Errno> {
        if !request.has(flag::PIDFD) {
            return Ok(());
        }
        if request.pidfd == 0 {
            return Err(Errno::EFAULT);
        }
        let identity = self.table[self.table.process_of(child)].identity();
        let to = self.table.requester(t);
        self.system.vfs_open_pidfd(&to, identity, 0, request.pidfd).map(drop)
    }
}

impl<S: System> Pm<S> {
    /// Any of the four calls. A signal that is pending comes first, as in Linux: one that is sent to a group reaches each process that is
    /// forked before its parent's handler runs.
    pub fn fork_call(&mut self, t: ThreadIndex, number: u32, a: &[u64; 7]) -> Step {
        if self.programs.table.has_work(t) {
            return Errno::ERESTARTSYS.into();
        }
        let request = match number {
            nr::FORK => Ok(Request { exit_signal: Signal::CHLD.number() as u64, ..Request::default() }),
            nr::VFORK => {
                let flags = flag::VM | flag::VFORK;
                Ok(Request { flags, exit_signal: Signal::CHLD.number() as u64, ..Request::default() })
            }
            // Both would have the same address.
            nr::CLONE if a[0] & flag::PIDFD != 0 && a[0] & flag::PARENT_SETTID != 0 => Err(Errno::EINVAL),
            nr::CLONE => Ok(Request {
                flags: a[0] & 0xffff_ffff & !flag::EXIT_SIGNAL,
                exit_signal: a[0] & flag::EXIT_SIGNAL,
                stack: a[1],
                parent_tid: a[2],
                child_tid: a[3],
                thread_local: a[4],
                pidfd: a[2],
                ..Request::default()
            }),
            _ => self.programs.clone3_request(t, a[0], a[1]),
        };
        self.fork_as(t, request)
    }

    /// A child in a new container with these parts and limits, or in a container with limits that there is.
    pub fn fork_into(
        &mut self,
        t: ThreadIndex,
        flags: u64,
        limited: Option<Limited>,
        container: Option<Parts>,
    ) -> Step {
        if self.programs.table.has_work(t) {
            return Errno::ERESTARTSYS.into();
        }
        let exit_signal = Signal::CHLD.number() as u64;
        self.fork_as(t, Ok(Request { flags, exit_signal, limited, container, ..Request::default() }))
    }

    fn fork_as(&mut self, t: ThreadIndex, request: Result<Request, Errno>) -> Step {
        match request.and_then(|request| self.make(t, &request).map(|tid| (request, tid))) {
            Ok((request, _)) if request.has(flag::VFORK) => Step::Later,
            Ok((_, tid)) => Step::Done(Ok(tid as u64)),
            Err(error) => error.into(),
        }
    }

    /// Creates the thread, and for a new process its entry. Returns its id.
    fn make(&mut self, t: ThreadIndex, request: &Request) -> Result<u32, Errno> {
        request.check()?;
        let parent = self.programs.table.process_of(t);
        self.programs.check_process_limit(parent)?;
        let parent_endpoint = self.programs.table[t].endpoint();
        let container = self.container_for_child(parent, request)?;
        let request = &Request { container, ..*request };
        let endpoint = self.programs.system.fork(parent_endpoint)?;
        let made = self.programs.enter_in_table(t, endpoint, request);
        let child = match made {
            Ok(child) => child,
            Err(error) => {
                self.programs.system.destroy(endpoint);
                return Err(error);
            }
        };
        let entered =
            container.map_or(Ok(()), |parts| self.programs.enter(self.programs.table.process_of(child), parts));
        let equipped = entered.and_then(|()| self.programs.equip(parent_endpoint, child, request));
        let equipped = match container {
            Some(parts) => equipped.and_then(|()| self.programs.settle_in_container(child, parts)),
            None => equipped,
        };
        let equipped = equipped.and_then(|()| self.programs.open_pidfd_of_child(t, child, request));
        if let Err(error) = equipped {
            self.undo(child, request);
            return Err(error);
        }
        if request.has(flag::VFORK) && !request.has(flag::THREAD) {
            let process = self.programs.table.process_of(child);
            self.programs.table[process].vfork_parent = Some(parent_endpoint);
        }
        let tid = self.programs.table[child].tid();
        self.tell_tracer_of_fork(t, child, request);
        if self.programs.table[child].seccomp.is_on() {
            self.programs.report_soon(child);
        }
        // From here on the child exists, and a repeated call returns it.
        self.programs.table[child].ready = true;
        if !request.has(flag::THREAD) {
            self.plan_check_of_new(self.programs.table.process_of(child));
            self.programs.count_made(child);
        }
        if request.has(flag::VFORK) {
            self.programs.table[t].doing = Doing::Vforking { child: tid };
            self.stop_in_vfork(t);
        } else {
            self.programs.note_result(t, Ok(tid.into()));
        }
        self.programs.system.start(endpoint, tid);
        Ok(tid)
    }

    /// The containers of a child that are not its parent's.
    fn container_for_child(&mut self, parent: ProcessIndex, request: &Request) -> Result<Option<Parts>, Errno> {
        if request.container.is_some() || !request.has(PART_FLAGS) {
            return Ok(request.container);
        }
        let parts = self.make_container(parent, request.flags)?;
        let Some(limited) = request.limited else { return Ok(Some(parts)) };
        let group = self.programs.table[parent].credentials.group.effective;
        let parts = self.programs.table.containers.limit(parts, limited, group);
        self.open_limited(parts).map(|()| Some(parts))
    }

    /// The tracer of a thread that has made another one is told, and traces that too, if it has wished so.
    fn tell_tracer_of_fork(&mut self, t: ThreadIndex, child: ThreadIndex, request: &Request) {
        if !self.programs.table.is_traced(t) {
            return;
        }
        let event = match request.exit_signal {
            _ if request.has(flag::VFORK) => trace::Event::Vfork,
            number if number == Signal::CHLD.number().into() => trace::Event::Fork,
            _ => trace::Event::Clone,
        };
        let is_wanted = match (request.has(flag::UNTRACED), request.has(flag::PTRACE)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        };
        self.programs.trace_child(t, child, event, is_wanted);
        if is_wanted != Some(false) {
            let tid = self.programs.table[child].tid();
            self.programs.note_event(t, event, tid.into());
        }
    }

    /// Enters a thread that pm has made, as the only one of a new child of the caller's process, with scheduling and seccomp as at the start.
    pub fn enter_child(&mut self, t: ThreadIndex, endpoint: Endpoint) -> Result<ThreadIndex, Errno> {
        let request = Request { flags: flag::CLEAR_SIGHAND, ..Request::default() };
        match self.programs.enter_in_table(t, endpoint, &request) {
            Ok(child) => {
                self.programs.table[child].scheduling = Scheduling::default();
                self.programs.table[child].seccomp = Seccomp::Off;
                Ok(child)
            }
            Err(error) => {
                self.programs.system.destroy(endpoint);
                Err(error)
            }
        }
    }

    /// Takes back a thread that could not be equipped. It has never run.
    fn undo(&mut self, child: ThreadIndex, request: &Request) {
        let process = self.programs.table.process_of(child);
        self.tear_down(child);
        if !request.has(flag::THREAD) {
            self.programs.table.release(process);
        }
    }

    /// The child of a `vfork` needs the memory of its parent no longer.
    pub fn end_vfork(&mut self, p: ProcessIndex) {
        let Some(parent) = self.programs.table[p].vfork_parent else { return };
        if let Some(t) = self.programs.table.find(parent)
            && let Doing::Vforking { child } = self.programs.table[t].doing
        {
            self.programs.note_event(t, trace::Event::VforkDone, child.into());
            self.finish(t, Ok(child as u64));
        }
        self.programs.table[p].vfork_parent = None;
    }
}
