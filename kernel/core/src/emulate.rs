//! Port instructions of drivers, carried out after the general-protection fault that they cause in user mode (V20 to V42).
//!
//! A driver of the way `EMULATE` executes IN and OUT as if it could. The fault is looked into only if its error code is 0 and the
//! instruction can be read; everything that is not a permitted port instruction takes the normal way of an exception. Strings move at most
//! one chunk and leave the instruction to be executed again for the rest, with the registers as the CPU would leave them; memory that is
//! missing is an ordinary page fault of the driver. Neighbours: `decode`, `ports`, `node` (faults come here first).

use abi::privilege::{device, way};

use crate::{
    Machine, Node,
    call::Stop,
    copy::check_range,
    decode::{Instruction, MAX_BYTES, decode},
    denial::Door,
    ports::{STRING_CHUNK, Target, Transfer},
};

/// RFLAGS: string instructions go downwards.
const DIRECTION: u64 = 1 << 10;

/// What has become of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emulated {
    /// It was a port instruction, and it is done, or its memory is being asked for.
    Done,
    /// It is an exception of the program.
    Exception,
}

impl Node {
    /// True when the current thread executes port instructions which the kernel carries out.
    #[inline(always)]
    pub fn emulates_ports(&self) -> bool {
        self.privileges(self.current).io_way == way::EMULATE
    }

    /// Carries out the port instruction on which the current thread has just faulted with error code 0.
    pub(crate) fn emulate_port_instruction<M: Machine>(&mut self, m: &mut M) -> Emulated {
        let door = match self.privileges(self.current).io_way {
            way::EMULATE => Door::Emulate,
            way::DIRECT => Door::Direct,
            _ => return Emulated::Exception,
        };
        let Some(instruction) = self.faulting_instruction(m) else { return Emulated::Exception };
        let port = instruction.port.unwrap_or(self.threads[self.current].frame.rdx as u16);
        let Ok(target) = self.check_port(m, door, port as u64, instruction.width) else { return Emulated::Exception };
        if door == Door::Direct && target.device == device::MACHINE {
            // The CPU allows these itself: the fault has another reason.
            return Emulated::Exception;
        }
        if instruction.string {
            return self.emulate_string(m, &instruction, target);
        }
        self.emulate_single(m, &instruction, target);
        Emulated::Done
    }

    /// The instruction at the instruction pointer, if it is a port instruction and can be read.
    fn faulting_instruction<M: Machine>(&mut self, m: &mut M) -> Option<Instruction> {
        let space = self.space_of(self.current).ok()?;
        let rip = self.threads[self.current].frame.rip;
        let mut code = [0; MAX_BYTES];
        let readable = |length: &usize| check_range(rip, *length as u64).is_ok();
        (1..=MAX_BYTES)
            .rev()
            .filter(readable)
            .find(|&length| m.read(space, rip, &mut code[..length]).is_ok())
            .and_then(|length| decode(&code[..length]))
    }

    fn emulate_single<M: Machine>(&mut self, m: &mut M, instruction: &Instruction, target: Target) {
        let rax = self.threads[self.current].frame.rax;
        let result = if instruction.writes {
            self.write_port(m, target, rax as u32);
            rax
        } else {
            let value = self.read_port(m, target) as u64;
            match instruction.width {
                1 => rax & !0xff | value & 0xff,
                2 => rax & !0xffff | value & 0xffff,
                _ => value,
            }
        };
        if self.tracing {
            let operation = instruction.operation();
            self.trace_port(m, way::EMULATE, [target.port as u64, operation, rax], Ok(result));
        }
        let frame = &mut self.threads[self.current].frame;
        frame.rax = result;
        frame.rip += instruction.length;
    }

    /// INS and OUTS, with and without REP: one chunk.
    fn emulate_string<M: Machine>(&mut self, m: &mut M, instruction: &Instruction, target: Target) -> Emulated {
        let frame = &self.threads[self.current].frame;
        let mask = instruction.address_mask;
        let (width, downwards) = (instruction.width, frame.rflags & DIRECTION != 0);
        let first = (if instruction.writes { frame.rsi } else { frame.rdi }) & mask;
        let count = if instruction.repeats { frame.rcx & mask } else { 1 };
        let items = count.min(STRING_CHUNK / width);
        let bytes = items * width;
        let lowest = if downwards { (first + width).wrapping_sub(bytes) } else { first };
        if items > 0 {
            if check_range(lowest, bytes).is_err() {
                return Emulated::Exception;
            }
            let transfer = Transfer { target, writes: instruction.writes, address: lowest, bytes, downwards };
            match self.transfer_string(m, transfer) {
                Ok(()) => {}
                Err(Stop::Fault(_, fault)) => {
                    self.page_fault(m, fault.address, fault.access);
                    return Emulated::Done;
                }
                Err(_) => return Emulated::Exception,
            }
        }
        if self.tracing {
            let operation = instruction.operation();
            self.trace_port(m, way::EMULATE, [target.port as u64, operation, lowest], Ok(items));
        }
        let frame = &mut self.threads[self.current].frame;
        let moved = if downwards { first.wrapping_sub(bytes) } else { first.wrapping_add(bytes) };
        *(if instruction.writes { &mut frame.rsi } else { &mut frame.rdi }) = moved & mask;
        if instruction.repeats {
            frame.rcx = (count - items) & mask;
        }
        if items == count {
            frame.rip += instruction.length;
        }
        Emulated::Done
    }
}
