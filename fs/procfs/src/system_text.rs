//! The files of /proc about the whole machine, in the format of proc(5).

use crate::source::Source;
use crate::text::Text;
use core::fmt::{self, Write};

/// Nanoseconds of a clock tick as /proc counts time (USER_HZ is 100).
pub const CLOCK_TICK_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Columns of /proc/meminfo up to the unit.
const MEMORY_COLUMNS: usize = 24;

/// /proc/uptime: seconds since boot, idle seconds.
pub fn uptime(source: &mut impl Source, text: &mut Text) -> fmt::Result {
    let kernel = source.kernel();
    hundredths(text, kernel.now_ns)?;
    text.write_char(' ')?;
    hundredths(text, kernel.idle_ns)?;
    text.write_char('\n')
}

/// /proc/loadavg: the averages are not measured and reported as 0; then runnable and existing processes, and the newest pid.
pub fn load_average(source: &mut impl Source, text: &mut Text) -> fmt::Result {
    let (mut running, mut all, mut last) = (0, 0, 0);
    let mut pid = 1;
    while let Some(process) = source.process_from(pid).map_err(|_| fmt::Error)? {
        all += 1;
        running += u32::from(process.state == u32::from(b'R'));
        last = process.pid;
        pid = process.pid + 1;
    }
    writeln!(text, "0.00 0.00 0.00 {running}/{all} {last}")
}

/// /proc/meminfo.
pub fn memory(source: &mut impl Source, text: &mut Text) -> fmt::Result {
    let memory = source.memory();
    for (name, bytes) in [
        ("MemTotal", memory.total),
        ("MemFree", memory.free),
        ("MemAvailable", memory.free + memory.cached),
        ("Buffers", 0),
        ("Cached", memory.cached),
        ("SwapCached", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Shmem", 0),
        ("Slab", 0),
        ("SReclaimable", 0),
    ] {
        kilobytes(text, name, bytes)?;
    }
    Ok(())
}

/// A line of meminfo or smaps.
pub fn kilobytes(text: &mut Text, name: &str, bytes: u64) -> fmt::Result {
    writeln!(text, "{name}:{:>1$} kB", bytes / 1024, MEMORY_COLUMNS - 1 - name.len())
}

/// /proc/stat: time of the CPU, interrupts, switches, boot time, processes.
pub fn statistics(source: &mut impl Source, text: &mut Text) -> fmt::Result {
    let kernel = source.kernel();
    let boot_s = source.real_time_ns().saturating_sub(kernel.now_ns) / SECOND_NS;
    let idle = kernel.idle_ns / CLOCK_TICK_NS;
    let busy = kernel.now_ns.saturating_sub(kernel.idle_ns) / CLOCK_TICK_NS;
    for name in ["cpu ", "cpu0"] {
        writeln!(text, "{name} {busy} 0 0 {idle} 0 0 0 0 0 0")?;
    }
    writeln!(text, "intr {}", kernel.interrupts)?;
    writeln!(text, "ctxt {}", kernel.switches)?;
    writeln!(text, "btime {boot_s}")?;
    writeln!(text, "processes {}", kernel.threads)
}

/// /proc/cpuinfo: the fields that programs read; the names are the CPU's own.
pub fn cpu(source: &mut impl Source, text: &mut Text) -> fmt::Result {
    let hz = source.kernel().tsc_hz;
    let (megahertz, fraction) = (hz / 1_000_000, hz / 1000 % 1000);
    write!(
        text,
        "processor\t: 0\nvendor_id\t: SkinkVirtual\nmodel name\t: x86-64 processor\ncpu MHz\t\t: {megahertz}.{fraction:03}\n\
         physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\nfpu\t\t: yes\n\
         address sizes\t: 40 bits physical, 48 bits virtual\n\n"
    )
}

/// /proc/version.
pub fn version(text: &mut Text) -> fmt::Result {
    text.write_str("Skink version 6.1.0-skink (Linux system calls as messages)\n")
}

/// /proc/filesystems.
pub fn file_systems(text: &mut Text) -> fmt::Result {
    text.write_str("nodev\tproc\nnodev\tdevtmpfs\n\text2\n")
}

/// /proc/devices: major numbers known to vfs.
pub fn devices(text: &mut Text) -> fmt::Result {
    text.write_str(
        "Character devices:\n  1 mem\n  4 ttyS\n  5 /dev/tty\n 10 misc\n\nBlock devices:\n  1 ramdisk\n  3 ata\n254 virtblk\n",
    )
}

fn hundredths(text: &mut Text, time_ns: u64) -> fmt::Result {
    write!(text, "{}.{:02}", time_ns / SECOND_NS, time_ns % SECOND_NS / 10_000_000)
}
