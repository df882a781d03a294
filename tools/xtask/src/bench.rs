//! `./skink bench`: runs the benchmarks under `--icount` and prints their tables of ticks.
//!
//! A benchmark is a C program user/bench/NAME.c, a script tests/bench/NAME.sh, or a program of M3-IPC: host/bench/rows.c, which runs on every back end, and
//! host/bench/neighbours.c.
//! Each runs in a guest of its own, which has no other benchmark's files in it: programs on the ramdisk system, scripts, with those of user/trials
//! that they name, on the one that their line `#: system NAME` names. A script NAME.com2 beside it runs here meanwhile, at the other end
//! of the guest's second serial line. What it prints is the table; the same input gives the same
//! numbers, on any machine.

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::m3ipc_programs;
use crate::machine::Screen;
use crate::process::tail;
use crate::second_line::SecondLine;
use crate::test::case;
use crate::workspace::Workspace;
use crate::{bench_compare, bench_io, bench_m3ipc, bench_rt};
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// How much of the console is shown of a failure.
const SHOWN_LINES: usize = 20;

/// Programs that run a second time with a journal, as `NAME_journal`.
const JOURNALED: [&str; 2] = ["files", "synced"];

/// The benchmarks of M3-IPC, and their programs in host/bench.
const M3IPC: [(&str, &str); 2] = [("m3ipc", "rows.c"), ("m3ipc_neighbours", "neighbours.c")];

/// What is measured in several machines, and written into docs/.
const EXPERIMENTS: [(&str, fn(&Workspace) -> Result<()>); 6] = [
    (bench_compare::NAME, |workspace| bench_compare::bench(workspace, None)),
    (bench_compare::growth::NAME, bench_compare::growth::bench),
    (bench_io::NAME, bench_io::bench),
    (bench_m3ipc::NAME, bench_m3ipc::bench),
    (bench_m3ipc::ticks::NAME, bench_m3ipc::ticks::bench),
    (bench_rt::NAME, bench_rt::bench),
];

/// One benchmark.
struct Benchmark {
    name: String,
    /// What the guest's shell runs.
    command: String,
    /// The programs to put into its /bin.
    programs: Vec<CProgram>,
    /// The system it runs on.
    system: String,
    /// Whether its root file system has a journal.
    has_journal: bool,
    /// The machine's screen.
    screen: Screen,
    /// The script at the other end of the second serial line.
    second_line: Option<SecondLine>,
}

/// Runs the benchmarks whose name contains `name`, or all.
///
/// # Errors
/// When there is none of that name, or one of them fails.
pub fn bench(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    if let Some((bench_compare::NAME, part)) = name.and_then(|name| name.split_once('/')) {
        bench_compare::bench(workspace, Some(part))?;
        return Ok(0);
    }
    let mut benchmarks = find(workspace, name)?;
    let experiments = EXPERIMENTS.iter().filter(|(own, _)| name.is_none_or(|name| own.contains(name)));
    let experiments: Vec<_> = experiments.collect();
    if let Some(name) = name {
        benchmarks.retain(|benchmark| benchmark.name.contains(name));
        if benchmarks.is_empty() && experiments.is_empty() {
            bail!("there is no benchmark with '{name}' in its name");
        }
    }
    let mut bundles: BTreeMap<&str, Bundle> = BTreeMap::new();
    for benchmark in &benchmarks {
        if !bundles.contains_key(benchmark.system.as_str()) {
            bundles.insert(&benchmark.system, Bundle::build(workspace, &benchmark.system)?);
        }
        println!("# {}", benchmark.name);
        run(workspace, &bundles[benchmark.system.as_str()], benchmark)?;
    }
    for (name, run) in experiments {
        println!("# {name}");
        run(workspace)?;
    }
    Ok(0)
}

/// All benchmarks; that of M3-IPC, which needs a library, if its name contains `name`.
fn find(workspace: &Workspace, name: Option<&str>) -> Result<Vec<Benchmark>> {
    let mut benchmarks = Vec::new();
    for program in c_programs::compile(workspace, &["bench"])? {
        let (own, command) = (program.name.clone(), program.name.clone());
        let second_line = second_line(&workspace.root.join("user/bench").join(&own).with_extension("com2"))?;
        let kinds: &[bool] = if JOURNALED.contains(&own.as_str()) { &[false, true] } else { &[false] };
        for &has_journal in kinds {
            benchmarks.push(Benchmark {
                name: if has_journal { format!("{own}_journal") } else { own.clone() },
                command: command.clone(),
                programs: vec![program.clone()],
                system: RAMDISK_SYSTEM.to_string(),
                has_journal,
                screen: Screen::None,
                second_line: second_line.clone(),
            });
        }
    }
    for (own, source) in M3IPC.iter().filter(|(own, _)| name.is_none_or(|name| own.contains(name))) {
        benchmarks.push(m3ipc(workspace, own, source)?);
    }
    for script in case::find(&workspace.root, "bench", "sh")? {
        let second_line = second_line(&script.path.with_extension("com2"))?;
        let mut programs = c_programs::compile(workspace, &["trials"])?;
        programs.retain(|program| script.text.contains(&program.name));
        let (name, command, system) = (script.name, script.text, script.terms.system);
        let screen = if script.terms.screen { Screen::Hidden } else { Screen::None };
        let has_journal = script.terms.has_journal;
        benchmarks.push(Benchmark { name, command, programs, system, has_journal, screen, second_line });
    }
    benchmarks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(benchmarks)
}

/// A benchmark of M3-IPC in Skink.
fn m3ipc(workspace: &Workspace, name: &str, source: &str) -> Result<Benchmark> {
    let library = m3ipc_programs::build_library(workspace)?;
    let path = workspace.build.join("c").join(name);
    m3ipc_programs::compile(workspace, &library, &workspace.root.join("host/bench").join(source), &path)?;
    let programs = vec![CProgram { name: name.to_string(), path }];
    let (name, command, system) = (name.to_string(), name.to_string(), RAMDISK_SYSTEM.to_string());
    Ok(Benchmark { name, command, programs, system, has_journal: false, screen: Screen::None, second_line: None })
}

fn second_line(script: &Path) -> Result<Option<SecondLine>> {
    let exists = script.exists();
    let read = || Ok(SecondLine { command: fs::read_to_string(script)?, variables: Vec::new() });
    exists.then(read).transpose()
}

fn run(workspace: &Workspace, bundle: &Bundle, benchmark: &Benchmark) -> Result<()> {
    let job = Job {
        icount: true,
        has_journal: benchmark.has_journal,
        c_programs: &benchmark.programs,
        second_line: benchmark.second_line.clone(),
        screen: benchmark.screen,
        ..Job::new(&benchmark.command)
    };
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
