//! The copied checkout: one crate of it gets all changes, and is built once.

use crate::crates::{Crate, is_changed};
use crate::find::{self, Mutation};
use crate::schemata::{self, Instrumented};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A change of a crate, with the file that it is in (below `src/`).
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The file.
    pub file: String,
    /// The change.
    pub mutation: Mutation,
}

/// The files of a crate below `src/` as they are.
pub type Sources = BTreeMap<String, String>;

/// Every change that a crate offers, in order of files and places.
///
/// # Errors
/// When a file is not Rust.
pub fn candidates(one: &Crate, sources: &Sources) -> Result<Vec<Candidate>> {
    let tests = test_files(sources)?;
    let is_test =
        |file: &str| tests.iter().any(|test| file.strip_prefix(test).is_some_and(|rest| rest.starts_with(['.', '/'])));
    let mut found = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_changed(one, file) && !is_test(file)) {
        let mutations = find::mutations(text).with_context(|| format!("{}/src/{file}", one.folder))?;
        found.extend(mutations.into_iter().map(|mutation| Candidate { file: file.clone(), mutation }));
    }
    Ok(found)
}

/// Files and folders of modules that only tests have, without `.rs`.
fn test_files(sources: &Sources) -> Result<Vec<String>> {
    let mut tests = Vec::new();
    for (file, text) in sources {
        let path = Path::new(file);
        let is_parent = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
        let folder = if is_parent { path.parent().map(Path::to_path_buf) } else { Some(path.with_extension("")) };
        let folder = folder.unwrap_or_default();
        let modules = find::test_modules(text).with_context(|| file.clone())?;
        tests.extend(modules.iter().map(|name| folder.join(name).to_string_lossy().into_owned()));
    }
    Ok(tests)
}

fn list(top: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(top, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.strip_prefix(top)?.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// The copy of the checkout.
pub struct Copy {
    root: PathBuf,
    /// cargo's folder, which the checkout has too: libraries are compiled once.
    target: PathBuf,
}

impl Copy {
    /// The folder of a crate's copy.
    pub fn folder(&self, one: &Crate) -> PathBuf {
        self.root.join(one.folder)
    }

    /// Copies every file that git knows.
    ///
    /// # Errors
    /// When git or a copy fails.
    pub fn new(from: &Path, to: PathBuf, target: PathBuf) -> Result<Copy> {
        let copy = Copy { root: to, target };
        let output = Command::new("git").current_dir(from).args(["ls-files", "-z"]).output().context("git ls-files")?;
        for name in String::from_utf8(output.stdout)?.split('\0').filter(|name| !name.is_empty()) {
            let (source, to) = (from.join(name), copy.root.join(name));
            let Ok(bytes) = fs::read(&source) else { continue };
            // An equal file keeps its time, so that cargo does not build what depends on it again.
            if fs::read(&to).is_ok_and(|old| old == bytes) {
                continue;
            }
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            fs::write(&to, bytes)?;
        }
        Ok(copy)
    }

    /// The files of a crate before it is changed: the checkout itself may go on meanwhile.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn sources(&self, one: &Crate) -> Result<Sources> {
        let folder = self.folder(one).join("src");
        let mut files = Vec::new();
        list(&folder, &folder, &mut files)?;
        files.into_iter().map(|file| Ok((file.clone(), fs::read_to_string(folder.join(&file))?))).collect()
    }

    /// Builds the tests of a crate with these changes, numbered from 1. Those that do not compile are left out and returned.
    ///
    /// # Errors
    /// When it does not compile for another reason.
    pub fn build(
        &self,
        one: &Crate,
        sources: &Sources,
        chosen: &[Candidate],
    ) -> Result<(Vec<PathBuf>, BTreeSet<usize>)> {
        let mut refused = BTreeSet::new();
        loop {
            let files = self.write(one, sources, chosen, &refused)?;
            let complaints = match self.cargo(one, "check")? {
                Built::Complaints(complaints) => complaints,
                Built::Tests(_) => match self.cargo(one, "test")? {
                    Built::Tests(tests) => return Ok((self.keep(&tests)?, refused)),
                    Built::Complaints(complaints) => complaints,
                },
            };
            let before = refused.len();
            for (file, place, text) in &complaints {
                let Some(instrumented) = files.iter().find(|(name, _)| file.ends_with(name.as_str())) else {
                    bail!("{}: {text}", one.name);
                };
                let hit = instrumented.1.changes_at(place);
                refused.extend(if hit.is_empty() {
                    instrumented.1.change_before(place).into_iter().collect()
                } else {
                    hit
                });
            }
            if refused.len() == before {
                bail!("{} does not compile: {:?}", one.name, complaints.first());
            }
            eprintln!("mutants: {}: {} changes do not compile", one.name, refused.len());
        }
    }

    /// Copies executables to where no build replaces them: those of the checkout itself have the same names.
    fn keep(&self, tests: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let folder = self.root.join("executables");
        fs::create_dir_all(&folder)?;
        let kept = tests.iter().map(|test| {
            let to = folder.join(test.file_name().context("an executable has a name")?);
            // One that still runs keeps its file.
            let _ = fs::remove_file(&to);
            fs::copy(test, &to).with_context(|| format!("cannot copy {}", test.display()))?;
            Ok(to)
        });
        kept.collect()
    }

    fn write(
        &self,
        one: &Crate,
        sources: &Sources,
        chosen: &[Candidate],
        refused: &BTreeSet<usize>,
    ) -> Result<Vec<(String, Instrumented)>> {
        let mut by_file: BTreeMap<&str, Vec<(usize, &Mutation)>> = BTreeMap::new();
        for (index, candidate) in chosen.iter().enumerate().filter(|(index, _)| !refused.contains(&(index + 1))) {
            by_file.entry(&candidate.file).or_default().push((index + 1, &candidate.mutation));
        }
        let to = self.folder(one).join("src");
        fs::write(to.join(one.root), format!("{}{}", sources[one.root], schemata::SUPPORT))?;
        let mut written = Vec::new();
        for file in chosen.iter().map(|candidate| &candidate.file).collect::<BTreeSet<_>>() {
            let changes = by_file.remove(file.as_str()).unwrap_or_default();
            let instrumented = schemata::instrument(&sources[file], &changes);
            fs::write(to.join(file), &instrumented.text)?;
            written.push((format!("{}/src/{file}", one.folder), instrumented));
        }
        Ok(written)
    }

    fn cargo(&self, one: &Crate, command: &str) -> Result<Built> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&self.root).arg(command).args(["--offline", "-p", one.name, "--message-format=json"]);
        cargo.arg(if command == "check" { "--tests" } else { "--no-run" });
        cargo.env("CARGO_TARGET_DIR", &self.target);
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::null()).output().context("cannot start cargo")?;
        let (mut tests, mut complaints) = (Vec::new(), Vec::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let is_run = message["profile"]["test"] == true
                && !one.without.iter().any(|name| message["target"]["name"] == *name);
            if let Some(test) = message["executable"].as_str().filter(|_| is_run) {
                tests.push(PathBuf::from(test));
            }
            complaints.extend(complaints_of(&message["message"]));
        }
        if output.status.success() {
            return Ok(Built::Tests(tests));
        }
        Ok(Built::Complaints(complaints))
    }
}

enum Built {
    Tests(Vec<PathBuf>),
    /// File, place in it, text.
    Complaints(Vec<(String, Range<usize>, String)>),
}

/// Where an error of the compiler is.
fn complaints_of(message: &serde_json::Value) -> Vec<(String, Range<usize>, String)> {
    if message["level"] != "error" {
        return Vec::new();
    }
    let spans = message["spans"].as_array().cloned().unwrap_or_default();
    let primary = spans.iter().filter(|span| span["is_primary"] == true);
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as usize;
    let place = |span: &serde_json::Value| number(&span["byte_start"])..number(&span["byte_end"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    primary.map(|span| (text(&span["file_name"]), place(span), text(&message["rendered"]))).collect()
}
