//! `./skink mutants`: builds tools/mutants and hands over to it.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::Command;

/// Returns its exit status: 0 when enough changes were noticed.
///
/// # Errors
/// When cargo cannot be started.
pub fn mutants(workspace: &Workspace, arguments: &[OsString]) -> Result<u8> {
    // It works in a copy of the checkout, for an hour.
    workspace.release_lock();
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["run", "--quiet", "--package", "mutants", "--"]).args(arguments);
    cargo.env("SKINK_ROOT", &workspace.root).env("SKINK_BUILD", &workspace.build);
    let status = cargo.status().context("cannot start cargo")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}
