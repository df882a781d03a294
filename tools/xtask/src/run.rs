//! `./skink run`: boots a system with this terminal as its console.

use crate::bundle::{Bundle, Root};
use crate::cli::{DEFAULT_SYSTEM, MachineOptions, RunOptions};
use crate::debian::Set;
use crate::machine::{Boot, Line, Machine};
use crate::rootfs::Contents;
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Exit status when the machine, or a command in it, came to no proper end.
pub const EXIT_MACHINE_DIED: u8 = 125;

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
    attend(&machine)
}

/// Starts `machine` on this terminal and waits until it is left. Returns the status that the guest gave.
///
/// # Errors
/// QEMU's message, when it does not start.
pub fn attend(machine: &Machine) -> Result<u8> {
    let mut qemu = machine.command().stderr(Stdio::piped()).spawn().context("cannot start QEMU")?;
    let complaints = match qemu.stderr.take() {
        Some(stderr) => complaints(stderr)?,
        None => String::new(),
    };
    let status = qemu.wait().context("cannot wait for QEMU")?;
    match status.code() {
        // isa-debug-exit makes `2 * status + 1` of the guest's status; QEMU's own failures end with 1 too.
        Some(1) if !complaints.is_empty() => bail!("QEMU stopped: {complaints}"),
        Some(code) => Ok(u8::try_from(code / 2).unwrap_or(EXIT_MACHINE_DIED)),
        None => Ok(EXIT_MACHINE_DIED),
    }
}

/// Passes QEMU's own messages on until it ends, and returns the last one that is no mere warning.
fn complaints(stderr: impl Read) -> Result<String> {
    let mut last = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line.context("cannot read QEMU's messages")?;
        match line.contains("warning:") {
            true => eprintln!("{line}"),
            false => last = line,
        }
    }
    Ok(last)
}

/// The machine for a person at the terminal, and the bundle it boots.
///
/// # Errors
/// When the build fails or an image cannot be made.
pub fn interactive(workspace: &Workspace, options: &MachineOptions, folder: &RunFolder) -> Result<(Machine, Bundle)> {
    let system = options.system.as_deref().unwrap_or(DEFAULT_SYSTEM);
    let bundle = Bundle::build_as(workspace, system, options.profile)?;
    let packages = Set::get(&workspace.build, &options.packages)?;
    let contents = Contents {
        packages: packages.as_ref(),
        overlays: &options.overlays,
        // On a ramdisk nothing outlives a power cut.
        has_journal: bundle.root() == Root::Disk,
        ..bundle.contents(workspace)
    };
    let media = bundle.make_media(&contents, folder)?;
    let mut machine = Machine::new(Boot::Kernel { kernel: media.kernel, archive: media.archive, append: Vec::new() });
    machine.disks = media.disks;
    machine.disk_bus = media.disk_bus;
    machine.iommu = media.iommu;
    machine.roms = media.roms;
    machine.adapter = bundle.adapter();
    machine.memory_mib = options.memory_mib;
    machine.processors = options.processors;
    machine.screen = options.screen;
    machine.serial = vec![Line::Terminal];
    Ok((machine, bundle))
}
