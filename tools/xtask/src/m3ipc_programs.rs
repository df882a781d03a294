//! Programs of M3-IPC in C: compiled with the library host/libm3ipc to one static binary, which every back end runs.

use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Builds the library, the broker `m3ipcd` and the command `m3`. Returns the folder that they are in.
///
/// # Errors
/// When they do not compile.
pub fn build_library(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--quiet", "--release"]);
    process::run(cargo.args(["--package", "libm3ipc", "--package", "m3ipcd", "--package", "m3"]))?;
    Ok(workspace.target.join("release"))
}

/// Compiles a program to `to`. `library`: what [`build_library`] has returned.
///
/// # Errors
/// When it does not compile, or gcc warns.
pub fn compile(workspace: &Workspace, library: &Path, source: &Path, to: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-s", "-static", "-Wl,--build-id=none"]);
    cc.arg("-I").arg(workspace.root.join("lib/m3ipc/include"));
    cc.arg(source).arg("-o").arg(to).arg("-L").arg(library).arg("-lm3ipc");
    process::run(&mut cc)
}

/// Ends a broker in good order: one whose first process is killed goes on in others.
pub fn end_broker(broker: &mut Child) {
    // It may have ended by itself.
    let _ = process::run(Command::new("kill").arg(broker.id().to_string()));
    let _ = broker.wait();
}
