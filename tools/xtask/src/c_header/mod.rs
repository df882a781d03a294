//! The C header of the contract, lib/c/include/skink/abi.h, made from the source of `abi/`.
//!
//! Constants and structures are read from the source with their comments (`read`, `evaluate`); protocols, kernel calls and
//! errors are tables of `abi` already. `render` writes them in C; `layouts` has what the Rust compiler says of each structure, which
//! the C compiler then checks. So nothing is typed twice, and nothing of `abi` is forgotten: a file that is neither in
//! [`MODULES`] nor in [`NOT_FOR_C`] is a problem.

mod evaluate;
mod layouts;
mod read;
mod render;

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// Where the header is.
pub const PATH: &str = "lib/c/include/skink/abi.h";

/// The files of abi/src that C programs have a use for, each after what it needs.
const MODULES: [&str; 22] = [
    "error",
    "endpoint",
    "name",
    "message",
    "call",
    "grant",
    "privilege",
    "kernel",
    "layout",
    "info",
    "registers",
    "trace",
    "vm",
    "pm",
    "vfs",
    "rs",
    "ds",
    "fs",
    "block",
    "chardev",
    "tty",
    "pci",
];

/// The others: crate root and macros, what xtask and rs share, and Linux's numbers, which every C library has.
const NOT_FOR_C: [&str; 5] = ["archive", "lib", "linux", "protocol", "system"];

/// The header's text, for the checkout at `root`.
///
/// # Errors
/// When abi/ holds something that has no form in C.
pub fn make(root: &Path) -> Result<String> {
    let folder = root.join("abi/src");
    refuse_unknown_files(&folder)?;
    let mut constants = evaluate::Constants::default();
    let mut modules = Vec::new();
    for name in MODULES {
        let path = folder.join(format!("{name}.rs"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        modules.push(read::module(name, &text, &mut constants).with_context(|| path.display().to_string())?);
    }
    render::header(&modules)
}

fn refuse_unknown_files(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !MODULES.contains(&name.as_str()) && !NOT_FOR_C.contains(&name.as_str()) {
            bail!("{}: tools/xtask/src/c_header does not say whether this is for C", path.display());
        }
    }
    Ok(())
}
