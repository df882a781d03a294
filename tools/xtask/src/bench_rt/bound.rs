//! The longest wait of a fast timer: how long the kernel does not look at interrupts, under loads that any user can make, and while services die.
//!
//! A periodic process of 1 kHz meets a long path only if one of its periods begins in it. So here the real-time clock runs at 50 kHz (`mrt_bound`),
//! and nothing else counts than how late it came at worst.

use crate::bundle::Bundle;
use crate::c_programs::CProgram;
use crate::guest::{Guest, Job};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fmt::Write;

/// What disturbs, and the command that does it.
const LOADS: [(&str, &str); 18] = [
    ("none", "sleep 1"),
    ("900 threads sleep until one time", "rt_load sleepers"),
    ("900 waiters of a futex are woken", "rt_load wake"),
    ("900 waiters of a futex are requeued", "rt_load requeue"),
    ("200 processes fork, sleep and exit", "rt_load forks"),
    ("400 processes of a group are killed", "rt_load group"),
    ("500 threads exit", "rt_load exit"),
    ("500 threads are killed", "rt_load killed"),
    ("a process of 150 MiB forks", "rt_load large"),
    ("hackbench: 3 groups of 40", "rt_load messages"),
    ("100 programs start", "for i in $(seq 100); do /bin/true; done"),
    ("40,000 random calls", "chaos 40000 7"),
    ("uart, tty, rtc, pci die", "kill_services uart tty rtc pci"),
    ("ramdisk, ext2, procfs, devfs die", "kill_services ramdisk ext2 procfs devfs"),
    ("ds, vfs die", "kill_services ds vfs"),
    ("pm dies", "kill_services pm pm"),
    ("rs dies", "kill_services rs rs"),
    ("vm dies", "kill_services vm vm"),
];

/// Lets each service die, and its successor live for a while.
const KILL_SERVICES: &str = "kill_services() { for name; do service kill $name >&2 || exit 1; sleep 0.6; done; }";

/// The longest wait under a load, in ticks.
pub struct Wait {
    load: &'static str,
    ticks: u64,
}

/// Measures under all loads, in one machine.
///
/// # Errors
/// When the machine fails, or a load.
pub fn measure(workspace: &Workspace, bundle: &Bundle, programs: &[CProgram]) -> Result<Vec<Wait>> {
    let mut command = String::new();
    for (_, load) in LOADS {
        writeln!(command, "mrt_bound sh -c '{KILL_SERVICES}; {load}' 2>&1 || exit 1")?;
    }
    let job = Job { c_programs: programs, icount: true, ..Job::new(&command) };
    let printed = Guest::prepare(workspace, bundle, &job)?.collect()?;
    waits(&printed).with_context(|| format!("it printed:\n{printed}"))
}

/// The lines "timer TICKS second stage ... status 0", one for each load.
fn waits(printed: &str) -> Option<Vec<Wait>> {
    let ticks: Vec<u64> = printed
        .lines()
        .filter(|line| line.ends_with(" status 0"))
        .filter_map(|line| line.strip_prefix("timer ")?.split(' ').next()?.parse().ok())
        .collect();
    let is_whole = ticks.len() == LOADS.len();
    is_whole.then(|| LOADS.iter().zip(ticks).map(|((load, _), ticks)| Wait { load, ticks }).collect())
}

/// The table.
pub fn table(waits: &[Wait]) -> String {
    let mut text = String::from("| load | longest wait of a 50 kHz timer |\n|---|---|\n");
    for Wait { load, ticks } in waits {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {load} | **{ticks}** |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_has_a_wait_or_none_has() {
        let printed: String = (0..LOADS.len()).map(|at| format!("timer {at} second stage 9 of 1 status 0\n")).collect();
        let found = waits(&format!("kernel: vm starts again\n{printed}")).expect("is whole");
        assert_eq!((found.len(), found[2].ticks), (LOADS.len(), 2));
        assert!(table(&found).contains("| none | **0** |\n"));
        assert!(waits(&printed.replacen("status 0", "status 256", 1)).is_none());
    }
}
