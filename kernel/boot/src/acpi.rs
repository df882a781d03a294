//! The few things the kernel asks ACPI: interrupt controllers (MADT), and how to switch the machine off (FADT, `_S5` of the DSDT).
//!
//! Firmware is not trusted: a table that is too short or whose checksum is wrong counts as absent.

use crate::bytes::number;

/// Most I/O APICs.
pub const MAX_IO_APICS: usize = 4;
/// ISA interrupt lines.
pub const ISA_LINES: usize = 16;

const HEADER_BYTES: u64 = 36;
/// No sane table is longer.
const MAX_TABLE_BYTES: u64 = 1 << 20;

/// An I/O APIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoApic {
    /// Physical address of its registers.
    pub address: u64,
    /// Global system interrupt of its first pin.
    pub first_line: u32,
}

/// How an interrupt pin is wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// Global system interrupt.
    pub line: u32,
    /// Active when low.
    pub low: bool,
    /// Level-triggered.
    pub level: bool,
}

/// What the tables say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Physical address of the local APICs' registers.
    pub local_apic: u64,
    /// I/O APICs, `io_apic_count` of them.
    pub io_apics: [IoApic; MAX_IO_APICS],
    /// Used entries of `io_apics`.
    pub io_apic_count: usize,
    /// Where the ISA lines lead.
    pub isa: [Wiring; ISA_LINES],
    /// Port of PM1a_CNT; 0: unknown.
    pub power_port: u16,
    /// What to write there for "off".
    pub power_off: u16,
}

impl Platform {
    /// Returns what a PC without tables has.
    pub const fn standard() -> Self {
        let mut isa = [Wiring { line: 0, low: false, level: false }; ISA_LINES];
        let mut line = 0;
        while line < ISA_LINES {
            isa[line].line = line as u32;
            line += 1;
        }
        let mut io_apics = [IoApic { address: 0, first_line: 0 }; MAX_IO_APICS];
        io_apics[0].address = 0xfec0_0000;
        Platform { local_apic: 0xfee0_0000, io_apics, io_apic_count: 1, isa, power_port: 0, power_off: 0 }
    }

    /// Reads the tables that start at the RSDP; `read(address, bytes)` returns physical memory, shorter or empty where there is none.
    pub fn read<'a>(rsdp: u64, read: impl Fn(u64, u64) -> &'a [u8]) -> Self {
        let mut platform = Platform::standard();
        // A missing table leaves the standard values.
        let _ = platform.read_tables(rsdp, &read);
        platform
    }

    fn read_tables<'a>(&mut self, rsdp: u64, read: &impl Fn(u64, u64) -> &'a [u8]) -> Option<()> {
        let pointer = read(rsdp, 36);
        if !pointer.starts_with(b"RSD PTR ") {
            return None;
        }
        let extended = number(pointer, 15, 1)? >= 2 && number(pointer, 24, 8)? != 0;
        let (root, width) = if extended { (number(pointer, 24, 8)?, 8) } else { (number(pointer, 16, 4)?, 4) };
        let list = table(root, read)?;
        for entry in list.get(HEADER_BYTES as usize..)?.chunks_exact(width) {
            let Some(content) = number(entry, 0, width).and_then(|address| table(address, read)) else { continue };
            // A truncated table contributes the entries before its end.
            let _ = match &content[..4] {
                b"APIC" => self.read_interrupts(content),
                b"FACP" => self.read_power(content, read),
                _ => None,
            };
        }
        Some(())
    }

    fn read_interrupts(&mut self, madt: &[u8]) -> Option<()> {
        self.local_apic = number(madt, 36, 4)?;
        self.io_apic_count = 0;
        let mut at = 44;
        while let (Some(kind), Some(length)) = (number(madt, at, 1), number(madt, at + 1, 1)) {
            let entry = madt.get(at..at + (length as usize).max(2))?;
            match kind {
                1 if self.io_apic_count < MAX_IO_APICS => {
                    let (address, first_line) = (number(entry, 4, 4)?, number(entry, 8, 4)? as u32);
                    self.io_apics[self.io_apic_count] = IoApic { address, first_line };
                    self.io_apic_count += 1;
                }
                2 => {
                    let flags = number(entry, 8, 2)?;
                    let wiring =
                        Wiring { line: number(entry, 4, 4)? as u32, low: flags & 3 == 3, level: flags >> 2 & 3 == 3 };
                    if let Some(line) = self.isa.get_mut(number(entry, 3, 1)? as usize) {
                        *line = wiring;
                    }
                }
                5 => self.local_apic = number(entry, 4, 8)?,
                _ => {}
            }
            at += (length as usize).max(2);
        }
        Some(())
    }

    fn read_power<'a>(&mut self, fadt: &[u8], read: &impl Fn(u64, u64) -> &'a [u8]) -> Option<()> {
        let dsdt = table(number(fadt, 40, 4)?, read)?;
        let sleep_type = sleep_type_of_s5(dsdt)?;
        self.power_port = u16::try_from(number(fadt, 64, 4)?).ok()?;
        self.power_off = sleep_type << 10 | 1 << 13;
        Some(())
    }
}

/// Returns a whole table if its length and checksum are right.
fn table<'a>(address: u64, read: &impl Fn(u64, u64) -> &'a [u8]) -> Option<&'a [u8]> {
    let length = number(read(address, HEADER_BYTES), 4, 4)?;
    if !(HEADER_BYTES..=MAX_TABLE_BYTES).contains(&length) {
        return None;
    }
    let content = read(address, length);
    let sum = content.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
    (content.len() as u64 == length && sum == 0).then_some(content)
}

/// SLP_TYPa of `_S5`: AML `Name (_S5_, Package () { type, … })`, the first element a small constant or a byte.
fn sleep_type_of_s5(aml: &[u8]) -> Option<u16> {
    const PACKAGE: u8 = 0x12;
    const BYTE: u8 = 0x0a;
    let name = aml.windows(4).position(|window| window == b"_S5_")?;
    let package = aml.get(name + 4..)?;
    if *package.first()? != PACKAGE {
        return None;
    }
    // The length takes one byte and as many more as its top two bits say; then comes the number of elements.
    let length_bytes = 1 + (*package.get(1)? >> 6) as usize;
    let element = package.get(1 + length_bytes + 1..)?;
    let value = if *element.first()? == BYTE { *element.get(1)? } else { *element.first()? };
    (value < 8).then_some(value as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_sum(mut table: Vec<u8>) -> Vec<u8> {
        let length = table.len() as u32;
        table[4..8].copy_from_slice(&length.to_le_bytes());
        table[9] = 0;
        table[9] = 0u8.wrapping_sub(table.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)));
        table
    }

    /// RSDP at 0, RSDT at 0x100, MADT at 0x200, FADT at 0x300, DSDT at 0x400.
    fn tables() -> Vec<u8> {
        let mut memory = vec![0; 0x1000];
        let mut rsdp = b"RSD PTR ".to_vec();
        rsdp.resize(36, 0);
        rsdp[16..20].copy_from_slice(&0x100u32.to_le_bytes());
        let mut rsdt = [b"RSDT".to_vec(), vec![0; 32]].concat();
        rsdt.extend([0x200u32, 0x300].iter().flat_map(|address| address.to_le_bytes()));
        let mut madt = [b"APIC".to_vec(), vec![0; 40]].concat();
        madt[36..40].copy_from_slice(&0xfee0_0000u32.to_le_bytes());
        madt.extend([1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]);
        madt.extend([2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
        madt.extend([2, 10, 0, 9, 9, 0, 0, 0, 0x0f, 0]);
        let mut fadt = [b"FACP".to_vec(), vec![0; 80]].concat();
        fadt[40..44].copy_from_slice(&0x400u32.to_le_bytes());
        fadt[64..68].copy_from_slice(&0x604u32.to_le_bytes());
        let dsdt =
            [b"DSDT".to_vec(), vec![0; 32], vec![0x08], b"_S5_".to_vec(), vec![0x12, 6, 4, 0x0a, 5, 0, 0, 0]].concat();
        for (at, table) in [(0x100, rsdt), (0x200, madt), (0x300, fadt), (0x400, dsdt)] {
            let table = with_sum(table);
            memory[at..at + table.len()].copy_from_slice(&table);
        }
        memory[..36].copy_from_slice(&rsdp);
        memory
    }

    fn parse(memory: &[u8]) -> Platform {
        Platform::read(0, |start, bytes| memory.get(start as usize..(start + bytes) as usize).unwrap_or(&[]))
    }

    #[test]
    fn interrupt_controllers_and_overrides_are_found() {
        let platform = parse(&tables());
        assert_eq!((platform.io_apic_count, platform.io_apics[0].address), (1, 0xfec0_0000));
        assert_eq!(platform.isa[0], Wiring { line: 2, low: false, level: false });
        assert_eq!(platform.isa[9], Wiring { line: 9, low: true, level: true });
        assert_eq!(platform.isa[4], Wiring { line: 4, low: false, level: false });
    }

    #[test]
    fn the_power_switch_is_found() {
        let platform = parse(&tables());
        assert_eq!((platform.power_port, platform.power_off), (0x604, 5 << 10 | 1 << 13));
    }

    #[test]
    fn a_table_with_a_wrong_sum_is_ignored() {
        let mut memory = tables();
        memory[0x240] ^= 1;
        assert_eq!(parse(&memory).isa, Platform::standard().isa);
    }

    #[test]
    fn no_tables_give_the_standard_machine() {
        assert_eq!(parse(&[0; 64]), Platform::standard());
    }
}
