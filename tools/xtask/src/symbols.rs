//! Makes the symbol tables of the boot archive (`abi::symbols`) from programs as they are linked, before their symbols are stripped:
//! names from the ELF symbols, unwind rules from `.debug_frame` or `.eh_frame`. What is loaded does not grow by them.

use abi::symbols::{MAGIC, Rule};
use anyhow::{Context, Result, anyhow};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

type Reader<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// Functions by address.
type Functions = BTreeMap<u64, Function>;

/// The static of `lib/server` with the last messages.
const RING: &str = "server::recent::RING";

#[derive(Default)]
struct Function {
    name: String,
    rows: Vec<(u64, Rule)>,
}

/// The symbol table of the program in the file `path`.
///
/// # Errors
/// When the file cannot be read or is no such program.
pub fn table(path: &Path) -> Result<Vec<u8>> {
    let data = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    of_program(&data).with_context(|| format!("cannot read the symbols of {}", path.display()))
}

fn of_program(data: &[u8]) -> Result<Vec<u8>> {
    let file = object::File::parse(data)?;
    let mut functions = Functions::new();
    let mut recent = 0;
    for symbol in file.symbols() {
        let name = format!("{:#}", rustc_demangle::demangle(symbol.name().unwrap_or_default()));
        match symbol.kind() {
            SymbolKind::Text if symbol.is_definition() => {
                functions.insert(symbol.address(), Function { name, rows: Vec::new() });
            }
            SymbolKind::Data if name == RING => recent = symbol.address(),
            _ => {}
        }
    }
    let section = |name| file.section_by_name(name).and_then(|section| Some((section.address(), section.data().ok()?)));
    if let Some((address, bytes)) = section(".eh_frame") {
        let bases = BaseAddresses::default().set_eh_frame(address);
        add_rules(&EhFrame::new(bytes, LittleEndian), &bases, &mut functions)?;
    }
    if let Some((_, bytes)) = section(".debug_frame") {
        let mut frame = DebugFrame::new(bytes, LittleEndian);
        frame.set_address_size(8);
        add_rules(&frame, &BaseAddresses::default(), &mut functions)?;
    }
    pack(&functions, recent)
}

/// Adds the rules of every function that the section describes.
fn add_rules<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    functions: &mut Functions,
) -> Result<()>
where
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut context = UnwindContext::new();
    let mut entries = section.entries(bases);
    while let Some(entry) = entries.next()? {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))?;
        // What the linker has thrown away is described at address 0.
        let Some(function) = functions.get_mut(&fde.initial_address()) else { continue };
        function.rows.clear();
        let mut table = fde.rows(section, bases, &mut context)?;
        while let Some(row) = table.next_row()? {
            let Some(rule) = rule_of(row) else { break };
            if function.rows.last().is_none_or(|(_, last)| *last != rule) {
                function.rows.push((row.start_address(), rule));
            }
        }
    }
    Ok(())
}

/// The unwind rule of a row, if it has a form that compilers emit.
fn rule_of(row: &gimli::UnwindTableRow<usize>) -> Option<Rule> {
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let from_rbp = register == X86_64::RBP;
    if !from_rbp && register != X86_64::RSP {
        return None;
    }
    let rbp_below = match row.register(X86_64::RBP) {
        RegisterRule::Offset(offset) => u64::try_from(-offset).ok()?,
        _ => 0,
    };
    Some(Rule { from_rbp, cfa_bytes: u64::try_from(offset).ok()?, rbp_below })
}

fn pack(functions: &Functions, recent: u64) -> Result<Vec<u8>> {
    let (mut entries, mut rules, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (&start, function) in functions {
        let name = *known.entry(&function.name).or_insert_with(|| {
            names.extend(function.name.as_bytes());
            names.push(0);
            names.len() - function.name.len() - 1
        });
        for number in [usize::try_from(start)?, rules.len(), name] {
            entries.extend(small(number)?);
        }
        pack_rules(start, &function.rows, &mut rules);
    }
    let mut table = Vec::from(MAGIC);
    table.extend(recent.to_le_bytes());
    table.extend(small(functions.len())?);
    table.extend(small(rules.len())?);
    table.extend(entries);
    table.extend(rules);
    table.extend(names);
    Ok(table)
}

fn small(number: usize) -> Result<[u8; 4]> {
    let number = u32::try_from(number).map_err(|_| anyhow!("the program is larger than 4 GiB"))?;
    Ok(number.to_le_bytes())
}

fn pack_rules(start: u64, rows: &[(u64, Rule)], to: &mut Vec<u8>) {
    let mut last = start;
    for &(at, rule) in rows {
        put(at - last, to);
        put((rule.cfa_bytes / 8) << 1 | u64::from(rule.from_rbp), to);
        put(rule.rbp_below / 8, to);
        last = at;
    }
}

/// LEB128.
fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The archive's list of labels: all messages of the protocols, and all Linux calls.
pub fn labels() -> Vec<u8> {
    let mut text = String::new();
    for protocol in abi::PROTOCOLS {
        for message in protocol.messages {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:x} {}::{}", message.label, protocol.name, message.name);
        }
    }
    for (number, name) in abi::linux::CALLS {
        let _ = writeln!(text, "{number:x} Linux::{name}");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::symbols::Symbols;

    /// The test program itself: the compiler has given it symbols and frames.
    fn own() -> Vec<u8> {
        let path = std::env::current_exe().expect("runs");
        of_program(&fs::read(path).expect("can be read")).expect("has symbols")
    }

    #[test]
    fn the_functions_of_a_program_are_in_its_table_with_rules() {
        let data = own();
        let symbols = Symbols::new(&data).expect("is a table");
        let file = fs::read(std::env::current_exe().expect("runs")).expect("can be read");
        let file = object::File::parse(&*file).expect("is a program");
        let is_labels = |name: &str| format!("{:#}", rustc_demangle::demangle(name)) == "xtask::symbols::labels";
        let found = file.symbols().find(|symbol| symbol.name().is_ok_and(is_labels)).expect("is there");
        let function = symbols.function(found.address() + 1).expect("is in the table");
        assert_eq!((function.start, function.name), (found.address(), "xtask::symbols::labels"));
        // Before its first instruction only the return address is on the stack.
        assert_eq!(symbols.rule(found.address()), Some(Rule { from_rbp: false, cfa_bytes: 8, rbp_below: 0 }));
    }

    #[test]
    fn labels_have_their_names() {
        let labels = String::from_utf8(labels()).expect("is text");
        assert!(labels.lines().any(|line| line == "1 Linux::write"));
        assert!(labels.lines().any(|line| line == format!("{:x} rs::Ready", abi::rs::Ready::LABEL)));
    }
}
