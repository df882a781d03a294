//! Mounts file systems, at the start and by mount(2); sync. The other files: `calls` for mount(2), umount2(2) and pivot_root(2), `tree` for
//! mounts of what is mounted already, and namespaces.

pub mod calls;
mod options;
pub mod tree;

use crate::{
    base::Base,
    devices::OWN_NAME,
    events::Startup,
    files::{
        Files,
        attributes::NewAttributes,
        loops::{LOOP_MAJOR, LoopUse},
        mount::{MS_RDONLY, Mount, NewMount},
        stat::{major, make_device, minor},
        vnode::{Description, NodeRef},
    },
    keep::{ROOT, records::GlobalRecord},
    peers::Role,
    processes::Process,
};
use abi::{Errno, block, device::Device, fs};
use alloc::{format, vec::Vec};
use options::Options;
use sys::{
    fallible::copied,
    grant::{Access, GrantedBuffer},
};

/// The file system of loop devices.
const LOOP_SERVICE: &str = "loop_ext2";
/// Pause before a driver that is not up yet is asked again, at the start.
const DRIVER_PAUSE_NS: u64 = 1_000_000;
/// Period of the background sync.
const SYNC_PERIOD_NS: u64 = 5_000_000_000;

/// What to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan<'a> {
    service: &'a str,
    /// Name of the block device in /dev.
    disk: Option<&'a str>,
    target: &'a str,
}

/// `target=service,disk` of the arguments; `root` stands for `/`.
fn parse_argument(word: &str) -> Option<Plan<'_>> {
    let (target, rest) = word.split_once('=')?;
    let (service, disk) = rest.split_once(',').map_or((rest, None), |(service, disk)| (service, Some(disk)));
    Some(Plan { service, disk, target: if target == "root" { "/" } else { target } })
}

/// A file system to be mounted.
struct NewFileSystem {
    served: Served,
    device: Option<Device<'static>>,
    options: Options,
    /// MS_*.
    flags: u64,
}

/// The type of a volume with a journal.
pub const WITH_JOURNAL: &str = "ext3";

/// Whether a type of file system needs no block device.
fn needs_no_device(kind: &str) -> bool {
    kind != "ext2"
}

/// What serves a type of file system.
#[derive(Clone, Copy)]
struct Served {
    service: &'static str,
    role: Role,
    /// The type as /proc/mounts shows it.
    kind: &'static str,
    /// Which of the trees of its service it is.
    tree: u64,
}

/// The service behind a type of mount(2).
fn service_of(kind: &[u8]) -> Option<Served> {
    let (service, role, kind, tree) = match kind {
        // With a journal or without: the volume tells.
        b"ext2" | b"ext3" => ("ext2", Role::FileSystem, "ext2", 0),
        b"tmpfs" => ("tmpfs", Role::FileSystem, "tmpfs", 0),
        b"proc" | b"procfs" => ("procfs", Role::StatelessFileSystem, "proc", fs::TREE_PROC),
        b"sysfs" => ("procfs", Role::StatelessFileSystem, "sysfs", fs::TREE_SYS),
        b"devtmpfs" | b"devfs" => ("devfs", Role::StatelessFileSystem, "devtmpfs", 0),
        // A driver too: requests that wait for input must not hold up others.
        b"devpts" => ("tty", Role::Driver, "devpts", 0),
        _ => return None,
    };
    Some(Served { service, role, kind, tree })
}

/// The name of the service for a file system on this device: one on a loop device has a process of its own, which may wait for vfs.
fn server_of(served: Served, device: Option<Device<'static>>) -> &'static str {
    if device.is_some_and(|device| device.service == OWN_NAME) { LOOP_SERVICE } else { served.service }
}

/// The type of what a service has mounted.
pub fn kind_of(service: &str) -> &str {
    if service == LOOP_SERVICE { "ext2" } else { service }
}

/// Counts a mount as a user of the loop device that it is mounted from, if it is.
pub fn use_disk(base: &Base, mount: &Mount) {
    if major(mount.device()) == LOOP_MAJOR
        && let Ok(device) = base.loops().device(minor(mount.device()).into())
    {
        mount.file_system().use_disk(LoopUse::new(device));
    }
}

/// `EACCES`: a loop device that refuses writes is to be mounted with writes. `EINVAL`: nothing is behind it.
fn check_disk(base: &Base, device: Device<'static>, flags: u64) -> Result<(), Errno> {
    if device.service != OWN_NAME {
        return Ok(());
    }
    let disk = base.loops().device(device.minor.into())?;
    let backing = disk.backing().map_err(|_| Errno::EINVAL)?;
    if backing.is_read_only() && flags & MS_RDONLY == 0 { Err(Errno::EACCES) } else { Ok(()) }
}

/// Mounts what the arguments say, in their order. Without a root file system vfs cannot go on.
pub async fn mount_all(base: &Base, startup: &Startup, arguments: &'static str) {
    for word in arguments.split_ascii_whitespace().filter(|word| Device::parse(word).is_none()) {
        let plan = parse_argument(word)
            .unwrap_or_else(|| panic!("the argument {word:?} is not of the form target=service[,disk]"));
        if base.files().mounts.find(|mount| mount.namespace() == 0 && mount.path() == plan.target.as_bytes()).is_some()
        {
            // By a predecessor that did not come to the end of the arguments.
            continue;
        }
        let mut result = mount_plan(base, &plan).await;
        while result == Err(Errno::EAGAIN) {
            // The driver is not up yet, or just now.
            base.runtime().sleep_ns(DRIVER_PAUSE_NS).await;
            result = mount_plan(base, &plan).await;
        }
        match result {
            Ok(()) => {}
            Err(error) if plan.target == "/" => panic!("the root file system cannot be mounted ({word}): {error}"),
            Err(error) => sys::log!("{} cannot be mounted ({word}): {error}", plan.target),
        }
    }
    base.store().set_global(&GlobalRecord { mounted: true, ..base.store().global() });
    startup.mounted().reach();
}

async fn mount_plan(base: &Base, plan: &Plan<'_>) -> Result<(), Errno> {
    let covers = if plan.target == "/" { None } else { Some(walk_from_root(base.files(), plan.target).await?) };
    let served = service_of(plan.service.as_bytes()).ok_or(Errno::ENODEV)?;
    let device = plan.disk.map(|name| base.devices().disk(name)).transpose()?;
    let new = NewFileSystem { served, device, options: Options::default(), flags: 0 };
    let target = match &covers {
        Some(covers) => tree::path_in_mount(covers.mount(), plan.target.as_bytes())?,
        None => copied(plan.target.as_bytes())?,
    };
    mount(base, new, target, covers, None).await
}

/// Asks drivers for the sizes of their disks, which /proc shows. Those that are not up show none.
pub async fn measure_disks(base: &Base) {
    for (disk, _) in base.devices().disks().filter(|(disk, _)| disk.service != OWN_NAME) {
        let Ok(service) = base.peers().connect(disk.service, Role::Driver) else { continue };
        let reply = base.peers().ask(service, block::Open { minor: disk.minor.into() }.message()).await;
        if let Ok((bytes, ..)) = reply.and_then(|reply| block::Open::results(&reply)) {
            base.devices().set_bytes(&disk, bytes);
        }
    }
}

/// The directory at a plain path from the root: for the start, when there is no process yet.
async fn walk_from_root(files: &Files, path: &str) -> Result<NodeRef, Errno> {
    let mut node = files.mounts.root(0)?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let found = files.lookup(&node, name.as_bytes()).await?.ok_or(Errno::ENOENT)?;
        node = found.covering_root().unwrap_or(found);
    }
    if node.is_directory() { Ok(node) } else { Err(Errno::ENOTDIR) }
}

/// Mounts a file system on the directory `covers`, whose path below the root of its mount is `target`; `None`: as root.
#[expect(clippy::disallowed_macros, reason = "small, of a call in progress: from the heap's reserve")]
async fn mount(
    base: &Base,
    new: NewFileSystem,
    target: Vec<u8>,
    covers: Option<NodeRef>,
    process: Option<&Process>,
) -> Result<(), Errno> {
    let NewFileSystem { served, device, options, flags } = new;
    let service = base.peers().connect(server_of(served, device), served.role)?;
    let driver = device.map_or("", |device| device.service);
    let grant = GrantedBuffer::new(driver.into(), service.endpoint(), Access::Read)?;
    let number = base.shared().new_serial();
    let minor = match device {
        Some(device) => device.minor.into(),
        // The first one of the start has the same number in every incarnation.
        None => options.minor(if process.is_some() { number } else { 0 }) | served.tree,
    };
    let request = fs::Mount { grant: grant.id(), bytes: driver.len() as u64, minor, flags: flags & MS_RDONLY };
    let recalled = process.and_then(|process| process.caller.recalled(fs::Mount::LABEL));
    let reply = match (recalled, process) {
        (Some(reply), _) => reply,
        (None, Some(process)) => base.peers().ask_once(&process.caller, service, request.message()).await?,
        (None, None) => base.peers().ask(service, request.message()).await?,
    };
    let description = Description::from(fs::Mount::results(&reply)?);
    let told = reply.words[0];
    let flags = if told & fs::MOUNTED_READ_ONLY != 0 { flags | MS_RDONLY } else { flags };
    let has_journal = told & fs::MOUNTED_JOURNAL != 0;
    let kind = if has_journal { WITH_JOURNAL } else { served.kind };
    let mount = Mount::new(
        NewMount {
            service,
            kind: kind.into(),
            source: device.map_or(kind.into(), |device| format!("/dev/{}", device.name)),
            target,
            flags,
            volatile: told & fs::MOUNTED_VOLATILE != 0,
            fixed: told & fs::MOUNTED_FIXED != 0,
            in_memory: told & fs::MOUNTED_IN_MEMORY != 0,
            device: device.map_or(make_device(0, number as u32), |device| device.number()),
            namespace: process.map_or(0, |process| process.caller.mounts()),
            users: covers.as_ref().map_or(0, |covers| covers.mount().users()),
        },
        base.shared().clone(),
    );
    use_disk(base, &mount);
    let root = mount.adopt(description);
    mount.file_system().set_root(root.number());
    mount.set_root(root);
    let user = process.map_or(ROOT, |process| process.caller.user());
    tree::place(base, &mount, covers, user)?;
    if mount.is_in_memory() {
        own_root(base.files(), &mount, &options).await;
    }
    Ok(())
}

/// Sets mode and owner of the root of a file system in memory, as the options say.
async fn own_root(files: &Files, mount: &Mount, options: &Options) {
    let Some(root) = mount.root() else { return };
    let mut result = Ok(());
    if options.uid.is_some() || options.gid.is_some() {
        result = files.set(&root, NewAttributes::Owner(options.uid, options.gid)).await;
    }
    if let (Ok(()), Some(mode)) = (result, options.mode) {
        result = files.set(&root, NewAttributes::Mode(mode)).await;
    }
    if let Err(error) = result {
        sys::log!("mode and owner of the root of {} cannot be set: {error}", mount.kind());
    }
}

/// Syncs all file systems.
pub async fn sync(base: &Base) -> Result<(), Errno> {
    let mut result = base.mappings().write_back_all(None).await;
    let mounts = base.files().mounts.all();
    for mount in mounts.iter().filter(|mount| mount.needs_sync()) {
        mount.take_dirty();
        result = result.and(base.peers().ask(mount.service(), fs::Sync {}.message()).await.map(drop));
    }
    result
}

/// Begins `vfs::SyncAll` in the background. A successor does it again if pm has not heard of its end.
pub fn begin_sync(base: &'static Base, unmount: bool) {
    base.store().set_global(&GlobalRecord { sync: 1 + unmount as u8, ..base.store().global() });
    base.runtime().spawn(async move {
        let result = sync_all(base, unmount).await;
        base.notices().synced(result);
    });
}

/// `vfs::SyncAll`: with `unmount` the file systems are marked clean, and refuse every request from then on.
pub async fn sync_all(base: &Base, unmount: bool) -> Result<(), Errno> {
    let mut result = sync(base).await;
    if !unmount {
        return result;
    }
    let mounts = base.files().mounts.all();
    for mount in mounts.iter().rev().filter(|mount| mount.needs_sync()) {
        base.files().put_dropped(mount);
        mount.set_flags(mount.flags() | MS_RDONLY);
        let root = mount.root().map_or(0, |root| root.number());
        result = result
            .and(base.peers().ask(mount.service(), fs::Unmount { node: root, force: true }.message()).await.map(drop));
    }
    result
}

/// Syncs dirty file systems and reports uses that have ended, periodically, for ever.
pub async fn sync_periodically(base: &Base) {
    loop {
        base.runtime().sleep_ns(SYNC_PERIOD_NS).await;
        base.cache().set_time(sys::time::both_ns().0);
        if let Err(error) = base.mappings().write_back_all(None).await {
            sys::log!("a mapped file cannot be written back: {error}");
        }
        let mounts = base.files().mounts.all();
        for mount in &mounts {
            base.files().put_dropped(mount);
            if !mount.take_dirty() || !mount.needs_sync() {
                continue;
            }
            if let Err(error) = base.peers().ask(mount.service(), fs::Sync {}.message()).await {
                sys::log!("{} cannot be synced: {error}", mount.source());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_what_to_mount_where() {
        let root = Plan { service: "ext2", disk: Some("vda"), target: "/" };
        assert_eq!(parse_argument("root=ext2,vda"), Some(root));
        assert_eq!(parse_argument("/dev=devfs"), Some(Plan { service: "devfs", disk: None, target: "/dev" }));
        assert_eq!(parse_argument("/dev"), None);
    }
}
