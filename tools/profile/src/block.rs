//! Blocks: straight-line sequences of instructions, and how they end.

/// Where the kernel's half of the address space begins.
const KERNEL_HALF: u64 = 1 << 63;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a call.
    Call,
    /// By a return.
    Return,
    /// By a direct jump, perhaps a conditional one, to this address.
    Jump(u64),
    /// By anything else.
    Other,
}

/// A block of instructions.
#[derive(Clone, Debug)]
pub struct Block {
    /// Address of the first one.
    pub address: u64,
    /// The page of memory that it lies in, by its number in the recording.
    pub page: u32,
    /// Bytes of each instruction.
    pub lengths: Vec<u8>,
    /// How it ends.
    pub end: End,
}

/// All blocks that were translated, by number.
pub type Blocks = Vec<Block>;

impl Block {
    /// Address after its last instruction.
    pub fn end_address(&self) -> u64 {
        self.address + self.lengths.iter().map(|&length| u64::from(length)).sum::<u64>()
    }

    /// Returns whether it is the kernel's.
    pub fn is_kernel(&self) -> bool {
        self.address >= KERNEL_HALF
    }

    /// Returns the number of instructions before `address`, or `None` if no instruction other than the first starts there.
    pub fn instructions_before(&self, address: u64) -> Option<usize> {
        let mut at = self.address;
        let begins = |&length: &u8| {
            at += u64::from(length);
            at == address
        };
        self.lengths.iter().take(self.lengths.len().saturating_sub(1)).position(begins).map(|index| index + 1)
    }
}

/// Returns how a block ends whose last instruction has this address and these bytes.
pub fn end_of(address: u64, instruction: &[u8]) -> End {
    let is_prefix = |byte: &u8| matches!(byte, 0x2e | 0x3e | 0x40..=0x4f | 0x66 | 0xf2 | 0xf3);
    let prefixes = instruction.iter().take_while(|byte| is_prefix(byte)).count();
    let target =
        |distance: i64| End::Jump(address.wrapping_add(instruction.len() as u64).wrapping_add_signed(distance));
    match instruction[prefixes..] {
        [0xe8, ..] => End::Call,
        [0xff, operand, ..] if matches!(operand >> 3 & 7, 2 | 3) => End::Call,
        [0xc2 | 0xc3, ..] => End::Return,
        [0x70..=0x7f | 0xe0..=0xe3 | 0xeb, distance] => target(i64::from(distance as i8)),
        [0xe9, a, b, c, d] | [0x0f, 0x80..=0x8f, a, b, c, d] => target(i64::from(i32::from_le_bytes([a, b, c, d]))),
        _ => End::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_instruction_says_how_a_block_ends() {
        assert_eq!(end_of(0x1000, &[0xe8, 1, 0, 0, 0]), End::Call);
        assert_eq!(end_of(0x1000, &[0x41, 0xff, 0xd4]), End::Call, "call r12");
        assert_eq!(end_of(0x1000, &[0xff, 0xe0]), End::Other, "jmp rax");
        assert_eq!(end_of(0x1000, &[0xf3, 0xc3]), End::Return);
        assert_eq!(end_of(0x1000, &[0xeb, 0xfe]), End::Jump(0x1000));
        assert_eq!(end_of(0x1000, &[0x0f, 0x84, 0x10, 0, 0, 0]), End::Jump(0x1016));
        assert_eq!(end_of(0x1000, &[0x0f, 0x05]), End::Other, "syscall");
    }

    #[test]
    fn an_address_within_a_block_tells_what_came_before_it() {
        let block = Block { address: 100, page: 0, lengths: vec![1, 2, 3], end: End::Other };
        assert_eq!(block.end_address(), 106);
        let before = [99, 100, 101, 102, 103, 106].map(|address| block.instructions_before(address));
        assert_eq!(before, [None, None, Some(1), None, Some(2), None]);
    }
}
