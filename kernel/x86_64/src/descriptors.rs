//! Segments, the task state segment and the interrupt table of one CPU.
//!
//! The order of the segments is fixed by `syscall` and `sysret`. Double faults and non-maskable interrupts have stacks of their own;
//! everything else that comes from user mode starts at the end of the kernel's stack.

use crate::{entry, entry::vector};
use core::{arch::asm, mem::size_of, ptr};
use kernel_core::direct_ports::Bitmap;
use zerocopy::{FromBytes, transmute};

/// Kernel code segment.
pub const KERNEL_CODE: u16 = 0x08;
/// Kernel data segment; `sysret` counts from here.
pub const KERNEL_DATA: u16 = 0x10;
/// User data segment.
pub const USER_DATA: u16 = 0x1b;
/// User code segment.
pub const USER_CODE: u16 = 0x23;
const TASK: u16 = 0x28;

/// All 65,536 ports, one bit each, and the byte of ones that has to follow.
const PORT_BITMAP_BYTES: usize = 65536 / 8;
const INTERRUPT_STACK_BYTES: usize = 8192;
/// Present interrupt gate for the kernel; interrupts are off behind it.
const GATE: u16 = 0x8e00;
/// The same, and programs may use it by `int`.
const USER_GATE: u16 = 0xee00;

#[repr(C, packed(4))]
#[derive(FromBytes)]
struct TaskState {
    reserved0: u32,
    stacks: [u64; 3],
    reserved1: u64,
    interrupt_stacks: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    port_bitmap_offset: u16,
    port_bitmap: [u8; PORT_BITMAP_BYTES + 1],
}

#[repr(C)]
#[derive(FromBytes)]
struct Gate {
    offset_low: u16,
    segment: u16,
    stack_and_kind: [u16; 2],
    offset_high: u32,
    reserved: u32,
}

/// The tables. They must not move once loaded.
#[repr(C, align(16))]
#[derive(FromBytes)]
pub struct Descriptors {
    segments: [u64; 7],
    gates: [Gate; 256],
    double_fault_stack: [u8; INTERRUPT_STACK_BYTES],
    non_maskable_stack: [u8; INTERRUPT_STACK_BYTES],
    task: TaskState,
}

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: u64,
}

impl Descriptors {
    /// Empty tables.
    pub const EMPTY: Descriptors = transmute!([0u8; size_of::<Descriptors>()]);

    /// Fills the tables and makes the CPU use them.
    ///
    /// # Safety
    /// They stay where they are for good, and the stack is the kernel's.
    pub unsafe fn start(&mut self, kernel_stack_end: u64) {
        self.fill_task(kernel_stack_end);
        self.fill_segments();
        self.gates = core::array::from_fn(gate);
        let segments = TablePointer { limit: size_of::<[u64; 7]>() as u16 - 1, base: &raw const self.segments as u64 };
        let gates = TablePointer { limit: size_of::<[Gate; 256]>() as u16 - 1, base: &raw const self.gates as u64 };
        // SAFETY: the tables are complete, live as long as the kernel, and keep its code and data segments where they are.
        unsafe {
            asm!("lgdt [{}]", in(reg) &segments, options(readonly, nostack, preserves_flags));
            asm!("lidt [{}]", in(reg) &gates, options(readonly, nostack, preserves_flags));
            asm!("ltr {0:x}", in(reg) TASK, options(nostack, preserves_flags));
            // No local table: a selector of one is a protection fault, as on Linux, and not a read at the base that the firmware left.
            asm!("lldt {0:x}", in(reg) 0, options(nostack, preserves_flags));
            asm!(
                "push {code}", "lea {scratch}, [rip + 2f]", "push {scratch}", "retfq",
                "2: mov ds, {null:x}", "mov es, {null:x}", "mov ss, {data:x}",
                code = const KERNEL_CODE as u64, scratch = out(reg) _, null = in(reg) 0, data = in(reg) KERNEL_DATA,
                options(preserves_flags)
            );
        }
    }

    fn fill_task(&mut self, kernel_stack_end: u64) {
        let end_of = |stack: &[u8; INTERRUPT_STACK_BYTES]| stack.as_ptr_range().end as u64;
        self.task.interrupt_stacks =
            [end_of(&self.double_fault_stack), end_of(&self.non_maskable_stack), 0, 0, 0, 0, 0];
        self.task.stacks = [kernel_stack_end, 0, 0];
        self.task.port_bitmap.fill(0xff);
        self.use_bitmap(false);
    }

    fn fill_segments(&mut self) {
        let base = ptr::from_ref(&self.task) as u64;
        let limit = size_of::<TaskState>() as u64 - 1;
        // Present, available 64-bit task state segment, shorter than 64 KiB.
        let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
        self.segments = [
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            0x00cf_f300_0000_ffff,
            0x00af_fb00_0000_ffff,
            low,
            base >> 32,
        ];
    }
}

impl Bitmap for Descriptors {
    fn use_bitmap(&mut self, on: bool) {
        let bitmap = core::mem::offset_of!(TaskState, port_bitmap) as u16;
        self.task.port_bitmap_offset = if on { bitmap } else { size_of::<TaskState>() as u16 };
    }

    fn set_ports(&mut self, first: u16, last: u16, open: bool) {
        for byte in first / 8..=last / 8 {
            let from = if byte == first / 8 { first % 8 } else { 0 };
            let to = if byte == last / 8 { last % 8 } else { 7 };
            let bits = (0xff_u8 << from) & (0xff >> (7 - to));
            let place = &mut self.task.port_bitmap[byte as usize];
            *place = if open { *place & !bits } else { *place | bits };
        }
    }
}

fn gate(vector: usize) -> Gate {
    let handler = entry::handler(vector);
    let stack = match vector as u64 {
        vector::DOUBLE_FAULT => 1,
        vector::NON_MASKABLE => 2,
        _ => 0,
    };
    let is_for_users = matches!(vector as u64, vector::BREAKPOINT | vector::PRIMITIVE | vector::HAL);
    let kind = if is_for_users { USER_GATE } else { GATE };
    Gate {
        offset_low: handler as u16,
        segment: KERNEL_CODE,
        stack_and_kind: [kind | stack, (handler >> 16) as u16],
        offset_high: (handler >> 32) as u32,
        reserved: 0,
    }
}
