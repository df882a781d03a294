//! `./skink test`: everything that continuous integration runs.
//!
//! A test is a [`Test`]: a name and something to do that ends well or with the reason why not. They come
//! from `units` (cargo's tests), `check`, `scripts` (tests/qemu and tests/host), `linux` (tests/linux), `m3ipc` (tests/m3ipc), `m3ipc_module` (the same under its module of Linux), `iso`, `bochs` and `fresh`;
//! `pool` runs them. The last line says how many passed and failed.
//!
//! A proof that takes long has a short form, which samples with a fixed seed, and a full one, for
//! `./skink test deep`: its source asks for the environment variable [`DEEP_VARIABLE`].

mod bochs;
pub mod case;
mod dialogue;
mod fresh;
mod iso;
mod linux;
mod m3ipc;
mod m3ipc_module;
mod pool;
mod record;
mod scripts;
mod units;

pub use record::record;

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::check;
use crate::cli::{Depth, FAULTS, FaultOptions};
use crate::faults;
use crate::monolith;
use crate::power;
use crate::system;
use crate::workspace::Workspace;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use units::Compiled;

/// The names of the tests that cargo has, and of the rules.
const UNITS: &str = "units";
const CHECK: &str = "check";
/// The name of the test that runs only when asked for: it takes long, and CI's machine is one already.
const FRESH: &str = "fresh";
/// Set for the full forms, on this machine and in the guest. What does not mention it has one form only.
const DEEP_VARIABLE: &str = "SKINK_DEEP";

/// How many tests of cargo's kind passed and failed in one of ours.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Count {
    passed: usize,
    failed: usize,
}

/// Result of a test: counts of passed and failed, and the output of failures.
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
    run: Box<dyn Fn() -> Result<Verdict> + Send + Sync + 'a>,
}

impl<'a> Test<'a> {
    fn new(name: impl Into<String>, run: impl Fn() -> Result<Verdict> + Send + Sync + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// State shared by the tests.
struct Setting<'a> {
    workspace: &'a Workspace,
    depth: Depth,
    /// Part of the names of the tests that are asked for; empty for all.
    asked: &'a str,
    /// The systems, by name, each built when a test first asks for it.
    bundles: BTreeMap<String, OnceLock<Bundle>>,
    /// Our C programs, which the guest of every case has.
    c_programs: OnceLock<Vec<CProgram>>,
    /// Folder of the library and the broker of M3-IPC in Linux.
    m3ipc: OnceLock<m3ipc::Programs>,
    /// What the programs of tests/m3ipc have printed in the guest.
    m3ipc_ran: Mutex<Option<m3ipc::Ran>>,
    /// What the programs of tests/linux have printed in the guest.
    behaviours: Mutex<Option<linux::Ran>>,
    /// The tests of cargo's kind, or why they could not be compiled.
    units: OnceLock<Result<Compiled>>,
    /// Held while something else of this is built.
    building: Mutex<()>,
    /// Where what is left of failed tests is kept.
    failures: PathBuf,
}

impl<'a> Setting<'a> {
    fn new(workspace: &'a Workspace, depth: Depth, asked: &'a str) -> Self {
        let bundles = system::names(workspace).into_iter().map(|name| (name, OnceLock::new())).collect();
        let failures = workspace.build.join("failed");
        let (c_programs, m3ipc, m3ipc_ran) = (OnceLock::new(), OnceLock::new(), Mutex::new(None));
        let (behaviours, units, building) = (Mutex::new(None), OnceLock::new(), Mutex::new(()));
        Self { workspace, depth, asked, bundles, c_programs, m3ipc, m3ipc_ran, behaviours, units, building, failures }
    }

    fn is_wanted(&self, test: &str) -> bool {
        test.contains(self.asked)
    }

    fn bundle(&self, system: &str) -> Result<&Bundle> {
        let names = || format!("expected one of the systems {:?}, not '{system}'", self.bundles.keys());
        let bundle = self.bundles.get(system).with_context(names)?;
        self.built(bundle, || Bundle::build(self.workspace, system))
    }

    /// The tests of cargo's kind, compiled by whoever first needs them; the others wait.
    fn units(&self) -> Result<&Compiled> {
        let compiled = self.units.get_or_init(|| Compiled::of(&self.workspace.root));
        compiled.as_ref().map_err(|error| anyhow!("{error:#}"))
    }

    fn c_programs(&self) -> Result<&[CProgram]> {
        self.built(&self.c_programs, || c_programs::compile_all(self.workspace)).map(Vec::as_slice)
    }

    /// Returns the content of `place`; the first call builds it. Who finds it built does not wait for what others build.
    fn built<'b, T>(&self, place: &'b OnceLock<T>, build: impl FnOnce() -> Result<T>) -> Result<&'b T> {
        if let Some(built) = place.get() {
            return Ok(built);
        }
        let _one_at_a_time = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        match place.get() {
            Some(built) => Ok(built),
            None => build().map(|built| place.get_or_init(|| built)),
        }
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
/// When there is no such test.
pub fn test(workspace: &Workspace, depth: Depth, name: Option<&str>) -> Result<u8> {
    if name == Some(FRESH) {
        return report(pool::run(&[Test::new(FRESH, || fresh::run(workspace))]));
    }
    let setting = Setting::new(workspace, depth, name.unwrap_or_default());
    // What failed before is of no interest any more; there may be nothing.
    let _ = fs::remove_dir_all(&setting.failures);
    let mut tests = match depth {
        Depth::Short => short(&setting)?,
        Depth::Deep => deep(&setting)?,
    };
    if let Some(name) = name {
        tests.retain(|test| setting.is_wanted(&test.name));
        if tests.is_empty() {
            let kind = if depth == Depth::Deep { "deep test" } else { "test" };
            bail!("there is no {kind} with '{name}' in its name");
        }
    }
    report(pool::run(&tests))
}

/// Everything, each in its short form if it has one. The longest come first, so that all jobs end at about the same time; those that wait for
/// the first of their kind, which runs for all, come last, so that they do not keep jobs from the others.
fn short<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let workspace = setting.workspace;
    let mut tests =
        vec![Test::new(UNITS, || units::run(workspace, setting.units()?)), Test::new(CHECK, || run_check(setting))];
    tests.push(Test::new(FAULTS, || run_faults(workspace)));
    tests.push(Test::new(power::NAME, || run_power_cuts(workspace, Depth::Short)));
    tests.push(m3ipc_module::test(setting));
    let mut waiting = Vec::new();
    for kind in [m3ipc::tests(setting)?, linux::tests(setting)?] {
        let mut kind = kind.into_iter();
        tests.extend(kind.next());
        waiting.extend(kind);
    }
    tests.extend(iso::tests(setting));
    tests.push(bochs::test(setting));
    // Those of this machine compile, and one of them a whole system.
    let (here, in_guest): (Vec<_>, Vec<_>) = scripts::tests(setting)?.into_iter().partition(|test| is_in(test, "host"));
    let (programs, others) = in_guest.into_iter().partition(|test| is_in(test, scripts::PROGRAMS));
    tests.extend(here);
    tests.extend(spread(programs, others));
    tests.extend(waiting);
    Ok(tests)
}

fn is_in(test: &Test, folder: &str) -> bool {
    test.name.split('/').next() == Some(folder)
}

/// Puts two of the `others` after each of Debian's programs: these wait for the network, and for each other while one unpacks packages.
fn spread<T>(programs: Vec<T>, others: Vec<T>) -> Vec<T> {
    let mut others = others.into_iter();
    let mut spread = Vec::new();
    for program in programs {
        spread.push(program);
        spread.extend(others.by_ref().take(2));
    }
    spread.extend(others);
    spread
}

/// Lists the tests that have a full form, in that form.
fn deep<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let workspace = setting.workspace;
    let mut tests = units::deep_tests(workspace)?;
    tests.extend(scripts::deep_tests(setting)?);
    tests.extend(m3ipc::deep_tests(setting)?);
    tests.push(Test::new(FAULTS, || run_all_faults(workspace)));
    tests.push(Test::new(power::NAME, || run_power_cuts(workspace, Depth::Deep)));
    tests.push(Test::new(monolith::NAME, || run_monolith(workspace)));
    tests.push(m3ipc_module::deep_test(setting));
    Ok(tests)
}

fn run_check(setting: &Setting) -> Result<Verdict> {
    // Where the tests of this machine run, too, it is compiled once for both.
    let lints = || match setting.is_wanted(UNITS) {
        true => Ok(setting.units()?.lints.clone()),
        false => check::lint::of_host(setting.workspace),
    };
    let problems = check::problems(setting.workspace, lints)?;
    Ok(if problems.is_empty() { Verdict::passed() } else { Verdict::failed(problems.join("\n")) })
}

fn run_faults(workspace: &Workspace) -> Result<Verdict> {
    Ok(faults::check(workspace)?.map_or_else(Verdict::passed, Verdict::failed))
}

fn run_power_cuts(workspace: &Workspace, depth: Depth) -> Result<Verdict> {
    Ok(power::run(workspace, depth)?.map_or_else(Verdict::passed, Verdict::failed))
}

fn run_monolith(workspace: &Workspace) -> Result<Verdict> {
    Ok(monolith::run(workspace)?.map_or_else(Verdict::passed, Verdict::failed))
}

fn run_all_faults(workspace: &Workspace) -> Result<Verdict> {
    let options = FaultOptions { all: true, resume: true, ..FaultOptions::default() };
    Ok(match faults::faults(workspace, &options)? {
        0 => Verdict::passed(),
        _ => Verdict::failed("the tables above say which trials ended badly".to_string()),
    })
}

fn report(count: Count) -> Result<u8> {
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(u8::from(count.failed > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_spread_and_none_is_lost() {
        assert_eq!(spread(vec!["p", "q"], vec!["a", "b", "c", "d", "e"]), ["p", "a", "b", "q", "c", "d", "e"]);
        assert_eq!(spread(vec!["p", "q", "r"], vec!["a"]), ["p", "a", "q", "r"]);
    }
}
