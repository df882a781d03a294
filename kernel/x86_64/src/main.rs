//! The kernel's image for x86-64: what acts, where `kernel_core` decides.
//!
//! From the boot loader (`boot.s`) to the first thread: `start`; from then on everything enters through `entry`.
//! All state of the node is in two statics (`state`). Reading order: `boot.s`, `start`, `page_tables`, `entry`, `hardware`.
//!
//! Unsafe code: instructions (`cpu` and the files that name one), the direct map (`physical`), and the two statics. On a host only
//! the decisions about the port bitmap are built, for their tests.
#![cfg_attr(target_os = "none", no_std, no_main)]

pub mod ports;

#[cfg(target_os = "none")]
mod apic;
#[cfg(target_os = "none")]
mod clock;
#[cfg(target_os = "none")]
mod console;
#[cfg(target_os = "none")]
mod context;
#[cfg(target_os = "none")]
mod copying;
#[cfg(target_os = "none")]
mod cpu;
#[cfg(target_os = "none")]
mod descriptors;
#[cfg(target_os = "none")]
mod entry;
#[cfg(target_os = "none")]
mod fatal;
#[cfg(target_os = "none")]
mod frames;
#[cfg(target_os = "none")]
mod hardware;
#[cfg(target_os = "none")]
mod interrupts;
#[cfg(target_os = "none")]
mod loader;
#[cfg(target_os = "none")]
mod page_tables;
#[cfg(target_os = "none")]
mod physical;
#[cfg(target_os = "none")]
mod power;
#[cfg(target_os = "none")]
mod spaces;
#[cfg(target_os = "none")]
mod start;
#[cfg(target_os = "none")]
mod state;
#[cfg(target_os = "none")]
#[cfg(feature = "tracing")]
mod trace;

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("This is an operating system's kernel: it runs on a machine of its own. See `./skink run`.");
}
