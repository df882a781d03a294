//! Ports that services reach without a kernel call: through the CPU's permission bitmap (`way::DIRECT`), or by having their IN and OUT
//! done for them (`way::EMULATE`). Both start with a protection fault, and both check call right and port range as `DevIo` does.
//!
//! The bitmap holds one thread's ports at a time and is filled on its first fault, so that nobody else pays for it.

use crate::{
    descriptors::Descriptors,
    hardware::Hardware,
    port_instruction::{MAX_BYTES, PortInstruction},
};
use abi::{
    Endpoint,
    call::KernelCall,
    privilege::{PortRange, Privileges, way},
};
use kernel_core::{Machine, Node, Thread};

/// Whose ports the bitmap opens.
pub struct Ports {
    owner: Endpoint,
    open: bool,
}

impl Ports {
    /// Nobody's.
    pub const fn new() -> Self {
        Ports { owner: Endpoint::NONE, open: false }
    }

    /// This thread is about to run in user mode.
    #[inline(always)]
    pub fn enter(&mut self, descriptors: &mut Descriptors, thread: &Thread) {
        let open = thread.endpoint() == self.owner;
        if open != self.open {
            self.open = open;
            descriptors.open_ports(open);
        }
    }
}

/// The current thread has caused a protection fault: true when that was the use of a port which it may reach so, and it can go on.
pub fn protection_fault(node: &mut Node, hardware: &mut Hardware) -> bool {
    let slot = node.current();
    let privileges = *node.privileges(slot);
    if privileges.kernel_calls & KernelCall::DevIo.bit() == 0 {
        return false;
    }
    match privileges.io_way {
        way::DIRECT => open(hardware, node.thread(slot).endpoint(), &privileges),
        way::EMULATE => emulate(node, hardware, &privileges).is_some(),
        _ => false,
    }
}

/// Fills the bitmap; false when the thread had it already, so that the port is none of its own.
fn open(hardware: &mut Hardware, endpoint: Endpoint, privileges: &Privileges) -> bool {
    if hardware.ports.owner == endpoint {
        return false;
    }
    hardware.descriptors.set_ports(granted(privileges).iter().map(|range| (range.first, range.last)));
    hardware.ports.owner = endpoint;
    true
}

/// Does the IN or OUT that the current thread wanted.
fn emulate(node: &mut Node, hardware: &mut Hardware, privileges: &Privileges) -> Option<()> {
    let slot = node.current();
    let space = node.thread(slot).space()?;
    let frame = node.frame_mut(slot);
    let mut code = [0; MAX_BYTES];
    // At the end of the last mapped page there may be less to read.
    let read = (1..=MAX_BYTES).rev().find(|&length| hardware.read(space, frame.rip, &mut code[..length]).is_ok())?;
    let instruction = PortInstruction::decode(&code[..read], frame.rdx as u16)?;
    let last = instruction.port.checked_add(instruction.width as u16 - 1)?;
    if !granted(privileges).iter().any(|range| range.first <= instruction.port && last <= range.last) {
        return None;
    }
    if instruction.out {
        hardware.port_out(instruction.port, instruction.width, frame.rax as u32);
    } else {
        let value = hardware.port_in(instruction.port, instruction.width);
        frame.rax = instruction.result(frame.rax, value);
    }
    frame.rip += instruction.length;
    Some(())
}

fn granted(privileges: &Privileges) -> &[PortRange] {
    &privileges.ports[..privileges.ports.len().min(privileges.port_count as usize)]
}
