//! How much there is of everything. A table's size is fixed; `drvs_init` and `vm_init` may ask for less.

/// Nodes of a distributed system, and bits of a container's node set.
pub const NODES: usize = 32;

/// Containers ("VMs") of a node.
pub const CONTAINERS: usize = 32;

/// Slots of a container for kernel tasks; their numbers are negative.
pub const TASKS: usize = 35;

/// Slots of a container whose numbers are 0 and above.
pub const PROCESSES: usize = SLOTS - TASKS;

/// Slots of a container.
pub const SLOTS: usize = 256;

/// Bits of the index of a slot.
pub const SLOT_BITS: u32 = SLOTS.ilog2();

/// Slots below this number are for system processes: they keep their endpoint from one occupant to the next, and they may notify.
pub const SYSTEM_PROCESSES: usize = 64;

/// The most bytes that a call copies from one process to another.
pub const MAX_COPY: u64 = 4 << 20;

/// Buffers of a process, each of [`MAX_COPY`] bytes at most.
pub const BUFFERS: usize = 16;

/// Bytes of the name of a node, container or process, with the zero at its end.
pub const NAME_BYTES: usize = 16;

/// A time limit that means to wait as long as it takes.
pub const FOREVER: i64 = -1;

/// Pairs of proxies, each of which connects this node with others.
pub const PROXIES: usize = NODES;

/// Version of this contract, as `drvs_init` tells it: layouts, numbers and meanings change only with it.
pub const VERSION: i32 = 1;
