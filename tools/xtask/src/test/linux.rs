//! Behaviours of Linux: tests/linux/NAME.c says what a program does, NAME.expect what it prints on Linux.
//!
//! Each program is a test `linux/NAME`. Those that are asked for run in one guest, which the first of them boots; each then judges its own
//! lines. A line is `BEHAVIOUR -> RESULT`. differences.txt lists the behaviours whose result is known to be another, with Skink's; one that
//! agrees with Linux after all fails, so that the list stays true. tests/linux/README.md tells how to write one.

use super::scripts::check_disk;
use super::{Setting, Test, Verdict};
use crate::cli::DEFAULT_SYSTEM;
use crate::guest::{Guest, Job};
use crate::process::{self, tail};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::time::Duration;

/// What the guest's shell runs: each program, after a line with its name.
const COMMAND: &str = "for each in /linux/*; do echo \"program ${each#/linux/}\"; \"$each\"; done";
/// Time limit of the guest.
const LIMIT: Duration = Duration::from_secs(600);
/// Stands between the name of a behaviour and its result.
const ARROW: &str = " ->";
/// Lines of the console that are shown when a program has not ended.
const SHOWN_LINES: usize = 20;

/// Results by behaviour.
type Results = BTreeMap<String, String>;

/// Output of the guest's programs, by program; and why the guest ended early, if it did.
pub struct Ran {
    outputs: BTreeMap<String, String>,
    problem: Option<String>,
}

impl Ran {
    fn failed(error: anyhow::Error) -> Self {
        Self { outputs: BTreeMap::new(), problem: Some(format!("{error:#}")) }
    }
}

/// One test for each program.
///
/// # Errors
/// When tests/linux cannot be read.
pub fn tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let names = sources(&folder(setting))?;
    Ok(names.into_iter().map(|name| Test::new(test_name(&name), move || judge(setting, &name))).collect())
}

fn test_name(program: &str) -> String {
    format!("linux/{program}")
}

fn folder(setting: &Setting) -> PathBuf {
    setting.workspace.root.join("tests/linux")
}

/// The names of the programs in `folder`, sorted.
pub fn sources(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|own| own == "c") {
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Boots a guest with the programs that are asked for, and runs them.
fn run(setting: &Setting) -> Result<Ran> {
    let bundle = setting.bundle(DEFAULT_SYSTEM)?;
    let work = setting.workspace.run_folder()?;
    let overlay = work.join("overlay");
    fs::create_dir_all(overlay.join("linux"))?;
    for name in sources(&folder(setting))?.iter().filter(|name| setting.is_wanted(&test_name(name))) {
        compile(&folder(setting), name, &overlay.join("linux").join(name))?;
    }
    let job = Job { overlays: std::slice::from_ref(&overlay), limit: Some(LIMIT), ..Job::new(COMMAND) };
    let guest = Guest::prepare(setting.workspace, bundle, &job)?;
    let mut output = Vec::new();
    let outcome = guest.run(|bytes| output.extend_from_slice(bytes), |_| ())?;
    let problem = match outcome.status {
        _ if outcome.timed_out => Some("time limit exceeded".to_string()),
        None => Some(format!("the machine stopped\n{}", tail(&outcome.console, SHOWN_LINES))),
        Some(_) => guest.disks().iter().find_map(|disk| check_disk(disk).err()).map(|error| format!("{error:#}")),
    };
    Ok(Ran { outputs: by_program(&String::from_utf8_lossy(&output)), problem })
}

fn compile(folder: &Path, name: &str, to: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.current_dir(folder).arg("@compile.options").arg("-o").arg(to).arg(format!("{name}.c"));
    process::run(&mut cc)
}

/// Splits the guest's output at the lines `program NAME`.
fn by_program(output: &str) -> BTreeMap<String, String> {
    let mut outputs = BTreeMap::new();
    let mut current = String::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("program ") {
            current = name.to_string();
        }
        let lines: &mut String = outputs.entry(current.clone()).or_default();
        lines.push_str(line);
        lines.push('\n');
    }
    outputs
}

/// Compares what the program has printed with what it prints on Linux.
fn judge(setting: &Setting, name: &str) -> Result<Verdict> {
    // Held by the first while it runs all: the others have nothing to judge before.
    let mut behaviours = setting.behaviours.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = behaviours.get_or_insert_with(|| run(setting).unwrap_or_else(Ran::failed));
    let folder = folder(setting);
    let expected = fs::read_to_string(folder.join(format!("{name}.expect")))
        .with_context(|| format!("tests/linux/{name}.expect: run tests/linux/record {name}.c"))?;
    let differences = fs::read_to_string(folder.join("differences.txt")).context("tests/linux/differences.txt")?;
    let printed = ran.outputs.get(name).map(String::as_str).unwrap_or_default();
    let (passed, mut problems) = compare(&results(&expected)?, &results(printed)?, &listed(&differences, name)?);
    problems.extend(ran.problem.clone());
    let mut verdict = Verdict::failed(problems.join("\n"));
    verdict.count.passed = passed;
    verdict.count.failed = problems.len();
    if !problems.is_empty() {
        fs::write(setting.failure_folder(&test_name(name))?.join("stdout"), printed)?;
    }
    Ok(verdict)
}

/// Reads lines `BEHAVIOUR -> RESULT`; others are not looked at.
fn results(output: &str) -> Result<Results> {
    let mut results = Results::new();
    for (behaviour, result) in output.lines().filter_map(|line| line.split_once(ARROW)) {
        if results.insert(behaviour.to_string(), result.trim().to_string()).is_some() {
            bail!("two behaviours are called '{behaviour}'");
        }
    }
    Ok(results)
}

/// The known differences of a program: lines `PROGRAM: BEHAVIOUR -> RESULT`, with reasons between that begin with '#'.
fn listed(differences: &str, program: &str) -> Result<Results> {
    let prefix = format!("{program}: ");
    let lines: Vec<&str> = differences.lines().filter_map(|line| line.strip_prefix(prefix.as_str())).collect();
    results(&lines.join("\n")).context("tests/linux/differences.txt")
}

/// How many behaviours are as they should be, and a line for each that is not.
fn compare(linux: &Results, skink: &Results, known: &Results) -> (usize, Vec<String>) {
    let mut problems = Vec::new();
    let names: BTreeSet<&String> = linux.keys().chain(skink.keys()).chain(known.keys()).collect();
    for name in &names {
        let problem = match (linux.get(*name), skink.get(*name), known.get(*name)) {
            (None, _, Some(_)) => Some("is in differences.txt, but in no .expect".to_string()),
            (None, ..) => Some("is not recorded: run tests/linux/record".to_string()),
            (Some(_), None, _) => Some("did not run".to_string()),
            (Some(linux), Some(skink), None) if linux != skink => Some(format!("Linux: {linux}; Skink: {skink}")),
            (Some(linux), Some(skink), Some(_)) if linux == skink => {
                Some("agrees with Linux now: take it out of differences.txt".to_string())
            }
            (Some(linux), Some(skink), Some(known)) if skink != known => {
                Some(format!("Linux: {linux}; Skink: {skink}; differences.txt: {known}"))
            }
            _ => None,
        };
        problems.extend(problem.map(|problem| format!("{name}: {problem}")));
    }
    (names.len() - problems.len(), problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Results {
        results(lines).expect("has every behaviour once")
    }

    fn problems_of(linux: &str, skink: &str, known: &str) -> (usize, String) {
        let (passed, problems) = compare(&read(linux), &read(skink), &read(known));
        (passed, problems.join("\n"))
    }

    #[test]
    fn a_difference_is_named_with_both_results() {
        let (passed, problems) = problems_of("open -> 3\nclose -> 0", "open -> ENOENT\nclose -> 0", "");
        assert_eq!((passed, problems.as_str()), (1, "open: Linux: 3; Skink: ENOENT"));
    }

    #[test]
    fn a_listed_difference_passes_as_long_as_it_is_exactly_that() {
        assert_eq!(problems_of("open -> 3", "open -> EIO", "open -> EIO"), (1, String::new()));
        assert!(problems_of("open -> 3", "open -> ENOENT", "open -> EIO").1.contains("differences.txt: EIO"));
        assert!(problems_of("open -> 3", "open -> 3", "open -> EIO").1.contains("agrees with Linux now"));
        assert!(problems_of("", "", "open -> EIO").1.contains("in no .expect"));
    }

    #[test]
    fn a_behaviour_that_did_not_run_or_is_not_recorded_fails() {
        assert!(problems_of("open -> 3", "", "").1.contains("did not run"));
        assert!(problems_of("open -> 3", "", "open -> EIO").1.contains("did not run"));
        assert!(problems_of("", "open -> 3", "").1.contains("not recorded"));
    }

    #[test]
    fn two_behaviours_of_one_name_are_refused() {
        assert!(results("open -> 3\nopen -> 4").is_err());
    }

    #[test]
    fn the_output_is_split_by_program_and_the_list_read_by_program() {
        let outputs = by_program("noise\nprogram io\nread -> 1\nprogram open\nopen -> 3\n");
        assert_eq!(read(&outputs["io"]), read("read -> 1"));
        assert_eq!(read(&outputs["open"]), read("open -> 3"));
        let list = "# Why.\nio: read -> 2\nopen: read -> 4\n";
        assert_eq!(listed(list, "io").expect("is right"), read("read -> 2"));
    }
}
