//! What has reached the disk, in order: the log of QEMU's `blklogwrites`, and where the promises are in it.
//!
//! The log has the format of Linux's dm-log-writes: a superblock, then for each request a header of one sector and its data.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// Bytes of a sector.
pub const SECTOR: usize = 512;

const MAGIC: u64 = 0x6a_7366_7773_6872;
const FLAG_FLUSH: u64 = 1;

/// One request to the disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Everything before it is durable.
    Flush,
    /// Writes whole sectors.
    Write {
        /// The first sector.
        sector: usize,
        /// Their content.
        data: Vec<u8>,
    },
}

/// The requests, in order, and the promises.
pub struct Log {
    /// Requests.
    pub entries: Vec<Entry>,
    /// For each line of the script that has made a promise, the number of requests after which it holds.
    pub promises: BTreeMap<usize, usize>,
}

impl Log {
    /// Reads the log.
    ///
    /// # Errors
    /// When it is not of this format.
    pub fn read(bytes: &[u8]) -> Result<Log> {
        let word = |at: usize| {
            let field = bytes.get(at..at + 8).context("the log of writes ends early")?;
            Ok::<u64, anyhow::Error>(u64::from_le_bytes(field.try_into()?))
        };
        if word(0)? != MAGIC {
            bail!("the log of writes does not begin with its magic number");
        }
        let mut at = SECTOR;
        let mut entries = Vec::new();
        for _ in 0..word(16)? {
            let (sector, count, flags) = (word(at)? as usize, word(at + 8)? as usize, word(at + 16)?);
            at += SECTOR;
            if flags & FLAG_FLUSH != 0 {
                entries.push(Entry::Flush);
            }
            if count > 0 {
                let data = bytes.get(at..at + count * SECTOR).context("the log of writes ends early")?;
                entries.push(Entry::Write { sector, data: data.to_vec() });
                at += count * SECTOR;
            }
        }
        let promises = promises(&entries);
        Ok(Log { entries, promises })
    }
}

/// Finds the marks of user/power/promises.c. A mark reaches the disk with the first thing after its promise, so the promise was kept
/// by the last flush before.
fn promises(entries: &[Entry]) -> BTreeMap<usize, usize> {
    let mut promises = BTreeMap::new();
    let mut flushed = 0;
    for (number, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Flush => flushed = number + 1,
            Entry::Write { data, .. } => {
                for line in data.chunks(SECTOR).filter_map(marked_line) {
                    promises.entry(line).or_insert(flushed);
                }
            }
        }
    }
    promises
}

/// The line whose mark the sector is.
fn marked_line(sector: &[u8]) -> Option<usize> {
    let text = sector.strip_prefix(b"SKINK-MARK ")?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}
