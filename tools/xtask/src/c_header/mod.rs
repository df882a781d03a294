//! The C header of the contract, lib/c/include/skink/abi.h, made from the source of `abi/`.
//!
//! Which constants and structures there are, and their comments, is read from the source (`read`); their values, sizes and offsets
//! come from the Rust compiler (`known`), and the C compiler checks them in the header; protocols, kernel calls and errors are
//! tables of `abi` already. `render` writes all of it in C. So nothing is typed twice.

mod known;
mod read;
mod render;

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Where the header is.
pub const PATH: &str = "lib/c/include/skink/abi.h";

/// The files of abi/src that C reads in this order, each after what it needs. The others follow by their names.
const FIRST: [&str; 5] = ["error", "endpoint", "name", "message", "call"];

/// Not for C: crate root and macros, what xtask and rs share, and Linux's numbers, which every C library has.
const NOT_FOR_C: [&str; 6] = ["archive", "lib", "linux", "protocol", "symbols", "system"];

/// The header's text, for the checkout at `root`.
///
/// # Errors
/// When abi/ holds something that has no form in C.
pub fn make(root: &Path) -> Result<String> {
    let folder = root.join("abi/src");
    let mut modules = Vec::new();
    for name in names(&folder)? {
        let path = folder.join(format!("{name}.rs"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        modules.push(read::module(&name, &text).with_context(|| path.display().to_string())?);
    }
    render::header(&modules)
}

/// The files that C gets, in their order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names =
        entries.flatten().map(|entry| entry.path().file_stem().unwrap_or_default().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !NOT_FOR_C.contains(&name.as_str())).collect();
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    names.sort_by(|a, b| (place(a), a).cmp(&(place(b), b)));
    Ok(names)
}
