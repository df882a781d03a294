//! From a message to its handler: calls of programs (`linux`), requests of services (`services`), reports of the kernel, and
//! events of vfs and tty (`events`).

mod events;
mod linux;
mod services;

use crate::pm::{Pm, Step};
use crate::state::index::ThreadIndex;
use crate::system::System;
use abi::linux::{WITH_WORD, nr};
use abi::message::{LINUX_LABELS, REPEATED};
use abi::{Errno, Message, kernel};
use server::SyncStep;

impl<S: System> Pm<S> {
    /// Handles one message. Returns the reply, unless it comes later.
    #[inline]
    pub fn handle(&mut self, message: &Message) -> SyncStep<Message> {
        let word = (message.label == nr::RT_SIGPROCMASK | WITH_WORD).then_some(message.words[5]);
        let label = message.label & !WITH_WORD;
        if matches!(label, nr::RT_SIGPROCMASK | nr::RT_SIGACTION)
            && let Some(step) = self.quick_call(message, label, word)
        {
            return match step {
                Step::Done(result) => SyncStep::Done(message.reply(result)),
                Step::Later => SyncStep::Later,
            };
        }
        if word.is_some() {
            return self.handle_slowly(&Message { label, ..*message });
        }
        match self.quick_answer(message) {
            Some(value) => SyncStep::Done(message.reply(Ok(value))),
            None => self.handle_slowly(message),
        }
    }

    /// The fast path of calls that set what their thread or process does with signals: they ask nobody and name no process, so nothing of
    /// them can be half done, or mean something else in a container. A predecessor may have died over one that comes again, so that takes the
    /// usual way, which counts deaths; and so does one that changes timers.
    #[inline]
    fn quick_call(&mut self, message: &Message, label: u32, word: Option<u64>) -> Option<Step> {
        let t = self.programs.table.find(message.source)?;
        let sets_mask = label == nr::RT_SIGPROCMASK;
        let process = &self.programs.table[self.programs.table.process_of(t)];
        if message.words[6] & REPEATED != 0 || process.is_over() || !sets_mask && process.timers != 0 {
            return None;
        }
        let entry = &mut self.programs.table[t];
        (entry.call, entry.serial, entry.outcome) = (label, message.words[6], None);
        let result = match sets_mask {
            true => self.programs.rt_sigprocmask(t, &message.words, word),
            false => self.rt_sigaction(t, &message.words),
        };
        self.programs.note_result(t, result);
        if self.programs.table.has_work(t) {
            self.finish_with_signals(message, t, result);
            return Some(Step::Later);
        }
        Some(Step::Done(result))
    }

    /// Ends a call after which signals may be delivered.
    #[cold]
    fn finish_with_signals(&mut self, message: &Message, t: ThreadIndex, result: Result<u64, Errno>) {
        self.in_progress.begin(message);
        self.finish(t, result);
        self.keep_alarm();
        self.in_progress.end(None);
    }

    /// The fast path of calls that only look something up, for threads with nothing else to do.
    #[inline]
    fn quick_answer(&mut self, message: &Message) -> Option<u64> {
        if message.label >= LINUX_LABELS {
            return None;
        }
        let thread = self.programs.table.find(message.source)?;
        let value = self.programs.table.look_up(thread, message.label)?;
        if self.programs.table.has_work(thread) {
            return None;
        }
        self.programs.leave_answer(thread, message.label, value);
        Some(value)
    }

    #[inline(never)]
    fn handle_slowly(&mut self, message: &Message) -> SyncStep<Message> {
        self.in_progress.begin(message);
        let reply =
            if message.label < LINUX_LABELS { self.program_call(message) } else { self.system_message(message) };
        self.keep_alarm();
        self.in_progress.end(None);
        reply
    }

    fn program_call(&mut self, message: &Message) -> SyncStep<Message> {
        let Some(thread) = self.programs.table.find(message.source) else {
            return SyncStep::Done(message.reply(Err(Errno::ESRCH)));
        };
        if self.programs.is_over(thread) {
            self.end_at_last(thread);
            return SyncStep::Later;
        }
        let step = match self.answer_to_repetition(message, thread) {
            Some(step) => step,
            None => {
                let entry = &mut self.programs.table[thread];
                entry.call = message.label;
                entry.serial = message.words[6] & !REPEATED;
                entry.outcome = None;
                self.linux_call(thread, message.label, &message.words)
            }
        };
        let Step::Done(result) = step else { return SyncStep::Later };
        if self.programs.table[thread].endpoint() != message.source {
            return SyncStep::Later;
        }
        self.programs.note_result(thread, result);
        if result == Err(Errno::EPERM) {
            self.programs.log_refusal(thread, message.label);
        }
        if self.programs.table.has_work(thread) || result == Err(Errno::ERESTARTSYS) {
            self.finish(thread, result);
            return SyncStep::Later;
        }
        SyncStep::Done(message.reply(self.programs.table.result_shown(thread, result)))
    }

    /// The reply to a call that a predecessor had received; `None`: it is handled as any other.
    #[inline]
    fn answer_to_repetition(&mut self, message: &Message, thread: ThreadIndex) -> Option<Step> {
        if message.words[6] & REPEATED == 0 { None } else { self.repeated(message, Some(thread)) }
    }

    fn system_message(&mut self, message: &Message) -> SyncStep<Message> {
        let program = self.programs.table.find(message.source);
        if let Some(thread) = program.filter(|thread| self.programs.is_over(*thread)) {
            self.end_at_last(thread);
            return SyncStep::Later;
        }
        if let Some(step) = self.repeated(message, program) {
            return step.map(|result| message.reply(result));
        }
        match (message.label, program) {
            (kernel::Interrupted::LABEL, Some(thread)) => self.resume_interrupted(thread),
            (kernel::Exception::LABEL, Some(thread)) => {
                self.exception(thread, &kernel::Exception::from_message(message));
            }
            (kernel::LinuxCall::LABEL, Some(thread)) => {
                self.call_reported(thread, kernel::LinuxCall::from_message(message).number);
            }
            (kernel::Interrupted::LABEL | kernel::Exception::LABEL | kernel::LinuxCall::LABEL, None) => {
                return SyncStep::Done(message.reply(Err(Errno::ESRCH)));
            }
            (kernel::Exited::LABEL, Some(thread)) => {
                let status = kernel::Exited::from_message(message).status;
                self.exit_group(self.programs.table.process_of(thread), status);
            }
            (kernel::Exited::LABEL, None) => {}
            _ => return SyncStep::Done(self.service_request(message)),
        }
        SyncStep::Later
    }
}
