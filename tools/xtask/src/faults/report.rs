//! The record of a campaign: a file of results that it can go on from, progress on the terminal, and the page.

use super::judge;
use super::plan::Size;
use super::table::Results;
use super::trial::{Outcome, Part, Report, Trial};
use crate::process::tail;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// The page of figures.
const PAGE: &str = "docs/faults.md";
/// The section that `monolith` writes at the end of the page.
pub const MONOLITH: &str = "## Beside a monolith";
/// Progress is told after so many trials.
const PROGRESS: usize = 50;
/// Bad trials that are named when a test fails.
const NAMED: usize = 30;
/// Lines of the console that are shown of a lost system.
const CONSOLE_LINES: usize = 20;

/// Reports as they come.
pub struct Log {
    folder: PathBuf,
    kind: &'static str,
    trials: usize,
    started: Instant,
    loud: bool,
    inner: Mutex<Inner>,
}

struct Inner {
    reports: BTreeMap<u32, Report>,
    file: File,
}

impl Log {
    /// An empty log in `folder`.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn new(folder: &Path, kind: &'static str, trials: usize) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        // There may be none.
        let _ = fs::remove_file(folder.join(format!("{kind}.results")));
        Self::resume(folder, kind, trials)
    }

    /// The log of the same campaign, with what it had found when it was interrupted.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn resume(folder: &Path, kind: &'static str, trials: usize) -> Result<Self> {
        let path = folder.join(format!("{kind}.results"));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let text = fs::read_to_string(&path)?;
        // The last line may have been cut off.
        let reports = text.lines().filter_map(|line| Report::from_line(line).ok());
        let reports = reports.map(|report| (report.number, report)).collect();
        let inner = Mutex::new(Inner { reports, file });
        Ok(Self { folder: folder.to_path_buf(), kind, trials, started: Instant::now(), loud: false, inner })
    }

    /// Tells of progress and of every bad outcome on standard error.
    pub fn loudly(self) -> Self {
        Self { loud: true, ..self }
    }

    /// Whether this trial has been run.
    pub fn has(&self, number: u32) -> bool {
        self.lock().reports.contains_key(&number)
    }

    /// Adds the report of `trial`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&self, trial: &Trial, report: &Report) -> Result<()> {
        let mut inner = self.lock();
        writeln!(inner.file, "{}", report.line()).context("cannot write the results")?;
        inner.reports.insert(report.number, report.clone());
        if self.loud {
            if report.outcome >= Outcome::ClientError {
                eprintln!("{}: {trial} ({})", report.outcome.title(), report.reason);
            }
            let done = inner.reports.len();
            if done.is_multiple_of(PROGRESS) || done == self.trials {
                eprintln!("{done} of {} trials, {} s", self.trials, self.started.elapsed().as_secs());
            }
        }
        Ok(())
    }

    /// All reports so far.
    pub fn reports(&self) -> BTreeMap<u32, Report> {
        self.lock().reports.clone()
    }

    /// Where the console of a bad trial is kept.
    pub fn console_of(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{}-{number}.console", self.kind))
    }

    /// The first bad trials, a line for each, and the end of the console where the system was lost.
    pub fn tell_bad(&self, trials: &[Trial]) -> String {
        let reports = self.reports();
        let bad = trials.iter().filter_map(|trial| Some((trial, reports.get(&trial.number)?)));
        let bad = bad.filter(|(_, report)| report.outcome >= Outcome::ClientError);
        let line = |(trial, report): (&Trial, &Report)| {
            let mut line = format!("{}: {trial} ({})", report.outcome.title(), report.reason);
            if report.outcome == Outcome::Lost {
                let console = fs::read(self.console_of(trial.number)).unwrap_or_default();
                line = format!("{line}\n{}", tail(&String::from_utf8_lossy(&console), CONSOLE_LINES));
            }
            line
        };
        bad.take(NAMED).map(line).collect::<Vec<_>>().join("\n")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Writes the page of a campaign. A section that another test has written at the end of the page stays.
///
/// # Errors
/// When it cannot be written.
pub fn write_page(root: &Path, page: &str) -> Result<()> {
    let path = root.join(PAGE);
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, with_end(page, end_of(&old))).with_context(|| format!("cannot write {PAGE}"))
}

/// Writes the section of `monolith`, which begins with the line [`MONOLITH`].
///
/// # Errors
/// When the page cannot be read or written.
pub fn write_section(root: &Path, section: &str) -> Result<()> {
    let path = root.join(PAGE);
    let old = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let page = old.strip_suffix(end_of(&old)).unwrap_or(&old);
    fs::write(&path, with_end(page, section)).with_context(|| format!("cannot write {PAGE}"))
}

/// The section of `monolith` in `page`; empty if there is none.
fn end_of(page: &str) -> &str {
    page.find(&format!("\n{MONOLITH}\n")).map_or("", |at| &page[at + 1..])
}

fn with_end(page: &str, end: &str) -> String {
    format!("{}\n\n{end}", page.trim_end()).trim_end().to_string() + "\n"
}

/// The whole page of a campaign.
pub fn page(results: &Results, seed: u64, size: Size, planned: usize) -> String {
    let kills = if size.every_kill { "each k from 1 to 200" } else { "some k from 1 to 200" };
    let mutations = results.count(Part::Mutations, |_| true).all();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# What injected faults do\n\n\
         Written by `./skink test faults --all`; [the book](book/faults.md) explains the terms. Seed {seed}, {planned} trials: {kills}, \
         {mutations} mutations. A tick is an instruction of the guest; recovery is counted from the moment rs notices the end of a service to the \
         moment its successor is ready.\n"
    );
    text + &judge::table(results, size) + "\n" + &results.tables()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_at_the_end_outlives_a_page_and_is_replaced_alone() {
        let section = format!("{MONOLITH}\n\nold\n");
        let page = with_end("# Page\n\ntable\n\n", &section);
        assert_eq!(page, format!("# Page\n\ntable\n\n{section}"));
        assert_eq!(end_of(&page), section);
        assert_eq!(with_end("# New\n", end_of(&page)), format!("# New\n\n{section}"));
        assert_eq!(with_end("# New\n", end_of("# Page\n")), "# New\n");
    }
}
