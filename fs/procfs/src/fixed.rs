//! Files that do not belong to a process: a table of paths, and what is behind each.
//!
//! A table has a line for every file and folder, a folder before what is in it. An entry's number is its index, which is the same in
//! every incarnation. To add a file, add its line.

use crate::source::{Screen, Source};
use crate::text::Text;
use core::fmt;

/// Writes the text of a file.
pub type WriteText = fn(&mut dyn Source, &mut Text) -> fmt::Result;
/// Writes what a file says of the screen.
pub type WriteOfScreen = fn(&Screen, &mut Text) -> fmt::Result;

/// What an entry is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A directory.
    Folder,
    /// A symbolic link.
    Link(&'static str),
    /// A symbolic link to the folder of the process that follows it.
    OwnProcess,
    /// A symbolic link to the folder of the thread that follows it.
    OwnThread,
    /// A text that is made for each read.
    Text(WriteText),
    /// A text about the screen, which can be read only while there is one.
    OfScreen(WriteOfScreen),
    /// A line that never changes.
    Line(&'static str),
    /// A number that never changes.
    Number(u64),
    /// A file that root may write.
    Setting(Setting),
}

/// What writing a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A name of the machine (`pm::MachineName::which`).
    MachineName(u64),
    /// A number of pm (`pm::SETTING_*`).
    Number(u64),
    /// A thing of the screen (`display::CHANGE_*`).
    Screen(u64),
    /// By how much text is turned on the screen.
    TextRotation,
}

/// A line of a table.
pub struct Entry {
    path: &'static str,
    /// Where its last component begins.
    name_start: usize,
    /// What it is.
    pub kind: Kind,
}

impl Entry {
    /// Returns its last component.
    pub fn name(&self) -> &'static str {
        &self.path[self.name_start..]
    }

    /// Returns its path.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the path of the folder that it is in; `None`: it is the root.
    fn folder(&self) -> Option<&'static str> {
        if self.path.is_empty() { None } else { Some(&self.path[..self.name_start.saturating_sub(1)]) }
    }

    /// Whether it is in this folder. Most entries are not, which the lengths tell.
    fn is_in(&self, folder: &Entry) -> bool {
        let own_length = self.name_start.saturating_sub(1);
        own_length == folder.path.len() && self.folder() == Some(folder.path)
    }

    /// Whether it is a directory.
    pub fn is_folder(&self) -> bool {
        matches!(self.kind, Kind::Folder)
    }
}

/// A folder.
pub const fn folder(path: &'static str) -> Entry {
    entry(path, Kind::Folder)
}

/// A file with a text.
pub const fn text(path: &'static str, write: WriteText) -> Entry {
    entry(path, Kind::Text(write))
}

/// A file about the screen.
pub const fn screen(path: &'static str, write: WriteOfScreen) -> Entry {
    entry(path, Kind::OfScreen(write))
}

/// A file with one line.
pub const fn line(path: &'static str, line: &'static str) -> Entry {
    entry(path, Kind::Line(line))
}

/// A file with a number.
pub const fn number(path: &'static str, number: u64) -> Entry {
    entry(path, Kind::Number(number))
}

/// A file that root may write.
pub const fn setting(path: &'static str, setting: Setting) -> Entry {
    entry(path, Kind::Setting(setting))
}

/// Any other entry.
pub const fn entry(path: &'static str, kind: Kind) -> Entry {
    let mut name_start = path.len();
    while name_start > 0 && path.as_bytes()[name_start - 1] != b'/' {
        name_start -= 1;
    }
    Entry { path, name_start, kind }
}

/// All entries of a file system that belong to no process. The first is the root.
#[derive(Clone, Copy)]
pub struct Entries(&'static [&'static [Entry]]);

impl Entries {
    /// Joins parts of a table.
    pub const fn new(parts: &'static [&'static [Entry]]) -> Entries {
        Entries(parts)
    }

    /// Returns how many there are.
    pub fn len(self) -> usize {
        self.0.iter().map(|part| part.len()).sum()
    }

    /// Returns the entry with this number.
    pub fn get(self, number: usize) -> Option<&'static Entry> {
        let mut left = number;
        for part in self.0 {
            match part.get(left) {
                Some(entry) => return Some(entry),
                None => left -= part.len(),
            }
        }
        None
    }

    fn numbered(self) -> impl Iterator<Item = (usize, &'static Entry)> {
        self.0.iter().flat_map(|part| part.iter()).enumerate()
    }

    /// Returns the first entry of a folder whose number is not below `first`.
    pub fn next_in(self, folder: &Entry, first: usize) -> Option<(usize, &'static Entry)> {
        self.numbered().skip(first).find(|(_, entry)| entry.is_in(folder))
    }

    /// Returns the number of the entry with this name in a folder.
    pub fn find(self, folder: &Entry, name: &[u8]) -> Option<usize> {
        let is_meant = |entry: &Entry| entry.is_in(folder) && entry.name().as_bytes() == name;
        self.numbered().find(|(_, entry)| is_meant(entry)).map(|(number, _)| number)
    }

    /// Returns the number of the folder that an entry is in; that of the root is the root.
    pub fn parent(self, entry: &Entry) -> usize {
        self.numbered_path(entry.folder().unwrap_or(""))
    }

    /// Returns the number of the entry with this path; that of the root if there is none.
    pub fn numbered_path(self, path: &str) -> usize {
        self.numbered().find(|(_, entry)| entry.path == path).map_or(0, |(number, _)| number)
    }
}
