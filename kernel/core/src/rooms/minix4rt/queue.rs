//! Messages between real-time processes: one queue for each, from a common pool, with priorities that are inherited.
//!
//! A synchronous sender waits for the answer of its destination in the sense of `rt` until its request is received (`RQST`), or answered
//! (`RQRCV`); so does a receiver that waits for one process only. A queue also donates its owner the best priority in it, and of the request that the owner is
//! working on. Messages of the kernel have the best priority and are lost when the queue or the pool is full.

use crate::{
    Machine, inheritance::NOTHING, rooms::Kernel, rooms::minix4rt, rooms::minix4rt::DONE, rooms::minix4rt::Minix4rt,
    rooms::minix4rt::NOBODY, rooms::minix4rt::Outcome, rooms::minix4rt::decide, rooms::minix4rt::error,
    rooms::minix4rt::interrupt, rooms::minix4rt::process, rooms::minix4rt::process::Waiting,
};

use abi::{
    Errno, rt, rt::ANYPROC, rt::ENTRIES, rt::MESSAGE_WORDS, rt::NOWAIT, rt::QueueStatistics, rt::call, rt::flag,
    rt::message,
};
use zerocopy::FromZeros;

/// A message that waits.
#[derive(Clone, Copy, Debug, FromZeros)]
pub(super) struct Entry {
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
    words: [u64; MESSAGE_WORDS],
}

/// The pool. Number 0 ends lists.
#[derive(Debug, FromZeros)]
pub(super) struct Messages {
    entries: [Entry; ENTRIES + 1],
    /// List of those that have been used.
    free: u16,
    /// Entries that have ever been used.
    touched: u16,
    next_id: u32,
}

/// The queue of one process.
#[derive(Clone, Copy, Debug, FromZeros)]
pub(super) struct Queue {
    first: u16,
    last: u16,
    length: u16,
    sequence: u32,
    pub statistics: QueueStatistics,
}

impl Messages {
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

    /// The best priority that a queue ordered by it donates. Messages of the kernel donate none; nor do those whose senders wait, which
    /// donate themselves for as long as they do.
    fn best_of_processes(&self, queue: &Queue) -> u8 {
        let mut at = queue.first;
        while at != 0 && (self.entries[at as usize].priority == 0 || is_synchronous(&self.entries[at as usize])) {
            at = self.entries[at as usize].next;
        }
        if at == 0 { NOTHING } else { self.entries[at as usize].priority }
    }

    /// Takes the first entry behind `before` that fits out of a queue; the caller gives it back. `before` is the one before it then.
    fn remove(&mut self, queue: &mut Queue, before: &mut u16, fits: impl Fn(&Entry) -> bool) -> Option<u16> {
        let mut at = if *before == 0 { queue.first } else { self.entries[*before as usize].next };
        while at != 0 && !fits(&self.entries[at as usize]) {
            (*before, at) = (at, self.entries[at as usize].next);
        }
        if at == 0 {
            return None;
        }
        let next = self.entries[at as usize].next;
        match *before {
            0 => queue.first = next,
            before => self.entries[before as usize].next = next,
        }
        if next == 0 {
            queue.last = *before;
        }
        queue.length -= 1;
        Some(at)
    }
}

/// Its sender waits until it is received.
fn is_synchronous(entry: &Entry) -> bool {
    matches!(entry.kind as u64, message::REQUEST | message::RQRCV)
}

/// `RQST`, `ARQST`, `UPRQST`, `SIGN`, `REPLY`, `RQRCV`.
pub fn send_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64, pid: i64, timeout: i64) -> Outcome {
    let caller = kernel.node.current();
    let sender = kernel.node.threads[caller].mrt;
    let to = process::find_process(&mut kernel.mrt, pid)?;
    if to == sender {
        return Err(error(rt::error::E_BAD_DEST));
    }
    if !process::is_real_time(kernel, to) {
        return Err(error(rt::error::E_MRT_BADPTYPE));
    }
    let entry = entry(kernel, m, number, sender, to)?;
    if number == call::RQRCV && timeout == NOWAIT {
        return Err(Errno::EINVAL);
    }
    if awaits_message(&kernel.mrt, to, sender) {
        deliver_message(kernel, to, &entry);
    } else {
        enqueue_message(kernel, (number, timeout), to, entry)?;
    }
    kernel.mrt.processes[sender as usize].statistics.msgsent += 1;
    if number == call::REPLY {
        kernel.mrt.processes[sender as usize].serving = (NOTHING, NOBODY);
        lend_by_queue(kernel, sender);
    }
    wait_as_sender(kernel, m, number, to, timeout)
}

/// The message in the registers of the current thread.
fn entry<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64, sender: u16, to: u16) -> Result<Entry, Errno> {
    let thread = kernel.node.threads.running();
    let frame = &thread.frame;
    let destination = kernel.mrt.processes[to as usize].thread;
    let (kind, priority) = match number {
        call::UPRQST if !(1..=rt::PRIORITIES).contains(&frame.rdx) => return Err(error(rt::error::E_MRT_BADPRTY)),
        call::UPRQST => (message::UPRQST, frame.rdx as u8),
        call::RQST => (message::REQUEST, thread.base_queue),
        call::ARQST => (message::AREQUEST, thread.base_queue),
        call::SIGN => (message::SIGNAL, kernel.node.inheritance.base(destination)),
        call::REPLY => (message::REPLY, thread.base_queue),
        _ => (message::RQRCV, thread.base_queue),
    };
    let words = [frame.r10, frame.r8, frame.r9, frame.r12];
    Ok(Entry { sender, kind: kind as u8, priority, words, ..stamped(&mut kernel.mrt, m.ticks(), to) })
}

/// An entry with the next id and the destination's next sequence number.
fn stamped(mrt: &mut Minix4rt, sent: u64, to: u16) -> Entry {
    let queue = &mut mrt.processes[to as usize].queue;
    queue.sequence = queue.sequence.wrapping_add(1);
    let id = mrt.messages.next_id;
    mrt.messages.next_id = id.wrapping_add(1);
    Entry { id, sequence: queue.sequence, sent, ..Entry::new_zeroed() }
}

#[inline(always)]
fn awaits_message(mrt: &Minix4rt, to: u16, from: u16) -> bool {
    match mrt.processes[to as usize].waiting {
        Waiting::Receive(source) => source == NOBODY || source == from,
        _ => false,
    }
}

/// Gives a process that waits for it a message.
fn deliver_message(kernel: &mut Kernel, to: u16, entry: &Entry) {
    let slot = kernel.mrt.processes[to as usize].thread;
    kernel.mrt.processes[to as usize].queue.statistics.delivered += 1;
    if kernel.node.inheritance.waits(slot) != crate::inheritance::Wait::No {
        decide(kernel, |rt, effects| rt.give_up(slot, effects));
    }
    take_message(kernel, to, entry);
    kernel.node.threads[slot as usize].frame.rax = 0;
    minix4rt::end_real_time_wait(kernel, slot as usize);
}

/// Puts a message into the registers of its receiver, which works on it from now on.
fn take_message(kernel: &mut Kernel, to: u16, entry: &Entry) {
    kernel.mrt.processes[to as usize].statistics.msgrcvd += 1;
    let sent = kernel.mrt.system.tick_at(entry.sent);
    let sender = &kernel.mrt.processes[entry.sender as usize];
    let (pid, number, deadline) = (sender.pid as u64, sender.thread as u64, sender.attributes.deadline);
    let taken_at = kernel.node.threads.switched_at();
    let frame = &mut kernel.node.threads[kernel.mrt.processes[to as usize].thread as usize].frame;
    frame.rdi = pid | (entry.kind as u64) << 32;
    frame.rsi = entry.id as u64 | (entry.sequence as u64) << 32;
    frame.rdx = sent;
    frame.r13 = entry.priority as u64 | number << 32;
    frame.r14 = deadline;
    frame.r15 = kernel.mrt.system.laxity(entry.sent, deadline, taken_at) as u64;
    [frame.r10, frame.r8, frame.r9, frame.r12] = entry.words;
    kernel.mrt.system.messages += 1;
    let donated = match entry.kind as u64 {
        message::UPRQST | message::REQUEST | message::AREQUEST => entry.priority,
        // Its sender waits, and donates for as long as it does.
        message::RQRCV => NOTHING,
        _ => return,
    };
    kernel.mrt.processes[to as usize].serving = (donated, entry.sender);
    lend_by_queue(kernel, to);
}

/// Donates a process what its queue and its work are worth: that has changed.
#[inline(always)]
fn lend_by_queue(kernel: &mut Kernel, number: u16) {
    let process = &kernel.mrt.processes[number as usize];
    if process.attributes.mq_flags & flag::MQ_PRTYINHERIT == 0 || !kernel.mrt.inherits() {
        return;
    }
    let waiting = kernel.mrt.messages.best_of_processes(&process.queue);
    let (thread, lent) = (process.thread, waiting.min(process.serving.0));
    decide(kernel, |rt, effects| rt.donate(thread, lent, effects));
}

/// Puts a message into the queue of a process that does not wait for it; the sender of a synchronous one is its client from now on.
fn enqueue_message(kernel: &mut Kernel, (number, timeout): (u64, i64), to: u16, entry: Entry) -> Result<(), Errno> {
    let sender = entry.sender;
    if number == call::RQST && timeout == NOWAIT {
        return Err(error(rt::error::E_TRY_AGAIN));
    }
    let process = &kernel.mrt.processes[to as usize];
    if process.queue.length as u64 >= process.attributes.mq_size {
        return Err(error(rt::error::E_MRT_MQFULL));
    }
    let (client, server) = (kernel.mrt.processes[sender as usize].thread, process.thread);
    let place = kernel.mrt.messages.take().ok_or(error(rt::error::E_MRT_NOMQENT))?;
    if is_synchronous(&entry)
        && let Err(refusal) = decide(kernel, |rt, effects| rt.await_answer(client, server, effects))
    {
        kernel.mrt.messages.give_back(place);
        return Err(refusal.into());
    }
    put_message(kernel, to, place, entry);
    Ok(())
}

fn put_message(kernel: &mut Kernel, to: u16, place: u16, entry: Entry) {
    let process = &mut kernel.mrt.processes[to as usize];
    let by_priority = process.attributes.mq_flags & flag::MQ_PRTYORDER != 0;
    kernel.mrt.messages.entries[place as usize] = entry;
    kernel.mrt.messages.insert(&mut process.queue, place, by_priority);
    lend_by_queue(kernel, to);
}

/// The message of the current thread is sent: waits, if the call does.
fn wait_as_sender<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64, to: u16, timeout: i64) -> Outcome {
    let caller = kernel.node.current() as u16;
    let server = kernel.mrt.processes[to as usize].thread;
    let is_queued = kernel.node.inheritance.waits(caller) != crate::inheritance::Wait::No;
    match number {
        call::RQST if is_queued => minix4rt::wait_real_time(kernel, m, Waiting::Send(to), timeout),
        call::RQRCV if is_queued => minix4rt::wait_real_time(kernel, m, Waiting::Request(to), timeout),
        call::RQRCV => {
            decide(kernel, |rt, effects| rt.await_answer(caller, server, effects))?;
            minix4rt::wait_real_time(kernel, m, Waiting::Receive(to), timeout)
        }
        _ => DONE,
    }
}

/// `RCV`.
pub fn receive_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M, pid: i64, timeout: i64) -> Outcome {
    let caller = kernel.node.current();
    let own = kernel.node.threads[caller].mrt;
    let source = if pid == ANYPROC { NOBODY } else { process::find_process(&mut kernel.mrt, pid)? };
    let process = &mut kernel.mrt.processes[own as usize];
    let fits = |entry: &Entry| source == NOBODY || entry.sender == source;
    if let Some(place) = kernel.mrt.messages.remove(&mut process.queue, &mut 0, fits) {
        receive_entry(kernel, own, place);
        return DONE;
    }
    if timeout == NOWAIT {
        return Err(error(rt::error::E_TRY_AGAIN));
    }
    if source != NOBODY {
        if !process::is_real_time(kernel, source) {
            return Err(error(rt::error::E_MRT_BADPTYPE));
        }
        let server = kernel.mrt.processes[source as usize].thread;
        decide(kernel, |rt, effects| rt.await_answer(caller as u16, server, effects))?;
    }
    interrupt::open_line_of(&mut kernel.mrt, m, own);
    minix4rt::wait_real_time(kernel, m, Waiting::Receive(source), timeout)
}

/// A process takes this entry out of its queue; a sender that has waited for that goes on, or waits for the answer.
fn receive_entry(kernel: &mut Kernel, own: u16, place: u16) {
    let entry = kernel.mrt.messages.entries[place as usize];
    kernel.mrt.messages.give_back(place);
    let sender = &mut kernel.mrt.processes[entry.sender as usize];
    let thread = sender.thread;
    match sender.waiting {
        Waiting::Send(to) if to == own && entry.kind as u64 == message::REQUEST => {
            decide(kernel, |rt, effects| rt.give_up(thread, effects));
            kernel.node.threads[thread as usize].frame.rax = 0;
            minix4rt::end_real_time_wait(kernel, thread as usize);
        }
        Waiting::Request(to) if to == own && entry.kind as u64 == message::RQRCV => {
            sender.waiting = Waiting::Receive(own);
        }
        _ => {}
    }
    take_message(kernel, own, &entry);
    lend_by_queue(kernel, own);
}

/// The request that a process waits with is no longer in its destination's queue. (Its wait in `rt` is ended by the caller.)
pub fn withdraw_request(kernel: &mut Kernel, number: u16) {
    let (Waiting::Send(to) | Waiting::Request(to)) = kernel.mrt.processes[number as usize].waiting else { return };
    drop_messages(kernel, to, |entry| entry.sender == number && is_synchronous(entry));
}

/// Drops messages in the queue of this process.
pub fn drop_messages(kernel: &mut Kernel, number: u16, fits: impl Fn(&Entry) -> bool) {
    let (queue, mut before) = (&mut kernel.mrt.processes[number as usize].queue, 0);
    while let Some(place) = kernel.mrt.messages.remove(queue, &mut before, &fits) {
        kernel.mrt.messages.give_back(place);
    }
    lend_by_queue(kernel, number);
}

/// Drops the messages of `sender`, which ends, in the queue of a process, and what its request in work donates.
pub fn forget_sender(kernel: &mut Kernel, number: u16, sender: u16) {
    let process = &mut kernel.mrt.processes[number as usize];
    if process.serving.1 == sender {
        process.serving = (NOTHING, NOBODY);
    } else if process.queue.length == 0 {
        return;
    }
    drop_messages(kernel, number, |entry| entry.sender == sender);
}

/// A message of the kernel for a process, if that is real-time.
pub fn post_from_kernel(kernel: &mut Kernel, to: u16, kind: u64, [w0, w1, w2]: [u64; 3]) {
    if to == NOBODY || !process::is_real_time(kernel, to) {
        return;
    }
    let stamp = stamped(&mut kernel.mrt, kernel.node.threads.switched_at(), to);
    let entry = Entry { kind: kind as u8, words: [w0, w1, w2, 0], ..stamp };
    let process = &kernel.mrt.processes[to as usize];
    if awaits_message(&kernel.mrt, to, NOBODY) {
        deliver_message(kernel, to, &entry);
    } else if (process.queue.length as u64) < process.attributes.mq_size
        && let Some(place) = kernel.mrt.messages.take()
    {
        put_message(kernel, to, place, entry);
    }
}
