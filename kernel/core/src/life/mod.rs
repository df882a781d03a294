//! The life of threads: created, forked, started, stopped, interrupted, destroyed; and their registers.
//!
//! A service with the right to these calls (pm, rs) may make them on any thread. When the call returns, timers, interrupts and grants of
//! the dead are gone; before any time-shared thread runs, peers get `EDEADSRCDST`, its pending notifications are gone, and only what is
//! meant for a successor (senders to `Endpoint::current`, when one is expected) waits on (`ipc::release`). Neighbours: `ipc`, `report`,
//! `calls` (permissions), `copy` (moves registers to and from the caller).

use crate::{
    Frame, Machine, Node, Space, Thread, boost::effects, frame, futex, futex::inheriting, inheritance::NOTHING,
    inheritance::Wait, interrupts, ipc::critical, ipc::message, ipc::release, memory::copy, memory::spaces,
    node::release::Fate, priority as scheduler, stop::Stop, thread::MessageSource, thread::Mode, thread::attention,
    thread::state::BlockedOn, thread::state::Hold, thread::state::State, time::alarm::Kind,
};

use abi::{
    Endpoint, Errno, call::NO_QUANTUM, call::REAL_TIME, call::inject, call::resume, endpoint::APPLICATIONS_BIT,
    endpoint::FIRST_CONTAINER, endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS, endpoint::SLOTS, endpoint::slot,
    privilege::Privileges, registers::Registers,
};
use zerocopy::{FromZeros, IntoBytes};

/// `SpaceSet`: no space.
const NO_SPACE: u64 = u64::MAX;
/// `Schedule`: keeps the base queue.
const KEEP: u64 = u64::MAX;
/// `Schedule`: the real-time queues. The best is the kernel's timer's.
const FIRST_REAL_TIME: u64 = REAL_TIME + 1;
const LAST_REAL_TIME: u64 = REAL_TIME + scheduler::SYSTEM_QUEUE as u64 - 1;

/// `Create`: an inert service in `slot`, of the next generation, without rights. `EINVAL`: no service slot.
/// `EBUSY`: taken.
pub fn create<M: Machine>(node: &mut Node, m: &mut M, slot: u64) -> Result<u64, Errno> {
    let slot = usize::try_from(slot).unwrap_or(SLOTS);
    if !(FIRST_SERVICE..FIRST_CONTAINER).contains(&slot) {
        return Err(Errno::EINVAL);
    }
    if node.threads[slot].is_live() {
        return Err(Errno::EBUSY);
    }
    node.privileges[slot] = Privileges::NONE;
    m.rights_changed(slot);
    occupy(node, m, slot, scheduler::SERVICE_QUEUE);
    node.threads[slot].privileges = slot as u8;
    Ok(node.threads[slot].endpoint.0 as u64)
}

/// Gives a free slot its next holder: stopped, without a space; senders to the slot keep waiting.
fn occupy<M: Machine>(node: &mut Node, m: &mut M, slot: usize, base_queue: u8) {
    let quantum = m.ns_to_ticks(scheduler::QUANTUM_NS);
    node.live += 1;
    let thread = &mut node.threads[slot];
    let generation = if thread.generation < Endpoint::LAST_GENERATION { thread.generation + 1 } else { 1 };
    *thread = Thread {
        endpoint: Endpoint::new(slot, generation),
        generation,
        state: State::NEW,
        queue: base_queue,
        base_queue,
        privileges: APPLICATIONS_BIT as u8,
        senders: thread.senders,
        wanted: thread.wanted,
        ..Thread::new_zeroed()
    };
    thread.set_quantum(quantum);
}

/// `Fork`: an application thread with the registers, FPU state and base queue of `parent` (`NONE`: none) and `rax`
/// 0, stopped, without a space. Its slot has rested since its last holder ended, as long as the others.
pub fn fork<M: Machine>(node: &mut Node, m: &mut M, parent: Endpoint) -> Result<u64, Stop> {
    let parent = if parent == Endpoint::NONE { None } else { Some(node.threads.find(parent)?) };
    let is_free = |node: &Node, slot: usize| !node.threads[slot].is_live();
    let slot = node.search(m, SERVICE_SLOTS..SLOTS, node.next_application, is_free)?.ok_or(Errno::EAGAIN)?;
    node.next_application = slot + 1;
    occupy(node, m, slot, scheduler::APPLICATION_QUEUE);
    match parent {
        Some(parent) => {
            m.copy_extended(parent, slot);
            let Thread { frame, quantum, .. } = node.threads[parent];
            node.threads[slot].frame = Frame { rax: 0, ..frame };
            node.threads.set_schedule(slot, effects::own_queue(node, parent), quantum);
        }
        None => node.threads[slot].frame = Frame::start(0, 0),
    }
    Ok(node.threads[slot].endpoint.0 as u64)
}

/// `Join (endpoint, row, peer, error)`: gives a program the row of a container, or `APPLICATIONS_BIT`. Its wait for a message by a primitive fails
/// with `error` if it waits for `peer`, or whatever it waits for (`NONE`); waits for it fail when the row is another. `EINVAL`: no program, no such row.
pub fn join<M: Machine>(node: &mut Node, m: &mut M, slot: usize, [row, peer, error]: [u64; 3]) -> Result<u64, Stop> {
    release::finish(node, m)?;
    let is_row = (FIRST_CONTAINER as u64..SERVICE_SLOTS as u64).contains(&row) || row == APPLICATIONS_BIT as u64;
    if slot < SERVICE_SLOTS || !is_row {
        return Err(Errno::EINVAL.into());
    }
    let Thread { form, state, privileges, .. } = node.threads[slot];
    let waits = state.peer().is_some_and(|of| [of, Endpoint::NONE].contains(&Endpoint(peer as u32)));
    if matches!(form, MessageSource::Native | MessageSource::Memory) && waits {
        message::fail_wait(node, m, slot, Errno(error as i32));
    }
    if privileges as u64 != row {
        release::begin(node, m, slot, Fate::Gone);
    }
    node.threads[slot].privileges = row as u8;
    Ok(0)
}

/// Returns the slot that `Destroy` is about, whose holder may be dead already. `EINVAL`: the caller itself.
pub fn slot_to_destroy(node: &Node, endpoint: Endpoint) -> Result<usize, Errno> {
    if endpoint == Endpoint::SELF || endpoint.slot() == node.caller() {
        return Err(Errno::EINVAL);
    }
    node.threads.holder(endpoint)?;
    Ok(endpoint.slot())
}

/// `Destroy`. `keep`: a successor is expected. On a slot whose holder is dead already, `keep` = false ends the
/// expectation. vm starts again at once (`ipc::critical`).
pub fn destroy<M: Machine>(node: &mut Node, m: &mut M, slot: usize, keep: bool) -> u64 {
    if slot == slot::VM {
        critical::begin_again(node, m, slot, &critical::death(&node.threads[slot], inject::VECTOR));
        return 0;
    }
    if node.threads[slot].is_live() {
        detach(node, m, slot);
    }
    let expected = keep && slot < SERVICE_SLOTS;
    node.threads[slot].expected = expected;
    release::begin(node, m, slot, if expected { Fate::Expected } else { Fate::Gone });
    0
}

/// Takes a thread out of everything it is in.
fn detach<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    node.threads.stop(slot);
    message::stop_waiting(node, slot);
    node.cancel_death(slot);
    node.alarms.cancel(slot, Kind::Alarm);
    interrupts::release_lines(node, m, slot);
    leave_space(node, slot);
    if node.inheritance.base(slot as u16) != NOTHING {
        effects::decide(node, |rt, effects| rt.leave(slot as u16, effects));
    }
    m.set_extended(slot, None);
    node.live -= 1;
    let thread = &mut node.threads[slot];
    thread.endpoint = Endpoint(0);
    thread.state.make_ready();
    thread.attention = 0;
}

/// `Start`, as the thread with this number.
pub fn start(node: &mut Node, slot: usize, tid: u64) -> u64 {
    let thread = &mut node.threads[slot];
    thread.tid = tid as u32;
    if thread.state.is_held(Hold::Stopped) {
        thread.state.release(Hold::Stopped);
        node.threads.wake_if_free(slot);
    }
    0
}

/// `Interrupt`: marks the thread; a futex wait ends. Returns the endpoint it is blocked on, or `NONE`.
pub fn interrupt_thread(node: &mut Node, slot: usize) -> u64 {
    node.threads[slot].attention |= attention::INTERRUPT;
    let inherits = futex::waits_to_be_requeued(node, slot) || node.inheritance.waits(slot as u16) != Wait::No;
    match node.threads[slot].state.blocked_on() {
        Some(BlockedOn::Futex) if inherits => inheriting::interrupt_pi_wait(node, slot),
        Some(BlockedOn::Futex) => futex::end_futex_wait(node, slot, Err(Errno::ERESTARTSYS)),
        _ => {}
    }
    blocked_on(node, slot).0 as u64
}

/// Whom a thread waits for, or `NONE`.
pub fn blocked_on(node: &Node, slot: usize) -> Endpoint {
    node.threads[slot].state.peer().unwrap_or(Endpoint::NONE)
}

/// `GetRegisters`, into the caller's memory. `EBUSY`: the thread runs.
pub fn get_registers<M: Machine>(node: &mut Node, m: &mut M, slot: usize, address: u64) -> Result<u64, Stop> {
    if node.threads[slot].state.is_ready() {
        return Err(Errno::EBUSY.into());
    }
    let mut registers = Registers::ZERO;
    registers.extended_valid = m.extended(slot, &mut registers.extended).into();
    let thread = &node.threads[slot];
    registers.linux_call = (thread.linux_call as u64).wrapping_sub(1);
    thread.frame.store(&mut registers);
    copy::write_own(node, m, address, registers.as_bytes())?;
    Ok(0)
}

/// `SetRegisters`, from the caller's memory. `EBUSY`: the thread runs. `EINVAL`: an instruction pointer or base
/// outside user memory.
pub fn set_registers<M: Machine>(
    node: &mut Node,
    m: &mut M,
    slot: usize,
    address: u64,
    bits: u64,
) -> Result<u64, Stop> {
    if node.threads[slot].state.is_ready() {
        return Err(Errno::EBUSY.into());
    }
    let registers: Registers = copy::read_value(node, m, address)?;
    let frame = Frame::load(&registers);
    if [frame.rip, frame.fs_base, frame.gs_base].iter().any(|&address| address >= abi::layout::USER_END) {
        return Err(Errno::EINVAL.into());
    }
    m.set_extended(slot, (registers.extended_valid != 0).then_some(&registers.extended));
    let thread = &mut node.threads[slot];
    thread.frame = Frame { rflags: frame.rflags & frame::USER_FLAGS | frame::FIXED_FLAGS, ..frame };
    thread.linux_call = 0;
    if bits & resume::READY != 0 {
        resume_thread(node, slot, bits);
    }
    Ok(0)
}

/// Drops whatever a thread waits for or is in the middle of, and makes it run, or make a Linux call (bits: `abi::call::resume`).
fn resume_thread(node: &mut Node, slot: usize, bits: u64) {
    message::stop_waiting(node, slot);
    let thread = &mut node.threads[slot];
    let wish = |bit, what| if bits & bit != 0 { what } else { 0 };
    let wishes = wish(resume::CALL, attention::RESUME) | wish(resume::REPORT_CALLS, attention::TRACED);
    thread.attention = thread.attention & attention::INTERRUPT | wishes;
    thread.progress = 0;
    if !thread.is_real_time() {
        thread.mode = if bits & resume::REPORT_CALLS != 0 { Mode::Traced } else { Mode::Ordinary };
    }
    thread.state.release(Hold::Stopped);
    node.threads.wake_if_free(slot);
}

/// `Schedule`: base queue (0 best to 15 or a real-time one; `u64::MAX` keeps it) and quantum (0 keeps it).
pub fn schedule_call<M: Machine>(
    node: &mut Node,
    m: &mut M,
    slot: usize,
    queue: u64,
    quantum_us: u64,
) -> Result<u64, Errno> {
    let thread = &node.threads[slot];
    let base_queue = match queue {
        0..=15 => scheduler::FIRST_SHARED + queue as u8,
        FIRST_REAL_TIME..=LAST_REAL_TIME => (queue - REAL_TIME) as u8,
        KEEP => effects::own_queue(node, slot),
        _ => return Err(Errno::EINVAL),
    };
    let quantum = match quantum_us {
        0 => thread.quantum,
        NO_QUANTUM => m.ns_to_ticks(scheduler::FIFO_NS) | scheduler::KEEPS_TURN,
        us => m.ns_to_ticks(us.saturating_mul(1000)),
    };
    if node.inheritance.base(slot as u16) != NOTHING {
        effects::decide(node, |rt, effects| rt.set_base(slot as u16, base_queue, effects));
    }
    let queue = node.inheritance.effective(slot as u16).min(base_queue);
    node.throttle.end_period();
    node.threads.set_schedule(slot, queue, quantum);
    Ok(0)
}

/// `SpaceSet (endpoint, space)`.
pub fn set_space(node: &mut Node, slot: usize, space: u64) -> Result<u64, Errno> {
    let space = if space == NO_SPACE { None } else { Some(spaces::existing_space(node, space)?) };
    leave_space(node, slot);
    if let Some(space) = space {
        enter_space(node, slot, space);
    }
    Ok(0)
}

/// Gives a thread without a space this one.
pub fn enter_space(node: &mut Node, slot: usize, space: Space) {
    node.spaces[space.0 as usize] += 1;
    let thread = &mut node.threads[slot];
    thread.space = space;
    thread.state.release(Hold::NoSpace);
    node.threads.wake_if_free(slot);
}

/// Takes a thread's space away, if it has one; it does not run then, and has bequeathed its futexes.
fn leave_space(node: &mut Node, slot: usize) {
    let Some(space) = node.threads[slot].space() else { return };
    if node.threads[slot].state.is_ready() {
        node.threads.unready(slot);
    }
    node.threads[slot].state.hold(Hold::NoSpace);
    node.spaces[space.0 as usize] -= 1;
}
