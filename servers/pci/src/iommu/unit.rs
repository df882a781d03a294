//! The registers of a remapping unit (VT-d, 11.4). Its caches are emptied whole after each change of the tables, which is rare.

use abi::Errno;
use driver::Region;
use sys::Result;

/// Offsets of registers.
mod register {
    pub const VERSION: usize = 0x00;
    pub const CAPABILITIES: usize = 0x08;
    pub const EXTENDED_CAPABILITIES: usize = 0x10;
    pub const COMMAND: usize = 0x18;
    pub const STATUS: usize = 0x1c;
    pub const ROOT: usize = 0x20;
    pub const CONTEXT_COMMAND: usize = 0x28;
}

/// What a unit without device, or no unit, reads as.
const ABSENT: [u32; 2] = [0, u32::MAX];
/// Capabilities: it wants to be told to write what it has buffered.
const FLUSHES_BUFFER: u64 = 1 << 4;
/// Capabilities: numbers of levels that its page tables may have, and the bit of three of them.
const LEVELS_SHIFT: u32 = 8;
const THREE_LEVELS: u64 = 1 << 1;
const FOUR_LEVELS: u64 = 1 << 2;

/// Command and status: it translates, it has taken the root table, it has written its buffer.
const TRANSLATE: u32 = 1 << 31;
const SET_ROOT: u32 = 1 << 30;
const FLUSH_BUFFER: u32 = 1 << 27;
/// Command and status: states of interrupt remapping, which is the firmware's.
const INTERRUPTS: u32 = 1 << 25 | 1 << 23;

/// Context command: forget all entries; the first bit is set until that is done.
const FORGET_CONTEXTS: u64 = 1 << 63 | 1 << 61;
/// Translation command, 8 bytes behind the place that the extended capabilities name: forget all, after reads and writes under way.
const FORGET_TRANSLATIONS: u64 = 1 << 63 | 1 << 60 | 1 << 49 | 1 << 48;
const IN_PROGRESS: u64 = 1 << 63;

/// Reads of a register until the unit counts as broken.
const POLLS: usize = 1_000_000;

/// Registers in memory.
pub trait Registers {
    /// Reads 32 bits.
    fn read32(&self, offset: usize) -> u32;
    /// Reads 64 bits.
    fn read64(&self, offset: usize) -> u64;
    /// Writes 32 bits.
    fn write32(&mut self, offset: usize, value: u32);
    /// Writes 64 bits.
    fn write64(&mut self, offset: usize, value: u64);
}

impl Registers for Region {
    fn read32(&self, offset: usize) -> u32 {
        self.read(offset)
    }
    fn read64(&self, offset: usize) -> u64 {
        self.read(offset)
    }
    fn write32(&mut self, offset: usize, value: u32) {
        self.write(offset, value);
    }
    fn write64(&mut self, offset: usize, value: u64) {
        self.write(offset, value);
    }
}

/// A unit.
pub struct Unit<R> {
    registers: R,
    levels: u32,
    /// Offset of the translation command.
    translations: usize,
    flushes_buffer: bool,
}

impl<R: Registers> Unit<R> {
    /// The unit with these registers.
    ///
    /// # Errors
    /// `ENODEV`: nothing answers; `EOPNOTSUPP`: its page tables have neither three nor four levels.
    pub fn find(registers: R) -> Result<Self> {
        if ABSENT.contains(&registers.read32(register::VERSION)) {
            return Err(Errno::ENODEV);
        }
        let capabilities = registers.read64(register::CAPABILITIES);
        let levels = match capabilities >> LEVELS_SHIFT {
            levels if levels & THREE_LEVELS != 0 => 3,
            levels if levels & FOUR_LEVELS != 0 => 4,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let place = registers.read64(register::EXTENDED_CAPABILITIES) >> 8 & 0x3ff;
        let translations = place as usize * 16 + 8;
        if translations + 8 > super::REGISTER_BYTES {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(Unit { registers, levels, translations, flushes_buffer: capabilities & FLUSHES_BUFFER != 0 })
    }

    /// Levels of its page tables.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Has it translate by the tables with this root, unless it does.
    ///
    /// # Errors
    /// `EIO`: it does not obey.
    pub fn enable(&mut self, root: u64) -> Result<()> {
        let translates = self.registers.read32(register::STATUS) & TRANSLATE != 0;
        if !translates || self.registers.read64(register::ROOT) != root {
            self.registers.write64(register::ROOT, root);
            self.command(SET_ROOT)?;
        }
        self.invalidate()?;
        self.command(TRANSLATE)
    }

    /// Has it forget what it has read of the tables.
    ///
    /// # Errors
    /// `EIO`: it does not obey.
    pub fn invalidate(&mut self) -> Result<()> {
        if self.flushes_buffer {
            self.command(FLUSH_BUFFER)?;
        }
        for (offset, command) in
            [(register::CONTEXT_COMMAND, FORGET_CONTEXTS), (self.translations, FORGET_TRANSLATIONS)]
        {
            self.registers.write64(offset, command);
            self.wait(|registers| registers.read64(offset) & IN_PROGRESS == 0)?;
        }
        Ok(())
    }

    /// Gives a command, and waits until the status shows that it is obeyed. The buffer's is then clear, the others are set.
    fn command(&mut self, command: u32) -> Result<()> {
        let kept = self.registers.read32(register::STATUS) & (TRANSLATE | INTERRUPTS);
        self.registers.write32(register::COMMAND, kept | command);
        let obeyed = if command == FLUSH_BUFFER { 0 } else { command };
        self.wait(|registers| registers.read32(register::STATUS) & command == obeyed)
    }

    fn wait(&self, is_done: impl Fn(&R) -> bool) -> Result<()> {
        if (0..POLLS).any(|_| is_done(&self.registers)) { Ok(()) } else { Err(Errno::EIO) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A unit that obeys at once, and keeps what it was told.
    #[derive(Default)]
    struct Played {
        words: BTreeMap<usize, u64>,
        told: Vec<(usize, u64)>,
        is_stuck: bool,
    }

    const PLACE: usize = 0xf0;

    fn played(capabilities: u64) -> Played {
        let words = [
            (register::VERSION, 0x10),
            (register::CAPABILITIES, capabilities),
            (register::EXTENDED_CAPABILITIES, (PLACE as u64 / 16) << 8),
        ];
        Played { words: words.into(), ..Played::default() }
    }

    impl Registers for Played {
        fn read32(&self, offset: usize) -> u32 {
            self.read64(offset) as u32
        }
        fn read64(&self, offset: usize) -> u64 {
            self.words.get(&offset).copied().unwrap_or(0)
        }
        fn write32(&mut self, offset: usize, value: u32) {
            self.told.push((offset, value.into()));
            if offset == register::COMMAND && !self.is_stuck {
                self.words.insert(register::STATUS, u64::from(value & !FLUSH_BUFFER));
            }
        }
        fn write64(&mut self, offset: usize, value: u64) {
            self.told.push((offset, value));
            let kept = if self.is_stuck { value } else { value & !IN_PROGRESS };
            self.words.insert(offset, kept);
        }
    }

    #[test]
    fn where_nothing_answers_is_no_unit() {
        for version in ABSENT {
            let none = Played { words: [(register::VERSION, version.into())].into(), ..Played::default() };
            assert_eq!(Unit::find(none).err(), Some(Errno::ENODEV));
        }
        assert_eq!(Unit::find(played(1 << 11)).err(), Some(Errno::EOPNOTSUPP));
        let levels = [1 << 9, 1 << 10, 3 << 9].map(|bits| Unit::find(played(bits)).expect("a unit").levels());
        assert_eq!(levels, [3, 4, 3]);
    }

    #[test]
    fn it_translates_after_it_has_the_root_and_has_forgotten_all() {
        let mut unit = Unit::find(played(1 << 9)).expect("a unit");
        unit.enable(0x5000).expect("obeys");
        let forgotten = [(register::CONTEXT_COMMAND, FORGET_CONTEXTS), (PLACE + 8, FORGET_TRANSLATIONS)];
        let root = [(register::ROOT, 0x5000), (register::COMMAND, SET_ROOT.into())];
        let rest = [(register::COMMAND, TRANSLATE.into())];
        assert_eq!(unit.registers.told, [&root[..], &forgotten, &rest].concat());
    }

    #[test]
    fn a_successor_does_not_interrupt_it() {
        let mut unit = Unit::find(played(1 << 9 | FLUSHES_BUFFER)).expect("a unit");
        unit.enable(0x5000).expect("obeys");
        unit.registers.told.clear();
        unit.enable(0x5000).expect("obeys");
        let commands = unit.registers.told.iter().filter(|(offset, _)| *offset == register::COMMAND);
        assert!(commands.clone().count() == 2 && commands.clone().all(|(_, told)| told & u64::from(TRANSLATE) != 0));
        assert!(!unit.registers.told.iter().any(|(offset, _)| *offset == register::ROOT));
    }

    #[test]
    fn one_that_does_not_obey_is_an_error() {
        let mut unit = Unit::find(Played { is_stuck: true, ..played(1 << 9) }).expect("a unit");
        assert_eq!(unit.enable(0x5000), Err(Errno::EIO));
        assert_eq!(unit.invalidate(), Err(Errno::EIO));
    }
}
