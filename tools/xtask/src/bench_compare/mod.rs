//! `./skink bench compare`: the same programs on Skink and on Debian's Linux, in the same emulator.
//!
//! Each section of `sections` is a shell script that prints lines "NAME TICKS". Both systems boot with the same root file system, an ext2
//! image in memory, with the same binaries in it, whose hashes are printed; nothing but the kernel and what is outside that
//! image differs. `linux_guest` boots Debian's kernel, `tree` makes the files that the workloads work on, `table` and `chart` write docs/.

mod chart;
mod sections;
mod table;
mod tree;

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::linux::Linux;
use crate::linux_guest::{self, Root};
use crate::performance;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::process::Command;
use table::Row;

/// Its name on the command line.
pub const NAME: &str = "compare";

/// Memory of both machines.
const MEMORY_MIB: u32 = 1024;
/// Free space of the root file system of both, for the workloads' files.
const FREE_MIB: u64 = 160;

/// One section, measured on both systems.
pub struct Measured {
    title: &'static str,
    rows: Vec<Row>,
}

/// Runs all sections on both systems, prints the tables, and writes them and the chart into docs/.
///
/// # Errors
/// When a machine fails, or the systems do not print the same rows.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
    let debian = Linux::get(workspace)?;
    let mut programs = c_programs::compile(workspace, Some("bench"))?;
    programs.extend(c_programs::compile(workspace, Some("compare"))?);
    let work = workspace.run_folder()?;
    let overlay = tree::overlay(&work.join("overlay"))?;
    let mut measured = Vec::new();
    for section in sections::all() {
        eprintln!("skink: {}", section.title);
        let job = Job {
            overlays: std::slice::from_ref(&overlay),
            c_programs: &programs,
            icount: true,
            memory_mib: MEMORY_MIB,
            free_mib: FREE_MIB,
            ..Job::new(&section.script)
        };
        let skink = Guest::prepare(workspace, &bundle, &job)?.collect().context("Skink")?;
        let linux =
            linux_guest::prepare(workspace, &bundle, &debian, &job, Root::Memory)?.collect().context("Linux")?;
        let rows = table::rows(&skink, &linux).with_context(|| format!("section '{}'", section.title))?;
        let section = Measured { title: section.title, rows };
        println!("{}", table::markdown(&section));
        measured.push(section);
    }
    let tables: String = measured.iter().map(table::markdown).collect();
    let text = format!("Linux is Debian's {}.\n{tables}\n{}", debian.version(), hashes(&programs)?);
    performance::write(&workspace.root, NAME, &text)?;
    chart::write(&workspace.root, &measured)
}

/// A line with the first digits of the SHA-256 of each program's file, as both systems ran it.
fn hashes(programs: &[CProgram]) -> Result<String> {
    let mut words = Vec::new();
    for program in programs {
        let printed = process::output(Command::new("sha256sum").arg(&program.path))?;
        let Some(hash) = printed.get(..12) else { bail!("sha256sum printed nothing") };
        words.push(format!("`{}` {}", program.name, String::from_utf8_lossy(hash)));
    }
    Ok(format!("The programs, by the first digits of their SHA-256: {}.\n", words.join(", ")))
}
