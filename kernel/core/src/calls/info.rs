//! `GetInfo`: what the kernel tells about threads, itself, boot and hardware (`abi::info`).
//!
//! Neighbours: `machine` (answers what core does not know).

use crate::{
    Machine, Node, Thread, life, memory::copy, priority::FIRST_SHARED, stop::Stop, stop::preemption_point,
    thread::MessageSource, thread::state::BlockedOn, thread::state::Hold, time::alarm,
};

use abi::{Endpoint, Errno, Name, call::REAL_TIME, endpoint::slot, info, info::KernelInfo, info::ThreadInfo};
use zerocopy::IntoBytes;

/// Bytes of a machine's answer moved at a time.
const TOLD_AT_ONCE: usize = 512;

/// `GetInfo (what, index, own address, bytes)` → bytes written; a reply longer than `bytes` is truncated. `WAIT` writes nothing.
pub fn get_info<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 4]) -> Result<u64, Stop> {
    let [what, index, address, bytes] = words;
    let to = (address, bytes);
    match what {
        info::THREAD => give(thread_info(node, m, index)?.as_bytes(), node, m, to),
        info::WAIT => Ok(wait_of(node, node.threads.find(Endpoint(index as u32))?)),
        info::KERNEL => give(kernel_info(node, m).as_bytes(), node, m, to),
        info::PRIVILEGES if node.caller() != slot::RS && node.caller() as u64 != index => Err(Errno::EPERM.into()),
        info::PRIVILEGES => {
            give(node.privileges.get(index as usize).copied().ok_or(Errno::EINVAL)?.as_bytes(), node, m, to)
        }
        info::TRACE.. if !super::may_call(node, super::KernelCall::Trace) => Err(Errno::EPERM.into()),
        info::FREE_MEMORY if node.caller() != slot::VM => Err(Errno::EPERM.into()),
        _ => machine_info(node, m, what, address, bytes),
    }
}

/// Writes an answer of core.
fn give<M: Machine>(answer: &[u8], node: &mut Node, m: &mut M, (address, bytes): (u64, u64)) -> Result<u64, Stop> {
    let length = (answer.len() as u64).min(bytes);
    copy::write_own(node, m, address, &answer[..length as usize])?;
    Ok(length)
}

/// Writes an answer of the machine, piece by piece. The log may move on in between.
fn machine_info<M: Machine>(node: &mut Node, m: &mut M, what: u64, address: u64, bytes: u64) -> Result<u64, Stop> {
    let caller = node.caller();
    loop {
        let done = node.threads[caller].progress;
        let rest = m.info(what, done as usize)?;
        let length = rest.len().min(TOLD_AT_ONCE).min((bytes - done) as usize);
        let mut buffer = [0; TOLD_AT_ONCE];
        buffer[..length].copy_from_slice(&rest[..length]);
        let to = address.checked_add(done).ok_or(Errno::EFAULT)?;
        copy::write_own(node, m, to, &buffer[..length])?;
        if length == 0 {
            return Ok(done);
        }
        node.threads[caller].progress = done + length as u64;
        preemption_point(m)?;
    }
}

fn thread_info<M: Machine>(node: &mut Node, m: &mut M, index: u64) -> Result<ThreadInfo, Errno> {
    let slot = usize::try_from(index).ok().filter(|&slot| slot < node.threads.len()).ok_or(Errno::EINVAL)?;
    node.threads.charge(m.ticks());
    let thread = &node.threads[slot];
    if !thread.is_live() {
        return Err(Errno::ESRCH);
    }
    Ok(ThreadInfo {
        endpoint: thread.endpoint,
        state: state_of(thread),
        blocked_on: life::blocked_on(node, slot),
        queue: match node.inheritance.effective(slot as u16).min(thread.base_queue) {
            queue @ FIRST_SHARED.. => (queue - FIRST_SHARED) as u32,
            queue => REAL_TIME as u32 + queue as u32,
        },
        run_ns: duration_ns(m, thread.run_ticks),
        messages: thread.messages,
        name: if thread.endpoint.is_service() { node.privileges(slot).name } else { Name::default() },
        ip: thread.frame.rip,
        sp: thread.frame.rsp,
        denials: thread.denials as u64,
    })
}

/// What a thread waits for: its state, and in the upper half whom it is blocked on.
fn wait_of(node: &Node, slot: usize) -> u64 {
    state_of(&node.threads[slot]) as u64 | (life::blocked_on(node, slot).0 as u64) << 32
}

fn kernel_info<M: Machine>(node: &mut Node, m: &mut M) -> KernelInfo {
    node.threads.charge(m.ticks());
    let mut info = KernelInfo {
        now_ns: alarm::now_ns(m),
        idle_ns: duration_ns(m, node.threads[slot::IDLE].run_ticks),
        messages: node.delivered,
        switches: node.threads.switches(),
        interrupts: node.interrupts,
        threads: node.live,
        ..KernelInfo::default()
    };
    m.kernel_info(&mut info);
    info
}

fn state_of(thread: &Thread) -> u32 {
    let Thread { state, form, .. } = thread;
    match state.blocked_on() {
        _ if state.is_held(Hold::Stopped) || state.is_held(Hold::NoSpace) => info::state::STOPPED,
        Some(_) if state.peer().is_some() && *form == MessageSource::Kernel => info::state::FAULTING,
        Some(BlockedOn::Send(..)) if *form != MessageSource::Repeated => info::state::SENDING,
        Some(BlockedOn::Answer(_) | BlockedOn::Send(..)) => info::state::ANSWERING,
        None => info::state::READY,
        Some(_) => info::state::RECEIVING,
    }
}

/// A number of ticks as a time span. (`Machine::ticks_to_ns` takes a count of the clock, which does not start at 0.)
fn duration_ns<M: Machine>(m: &mut M, ticks: u64) -> u64 {
    let now = m.ticks();
    m.ticks_to_ns(now) - m.ticks_to_ns(now.saturating_sub(ticks))
}
