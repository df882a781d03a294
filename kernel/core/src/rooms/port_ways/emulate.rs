//! Port instructions of drivers, carried out after the general-protection fault that they cause in user mode.
//!
//! A driver with the access path `EMULATE` executes IN and OUT as if it could. The fault is looked into only if its error code is 0 and the
//! instruction can be read; everything that is not a permitted port instruction is an ordinary exception. Strings move at most
//! one chunk and leave the instruction to be executed again for the rest, with the registers as the CPU would leave them; memory that is
//! missing is an ordinary page fault of the driver. Neighbours: `decode`, `ports`, `node` (faults come here first).

use crate::{
    Machine, Node, ipc::report, machine::check_range, memory::copy, probes::tracing,
    rooms::port_ways::decode::Instruction, rooms::port_ways::decode::MAX_BYTES, rooms::port_ways::decode::decode,
    rooms::port_ways::denial::Path, rooms::port_ways::ports, rooms::port_ways::ports::STRING_CHUNK,
    rooms::port_ways::ports::Target, rooms::port_ways::ports::Transfer, stop::Stop,
};

use abi::{privilege::device, privilege::way};

/// RFLAGS: string instructions go downwards.
const DIRECTION: u64 = 1 << 10;

/// True when the current thread executes port instructions which the kernel carries out.
pub fn emulates_ports(node: &Node) -> bool {
    node.privileges(node.current()).io_way == way::EMULATE
}

/// Carries out the port instruction on which the current thread has just faulted with error code 0. False: it was none, or not allowed.
pub fn emulate_fault<M: Machine>(node: &mut Node, m: &mut M) -> bool {
    let path = match node.privileges(node.current()).io_way {
        way::EMULATE => Path::Emulate,
        way::DIRECT => Path::Direct,
        _ => return false,
    };
    let Some(instruction) = faulting_instruction(node, m) else { return false };
    let port = instruction.port.unwrap_or(node.threads.running().frame.rdx as u16);
    let Ok(target) = ports::check_port(node, m, path, port as u64, instruction.width) else {
        return false;
    };
    if path == Path::Direct && target.device == device::MACHINE {
        // The CPU allows these itself: the fault has another reason.
        return false;
    }
    if instruction.string {
        return emulate_string(node, m, &instruction, target);
    }
    emulate_single(node, m, &instruction, target);
    true
}

/// The instruction at the instruction pointer, if it is a port instruction and can be read.
fn faulting_instruction<M: Machine>(node: &mut Node, m: &mut M) -> Option<Instruction> {
    let space = copy::space_of(node, node.current()).ok()?;
    let rip = node.threads.running().frame.rip;
    let mut code = [0; MAX_BYTES];
    let readable = |length: &usize| check_range(rip, *length as u64).is_ok();
    (1..=MAX_BYTES)
        .rev()
        .filter(readable)
        .find(|&length| m.read(space, rip, &mut code[..length]).is_ok())
        .and_then(|length| decode(&code[..length]))
}

fn emulate_single<M: Machine>(node: &mut Node, m: &mut M, instruction: &Instruction, target: Target) {
    let rax = node.threads.running().frame.rax;
    let result = if instruction.writes {
        ports::write_port(node, m, target, rax as u32);
        rax
    } else {
        let value = ports::read_port(m, target) as u64;
        match instruction.width {
            1 => rax & !0xff | value & 0xff,
            2 => rax & !0xffff | value & 0xffff,
            _ => value,
        }
    };
    let access = || [target.port as u64, instruction.operation(), rax];
    tracing::trace!(node, PORT, trace_port(m, &node.threads, way::EMULATE, access(), Ok(result)));
    let frame = &mut node.threads.running_mut().frame;
    frame.rax = result;
    frame.rip += instruction.length;
}

/// INS and OUTS, with and without REP: one chunk.
fn emulate_string<M: Machine>(node: &mut Node, m: &mut M, instruction: &Instruction, target: Target) -> bool {
    let frame = &node.threads.running().frame;
    let mask = instruction.address_mask;
    let (width, downwards) = (instruction.width, frame.rflags & DIRECTION != 0);
    let first = (if instruction.writes { frame.rsi } else { frame.rdi }) & mask;
    let count = if instruction.repeats { frame.rcx & mask } else { 1 };
    let items = count.min(STRING_CHUNK / width);
    let bytes = items * width;
    let lowest = if downwards { (first + width).wrapping_sub(bytes) } else { first };
    if items > 0 {
        if check_range(lowest, bytes).is_err() {
            return false;
        }
        let transfer = Transfer { target, writes: instruction.writes, address: lowest, bytes, downwards };
        match ports::transfer_string(node, m, transfer) {
            Ok(()) => {}
            Err(Stop::Fault(_, fault)) => {
                report::page_fault(node, m, fault.address, fault.access);
                return true;
            }
            Err(_) => return false,
        }
    }
    let access = || [target.port as u64, instruction.operation(), lowest];
    tracing::trace!(node, PORT, trace_port(m, &node.threads, way::EMULATE, access(), Ok(items)));
    let frame = &mut node.threads.running_mut().frame;
    let moved = if downwards { first.wrapping_sub(bytes) } else { first.wrapping_add(bytes) };
    *(if instruction.writes { &mut frame.rsi } else { &mut frame.rdi }) = moved & mask;
    if instruction.repeats {
        frame.rcx = (count - items) & mask;
    }
    if items == count {
        frame.rip += instruction.length;
    }
    true
}
