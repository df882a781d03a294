//! Where QEMU's plug-in finds what it looks at in the kernel: from the symbols of the kernel's file and from its instructions.

use anyhow::{Context, Result, bail};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol};
use profile::KERNEL_BASE;
use std::fs;
use std::path::Path;

/// The plug-in's arguments.
///
/// # Errors
/// When the kernel has not what is looked for.
pub fn arguments(kernel: &Path, memory_mib: u32, out: &Path) -> Result<String> {
    let data = fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
    let file = object::File::parse(&*data)?;
    let symbol = |name: &str| {
        let found = file.symbols().find(|symbol| symbol.name() == Ok(name));
        found.map(|symbol| symbol.address()).with_context(|| format!("the kernel has no {name}"))
    };
    let instructions = instructions(&file)?;
    let entry = symbol("syscall_entry")?;
    // The first comparison follows the last register saved.
    let saved = instructions.iter().find(|one| one.ip() >= entry && one.mnemonic() == Mnemonic::Cmp);
    let saved = saved.context("the kernel's entry does not compare the number of a call")?.ip();
    let (loaded, switches) = page_tables(&instructions)?;
    let switches: Vec<String> = switches.iter().map(|address| format!("{address:x}")).collect();
    Ok(format!(
        "syscall_entry={entry:x},syscall_saved={saved:x},trap_stubs={:x},trap_saved={:x},current_frame={:x},loaded={loaded:x},\
         switches={},memory={:x},out={}",
        symbol("trap_stubs")?,
        symbol("trap_from_user")?,
        symbol("CURRENT_FRAME")?,
        switches.join(":"),
        u64::from(memory_mib) << 20,
        out.display(),
    ))
}

fn instructions(file: &object::File) -> Result<Vec<Instruction>> {
    let mut all = Vec::new();
    for section in file.sections().filter(|section| section.kind() == object::SectionKind::Text) {
        // What runs before paging is not meant.
        if section.address() >= KERNEL_BASE {
            let data = section.data()?;
            all.extend(Decoder::with_ip(64, data, section.address(), DecoderOptions::NONE).iter());
        }
    }
    Ok(all)
}

/// The word that says which page table is loaded, and the instructions that load one. Where another space is loaded, the kernel first
/// stores its table in that word.
fn page_tables(instructions: &[Instruction]) -> Result<(u64, Vec<u64>)> {
    let is_load = |one: &Instruction| one.mnemonic() == Mnemonic::Mov && one.op0_register() == Register::CR3;
    let mut stores: Vec<u64> = Vec::new();
    for pair in instructions.windows(2) {
        let [store, load] = pair else { continue };
        let is_store = store.mnemonic() == Mnemonic::Mov && store.op0_kind() == OpKind::Memory;
        let is_absolute = matches!(store.memory_base(), Register::RIP | Register::None);
        let is_same = store.op1_kind() == OpKind::Register && store.op1_register() == load.op1_register();
        if is_load(load) && is_store && is_absolute && is_same && store.memory_index() == Register::None {
            stores.push(store.memory_displacement64());
        }
    }
    let Some(&word) = stores.first() else { bail!("the kernel does not say where it loads page tables") };
    if stores.iter().any(|other| *other != word) {
        bail!("the kernel keeps the page table in use in more than one place");
    }
    Ok((word, instructions.iter().filter(|one| is_load(one)).map(Instruction::ip).collect()))
}
