//! Proofs of `kernel_core` on the host: behaviour, comparison with a model, exhaustive search.
#![forbid(unsafe_code)]

mod fake;
mod model;
mod pair;
mod world;

mod bounds;
mod containers;
mod copies;
mod enforcement;
mod exhaustive;
mod faults;
mod futex_limits;
mod futexes;
mod information;
mod inheritance;
#[cfg(feature = "injection")]
mod injections;
mod interrupts;
mod linux_calls;
mod linux_time;
mod memory;
mod messages;
mod notifications;
mod paths;
mod ports;
mod privileges;
mod random;
#[cfg(feature = "minix4rt")]
mod real_time;
mod restarts;
mod roots;
mod routes;
mod scheduling;
mod strings;
mod system_task;
mod threads;
mod traces;
mod turns;
