//! A thread: saved registers, what it waits for, and all the node remembers about it between two entries.
//!
//! Everything that exists is a thread in a slot; a service is one thread, a Linux process one or more. All-zero bytes
//! are a free slot, so that the table costs no space in the image. Invariants: a thread runs only when its `state` is `READY`; it
//! is in at most one list (ready queue, the sender list of one destination, a futex bucket), linked by `next` and
//! `previous`; slot 0 is never in a list and means "end". Neighbours: `sched` (the table), `list`, `state`, `ipc`
//! and `life` (change the state).

pub(crate) mod list;
pub(crate) mod state;

use crate::{Frame, Space, priority::KEEPS_TURN, thread::list::List, thread::state::Hold, thread::state::State};

use abi::{Endpoint, Message, linux::KEPT};
use core::mem::offset_of;
use zerocopy::FromZeros;

/// What is to be done in a thread's name before it runs in user mode again, bits of `Thread::attention`: the lowest first.
pub(crate) mod attention {
    /// Die: it has sent or received its last message (`Inject`).
    pub const DIE: u16 = 1;
    /// Go on with the kernel call that is in the registers.
    pub const RESUME: u16 = 2;
    /// Make the vector-33 call that is in the registers again.
    pub const AGAIN33: u16 = 4;
    /// Send the request to the SYSTEM task that is in the registers again.
    pub const ASK_AGAIN: u16 = 8;
    /// Make the HAL trap that is in the registers again.
    pub const HAL_AGAIN: u16 = 16;
    /// Write the message in `arrived` to the memory named in `rsi` (vector 33).
    pub const STORE: u16 = 32;
    /// Tell pm with `kernel::Interrupted`.
    pub const INTERRUPT: u16 = 64;
    /// Its message, which is in the registers, was refused: log that.
    pub const DENIED: u16 = 128;
    /// Go on with writing the thread, vm or rs, anew.
    pub const RENEW: u16 = 256;
    /// No fast path while it runs, and nothing else. Stays.
    pub const TRACED: u16 = 512;
}

/// Where a thread's message is taken from and where the answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub(crate) enum MessageSource {
    /// In the registers, both ways.
    Native,
    /// A Linux call: out of the registers by Linux's rule, only word 0 of the answer comes back.
    Linux,
    /// The same, sent again because the server that had received it died: word 6 says so (`abi::message::REPEATED`).
    Repeated,
    /// Vector 33: out of `outgoing`, into `arrived` and then into the caller's memory.
    Memory,
    /// Made by the kernel in the thread's name: out of `outgoing`; word 0 of the answer tells how to go on.
    Kernel,
}

/// What becomes of the calls that a thread makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Its Linux calls go where they are routed.
    Ordinary,
    /// It is a real-time process of MINIX4RT now, which makes none.
    RealTime,
    /// pm is told of its Linux calls first.
    Traced,
}

/// One thread.
#[derive(Clone, Debug, FromZeros)]
pub struct Thread {
    /// User registers while it does not run.
    pub frame: Frame,
    /// Its endpoint; `Endpoint(0)` when the slot is free.
    pub(crate) endpoint: Endpoint,
    /// Whether it may run, and what it waits for.
    pub(crate) state: State,
    /// Where its message is.
    pub(crate) form: MessageSource,
    /// Bits of `attention`.
    pub(crate) attention: u16,
    /// The ready queue it belongs to, 0 best to 63.
    pub(crate) queue: u8,
    /// The queue it returns to when it has waited.
    pub(crate) base_queue: u8,
    /// Its process of MINIX4RT; 0: none.
    pub(crate) mrt: u16,
    /// Who takes its calls.
    pub(crate) mode: Mode,
    /// Its entry in the node's privileges.
    pub(crate) privileges: u8,
    /// Its address space, unless held by `NoSpace`.
    pub(crate) space: Space,
    /// Next in its list.
    pub(crate) next: u16,
    /// Previous in its list.
    pub(crate) previous: u16,
    /// Threads whose messages wait for this one. Kept over a restart.
    pub(crate) senders: List,
    /// Notifications: bit = slot of the source.
    pub(crate) pending: [u64; 2],
    /// Interrupt hooks that have fired since the last notification from HARDWARE.
    pub(crate) hooks: u64,
    /// Services to be notified when this thread waits from `ANY`: their `SENDNB` found it busy. Kept over a restart.
    pub(crate) wanted: [u64; 2],
    /// Bytes of the long kernel call in the registers that are done.
    pub(crate) progress: u64,
    /// Time slice, in ticks.
    pub(crate) quantum: u64,
    /// What is left of it.
    pub(crate) quantum_left: i64,
    /// Time used, in ticks.
    pub(crate) run_ticks: u64,
    /// Messages sent and received; while a Linux call is in flight, the number of that call.
    pub(crate) messages: u64,
    /// The number of messages after which it dies (`Inject`); 0: none.
    pub(crate) dies_at: u64,
    /// Number of the Linux call it is in or just came from, plus 1; 0: none.
    pub(crate) linux_call: u32,
    /// Port accesses that were refused.
    pub(crate) denials: u32,
    /// Generation of the last holder.
    pub(crate) generation: u32,
    /// A successor is expected: senders to `Endpoint::current` wait.
    pub(crate) expected: bool,
    /// Futex: wake-up bits.
    pub(crate) futex_bits: u32,
    /// Futex: address in `space`.
    pub(crate) futex_address: u64,
    /// Futex: physical address of a shared one, else 0.
    pub(crate) futex_physical: u64,
    /// Futex: the bucket in which it waits.
    pub(crate) futex_bucket: u8,
    /// Real-time queue of what its alarm is for; 0: none.
    pub(crate) alarm_queue: u8,
    /// Its Linux id; 0: none.
    pub(crate) tid: u32,
    /// By call of `linux::KEPT`: its answer plus 1; 0: pm is asked.
    pub(crate) kept: [u32; KEPT.len()],
    /// Table of grants: address and number of entries.
    pub(crate) grants: [u64; 2],
    /// The message that is sent, for `MessageSource::Memory` and `MessageSource::Kernel`.
    pub(crate) outgoing: Message,
    /// The message of `MessageSource::Memory` that came in.
    pub(crate) arrived: Message,
}

impl Thread {
    /// Distance of `messages` from `frame`, in bytes: for the entry code, which has the frame's address.
    pub const MESSAGES_FROM_FRAME: isize = offset_of!(Thread, messages) as isize - offset_of!(Thread, frame) as isize;

    /// Messages sent and received.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Its endpoint; `Endpoint(0)` for a free slot.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// True when it runs or waits for the CPU only.
    pub fn is_ready(&self) -> bool {
        self.is_live() && self.state.is_ready()
    }

    /// Its address space; `None` when it has none (it does not run then).
    pub fn space(&self) -> Option<Space> {
        (!self.state.is_held(Hold::NoSpace)).then_some(self.space)
    }

    /// It is a real-time process of MINIX4RT now.
    pub(crate) fn is_real_time(&self) -> bool {
        self.mode == Mode::RealTime
    }

    /// Charges it for time it has used.
    #[inline(always)]
    pub(crate) fn charge(&mut self, ticks: u64) {
        self.run_ticks = self.run_ticks.wrapping_add(ticks);
        self.quantum_left = self.quantum_left.wrapping_sub(ticks as i64);
    }

    /// What is left of its time slice, in ticks.
    pub(crate) fn quantum_left(&self) -> u64 {
        u64::try_from(self.quantum_left).unwrap_or(0)
    }

    /// Sets its time slice, and gives it a whole one.
    pub(crate) fn set_quantum(&mut self, ticks: u64) {
        self.quantum = ticks;
        self.renew_quantum();
    }

    /// Gives it a whole time slice.
    pub(crate) fn renew_quantum(&mut self) {
        self.quantum_left = (self.quantum & !KEEPS_TURN) as i64;
    }

    /// True when the slot has a holder.
    pub(crate) fn is_live(&self) -> bool {
        self.endpoint.0 != 0
    }
}
