//! Decodes the port instructions of the x86-64 (SDM volume 2: IN, OUT, INS, OUTS), and nothing else.
//!
//! Understood are operand size, address size, REP, REX and the segment prefixes that mean nothing in 64-bit mode. FS and GS overrides,
//! LOCK and unknown bytes make it no port instruction. Neighbours: `emulate`.

use abi::privilege::io;

/// Longest instruction of the CPU.
pub const MAX_BYTES: usize = 15;

/// A port instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The port, if it is in the instruction; else it is in DX.
    pub port: Option<u16>,
    /// Bytes of each access: 1, 2, 4.
    pub width: u64,
    /// OUT or OUTS.
    pub writes: bool,
    /// INS or OUTS.
    pub string: bool,
    /// With REP: RCX times.
    pub repeats: bool,
    /// The part of RSI, RDI and RCX that counts.
    pub address_mask: u64,
    /// Bytes of the instruction.
    pub length: u64,
}

impl Instruction {
    /// The same in `privilege::io`.
    pub fn operation(&self) -> u64 {
        let writes = if self.writes { io::OUT } else { io::IN };
        let string = if self.string { io::STRING } else { 0 };
        self.width | writes | string
    }
}

/// The instruction that `code` begins with.
pub fn decode(code: &[u8]) -> Option<Instruction> {
    let mut word = false;
    let mut repeats = false;
    let mut address_mask = u64::MAX;
    let mut at = 0;
    loop {
        match *code.get(at)? {
            0x66 => word = true,
            0x67 => address_mask = u32::MAX as u64,
            0xf2 | 0xf3 => repeats = true,
            0x26 | 0x2e | 0x36 | 0x3e => {}
            _ => break,
        }
        at += 1;
    }
    if matches!(*code.get(at)?, 0x40..=0x4f) {
        at += 1;
    }
    let opcode = *code.get(at)?;
    let string = matches!(opcode, 0x6c..=0x6f);
    let immediate = matches!(opcode, 0xe4..=0xe7);
    if !string && !immediate && !matches!(opcode, 0xec..=0xef) {
        return None;
    }
    let port = if immediate { Some(*code.get(at + 1)? as u16) } else { None };
    let width = match (opcode & 1, word) {
        (0, _) => 1,
        (_, true) => 2,
        (_, false) => 4,
    };
    let length = (at + 1 + immediate as usize) as u64;
    Some(Instruction { port, width, writes: opcode & 2 != 0, string, repeats, address_mask, length })
}
