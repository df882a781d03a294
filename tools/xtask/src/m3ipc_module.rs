//! Debian's Linux with the module of M3-IPC (host/m3ipc-module) loaded, in the emulator: for tests and for benchmarks.
//!
//! The guest has one file system, in memory, with busybox, the module and the programs that it was given. It runs a script and stops.

use crate::linux::{self, Linux};
use crate::machine::{Boot, Line, Machine};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Statically linked, from Debian's package busybox-static.
const BUSYBOX: &str = "/bin/busybox";
/// Where the programs are in the guest; the script begins there.
const PROGRAMS: &str = "m3ipc";
/// Memory of the guest.
const MEMORY_MIB: u32 = 512;
/// What the guest says last.
const END: &str = "the script has ended";
/// Prepares the guest, and stops it when the script has ended.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
insmod /m3ipc.ko || echo 'the module cannot be loaded'
cd /m3ipc
. /script
echo 'the script has ended'
poweroff -f
";

/// A kernel with the module for it.
pub struct Module {
    kernel: PathBuf,
    object: PathBuf,
}

/// How a script is run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What the guest's shell runs.
    pub script: &'a str,
    /// A folder with the programs.
    pub programs: &'a Path,
    /// Processors of the guest.
    pub processors: u32,
    /// Time is the count of instructions.
    pub icount: bool,
    /// Words for the kernel's command line.
    pub append: &'a str,
    /// Time limit in seconds.
    pub limit_s: u32,
}

impl Module {
    /// Compiles the module for Debian's kernel, in `folder`, fetching the kernel unless an earlier run has.
    ///
    /// # Errors
    /// When a package cannot be had, or the module does not compile.
    pub fn for_debian(workspace: &Workspace, folder: &Path) -> Result<Self> {
        let linux = Linux::get(workspace)?;
        let to = sources(workspace, folder)?;
        linux.compile(&workspace.root.join("host/m3ipc-module"), &to)?;
        Ok(Self { kernel: linux.uncompressed()?, object: to.join("m3ipc.ko") })
    }

    /// Compiles the module for a kernel with KASAN, lockdep and kmemleak (tests/m3ipc_module/kasan.config), in `folder`. That kernel is built of
    /// Debian's source once for each version, which takes most of an hour.
    ///
    /// # Errors
    /// When the source cannot be had, or does not compile.
    pub fn for_checked(workspace: &Workspace, folder: &Path) -> Result<Self> {
        let config = workspace.root.join("tests/m3ipc_module/kasan.config");
        let source = linux::build_checked(workspace, &config)?;
        let to = sources(workspace, folder)?;
        process::run(Command::new("cp").args(["-r", "-T"]).arg(workspace.root.join("host/m3ipc-module")).arg(&to))?;
        let mut make = Command::new("make");
        make.arg("-C").arg(&source).arg(format!("M={}", to.display())).arg("modules");
        process::run(&mut make).context("the module does not compile")?;
        Ok(Self { kernel: source.join("arch/x86/boot/bzImage"), object: to.join("m3ipc.ko") })
    }

    /// Boots the kernel with the module, and runs a script. Returns what the guest has printed.
    ///
    /// # Errors
    /// When the guest cannot be run, stops, or exceeds the limit; with the last that it has printed.
    pub fn run(&self, workspace: &Workspace, run: &Run) -> Result<String> {
        let folder = workspace.run_folder()?;
        let archive = self.make_archive(folder.path(), run)?;
        let append = ["console=ttyS0 quiet no_timer_check panic=-1 oops=panic", run.append].map(str::to_string);
        let mut machine = Machine::new(Boot::Kernel { kernel: self.kernel.clone(), archive, append: append.to_vec() });
        machine.memory_mib = MEMORY_MIB;
        machine.processors = run.processors;
        machine.icount = run.icount;
        machine.serial = vec![Line::Stdio];
        let mut limited = Command::new("timeout");
        limited.arg(run.limit_s.to_string());
        let qemu = machine.command();
        limited.arg(qemu.get_program()).args(qemu.get_args());
        let output = limited.stdin(std::process::Stdio::null()).output().context("cannot start QEMU")?;
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        match text.split_once(END) {
            Some((printed, _)) => Ok(printed.to_string()),
            None => bail!("the guest stopped ({}):\n{}", output.status, process::tail(&text, 40)),
        }
    }

    /// Makes the initial file system.
    fn make_archive(&self, folder: &Path, run: &Run) -> Result<PathBuf> {
        let root = folder.join("initial");
        for name in ["bin", "dev", "proc", "sys", "tmp"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::copy(BUSYBOX, root.join("bin/busybox")).context("cannot copy busybox")?;
        process::run(Command::new("strip").arg("-g").arg("-o").arg(root.join("m3ipc.ko")).arg(&self.object))?;
        process::run(Command::new("cp").args(["-r", "-T"]).arg(run.programs).arg(root.join(PROGRAMS)))?;
        fs::write(root.join("script"), run.script)?;
        let init = root.join("init");
        fs::write(&init, INIT)?;
        process::run(Command::new("chmod").arg("755").arg(&init))?;
        process::run(Command::new("mknod").arg(root.join("dev/console")).args(["c", "5", "1"]))?;
        let archive = folder.join("initial.cpio");
        linux::pack(&root, &archive)?;
        Ok(archive)
    }
}

/// Makes the folder that the module is compiled in, with the contract in it.
fn sources(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    let to = folder.join("module");
    fs::create_dir_all(&to)?;
    fs::copy(workspace.root.join(crate::m3ipc_header::PATH), to.join("m3ipc.h")).context("cannot copy m3ipc.h")?;
    Ok(to)
}
