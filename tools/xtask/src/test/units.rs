//! The tests that cargo runs on this machine: those of every package which has some.

use super::{Count, Verdict};
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
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["test", "--quiet", "--no-fail-fast"]);
    for package in packages.all().iter().filter(|package| has_tests(package)) {
        cargo.args(["--package", &package.name]);
    }
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

fn has_tests(package: &Package) -> bool {
    package.manifest_path.parent().is_some_and(any_test_in)
}

fn any_test_in(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        path.is_dir() && any_test_in(&path)
            || is_rust && fs::read_to_string(&path).is_ok_and(|text| text.contains("#[test]"))
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
