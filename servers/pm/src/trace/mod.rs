//! Tracing (ptrace(2), ADR 58). pm owns all of it: a traced thread that is to stop waits for pm's reply to a report of the kernel, as one
//! that has a signal does, so that a stop is nothing but a reply that waits. `stops` decides what a thread stops at, `requests` are
//! what its tracer asks for, `registers` and `memory` show what it has, `watch` is what its debug registers ask for, `ends` is the end of tracers and of those whom they trace.

mod attach;
mod ends;
mod memory;
mod registers;
mod requests;
mod stops;
mod watch;
