//! Clocks and timers of programs: `clocks` and sleeping, `intervals` (`setitimer`, `alarm`, RLIMIT_CPU), `posix_timers`, and the one
//! kernel `alarm` behind all of them.

mod adjust;
mod alarm;
mod clocks;
mod intervals;
mod posix_timers;
mod real_time_limit;
