//! Spawn: the space of a service, from the ELF file in a grant of rs.
//!
//! A service's image is copied, not shared, and there from the start: no service waits for a file. Stack, heap and zeroed
//! data are filled on demand, which vm can do without anybody's help. W^X holds for services without exception.

use crate::memory::kernel::{Kernel, Source};
use crate::memory::object::ObjectId;
use crate::memory::{Floor, Memory};
use crate::space::AddressSpace;
use crate::space::region::{Backing, Region, Rights};
use abi::{
    Errno,
    layout::{
        MAX_COPY, PAGE_BYTES, SERVICE_CLOCKS, SERVICE_DEVICES, SERVICE_HEAP, SERVICE_KEEP, SERVICE_STACK_BYTES,
        SERVICE_STACK_END, map,
    },
};
use elf::{HEAD_BYTES, Program, Segment};

/// Longest argument text of a service.
const MAX_ARGUMENT_BYTES: u64 = 64 << 10;

/// What a service is made of.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Where the ELF file is.
    pub image: Source,
    /// Its length; the argument text lies behind it.
    pub image_bytes: u64,
    /// Length of the text.
    pub argument_bytes: u64,
    /// Size of the heap.
    pub heap_bytes: u64,
    /// Preserved memory and its size.
    pub keep: Option<(ObjectId, u64)>,
}

/// What rs must know to start a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// Entry point.
    pub entry: u64,
    /// Address of the argument text.
    pub arguments: u64,
    /// End of the stack, below the text.
    pub stack_end: u64,
}

/// Makes the space of a service. `ENOEXEC`: no static program for a service; `E2BIG`: too long an argument text; `EINVAL`: heap or
/// preserved memory too large; `ENOMEM`.
pub fn spawn<K: Kernel>(memory: &mut Memory<K>, recipe: &Recipe) -> Result<(AddressSpace, Spawned), Errno> {
    let program = read_program(memory, recipe)?;
    recipe.check()?;
    let mut space = AddressSpace { is_service: true, ..AddressSpace::new(memory)? };
    match build(&mut space, memory, recipe, &program) {
        Ok(spawned) => Ok((space, spawned)),
        Err(error) => {
            space.destroy(memory)?;
            Err(error)
        }
    }
}

/// Prepares the space of a dead service for its successor: writes text, constants and arguments again, and empties the stack. `ENOEXEC`: another image.
pub fn renew<K: Kernel>(space: &mut AddressSpace, memory: &mut Memory<K>, recipe: &Recipe) -> Result<Spawned, Errno> {
    let program = read_program(memory, recipe)?;
    recipe.check()?;
    for segment in program.segments().iter().filter(|segment| !segment.write) {
        refresh(space, memory, recipe, segment)?;
    }
    let stack = SERVICE_STACK_END - SERVICE_STACK_BYTES;
    space.empty(memory, stack, SERVICE_STACK_END)?;
    let arguments = place_arguments(space, memory, recipe)?;
    Ok(Spawned { entry: program.entry, arguments, stack_end: arguments })
}

/// Writes the content of a segment into the pages that it has.
fn refresh<K: Kernel>(
    space: &AddressSpace,
    memory: &mut Memory<K>,
    recipe: &Recipe,
    segment: &Segment,
) -> Result<(), Errno> {
    let (start, end) = (segment.address, segment.address + segment.file.bytes);
    let mut at = start;
    while at < end {
        let part = (PAGE_BYTES - at % PAGE_BYTES).min(end - at);
        let frame = space.pages.frame(at / PAGE_BYTES).ok_or(Errno::ENOEXEC)?;
        let source = recipe.image.plus(segment.file.offset + at - start);
        memory.kernel.fill(frame, at % PAGE_BYTES, source, part)?;
        at += part;
    }
    Ok(())
}

/// Puts the argument text at the end of the stack, which is empty. Returns its address.
fn place_arguments<K: Kernel>(space: &mut AddressSpace, memory: &mut Memory<K>, recipe: &Recipe) -> Result<u64, Errno> {
    let arguments = (SERVICE_STACK_END - recipe.argument_bytes) & !0xf;
    let text = recipe.image.plus(recipe.image_bytes);
    place(space, memory, arguments, text, recipe.argument_bytes, map::WRITE)?;
    Ok(arguments)
}

impl Recipe {
    fn check(&self) -> Result<(), Errno> {
        let keep_bytes = self.keep.map_or(0, |(_, bytes)| bytes);
        if self.argument_bytes > MAX_ARGUMENT_BYTES {
            return Err(Errno::E2BIG);
        }
        let fits = self.heap_bytes <= SERVICE_KEEP - SERVICE_HEAP && keep_bytes <= SERVICE_DEVICES - SERVICE_KEEP;
        if fits { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

fn read_program<K: Kernel>(memory: &mut Memory<K>, recipe: &Recipe) -> Result<Program, Errno> {
    let mut head = [0; HEAD_BYTES];
    let head = &mut head[..recipe.image_bytes.min(HEAD_BYTES as u64) as usize];
    memory.kernel.read_grant(recipe.image, head)?;
    let program = Program::parse(head, recipe.image_bytes).map_err(|_| Errno::ENOEXEC)?;
    if program.is_service() { Ok(program) } else { Err(Errno::ENOEXEC) }
}

fn build<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    recipe: &Recipe,
    program: &Program,
) -> Result<Spawned, Errno> {
    for segment in program.segments() {
        add_segment(space, memory, recipe, segment)?;
    }
    let whole = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES);
    if recipe.heap_bytes > 0 {
        let end = SERVICE_HEAP + whole(recipe.heap_bytes);
        space.add(memory, Region::anonymous(SERVICE_HEAP, end, Rights::READ_WRITE));
    }
    if let Some((object, bytes)) = recipe.keep {
        let region = Region::anonymous(SERVICE_KEEP, SERVICE_KEEP + whole(bytes), Rights::READ_WRITE);
        space.add(memory, Region { shared: true, backing: Backing::Object(object, 0), ..region });
    }
    let stack = SERVICE_STACK_END - SERVICE_STACK_BYTES;
    space.add(memory, Region::anonymous(stack, SERVICE_STACK_END, Rights::READ_WRITE));
    space.add_clocks(memory, SERVICE_CLOCKS)?;
    let arguments = place_arguments(space, memory, recipe)?;
    Ok(Spawned { entry: program.entry, arguments, stack_end: arguments })
}

fn add_segment<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    recipe: &Recipe,
    segment: &Segment,
) -> Result<(), Errno> {
    let rights = Rights::READ.with(Rights::WRITE, segment.write).with(Rights::EXECUTE, segment.execute);
    let flags = if segment.execute { map::EXECUTE } else { map::WRITE * u64::from(segment.write) };
    space.add(memory, Region::anonymous(segment.start(), segment.page_end(), rights));
    place(space, memory, segment.address, recipe.image.plus(segment.file.offset), segment.file.bytes, flags)
}

/// Fills the pages around `address..address + bytes`, which are not there yet, from a grant, with zeros before and behind.
fn place<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    address: u64,
    source: Source,
    bytes: u64,
    flags: u64,
) -> Result<(), Errno> {
    let end = address + bytes;
    let mut at = address;
    while at < end {
        let offset = at % PAGE_BYTES;
        let wanted = (offset + end - at).min(MAX_COPY).div_ceil(PAGE_BYTES);
        let run = memory.take_some(wanted, Floor::SERVICE)?;
        let part = (run.frames * PAGE_BYTES - offset).min(end - at);
        memory.fill(run, offset, source.plus(at - address), part).inspect_err(|_| memory.release_run(run))?;
        space.own(memory, at / PAGE_BYTES, run, flags)?;
        at += part;
    }
    Ok(())
}
