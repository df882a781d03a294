//! `./skink bench compare` and `./skink bench growth`: the same programs on Skink and on Debian's Linux, in the same emulator.
//!
//! Each section is a shell script that prints lines "NAME TICKS ROUNDS". Both systems boot with the same root file system, an ext2
//! image with a journal in memory, with the same binaries in it; nothing but the kernel and what is outside that image differs.
//!
//! * `both`: the two machines;
//! * `row`: what they print and what is counted beside it; `wall`: how long it takes in real time;
//! * `sections`, `tree`: what is run, and the files that it works on;
//! * `same`: what shows that the programs and the mounts are the same;
//! * `growth`: what must not grow;
//! * `table`, `chart`: what is written into docs/.

mod both;
mod chart;
pub mod growth;
mod row;
mod same;
mod sections;
mod table;
mod tree;
mod wall;

use crate::performance;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use both::{Both, Emulation};
use row::Row;

/// Its name on the command line.
pub const NAME: &str = "compare";

/// One section, measured on both systems.
struct Measured {
    title: &'static str,
    rows: Vec<Row>,
}

/// Runs all sections on both systems, prints the tables, and writes them and the chart into docs/.
///
/// # Errors
/// When a machine fails, or the systems do not print the same rows.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let both = Both::prepare(workspace)?;
    let same = same::check(&both)?;
    println!("{same}");
    let mut measured = Vec::new();
    for section in sections::all() {
        let rows = measure(&both, &section.script).with_context(|| format!("section '{}'", section.title))?;
        let section = Measured { title: section.title, rows };
        println!("{}", table::markdown(&section));
        measured.push(section);
    }
    let tables: String = measured.iter().map(table::markdown).collect();
    performance::write(&workspace.root, NAME, &format!("{same}{tables}"))?;
    chart::write(&workspace.root, &measured)
}

/// Runs a script on both systems: once counted, and some rounds in real time.
fn measure(both: &Both, script: &str) -> Result<Vec<Row>> {
    let printed = both.run(script, Emulation::Counted)?;
    let mut rows = row::counted(&printed.skink, &printed.linux)?;
    wall::add(&mut rows, || both.run(script, Emulation::Plain))?;
    Ok(rows)
}
