//! lib/c/include/skink/abi.h is made from `abi`, so that it cannot say anything else than the code.

use crate::c_header;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes the header when it is not what `abi` says, and reports that it was not.
pub fn problems(root: &Path) -> Result<Option<String>> {
    let path = root.join(c_header::PATH);
    let text = c_header::make(root)?;
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(None);
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(format!("{}: was not what abi/ says; it has been written anew, commit it", c_header::PATH)))
}
