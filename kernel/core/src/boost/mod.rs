//! What `inheritance` decides, carried out: ready queues of threads follow their effective priorities.

pub mod donate;
pub mod effects;
pub mod throttle;
