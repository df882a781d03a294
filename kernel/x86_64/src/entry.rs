//! The ways into the kernel: what `entry.s` calls, and the loop that decides who runs next.
//!
//! A processor exception, an interrupt or a system call saves the registers of the thread into its frame and comes here; what is to be done
//! is core's decision. Every path ends in [`dispatch`], whose result the assembly restores.

use crate::{
    cpu, cpu::cr, cpu::msr, descriptors::KERNEL_CODE, descriptors::KERNEL_DATA, descriptors::USER_CODE,
    descriptors::USER_DATA, fatal, hardware::Hardware, interrupts, interrupts::Source, state::node_state,
};
use abi::{
    call::KernelCall, call::NATIVE, call::NOTIFY, call::REPLYREC, call::SENDREC, kernel::ACCESS_EXECUTE,
    kernel::ACCESS_PRESENT, kernel::ACCESS_WRITE, layout::USER_END, privilege::io, rt,
};
use core::{arch::asm, mem::offset_of};
use kernel_core::{FastSwitch, Frame, Kernel, Machine, Next, Thread, frame::entry};

core::arch::global_asm!(
    include_str!("entry.s"),
    messages = const Thread::MESSAGES_FROM_FRAME,
    entry = const offset_of!(Frame, entry),
    entry_full = const entry::FULL,
    entry_syscall = const entry::SYSCALL,
    user_end = const USER_END,
    user_data = const USER_DATA,
    user_code = const USER_CODE,
    protection = const vector::GENERAL_PROTECTION,
    hal = const vector::HAL,
    native = const NATIVE, replyrec = const REPLYREC, sendrec = const SENDREC, notify = const NOTIFY,
    linux_call = sym linux_call, other_syscall = sym other_syscall, primitive_in_memory = sym primitive_in_memory,
    answer = sym primitive::<REPLYREC>, request = sym primitive::<SENDREC>, notify_call = sym primitive::<NOTIFY>,
);
// `entry.s` compares in this order.
const _: () = assert!(NATIVE < SENDREC && SENDREC < NOTIFY && NOTIFY < REPLYREC);

const _: () = assert!(offset_of!(Frame, r15) == 0 && offset_of!(Frame, rsp) == 17 * 8, "entry.s counts them");

unsafe extern "C" {
    fn syscall_entry();
    fn protection_entry();
    fn hal_entry();
    fn primitive_entry();
    static trap_stubs: u8;
}

/// Processor exceptions that mean something to the kernel itself.
pub mod vector {
    #![allow(missing_docs)]
    pub const NON_MASKABLE: u64 = 2;
    pub const BREAKPOINT: u64 = 3;
    pub const NO_FPU: u64 = 7;
    pub const DOUBLE_FAULT: u64 = 8;
    pub use kernel_core::{vector::GENERAL_PROTECTION, vector::PAGE_FAULT};
    pub const LAST_EXCEPTION: u64 = 31;
    pub const PRIMITIVE: u64 = 33;
    pub const HAL: u64 = abi::call::HAL_VECTOR as u64;
}

const VIR_COPY: u64 = KernelCall::VirCopy.number();
const SAFE_COPY_FROM: u64 = KernelCall::SafeCopyFrom.number();
const SAFE_COPY_TO: u64 = KernelCall::SafeCopyTo.number();
/// Distance of the stubs in `entry.s`.
const STUB_BYTES: u64 = 16;
/// Flags that `syscall` clears: TF, IF, DF, IOPL, NT, RF, AC.
const CLEARED_FLAGS: u64 = 0x5_7700;
/// PAT: as after a reset, but for entry 1 (and its twin 5): write combining in place of write through.
const PAGE_ATTRIBUTES: u64 = 0x0007_0106_0007_0106;
/// EFER: `syscall` is there.
const EFER_SYSCALL: u64 = 1;

/// Where the registers of the thread that runs are saved.
#[unsafe(no_mangle)]
static mut CURRENT_FRAME: *mut Frame = core::ptr::null_mut();
/// The program's stack pointer, for the few instructions until it is in the frame.
#[unsafe(no_mangle)]
static mut USER_STACK: u64 = 0;

/// Address of the first instruction for an interrupt vector.
pub fn handler(vector: usize) -> u64 {
    match vector as u64 {
        vector::GENERAL_PROTECTION => protection_entry as *const () as u64,
        vector::HAL => hal_entry as *const () as u64,
        vector::PRIMITIVE => primitive_entry as *const () as u64,
        vector => &raw const trap_stubs as u64 + vector * STUB_BYTES,
    }
}

/// Makes `syscall` enter the kernel, and `bit::COMBINED` combine writes.
pub fn start() {
    // SAFETY: the entry point and the segments are those of `entry.s` and `descriptors`; no page is mapped with entry 1 yet.
    unsafe {
        cpu::write_msr(msr::PAT, PAGE_ATTRIBUTES);
        cpu::write_msr(msr::STAR, (KERNEL_DATA as u64 | 3) << 48 | (KERNEL_CODE as u64) << 32);
        cpu::write_msr(msr::LSTAR, syscall_entry as *const () as u64);
        cpu::write_msr(msr::SFMASK, CLEARED_FLAGS);
        cpu::write_msr(msr::EFER, cpu::read_msr(msr::EFER) | EFER_SYSCALL);
    }
}

/// Leaves the kernel for the first thread.
pub fn run() -> ! {
    // SAFETY: booting is over, so nothing else holds the state.
    let (kernel, hardware) = unsafe { node_state() };
    dispatch(kernel, hardware)
}

/// Asks core who runs, waits while nobody does, and leaves the kernel for the one that does. The kernel's stack is abandoned: each
/// entry starts at its end again.
#[inline(always)]
fn dispatch(kernel: &mut Kernel, hardware: &mut Hardware) -> ! {
    loop {
        match kernel.next(hardware) {
            Next::Run(slot) if !interrupts::recorded() => leave(kernel, hardware, slot),
            Next::Idle if !interrupts::recorded() => interrupts::wait(),
            Next::Idle | Next::Run(_) => {}
            Next::Interrupts => interrupts::open_window(),
        }
        take_recorded(kernel, hardware);
    }
}

/// Leaves the kernel for the thread in `slot`.
#[inline(always)]
fn leave(kernel: &mut Kernel, hardware: &mut Hardware, slot: usize) -> ! {
    hardware.enter(slot, kernel.thread(slot), kernel);
    let frame: *mut Frame = kernel.frame_mut(slot);
    // SAFETY: only the entry code reads `CURRENT_FRAME`, and it does not run now; the thread's space is loaded, and `leave_kernel`
    // restores all registers from the frame in rax.
    unsafe {
        CURRENT_FRAME = frame;
        asm!("jmp leave_kernel", in("rax") frame, options(noreturn));
    }
}

/// What a receiver gets in its registers.
enum Load {
    Message,
    LinuxCall,
}

/// Leaves the kernel for the thread in slot `to`, with the message in the frame of `from`.
#[inline(always)]
fn leave_with(kernel: &mut Kernel, hardware: &mut Hardware, load: Load, switch: FastSwitch) -> ! {
    hardware.enter(switch.to, kernel.thread(switch.to), kernel);
    let sender: *mut Frame = kernel.frame_mut(switch.from);
    let receiver: *mut Frame = kernel.frame_mut(switch.to);
    // SAFETY: as in `leave`; both frames stay where they are.
    unsafe {
        CURRENT_FRAME = receiver;
        match load {
            Load::Message => asm!("jmp leave_with_message", in("rax") receiver, in("rdi") sender, options(noreturn)),
            Load::LinuxCall => {
                let word5 = switch.word.unwrap_or((*sender).r9);
                asm!("jmp leave_with_linux_call", in("rax") receiver, in("rdi") sender, in("r9") word5, options(noreturn))
            }
        }
    }
}

/// Handles the interrupts that came while the kernel waited.
#[cold]
#[inline(never)]
fn take_recorded(kernel: &mut Kernel, hardware: &mut Hardware) {
    while let Some(vector) = interrupts::next_recorded() {
        take_interrupt(kernel, hardware, vector);
    }
}

fn take_interrupt(kernel: &mut Kernel, hardware: &mut Hardware, vector: u64) {
    match interrupts::source(vector) {
        Source::Line(line) => kernel.interrupt(hardware, line),
        Source::Timer if hardware.clock.is_due(&hardware.apic) => kernel.timer(hardware),
        Source::Timer => {}
        Source::Spurious => return,
    }
    hardware.apic.acknowledge();
}

/// A call with a number above `REPLYREC`.
#[unsafe(no_mangle)]
extern "C" fn syscall_from_user(number: u64) -> ! {
    match number {
        VIR_COPY => copy::<VIR_COPY>(),
        SAFE_COPY_FROM => copy::<SAFE_COPY_FROM>(),
        SAFE_COPY_TO => copy::<SAFE_COPY_TO>(),
        rt::call::FIRST..rt::call::END => real_time_call(number),
        _ => other_syscall(number),
    }
}

/// A primitive with a fast path, or with code of its own.
extern "C" fn primitive<const NUMBER: u64>() -> ! {
    by_fast_path(Load::Message, |kernel, hardware| kernel.try_primitive(hardware, NUMBER));
    slow_primitive::<NUMBER>()
}

/// `int 0x21`.
extern "C" fn primitive_in_memory() -> ! {
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    let caller = kernel.current();
    match kernel.try_vector33(hardware) {
        Some(slot) if slot != caller => leave(kernel, hardware, slot),
        Some(_) => go_on(),
        None => kernel.vector33(hardware),
    }
    if kernel.goes_on(hardware) { go_on() } else { dispatch(kernel, hardware) }
}

/// A Linux call.
extern "C" fn linux_call(number: u64) -> ! {
    by_fast_path(Load::LinuxCall, |kernel, hardware| kernel.try_linux_call(hardware, number, false));
    // SAFETY: as in `by_fast_path`, whose references are gone.
    let (kernel, _) = unsafe { node_state() };
    if kernel.fetches(number) { fetched_call(number) } else { kept_call(number) }
}

/// A Linux call with a word that is to be fetched.
#[inline(never)]
fn fetched_call(number: u64) -> ! {
    by_fast_path(Load::LinuxCall, |kernel, hardware| kernel.try_linux_call(hardware, number, true));
    other_syscall(number)
}

/// A Linux call that was not delivered: its answer may be there.
#[inline(never)]
fn kept_call(number: u64) -> ! {
    // SAFETY: as in `by_fast_path`, whose references are gone.
    let (kernel, _) = unsafe { node_state() };
    if kernel.try_kept(number).is_some() { go_on() } else { other_syscall(number) }
}

/// Makes a call by the fast path if that is open to it. Returns if not.
#[inline(always)]
fn by_fast_path(load: Load, attempt: impl FnOnce(&mut Kernel, &mut Hardware) -> Option<FastSwitch>) {
    // SAFETY: the entry code runs with interrupts off and never from kernel mode, so this is the only reference.
    let (kernel, hardware) = unsafe { node_state() };
    match attempt(kernel, hardware) {
        Some(FastSwitch { from, to, .. }) if from == to && matches!(load, Load::Message) => leave(kernel, hardware, to),
        Some(switch) => leave_with(kernel, hardware, load, switch),
        None => {}
    }
}

/// A call of MINIX4RT. Mostly the caller goes on, and the CPU has everything that it needs.
#[inline(never)]
fn real_time_call(number: u64) -> ! {
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    if kernel.real_time_call(hardware, number) { go_on() } else { dispatch(kernel, hardware) }
}

/// A copy, likewise if it is short. Each call has code of its own.
#[inline(never)]
fn copy<const CALL: u64>() -> ! {
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    let done = KernelCall::from_number(CALL).is_some_and(|call| kernel.try_copy(hardware, call));
    if done { go_on() } else { other_syscall(CALL) }
}

/// Leaves the kernel for the thread that has entered it.
#[inline(always)]
fn go_on() -> ! {
    // SAFETY: as in `leave`: `CURRENT_FRAME` and the loaded space are those of this thread still.
    unsafe { asm!("jmp leave_kernel", in("rax") CURRENT_FRAME, options(noreturn)) }
}

/// A primitive where the fast path is not open. Each has code of its own.
#[inline(never)]
fn slow_primitive<const NUMBER: u64>() -> ! {
    // SAFETY: as in `by_fast_path`, whose references are gone.
    let (kernel, hardware) = unsafe { node_state() };
    kernel.syscall(hardware, NUMBER);
    dispatch(kernel, hardware)
}

/// Every other call, and these where the fast path is not open.
#[inline(never)]
extern "C" fn other_syscall(number: u64) -> ! {
    // SAFETY: as in `by_fast_path`, whose references are gone.
    let (kernel, hardware) = unsafe { node_state() };
    kernel.syscall(hardware, number);
    dispatch(kernel, hardware)
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_user(vector: u64, error: u64) -> ! {
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    match vector {
        vector::PAGE_FAULT => {
            let access = error & (ACCESS_PRESENT | ACCESS_WRITE | ACCESS_EXECUTE);
            kernel.page_fault(hardware, cpu::cr2(), access);
        }
        vector::NO_FPU => hardware.use_fpu(kernel.current()),
        vector::GENERAL_PROTECTION if hardware.opens_ports(kernel) => {}
        vector::NON_MASKABLE | vector::DOUBLE_FAULT => {
            fatal::trap(vector, error, kernel.frame_mut(kernel.current()).rip, 0)
        }
        vector::HAL => kernel.hal(hardware),
        0..=vector::LAST_EXCEPTION => kernel.exception(hardware, vector, error, 0),
        _ => take_interrupt(kernel, hardware, vector),
    }
    dispatch(kernel, hardware)
}

/// What a port access on the fast path returns to `entry.s`, in rax and rdx.
#[repr(C)]
struct Access {
    rax: u64,
    done: u64,
}

/// The HAL trap: a plain access of the machine's ports that the thread may make is done at once.
#[unsafe(no_mangle)]
extern "C" fn hal_from_user(operation: u64, port: u64, value: u64) -> Access {
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    let width = operation & io::WIDTH;
    if !matches!(operation & !io::OUT, 1 | 2 | 4) || !kernel.reaches_port(port, width) {
        return Access { rax: 0, done: 0 };
    }
    if operation & io::OUT == 0 {
        return Access { rax: hardware.port_in(port as u16, width) as u64, done: 1 };
    }
    hardware.port_out(port as u16, width, value as u32);
    Access { rax: 0, done: 1 }
}

/// A protection fault with error code 0: IN and OUT of a byte by DX are done at once, if that is the thread's way and it may.
#[unsafe(no_mangle)]
extern "C" fn port_instruction_from_user(opcode: u64, rdx: u64, rax: u64) -> Access {
    const IN_AL_DX: u64 = 0xec;
    const OUT_DX_AL: u64 = 0xee;
    // SAFETY: as in `by_fast_path`.
    let (kernel, hardware) = unsafe { node_state() };
    let port = rdx as u16;
    let known = matches!(opcode, IN_AL_DX | OUT_DX_AL);
    if !known || !kernel.emulates_ports() || !kernel.reaches_port(port as u64, 1) {
        return Access { rax: 0, done: 0 };
    }
    if opcode == IN_AL_DX {
        return Access { rax: rax & !0xff | hardware.port_in(port, 1) as u64, done: 1 };
    }
    hardware.port_out(port, 1, rax as u32);
    Access { rax, done: 1 }
}

#[unsafe(no_mangle)]
extern "C" fn trap_from_kernel(vector: u64, error: u64, rip: u64, rsp: u64) {
    if vector <= vector::LAST_EXCEPTION || vector == vector::PRIMITIVE {
        fatal::trap(vector, error, rip, rsp);
    }
    interrupts::record(vector);
}

/// Switches on what protects the kernel: read-only pages are read-only for it too, it neither runs nor touches user memory
/// by accident, and programs do not see its tables.
pub fn protect() {
    let features = cpu::cpuid(7, 0);
    let mut cr4 = cpu::cr4() | cr::CR4_PGE;
    for (register, bit, wanted) in [(1, 7, cr::CR4_SMEP), (1, 20, cr::CR4_SMAP), (2, 2, cr::CR4_UMIP)] {
        cr4 |= if features[register] >> bit & 1 != 0 { wanted } else { 0 };
    }
    // SAFETY: only bits which CPUID names; the kernel touches user memory by the direct map alone.
    unsafe {
        cpu::write_cr4(cr4);
        cpu::write_cr0(cpu::cr0() | cr::CR0_WP | cr::CR0_NE);
    }
}
