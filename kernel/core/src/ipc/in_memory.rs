//! Vector 33: the same primitives with the message in the caller's memory, as MINIX has it.
//!
//! `rax` number, `rdi` endpoint, `rsi` address of a `Message`. A message from memory to memory that is mapped is stored at
//! once (ADR 153). Another one that arrives is kept in the thread and stored when that is next dispatched, in its own name,
//! so that a page which vm must map first delays no other thread.
//! Neighbours: `message` (does the rest), `dispatch` (takes up what was interrupted).

use crate::{
    Machine, Node, Space, ipc::message, ipc::notify, ipc::report, machine::check_range, memory::copy, stop::Stop,
    thread::MessageSource, thread::attention,
};

use abi::{Endpoint, Errno, Message, call};
use zerocopy::IntoBytes;

/// See `Kernel::vector33`.
#[inline(always)]
pub fn memory_primitive<M: Machine>(node: &mut Node, m: &mut M) {
    let caller = node.current();
    let frame = &node.threads[caller].frame;
    let (number, peer) = (frame.rax, Endpoint(frame.rdi as u32));
    let result = match number {
        call::SEND | call::SENDREC | call::SENDNB | call::RECEIVE => with_message(node, m, number, peer),
        call::NOTIFY => notify::notify(node, m, caller, peer).map_err(Stop::from),
        _ => Err(Errno::EBADCALL.into()),
    };
    if let Err(stop) = result {
        report::finish(node, m, caller, attention::AGAIN33, Err(stop));
    }
}

/// A primitive with a message.
#[inline(always)]
fn with_message<M: Machine>(node: &mut Node, m: &mut M, number: u64, peer: Endpoint) -> Result<(), Stop> {
    let caller = node.current();
    if number == call::RECEIVE {
        place(node, caller)?;
        node.threads[caller].form = MessageSource::Memory;
    } else {
        load(node, m, caller)?;
    }
    let label = node.threads[caller].outgoing.label;
    Ok(message::carry_out(node, m, number, peer, label)?)
}

/// Where the message of a thread is.
#[inline(always)]
fn place(node: &Node, slot: usize) -> Result<(Space, u64), Errno> {
    let address = node.threads[slot].frame.rsi;
    check_range(address, size_of::<Message>() as u64)?;
    Ok((copy::space_of(node, slot)?, address))
}

/// Reads the message that the thread in `slot` sends.
#[inline(always)]
pub fn load<M: Machine>(node: &mut Node, m: &mut M, slot: usize) -> Result<(), Stop> {
    let (space, address) = place(node, slot)?;
    let thread = &mut node.threads[slot];
    m.read(space, address, thread.outgoing.as_mut_bytes()).map_err(|fault| Stop::Fault(slot, fault))?;
    (thread.form, thread.outgoing.source) = (MessageSource::Memory, thread.endpoint);
    Ok(())
}

/// Stores a message that the thread in `slot` receives, if its memory is mapped.
#[inline(always)]
pub fn store<M: Machine>(node: &Node, m: &mut M, slot: usize, message: &Message) -> Result<(), Stop> {
    let (space, address) = place(node, slot)?;
    m.write(space, address, message.as_bytes()).map_err(|fault| Stop::Fault(slot, fault))
}

/// Stores the message that has arrived for the current thread.
pub fn store_arrived<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let result = store(node, m, slot, &node.threads[slot].arrived);
    report::finish(node, m, slot, attention::STORE, result.map(|()| 0));
}
