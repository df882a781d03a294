//! Resolution in the turn of a call, as far as nobody has to be asked. A task goes on from where it stops there.
//!
//! Invariant: what a resolution has passed is not looked at again, as if it had been in a task from its start.

use super::{Found, Last, Stop, Walk};
use crate::{
    callers::permission::Credentials,
    files::{Files, vnode::NodeRef},
    processes::{Process, directories::Directories},
};
use abi::Errno;
use alloc::{boxed::Box, rc::Rc, vec::Vec};

/// What becomes of a last component that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The file system is asked for it.
    Use,
    /// Where the process may create it, it is taken for one that does not exist. The file system will say `EEXIST`.
    Creation,
    /// Where the process may change names, it is left to the request that removes it ([`resolve_known`] alone).
    Removal,
}

/// How far a resolution comes in one turn.
pub enum Resolution {
    /// To its end. The path comes back with it.
    Found(Found, Vec<u8>),
    /// To where somebody has to be asked. In a box, so that the other case is short.
    Stopped(Box<Stopped>),
}

impl Resolution {
    /// Goes on to the end. Errors as of [`resolve`](super::resolve).
    pub async fn end(self, files: &Files, process: &Process) -> Result<Found, Errno> {
        match self {
            Resolution::Found(found, _) => Ok(found),
            Resolution::Stopped(stopped) => stopped.go_on(files, process).await,
        }
    }
}

/// A resolution that has stopped, for the task that goes on with it.
#[derive(Debug)]
pub struct Stopped {
    stop: Stop,
    last: Last,
    purpose: Purpose,
    directories: Rc<Directories>,
    credentials: Rc<Credentials>,
    node: NodeRef,
    canonical: Vec<u8>,
    text: Vec<u8>,
    at: usize,
}

impl Stopped {
    /// The path that is resolved: it stops before the first link that would change it.
    pub fn path(&self) -> &[u8] {
        &self.text
    }

    /// Goes on to the end, for the same process. Errors as of [`resolve`](super::resolve).
    pub async fn go_on(self, files: &Files, process: &Process) -> Result<Found, Errno> {
        let Stopped { stop, last, purpose, directories, credentials, node, canonical, text, at } = self;
        let (own_root, restrictions, links) = (None, 0, 0);
        let mut walk =
            Walk { files, process, directories, own_root, restrictions, credentials, node, canonical, text, at, links };
        walk.go_on(stop, last, purpose).await
    }
}

/// [`resolve`](super::resolve) as far as nobody has to be asked, of what exists; for a creation [`resolve_unasked`](super::resolve_unasked). Errors
/// as of these. `ENOENT`: it is known not to exist. Without a node, for a removal: it is not known whether it exists.
pub fn resolve_known(
    files: &Files,
    process: &Process,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
    purpose: Purpose,
) -> Result<Resolution, Errno> {
    let mut walk = Walk::new(files, process, process.caller.credentials(), descriptor, text, 0)?;
    let found = match walk.go(last)? {
        Stop::End { parent, name, slash } => walk.finish(parent, name, slash),
        Stop::Missing(part) if purpose == Purpose::Creation => walk.missing(&part)?,
        Stop::Missing(_) => return Err(Errno::ENOENT),
        Stop::Ask(part) if purpose != Purpose::Use && walk.may_change(&part) => walk.missing(&part)?,
        stop => return Ok(Resolution::Stopped(walk.stopped(stop, last, purpose))),
    };
    Ok(Resolution::Found(found, walk.text))
}

impl Walk<'_> {
    #[inline(never)]
    fn stopped(self, stop: Stop, last: Last, purpose: Purpose) -> Box<Stopped> {
        let Walk { directories, credentials, node, canonical, text, at, .. } = self;
        Box::new(Stopped { stop, last, purpose, directories, credentials, node, canonical, text, at })
    }
}
