//! Delivering pending signals to a thread that is about to run: default actions, handlers, and the fate of the call that
//! was interrupted.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::signal::exception::{describe, trap};
use crate::state::signal::frame::{self, Contents};
use crate::state::signal::{Action, Disposition, Set, SigInfo, Signal, action, number};
use crate::state::thread::{Delivery, Doing};
use crate::state::wait::Ending;
use crate::system::System;
use abi::linux::nr;
use abi::registers::Registers;
use abi::{Endpoint, Errno, Word, kernel};

/// Calls that a handler always ends with EINTR, SA_RESTART or not (signal(7)).
const NEVER_RESTARTED: [u32; 13] = [
    nr::POLL,
    nr::PPOLL,
    nr::SELECT,
    nr::PSELECT6,
    nr::EPOLL_WAIT,
    nr::EPOLL_PWAIT,
    nr::PAUSE,
    nr::RT_SIGSUSPEND,
    nr::RT_SIGTIMEDWAIT,
    nr::NANOSLEEP,
    nr::CLOCK_NANOSLEEP,
    nr::MSGRCV,
    nr::RESTART_SYSCALL,
];

/// Calls that a handler never ends: with a signal pending they have not begun.
const ALWAYS_RESTARTED: [u32; 4] = [nr::FORK, nr::VFORK, nr::CLONE, nr::CLONE3];

/// Calls that `restart_syscall` goes on with.
const SLEEPS: [u32; 3] = [nr::NANOSLEEP, nr::CLOCK_NANOSLEEP, nr::RESTART_SYSCALL];

/// Length of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;

/// Lets the thread make its call again when it runs.
pub fn repeat_call(registers: &mut Registers) {
    registers.rip = registers.rip.wrapping_sub(SYSCALL_BYTES);
    registers.rax = registers.linux_call;
}

/// Makes an interrupted call ready for its repetition or its EINTR. `handler`: the handler that runs now, if any. Returns whether it is
/// repeated.
fn settle_call(registers: &mut Registers, handler: Option<&Action>) -> bool {
    let in_call = registers.linux_call != u64::MAX;
    if !in_call || Result::from_word(registers.rax) != Err(Errno::ERESTARTSYS) {
        return false;
    }
    let call = registers.linux_call as u32;
    let repeat = handler.is_none_or(|action| action.has(action::RESTART) && !NEVER_RESTARTED.contains(&call))
        || ALWAYS_RESTARTED.contains(&call);
    if repeat {
        repeat_call(registers);
    } else {
        registers.rax = Err(Errno::EINTR).to_word();
    }
    repeat
}

impl<S: System> Programs<S> {
    /// Begins to give a thread a signal that has been taken for it. It ends with `delivery` set to `None`.
    pub fn begin_delivery(&mut self, t: ThreadIndex, info: SigInfo) {
        let action = self.table[self.table.process_of(t)].actions[info.signal.index()];
        let entry = &self.table[t];
        let (blocked, restore_mask, stack) = (entry.blocked, entry.restore_mask, entry.stack);
        self.delivery = Some(Delivery { thread: t, info, action, blocked, restore_mask, stack });
    }

    /// Makes a signal pending again that pm's predecessor was giving a thread when it died.
    pub fn undo_delivery(&mut self) {
        let Some(before) = self.delivery.take() else { return };
        let t = before.thread;
        if self.table[t].endpoint() == Endpoint::NONE {
            return;
        }
        let p = self.table.process_of(t);
        self.table[p].actions[before.info.signal.index()] = before.action;
        let thread = &mut self.table[t];
        (thread.blocked, thread.restore_mask, thread.stack) = (before.blocked, before.restore_mask, before.stack);
        // A real-time signal whose place in the queue has been taken is lost, as one that comes too late.
        let _ = self.table.add_signal(p, Some(t), before.info);
    }

    fn note_handler_entered(&mut self, t: ThreadIndex, signal: Signal, action: &Action) {
        let p = self.table.process_of(t);
        if action.has(action::RESET_HAND) {
            self.table[p].actions[signal.index()].handler = 0;
        }
        let thread = &mut self.table[t];
        thread.restore_mask = None;
        thread.blocked = action.mask_in_handler(thread.blocked, signal);
        if action.has(action::ON_STACK) && thread.stack.flags & frame::SS_AUTODISARM != 0 {
            thread.stack = frame::AltStack::NONE;
        }
    }

    fn restore_frame(&mut self, t: ThreadIndex, registers: &mut Registers) -> Result<(), Errno> {
        // The handler's return has taken the return address off the stack: rsp is at the ucontext.
        let context = self.read_bytes::<{ frame::CONTEXT_BYTES }>(t, registers.rsp)?;
        let restored = frame::restore(&context, registers);
        registers.extended_valid = (restored.fpu != 0) as u64;
        if restored.fpu != 0 {
            self.system.read(self.table[t].endpoint(), restored.fpu, &mut registers.extended)?;
            frame::sanitize_fpu(&mut registers.extended);
        }
        self.table[t].blocked = restored.mask;
        // As Linux: an unusable stack in the frame leaves the present one.
        if let Ok(stack) = self.table[t].stack.replaced(restored.stack, registers.rsp) {
            self.table[t].stack = stack;
        }
        Ok(())
    }

    fn log_fatal(&mut self, t: ThreadIndex, exception: &kernel::Exception, signal: Signal) {
        let process = &self.table[self.table.process_of(t)];
        self.system.log(format_args!(
            "{}[{}] killed by {}: vector {} at ip {:#x}, address {:#x}",
            process.name.text(),
            process.pid(),
            if signal == Signal::KILL { "lack of memory" } else { number::name(signal) },
            exception.vector,
            exception.ip,
            exception.address
        ));
    }
}

impl<S: System> Pm<S> {
    /// Ends the call in which a thread waits with `result`, delivering signals on the way.
    pub fn finish(&mut self, thread: ThreadIndex, result: Result<u64, Errno>) {
        let process = self.programs.table.process_of(thread);
        self.programs.note_result(thread, result);
        if self.programs.table[process].core_dump.is_dumped() {
            self.programs.table[thread].doing = Doing::Running;
            return;
        }
        if self.programs.table.is_traced(thread) {
            // Whatever is to be done with the result is done when it comes back with it.
            self.programs.table[thread].doing = Doing::Ended(result);
            return self.let_return(thread, self.programs.table.result_shown(thread, result));
        }
        if self.programs.table[process].stopped().is_some() {
            self.programs.table[thread].doing = Doing::Ended(result);
            return;
        }
        self.programs.table[thread].doing = Doing::Running;
        let endpoint = self.programs.table[thread].endpoint();
        let result = self.programs.table.result_shown(thread, result);
        // A call to be repeated needs its registers changed even when no signal is left, and so does a thread whose calls are to be reported.
        let needs_registers = result == Err(Errno::ERESTARTSYS) || self.programs.table[thread].seccomp.is_on();
        if !self.programs.table.has_work(thread) && !needs_registers {
            self.programs.system.reply(endpoint, result);
            return;
        }
        let mut registers = Registers::ZERO;
        if self.programs.system.registers(endpoint, &mut registers).is_ok() {
            registers.rax = result.to_word();
            registers.linux_call = self.programs.table[thread].call as u64;
            self.deliver(thread, &mut registers, Some(result));
        }
    }

    /// Handles `Interrupted` of a thread: delivers its pending signals and resumes it, or holds it while its process is stopped.
    pub fn resume_interrupted(&mut self, thread: ThreadIndex) {
        if self.programs.table.is_traced(thread) {
            return self.traced_interrupted(thread);
        }
        if self.programs.table[self.programs.table.process_of(thread)].stopped().is_some() {
            self.programs.table[thread].doing = Doing::Held;
            return;
        }
        self.programs.table[thread].doing = Doing::Running;
        let mut registers = Registers::ZERO;
        if self.programs.system.registers(self.programs.table[thread].endpoint(), &mut registers).is_ok() {
            self.deliver(thread, &mut registers, None);
        }
    }

    /// Resumes a thread that waits for pm with `registers`, after delivering its pending signals. `result`: the result of
    /// the call it made to pm, `None` when it reported `Interrupted`.
    pub fn deliver(&mut self, t: ThreadIndex, registers: &mut Registers, result: Option<Result<u64, Errno>>) {
        let p = self.programs.table.process_of(t);
        if self.programs.table.is_traced(t) {
            return self.resume_to_report(t, registers);
        }
        loop {
            let open = Set(!self.programs.table[t].blocked.0);
            let Some(taken) = self.programs.table.take_signal(t, open) else { break };
            let info = self.signal_taken(p, taken);
            let action = self.programs.table[p].actions[info.signal.index()];
            match self.programs.table.disposition(p, info.signal) {
                Disposition::Ignore => {}
                Disposition::Terminate => return self.end_by_signal(t, info),
                Disposition::Handle => return self.enter_handler(t, registers, info, &action),
                Disposition::Stop => {
                    // It counts as kept already, so that stopping does not interrupt it.
                    self.programs.table[t].doing = result.map_or(Doing::Held, Doing::Ended);
                    self.stop_by(p, info.signal);
                    if self.programs.table[p].stopped().is_some() {
                        return;
                    }
                    self.programs.table[t].doing = Doing::Running;
                }
            }
        }
        self.run_on(t, registers);
    }

    /// Lets a thread run for which no signal is left.
    pub fn run_on(&mut self, t: ThreadIndex, registers: &mut Registers) {
        let is_sleep = SLEEPS.contains(&(registers.linux_call as u32));
        if settle_call(registers, None) && is_sleep && self.programs.table[t].restart.is_some() {
            registers.rax = nr::RESTART_SYSCALL.into();
        }
        if let Some(mask) = self.programs.table[t].restore_mask.take() {
            self.programs.table[t].blocked = mask;
        }
        self.resume(t, registers);
    }

    /// Lets the handler of a signal run.
    pub fn enter_handler(&mut self, t: ThreadIndex, registers: &mut Registers, info: SigInfo, action: &Action) {
        settle_call(registers, Some(action));
        self.programs.table[t].restart = None;
        self.programs.begin_delivery(t, info);
        let thread = &self.programs.table[t];
        let frame = frame::build(&Contents {
            info,
            mask: thread.restore_mask.unwrap_or(thread.blocked),
            stack: thread.stack,
            on_stack: action.has(action::ON_STACK),
            restorer: action.restorer,
            trap: thread.trap,
            registers,
        });
        let written = self.programs.system.write(self.programs.table[t].endpoint(), frame.address, frame.bytes());
        if written.is_err() || !action.has(action::RESTORER) {
            self.programs.delivery = None;
            return self.no_room_for_frame(t, info.signal);
        }
        frame::enter_handler(registers, &frame, &info, action.handler);
        self.programs.note_handler_entered(t, info.signal, action);
        if !self.stops_in_handler(t, registers) {
            self.resume(t, registers);
        }
        self.programs.delivery = None;
    }

    /// Handles a frame that cannot be written: SIGSEGV, or the end of the process if SIGSEGV was to be delivered.
    fn no_room_for_frame(&mut self, t: ThreadIndex, signal: Signal) {
        if signal == Signal::SEGV {
            return self.end_by_signal(t, SigInfo::kernel(Signal::SEGV));
        }
        self.force(t, SigInfo::kernel(Signal::SEGV));
    }

    /// Lets the thread run with these registers. What else is pending is delivered before its first instruction.
    fn resume(&mut self, t: ThreadIndex, registers: &mut Registers) {
        if self.stops_before(t, registers) {
            return;
        }
        let endpoint = self.programs.table[t].endpoint();
        if self.programs.table.has_work(t) {
            // The endpoint is valid as long as its thread is in the table.
            let _ = self.programs.system.interrupt(endpoint);
        }
        let bits = self.as_continued(t, registers);
        if self.programs.system.set_registers(endpoint, registers, bits).is_err() {
            self.exit_process(self.programs.table.process_of(t), Ending::Killed(Signal::SEGV));
        }
    }

    /// `rt_sigreturn`: back to what the frame holds. A frame that cannot be read is SIGSEGV.
    pub fn rt_sigreturn(&mut self, t: ThreadIndex) -> Step {
        let mut registers = Registers::ZERO;
        let endpoint = self.programs.table[t].endpoint();
        if self.programs.system.registers(endpoint, &mut registers).is_err() {
            return Step::Later;
        }
        if self.programs.restore_frame(t, &mut registers).is_err() {
            self.force(t, SigInfo::kernel(Signal::SEGV));
            return Step::Later;
        }
        registers.linux_call = u64::MAX;
        self.deliver(t, &mut registers, None);
        Step::Later
    }

    /// `kernel::Exception`: an instruction of the program failed.
    pub fn exception(&mut self, t: ThreadIndex, exception: &kernel::Exception) {
        let info = describe(exception);
        self.programs.table[t].trap = trap(exception);
        let p = self.programs.table.process_of(t);
        if self.programs.table.is_traced(t) && info.signal != Signal::KILL {
            return self.traced_exception(t, info);
        }
        if !self.programs.table[p].actions[info.signal.index()].is_handled() {
            self.programs.log_fatal(t, exception, info.signal);
        }
        if info.signal == Signal::KILL {
            self.exit_process(p, Ending::Killed(Signal::KILL));
        } else {
            self.force(t, info);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted(call: u32, rax: Result<u64, Errno>) -> Registers {
        Registers { rip: 0x1002, rax: rax.to_word(), linux_call: call as u64, ..Registers::ZERO }
    }

    fn settled(call: u32, handler_flags: Option<u64>) -> (u64, u64) {
        let mut registers = interrupted(call, Err(Errno::ERESTARTSYS));
        let action = handler_flags.map(|flags| Action { handler: 9, flags, ..Action::default() });
        settle_call(&mut registers, action.as_ref());
        (registers.rip, registers.rax)
    }

    #[test]
    fn calls_are_repeated_as_sa_restart_says() {
        let eintr = Err(Errno::EINTR).to_word();
        assert_eq!(settled(nr::READ, None), (0x1000, nr::READ as u64));
        assert_eq!(settled(nr::READ, Some(action::RESTART)), (0x1000, nr::READ as u64));
        assert_eq!(settled(nr::READ, Some(0)), (0x1002, eintr));
        assert_eq!(settled(nr::POLL, Some(action::RESTART)), (0x1002, eintr));
        assert_eq!(settled(nr::POLL, None), (0x1000, nr::POLL as u64));
    }

    #[test]
    fn finished_calls_and_user_code_are_left_alone() {
        let mut done = interrupted(nr::READ, Ok(5));
        settle_call(&mut done, None);
        assert_eq!((done.rip, done.rax), (0x1002, 5));
        let mut user = Registers { linux_call: u64::MAX, ..interrupted(0, Err(Errno::ERESTARTSYS)) };
        settle_call(&mut user, None);
        assert_eq!(user.rip, 0x1002);
    }
}
