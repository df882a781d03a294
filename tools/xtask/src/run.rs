//! `./skink run`: boots a system with this terminal as its console.

use crate::bundle::Bundle;
use crate::cli::{DEFAULT_SYSTEM, MachineOptions, RunOptions};
use crate::machine::{Boot, Line, Machine};
use crate::programs::Progress;
use crate::rootfs::Contents;
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result};
use std::process::ExitStatus;

/// Boots and returns when the machine is left.
///
/// # Errors
/// When the build fails or QEMU does not start.
pub fn run(workspace: &Workspace, options: &RunOptions) -> Result<u8> {
    let folder = workspace.run_folder()?;
    let mut machine = interactive(workspace, &options.machine, &folder)?.0;
    machine.net = options.net;
    machine.extra = options.qemu_args.clone();
    workspace.release_lock();
    let status = machine.command().status().context("cannot start QEMU")?;
    Ok(exit_status(status))
}

/// The machine for a person at the terminal, and the bundle it boots.
///
/// # Errors
/// When the build fails or an image cannot be made.
pub fn interactive(workspace: &Workspace, options: &MachineOptions, folder: &RunFolder) -> Result<(Machine, Bundle)> {
    let system = options.system.as_deref().unwrap_or(DEFAULT_SYSTEM);
    let bundle = Bundle::build(workspace, system, Progress::Shown)?;
    let contents = Contents { overlays: &options.overlays, ..bundle.contents(workspace) };
    let media = bundle.make_media(&contents, folder)?;
    let mut machine = Machine::new(Boot::Kernel { kernel: media.kernel, archive: media.archive, append: Vec::new() });
    machine.disks = media.disks;
    machine.memory_mib = options.memory_mib;
    machine.processors = options.processors;
    machine.display = options.display;
    machine.serial = vec![Line::Terminal];
    Ok((machine, bundle))
}

/// QEMU's own status, or 125 when a signal ended it.
fn exit_status(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}
