//! What every driver of a screen needs and no device decides: pixel formats (`format`), what a display says of itself (`edid`).
//!
//! Pure: no memory is touched and nothing is allocated, so all of it is tested on the host.

pub mod edid;
pub mod format;

pub use edid::Edid;
pub use format::Format;
