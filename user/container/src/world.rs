//! The world of a new container, as its first process makes it before it becomes the command: its root, /proc, devices, name, priorities.
//!
//! All of it happens inside, so that a mistake concerns nobody else; what is bound is taken from outside before the root changes.

use crate::command::{Run, Scheduling};
use abi::Errno;
use core::ffi::CStr;
use sys::linux::{self, Arguments, open};
use sys::linux_processes::{self as processes, mount, resource};

/// Nodes that every program may have, of what the root has a /dev for.
const DEVICES: [&CStr; 6] = [c"null", c"zero", c"full", c"random", c"urandom", c"tty"];
/// Real-time priorities of a container that may have them.
const MAX_PRIORITY: u64 = 99;
/// Longest path of a node or of /proc in the root.
const PATH_BYTES: usize = 256;

/// A step that failed, and why.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// What was tried.
    pub step: &'static str,
    /// The error.
    pub error: Errno,
}

fn step(step: &'static str, done: sys::Result<()>) -> Result<(), Failure> {
    done.map_err(|error| Failure { step, error })
}

/// Closes what the caller had open but its standard input and output, through which a process could reach outside.
pub fn close_others() -> Result<(), Failure> {
    step("closing descriptors", processes::close_from(3))
}

/// Sets what nobody inside has the right to raise, before the container is made: its processes inherit it.
pub fn set_priorities(scheduling: Scheduling) -> Result<(), Failure> {
    let (nice, priority) = match scheduling {
        Scheduling::Shared(nice) => (nice, 0),
        Scheduling::RealTime => (0, MAX_PRIORITY),
    };
    step("setting RLIMIT_RTPRIO", processes::set_limit(resource::REAL_TIME_PRIORITY, priority))?;
    step("setting the niceness", processes::set_priority(nice))
}

/// Makes the world of the container.
pub fn make(run: &Run, arguments: &Arguments) -> Result<(), Failure> {
    let root = arguments.get_bytes(run.root).ok_or(Failure { step: "reading --root", error: Errno::EINVAL })?;
    step("binding the root", processes::mount(root, root, c"", mount::BIND | mount::RECURSIVE))?;
    let no_devices = mount::REMOUNT | mount::BIND | mount::NO_DEVICES;
    step("closing devices in the root", processes::mount(c"none", root, c"", no_devices))?;
    mount_proc(root)?;
    bind_devices(root)?;
    step("entering the root", processes::change_directory(root))?;
    let old = linux::open(c"/", open::READ, 0).map_err(|error| Failure { step: "opening the old root", error })?;
    step("changing the root", processes::pivot_root(c".", c"."))?;
    step("going back to the old root", processes::change_directory_to(old))?;
    step("leaving the old root", processes::unmount(c".", mount::DETACH))?;
    step("entering /", processes::change_directory(c"/"))?;
    step("naming the host", processes::set_host_name(run.name.as_str()))
}

/// Shows the processes of the container, if the root has a directory for that.
fn mount_proc(root: &CStr) -> Result<(), Failure> {
    let target = Path::new(&[root.to_bytes(), b"/proc"]).map_err(|error| Failure { step: "naming /proc", error })?;
    match processes::mount(c"proc", target.text(), c"proc", 0) {
        Err(Errno::ENOENT) => Ok(()),
        other => step("mounting /proc", other),
    }
}

/// Binds the nodes that every program may have, if the root has a directory for them. Files that are missing to bind them to are made.
fn bind_devices(root: &CStr) -> Result<(), Failure> {
    for name in DEVICES {
        let [from, to] = [&b""[..], root.to_bytes()].map(|root| Path::new(&[root, b"/dev/", name.to_bytes()]));
        let (Ok(from), Ok(to)) = (from, to) else {
            return Err(Failure { step: "naming a device", error: Errno::ENAMETOOLONG });
        };
        match processes::mount(from.text(), to.text(), c"", mount::BIND | mount::RECURSIVE) {
            Err(Errno::ENOENT) => match linux::open(to.text(), open::WRITE | open::CREATE, 0o644) {
                Ok(file) => step("making a file in /dev", linux::close(file))?,
                // There is no /dev.
                Err(_) => return Ok(()),
            },
            bound => {
                step("binding a device", bound)?;
                continue;
            }
        }
        step("binding a device", processes::mount(from.text(), to.text(), c"", mount::BIND | mount::RECURSIVE))?;
    }
    Ok(())
}

/// Text of a path, for a call.
struct Path {
    bytes: [u8; PATH_BYTES],
}

impl Path {
    /// The parts one after the other. `ENAMETOOLONG`.
    fn new(parts: &[&[u8]]) -> Result<Path, Errno> {
        let mut bytes = [0; PATH_BYTES];
        let mut used = 0;
        for part in parts {
            let to = bytes.get_mut(used..used + part.len()).ok_or(Errno::ENAMETOOLONG)?;
            to.copy_from_slice(part);
            used += part.len();
        }
        if used < PATH_BYTES { Ok(Path { bytes }) } else { Err(Errno::ENAMETOOLONG) }
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}
