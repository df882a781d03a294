//! The table of threads as endpoints name it: who holds a slot, and who may send to it.

use crate::Node;
use abi::{Endpoint, Errno, endpoint};

/// Who holds the slot that an endpoint names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// This thread.
    Live(usize),
    /// Nobody, but rs has said that a successor will come.
    Expected(usize),
}

/// The holder of the slot that `to` names, if `to` names it rightly.
#[inline(always)]
pub(crate) fn holder(node: &Node, to: Endpoint) -> Result<Holder, Errno> {
    match node.threads.get(to.slot()) {
        Some(thread) if thread.endpoint == to && to.0 != 0 => Ok(Holder::Live(to.slot())),
        _ => holder_of_slot(node, to),
    }
}

fn holder_of_slot(node: &Node, to: Endpoint) -> Result<Holder, Errno> {
    if to.generation() != 0 || !to.is_service() {
        return Err(Errno::EDEADSRCDST);
    }
    let thread = &node.threads[to.slot()];
    match (thread.is_live(), thread.expected) {
        (true, _) => Ok(Holder::Live(to.slot())),
        (false, true) => Ok(Holder::Expected(to.slot())),
        (false, false) => Err(Errno::EDEADSRCDST),
    }
}

/// The thread with this endpoint.
pub(crate) fn find(node: &Node, endpoint: Endpoint) -> Result<usize, Errno> {
    match holder(node, endpoint)? {
        Holder::Live(slot) => Ok(slot),
        Holder::Expected(_) => Err(Errno::EDEADSRCDST),
    }
}

/// The thread with this endpoint, `SELF` being the current one.
pub(crate) fn find_or_self(node: &Node, endpoint: Endpoint) -> Result<usize, Errno> {
    if endpoint == Endpoint::SELF { Ok(node.caller()) } else { find(node, endpoint) }
}

/// Whether the privileges of `caller` let it send to the slot of `to`.
#[inline(always)]
pub(crate) fn may_send(node: &Node, caller: usize, to: Endpoint) -> Result<(), Errno> {
    let slot = to.slot();
    let bit = if slot < endpoint::SERVICE_SLOTS { slot } else { endpoint::APPLICATIONS_BIT };
    let privileges = &node.privileges[node.threads[caller].privileges as usize % endpoint::SERVICE_SLOTS];
    match privileges.destinations[bit / 64] & 1 << (bit % 64) {
        0 => Err(Errno::ECALLDENIED),
        _ => Ok(()),
    }
}
