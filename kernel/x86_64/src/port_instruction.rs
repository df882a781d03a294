//! Decodes IN and OUT, for services that execute them and have the kernel do the work (`privilege::way::EMULATE`).
//!
//! The plain forms with an immediate port or DX, in 8, 16 and 32 bits; the string forms are not emulated (`SDevIo` is there for them).

/// Longest form: operand-size prefix, opcode, immediate.
pub const MAX_BYTES: usize = 3;

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInstruction {
    /// The port.
    pub port: u16,
    /// Bytes moved: 1, 2 or 4.
    pub width: u64,
    /// OUT, not IN.
    pub out: bool,
    /// Length of the instruction.
    pub length: u64,
}

impl PortInstruction {
    /// The instruction that `code` starts with; `dx` is the program's register.
    pub fn decode(code: &[u8], dx: u16) -> Option<Self> {
        const OPERAND_SIZE: u8 = 0x66;
        let prefixed = *code.first()? == OPERAND_SIZE;
        let code = &code[prefixed as usize..];
        let opcode = *code.first()?;
        // E4 to E7: immediate port; EC to EF: DX. Bit 0: not a byte; bit 1: OUT.
        let (port, length) = match opcode {
            0xe4..=0xe7 => (*code.get(1)? as u16, 2),
            0xec..=0xef => (dx, 1),
            _ => return None,
        };
        let width = match (opcode & 1 != 0, prefixed) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => 4,
        };
        Some(PortInstruction { port, width, out: opcode & 2 != 0, length: length + prefixed as u64 })
    }

    /// The new content of RAX after IN has read `value` (a 32-bit result clears the upper half, as the CPU does).
    pub fn result(&self, rax: u64, value: u32) -> u64 {
        match self.width {
            1 => rax & !0xff | value as u64 & 0xff,
            2 => rax & !0xffff | value as u64 & 0xffff,
            _ => value as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(code: &[u8]) -> Option<(u16, u64, bool, u64)> {
        PortInstruction::decode(code, 0x3f8).map(|i| (i.port, i.width, i.out, i.length))
    }

    #[test]
    fn all_plain_forms_are_decoded() {
        assert_eq!(decode(&[0xec]), Some((0x3f8, 1, false, 1)));
        assert_eq!(decode(&[0xed]), Some((0x3f8, 4, false, 1)));
        assert_eq!(decode(&[0x66, 0xef]), Some((0x3f8, 2, true, 2)));
        assert_eq!(decode(&[0xe4, 0x60]), Some((0x60, 1, false, 2)));
        assert_eq!(decode(&[0x66, 0xe7, 0x60]), Some((0x60, 2, true, 3)));
    }

    #[test]
    fn other_instructions_are_not() {
        assert_eq!(decode(&[0xf4]), None);
        assert_eq!(decode(&[0x6c]), None);
        assert_eq!(decode(&[0x66]), None);
        assert_eq!(decode(&[0xe4]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn narrow_results_keep_the_rest_of_the_register() {
        let of_width = |width| PortInstruction { port: 0, width, out: false, length: 1 }.result(0x1122_3344_5566_7788, 0xaabb_ccdd);
        assert_eq!(of_width(1), 0x1122_3344_5566_77dd);
        assert_eq!(of_width(2), 0x1122_3344_5566_ccdd);
        assert_eq!(of_width(4), 0xaabb_ccdd);
    }
}
