//! `./skink test`: everything that continuous integration runs.
//!
//! A test is a [`Test`]: a name and something to do that ends well or with the reason why not. They come
//! from `units` (cargo's tests), `check`, `scripts` (tests/qemu and tests/host), `iso` and `fresh`;
//! `pool` runs them. The last line says how many passed and failed.

pub mod case;
mod dialogue;
mod fresh;
mod iso;
mod pool;
mod scripts;
mod units;

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::check;
use crate::cli::FAULTS;
use crate::faults;
use crate::system;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The name of the test that runs only when asked for: it takes long, and CI's machine is one already.
const FRESH: &str = "fresh";

/// How many tests of cargo's kind passed and failed in one of ours.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Count {
    passed: usize,
    failed: usize,
}

/// What came of a test: how many passed and failed in it, and what to show of failures.
struct Verdict {
    count: Count,
    details: String,
}

impl Verdict {
    fn passed() -> Self {
        Self { count: Count { passed: 1, failed: 0 }, details: String::new() }
    }

    fn failed(details: String) -> Self {
        Self { count: Count { passed: 0, failed: 1 }, details }
    }
}

/// One test.
struct Test<'a> {
    name: String,
    /// It boots the systems, so they have to be built before.
    boots: bool,
    run: Box<dyn Fn() -> Result<Verdict> + Send + Sync + 'a>,
}

impl<'a> Test<'a> {
    /// A test that needs nothing built.
    fn new(name: impl Into<String>, run: impl Fn() -> Result<Verdict> + Send + Sync + 'a) -> Self {
        Self { name: name.into(), boots: false, run: Box::new(run) }
    }

    /// A test that boots a machine.
    fn booting(name: impl Into<String>, run: impl Fn() -> Result<Verdict> + Send + Sync + 'a) -> Self {
        Self { boots: true, ..Self::new(name, run) }
    }
}

/// What the tests share.
struct Setting<'a> {
    workspace: &'a Workspace,
    /// Set before the first test that boots.
    built: OnceLock<Built>,
    /// Where what is left of failed tests is kept.
    failures: PathBuf,
}

/// What tests boot.
struct Built {
    /// The systems, by name.
    bundles: BTreeMap<String, Bundle>,
    /// Our C programs, which the guest of every case has.
    c_programs: Vec<CProgram>,
}

impl Built {
    fn build(workspace: &Workspace) -> Result<Self> {
        let bundle = |name: String| Bundle::build(workspace, &name).map(|bundle| (name, bundle));
        let bundles = system::names(workspace).into_iter().map(bundle).collect::<Result<_>>()?;
        Ok(Self { bundles, c_programs: c_programs::compile(workspace, None)? })
    }
}

impl Setting<'_> {
    fn built(&self) -> Result<&Built> {
        self.built.get().context("nothing was built for this test")
    }

    fn bundle(&self, system: &str) -> Result<&Bundle> {
        let bundles = &self.built()?.bundles;
        bundles.get(system).with_context(|| format!("expected one of the systems {:?}, not '{system}'", bundles.keys()))
    }

    /// An empty folder for what is left of the failed test `name`.
    fn failure_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.failures.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// Runs the tests whose name contains `name`, or all but `fresh`. Returns 1 when one failed.
///
/// # Errors
/// When there is no such test, or what the tests need does not build.
pub fn test(workspace: &Workspace, name: Option<&str>) -> Result<u8> {
    if name == Some(FRESH) {
        return report(pool::run(&[Test::new(FRESH, || fresh::run(workspace))]));
    }
    let setting = Setting { workspace, built: OnceLock::new(), failures: workspace.build.join("failed") };
    // What failed before is of no interest any more; there may be nothing.
    let _ = fs::remove_dir_all(&setting.failures);
    let mut tests = all(&setting)?;
    if let Some(name) = name {
        tests.retain(|test| test.name.contains(name));
        if tests.is_empty() {
            bail!("there is no test with '{name}' in its name");
        }
    }
    if tests.iter().any(|test| test.boots) {
        let built = Built::build(workspace)?;
        setting.built.get_or_init(|| built);
    }
    report(pool::run(&tests))
}

fn all<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    // The longest come first, so that the two jobs end at about the same time.
    let mut tests =
        vec![Test::new("units", || units::run(setting.workspace)), Test::new("check", || run_check(setting.workspace))];
    tests.push(Test::booting(FAULTS, || run_faults(setting.workspace)));
    tests.extend(scripts::tests(setting)?);
    tests.extend(iso::tests(setting));
    Ok(tests)
}

fn run_check(workspace: &Workspace) -> Result<Verdict> {
    let problems = check::problems(workspace)?;
    Ok(if problems.is_empty() { Verdict::passed() } else { Verdict::failed(problems.join("\n")) })
}

fn run_faults(workspace: &Workspace) -> Result<Verdict> {
    Ok(faults::check(workspace)?.map_or_else(Verdict::passed, Verdict::failed))
}

fn report(count: Count) -> Result<u8> {
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(u8::from(count.failed > 0))
}
