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

/// Debian's name for the source.
const SOURCE: &str = "linux-source-6.1";
/// Marks a kernel that has been built whole.
const BUILT: &str = "skink-built";

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

    /// The kernel, uncompressed: it boots some seconds sooner. It is made once.
    ///
    /// # Errors
    /// When the image has no kernel compressed by xz.
    pub fn uncompressed(&self) -> Result<PathBuf> {
        let to = self.root.join("boot").join(format!("vmlinux-{}", self.version));
        if to.is_file() {
            return Ok(to);
        }
        let image = fs::read(self.image())?;
        let is_xz = |window: &[u8]| window == b"\xfd7zXZ\0";
        let start = image.windows(6).position(is_xz).context("the kernel is not compressed by xz")?;
        process::replace(&to, |new| {
            let unpack = r#"tail -c "+$1" "$2" | xz --decompress --stdout --single-stream >"$3""#;
            let mut shell = Command::new("sh");
            shell.args(["-euc", unpack, "sh", &(start + 1).to_string()]).arg(self.image()).arg(new);
            process::run(&mut shell)
        })?;
        Ok(to)
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

/// Builds a kernel of Debian's source with tinyconfig and what `config` names, once for each version of either. Returns the folder of its source.
///
/// # Errors
/// When the source cannot be had, or does not compile.
pub fn build_checked(workspace: &Workspace, config: &Path) -> Result<PathBuf> {
    let hash = process::output(Command::new("sha256sum").arg(config))?;
    let hash: String = String::from_utf8_lossy(&hash).chars().take(12).collect();
    let folder = workspace.build.join("linux").join(format!("{SOURCE}-{hash}"));
    if folder.join(BUILT).is_file() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    let mut apt = Command::new("apt-get");
    apt.args(["-o", "APT::Sandbox::User=root", "download", SOURCE]).current_dir(&folder);
    process::run(&mut apt).context("cannot fetch the kernel's source")?;
    let build = r#"
        for package in *.deb; do dpkg-deb -x "$package" . && rm "$package"; done
        tar -xf usr/src/linux-source-*.tar.xz --strip-components=1
        rm -r usr/src
        make -s tinyconfig
        scripts/kconfig/merge_config.sh -m .config "$1"
        make -s olddefconfig
        nice make -s -j"$(nproc)" bzImage modules_prepare
        cp vmlinux.symvers Module.symvers
        touch "$2""#;
    let mut shell = Command::new("sh");
    process::run(shell.args(["-euc", build, "sh"]).arg(config).arg(BUILT).current_dir(&folder))?;
    Ok(folder)
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
