//! Endpoints: the source and the destination of a message.
//!
//! An endpoint is a slot of the kernel's thread table and the generation of its holder, so that a message meant for
//! one process never reaches its successor. Slots 0 to 3 are the kernel's own tasks, 4 to 127 belong to services
//! (fixed by the system file), the rest to application threads.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Slot (bits 0 to 11) and generation (bits 12 to 30).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Endpoint(pub u32);

/// Number of slots for services, kernel tasks included: the bits of a destination bitmap.
pub const SERVICE_SLOTS: usize = 128;
/// First slot of a service.
pub const FIRST_SERVICE: usize = 4;
/// All slots: kernel tasks, services and application threads.
pub const SLOTS: usize = 1152;
/// Row of privileges of application threads, which lets them send to nobody, and the bit in a destination bitmap that stands for them (the
/// slot of the idle task).
pub const APPLICATIONS_BIT: usize = 3;
/// From here on rows of privileges belong to no service: application threads with the same one, which `Join` gave them, may send to each other.
pub const FIRST_CONTAINER: usize = 96;

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
    /// Receive only: any source.
    pub const ANY: Endpoint = Endpoint(0xffff_ffff);
    /// No endpoint.
    pub const NONE: Endpoint = Endpoint(0xffff_fffe);
    /// The caller itself, as an argument of a kernel call.
    pub const SELF: Endpoint = Endpoint(0xffff_fffd);
    /// The SYSTEM task.
    pub const SYSTEM: Endpoint = Endpoint(slot::SYSTEM as u32);
    /// Source of alarm notifications.
    pub const CLOCK: Endpoint = Endpoint(slot::CLOCK as u32);
    /// Source of interrupt notifications.
    pub const HARDWARE: Endpoint = Endpoint(slot::HARDWARE as u32);
    /// The present incarnation of rs; see [`Endpoint::current`].
    pub const RS: Endpoint = Endpoint::current(slot::RS);
    /// The present incarnation of vm.
    pub const VM: Endpoint = Endpoint::current(slot::VM);
    /// The present incarnation of ds.
    pub const DS: Endpoint = Endpoint::current(slot::DS);
    /// The present incarnation of pm.
    pub const PM: Endpoint = Endpoint::current(slot::PM);
    /// The present incarnation of vfs.
    pub const VFS: Endpoint = Endpoint::current(slot::VFS);
    /// The present incarnation of tty.
    pub const TTY: Endpoint = Endpoint::current(slot::TTY);
    /// The present incarnation of pci.
    pub const PCI: Endpoint = Endpoint::current(slot::PCI);

    /// Highest generation; its successor is 1.
    pub const LAST_GENERATION: u32 = 0x7_fffe;

    /// Returns the endpoint of the process in `slot` with this generation.
    pub const fn new(slot: usize, generation: u32) -> Self {
        Endpoint(slot as u32 | generation << 12)
    }

    /// Returns the endpoint of the process that holds `slot` on delivery: generation 0, which no process ever has.
    /// A send to it waits while rs restarts the service (flag `RESTARTABLE`), and fails
    /// with `EDEADSRCDST` when no successor is expected. As a source filter it matches any generation.
    pub const fn current(slot: usize) -> Self {
        Endpoint(slot as u32)
    }

    /// Returns the slot.
    pub const fn slot(self) -> usize {
        (self.0 & 0xfff) as usize
    }

    /// Returns the generation; 0 stands for the present incarnation of a service, and is the only one of kernel tasks.
    pub const fn generation(self) -> u32 {
        self.0 >> 12
    }

    /// Returns whether this is a service, not an application thread or a kernel task.
    pub const fn is_service(self) -> bool {
        self.slot() >= FIRST_SERVICE && self.slot() < SERVICE_SLOTS
    }

    /// Returns whether this is an application thread.
    pub const fn is_application(self) -> bool {
        self.slot() >= SERVICE_SLOTS && self.slot() < SLOTS
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint::NONE
    }
}
