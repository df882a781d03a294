//! The two machines: Skink and Debian's Linux with the same root file system.

use super::tree;
use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::linux::Linux;
use crate::linux_guest::{self, Root};
use crate::plugin;
use crate::workspace::{RunFolder, Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// Memory of both machines.
const MEMORY_MIB: u32 = 1024;
/// Free space of the root file system of both, for the workloads' files, and files that can be made in it.
const FREE_MIB: u64 = 160;
const FREE_INODES: u64 = 110_000;
/// Where the plug-in writes what it has counted.
const COUNTS: &str = "counts";

/// How the machines are emulated.
#[derive(Clone, Copy, PartialEq)]
pub enum Emulation {
    /// A tick is an instruction, and the plug-in counts what ticks do not tell.
    Counted,
    /// As fast as it can: a tick is the host's, which is real time.
    Plain,
}

/// What both machines are made of.
pub struct Both<'a> {
    workspace: &'a Workspace,
    bundle: Bundle,
    debian: Linux,
    programs: Vec<CProgram>,
    overlay: PathBuf,
    plugin: PathBuf,
    /// Where the overlay is.
    _folder: RunFolder,
}

/// What a system has printed, and what was counted meanwhile.
pub struct Printed {
    /// Its lines.
    pub text: String,
    /// The plug-in's lines: none under plain emulation.
    pub counts: String,
}

/// The same of both.
pub struct Pair {
    /// Skink's.
    pub skink: Printed,
    /// Linux's.
    pub linux: Printed,
}

impl<'a> Both<'a> {
    /// Builds Skink, fetches Debian's kernel, compiles the programs and makes the files that they work on.
    ///
    /// # Errors
    /// When any of that fails.
    pub fn prepare(workspace: &'a Workspace) -> Result<Self> {
        let programs = c_programs::compile(workspace, &["bench", "compare"])?;
        let folder = workspace.run_folder()?;
        Ok(Self {
            workspace,
            bundle: Bundle::build(workspace, RAMDISK_SYSTEM)?,
            debian: Linux::get(workspace)?,
            programs,
            overlay: tree::overlay(&folder.join("overlay"))?,
            plugin: plugin::build(workspace)?,
            _folder: folder,
        })
    }

    /// The programs that both have in /bin.
    pub fn programs(&self) -> &[CProgram] {
        &self.programs
    }

    /// The version of Debian's kernel.
    pub fn linux_version(&self) -> &str {
        self.debian.version()
    }

    /// Runs a script on Skink and then on Linux.
    ///
    /// # Errors
    /// When it fails on one of them.
    pub fn run(&self, script: &str, emulation: Emulation) -> Result<Pair> {
        let script = format!("export BENCH_ROUNDS=1\n{script}");
        let job = Job {
            overlays: std::slice::from_ref(&self.overlay),
            c_programs: &self.programs,
            icount: emulation == Emulation::Counted,
            has_journal: true,
            memory_mib: MEMORY_MIB,
            free_mib: FREE_MIB,
            free_inodes: FREE_INODES,
            ..Job::new(&script)
        };
        let skink = Guest::prepare(self.workspace, &self.bundle, &job)?;
        let skink = self.collect(skink, emulation).context("Skink")?;
        let linux = linux_guest::prepare(self.workspace, &self.bundle, &self.debian, &job, Root::Memory)?;
        let linux = self.collect(linux, emulation).context("Linux")?;
        Ok(Pair { skink, linux })
    }

    fn collect(&self, mut guest: Guest, emulation: Emulation) -> Result<Printed> {
        let file = guest.folder.join(COUNTS);
        if emulation == Emulation::Plain {
            return Ok(Printed { text: guest.collect()?, counts: String::new() });
        }
        let argument = format!("{},count={}", self.plugin.display(), file.display());
        guest.add_arguments(["-plugin".into(), argument.into()]);
        let text = guest.collect()?;
        let counts = fs::read_to_string(&file).context("QEMU's plug-in has counted nothing")?;
        Ok(Printed { text, counts })
    }
}
