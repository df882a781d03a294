//! The C headers are made from the contracts, `abi` and `lib/m3ipc`, so that they cannot say anything else than the code.

use crate::{c_header, m3ipc_header};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes the headers that are not what their contracts say, and reports them.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let headers =
        [(c_header::PATH, "abi/", c_header::make(root)?), (m3ipc_header::PATH, "lib/m3ipc", m3ipc_header::make())];
    let mut problems = Vec::new();
    for (path, contract, text) in headers {
        let full_path = root.join(path);
        if fs::read_to_string(&full_path).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&full_path, text).with_context(|| format!("cannot write {}", full_path.display()))?;
        problems.push(format!("{path}: was not what {contract} says; it has been written anew, commit it"));
    }
    Ok(problems)
}
