//! The timer, and the deadlines of threads.

pub mod alarm;
pub mod deadlines;
pub mod timer;
