//! Writes boot archives, in the format that `abi::archive` defines and reads.

use abi::archive::{ENTRY_BYTES, HEADER_BYTES, MAGIC, NAME_BYTES};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Every file of an archive begins at a multiple of this.
pub const PAGE: usize = 4096;

/// One file for the archive.
#[derive(Clone)]
pub struct Entry {
    /// Its name in the archive.
    pub name: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl Entry {
    /// The entry `name` with the content of the file `path`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn from_file(name: &str, path: &Path) -> Result<Self> {
        let data = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { name: name.to_string(), data })
    }
}

/// Writes the archive of `entries` to `path`.
///
/// # Errors
/// When a name is too long or the file cannot be written.
pub fn write(entries: &[Entry], path: &Path) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    write_to(entries, &mut BufWriter::new(file)).with_context(|| format!("cannot write {}", path.display()))
}

fn write_to(entries: &[Entry], to: &mut impl Write) -> Result<()> {
    let count = u32::try_from(entries.len()).context("there are too many files")?;
    let table_bytes = HEADER_BYTES + entries.len() * ENTRY_BYTES;
    to.write_all(&MAGIC)?;
    to.write_all(&count.to_le_bytes())?;
    to.write_all(&0u32.to_le_bytes())?;
    let mut offset = table_bytes.next_multiple_of(PAGE);
    for entry in entries {
        to.write_all(&padded_name(&entry.name)?)?;
        to.write_all(&(offset as u64).to_le_bytes())?;
        to.write_all(&(entry.data.len() as u64).to_le_bytes())?;
        offset += entry.data.len().next_multiple_of(PAGE);
    }
    pad(to, table_bytes)?;
    for entry in entries {
        to.write_all(&entry.data)?;
        pad(to, entry.data.len())?;
    }
    Ok(to.flush()?)
}

fn padded_name(name: &str) -> Result<[u8; NAME_BYTES]> {
    let mut padded = [0; NAME_BYTES];
    match padded.get_mut(..name.len()) {
        Some(start) if !name.is_empty() => start.copy_from_slice(name.as_bytes()),
        _ => bail!("the name '{name}' has not 1 to {NAME_BYTES} bytes"),
    }
    Ok(padded)
}

/// Fills the page that `written` bytes ended in.
fn pad(to: &mut impl Write, written: usize) -> Result<()> {
    let rest = written.next_multiple_of(PAGE) - written;
    Ok(to.write_all(&[0; PAGE][..rest])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::archive::Archive;

    fn entry(name: &str, data: &[u8]) -> Entry {
        Entry { name: name.to_string(), data: data.to_vec() }
    }

    #[test]
    fn what_is_written_is_read_back_on_page_boundaries() {
        let mut bytes = Vec::new();
        let entries = [entry("pm", b"one"), entry("empty", b""), entry("system", &[7; 5000])];
        write_to(&entries, &mut bytes).expect("writes");
        assert_eq!(bytes.len() % PAGE, 0);
        let archive = Archive::new(&bytes).expect("is an archive");
        for (file, entry) in archive.files().zip(&entries) {
            assert_eq!((file.name, file.data), (entry.name.as_str(), entry.data.as_slice()));
            assert_eq!(file.offset % PAGE as u64, 0);
        }
        assert_eq!(archive.files().count(), 3);
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        assert!(write_to(&[entry(&"x".repeat(NAME_BYTES + 1), b"")], &mut Vec::new()).is_err());
        assert!(write_to(&[entry("", b"")], &mut Vec::new()).is_err());
    }
}
