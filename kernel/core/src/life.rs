//! The life of threads: created, forked, started, stopped, interrupted, destroyed; and their registers.
//!
//! Whoever may make these calls (pm, rs) may make them on any thread. Death is complete before the call returns: peers
//! get `EDEADSRCDST`, timers, interrupts, grants and pending notifications of the dead are gone, and only what is meant
//! for a successor (senders to `Endpoint::current`, when one is expected) waits on. Neighbours: `ipc`, `report`, `call`
//! (permissions), `copy` (moves registers to and from the caller).

use abi::{
    Endpoint, Errno,
    call::{NO_QUANTUM, REAL_TIME},
    endpoint::{FIRST_SERVICE, SERVICE_SLOTS, SLOTS, slot},
    privilege::Privileges,
    registers::Registers,
};
use zerocopy::IntoBytes;

use crate::{
    Frame, Machine, Node, Thread,
    alarm::Kind,
    call::Stop,
    frame,
    inject::ordered_death,
    rt::{NOTHING, Wait},
    scheduler,
    thread::{Form, Then, attention, blocked},
};

/// `Schedule`: keeps the base queue.
const KEEP: u64 = u64::MAX;
/// `Schedule`: the real-time queues. The best is the kernel's timer's.
const FIRST_REAL_TIME: u64 = REAL_TIME + 1;
const LAST_REAL_TIME: u64 = REAL_TIME + scheduler::SYSTEM_QUEUE as u64 - 1;

impl Node {
    /// `Create`: an inert service in `slot`, of the next generation, without rights. `EINVAL`: no service slot.
    /// `EBUSY`: taken.
    pub(crate) fn create<M: Machine>(&mut self, m: &mut M, slot: u64) -> Result<u64, Errno> {
        let slot = usize::try_from(slot).unwrap_or(SLOTS);
        if !(FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) {
            return Err(Errno::EINVAL);
        }
        if self.threads[slot].is_live() {
            return Err(Errno::EBUSY);
        }
        self.privileges[slot] = Privileges::NONE;
        m.rights_changed(slot);
        self.occupy(m, slot, scheduler::SERVICE_QUEUE);
        self.threads[slot].privileges = slot as u8;
        Ok(self.threads[slot].endpoint.0 as u64)
    }

    /// Gives a free slot its next holder: stopped, without a space; those who wait for the slot keep waiting.
    pub(crate) fn occupy<M: Machine>(&mut self, m: &mut M, slot: usize, base_queue: u8) {
        let quantum = m.ns_to_ticks(scheduler::QUANTUM_NS);
        let thread = &mut self.threads[slot];
        let generation = if thread.generation < Endpoint::LAST_GENERATION { thread.generation + 1 } else { 1 };
        *thread = Thread {
            endpoint: Endpoint::new(slot, generation),
            generation,
            flags: blocked::STOPPED | blocked::NO_SPACE,
            queue: base_queue,
            base_queue,
            privileges: abi::endpoint::APPLICATIONS_BIT as u8,
            senders: thread.senders,
            wanted: thread.wanted,
            ..Thread::FREE
        };
        thread.set_quantum(quantum);
        self.live += 1;
    }

    /// `Fork`: an application thread with the registers, FPU state and base queue of `parent` (`NONE`: none) and `rax`
    /// 0, stopped, without a space.
    pub(crate) fn fork<M: Machine>(&mut self, m: &mut M, parent: Endpoint) -> Result<u64, Errno> {
        let parent = if parent == Endpoint::NONE { None } else { Some(self.find(parent)?) };
        let slot = self.free_application_slot().ok_or(Errno::EAGAIN)?;
        self.occupy(m, slot, scheduler::APPLICATION_QUEUE);
        match parent {
            Some(parent) => {
                m.copy_extended(parent, slot);
                let Thread { frame, quantum, .. } = self.threads[parent];
                self.threads[slot].frame = Frame { rax: 0, ..frame };
                self.set_schedule(slot, self.own_queue(parent), quantum);
            }
            None => self.threads[slot].frame = Frame::start(0, 0),
        }
        Ok(self.threads[slot].endpoint.0 as u64)
    }

    /// The next free application slot, going round, so that a slot rests before it is used again.
    fn free_application_slot(&mut self) -> Option<usize> {
        let start = self.next_application.clamp(SERVICE_SLOTS, SLOTS - 1);
        let mut round = (start..SLOTS).chain(SERVICE_SLOTS..start);
        let slot = round.find(|&slot| !self.threads[slot].is_live())?;
        self.next_application = if slot + 1 < SLOTS { slot + 1 } else { SERVICE_SLOTS };
        Some(slot)
    }

    /// `Destroy`. `keep`: a successor is expected. On a slot whose holder is dead already, `keep` = false ends the
    /// expectation. vm starts again at once (`roots`). `EINVAL`: the caller itself.
    pub(crate) fn destroy<M: Machine>(&mut self, m: &mut M, endpoint: Endpoint, keep: bool) -> Result<u64, Errno> {
        let slot = endpoint.slot();
        if slot == self.caller() || endpoint == Endpoint::SELF {
            return Err(Errno::EINVAL);
        }
        self.holder(endpoint)?;
        if slot == slot::VM {
            self.begin_again(m, slot, &ordered_death(endpoint, self.threads[slot].frame.rip));
            return Ok(0);
        }
        if self.threads[slot].is_live() {
            self.detach(m, slot);
        }
        let expected = keep && endpoint.is_service();
        self.threads[slot].expected = expected;
        self.release_peers(m, slot, expected);
        if !expected {
            self.notify_refused_senders(m, slot);
        }
        Ok(0)
    }

    /// Takes a thread out of everything it is in.
    fn detach<M: Machine>(&mut self, m: &mut M, slot: usize) {
        if self.threads[slot].mrt != 0 {
            self.end_process(m, slot);
        }
        self.stop(slot);
        self.stop_waiting(slot);
        self.doom(slot, 0);
        self.cancel_deadline(slot, Kind::Alarm);
        self.release_lines(m, slot);
        self.leave_space(slot);
        if self.mrt.rt.base(slot as u16) != NOTHING {
            self.decide(|rt, effects| rt.leave(slot as u16, effects));
        }
        m.set_extended(slot, None);
        let thread = &mut self.threads[slot];
        thread.endpoint = Endpoint(0);
        thread.flags = 0;
        thread.attention = 0;
        self.live -= 1;
    }

    /// Ends whatever wait a thread is in, without a result and without waking it.
    pub(crate) fn stop_waiting(&mut self, slot: usize) {
        let flags = self.threads[slot].flags;
        if flags & blocked::SENDING != 0 {
            self.stop_sending(slot);
        }
        if flags & blocked::FUTEX != 0 {
            self.leave_futex(slot);
        }
        self.threads[slot].flags &= !blocked::RECEIVING;
    }

    /// The holder of `slot` is dead: forgets its notifications and requests, and fails everybody who waits for it,
    /// except those who may wait for a successor: reports and Linux calls that it had in hand are repeated. Only
    /// services wait for applications.
    fn release_peers<M: Machine>(&mut self, m: &mut M, slot: usize, expected: bool) {
        let end = if slot < SERVICE_SLOTS { SLOTS } else { SERVICE_SLOTS };
        for waiter in FIRST_SERVICE..end {
            let thread = &mut self.threads[waiter];
            if slot < SERVICE_SLOTS {
                thread.pending[slot / 64] &= !(1 << (slot % 64));
                thread.wanted[slot / 64] &= !(1 << (slot % 64));
            }
            let waits = thread.flags & (blocked::SENDING | blocked::RECEIVING) != 0 && thread.peer.slot() == slot;
            if !waits {
                continue;
            }
            let received = thread.flags & blocked::RECEIVING != 0;
            match thread.form {
                Form::Kernel if received => self.ask_again(waiter),
                Form::Linux | Form::Repeated if received && expected => self.ask_again(waiter),
                Form::Kernel => {}
                _ if !expected || thread.peer.generation() != 0 => self.fail_wait(m, waiter),
                _ => {}
            }
        }
    }

    /// `Start`.
    pub(crate) fn start(&mut self, slot: usize) {
        let thread = &mut self.threads[slot];
        if thread.flags & blocked::STOPPED != 0 {
            thread.flags &= !blocked::STOPPED;
            self.wake_if_free(slot);
        }
    }

    /// `Stop`.
    pub(crate) fn stop(&mut self, slot: usize) {
        if self.threads[slot].flags == 0 {
            self.unready(slot);
        }
        self.threads[slot].flags |= blocked::STOPPED;
    }

    /// `Interrupt`: marks the thread; a futex wait ends, and so does a life as real-time process. → whom it waits for, or `NONE`.
    pub(crate) fn interrupt_thread<M: Machine>(&mut self, m: &mut M, slot: usize) -> Result<u64, Errno> {
        self.leave_real_time(m, slot);
        self.threads[slot].attention |= attention::INTERRUPT;
        if self.threads[slot].flags & blocked::FUTEX != 0 {
            let for_pi = self.waits_to_be_requeued(slot) || self.mrt.rt.waits(slot as u16) != Wait::No;
            if for_pi { self.interrupt_pi_wait(slot) } else { self.end_futex_wait(slot, Err(Errno::ERESTARTSYS)) }
        }
        Ok(self.blocked_on(slot).0 as u64)
    }

    /// Whom a thread waits for, or `NONE`.
    pub(crate) fn blocked_on(&self, slot: usize) -> Endpoint {
        let thread = &self.threads[slot];
        match thread.flags & (blocked::SENDING | blocked::RECEIVING) {
            0 => Endpoint::NONE,
            _ => thread.peer,
        }
    }

    /// `GetRegisters`, into the caller's memory. `EBUSY`: the thread runs.
    pub(crate) fn get_registers<M: Machine>(&mut self, m: &mut M, slot: usize, address: u64) -> Result<u64, Stop> {
        if self.threads[slot].flags == 0 {
            return Err(Errno::EBUSY.into());
        }
        let mut registers = Registers::ZERO;
        registers.extended_valid = m.extended(slot, &mut registers.extended).into();
        let thread = &self.threads[slot];
        registers.linux_call = (thread.linux_call as u64).wrapping_sub(1);
        thread.frame.store(&mut registers);
        self.write_own(m, address, registers.as_bytes())?;
        Ok(0)
    }

    /// `SetRegisters`, from the caller's memory. `EBUSY`: the thread runs. `EINVAL`: an instruction pointer or base
    /// outside user memory.
    pub(crate) fn set_registers<M: Machine>(
        &mut self,
        m: &mut M,
        slot: usize,
        address: u64,
        resume: bool,
    ) -> Result<u64, Stop> {
        if self.threads[slot].flags == 0 {
            return Err(Errno::EBUSY.into());
        }
        let registers: Registers = self.read_value(m, address)?;
        let frame = Frame::load(&registers);
        if [frame.rip, frame.fs_base, frame.gs_base].iter().any(|&address| address >= abi::layout::USER_END) {
            return Err(Errno::EINVAL.into());
        }
        m.set_extended(slot, (registers.extended_valid != 0).then_some(&registers.extended));
        let thread = &mut self.threads[slot];
        thread.frame = Frame { rflags: frame.rflags & frame::USER_FLAGS | frame::FIXED_FLAGS, ..frame };
        thread.linux_call = 0;
        if resume {
            self.resume(slot);
        }
        Ok(0)
    }

    /// Drops whatever a thread waits for or is in the middle of, and makes it run.
    fn resume(&mut self, slot: usize) {
        self.stop_waiting(slot);
        let thread = &mut self.threads[slot];
        thread.attention &= attention::INTERRUPT;
        thread.progress = 0;
        thread.then = Then::Return;
        thread.flags &= !blocked::STOPPED;
        self.wake_if_free(slot);
    }

    /// `Schedule`: base queue (0 best to 15 or a real-time one; `u64::MAX` keeps it) and quantum (0 keeps it).
    pub(crate) fn schedule_call<M: Machine>(
        &mut self,
        m: &mut M,
        slot: usize,
        queue: u64,
        quantum_us: u64,
    ) -> Result<u64, Errno> {
        let thread = &self.threads[slot];
        let base_queue = match queue {
            0..=15 => scheduler::FIRST_SHARED + queue as u8,
            FIRST_REAL_TIME..=LAST_REAL_TIME => (queue - REAL_TIME) as u8,
            KEEP => self.own_queue(slot),
            _ => return Err(Errno::EINVAL),
        };
        let quantum = match quantum_us {
            0 => thread.quantum,
            NO_QUANTUM => m.ns_to_ticks(scheduler::FIFO_NS) | scheduler::KEEPS_TURN,
            us => m.ns_to_ticks(us.saturating_mul(1000)),
        };
        if self.mrt.rt.base(slot as u16) != NOTHING {
            self.decide(|rt, effects| rt.set_base(slot as u16, base_queue, effects));
        }
        let queue = self.mrt.rt.effective(slot as u16).min(base_queue);
        self.throttle.since = 0;
        self.set_schedule(slot, queue, quantum);
        Ok(0)
    }
}
