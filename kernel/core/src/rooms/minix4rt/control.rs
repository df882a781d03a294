//! The system calls of MINIX4RT, as the server mrt hands them on by `RtControl`: it has checked who asks.
//!
//! A structure travels as the words it consists of, in the order of `abi::rt`, and zeros behind them. Every call reads all of mrt's words
//! before it has an effect, and writes them back.

use crate::{
    Machine, Node, memory::copy, rooms::minix4rt::NOBODY, rooms::minix4rt::decide, rooms::minix4rt::error,
    rooms::minix4rt::interrupt, rooms::minix4rt::process, rooms::minix4rt::semaphore, rooms::minix4rt::statistics,
    stop::Stop,
};

use abi::{Endpoint, Errno, rt, rt::ProcessStatistics, rt::QueueStatistics, rt::control};
use zerocopy::IntoBytes;

/// A structure.
pub(super) type Words = [u64; 8];

/// What is asked: operation, slot of the asking thread, argument.
pub(super) type Request = (u64, usize, u64);

/// `RtControl (operation, caller of the system call, argument, address of 8 words)`.
pub fn real_time_control<M: Machine>(node: &mut Node, m: &mut M, arguments: [u64; 4]) -> Result<u64, Stop> {
    let [operation, caller, argument, address] = arguments;
    let mut words: Words = copy::read_value(node, m, address)?;
    let free_in_standard_mode = matches!(operation, control::RTSTART | control::SETSVAL | control::GETSVAL);
    if operation < control::END && !node.minix4rt.system.is_on && !free_in_standard_mode {
        return Err(error(rt::error::E_MRT_NORTMODE).into());
    }
    let request = (operation, node.threads.find(Endpoint(caller as u32))?, argument);
    let value = match operation {
        control::RTSTART..=control::CLRSSTAT => control_system(node, m, request, &mut words),
        control::SETPATTR..=control::GETPINT => control_process(node, request, &mut words),
        control::SETIATTR..=control::GETIINT => control_irq(node, m, request, &mut words),
        control::SEMALLOC..=control::GETSEMINT => control_semaphore(node, request, &mut words),
        control::GETMQSTAT | control::CLRMQSTAT => control_queue(node, request, &mut words),
        _ => Err(Errno::EBADCALL),
    }?;
    copy::write_own(node, m, address, words.as_bytes())?;
    Ok(value)
}

/// Harmonic and refresh are the halves of `argument`.
fn control_system<M: Machine>(node: &mut Node, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, argument) = request;
    let ticks = |number: u64| (number & u32::MAX as u64).clamp(1, rt::MOST_TICKS);
    let (harmonic, refresh) = (ticks(argument), ticks(argument >> 32));
    let (is_on, is_active) = (node.minix4rt.system.is_on, node.minix4rt.system.active != 0);
    let wrong = match operation {
        control::RTSTART if is_on => rt::error::E_MRT_RTACTIVE,
        control::RESTART | control::RTSTOP if is_active => rt::error::E_MRT_RTACTIVE,
        control::SETSVAL if is_on => rt::error::E_MRT_RTMODE,
        _ => 0,
    };
    if wrong != 0 {
        return Err(error(wrong));
    }
    match operation {
        control::RTSTART | control::RESTART => statistics::start_real_time_mode(node, m, harmonic, refresh),
        control::RTSTOP => statistics::stop_real_time_mode(node, m),
        control::SETSVAL => node.minix4rt.system.options = argument,
        control::GETSVAL => *words = statistics::system_values(node),
        control::GETSSTAT => *words = statistics::system_statistics(node, m),
        _ => statistics::clear_system_statistics(node),
    }
    Ok(0)
}

fn control_process(node: &mut Node, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, slot, pid) = request;
    if operation == control::SETPATTR {
        let process = process::process_of(node, slot, pid as i64)?;
        return process::set_attributes(node, process, words);
    }
    let process = process::find_process(node, pid as i64)?;
    let statistics = &mut node.minix4rt.processes[process as usize].statistics;
    match operation {
        control::GETPATTR => *words = process::attributes(node, process),
        control::GETPSTAT => {
            let s = statistics;
            *words = [s.scheds, s.mdl, s.timestamp, s.maxlat, s.minlax as u64, s.msgsent, s.msgrcvd, 0];
        }
        control::CLRPSTAT => *statistics = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::ZERO },
        _ => *words = process::internals(node, process),
    }
    Ok(0)
}

fn control_irq<M: Machine>(node: &mut Node, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, number) = request;
    match operation {
        control::SETIATTR => interrupt::set_descriptor(node, m, number, words),
        _ => interrupt::look_at_descriptor(node, operation, number, words),
    }
}

fn control_semaphore(node: &mut Node, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, slot, id) = request;
    match operation {
        control::SEMALLOC => {
            process::process_of(node, slot, id as i64)?;
            return semaphore::allocate_semaphore(node, slot, words);
        }
        control::GETSEMID => return semaphore::find_semaphore(node, [words[0], words[1]]),
        control::SEMFREE => {
            semaphore::allocated_semaphore(node, id)?;
            decide(node, |rt, effects| rt.free(slot as u16, id as u16, effects))?;
        }
        control::GETSEMATTR => *words = semaphore::semaphore_attributes(node, id)?,
        control::GETSEMSTAT => {
            let s = semaphore::allocated_semaphore(node, id)?.statistics;
            *words = [s.ups, s.downs, s.most_waiters as u64, 0, 0, 0, 0, 0];
        }
        control::CLRSEMSTAT => {
            semaphore::allocated_semaphore(node, id)?;
            node.inheritance.clear_statistics(id as u16);
        }
        _ => *words = semaphore::semaphore_internals(node, id)?,
    }
    Ok(0)
}

fn control_queue(node: &mut Node, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, id) = request;
    if id == NOBODY as u64 || id >= node.minix4rt.processes.len() as u64 {
        return Err(error(rt::error::E_MRT_BADMSGQ));
    }
    if !process::is_real_time(node, id as u16) {
        return Err(error(rt::error::E_MRT_FREEMSGQ));
    }
    let statistics = &mut node.minix4rt.processes[id as usize].queue.statistics;
    match operation {
        control::CLRMQSTAT => *statistics = QueueStatistics::ZERO,
        _ => *words = [statistics.delivered, statistics.enqueued, statistics.maxinq, 0, 0, 0, 0, 0],
    }
    Ok(0)
}
