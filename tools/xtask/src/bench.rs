//! `./skink bench`: runs the benchmarks under `--icount` and prints their tables of ticks.
//!
//! A benchmark is a script tests/bench/NAME.sh, run in the guest on the ramdisk system; what it prints
//! is the table. The same input gives the same numbers, on any machine.

use crate::bundle::Bundle;
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::process::tail;
use crate::programs::Progress;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Runs the benchmarks whose name contains `name`, or all.
///
/// # Errors
/// When there is none of that name, or one of them fails.
pub fn bench(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    let scripts = find(&workspace.root.join("tests/bench"), name.unwrap_or(""))?;
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM, Progress::Hidden)?;
    for script in scripts {
        run(workspace, &bundle, &script)?;
    }
    Ok(0)
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

fn run(workspace: &Workspace, bundle: &Bundle, script: &Path) -> Result<()> {
    let command = fs::read_to_string(script).with_context(|| format!("cannot read {}", script.display()))?;
    let job = Job { icount: true, ..Job::new(&command) };
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
