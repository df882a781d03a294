//! What may be on the disk after a power cut.
//!
//! A promise is kept for good: a file that was synced has its name and its content, those in a directory that was synced have their
//! names, until a later line changes them. What has changed since may be there in the old or the new state: a name in a directory stands
//! for what it stood for after some line since the promise; a file that has a name all the time is found under one of its names, in any
//! place that the name's directory may have; the bytes of a file are those of some line since, or zero where it has grown or shrunk.

use super::script::{Model, Node, Operation, ROOT, Script, Sync, Write, join, split};
use super::tree::Found;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Judges the crash states after certain promises.
pub struct Judge<'a> {
    script: &'a Script,
    /// Lines that have made a promise that is known to hold.
    promised: BTreeSet<usize>,
    /// The last line that may have begun.
    last: usize,
    /// What each path that was ever used may name.
    paths: BTreeMap<&'a str, Vec<Option<Node>>>,
    /// What may be in each file.
    files: BTreeMap<usize, Versions<'a>>,
    /// Names of the files of which each must be found under one of them.
    kept: BTreeMap<usize, BTreeSet<String>>,
}

/// Contents that a file may have.
struct Versions<'a> {
    all: Vec<&'a [u8]>,
    /// Bytes that are certainly there.
    shortest: usize,
    /// It was opened with `O_TRUNC`, and written by another call: in between it is empty.
    was_emptied: bool,
}

impl Versions<'_> {
    fn allow(&self, content: &[u8]) -> bool {
        if self.all.contains(&content) || self.was_emptied && content.is_empty() {
            return true;
        }
        let may_be = |position: usize, byte: u8| {
            (byte == 0 && position >= self.shortest)
                || self.all.iter().any(|version| version.get(position) == Some(&byte))
        };
        content.len() >= self.shortest && content.iter().enumerate().all(|(position, byte)| may_be(position, *byte))
    }
}

impl<'a> Judge<'a> {
    /// For a cut after the promises of these lines.
    pub fn new(script: &'a Script, promised: BTreeSet<usize>) -> Self {
        let done = promised.last().copied().unwrap_or(0);
        // Nothing after a line that promises begins before its promise is kept.
        let promises = |line: &Operation| {
            matches!(line, Operation::Sync { .. } | Operation::Write { kind: Write::Synchronous, .. })
        };
        let next = script.lines.iter().skip(done).position(promises);
        let last = next.map_or(script.lines.len(), |next| done + next + 1);
        let (paths, files, kept) = Default::default();
        let mut judge = Self { script, promised, last, paths, files, kept };
        let names: BTreeSet<&str> =
            script.models[..=last].iter().flat_map(|model| model.names.keys()).map(String::as_str).collect();
        judge.paths = names.into_iter().map(|path| (path, judge.candidates(path))).collect();
        let numbers: Vec<usize> = script.models[last].content.keys().copied().collect();
        judge.files = numbers.iter().map(|number| (*number, judge.versions(*number))).collect();
        judge.kept = numbers.iter().filter_map(|number| Some((*number, judge.names_of_kept(*number)?))).collect();
        judge
    }

    /// What is broken, one sentence each.
    pub fn problems(&self, disk: &BTreeMap<String, Found>) -> Vec<String> {
        let mut problems = Vec::new();
        for (path, candidates) in &self.paths {
            if !self.is_allowed(candidates, disk.get(*path)) {
                problems.push(format!("{path}: {}", describe(disk.get(*path))));
            }
        }
        let strange = disk.iter().filter(|(path, _)| *path != "marks" && !self.paths.contains_key(path.as_str()));
        for (path, found) in strange {
            if !self.is_allowed(&self.candidates(path), Some(found)) {
                problems.push(format!("{path}: {}", describe(Some(found))));
            }
        }
        for (number, names) in &self.kept {
            let is_there = |path: &String| matches!(disk.get(path), Some(Found::File(content)) if self.files[number].allow(content));
            if !names.iter().any(is_there) {
                problems.push(format!("the file of line {number} has none of its names {names:?}"));
            }
        }
        problems
    }

    fn is_allowed(&self, candidates: &[Option<Node>], found: Option<&Found>) -> bool {
        candidates.iter().any(|node| match (node, found) {
            (None, None) | (Some(Node::Directory(_)), Some(Found::Directory)) => true,
            (Some(Node::File(number)), Some(Found::File(content))) => self.files[number].allow(content),
            _ => false,
        })
    }

    /// The last line with a promise that `covers` says something of; 0: there is none.
    fn line_of(&self, covers: impl Fn(&Model, &Operation) -> bool) -> usize {
        let covers = |line: &&usize| covers(&self.script.models[**line], &self.script.lines[**line - 1]);
        self.promised.iter().rev().find(covers).copied().unwrap_or(0)
    }

    /// Models from that line on.
    fn models_since(&self, covers: impl Fn(&Model, &Operation) -> bool) -> &'a [Model] {
        &self.script.models[self.line_of(covers)..=self.last]
    }

    /// What `path` may name: what the name stood for in each of the directories that the path before it may name.
    fn candidates(&self, path: &str) -> Vec<Option<Node>> {
        let (parent, name) = split(path);
        let parents = if parent == "." { vec![Some(Node::Directory(ROOT))] } else { self.candidates(parent) };
        let mut candidates = Vec::new();
        for parent in parents {
            match parent {
                Some(Node::Directory(directory)) => candidates.extend(self.names_since(directory, name)),
                _ => candidates.push(None),
            }
        }
        candidates.sort();
        candidates.dedup();
        candidates
    }

    fn names_since(&self, directory: usize, name: &str) -> Vec<Option<Node>> {
        let models = self.models_since(|model, operation| match operation {
            Operation::Sync { kind: Sync::All, .. } => true,
            Operation::Sync { kind: Sync::Directory, path } => model.directory(path) == Some(directory),
            Operation::Sync { kind: Sync::File, path } => {
                let (parent, file) = split(path);
                file == name && model.directory(parent) == Some(directory)
            }
            _ => false,
        });
        let named = |model: &Model| model.names.get(&join(model.path_of(directory)?, name)).cloned();
        models.iter().map(named).collect()
    }

    fn versions(&self, number: usize) -> Versions<'a> {
        let first = self.line_of(|model, operation| match operation {
            Operation::Sync { kind: Sync::All, .. } => true,
            Operation::Sync { kind: Sync::File | Sync::Data, path }
            | Operation::Write { kind: Write::Synchronous, path, .. } => model.file(path) == Some(number),
            _ => false,
        });
        let models = &self.script.models[first..=self.last];
        let empties = |(line, model): (&Operation, &Model)| match line {
            Operation::Write { kind: Write::Rewrite, path, .. } => model.file(path) == Some(number),
            _ => false,
        };
        let was_emptied = self.script.lines[first..self.last].iter().zip(models).any(empties);
        let mut contents: Vec<&Arc<Vec<u8>>> = models.iter().filter_map(|model| model.content.get(&number)).collect();
        contents.dedup();
        let all: Vec<&[u8]> = contents.into_iter().map(|content| content.as_slice()).collect();
        // A file that was never synced may be empty.
        let is_new = models.first().is_none_or(|model| !model.content.contains_key(&number));
        let shortest = if is_new { 0 } else { all.iter().map(|version| version.len()).min().unwrap_or(0) };
        Versions { all, shortest, was_emptied }
    }

    /// The names of a file that has had one all the time since a promise that it has, wherever their directories may be.
    fn names_of_kept(&self, number: usize) -> Option<BTreeSet<String>> {
        let models = self.models_since(|model, operation| match operation {
            Operation::Sync { kind: Sync::All, .. } => model.content.contains_key(&number),
            Operation::Sync { kind: Sync::File, path } => model.file(path) == Some(number),
            Operation::Sync { kind: Sync::Directory, path } => model.paths_of(number).any(|file| split(file).0 == path),
            _ => false,
        });
        let is_kept = models.iter().all(|model| model.paths_of(number).next().is_some());
        is_kept.then(|| {
            let names = models.iter().flat_map(|model| model.paths_of(number).filter_map(|path| place_of(model, path)));
            let names: BTreeSet<(usize, &str)> = names.collect();
            names.into_iter().flat_map(|(directory, name)| paths_in(models, directory, name, &[])).collect()
        })
    }
}

/// The directory that a path is in, and the name in it.
fn place_of<'a>(model: &Model, path: &'a str) -> Option<(usize, &'a str)> {
    let (parent, name) = split(path);
    Some((model.directory(parent)?, name))
}

/// Every path of `name` in a directory that itself may have each name that it has had: moves of different things are not ordered. No path
/// leads twice through a directory; `below` are those that it has led through.
fn paths_in(models: &[Model], directory: usize, name: &str, below: &[usize]) -> BTreeSet<String> {
    if directory == ROOT {
        return BTreeSet::from([name.to_string()]);
    }
    if below.contains(&directory) {
        return BTreeSet::new();
    }
    let below = [below, &[directory]].concat();
    let places = models.iter().filter_map(|model| place_of(model, model.path_of(directory)?));
    let places: BTreeSet<(usize, &str)> = places.collect();
    let parents = places.into_iter().flat_map(|(parent, own)| paths_in(models, parent, own, &below));
    parents.map(|parent| join(&parent, name)).collect()
}

fn describe(found: Option<&Found>) -> String {
    match found {
        None => "missing".to_string(),
        Some(Found::Directory) => "a directory".to_string(),
        Some(Found::File(content)) => format!("wrong, {} bytes", content.len()),
        Some(Found::Other) => "neither file nor directory".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(names: &[(&str, Node)]) -> Model {
        Model { names: names.iter().map(|(path, node)| (path.to_string(), node.clone())).collect(), ..Model::default() }
    }

    #[test]
    fn a_file_that_was_rewritten_since_its_promise_may_be_empty() {
        let write = |kind| Operation::Write { kind, path: "f".to_string(), offset: 0, length: 5000 };
        let sync = || Operation::Sync { kind: Sync::File, path: "f".to_string() };
        let lines = vec![write(Write::Create), sync(), write(Write::Rewrite), sync(), write(Write::Part)];
        let script = Script::of(lines);
        let allows = |promised: &[usize], content: &[u8]| {
            Judge::new(&script, promised.iter().copied().collect()).files[&1].allow(content)
        };
        assert!(allows(&[2], &[]), "`O_TRUNC` has come to the disk, and the write has not");
        assert!(!allows(&[2], &[0; 4096]), "a page of nothing was never there");
        assert!(!allows(&[2, 4], &[]), "the write was promised");
    }

    #[test]
    fn a_name_is_found_wherever_its_directory_may_be() {
        let (first, second) = (Node::Directory(1), Node::Directory(2));
        let models = [
            model(&[("a", first.clone()), ("b", second.clone()), ("a/f", Node::File(3))]),
            // The directories have changed places: neither is ever within itself.
            model(&[("a", first.clone()), ("a/b", second.clone()), ("a/f", Node::File(3))]),
            model(&[("b/a", first), ("b", second), ("b/a/f", Node::File(3))]),
        ];
        let found = paths_in(&models, 1, "f", &[]);
        assert_eq!(found, BTreeSet::from(["a/f", "b/a/f"].map(str::to_string)));
        assert_eq!(place_of(&models[2], "b/a/f"), Some((1, "f")));
        assert_eq!(place_of(&models[0], "b/a/f"), None);
    }
}
