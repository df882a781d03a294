//! A checked reader of ELF64 executables for x86-64: what vm maps for a program and vfs looks at before.
//!
//! Everything in the file is hostile. [`Program::parse`] accepts only what can be mapped as it says: a returned [`Program`] has
//! segments in ascending order, page-aligned against the file, without overlap, inside the file and inside user
//! addresses. Nothing here panics or allocates.
//!
//! Neighbours: vm (`exec`, `spawn`) and vfs (interpreters). Facts from the System V ABI, AMD64 supplement, and elf(5).
#![no_std]
#![forbid(unsafe_code)]

mod fields;
mod program;
mod segment;

pub use program::{Kind, MAX_SEGMENTS, Program, interpreter_path};
pub use segment::{FileRange, Segment};

/// Bytes of a file's start that hold everything [`Program::parse`] reads, in every binary that linkers make.
pub const HEAD_BYTES: usize = 4096;

/// Why a file is no program. Programs see all of them as `ENOEXEC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// No ELF magic, or the file ends within the header.
    NotElf,
    /// Not ELF64, little endian, version 1, x86-64.
    WrongMachine,
    /// Neither an executable nor a position-independent one.
    WrongType,
    /// The program headers have a wrong size, or are not within the head given.
    BadHeaders,
    /// Nothing to load, or more segments than [`MAX_SEGMENTS`].
    BadSegmentCount,
    /// A segment lies outside the file or outside user addresses, or is larger in the file than in memory.
    BadRange,
    /// A segment's address and file offset differ modulo the page.
    BadAlignment,
    /// Segments are not in ascending order, or share a page.
    Overlap,
    /// The interpreter's path is empty, too long, or not terminated.
    BadInterpreter,
    /// The entry point is in no segment.
    BadEntry,
}
