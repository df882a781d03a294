//! The node: all state of one CPU's kernel, and the doors through which the hardware half enters it.
//!
//! How the hardware half drives it: on every entry from user mode it has saved the registers into `frame_mut(current())`, calls the entry point that
//! fits, and then asks `next` until that says `Run(slot)`: it loads the slot's space and FPU ownership if they differ from what is loaded, and restores
//! `frame_mut(slot)`. Interrupts that come while the kernel waits (`Idle`, `Interrupts`) call only `interrupt` or `timer`; the loop asks `next` again.

use abi::{
    Endpoint, Name,
    endpoint::{SERVICE_SLOTS, SLOTS},
    layout::SPACES,
    privilege::Privileges,
};

use crate::{Frame, Machine, Space, Thread, queue::List};

/// Number of ready queues: real time 0 to 47, time shared 48 to 63.
pub(crate) const QUEUES: usize = 64;

/// What the CPU does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs the thread in this slot, which is now the current one.
    Run(usize),
    /// Nothing is ready: enables interrupts and halts until one has been taken, then asks again.
    Idle,
    /// Work in the kernel made way for interrupts: enables interrupts for a moment so that they are taken, then asks again.
    Interrupts,
}

/// All state of one CPU's kernel.
#[derive(Debug)]
pub struct Node {
    pub(crate) threads: [Thread; SLOTS],
    /// Slot of the thread that runs, or was last to run.
    pub(crate) current: usize,
    /// Bit = ready queue that holds threads.
    pub(crate) ready: u64,
    pub(crate) queues: [List; QUEUES],
    pub(crate) privileges: [Privileges; SERVICE_SLOTS],
    /// Address spaces: number of threads that use one, plus 1; 0: free.
    pub(crate) spaces: [u16; SPACES],
}

impl Node {
    /// A node without threads: all bytes zero, to be made ready by `boot`.
    pub const fn new() -> Node {
        Node {
            threads: [Thread::FREE; SLOTS],
            current: 0,
            ready: 0,
            queues: [List::EMPTY; QUEUES],
            privileges: [Privileges { io_way: 0, ..Privileges::NONE }; SERVICE_SLOTS],
            spaces: [0; SPACES],
        }
    }

    /// Makes the node ready. Called once, before anything else.
    pub fn boot<M: Machine>(&mut self, m: &mut M) {
        let _ = m;
    }

    /// Starts a service at boot (vm, rs) with all privileges, ready to run with these registers. The machine has built its space already, under the
    /// number `Space(slot)`. Returns its endpoint; the caller has put that into the frame (`Endpoint::new(slot, 1)`).
    pub fn boot_service<M: Machine>(&mut self, m: &mut M, slot: usize, name: Name, frame: Frame) -> Endpoint {
        let _ = (m, name, frame);
        Endpoint::new(slot, 1)
    }

    /// Switches the trace ring on or off, as the command line says.
    pub fn set_tracing(&mut self, on: bool) {
        let _ = on;
    }

    /// Slot of the thread that runs (or was last to run).
    #[inline(always)]
    pub fn current(&self) -> usize {
        self.current
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
    pub fn privileges(&self, slot: usize) -> &Privileges {
        &self.privileges[self.threads[slot].privileges as usize]
    }

    /// The current thread executed `syscall`.
    #[inline(always)]
    pub fn syscall<M: Machine>(&mut self, m: &mut M) {
        let _ = m;
    }

    /// The current thread executed `int 0x21`.
    pub fn vector33<M: Machine>(&mut self, m: &mut M) {
        let _ = m;
    }

    /// The current thread, in user mode, touched memory that is not mapped so (`access`: `abi::kernel::ACCESS_*`).
    pub fn page_fault<M: Machine>(&mut self, m: &mut M, address: u64, access: u64) {
        let _ = (m, address, access);
    }

    /// The current thread, in user mode, caused the exception `vector` (not a page fault, not the FPU's first use) with this error code;
    /// `address` where the CPU names one, else 0.
    pub fn exception<M: Machine>(&mut self, m: &mut M, vector: u64, error: u64, address: u64) {
        let _ = (m, vector, error, address);
    }

    /// A device's interrupt came on this line. The machine acknowledges it after the call.
    pub fn interrupt<M: Machine>(&mut self, m: &mut M, line: usize) {
        let _ = (m, line);
    }

    /// The timer's interrupt came. The machine acknowledges it after the call.
    pub fn timer<M: Machine>(&mut self, m: &mut M) {
        let _ = m;
    }

    /// What to do now. Call it after every entry from user mode, and again after `Idle` and `Interrupts`.
    #[inline(always)]
    pub fn next<M: Machine>(&mut self, m: &mut M) -> Next {
        let _ = m;
        Next::Idle
    }
}

impl Default for Node {
    fn default() -> Node {
        Node::new()
    }
}
