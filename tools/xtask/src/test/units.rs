//! The tests that cargo runs on this machine: those of all packages but the kernel.

use super::{Count, DEEP_VARIABLE, Test, Verdict};
use crate::check::lint;
use crate::cli::Depth;
use crate::process::tail;
use crate::programs::{Package, Packages};
use crate::progress::Step;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// How much is shown of what failed.
const SHOWN_LINES: usize = 80;

/// All of them, compiled by clippy: one pass tells the lints of what is for this machine, and generates the code.
pub struct Compiled {
    /// Every warning and error, one line each.
    pub lints: Vec<String>,
    is_whole: bool,
}

impl Compiled {
    /// Compiles the workspace in the folder `root`, as far as it compiles.
    ///
    /// # Errors
    /// When cargo cannot be started.
    pub fn of(root: &Path) -> Result<Self> {
        let _step = Step::begin("host tests");
        Self::by(&mut all(root))
    }

    fn by(cargo: &mut Command) -> Result<Self> {
        let output = cargo.args(["--no-run", "--message-format=json"]).output().context("cannot start cargo")?;
        Ok(Self { lints: lint::report(&output), is_whole: output.status.success() })
    }
}

/// Cargo, to compile and run all tests of the workspace in the folder `root`.
fn all(root: &Path) -> Command {
    let mut cargo = cargo_test(root, Depth::Short);
    lint::compile_by_clippy(&mut cargo).args(lint::HOST);
    cargo
}

/// Runs them all and counts each.
///
/// # Errors
/// When cargo cannot be started.
pub fn run(workspace: &Workspace, compiled: &Compiled) -> Result<Verdict> {
    match compiled.is_whole {
        true => count_results(&mut all(&workspace.root)),
        false => Ok(Verdict::failed(compiled.lints.join("\n"))),
    }
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
    Ok(names.map(|name| Test::new(format!("units/{name}"), move || run_deep(workspace, &name))).collect())
}

fn run_deep(workspace: &Workspace, package: &str) -> Result<Verdict> {
    count_results(cargo_test(&workspace.root, Depth::Deep).args(["--package", package]))
}

fn cargo_test(root: &Path, depth: Depth) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["test", "--quiet", "--no-fail-fast"]).stdin(Stdio::null());
    match depth {
        Depth::Short => cargo.env_remove(DEEP_VARIABLE),
        Depth::Deep => cargo.env(DEEP_VARIABLE, "1"),
    };
    cargo
}

/// Runs tests and counts them.
fn count_results(cargo: &mut Command) -> Result<Verdict> {
    let output = cargo.output().context("cannot start cargo")?;
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

    /// What compiling a package tells that has a test with this line.
    fn compiled(name: &str, line: &str) -> Compiled {
        let root = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("src")).expect("is made");
        let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n");
        fs::write(root.join("Cargo.toml"), manifest).expect("is written");
        let source = format!("#[test]\nfn is_so() {{\n    {line}\n}}\n");
        fs::write(root.join("src/lib.rs"), source).expect("is written");
        let compiled = Compiled::by(all(&root).env("CARGO_TARGET_DIR", root.join("target"))).expect("runs");
        fs::remove_dir_all(&root).expect("is removed");
        compiled
    }

    #[test]
    fn what_clippy_warns_of_in_a_test_is_told_with_its_line_and_does_not_keep_tests_from_running() {
        let Compiled { lints, is_whole } = compiled("warned", "assert_eq!(std::env::args().count() > 99, false);");
        assert!(matches!(&lints[..], [lint] if lint.starts_with("src/lib.rs:3: warning: ")), "{lints:?}");
        assert!(is_whole);
    }

    #[test]
    fn what_clippy_denies_does_not_compile() {
        let Compiled { lints, is_whole } = compiled("denied", "assert!(std::env::args().count() as f64 > -3.14);");
        assert!(matches!(&lints[..], [lint] if lint.starts_with("src/lib.rs:3: error: ")), "{lints:?}");
        assert!(!is_whole);
    }

    #[test]
    fn what_has_no_lints_compiles() {
        let Compiled { lints, is_whole } = compiled("clean", "assert_eq!(\"a\".len(), 1);");
        assert!(lints.is_empty() && is_whole, "{lints:?}");
    }

    #[test]
    fn counts_of_all_packages_are_added_up() {
        let text = "running 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.00s\n\n\
                    test result: FAILED. 10 passed; 2 failed; 1 ignored\n";
        assert_eq!(count(text), Count { passed: 13, failed: 2 });
    }
}
