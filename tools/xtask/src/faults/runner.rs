//! Runs trials in guests: boots them, ends them, and sees that no trial is blamed for another's damage.

use super::report::Log;
use super::session::Session;
use super::trial::{Fault, Outcome, Report, Trial};
use crate::bundle::Media;
use crate::workspace::Workspace;
use anyhow::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A guest is ended in good order, and its disks checked, after so many trials.
const TRIALS_OF_A_GUEST: usize = 200;

/// How often a guest is tried to be started.
const BOOTS: u32 = 3;

/// What runs trials.
pub struct Runner<'a> {
    /// Where guests have their files.
    pub workspace: &'a Workspace,
    /// What they boot.
    pub media: &'a Media,
    /// Where reports go.
    pub log: &'a Log,
    /// Consoles of good trials are kept, too.
    pub keep_consoles: bool,
}

/// Services that go on in their own memory, and that the system has only so many tries for.
const ROOTS: [&str; 3] = ["rs", "vm", "pm"];

/// A guest after this is not as others are: one of the roots has computed with a mistake in its text.
fn has_spoiled(trial: &Trial, report: &Report) -> bool {
    let is_mutated = matches!(trial.fault, Fault::Poke(_));
    is_mutated && ROOTS.contains(&trial.service.as_str()) && report.outcome > Outcome::NotManifested
}

/// A guest between two trials.
struct Guest<'a> {
    session: Session,
    trials: Vec<&'a Trial>,
}

impl Runner<'_> {
    /// Runs the trials in so many guests side by side.
    ///
    /// # Errors
    /// When a guest cannot be run.
    pub fn run(&self, trials: &[&Trial], guests: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..guests {
                scope.spawn(|| {
                    if let Err(error) = self.run_in_a_row(trials, &next) {
                        failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                        // Nobody begins another trial.
                        next.store(trials.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn run_in_a_row(&self, trials: &[&Trial], next: &AtomicUsize) -> Result<()> {
        let mut guest = None;
        while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            let running = match guest.take() {
                Some(running) => running,
                None => self.boot()?,
            };
            let (report, left) = self.run_one(running, trial)?;
            self.log.add(trial, &report)?;
            guest = left;
        }
        guest.map_or(Ok(()), |guest| self.end(guest))
    }

    /// Boots a guest; a start that fails is told of, and tried again.
    fn boot<'t>(&self) -> Result<Guest<'t>> {
        for _ in 1..BOOTS {
            match Session::boot(self.workspace, self.media) {
                Ok(session) => return Ok(Guest { session, trials: Vec::new() }),
                Err(error) => eprintln!("a guest did not start, trying another: {error:#}"),
            }
        }
        Ok(Guest { session: Session::boot(self.workspace, self.media)?, trials: Vec::new() })
    }

    /// Runs `trial`. → its report, and the guest if it can go on.
    fn run_one<'t>(&self, mut guest: Guest<'t>, trial: &'t Trial) -> Result<(Report, Option<Guest<'t>>)> {
        let mut report = guest.session.run(trial)?;
        if report.outcome >= Outcome::ClientError
            && let Some(before) = guest.trials.last().filter(|before| matches!(before.fault, Fault::Poke(_)))
        {
            let seen = report;
            guest.session.keep_console(&self.log.console_of(trial.number))?;
            let before = *before;
            guest = self.boot()?;
            report = guest.session.run(trial)?;
            if report.outcome < seen.outcome {
                if seen.was_refused() || self.happens_after(before, trial, seen.outcome)? {
                    self.blame(before, trial, &seen)?;
                } else {
                    // It happened while this one was disturbed, and nothing says that another was the cause.
                    report = seen;
                }
            }
        }
        guest.trials.push(trial);
        if report.outcome >= Outcome::ClientError || self.keep_consoles {
            guest.session.keep_console(&self.log.console_of(trial.number))?;
        }
        if report.outcome >= Outcome::Corrupted {
            return Ok((report, None));
        }
        if has_spoiled(trial, &report) {
            return Ok((self.look_after(guest, report)?, None));
        }
        if guest.trials.len() == TRIALS_OF_A_GUEST {
            self.end(guest)?;
            return Ok((report, None));
        }
        Ok((report, Some(guest)))
    }

    /// Does the work once more undisturbed: what is not in order then is late damage of the trial before.
    fn look_after(&self, mut guest: Guest, report: Report) -> Result<Report> {
        let after = guest.session.run(&Trial::undisturbed("vfs"))?;
        if after.outcome <= report.outcome.max(Outcome::Recovered) {
            return Ok(report);
        }
        guest.session.keep_console(&self.log.console_of(report.number))?;
        let reason = format!("later: {}", after.reason);
        Ok(Report { outcome: after.outcome, reason, ..report })
    }

    /// Whether `trial` comes to such an outcome again when a new guest has run `before`.
    fn happens_after(&self, before: &Trial, trial: &Trial, outcome: Outcome) -> Result<bool> {
        let mut guest = self.boot()?;
        let first = guest.session.run(before)?;
        Ok(first.outcome >= outcome
            || first.outcome < Outcome::Corrupted && guest.session.run(trial)?.outcome >= outcome)
    }

    /// What happened in `trial` does not happen in a new guest: it is late damage of the mutation `before` it.
    fn blame(&self, before: &Trial, trial: &Trial, seen: &Report) -> Result<()> {
        let reason = format!("later, in trial {}: {}", trial.number, seen.reason);
        self.log.add(before, &Report { number: before.number, outcome: seen.outcome, reason, recovery_ns: 0 })
    }

    /// Ends a guest. A mutated driver may have written what it liked, but after kills alone the disks have to be clean.
    fn end(&self, guest: Guest) -> Result<()> {
        let only_kills = guest.trials.iter().all(|trial| matches!(trial.fault, Fault::KillAfter(_)));
        let (Err(error), true, Some(last)) = (guest.session.end(), only_kills, guest.trials.last()) else {
            return Ok(());
        };
        let reason = format!("after {} kills: {error:#}", guest.trials.len());
        self.log.add(last, &Report { number: last.number, outcome: Outcome::Corrupted, reason, recovery_ns: 0 })
    }
}
