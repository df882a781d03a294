//! Opening in the turn of the call, and creating in two: the one in which the file system is asked, and that of its reply. No task is needed.
//!
//! What takes longer, [`open_file`](super::open_file) and [`open_found`](super::open_found) do, by the same checks.

use super::{How, ask_to_create, is_free, make_regular, may_open, status_of};
use crate::{
    base::Base,
    files::{Files, nodes::Changing, vnode::NodeRef},
    objects::{O_CREAT, O_DIRECTORY, O_PATH, O_TMPFILE, O_TRUNC, OpenFile},
    pathname,
    paths::walk::{self, Found, Purpose, Resolution, Stopped},
    peers::Service,
    processes::Process,
};
use abi::{Errno, Message, fs};
use alloc::{boxed::Box, rc::Rc, vec::Vec};

/// How far opening comes in the turn of the call.
pub enum Opening {
    /// It is done.
    Open(Rc<OpenFile>),
    /// The file is there, at this path, or was just `created`: [`open_found`] opens it.
    Known { node: NodeRef, path: Vec<u8>, created: bool },
    /// There is none as far as is known: its file system is asked to create it. In a box, so that the other cases are short.
    New(Box<Creation>),
    /// Somebody has to be asked for the rest of its path: [`open_stopped`](super::open_stopped) goes on there.
    Stopped(Box<Stopped>),
    /// [`open_file`] has to look for it at this path. It may be in this directory.
    Unknown { path: Vec<u8>, directory: Option<NodeRef> },
}

/// Opens the file at a path as far as that goes without waiting for anybody. Errors as of open(2).
pub fn open_now(
    base: &'static Base,
    process: &Process,
    directory: i32,
    path: Vec<u8>,
    how: How,
) -> Result<Opening, Errno> {
    let How { flags, resolve, .. } = how;
    let creates = flags & O_CREAT != 0;
    let is_special = flags & (O_PATH | O_TMPFILE) != 0 || creates && flags & O_DIRECTORY != 0;
    if is_special || resolve != 0 || creates && process.caller.recalls(fs::Create::LABEL) {
        return Ok(Opening::Unknown { path, directory: None });
    }
    let purpose = if creates { Purpose::Creation } else { Purpose::Use };
    let (found, path) = match walk::resolve_known(base.files(), process, directory, path, how.last(), purpose)? {
        Resolution::Found(found, path) => (found, path),
        Resolution::Stopped(stopped) => return Ok(Opening::Stopped(stopped)),
    };
    let Some(node) = found.node else { return Creation::begin(base.files(), process, path, found, how) };
    if how.is_exclusive() {
        return Err(Errno::EEXIST);
    }
    if flags & O_TRUNC != 0 || !is_free(&node) {
        return Ok(Opening::Known { node, path: found.canonical, created: false });
    }
    may_open(process, &node, flags)?;
    open_free(base, process, node, flags, found.canonical).map(Opening::Open)
}

/// Opens a regular file that nobody has to be waited for, and that the caller may open.
fn open_free(base: &Base, process: &Process, node: NodeRef, flags: u32, path: Vec<u8>) -> Result<Rc<OpenFile>, Errno> {
    OpenFile::new(base.closing(), process.caller.user(), make_regular(node, flags)?, status_of(flags), path)
}

/// A file that is being created, to be opened.
pub struct Creation {
    request: Message,
    changing: Changing<1>,
    found: Found,
    /// What to look for if there is such a file after all.
    path: Vec<u8>,
    how: How,
}

impl Creation {
    #[inline(never)]
    fn begin(files: &Files, process: &Process, path: Vec<u8>, found: Found, how: How) -> Result<Opening, Errno> {
        if !files.is_settled([Some(&found.parent)]) {
            return Ok(Opening::Unknown { path, directory: None });
        }
        let (request, changing) = ask_to_create(files, process, &found, how)?;
        Ok(Opening::New(Box::new(Creation { request, changing, found, path, how })))
    }

    /// The request, and who gets it.
    pub fn request(&self) -> (Service, Message) {
        (self.found.parent.service(), self.request)
    }

    /// Opens the file that was created, as the reply says.
    pub fn replied(
        self: Box<Self>,
        base: &'static Base,
        process: &Process,
        reply: Result<Message, Errno>,
    ) -> Result<Opening, Errno> {
        let Creation { changing, found, path, how, .. } = *self;
        let reply = match reply {
            // It is there, or another program was quicker.
            Err(Errno::EEXIST) if !how.is_exclusive() => {
                return Ok(Opening::Unknown { path, directory: Some(found.parent) });
            }
            reply => reply?,
        };
        let name = pathname::last(&found.canonical);
        let node = base.files().created(changing, &found.parent, name, &reply)?;
        // Another program that has found it meanwhile may have a lease.
        match is_free(&node) {
            true => open_free(base, process, node, how.flags, found.canonical).map(Opening::Open),
            false => Ok(Opening::Known { node, path: found.canonical, created: true }),
        }
    }
}
