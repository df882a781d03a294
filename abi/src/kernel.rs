//! Messages of the kernel itself. Notifications come from HARDWARE and CLOCK; every other message comes from the thread
//! concerned, which blocks until the reply as if it had called `SENDREC`.

protocol! {
    /// The kernel's own messages. Programs cannot send these labels.
    pub "kernel" = 0x4000;
    /// A notification. From HARDWARE: `bits` has one bit for each hook that fired. From CLOCK: the alarm.
    /// From a process: `notify` was called, or `SENDNB` may be retried. `time_ns`: time of delivery.
    Notify = 1 { time_ns: u64, bits: u64 }
    /// Page fault of a thread; sent to vm. `access`: bits of `ACCESS_*`. Status 0 makes the thread retry the access; an error
    /// raises an exception: `EFAULT` a segmentation violation, `ENOMEM` out of memory, any other a bus error.
    Fault = 2 { address: u64, access: u64, ip: u64 }
    /// A kernel call of the sender needs memory of `owner` that is not mapped, or not with this right; sent to vm. Status 0
    /// continues the call, an error makes it fail with `EFAULT`.
    CopyFault = 3 { address: u64, access: u64, owner: Endpoint }
    /// Unhandled exception of a thread; sent to its manager (pm for programs, rs for services), which kills the thread, or sets
    /// its registers and replies. `vector`: of the CPU; 14 with `error` = vm's negative error for a page fault.
    Exception = 4 { vector: u64, error: u64, ip: u64, address: u64 }
    /// The thread was marked by `Interrupt` and is about to run in user mode; sent to pm. The reply or `SetRegisters` resumes it.
    Interrupted = 5 { }
    /// The thread called `Exit`; sent to its manager, which destroys it.
    Exited = 6 { status: u64 }
    /// The application thread is about to become real-time; sent to vm, which makes all of its memory resident and extends the
    /// stack below this address. Status 0 or `ENOMEM`.
    Resident = 7 { stack: u64 }
    /// The thread, whose Linux calls are reported (`SetRegisters`), makes this one; sent to pm, which resumes it with `SetRegisters`.
    LinuxCall = 8 { number: u64 }
}

use crate::Endpoint;

/// Vector in the report of a vm or rs that hangs: the kernel has cancelled its wait and logged the reason.
pub const HUNG_VECTOR: u64 = 257;

/// The page is present: its rights deny the access.
pub const ACCESS_PRESENT: u64 = 1;
/// The access was a write.
pub const ACCESS_WRITE: u64 = 2;
/// The access was an instruction fetch.
pub const ACCESS_EXECUTE: u64 = 16;

/// Policies of `IrqSet`.
pub mod irq {
    /// The line is masked when the interrupt comes, until `IrqEnable`.
    pub const MASK_UNTIL_ENABLED: u64 = 0;
    /// The kernel unmasks the line at once (edge-triggered lines whose driver cannot lose events).
    pub const REENABLE: u64 = 1;
}
