//! Names of threads: of services from the kernel, of programs from /proc/skink/threads.

use abi::trace::{Record, event};
use abi::{Endpoint, endpoint::SERVICE_SLOTS, endpoint::slot, vfs};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

/// Limit of threads whose name is kept.
const MAX_NAMES: usize = 8192;

/// The name of a process: at most 16 bytes, NUL behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who([u8; 16]);

impl Who {
    /// From a text, whose end may be missing.
    pub fn new(text: &str) -> Who {
        let mut name = [0; 16];
        name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        Who(name)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        core::str::from_utf8(&self.0[..end]).unwrap_or("?")
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is known of threads.
#[derive(Debug, Default)]
pub struct Names {
    known: BTreeMap<Endpoint, Who>,
    unknown: BTreeSet<Endpoint>,
}

impl Names {
    /// Nothing yet.
    pub fn new() -> Names {
        Names::default()
    }

    /// Takes note of the threads of a record. One that executes another program gets another name.
    pub fn take(&mut self, record: &Record) {
        // The name of a process changes when vfs is told that it executes another program.
        let executes = record.event == event::MESSAGE && record.label == vfs::ExecCommit::LABEL;
        let executing = if executes { Endpoint(record.words[0] as u32) } else { Endpoint::NONE };
        self.known.remove(&executing);
        for thread in [record.from, record.to, executing] {
            if fixed(thread).is_none() && !self.known.contains_key(&thread) && self.unknown.len() < MAX_NAMES {
                self.unknown.insert(thread);
            }
        }
    }

    /// Whether there are threads without a name, for which `learn` is worth its while.
    pub fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Takes the text of /proc/skink/threads, and `service_of`, which knows the names of services. Threads that have ended meanwhile stay
    /// without a name.
    pub fn learn(&mut self, text: &[u8], service_of: impl Fn(Endpoint) -> Option<Who>) {
        if self.known.len() >= MAX_NAMES {
            self.known.clear();
        }
        let unknown = core::mem::take(&mut self.unknown);
        for line in text.split(|&byte| byte == b'\n').filter_map(|line| core::str::from_utf8(line).ok()) {
            let mut words = line.splitn(3, ' ');
            let (Some(thread), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let Some(thread) = thread.parse().ok().map(Endpoint) else { continue };
            if unknown.contains(&thread) {
                self.known.insert(thread, Who::new(name));
            }
        }
        for thread in unknown.into_iter().filter(|thread| thread.slot() < SERVICE_SLOTS) {
            if let Some(name) = service_of(thread) {
                self.known.insert(thread, name);
            }
        }
    }

    /// Returns the name of a thread; `?` if it has ended before it was asked for.
    pub fn get(&self, thread: Endpoint) -> Who {
        fixed(thread).or_else(|| self.known.get(&thread).copied()).unwrap_or(Who::new("?"))
    }

    /// Returns the threads with this name.
    pub fn threads(&self, name: Who) -> Vec<Endpoint> {
        self.known.iter().filter(|(_, known)| **known == name).map(|(thread, _)| *thread).collect()
    }
}

fn fixed(thread: Endpoint) -> Option<Who> {
    match thread {
        Endpoint::SYSTEM => Some(Who::new("SYSTEM")),
        Endpoint::CLOCK => Some(Who::new("CLOCK")),
        Endpoint::HARDWARE => Some(Who::new("HARDWARE")),
        Endpoint::NONE => Some(Who::new("-")),
        thread if thread == Endpoint::current(slot::IDLE) => Some(Who::new("idle")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VFS: Endpoint = Endpoint::new(8, 1);
    const DD: Endpoint = Endpoint::new(700, 2);
    const GONE: Endpoint = Endpoint::new(701, 2);

    fn message(from: Endpoint, to: Endpoint, label: u32) -> Record {
        Record { event: event::MESSAGE, label, from, to, ..Record::default() }
    }

    fn learn(names: &mut Names, program: &str) {
        let text = format!("{} 12 {program}\nnonsense\n77\n", DD.0);
        names.learn(text.as_bytes(), |thread| (thread == VFS).then(|| Who::new("vfs")));
    }

    #[test]
    fn threads_get_names_when_they_have_been_seen() {
        let mut names = Names::new();
        assert!(!names.has_unknown());
        names.take(&message(DD, VFS, 0));
        names.take(&message(GONE, VFS, 0));
        assert!(names.has_unknown());
        learn(&mut names, "dd with blanks");
        let texts: Vec<Who> = [DD, VFS, GONE].map(|thread| names.get(thread)).to_vec();
        assert_eq!(texts.iter().map(Who::as_str).collect::<Vec<_>>(), ["dd with blanks", "vfs", "?"]);
        assert!(!names.has_unknown());
        assert_eq!(names.threads(Who::new("vfs")), [VFS]);
        let pm = Endpoint::PM;
        names.take(&Record { words: [DD.0.into(), 0, 0, 0, 0, 0, 0], ..message(pm, VFS, vfs::ExecCommit::LABEL) });
        assert!(names.has_unknown(), "it becomes another program");
        learn(&mut names, "cat");
        assert_eq!(names.get(DD).as_str(), "cat");
    }

    #[test]
    fn what_is_no_process_has_a_name_too() {
        let mut names = Names::new();
        names.take(&message(Endpoint::CLOCK, Endpoint::current(slot::IDLE), 0));
        assert!(!names.has_unknown());
        assert_eq!(names.get(Endpoint::CLOCK).as_str(), "CLOCK");
        assert_eq!(names.get(Endpoint::current(slot::IDLE)).as_str(), "idle");
    }

    #[test]
    fn a_long_name_loses_its_end() {
        assert_eq!(Who::new("sixteen letters and more").as_str(), "sixteen letters ");
    }
}
