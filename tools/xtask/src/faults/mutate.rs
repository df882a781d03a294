//! Mistakes in machine code: changes one instruction of a program's text as MINIX's fault injector did.
//!
//! The text is decoded from its start on. An instruction and a kind are drawn until one fits the other; the changed instruction has to
//! be as long as the old one, so that its neighbours stay what they are.

use super::trial::{Mutation, Patch};
use anyhow::{Result, bail};
use fastrand::Rng;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Most bytes that one kernel call changes.
const MAX_BYTES: usize = 8;
/// Instructions are drawn so often for one mutation at most.
const DRAWS: usize = 10_000;

/// The text of a program, decoded.
pub struct Text {
    start: u64,
    bytes: Vec<u8>,
    instructions: Vec<Instruction>,
}

impl Text {
    /// Decodes `bytes`, which lie at the address `start`. Padding between functions is left out.
    pub fn new(start: u64, bytes: Vec<u8>) -> Self {
        let decoder = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE);
        let is_padding = |instruction: &Instruction| {
            matches!(instruction.mnemonic(), Mnemonic::Int3 | Mnemonic::Nop | Mnemonic::INVALID)
        };
        let instructions = decoder.into_iter().filter(|instruction| !is_padding(instruction)).collect();
        Self { start, bytes, instructions }
    }

    /// A mistake of the given kind in an instruction whose address `wanted` accepts.
    ///
    /// # Errors
    /// When no instruction fits.
    pub fn mutate(&self, kind: Mutation, random: &mut Rng, wanted: impl Fn(u64) -> bool) -> Result<Patch> {
        let wanted: Vec<&Instruction> =
            self.instructions.iter().filter(|instruction| wanted(instruction.ip())).collect();
        for _ in 0..DRAWS {
            let Some(instruction) = random.choice(&wanted).copied() else { break };
            let old = self.bytes_of(instruction);
            if let Some(new) = change(kind, instruction, old, random)
                && let Some(patch) = self.patch(kind, instruction, old, &new)
            {
                return Ok(patch);
            }
        }
        bail!("no instruction takes the mutation '{}'", kind.name())
    }

    /// The mistake `kind` in the instruction at `address`.
    ///
    /// # Errors
    /// When there is no such instruction, or it does not fit.
    pub fn mutate_at(&self, address: u64, kind: Mutation, random: &mut Rng) -> Result<Patch> {
        self.mutate(kind, random, |other| other == address)
    }

    /// The addresses of all instructions, for tests and for coverage.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.instructions.iter().map(Instruction::ip)
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes from `address` on, as many as there are.
    pub fn at(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        offset.and_then(|offset| self.bytes.get(offset..)).unwrap_or_default()
    }

    fn bytes_of(&self, instruction: &Instruction) -> &[u8] {
        &self.at(instruction.ip())[..instruction.len()]
    }

    /// The bytes that differ, from the first to the last.
    fn patch(&self, kind: Mutation, instruction: &Instruction, old: &[u8], new: &[u8]) -> Option<Patch> {
        let differs = |at: &usize| old[*at] != new[*at];
        let first = (0..new.len()).find(differs)?;
        let last = (0..new.len()).rfind(differs)?;
        let range = first..=last;
        if range.clone().count() > MAX_BYTES {
            return None;
        }
        let changed = Decoder::with_ip(64, new, instruction.ip(), DecoderOptions::NONE).decode();
        Some(Patch {
            kind,
            address: instruction.ip() + first as u64,
            bytes: new[range.clone()].to_vec(),
            clean: old[range].to_vec(),
            words: format!("{instruction} -> {changed}"),
        })
    }
}

/// `old` with a mistake; None when the instruction cannot have one of this kind.
fn change(kind: Mutation, instruction: &Instruction, old: &[u8], random: &mut Rng) -> Option<Vec<u8>> {
    match kind {
        Mutation::Source => other_register(instruction, random, |access| matches!(access, OpAccess::Read)),
        Mutation::Destination => {
            other_register(instruction, random, |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite))
        }
        Mutation::Pointer => garble_pointer(instruction, random),
        Mutation::Branch => invert(instruction),
        Mutation::Dropped => Some(drop_it(old)),
        Mutation::Constant => change_constant(instruction, old, random),
        Mutation::StuckLoop => (old.len() >= 2).then(|| {
            // The rest stays; nobody gets there.
            let mut new = old.to_vec();
            new[..2].copy_from_slice(&[0xeb, 0xfe]);
            new
        }),
    }
}

/// The bytes of `changed`, if they are as many as it had.
fn encode(changed: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    let length = encoder.encode(changed, changed.ip()).ok()?;
    (length == changed.len()).then(|| encoder.take_buffer())
}

fn other_register(instruction: &Instruction, random: &mut Rng, wanted: impl Fn(OpAccess) -> bool) -> Option<Vec<u8>> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let fits = |operand: &u32| {
        instruction.op_kind(*operand) == OpKind::Register
            && instruction.op_register(*operand).is_gpr()
            && wanted(info.op_access(*operand))
    };
    let operands: Vec<u32> = (0..instruction.op_count()).filter(fits).collect();
    let operand = *random.choice(&operands)?;
    let mut changed = *instruction;
    changed.set_op_register(operand, another(instruction.op_register(operand), random)?);
    encode(&changed)
}

/// Another general register of the same size.
fn another(register: Register, random: &mut Rng) -> Option<Register> {
    let first = match register.size() {
        8 => Register::RAX,
        4 => Register::EAX,
        2 => Register::AX,
        _ => Register::AL,
    };
    let number = random.u32(0..16);
    let other = if first == Register::AL {
        // In the order of the enumeration AH to BH stand between BL and SPL.
        Register::values().filter(|register| register.is_gpr8()).nth(number as usize)?
    } else {
        first + number
    };
    (other != register).then_some(other)
}

fn garble_pointer(instruction: &Instruction, random: &mut Rng) -> Option<Vec<u8>> {
    if !(0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory) {
        return None;
    }
    let mut changed = *instruction;
    match random.u32(0..3) {
        0 if instruction.memory_base().is_gpr64() => {
            changed.set_memory_base(another(instruction.memory_base(), random)?);
        }
        1 if instruction.memory_index().is_gpr64() => {
            changed.set_memory_index(another(instruction.memory_index(), random)?);
        }
        _ => {
            // Eight bits are all that a short displacement has.
            let bit = random.u32(0..if instruction.memory_displ_size() > 1 { 31 } else { 7 });
            changed.set_memory_displacement64(instruction.memory_displacement64() ^ 1 << bit);
        }
    }
    encode(&changed)
}

fn invert(instruction: &Instruction) -> Option<Vec<u8>> {
    let mut changed = *instruction;
    changed.negate_condition_code();
    (changed.code() != instruction.code() && is_branch(changed.code())).then(|| encode(&changed)).flatten()
}

fn is_branch(code: Code) -> bool {
    code.is_jcc_short_or_near()
}

/// Bytes that do nothing, as many as `old`: single ones, or a jump over the rest of it.
fn drop_it(old: &[u8]) -> Vec<u8> {
    if old.len() <= MAX_BYTES {
        return vec![0x90; old.len()];
    }
    let mut bytes = old.to_vec();
    bytes[..2].copy_from_slice(&[0xeb, (old.len() - 2) as u8]);
    bytes
}

/// Flips one bit of an immediate operand.
fn change_constant(instruction: &Instruction, old: &[u8], random: &mut Rng) -> Option<Vec<u8>> {
    let mut decoder = Decoder::with_ip(64, old, instruction.ip(), DecoderOptions::NONE);
    let again = decoder.decode();
    let offsets = decoder.get_constant_offsets(&again);
    if !offsets.has_immediate() {
        return None;
    }
    let mut new = old.to_vec();
    // Small constants are the most; a bit among the lowest makes another plausible one.
    let byte = if random.bool() { 0 } else { random.usize(0..offsets.immediate_size()) };
    new[offsets.immediate_offset() + byte] ^= 1 << random.u32(0..8);
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutated(code: &[u8], kind: Mutation) -> (Instruction, Vec<u8>) {
        let text = Text::new(0x40_1000, code.to_vec());
        let patch = text.mutate(kind, &mut Rng::with_seed(1), |_| true).expect("one fits");
        let mut bytes = code.to_vec();
        let at = (patch.address - 0x40_1000) as usize;
        assert_eq!(bytes[at..at + patch.clean.len()], patch.clean);
        bytes[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
        (Decoder::with_ip(64, &bytes, 0x40_1000, DecoderOptions::NONE).decode(), bytes)
    }

    #[test]
    fn registers_are_exchanged_on_the_side_that_is_meant() {
        // mov rbx, rcx
        let code = [0x48, 0x89, 0xcb];
        let (source, _) = mutated(&code, Mutation::Source);
        assert_eq!((source.mnemonic(), source.op0_register()), (Mnemonic::Mov, Register::RBX));
        assert_ne!(source.op1_register(), Register::RCX);
        let (destination, _) = mutated(&code, Mutation::Destination);
        assert_ne!(destination.op0_register(), Register::RBX);
        assert_eq!(destination.op1_register(), Register::RCX);
    }

    #[test]
    fn a_garbled_pointer_is_another_address_in_the_same_instruction() {
        // mov rax, [rdi + 8]
        let (changed, _) = mutated(&[0x48, 0x8b, 0x47, 0x08], Mutation::Pointer);
        assert_eq!((changed.mnemonic(), changed.op0_register()), (Mnemonic::Mov, Register::RAX));
        assert!(changed.memory_base() != Register::RDI || changed.memory_displacement64() != 8);
    }

    #[test]
    fn a_branch_is_inverted_and_keeps_its_target() {
        // je +0x10
        let (changed, _) = mutated(&[0x74, 0x10], Mutation::Branch);
        assert_eq!((changed.mnemonic(), changed.near_branch_target()), (Mnemonic::Jne, 0x40_1012));
    }

    #[test]
    fn a_dropped_instruction_does_nothing_and_a_stuck_loop_stays() {
        // mov rax, 0x1122334455667788: too long for eight bytes of change
        let long = [0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
        let (dropped, _) = mutated(&long, Mutation::Dropped);
        assert_eq!(dropped.near_branch_target(), 0x40_100a);
        assert_eq!(mutated(&[0x48, 0x89, 0xcb], Mutation::Dropped).1, [0x90; 3]);
        assert_eq!(mutated(&long, Mutation::StuckLoop).0.near_branch_target(), 0x40_1000);
    }

    #[test]
    fn a_constant_changes_by_one_bit() {
        // cmp eax, 0x100
        let (changed, _) = mutated(&[0x3d, 0x00, 0x01, 0x00, 0x00], Mutation::Constant);
        assert_eq!((changed.immediate32() ^ 0x100).count_ones(), 1);
    }

    #[test]
    fn what_fits_nowhere_is_refused() {
        // ret
        let text = Text::new(0, vec![0xc3]);
        assert!(text.mutate(Mutation::Branch, &mut Rng::with_seed(1), |_| true).is_err());
    }

    #[test]
    fn the_same_seed_makes_the_same_mistake() {
        let code: Vec<u8> = [0x48, 0x89, 0xcb, 0x31, 0xc0].repeat(40);
        let text = Text::new(0x40_1000, code);
        let make = || text.mutate(Mutation::Source, &mut Rng::with_seed(9), |_| true).expect("one fits");
        assert_eq!(make(), make());
    }
}
