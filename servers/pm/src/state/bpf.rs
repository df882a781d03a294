//! Classic BPF as filters of seccomp(2) use it: the check of a program, and its run over a call. Pure data.
//!
//! A program only goes forward, so that it ends after as many steps as it has instructions. Source: the numbers of `linux/filter.h` and
//! `linux/seccomp.h`; which instructions a filter may have, and what each does, by trial on Linux.

use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::{TryVec, filled, with_capacity};

/// Most instructions of one program (`BPF_MAXINSNS`).
pub const MAX_INSTRUCTIONS: usize = 4096;
/// Bytes of an instruction (`struct sock_filter`).
pub const INSTRUCTION_BYTES: usize = 8;
/// Words of scratch memory.
const MEMORY_WORDS: usize = 16;
/// Bytes of what is filtered (`struct seccomp_data`).
const DATA_BYTES: u32 = 64;

/// Classes of instructions, in the lowest bits of the code.
mod class {
    pub const LD: u16 = 0;
    pub const LDX: u16 = 1;
    pub const ST: u16 = 2;
    pub const STX: u16 = 3;
    pub const ALU: u16 = 4;
    pub const JMP: u16 = 5;
    pub const RET: u16 = 6;
    pub const MISC: u16 = 7;
}

/// How a load addresses: the bits above the class.
mod mode {
    pub const IMMEDIATE: u16 = 0x00;
    pub const ABSOLUTE: u16 = 0x20;
    pub const MEMORY: u16 = 0x60;
    pub const LENGTH: u16 = 0x80;
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    /// A or X from a constant.
    Load(Register, u32),
    /// A from the data, by its word.
    LoadData(u8),
    /// A or X from scratch memory, and to it.
    LoadMemory(Register, u8),
    StoreMemory(Register, u8),
    /// A becomes A with this.
    Calculate(Operation, Operand),
    Negate,
    /// So many further than the next one: always, or by a comparison of A.
    Jump(u32),
    Branch(Condition, Operand, u8, u8),
    Return(Operand),
    /// X from A, and A from X.
    ToX,
    ToA,
}

const _: () = assert!(size_of::<Instruction>() <= 16, "what all filters may have is 512 KiB of pm's heap");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    A,
    X,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    Constant(u32),
    X,
    A,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

impl Instruction {
    /// That of a `struct sock_filter`. `EINVAL`: no filter may have it.
    fn decode(bytes: &[u8; INSTRUCTION_BYTES]) -> Result<Instruction, Errno> {
        let code = u16::from_le_bytes([bytes[0], bytes[1]]);
        let (if_true, if_false) = (bytes[2], bytes[3]);
        let k = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let place = || u8::try_from(k).ok().filter(|k| usize::from(*k) < MEMORY_WORDS).ok_or(Errno::EINVAL);
        let register = if code & 7 == class::LD || code & 7 == class::ST { Register::A } else { Register::X };
        Ok(match (code & 7, code & !7) {
            (class::LD, mode::ABSOLUTE) if k < DATA_BYTES && k.is_multiple_of(4) => {
                Instruction::LoadData((k / 4) as u8)
            }
            (class::LD | class::LDX, mode::LENGTH) => Instruction::Load(register, DATA_BYTES),
            (class::LD | class::LDX, mode::IMMEDIATE) => Instruction::Load(register, k),
            (class::LD | class::LDX, mode::MEMORY) => Instruction::LoadMemory(register, place()?),
            (class::ST | class::STX, 0) => Instruction::StoreMemory(register, place()?),
            (class::ALU, 0x80) => Instruction::Negate,
            (class::ALU, operation) => {
                Instruction::Calculate(Operation::decode(operation & !8, k, operation & 8 != 0)?, operand(operation, k))
            }
            (class::JMP, 0) => Instruction::Jump(k),
            (class::JMP, condition) => {
                Instruction::Branch(Condition::decode(condition & !8)?, operand(condition, k), if_true, if_false)
            }
            (class::RET, 0x00) => Instruction::Return(Operand::Constant(k)),
            (class::RET, 0x10) => Instruction::Return(Operand::A),
            (class::MISC, 0x00) => Instruction::ToX,
            (class::MISC, 0x80) => Instruction::ToA,
            _ => return Err(Errno::EINVAL),
        })
    }

    /// How far beyond the next instruction it may go on; none: it ends the program.
    fn targets(self) -> [Option<usize>; 2] {
        match self {
            Instruction::Return(_) => [None, None],
            Instruction::Jump(distance) => [Some(distance as usize), None],
            Instruction::Branch(_, _, if_true, if_false) => [Some(if_true.into()), Some(if_false.into())],
            _ => [Some(0), None],
        }
    }
}

/// The second operand of a calculation or comparison: X if the code says so.
fn operand(code: u16, k: u32) -> Operand {
    if code & 8 != 0 { Operand::X } else { Operand::Constant(k) }
}

impl Operation {
    /// `EINVAL`: none that a filter may have, or one that is never defined with the constant `k`.
    fn decode(code: u16, k: u32, with_x: bool) -> Result<Operation, Errno> {
        let is_defined = |defined: bool| if with_x || defined { Ok(()) } else { Err(Errno::EINVAL) };
        Ok(match code {
            0x00 => Operation::Add,
            0x10 => Operation::Subtract,
            0x20 => Operation::Multiply,
            0x30 => is_defined(k != 0).map(|()| Operation::Divide)?,
            0x40 => Operation::Or,
            0x50 => Operation::And,
            0x60 => is_defined(k < u32::BITS).map(|()| Operation::ShiftLeft)?,
            0x70 => is_defined(k < u32::BITS).map(|()| Operation::ShiftRight)?,
            0xa0 => Operation::Xor,
            _ => return Err(Errno::EINVAL),
        })
    }

    /// `None`: a division by zero, which ends the program with 0.
    fn apply(self, a: u32, b: u32) -> Option<u32> {
        Some(match self {
            Operation::Add => a.wrapping_add(b),
            Operation::Subtract => a.wrapping_sub(b),
            Operation::Multiply => a.wrapping_mul(b),
            Operation::Divide => return a.checked_div(b),
            Operation::Or => a | b,
            Operation::And => a & b,
            Operation::ShiftLeft => a.wrapping_shl(b),
            Operation::ShiftRight => a.wrapping_shr(b),
            Operation::Xor => a ^ b,
        })
    }
}

impl Condition {
    fn decode(code: u16) -> Result<Condition, Errno> {
        Ok(match code {
            0x10 => Condition::Equal,
            0x20 => Condition::Greater,
            0x30 => Condition::GreaterOrEqual,
            0x40 => Condition::AnyBit,
            _ => return Err(Errno::EINVAL),
        })
    }

    fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Condition::Equal => a == b,
            Condition::Greater => a > b,
            Condition::GreaterOrEqual => a >= b,
            Condition::AnyBit => a & b != 0,
        }
    }
}

/// A call, as a filter sees it (`struct seccomp_data`): sixteen words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data([u32; DATA_BYTES as usize / 4]);

/// `AUDIT_ARCH_X86_64`.
pub const ARCHITECTURE: u32 = 0xc000_003e;

impl Data {
    /// A call of this number with these arguments, from behind the instruction at `ip`.
    pub fn new(number: u64, ip: u64, arguments: [u64; 6]) -> Data {
        let mut words = [0; DATA_BYTES as usize / 4];
        (words[0], words[1]) = (number as u32, ARCHITECTURE);
        for (pair, value) in words[2..].as_chunks_mut::<2>().0.iter_mut().zip([ip].into_iter().chain(arguments)) {
            *pair = [value as u32, (value >> 32) as u32];
        }
        Data(words)
    }
}

/// A program that has been checked: each way through it ends with a return, and loads only what it has stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// The program with these instructions. `EINVAL`: it has none or too many, or may do what a filter must not; `ENOMEM`.
    pub fn new(instructions: &[[u8; INSTRUCTION_BYTES]]) -> Result<Program, Errno> {
        if !(1..=MAX_INSTRUCTIONS).contains(&instructions.len()) {
            return Err(Errno::EINVAL);
        }
        let mut decoded = with_capacity(instructions.len())?;
        for bytes in instructions {
            decoded.try_push(Instruction::decode(bytes)?)?;
        }
        check(&decoded)?;
        Ok(Program(decoded))
    }

    /// How many instructions it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What it returns for a call.
    pub fn run(&self, data: &Data) -> u32 {
        let (mut a, mut x, mut memory) = (0, 0, [0; MEMORY_WORDS]);
        let mut next = 0;
        while let Some(instruction) = self.0.get(next) {
            let value = |operand: Operand| match operand {
                Operand::Constant(k) => k,
                Operand::X => x,
                Operand::A => a,
            };
            next += 1;
            match *instruction {
                Instruction::Load(Register::A, k) => a = k,
                Instruction::Load(Register::X, k) => x = k,
                Instruction::LoadData(word) => a = data.0[usize::from(word)],
                Instruction::LoadMemory(Register::A, place) => a = memory[usize::from(place)],
                Instruction::LoadMemory(Register::X, place) => x = memory[usize::from(place)],
                Instruction::StoreMemory(Register::A, place) => memory[usize::from(place)] = a,
                Instruction::StoreMemory(Register::X, place) => memory[usize::from(place)] = x,
                Instruction::Calculate(operation, operand) => match operation.apply(a, value(operand)) {
                    Some(result) => a = result,
                    None => return 0,
                },
                Instruction::Negate => a = a.wrapping_neg(),
                Instruction::Jump(distance) => next += distance as usize,
                Instruction::Branch(condition, operand, if_true, if_false) => {
                    next += usize::from(if condition.holds(a, value(operand)) { if_true } else { if_false });
                }
                Instruction::Return(operand) => return value(operand),
                Instruction::ToX => x = a,
                Instruction::ToA => a = x,
            }
        }
        // Not reached: the check has followed each way to a return.
        0
    }
}

/// Checks where the instructions lead. What memory is stored at each of them is what all ways to it have stored. `EINVAL`, `ENOMEM`.
fn check(instructions: &[Instruction]) -> Result<(), Errno> {
    const ALL: u16 = u16::MAX;
    let mut stored = filled(ALL, instructions.len())?;
    stored[0] = 0;
    for (at, instruction) in instructions.iter().enumerate() {
        let mut known = stored[at];
        match *instruction {
            Instruction::StoreMemory(_, place) => known |= 1 << place,
            Instruction::LoadMemory(_, place) if known & 1 << place == 0 => return Err(Errno::EINVAL),
            _ => {}
        }
        for distance in instruction.targets().into_iter().flatten() {
            *stored.get_mut(at + 1 + distance).ok_or(Errno::EINVAL)? &= known;
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An instruction as it lies in memory.
    pub fn instruction(code: u16, k: u32) -> [u8; INSTRUCTION_BYTES] {
        jump(code, k, 0, 0)
    }

    /// The same with both distances.
    pub fn jump(code: u16, k: u32, if_true: u8, if_false: u8) -> [u8; INSTRUCTION_BYTES] {
        let ([c0, c1], [k0, k1, k2, k3]) = (code.to_le_bytes(), k.to_le_bytes());
        [c0, c1, if_true, if_false, k0, k1, k2, k3]
    }

    const LOAD: u16 = 0x20;
    const RETURN: u16 = 0x06;
    const RETURN_A: u16 = 0x16;

    fn result(program: &[[u8; INSTRUCTION_BYTES]]) -> Result<u32, Errno> {
        let data = Data::new(39, 0x1122_3344_5566, [1, 2, 3, 4, 5, 0x6_0000_0007]);
        Program::new(program).map(|program| program.run(&data))
    }

    /// The result of `A = a; X = x`, an operation with X, and the return of A.
    fn calculated(a: u32, code: u16, x: u32) -> Result<u32, Errno> {
        result(&[instruction(0x00, a), instruction(0x01, x), instruction(code | 8, 0), instruction(RETURN_A, 0)])
    }

    #[test]
    fn each_word_of_a_call_can_be_loaded() {
        let expected = [39, ARCHITECTURE, 0x3344_5566, 0x1122, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 7, 6];
        for (word, expected) in expected.into_iter().enumerate() {
            assert_eq!(result(&[instruction(LOAD, 4 * word as u32), instruction(RETURN_A, 0)]), Ok(expected));
        }
        for outside in [64, 2, 61, u32::MAX, u32::MAX - 3] {
            assert_eq!(result(&[instruction(LOAD, outside), instruction(RETURN_A, 0)]), Err(Errno::EINVAL));
        }
        for code in [0x80, 0x81] {
            assert_eq!(
                result(&[instruction(code, 9), instruction(0x87, 0), instruction(RETURN_A, 0)]),
                match code {
                    0x80 => Ok(0),
                    _ => Ok(64),
                }
            );
        }
    }

    #[test]
    fn calculations_are_of_32_bits() {
        let cases = [
            (7, 0x04, u32::MAX, 6),
            (7, 0x14, 9, u32::MAX - 1),
            (0x1_0001, 0x24, 0x1_0000, 0x1_0000),
            (17, 0x34, 5, 3),
            (17, 0x34, 0, 0),
            (0b1100, 0x44, 0b1010, 0b1110),
            (0b1100, 0x54, 0b1010, 0b1000),
            (0b1100, 0xa4, 0b1010, 0b0110),
            (1, 0x64, 31, 1 << 31),
            (1, 0x64, 33, 2),
            (1 << 31, 0x74, 31, 1),
            (4, 0x74, 33, 2),
        ];
        for (a, code, x, expected) in cases {
            assert_eq!(calculated(a, code, x), Ok(expected), "{a} {code:#x} {x}");
        }
        assert_eq!(result(&[instruction(0x00, 1), instruction(0x84, 0), instruction(RETURN_A, 0)]), Ok(u32::MAX));
        for (code, k) in [(0x34, 0), (0x64, 32), (0x74, 32), (0x94, 3), (0xb4, 3)] {
            assert_eq!(result(&[instruction(code, k), instruction(RETURN_A, 0)]), Err(Errno::EINVAL), "{code:#x}");
        }
        assert_eq!(calculated(17, 0x94, 5), Err(Errno::EINVAL), "no remainders");
    }

    #[test]
    fn comparisons_lead_where_they_say() {
        let compared = |code: u16, k: u32| {
            let branch = jump(code, k, 1, 0);
            result(&[instruction(0x00, 6), branch, instruction(RETURN, 1), instruction(RETURN, 2)])
        };
        let (no, yes) = (Ok(1), Ok(2));
        for (code, k, expected) in [
            (0x15, 6, yes),
            (0x15, 7, no),
            (0x25, 5, yes),
            (0x25, 6, no),
            (0x35, 6, yes),
            (0x35, 7, no),
            (0x45, 2, yes),
            (0x45, 9, no),
        ] {
            assert_eq!(compared(code, k), expected, "{code:#x} {k}");
        }
        assert_eq!(compared(0x55, 0), Err(Errno::EINVAL));
        let with_x = [instruction(0x00, 6), instruction(0x01, 6), jump(0x1d, 0, 0, 1)];
        assert_eq!(result(&[&with_x[..], &[instruction(RETURN, 1), instruction(RETURN, 2)]].concat()), Ok(1));
        assert_eq!(result(&[instruction(0x05, 1), instruction(RETURN, 1), instruction(RETURN, 2)]), Ok(2));
    }

    #[test]
    fn each_way_ends_with_a_return_within_the_program() {
        assert_eq!(result(&[]), Err(Errno::EINVAL));
        assert_eq!(result(&[instruction(0x00, 1)]), Err(Errno::EINVAL));
        for branch in [jump(0x15, 0, 1, 0), jump(0x15, 0, 0, 1), jump(0x05, 1, 0, 0), jump(0x05, u32::MAX, 0, 0)] {
            assert_eq!(result(&[branch, instruction(RETURN, 0)]), Err(Errno::EINVAL));
        }
        let most = |count: usize| {
            let mut program = vec![instruction(0x00, 1); count];
            program[count - 1] = instruction(RETURN_A, 0);
            result(&program)
        };
        assert_eq!((most(MAX_INSTRUCTIONS), most(MAX_INSTRUCTIONS + 1)), (Ok(1), Err(Errno::EINVAL)));
    }

    #[test]
    fn memory_is_loaded_only_where_each_way_has_stored_it() {
        let (store, load) = (|place| instruction(0x02, place), |place| instruction(0x60, place));
        let end = instruction(RETURN_A, 0);
        assert_eq!(result(&[instruction(0x00, 5), store(3), instruction(0x00, 0), load(3), end]), Ok(5));
        assert_eq!(result(&[load(3), end]), Err(Errno::EINVAL));
        assert_eq!(result(&[store(16), end]), Err(Errno::EINVAL));
        assert_eq!(
            result(&[jump(0x15, 0, 0, 1), store(3), load(3), end]),
            Err(Errno::EINVAL),
            "one way stores nothing"
        );
        let on_both = [jump(0x15, 0, 0, 2), store(3), jump(0x05, 1, 0, 0), store(3), load(3), end];
        assert_eq!(result(&on_both), Ok(0));
        let by_x = [instruction(0x01, 8), instruction(0x03, 15), instruction(0x01, 0), instruction(0x61, 15)];
        assert_eq!(result(&[&by_x[..], &[instruction(0x87, 0), end]].concat()), Ok(8));
        assert_eq!(
            result(&[instruction(0x00, 4), instruction(0x07, 0), instruction(0x00, 0), instruction(0x87, 0), end]),
            Ok(4)
        );
    }

    #[test]
    fn programs_that_are_taken_end_whatever_they_consist_of() {
        let mut state = 1_u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let codes =
            (0..=u16::MAX).filter(|code| Instruction::decode(&jump(*code, 4, 0, 0)).is_ok()).collect::<Vec<_>>();
        let mut taken = 0;
        for _ in 0..100_000 {
            let program = (0..1 + random(8))
                .map(|_| {
                    let code = codes[random(codes.len() as u64) as usize];
                    jump(code, random(40) as u32, random(3) as u8, random(3) as u8)
                })
                .collect::<Vec<_>>();
            taken += u32::from(result(&program).is_ok());
        }
        assert!(taken > 100, "{taken}");
    }

    #[test]
    fn nothing_else_is_an_instruction_of_a_filter() {
        let known = (0..=u16::MAX).filter(|code| Instruction::decode(&jump(*code, 4, 0, 0)).is_ok());
        assert_eq!(known.count(), 41);
    }
}
