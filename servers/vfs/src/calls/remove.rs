//! unlink and rmdir.

use super::{
    call::{Call, Side},
    done, task,
};
use crate::{
    base::{Base, Flow},
    callers::permission,
    files::{Files, vnode::NodeRef},
    pathname,
    paths::{
        change::may_change,
        walk::{self, Found, Last, Name, Purpose, Resolution},
    },
    processes::Process,
};
use abi::Errno;
use alloc::rc::Rc;

/// What a call removes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removes {
    File,
    Directory,
}

/// unlink and rmdir: without a task, if the name is that of a file without dirty pages, or not known.
pub(super) fn remove(call: &Call, (directory, path): Side, wanted: Removes) -> Result<Flow, Errno> {
    let (files, process) = (call.files(), call.process);
    let purpose = if wanted == Removes::File { Purpose::Removal } else { Purpose::Use };
    match walk::resolve_known(files, process, directory, path, Last::Keep, purpose)? {
        Resolution::Found(found, _) if found.node.is_none() => remove_unknown(call.base(), call.process(), found),
        Resolution::Found(found, _) if may_go(files, &found) => remove_found(call.base(), process, found, wanted),
        resolution => task(remove_resolved(files, call.process(), resolution, wanted)),
    }
}

/// Whether the name of a file may be removed without waiting for its dirty pages.
fn may_go(files: &Files, found: &Found) -> bool {
    files.is_settled([found.node.as_ref()]) || found.node.as_ref().is_some_and(|node| files.ends_with_its_name(node))
}

fn remove_found(base: &'static Base, process: &Process, found: Found, wanted: Removes) -> Result<Flow, Errno> {
    let (node, name) = removable(process, &found, wanted)?;
    let (request, removal) = base.files().ask_to_remove(&found.parent, name, node)?;
    let (service, tag) = (found.parent.service(), process.caller.change_tag());
    base.ask_then(&process.caller, (service, request, tag), move |reply| {
        let result = found.existing().and_then(|node| {
            let name = pathname::last(&found.canonical);
            base.files().removed(removal, &found.parent, name, node, reply)
        });
        done(result.map(|()| 0))
    })
}

/// unlink of a name that is not known, as if nobody had its file in use. Where that fails the file system is asked for the file.
fn remove_unknown(base: &'static Base, process: Rc<Process>, found: Found) -> Result<Flow, Errno> {
    let (files, caller) = (base.files(), process.clone());
    let may_remove = permission::may_remove_any(&process.caller.credentials(), found.parent.attributes());
    if !may_remove || !files.is_settled([Some(&found.parent)]) {
        return task(look_up_and_remove(files, process, found));
    }
    let (request, changing) = files.ask_to_remove_unknown(&found.parent, pathname::last(&found.canonical))?;
    let (service, tag) = (found.parent.service(), caller.caller.change_tag());
    base.ask_then(&caller.caller, (service, request, tag), move |reply| {
        let name = pathname::last(&found.canonical);
        match base.files().removed_unknown(changing, &found.parent, name, reply) {
            Err(error) if error != Errno::ENOENT => task(look_up_and_remove(base.files(), process, found)),
            result => done(result.map(|()| 0)),
        }
    })
}

async fn look_up_and_remove(files: &Files, process: Rc<Process>, mut found: Found) -> Result<u64, Errno> {
    let node = files.lookup(&found.parent, pathname::last(&found.canonical)).await?;
    found.node = node.map(walk::into_mount);
    unlink(files, &process, &found, Removes::File).await
}

async fn remove_resolved(
    files: &Files,
    process: Rc<Process>,
    resolution: Resolution,
    wanted: Removes,
) -> Result<u64, Errno> {
    let found = resolution.end(files, &process).await?;
    unlink(files, &process, &found, wanted).await
}

async fn unlink(files: &Files, process: &Process, found: &Found, wanted: Removes) -> Result<u64, Errno> {
    let (node, name) = removable(process, found, wanted)?;
    files.unlink(&process.caller, &found.parent, name, node).await?;
    Ok(0)
}

/// The file, and its name, that is to be removed. Errors as of unlink(2) and rmdir(2).
fn removable<'a>(process: &Process, found: &'a Found, wanted: Removes) -> Result<(&'a NodeRef, &'a [u8]), Errno> {
    let node = found.existing()?;
    let name = found.component(match (wanted, found.name) {
        (Removes::File, _) => Errno::EISDIR,
        (_, Name::Dot) => Errno::EINVAL,
        (_, Name::DotDot) => Errno::ENOTEMPTY,
        _ => Errno::EBUSY,
    })?;
    match wanted {
        Removes::File if node.is_directory() => return Err(Errno::EISDIR),
        Removes::Directory if !node.is_directory() => return Err(Errno::ENOTDIR),
        _ => {}
    }
    may_remove(process, &found.parent, node)?;
    Ok((node, name))
}

/// Checks that the name of this file may be taken out of its directory.
pub(super) fn may_remove(process: &Process, directory: &NodeRef, node: &NodeRef) -> Result<(), Errno> {
    may_change(process, directory)?;
    permission::check_sticky(&process.caller.credentials(), directory.attributes(), node.attributes())?;
    let mounted = node.is_covered() || !Rc::ptr_eq(node.mount(), directory.mount());
    if mounted { Err(Errno::EBUSY) } else { Ok(()) }
}
