//! Copies between address spaces and physical memory: `VirCopy`, `PhysCopy` and their vectors, grants, frames, and the small structs of other calls.
//!
//! Long copies go in chunks with a preemption point after each; a page that is not there makes the caller wait for vm
//! and go on. Every chunk is checked anew against endpoints and grants, so that death or revocation in between is seen.
//! Neighbours: `grants` (finds the buffer), `call` (takes up what was interrupted), `report` (asks vm).

use crate::{
    Machine, Node, Space, machine::Copied, machine::Fault, machine::Memory, machine::Side, machine::check_range,
    memory::grants, memory::place::Place, rights::allows_memory, stop::Stop, stop::preemption_point,
};

use abi::{
    Endpoint, Errno, call::CopyRequest, call::KernelCall, call::MAX_VECTOR, grant::READ, grant::WRITE,
    layout::MAX_COPY, layout::MAX_DIAG, layout::PAGE_BYTES, privilege::COPY_APPLICATIONS_ONLY,
};
use zerocopy::{FromBytes, IntoBytes};

/// Most bytes copied between two preemption points; in real-time mode a sixteenth of it.
pub const CHUNK_BYTES: u64 = 64 * 1024;

/// Bytes printed between two preemption points: the serial line takes some 20 ticks for each.
const PRINTED_AT_ONCE: u64 = 64;

/// `Thread::progress` in a copying call: records of a vector that are done, above the bytes done of the next one.
const RECORD_SHIFT: u32 = 32;
const DONE_BYTES: u64 = (1 << RECORD_SHIFT) - 1;
const _: () = assert!(MAX_COPY <= DONE_BYTES);

/// Bytes of a record of a vector.
const RECORD_BYTES: u64 = size_of::<CopyRequest>() as u64;

/// The space of a thread; `EFAULT` when it has none.
pub fn space_of(node: &Node, slot: usize) -> Result<Space, Errno> {
    node.threads[slot].space().ok_or(Errno::EFAULT)
}

/// Reads the memory of the current thread.
pub fn read_own<M: Machine>(node: &mut Node, m: &mut M, address: u64, out: &mut [u8]) -> Result<(), Stop> {
    check_range(address, out.len() as u64)?;
    let space = space_of(node, node.caller())?;
    m.read(space, address, out).map_err(|fault| Stop::Fault(node.caller(), fault))
}

/// Reads a structure of `abi` from the memory of the current thread.
pub fn read_value<T: FromBytes + IntoBytes, M: Machine>(node: &mut Node, m: &mut M, address: u64) -> Result<T, Stop> {
    let mut value = T::new_zeroed();
    read_own(node, m, address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes the memory of the current thread: all of it or nothing.
pub fn write_own<M: Machine>(node: &mut Node, m: &mut M, address: u64, bytes: &[u8]) -> Result<(), Stop> {
    check_range(address, bytes.len() as u64)?;
    let space = space_of(node, node.caller())?;
    m.write(space, address, bytes).map_err(|fault| Stop::Fault(node.caller(), fault))
}

/// `VirCopy`.
pub fn copy_between<M: Machine>(node: &mut Node, m: &mut M, request: &CopyRequest) -> Result<u64, Stop> {
    let (from, to) = named(node, node.caller(), request)?;
    copy(node, m, from, to, request.bytes)
}

/// The places that a `VirCopy` by `caller` names. `EPERM`: against the caller's flags.
#[inline(always)]
fn named(node: &Node, caller: usize, request: &CopyRequest) -> Result<(Place, Place), Errno> {
    let find = |endpoint: Endpoint| if endpoint == Endpoint::SELF { Ok(caller) } else { node.threads.find(endpoint) };
    let (from, to) = (find(request.from)?, find(request.to)?);
    let restricted = node.privileges(caller).flags & COPY_APPLICATIONS_ONLY != 0;
    let foreign = |slot: usize| slot != caller && node.threads[slot].endpoint.is_service();
    let places =
        (Place { owner: from, address: request.from_address }, Place { owner: to, address: request.to_address });
    if restricted && (foreign(from) || foreign(to)) { Err(Errno::EPERM) } else { Ok(places) }
}

/// The fast path of `VirCopy`, `SafeCopyFrom` and `SafeCopyTo` by the current thread: few bytes between pages that are mapped, as the arguments
/// and results of Linux calls mostly are. Returns false when nothing has been done: then the call takes its general way, with the same
/// rights, which asks vm for pages or says what is wrong.
#[inline(always)]
pub fn copy_at_once<M: Machine>(node: &mut Node, m: &mut M, call: KernelCall) -> bool {
    let (caller, by_grant) = (node.current(), call != KernelCall::VirCopy);
    let (words, rights) = (node.threads[caller].frame.words(), node.privileges(caller).kernel_calls);
    // Longer copies by grant are a file system's blocks, into buffers that lie anyhow: most would be looked up in vain.
    if by_grant && words[4] > PAGE_BYTES / 8 || rights & call.bit() == 0 || node.threads.is_observed() {
        return false;
    }
    let sides = if by_grant { granted(node, m, call, words).ok() } else { named(node, caller, &request(words)).ok() };
    let Some((from, to)) = sides else { return false };
    let (Ok(from_space), Ok(to_space)) = (space_of(node, from.owner), space_of(node, to.owner)) else { return false };
    let done = m.copy_within_pages((from_space, from.address), (to_space, to.address), words[4]);
    if done {
        node.threads[caller].frame.rax = words[4];
    }
    done
}

/// Copies, from where an interrupted copy left off. → bytes.
fn copy<M: Machine>(node: &mut Node, m: &mut M, from: Place, to: Place, bytes: u64) -> Result<u64, Stop> {
    check_length(bytes)?;
    check_range(from.address, bytes)?;
    check_range(to.address, bytes)?;
    let (from_space, to_space) = (space_of(node, from.owner)?, space_of(node, to.owner)?);
    in_chunks(node, m, bytes, (from.owner, to.owner), |m, done, chunk| {
        Ok(m.copy(from_space, from.address + done, to_space, to.address + done, chunk))
    })
}

/// `PhysCopy`: `VirCopy` with `NONE` for physical memory.
pub fn copy_physical<M: Machine>(node: &mut Node, m: &mut M, request: &CopyRequest) -> Result<u64, Stop> {
    let CopyRequest { from, to, from_address, to_address, bytes } = *request;
    check_length(bytes)?;
    let (from_owner, from) = memory_of(node, from, from_address, bytes)?;
    let (to_owner, to) = memory_of(node, to, to_address, bytes)?;
    in_chunks(node, m, bytes, (from_owner, to_owner), |m, done, chunk| {
        m.copy_memory(from.after(done), to.after(done), chunk)
    })
}

/// One side of `PhysCopy`, and its owner. `ECALLDENIED`: physical memory outside the caller's ranges, or another's memory without the
/// right to `VirCopy` or against the caller's flags.
fn memory_of(node: &Node, endpoint: Endpoint, address: u64, bytes: u64) -> Result<(usize, Memory), Errno> {
    let caller = node.caller();
    let privileges = node.privileges(caller);
    if endpoint == Endpoint::NONE {
        let allowed = allows_memory(privileges, address, bytes);
        return if allowed { Ok((caller, Memory::Physical(address))) } else { Err(Errno::ECALLDENIED) };
    }
    check_range(address, bytes)?;
    let owner = node.find_or_self(endpoint)?;
    let may_copy = privileges.kernel_calls & KernelCall::VirCopy.bit() != 0
        && (privileges.flags & COPY_APPLICATIONS_ONLY == 0 || !node.threads[owner].endpoint.is_service());
    if owner != caller && !may_copy {
        return Err(Errno::ECALLDENIED);
    }
    Ok((owner, Memory::Space(space_of(node, owner)?, address)))
}

/// Records that a vector with this progress has done.
pub fn records_done(progress: u64) -> u64 {
    progress >> RECORD_SHIFT
}

/// `VirVCopy` and `PhysVCopy` `(address of records, count)`: each record by `copy_one`. → records done.
pub fn copy_vector<M: Machine>(
    node: &mut Node,
    m: &mut M,
    (address, count): (u64, u64),
    copy_one: fn(&mut Node, &mut M, &CopyRequest) -> Result<u64, Stop>,
) -> Result<u64, Stop> {
    if count > MAX_VECTOR {
        return Err(Errno::EINVAL.into());
    }
    check_range(address, count * RECORD_BYTES)?;
    let caller = node.caller();
    loop {
        let done = records_done(node.threads[caller].progress);
        if done >= count {
            return Ok(count);
        }
        let request = read_value(node, m, address + done * RECORD_BYTES)?;
        match copy_one(node, m, &request) {
            Ok(_) => node.threads[caller].progress = (done + 1) << RECORD_SHIFT,
            Err(Stop::Error(_)) if done > 0 => return Ok(done),
            Err(stop) => return Err(stop),
        }
        preemption_point(m)?;
    }
}

/// Does a long copy in chunks, keeping the caller's progress. `owners`: the threads whose memory is read and written.
fn in_chunks<M: Machine>(
    node: &mut Node,
    m: &mut M,
    bytes: u64,
    owners: (usize, usize),
    mut copy_chunk: impl FnMut(&mut M, u64, u64) -> Result<Copied, Errno>,
) -> Result<u64, Stop> {
    let caller = node.caller();
    let progress = node.threads[caller].progress;
    let (mut done, records) = (progress & DONE_BYTES, progress & !DONE_BYTES);
    while done < bytes {
        let copied = copy_chunk(m, done, node.chunk_bytes.min(bytes - done))?;
        done += copied.bytes;
        node.threads[caller].progress = records | done;
        match copied.fault {
            Some((Side::From, fault)) => return Err(Stop::Fault(owners.0, fault)),
            Some((Side::To, fault)) => return Err(Stop::Fault(owners.1, fault)),
            None if done < bytes && m.interrupt_pending() => return Err(Stop::Preempted),
            None => {}
        }
    }
    Ok(bytes)
}

/// `SafeCopyFrom`, `SafeCopyTo` `(granter, grant, offset, own address, bytes)`.
pub fn copy_by_grant<M: Machine>(node: &mut Node, m: &mut M, call: KernelCall, words: [u64; 7]) -> Result<u64, Stop> {
    let (from, to) = granted(node, m, call, words)?;
    copy(node, m, from, to, words[4])
}

/// The places that such a call is about.
#[inline(always)]
fn granted<M: Machine>(node: &mut Node, m: &mut M, call: KernelCall, words: [u64; 7]) -> Result<(Place, Place), Stop> {
    let [granter, grant, offset, address, bytes, ..] = words;
    let own = Place { owner: node.caller(), address };
    let mut granted = |right| grants::granted(node, m, granter, grant, offset, bytes, right);
    if call == KernelCall::SafeCopyFrom { Ok((granted(READ)?, own)) } else { Ok((own, granted(WRITE)?)) }
}

/// `FrameFill (frame, offset in frame, granter, grant, offset in grant, bytes)`.
pub fn fill_frames<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 6]) -> Result<u64, Stop> {
    let [frame, frame_offset, granter, grant, offset, bytes] = words;
    check_length(bytes)?;
    let physical = frame.checked_add(frame_offset).filter(|start| start.checked_add(bytes).is_some());
    let physical = physical.ok_or(Errno::EINVAL)?;
    let from = grants::granted(node, m, granter, grant, offset, bytes, READ)?;
    let space = space_of(node, from.owner)?;
    in_chunks(node, m, bytes, (from.owner, from.owner), |m, done, chunk| {
        m.copy_memory(Memory::Space(space, from.address + done), Memory::Physical(physical + done), chunk)
    })
}

/// `FrameCopy (to, from)`.
pub fn copy_frame<M: Machine>(m: &mut M, to: u64, from: u64) -> Result<u64, Errno> {
    if !(to | from).is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    m.copy_frame(to, from).map(|()| 0)
}

/// `Umap (address)`. The page must be there.
pub fn translate<M: Machine>(node: &mut Node, m: &mut M, address: u64) -> Result<u64, Stop> {
    check_range(address, 1)?;
    let space = space_of(node, node.caller())?;
    m.translate(space, address).map_err(|fault: Fault| Stop::Fault(node.caller(), fault))
}

/// `Diag (address, bytes)`.
pub fn print<M: Machine>(node: &mut Node, m: &mut M, address: u64, bytes: u64) -> Result<u64, Stop> {
    if bytes > MAX_DIAG {
        return Err(Errno::EINVAL.into());
    }
    check_range(address, bytes)?;
    let caller = node.caller();
    loop {
        let done = node.threads[caller].progress;
        let mut buffer = [0; PRINTED_AT_ONCE as usize];
        let text = &mut buffer[..PRINTED_AT_ONCE.min(bytes - done) as usize];
        read_own(node, m, address + done, text)?;
        m.console(text);
        node.threads[caller].progress = done + text.len() as u64;
        if node.threads[caller].progress == bytes {
            return Ok(bytes);
        }
        preemption_point(m)?;
    }
}

/// The arguments of `VirCopy` and `PhysCopy` as a record.
pub fn request([from, from_address, to, to_address, bytes, ..]: [u64; 7]) -> CopyRequest {
    CopyRequest { from: Endpoint(from as u32), to: Endpoint(to as u32), from_address, to_address, bytes }
}

fn check_length(bytes: u64) -> Result<(), Errno> {
    if bytes <= MAX_COPY { Ok(()) } else { Err(Errno::EINVAL) }
}
