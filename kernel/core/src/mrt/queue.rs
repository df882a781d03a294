//! Messages between real-time processes (R26 to R29): one queue for each, from a common pool, with priorities that are inherited.
//!
//! A synchronous sender waits for the answer of its destination in the sense of `rt` until its request is received (`RQST`), or answered
//! (`RQRCV`); so does who receives from one process only. What else a queue lends its owner is the best of what is in it and of what the owner is
//! working on. Messages of the kernel have the best priority and are lost when the queue or the pool is full.

use abi::{
    Errno,
    rt::{self, ANYPROC, ENTRIES, MESSAGE_WORDS, NOWAIT, QueueStatistics, call, flag, message},
};

use crate::{Machine, Node, rt::NOTHING};

use super::{DONE, NOBODY, Outcome, error, process::Waiting};

/// A message that waits.
#[derive(Clone, Copy, Debug)]
struct Entry {
    next: u16,
    /// The sending process; `NOBODY`: the kernel.
    sender: u16,
    /// One of `message`.
    kind: u8,
    priority: u8,
    id: u32,
    sequence: u32,
    /// When it was sent, in ticks of the machine.
    sent: u64,
    /// Pid of the sender, 0: the kernel.
    pid: i64,
    deadline: u64,
    words: [u64; MESSAGE_WORDS],
}

impl Entry {
    const EMPTY: Entry = Entry {
        next: 0,
        sender: NOBODY,
        kind: 0,
        priority: 0,
        id: 0,
        sequence: 0,
        sent: 0,
        pid: 0,
        deadline: 0,
        words: [0; MESSAGE_WORDS],
    };
}

/// The pool. Number 0 ends lists.
#[derive(Debug)]
pub(super) struct Messages {
    entries: [Entry; ENTRIES + 1],
    /// List of those that have been used.
    free: u16,
    /// Entries that have ever been used.
    touched: u16,
    next_id: u32,
}

/// The queue of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    first: u16,
    last: u16,
    length: u16,
    sequence: u32,
    pub statistics: QueueStatistics,
}

impl Queue {
    pub const EMPTY: Queue = Queue { first: 0, last: 0, length: 0, sequence: 0, statistics: QueueStatistics::ZERO };
}

impl Messages {
    pub const fn new() -> Messages {
        Messages { entries: [Entry::EMPTY; ENTRIES + 1], free: 0, touched: 0, next_id: 0 }
    }

    fn take(&mut self) -> Option<u16> {
        if self.free != 0 {
            let next = self.entries[self.free as usize].next;
            return Some(core::mem::replace(&mut self.free, next));
        }
        if self.touched as usize == ENTRIES {
            return None;
        }
        self.touched += 1;
        Some(self.touched)
    }

    fn give_back(&mut self, entry: u16) {
        self.entries[entry as usize].next = core::mem::replace(&mut self.free, entry);
    }

    /// Puts an entry at the end of a queue, or (`by_priority`) behind all that are as good or better.
    fn insert(&mut self, queue: &mut Queue, entry: u16, by_priority: bool) {
        let priority = self.entries[entry as usize].priority;
        let worst = self.entries[queue.last as usize].priority;
        let mut after = queue.last;
        if by_priority && queue.last != 0 && worst > priority {
            after = 0;
            let mut next = queue.first;
            while self.entries[next as usize].priority <= priority {
                after = next;
                next = self.entries[next as usize].next;
            }
        }
        let next = match after {
            0 => core::mem::replace(&mut queue.first, entry),
            _ => core::mem::replace(&mut self.entries[after as usize].next, entry),
        };
        self.entries[entry as usize].next = next;
        if next == 0 {
            queue.last = entry;
        }
        queue.length += 1;
        queue.statistics.enqueued += 1;
        queue.statistics.maxinq = queue.statistics.maxinq.max(queue.length as u64);
    }

    /// The best priority in a queue that is ordered by it; messages of the kernel, whose priority is 0, lend nothing.
    fn best_of_processes(&self, queue: &Queue) -> u8 {
        let mut at = queue.first;
        while at != 0 && self.entries[at as usize].priority == 0 {
            at = self.entries[at as usize].next;
        }
        if at == 0 { NOTHING } else { self.entries[at as usize].priority }
    }

    /// Takes the first entry that fits out of a queue; the caller gives it back.
    fn remove(&mut self, queue: &mut Queue, fits: impl Fn(&Entry) -> bool) -> Option<u16> {
        let (mut before, mut at) = (0, queue.first);
        while at != 0 && !fits(&self.entries[at as usize]) {
            (before, at) = (at, self.entries[at as usize].next);
        }
        if at == 0 {
            return None;
        }
        let next = self.entries[at as usize].next;
        match before {
            0 => queue.first = next,
            _ => self.entries[before as usize].next = next,
        }
        if next == 0 {
            queue.last = before;
        }
        queue.length -= 1;
        Some(at)
    }
}

/// Does its receiver work on it until it answers?
fn is_request(kind: u8) -> bool {
    matches!(kind as u64, message::UPRQST | message::REQUEST | message::AREQUEST | message::RQRCV)
}

impl Node {
    /// `RQST`, `ARQST`, `UPRQST`, `SIGN`, `REPLY`, `RQRCV`.
    pub(super) fn send_real_time<M: Machine>(&mut self, m: &mut M, number: u64, pid: i64, timeout: i64) -> Outcome {
        let caller = self.current;
        let sender = self.threads[caller].mrt;
        let to = self.find_process(pid)?;
        if to == sender {
            return Err(error(rt::error::E_BAD_DEST));
        }
        if !self.is_real_time(to) {
            return Err(error(rt::error::E_MRT_BADPTYPE));
        }
        let entry = self.entry(m, number, sender, to)?;
        if number == call::RQRCV && timeout == NOWAIT {
            return Err(Errno::EINVAL);
        }
        if self.awaits_message(to, sender) {
            self.deliver_message(to, &entry);
        } else {
            self.enqueue_message((number, timeout), to, entry)?;
        }
        self.mrt.processes[sender as usize].statistics.msgsent += 1;
        if number == call::REPLY {
            self.mrt.processes[sender as usize].serving = NOTHING;
            self.lend_by_queue(sender);
        }
        self.wait_as_sender(m, number, to, timeout)
    }

    /// The message in the registers of the current thread.
    fn entry<M: Machine>(&mut self, m: &mut M, number: u64, sender: u16, to: u16) -> Result<Entry, Errno> {
        let thread = &self.threads[self.current];
        let frame = &thread.frame;
        let destination = self.mrt.processes[to as usize].thread;
        let (kind, priority) = match number {
            call::UPRQST if !(1..=rt::PRIORITIES).contains(&frame.rdx) => return Err(error(rt::error::E_MRT_BADPRTY)),
            call::UPRQST => (message::UPRQST, frame.rdx as u8),
            call::RQST => (message::REQUEST, thread.base_queue),
            call::ARQST => (message::AREQUEST, thread.base_queue),
            call::SIGN => (message::SIGNAL, self.mrt.rt.base(destination)),
            call::REPLY => (message::REPLY, thread.base_queue),
            _ => (message::RQRCV, thread.base_queue),
        };
        let process = &self.mrt.processes[sender as usize];
        let words = [frame.r10, frame.r8, frame.r9, frame.r12];
        let (pid, deadline) = (process.pid, process.attributes.deadline);
        Ok(Entry { sender, kind: kind as u8, priority, pid, deadline, words, ..self.stamped(m.ticks(), to) })
    }

    /// An entry with the next id and the destination's next sequence number.
    fn stamped(&mut self, sent: u64, to: u16) -> Entry {
        let queue = &mut self.mrt.processes[to as usize].queue;
        queue.sequence = queue.sequence.wrapping_add(1);
        let id = self.mrt.messages.next_id;
        self.mrt.messages.next_id = id.wrapping_add(1);
        Entry { id, sequence: queue.sequence, sent, ..Entry::EMPTY }
    }

    #[inline(always)]
    fn awaits_message(&self, to: u16, from: u16) -> bool {
        match self.mrt.processes[to as usize].waiting {
            Waiting::Receive(source) => source == NOBODY || source == from,
            _ => false,
        }
    }

    /// Gives a process that waits for it a message.
    fn deliver_message(&mut self, to: u16, entry: &Entry) {
        let slot = self.mrt.processes[to as usize].thread;
        self.mrt.processes[to as usize].queue.statistics.delivered += 1;
        if self.mrt.rt.waits(slot) != crate::rt::Wait::No {
            self.decide(|rt, effects| rt.give_up(slot, effects));
        }
        self.take_message(to, entry);
        self.threads[slot as usize].frame.rax = 0;
        self.end_real_time_wait(slot as usize);
    }

    /// Puts a message into the registers of its receiver, which works on it from now on.
    fn take_message(&mut self, to: u16, entry: &Entry) {
        let system = &self.mrt.system;
        let process = &mut self.mrt.processes[to as usize];
        process.statistics.msgrcvd += 1;
        let sent = system.tick_at(entry.sent);
        let number = self.mrt.processes[entry.sender as usize].thread as u64;
        let frame = &mut self.threads[self.mrt.processes[to as usize].thread as usize].frame;
        frame.rdi = entry.pid as u64 | (entry.kind as u64) << 32;
        frame.rsi = entry.id as u64 | (entry.sequence as u64) << 32;
        frame.rdx = sent;
        frame.r13 = entry.priority as u64 | number << 32;
        frame.r14 = entry.deadline;
        frame.r15 = self.mrt.system.laxity(entry.sent, entry.deadline, self.switched_at) as u64;
        [frame.r10, frame.r8, frame.r9, frame.r12] = entry.words;
        self.mrt.system.messages += 1;
        if is_request(entry.kind) {
            self.mrt.processes[to as usize].serving = entry.priority;
            self.lend_by_queue(to);
        }
    }

    /// What the queue and the work of a process lend it has changed.
    #[inline(always)]
    fn lend_by_queue(&mut self, number: u16) {
        let process = &self.mrt.processes[number as usize];
        if process.attributes.mq_flags & flag::MQ_PRTYINHERIT == 0 || !self.mrt.inherits() {
            return;
        }
        let waiting = self.mrt.messages.best_of_processes(&process.queue);
        let (thread, lent) = (process.thread, waiting.min(process.serving));
        self.decide(|rt, effects| rt.lend(thread, lent, effects));
    }

    /// Puts a message into the queue of a process that does not wait for it; the sender of a synchronous one is its client from now on.
    fn enqueue_message(&mut self, (number, timeout): (u64, i64), to: u16, entry: Entry) -> Result<(), Errno> {
        let sender = entry.sender;
        let synchronous = number == call::RQST || number == call::RQRCV;
        if number == call::RQST && timeout == NOWAIT {
            return Err(error(rt::error::E_TRY_AGAIN));
        }
        let process = &self.mrt.processes[to as usize];
        if process.queue.length as u64 >= process.attributes.mq_size {
            return Err(error(rt::error::E_MRT_MQFULL));
        }
        let (client, server) = (self.mrt.processes[sender as usize].thread, process.thread);
        let place = self.mrt.messages.take().ok_or(error(rt::error::E_MRT_NOMQENT))?;
        if synchronous && let Err(refusal) = self.decide(|rt, effects| rt.await_answer(client, server, effects)) {
            self.mrt.messages.give_back(place);
            return Err(refusal.into());
        }
        self.put_message(to, place, entry);
        Ok(())
    }

    fn put_message(&mut self, to: u16, place: u16, entry: Entry) {
        let process = &mut self.mrt.processes[to as usize];
        let by_priority = process.attributes.mq_flags & flag::MQ_PRTYORDER != 0;
        self.mrt.messages.entries[place as usize] = entry;
        self.mrt.messages.insert(&mut process.queue, place, by_priority);
        self.lend_by_queue(to);
    }

    /// The message of the current thread is on its way: waits, if the call does.
    fn wait_as_sender<M: Machine>(&mut self, m: &mut M, number: u64, to: u16, timeout: i64) -> Outcome {
        let caller = self.current as u16;
        let server = self.mrt.processes[to as usize].thread;
        let is_queued = self.mrt.rt.waits(caller) != crate::rt::Wait::No;
        match number {
            call::RQST if is_queued => self.wait_real_time(m, Waiting::Send(to), timeout),
            call::RQRCV if is_queued => self.wait_real_time(m, Waiting::Request(to), timeout),
            call::RQRCV => {
                self.decide(|rt, effects| rt.await_answer(caller, server, effects))?;
                self.wait_real_time(m, Waiting::Receive(to), timeout)
            }
            _ => DONE,
        }
    }

    /// `RCV`.
    pub(super) fn receive_real_time<M: Machine>(&mut self, m: &mut M, pid: i64, timeout: i64) -> Outcome {
        let caller = self.current;
        let own = self.threads[caller].mrt;
        let source = if pid == ANYPROC { NOBODY } else { self.find_process(pid)? };
        let process = &mut self.mrt.processes[own as usize];
        let fits = |entry: &Entry| source == NOBODY || entry.sender == source;
        if let Some(place) = self.mrt.messages.remove(&mut process.queue, fits) {
            self.receive_entry(own, place);
            return DONE;
        }
        if timeout == NOWAIT {
            return Err(error(rt::error::E_TRY_AGAIN));
        }
        if source != NOBODY {
            if !self.is_real_time(source) {
                return Err(error(rt::error::E_MRT_BADPTYPE));
            }
            let server = self.mrt.processes[source as usize].thread;
            self.decide(|rt, effects| rt.await_answer(caller as u16, server, effects))?;
        }
        self.open_line_of(m, own);
        self.wait_real_time(m, Waiting::Receive(source), timeout)
    }

    /// A process takes this entry out of its queue; a sender that has waited for that goes on, or waits for the answer.
    fn receive_entry(&mut self, own: u16, place: u16) {
        let entry = self.mrt.messages.entries[place as usize];
        self.mrt.messages.give_back(place);
        let sender = &mut self.mrt.processes[entry.sender as usize];
        let thread = sender.thread;
        match sender.waiting {
            Waiting::Send(to) if to == own && entry.kind as u64 == message::REQUEST => {
                self.decide(|rt, effects| rt.give_up(thread, effects));
                self.threads[thread as usize].frame.rax = 0;
                self.end_real_time_wait(thread as usize);
            }
            Waiting::Request(to) if to == own && entry.kind as u64 == message::RQRCV => {
                sender.waiting = Waiting::Receive(own);
            }
            _ => {}
        }
        self.take_message(own, &entry);
        self.lend_by_queue(own);
    }

    /// The request that a process waits with is no longer in its destination's queue. (Its wait in `rt` is ended by the caller.)
    pub(super) fn withdraw_request(&mut self, number: u16) {
        let (Waiting::Send(to) | Waiting::Request(to)) = self.mrt.processes[number as usize].waiting else { return };
        let synchronous = |kind: u8| matches!(kind as u64, message::REQUEST | message::RQRCV);
        let queue = &mut self.mrt.processes[to as usize].queue;
        let own = |entry: &Entry| entry.sender == number && synchronous(entry.kind);
        if let Some(place) = self.mrt.messages.remove(queue, own) {
            self.mrt.messages.give_back(place);
            self.lend_by_queue(to);
        }
    }

    /// Nobody will receive what is in the queue of this process.
    pub(super) fn empty_queue(&mut self, number: u16) {
        let queue = &mut self.mrt.processes[number as usize].queue;
        while let Some(place) = self.mrt.messages.remove(queue, |_| true) {
            self.mrt.messages.give_back(place);
        }
    }

    /// A message of the kernel for a process, if that is real-time.
    pub(super) fn post_from_kernel(&mut self, to: u16, kind: u64, [w0, w1, w2]: [u64; 3]) {
        if to == NOBODY || !self.is_real_time(to) {
            return;
        }
        let entry = Entry { kind: kind as u8, words: [w0, w1, w2, 0], ..self.stamped(self.switched_at, to) };
        let process = &self.mrt.processes[to as usize];
        if self.awaits_message(to, NOBODY) {
            self.deliver_message(to, &entry);
        } else if (process.queue.length as u64) < process.attributes.mq_size
            && let Some(place) = self.mrt.messages.take()
        {
            self.put_message(to, place, entry);
        }
    }
}
