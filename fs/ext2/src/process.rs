//! The ext2 process: answers vfs for ext2 file systems on the block devices of other processes.
//!
//! Argument `cache_kib`: memory for cached blocks of each mounted file system.

use fs::Errno;
use fs::block_client::BlockClient;
use fs::file_system::Timestamp;
use fs::linux::timestamp;
use fs::server::{MountRequest, Server};
use sys::Start;

use crate::volume::{Ext2, Options};

/// Memory for cached blocks unless the arguments say otherwise, in KiB.
const CACHE_KIB: usize = 8 * 1024;
/// Unit of a cache's budget, in KiB.
const BUDGET_UNIT_KIB: usize = 4;

/// Serves for ever.
pub fn main(start: Start) {
    let cache_kib = start.argument("cache_kib").and_then(|text| text.parse().ok()).unwrap_or(CACHE_KIB);
    server::run(&mut Server::new(|request: &MountRequest| mount(request, cache_kib)))
}

fn mount(request: &MountRequest, cache_kib: usize) -> Result<Ext2<BlockClient>, Errno> {
    let service = request.source.service.ok_or(Errno::ENODEV)?;
    let device = BlockClient::open(service, request.source.minor)?;
    let read_only = request.read_only || device.is_read_only();
    Ext2::mount(device, Options { read_only, cache_budget: cache_kib / BUDGET_UNIT_KIB, clock: now })
}

fn now() -> Timestamp {
    timestamp(sys::time::real_ns())
}
