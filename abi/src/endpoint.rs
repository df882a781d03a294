//! Endpoints: who a message goes to and comes from.
//!
//! An endpoint is a slot of the kernel's thread table and the generation of its holder, so that a message meant for
//! one process never reaches its successor. Slots 0 to 3 are the kernel's own tasks, 4 to 127 belong to services
//! (fixed by the system file), the rest to application threads.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Slot (bits 0 to 11) and generation (bits 12 to 30).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Endpoint(pub u32);

/// Number of slots for services, kernel tasks included. A destination bitmap has one bit for each.
pub const SERVICE_SLOTS: usize = 128;
/// First slot of a service.
pub const FIRST_SERVICE: usize = 4;
/// All slots: kernel tasks, services and application threads.
pub const SLOTS: usize = 1152;
/// The bit in a destination bitmap that stands for all application threads (the slot of the idle task).
pub const APPLICATIONS_BIT: usize = 3;

/// Fixed slots. The other services get the slots from `FIRST_FREE` on, in the order of the system file.
pub mod slot {
    #![allow(missing_docs)]
    pub const SYSTEM: usize = 0;
    pub const CLOCK: usize = 1;
    pub const HARDWARE: usize = 2;
    pub const IDLE: usize = 3;
    pub const RS: usize = 4;
    pub const VM: usize = 5;
    pub const DS: usize = 6;
    pub const PM: usize = 7;
    pub const VFS: usize = 8;
    pub const TTY: usize = 9;
    pub const PCI: usize = 10;
    pub const FIRST_FREE: usize = 11;
    /// The names of the fixed slots from `RS` on.
    pub const NAMES: [&str; 7] = ["rs", "vm", "ds", "pm", "vfs", "tty", "pci"];
}

impl Endpoint {
    /// Receive only: from anybody.
    pub const ANY: Endpoint = Endpoint(0xffff_ffff);
    /// Nobody.
    pub const NONE: Endpoint = Endpoint(0xffff_fffe);
    /// The caller itself, where a kernel call wants an endpoint.
    pub const SELF: Endpoint = Endpoint(0xffff_fffd);
    /// The SYSTEM task.
    pub const SYSTEM: Endpoint = Endpoint(slot::SYSTEM as u32);
    /// Source of alarm notifications.
    pub const CLOCK: Endpoint = Endpoint(slot::CLOCK as u32);
    /// Source of interrupt notifications.
    pub const HARDWARE: Endpoint = Endpoint(slot::HARDWARE as u32);
    /// Whoever serves as rs now; see [`Endpoint::current`].
    pub const RS: Endpoint = Endpoint::current(slot::RS);
    /// Whoever serves as vm now.
    pub const VM: Endpoint = Endpoint::current(slot::VM);
    /// Whoever serves as ds now.
    pub const DS: Endpoint = Endpoint::current(slot::DS);
    /// Whoever serves as pm now.
    pub const PM: Endpoint = Endpoint::current(slot::PM);
    /// Whoever serves as vfs now.
    pub const VFS: Endpoint = Endpoint::current(slot::VFS);
    /// Whoever serves as tty now.
    pub const TTY: Endpoint = Endpoint::current(slot::TTY);
    /// Whoever serves as pci now.
    pub const PCI: Endpoint = Endpoint::current(slot::PCI);

    /// Highest generation; after it comes 1 again.
    pub const LAST_GENERATION: u32 = 0x7_fffe;

    /// The holder of `slot` with this generation.
    pub const fn new(slot: usize, generation: u32) -> Self {
        Endpoint(slot as u32 | generation << 12)
    }

    /// "Whoever holds `slot` when the message is delivered": generation 0, which no process ever has.
    /// A send to it waits while rs restarts the service (slot marked by privctl `EXPECT`), and fails
    /// with `EDEADSRCDST` when no successor is expected. As a source filter it matches any generation.
    pub const fn current(slot: usize) -> Self {
        Endpoint(slot as u32)
    }

    /// The slot.
    pub const fn slot(self) -> usize {
        (self.0 & 0xfff) as usize
    }

    /// The generation; 0 means "whoever is there" for services, and is the only one of kernel tasks.
    pub const fn generation(self) -> u32 {
        self.0 >> 12
    }

    /// True for threads of services, false for applications and kernel tasks.
    pub const fn is_service(self) -> bool {
        self.slot() >= FIRST_SERVICE && self.slot() < SERVICE_SLOTS
    }

    /// True for application threads.
    pub const fn is_application(self) -> bool {
        self.slot() >= SERVICE_SLOTS && self.slot() < SLOTS
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint::NONE
    }
}
