//! Debian's Linux as the system under test: its kernel, our driver as a module (tests/monolith), and an initial file system with
//! user/monolith as the first program.
//!
//! The disk's content is put into the memory of the machine, as a boot loader would.

use super::session::{DISK_BYTES, ICOUNT_ALONE, MEMORY_MIB};
use crate::c_programs::CProgram;
use crate::linux::{self, Linux};
use crate::machine::{Boot, Line, Machine};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use object::{Object, ObjectSection};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The driver's module.
const DRIVER: &str = "ramdisk";
/// The modules of ours.
const OWN_MODULES: [&str; 2] = [DRIVER, "poke"];
/// Debian's modules for ext2, in /lib/modules/VERSION/kernel.
const MODULES: [&str; 5] =
    ["crypto/crc32c_generic.ko", "lib/crc16.ko", "fs/mbcache.ko", "fs/jbd2/jbd2.ko", "fs/ext4/ext4.ko"];
/// Where the disk lies in the machine's memory.
const DISK_ADDRESS: u64 = 128 << 20;

/// The kernel with our modules.
pub struct Debian {
    /// The kernel's version, as `uname -r` has it.
    pub version: String,
    kernel: PathBuf,
    archive: PathBuf,
    disk: PathBuf,
    text_bytes: u64,
}

impl Debian {
    /// Fetches the packages unless an earlier run has, compiles the modules, and makes the initial file system in `folder`.
    ///
    /// # Errors
    /// When a package cannot be had or a module does not compile.
    pub fn build(workspace: &Workspace, program: &CProgram, disk: &Path, folder: &Path) -> Result<Self> {
        let linux = Linux::get(workspace)?;
        let modules = linux.compile(&workspace.root.join("tests/monolith"), &folder.join("modules"))?;
        let text_bytes = text_bytes(&modules.join(DRIVER).with_extension("ko"))?;
        let archive = make_archive(&linux, program, &modules, folder)?;
        let (version, kernel) = (linux.version().to_string(), linux.image());
        Ok(Self { version, kernel, archive, disk: disk.to_path_buf(), text_bytes })
    }

    /// The machine that boots it.
    pub fn machine(&self) -> Machine {
        let disk = format!("{DISK_ADDRESS:#x}");
        let append = [
            "console=ttyS0".to_string(),
            // Addresses are in the trials.
            "nokaslr".to_string(),
            format!("memmap={DISK_BYTES}${disk}"),
            "--".to_string(),
            disk.clone(),
            DISK_BYTES.to_string(),
            self.text_bytes.to_string(),
        ];
        let (kernel, archive) = (self.kernel.clone(), self.archive.clone());
        let mut machine = Machine::new(Boot::Kernel { kernel, archive, append: append.to_vec() });
        let loader = format!("loader,addr={disk},force-raw=on,file={}", self.disk.display());
        machine.extra = ["-device", &loader].map(OsString::from).to_vec();
        machine.memory_mib = MEMORY_MIB;
        machine.icount = true;
        machine.icount_mode = ICOUNT_ALONE;
        machine.serial = vec![Line::Stderr, Line::Stdio];
        machine
    }

    /// Length of the driver's text.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }
}

/// Makes the initial file system: `program` as /init, and the modules.
fn make_archive(linux: &Linux, program: &CProgram, modules: &Path, folder: &Path) -> Result<PathBuf> {
    let root = folder.join("initial");
    fs::create_dir_all(root.join("modules"))?;
    fs::create_dir_all(root.join("dev"))?;
    fs::copy(&program.path, root.join("init")).context("cannot copy the program")?;
    let own = OWN_MODULES.map(|name| modules.join(name).with_extension("ko"));
    for module in MODULES.map(|module| linux.module(module)).iter().chain(&own) {
        let name = module.file_name().context("a module has a name")?;
        fs::copy(module, root.join("modules").join(name))
            .with_context(|| format!("cannot copy {}", module.display()))?;
    }
    let archive = folder.join("initial.cpio");
    linux::pack(&root, &archive)?;
    Ok(archive)
}

/// Length of the text of a module.
fn text_bytes(module: &Path) -> Result<u64> {
    let bytes = fs::read(module)?;
    let file = object::File::parse(&*bytes).context("a module is no ELF file")?;
    Ok(file.section_by_name(".text").context("the driver has no text")?.size())
}
