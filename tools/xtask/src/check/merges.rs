//! No file holds what git writes into one that it cannot merge.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// The lines that mark two sides of a merge, in all files that git knows.
///
/// # Errors
/// When git cannot be run.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["grep", "--line-number", "-I", "-E", "^(<{7}|>{7}) "]);
    let output = git.output().context("cannot run git")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().map(|line| format!("{line}: a merge has not been finished")).collect())
}
