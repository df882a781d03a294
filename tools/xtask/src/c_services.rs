//! Compiles lib/c and the services written in C, lib/c/examples/NAME.c and lib/c/tests/NAME.c.
//!
//! What comes out is what lib/c/README.md tells others to make by hand: `libskink.a`, the functions for every C program;
//! `service.o`, what a service has in place of a C library; and each service linked with both.

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the sources of services are.
const SERVICES: [&str; 2] = ["lib/c/examples", "lib/c/tests"];
/// The library's sources that only services use, because other programs have a C library.
const ONLY_SERVICES: [&str; 2] = ["start.S", "memory.c"];

/// For everything: no C library, and no floating point, which services do not have.
const COMPILE: [&str; 13] = [
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-mgeneral-regs-only",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    // gcc would make a call of memcpy out of memcpy.
    "-fno-tree-loop-distribute-patterns",
    "-c",
];

/// Static, at fixed addresses, each kind of memory on pages of its own.
const LINK: [&str; 7] = [
    "-static",
    "-nostdlib",
    "-no-pie",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
    "-Wl,-z,separate-code",
    "-Wl,-z,max-page-size=4096",
];

/// The compiled library.
pub struct Library {
    /// The folder with its headers.
    pub include: PathBuf,
    /// The functions for every C program.
    pub archive: PathBuf,
    /// Start-up code and memory functions: services have no C library.
    service: PathBuf,
    folder: PathBuf,
}

/// Returns true if a service of that name is written in C.
pub fn exists(workspace: &Workspace, name: &str) -> bool {
    source_of(workspace, name).is_some()
}

fn source_of(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    let paths = SERVICES.map(|folder| workspace.root.join(folder).join(format!("{name}.c")));
    paths.into_iter().find(|path| path.is_file())
}

impl Library {
    /// Compiles the library. The caller holds [`Workspace::build_alone`].
    ///
    /// # Errors
    /// When it does not compile.
    pub fn build(workspace: &Workspace) -> Result<Self> {
        let root = workspace.root.join("lib/c");
        let folder = workspace.build.join("libskink");
        fs::create_dir_all(&folder)?;
        let library = Self {
            include: root.join("include"),
            archive: folder.join("libskink.a"),
            service: folder.join("service.o"),
            folder,
        };
        let (mut common, mut for_services) = (Vec::new(), Vec::new());
        for source in sources(&root.join("src"))? {
            let object = library.compile(&source)?;
            let is_special = ONLY_SERVICES.iter().any(|name| source.ends_with(name));
            if is_special { &mut for_services } else { &mut common }.push(object);
        }
        process::replace(&library.archive, |new| {
            // A left-over archive would keep what is gone.
            let _ = fs::remove_file(new);
            process::run(Command::new("ar").arg("rcsD").arg(new).args(&common))
        })?;
        process::replace(&library.service, |new| {
            process::run(Command::new("ld").args(["-r", "-o"]).arg(new).args(&for_services))
        })?;
        Ok(library)
    }

    /// Compiles and links the service `name` to the file `to`.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn build_service(&self, workspace: &Workspace, name: &str, to: &Path) -> Result<()> {
        let object =
            self.compile(&source_of(workspace, name).with_context(|| format!("there is no service {name} in C"))?)?;
        process::replace(to, |new| {
            let mut gcc = Command::new("gcc");
            gcc.args(LINK).arg("-o").arg(new).arg(&object).arg(&self.service).arg(&self.archive);
            process::run(&mut gcc)
        })
    }

    fn compile(&self, source: &Path) -> Result<PathBuf> {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let object = self.folder.join(format!("{name}.o"));
        process::run(
            Command::new("gcc").args(COMPILE).arg("-I").arg(&self.include).arg("-o").arg(&object).arg(source),
        )?;
        Ok(object)
    }
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c" || extension == "S"));
    sources.sort();
    Ok(sources)
}
