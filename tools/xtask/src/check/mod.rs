//! `./skink check`: the rules of docs/style.md and docs/book/ideas.md that a program can check.
//!
//! Each rule has a module here and reports what breaks it as lines `file: what is wrong`.

mod allocation;
mod bounds;
mod dependencies;
mod documents;
mod header;
mod layers;
mod layout;
pub mod lint;
mod merges;
mod quotes;
mod reference;
mod references;
mod size;
mod source;
mod unsafe_code;

use crate::programs::Packages;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks everything, prints what breaks the rules, and returns 1 if something does.
///
/// # Errors
/// When a file cannot be read or a tool not be run.
pub fn check(workspace: &Workspace) -> Result<u8> {
    let problems = problems(workspace, || lint::of_host(workspace))?;
    for problem in &problems {
        println!("{problem}");
    }
    println!("{}", size::summary(&sources(&workspace.root)?));
    println!("check: {} found", count(problems.len(), "problem"));
    Ok(u8::from(!problems.is_empty()))
}

/// Everything that breaks a rule, one line each. `lints_of_host` is [`lint::of_host`], or tells the same of an own build.
///
/// # Errors
/// When a file cannot be read or a tool not be run.
pub fn problems(workspace: &Workspace, lints_of_host: impl FnOnce() -> Result<Vec<String>>) -> Result<Vec<String>> {
    let packages = Packages::read(workspace)?;
    let files = sources(&workspace.root)?;
    let mut problems = dependencies::problems(&workspace.root, &packages);
    problems.extend(layers::problems(&workspace.root, &packages, &files));
    problems.extend(unsafe_code::problems(&packages, &files));
    problems.extend(allocation::problems(&packages, &files));
    problems.extend(size::problems(&files));
    problems.extend(layout::problems(workspace)?);
    let mut lints = BTreeSet::from_iter(lint::of_guest(workspace, &packages)?);
    lints.extend(lints_of_host()?);
    problems.extend(lints);
    problems.extend(merges::problems(&workspace.root)?);
    problems.extend(reference::problems(&workspace.root)?);
    problems.extend(header::problems(&workspace.root)?);
    problems.extend(quotes::problems(&workspace.root)?);
    problems.extend(bounds::problems(&workspace.root, &files)?);
    problems.extend(references::problems(&workspace.root)?);
    problems.extend(documents::problems(workspace, &packages, &files)?);
    Ok(problems)
}

fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// One source file of the checkout.
struct Source {
    /// Path from the checkout's root, with slashes.
    path: String,
    /// The same as it is.
    full_path: PathBuf,
    /// Its content.
    text: String,
}

/// The folders of the checkout that hold source.
const SOURCE_FOLDERS: [&str; 10] =
    ["abi", "kernel", "lib", "servers", "drivers", "fs", "user", "host", "tools", "tests"];

/// All Rust, C and assembly files, sorted by path.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    for folder in SOURCE_FOLDERS {
        collect(root, &root.join(folder), &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<Source>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(root, &path, files)?;
            }
        } else if is_source(&path) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let short = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(Source { path: short, full_path: path, text });
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "c" | "h" | "s" | "S"))
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_string(), full_path: PathBuf::from("/checkout").join(path), text: text.to_string() }
}
