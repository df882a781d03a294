//! Numbers of the CPU's exceptions that core knows.

/// General-protection fault.
pub const GENERAL_PROTECTION: u64 = 13;
/// Page fault.
pub const PAGE_FAULT: u64 = 14;
