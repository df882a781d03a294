//! The protocol of vfs: requests of pm and procfs. Programs reach vfs by their Linux calls (list: systems/*.toml).
//! vfs replies at once; the results of longer operations are events: vfs notifies pm, which fetches them with `NextEvent`.

use crate::{CapabilitySet, Endpoint, GrantId, Parts};

protocol! {
    /// Files. From pm unless noted.
    pub "vfs" = 3;
    /// A new process or thread: descriptors, working directory, root, umask, ids are copied from `parent`, or shared
    /// (`flags`: `FORK_FILES`, `FORK_FS`). `identity`: pid (low half), and how many processes had it before (31 bits). `parent` NONE: the first program: root directory, descriptors 0 to 2 on /dev/console.
    /// `parts`: its containers. If that of mounts has none yet, it gets copies of the parent's. `ENOSPC`: there are too many.
    Fork = 1 { parent: Endpoint, child: Endpoint, identity: u64, flags: u64, parts: Parts }
    /// The process or thread has ended: closes its unshared descriptors and cancels its call in progress.
    Exit = 2 { process: Endpoint }
    /// Finds and checks the program at the path in the grant and loads its image into vm, interpreters included. `directory`: what the path is
    /// relative to, a descriptor or `AT_FDCWD`; `flags` of execveat(2), checked. The result comes as event `EVENT_EXEC`.
    Exec = 3 { process: Endpoint, grant: GrantId, bytes: u64, directory: i32, flags: u64 }
    /// The exec is committed: closes descriptors marked close-on-exec, unshares the table.
    ExecCommit = 4 { process: Endpoint }
    /// Copies the text of the last exec event into the grant: strings with a NUL behind each: the absolute path of the program that runs, the
    /// name that was executed, and for a script the arguments in place of the first one. With `EXEC_CAPABILITIES` a `FileCapabilities` precedes
    /// them. Word 0 of the reply: length.
    ExecText = 5 { process: Endpoint, grant: GrantId, bytes: u64 }
    /// Cancels the call in progress for a signal: it returns the bytes moved so far if there are any, else `error` (mostly
    /// `ERESTARTSYS`). `ENOENT`: no call in progress.
    Cancel = 6 { process: Endpoint, error: i32 }
    /// Ids or capabilities have changed: effective uid (low) and gid (high half), real ones, supplementary groups (array of u32) in the grant;
    /// effective capabilities, and those with which access(2) judges.
    SetIds = 7 { process: Endpoint, effective: u64, real: u64, grant: GrantId, groups: u64, capabilities: CapabilitySet, real_capabilities: CapabilitySet }
    /// Session and group have changed. `leader`: the process has become a session leader, without controlling terminal.
    SetSession = 8 { process: Endpoint, session: u64, group: u64, leader: bool }
    /// Returns the next event, whose number is word 0 of the reply. `done`: the number of the last one that pm has dealt with, or 0; an event comes
    /// again until pm says so, also to a successor of pm or from one of vfs. `ENOENT`: none left. Values by kind: `EVENT_EXEC`: word a = image, or negative error; b = interpreter image;
    /// c = flags (`EXEC_*`), d = owner ids if set-id. `EVENT_SIGNAL`: a = signal for this thread, whose call waits for `Cancel` (SIGPIPE, SIGXFSZ).
    NextEvent = 9 { done: u64 } -> { kind: u64, process: Endpoint, a: u64, b: u64, c: u64, d: u64 }
    /// pm: writes everything back, then sends event `EVENT_SYNCED`, before a shutdown. `unmount`: file systems are marked clean and refuse writes.
    SyncAll = 10 { unmount: bool }
    /// procfs: copies a text (`TEXT_*`) from `offset` into the grant; of mounts, that which `process` sees. Word 0 of the reply: bytes copied.
    Text = 11 { what: u64, grant: GrantId, bytes: u64, offset: u64, process: Endpoint }
    /// procfs: copies the path of descriptor `what` ≥ 0, working directory (-1) or root (-2) of a process into the grant.
    /// Word 0 of the reply: length. `EBADF`: no such descriptor.
    DescriptorPath = 12 { process: Endpoint, what: i64, grant: GrantId, bytes: u64 }
    /// procfs: copies the open descriptors of a process from `first` on into the grant, as u32 array. Word 0 of the reply: bytes copied.
    Descriptors = 13 { process: Endpoint, first: u64, grant: GrantId, bytes: u64 }
    /// The event `EVENT_MASK_END` of a thread has been handled: its call returns.
    Unmasked = 14 { process: Endpoint }
    /// Soft resource limits of the process of this thread have changed: RLIMIT_NOFILE, RLIMIT_FSIZE and
    /// RLIMIT_MSGQUEUE (all ones: none). A child begins with its parent's.
    SetLimits = 15 { process: Endpoint, descriptors: u64, file_bytes: u64, message_bytes: u64 }
    /// procfs: copies the lines of /proc/PID/fdinfo for a descriptor into the grant. Word 0 of the reply: length. `EBADF`.
    DescriptorInfo = 16 { process: Endpoint, descriptor: i32, grant: GrantId, bytes: u64 }
    /// procfs: returns umask and size of the descriptor table of a process.
    ProcessFiles = 17 { process: Endpoint } -> { umask: u64, table_size: u64 }
    /// procfs: returns how many open files and vnodes there are, and how large the tables are.
    Usage = 18 { }
        -> { files: u64, files_max: u64, nodes: u64, user_pipe_bytes: u64, user_interests: u64, aio_requests: u64 }
    /// Gives a thread a descriptor for the process with this identity (`Fork`), for its call to pm with this number: asked again for the same
    /// call, it is the same descriptor. `flags`: `PIDFD_NONBLOCK`. It is also written to `address`, unless that is 0. Word 0 of the reply: the descriptor.
    OpenPidFd = 19 { process: Endpoint, call: u64, identity: u64, flags: u64, address: u64 }
    /// Returns the process that a descriptor of a thread means. `EBADF`: it means none.
    PidFd = 20 { process: Endpoint, descriptor: i64 } -> { identity: u64, nonblocking: bool }
    /// Gives a thread a descriptor for the open file of another one's (pidfd_getfd(2)), for its call to pm with this number. Word 0 of the
    /// reply: the descriptor.
    CopyDescriptor = 21 { process: Endpoint, call: u64, from: Endpoint, descriptor: i64 }
    /// A signal that vfs has asked about (`pm::TakeSignals`, `pm::AwaitSignals`) is pending for this thread. It is told once.
    SignalsPending = 22 { process: Endpoint }
    /// Returns the process whose directory /proc/PID a descriptor of a thread is open on (pidfd_send_signal(2) takes such a one). Word 0 of
    /// the reply: its pid; it may have ended. `EBADF`: it is of something else.
    ProcessFolder = 23 { process: Endpoint, descriptor: i64 }
    /// Compares what two threads have open (kcmp(2)): `COMPARE_*`. Word 0 of the reply: 0, the same; 1 or 2, the first is before or behind the
    /// second, in an order that stays. `EBADF`: no such descriptor; of `COMPARE_EPOLL` also `EINVAL`, no epoll, and `ENOENT`.
    Compare = 25 { what: u64, first: Endpoint, descriptor: u64, second: Endpoint, other: u64, nth: u64 }
    /// procfs: word 0 of the reply is what a descriptor was opened for (`OPEN_*`). `EBADF`.
    DescriptorAccess = 24 { process: Endpoint, descriptor: i64 }
    /// A thread is in other containers from now on. If the new one of mounts has none yet, it gets copies of those that the thread sees;
    /// otherwise the thread's root and working directory become its root. `unshared`: it has descriptors (`FORK_FILES`) or directories
    /// (`FORK_FS`) of its own from now on. `ENOSPC`: there are too many mounts.
    SetParts = 26 { process: Endpoint, parts: Parts, unshared: u64 }
    /// The ids of the users of a thread's container: `users`: the one that it shows (low half) and the system's, `groups` alike; all ones where
    /// there is none.
    SetIdMap = 27 { process: Endpoint, users: u64, groups: u64 }
    /// How many open files and pipes a container with limits may have (`Parts::limited`): `ENFILE` beyond. `u64::MAX`: as one user.
    LimitContainer = 28 { container: u64, files: u64, pipes: u64 }
    /// Returns how many open files and pipes a container with limits has.
    ContainerFiles = 29 { container: u64 } -> { files: u64, pipes: u64 }
    /// Whether vfs works for a thread that waits for its answer, or has a file system do so: word 0 of the reply is 1; 0: the call waits for
    /// something that may never happen, such as input. `ESRCH`.
    WorksFor = 30 { process: Endpoint }
}

/// `Compare`: the open files of two descriptors.
pub const COMPARE_FILE: u64 = 0;
/// `Compare`: the descriptor tables.
pub const COMPARE_FILES: u64 = 1;
/// `Compare`: what chdir and umask change.
pub const COMPARE_FS: u64 = 2;
/// `Compare`: the open file of `descriptor`, and the one that the epoll of the second's descriptor `other` (low half) has registered as
/// descriptor (high half), the `nth` with that number.
pub const COMPARE_EPOLL: u64 = 3;

/// `Text`: /proc/mounts.
pub const TEXT_MOUNTS: u64 = 0;
/// `Text`: /proc/self/mountinfo.
pub const TEXT_MOUNT_INFO: u64 = 1;
/// `Text`: /proc/locks.
pub const TEXT_LOCKS: u64 = 2;
/// `Text`: /proc/net/unix.
pub const TEXT_SOCKETS: u64 = 3;
/// `Text`: /proc/partitions.
pub const TEXT_PARTITIONS: u64 = 4;

/// `DescriptorAccess`: reading.
pub const OPEN_READS: u64 = 1;
/// `DescriptorAccess`: writing.
pub const OPEN_WRITES: u64 = 2;

/// `SetIdMap`: no id.
pub const NO_ID_MAP: u64 = u64::MAX;

/// `Fork`: the descriptor table is shared (CLONE_FILES).
pub const FORK_FILES: u64 = 1;
/// `Fork`: directory, root and umask are shared (CLONE_FS).
pub const FORK_FS: u64 = 2;

/// `OpenPidFd`: waits for it do not block (PIDFD_NONBLOCK).
pub const PIDFD_NONBLOCK: u64 = 1;

/// Event: an exec is ready to be committed or has failed.
pub const EVENT_EXEC: u64 = 1;
/// Event: a signal for a thread.
pub const EVENT_SIGNAL: u64 = 2;
/// Event: `SyncAll` has completed; a = 0 or negative error.
pub const EVENT_SYNCED: u64 = 3;
/// Event: a message has arrived in a queue for which a process requested a signal (mq_notify(3)): a = pid (low half) and signal, b = value
/// for the handler, c = pid (low half) and user of the sender.
pub const EVENT_MESSAGE: u64 = 4;

/// Event: the call of this thread (pselect6, ppoll) waits with the signal mask a in force in place of the thread's own.
pub const EVENT_MASK: u64 = 5;
/// Event: that wait is over. Unless a signal is to be delivered, which restores the mask itself, pm restores it; then it sends `Unmasked`.
pub const EVENT_MASK_END: u64 = 6;
/// Event: something happened to an open file (O_ASYNC), or its lease is to be broken: a signal for its owner (F_SETOWN): a = id of the owner
/// (low half), what the id is of (`OWNER_THREAD` to `OWNER_GROUP`, bits 32 to 39) and signal (F_SETSIG, from bit 40; 0: SIGIO without
/// details), b = descriptor (low half) and reason (`OWNER_INPUT` to `OWNER_HANG_UP`), c = user (low half) and effective user who named the
/// owner. pm checks that these may signal it.
pub const EVENT_OWNER: u64 = 7;

/// `EVENT_OWNER`: the owner is a thread (F_OWNER_TID).
pub const OWNER_THREAD: u64 = 0;
/// `EVENT_OWNER`: a process (F_OWNER_PID).
pub const OWNER_PROCESS: u64 = 1;
/// `EVENT_OWNER`: every process of a group (F_OWNER_PGRP).
pub const OWNER_GROUP: u64 = 2;

/// `EVENT_OWNER`: there is something to read (POLL_IN).
pub const OWNER_INPUT: u64 = 1;
/// `EVENT_OWNER`: there is room to write (POLL_OUT).
pub const OWNER_OUTPUT: u64 = 2;
/// `EVENT_OWNER`: the lease is to be broken (POLL_MSG).
pub const OWNER_MESSAGE: u64 = 3;
/// `EVENT_OWNER`: the peer has gone (POLL_HUP).
pub const OWNER_HANG_UP: u64 = 6;

/// Requests that all contexts of asynchronous I/O may have: /proc/sys/fs/aio-max-nr.
pub const AIO_REQUESTS: u64 = 65_536;
/// Inotify instances of one user: /proc/sys/fs/inotify/max_user_instances.
pub const INOTIFY_USER_INSTANCES: u64 = 128;
/// Watches of one user: /proc/sys/fs/inotify/max_user_watches.
pub const INOTIFY_USER_WATCHES: u64 = 4096;
/// Events that an instance holds: /proc/sys/fs/inotify/max_queued_events.
pub const INOTIFY_QUEUED_EVENTS: u64 = 16384;

/// Seconds from the begin of the break of a lease to its end by force: /proc/sys/fs/lease-break-time.
pub const LEASE_BREAK_S: u64 = 45;

/// `EVENT_EXEC`: set-user-id, `d` low half is the owner.
pub const EXEC_SETUID: u64 = 2;
/// `EVENT_EXEC`: set-group-id, `d` high half is the group.
pub const EXEC_SETGID: u64 = 4;
/// `EVENT_EXEC`: the file has capabilities, which `ExecText` tells.
pub const EXEC_CAPABILITIES: u64 = 8;

/// The capabilities that a file gives to a process which executes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCapabilities {
    /// Permitted to whoever executes it.
    pub permitted: CapabilitySet,
    /// Permitted to those who have them in their inheritable sets.
    pub inheritable: CapabilitySet,
    /// They are effective at once.
    pub are_effective: bool,
}

impl FileCapabilities {
    /// Size in `ExecText`.
    pub const BYTES: usize = 24;

    /// As in `ExecText`.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = [self.permitted.bits(), self.inheritable.bits(), self.are_effective.into()];
        let mut bytes = [0; Self::BYTES];
        bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
        bytes
    }

    /// Takes them from the front of an `ExecText`, and returns the rest. `None`: it is too short.
    pub fn take(text: &[u8]) -> Option<(FileCapabilities, &[u8])> {
        let (bytes, rest) = text.split_first_chunk::<{ Self::BYTES }>()?;
        let word = |index: usize| u64::from_le_bytes(bytes.as_chunks().0[index]);
        let [permitted, inheritable] = [0, 1].map(|index| CapabilitySet::from_bits(word(index)));
        Some((FileCapabilities { permitted, inheritable, are_effective: word(2) != 0 }, rest))
    }
}
