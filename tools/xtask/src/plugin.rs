//! Builds QEMU's plug-in (`tools/qemu_plugin`).

use crate::process;
use crate::progress::Step;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// Builds the plug-in and returns its file.
///
/// # Errors
/// When it does not compile.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    let _step = Step::begin("QEMU's plug-in");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--quiet", "--release", "--package", "qemu_plugin"]);
    process::run(&mut cargo)?;
    Ok(workspace.target.join("release/libqemu_plugin.so"))
}
