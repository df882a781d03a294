//! The kernel's one alarm, set for the earliest of all timers.

use crate::pm::Pm;
use crate::state::index::ThreadIndex;
use crate::state::timers::Key;
use crate::system::System;
use abi::call::REAL_TIME;

impl<S: System> Pm<S> {
    /// Sets the kernel's alarm when the earliest deadline has changed, or the best priority among those with timers: pm cannot know
    /// whose timer will expire while it does not run.
    pub fn keep_alarm(&mut self) {
        if !self.timers.have_changed() {
            return;
        }
        if let Some((deadline_ns, queue)) = self.timers.alarm_to_set() {
            let queue = if queue == 0 { 0 } else { REAL_TIME + u64::from(queue) };
            self.programs.system.set_alarm(deadline_ns, queue);
        }
    }

    /// Sets the timer of a key.
    pub fn set_timer(&mut self, deadline_ns: u64, key: Key) {
        let queue = self.queue_of_timer(key);
        self.timers.set(deadline_ns, key, queue);
    }

    /// The real-time queue of whoever waits for a timer; 0: time shared.
    fn queue_of_timer(&self, key: Key) -> u8 {
        match key {
            Key::Wake(t) => self.programs.table.queue_of_thread(t),
            Key::Real(p) => self.programs.table.queue_of_process(p),
            Key::Posix(timer) => {
                let process = self.posix_timers.get(timer).map(|timer| timer.process);
                process.map_or(0, |p| self.programs.table.queue_of_process(p))
            }
            // In a better queue than the thread that does not wait.
            Key::Processor(p) if self.real_time_limit(p).is_some() => {
                self.programs.table.queue_of_process(p).saturating_sub(1)
            }
            Key::Processor(_) | Key::PosixProcessor(_) | Key::Containers => 0,
        }
    }

    /// A thread is scheduled in another way, or is about to end: its timers, and those of its process, may be for another queue.
    pub fn requeue_timers(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        self.timers.requeue(Key::Wake(t), self.programs.table.queue_of_thread(t));
        let queue = self.programs.table.queue_of_process(p);
        self.timers.requeue(Key::Real(p), queue);
        self.for_each_posix_timer(p, |pm, timer| pm.timers.requeue(Key::Posix(timer), queue));
    }

    /// The kernel's alarm has fired: does what all expired timers are for.
    pub fn alarm_fired(&mut self) {
        self.timers.alarm_fired();
        let (now_ns, _) = self.programs.system.time_ns();
        while let Some(key) = self.timers.pop_expired(now_ns) {
            match key {
                Key::Wake(thread) => self.time_is_up(thread),
                Key::Real(process) => self.real_interval_fired(process),
                Key::Posix(timer) | Key::PosixProcessor(timer) => self.posix_timer_fired(timer),
                Key::Processor(process) => self.check_processor_time(process),
                Key::Containers => self.look_at_containers(),
            }
        }
    }
}
