//! What a handler finds in registers and on its stack, what comes back when it returns, and which signal an exception is.

use super::{Answer, DONE, MEMORY, World};
use abi::linux::nr;
use abi::registers::{EXTENDED_BYTES, Registers};
use abi::{Endpoint, Message, kernel};

const BUFFER: u64 = MEMORY.start + 0x100;
const USR1: u64 = 10;
const SEGV: u64 = 11;
const USR2: u64 = 12;
const HANDLER: u64 = 0xaaaa;
const ON_STACK: u64 = 0x0800_0000;
const NO_DEFER: u64 = 0x4000_0000;
const AUTODISARM: u64 = 1 << 31;
const STACK: u64 = MEMORY.start + 0x8000;
const STACK_BYTES: u64 = 0x4000;

/// Words of the context, from the handler's stack pointer on: behind the return address.
const FLAGS: u64 = 8;
const USED_STACK: u64 = 8 + 16;
const MACHINE: u64 = 8 + 40;
const MASK: u64 = 8 + 296;
const INFO: u64 = 8 + 304;
const FRAME_BYTES: u64 = INFO + 128;
/// Offsets in the machine's part.
const RSP: u64 = 15 * 8;
const SEGMENTS: u64 = 144;
const FPU: u64 = 184;

fn child_with_handler(flags: u64) -> (World, u64, Endpoint) {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, flags);
    (world, pid, child)
}

fn interrupt(world: &mut World, thread: Endpoint, pid: u64) {
    assert_eq!(world.call(world.init, nr::KILL, &[pid, USR1]), DONE);
    world.report_interrupted(thread, None);
    assert_eq!(world.thread(thread).registers.rip, HANDLER);
}

fn sigreturn(world: &mut World, thread: Endpoint) -> Answer {
    world.thread(thread).registers.rsp += 8;
    world.call(thread, nr::RT_SIGRETURN, &[])
}

fn set_stack(world: &mut World, thread: Endpoint, flags: u64) {
    world.write(thread, BUFFER, &[STACK, flags, STACK_BYTES]);
    assert_eq!(world.call(thread, nr::SIGALTSTACK, &[BUFFER, 0]), DONE);
}

fn stack(world: &mut World, thread: Endpoint) -> [u64; 3] {
    assert_eq!(world.call(thread, nr::SIGALTSTACK, &[0, BUFFER]), DONE);
    world.words(thread, BUFFER)
}

/// Registers with a value of its own in each, in the order of `struct sigcontext`.
fn numbered(rsp: u64) -> (Registers, [u64; 18]) {
    let registers = Registers {
        r8: 1,
        r9: 2,
        r10: 3,
        r11: 4,
        r12: 5,
        r13: 6,
        r14: 7,
        r15: 8,
        rdi: 9,
        rsi: 10,
        rbp: 11,
        rbx: 12,
        rdx: 13,
        rax: 14,
        rcx: 15,
        rsp,
        rip: 0x5000,
        rflags: 0x5_0fd7,
        ..Registers::ZERO
    };
    let words = core::array::from_fn(|n| match n {
        15 => rsp,
        16 => 0x5000,
        17 => 0x5_0fd7,
        n => n as u64 + 1,
    });
    (registers, words)
}

fn words_of(registers: &Registers) -> [u64; 18] {
    let r = registers;
    [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx, r.rsp,
        r.rip, r.rflags,
    ]
}

#[test]
fn a_handler_finds_its_frame_below_the_red_zone() {
    for stack_pointer in [MEMORY.end - 64, MEMORY.end - 63, MEMORY.end - 1, MEMORY.end - 1000] {
        let (mut world, pid, child) = child_with_handler(0);
        let (registers, words) = numbered(stack_pointer);
        world.write(child, BUFFER, &[1 << 5]);
        world.call(child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
        world.thread(child).registers = registers;
        interrupt(&mut world, child, pid);
        let frame = ((((stack_pointer - 128) & !63) - FRAME_BYTES) & !15) - 8;
        let mut expected = words;
        (expected[8], expected[9], expected[12], expected[13]) = (USR1, frame + INFO, frame + FLAGS, 0);
        (expected[15], expected[16], expected[17]) = (frame, HANDLER, 0x5_0fd7 & !0x1_0500);
        assert_eq!(words_of(&world.thread(child).registers), expected);
        assert_eq!(world.read(child, frame), 0xbbbb, "the handler returns to the restorer");
        assert_eq!(world.words(child, frame + FLAGS), [6, 0, 0, 2, 0], "flags, link, no alternate stack");
        assert_eq!(world.words(child, frame + MACHINE), words);
        assert_eq!(world.words(child, frame + MACHINE + SEGMENTS), [0x33 | 0x2b << 48, 0, 0, 1 << 5, 0, 0]);
        assert_eq!(world.read(child, frame + MASK), 1 << 5);
        assert_eq!(world.words(child, frame + INFO), [USR1, 0, 1, 0, 0]);
    }
}

#[test]
fn what_the_handler_writes_into_its_frame_counts_when_it_returns() {
    let (mut world, pid, child) = child_with_handler(0);
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    let words: [u64; 18] = core::array::from_fn(|n| 100 + n as u64);
    world.write(child, frame + MACHINE, &words);
    world.write(child, frame + MACHINE + 8 * 17, &[u64::MAX]);
    world.write(child, frame + MASK, &[u64::MAX]);
    world.thread(child).registers.fs_base = 77;
    assert_eq!(sigreturn(&mut world, child), None);
    let registers = world.thread(child).registers;
    let mut expected = words;
    expected[17] = 0x5_0dd5 | 0x202;
    assert_eq!(words_of(&registers), expected);
    assert_eq!(registers.fs_base, 77);
    world.call(child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]);
    assert_eq!(world.read(child, BUFFER), !(1 << 8 | 1 << 18));
}

#[test]
fn a_handler_blocks_its_signal_and_what_its_action_says() {
    for (flags, own) in [(0, 1 << (USR1 - 1)), (NO_DEFER, 0)] {
        let (mut world, pid, child) = child_with_handler(0);
        world.write(child, MEMORY.start, &[HANDLER, flags | 0x0400_0000, 0xbbbb, 1 << 2]);
        assert_eq!(world.call(child, nr::RT_SIGACTION, &[USR1, MEMORY.start, 0, 8]), DONE);
        world.write(child, BUFFER, &[1 << 5]);
        world.call(child, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
        interrupt(&mut world, child, pid);
        world.call(child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]);
        assert_eq!(world.read(child, BUFFER), own | 1 << 2 | 1 << 5);
        sigreturn(&mut world, child);
        world.call(child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]);
        assert_eq!(world.read(child, BUFFER), 1 << 5);
    }
}

#[test]
fn the_state_of_the_fpu_is_saved_behind_the_frame_with_linuxs_marks() {
    let (mut world, pid, child) = child_with_handler(0);
    let pattern: [u8; EXTENDED_BYTES] = core::array::from_fn(|n| n as u8 | 1);
    let entry = world.thread(child);
    (entry.registers.extended, entry.registers.extended_valid) = (pattern, 1);
    let top = entry.registers.rsp - 128;
    interrupt(&mut world, child, pid);
    let fpu = (top - 836) & !63;
    let frame = world.thread(child).registers.rsp;
    assert_eq!(frame, ((fpu - FRAME_BYTES) & !15) - 8);
    assert_eq!(world.read(child, frame + FLAGS), 7);
    assert_eq!(world.read(child, frame + MACHINE + FPU), fpu);
    let saved = world.read_bytes(child, fpu, 836);
    assert_eq!(saved[..464], pattern[..464]);
    assert_eq!(saved[512..832], pattern[512..]);
    let mut marks = std::vec![0; 48];
    marks[..4].copy_from_slice(b"SXPF");
    marks[4..8].copy_from_slice(&836u32.to_le_bytes());
    marks[8..12].copy_from_slice(&7u32.to_le_bytes());
    marks[16..20].copy_from_slice(&832u32.to_le_bytes());
    assert_eq!(saved[464..512], marks);
    assert_eq!(saved[832..], *b"EXPF");
}

#[test]
fn the_state_of_the_fpu_comes_back_without_what_a_program_must_not_set() {
    let (mut world, pid, child) = child_with_handler(0);
    let entry = world.thread(child);
    (entry.registers.extended, entry.registers.extended_valid) = ([0; EXTENDED_BYTES], 1);
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    let fpu = world.read(child, frame + MACHINE + FPU);
    world.write_bytes(child, fpu, &[0xff; EXTENDED_BYTES]);
    world.thread(child).registers.extended_valid = 0;
    sigreturn(&mut world, child);
    let registers = world.thread(child).registers;
    assert_eq!(registers.extended_valid, 1);
    let mut expected = [0xff; EXTENDED_BYTES];
    expected[26..28].fill(0);
    expected[512..576].fill(0);
    expected[512] = 7;
    assert_eq!(registers.extended, expected);
}

#[test]
fn a_frame_without_fpu_state_resets_the_fpu() {
    let (mut world, pid, child) = child_with_handler(0);
    world.thread(child).registers.extended_valid = 1;
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    world.write(child, frame + MACHINE + FPU, &[0]);
    sigreturn(&mut world, child);
    assert_eq!(world.thread(child).registers.extended_valid, 0);
    assert!(world.is_there(child));
}

#[test]
fn a_frame_that_cannot_be_read_is_a_segmentation_fault() {
    for (pointer, fpu) in [(MEMORY.end - 100, 0), (0, 8)] {
        let (mut world, pid, child) = child_with_handler(0);
        interrupt(&mut world, child, pid);
        let frame = world.thread(child).registers.rsp;
        world.write(child, frame + MACHINE + FPU, &[fpu]);
        if pointer != 0 {
            world.thread(child).registers.rsp = pointer;
        }
        assert_eq!(sigreturn(&mut world, child), None);
        assert!(!world.is_there(child));
        assert_eq!(world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
        assert_eq!(world.read(world.init, BUFFER) as u32, SEGV as u32);
    }
}

#[test]
fn a_handler_for_it_runs_on_the_alternate_stack_until_it_returns() {
    let (mut world, pid, child) = child_with_handler(ON_STACK);
    set_stack(&mut world, child, 0);
    let before = world.thread(child).registers.rsp;
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    assert_eq!(frame, ((((STACK + STACK_BYTES) & !63) - FRAME_BYTES) & !15) - 8);
    assert_eq!(world.words(child, frame + USED_STACK), [STACK, 0, STACK_BYTES]);
    assert_eq!(world.read(child, frame + MACHINE + RSP), before);
    assert_eq!(stack(&mut world, child), [STACK, 1, STACK_BYTES], "busy");
    sigreturn(&mut world, child);
    assert_eq!(world.thread(child).registers.rsp, before);
    assert_eq!(stack(&mut world, child), [STACK, 0, STACK_BYTES]);
}

#[test]
fn a_second_handler_stays_on_the_alternate_stack_where_the_first_one_is() {
    let (mut world, pid, child) = child_with_handler(ON_STACK);
    world.handle_signal(child, USR2, ON_STACK);
    set_stack(&mut world, child, 0);
    interrupt(&mut world, child, pid);
    let first = world.thread(child).registers.rsp;
    world.call(world.init, nr::KILL, &[pid, USR2]);
    world.report_interrupted(child, None);
    let second = world.thread(child).registers.rsp;
    assert_eq!(second, ((((first - 128) & !63) - FRAME_BYTES) & !15) - 8);
    assert_eq!(world.words(child, second + USED_STACK), [STACK, 1, STACK_BYTES]);
}

#[test]
fn a_handler_that_does_not_ask_for_it_leaves_the_alternate_stack_alone() {
    let (mut world, pid, child) = child_with_handler(0);
    set_stack(&mut world, child, 0);
    let before = world.thread(child).registers.rsp;
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    assert!((before - 1000..before - 128).contains(&frame));
    let (mut world, pid, child) = child_with_handler(ON_STACK);
    let before = world.thread(child).registers.rsp;
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    assert!((before - 1000..before - 128).contains(&frame), "there is none");
}

#[test]
fn a_stack_that_disarms_itself_is_gone_while_a_handler_runs_on_it() {
    for (flags, meanwhile) in [(ON_STACK, [0, 2, 0]), (0, [STACK, AUTODISARM, STACK_BYTES])] {
        let (mut world, pid, child) = child_with_handler(flags);
        set_stack(&mut world, child, AUTODISARM);
        interrupt(&mut world, child, pid);
        let frame = world.thread(child).registers.rsp;
        assert_eq!(world.words(child, frame + USED_STACK), [STACK, AUTODISARM, STACK_BYTES]);
        assert_eq!(stack(&mut world, child), meanwhile);
        sigreturn(&mut world, child);
        assert_eq!(stack(&mut world, child), [STACK, AUTODISARM, STACK_BYTES]);
    }
}

#[test]
fn an_unusable_stack_in_the_frame_leaves_the_present_one() {
    let (mut world, pid, child) = child_with_handler(0);
    set_stack(&mut world, child, 0);
    interrupt(&mut world, child, pid);
    let frame = world.thread(child).registers.rsp;
    world.write(child, frame + USED_STACK, &[STACK + 64, 0, 1]);
    sigreturn(&mut world, child);
    assert_eq!(stack(&mut world, child), [STACK, 0, STACK_BYTES]);
}

#[test]
fn a_handler_without_room_for_its_frame_becomes_a_segmentation_fault() {
    let (mut world, pid, child) = child_with_handler(0);
    world.handle_signal(child, SEGV, ON_STACK);
    set_stack(&mut world, child, 0);
    world.thread(child).registers.rsp = 64;
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.report_interrupted(child, None);
    let registers = world.thread(child).registers;
    assert_eq!((registers.rip, registers.rdi), (HANDLER, SEGV));
    assert_eq!(world.words(child, registers.rsi), [SEGV, 0x80, 0]);
}

#[test]
fn a_handler_needs_a_way_back() {
    let (mut world, pid, child) = child_with_handler(0);
    world.write(child, BUFFER, &[HANDLER, 0, 0xbbbb, 0]);
    world.call(child, nr::RT_SIGACTION, &[USR1, BUFFER, 0, 8]);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.report_interrupted(child, None);
    assert!(!world.is_there(child));
}

const IP: u64 = 0x5000;
const ADDRESS: u64 = 0x66;

fn raise(world: &mut World, thread: Endpoint, vector: u64, error: u64) {
    let exception = kernel::Exception { vector, error, ip: IP, address: ADDRESS };
    world.thread(thread).waits = true;
    assert!(world.pm.handle(&Message { source: thread, ..exception.message() }).done().is_none());
}

/// Vector, error; then signal, code, and address in the siginfo; then the error code that the frame tells.
const EXCEPTIONS: [([u64; 2], [u64; 3], u64); 16] = [
    ([0, 9], [8, 1, IP], 9),
    ([1, 9], [5, 2, IP], 9),
    ([3, 9], [5, 0x80, 0], 9),
    ([4, 9], [11, 0x80, 0], 9),
    ([5, 9], [11, 0x80, 0], 9),
    ([6, 9], [4, 2, IP], 9),
    ([12, 9], [7, 0x80, 0], 9),
    ([13, 9], [11, 0x80, 0], 9),
    ([16, 9], [8, 7, IP], 9),
    ([17, 9], [7, 1, ADDRESS], 9),
    ([19, 9], [8, 7, IP], 9),
    ([14, -14i64 as u64], [11, 1, ADDRESS], 4),
    ([14, -13i64 as u64], [11, 2, ADDRESS], 4),
    ([14, -5i64 as u64], [7, 2, ADDRESS], 4),
    ([14, -28i64 as u64], [7, 2, ADDRESS], 4),
    ([31, 9], [11, 0x80, 0], 9),
];

#[test]
fn an_exception_is_told_to_its_handler() {
    for ([vector, error], info, told) in EXCEPTIONS {
        let (mut world, _, child) = child_with_handler(0);
        world.handle_signal(child, info[0], 0);
        raise(&mut world, child, vector, error);
        let registers = world.thread(child).registers;
        assert_eq!((registers.rip, registers.rdi), (HANDLER, info[0]), "vector {vector}");
        assert_eq!(world.words(child, registers.rsi), info, "vector {vector}");
        let machine: [u64; 4] = world.words(child, registers.rsp + MACHINE + 152);
        assert_eq!(machine, [told, vector, 0, ADDRESS], "vector {vector}");
        assert_eq!(world.pm.programs.system.printed, "");
    }
}

#[test]
fn an_exception_that_nobody_handles_kills_and_is_logged() {
    for ([vector, error], [signal, ..], _) in EXCEPTIONS {
        let (mut world, pid, child) = child_with_handler(0);
        raise(&mut world, child, vector, error);
        assert!(!world.is_there(child));
        world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]);
        assert_eq!(world.read(world.init, BUFFER) as u32, signal as u32);
        let name = match signal {
            4 => "SIGILL",
            5 => "SIGTRAP",
            7 => "SIGBUS",
            8 => "SIGFPE",
            _ => "SIGSEGV",
        };
        let line = std::format!("pm: init[{pid}] killed by {name}: vector {vector} at ip 0x5000, address 0x66\n");
        assert_eq!(world.pm.programs.system.printed, line);
    }
}

#[test]
fn a_page_for_which_there_is_no_memory_kills() {
    let (mut world, pid, child) = child_with_handler(0);
    raise(&mut world, child, 14, -12i64 as u64);
    assert!(world.pm.programs.system.printed.contains("killed by lack of memory"));
    world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]);
    assert_eq!(world.read(world.init, BUFFER) as u32, 9);
}

#[test]
fn an_exception_is_neither_blocked_nor_ignored() {
    let (mut world, _, child) = child_with_handler(0);
    world.write(child, BUFFER, &[1, 0, 0, 0]);
    world.call(child, nr::RT_SIGACTION, &[SEGV, BUFFER, 0, 8]);
    raise(&mut world, child, 13, 0);
    assert!(!world.is_there(child), "ignored");
    let (mut world, _, child) = child_with_handler(0);
    world.handle_signal(child, SEGV, 0);
    world.write(child, BUFFER, &[1 << (SEGV - 1)]);
    world.call(child, nr::RT_SIGPROCMASK, &[0, BUFFER, 0, 8]);
    raise(&mut world, child, 13, 0);
    assert!(!world.is_there(child), "blocked");
}

#[test]
fn an_exception_comes_before_an_equal_signal_that_was_sent() {
    let (mut world, pid, child) = child_with_handler(0);
    world.handle_signal(child, SEGV, 0);
    world.call(world.init, nr::TKILL, &[pid, SEGV]);
    raise(&mut world, child, 14, -14i64 as u64);
    let registers = world.thread(child).registers;
    assert_eq!(world.words(child, registers.rsi), [SEGV, 1, ADDRESS]);
    sigreturn(&mut world, child);
    assert_ne!(world.thread(child).registers.rip, HANDLER, "the other one is gone");
}

#[test]
fn the_exit_that_the_kernel_reports_ends_the_process() {
    let (mut world, pid, child) = child_with_handler(0);
    let exited = Message { source: child, ..kernel::Exited { status: 0x105 }.message() };
    assert!(world.pm.handle(&exited).done().is_none());
    assert!(!world.is_there(child));
    world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]);
    assert_eq!(world.read(world.init, BUFFER) as u32, 0x500);
    assert!(world.pm.handle(&exited).done().is_none(), "it is gone already");
}
