//! The papers' own figures, in CPU cycles on a Pentium MMX of 233.9 MHz. Cycles are not ticks: only ratios compare.

/// Mean and standard deviation of one access.
pub type Cycles = (f64, f64);

/// One way of one paper.
pub struct Figure {
    /// Our name of the way.
    pub way: &'static str,
    /// IN.
    pub input: Cycles,
    /// OUT.
    pub output: Cycles,
}

/// One paper.
pub struct Paper {
    /// How it is called here.
    pub name: &'static str,
    /// The same in the picture, which has little room.
    pub title: &'static str,
    /// Its ways, the baseline first.
    pub figures: &'static [Figure],
}

/// "Enhancing MINIX 3.X Input/Output Performance" and "… using a virtual machine approach".
pub const PAPERS: [Paper; 2] = [
    Paper {
        name: "HAL paper",
        title: "HAL paper, 2008",
        figures: &[
            Figure { way: "systask", input: (3268.0, 1053.0), output: (3346.0, 785.0) },
            Figure { way: "hal", input: (1435.0, 754.0), output: (1454.0, 687.0) },
        ],
    },
    Paper {
        name: "trap-and-emulate paper",
        title: "Trap-and-emulate, 2010",
        figures: &[
            Figure { way: "systask", input: (3392.7, 537.9), output: (3264.9, 128.8) },
            Figure { way: "hal", input: (1415.5, 343.9), output: (1341.3, 99.6) },
            Figure { way: "emulate", input: (1818.0, 406.4), output: (1737.5, 129.0) },
        ],
    },
];
