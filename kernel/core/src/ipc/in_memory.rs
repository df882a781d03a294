//! Vector 33: the same primitives with the message in the caller's memory, as MINIX has it.
//!
//! `rax` number, `rdi` endpoint, `rsi` address of a `Message`. A message that arrives is kept in the thread and stored
//! when that is next dispatched, in its own name, so that a page which vm must map first delays no other thread.
//! Neighbours: `message` (does the rest), `dispatch` (takes up what was interrupted).

use crate::{
    Machine, Node, ipc::message, ipc::notify, ipc::report, machine::check_range, memory::copy, stop::Stop,
    thread::MessageSource, thread::attention,
};

use abi::{Endpoint, Errno, Message, call};
use zerocopy::IntoBytes;

/// See `Kernel::vector33`.
pub fn memory_primitive<M: Machine>(node: &mut Node, m: &mut M) {
    let caller = node.current();
    let frame = &node.threads[caller].frame;
    let (number, peer, address) = (frame.rax, Endpoint(frame.rdi as u32), frame.rsi);
    let result = match number {
        call::SEND | call::SENDREC | call::SENDNB => send_in_memory(node, m, number, peer, address),
        call::RECEIVE => receive_to_memory(node, m, peer, address),
        call::NOTIFY => notify::notify(node, m, caller, peer).map_err(Stop::from),
        _ => Err(Errno::EBADCALL.into()),
    };
    if let Err(stop) = result {
        report::finish(node, m, caller, attention::AGAIN33, Err(stop));
    }
}

fn send_in_memory<M: Machine>(node: &mut Node, m: &mut M, number: u64, to: Endpoint, address: u64) -> Result<(), Stop> {
    let caller = node.current();
    let message: Message = copy::read_value(node, m, address)?;
    let thread = &mut node.threads[caller];
    thread.form = MessageSource::Memory;
    thread.outgoing = message;
    Ok(message::carry_out(node, m, number, to, message.label)?)
}

fn receive_to_memory<M: Machine>(node: &mut Node, m: &mut M, from: Endpoint, address: u64) -> Result<(), Stop> {
    check_range(address, size_of::<Message>() as u64)?;
    let caller = node.current();
    node.threads[caller].form = MessageSource::Memory;
    message::receive(node, m, caller, from);
    Ok(())
}

/// Stores the message that has arrived for the current thread in its memory.
pub fn store_arrived<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let thread = &node.threads[slot];
    let address = thread.frame.rsi;
    let message = thread.arrived;
    match copy::write_own(node, m, address, message.as_bytes()) {
        Ok(()) => {}
        Err(Stop::Fault(owner, fault)) => {
            node.threads[slot].attention |= attention::STORE;
            report::report_copy_fault(node, m, slot, owner, fault);
        }
        Err(_) => report::fail_call(node, slot, Errno::EFAULT),
    }
}
