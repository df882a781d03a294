//! The life of processes and threads: `fork`, `exit`, `wait`; their groups and sessions (`jobs`), ids, scheduling and small
//! attributes; `futexes` that a dying thread releases; `list` for procfs and rs; `pidfds`, descriptors
//! that mean a process; `limited`, containers with limits; `kcmp`, what two processes share; `answers`, which the kernel gives.

mod answers;
mod attributes;
mod capabilities;
mod containers;
mod control;
mod core_dump;
mod exit;
mod fork;
mod futexes;
mod ids;
mod io_priority;
mod jobs;
mod kcmp;
mod limited;
mod list;
mod pidfds;
mod scheduling;
mod seccomp;
mod wait;
