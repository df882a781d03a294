//! Requests to file systems about extended attributes.

use super::{Files, known::Change, vnode::NodeRef};
use crate::callers::Caller;
use abi::{CapabilitySet, Errno, fs, vfs::FileCapabilities};
use alloc::vec::Vec;
use sys::{
    fallible::{TryVec, copied, filled},
    grant::{Access, GrantedBuffer},
};

/// Room for a value, and for a list of names: a block of attributes has neither a larger value nor longer names.
const ROOM: usize = 8192;

/// Name of the attribute with the capabilities of a program.
pub const CAPABILITY: &[u8] = b"security.capability";
/// `struct vfs_cap_data`: revision in the highest byte of the first word, and whether the capabilities are effective in its lowest bit.
const REVISION: u32 = 0xff00_0000;
const EFFECTIVE: u32 = 1;

/// Whether setxattr(2) may store this value as the capabilities of a file.
pub fn are_capabilities(value: &[u8]) -> bool {
    match value.first_chunk().map(|first| u32::from_le_bytes(*first) & REVISION) {
        Some(0x0200_0000) => value.len() == 20,
        Some(0x0300_0000) => value.len() == 24,
        _ => false,
    }
}

/// Decodes `struct vfs_cap_data`. `None`: they are another user namespace's. `EINVAL`.
fn decode(value: &[u8]) -> Result<Option<FileCapabilities>, Errno> {
    let words = value.as_chunks().0;
    let word = |index: usize| words.get(index).map_or(0, |word| u64::from(u32::from_le_bytes(*word)));
    let first = word(0) as u32;
    match (first & REVISION, value.len()) {
        (0x0100_0000, 12) | (0x0200_0000, 20) => {}
        (0x0300_0000, 24) if word(5) == 0 => {}
        (0x0300_0000, 24) => return Ok(None),
        _ => return Err(Errno::EINVAL),
    }
    // Low halves of both sets, then the high ones, which the first revision does not have.
    Ok(Some(FileCapabilities {
        permitted: CapabilitySet::from_bits(word(1) | word(3) << 32),
        inheritable: CapabilitySet::from_bits(word(2) | word(4) << 32),
        are_effective: first & EFFECTIVE != 0,
    }))
}

impl Files {
    /// The value of an attribute. `ENODATA`, `EOPNOTSUPP`.
    pub async fn xattr(&self, node: &NodeRef, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut buffer = filled(0, name.len() + ROOM)?;
        buffer[..name.len()].copy_from_slice(name);
        let room = GrantedBuffer::new(buffer, node.service().endpoint(), Access::ReadWrite)?;
        let request = fs::GetXattr { node: node.number(), grant: room.id(), name_bytes: name.len() as u64 };
        let bytes = self.peers.ask(node.service(), request.message()).await?.words[0];
        let buffer = room.take();
        let value = buffer[name.len()..].get(..bytes as usize).ok_or(Errno::EIO)?;
        copied(value)
    }

    /// What executing a file gives to a process (`security.capability`); `None`: nothing.
    pub async fn capabilities(&self, node: &NodeRef) -> Result<Option<FileCapabilities>, Errno> {
        if node.has_no_capabilities() {
            return Ok(None);
        }
        match self.xattr(node, CAPABILITY).await {
            Ok(value) => decode(&value),
            Err(Errno::ENODATA | Errno::EOPNOTSUPP) => {
                node.set_has_no_capabilities(true);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The names of all attributes, each with a NUL behind it. `EOPNOTSUPP`.
    pub async fn xattr_names(&self, node: &NodeRef) -> Result<Vec<u8>, Errno> {
        let room = GrantedBuffer::new(filled(0, ROOM)?, node.service().endpoint(), Access::Write)?;
        let request = fs::ListXattr { node: node.number(), grant: room.id(), bytes: ROOM as u64 };
        let bytes = self.peers.ask(node.service(), request.message()).await?.words[0];
        let mut names = room.take();
        names.truncate(bytes as usize);
        Ok(names)
    }

    /// Sets an attribute; `flags`: those of setxattr(2). `EEXIST`, `ENODATA`, `ENOSPC`, `EOPNOTSUPP`.
    pub async fn set_xattr(
        &self,
        caller: &Caller,
        node: &NodeRef,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<(), Errno> {
        let mut text = copied(name)?;
        text.try_extend_from_slice(value)?;
        let lent = GrantedBuffer::new(text, node.service().endpoint(), Access::Read)?;
        let (name_bytes, value_bytes) = (name.len() as u64, value.len() as u64);
        let (flags, ids) = (flags.into(), caller.credentials().ids());
        self.settle([Some(node)]).await?;
        let _change = Change::of(node);
        let request = fs::SetXattr { node: node.number(), grant: lent.id(), name_bytes, value_bytes, flags, ids };
        // Also if it fails, or vfs dies: then it is asked again.
        node.set_has_no_capabilities(false);
        self.peers.ask_once(caller, node.service(), request.message()).await?;
        node.mount().mark_dirty();
        Ok(())
    }

    /// Removes an attribute. `ENODATA`, `EOPNOTSUPP`.
    pub async fn remove_xattr(&self, caller: &Caller, node: &NodeRef, name: &[u8]) -> Result<(), Errno> {
        let lent = GrantedBuffer::new(copied(name)?, node.service().endpoint(), Access::Read)?;
        self.settle([Some(node)]).await?;
        let _change = Change::of(node);
        let request = fs::RemoveXattr { node: node.number(), grant: lent.id(), bytes: name.len() as u64 };
        self.peers.ask_once(caller, node.service(), request.message()).await?;
        node.mount().mark_dirty();
        Ok(())
    }
}
