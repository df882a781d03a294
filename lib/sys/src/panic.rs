//! The panic handler: logs the reason and exits; rs starts a successor.

use crate::console::log;
use core::panic::PanicInfo;

/// Exit status of a program that panicked.
const STATUS: i32 = 101;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    match info.location() {
        Some(place) => log!("panicked at {place}: {}", info.message()),
        None => log!("panicked: {}", info.message()),
    }
    crate::start::exit(STATUS)
}
