//! Last words: the kernel cannot go on, and says why before it stops.
//!
//! Everything here works without a sound node: it only prints. Addresses that look like return addresses into the kernel's text are
//! printed for the stack, since the image has no frame pointers; `addr2line` names them.

use crate::{cpu, hardware::Hardware, power, state::node_state};
use abi::Message;
use core::{fmt::Write, sync::atomic::AtomicBool, sync::atomic::Ordering::Relaxed};
use kernel_core::Frame;
use zerocopy::transmute;

/// Status for the host: the kernel panicked.
const PANIC_STATUS: u32 = 0x7e;
const MAX_ADDRESSES: usize = 24;
/// The registers that are printed, in the order of the frame.
const REGISTERS: [&str; 18] = [
    "r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rbp", "rdi", "rsi", "rdx", "rcx", "rbx", "rax", "rip",
    "rflags", "rsp",
];
/// Lines about a service that has failed: one, and its registers, three in a line.
pub const FAILURE_LINES: u64 = 1 + REGISTERS.len() as u64 / 3;

unsafe extern "C" {
    static __text_start: u8;
    static __rodata_start: u8;
    static kernel_stack_guard: u8;
    static kernel_stack_end: u8;
}

static DYING: AtomicBool = AtomicBool::new(false);

/// Prints one line, whatever the console's state, and returns the hardware for more.
fn begin() -> &'static mut Hardware {
    // SAFETY: nothing else will run any more.
    let (_, hardware) = unsafe { node_state() };
    if DYING.swap(true, Relaxed) {
        cpu::halt_forever();
    }
    hardware.console.quiet = false;
    hardware
}

/// An exception in the kernel itself.
pub fn trap(vector: u64, error: u64, rip: u64, rsp: u64) -> ! {
    let console = &mut begin().console;
    let _ = writeln!(
        console,
        "\nkernel: exception {vector} at {rip:#x}, error {error:#x}, address {:#x}, stack {rsp:#x}",
        cpu::cr2()
    );
    finish()
}

/// A service which everything stands on has failed.
pub fn service(name: &str, frame: &Frame, message: &Message) -> ! {
    let console = &mut begin().console;
    (0..FAILURE_LINES).for_each(|line| print_failure(console, name, frame, message, line));
    finish()
}

/// Prints a line of what is to be said about a service that has failed, the message and then its registers.
pub fn print_failure(console: &mut impl Write, name: &str, f: &Frame, message: &Message, line: u64) {
    let [first, second, third, fourth, ..] = message.words;
    let values: [u64; size_of::<Frame>() / 8] = transmute!(*f);
    match line {
        0 => {
            let words = format_args!("{first:#x} {second:#x} {third:#x} {fourth:#x}");
            let _ = writeln!(console, "\nkernel: {name} failed: label {:#x}, words {words}", message.label);
        }
        _ => {
            for (name, value) in REGISTERS.iter().zip(values).skip(3 * (line as usize - 1)).take(3) {
                let _ = write!(console, "{name:>8} {value:016x}");
            }
            let _ = writeln!(console);
        }
    }
}

/// Prints what looks like return addresses on the kernel's stack, and ends.
fn finish() -> ! {
    // SAFETY: as in `begin`.
    let (_, hardware) = unsafe { node_state() };
    let here = &raw const hardware as u64;
    let (bottom, end) = (&raw const kernel_stack_guard as u64 + 4096, &raw const kernel_stack_end as u64);
    let text = &raw const __text_start as u64..&raw const __rodata_start as u64;
    let _ = write!(hardware.console, "stack:");
    let start = if (bottom..end).contains(&here) { here & !7 } else { bottom };
    // SAFETY: the addresses lie within the kernel's stack, which is mapped and aligned.
    let words = (start..end).step_by(8).map(|at| unsafe { (at as *const u64).read() });
    for word in words.filter(|word| text.contains(word)).take(MAX_ADDRESSES) {
        let _ = write!(hardware.console, " {word:#x}");
    }
    let _ = writeln!(hardware.console);
    power::off(0, 0, PANIC_STATUS)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let console = &mut begin().console;
    let _ = writeln!(console, "\nkernel: {info}");
    finish()
}
