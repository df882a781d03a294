//! The files of /proc about the whole machine, in the format of proc(5).

use crate::process_text::name;
pub use crate::processor::cpu;
use crate::source::Source;
use crate::text::Text;
use abi::layout::PAGE_BYTES;
use abi::limits;
use abi::linux::{RELEASE, VERSION};
use core::fmt::{self, Write};

/// Nanoseconds of a clock tick as /proc counts time (USER_HZ is 100).
pub const CLOCK_TICK_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// One, in load averages of pm.
const LOAD_ONE: u64 = 1 << 11;
/// Columns of /proc/meminfo up to the unit.
const MEMORY_COLUMNS: usize = 24;

/// /proc/uptime: seconds since boot, idle seconds.
pub fn uptime(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let kernel = source.kernel();
    hundredths(text, kernel.now_ns)?;
    text.write_char(' ')?;
    hundredths(text, kernel.idle_ns)?;
    text.write_char('\n')
}

/// /proc/loadavg: the averages, runnable and existing processes, and the highest pid.
pub fn load_average(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let (mut running, mut all, mut last) = (0, 0, 0);
    let mut pid = 1;
    while let Some(process) = source.process_from(pid).map_err(|error| text.failed(error))? {
        all += 1;
        running += u32::from(process.state == u32::from(b'R'));
        last = process.pid;
        pid = process.pid + 1;
    }
    for average in source.loads() {
        let rounded = average + LOAD_ONE / 200;
        write!(text, "{}.{:02} ", rounded / LOAD_ONE, rounded % LOAD_ONE * 100 / LOAD_ONE)?;
    }
    writeln!(text, "{running}/{all} {last}")
}

/// /proc/meminfo.
pub fn memory(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let memory = source.memory();
    for (name, bytes) in [
        ("MemTotal", memory.total),
        ("MemFree", memory.free),
        ("MemAvailable", memory.free + memory.cached),
        ("Buffers", 0),
        ("Cached", memory.cached),
        ("SwapCached", 0),
        // Pages of files are evicted by age, without a list of those in use.
        ("Active", 0),
        ("Inactive", memory.cached),
        ("Unevictable", 0),
        ("Mlocked", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Writeback", 0),
        ("Shmem", 0),
        ("Slab", 0),
        ("SReclaimable", 0),
        ("SUnreclaim", 0),
        ("NFS_Unstable", 0),
        ("Bounce", 0),
        ("WritebackTmp", 0),
        ("CommitLimit", memory.total),
        ("Committed_AS", memory.total - memory.free - memory.cached),
        // Services have address spaces of their own in place of one of the kernel's.
        ("VmallocTotal", 0),
        ("VmallocUsed", 0),
        ("VmallocChunk", 0),
        ("AnonHugePages", 0),
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
pub fn statistics(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
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

/// /proc/skink/threads: endpoint, id and name of each thread, for who reads the trace ring.
pub fn threads(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let mut pid = 1;
    while let Some(process) = source.process_from(pid).map_err(|error| text.failed(error))? {
        writeln!(text, "{} {} {}", process.endpoint.0, process.pid, name(&process))?;
        pid = process.pid + 1;
        // Most have one thread.
        let mut tid = if process.threads > 1 { Some(1) } else { None };
        while let Some(from) = tid {
            let thread = source.thread_from(process.pid, from).map_err(|error| text.failed(error))?;
            if let Some(thread) = thread.filter(|thread| thread.endpoint != process.endpoint) {
                writeln!(text, "{} {} {}", thread.endpoint.0, thread.pid, name(&thread))?;
            }
            tid = thread.map(|thread| thread.pid + 1);
        }
    }
    Ok(())
}

/// /proc/version.
pub fn version(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "Linux version {RELEASE} (Skink: Linux system calls as messages) {VERSION}")
}

/// /proc/filesystems.
pub fn file_systems(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str("nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\n\text3\n\text2\n")
}

/// /proc/devices: major numbers known to vfs.
pub fn devices(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str(
        "Character devices:\n  1 mem\n  4 ttyS\n  5 /dev/tty\n 10 misc\n\nBlock devices:\n  1 ramdisk\n  3 ata\n  7 loop\n254 virtblk\n",
    )
}

/// /proc/misc: minor numbers of the major number 10.
pub fn other_devices(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str("135 rtc\n237 loop-control\n240 trace\n")
}

/// Nothing.
pub fn nothing(_: &mut dyn Source, _: &mut Text) -> fmt::Result {
    Ok(())
}

/// /proc/swaps: there are none.
pub fn swaps(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
}

/// /proc/vmstat: the counters that are kept. Nothing is swapped.
pub fn memory_counters(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let memory = source.memory();
    for (name, count) in [
        ("nr_free_pages", memory.free / PAGE_BYTES),
        ("nr_file_pages", memory.cached / PAGE_BYTES),
        ("pswpin", 0),
        ("pswpout", 0),
    ] {
        writeln!(text, "{name} {count}")?;
    }
    Ok(())
}

/// /proc/net/unix.
pub fn sockets(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    text.write_str("Num       RefCount Protocol Flags    Type St Inode Path\n")?;
    source.sockets(text)
}

/// /proc/sys/fs/file-nr: open files, free ones (always 0), and how many there can be.
pub fn open_files(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    let usage = source.file_usage();
    writeln!(text, "{}\t0\t{}", usage.files, usage.files_max)
}

/// /proc/sys/fs/file-max.
pub fn open_files_max(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", source.file_usage().files_max)
}

/// /proc/sys/fs/inode-nr: vnodes, and free ones.
pub fn nodes(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}\t0", source.file_usage().nodes)
}

/// /proc/sys/fs/inode-state.
pub fn node_state(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}\t0\t0\t0\t0\t0\t0", source.file_usage().nodes)
}

/// /proc/sys/fs/pipe-user-pages-soft: pages in pipes that one user gets.
pub fn pipe_pages(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", source.file_usage().user_pipe_bytes / PAGE_BYTES)
}

/// /proc/sys/fs/epoll/max_user_watches.
pub fn epoll_watches(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", source.file_usage().user_interests)
}

/// /proc/sys/fs/aio-nr.
pub fn aio_requests(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", source.file_usage().aio_requests)
}

/// vm/min_free_kbytes: what programs leave free.
pub fn least_free(_: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", limits::FREE_FRAMES as u64 * PAGE_BYTES / 1024)
}

/// /proc/sys/kernel/shmall: half of memory, as pm has it.
pub fn most_segment_pages(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", source.memory().total / PAGE_BYTES / 2)
}

/// /proc/sys/kernel/random/boot_id: stays until the next boot.
pub fn boot_id(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    identifier(source.identity().0, text)
}

/// /proc/sys/kernel/random/uuid: another one with each read.
pub fn new_id(source: &mut dyn Source, text: &mut Text) -> fmt::Result {
    identifier(source.identity().1, text)
}

/// A random UUID (version 4) of these bits.
fn identifier(bits: u128, text: &mut Text) -> fmt::Result {
    const VERSION_4: u128 = 0x4000 << 64;
    const VERSION_MASK: u128 = 0xf000 << 64;
    const VARIANT: u128 = 0b10 << 62;
    const VARIANT_MASK: u128 = 0b11 << 62;
    let bits = bits & !(VERSION_MASK | VARIANT_MASK) | VERSION_4 | VARIANT;
    let field = |shift: u32, digits: u32| bits >> shift & ((1 << (4 * digits)) - 1);
    let (a, b, c, d, e) = (field(96, 8), field(80, 4), field(64, 4), field(48, 4), field(0, 12));
    writeln!(text, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
}

fn hundredths(text: &mut Text, time_ns: u64) -> fmt::Result {
    write!(text, "{}.{:02}", time_ns / SECOND_NS, time_ns % SECOND_NS / 10_000_000)
}
