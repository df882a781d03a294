//! What a crash report says.

use super::world::{UART, World, services, thread, uart};
use abi::call::KernelCall;
use abi::endpoint::slot;
use abi::info::state;
use abi::kernel::Exception;
use abi::layout::SERVICE_STACK_END;
use abi::registers::Registers;
use abi::rs::service_call;
use abi::symbols::MAGIC;
use abi::system::Service;
use abi::{Endpoint, Errno, Word};
use std::string::String;
use std::vec;
use std::vec::Vec;

const RING: u64 = 0x50_0000;
const RING_BYTES: usize = 17 * 8;
const PM: Endpoint = Endpoint::new(slot::PM, 1);
const SP: u64 = SERVICE_STACK_END - 0x100;

/// Functions `inner` and `outer`, each with a frame of 16 bytes, and `start`, without rules.
fn symbols() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(RING.to_le_bytes());
    let functions = [(0x40_1000, 0, 0), (0x40_2000, 3, 6), (0x40_3000, 6, 12)];
    bytes.extend((functions.len() as u32).to_le_bytes());
    bytes.extend(6u32.to_le_bytes());
    for (address, rules, name) in functions {
        bytes.extend([address, rules, name].into_iter().flat_map(u32::to_le_bytes));
    }
    bytes.extend([0, 4, 0, 0, 4, 0]);
    bytes.extend(b"inner\0outer\0start\0");
    bytes
}

/// A uart whose program has symbols.
fn world() -> World {
    let symbols = symbols();
    let labels = b"7 Some::request\n";
    World::booted(services(vec![uart()]), &[("uart.symbols", &symbols), ("labels", labels)])
}

/// Puts words into the memory of uart.
fn put(world: &World, address: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    world.write(world.holder(UART), address, &bytes);
}

/// uart has these registers, and the stack of `inner` called by `outer` called by `start`.
fn prepare(world: &World) {
    let uart = world.holder(UART);
    let registers = Registers { rip: 0x40_1234, rsp: SP, rax: 0xabc, gs_base: 0xdef, ..Registers::ZERO };
    world.with(|kernel| {
        kernel.now_ns = 1_500_002_000;
        kernel.registers.insert(uart, registers);
        kernel.threads.insert(UART as usize, thread(state::SENDING, PM, 12));
    });
    put(world, SP + 8, &[0x40_2010]);
    put(world, SP + 24, &[0x40_3020]);
    world.add_memory(uart, RING, vec![0; RING_BYTES]);
}

fn report(world: &mut World) -> String {
    let Some(Ok(bytes)) = world.command(service_call::LOG, "uart", 8000) else { panic!("there is a report") };
    String::from_utf8(world.buffer(bytes)).expect("is text")
}

#[test]
fn a_report_has_everything_that_is_known_of_the_dead() {
    let mut world = world();
    prepare(&world);
    let clock = u64::from(Endpoint::CLOCK.0);
    let from_pm = u64::from(PM.0) | 7 << 32;
    // Nine messages: the ninth has taken the place of the first.
    put(&world, RING, &[clock | 0x4000_0001 << 32, 9, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, from_pm, 8, 9]);
    world.crash(UART);
    let lines = [
        "crash report 1: uart, generation 1",
        "time: 1.500002 s after the start of the system",
        "end: exception 6 (invalid opcode) at 0x401234, error code 0x0",
        "messages: 12 sent and received; it waits for pm",
        "registers:",
        "  rip   0000000000401234  rsp   00000003ffffff00  rbp   0000000000000000  flags 0000000000000202",
        "  rax   0000000000000abc  rbx   0000000000000000  rcx   0000000000000000  rdx   0000000000000000",
        "  rsi   0000000000000000  rdi   0000000000000000  r8    0000000000000000  r9    0000000000000000",
        "  r10   0000000000000000  r11   0000000000000000  r12   0000000000000000  r13   0000000000000000",
        "  r14   0000000000000000  r15   0000000000000000  fs    0000000000000000  gs    0000000000000def",
        "backtrace:",
        "  0x401234 inner+0x234",
        "  0x402010 outer+0x10",
        "  0x403020 start+0x20",
        "last messages received, the newest first:",
        "  ? (label 0x40000001) from the clock, first word 0x9",
        "  Some::request (label 0x7) from pm, first word 0x8",
    ];
    let text = report(&mut world);
    let first: Vec<&str> = text.lines().take(lines.len()).collect();
    assert_eq!(first, lines);
    assert_eq!(text.lines().count(), 15 + 8);
    assert!(text.ends_with("  ? (label 0x0) from thread 0, first word 0x2\n"));
    assert_eq!(world.calls_of(KernelCall::Stop), [[Endpoint::new(20, 1).to_word(), 0, 0, 0, 0, 0]]);
}

#[test]
fn fewer_messages_than_the_ring_holds_are_all() {
    let mut world = world();
    prepare(&world);
    put(&world, RING, &[u64::from(PM.0) | 7 << 32, 8]);
    put(&world, RING + 16 * 8, &[1]);
    world.crash(UART);
    let text = report(&mut world);
    let (_, messages) = text.split_once("newest first:\n").expect("has messages");
    assert_eq!(messages, "  Some::request (label 0x7) from pm, first word 0x8\n");
}

#[test]
fn a_service_without_memory_leaves_its_registers() {
    let mut world = world();
    prepare(&world);
    let uart = world.holder(UART);
    world.with(|kernel| kernel.threads.insert(UART as usize, thread(state::FAULTING, PM, 3)));
    world.with(|kernel| kernel.registers.get_mut(&uart).expect("has some").rsp = 0x10);
    world.crash(UART);
    let text = report(&mut world);
    assert!(text.contains("messages: 3 sent and received\n"), "{text}");
    assert!(text.contains("backtrace:\n  0x401234 inner+0x234\nlast"), "{text}");
}

#[test]
fn of_a_service_whose_registers_are_unknown_nothing_is_left() {
    let mut world = world();
    world.crash(UART);
    let text = report(&mut world);
    assert!(text.ends_with("messages: 0 sent and received\nnothing is left of it\n"), "{text}");
}

#[test]
fn a_program_without_symbols_has_no_backtrace() {
    let mut world = World::booted(services(vec![uart()]), &[]);
    let uart = world.holder(UART);
    world.with(|kernel| kernel.registers.insert(uart, Registers { rsp: SP, ..Registers::ZERO }));
    world.crash(UART);
    let text = report(&mut world);
    assert!(text.ends_with("backtrace: there are no symbols of this program\n"), "{text}");
}

#[test]
fn an_address_below_all_functions_has_no_name() {
    let mut world = world();
    prepare(&world);
    let uart = world.holder(UART);
    world.with(|kernel| kernel.registers.get_mut(&uart).expect("has some").rip = 0x10);
    world.crash(UART);
    assert!(report(&mut world).contains("backtrace:\n  0x10 ?\nlast"));
}

#[test]
fn a_return_address_behind_its_function_belongs_to_the_caller() {
    let mut world = world();
    prepare(&world);
    // `outer` ends with a call that does not return.
    put(&world, SP + 8, &[0x40_3000]);
    world.crash(UART);
    assert!(report(&mut world).contains("  0x403000 outer+0x1000\n  0x403020 start+0x20\n"));
}

fn crash_with(world: &mut World, vector: u64, error: u64) {
    let what = Exception { vector, error, ip: 0x40_1000, address: 0x10 };
    world.call(world.holder(UART), what.message());
}

#[test]
fn the_log_says_how_a_service_ended() {
    let mut world = World::booted(services(vec![Service { restarts: 10, ..uart() }]), &[]);
    crash_with(&mut world, 14, Err(Errno::EFAULT).to_word());
    crash_with(&mut world, abi::call::inject::VECTOR, 0);
    crash_with(&mut world, 13, 0x18);
    world.exit(UART, 3);
    let log = world.with(|kernel| kernel.log.clone());
    for line in [
        "uart (1) page fault at 0x401000, address 0x10: EFAULT",
        "uart (2) is killed as injected, at 0x401000",
        "uart (3) exception 13 at 0x401000, error code 0x18",
        "uart (4) exited with status 3",
    ] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
    assert!(!log.contains("(3) page fault"));
}

#[test]
fn strangers_do_not_crash_services() {
    let mut world = world();
    let what = Exception { vector: 6, error: 0, ip: 0, address: 0 };
    world.call(Endpoint::new(20, 9), what.message());
    assert_eq!(world.holder(UART), Endpoint::new(20, 1));
    assert_eq!(world.command(service_call::LOG, "uart", 100), Some(Err(Errno::ENODATA)));
}
