//! What happens when a program cannot go on: it says why on the console and exits; rs starts its successor.

use core::panic::PanicInfo;

/// Exit status of a program that panicked.
const STATUS: i32 = 101;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    match info.location() {
        Some(place) => crate::log!("panicked at {place}: {}", info.message()),
        None => crate::log!("panicked: {}", info.message()),
    }
    crate::start::exit(STATUS)
}
