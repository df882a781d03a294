//! A whole program: ELF header, program headers, and the checks that concern several segments.

use abi::layout::{SERVICE_HEAP, SERVICE_IMAGE};

use crate::{
    ElfError,
    fields::Fields,
    segment::{self, FileRange, HEADER_BYTES, Segment},
};

/// Most loadable segments of a program. Linkers make four or five.
pub const MAX_SEGMENTS: usize = 16;

/// Longest path of an interpreter, its terminating zero included.
const MAX_INTERPRETER_BYTES: u64 = 4096;
const ELF_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"\x7fELF";
/// ELF64, little endian, version 1.
const CLASS: [u8; 3] = [2, 1, 1];
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_SHARED: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;
const PF_EXECUTE: u32 = 1;

/// Where a program may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At the addresses it states.
    Fixed,
    /// Anywhere: its addresses are relative to a page-aligned base.
    Relocatable,
}

/// What must be known of a program to map and start it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Fixed or position independent.
    pub kind: Kind,
    /// Entry point.
    pub entry: u64,
    /// Address of the program headers in memory, 0 when no segment holds them.
    pub headers: u64,
    /// Number of program headers.
    pub header_count: u16,
    /// The path of the dynamic linker, if there is one: see [`interpreter_path`].
    pub interpreter: Option<FileRange>,
    /// The stack must be executable (`PT_GNU_STACK` says so).
    pub stack_execute: bool,
    loaded: [Segment; MAX_SEGMENTS],
    count: usize,
}

/// The fields of the ELF header that matter.
struct ElfHeader {
    kind: Kind,
    entry: u64,
    offset: u64,
    count: u16,
}

impl Program {
    /// Reads a program of `file_bytes` bytes from its start, `head`: [`crate::HEAD_BYTES`] of it, or all if it is shorter.
    pub fn parse(head: &[u8], file_bytes: u64) -> Result<Program, ElfError> {
        let head = Fields(head);
        let header = ElfHeader::parse(head)?;
        let mut program = Program::empty(&header);
        for index in 0..header.count {
            program.add(header.entry_at(head, index)?, file_bytes)?;
        }
        program.headers = program.address_of(header.offset);
        program.check_entry()?;
        Ok(program)
    }

    /// Whether it can be a service: static, at the addresses where services are linked, and nothing both writable and executable.
    pub fn is_service(&self) -> bool {
        let is_static = self.kind == Kind::Fixed && self.interpreter.is_none();
        let fits = self.start() >= SERVICE_IMAGE && self.end() <= SERVICE_HEAP;
        is_static && fits && self.segments().iter().all(|segment| !(segment.write && segment.execute))
    }

    /// The segments, ascending, none empty, each on pages of its own.
    pub fn segments(&self) -> &[Segment] {
        &self.loaded[..self.count]
    }

    /// First page that is loaded.
    pub fn start(&self) -> u64 {
        self.segments().first().map_or(0, Segment::start)
    }

    /// Address after the last page that is loaded.
    pub fn end(&self) -> u64 {
        self.segments().last().map_or(0, Segment::page_end)
    }

    fn empty(header: &ElfHeader) -> Program {
        Program {
            kind: header.kind,
            entry: header.entry,
            headers: 0,
            header_count: header.count,
            interpreter: None,
            stack_execute: false,
            loaded: [Segment::default(); MAX_SEGMENTS],
            count: 0,
        }
    }

    fn add(&mut self, header: Fields, file_bytes: u64) -> Result<(), ElfError> {
        match header.u32(0).ok_or(ElfError::BadHeaders)? {
            PT_LOAD => self.add_segment(Segment::parse(header, file_bytes)?),
            PT_INTERP => self.set_interpreter(header, file_bytes),
            PT_GNU_STACK => {
                self.stack_execute = header.u32(4).is_some_and(|flags| flags & PF_EXECUTE != 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_segment(&mut self, segment: Segment) -> Result<(), ElfError> {
        if segment.memory_bytes == 0 {
            return Ok(());
        }
        if self.segments().last().is_some_and(|last| segment.start() < last.page_end()) {
            return Err(ElfError::Overlap);
        }
        *self.loaded.get_mut(self.count).ok_or(ElfError::BadSegmentCount)? = segment;
        self.count += 1;
        Ok(())
    }

    fn set_interpreter(&mut self, header: Fields, file_bytes: u64) -> Result<(), ElfError> {
        let range = segment::file_range(header).ok_or(ElfError::BadHeaders)?;
        let end = range.offset.checked_add(range.bytes).ok_or(ElfError::BadInterpreter)?;
        if end > file_bytes || range.bytes < 2 || range.bytes > MAX_INTERPRETER_BYTES || self.interpreter.is_some() {
            return Err(ElfError::BadInterpreter);
        }
        self.interpreter = Some(range);
        Ok(())
    }

    /// Where in memory the byte at this file offset is, 0 when it is nowhere.
    fn address_of(&self, offset: u64) -> u64 {
        let holds = |s: &&Segment| offset >= s.file.offset && offset - s.file.offset < s.file.bytes;
        self.segments().iter().find(holds).map_or(0, |s| s.address + (offset - s.file.offset))
    }

    fn check_entry(&self) -> Result<(), ElfError> {
        if self.count == 0 {
            return Err(ElfError::BadSegmentCount);
        }
        let inside = |s: &Segment| self.entry >= s.address && self.entry < s.end();
        if self.segments().iter().any(inside) { Ok(()) } else { Err(ElfError::BadEntry) }
    }
}

impl ElfHeader {
    fn parse(head: Fields) -> Result<ElfHeader, ElfError> {
        let header = head.part(0, ELF_HEADER_BYTES).ok_or(ElfError::NotElf)?;
        if header.0[..4] != MAGIC {
            return Err(ElfError::NotElf);
        }
        if header.0[4..7] != CLASS || header.u16(18) != Some(MACHINE_X86_64) {
            return Err(ElfError::WrongMachine);
        }
        let kind = match header.u16(16) {
            Some(TYPE_EXECUTABLE) => Kind::Fixed,
            Some(TYPE_SHARED) => Kind::Relocatable,
            _ => return Err(ElfError::WrongType),
        };
        if header.u16(54) != Some(HEADER_BYTES as u16) {
            return Err(ElfError::BadHeaders);
        }
        Self::fields(header, kind).ok_or(ElfError::NotElf)
    }

    fn fields(header: Fields, kind: Kind) -> Option<ElfHeader> {
        Some(ElfHeader { kind, entry: header.u64(24)?, offset: header.u64(32)?, count: header.u16(56)? })
    }

    /// The program header `index`.
    fn entry_at<'a>(&self, head: Fields<'a>, index: u16) -> Result<Fields<'a>, ElfError> {
        let offset = usize::try_from(self.offset).map_err(|_| ElfError::BadHeaders)?;
        let at = offset.checked_add(usize::from(index) * HEADER_BYTES).ok_or(ElfError::BadHeaders)?;
        head.part(at, HEADER_BYTES).ok_or(ElfError::BadHeaders)
    }
}

/// The path in the bytes of [`Program::interpreter`], without its terminating zero.
pub fn interpreter_path(bytes: &[u8]) -> Result<&[u8], ElfError> {
    match bytes.iter().position(|&byte| byte == 0) {
        None | Some(0) => Err(ElfError::BadInterpreter),
        Some(length) => Ok(&bytes[..length]),
    }
}
