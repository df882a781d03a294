//! Breaking leases (fcntl(2)): an open or truncation signals the owners of conflicting leases and waits until those have ended.
//!
//! A death of vfs loses no break: its deadline is preserved with the lease, and the call that waits comes again. Neighbour:
//! `files::leases`.

use super::Base;
use crate::{
    callers::Caller,
    files::{
        leases::{Access, BREAK_NS},
        vnode::Vnode,
    },
    keep::records::OwnerRecord,
};
use abi::{Errno, vfs};
use sys::time;

/// Whether a caller waits for the end of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Wait {
    Yes,
    /// `O_NONBLOCK`.
    No,
}

impl Base {
    /// Breaks the leases that conflict with this access to a file, and waits until no lease conflicts. The caller must have counted its
    /// open before, so that no new lease conflicts. `EAGAIN`: it must not wait, but the break has begun; the error of a signal.
    pub async fn break_leases(&self, caller: &Caller, node: &Vnode, wanted: Access, wait: Wait) -> Result<(), Errno> {
        let leases = node.leases();
        loop {
            let now_ns = time::now_ns();
            leases.expire(now_ns);
            leases.begin_break(wanted, now_ns + BREAK_NS, |owner| {
                let descriptor = owner.lease.map_or(0, |lease| lease.descriptor);
                self.tell_owner(owner, descriptor, vfs::OWNER_MESSAGE);
            });
            let Some(deadline_ns) = leases.deadline(wanted) else { return Ok(()) };
            if wait == Wait::No {
                return Err(Errno::EAGAIN);
            }
            let mut sleep = self.runtime().sleep_until(deadline_ns);
            leases.watchers().add(caller.event());
            let waited = caller.wait_or_sleep(Some(&mut sleep)).await;
            leases.watchers().remove(caller.event());
            waited?;
        }
    }

    /// Has pm signal the owner of an open file, if there is one, that something (`abi::vfs::OWNER_*`) happened to this descriptor.
    pub fn tell_owner(&self, owner: &OwnerRecord, descriptor: u32, reason: u64) {
        if owner.id == 0 {
            return;
        }
        let target = owner.id as u64 | (owner.kind as u64) << 32 | (owner.signal as u64) << 40;
        let [user, effective_user] = owner.named_by;
        let named_by = user as u64 | (effective_user as u64) << 32;
        self.send_signal(vfs::EVENT_OWNER, [target, descriptor as u64 | reason << 32, named_by]);
    }
}
