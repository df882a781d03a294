//! Places in user memory: whose memory, and where.

/// One side of a copy: whose memory, and where.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Slot of the owner.
    pub owner: usize,
    /// Start.
    pub address: u64,
}
