//! `./skink test faults`: disturbs services in guests while programs work there, and counts the outcomes.
//!
//! `plan` draws the trials from a seed, `mutate` makes the mistakes in machine code, `coverage` finds the code that runs; `runner` has
//! trials run in guests, a `session` is such a guest with the program user/faults, and speaks with it in lines of `line`; `table` counts,
//! `judge` compares with what has to be, `report` records and writes. A small campaign runs in continuous integration; `--all` runs the whole,
//! in two guests, goes on where it was interrupted, and writes docs/faults.md. docs/book/faults.md explains the terms.

pub mod coverage;
mod judge;
pub mod line;
pub mod mutate;
pub mod plan;
pub mod report;
mod runner;
mod session;
pub mod table;
pub mod trial;

use crate::bundle::{Bundle, Media};
use crate::c_programs;
use crate::cli::FaultOptions;
use crate::programs::Packages;
use crate::workspace::{RunFolder, Workspace};
use abi::privilege::RESTARTABLE;
use abi::system::Service;
use anyhow::{Context, Result};
use coverage::Coverage;
use plan::{Size, Target};
use report::Log;
use runner::Runner;
use session::Session;
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::Results;
use trial::{Report, Trial};

/// The seed unless another is asked for.
const SEED: u64 = 3;
/// The system that campaigns boot.
const SYSTEM: &str = "faults";
/// Guests of a whole campaign, side by side.
const GUESTS: usize = 2;
/// Services get a heartbeat this often, so that a stuck one costs little time.
const HEARTBEAT_MS: u32 = 50;
/// A campaign restarts services more often than any system should.
const RESTARTS: u32 = 1_000_000;

/// The shortest wait before the restart of a service that has died twice in a row: a service that cannot start must not keep the others
/// from running.
const BACKOFF_MS: u32 = 10;

/// A campaign, built and planned.
pub struct Campaign<'a> {
    workspace: &'a Workspace,
    media: Media,
    // Holds the media.
    _folder: RunFolder,
    drivers: Vec<String>,
    trials: Vec<Trial>,
    seed: u64,
    size: Size,
}

impl<'a> Campaign<'a> {
    /// Builds the system and plans the trials.
    ///
    /// # Errors
    /// When something does not build.
    pub fn prepare(workspace: &'a Workspace, options: &FaultOptions) -> Result<Self> {
        let mut bundle = Bundle::build(workspace, SYSTEM)?;
        let size = if options.all { Size::ALL } else { Size::SMALL };
        let seed = options.seed.unwrap_or(SEED);
        let targets = targets(&mut bundle)?;
        let folder = workspace.run_folder()?;
        let mut contents = bundle.contents(workspace);
        let programs = c_programs::compile(workspace, &["faults"])?;
        contents.programs.extend(programs.into_iter().map(|program| (program.name, program.path)));
        contents.command = Some(session::COMMAND);
        let media = bundle.make_media(&contents, &folder)?;
        let coverage = coverage(workspace, &media, &targets)?;
        let mut trials = plan::trials(&targets, |target, address| coverage.has(target, address), size, seed)?;
        trials.retain(|trial| options.service.as_ref().is_none_or(|only| trial.service == *only));
        trials.retain(|trial| options.trial.is_none_or(|only| trial.number == only));
        let drivers = Packages::read(workspace)?.programs_in(workspace, "drivers");
        Ok(Self { workspace, media, _folder: folder, drivers, trials, seed, size })
    }

    /// Runs the trials that `log` has no report of yet, in so many guests.
    ///
    /// # Errors
    /// When a guest cannot be run.
    pub fn run(&self, guests: usize, log: &Log) -> Result<()> {
        let todo: Vec<&Trial> = self.trials.iter().filter(|trial| !log.has(trial.number)).collect();
        let (workspace, media, keep_consoles) = (self.workspace, &self.media, self.trials.len() == 1);
        Runner { workspace, media, log, keep_consoles }.run(&todo, guests)
    }

    /// The results so far.
    fn results<'b>(&'b self, reports: &'b BTreeMap<u32, Report>) -> Results<'b> {
        Results::new(&self.trials, reports, &self.drivers)
    }
}

/// Makes the system fit for a campaign, and reads its services.
fn targets(bundle: &mut Bundle) -> Result<Vec<Target>> {
    for service in bundle.services_mut() {
        if service.heartbeat_ms > 0 {
            service.heartbeat_ms = HEARTBEAT_MS;
        }
        if service.flags & RESTARTABLE != 0 {
            service.restarts = RESTARTS;
            service.backoff_ms = BACKOFF_MS;
        }
    }
    let services = bundle.services().iter();
    let read = |service: &Service| {
        let restartable = service.flags & RESTARTABLE != 0;
        Target::read(&service.name, &bundle.program(&service.binary), restartable)
    };
    services.map(read).collect()
}

/// Coverage of the undisturbed system; that of an earlier campaign if the programs are the same.
fn coverage(workspace: &Workspace, media: &Media, targets: &[Target]) -> Result<Coverage> {
    let folder = folder(workspace);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let kept = Coverage::path(&folder, targets);
    if let Some(coverage) = Coverage::read(&kept) {
        return Ok(coverage);
    }
    let services = targets.iter().map(|target| &target.name);
    let coverage = Session::log_instructions(workspace, media, services, |log| Coverage::read_log(log, targets))?;
    coverage.write(&kept)?;
    Ok(coverage)
}

/// Where a campaign keeps what it found.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.build.join("faults")
}

/// The test of continuous integration: a small campaign. None when all is well, or what is not.
///
/// # Errors
/// When a guest cannot be run.
pub fn check(workspace: &Workspace) -> Result<Option<String>> {
    let campaign = Campaign::prepare(workspace, &FaultOptions::default())?;
    let log = Log::new(&folder(workspace), "small", campaign.trials.len())?;
    campaign.run(1, &log)?;
    let reports = log.reports();
    Ok(judge::problems(&campaign.results(&reports), campaign.size)
        .map(|problems| format!("{problems}\n{}", log.tell_bad(&campaign.trials))))
}

/// `./skink test faults` with its options: the tables go to the terminal, and of the whole campaign to docs/faults.md.
///
/// # Errors
/// When a guest cannot be run or the results cannot be written.
pub fn faults(workspace: &Workspace, options: &FaultOptions) -> Result<u8> {
    let campaign = Campaign::prepare(workspace, options)?;
    let kind = if options.all { "all" } else { "small" };
    let log = match options.resume {
        true => Log::resume(&folder(workspace), kind, campaign.trials.len())?,
        false => Log::new(&folder(workspace), kind, campaign.trials.len())?,
    };
    let log = log.loudly();
    workspace.release_lock();
    campaign.run(GUESTS, &log)?;
    let reports = log.reports();
    let results = campaign.results(&reports);
    let page = report::page(&results, campaign.seed, campaign.size, campaign.trials.len());
    println!("{page}");
    if options.all && options.service.is_none() && options.trial.is_none() {
        report::write_page(&workspace.root, &page)?;
    }
    Ok(match judge::problems(&results, campaign.size) {
        None => 0,
        Some(problems) => {
            println!("{problems}");
            1
        }
    })
}
