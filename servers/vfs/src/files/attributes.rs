//! Changes of a file's mode, owner and times, and what their replies change in vnodes and in what is known of the file.
//!
//! Callers have checked types and permissions. A change may be made twice: it sets what it has set before. Neighbours: `known` (what a change means for
//! it), `nodes` (other requests), `calls::attributes`.

use super::{Files, known::AttributeChange, vnode::NodeRef};
use abi::{Errno, Message, fs};

/// Bits of a mode that are not its type.
const PERMISSION_BITS: u32 = 0o7777;

/// Attributes that a file gets.
#[derive(Clone, Copy, Debug)]
pub enum NewAttributes {
    /// The permission bits.
    Mode(u32),
    /// Owner and group; `None` leaves one.
    Owner(Option<u32>, Option<u32>),
    /// The times of last access and last change of content, in the form that `fs::SetTimes` has.
    Times(u64, u64),
}

impl NewAttributes {
    fn request(self, node: u64) -> Message {
        match self {
            NewAttributes::Mode(bits) => fs::ChMod { node, mode: u64::from(bits & PERMISSION_BITS) }.message(),
            NewAttributes::Owner(uid, gid) => {
                let ids = u64::from(uid.unwrap_or(u32::MAX)) | u64::from(gid.unwrap_or(u32::MAX)) << 32;
                fs::ChOwn { node, ids }.message()
            }
            NewAttributes::Times(accessed_ns, modified_ns) => fs::SetTimes { node, accessed_ns, modified_ns }.message(),
        }
    }
}

impl Files {
    /// Sets attributes of a file.
    pub async fn set(&self, node: &NodeRef, new: NewAttributes) -> Result<(), Errno> {
        self.settle([Some(node)]).await?;
        let (request, change) = self.ask_to_set(node, new);
        let reply = self.peers.ask(node.service(), request).await?;
        self.were_set(change, node, new, &reply)
    }

    /// The request of [`Files::set`] for a file that is settled. [`Files::were_set`] takes its reply.
    pub fn ask_to_set(&self, node: &NodeRef, new: NewAttributes) -> (Message, AttributeChange) {
        (new.request(node.number()), AttributeChange::of(node))
    }

    /// The attributes have been set, as the reply says. The file system may have cleared set-id bits with a new owner.
    pub fn were_set(
        &self,
        change: AttributeChange,
        node: &NodeRef,
        new: NewAttributes,
        reply: &Message,
    ) -> Result<(), Errno> {
        // The replies to all three requests have the same form.
        let (mode, blocks, accessed_ns, modified_ns, changed_ns) = fs::ChMod::results(reply)?;
        node.mount().mark_dirty();
        match new {
            NewAttributes::Mode(bits) => node.set_permissions(bits),
            NewAttributes::Owner(uid, gid) => {
                node.set_permissions(mode as u32);
                node.set_owner(uid, gid);
            }
            NewAttributes::Times(..) => {}
        }
        let times_ns = [accessed_ns, modified_ns, changed_ns];
        if !times_ns.contains(&u64::MAX) {
            change.told(reply.source, |stat| {
                stat.set_links(mode >> 32);
                stat.set_mode(mode as u32);
                stat.set_owner((node.uid(), node.gid()));
                stat.set_blocks(blocks);
                stat.set_times(times_ns);
            });
        }
        Ok(())
    }
}
