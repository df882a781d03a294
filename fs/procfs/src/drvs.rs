//! /proc/drvs: the node and the containers of M3-IPC. m3ipc writes the texts; each container that runs has a folder, `VM` and its number.

use crate::source::Source;
use crate::text::{Lossy, Text, number};
use abi::Errno;
use abi::m3ipc::{TEXT_CONTAINER, TEXT_COUNTS, TEXT_PROCESSES};
use core::fmt::{self, Write};

/// The folder in the table of /proc.
pub const FOLDER: &str = "drvs";

/// Files of a container, and what to ask m3ipc for.
pub const FILES: [(&str, u64); 3] = [("info", TEXT_CONTAINER), ("procs", TEXT_PROCESSES), ("stats", TEXT_COUNTS)];

/// What the name of a container's folder begins with.
const PREFIX: &[u8] = b"VM";

/// Writes a file of the node.
pub fn write(source: &mut dyn Source, what: u64, out: &mut Text) -> fmt::Result {
    match source.m3ipc_text(what, 0) {
        Err(Errno::ENOMEM) => Err(fmt::Error),
        text => write!(out, "{}", Lossy(&text.unwrap_or_default())),
    }
}

/// Returns the first container that runs, from `first` on.
pub fn container_from(source: &mut dyn Source, first: u32) -> Result<Option<u32>, Errno> {
    let running = source.m3ipc_containers()?;
    Ok((first..u32::BITS).find(|number| running & 1 << number != 0))
}

/// Returns the container whose folder has this name. `ENOENT`.
pub fn container_named(source: &mut dyn Source, name: &[u8]) -> Result<u32, Errno> {
    let wanted = name.strip_prefix(PREFIX).and_then(number).ok_or(Errno::ENOENT)?;
    container_from(source, wanted)?.filter(|found| *found == wanted).ok_or(Errno::ENOENT)
}

/// Returns the index of a file of a container. `ENOENT`.
pub fn file_named(name: &[u8]) -> Result<usize, Errno> {
    FILES.iter().position(|(file, _)| file.as_bytes() == name).ok_or(Errno::ENOENT)
}
