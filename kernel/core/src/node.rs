//! The node: all state of one CPU's kernel, and the doors through which the hardware half enters it.
//!
//! How the hardware half drives it: on every entry from user mode it has saved the registers into
//! `frame_mut(current())`, calls the entry point that fits, and then asks `next` until that says `Run(slot)`: it loads
//! the slot's space and FPU ownership if they differ from what is loaded, and restores `frame_mut(slot)`. Interrupts
//! that come while the kernel waits (`Idle`, `Interrupts`) call only `interrupt` or `timer`; the loop asks `next`
//! again.

use abi::{
    Endpoint, Name,
    call::{KERNEL_CALLS, NATIVE},
    endpoint::{SERVICE_SLOTS, SLOTS, slot},
    layout::SPACES,
    privilege::Privileges,
};

use crate::{
    Frame, HandOver, Machine, Space, Thread,
    alarm::Alarms,
    emulate::Emulated,
    futex::BUCKETS,
    futex_pi::PiFutexes,
    line::Lines,
    mrt::Mrt,
    queue::List,
    report::PAGE_FAULT,
    roots::Failures,
    route::{ROUTES, Routes},
    thread::blocked,
    throttle::Throttle,
};

/// Vector of general-protection faults.
pub(crate) const GENERAL_PROTECTION: u64 = 13;

/// Number of ready queues: real time 0 to 46, the SYSTEM task 47, time shared 48 to 63.
pub(crate) const QUEUES: usize = 64;

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
    pub(crate) threads: [Thread; SLOTS],
    /// Slot of the thread that runs; the idle task's when nobody does. In no queue.
    pub(crate) current: usize,
    /// In whose name the SYSTEM task makes a call; 0: in nobody's.
    pub(crate) serving: u16,
    /// The thread woken last, in no queue yet; 0: none.
    pub(crate) woken: u16,
    /// Tracing is on.
    pub(crate) tracing: bool,
    /// Every message is looked at, and none goes the short way: for tracing, or for deaths after a number of messages.
    pub(crate) observed: bool,
    /// None of the short ways may be taken: messages are observed, or the current thread runs in a real-time queue.
    pub(crate) barred: bool,
    /// Services that are to die after a number of messages.
    pub(crate) armed_deaths: u16,
    /// Of vm and rs.
    pub(crate) failures: [Failures; 2],
    /// Since when rs has not heard its alarm, in ticks; of meaning while that is pending.
    pub(crate) unheard_since: u64,
    /// Interrupted long work waits for interrupts to be taken first.
    pub(crate) interrupts_first: bool,
    /// Bit = ready queue that holds threads.
    pub(crate) ready: u64,
    /// Bit = priority for which real-time has work that was put off; those bits are set in `ready` too.
    pub(crate) deferred: u64,
    pub(crate) queues: [List; QUEUES],
    /// When the current thread was last charged for its time, in ticks.
    pub(crate) switched_at: u64,
    /// When the timer will come, in ticks; `u64::MAX`: never.
    pub(crate) armed: u64,
    /// When sunk threads were last raised, in ticks.
    pub(crate) balanced_at: u64,
    /// Messages and notifications delivered.
    pub(crate) delivered: u64,
    /// Context switches.
    pub(crate) switches: u64,
    /// Device interrupts.
    pub(crate) interrupts: u64,
    /// Threads that exist.
    pub(crate) live: u64,
    /// Real time minus monotonic time, wrapping.
    pub(crate) real_offset_ns: u64,
    /// Where the search for a free application slot starts.
    pub(crate) next_application: usize,
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
    pub(crate) alarms: Alarms,
    pub(crate) mrt: Mrt,
}

impl Node {
    /// A node without threads: all bytes zero, to be made ready by `boot`.
    pub const fn new() -> Node {
        Node {
            threads: [Thread::FREE; SLOTS],
            current: 0,
            serving: 0,
            woken: 0,
            tracing: false,
            observed: false,
            barred: false,
            armed_deaths: 0,
            failures: [Failures::NONE; 2],
            unheard_since: 0,
            interrupts_first: false,
            ready: 0,
            deferred: 0,
            queues: [List::EMPTY; QUEUES],
            switched_at: 0,
            armed: 0,
            balanced_at: 0,
            delivered: 0,
            switches: 0,
            interrupts: 0,
            live: 0,
            real_offset_ns: 0,
            next_application: 0,
            next_space: 0,
            routes: [0; ROUTES],
            privileges: [Privileges { io_way: 0, ..Privileges::NONE }; SERVICE_SLOTS],
            spaces: [0; SPACES],
            futexes: [List::EMPTY; BUCKETS],
            pi: PiFutexes::new(),
            throttle: Throttle { since: 0, used: 0, until: 0 },
            lines: Lines::new(),
            alarms: Alarms::new(),
            mrt: Mrt::new(),
        }
    }

    /// Makes the node ready. Called once, before anything else.
    pub fn boot<M: Machine>(&mut self, m: &mut M) {
        self.switched_at = m.ticks();
        self.balanced_at = self.switched_at;
        self.armed = u64::MAX;
        self.current = slot::IDLE;
        self.threads[slot::IDLE].flags = blocked::STOPPED;
        self.start_system_task();
        self.mrt.rt.start();
    }

    /// Starts a service at boot (vm, rs) with all privileges, ready to run with these registers. The machine has built
    /// its space already, under the number `Space(slot)`. Returns its endpoint; the caller has put that into the frame
    /// (`Endpoint::new(slot, 1)`).
    ///
    /// # Panics
    /// When `slot` is not a free service slot.
    pub fn boot_service<M: Machine>(&mut self, m: &mut M, slot: usize, name: Name, frame: Frame) -> Endpoint {
        self.create(m, slot as u64).expect("a free service slot");
        self.privileges[slot] = Privileges {
            name,
            kernel_calls: u64::MAX,
            destinations: [u64::MAX; SERVICE_SLOTS / 64],
            ..Privileges::NONE
        };
        self.threads[slot].frame = frame;
        self.spaces[slot] = 1;
        self.enter_space(slot, Space(slot as u16));
        if self.tracing {
            self.trace_name(m, slot);
        }
        self.threads[slot].flags &= !blocked::STOPPED;
        self.wake(slot);
        self.threads[slot].endpoint
    }

    /// Switches the trace ring on or off; as the command line says before `boot_service`, so that names are recorded.
    pub fn set_tracing(&mut self, on: bool) {
        self.tracing = on;
        self.observe();
    }

    /// Slot of the thread that runs; the idle task's when nobody does.
    #[inline(always)]
    pub fn current(&self) -> usize {
        self.current
    }

    /// In whose name, with whose rights and whose memory the kernel call under way is made.
    #[inline(always)]
    pub(crate) fn caller(&self) -> usize {
        if self.serving == 0 { self.current } else { self.serving as usize }
    }

    /// The thread in a slot.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    #[inline(always)]
    pub fn thread(&self, slot: usize) -> &Thread {
        &self.threads[slot]
    }

    /// Where the registers of a thread are saved. The address of a slot's frame never changes.
    ///
    /// # Panics
    /// When `slot` is not below `SLOTS`.
    #[inline(always)]
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
    #[inline(always)]
    pub fn try_request<M: Machine>(&mut self, m: &mut M) -> Option<HandOver> {
        self.hand_over_request(m)
    }

    /// The same for `REPLYREC`.
    #[inline(always)]
    pub fn try_answer<M: Machine>(&mut self, m: &mut M) -> Option<HandOver> {
        self.hand_over_answer(m)
    }

    /// The same for the Linux call `number`, which is below `NATIVE`.
    #[inline(always)]
    pub fn try_linux_call<M: Machine>(&mut self, m: &mut M, number: u64) -> Option<HandOver> {
        self.hand_over_linux_call(m, number)
    }

    /// The current thread executed `syscall`, with a number that `real_time_call` does not take.
    #[inline(always)]
    pub fn syscall<M: Machine>(&mut self, m: &mut M) {
        if self.threads[self.current].real_time {
            return self.call_in_wrong_mode(m);
        }
        match self.threads[self.current].frame.rax {
            number @ ..NATIVE => self.linux_call(m, number),
            number @ NATIVE..KERNEL_CALLS => self.primitive(m, number),
            number => self.kernel_call(m, number),
        }
    }

    /// The current thread executed `int 0x21`.
    pub fn vector33<M: Machine>(&mut self, m: &mut M) {
        if self.threads[self.current].real_time {
            return self.call_in_wrong_mode(m);
        }
        self.memory_primitive(m);
    }

    /// The current thread executed `int 0x22` (`abi::call::HAL_VECTOR`).
    pub fn hal<M: Machine>(&mut self, m: &mut M) {
        self.hal_trap(m);
    }

    /// The current thread, in user mode, touched memory that is not mapped so (`access`: `abi::kernel::ACCESS_*`).
    pub fn page_fault<M: Machine>(&mut self, m: &mut M, address: u64, access: u64) {
        self.threads[self.current].linux_call = 0;
        if self.tracing {
            self.trace_exception(m, self.current, PAGE_FAULT, address);
        }
        self.report_fault(m, self.current, address, access);
    }

    /// The current thread, in user mode, caused the exception `vector` (not a page fault, not the FPU's first use) with
    /// this error code; `address` where the CPU names one, else 0.
    pub fn exception<M: Machine>(&mut self, m: &mut M, vector: u64, error: u64, address: u64) {
        self.threads[self.current].linux_call = 0;
        let looked_into = vector == GENERAL_PROTECTION && error == 0;
        if looked_into && self.emulate_port_instruction(m) == Emulated::Done {
            return;
        }
        if self.tracing {
            self.trace_exception(m, self.current, vector, address);
        }
        self.report_exception(m, self.current, vector, error, address);
    }

    /// A device's interrupt came on this line. The machine acknowledges it after the call.
    pub fn interrupt<M: Machine>(&mut self, m: &mut M, line: usize) {
        self.threads[self.current].linux_call = 0;
        self.take_interrupt(m, line);
    }

    /// The timer's interrupt came. The machine acknowledges it after the call.
    pub fn timer<M: Machine>(&mut self, m: &mut M) {
        self.threads[self.current].linux_call = 0;
        self.on_timer(m);
    }

    /// What to do now. Call it after every entry from user mode, and again after `Idle` and `Interrupts`.
    #[inline(always)]
    pub fn next<M: Machine>(&mut self, m: &mut M) -> Next {
        self.schedule(m)
    }
}

impl Default for Node {
    fn default() -> Node {
        Node::new()
    }
}
