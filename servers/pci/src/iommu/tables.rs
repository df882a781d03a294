//! The tables that the unit walks (VT-d, 9.1, 9.3 and 9.8): bus and device select a domain, whose page tables map what it reaches,
//! at its own address. There is a domain for each slot.
//!
//! The first page is pci's alone: which pages are used, and where the tables of each domain begin. Every word is written whole, and what
//! it refers to before it, so that a successor goes on from any state. A death between two words loses one page at most.

use crate::config::Address;
use abi::{Errno, endpoint::SERVICE_SLOTS, layout::PAGE_BYTES};
use driver::Region;
use sys::Result;

/// Words in a page.
const WORDS: usize = PAGE_BYTES as usize / 8;
/// Address within an entry.
const ADDRESS: u64 = !(PAGE_BYTES - 1);
/// Root and context entries: present.
const PRESENT: u64 = 1;
/// Entries of page tables.
const READ_WRITE: u64 = 3;
/// Where a context entry has the number of its domain. Units may reserve domain 0.
const DOMAIN_SHIFT: u32 = 8;
/// Bits of an address that one level of page tables translates.
const LEVEL_BITS: u32 = 9;

/// First word of pci's own page, with the number of levels: the tables are whole.
const MAGIC: u64 = 0x736b_696e_6b69_6f00;
/// Words of that page: the magic number, the number of pages in use, and the page of each domain's tables.
const USED: usize = 1;
const DOMAINS: usize = 2;
/// The page of the root table.
const ROOT_PAGE: usize = 1;

/// Memory of the tables: whole words, in pages.
pub trait TableMemory {
    /// Number of pages.
    fn pages(&self) -> usize;
    /// Physical address of the first one.
    fn physical(&self) -> u64;
    /// Reads a word.
    fn read(&self, word: usize) -> u64;
    /// Writes a word, after all that were written before.
    fn write(&mut self, word: usize, value: u64);
}

impl TableMemory for Region {
    fn pages(&self) -> usize {
        self.len() / PAGE_BYTES as usize
    }
    fn physical(&self) -> u64 {
        Region::physical(self, 0)
    }
    fn read(&self, word: usize) -> u64 {
        Region::read(self, word * 8)
    }
    fn write(&mut self, word: usize, value: u64) {
        Region::write(self, word * 8, value);
    }
}

/// See the head of the file.
pub struct Tables<M> {
    memory: M,
    levels: u32,
}

impl<M: TableMemory> Tables<M> {
    /// The tables in this memory, or empty ones if they are not there or have another number of levels.
    ///
    /// # Errors
    /// `ENOMEM`: not even empty ones fit.
    pub fn open(memory: M, levels: u32) -> Result<Self> {
        const { assert!(DOMAINS + SERVICE_SLOTS <= WORDS) }
        let mut tables = Tables { memory, levels };
        let magic = MAGIC | u64::from(levels);
        if tables.memory.read(0) != magic {
            tables.memory.write(0, 0);
            (DOMAINS..DOMAINS + SERVICE_SLOTS).for_each(|word| tables.memory.write(word, 0));
            tables.memory.write(USED, ROOT_PAGE as u64);
            tables.take_page()?;
            tables.memory.write(0, magic);
        }
        Ok(tables)
    }

    /// Physical address of the root table.
    pub fn root(&self) -> u64 {
        self.address(ROOT_PAGE)
    }

    /// Makes `device` the only one in the domain of `slot`. Returns whether that changed anything.
    ///
    /// # Errors
    /// `ENOMEM`: no page is free.
    pub fn attach(&mut self, device: Address, slot: usize) -> Result<bool> {
        let domain = self.domain(slot)?;
        let entry = self.context_entry(device)?;
        // Three levels are width 1, four are 2.
        let (low, high) = (domain | PRESENT, (slot as u64 + 1) << DOMAIN_SHIFT | u64::from(self.levels - 2));
        if (self.memory.read(entry), self.memory.read(entry + 1)) == (low, high) {
            return Ok(false);
        }
        self.detach_all(domain);
        self.memory.write(entry, 0);
        self.memory.write(entry + 1, high);
        self.memory.write(entry, low);
        Ok(true)
    }

    /// Maps these pages in the domain of `slot`, at their own addresses.
    ///
    /// # Errors
    /// `ENOMEM`: no page is free; `EINVAL`: beyond the addresses that the tables translate.
    pub fn map(&mut self, slot: usize, physical: u64, bytes: u64) -> Result<()> {
        let end =
            physical.checked_add(bytes).filter(|end| end >> self.shift_of(self.levels) == 0).ok_or(Errno::EINVAL)?;
        let domain = self.domain(slot)?;
        for address in (physical..end).step_by(PAGE_BYTES as usize) {
            let mut table = domain;
            for level in (1..self.levels).rev() {
                table = self.table_at(self.word_of(table) + self.index_of(address, level), READ_WRITE)?;
            }
            let word = self.word_of(table) + self.index_of(address, 0);
            self.memory.write(word, address & ADDRESS | READ_WRITE);
        }
        Ok(())
    }

    /// Physical address of a domain's first table.
    fn domain(&mut self, slot: usize) -> Result<u64> {
        if slot >= SERVICE_SLOTS {
            return Err(Errno::EINVAL);
        }
        self.table_at(DOMAINS + slot, PRESENT)
    }

    fn context_entry(&mut self, device: Address) -> Result<usize> {
        let [function, bus] = device.0.to_le_bytes().map(usize::from);
        let table = self.table_at(ROOT_PAGE * WORDS + 2 * bus, PRESENT)?;
        Ok(self.word_of(table) + 2 * function)
    }

    /// No device is in this domain any more.
    fn detach_all(&mut self, domain: u64) {
        for bus in 0..WORDS / 2 {
            let table = self.memory.read(ROOT_PAGE * WORDS + 2 * bus);
            if table & PRESENT == 0 {
                continue;
            }
            let first = self.word_of(table & ADDRESS);
            for entry in (first..first + WORDS).step_by(2) {
                if self.memory.read(entry) == domain | PRESENT {
                    self.memory.write(entry, 0);
                }
            }
        }
    }

    /// The table that the entry `word` refers to; a fresh one, entered with these bits, if there is none.
    fn table_at(&mut self, word: usize, bits: u64) -> Result<u64> {
        let entry = self.memory.read(word);
        if entry != 0 {
            return Ok(entry & ADDRESS);
        }
        let table = self.take_page()?;
        self.memory.write(word, table | bits);
        Ok(table)
    }

    /// Takes a page and clears it. Returns its physical address.
    fn take_page(&mut self) -> Result<u64> {
        let page = self.memory.read(USED) as usize;
        if page >= self.memory.pages() {
            return Err(Errno::ENOMEM);
        }
        self.memory.write(USED, page as u64 + 1);
        (page * WORDS..(page + 1) * WORDS).for_each(|word| self.memory.write(word, 0));
        Ok(self.address(page))
    }

    fn address(&self, page: usize) -> u64 {
        self.memory.physical() + page as u64 * PAGE_BYTES
    }

    fn word_of(&self, table: u64) -> usize {
        ((table - self.memory.physical()) / 8) as usize
    }

    fn shift_of(&self, level: u32) -> u32 {
        PAGE_BYTES.trailing_zeros() + LEVEL_BITS * level
    }

    fn index_of(&self, address: u64, level: u32) -> usize {
        (address >> self.shift_of(level)) as usize % WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Address = Address::new(0, 3, 0);
    const OTHER: Address = Address::new(2, 4, 1);
    const START: u64 = 0x123_4000;
    const P: u64 = PAGE_BYTES;

    /// Memory whose owner dies with the write after the last that is left.
    #[derive(Clone)]
    struct Memory {
        words: Vec<u64>,
        writes_left: usize,
    }

    impl Memory {
        fn new(pages: usize) -> Self {
            Memory { words: vec![0; pages * WORDS], writes_left: usize::MAX }
        }

        /// What the unit finds: the address that a device's access to `address` reaches, and its domain.
        fn reaches(&self, levels: u32, device: Address, address: u64) -> Option<(u64, u64)> {
            let at = |table: u64, word: usize| self.words[((table - START) / 8) as usize + word];
            let context = Some(at(START + P, 2 * (device.0 >> 8) as usize)).filter(|root| root & 1 == 1)? & !1;
            let entry = 2 * (device.0 & 0xff) as usize;
            let (low, high) = (at(context, entry), at(context, entry + 1));
            assert!(low & 1 == 0 || (low & 0xffe, high & 7) == (0, u64::from(levels - 2)));
            let mut table = Some(low).filter(|low| low & 1 == 1)? & !1;
            for level in (0..levels).rev() {
                let entry = at(table, (address >> (12 + 9 * level)) as usize % 512);
                table = Some(entry).filter(|entry| entry & 3 == 3)? & !0xfff;
            }
            Some((table | (address % P), high >> 8))
        }
    }

    impl TableMemory for Memory {
        fn pages(&self) -> usize {
            self.words.len() / WORDS
        }
        fn physical(&self) -> u64 {
            START
        }
        fn read(&self, word: usize) -> u64 {
            self.words[word]
        }
        fn write(&mut self, word: usize, value: u64) {
            if self.writes_left > 0 {
                self.words[word] = value;
                self.writes_left -= 1;
            }
        }
    }

    fn tables(levels: u32) -> Tables<Memory> {
        Tables::open(Memory::new(40), levels).expect("room")
    }

    #[test]
    fn a_device_reaches_the_memory_of_its_driver_and_nothing_else() {
        for levels in [3, 4] {
            let mut tables = tables(levels);
            assert_eq!(tables.attach(DISK, 20), Ok(true));
            assert_eq!(tables.attach(OTHER, 21), Ok(true));
            tables.map(20, 0x1f_f000, 2 * P).expect("room");
            tables.map(21, 0x40_0000_0000 >> (9 * (4 - levels)) >> 1, P).expect("room");
            let reaches = |device, address| tables.memory.reaches(levels, device, address);
            assert_eq!(reaches(DISK, 0x1f_f008), Some((0x1f_f008, 21)));
            assert_eq!(reaches(DISK, 0x20_0fff), Some((0x20_0fff, 21)));
            assert_eq!([0x1f_efff, 0x20_1000, 0, START].map(|address| reaches(DISK, address)), [None; 4]);
            assert_eq!(reaches(OTHER, 0x1f_f000), None);
            assert_eq!(reaches(Address::new(0, 3, 1), 0x1f_f000), None, "a device without driver");
        }
    }

    #[test]
    fn a_driver_has_one_device_and_a_device_one_driver() {
        let mut tables = tables(3);
        tables.map(20, 0x1000, P).expect("room");
        tables.attach(DISK, 20).expect("room");
        assert_eq!(tables.attach(DISK, 20), Ok(false));
        assert_eq!(tables.attach(OTHER, 20), Ok(true));
        assert_eq!(tables.memory.reaches(3, DISK, 0x1000), None);
        assert_eq!(tables.attach(DISK, 21), Ok(true));
        assert_eq!((tables.memory.reaches(3, DISK, 0x1000), tables.attach(OTHER, 20)), (None, Ok(false)));
    }

    #[test]
    fn addresses_beyond_the_tables_and_slots_that_are_none_are_refused() {
        let mut tables = tables(3);
        assert_eq!(tables.map(20, (1 << 39) - P, 2 * P), Err(Errno::EINVAL));
        assert_eq!(tables.map(20, u64::MAX - P, 2 * P), Err(Errno::EINVAL));
        assert_eq!(tables.attach(DISK, SERVICE_SLOTS), Err(Errno::EINVAL));
    }

    #[test]
    fn full_tables_are_an_error_and_stay_as_they_are() {
        let mut tables = Tables::open(Memory::new(6), 3).expect("room");
        tables.attach(DISK, 20).expect("two pages");
        assert_eq!(tables.map(20, 0x1000, P), Ok(()));
        assert_eq!(tables.map(20, 0x20_0000, P), Err(Errno::ENOMEM));
        assert_eq!(tables.attach(OTHER, 21), Err(Errno::ENOMEM));
        assert_eq!(tables.memory.reaches(3, DISK, 0x1000), Some((0x1000, 21)));
        assert_eq!(Tables::open(Memory::new(1), 3).err(), Some(Errno::ENOMEM));
    }

    #[test]
    fn a_successor_goes_on_after_every_write() {
        let work = |tables: &mut Tables<Memory>| {
            tables.attach(DISK, 20).and_then(|_| tables.map(20, 0x1000, P)).and_then(|()| tables.attach(OTHER, 21))
        };
        for writes in 0..12_000 {
            let memory = Memory { writes_left: writes, ..Memory::new(40) };
            let mut dying = Tables::open(memory, 3).expect("room");
            if dying.memory.writes_left > 0 {
                work(&mut dying).expect("room");
            }
            let left = Memory { writes_left: usize::MAX, ..dying.memory };
            assert!(left.words[0] == 0 || left.reaches(3, DISK, 0x1000).is_none_or(|found| found == (0x1000, 21)));
            let mut successor = Tables::open(left, 3).expect("room");
            work(&mut successor).expect("room");
            assert_eq!(successor.memory.reaches(3, DISK, 0x1000), Some((0x1000, 21)));
            assert_eq!(successor.memory.reaches(3, OTHER, 0x1000), None);
        }
    }
}
