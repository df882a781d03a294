//! Real programs, bent: whatever is done to them, the reader returns, and what it accepts keeps its promises.
#![forbid(unsafe_code)]

use elf::{HEAD_BYTES, Kind, Program};
use std::fs;

const PAGE: u64 = 4096;
const USER_END: u64 = 0x7fff_ffff_f000;

/// Marsaglia's xorshift64*, so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The program this test runs as is a real one everywhere; others are used where they exist.
fn real_programs() -> Vec<Vec<u8>> {
    let own = std::env::current_exe().expect("a test has a file");
    let mut programs = vec![fs::read(own).expect("can be read")];
    programs.extend(
        ["/bin/busybox", "/bin/sh", "/lib64/ld-linux-x86-64.so.2"].iter().filter_map(|path| fs::read(path).ok()),
    );
    programs
}

fn assert_promises(program: &Program, file_bytes: u64) {
    let mut last_end = 0;
    assert!(!program.segments().is_empty());
    for segment in program.segments() {
        assert!(segment.start() >= last_end);
        assert!(segment.memory_bytes > 0 && segment.file.bytes <= segment.memory_bytes);
        assert!(segment.file.offset + segment.file.bytes <= file_bytes);
        assert_eq!(segment.address % PAGE, segment.file.offset % PAGE);
        last_end = segment.page_end();
    }
    assert!(program.end() <= USER_END);
    assert!(program.entry >= program.start() && program.entry < program.end());
}

#[test]
fn real_programs_are_accepted() {
    for file in real_programs() {
        let program = Program::parse(&file[..HEAD_BYTES], file.len() as u64).expect("a real program");
        assert_promises(&program, file.len() as u64);
        assert!(program.headers != 0 || program.kind == Kind::Relocatable);
    }
}

#[test]
fn cut_programs_are_refused_or_keep_the_promises() {
    for file in real_programs() {
        for bytes in (0..HEAD_BYTES).chain([file.len() / 2, file.len() - 1]) {
            let head = &file[..bytes.min(HEAD_BYTES)];
            if let Ok(program) = Program::parse(head, bytes as u64) {
                assert_promises(&program, bytes as u64);
            }
        }
    }
}

#[test]
fn bent_programs_are_refused_or_keep_the_promises() {
    let mut random = Random(0x5eed);
    for file in real_programs() {
        for _ in 0..20_000 {
            let mut head = file[..1024].to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(head.len());
                head[at] = match random.below(4) {
                    0 => 0xff,
                    1 => 0,
                    2 => head[at] ^ 1 << random.below(8),
                    _ => random.next() as u8,
                };
            }
            if let Ok(program) = Program::parse(&head, file.len() as u64) {
                assert_promises(&program, file.len() as u64);
            }
        }
    }
}

#[test]
fn noise_behind_the_magic_is_refused_or_keeps_the_promises() {
    let mut random = Random(0xface);
    for _ in 0..20_000 {
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.extend((0..random.below(600)).map(|_| random.next() as u8));
        if let Ok(program) = Program::parse(&head, head.len() as u64) {
            assert_promises(&program, head.len() as u64);
        }
    }
}
