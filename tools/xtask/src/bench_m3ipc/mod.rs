//! `./skink bench m3ipc`: how fast messages and copies of M3-IPC are in Linux, beside what the kernel offers, on this machine.
//!
//! The program is host/bench/ipc.c, and beside it that of [`iceoryx2`]. Their runs are interleaved, and each is compared with the bare futex of the same
//! round, so that other work on the machine weighs on both. `ticks` has the rows of host/bench/rows.c, on all back ends in the emulator.

mod chart;
mod iceoryx2;
pub mod ticks;

use crate::m3ipc_programs;
use crate::performance;
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use iceoryx2::Iceoryx2;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name of this experiment.
pub const NAME: &str = "m3ipc";

/// Runs of each mechanism.
const RUNS: usize = 11;
/// Rounds of each run of the fast ones.
const ROUNDS: &str = "20000";
/// Before the size of the block where others have where the processes run.
const COPIES: &str = "copies of ";
/// How long the broker may take to listen.
const START: Duration = Duration::from_secs(10);

/// What one mechanism has reached at one placement.
struct Row {
    placement: String,
    mechanism: String,
    values: Vec<f64>,
}

/// A mechanism of messages that does not run here, and why.
struct Unmeasured {
    mechanism: &'static str,
    reason: String,
}

/// Measures, and writes docs/performance.md and the two pictures.
///
/// # Errors
/// When something cannot be built, does not run, or cannot be written.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--quiet", "--release"]);
    process::run(cargo.args(["--package", "libm3ipc", "--package", "m3ipcd"]))?;
    let library = workspace.target.join("release");
    let folder = workspace.run_folder()?;
    let (program, socket) = (folder.join("ipc"), folder.join("socket"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-static", "-I"]).arg(workspace.root.join("lib/m3ipc/include"));
    cc.arg(workspace.root.join("host/bench/ipc.c")).arg("-o").arg(&program).arg("-L").arg(&library).arg("-lm3ipc");
    process::run(&mut cc)?;
    let mut iceoryx2 = Iceoryx2::build(workspace);
    let mut broker = start(&library.join("m3ipcd"), &socket)?;
    let mut run = Command::new(&program);
    run.current_dir(folder.path()).args(["1", ROUNDS]).env("M3IPC_SOCKET", &socket);
    let output = run_in_turn(&mut run, &mut iceoryx2);
    m3ipc_programs::end_broker(&mut broker);
    let mut output = output?;
    let unmeasured = iceoryx2.append_to(&mut output);
    let rows = read(&String::from_utf8_lossy(&output))?;
    let text = tables(&rows, &unmeasured);
    print!("{text}");
    performance::write(&workspace.root, NAME, &text)?;
    chart::write(&workspace.root, &rows)
}

/// Runs both programs once a round. Returns what the first has printed.
fn run_in_turn(run: &mut Command, iceoryx2: &mut Iceoryx2) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    for _ in 0..RUNS {
        output.extend(process::output(run)?);
        iceoryx2.run();
    }
    Ok(output)
}

fn start(program: &Path, socket: &Path) -> Result<Child> {
    let mut command = Command::new(program);
    command.arg("--socket").arg(socket).stdin(Stdio::null()).stderr(Stdio::null());
    let mut broker = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let begin = Instant::now();
    while !socket.exists() {
        if begin.elapsed() > START {
            m3ipc_programs::end_broker(&mut broker);
            bail!("m3ipcd does not listen at {}", socket.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(broker)
}

/// Reads lines of placement, mechanism and value.
fn read(output: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in output.lines() {
        let [placement, mechanism, value] = *line.split('\t').collect::<Vec<_>>() else {
            bail!("a strange line: {line}")
        };
        let value = value.parse().with_context(|| format!("a strange value: {line}"))?;
        match rows.iter_mut().find(|row| row.placement == placement && row.mechanism == mechanism) {
            Some(row) => row.values.push(value),
            None => {
                let (placement, mechanism) = (placement.to_string(), mechanism.to_string());
                rows.push(Row { placement, mechanism, values: vec![value] });
            }
        }
    }
    Ok(rows)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl Row {
    /// The median, and a quarter of the runs below and above it.
    fn summary(&self) -> (f64, f64, f64) {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: usize| sorted.get(sorted.len() * part / 4).copied().unwrap_or(0.0);
        (median(&self.values), at(1), at(3))
    }

    fn is_copy(&self) -> bool {
        self.placement.starts_with(COPIES)
    }

    /// The median of the ratios to another one's runs of the same rounds.
    fn ratio_to(&self, base: &Row) -> f64 {
        let ratios: Vec<f64> = self.values.iter().zip(&base.values).map(|(own, base)| own / base).collect();
        median(&ratios)
    }
}

/// Both tables. Mechanisms without a run have the reason where others have figures.
fn tables(rows: &[Row], unmeasured: &[Unmeasured]) -> String {
    let mut text = String::new();
    for (is_copy, unit) in [(false, "thousand messages/s"), (true, "GB/s")] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.is_copy() == is_copy).collect();
        let mut placements = in_order(rows.iter().map(|row| row.placement.as_str()));
        // Copies come by size.
        if !is_copy {
            placements.sort_unstable();
        }
        let mechanisms = in_order(rows.iter().map(|row| row.mechanism.as_str()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {unit} | {} |", placements.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(placements.len()));
        for mechanism in mechanisms {
            let cells: Vec<String> = placements.iter().map(|placement| cell(&rows, placement, mechanism)).collect();
            let _ = writeln!(text, "| {mechanism} | {} |", cells.join(" | "));
        }
        for Unmeasured { mechanism, reason } in unmeasured.iter().filter(|_| !is_copy) {
            let _ = writeln!(text, "| {mechanism} | not measured: {reason} {}", "|".repeat(placements.len()));
        }
        text.push('\n');
    }
    text
}

/// What is there, once, in the order in which it comes first.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = Vec::new();
    names.for_each(|name| {
        if !known.contains(&name) {
            known.push(name);
        }
    });
    known
}

/// Median, quartiles, and the ratio to the first mechanism of the placement.
fn cell(rows: &[&Row], placement: &str, mechanism: &str) -> String {
    let at = |mechanism: &str| rows.iter().find(|row| row.placement == placement && row.mechanism == mechanism);
    let (Some(row), Some(base)) = (at(mechanism), rows.iter().find(|row| row.placement == placement)) else {
        return "not measured".to_string();
    };
    let (middle, low, high) = row.summary();
    // A small block by the kernel takes a thousandth of a large one by memcpy.
    let digits = match row.is_copy() {
        true if middle < 1.0 => 3,
        true => 1,
        false => 0,
    };
    let figures = format!("{middle:.digits$} ({low:.digits$}–{high:.digits$})");
    if mechanism == base.mechanism { figures } else { format!("{figures} {:.2}", row.ratio_to(base)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_to_the_run_of_the_same_round() {
        let rows = read("1\tfutex\t10\n1\tpipe\t5\n1\tfutex\t100\n1\tpipe\t50\n").expect("three columns");
        assert_eq!(rows[1].ratio_to(&rows[0]), 0.5);
        let text = tables(&rows, &[]);
        assert!(text.contains("| pipe | 50 (5–50) 0.50 |"), "{text}");
        assert!(read("one\ttwo\n").is_err());
    }

    #[test]
    fn a_mechanism_that_does_not_run_has_a_row_of_messages_alone() {
        let rows = read("1\tfutex\t10\n2\tfutex\t9\ncopies of 1 KiB\tpipe\t2.5\n").expect("three columns");
        let text = tables(&rows, &[Unmeasured { mechanism: "other", reason: "no network".to_string() }]);
        assert!(text.contains("| thousand messages/s | 1 | 2 |\n"), "{text}");
        assert_eq!(text.matches("| other | not measured: no network ||\n").count(), 1, "{text}");
    }

    #[test]
    fn copies_come_by_size() {
        let rows =
            read("copies of 512 B\tpipe\t0.25\n2 pairs\tpipe\t7\ncopies of 1 KiB\tpipe\t2.5\n").expect("three columns");
        let text = tables(&rows, &[]);
        assert!(text.contains("| GB/s | copies of 512 B | copies of 1 KiB |"), "{text}");
        assert!(text.contains("| pipe | 0.250 (0.250–0.250) | 2.5 (2.5–2.5) |"), "{text}");
    }
}
