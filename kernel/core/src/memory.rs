//! Vector 33: the same primitives with the message in the caller's memory, as MINIX has it.
//!
//! `rax` number, `rdi` endpoint, `rsi` address of a `Message`. A message that arrives is kept in the thread and stored
//! when that is next dispatched, in its own name, so that a page which vm must map first delays nobody else.
//! Neighbours: `ipc` (does the rest), `call` (takes up what was interrupted).

use abi::{Endpoint, Errno, Message, call};
use zerocopy::IntoBytes;

use crate::{
    Machine, Node,
    call::Stop,
    copy::check_range,
    thread::{Form, Then, attention},
};

impl Node {
    /// See [`Node::vector33`].
    pub(crate) fn memory_primitive<M: Machine>(&mut self, m: &mut M) {
        let caller = self.current;
        let frame = &self.threads[caller].frame;
        let (number, peer, address) = (frame.rax, Endpoint(frame.rdi as u32), frame.rsi);
        let result = match number {
            call::SEND | call::SENDREC | call::SENDNB => self.send_from_memory(m, number, peer, address),
            call::RECEIVE => self.receive_to_memory(m, peer, address),
            call::NOTIFY => self.notify(m, caller, peer).map_err(Stop::from),
            _ => Err(Errno::EBADCALL.into()),
        };
        if let Err(stop) = result {
            self.finish(m, caller, attention::AGAIN33, Err(stop));
        }
    }

    fn send_from_memory<M: Machine>(&mut self, m: &mut M, number: u64, to: Endpoint, address: u64) -> Result<(), Stop> {
        let caller = self.current;
        let message: Message = self.read_value(m, address)?;
        let thread = &mut self.threads[caller];
        thread.form = Form::Memory;
        thread.outgoing = message;
        Ok(self.other_primitive(m, number, to, message.label)?)
    }

    fn receive_to_memory<M: Machine>(&mut self, m: &mut M, from: Endpoint, address: u64) -> Result<(), Stop> {
        check_range(address, size_of::<Message>() as u64)?;
        let caller = self.current;
        self.threads[caller].form = Form::Memory;
        self.threads[caller].then = Then::Return;
        self.receive(m, caller, from);
        Ok(())
    }

    /// Stores the message that has arrived for the current thread in its memory.
    pub(crate) fn store_arrived<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let thread = &self.threads[slot];
        let address = thread.frame.rsi;
        let message = thread.arrived;
        match self.write_own(m, address, message.as_bytes()) {
            Ok(()) => self.threads[slot].attention &= !attention::STORE,
            Err(Stop::Fault(owner, fault)) => self.report_copy_fault(m, slot, owner, fault),
            Err(_) => self.fail_call(slot, Errno::EFAULT),
        }
    }
}
