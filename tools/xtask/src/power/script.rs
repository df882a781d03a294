//! A random workload, and the model of what each line of it makes of the files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An operation on files; paths are relative to the root of the disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Makes a file with content, gives one another content, or changes a part of it.
    Write {
        kind: Write,
        path: String,
        offset: usize,
        length: usize,
    },
    /// Truncates a file.
    Truncate {
        path: String,
        length: usize,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    MakeDir {
        path: String,
    },
    RemoveDir {
        path: String,
    },
    Sync {
        kind: Sync,
        path: String,
    },
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Write {
    /// A new file.
    Create,
    /// With `O_TRUNC`.
    Rewrite,
    /// In place, or beyond the end.
    Part,
    /// As `Part`, with `O_SYNC`.
    Synchronous,
}

/// Calls that make a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sync {
    /// fsync(2) of a file.
    File,
    /// fdatasync(2) of a file.
    Data,
    /// fsync(2) of a directory.
    Directory,
    /// sync(2).
    All,
}

/// What a path names, by the line that has made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A directory.
    Directory(usize),
    /// A file.
    File(usize),
}

/// The root directory's number.
pub const ROOT: usize = 0;

/// What there is after a line of the script.
#[derive(Clone, Default)]
pub struct Model {
    /// What each path names.
    pub names: BTreeMap<String, Node>,
    /// The content of each file.
    pub content: BTreeMap<usize, Arc<Vec<u8>>>,
}

/// A workload.
pub struct Script {
    /// Line n is number n - 1.
    pub lines: Vec<Operation>,
    /// Before the first line, and after each.
    pub models: Vec<Model>,
}

impl fmt::Display for Operation {
    /// The line that user/power/promises.c reads, without the version.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Operation::Write { kind, path, offset, length } => {
                let word = match kind {
                    Write::Create => "create",
                    Write::Rewrite => "rewrite",
                    Write::Part => "write",
                    Write::Synchronous => "osync",
                };
                write!(f, "{word} {path} - {offset} {length}")
            }
            Operation::Truncate { path, length } => write!(f, "truncate {path} - 0 {length}"),
            Operation::Rename { from, to } => write!(f, "rename {from} {to} 0 0"),
            Operation::Link { from, to } => write!(f, "link {from} {to} 0 0"),
            Operation::Unlink { path } => write!(f, "unlink {path} - 0 0"),
            Operation::MakeDir { path } => write!(f, "mkdir {path} - 0 0"),
            Operation::RemoveDir { path } => write!(f, "rmdir {path} - 0 0"),
            Operation::Sync { kind, path } => {
                let word = match kind {
                    Sync::File => "fsync",
                    Sync::Data => "fdatasync",
                    Sync::Directory => "syncdir",
                    Sync::All => "sync",
                };
                write!(f, "{word} {path} - 0 0")
            }
        }
    }
}

/// The byte at `position` that the line `version` writes. Never 0, which is what a hole has.
pub fn byte(version: usize, position: usize) -> u8 {
    let mixed = (version as u32).wrapping_mul(2_654_435_761) ^ (position as u32).wrapping_mul(2_654_435_769);
    (mixed >> 13) as u8 | 1
}

/// The directory that a path is in, and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// The path of `name` in the directory at `parent`.
pub fn join(parent: &str, name: &str) -> String {
    if parent == "." { name.to_string() } else { format!("{parent}/{name}") }
}

impl Model {
    /// The file that a path names.
    pub fn file(&self, path: &str) -> Option<usize> {
        match self.names.get(path) {
            Some(Node::File(number)) => Some(*number),
            _ => None,
        }
    }

    /// The directory that a path names.
    pub fn directory(&self, path: &str) -> Option<usize> {
        match self.names.get(path) {
            Some(Node::Directory(number)) => Some(*number),
            None if path == "." => Some(ROOT),
            _ => None,
        }
    }

    /// The path of a directory.
    pub fn path_of(&self, directory: usize) -> Option<&str> {
        if directory == ROOT {
            return Some(".");
        }
        let mut names = self.names.iter().filter(|(_, node)| **node == Node::Directory(directory));
        names.next().map(|(path, _)| path.as_str())
    }

    /// Paths that name the file.
    pub fn paths_of(&self, number: usize) -> impl Iterator<Item = &String> {
        self.names.iter().filter(move |(_, node)| **node == Node::File(number)).map(|(path, _)| path)
    }

    /// Carries out line `version`.
    fn apply(&mut self, operation: &Operation, version: usize) {
        match operation {
            Operation::Write { kind: Write::Create, path, .. } => {
                self.names.insert(path.clone(), Node::File(version));
                self.content.insert(version, Arc::default());
                self.write(operation, version);
            }
            Operation::Write { .. } => self.write(operation, version),
            Operation::Truncate { path, length } => self.change(path, |content| content.resize(*length, 0)),
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::Link { from, to } => {
                let node = self.names[from].clone();
                self.names.insert(to.clone(), node);
            }
            Operation::Unlink { path } | Operation::RemoveDir { path } => drop(self.names.remove(path)),
            Operation::MakeDir { path } => drop(self.names.insert(path.clone(), Node::Directory(version))),
            Operation::Sync { .. } => {}
        }
    }

    fn change(&mut self, path: &str, act: impl FnOnce(&mut Vec<u8>)) {
        let number = self.file(path).unwrap_or_else(|| panic!("{path} is no file"));
        if let Some(content) = self.content.get_mut(&number) {
            act(Arc::make_mut(content));
        }
    }

    fn write(&mut self, operation: &Operation, version: usize) {
        let Operation::Write { kind, path, offset, length } = operation else { return };
        self.change(path, |content| {
            if *kind == Write::Rewrite {
                content.clear();
            }
            content.resize(content.len().max(offset + length), 0);
            for (position, place) in content.iter_mut().enumerate().skip(*offset).take(*length) {
                *place = byte(version, position);
            }
        });
    }

    /// Moves a file, or a directory with all in it.
    fn rename(&mut self, from: &str, to: &str) {
        let inside = format!("{from}/");
        let moved: Vec<String> =
            self.names.keys().filter(|path| *path == from || path.starts_with(&inside)).cloned().collect();
        for path in moved {
            if let Some(node) = self.names.remove(&path) {
                self.names.insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
    }
}

impl Script {
    /// A random workload of so many lines, the same for the same seed.
    pub fn random(seed: u64, lines: usize) -> Script {
        let mut script = Script::of(Vec::new());
        let mut random = fastrand::Rng::with_seed(seed);
        while script.lines.len() < lines {
            let (model, version) = (&script.models[script.lines.len()], script.lines.len() + 1);
            if let Some(operation) = choose(&mut random, model, version, lines) {
                script.add(operation);
            }
        }
        script
    }

    /// The workload of these lines.
    pub fn of(lines: Vec<Operation>) -> Script {
        let mut script = Script { lines: Vec::new(), models: vec![Model::default()] };
        lines.into_iter().for_each(|line| script.add(line));
        script
    }

    fn add(&mut self, line: Operation) {
        let mut next = self.models[self.lines.len()].clone();
        next.apply(&line, self.lines.len() + 1);
        self.lines.push(line);
        self.models.push(next);
    }

    /// As user/power/promises.c reads it.
    pub fn text(&self) -> String {
        self.lines.iter().zip(1..).map(|(line, version)| format!("{line} {version}\n")).collect()
    }
}

const DIRECTORIES: usize = 6;
const FILES: usize = 24;
/// Lines that make what no later one changes.
const FIRST_LINES: usize = 12;
/// Bytes that all files together have at most: the disk is small.
const MAX_CONTENT: usize = 2 << 20;

/// Chooses the operation of line `version`, which succeeds; `None` if the dice have fallen badly.
fn choose(random: &mut fastrand::Rng, model: &Model, version: usize, lines: usize) -> Option<Operation> {
    if version <= FIRST_LINES {
        return Some(first(version));
    }
    if version == lines {
        return Some(Operation::Sync { kind: Sync::All, path: ".".to_string() });
    }
    let of_kind = |is_directory: bool| {
        let names = model.names.iter().filter(move |(_, node)| matches!(node, Node::Directory(_)) == is_directory);
        names.map(|(path, _)| path.as_str()).filter(|path| !path.starts_with(UNTOUCHED)).collect()
    };
    let (files, directories) = (of_kind(false), of_kind(true));
    Dice { random, model, files, directories }.throw()
}

/// How the names of the files begin that stay as they are.
const UNTOUCHED: &str = "old";

/// Files that nothing changes later, and two directories.
fn first(version: usize) -> Operation {
    match version {
        1 => Operation::MakeDir { path: "d0".to_string() },
        2 => Operation::MakeDir { path: "d1".to_string() },
        FIRST_LINES => Operation::Sync { kind: Sync::All, path: ".".to_string() },
        _ => {
            let (path, length) = (format!("{UNTOUCHED}{version}"), version * version * 300);
            Operation::Write { kind: Write::Create, path, offset: 0, length }
        }
    }
}

/// Chooses among what is possible after a line.
struct Dice<'a> {
    random: &'a mut fastrand::Rng,
    model: &'a Model,
    files: Vec<&'a str>,
    directories: Vec<&'a str>,
}

impl Dice<'_> {
    fn throw(mut self) -> Option<Operation> {
        match self.random.u8(..100) {
            0..22 => Some(self.content()),
            22..34 => self.part(Write::Part),
            34..40 => self.part(Write::Synchronous),
            40..44 => self.truncate(),
            44..60 => self.rename(),
            60..63 => self.rename_directory(),
            63..67 => self.link(),
            67..74 => Some(Operation::Unlink { path: self.file()? }),
            74..78 => self.make_dir(),
            78..80 => self.remove_dir(),
            80..90 => Some(Operation::Sync { kind: Sync::File, path: self.file()? }),
            90..93 => Some(Operation::Sync { kind: Sync::Data, path: self.file()? }),
            93..97 => Some(Operation::Sync { kind: Sync::Directory, path: self.directory()? }),
            _ => Some(Operation::Sync { kind: Sync::All, path: ".".to_string() }),
        }
    }

    fn file(&mut self) -> Option<String> {
        self.random.choice(&self.files).map(ToString::to_string)
    }

    fn directory(&mut self) -> Option<String> {
        self.random.choice(&self.directories).map(ToString::to_string)
    }

    /// A path for a file, which may exist.
    fn place(&mut self) -> String {
        let name = format!("f{}", self.random.usize(..FILES));
        let directory = if self.random.u8(..3) == 0 { None } else { self.directory() };
        directory.map_or(name.clone(), |directory| format!("{directory}/{name}"))
    }

    fn has(&self, path: &str) -> bool {
        self.model.names.contains_key(path)
    }

    fn length_of(&self, path: &str) -> usize {
        self.model.file(path).map_or(0, |number| self.model.content[&number].len())
    }

    fn content(&mut self) -> Operation {
        let path = self.place();
        let kind = if self.has(&path) { Write::Rewrite } else { Write::Create };
        let is_full = self.files.iter().map(|path| self.length_of(path)).sum::<usize>() > MAX_CONTENT;
        // Most files are small; some need indirect blocks.
        let length = match self.random.u8(..20) {
            _ if is_full => 100,
            0 => self.random.usize(280_000..500_000),
            1..4 => self.random.usize(13_000..60_000),
            _ => self.random.usize(1..9000),
        };
        Operation::Write { kind, path, offset: 0, length }
    }

    fn part(&mut self, kind: Write) -> Option<Operation> {
        let path = self.file()?;
        let old = self.length_of(&path);
        // Every other one appends.
        let offset = if self.random.bool() { old } else { self.random.usize(..=old) };
        Some(Operation::Write { kind, path, offset, length: self.random.usize(1..6000) })
    }

    fn truncate(&mut self) -> Option<Operation> {
        let path = self.file()?;
        let length = self.random.usize(..=self.length_of(&path));
        Some(Operation::Truncate { path, length })
    }

    fn rename(&mut self) -> Option<Operation> {
        let (from, to) = (self.file()?, self.place());
        // Two names of one file stay as they are.
        (self.model.file(&from) != self.model.file(&to)).then_some(Operation::Rename { from, to })
    }

    fn rename_directory(&mut self) -> Option<Operation> {
        let (from, to) = (self.directory()?, self.directory()?);
        let to = format!("{to}/d{}", self.random.usize(..DIRECTORIES));
        let is_inside = to.starts_with(&format!("{from}/"));
        let is_deep = to.split('/').count() > 3;
        (!is_inside && !is_deep && !self.has(&to)).then_some(Operation::Rename { from, to })
    }

    fn link(&mut self) -> Option<Operation> {
        let (from, to) = (self.file()?, self.place());
        (!self.has(&to)).then_some(Operation::Link { from, to })
    }

    fn make_dir(&mut self) -> Option<Operation> {
        let path = format!("d{}", self.random.usize(..DIRECTORIES));
        (!self.has(&path)).then_some(Operation::MakeDir { path })
    }

    fn remove_dir(&mut self) -> Option<Operation> {
        let path = self.directory()?;
        let inside = format!("{path}/");
        let is_empty = !self.model.names.keys().any(|other| other.starts_with(&inside));
        is_empty.then_some(Operation::RemoveDir { path })
    }
}
