//! /proc/sys: one line for each file. A number is what a service enforces (`abi::limits`), or is asked of the service that knows it. What
//! Skink has no use for has the value that describes it, and cannot be written.

use crate::fixed::{Entry, Setting, folder, line, number, setting, text};
use crate::system_text;
use abi::vfs::LEASE_BREAK_S;
use abi::{endpoint, limits, linux, pm};

/// The files of sysctl(8).
#[rustfmt::skip]
pub const SETTINGS: &[Entry] = &[
    folder("sys"),
    folder("sys/fs"),
    number("sys/fs/aio-max-nr", 0),
    number("sys/fs/aio-nr", 0),
    folder("sys/fs/epoll"),
    text("sys/fs/epoll/max_user_watches", system_text::epoll_watches),
    text("sys/fs/file-max", system_text::open_files_max),
    text("sys/fs/file-nr", system_text::open_files),
    text("sys/fs/inode-nr", system_text::nodes),
    text("sys/fs/inode-state", system_text::node_state),
    number("sys/fs/lease-break-time", LEASE_BREAK_S),
    number("sys/fs/leases-enable", 1),
    number("sys/fs/mount-max", 32),
    folder("sys/fs/mqueue"),
    number("sys/fs/mqueue/msg_default", limits::POSIX_MESSAGES),
    number("sys/fs/mqueue/msg_max", limits::POSIX_MESSAGES),
    number("sys/fs/mqueue/msgsize_default", limits::POSIX_MESSAGE_BYTES),
    number("sys/fs/mqueue/msgsize_max", limits::POSIX_MESSAGE_BYTES),
    number("sys/fs/mqueue/queues_max", limits::POSIX_QUEUES as u64),
    number("sys/fs/nr_open", limits::DESCRIPTORS),
    number("sys/fs/overflowgid", 65534),
    number("sys/fs/overflowuid", 65534),
    number("sys/fs/pipe-max-size", limits::PIPE_BYTES as u64),
    number("sys/fs/pipe-user-pages-hard", 0),
    text("sys/fs/pipe-user-pages-soft", system_text::pipe_pages),
    number("sys/fs/protected_fifos", 0),
    number("sys/fs/protected_hardlinks", 0),
    number("sys/fs/protected_regular", 0),
    number("sys/fs/protected_symlinks", 0),
    number("sys/fs/suid_dumpable", 0),
    folder("sys/kernel"),
    number("sys/kernel/cap_last_cap", 40),
    number("sys/kernel/ctrl-alt-del", 0),
    number("sys/kernel/dmesg_restrict", 0),
    line("sys/kernel/core_pattern", "core"),
    number("sys/kernel/core_uses_pid", 0),
    setting("sys/kernel/domainname", Setting::MachineName(1)),
    setting("sys/kernel/hostname", Setting::MachineName(0)),
    number("sys/kernel/kptr_restrict", 2),
    number("sys/kernel/modules_disabled", 1),
    number("sys/kernel/msgmax", limits::MESSAGE_BYTES as u64),
    number("sys/kernel/msgmnb", limits::MESSAGE_QUEUE_BYTES as u64),
    number("sys/kernel/msgmni", limits::MESSAGE_QUEUES as u64),
    number("sys/kernel/ngroups_max", limits::GROUPS as u64),
    line("sys/kernel/osrelease", linux::RELEASE),
    line("sys/kernel/ostype", "Linux"),
    number("sys/kernel/overflowgid", 65534),
    number("sys/kernel/overflowuid", 65534),
    number("sys/kernel/panic", 0),
    number("sys/kernel/panic_on_oops", 0),
    number("sys/kernel/perf_event_paranoid", 3),
    setting("sys/kernel/pid_max", Setting::Number(pm::SETTING_PID_MAX)),
    line("sys/kernel/printk", "7\t4\t1\t7"),
    folder("sys/kernel/random"),
    text("sys/kernel/random/boot_id", system_text::boot_id),
    number("sys/kernel/random/entropy_avail", 256),
    number("sys/kernel/random/poolsize", 256),
    number("sys/kernel/random/urandom_min_reseed_secs", 0),
    text("sys/kernel/random/uuid", system_text::new_id),
    number("sys/kernel/random/write_wakeup_threshold", 256),
    setting("sys/kernel/randomize_va_space", Setting::Number(pm::SETTING_RANDOM_PLACES)),
    number("sys/kernel/sched_autogroup_enabled", 0),
    number("sys/kernel/sched_rr_timeslice_ms", 100),
    number("sys/kernel/sched_rt_period_us", 1_000_000),
    number("sys/kernel/sched_rt_runtime_us", 950_000),
    line("sys/kernel/sem", "256\t32768\t500\t128"),
    number("sys/kernel/shm_rmid_forced", 0),
    text("sys/kernel/shmall", system_text::most_segment_pages),
    number("sys/kernel/shmmax", limits::SEGMENT_BYTES),
    number("sys/kernel/shmmni", limits::SEGMENTS as u64),
    number("sys/kernel/sysrq", 0),
    number("sys/kernel/tainted", 0),
    number("sys/kernel/threads-max", (endpoint::SLOTS - endpoint::SERVICE_SLOTS) as u64),
    number("sys/kernel/unprivileged_bpf_disabled", 2),
    line("sys/kernel/version", linux::VERSION),
    folder("sys/net"),
    folder("sys/net/core"),
    number("sys/net/core/rmem_default", limits::SOCKET_BUFFER as u64),
    number("sys/net/core/rmem_max", limits::SOCKET_BUFFER as u64),
    number("sys/net/core/somaxconn", limits::BACKLOG as u64),
    number("sys/net/core/wmem_default", limits::SOCKET_BUFFER as u64),
    number("sys/net/core/wmem_max", limits::SOCKET_BUFFER as u64),
    folder("sys/net/unix"),
    folder("sys/user"),
    folder("sys/vm"),
    number("sys/vm/dirty_background_bytes", 0),
    number("sys/vm/dirty_bytes", 0),
    number("sys/vm/dirty_expire_centisecs", 500),
    number("sys/vm/dirty_writeback_centisecs", 500),
    number("sys/vm/legacy_va_layout", 0),
    number("sys/vm/max_map_count", limits::MAPPINGS as u64),
    text("sys/vm/min_free_kbytes", system_text::least_free),
    number("sys/vm/mmap_min_addr", 65536),
    number("sys/vm/nr_hugepages", 0),
    number("sys/vm/nr_overcommit_hugepages", 0),
    number("sys/vm/oom_dump_tasks", 0),
    number("sys/vm/oom_kill_allocating_task", 0),
    number("sys/vm/overcommit_kbytes", 0),
    number("sys/vm/overcommit_memory", 0),
    number("sys/vm/overcommit_ratio", 50),
    number("sys/vm/page-cluster", 0),
    number("sys/vm/panic_on_oom", 0),
    number("sys/vm/swappiness", 0),
    number("sys/vm/vfs_cache_pressure", 100),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_semaphores_are_the_limits() {
        let (each, sets) = (limits::SEMAPHORES, limits::SEMAPHORE_SETS);
        let expected = std::format!("{each}\t{}\t{}\t{sets}", each * sets, limits::SEMAPHORE_OPERATIONS);
        let shown = SETTINGS.iter().find(|entry| entry.name() == "sem").map(|entry| entry.kind);
        assert!(matches!(shown, Some(crate::fixed::Kind::Line(line)) if line == expected));
    }
}
