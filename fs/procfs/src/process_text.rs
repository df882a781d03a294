//! The files of /proc/PID, in the format of proc(5).

use crate::source::{ProcessText, Source};
use crate::system_text::CLOCK_TICK_NS;
use abi::layout::PAGE_BYTES;
use abi::pm::ProcessRecord;
use abi::vm::MapRecord;
use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;

const PROTECTION: [(u32, char); 3] = [(1, 'r'), (2, 'w'), (4, 'x')];
const SHARED: u32 = 8;
const HEAP: u32 = 1;
const STACK: u32 = 2;

/// Returns the first 15 bytes of the program's file name.
pub fn name(process: &ProcessRecord) -> String {
    let end = process.name.iter().position(|&b| b == 0).unwrap_or(process.name.len());
    String::from_utf8_lossy(&process.name[..end]).into_owned()
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
pub fn stat(source: &mut impl Source, process: &ProcessRecord) -> String {
    let memory = source.process_memory(process.endpoint);
    let mut text = format!(
        "{} ({}) {} {} {} {} {} -1 0 0 0 0 0",
        process.pid,
        name(process),
        state_letter(process),
        process.parent,
        process.group,
        process.session,
        process.terminal,
    );
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
        // Writing to a String cannot fail.
        let _ =
            if matches!(index, PRIORITY | NICE) { write!(text, " {}", field as i64) } else { write!(text, " {field}") };
    }
    const SIGCHLD: u32 = 17;
    let _ = writeln!(text, " 0 0 0 {SIGCHLD} 0 {} {} 0 0 0 0 0 0 0 0 0 0 0", process.priority, process.policy);
    text
}

/// /proc/PID/statm: sizes in pages.
pub fn memory_pages(source: &mut impl Source, process: &ProcessRecord) -> String {
    let memory = source.process_memory(process.endpoint);
    let pages = |bytes: u64| bytes / PAGE_BYTES;
    format!("{} {} 0 0 0 {} 0\n", pages(memory.size), pages(memory.resident), pages(memory.data + memory.stack))
}

/// /proc/PID/status.
pub fn status(source: &mut impl Source, process: &ProcessRecord) -> String {
    let mut text = format!(
        "Name:\t{}\nState:\t{} ({})\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n",
        name(process),
        state_letter(process),
        state_word(process),
        process.process,
        process.pid,
        process.parent,
    );
    let _ = writeln!(text, "Uid:\t{}\t{}\t{}\t{}", process.uid, process.euid, process.suid, process.euid);
    let _ = writeln!(text, "Gid:\t{}\t{}\t{}\t{}", process.gid, process.egid, process.sgid, process.egid);
    if process.service == 0 {
        let memory = source.process_memory(process.endpoint);
        for (label, bytes) in
            [("VmSize", memory.size), ("VmRSS", memory.resident), ("VmData", memory.data), ("VmStk", memory.stack)]
        {
            let _ = writeln!(text, "{label}:\t{:>8} kB", bytes / 1024);
        }
    }
    let _ = writeln!(text, "Threads:\t{}", process.threads);
    for (label, signals) in [
        ("SigPnd", process.signals_pending),
        ("SigBlk", process.signals_blocked),
        ("SigIgn", process.signals_ignored),
        ("SigCgt", process.signals_caught),
    ] {
        let _ = writeln!(text, "{label}:\t{signals:016x}");
    }
    text
}

/// /proc/PID/maps.
pub fn maps(source: &mut impl Source, process: &ProcessRecord) -> String {
    let executable = source.process_text(process.pid, ProcessText::Executable).unwrap_or_default();
    let executable = String::from_utf8_lossy(&executable).into_owned();
    let mut text = String::new();
    for region in source.maps(process.endpoint) {
        map_line(&mut text, &region, &executable);
    }
    text
}

fn map_line(text: &mut String, region: &MapRecord, executable: &str) {
    let start = text.len();
    let _ = write!(text, "{:08x}-{:08x} ", region.start, region.end);
    text.extend(PROTECTION.iter().map(|&(bit, letter)| if region.protection & bit != 0 { letter } else { '-' }));
    text.push(if region.protection & SHARED != 0 { 's' } else { 'p' });
    let (major, minor) = (region.device >> 8, region.device & 0xff);
    let _ = write!(text, " {:08x} {major:02x}:{minor:02x} {}", region.offset, region.inode);
    let file = match region.kind {
        HEAP => "[heap]",
        STACK => "[stack]",
        _ if region.inode != 0 => executable,
        _ => "",
    };
    if !file.is_empty() {
        // As on Linux the name begins in column 73.
        while text.len() - start < 72 {
            text.push(' ');
        }
        let _ = write!(text, " {file}");
    }
    text.push('\n');
}

/// Arguments or environment as stored in memory, for /proc/PID/cmdline and environ.
pub fn memory_text(source: &mut impl Source, process: &ProcessRecord, which: ProcessText) -> Vec<u8> {
    // A zombie and a service have none.
    source.process_text(process.pid, which).unwrap_or_default()
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
