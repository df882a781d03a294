//! From the boot loader to the first thread.
//!
//! `boot.s` comes here with the loader's word for where its information is, on page tables that map the first 4 GiB. The order matters: what
//! the loader left is read while those tables still show it, then memory is divided, then the kernel's own tables, traps and
//! clocks replace what was there.

use crate::{entry, hardware::Hardware, loader, page_tables, page_tables::KernelTables, physical, state::node_state};
use abi::{layout::PAGE_BYTES, privilege::MemoryRange, trace::event};
use core::fmt::Write;
use kernel_boot::{BootInfo, Platform};

core::arch::global_asm!(include_str!("boot.s"));

/// What the boot tables map.
const BOOT_MAPPED: u64 = 4 << 30;
/// Where the image starts with its boot part.
const LOADED_AT: u64 = 0x10_0000;
/// Frames for page tables before vm donates more.
const POOL_FRAMES: u64 = 512;
/// Firmware without a word about ACPI leaves its pointer here, on a 16-byte boundary.
const BIOS_AREA: core::ops::Range<u64> = 0xe_0000..0x10_0000;

unsafe extern "C" {
    static kernel_stack_end: u8;
}

/// Called by `boot.s`, once.
#[unsafe(no_mangle)]
extern "C" fn kernel_main(magic: u64, information: u64, tsc: u64) -> ! {
    // SAFETY: the first and only code of the node.
    let (kernel, hardware) = unsafe { node_state() };
    hardware.console.start();
    hardware.boot = kernel_boot::read(magic, information, boot_memory).expect("started by neither PVH nor multiboot2");
    hardware.console.quiet = hardware.boot.has_word("quiet");
    hardware.platform = read_platform(&mut hardware.boot);
    start_memory(hardware);
    // SAFETY: the tables are part of the node's state, which never moves.
    unsafe { hardware.descriptors.start(&raw const kernel_stack_end as u64) };
    entry::protect();
    entry::start();
    hardware.apic.start();
    hardware.clock.start(&hardware.apic, tsc);
    kernel.boot(hardware);
    if cfg!(feature = "tracing") && hardware.boot.has_word("trace") {
        kernel.set_tracing(event::ALL);
        crate::trace::send(hardware);
    }
    loader::start_services(kernel, hardware);
    give_rest_to_vm(hardware);
    entry::run()
}

/// Reads the ACPI tables, searching for them if the loader said nothing.
fn read_platform(boot: &mut BootInfo) -> Platform {
    if boot.rsdp == 0 {
        boot.rsdp = BIOS_AREA.step_by(16).find(|&at| boot_memory(at, 8) == b"RSD PTR ").unwrap_or(0);
    }
    Platform::read(boot.rsdp, boot_memory)
}

/// Physical memory while the boot tables are in use; empty beyond them.
fn boot_memory(address: u64, bytes: u64) -> &'static [u8] {
    match address.checked_add(bytes) {
        // SAFETY: mapped, and nobody writes what the loader and the firmware left before it has been read.
        Some(end) if end <= BOOT_MAPPED => unsafe { physical::slice(address, bytes) },
        _ => &[],
    }
}

/// Divides the memory and leaves the boot tables for the kernel's own.
fn start_memory(hardware: &mut Hardware) {
    let usable = hardware.boot.memory.clone();
    let mut free = usable.clone();
    let (image_start, image_end) = page_tables::image_range();
    let (archive, keep) = (hardware.boot.archive, hardware.boot.keep);
    free.remove(LOADED_AT, image_end - LOADED_AT);
    free.remove(archive.start, archive.bytes);
    free.remove(keep.start, keep.bytes);
    let before = free.total_bytes();

    let mut tables = KernelTables::new(&mut free, usable.end());
    hardware.apic.map(&hardware.platform, &mut tables, &mut free);
    // SAFETY: the tables map the image where it runs, and all RAM.
    unsafe { hardware.spaces.start(tables.root(), !hardware.boot.has_word("nopcid")) };
    // The part of the image that booted has done its work.
    free.add(LOADED_AT, image_start - LOADED_AT);
    hardware.context.start(&mut free);
    hardware.frames.start(usable, &mut free, POOL_FRAMES);
    hardware.frames.end_of_boot(before - free.total_bytes());
    let bytes = archive.bytes.next_multiple_of(PAGE_BYTES);
    hardware.frames.give_to_user(MemoryRange { start: archive.start, bytes });
    hardware.free = free;
}

fn give_rest_to_vm(hardware: &mut Hardware) {
    for range in hardware.free.ranges() {
        hardware.frames.give_to_user(*range);
    }
    let (total, free) = (hardware.frames.usable_bytes() >> 10, hardware.free.total_bytes() >> 10);
    let mhz = hardware.clock.tsc_hz / 1_000_000;
    // The console cannot fail.
    let _ = writeln!(hardware.console, "Skink: {total} KiB of memory, {free} KiB free, {mhz} MHz");
}
