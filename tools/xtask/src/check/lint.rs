//! Rule: neither the compiler nor clippy warns, about any program of the guest, of this machine, or about a test.
//!
//! Clippy compiles as the build does (profile, target, features), so a feature that is switched on by one package is
//! not missed in another. Which lints are allowed, and why, is in the workspace's Cargo.toml. Cargo keeps the warnings of
//! unchanged packages: a second run takes seconds.
//!
//! What is for this machine is only checked, unless its tests are to run, too: then their build is clippy's at the same time
//! ([`compile_by_clippy`]).

use crate::programs::{KERNEL_PACKAGE, Packages, guest_arguments};
use crate::progress::Step;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// One line of cargo's JSON output.
#[derive(Deserialize)]
struct Line {
    message: Option<Diagnostic>,
}

/// A warning or an error.
#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    spans: Vec<Span>,
}

/// A range of source that a diagnostic is about.
#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    is_primary: bool,
}

/// Cargo's arguments that choose what compiles for this machine.
pub const HOST: [&str; 3] = ["--workspace", "--exclude", KERNEL_PACKAGE];

/// Returns every warning and error about programs and tests of this machine.
///
/// # Errors
/// When cargo cannot be started.
pub fn of_host(workspace: &Workspace) -> Result<Vec<String>> {
    let _step = Step::begin("clippy");
    let arguments: Vec<String> = HOST.iter().chain(&["--tests"]).map(ToString::to_string).collect();
    Ok(report(&clippy(workspace, "dev", &arguments)?))
}

/// Returns every warning and error about programs of the guest.
///
/// # Errors
/// When cargo cannot be started.
pub fn of_guest(workspace: &Workspace, packages: &Packages) -> Result<Vec<String>> {
    let _step = Step::begin("clippy");
    let kernel = vec![KERNEL_PACKAGE.to_string()];
    let programs = guest_programs(workspace, packages);
    // As in a build, apart: together, the kernel would get the features that services want of shared libraries.
    let mut problems = report(&clippy(workspace, "release", &guest_arguments(workspace, &kernel))?);
    problems.extend(report(&clippy(workspace, "release", &guest_arguments(workspace, &programs))?));
    Ok(problems)
}

/// Has `cargo` compile the packages of the workspace with clippy, which is the compiler with more lints. [`report`] reads what cargo prints.
/// It is said in an argument: a test that runs cargo would inherit the environment.
pub fn compile_by_clippy(cargo: &mut Command) -> &mut Command {
    cargo.args(["--config", "build.rustc-workspace-wrapper=\"clippy-driver\""])
}

/// The names of all programs that run in the guest, without the kernel.
fn guest_programs(workspace: &Workspace, packages: &Packages) -> Vec<String> {
    let not_guest = ["tools", "host"].map(|folder| workspace.root.join(folder));
    let is_guest = |path: &Path| !not_guest.iter().any(|folder| path.starts_with(folder));
    let programs = packages.all().iter().filter(|package| package.is_program() && is_guest(&package.manifest_path));
    programs.map(|package| package.name.clone()).filter(|name| name != KERNEL_PACKAGE).collect()
}

fn clippy(workspace: &Workspace, profile: &str, arguments: &[String]) -> Result<Output> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["clippy", "--quiet", "--message-format=json", "--keep-going"]);
    cargo.args(["--profile", profile]).args(arguments);
    cargo.stdin(Stdio::null()).output().context("cannot start cargo clippy")
}

/// The problems in what cargo has printed as JSON, each once; if it failed without one, what it said.
pub fn report(output: &Output) -> Vec<String> {
    let problems = diagnostics(&String::from_utf8_lossy(&output.stdout));
    if !output.status.success() && problems.is_empty() {
        return vec![format!("cargo: {}", String::from_utf8_lossy(&output.stderr).trim())];
    }
    problems.into_iter().collect()
}

/// The diagnostics that name a line of a file. The others only count these.
fn diagnostics(json_lines: &str) -> BTreeSet<String> {
    let lines = json_lines.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter_map(|line| describe(&line.message?)).collect()
}

fn describe(diagnostic: &Diagnostic) -> Option<String> {
    let span = diagnostic.spans.iter().find(|span| span.is_primary)?;
    Some(format!("{}:{}: {}: {}", span.file_name, span.line_start, diagnostic.level, diagnostic.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const ARTIFACT: &str = r#"{"reason":"compiler-artifact","target":{}}"#;
    const WARNING: &str = r#"{"reason":"compiler-message","message":{"level":"warning","message":"unused import: `a`","spans":[{"file_name":"a.rs","line_start":1,"is_primary":false},{"file_name":"b.rs","line_start":7,"is_primary":true}]}}"#;
    const TOTAL: &str = r#"{"message":{"level":"warning","message":"1 warning emitted","spans":[]}}"#;

    fn output(status: i32, stdout: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(status << 8),
            stdout: stdout.into(),
            stderr: "error: no such target\n".into(),
        }
    }

    #[test]
    fn a_warning_is_a_problem_with_file_and_line() {
        let printed = [ARTIFACT, WARNING, TOTAL].join("\n");
        assert_eq!(report(&output(0, &printed)), ["b.rs:7: warning: unused import: `a`"]);
    }

    #[test]
    fn a_run_without_warnings_has_no_problems() {
        assert!(report(&output(0, ARTIFACT)).is_empty());
    }

    #[test]
    fn a_clippy_that_fails_without_a_diagnostic_is_a_problem() {
        assert_eq!(report(&output(101, "")), ["cargo: error: no such target"]);
    }
}
