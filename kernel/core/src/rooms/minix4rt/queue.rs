//! Messages between real-time processes (R26 to R29): one queue for each, from a common pool, with priorities that are inherited.
//!
//! A synchronous sender waits for the answer of its destination in the sense of `rt` until its request is received (`RQST`), or answered
//! (`RQRCV`); so does who receives from one process only. What else a queue lends its owner is the best of what is in it and of what the owner is
//! working on. Messages of the kernel have the best priority and are lost when the queue or the pool is full.

use crate::{
    Machine, Node, inheritance::NOTHING, rooms::minix4rt, rooms::minix4rt::DONE, rooms::minix4rt::NOBODY,
    rooms::minix4rt::Outcome, rooms::minix4rt::decide, rooms::minix4rt::error, rooms::minix4rt::interrupt,
    rooms::minix4rt::process, rooms::minix4rt::process::Waiting,
};

use abi::{
    Errno, rt, rt::ANYPROC, rt::ENTRIES, rt::MESSAGE_WORDS, rt::NOWAIT, rt::QueueStatistics, rt::call, rt::flag,
    rt::message,
};

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
    pub const NEW: Messages = Messages { entries: [Entry::EMPTY; ENTRIES + 1], free: 0, touched: 0, next_id: 0 };

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

/// `RQST`, `ARQST`, `UPRQST`, `SIGN`, `REPLY`, `RQRCV`.
pub fn send_real_time<M: Machine>(node: &mut Node, m: &mut M, number: u64, pid: i64, timeout: i64) -> Outcome {
    let caller = node.current();
    let sender = node.threads[caller].mrt;
    let to = process::find_process(node, pid)?;
    if to == sender {
        return Err(error(rt::error::E_BAD_DEST));
    }
    if !process::is_real_time(node, to) {
        return Err(error(rt::error::E_MRT_BADPTYPE));
    }
    let entry = entry(node, m, number, sender, to)?;
    if number == call::RQRCV && timeout == NOWAIT {
        return Err(Errno::EINVAL);
    }
    if awaits_message(node, to, sender) {
        deliver_message(node, to, &entry);
    } else {
        enqueue_message(node, (number, timeout), to, entry)?;
    }
    node.minix4rt.processes[sender as usize].statistics.msgsent += 1;
    if number == call::REPLY {
        node.minix4rt.processes[sender as usize].serving = NOTHING;
        lend_by_queue(node, sender);
    }
    wait_as_sender(node, m, number, to, timeout)
}

/// The message in the registers of the current thread.
fn entry<M: Machine>(node: &mut Node, m: &mut M, number: u64, sender: u16, to: u16) -> Result<Entry, Errno> {
    let thread = node.threads.running();
    let frame = &thread.frame;
    let destination = node.minix4rt.processes[to as usize].thread;
    let (kind, priority) = match number {
        call::UPRQST if !(1..=rt::PRIORITIES).contains(&frame.rdx) => return Err(error(rt::error::E_MRT_BADPRTY)),
        call::UPRQST => (message::UPRQST, frame.rdx as u8),
        call::RQST => (message::REQUEST, thread.base_queue),
        call::ARQST => (message::AREQUEST, thread.base_queue),
        call::SIGN => (message::SIGNAL, node.inheritance.base(destination)),
        call::REPLY => (message::REPLY, thread.base_queue),
        _ => (message::RQRCV, thread.base_queue),
    };
    let process = &node.minix4rt.processes[sender as usize];
    let words = [frame.r10, frame.r8, frame.r9, frame.r12];
    let (pid, deadline) = (process.pid, process.attributes.deadline);
    Ok(Entry { sender, kind: kind as u8, priority, pid, deadline, words, ..stamped(node, m.ticks(), to) })
}

/// An entry with the next id and the destination's next sequence number.
fn stamped(node: &mut Node, sent: u64, to: u16) -> Entry {
    let queue = &mut node.minix4rt.processes[to as usize].queue;
    queue.sequence = queue.sequence.wrapping_add(1);
    let id = node.minix4rt.messages.next_id;
    node.minix4rt.messages.next_id = id.wrapping_add(1);
    Entry { id, sequence: queue.sequence, sent, ..Entry::EMPTY }
}

#[inline(always)]
fn awaits_message(node: &Node, to: u16, from: u16) -> bool {
    match node.minix4rt.processes[to as usize].waiting {
        Waiting::Receive(source) => source == NOBODY || source == from,
        _ => false,
    }
}

/// Gives a process that waits for it a message.
fn deliver_message(node: &mut Node, to: u16, entry: &Entry) {
    let slot = node.minix4rt.processes[to as usize].thread;
    node.minix4rt.processes[to as usize].queue.statistics.delivered += 1;
    if node.inheritance.waits(slot) != crate::inheritance::Wait::No {
        decide(node, |rt, effects| rt.give_up(slot, effects));
    }
    take_message(node, to, entry);
    node.threads[slot as usize].frame.rax = 0;
    minix4rt::end_real_time_wait(node, slot as usize);
}

/// Puts a message into the registers of its receiver, which works on it from now on.
fn take_message(node: &mut Node, to: u16, entry: &Entry) {
    let system = &node.minix4rt.system;
    let process = &mut node.minix4rt.processes[to as usize];
    process.statistics.msgrcvd += 1;
    let sent = system.tick_at(entry.sent);
    let number = node.minix4rt.processes[entry.sender as usize].thread as u64;
    let taken_at = node.threads.switched_at();
    let frame = &mut node.threads[node.minix4rt.processes[to as usize].thread as usize].frame;
    frame.rdi = entry.pid as u64 | (entry.kind as u64) << 32;
    frame.rsi = entry.id as u64 | (entry.sequence as u64) << 32;
    frame.rdx = sent;
    frame.r13 = entry.priority as u64 | number << 32;
    frame.r14 = entry.deadline;
    frame.r15 = node.minix4rt.system.laxity(entry.sent, entry.deadline, taken_at) as u64;
    [frame.r10, frame.r8, frame.r9, frame.r12] = entry.words;
    node.minix4rt.system.messages += 1;
    if is_request(entry.kind) {
        node.minix4rt.processes[to as usize].serving = entry.priority;
        lend_by_queue(node, to);
    }
}

/// What the queue and the work of a process lend it has changed.
#[inline(always)]
fn lend_by_queue(node: &mut Node, number: u16) {
    let process = &node.minix4rt.processes[number as usize];
    if process.attributes.mq_flags & flag::MQ_PRTYINHERIT == 0 || !node.minix4rt.inherits() {
        return;
    }
    let waiting = node.minix4rt.messages.best_of_processes(&process.queue);
    let (thread, lent) = (process.thread, waiting.min(process.serving));
    decide(node, |rt, effects| rt.donate(thread, lent, effects));
}

/// Puts a message into the queue of a process that does not wait for it; the sender of a synchronous one is its client from now on.
fn enqueue_message(node: &mut Node, (number, timeout): (u64, i64), to: u16, entry: Entry) -> Result<(), Errno> {
    let sender = entry.sender;
    let synchronous = number == call::RQST || number == call::RQRCV;
    if number == call::RQST && timeout == NOWAIT {
        return Err(error(rt::error::E_TRY_AGAIN));
    }
    let process = &node.minix4rt.processes[to as usize];
    if process.queue.length as u64 >= process.attributes.mq_size {
        return Err(error(rt::error::E_MRT_MQFULL));
    }
    let (client, server) = (node.minix4rt.processes[sender as usize].thread, process.thread);
    let place = node.minix4rt.messages.take().ok_or(error(rt::error::E_MRT_NOMQENT))?;
    if synchronous && let Err(refusal) = decide(node, |rt, effects| rt.await_answer(client, server, effects)) {
        node.minix4rt.messages.give_back(place);
        return Err(refusal.into());
    }
    put_message(node, to, place, entry);
    Ok(())
}

fn put_message(node: &mut Node, to: u16, place: u16, entry: Entry) {
    let process = &mut node.minix4rt.processes[to as usize];
    let by_priority = process.attributes.mq_flags & flag::MQ_PRTYORDER != 0;
    node.minix4rt.messages.entries[place as usize] = entry;
    node.minix4rt.messages.insert(&mut process.queue, place, by_priority);
    lend_by_queue(node, to);
}

/// The message of the current thread is on its way: waits, if the call does.
fn wait_as_sender<M: Machine>(node: &mut Node, m: &mut M, number: u64, to: u16, timeout: i64) -> Outcome {
    let caller = node.current() as u16;
    let server = node.minix4rt.processes[to as usize].thread;
    let is_queued = node.inheritance.waits(caller) != crate::inheritance::Wait::No;
    match number {
        call::RQST if is_queued => minix4rt::wait_real_time(node, m, Waiting::Send(to), timeout),
        call::RQRCV if is_queued => minix4rt::wait_real_time(node, m, Waiting::Request(to), timeout),
        call::RQRCV => {
            decide(node, |rt, effects| rt.await_answer(caller, server, effects))?;
            minix4rt::wait_real_time(node, m, Waiting::Receive(to), timeout)
        }
        _ => DONE,
    }
}

/// `RCV`.
pub fn receive_real_time<M: Machine>(node: &mut Node, m: &mut M, pid: i64, timeout: i64) -> Outcome {
    let caller = node.current();
    let own = node.threads[caller].mrt;
    let source = if pid == ANYPROC { NOBODY } else { process::find_process(node, pid)? };
    let process = &mut node.minix4rt.processes[own as usize];
    let fits = |entry: &Entry| source == NOBODY || entry.sender == source;
    if let Some(place) = node.minix4rt.messages.remove(&mut process.queue, fits) {
        receive_entry(node, own, place);
        return DONE;
    }
    if timeout == NOWAIT {
        return Err(error(rt::error::E_TRY_AGAIN));
    }
    if source != NOBODY {
        if !process::is_real_time(node, source) {
            return Err(error(rt::error::E_MRT_BADPTYPE));
        }
        let server = node.minix4rt.processes[source as usize].thread;
        decide(node, |rt, effects| rt.await_answer(caller as u16, server, effects))?;
    }
    interrupt::open_line_of(node, m, own);
    minix4rt::wait_real_time(node, m, Waiting::Receive(source), timeout)
}

/// A process takes this entry out of its queue; a sender that has waited for that goes on, or waits for the answer.
fn receive_entry(node: &mut Node, own: u16, place: u16) {
    let entry = node.minix4rt.messages.entries[place as usize];
    node.minix4rt.messages.give_back(place);
    let sender = &mut node.minix4rt.processes[entry.sender as usize];
    let thread = sender.thread;
    match sender.waiting {
        Waiting::Send(to) if to == own && entry.kind as u64 == message::REQUEST => {
            decide(node, |rt, effects| rt.give_up(thread, effects));
            node.threads[thread as usize].frame.rax = 0;
            minix4rt::end_real_time_wait(node, thread as usize);
        }
        Waiting::Request(to) if to == own && entry.kind as u64 == message::RQRCV => {
            sender.waiting = Waiting::Receive(own);
        }
        _ => {}
    }
    take_message(node, own, &entry);
    lend_by_queue(node, own);
}

/// The request that a process waits with is no longer in its destination's queue. (Its wait in `rt` is ended by the caller.)
pub fn withdraw_request(node: &mut Node, number: u16) {
    let (Waiting::Send(to) | Waiting::Request(to)) = node.minix4rt.processes[number as usize].waiting else { return };
    let synchronous = |kind: u8| matches!(kind as u64, message::REQUEST | message::RQRCV);
    let queue = &mut node.minix4rt.processes[to as usize].queue;
    let own = |entry: &Entry| entry.sender == number && synchronous(entry.kind);
    if let Some(place) = node.minix4rt.messages.remove(queue, own) {
        node.minix4rt.messages.give_back(place);
        lend_by_queue(node, to);
    }
}

/// Nobody will receive what is in the queue of this process.
pub fn empty_queue(node: &mut Node, number: u16) {
    let queue = &mut node.minix4rt.processes[number as usize].queue;
    while let Some(place) = node.minix4rt.messages.remove(queue, |_| true) {
        node.minix4rt.messages.give_back(place);
    }
}

/// A message of the kernel for a process, if that is real-time.
pub fn post_from_kernel(node: &mut Node, to: u16, kind: u64, [w0, w1, w2]: [u64; 3]) {
    if to == NOBODY || !process::is_real_time(node, to) {
        return;
    }
    let entry = Entry { kind: kind as u8, words: [w0, w1, w2, 0], ..stamped(node, node.threads.switched_at(), to) };
    let process = &node.minix4rt.processes[to as usize];
    if awaits_message(node, to, NOBODY) {
        deliver_message(node, to, &entry);
    } else if (process.queue.length as u64) < process.attributes.mq_size
        && let Some(place) = node.minix4rt.messages.take()
    {
        put_message(node, to, place, entry);
    }
}
