//! Which files a process and a thread have.

use crate::oom::Measure;
use crate::process_text as text;
use crate::source::{OpenFile, ProcessText, Source};
use crate::text::Text;
use abi::pm::ProcessRecord;
use abi::{Part, Parts, Word};
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
    /// The name of a thread, which its owner may change.
    Name,
    /// How much it is wanted when memory ends, which its owner may change.
    OomAdjust(Measure),
    /// A map of ids of its container, or whether setgroups(2) is allowed there.
    IdMap(ProcessText),
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
    ("comm", Of::Both, Kind::Name),
    ("cwd", Of::Both, Kind::Link(OpenFile::WorkingDirectory)),
    ("environ", Of::Both, Kind::PrivateText(|source, process, out| text::memory(source, process, ProcessText::Environment, out))),
    ("exe", Of::Both, Kind::Executable),
    ("fd", Of::Both, Kind::Descriptors),
    ("fdinfo", Of::Both, Kind::DescriptorInfo),
    ("gid_map", Of::Both, Kind::IdMap(ProcessText::GroupMap)),
    ("limits", Of::Both, Kind::Text(text::limits)),
    ("loginuid", Of::Both, Kind::Text(text::no_login)),
    ("maps", Of::Both, Kind::PrivateText(|source, process, out| text::maps(source, process, out, text::map_line))),
    ("mem", Of::Both, Kind::Memory),
    ("mountinfo", Of::Both, Kind::Text(|source, process, out| source.mount_info(process.endpoint, out))),
    ("mounts", Of::Both, Kind::Text(|source, process, out| source.mounts(process.endpoint, out))),
    ("ns", Of::Both, Kind::Namespaces),
    ("oom_adj", Of::Both, Kind::OomAdjust(Measure::Old)),
    ("oom_score", Of::Both, Kind::Text(text::oom_score)),
    ("oom_score_adj", Of::Both, Kind::OomAdjust(Measure::New)),
    ("root", Of::Both, Kind::Link(OpenFile::Root)),
    ("schedstat", Of::Both, Kind::Text(text::run_times)),
    ("sessionid", Of::Both, Kind::Text(text::no_login)),
    ("setgroups", Of::Both, Kind::IdMap(ProcessText::Setgroups)),
    ("smaps", Of::Both, Kind::PrivateText(|source, process, out| text::maps(source, process, out, text::map_sizes))),
    ("stat", Of::Both, Kind::Text(text::stat)),
    ("statm", Of::Both, Kind::Text(text::memory_pages)),
    ("status", Of::Both, Kind::Text(text::status)),
    ("task", Of::Process, Kind::Threads),
    ("uid_map", Of::Both, Kind::IdMap(ProcessText::UserMap)),
    ("wchan", Of::Both, Kind::Text(text::no_wait_channel)),
];

/// Namespaces: name, kind, the inode number of Linux's first one, and the part of a container that it is, if it is one.
pub const NAMESPACES: &[(&str, &str, u64, Option<Part>)] = &[
    ("cgroup", "cgroup", 4_026_531_835, Some(Part::Groups)),
    ("ipc", "ipc", 4_026_531_839, Some(Part::Ipc)),
    ("mnt", "mnt", 4_026_531_841, Some(Part::Mounts)),
    ("net", "net", 4_026_531_840, Some(Part::Network)),
    ("pid", "pid", 4_026_531_836, Some(Part::Processes)),
    ("pid_for_children", "pid", 4_026_531_836, Some(Part::Processes)),
    ("time", "time", 4_026_531_834, None),
    ("time_for_children", "time", 4_026_531_834, None),
    ("user", "user", 4_026_531_837, Some(Part::Users)),
    ("uts", "uts", 4_026_531_838, Some(Part::Host)),
];

/// Inode numbers of the namespaces of containers begin here, with this many for each.
const FIRST_OF_CONTAINERS: u64 = 4_026_532_000;
const OF_ONE_CONTAINER: u64 = 16;

/// The inode number of a namespace of a process.
pub fn namespace_inode(index: usize, process: &ProcessRecord) -> u64 {
    let (_, _, first, part) = NAMESPACES[index];
    let container = part.map_or(0, |part| Parts::from_word(process.parts).of(part));
    match (container, part) {
        (0, _) | (_, None) => first,
        (container, Some(part)) => FIRST_OF_CONTAINERS + u64::from(container) * OF_ONE_CONTAINER + part as u64,
    }
}
