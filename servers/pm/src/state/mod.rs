//! What pm knows, as data: tables, ids, signals, timers, limits. Pure: nothing here calls the kernel or another server, so that all
//! of it runs in host tests without a fake, and a successor of pm finds it as it was left.
//!
//! Reading order: `index`, `pid`, `process`, `thread`, `table` (how they are linked), `queries`; then what these consist of.

pub mod arguments;
pub mod bpf;
pub mod capabilities;
pub mod containers;
pub mod control;
pub mod core_dump;
pub mod credentials;
pub mod family;
pub mod index;
pub mod intervals;
pub mod ipc;
pub mod limited;
pub mod limits;
pub mod load;
pub mod machine;
pub mod messages;
pub mod name;
pub mod oom;
pub mod pid;
pub mod posix_timers;
pub mod process;
pub mod queries;
pub mod queued;
pub mod random;
pub mod round;
pub mod scheduling;
pub mod seccomp;
pub mod segments;
pub mod semaphores;
pub mod services;
pub mod signal;
pub mod table;
pub mod thread;
pub mod time;
pub mod timers;
pub mod trace;
pub mod usage;
pub mod wait;
pub mod watch;
