//! The protocol of pm, the process manager: processes, threads, signals, ids, sessions, wait, exec, timers of programs.
//! The Linux calls for them are routed to pm (list: systems/*.toml). pm blocks only on vm, vfs and the kernel.

use crate::{CapabilitySet, Endpoint, GrantId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

protocol! {
    /// Processes. Kernel messages come from the threads concerned (`kernel::Exception`, `Interrupted`, `Exited`); callers of the others as noted.
    pub "pm" = 2;
    /// rs: a service has come up or its endpoint has changed; pm lists it under a pid of its own.
    ServiceUp = 1 { process: Endpoint, name_low: u64, name_high: u64 }
    /// rs: all boot services are up; pm starts the first program (`/sbin/init`, pid 1).
    Boot = 2 { }
    /// procfs, rs: copies `ProcessRecord`s into the grant, ascending by pid, from the first pid not below `first_pid`. Word 0 of the reply: bytes copied.
    Processes = 3 { first_pid: u64, grant: GrantId, bytes: u64 }
    /// procfs: copies something of a process (`what`: `TEXT_*`) into the grant. Word 0 of the reply: length.
    ProcessText = 4 { pid: u64, what: u64, grant: GrantId, bytes: u64 }
    /// Services that implement routed calls: returns pid, effective uid (low half) and gid (high half), and effective capabilities of an
    /// application thread, as far as they are rights over the system. `ESRCH`.
    WhoIs = 5 { process: Endpoint } -> { pid: u64, ids: u64, session: u64, group: u64, capabilities: CapabilitySet }
    /// procfs: as `Processes`, for the threads of a process: `pid` in a record is the thread's id. `ESRCH`.
    Threads = 6 { pid: u64, first_tid: u64, grant: GrantId, bytes: u64 }
    /// devfs: mixes these words, which come from what was written to /dev/random, into the generator of getrandom(2).
    Stir = 7 { first: u64, second: u64, third: u64, fourth: u64 }
    /// procfs: copies `IpcRecord`s of one kind (`IPC_*`) into the grant, ascending by index, from the first index not below `first`. Word 0
    /// of the reply: bytes copied.
    IpcObjects = 8 { kind: u64, first: u64, grant: GrantId, bytes: u64 }
    /// procfs: copies the host name (`which` 0) or the domain name (1) into the grant. Word 0 of the reply: length.
    MachineName = 9 { which: u64, grant: GrantId, bytes: u64 }
    /// procfs, for root: sets the host name (`which` 0) or the domain name (1) to the text in the grant. `EINVAL`: it is too long.
    SetMachineName = 10 { which: u64, grant: GrantId, bytes: u64 }
    /// procfs: returns a setting (`SETTING_*`). `EINVAL`: there is none with this number.
    Setting = 11 { what: u64 } -> { value: u64 }
    /// procfs, for root: changes a setting. `EINVAL`: not to this value.
    SetSetting = 12 { what: u64, value: u64 }
    /// procfs: returns a random number that stays until the next boot, and one that nobody has had.
    Identity = 13 { } -> { boot_low: u64, boot_high: u64, new_low: u64, new_high: u64 }
    /// procfs: returns the load averages of one, five and fifteen minutes, times 2,048.
    Loads = 14 { } -> { one: u64, five: u64, fifteen: u64 }
    /// vfs: takes up to `count` pending signals of `mask` for a thread that reads a signalfd, and writes a `struct signalfd_siginfo` of each to
    /// `address`. `call`: the number of its call, of which asking again gets the same answer. Word 0 of the reply: how many. `EAGAIN`: none is
    /// pending; with `watch`, vfs is told of the next one (`vfs::SignalsPending`).
    TakeSignals = 15 { process: Endpoint, call: u64, mask: u64, address: u64, count: u64, watch: bool }
    /// vfs: which signals of `mask` are pending for a thread. If none is, vfs is told of the next one of them (`vfs::SignalsPending`); with `any`, of
    /// the next signal, whatever is pending. `arrivals`: a number below 2^27, but not 0, that is another when the process has got a signal since.
    AwaitSignals = 16 { process: Endpoint, mask: u64, any: bool } -> { pending: u64, arrivals: u64 }
    /// m3ipc: which process a thread belongs to, or, with `pid`, which one has this pid. It is notified from now on when a thread of that
    /// process ends, or it has other credentials. `ESRCH`. Returns the main thread, pid, effective uid and gid as `WhoIs`, effective
    /// capabilities (`abi::CapabilitySet`), and what /proc/PID/comm says, with zeros behind it.
    Enroll = 18 { process: Endpoint, pid: u64 }
        -> { thread: u64, pid: u64, ids: u64, capabilities: u64, name_low: u64, name_high: u64 }
    /// m3ipc: sends a signal to an enrolled process. `ESRCH`, `EINVAL`.
    Signal = 19 { pid: u64, signal: u64 }
    /// procfs: copies memory of a process into the grant, or out of it (`write`), also where the process may not write itself. Word 0 of the
    /// reply: bytes copied, which are fewer at the end of what is mapped. `EIO`: nothing is.
    Memory = 17 { process: Endpoint, address: u64, grant: GrantId, bytes: u64, write: bool }
    /// procfs: a user (low half) and group (high half) `ids` writes the text in the grant to uid_map, gid_map or setgroups (`what`: `TEXT_*`) of a
    /// process. `write`: says which write it is, so that one that is made again after a death succeeds again. `EPERM`, `EINVAL`.
    SetIdMap = 20 { pid: u64, what: u64, grant: GrantId, bytes: u64, ids: u64, write: u64 }
    /// procfs: the owner of a thread writes the text in the grant to its comm: it is its name, cut at 15 bytes. `ESRCH`.
    SetName = 21 { tid: u64, grant: GrantId, bytes: u64 }
    /// procfs: the effective user `uid` sets how much a process is wanted when memory ends (`ProcessRecord::oom_adjust`). `old`: as oom_adj does.
    /// `EACCES`: a user makes it less likely to end than root did; `EINVAL`, `ESRCH`.
    SetOomAdjust = 22 { pid: u64, value: i64, uid: u64, old: bool }
}

/// System V segments of shared memory. Values of a record: bytes, creating process, process that attached or detached last, attaches,
/// times of the last attach, detach and change, resident bytes.
pub const IPC_SEGMENTS: u64 = 0;
/// System V sets of semaphores. Values: semaphores, times of the last operation and change.
pub const IPC_SEMAPHORES: u64 = 1;
/// System V message queues. Values: bytes, messages, processes that sent and received last, times of the last sending, receiving and change.
pub const IPC_MESSAGES: u64 = 2;
/// Values of a record.
pub const IPC_VALUES: usize = 8;

/// A System V object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct IpcRecord {
    /// Index in the table of its kind.
    pub index: u32,
    /// 0: private.
    pub key: u32,
    /// Identifier.
    pub id: u32,
    /// Rights, and marks of segments.
    pub mode: u32,
    /// Owner.
    pub user: u32,
    /// Owner's group.
    pub group: u32,
    /// Who made it.
    pub creator: u32,
    /// Its group.
    pub creator_group: u32,
    /// By kind.
    pub values: [u64; IPC_VALUES],
}

/// `ProcessText`: the arguments, each ended by NUL.
pub const TEXT_ARGUMENTS: u64 = 0;
/// `ProcessText`: the environment, each variable ended by NUL.
pub const TEXT_ENVIRONMENT: u64 = 1;
/// `ProcessText`: the absolute path of the executable.
pub const TEXT_EXECUTABLE: u64 = 2;
/// `ProcessText`: the supplementary groups, as u32.
pub const TEXT_GROUPS: u64 = 3;
/// `ProcessText`: soft and hard limit of each resource, as u64.
pub const TEXT_LIMITS: u64 = 4;
/// `ProcessText`: the auxiliary vector.
pub const TEXT_AUXILIARY: u64 = 5;

/// `ProcessText`: uid_map.
pub const TEXT_USER_MAP: u64 = 6;
/// `ProcessText`: gid_map.
pub const TEXT_GROUP_MAP: u64 = 7;
/// `ProcessText`: setgroups.
pub const TEXT_SETGROUPS: u64 = 8;

/// `Setting`: programs start at random addresses (1, 2) or at fixed ones (0): /proc/sys/kernel/randomize_va_space.
pub const SETTING_RANDOM_PLACES: u64 = 0;
/// `Setting`: ids are below this: /proc/sys/kernel/pid_max.
pub const SETTING_PID_MAX: u64 = 1;

/// State of a process or a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[allow(missing_docs)]
pub struct ProcessRecord {
    /// Main thread (or the service).
    pub endpoint: Endpoint,
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// Device number of the controlling terminal, 0: none.
    pub terminal: u32,
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub threads: u32,
    /// Letter as in /proc/PID/stat: R S D T t Z.
    pub state: u32,
    /// 1: a service, shown like a kernel thread, without memory map or arguments.
    pub service: u32,
    pub nice: i32,
    pub started_ns: u64,
    pub user_ns: u64,
    pub children_ns: u64,
    /// For this thread (in a process's record: its first one).
    pub signals_pending: u64,
    /// For any thread of the process.
    pub signals_shared: u64,
    pub signals_blocked: u64,
    pub signals_ignored: u64,
    pub signals_caught: u64,
    pub capabilities_inheritable: u64,
    pub capabilities_permitted: u64,
    pub capabilities_effective: u64,
    pub capabilities_bounding: u64,
    pub capabilities_ambient: u64,
    /// Its containers (`Parts`).
    pub parts: u64,
    /// How often the thread has waited for a server.
    pub waits: u64,
    /// Name, first 15 bytes of the file name.
    pub name: [u8; 16],
    /// Id of the process, in a thread's record too.
    pub process: u32,
    /// Linux's scheduling policy, and real-time priority or 0.
    pub policy: u32,
    pub priority: u32,
    /// Effective real-time priority, inheritance included; 0: time-shared.
    pub effective: u32,
    pub fsuid: u32,
    pub fsgid: u32,
    /// 1: an exec gives it no rights (PR_SET_NO_NEW_PRIVS).
    pub no_new_privileges: u16,
    /// Mode of seccomp(2) of the thread: 0 none, 1 strict, 2 filters.
    pub seccomp: u16,
    /// Queued signals and timers of its user, and how many it may have.
    pub signals_queued: u32,
    pub signals_queued_max: u32,
    /// Id of the process that traces it; 0: none.
    pub tracer: u32,
    /// 1: its files of /proc belong to root (PR_SET_DUMPABLE).
    pub undumpable: u32,
    /// oom_score_adj: from -1,000 to 1,000.
    pub oom_adjust: i16,
    /// Filters of seccomp(2) that the thread has.
    pub filters: u16,
}
