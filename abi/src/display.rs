//! The protocol between a driver of a screen and the service that draws text on it (console).
//!
//! The console draws into the pixels itself: it maps what the driver offers (`vm::MapOffered`) and asks where in it the screen is.
//! Programs use the same driver by `chardev` (/dev/fb0), as Linux's fbdev.

protocol! {
    /// Screens.
    pub "display" = 11;
    /// console: offers the pixels to the caller (`vm::OfferMemory`) and returns the present mode. `size`: pixels of a line (low half) and
    /// lines (high half); `stride`: bytes of a line; `start`: offset of the first visible byte; `format`: `FORMAT_*`. Word 0 of the
    /// reply: the mode's number, which changes with every change of the mode or of what is visible. From the first `Attach` on, the
    /// driver notifies the caller of each change, and after its own restart.
    Attach = 1 { } -> { size: u64, stride: u64, start: u64, format: u64 }
    /// console: what it has drawn in this rectangle is to be seen. A device that shows memory as it is needs no flush (`NEEDS_FLUSH` in the
    /// format is 0). `at`: x (low half) and y (high half); `size`: as in `Attach`.
    Flush = 2 { at: u64, size: u64 }
}

/// `Attach`: 32 bits a pixel, 0x00RRGGBB.
pub const FORMAT_XRGB8888: u64 = 32;
/// `Attach`: 16 bits a pixel, five, six and five bits of red, green and blue.
pub const FORMAT_RGB565: u64 = 16;
/// `Attach`: 8 bits a pixel, through the colour map.
pub const FORMAT_MAPPED: u64 = 8;
/// `Attach`: the bits of the format proper.
pub const FORMAT: u64 = 0xff;
/// `Attach`: the device must be told of what has changed, with `Flush`.
pub const NEEDS_FLUSH: u64 = 1 << 8;
