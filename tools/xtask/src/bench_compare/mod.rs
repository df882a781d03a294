//! `./skink bench compare`, of which `compare/TITLE` is a part, and `./skink bench growth`: the same programs on Skink and on Debian's Linux, in the same emulator.
//!
//! Each section is a shell script that prints lines "NAME TICKS ROUNDS". Both systems boot with the same root file system, an ext2
//! image with a journal in memory, with the same binaries in it; nothing but the kernel and what is outside that image differs.
//!
//! * `both`: the two machines;
//! * `row`: what they print and what is counted beside it; `wall`: how long it takes in real time;
//! * `sections`, `tree`: what is run, and the files that it works on;
//! * `same`: what shows that the programs and the mounts are the same;
//! * `growth`: what must not grow;
//! * `table`, `page`, `chart`: what is written into docs/.

mod both;
mod chart;
pub mod growth;
mod page;
mod row;
mod same;
mod sections;
mod table;
mod tree;
mod wall;

use crate::performance;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use both::{Both, Emulation};
use row::Row;

/// Its name on the command line.
pub const NAME: &str = "compare";

/// One section, measured on both systems.
struct Measured {
    title: &'static str,
    rows: Vec<Row>,
}

/// Runs the sections whose title contains `part`, or all, on both systems, prints their tables, and writes each into docs/ when it has been
/// measured; then draws the chart of all that are there.
///
/// # Errors
/// When a machine fails, the systems do not print the same rows, or no section has that in its title.
pub fn bench(workspace: &Workspace, part: Option<&str>) -> Result<()> {
    let mut sections = sections::all();
    sections.retain(|section| part.is_none_or(|part| section.has_in_title(part)));
    if sections.is_empty() {
        bail!("there is no section with '{}' in its title", part.unwrap_or_default());
    }
    let both = Both::prepare(workspace)?;
    let same = same::check(&both)?;
    println!("{same}");
    change_page(workspace, |tables| page::with_introduction(tables, &same))?;
    for section in sections {
        let rows = measure(&both, &section.script).with_context(|| format!("section '{}'", section.title))?;
        let table = table::markdown(&Measured { title: section.title, rows });
        println!("{table}");
        change_page(workspace, |tables| page::with_section(tables, section.title, &table))?;
    }
    chart::write(&workspace.root, &page::bars(&performance::read(&workspace.root, NAME)?))
}

fn change_page(workspace: &Workspace, change: impl FnOnce(&str) -> String) -> Result<()> {
    let tables = change(&performance::read(&workspace.root, NAME)?);
    performance::write(&workspace.root, NAME, &tables)
}

/// Runs a script on both systems: once counted, and some rounds in real time.
fn measure(both: &Both, script: &str) -> Result<Vec<Row>> {
    let printed = both.run(script, Emulation::Counted)?;
    let mut rows = row::counted(&printed.skink, &printed.linux)?;
    wall::add(&mut rows, || both.run(script, Emulation::Plain))?;
    Ok(rows)
}
