//! The tests that cargo runs on this machine: those of every package which has some.

use super::{Count, DEEP_VARIABLE, Test, Verdict};
use crate::cli::Depth;
use crate::process::tail;
use crate::programs::{Package, Packages};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// How much is shown of what failed.
const SHOWN_LINES: usize = 80;

/// Runs them all and counts each.
///
/// # Errors
/// When cargo cannot be started.
pub fn run(workspace: &Workspace) -> Result<Verdict> {
    let packages = Packages::read(workspace)?;
    let tested = packages.all().iter().filter(|package| any_source(package, "#[test]"));
    run_cargo(workspace, tested.map(|package| package.name.as_str()), Depth::Short)
}

/// One test for each package that has a full form of some.
///
/// # Errors
/// When cargo cannot be started.
pub fn deep_tests(workspace: &Workspace) -> Result<Vec<Test<'_>>> {
    let packages = Packages::read(workspace)?;
    let deep = packages.all().iter().filter(|package| any_source(package, &format!("\"{DEEP_VARIABLE}\"")));
    // Not this package, which only names the variable.
    let names = deep.map(|package| package.name.clone()).filter(|name| name != env!("CARGO_PKG_NAME"));
    Ok(names
        .map(|name| Test::new(format!("units/{name}"), move || run_cargo(workspace, [name.as_str()], Depth::Deep)))
        .collect())
}

fn run_cargo<'a>(workspace: &Workspace, packages: impl IntoIterator<Item = &'a str>, depth: Depth) -> Result<Verdict> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["test", "--quiet", "--no-fail-fast"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    match depth {
        Depth::Short => cargo.env_remove(DEEP_VARIABLE),
        Depth::Deep => cargo.env(DEEP_VARIABLE, "1"),
    };
    let output = cargo.stdin(Stdio::null()).output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut count = count(&text);
    if output.status.success() {
        return Ok(Verdict { count, details: String::new() });
    }
    // What does not compile has no count of its own.
    count.failed = count.failed.max(1);
    let details =
        format!("{}\n{}", tail(&text, SHOWN_LINES), tail(&String::from_utf8_lossy(&output.stderr), SHOWN_LINES));
    Ok(Verdict { count, details })
}

/// Whether a source file of the package has `text` in it.
fn any_source(package: &Package, text: &str) -> bool {
    package.manifest_path.parent().is_some_and(|folder| any_in(folder, text))
}

fn any_in(folder: &Path, text: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        path.is_dir() && any_in(&path, text)
            || is_rust && fs::read_to_string(&path).is_ok_and(|content| content.contains(text))
    })
}

/// Adds up the lines `test result: ok. 3 passed; 0 failed; …`.
fn count(text: &str) -> Count {
    let results = text.lines().filter_map(|line| line.strip_prefix("test result: "));
    results.fold(Count::default(), |sum, line| Count {
        passed: sum.passed + number_before(line, " passed"),
        failed: sum.failed + number_before(line, " failed"),
    })
}

fn number_before(line: &str, word: &str) -> usize {
    let before = line.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_packages_are_added_up() {
        let text = "running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.00s\n\n\
                    test result: FAILED. 10 passed; 2 failed; 1 ignored\n";
        assert_eq!(count(text), Count { passed: 13, failed: 2 });
    }
}
