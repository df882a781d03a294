//! The ext2 process: answers vfs for ext2 file systems on the block devices of other processes.
//!
//! Argument `cache_kib`: memory for cached blocks of each mounted file system. It is preserved memory, which the system file has to
//! give: see `layout`.

use abi::{Endpoint, vm};
use fs::Errno;
use fs::block_client::{BlockClient, Drivers};
use fs::file_system::Timestamp;
use fs::linux::timestamp;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use fs::server::{MountRequest, Server};
use server::Inbox;
use sys::Start;
use sys::{ipc, keep::Keep};

use crate::volume::{Ext2, Memo, Options};

/// The machine's memory is so many times that for cached blocks of a file system, unless the arguments say otherwise.
const MEMORY_IN_CACHES: u64 = 32;
/// Limits of the memory for cached blocks, in KiB. `keep_bytes` and `heap_bytes` of the system file suit the upper one.
const CACHE_KIB: core::ops::RangeInclusive<u64> = 2 * 1024..=64 * 1024;
/// File systems mounted at a time.
const VOLUMES: usize = 8;

/// Serves for ever.
pub fn main(start: Start) {
    let cache_kib = start.argument("cache_kib").and_then(|text| text.parse().ok()).unwrap_or_else(cache_kib);
    let layout = layout(cache_kib);
    let keep = Keep::take(layout.bytes()).expect("the preserved memory is taken once");
    let inbox = Inbox::default();
    let drivers = Drivers::new(&inbox);
    let of_mount = drivers.clone();
    let mount = move |request: &MountRequest, memory: Option<VolumeMemory>| mount(&of_mount, request, memory);
    let preserved = Preserved::open(keep, layout, start.kind);
    server::run_from(&mut Server::resuming_over(drivers, mount, preserved), &inbox)
}

/// Memory for the cached blocks of a file system on this machine, in KiB. Each incarnation gets the same answer, or none and dies: with
/// another layout it could not read what its predecessor has left.
fn cache_kib() -> usize {
    let reply = ipc::call(Endpoint::VM, &vm::MemoryInfo {}.message());
    let (total, ..) = reply.and_then(|reply| vm::MemoryInfo::results(&reply)).expect("vm knows the memory");
    (total / MEMORY_IN_CACHES / 1024).clamp(*CACHE_KIB.start(), *CACHE_KIB.end()) as usize
}

/// What the preserved memory is used for; `keep_bytes` of the system file has to be `Layout::bytes` at least.
pub const fn layout(cache_kib: usize) -> Layout {
    Layout { volumes: VOLUMES, cache_bytes: (cache_kib * 1024).next_multiple_of(64 * 1024) }
}

fn mount(drivers: &Drivers, request: &MountRequest, memory: Option<VolumeMemory>) -> Result<Ext2<BlockClient>, Errno> {
    let service = request.source.service.ok_or(Errno::ENODEV)?;
    let memory = memory.ok_or(Errno::ENOMEM)?;
    let options = |device: &BlockClient| Options { read_only: request.read_only || device.is_read_only(), clock: now };
    match request.memo {
        Some(words) => {
            let memo = Memo::from_words(words)?;
            let device = BlockClient::resume(drivers, service, request.source.minor, memo.device)?;
            let options = options(&device);
            Ext2::resume(device, options, memory, memo)
        }
        None => {
            let device = BlockClient::open(drivers, service, request.source.minor)?;
            let options = options(&device);
            Ext2::mount(device, options, memory)
        }
    }
}

fn now() -> Timestamp {
    timestamp(sys::time::real_ns())
}
