//! What the terminals need from outside: the callers' memory, replies, the kernel's log, lights.

use abi::{Errno, GrantId, Message};

/// See the head of the file.
pub trait World {
    /// Copies into the buffer that the request's grant names.
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno>;
    /// Copies from it, beginning at `offset`.
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Replies to a request.
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>);
    /// Fills the buffer with the beginning of the kernel's log. Returns how much there is.
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize;
    /// Sets the lights of all keyboards.
    fn set_lights(&mut self, lights: u8);
}
