//! `./skink bench rt`: MINIX4RT's experiment, and how late a periodic process comes to run.
//!
//! Each load has a machine of its own, in which ordinary processes make it while `user/rt` measures. Nothing depends on the outside: the disk is the ramdisk,
//! which is a driver like any other, and the serial line sends to a file and receives by the chip's loopback. So every run gives the same figures.
//!
//! `bound` measures the longest wait of a fast timer; `figures` reads what the programs print; `others` has the figures of the paper and of other systems; `table`, `chart` and `histogram`
//! write them into docs/.

mod bound;
mod chart;
mod figures;
mod histogram;
mod others;
mod table;

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::performance;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use figures::{Lateness, Pairs};
use std::fs;
use std::path::PathBuf;

/// Its name on the command line.
pub const NAME: &str = "rt";

/// The file that goes over the serial line, in the checkout: one that does not change.
const FILE: &str = "LICENSE-APACHE";
/// What the loads do, in the background. Their output must not be the command's, whose end is waited for.
const CPU: &str = "yes >/dev/null &\n";
const DISK: &str = "while :; do cat /bin/busybox /dev/ram0; done >/dev/null &\n";
const SERIAL: &str = "while :; do transfer /file /dev/ttyS1 19200; done >/dev/null &\n";
/// Lets the load begin.
const SETTLE: &str = "sleep 0.3\n";
const PERIODS: &str = "sleep 2 | rt_periodic\n";
/// Services that are killed in turn: drivers and servers.
const VICTIMS: [&str; 10] = ["uart", "tty", "rtc", "pci", "ramdisk", "ext2", "procfs", "devfs", "ds", "vfs"];
/// How often all of them are.
const ROUNDS: usize = 100;
const KILLS_NAME: &str = "1,000 services killed";
/// Between two kills, in seconds: rs starts one again at once that has lived for half a second.
const PAUSE: &str = "0.055";

/// What disturbs a machine.
struct Load {
    name: &'static str,
    /// Shell commands that begin it.
    script: String,
    /// It is one of the paper's, under which semaphores are measured.
    is_of_paper: bool,
    /// What runs while the periodic process does, until its standard input ends.
    meanwhile: String,
}

/// What came of it.
pub struct Measured {
    /// Name of the load.
    pub load: &'static str,
    /// Figures of the semaphores, if they were measured.
    pub pairs: Vec<Pairs>,
    /// Of the periodic process.
    pub lateness: Lateness,
}

fn loads() -> Vec<Load> {
    let load = |name, script: String, is_of_paper| Load { name, script, is_of_paper, meanwhile: PERIODS.to_string() };
    vec![
        load("none", String::new(), true),
        load("CPU", CPU.to_string(), true),
        load("disk", DISK.to_string(), true),
        load("serial", SERIAL.to_string(), true),
        load("CPU, disk and serial", format!("{CPU}{DISK}{SERIAL}"), false),
        Load { name: KILLS_NAME, script: String::new(), is_of_paper: false, meanwhile: kills() },
    ]
}

/// Kills all victims so many times while the periodic process runs, and tells how often that was done.
fn kills() -> String {
    let victims = VICTIMS.join(" ");
    format!(
        "exec 3>&1\n\
         {{ sleep 0.3\n\
         for round in $(seq {ROUNDS}); do for victim in {victims}; do\n\
         service kill $victim >&2 && kills=$((kills + 1)); sleep {PAUSE}\n\
         done; done; echo kills $kills >&3; }} | rt_periodic\n"
    )
}

/// Measures under all loads, prints the tables, and writes them and the pictures into docs/.
///
/// # Errors
/// When a machine fails.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
    let programs = c_programs::compile(workspace, &["rt", "io", "mrt", "trials"])?;
    let mut all = Vec::new();
    for load in loads() {
        all.push(measure(workspace, &bundle, &programs, &load).with_context(|| format!("the load {}", load.name))?);
    }
    let waits = bound::measure(workspace, &bundle, &programs)?;
    let tables = format!("{}\n{}\n{}", table::pairs(&all), table::lateness(&all), bound::table(&waits));
    println!("{tables}");
    performance::write(&workspace.root, NAME, &tables)?;
    chart::write(&workspace.root, &all)?;
    histogram::write(&workspace.root, &all)
}

fn measure(workspace: &Workspace, bundle: &Bundle, programs: &[CProgram], load: &Load) -> Result<Measured> {
    let overlay = make_overlay(workspace)?;
    let semaphores = if load.is_of_paper { "rt_semaphores &&\n" } else { "" };
    let command = format!("{}{SETTLE}{semaphores}{}", load.script, load.meanwhile);
    let job = Job {
        overlays: std::slice::from_ref(&overlay),
        c_programs: programs,
        icount: true,
        keeps_second_line: true,
        ..Job::new(&command)
    };
    let printed = Guest::prepare(workspace, bundle, &job)?.collect()?;
    if load.name == KILLS_NAME && !printed.contains(&format!("kills {}\n", ROUNDS * VICTIMS.len())) {
        bail!("not all services could be killed:\n{printed}");
    }
    let pairs = figures::pairs(&printed);
    let lateness = figures::lateness(&printed).with_context(|| format!("it printed:\n{printed}"))?;
    Ok(Measured { load: load.name, pairs, lateness })
}

/// The folder laid over the root, with the file.
fn make_overlay(workspace: &Workspace) -> Result<PathBuf> {
    let overlay = workspace.build.join("bench-rt");
    fs::create_dir_all(&overlay)?;
    // Written anew, so that the checkout's file times do not get into the image.
    fs::write(overlay.join("file"), fs::read(workspace.root.join(FILE)).context(FILE)?)?;
    Ok(overlay)
}
