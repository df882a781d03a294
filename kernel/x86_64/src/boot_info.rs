//! What the boot loader tells, the same whichever loader it was: memory, archive, command line, firmware tables, frame buffer.
//!
//! Neighbours: `pvh` and `multiboot2` fill it. The loader's own structures lie in memory that is about to be given away, so
//! everything is copied; only the archive and the ACPI tables stay where they are.

use crate::memory_map::MemoryMap;
use abi::{info::Framebuffer, privilege::MemoryRange};

/// Longest command line; the rest is cut off.
pub const COMMAND_LINE_BYTES: usize = 1024;

/// What the boot loader told.
pub struct BootInfo {
    /// Usable memory, nothing taken out yet.
    pub memory: MemoryMap,
    /// The boot archive; empty when the loader brought none.
    pub archive: MemoryRange,
    /// Address of the ACPI RSDP; 0 when unknown.
    pub rsdp: u64,
    /// The frame buffer.
    pub framebuffer: Option<Framebuffer>,
    /// Memory of the loader that must stay, because `rsdp` points into it.
    pub keep: MemoryRange,
    command_line: [u8; COMMAND_LINE_BYTES],
    command_line_bytes: usize,
}

impl BootInfo {
    /// Nothing known.
    pub const fn new() -> Self {
        const NOTHING: MemoryRange = MemoryRange { start: 0, bytes: 0 };
        BootInfo {
            memory: MemoryMap::new(),
            archive: NOTHING,
            rsdp: 0,
            framebuffer: None,
            keep: NOTHING,
            command_line: [0; COMMAND_LINE_BYTES],
            command_line_bytes: 0,
        }
    }

    /// Keeps the command line: `text` up to its first zero byte.
    pub fn set_command_line(&mut self, text: &[u8]) {
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(COMMAND_LINE_BYTES);
        self.command_line[..length].copy_from_slice(&text[..length]);
        self.command_line_bytes = length;
    }

    /// The kernel's command line.
    pub fn command_line(&self) -> &[u8] {
        &self.command_line[..self.command_line_bytes]
    }

    /// True when `word` stands on the command line.
    pub fn has_word(&self, word: &str) -> bool {
        self.command_line().split(|&byte| byte == b' ').any(|one| one == word.as_bytes())
    }
}

/// Reads little-endian numbers from bytes; `None` past their end.
pub fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    Some(field.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64))
}
