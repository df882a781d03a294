//! Programs made field by field: each rule of the reader, kept and broken.
#![forbid(unsafe_code)]

use elf::{ElfError, FileRange, Kind, Program, interpreter_path};

const LOAD: u32 = 1;
const INTERP: u32 = 3;
const STACK: u32 = 0x6474_e551;

#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

const TEXT: Header =
    Header { kind: LOAD, flags: 5, offset: 0, address: 0x40_0000, file_bytes: 0x1800, memory_bytes: 0x1800 };
const DATA: Header =
    Header { kind: LOAD, flags: 6, offset: 0x1800, address: 0x40_2800, file_bytes: 0x300, memory_bytes: 0x4000 };
const FILE_BYTES: u64 = 0x2000;

fn elf(kind: u16, entry: u64, headers: &[Header]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(kind.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(entry.to_le_bytes());
    file.extend(64u64.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(0u32.to_le_bytes());
    for half in [64, 56, headers.len() as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for h in headers {
        file.extend(h.kind.to_le_bytes());
        file.extend(h.flags.to_le_bytes());
        for word in [h.offset, h.address, h.address, h.file_bytes, h.memory_bytes, 0x1000] {
            file.extend(word.to_le_bytes());
        }
    }
    file
}

fn parse(headers: &[Header]) -> Result<Program, ElfError> {
    Program::parse(&elf(2, 0x40_0100, headers), FILE_BYTES)
}

#[test]
fn segments_are_read_as_they_are_written() {
    let program = parse(&[TEXT, DATA]).expect("a good program");
    assert_eq!(program.kind, Kind::Fixed);
    assert_eq!(program.entry, 0x40_0100);
    assert_eq!(program.headers, 0x40_0040);
    assert_eq!(program.header_count, 2);
    assert_eq!((program.start(), program.end()), (0x40_0000, 0x40_7000));
    let data = program.segments()[1];
    assert!(data.write && !data.execute);
    assert_eq!((data.start(), data.file_end(), data.end()), (0x40_2000, 0x40_2b00, 0x40_6800));
    assert!(!program.stack_execute);
}

#[test]
fn stack_rights_and_interpreter_are_found() {
    let interpreter = Header { kind: INTERP, offset: 0x100, file_bytes: 28, ..TEXT };
    let stack = Header { kind: STACK, flags: 7, ..TEXT };
    let program = parse(&[interpreter, TEXT, DATA, stack]).expect("a good program");
    assert_eq!(program.interpreter, Some(FileRange { offset: 0x100, bytes: 28 }));
    assert!(program.stack_execute);
}

#[test]
fn empty_segments_are_left_out() {
    let empty = Header { file_bytes: 0, memory_bytes: 0, ..TEXT };
    assert_eq!(parse(&[empty, TEXT]).expect("a good program").segments().len(), 1);
    assert_eq!(parse(&[empty]), Err(ElfError::BadSegmentCount));
}

#[test]
fn segments_outside_file_or_memory_are_refused() {
    let past_file = Header { file_bytes: FILE_BYTES + 1, memory_bytes: FILE_BYTES + 1, ..TEXT };
    let wraps = Header { offset: u64::MAX - 0xfff, file_bytes: 0x1800, ..TEXT };
    let high = Header { address: 0x7fff_ffff_e000, ..TEXT };
    let address_wraps = Header { address: u64::MAX - 0xfff, ..TEXT };
    let larger_in_file = Header { memory_bytes: 0x17ff, ..TEXT };
    for bad in [past_file, wraps, high, address_wraps, larger_in_file] {
        assert_eq!(parse(&[bad]), Err(ElfError::BadRange));
    }
}

#[test]
fn shared_pages_wrong_order_and_wrong_alignment_are_refused() {
    assert_eq!(parse(&[DATA, TEXT]), Err(ElfError::Overlap));
    let same_page = Header { address: 0x40_1800, ..DATA };
    assert_eq!(parse(&[TEXT, same_page]), Err(ElfError::Overlap));
    assert_eq!(parse(&[Header { address: 0x40_0001, ..TEXT }]), Err(ElfError::BadAlignment));
}

#[test]
fn entry_outside_the_segments_is_refused() {
    assert_eq!(Program::parse(&elf(2, 0x40_1800, &[TEXT]), FILE_BYTES), Err(ElfError::BadEntry));
}

#[test]
fn foreign_files_are_refused() {
    let good = elf(2, 0x40_0100, &[TEXT]);
    let with = |at: usize, value: u8| {
        let mut file = good.clone();
        file[at] = value;
        Program::parse(&file, FILE_BYTES)
    };
    assert_eq!(with(0, 0), Err(ElfError::NotElf));
    assert_eq!(with(4, 1), Err(ElfError::WrongMachine));
    assert_eq!(with(18, 3), Err(ElfError::WrongMachine));
    assert_eq!(with(16, 1), Err(ElfError::WrongType));
    assert_eq!(with(54, 55), Err(ElfError::BadHeaders));
    assert_eq!(with(56, 200), Err(ElfError::BadHeaders));
    assert_eq!(Program::parse(b"#!/bin/sh\n", 10), Err(ElfError::NotElf));
    assert_eq!(Program::parse(&[], 0), Err(ElfError::NotElf));
}

#[test]
fn too_many_segments_are_refused() {
    let segment = |n: u64| Header { address: 0x40_0000 + n * 0x2000, ..TEXT };
    let headers: Vec<Header> = (0..17).map(segment).collect();
    assert_eq!(parse(&headers), Err(ElfError::BadSegmentCount));
    assert!(parse(&headers[..16]).is_ok());
}

#[test]
fn interpreter_paths_must_be_terminated_and_not_empty() {
    assert_eq!(interpreter_path(b"/lib64/ld.so\0"), Ok(&b"/lib64/ld.so"[..]));
    assert_eq!(interpreter_path(b"\0"), Err(ElfError::BadInterpreter));
    assert_eq!(interpreter_path(b"/lib64/ld.so"), Err(ElfError::BadInterpreter));
    for bytes in [0, 1, 4097] {
        let bad = Header { kind: INTERP, file_bytes: bytes, ..TEXT };
        assert_eq!(parse(&[bad, TEXT]), Err(ElfError::BadInterpreter));
    }
}
