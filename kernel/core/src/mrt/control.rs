//! The system calls of MINIX4RT, as the server mrt hands them on by `RtControl`: it has checked who asks.

use abi::{
    Endpoint, Errno,
    rt::{
        self, IrqAttributes, ProcessAttributes, ProcessStatistics, QueueStatistics, SEMAPHORES, SemaphoreAttributes,
        control, mode,
    },
};

use crate::{Machine, Node, call::Stop};

use super::{NOBODY, error};

impl Node {
    /// `RtControl (operation, caller of the system call, argument, address)`.
    pub(crate) fn real_time_control<M: Machine>(&mut self, m: &mut M, words: [u64; 4]) -> Result<u64, Stop> {
        let [operation, caller, argument, address] = words;
        let free_in_standard_mode = matches!(operation, control::RTSTART | control::SETSVAL | control::GETSVAL);
        if operation >= control::END {
            return Err(Errno::EBADCALL.into());
        }
        if !self.mrt.system.is_on && !free_in_standard_mode {
            return Err(error(rt::error::E_MRT_NORTMODE).into());
        }
        let slot = self.find(Endpoint(caller as u32))?;
        match operation {
            control::RTSTART..=control::CLRSSTAT => self.control_system(m, operation, argument, address),
            control::SETPATTR..=control::GETPINT => self.control_process(m, operation, slot, argument, address),
            control::SETIATTR..=control::GETIINT => self.control_interrupt(m, operation, argument, address),
            control::SEMALLOC..=control::GETSEMINT => self.control_semaphore(m, operation, slot, argument, address),
            _ => self.control_queue(m, operation, argument, address),
        }
    }

    /// Harmonic and refresh are the halves of `argument`.
    fn control_system<M: Machine>(
        &mut self,
        m: &mut M,
        operation: u64,
        argument: u64,
        address: u64,
    ) -> Result<u64, Stop> {
        let (harmonic, refresh) = (argument & u32::MAX as u64, argument >> 32);
        let is_on = self.mrt.system.is_on;
        let wrong = match operation {
            control::RTSTART if is_on => rt::error::E_MRT_RTACTIVE,
            control::RESTART | control::RTSTOP if self.mrt.system.active != 0 => rt::error::E_MRT_RTACTIVE,
            control::RTSTART | control::RESTART if !(1..=rt::MOST_TICKS).contains(&harmonic) => {
                rt::error::E_MRT_BADHARM
            }
            control::RTSTART | control::RESTART if !(1..=rt::MOST_TICKS).contains(&refresh) => rt::error::E_MRT_BADRFSH,
            control::SETSVAL if is_on => rt::error::E_MRT_RTMODE,
            control::SETSVAL if argument & !mode::OPTIONS != 0 => rt::error::E_MRT_BADFLAGS,
            _ => 0,
        };
        if wrong != 0 {
            return Err(error(wrong).into());
        }
        match operation {
            control::RTSTART | control::RESTART => self.start_real_time_mode(m, harmonic, refresh),
            control::RTSTOP => self.stop_real_time_mode(m),
            control::SETSVAL => self.mrt.system.options = argument,
            control::GETSVAL => {
                let v = self.system_values();
                let words = [v.flags, v.virtual_pic, v.pit_latency, v.pit_latch, v.tickrate, v.harmonic, v.refresh];
                return self.put_words(m, address, words);
            }
            control::GETSSTAT => {
                let s = self.system_statistics(m);
                let words = [s.scheds, s.messages, s.interrupts, s.ticks, s.highticks, s.idlemax, s.idlelast];
                return self.put_words(m, address, words);
            }
            _ => self.clear_system_statistics(),
        }
        Ok(0)
    }

    fn control_process<M: Machine>(
        &mut self,
        m: &mut M,
        operation: u64,
        slot: usize,
        pid: u64,
        address: u64,
    ) -> Result<u64, Stop> {
        if operation == control::SETPATTR {
            let [flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags] = self.get_words(m, address)?;
            let watchdog = watchdog as i64;
            let wanted = ProcessAttributes { flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags };
            let process = self.process_of(slot, pid as i64)?;
            return Ok(self.set_attributes(process, wanted)?);
        }
        let process = self.find_process(pid as i64)?;
        match operation {
            control::GETPATTR => {
                let a = self.attributes(process);
                let watchdog = a.watchdog as u64;
                let words = [a.flags, a.baseprty, a.period, a.limit, a.deadline, watchdog, a.mq_size, a.mq_flags];
                self.put_words(m, address, words)
            }
            control::GETPSTAT => {
                let s = self.mrt.processes[process as usize].statistics;
                let words = [s.scheds, s.mdl, s.timestamp, s.maxlat, s.minlax as u64, s.msgsent, s.msgrcvd];
                self.put_words(m, address, words)
            }
            control::CLRPSTAT => {
                let cleared = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::default() };
                self.mrt.processes[process as usize].statistics = cleared;
                Ok(0)
            }
            _ => {
                let i = self.internals(process);
                self.put_words(m, address, [i.vt, i.priority, i.mqid as u64, i.p_nr])
            }
        }
    }

    fn control_interrupt<M: Machine>(
        &mut self,
        m: &mut M,
        operation: u64,
        number: u64,
        address: u64,
    ) -> Result<u64, Stop> {
        match operation {
            control::SETIATTR => {
                let [period, task, watchdog, priority, irqtype, low, high] = self.get_words(m, address)?;
                let (task, watchdog, name) = (task as i64, watchdog as i64, name(low, high));
                let wanted = IrqAttributes { period, task, watchdog, priority, irqtype, name };
                Ok(self.set_descriptor(m, number, &wanted)?)
            }
            control::GETIATTR => {
                let a = self.descriptor_attributes(number)?;
                let [low, high] = name_words(a.name);
                let words = [a.period, a.task as u64, a.watchdog as u64, a.priority, a.irqtype, low, high];
                self.put_words(m, address, words)
            }
            control::GETISTAT => {
                let s = self.descriptor_statistics(number)?;
                self.put_words(m, address, [s.count, s.maxshower, s.mdl, s.timestamp, s.maxlat, s.reenter])
            }
            control::CLRISTAT => Ok(self.clear_descriptor_statistics(number)?),
            _ => {
                let i = self.descriptor_internals(number)?;
                self.put_words(m, address, [i.irq, i.harmonic, i.vtimer, i.flags])
            }
        }
    }

    fn control_semaphore<M: Machine>(
        &mut self,
        m: &mut M,
        operation: u64,
        slot: usize,
        id: u64,
        address: u64,
    ) -> Result<u64, Stop> {
        match operation {
            control::SEMALLOC => {
                let [value, flags, priority, low, high] = self.get_words(m, address)?;
                let wanted = SemaphoreAttributes { value: value as i64, flags, priority, name: name(low, high) };
                self.process_of(slot, id as i64)?;
                Ok(self.allocate_semaphore(slot, &wanted)?)
            }
            control::SEMFREE => {
                self.allocated_semaphore(id)?;
                let freed = self.decide(|rt, effects| rt.free(slot as u16, id as u16, effects));
                Ok(freed.map(|()| 0).map_err(Errno::from)?)
            }
            control::GETSEMID => {
                let [low, high] = self.get_words(m, address)?;
                Ok(self.find_semaphore(&name(low, high))?)
            }
            control::GETSEMATTR => {
                let a = self.semaphore_attributes(id)?;
                let [low, high] = name_words(a.name);
                self.put_words(m, address, [a.value as u64, a.flags, a.priority, low, high])
            }
            control::GETSEMSTAT => {
                let s = self.allocated_semaphore(id)?.statistics;
                self.put_words(m, address, [s.ups, s.downs, s.most_waiters as u64])
            }
            control::CLRSEMSTAT => {
                self.allocated_semaphore(id)?;
                self.mrt.rt.clear_statistics(id as u16);
                Ok(0)
            }
            _ if id >= SEMAPHORES as u64 => Err(error(rt::error::E_MRT_BADSEM).into()),
            _ => {
                let words = match self.mrt.rt.semaphore(id as u16) {
                    Some(semaphore) => [id, semaphore.owner as u64, semaphore.value.min(0).unsigned_abs() as u64],
                    None => [id, u64::MAX, 0],
                };
                self.put_words(m, address, words)
            }
        }
    }

    fn control_queue<M: Machine>(&mut self, m: &mut M, operation: u64, id: u64, address: u64) -> Result<u64, Stop> {
        if id == NOBODY as u64 || id >= self.mrt.processes.len() as u64 {
            return Err(error(rt::error::E_MRT_BADMSGQ).into());
        }
        if self.mrt.processes[id as usize].thread == 0 || !self.is_real_time(id as u16) {
            return Err(error(rt::error::E_MRT_FREEMSGQ).into());
        }
        let statistics = &mut self.mrt.processes[id as usize].queue.statistics;
        if operation == control::CLRMQSTAT {
            *statistics = QueueStatistics::default();
            return Ok(0);
        }
        let words = [statistics.delivered, statistics.enqueued, statistics.maxinq];
        self.put_words(m, address, words)
    }

    /// The structure at this address of the caller, word by word.
    fn get_words<M: Machine, const N: usize>(&mut self, m: &mut M, address: u64) -> Result<[u64; N], Stop> {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 8];
            self.read_own(m, address.saturating_add(8 * index as u64), &mut bytes)?;
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    fn put_words<M: Machine, const N: usize>(&mut self, m: &mut M, address: u64, words: [u64; N]) -> Result<u64, Stop> {
        for (index, word) in words.iter().enumerate() {
            self.write_own(m, address.saturating_add(8 * index as u64), &word.to_le_bytes())?;
        }
        Ok(0)
    }
}

fn name(low: u64, high: u64) -> [u8; 16] {
    (low as u128 | (high as u128) << 64).to_le_bytes()
}

fn name_words(name: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(name);
    [both as u64, (both >> 64) as u64]
}
