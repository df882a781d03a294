//! Debian's Linux, to be booted beside Skink in the same emulator.
//!
//! The packages are Debian's, by apt-get, unpacked into the build folder once; nothing of them is installed. Who boots it brings an
//! initial file system (`pack`) and compiles modules of its own against the headers (`compile`).

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's names for its kernel and what modules are compiled against, whatever its version is.
const IMAGE: &str = "linux-image-amd64";
const HEADERS: &str = "linux-headers-amd64";

/// The unpacked packages of the kernel and its headers.
pub struct Linux {
    root: PathBuf,
    version: String,
}

impl Linux {
    /// Fetches the packages unless an earlier run has.
    ///
    /// # Errors
    /// When a package cannot be had.
    pub fn get(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.build.join("linux");
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

    /// The kernel's version, as `uname -r` has it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The kernel, compressed.
    pub fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.version))
    }

    /// Debian's own module `name`, a path below /lib/modules/VERSION/kernel.
    pub fn module(&self, name: &str) -> PathBuf {
        self.root.join("lib/modules").join(&self.version).join("kernel").join(name)
    }

    /// Copies the folder `sources` to `to` and compiles the modules in it.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn compile(&self, sources: &Path, to: &Path) -> Result<PathBuf> {
        process::run(Command::new("cp").args(["-r", "-T"]).arg(sources).arg(to))?;
        let headers = self.root.join("usr/src").join(format!("linux-headers-{}", self.version));
        let common = self.version.strip_suffix("-amd64").unwrap_or(&self.version);
        // The package's own Makefile has the path that it would be installed at.
        let makefile = self.root.join(format!("usr/src/linux-headers-{common}-common/Makefile"));
        let mut make = Command::new("make");
        make.arg("-C").arg(headers).arg("-f").arg(makefile).arg(format!("M={}", to.display()));
        process::run(make.arg("modules"))
            .with_context(|| format!("the modules in {} do not compile", sources.display()))?;
        Ok(to.to_path_buf())
    }
}

/// Packs the folder `root` as the initial file system of a Linux into `archive`.
///
/// # Errors
/// When busybox is not usable or a file cannot be read.
pub fn pack(root: &Path, archive: &Path) -> Result<()> {
    let pack = format!("find . | LC_ALL=C sort | busybox cpio -o -H newc >'{}'", archive.display());
    process::run(Command::new("sh").args(["-euc", &pack]).current_dir(root))?;
    Ok(())
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
