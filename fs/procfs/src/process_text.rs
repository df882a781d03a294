//! The files of /proc/PID, in the format of proc(5).

use crate::source::{ProcessText, Source};
use crate::system_text::{CLOCK_TICK_NS, kilobytes};
use crate::text::{Lossy, Text, or_empty};
use abi::layout::PAGE_BYTES;
use abi::pm::ProcessRecord;
use abi::vm::MapRecord;
use core::fmt::{self, Write};

const PROTECTION: [(u32, char); 3] = [(1, 'r'), (2, 'w'), (4, 'x')];
const SHARED: u32 = 8;
const HEAP: u32 = 1;
const STACK: u32 = 2;
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
    char::from_u32(process.state).filter(char::is_ascii_uppercase).unwrap_or('?')
}

/// Returns the priority as Linux reports it: real-time priorities, inheritance included, are negative, lower is better.
fn priority(process: &ProcessRecord) -> i64 {
    match process.effective {
        0 => 20 + i64::from(process.nice),
        effective => -1 - i64::from(effective),
    }
}

/// /proc/PID/stat: 52 fields; what does not exist here is 0.
pub fn stat(source: &mut impl Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let memory = source.process_memory(process.endpoint);
    write!(
        text,
        "{} ({}) {} {} {} {} {} -1 0 0 0 0 0",
        process.pid,
        name(process),
        state_letter(process),
        process.parent,
        process.group,
        process.session,
        process.terminal,
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
        process.signals_pending,
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
pub fn memory_pages(source: &mut impl Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    let memory = source.process_memory(process.endpoint);
    let pages = |bytes: u64| bytes / PAGE_BYTES;
    writeln!(text, "{} {} 0 0 0 {} 0", pages(memory.size), pages(memory.resident), pages(memory.data + memory.stack))
}

/// /proc/PID/status.
pub fn status(source: &mut impl Source, process: &ProcessRecord, text: &mut Text) -> fmt::Result {
    write!(
        text,
        "Name:\t{}\nState:\t{} ({})\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n",
        name(process),
        state_letter(process),
        state_word(process),
        process.process,
        process.pid,
        process.parent,
    )?;
    writeln!(text, "Uid:\t{}\t{}\t{}\t{}", process.uid, process.euid, process.suid, process.euid)?;
    writeln!(text, "Gid:\t{}\t{}\t{}\t{}", process.gid, process.egid, process.sgid, process.egid)?;
    if process.service == 0 {
        let memory = source.process_memory(process.endpoint);
        for (label, bytes) in
            [("VmSize", memory.size), ("VmRSS", memory.resident), ("VmData", memory.data), ("VmStk", memory.stack)]
        {
            writeln!(text, "{label}:\t{:>8} kB", bytes / 1024)?;
        }
    }
    writeln!(text, "Threads:\t{}", process.threads)?;
    for (label, signals) in [
        ("SigPnd", process.signals_pending),
        ("SigBlk", process.signals_blocked),
        ("SigIgn", process.signals_ignored),
        ("SigCgt", process.signals_caught),
    ] {
        writeln!(text, "{label}:\t{signals:016x}")?;
    }
    Ok(())
}

/// Writes about one region. The bytes: the path of the executable.
type WriteRegion = fn(&mut Text, &MapRecord, &[u8]) -> fmt::Result;

/// /proc/PID/maps and smaps: each region of a process, by `write`.
pub fn maps(source: &mut impl Source, process: &ProcessRecord, text: &mut Text, write: WriteRegion) -> fmt::Result {
    let executable = or_empty(source.process_text(process.pid, ProcessText::Executable)).map_err(|_| fmt::Error)?;
    let mut records = [MapRecord::default(); BATCH];
    let mut first = 0;
    while first < MAX_REGIONS {
        let count = source.maps(process.endpoint, first, &mut records).map_err(|_| fmt::Error)?;
        if count == 0 {
            break;
        }
        records.iter().take(count).try_for_each(|region| write(text, region, &executable))?;
        first += count as u64;
    }
    Ok(())
}

/// A region in /proc/PID/smaps.
pub fn map_sizes(text: &mut Text, region: &MapRecord, executable: &[u8]) -> fmt::Result {
    map_line(text, region, executable)?;
    let size = region.end - region.start;
    for (label, bytes) in
        [("Size", size), ("KernelPageSize", PAGE_BYTES), ("MMUPageSize", PAGE_BYTES), ("Rss", region.resident)]
    {
        kilobytes(text, label, bytes)?;
    }
    Ok(())
}

/// A region in /proc/PID/maps.
pub fn map_line(text: &mut Text, region: &MapRecord, executable: &[u8]) -> fmt::Result {
    let start = text.len();
    write!(text, "{:08x}-{:08x} ", region.start, region.end)?;
    for (bit, letter) in PROTECTION {
        text.write_char(if region.protection & bit != 0 { letter } else { '-' })?;
    }
    text.write_char(if region.protection & SHARED != 0 { 's' } else { 'p' })?;
    let (major, minor) = (region.device >> 8, region.device & 0xff);
    write!(text, " {:08x} {major:02x}:{minor:02x} {}", region.offset, region.inode)?;
    let file: &[u8] = match region.kind {
        HEAP => b"[heap]",
        STACK => b"[stack]",
        // A System V segment has a number and no device.
        _ if region.device != 0 => executable,
        _ => b"",
    };
    if !file.is_empty() {
        let column = text.len() - start;
        write!(text, "{:>1$}{2}", "", (FILE_COLUMN - column.min(FILE_COLUMN)).max(1), Lossy(file))?;
    }
    text.write_char('\n')
}

fn state_word(process: &ProcessRecord) -> &'static str {
    match state_letter(process) {
        'R' => "running",
        'S' => "sleeping",
        'D' => "disk sleep",
        'T' => "stopped",
        'Z' => "zombie",
        _ => "unknown",
    }
}
