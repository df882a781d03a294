//! The files at the top of /proc, and in the folders net and sysvipc.

use crate::fixed::{Entry, Kind, entry, folder, line, text};
use crate::{drvs, system_text, system_v};
use abi::m3ipc::{TEXT_NODE, TEXT_NODES};

/// Everything at the top but processes and /proc/sys. The first entry is the root.
#[rustfmt::skip]
pub const TOP: &[Entry] = &[
    folder(""),
    text("cmdline", |source, out| source.command_line(out)),
    line("consoles", "ttyS0                -W- (EC   p  )    4:64"),
    text("cpuinfo", system_text::cpu),
    text("devices", system_text::devices),
    folder(drvs::FOLDER),
    text("drvs/info", |source, out| drvs::write(source, TEXT_NODE, out)),
    text("drvs/nodes", |source, out| drvs::write(source, TEXT_NODES, out)),
    text("filesystems", system_text::file_systems),
    text("loadavg", system_text::load_average),
    text("locks", |source, out| source.locks(out)),
    text("meminfo", system_text::memory),
    text("misc", system_text::other_devices),
    text("modules", system_text::nothing),
    entry("mounts", Kind::Link("self/mounts")),
    folder("net"),
    text("net/unix", system_text::sockets),
    text("partitions", |source, out| source.partitions(out)),
    entry("self", Kind::OwnProcess),
    folder("skink"),
    text("skink/threads", system_text::threads),
    text("stat", system_text::statistics),
    text("swaps", system_text::swaps),
    entry("thread-self", Kind::OwnThread),
    folder("sysvipc"),
    text("sysvipc/msg", system_v::queues),
    text("sysvipc/sem", system_v::semaphores),
    text("sysvipc/shm", system_v::segments),
    text("uptime", system_text::uptime),
    text("version", system_text::version),
    text("vmstat", system_text::memory_counters),
];
