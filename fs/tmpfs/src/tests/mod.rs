//! tmpfs as a whole, over preserved memory that the test keeps. `check` looks for what no operation may leave: it is to tmpfs what e2fsck is to
//! ext2. What tests of any file system need they share with ext2's.

mod behaviour;
mod check;
mod deaths;
#[path = "../../../ext2/tests/common/files.rs"]
mod files;
#[path = "../../../ext2/tests/common/grants.rs"]
mod grants;
mod memory;
#[path = "../../../ext2/tests/common/model.rs"]
mod model;
mod random;
#[path = "../../../ext2/tests/common/run.rs"]
mod run;
mod space;

use files::*;

use std::sync::atomic::AtomicU64;

use fs::file_system::FileSystem;
use fs::preserve::{Layout, Preserved};
use sys::StartKind;
use sys::keep::{Keep, Parts};

use crate::plan::Plan;
use crate::volume::{Format, Options, Tmpfs};

const LAYOUT: Layout = Layout { volumes: 1, cache_bytes: 0 };
const OPTIONS: Options = Options { read_only: false, clock: now };

fn now() -> u64 {
    NOW.seconds as u64 * 1_000_000_000 + u64::from(NOW.nanos)
}

/// Preserved memory as vm gives it, for a file system of this plan.
fn words(plan: Plan) -> &'static [AtomicU64] {
    sys::host::zeroed(LAYOUT.bytes() + plan.bytes())
}

/// The parts of preserved memory, and what the process keeps in it.
fn open(words: &'static [AtomicU64], kind: StartKind) -> (Parts, Preserved) {
    let parts = Parts::new(Keep::simulated(words, u64::MAX));
    (parts.clone(), Preserved::open_parts(parts, LAYOUT, kind))
}

/// A new file system in this memory.
fn mount(words: &'static [AtomicU64], plan: Plan) -> Tmpfs {
    let (parts, preserved) = open(words, StartKind::Fresh);
    let area = parts.lend(LAYOUT.bytes()..LAYOUT.bytes() + plan.bytes()).unwrap();
    Tmpfs::mount(area, 0, preserved.undo.clone(), OPTIONS, Format { plan, identity: 7, seed: 99 })
}

/// The file system that a predecessor has left in this memory.
fn resume(words: &'static [AtomicU64], memo: [u64; 4]) -> Tmpfs {
    let (parts, preserved) = open(words, StartKind::Restarted);
    let area = parts.lend(LAYOUT.bytes()..parts.len()).unwrap();
    Tmpfs::resume(area, preserved.undo.clone(), OPTIONS, memo).expect("what the predecessor has left")
}

/// A new file system with this many pages.
fn volume(pages: usize) -> Tmpfs {
    let plan = Plan::of_pages(pages);
    mount(words(plan), plan)
}

fn make(volume: &mut Tmpfs, name: &str) -> u64 {
    volume.make_node(volume.root(), name.as_bytes(), 0o100_644, 0, ROOT_USER).unwrap()
}

fn free_pages(volume: &Tmpfs) -> u64 {
    volume.statistics().blocks_free
}
