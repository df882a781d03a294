//! Starts vm and rs out of the boot archive: the two services that everything else is started by.
//!
//! Their memory is mapped before they run: image, heap, stack, for rs also the archive. It is not part of what vm may give away.

use crate::{
    copying,
    elf::{Program, Segment},
    hardware::Hardware,
    physical,
};
use abi::{
    Endpoint, Name,
    archive::Archive,
    endpoint::slot,
    layout::{
        BOOT_HEAP_BYTES, PAGE_BYTES, RS_ARCHIVE, SERVICE_HEAP, SERVICE_STACK_BYTES, SERVICE_STACK_END, birth, map,
    },
    privilege::MemoryRange,
};
use kernel_core::{Frame, Node, Space};

/// Services that the kernel starts, in the order in which they run.
const BOOT_SERVICES: [usize; 2] = [slot::VM, slot::RS];

/// Builds both services and makes them ready. Panics when the archive does not hold them: there is nothing to run then.
pub fn start_services(node: &mut Node, hardware: &mut Hardware) {
    let range = hardware.boot.archive;
    // SAFETY: the archive is RAM that the loader filled and nobody writes.
    let bytes = unsafe { physical::slice(range.start, range.bytes) };
    let Some(archive) = Archive::new(bytes) else { panic!("the boot loader brought no boot archive") };
    for slot in BOOT_SERVICES {
        let name = slot::NAMES[slot - abi::endpoint::FIRST_SERVICE];
        let Some(file) = archive.find(name) else { panic!("the boot archive has no {name}") };
        let frame = build(hardware, slot, name, file.data);
        if let Some(name) = Name::new(name) {
            node.boot_service(hardware, slot, name, frame);
        }
    }
}

/// Makes the space of a service and returns the registers it starts with.
fn build(hardware: &mut Hardware, number: usize, name: &str, file: &[u8]) -> Frame {
    let space = Space(number as u16);
    if let Err(error) = hardware.spaces.create(&mut hardware.frames, space) {
        panic!("{name}: {error}");
    }
    let program = match Program::new(file) {
        Ok(program) => program,
        Err(error) => panic!("{name}: {error:?}"),
    };
    for segment in program.segments() {
        match segment {
            Ok(segment) => load_segment(hardware, space, &segment),
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
    map_new(hardware, space, SERVICE_HEAP, BOOT_HEAP_BYTES / PAGE_BYTES, map::WRITE);
    map_new(hardware, space, SERVICE_STACK_END - SERVICE_STACK_BYTES, SERVICE_STACK_BYTES / PAGE_BYTES, map::WRITE);
    if number == slot::RS {
        let archive = hardware.boot.archive;
        map_frames(hardware, space, RS_ARCHIVE, archive.start, archive.bytes.div_ceil(PAGE_BYTES), 0);
    }
    let mut frame = Frame::start(program.entry, SERVICE_STACK_END);
    frame.rdi = birth::FRESH;
    frame.r10 = SERVICE_HEAP;
    frame.r8 = BOOT_HEAP_BYTES;
    frame.r9 = Endpoint::new(number, 1).0 as u64;
    frame
}

fn load_segment(hardware: &mut Hardware, space: Space, segment: &Segment<'_>) {
    let rights = if segment.write { map::WRITE } else { 0 } | if segment.execute { map::EXECUTE } else { 0 };
    let frame = map_new(hardware, space, segment.first_page(), segment.pages(), rights);
    let start = frame + segment.address % PAGE_BYTES;
    copying::fill(start, segment.data);
}

/// Maps new memory, filled with zeros, and returns its first frame.
fn map_new(hardware: &mut Hardware, space: Space, address: u64, pages: u64, rights: u64) -> u64 {
    let Some(frame) = hardware.free.take(pages, u64::MAX) else { panic!("no memory for the first services") };
    hardware.frames.give_to_user(MemoryRange { start: frame, bytes: pages * PAGE_BYTES });
    map_frames(hardware, space, address, frame, pages, rights | map::ZERO);
    frame
}

fn map_frames(hardware: &mut Hardware, space: Space, address: u64, frame: u64, pages: u64, flags: u64) {
    let mapped = hardware.spaces.map(&mut hardware.frames, space, address, frame, pages, flags);
    if let Err(error) = mapped.result {
        panic!("the first services cannot be mapped: {error}");
    }
}
