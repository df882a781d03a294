//! Which files a process and a thread have.

use crate::process_text as text;
use crate::source::{OpenFile, ProcessText, Source};
use crate::text::Text;
use abi::pm::ProcessRecord;
use core::fmt;

/// Writes the text of a file.
pub type WriteText = fn(&mut dyn Source, &ProcessRecord, &mut Text) -> fmt::Result;

/// What an entry of /proc/PID is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A directory of descriptors, as links to their files.
    Descriptors,
    /// A directory of descriptors, as files about them.
    DescriptorInfo,
    /// A directory of namespaces.
    Namespaces,
    /// A directory of threads.
    Threads,
    /// A link to a file.
    Link(OpenFile),
    /// A link to the executable.
    Executable,
    /// A text that everybody may read.
    Text(WriteText),
    /// A text for the owner of the process.
    PrivateText(WriteText),
    /// The memory of the process, for its owner.
    Memory,
}

/// Who has an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// /proc/PID.
    Process,
    /// /proc/PID/task/TID.
    Thread,
    /// Both.
    Both,
}

impl Of {
    /// Returns whether a folder of this kind has the entry.
    pub fn has(self, folder: Of) -> bool {
        self == Of::Both || self == folder
    }
}

/// All entries: name, who has it, what it is. An entry's number is its index.
#[rustfmt::skip]
pub const ENTRIES: &[(&str, Of, Kind)] = &[
    ("auxv", Of::Both, Kind::PrivateText(|source, process, out| text::memory(source, process, ProcessText::Auxiliary, out))),
    ("cgroup", Of::Both, Kind::Text(|_, _, out| text::line(out, "0::/"))),
    ("children", Of::Thread, Kind::Text(text::children)),
    ("cmdline", Of::Both, Kind::Text(|source, process, out| text::memory(source, process, ProcessText::Arguments, out))),
    ("comm", Of::Both, Kind::Text(text::comm)),
    ("cwd", Of::Both, Kind::Link(OpenFile::WorkingDirectory)),
    ("environ", Of::Both, Kind::PrivateText(|source, process, out| text::memory(source, process, ProcessText::Environment, out))),
    ("exe", Of::Both, Kind::Executable),
    ("fd", Of::Both, Kind::Descriptors),
    ("fdinfo", Of::Both, Kind::DescriptorInfo),
    ("gid_map", Of::Both, Kind::Text(text::id_map)),
    ("limits", Of::Both, Kind::Text(text::limits)),
    ("loginuid", Of::Both, Kind::Text(text::no_login)),
    ("maps", Of::Both, Kind::PrivateText(|source, process, out| text::maps(source, process, out, text::map_line))),
    ("mem", Of::Both, Kind::Memory),
    ("mountinfo", Of::Both, Kind::Text(|source, _, out| source.mount_info(out))),
    ("mounts", Of::Both, Kind::Text(|source, _, out| source.mounts(out))),
    ("ns", Of::Both, Kind::Namespaces),
    ("oom_adj", Of::Both, Kind::Text(|_, _, out| text::line(out, "0"))),
    ("oom_score", Of::Both, Kind::Text(text::oom_score)),
    ("oom_score_adj", Of::Both, Kind::Text(|_, _, out| text::line(out, "0"))),
    ("root", Of::Both, Kind::Link(OpenFile::Root)),
    ("sessionid", Of::Both, Kind::Text(text::no_login)),
    ("setgroups", Of::Both, Kind::Text(|_, _, out| text::line(out, "allow"))),
    ("smaps", Of::Both, Kind::PrivateText(|source, process, out| text::maps(source, process, out, text::map_sizes))),
    ("stat", Of::Both, Kind::Text(text::stat)),
    ("statm", Of::Both, Kind::Text(text::memory_pages)),
    ("status", Of::Both, Kind::Text(text::status)),
    ("task", Of::Process, Kind::Threads),
    ("uid_map", Of::Both, Kind::Text(text::id_map)),
];

/// Namespaces, of which there is one of each kind, with the inode numbers of Linux's first ones.
pub const NAMESPACES: &[(&str, &str, u64)] = &[
    ("cgroup", "cgroup", 4_026_531_835),
    ("ipc", "ipc", 4_026_531_839),
    ("mnt", "mnt", 4_026_531_841),
    ("net", "net", 4_026_531_840),
    ("pid", "pid", 4_026_531_836),
    ("pid_for_children", "pid", 4_026_531_836),
    ("time", "time", 4_026_531_834),
    ("time_for_children", "time", 4_026_531_834),
    ("user", "user", 4_026_531_837),
    ("uts", "uts", 4_026_531_838),
];
