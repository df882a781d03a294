//! Power cuts: what is left on a disk whose power fails.
//!
//! A guest carries out a random workload (`script`) on an ext2 disk while QEMU records what reaches the disk (`log`). Every prefix of
//! the record, and many states in which only a part of what was not flushed has arrived (`states`), are mended by e2fsck, read (`tree`)
//! and judged: every promise of the workload must be kept (`judge`). With a journal `e2fsck -p` replays it, and then nothing is left to
//! mend.

mod judge;
mod log;
mod script;
mod states;
mod tree;

use crate::bundle::Bundle;
use crate::c_programs;
use crate::cli::{Depth, RAMDISK_SYSTEM};
use crate::guest::{Guest, Job};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use judge::Judge;
use log::{Entry, Log};
use script::Script;
use states::{Kind, State};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Its name as a test.
pub const NAME: &str = "power";

const DISK_KIB: usize = 6 << 10;
/// Judges at a time.
const THREADS: usize = 2;
/// Time for a workload.
const LIMIT: Duration = Duration::from_secs(600);
/// Problems that are told of.
const SHOWN: usize = 12;
/// Where images are written for e2fsck: memory.
const MEMORY: &str = "/dev/shm";

/// A workload and how it is run.
#[derive(Clone, Copy)]
struct Trial {
    name: &'static str,
    seed: u64,
    lines: usize,
    block_size: usize,
    has_journal: bool,
    /// Whether services die meanwhile.
    kills: bool,
    /// Random states of each kind for every write.
    per_write: usize,
}

const SHORT: [Trial; 3] = [
    Trial {
        name: "1 KiB blocks",
        seed: 1,
        lines: 240,
        block_size: 1024,
        has_journal: false,
        kills: false,
        per_write: 1,
    },
    Trial {
        name: "services die",
        seed: 2,
        lines: 160,
        block_size: 4096,
        has_journal: false,
        kills: true,
        per_write: 1,
    },
    Trial {
        name: "journal, services die",
        seed: 3,
        lines: 160,
        block_size: 4096,
        has_journal: true,
        kills: true,
        per_write: 1,
    },
];
/// Least length of a journal, in blocks.
const JOURNAL_BLOCKS: usize = 1024;
/// Seeds of the full form.
const DEEP_SEEDS: u64 = 5;
/// The least states with a journal that the full form has to judge.
const DEEP_JOURNAL_STATES: usize = 3_000;

/// Runs the trials of this depth. None when every promise is kept, or what is not.
///
/// # Errors
/// When a guest or a tool cannot be run.
pub fn run(workspace: &Workspace, depth: Depth) -> Result<Option<String>> {
    let mut trials = SHORT.to_vec();
    if depth == Depth::Deep {
        for seed in 100..100 + DEEP_SEEDS {
            trials.extend(SHORT.map(|trial| Trial { seed: seed + trial.seed * 1000, lines: 400, ..trial }));
        }
    }
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
    let mut report = String::new();
    let mut has_failed = false;
    let mut with_journal = 0;
    for trial in trials {
        let results = trial.run(workspace, &bundle)?;
        has_failed |= results.has_failed(trial.has_journal);
        with_journal += if trial.has_journal { results.states() } else { 0 };
        report += &format!("{} (seed {}): {results}", trial.name, trial.seed);
    }
    report += &format!("{with_journal} states with a journal\n");
    has_failed |= depth == Depth::Deep && with_journal < DEEP_JOURNAL_STATES;
    eprint!("{report}");
    Ok(has_failed.then_some(report))
}

/// What came of the states of one kind.
#[derive(Clone, Copy, Default)]
struct Count {
    states: usize,
    /// Those in which e2fsck found something to mend; with a journal, what a replay and the list of orphans do not mend.
    mended: usize,
    /// Those in which it then still found something.
    unmendable: usize,
    broken: usize,
}

/// What came of a trial.
#[derive(Default)]
struct Results {
    writes: usize,
    flushes: usize,
    promises: usize,
    counts: BTreeMap<Kind, Count>,
    problems: Vec<String>,
}

impl Results {
    fn states(&self) -> usize {
        self.counts.values().map(|count| count.states).sum()
    }

    fn has_failed(&self, has_journal: bool) -> bool {
        let is_bad = |count: &Count| count.unmendable + count.broken > 0 || has_journal && count.mended > 0;
        self.counts.values().any(is_bad)
    }
}

impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        writeln!(f, "{} writes, {} flushes, {} promises", self.writes, self.flushes, self.promises)?;
        for (kind, Count { states, mended, unmendable, broken }) in &self.counts {
            writeln!(
                f,
                "  {kind:?}: {states} states, {mended} mended by e2fsck, {unmendable} unmendable, {broken} broken"
            )?;
        }
        for problem in self.problems.iter().take(SHOWN) {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}

impl Trial {
    fn run(&self, workspace: &Workspace, bundle: &Bundle) -> Result<Results> {
        let folder = workspace.run_folder()?;
        let script = Script::random(self.seed, self.lines);
        let disk = folder.join("power.img");
        self.make_disk(&folder.join("content"), &disk)?;
        let before = fs::read(&disk)?;
        let record = folder.join("power.log");
        fs::write(&record, "")?;
        self.record(workspace, bundle, &script, &disk, &record)?;
        let log = Log::read(&fs::read(&record)?)?;
        let has_journal = self.has_journal;
        let checker = Checker {
            script: &script,
            log: &log,
            before,
            has_journal,
            keep: workspace.build.join("failed").join(NAME),
        };
        checker.run(&states::list(&log, self.per_write, self.seed))
    }

    /// An ext2 disk with the file of marks, which has its blocks.
    fn make_disk(&self, content: &Path, disk: &Path) -> Result<()> {
        fs::create_dir_all(content)?;
        fs::write(content.join("marks"), vec![b'-'; (self.lines + 1) * 1024])?;
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-q", "-F", "-t", "ext2", "-I", "256", "-m", "0", "-b", &self.block_size.to_string(), "-d"]);
        mke2fs.arg(content);
        let mut kib = DISK_KIB;
        if self.has_journal {
            let journal_kib = (JOURNAL_BLOCKS * self.block_size) >> 10;
            mke2fs.args(["-j", "-J", &format!("size={}", journal_kib >> 10)]);
            kib += journal_kib;
        }
        process::run(mke2fs.arg(disk).arg(format!("{kib}k")))
    }

    /// Carries out the workload in a guest.
    fn record(
        &self,
        workspace: &Workspace,
        bundle: &Bundle,
        script: &Script,
        disk: &Path,
        record: &Path,
    ) -> Result<()> {
        let overlay = record.with_extension("overlay");
        fs::create_dir_all(&overlay)?;
        fs::write(overlay.join("script"), script.text())?;
        let programs = c_programs::compile(workspace, &["power"])?;
        let kills = if self.kills { KILLS } else { "" };
        let command = format!("mount -t ext2 /dev/vda /mnt && cd /mnt || exit\n{kills}promises /script");
        let job = Job {
            overlays: std::slice::from_ref(&overlay),
            c_programs: &programs,
            recorded_disk: Some((disk.to_path_buf(), record.to_path_buf())),
            limit: Some(LIMIT),
            ..Job::new(&command)
        };
        let printed = Guest::prepare(workspace, bundle, &job)?.collect()?;
        if !printed.contains(&format!("{} lines", self.lines)) {
            bail!("the workload did not come to its end: {printed}");
        }
        Ok(())
    }
}

/// Kills services until the workload ends.
const KILLS: &str = "\
(for i in 1 2 3 4 5 6 7 8 9 10; do
    for service in ext2 virtio_blk vfs; do sleep 0.2; service kill $service; done
done) >/dev/null 2>&1 &
";

/// Makes and judges states.
struct Checker<'a> {
    script: &'a Script,
    log: &'a Log,
    /// The disk before the workload.
    before: Vec<u8>,
    has_journal: bool,
    /// Where the first bad images are kept.
    keep: PathBuf,
}

impl Checker<'_> {
    /// Judges the states, which are in order of position.
    fn run(&self, states: &[State]) -> Result<Results> {
        let next = AtomicUsize::new(0);
        let is_write = |entry: &&Entry| matches!(entry, Entry::Write { .. });
        let writes = self.log.entries.iter().filter(is_write).count();
        let flushes = self.log.entries.len() - writes;
        let results = Mutex::new(Results { writes, flushes, promises: self.log.promises.len(), ..Results::default() });
        thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| self.work(states, &next, &results))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a judge has panicked")))
        })?;
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.problems.sort();
        Ok(results)
    }

    fn work(&self, states: &[State], next: &AtomicUsize, results: &Mutex<Results>) -> Result<()> {
        let file = tempfile()?;
        let mut durable = (0, self.before.clone());
        let mut judge = self.judge_after(0);
        while let Some(state) = states.get(next.fetch_add(1, Ordering::Relaxed)) {
            let until = state.durable(self.log);
            for entry in &self.log.entries[durable.0..until] {
                if let Entry::Write { sector, data } = entry {
                    states::write(&mut durable.1, *sector, data);
                }
            }
            if until != durable.0 {
                judge = self.judge_after(until);
            }
            durable.0 = until;
            let mut disk = durable.1.clone();
            state.make(self.log, &mut disk);
            let (count, problems) = check(&judge, &disk, &file.0, self.has_journal)?;
            let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let sum = results.counts.entry(state.kind).or_default();
            sum.states += 1;
            sum.mended += count.mended;
            sum.unmendable += count.unmendable;
            sum.broken += count.broken;
            if !problems.is_empty() {
                if results.problems.len() < SHOWN {
                    fs::create_dir_all(&self.keep)?;
                    fs::write(self.keep.join("script"), self.script.text())?;
                    fs::write(self.keep.join(format!("{:?}-{}.img", state.kind, state.position)), &disk)?;
                }
                results.problems.push(format!(
                    "{:?} after request {}: {}",
                    state.kind,
                    state.position,
                    problems.join("; ")
                ));
            }
        }
        Ok(())
    }

    /// The judge of the states in which so many requests are durable.
    fn judge_after(&self, durable: usize) -> Judge<'_> {
        let kept = self.log.promises.iter().filter(|(_, position)| **position <= durable);
        Judge::new(self.script, kept.map(|(line, _)| *line).collect())
    }
}

/// Mends a disk and judges it.
fn check(judge: &Judge, disk: &[u8], file: &Path, has_journal: bool) -> Result<(Count, Vec<String>)> {
    fs::write(file, disk)?;
    let mut count = Count { states: 1, ..Count::default() };
    let mut problems = Vec::new();
    if has_journal {
        problems = beyond_replay(&e2fsck(file, "-p")?);
        count.mended = usize::from(!problems.is_empty());
    } else {
        count.mended = usize::from(!e2fsck(file, "-fy")?.status.success());
    }
    // What e2fsck has found nothing to mend in by `-f` need not be looked at again.
    if (has_journal || count.mended > 0) && !e2fsck(file, "-fn")?.status.success() {
        count.unmendable = 1;
        problems.push("e2fsck does not mend it".to_string());
        return Ok((count, problems));
    }
    let found = tree::read(&fs::read(file)?).context("the mended disk is unreadable")?;
    let broken = judge.problems(&found);
    count.broken = usize::from(!broken.is_empty());
    problems.extend(broken);
    Ok((count, problems))
}

/// What `e2fsck -p` has done to a volume with a journal besides replaying it and ending the orphans that its superblock lists.
fn beyond_replay(output: &Output) -> Vec<String> {
    const USUAL: [&str; 5] =
        ["recovering journal", ": clean, ", "Clearing orphaned inode", "Truncating orphaned inode", "Setting free "];
    let text = String::from_utf8_lossy(&output.stdout);
    let is_unusual = |line: &&str| !USUAL.iter().any(|usual| line.contains(usual));
    let mut found: Vec<String> = text.lines().filter(is_unusual).map(|line| format!("e2fsck -p: {line}")).collect();
    // 1: something was mended, which the lines name.
    if output.status.code().is_none_or(|code| code > 1) {
        found.push(format!("e2fsck -p: {}", output.status));
    }
    found
}

/// Runs e2fsck on an image.
fn e2fsck(image: &Path, how: &str) -> Result<Output> {
    Command::new("e2fsck").arg(how).arg(image).stdin(Stdio::null()).output().context("cannot start e2fsck")
}

/// A file in memory, removed at the end.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn tempfile() -> Result<TemporaryFile> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("skink-power-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(MEMORY).join(name);
    fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
    Ok(TemporaryFile(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn found(stdout: &str, code: i32) -> usize {
        let status = std::process::ExitStatus::from_raw(code << 8);
        beyond_replay(&Output { status, stdout: stdout.into(), stderr: Vec::new() }).len()
    }

    #[test]
    fn a_replay_mends_all() {
        assert_eq!(
            found("disk: recovering journal\nClearing orphaned inode 12 (uid=0)\ndisk: clean, 1/2 files\n", 0),
            0
        );
        assert_eq!(found("disk: recovering journal\ndisk: Inode 12, i_blocks is 8, should be 0.  FIXED.\n", 1), 1);
        assert_eq!(found("", 4), 1);
    }
}
