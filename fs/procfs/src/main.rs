//! procfs: processes and the machine as files under /proc (proc(5)) and /sys (sysfs(5)).
//!
//! It has no state: every read fetches the figures from pm, vm, vfs and the kernel, and a node's number encodes the file. So a
//! restart is not noticed.
//!
//! * `tree`: directories, files and links as a file system;
//! * `top`, `settings` (/proc/sys), `system` and `graphics` (/sys): one line for each file that belongs to no process; `fixed`: what such a line says;
//! * `drvs`: /proc/drvs;
//! * `process_files`: one line for each file of a process;
//! * `system_text`, `process_text`: what the files contain;
//! * `source`: interface to the figures; `live`: its implementation.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod drvs;
mod fixed;
mod graphics;
mod live;
mod oom;
mod pidfd;
mod process_files;
mod process_text;
mod processor;
mod settings;
mod source;
mod system;
mod system_text;
mod system_v;
mod text;
mod top;
mod tree;

use abi::{
    Errno,
    container::CONTAINERS,
    fs::{TREE_PROC, TREE_SYS},
};
use fixed::Entries;
use fs::preserve::VolumeMemory;
use fs::server::{MountRequest, Server};
use live::{Live, Optional};
use tree::Tree;

sys::program!(main);

/// The system's processes, /sys, and the processes of each container (`abi::fs::tree_of_container`).
const TREES: usize = CONTAINERS + 1;

/// What /proc has besides processes.
const PROC: Entries = Entries::new(&[top::TOP, settings::SETTINGS]);

fn main(start: sys::Start) {
    let screen = Optional::new(start.argument("screen").unwrap_or("framebuffer"));
    let console = Optional::new("console");
    // Every mount of a tree shows the same processes, and the same system.
    let mount = |_: &MountRequest, _: Option<VolumeMemory>| Err::<Tree<Live>, _>(Errno::ENODEV);
    let trees: [_; TREES] = core::array::from_fn(|tree| match tree as u64 {
        TREE_SYS => {
            Tree::of_system(Live { container: 0, screen, console }, Entries::new(&[system::SYSTEM, graphics::GRAPHICS]))
        }
        TREE_PROC => Tree::of_processes(Live { container: 0, screen, console }, PROC, 0),
        tree => {
            let container = (tree - TREE_SYS) as u8;
            Tree::of_processes(Live { container, screen, console }, PROC, container)
        }
    });
    server::run(&mut Server::mounted(trees, mount));
}
