//! Kernel calls: decoding, the permission each needs, and how one that cannot finish at once is taken up again.
//!
//! A call leaves the caller's registers alone until it is done, so a call that was interrupted (memory that vm must map
//! first, a preemption point) is simply made again when the thread is next dispatched; `Thread::progress` says how much
//! of a long one is done. Calls with lasting effects touch user memory before the effect, or nothing after it.
//! Neighbours: every file that implements calls; `report` (asks vm for memory); `scheduler` (dispatches).

use abi::{
    Endpoint, Errno,
    call::{KernelCall, NATIVE, SENDREC, UNRESTRICTED},
    endpoint::{SERVICE_SLOTS, slot},
    rt,
};

use crate::{Machine, Node, copy::request, machine::Fault, node::GENERAL_PROTECTION, thread::attention};

/// Why a kernel call does not return a value now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has failed.
    Error(Errno),
    /// It ends its caller, as a general-protection fault about this address (a port) would.
    Exception(u64),
    /// It needs memory of the thread in this slot.
    Fault(usize, Fault),
    /// Interrupts want to be taken; it goes on afterwards.
    Preempted,
    /// The caller waits or is gone; there is no result.
    NoResult,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Stop {
        Stop::Error(error)
    }
}

impl Node {
    /// A kernel call (or a number that is none) by the current thread.
    #[inline(never)]
    pub(crate) fn kernel_call<M: Machine>(&mut self, m: &mut M, number: u64) {
        let result = self.permitted_call(m, KernelCall::from_number(number));
        if self.tracing {
            self.trace_call(m, number, result);
        }
        self.finish(m, self.current, attention::RESUME, result);
    }

    /// Makes a call (`None`: a number that is none), if the caller may.
    pub(crate) fn permitted_call<M: Machine>(&mut self, m: &mut M, call: Option<KernelCall>) -> Result<u64, Stop> {
        match call {
            None => Err(Errno::EBADCALL.into()),
            Some(call) if self.may_call(call) => self.perform(m, call),
            Some(KernelCall::DevIo | KernelCall::SDevIo) => {
                let port = self.threads[self.current].frame.rdi;
                Err(self.deny(m, self.call_door(), port))
            }
            Some(_) => Err(Errno::ECALLDENIED.into()),
        }
    }

    /// Gives a call its result, or arranges for it to go on: `again` is the bit of `attention` for that.
    pub(crate) fn finish<M: Machine>(&mut self, m: &mut M, caller: usize, again: u8, result: Result<u64, Stop>) {
        let thread = &mut self.threads[caller];
        match result {
            Ok(value) => {
                thread.progress = 0;
                thread.frame.rax = value;
            }
            Err(Stop::Error(error)) => {
                thread.progress = 0;
                thread.frame.set_result(Err(error));
            }
            Err(Stop::Exception(address)) => {
                thread.progress = 0;
                self.report_exception(m, caller, GENERAL_PROTECTION, 0, address);
            }
            Err(Stop::Fault(owner, fault)) => {
                thread.attention |= again;
                self.report_copy_fault(m, caller, owner, fault);
            }
            Err(Stop::Preempted) => {
                thread.attention |= again;
                self.interrupts_first = true;
            }
            Err(Stop::NoResult) => {}
        }
    }

    /// Does what is outstanding before the current thread may run in user mode: one thing, by urgency.
    #[cold]
    #[inline(never)]
    pub(crate) fn attend<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let thread = &mut self.threads[slot];
        if thread.attention & attention::DIE != 0 {
            self.die(m, slot);
        } else if thread.attention & attention::RESUME != 0 {
            thread.attention &= !attention::RESUME;
            match self.threads[slot].frame.rax {
                number @ ..NATIVE => self.kernel_linux_call(m, number as u32),
                number @ rt::call::FIRST..rt::call::END => {
                    self.real_time_call(m, number);
                }
                number => self.kernel_call(m, number),
            }
        } else if thread.attention & attention::AGAIN33 != 0 {
            thread.attention &= !attention::AGAIN33;
            self.memory_primitive(m);
        } else if thread.attention & attention::ASK_AGAIN != 0 {
            thread.attention &= !attention::ASK_AGAIN;
            self.primitive(m, SENDREC);
        } else if thread.attention & attention::HAL_AGAIN != 0 {
            thread.attention &= !attention::HAL_AGAIN;
            self.hal_trap(m);
        } else if thread.attention & attention::STORE != 0 {
            self.store_arrived(m, slot);
        } else {
            thread.attention &= !attention::INTERRUPT;
            self.report_interrupted(m, slot);
        }
    }

    fn may_call(&self, call: KernelCall) -> bool {
        let caller = self.caller();
        let mask =
            self.privileges[self.threads[caller].privileges as usize % SERVICE_SLOTS].kernel_calls | UNRESTRICTED;
        match call {
            KernelCall::PrivCtl | KernelCall::Inject => caller == slot::RS,
            _ => mask & call.bit() != 0,
        }
    }

    /// Makes a permitted call with the arguments in the registers of the current thread: the caller, or the SYSTEM task in its name.
    fn perform<M: Machine>(&mut self, m: &mut M, call: KernelCall) -> Result<u64, Stop> {
        let caller = self.caller();
        let [w0, w1, w2, w3, w4, w5, _] = self.threads[self.current].frame.words();
        let e0 = Endpoint(w0 as u32);
        let value = match call {
            KernelCall::Exit => {
                self.report_exit(m, caller, w0);
                return Err(Stop::NoResult);
            }
            KernelCall::Yield => {
                self.threads[caller].frame.rax = 0;
                self.yield_current(m);
                return Err(Stop::NoResult);
            }
            KernelCall::Fork => self.fork(m, e0)?,
            KernelCall::Create => self.create(m, w0)?,
            KernelCall::Destroy => self.destroy(m, e0, w1 != 0)?,
            KernelCall::Inject => self.inject(m, self.find_or_self(e0)?, [w1, w2, w3, w4])?,
            KernelCall::GetRegisters => self.get_registers(m, self.find(e0)?, w1)?,
            KernelCall::SetRegisters => self.set_registers(m, self.find(e0)?, w1, w2 != 0)?,
            KernelCall::Start => {
                let slot = self.find(e0)?;
                self.threads[slot].tid = w1 as u32;
                self.start(slot);
                0
            }
            KernelCall::Stop => {
                self.stop(self.find_or_self(e0)?);
                0
            }
            KernelCall::Interrupt => self.interrupt_thread(m, self.find(e0)?)?,
            KernelCall::PrivCtl => self.set_privileges(m, e0, w1)?,
            KernelCall::Schedule => self.schedule_call(m, self.find_or_self(e0)?, w1, w2)?,
            KernelCall::SpaceCreate => self.create_space(m)?,
            KernelCall::SpaceDestroy => self.destroy_space(m, w0)?,
            KernelCall::SpaceSet => self.set_space(self.find_or_self(e0)?, w1)?,
            KernelCall::SpaceMap => self.map_space(m, [w0, w1, w2, w3, w4])?,
            KernelCall::SpaceUnmap => self.unmap_space(m, w0, w1, w2)?,
            KernelCall::SpaceProtect => self.protect_space(m, w0, w1, w2, w3)?,
            KernelCall::SpaceCopy => self.copy_space(m, w0, w1, w2, w3)?,
            KernelCall::Donate => self.donate_frames(m, w0, w1)?,
            KernelCall::FrameCopy => self.copy_frame(m, w0, w1)?,
            KernelCall::FrameFill => self.fill_frames(m, [w0, w1, w2, w3, w4, w5])?,
            KernelCall::VirCopy => self.copy_between(m, &request([w0, w1, w2, w3, w4]))?,
            KernelCall::SafeCopyFrom => self.copy_from_grant(m, [w0, w1, w2, w3, w4])?,
            KernelCall::SafeCopyTo => self.copy_to_grant(m, [w0, w1, w2, w3, w4])?,
            KernelCall::SetGrants => self.set_grants(w0, w1)?,
            KernelCall::Umap => self.translate(m, w0)?,
            KernelCall::DevIo => self.port_io(m, w0, w1, w2)?,
            KernelCall::SDevIo => self.port_string(m, self.call_door(), [w0, w1, w2, w3])?,
            KernelCall::IrqSet => self.set_line(m, w0, w1, w2)?,
            KernelCall::IrqEnable => self.enable_line(m, w0)?,
            KernelCall::IrqDisable => self.disable_line(m, w0)?,
            KernelCall::IrqRemove => self.remove_line(m, w0)?,
            KernelCall::MsiSet => self.set_msi(m, w0)?,
            KernelCall::SetAlarm => self.set_alarm(m, caller, w0, w1)?,
            KernelCall::Time => self.time(m),
            KernelCall::SetTime => self.set_time(m, w0)?,
            KernelCall::GetInfo => self.get_info(m, w0, w1, w2, w3)?,
            KernelCall::Diag => self.print(m, w0, w1)?,
            KernelCall::Shutdown => m.shutdown(w0, w1),
            KernelCall::Trace => {
                self.set_tracing(w0 != 0);
                0
            }
            KernelCall::Route => self.set_route(w0, w1)?,
            KernelCall::WhoIs => self.who_is(w0)?,
            KernelCall::PrivCheck => self.check_privilege(self.find_or_self(e0)?, w1, w2, w3)?,
            KernelCall::VDevIo => self.port_vector(m, w0, w1)?,
            KernelCall::PhysCopy => self.copy_physical(m, &request([w0, w1, w2, w3, w4]))?,
            KernelCall::VirVCopy => self.copy_vector(m, (w0, w1), Node::copy_between)?,
            KernelCall::PhysVCopy => self.copy_vector(m, (w0, w1), Node::copy_physical)?,
            KernelCall::GetTsc => self.time_stamp(m),
            KernelCall::RtControl => self.real_time_control(m, [w0, w1, w2, w3])?,
            KernelCall::FutexWake => self.wake_futex_of(m, self.find(e0)?, [w1, w2])?,
        };
        Ok(value)
    }

    /// `WhoIs`.
    fn who_is(&self, slot: u64) -> Result<u64, Errno> {
        let thread = usize::try_from(slot).ok().and_then(|slot| self.threads.get(slot)).ok_or(Errno::EINVAL)?;
        if thread.is_live() { Ok(thread.endpoint.0 as u64) } else { Err(Errno::EDEADSRCDST) }
    }

    /// `Time`: monotonic time; real time in word 0.
    fn time<M: Machine>(&mut self, m: &mut M) -> u64 {
        let now_ns = self.now_ns(m);
        self.threads[self.current].frame.rdi = now_ns.wrapping_add(self.real_offset_ns);
        now_ns
    }

    /// `GetTsc`: its halves in words 0 and 1.
    fn time_stamp<M: Machine>(&mut self, m: &mut M) -> u64 {
        let ticks = m.ticks();
        let frame = &mut self.threads[self.current].frame;
        (frame.rdi, frame.rsi) = (ticks >> 32, ticks & u32::MAX as u64);
        0
    }

    /// `SetTime`.
    fn set_time<M: Machine>(&mut self, m: &mut M, real_ns: u64) -> Result<u64, Errno> {
        self.real_offset_ns = real_ns.wrapping_sub(self.now_ns(m));
        Ok(0)
    }
}
