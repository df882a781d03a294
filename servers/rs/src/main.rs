//! rs, the reincarnation server: life and death of services.
//!
//! The kernel starts it beside vm. It reads the system table out of the boot archive, starts every service with the rights that stand
//! there, asks each for signs of life, and starts a successor for whichever dies, hangs or is killed. Binaries come from the archive,
//! since the disk may be what has failed.
//!
//! Reading order: `supervisor`, `start`, `restart` (what follows a death) and `update` decide (`policy`, `record`); `world` is what they act on, `launch` the real one;
//! `serve` is the loop, with `requests` to others; `control` is what people ask. `autopsy`, `backtrace` and `reports` make crash reports.
//!
//! rs waits for vm alone: every other service may be the one that rs has to restart.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod autopsy;
mod backtrace;
mod changes;
mod control;
mod device;
#[cfg(test)]
mod driver_tests;
mod launch;
mod policy;
mod record;
mod recovery;
#[cfg(test)]
mod recovery_tests;
mod reports;
mod requests;
mod restart;
#[cfg(test)]
mod restart_tests;
mod rights;
mod serve;
mod start;
mod supervisor;
#[cfg(test)]
mod supervisor_tests;
#[cfg(test)]
mod tests;
mod update;
#[cfg(test)]
mod update_tests;
mod world;

use abi::archive::{self, Archive};
use abi::system::System;
use launch::Launcher;
use serve::Rs;
use supervisor::Supervisor;

sys::program!(main);

fn main(_: sys::Start) {
    let (rs, is_second_life) = recover::retained::state(begin);
    if is_second_life {
        rs.recover();
    } else {
        rs.start_all();
    }
    rs.serve()
}

/// rs in its first life.
fn begin() -> Rs {
    let (bytes, physical) = sys::info::archive().expect("the kernel has mapped no boot archive");
    let archive = Archive::new(bytes).expect("this is no boot archive");
    let table = archive.find(archive::SYSTEM).expect("the boot archive holds no system table");
    let system = System::unpack(table.data).expect("the system table cannot be read");
    set_routes(&system);
    let launcher = Launcher::new(archive, physical, &system);
    Rs::new(Supervisor::new(launcher, system.service))
}

fn set_routes(system: &System) {
    for route in &system.routes {
        if let Err(error) = sys::rights::route(route.number, Some(route.slot as usize)) {
            sys::log!("system call {} cannot be routed to slot {}: {error}", route.number, route.slot);
        }
    }
}
