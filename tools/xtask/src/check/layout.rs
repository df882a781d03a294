//! Rule: the source is laid out as rustfmt does it.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// Files that rustfmt would change.
///
/// # Errors
/// When rustfmt is not there.
pub fn problems(workspace: &Workspace) -> Result<Vec<String>> {
    let output = Command::new("cargo")
        .current_dir(&workspace.root)
        .args(["fmt", "--all", "--", "--check", "--files-with-diff"])
        .stdin(Stdio::null())
        .output()
        .context("cannot start cargo fmt")?;
    let names = String::from_utf8_lossy(&output.stdout);
    let mut problems: Vec<String> = names.lines().map(|name| name_problem(workspace, name)).collect();
    if !output.status.success() && problems.is_empty() {
        problems.push(format!("cargo fmt: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(problems)
}

fn name_problem(workspace: &Workspace, name: &str) -> String {
    let name = name.strip_prefix(&format!("{}/", workspace.root.display())).unwrap_or(name);
    format!("{name}: is not laid out as `cargo fmt` does it")
}
