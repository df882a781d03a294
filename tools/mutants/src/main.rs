//! Breaks the system one small change at a time and sees whether a test minds: `./skink mutants`.
//!
//! All changes of a crate are built in at once, each behind a number that the environment switches on (mutant schemata: R. H. Untch,
//! A. J. Offutt, M. J. Harrold, "Mutation analysis using mutant schemata", ISSTA 1993), so that a crate is compiled once and only its
//! tests run for each. It happens in a copy of the checkout below the build folder. docs/testing.md has the figures.
//!
//! * `find`: what can be changed; `schemata`: how all changes come into one file;
//! * `build`: the copy; `run`: the tests; `crates`: which crates.
#![forbid(unsafe_code)]

mod build;
mod crates;
mod find;
mod run;
mod schemata;

use anyhow::{Context, Result, bail};
use build::{Candidate, Copy, Sources};
use crates::{CRATES, Crate};
use find::Change;
use lexopt::prelude::*;
use run::{Tests, Verdict};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Usage: ./skink mutants [--seed N] [--crate NAME]... [--count N] [--at PLACE]...

Changes a sample of the source, one place at a time, and runs the crate's host tests with each
change. Prints a table, and every change that no test minds.

  --seed N      the sample (default: 1)
  --crate NAME  only this crate; may be given more than once
  --count N     changes of each crate (default: 80; with --at: all)
  --at PLACE    only changes of files whose path begins so, or of a line
                (calls/read.rs:12, below the crate's src/); may be given more than once

Exit status: 0 when at least 90 % of the changes are noticed, 1 when fewer are.
";

/// Of a hundred changes so many have to be noticed.
const WANTED: usize = 90;

struct Options {
    seed: u64,
    count: Option<usize>,
    at: Vec<String>,
    crates: Vec<&'static Crate>,
    root: PathBuf,
    build: PathBuf,
    target: PathBuf,
}

/// One line of the table.
struct Row {
    name: &'static str,
    candidates: usize,
    tried: usize,
    timed_out: usize,
    survivors: Vec<String>,
    seconds: u64,
}

fn main() -> ExitCode {
    match parse().and_then(|options| options.map_or(Ok(true), |options| try_all(&options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Option<Options>> {
    let root = PathBuf::from(std::env::var_os("SKINK_ROOT").unwrap_or_else(|| ".".into())).canonicalize()?;
    let build = std::env::var_os("SKINK_BUILD").map_or_else(|| root.join("build"), PathBuf::from);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut options = Options { seed: 1, count: None, at: Vec::new(), crates: Vec::new(), root, build, target };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("count") => options.count = Some(parser.value()?.parse()?),
            Long("at") => options.at.push(parser.value()?.string()?),
            Long("crate") => {
                let name = parser.value()?.string()?;
                let known = CRATES.iter().find(|one| one.name == name);
                options.crates.push(known.with_context(|| format!("no crate {name} is tried"))?);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(None);
            }
            other => bail!(other.unexpected()),
        }
    }
    if options.crates.is_empty() {
        options.crates = CRATES.iter().collect();
    }
    Ok(Some(options))
}

/// Tries every crate and prints the table; true when enough changes were noticed.
fn try_all(options: &Options) -> Result<bool> {
    let copy = Copy::new(&options.root, options.build.join("mutants"), options.target.clone())?;
    let mut rows = Vec::new();
    for one in &options.crates {
        rows.push(try_crate(options, &copy, one)?);
    }
    println!("| crate | places | tried | killed | of these by time | survived | seconds |");
    println!("|---|---|---|---|---|---|---|");
    let mut all = (0, 0);
    for row in &rows {
        let (tried, survived) = (row.tried, row.survivors.len());
        let killed = tried - survived;
        all = (all.0 + tried, all.1 + killed);
        let (name, places, by_time, seconds) = (row.name, row.candidates, row.timed_out, row.seconds);
        println!("| {name} | {places} | {tried} | {killed} | {by_time} | {survived} | {seconds} |");
    }
    let (tried, killed) = all;
    println!("\nseed {}: {killed} of {tried} changes were noticed", options.seed);
    rows.iter().flat_map(|row| &row.survivors).for_each(|survivor| println!("survived: {survivor}"));
    Ok(killed * 100 >= tried * WANTED)
}

fn try_crate(options: &Options, copy: &Copy, one: &Crate) -> Result<Row> {
    let start = Instant::now();
    let sources = copy.sources(one)?;
    let mut candidates = build::candidates(one, &sources)?;
    let all = candidates.len();
    let count = choose(options, &mut candidates);
    let (executables, refused) = copy.build(one, &sources, &candidates)?;
    let tests = Tests::new(&executables, &copy.folder(one))?;
    let numbers = (1..=candidates.len()).filter(|number| !refused.contains(number)).take(count);
    let mut row = Row { name: one.name, candidates: all, tried: 0, timed_out: 0, survivors: Vec::new(), seconds: 0 };
    for number in numbers {
        row.tried += 1;
        match tests.run(number)? {
            Verdict::Killed => {}
            Verdict::TimedOut => row.timed_out += 1,
            Verdict::Survived => {
                let mut survivor = describe(one, &sources, &candidates[number - 1]);
                if !tests.is_reached(number) {
                    survivor += " (no test comes there)";
                }
                eprintln!("mutants: {survivor}");
                row.survivors.push(survivor);
            }
        }
    }
    row.seconds = start.elapsed().as_secs();
    eprintln!("mutants: {}: {} of {} survived", one.name, row.survivors.len(), row.tried);
    Ok(row)
}

/// Leaves the changes that are to be tried, and some more of a sample, because not all compile. Returns how many of them to try.
fn choose(options: &Options, candidates: &mut Vec<Candidate>) -> usize {
    let is_at = |candidate: &Candidate, place: &String| match place.split_once(':') {
        Some((file, line)) => candidate.file == file && candidate.mutation.line.to_string() == line,
        None => candidate.file.starts_with(place),
    };
    let is_wanted = |candidate: &Candidate| options.at.iter().any(|place| is_at(candidate, place));
    candidates.retain(|candidate| options.at.is_empty() || is_wanted(candidate));
    let count = match options.count {
        None if !options.at.is_empty() => return candidates.len(),
        count => count.unwrap_or(80),
    };
    fastrand::Rng::with_seed(options.seed).shuffle(candidates);
    candidates.truncate(count + count / 4);
    count
}

/// A change as people read it: file, line, from and to.
fn describe(one: &Crate, sources: &Sources, candidate: &Candidate) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mutation = &candidate.mutation;
    let from = words(&sources[&candidate.file][mutation.place.clone()]);
    let what = match &mutation.change {
        Change::Replace(to) => format!("`{from}` becomes `{}`", words(to)),
        Change::Drop => format!("without `{from}`"),
        Change::Return(value) => format!("the function returns {value} at once"),
    };
    format!("{}/src/{}:{}: {what}", one.folder, candidate.file, mutation.line)
}
