//! What /proc/self/exe says to the process itself, without asking procfs: each static program reads that link when it starts.

use crate::{
    callers::permission::{EXECUTE, check},
    files::Files,
    paths::walk,
    processes::Process,
};
use abi::{container::Part, fs};
use alloc::{rc::Rc, vec::Vec};

/// What the link says, if `path` is the path of it. `None`: it is another path, or it has to be resolved like any other.
pub fn path(files: &Files, process: &Process, path: &[u8]) -> Option<Rc<Vec<u8>>> {
    if path != b"/proc/self/exe" {
        return None;
    }
    let credentials = process.caller.credentials();
    let root = process.directories().ok()?.root().node.clone();
    check(&credentials, root.attributes(), EXECUTE).ok()?;
    let proc = walk::into_mount(files.known(&root, b"proc")??);
    check(&credentials, proc.attributes(), EXECUTE).ok()?;
    let tree = fs::volume_of(proc.number());
    let shows_it = tree == fs::TREE_PROC || tree == fs::tree_of_container(process.caller.parts().of(Part::Processes));
    let is_proc = proc.mount().kind() == "proc" && proc.mount().is_root(&proc);
    if is_proc && shows_it { process.program()?.path() } else { None }
}
