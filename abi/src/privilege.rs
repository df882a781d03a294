//! Privileges of a service. The system file states them, rs passes them to the kernel with `PrivCtl`,
//! and the kernel enforces them on every path (docs/book/ideas.md, 6).

use crate::{Name, endpoint::SERVICE_SLOTS};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Inclusive range of I/O ports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

/// Range of physical memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MemoryRange {
    /// First byte.
    pub start: u64,
    /// Length; 0: unused entry.
    pub bytes: u64,
}

/// May make magic grants (vfs).
pub const MAGIC_GRANTS: u32 = 1;
/// May use message-signalled interrupts.
pub const MSI: u32 = 2;
/// May copy with `VirCopy` between application threads and itself only, not other services.
pub const COPY_APPLICATIONS_ONLY: u32 = 4;
/// A successor is expected when this service dies: senders to `Endpoint::current` wait.
pub const RESTARTABLE: u32 = 8;

/// A denied port access raises an exception, which kills the service, instead of returning an error.
pub const KILL_ON_DENIAL: u32 = 16;

/// One access of `VDevIo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct PortRequest {
    /// The port.
    pub port: u16,
    /// Operation of `io`.
    pub operation: u16,
    /// Value to write, or value read.
    pub value: u32,
}

/// Privileges of one service, as the kernel keeps them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Privileges {
    /// Name of the service.
    pub name: Name,
    /// Permitted kernel calls: bit = `KernelCall`. `call::UNRESTRICTED` is always permitted.
    pub kernel_calls: u64,
    /// Permitted destinations: bit = slot; bit `APPLICATIONS_BIT` = all application threads.
    pub destinations: [u64; SERVICE_SLOTS / 64],
    /// The flags of this module, from `MAGIC_GRANTS` on.
    pub flags: u32,
    /// Access path to its ports: one of `way`.
    pub io_way: u32,
    /// Port ranges, `port_count` of them.
    pub ports: [PortRange; 16],
    /// Device behind each range: one of `device`.
    pub devices: [u8; 16],
    /// Used entries of `ports`.
    pub port_count: u32,
    /// Used entries of `irqs`.
    pub irq_count: u32,
    /// Interrupt lines (ISA numbers or global system interrupts).
    pub irqs: [u8; 8],
    /// Physical memory it may map.
    pub memory: [MemoryRange; 8],
}

impl Privileges {
    /// No privileges.
    pub const NONE: Privileges = Privileges {
        name: Name([0; 16]),
        kernel_calls: 0,
        destinations: [0; SERVICE_SLOTS / 64],
        flags: 0,
        io_way: way::HAL,
        ports: [PortRange { first: 0, last: 0 }; 16],
        devices: [device::MACHINE; 16],
        port_count: 0,
        irq_count: 0,
        irqs: [0; 8],
        memory: [MemoryRange { start: 0, bytes: 0 }; 8],
    };
}

/// Access paths to a port (docs/book/driver-io.md).
pub mod way {
    /// Request messages to the SYSTEM task.
    pub const SYSTASK: u32 = 0;
    /// The HAL trap.
    pub const HAL: u32 = 1;
    /// IN and OUT in the driver, which fault and are emulated by the kernel.
    pub const EMULATE: u32 = 2;
    /// IN and OUT in the driver, permitted by the CPU's I/O permission bitmap.
    pub const DIRECT: u32 = 3;
}

/// Devices behind a range of ports: the machine's, or a virtual one in the kernel. Numbers from 128 on are reserved for devices
/// of other nodes; `PrivCtl` refuses them.
pub mod device {
    /// The machine's own ports.
    pub const MACHINE: u8 = 0;
    /// A clock, 32-bit reads: at offset 0 the low half of the monotonic time in ns, at 4 its high half. Other offsets read as ones; writes are ignored.
    pub const CLOCK: u8 = 1;
    /// The kernel's log: a byte written to offset 0 is logged; reads return 0xe9, as Bochs' debug port does.
    pub const LOG: u8 = 2;
    /// The devices that `virtual_ports` of the system file may name.
    pub const NAMES: [(&str, u8); 2] = [("clock", CLOCK), ("log", LOG)];
}

/// Operations of `DevIo` and `SDevIo`: width in bytes (1, 2, 4), plus `OUT` or `IN`.
pub mod io {
    /// Read.
    pub const IN: u64 = 0;
    /// Write.
    pub const OUT: u64 = 8;
    /// HAL trap: `count` accesses of one port, to or from a buffer.
    pub const STRING: u64 = 16;
    /// The bits that hold the width.
    pub const WIDTH: u64 = 7;
}

/// Kinds of `PrivCheck`.
pub mod check {
    /// Physical memory `value .. value + length`.
    pub const MEMORY: u64 = 0;
    /// Ports `value .. value + length`.
    pub const PORTS: u64 = 1;
    /// IRQ `value`.
    pub const IRQ: u64 = 2;
}
