//! Deadlines of threads.

pub(crate) mod alarm;
pub(crate) mod deadlines;
