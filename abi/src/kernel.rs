//! What the kernel itself sends. Sources: HARDWARE and CLOCK for notifications, and the thread concerned for the rest:
//! the kernel then makes the thread wait for an answer as if it had called `SENDREC`.

protocol! {
    /// The kernel's own messages. Programs cannot send these labels.
    pub "kernel" = 0x4000;
    /// A notification. From HARDWARE: `bits` has one bit for each hook that fired. From CLOCK: the alarm.
    /// From a process: `notify` was called, or `SENDNB` may be tried again. `time_ns`: when it was delivered.
    Notify = 1 { time_ns: u64, bits: u64 }
    /// A thread touched memory that is not mapped so; sent to vm. `access`: bits of `ACCESS_*`. Status 0 lets the thread try again;
    /// an error makes it an exception: `EFAULT` segmentation violation, `ENOMEM` out of memory, any other bus error.
    Fault = 2 { address: u64, access: u64, ip: u64 }
    /// A kernel call of the sender needs memory of `owner` that is not mapped so; sent to vm. Status 0 continues the call,
    /// an error makes it return `EFAULT`.
    CopyFault = 3 { address: u64, access: u64, owner: Endpoint }
    /// A thread caused an exception that nothing has handled; sent to its manager (pm for programs, rs for services), which kills it, or sets
    /// registers and answers. `vector`: of the CPU; 14 with `error` = negative number of vm's refusal.
    Exception = 4 { vector: u64, error: u64, ip: u64, address: u64 }
    /// The thread was marked by `Interrupt` and is about to run in user mode; sent to pm. An answer or `SetRegisters` lets it go on.
    Interrupted = 5 { }
    /// The thread called `Exit`; sent to its manager, which destroys it.
    Exited = 6 { status: u64 }
    /// The thread, an application's, is to become real-time; sent to vm, which makes all of its memory resident and grows the stack some way
    /// below this address. → 0, or `ENOMEM`.
    Resident = 7 { stack: u64 }
}

use crate::Endpoint;

/// Vector in the report of vm or rs that hangs: the kernel has ended its wait, and prints why.
pub const HUNG_VECTOR: u64 = 257;

/// The page is present: the access broke its rights.
pub const ACCESS_PRESENT: u64 = 1;
/// It was a write.
pub const ACCESS_WRITE: u64 = 2;
/// It was an instruction fetch.
pub const ACCESS_EXECUTE: u64 = 16;

/// Policies of `IrqSet`.
pub mod irq {
    /// The line is masked when the interrupt comes, until `IrqEnable`.
    pub const MASK_UNTIL_ENABLED: u64 = 0;
    /// The kernel unmasks the line at once (edge-triggered lines whose driver cannot lose events).
    pub const REENABLE: u64 = 1;
}
