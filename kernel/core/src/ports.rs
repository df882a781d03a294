//! Port I/O for drivers: `DevIo`, `SDevIo`, and IN/OUT instructions carried out after their general-protection fault
//! (way `EMULATE`).
//!
//! Every access is checked against the driver's port ranges, whichever way it comes.
//! Neighbours: `privilege`, `call`; `node` (general-protection faults come here first).

use abi::{Errno, privilege::way};

use crate::{
    Machine, Node,
    call::Stop,
    copy::check_range,
    privilege::{allows_ports, port_operation},
};

/// Bytes moved between user memory and a port at a time.
const STRING_CHUNK: u64 = 512;

impl Node {
    /// `DevIo (port, operation, value)` → value read.
    pub(crate) fn port_io<M: Machine>(
        &mut self,
        m: &mut M,
        port: u64,
        operation: u64,
        value: u64,
    ) -> Result<u64, Errno> {
        let (width, writes) = port_operation(operation)?;
        self.check_port(port, width)?;
        if writes {
            m.port_out(port as u16, width, value as u32);
            return Ok(0);
        }
        Ok(m.port_in(port as u16, width) as u64)
    }

    fn check_port(&self, port: u64, width: u64) -> Result<(), Errno> {
        let allowed = allows_ports(self.privileges(self.current), port, width);
        if allowed { Ok(()) } else { Err(Errno::ECALLDENIED) }
    }

    /// `SDevIo (port, operation, own address, count)`: `count` accesses of one port. → count.
    pub(crate) fn port_string<M: Machine>(
        &mut self,
        m: &mut M,
        port: u64,
        operation: u64,
        address: u64,
        count: u64,
    ) -> Result<u64, Stop> {
        let (width, writes) = port_operation(operation)?;
        self.check_port(port, width)?;
        let bytes = count.checked_mul(width).filter(|&bytes| bytes <= abi::layout::MAX_COPY).ok_or(Errno::EINVAL)?;
        check_range(address, bytes)?;
        let mut done = self.threads[self.current].progress;
        while done < bytes {
            let mut buffer = [0; STRING_CHUNK as usize];
            let chunk = &mut buffer[..STRING_CHUNK.min(bytes - done) as usize];
            self.read_own(m, address + done, chunk)?;
            if writes {
                string_out(m, port as u16, width as usize, chunk);
            } else {
                self.write_own(m, address + done, chunk)?;
                string_in(m, port as u16, width as usize, chunk);
                self.write_own(m, address + done, chunk)?;
            }
            done += chunk.len() as u64;
            self.threads[self.current].progress = done;
            if done < bytes && m.interrupt_pending() {
                return Err(Stop::Preempted);
            }
        }
        Ok(count)
    }

    /// Carries out the IN or OUT at the instruction pointer of the current thread, which has just faulted on it. False:
    /// it is none, or not allowed; the fault is the program's.
    pub(crate) fn emulate_port_instruction<M: Machine>(&mut self, m: &mut M) -> bool {
        if self.privileges(self.current).io_way != way::EMULATE {
            return false;
        }
        let Ok(space) = self.space_of(self.current) else { return false };
        let rip = self.threads[self.current].frame.rip;
        let mut code = [0; 3];
        let readable = (1..=code.len()).rev().any(|length| m.read(space, rip, &mut code[..length]).is_ok());
        let Some(access) = readable.then(|| decode(&code)).flatten() else { return false };
        let frame = &self.threads[self.current].frame;
        let port = access.port.unwrap_or(frame.rdx as u16);
        if self.check_port(port as u64, access.width).is_err() {
            return false;
        }
        let rax = frame.rax;
        let result = if access.writes {
            m.port_out(port, access.width, rax as u32);
            rax
        } else {
            let value = m.port_in(port, access.width) as u64;
            match access.width {
                1 => rax & !0xff | value & 0xff,
                2 => rax & !0xffff | value & 0xffff,
                _ => value,
            }
        };
        let frame = &mut self.threads[self.current].frame;
        frame.rax = result;
        frame.rip += access.length;
        true
    }
}

/// A decoded IN or OUT.
struct Access {
    /// The port, if it is in the instruction; else it is in DX.
    port: Option<u16>,
    width: u64,
    writes: bool,
    length: u64,
}

/// Decodes `[66] E4..E7 ib` and `[66] EC..EF` (SDM volume 2, IN and OUT).
fn decode(code: &[u8; 3]) -> Option<Access> {
    let prefix = (code[0] == 0x66) as usize;
    let opcode = code[prefix];
    if opcode & 0xf4 != 0xe4 {
        return None;
    }
    let width = match (opcode & 1, prefix) {
        (0, _) => 1,
        (_, 0) => 4,
        _ => 2,
    };
    let immediate = opcode & 8 == 0;
    Some(Access {
        port: immediate.then(|| code[prefix + 1] as u16),
        width,
        writes: opcode & 2 != 0,
        length: (prefix + 1 + immediate as usize) as u64,
    })
}

fn string_in<M: Machine>(m: &mut M, port: u16, width: usize, out: &mut [u8]) {
    for item in out.chunks_exact_mut(width) {
        let value = m.port_in(port, width as u64).to_le_bytes();
        item.copy_from_slice(&value[..width]);
    }
}

fn string_out<M: Machine>(m: &mut M, port: u16, width: usize, bytes: &[u8]) {
    for item in bytes.chunks_exact(width) {
        let mut value = [0; 4];
        value[..width].copy_from_slice(item);
        m.port_out(port, width as u64, u32::from_le_bytes(value));
    }
}
