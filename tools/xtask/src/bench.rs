//! `./skink bench`: runs the benchmarks under `--icount` and prints their tables of ticks.
//!
//! A benchmark is a script tests/bench/NAME.sh, run in the guest on the ramdisk system; what it prints
//! is the table. The same input gives the same numbers, on any machine. The C programs of user/bench,
//! which run on Linux as they are, are compiled static and are in the guest's /bin.

use crate::bundle::Bundle;
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::process::{self, tail};
use crate::programs::Progress;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the benchmarks whose name contains `name`, or all.
///
/// # Errors
/// When there is none of that name, or one of them fails.
pub fn bench(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    let scripts = find(&workspace.root.join("tests/bench"), name.unwrap_or(""))?;
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM, Progress::Hidden)?;
    let overlay = workspace.build.join("bench");
    compile_programs(&workspace.root.join("user/bench"), &overlay.join("bin"))?;
    for script in scripts {
        run(workspace, &bundle, &overlay, &script)?;
    }
    Ok(0)
}

fn compile_programs(sources: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let Ok(entries) = fs::read_dir(sources) else { return Ok(()) };
    for source in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = source.file_stem().filter(|_| source.extension().is_some_and(|own| own == "c")) else {
            continue;
        };
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-static", "-Wall", "-Wl,--build-id=none", "-o"]).arg(to.join(name)).arg(&source);
        process::run(&mut cc)?;
    }
    Ok(())
}

fn find(folder: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "sh") && stem.contains(name) {
            scripts.push(path);
        }
    }
    if scripts.is_empty() {
        bail!("there is no benchmark '{name}' in {}", folder.display());
    }
    scripts.sort();
    Ok(scripts)
}

fn run(workspace: &Workspace, bundle: &Bundle, overlay: &PathBuf, script: &Path) -> Result<()> {
    let command = fs::read_to_string(script).with_context(|| format!("cannot read {}", script.display()))?;
    let job = Job { icount: true, overlays: std::slice::from_ref(overlay), ..Job::new(&command) };
    let guest = Guest::prepare(workspace, bundle, &job)?;
    let print = |bytes: &[u8]| {
        // A reader that is gone does not change what is measured.
        let _ = io::stdout().write_all(bytes);
    };
    let outcome = guest.run(print, |_| ())?;
    if outcome.status != Some(0) {
        bail!("the benchmark {} failed:\n{}", script.display(), tail(&outcome.console, 20));
    }
    Ok(())
}
