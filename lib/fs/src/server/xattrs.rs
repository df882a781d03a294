//! Requests about extended attributes.

use abi::fs::{GetXattr, ListXattr, RemoveXattr, SetXattr};
use abi::{Errno, Message};
use sys::copy;

use super::{MountRequest, Server, caller, granted};
use crate::file_system::{FileSystem, XattrMode};
use crate::preserve::VolumeMemory;

/// Longest name of an attribute, its prefix included, in bytes.
const XATTR_NAME_MAX: u64 = 255;

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    pub(super) fn get_xattr(&mut self, message: &Message, request: GetXattr) -> Result<Message, Errno> {
        let GetXattr { node, grant, name_bytes } = request;
        let name = self.names.fetch(granted(message, grant), checked(name_bytes)?)?;
        let (file_system, node) = self.volumes.find(node)?;
        let value = file_system.xattr(node, name)?;
        copy::to_grant(message.source, grant, name_bytes, &value)?;
        Ok(message.reply(Ok(value.len() as u64)))
    }

    pub(super) fn set_xattr(&mut self, message: &Message, request: SetXattr) -> Result<Message, Errno> {
        const XATTR_CREATE: u64 = 1;
        const XATTR_REPLACE: u64 = 2;
        let mode = match request.flags {
            0 => XattrMode::Any,
            XATTR_CREATE => XattrMode::Create,
            XATTR_REPLACE => XattrMode::Replace,
            _ => return Err(Errno::EINVAL),
        };
        let from = granted(message, request.grant);
        let name_bytes = checked(request.name_bytes)?;
        if request.value_bytes.saturating_add(name_bytes) > self.names.whole().len() as u64 {
            return Err(Errno::ENOSPC);
        }
        let (name, value) = self.names.fetch_two(from, name_bytes, request.value_bytes)?;
        let (file_system, node) = self.volumes.find(request.node)?;
        file_system.set_xattr(node, name, value, mode, caller(request.ids))?;
        Ok(message.reply(Ok(0)))
    }

    pub(super) fn remove_xattr(&mut self, message: &Message, request: RemoveXattr) -> Result<Message, Errno> {
        let name = self.names.fetch(granted(message, request.grant), checked(request.bytes)?)?;
        let (file_system, node) = self.volumes.find(request.node)?;
        file_system.remove_xattr(node, name)?;
        Ok(message.reply(Ok(0)))
    }

    pub(super) fn list_xattr(&mut self, message: &Message, request: ListXattr) -> Result<Message, Errno> {
        let (file_system, node) = self.volumes.find(request.node)?;
        let names = file_system.xattr_names(node)?;
        if names.len() as u64 > request.bytes {
            return Err(Errno::ERANGE);
        }
        copy::to_grant(message.source, request.grant, 0, &names)?;
        Ok(message.reply(Ok(names.len() as u64)))
    }
}

fn checked(name_bytes: u64) -> Result<u64, Errno> {
    if (1..=XATTR_NAME_MAX).contains(&name_bytes) { Ok(name_bytes) } else { Err(Errno::ERANGE) }
}
