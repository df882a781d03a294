//! The protocol between a driver of a screen and the service that draws text on it (console).
//!
//! The console draws into the pixels itself: it maps what the driver offers (`vm::MapOffered`) and asks where in it the screen is.
//! Programs use the same driver by `chardev` (/dev/fb0), as Linux's fbdev, and procfs asks both for /sys/class/graphics.

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
    /// procfs: what /sys tells. Word 0 of the reply: bits of a pixel (low byte), and by how many quarters the picture is turned, clockwise (next
    /// byte). `size` and `whole`: the visible and the virtual picture, as in `Attach`; `place`: x and y of the first visible pixel; the
    /// device's name, 16 bytes. console replies with by how much its text is turned alone.
    Describe = 3 { } -> { size: u64, whole: u64, place: u64, name_low: u64, name_high: u64 }
    /// procfs: changes one thing of the picture (`CHANGE_*`). console knows `CHANGE_ROTATION` of its text. `EINVAL`: it cannot be done.
    Change = 4 { what: u64, value: u64 }
}

/// `Change`: by how many quarters the picture is turned.
pub const CHANGE_ROTATION: u64 = 0;
/// `Change`: whether it is switched off.
pub const CHANGE_BLANK: u64 = 1;
/// `Change`: its first visible pixel, x (low half) and y (high half).
pub const CHANGE_PLACE: u64 = 2;
/// `Change`: the size of the virtual picture, as in `Attach`.
pub const CHANGE_WHOLE: u64 = 3;
/// `Change`: bits of a pixel.
pub const CHANGE_DEPTH: u64 = 4;

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
