//! What the devices need from outside: the callers' memory, replies, drivers, time.

use abi::{Errno, GrantId, Message};

/// See the head of the file.
pub trait World {
    /// Copies into the buffer that the request's grant names.
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno>;
    /// Copies from it, beginning at `offset`.
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Replies to a request.
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>);
    /// Tells the driver of a device its lights.
    fn set_lights(&mut self, device: usize, lights: u32);
    /// Monotonic time.
    fn now_ns(&self) -> u64;
    /// Nanoseconds since 1970.
    fn real_ns(&self) -> u64;
}
