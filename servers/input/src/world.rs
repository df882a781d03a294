//! What the devices need from outside, beside their callers: drivers, time.

use server::Callers;

/// See the head of the file.
pub trait World: Callers {
    /// Tells the driver of a device its lights.
    fn set_lights(&mut self, device: usize, lights: u32);
    /// Monotonic time.
    fn now_ns(&self) -> u64;
    /// Nanoseconds since 1970.
    fn real_ns(&self) -> u64;
}
