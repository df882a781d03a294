//! The start-up structure of the PVH boot protocol (`hvm_start_info`), as QEMU's `-kernel` hands it over.

use crate::bytes::number;
use crate::info::{BootInfo, COMMAND_LINE_BYTES};
use abi::privilege::MemoryRange;

/// First word of the structure.
const MAGIC: u64 = 0x336e_c578;
const START_INFO_BYTES: u64 = 56;
const MODULE_BYTES: u64 = 32;
const MEMORY_ENTRY_BYTES: usize = 24;

/// Reads the structure at `address`; `read(address, bytes)` returns physical memory. `None`: there is no such structure.
pub fn parse<'a>(address: u64, read: impl Fn(u64, u64) -> &'a [u8]) -> Option<BootInfo> {
    let start = read(address, START_INFO_BYTES);
    if number(start, 0, 4)? != MAGIC {
        return None;
    }
    let mut info = BootInfo::EMPTY;
    if number(start, 12, 4)? > 0 {
        let module = read(number(start, 16, 8)?, MODULE_BYTES);
        info.archive = MemoryRange { start: number(module, 0, 8)?, bytes: number(module, 8, 8)? };
    }
    let command_line = number(start, 24, 8)?;
    if command_line != 0 {
        info.set_command_line(read(command_line, COMMAND_LINE_BYTES as u64));
    }
    info.rsdp = number(start, 32, 8)?;
    let entries = number(start, 48, 4)? as usize;
    let map = read(number(start, 40, 8)?, entries.saturating_mul(MEMORY_ENTRY_BYTES) as u64);
    info.add_memory(map.chunks_exact(MEMORY_ENTRY_BYTES))?;
    Some(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<u8> {
        let mut memory = vec![0; 0x2000];
        let mut put =
            |at: usize, value: u64, bytes: usize| memory[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        put(0x100, MAGIC, 4);
        put(0x100 + 12, 1, 4);
        put(0x100 + 16, 0x200, 8);
        put(0x100 + 24, 0x300, 8);
        put(0x100 + 32, 0xe0000, 8);
        put(0x100 + 40, 0x400, 8);
        put(0x100 + 48, 2, 4);
        put(0x200, 0x70_0000, 8);
        put(0x208, 1234, 8);
        put(0x400, 0x10_0000, 8);
        put(0x408, 0x70_0000, 8);
        put(0x410, 1, 4);
        put(0x418, 0x80_0000, 8);
        put(0x420, 0x1000, 8);
        put(0x428, 2, 4);
        memory[0x300..0x30b].copy_from_slice(b"trace quiet");
        memory
    }

    #[test]
    fn memory_archive_and_command_line_are_found() {
        let memory = machine();
        let info = parse(0x100, |start, bytes| &memory[start as usize..(start + bytes) as usize]).unwrap();
        assert_eq!(info.archive, MemoryRange { start: 0x70_0000, bytes: 1234 });
        assert_eq!(info.memory.ranges(), [MemoryRange { start: 0x10_0000, bytes: 0x70_0000 }]);
        assert_eq!(info.rsdp, 0xe0000);
        assert!(info.has_word("trace") && info.has_word("quiet") && !info.has_word("qui"));
    }

    #[test]
    fn another_structure_is_refused() {
        let memory = [0; 4096];
        assert!(parse(0, |start, bytes| &memory[start as usize..(start + bytes) as usize]).is_none());
    }
}
