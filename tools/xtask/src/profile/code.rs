//! From instructions to functions. What lies in a page of user memory is found by its content among the programs' files; so it does not
//! matter where a program or library was mapped.

use addr2line::Context as Lines;
use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use anyhow::{Context, Result};
use object::elf::PF_X;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionIndex, SectionKind, SegmentFlags};
use profile::recording::Page;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE_BYTES: usize = abi::layout::PAGE_BYTES as usize;
/// A piece of a page says what it is if it has this many bytes.
const ENOUGH_BYTES: usize = 64;
/// Frames that the compiler has put into one another, at most.
const INLINED: usize = 12;

/// A function of a file.
struct Function {
    start: u64,
    /// Where it ends; `None`: the file does not say.
    end: Option<u64>,
    name: String,
}

/// Functions by address, and who was inlined where.
struct Symbols {
    functions: Vec<Function>,
    lines: Option<Lines<EndianSlice<'static, RunTimeEndian>>>,
}

/// A program or library.
struct Program {
    path: PathBuf,
    name: String,
    symbols: RefCell<Option<Symbols>>,
}

/// A page of a file: which, and the address it is linked at.
type Place = (usize, u64);

/// A page that is not a program's from end to end: its bytes, the first of them in the page, and the place.
type Piece = (Vec<u8>, usize, Place);

/// All programs. The first is the kernel.
pub struct Programs {
    programs: Vec<Program>,
    whole: HashMap<Vec<u8>, Place>,
    pieces: Vec<Piece>,
}

/// Where a page of the recording comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The program's number.
    pub program: usize,
    /// What to add to an address in the page to get the linked one.
    pub distance: u64,
}

impl Programs {
    /// The kernel, and what may run in user mode; what is no ELF file is left out.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(kernel: &Path, files: &[PathBuf]) -> Result<Self> {
        let mut all = Programs { programs: Vec::new(), whole: HashMap::new(), pieces: Vec::new() };
        all.add(kernel)?;
        for file in files {
            all.add(file)?;
        }
        Ok(all)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let data = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !data.starts_with(b"\x7fELF") {
            return Ok(());
        }
        let Ok(file) = object::File::parse(&*data) else { return Ok(()) };
        let number = self.programs.len();
        for segment in file.segments() {
            if matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0) {
                self.add_pages(number, segment.address(), segment.data().unwrap_or_default());
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.programs.push(Program { path: path.to_path_buf(), name, symbols: RefCell::new(None) });
        Ok(())
    }

    fn add_pages(&mut self, program: usize, address: u64, mut data: &[u8]) {
        let mut at = address;
        while !data.is_empty() {
            let offset = (at % PAGE_BYTES as u64) as usize;
            let (here, rest) = data.split_at(data.len().min(PAGE_BYTES - offset));
            let place = (program, at - offset as u64);
            if here.len() == PAGE_BYTES {
                self.whole.entry(here.to_vec()).or_insert(place);
            } else if here.len() >= ENOUGH_BYTES {
                self.pieces.push((here.to_vec(), offset, place));
            }
            at += here.len() as u64;
            data = rest;
        }
    }

    /// Where a page comes from.
    pub fn origin(&self, page: &Page) -> Option<Origin> {
        if page.address >> 63 != 0 {
            return Some(Origin { program: 0, distance: 0 });
        }
        let piece = || self.pieces.iter().find(|(bytes, at, _)| page.bytes[*at..*at + bytes.len()] == **bytes);
        let (program, address) =
            self.whole.get(&page.bytes).copied().or_else(|| piece().map(|(_, _, place)| *place))?;
        Some(Origin { program, distance: address.wrapping_sub(page.address) })
    }

    /// The file name of a program.
    pub fn name(&self, program: usize) -> &str {
        &self.programs[program].name
    }

    /// The function that this address lies in, with what the compiler has put into it there: the outermost first.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn functions(&self, origin: Origin, address: u64) -> Result<Vec<String>> {
        let program = &self.programs[origin.program];
        let mut place = program.symbols.borrow_mut();
        let symbols = match &mut *place {
            Some(symbols) => symbols,
            none => none.insert(Symbols::read(&program.path)?),
        };
        Ok(symbols.at(address.wrapping_add(origin.distance), &program.name))
    }
}

impl Symbols {
    fn read(path: &Path) -> Result<Self> {
        // The lines refer to the file's bytes, which are there until the end.
        let data: &'static [u8] = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?.leak();
        let file = object::File::parse(data)?;
        let text: HashSet<SectionIndex> = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .map(|section| section.index())
            .collect();
        // Labels of assembly have no kind.
        let is_code = |symbol: &object::Symbol| symbol.section_index().is_some_and(|section| text.contains(&section));
        let mut functions: Vec<Function> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(is_code)
            .map(|symbol| Function {
                start: symbol.address(),
                end: Some(symbol.address() + symbol.size()).filter(|_| symbol.size() > 0),
                name: short(symbol.name().unwrap_or_default()),
            })
            .filter(|function| !function.name.is_empty())
            .collect();
        functions.sort_by(|one, other| (one.start, &one.name).cmp(&(other.start, &other.name)));
        functions.dedup_by_key(|function| function.start);
        let section = |id: SectionId| -> Result<_, addr2line::gimli::Error> {
            let bytes = file.section_by_name(id.name()).and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(EndianSlice::new(bytes, RunTimeEndian::Little))
        };
        let has_lines = file.section_by_name(".debug_info").is_some();
        let lines = if has_lines { Dwarf::load(section).and_then(Lines::from_dwarf).ok() } else { None };
        Ok(Symbols { functions, lines })
    }

    fn at(&self, address: u64, program: &str) -> Vec<String> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let outer = after.checked_sub(1).map(|at| &self.functions[at]);
        let outer = outer.filter(|function| function.end.is_none_or(|end| address < end));
        let outer = outer.map_or(format!("[{program}]"), |function| function.name.clone());
        let mut names = Vec::new();
        if let Some(lines) = &self.lines
            && let Ok(mut frames) = lines.find_frames(address).skip_all_loads()
        {
            while let Ok(Some(frame)) = frames.next() {
                if let Some(name) = frame.function.as_ref().and_then(|function| function.raw_name().ok()) {
                    names.push(short(&name));
                }
            }
        }
        // The last one is the function itself, as the symbol has it.
        names.pop();
        names.push(outer);
        names.reverse();
        names.truncate(INLINED);
        names
    }
}

/// The last parts of a function's path, without parameters of types.
fn short(symbol: &str) -> String {
    let full = format!("{:#}", rustc_demangle::demangle(symbol));
    let path = match full.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        Some((own, rest)) => {
            let method = rest.rsplit_once(">::").map_or("", |(_, method)| method);
            format!("{own}::{method}")
        }
        None => full,
    };
    let mut plain = String::new();
    let mut depth = 0_u32;
    for letter in path.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty()).collect();
    let kept = parts[parts.len().saturating_sub(2)..].join("::");
    // `;` separates the frames of a folded stack.
    kept.replace([';', ' '], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_last_two_parts_of_their_path() {
        assert_eq!(short("_ZN11kernel_core3ipc9fast_path6answer17h0123456789abcdefE"), "fast_path::answer");
        assert_eq!(short("memcpy"), "memcpy");
        assert_eq!(short("<vfs::Vfs<S> as server::Handlers>::call"), "Vfs::call");
        assert_eq!(short("core::ptr::drop_in_place<alloc::vec::Vec<u8>>"), "ptr::drop_in_place");
    }

    #[test]
    fn a_page_is_found_by_its_content_wherever_it_is_mapped() {
        let mut programs = Programs { programs: Vec::new(), whole: HashMap::new(), pieces: Vec::new() };
        let text: Vec<u8> = (0..PAGE_BYTES + 100).map(|at| (at % 251) as u8).collect();
        programs.add_pages(3, 0x1000, &text);
        let page = |address, bytes: &[u8]| {
            let mut content = bytes.to_vec();
            content.resize(PAGE_BYTES, 0);
            Page { address, bytes: content }
        };
        let whole = programs.origin(&page(0x7000, &text[..PAGE_BYTES]));
        assert_eq!(whole, Some(Origin { program: 3, distance: 0x1000_u64.wrapping_sub(0x7000) }));
        let last = programs.origin(&page(0x8000, &text[PAGE_BYTES..]));
        assert_eq!(last, Some(Origin { program: 3, distance: 0x2000_u64.wrapping_sub(0x8000) }));
        assert_eq!(programs.origin(&page(0x8000, &[])), None);
    }
}
