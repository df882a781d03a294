//! Builds the kernel and the programs for the bare target, and strips the programs for the archive.
//!
//! The package's name is the program's name; the kernel's package is `kernel`. The flags come from
//! .cargo/config.toml; a private sysroot is added to them, never put in their place.

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-unknown-none";
const KERNEL_PACKAGE: &str = "kernel";

/// Whether cargo's progress may be seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Progress {
    /// Cargo writes to standard error as it likes.
    Shown,
    /// Nothing is written unless the build fails.
    Hidden,
}

/// The packages of the workspace, as cargo knows them.
#[derive(Deserialize)]
pub struct Packages {
    packages: Vec<Package>,
}

/// One package.
#[derive(Deserialize)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// The path of its Cargo.toml.
    pub manifest_path: PathBuf,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

/// One entry of a package's dependencies.
#[derive(Deserialize)]
pub struct Dependency {
    /// None for an ordinary dependency, otherwise `dev` or `build`.
    pub kind: Option<String>,
    /// The folder, when it is a package of the workspace.
    pub path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Packages {
    /// Asks cargo for the members of the workspace.
    ///
    /// # Errors
    /// When a Cargo.toml is wrong.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let json = process::output(Command::new("cargo").current_dir(&workspace.root).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        serde_json::from_slice(&json).context("cannot read what cargo metadata printed")
    }

    /// All packages.
    pub fn all(&self) -> &[Package] {
        &self.packages
    }

    /// The names of the programs in the folder `folder` of the checkout, sorted.
    pub fn programs_in(&self, workspace: &Workspace, folder: &str) -> Vec<String> {
        let folder = workspace.root.join(folder);
        let mut names: Vec<String> = self
            .packages
            .iter()
            .filter(|package| package.is_program() && package.manifest_path.starts_with(&folder))
            .map(|package| package.name.clone())
            .collect();
        names.sort();
        names
    }

    /// Whether there is a program of that name that a service can run.
    pub fn has_program(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name && package.is_program())
    }
}

impl Package {
    /// Whether it makes an executable.
    pub fn is_program(&self) -> bool {
        self.has_kind("bin")
    }

    /// The first files of its crates, except build scripts.
    pub fn crate_roots(&self) -> impl Iterator<Item = &Path> {
        let ours = |target: &&Target| !target.kind.iter().any(|kind| kind == "custom-build");
        self.targets.iter().filter(ours).map(|target| target.src_path.as_path())
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|own| own == kind))
    }
}

/// What [`build`] made.
pub struct Built {
    /// The kernel with symbols, which QEMU, GRUB and GDB take as it is.
    pub kernel: PathBuf,
    folder: PathBuf,
}

impl Built {
    /// The stripped program of that name.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program of that name with its symbols.
    pub fn with_symbols(&self, name: &str) -> PathBuf {
        self.kernel.with_file_name(name)
    }

    /// Makes [`Built::program`] of [`Built::with_symbols`].
    ///
    /// # Errors
    /// When it cannot be stripped.
    pub fn strip(&self, name: &str) -> Result<()> {
        strip(&self.with_symbols(name), &self.program(name))
    }
}

/// Builds the kernel and the named programs.
///
/// # Errors
/// When they do not compile or cannot be stripped.
pub fn build(workspace: &Workspace, names: &[String], progress: Progress) -> Result<Built> {
    // Built together, the kernel would get the features that services want of shared libraries.
    build_packages(workspace, &[KERNEL_PACKAGE.to_string()], progress)?;
    build_packages(workspace, names, progress)?;
    let made = workspace.target.join(TARGET).join("release");
    let folder = workspace.build.join("programs");
    fs::create_dir_all(&folder)?;
    let built = Built { kernel: made.join(KERNEL_PACKAGE), folder };
    names.iter().try_for_each(|name| built.strip(name))?;
    Ok(built)
}

fn build_packages(workspace: &Workspace, names: &[String], progress: Progress) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--release", "--target", TARGET]);
    for name in names {
        cargo.args(["--package", name]);
    }
    if let Some(sysroot) = &workspace.sysroot {
        // Lists given by --config are appended to those in the file.
        cargo.arg("--config");
        cargo.arg(format!("target.{TARGET}.rustflags=[\"--sysroot={}\"]", sysroot.display()));
    }
    cargo.stdin(Stdio::null());
    let ok = match progress {
        Progress::Shown => cargo.status().context("cannot start cargo")?.success(),
        Progress::Hidden => {
            let output = cargo.arg("--quiet").output().context("cannot start cargo")?;
            if !output.status.success() {
                eprint!("{}", String::from_utf8_lossy(&output.stderr));
            }
            output.status.success()
        }
    };
    if !ok {
        bail!("the build failed; the compiler's words are above");
    }
    Ok(())
}

fn strip(from: &Path, to: &Path) -> Result<()> {
    if is_newer(to, from) {
        return Ok(());
    }
    process::run(Command::new("strip").args(["--strip-all", "--remove-section=.comment", "-o"]).arg(to).arg(from))
}

/// Whether both exist and `made` was written after `source`.
fn is_newer(made: &Path, source: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    matches!((written(made), written(source)), (Ok(made), Ok(source)) if made > source)
}
