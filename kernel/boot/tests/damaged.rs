//! Damaged input: whatever boot loader and firmware leave, reading it neither panics nor breaks an invariant.
//!
//! Valid structures of both protocols, with ACPI tables behind them, are damaged by a seeded generator: bytes are replaced, memory
//! ends early, lengths and addresses become extreme. A failure names its seed.
#![forbid(unsafe_code)]

use abi::layout::PAGE_BYTES;
use kernel_boot::{BootInfo, MemoryMap, Platform, acpi::MAX_IO_APICS, multiboot2};

const ROUNDS: u64 = 20_000;
const PVH_MAGIC: u32 = 0x336e_c578;
const START: usize = 0x40;

/// A generator of pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A number that is likely to be wrong somewhere: small, near a power of two, or anything.
    fn extreme(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next() % 16,
            1 => (1u64 << self.below(64)).wrapping_sub(self.next() % 3),
            2 => u64::MAX - self.next() % 8192,
            _ => self.next(),
        }
    }
}

fn put(memory: &mut [u8], at: usize, bytes: &[u8]) {
    memory[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Writes an ACPI table with its length and checksum.
fn put_table(memory: &mut [u8], at: usize, name: &[u8; 4], body: &[u8]) {
    let mut table = [name.as_slice(), &[0; 32], body].concat();
    let length = table.len() as u32;
    put(&mut table, 4, &length.to_le_bytes());
    table[9] = 0u8.wrapping_sub(table.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)));
    put(memory, at, &table);
}

/// RSDP at 0x400, and tables behind it: interrupt controllers, and the power switch.
fn put_acpi(memory: &mut [u8]) {
    put(memory, 0x400, b"RSD PTR ");
    put(memory, 0x410, &0x440u32.to_le_bytes());
    put_table(memory, 0x440, b"RSDT", &[0x480u32, 0x500].map(u32::to_le_bytes).concat());
    let controllers = [vec![0, 0, 0xe0, 0xfe, 0, 0, 0, 0], vec![1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]];
    let overrides = [vec![2, 10, 0, 9, 9, 0, 0, 0, 0x0f, 0], vec![5, 12, 0, 0, 0, 0, 0xe0, 0xfe, 0, 0, 0, 0]];
    put_table(memory, 0x480, b"APIC", &[controllers.concat(), overrides.concat()].concat());
    let mut power = vec![0; 48];
    put(&mut power, 4, &0x580u32.to_le_bytes());
    put(&mut power, 28, &0x604u32.to_le_bytes());
    put_table(memory, 0x500, b"FACP", &power);
    put_table(memory, 0x580, b"DSDT", b"\x08_S5_\x12\x06\x04\x0a\x05\0\0\0");
}

fn pvh_machine() -> Vec<u8> {
    let mut memory = vec![0; 0x800];
    let start = [PVH_MAGIC as u64 | 1 << 32, 1 << 32, 0x100, 0x200, 0x400, 0x300, 3];
    put(&mut memory, START, &start.map(u64::to_le_bytes).concat());
    put(&mut memory, START + 12, &1u32.to_le_bytes());
    put(&mut memory, 0x100, &[0x70_0000u64, 1234, 0, 0].map(u64::to_le_bytes).concat());
    put(&mut memory, 0x200, b"trace quiet\0");
    let map = [0, 0x9_f000, 1, 0x10_0000, 0x3ff0_0000, 1, 0xffff_0000, 0x1000, 2u64];
    put(&mut memory, 0x300, &map.map(u64::to_le_bytes).concat());
    put_acpi(&mut memory);
    memory
}

fn multiboot_machine() -> Vec<u8> {
    let mut tags = Vec::new();
    let mut push = |kind: u32, body: &[u8]| {
        tags.extend(kind.to_le_bytes());
        tags.extend((body.len() as u32 + 8).to_le_bytes());
        tags.extend(body);
        tags.resize(tags.len().next_multiple_of(8), 0);
    };
    push(1, b"quiet\0");
    push(3, &[0x70_0000u32, 0x80_0000].map(u32::to_le_bytes).concat());
    push(6, &[24, 0x10_0000, 0x3ff0_0000, 1u64].map(u64::to_le_bytes).concat());
    push(8, &[0xfd00_0000, 4096 | 1024 << 32, 768 | 0x0120 << 32, 0u64].map(u64::to_le_bytes).concat());
    push(0, &[]);
    let mut memory = vec![0; 0x800];
    put(&mut memory, START, &(tags.len() as u32 + 8).to_le_bytes());
    put(&mut memory, START + 8, &tags);
    put_acpi(&mut memory);
    memory
}

/// What the kernel does with a machine, up to dividing its memory.
fn start(magic: u64, memory: &[u8]) -> (Option<BootInfo>, Platform) {
    let read = |address: u64, bytes: u64| {
        let end = address.checked_add(bytes).and_then(|end| usize::try_from(end).ok());
        end.and_then(|end| memory.get(address as usize..end)).unwrap_or(&[])
    };
    (kernel_boot::read(magic, START as u64, read), Platform::read(0x400, read))
}

fn check_map(map: &MemoryMap, seed: u64) {
    let mut ranges = map.ranges().to_vec();
    ranges.sort_by_key(|range| range.start);
    for range in &ranges {
        let whole = range.start.is_multiple_of(PAGE_BYTES) && range.bytes.is_multiple_of(PAGE_BYTES);
        assert!(whole && range.bytes > 0, "seed {seed}: {range:x?} is not whole pages");
        assert!(range.start.checked_add(range.bytes).is_some(), "seed {seed}: {range:x?} wraps round");
    }
    let apart = ranges.windows(2).all(|pair| pair[0].start + pair[0].bytes <= pair[1].start);
    assert!(apart, "seed {seed}: ranges overlap");
}

fn check(magic: u64, memory: &[u8], seed: u64) {
    let (info, platform) = start(magic, memory);
    assert!(platform.io_apic_count <= MAX_IO_APICS, "seed {seed}");
    let Some(info) = info else { return };
    check_map(&info.memory, seed);
    let mut free = info.memory.clone();
    free.remove(info.archive.start, info.archive.bytes);
    check_map(&free, seed);
    if let Some(frame) = free.take(1, u64::MAX) {
        let is_free = |range: &abi::privilege::MemoryRange| (range.start..range.start + range.bytes).contains(&frame);
        assert!(!free.ranges().iter().any(is_free), "seed {seed}: a taken frame is still free");
    }
}

/// Damages a few places, and now and then ends the memory early.
fn damage(memory: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let width = [1, 2, 4, 8][random.below(4)];
        let at = random.below(memory.len() - 8);
        let value = random.extreme().to_le_bytes();
        put(memory, at, &value[..width]);
    }
    if random.below(4) == 0 {
        memory.truncate(1 + random.below(memory.len() - 1));
    }
}

fn survives(magic: u64, machine: fn() -> Vec<u8>) {
    check(magic, &machine(), 0);
    for seed in 1..=ROUNDS {
        let mut random = Random(seed);
        let mut memory = machine();
        damage(&mut memory, &mut random);
        check(magic, &memory, seed);
    }
}

#[test]
fn undamaged_machines_are_read() {
    for (magic, memory) in [(0, pvh_machine()), (multiboot2::MAGIC, multiboot_machine())] {
        let (info, platform) = start(magic, &memory);
        let info = info.expect("a known loader");
        assert_eq!((info.memory.total_bytes(), info.archive.start), (0x3ff0_0000, 0x70_0000));
        assert!(info.has_word("quiet"));
        assert_eq!((platform.isa[9].low, platform.power_port, platform.power_off), (true, 0x604, 5 << 10 | 1 << 13));
    }
}

#[test]
fn damaged_pvh_machines_are_survived() {
    survives(0, pvh_machine);
}

#[test]
fn damaged_multiboot2_machines_are_survived() {
    survives(multiboot2::MAGIC, multiboot_machine);
}

#[test]
fn any_sequence_of_additions_and_removals_keeps_the_memory_map_whole() {
    for seed in 1..=ROUNDS / 10 {
        let mut random = Random(seed);
        let mut map = MemoryMap::EMPTY;
        for _ in 0..40 {
            let (start, bytes) = (random.extreme(), random.extreme());
            if random.below(3) == 0 {
                map.remove(start, bytes)
            } else {
                map.add(start, bytes)
            }
            check_map(&map, seed);
        }
    }
}
