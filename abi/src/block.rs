//! The protocol of block drivers: requests of file systems and vfs to virtio_blk, ramdisk and ata.
//! Every request is idempotent: a caller that gets `EDEADSRCDST` repeats it to the successor.

use crate::GrantId;

protocol! {
    /// Block devices. Positions and lengths are multiples of 512 bytes, at most 1 MiB a request.
    pub "block" = 7;
    /// Returns the size of the device. `ENXIO`: no such minor.
    Open = 1 { minor: u64 } -> { bytes: u64, sector_bytes: u64, read_only: bool }
    /// Reads into the grant. Word 0 of the reply: bytes read. `EINVAL` past the end or misaligned; `EIO`.
    Read = 2 { minor: u64, grant: GrantId, position: u64, bytes: u64 }
    /// Writes from the grant. Word 0 of the reply: bytes written. `EROFS`: the device is read-only.
    Write = 3 { minor: u64, grant: GrantId, position: u64, bytes: u64 }
    /// Replies once everything written before is on the medium.
    Flush = 4 { minor: u64 }
}
