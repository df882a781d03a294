//! Numbers of the native calls, made by `syscall` with the number in `rax` (registers: see `message`), and the
//! vector-33 form: `int 0x21` with the number of a primitive in `rax`, the endpoint in `rdi`, the address of a
//! `Message` in `rsi`.
//!
//! Kernel calls take their arguments in words 0 to 5 (`rdi rsi rdx r10 r8 r9`), return 0, a value or a negative
//! error in `rax`, and further results in words 0 and 1 (`rdi rsi`). A kernel call needs its bit in the caller's mask,
//! else it fails with `ECALLDENIED`; an unknown number of theirs fails with `EBADCALL`.
//! Any other number that is no call fails with `ENOSYS`, as in Linux.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First native number; below are Linux system calls and Skink's own routed calls.
pub const NATIVE: u64 = 0x1000;

/// Sends a message and waits until it is received.
pub const SEND: u64 = 0x1000;
/// Waits for a message from one endpoint or `ANY`. Pending notifications come first.
pub const RECEIVE: u64 = 0x1001;
/// Sends a request and waits for the reply of the same endpoint. Notifications stay pending meanwhile.
pub const SENDREC: u64 = 0x1002;
/// Sets the caller's pending bit at the destination; never blocks. Label `kernel::Notify`.
pub const NOTIFY: u64 = 0x1003;
/// Sends only if the destination is waiting for this sender. Otherwise fails with `ENOTREADY`, and the destination's next
/// `RECEIVE` or `REPLYREC` from `ANY` notifies the caller (services only), which then retries.
pub const SENDNB: u64 = 0x1004;
/// Sends to `r13`, then receives from `r14` (mostly `ANY`), atomically. The send does not block. A destination that is not
/// waiting for a reply loses it, so that no client can block a server. A request fails as with `SENDNB`, and nothing is received.
pub const REPLYREC: u64 = 0x1005;

/// `SEND` to `r13`, then `RECEIVE` from `r14`, atomically. File systems and drivers reply with it to asynchronous requests:
/// the server's next `SENDNB` finds this process waiting.
pub const SENDWAIT: u64 = 0x1006;

/// First kernel call; bit `number - KERNEL_CALLS` of a call mask.
pub const KERNEL_CALLS: u64 = 0x1100;
/// End of the numbers of kernel calls: a mask has 64 bits.
pub const KERNEL_CALLS_END: u64 = KERNEL_CALLS + 64;

macro_rules! kernel_calls {
    ($($(#[doc = $doc:literal])* $name:ident = $n:literal,)*) => {
        /// The kernel calls, each documented as `(word 0, word 1, …) → result`, followed by the callers it is meant for.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum KernelCall { $($(#[doc = $doc])* $name = $n,)* }
        /// Names of all kernel calls, as written in the system file.
        pub const KERNEL_CALL_NAMES: &[(&str, KernelCall)] = &[$((stringify!($name), KernelCall::$name),)*];
        /// Documentation of [`KERNEL_CALL_NAMES`], in the same order, one element for each line.
        pub const KERNEL_CALL_DOCS: &[&[&str]] = &[$(&[$($doc),*],)*];
    };
}

kernel_calls! {
    /// `(status)`: ends the caller; its manager (rs for services, pm for programs) receives `kernel::Exited`. Needs no permission.
    Exit = 0,
    /// `(parent, flags)` → endpoint: a new thread in an application slot, registers copied from `parent` with `rax` = 0,
    /// stopped, no address space yet (vm sets one). FPU state copied. `parent` `NONE`: registers zero. `EAGAIN`: no free slot.
    Fork = 1,
    /// `(slot)` → endpoint: an inert service in this slot, with the next generation. rs.
    Create = 2,
    /// `(endpoint, keep)`: destroys a thread: its peers get `EDEADSRCDST`, timers, IRQs and grants vanish.
    /// `keep` = 1: a successor is expected in the slot, senders to `Endpoint::current` wait for it. pm, rs.
    Destroy = 3,
    /// `(endpoint, address of Registers)`: copies the registers of a stopped or blocked thread out. pm, rs.
    GetRegisters = 4,
    /// `(endpoint, address of Registers, bits of resume)`: sets the registers of a stopped or blocked thread. pm, rs.
    SetRegisters = 5,
    /// `(endpoint, id)`: makes a stopped thread ready. A new service starts with the registers set before. `id`: the thread's Linux id,
    /// by which futexes name their owners; 0: none. pm, rs.
    Start = 6,
    /// `(endpoint)`: keeps a thread from running until `Start`; messages can still be sent to it. pm, rs.
    Stop = 7,
    /// `(endpoint)` → endpoint the thread is blocked on, or `NONE`: before the thread returns to user mode it sends
    /// `kernel::Interrupted` to pm and blocks until the reply or `SetRegisters`. pm.
    Interrupt = 8,
    /// `(endpoint, address of Privileges)`: sets privileges. Only rs, whatever the mask says.
    PrivCtl = 9,
    /// `(endpoint, queue, quantum_us)`: base queue (0 best to 15, or `REAL_TIME` plus a real-time one) and quantum; 0 leaves the quantum unchanged. rs, pm.
    Schedule = 10,
    /// `()` → space: a new empty address space. vm. `ENOMEM`: table or page-table pool exhausted.
    SpaceCreate = 11,
    /// `(space)`: destroys it; its page-table frames return to the pool, its mapped frames stay vm's. `EAGAIN` while threads use it. vm.
    SpaceDestroy = 12,
    /// `(endpoint, space)`: assigns the thread to this space; `u64::MAX`: to none. vm.
    SpaceSet = 13,
    /// `(space, address, frame address, pages, flags of layout::map)`: maps contiguous frames, replacing earlier mappings.
    /// Returns the pages mapped; fewer than requested, with `ENOMEM` in word 0, when the pool is empty: `Donate` and continue. vm.
    SpaceMap = 14,
    /// `(space, address, pages)`: removes mappings (absent ones are skipped). vm.
    SpaceUnmap = 15,
    /// `(space, address, pages, flags)`: changes the rights of the mappings that are present. vm.
    SpaceProtect = 16,
    /// `(from, to, address, pages)`: copies the present mappings of a range, write-protecting both sides, for fork.
    /// Returns the pages walked; an empty pool is reported as by `SpaceMap`. vm.
    SpaceCopy = 17,
    /// `(frame address, pages)`: donates frames to the kernel's pool of page-table frames. vm.
    Donate = 18,
    /// `(to frame address, from frame address)`: copies one frame. vm.
    FrameCopy = 19,
    /// `(frame address, offset in frame, granter, grant, offset in grant, bytes)`: copies from a grant into frames. vm.
    FrameFill = 20,
    /// `(from endpoint, address, to endpoint, address, bytes)`: copies between two address spaces; `SELF` is the caller. Returns the
    /// bytes copied. `EFAULT`: a side is not mapped, or lacks the right. At most `layout::MAX_COPY` bytes. pm, vfs, rs, procfs as the mask allows.
    VirCopy = 21,
    /// `(granter, grant, offset, own address, bytes)` → bytes copied from the grant. `EPERM`: the grant does not permit it. `EFAULT`: memory is not mapped.
    SafeCopyFrom = 22,
    /// `(granter, grant, offset, own address, bytes)` → bytes copied into the grant. Errors as of `SafeCopyFrom`.
    SafeCopyTo = 23,
    /// `(address of table, entries)`: registers the caller's grant table. Entries are 32 bytes, aligned.
    SetGrants = 24,
    /// `(address)` → physical address of the caller's own memory, for DMA.
    Umap = 25,
    /// `(port, operation of privilege::io, value)` → value read. `ECALLDENIED` outside the caller's port ranges.
    DevIo = 26,
    /// `(port, operation, own address, count)`: string form of `DevIo`.
    SDevIo = 27,
    /// `(irq, hook, policy of kernel::irq)`: makes each interrupt notify the caller from HARDWARE with bit `hook`.
    /// `ECALLDENIED`: the IRQ is not in the caller's list. The policy decides whether the line stays masked until `IrqEnable`.
    IrqSet = 28,
    /// `(hook)`: unmasks the line.
    IrqEnable = 29,
    /// `(hook)`: releases the interrupt.
    IrqRemove = 30,
    /// `(hook)` → MSI address in word 0, MSI data in word 1: a message-signalled interrupt that notifies with bit `hook`.
    /// Needs privilege flag `MSI`.
    MsiSet = 31,
    /// `(deadline_ns, queue)`: one notification from CLOCK at this monotonic time; 0 cancels. One alarm per thread. A service handles the alarm
    /// at the priority of this real-time queue (as in `Schedule`; 0: its own).
    SetAlarm = 32,
    /// `()` → monotonic time in ns; word 0: real time in ns since 1970. Needs no permission.
    Time = 33,
    /// `(real time in ns since 1970)`: sets the clock. rtc, pm.
    SetTime = 34,
    /// `(what of info, index, own address, bytes)` → bytes written. Needs no permission except where `info` says so.
    GetInfo = 35,
    /// `(own address, bytes)`: writes text to the kernel's console and log. At most 1024 bytes.
    Diag = 36,
    /// `(mode, status)`: 0 powers off, 1 reboots, 2 halts. pm, rs.
    Shutdown = 37,
    /// `(events, period)`: sets the kinds of events that are recorded, a bit for each of `trace::event`, 0: none, and the distance of
    /// samples in nanoseconds, at least `trace::MIN_PERIOD_NS`. `GetInfo` shows the records.
    Trace = 38,
    /// `(number, slot)`: routes a system call to a service; slot 0 is the kernel, `u64::MAX` removes. rs.
    Route = 39,
    /// `(slot)` → endpoint that holds a slot now, or `EDEADSRCDST`. Needs no permission.
    WhoIs = 40,
    /// `(endpoint, kind of privilege::check, value, length)`: checks that this range is within the endpoint's privileges. vm, pci.
    PrivCheck = 41,
    /// `()`: moves the caller to the end of its ready queue. Needs no permission.
    Yield = 42,
    /// `(address of privilege::PortRequest records, count)`: a vector of `DevIo`s, executed in order until one fails; values read are
    /// written into the records. Returns the number executed, or the first record's error.
    VDevIo = 43,
    /// `(from, from address, to, to address, bytes)` → bytes: as `VirCopy`, but an endpoint `NONE` means that the address is physical,
    /// within the caller's memory ranges (`ECALLDENIED` outside).
    PhysCopy = 44,
    /// `(address of CopyRequest records, count)`: a vector of `VirCopy`s, executed in order until one fails. Returns the number executed,
    /// or the first record's error.
    VirVCopy = 45,
    /// `(address of CopyRequest records, count)`: a vector of `PhysCopy`s, as `VirVCopy`.
    PhysVCopy = 46,
    /// `()` → high half of the time-stamp counter in word 0, low half in word 1. Needs no permission.
    GetTsc = 47,
    /// `(endpoint, kind of inject, value, further value, bytes)`: injects a fault into a service, for tests of recovery. Only rs, whatever the mask says.
    Inject = 48,
    /// `(hook)`: masks the line until `IrqEnable`.
    IrqDisable = 49,
    /// `(operation of rt::control, caller of the system call, argument, address of the structure's first 8 words in own memory)`: a system call of MINIX4RT. mrt.
    RtControl = 50,
    /// `(endpoint, address, count)`: wakes up to `count` waiters of the shared futex at this address of a thread's memory. Returns the number woken. pm.
    FutexWake = 51,
    /// `()` → frame address: takes a frame that page tables have left out of the kernel's pool, the counterpart of `Donate`. `EAGAIN`: the
    /// pool has no more than it keeps for the next tables. vm.
    Reclaim = 52,
    /// `(endpoint, row, peer, error)`: makes an application thread a member of the container with this row of privileges, whose members may
    /// send to each other, or of none (`APPLICATIONS_BIT`). Its wait for a message by a primitive fails with `error` if it is for `peer`, or
    /// whatever it is for (`NONE`); waits for it fail with `EDEADSRCDST` if the row is another one.
    /// `EINVAL`: no application thread, or no such row. m3ipc.
    Join = 53,
    /// `(endpoint, number, answer)`: answers this call of `linux::KEPT` by a program's thread at once from now on, below 2^32. Another
    /// number: all answers kept for the thread are forgotten. A traced thread's calls still go to pm, and all while messages are traced. pm.
    KeepAnswer = 54,
}

/// Kernel calls as messages to the SYSTEM task: `SYSTEM_LABELS | KernelCall as u32`, arguments in words 0 to 5; in the reply word 0 is
/// the result; words 1 and 2 are the further results, which a trap returns in words 0 and 1.
pub const SYSTEM_LABELS: u32 = 0x11 << 16;

/// The kernel calls that may be made as messages to the SYSTEM task, by `SENDREC` only. All others fail with `EBADCALL`. If vm
/// refuses memory of the request, the `SENDREC` itself fails with `EFAULT`, for a vector too.
pub const BY_MESSAGE: u64 = KernelCall::DevIo.bit()
    | KernelCall::SDevIo.bit()
    | KernelCall::VDevIo.bit()
    | KernelCall::Umap.bit()
    | KernelCall::VirCopy.bit()
    | KernelCall::PhysCopy.bit()
    | KernelCall::VirVCopy.bit()
    | KernelCall::PhysVCopy.bit()
    | KernelCall::SafeCopyFrom.bit()
    | KernelCall::SafeCopyTo.bit()
    | KernelCall::IrqSet.bit()
    | KernelCall::IrqEnable.bit()
    | KernelCall::IrqDisable.bit()
    | KernelCall::IrqRemove.bit()
    | KernelCall::SetAlarm.bit()
    | KernelCall::PrivCtl.bit()
    | KernelCall::GetTsc.bit();

/// Limit of records of `VDevIo`, `VirVCopy` and `PhysVCopy`; more fail with `EINVAL`.
pub const MAX_VECTOR: u64 = 64;

/// Vector of the HAL trap: `rax` an operation of `privilege::io`, `rdx` the port, `rdi` the value to write, or with `io::STRING` the
/// address of a buffer and `r10` the number of accesses. Result in `rax`; no other register changes. Needs the right to `DevIo` and the port,
/// whatever the service's access path is. `EBADCALL`: no such operation.
pub const HAL_VECTOR: u8 = 0x22;

/// One copy of `VirVCopy` and `PhysVCopy`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CopyRequest {
    /// Process whose memory is read.
    pub from: crate::Endpoint,
    /// Process whose memory is written.
    pub to: crate::Endpoint,
    /// First address read.
    pub from_address: u64,
    /// First address written.
    pub to_address: u64,
    /// Length.
    pub bytes: u64,
}

/// `Schedule`: added to the number of a real-time ready queue, 1 (best) to 46. A thread with a quantum goes to the end of its queue when the
/// quantum is used up (`SCHED_RR`), one with `NO_QUANTUM` never does (`SCHED_FIFO`).
pub const REAL_TIME: u64 = 64;
/// `Schedule`: the quantum never ends.
pub const NO_QUANTUM: u64 = u64::MAX;

/// Bits of `SetRegisters`.
pub mod resume {
    /// Cancels what the thread waits for and makes it ready.
    pub const READY: u64 = 1;
    /// With `READY`: its Linux calls are reported to pm from now on (`kernel::LinuxCall`), else they are not.
    pub const REPORT_CALLS: u64 = 2;
    /// With `READY`: it makes the Linux call whose number is in `rax`, unreported, before it runs.
    pub const CALL: u64 = 4;
}

/// Kinds of `Inject`.
pub mod inject {
    /// Ends the service as an exception `VECTOR` would, directly after it has sent or received `value` more messages; 0 cancels.
    pub const KILL_AFTER_MESSAGES: u64 = 0;
    /// Writes the low `bytes` (1 to 8) bytes of the further value to the address `value` of the service, even if it is read-only.
    pub const POKE: u64 = 1;
    /// Stops the service without telling anybody, so that it misses its heartbeats.
    pub const SILENCE: u64 = 2;
    /// Lets allocation number `value` of the service fail, counted from 1. No kind of the kernel's: rs asks the service
    /// (`rs::FailAllocation`).
    pub const ALLOCATION: u64 = 3;
    /// Vector in the `kernel::Exception` of an injected death.
    pub const VECTOR: u64 = 256;
}

/// Kernel calls that every service may make, whatever its mask.
pub const UNRESTRICTED: u64 = 1 << KernelCall::Exit as u64
    | 1 << KernelCall::Time as u64
    | 1 << KernelCall::GetInfo as u64
    | 1 << KernelCall::WhoIs as u64
    | 1 << KernelCall::Yield as u64
    | 1 << KernelCall::GetTsc as u64;

impl KernelCall {
    /// Returns the call with this native number.
    pub fn from_number(number: u64) -> Option<KernelCall> {
        let index = number.checked_sub(KERNEL_CALLS)?;
        KERNEL_CALL_NAMES.get(index as usize).map(|(_, call)| *call)
    }

    /// Returns the native number, which goes into `rax`.
    pub const fn number(self) -> u64 {
        KERNEL_CALLS + self as u64
    }

    /// Returns the call's bit in a call mask.
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }
}
