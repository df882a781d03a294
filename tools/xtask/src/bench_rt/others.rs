//! Figures that others report: the paper's, and those of other systems in the same emulator.

/// Tests of the paper.
pub const TESTS: usize = 4;

/// Row of the paper's Table 2: a down-up pair of TEST1 to TEST4, in µs on a DX4 of 75 MHz.
pub const PAPER_US: [(&str, [f64; TESTS]); 4] = [
    ("none", [53.42, 56.25, 53.52, 55.75]),
    ("CPU", [54.02, 55.67, 53.57, 55.67]),
    ("disk", [54.05, 55.65, 53.57, 55.57]),
    ("serial", [54.45, 56.42, 54.32, 56.45]),
];

/// The clock of that machine, in MHz: cycles in a µs.
pub const PAPER_MHZ: f64 = 75.0;

/// Another system's TEST3, in ticks.
pub struct Other {
    /// Its name.
    pub name: &'static str,
    /// With ten slots.
    pub paper: u32,
    /// With one slot.
    pub buffer1: u32,
}

/// A user thread of Zephyr, and Linux with PREEMPT_RT, which does not enter the kernel for ten slots.
pub const OTHERS: [Other; 2] = [
    Other { name: "Zephyr, user threads", paper: 519, buffer1: 692 },
    Other { name: "Linux-RT", paper: 868, buffer1: 3070 },
];

/// The worst lateness of a periodic process of 1 kHz, in ticks, and the load under which it was found.
pub const WORST_LATENESS: [(&str, u64); 2] =
    [("Linux-RT: hackbench", 6212), ("Debian's kernel: disk and /proc", 175_225)];
