//! MINIX4RT: hard real-time processes. This file is long because it is that whole interface.
//!
//! *System calls* set up and measure; ordinary processes of the superuser make them: one routed call, `linux::nr::SKINK_MRT`, with an
//! operation of `control`, an argument (pid, irq, id) and the address of a structure; the server mrt checks the caller and has the kernel do
//! it with `KernelCall::RtControl`. *Kernel calls* are for real-time processes, made by `syscall` with a number of `call`;
//! [`call::SET2RT`] alone is for ordinary ones. Results are negative errors, of `error` or Linux's. All fields of structures are 64 bits.

use zerocopy::FromZeros;

/// Number of the routed call of the system calls.
pub const SYSTEM_CALL: u32 = crate::linux::nr::SKINK_MRT;

/// Kernel calls: number in `rax`, arguments in `rdi rsi rdx`, the words of a message in `r10 r8 r9 r12`.
pub mod call {
    /// The first number.
    pub const FIRST: u64 = 0x1200;
    /// `(id, timeout)`: decrements a semaphore, or waits for it. `BADSEM`, `E_TRY_AGAIN`, `TIMEOUT`, `EXITING`; `ELOCKED`: the wait would
    /// deadlock; `BADPRTY`: the caller is better than the mutex's ceiling.
    pub const SEMDOWN: u64 = 0x1200;
    /// `(id)`: increments a semaphore. `BADSEM`; `EPERM`: the caller does not own the mutex. One that was allocated with value 0 is locked
    /// and has no owner until its first increment, which anybody may make.
    pub const SEMUP: u64 = 0x1201;
    /// `()`: the caller becomes real-time, with the attributes set before; its memory becomes resident, its stack down to its limit or 1 MiB,
    /// and stays so when another thread of its program forks. `BADPTYPE`, `BADPRTY` (no
    /// attributes), `NOVTIMER`, `NOMSGQ`, `ENOMEM`.
    pub const SET2RT: u64 = 0x1202;
    /// `()`: the caller becomes an ordinary process again. As at its end, the messages it has sent that wait still are deleted.
    pub const SET2NRT: u64 = 0x1203;
    /// `(timeout)`: waits for a wake-up or the timeout; a periodic process with `FOREVER` waits for its next period.
    pub const SLEEP: u64 = 0x1204;
    /// `(pid)`: ends a sleep. `E_BAD_PROC`, `BADPTYPE`; `UNSLEEP`: the process does not sleep; its watchdog receives a message.
    pub const WAKEUP: u64 = 0x1205;
    /// `(address)`: writes 80 characters to the console. `EINVAL`: bad address.
    pub const PRINT: u64 = 0x1206;
    /// `(destination pid, timeout)` and a message: sends it and waits until it is received. `E_BAD_PROC`, `E_BAD_DEST` (the caller itself), `BADPTYPE`,
    /// `MQFULL`, `NOMQENT`, `E_TRY_AGAIN`, `TIMEOUT`, `EXITING`, `ELOCKED`.
    pub const RQST: u64 = 0x1207;
    /// Sends a message as `SEND` without waiting.
    pub const ARQST: u64 = 0x1208;
    /// `(destination pid, -, priority)`: sends without waiting at an explicit priority, which the destination inherits. `BADPRTY`.
    pub const UPRQST: u64 = 0x1209;
    /// `(destination pid)`: sends without waiting at the destination's own priority.
    pub const SIGN: u64 = 0x120a;
    /// `(destination pid)`: sends a reply; the caller drops the priority that it inherited from the request.
    pub const REPLY: u64 = 0x120b;
    /// `(source pid or ANYPROC, timeout)` → the best message: `rdi` = source pid | type << 32, `rsi` = id | sequence number << 32,
    /// `rdx` = time in ticks, `r13` = priority | process number << 32, `r14` = deadline, `r15` = laxity. `E_BAD_PROC`, `E_TRY_AGAIN`, `TIMEOUT`,
    /// `EXITING`.
    pub const RCV: u64 = 0x120c;
    /// `(destination pid, timeout)`: sends a request and receives the reply as by `RCV`. `EINVAL`: the timeout is `NOWAIT`.
    pub const RQRCV: u64 = 0x120d;
    /// Numbers of real-time kernel calls are below this; others fail with `E_BAD_FCN`.
    pub const END: u64 = 0x1300;
}

/// Operations of the system calls: `(operation, argument, address)`. Unless said otherwise they fail with `NORTMODE` in standard mode, `BADPTYPE` for a
/// real-time caller, `EPERM` for users other than the superuser, `EINVAL` for a bad address, `EBADCALL` for an unknown operation.
pub mod control {
    /// `(harmonic, address as refresh)`: enters real-time mode: the timer runs at harmonic × 50 Hz, idle time is sampled every `refresh` ticks.
    /// `BADHARM`, `BADRFSH`; `RTACTIVE`: already in real-time mode.
    pub const RTSTART: u64 = 0;
    /// Changes the arguments of real-time mode. `RTACTIVE`: real-time processes exist.
    pub const RESTART: u64 = 1;
    /// Returns to standard mode. `RTACTIVE`: real-time processes exist.
    pub const RTSTOP: u64 = 2;
    /// `(options)`: sets the options, in standard mode. `RTMODE`; `BADFLAGS`.
    pub const SETSVAL: u64 = 3;
    /// Returns `SystemValues`, in both modes.
    pub const GETSVAL: u64 = 4;
    /// Returns `SystemStatistics`.
    pub const GETSSTAT: u64 = 5;
    /// Clears the system's statistics.
    pub const CLRSSTAT: u64 = 6;
    /// Sets `ProcessAttributes` of the caller. `BADPRTY`, `BADWDOG`, `BADPER`, `BADDEAD`, `BADFLAGS`, `BADMQSZ`; `NOMSGQ`: too many processes.
    pub const SETPATTR: u64 = 7;
    /// `(pid)` → `ProcessAttributes`. `E_BAD_PROC`.
    pub const GETPATTR: u64 = 8;
    /// `(pid)` → `ProcessStatistics`. `E_BAD_PROC`.
    pub const GETPSTAT: u64 = 9;
    /// `(pid)`: clears the process's statistics. `E_BAD_PROC`.
    pub const CLRPSTAT: u64 = 10;
    /// `(pid)` → `ProcessInternals`. `E_BAD_PROC`.
    pub const GETPINT: u64 = 11;
    /// `(irq)`: sets `IrqAttributes`. `BADIRQ`, `BADIRQT`, `BADTASK`, `BADPRTY`, `BADWDOG`, `BADPER`, `NOVTIMER`.
    pub const SETIATTR: u64 = 12;
    /// `(irq)` → `IrqAttributes`. `BADIRQ`.
    pub const GETIATTR: u64 = 13;
    /// `(irq)` → `IrqStatistics`. `BADIRQ`.
    pub const GETISTAT: u64 = 14;
    /// `(irq)`: clears the interrupt's statistics. `BADIRQ`.
    pub const CLRISTAT: u64 = 15;
    /// `(irq)` → `IrqInternals`. `BADIRQ`.
    pub const GETIINT: u64 = 16;
    /// Allocates a semaphore with these `SemaphoreAttributes` → id. `BADNAME`, `BADVALUE`, `BADFLAGS`, `BADPRTY`, `NOSEM`.
    pub const SEMALLOC: u64 = 17;
    /// `(id)`: frees a semaphore. `BADSEM`, `FREESEM`; `EPERM`: another process has allocated it.
    pub const SEMFREE: u64 = 18;
    /// Name of 16 characters → id. `BADSEM`.
    pub const GETSEMID: u64 = 19;
    /// `(id)` → `SemaphoreAttributes` with the present value. `BADSEM`, `FREESEM`.
    pub const GETSEMATTR: u64 = 20;
    /// `(id)` → `SemaphoreStatistics`. `BADSEM`, `FREESEM`.
    pub const GETSEMSTAT: u64 = 21;
    /// `(id)`: clears the semaphore's statistics. `BADSEM`, `FREESEM`.
    pub const CLRSEMSTAT: u64 = 22;
    /// `(id)` → `SemaphoreInternals`. `BADSEM`.
    pub const GETSEMINT: u64 = 23;
    /// `(id)` → `QueueStatistics`. `BADMSGQ`, `FREEMSGQ`.
    pub const GETMQSTAT: u64 = 24;
    /// `(id)`: clears the queue's statistics. `BADMSGQ`, `FREEMSGQ`.
    pub const CLRMQSTAT: u64 = 25;
    /// Operations are below this.
    pub const END: u64 = 26;
}

/// Errors, positive. The numbers 2011, 2013 and 2020, MINIX4RT's `UNREADY`, `NOSOFTIRQ` and `BADMSGT`, never occur.
pub mod error {
    #![allow(missing_docs)]
    pub const E_MRT_BADIRQ: i32 = 2001;
    pub const E_MRT_BADTASK: i32 = 2002;
    pub const E_MRT_BADPRTY: i32 = 2003;
    pub const E_MRT_BADIRQT: i32 = 2004;
    pub const E_MRT_BADHARM: i32 = 2005;
    pub const E_MRT_RTACTIVE: i32 = 2006;
    pub const E_MRT_BADPTYPE: i32 = 2007;
    pub const E_MRT_BADPER: i32 = 2008;
    pub const E_MRT_BADDEAD: i32 = 2009;
    pub const E_MRT_BADWDOG: i32 = 2010;
    pub const E_MRT_NOVTIMER: i32 = 2012;
    pub const E_MRT_NORTMODE: i32 = 2014;
    pub const E_MRT_UNSLEEP: i32 = 2015;
    pub const E_MRT_EXITING: i32 = 2016;
    pub const E_MRT_NOMQENT: i32 = 2017;
    pub const E_MRT_BADMQSZ: i32 = 2018;
    pub const E_MRT_NOMSGQ: i32 = 2019;
    pub const E_MRT_TIMEOUT: i32 = 2021;
    pub const E_MRT_RTMODE: i32 = 2022;
    pub const E_MRT_BADRFSH: i32 = 2023;
    pub const E_MRT_MQFULL: i32 = 2024;
    pub const E_MRT_NOSEM: i32 = 2025;
    pub const E_MRT_BADSEM: i32 = 2026;
    pub const E_MRT_FREESEM: i32 = 2027;
    pub const E_MRT_BADNAME: i32 = 2028;
    pub const E_MRT_BADVALUE: i32 = 2029;
    pub const E_MRT_BADFLAGS: i32 = 2030;
    pub const E_MRT_BADMSGQ: i32 = 2031;
    pub const E_MRT_FREEMSGQ: i32 = 2032;
    /// MINIX's own errors, plus 1100.
    pub const E_BAD_DEST: i32 = 2101;
    pub const E_TRY_AGAIN: i32 = 2103;
    pub const E_BAD_FCN: i32 = 2109;
    pub const E_BAD_PROC: i32 = 2111;
}

/// Timeout: do not wait.
pub const NOWAIT: i64 = 0;
/// Timeout: wait without limit.
pub const FOREVER: i64 = -1;
/// Source of `RCV`: any process.
pub const ANYPROC: i64 = -1;
/// Watchdog, task: none.
pub const NOPROC: i64 = -1;

/// Ticks per second of the time-shared system.
pub const CLOCK_HZ: u64 = 50;
/// Priorities that processes, semaphores and interrupts may have: 1, the best, to this; 0 is the timer's.
pub const PRIORITIES: u64 = 46;
/// Harmonics, refreshes and periods are 1 to this, in ticks.
pub const MAX_TICKS: u64 = 10_000;
/// Limit of processes with attributes.
pub const PROCESSES: usize = 256;
/// Limit of real-time processes, each with its message queue.
pub const QUEUES: usize = 128;
/// Capacity of all message queues together.
pub const ENTRIES: usize = 1024;
/// Limit of the capacity of one queue.
pub const QUEUE_ENTRIES: u64 = 256;
/// Number of virtual timers.
pub const TIMERS: usize = 160;
/// Number of semaphores; ids are below it.
pub const SEMAPHORES: usize = 256;
/// Interrupt descriptors: below `HARDWARE_IRQS` one for each line, from there on software interrupts.
pub const IRQS: usize = 96;
/// Number of interrupt lines with a descriptor.
pub const HARDWARE_IRQS: usize = 64;
/// The software interrupt that is the 50 Hz tick of the time-shared system.
pub const TICK_IRQ: usize = HARDWARE_IRQS;
/// Characters of `PRINT`.
pub const PRINT_BYTES: usize = 80;
/// A process that runs this long without waiting is taken for a runaway and becomes an ordinary process.
pub const RUNAWAY_NS: u64 = 3_000_000_000;

/// Options and state of the system.
pub mod mode {
    #![allow(missing_docs)]
    pub const RTMODE: u64 = 1;
    /// Options. Messages of the kernel on the second serial line.
    pub const DBG232: u64 = 0x100;
    /// Latencies are measured.
    pub const LATENCY: u64 = 0x200;
    /// Priority inheritance is on.
    pub const BPIP: u64 = 0x400;
    /// The timer fires only when a deadline is due.
    pub const ONESHOT: u64 = 0x800;
    /// Interrupts of a worse priority than the running process stay pending.
    pub const PRTYMASK: u64 = 0x1000;
    pub const OPTIONS: u64 = DBG232 | LATENCY | BPIP | ONESHOT | PRTYMASK;
}

/// Flags of semaphores, of message queues and of processes.
pub mod flag {
    #![allow(missing_docs)]
    pub const SEM_PRTYORDER: u64 = 1;
    pub const SEM_PRTYINHERIT: u64 = 2;
    pub const SEM_MUTEX: u64 = 4;
    /// The owner runs with at least the mutex's `priority`.
    pub const SEM_PRTYCEILING: u64 = 8;
    pub const MQ_PRTYORDER: u64 = 1;
    pub const MQ_PRTYINHERIT: u64 = 2;
    pub const P_REALTIME: u64 = 0x4000;
    pub const P_PERIODIC: u64 = 0x8000;
}

/// Types of interrupts, and state of descriptors: `ENQUEUED`, the second stage is pending; `TRIGGERED`, an interrupt has arrived in this
/// period.
pub mod irq {
    #![allow(missing_docs)]
    pub const NRTIRQ: u64 = 0;
    pub const RTIRQ: u64 = 1;
    pub const TDIRQ: u64 = 2;
    pub const SOFTIRQ: u64 = 4;
    pub const ISTMSG: u64 = 8;
    pub const RELATPER: u64 = 0x10;
    pub const ENQUEUED: u64 = 1;
    pub const TRIGGERED: u64 = 4;
}

/// Types of messages.
pub mod message {
    #![allow(missing_docs)]
    pub const UPRQST: u64 = 1;
    pub const REQUEST: u64 = 2;
    pub const AREQUEST: u64 = 3;
    pub const REPLY: u64 = 4;
    pub const SIGNAL: u64 = 5;
    pub const RQRCV: u64 = 6;
    /// From the kernel. An interrupt: word 0 its number, word 1 the number of arrivals.
    pub const KRNIRQ: u64 = 0x10;
    /// A deadline was missed: word 0 the pid, or the interrupt with word 1 = 1. Or a wake-up found no sleeper (word 1 = 2), a Linux
    /// call was made (word 1 = 3, word 2 its number), a process ran away (word 1 = 4).
    pub const KRNDLINE: u64 = 0x12;
    /// The watchdog, word 0, has ended.
    pub const KRNWDOG: u64 = 0x13;
    /// The process, word 0, is real-time no longer.
    pub const KRNPROC: u64 = 0x14;
}

/// A message's words.
pub const MESSAGE_WORDS: usize = 4;

/// Properties of a message that `RCV` received, as the C library returns them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct MrtHeader {
    pub source_pid: i64,
    pub source_number: i64,
    /// One of `message`.
    pub mtype: u64,
    pub mid: u64,
    pub seqno: u64,
    /// When it was sent, in ticks.
    pub tstamp: u64,
    pub priority: u64,
    /// The sender's, in ticks after the sending; 0: none.
    pub deadline: u64,
    /// Time left until the deadline.
    pub laxity: i64,
}

/// Values of the system.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct SystemValues {
    pub flags: u64,
    /// One bit a line that is masked while a real-time process runs.
    pub virtual_pic: u64,
    /// Worst latency of the timer, in ns.
    pub pit_latency: u64,
    /// Counts of the machine's counter per tick; 0 in standard mode.
    pub pit_latch: u64,
    /// Ticks per second.
    pub tickrate: u64,
    pub harmonic: u64,
    pub refresh: u64,
}

/// Statistics of the system.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct SystemStatistics {
    pub scheds: u64,
    pub messages: u64,
    pub interrupts: u64,
    pub ticks: u64,
    pub highticks: u64,
    /// Longest idle time in a refresh interval, in ns.
    pub idlemax: u64,
    /// Idle time of the last one.
    pub idlelast: u64,
}

/// Attributes of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct ProcessAttributes {
    /// `P_PERIODIC`; `P_REALTIME` is read only.
    pub flags: u64,
    /// Base priority.
    pub baseprty: u64,
    /// In ticks, if periodic.
    pub period: u64,
    /// Number of schedulings after which the process becomes ordinary; 0: no limit. Forced to 0 if periodic.
    pub limit: u64,
    /// In ticks after the start of a period or the end of a sleep; 0: none (for a periodic process, its period).
    pub deadline: u64,
    /// Pid of the watchdog, or `NOPROC`.
    pub watchdog: i64,
    /// Messages that its queue may hold.
    pub mq_size: u64,
    /// `MQ_*`.
    pub mq_flags: u64,
}

/// Statistics of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct ProcessStatistics {
    pub scheds: u64,
    /// Deadlines missed.
    pub mdl: u64,
    /// When the last period began, in ticks.
    pub timestamp: u64,
    /// Longest latency from the start of a period until the process ran, in ns.
    pub maxlat: u64,
    /// Least time left until the deadline at the end of the work, in ns; negative: missed. The deadline is that of the period in which
    /// the work began.
    pub minlax: i64,
    pub msgsent: u64,
    pub msgrcvd: u64,
}

/// Internals of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct ProcessInternals {
    /// Number of its virtual timers.
    pub vt: u64,
    /// Effective priority.
    pub priority: u64,
    /// Message queue, or -1.
    pub mqid: i64,
    /// Process number.
    pub p_nr: u64,
}

/// Attributes of an interrupt descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct IrqAttributes {
    /// In ticks, if timer-driven.
    pub period: u64,
    /// Pid of the real-time process of the second stage, or `NOPROC`.
    pub task: i64,
    /// Pid of the watchdog, or `NOPROC`.
    pub watchdog: i64,
    /// Priority of the second stage.
    pub priority: u64,
    /// Types of `irq`.
    pub irqtype: u64,
    /// Descriptive name.
    pub name: [u8; 16],
}

/// Statistics of an interrupt descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct IrqStatistics {
    pub count: u64,
    /// Highest number of arrivals in one period.
    pub maxshower: u64,
    /// Deadlines missed.
    pub mdl: u64,
    /// The last arrival, in ticks.
    pub timestamp: u64,
    /// Longest latency from arrival to second stage, in ns.
    pub maxlat: u64,
    /// Arrivals while the descriptor was waiting.
    pub reenter: u64,
}

/// Internals of an interrupt descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct IrqInternals {
    /// Its number.
    pub irq: u64,
    /// Ticks of the real-time clock in one of the time-shared world.
    pub harmonic: u64,
    /// Whether it has a virtual timer.
    pub vtimer: u64,
    /// State of `irq`.
    pub flags: u64,
}

/// Attributes of a semaphore.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct SemaphoreAttributes {
    /// Initial value; when read: present value.
    pub value: i64,
    /// `SEM_*`.
    pub flags: u64,
    /// Ceiling, with `SEM_PRTYCEILING`.
    pub priority: u64,
    /// Unique; a semaphore with an empty name cannot be looked up.
    pub name: [u8; 16],
}

/// Statistics of a semaphore.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct SemaphoreStatistics {
    pub ups: u64,
    pub downs: u64,
    /// Highest number of waiters at one time.
    pub maxinq: u64,
}

/// Internals of a semaphore.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
pub struct SemaphoreInternals {
    /// Its id.
    pub index: u64,
    /// Process number of the owner, or -1: free.
    pub owner: i64,
    /// Waiters.
    pub inq: u64,
}

/// Statistics of a message queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromZeros)]
#[allow(missing_docs)]
pub struct QueueStatistics {
    /// Messages that found a waiting receiver.
    pub delivered: u64,
    /// Messages that waited.
    pub enqueued: u64,
    pub maxinq: u64,
}

impl ProcessAttributes {
    /// All zero.
    pub const ZERO: ProcessAttributes = ProcessAttributes {
        flags: 0,
        baseprty: 0,
        period: 0,
        limit: 0,
        deadline: 0,
        watchdog: 0,
        mq_size: 0,
        mq_flags: 0,
    };
}

impl ProcessStatistics {
    /// All zero.
    pub const ZERO: ProcessStatistics =
        ProcessStatistics { scheds: 0, mdl: 0, timestamp: 0, maxlat: 0, minlax: 0, msgsent: 0, msgrcvd: 0 };
}

impl IrqStatistics {
    /// All zero.
    pub const ZERO: IrqStatistics =
        IrqStatistics { count: 0, maxshower: 0, mdl: 0, timestamp: 0, maxlat: 0, reenter: 0 };
}

impl QueueStatistics {
    /// All zero.
    pub const ZERO: QueueStatistics = QueueStatistics { delivered: 0, enqueued: 0, maxinq: 0 };
}
