//! Path resolution: from a path to the file it means, component by component (path_resolution(7)).
//!
//! Links are followed by putting their target in the place of what was resolved; mounts are crossed in both directions; no process leaves its root
//! by `..`. The canonical path is built along the way. A link of /proc that stands for an open file of the process itself (`/dev/stdin`) leads to
//! that file, whatever has become of its name; one of another process leads to the path that it shows.

mod known;

pub use known::{Purpose, Resolution, Stopped, resolve_known};

use crate::{
    callers::permission::{Credentials, EXECUTE, WRITE, check},
    files::{Files, nodes::LinkMeaning, vnode::NodeRef},
    memory::PATH_MAX,
    objects::OpenFile,
    pathname::{self, Component, LINKS_MAX},
    paths::restriction,
    processes::{AT_FDCWD, Place, Process, directories::Directories},
};
use abi::{Capability, Errno};
use alloc::{rc::Rc, vec::Vec};
use core::future::Future;
use sys::fallible::{TryVec, copied, with_capacity};

/// How the names of pipes begin, as descriptors have them instead of paths.
pub const PIPE_PREFIX: &[u8] = b"pipe:[";

/// What to do with the last component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// A link there is followed.
    Follow,
    /// A link there is the file that is meant.
    Keep,
}

/// What the last component was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A name in `Found::parent`: the last one of `Found::canonical`.
    Component,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// None: the root directory.
    Root,
}

/// What a path means.
#[derive(Debug)]
pub struct Found {
    /// The directory that the last component is in.
    pub parent: NodeRef,
    /// The last component.
    pub name: Name,
    /// The file; `None` when the last component does not exist.
    pub node: Option<NodeRef>,
    /// The open file that it is, a pipe mostly: then there is no node.
    pub pipe: Option<Rc<OpenFile>>,
    /// Slashes followed the last component.
    pub slash: bool,
    /// Its canonical path.
    pub canonical: Vec<u8>,
}

impl Found {
    /// The file. `ENOENT`.
    pub fn existing(&self) -> Result<&NodeRef, Errno> {
        self.node.as_ref().ok_or(Errno::ENOENT)
    }

    /// The last component as a name to be used in the parent; `special` when it is none.
    pub fn component(&self, special: Errno) -> Result<&[u8], Errno> {
        if self.name == Name::Component { Ok(pathname::last(&self.canonical)) } else { Err(special) }
    }
}

/// Where a link leads.
enum Followed {
    /// To the path that is resolved next.
    Path,
    /// To a file, whatever its path leads to.
    Node(NodeRef, Vec<u8>),
    /// To an open file without node.
    Object(Rc<OpenFile>),
}

/// Where a resolution stops.
#[derive(Debug)]
enum Stop {
    /// At its end: where we are, in this directory.
    End { parent: Option<NodeRef>, name: Name, slash: bool },
    /// At its last component, which does not exist.
    Missing(Component),
    /// At a component that the file system has to be asked for.
    Ask(Component),
    /// At `..`, for which the file system has to be asked.
    Up(Component),
    /// At a link to be followed.
    Follow(NodeRef, Component),
}

/// A resolution in progress.
struct Walk<'a> {
    files: &'a Files,
    process: &'a Process,
    directories: Rc<Directories>,
    /// The root, if it is not the process's.
    own_root: Option<Place>,
    /// Bits of [`restriction`].
    restrictions: u64,
    credentials: Rc<Credentials>,
    /// Where we are.
    node: NodeRef,
    canonical: Vec<u8>,
    /// What is being resolved, and up to where it has been.
    text: Vec<u8>,
    at: usize,
    links: u32,
}

/// The directory that a call's `dirfd` means. `EBADF`, `ENOTDIR`.
pub fn place(process: &Process, descriptor: i32) -> Result<Place, Errno> {
    if descriptor == AT_FDCWD {
        return Ok(process.directories()?.working().clone());
    }
    let file = process.file(descriptor)?;
    let node = file.node().filter(|node| node.is_directory()).ok_or(Errno::ENOTDIR)?;
    Ok(Place { node: node.clone(), path: Rc::from(file.path().as_slice()) })
}

/// Resolves a path that is relative to `descriptor`. `ENOENT` for an empty one.
pub fn resolve(
    files: &Files,
    process: &Process,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
) -> impl Future<Output = Result<Found, Errno>> {
    resolve_within(files, process, descriptor, text, last, 0)
}

/// [`resolve`] with restrictions, bits of [`restriction`].
pub fn resolve_within(
    files: &Files,
    process: &Process,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
    restrictions: u64,
) -> impl Future<Output = Result<Found, Errno>> {
    walk(files, process, process.caller.credentials(), descriptor, text, last, restrictions)
}

/// [`resolve_within`] for [`Purpose::Creation`].
pub async fn resolve_unasked(
    files: &Files,
    process: &Process,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
    restrictions: u64,
) -> Result<Found, Errno> {
    Walk::new(files, process, process.caller.credentials(), descriptor, text, restrictions)?
        .run(last, Purpose::Creation)
        .await
}

/// [`resolve`] with the permissions of these ids.
pub fn resolve_as(
    files: &Files,
    process: &Process,
    credentials: Rc<Credentials>,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
) -> impl Future<Output = Result<Found, Errno>> {
    walk(files, process, credentials, descriptor, text, last, 0)
}

async fn walk(
    files: &Files,
    process: &Process,
    credentials: Rc<Credentials>,
    descriptor: i32,
    text: Vec<u8>,
    last: Last,
    restrictions: u64,
) -> Result<Found, Errno> {
    Walk::new(files, process, credentials, descriptor, text, restrictions)?.run(last, Purpose::Use).await
}

/// The root of a resolution, if it is not the process's, and where it starts.
fn limits(
    process: &Process,
    directories: &Directories,
    descriptor: i32,
    text: &[u8],
    restrictions: u64,
) -> Result<(Option<Place>, Place), Errno> {
    let is_absolute = match text.first() {
        None => return Err(Errno::ENOENT),
        Some(first) => *first == b'/',
    };
    if restrictions & (restriction::BENEATH | restriction::IN_ROOT) != 0 {
        if is_absolute && restrictions & restriction::BENEATH != 0 {
            return Err(Errno::EXDEV);
        }
        let start = place(process, descriptor)?;
        return Ok((Some(start.clone()), start));
    }
    let start = if is_absolute { directories.root().clone() } else { place(process, descriptor)? };
    Ok((None, start))
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn new(
        files: &'a Files,
        process: &'a Process,
        credentials: Rc<Credentials>,
        descriptor: i32,
        text: Vec<u8>,
        restrictions: u64,
    ) -> Result<Walk<'a>, Errno> {
        let directories = process.directories()?;
        let (own_root, start) = limits(process, &directories, descriptor, &text, restrictions)?;
        let mut canonical = with_capacity(start.path.len() + text.len() + 1)?;
        canonical.try_extend_from_slice(&start.path)?;
        let node = start.node;
        let (at, links) = (0, 0);
        Ok(Walk { files, process, directories, own_root, restrictions, credentials, node, canonical, text, at, links })
    }

    async fn run(&mut self, last: Last, purpose: Purpose) -> Result<Found, Errno> {
        let stop = self.go(last)?;
        self.go_on(stop, last, purpose).await
    }

    /// [`Walk::run`] from where it has stopped.
    async fn go_on(&mut self, mut stop: Stop, last: Last, purpose: Purpose) -> Result<Found, Errno> {
        loop {
            let passed = match stop {
                Stop::End { parent, name, slash } => return Ok(self.finish(parent, name, slash)),
                Stop::Missing(part) => return self.missing(&part),
                Stop::Ask(part) if purpose == Purpose::Creation && self.may_change(&part) => {
                    return self.missing(&part);
                }
                Stop::Ask(part) => {
                    let child = self.files.ask_for(&self.node, &self.text[part.name.clone()]).await?;
                    self.pass(child, part, last)?
                }
                Stop::Up(part) => {
                    let parent = self.files.ask_for(&self.node, b"..").await?;
                    self.enter_parent(parent)?;
                    part.last.then_some(Stop::End { parent: None, name: Name::DotDot, slash: part.slash })
                }
                Stop::Follow(link, part) => match self.follow(&link).await? {
                    Followed::Path => None,
                    Followed::Node(node, path) => self.enter_at(node, path, &part)?,
                    Followed::Object(file) => return Ok(Found { pipe: Some(file), ..self.missing(&part)? }),
                },
            };
            stop = match passed {
                Some(stop) => stop,
                None => self.go(last)?,
            };
        }
    }

    /// Goes on as far as it goes without asking anybody.
    #[inline(always)]
    fn go(&mut self, last: Last) -> Result<Stop, Errno> {
        while let Some(part) = pathname::component(&self.text, self.at)? {
            self.check_search()?;
            self.at = part.name.end;
            match &self.text[part.name.clone()] {
                b"." if part.last => return Ok(Stop::End { parent: None, name: Name::Dot, slash: part.slash }),
                b"." => continue,
                b".." => {
                    if !self.up()? {
                        return Ok(Stop::Up(part));
                    }
                    if part.last {
                        return Ok(Stop::End { parent: None, name: Name::DotDot, slash: part.slash });
                    }
                    continue;
                }
                _ => {}
            }
            let name = &self.text[part.name.clone()];
            let Some(child) = self.files.known(&self.node, name) else { return Ok(Stop::Ask(part)) };
            if let Some(stop) = self.pass(child, part, last)? {
                return Ok(stop);
            }
        }
        Ok(Stop::End { parent: None, name: Name::Root, slash: false })
    }

    /// Goes on to what a component was found to be. Returns where that stops; `None`: there are more components.
    #[inline(always)]
    fn pass(&mut self, child: Option<NodeRef>, part: Component, last: Last) -> Result<Option<Stop>, Errno> {
        let Some(child) = child else {
            return if part.last { Ok(Some(Stop::Missing(part))) } else { Err(Errno::ENOENT) };
        };
        if child.is_link() && (!part.last || last == Last::Follow || part.slash) {
            return Ok(Some(Stop::Follow(child, part)));
        }
        pathname::push(&mut self.canonical, &self.text[part.name])?;
        let entered = self.enter(child)?;
        let parent = core::mem::replace(&mut self.node, entered);
        if !part.last {
            return Ok(None);
        }
        if part.slash && !self.node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        Ok(Some(Stop::End { parent: Some(parent), name: Name::Component, slash: part.slash }))
    }

    /// Whether names may be looked up where we are.
    fn check_search(&self) -> Result<(), Errno> {
        if !self.node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        check(&self.credentials, self.node.attributes(), EXECUTE)
    }

    /// Whether this component may be created, or removed. Where names may not be, those that exist have errors of their own.
    fn may_change(&self, part: &Component) -> bool {
        let mount = self.node.mount();
        let takes_names = part.last && !part.slash && !mount.is_volatile() && !mount.is_read_only();
        takes_names && check(&self.credentials, self.node.attributes(), WRITE | EXECUTE).is_ok()
    }

    /// To the parent directory, out of a mount if need be, but not above the root. Returns whether that is done, or the file system has to be
    /// asked for it.
    fn up(&mut self) -> Result<bool, Errno> {
        loop {
            if self.is_root() {
                return if self.forbids(restriction::BENEATH) { Err(Errno::EXDEV) } else { Ok(true) };
            }
            if !self.node.mount().is_root(&self.node) {
                break;
            }
            match self.node.mount().covers() {
                Some(_) if self.forbids(restriction::NO_XDEV) => return Err(Errno::EXDEV),
                Some(covered) => self.node = covered,
                None => return Ok(true),
            }
        }
        let Some(parent) = self.files.known(&self.node, b"..") else { return Ok(false) };
        self.enter_parent(parent)?;
        Ok(true)
    }

    /// Goes on with what `..` was found to be.
    fn enter_parent(&mut self, parent: Option<NodeRef>) -> Result<(), Errno> {
        self.node = self.enter(parent.ok_or(Errno::ENOENT)?)?;
        pathname::pop(&mut self.canonical);
        Ok(())
    }

    fn is_root(&self) -> bool {
        match &self.own_root {
            Some(root) => Rc::ptr_eq(&self.node, &root.node),
            None => Rc::ptr_eq(&self.node, &self.directories.root().node),
        }
    }

    #[inline]
    fn forbids(&self, restriction: u64) -> bool {
        self.restrictions & restriction != 0
    }

    /// [`into_mount`]. `EXDEV`: that is not allowed.
    fn enter(&self, node: NodeRef) -> Result<NodeRef, Errno> {
        if self.forbids(restriction::NO_XDEV) && node.covering_root().is_some() {
            return Err(Errno::EXDEV);
        }
        Ok(into_mount(node))
    }

    /// Goes on with a file that a link stands for. Returns where that stops; `None`: there are more components.
    fn enter_at(&mut self, node: NodeRef, path: Vec<u8>, part: &Component) -> Result<Option<Stop>, Errno> {
        if part.slash && !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        self.canonical = path;
        let parent = core::mem::replace(&mut self.node, node);
        Ok(part.last.then_some(Stop::End { parent: Some(parent), name: Name::Component, slash: part.slash }))
    }

    /// Goes on with the target of a link in the place of everything before it; or gives the file that it stands for.
    async fn follow(&mut self, link: &NodeRef) -> Result<Followed, Errno> {
        self.links += 1;
        if self.links > LINKS_MAX || self.forbids(restriction::NO_SYMLINKS) {
            return Err(Errno::ELOOP);
        }
        if self.forbids(restriction::NO_MAGICLINKS) && leads_into_process(&self.node, link) {
            return Err(Errno::ELOOP);
        }
        let target = self.files.read_link(link, PATH_MAX, &self.process.caller).await?;
        let is_own = target.process == self.process.caller.pid;
        if !is_own {
            check_link(&self.credentials, &self.node, link)?;
        }
        if is_own && target.meaning != LinkMeaning::Path {
            if self.forbids(restriction::BENEATH | restriction::IN_ROOT) {
                return Err(Errno::EXDEV);
            }
            return self.own_file(target.meaning, target.path);
        }
        if link.mount().is_volatile() && target.path.starts_with(PIPE_PREFIX) {
            return self.own_pipe(&target.path).map(Followed::Object);
        }
        self.text = pathname::splice(target.text(link)?, &self.text[self.at..])?;
        self.at = 0;
        if self.text[0] == b'/' {
            if self.forbids(restriction::BENEATH) {
                return Err(Errno::EXDEV);
            }
            let root = self.own_root.clone().unwrap_or_else(|| self.directories.root().clone());
            self.node = root.node;
            self.canonical.clear();
            self.canonical.try_extend_from_slice(&root.path)?;
        }
        Ok(Followed::Path)
    }

    /// What a link into the process itself stands for, which is at this path as far as is known. `ENOENT`.
    fn own_file(&self, meaning: LinkMeaning, path: Vec<u8>) -> Result<Followed, Errno> {
        let LinkMeaning::Descriptor(descriptor) = meaning else {
            let program = self.process.program().ok_or(Errno::ENOENT)?;
            return Ok(Followed::Node(program.node().clone(), path));
        };
        let file = self.process.file(descriptor).map_err(|_| Errno::ENOENT)?;
        match file.node() {
            Some(node) => Ok(Followed::Node(node.clone(), copied(&file.path())?)),
            None => Ok(Followed::Object(file)),
        }
    }

    /// The pipe of this name among the process's own descriptors. `ENOENT`.
    fn own_pipe(&self, name: &[u8]) -> Result<Rc<OpenFile>, Errno> {
        let files = self.process.files();
        let descriptors = files.descriptors();
        let mut open = descriptors.iter().map(|(_, file)| file);
        open.find(|file| *file.path() == name).cloned().ok_or(Errno::ENOENT)
    }

    fn missing(&mut self, part: &Component) -> Result<Found, Errno> {
        pathname::push(&mut self.canonical, &self.text[part.name.clone()])?;
        Ok(Found {
            parent: self.node.clone(),
            name: Name::Component,
            node: None,
            pipe: None,
            slash: part.slash,
            canonical: core::mem::take(&mut self.canonical),
        })
    }

    fn finish(&mut self, parent: Option<NodeRef>, name: Name, slash: bool) -> Found {
        Found {
            parent: parent.unwrap_or_else(|| self.node.clone()),
            name,
            node: Some(self.node.clone()),
            pipe: None,
            slash,
            canonical: core::mem::take(&mut self.canonical),
        }
    }
}

/// Whether a link in this directory is one of a process's in /proc.
fn leads_into_process(directory: &NodeRef, link: &NodeRef) -> bool {
    link.mount().kind() == "proc" && !directory.mount().is_root(directory)
}

/// Links of another process in /proc are for its user alone, whom procfs tells as their owner, and for who may trace it. `EACCES`.
pub fn check_link(credentials: &Credentials, directory: &NodeRef, link: &NodeRef) -> Result<(), Errno> {
    let may = credentials.has(Capability::SysPtrace) || credentials.euid == link.attributes().uid;
    if may || !leads_into_process(directory, link) { Ok(()) } else { Err(Errno::EACCES) }
}

/// The root of what is mounted on a directory, or the directory itself.
pub fn into_mount(mut node: NodeRef) -> NodeRef {
    while let Some(root) = node.covering_root() {
        node = root;
    }
    node
}
