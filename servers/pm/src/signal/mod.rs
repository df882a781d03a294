//! Signals: `send` decides which thread gets one and what happens at once, `deliver` what happens when a thread is about to run,
//! `wait` lets threads wait for one, `calls` are the system calls that set up and send them.

mod calls;
mod deliver;
mod send;
mod several;
mod signalfds;
mod wait;
