//! The kernel's image for x86-64: what acts, where `kernel_core` decides.
//!
//! From the boot loader (`boot.s`) to the first thread: `start`; from then on everything enters through `entry`.
//! All state of the node is in two statics (`state`). Reading order: `boot.s`, `start`, `page_tables`, `entry`, `hardware`.
//!
//! Unsafe code: instructions (`cpu` and the files that name one), the direct map (`physical`), and the two statics.
#![no_std]
#![no_main]

mod apic;
mod clock;
mod console;
mod context;
mod copying;
mod cpu;
mod descriptors;
mod entry;
mod fatal;
mod frames;
mod hardware;
mod interrupts;
mod loader;
mod page_tables;
mod physical;
mod power;
mod recent;
mod spaces;
mod start;
mod state;
mod trace;
