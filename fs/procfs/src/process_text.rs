//! The files of /proc/PID, in the format of proc(5).

use crate::source::{ProcessText, Source};
use crate::system_text::{CLOCK_TICK_NS, kilobytes};
use crate::text::{Lossy, Text, or_empty};
use abi::layout::PAGE_BYTES;
use abi::pm::ProcessRecord;
use abi::vm::MapRecord;
use alloc::vec::Vec;
use core::fmt::{self, Write};

const PROTECTION: [(u32, char); 3] = [(1, 'r'), (2, 'w'), (4, 'x')];
const SHARED: u32 = 8;
const HEAP: u32 = 1;
const STACK: u32 = 2;
const CLOCKS: u32 = 3;
const VDSO: u32 = 4;
/// Columns before the name of the file in a line of maps, as on Linux.
const FILE_COLUMN: usize = 73;
/// Regions fetched at a time, and shown at most.
const BATCH: usize = 32;
const MAX_REGIONS: u64 = 65_536;

/// Returns the first 15 bytes of the program's file name.
pub fn name(process: &ProcessRecord) -> Lossy<'_> {
    let end = process.name.iter().position(|&b| b == 0).unwrap_or(process.name.len());
    Lossy(&process.name[..end])
}

fn state_letter(process: &ProcessRecord) -> char {
    char::from_u32(process.state).filter(char::is_ascii_alphabetic).unwrap_or('?')
}

/// Returns the priority as Linux reports it: real-time priorities, inheritance included, are negative, lower is better.
fn priority(process: &ProcessRecord) -> i64 {
    match process.effective {
        0 => 20 + i64::from(process.nice),
        effective => -1 - i64::from(effective),
    }
}

/// /proc/PID/stat: 52 fields; what does not exist here is 0.
pub fn stat(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let memory = source.process_memory(process.endpoint);
    write!(
        text,
        "{} ({}) {} {} {} {} {} -1 0 {} 0 0 0",
        process.pid,
        name(process),
        state_letter(process),
        process.parent,
        process.group,
        process.session,
        process.terminal,
        memory.faults,
    )?;
    let fields: [u64; 21] = [
        process.user_ns / CLOCK_TICK_NS,
        0,
        process.children_ns / CLOCK_TICK_NS,
        0,
        priority(process) as u64,
        process.nice as i64 as u64,
        u64::from(process.threads),
        0,
        process.started_ns / CLOCK_TICK_NS,
        memory.size,
        memory.resident / PAGE_BYTES,
        u64::MAX,
        0,
        0,
        0,
        0,
        0,
        process.signals_pending | process.signals_shared,
        process.signals_blocked,
        process.signals_ignored,
        process.signals_caught,
    ];
    const PRIORITY: usize = 4;
    const NICE: usize = 5;
    for (index, field) in fields.into_iter().enumerate() {
        match index {
            PRIORITY | NICE => write!(text, " {}", field as i64)?,
            _ => write!(text, " {field}")?,
        }
    }
    const SIGCHLD: u32 = 17;
    writeln!(text, " 0 0 0 {SIGCHLD} 0 {} {} 0 0 0 0 0 0 0 0 0 0 0", process.priority, process.policy)
}

/// /proc/PID/statm: sizes in pages.
pub fn memory_pages(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let memory = source.process_memory(process.endpoint);
    let pages = |bytes: u64| bytes / PAGE_BYTES;
    writeln!(text, "{} {} 0 0 0 {} 0", pages(memory.size), pages(memory.resident), pages(memory.data + memory.stack))
}

/// A line that never changes.
pub fn line(text: &mut Text, line: &str) -> fmt::Result {
    writeln!(text, "{line}")
}

/// A text that pm copies; a zombie and a service have none.
pub fn memory(source: &mut dyn Source, process: &ProcessRecord, which: ProcessText, text: &mut Text) -> fmt::Result {
    let bytes = or_empty(source.process_text(process.process, which)).map_err(|error| text.failed(error))?;
    text.write_bytes(&bytes)
}

/// /proc/PID/comm.
pub fn comm(_: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", name(process))
}

/// schedstat: processor time in nanoseconds, time spent waiting for it, which nobody measures, and how often it was given up.
pub fn run_times(_: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    writeln!(text, "{} 0 {}", process.user_ns, process.waits)
}

/// wchan, as Linux shows it to those who may not know the kernel's functions.
pub fn no_wait_channel(_: &mut dyn Source, _: &ProcessRecord, text: &mut Text) -> fmt::Result {
    text.write_char('0')
}

/// /proc/PID/task/TID/children: the first thread of a process is the one that has its children.
pub fn children(source: &mut dyn Source, thread: &ProcessRecord, text: &mut Text) -> fmt::Result {
    if thread.pid != thread.process {
        return Ok(());
    }
    let mut pid = 1;
    while let Some(child) = source.process_from(pid).map_err(|error| text.failed(error))? {
        if child.parent == thread.process {
            write!(text, "{} ", child.pid)?;
        }
        pid = child.pid + 1;
    }
    Ok(())
}

/// /proc/PID/uid_map, gid_map, setgroups, from what pm tells.
pub fn id_map(which: ProcessText, told: &[u8], text: &mut Text) -> fmt::Result {
    if which == ProcessText::Setgroups {
        return text.write_bytes(told).and_then(|()| text.write_str("\n"));
    }
    let (maps, _) = told.as_chunks::<12>();
    maps.iter().try_for_each(|map| {
        let [inside, outside, count] =
            core::array::from_fn(|at| map.as_chunks().0.get(at).map_or(0, |bytes| u32::from_le_bytes(*bytes)));
        writeln!(text, "{inside:>10} {outside:>10} {count:>10}")
    })
}

/// /proc/PID/loginuid, sessionid: nothing is audited.
pub fn no_login(_: &mut dyn Source, _: &ProcessRecord, text: &mut Text) -> fmt::Result {
    write!(text, "{}", u32::MAX)
}

/// /proc/PID/oom_score: the share of memory that is resident, in thousandths: the largest process ends first.
pub fn oom_score(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let (own, all) = (source.process_memory(process.endpoint).resident, source.memory().total);
    writeln!(text, "{}", (own * 1000).checked_div(all).unwrap_or(0))
}

/// Names and units of resources in the order of their numbers.
const RESOURCES: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

/// /proc/PID/limits.
pub fn limits(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let bytes =
        or_empty(source.process_text(process.process, ProcessText::Limits)).map_err(|error| text.failed(error))?;
    writeln!(text, "{:<25} {:<20} {:<20} {:<10}", "Limit", "Soft Limit", "Hard Limit", "Units")?;
    for ((name, unit), limit) in RESOURCES.iter().zip(bytes.as_chunks::<16>().0) {
        write!(text, "{name:<25} ")?;
        for value in limit.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)) {
            match value {
                u64::MAX => write!(text, "{:<20} ", "unlimited")?,
                value => write!(text, "{value:<20} ")?,
            }
        }
        writeln!(text, "{unit:<10}")?;
    }
    Ok(())
}

/// /proc/PID/status.
pub fn status(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let files = if process.service == 0 { source.process_files(process.endpoint) } else { None };
    writeln!(text, "Name:\t{}", name(process))?;
    if let Some((umask, _)) = files {
        writeln!(text, "Umask:\t{umask:04o}")?;
    }
    writeln!(text, "State:\t{} ({})", state_letter(process), state_word(process))?;
    writeln!(text, "Tgid:\t{}\nNgid:\t0\nPid:\t{}", process.process, process.pid)?;
    writeln!(text, "PPid:\t{}\nTracerPid:\t{}", process.parent, process.tracer)?;
    writeln!(text, "Uid:\t{}\t{}\t{}\t{}", process.uid, process.euid, process.suid, process.fsuid)?;
    writeln!(text, "Gid:\t{}\t{}\t{}\t{}", process.gid, process.egid, process.sgid, process.fsgid)?;
    writeln!(text, "FDSize:\t{}", files.map_or(0, |(_, size)| size))?;
    let groups =
        or_empty(source.process_text(process.process, ProcessText::Groups)).map_err(|error| text.failed(error))?;
    text.write_str("Groups:\t")?;
    groups.as_chunks().0.iter().try_for_each(|group| write!(text, "{} ", u32::from_le_bytes(*group)))?;
    writeln!(text, "\nNStgid:\t{}\nNSpid:\t{}", process.process, process.pid)?;
    writeln!(text, "NSpgid:\t{}\nNSsid:\t{}", process.group, process.session)?;
    if process.service == 0 {
        memory_status(source, process, text)?;
    }
    writeln!(text, "Threads:\t{}", process.threads)?;
    writeln!(text, "SigQ:\t{}/{}", process.signals_queued, process.signals_queued_max)?;
    for (label, signals) in [
        ("SigPnd", process.signals_pending),
        ("ShdPnd", process.signals_shared),
        ("SigBlk", process.signals_blocked),
        ("SigIgn", process.signals_ignored),
        ("SigCgt", process.signals_caught),
        ("CapInh", process.capabilities_inheritable),
        ("CapPrm", process.capabilities_permitted),
        ("CapEff", process.capabilities_effective),
        ("CapBnd", process.capabilities_bounding),
        ("CapAmb", process.capabilities_ambient),
    ] {
        writeln!(text, "{label}:\t{signals:016x}")?;
    }
    writeln!(text, "NoNewPrivs:\t{}\nSeccomp:\t{}", process.no_new_privileges, process.seccomp)?;
    writeln!(text, "Seccomp_filters:\t{}", process.filters)?;
    text.write_str("Cpus_allowed:\t1\nCpus_allowed_list:\t0\nMems_allowed:\t1\nMems_allowed_list:\t0\n")?;
    writeln!(text, "voluntary_ctxt_switches:\t{}", process.waits)
}

/// The lines of status about memory: nothing is swapped, and nothing locked, since nothing ever leaves memory.
fn memory_status(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let memory = source.process_memory(process.endpoint);
    for (label, bytes) in [
        ("VmSize", memory.size),
        ("VmLck", 0),
        ("VmPin", 0),
        ("VmHWM", memory.peak),
        ("VmRSS", memory.resident),
        ("VmData", memory.data),
        ("VmStk", memory.stack),
        ("VmSwap", 0),
    ] {
        writeln!(text, "{label}:\t{:>8} kB", bytes / 1024)?;
    }
    Ok(())
}

/// Writes about one region. The bytes: the path of the file that it shows.
type WriteRegion = fn(&mut Text, &MapRecord, &[u8]) -> fmt::Result;

/// /proc/PID/maps and smaps: each region of a process, by `write`.
pub fn maps(source: &mut dyn Source, process: &ProcessRecord, text: &mut Text, write: WriteRegion) -> fmt::Result {
    let mut records = [MapRecord::default(); BATCH];
    // Regions of one file mostly follow each other, with memory without a file between the last of its and the next file's.
    let (mut file, mut name) = ((0, 0), Vec::new());
    let mut first = 0;
    while first < MAX_REGIONS {
        let count = source.maps(process.endpoint, first, &mut records).map_err(|error| text.failed(error))?;
        if count == 0 {
            break;
        }
        for region in &records[..count] {
            let has_file = region.device != 0;
            if has_file && file != (region.device, region.inode) {
                file = (region.device, region.inode);
                let found = or_empty(source.mapped_name(process.endpoint, region.start));
                name = found.map_err(|error| text.failed(error))?;
            }
            write(text, region, if has_file { &name } else { b"" })?;
        }
        first += count as u64;
    }
    Ok(())
}

/// A region in /proc/PID/smaps.
pub fn map_sizes(text: &mut Text, region: &MapRecord, name: &[u8]) -> fmt::Result {
    map_line(text, region, name)?;
    let size = region.end - region.start;
    for (label, bytes) in
        [("Size", size), ("KernelPageSize", PAGE_BYTES), ("MMUPageSize", PAGE_BYTES), ("Rss", region.resident)]
    {
        kilobytes(text, label, bytes)?;
    }
    Ok(())
}

/// A region in /proc/PID/maps.
pub fn map_line(text: &mut Text, region: &MapRecord, name: &[u8]) -> fmt::Result {
    let start = text.len();
    write!(text, "{:08x}-{:08x} ", region.start, region.end)?;
    for (bit, letter) in PROTECTION {
        text.write_char(if region.protection & bit != 0 { letter } else { '-' })?;
    }
    text.write_char(if region.protection & SHARED != 0 { 's' } else { 'p' })?;
    let (major, minor) = (region.device >> 8, region.device & 0xff);
    write!(text, " {:08x} {major:02x}:{minor:02x} {} ", region.offset, region.inode)?;
    let file: &[u8] = match region.kind {
        HEAP => b"[heap]",
        STACK => b"[stack]",
        CLOCKS => b"[vvar]",
        VDSO => b"[vdso]",
        _ => name,
    };
    if !file.is_empty() {
        let column = text.len() - start;
        write!(text, "{:>1$}{2}", "", FILE_COLUMN - column.min(FILE_COLUMN), Lossy(file))?;
    }
    text.write_char('\n')
}

fn state_word(process: &ProcessRecord) -> &'static str {
    match state_letter(process) {
        'R' => "running",
        'S' => "sleeping",
        'D' => "disk sleep",
        'T' => "stopped",
        't' => "tracing stop",
        'Z' => "zombie",
        _ => "unknown",
    }
}
