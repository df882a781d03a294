//! Debian's Linux as the system under test: its kernel, our driver as a module (tests/monolith), and an initial file system with
//! user/monolith as the first program.
//!
//! The packages are Debian's, by apt-get, unpacked into the build folder; nothing of them is installed. The disk's content is put into
//! the memory of the machine, as a boot loader would.

use super::session::{DISK_BYTES, ICOUNT_ALONE, MEMORY_MIB};
use crate::c_programs::CProgram;
use crate::machine::{Boot, Line, Machine};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's names for its kernel and what modules are compiled against, whatever its version is.
const IMAGE: &str = "linux-image-amd64";
const HEADERS: &str = "linux-headers-amd64";
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
        let packages = Packages::get(&workspace.build.join("monolith"))?;
        let modules = packages.compile(&workspace.root.join("tests/monolith"), &folder.join("modules"))?;
        let text_bytes = text_bytes(&modules.join(DRIVER).with_extension("ko"))?;
        let archive = packages.make_archive(program, &modules, folder)?;
        let kernel = packages.root.join("boot").join(format!("vmlinuz-{}", packages.version));
        Ok(Self { version: packages.version, kernel, archive, disk: disk.to_path_buf(), text_bytes })
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

/// The unpacked packages.
struct Packages {
    root: PathBuf,
    version: String,
}

impl Packages {
    fn get(folder: &Path) -> Result<Self> {
        let root = folder.join("debian");
        if !root.is_dir() {
            let new = folder.join("debian.new");
            // What an interrupted run has left.
            let _ = fs::remove_dir_all(&new);
            fs::create_dir_all(&new)?;
            fetch(&new)?;
            fs::rename(&new, &root)?;
        }
        let versions = fs::read_dir(root.join("lib/modules"))?;
        let version = versions.flatten().next().context("the kernel's package has no modules")?;
        Ok(Self { version: version.file_name().to_string_lossy().into_owned(), root })
    }

    /// Compiles our modules in `to`.
    fn compile(&self, sources: &Path, to: &Path) -> Result<PathBuf> {
        process::run(Command::new("cp").args(["-r", "-T"]).arg(sources).arg(to))?;
        let headers = self.root.join("usr/src").join(format!("linux-headers-{}", self.version));
        let common = self.version.strip_suffix("-amd64").unwrap_or(&self.version);
        // The package's own Makefile has the path that it would be installed at.
        let makefile = self.root.join(format!("usr/src/linux-headers-{common}-common/Makefile"));
        let mut make = Command::new("make");
        make.arg("-C").arg(headers).arg("-f").arg(makefile).arg(format!("M={}", to.display()));
        process::run(make.arg("modules")).context("the modules in tests/monolith do not compile")?;
        Ok(to.to_path_buf())
    }

    /// Makes the initial file system: `program` as /init, and the modules.
    fn make_archive(&self, program: &CProgram, modules: &Path, folder: &Path) -> Result<PathBuf> {
        let root = folder.join("initial");
        fs::create_dir_all(root.join("modules"))?;
        fs::create_dir_all(root.join("dev"))?;
        fs::copy(&program.path, root.join("init")).context("cannot copy the program")?;
        let debians = self.root.join("lib/modules").join(&self.version).join("kernel");
        let own = OWN_MODULES.map(|name| modules.join(name).with_extension("ko"));
        for module in MODULES.map(|module| debians.join(module)).iter().chain(&own) {
            let name = module.file_name().context("a module has a name")?;
            fs::copy(module, root.join("modules").join(name))
                .with_context(|| format!("cannot copy {}", module.display()))?;
        }
        let archive = folder.join("initial.cpio");
        let pack = format!("find . | sort | busybox cpio -o -H newc >'{}'", archive.display());
        process::run(Command::new("sh").args(["-euc", &pack]).current_dir(&root))?;
        Ok(archive)
    }
}

/// Fetches the packages and unpacks them into `to`.
fn fetch(to: &Path) -> Result<()> {
    let names = match names() {
        Ok(names) => names,
        Err(_) => {
            process::run(Command::new("apt-get").arg("update"))?;
            names()?
        }
    };
    // apt's own user need not be able to write here.
    let mut apt = Command::new("apt-get");
    apt.args(["-o", "APT::Sandbox::User=root", "download"]).args(names).current_dir(to);
    process::run(&mut apt).context("cannot fetch Debian's kernel")?;
    let packages: Vec<PathBuf> = fs::read_dir(to)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    for package in packages {
        process::run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(to))?;
        fs::remove_file(package)?;
    }
    Ok(())
}

/// The packages with the kernel and all that modules are compiled with.
fn names() -> Result<Vec<String>> {
    let needed = |package: &str| -> Result<Vec<String>> {
        let text = process::output(Command::new("apt-cache").args(["depends", package]))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: linux-"));
        Ok(names.map(|name| format!("linux-{name}")).collect())
    };
    let (images, headers) = (needed(IMAGE)?, needed(HEADERS)?);
    let ([image], [header]) = (&images[..], &headers[..]) else {
        bail!("apt does not know {IMAGE} and {HEADERS}");
    };
    let mut names = needed(header)?;
    names.extend([image.clone(), header.clone()]);
    Ok(names)
}

/// Length of the text of a module.
fn text_bytes(module: &Path) -> Result<u64> {
    let bytes = fs::read(module)?;
    let file = object::File::parse(&*bytes).context("a module is no ELF file")?;
    Ok(file.section_by_name(".text").context("the driver has no text")?.size())
}
