//! Exec: a new space from the image of a program, and of its interpreter if it has one.
//!
//! Segments are private regions of the image, so that nothing is read or copied before it is touched. Where a segment's file
//! part ends within a page and zeros follow, the page is made once for each image (`object::Loaded`) and shared by
//! all processes that execute it, copied when written.

use crate::memory::frames::{Frame, Payer};
use crate::memory::kernel::Kernel;
use crate::memory::object::{Content, Loaded, ObjectId};
use crate::memory::{Floor, Memory};
use crate::operations::placement::Placement;
use crate::space::AddressSpace;
use crate::space::region::{Backing, MMAP_TOP, Region, Regions, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_START},
};
use alloc::boxed::Box;
use elf::{Kind, MAX_SEGMENTS, Program, Segment};

/// What pm must know to start a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Where to jump to.
    pub start: u64,
    /// Entry point of the program itself.
    pub entry: u64,
    /// Its program headers in memory.
    pub headers: u64,
    /// Their number.
    pub header_count: u64,
    /// Where the interpreter is, 0 without.
    pub interpreter_base: u64,
    /// End of the stack.
    pub stack_end: u64,
}

/// Makes the space of a program. `ENOEXEC`: no program, or none that fits into memory; `EINVAL`: no such image; `ENOMEM`.
pub fn exec<K: Kernel>(
    memory: &mut Memory<K>,
    image: ObjectId,
    interpreter: Option<ObjectId>,
    stack_bytes: u64,
    seed: u64,
    payer: Payer,
) -> Result<(AddressSpace, Started), Errno> {
    load(memory, image)?;
    interpreter.map_or(Ok(()), |interpreter| load(memory, interpreter))?;
    let mut space = AddressSpace::new(memory)?.for_payer(payer);
    match build(&mut space, memory, image, interpreter, stack_bytes, &Placement::of(seed)) {
        Ok(started) => Ok((space, started)),
        Err(error) => {
            space.destroy(memory)?;
            Err(error)
        }
    }
}

fn build<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    image: ObjectId,
    interpreter: Option<ObjectId>,
    stack_bytes: u64,
    placement: &Placement,
) -> Result<Started, Errno> {
    let program = loaded(memory, image)?.program;
    let base = if program.kind == Kind::Relocatable { placement.base } else { 0 };
    space.regions = Regions::below(placement.mmap_top);
    map_program(space, memory, image, base)?;
    space.heap_start = base + program.end() + placement.heap_gap;
    space.heap_end = space.heap_start;
    let stack_rights = Rights::READ_WRITE.with(Rights::EXECUTE, program.stack_execute);
    space.add_stack(memory, placement.stack_end, stack_bytes, stack_rights)?;
    space.add_vdso(memory, placement.stack_end)?;
    let entry = base + program.entry;
    let mut started = Started {
        start: entry,
        entry,
        headers: if program.headers == 0 { 0 } else { base + program.headers },
        header_count: u64::from(program.header_count),
        interpreter_base: 0,
        stack_end: placement.stack_end,
    };
    if let Some(interpreter) = interpreter {
        let program = loaded(memory, interpreter)?.program;
        let base = interpreter_base(space, &program)?;
        map_program(space, memory, interpreter, base)?;
        started.interpreter_base = base;
        started.start = base + program.entry;
    }
    Ok(started)
}

/// Position-independent interpreters go where mmap would put them.
fn interpreter_base(space: &mut AddressSpace, program: &Program) -> Result<u64, Errno> {
    match program.kind {
        Kind::Fixed => Ok(0),
        Kind::Relocatable => space.free_range(program.end(), space.regions.top()).map_err(|_| Errno::ENOEXEC),
    }
}

fn map_program<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    image: ObjectId,
    base: u64,
) -> Result<(), Errno> {
    let Loaded { program, tails } = *loaded(memory, image)?;
    let (start, end) = (base + program.start(), base + program.end());
    if start < USER_START || end > MMAP_TOP || !space.regions.is_free(start, end) {
        return Err(Errno::ENOEXEC);
    }
    for (segment, tail) in program.segments().iter().zip(tails) {
        map_segment(space, memory, image, base, segment, tail);
    }
    Ok(())
}

fn map_segment<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    image: ObjectId,
    base: u64,
    segment: &Segment,
    tail: Option<Frame>,
) {
    let rights = Rights::READ.with(Rights::WRITE, segment.write).with(Rights::EXECUTE, segment.execute);
    let start = base + segment.start();
    let file_end = if segment.file.bytes == 0 { start } else { base + segment.file_end().next_multiple_of(PAGE_BYTES) };
    let end = base + segment.page_end();
    if file_end > start {
        let backing = Backing::Object(image, segment.file.offset / PAGE_BYTES);
        space.add(memory, Region { backing, ..Region::anonymous(start, file_end, rights) });
    }
    if end > file_end {
        space.add(memory, Region::anonymous(file_end, end, rights));
    }
    if let Some(frame) = tail {
        memory.frames.share(frame);
        space.pages.own((base + segment.file_end()) / PAGE_BYTES, frame, &mut memory.frames);
    }
}

fn loaded<K>(memory: &Memory<K>, image: ObjectId) -> Result<Box<Loaded>, Errno> {
    memory.objects.get(image).and_then(|object| object.loaded.clone()).ok_or(Errno::EINVAL)
}

/// Reads the headers of an image and makes its tails, once.
fn load<K: Kernel>(memory: &mut Memory<K>, image: ObjectId) -> Result<(), Errno> {
    let object = memory.objects.get(image).ok_or(Errno::EINVAL)?;
    let Content::File { bytes, .. } = object.content else { return Err(Errno::EINVAL) };
    if object.loaded.is_some() {
        return Ok(());
    }
    let first = object.pages.frame(0).ok_or(Errno::ENOEXEC)?;
    let mut head = [0; PAGE_BYTES as usize];
    memory.kernel.read_frame(first, &mut head)?;
    let head = &head[..bytes.min(PAGE_BYTES) as usize];
    let program = Program::parse(head, bytes).map_err(|_| Errno::ENOEXEC)?;
    let mut loaded = Box::new(Loaded { program, tails: [None; MAX_SEGMENTS] });
    let made = make_tails(memory, image, &mut loaded);
    match memory.objects.get_mut(image) {
        Some(object) if made.is_ok() => object.loaded = Some(loaded),
        _ => loaded.tails.into_iter().flatten().for_each(|frame| memory.frames.release(frame)),
    }
    made
}

fn make_tails<K: Kernel>(memory: &mut Memory<K>, image: ObjectId, loaded: &mut Loaded) -> Result<(), Errno> {
    for (segment, tail) in loaded.program.segments().iter().zip(&mut loaded.tails) {
        let cut = segment.file_end() % PAGE_BYTES;
        if cut == 0 || segment.file.bytes == 0 || segment.memory_bytes == segment.file.bytes {
            continue;
        }
        let page = (segment.file.offset + segment.file.bytes) / PAGE_BYTES;
        let object = memory.objects.get(image).ok_or(Errno::EINVAL)?;
        let frame = object.pages.frame(page).ok_or(Errno::ENOEXEC)?;
        *tail = Some(memory.take_cut_copy(frame, cut as usize, Floor::PROGRAM)?);
    }
    Ok(())
}
