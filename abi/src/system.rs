//! The system file: the services of a bootable system, their privileges, and the routes of system calls. `systems/NAME.toml` is read by xtask, checked, and packed with postcard into the
//! boot archive, where rs reads it. Tables and keys of the TOML files are documented here; those that xtask alone reads (`devices`,
//! `opens`, `callers` and others) in `tools/xtask/src/system/written.rs`.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// A whole system.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Description in one line.
    pub description: String,
    /// Services in the order of their start. rs and vm are started by the kernel, but listed too, first.
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
    /// Name of the folder, the crate and the process.
    pub name: String,
    /// Slot, from `endpoint::slot` or in order of the file (xtask fills it).
    pub slot: u32,
    /// Binary in the archive; the name when left out in the TOML file.
    pub binary: String,
    /// Text arguments of the service.
    pub arguments: String,
    /// Queue 0 (best) to 15.
    pub queue: u32,
    /// Quantum in microseconds.
    pub quantum_us: u32,
    /// Heap, bytes.
    pub heap_bytes: u64,
    /// Preserved memory, bytes.
    pub keep_bytes: u64,
    /// Limit of its memory for DMA, bytes.
    pub dma_bytes: u64,
    /// May ask vm for sizes and maps of the memory of other processes.
    pub inspects_memory: bool,
    /// Kernel calls: mask of `KernelCall` bits.
    pub kernel_calls: u64,
    /// Destinations: slots.
    pub destinations: Vec<u32>,
    /// May send to application threads (reply to routed calls).
    pub applications: bool,
    /// `privilege` flags: MAGIC_GRANTS, MSI, COPY_APPLICATIONS_ONLY, RESTARTABLE.
    pub flags: u32,
    /// Access path to ports: one of `privilege::way`.
    pub io_way: u32,
    /// Port ranges, inclusive.
    pub ports: Vec<(u16, u16)>,
    /// Ports of virtual devices in the kernel: device (`privilege::device`, by name in the TOML file), first and last port.
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
    /// Missed heartbeats after which the service counts as hung.
    pub heartbeat_misses: u32,
    /// Budget: restarts within `restart_window_ms` before rs gives up; 0: never restarted. A restart without back-off is not counted.
    pub restarts: u32,
    /// Window of the budget `restarts`, in ms.
    pub restart_window_ms: u32,
    /// Back-off: the first restart is immediate; after the second crash the successor starts this much later, and twice as late after
    /// each further one. The delay halves with every 32 such periods that pass. 0: no back-off.
    pub backoff_ms: u32,
    /// Trial of a new binary (`service update`), in ms: if it fails within this time, the old one is restored.
    pub trial_ms: u32,
    /// Services (slots) that cannot continue with a successor of this one: they are restarted when it is up again.
    pub dependants: Vec<u32>,
    /// Critical: no program works without this service. rs never gives it up: when its budget is spent, restarts continue at the longest
    /// back-off. If it may not be restarted at all, its end halts the system.
    pub essential: bool,
    /// A successor starts in its predecessor's memory: data and heap are retained, text and constants are new. Only for programs
    /// written for it (pm). The kernel always restarts vm and rs this way.
    pub retained: bool,
    /// The system continues without it if it fails to start (a driver whose device is missing).
    pub optional: bool,
    /// Where none of its PCI devices is present, it may have the memory of the boot loader's frame buffer, if there is one.
    pub framebuffer: bool,
}

impl System {
    /// Encodes the system file for the archive.
    pub fn pack(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// Decodes the system file of an archive.
    pub fn unpack(bytes: &[u8]) -> Result<System, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
