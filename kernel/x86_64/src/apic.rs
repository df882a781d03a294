//! Interrupt controllers: this CPU's local APIC with its timer, the I/O APICs that the lines lead to, and the silenced old PICs.
//!
//! Registers are memory, mapped uncached; the fields hold virtual addresses. The timer counts down once per arming.

use crate::{cpu, interrupts, interrupts::LINES, page_tables::KernelTables};
use kernel_boot::{MemoryMap, Platform, acpi::MAX_IO_APICS, acpi::Wiring};

/// Offsets of the local APIC's registers.
mod local {
    pub const ID: u64 = 0x20;
    pub const TASK_PRIORITY: u64 = 0x80;
    pub const END_OF_INTERRUPT: u64 = 0xb0;
    pub const SPURIOUS: u64 = 0xf0;
    pub const TIMER: u64 = 0x320;
    pub const PIN_0: u64 = 0x350;
    pub const PIN_1: u64 = 0x360;
    pub const INITIAL_COUNT: u64 = 0x380;
    pub const CURRENT_COUNT: u64 = 0x390;
    pub const DIVIDE: u64 = 0x3e0;
}

/// Registers of an I/O APIC, reached through two: number and value.
mod io {
    pub const SELECT: u64 = 0;
    pub const WINDOW: u64 = 0x10;
    pub const VERSION: u32 = 1;
    pub const FIRST_PIN: u32 = 0x10;
}

const ENABLED: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const DIVIDE_BY_1: u32 = 0xb;
const PIN_LOW: u32 = 1 << 13;
const PIN_LEVEL: u32 = 1 << 15;
/// Devices write here to interrupt a CPU.
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
/// APIC_BASE: the APIC is on.
const GLOBAL_ENABLE: u64 = 1 << 11;

/// The interrupt controllers.
pub struct Apic {
    /// What the tables say of them, with the addresses that their registers are mapped at.
    platform: Platform,
    /// How many pins each I/O APIC has.
    pins: [u32; MAX_IO_APICS],
}

impl Apic {
    /// None yet.
    pub const NEW: Self = Apic { platform: Platform::standard(), pins: [0; MAX_IO_APICS] };

    /// Maps the registers.
    pub fn map(&mut self, platform: &Platform, tables: &mut KernelTables, memory: &mut MemoryMap) {
        self.platform = *platform;
        let io_apics = self.platform.io_apics[..platform.io_apic_count].iter_mut().map(|apic| &mut apic.address);
        for address in io_apics.chain([&mut self.platform.local_apic]) {
            *address = tables.map_device(memory, *address);
        }
    }

    /// Silences the old controllers, masks all lines and switches this CPU's APIC on.
    pub fn start(&mut self) {
        silence_old_controllers();
        // SAFETY: switches the APIC on where it is.
        unsafe { cpu::write_msr(cpu::msr::APIC_BASE, cpu::read_msr(cpu::msr::APIC_BASE) | GLOBAL_ENABLE) };
        self.write(local::TASK_PRIORITY, 0);
        self.write(local::PIN_0, MASKED);
        self.write(local::PIN_1, MASKED);
        self.write(local::DIVIDE, DIVIDE_BY_1);
        self.write(local::TIMER, interrupts::TIMER as u32);
        self.write(local::SPURIOUS, ENABLED | interrupts::SPURIOUS as u32);
        for index in 0..self.platform.io_apic_count {
            self.pins[index] = (self.io_read(index, io::VERSION) >> 16 & 0xff) + 1;
            for pin in 0..self.pins[index] {
                self.io_write(index, io::FIRST_PIN + 2 * pin, MASKED);
            }
        }
    }

    /// The interrupt that was taken last is done.
    pub fn acknowledge(&self) {
        self.write(local::END_OF_INTERRUPT, 0);
    }

    /// Makes the timer fire after `count` of its ticks; 0 stops it.
    pub fn set_timer(&self, count: u32) {
        self.write(local::INITIAL_COUNT, count);
    }

    /// What is left of the timer's count.
    pub fn timer_count(&self) -> u32 {
        self.read(local::CURRENT_COUNT)
    }

    /// Leads a line to this CPU, masked; false when there is no such line.
    pub fn open_line(&self, line: usize) -> bool {
        let Some((index, pin, wiring)) = self.pin_of(line) else { return false };
        let mut value = MASKED | interrupts::vector_of_line(line) as u32;
        value |= if wiring.low { PIN_LOW } else { 0 };
        value |= if wiring.level { PIN_LEVEL } else { 0 };
        self.io_write(index, io::FIRST_PIN + 2 * pin + 1, self.read(local::ID));
        self.io_write(index, io::FIRST_PIN + 2 * pin, value);
        true
    }

    /// Masks or unmasks a line.
    pub fn mask_line(&self, line: usize, masked: bool) {
        if let Some((index, pin, _)) = self.pin_of(line) {
            let register = io::FIRST_PIN + 2 * pin;
            let value = self.io_read(index, register) & !MASKED;
            self.io_write(index, register, if masked { value | MASKED } else { value });
        }
    }

    /// Where and what a device writes to interrupt this CPU with the vector of `line`.
    pub fn message(&self, line: usize) -> (u64, u64) {
        let cpu = (self.read(local::ID) >> 24) as u64;
        (MESSAGE_ADDRESS | cpu << 12, interrupts::vector_of_line(line))
    }

    /// Controller, pin and wiring of a line: ISA lines as the tables say, the others as PCI has them.
    fn pin_of(&self, line: usize) -> Option<(usize, u32, Wiring)> {
        let pci = Wiring { line: line as u32, low: true, level: true };
        let wiring = self.platform.isa.get(line).copied().unwrap_or(pci);
        let has_it = |index: &usize| {
            wiring
                .line
                .checked_sub(self.platform.io_apics[*index].first_line)
                .is_some_and(|pin| pin < self.pins[*index])
        };
        let index = (0..self.platform.io_apic_count).find(has_it).filter(|_| line < LINES)?;
        Some((index, wiring.line - self.platform.io_apics[index].first_line, wiring))
    }

    #[inline]
    fn read(&self, register: u64) -> u32 {
        // SAFETY: `map` has mapped the registers; they are 32 bits wide.
        unsafe { ((self.platform.local_apic + register) as *const u32).read_volatile() }
    }

    #[inline]
    fn write(&self, register: u64, value: u32) {
        // SAFETY: as `read`.
        unsafe { ((self.platform.local_apic + register) as *mut u32).write_volatile(value) }
    }

    fn io_read(&self, index: usize, register: u32) -> u32 {
        let registers = self.platform.io_apics[index].address;
        // SAFETY: as `read`; the window shows the selected register.
        unsafe {
            ((registers + io::SELECT) as *mut u32).write_volatile(register);
            ((registers + io::WINDOW) as *const u32).read_volatile()
        }
    }

    fn io_write(&self, index: usize, register: u32, value: u32) {
        let registers = self.platform.io_apics[index].address;
        // SAFETY: as `io_read`.
        unsafe {
            ((registers + io::SELECT) as *mut u32).write_volatile(register);
            ((registers + io::WINDOW) as *mut u32).write_volatile(value);
        }
    }
}

/// Moves the old controllers' vectors out of the way of the exceptions and masks all their lines.
fn silence_old_controllers() {
    const FIRST: (u16, u16) = (0x20, 0x21);
    const SECOND: (u16, u16) = (0xa0, 0xa1);
    const UNUSED_VECTORS: u8 = 0xe0;
    for ((command, data), vectors, cascade) in [(FIRST, UNUSED_VECTORS, 4), (SECOND, UNUSED_VECTORS + 8, 2)] {
        cpu::out8(command, 0x11);
        cpu::out8(data, vectors);
        cpu::out8(data, cascade);
        cpu::out8(data, 1);
        cpu::out8(data, 0xff);
    }
}
