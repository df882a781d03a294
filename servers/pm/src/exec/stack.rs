//! The stack a new program starts with, as the x86-64 ABI and Linux lay it out:
//!
//! ```text
//! rsp -> argc | argv pointers, 0 | envp pointers, 0 | auxiliary vector … AT_NULL | padding
//!        16 random bytes | "x86_64" | arguments | environment | path of the program | 8 zero bytes <- end
//! ```
//! rsp is a multiple of 16. Everything is made in one block, written with one copy.

use crate::state::arguments::Arguments;
use crate::state::time::CLOCK_TICKS;
use alloc::vec::Vec;
use core::ops::Range;

/// The auxiliary vector's types (asm/auxvec.h, elf.h).
mod at {
    pub const NULL: u64 = 0;
    pub const PHDR: u64 = 3;
    pub const PHENT: u64 = 4;
    pub const PHNUM: u64 = 5;
    pub const PAGESZ: u64 = 6;
    pub const BASE: u64 = 7;
    pub const FLAGS: u64 = 8;
    pub const ENTRY: u64 = 9;
    pub const UID: u64 = 11;
    pub const EUID: u64 = 12;
    pub const GID: u64 = 13;
    pub const EGID: u64 = 14;
    pub const PLATFORM: u64 = 15;
    pub const HWCAP: u64 = 16;
    pub const CLKTCK: u64 = 17;
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const EXECFN: u64 = 31;
    pub const SYSINFO_EHDR: u64 = 33;
    pub const MINSIGSTKSZ: u64 = 51;
}

/// CPUID leaf 1 edx of every x86-64 processor: FPU, TSC, MSR, CX8, CMOV, MMX, FXSR, SSE, SSE2.
const BASE_FEATURES: u64 = 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 15 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 26;
/// Smallest stack for a handler: frame, FPU state, red zone, alignment.
const HANDLER_STACK_BYTES: u64 = 2048;

const PLATFORM: &[u8] = b"x86_64\0";
const END_BYTES: usize = 8;

/// What the auxiliary vector tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Address of the program headers.
    pub phdr: u64,
    /// Their number.
    pub phdr_count: u64,
    /// Where the interpreter is loaded.
    pub interpreter_base: u64,
    /// Entry of the program.
    pub entry: u64,
    /// Where the vDSO is.
    pub vdso: u64,
    /// Real and effective user, real and effective group.
    pub ids: [u64; 4],
    /// Set-user-id or set-group-id: the C library must not trust its environment.
    pub secure: bool,
    /// For stack protectors.
    pub random: [u8; 16],
}

/// A finished stack.
pub struct Stack {
    /// Its first address, the program's rsp.
    pub pointer: u64,
    /// Content from there to the end.
    pub bytes: Vec<u8>,
    /// Where the arguments' text is.
    pub arguments: Range<u64>,
    /// Where the environment's text is.
    pub environment: Range<u64>,
    /// Where the auxiliary vector is.
    pub auxiliary: Range<u64>,
}

/// Builds the stack that ends at `end`. `None` when it would be longer than `limit_bytes`, or pm has no memory for it.
pub fn build(arguments: &Arguments, path: &[u8], facts: &Facts, end: u64, limit_bytes: u64) -> Option<Stack> {
    let path_at = end - (END_BYTES + path.len() + 1) as u64;
    let strings_at = path_at - arguments.strings().len() as u64;
    let platform_at = strings_at - PLATFORM.len() as u64;
    let random_at = (platform_at - facts.random.len() as u64) & !15;

    let vector = auxiliary_vector(facts, random_at, platform_at, path_at);
    let pointers = arguments.argument_count() + arguments.environment().count() + 2;
    let words = 1 + pointers + 2 * vector.len();
    let pointer = (random_at - 8 * words as u64) & !15;
    if end - pointer > limit_bytes {
        return None;
    }

    let block = sys::fallible::filled(0, (end - pointer) as usize).ok()?;
    let mut words_out = Words { bytes: block, next: 0 };
    words_out.push(arguments.argument_count() as u64);
    let after = words_out.push_pointers(strings_at, arguments.arguments());
    words_out.push_pointers(after, arguments.environment());
    let vector_at = pointer + words_out.next as u64;
    for (kind, value) in vector {
        words_out.push(kind);
        words_out.push(value);
    }

    let mut bytes = words_out.bytes;
    let mut put = |address: u64, text: &[u8]| {
        let at = (address - pointer) as usize;
        bytes[at..at + text.len()].copy_from_slice(text);
    };
    put(random_at, &facts.random);
    put(platform_at, PLATFORM);
    put(strings_at, arguments.strings());
    put(path_at, path);
    let environment_at = strings_at + arguments.environment_start() as u64;
    let auxiliary = vector_at..vector_at + size_of_val(&vector) as u64;
    Some(Stack {
        pointer,
        bytes,
        arguments: strings_at..environment_at,
        environment: environment_at..path_at,
        auxiliary,
    })
}

fn auxiliary_vector(facts: &Facts, random: u64, platform: u64, path: u64) -> [(u64, u64); 20] {
    [
        (at::SYSINFO_EHDR, facts.vdso),
        (at::HWCAP, BASE_FEATURES),
        (at::PAGESZ, abi::layout::PAGE_BYTES),
        (at::CLKTCK, CLOCK_TICKS),
        (at::PHDR, facts.phdr),
        (at::PHENT, 56),
        (at::PHNUM, facts.phdr_count),
        (at::BASE, facts.interpreter_base),
        (at::FLAGS, 0),
        (at::ENTRY, facts.entry),
        (at::UID, facts.ids[0]),
        (at::EUID, facts.ids[1]),
        (at::GID, facts.ids[2]),
        (at::EGID, facts.ids[3]),
        (at::SECURE, facts.secure as u64),
        (at::RANDOM, random),
        (at::MINSIGSTKSZ, HANDLER_STACK_BYTES),
        (at::EXECFN, path),
        (at::PLATFORM, platform),
        (at::NULL, 0),
    ]
}

struct Words {
    bytes: Vec<u8>,
    next: usize,
}

impl Words {
    fn push(&mut self, word: u64) {
        self.bytes[self.next..self.next + 8].copy_from_slice(&word.to_le_bytes());
        self.next += 8;
    }

    /// Pointers to consecutive strings from `address` on, and a null. Returns the address after the last string.
    fn push_pointers<'a>(&mut self, mut address: u64, strings: impl Iterator<Item = &'a [u8]>) -> u64 {
        for string in strings {
            self.push(address);
            address += string.len() as u64 + 1;
        }
        self.push(0);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::arguments::tests::arguments;

    const END: u64 = 0x7fff_ffff_f000;

    fn word(stack: &Stack, n: usize) -> u64 {
        u64::from_le_bytes(stack.bytes[8 * n..8 * n + 8].try_into().unwrap())
    }

    fn text(stack: &Stack, address: u64) -> &[u8] {
        let from = &stack.bytes[(address - stack.pointer) as usize..];
        &from[..from.iter().position(|&b| b == 0).unwrap()]
    }

    fn sample() -> Stack {
        let facts =
            Facts { entry: 0x401000, vdso: END + 0x1000, random: [9; 16], ids: [1, 2, 3, 4], ..Facts::default() };
        build(&arguments(&["ls", "", "-l"], &["A=1", "B="]), b"/bin/ls", &facts, END, 1 << 20).unwrap()
    }

    #[test]
    fn argc_argv_and_envp_are_where_programs_look() {
        let stack = sample();
        assert_eq!(stack.pointer % 16, 0);
        assert_eq!(stack.pointer + stack.bytes.len() as u64, END);
        assert_eq!(word(&stack, 0), 3);
        assert_eq!((text(&stack, word(&stack, 1)), text(&stack, word(&stack, 2))), (&b"ls"[..], &b""[..]));
        assert_eq!(text(&stack, word(&stack, 3)), b"-l");
        assert_eq!(word(&stack, 4), 0);
        assert_eq!((text(&stack, word(&stack, 5)), text(&stack, word(&stack, 6))), (&b"A=1"[..], &b"B="[..]));
        assert_eq!(word(&stack, 7), 0);
        assert_eq!(word(&stack, 5), stack.environment.start);
        assert_eq!(word(&stack, 1), stack.arguments.start);
    }

    #[test]
    fn the_auxiliary_vector_ends_with_null_and_points_into_the_stack() {
        let stack = sample();
        let vector: std::collections::BTreeMap<u64, u64> =
            (8..).step_by(2).map(|n| (word(&stack, n), word(&stack, n + 1))).take_while(|e| e.0 != at::NULL).collect();
        assert_eq!((vector[&at::ENTRY], vector[&at::SYSINFO_EHDR]), (0x401000, END + 0x1000));
        assert_eq!((vector[&at::UID], vector[&at::EGID]), (1, 4));
        assert_eq!(stack.auxiliary.start, stack.pointer + 8 * 8);
        assert_eq!(word(&stack, (stack.auxiliary.end - stack.pointer) as usize / 8 - 2), at::NULL);
        assert_eq!(text(&stack, vector[&at::EXECFN]), b"/bin/ls");
        assert_eq!(text(&stack, vector[&at::PLATFORM]), b"x86_64");
        let random = (vector[&at::RANDOM] - stack.pointer) as usize;
        assert_eq!(stack.bytes[random..random + 16], [9; 16]);
    }

    #[test]
    fn a_stack_over_the_limit_is_refused() {
        let big = "x".repeat(100_000);
        assert!(build(&arguments(&[&big], &[]), b"/x", &Facts::default(), END, 100_000).is_none());
    }
}
