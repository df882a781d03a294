//! The system file: what a bootable system consists of. `systems/NAME.toml` is read by xtask, checked, and packed with postcard into the
//! boot archive, where rs reads it. Tables and keys of the TOML files are documented here; those that xtask alone reads (`devices`,
//! `opens`, `callers` and others) in `tools/xtask/src/system/written.rs`.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// A whole system.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// One line for people.
    pub description: String,
    /// Services in the order of their start. rs and vm are started by the kernel and are listed all the same, first.
    pub service: Vec<Service>,
    /// Linux system calls (by name in the TOML file, by number here) and the service that implements them; "kernel" for the kernel.
    pub routes: Vec<Route>,
}

/// Linux system call → service.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Route {
    /// Number.
    pub number: u32,
    /// Slot of the service; 0: the kernel.
    pub slot: u32,
}

/// One service.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Service {
    /// Its name: folder, crate, process.
    pub name: String,
    /// Slot, from `endpoint::slot` or in order of the file (xtask fills it).
    pub slot: u32,
    /// Binary in the archive; the name when left out in the TOML file.
    pub binary: String,
    /// Text handed to the service.
    pub arguments: String,
    /// Queue 0 (best) to 15.
    pub queue: u32,
    /// Quantum in microseconds.
    pub quantum_us: u32,
    /// Heap, bytes.
    pub heap_bytes: u64,
    /// Preserved memory, bytes.
    pub keep_bytes: u64,
    /// Kernel calls: mask of `KernelCall` bits.
    pub kernel_calls: u64,
    /// Destinations: slots.
    pub destinations: Vec<u32>,
    /// May send to application threads (reply to routed calls).
    pub applications: bool,
    /// `privilege` flags: MAGIC_GRANTS, MSI, COPY_APPLICATIONS_ONLY, RESTARTABLE.
    pub flags: u32,
    /// `privilege::way`.
    pub io_way: u32,
    /// Port ranges, inclusive.
    pub ports: Vec<(u16, u16)>,
    /// Ports of devices that the kernel plays: device (`privilege::device`, by name in the TOML file), first and last port.
    pub virtual_ports: Vec<(u8, u16, u16)>,
    /// Interrupt lines.
    pub irqs: Vec<u8>,
    /// Physical memory: start, bytes.
    pub memory: Vec<(u64, u64)>,
    /// File of the archive whose memory it may map (the ramdisk's image). rs adds `module=START,BYTES` to its arguments:
    /// physical address and length, hexadecimal with `0x`.
    pub module: Option<String>,
    /// PCI devices it drives: vendor, device.
    pub pci: Vec<(u16, u16)>,
    /// Heartbeat period in ms; 0: not watched.
    pub heartbeat_ms: u32,
    /// Missed heartbeats until it counts as hung.
    pub heartbeat_misses: u32,
    /// Restarts within `restart_window_ms` before rs gives up; 0: never restarted. One that need not wait (`backoff_ms`) is not counted.
    pub restarts: u32,
    /// See `restarts`.
    pub restart_window_ms: u32,
    /// The first restart comes at once; after the second death the successor waits this long, and twice as long after each further one.
    /// The wait halves with every 32 times this period that passes. 0: never a wait.
    pub backoff_ms: u32,
    /// How long a new binary (`service update`) is on trial: when it fails within this time, the old one comes back.
    pub trial_ms: u32,
    /// Services (slots) that cannot go on with a successor of this one: they are restarted when it is up again.
    pub dependants: Vec<u32>,
    /// No program can do anything without it. It is not given up: when its budget is spent it is tried again, at the longest wait. If it may
    /// not be restarted at all, its end is the end of the system.
    pub essential: bool,
    /// A successor starts in the memory of the dead: data and heap are retained, text and constants are new. Only for programs that are
    /// made for it (pm). vm and rs are always started so, by the kernel.
    pub retained: bool,
    /// The system goes on without it when it fails to start (a driver whose device is missing).
    pub optional: bool,
}

impl System {
    /// Packed for the archive.
    pub fn pack(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// Unpacked from the archive.
    pub fn unpack(bytes: &[u8]) -> Result<System, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
