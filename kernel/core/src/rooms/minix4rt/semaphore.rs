//! The semaphore calls of real-time processes, and what the system calls need to know about semaphores.

use crate::{
    Machine, Node, inheritance::Flags, inheritance::Semaphore, inheritance::semaphore::Down, rooms::Kernel,
    rooms::minix4rt, rooms::minix4rt::DONE, rooms::minix4rt::Outcome, rooms::minix4rt::control::Words,
    rooms::minix4rt::decide, rooms::minix4rt::error, rooms::minix4rt::process::Waiting,
};

use abi::{Errno, rt, rt::NOWAIT, rt::SEMAPHORES};

/// `SEMDOWN`.
#[inline(always)]
pub fn semaphore_down<M: Machine>(kernel: &mut Kernel, m: &mut M, id: u64, timeout: i64) -> Outcome {
    let caller = kernel.node.current() as u16;
    let id = id.min(SEMAPHORES as u64) as u16;
    match decide(kernel, |rt, effects| rt.down(caller, id, timeout != NOWAIT, effects))? {
        Down::Done => DONE,
        Down::Waits => minix4rt::wait_real_time(kernel, m, Waiting::Semaphore, timeout),
    }
}

/// `SEMUP`.
#[inline(always)]
pub fn semaphore_up(kernel: &mut Kernel, id: u64) -> Outcome {
    let caller = kernel.node.current() as u16;
    let id = id.min(SEMAPHORES as u64) as u16;
    decide(kernel, |rt, effects| rt.up(caller, id, effects))?;
    DONE
}

/// `SEMALLOC`: the semaphore belongs to the thread in this slot. While inheritance is off in the whole system, none has it.
pub fn allocate_semaphore(kernel: &mut Kernel, creator: usize, words: &Words) -> Result<u64, Errno> {
    let [value, flags, priority, low, high, ..] = *words;
    if find_semaphore(kernel, [low, high]).is_ok() {
        return Err(error(rt::error::E_MRT_BADNAME));
    }
    let wanted = decode(flags);
    let ceiling = priority.clamp(1, rt::PRIORITIES) as u8;
    let flags = Flags { inherits: wanted.inherits && kernel.mrt.inherits(), ..wanted };
    let pool = 0..SEMAPHORES as u16;
    let id = kernel.node.inheritance.allocate(pool, creator as u16, value as i32, flags, ceiling);
    let id = id.map_err(|refusal| match refusal {
        crate::inheritance::Refusal::NoSemaphore => error(rt::error::E_MRT_NOSEM),
        refusal => refusal.into(),
    })?;
    kernel.mrt.names[id as usize] = [low, high];
    Ok(id as u64)
}

/// `GETSEMID`. `BADSEM`: no semaphore has that name.
pub fn find_semaphore(kernel: &Kernel, name: [u64; 2]) -> Result<u64, Errno> {
    let mut ids = 0..SEMAPHORES;
    let found = ids.find(|&id| kernel.mrt.names[id] == name && kernel.node.inheritance.semaphore(id as u16).is_some());
    found.filter(|_| name != [0; 2]).map(|id| id as u64).ok_or(error(rt::error::E_MRT_BADSEM))
}

/// The semaphore of a system call. `BADSEM`: there is no such id; `FREESEM`: it is free.
pub fn allocated_semaphore(node: &Node, id: u64) -> Result<&Semaphore, Errno> {
    if id >= SEMAPHORES as u64 {
        return Err(error(rt::error::E_MRT_BADSEM));
    }
    node.inheritance.semaphore(id as u16).ok_or(error(rt::error::E_MRT_FREESEM))
}

/// `GETSEMATTR`.
pub fn semaphore_attributes(kernel: &Kernel, id: u64) -> Result<Words, Errno> {
    let semaphore = allocated_semaphore(&kernel.node, id)?;
    let [low, high] = kernel.mrt.names[id as usize];
    let Semaphore { value, flags, ceiling, .. } = *semaphore;
    Ok([value as u64, encode(flags), ceiling as u64, low, high, 0, 0, 0])
}

/// `GETSEMINT`.
pub fn semaphore_internals(node: &Node, id: u64) -> Result<Words, Errno> {
    if id >= SEMAPHORES as u64 {
        return Err(error(rt::error::E_MRT_BADSEM));
    }
    let known = |semaphore: &Semaphore| [semaphore.creator as u64, semaphore.value.min(0).unsigned_abs() as u64];
    let [creator, waiters] = node.inheritance.semaphore(id as u16).map_or([u64::MAX, 0], known);
    Ok([id, creator, waiters, 0, 0, 0, 0, 0])
}

/// The flags of `abi::rt::flag` are bits in this order.
fn decode(flags: u64) -> Flags {
    let [by_priority, inherits, mutex, ceiling] = [0, 1, 2, 3].map(|bit| flags >> bit & 1 != 0);
    Flags { by_priority, mutex, inherits, ceiling }
}

fn encode(flags: Flags) -> u64 {
    let Flags { by_priority, mutex, inherits, ceiling } = flags;
    by_priority as u64 | (inherits as u64) << 1 | (mutex as u64) << 2 | (ceiling as u64) << 3
}
