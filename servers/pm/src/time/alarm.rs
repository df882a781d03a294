//! The kernel's one alarm, set for the earliest of all timers.

use crate::pm::Pm;
use crate::state::timers::Key;
use crate::system::System;

impl<S: System> Pm<S> {
    /// Sets the kernel's alarm when the earliest deadline has changed, or the best priority among those with timers: pm cannot know
    /// whose timer will expire while it does not run.
    pub fn keep_alarm(&mut self) {
        if !self.timers.have_changed() {
            return;
        }
        let queue = self.programs.table.best_queue(self.timers.keys());
        if let Some(deadline_ns) = self.timers.alarm_to_set(queue) {
            self.programs.system.set_alarm(deadline_ns, queue);
        }
    }

    /// The kernel's alarm has fired: does what all expired timers are for.
    pub fn alarm_fired(&mut self) {
        self.timers.alarm_fired();
        let (now_ns, _) = self.programs.system.time_ns();
        while let Some(key) = self.timers.pop_expired(now_ns) {
            match key {
                Key::Wake(thread) => self.time_is_up(thread),
                Key::Real(process) => self.real_interval_fired(process, now_ns),
                Key::Posix(process, id) => self.posix_timer_fired(process, id, now_ns),
                Key::Processor(process) => self.check_processor_time(process),
            }
        }
    }
}
