//! The instructions that have no name in Rust: ports, control registers, model-specific registers, CPUID.
//!
//! Everything here is a single instruction; what it means for the machine is the caller's business.

use core::arch::asm;

/// Model-specific registers.
pub mod msr {
    #![allow(missing_docs)]
    pub const APIC_BASE: u32 = 0x1b;
    pub const PAT: u32 = 0x277;
    pub const EFER: u32 = 0xc000_0080;
    pub const STAR: u32 = 0xc000_0081;
    pub const LSTAR: u32 = 0xc000_0082;
    pub const SFMASK: u32 = 0xc000_0084;
    pub const FS_BASE: u32 = 0xc000_0100;
    pub const GS_BASE: u32 = 0xc000_0101;
}

/// Bits of CR0 and CR4.
pub mod cr {
    #![allow(missing_docs)]
    pub const CR0_MP: u64 = 1 << 1;
    pub const CR0_EM: u64 = 1 << 2;
    pub const CR0_TS: u64 = 1 << 3;
    pub const CR0_NE: u64 = 1 << 5;
    pub const CR0_WP: u64 = 1 << 16;
    pub const CR4_PGE: u64 = 1 << 7;
    pub const CR4_OSFXSR: u64 = 1 << 9;
    pub const CR4_OSXMMEXCPT: u64 = 1 << 10;
    pub const CR4_UMIP: u64 = 1 << 11;
    pub const CR4_PCIDE: u64 = 1 << 17;
    pub const CR4_OSXSAVE: u64 = 1 << 18;
    pub const CR4_SMEP: u64 = 1 << 20;
    pub const CR4_SMAP: u64 = 1 << 21;
}

macro_rules! port_access {
    ($read:ident, $write:ident, $value:ty, $register:tt) => {
        /// Reads a port of this width.
        pub fn $read(port: u16) -> $value {
            let value;
            // SAFETY: as for writing.
            unsafe {
                asm!(concat!("in ", $register, ", dx"), in("dx") port, out($register) value, options(nomem, nostack, preserves_flags))
            }
            value
        }

        /// Writes a port of this width.
        pub fn $write(port: u16, value: $value) {
            // SAFETY: a port access touches no memory of Rust's; devices that could are driven by their own drivers.
            unsafe {
                asm!(concat!("out dx, ", $register), in("dx") port, in($register) value, options(nomem, nostack, preserves_flags))
            }
        }
    };
}

port_access!(in8, out8, u8, "al");
port_access!(in16, out16, u16, "ax");
port_access!(in32, out32, u32, "eax");

macro_rules! repeat {
    ($instruction:literal, $port:ident, $register:tt = $address:ident, $count:ident) => {
        asm!($instruction, in("dx") $port, inout($register) $address => _, inout("rcx") $count => _, options(nostack, preserves_flags))
    };
}

/// Fills a buffer, whose length is a multiple of `width` (1, 2, 4), by reading one port again and again.
pub fn in_string(port: u16, width: u64, out: &mut [u8]) {
    let (to, count) = (out.as_mut_ptr(), out.len() as u64 / width);
    // SAFETY: as `out8`; `count` items of `width` bytes fill the buffer at most, and the direction flag is clear in the kernel.
    unsafe {
        match width {
            1 => repeat!("rep insb", port, "rdi" = to, count),
            2 => repeat!("rep insw", port, "rdi" = to, count),
            _ => repeat!("rep insd", port, "rdi" = to, count),
        }
    }
}

/// Writes such a buffer to one port.
pub fn out_string(port: u16, width: u64, bytes: &[u8]) {
    let (from, count) = (bytes.as_ptr(), bytes.len() as u64 / width);
    // SAFETY: as `in_string`.
    unsafe {
        match width {
            1 => repeat!("rep outsb", port, "rsi" = from, count),
            2 => repeat!("rep outsw", port, "rsi" = from, count),
            _ => repeat!("rep outsd", port, "rsi" = from, count),
        }
    }
}

/// Reads a model-specific register.
pub fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading one of the registers above has no effect on memory.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags))
    }
    low as u64 | (high as u64) << 32
}

/// Writes a model-specific register.
///
/// # Safety
/// The value must keep the kernel's assumptions: its entry points, its address space, its code segments.
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: promised by the caller.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags))
    }
}

/// Answer of CPUID in the order eax, ebx, ecx, edx; zeros for a leaf the CPU does not have.
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let highest = core::arch::x86_64::__cpuid(leaf & 0x8000_0000).eax;
    if leaf > highest {
        return [0; 4];
    }
    let answer = core::arch::x86_64::__cpuid_count(leaf, subleaf);
    [answer.eax, answer.ebx, answer.ecx, answer.edx]
}

/// The time stamp counter.
#[inline(always)]
pub fn tsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter. Not `nomem`: measurements must not move across it.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) }
    low as u64 | (high as u64) << 32
}

macro_rules! control_register {
    ($name:ident) => {
        /// Reads this control register; CR2 is the address of the last page fault.
        pub fn $name() -> u64 {
            let value;
            // SAFETY: reads a register.
            unsafe { asm!(concat!("mov {}, ", stringify!($name)), out(reg) value, options(nomem, nostack, preserves_flags)) }
            value
        }
    };
}

control_register!(cr0);
control_register!(cr2);
control_register!(cr4);

/// Writes CR0.
///
/// # Safety
/// Paging, protection and write protection must stay on.
#[inline(always)]
pub unsafe fn write_cr0(value: u64) {
    // SAFETY: promised by the caller.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Switches to another top-level page table.
///
/// # Safety
/// The table must map the kernel as the current one does.
#[inline(always)]
pub unsafe fn write_cr3(value: u64) {
    // SAFETY: promised by the caller.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Writes CR4.
///
/// # Safety
/// Only bits which the CPU has, and physical address extension stays on.
pub unsafe fn write_cr4(value: u64) {
    // SAFETY: promised by the caller.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Forgets the translation of one page.
pub fn invalidate_page(address: u64) {
    // SAFETY: forgetting a translation is always sound: the tables are looked up again.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Loaded into CR3 with the number of a space in the lowest bits: translations of that space are kept.
pub const KEEP_TRANSLATIONS: u64 = 1 << 63;

/// Has the CPU keep the translations of spaces apart by numbers in CR3, if it can do that and forget those of one. Returns whether it does. Roots have no numbers yet.
pub fn number_spaces() -> bool {
    let can = cpuid(1, 0)[2] >> 17 & 1 != 0 && cpuid(7, 0)[1] >> 10 & 1 != 0;
    // SAFETY: a bit which CPUID names; CR3 is the address of a page.
    unsafe { write_cr4(cr4() | if can { cr::CR4_PCIDE } else { 0 }) };
    can
}

/// Forgets all translations of the space with this number. The CPU keeps them apart.
pub fn invalidate_space(number: usize) {
    // SAFETY: as in `invalidate_page`; the type is 1, one space, and the descriptor its number and an address that does not matter.
    unsafe { asm!("invpcid {}, [{}]", in(reg) 1u64, in(reg) &[number, 0], options(readonly, nostack, preserves_flags)) }
}

/// Stops for good, interrupts off.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: nothing runs here any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}
