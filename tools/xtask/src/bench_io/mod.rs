//! `./skink bench io`: what it costs a driver to reach a port, on each of the four ways (docs/book/driver-io.md).
//!
//! The experiment of the papers: a file is sent and received over a serial line at 19,200 and 38,400 bit/s, and the
//! driver measures each of its accesses by the time-stamp counter. One system, one driver: only the key `io_way` of uart changes.
//! Sent bytes go to a file here, which is compared; the file is received through the chip's loopback, so that nothing depends on this side's time and every
//! run gives the same figures.
//!
//! `figures` are counts, means and deviations; `papers` has those of the papers; `table` and `chart` write both into docs/.

mod chart;
mod figures;
mod papers;
mod table;

use crate::bundle::Bundle;
use crate::c_programs;
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::performance;
use crate::workspace::{RunFolder, Workspace};
use abi::endpoint::slot;
use abi::privilege::way;
use anyhow::{Context, Result, bail};
use figures::Figures;
use std::fs;
use std::path::PathBuf;

/// Its name on the command line.
pub const NAME: &str = "io";

/// The ways, the papers' baseline first.
const WAYS: [(&str, u32); 4] =
    [("systask", way::SYSTASK), ("hal", way::HAL), ("emulate", way::EMULATE), ("direct", way::DIRECT)];
/// The papers' rates, in bit/s.
const RATES: [u32; 2] = [19_200, 38_400];
/// The file that is sent and received, in the checkout: one that does not change.
const FILE: &str = "LICENSE-APACHE";
const DRIVER: &str = "uart";

/// Costs of one access path.
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// Figures at each rate.
    pub at: [Figures; RATES.len()],
}

/// Measures all ways, prints the table, and writes it and the chart into docs/.
///
/// # Errors
/// When a machine fails, or the file does not arrive as it was.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let mut bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
    let mut ways = Vec::new();
    for (name, way) in WAYS {
        bundle.change_service(DRIVER, |service| {
            service.io_way = way;
            service.arguments = "measure=ports".to_string();
            service.destinations.push(slot::SYSTEM as u32);
        });
        let at =
            measure(workspace, &bundle).with_context(|| format!("measurement of the access path {name} failed"))?;
        ways.push(Way { name, at });
    }
    let table = table::markdown(&ways);
    println!("{table}");
    performance::write(&workspace.root, NAME, &table)?;
    chart::write(&workspace.root, &ways)
}

fn measure(workspace: &Workspace, bundle: &Bundle) -> Result<[Figures; RATES.len()]> {
    let work = workspace.run_folder()?;
    let overlay = make_overlay(workspace, &work)?;
    let programs = c_programs::compile(workspace, &["io"])?;
    let rates = RATES.map(|rate| rate.to_string()).join(" ");
    let command = format!("transfer /file /dev/ttyS1 {rates} && dmesg | grep '^{DRIVER}: ports'");
    let job = Job {
        overlays: std::slice::from_ref(&overlay),
        c_programs: &programs,
        icount: true,
        keeps_second_line: true,
        ..Job::new(&command)
    };
    let guest = Guest::prepare(workspace, bundle, &job)?;
    let printed = guest.collect()?;
    compare_sent(workspace, &guest)?;
    let found = RATES.map(|rate| figures::at_rate(&printed, rate));
    if found.iter().any(|figures| figures.is_empty()) {
        bail!("the driver printed no figures:\n{printed}");
    }
    Ok(found)
}

/// The folder laid over the root, with the file.
fn make_overlay(workspace: &Workspace, work: &RunFolder) -> Result<PathBuf> {
    let overlay = work.join("overlay");
    fs::create_dir_all(&overlay)?;
    // Written anew, so that the checkout's file times do not get into the image.
    fs::write(overlay.join("file"), fs::read(workspace.root.join(FILE)).context(FILE)?)?;
    Ok(overlay)
}

/// The other end has to have what was sent, once for each rate.
fn compare_sent(workspace: &Workspace, guest: &Guest) -> Result<()> {
    let sent = fs::read(guest.second_line_file()).context("the guest sent nothing on COM2")?;
    if sent != fs::read(workspace.root.join(FILE))?.repeat(RATES.len()) {
        bail!("the bytes received from COM2 differ from those sent");
    }
    Ok(())
}
