//! `./skink test deep monolith`: the same mistakes in the driver of a RAM disk on Skink and on Linux, under the same file copy.
//!
//! `debian` makes the Linux side, `skink` the other; a `session` is a guest of either, with the program user/monolith. The mistakes are
//! drawn as in a campaign of `faults`, from the instructions that run during a copy. `trial` says what came of one, `page` and `chart`
//! tell of all, in the last section of docs/faults.md. tests/monolith/README.md explains what is compared.

mod chart;
mod debian;
mod page;
mod record;
mod session;
mod skink;
mod trial;

use crate::c_programs;
use crate::faults::coverage::Coverage;
use crate::faults::mutate::Text;
use crate::faults::plan::{self, Mutations, Size, Target};
use crate::faults::report;
use crate::faults::trial::{Fault, Part, Trial};
use crate::machine::Machine;
use crate::rootfs;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use debian::Debian;
use page::Side;
use record::Record;
use session::{DISK_BYTES, Guest, Snapshot};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use trial::{Report, SeenLine, Usual};

/// Its name as a test.
pub const NAME: &str = "monolith";
/// The program of both guests, in user/.
const PROGRAM: &str = "monolith";
/// The systems, as their files are called.
const LINUX: &str = "Linux";
const SKINK: &str = "Skink";
/// Mistakes in each driver.
const MISTAKES: u32 = 200;
const SEED: u64 = 3;
/// Bytes of text that the guest tells at a time.
const TEXT_BYTES: u64 = 64;
/// Progress is told after so many trials.
const PROGRESS: u32 = 20;

/// Runs the whole comparison and writes it into docs/faults.md. None when the undisturbed systems are sound and all was counted, or what
/// is not.
///
/// # Errors
/// When something does not build or a guest cannot be run.
pub fn run(workspace: &Workspace) -> Result<Option<String>> {
    let folder = workspace.run_folder()?;
    let disk = folder.join("disk.img");
    rootfs::make_empty(DISK_BYTES >> 20, &disk)?;
    let programs = c_programs::compile(workspace, &[PROGRAM])?;
    let [program] = &programs[..] else { bail!("expected one program in user/{PROGRAM}") };
    let debian = Debian::build(workspace, program, &disk, folder.path())?;
    let skink = skink::Skink::build(workspace, program, &disk, &folder)?;
    workspace.release_lock();
    let linux = System::boot(workspace, LINUX, debian.machine(), None, Some(debian.text_bytes()))?;
    let linux = Side { name: format!("Linux {}", debian.version), ..linux.run_all(MISTAKES)? };
    let skink = System::boot(workspace, SKINK, skink.machine(), Some(skink.text()?), None)?.run_all(MISTAKES)?;
    let sides = [linux, skink];
    let page = page::section(&sides, SEED);
    println!("{page}");
    report::write_section(&workspace.root, &page)?;
    chart::write(&workspace.root, &sides)?;
    record::finish(&results_folder(workspace), [LINUX, SKINK])?;
    let counted = sides.iter().all(|side| side.reports.len() == MISTAKES as usize);
    Ok((!counted).then(|| "trials are missing".to_string()))
}

/// A system under test, booted.
struct System {
    name: &'static str,
    snapshot: Snapshot,
    target: Target,
    coverage: Coverage,
    usual: Usual,
    results: PathBuf,
    _folder: crate::workspace::RunFolder,
}

impl System {
    /// Boots `machine`, whose driver has `text`; if that is not known before, its length is.
    fn boot(
        workspace: &Workspace,
        name: &'static str,
        machine: Machine,
        text: Option<Text>,
        text_bytes: Option<u64>,
    ) -> Result<Self> {
        let folder = workspace.run_folder()?;
        let snapshot = Snapshot::make(machine, folder.path())?;
        let text = match text {
            Some(text) => text,
            None => read_text(&snapshot, text_bytes.context("the length of the text is not known")?)?,
        };
        let target = Target { name: "ramdisk".to_string(), text, restartable: true };
        let (coverage, copy_ns) = observe(&snapshot, &target, &folder.join("instructions"))?;
        let usual = Usual { boot_ns: snapshot.boot_ns, copy_ns };
        let results = results_folder(workspace);
        fs::create_dir_all(&results)?;
        Ok(Self { name, snapshot, target, coverage, usual, results, _folder: folder })
    }

    /// So many mistakes, one after the other, each in its own copy of the machine.
    fn run_all(&self, mistakes: u32) -> Result<Side> {
        let size = Size { every_kill: false, mutations: Mutations::Exactly(mistakes), silences: 0 };
        let targets = std::slice::from_ref(&self.target);
        let mut trials = plan::trials(targets, |_, address| self.coverage.has(0, address), size, SEED)?;
        trials.retain(|trial| trial.part == Part::Mutations);
        let mut record = Record::open(&self.results, self.name, &trials)?;
        for (number, trial) in (1..).zip(&trials).skip(record.reports.len()) {
            let console = self.results.join(format!("{}-{number}.console", self.name));
            record.add(trial, self.run_one(trial, &console)?)?;
            if number % PROGRESS == 0 {
                eprintln!("{}: {number} of {} trials", self.name, trials.len());
            }
        }
        let reports = record.reports;
        let instructions = self.target.text.addresses().filter(|address| self.coverage.has(0, *address)).count();
        Ok(Side { name: self.name.to_string(), instructions, usual: self.usual, reports })
    }

    fn run_one(&self, trial: &Trial, console: &Path) -> Result<Report> {
        let Fault::Poke(patch) = &trial.fault else { bail!("a trial without a mistake") };
        let mut guest = self.snapshot.resume(&[])?;
        guest.send(&command(patch.address, &patch.bytes));
        let report = listen(&mut guest, self.usual)?;
        if report.seen > trial::Seen::Nothing {
            guest.keep_console(console)?;
        }
        Ok(report)
    }
}

/// Where the results and the consoles of trials are.
fn results_folder(workspace: &Workspace) -> PathBuf {
    workspace.build.join(NAME)
}

fn command(address: u64, bytes: &[u8]) -> String {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    format!("trial {address:x} {:x} {}", u64::from_le_bytes(padded), bytes.len())
}

/// Waits for the end of a trial.
fn listen(guest: &mut Guest, usual: Usual) -> Result<Report> {
    let mut seen = None;
    loop {
        let Some(line) = guest.next_after_tries()? else {
            let words = guest.last_words();
            return Report::dead(seen.as_ref(), words.lines().last().unwrap_or_default(), usual);
        };
        match line.split_once(' ') {
            Some(("seen", words)) => seen = Some(SeenLine::read(words)?),
            Some(("done", words)) => return Report::done(seen.as_ref().context("done without a copy")?, words, usual),
            _ => bail!("the guest sent '{line}'"),
        }
    }
}

/// The driver's text as it runs: the kernel has changed it when it loaded the module.
fn read_text(snapshot: &Snapshot, bytes: u64) -> Result<Text> {
    let mut guest = snapshot.resume(&[])?;
    let mut text = Vec::new();
    while (text.len() as u64) < bytes {
        let at = text.len() as u64;
        guest.send(&format!("text {:x} {}", snapshot.text_address + at, TEXT_BYTES.min(bytes - at)));
        let line = guest.next()?.context("the guest died of reading the driver's text")?;
        let digits = line.strip_prefix("text ").context("the guest did not tell the driver's text")?;
        let piece = (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16));
        let before = text.len();
        text.extend(piece.collect::<Result<Vec<u8>, _>>()?);
        if text.len() == before {
            bail!("the driver's text ends after {before} bytes");
        }
    }
    Ok(Text::new(snapshot.text_address, text))
}

/// What runs of the driver's text in an undisturbed copy, and how long that takes.
fn observe(snapshot: &Snapshot, target: &Target, log: &Path) -> Result<(Coverage, u64)> {
    let mut guest = snapshot.resume(&["-d", "in_asm", "-D", &log.display().to_string()])?;
    let first = target.text.addresses().next().context("the driver has no text")?;
    // Writes the byte that is there.
    guest.send(&command(first, &target.text.at(first)[..1]));
    let report = |guest: &mut Guest| -> Result<u64> {
        let line = guest.next_after_tries()?.context("the undisturbed system died")?;
        match line.strip_prefix("seen ").map(SeenLine::read) {
            Some(Ok(seen)) if seen.passed() => Ok(seen.took_ns),
            _ => bail!("the undisturbed copy failed: {line}"),
        }
    };
    let copy_ns = report(&mut guest)?;
    drop(guest);
    let coverage = Coverage::read_log(BufReader::new(File::open(log)?), std::slice::from_ref(target))?;
    Ok((coverage, copy_ns))
}
