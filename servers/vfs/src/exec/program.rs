//! Finds the file that an exec means (execveat(2)), and checks that it may be executed.

use crate::{
    base::{Base, leases::Wait},
    callers::permission::{self, EXECUTE},
    files::{
        leases::Access,
        mount::MS_NOEXEC,
        vnode::{NodeRef, Running},
    },
    objects::{O_RDONLY, regular::Regular},
    pathname,
    paths::walk::{self, Last},
    processes::{AT_FDCWD, Process},
};
use abi::Errno;
use alloc::{format, vec::Vec};
use sys::fallible::{TryVec, copied};

/// execveat: do not follow a link.
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;

/// How a program is named.
#[derive(Debug)]
pub struct Name {
    /// A descriptor that the path is relative to, or `AT_FDCWD`.
    pub directory: i32,
    /// The path. Empty: the file of the descriptor.
    pub path: Vec<u8>,
    /// `AT_*`.
    pub flags: u64,
}

impl Name {
    /// A path that is relative to the working directory.
    pub fn at(path: Vec<u8>) -> Name {
        Name { directory: AT_FDCWD, path, flags: 0 }
    }

    /// As a record holds it beside the path.
    pub fn to_words(&self) -> [u64; 4] {
        [self.directory as u64, self.flags, 0, 0]
    }

    /// From a record.
    pub fn from_words(path: Vec<u8>, words: [u64; 4]) -> Name {
        Name { directory: words[0] as i32, path, flags: words[1] }
    }

    fn is_of_descriptor(&self) -> bool {
        self.directory != AT_FDCWD && self.path.first() != Some(&b'/')
    }

    /// The path by which the program and its interpreter can find the file, with a NUL behind it.
    #[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
    pub fn shown(&self) -> Result<Vec<u8>, Errno> {
        let mut shown = Vec::new();
        if self.is_of_descriptor() {
            shown.try_extend_from_slice(format!("/dev/fd/{}", self.directory).as_bytes())?;
            if !self.path.is_empty() {
                shown.try_push(b'/')?;
            }
        }
        shown.try_extend_from_slice(&self.path)?;
        shown.try_push(0)?;
        Ok(shown)
    }

    /// Whether that path leads nowhere once the exec is committed: an interpreter could not open its script.
    pub fn vanishes(&self, process: &Process) -> bool {
        let files = process.files();
        let closes = files.descriptors().close_on_exec(self.directory);
        self.is_of_descriptor() && closes == Ok(true)
    }

    /// The file, and its canonical path. `ENOENT`; `ELOOP`: a link that is not to be followed; `EACCES`: the working directory.
    async fn resolve(&self, base: &Base, process: &Process) -> Result<(NodeRef, Vec<u8>), Errno> {
        if self.path.is_empty() {
            if self.directory == AT_FDCWD {
                return Err(Errno::EACCES);
            }
            let file = process.file(self.directory)?;
            let node = file.node().ok_or(Errno::EACCES)?.clone();
            let mut path = copied(&file.path())?;
            if node.is_unlinked() {
                path.try_extend_from_slice(b" (deleted)")?;
            }
            return Ok((node, path));
        }
        let last = if self.flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        let found = walk::resolve(base.files(), process, self.directory, copied(&self.path)?, last).await?;
        let node = found.existing()?.clone();
        let mut canonical = found.canonical;
        pathname::keep(&mut canonical);
        if node.is_link() { Err(Errno::ELOOP) } else { Ok((node, canonical)) }
    }
}

/// A file that may be executed.
pub struct Executable {
    /// Counts as open for reading until the program is loaded.
    pub file: Regular,
    /// Keeps it from being written to.
    pub running: Running,
    /// Its canonical path.
    pub canonical: Vec<u8>,
    /// The first bytes.
    pub head: Vec<u8>,
}

impl Executable {
    /// Finds the file, and reads its head. `EACCES`; `ETXTBSY`: it is open for writing.
    pub async fn find(base: &Base, process: &Process, name: &Name) -> Result<Executable, Errno> {
        let (node, canonical) = name.resolve(base, process).await?;
        if !node.is_regular() || node.mount().has(MS_NOEXEC) {
            return Err(Errno::EACCES);
        }
        permission::check(&process.caller.credentials(), node.attributes(), EXECUTE)?;
        let file = Regular::new(node, O_RDONLY);
        if file.node.leases().has_any() {
            // The error of a former call that had ended when its signal came.
            process.caller.take_cancelled();
            base.break_leases(&process.caller, &file.node, Access::Read, Wait::Yes).await?;
        }
        let running = Running::new(&file.node, &canonical)?;
        let head = base.mappings().read_into(&file.node, 0, elf::HEAD_BYTES).await?;
        Ok(Executable { file, running, canonical, head })
    }
}
