//! Restrictions of a resolution, bits of `resolve` of openat2(2).

/// Do not cross mounts: `EXDEV`.
pub const NO_XDEV: u64 = 1;
/// Do not follow links of /proc: `ELOOP`.
pub const NO_MAGICLINKS: u64 = 2;
/// Do not follow any links: `ELOOP`.
pub const NO_SYMLINKS: u64 = 4;
/// Do not leave the directory of the start: `EXDEV`.
pub const BENEATH: u64 = 8;
/// The directory of the start is the root.
pub const IN_ROOT: u64 = 0x10;
