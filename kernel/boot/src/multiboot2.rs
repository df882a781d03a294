//! The information that a multiboot2 loader (GRUB) leaves: a list of tags.

use crate::{bytes::number, info::BootInfo};
use abi::{info::Framebuffer, privilege::MemoryRange};

/// What the loader has in `eax`.
pub const MAGIC: u64 = 0x36d7_6289;

/// Types of tags.
mod tag {
    pub const END: u64 = 0;
    pub const COMMAND_LINE: u64 = 1;
    pub const MODULE: u64 = 3;
    pub const MEMORY: u64 = 6;
    pub const FRAMEBUFFER: u64 = 8;
    pub const ACPI_OLD: u64 = 14;
    pub const ACPI_NEW: u64 = 15;
}

/// Every tag starts with type and size, four bytes each.
const TAG_HEADER: usize = 8;
/// A frame buffer of direct colours.
const DIRECT_COLOUR: u64 = 1;

/// Reads the information `bytes`, which lie at physical `address`. Truncated tags are skipped.
pub fn parse(address: u64, bytes: &[u8]) -> BootInfo {
    let mut info = BootInfo::EMPTY;
    let mut at = 8;
    while let (Some(kind), Some(size)) = (number(bytes, at, 4), number(bytes, at + 4, 4)) {
        let size = size as usize;
        let Some(body) = bytes.get(at + TAG_HEADER..at + size.max(TAG_HEADER)) else { break };
        if kind == tag::END {
            break;
        }
        // A tag that is too short says nothing; the others still do.
        let _ = read_tag(&mut info, kind, body, address + (at + TAG_HEADER) as u64);
        at += size.max(TAG_HEADER).next_multiple_of(8);
    }
    if info.rsdp != 0 {
        info.keep = MemoryRange { start: address, bytes: bytes.len() as u64 };
    }
    info
}

fn read_tag(info: &mut BootInfo, kind: u64, body: &[u8], address: u64) -> Option<()> {
    match kind {
        tag::COMMAND_LINE => info.set_command_line(body),
        tag::MODULE if info.archive.bytes == 0 => {
            let (start, end) = (number(body, 0, 4)?, number(body, 4, 4)?);
            info.archive = MemoryRange { start, bytes: end.saturating_sub(start) };
        }
        tag::MEMORY => {
            let entry_bytes = number(body, 0, 4)? as usize;
            info.add_memory(body.get(8..)?.chunks_exact(entry_bytes.max(24)))?;
        }
        tag::FRAMEBUFFER if number(body, 21, 1)? == DIRECT_COLOUR => {
            info.framebuffer = Some(Framebuffer {
                address: number(body, 0, 8)?,
                pitch: number(body, 8, 4)? as u32,
                width: number(body, 12, 4)? as u32,
                height: number(body, 16, 4)? as u32,
                depth: number(body, 20, 1)? as u32,
            });
        }
        // The tag is a copy of the RSDP; the newer one tells more.
        tag::ACPI_NEW => info.rsdp = address,
        tag::ACPI_OLD if info.rsdp == 0 => info.rsdp = address,
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_tag(bytes: &mut Vec<u8>, kind: u32, body: &[u8]) {
        bytes.extend(kind.to_le_bytes());
        bytes.extend((body.len() as u32 + 8).to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn tags_are_read() {
        let mut bytes = vec![0; 8];
        push_tag(&mut bytes, 1, b"trace\0");
        push_tag(&mut bytes, 3, &words(&[0x51_0000_0050_0000 & 0xffff_ffff | 0x0051_0000 << 32]));
        push_tag(&mut bytes, 6, &words(&[24, 0x10_0000, 0x70_0000, 1]));
        push_tag(&mut bytes, 8, &[words(&[0xfd00_0000, 4096 | 1024 << 32]), vec![0, 3, 0, 0, 32, 1, 0, 0]].concat());
        push_tag(&mut bytes, 14, b"RSD PTR ");
        push_tag(&mut bytes, 0, &[]);
        let info = parse(0x9000, &bytes);
        assert_eq!(info.command_line(), b"trace");
        assert_eq!(info.archive, MemoryRange { start: 0x50_0000, bytes: 0x1_0000 });
        assert_eq!(info.memory.total_bytes(), 0x70_0000);
        let framebuffer = info.framebuffer.unwrap();
        assert_eq!(
            (framebuffer.address, framebuffer.pitch, framebuffer.width, framebuffer.height),
            (0xfd00_0000, 4096, 1024, 768)
        );
        assert!(info.rsdp > 0x9000 && info.keep.start == 0x9000);
    }

    #[test]
    fn a_tag_beyond_the_end_stops_the_reading() {
        let mut bytes = vec![0; 8];
        bytes.extend(6u32.to_le_bytes());
        bytes.extend(4000u32.to_le_bytes());
        assert_eq!(parse(0, &bytes).memory.total_bytes(), 0);
    }
}
