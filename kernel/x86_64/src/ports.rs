//! Ports that services reach without the kernel: through the CPU's permission bitmap (`way::DIRECT`). Call right and ranges count as
//! for `DevIo`.
//!
//! The bitmap holds one thread's ports at a time and is filled on its first protection fault, so that nobody else pays for it.

use crate::{descriptors::Descriptors, hardware::Hardware};
use abi::{
    Endpoint,
    call::KernelCall,
    privilege::{PortRange, Privileges, way},
};
use kernel_core::{Node, Thread};

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

    /// Must `enter` be called for every thread?
    #[inline(always)]
    pub fn are_in_use(&self) -> bool {
        self.owner != Endpoint::NONE
    }

    /// This thread is about to run in user mode.
    pub fn enter(&mut self, descriptors: &mut Descriptors, thread: &Thread) {
        let open = thread.endpoint() == self.owner;
        if open != self.open {
            self.open = open;
            descriptors.open_ports(open);
        }
    }
}

/// The current thread has caused a protection fault: true when that was its first use of ports that it reaches directly, and it can
/// go on. (A fault with the bitmap in place is about a port that is none of its own.)
pub fn protection_fault(node: &Node, hardware: &mut Hardware) -> bool {
    let endpoint = node.thread(node.current()).endpoint();
    let privileges = node.privileges(node.current());
    let direct = privileges.io_way == way::DIRECT && privileges.kernel_calls & KernelCall::DevIo.bit() != 0;
    if !direct || hardware.ports.owner == endpoint {
        return false;
    }
    hardware.descriptors.set_ports(granted(privileges).iter().map(|range| (range.first, range.last)));
    hardware.ports.owner = endpoint;
    hardware.services_are_special = true;
    true
}

fn granted(privileges: &Privileges) -> &[PortRange] {
    &privileges.ports[..privileges.ports.len().min(privileges.port_count as usize)]
}
