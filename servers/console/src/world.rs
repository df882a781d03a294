//! What the terminals need from outside, beside their callers: the kernel's log, the font, lights.

use server::Callers;

/// See the head of the file.
pub trait World: Callers {
    /// Fills the buffer with the beginning of the kernel's log. Returns how much there is.
    fn kernel_log(&mut self, buffer: &mut [u8]) -> usize;
    /// The font of the system file.
    fn usual_font(&self) -> &'static [u8];
    /// Sets the lights of all keyboards.
    fn set_lights(&mut self, lights: u8);
}
