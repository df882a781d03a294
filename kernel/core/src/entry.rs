//! The kernel as the hardware half sees it: the microkernel, the rooms' state, and the entry points.
//!
//! How the hardware half drives it: on every entry from user mode it has saved the registers into
//! `frame_mut(current())`, calls the entry point that fits, and then asks `next` until that says `Run(slot)`: it loads
//! the slot's space and FPU ownership if they differ from what is loaded, and restores `frame_mut(slot)`. Interrupts
//! that come while the kernel waits (`Idle`, `Interrupts`) call only `interrupt` or `timer`; the loop asks `next`
//! again.

use crate::{
    FastSwitch, Frame, Machine, Space, Thread, calls, dispatch, dispatch::Next, interrupts, ipc::fast_path,
    ipc::in_memory, ipc::message, ipc::report, life, linux::route, memory::copy, memory::copy::CHUNK_BYTES,
    probes::tracing, rooms::Kernel, rooms::minix4rt, rooms::port_ways, thread::Mode, thread::state::Hold,
    vector::GENERAL_PROTECTION,
};

use abi::{
    Endpoint, Name, call, endpoint::APPLICATIONS_BIT, endpoint::FIRST_CONTAINER, endpoint::SERVICE_SLOTS,
    endpoint::SLOTS, linux::FIRST_FETCHED, privilege::Privileges,
};

impl Kernel {
    /// Makes a kernel without threads, all of whose bytes are zero, ready. Called once, before anything else.
    pub fn boot<M: Machine>(&mut self, m: &mut M) {
        self.node.threads.start(m.ticks());
        self.node.timer.disarm();
        self.node.chunk_bytes = CHUNK_BYTES;
        for slot in 0..SLOTS {
            self.node.threads[slot].privileges = if slot < SERVICE_SLOTS { slot } else { APPLICATIONS_BIT } as u8;
        }
        let rows = self.node.privileges.iter_mut().enumerate().skip(FIRST_CONTAINER);
        rows.for_each(|(row, privileges)| privileges.destinations[row / 64] = 1 << (row % 64));
        port_ways::start_system_task(&mut self.node);
        self.node.inheritance.start();
    }

    /// Starts a service at boot (vm, rs) with all privileges, ready to run with these registers. The machine has built
    /// its space already, under the number `Space(slot)`. Returns its endpoint; the caller has put that into the frame
    /// (`Endpoint::new(slot, 1)`).
    ///
    /// # Panics
    /// When `slot` is not a free service slot.
    pub fn boot_service<M: Machine>(&mut self, m: &mut M, slot: usize, name: Name, frame: Frame) -> Endpoint {
        life::create(&mut self.node, m, slot as u64).expect("a free service slot");
        self.node.privileges[slot] = Privileges {
            name,
            kernel_calls: u64::MAX,
            destinations: [u64::MAX; SERVICE_SLOTS / 64],
            ..Privileges::NONE
        };
        self.node.threads[slot].frame = frame;
        self.node.spaces[slot] = 1;
        life::enter_space(&mut self.node, slot, Space(slot as u16));
        tracing::trace!(self.node, NAMED, trace_name(m, self.node.threads[slot].endpoint, name));
        self.node.threads[slot].state.release(Hold::Stopped);
        self.node.threads.wake(slot);
        self.node.threads[slot].endpoint
    }

    /// Sets the events that are recorded; as the command line says before `boot_service`, so that names are.
    pub fn set_tracing(&mut self, events: u64) {
        self.node.set_tracing(events, 0);
    }

    /// Slot of the thread that runs; the idle task's when no thread does.
    pub fn current(&self) -> usize {
        self.node.current()
    }

    /// Privileges of the thread in a slot, for the hardware half's own use (I/O permission bitmap).
    pub fn privileges(&self, slot: usize) -> &Privileges {
        self.node.privileges(slot)
    }

    /// The thread in a slot.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    pub fn thread(&self, slot: usize) -> &Thread {
        &self.node.threads[slot]
    }

    /// Where the registers of a thread are saved. The address of a slot's frame never changes.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    pub fn frame_mut(&mut self, slot: usize) -> &mut Frame {
        &mut self.node.threads[slot].frame
    }

    /// The current thread executed `syscall` for a primitive: tries its fast path, if it has one. `Some`: the receiver is the current
    /// thread and is to run at once, without asking `next`. `None`: nothing has happened, `syscall` does it.
    #[inline(always)]
    pub fn try_primitive<M: Machine>(&mut self, m: &mut M, number: u64) -> Option<FastSwitch> {
        match number {
            call::SENDREC => fast_path::request(&mut self.node, m),
            call::REPLYREC => fast_path::answer(&mut self.node, m),
            _ => None,
        }
    }

    /// The same for the Linux call `number`, which is below `NATIVE`; with `fetches` for one of `linux::FETCHED` that was not taken without.
    #[inline(always)]
    pub fn try_linux_call<M: Machine>(&mut self, m: &mut M, number: u64, fetches: bool) -> Option<FastSwitch> {
        fast_path::linux_call(&mut self.node, m, number, fetches)
    }

    /// Returns true for a call of `linux::FETCHED`.
    pub fn fetches(&self, number: u64) -> bool {
        self.node.routes.get(number as usize).is_some_and(|route| *route as usize > FIRST_FETCHED)
    }

    /// The same for a Linux call of `linux::KEPT` whose answer pm has left. `Some`: the current thread goes on, as after `try_copy`.
    pub fn try_kept(&mut self, number: u64) -> Option<()> {
        let kept = (*self.node.routes.get(number as usize)? as usize).wrapping_sub(SERVICE_SLOTS + 1);
        let is_open = self.node.threads.best_for_fast_path() > 0;
        let thread = self.node.threads.running_mut();
        let answer = thread.kept.get(kept).filter(|_| is_open)?.checked_sub(1)?;
        thread.frame.rax = answer as u64;
        Some(())
    }

    /// The same for `VirCopy`, `SafeCopyFrom` and `SafeCopyTo`. True: the current thread goes on at once, with its result, and nothing of
    /// what the CPU has loaded has to change.
    #[inline(always)]
    pub fn try_copy<M: Machine>(&mut self, m: &mut M, call: call::KernelCall) -> bool {
        copy::copy_at_once(&mut self.node, m, call)
    }

    /// The current thread executed `syscall` with a number of `abi::rt::call`. True: it goes on at once, and nothing of what the
    /// CPU has loaded has to change.
    pub fn real_time_call<M: Machine>(&mut self, m: &mut M, number: u64) -> bool {
        minix4rt::real_time_call(self, m, number)
    }

    /// Returns true when the current thread may reach all of this access to the machine, unobserved: then it may be done at once.
    pub fn reaches_port(&self, port: u64, width: u64) -> bool {
        port_ways::reaches_port(&self.node, port, width)
    }

    /// Returns true when the current thread executes port instructions which the kernel carries out.
    pub fn emulates_ports(&self) -> bool {
        port_ways::emulates_ports(&self.node)
    }

    /// The current thread executed `syscall` with this number, which `real_time_call` does not take.
    #[inline(always)]
    pub fn syscall<M: Machine>(&mut self, m: &mut M, number: u64) {
        if self.node.threads.running().mode != Mode::Ordinary && self.takes_call(m, number) {
            return;
        }
        match number {
            ..call::NATIVE => route::linux_call(&mut self.node, m, number),
            call::KERNEL_CALLS..call::KERNEL_CALLS_END => calls::kernel_call(self, m, number),
            _ => message::primitive(&mut self.node, m, number),
        }
    }

    /// Handles the call of a thread that is not ordinary. Returns false when it is made as any other.
    #[cold]
    #[inline(never)]
    fn takes_call<M: Machine>(&mut self, m: &mut M, number: u64) -> bool {
        match self.node.threads.running().mode {
            Mode::RealTime => minix4rt::call_in_wrong_mode(self, m),
            Mode::Traced if number < call::NATIVE => report::report_linux_call(&mut self.node, m, number),
            Mode::Traced | Mode::Ordinary => return false,
        }
        true
    }

    /// The current thread executed `int 0x21`: tries the fast path. `Some`: the thread in this slot is the current one, and is to run at once;
    /// if it is the same as before, nothing of what the CPU has loaded has to change. `None`: nothing has happened, `vector33` does it.
    #[inline(always)]
    pub fn try_vector33<M: Machine>(&mut self, m: &mut M) -> Option<usize> {
        fast_path::primitive_in_memory(&mut self.node, m)
    }

    /// The current thread executed `int 0x21`.
    pub fn vector33<M: Machine>(&mut self, m: &mut M) {
        if self.node.threads.running().is_real_time() {
            return minix4rt::call_in_wrong_mode(self, m);
        }
        in_memory::memory_primitive(&mut self.node, m);
    }

    /// The current thread executed `int 0x22` (`abi::call::HAL_VECTOR`).
    pub fn hal<M: Machine>(&mut self, m: &mut M) {
        port_ways::hal_trap(&mut self.node, m);
    }

    /// The current thread, in user mode, touched memory that is not mapped so (`access`: `abi::kernel::ACCESS_*`).
    pub fn page_fault<M: Machine>(&mut self, m: &mut M, address: u64, access: u64) {
        report::page_fault(&mut self.node, m, address, access);
    }

    /// The current thread, in user mode, caused the exception `vector` (not a page fault, not the FPU's first use) with
    /// this error code; `address` where the CPU names one, else 0.
    pub fn exception<M: Machine>(&mut self, m: &mut M, vector: u64, error: u64, address: u64) {
        self.node.threads.running_mut().linux_call = 0;
        let looked_into = vector == GENERAL_PROTECTION && error == 0;
        if looked_into && port_ways::emulate_fault(&mut self.node, m) {
            return;
        }
        tracing::trace!(self.node, EXCEPTION, trace_exception(m, self.node.threads.running(), vector, address));
        let slot = self.node.current();
        report::report_exception(&mut self.node, m, slot, vector, error, address);
    }

    /// A device's interrupt came on this line. The machine acknowledges it after the call.
    pub fn interrupt<M: Machine>(&mut self, m: &mut M, line: usize) {
        self.node.threads.running_mut().linux_call = 0;
        minix4rt::first_stage(self, m, line);
        interrupts::deliver_or_record(&mut self.node, m, line);
    }

    /// The timer's interrupt came. The machine acknowledges it after the call.
    pub fn timer<M: Machine>(&mut self, m: &mut M) {
        self.node.threads.running_mut().linux_call = 0;
        dispatch::on_timer(self, m);
    }

    /// Tried before `next`, after a call that changes nothing of what the CPU has loaded. True: the current thread goes on at once.
    #[inline(always)]
    pub fn goes_on<M: Machine>(&mut self, m: &mut M) -> bool {
        self.node.goes_on(m)
    }

    /// What to do now. Call it after every entry from user mode, and again after `Idle` and `Interrupts`.
    #[inline(always)]
    pub fn next<M: Machine>(&mut self, m: &mut M) -> Next {
        dispatch::schedule(self, m)
    }
}
