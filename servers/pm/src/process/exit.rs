//! The end of threads and processes.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::core_dump::CoreDump;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::process::Life;
use crate::state::signal::{SigInfo, Signal, action};
use crate::state::thread::Doing;
use crate::state::time::CLOCK_TICK_NS;
use crate::state::timers::Key;
use crate::state::wait::{Ending, Event};
use crate::system::{End, System};
use abi::endpoint::slot;
use abi::{Endpoint, Errno};

impl<S: System> Programs<S> {
    fn child_info(&self, p: ProcessIndex, event: Event) -> SigInfo {
        let (code, status) = event.code_and_status();
        let child = &self.table[p];
        let ticks = child.ended.run_ns / CLOCK_TICK_NS;
        let pid = child.parent().map_or(child.pid(), |parent| self.table.pid_shown(parent, child.pid()));
        SigInfo::child(code, pid, child.credentials.user.real, status, ticks)
    }

    /// Frees a zombie; adds what it has used to its parent's children.
    pub fn reap(&mut self, p: ProcessIndex) {
        let used = self.table[p].ended.plus(self.table[p].of_children);
        if let Some(parent) = self.table[p].parent() {
            self.table[parent].of_children = self.table[parent].of_children.plus(used);
        }
        self.table.release(p);
    }

    /// The only thread of a process, if nothing keeps it from running soon.
    fn thread_to_end_later(&self, p: ProcessIndex) -> Option<ThreadIndex> {
        let process = &self.table[p];
        let t = process.main().filter(|_| process.threads() == 1)?;
        let is_new = process.ending().is_none() && process.stopped().is_none() && process.core_dump == CoreDump::None;
        let thread = &self.table[t];
        let is_free = thread.trace.is_none() && !thread.throttled && !thread.scheduling.is_real_time();
        let is_kept =
            matches!(thread.doing, Doing::Held | Doing::Ended(_) | Doing::Vforking { .. } | Doing::Executing(_));
        (is_new && is_free && thread.ready && !thread.leaving && !is_kept).then_some(t)
    }

    /// Whether the process of a thread is dumped or about to end: nothing that the thread asks for matters any more.
    pub fn is_over(&self, t: ThreadIndex) -> bool {
        self.table[self.table.process_of(t)].is_over()
    }

    /// What a thread that is about to end has used is its process's and its container's, once.
    fn settle_use(&mut self, t: ThreadIndex) {
        if self.table[t].settled {
            return;
        }
        let used = self.system.thread_use(self.table[t].endpoint());
        let p = self.table.process_of(t);
        self.table[p].ended.add_thread(&used);
        self.settle_use_of_container(t, &used);
        self.table[t].settled = true;
    }
}

impl<S: System> Pm<S> {
    /// `exit(status)`: one thread; the process with its last one.
    pub fn exit_thread(&mut self, t: ThreadIndex, status: u64) -> Step {
        let p = self.programs.table.process_of(t);
        if self.programs.table[p].threads() == 1 {
            self.exit_group(p, status);
        } else {
            self.programs.clear_tid(t);
            self.end_traced(t, Ending::Exited(status as u8));
            self.tear_down(t);
        }
        Step::Later
    }

    /// `exit_group(status)`.
    pub fn exit_group(&mut self, p: ProcessIndex, status: u64) {
        self.end_process(p, Ending::Exited(status as u8));
    }

    /// Ends a process: at once, or when it is next to run, so that those who wait for its messages are told first (ADR 118).
    pub fn end_process(&mut self, p: ProcessIndex, ending: Ending) {
        if !self.programs.table[p].enrolled || !self.puts_off_end(p, ending) {
            self.exit_process(p, ending);
        }
    }

    /// Tells m3ipc of the end of a process, and lets its thread ask for the end when it is next to run. Returns false if it must end at once:
    /// m3ipc is busy, or it may take long until the thread runs.
    #[cold]
    #[inline(never)]
    fn puts_off_end(&mut self, p: ProcessIndex, ending: Ending) -> bool {
        let (Some(m3ipc), Some(t)) = (self.programs.m3ipc, self.programs.thread_to_end_later(p)) else { return false };
        let m3ipc = Endpoint::current(m3ipc.slot());
        let endpoint = self.programs.table[t].endpoint();
        // From here on a successor ends it at once.
        self.programs.table.begin_end(p, ending);
        let Ok(peer) = self.programs.system.interrupt(endpoint) else { return false };
        let is_of_program = [Endpoint::NONE, Endpoint::ANY].contains(&peer) || peer.is_application();
        let may_leave = is_of_program || [slot::PM, m3ipc.slot()].contains(&peer.slot());
        if !may_leave || !self.programs.system.m3ipc_ends(m3ipc, endpoint) {
            return false;
        }
        self.forget_timer(t);
        self.programs.yield_thread(t);
        if matches!(self.programs.table[t].doing, Doing::Running) {
            self.programs.end_wait(t);
        } else {
            self.programs.table[t].doing = Doing::Running;
            self.programs.system.reply(endpoint, Err(Errno::EINTR));
        }
        true
    }

    /// A thread of a process that runs no more has something to say: if its end was put off, it is time for that.
    #[cold]
    #[inline(never)]
    pub fn end_at_last(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        if let Some(ending) = self.programs.table[p].ending() {
            self.exit_process(p, ending);
        }
    }

    /// Ends a process with all its threads; leaves a zombie, or nothing when the parent ignores SIGCHLD.
    pub fn exit_process(&mut self, p: ProcessIndex, ending: Ending) {
        if !self.programs.table[p].is_alive() {
            return;
        }
        let (pid, part) = (self.programs.table[p].pid(), self.programs.table[p].core_dump);
        self.programs.table.begin_end(p, ending);
        let tracer = self.programs.table.tracer_of(p).filter(|_| self.programs.table[p].parent().is_some());
        let tracer = tracer.filter(|tracer| self.programs.table[p].parent() != Some(*tracer));
        // Before its threads are gone: a pm that dies meanwhile could not tell any more.
        if let Some(tracer) = tracer {
            self.programs.table.hold_zombie(p, tracer);
        }
        while let Some(t) = self.programs.table[p].main() {
            if self.programs.table[p].shares_memory {
                self.programs.clear_tid(t);
            }
            self.end_traced(t, ending);
            self.tear_down(t);
        }
        self.cancel_intervals(p);
        self.undo_semaphores(p);
        self.programs.table.make_zombie(p, ending);
        self.settle_end(p, ending);
        self.end_dump(pid, part, ending);
    }

    /// Reports the end of a process to parent, children, vfs and tty. May be done again.
    pub fn settle_end(&mut self, p: ProcessIndex, ending: Ending) {
        if self.programs.table.is_first_of_container(p) {
            self.end_container(p);
        }
        self.programs.table.strip_zombie(p);
        self.end_vfork(p);
        self.leave_jobs(p);
        self.end_tracer(p);
        self.reparent_children(p);
        if self.programs.table.is_first(p) {
            self.first_process_ended(ending);
        } else if self.programs.table[p].core_dump.is_writing() {
            // Nobody knows of it.
            self.programs.reap(p);
        } else {
            self.tell_parent_of_end(p, ending);
        }
        self.programs.table.end_settled(p);
    }

    /// The first process of a container has ended: so do all others of it.
    fn end_container(&mut self, first: ProcessIndex) {
        for member in self.programs.table.positions() {
            let table = &self.programs.table;
            if member != first && table.is_used(member) && table.sees(first, member) && table[member].is_alive() {
                self.exit_process(member, Ending::Killed(Signal::KILL));
            }
        }
    }

    /// Takes a thread out of the kernel, vm, vfs and the tables.
    pub fn tear_down(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        let endpoint = self.programs.table[t].endpoint();
        self.programs.table[t].leaving = true;
        if matches!(self.programs.table[t].doing, Doing::Running) {
            self.programs.system.stop(endpoint);
        }
        self.forget_timer(t);
        self.programs.release_robust_futexes(t);
        self.programs.system.vfs_exit(endpoint);
        if let Some(memory) = self.programs.system.vm_exit(endpoint) {
            self.programs.table[p].ended.memory = memory;
        }
        self.programs.settle_use(t);
        self.programs.system.destroy(endpoint);
        if self.programs.table[p].enrolled {
            self.programs.tell_m3ipc();
        }
        self.programs.table[t].doing = Doing::Running;
        let was_real_time = self.programs.table[t].scheduling.is_real_time();
        self.programs.table.remove_thread(t);
        if was_real_time {
            self.requeue_timers(t);
        }
    }

    /// Cancels the timer of a thread's sleep or timed wait.
    pub fn forget_timer(&mut self, t: ThreadIndex) {
        self.timers.cancel(Key::Wake(t));
    }

    fn reparent_children(&mut self, p: ProcessIndex) {
        let Some(heir) = self.programs.table.adopter_of_children(p) else { return };
        while let Some(child) = self.programs.table.first_child(p) {
            self.programs.forget_answers_of_all(child);
            self.programs.table.reparent(child, heir);
            self.programs.table[child].exit_signal = Some(Signal::CHLD);
            self.loosen_group(child, p, None);
            if let Life::Zombie(ending) = self.programs.table[child].life() {
                if self.programs.table.sees(child, heir) {
                    self.tell_parent_of_end(child, ending);
                } else {
                    // Its container has ended, whose first process would have waited for it.
                    self.programs.reap(child);
                }
            } else if let Some(signal) = self.programs.table[child].control.parent_death {
                // Standard signals are always accepted; Linux drops a real-time one for which there is no room, too.
                let _ = self.send(child, None, SigInfo::kernel(signal));
            }
        }
    }

    pub fn tell_parent_of_end(&mut self, p: ProcessIndex, ending: Ending) {
        if let Some(tracer) = self.programs.table[p].last_tracer() {
            let info = self.programs.child_info(p, Event::Ended(ending));
            return self.tell_tracer(tracer, info);
        }
        let Some(parent) = self.programs.table[p].parent() else { return };
        let action = &self.programs.table[parent].actions[Signal::CHLD.index()];
        let by_chld = self.programs.table[p].exit_signal == Some(Signal::CHLD);
        let vanishes = by_chld && action.keeps_no_zombies();
        let quiet = by_chld && action.is_ignored();
        let info = self.programs.child_info(p, Event::Ended(ending));
        let signal = self.programs.table[p].exit_signal.filter(|_| !quiet);
        if vanishes {
            self.programs.reap(p);
        }
        // Pending before the wait ends, so that the handler runs when the waiting thread comes back with its pid.
        let queued = signal.filter(|signal| {
            // A real-time signal that exceeds the queue is lost, as in Linux; a standard one never does.
            self.enqueue(parent, None, info.with_signal(*signal)).unwrap_or(false)
        });
        self.serve_waits(parent);
        if let Some(signal) = queued {
            self.act_on(parent, None, signal);
        }
    }

    /// A child was stopped or continued.
    pub fn tell_parent_of_change(&mut self, p: ProcessIndex, event: Event) {
        let Some(parent) = self.programs.table[p].parent() else { return };
        let action = &self.programs.table[parent].actions[Signal::CHLD.index()];
        if !action.has(action::NO_CHILD_STOP) {
            let info = self.programs.child_info(p, event);
            // SIGCHLD is a standard signal: there is always room.
            let queued = self.enqueue(parent, None, info).unwrap_or(false);
            self.serve_waits(parent);
            if queued {
                self.act_on(parent, None, Signal::CHLD);
            }
        } else {
            self.serve_waits(parent);
        }
    }

    /// Powers the machine off: a system cannot run without its first process.
    fn first_process_ended(&mut self, ending: Ending) {
        let system = &mut self.programs.system;
        match ending {
            Ending::Exited(status) => system.log(format_args!("the first process has exited with status {status}")),
            Ending::Killed(signal) | Ending::Dumped(signal) => {
                system.log(format_args!("signal {} has killed the first process", signal.number()))
            }
        }
        self.begin_shutdown(End::PowerOff);
    }
}
