//! `./skink bench`: runs the benchmarks under `--icount` and prints their tables of ticks.
//!
//! A benchmark is a C program user/bench/NAME.c or a script tests/bench/NAME.sh. Each runs in a guest of
//! its own, on the ramdisk system, which has no other benchmark's files in it. What it prints is the
//! table; the same input gives the same numbers, on any machine.

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::process::tail;
use crate::programs::Progress;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};

/// How much of the console is shown of a failure.
const SHOWN_LINES: usize = 20;

/// One benchmark.
struct Benchmark {
    name: String,
    /// What the guest's shell runs.
    command: String,
    /// The programs to put into its /bin.
    programs: Vec<CProgram>,
}

/// Runs the benchmarks whose name contains `name`, or all.
///
/// # Errors
/// When there is none of that name, or one of them fails.
pub fn bench(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    let mut benchmarks = find(workspace)?;
    if let Some(name) = name {
        benchmarks.retain(|benchmark| benchmark.name.contains(name));
        if benchmarks.is_empty() {
            bail!("there is no benchmark with '{name}' in its name");
        }
    }
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM, Progress::Hidden)?;
    for benchmark in &benchmarks {
        println!("# {}", benchmark.name);
        run(workspace, &bundle, benchmark)?;
    }
    Ok(0)
}

fn find(workspace: &Workspace) -> Result<Vec<Benchmark>> {
    let programs = c_programs::compile(workspace, Some("bench"))?;
    let mut benchmarks: Vec<Benchmark> = programs
        .into_iter()
        .map(|program| Benchmark { command: program.name.clone(), name: program.name.clone(), programs: vec![program] })
        .collect();
    let Ok(scripts) = fs::read_dir(workspace.root.join("tests/bench")) else { return Ok(benchmarks) };
    for script in scripts.flatten().map(|entry| entry.path()) {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if script.extension().is_some_and(|extension| extension == "sh") {
            let command = fs::read_to_string(&script).with_context(|| format!("cannot read {}", script.display()))?;
            benchmarks.push(Benchmark { name, command, programs: Vec::new() });
        }
    }
    benchmarks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(benchmarks)
}

fn run(workspace: &Workspace, bundle: &Bundle, benchmark: &Benchmark) -> Result<()> {
    let job = Job { icount: true, c_programs: &benchmark.programs, ..Job::new(&benchmark.command) };
    let guest = Guest::prepare(workspace, bundle, &job)?;
    let print = |bytes: &[u8]| {
        // A reader that is gone does not change what is measured.
        let _ = io::stdout().write_all(bytes);
    };
    let outcome = guest.run(print, |_| ())?;
    if outcome.status != Some(0) {
        bail!("the benchmark {} failed:\n{}", benchmark.name, tail(&outcome.console, SHOWN_LINES));
    }
    Ok(())
}
