//! What the boot loader reports, in one form for all loaders: memory, archive, command line, firmware tables, frame buffer.
//!
//! The loader's structures lie in memory that is about to be handed out, so everything is copied; only the archive and the ACPI
//! tables stay where they are. Neighbours: `pvh` and `multiboot2` fill it.

use crate::{bytes::number, memory_map::MemoryMap};
use abi::{info::Framebuffer, privilege::MemoryRange};

/// Longest command line; the rest is truncated.
pub const COMMAND_LINE_BYTES: usize = 1024;

/// The type of an entry of usable memory.
const USABLE: u64 = 1;

/// The boot loader's report.
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
    /// A report that says nothing.
    pub const EMPTY: BootInfo = BootInfo {
        memory: MemoryMap::EMPTY,
        archive: MemoryRange { start: 0, bytes: 0 },
        rsdp: 0,
        framebuffer: None,
        keep: MemoryRange { start: 0, bytes: 0 },
        command_line: [0; COMMAND_LINE_BYTES],
        command_line_bytes: 0,
    };

    /// Adds the usable memory among these entries: start, length and type, as both loaders have them.
    pub(crate) fn add_memory<'a>(&mut self, entries: impl Iterator<Item = &'a [u8]>) -> Option<()> {
        for entry in entries {
            if number(entry, 16, 4)? == USABLE {
                self.memory.add(number(entry, 0, 8)?, number(entry, 8, 8)?);
            }
        }
        Some(())
    }

    /// Sets the command line: `text` up to its first zero byte.
    pub fn set_command_line(&mut self, text: &[u8]) {
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(COMMAND_LINE_BYTES);
        self.command_line[..length].copy_from_slice(&text[..length]);
        self.command_line_bytes = length;
    }

    /// Returns the kernel's command line.
    pub fn command_line(&self) -> &[u8] {
        &self.command_line[..self.command_line_bytes]
    }

    /// Returns true when `word` stands on the command line.
    pub fn has_word(&self, word: &str) -> bool {
        self.command_line().split(|&byte| byte == b' ').any(|one| one == word.as_bytes())
    }
}
