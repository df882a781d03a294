//! What calls that create names have in common: the permissions of the directory, and mode and ids of the new file.

use super::walk::Found;
use crate::{
    callers::permission::{self, EXECUTE, WRITE},
    files::{Files, nodes::Changing, vnode::NodeRef},
    processes::Process,
};
use abi::{Errno, Message};

/// Checks that names in a directory may change.
pub fn may_change(process: &Process, directory: &NodeRef) -> Result<(), Errno> {
    if directory.mount().is_read_only() {
        return Err(Errno::EROFS);
    }
    permission::check(&process.caller.credentials(), directory.attributes(), WRITE | EXECUTE)
}

/// Creates the file of a path that does not exist. The umask applies to `mode`.
pub async fn make_node(
    files: &Files,
    process: &Process,
    found: &Found,
    mode: u32,
    device: u64,
) -> Result<NodeRef, Errno> {
    files.settle([Some(&found.parent)]).await?;
    let (request, changing) = ask_to_make(files, process, found, mode, device)?;
    let changes = found.parent.file_system().shared().changes();
    let reply = files.peers().ask_once(&process.caller, found.parent.service(), request).await?;
    // Else others may have used it already: its file system may have made it before a death, and told nobody.
    let is_ours = found.parent.file_system().shared().changes() == changes;
    let node = files.created(changing, &found.parent, found.component(Errno::EEXIST)?, &reply)?;
    if node.is_directory() && is_ours {
        files.is_empty(&node);
    }
    Ok(node)
}

/// The request of [`make_node`] in a directory that is settled. [`Files::created`] takes its reply.
pub fn ask_to_make(
    files: &Files,
    process: &Process,
    found: &Found,
    mode: u32,
    device: u64,
) -> Result<(Message, Changing<1>), Errno> {
    let name = found.component(Errno::EEXIST)?;
    if found.parent.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    may_change(process, &found.parent)?;
    let (mode, ids) = new_file(process, &found.parent, mode)?;
    files.ask_to_create(&found.parent, name, mode, ids, device)
}

/// Mode and ids of a new file in a directory. The umask applies to `mode`.
pub fn new_file(process: &Process, directory: &NodeRef, mode: u32) -> Result<(u32, u64), Errno> {
    let credentials = process.caller.credentials();
    // In this order: whether set-group-id means execution is what the caller has asked for.
    let (mode, gid) = permission::inherit(&credentials, directory.attributes(), mode);
    Ok((mode & !process.directories()?.umask(), credentials.euid as u64 | (gid as u64) << 32))
}
