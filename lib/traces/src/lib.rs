//! What programs make of the records of the kernel's trace ring (`abi::trace`): latencies of calls, who works for whom, and probes.
//!
//! Only `device` and `observer` make system calls: all else is tested on the host. All tables are bounded: what does not fit is counted.
//!
//! * `calls`: pairs requests with their replies, and follows the chain from a program through the services that work for it;
//! * `device`: /dev/trace as a stream of records; `ring`: which of them to read next, and how many were lost;
//! * `histogram`: durations in powers of two;
//! * `label`, `names`: names of messages and processes;
//! * `latency`: the table of `service top`;
//! * `observer`: a look at the ring for some time;
//! * `probe`: the language of `probe`, and its evaluation.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod calls;
pub mod device;
pub mod histogram;
pub mod label;
pub mod latency;
pub mod names;
pub mod observer;
pub mod probe;
pub mod ring;
