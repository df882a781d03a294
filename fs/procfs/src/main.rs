//! procfs: processes and the machine as files under /proc (proc(5)).
//!
//! It has no state: every read fetches the figures from pm, vm, vfs and the kernel, and a node's number encodes the file. So a
//! restart is not noticed.
//!
//! * `tree`: the directories and files; `system_text`, `process_text`: what they contain;
//! * `source`: interface to the figures; `live`: its implementation.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod live;
mod process_text;
mod source;
mod system_text;
mod system_v;
mod text;
mod tree;

use abi::Errno;
use fs::preserve::VolumeMemory;
use fs::server::{MountRequest, Server};
use live::Live;
use tree::Proc;

sys::program!(main);

fn main(_: sys::Start) {
    // Every mount shows the same processes.
    let mount = |_: &MountRequest, _: Option<VolumeMemory>| Ok::<_, Errno>(Proc::new(Live));
    server::run(&mut Server::mounted(Proc::new(Live), mount));
}
