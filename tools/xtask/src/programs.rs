//! Builds the kernel and the programs for the bare target, and strips the programs for the archive.
//!
//! The package's name is the program's name; the kernel's package is `kernel`. The flags come from
//! .cargo/config.toml; a private sysroot is added to them, never put in their place.

use crate::process;
use crate::progress::Step;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-unknown-none";
/// The package of the kernel, which compiles for the bare target only.
pub const KERNEL_PACKAGE: &str = "kernel";

/// How the guest's programs are compiled: a profile of the workspace's Cargo.toml.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Profile {
    /// Optimised as a whole; all published figures are measured with this profile.
    #[default]
    Release,
    /// Compiled in a few seconds, with full debug information.
    Fast,
}

impl Profile {
    /// Cargo's name of the profile, which is also its folder's.
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Fast => "guest-dev",
        }
    }

    /// The folder of the build folder with the stripped programs.
    fn programs(self) -> &'static str {
        match self {
            Self::Release => "programs",
            Self::Fast => "programs-fast",
        }
    }
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
    /// Its dependencies.
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

    /// Whether a file is the root of a crate.
    pub fn has_crate_root(&self, path: &Path) -> bool {
        self.packages.iter().any(|package| package.crate_roots().any(|root| root == path))
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

    /// Returns true if a service can run a program of that name.
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

/// Output of [`build`].
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
pub fn build(workspace: &Workspace, names: &[String], profile: Profile) -> Result<Built> {
    // Built together, the kernel would get the features that services want of shared libraries.
    build_packages(workspace, &[KERNEL_PACKAGE.to_string()], profile, "kernel")?;
    build_packages(workspace, names, profile, "services and programs")?;
    let made = workspace.target.join(TARGET).join(profile.name());
    let folder = workspace.build.join(profile.programs());
    fs::create_dir_all(&folder)?;
    let built = Built { kernel: made.join(KERNEL_PACKAGE), folder };
    names.iter().try_for_each(|name| built.strip(name))?;
    Ok(built)
}

fn build_packages(workspace: &Workspace, names: &[String], profile: Profile, title: &str) -> Result<()> {
    let step = Step::begin(title);
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--profile", profile.name()]);
    cargo.args(guest_arguments(workspace, names));
    // Cargo counts the crates only where it draws its bar.
    cargo.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "100");
    let mut cargo = cargo.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start cargo")?;
    let words = match cargo.stderr.take() {
        Some(stderr) => follow(stderr, &step)?,
        None => String::new(),
    };
    if !cargo.wait().context("cannot wait for cargo")?.success() {
        drop(step);
        eprint!("{words}");
        bail!("the {title} did not compile; the compiler's messages are above");
    }
    Ok(())
}

/// Cargo's arguments that choose these packages and the bare target.
pub fn guest_arguments(workspace: &Workspace, names: &[String]) -> Vec<String> {
    let mut arguments = vec!["--target".to_string(), TARGET.to_string()];
    arguments.extend(names.iter().flat_map(|name| ["--package".to_string(), name.clone()]));
    if let Some(sysroot) = &workspace.sysroot {
        // Lists given by --config are appended to those in the file.
        let flags = format!("target.{TARGET}.rustflags=[\"--sysroot={}\"]", sysroot.display());
        arguments.extend(["--config".to_string(), flags]);
    }
    arguments
}

/// Shows cargo's count of crates as the step's detail. Returns the rest of cargo's output.
fn follow(stderr: impl Read, step: &Step) -> Result<String> {
    let mut words = String::new();
    let mut reader = BufReader::new(stderr);
    let mut piece = Vec::new();
    // The bar is redrawn after a carriage return, not on a line of its own.
    while reader.read_until(b'\r', &mut piece).context("cannot read cargo's messages")? > 0 {
        let text = String::from_utf8_lossy(&piece).replace("\x1b[K", "").replace('\r', "");
        for line in text.split_inclusive('\n') {
            match bar(line) {
                Some(count) => step.detail(&count),
                None => words.push_str(line),
            }
        }
        piece.clear();
    }
    Ok(words)
}

/// Turns `Building [==>  ] 12/54: vfs(bin), ext2` into words.
fn bar(line: &str) -> Option<String> {
    let (_, after) = line.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (count, names) = after.split_once(':')?;
    let (done, all) = count.split_once('/')?;
    let names = names.trim().replace("(bin)", "").replace("(build.rs)", "");
    Some(format!("{done} of {all} crates, {names}").trim_end_matches([',', ' ']).to_string())
}

fn strip(from: &Path, to: &Path) -> Result<()> {
    if is_newer(to, from) {
        return Ok(());
    }
    process::replace(to, |new| {
        process::run(Command::new("strip").args(["--strip-all", "--remove-section=.comment", "-o"]).arg(new).arg(from))
    })
}

/// Whether both exist and `made` was written after `source`.
fn is_newer(made: &Path, source: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    matches!((written(made), written(source)), (Ok(made), Ok(source)) if made > source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_taken_from_cargos_bar() {
        let shown = bar("    Building [=====>      ] 12/54: vfs(bin), ext2");
        assert_eq!(shown.as_deref(), Some("12 of 54 crates, vfs, ext2"));
        assert_eq!(bar("    Building [>           ] 0/54: ").as_deref(), Some("0 of 54 crates"));
        assert_eq!(bar("   Compiling abi v0.1.0 (/abi)\n"), None);
        assert_eq!(bar("warning: unused"), None);
    }

    #[test]
    fn what_cargo_says_besides_its_bar_is_kept() {
        let step = Step::begin("test");
        let said = "   Compiling abi\n    Building [> ] 0/2: abi\r\x1b[Kerror: no\n    Building [> ] 1/2: sys\r\x1b[K";
        assert_eq!(follow(said.as_bytes(), &step).expect("is read"), "   Compiling abi\nerror: no\n");
    }
}
