//! The node: all state of one CPU's kernel, and the doors through which the hardware half enters it.
//!
//! How the hardware half drives it: on every entry from user mode it has saved the registers into
//! `frame_mut(current())`, calls the entry point that fits, and then asks `next` until that says `Run(slot)`: it loads
//! the slot's space and FPU ownership if they differ from what is loaded, and restores `frame_mut(slot)`. Interrupts
//! that come while the kernel waits (`Idle`, `Interrupts`) call only `interrupt` or `timer`; the loop asks `next`
//! again.

use crate::{
    FastSwitch, Frame, Machine, Space, Thread, calls, dispatch, futex::BUCKETS, futex::inheriting::PiFutexes,
    inheritance::effects::Inheritance, inheritance::throttle::Throttle, interrupts::Lines, interrupts::deferred,
    interrupts::deferred::Deferred, ipc::critical::Failures, ipc::fast_path, ipc::in_memory, ipc::message, ipc::report,
    life, linux::route, linux::route::ROUTES, linux::route::Routes, memory::copy::CHUNK_BYTES,
    rooms::injection::Injection, rooms::minix4rt, rooms::minix4rt::Minix4rt, rooms::port_ways, rooms::tracing,
    rooms::tracing::Tracing, sched::Threads, thread::blocked, thread::list::List, time::alarm::Alarms,
    time::timer::Timer, vector::GENERAL_PROTECTION, vector::PAGE_FAULT,
};

use abi::{
    Endpoint, Errno, Name, call::KERNEL_CALLS, call::NATIVE, endpoint::APPLICATIONS_BIT, endpoint::SERVICE_SLOTS,
    endpoint::slot, layout::SPACES, privilege::Privileges,
};

/// What the CPU does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs the thread in this slot, which is now the current one.
    Run(usize),
    /// Nothing is ready: enables interrupts and halts until one has been taken, then asks again.
    Idle,
    /// Work in the kernel made way for interrupts: enables interrupts for a moment so that they are taken, then asks
    /// again.
    Interrupts,
}

/// All state of one CPU's kernel.
#[derive(Debug)]
pub struct Node {
    pub(crate) threads: Threads,
    pub(crate) timer: Timer,
    /// In whose name the SYSTEM task makes a call; 0: in nobody's.
    pub(crate) serving: u16,
    pub(crate) tracing: Tracing,
    pub(crate) injection: Injection,
    /// Of vm and rs.
    pub(crate) failures: [Failures; 2],
    /// Since when rs has not heard its alarm, in ticks; of meaning while that is pending.
    pub(crate) unheard_since: u64,
    /// Interrupted long work waits for interrupts to be taken first.
    pub(crate) interrupts_first: bool,
    /// Messages and notifications delivered.
    pub(crate) delivered: u64,
    /// Device interrupts.
    pub(crate) interrupts: u64,
    /// Real time minus monotonic time, wrapping.
    pub(crate) real_offset_ns: u64,
    /// Where the search for a free application slot starts.
    pub(crate) next_application: usize,
    /// Bytes of memory copied, or work worth as much, between two preemption points.
    pub(crate) chunk_bytes: u64,
    /// Where the search for a free space starts.
    pub(crate) next_space: usize,
    pub(crate) routes: Routes,
    /// By slot; the entry of the idle task, which stays empty, is that of all application threads.
    pub(crate) privileges: [Privileges; SERVICE_SLOTS],
    /// Address spaces: number of threads that use one, plus 1; 0: free.
    pub(crate) spaces: [u16; SPACES],
    pub(crate) futexes: [List; BUCKETS],
    pub(crate) pi: PiFutexes,
    pub(crate) throttle: Throttle,
    pub(crate) lines: Lines,
    pub(crate) deferred_work: Deferred,
    pub(crate) alarms: Alarms,
    pub(crate) inheritance: Inheritance,
    pub(crate) minix4rt: Minix4rt,
}

impl Node {
    /// A node without threads: all bytes zero, to be made ready by `boot`.
    pub const fn new() -> Node {
        Node {
            threads: Threads::NEW,
            timer: Timer::ZERO,
            serving: 0,
            tracing: Tracing::NEW,
            injection: Injection::NEW,
            failures: [Failures::NONE; 2],
            unheard_since: 0,
            interrupts_first: false,
            delivered: 0,
            interrupts: 0,
            real_offset_ns: 0,
            next_application: 0,
            chunk_bytes: 0,
            next_space: 0,
            routes: [0; ROUTES],
            privileges: [Privileges { io_way: 0, ..Privileges::NONE }; SERVICE_SLOTS],
            spaces: [0; SPACES],
            futexes: [List::EMPTY; BUCKETS],
            pi: PiFutexes::NEW,
            throttle: Throttle { since: 0, used: 0, until: 0 },
            lines: Lines::NEW,
            deferred_work: Deferred::NEW,
            alarms: Alarms::NEW,
            inheritance: Inheritance::zeroed(),
            minix4rt: Minix4rt::NEW,
        }
    }

    /// Makes the node ready. Called once, before anything else.
    pub fn boot<M: Machine>(&mut self, m: &mut M) {
        self.threads.start(m.ticks());
        self.timer.disarm();
        self.chunk_bytes = CHUNK_BYTES;
        port_ways::start_system_task(self);
        self.inheritance.start();
    }

    /// Starts a service at boot (vm, rs) with all privileges, ready to run with these registers. The machine has built
    /// its space already, under the number `Space(slot)`. Returns its endpoint; the caller has put that into the frame
    /// (`Endpoint::new(slot, 1)`).
    ///
    /// # Panics
    /// When `slot` is not a free service slot.
    pub fn boot_service<M: Machine>(&mut self, m: &mut M, slot: usize, name: Name, frame: Frame) -> Endpoint {
        life::create(self, m, slot as u64).expect("a free service slot");
        self.privileges[slot] = Privileges {
            name,
            kernel_calls: u64::MAX,
            destinations: [u64::MAX; SERVICE_SLOTS / 64],
            ..Privileges::NONE
        };
        self.threads[slot].frame = frame;
        self.spaces[slot] = 1;
        life::enter_space(self, slot, Space(slot as u16));
        if self.tracing.is_on() {
            tracing::trace_name(self, m, slot);
        }
        self.threads[slot].flags &= !blocked::STOPPED;
        self.threads.wake(slot);
        self.threads[slot].endpoint
    }

    /// Switches the trace ring on or off; as the command line says before `boot_service`, so that names are recorded.
    pub fn set_tracing(&mut self, on: bool) {
        self.tracing.set(on);
        self.update_fast_path();
    }

    /// Slot of the thread that runs; the idle task's when nobody does.
    pub fn current(&self) -> usize {
        self.threads.current()
    }

    /// In whose name, with whose rights and whose memory the kernel call under way is made.
    pub(crate) fn caller(&self) -> usize {
        if self.serving == 0 { self.current() } else { self.serving as usize }
    }

    /// Returns the thread with this endpoint, `SELF` being the caller.
    pub(crate) fn find_or_self(&self, endpoint: Endpoint) -> Result<usize, Errno> {
        if endpoint == Endpoint::SELF { Ok(self.caller()) } else { self.threads.find(endpoint) }
    }

    /// Returns `ECALLDENIED` unless the privileges of `caller` let it send to this slot.
    #[inline(always)]
    pub(crate) fn may_send(&self, caller: usize, slot: usize) -> Result<(), Errno> {
        let bit = if slot < SERVICE_SLOTS { slot } else { APPLICATIONS_BIT };
        match self.privileges(caller).destinations[bit / 64] & 1 << (bit % 64) {
            0 => Err(Errno::ECALLDENIED),
            _ => Ok(()),
        }
    }

    /// Charges the current thread for its time and makes another the current one.
    #[inline(always)]
    pub(crate) fn switch_to<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.threads.charge(m.ticks());
        if self.tracing.is_on() {
            tracing::trace_switch(self, m, slot);
        }
        self.threads.set_current(slot);
    }

    /// Puts the current thread at the tail of its queue.
    pub(crate) fn yield_current<M: Machine>(&mut self, m: &mut M) {
        let slot = self.current();
        if self.threads[slot].flags == 0 {
            self.threads.enqueue_woken();
            self.switch_to(m, slot::IDLE);
            self.threads.enqueue(slot as u16);
        }
    }

    /// Decides whether every message is observed, and whether messages may take a fast path.
    pub(crate) fn update_fast_path(&mut self) {
        self.threads.set_observed(self.tracing.is_on() || self.injection.is_armed());
    }

    /// The thread in a slot.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    pub fn thread(&self, slot: usize) -> &Thread {
        &self.threads[slot]
    }

    /// Where the registers of a thread are saved. The address of a slot's frame never changes.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    pub fn frame_mut(&mut self, slot: usize) -> &mut Frame {
        &mut self.threads[slot].frame
    }

    /// Privileges of the thread in a slot, for the hardware half's own use (I/O permission bitmap).
    #[inline(always)]
    pub fn privileges(&self, slot: usize) -> &Privileges {
        &self.privileges[self.threads[slot].privileges as usize % SERVICE_SLOTS]
    }

    /// The current thread executed `syscall` for `SENDREC`: tries the short way. `Some`: the receiver is the current
    /// thread and is to run at once, without asking `next`. `None`: nothing has happened, `syscall` does it.
    pub fn try_request<M: Machine>(&mut self, m: &mut M) -> Option<FastSwitch> {
        fast_path::request(self, m)
    }

    /// The same for `REPLYREC`.
    pub fn try_answer<M: Machine>(&mut self, m: &mut M) -> Option<FastSwitch> {
        fast_path::answer(self, m)
    }

    /// The same for the Linux call `number`, which is below `NATIVE`.
    pub fn try_linux_call<M: Machine>(&mut self, m: &mut M, number: u64) -> Option<FastSwitch> {
        fast_path::linux_call(self, m, number)
    }

    /// The current thread executed `syscall` with a number of `abi::rt::call`. True: it goes on at once, and nothing of what the
    /// CPU has loaded has to change.
    pub fn real_time_call<M: Machine>(&mut self, m: &mut M, number: u64) -> bool {
        minix4rt::real_time_call(self, m, number)
    }

    /// Returns true when the current thread may reach all of this access to the machine, unobserved: then it may be done at once.
    pub fn reaches_port(&self, port: u64, width: u64) -> bool {
        port_ways::reaches_port(self, port, width)
    }

    /// Returns true when the current thread executes port instructions which the kernel carries out.
    pub fn emulates_ports(&self) -> bool {
        port_ways::emulates_ports(self)
    }

    /// The current thread executed `syscall`, with a number that `real_time_call` does not take.
    #[inline(always)]
    pub fn syscall<M: Machine>(&mut self, m: &mut M) {
        if self.threads.running().real_time {
            return minix4rt::call_in_wrong_mode(self, m);
        }
        match self.threads.running().frame.rax {
            number @ ..NATIVE => route::linux_call(self, m, number),
            number @ NATIVE..KERNEL_CALLS => message::primitive(self, m, number),
            number => calls::kernel_call(self, m, number),
        }
    }

    /// The current thread executed `int 0x21`.
    pub fn vector33<M: Machine>(&mut self, m: &mut M) {
        if self.threads.running().real_time {
            return minix4rt::call_in_wrong_mode(self, m);
        }
        in_memory::memory_primitive(self, m);
    }

    /// The current thread executed `int 0x22` (`abi::call::HAL_VECTOR`).
    pub fn hal<M: Machine>(&mut self, m: &mut M) {
        port_ways::hal_trap(self, m);
    }

    /// The current thread, in user mode, touched memory that is not mapped so (`access`: `abi::kernel::ACCESS_*`).
    pub fn page_fault<M: Machine>(&mut self, m: &mut M, address: u64, access: u64) {
        let slot = self.current();
        self.threads[slot].linux_call = 0;
        if self.tracing.is_on() {
            tracing::trace_exception(self, m, slot, PAGE_FAULT, address);
        }
        report::report_fault(self, m, slot, address, access);
    }

    /// The current thread, in user mode, caused the exception `vector` (not a page fault, not the FPU's first use) with
    /// this error code; `address` where the CPU names one, else 0.
    pub fn exception<M: Machine>(&mut self, m: &mut M, vector: u64, error: u64, address: u64) {
        self.threads.running_mut().linux_call = 0;
        let looked_into = vector == GENERAL_PROTECTION && error == 0;
        if looked_into && port_ways::emulate_fault(self, m) {
            return;
        }
        if self.tracing.is_on() {
            tracing::trace_exception(self, m, self.current(), vector, address);
        }
        report::report_exception(self, m, self.current(), vector, error, address);
    }

    /// A device's interrupt came on this line. The machine acknowledges it after the call.
    pub fn interrupt<M: Machine>(&mut self, m: &mut M, line: usize) {
        self.threads.running_mut().linux_call = 0;
        minix4rt::first_stage(self, m, line);
        deferred::deliver_or_record(self, m, line);
    }

    /// The timer's interrupt came. The machine acknowledges it after the call.
    pub fn timer<M: Machine>(&mut self, m: &mut M) {
        self.threads.running_mut().linux_call = 0;
        dispatch::on_timer(self, m);
    }

    /// What to do now. Call it after every entry from user mode, and again after `Idle` and `Interrupts`.
    #[inline(always)]
    pub fn next<M: Machine>(&mut self, m: &mut M) -> Next {
        dispatch::schedule(self, m)
    }
}
