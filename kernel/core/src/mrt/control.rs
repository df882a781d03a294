//! The system calls of MINIX4RT, as the server mrt hands them on by `RtControl`: it has checked who asks.
//!
//! A structure travels as the words it consists of, in the order of `abi::rt`, and zeros behind them. Every call reads all of mrt's words
//! before it has an effect, and writes them back.

use abi::{
    Endpoint, Errno,
    rt::{self, ProcessStatistics, QueueStatistics, control},
};
use zerocopy::IntoBytes;

use crate::{Machine, Node, call::Stop};

use super::{NOBODY, error};

/// A structure.
pub(super) type Words = [u64; 8];

/// What is asked: operation, slot of the asking thread, argument.
pub(super) type Request = (u64, usize, u64);

impl Node {
    /// `RtControl (operation, caller of the system call, argument, address of 8 words)`.
    pub(crate) fn real_time_control<M: Machine>(&mut self, m: &mut M, arguments: [u64; 4]) -> Result<u64, Stop> {
        let [operation, caller, argument, address] = arguments;
        let mut words: Words = self.read_value(m, address)?;
        let free_in_standard_mode = matches!(operation, control::RTSTART | control::SETSVAL | control::GETSVAL);
        if operation < control::END && !self.mrt.system.is_on && !free_in_standard_mode {
            return Err(error(rt::error::E_MRT_NORTMODE).into());
        }
        let request = (operation, self.find(Endpoint(caller as u32))?, argument);
        let value = match operation {
            control::RTSTART..=control::CLRSSTAT => self.control_system(m, request, &mut words),
            control::SETPATTR..=control::GETPINT => self.control_process(request, &mut words),
            control::SETIATTR..=control::GETIINT => self.control_interrupt(m, request, &mut words),
            control::SEMALLOC..=control::GETSEMINT => self.control_semaphore(request, &mut words),
            control::GETMQSTAT | control::CLRMQSTAT => self.control_queue(request, &mut words),
            _ => Err(Errno::EBADCALL),
        }?;
        self.write_own(m, address, words.as_bytes())?;
        Ok(value)
    }

    /// Harmonic and refresh are the halves of `argument`.
    fn control_system<M: Machine>(&mut self, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
        let (operation, _, argument) = request;
        let ticks = |number: u64| (number & u32::MAX as u64).clamp(1, rt::MOST_TICKS);
        let (harmonic, refresh) = (ticks(argument), ticks(argument >> 32));
        let (is_on, is_active) = (self.mrt.system.is_on, self.mrt.system.active != 0);
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
            control::RTSTART | control::RESTART => self.start_real_time_mode(m, harmonic, refresh),
            control::RTSTOP => self.stop_real_time_mode(m),
            control::SETSVAL => self.mrt.system.options = argument,
            control::GETSVAL => *words = self.system_values(),
            control::GETSSTAT => *words = self.system_statistics(m),
            _ => self.clear_system_statistics(),
        }
        Ok(0)
    }

    fn control_process(&mut self, request: Request, words: &mut Words) -> Result<u64, Errno> {
        let (operation, slot, pid) = request;
        if operation == control::SETPATTR {
            let process = self.process_of(slot, pid as i64)?;
            return self.set_attributes(process, words);
        }
        let process = self.find_process(pid as i64)?;
        let statistics = &mut self.mrt.processes[process as usize].statistics;
        match operation {
            control::GETPATTR => *words = self.attributes(process),
            control::GETPSTAT => {
                let s = statistics;
                *words = [s.scheds, s.mdl, s.timestamp, s.maxlat, s.minlax as u64, s.msgsent, s.msgrcvd, 0];
            }
            control::CLRPSTAT => *statistics = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::ZERO },
            _ => *words = self.internals(process),
        }
        Ok(0)
    }

    fn control_interrupt<M: Machine>(&mut self, m: &mut M, request: Request, words: &mut Words) -> Result<u64, Errno> {
        let (operation, _, number) = request;
        match operation {
            control::SETIATTR => self.set_descriptor(m, number, words),
            _ => self.look_at_descriptor(operation, number, words),
        }
    }

    fn control_semaphore(&mut self, request: Request, words: &mut Words) -> Result<u64, Errno> {
        let (operation, slot, id) = request;
        match operation {
            control::SEMALLOC => {
                self.process_of(slot, id as i64)?;
                return self.allocate_semaphore(slot, words);
            }
            control::GETSEMID => return self.find_semaphore([words[0], words[1]]),
            control::SEMFREE => {
                self.allocated_semaphore(id)?;
                self.decide(|rt, effects| rt.free(slot as u16, id as u16, effects))?;
            }
            control::GETSEMATTR => *words = self.semaphore_attributes(id)?,
            control::GETSEMSTAT => {
                let s = self.allocated_semaphore(id)?.statistics;
                *words = [s.ups, s.downs, s.most_waiters as u64, 0, 0, 0, 0, 0];
            }
            control::CLRSEMSTAT => {
                self.allocated_semaphore(id)?;
                self.mrt.rt.clear_statistics(id as u16);
            }
            _ => *words = self.semaphore_internals(id)?,
        }
        Ok(0)
    }

    fn control_queue(&mut self, request: Request, words: &mut Words) -> Result<u64, Errno> {
        let (operation, _, id) = request;
        if id == NOBODY as u64 || id >= self.mrt.processes.len() as u64 {
            return Err(error(rt::error::E_MRT_BADMSGQ));
        }
        if !self.is_real_time(id as u16) {
            return Err(error(rt::error::E_MRT_FREEMSGQ));
        }
        let statistics = &mut self.mrt.processes[id as usize].queue.statistics;
        match operation {
            control::CLRMQSTAT => *statistics = QueueStatistics::ZERO,
            _ => *words = [statistics.delivered, statistics.enqueued, statistics.maxinq, 0, 0, 0, 0, 0],
        }
        Ok(0)
    }
}
