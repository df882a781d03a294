//! Starts vm and rs out of the boot archive, the two services that everything else is started by; and after a failure starts them
//! again in the memory that they have.
//!
//! Their memory is mapped before they run: image, heap, stack, for rs also the archive. It is not part of what vm may give away.

use crate::{copying, hardware::Hardware, physical};
use abi::{
    Endpoint, Name, archive::Archive, endpoint::slot, layout::BOOT_HEAP_BYTES, layout::PAGE_BYTES, layout::RS_ARCHIVE,
    layout::SERVICE_HEAP, layout::SERVICE_STACK_BYTES, layout::SERVICE_STACK_END, layout::map, layout::start_kind,
    privilege::MemoryRange,
};
use elf::{Program, Segment};
use kernel_core::{Frame, Kernel, Machine, Space, machine::Renewal};

/// Services that the kernel starts, in the order in which they run.
const BOOT_SERVICES: [usize; 2] = [slot::VM, slot::RS];

/// Builds both services and makes them ready. Panics when the archive does not hold them: there is nothing to run then.
pub fn start_services(kernel: &mut Kernel, hardware: &mut Hardware) {
    for slot in BOOT_SERVICES {
        let name = name(slot);
        let Some(file) = file(hardware, name) else { panic!("the boot loader brought no boot archive with {name}") };
        hardware.boot_files[(slot == slot::RS) as usize] = file;
        let frame = build(hardware, slot, name, file);
        if let Some(name) = Name::new(name) {
            kernel.boot_service(hardware, slot, name, frame);
        }
    }
}

/// The name of the service that the kernel starts in this slot.
pub fn name(slot: usize) -> &'static str {
    slot::NAMES.get(slot.wrapping_sub(abi::endpoint::FIRST_SERVICE)).copied().unwrap_or("a service")
}

/// A file of the boot archive.
fn file(hardware: &Hardware, name: &str) -> Option<&'static [u8]> {
    let range = hardware.boot.archive;
    // SAFETY: the archive is RAM that the loader filled, and nobody writes binaries in it.
    let bytes = unsafe { physical::slice(range.start, range.bytes) };
    Some(Archive::new(bytes)?.find(name)?.data)
}

/// Writes a page of the text and constants of a failed boot service anew; after the last, returns the registers for the next start. Data,
/// heap and whatever vm has mapped for it since stay as they are. `None`: its binary is not there.
pub fn renew(hardware: &mut Hardware, number: usize, mut page: u64) -> Option<Renewal> {
    let file = hardware.boot_files[(number == slot::RS) as usize];
    let program = Program::parse(file, file.len() as u64).ok()?;
    for segment in program.segments().iter().filter(|segment| !segment.write) {
        let pages = (segment.page_end() - segment.start()) / PAGE_BYTES;
        if page < pages {
            refresh(hardware, Space(number as u16), segment, page, content(file, segment))?;
            return Some(Renewal::Step);
        }
        page -= pages;
    }
    Some(Renewal::Done(Frame { rdi: start_kind::RESTARTED, ..first_frame(program.entry) }))
}

/// What a segment of a checked program starts with; the rest is zero.
fn content<'a>(file: &'a [u8], segment: &Segment) -> &'a [u8] {
    &file[segment.file.offset as usize..][..segment.file.bytes as usize]
}

/// Writes the content of a page of a segment where it is mapped.
fn refresh(hardware: &mut Hardware, space: Space, segment: &Segment, page: u64, content: &[u8]) -> Option<()> {
    let start = segment.address.max(segment.start() + page * PAGE_BYTES);
    let end = (segment.start() + (page + 1) * PAGE_BYTES).min(segment.address + content.len() as u64);
    let from = (start - segment.address) as usize;
    let bytes = content.get(from..from + end.saturating_sub(start) as usize).unwrap_or_default();
    copying::fill(hardware.translate(space, start).ok()?, bytes);
    Some(())
}

/// Makes the space of a service and returns the registers it starts with.
fn build(hardware: &mut Hardware, number: usize, name: &str, file: &[u8]) -> Frame {
    let space = Space(number as u16);
    hardware.spaces.create(&mut hardware.frames, space).unwrap_or_else(|error| panic!("{name}: {error}"));
    let program = match Program::parse(file, file.len() as u64) {
        Ok(program) if program.is_service() => program,
        Ok(_) => panic!("{name}: not linked as a service"),
        Err(error) => panic!("{name}: {error:?}"),
    };
    for segment in program.segments() {
        let rights = if segment.write { map::WRITE } else { 0 } | if segment.execute { map::EXECUTE } else { 0 };
        let pages = (segment.page_end() - segment.start()) / PAGE_BYTES;
        let frame = map_new(hardware, space, segment.start(), pages, rights);
        copying::fill(frame + segment.address % PAGE_BYTES, content(file, segment));
    }
    map_new(hardware, space, SERVICE_HEAP, BOOT_HEAP_BYTES / PAGE_BYTES, map::WRITE);
    map_new(hardware, space, SERVICE_STACK_END - SERVICE_STACK_BYTES, SERVICE_STACK_BYTES / PAGE_BYTES, map::WRITE);
    if number == slot::RS {
        let archive = hardware.boot.archive;
        map_frames(hardware, space, RS_ARCHIVE, archive.start, archive.bytes.div_ceil(PAGE_BYTES), 0);
    }
    Frame { r9: Endpoint::new(number, 1).0 as u64, ..first_frame(program.entry) }
}

/// The registers of a first start, but for the endpoint.
fn first_frame(entry: u64) -> Frame {
    Frame { rdi: start_kind::FRESH, r10: SERVICE_HEAP, r8: BOOT_HEAP_BYTES, ..Frame::start(entry, SERVICE_STACK_END) }
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
    mapped.result.unwrap_or_else(|error| panic!("the first services cannot be mapped: {error}"));
}
