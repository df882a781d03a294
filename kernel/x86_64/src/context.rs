//! What of a thread stays in the CPU while others run: FPU registers, segment bases, segment selectors.
//!
//! Native services use neither, so a message to a server and back costs nothing here. The FPU is owned by the program that ran last; for
//! services it is switched off, and their first use of it (#NM) changes the owner. So no thread ever sees another's registers.
//! Bases belong to application threads only. FSGSBASE stays off: what is in the frame is what the CPU has, whatever selectors a program loads.

use crate::{cpu, cpu::cr, cpu::msr, physical};
use abi::{endpoint::SERVICE_SLOTS, endpoint::SLOTS, layout::PAGE_BYTES, registers::EXTENDED_BYTES};
use core::arch::asm;
use kernel_boot::MemoryMap;
use kernel_core::Frame;

/// No thread.
const NOBODY: usize = usize::MAX;
/// XCR0: x87, SSE, AVX.
const COMPONENTS: u64 = 7;
/// Offset of MXCSR in the area, its initial value, and how many of its bytes every CPU with SSE2 has.
const MXCSR: usize = 24;
const INITIAL_MXCSR: u32 = 0x1f80;
const VALID_MXCSR_BYTES: usize = 2;
/// The XSAVE header: which components hold state, then what must be zero.
const HEADER: core::ops::Range<usize> = 512..576;
/// The initial x87 control word.
const INITIAL_CONTROL_WORD: u16 = 0x37f;

/// The saved FPU registers of a thread, in the standard XSAVE format.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Area([u8; EXTENDED_BYTES]);

/// The threads' FPU states, and whose state the CPU holds.
pub struct Context {
    areas: &'static mut [Area],
    /// By slot: it has used the FPU, its area (or the CPU) holds its state.
    used: [bool; SLOTS],
    fpu_owner: usize,
    fpu_off: bool,
    has_xsave: bool,
    bases_owner: usize,
    fs_base: u64,
    gs_base: u64,
}

impl Context {
    /// No thread has used anything.
    pub const fn new() -> Self {
        Context {
            areas: &mut [],
            used: [false; SLOTS],
            fpu_owner: NOBODY,
            fpu_off: false,
            has_xsave: false,
            bases_owner: NOBODY,
            fs_base: 0,
            gs_base: 0,
        }
    }

    /// Switches the FPU on, with AVX if the CPU has it, and then off for everybody.
    pub fn start(&mut self, memory: &mut MemoryMap) {
        let pages = (size_of::<Area>() * SLOTS).div_ceil(PAGE_BYTES as usize) as u64;
        let Some(start) = memory.take(pages, u64::MAX) else { panic!("no memory for FPU states") };
        // SAFETY: just taken out of the free RAM, which the direct map covers; any bytes are a valid area, and `used` says which hold something.
        self.areas = unsafe { core::slice::from_raw_parts_mut(physical::pointer(start), SLOTS) };
        let features = cpu::cpuid(1, 0);
        self.has_xsave = features[2] & 1 << 26 != 0;
        let cr4 = cpu::cr4() | cr::CR4_OSFXSR | cr::CR4_OSXMMEXCPT | if self.has_xsave { cr::CR4_OSXSAVE } else { 0 };
        // SAFETY: SSE is part of every 64-bit CPU, and CPUID names XSAVE. The kernel itself uses no FPU.
        unsafe {
            cpu::write_cr4(cr4);
            cpu::write_cr0(cpu::cr0() & !cr::CR0_EM | cr::CR0_MP | cr::CR0_NE);
            if self.has_xsave {
                let components = COMPONENTS & cpu::cpuid(13, 0)[0] as u64;
                asm!("xsetbv", in("ecx") 0, in("eax") components as u32, in("edx") 0, options(nomem, nostack));
            }
        }
        self.set_off(true);
    }

    /// The thread in `slot` is about to run in user mode. A program that finds another's FPU registers gets its own at once: to wait for its
    /// first use takes a CPU on which every instruction of the FPU traps, and QEMU 7.2 emulates one on which MOVD and PSHUFD do not. Returns true
    /// when the FPU is on.
    #[inline(always)]
    pub fn enter(&mut self, slot: usize, frame: &Frame) -> bool {
        if slot < SERVICE_SLOTS {
            if !self.fpu_off && slot != self.fpu_owner {
                self.set_off(true);
            }
            return !self.fpu_off;
        }
        if slot != self.fpu_owner {
            self.use_fpu(slot);
        } else if self.fpu_off {
            self.set_off(false);
        }
        if slot != self.bases_owner || frame.fs_base != self.fs_base || frame.gs_base != self.gs_base {
            self.load_bases(slot, frame);
        }
        true
    }

    /// The thread that runs, in `slot`, has used the FPU while it was off: it becomes the owner.
    #[inline(never)]
    pub fn use_fpu(&mut self, slot: usize) {
        self.set_off(false);
        self.save_owner();
        if !self.used[slot] {
            self.reset(slot);
        }
        self.fpu_owner = slot;
        self.restore(slot);
    }

    /// Gives a thread the FPU state that all begin with.
    #[cold]
    fn reset(&mut self, slot: usize) {
        let mut area = Area([0; EXTENDED_BYTES]);
        area.0[..2].copy_from_slice(&INITIAL_CONTROL_WORD.to_le_bytes());
        area.0[MXCSR..MXCSR + 4].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
        self.areas[slot] = area;
        self.used[slot] = true;
    }

    /// Copies a thread's FPU state out; false when it has none.
    #[inline(always)]
    pub fn read(&mut self, slot: usize, out: &mut [u8; EXTENDED_BYTES]) -> bool {
        if !self.used[slot] {
            return false;
        }
        self.release(slot);
        *out = self.areas[slot].0;
        true
    }

    /// Replaces a thread's FPU state; `None`: the initial one. What the CPU would refuse is made acceptable.
    #[inline(always)]
    pub fn write(&mut self, slot: usize, state: Option<&[u8; EXTENDED_BYTES]>) {
        self.release(slot);
        self.used[slot] = state.is_some();
        if let Some(state) = state {
            self.areas[slot].0 = *state;
            sanitise(&mut self.areas[slot]);
        }
    }

    /// Gives a thread a copy of another's FPU state.
    pub fn copy(&mut self, from: usize, to: usize) {
        self.release(from);
        self.release(to);
        self.used[to] = self.used[from];
        if self.used[from] {
            self.areas[to] = self.areas[from];
        }
    }

    /// Makes sure that a thread's state is in its area, not in the CPU, and its bases are loaded again: it may be a new thread.
    fn release(&mut self, slot: usize) {
        if self.bases_owner == slot {
            self.bases_owner = NOBODY;
        }
        if self.fpu_owner == slot {
            self.set_off(false);
            self.save_owner();
            self.fpu_owner = NOBODY;
            self.set_off(true);
        }
    }

    fn save_owner(&mut self) {
        let Some(area) = self.areas.get_mut(self.fpu_owner).map(|area| &raw mut *area) else { return };
        // SAFETY: the area is 64-byte aligned and long enough for the components that `start` enabled.
        unsafe {
            if self.has_xsave {
                asm!("xsave64 [{}]", in(reg) area, in("eax") COMPONENTS as u32, in("edx") 0, options(nostack, preserves_flags));
            } else {
                asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
            }
        }
    }

    fn restore(&mut self, slot: usize) {
        let area = &raw const self.areas[slot];
        // SAFETY: as in `save_owner`; the area is either what the CPU saved or has been sanitised.
        unsafe {
            if self.has_xsave {
                asm!("xrstor64 [{}]", in(reg) area, in("eax") COMPONENTS as u32, in("edx") 0, options(nostack, preserves_flags));
            } else {
                asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags));
            }
        }
    }

    #[inline(always)]
    fn set_off(&mut self, off: bool) {
        self.fpu_off = off;
        // SAFETY: changes only whether the FPU may be used.
        unsafe {
            match off {
                true => cpu::write_cr0(cpu::cr0() | cr::CR0_TS),
                false => asm!("clts", options(nomem, nostack, preserves_flags)),
            }
        }
    }

    /// Loads bases and the null selectors: a program may have loaded others, which changed the bases behind our back.
    #[inline(never)]
    fn load_bases(&mut self, slot: usize, frame: &Frame) {
        self.bases_owner = slot;
        self.fs_base = frame.fs_base;
        self.gs_base = frame.gs_base;
        // SAFETY: user segments; the kernel uses neither FS nor GS. Core has checked that the bases are user addresses.
        unsafe {
            asm!("mov ds, {0:e}", "mov es, {0:e}", "mov fs, {0:e}", "mov gs, {0:e}", in(reg) 0, options(nomem, nostack, preserves_flags));
            cpu::write_msr(msr::FS_BASE, frame.fs_base);
            cpu::write_msr(msr::GS_BASE, frame.gs_base);
        }
    }
}

/// Clears what makes `xrstor` fault: reserved bits of MXCSR, unknown components, the compact format.
fn sanitise(area: &mut Area) {
    let bytes = &mut area.0;
    let components = bytes[HEADER.start] & COMPONENTS as u8;
    bytes[HEADER].fill(0);
    bytes[HEADER.start] = components;
    bytes[MXCSR + VALID_MXCSR_BYTES..MXCSR + 4].fill(0);
}
