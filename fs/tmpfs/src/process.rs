//! The tmpfs process: serves vfs's requests for file systems in memory.
//!
//! Its preserved memory has ext2's layout (`fs::preserve`), with a small cache for each file system, followed by the areas that are
//! their devices. The system file has to reserve `KEEP_BYTES`, which are allocated on first use.

use abi::{Endpoint, vm};
use ext2::{Ext2, Memo, Options};
use fs::Errno;
use fs::file_system::Timestamp;
use fs::linux::timestamp;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use sys::Start;
use sys::ipc;
use sys::keep::{Keep, Part, Parts};

use crate::format::Plan;
use crate::memory::MemoryDevice;

/// File systems mounted at a time.
pub const VOLUMES: usize = 8;
/// Whether this is a service, not a part of a test, of which many run at a time on a host.
const IS_SERVICE: bool = cfg!(target_os = "none");
/// Limit of the content of one file system, in bytes.
const MAX_BYTES: u64 = if IS_SERVICE { 64 << 20 } else { 4 << 20 };
/// Size of the largest device, in bytes.
pub const AREA_BYTES: usize = if IS_SERVICE { 69 << 20 } else { 5 << 20 };
const LAYOUT: Layout = Layout { volumes: VOLUMES, cache_bytes: 512 * 1024 };
/// Preserved memory that the system file has to reserve, in bytes.
pub const KEEP_BYTES: usize = LAYOUT.bytes() + VOLUMES * AREA_BYTES;

/// Serves forever.
pub fn main(start: Start) {
    let parts = Parts::new(Keep::take(KEEP_BYTES).expect("the preserved memory is taken once"));
    let preserved = Preserved::open_parts(parts.clone(), LAYOUT, start.kind);
    let mount = move |request: &MountRequest, memory: Option<VolumeMemory>| mount(&parts, request, memory);
    server::run(&mut Server::resuming(mount, preserved))
}

fn mount(parts: &Parts, request: &MountRequest, memory: Option<VolumeMemory>) -> Result<Ext2<MemoryDevice>, Errno> {
    if request.source.service.is_some() {
        return Err(Errno::EINVAL);
    }
    let memory = memory.ok_or(Errno::ENOMEM)?;
    let options = Options { read_only: request.read_only, clock: now, in_memory: true };
    match request.memo {
        Some(words) => {
            let memo = Memo::from_words(words)?;
            let [number, bytes] = memo.device;
            let area = area(parts, number).ok_or(Errno::EIO)?;
            Ext2::resume(MemoryDevice::new(area, number, bytes as usize), options, memory, memo)
        }
        None => {
            let plan = Plan::new(content_bytes(request.source.minor));
            let free = (0..VOLUMES as u64).find_map(|number| Some((number, area(parts, number)?)));
            let (number, area) = free.ok_or(Errno::ENFILE)?;
            let mut device = MemoryDevice::new(area, number, plan.bytes());
            device.format(&plan, request.source.minor, now());
            Ext2::mount(device, options, memory)
        }
    }
}

/// `None` while it is in use.
fn area(parts: &Parts, number: u64) -> Option<Part> {
    let start = LAYOUT.bytes() + usize::try_from(number).ok().filter(|&number| number < VOLUMES)? * AREA_BYTES;
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

fn now() -> Timestamp {
    timestamp(sys::time::real_ns())
}
