//! Recovery: pm has died, and its tables are as it left them (docs/book/recovery.md).
//!
//! Every outstanding call and report is sent again: calls of programs with their number and the mark `REPEATED`, reports of the kernel
//! unchanged. So what pm must know of each call is how far it came:
//!
//! * not begun (its number is not `Thread::serial`): it is handled as any other;
//! * finished (`Thread::outcome`): it gets the same result;
//! * waiting (`Thread::doing`): it continues to wait;
//! * in progress: what it had begun is undone or completed here, and it is handled again, but only once: a call over which pm dies
//!   twice fails with `EIO`, and the program of a report is killed.
//!
//! Whatever can be half done is marked before it begins: threads that are being created (`ready`) or torn down (`leaving`), processes
//! that end (`ending`), programs that are being replaced (`Doing::Executing` until the new one runs). Lists, counts and timers are
//! rebuilt from the entries. The kernel tells which threads exist.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, THREADS, ThreadIndex};
use crate::state::process::Life;
use crate::state::signal::Signal;
use crate::state::thread::Doing;
use crate::state::timers::Key;
use crate::state::wait::Ending;
use crate::system::System;
use abi::endpoint::SERVICE_SLOTS;
use abi::message::{LINUX_LABELS, REPEATED};
use abi::{Endpoint, Errno, Message};
use alloc::vec::Vec;
use recover::in_progress::Recall;

/// Deaths of exhausted memory after which pm ends processes.
const DEATHS_BEFORE_SHEDDING: u32 = 2;

impl<S: System> Programs<S> {
    /// pm may have died between a change of ids and the moment when the kernel was to forget the former ones.
    fn forget_all_answers(&mut self) {
        for p in self.table.positions() {
            if self.table.is_used(p) {
                self.forget_answers_of_all(p);
            }
        }
    }

    /// What a call in progress may not have told vfs and vm.
    fn tell_again(&mut self, t: ThreadIndex) {
        let p = self.table.process_of(t);
        let (session, group) = (self.table[p].session(), self.table[p].group());
        self.tell_id_map(p);
        self.tell_credentials(p);
        self.tell_vfs_limits(p);
        self.system.vfs_set_session(self.table[t].endpoint(), session, group, session == self.table[p].pid());
    }

    #[expect(clippy::disallowed_methods, reason = "recovery, before any call: bounded by the table")]
    pub fn all_processes(&self) -> Vec<ProcessIndex> {
        self.table.processes().map(|(index, _)| index).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "recovery, before any call: bounded by the table")]
    pub fn threads_of(&self, p: ProcessIndex) -> Vec<ThreadIndex> {
        self.table.threads_of(p).collect()
    }
}

impl<S: System> Pm<S> {
    /// Makes the predecessor's tables consistent.
    pub fn recover(&mut self) {
        let in_progress = self.in_progress.died(|_| true);
        self.programs.table.rebuild();
        self.programs.filters.recount();
        self.semaphores.recount();
        self.messages.recount();
        self.segments.recount();
        self.programs.undo_delivery();
        self.programs.system.settle_clock();
        self.release_segments_again();
        self.compare_with_kernel();
        self.end_what_was_ending();
        self.programs.forget_all_answers();
        self.set_timers_anew();
        self.watch_containers_anew();
        self.wake_whoever_has_work();
        self.serve_waiting_again();
        if let Some(t) = in_progress.and_then(|message| self.programs.table.find(message.source)) {
            self.programs.tell_again(t);
        }
        self.forget_ended_containers();
        self.fetch_what_was_missed();
        // What the predecessor had notified m3ipc of, it may not have received.
        self.programs.tell_m3ipc();
    }

    /// pm has died of exhausted memory twice, and its tables are what they were: ends the processes of the user who has most, since it would
    /// only die again. `exhaustions`: how often it has died so.
    pub fn shed_load(&mut self, exhaustions: u32) {
        if exhaustions < self.exhaustions + DEATHS_BEFORE_SHEDDING {
            return;
        }
        self.exhaustions = exhaustions;
        let Some(user) = self.programs.table.largest_user() else { return };
        self.programs
            .system
            .log(format_args!("memory was exhausted twice: ends the processes of the user who has most"));
        for p in self.programs.table.positions() {
            let process = &self.programs.table[p];
            if process.is_alive() && process.credentials.account() == user {
                self.exit_process(p, Ending::Killed(Signal::KILL));
            }
        }
    }

    /// Destroys threads that are in no table, since they were being created, and entries whose threads no longer exist.
    fn compare_with_kernel(&mut self) {
        for slot in SERVICE_SLOTS..SERVICE_SLOTS + THREADS {
            let real = self.programs.system.thread_at(slot);
            let Some(t) = ThreadIndex::of(Endpoint::current(slot)) else { continue };
            let known = Some(self.programs.table[t].endpoint()).filter(|endpoint| *endpoint != Endpoint::NONE);
            if known != real
                && let Some(stranger) = real
            {
                self.programs.system.vfs_exit(stranger);
                self.programs.system.vm_exit(stranger);
                self.programs.system.destroy(stranger);
            }
            if known.is_some() && (known != real || !self.programs.table[t].ready || self.programs.table[t].leaving) {
                self.take_down(t);
            }
        }
    }

    /// Ends a thread that was incomplete, and its process with the last thread.
    fn take_down(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        let (was_made, is_last) = (self.programs.table[t].ready, self.programs.table[p].threads() == 1);
        match (is_last, self.programs.table[p].ending()) {
            (true, None) if was_made => self.exit_process(p, Ending::Killed(Signal::KILL)),
            (true, None) => {
                self.tear_down(t);
                self.programs.table.withdraw(p);
            }
            _ => self.tear_down(t),
        }
    }

    fn end_what_was_ending(&mut self) {
        for p in self.programs.all_processes() {
            match (self.programs.table[p].life(), self.programs.table[p].ending()) {
                (Life::Alive, Some(ending)) => self.exit_process(p, ending),
                (Life::Zombie(_), Some(ending)) => self.settle_end(p, ending),
                // Its entry was begun, and no thread created.
                (Life::Alive, None) if self.programs.table[p].threads() == 0 => self.programs.table.withdraw(p),
                _ => {}
            }
        }
    }

    fn set_timers_anew(&mut self) {
        self.timers.clear();
        self.timers.alarm_fired();
        for p in self.programs.all_processes() {
            if let Some(deadline) = self.programs.table[p].intervals.real.deadline_ns {
                self.set_timer(deadline, Key::Real(p));
            }
            self.relist_posix_timers(p);
            self.plan_processor_check(p);
            for t in self.programs.threads_of(p) {
                if let Some(deadline) = self.programs.table[t].doing.deadline_ns() {
                    self.set_timer(deadline, Key::Wake(t));
                }
            }
        }
    }

    /// Repeats what threads may have missed: that they may run, have signals, or that a child has changed state.
    fn wake_whoever_has_work(&mut self) {
        for p in self.programs.all_processes() {
            self.end_dumps_without_writer(p);
            if self.programs.table[p].core_dump.is_dumped() {
                continue;
            }
            for t in self.programs.threads_of(p) {
                self.programs.system.start(self.programs.table[t].endpoint(), self.programs.table[t].tid());
                if self.programs.is_new_of_pm(p) && matches!(self.programs.table[t].doing, Doing::Executing(_)) {
                    // It has made no call that the kernel could repeat.
                    let _ = self.programs.execute_again(t);
                }
            }
            for t in self.programs.threads_of(p) {
                self.programs.tell_watchers_again(t);
            }
            self.repeat_signals(p);
            if self.programs.table[p].is_alive() {
                self.serve_waits(p);
            }
        }
    }

    fn repeat_signals(&mut self, p: ProcessIndex) {
        if !self.programs.table[p].is_alive() {
            return;
        }
        if self.programs.table[p].stopped().is_none() || self.programs.table[p].pending.set().contains(Signal::KILL) {
            return self.reconsider(p);
        }
        for t in self.programs.threads_of(p) {
            if matches!(self.programs.table[t].doing, Doing::Running) {
                self.programs.interrupt(t);
            }
        }
    }

    /// Fetches the events whose notifications were lost with the predecessor.
    fn fetch_what_was_missed(&mut self) {
        self.file_events();
        self.terminal_events();
        self.handle_notification(Endpoint::CLOCK);
    }

    /// The outcome of a message of this program, or of a service, that pm's predecessor had received; `None`: it is handled as any other.
    #[inline]
    pub fn repeated(&mut self, message: &Message, program: Option<ThreadIndex>) -> Option<Step> {
        if self.in_progress.recall(message) == Recall::Refused {
            return Some(self.refuse(message));
        }
        let t = program?;
        let entry = &self.programs.table[t];
        if message.label >= LINUX_LABELS || entry.serial != message.words[6] & !REPEATED {
            return None;
        }
        if let Some(result) = entry.outcome {
            if entry.seccomp.is_on() {
                self.finish(t, result);
                return Some(Step::Later);
            }
            return Some(Step::Done(result));
        }
        match entry.doing {
            Doing::Running => None,
            Doing::Executing(_) => Some(self.programs.execute_again(t)),
            _ => Some(Step::Later),
        }
    }

    /// Refuses a message over which pm has died twice.
    #[cold]
    fn refuse(&mut self, message: &Message) -> Step {
        self.programs.system.log(format_args!("refused a message over which it has died twice"));
        if message.label < LINUX_LABELS || !message.source.is_application() {
            return Errno::EIO.into();
        }
        if let Some(t) = self.programs.table.find(message.source) {
            self.exit_process(self.programs.table.process_of(t), Ending::Killed(Signal::KILL));
        }
        Step::Later
    }
}
