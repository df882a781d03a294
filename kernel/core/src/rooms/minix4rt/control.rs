//! The system calls of MINIX4RT, as the server mrt forwards them by `RtControl`: it has checked the caller.
//!
//! A structure travels as the words it consists of, in the order of `abi::rt`, and zeros behind them. Every call reads all of mrt's words
//! before it has an effect, and writes them back.

use crate::{
    Machine, memory::copy, rooms::Kernel, rooms::minix4rt::NOBODY, rooms::minix4rt::decide, rooms::minix4rt::error,
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
pub fn real_time_control<M: Machine>(kernel: &mut Kernel, m: &mut M, arguments: [u64; 4]) -> Result<u64, Stop> {
    let [operation, caller, argument, address] = arguments;
    let mut words: Words = copy::read_value(&mut kernel.node, m, address)?;
    let free_in_standard_mode = matches!(operation, control::RTSTART | control::SETSVAL | control::GETSVAL);
    if operation < control::END && !kernel.mrt.system.is_on && !free_in_standard_mode {
        return Err(error(rt::error::E_MRT_NORTMODE).into());
    }
    let request = (operation, kernel.node.threads.find(Endpoint(caller as u32))?, argument);
    let value = match operation {
        control::RTSTART..=control::CLRSSTAT => control_mode(kernel, m, request, &mut words),
        control::SETPATTR..=control::GETPINT => control_process(kernel, request, &mut words),
        control::SETIATTR..=control::GETIINT => control_irq(kernel, m, request, &mut words),
        control::SEMALLOC..=control::GETSEMINT => control_semaphore(kernel, request, &mut words),
        control::GETMQSTAT | control::CLRMQSTAT => control_queue(kernel, request, &mut words),
        _ => Err(Errno::EBADCALL),
    }?;
    copy::write_own(&mut kernel.node, m, address, words.as_bytes())?;
    Ok(value)
}

/// Harmonic and refresh are the halves of `argument`.
fn control_mode<M: Machine>(kernel: &mut Kernel, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, argument) = request;
    let ticks = |number: u64| (number & u32::MAX as u64).clamp(1, rt::MAX_TICKS);
    let (harmonic, refresh) = (ticks(argument), ticks(argument >> 32));
    let (is_on, is_active) = (kernel.mrt.system.is_on, kernel.mrt.system.active != 0);
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
        control::RTSTART | control::RESTART => statistics::start_real_time_mode(kernel, m, harmonic, refresh),
        control::RTSTOP => statistics::stop_real_time_mode(kernel, m),
        control::SETSVAL => kernel.mrt.system.options = argument,
        control::GETSVAL => *words = statistics::system_values(kernel),
        control::GETSSTAT => *words = statistics::system_statistics(kernel, m),
        _ => statistics::clear_system_statistics(kernel),
    }
    Ok(0)
}

fn control_process(kernel: &mut Kernel, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, slot, pid) = request;
    if operation == control::SETPATTR {
        let process = process::process_of(kernel, slot, pid as i64)?;
        return process::set_attributes(kernel, process, words);
    }
    let process = process::find_process(&mut kernel.mrt, pid as i64)?;
    let statistics = &mut kernel.mrt.processes[process as usize].statistics;
    match operation {
        control::GETPATTR => *words = process::attributes(kernel, process),
        control::GETPSTAT => {
            let s = statistics;
            *words = [s.scheds, s.mdl, s.timestamp, s.maxlat, s.minlax as u64, s.msgsent, s.msgrcvd, 0];
        }
        control::CLRPSTAT => *statistics = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::ZERO },
        _ => *words = process::internals(kernel, process),
    }
    Ok(0)
}

fn control_irq<M: Machine>(kernel: &mut Kernel, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, number) = request;
    match operation {
        control::SETIATTR => interrupt::set_descriptor(kernel, m, number, words),
        _ => interrupt::look_at_descriptor(&mut kernel.mrt, operation, number, words),
    }
}

fn control_semaphore(kernel: &mut Kernel, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, slot, id) = request;
    match operation {
        control::SEMALLOC => {
            process::process_of(kernel, slot, id as i64)?;
            return semaphore::allocate_semaphore(kernel, slot, words);
        }
        control::GETSEMID => return semaphore::find_semaphore(kernel, [words[0], words[1]]),
        control::SEMFREE => {
            semaphore::allocated_semaphore(&kernel.node, id)?;
            decide(kernel, |rt, effects| rt.free(slot as u16, id as u16, effects))?;
        }
        control::GETSEMATTR => *words = semaphore::semaphore_attributes(kernel, id)?,
        control::GETSEMSTAT => {
            let s = semaphore::allocated_semaphore(&kernel.node, id)?.statistics;
            *words = [s.ups, s.downs, s.most_waiters as u64, 0, 0, 0, 0, 0];
        }
        control::CLRSEMSTAT => {
            semaphore::allocated_semaphore(&kernel.node, id)?;
            kernel.node.inheritance.clear_statistics(id as u16);
        }
        _ => *words = semaphore::semaphore_internals(&kernel.node, id)?,
    }
    Ok(0)
}

fn control_queue(kernel: &mut Kernel, request: Request, words: &mut Words) -> Result<u64, Errno> {
    let (operation, _, id) = request;
    if id == NOBODY as u64 || id >= kernel.mrt.processes.len() as u64 {
        return Err(error(rt::error::E_MRT_BADMSGQ));
    }
    if !process::is_real_time(kernel, id as u16) {
        return Err(error(rt::error::E_MRT_FREEMSGQ));
    }
    let statistics = &mut kernel.mrt.processes[id as usize].queue.statistics;
    match operation {
        control::CLRMQSTAT => *statistics = QueueStatistics::ZERO,
        _ => *words = [statistics.delivered, statistics.enqueued, statistics.maxinq, 0, 0, 0, 0, 0],
    }
    Ok(0)
}
