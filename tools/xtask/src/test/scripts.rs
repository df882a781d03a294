//! Cases that are files: tests/qemu/NAME.sh and tests/programs/NAME.sh run in the guest, tests/qemu/NAME.console is a dialogue
//! with its console, tests/host/NAME.sh runs here. tests/qemu/README.md tells how to write one.

use super::case::{self, Case};
use super::{DEEP_VARIABLE, Setting, Test, Verdict, dialogue};
use crate::cli::Depth;
use crate::debian::Set;
use crate::guest::{Guest, Job, Outcome};
use crate::keys::Script;
use crate::linux::Linux;
use crate::linux_guest;
use crate::process::{self, tail};
use crate::second_line::SecondLine;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The folder of tests/ whose cases print the same on Linux.
pub const PROGRAMS: &str = "programs";
/// File name of the picture of the screen when the command has ended.
const SCREENSHOT: &str = "screen.ppm";
/// How much is shown of a failure.
const SHOWN_LINES: usize = 30;
/// The full form of a case may take this many times longer.
const DEEP_LIMITS: u32 = 10;

/// All cases that are files.
///
/// # Errors
/// When a case is written wrongly.
pub fn tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let root = &setting.workspace.root;
    let mut tests = Vec::new();
    for folder in ["qemu", PROGRAMS] {
        for case in case::find(root, folder, "sh")? {
            tests.push(Test::new(case.name.clone(), move || run_in_guest(setting, &case)));
        }
    }
    for case in case::find(root, "qemu", "console")? {
        tests.push(Test::new(case.name.clone(), move || dialogue::run(setting, &case)));
    }
    for case in case::find(root, "host", "sh")? {
        tests.push(Test::new(case.name.clone(), move || run_here(setting, &case)));
    }
    Ok(tests)
}

/// The cases that have a full form, in the guest and here.
///
/// # Errors
/// When a case is written wrongly.
pub fn deep_tests<'a>(setting: &'a Setting) -> Result<Vec<Test<'a>>> {
    let has_full_form = |case: &Case| case.text.contains(DEEP_VARIABLE);
    let mut in_guest = case::find(&setting.workspace.root, "qemu", "sh")?;
    in_guest.extend(case::find(&setting.workspace.root, PROGRAMS, "sh")?);
    let in_guest = in_guest.into_iter().filter(has_full_form);
    let here = case::find(&setting.workspace.root, "host", "sh")?.into_iter().filter(has_full_form);
    let in_guest = in_guest.map(|case| Test::new(case.name.clone(), move || run_in_guest(setting, &case)));
    Ok(in_guest.chain(here.map(|case| Test::new(case.name.clone(), move || run_here(setting, &case)))).collect())
}

/// The command for the guest, and how long it may take.
fn command_of(case: &Case, depth: Depth) -> (String, Duration) {
    match depth {
        Depth::Short => (case.text.clone(), limit_of(case, depth)),
        Depth::Deep => (format!("export {DEEP_VARIABLE}=1\n{}", case.text), limit_of(case, depth)),
    }
}

/// How long the case may take.
fn limit_of(case: &Case, depth: Depth) -> Duration {
    match depth {
        Depth::Short => case.terms.limit,
        Depth::Deep => case.terms.limit * DEEP_LIMITS,
    }
}

/// Output and exit status of a case in the guest.
pub struct Printed {
    outcome: Outcome,
    /// What it printed.
    pub output: Vec<u8>,
    errors: Vec<u8>,
}

impl Printed {
    /// Runs a guest to its end.
    ///
    /// # Errors
    /// As of [`Guest::run`].
    pub fn by(guest: &Guest) -> Result<Printed> {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let outcome = guest.run(|bytes| output.extend_from_slice(bytes), |bytes| errors.extend_from_slice(bytes))?;
        Ok(Printed { outcome, output, errors })
    }

    /// Whether the case has ended as it has to.
    ///
    /// # Errors
    /// When it has not.
    pub fn check_end(&self, case: &Case) -> Result<()> {
        if self.outcome.timed_out {
            bail!("time limit exceeded");
        }
        match self.outcome.status {
            Some(status) if status == case.terms.status => Ok(()),
            Some(status) => bail!("exit status {status} instead of {}", case.terms.status),
            None => bail!("the machine stopped before the script ended"),
        }
    }

    /// What it printed on standard error, and what the kernel said.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }
}

/// What a case's job is made of, with files in a folder of the run.
pub struct Parts<'a> {
    case: &'a Case,
    work: &'a Path,
    command: String,
    limit: Duration,
    overlay: PathBuf,
    packages: Option<Set>,
    check: Option<PathBuf>,
}

impl<'a> Parts<'a> {
    /// Makes them.
    ///
    /// # Errors
    /// When the case's set-up fails, or a package cannot be had.
    pub fn of(setting: &Setting, case: &'a Case, work: &'a Path) -> Result<Parts<'a>> {
        let overlay = make_overlay(case, &work.join("overlay"), &setting.workspace.build.join("programs"))?;
        let (command, limit) = command_of(case, setting.depth);
        let packages = packages(setting, &case.terms.packages)?;
        Ok(Parts { case, work, command, limit, overlay, packages, check: case.companion("check") })
    }

    /// The job.
    ///
    /// # Errors
    /// When the case's keys cannot be read, or a program does not compile.
    pub fn job<'b>(&'b self, setting: &'b Setting) -> Result<Job<'b>> {
        let terms = &self.case.terms;
        Ok(Job {
            overlays: std::slice::from_ref(&self.overlay),
            packages: self.packages.as_ref(),
            c_programs: setting.c_programs()?,
            wants_out: self.check.is_some(),
            icount: terms.icount,
            tablet: terms.tablet,
            devices: &terms.devices,
            traced: &terms.traced,
            memory_mib: terms.memory_mib,
            disk_rate: terms.disk_rate,
            has_journal: terms.has_journal,
            second_disk_mib: terms.second_disk_mib,
            free_inodes: terms.free_inodes,
            second_line: second_line(self.case, &self.overlay)?,
            keys: self.case.companion("keys").as_deref().map(Script::read).transpose()?,
            screenshot: terms.screen.then(|| self.work.join(SCREENSHOT)),
            limit: Some(self.limit),
            ..Job::new(&self.command)
        })
    }

    /// Runs the case's own check of what the guest has left.
    ///
    /// # Errors
    /// When it fails.
    pub fn check(&self, guest: &Guest, printed: &Printed) -> Result<()> {
        let Some(check) = &self.check else { return Ok(()) };
        let [output, errors, out] = ["stdout", "stderr", "out"].map(|name| self.work.join(name));
        fs::write(&output, &printed.output)?;
        fs::write(&errors, &printed.errors)?;
        guest.bring_out(&out)?;
        let mut variables: Vec<(&str, &Path)> =
            vec![("STDOUT", &output), ("STDERR", &errors), ("OUT", &out), ("OVERLAY", &self.overlay)];
        variables.extend(guest.printed().map(|path| ("PRINTED", path)));
        variables.extend(guest.traced().map(|path| ("TRACED", path)));
        variables.extend(guest.screenshot().map(|path| ("SCREEN", path)));
        run_script(check, &variables)
    }
}

fn run_in_guest(setting: &Setting, case: &Case) -> Result<Verdict> {
    let bundle = setting.bundle(&case.terms.system)?;
    let work = setting.workspace.run_folder()?;
    let parts = Parts::of(setting, case, work.path())?;
    let guest = Guest::prepare(setting.workspace, bundle, &parts.job(setting)?)?;
    let mut printed = Printed::by(&guest)?;
    let continued =
        if case.terms.linux { continue_on_linux(setting, case, &parts, &guest, &mut printed) } else { Ok(()) };
    match continued.and_then(|()| judge(case, &guest, &printed, &parts)) {
        Ok(()) => Ok(Verdict::passed()),
        Err(reason) => {
            let kept = keep(setting, case, &printed)?;
            Ok(Verdict::failed(explain(&format!("{reason:#}"), &printed, &kept)))
        }
    }
}

/// Runs the case again on Debian's Linux, with the disk that Skink has left; what Linux prints comes behind what Skink has printed.
///
/// # Errors
/// When the disk is not clean, or Linux does not boot.
fn continue_on_linux(
    setting: &Setting,
    case: &Case,
    parts: &Parts,
    guest: &Guest,
    printed: &mut Printed,
) -> Result<()> {
    printed.check_end(case)?;
    let [disk] = guest.disks() else { bail!("`linux` is for systems with one disk") };
    check_disk(disk)?;
    let debian = {
        let _alone = setting.workspace.fetch_alone();
        Linux::get(setting.workspace)?
    };
    let bundle = setting.bundle(&case.terms.system)?;
    let linux = linux_guest::take_over(setting.workspace, bundle, &debian, &parts.job(setting)?, disk)?;
    let again = Printed::by(&linux)?;
    printed.output.extend(again.output);
    printed.errors.extend(again.errors);
    printed.outcome = again.outcome;
    Ok(())
}

/// Debian packages by their names. One case at a time downloads and unpacks.
///
/// # Errors
/// When there is no such package or no network.
pub fn packages(setting: &Setting, names: &[String]) -> Result<Option<Set>> {
    let _alone = setting.workspace.fetch_alone();
    Set::get(&setting.workspace.build, names)
}

/// The case's script for the other end of the second serial line.
fn second_line(case: &Case, overlay: &Path) -> Result<Option<SecondLine>> {
    let Some(script) = case.companion("com2") else { return Ok(None) };
    let variables = vec![("OVERLAY".to_string(), overlay.into())];
    Ok(Some(SecondLine { command: fs::read_to_string(script)?, variables }))
}

/// The folder that is laid over the root: what the case's own script puts there, which finds the system's programs in a folder.
///
/// # Errors
/// When the script fails.
pub fn make_overlay(case: &Case, overlay: &Path, programs: &Path) -> Result<PathBuf> {
    fs::create_dir_all(overlay)?;
    if let Some(setup) = case.companion("setup") {
        run_script(&setup, &[("OVERLAY", overlay), ("PROGRAMS", programs)])?;
    }
    Ok(overlay.to_path_buf())
}

/// Ok when everything is as the case wants it.
fn judge(case: &Case, guest: &Guest, printed: &Printed, parts: &Parts) -> Result<()> {
    printed.check_end(case)?;
    if let Some(expect) = case.companion("expect") {
        compare(&fs::read(expect)?, &printed.output)?;
    }
    for disk in guest.disks() {
        check_disk(disk)?;
    }
    parts.check(guest, printed)
}

/// Runs a case's script on this machine, in the script's folder.
fn run_script(script: &Path, variables: &[(&str, &Path)]) -> Result<()> {
    let folder = script.parent().context("the script is in no folder")?;
    let mut shell = Command::new("sh");
    shell.current_dir(folder).arg("-eu").arg(script).envs(variables.iter().copied());
    process::run(&mut shell).with_context(|| script.display().to_string())
}

/// Lines shown of both texts where they part.
const LINES_THAT_DIFFER: usize = 4;

/// Ok when both are equal; else the error shows where they part.
fn compare(expected: &[u8], got: &[u8]) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(got));
    let same = expected.split('\n').zip(got.split('\n')).take_while(|(a, b)| a == b).count();
    let from_there = |text: &str| {
        let lines: Vec<&str> = text.split('\n').skip(same).take(LINES_THAT_DIFFER).collect();
        lines.join("\n")
    };
    bail!(
        "the output differs from the expected one from line {} on\nexpected:\n{}\nprinted:\n{}",
        same + 1,
        from_there(&expected),
        from_there(&got)
    )
}

/// After each run the disk has to be clean.
pub fn check_disk(disk: &Path) -> Result<()> {
    process::run(Command::new("e2fsck").args(["-fn"]).arg(disk)).context("the disk is not clean")
}

/// Keeps what a failed case printed, and returns where.
fn keep(setting: &Setting, case: &Case, printed: &Printed) -> Result<PathBuf> {
    let folder = setting.failure_folder(&case.name)?;
    fs::write(folder.join("stdout"), &printed.output)?;
    fs::write(folder.join("stderr"), &printed.errors)?;
    fs::write(folder.join("console"), &printed.outcome.console)?;
    Ok(folder)
}

fn explain(reason: &str, printed: &Printed, kept: &Path) -> String {
    let output = tail(&String::from_utf8_lossy(&printed.output), SHOWN_LINES);
    let console = tail(&printed.outcome.console, SHOWN_LINES);
    format!("{reason}\noutput:\n{output}\nconsole:\n{console}\nall of it is in {}", kept.display())
}

/// A case on this machine. It finds ./skink as $SKINK, and a build folder of its own in $SKINK_BUILD.
fn run_here(setting: &Setting, case: &Case) -> Result<Verdict> {
    let work = setting.workspace.run_folder()?;
    let root = &setting.workspace.root;
    let mut script = Command::new("timeout");
    match setting.depth {
        Depth::Short => script.env_remove(DEEP_VARIABLE),
        Depth::Deep => script.env(DEEP_VARIABLE, "1"),
    };
    let output = script
        .arg(limit_of(case, setting.depth).as_secs().to_string())
        .args(["sh", "-eu"])
        .arg(&case.path)
        .current_dir(work.path())
        .env("SKINK", root.join("skink"))
        .env("SKINK_BUILD", work.join("build"))
        .env("CARGO_TARGET_DIR", &setting.workspace.target)
        .env_remove("SKINK_LOCK")
        .stdin(Stdio::null())
        .output()
        .context("cannot start sh")?;
    let status = output.status.code().unwrap_or(-1);
    if status == i32::from(case.terms.status) {
        return Ok(Verdict::passed());
    }
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let shown = format!("{}\n{}", tail(&stdout, SHOWN_LINES), tail(&stderr, SHOWN_LINES));
    Ok(Verdict::failed(format!("exit status {status} instead of {}\n{shown}", case.terms.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_from_its_line_on() {
        let error = compare(b"a\nb\nc\nd\ne\nf\n", b"a\nx\nc\n").unwrap_err().to_string();
        assert!(error.contains("from line 2 on\nexpected:\nb\nc\nd\ne\nprinted:\nx\nc\n"), "{error}");
        assert!(compare(b"a\n", b"a\n").is_ok());
        assert!(compare(b"a\n", b"a").unwrap_err().to_string().contains("from line 2 on"));
    }
}
