//! The tmpfs process: serves vfs's requests for file systems in memory.
//!
//! Its preserved memory has what every file system's has (`fs::preserve`), without blocks in a cache, followed by the areas of the
//! file systems. The system file has to reserve `KEEP_BYTES`, which are allocated on first use.

use abi::{Endpoint, vm};
use fs::Errno;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::Start;
use sys::ipc;
use sys::keep::{Keep, Part, Parts};

use crate::plan::{PAGE, Plan};
use crate::volume::{Format, Options, Tmpfs};

/// File systems mounted at a time.
pub const VOLUMES: usize = 8;
/// Whether this is a service, not a part of a test, of which many run at a time on a host.
const IS_SERVICE: bool = cfg!(target_os = "none");
/// Limit of the content of one file system, in bytes.
const MAX_BYTES: u64 = if IS_SERVICE { 64 << 20 } else { 4 << 20 };
/// Bytes of the area of one file system.
const AREA_BYTES: usize = Plan::new(MAX_BYTES).bytes().next_multiple_of(PAGE);
const LAYOUT: Layout = Layout { volumes: VOLUMES, cache_bytes: 0 };
/// Preserved memory that the system file has to reserve, in bytes.
pub const KEEP_BYTES: usize = LAYOUT.bytes() + VOLUMES * AREA_BYTES;

/// Serves forever.
pub fn main(start: Start) {
    let parts = Parts::new(Keep::take(KEEP_BYTES).expect("the preserved memory is taken once"));
    let preserved = Preserved::open_parts(parts.clone(), LAYOUT, start.kind);
    let mount = move |request: &MountRequest, memory: Option<VolumeMemory>| mount(&parts, request, memory);
    server::run(&mut Server::resuming(mount, preserved))
}

fn mount(parts: &Parts, request: &MountRequest, memory: Option<VolumeMemory>) -> Result<Tmpfs, Errno> {
    if request.source.service.is_some() {
        return Err(Errno::EINVAL);
    }
    let undo = memory.ok_or(Errno::ENOMEM)?.cache.undo;
    let options = Options { read_only: request.read_only, clock: sys::time::real_ns };
    if let Some(memo) = request.memo {
        let area = area(parts, memo[0]).ok_or(Errno::EIO)?;
        return Tmpfs::resume(area, undo, options, memo);
    }
    let free = (0..VOLUMES as u64).find_map(|number| Some((number, area(parts, number)?)));
    let (number, area) = free.ok_or(Errno::ENFILE)?;
    let identity = request.source.minor;
    let seed = sys::random::seed().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let format = Format { plan: Plan::new(content_bytes(identity)), identity, seed };
    Ok(Tmpfs::mount(area, number, undo, options, format))
}

/// `None` while it is in use.
fn area(parts: &Parts, number: u64) -> Option<Part> {
    let number = usize::try_from(number).ok().filter(|&number| number < VOLUMES)?;
    let start = LAYOUT.bytes() + number * AREA_BYTES;
    parts.lend(start..start + AREA_BYTES)
}

/// Returns the size that the mount requests, by default half of the machine's memory.
fn content_bytes(minor: u64) -> u64 {
    let wanted = match minor & u64::from(u32::MAX) {
        0 => total_memory() / 2,
        kib => kib * 1024,
    };
    wanted.min(MAX_BYTES)
}

fn total_memory() -> u64 {
    let reply = ipc::call(Endpoint::VM, &vm::MemoryInfo {}.message());
    reply.and_then(|reply| vm::MemoryInfo::results(&reply)).map_or(MAX_BYTES, |(total, ..)| total)
}
