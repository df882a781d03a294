//! The display kit: a screen as memory, for programs as Linux's fbdev (/dev/fb0), for the service that draws text by `abi::display`. A driver has
//! only its device ([`Device`]) and the memory that it shows.
//!
//! * `screen`: layouts, checked against the device's memory, and the trait of devices; `pixels`: that memory; `server`: the requests; `state`: what is preserved;
//!   `fbdev`: Linux's structures; `rotation`: pictures that are turned;
//! * `cursor`: a small image above the picture; `format`: pixel formats; `edid`: what a display says of itself.
//!
//! What the screen shows is preserved before the device is told; a successor shows that again.

mod cursor;
pub mod edid;
mod fbdev;
pub mod format;
mod pixels;
mod rotation;
mod screen;
mod server;
mod state;

pub use cursor::{CURSOR_BYTES, CURSOR_SHOWN, CURSOR_SIZE, Pointer};
pub use edid::Edid;
pub use format::Format;
pub use pixels::Pixels;
pub use rotation::Rotation;
pub use screen::{Area, Colour, Device, Layout};
pub use server::Framebuffer;
pub use state::{STATE_BYTES, State};
