//! The reports of one system, in a file: an interrupted comparison goes on where it was.

use super::trial::Report;
use crate::faults::trial::Trial;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// What stands between a report and the words about its trial.
const BETWEEN: &str = " | ";

/// Reports as they come.
pub struct Record {
    /// Those of the first trials, in their order.
    pub reports: Vec<Report>,
    file: File,
}

impl Record {
    /// The record of these trials of the system `name`, with what an earlier run has found in the first of them.
    ///
    /// # Errors
    /// When its file cannot be read or written.
    pub fn open(folder: &Path, name: &str, trials: &[Trial]) -> Result<Self> {
        let path = folder.join(format!("{name}.results"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known: Vec<(Report, &str)> = text.split_inclusive('\n').zip(trials).map_while(known).collect();
        let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let lines: String = known.iter().map(|(_, line)| *line).collect();
        file.write_all(lines.as_bytes())?;
        Ok(Self { reports: known.into_iter().map(|(report, _)| report).collect(), file })
    }

    /// Adds the report of the next trial.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, trial: &Trial, report: Report) -> Result<()> {
        writeln!(self.file, "{}{BETWEEN}{trial}", report.line()).context("cannot write the results")?;
        self.reports.push(report);
        Ok(())
    }
}

/// Ends the records of a comparison that is complete: the next one begins anew.
///
/// # Errors
/// When a file cannot be renamed.
pub fn finish(folder: &Path, names: [&str; 2]) -> Result<()> {
    names.into_iter().try_for_each(|name| {
        let path = folder.join(format!("{name}.results"));
        fs::rename(&path, path.with_extension("done")).with_context(|| format!("cannot rename {}", path.display()))
    })
}

/// The report in a line of the file, and the line, if it is whole and of this trial.
fn known<'a>((line, trial): (&'a str, &Trial)) -> Option<(Report, &'a str)> {
    let (report, words) = line.strip_suffix('\n')?.rsplit_once(BETWEEN)?;
    let report = Report::from_line(report).filter(|_| words == trial.to_string())?;
    Some((report, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::trial::Trial;

    #[test]
    fn reports_are_kept_as_far_as_they_are_whole_and_of_the_same_trials() {
        let trials = [Trial::undisturbed("one"), Trial::undisturbed("two")];
        let line = |words: &str| format!("Error Driver 7 error/copy/fsync/5 | {words}\n");
        let count = |text: String| text.split_inclusive('\n').zip(&trials).map_while(known).count();
        assert_eq!(count(line(&trials[0].to_string()) + &line(&trials[1].to_string())), 2);
        assert_eq!(count(line(&trials[0].to_string()) + line(&trials[1].to_string()).trim_end()), 1);
        assert_eq!(count(line(&trials[1].to_string())), 0);
    }
}
