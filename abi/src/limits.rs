//! Limits that a service enforces and another one shows, below /proc/sys. docs/book/limits.md has them all.

/// Ids of processes and threads are below this (pm), and below a smaller number if root says so.
pub const PIDS: u32 = 32768;
/// The least that root may bound ids to: those of services and of what booted first are below.
pub const PIDS_MIN: u32 = 301;
/// Supplementary groups of a process (pm, vfs).
pub const GROUPS: usize = 1024;
/// Descriptors of a process (pm, vfs).
pub const DESCRIPTORS: u64 = 1 << 20;
/// Bytes that a pipe may hold (vfs).
pub const PIPE_BYTES: usize = 1 << 20;
/// Connections that wait in a listening socket (vfs).
pub const BACKLOG: u32 = 4096;
/// Largest buffer of a socket that setsockopt accepts (vfs).
pub const SOCKET_BUFFER: u32 = 212_992;
/// Sets of System V semaphores (pm).
pub const SEMAPHORE_SETS: usize = 128;
/// Semaphores of a set (pm).
pub const SEMAPHORES: usize = 256;
/// Operations of one semop (pm).
pub const SEMAPHORE_OPERATIONS: usize = 500;
/// System V message queues (pm).
pub const MESSAGE_QUEUES: usize = 128;
/// Bytes of a message (pm).
pub const MESSAGE_BYTES: usize = 8192;
/// Bytes of a message queue, unless root allows more (pm).
pub const MESSAGE_QUEUE_BYTES: usize = 16384;
/// System V segments of shared memory (pm).
pub const SEGMENTS: usize = 256;
/// Bytes of a segment (pm).
pub const SEGMENT_BYTES: u64 = u64::MAX - (1 << 24);
/// POSIX message queues (vfs).
pub const POSIX_QUEUES: usize = 256;
/// Messages of a POSIX queue unless told otherwise, and the most that users other than root may ask for (vfs).
pub const POSIX_MESSAGES: u64 = 10;
/// Bytes of a message of a POSIX queue, in the same way (vfs).
pub const POSIX_MESSAGE_BYTES: u64 = 8192;
/// Files of a file system that are in use at a time (file systems on disks; vfs divides them among users).
pub const FILES_IN_USE: usize = 8192;
/// Loop devices (vfs): /dev/loop0 and the following.
pub const LOOP_DEVICES: usize = 8;
/// Frames that programs leave free (vm).
pub const FREE_FRAMES: usize = 192;
/// Mappings of a process (vm).
pub const MAPPINGS: usize = 16384;
