//! Linux system calls: each number has a route to the service, or the part of the kernel, that implements it
//! (docs/book/ideas.md).
//!
//! The kernel sends the call in the program's name to the current holder of the slot; a call that meets a restart waits.
//! Programs have no other access to services. Neighbours: `ipc`, `futex`; rs fills the table.

use crate::{
    Machine, Node, futex, ipc::message, ipc::report, linux::time, thread::MessageSource, thread::attention,
    thread::state::Continuation,
};

use abi::{Endpoint, Errno, call::NATIVE, endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS, endpoint::slot, linux};

/// `Route`: removes.
const NO_ROUTE: u64 = u64::MAX;

/// `Route (number, slot)`. `EINVAL`: no such number or slot.
pub fn set_route(node: &mut Node, number: u64, slot: u64) -> Result<u64, Errno> {
    let entry = match slot {
        NO_ROUTE => 0,
        slot if slot == slot::SYSTEM as u64 => slot::SYSTEM as u8 + 1,
        slot if (FIRST_SERVICE as u64..SERVICE_SLOTS as u64).contains(&slot) => linux::route(number, slot) as u8 + 1,
        _ => return Err(Errno::EINVAL),
    };
    *node.routes.get_mut(number as usize).ok_or(Errno::EINVAL)? = entry;
    Ok(0)
}

/// `KeepAnswer (endpoint, number, answer)`.
pub fn keep_answer(node: &mut Node, slot: usize, number: u64, answer: u64) -> u64 {
    match linux::kept(number) {
        Some(kept) => node.threads[slot].kept[kept] = (answer as u32).wrapping_add(1),
        None => node.threads[slot].kept.fill(0),
    }
    0
}

/// The current thread made a Linux system call.
#[inline(always)]
pub fn linux_call<M: Machine>(node: &mut Node, m: &mut M, number: u64) {
    debug_assert!(number < NATIVE);
    let caller = node.current();
    node.threads[caller].linux_call = number as u32 + 1;
    let route = node.routes.get(number as usize).copied().unwrap_or(0) as usize;
    let result = match route.wrapping_sub(1) {
        service @ FIRST_SERVICE..SERVICE_SLOTS => send_linux_call(node, m, caller, service),
        // One of `linux::KEPT` whose answer pm has not left, or of `linux::FETCHED`, whose word is not at hand.
        kept @ SERVICE_SLOTS..=0xff => send_linux_call(node, m, caller, linux::service(kept)),
        slot::SYSTEM => {
            kernel_linux_call(node, m, number as u32);
            Ok(())
        }
        _ => Err(Errno::ENOSYS),
    };
    if let Err(error) = result {
        node.threads[caller].frame.set_result(Err(error));
    }
}

/// Programs may reach every routed service; a service only those in its bitmap.
#[inline(always)]
pub fn send_linux_call<M: Machine>(node: &mut Node, m: &mut M, caller: usize, service: usize) -> Result<(), Errno> {
    let to = Endpoint::current(service);
    let thread = &mut node.threads[caller];
    thread.form = MessageSource::Linux;
    if thread.endpoint.is_service() {
        node.may_send(caller, to.slot())?;
    }
    match message::transmit(node, m, caller, to, Continuation::Answer) {
        Err(Errno::EDEADSRCDST) => Err(Errno::EIO),
        Err(Errno::ELOCKED) => Err(Errno::EDEADLK),
        result => result,
    }
}

/// A Linux call that the kernel implements, by the current thread.
#[inline(never)]
pub fn kernel_linux_call<M: Machine>(node: &mut Node, m: &mut M, number: u32) {
    let caller = node.current();
    let [w0, w1, w2, w3, w4, w5, _] = node.threads[caller].frame.words();
    let result = match number {
        linux::nr::SCHED_YIELD => {
            node.threads[caller].frame.rax = 0;
            node.yield_current(m);
            return;
        }
        linux::nr::FUTEX => futex::futex(node, m, [w0, w1, w2, w3, w4, w5]),
        linux::nr::CLOCK_GETTIME => time::clock_gettime(node, m, w0, w1),
        linux::nr::CLOCK_NANOSLEEP => time::clock_nanosleep(node, m, [w0, w1, w2]),
        _ => Err(Errno::ENOSYS.into()),
    };
    report::finish(node, m, caller, attention::RESUME, result);
}
