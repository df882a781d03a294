//! Requests to file systems about extended attributes.

use super::{Files, vnode::NodeRef};
use crate::callers::Caller;
use abi::{Errno, fs};
use alloc::vec::Vec;
use sys::{
    fallible::{TryVec, copied, filled},
    grant::{Access, GrantedBuffer},
};

/// Room for a value, and for a list of names: a block of attributes has neither a larger value nor longer names.
const ROOM: usize = 8192;

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
        let request = fs::SetXattr { node: node.number(), grant: lent.id(), name_bytes, value_bytes, flags, ids };
        self.peers.ask_once(caller, node.service(), request.message()).await?;
        node.mount().mark_dirty();
        Ok(())
    }

    /// Removes an attribute. `ENODATA`, `EOPNOTSUPP`.
    pub async fn remove_xattr(&self, caller: &Caller, node: &NodeRef, name: &[u8]) -> Result<(), Errno> {
        let lent = GrantedBuffer::new(copied(name)?, node.service().endpoint(), Access::Read)?;
        let request = fs::RemoveXattr { node: node.number(), grant: lent.id(), bytes: name.len() as u64 };
        self.peers.ask_once(caller, node.service(), request.message()).await?;
        node.mount().mark_dirty();
        Ok(())
    }
}
